/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "spmd/shape/lane_offsets.h"

enum { MAX_DEPTH = 12, BITS = 32 };

typedef struct finder {
  const vyre__lir_kernel *kernel;
  const vyre__lane_shapes *shapes;
} finder;

static bool find(const finder *f, vyre__val v, unsigned depth,
                 vyre__lane_offsets *out);

static bool is_number(const finder *f, vyre__val v, uint32_t *out) {
  vyre__lane_shape s = vyre__lane_shape_of(f->shapes, v);
  *out = (uint32_t)s.stride;
  return s.kind == VYRE__LANE_SHAPE_CONSTANT;
}

static unsigned zeros_of(uint32_t number) {
  return number ? (unsigned)__builtin_ctz(number) : BITS;
}

static unsigned min_of(unsigned a, unsigned b) {
  return a < b ? a : b;
}

/* Returns true if no offset reaches into the bits of the base. */
static bool is_apart(const finder *f, const vyre__lane_offsets *o) {
  for (uint32_t k = 0; k < f->shapes->width; k++) {
    if (o->aligned < BITS && o->lane[k] >> o->aligned) return false;
  }
  return true;
}

static bool add(const finder *f, const vyre__lir_inst *inst, unsigned depth,
                vyre__lane_offsets *out) {
  vyre__lane_offsets b;
  bool adds = inst->op == VYRE__LIR_ADD;
  if (!find(f, inst->a, depth, out) || !find(f, inst->b, depth, &b)) {
    return false;
  }
  for (uint32_t k = 0; k < f->shapes->width; k++) {
    out->lane[k] += adds ? b.lane[k] : 0u - b.lane[k];
  }
  out->aligned = min_of(out->aligned, b.aligned);
  return true;
}

static bool scale(const finder *f, vyre__val v, uint32_t by, unsigned depth,
                  vyre__lane_offsets *out) {
  if (!find(f, v, depth, out)) return false;
  for (uint32_t k = 0; k < f->shapes->width; k++) out->lane[k] *= by;
  out->aligned = min_of(out->aligned + zeros_of(by), BITS);
  return true;
}

static bool shift_right(const finder *f, vyre__val v, uint32_t by,
                        unsigned depth, vyre__lane_offsets *out) {
  if (!find(f, v, depth, out) || by >= BITS || !is_apart(f, out)) return false;
  if (out->aligned < by) return false;
  for (uint32_t k = 0; k < f->shapes->width; k++) out->lane[k] >>= by;
  if (out->aligned < BITS) out->aligned -= by;
  return true;
}

static bool combine(const finder *f, vyre__lir_op op, vyre__val v, uint32_t by,
                    unsigned depth, vyre__lane_offsets *out) {
  if (!find(f, v, depth, out) || !is_apart(f, out)) return false;
  uint32_t low = by;
  if (out->aligned < BITS) low &= (UINT32_C(1) << out->aligned) - 1;
  for (uint32_t k = 0; k < f->shapes->width; k++) {
    uint32_t *lane = &out->lane[k];
    *lane = op == VYRE__LIR_AND  ? *lane & low
            : op == VYRE__LIR_OR ? *lane | low
                                 : *lane ^ low;
  }
  return true;
}

static bool find_operation(const finder *f, const vyre__lir_inst *inst,
                           unsigned depth, vyre__lane_offsets *out) {
  uint32_t n = 0;
  if (inst->op == VYRE__LIR_ADD || inst->op == VYRE__LIR_SUB) {
    return add(f, inst, depth, out);
  }
  const vyre__lir_info *info = &vyre__lir_ops[inst->op];
  if (info->operands != 2 || !(info->flags & VYRE__LIRF_PURE)) return false;
  bool is_right = is_number(f, inst->b, &n);
  if (!is_right && !is_number(f, inst->a, &n)) return false;
  vyre__val v = is_right ? inst->a : inst->b;
  bool is_power = n && !(n & (n - 1));
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_MUL:
      return scale(f, v, n, depth, out);
    case VYRE__LIR_AND:
    case VYRE__LIR_OR:
    case VYRE__LIR_XOR:
      return combine(f, (vyre__lir_op)inst->op, v, n, depth, out);
    case VYRE__LIR_SHL:
      return is_right && n < BITS && scale(f, v, UINT32_C(1) << n, depth, out);
    case VYRE__LIR_SHR_U:
      return is_right && shift_right(f, v, n, depth, out);
    case VYRE__LIR_DIV_U:
      return is_right && is_power && shift_right(f, v, zeros_of(n), depth, out);
    case VYRE__LIR_REM_U:
      return is_right && is_power &&
             combine(f, VYRE__LIR_AND, v, n - 1, depth, out);
    default:
      return false;
  }
}

static bool find(const finder *f, vyre__val v, unsigned depth,
                 vyre__lane_offsets *out) {
  const vyre__lir_inst *inst = &f->kernel->code[v];
  vyre__lane_shape s = vyre__lane_shape_of(f->shapes, v);
  if (inst->type != VYRE_TYPE_U32 || depth == MAX_DEPTH) return false;
  if (s.kind == VYRE__LANE_SHAPE_VARYING) {
    return find_operation(f, inst, depth + 1, out);
  }
  bool is_constant = s.kind == VYRE__LANE_SHAPE_CONSTANT;
  bool is_linear = s.kind == VYRE__LANE_SHAPE_LINEAR;
  out->aligned = is_constant ? BITS : min_of(s.aligned, BITS);
  for (uint32_t k = 0; k < f->shapes->width; k++) {
    out->lane[k] = is_constant ? (uint32_t)s.stride
                   : is_linear ? (uint32_t)(k * s.stride)
                               : 0;
  }
  return true;
}

bool vyre__lane_offsets_find(const vyre__lir_kernel *kernel,
                             const vyre__lane_shapes *shapes, vyre__val v,
                             vyre__lane_offsets *out) {
  const finder f = {kernel, shapes};
  if (shapes->width > VYRE__MAX_LANES) return false;
  return find(&f, v, 0, out);
}

bool vyre__lane_span_find(const vyre__lane_offsets *offsets, uint32_t width,
                          uint32_t max, vyre__lane_span *out) {
  int32_t low = INT32_MAX, high = INT32_MIN;
  for (uint32_t k = 0; k < width; k++) {
    int32_t lane = (int32_t)offsets->lane[k];
    low = lane < low ? lane : low;
    high = lane > high ? lane : high;
  }
  int64_t count = (int64_t)high - low + 1;
  *out = (vyre__lane_span){.first = low, .is_single = true};
  if (count > max) return false;
  out->count = (uint32_t)count;
  for (uint32_t k = 0; k < width; k++) {
    for (uint32_t j = 0; j < k; j++) {
      out->is_single &= offsets->lane[j] != offsets->lane[k];
    }
  }
  return true;
}
