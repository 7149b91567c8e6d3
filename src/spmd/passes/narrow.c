/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds integers of 8 and 16 bits (narrow.h): ranges of values in program
 * order, then the bits that uses need, in reverse order. */
#include "spmd/passes/narrow.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "spmd/regions.h"

/* An integer in [lo, hi] is congruent to the value modulo 2^32. */
typedef struct range {
  int64_t lo, hi;
} range;

static const range any = {0, UINT32_MAX};

typedef struct finder {
  const vyre__lir_kernel *kernel;
  vyre__lir_phase phase;
  range *ranges;     /* per instruction of the phase */
  uint8_t *demanded; /* per instruction: bytes that its uses need; 4: all */
  vyre__narrow *out;
} finder;

static const vyre__lir_inst *inst_of(const finder *f, vyre__val v) {
  return &f->kernel->code[v];
}

static range make_range(int64_t lo, int64_t hi) {
  return lo >= INT32_MIN && hi <= UINT32_MAX ? (range){lo, hi} : any;
}

static bool is_below(range r, int64_t bits) {
  return r.lo >= 0 && r.hi < INT64_C(1) << bits;
}

static bool is_int32(range r) {
  return r.lo >= INT32_MIN && r.hi <= INT32_MAX;
}

static range range_of_const(const vyre__lir_inst *inst) {
  int64_t value = (int32_t)(uint32_t)vyre__lir_const(inst);
  return (range){value, value};
}

static range range_of(const finder *f, vyre__val v) {
  if (v < f->phase.begin || v >= f->phase.end) {
    const vyre__lir_inst *inst = inst_of(f, v);
    return inst->op == VYRE__LIR_CONST ? range_of_const(inst) : any;
  }
  return f->ranges[v - f->phase.begin];
}

static bool const_of(const finder *f, vyre__val v, uint64_t *out) {
  const vyre__lir_inst *inst = inst_of(f, v);
  if (inst->op != VYRE__LIR_CONST) return false;
  *out = vyre__lir_const(inst);
  return true;
}

/* --- ranges ---------------------------------------------------------------- */

static range multiply(range a, range b) {
  const int64_t max = INT64_C(1) << 31;
  if (a.lo < -max || a.hi > max || b.lo < -max || b.hi > max) return any;
  int64_t p[4] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
  range r = {p[0], p[0]};
  for (unsigned i = 1; i < 4; i++) {
    if (p[i] < r.lo) r.lo = p[i];
    if (p[i] > r.hi) r.hi = p[i];
  }
  return make_range(r.lo, r.hi);
}

static range bitwise(uint8_t op, range a, range b) {
  if (op == VYRE__LIR_AND && a.lo >= 0 && b.lo >= 0) {
    return (range){0, a.hi < b.hi ? a.hi : b.hi};
  }
  if (a.lo < 0 || b.lo < 0) return any;
  int64_t hi = a.hi > b.hi ? a.hi : b.hi, ones = 1;
  while (ones <= hi) ones *= 2;
  return (range){0, ones - 1};
}

/* Returns the value whose lowest bits (x << k) >> k sign-extends; else 0. */
static vyre__val extended(const finder *f, const vyre__lir_inst *inst,
                          uint64_t *bits) {
  uint64_t by, first;
  const vyre__lir_inst *shl = inst_of(f, inst->a);
  if (inst->op != VYRE__LIR_SHR_S || inst->type != VYRE_TYPE_U32) return 0;
  if (!const_of(f, inst->b, &by) || (by != 24 && by != 16)) return 0;
  if (shl->op != VYRE__LIR_SHL || !const_of(f, shl->b, &first)) return 0;
  *bits = 32 - by;
  return first == by ? shl->a : 0;
}

static range shift(const finder *f, const vyre__lir_inst *inst, range a) {
  uint64_t by, bits;
  if (extended(f, inst, &bits)) {
    int64_t half = INT64_C(1) << (bits - 1);
    return (range){-half, half - 1};
  }
  if (!const_of(f, inst->b, &by) || by >= 32) return any;
  if (inst->op == VYRE__LIR_SHL) {
    return multiply(a, (range){INT64_C(1) << by, INT64_C(1) << by});
  }
  if (inst->op == VYRE__LIR_SHR_U ? a.lo < 0 : !is_int32(a)) return any;
  return (range){a.lo >> by, a.hi >> by};
}

static range min_max(uint8_t op, range a, range b) {
  bool is_max = op == VYRE__LIR_MAX_U || op == VYRE__LIR_MAX_S;
  bool is_signed = op == VYRE__LIR_MIN_S || op == VYRE__LIR_MAX_S;
  if (is_signed ? !is_int32(a) || !is_int32(b) : a.lo < 0 || b.lo < 0) {
    return any;
  }
  if (is_max) {
    return (range){a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
  }
  return (range){a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
}

static range range_of_load(const finder *f, const vyre__lir_inst *inst) {
  unsigned width = f->kernel->buffers[inst->aux].width;
  if (width >= 4) return any;
  return (range){0, (INT64_C(1) << (8 * width)) - 1};
}

static range find_range(const finder *f, const vyre__lir_inst *inst) {
  if (inst->type != VYRE_TYPE_U32) return any;
  range a = range_of(f, inst->a), b = range_of(f, inst->b);
  switch (inst->op) {
    case VYRE__LIR_CONST:
      return range_of_const(inst);
    case VYRE__LIR_LOAD:
      return range_of_load(f, inst);
    case VYRE__LIR_ZEXT:
      return (range){0, 1};
    case VYRE__LIR_ADD:
      return make_range(a.lo + b.lo, a.hi + b.hi);
    case VYRE__LIR_SUB:
      return make_range(a.lo - b.hi, a.hi - b.lo);
    case VYRE__LIR_MUL:
      return multiply(a, b);
    case VYRE__LIR_AND:
    case VYRE__LIR_OR:
    case VYRE__LIR_XOR:
      return bitwise(inst->op, a, b);
    case VYRE__LIR_SHL:
    case VYRE__LIR_SHR_U:
    case VYRE__LIR_SHR_S:
      return shift(f, inst, a);
    case VYRE__LIR_MIN_U:
    case VYRE__LIR_MIN_S:
    case VYRE__LIR_MAX_U:
    case VYRE__LIR_MAX_S:
      return min_max(inst->op, a, b);
    case VYRE__LIR_SELECT: {
      range c = range_of(f, inst->c);
      return make_range(b.lo < c.lo ? b.lo : c.lo, b.hi > c.hi ? b.hi : c.hi);
    }
    default:
      return any;
  }
}

/* --- demanded bits --------------------------------------------------------- */

/* Returns true for operations whose lower result bits depend on the lower bits
 * of the operands only. */
static bool is_modular(uint8_t op) {
  return op == VYRE__LIR_ADD || op == VYRE__LIR_SUB || op == VYRE__LIR_MUL ||
         op == VYRE__LIR_AND || op == VYRE__LIR_OR || op == VYRE__LIR_XOR ||
         op == VYRE__LIR_SELECT;
}

static void demand(finder *f, vyre__val v, uint8_t bytes) {
  if (v < f->phase.begin || v >= f->phase.end) return;
  uint8_t *known = &f->demanded[v - f->phase.begin];
  if (bytes > *known) *known = bytes;
}

static void demand_operands(finder *f, uint32_t at) {
  const vyre__lir_inst *inst = inst_of(f, at);
  uint8_t own = f->demanded[at - f->phase.begin];
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst, operands);
  bool selects = inst->op == VYRE__LIR_SELECT;
  for (uint32_t i = 0; i < count; i++) {
    uint8_t bytes = 4;
    if (is_modular(inst->op) && inst->type == VYRE_TYPE_U32 &&
        !(selects && i == 0)) {
      bytes = own;
    }
    if (inst->op == VYRE__LIR_STORE && i == 1 &&
        inst_of(f, inst->b)->type == VYRE_TYPE_U32) {
      bytes = f->kernel->buffers[inst->aux].width;
    }
    demand(f, operands[i], bytes);
  }
}

/* --- the decision ---------------------------------------------------------- */

/* Returns the bytes that hold every value of @p r, and how they extend. */
static uint8_t bytes_of(range r, bool *is_signed) {
  for (uint8_t bytes = 1; bytes <= 2; bytes++) {
    const unsigned bits = 8U * bytes;
    *is_signed = false;
    if (is_below(r, bits)) return bytes;
    int64_t half = INT64_C(1) << (bits - 1);
    *is_signed = true;
    if (r.lo >= -half && r.hi < half) return bytes;
  }
  *is_signed = false;
  return 0;
}

/* Returns the bytes in which both operands of a comparison or minimum are exact
 * with the same extension; 0: none. *is_signed is that extension. */
static uint8_t common_bytes(const finder *f, vyre__val a, vyre__val b,
                            bool *is_signed) {
  range x = range_of(f, a), y = range_of(f, b);
  range both = {x.lo < y.lo ? x.lo : y.lo, x.hi > y.hi ? x.hi : y.hi};
  return bytes_of(both, is_signed);
}

static bool compares(uint8_t op) {
  return op >= VYRE__LIR_EQ && op <= VYRE__LIR_LE_S;
}

static bool is_signed_op(uint8_t op) {
  return op == VYRE__LIR_LT_S || op == VYRE__LIR_LE_S ||
         op == VYRE__LIR_MIN_S || op == VYRE__LIR_MAX_S;
}

/* A signed operation on values of unsigned narrow type, or the reverse, is
 * another operation there. */
static bool keeps_sign(uint8_t op, bool is_signed, const finder *f,
                       const vyre__lir_inst *inst) {
  if (op == VYRE__LIR_EQ || op == VYRE__LIR_NE) return true;
  if (is_signed_op(op)) {
    return is_signed && is_int32(range_of(f, inst->a)) &&
           is_int32(range_of(f, inst->b));
  }
  return !is_signed;
}

/* Widens an unsigned common type by a byte count so that a signed operation
 * can use it: values below 2^7 or 2^15 have both extensions. */
static uint8_t signed_bytes(const finder *f, const vyre__lir_inst *inst) {
  range x = range_of(f, inst->a), y = range_of(f, inst->b);
  for (uint8_t bytes = 1; bytes <= 2; bytes++) {
    int64_t half = INT64_C(1) << (8 * bytes - 1);
    if (x.lo >= -half && x.hi < half && y.lo >= -half && y.hi < half) {
      return bytes;
    }
  }
  return 0;
}

static void decide(finder *f, uint32_t at) {
  const vyre__lir_inst *inst = inst_of(f, at);
  vyre__narrow *n = &f->out[at - f->phase.begin];
  range r = f->ranges[at - f->phase.begin];
  uint8_t demanded = f->demanded[at - f->phase.begin];
  bool is_signed = false;
  uint64_t bits;
  if (compares(inst->op)) {
    if (inst_of(f, inst->a)->type != VYRE_TYPE_U32) return;
    n->op_bytes = is_signed_op(inst->op)
                      ? signed_bytes(f, inst)
                      : common_bytes(f, inst->a, inst->b, &is_signed);
    if (!is_signed_op(inst->op) && !keeps_sign(inst->op, is_signed, f, inst)) {
      n->op_bytes = 0;
    }
    return;
  }
  if (inst->type != VYRE_TYPE_U32 || inst->op == VYRE__LIR_CONST) return;
  uint8_t fits = bytes_of(r, &is_signed);
  if (inst->op == VYRE__LIR_LOAD) {
    if (fits) *n = (vyre__narrow){.bytes = fits, .is_signed = is_signed};
    return;
  }
  if (extended(f, inst, &bits) && fits) {
    *n = (vyre__narrow){.bytes = fits,
                        .op_bytes = fits,
                        .is_signed = true,
                        .same = extended(f, inst, &bits)};
    return;
  }
  if (inst->op >= VYRE__LIR_MIN_U && inst->op <= VYRE__LIR_MAX_S) {
    uint8_t common = is_signed_op(inst->op)
                         ? signed_bytes(f, inst)
                         : common_bytes(f, inst->a, inst->b, &is_signed);
    bool is_exact = is_signed_op(inst->op) || !is_signed;
    if (common && is_exact) {
      *n = (vyre__narrow){.bytes = common,
                          .op_bytes = common,
                          .is_signed = is_signed_op(inst->op)};
    }
    return;
  }
  if (!is_modular(inst->op)) return;
  if (demanded > 0 && demanded < 4 && (!fits || demanded < fits)) {
    *n = (vyre__narrow){.bytes = demanded, .op_bytes = demanded};
  } else if (fits) {
    *n =
        (vyre__narrow){.bytes = fits, .op_bytes = fits, .is_signed = is_signed};
  }
}

/* Keeps narrow code where it starts from narrow values: conversions at its
 * ends would cost more than they save. */
static bool has_narrow_operand(const finder *f, const vyre__lir_inst *inst) {
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst, operands);
  bool has = false;
  for (uint32_t i = 0; i < count; i++) {
    const vyre__lir_inst *operand = inst_of(f, operands[i]);
    if (operand->type != VYRE_TYPE_U32) continue;
    if (operand->op == VYRE__LIR_CONST) continue;
    if (operands[i] < f->phase.begin || operands[i] >= f->phase.end) {
      return false;
    }
    if (!f->out[operands[i] - f->phase.begin].bytes) return false;
    has = true;
  }
  return has;
}

static void drop_isolated(finder *f) {
  for (uint32_t at = f->phase.begin; at < f->phase.end; at++) {
    vyre__narrow *n = &f->out[at - f->phase.begin];
    const vyre__lir_inst *inst = inst_of(f, at);
    if (!n->op_bytes || n->same || inst->op == VYRE__LIR_LOAD) continue;
    if (!has_narrow_operand(f, inst)) *n = (vyre__narrow){0};
  }
}

vyre_code vyre__narrow_find(const vyre__lir_kernel *kernel,
                            vyre__lir_phase phase, vyre_arena *arena,
                            vyre__narrow **out, vyre_status *st) {
  size_t count = (size_t)(phase.end - phase.begin) + 1;
  finder f = {.kernel = kernel,
              .phase = phase,
              .ranges = vyre__arena_array(arena, count, sizeof *f.ranges),
              .demanded = vyre__arena_array(arena, count, 1),
              .out = vyre__arena_array(arena, count, sizeof *f.out)};
  if (!f.ranges || !f.demanded || !f.out) {
    return vyre__no_memory(st, "narrow", "instructions", count);
  }
  memset(f.demanded, 0, count);
  memset(f.out, 0, count * sizeof *f.out);
  for (uint32_t at = phase.begin; at < phase.end; at++) {
    f.ranges[at - phase.begin] = find_range(&f, inst_of(&f, at));
  }
  for (uint32_t i = 0; i < kernel->loop_count; i++) {
    demand(&f, kernel->loops[i].first, 4);
    demand(&f, kernel->loops[i].bound, 4);
  }
  for (uint32_t at = phase.end; at-- > phase.begin;) demand_operands(&f, at);
  for (uint32_t at = phase.begin; at < phase.end; at++) decide(&f, at);
  drop_isolated(&f);
  *out = f.out;
  return VYRE_OK;
}
