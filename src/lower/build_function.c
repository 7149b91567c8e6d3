/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Built-in functions that consist of other operations. */
#include "lower/build_internal.h"

/* Type of the values of a function, and where to write it. */
typedef struct maker {
  vyre__lir_writer *lir;
  vyre_type type; /* of LIR */
  unsigned width;
} maker;

static maker maker_of(vyre__lir_writer *lir, vyre_type type) {
  vyre_type plain = vyre__lir_type(type);
  bool wide = plain == VYRE_TYPE_U64 || plain == VYRE_TYPE_F64;
  return (maker){lir, plain, wide ? 64 : 32};
}

static bool is_signed(unsigned type) {
  return type == VYRE_TYPE_I32 || type == VYRE_TYPE_I64;
}

static vyre__val do2(const maker *m, vyre__lir_op op, vyre__val a,
                     vyre__val b) {
  return vyre__lir_do(m->lir, op, m->type, a, b, 0);
}

static vyre__val test(const maker *m, vyre__lir_op op, vyre__val a,
                      vyre__val b) {
  return vyre__lir_do(m->lir, op, VYRE_TYPE_BOOL, a, b, 0);
}

static vyre__val pick(const maker *m, vyre__val c, vyre__val yes,
                      vyre__val no) {
  return vyre__lir_do(m->lir, VYRE__LIR_SELECT, m->type, c, yes, no);
}

static vyre__val number(const maker *m, uint64_t value) {
  if (m->width == 32) value &= UINT32_MAX;
  return vyre__lir_bits(m->lir, m->type, value);
}

static vyre__val count_of(const maker *m, unsigned value) {
  return vyre__lir_bits(m->lir, VYRE_TYPE_U32, value);
}

/* Shifts by a known amount. */
static vyre__val shift(const maker *m, vyre__lir_op op, vyre__val a,
                       unsigned by) {
  return do2(m, op, a, count_of(m, by));
}

/* --- bits ------------------------------------------------------------------*/

/* Swaps neighbouring groups of 1, 2, 4 and more bits. */
static vyre__val reverse(const maker *m, vyre__val a) {
  for (unsigned by = 1; by < m->width; by *= 2) {
    uint64_t low = 0;
    for (unsigned bit = 0; bit < 64; bit++) {
      if ((bit & by) == 0) low |= UINT64_C(1) << bit;
    }
    vyre__val mask = number(m, low);
    vyre__val up = shift(m, VYRE__LIR_SHL, do2(m, VYRE__LIR_AND, a, mask), by);
    vyre__val down =
        do2(m, VYRE__LIR_AND, shift(m, VYRE__LIR_SHR_U, a, by), mask);
    a = do2(m, VYRE__LIR_OR, up, down);
  }
  return a;
}

/* The shifts take their counts modulo the width. */
static vyre__val rotate(const maker *m, vyre__val a, vyre__val by) {
  vyre__val back =
      vyre__lir_do(m->lir, VYRE__LIR_SUB, VYRE_TYPE_U32, count_of(m, 0), by, 0);
  return do2(m, VYRE__LIR_OR, do2(m, VYRE__LIR_TOTAL_SHL, a, by),
             do2(m, VYRE__LIR_TOTAL_SHR_U, a, back));
}

/* Range of bits inside the width. The shift counts hold if it is not empty. */
typedef struct bits {
  vyre__val from, is_empty;
  vyre__val above; /* bits above the range */
  vyre__val rest;  /* bits outside the range */
} bits;

static bits bits_in(const maker *m, vyre__val from, vyre__val count) {
  const maker u = {m->lir, VYRE_TYPE_U32, 32};
  vyre__val width = count_of(m, m->width);
  from = do2(&u, VYRE__LIR_MIN_U, from, width);
  vyre__val left = do2(&u, VYRE__LIR_SUB, width, from);
  vyre__val n = do2(&u, VYRE__LIR_MIN_U, count, left);
  return (bits){.from = from,
                .is_empty = test(&u, VYRE__LIR_EQ, n, count_of(m, 0)),
                .above = do2(&u, VYRE__LIR_SUB, left, n),
                .rest = do2(&u, VYRE__LIR_SUB, width, n)};
}

static vyre__val extract(const maker *m, bool has_sign, vyre__val x,
                         vyre__val from, vyre__val count) {
  bits range = bits_in(m, from, count);
  vyre__val up = do2(m, VYRE__LIR_TOTAL_SHL, x, range.above);
  vyre__val out =
      do2(m, has_sign ? VYRE__LIR_TOTAL_SHR_S : VYRE__LIR_TOTAL_SHR_U, up,
          range.rest);
  return pick(m, range.is_empty, number(m, 0), out);
}

vyre__val build_insert(vyre__lir_writer *lir, vyre_type type, vyre__val x,
                       vyre__val y, vyre__val from, vyre__val count) {
  const maker own = maker_of(lir, type), *m = &own;
  bits range = bits_in(m, from, count);
  vyre__val mask =
      do2(m, VYRE__LIR_TOTAL_SHR_U, number(m, UINT64_MAX), range.rest);
  mask = do2(m, VYRE__LIR_TOTAL_SHL, mask, range.from);
  vyre__val not_mask = do2(m, VYRE__LIR_XOR, mask, number(m, UINT64_MAX));
  vyre__val kept = do2(m, VYRE__LIR_AND, x, not_mask);
  vyre__val new =
      do2(m, VYRE__LIR_AND, do2(m, VYRE__LIR_TOTAL_SHL, y, range.from), mask);
  return pick(m, range.is_empty, x, do2(m, VYRE__LIR_OR, kept, new));
}

/* --- integers --------------------------------------------------------------*/

static vyre__val is_negative(const maker *m, vyre__val a) {
  return test(m, VYRE__LIR_LT_S, a, number(m, 0));
}

/* The upper half of a product of 64 bits, from four products of 32 bits. No sum
 * wraps: (2^32 - 1)^2 + 2 * (2^32 - 1) = 2^64 - 1. */
static vyre__val high_of_wide(const maker *m, vyre__val a, vyre__val b) {
  vyre__val low = number(m, UINT32_MAX);
  vyre__val a0 = do2(m, VYRE__LIR_AND, a, low);
  vyre__val a1 = shift(m, VYRE__LIR_SHR_U, a, 32);
  vyre__val b0 = do2(m, VYRE__LIR_AND, b, low);
  vyre__val b1 = shift(m, VYRE__LIR_SHR_U, b, 32);
  vyre__val carry =
      shift(m, VYRE__LIR_SHR_U, do2(m, VYRE__LIR_MUL, a0, b0), 32);
  vyre__val t = do2(m, VYRE__LIR_ADD, do2(m, VYRE__LIR_MUL, a1, b0), carry);
  vyre__val u = do2(m, VYRE__LIR_ADD, do2(m, VYRE__LIR_MUL, a0, b1),
                    do2(m, VYRE__LIR_AND, t, low));
  vyre__val high = do2(m, VYRE__LIR_ADD, do2(m, VYRE__LIR_MUL, a1, b1),
                       shift(m, VYRE__LIR_SHR_U, t, 32));
  return do2(m, VYRE__LIR_ADD, high, shift(m, VYRE__LIR_SHR_U, u, 32));
}

static vyre__val mul_high(const maker *m, bool has_sign, vyre__val a,
                          vyre__val b) {
  vyre__val zero = number(m, 0);
  if (m->width == 32) {
    vyre__lir_op extend = has_sign ? VYRE__LIR_SEXT : VYRE__LIR_ZEXT;
    const maker wide = {m->lir, VYRE_TYPE_U64, 64};
    a = do2(&wide, extend, a, 0);
    b = do2(&wide, extend, b, 0);
    vyre__val product = do2(&wide, VYRE__LIR_MUL, a, b);
    product = shift(&wide, VYRE__LIR_SHR_U, product, 32);
    return do2(m, VYRE__LIR_TRUNC, product, 0);
  }
  vyre__val high = high_of_wide(m, a, b);
  if (!has_sign) return high;
  high = do2(m, VYRE__LIR_SUB, high, pick(m, is_negative(m, a), b, zero));
  return do2(m, VYRE__LIR_SUB, high, pick(m, is_negative(m, b), a, zero));
}

static vyre__val add_unsigned(const maker *m, vyre__val a, vyre__val b) {
  vyre__val sum = do2(m, VYRE__LIR_ADD, a, b);
  return pick(m, test(m, VYRE__LIR_LT_U, sum, a), number(m, UINT64_MAX), sum);
}

static vyre__val sub_unsigned(const maker *m, vyre__val a, vyre__val b) {
  vyre__val difference = do2(m, VYRE__LIR_SUB, a, b);
  return pick(m, test(m, VYRE__LIR_LT_U, a, b), number(m, 0), difference);
}

/* Overflow changes the sign: of the sum although both operands have one sign,
 * of the difference although they have two. */
static vyre__val saturate_signed(const maker *m, bool adds, vyre__val a,
                                 vyre__val b) {
  vyre__val out = do2(m, adds ? VYRE__LIR_ADD : VYRE__LIR_SUB, a, b);
  vyre__val own = do2(m, VYRE__LIR_XOR, a, out);
  vyre__val other =
      adds ? do2(m, VYRE__LIR_XOR, b, out) : do2(m, VYRE__LIR_XOR, a, b);
  vyre__val overflow = is_negative(m, do2(m, VYRE__LIR_AND, own, other));
  vyre__val sign = shift(m, VYRE__LIR_SHR_S, a, m->width - 1);
  uint64_t last = m->width == 64 ? INT64_MAX : INT32_MAX;
  return pick(m, overflow, do2(m, VYRE__LIR_XOR, sign, number(m, last)), out);
}

static vyre__val dot4(const maker *m, bool has_sign, vyre__val a, vyre__val b) {
  vyre__val sum = 0;
  for (unsigned k = 0; k < 4; k++) {
    vyre__val x[2] = {a, b};
    for (int i = 0; i < 2; i++) {
      x[i] = shift(m, VYRE__LIR_SHL, x[i], 24 - 8 * k);
      x[i] = shift(m, has_sign ? VYRE__LIR_SHR_S : VYRE__LIR_SHR_U, x[i], 24);
    }
    vyre__val product = do2(m, VYRE__LIR_MUL, x[0], x[1]);
    sum = k ? do2(m, VYRE__LIR_ADD, sum, product) : product;
  }
  return sum;
}

/* --- floats ----------------------------------------------------------------*/

/* Uses lir->emit, which may represent floats as bits. */
static vyre__val small_float(const maker *m, unsigned value) {
  static const uint32_t narrow[] = {0, 0x3F800000, 0x40000000, 0x40400000};
  static const uint32_t wide[] = {0, 0x3FF00000, 0x40000000, 0x40080000};
  return m->lir->emit(m->lir,
                      &(vyre__lir_inst){.op = VYRE__LIR_CONST,
                                        .type = (uint8_t)m->type,
                                        .c = m->width == 32 ? narrow[value] : 0,
                                        .d = m->width == 32 ? 0 : wide[value]});
}

static vyre__val fma_of(const maker *m, vyre__val a, vyre__val b, vyre__val c) {
  return vyre__lir_do(m->lir, VYRE__LIR_FMA, m->type, a, b, c);
}

static vyre__val mix(const maker *m, vyre__val a, vyre__val b, vyre__val t) {
  vyre__val minus = do2(m, VYRE__LIR_FNEG, t, 0);
  return fma_of(m, t, b, fma_of(m, minus, a, a));
}

static vyre__val smoothstep(const maker *m, vyre__val low, vyre__val high,
                            vyre__val x) {
  vyre__val t = do2(m, VYRE__LIR_FDIV, do2(m, VYRE__LIR_FSUB, x, low),
                    do2(m, VYRE__LIR_FSUB, high, low));
  t = do2(m, VYRE__LIR_FMAX, t, small_float(m, 0));
  t = do2(m, VYRE__LIR_FMIN, t, small_float(m, 1));
  vyre__val twice = do2(m, VYRE__LIR_FMUL, small_float(m, 2), t);
  vyre__val factor = do2(m, VYRE__LIR_FSUB, small_float(m, 3), twice);
  return do2(m, VYRE__LIR_FMUL, do2(m, VYRE__LIR_FMUL, t, t), factor);
}

/* --- by operation ----------------------------------------------------------*/

vyre__val build_function1(vyre__lir_writer *lir, const vyre__node *node,
                          vyre__val a) {
  const maker m = maker_of(lir, (vyre_type)node->type);
  if (node->op == VYRE__OP_REVERSE) return reverse(&m, a);
  return do2(&m, VYRE__LIR_FSUB, a, do2(&m, VYRE__LIR_FFLOOR, a, 0));
}

vyre__val build_function2(vyre__lir_writer *lir, const vyre__node *node,
                          vyre_type from, vyre__val a, vyre__val b) {
  const maker m = maker_of(lir, from);
  const bool has_sign = is_signed(from);
  switch ((vyre__op)node->op) {
    case VYRE__OP_ROTATE:
      return rotate(&m, a, b);
    case VYRE__OP_MUL_HIGH:
      return mul_high(&m, has_sign, a, b);
    case VYRE__OP_ADD_SAT:
      return has_sign ? saturate_signed(&m, true, a, b)
                      : add_unsigned(&m, a, b);
    case VYRE__OP_SUB_SAT:
      return has_sign ? saturate_signed(&m, false, a, b)
                      : sub_unsigned(&m, a, b);
    default: /* DOT4_U8, DOT4_I8 */
      return dot4(&m, node->op == VYRE__OP_DOT4_I8, a, b);
  }
}

vyre__val build_function3(vyre__lir_writer *lir, const vyre__node *node,
                          vyre__val a, vyre__val b, vyre__val c) {
  const maker m = maker_of(lir, (vyre_type)node->type);
  switch ((vyre__op)node->op) {
    case VYRE__OP_EXTRACT:
      return extract(&m, is_signed(node->type), a, b, c);
    case VYRE__OP_MIX:
      return mix(&m, a, b, c);
    default: /* SMOOTHSTEP */
      return smoothstep(&m, a, b, c);
  }
}
