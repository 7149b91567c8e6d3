/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* IR builder: checked construction of programs, shared by the parser, the
 * public builder and the binary reader.
 *
 * An IR builder holds the functions and kernels of one file and their nodes
 * in growing arrays. Every vyre__ir_build_* function appends one checked node
 * and returns its id. An error is reported once, through the reporter, and
 * returns id 0. An operand of 0 returns 0 without a report, so that errors do
 * not cascade. Lack of memory sets out_of_memory and is not reported.
 *
 *     vyre__ir_builder m;
 *     vyre__ir_builder_init(&m, allocator, reporter);
 *     uint32_t f = vyre__kernel_begin(&m, &kernel);
 *     vyre__mark body = vyre__block_begin(&m);
 *     m.place = ..., m.length = ...; // location of the next node
 *     vyre__id i = vyre__ir_build_axis(&m, VYRE__OP_GLOBAL_ID, 0);
 *     uint32_t local;
 *     vyre__statement(&m, vyre__ir_build_let(&m, "i", 1, VYRE_TYPE_VOID, false,
 *                                            i, &local));
 *     ...
 *     vyre__function_end(&m, vyre__block_end(&m, body));
 *     if (!m.error_count)
 *       vyre__canonicalize(&m, f, &kernel, allocator, &program, st);
 *     vyre__ir_builder_build(&m);
 *
 * Literals without a suffix, and expressions of them, first have one of two
 * types that no program contains: VYRE__TYPE_INT and VYRE__TYPE_FLOAT. Using
 * such a value resolves its type; few callers need vyre__resolve_type
 * themselves.
 *
 * Each node has one parent: the result is a tree. */
#ifndef VYRE_IR_IR_BUILDER_H
#define VYRE_IR_IR_BUILDER_H

#include "vyre/binding.h" /* VYRE_NO_INDEX */
#include "vyre/status.h"

#include "base/attributes.h"
#include "base/memory.h"
#include "ir/ir.h"

enum {
  /* integer literal; may become any integer type */
  VYRE__TYPE_INT = VYRE_TYPE_COUNT,
  VYRE__TYPE_FLOAT, /* float literal; may become f32 or f64 */
};

/* Returns "u32" and so on, "an integer literal" for VYRE__TYPE_INT, "?" for
 * an unknown type. */
const char *vyre__type_name(unsigned type);
unsigned vyre__type_bits(unsigned type); /* bool 1; untyped 0 */

/* True for untyped integers too. */
static inline bool vyre__type_is_integer(unsigned type) {
  return (type >= VYRE_TYPE_U32 && type <= VYRE_TYPE_I64) ||
         type == VYRE__TYPE_INT;
}

/* True for untyped floats too. */
static inline bool vyre__type_is_float(unsigned type) {
  return type == VYRE_TYPE_F32 || type == VYRE_TYPE_F64 ||
         type == VYRE__TYPE_FLOAT;
}

static inline bool vyre__type_is_untyped(unsigned type) {
  return type == VYRE__TYPE_INT || type == VYRE__TYPE_FLOAT;
}

/* True for i32, i64, f32, f64 and their untyped forms. */
static inline bool vyre__type_is_signed(unsigned type) {
  return type == VYRE_TYPE_I32 || type == VYRE_TYPE_I64 ||
         type == VYRE__TYPE_INT || vyre__type_is_float(type);
}

/* Callback for errors. @p rule is "V060" and so on, in static storage, or ""
 * for an error that text cannot contain. Texts live only during the call. @p
 * other_text is NULL without a second location. */
typedef struct vyre__reporter {
  void (*report)(void *self, const char *rule, vyre__source_loc place,
                 uint32_t length, const char *message, const char *fix,
                 vyre__source_loc other, const char *other_text);
  void *self;
} vyre__reporter;

typedef struct vyre__source_span {
  vyre__source_loc place;
  uint32_t length;
} vyre__source_span;

typedef struct vyre__ir_local {
  const char *name;       /* in the builder's arena; "" without a name */
  vyre__source_span span; /* of the declaration */
  /* VOID: its value had an error; uses return 0 without a report */
  uint8_t type;
  bool is_mutable : 1;
  bool is_parameter : 1;
  bool is_loop : 1;
  bool is_open : 1;    /* its block is still open */
  bool is_memory : 1;  /* as in vyre__local, like the next three */
  bool is_default : 1; /* literals without a type gave it its type */
  uint8_t access, element;
  uint32_t length;
  vyre__shape shape;
  uint32_t program_number,
      program_index; /* canonicalisation: number of the program, index in it */
} vyre__ir_local;

typedef struct vyre__ir_parameter {
  const char *name; /* as above */
  vyre__source_span span;
  uint8_t type;
  bool is_mutable; /* as in vyre__local, like the rest */
  bool is_memory;
  uint8_t access, element;
  uint32_t length;
  vyre__shape shape;
} vyre__ir_parameter;

typedef struct vyre__ir_table {
  const char *name; /* as above */
  uint8_t type;
  uint32_t length;
  vyre__shape shape;
  size_t first;                           /* of its values */
  uint32_t program_number, program_index; /* canonicalisation, as above */
} vyre__ir_table;

typedef struct vyre__ir_function {
  const char *name; /* in the builder's arena */
  vyre__source_span span;
  uint8_t result;
  uint8_t result_count; /* of several results */
  uint8_t results[VYRE__MAX_RESULTS];
  bool is_kernel;
  uint32_t first_parameter, parameter_count; /* range of `parameters` */
  uint32_t first_local, local_count;         /* range of `locals` */
  uint32_t first_node, end_node;             /* nodes built for its body */
  vyre__id body;                             /* 0: not built, or has errors */
  uint32_t program_number,
      program_index; /* canonicalisation: number of the program, index in it */
} vyre__ir_function;

/* Header of a kernel. Borrowed: must live until vyre__canonicalize returns.
 * Names are terminated; names of @p buffers must be identifiers. */
typedef struct vyre__kernel {
  const char *name;
  const char *file; /* or "" */
  const vyre_buffer_decl *buffers;
  const vyre__source_loc *buffer_places; /* per buffer; NULL without a source */
  uint32_t buffer_count;
  uint32_t workgroup[3];
  uint32_t over; /* VYRE_NO_INDEX if absent */
  const vyre__queue_clauses
      *queue;          /* NULL unless it is a queue kernel; by and pull
                               are functions of the IR builder */
  bool has_good_names; /* names were tokens and need no check */
  /* the last buffers are hidden (ir.h); only in an inlined program */
  const vyre__hidden *hidden;
  uint32_t hidden_count;
  const vyre__source_files *files; /* of line numbers; NULL without imports */
} vyre__kernel;

/* Innermost open switch. A `break` at its loop depth leaves it: it sets the
 * local `left`, and the statements that follow are skipped. */
typedef struct vyre__break_target {
  bool is_open;
  uint32_t left; /* a local */
  uint32_t loop_depth;
  uint32_t break_count; /* assignments to `left` */
} vyre__break_target;

/* IR builder. Fields may be read; only `place` and `length` may be written. */
typedef struct vyre__ir_builder {
  vyre__source_loc place; /* source location of the nodes built next */
  uint32_t length;        /* its length in bytes, for carets */

  vyre_allocator allocator;
  vyre__reporter reporter;
  bool out_of_memory;
  bool has_nested_calls; /* a function other than a kernel contains a call */
  size_t error_count;    /* reports so far */

  /* [0] is unused; during construction `reserved` is the height */
  vyre__node *nodes;
  vyre__source_span *spans; /* per node */
  size_t node_count, node_capacity, span_capacity;
  uint32_t *lists;
  size_t list_count, list_capacity;
  char *texts;
  size_t text_count, text_capacity;
  vyre__ir_function *functions;
  size_t function_count, function_capacity;
  vyre__ir_parameter *parameters; /* of all functions */
  size_t parameter_count, parameter_capacity;
  vyre__ir_local *locals; /* of all functions, one range each */
  size_t local_count, local_capacity;
  vyre__ir_table *tables;
  size_t table_count, table_capacity;
  uint64_t *table_values; /* of all tables */
  size_t table_value_count, table_value_capacity;
  vyre__struct **structs; /* by type number */
  size_t struct_count, struct_capacity;
  vyre__id *stack; /* lists under construction */
  size_t stack_count, stack_capacity;
  vyre_arena names;

  uint32_t function;          /* function whose body is being built */
  const vyre__kernel *kernel; /* NULL unless that function is a kernel */
  bool in_pull, in_by;        /* that function is a further body of a kernel */
  uint32_t loop_depth;
  /* Results of the last call with several results that no statement has used
   * yet, and uses of results that no statement has checked. */
  uint32_t results_of, results_used, results_left, results_open;
  vyre_buffer_decl memory; /* last local or table that vyre__buffer_at gave */
  vyre__break_target switch_; /* innermost open switch */
  size_t errors_before;       /* error_count at the start of the function */
  uint32_t program_count;     /* number of canonicalised programs */
  struct vyre__canonicalizer
      *canonicalizer; /* memory of vyre__canonicalize, kept for the next call */
} vyre__ir_builder;

void vyre__ir_builder_init(vyre__ir_builder *m, vyre_allocator allocator,
                           vyre__reporter reporter);
/* frees everything; accepts a zeroed builder */
void vyre__ir_builder_build(vyre__ir_builder *m);

/* Reports an error at m->place, or at the location of a node. Counts it and
 * returns 0. Messages have up to 511 bytes. @p fix may be a temporary. */
vyre__id vyre__diagnose(vyre__ir_builder *m, const char *rule, const char *fix,
                        const char *format, ...) VYRE__PRINTF(4, 5);
vyre__id vyre__diagnose_at(vyre__ir_builder *m, vyre__id node, const char *rule,
                           const char *fix, const char *format, ...)
    VYRE__PRINTF(5, 6);
/* Reports an error at any span, with a second location unless other_text is
 * NULL. */
vyre__id vyre__diagnose_span(vyre__ir_builder *m, vyre__source_span span,
                             const char *rule, vyre__source_span other,
                             const char *other_text, const char *fix,
                             const char *format, ...) VYRE__PRINTF(7, 8);

static inline unsigned vyre__type_of(const vyre__ir_builder *m, vyre__id id) {
  return id ? m->nodes[id].type : VYRE_TYPE_VOID;
}

/* --- functions and kernels -------------------------------------------------
 * First declare all functions, because calls need their types; then build the
 * bodies one at a time. vyre__kernel_begin declares the kernel. */

/* Declares a function. Its parameters follow, one call each. Returns the
 * index of the function, or VYRE_NO_INDEX if memory is exhausted. */
uint32_t vyre__function_declare(vyre__ir_builder *m, const char *name,
                                size_t length, vyre_type result);
void vyre__function_parameter(vyre__ir_builder *m, uint32_t function,
                              const char *name, size_t length, vyre_type type);

/* Adds a parameter that is an array or memory; the name of @p spec is ignored.
 */
void vyre__function_memory(vyre__ir_builder *m, uint32_t function,
                           const char *name, size_t length,
                           const vyre__local *spec);
/* Sets the types of several results. */
void vyre__function_results(vyre__ir_builder *m, uint32_t function,
                            const uint8_t *types, uint32_t count);
/* Begins a body. Parameters are locals 0, 1 and so on. */
void vyre__function_begin(vyre__ir_builder *m, uint32_t function);
/* Declares and begins a kernel. @p kernel must live until function_end. */
uint32_t vyre__kernel_begin(vyre__ir_builder *m, const vyre__kernel *kernel);
/* Begins a further body of a queue kernel: its `by` or its `pull`. Returns its
 * index, which the caller stores in kernel->queue. */
uint32_t vyre__kernel_part_begin(vyre__ir_builder *m,
                                 const vyre__kernel *kernel, bool is_pull);
/* Ends the current body and checks that all paths return (V077). */
void vyre__function_end(vyre__ir_builder *m, vyre__id body);

/* State of an IR builder before a kernel. Once the kernel is canonicalised,
 * rewinding frees its nodes, so that the next kernel reuses warm memory.
 * Nothing is dropped if functions were declared since. */
typedef struct vyre__ir_builder_mark {
  size_t nodes, lists, texts, locals, functions;
  vyre__arena_mark names;
} vyre__ir_builder_mark;

/* Call directly after vyre__kernel_begin. */
vyre__ir_builder_mark vyre__ir_builder_here(const vyre__ir_builder *m);
void vyre__ir_builder_drop(vyre__ir_builder *m, uint32_t function,
                           vyre__ir_builder_mark mark);

/* Returns a function that calls itself, directly or through others, or
 * VYRE_NO_INDEX. Stores a call of the cycle in *call unless that is NULL.
 * Call it after all bodies. vyre__canonicalize rejects recursion too, but
 * cannot name a location. */
uint32_t vyre__find_recursion(vyre__ir_builder *m, vyre__id *call);

/* --- values ----------------------------------------------------------------*/

/* Builds a literal of a type. A NaN becomes the canonical NaN; bits above the
 * type are dropped. */
vyre__id vyre__ir_build_literal(vyre__ir_builder *m, vyre_type type,
                                uint64_t bits);
/* Builds an integer as written, with a minus sign directly before it. @p type
 * is that of the suffix, or VYRE_TYPE_VOID for an untyped literal. (V064) */
vyre__id vyre__ir_build_integer(vyre__ir_builder *m, uint64_t magnitude,
                                bool negative, vyre_type type);
/* Builds the value of a const that adapts to its use like a literal. */
vyre__id vyre__ir_build_const_integer(vyre__ir_builder *m, int64_t value);
/* Builds the 1 of ++ and --. */
vyre__id vyre__ir_build_step(vyre__ir_builder *m);
/* Builds a float as written, rounded once to each type. @p type is F32, F64,
 * or VOID for an untyped literal. A value that rounds to infinity is an
 * overflow (V064); use vyre__ir_build_literal for `inf`. */
vyre__id vyre__ir_build_float(vyre__ir_builder *m, double as_f64, float as_f32,
                              vyre_type type);

vyre__id vyre__ir_build_local(vyre__ir_builder *m, uint32_t local);
/* Builds a call. Its arguments are the values pushed (vyre__push) since @p
 * mark. */
vyre__id vyre__ir_build_call(vyre__ir_builder *m, uint32_t function,
                             uint32_t mark);
vyre__id vyre__ir_build_load(vyre__ir_builder *m, uint32_t buffer,
                             vyre__id index);
/* An element as the place of an assignment: it need not be readable. */
vyre__id vyre__ir_build_element(vyre__ir_builder *m, uint32_t buffer,
                                vyre__id index);
vyre__id vyre__ir_build_len(vyre__ir_builder *m, uint32_t buffer);
/* GLOBAL_ID LOCAL_ID WORKGROUP_ID WORKGROUP_SIZE GRID_SIZE; axis 0, 1, 2. */
vyre__id vyre__ir_build_axis(vyre__ir_builder *m, vyre__op op, unsigned axis);
/* Builds a field of the item of a queue kernel. */
vyre__id vyre__ir_build_item(vyre__ir_builder *m, uint32_t field);
/* WINDOW, ITEM_INDEX, LANE, SUBGROUP_ID */
vyre__id vyre__ir_build_position(vyre__ir_builder *m, vyre__op op);
/* Builds the test whether a key is in the window; only in `pull`. */
vyre__id vyre__ir_build_in_window(vyre__ir_builder *m, vyre__id key);

/* NEG .. POPCOUNT and UNIFORM. The minus of a literal becomes part of it. */
vyre__id vyre__ir_build_unary(vyre__ir_builder *m, vyre__op op, vyre__id a);
vyre__id vyre__ir_build_cast(vyre__ir_builder *m, vyre_type type, vyre__id a);
vyre__id vyre__ir_build_bitcast(vyre__ir_builder *m, vyre_type type,
                                vyre__id a);
/* ADD .. MAX */
vyre__id vyre__ir_build_binary(vyre__ir_builder *m, vyre__op op, vyre__id a,
                               vyre__id b);
/* FMA, SELECT and COND (condition, then, else) */
vyre__id vyre__ir_build_ternary(vyre__ir_builder *m, vyre__op op, vyre__id a,
                                vyre__id b, vyre__id c);
/* Builds insert(x, y, from, count). */
vyre__id vyre__ir_build_insert(vyre__ir_builder *m, vyre__id x, vyre__id y,
                               vyre__id from, vyre__id count);
/* Atomics on one scalar of an element, in an inlined program. @p desired is 0
 * unless it is a compare-exchange. */
vyre__id vyre__ir_build_scalar_atomic(vyre__ir_builder *m, vyre__op op,
                                      uint32_t buffer, vyre__id at,
                                      vyre_element element, vyre__id value,
                                      vyre__id desired);
/* Builds a vector of type @p type. Its components are the values pushed since
 * @p mark: one scalar for all, one vector to convert, or scalars and vectors
 * with as many components together. */
vyre__id vyre__ir_build_make(vyre__ir_builder *m, unsigned type, uint32_t mark);
/* Builds v.x (a scalar) or v.zyx from the numbers of 1 to 4 components. */
vyre__id vyre__ir_build_part(vyre__ir_builder *m, vyre__id a,
                             const uint8_t *components, unsigned count);
/* v[index] */
vyre__id vyre__ir_build_component(vyre__ir_builder *m, vyre__id a,
                                  vyre__id index);
/* Assigns a part of a var or of an element: a LOCAL or LOAD under PART and
 * COMPONENT. */
vyre__id vyre__ir_build_set_place(vyre__ir_builder *m, vyre__id place,
                                  vyre__id value);
/* atomic_merge(s[i], t[j]); @p from is the load t[j]. */
vyre__id vyre__ir_build_merge(vyre__ir_builder *m, uint32_t buffer,
                              vyre__id index, vyre__id from);
/* --- structs (ir_builder_struct.c) */

/* Adds a struct and lays it out. Only names, elements and types of @p fields
 * are read. Returns its type number, or VOID after a report. Call it before
 * bodies use it. */
unsigned vyre__struct_add(vyre__ir_builder *m, const char *name,
                          const vyre_struct_field *fields, size_t count);
/* Adds the structs of a program with the same numbers. */
bool vyre__structs_adopt(vyre__ir_builder *m,
                         const vyre__struct *const *structs, size_t count);
/* Returns the struct with a type number, or NULL. */
const vyre__struct *vyre__struct_at(const vyre__ir_builder *m, unsigned type);
/* Builds a value of a struct from the values of its fields since @p mark. */
vyre__id vyre__ir_build_struct(vyre__ir_builder *m, unsigned type,
                               uint32_t mark);
vyre__id vyre__ir_build_field(vyre__ir_builder *m, vyre__id a, uint32_t field);

/* Builds the indices of an element of a buffer with dimensions from the values
 * since @p mark. It is the index of an access. */
vyre__id vyre__ir_build_indices(vyre__ir_builder *m, uint32_t mark);
/* Builds len(buffer, dimension). */
vyre__id vyre__ir_build_dimension(vyre__ir_builder *m, uint32_t buffer,
                                  unsigned dimension);
/* Index of an access in an inlined program (AT in ir/ops.def); its operands are
 * the values pushed since @p mark. */
vyre__id vyre__ir_build_at(vyre__ir_builder *m, uint32_t mark);
/* Accesses to one scalar of an aggregate element, in an inlined program: the
 * index is an AT, and @p element the scalar in memory, with its byte in the
 * access unit (VYRE__AUX_BYTE_SHIFT in ir.h). */
vyre__id vyre__ir_build_scalar_load(vyre__ir_builder *m, uint32_t buffer,
                                    vyre__id at, unsigned element);
vyre__id vyre__ir_build_scalar_store(vyre__ir_builder *m, uint32_t buffer,
                                     vyre__id at, unsigned element,
                                     vyre__id value);
/* ATOMIC_ADD .. ATOMIC_EXCHANGE */
vyre__id vyre__ir_build_atomic(vyre__ir_builder *m, vyre__op op,
                               uint32_t buffer, vyre__id index, vyre__id value);
vyre__id vyre__ir_build_atomic_cas(vyre__ir_builder *m, uint32_t buffer,
                                   vyre__id index, vyre__id expected,
                                   vyre__id desired);
/* Builds a push of the values since @p mark, one for each field of the item. */
vyre__id vyre__ir_build_push(vyre__ir_builder *m, uint32_t mark);
/* Builds a push of a u32, the value of a `by` body. */
vyre__id vyre__ir_build_priority(vyre__ir_builder *m, vyre__id value);

/* Gives untyped literals a type: @p type, or with VYRE_TYPE_VOID the default
 * (i32, f32). Typed values stay unchanged. Returns id, or 0 after an error
 * (V062, V063, V064). */
vyre__id vyre__resolve_literal_type(vyre__ir_builder *m, vyre__id id,
                                    vyre_type type);
static inline vyre__id vyre__resolve_type(vyre__ir_builder *m, vyre__id id,
                                          vyre_type type) {
  /* the common case */
  if (!vyre__type_is_untyped(vyre__type_of(m, id))) return id;
  return vyre__resolve_literal_type(m, id, type);
}
/* Resolves an untyped index to u32. */
vyre__id vyre__resolve_index_type(vyre__ir_builder *m, vyre__id id);
/* Resolves the type of a value and reports @p rule unless it is @p type. @p
 * what begins the message: "the initializer of 'x'". */
vyre__id vyre__expect(vyre__ir_builder *m, vyre__id id, vyre_type type,
                      const char *rule, const char *subject);

/* Evaluates a literal, or an expression of integer literals whose value is the
 * same in i32 and in i64. Returns false for other values. Does not change the
 * expression and reports nothing. */
bool vyre__const_integer(const vyre__ir_builder *m, vyre__id id,
                         uint64_t *bits);
/* Evaluates a constant expression; an untyped one gets its default type
 * first. Returns false if it is not constant (reported as V090) or id is 0. */
bool vyre__const_eval(vyre__ir_builder *m, vyre__id id, uint64_t *bits);

/* --- statements ------------------------------------------------------------
 * To build a block, begin it, pass each statement to vyre__statement (which
 * ignores 0), and end it. Locals of the block go out of scope at its end. */

typedef struct vyre__mark {
  uint32_t stack, local;
} vyre__mark;

vyre__mark vyre__block_begin(vyre__ir_builder *m);
void vyre__statement(vyre__ir_builder *m, vyre__id statement);
vyre__id vyre__block_end(vyre__ir_builder *m, vyre__mark mark);

/* Stack for arguments. Pushing 0 marks the list as wrong; using the list
 * returns 0 then. */
uint32_t vyre__stack_mark(const vyre__ir_builder *m);
void vyre__push(vyre__ir_builder *m, vyre__id id);
/* Drops all entries pushed since @p mark. */
void vyre__stack_drop(vyre__ir_builder *m, uint32_t mark);

/* Declares a local, visible from here on. With @p type VOID it has the type
 * of the value. The local exists even if the value has an error. */
vyre__id vyre__ir_build_let(vyre__ir_builder *m, const char *name,
                            size_t length, vyre_type type, bool is_mutable,
                            vyre__id value, uint32_t *local);
vyre__id vyre__ir_build_assign(vyre__ir_builder *m, uint32_t local,
                               vyre__id value);
vyre__id vyre__ir_build_store(vyre__ir_builder *m, uint32_t buffer,
                              vyre__id index, vyre__id value);
/* A body that is not a BLOCK is wrapped in one; an empty else is dropped. @p
 * otherwise is 0 without an else. */
vyre__id vyre__ir_build_if(vyre__ir_builder *m, vyre__id condition,
                           vyre__id then, vyre__id otherwise);

/* Begins a for loop: resolves first and bound to one integer type (@p type,
 * or any if VOID), makes the step a literal, declares the variable and opens
 * the loop. Always pair it with vyre__for_end, even after an error. */
typedef struct vyre__for {
  vyre__id first, bound, step;
  uint32_t local;
  vyre__loop kind;
  vyre__mark mark;
  vyre__source_span span;
} vyre__for;

void vyre__for_begin(vyre__ir_builder *m, vyre__for *loop, const char *name,
                     size_t length, vyre_type type, vyre__loop kind,
                     vyre__id first, vyre__id bound, vyre__id step);
vyre__id vyre__for_end(vyre__ir_builder *m, const vyre__for *loop,
                       vyre__id body);

/* A while loop: build the condition, begin, build the body, end with both. */
void vyre__while_begin(vyre__ir_builder *m);
vyre__id vyre__while_end(vyre__ir_builder *m, vyre__id condition,
                         vyre__id body);

/* do loops, switches and geometric for loops become the statements above
 * (ir_builder_control.c). Always pair begin and end, even after an error. */

/* A do loop: begin, build the body, build the condition, end with both. */
typedef struct vyre__do {
  vyre__mark mark;
  vyre__id declaration; /* of the local `first` */
  uint32_t first;       /* true in the first iteration */
} vyre__do;
void vyre__do_begin(vyre__ir_builder *m, vyre__do *loop);
vyre__id vyre__do_end(vyre__ir_builder *m, const vyre__do *loop, vyre__id body,
                      vyre__id condition);

/* A for loop whose variable is multiplied, divided or shifted: @p op is MUL,
 * DIV, SHL or SHR. MUL and SHL count up (@p kind LT or LE), DIV and SHR down.
 * Otherwise like vyre__for_begin. */
typedef struct vyre__geometric {
  vyre__mark outer, inner;
  vyre__id condition; /* 0 after an error */
  uint32_t local;     /* the variable */
  vyre_type type;
  vyre__loop kind;
  vyre__op op;
  bool is_growing;
  bool is_bound_known; /* `bound` is a number */
  bool is_positive;    /* the variable is at least 1 in each iteration */
  uint64_t step;       /* as written */
  uint64_t bound;
  uint32_t bound_local;
  uint32_t variable; /* local that holds the next value */
  uint32_t limit;    /* local; VYRE_NO_INDEX: the next value always fits */
  uint32_t more;     /* local; VYRE_NO_INDEX: the bound alone ends the loop */
} vyre__geometric;
void vyre__geometric_begin(vyre__ir_builder *m, vyre__geometric *loop,
                           const char *name, size_t length, vyre_type type,
                           vyre__loop kind, vyre__op op, vyre__id first,
                           vyre__id bound, vyre__id step);
vyre__id vyre__geometric_end(vyre__ir_builder *m, const vyre__geometric *loop,
                             vyre__id body);

/* A switch: begin with the value. For each arm: its labels, then arm_begin,
 * its statements, arm_end. An arm with a default label runs if no label equals
 * the value. */
typedef struct vyre__switch {
  vyre__mark mark;
  vyre__break_target outer;
  vyre__source_span span;
  vyre__id value, left; /* declarations of two locals */
  vyre_type type;       /* of the value; VOID: it had an error */
  uint32_t local;       /* holds the value */
  uint32_t first_label; /* of the current arm, on the stack */
  uint32_t arm_count;
  uint32_t label_count; /* of all arms */
  bool is_default;      /* of the current arm */
  bool has_default;
  vyre__id default_body;
  vyre__mark arm;
} vyre__switch;
void vyre__switch_begin(vyre__ir_builder *m, vyre__switch *s, vyre__id value);
/* Reports a label of another type (V092), a second equal label (V093). */
void vyre__switch_label(vyre__ir_builder *m, vyre__switch *s, vyre__id label);
void vyre__switch_default(vyre__ir_builder *m, vyre__switch *s);
void vyre__switch_arm_begin(vyre__ir_builder *m, vyre__switch *s);
/* Returns true if the last statement of the open arm is a break, continue or
 * return, or ends with one. */
bool vyre__switch_arm_leaves(const vyre__ir_builder *m, const vyre__switch *s);
void vyre__switch_arm_end(vyre__ir_builder *m, vyre__switch *s);
vyre__id vyre__switch_end(vyre__ir_builder *m, vyre__switch *s);

/* BREAK CONTINUE BARRIER GRID_BARRIER */
vyre__id vyre__ir_build_simple(vyre__ir_builder *m, vyre__op op);
/* @p has_value with @p value 0: the value had an error. */
vyre__id vyre__ir_build_return(vyre__ir_builder *m, bool has_value,
                               vyre__id value);
/* Builds a statement from an atomic or push whose result is unused. */
vyre__id vyre__ir_build_eval(vyre__ir_builder *m, vyre__id value);
/* Build a text argument of print (escapes resolved), and a print of the
 * pushed values. */
vyre__id vyre__ir_build_text(vyre__ir_builder *m, const char *text,
                             size_t length);
vyre__id vyre__ir_build_print(vyre__ir_builder *m, uint32_t mark);

/* --- memory (ir_builder_memory.c) ------------------------------------------*/

/* Returns a buffer of the kernel, or an array, memory parameter or table
 * (VYRE__MEMORY_* in ir.h); NULL after a report. The declaration of the last
 * three is valid until the next call. */
const vyre_buffer_decl *vyre__buffer_at(vyre__ir_builder *m, uint32_t buffer);
/* Adds a table and returns its number, or VYRE_NO_INDEX if memory is
 * exhausted. */
uint32_t vyre__table_add(vyre__ir_builder *m, const char *name, size_t length,
                         vyre_type type, const uint64_t *values, uint32_t count,
                         vyre__shape shape);
/* Builds the elements of an array from the values since @p mark. */
vyre__id vyre__ir_build_array_value(vyre__ir_builder *m, uint32_t mark);
/* Builds whole memory: the right side of an assignment, or an argument. */
vyre__id vyre__ir_build_memory(vyre__ir_builder *m, uint32_t memory);
/* Declares an array. @p value is an ARRAY, a MEMORY, or 0: zeros. A length of 0
 * is that of the value. */
vyre__id vyre__ir_build_array(vyre__ir_builder *m, const char *name,
                              size_t name_length, vyre_type type,
                              uint32_t length, vyre__shape shape,
                              bool is_mutable, vyre__id value, uint32_t *local);
/* Calls a function with several results. Exactly one statement for each result
 * follows, which stores it (vyre__ir_build_result), or one return of all. */
vyre__id vyre__ir_build_results(vyre__ir_builder *m, vyre__id call);
vyre__id vyre__ir_build_result(vyre__ir_builder *m, uint32_t index);
/* Returns the values since @p mark. */
vyre__id vyre__ir_build_return_results(vyre__ir_builder *m, uint32_t mark);

/* Appends a node of an inlined program with new children: operands in @p node,
 * or the values since @p mark for its list. Types are not checked again. */
vyre__id vyre__ir_copy_node(vyre__ir_builder *m, vyre__node node,
                            uint32_t mark);

/* --- names -----------------------------------------------------------------*/

/* Returns true for a letter or _, followed by letters, digits and _, at most
 * 255 bytes, that is not a word of the language (vyre__is_reserved). */
bool vyre__name_is_identifier(const char *name, size_t length);

/* --- the result ------------------------------------------------------------*/

/* Creates the immutable program of a kernel in canonical order, with only the
 * functions that it needs. Does not change the builder; several kernels can
 * be created from one. Errors: VYRE_INVALID_PROGRAM after errors, for
 * recursion, or for an invalid header; VYRE_OUT_OF_MEMORY. */
VYRE_NODISCARD vyre_code vyre__canonicalize(
    vyre__ir_builder *m, uint32_t function, const vyre__kernel *kernel,
    vyre_allocator allocator, vyre_program **out, vyre_status *st);

/* Checks the header of a kernel: text could express it, kinds and accesses
 * match, counts are in range. Fails with VYRE_INVALID_PROGRAM. */
VYRE_NODISCARD vyre_code vyre__kernel_check(const vyre__kernel *kernel,
                                            vyre_status *st);

#endif
