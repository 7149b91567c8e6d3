/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "spmd/shape/affine.h"

#include "base/memory.h"
#include "base/status.h"

enum { MAX_DEPTH = 16, MAX_CONJUNCTS = 4, MAX_VISITS = 64, MAX_EFFORT = 512 };

#define MAX_FACTOR (INT64_C(1) << 24)

static const vyre__bounds unknown = {1, 0};

static const vyre__lir_inst *inst_of(const vyre__affine_kernel *k,
                                     vyre__val v) {
  return &k->kernel->code[v];
}

static bool const_of(const vyre__affine_kernel *k, vyre__val v, int64_t *out) {
  const vyre__lir_inst *inst = inst_of(k, v);
  if (inst->op != VYRE__LIR_CONST || inst->type != VYRE_TYPE_U32) return false;
  *out = (int32_t)(uint32_t)vyre__lir_const(inst);
  return true;
}

/* --- counters ------------------------------------------------------------- */

/* Records LOOP @p at if it counts up from its first value and nothing but its
 * step changes the counter. */
static void note_loop(vyre__affine_kernel *k, const uint32_t *sets,
                      uint32_t at) {
  const vyre__lir_kernel *kernel = k->kernel;
  const vyre__lir_loop *loop = &kernel->loops[kernel->code[at].aux];
  bool goes_up = loop->kind == VYRE__LOOP_LT || loop->kind == VYRE__LOOP_LE;
  if (!loop->is_counted || !goes_up || !loop->step || loop->step > INT32_MAX ||
      loop->high_var || kernel->vars[loop->var].type != VYRE_TYPE_U32 ||
      sets[loop->var] != 2) {
    return;
  }
  uint32_t test = at + 1, depth = 1, step = at + 1;
  while (test < kernel->count && kernel->code[test].op != VYRE__LIR_BREAK) {
    test++;
  }
  for (; step < kernel->count; step++) {
    uint8_t op = kernel->code[step].op;
    depth += op == VYRE__LIR_IF || op == VYRE__LIR_LOOP;
    if (op == VYRE__LIR_STEP && depth == 1) break;
    depth -= op == VYRE__LIR_END;
  }
  k->loop_of_var[loop->var] = at;
  k->tested_from[kernel->code[at].aux] = test;
  k->step_of[kernel->code[at].aux] = step;
}

vyre_code vyre__affine_init(vyre__affine_kernel *k,
                            const vyre__lir_kernel *kernel, vyre_arena *arena,
                            vyre_status *st) {
  size_t vars = (size_t)kernel->var_count + 1;
  size_t loops = (size_t)kernel->loop_count + 1;
  uint32_t *sets = vyre__arena_filled(arena, vars, sizeof *sets, 0);
  *k = (vyre__affine_kernel){
      .kernel = kernel,
      .loop_of_var = vyre__arena_filled(arena, vars, sizeof(uint32_t), 0),
      .tested_from = vyre__arena_filled(arena, loops, sizeof(uint32_t), 0),
      .step_of = vyre__arena_filled(arena, loops, sizeof(uint32_t), 0)};
  if (!sets || !k->loop_of_var || !k->tested_from || !k->step_of) {
    return vyre__no_memory(st, "spmd/affine", "variables", vars);
  }
  for (uint32_t at = 1; at < kernel->count; at++) {
    const vyre__lir_inst *inst = &kernel->code[at];
    if (inst->op == VYRE__LIR_SET) sets[inst->aux]++;
  }
  for (uint32_t at = 1; at < kernel->count; at++) {
    if (kernel->code[at].op == VYRE__LIR_LOOP) note_loop(k, sets, at);
  }
  return VYRE_OK;
}

/* Returns the loop whose counter GET @p v reads in its body; NULL: none. */
static const vyre__lir_loop *counter_of(vyre__affine_kernel *k, vyre__val v) {
  const vyre__lir_inst *inst = inst_of(k, v);
  if (inst->op != VYRE__LIR_GET || !k->loop_of_var[inst->aux]) return NULL;
  uint32_t at = k->loop_of_var[inst->aux];
  uint32_t index = k->kernel->code[at].aux;
  if (v < at || v > k->step_of[index]) return NULL;
  return &k->kernel->loops[index];
}

/* --- forms ---------------------------------------------------------------- */

static uint64_t key_of(vyre__affine_kernel *k, vyre__val v) {
  const vyre__lir_inst *inst = inst_of(k, v);
  if (inst->op == VYRE__LIR_LOCAL_ID) return UINT64_C(1) << 32 | inst->aux;
  if (counter_of(k, v)) return UINT64_C(2) << 32 | inst->aux;
  return v;
}

static void add_term(vyre__affine *form, uint64_t key, vyre__val leaf,
                     int64_t factor) {
  for (uint32_t i = 0; i < form->count; i++) {
    vyre__affine_term *term = &form->terms[i];
    if (term->key != key) continue;
    term->factor += factor;
    if (!term->factor) *term = form->terms[--form->count];
    return;
  }
  if (form->count == VYRE__AFFINE_TERMS || factor > MAX_FACTOR ||
      factor < -MAX_FACTOR) {
    form->is_incomplete = true;
    return;
  }
  form->terms[form->count++] =
      (vyre__affine_term){.key = key, .leaf = leaf, .factor = factor};
}

void vyre__affine_add_form(vyre__affine *form, const vyre__affine *other,
                           int64_t factor) {
  form->is_incomplete |= other->is_incomplete;
  form->constant += factor * other->constant;
  for (uint32_t i = 0; i < other->count; i++) {
    const vyre__affine_term *term = &other->terms[i];
    add_term(form, term->key, term->leaf, factor * term->factor);
  }
}

bool vyre__affine_is_scaled(const vyre__affine_kernel *k, vyre__val product,
                            vyre__val *v, int64_t *by) {
  const vyre__lir_inst *inst = inst_of(k, product);
  *v = inst->a;
  if (inst->op == VYRE__LIR_SHL && const_of(k, inst->b, by)) {
    if (*by < 0 || *by > 24) return false;
    *by = INT64_C(1) << *by;
    return true;
  }
  if (inst->op != VYRE__LIR_MUL) return false;
  if (const_of(k, inst->b, by)) return true;
  *v = inst->b;
  return const_of(k, inst->a, by);
}

static void add_value(vyre__affine_kernel *k, vyre__val v, int64_t factor,
                      int64_t unit, vyre__affine *high, vyre__affine *low,
                      unsigned depth) {
  const vyre__lir_inst *inst = inst_of(k, v);
  bool is_high = unit && factor % unit == 0;
  int64_t by;
  vyre__val scaled;
  if (factor > MAX_FACTOR || factor < -MAX_FACTOR ||
      ++low->visits > MAX_VISITS) {
    low->is_incomplete = true;
  }
  if (low->is_incomplete) return;
  if (const_of(k, v, &by)) {
    if (is_high) {
      high->constant += factor / unit * by;
    } else {
      low->constant += factor * by;
    }
    return;
  }
  bool is_sum = inst->op == VYRE__LIR_ADD || inst->op == VYRE__LIR_SUB;
  if (depth < MAX_DEPTH && inst->type == VYRE_TYPE_U32) {
    if (is_sum) {
      int64_t sign = inst->op == VYRE__LIR_SUB ? -1 : 1;
      add_value(k, inst->a, factor, unit, high, low, depth + 1);
      add_value(k, inst->b, sign * factor, unit, high, low, depth + 1);
      return;
    }
    if (vyre__affine_is_scaled(k, v, &scaled, &by) && by <= MAX_FACTOR &&
        by >= -MAX_FACTOR) {
      add_value(k, scaled, factor * by, unit, high, low, depth + 1);
      return;
    }
  }
  add_term(is_high ? high : low, key_of(k, v), v,
           is_high ? factor / unit : factor);
}

void vyre__affine_add(vyre__affine_kernel *k, vyre__val v, int64_t factor,
                      int64_t unit, vyre__affine *high, vyre__affine *low) {
  add_value(k, v, factor, unit, high, low, 0);
}

/* --- bounds --------------------------------------------------------------- */

static vyre__bounds bounds_of(vyre__affine_kernel *k, vyre__val v, uint32_t at,
                              unsigned depth);

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static int64_t most(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static vyre__bounds bounds_of_form(vyre__affine_kernel *k,
                                   const vyre__affine *form, uint32_t at,
                                   unsigned depth) {
  vyre__bounds sum = {form->constant, form->constant};
  if (form->is_incomplete) return unknown;
  for (uint32_t i = 0; i < form->count; i++) {
    const vyre__affine_term *term = &form->terms[i];
    vyre__bounds one = bounds_of(k, term->leaf, at, depth + 1);
    if (!vyre__bounds_known(one)) return unknown;
    bool is_down = term->factor < 0;
    sum.lo += term->factor * (is_down ? one.hi : one.lo);
    sum.hi += term->factor * (is_down ? one.lo : one.hi);
  }
  return sum;
}

/* The counter is below its bound after the test. It does not wrap: it is below
 * 2^31, and so is the step. */
static vyre__bounds bounds_of_counter(vyre__affine_kernel *k, vyre__val v,
                                      uint32_t at, unsigned depth) {
  const vyre__lir_loop *loop = counter_of(k, v);
  if (!loop || at < k->tested_from[loop - k->kernel->loops] ||
      at > k->step_of[loop - k->kernel->loops]) {
    return unknown;
  }
  uint32_t outside = k->loop_of_var[loop->var];
  vyre__bounds first = bounds_of(k, loop->first, outside, depth + 1);
  vyre__bounds bound = bounds_of(k, loop->bound, outside, depth + 1);
  if (!vyre__bounds_known(first) || !vyre__bounds_known(bound) ||
      bound.hi > INT32_MAX || first.hi > INT32_MAX) {
    return unknown;
  }
  int64_t hi = bound.hi - (loop->kind == VYRE__LOOP_LT);
  if (hi < first.lo) hi = first.lo; /* the body does not run */
  return (vyre__bounds){first.lo, hi};
}

static vyre__bounds bounds_of_min_max(uint8_t op, vyre__bounds a,
                                      vyre__bounds b) {
  bool is_signed = op == VYRE__LIR_MIN_S || op == VYRE__LIR_MAX_S;
  bool is_max = op == VYRE__LIR_MAX_S || op == VYRE__LIR_MAX_U;
  bool both = vyre__bounds_known(a) && vyre__bounds_known(b);
  if (both && (!is_signed || (a.hi <= INT32_MAX && b.hi <= INT32_MAX))) {
    if (is_max) return (vyre__bounds){most(a.lo, b.lo), most(a.hi, b.hi)};
    return (vyre__bounds){least(a.lo, b.lo), least(a.hi, b.hi)};
  }
  if (op != VYRE__LIR_MIN_U || both) return unknown;
  if (vyre__bounds_known(a)) return (vyre__bounds){0, a.hi};
  return vyre__bounds_known(b) ? (vyre__bounds){0, b.hi} : unknown;
}

static vyre__bounds divide(vyre__bounds a, uint64_t by) {
  if (!vyre__bounds_known(a)) a = (vyre__bounds){0, UINT32_MAX};
  return (vyre__bounds){a.lo / (int64_t)by, a.hi / (int64_t)by};
}

/* Returns bounds of an operation that is not a sum. */
static vyre__bounds bounds_of_operation(vyre__affine_kernel *k,
                                        const vyre__lir_inst *inst, uint32_t at,
                                        unsigned depth) {
  vyre__bounds a = bounds_of(k, inst->a, at, depth + 1);
  vyre__bounds b = bounds_of(k, inst->b, at, depth + 1);
  bool is_one = vyre__bounds_known(b) && b.lo == b.hi;
  switch (inst->op) {
    case VYRE__LIR_AND:
      return bounds_of_min_max(
          VYRE__LIR_MIN_U, vyre__bounds_known(a) ? (vyre__bounds){0, a.hi} : a,
          vyre__bounds_known(b) ? (vyre__bounds){0, b.hi} : b);
    case VYRE__LIR_REM_U:
      if (!vyre__bounds_known(b) || b.lo < 1) return unknown;
      return (vyre__bounds){
          0, vyre__bounds_known(a) ? least(a.hi, b.hi - 1) : b.hi - 1};
    case VYRE__LIR_DIV_U:
      return is_one && b.lo > 0 ? divide(a, (uint64_t)b.lo) : unknown;
    case VYRE__LIR_SHR_U:
      return is_one && b.lo < 32 ? divide(a, UINT64_C(1) << b.lo) : unknown;
    case VYRE__LIR_MIN_U:
    case VYRE__LIR_MIN_S:
    case VYRE__LIR_MAX_U:
    case VYRE__LIR_MAX_S:
      return bounds_of_min_max(inst->op, a, b);
    case VYRE__LIR_SELECT:
      a = bounds_of(k, inst->c, at, depth + 1);
      if (!vyre__bounds_known(a) || !vyre__bounds_known(b)) return unknown;
      return (vyre__bounds){least(a.lo, b.lo), most(a.hi, b.hi)};
    default:
      return unknown;
  }
}

/* Returns bounds of the unsigned value @p v, used at @p at. */
static vyre__bounds bounds_of(vyre__affine_kernel *k, vyre__val v, uint32_t at,
                              unsigned depth) {
  const vyre__lir_inst *inst = inst_of(k, v);
  vyre__affine form = {0};
  if (depth > MAX_DEPTH || inst->type != VYRE_TYPE_U32 || !k->effort) {
    return unknown;
  }
  k->effort--;
  switch (inst->op) {
    case VYRE__LIR_CONST:
      return (vyre__bounds){(int64_t)vyre__lir_const(inst),
                            (int64_t)vyre__lir_const(inst)};
    case VYRE__LIR_LOCAL_ID:
      return (vyre__bounds){0, (int64_t)k->kernel->workgroup[inst->aux] - 1};
    case VYRE__LIR_GET:
      return bounds_of_counter(k, v, at, depth);
    case VYRE__LIR_ZEXT:
      return (vyre__bounds){0, 1};
    case VYRE__LIR_ADD:
    case VYRE__LIR_SUB:
    case VYRE__LIR_MUL:
    case VYRE__LIR_SHL:
      vyre__affine_add(k, v, 1, 0, NULL, &form);
      if (form.count == 1 && form.terms[0].leaf == v) return unknown;
      vyre__bounds sum = bounds_of_form(k, &form, at, depth);
      return sum.lo < 0 || sum.hi > UINT32_MAX ? unknown : sum;
    default:
      return bounds_of_operation(k, inst, at, depth);
  }
}

/* --- guards --------------------------------------------------------------- */

/* Narrows *b, the bounds of @p form, by the fact that left <= right - gap. */
static void narrow(vyre__affine_kernel *k, const vyre__affine *form,
                   uint32_t at, const vyre__affine *left,
                   const vyre__affine *right, int64_t gap, vyre__bounds *b) {
  vyre__affine above = *form, below = *form;
  vyre__affine_add_form(&above, left, -1); /* form + (right - left) >= form */
  vyre__affine_add_form(&above, right, 1);
  vyre__affine_add_form(&below, left, 1);
  vyre__affine_add_form(&below, right, -1);
  vyre__bounds upper = bounds_of_form(k, &above, at, 0);
  vyre__bounds lower = bounds_of_form(k, &below, at, 0);
  if (vyre__bounds_known(upper)) b->hi = least(b->hi, upper.hi - gap);
  if (vyre__bounds_known(lower)) b->lo = most(b->lo, lower.lo + gap);
}

/* Returns true if the exact sum of a comparison's operand is its value, in
 * signed and in unsigned order. */
static bool is_ordered(vyre__affine_kernel *k, const vyre__affine *form,
                       uint32_t at) {
  vyre__bounds b = bounds_of_form(k, form, at, 0);
  return vyre__bounds_known(b) && b.lo >= 0 && b.hi <= INT32_MAX;
}

static void narrow_by(vyre__affine_kernel *k, const vyre__affine *form,
                      uint32_t at, vyre__affine_guard guard, vyre__bounds *b,
                      unsigned depth) {
  const vyre__lir_inst *inst = inst_of(k, guard.condition);
  if (depth > MAX_CONJUNCTS) return;
  if (inst->op == VYRE__LIR_NOT) {
    vyre__affine_guard other = {inst->a, !guard.want};
    narrow_by(k, form, at, other, b, depth + 1);
    return;
  }
  if (inst->op == (guard.want ? VYRE__LIR_AND : VYRE__LIR_OR)) {
    vyre__affine_guard first = {inst->a, guard.want};
    vyre__affine_guard last = {inst->b, guard.want};
    narrow_by(k, form, at, first, b, depth + 1);
    narrow_by(k, form, at, last, b, depth + 1);
    return;
  }
  if (inst->op < VYRE__LIR_LT_U || inst->op > VYRE__LIR_LE_S) return;
  bool equals = inst->op == VYRE__LIR_LE_U || inst->op == VYRE__LIR_LE_S;
  vyre__affine left = {0}, right = {0};
  vyre__affine_add(k, inst->a, 1, 0, NULL, &left);
  vyre__affine_add(k, inst->b, 1, 0, NULL, &right);
  if (!is_ordered(k, &left, at) || !is_ordered(k, &right, at)) return;
  if (guard.want) {
    narrow(k, form, at, &left, &right, !equals, b);
  } else { /* right <= left, or right < left */
    narrow(k, form, at, &right, &left, equals, b);
  }
}

vyre__bounds vyre__affine_bounds(vyre__affine_kernel *k,
                                 const vyre__affine *form,
                                 const vyre__affine_place *place) {
  k->effort = MAX_EFFORT;
  vyre__bounds b = bounds_of_form(k, form, place->at, 0);
  if (!vyre__bounds_known(b)) return b;
  vyre__bounds all = b;
  for (uint32_t i = 0; i < place->guard_count; i++) {
    narrow_by(k, form, place->at, place->guards[i], &b, 0);
  }
  return vyre__bounds_known(b) ? b : all; /* empty: never reached */
}

/* --- slopes --------------------------------------------------------------- */

static bool depends_on_x(vyre__affine_kernel *k, vyre__val v, unsigned depth) {
  const vyre__lir_inst *inst = inst_of(k, v);
  if (inst->op == VYRE__LIR_LOCAL_ID) {
    return inst->aux == 0 && k->kernel->workgroup[0] > 1;
  }
  if (inst->op == VYRE__LIR_LOAD) {
    return k->kernel->buffers[inst->aux].kind != VYRE_MEMORY_UNIFORM;
  }
  if (!(vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE)) return true;
  if (depth > MAX_DEPTH || !k->effort) return true;
  k->effort--;
  for (unsigned i = 0; i < vyre__lir_ops[inst->op].operands; i++) {
    if (depends_on_x(k, inst->v[i], depth + 1)) return true;
  }
  return false;
}

enum { MIN_ROW = 8 }; /* vectors are not longer than rows of this length */

/* Returns true if @p inst is the position of its operand in a row of 2^n
 * elements, or the number of that row (*is_row). */
static bool is_in_row(const vyre__affine_kernel *k, const vyre__lir_inst *inst,
                      bool *is_row) {
  int64_t by;
  bool divides = inst->op == VYRE__LIR_DIV_U || inst->op == VYRE__LIR_SHR_U;
  bool is_rest = inst->op == VYRE__LIR_REM_U || inst->op == VYRE__LIR_AND;
  if ((!divides && !is_rest) || !const_of(k, inst->b, &by)) return false;
  if (inst->op == VYRE__LIR_AND) by++;
  if (inst->op == VYRE__LIR_SHR_U) by = by < 31 ? INT64_C(1) << by : 0;
  *is_row = divides;
  return by >= MIN_ROW && (by & (by - 1)) == 0;
}

static int64_t slope_of(vyre__affine_kernel *k, const vyre__affine *form,
                        unsigned depth, bool *is_known) {
  int64_t slope = 0;
  bool is_row;
  for (uint32_t i = 0; i < form->count; i++) {
    const vyre__affine_term *term = &form->terms[i];
    const vyre__lir_inst *inst = inst_of(k, term->leaf);
    const vyre__lir_loop *loop = counter_of(k, term->leaf);
    if (loop && depth < 4) { /* all lanes are in the same iteration */
      vyre__affine first = {0};
      vyre__affine_add(k, loop->first, term->factor, 0, NULL, &first);
      slope += slope_of(k, &first, depth + 1, is_known);
    } else if (is_in_row(k, inst, &is_row) && depth < 4) {
      vyre__affine whole = {0};
      if (is_row) continue;
      vyre__affine_add(k, inst->a, term->factor, 0, NULL, &whole);
      slope += slope_of(k, &whole, depth + 1, is_known);
    } else if (inst->op == VYRE__LIR_LOCAL_ID && inst->aux == 0) {
      slope += k->kernel->workgroup[0] > 1 ? term->factor : 0;
    } else if (depends_on_x(k, term->leaf, 0)) {
      *is_known = false;
    }
  }
  if (form->is_incomplete) *is_known = false;
  return slope;
}

int64_t vyre__affine_slope(vyre__affine_kernel *k, const vyre__affine *form,
                           bool *is_known) {
  *is_known = true;
  k->effort = MAX_EFFORT;
  return slope_of(k, form, 0, is_known);
}
