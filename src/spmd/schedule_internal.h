/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For passes: short names of the tables, and construction of nodes. */
#ifndef VYRE_SPMD_SCHEDULE_INTERNAL_H
#define VYRE_SPMD_SCHEDULE_INTERNAL_H

#include "spmd/schedule.h"

enum {
  VYRE__ACCESSES = VYRE__LIRF_READS | VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS,
};

static inline const vyre__lir_inst *inst_at(const vyre__schedule *s,
                                            vyre__val v) {
  return &s->kernel->code[v];
}
static inline vyre__inst_info *info_at(const vyre__schedule *s, vyre__val v) {
  return vyre__inst_info_of(&s->r, v);
}
static inline vyre__lane_shape shape_at(const vyre__schedule *s, vyre__val v) {
  return vyre__lane_shape_of(&s->shapes, v);
}
static inline vyre__sched_note *note_at(const vyre__schedule *s, vyre__val v) {
  return &s->notes[v - s->r.begin];
}
static inline bool is_op(const vyre__schedule *s, uint32_t at,
                         vyre__lir_op op) {
  return inst_at(s, at)->op == op;
}
static inline uint16_t flags_at(const vyre__schedule *s, uint32_t at) {
  return vyre__lir_ops[inst_at(s, at)->op].flags;
}
/* Returns true if value @p v may differ between the active lanes of a
 * vector. */
static inline bool vyre__sched_is_divergent(const vyre__schedule *s,
                                            vyre__val v) {
  return s->width > 1 && shape_at(s, v).kind >= VYRE__LANE_SHAPE_LINEAR;
}
/* Returns true for loads, stores and atomics. */
static inline bool is_access(const vyre__schedule *s, uint32_t at) {
  return flags_at(s, at) & VYRE__ACCESSES &&
         !is_op(s, at, VYRE__LIR_OUT_OF_FUEL);
}

vyre_code vyre__schedule_no_memory(const vyre__schedule *s, size_t count);

/* Builds a RANGE of @p subregion. @p known: NULL, or vyre__known per value; an
 * IF with a known condition is replaced by the arm that is taken. */
vyre_code vyre__build_range(vyre__schedule *s, uint32_t subregion,
                            vyre__range_kind kind, const uint8_t *known,
                            vyre__sched_node **out);
/* Returns true if a row, or the workgroup, may end with a partial vector. */
bool vyre__rows_have_edge(const vyre__schedule *s);
/* Returns the vyre__known of the condition of IF @p at; an IF that the start of
 * the row evaluates is known to be false. */
vyre__known vyre__known_if(const vyre__schedule *s, const uint8_t *known,
                           uint32_t at);
/* Returns true if the start of a row can decide where comparison @p v, which
 * instruction @p at in a loop uses, equals @p want in all iterations. x may be a
 * factor in a bounds check only: a guard would take the last element from the
 * range. */
bool vyre__comparison_has_range(const vyre__schedule *s, vyre__row_split *row,
                                vyre__val v, bool want, uint32_t at,
                                bool is_check);
static inline bool is_fused_x(const vyre__schedule *s, vyre__val v) {
  return s->is_fused && v == s->fused_x;
}

/* --- passes: one function per row of VYRE__SCHEDULE_PASS_MAP --------------*/

vyre_code vyre__schedule_build(vyre__schedule *s);
vyre_code vyre__schedule_range_split(vyre__schedule *s);
vyre_code vyre__schedule_loop_range(vyre__schedule *s);
vyre_code vyre__schedule_unroll_jam(vyre__schedule *s);
vyre_code vyre__schedule_accumulator_split(vyre__schedule *s);
vyre_code vyre__schedule_privatize_atomics(vyre__schedule *s);
vyre_code vyre__schedule_loop_peel(vyre__schedule *s);
vyre_code vyre__schedule_row_loads(vyre__schedule *s);
vyre_code vyre__schedule_row_limit(vyre__schedule *s);
vyre_code vyre__schedule_speculate(vyre__schedule *s);
vyre_code vyre__schedule_row_walk(vyre__schedule *s);
vyre_code vyre__schedule_interleave(vyre__schedule *s);
vyre_code vyre__schedule_prefetch(vyre__schedule *s);
vyre_code vyre__schedule_full_workgroups(vyre__schedule *s);

/* --- parts of the pass `build` --------------------------------------------*/

/* Finds where lanes diverge: notes, variables, masks. */
vyre_code vyre__schedule_divergence(vyre__schedule *s);
void vyre__find_exits(vyre__schedule *s);
/* Returns true if instruction @p at, which is not an access, may run in lanes that
 * do not take the IF around it. */
bool vyre__fits_small(const vyre__schedule *s, uint32_t at);

#endif
