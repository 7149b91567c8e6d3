/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by the files that implement analyze/inline/inline.h. */
#ifndef VYRE_ANALYZE_INLINE_INTERNAL_H
#define VYRE_ANALYZE_INLINE_INTERNAL_H

#include "analyze/inline/inline.h"
#include "ir/builder/ir_builder.h"

enum {
  /* copying it may add statements before it: it contains a call, or an
   * aggregate whose parts are used more than once */
  INLINE_CALL = 1,
  INLINE_RETURN = 2,
  /* has or observes an effect: a load, an atomic, a uniform() */
  INLINE_EFFECT = 4,
  INLINE_ORDERED = 8, /* has an effect: an atomic, a push, a uniform() */
  INLINE_GRID = 16,   /* has a grid barrier */
};

/* Function whose statements are being copied. */
typedef struct frame {
  const vyre__function *function;
  vyre__inline_shape shape;
  /* Indices in the result. An aggregate is one local for each of its scalars,
   * one after the other; this is the first. */
  uint32_t *locals; /* of memory: its reference (inline_ref) */
  uint32_t *known;  /* per local: number + 1 of its known value, or 0 */
  uint32_t results[VYRE__MAX_RESULTS];      /* first local of each result */
  uint32_t last_results[VYRE__MAX_RESULTS]; /* of the last call with several */
  uint32_t done;
  uint32_t loops; /* its own loops around the statement */
  vyre__id block; /* block around the statement */
  bool is_kernel;
  bool is_void; /* a kernel whose returns lead to statements after it */
} frame;

/* Element of a buffer. The index is a literal or a local, which `inline_again`
 * copies. */
typedef struct sum_place {
  uint32_t buffer;
  vyre__id index;
} sum_place;

/* Elements that the buffers of a library kernel stand for while it is copied
 * (lang/sumlib.vyre). */
typedef struct sum_splice {
  unsigned element;
  sum_place bins, more;
  uint32_t value; /* a local of u64 */
} sum_splice;

/* Locals of the dimensions of a buffer; VYRE_NO_INDEX: no local. */
typedef struct vyre__inline_dimensions {
  /* elements from one index to the next: a local, or else the factor */
  uint32_t stride[VYRE_MAX_DIMENSIONS], factor[VYRE_MAX_DIMENSIONS];
  uint32_t rows; /* size of a first dimension that is absent */
} vyre__inline_dimensions;

/* Array that became variables. */
typedef struct scalar_array {
  uint32_t first, length; /* in scalars */
  uint8_t type;           /* of a scalar */
  bool is_kept; /* lives across a grid barrier: its index may be unknown */
  uint32_t key; /* of its declaration, in `stays` */
} scalar_array;

/* Hidden buffer of the result. */
typedef struct hidden_array {
  uint32_t length;
  uint8_t element;
  bool is_used; /* by a block that is open */
} hidden_array;

typedef struct inliner {
  const vyre_program *program;
  const sum_splice *splice; /* NULL unless `program` is a library of sums */
  vyre_arena lasting;       /* memory of the arrays below */
  vyre__kernel *kernel;     /* header of the result */
  vyre_buffer_decl *buffers;
  vyre__hidden *privates; /* hidden buffers */
  hidden_array *slots;    /* per hidden buffer */
  uint32_t hidden_capacity;
  uint32_t *open_arrays; /* hidden buffers of open blocks */
  uint32_t open_count;
  uint32_t *tables;     /* per table: its buffer, or VYRE_NO_INDEX */
  uint8_t *effects;     /* per function: INLINE_EFFECT, INLINE_ORDERED */
  uint32_t *local_base; /* per function: number of its first local */
  uint8_t *stays;       /* per local of all functions: it stays in memory */
  scalar_array *scalars;
  uint32_t scalar_count, scalar_capacity;
  uint64_t *values; /* known values */
  uint32_t value_count, value_capacity;
  size_t node_limit;
  /* Arrays that live across grid barriers become variables, because shared
   * memory is zero after one. */
  bool keeps_arrays;
  bool has_grid;             /* the program has a grid barrier */
  bool folds;                /* replaces arrays by variables where possible */
  bool is_again;             /* an array must stay in memory: copy again */
  bool is_large;             /* unrolling made too much code */
  vyre__id last_value;       /* value of the last scalar local, in the result */
  vyre__queue_clauses queue; /* of the result, if it is a queue kernel */
  vyre__ir_builder builder;
  vyre_arena scratch;
  /* Replaces the operations of queues; NULL: they stay. */
  struct queue_form *form;
  uint8_t *has;    /* per node: INLINE_* */
  uint32_t *sizes; /* per buffer: local of a uniform that is a dimension */
  vyre__inline_dimensions *dimensions; /* per buffer */
  uint32_t unique;                     /* makes names unique */
  /* per element type: shared buffer for reductions; array for scans */
  uint32_t hidden[VYRE_ELEMENT_COUNT], arrays[VYRE_ELEMENT_COUNT];
  bool has_subgroups; /* the program has operations of subgroups */
  bool settles;       /* adds statements that settle sums at the end */
  bool no_memory;
  char message[256]; /* first error */
} inliner;

static inline const vyre__node *inline_node(const inliner *in, vyre__id id) {
  return &in->program->nodes[id];
}

/* Sets the source location of the nodes built next to that of @p id. */
static inline void inline_at(inliner *in, vyre__id id) {
  if (in->splice) return;
  in->builder.place = vyre__source_loc_of(in->program, id);
  in->builder.length = 1;
}

/* Copies child @p index. If a later child contains a call, the value goes to
 * a `let` before the inlined statements. */
vyre__id inline_operand(inliner *in, frame *f, vyre__id id, uint32_t index);
/* Copies a scalar value. */
vyre__id inline_value(inliner *in, frame *f, vyre__id id);
/* Copies a call and returns the first local of its result. */
uint32_t inline_call(inliner *in, frame *f, vyre__id id);
void inline_block(inliner *in, frame *f, vyre__id id);
/* Copies the statements of the function of @p f. */
void inline_body(inliner *in, frame *f);
/* Fills in->has for in->program. */
void inline_mark_nodes(inliner *in);
/* Adds a `let` or `var` and returns its local. */
uint32_t inline_local(inliner *in, const char *name, bool is_mutable,
                      vyre__id value);
void inline_assign(inliner *in, uint32_t local, vyre__id value);
/* Stores a value in a `let`, because it must be computed here and not later. */
vyre__id inline_let(inliner *in, vyre__id value);

/* --- dimensions (inline_dimension.c) --------------------------------------*/

/* Adds the locals of all dimensions. Returns false without memory. */
bool inline_begin_dimensions(inliner *in);
/* Builds the size of a dimension of a buffer; its length if it has none. */
vyre__id inline_extent(inliner *in, uint32_t buffer, unsigned dimension);
/* Builds the distance of elements along a dimension, in units of which an
 * element has @p scalars. */
vyre__id inline_stride(inliner *in, uint32_t buffer, unsigned dimension,
                       uint32_t scalars);

/* Returns true if an access to this buffer needs an AT. */
static inline bool inline_has_dimensions(const inliner *in, const frame *f,
                                         uint32_t buffer) {
  const uint32_t index = buffer & VYRE__MEMORY_INDEX;
  if (buffer & VYRE__MEMORY_TABLE) return in->program->tables[index].shape != 0;
  if (buffer & VYRE__MEMORY_LOCAL) return f->function->locals[index].shape != 0;
  return buffer < in->program->buffer_count &&
         in->program->buffers[buffer].dimension_count > 0;
}
/* Copies an access to a scalar in a buffer with dimensions: a LOAD or an atomic,
 * or a STORE. */
vyre__id inline_access(inliner *in, frame *f, vyre__id id);
void inline_scalar_store(inliner *in, frame *f, vyre__id id);
/* --- memory (inline_memory.c) ----------------------------------------------
 * A reference is the number of a buffer of the result, or that of a scalar
 * array plus INLINE_SCALARS. */

enum { INLINE_SCALARS = 1 << 28 };

/* Prepares the tables above. Returns false if memory is exhausted. */
bool inline_prepare_memory(inliner *in);
/* Returns the reference of memory in a node of the program. */
uint32_t inline_ref(inliner *in, const frame *f, uint32_t memory);
vyre__id inline_load(inliner *in, frame *f, vyre__id id);
vyre__id inline_len(inliner *in, const frame *f, uint32_t memory);
vyre__id inline_atomic(inliner *in, frame *f, vyre__id id);
/* Copies a STORE of a scalar. */
void inline_set_element(inliner *in, frame *f, vyre__id id);
/* Returns true if a reference is an array of the invocation, or a table. */
bool inline_is_array(const inliner *in, uint32_t ref);
/* Returns the number of scalars of an array. */
uint32_t inline_array_length(const inliner *in, uint32_t ref);
/* Builds the index of a scalar of an array from VYRE__AT_STEP values on the
 * stack for each index (a value, its extent, its stride), and a constant. With
 * @p is_stable, the result can be copied by `inline_again`. */
vyre__id inline_array_index(inliner *in, uint32_t ref, uint32_t mark,
                            bool is_stable);
vyre__id inline_array_load(inliner *in, uint32_t ref, vyre__id index);
void inline_array_store(inliner *in, uint32_t ref, vyre__id index,
                        vyre__id value);
vyre__id inline_array_atomic(inliner *in, vyre__op op, uint32_t ref,
                             vyre__id index, const vyre__id operands[2]);
/* Copies the declaration of an array, and the assignment to a whole one. */
void inline_declare_array(inliner *in, frame *f, vyre__id id);
void inline_assign_array(inliner *in, frame *f, vyre__id id);
/* Returns a hidden buffer for an array until it is closed. */
uint32_t inline_open_array(inliner *in, vyre_type type, uint32_t length);
/* Frees the hidden buffers of arrays opened since open_count was @p mark. */
void inline_close_arrays(inliner *in, uint32_t mark);
/* Returns true if a loop indexes an array that may become variables. */
bool inline_wants_unrolling(const inliner *in, const frame *f, vyre__id loop);

/* --- unrolling (inline_unroll.c) -------------------------------------------*/

/* Copies the body of a for loop for each value of its variable. Returns false
 * if they are not known, or unrolling does not pay. */
bool inline_unroll_for(inliner *in, frame *f, vyre__id id, vyre__id first,
                       vyre__id bound);
/* Copies iterations of a while loop whose condition is known to hold. Returns
 * true if it is known not to hold after them. */
bool inline_unroll_while(inliner *in, frame *f, vyre__id id);
vyre__id inline_copy_block(inliner *in, frame *f, vyre__id id);

/* --- known values (inline_memory.c) ----------------------------------------*/

/* Returns a literal if all operands are literals, otherwise @p id. */
vyre__id inline_fold(inliner *in, vyre__id id);
/* Notes that a local has the value of node @p value of the result, which is
 * forgotten unless it is a literal. */
void inline_know(inliner *in, frame *f, uint32_t local, vyre__id value);
/* Forgets the locals that a statement assigns. */
void inline_forget_assigned(const inliner *in, frame *f, vyre__id id);
/* Returns true and sets *bits if a node of the result is a literal. */
bool inline_literal(const inliner *in, vyre__id id, uint64_t *bits);

/* --- queues (queue_kernel.c) ----------------------------------------------*/

/* Returns true for the operations that a form replaces by statements. */
static inline bool inline_is_of_queue(unsigned op) {
  return op == VYRE__OP_PUSH || op == VYRE__OP_PUSH_FIELDS ||
         op == VYRE__OP_IN_WINDOW;
}
/* Implements vyre__inline; with @p form, replaces the operations of queues. */
vyre_code inline_program(const vyre_program *program, bool is_for_code,
                         bool settles, struct queue_form *form,
                         vyre_allocator allocator, vyre_program **out,
                         vyre_status *st);

/* Inlines one body of a queue kernel (vyre__is_queue_part). */
vyre_code inline_queue_part(const vyre_program *program, bool is_for_code,
                            vyre_allocator allocator, vyre_program **out,
                            vyre_status *st);
/* Returns the number of a push, in the order of the source, below
 * VYRE__MAX_PUSH_LINES. */
uint32_t queue_push_number(const vyre_program *program, vyre__id push);
/* Makes the program of the body that @p program stands for, or returns NULL
 * without memory. It is in the arena, and uses memory of @p program. */
const vyre_program *queue_part_body(const vyre_program *program,
                                    vyre_arena *arena);
/* Adds the statements in front of the body. */
void queue_form_begin(inliner *in);
/* Returns ITEM, ITEM_INDEX or WINDOW. */
vyre__id queue_form_leaf(inliner *in, const vyre__node *node);
/* Adds the statements of a push, and returns its value; or returns that of
 * in_window(). */
vyre__id queue_form_value(inliner *in, frame *f, vyre__id id);

/* --- aggregates (inline_aggregate.c) --------------------------------------*/

/* Returns the number of scalars of a type. */
uint32_t inline_scalars(const inliner *in, unsigned type);
/* Returns INLINE_CALL if copying node @p id may add statements, apart from its
 * operands; @p has_ordered: an operand has an effect. */
uint8_t inline_hoists(const inliner *in, vyre__id id, bool has_ordered);
/* Copies the scalars [first, first + count) of a value to @p out. */
void inline_scalars_of(inliner *in, frame *f, vyre__id id, uint32_t first,
                       uint32_t count, vyre__id *out);
/* Copies all scalars of child @p index of node @p id. They are stored if a later
 * child could observe or cause effects. */
void inline_operand_scalars(inliner *in, frame *f, vyre__id id, uint32_t index,
                            vyre__id *out);
/* Returns the scalar value of a node with aggregate operands. */
vyre__id inline_reduction(inliner *in, frame *f, vyre__id id);
/* Copies a value to new locals, and returns the first. */
uint32_t inline_to_locals(inliner *in, frame *f, vyre__id value,
                          const char *name, bool is_mutable);
/* Adds locals for a value of @p type with zeros, and returns the first. */
uint32_t inline_zeros(inliner *in, unsigned type, const char *name);
/* Assigns a value to the locals from @p local on. */
void inline_assign_all(inliner *in, frame *f, uint32_t local, vyre__id value);
/* Copies a STORE of an aggregate, and a SET_PLACE. */
void inline_store(inliner *in, frame *f, vyre__id id);
void inline_set_place(inliner *in, frame *f, vyre__id id);
/* Copies a print statement. Vectors and structs become texts and scalars. */
void inline_print(inliner *in, frame *f, vyre__id id);

/* Returns a literal or a local with this value, so that it can be copied. */
vyre__id inline_stable(inliner *in, vyre__id value);
/* Returns another node with the value of @p id, a literal or a local. */
vyre__id inline_again(inliner *in, vyre__id id);

/* --- exact sums (inline_sum.c) --------------------------------------------*/

static inline bool inline_is_sum(const inliner *in, uint32_t buffer) {
  return !in->splice && buffer < in->program->buffer_count &&
         vyre__is_sum(in->program->buffers[buffer].element);
}

/* Copies a LOAD, a STORE or an ATOMIC_MERGE of a sum. */
vyre__id inline_sum_load(inliner *in, frame *f, vyre__id id);
void inline_sum_store(inliner *in, frame *f, vyre__id id);
void inline_sum_merge(inliner *in, frame *f, vyre__id id);
/* Copies an access of a library kernel. */
vyre__id inline_spliced_load(inliner *in, frame *f, vyre__id id);
void inline_spliced_store(inliner *in, frame *f, vyre__id id);
vyre__id inline_spliced_atomic(inliner *in, frame *f, vyre__id id);
/* Returns true if the program changes sums in memory that it does not own. */
bool inline_changes_sums(const inliner *in);
/* Adds statements that settle these sums, after a grid barrier. */
void inline_settle_sums(inliner *in);
/* Sets the shared sum in element 0 of @p buffer to 0, or returns it. */
void inline_clear_sum(inliner *in, uint32_t buffer, unsigned element);
/* Sets it to a float, a literal or a local. */
void inline_set_sum(inliner *in, uint32_t buffer, unsigned element,
                    vyre__id value);
vyre__id inline_round_sum(inliner *in, uint32_t buffer, unsigned element);

/* --- reductions and scans (inline_workgroup.c) ----------------------------*/

/* Adds the shared memory that reductions and scans need to a kernel. */
void inline_add_hidden(inliner *in, vyre__kernel *kernel);
/* Copies a reduction or scan over the workgroup. */
vyre__id inline_workgroup(inliner *in, frame *f, vyre__id id);

/* --- subgroups (inline_subgroup.c) ----------------------------------------*/

/* Copies an operation of a subgroup. */
vyre__id inline_subgroup(inliner *in, frame *f, vyre__id id);
/* Copies a uniform() of a program with subgroups to a `let`. */
vyre__id inline_uniform(inliner *in, frame *f, vyre__id id);
/* Builds one of scalars. */
vyre__id inline_subgroup_of(inliner *in, unsigned op, const vyre__id v[2]);

#endif
