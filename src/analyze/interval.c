/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/interval.h"

typedef vyre__wide wide;
typedef vyre__interval interval;

static const interval some_bool = {0, 1};

static wide min(wide a, wide b) {
  return a < b ? a : b;
}

static wide max(wide a, wide b) {
  return a > b ? a : b;
}

static unsigned width_of(vyre_type type) {
  if (type == VYRE_TYPE_BOOL) return 1;
  return type == VYRE_TYPE_U64 || type == VYRE_TYPE_I64 ? 64 : 32;
}

interval vyre__interval_full(vyre_type type) {
  switch (type) {
    case VYRE_TYPE_BOOL:
      return some_bool;
    case VYRE_TYPE_U32:
      return (interval){0, UINT32_MAX};
    case VYRE_TYPE_I32:
      return (interval){INT32_MIN, INT32_MAX};
    case VYRE_TYPE_U64:
      return (interval){0, UINT64_MAX};
    case VYRE_TYPE_I64:
      return (interval){INT64_MIN, INT64_MAX};
    default:
      return (interval){0, 0};
  }
}

interval vyre__interval_join(interval a, interval b) {
  return (interval){min(a.lo, b.lo), max(a.hi, b.hi)};
}

/* A result that does not fit wraps and may then be any value of the type. */
static interval fit(vyre_type type, interval a) {
  interval full = vyre__interval_full(type);
  return vyre__interval_inside(a, full) ? a : full;
}

static interval as_bool(bool can_be_false, bool can_be_true) {
  return (interval){can_be_false ? 0 : 1, can_be_true ? 1 : 0};
}

static int bits_of(wide a) {
  uint64_t magnitude = (uint64_t)a;
  if (a < 0) magnitude = (uint64_t)-(a + 1);
  return magnitude ? 64 - __builtin_clzll(magnitude) : 0;
}

/* --- one operand -----------------------------------------------------------*/

static interval absolute(vyre_type type, interval a) {
  if (a.lo >= 0) return a;
  if (a.hi <= 0) return fit(type, (interval){-a.hi, -a.lo});
  return fit(type, (interval){0, max(-a.lo, a.hi)});
}

static int sign_of(wide a) {
  return (a > 0) - (a < 0);
}

static interval zeros_before(vyre_type type, interval a) {
  int width = (int)width_of(type);
  if (a.hi < 0) return (interval){0, 0};
  int few = width - bits_of(a.hi);
  return (interval){a.lo < 0 ? 0 : few,
                    a.lo <= 0 ? width : width - bits_of(a.lo)};
}

static interval ones(vyre_type type, interval a) {
  return (interval){a.lo > 0 || a.hi < 0,
                    a.lo >= 0 ? bits_of(a.hi) : (int)width_of(type)};
}

static interval inverted(vyre_type from, interval a) {
  if (from == VYRE_TYPE_I32 || from == VYRE_TYPE_I64) {
    return (interval){-a.hi - 1, -a.lo - 1};
  }
  wide last = vyre__interval_full(from).hi;
  return (interval){last - a.hi, last - a.lo};
}

static interval converted(vyre_type from, vyre_type type, interval a) {
  if (!vyre__has_interval(from)) return vyre__interval_full(type);
  if (type == VYRE_TYPE_BOOL) {
    return as_bool(a.lo <= 0 && a.hi >= 0, a.lo != 0 || a.hi != 0);
  }
  return fit(type, a);
}

interval vyre__interval_unary(vyre__op op, vyre_type from, vyre_type type,
                              interval a) {
  if (!vyre__has_interval(type)) return vyre__interval_full(type);
  switch (op) {
    case VYRE__OP_UNIFORM:
      return a;
    case VYRE__OP_CAST:
    case VYRE__OP_BITCAST:
      return converted(from, type, a);
    case VYRE__OP_NEG:
      return fit(type, (interval){-a.hi, -a.lo});
    case VYRE__OP_NOT:
      return (interval){1 - a.hi, 1 - a.lo};
    case VYRE__OP_BIT_NOT:
      return inverted(from, a);
    case VYRE__OP_ABS:
      return absolute(type, a);
    case VYRE__OP_SIGN:
      return (interval){sign_of(a.lo), sign_of(a.hi)};
    case VYRE__OP_CLZ:
      return zeros_before(type, a);
    case VYRE__OP_CTZ:
      return (interval){0, width_of(type)};
    case VYRE__OP_POPCOUNT:
      return ones(type, a);
    default:
      return vyre__interval_full(type);
  }
}

/* --- two operands ----------------------------------------------------------*/

static interval product(vyre_type type, interval a, interval b) {
  int a_bits = (int)max(bits_of(a.lo), bits_of(a.hi));
  int b_bits = (int)max(bits_of(b.lo), bits_of(b.hi));
  if (a_bits + b_bits > 100) return vyre__interval_full(type);
  interval x = vyre__interval_join((interval){a.lo * b.lo, a.lo * b.lo},
                                   (interval){a.lo * b.hi, a.lo * b.hi});
  interval y = vyre__interval_join((interval){a.hi * b.lo, a.hi * b.lo},
                                   (interval){a.hi * b.hi, a.hi * b.hi});
  return fit(type, vyre__interval_join(x, y));
}

/* x / 0 is all ones. Negative divisors give the full interval; they are rare.
 */
static interval quotient(vyre_type type, interval a, interval b) {
  if (b.lo <= 0) return vyre__interval_full(type);
  return (interval){min(a.lo / b.lo, a.lo / b.hi),
                    max(a.hi / b.lo, a.hi / b.hi)};
}

/* The result has the sign of the dividend and is smaller than the divisor; x
 * % 0 is 0. */
static interval remainder_of(interval a, interval b) {
  if (a.lo >= 0 && b.lo > a.hi) return a;
  wide last = max(max(b.lo < 0 ? -b.lo : b.lo, b.hi < 0 ? -b.hi : b.hi), 1) - 1;
  return (interval){a.lo < 0 ? max(a.lo, -last) : 0,
                    a.hi > 0 ? min(a.hi, last) : 0};
}

static interval both_bits(vyre_type type, interval a, interval b) {
  if (a.lo >= 0 && b.lo >= 0) return (interval){0, min(a.hi, b.hi)};
  if (a.lo >= 0) return (interval){0, a.hi};
  if (b.lo >= 0) return (interval){0, b.hi};
  return vyre__interval_full(type);
}

/* | and ^ set no bit above the highest bit of both operands. */
static interval either_bits(vyre_type type, interval a, interval b,
                            bool is_or) {
  if (a.lo < 0 || b.lo < 0) return vyre__interval_full(type);
  int bits = (int)max(bits_of(a.hi), bits_of(b.hi));
  return (interval){is_or ? max(a.lo, b.lo) : 0, ((wide)1 << bits) - 1};
}

static interval shifted_left(vyre_type type, interval a, interval count) {
  if (count.hi >= width_of(type) || a.lo < 0 ||
      bits_of(a.hi) + (int)count.hi > 100) {
    return vyre__interval_full(type);
  }
  return fit(type, (interval){a.lo << (int)count.lo, a.hi << (int)count.hi});
}

/* Shifts move values towards 0 or -1; counts are taken modulo the width. */
static interval shifted_right(vyre_type type, interval a, interval count) {
  interval by = {0, width_of(type) - 1};
  if (count.hi < width_of(type)) by = count;
  return (interval){min(a.lo >> (int)by.lo, a.lo >> (int)by.hi),
                    max(a.hi >> (int)by.lo, a.hi >> (int)by.hi)};
}

static interval compared(vyre__op op, interval a, interval b) {
  bool one = a.lo == a.hi && b.lo == b.hi && a.lo == b.lo;
  bool apart = a.hi < b.lo || b.hi < a.lo;
  switch (op) {
    case VYRE__OP_EQ:
      return as_bool(!one, !apart);
    case VYRE__OP_NE:
      return as_bool(!apart, !one);
    case VYRE__OP_LT:
      return as_bool(a.hi >= b.lo, a.lo < b.hi);
    case VYRE__OP_LE:
      return as_bool(a.hi > b.lo, a.lo <= b.hi);
    case VYRE__OP_GT:
      return as_bool(b.hi >= a.lo, b.lo < a.hi);
    default:
      return as_bool(b.hi > a.lo, b.lo <= a.hi);
  }
}

static interval saturated(vyre_type type, interval a) {
  interval full = vyre__interval_full(type);
  return (interval){max(full.lo, min(a.lo, full.hi)),
                    min(full.hi, max(a.hi, full.lo))};
}

/* The products fit into 127 bits, except those of two large u64. */
static interval high_product(vyre_type type, interval a, interval b) {
  if (a.lo < 0 || b.lo < 0 || bits_of(a.hi) + bits_of(b.hi) > 126) {
    return vyre__interval_full(type);
  }
  int width = (int)width_of(type);
  return (interval){a.lo * b.lo >> width, a.hi * b.hi >> width};
}

interval vyre__interval_extract(vyre_type type, interval a, interval count) {
  if (type == VYRE_TYPE_I32 || type == VYRE_TYPE_I64) {
    int bits = (int)min(count.hi, width_of(type));
    wide half = bits ? (wide)1 << (bits - 1) : 0;
    return (interval){-half, bits ? half - 1 : 0};
  }
  int bits = (int)min(count.hi, width_of(type));
  return (interval){0, min(a.hi, ((wide)1 << bits) - 1)};
}

interval vyre__interval_binary(vyre__op op, vyre_type from, vyre_type type,
                               interval a, interval b) {
  if (!vyre__has_interval(from) || !vyre__has_interval(type)) {
    return vyre__interval_full(type);
  }
  switch (op) {
    case VYRE__OP_ADD:
      return fit(type, (interval){a.lo + b.lo, a.hi + b.hi});
    case VYRE__OP_SUB:
      return fit(type, (interval){a.lo - b.hi, a.hi - b.lo});
    case VYRE__OP_MUL:
      return product(type, a, b);
    case VYRE__OP_DIV:
      return quotient(type, a, b);
    case VYRE__OP_REM:
      return remainder_of(a, b);
    case VYRE__OP_LAND:
      return (interval){min(a.lo, b.lo), min(a.hi, b.hi)};
    case VYRE__OP_AND:
      return both_bits(type, a, b);
    case VYRE__OP_LOR:
      return (interval){max(a.lo, b.lo), max(a.hi, b.hi)};
    case VYRE__OP_OR:
      return either_bits(type, a, b, true);
    case VYRE__OP_XOR:
      return either_bits(type, a, b, false);
    case VYRE__OP_SHL:
      return shifted_left(type, a, b);
    case VYRE__OP_SHR:
      return shifted_right(type, a, b);
    case VYRE__OP_MIN:
      return (interval){min(a.lo, b.lo), min(a.hi, b.hi)};
    case VYRE__OP_MAX:
      return (interval){max(a.lo, b.lo), max(a.hi, b.hi)};
    case VYRE__OP_ADD_SAT:
      return saturated(type, (interval){a.lo + b.lo, a.hi + b.hi});
    case VYRE__OP_SUB_SAT:
      return saturated(type, (interval){a.lo - b.hi, a.hi - b.lo});
    case VYRE__OP_MUL_HIGH:
      return high_product(type, a, b);
    case VYRE__OP_DOT4_U8:
      return (interval){0, 4 * (vyre__wide)(255 * 255)};
    case VYRE__OP_DOT4_I8:
      return (interval){-4 * (vyre__wide)(128 * 127),
                        4 * (vyre__wide)(128 * 128)};
    case VYRE__OP_EQ:
    case VYRE__OP_NE:
    case VYRE__OP_LT:
    case VYRE__OP_LE:
    case VYRE__OP_GT:
    case VYRE__OP_GE:
      return compared(op, a, b);
    default:
      return vyre__interval_full(type);
  }
}
