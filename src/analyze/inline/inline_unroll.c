/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Unrolling of loops over arrays that become variables. */
#include "analyze/inline/inliner.h"
#include "analyze/walk.h"

enum { MAX_TRIPS = 64 };

/* Returns true if a statement has a jump of the loop around it, or a return. */
static bool jumps(const inliner *in, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  if (node->op == VYRE__OP_BREAK || node->op == VYRE__OP_CONTINUE) return true;
  if (node->op != VYRE__OP_IF && node->op != VYRE__OP_BLOCK) {
    return (in->has[id] & INLINE_RETURN) != 0;
  }
  const uint32_t count = vyre__child_count(in->program, id);
  for (uint32_t i = 0; i < count; i++) {
    if (jumps(in, vyre__child(in->program, id, i))) return true;
  }
  return false;
}

static int64_t as_number(vyre_type type, uint64_t bits) {
  return type == VYRE_TYPE_I32 ? (int64_t)(int32_t)(uint32_t)bits
                               : (int64_t)bits;
}

/* Returns true if a loop variable satisfies the comparison of the loop. */
static bool goes_on(vyre_type type, unsigned kind, uint64_t value,
                    uint64_t bound) {
  const bool is_signed = type == VYRE_TYPE_I32 || type == VYRE_TYPE_I64;
  const int64_t a = as_number(type, value), b = as_number(type, bound);
  const bool below = is_signed ? a < b : value < bound;
  switch (kind) {
    case VYRE__LOOP_LT:
      return below;
    case VYRE__LOOP_LE:
      return below || value == bound;
    case VYRE__LOOP_GT:
      return !below && value != bound;
    default:
      return !below;
  }
}

/* Values of a loop variable whose first value and bound are known. */
typedef struct known_loop {
  vyre_type type;
  uint64_t values[MAX_TRIPS];
  uint32_t count;
} known_loop;

/* Lists the values. Returns false if there are more than MAX_TRIPS. */
static bool list_values(known_loop *loop, unsigned kind, uint64_t first,
                        uint64_t bound, uint64_t step) {
  const bool is_down = kind >= VYRE__LOOP_GT;
  const bool is_wide =
      loop->type == VYRE_TYPE_U64 || loop->type == VYRE_TYPE_I64;
  const bool is_signed =
      loop->type == VYRE_TYPE_I32 || loop->type == VYRE_TYPE_I64;
  uint64_t value = first;
  loop->count = 0;
  while (goes_on(loop->type, kind, value, bound)) {
    if (loop->count == MAX_TRIPS) return false;
    loop->values[loop->count++] = value;
    uint64_t next = is_down ? value - step : value + step;
    if (!is_wide) next &= UINT32_MAX;
    /* The variable never wraps: the loop ends. */
    const bool above =
        is_signed ? as_number(loop->type, next) > as_number(loop->type, value)
                  : next > value;
    if (above == is_down) break;
    value = next;
  }
  return true;
}

/* Copies the body of a for loop for each value of its variable. Returns false
 * if they are not known. */
bool inline_unroll_for(inliner *in, frame *f, vyre__id id, vyre__id first,
                       vyre__id bound) {
  const vyre__node *node = inline_node(in, id);
  known_loop loop = {.type = (vyre_type)f->function->locals[node->a].type};
  const vyre__for_parts parts = vyre__for_of(in->program, id);
  uint64_t a, b;
  if (!in->folds || !inline_literal(in, first, &a) ||
      !inline_literal(in, bound, &b) || jumps(in, parts.body) ||
      !inline_wants_unrolling(in, f, id) ||
      !list_values(&loop, node->aux, a, b,
                   vyre__literal(inline_node(in, parts.step)))) {
    return false;
  }
  for (uint32_t i = 0; i < loop.count; i++) {
    inline_at(in, id);
    inline_know(
        in, f, node->a,
        vyre__ir_build_literal(&in->builder, loop.type, loop.values[i]));
    vyre__statement(&in->builder, inline_copy_block(in, f, parts.body));
    if (in->builder.node_count > in->node_limit) break;
  }
  return true;
}

/* Copies iterations of a while loop whose condition is known to hold. Returns
 * true if it is known not to hold after them. */
bool inline_unroll_while(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  uint64_t holds = 0;
  if (!in->folds || jumps(in, node->b) || (in->has[node->a] & INLINE_CALL) ||
      !inline_wants_unrolling(in, f, id)) {
    return false;
  }
  for (uint32_t i = 0; i < MAX_TRIPS; i++) {
    if (in->builder.node_count > in->node_limit ||
        !inline_literal(in, inline_value(in, f, node->a), &holds)) {
      return false;
    }
    if (!holds) return true;
    vyre__statement(&in->builder, inline_copy_block(in, f, node->b));
  }
  return false;
}
