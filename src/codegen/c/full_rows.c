/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints a second copy of a region for full rows, in which every invocation
 * passes the bounds checks.
 *
 * Most kernels test `i < len(y)`, and the bounds check of an access tests it
 * again. For all rows but the last, the test holds for every invocation. Tested
 * once for the row, it leaves a loop without conditions, which every compiler
 * vectorises, even without masks. So a region with such a test is printed
 * twice. */
#include "codegen/c/internal.h"

enum {
  MAX_BOUNDS = 8,
  MAX_INSTS = 800, /* longer regions are not printed twice */
  MIN_ROW = 8,
  MIN_CHAIN = 8,  /* f64 operations */
  CHAIN_ROW = 16, /* invocations per iteration that the hint asks for */
};

static const char axes[] = "xyz";

typedef struct bound {
  uint8_t axis;
  vyre__val value;
} bound;

/* Returns true if the value is `id < value` or `value <= id`. */
static bool bound_of(const c_emitter *e, vyre__val v, bound *out) {
  const vyre__lir_inst *inst = c_inst(e, v);
  bool asks_in = inst->op == VYRE__LIR_LT_U;
  if (!asks_in && inst->op != VYRE__LIR_LE_U) return false;
  vyre__val id = asks_in ? inst->a : inst->b;
  vyre__val value = asks_in ? inst->b : inst->a;
  const vyre__inst_info *info = c_info(e, value);
  if (!c_note_of(e, id)->global) return false;
  out->axis = (uint8_t)(c_note_of(e, id)->global - 1);
  out->value = value;
  return info->storage == VYRE__STORAGE_UNIFORM ||
         (info->is_leaf && info->is_uniform);
}

/* Finds conditions that are constant where all ids are below their bounds. */
void c_find_known(c_emitter *e) {
  for (uint32_t at = e->r->begin; at < e->r->end; at++) {
    const vyre__lir_inst *inst = c_inst(e, at);
    c_note *note = c_note_of(e, at);
    bound ignored;
    if (!c_info(e, at)->is_needed || inst->type != VYRE_TYPE_BOOL) continue;
    if (bound_of(e, at, &ignored)) {
      note->known = inst->op == VYRE__LIR_LT_U ? C_TRUE : C_FALSE;
    } else if (inst->op == VYRE__LIR_NOT) {
      uint8_t of = c_note_of(e, inst->a)->known;
      note->known = of == C_TRUE ? C_FALSE : of == C_FALSE ? C_TRUE : C_UNKNOWN;
    } else if (inst->op == VYRE__LIR_AND || inst->op == VYRE__LIR_OR) {
      uint8_t a = c_note_of(e, inst->a)->known;
      if (a == c_note_of(e, inst->b)->known) note->known = a;
    }
  }
}

typedef struct bounds {
  bound all[MAX_BOUNDS];
  uint32_t count;
  bool too_many;
  bool is_impossible; /* a bound is below the row */
} bounds;

static void add_bounds(const c_emitter *e, vyre__val v, bounds *out) {
  const vyre__lir_inst *inst = c_inst(e, v);
  if (!c_note_of(e, v)->known) return;
  bound one;
  if (!bound_of(e, v, &one)) {
    add_bounds(e, inst->a, out);
    if (inst->op != VYRE__LIR_NOT) add_bounds(e, inst->b, out);
    return;
  }
  const vyre__lir_inst *value = c_inst(e, one.value);
  out->is_impossible |= one.axis == 0 && value->op == VYRE__LIR_CONST &&
                        vyre__lir_const(value) < e->kernel->workgroup[0];
  for (uint32_t i = 0; i < out->count; i++) {
    if (out->all[i].axis == one.axis && out->all[i].value == one.value) return;
  }
  out->too_many |= out->count == MAX_BOUNDS;
  if (!out->too_many) out->all[out->count++] = one;
}

/* Adds bounds of rematerialised values and of their conditions. */
static void add_remats(const c_emitter *e, uint32_t number, bounds *out) {
  const vyre__subregion *subregion = &e->r->subregions[number];
  for (uint32_t i = 0; i < subregion->remat_count; i++) {
    vyre__val operands[4], v = e->r->remats[subregion->first_remat + i];
    uint32_t count = vyre__lir_operands(c_inst(e, v), operands);
    add_bounds(e, v, out);
    for (uint32_t k = 0; k < count; k++) add_bounds(e, operands[k], out);
  }
}

/* Collects the bounds that a region tests. Returns false if it would not
 * vectorise without them. */
static bool find_bounds(const c_emitter *e, const vyre__region *region,
                        bounds *out) {
  *out = (bounds){.count = 0};
  if (e->kernel->workgroup[0] < MIN_ROW) return false;
  if (region->end - region->begin > MAX_INSTS) return false;
  for (uint32_t i = 0; i < region->subregion_count; i++) {
    add_remats(e, region->first_subregion + i, out);
  }
  for (uint32_t at = region->begin; at < region->end; at++) {
    const vyre__inst_info *info = c_info(e, at);
    if (!info->is_needed || info->storage == VYRE__STORAGE_UNIFORM) continue;
    const vyre__lir_inst *inst = c_inst(e, at);
    bool is_rare = e->r->subregions[info->subregion].is_rare;
    bool blocks = inst->op == VYRE__LIR_LOOP || c_is_single_read(e, at) ||
                  (vyre__lir_ops[inst->op].flags & VYRE__LIRF_ATOMICS);
    if (blocks && !is_rare) return false;
    vyre__val operands[4];
    uint32_t count = vyre__lir_operands(inst, operands);
    for (uint32_t i = 0; i < count; i++) add_bounds(e, operands[i], out);
  }
  return out->count > 0 && !out->too_many && !out->is_impossible;
}

bool c_full_condition(c_emitter *e, const vyre__region *region) {
  const uint32_t *size = e->kernel->workgroup;
  bounds found;
  if (e->options->no_full || !find_bounds(e, region, &found)) return false;
  C_LINE(e, "if (");
  for (uint32_t i = 0; i < found.count; i++) {
    unsigned axis = found.all[i].axis;
    if (i) C_PRINT(e, " && ");
    if (axis == 0) {
      e->used.first[0] = true;
      C_PRINT(e, "first_x + %uu < ", (unsigned)size[0] - 1);
    } else {
      e->used.group[axis] = true;
      C_PRINT(e, "group_%c * %uu + local_%c < ", axes[axis],
              (unsigned)size[axis], axes[axis]);
    }
    c_value(e, found.all[i].value, 12); /* precedence of + */
  }
  C_PRINT(e, ") { /* all invocations of the row are inside */\n");
  return true;
}

static bool is_f64_work(const vyre__lir_inst *inst) {
  return inst->type == VYRE_TYPE_F64 && inst->op >= VYRE__LIR_FADD &&
         inst->op <= VYRE__LIR_FMA;
}

/* Returns true if the condition is not constant in the code that is being
 * printed. */
static bool is_open(const c_emitter *e, uint32_t at) {
  const vyre__lir_inst *inst = c_inst(e, at);
  return inst->op == VYRE__LIR_IF && c_known_of(e, inst->a) == C_UNKNOWN;
}

bool c_is_chain(const c_emitter *e, uint32_t number) {
  const vyre__subregion *subregion = &e->r->subregions[number];
  uint32_t row = e->kernel->workgroup[0], work = 0;
  if (subregion->tests_done || row % CHAIN_ROW != 0) return false;
  for (uint32_t open = c_info(e, subregion->begin)->parent;
       open && c_info(e, open)->subregion; open = c_info(e, open)->parent) {
    if (c_inst(e, open)->op != VYRE__LIR_IF || is_open(e, open)) return false;
  }
  for (uint32_t at = subregion->begin; at < subregion->end; at++) {
    const vyre__lir_inst *inst = c_inst(e, at);
    if (!c_info(e, at)->is_needed || c_home(e, at) != number) continue;
    uint16_t flags = vyre__lir_ops[inst->op].flags;
    if (flags & VYRE__LIRF_ATOMICS) return false;
    if ((flags & VYRE__LIRF_JUMPS) && !e->is_full) return false;
    if (inst->op == VYRE__LIR_LOOP || is_open(e, at) ||
        c_is_single_read(e, at)) {
      return false;
    }
    work += is_f64_work(inst);
  }
  return work >= MIN_CHAIN;
}
