/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Unroll and jam: runs several rows of a workgroup together.
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
#include "codegen/llvm/internal.h"

enum {
  MAX_ROWS = 4,
  MAX_TEXT = 1200, /* instructions of all rows */
};

/* One of the jammed rows. */
typedef struct row_state {
  ll_rep *reps;
  ll_var *vars;
  ll_op y, vector_index;
} row_state;

struct ll_jam {
  uint32_t piece, rows;
  bool *is_common; /* per instruction: shared by all rows */
  row_state states[MAX_ROWS];
  ll_rep *reps; /* the emitter's, saved */
  ll_var *vars;
  ll_op y;
};

static bool is_op(const ll *e, uint32_t at, vyre__lir_op op) {
  return ll_inst(e, at)->op == op;
}

static bool is_access(const vyre__lir_inst *inst, uint16_t flags) {
  return vyre__lir_ops[inst->op].flags & flags &&
         inst->op != VYRE__LIR_OUT_OF_FUEL;
}

/* --- what rows have in common -------------------------------------------------------*/

typedef struct survey {
  ll_jam *jam;
  bool *is_written; /* buffers, in this subregion */
  bool *var_differs;
  bool is_changed;
} survey;

static bool are_common(const ll *e, const survey *s, uint32_t at) {
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(ll_inst(e, at), operands);
  for (uint32_t i = 0; i < count; i++) {
    if (!s->jam->is_common[operands[i] - e->r.begin]) return false;
  }
  return true;
}

static bool is_common(const ll *e, const survey *s, uint32_t at) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  const vyre__inst_info *role = ll_role(e, at);
  const ll_note *note = ll_note_of(e, at);
  if (inst->op == VYRE__LIR_LOCAL_ID) return inst->aux != 1;
  if (role->is_leaf || role->subregion == 0 ||
      role->storage == VYRE__STORAGE_UNIFORM) {
    return true;
  }
  if (role->subregion != s->jam->piece &&
      role->storage != VYRE__STORAGE_REMATERIALIZE) {
    return false; /* stored, one element per invocation */
  }
  if (role->storage >= VYRE__STORAGE_ARRAY) return false; /* computed here */
  if (inst->op == VYRE__LIR_GET) {
    if (note->logic_a && note->is_straight) {
      return s->jam->is_common[note->logic_a - e->r.begin] &&
             s->jam->is_common[note->logic_b - e->r.begin];
    }
    return !s->var_differs[inst->aux];
  }
  if (inst->op == VYRE__LIR_LOAD) {
    return !s->is_written[inst->aux] && are_common(e, s, at);
  }
  if (inst->op != VYRE__LIR_SET &&
      !(vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE)) {
    return false;
  }
  return are_common(e, s, at);
}

/* Values are shared until proven different. */
static void find_common(const ll *e, survey *s) {
  const vyre__subregion *piece = &e->r.subregions[s->jam->piece];
  for (uint32_t at = piece->begin; at < piece->end; at++) {
    const vyre__lir_inst *inst = ll_inst(e, at);
    if (is_access(inst, VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS)) {
      s->is_written[inst->aux] = true;
    }
  }
  for (uint32_t i = 0; i < e->kernel->var_count; i++) {
    s->var_differs[i] = e->vars[i].is_array;
  }
  do {
    s->is_changed = false;
    for (uint32_t at = e->r.begin; at < e->r.end; at++) {
      bool *known = &s->jam->is_common[at - e->r.begin];
      if (!*known || is_common(e, s, at)) continue;
      *known = false;
      s->is_changed = true;
      bool sets = is_op(e, at, VYRE__LIR_SET);
      if (sets) s->var_differs[ll_inst(e, at)->aux] = true;
    }
  } while (s->is_changed);
  /* Every SET of a variable that differs between rows is per row. */
  for (uint32_t at = piece->begin; at < piece->end; at++) {
    if (is_op(e, at, VYRE__LIR_SET) && s->var_differs[ll_inst(e, at)->aux]) {
      s->jam->is_common[at - e->r.begin] = false;
    }
  }
}

/* --- whether it is possible, and pays --------------------------------------------------*/

typedef struct gain {
  bool shares; /* a loop loads vectors that all rows share */
  uint32_t sums;
  bool *is_sum; /* variables: vectors per row that live through a loop */
} gain;

static bool stays_together(const ll *e, const survey *s, uint32_t begin,
                           uint32_t end, uint32_t loops, gain *g);

static bool if_stays(const ll *e, const survey *s, uint32_t at, uint32_t loops,
                     gain *g) {
  const ll_note *note = ll_note_of(e, at);
  vyre__val condition = ll_inst(e, at)->a;
  uint32_t close = vyre__end_of(&e->r, at), middle = ll_role(e, at)->mate;
  bool has_else = middle != close;
  const ll_note *of = ll_note_of(e, condition);
  uint8_t known = of->known_in == s->jam->piece ? of->known : LL_UNKNOWN;
  if (note->is_settled) return true;
  if (!note->is_straight && known == LL_UNKNOWN) {
    bool same = s->jam->is_common[condition - e->r.begin] &&
                ll_shape(e, condition).kind < VYRE__LANE_SHAPE_LINEAR;
    if (!same) return false;
  }
  if (known != LL_FALSE &&
      !stays_together(e, s, at + 1, has_else ? middle : close, loops, g)) {
    return false;
  }
  return !has_else || known == LL_TRUE ||
         stays_together(e, s, middle + 1, close, loops, g);
}

static void look_at(const ll *e, const survey *s, uint32_t at, gain *g) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  bool common = s->jam->is_common[at - e->r.begin];
  if (!ll_role(e, at)->is_needed) return;
  if (inst->op == VYRE__LIR_LOAD && common &&
      ll_shape(e, at).kind == VYRE__LANE_SHAPE_VARYING) {
    g->shares = true;
  }
  if (inst->op != VYRE__LIR_SET || common) return;
  if (e->vars[inst->aux].form != LL_VECTOR || g->is_sum[inst->aux]) return;
  g->is_sum[inst->aux] = true;
  g->sums++;
}

/* Returns true if all invocations of several rows take the same path through
 * [begin, end). */
static bool stays_together(const ll *e, const survey *s, uint32_t begin,
                           uint32_t end, uint32_t loops, gain *g) {
  for (uint32_t at = begin; at < end; at++) {
    const vyre__lir_inst *inst = ll_inst(e, at);
    const ll_note *note = ll_note_of(e, at);
    uint16_t flags = vyre__lir_ops[inst->op].flags;
    if (flags & (VYRE__LIRF_ATOMICS | VYRE__LIRF_BARRIER)) return false;
    if (flags & VYRE__LIRF_JUMPS && ll_role(e, at)->sets_done) return false;
    if (loops) look_at(e, s, at, g);
    if (inst->op == VYRE__LIR_IF) {
      if (!if_stays(e, s, at, loops, g)) return false;
      at = vyre__end_of(&e->r, at);
    } else if (inst->op == VYRE__LIR_LOOP) {
      uint32_t close = vyre__end_of(&e->r, at), step = ll_role(e, at)->mate;
      if (note->parts || note->continues || note->drops) return false;
      if (!stays_together(e, s, at + 1, step, loops + 1, g)) return false;
      if (!stays_together(e, s, step + 1, close, loops + 1, g)) return false;
      at = close;
    }
  }
  return true;
}

/* Returns the number of rows, so that their accumulators, shared values and
 * one more fit into registers. */
static uint32_t choose_rows(const ll *e, const survey *s, const gain *g) {
  const vyre__subregion *piece = &e->r.subregions[s->jam->piece];
  uint32_t lanes = e->options->lanes ? e->options->lanes : 8;
  uint32_t registers = lanes == 16 ? 28 : 13;
  uint32_t each = e->width > lanes ? e->width / lanes : 1;
  if (!g->shares || g->sums == 0) return 1;
  for (uint32_t rows = MAX_ROWS; rows > 1; rows /= 2) {
    if (e->kernel->workgroup[1] % rows) continue;
    if (rows * (piece->end - piece->begin) > MAX_TEXT) continue;
    if (rows * g->sums * each + each <= registers) return rows;
  }
  return 1;
}

static vyre_code no_memory(const ll *e, size_t count) {
  return vyre__no_memory(e->st, "emit/llvm", "instructions", count);
}

vyre_code ll_plan_jam(ll *e, uint32_t piece, ll_jam **out) {
  size_t count = (size_t)(e->r.end - e->r.begin) + 1;
  size_t vars = e->kernel->var_count, buffers = e->kernel->buffer_count;
  const vyre__subregion *p = &e->r.subregions[piece];
  *out = NULL;
  bool has_loop = false;
  for (uint32_t at = p->begin; at < p->end; at++) {
    has_loop |= is_op(e, at, VYRE__LIR_LOOP);
  }
  if (!has_loop || e->width == 1 || p->tests_done || p->is_empty ||
      e->kernel->workgroup[1] % 2) {
    return VYRE_OK;
  }
  ll_jam *jam = vyre__arena_array(e->arena, 1, sizeof *jam);
  bool *flags = vyre__arena_array(e->arena, count + buffers + 2 * vars, 1);
  if (!jam || !flags) return no_memory(e, count);
  *jam = (ll_jam){.piece = piece, .is_common = flags};
  memset(flags, true, count);
  memset(flags + count, false, buffers + 2 * vars);
  survey s = {.jam = jam,
              .is_written = flags + count,
              .var_differs = flags + count + buffers};
  gain g = {.is_sum = flags + count + buffers + vars};
  find_common(e, &s);
  if (!stays_together(e, &s, p->begin, p->end, 0, &g)) return VYRE_OK;
  jam->rows = choose_rows(e, &s, &g);
  if (jam->rows == 1) return VYRE_OK;
  for (uint32_t i = 0; i < jam->rows; i++) {
    row_state *state = &jam->states[i];
    state->reps = vyre__arena_array(e->arena, count, sizeof *state->reps);
    state->vars = vyre__arena_array(e->arena, vars, sizeof *state->vars);
    if (!state->reps || (vars && !state->vars)) return no_memory(e, count);
  }
  *out = jam;
  return VYRE_OK;
}

uint32_t ll_jam_rows(const ll_jam *jam) {
  return jam ? jam->rows : 1;
}

/* --- writing it --------------------------------------------------------------------------*/

static void enter_row(ll *e, uint32_t i) {
  const row_state *state = &e->jam->states[i];
  e->reps = state->reps;
  e->vars = state->vars;
  e->local[1] = state->y;
  e->vector_index = state->vector_index;
}

/* Arrays belong to the workgroup, whichever row uses them first. */
static void place_arrays(ll *e) {
  const vyre__subregion *piece = &e->r.subregions[e->jam->piece];
  for (uint32_t at = piece->begin; at < piece->end; at++) {
    const vyre__lir_inst *inst = ll_inst(e, at);
    if (inst->op != VYRE__LIR_GET && inst->op != VYRE__LIR_SET) continue;
    if (!ll_role(e, at)->is_needed) continue;
    if (e->vars[inst->aux].is_array) ll_place_var(e, inst->aux);
  }
}

void ll_begin_jam(ll *e) {
  ll_jam *jam = e->jam;
  size_t count = (size_t)(e->r.end - e->r.begin) + 1;
  uint32_t vars = e->kernel->var_count;
  uint32_t each = (e->kernel->workgroup[0] + e->width - 1) / e->width;
  place_arrays(e);
  jam->reps = e->reps;
  jam->vars = e->vars;
  jam->y = e->local[1];
  for (uint32_t i = 0; i < jam->rows; i++) {
    row_state *state = &jam->states[i];
    state->y = jam->y;
    state->vector_index = e->vector_index;
    if (i) {
      state->y = ll_def(e, "add nuw i32 %v, %u", LL_I32, jam->y, i);
    }
    if (i && !e->is_fused) {
      state->vector_index =
          ll_def(e, "add nuw i32 %v, %u", LL_I32, e->vector_index, i * each);
    }
    memcpy(state->reps, e->reps, count * sizeof *e->reps);
    if (vars) memcpy(state->vars, e->vars, vars * sizeof *e->vars);
    for (uint32_t k = 0; k < vars; k++) {
      bool is_own =
          !e->vars[k].is_array && e->r.var_storage[k] != VYRE__STORAGE_UNIFORM;
      if (is_own) state->vars[k].at = state->vars[k].shadow = (ll_op){0};
    }
  }
  enter_row(e, 0);
}

void ll_end_jam(ll *e) {
  e->reps = e->jam->reps;
  e->vars = e->jam->vars;
  e->local[1] = e->jam->y;
  e->jam = NULL;
}

void ll_each_row(ll *e, uint32_t at, void (*make)(ll *e, uint32_t at)) {
  if (!e->jam) {
    make(e, at);
    return;
  }
  uint32_t slot = at - e->r.begin;
  if (e->jam->is_common[slot]) {
    make(e, at);
    for (uint32_t i = 1; i < e->jam->rows; i++) {
      e->jam->states[i].reps[slot] = e->reps[slot];
    }
    return;
  }
  for (uint32_t i = 0; i < e->jam->rows; i++) {
    enter_row(e, i);
    make(e, at);
  }
  enter_row(e, 0);
}

void ll_forget_rows(ll *e, vyre__val v) {
  for (uint32_t i = 0; e->jam && i < e->jam->rows; i++) {
    ll_rep *rep = &e->jam->states[i].reps[v - e->r.begin];
    if (rep->is_derived) rep->form = LL_ABSENT;
    if (rep->form != LL_VECTOR) rep->v = (ll_op){0};
  }
}
