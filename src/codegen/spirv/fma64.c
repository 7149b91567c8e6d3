/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Emulates fma of f64 with integers, for devices that round twice or lack it,
 * since no wider float type exists. The product has 106 bits. Product and
 * summand are aligned in 128 bits; bits shifted out of the smaller one are kept
 * as one sticky bit, so that the sum is rounded once. */
#include "codegen/spirv/internal.h"

/* A 128-bit number in two words. */
typedef struct wide {
  uint32_t high, low;
} wide;

/* One operand: its bits, the significand with its leading bit at 52, and the
 * biased exponent (1075 means that bit 0 is 2^0). */
typedef struct operand {
  uint32_t bits, significand, exponent;
  uint32_t is_special; /* infinite or NaN */
  uint32_t is_zero;
} operand;

/* --- shorthand ------------------------------------------------------------ */

static uint32_t k64(spv_emitter *e, uint64_t number) {
  return spv_const(e, VYRE_TYPE_U64, number);
}

static uint32_t op64(spv_emitter *e, uint32_t op, uint32_t a, uint32_t b) {
  return SPV_DO(e, op, spv_uint(e, 64), a, b);
}

static uint32_t op32(spv_emitter *e, uint32_t op, uint32_t a, uint32_t b) {
  return SPV_DO(e, op, spv_uint(e, 32), a, b);
}

static uint32_t test(spv_emitter *e, uint32_t op, uint32_t a, uint32_t b) {
  return SPV_DO(e, op, spv_bool(e), a, b);
}

static uint32_t left(spv_emitter *e, uint32_t a, uint32_t by) {
  return op64(e, SPV_OpShiftLeftLogical, a, by);
}

static uint32_t right(spv_emitter *e, uint32_t a, uint32_t by) {
  return op64(e, SPV_OpShiftRightLogical, a, by);
}

static uint32_t select64(spv_emitter *e, uint32_t which, uint32_t a,
                         uint32_t b) {
  return SPV_DO(e, SPV_OpSelect, spv_uint(e, 64), which, a, b);
}

static uint32_t select32(spv_emitter *e, uint32_t which, uint32_t a,
                         uint32_t b) {
  return SPV_DO(e, SPV_OpSelect, spv_uint(e, 32), which, a, b);
}

static wide select_wide(spv_emitter *e, uint32_t which, wide a, wide b) {
  return (wide){select64(e, which, a.high, b.high),
                select64(e, which, a.low, b.low)};
}

static uint32_t low32(spv_emitter *e, uint32_t a) {
  return SPV_DO(e, SPV_OpUConvert, spv_uint(e, 32), a);
}

static uint32_t bit64(spv_emitter *e, uint32_t condition) {
  return select64(e, condition, k64(e, 1), k64(e, 0));
}

/* --- numbers -------------------------------------------------------------- */

static uint32_t leading32(spv_emitter *e, uint32_t a) {
  uint32_t top = SPV_GLSL(e, spv_uint(e, 32), SPV_GLSL_FindUMsb, a);
  return op32(e, SPV_OpISub, spv_u32(e, 31), top);
}

/* Counts leading zeros of 64 bits, as u32; 64 for 0. */
static uint32_t leading64(spv_emitter *e, uint32_t a) {
  uint32_t high = low32(e, right(e, a, spv_u32(e, 32)));
  uint32_t below =
      op32(e, SPV_OpIAdd, leading32(e, low32(e, a)), spv_u32(e, 32));
  uint32_t none = test(e, SPV_OpIEqual, high, spv_u32(e, 0));
  return select32(e, none, below, leading32(e, high));
}

static operand decompose(spv_emitter *e, uint32_t x) {
  operand p = {.bits = SPV_DO(e, SPV_OpBitcast, spv_uint(e, 64), x)};
  uint32_t fraction =
      op64(e, SPV_OpBitwiseAnd, p.bits, k64(e, (UINT64_C(1) << 52) - 1));
  uint32_t stored =
      op32(e, SPV_OpBitwiseAnd, low32(e, right(e, p.bits, spv_u32(e, 52))),
           spv_u32(e, 0x7FF));
  uint32_t is_small = test(e, SPV_OpIEqual, stored, spv_u32(e, 0));
  uint32_t by = op32(e, SPV_OpISub, leading64(e, fraction), spv_u32(e, 11));
  uint32_t moved =
      left(e, fraction, op32(e, SPV_OpBitwiseAnd, by, spv_u32(e, 63)));
  uint32_t integer =
      op64(e, SPV_OpBitwiseOr, fraction, k64(e, UINT64_C(1) << 52));
  p.significand = select64(e, is_small, moved, integer);
  p.exponent =
      select32(e, is_small, op32(e, SPV_OpISub, spv_u32(e, 1), by), stored);
  p.is_special = test(e, SPV_OpIEqual, stored, spv_u32(e, 0x7FF));
  p.is_zero = test(e, SPV_OpIEqual, left(e, p.bits, spv_u32(e, 1)), k64(e, 0));
  return p;
}

/* Multiplies two numbers below 2^53 and shifts the product left by 20. */
static wide product(spv_emitter *e, uint32_t a, uint32_t b) {
  uint32_t half = spv_u32(e, 32), mask = k64(e, 0xFFFFFFFF);
  uint32_t al = op64(e, SPV_OpBitwiseAnd, a, mask), ah = right(e, a, half);
  uint32_t bl = op64(e, SPV_OpBitwiseAnd, b, mask), bh = right(e, b, half);
  uint32_t low_product = op64(e, SPV_OpIMul, al, bl);
  uint32_t middle = op64(e, SPV_OpIAdd, op64(e, SPV_OpIMul, al, bh),
                         op64(e, SPV_OpIMul, ah, bl));
  middle = op64(e, SPV_OpIAdd, middle, right(e, low_product, half));
  uint32_t high =
      op64(e, SPV_OpIAdd, op64(e, SPV_OpIMul, ah, bh), right(e, middle, half));
  uint32_t low = op64(e, SPV_OpBitwiseOr, left(e, middle, half),
                      op64(e, SPV_OpBitwiseAnd, low_product, mask));
  return (wide){op64(e, SPV_OpBitwiseOr, left(e, high, spv_u32(e, 20)),
                     right(e, low, spv_u32(e, 44))),
                left(e, low, spv_u32(e, 20))};
}

/* Returns the bits that a right shift of @p a by 0 to 63 shifts out, at the
 * top; 0 for a shift by 0. */
static uint32_t spilled(spv_emitter *e, uint32_t a, uint32_t by) {
  return left(e, left(e, a, spv_u32(e, 1)),
              op32(e, SPV_OpISub, spv_u32(e, 63), by));
}

/* Shifts right by 0 to 127. Lost bits set the last bit. */
static wide shift_right_sticky(spv_emitter *e, wide a, uint32_t by) {
  uint32_t none = k64(e, 0);
  uint32_t far = test(e, SPV_OpULessThanEqual, spv_u32(e, 64), by);
  uint32_t lost = select64(e, far, a.low, none);
  wide near = {select64(e, far, none, a.high), select64(e, far, a.high, a.low)};
  uint32_t rest = op32(e, SPV_OpBitwiseAnd, by, spv_u32(e, 63));
  lost = op64(e, SPV_OpBitwiseOr, lost, spilled(e, near.low, rest));
  uint32_t low = op64(e, SPV_OpBitwiseOr, right(e, near.low, rest),
                      spilled(e, near.high, rest));
  uint32_t sticky = bit64(e, test(e, SPV_OpINotEqual, lost, none));
  return (wide){right(e, near.high, rest),
                op64(e, SPV_OpBitwiseOr, low, sticky)};
}

/* Shifts left by 0 to 127. */
static wide left_wide(spv_emitter *e, wide a, uint32_t by) {
  uint32_t far = test(e, SPV_OpULessThanEqual, spv_u32(e, 64), by);
  wide near = {select64(e, far, a.low, a.high),
               select64(e, far, k64(e, 0), a.low)};
  uint32_t rest = op32(e, SPV_OpBitwiseAnd, by, spv_u32(e, 63));
  uint32_t over = right(e, right(e, near.low, spv_u32(e, 1)),
                        op32(e, SPV_OpISub, spv_u32(e, 63), rest));
  return (wide){op64(e, SPV_OpBitwiseOr, left(e, near.high, rest), over),
                left(e, near.low, rest)};
}

static wide negative(spv_emitter *e, wide a) {
  uint32_t u64 = spv_uint(e, 64), none = k64(e, 0);
  uint32_t carry = bit64(e, test(e, SPV_OpIEqual, a.low, none));
  uint32_t high = SPV_DO(e, SPV_OpNot, u64, a.high);
  return (wide){op64(e, SPV_OpIAdd, high, carry),
                op64(e, SPV_OpISub, none, a.low)};
}

static wide sum(spv_emitter *e, wide a, wide b) {
  uint32_t low = op64(e, SPV_OpIAdd, a.low, b.low);
  uint32_t carry = bit64(e, test(e, SPV_OpULessThan, low, a.low));
  uint32_t high = op64(e, SPV_OpIAdd, a.high, b.high);
  return (wide){op64(e, SPV_OpIAdd, high, carry), low};
}

static uint32_t is_negative(spv_emitter *e, uint32_t bits) {
  return test(e, SPV_OpINotEqual, right(e, bits, spv_u32(e, 63)), k64(e, 0));
}

/* --- rounding and entry point --------------------------------------------- */

/* Returns the bits of s * 2^exponent without sign, rounded. s is not 0 and
 * below 2^127. */
static uint32_t rounded(spv_emitter *e, wide s, uint32_t exponent) {
  uint32_t none = k64(e, 0), one = spv_u32(e, 1);
  uint32_t in_high = leading64(e, s.high);
  uint32_t in_low = op32(e, SPV_OpIAdd, leading64(e, s.low), spv_u32(e, 64));
  uint32_t zeros =
      select32(e, test(e, SPV_OpIEqual, s.high, none), in_low, in_high);
  uint32_t by = op32(e, SPV_OpBitwiseAnd, op32(e, SPV_OpISub, zeros, one),
                     spv_u32(e, 127));
  s = left_wide(e, s, by);
  uint32_t top = op64(e, SPV_OpBitwiseOr, s.high,
                      bit64(e, test(e, SPV_OpINotEqual, s.low, none)));
  exponent = op32(e, SPV_OpIAdd, op32(e, SPV_OpISub, exponent, by),
                  spv_u32(e, 126 + 1023));
  /* Subnormal results lose bits. */
  uint32_t is_small = test(e, SPV_OpSLessThanEqual, exponent, spv_u32(e, 0));
  uint32_t more = op32(e, SPV_OpISub, one, exponent);
  more = SPV_GLSL(e, spv_uint(e, 32), SPV_GLSL_UMin, more, spv_u32(e, 63));
  more = select32(e, is_small, more, spv_u32(e, 0));
  uint32_t lost = test(e, SPV_OpINotEqual, spilled(e, top, more), none);
  top = op64(e, SPV_OpBitwiseOr, right(e, top, more), bit64(e, lost));
  uint32_t over = op64(e, SPV_OpBitwiseAnd, top, k64(e, 0x3FF));
  uint32_t out = right(e, top, spv_u32(e, 10));
  uint32_t tie = op64(e, SPV_OpBitwiseAnd, out, k64(e, 1));
  over = op64(e, SPV_OpIAdd, over, tie); /* above one half, or one half and
                                          * odd */
  uint32_t up = test(e, SPV_OpULessThan, k64(e, 0x200), over);
  out = op64(e, SPV_OpIAdd, out, bit64(e, up));
  uint32_t base = SPV_DO(e, SPV_OpUConvert, spv_uint(e, 64),
                         op32(e, SPV_OpISub, exponent, one));
  base = select64(e, is_small, none, left(e, base, spv_u32(e, 52)));
  uint32_t is_large = test(e, SPV_OpSLessThan, spv_u32(e, 2046), exponent);
  return select64(e, is_large, k64(e, UINT64_C(0x7FF) << 52),
                  op64(e, SPV_OpIAdd, base, out));
}

/* Handles infinities, NaNs and a product of 0 with a multiplication and an
 * addition. A product of finite numbers must not become infinite. */
static uint32_t plain(spv_emitter *e, const uint32_t x[3], const operand p[3]) {
  uint32_t f64 = spv_type_of(e, VYRE_TYPE_F64);
  uint32_t made = SPV_DO(e, SPV_OpFMul, f64, x[0], x[1]);
  spv_decorate(e, made, SPV_DECORATION_NoContraction);
  made = SPV_DO(e, SPV_OpFAdd, f64, made, x[2]);
  spv_decorate(e, made, SPV_DECORATION_NoContraction);
  uint32_t factor = test(e, SPV_OpLogicalOr, p[0].is_special, p[1].is_special);
  uint32_t only = test(e, SPV_OpLogicalAnd, p[2].is_special,
                       SPV_DO(e, SPV_OpLogicalNot, spv_bool(e), factor));
  return SPV_DO(e, SPV_OpSelect, f64, only, x[2], made);
}

uint32_t spv_fma64(spv_emitter *e, const uint32_t x[3]) {
  uint32_t u32 = spv_uint(e, 32), f64 = spv_type_of(e, VYRE_TYPE_F64);
  operand p[3];
  for (int i = 0; i < 3; i++) p[i] = decompose(e, x[i]);
  wide made = product(e, p[0].significand, p[1].significand);
  wide summand = {left(e, p[2].significand, spv_u32(e, 9)), k64(e, 0)};
  uint32_t of_made =
      op32(e, SPV_OpISub, op32(e, SPV_OpIAdd, p[0].exponent, p[1].exponent),
           spv_u32(e, 2 * 1075 + 20));
  uint32_t of_summand =
      op32(e, SPV_OpISub, p[2].exponent, spv_u32(e, 1075 + 73));
  of_summand = select32(e, p[2].is_zero, of_made, of_summand);
  uint32_t swaps = test(e, SPV_OpSLessThan, of_made, of_summand);
  wide near = select_wide(e, swaps, summand, made);
  wide far = select_wide(e, swaps, made, summand);
  uint32_t exponent_max = select32(e, swaps, of_summand, of_made);
  uint32_t low_product = select32(e, swaps, of_made, of_summand);
  uint32_t by =
      SPV_GLSL(e, u32, SPV_GLSL_UMin,
               op32(e, SPV_OpISub, exponent_max, low_product), spv_u32(e, 127));
  far = shift_right_sticky(e, far, by);
  uint32_t sign = op64(e, SPV_OpBitwiseXor, p[0].bits, p[1].bits);
  uint32_t differs = is_negative(e, op64(e, SPV_OpBitwiseXor, sign, p[2].bits));
  far = select_wide(e, differs, negative(e, far), far);
  wide all = sum(e, near, far);
  uint32_t turned = is_negative(e, all.high);
  all = select_wide(e, turned, negative(e, all), all);
  sign = select64(e, swaps, p[2].bits, sign);
  sign = op64(e, SPV_OpBitwiseAnd, sign, k64(e, UINT64_C(1) << 63));
  sign = op64(e, SPV_OpBitwiseXor, sign,
              left(e, bit64(e, turned), spv_u32(e, 63)));
  uint32_t bits = op64(e, SPV_OpBitwiseOr, rounded(e, all, exponent_max), sign);
  uint32_t is_zero = test(
      e, SPV_OpIEqual, op64(e, SPV_OpBitwiseOr, all.high, all.low), k64(e, 0));
  bits = select64(e, is_zero, k64(e, 0), bits);
  uint32_t odd = test(e, SPV_OpLogicalOr, p[0].is_zero, p[1].is_zero);
  for (int i = 0; i < 3; i++) {
    odd = test(e, SPV_OpLogicalOr, odd, p[i].is_special);
  }
  return SPV_DO(e, SPV_OpSelect, f64, odd, plain(e, x, p),
                SPV_DO(e, SPV_OpBitcast, f64, bits));
}
