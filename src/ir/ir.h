/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Data structure of a program.
 *
 * A program is a tree of nodes in one array. Nodes have 16 bytes and are
 * addressed by index; index 0 means "no node". Lists of variable length (the
 * statements of a block, the arguments of a call) are ranges of one array of
 * ids. Children come before their parents. Parser, public builder and binary
 * reader all use ir/builder/ir_builder.h, which checks types. So every program is
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

#include "base/source_files.h"

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
  VYRE__FORM_NULLARY, /* no fields; ITEM: aux is the field of the item */
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
  VYRE__FORM_MAKE,    /* a list of values, b its length */
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
  VYRE__RULE_EXTRACT,   /* an integer, two u32; the type of the first operand */
  VYRE__RULE_INSERT,    /* two integers of one type, a BIT_RANGE; their type */
  VYRE__RULE_U32,       /* u32; result u32, or i32 for DOT4_I8 */
  VYRE__RULE_QUEUE_KEY, /* u32; result bool */
  VYRE__RULE_VECTOR,    /* vectors; see ir/builder/ir_builder_vector.c */
  VYRE__RULE_LANES, /* any value, and a u32; the type of the first operand */
} vyre__rule;

/* Numbers of types. Scalars are values of vyre_type below 16. A vector has the
 * number of its component type plus 16 times its length minus 1. */
enum { VYRE__VECTOR_STEP = 16, VYRE__MAX_COMPONENTS = 4 };

/* Structs have the numbers from FIRST_STRUCT on, in the order of the program's
 * table. */
enum {
  VYRE__FIRST_STRUCT = 64,
  VYRE__MAX_STRUCTS = 180,
  VYRE__MAX_SCALARS = 256, /* of a struct */
};

/* Returns true for structs. */
static inline bool vyre__is_struct(unsigned type) {
  return type >= VYRE__FIRST_STRUCT &&
         type < VYRE__FIRST_STRUCT + VYRE__MAX_STRUCTS;
}

/* Scalar of a struct. */
typedef struct vyre__scalar {
  uint8_t element; /* vyre_element */
  uint32_t offset; /* bytes from the start of the struct */
} vyre__scalar;

/* Struct with its scalars, those of inner structs included. */
typedef struct vyre__struct {
  vyre_struct self;
  uint32_t scalar_count;
  const vyre__scalar *scalars;
  const uint32_t *firsts; /* per field: its first scalar */
  uint8_t main_element;   /* vyre_element of the largest scalar */
  uint8_t width;          /* bytes of one access to memory: 1, 2, 4 or 8 */
} vyre__struct;

/* Numbers of types of nodes without a value. */
enum {
  VYRE__TYPE_INDEX = 251,   /* indices of an element with dimensions (INDEX) */
  VYRE__TYPE_NOTHING = 252, /* call of a function without a result */
  VYRE__TYPE_RESULTS = 253, /* call of a function with several results */
  VYRE__TYPE_MEMORY = 254,  /* a whole array, or memory as an argument */
};

/* Returns true for types of nodes that are not values. */
static inline bool vyre__is_no_value(unsigned type) {
  return type >= VYRE__TYPE_INDEX;
}

/* Numbers of memory, in nodes that access it. A kernel has its buffers from 0
 * on. The arrays and memory parameters of a function are locals, and the tables
 * of a program are numbered on their own. An inlined program has buffers only.
 */
enum {
  VYRE__MEMORY_LOCAL = 1 << 30,
  VYRE__MEMORY_TABLE = 1 << 29,
  VYRE__MEMORY_INDEX = VYRE__MEMORY_TABLE - 1,
};

/* Most bytes of the arrays of an invocation, and most elements of a table. */
enum { VYRE__MAX_ARRAY_BYTES = 8192, VYRE__MAX_TABLE = 32768 };

/* Returns true for vectors. */
static inline bool vyre__is_vector(unsigned type) {
  return type >= VYRE__VECTOR_STEP &&
         type < VYRE__MAX_COMPONENTS * VYRE__VECTOR_STEP;
}

/* Returns true for types that consist of several scalars. */
static inline bool vyre__is_aggregate(unsigned type) {
  return type >= VYRE__VECTOR_STEP;
}

/* Returns the number of components of a vector; 1 for a scalar. */
static inline unsigned vyre__vector_length(unsigned type) {
  return type / VYRE__VECTOR_STEP + 1;
}

/* Returns the type of the components of a vector; a scalar is its own. */
static inline unsigned vyre__component_type(unsigned type) {
  return type % VYRE__VECTOR_STEP;
}

/* Returns the vector of @p length components; a scalar if that is 1. */
static inline unsigned vyre__vector_of(unsigned component, unsigned length) {
  return component + (length - 1) * VYRE__VECTOR_STEP;
}

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

/* Lengths of an array with several indices: 16 bits for each, the first in the
 * low bits. 0: the array has one index. */
typedef uint64_t vyre__shape;

enum { VYRE__SHAPE_BITS = 16 };

static inline uint32_t vyre__shape_length(vyre__shape shape, unsigned at) {
  if (at >= VYRE_MAX_DIMENSIONS) return 0;
  return (uint32_t)(shape >> VYRE__SHAPE_BITS * at & 0xFFFF);
}

/* Returns the number of indices; 0 for one. */
static inline unsigned vyre__shape_count(vyre__shape shape) {
  unsigned count = 0;
  while (vyre__shape_length(shape, count)) {
    count++;
  }
  return count;
}

/* Returns the number of elements from one value of index @p at - 1 to the
 * next. */
static inline uint64_t vyre__shape_product(vyre__shape shape, unsigned at) {
  uint64_t product = 1;
  for (unsigned i = at; i < vyre__shape_count(shape); i++) {
    product *= vyre__shape_length(shape, i);
  }
  return product;
}

/* Returns true for a shape of an array of @p length elements. */
static inline bool vyre__shape_fits(vyre__shape shape, uint32_t length) {
  const unsigned count = vyre__shape_count(shape);
  if (shape == 0) return true;
  return count > 1 &&
         (count == VYRE_MAX_DIMENSIONS ||
          shape >> VYRE__SHAPE_BITS * count == 0) &&
         vyre__shape_product(shape, 0) == length;
}

typedef struct vyre__local {
  const char *name; /* for messages; not part of the fingerprint */
  uint8_t type;     /* vyre_type; of an array, of its elements */
  bool is_mutable;  /* declared by `var` */
  bool is_memory;   /* an array, or a parameter that refers to memory */
  uint8_t access;   /* of a memory parameter: vyre_access */
  uint8_t element;  /* of a memory parameter: vyre_element */
  uint32_t length;  /* elements of an array; 0: a memory parameter, or none */
  vyre__shape shape;
} vyre__local;

/* Table of constants. */
typedef struct vyre__table {
  const char *name; /* for messages; not part of the fingerprint */
  uint8_t type;     /* vyre_type */
  uint32_t length;
  vyre__shape shape;
  const uint64_t *values;
} vyre__table;

/* Buffer that inlining added at the end of the list: an array of each
 * invocation, or a table. */
typedef struct vyre__hidden {
  const vyre__table *table; /* NULL: an array */
} vyre__hidden;

enum { VYRE__MAX_RESULTS = 16 };

/* Function. The first one is the kernel, without parameters and result.
 * Parameters are the first locals. */
typedef struct vyre__function {
  const char *name;
  uint8_t result;       /* vyre_type; VOID without a result, or with several */
  uint8_t result_count; /* of several results; 0 otherwise */
  uint8_t results[VYRE__MAX_RESULTS];
  uint32_t parameter_count;
  const vyre__local *locals;
  uint32_t local_count;
  vyre__id body; /* a BLOCK */
} vyre__function;

/* Order of the items of a queue kernel. A window is the set of items that run
 * between two points where all of them have finished. */
typedef enum vyre__queue_kind {
  VYRE__QUEUE_ORDERED, /* by position of the pushing item, then push number */
  VYRE__QUEUE_SET,     /* keys below a bound, ascending, each once per window */
  VYRE__QUEUE_ONCE,    /* as SET; each key at most once per run */
  VYRE__QUEUE_ANY,     /* unspecified */
  VYRE__QUEUE_KIND_COUNT
} vyre__queue_kind;

/* Bound of the keys of set(N) and once(N). */
typedef enum vyre__bound_kind {
  VYRE__BOUND_NONE,
  VYRE__BOUND_CONSTANT, /* `bound` is the number of keys */
  VYRE__BOUND_UNIFORM,  /* element 0 of uniform `bound`, which is a u32 */
  VYRE__BOUND_LEN,      /* number of elements of buffer `bound` */
  VYRE__BOUND_KIND_COUNT
} vyre__bound_kind;

typedef struct vyre__queue_field {
  const char *name; /* "" if the item has one field without a name */
  uint8_t type;     /* vyre_type; not bool */
} vyre__queue_field;

enum { VYRE__MAX_QUEUE_FIELDS = 32 };

/* Clauses of a queue kernel. */
typedef struct vyre__queue_clauses {
  uint8_t kind;       /* vyre__queue_kind */
  uint8_t bound_kind; /* vyre__bound_kind; NONE for ORDERED and ANY */
  uint32_t bound;
  uint32_t pushes; /* P of pushes(P); 0 without one */
  uint32_t field_count;
  const vyre__queue_field *fields;
  /* Functions of further bodies, or 0. They use buffers and the item, like the
   * kernel, and are never called. */
  uint32_t by;   /* pushes the priority of the item, a u32 */
  uint32_t pull; /* runs for the keys that are not in the set yet */
  /* 1 + vyre__queue_part_kind of a program that vyre__queue_part made: one body
   * of a queue kernel, which the inliner selects. 0: the whole kernel. */
  uint8_t part;
  /* Number of the last buffers, which are those of the queue, of an ordinary
   * kernel that vyre__queue_kernel made. */
  uint32_t hidden;
} vyre__queue_clauses;

/* Returns the 32-bit words of an item in memory: its fields in order, without
 * padding, little endian. */
static inline uint32_t vyre__queue_item_words(
    const vyre__queue_clauses *queue) {
  uint32_t words = 0;
  for (uint32_t i = 0; i < queue->field_count; i++) {
    words += vyre__is_wide(queue->fields[i].type) ? 2 : 1;
  }
  return words;
}

static inline bool vyre__queue_has_keys(const vyre__queue_clauses *queue) {
  return queue->kind == VYRE__QUEUE_SET || queue->kind == VYRE__QUEUE_ONCE;
}

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
  /* type of the first field of an item; VYRE_TYPE_VOID unless it is a queue
   * kernel */
  uint8_t item_type;
  const vyre__queue_clauses *queue; /* NULL unless it is a queue kernel */
  /* It contains values that are not scalars, or exact sums. Analyses and backends only accept
   * the inlined program (vyre__plain in analyze/inline/inline.h). */
  bool is_rich;
  const vyre__struct *const *structs; /* by type number */
  uint32_t struct_count;

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
  const vyre__table *tables;
  uint32_t table_count;
  /* The last buffers of an inlined program, which users do not see. */
  const vyre__hidden *hidden;
  uint32_t hidden_count;
  const vyre__source_files *files; /* of line numbers; NULL without imports */
  vyre_program *origin; /* holds memory that this program uses; or NULL */
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

/* Returns true for reductions and scans over the workgroup. */
static inline bool vyre__op_is_workgroup(unsigned op) {
  return op >= VYRE__OP_REDUCE_ADD && op <= VYRE__OP_SCAN_ADD_BEFORE;
}

/* Invocations of a subgroup, on every device. */
enum { VYRE__SUBGROUP = 32, VYRE__SUBGROUP_SHIFT = 5 };

/* Returns true for `lane` and `subgroup_id`. */
static inline bool vyre__op_is_lane(unsigned op) {
  return op == VYRE__OP_LANE || op == VYRE__OP_SUBGROUP_ID;
}

/* Returns true for operations of a subgroup that inlined programs have. */
static inline bool vyre__op_is_exchange(unsigned op) {
  return op >= VYRE__OP_SHUFFLE && op <= VYRE__OP_BALLOT;
}

/* Returns true for operations that the invocations of a subgroup reach
 * together. */
static inline bool vyre__op_is_subgroup(unsigned op) {
  return op >= VYRE__OP_SHUFFLE && op <= VYRE__OP_SUBGROUP_SCAN_ADD_BEFORE;
}

/* Returns true for functions that came after the reserved words were fixed:
 * their names are not reserved, and a fn of a program may have them. */
static inline bool vyre__op_is_soft(unsigned op) {
  return (op >= VYRE__OP_CLAMP && op <= VYRE__OP_FRACT &&
          op != VYRE__OP_BIT_RANGE) ||
         op == VYRE__OP_ATOMIC_MERGE || vyre__op_is_workgroup(op) ||
         vyre__op_is_lane(op) || vyre__op_is_subgroup(op) ||
         (op >= VYRE__OP_ALL && op <= VYRE__OP_DISTANCE);
}

/* Returns true for operations that are numbered like statements but have a
 * value. */
static inline bool vyre__op_is_late_value(unsigned op) {
  return vyre__op_is_math(op) ||
         (op >= VYRE__OP_COND && op <= VYRE__OP_DISTANCE) ||
         op == VYRE__OP_ATOMIC_MERGE || op == VYRE__OP_INDEX ||
         vyre__op_is_workgroup(op) || op == VYRE__OP_FIELD ||
         vyre__op_is_lane(op) || vyre__op_is_subgroup(op) ||
         (op >= VYRE__OP_MEMORY && op <= VYRE__OP_RESULT);
}

/* Returns the hidden buffer with this number, or NULL. */
static inline const vyre__hidden *vyre__hidden_of(const vyre_program *program,
                                                  uint32_t buffer) {
  const uint32_t first =
      (uint32_t)program->buffer_count - program->hidden_count;
  return buffer >= first ? &program->hidden[buffer - first] : 0;
}

/* Returns true for an array, of which each invocation has its own. */
static inline bool vyre__is_private(const vyre_program *program,
                                    uint32_t buffer) {
  const vyre__hidden *hidden = vyre__hidden_of(program, buffer);
  return hidden && !hidden->table;
}

static inline uint64_t vyre__literal(const vyre__node *node) {
  return (uint64_t)node->b << 32 | node->a;
}

/* Returns true for shared memory that inlining added (reserved[0] is 1). */
static inline bool vyre__is_hidden(const vyre_buffer_decl *buffer) {
  return buffer->reserved[0] != 0;
}

/* Returns true for shared memory. A declaration says so by its kind (SHARED) or
 * by its access (WORKGROUP). */
static inline bool vyre__is_shared(const vyre_buffer_decl *buffer) {
  return buffer->kind == VYRE_MEMORY_SHARED ||
         buffer->access == VYRE_ACCESS_WORKGROUP;
}

/* Returns true for sum_f32 and sum_f64. */
static inline bool vyre__is_sum(unsigned element) {
  return element == VYRE_ELEMENT_SUM_F32 || element == VYRE_ELEMENT_SUM_F64;
}

/* Returns the register type that an element is loaded as. */
vyre_type vyre__element_type(vyre_element element);

/* Returns true for a queue kernel whose clauses were in version 1 of the
 * binary form: queue(T) alone. */
static inline bool vyre__queue_is_plain(const vyre__queue_clauses *queue) {
  return queue->kind == VYRE__QUEUE_ORDERED && queue->pushes == 0 &&
         queue->bound_kind == VYRE__BOUND_NONE && queue->bound == 0 &&
         !queue->by && !queue->pull && !queue->part &&
         queue->field_count == 1 && !queue->fields[0].name[0];
}

/* Returns true for one body of a queue kernel, whose analyses and backends need
 * the inlined program (analyze/queue.h). */
static inline bool vyre__is_queue_part(const vyre_program *program) {
  return program->queue && program->queue->part;
}

/* Returns the type that an element of a buffer is loaded as: a scalar or an
 * aggregate. */
static inline unsigned vyre__buffer_type(const vyre_buffer_decl *buffer) {
  return buffer->type ? (unsigned)buffer->type
                      : (unsigned)vyre__element_type(buffer->element);
}

/* Entries of an AT for each dimension: index, extent, stride. */
enum { VYRE__AT_STEP = 3 };

/* Returns the type of the value of a field. */
static inline unsigned vyre__field_type(const vyre_struct_field *field) {
  return field->type ? (unsigned)field->type
                     : (unsigned)vyre__element_type(field->element);
}

/* Returns the struct with a type number, or NULL. */
static inline const vyre__struct *vyre__program_struct(
    const vyre_program *program, unsigned type) {
  const unsigned index = type - VYRE__FIRST_STRUCT;
  return vyre__is_struct(type) && index < program->struct_count
             ? program->structs[index]
             : 0;
}

/* Access to a scalar in the `aux` of a LOAD, STORE or atomic of an inlined
 * program: the element plus 1, and above it the byte in the access unit. The
 * index of such an access counts units (vyre__struct.width, or the size of the
 * scalar). */
enum { VYRE__AUX_ELEMENT = 63, VYRE__AUX_BYTE_SHIFT = 6 };

/* Returns the element that a LOAD, STORE or atomic accesses. In an inlined
 * program it may be a scalar of an aggregate element. */
static inline vyre_element vyre__accessed_element(const vyre_program *program,
                                                  const vyre__node *node) {
  return node->aux ? (vyre_element)((node->aux & VYRE__AUX_ELEMENT) - 1)
                   : program->buffers[node->a].element;
}

/* Returns the bytes from one index to the next of an access to a scalar. */
static inline uint32_t vyre__access_unit(const vyre_program *program,
                                         const vyre__node *node) {
  const vyre__struct *s =
      vyre__program_struct(program, program->buffers[node->a].type);
  return s ? s->width
           : vyre_element_size(vyre__accessed_element(program, node));
}

/* Limit for nested statements and expressions together. Parsers and builders
 * enforce it, so that all other code may recurse. */
enum { VYRE__MAX_DEPTH = 200 };

/* Returns true for a program with arrays, tables, memory parameters, or
 * functions with no or several results. */
bool vyre__program_has_memory(const vyre_program *program);
/* Returns true for a program with arrays or tables that have several indices. */
bool vyre__program_has_shapes(const vyre_program *program);

/* Hashes the canonical bytes of a program. Names of locals, functions and
 * source locations are left out. The result is the fingerprint. */
void vyre__program_hash(const vyre_program *program, vyre_hash128 *out);

#endif
