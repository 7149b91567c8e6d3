/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Programs for tests of control flow: their syntax tree, and what makes, prints,
 * interprets, runs and reduces them. Nothing here uses the library except run.c,
 * which uses its public headers. */
#ifndef VYRE_CONTROL_FLOW_PROGRAM_H
#define VYRE_CONTROL_FLOW_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
  CF_MAX_VARS = 160,
  CF_MAX_FUNCTIONS = 3,
  CF_UNIFORMS = 8,
  CF_COUNTERS = 8, /* elements of the buffer of atomics */
  CF_MAX_RUNS = 24
};

/* --- random numbers (splitmix64) ----------------------------------------------*/

typedef struct cf_random {
  uint64_t state;
} cf_random;

uint64_t cf_hash(uint64_t x);
uint64_t cf_next(cf_random *r);
uint32_t cf_below(cf_random *r, uint32_t bound); /* 0 .. bound - 1 */
bool cf_chance(cf_random *r, uint32_t percent);  /* true that often */

/* --- expressions ----------------------------------------------------------------*/

/* The set of invocations that agree on a value. A barrier needs WORKGROUP or
 * GRID around it, a grid barrier GRID. */
typedef enum cf_level { CF_GRID, CF_WORKGROUP, CF_DIVERGENT } cf_level;

typedef enum cf_type { CF_U32, CF_I32, CF_U64, CF_F32, CF_BOOL } cf_type;

/* All values of expressions are u32 or bool: a variable of another type is cast
 * where it is read. */
typedef enum cf_op {
  CF_CONST,   /* value */
  CF_VAR,     /* value: the variable, read as u32 */
  CF_FLAG,    /* value: a variable of type bool, read as bool */
  CF_UNIFORM, /* value: which uniform */
  CF_LEN,     /* len(data) */
  CF_DATA,    /* data[a] */
  CF_LANE,    /* the invocation's number in its workgroup */
  CF_OWN,     /* the invocation's number in the dispatch */
  CF_LOCAL_ID,
  CF_GLOBAL_ID,
  CF_WORKGROUP_ID,
  CF_GRID_SIZE, /* these four: value is the axis */
  CF_CALL,      /* value: the function; a and b: its arguments */
  CF_ADD,
  CF_SUB,
  CF_MUL,
  CF_REM,
  CF_XOR,
  CF_AND,
  CF_OR,
  CF_SHL,
  CF_SHR,
  CF_SELECT, /* c: the condition, a if true, b if false; value 1: as c ? a : b */
  CF_EQ,
  CF_NE,
  CF_LT,
  CF_LE,
  CF_LAND,
  CF_LOR,
  CF_NOT
} cf_op;

typedef struct cf_expr {
  cf_op op;
  cf_level level;
  uint8_t form; /* of a reduced program: 1 is `a` in its place, 2 is `b` */
  uint32_t value;
  struct cf_expr *a, *b, *c;
} cf_expr;

/* --- statements -----------------------------------------------------------------*/

typedef enum cf_kind {
  CF_DECLARE, /* var (or let) = a */
  CF_ASSIGN,  /* var = a */
  CF_STORE,   /* the invocation's own element `slot` of `out` = a */
  CF_COUNT,   /* atomic_add(count[slot], a) */
  CF_IF,      /* if (a) body else other; a body of one jump has no braces */
  CF_FOR,     /* for (var = a; var compare b; var += step) body */
  CF_WHILE,   /* while (a) body */
  CF_BREAK,
  CF_CONTINUE,
  CF_RETURN,    /* in a function: the value a */
  CF_EXCHANGE,  /* tile[lane] = a; barrier; var = tile[next]; barrier */
  CF_PASS,      /* the same through a buffer of global memory */
  CF_GRID_PASS, /* the same among all invocations, with grid barriers */
  CF_BROADCAST, /* var = uniform(a) */
  CF_BARRIER
} cf_kind;

typedef enum cf_compare {
  CF_BELOW,  /* < and += */
  CF_UP_TO,  /* <= and += */
  CF_ABOVE,  /* > and -= */
  CF_DOWN_TO /* >= and -= */
} cf_compare;

typedef struct cf_stmt {
  cf_kind kind;
  bool is_gone;  /* removed by the reduction */
  bool is_fixed; /* keeps a loop finite: the reduction must not remove it */
  uint8_t form;  /* of a reduced program: 1 is `body` in its place, 2 `other` */
  bool has_else;
  bool is_switch; /* of an if: written as a switch, if no break prevents it */
  bool is_do;     /* of a while: the condition is after the body */
  bool is_geometric; /* of a for: `step` is a factor */
  cf_compare compare;
  uint32_t var, slot, step, distance;
  cf_expr *a, *b;
  struct cf_stmt *body, *other, *next;
} cf_stmt;

typedef struct cf_var {
  cf_type type;
  cf_level level;
  bool is_let;
  char prefix; /* the name is this letter and the variable's number */
} cf_var;

typedef struct cf_function {
  uint32_t params[2];
  cf_stmt *body;
} cf_function;

/* Inputs of a dispatch. */
typedef struct cf_run {
  uint32_t uniforms[CF_UNIFORMS];
  uint32_t pattern; /* of `data`: cf_data_at */
  uint64_t seed;    /* of `data` */
} cf_run;

typedef struct cf_block {
  struct cf_block *next;
  size_t used;
  _Alignas(16) unsigned char bytes[16384];
} cf_block;

typedef struct cf_program {
  cf_block *memory;
  char name[40];   /* "shape 17", "random 17" */
  uint64_t number; /* with --first */
  uint32_t workgroup[3], grid[3];
  uint32_t missing; /* elements that `data` has too few */
  bool has_array;   /* one uniform array instead of scalars */
  bool
      is_interleaved; /* out[slot * total + own], else out[own * slots + slot] */
  uint32_t uniform_count, slot_count;
  bool has_tile, has_pass, has_wide, has_count;
  cf_var vars[CF_MAX_VARS];
  uint32_t var_count;
  uint32_t acc, join, agreed; /* variables that every program has: a hash of
                                 what was executed; one that arms of an `if`
                                 assign; one that is the same in a workgroup */
  cf_function functions[CF_MAX_FUNCTIONS];
  uint32_t function_count;
  cf_stmt *body;
  cf_run runs[CF_MAX_RUNS];
  uint32_t run_count;
} cf_program;

void *cf_take(cf_program *p, size_t size); /* zeroed, the program's */
void cf_deinit(cf_program *p);

static inline uint32_t cf_lanes(const cf_program *p) {
  return p->workgroup[0] * p->workgroup[1] * p->workgroup[2];
}
static inline uint32_t cf_groups(const cf_program *p) {
  return p->grid[0] * p->grid[1] * p->grid[2];
}
static inline uint32_t cf_total(const cf_program *p) {
  return cf_lanes(p) * cf_groups(p);
}

/* --- shape.c: small shapes ------------------------------------------------------*/

typedef enum cf_shape_kind {
  CF_SHAPE_IF,
  CF_SHAPE_IF_ELSE,
  CF_SHAPE_FOR,
  CF_SHAPE_WHILE,
  CF_SHAPE_BREAK,
  CF_SHAPE_CONTINUE,
  CF_SHAPE_RETURN
} cf_shape_kind;

/* One control statement of a shape, and the rest of its sequence. */
typedef struct cf_shape {
  cf_shape_kind kind;
  bool is_guarded; /* false for an unconditional jump only */
  cf_level level;  /* of its condition: CF_GRID or CF_DIVERGENT */
  struct cf_shape *body, *other, *next;
} cf_shape;

enum { CF_SHAPE_MAX = 4 };

uint64_t cf_shape_count(unsigned size); /* shapes of exactly that size */
uint64_t cf_shape_total(void);          /* of sizes 1 to CF_SHAPE_MOST */
/* Shape number @p index of all, smaller ones first. Lives in @p p. */
cf_shape *cf_shape_make(cf_program *p, uint64_t index);
/* Checks that no two numbers give the same shape. Prints how many do. */
bool cf_shapes_are_distinct(void);
/* The number of the shape that is member @p i of a sample of @p n shapes. */
uint64_t cf_shape_sample(uint64_t i, uint64_t n);

/* --- build.c, random.c: programs ------------------------------------------------*/

cf_expr *cf_leaf(cf_program *p, cf_op op, uint32_t value);
cf_expr *cf_node(cf_program *p, cf_op op, cf_expr *a, cf_expr *b);
cf_expr *cf_number(cf_program *p, uint32_t value);
cf_stmt *cf_statement(cf_program *p, cf_kind kind);
uint32_t cf_variable(cf_program *p, cf_type type, cf_level level, char prefix);
void cf_geometry(cf_program *p, cf_random *r, uint32_t max_invocations);
uint32_t cf_data_at(const cf_program *p, const cf_run *run, uint32_t index);

void cf_build_shape(cf_program *p, uint64_t index, uint32_t max_invocations);
void cf_build_random(cf_program *p, uint64_t seed, uint32_t max_invocations);

/* Statements in the order they are added. */
typedef struct cf_list {
  cf_stmt *first, **end;
} cf_list;
void cf_append(cf_list *l, cf_stmt *s);
void cf_assign(cf_program *p, cf_list *l, uint32_t var, cf_expr *value);
void cf_declare(cf_program *p, cf_list *l, uint32_t var, cf_expr *value);
void cf_store(cf_program *p, cf_list *l, cf_expr *value);
void cf_prologue(cf_program *p, cf_list *l);
/* acc = acc * 31 + value */
void cf_mix(cf_program *p, cf_list *l, cf_expr *value);

/* sync.c: puts barriers where all invocations that they wait for arrive. */
void cf_add_barriers(cf_program *p, cf_random *r, uint32_t percent,
                     bool with_grid);

/* --- print.c --------------------------------------------------------------------*/

/* The text of a program, allocated by malloc. */
char *cf_print(const cf_program *p);

/* --- oracle.c -------------------------------------------------------------------*/

/* Memory after a dispatch. */
typedef struct cf_memory {
  uint32_t *out, *pass, *wide, *count;
} cf_memory;

typedef enum cf_outcome {
  CF_RAN,
  CF_TOO_LONG, /* more steps than worth it */
  CF_BAD       /* invocations wait at different barriers: not a valid program */
} cf_outcome;

void cf_memory_begin(const cf_program *p, cf_memory *m);
void cf_memory_end(cf_memory *m);
cf_outcome cf_interpret(const cf_program *p, const cf_run *run, cf_memory *m);

/* --- run.c ----------------------------------------------------------------------*/

struct vyre_context;
struct vyre_device;

/* Something that runs programs: a device, and how it compiles. */
typedef struct cf_target {
  struct vyre_context *context; /* NULL: the process's own */
  struct vyre_device *device;
  char name[64];  /* "cpu, width 8" */
  unsigned width; /* of cpu */
  bool is_quick;
  bool has_races; /* look for races too; on `ref` alone */
} cf_target;

typedef struct cf_counts {
  uint64_t programs, compiles, dispatches;
  uint64_t unsupported; /* kernels that the device cannot compile */
  char why[512];        /* the first of them, and the reason */
  uint64_t skipped;     /* runs that the oracle found too long */
} cf_counts;

typedef struct cf_difference {
  uint32_t run;       /* which of the program's runs */
  char message[1024]; /* what differs, or the failure */
} cf_difference;

typedef enum cf_verdict { CF_SAME, CF_DIFFERS, CF_REFUSED } cf_verdict;

/* Runs all runs of @p p (or only @p only, if not negative) on the targets and
 * compares all outputs with the oracle. */
cf_verdict cf_compare_all(const cf_program *p, const cf_target *targets,
                          size_t target_count, int only, cf_counts *counts,
                          cf_difference *out);

/* reduce.c: removes statements and operands as long as @p p differs. */
void cf_reduce(cf_program *p, const cf_target *target, cf_difference *d);

#endif
