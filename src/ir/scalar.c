/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "ir/scalar.h"

#include "ir/scalar_ops.h"

/* --- 16-bit floats ---------------------------------------------------------*/

uint32_t vyre__f16_to_f32(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
  uint32_t exponent = bits >> 10 & 31;
  uint32_t fraction = bits & 0x3FF;
  if (exponent == 31) return sign | 0x7F800000 | fraction << 13;
  if (exponent > 0) return sign | (exponent + 112) << 23 | fraction << 13;
  if (fraction == 0) return sign;
  /* A subnormal f16, fraction * 2^-24, is a normal f32. Its highest bit moves
   * to bit 10, the position of the implicit one. */
  uint32_t shift = (uint32_t)__builtin_clz(fraction) - 21;
  fraction = fraction << shift & 0x3FF;
  return sign | (113 - shift) << 23 | fraction << 13;
}

/* Returns value / 2^shift, ties to even; @p shift is 1 to 31. */
static uint32_t shift_even(uint32_t value, uint32_t shift) {
  uint32_t kept = value >> shift;
  uint32_t rest = value & ((UINT32_C(1) << shift) - 1);
  uint32_t half = UINT32_C(1) << (shift - 1);
  return kept + (rest > half || (rest == half && (kept & 1)));
}

uint16_t vyre__f32_to_f16(uint32_t bits) {
  uint32_t sign = bits >> 16 & 0x8000;
  uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return VYRE__NAN_F16;
  if (magnitude >= 0x47800000) return (uint16_t)(sign | 0x7C00); /* 2^16 */
  /* 2^-14: normal; a carry into the exponent is correct */
  if (magnitude >= 0x38800000) {
    return (uint16_t)(sign | shift_even(magnitude - 0x38000000, 13));
  }
  if (magnitude < 0x33000000) return (uint16_t)sign; /* below 2^-25 */
  uint32_t fraction = (magnitude & 0x7FFFFF) | 0x800000;
  return (uint16_t)(sign | shift_even(fraction, 126 - (magnitude >> 23)));
}

/* --- elements --------------------------------------------------------------*/

uint64_t vyre__element_load(vyre_element element, const void *memory) {
  const unsigned char *byte = memory;
  uint16_t half;
  uint32_t word;
  uint64_t wide;
  switch (vyre_element_size(element)) {
    case 2:
      memcpy(&half, memory, sizeof half);
      if (element == VYRE_ELEMENT_F16) return vyre__f16_to_f32(half);
      if (element == VYRE_ELEMENT_BF16) return vyre__bf16_to_f32(half);
      return element == VYRE_ELEMENT_I16 ? vyre__of_i32((int16_t)half) : half;
    case 4:
      memcpy(&word, memory, sizeof word);
      return word;
    case 8:
      memcpy(&wide, memory, sizeof wide);
      return wide;
    default: /* 1, and `bytes` */
      if (element == VYRE_ELEMENT_BOOL) return *byte != 0;
      return element == VYRE_ELEMENT_I8 ? vyre__of_i32((int8_t)*byte) : *byte;
  }
}

void vyre__element_store(vyre_element element, void *memory, uint64_t value) {
  uint16_t half = (uint16_t)value;
  uint32_t word = (uint32_t)value;
  switch (vyre_element_size(element)) {
    case 2:
      if (element == VYRE_ELEMENT_F16) half = vyre__f32_to_f16(word);
      if (element == VYRE_ELEMENT_BF16) half = vyre__f32_to_bf16(word);
      memcpy(memory, &half, sizeof half);
      return;
    case 4:
      if (element == VYRE_ELEMENT_F32) {
        word = (uint32_t)vyre__canonical_f32(value);
      }
      memcpy(memory, &word, sizeof word);
      return;
    case 8:
      if (element == VYRE_ELEMENT_F64) value = vyre__canonical_f64(value);
      memcpy(memory, &value, sizeof value);
      return;
    default:
      *(unsigned char *)memory = (unsigned char)value;
      return;
  }
}

/* --- single operations -----------------------------------------------------*/

#define CASE(type, name, value) \
  case VYRE__OP_##name:         \
    return *out = (value), true;

/* Not inlined: the compiler must not move float operations across the change
 * of the floating-point environment. */
#define EVAL(NAME, C, type)                                 \
  __attribute__((noinline)) static bool eval_##NAME(        \
      vyre__op op, const uint64_t args[3], uint64_t *out) { \
    C x = vyre__##type(args[0]), y = vyre__##type(args[1]); \
    C z = vyre__##type(args[2]);                            \
    (void)z;                                                \
    switch (op) {                                           \
      default:                                              \
        return false;                                       \
        VYRE__##NAME##_OPS(CASE)                            \
    }                                                       \
  }
/* Several operations compute the same, such as xor and inequality of bools. */
VYRE__SCALAR_TYPES(EVAL) /* NOLINT(bugprone-branch-clone) */

/* --- casts -----------------------------------------------------------------*/

#define CAST_FLOAT_CASES(f)                     \
  case VYRE_TYPE_BOOL:                          \
    return x != 0;                              \
  case VYRE_TYPE_U32:                           \
    return vyre__##f##_to_u32(x);               \
  case VYRE_TYPE_I32:                           \
    return vyre__of_i32(vyre__##f##_to_i32(x)); \
  case VYRE_TYPE_U64:                           \
    return vyre__##f##_to_u64(x);               \
  case VYRE_TYPE_I64:                           \
    return vyre__of_i64(vyre__##f##_to_i64(x)); \
  case VYRE_TYPE_F32:                           \
    return vyre__of_f32((float)x);              \
  default:                                      \
    return vyre__of_f64((double)x);

static uint64_t cast_f32(vyre_type to, float x) {
  switch (to) { CAST_FLOAT_CASES(f32) }
}

static uint64_t cast_f64(vyre_type to, double x) {
  switch (to) { CAST_FLOAT_CASES(f64) }
}

/* @p value is sign-extended or zero-extended to 64 bits. Conversions to f32
 * round once, from all 64 bits, in both supported compilers. */
static uint64_t cast_integer(vyre_type to, uint64_t value, bool is_signed) {
  switch (to) {
    case VYRE_TYPE_BOOL:
      return value != 0;
    case VYRE_TYPE_U32:
    case VYRE_TYPE_I32:
      return (uint32_t)value;
    case VYRE_TYPE_F32:
      return vyre__of_f32(is_signed ? (float)(int64_t)value : (float)value);
    case VYRE_TYPE_F64:
      return vyre__of_f64(is_signed ? (double)(int64_t)value : (double)value);
    default:
      return value;
  }
}

__attribute__((noinline)) static uint64_t cast(vyre_type from, vyre_type to,
                                               uint64_t value) {
  switch (from) {
    case VYRE_TYPE_F32:
      return cast_f32(to, vyre__f32(value));
    case VYRE_TYPE_F64:
      return cast_f64(to, vyre__f64(value));
    case VYRE_TYPE_I32:
      return cast_integer(to, (uint64_t)(int64_t)vyre__i32(value), true);
    case VYRE_TYPE_I64:
      return cast_integer(to, value, true);
    default:
      return cast_integer(to, value, false);
  }
}

static bool is_register(vyre_type type) {
  return type > VYRE_TYPE_VOID && type < VYRE_TYPE_COUNT;
}

bool vyre__scalar_apply(vyre__op op, vyre_type from, vyre_type to,
                        const uint64_t args[3], uint64_t *out) {
  switch (op) {
    case VYRE__OP_CAST:
      return *out = cast(from, to, args[0]), true;
    case VYRE__OP_BITCAST:
      if (from == VYRE_TYPE_BOOL || to == VYRE_TYPE_BOOL) return false;
      if (vyre__is_wide(from) != vyre__is_wide(to)) return false;
      return *out = vyre__canonical(from, args[0]), true;
    case VYRE__OP_SELECT:
    case VYRE__OP_COND:
      return *out = args[0] ? args[1] : args[2], true;
    case VYRE__OP_UNIFORM:
      return *out = args[0], true;
    default:
      break;
  }
  switch (from) {
#define EVAL_TYPE(NAME, C, type) \
  case VYRE_TYPE_##NAME:         \
    return eval_##NAME(op, args, out);
    VYRE__SCALAR_TYPES(EVAL_TYPE)
    default:
      return false;
  }
}

void vyre__float_begin(fenv_t *saved) {
  fegetenv(saved);
  fesetenv(FE_DFL_ENV);
}

void vyre__float_end(const fenv_t *saved) {
  fesetenv(saved);
}

bool vyre__scalar_eval(vyre__op op, vyre_type operand_type,
                       vyre_type result_type, const uint64_t args[3],
                       uint64_t *out) {
  if (!is_register(operand_type) || !is_register(result_type)) return false;
  /* Integer operations do not depend on the environment, and a compiler folds
   * many of them. */
  bool floats = vyre__is_float(operand_type) || vyre__is_float(result_type);
  uint64_t value = 0;
  fenv_t saved;
  if (floats) vyre__float_begin(&saved);
  bool good = vyre__scalar_apply(op, operand_type, result_type, args, &value);
  if (floats) vyre__float_end(&saved);
  if (good) *out = vyre__canonical(result_type, value);
  return good;
}
