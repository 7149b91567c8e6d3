/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Data structure of a program.
 *
 * A program is a tree of nodes in one array. Nodes have 16 bytes and are
 * addressed by index; index 0 means "no node". Lists of variable length (the
 * statements of a block, the arguments of a call) are ranges of one array of
 * ids. Children come before their parents. Parser, public builder and binary
 * reader all use ir/ir_builder.h, which checks types. So every program is
 * well typed, and later stages do not check again.
 *
 * Values occupy 64 bits: bool is 0 or 1; 32-bit integers and f32 use the low
 * half, with zeros above; f64 is its bit pattern. */
#ifndef VYRE_IR_IR_H
#define VYRE_IR_IR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "vyre/memory.h"
#include "vyre/ops.h"
#include "vyre/program.h"
#include "vyre/writer.h"

typedef uint32_t vyre__id; /* index of a node; 0: no node */

typedef enum vyre__op {
#define OP(name, text, form, rule, flags) VYRE__OP_##name,
#include "ir/ops.def"
#undef OP
  VYRE__OP_COUNT
} vyre__op;

/* Meaning of the fields a, b and c of a node. */
typedef enum vyre__form {
  VYRE__FORM_NONE,
  VYRE__FORM_NULLARY, /* no fields */
  VYRE__FORM_LITERAL, /* a low, b high half of the value */
  VYRE__FORM_LOCAL,   /* a local */
  VYRE__FORM_CALL,    /* a function, b list of arguments, c their number */
  VYRE__FORM_LOAD,    /* a buffer, b index */
  VYRE__FORM_BUFFER,  /* a buffer */
  VYRE__FORM_AXIS,    /* aux 0, 1, 2: x, y, z */
  VYRE__FORM_UNARY,   /* a operand (RETURN: may be 0) */
  VYRE__FORM_BINARY,  /* a, b operands */
  VYRE__FORM_TERNARY, /* a, b, c operands; SELECT: condition, then, else */
  VYRE__FORM_ATOMIC,  /* a buffer, b index, c value */
  VYRE__FORM_ATOMIC2, /* a buffer, b index, c list of expected, desired */
  VYRE__FORM_LIST,    /* a list, b its length */
  VYRE__FORM_SET,     /* a local, b value */
  VYRE__FORM_STORE,   /* a buffer, b index, c value */
  VYRE__FORM_IF,      /* a condition, b then, c else or 0 */
  VYRE__FORM_FOR,     /* a local, b list of first, bound, step (a literal above
                         0), body; aux: see vyre__loop */
  VYRE__FORM_WHILE,   /* a condition, b body */
  VYRE__FORM_TEXT,    /* a offset in texts, b length */
} vyre__form;

/* Direction and comparison of a `for`: up while < or <=, down while > or >=. */
typedef enum vyre__loop {
  VYRE__LOOP_LT,
  VYRE__LOOP_LE,
  VYRE__LOOP_GT,
  VYRE__LOOP_GE
} vyre__loop;

/* Marks on loops that inlining creates; 0 in all other loops. */
enum {
  /* FOR, c: body of an inlined function; not counted as an iteration */
  VYRE__FOR_ONCE = 1,
  /* WHILE, aux: the test is the first `if (..) break;` of the body; an
   * iteration is counted after it */
  VYRE__WHILE_TESTS_INSIDE = 1,
};

/* Operand types and result type. "Same": all operands and the result have one
 * type. */
typedef enum vyre__rule {
  VYRE__RULE_NONE,
  VYRE__RULE_ANY_SAME,     /* every type */
  VYRE__RULE_BOOL_SAME,    /* bool */
  VYRE__RULE_INTEGER_SAME, /* u32 i32 u64 i64 */
  VYRE__RULE_BITS_SAME,    /* integers, and bool without short circuit */
  VYRE__RULE_FLOAT_SAME,   /* f32 f64 */
  VYRE__RULE_F32_SAME,     /* f32 */
  VYRE__RULE_SIGNED_SAME,  /* i32 i64 f32 f64 */
  VYRE__RULE_NUMBER_SAME,  /* everything but bool */
  VYRE__RULE_SHIFT, /* an integer by a u32; the type of the first operand */
  VYRE__RULE_COMPARE_ANY,    /* two values of one type; result bool */
  VYRE__RULE_COMPARE_NUMBER, /* two numbers of one type; result bool */
  VYRE__RULE_CAST,           /* any to any */
  VYRE__RULE_BITCAST,        /* between types of one width; not bool */
  VYRE__RULE_SELECT,         /* bool, then two values of one type */
  VYRE__RULE_ATOMIC,         /* element type of the buffer: u32 i32 u64 i64 */
  VYRE__RULE_PUSH,           /* item type of the kernel; result bool */
} vyre__rule;

static inline bool vyre__is_float(unsigned type) {
  return type == VYRE_TYPE_F32 || type == VYRE_TYPE_F64;
}

/* Returns true for types of 64 bits. */
static inline bool vyre__is_wide(unsigned type) {
  return type == VYRE_TYPE_U64 || type == VYRE_TYPE_I64 ||
         type == VYRE_TYPE_F64;
}

enum {
  VYRE__OPF_0 = 0,
  VYRE__OPF_READS = 1,   /* a buffer */
  VYRE__OPF_WRITES = 2,  /* a buffer */
  VYRE__OPF_ATOMICS = 4, /* reads and writes a buffer atomically */
  VYRE__OPF_BARRIER = 8, /* waits for all invocations of the workgroup */
  VYRE__OPF_GRID_BARRIER = 16,
  VYRE__OPF_JUMPS = 32,
  VYRE__OPF_PUSHES = 64,
  VYRE__OPF_PRINTS = 128,
};

typedef struct vyre__op_info {
  const char *name; /* "ATOMIC_ADD" */
  const char *text; /* "atomic_add" */
  uint8_t form, rule, flags;
} vyre__op_info;

extern const vyre__op_info vyre__ops[VYRE__OP_COUNT];

typedef struct vyre__node {
  uint8_t op;   /* vyre__op */
  uint8_t type; /* vyre_type; VYRE_TYPE_VOID for statements */
  uint8_t aux;
  uint8_t reserved; /* 0 */
  union {
    struct {
      uint32_t a, b, c;
    };
    uint32_t abc[3]; /* the same as an array */
  };
} vyre__node;

/* Source location where a node begins; line 0 without a source. */
typedef struct vyre__source_loc {
  uint32_t line;
  uint32_t column;
} vyre__source_loc;

typedef struct vyre__local {
  const char *name; /* for messages; not part of the fingerprint */
  uint8_t type;     /* vyre_type */
  bool is_mutable;  /* declared by `var` */
} vyre__local;

/* Function. The first one is the kernel, without parameters and result.
 * Parameters are the first locals. */
typedef struct vyre__function {
  const char *name;
  uint8_t result; /* vyre_type; VOID without a result */
  uint32_t parameter_count;
  const vyre__local *locals;
  uint32_t local_count;
  vyre__id body; /* a BLOCK */
} vyre__function;

/* Program: immutable. The arena holds everything, including this struct. */
struct vyre_program {
  vyre_arena arena;
  atomic_uint references;
  const char *name; /* of the kernel; "" for a list of buffers without a body */
  const char *file; /* as passed to the parser; "" without a source */
  const vyre_buffer_decl *buffers;
  /* locations of the names; NULL without a source */
  const vyre__source_loc *buffer_places;
  size_t buffer_count;
  uint32_t workgroup[3];
  uint32_t over; /* index of the buffer that sizes the grid, or VYRE_NO_INDEX */
  uint8_t item_type; /* of a queue kernel; otherwise VYRE_TYPE_VOID */

  const vyre__function *functions; /* [0] is the kernel */
  uint32_t function_count;         /* 0: no body */
  const vyre__node *nodes;
  const uint32_t *places; /* per node; see vyre__source_loc_of */
  /* replaces `places` if a location does not fit in 4 bytes */
  const vyre__source_loc *wide_places;
  uint32_t node_count;
  const uint32_t *lists;
  uint32_t list_count;
  const char *texts; /* of print statements */
  uint32_t text_count;
  vyre_hash128 fingerprint;
};

/* Source locations are packed into 4 bytes each, because there is one per
 * node and few are ever read. A program with very long lines or very many
 * lines uses wide_places instead. */
enum { VYRE__COLUMN_BITS = 12 };

static inline bool vyre__place_is_small(vyre__source_loc place) {
  return place.line >> (32 - VYRE__COLUMN_BITS) == 0 &&
         place.column >> VYRE__COLUMN_BITS == 0;
}

static inline uint32_t vyre__place_pack(vyre__source_loc place) {
  return place.line << VYRE__COLUMN_BITS | place.column;
}

static inline vyre__source_loc vyre__source_loc_of(const vyre_program *program,
                                                   vyre__id id) {
  if (program->wide_places) return program->wide_places[id];
  const uint32_t packed = program->places[id];
  return (vyre__source_loc){packed >> VYRE__COLUMN_BITS,
                            packed & ((1u << VYRE__COLUMN_BITS) - 1)};
}

/* Returns true for the mathematical functions, EXP to HYPOT. */
static inline bool vyre__op_is_math(unsigned op) {
  return op >= VYRE__OP_EXP && op <= VYRE__OP_HYPOT;
}

static inline uint64_t vyre__literal(const vyre__node *node) {
  return (uint64_t)node->b << 32 | node->a;
}

/* Returns true for shared memory. A declaration says so by its kind (SHARED) or
 * by its access (WORKGROUP). */
static inline bool vyre__is_shared(const vyre_buffer_decl *buffer) {
  return buffer->kind == VYRE_MEMORY_SHARED ||
         buffer->access == VYRE_ACCESS_WORKGROUP;
}

/* Returns the register type that an element is loaded as. */
vyre_type vyre__element_type(vyre_element element);

/* Limit for nested statements and expressions together. Parsers and builders
 * enforce it, so that all other code may recurse. */
enum { VYRE__MAX_DEPTH = 200 };

/* Hashes the canonical bytes of a program. Names of locals, functions and
 * source locations are left out. The result is the fingerprint. */
void vyre__program_hash(const vyre_program *program, vyre_hash128 *out);

#endif
