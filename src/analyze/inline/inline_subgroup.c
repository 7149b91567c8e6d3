/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inlining stores the result of each shuffle and ballot in a `let`, and writes
 * the other operations of a subgroup with them.
 *
 * A reduction combines lanes at distances 16, 8, 4, 2 and 1, a scan of integers
 * those at 1, 2, 4, 8 and 16. The result of a reduction is that of lane 0, so
 * that it is known to be equal in the subgroup. For a float sum, each invocation
 * has the words of an exact sum (ir/sum.h) in an array. The words are summed as
 * integers, and the sum is rounded at the end. */
#include "analyze/inline/inliner.h"
#include "analyze/walk.h"
#include "ir/sum.h"

static vyre__id number(inliner *in, uint32_t value) {
  return vyre__ir_build_literal(&in->builder, VYRE_TYPE_U32, value);
}

static vyre__id local_of(inliner *in, uint32_t local) {
  return vyre__ir_build_local(&in->builder, local);
}

/* Exchanges a local, and returns the local of the result. */
static uint32_t exchange(inliner *in, vyre__op op, uint32_t local,
                         uint32_t distance) {
  vyre__id made = vyre__ir_build_binary(&in->builder, op, local_of(in, local),
                                        number(in, distance));
  return inline_local(in, "other", false, made);
}

static vyre__op operation_of(unsigned op) {
  static const uint8_t ops[] = {VYRE__OP_ADD, VYRE__OP_MIN, VYRE__OP_MAX,
                                VYRE__OP_AND, VYRE__OP_OR,  VYRE__OP_XOR};
  return (vyre__op)ops[op - VYRE__OP_SUBGROUP_ADD];
}

/* Returns the combination of a local over the subgroup, equal in all lanes. */
static uint32_t reduce(inliner *in, vyre__op with, uint32_t local) {
  for (uint32_t d = VYRE__SUBGROUP / 2; d > 0; d /= 2) {
    const uint32_t other = exchange(in, VYRE__OP_SHUFFLE_XOR, local, d);
    local = inline_local(
        in, "all", false,
        vyre__ir_build_binary(&in->builder, with, local_of(in, local),
                              local_of(in, other)));
  }
  return local;
}

/* Returns @p value in lanes from @p first on, and 0 in those before. */
static vyre__id from_lane(inliner *in, uint32_t first, vyre__id value) {
  vyre__ir_builder *m = &in->builder;
  const vyre_type type = (vyre_type)vyre__type_of(m, value);
  vyre__id is_in = vyre__ir_build_binary(
      m, VYRE__OP_GE, vyre__ir_build_position(m, VYRE__OP_LANE),
      number(in, first));
  return vyre__ir_build_ternary(m, VYRE__OP_SELECT, is_in, value,
                                vyre__ir_build_literal(m, type, 0));
}

/* Returns the combination of a local over this lane and those before. */
static uint32_t scan(inliner *in, vyre__op with, uint32_t local) {
  for (uint32_t d = 1; d < VYRE__SUBGROUP; d *= 2) {
    const uint32_t other = exchange(in, VYRE__OP_SHUFFLE_UP, local, d);
    vyre__id more = from_lane(in, d, local_of(in, other));
    local = inline_local(
        in, "up_to", false,
        vyre__ir_build_binary(&in->builder, with, local_of(in, local), more));
  }
  return local;
}

/* Returns the result of the scan or reduction @p op. */
static uint32_t combine(inliner *in, unsigned op, vyre__op with,
                        uint32_t local) {
  if (op != VYRE__OP_SUBGROUP_SCAN_ADD &&
      op != VYRE__OP_SUBGROUP_SCAN_ADD_BEFORE) {
    return reduce(in, with, local);
  }
  local = scan(in, with, local);
  if (op == VYRE__OP_SUBGROUP_SCAN_ADD) return local;
  local = exchange(in, VYRE__OP_SHUFFLE_UP, local, 1);
  return inline_local(in, "before", false,
                      from_lane(in, 1, local_of(in, local)));
}

/* --- sums of floats --------------------------------------------------------*/

static vyre__id load(inliner *in, uint32_t words, vyre__id index) {
  return vyre__ir_build_load(&in->builder, words, index);
}

static void store(inliner *in, uint32_t words, vyre__id index, uint32_t local) {
  vyre__statement(&in->builder, vyre__ir_build_store(&in->builder, words, index,
                                                     local_of(in, local)));
}

/* Replaces a word by its combination with that of other lanes. */
static void combine_word(inliner *in, unsigned op, vyre__op with,
                         uint32_t words, vyre__id index) {
  const uint32_t word =
      inline_local(in, "word", false, load(in, words, inline_again(in, index)));
  store(in, words, index, combine(in, op, with, word));
}

/* Returns the sum of a float, rounded once. */
static vyre__id sum_floats(inliner *in, unsigned op, vyre__id value) {
  vyre__ir_builder *m = &in->builder;
  const bool is_wide = vyre__type_of(m, value) == VYRE_TYPE_F64;
  const vyre_element kept =
      is_wide ? VYRE_ELEMENT_SUM_F64 : VYRE_ELEMENT_SUM_F32;
  const uint32_t count = vyre__sum_words(kept);
  const uint32_t mark = in->open_count;
  const uint32_t words = inline_open_array(in, VYRE_TYPE_I64, count);
  inline_set_sum(in, words, kept, value);
  vyre__for loop;
  vyre__for_begin(m, &loop, "word", 4, VYRE_TYPE_U32, VYRE__LOOP_LT,
                  number(in, 0), number(in, count - 1), number(in, 1));
  vyre__mark body = vyre__block_begin(m);
  combine_word(in, op, VYRE__OP_ADD, words, local_of(in, loop.local));
  vyre__statement(m, vyre__for_end(m, &loop, vyre__block_end(m, body)));
  combine_word(in, op, VYRE__OP_OR, words, number(in, count - 1));
  vyre__id sum = inline_round_sum(in, words, kept);
  inline_close_arrays(in, mark);
  return sum;
}

/* --- operations ------------------------------------------------------------*/

static vyre__id ballot(inliner *in, vyre__id value) {
  return inline_let(in,
                    vyre__ir_build_unary(&in->builder, VYRE__OP_BALLOT, value));
}

static vyre__id collect(inliner *in, unsigned op, vyre__id value) {
  vyre__ir_builder *m = &in->builder;
  if (op == VYRE__OP_SUBGROUP_ANY) {
    return vyre__ir_build_binary(m, VYRE__OP_NE, ballot(in, value),
                                 number(in, 0));
  }
  if (op == VYRE__OP_SUBGROUP_ALL) {
    return vyre__ir_build_binary(m, VYRE__OP_EQ, ballot(in, value),
                                 number(in, UINT32_MAX));
  }
  const bool is_scan = op == VYRE__OP_SUBGROUP_SCAN_ADD ||
                       op == VYRE__OP_SUBGROUP_SCAN_ADD_BEFORE;
  const bool is_sum = is_scan || op == VYRE__OP_SUBGROUP_ADD;
  if (is_sum && vyre__is_float(vyre__type_of(m, value))) {
    value = sum_floats(in, op, inline_stable(in, value));
    if (is_scan) return inline_let(in, value);
  } else {
    const vyre__op with = is_scan ? VYRE__OP_ADD : operation_of(op);
    const uint32_t local = inline_local(in, "own", false, value);
    value = local_of(in, combine(in, op, with, local));
    if (is_scan) return value;
  }
  return inline_let(
      in, vyre__ir_build_binary(m, VYRE__OP_SHUFFLE, value, number(in, 0)));
}

vyre__id inline_subgroup_of(inliner *in, unsigned op, const vyre__id v[2]) {
  if (op == VYRE__OP_BALLOT) return ballot(in, v[0]);
  if (!vyre__op_is_exchange(op)) return collect(in, op, v[0]);
  return inline_let(
      in, vyre__ir_build_binary(&in->builder, (vyre__op)op, v[0], v[1]));
}

vyre__id inline_subgroup(inliner *in, frame *f, vyre__id id) {
  const uint32_t count = vyre__child_count(in->program, id);
  vyre__id v[2] = {0, 0};
  for (uint32_t i = 0; i < count && i < 2; i++) {
    v[i] = inline_operand(in, f, id, i);
  }
  inline_at(in, id);
  return inline_subgroup_of(in, inline_node(in, id)->op, v);
}

vyre__id inline_uniform(inliner *in, frame *f, vyre__id id) {
  const vyre__id value = inline_operand(in, f, id, 0);
  inline_at(in, id);
  return inline_let(
      in, vyre__ir_build_unary(&in->builder, VYRE__OP_UNIFORM, value));
}
