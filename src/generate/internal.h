/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by the files of the random program generator.
 *
 * Programs stay deterministic by these rules. Between two barriers, every
 * written buffer has one mode, which restricts the accesses to its elements.
 * Each element belongs to one invocation. Modes change at barriers only, and
 * modes between workgroups at grid barriers only. A loop with barriers begins
 * its body with one and is followed by one; an `if` with barriers is followed
 * by one. So a barrier separates two modes on every path. */
#ifndef VYRE_GENERATE_INTERNAL_H
#define VYRE_GENERATE_INTERNAL_H

#include "vyre/builder.h"

#include "generate/generate.h"

enum {
  GEN_BUFFERS = 20,
  GEN_LOCALS = 128,
  GEN_FUNCTIONS = 3,
  GEN_PARAMETERS = 3,
  GEN_CHOICES = 128, /* operations with one result type */
  GEN_MAX_ITERATIONS = 6,
  GEN_COST = 64, /* maximum iterations of nested loops together */
  GEN_NESTING = 4,
};

/* Set of invocations for which a value or the control flow is the same. */
typedef enum gen_level {
  GEN_HOST,     /* known before the launch: literals, uniforms, len() */
  GEN_GRID,     /* the same for all invocations */
  GEN_GROUP,    /* the same in a workgroup */
  GEN_SUBGROUP, /* the same in a subgroup */
  GEN_VARYING,  /* not the same */
} gen_level;

typedef enum gen_kind {
  GEN_INPUT,
  GEN_UNIFORM,
  GEN_OUT, /* every invocation writes its own elements */
  GEN_RW,
  GEN_SHARED,
} gen_kind;

typedef enum gen_mode {
  GEN_OWN,        /* loads and stores of own elements */
  GEN_OWN_ATOMIC, /* all atomics, on own elements */
  GEN_READ,       /* loads of all elements */
  GEN_READ_GROUP, /* loads of elements of the workgroup */
  GEN_ATOMIC, /* one commuting atomic on all elements; its result is unused */
} gen_mode;

typedef struct gen_buffer {
  vyre_build_buffer_ref handle;
  vyre_element element;
  vyre_type type;
  gen_kind kind;
  uint32_t binding;
  uint32_t count;   /* declared; 0: sized by its data */
  uint32_t length;  /* elements */
  uint32_t per;     /* elements owned by one invocation */
  bool is_strided;  /* owned elements are not adjacent */
  bool is_readable; /* own elements can be loaded */
  gen_mode mode;
  vyre_op atomic; /* of GEN_ATOMIC */
} gen_buffer;

typedef struct gen_local {
  vyre_variable variable;
  vyre_type type;
  gen_level level;
  bool is_assignable;
  bool is_counter; /* of a loop; its final value is not used */
} gen_local;

typedef struct gen_function {
  vyre_build_function_ref handle;
  vyre_type result;
  vyre_type types[GEN_PARAMETERS];
  size_t count;
  uint32_t cost;
} gen_function;

/* Operation, and the type of its (other) operands. */
typedef struct gen_choice {
  vyre_op op;
  uint8_t arity;
  vyre_type operand;
} gen_choice;

/* Loop that break and continue leave. */
typedef struct gen_loop {
  gen_level level; /* required level of a condition around them */
} gen_loop;

typedef struct gen {
  vyre_random_program_options options;
  vyre__generate_fault fault;
  uint64_t random;
  vyre_builder *b;
  vyre_type types[VYRE_TYPE_COUNT]; /* types that may be used */
  uint32_t type_count;
  gen_choice choices[VYRE_TYPE_COUNT][GEN_CHOICES]; /* by result type */
  uint32_t choice_count[VYRE_TYPE_COUNT];

  uint32_t workgroup[3], grid[3];
  uint32_t group_size, invocations;
  bool has_subgroups; /* operations of subgroups may be used */
  gen_buffer buffers[GEN_BUFFERS];
  uint32_t buffer_count;
  gen_function functions[GEN_FUNCTIONS];
  uint32_t function_count;

  /* state at the next statement */
  gen_local locals[GEN_LOCALS];
  uint32_t local_count;
  uint32_t name_count;
  vyre_variable sink;             /* a u32 that collects all values */
  vyre_variable own, lane, group; /* ids of the invocation; see gen_prologue */
  const gen_function *function;   /* being built; NULL: the kernel */
  vyre_variable result;           /* of that function */
  const gen_loop *loop;           /* innermost; NULL: no loop */
  gen_level control;              /* level of control at this statement */
  bool is_certain;                /* it runs in any case */
  bool may_wait;                  /* barriers and uniform() are allowed */
  bool may_return;                /* of the kernel */
  uint32_t barriers;              /* built so far */
  uint32_t nesting, cost;
  int32_t budget; /* statements left */
} gen;

/* --- random numbers: splitmix64 --------------------------------------------*/

/* C does not define the evaluation order of arguments and operands. So at
 * most one call per expression may draw a number; otherwise compilers would
 * generate different programs. */

static inline uint64_t gen_next(gen *g) {
  uint64_t z = g->random += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

/* Returns a number from 0 to bound - 1; 0 if the bound is 0. */
static inline uint32_t gen_below(gen *g, uint32_t bound) {
  return (uint32_t)((gen_next(g) >> 32) * bound >> 32);
}

static inline bool gen_chance(gen *g, uint32_t percent) {
  return gen_below(g, 100) < percent;
}

static inline vyre_type gen_type(gen *g) {
  return g->types[gen_below(g, g->type_count)];
}

static inline bool gen_is_wide(vyre_type type) {
  return type == VYRE_TYPE_U64 || type == VYRE_TYPE_I64 ||
         type == VYRE_TYPE_F64;
}

/* Returns one of u32 i32 u64 i64, as far as allowed. */
vyre_type gen_integer(gen *g);

/* --- data.c: values that reveal faults -------------------------------------*/

/* Returns the bits of a random value of that type. */
uint64_t gen_bits(gen *g, vyre_type type);
/* Fills @p count elements. */
void gen_fill(gen *g, vyre_element element, unsigned char *bytes,
              uint32_t count);

/* --- choices.c: operations by type -----------------------------------------*/

void gen_list_choices(gen *g);

/* --- value.c ---------------------------------------------------------------*/

/* Builds a value that is the same for the invocations of @p level. */
vyre_value gen_value(gen *g, vyre_type type, int depth, gen_level level);
vyre_value gen_literal(gen *g, vyre_type type, uint64_t bits);
vyre_value gen_number(gen *g, vyre_type type, uint32_t value);
/* Builds a u32 that depends on all bits of a local. */
vyre_value gen_digest(gen *g, const gen_local *local);

/* --- memory.c --------------------------------------------------------------*/

void gen_declare_buffers(gen *g);
/* Chooses new modes after a barrier, or a grid barrier. */
void gen_change_modes(gen *g, bool is_grid);
bool gen_can_load(const gen_buffer *buffer, gen_level level);
/* Builds a load, or an atomic on an own element. */
vyre_value gen_load(gen *g, const gen_buffer *buffer, int depth,
                    gen_level level);
/* Builds the index of an element that this invocation owns. */
vyre_value gen_own_index(gen *g, const gen_buffer *buffer, uint32_t which);
bool gen_can_store(const gen_buffer *buffer);
void gen_store(gen *g, const gen_buffer *buffer, int depth);
/* Builds a commuting atomic on a buffer in that mode. */
void gen_atomic(gen *g, const gen_buffer *buffer, int depth);

/* --- statement.c -----------------------------------------------------------*/

/* Registers a variable for later use. */
void gen_register(gen *g, vyre_variable variable, vyre_type type,
                  gen_level level, bool is_assignable);
/* Writes a name like a12 to @p out. */
const char *gen_name(gen *g, char letter, char out[16]);
/* Mixes a value into the sink. */
void gen_mix(gen *g, vyre_value bits);
/* Mixes the locals from @p first on into the sink. */
void gen_mix_locals(gen *g, uint32_t first);
/* Builds about @p count statements. */
void gen_statements(gen *g, uint32_t count);
void gen_barrier(gen *g, bool is_grid);

/* Returns true if operations of subgroups are allowed here. */
static inline bool gen_can_exchange(const gen *g) {
  return g->has_subgroups && g->may_wait && g->control <= GEN_SUBGROUP &&
         !g->function;
}

/* --- loop.c ----------------------------------------------------------------*/

void gen_if(gen *g);
void gen_for(gen *g);
void gen_while(gen *g);

/* --- kernel.c --------------------------------------------------------------*/

/* Return the maximum number of invocations of a workgroup, in total and on an
 * axis. */
uint32_t gen_largest_workgroup(void);
uint32_t gen_largest_axis(int axis);
/* Builds everything between vyre_builder_create and vyre_builder_build. */
void gen_kernel(gen *g);
/* Builds a return from the function or kernel that keeps the values computed
 * so far. */
void gen_return(gen *g);

#endif
