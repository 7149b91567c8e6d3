/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by the files that implement ir/builder/ir_builder.h. */
#ifndef VYRE_IR_IR_BUILDER_INTERNAL_H
#define VYRE_IR_IR_BUILDER_INTERNAL_H

#include "ir/builder/ir_builder.h"

enum { VYRE__MAX_NODES = 1 << 26 };

/* Copies a node field by field. A copy of the full struct right after its
 * fields were stored stalls the processor (failed store forwarding). */
static inline void vyre__put_node(vyre__node *to, vyre__node node) {
  to->op = node.op;
  to->type = node.type;
  to->aux = node.aux;
  to->reserved = node.reserved;
  to->a = node.a;
  to->b = node.b;
  to->c = node.c;
}

/* Reserves space for one more node. Returns false if memory is exhausted or a
 * limit is exceeded (V089). */
bool vyre__append_check(vyre__ir_builder *m, vyre__op op, unsigned height);

/* Appends a node. @p height is the largest height of its children. Returns 0
 * on failure. */
static inline vyre__id vyre__append(vyre__ir_builder *m, vyre__node node,
                                    unsigned height) {
  const size_t count = m->node_count;
  if ((height >= VYRE__MAX_DEPTH || count >= VYRE__MAX_NODES ||
       count >= m->node_capacity || count >= m->span_capacity) &&
      !vyre__append_check(m, (vyre__op)node.op,
                          height)) { /* reserves space, or reports */
    return 0;
  }
  node.reserved = (uint8_t)(height + 1);
  vyre__put_node(&m->nodes[count], node);
  m->spans[count] = (vyre__source_span){m->place, m->length};
  m->node_count = count + 1;
  return (vyre__id)count;
}

static inline unsigned vyre__height(const vyre__ir_builder *m, vyre__id id) {
  return id ? m->nodes[id].reserved : 0;
}

static inline unsigned vyre__height2(const vyre__ir_builder *m, vyre__id a,
                                     vyre__id b) {
  unsigned x = vyre__height(m, a), y = vyre__height(m, b);
  return x > y ? x : y;
}

/* Appends a list and returns its offset, or VYRE_NO_INDEX if memory is
 * exhausted. */
uint32_t vyre__append_list(vyre__ir_builder *m, const uint32_t *items,
                           size_t count);

/* Returns the entries pushed since @p mark; NULL if the stack was never used.
 */
static inline const uint32_t *vyre__stack_from(const vyre__ir_builder *m,
                                               uint32_t mark) {
  return m->stack ? m->stack + mark : 0;
}

/* Returns true if an operation with this rule accepts operands of the type;
 * vyre__rule_wants names the accepted types. */
bool vyre__rule_takes(vyre__rule rule, unsigned type);
const char *vyre__rule_wants(vyre__rule rule);

/* Reports that @p op does not accept the type of operand @p id: V061, V062 or
 * V063. */
/* Reports an atomic without a result that is used as a value. */
vyre__id vyre__no_value(vyre__ir_builder *m, vyre__id id);
vyre__id vyre__diagnose_operand(vyre__ir_builder *m, vyre__op op, vyre__id id,
                                unsigned type);

/* Like vyre__expect, for "what 'name'". The text is only put together on
 * error. */
vyre__id vyre__expect_named(vyre__ir_builder *m, vyre__id id, vyre_type type,
                            const char *rule, const char *subject,
                            const char *name);

/* Returns the fix for an integer literal where a float is needed: "write 2.0
 * instead of 2". */
enum { VYRE__FLOAT_FIX = 80 };
const char *vyre__float_fix(const vyre__ir_builder *m, vyre__id id,
                            char fix[VYRE__FLOAT_FIX]);

/* Reports V086 and returns false unless the current function is a kernel. @p
 * what is "a buffer" or the like. */
bool vyre__need_kernel(vyre__ir_builder *m, const char *subject);
/* The same unless it is a kernel or a function without a result. */
bool vyre__need_procedure(vyre__ir_builder *m, const char *subject);

/* Pops the values pushed since @p mark into a list. Returns false if one has
 * an error. */
bool vyre__take_list(vyre__ir_builder *m, uint32_t mark, uint32_t *offset,
                     uint32_t *count, unsigned *height);

/* Declares a local of the current function. Returns VYRE_NO_INDEX if memory
 * is exhausted. */
uint32_t vyre__local_add(vyre__ir_builder *m, const char *name, size_t length,
                         vyre__ir_local local);

/* Returns the declaration of a local or table (VYRE__MEMORY_* in ir.h), or NULL
 * after a report. */
const vyre_buffer_decl *vyre__memory_at(vyre__ir_builder *m, uint32_t memory);
/* Builds `array = value`. */
vyre__id vyre__assign_array(vyre__ir_builder *m, uint32_t local,
                            vyre__id value);
/* Checks the argument for a parameter that is memory, or returns false after a
 * report. */
bool vyre__check_memory_argument(vyre__ir_builder *m,
                                 const vyre__ir_function *f,
                                 const vyre__ir_parameter *parameter,
                                 vyre__id id);
/* Checks that no memory is passed twice if the function modifies it. */
bool vyre__check_aliases(vyre__ir_builder *m, const vyre__ir_function *f,
                         uint32_t mark);
/* Reports a whole array or the call of a function without one result, where a
 * value is needed. Returns false for a value. */
bool vyre__is_no_operand(vyre__ir_builder *m, vyre__id id);
/* Checks that a statement uses the results that are left in order. */
bool vyre__use_results(vyre__ir_builder *m, vyre__id statement);
/* Resolves the type of an index and checks that it is an integer (V068). */
vyre__id vyre__ir_build_index(vyre__ir_builder *m,
                              const vyre_buffer_decl *buffer, vyre__id index);

/* Checks that an access has as many indices as the buffer has dimensions, or
 * returns false after a report. */
bool vyre__check_indices(vyre__ir_builder *m, const vyre_buffer_decl *buffer,
                         vyre__id index);

/* Copies all structs to the arena of a program; NULL without memory. */
const vyre__struct *const *vyre__structs_copy(const vyre__ir_builder *m,
                                              vyre_arena *arena);

/* Operations with an operand that is a vector. */
vyre__id vyre__vector_unary(vyre__ir_builder *m, vyre__op op, vyre__id a);
vyre__id vyre__vector_binary(vyre__ir_builder *m, vyre__op op, vyre__id a,
                             vyre__id b);
vyre__id vyre__vector_ternary(vyre__ir_builder *m, vyre__op op, vyre__id a,
                              vyre__id b, vyre__id c);
/* CAST or BITCAST of each component to a scalar type. */
vyre__id vyre__vector_cast(vyre__ir_builder *m, vyre__op op, unsigned type,
                           vyre__id a);
/* Returns true if the local or the element that node @p root names can be
 * assigned; false after a report (V066, V071). */
bool vyre__can_assign(vyre__ir_builder *m, vyre__id root);

/* Builds a block of the statements from entry @p first of the stack on. */
vyre__id vyre__block_of_stack(vyre__ir_builder *m, uint32_t first);

/* Resolves first and bound to one integer type; returns VOID after a report. */
vyre_type vyre__loop_type(vyre__ir_builder *m, vyre_type type, vyre__id *first,
                          vyre__id *bound);

/* Builds a `break` that leaves the open switch. */
vyre__id vyre__break_switch(vyre__ir_builder *m);
/* Puts statements that follow such a `break` into `if (!left)`. They are
 * entries of the stack, from @p first on. */
void vyre__skip_after_breaks(vyre__ir_builder *m, uint32_t first);

/* Frees the memory that vyre__canonicalize keeps. */
void vyre__canonicalizer_free(vyre__ir_builder *m);

/* Finds recursion. CALL nodes of function f lie in nodes [begin[f], end[f]).
 * @p scratch holds 4 * count entries. Returns a function of a cycle (and the
 * CALL), or VYRE_NO_INDEX. *depth is the longest chain of calls. */
typedef struct vyre__call_graph {
  const vyre__node *nodes;
  const uint32_t *begin, *end;
  uint32_t count;
} vyre__call_graph;
uint32_t vyre__call_cycle(const vyre__call_graph *graph, uint32_t *scratch,
                          vyre__id *call, uint32_t *depth);

/* Field c of an untyped integer literal that is the value of a const, or the 1
 * of ++ and --. */
enum { VYRE__FROM_CONST = 1, VYRE__FROM_STEP = 2 };

#endif
