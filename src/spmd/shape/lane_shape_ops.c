/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Computes the lane shapes of operations.
 *
 * Bits of a linear value: lane k has base + k * stride. If base is a multiple
 * of 2^a and all k * stride are below 2^a, no carry occurs: the low a bits are
 * those of k * stride, the others those of the base. */
#include "spmd/shape/lane_shape_internal.h"

unsigned vyre__lane_shape_bits(vyre_type type) {
  switch (type) {
    case VYRE_TYPE_BOOL:
      return 1;
    case VYRE_TYPE_U64:
    case VYRE_TYPE_F64:
      return 64;
    default:
      return 32;
  }
}

static bool is_integer(vyre_type type) {
  return type == VYRE_TYPE_U32 || type == VYRE_TYPE_U64;
}

static uint64_t low_bits(unsigned count) {
  return count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

/* Returns the number of bits up to the highest set bit. */
static unsigned length_of(uint64_t number) {
  return number ? 64u - (unsigned)__builtin_clzll(number) : 0;
}

/* Returns the number of trailing zeros; @p bits for 0. */
static unsigned zeros_of(uint64_t number, unsigned bits) {
  unsigned zeros = number ? (unsigned)__builtin_ctzll(number) : bits;
  return zeros < bits ? zeros : bits;
}

static unsigned min_of(unsigned a, unsigned b) {
  return a < b ? a : b;
}

static unsigned max_of(unsigned a, unsigned b) {
  return a > b ? a : b;
}

/* --- joining shapes ------------------------------------------------------- */

vyre__lane_shape vyre__lane_shape_join(vyre__lane_shape a, vyre__lane_shape b) {
  if (a.kind == SHAPE_UNSEEN) return b;
  if (b.kind == SHAPE_UNSEEN || shape_equal(a, b)) return a;
  unsigned aligned = min_of(a.aligned, b.aligned);
  if (vyre__lane_shape_is_uniform(a) && vyre__lane_shape_is_uniform(b)) {
    unsigned kind = max_of(max_of(a.kind, b.kind), VYRE__LANE_SHAPE_GROUP);
    return shape_make((vyre__lane_shape_kind)kind, aligned, 0);
  }
  if (a.kind == VYRE__LANE_SHAPE_LINEAR && b.kind == VYRE__LANE_SHAPE_LINEAR &&
      a.stride == b.stride) {
    return shape_make(VYRE__LANE_SHAPE_LINEAR, aligned, a.stride);
  }
  return shape_varying();
}

vyre__lane_shape vyre__lanes_diverge(vyre__lane_shape s) {
  if (s.kind != VYRE__LANE_SHAPE_GROUP) return s;
  return shape_make(VYRE__LANE_SHAPE_VECTOR, s.aligned, 0);
}

/* Returns LINEAR, or VECTOR if the stride is 0. */
static vyre__lane_shape linear(uint64_t stride, unsigned aligned,
                               unsigned bits) {
  stride &= low_bits(bits);
  aligned = min_of(aligned, bits);
  return shape_make(stride ? VYRE__LANE_SHAPE_LINEAR : VYRE__LANE_SHAPE_VECTOR,
                    aligned, stride);
}

static vyre__lane_shape vector(unsigned aligned, unsigned bits) {
  return shape_make(VYRE__LANE_SHAPE_VECTOR, min_of(aligned, bits), 0);
}

/* --- ids ------------------------------------------------------------------ */

vyre__lane_shape vyre__lane_shape_local_id(const uint32_t workgroup[3],
                                           unsigned axis, shape_lanes lanes) {
  uint32_t x = workgroup[0], row = x * workgroup[1], width = lanes.width;
  if (workgroup[axis] == 1) return shape_make(VYRE__LANE_SHAPE_CONSTANT, 32, 0);
  if (lanes.count == 1) return shape_make(VYRE__LANE_SHAPE_VECTOR, 0, 0);
  bool is_line = workgroup[1] == 1 && workgroup[2] == 1;
  if (axis == 0 && (is_line || x % width == 0)) {
    bool is_first = x == width || (is_line && x < width);
    if (lanes.is_anywhere) return linear(1, 0, 32);
    return linear(1, is_first ? 32 : (unsigned)__builtin_ctz(width), 32);
  }
  /* Rows or planes fill full vectors. */
  uint32_t inside = axis == 1 ? x : row;
  if (axis > 0 && inside % width == 0) {
    return shape_make(VYRE__LANE_SHAPE_VECTOR, 0, 0);
  }
  return shape_varying();
}

bool vyre__lane_shape_needs_sums(const uint32_t workgroup[3],
                                 shape_lanes lanes) {
  return lanes.count > 1 && workgroup[0] % lanes.width != 0 &&
         (workgroup[1] > 1 || workgroup[2] > 1);
}

static shape_sum scaled(shape_sum s, uint64_t by) {
  for (unsigned i = 0; i < 3; i++) s.by[i] *= (uint32_t)by;
  s.aligned = (uint8_t)min_of(s.aligned + zeros_of(by, 32), 32);
  return s;
}

static shape_sum added(shape_sum a, shape_sum b) {
  for (unsigned i = 0; i < 3; i++) a.by[i] += b.by[i];
  a.aligned = (uint8_t)min_of(a.aligned, b.aligned);
  a.is_known &= b.is_known;
  return a;
}

shape_sum vyre__lane_shape_sum_of(const vyre__lir_inst *inst,
                                  vyre__lane_shape shape,
                                  const vyre__lane_shape operands[2],
                                  const shape_sum sums[2]) {
  shape_sum none = {{0, 0, 0}, 0, false};
  bool is_number = operands[1].kind == VYRE__LANE_SHAPE_CONSTANT;
  if (inst->type != VYRE_TYPE_U32) return none;
  if (vyre__lane_shape_is_uniform(shape)) {
    return (shape_sum){{0, 0, 0}, shape.aligned, true};
  }
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_LOCAL_ID:
      none.by[inst->aux] = 1;
      none.aligned = 32;
      none.is_known = true;
      return none;
    case VYRE__LIR_ADD:
      return added(sums[0], sums[1]);
    case VYRE__LIR_SUB:
      return added(sums[0], scaled(sums[1], UINT32_MAX));
    case VYRE__LIR_SHL:
      if (!is_number || operands[1].stride >= 32) return none;
      return scaled(sums[0], UINT64_C(1) << operands[1].stride);
    case VYRE__LIR_MUL:
      if (is_number) return scaled(sums[0], operands[1].stride);
      if (operands[0].kind != VYRE__LANE_SHAPE_CONSTANT) return none;
      return scaled(sums[1], operands[0].stride);
    default:
      return none;
  }
}

vyre__lane_shape vyre__lane_shape_of_sum(shape_sum sum,
                                         const uint32_t workgroup[3],
                                         shape_lanes lanes) {
  uint32_t stride = sum.by[0], x = workgroup[0], row = x * workgroup[1];
  unsigned aligned = sum.aligned;
  if (!sum.is_known) return shape_varying();
  if (workgroup[1] > 1 && sum.by[1] != stride * x) return shape_varying();
  if (workgroup[2] > 1 && row % lanes.width == 0) {
    /* z is equal for the vector */
    aligned = min_of(aligned, zeros_of(sum.by[2], 32));
  } else if (workgroup[2] > 1 && sum.by[2] != stride * row) {
    return shape_varying();
  }
  /* Lane 0 is a multiple of `width`, in the workgroup or in its plane. */
  if (row * workgroup[2] > lanes.width) {
    unsigned first = (unsigned)__builtin_ctz(lanes.width);
    aligned = min_of(aligned, first + zeros_of(stride, 32));
  }
  return linear(stride, aligned, 32);
}

/* --- integers ------------------------------------------------------------- */

/* Computes the bits that k * stride may set in a linear value without carries.
 * Returns false for other values. */
static bool moving_bits(vyre__lane_shape s, unsigned bits, shape_lanes lanes,
                        uint64_t *out) {
  if (!vyre__lane_shape_stays(s, bits, lanes.count)) return false;
  uint64_t last = s.stride * (lanes.count - 1);
  *out = low_bits(length_of(last)) & ~low_bits(zeros_of(s.stride, bits));
  return true;
}

/* Returns true if the @p moving bits of a uniform value are known, and which of
 * them are set. */
static bool known_bits(vyre__lane_shape s, uint64_t moving, uint64_t *out) {
  if (s.kind == VYRE__LANE_SHAPE_CONSTANT) {
    *out = s.stride & moving;
    return true;
  }
  *out = 0;
  return vyre__lane_shape_is_uniform(s) && length_of(moving) <= s.aligned;
}

/* Computes AND, OR, XOR of a linear and a uniform value. */
static vyre__lane_shape bitwise(vyre__lir_op op, vyre__lane_shape a,
                                vyre__lane_shape b, unsigned bits,
                                shape_lanes lanes) {
  uint64_t moving, set;
  if (!moving_bits(a, bits, lanes, &moving) || !known_bits(b, moving, &set)) {
    return shape_varying();
  }
  if (op != VYRE__LIR_AND) {
    unsigned aligned = min_of(a.aligned, b.aligned);
    if (set == 0) return linear(a.stride, aligned, bits);
    return op == VYRE__LIR_OR && set == moving ? vector(aligned, bits)
                                               : shape_varying();
  }
  unsigned aligned = max_of(a.aligned, b.aligned);
  if (b.kind == VYRE__LANE_SHAPE_CONSTANT && length_of(b.stride) <= a.aligned) {
    aligned = bits; /* no bit of the base remains */
  }
  if (set == 0) return vector(aligned, bits);
  return set == moving ? linear(a.stride, aligned, bits) : shape_varying();
}

/* Shifts a linear value right. */
static vyre__lane_shape shifted(vyre__lane_shape a, uint64_t by, bool is_signed,
                                unsigned bits, shape_lanes lanes) {
  uint64_t moving;
  /* The base determines the sign. */
  if (!moving_bits(a, bits - is_signed, lanes, &moving) || by >= bits) {
    return shape_varying();
  }
  unsigned left = a.aligned > by ? a.aligned - (unsigned)by : 0;
  if (a.aligned >= bits) left = bits;
  if (length_of(moving) <= by) return vector(left, bits);
  if (zeros_of(a.stride, bits) < by) return shape_varying();
  return linear(a.stride >> by, left, bits);
}

/* Returns true if a comparison is uniform. Without carries, a block of 2^n
 * values that begins at a multiple of 2^n is completely below a multiple of 2^n
 * or not at all. */
static bool compares_uniformly(vyre__lir_op op, const vyre__lane_shape s[2],
                               unsigned bits, shape_lanes lanes) {
  bool is_left = s[0].kind == VYRE__LANE_SHAPE_LINEAR;
  vyre__lane_shape a = s[!is_left], b = s[is_left];
  bool is_signed = op == VYRE__LIR_LT_S || op == VYRE__LIR_LE_S;
  bool is_less = op == VYRE__LIR_LT_S || op == VYRE__LIR_LT_U;
  uint64_t moving;
  if (!vyre__lane_shape_is_uniform(b) ||
      !moving_bits(a, bits - is_signed, lanes, &moving)) {
    return false;
  }
  unsigned size = length_of(moving);
  /* a < b, and b <= a, its opposite. For the other two, b + 1 counts. */
  if (is_left == is_less) return b.aligned >= size;
  return b.kind == VYRE__LANE_SHAPE_CONSTANT &&
         ((b.stride + 1) & low_bits(size)) == 0;
}

/* --- shapes of operations ------------------------------------------------- */

/* Returns the trailing zeros of a result of uniform operands. */
static unsigned uniform_zeros(const vyre__lir_inst *inst,
                              const vyre__lane_shape *s, unsigned bits) {
  unsigned a = s[0].aligned, b = s[1].aligned;
  uint64_t by = s[1].stride;
  bool is_known = s[1].kind == VYRE__LANE_SHAPE_CONSTANT;
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_ADD:
    case VYRE__LIR_SUB:
    case VYRE__LIR_OR:
    case VYRE__LIR_XOR:
    case VYRE__LIR_MIN_U:
    case VYRE__LIR_MIN_S:
    case VYRE__LIR_MAX_U:
    case VYRE__LIR_MAX_S:
      return min_of(a, b);
    case VYRE__LIR_MUL:
      return min_of(a + b, bits);
    case VYRE__LIR_AND:
      return max_of(a, b);
    case VYRE__LIR_SHL:
      return is_known ? (unsigned)(a + by < bits ? a + by : bits) : a;
    case VYRE__LIR_SHR_U:
    case VYRE__LIR_SHR_S:
      if (a >= bits) return bits;
      return is_known && by < a ? a - (unsigned)by : 0;
    case VYRE__LIR_ZEXT:
    case VYRE__LIR_SEXT:
      return a >= 32 ? bits : a;
    case VYRE__LIR_TRUNC:
      return min_of(a, bits);
    default:
      return 0;
  }
}

/* Computes ADD, SUB, MUL and similar with one linear operand. */
static vyre__lane_shape arithmetic(const vyre__lir_inst *inst,
                                   const vyre__lane_shape *s, unsigned bits) {
  bool is_known = s[1].kind == VYRE__LANE_SHAPE_CONSTANT;
  uint64_t by = s[1].stride;
  uint64_t first = s[0].kind == VYRE__LANE_SHAPE_LINEAR ? s[0].stride : 0;
  uint64_t second = s[1].kind == VYRE__LANE_SHAPE_LINEAR ? s[1].stride : 0;
  unsigned aligned = uniform_zeros(inst, s, bits);
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_ADD:
      return linear(first + second, aligned, bits);
    case VYRE__LIR_SUB:
      return linear(first - second, aligned, bits);
    case VYRE__LIR_NOT: /* -1 - a */
      return linear(0 - first, 0, bits);
    case VYRE__LIR_SHL:
      if (!is_known || by >= bits) break;
      return linear(first << by, aligned, bits);
    case VYRE__LIR_MUL:
      if (is_known) return linear(first * by, aligned, bits);
      if (s[0].kind != VYRE__LANE_SHAPE_CONSTANT) break;
      return linear(second * s[0].stride, aligned, bits);
    case VYRE__LIR_TRUNC:
      return linear(first, aligned, bits);
    default:
      break;
  }
  return shape_varying();
}

/* Handles operations with at least one linear operand; the others are linear or
 * uniform. */
static vyre__lane_shape of_linear(const vyre__lir_inst *inst, vyre_type from,
                                  const vyre__lane_shape *s,
                                  shape_lanes lanes) {
  unsigned bits = vyre__lane_shape_bits(from);
  bool is_first = s[0].kind == VYRE__LANE_SHAPE_LINEAR;
  bool is_known = s[1].kind == VYRE__LANE_SHAPE_CONSTANT;
  uint64_t by = s[1].stride, power = is_known && by ? by & (by - 1) : 1;
  vyre__lane_shape mask;
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_AND:
    case VYRE__LIR_OR:
    case VYRE__LIR_XOR:
      return bitwise((vyre__lir_op)inst->op, s[!is_first], s[is_first], bits,
                     lanes);
    case VYRE__LIR_REM_U:
      if (power != 0) break;
      mask =
          shape_make(VYRE__LANE_SHAPE_CONSTANT, zeros_of(by - 1, bits), by - 1);
      return bitwise(VYRE__LIR_AND, s[0], mask, bits, lanes);
    case VYRE__LIR_DIV_U:
      if (power != 0) break;
      return shifted(s[0], zeros_of(by, bits), false, bits, lanes);
    case VYRE__LIR_SHR_U:
    case VYRE__LIR_SHR_S:
      if (!is_known) break;
      return shifted(s[0], by, inst->op == VYRE__LIR_SHR_S, bits, lanes);
    case VYRE__LIR_LT_U:
    case VYRE__LIR_LT_S:
    case VYRE__LIR_LE_U:
    case VYRE__LIR_LE_S:
      if (!compares_uniformly((vyre__lir_op)inst->op, s, bits, lanes)) break;
      return vector(0, 1);
    case VYRE__LIR_ZEXT:
    case VYRE__LIR_SEXT:
      if (!vyre__lane_shape_stays(s[0], bits - (inst->op == VYRE__LIR_SEXT),
                                  lanes.count)) {
        break;
      }
      return linear(s[0].stride, s[0].aligned >= bits ? 64 : s[0].aligned, 64);
    default:
      return arithmetic(inst, s, vyre__lane_shape_bits((vyre_type)inst->type));
  }
  return shape_varying();
}

static vyre__lane_shape of_select(const vyre__lane_shape s[3]) {
  if (!vyre__lane_shape_is_uniform(s[0])) return shape_varying();
  vyre__lane_shape both = vyre__lane_shape_join(s[1], s[2]);
  return s[0].kind == VYRE__LANE_SHAPE_VECTOR ? vyre__lanes_diverge(both)
                                              : both;
}

vyre__lane_shape vyre__lane_shape_pure(const vyre__lir_inst *inst,
                                       vyre_type from,
                                       const vyre__lane_shape operands[3],
                                       shape_lanes lanes) {
  unsigned count = vyre__lir_ops[inst->op].operands;
  unsigned kind = VYRE__LANE_SHAPE_GROUP;
  for (unsigned i = 0; i < count; i++) {
    if (operands[i].kind == SHAPE_UNSEEN) return shape_unseen();
    kind = max_of(kind, operands[i].kind);
  }
  if (inst->op == VYRE__LIR_SELECT) return of_select(operands);
  if (kind == VYRE__LANE_SHAPE_VARYING) return shape_varying();
  if (kind == VYRE__LANE_SHAPE_LINEAR) {
    return is_integer(from) ? of_linear(inst, from, operands, lanes)
                            : shape_varying();
  }
  unsigned bits = vyre__lane_shape_bits((vyre_type)inst->type);
  bool has_zeros = is_integer(from) && is_integer((vyre_type)inst->type);
  return shape_make((vyre__lane_shape_kind)kind,
                    has_zeros ? uniform_zeros(inst, operands, bits) : 0, 0);
}
