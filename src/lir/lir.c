/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Table of the LIR operations from ops.def, and their evaluation on
 * constants. */
#include "lir/lir.h"

#include "ir/scalar.h"

enum {
  LIRF_0 = 0,
  LIRF_PURE = VYRE__LIRF_PURE,
  LIRF_PURE_HIGH = VYRE__LIRF_PURE_HIGH,
  LIRF_READS = VYRE__LIRF_READS,
  LIRF_WRITES = VYRE__LIRF_WRITES,
  LIRF_ATOMICS = VYRE__LIRF_ATOMICS,
  LIRF_CONTROL = VYRE__LIRF_CONTROL,
  LIRF_JUMPS = VYRE__LIRF_JUMPS,
  LIRF_BARRIER = VYRE__LIRF_BARRIER,
  LIRF_GRID_BARRIER = VYRE__LIRF_GRID_BARRIER,
  LIRF_WRITES_VAR = VYRE__LIRF_WRITES_VAR,
};

const vyre__lir_info vyre__lir_ops[VYRE__LIR_COUNT] = {
#define LIR(name, text, operands, flags) \
  [VYRE__LIR_##name] = {#name, text, operands, LIRF_##flags},
#include "lir/ops.def"
#undef LIR
};

uint32_t vyre__lir_max_elements(const vyre__lir_buffer *buffer) {
  unsigned places =
      buffer->unit > buffer->width ? buffer->unit / buffer->width : 1;
  return UINT32_MAX / places;
}

bool vyre__lir_buffer_fits(const vyre__lir_buffer *buffer, uint64_t elements) {
  return elements >= buffer->count &&
         elements <= vyre__lir_max_elements(buffer);
}

uint32_t vyre__lir_max_groups(const vyre__lir_kernel *kernel, unsigned axis) {
  uint32_t size = kernel->workgroup[axis];
  if (size < 2) return UINT32_MAX;
  for (uint32_t i = 1; i < kernel->count; i++) {
    const vyre__lir_inst *inst = &kernel->code[i];
    if (inst->op != VYRE__LIR_GROUP_ID || inst->aux != axis) continue;
    return (uint32_t)(((uint64_t)1 << 32) / size);
  }
  return UINT32_MAX;
}

bool vyre__lir_spill_words(const vyre__lir_kernel *kernel, uint64_t invocations,
                           uint64_t *words) {
  *words = 0;
  if (kernel->spill_buffer == VYRE_NO_INDEX) return true;
  if (invocations > vyre__lir_max_invocations(kernel)) return false;
  *words = invocations * kernel->spill_words;
  return true;
}

static bool eval_u32(vyre__lir_op op, uint32_t a, uint32_t b, uint64_t *out) {
  switch (op) {
#define CASE(name, expression) \
  case VYRE__LIR_##name:       \
    return *out = (uint32_t)(expression), true;
    CASE(ADD, a + b)
    CASE(SUB, a - b)
    CASE(MUL, a * b)
    CASE(DIV_U, vyre__div_u32(a, b))
    CASE(REM_U, vyre__rem_u32(a, b))
    CASE(DIV_S, vyre__div_i32((int32_t)a, (int32_t)b))
    CASE(REM_S, vyre__rem_i32((int32_t)a, (int32_t)b))
    CASE(AND, a & b)
    CASE(OR, a | b)
    CASE(XOR, a ^ b)
    CASE(NOT, ~a)
    CASE(SHL, a << (b & 31))
    CASE(SHR_U, a >> (b & 31))
    CASE(SHR_S, (int32_t)a >> (b & 31))
    CASE(CLZ, vyre__clz_u32(a))
    CASE(CTZ, vyre__ctz_u32(a))
    CASE(POPCOUNT, vyre__popcount_u32(a))
    CASE(MIN_U, a < b ? a : b)
    CASE(MAX_U, a > b ? a : b)
    CASE(MIN_S, (int32_t)a < (int32_t)b ? a : b)
    CASE(MAX_S, (int32_t)a > (int32_t)b ? a : b)
    CASE(EQ, a == b)
    CASE(NE, a != b)
    CASE(LT_U, a < b)
    CASE(LE_U, a <= b)
    CASE(LT_S, (int32_t)a < (int32_t)b)
    CASE(LE_S, (int32_t)a <= (int32_t)b)
#undef CASE
    default:
      return false;
  }
}

static bool eval_u64(vyre__lir_op op, uint64_t a, uint64_t b, uint64_t *out) {
  switch (op) {
#define CASE(name, expression) \
  case VYRE__LIR_##name:       \
    return *out = (uint64_t)(expression), true;
    CASE(ADD, a + b)
    CASE(SUB, a - b)
    CASE(MUL, a * b)
    CASE(DIV_U, vyre__div_u64(a, b))
    CASE(REM_U, vyre__rem_u64(a, b))
    CASE(DIV_S, vyre__div_i64((int64_t)a, (int64_t)b))
    CASE(REM_S, vyre__rem_i64((int64_t)a, (int64_t)b))
    CASE(AND, a & b)
    CASE(OR, a | b)
    CASE(XOR, a ^ b)
    CASE(NOT, ~a)
    CASE(SHL, a << (b & 63))
    CASE(SHR_U, a >> (b & 63))
    CASE(SHR_S, (int64_t)a >> (b & 63))
    CASE(CLZ, vyre__clz_u64(a))
    CASE(CTZ, vyre__ctz_u64(a))
    CASE(POPCOUNT, vyre__popcount_u64(a))
    CASE(MIN_U, a < b ? a : b)
    CASE(MAX_U, a > b ? a : b)
    CASE(MIN_S, (int64_t)a < (int64_t)b ? a : b)
    CASE(MAX_S, (int64_t)a > (int64_t)b ? a : b)
    CASE(EQ, a == b)
    CASE(NE, a != b)
    CASE(LT_U, a < b)
    CASE(LE_U, a <= b)
    CASE(LT_S, (int64_t)a < (int64_t)b)
    CASE(LE_S, (int64_t)a <= (int64_t)b)
#undef CASE
    default:
      return false;
  }
}

static bool eval_bool(vyre__lir_op op, uint64_t a, uint64_t b, uint64_t *out) {
  switch (op) {
    case VYRE__LIR_AND:
      return *out = a & b, true;
    case VYRE__LIR_OR:
      return *out = a | b, true;
    case VYRE__LIR_XOR:
    case VYRE__LIR_NE:
      return *out = a ^ b, true;
    case VYRE__LIR_EQ:
      return *out = a == b, true;
    case VYRE__LIR_NOT:
      return *out = !a, true;
    case VYRE__LIR_AGREE:
      return *out = a, true;
    default:
      return false;
  }
}

#define FLOATS(F, f)                                                    \
  static bool eval_##f(vyre__lir_op op, F a, F b, F c, uint64_t *out) { \
    switch (op) {                                                       \
      case VYRE__LIR_FADD:                                              \
        return *out = vyre__of_##f(a + b), true;                        \
      case VYRE__LIR_FSUB:                                              \
        return *out = vyre__of_##f(a - b), true;                        \
      case VYRE__LIR_FMUL:                                              \
        return *out = vyre__of_##f(a * b), true;                        \
      case VYRE__LIR_FDIV:                                              \
        return *out = vyre__of_##f(a / b), true;                        \
      case VYRE__LIR_FSQRT:                                             \
        return *out = vyre__of_##f(vyre__sqrt_##f(a)), true;            \
      case VYRE__LIR_FMA:                                               \
        return *out = vyre__of_##f(vyre__fma_##f(a, b, c)), true;       \
      case VYRE__LIR_FFLOOR:                                            \
        return *out = vyre__of_##f(vyre__floor_##f(a)), true;           \
      case VYRE__LIR_FCEIL:                                             \
        return *out = vyre__of_##f(vyre__ceil_##f(a)), true;            \
      case VYRE__LIR_FTRUNC:                                            \
        return *out = vyre__of_##f(vyre__trunc_##f(a)), true;           \
      case VYRE__LIR_FRINT:                                             \
        return *out = vyre__of_##f(vyre__rint_##f(a)), true;            \
      case VYRE__LIR_FROUND:                                            \
        return *out = vyre__of_##f(vyre__round_##f(a)), true;           \
      case VYRE__LIR_FMIN:                                              \
        return *out = vyre__of_##f(vyre__min_##f(a, b)), true;          \
      case VYRE__LIR_FMAX:                                              \
        return *out = vyre__of_##f(vyre__max_##f(a, b)), true;          \
      case VYRE__LIR_FEQ:                                               \
        return *out = a == b, true;                                     \
      case VYRE__LIR_FNE:                                               \
        return *out = a != b, true;                                     \
      case VYRE__LIR_FLT:                                               \
        return *out = a < b, true;                                      \
      case VYRE__LIR_FLE:                                               \
        return *out = a <= b, true;                                     \
      default:                                                          \
        return false;                                                   \
    }                                                                   \
  }

FLOATS(float, f32)
FLOATS(double, f64)
#undef FLOATS

static bool convert(vyre__lir_op op, vyre_type from, vyre_type type, uint64_t a,
                    uint64_t *out) {
  bool wide = from == VYRE_TYPE_U64, to_f32 = type == VYRE_TYPE_F32;
  bool from_f32 = from == VYRE_TYPE_F32, to_wide = type == VYRE_TYPE_U64;
  switch (op) {
    case VYRE__LIR_ZEXT:
    case VYRE__LIR_BITCAST:
      return *out = a, true;
    case VYRE__LIR_SEXT:
      return *out = (uint64_t)(int64_t)vyre__i32(a), true;
    case VYRE__LIR_TRUNC:
      return *out = (uint32_t)a, true;
    case VYRE__LIR_FNEG:
      return *out = a ^ (from_f32 ? UINT64_C(1) << 31 : UINT64_C(1) << 63),
             true;
    case VYRE__LIR_FABS:
      return *out = a & (from_f32 ? INT32_MAX : INT64_MAX), true;
    case VYRE__LIR_U_TO_F:
      if (to_f32) {
        *out = vyre__of_f32(wide ? (float)a : (float)(uint32_t)a);
      } else {
        *out = vyre__of_f64((double)a);
      }
      return true;
    case VYRE__LIR_S_TO_F:
      if (to_f32) {
        *out = vyre__of_f32(wide ? (float)vyre__i64(a) : (float)vyre__i32(a));
      } else {
        *out = vyre__of_f64(wide ? (double)vyre__i64(a) : vyre__i32(a));
      }
      return true;
    case VYRE__LIR_F_TO_U:
      if (from_f32) {
        *out = to_wide ? vyre__f32_to_u64(vyre__f32(a))
                       : vyre__f32_to_u32(vyre__f32(a));
      } else {
        *out = to_wide ? vyre__f64_to_u64(vyre__f64(a))
                       : vyre__f64_to_u32(vyre__f64(a));
      }
      return true;
    case VYRE__LIR_F_TO_S:
      if (from_f32) {
        *out = to_wide ? vyre__of_i64(vyre__f32_to_i64(vyre__f32(a)))
                       : vyre__of_i32(vyre__f32_to_i32(vyre__f32(a)));
      } else {
        *out = to_wide ? vyre__of_i64(vyre__f64_to_i64(vyre__f64(a)))
                       : vyre__of_i32(vyre__f64_to_i32(vyre__f64(a)));
      }
      return true;
    case VYRE__LIR_F_EXTEND:
      return *out = vyre__of_f64((double)vyre__f32(a)), true;
    case VYRE__LIR_F_ROUND:
      return *out = vyre__of_f32((float)vyre__f64(a)), true;
    default:
      return false;
  }
}

bool vyre__lir_eval(vyre__lir_op op, vyre_type from, vyre_type type,
                    const uint64_t args[3], uint64_t *out) {
  if (op == VYRE__LIR_SELECT) return *out = args[0] ? args[1] : args[2], true;
  if (convert(op, from, type, args[0], out)) return true;
  switch (from) {
    case VYRE_TYPE_BOOL:
      return eval_bool(op, args[0], args[1], out);
    case VYRE_TYPE_U32:
      return eval_u32(op, (uint32_t)args[0], (uint32_t)args[1], out);
    case VYRE_TYPE_U64:
      return eval_u64(op, args[0], args[1], out);
    case VYRE_TYPE_F32:
      return eval_f32(op, vyre__f32(args[0]), vyre__f32(args[1]),
                      vyre__f32(args[2]), out);
    case VYRE_TYPE_F64:
      return eval_f64(op, vyre__f64(args[0]), vyre__f64(args[1]),
                      vyre__f64(args[2]), out);
    default:
      return false;
  }
}
