/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Computes expected results of operations in plain C, as docs/reference/language.md
 * defines them. Shares no code with the library, so that the reference device
 * is tested too. Compiled without contraction: a product and a sum round twice.
 */
#include <math.h>
#include <string.h>

#include "cts/harness/test_values.h"

static float f32_of(uint64_t bits) {
  uint32_t low = (uint32_t)bits;
  float value;
  memcpy(&value, &low, sizeof value);
  return value;
}

static double f64_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint64_t of_f32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return isnan(value) ? 0x7FC00000 : bits;
}

static uint64_t of_f64(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return isnan(value) ? UINT64_C(0x7FF8000000000000) : bits;
}

/* --- Integers
 * ----------------------------------------------------------------- */

/* Extends a value to 64 bits, by sign or by zero. */
static int64_t as_signed(uint64_t bits, unsigned width) {
  return width == 32 ? (int64_t)(int32_t)(uint32_t)bits : (int64_t)bits;
}

static uint64_t divide(uint64_t a, uint64_t b, unsigned width, bool is_signed,
                       bool rest) {
  uint64_t mask = width == 32 ? UINT32_MAX : UINT64_MAX;
  if (b == 0) return rest ? 0 : mask;
  if (!is_signed) return rest ? a % b : a / b;
  int64_t x = as_signed(a, width), y = as_signed(b, width);
  if (y == -1) return rest ? 0 : 0 - (uint64_t)x; /* MIN stays MIN */
  return (uint64_t)(rest ? x % y : x / y);
}

static unsigned bits_of(uint64_t a) {
  unsigned count = 0;
  for (; a; a &= a - 1) count++;
  return count;
}

static unsigned leading(uint64_t a, unsigned width) {
  unsigned count = 0;
  while (count < width && !(a >> (width - 1 - count) & 1)) count++;
  return count;
}

static unsigned trailing(uint64_t a, unsigned width) {
  unsigned count = 0;
  while (count < width && !(a >> count & 1)) count++;
  return count;
}

static bool less(uint64_t a, uint64_t b, unsigned width, bool is_signed) {
  return is_signed ? as_signed(a, width) < as_signed(b, width) : a < b;
}

static bool integer_op(vyre_op op, vyre_type type, const uint64_t v[3],
                       uint64_t *out) {
  unsigned width = cts_is_wide(type) ? 64 : 32;
  bool is_signed = type == VYRE_TYPE_I32 || type == VYRE_TYPE_I64;
  uint64_t a = v[0], b = v[1], shift = b % width;
  bool negative = is_signed && as_signed(a, width) < 0;
  switch (op) {
    case VYRE_OP_NEG:
      *out = 0 - a;
      break;
    case VYRE_OP_BIT_NOT:
      *out = ~a;
      break;
    case VYRE_OP_ABS:
      *out = negative ? 0 - a : a;
      break;
    case VYRE_OP_SIGN:
      *out = negative ? UINT64_MAX : a != 0;
      break;
    case VYRE_OP_CLZ:
      *out = leading(a, width);
      break;
    case VYRE_OP_CTZ:
      *out = trailing(a, width);
      break;
    case VYRE_OP_POPCOUNT:
      *out = bits_of(a);
      break;
    case VYRE_OP_ADD:
      *out = a + b;
      break;
    case VYRE_OP_SUB:
      *out = a - b;
      break;
    case VYRE_OP_MUL:
      *out = a * b;
      break;
    case VYRE_OP_DIV:
      *out = divide(a, b, width, is_signed, false);
      break;
    case VYRE_OP_REM:
      *out = divide(a, b, width, is_signed, true);
      break;
    case VYRE_OP_SHL:
      *out = a << shift;
      break;
    case VYRE_OP_SHR:
      *out = a >> shift;
      if (negative && shift) *out |= UINT64_MAX << (width - shift);
      break;
    case VYRE_OP_LT:
      *out = less(a, b, width, is_signed);
      return true;
    case VYRE_OP_LE:
      *out = !less(b, a, width, is_signed);
      return true;
    case VYRE_OP_GT:
      *out = less(b, a, width, is_signed);
      return true;
    case VYRE_OP_GE:
      *out = !less(a, b, width, is_signed);
      return true;
    case VYRE_OP_MIN:
      *out = less(b, a, width, is_signed) ? b : a;
      break;
    case VYRE_OP_MAX:
      *out = less(a, b, width, is_signed) ? b : a;
      break;
    default:
      return false;
  }
  if (width == 32) *out = (uint32_t)*out;
  return true;
}

/* Computes operations that are defined for every type. */
static bool bits_op(vyre_op op, const uint64_t v[3], uint64_t *out) {
  switch (op) {
    case VYRE_OP_AND:
      *out = v[0] & v[1];
      return true;
    case VYRE_OP_OR:
      *out = v[0] | v[1];
      return true;
    case VYRE_OP_XOR:
      *out = v[0] ^ v[1];
      return true;
    case VYRE_OP_NOT:
      *out = !v[0];
      return true;
    case VYRE_OP_LAND:
      *out = v[0] && v[1];
      return true;
    case VYRE_OP_LOR:
      *out = v[0] || v[1];
      return true;
    default:
      return false;
  }
}

/* --- Floats
 * ------------------------------------------------------------------- */

/* Defines the operations of one float type; C rounds as the type requires. */
#define FLOAT_OP(NAME, TYPE, OF, TO, SUFFIX)                         \
  static TYPE NAME##_smaller(TYPE a, TYPE b) {                       \
    if (isnan(a)) return b;                                          \
    if (isnan(b)) return a;                                          \
    if (a == b) return signbit(a) ? a : b;                           \
    return a < b ? a : b;                                            \
  }                                                                  \
  static bool NAME(vyre_op op, const uint64_t v[3], uint64_t *out) { \
    TYPE a = OF(v[0]), b = OF(v[1]), r;                              \
    switch (op) {                                                    \
      case VYRE_OP_NEG:                                              \
        r = -a;                                                      \
        break;                                                       \
      case VYRE_OP_ABS:                                              \
        r = fabs##SUFFIX(a);                                         \
        break;                                                       \
      case VYRE_OP_SIGN:                                             \
        r = isnan(a) ? a : (TYPE)((a > 0) - (a < 0));                \
        break;                                                       \
      case VYRE_OP_FLOOR:                                            \
        r = floor##SUFFIX(a);                                        \
        break;                                                       \
      case VYRE_OP_CEIL:                                             \
        r = ceil##SUFFIX(a);                                         \
        break;                                                       \
      case VYRE_OP_TRUNC:                                            \
        r = trunc##SUFFIX(a);                                        \
        break;                                                       \
      case VYRE_OP_ROUND:                                            \
        r = round##SUFFIX(a);                                        \
        break;                                                       \
      case VYRE_OP_RINT:                                             \
        r = rint##SUFFIX(a);                                         \
        break;                                                       \
      case VYRE_OP_SQRT:                                             \
        r = sqrt##SUFFIX(a);                                         \
        break;                                                       \
      case VYRE_OP_ADD:                                              \
        r = a + b;                                                   \
        break;                                                       \
      case VYRE_OP_SUB:                                              \
        r = a - b;                                                   \
        break;                                                       \
      case VYRE_OP_MUL:                                              \
        r = a * b;                                                   \
        break;                                                       \
      case VYRE_OP_DIV:                                              \
        r = a / b;                                                   \
        break;                                                       \
      case VYRE_OP_MIN:                                              \
        r = NAME##_smaller(a, b);                                    \
        break;                                                       \
      case VYRE_OP_MAX:                                              \
        r = -NAME##_smaller(-a, -b);                                 \
        break;                                                       \
      case VYRE_OP_FMA:                                              \
        r = fma##SUFFIX(a, b, OF(v[2]));                             \
        break;                                                       \
      case VYRE_OP_EQ:                                               \
        *out = a == b;                                               \
        return true;                                                 \
      case VYRE_OP_NE:                                               \
        *out = a != b;                                               \
        return true;                                                 \
      case VYRE_OP_LT:                                               \
        *out = a < b;                                                \
        return true;                                                 \
      case VYRE_OP_LE:                                               \
        *out = a <= b;                                               \
        return true;                                                 \
      case VYRE_OP_GT:                                               \
        *out = a > b;                                                \
        return true;                                                 \
      case VYRE_OP_GE:                                               \
        *out = a >= b;                                               \
        return true;                                                 \
      default:                                                       \
        return false;                                                \
    }                                                                \
    *out = TO(r);                                                    \
    return true;                                                     \
  }

FLOAT_OP(f32_op, float, f32_of, of_f32, f)
FLOAT_OP(f64_op, double, f64_of, of_f64, )

uint64_t cts_seen(vyre_type type, uint64_t bits) {
  if (type == VYRE_TYPE_F32) return of_f32(f32_of(bits));
  return type == VYRE_TYPE_F64 ? of_f64(f64_of(bits)) : bits;
}

bool cts_expect_op(vyre_op op, vyre_type type, const uint64_t args[3],
                   uint64_t *out) {
  if (op == VYRE_OP_SELECT || op == VYRE_OP_COND) {
    *out = cts_seen(type, args[0] ? args[1] : args[2]);
    return true;
  }
  if (type == VYRE_TYPE_F32) return f32_op(op, args, out);
  if (type == VYRE_TYPE_F64) return f64_op(op, args, out);
  if (op == VYRE_OP_EQ || op == VYRE_OP_NE) {
    *out = (args[0] == args[1]) == (op == VYRE_OP_EQ);
    return true;
  }
  return bits_op(op, args, out) ||
         (type != VYRE_TYPE_BOOL && integer_op(op, type, args, out));
}

/* --- Casts
 * -------------------------------------------------------------------- */

/* Truncates towards zero and saturates values that are out of range. */
static uint64_t to_integer(double value, vyre_type to) {
  static const struct {
    double min, end;
    uint64_t first, last;
  } ranges[VYRE_TYPE_COUNT] = {
      [VYRE_TYPE_U32] = {0, 0x1p32, 0, UINT32_MAX},
      [VYRE_TYPE_I32] = {-0x1p31, 0x1p31, 0x80000000, INT32_MAX},
      [VYRE_TYPE_U64] = {0, 0x1p64, 0, UINT64_MAX},
      [VYRE_TYPE_I64] = {-0x1p63, 0x1p63, UINT64_C(1) << 63, INT64_MAX}};
  if (isnan(value)) return 0;
  value = trunc(value);
  if (value < ranges[to].min) return ranges[to].first;
  if (value >= ranges[to].end) return ranges[to].last;
  bool is_signed = to == VYRE_TYPE_I32 || to == VYRE_TYPE_I64;
  uint64_t bits = is_signed ? (uint64_t)(int64_t)value : (uint64_t)value;
  return cts_is_wide(to) ? bits : (uint32_t)bits;
}

bool cts_expect_cast(vyre_type from, vyre_type to, uint64_t value,
                     uint64_t *out) {
  bool is_signed = from == VYRE_TYPE_I32 || from == VYRE_TYPE_I64;
  int64_t number = as_signed(value, from == VYRE_TYPE_I32 ? 32 : 64);
  double real = from == VYRE_TYPE_F32 ? (double)f32_of(value) : f64_of(value);
  bool is_float = cts_is_float(from);
  if (to == VYRE_TYPE_BOOL) {
    *out = is_float ? real != 0 : value != 0;
  } else if (to == VYRE_TYPE_F32) {
    *out = of_f32(is_float    ? (float)real
                  : is_signed ? (float)number
                              : (float)value);
  } else if (to == VYRE_TYPE_F64) {
    *out = of_f64(is_float ? real : is_signed ? (double)number : (double)value);
  } else if (is_float) {
    *out = to_integer(real, to);
  } else {
    *out = is_signed ? (uint64_t)number : value;
    if (!cts_is_wide(to)) *out = (uint32_t)*out;
  }
  return true;
}
