/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Between the files that implement ir/ir_builder.h. */
#ifndef VYRE_IR_IR_BUILDER_INTERNAL_H
#define VYRE_IR_IR_BUILDER_INTERNAL_H

#include "ir/ir_builder.h"

enum { VYRE__MAX_NODES = 1 << 26 };

/* As *to = node, part by part: a node that was just put together in parts and is
 * read as a whole makes the processor wait until all of them are in memory. */
static inline void vyre__put_node(vyre__node *to, vyre__node node) {
  to->op = node.op;
  to->type = node.type;
  to->aux = node.aux;
  to->reserved = node.reserved;
  to->a = node.a;
  to->b = node.b;
  to->c = node.c;
}

/* Makes room for one more node; false without memory, or if it is too deep or too
 * much (V089). */
bool vyre__append_room(vyre__ir_builder *m, vyre__op op, unsigned height);

/* Appends a node; @p height is that of its highest child. 0 if there is no room.
 */
static inline vyre__id vyre__append(vyre__ir_builder *m, vyre__node node,
                                    unsigned height) {
  const size_t count = m->node_count;
  if ((height >= VYRE__MAX_DEPTH || count >= VYRE__MAX_NODES ||
       count >= m->node_capacity || count >= m->span_capacity) &&
      !vyre__append_room(m, (vyre__op)node.op, height)) { /* or a report */
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

/* Appends a run to the lists; its offset, VYRE_NO_INDEX without memory. */
uint32_t vyre__append_list(vyre__ir_builder *m, const uint32_t *items,
                           size_t count);

/* What was pushed since @p mark; NULL if nothing ever was. */
static inline const uint32_t *vyre__stack_from(const vyre__ir_builder *m,
                                               uint32_t mark) {
  return m->stack ? m->stack + mark : 0;
}

/* Whether an operation with this rule takes operands of the type; and in words
 * what it takes. */
bool vyre__rule_takes(vyre__rule rule, unsigned type);
const char *vyre__rule_wants(vyre__rule rule);

/* Operand @p id has a type that @p op does not take: V061, V062 or V063. */
vyre__id vyre__diagnose_operand(vyre__ir_builder *m, vyre__op op, vyre__id id,
                                unsigned type);

/* As vyre__expect, for "what 'name'"; puts the words together only if needed. */
vyre__id vyre__expect_named(vyre__ir_builder *m, vyre__id id, vyre_type type,
                            const char *rule, const char *what,
                            const char *name);

/* The Fix for an integer literal where a float is needed: "write 2.0 instead of
 * 2". */
enum { VYRE__FLOAT_FIX = 80 };
const char *vyre__float_fix(const vyre__ir_builder *m, vyre__id id,
                            char fix[VYRE__FLOAT_FIX]);

/* Reports V086 and returns false in a function that is no kernel; @p what is
 * "a buffer". */
bool vyre__need_kernel(vyre__ir_builder *m, const char *what);

/* Declares a local of the current function; VYRE_NO_INDEX without memory. */
uint32_t vyre__local_add(vyre__ir_builder *m, const char *name, size_t length,
                         vyre__ir_local local);

/* The buffer with that index, or NULL (reported). Needs a kernel. */
const vyre_buffer_decl *vyre__buffer_at(vyre__ir_builder *m, uint32_t buffer);
/* Settles an index and checks that it is an integer (V068). */
vyre__id vyre__ir_build_index(vyre__ir_builder *m,
                              const vyre_buffer_decl *buffer, vyre__id index);

/* Frees what vyre__canonicalize keeps from one program to the next. */
void vyre__canonicalizer_free(vyre__ir_builder *m);

/* Whether functions call in a circle. CALL nodes of function f lie in nodes
 * [begin[f], end[f]); @p scratch has room for 4 * count. Returns the function
 * where one closes (and the CALL), else VYRE_NO_INDEX. *depth is the longest
 * chain of calls. */
typedef struct vyre__call_graph {
  const vyre__node *nodes;
  const uint32_t *begin, *end;
  uint32_t count;
} vyre__call_graph;
uint32_t vyre__call_cycle(const vyre__call_graph *graph, uint32_t *scratch,
                          vyre__id *call, uint32_t *depth);

#endif
