/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Exits: finds the masks that loops, ifs and subregions need because lanes
 * leave them at different points. codegen/llvm/masked_exits.c has the rules
 * for continue, break, return and running out of fuel. */
#include "spmd/schedule_internal.h"

static uint32_t loop_of(const vyre__schedule *s, uint32_t jump) {
  uint32_t open = info_at(s, jump)->parent;
  while (!is_op(s, open, VYRE__LIR_LOOP)) open = info_at(s, open)->parent;
  return open;
}

vyre__exit_kind vyre__exit_kind_of(const vyre__schedule *s, uint32_t at) {
  if (is_op(s, at, VYRE__LIR_EXIT)) return VYRE__EXIT_RETURN;
  if (info_at(s, loop_of(s, at))->subregion == 0) return VYRE__EXIT_RETURN;
  return is_op(s, at, VYRE__LIR_CONTINUE) ? VYRE__EXIT_CONTINUE
                                          : VYRE__EXIT_BREAK;
}

static bool is_varying(const vyre__schedule *s, uint32_t at) {
  return s->width > 1 &&
         shape_at(s, inst_at(s, at)->a).kind >= VYRE__LANE_SHAPE_LINEAR;
}

static bool raise(bool *flag, bool to) {
  bool is_new = to && !*flag;
  *flag |= to;
  return is_new;
}

/* Notes the masks that @p exit at @p at needs in a loop that other lanes stay in.
 * Returns whether something is new. */
static bool need_masks(vyre__sched_note *note, vyre__exit_kind exit,
                       uint32_t at) {
  bool needs_live = exit != VYRE__EXIT_CONTINUE;
  bool changed = raise(needs_live ? &note->parts : &note->continues, true);
  if (note->split && note->split <= at) return changed;
  note->split = at;
  return true;
}

/* Notes what the lanes at jump @p at leave while other lanes stay. Returns whether
 * something is new. */
static bool find_exit(vyre__schedule *s, uint32_t at) {
  vyre__exit_kind exit = vyre__exit_kind_of(s, at);
  bool some = false, changed = false; /* some: not all lanes of the scope */
  for (uint32_t open = info_at(s, at)->parent; open;
       open = info_at(s, open)->parent) {
    uint32_t own = info_at(s, vyre__end_of(&s->r, open))->mate;
    if (info_at(s, own)->subregion == 0) break; /* of the workgroup */
    vyre__sched_note *note = note_at(s, own);
    if (is_op(s, own, VYRE__LIR_IF)) {
      some |= is_varying(s, own);
      changed |= raise(&note->drops, some);
      continue;
    }
    if (is_op(s, open, VYRE__LIR_STEP)) continue; /* its LOOP comes next */
    some |= note->split && note->split < at;
    if (some) changed |= need_masks(note, exit, at);
    if (exit != VYRE__EXIT_RETURN) return changed;
    some |= note->parts; /* other lanes may have left in earlier iterations */
    changed |= raise(&note->drops, some);
  }
  return raise(&s->lanes_leave[info_at(s, at)->subregion], some) || changed;
}

void vyre__find_exits(vyre__schedule *s) {
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t at = s->r.begin; at < s->r.end; at++) {
      const vyre__inst_info *role = info_at(s, at);
      if (!(vyre__lir_ops[inst_at(s, at)->op].flags & VYRE__LIRF_JUMPS))
        continue;
      if (role->subregion && role->is_reached) changed |= find_exit(s, at);
    }
  }
}
