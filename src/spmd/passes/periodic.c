/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Periodic neighbours: (x + 1) % width and (x + width - 1) % width are x + 1 and
 * x - 1, except at one end of a row. Each such remainder becomes a choice,
 *
 *     a < width ? a : a % width
 *     width <= a && a - width < width ? a - width : a % width
 *
 * so that range-split keeps the remainder out of most of the row. This pays only
 * if x is the number of a column: the kernel must compare it with the width. */
#include "base/status.h"
#include "spmd/lir_edit.h"
#include "spmd/schedule.h"

enum {
  MAX_DEPTH = 8,
  MAX_OFFSET = 64,     /* of a neighbour */
  MAX_STEPS = 1 << 26, /* instructions that are compared, for all remainders */
};

/* A dividend: base + offset + times * divisor. The base is the value that the
 * kernel compares with the divisor. */
typedef struct dividend {
  vyre__val base;
  int64_t offset;
  int times;
} dividend;

static const vyre__lir_inst *at_of(const vyre__lir_kernel *k, vyre__val v) {
  return &k->code[v];
}

static bool is_number(const vyre__lir_kernel *k, vyre__val v, uint32_t number) {
  const vyre__lir_inst *inst = at_of(k, v);
  return inst->op == VYRE__LIR_CONST && inst->type == VYRE_TYPE_U32 &&
         inst->c == number;
}

/* Returns v of v == 0 ? 1 : v, otherwise @p v itself. */
static vyre__val divisor_of(const vyre__lir_kernel *k, vyre__val v) {
  const vyre__lir_inst *inst = at_of(k, v);
  if (inst->op != VYRE__LIR_SELECT || !is_number(k, inst->b, 1)) return v;
  const vyre__lir_inst *test = at_of(k, inst->a);
  bool is_guard = test->op == VYRE__LIR_EQ && test->a == inst->c &&
                  is_number(k, test->b, 0);
  return is_guard ? inst->c : v;
}

/* Returns true if the kernel compares @p base with @p limit. Takes one of *steps
 * for each instruction of the kernel; without enough of them, returns false. */
static bool is_limited(const vyre__lir_kernel *k, vyre__val base,
                       vyre__val limit, uint32_t *steps) {
  if (*steps < k->count) return false;
  *steps -= k->count;
  for (uint32_t at = 1; at < k->count; at++) {
    const vyre__lir_inst *inst = at_of(k, at);
    bool is_less = inst->op == VYRE__LIR_LT_U || inst->op == VYRE__LIR_LT_S;
    bool is_most = inst->op == VYRE__LIR_LE_U || inst->op == VYRE__LIR_LE_S;
    if ((is_less && inst->a == base && inst->b == limit) ||
        (is_most && inst->a == limit && inst->b == base)) {
      return true;
    }
  }
  return false;
}

/* Adds @p v, or subtracts it. Returns false if the sum has another form. */
static bool add_terms(const vyre__lir_kernel *k, vyre__val v, int sign,
                      vyre__val divisor, unsigned depth, uint32_t *steps,
                      dividend *to) {
  const vyre__lir_inst *inst = at_of(k, v);
  if (depth == MAX_DEPTH || inst->type != VYRE_TYPE_U32) return false;
  if (v == divisor) {
    to->times += sign;
    return true;
  }
  if (is_limited(k, v, divisor, steps)) {
    if (to->base || sign < 0) return false;
    to->base = v;
    return true;
  }
  switch (inst->op) {
    case VYRE__LIR_CONST:
      to->offset += sign * (int64_t)(int32_t)inst->c;
      return true;
    case VYRE__LIR_ADD:
    case VYRE__LIR_SUB:
      return add_terms(k, inst->a, sign, divisor, depth + 1, steps, to) &&
             add_terms(k, inst->b, inst->op == VYRE__LIR_SUB ? -sign : sign,
                       divisor, depth + 1, steps, to);
    default:
      return false;
  }
}

/* Returns true if @p v is computed from local_id.x. */
static bool has_x(const vyre__lir_kernel *k, vyre__val v, unsigned depth) {
  const vyre__lir_inst *inst = at_of(k, v);
  const vyre__lir_info *info = &vyre__lir_ops[inst->op];
  if (inst->op == VYRE__LIR_LOCAL_ID) return inst->aux == 0;
  if (depth == MAX_DEPTH || !(info->flags & VYRE__LIRF_PURE)) return false;
  for (unsigned i = 0; i < info->operands; i++) {
    if (has_x(k, inst->v[i], depth + 1)) return true;
  }
  return false;
}

/* Returns true if @p at is the remainder of a neighbour. */
static bool is_neighbour(const vyre__lir_kernel *k, uint32_t at,
                         uint32_t *steps, dividend *out) {
  const vyre__lir_inst *inst = at_of(k, at);
  if (inst->op != VYRE__LIR_REM_U || inst->type != VYRE_TYPE_U32) return false;
  vyre__val divisor = divisor_of(k, inst->b);
  *out = (dividend){0};
  if (at_of(k, divisor)->op == VYRE__LIR_CONST ||
      !add_terms(k, inst->a, 1, divisor, 0, steps, out)) {
    return false;
  }
  bool is_near = out->offset >= -MAX_OFFSET && out->offset <= MAX_OFFSET &&
                 (out->times == 1 || (out->times == 0 && out->offset > 0));
  return out->base && is_near && has_x(k, out->base, 0);
}

/* --- writing -------------------------------------------------------------*/

static vyre__val push(vyre__lir_edit *e, uint32_t like, vyre__lir_op op,
                      vyre_type type, vyre__val a, vyre__val b, vyre__val c) {
  return vyre__edit_push(
      e, like,
      (vyre__lir_inst){
          .op = (uint8_t)op, .type = (uint8_t)type, .v = {a, b, c, 0}});
}

static void write_choice(vyre__lir_edit *e, uint32_t at, const dividend *d) {
  const vyre__lir_inst *inst = &e->from->code[at];
  vyre__val a = e->map[inst->a], b = e->map[inst->b];
  vyre__val value = a, is;
  vyre__edit_copy(e, at, at + 1, false);
  if (d->times == 0) {
    is = push(e, at, VYRE__LIR_LT_U, VYRE_TYPE_BOOL, a, b, 0);
  } else {
    value = push(e, at, VYRE__LIR_SUB, VYRE_TYPE_U32, a, b, 0);
    vyre__val high = push(e, at, VYRE__LIR_LE_U, VYRE_TYPE_BOOL, b, a, 0);
    is = push(e, at, VYRE__LIR_LT_U, VYRE_TYPE_BOOL, value, b, 0);
    is = push(e, at, VYRE__LIR_AND, VYRE_TYPE_BOOL, high, is, 0);
  }
  e->map[at] =
      push(e, at, VYRE__LIR_SELECT, VYRE_TYPE_U32, is, value, e->map[at]);
}

vyre_code vyre__unwrap_neighbours(const vyre__lir_kernel *kernel,
                                  vyre_arena *arena,
                                  const vyre__lir_kernel **out,
                                  vyre_status *st) {
  dividend d;
  uint32_t first = 1, steps = MAX_STEPS;
  *out = kernel;
  while (first < kernel->count && !is_neighbour(kernel, first, &steps, &d)) {
    first++;
  }
  if (first == kernel->count) return VYRE_OK;
  vyre__lir_edit e;
  vyre__edit_begin(&e, kernel, 0, arena);
  steps = MAX_STEPS;
  for (uint32_t at = 1; at < kernel->count; at++) {
    if (is_neighbour(kernel, at, &steps, &d)) {
      write_choice(&e, at, &d);
      vyre__edit_reach(&e, at + 1);
    } else {
      vyre__edit_copy(&e, at, at + 1, false);
    }
  }
  *out = vyre__edit_end(&e);
  if (*out) return VYRE_OK;
  return vyre__no_memory(st, "spmd/periodic", "instructions", kernel->count);
}
