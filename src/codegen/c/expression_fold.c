/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Decides which values are printed inside the expression that uses them.
 *
 * A value with one use, and with nothing in between that can change it, is
 * printed at its use while the line stays short. A backward pass finds where
 * each value would be evaluated, a forward pass measures widths. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "codegen/c/internal.h"

enum { WIDEST = 60, NAME_WIDTH = 4 };

typedef struct folder {
  c_emitter *e;
  uint32_t next_effect; /* first side effect after the instruction */
  uint32_t *next_set;   /* for each variable: first SET after it */
} folder;

static uint32_t parent_of(const c_emitter *e, uint32_t at) {
  return c_info(e, at)->parent;
}

/* Returns the last instruction at which a value defined at @p def and used at
 * @p use may be evaluated: the end of a loop that repeats the use. *loops is
 * true if there is such a loop. */
static uint32_t last_evaluation(const c_emitter *e, vyre__val def, uint32_t use,
                                bool *loops) {
  uint32_t block = parent_of(e, def), last = use;
  *loops = false;
  for (uint32_t open = parent_of(e, use); open && open != block;
       open = parent_of(e, open)) {
    uint8_t op = c_inst(e, open)->op;
    if (op != VYRE__LIR_LOOP && op != VYRE__LIR_STEP) continue;
    /* The STEP of the loop that contains the definition is part of the same
     * loop. */
    if (op == VYRE__LIR_STEP && parent_of(e, open) == block) continue;
    *loops = true;
    last = vyre__end_of(e->r, open);
  }
  return last;
}

/* Returns where instruction @p at uses a value of @p home. A subregion runs
 * after all hoisted code of its region. */
static uint32_t point_of_use(const c_emitter *e, uint32_t home, uint32_t at) {
  uint32_t subregion = c_home(e, at);
  if (home || !subregion) return c_note_of(e, at)->at;
  return e->r->regions[e->r->subregions[subregion].region].end;
}

static void note_operands(c_emitter *e, uint32_t at) {
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(c_inst(e, at), operands);
  for (uint32_t i = 0; i < count; i++) {
    vyre__val v = operands[i];
    if (v < e->r->begin || v >= e->r->end) continue;
    c_note *note = c_note_of(e, v);
    bool inside = c_home(e, v) == c_home(e, at);
    uint16_t *uses = inside ? &note->inside_uses : &note->outside_uses;
    if (*uses < UINT16_MAX) ++*uses;
    if (inside) note->user = at;
    bool loops;
    uint32_t last =
        last_evaluation(e, v, point_of_use(e, c_home(e, v), at), &loops);
    if (last > note->last) note->last = last;
    uint32_t open = parent_of(e, at);
    while (open && c_inst(e, open)->op != VYRE__LIR_STEP) {
      open = parent_of(e, open);
    }
    if (open && parent_of(e, open) == parent_of(e, v)) note->is_early = true;
  }
}

/* Notes uses by a value that only other subregions rematerialise. Hoisted
 * operands of it need a name. */
static void note_rematerialized(c_emitter *e, uint32_t at) {
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(c_inst(e, at), operands);
  for (uint32_t i = 0; i < count; i++) {
    c_note *note = c_note_of(e, operands[i]);
    if (c_home(e, operands[i]) == 0 && note->outside_uses < UINT16_MAX) {
      note->outside_uses++;
    }
  }
}

/* Returns true if the instruction is printed, as a statement or inside
 * others. */
static bool is_printed(const c_emitter *e, uint32_t at) {
  const vyre__inst_info *info = c_info(e, at);
  if (!info->is_needed) return false;
  uint16_t flags = vyre__lir_ops[c_inst(e, at)->op].flags;
  bool gives = (flags & (VYRE__LIRF_PURE | VYRE__LIRF_READS)) != 0 ||
               c_inst(e, at)->op == VYRE__LIR_GET;
  if (!gives || info->storage == VYRE__STORAGE_UNIFORM) return true;
  return info->uses > 0 || info->storage == VYRE__STORAGE_BROADCAST ||
         info->storage >= VYRE__STORAGE_ARRAY;
}

static bool may_fold(const folder *f, uint32_t at) {
  const c_emitter *e = f->e;
  const vyre__inst_info *info = c_info(e, at);
  c_note *note = c_note_of(e, at);
  const vyre__lir_inst *inst = c_inst(e, at);
  if (note->inside_uses != 1 || info->storage >= VYRE__STORAGE_BROADCAST)
    return false;
  if (note->outside_uses && info->storage != VYRE__STORAGE_REMATERIALIZE)
    return false;
  bool loops;
  uint32_t where = c_note_of(e, note->user)->at;
  last_evaluation(e, at, where, &loops);
  if (loops || note->is_early) return false;
  if (inst->op == VYRE__LIR_LOAD) {
    return !e->kernel->buffers[inst->aux].is_written || where <= f->next_effect;
  }
  return (vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE) != 0;
}

static void walk_back(folder *f) {
  c_emitter *e = f->e;
  uint16_t effects = VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS |
                     VYRE__LIRF_CONTROL | VYRE__LIRF_JUMPS | VYRE__LIRF_BARRIER;
  f->next_effect = e->r->end;
  for (uint32_t at = e->r->end; at-- > e->r->begin;) {
    const vyre__lir_inst *inst = c_inst(e, at);
    c_note *note = c_note_of(e, at);
    note->at = at;
    if (is_printed(e, at)) {
      if (inst->op == VYRE__LIR_GET) {
        bool same = f->next_set[inst->aux] >= note->last;
        bool kept = c_info(e, at)->storage >= VYRE__STORAGE_BROADCAST;
        note->form = same && !kept ? C_ALIAS : C_NAMED;
      } else if (may_fold(f, at)) {
        note->form = C_FOLDED;
        note->at = c_note_of(e, note->user)->at;
      }
      if (!note->global) note_operands(e, at);
    } else if (c_info(e, at)->is_needed &&
               c_info(e, at)->storage == VYRE__STORAGE_REMATERIALIZE &&
               !note->global) {
      note_rematerialized(e, at);
    }
    if (inst->op == VYRE__LIR_SET && c_info(e, at)->is_needed) {
      f->next_set[inst->aux] = at;
    }
    if (vyre__lir_ops[inst->op].flags & effects) f->next_effect = at;
  }
}

/* --- widths --------------------------------------------------------------- */

static bool makes_call(const vyre__lir_inst *inst) {
  switch (inst->op) {
    case VYRE__LIR_SHR_S:
    case VYRE__LIR_CLZ:
    case VYRE__LIR_CTZ:
    case VYRE__LIR_POPCOUNT:
    case VYRE__LIR_FSQRT:
    case VYRE__LIR_FMA:
    case VYRE__LIR_BITCAST:
      return true;
    default:
      return (inst->op >= VYRE__LIR_MIN_U && inst->op <= VYRE__LIR_MAX_S) ||
             (inst->op >= VYRE__LIR_FABS && inst->op <= VYRE__LIR_FMAX);
  }
}

static uint32_t width_of(const c_emitter *e, vyre__val v) {
  const c_note *note = c_note_of(e, v);
  if (note->form == C_FOLDED) return note->width;
  uint8_t op = c_inst(e, v)->op;
  if (op == VYRE__LIR_CONST || c_info(e, v)->is_leaf) return 8;
  if (note->form == C_ALIAS) {
    return (uint32_t)strlen(e->var_names[c_inst(e, v)->aux]);
  }
  return NAME_WIDTH;
}

/* Returns true for infinities and NaNs, which are printed as bits. */
static bool is_bits_of_float(const vyre__lir_inst *inst) {
  if (inst->op != VYRE__LIR_CONST) return false;
  if (inst->type == VYRE_TYPE_F32) return (inst->c >> 23 & 255) == 255;
  return inst->type == VYRE_TYPE_F64 && (inst->d >> 20 & 2047) == 2047;
}

static void measure(c_emitter *e, uint32_t at) {
  c_note *note = c_note_of(e, at);
  const vyre__lir_inst *inst = c_inst(e, at);
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst, operands);
  bool calls = makes_call(inst) || c_is_single_read(e, at);
  uint32_t width = calls ? 12 : 4;
  if (inst->op == VYRE__LIR_LOAD) {
    width += (uint32_t)strlen(e->buffer_names[inst->aux]);
  }
  for (uint32_t i = 0; i < count; i++) {
    width += width_of(e, operands[i]);
    const c_note *operand = c_note_of(e, operands[i]);
    calls |= operand->form == C_FOLDED && operand->has_call;
    calls |= is_bits_of_float(c_inst(e, operands[i]));
  }
  note->has_call = calls;
  note->width = (uint16_t)(width > UINT16_MAX ? UINT16_MAX : width);
  if (note->form == C_FOLDED && width > WIDEST) note->form = C_NAMED;
}

/* --- variables ------------------------------------------------------------ */

static uint32_t depth_of(const c_emitter *e, uint32_t open) {
  uint32_t depth = 0;
  for (; open; open = parent_of(e, open)) depth++;
  return depth;
}

/* Returns the innermost block that contains both. */
static uint32_t common_block(const c_emitter *e, uint32_t a, uint32_t b) {
  uint32_t deep_a = depth_of(e, a), deep_b = depth_of(e, b);
  for (; deep_a > deep_b; deep_a--) a = parent_of(e, a);
  for (; deep_b > deep_a; deep_b--) b = parent_of(e, b);
  while (a != b) {
    a = parent_of(e, a);
    b = parent_of(e, b);
  }
  return a;
}

static bool is_in_step(const c_emitter *e, uint32_t open, uint32_t block) {
  for (; open && open != block; open = parent_of(e, open)) {
    if (c_inst(e, open)->op == VYRE__LIR_STEP) return true;
  }
  return false;
}

/* A local variable is declared by its first SET if that SET precedes all uses
 * in the block that contains them, and no `continue` can skip it. */
static void declare_at_first_set(c_emitter *e, uint32_t *first,
                                 uint32_t *block) {
  const vyre__regions *r = e->r;
  for (uint32_t at = r->begin; at < r->end; at++) {
    const vyre__lir_inst *inst = c_inst(e, at);
    bool gets = inst->op == VYRE__LIR_GET, sets = inst->op == VYRE__LIR_SET;
    if ((!gets && !sets) || !c_info(e, at)->is_needed) continue;
    uint32_t open = parent_of(e, at), var = inst->aux;
    if (!first[var]) {
      first[var] = at;
      block[var] = open;
      e->var_declared[var] = sets ? at : 0;
    } else {
      block[var] = common_block(e, block[var], open);
      if (is_in_step(e, open, block[var])) e->var_declared[var] = 0;
    }
    if (block[var] != parent_of(e, first[var])) e->var_declared[var] = 0;
  }
}

/* --- entry point ---------------------------------------------------------- */

static void find_global_ids(c_emitter *e) {
  for (uint32_t at = e->r->begin; at < e->r->end; at++) {
    unsigned axis;
    if (c_info(e, at)->is_needed && c_is_global_id(e, at, &axis)) {
      c_note_of(e, at)->global = (uint8_t)(axis + 1);
    }
  }
}

vyre_code c_make_notes(c_emitter *e) {
  const vyre__lir_kernel *kernel = e->kernel;
  size_t count = (size_t)(e->r->end - e->r->begin) + 1,
         vars = kernel->var_count;
  folder f = {.e = e};
  e->notes = vyre__arena_filled(e->arena, count, sizeof *e->notes, 0);
  e->var_declared =
      vyre__arena_filled(e->arena, vars, sizeof *e->var_declared, 0);
  e->step_used = vyre__arena_filled(e->arena, count, sizeof *e->step_used, 0);
  f.next_set = vyre__arena_array(e->arena, vars, sizeof *f.next_set);
  e->var_subregion =
      vyre__arena_array(e->arena, vars, sizeof *e->var_subregion);
  uint32_t *first = vyre__arena_filled(e->arena, vars, sizeof *first, 0);
  uint32_t *block = vyre__arena_array(e->arena, vars, sizeof *block);
  if (!e->notes || !e->var_declared || !e->step_used || !f.next_set || !first ||
      !block || !e->var_subregion) {
    return vyre__no_memory(e->st, "codegen/c", "instructions", count);
  }
  for (size_t i = 0; i < vars; i++) f.next_set[i] = UINT32_MAX;
  find_global_ids(e);
  walk_back(&f);
  for (uint32_t at = e->r->begin; at < e->r->end; at++) {
    if (c_info(e, at)->is_needed) measure(e, at);
  }
  c_find_known(e);
  declare_at_first_set(e, first, block);
  return VYRE_OK;
}
