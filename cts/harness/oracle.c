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

/* Returns @p to with the bits of the range replaced, one bit at a time. */
static uint64_t put_bits(uint64_t to, uint64_t bits, unsigned width,
                         unsigned from, unsigned count) {
  for (unsigned i = 0; i < count && from + i < width; i++) {
    uint64_t bit = UINT64_C(1) << (from + i);
    to = bits >> i & 1 ? to | bit : to & ~bit;
  }
  return to;
}

static uint64_t get_bits(uint64_t a, unsigned width, bool is_signed,
                         unsigned from, unsigned count) {
  uint64_t out = 0;
  unsigned i = 0;
  for (; i < count && from + i < width; i++) out |= (a >> (from + i) & 1) << i;
  if (is_signed && i > 0 && i < 64 && (out >> (i - 1) & 1)) {
    out |= UINT64_MAX << i;
  }
  return out;
}

/* Multiplies digits of 16 bits, as on paper. */
static uint64_t upper_half(uint64_t a, uint64_t b, unsigned width,
                           bool is_signed) {
  uint64_t digits[8] = {0};
  int x = (int)width / 16;
  bool minus =
      is_signed && (as_signed(a, width) < 0) != (as_signed(b, width) < 0);
  if (is_signed && as_signed(a, width) < 0)
    a = 0 - (uint64_t)as_signed(a, width);
  if (is_signed && as_signed(b, width) < 0)
    b = 0 - (uint64_t)as_signed(b, width);
  for (int i = 0; i < x; i++) {
    uint64_t carry = 0;
    for (int k = 0; k < x; k++) {
      carry += digits[i + k] + (a >> 16 * i & 65535) * (b >> 16 * k & 65535);
      digits[i + k] = carry & 65535;
      carry >>= 16;
    }
    digits[i + x] = carry;
  }
  uint64_t carry = minus;
  for (int i = 0; minus && i < 2 * x; i++) {
    carry += digits[i] ^ 65535;
    digits[i] = carry & 65535;
    carry >>= 16;
  }
  uint64_t out = 0;
  for (int i = 0; i < x; i++) out |= digits[x + i] << 16 * i;
  return out;
}

/* Returns a + b, or a - b, moved to the nearest value of the type. */
static uint64_t saturated(uint64_t a, uint64_t b, unsigned width,
                          bool is_signed, bool minus) {
  if (!is_signed) {
    uint64_t last = width == 32 ? UINT32_MAX : UINT64_MAX;
    if (minus) return a > b ? a - b : 0;
    return b > last - a ? last : a + b;
  }
  int64_t x = as_signed(a, width), y = as_signed(b, width);
  int64_t first = width == 32 ? INT32_MIN : INT64_MIN, last = -(first + 1);
  if (minus) {
    if (y > 0 && x < first + y) return (uint64_t)first;
    if (y < 0 && x > last + y) return (uint64_t)last;
    return (uint64_t)(x - y);
  }
  if (y > 0 && x > last - y) return (uint64_t)last;
  if (y < 0 && x < first - y) return (uint64_t)first;
  return (uint64_t)(x + y);
}

static uint64_t dot_of_bytes(uint32_t a, uint32_t b, bool is_signed) {
  int32_t sum = 0;
  for (int i = 0; i < 4; i++) {
    int32_t x = (int32_t)(a & 255), y = (int32_t)(b & 255);
    if (is_signed && x > 127) x -= 256;
    if (is_signed && y > 127) y -= 256;
    sum += x * y;
    a >>= 8;
    b >>= 8;
  }
  return (uint32_t)sum;
}

static bool is_less(uint64_t a, uint64_t b, unsigned width, bool is_signed) {
  return is_signed ? as_signed(a, width) < as_signed(b, width) : a < b;
}

/* Functions of integers. */
static bool bit_function(vyre_op op, vyre_type type, const uint64_t v[3],
                         uint64_t *out) {
  unsigned width = cts_is_wide(type) ? 64 : 32;
  bool is_signed = type == VYRE_TYPE_I32 || type == VYRE_TYPE_I64;
  uint64_t a = v[0], b = v[1];
  unsigned c = (unsigned)v[2];
  if (op == CTS_INSERT) {
    *out = put_bits(a, b, width, c % 67, c / 67 % 67);
    return true;
  }
  switch (op) {
    case VYRE_OP_REVERSE:
      *out = 0;
      for (unsigned i = 0; i < width; i++)
        *out |= (a >> i & 1) << (width - 1 - i);
      break;
    case VYRE_OP_ROTATE:
      *out = a;
      for (unsigned i = 0; i < b % width; i++) {
        *out = *out << 1 | (*out >> (width - 1) & 1);
        if (width == 32) *out = (uint32_t)*out;
      }
      break;
    case VYRE_OP_EXTRACT:
      *out = get_bits(a, width, is_signed, (unsigned)(b % 67), c % 67);
      break;
    case VYRE_OP_MUL_HIGH:
      *out = upper_half(a, b, width, is_signed);
      break;
    case VYRE_OP_ADD_SAT:
    case VYRE_OP_SUB_SAT:
      *out = saturated(a, b, width, is_signed, op == VYRE_OP_SUB_SAT);
      break;
    case VYRE_OP_DOT4_U8:
    case VYRE_OP_DOT4_I8:
      *out = dot_of_bytes((uint32_t)a, (uint32_t)b, op == VYRE_OP_DOT4_I8);
      break;
    case VYRE_OP_CLAMP:
      *out = is_less(a, b, width, is_signed) ? b : a;
      if (is_less(v[2], *out, width, is_signed)) *out = v[2];
      break;
    default:
      return false;
  }
  if (width == 32) *out = (uint32_t)*out;
  return true;
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
      case VYRE_OP_SATURATE:                                         \
        r = isnan(a) || a <= 0 ? (TYPE)0 : a > 1 ? (TYPE)1 : a;      \
        break;                                                       \
      case VYRE_OP_FRACT:                                            \
        r = a - floor##SUFFIX(a);                                    \
        break;                                                       \
      case VYRE_OP_STEP:                                             \
        r = b < a ? (TYPE)0 : (TYPE)1;                               \
        break;                                                       \
      case VYRE_OP_CLAMP:                                            \
        r = -NAME##_smaller(-a, -b);                                 \
        r = NAME##_smaller(r, OF(v[2]));                             \
        break;                                                       \
      case VYRE_OP_MIX:                                              \
        r = fma##SUFFIX(-OF(v[2]), a, a);                            \
        r = fma##SUFFIX(OF(v[2]), b, r);                             \
        break;                                                       \
      case VYRE_OP_SMOOTHSTEP: {                                     \
        TYPE t = (OF(v[2]) - a) / (b - a);                           \
        t = isnan(t) || t <= 0 ? (TYPE)0 : t > 1 ? (TYPE)1 : t;      \
        r = t * t * (3 - 2 * t);                                     \
        break;                                                       \
      }                                                              \
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
  if (type != VYRE_TYPE_BOOL && bit_function(op, type, args, out)) return true;
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
