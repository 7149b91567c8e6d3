/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pass `unroll-jam`: runs several rows of a workgroup together.
 *
 * Rows often load the same values in a loop: every row of a matrix product
 * multiplies with b[k][x]. Values that do not depend on y are then computed
 * once for all rows, the others once per row, and the dependence chains of
 * accumulators overlap. All rows must take the same path. It pays if a loop
 * loads values that rows share and the accumulators of all rows fit into
 * registers.
 *
 * This is legal: invocations are unordered between barriers, and each keeps
 * its own order. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "spmd/schedule_internal.h"

enum {
  MAX_ROWS = VYRE__MAX_JAMMED_ROWS,
  MAX_TEXT = 1200, /* instructions of all rows */
};

static bool accesses(const vyre__lir_inst *inst, uint16_t flags) {
  return vyre__lir_ops[inst->op].flags & flags &&
         inst->op != VYRE__LIR_OUT_OF_FUEL;
}

/* --- what rows have in common -------------------------------------------------------*/

typedef struct survey {
  vyre__jam *jam;
  bool *is_written; /* buffers, in this subregion */
  bool *var_differs;
  bool is_changed;
} survey;

static bool are_common(const vyre__schedule *s, const survey *view,
                       uint32_t at) {
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst_at(s, at), operands);
  for (uint32_t i = 0; i < count; i++) {
    if (!view->jam->is_common[operands[i] - s->r.begin]) return false;
  }
  return true;
}

static bool is_common(const vyre__schedule *s, const survey *view,
                      uint32_t at) {
  const vyre__lir_inst *inst = inst_at(s, at);
  const vyre__inst_info *role = info_at(s, at);
  const vyre__sched_note *note = note_at(s, at);
  if (inst->op == VYRE__LIR_LOCAL_ID) return inst->aux != 1;
  if (role->is_leaf || role->subregion == 0 ||
      role->storage == VYRE__STORAGE_UNIFORM) {
    return true;
  }
  if (role->subregion != view->jam->subregion &&
      role->storage != VYRE__STORAGE_REMATERIALIZE) {
    return false; /* stored, one element per invocation */
  }
  if (role->storage >= VYRE__STORAGE_ARRAY) return false; /* computed here */
  if (inst->op == VYRE__LIR_GET) {
    if (note->logic_a && note->is_straight) {
      return view->jam->is_common[note->logic_a - s->r.begin] &&
             view->jam->is_common[note->logic_b - s->r.begin];
    }
    return !view->var_differs[inst->aux];
  }
  if (inst->op == VYRE__LIR_LOAD) {
    return !view->is_written[inst->aux] && are_common(s, view, at);
  }
  if (inst->op != VYRE__LIR_SET &&
      !(vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE)) {
    return false;
  }
  return are_common(s, view, at);
}

/* Values are shared until proven different. */
static void find_common(const vyre__schedule *s, survey *view) {
  const vyre__subregion *piece = &s->r.subregions[view->jam->subregion];
  for (uint32_t at = piece->begin; at < piece->end; at++) {
    const vyre__lir_inst *inst = inst_at(s, at);
    if (accesses(inst, VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS)) {
      view->is_written[inst->aux] = true;
    }
  }
  for (uint32_t i = 0; i < s->kernel->var_count; i++) {
    view->var_differs[i] = s->vars[i].is_array;
  }
  do {
    view->is_changed = false;
    for (uint32_t at = s->r.begin; at < s->r.end; at++) {
      bool *known = &view->jam->is_common[at - s->r.begin];
      if (!*known || is_common(s, view, at)) continue;
      *known = false;
      view->is_changed = true;
      bool sets = is_op(s, at, VYRE__LIR_SET);
      if (sets) view->var_differs[inst_at(s, at)->aux] = true;
    }
  } while (view->is_changed);
  /* Every SET of a variable that differs between rows is per row. */
  for (uint32_t at = piece->begin; at < piece->end; at++) {
    if (is_op(s, at, VYRE__LIR_SET) && view->var_differs[inst_at(s, at)->aux]) {
      view->jam->is_common[at - s->r.begin] = false;
    }
  }
}

/* --- whether it is possible, and pays --------------------------------------------------*/

typedef struct gain {
  bool shares; /* a loop loads values that all rows share */
  uint32_t sums;
  bool *is_sum; /* variables: vectors per row that live through a loop */
} gain;

static bool stays_together(const vyre__schedule *s, const survey *view,
                           uint32_t begin, uint32_t end, uint32_t loops,
                           gain *g);

static bool if_stays(const vyre__schedule *s, const survey *view, uint32_t at,
                     uint32_t loops, gain *g) {
  const vyre__sched_note *note = note_at(s, at);
  vyre__val condition = inst_at(s, at)->a;
  uint32_t close = vyre__end_of(&s->r, at), middle = info_at(s, at)->mate;
  bool has_else = middle != close;
  uint8_t known =
      s->splits[view->jam->subregion]->known[condition - s->r.begin];
  if (note->is_hoisted) return true;
  if (!note->is_straight && known == VYRE__UNKNOWN) {
    bool same = view->jam->is_common[condition - s->r.begin] &&
                shape_at(s, condition).kind < VYRE__LANE_SHAPE_LINEAR;
    if (!same) return false;
  }
  if (known != VYRE__KNOWN_FALSE &&
      !stays_together(s, view, at + 1, has_else ? middle : close, loops, g)) {
    return false;
  }
  return !has_else || known == VYRE__KNOWN_TRUE ||
         stays_together(s, view, middle + 1, close, loops, g);
}

static void look_at(const vyre__schedule *s, const survey *view, uint32_t at,
                    gain *g) {
  const vyre__lir_inst *inst = inst_at(s, at);
  bool common = view->jam->is_common[at - s->r.begin];
  if (!info_at(s, at)->is_needed) return;
  if (inst->op == VYRE__LIR_LOAD && common &&
      info_at(s, at)->storage != VYRE__STORAGE_UNIFORM) {
    g->shares = true;
  }
  if (inst->op != VYRE__LIR_SET || common) return;
  if (s->vars[inst->aux].form != VYRE__AS_VECTOR || g->is_sum[inst->aux])
    return;
  g->is_sum[inst->aux] = true;
  g->sums++;
}

/* Returns true if all invocations of several rows take the same path through
 * [begin, end). */
static bool stays_together(const vyre__schedule *s, const survey *view,
                           uint32_t begin, uint32_t end, uint32_t loops,
                           gain *g) {
  for (uint32_t at = begin; at < end; at++) {
    const vyre__lir_inst *inst = inst_at(s, at);
    const vyre__sched_note *note = note_at(s, at);
    uint16_t flags = vyre__lir_ops[inst->op].flags;
    if (flags & (VYRE__LIRF_ATOMICS | VYRE__LIRF_BARRIER)) return false;
    if (flags & VYRE__LIRF_JUMPS && info_at(s, at)->sets_done) return false;
    if (loops) look_at(s, view, at, g);
    if (inst->op == VYRE__LIR_IF) {
      if (!if_stays(s, view, at, loops, g)) return false;
      at = vyre__end_of(&s->r, at);
    } else if (inst->op == VYRE__LIR_LOOP) {
      uint32_t close = vyre__end_of(&s->r, at), step = info_at(s, at)->mate;
      if (note->parts || note->continues || note->drops) return false;
      if (!stays_together(s, view, at + 1, step, loops + 1, g)) return false;
      if (!stays_together(s, view, step + 1, close, loops + 1, g)) return false;
      at = close;
    }
  }
  return true;
}

/* Returns the number of rows, so that their accumulators, shared values and
 * one more fit into registers. */
static uint32_t choose_rows(const vyre__schedule *s, const survey *view,
                            const gain *g) {
  const vyre__subregion *piece = &s->r.subregions[view->jam->subregion];
  uint32_t lanes = s->lanes;
  uint32_t registers = lanes == 16 ? 28 : 13;
  uint32_t each = s->width > lanes ? s->width / lanes : 1;
  if (!g->shares || g->sums == 0) return 1;
  for (uint32_t rows = MAX_ROWS; rows > 1; rows /= 2) {
    if (s->kernel->workgroup[1] % rows) continue;
    if (rows * (piece->end - piece->begin) > MAX_TEXT) continue;
    if (rows * g->sums * each + each <= registers) return rows;
  }
  return 1;
}

static bool has_loop(const vyre__schedule *s, const vyre__subregion *of) {
  for (uint32_t at = of->begin; at < of->end; at++) {
    if (is_op(s, at, VYRE__LIR_LOOP)) return true;
  }
  return false;
}

/* Decides whether rows of @p subregion are jammed; *out is NULL if not. */
static vyre_code plan_jam(vyre__schedule *s, uint32_t subregion,
                          vyre__jam **out) {
  size_t count = (size_t)(s->r.end - s->r.begin) + 1;
  size_t vars = s->kernel->var_count, buffers = s->kernel->buffer_count;
  const vyre__subregion *of = &s->r.subregions[subregion];
  *out = NULL;
  if (!has_loop(s, of) || s->width == 1 || of->tests_done || of->is_empty ||
      s->kernel->workgroup[1] % 2) {
    return VYRE_OK;
  }
  vyre__jam *jam = vyre__arena_array(s->arena, 1, sizeof *jam);
  bool *flags = vyre__arena_array(s->arena, count + buffers + 2 * vars, 1);
  if (!jam || !flags) return vyre__schedule_no_memory(s, count);
  *jam = (vyre__jam){.subregion = subregion, .is_common = flags};
  memset(flags, true, count);
  memset(flags + count, false, buffers + 2 * vars);
  survey view = {.jam = jam,
                 .is_written = flags + count,
                 .var_differs = flags + count + buffers};
  gain g = {.is_sum = flags + count + buffers + vars};
  find_common(s, &view);
  if (!stays_together(s, &view, of->begin, of->end, 0, &g)) return VYRE_OK;
  jam->rows = choose_rows(s, &view, &g);
  if (jam->rows > 1) *out = jam;
  return VYRE_OK;
}

/* Adds a JAM node with a copy of the full range before the ranges of @p rows. */
static vyre_code jam_rows(vyre__schedule *s, vyre__sched_node *rows) {
  vyre__jam *jam;
  VYRE_TRY(plan_jam(s, rows->subregion, &jam));
  if (!jam) return VYRE_OK;
  vyre__sched_node *node = vyre__arena_array(s->arena, 1, sizeof *node);
  if (!node) return vyre__schedule_no_memory(s, 1);
  *node = (vyre__sched_node){.kind = VYRE__SCHED_JAM,
                             .begin = rows->begin,
                             .end = rows->end,
                             .subregion = rows->subregion,
                             .jam = jam,
                             .next = rows->body};
  VYRE_TRY(vyre__build_range(s, rows->subregion, VYRE__RANGE_FULL,
                             rows->body->known, &node->body));
  rows->body = node;
  rows->split->is_jammed = true;
  return VYRE_OK;
}

static vyre_code jam_all(vyre__schedule *s, vyre__sched_node *first) {
  for (vyre__sched_node *node = first; node; node = node->next) {
    if (node->kind == VYRE__SCHED_ROWS) {
      VYRE_TRY(jam_rows(s, node));
    } else if (node->kind != VYRE__SCHED_VECTORS) {
      VYRE_TRY(jam_all(s, node->body));
      VYRE_TRY(jam_all(s, node->other));
    }
  }
  return VYRE_OK;
}

vyre_code vyre__schedule_unroll_jam(vyre__schedule *s) {
  return jam_all(s, s->root);
}
