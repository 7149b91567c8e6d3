/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Making programs: what the parser, the builder and the binary reader share.
 *
 * A maker holds everything of one file: functions, kernels, and their nodes in
 * growing arrays. Every vyre__make_* appends one checked node and returns its
 * id. A mistake is reported once, through the reporter, and gives id 0; an
 * operand of 0 gives 0 without another report, so that errors do not cascade.
 * Running out of memory is remembered (out_of_memory), not reported.
 *
 *     vyre__ir_builder m;
 *     vyre__ir_builder_init(&m, allocator, reporter);
 *     uint32_t f = vyre__kernel_begin(&m, &kernel);
 *     vyre__mark body = vyre__block_begin(&m);
 *     m.place = ..., m.length = ...;            // of what is made next
 *     vyre__id i = vyre__ir_build_axis(&m, VYRE__OP_GLOBAL_ID, 0);
 *     uint32_t local;
 *     vyre__statement(&m, vyre__ir_build_let(&m, "i", 1, VYRE_TYPE_VOID, false, i,
 *                                        &local));
 *     ...
 *     vyre__function_end(&m, vyre__block_end(&m, body));
 *     if (!m.error_count) vyre__canonicalize(&m, f, &kernel, allocator, &program, st);
 *     vyre__ir_builder_build(&m);
 *
 * Literals without a suffix, and trees of them, have one of two types that no
 * program has, VYRE__TYPE_INT and VYRE__TYPE_FLOAT, until something settles
 * them; whoever takes a value does that, so only odd places need vyre__resolve_type.
 *
 * A node is used once: the result is a tree. */
#ifndef VYRE_IR_IR_BUILDER_H
#define VYRE_IR_IR_BUILDER_H

#include "vyre/binding.h" /* VYRE_NO_INDEX */
#include "vyre/status.h"

#include "base/attributes.h"
#include "base/memory.h"
#include "ir/ir.h"

enum {
  VYRE__TYPE_INT = VYRE_TYPE_COUNT, /* an integer literal that may become any
                                       integer type */
  VYRE__TYPE_FLOAT,                 /* a float literal: f32 or f64 */
};

/* "u32"; "an integer literal" for the two above; "?" for none of them. */
const char *vyre__type_name(unsigned type);
unsigned vyre__type_bits(unsigned type); /* bool 1; untyped 0 */

/* Untyped integers, too. */
static inline bool vyre__type_is_integer(unsigned type) {
  return (type >= VYRE_TYPE_U32 && type <= VYRE_TYPE_I64) ||
         type == VYRE__TYPE_INT;
}

/* Untyped floats, too. */
static inline bool vyre__type_is_float(unsigned type) {
  return type == VYRE_TYPE_F32 || type == VYRE_TYPE_F64 ||
         type == VYRE__TYPE_FLOAT;
}

static inline bool vyre__type_is_untyped(unsigned type) {
  return type == VYRE__TYPE_INT || type == VYRE__TYPE_FLOAT;
}

/* i32 i64 f32 f64, untyped ones too. */
static inline bool vyre__type_is_signed(unsigned type) {
  return type == VYRE_TYPE_I32 || type == VYRE_TYPE_I64 ||
         type == VYRE__TYPE_INT || vyre__type_is_float(type);
}

/* Whom mistakes are told. @p rule is "V060" and so on in static storage, or ""
 * for mistakes that text cannot contain (a builder's, a damaged file's). Texts
 * live for the call only. @p other_text is NULL if there is no other place. */
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
  const char *name;       /* in the maker's arena; "" if it has none */
  vyre__source_span span; /* of the declaration */
  uint8_t type;           /* VOID: its value was wrong; uses give 0 silently */
  bool is_mutable : 1;
  bool is_parameter : 1;
  bool is_loop : 1;
  bool is_open : 1;              /* its block has not ended */
  uint32_t sealed_by, sealed_as; /* seal's: in which program it is which */
} vyre__ir_local;

typedef struct vyre__ir_parameter {
  const char *name; /* as above */
  vyre__source_span span;
  uint8_t type;
} vyre__ir_parameter;

typedef struct vyre__ir_function {
  const char *name; /* in the maker's arena */
  vyre__source_span span;
  uint8_t result;
  bool is_kernel;
  uint32_t first_parameter, parameter_count; /* in maker.parameters */
  uint32_t first_local, local_count; /* in maker.locals, from begin on */
  uint32_t first_node, end_node;     /* all nodes made for its body */
  vyre__id body;                     /* 0: not made, or wrong */
  uint32_t sealed_by, sealed_as;     /* seal's: in which program it is which */
} vyre__ir_function;

/* A kernel's head. Borrowed: must live until it is sealed. Names are terminated
 * and in @p buffers must be identifiers. */
typedef struct vyre__kernel {
  const char *name;
  const char *file; /* or "" */
  const vyre_buffer_decl *buffers;
  const vyre__source_loc
      *buffer_places; /* one a buffer; NULL without a source */
  uint32_t buffer_count;
  uint32_t workgroup[3];
  uint32_t over;       /* VYRE_NO_INDEX if there is none */
  vyre_type item_type; /* VYRE_TYPE_VOID if it is no queue kernel */
  bool has_good_names; /* they were tokens: no need to look at them again */
} vyre__kernel;

/* Arrays are the maker's; read what you like, write only place and length. */
typedef struct vyre__ir_builder {
  vyre__source_loc place; /* of what is made next */
  uint32_t length;        /* bytes of it, for carets */

  vyre_allocator allocator;
  vyre__reporter reporter;
  bool out_of_memory;
  bool has_nested_calls; /* a fn calls another, or itself */
  size_t error_count;    /* reports so far */

  vyre__node *nodes; /* [0] is none; while making, `reserved` is the height */
  vyre__source_span *spans; /* one a node */
  size_t node_count, node_capacity, span_capacity;
  uint32_t *lists;
  size_t list_count, list_capacity;
  char *texts;
  size_t text_count, text_capacity;
  vyre__ir_function *functions;
  size_t function_count, function_capacity;
  vyre__ir_parameter *parameters; /* of all functions */
  size_t parameter_count, parameter_capacity;
  vyre__ir_local *locals; /* of all functions, a run each */
  size_t local_count, local_capacity;
  vyre__id *stack; /* of lists that are being made */
  size_t stack_count, stack_capacity;
  vyre_arena names;

  uint32_t function;          /* the one whose body is being made */
  const vyre__kernel *kernel; /* NULL in a function that is none */
  uint32_t loop_depth;
  size_t errors_before; /* error_count when the function began */
  uint32_t seal_count;  /* numbers the programs that were sealed */
  struct vyre__canonicalizer
      *sealer; /* seal's: room that it keeps for the next one */
} vyre__ir_builder;

void vyre__ir_builder_init(vyre__ir_builder *m, vyre_allocator allocator,
                           vyre__reporter reporter);
void vyre__ir_builder_build(vyre__ir_builder *m); /* a zeroed one is fine */

/* Reports at m->place, or at the place of a node. Counts the error; returns 0.
 * Messages up to 511 bytes. `fix` may be computed, too. */
vyre__id vyre__diagnose(vyre__ir_builder *m, const char *rule, const char *fix,
                        const char *format, ...) VYRE__PRINTF(4, 5);
vyre__id vyre__diagnose_at(vyre__ir_builder *m, vyre__id node, const char *rule,
                           const char *fix, const char *format, ...)
    VYRE__PRINTF(5, 6);
/* The same at any span, with a second place (NULL other_text: none). */
vyre__id vyre__diagnose_span(vyre__ir_builder *m, vyre__source_span span,
                             const char *rule, vyre__source_span other,
                             const char *other_text, const char *fix,
                             const char *format, ...) VYRE__PRINTF(7, 8);

static inline unsigned vyre__type_of(const vyre__ir_builder *m, vyre__id id) {
  return id ? m->nodes[id].type : VYRE_TYPE_VOID;
}

/* --- functions and kernels -------------------------------------------------
 * Declare all fns first (calls need their types), then make the bodies one at a
 * time. A kernel is declared by beginning it. */

/* Parameters are given one by one right after the function. Returns the index
 * of the function, VYRE_NO_INDEX without memory. */
uint32_t vyre__function_declare(vyre__ir_builder *m, const char *name,
                                size_t length, vyre_type result);
void vyre__function_parameter(vyre__ir_builder *m, uint32_t function,
                              const char *name, size_t length, vyre_type type);

/* Begins the body: the parameters are locals 0, 1, ... */
void vyre__function_begin(vyre__ir_builder *m, uint32_t function);
/* As declare and begin. @p kernel must live until function_end. */
uint32_t vyre__kernel_begin(vyre__ir_builder *m, const vyre__kernel *kernel);
/* Ends the body that is being made; checks that all paths return (V077). */
void vyre__function_end(vyre__ir_builder *m, vyre__id body);

/* Where a maker is, to go back to once the kernel that was begun then is sealed:
 * what it was made of is needed no more, and the next kernel finds its memory
 * warm. Functions that were declared since stay, then nothing is dropped. */
typedef struct vyre__ir_builder_mark {
  size_t nodes, lists, texts, locals, functions;
  vyre__arena_mark names;
} vyre__ir_builder_mark;

/* Right behind vyre__kernel_begin. */
vyre__ir_builder_mark vyre__ir_builder_here(const vyre__ir_builder *m);
void vyre__ir_builder_drop(vyre__ir_builder *m, uint32_t function,
                           vyre__ir_builder_mark mark);

/* A function that calls itself, directly or through others, or VYRE_NO_INDEX.
 * *call (may be NULL) is a call in it that leads back. After all bodies. Sealing
 * refuses such a program, but knows no place. */
uint32_t vyre__find_recursion(vyre__ir_builder *m, vyre__id *call);

/* --- values ----------------------------------------------------------------*/

/* A literal of a type; NaNs become the one NaN, bits above the type are
 * dropped. */
vyre__id vyre__ir_build_literal(vyre__ir_builder *m, vyre_type type,
                                uint64_t bits);
/* An integer as written, and its minus sign if there is one directly before it.
 * @p type is the suffix's, or VYRE_TYPE_VOID: no type yet. (V064) */
vyre__id vyre__ir_build_integer(vyre__ir_builder *m, uint64_t magnitude,
                                bool negative, vyre_type type);
/* A float as written, rounded to nearest once to each type; @p type F32, F64, or
 * VOID: no type yet. Infinity as a rounded value is an overflow (V064): `inf` is
 * a vyre__ir_build_literal. */
vyre__id vyre__ir_build_float(vyre__ir_builder *m, double as_f64, float as_f32,
                              vyre_type type);

vyre__id vyre__ir_build_local(vyre__ir_builder *m, uint32_t local);
/* Arguments: what was pushed on the stack (vyre__push) since @p mark. */
vyre__id vyre__ir_build_call(vyre__ir_builder *m, uint32_t function,
                             uint32_t mark);
vyre__id vyre__ir_build_load(vyre__ir_builder *m, uint32_t buffer,
                             vyre__id index);
vyre__id vyre__ir_build_len(vyre__ir_builder *m, uint32_t buffer);
/* GLOBAL_ID LOCAL_ID WORKGROUP_ID WORKGROUP_SIZE GRID_SIZE; axis 0, 1, 2. */
vyre__id vyre__ir_build_axis(vyre__ir_builder *m, vyre__op op, unsigned axis);
vyre__id vyre__ir_build_item(vyre__ir_builder *m);

/* NEG .. POPCOUNT and UNIFORM. The minus of a literal is folded into it. */
vyre__id vyre__ir_build_unary(vyre__ir_builder *m, vyre__op op, vyre__id a);
vyre__id vyre__ir_build_cast(vyre__ir_builder *m, vyre_type type, vyre__id a);
vyre__id vyre__ir_build_bitcast(vyre__ir_builder *m, vyre_type type,
                                vyre__id a);
/* ADD .. MAX */
vyre__id vyre__ir_build_binary(vyre__ir_builder *m, vyre__op op, vyre__id a,
                               vyre__id b);
/* FMA, SELECT (condition, then, else) */
vyre__id vyre__ir_build_ternary(vyre__ir_builder *m, vyre__op op, vyre__id a,
                                vyre__id b, vyre__id c);
/* ATOMIC_ADD .. ATOMIC_EXCHANGE */
vyre__id vyre__ir_build_atomic(vyre__ir_builder *m, vyre__op op,
                               uint32_t buffer, vyre__id index, vyre__id value);
vyre__id vyre__ir_build_atomic_cas(vyre__ir_builder *m, uint32_t buffer,
                                   vyre__id index, vyre__id expected,
                                   vyre__id desired);
vyre__id vyre__ir_build_push(vyre__ir_builder *m, vyre__id value);

/* Gives untyped literals a type: @p type, or with VYRE_TYPE_VOID their default
 * (i32, f32). Leaves typed values alone, whatever their type. Returns id, or 0
 * if that was reported (V062, V063, V064). */
vyre__id vyre__resolve_literal_type(vyre__ir_builder *m, vyre__id id,
                                    vyre_type type);
static inline vyre__id vyre__resolve_type(vyre__ir_builder *m, vyre__id id,
                                          vyre_type type) {
  if (!vyre__type_is_untyped(vyre__type_of(m, id))) return id; /* most are */
  return vyre__resolve_literal_type(m, id, type);
}
/* The same of an index without a type: u32. */
vyre__id vyre__resolve_index_type(vyre__ir_builder *m, vyre__id id);
/* Settles, and reports @p rule unless the value has the type. @p what begins the
 * message: "the initializer of 'x'". */
vyre__id vyre__expect(vyre__ir_builder *m, vyre__id id, vyre_type type,
                      const char *rule, const char *what);

/* The value of a constant expression (settled to its default first). False if it
 * is none: reported as V090; also if id is 0. */
bool vyre__const_eval(vyre__ir_builder *m, vyre__id id, uint64_t *bits);

/* --- statements ------------------------------------------------------------
 * A block: begin it, make a statement, hand it to vyre__statement (0 is
 * ignored), ..., end it. Locals of a block are closed at its end. */

typedef struct vyre__mark {
  uint32_t stack, local;
} vyre__mark;

vyre__mark vyre__block_begin(vyre__ir_builder *m);
void vyre__statement(vyre__ir_builder *m, vyre__id statement);
vyre__id vyre__block_end(vyre__ir_builder *m, vyre__mark mark);

/* The stack by itself, for arguments. Pushing 0 is remembered: the list is
 * wrong then and gives 0. */
uint32_t vyre__stack_mark(const vyre__ir_builder *m);
void vyre__push(vyre__ir_builder *m, vyre__id id);
/* Forgets what was pushed since. */
void vyre__stack_drop(vyre__ir_builder *m, uint32_t mark);

/* Declares a local, visible from now on. @p type VOID: that of the value. The
 * local exists even if the value is wrong. */
vyre__id vyre__ir_build_let(vyre__ir_builder *m, const char *name,
                            size_t length, vyre_type type, bool is_mutable,
                            vyre__id value, uint32_t *local);
vyre__id vyre__ir_build_assign(vyre__ir_builder *m, uint32_t local,
                               vyre__id value);
vyre__id vyre__ir_build_store(vyre__ir_builder *m, uint32_t buffer,
                              vyre__id index, vyre__id value);
/* Bodies that are no BLOCK are wrapped in one; an empty else is dropped.
 * @p otherwise 0: no else. */
vyre__id vyre__ir_build_if(vyre__ir_builder *m, vyre__id condition,
                           vyre__id then, vyre__id otherwise);

/* for: settles first and bound to one integer type (@p type, or VOID), makes the
 * step a literal, declares the variable and opens the loop. Always pair it with
 * vyre__for_end, also if something was 0. */
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

/* while: make the condition, begin, make the body, end with both. */
void vyre__while_begin(vyre__ir_builder *m);
vyre__id vyre__while_end(vyre__ir_builder *m, vyre__id condition,
                         vyre__id body);

/* BREAK CONTINUE BARRIER GRID_BARRIER */
vyre__id vyre__ir_build_simple(vyre__ir_builder *m, vyre__op op);
/* @p value 0 and @p has_value: the value was wrong. */
vyre__id vyre__ir_build_return(vyre__ir_builder *m, bool has_value,
                               vyre__id value);
/* An atomic or push whose value nobody wants. */
vyre__id vyre__ir_build_eval(vyre__ir_builder *m, vyre__id value);
/* A text argument of print (escapes resolved), and print of what was pushed. */
vyre__id vyre__ir_build_text(vyre__ir_builder *m, const char *text,
                             size_t length);
vyre__id vyre__ir_build_print(vyre__ir_builder *m, uint32_t mark);

/* --- names -----------------------------------------------------------------*/

/* A letter or _, then letters, digits and _; at most 255 bytes; and no word of
 * the language (vyre__is_reserved). */
bool vyre__name_is_identifier(const char *name, size_t length);

/* --- the result ------------------------------------------------------------*/

/* The immutable program of a kernel, in canonical order, with what it needs and
 * nothing else. The maker stays as it is; several kernels can be sealed from it.
 * Errors: VYRE_INVALID_PROGRAM if there were mistakes, recursion, or a head that
 * is none; VYRE_OUT_OF_MEMORY. */
VYRE_NODISCARD vyre_code vyre__canonicalize(
    vyre__ir_builder *m, uint32_t function, const vyre__kernel *kernel,
    vyre_allocator allocator, vyre_program **out, vyre_status *st);

/* Whether a kernel's head is one that text could say: names, kinds and accesses
 * that go together, counts. Fails with VYRE_INVALID_PROGRAM. */
VYRE_NODISCARD vyre_code vyre__kernel_check(const vyre__kernel *kernel,
                                            vyre_status *st);

#endif
