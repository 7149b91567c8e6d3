/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests every pure operation on every type against independent oracles:
 * integers as 128-bit numbers, floats as exact numbers of 4,608 bits that are
 * rounded once, or as computed by the host's hardware. */
#include "ir/scalar.h"

#include "support/check.h"

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 uwide;

enum { RANDOM_VECTORS = 100000 };

static bool covered[VYRE__OP_COUNT][VYRE_TYPE_COUNT][VYRE_TYPE_COUNT];

static uint64_t eval(vyre__op op, vyre_type from, vyre_type to, uint64_t a,
                     uint64_t b, uint64_t c) {
  const uint64_t args[3] = {a, b, c};
  uint64_t out = 0xDEAD;
  if (!vyre__scalar_eval(op, from, to, args, &out)) {
    printf("    %s does not take type %d to %d\n", vyre__ops[op].name, from,
           to);
    test_fail(__FILE__, __LINE__);
  }
  covered[op][from][to] = true;
  return out;
}

static void expect(vyre__op op, vyre_type from, vyre_type to, const uint64_t *x,
                   uint64_t want) {
  uint64_t got = eval(op, from, to, x[0], x[1], x[2]);
  if (got == want) return;
  printf("    %s %d->%d of %llx %llx %llx is %llx, not %llx\n",
         vyre__ops[op].name, from, to, (unsigned long long)x[0],
         (unsigned long long)x[1], (unsigned long long)x[2],
         (unsigned long long)got, (unsigned long long)want);
  test_fail(__FILE__, __LINE__);
}

/* --- integers --------------------------------------------------------------*/

static const vyre_type integers[] = {VYRE_TYPE_U32, VYRE_TYPE_I32,
                                     VYRE_TYPE_U64, VYRE_TYPE_I64};

static int bits_of(vyre_type type) {
  return type == VYRE_TYPE_U64 || type == VYRE_TYPE_I64 || type == VYRE_TYPE_F64
             ? 64
             : 32;
}

static bool is_signed(vyre_type type) {
  return type == VYRE_TYPE_I32 || type == VYRE_TYPE_I64;
}

/* Conversions between a value and its number. */
static wide number(vyre_type type, uint64_t value) {
  int bits = bits_of(type);
  wide out = (wide)value;
  if (is_signed(type) && value >> (bits - 1)) out -= (wide)1 << bits;
  return out;
}

static uint64_t wrap(vyre_type type, wide value) {
  return (uint64_t)((uwide)value & (((uwide)1 << bits_of(type)) - 1));
}

static wide floor_shift(wide value, int count) {
  wide divisor = (wide)1 << count;
  wide quotient = value / divisor;
  return quotient * divisor > value ? quotient - 1 : quotient;
}

static uint64_t int_divide(vyre__op op, vyre_type type, wide a, wide b) {
  if (b == 0) return op == VYRE__OP_DIV ? wrap(type, -1) : 0;
  return wrap(type, op == VYRE__OP_DIV ? a / b : a % b);
}

static uint64_t int_bits(vyre__op op, vyre_type type, uint64_t x) {
  int bits = bits_of(type), count = 0;
  for (int i = 0; i < bits; i++) {
    int at = op == VYRE__OP_CLZ ? bits - 1 - i : i;
    bool set = x >> at & 1;
    if (op != VYRE__OP_POPCOUNT && set) break;
    count += op == VYRE__OP_POPCOUNT ? set : 1;
  }
  return (uint64_t)count;
}

static uint64_t int_function(vyre__op op, vyre_type type, wide a, wide b) {
  int bits = bits_of(type);
  wide last = ((wide)1 << (bits - is_signed(type))) - 1;
  wide first = is_signed(type) ? -last - 1 : 0, sum;
  uint64_t out = 0, x = wrap(type, a);
  switch (op) {
    case VYRE__OP_REVERSE:
      for (; bits > 0; x /= 2) out |= x % 2 << --bits;
      return out;
    case VYRE__OP_ROTATE:
      for (uint32_t n = (uint32_t)b % (unsigned)bits; n > 0; n--) {
        x = wrap(type, (wide)x * 2) + (x >> (bits - 1));
      }
      return x;
    case VYRE__OP_MUL_HIGH:
      if (!is_signed(type)) return (uint64_t)((uwide)a * (uwide)b >> bits);
      return wrap(type, floor_shift(a * b, bits));
    default:
      sum = op == VYRE__OP_ADD_SAT ? a + b : a - b;
      return wrap(type, sum < first ? first : sum > last ? last : sum);
  }
}

static uint64_t int_oracle(vyre__op op, vyre_type type, uint64_t x,
                           uint64_t y) {
  wide a = number(type, x), b = number(type, y);
  int count = (int)((uint32_t)y % (unsigned)bits_of(type));
  switch (op) {
    case VYRE__OP_NEG:
      return wrap(type, -a);
    case VYRE__OP_BIT_NOT:
      return wrap(type, -a - 1);
    case VYRE__OP_ABS:
      return wrap(type, a < 0 ? -a : a);
    case VYRE__OP_SIGN:
      return wrap(type, a < 0 ? -1 : a > 0 ? 1 : 0);
    case VYRE__OP_CLZ:
    case VYRE__OP_CTZ:
    case VYRE__OP_POPCOUNT:
      return int_bits(op, type, x);
    case VYRE__OP_ADD:
      return wrap(type, a + b);
    case VYRE__OP_SUB:
      return wrap(type, a - b);
    case VYRE__OP_MUL:
      return wrap(type, (wide)((uwide)a * (uwide)b));
    case VYRE__OP_DIV:
    case VYRE__OP_REM:
      return int_divide(op, type, a, b);
    case VYRE__OP_AND:
      return x & y;
    case VYRE__OP_OR:
      return x + y - (x & y);
    case VYRE__OP_XOR:
      return (x | y) - (x & y);
    case VYRE__OP_SHL:
      return wrap(type, (wide)((uwide)a << count));
    case VYRE__OP_SHR:
      return wrap(type, floor_shift(a, count));
    case VYRE__OP_EQ:
      return a == b;
    case VYRE__OP_NE:
      return a != b;
    case VYRE__OP_LT:
      return a < b;
    case VYRE__OP_LE:
      return a <= b;
    case VYRE__OP_GT:
      return a > b;
    case VYRE__OP_GE:
      return a >= b;
    case VYRE__OP_MIN:
      return wrap(type, a < b ? a : b);
    case VYRE__OP_MAX:
      return wrap(type, a > b ? a : b);
    default:
      return int_function(op, type, a, b);
  }
}

static bool compares(vyre__op op) {
  return op >= VYRE__OP_EQ && op <= VYRE__OP_GE;
}

static const vyre__op int_ops[] = {
    VYRE__OP_BIT_NOT,  VYRE__OP_CLZ,     VYRE__OP_CTZ,     VYRE__OP_POPCOUNT,
    VYRE__OP_ADD,      VYRE__OP_SUB,     VYRE__OP_MUL,     VYRE__OP_DIV,
    VYRE__OP_REM,      VYRE__OP_AND,     VYRE__OP_OR,      VYRE__OP_XOR,
    VYRE__OP_SHL,      VYRE__OP_SHR,     VYRE__OP_EQ,      VYRE__OP_NE,
    VYRE__OP_LT,       VYRE__OP_LE,      VYRE__OP_GT,      VYRE__OP_GE,
    VYRE__OP_MIN,      VYRE__OP_MAX,     VYRE__OP_REVERSE, VYRE__OP_ROTATE,
    VYRE__OP_MUL_HIGH, VYRE__OP_ADD_SAT, VYRE__OP_SUB_SAT, VYRE__OP_NEG,
    VYRE__OP_ABS,      VYRE__OP_SIGN};
enum { INT_OPS = sizeof int_ops / sizeof int_ops[0], SIGNED_INT_OPS = 3 };

static void check_integers(vyre_type type, uint64_t x, uint64_t y) {
  const uint64_t args[3] = {wrap(type, (wide)x), wrap(type, (wide)y), 0};
  int count = INT_OPS - (is_signed(type) ? 0 : SIGNED_INT_OPS);
  for (int i = 0; i < count; i++) {
    vyre__op op = int_ops[i];
    vyre_type to = compares(op) ? VYRE_TYPE_BOOL : type;
    uint64_t shifted[3] = {args[0], (uint32_t)args[1], 0};
    bool shift =
        op == VYRE__OP_SHL || op == VYRE__OP_SHR || op == VYRE__OP_ROTATE;
    expect(op, type, to, shift ? shifted : args,
           int_oracle(op, type, args[0], shift ? shifted[1] : args[1]));
  }
}

static const uint64_t int_edges[] = {0,
                                     1,
                                     2,
                                     3,
                                     7,
                                     31,
                                     32,
                                     33,
                                     63,
                                     64,
                                     65,
                                     255,
                                     0x7FFFFFFE,
                                     0x7FFFFFFF,
                                     0x80000000,
                                     0x80000001,
                                     0xFFFFFFFE,
                                     0xFFFFFFFF,
                                     0x100000000,
                                     0x7FFFFFFFFFFFFFFF,
                                     0x8000000000000000,
                                     0x8000000000000001,
                                     0xFFFFFFFFFFFFFFFE,
                                     0xFFFFFFFFFFFFFFFF};
enum { INT_EDGES = sizeof int_edges / sizeof int_edges[0] };

TEST(integers_against_wide_numbers) {
  uint64_t seed = 1;
  for (int t = 0; t < 4; t++) {
    for (int i = 0; i < INT_EDGES; i++) {
      for (int j = 0; j < INT_EDGES; j++) {
        check_integers(integers[t], int_edges[i], int_edges[j]);
      }
    }
    for (int i = 0; i < RANDOM_VECTORS / 10; i++) {
      uint64_t x = random_next(&seed) >> random_below(&seed, 64);
      uint64_t y = random_next(&seed) >> random_below(&seed, 64);
      check_integers(integers[t], x, y);
    }
  }
}

TEST(bool_tables) {
  static const struct {
    vyre__op op;
    uint8_t want[4]; /* of 00, 01, 10, 11 */
  } rows[] = {{VYRE__OP_AND, {0, 0, 0, 1}}, {VYRE__OP_OR, {0, 1, 1, 1}},
              {VYRE__OP_XOR, {0, 1, 1, 0}}, {VYRE__OP_LAND, {0, 0, 0, 1}},
              {VYRE__OP_LOR, {0, 1, 1, 1}}, {VYRE__OP_EQ, {1, 0, 0, 1}},
              {VYRE__OP_NE, {0, 1, 1, 0}},  {VYRE__OP_NOT, {1, 1, 0, 0}}};
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
    for (uint64_t i = 0; i < 4; i++) {
      const uint64_t args[3] = {i >> 1, i & 1, 0};
      expect(rows[r].op, VYRE_TYPE_BOOL, VYRE_TYPE_BOOL, args, rows[r].want[i]);
    }
  }
}

/* --- floats, exactly -------------------------------------------------------*/

/* Float format: bits of the significand and of the exponent. */
typedef struct format {
  int precision, exponent_bits;
  uint64_t nan;
} format;

static const format f16 = {11, 5, 0x7E00}, bf16 = {8, 8, 0x7FC0},
                    f32 = {24, 8, 0x7FC00000},
                    f64 = {53, 11, 0x7FF8000000000000};

/* Number magnitude * 2^exponent, from the bits of a finite float. */
typedef struct unpacked {
  bool negative;
  uint64_t magnitude;
  int exponent;
} unpacked;

static int bias(const format *f) {
  return (1 << (f->exponent_bits - 1)) - 1;
}

static uint64_t infinity_of(const format *f) {
  return (((uint64_t)1 << f->exponent_bits) - 1) << (f->precision - 1);
}

static uint64_t sign_of(const format *f) {
  return (uint64_t)1 << (f->precision - 1 + f->exponent_bits);
}

static unpacked unpack(const format *f, uint64_t bits) {
  uint64_t fraction = bits & (((uint64_t)1 << (f->precision - 1)) - 1);
  int exponent =
      (int)(bits >> (f->precision - 1) & ((1u << f->exponent_bits) - 1));
  unpacked out = {.negative = (bits & sign_of(f)) != 0};
  out.magnitude =
      exponent ? fraction | (uint64_t)1 << (f->precision - 1) : fraction;
  out.exponent = (exponent ? exponent : 1) - bias(f) - (f->precision - 1);
  return out;
}

/* Fixed point with 4,608 bits; bit 0 is 2^-2304. */
enum { WORDS = 72, POINT = 2304 };
typedef struct exact {
  uint64_t word[WORDS];
} exact;

static void exact_set(exact *x, uwide value, int exponent) {
  memset(x, 0, sizeof *x);
  int at = exponent + POINT;
  for (int part = 0; part < 4; part++, at += 32) {
    uint64_t piece = (uint32_t)(value >> (32 * part));
    x->word[at / 64] |= piece << (at % 64);
    if (at % 64 > 32) x->word[at / 64 + 1] |= piece >> (64 - at % 64);
  }
}

static int exact_compare(const exact *a, const exact *b) {
  for (int i = WORDS - 1; i >= 0; i--) {
    if (a->word[i] != b->word[i]) return a->word[i] < b->word[i] ? -1 : 1;
  }
  return 0;
}

static void exact_add(exact *a, const exact *b) {
  uwide carry = 0;
  for (int i = 0; i < WORDS; i++) {
    carry += (uwide)a->word[i] + b->word[i];
    a->word[i] = (uint64_t)carry;
    carry >>= 64;
  }
}

static void exact_subtract(exact *a, const exact *b) {
  uint64_t borrow = 0;
  for (int i = 0; i < WORDS; i++) {
    uwide need = (uwide)b->word[i] + borrow;
    borrow = need > a->word[i];
    a->word[i] -= (uint64_t)need;
  }
}

static bool exact_bit(const exact *x, int at) {
  return at >= 0 && (x->word[at / 64] >> (at % 64) & 1);
}

/* Returns the nearest number of the format, ties to even, without its sign. */
static uint64_t exact_round(const exact *x, const format *f) {
  int top = WORDS - 1;
  while (top >= 0 && x->word[top] == 0) top--;
  if (top < 0) return 0;
  top = top * 64 + 63;
  while (!exact_bit(x, top)) top--;
  int exponent = top - POINT; /* of the first bit */
  int min = 1 - bias(f);      /* of a normal number */
  int low = (exponent > min ? exponent : min) - (f->precision - 1);
  uint64_t kept = 0;
  for (int i = f->precision; i >= 0; i--) {
    kept = kept << 1 | exact_bit(x, low + i + POINT);
  }
  int behind = low - 1 + POINT;
  bool half = exact_bit(x, behind), rest = false;
  for (int i = 0; i < behind / 64; i++) rest |= x->word[i] != 0;
  for (int i = behind & ~63; i < behind; i++) rest |= exact_bit(x, i);
  if (half && (rest || (kept & 1))) kept++;
  if (kept >> f->precision) {
    kept >>= 1;
    low++;
  }
  bool normal = kept >> (f->precision - 1);
  int biased = normal ? low + (f->precision - 1) + bias(f) : 0;
  if (biased >= (1 << f->exponent_bits) - 1) return infinity_of(f);
  uint64_t fraction = kept & (((uint64_t)1 << (f->precision - 1)) - 1);
  return (uint64_t)biased << (f->precision - 1) | fraction;
}

static bool is_nan(const format *f, uint64_t bits) {
  return (bits & ~sign_of(f)) > infinity_of(f);
}

static bool is_infinite(const format *f, uint64_t bits) {
  return (bits & ~sign_of(f)) == infinity_of(f);
}

/* Computes a * b + c, rounded once. */
static uint64_t exact_fma(const format *f, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t sign = (a ^ b) & sign_of(f);
  bool product_infinite = is_infinite(f, a) || is_infinite(f, b);
  unpacked x = unpack(f, a), y = unpack(f, b), z = unpack(f, c);
  if (is_nan(f, a) || is_nan(f, b) || is_nan(f, c)) return f->nan;
  if (product_infinite) {
    if (!(a & ~sign_of(f)) || !(b & ~sign_of(f))) return f->nan;
    if (is_infinite(f, c) && (c & sign_of(f)) != sign) return f->nan;
    return infinity_of(f) | sign;
  }
  if (is_infinite(f, c)) return c;
  static exact product, addend;
  exact_set(&product, (uwide)x.magnitude * y.magnitude,
            x.exponent + y.exponent);
  exact_set(&addend, z.magnitude, z.exponent);
  uint64_t addend_sign = c & sign_of(f);
  if (sign == addend_sign) {
    exact_add(&product, &addend);
    return exact_round(&product, f) | sign;
  }
  int order = exact_compare(&product, &addend);
  if (order == 0) return 0; /* +0, also for two zeros of different sign */
  if (order > 0) {
    exact_subtract(&product, &addend);
    return exact_round(&product, f) | sign;
  }
  exact_subtract(&addend, &product);
  return exact_round(&addend, f) | addend_sign;
}

/* Converts between any two formats. */
static uint64_t exact_convert(const format *from, const format *to,
                              uint64_t bits) {
  uint64_t sign = bits & sign_of(from) ? sign_of(to) : 0;
  if (is_nan(from, bits)) return to->nan;
  if (is_infinite(from, bits)) return infinity_of(to) | sign;
  unpacked x = unpack(from, bits);
  static exact value;
  exact_set(&value, x.magnitude, x.exponent);
  return exact_round(&value, to) | sign;
}

/* --- float operations ------------------------------------------------------*/

static const uint64_t edges_32[] = {
    0,          0x80000000, 1,          0x80000001, 2,          0x007FFFFF,
    0x00800000, 0x00800001, 0x33800000, 0x3EFFFFFF, 0x3F000000, 0x3F000001,
    0x3F7FFFFF, 0x3F800000, 0x3F800001, 0xBF800000, 0x3FC00000, 0x40200000,
    0xC0200000, 0x4AFFFFFF, 0x4B000000, 0x4B000001, 0x4B7FFFFF, 0x4B800001,
    0x4EFFFFFF, 0x4F000000, 0x4F7FFFFF, 0x4F800000, 0x5F000000, 0x5F7FFFFF,
    0x5F800000, 0xCF000000, 0xCF000001, 0xDF000000, 0xDF000001, 0x7F7FFFFF,
    0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001,
    0x7FFFFFFF, 0xFFABCDEF};
enum { EDGES = sizeof edges_32 / sizeof edges_32[0] };

/* The same kinds of values for f64: near a power of two, a half, a limit. */
static uint64_t edge(const format *f, int i) {
  if (f->precision == 24) return edges_32[i];
  static const uint64_t special[] = {
      0x7FF0000000000001, 0xFFFFFFFFFFFFFFFF, 0x000FFFFFFFFFFFFF,
      0x0010000000000000, 0x7FEFFFFFFFFFFFFF, 0x8000000000000001,
      0x43DFFFFFFFFFFFFF, 0x43EFFFFFFFFFFFFF, 0x41DFFFFFFFE00000,
      0x41EFFFFFFFF00000, 0x432FFFFFFFFFFFFF, 0x4330000000000001};
  int count = sizeof special / sizeof special[0];
  if (i < count) return special[i];
  return exact_convert(&f32, &f64, edges_32[i]);
}

/* Returns a random float, often near another number, so that sums cancel. */
static uint64_t random_float(const format *f, uint64_t *seed) {
  int bits = f->precision + f->exponent_bits;
  uint64_t raw = random_next(seed) & ((sign_of(f) << 1) - 1);
  if (random_below(seed, 8) == 0) {
    return edge(f, (int)random_below(seed, EDGES));
  }
  if (random_below(seed, 2) == 0) { /* an exponent near 0 */
    uint64_t field = (uint64_t)bias(f) - 4 + random_below(seed, 8);
    uint64_t keep = ~(infinity_of(f)) & (((uint64_t)1 << (bits - 1)) * 2 - 1);
    raw = (raw & keep) | field << (f->precision - 1);
  }
  return raw;
}

static vyre_type type_of(const format *f) {
  return f->precision == 24 ? VYRE_TYPE_F32 : VYRE_TYPE_F64;
}

static uint64_t one_of(const format *f) {
  return (uint64_t)bias(f) << (f->precision - 1);
}

/* Division and square root of the host. */
static uint64_t hardware(vyre__op op, const format *f, uint64_t a, uint64_t b) {
  uint64_t out;
  if (f->precision == 24) {
    volatile float x = vyre__f32(a), y = vyre__f32(b);
    volatile float r = op == VYRE__OP_DIV ? x / y : sqrtf(x);
    out = vyre__of_f32(r);
  } else {
    volatile double x = vyre__f64(a), y = vyre__f64(b);
    volatile double r = op == VYRE__OP_DIV ? x / y : sqrt(x);
    out = vyre__of_f64(r);
  }
  return is_nan(f, out) ? f->nan : out;
}

/* Returns a number that orders floats except NaN, -0 below +0. */
static wide order_key(const format *f, uint64_t bits) {
  wide magnitude = (wide)(bits & ~sign_of(f));
  return bits & sign_of(f) ? -magnitude - 1 : magnitude;
}

static uint64_t choose(const format *f, uint64_t a, uint64_t b, bool max) {
  if (is_nan(f, a)) return is_nan(f, b) ? f->nan : b;
  if (is_nan(f, b)) return a;
  return (order_key(f, a) > order_key(f, b)) == max ? a : b;
}

static bool relation(vyre__op op, const format *f, uint64_t a, uint64_t b) {
  if (is_nan(f, a) || is_nan(f, b)) return op == VYRE__OP_NE;
  bool zeros = !((a | b) & ~sign_of(f));
  wide x = zeros ? 0 : order_key(f, a), y = zeros ? 0 : order_key(f, b);
  switch (op) {
    case VYRE__OP_EQ:
      return x == y;
    case VYRE__OP_NE:
      return x != y;
    case VYRE__OP_LT:
      return x < y;
    case VYRE__OP_LE:
      return x <= y;
    case VYRE__OP_GT:
      return x > y;
    default:
      return x >= y;
  }
}

static void check_pair(const format *f, uint64_t a, uint64_t b) {
  vyre_type type = type_of(f);
  const uint64_t args[3] = {a, b, 0};
  uint64_t minus_b = b ^ sign_of(f), one = one_of(f);
  uint64_t zero = ((a ^ b) & sign_of(f));
  expect(VYRE__OP_ADD, type, type, args, exact_fma(f, a, one, b));
  expect(VYRE__OP_SUB, type, type, args,
         is_nan(f, b) ? f->nan : exact_fma(f, a, one, minus_b));
  expect(VYRE__OP_MUL, type, type, args, exact_fma(f, a, b, zero));
  expect(VYRE__OP_DIV, type, type, args, hardware(VYRE__OP_DIV, f, a, b));
  expect(VYRE__OP_MIN, type, type, args, choose(f, a, b, false));
  expect(VYRE__OP_MAX, type, type, args, choose(f, a, b, true));
  for (vyre__op op = VYRE__OP_EQ; op <= VYRE__OP_GE; op++) {
    expect(op, type, VYRE_TYPE_BOOL, args, relation(op, f, a, b));
  }
}

/* Rounds with the integer part and the fraction. */
static uint64_t round_oracle(vyre__op op, const format *f, uint64_t a) {
  uint64_t sign = a & sign_of(f);
  if (is_nan(f, a)) return f->nan;
  unpacked x = unpack(f, a);
  if (is_infinite(f, a) || x.exponent >= 0) return a;
  int drop = -x.exponent > 63 ? 63 : -x.exponent;
  uint64_t whole = x.magnitude >> drop;
  uint64_t rest = x.magnitude & (((uint64_t)1 << drop) - 1);
  uint64_t half = (uint64_t)1 << (drop - 1);
  bool up = false;
  if (op == VYRE__OP_FLOOR) up = rest && sign;
  if (op == VYRE__OP_CEIL) up = rest && !sign;
  if (op == VYRE__OP_ROUND) up = rest >= half;
  if (op == VYRE__OP_RINT) {
    up = rest > half || (rest == half && (whole & 1));
  }
  static exact value;
  exact_set(&value, whole + up, 0);
  return exact_round(&value, f) | sign;
}

static void check_single(const format *f, uint64_t a) {
  vyre_type type = type_of(f);
  const uint64_t args[3] = {a, 0, 0};
  bool nan = is_nan(f, a), negative = a & sign_of(f);
  uint64_t magnitude = a & ~sign_of(f);
  uint64_t sign = one_of(f) | (negative ? sign_of(f) : 0);
  expect(VYRE__OP_NEG, type, type, args, nan ? f->nan : a ^ sign_of(f));
  expect(VYRE__OP_ABS, type, type, args, nan ? f->nan : magnitude);
  expect(VYRE__OP_SIGN, type, type, args, nan ? f->nan : magnitude ? sign : 0);
  expect(VYRE__OP_SQRT, type, type, args, hardware(VYRE__OP_SQRT, f, a, 0));
  for (vyre__op op = VYRE__OP_FLOOR; op <= VYRE__OP_RINT; op++) {
    expect(op, type, type, args, round_oracle(op, f, a));
  }
}

static void check_fma(const format *f, uint64_t a, uint64_t b, uint64_t c) {
  const uint64_t args[3] = {a, b, c};
  expect(VYRE__OP_FMA, type_of(f), type_of(f), args, exact_fma(f, a, b, c));
}

static void check_format(const format *f, uint64_t seed) {
  for (int i = 0; i < EDGES; i++) {
    check_single(f, edge(f, i));
    for (int j = 0; j < EDGES; j++) {
      check_pair(f, edge(f, i), edge(f, j));
      for (int k = 0; k < EDGES; k++) {
        check_fma(f, edge(f, i), edge(f, j), edge(f, k));
      }
    }
  }
  for (int i = 0; i < RANDOM_VECTORS; i++) {
    uint64_t a = random_float(f, &seed), b = random_float(f, &seed);
    check_single(f, a);
    check_pair(f, a, b);
  }
}

TEST(f32_against_exact_numbers) {
  check_format(&f32, 2);
}

TEST(f64_against_exact_numbers) {
  check_format(&f64, 3);
}

/* Returns a summand for fma: often the negated rounded product or half an ulp
 * of it, which reveals a second rounding or a lost bit. */
static uint64_t near_product(const format *f, uint64_t a, uint64_t b,
                             uint64_t *seed) {
  uint64_t product = eval(VYRE__OP_MUL, type_of(f), type_of(f), a, b, 0);
  uint64_t shift = random_below(seed, 2 * (uint64_t)f->precision);
  uint64_t down = shift << (f->precision - 1);
  uint64_t magnitude = product & ~sign_of(f);
  uint64_t sign = random_next(seed) & sign_of(f);
  return (magnitude > down ? magnitude - down : magnitude) | sign;
}

TEST(fma_is_rounded_once) {
  uint64_t seed = 4;
  for (int i = 0; i < 20 * RANDOM_VECTORS; i++) {
    const format *f = i & 1 ? &f64 : &f32;
    uint64_t a = random_float(f, &seed), b = random_float(f, &seed);
    uint64_t c = random_below(&seed, 3) ? near_product(f, a, b, &seed)
                                        : random_float(f, &seed);
    check_fma(f, a, b, c);
  }
}

/* --- casts -----------------------------------------------------------------*/

static const vyre_type types[] = {VYRE_TYPE_BOOL, VYRE_TYPE_U32, VYRE_TYPE_I32,
                                  VYRE_TYPE_U64,  VYRE_TYPE_I64, VYRE_TYPE_F32,
                                  VYRE_TYPE_F64};
enum { TYPES = sizeof types / sizeof types[0] };

static const format *format_of(vyre_type type) {
  if (type == VYRE_TYPE_F32) return &f32;
  return type == VYRE_TYPE_F64 ? &f64 : NULL;
}

static uint64_t saturate(vyre_type to, const format *f, uint64_t bits) {
  if (is_nan(f, bits)) return 0;
  unpacked x = unpack(f, bits);
  wide max = ((wide)1 << (bits_of(to) - is_signed(to))) - 1;
  wide min = is_signed(to) ? -max - 1 : 0;
  wide value = max + 1;
  if (!is_infinite(f, bits) && x.exponent < 70) {
    value = x.exponent >= 0    ? (wide)x.magnitude << x.exponent
            : x.exponent < -63 ? 0
                               : (wide)(x.magnitude >> -x.exponent);
  } else if (!is_infinite(f, bits) && x.magnitude == 0) {
    value = 0;
  }
  if (x.negative) value = -value - (value > max && !is_signed(to));
  if (value > max) value = max;
  if (value < min) value = min;
  return wrap(to, value);
}

static uint64_t int_to_float(const format *f, wide value) {
  static exact x;
  exact_set(&x, value < 0 ? (uwide)-value : (uwide)value, 0);
  return exact_round(&x, f) | (value < 0 ? sign_of(f) : 0);
}

static uint64_t cast_oracle(vyre_type from, vyre_type to, uint64_t value) {
  const format *f = format_of(from), *t = format_of(to);
  wide whole = from == VYRE_TYPE_BOOL ? (wide)value : number(from, value);
  if (f && t) return exact_convert(f, t, value);
  if (to == VYRE_TYPE_BOOL) return f ? (value & ~sign_of(f)) != 0 : whole != 0;
  if (f) return saturate(to, f, value);
  return t ? int_to_float(t, whole) : wrap(to, whole);
}

static void check_casts(vyre_type from, uint64_t value) {
  const uint64_t args[3] = {value, 0, 0};
  for (int i = 0; i < TYPES; i++) {
    expect(VYRE__OP_CAST, from, types[i], args,
           cast_oracle(from, types[i], value));
    bool same_width = from != VYRE_TYPE_BOOL && types[i] != VYRE_TYPE_BOOL &&
                      bits_of(from) == bits_of(types[i]);
    if (!same_width) continue;
    const format *f = format_of(from) ? format_of(from) : format_of(types[i]);
    bool nan = f && is_nan(f, value);
    expect(VYRE__OP_BITCAST, from, types[i], args, nan ? f->nan : value);
  }
  const uint64_t choice[3] = {value & 1, value, value ^ 1};
  bool nans = format_of(from) != NULL;
  expect(VYRE__OP_UNIFORM, from, from, args,
         nans && is_nan(format_of(from), value) ? format_of(from)->nan : value);
  static const vyre__op choices[] = {VYRE__OP_SELECT, VYRE__OP_COND};
  for (int i = 0; i < 2 && !nans; i++) {
    uint64_t got =
        eval(choices[i], VYRE_TYPE_BOOL, from, choice[0], choice[1], choice[2]);
    CHECK_U64(got, choice[0] ? choice[1] : choice[2]);
  }
}

TEST(casts_at_their_edges) {
  uint64_t seed = 5;
  for (int t = 0; t < TYPES; t++) {
    const format *f = format_of(types[t]);
    for (int i = 0; i < RANDOM_VECTORS; i++) {
      uint64_t value;
      if (f) {
        value = i < EDGES ? edge(f, i) : random_float(f, &seed);
      } else if (types[t] == VYRE_TYPE_BOOL) {
        value = (uint64_t)i & 1;
      } else {
        value = i < INT_EDGES ? int_edges[i]
                              : random_next(&seed) >> random_below(&seed, 64);
        value = wrap(types[t], (wide)value);
      }
      check_casts(types[t], value);
    }
  }
  CHECK_U64(eval(VYRE__OP_SELECT, VYRE_TYPE_BOOL, VYRE_TYPE_F32, 1, 7, 8), 7);
  CHECK_U64(eval(VYRE__OP_SELECT, VYRE_TYPE_BOOL, VYRE_TYPE_F64, 0, 7, 8), 8);
  CHECK_U64(eval(VYRE__OP_COND, VYRE_TYPE_BOOL, VYRE_TYPE_F32, 1, 7, 8), 7);
  CHECK_U64(eval(VYRE__OP_COND, VYRE_TYPE_BOOL, VYRE_TYPE_F64, 0, 7, 8), 8);
}

/* u64 to f32: these values are wrong if rounded to f64 first. */
TEST(casts_round_once) {
  CHECK_U64(eval(VYRE__OP_CAST, VYRE_TYPE_U64, VYRE_TYPE_F32,
                 0x8000008000000001, 0, 0),
            0x5F000001);
  CHECK_U64(eval(VYRE__OP_CAST, VYRE_TYPE_I64, VYRE_TYPE_F32,
                 0x4000004000000001, 0, 0),
            0x5E800001);
}

/* --- elements --------------------------------------------------------------*/

static uint64_t store(vyre_element element, uint64_t value) {
  unsigned char memory[10]; /* misaligned on purpose, with guard bytes */
  memset(memory, 0xA5, sizeof memory);
  vyre__element_store(element, memory + 1, value);
  uint32_t size = vyre_element_size(element);
  if (size == 0) size = 1;
  uint64_t out = 0;
  memcpy(&out, memory + 1, size);
  CHECK_U64(memory[0], 0xA5);
  for (uint32_t i = size + 1; i < sizeof memory; i++) CHECK(memory[i] == 0xA5);
  return out;
}

static void check_half(vyre_element element, const format *f) {
  for (uint32_t bits = 0; bits < 65536; bits++) {
    uint16_t half = (uint16_t)bits;
    uint64_t loaded = vyre__element_load(element, &half);
    CHECK_U64(vyre__canonical_f32(loaded), exact_convert(f, &f32, bits));
    CHECK_U64(store(element, loaded), is_nan(f, bits) ? f->nan : bits);
    for (int off = -2; off <= 2;
         off++) { /* neighbours, and the middle between two values */
      uint64_t middle = loaded + ((uint64_t)1 << (23 - f->precision));
      uint64_t near = (uint32_t)(loaded + (uint64_t)off);
      CHECK_U64(store(element, near), exact_convert(&f32, f, near));
      near = (uint32_t)(middle + (uint64_t)off);
      CHECK_U64(store(element, near), exact_convert(&f32, f, near));
    }
  }
  uint64_t seed = 6;
  for (int i = 0; i < RANDOM_VECTORS; i++) {
    uint64_t value = random_float(&f32, &seed);
    CHECK_U64(store(element, value), exact_convert(&f32, f, value));
  }
}

TEST(all_f16_both_ways) {
  check_half(VYRE_ELEMENT_F16, &f16);
}

TEST(all_bf16_both_ways) {
  check_half(VYRE_ELEMENT_BF16, &bf16);
}

TEST(elements_widen_and_narrow) {
  static const struct {
    vyre_element element;
    uint64_t value, stored, loaded;
  } rows[] = {
      {VYRE_ELEMENT_BOOL, 1, 1, 1},
      {VYRE_ELEMENT_BOOL, 0, 0, 0},
      {VYRE_ELEMENT_U8, 0x1FF, 0xFF, 0xFF},
      {VYRE_ELEMENT_BYTES, 0x180, 0x80, 0x80},
      {VYRE_ELEMENT_I8, 0xFFFFFF80, 0x80, 0xFFFFFF80},
      {VYRE_ELEMENT_I8, 0x17F, 0x7F, 0x7F},
      {VYRE_ELEMENT_U16, 0x12345, 0x2345, 0x2345},
      {VYRE_ELEMENT_I16, 0xFFFF8000, 0x8000, 0xFFFF8000},
      {VYRE_ELEMENT_U32, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF},
      {VYRE_ELEMENT_I32, 0x80000000, 0x80000000, 0x80000000},
      {VYRE_ELEMENT_U64, UINT64_MAX, UINT64_MAX, UINT64_MAX},
      {VYRE_ELEMENT_I64, 1ull << 63, 1ull << 63, 1ull << 63},
      {VYRE_ELEMENT_F32, 0xFF800001, 0x7FC00000, 0x7FC00000},
      {VYRE_ELEMENT_F32, 0x80000000, 0x80000000, 0x80000000},
      {VYRE_ELEMENT_F64, 0xFFF0000000000001, 0x7FF8000000000000,
       0x7FF8000000000000},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    uint64_t stored = store(rows[i].element, rows[i].value);
    CHECK_U64(stored, rows[i].stored);
    CHECK_U64(vyre__element_load(rows[i].element, &stored), rows[i].loaded);
  }
  unsigned char seven = 7; /* a bool that is neither 0 nor 1 */
  CHECK_U64(vyre__element_load(VYRE_ELEMENT_BOOL, &seven), 1);
}

/* --- functions of several operations ---------------------------------------*/

/* Picks the bits one at a time. */
static void check_ranges(vyre_type type, uint64_t x, uint64_t y, uint32_t from,
                         uint32_t count) {
  uint64_t taken = 0, put = x, last = 0;
  uint32_t bits = (uint32_t)bits_of(type), n = 0;
  for (; n < count && from < bits && from + n < bits; n++) {
    last = x >> (from + n) & 1;
    taken += last << n;
    put -= (x >> (from + n) & 1) << (from + n);
    put += (y >> n & 1) << (from + n);
  }
  if (is_signed(type) && last && n < bits) {
    taken = wrap(type, (wide)taken - ((wide)1 << n));
  }
  const uint64_t take[3] = {x, from, count}, range[3] = {from, count, 0};
  expect(VYRE__OP_EXTRACT, type, type, take, taken);
  uint64_t packed = (from < 64 ? from : 64) + 256 * (count < 64 ? count : 64);
  expect(VYRE__OP_BIT_RANGE, VYRE_TYPE_U32, VYRE_TYPE_U32, range, packed);
  const uint64_t into[3] = {x, y, packed};
  expect(VYRE__OP_INSERT, type, type, into, put);
}

TEST(ranges_of_bits) {
  uint64_t seed = 9;
  for (int t = 0; t < 4; t++) {
    vyre_type type = (vyre_type)(VYRE_TYPE_U32 + t);
    for (int i = 0; i < RANDOM_VECTORS; i++) {
      uint64_t x = wrap(type, (wide)random_next(&seed));
      uint64_t y = wrap(type, (wide)random_next(&seed));
      uint32_t from = (uint32_t)random_below(&seed, 68);
      uint32_t count = (uint32_t)random_below(&seed, 68);
      if (i % 16 == 0) from = (uint32_t)random_next(&seed);
      if (i % 16 == 1) count = (uint32_t)random_next(&seed);
      check_ranges(type, x, y, from, count);
    }
  }
}

TEST(products_of_bytes) {
  uint64_t seed = 10;
  for (int i = 0; i < RANDOM_VECTORS; i++) {
    const uint64_t args[3] = {(uint32_t)random_next(&seed),
                              (uint32_t)random_next(&seed), 0};
    int64_t plain = 0, with_sign = 0;
    for (int k = 0; k < 4; k++) {
      int64_t x = (int64_t)(args[0] >> 8 * k) % 256;
      int64_t y = (int64_t)(args[1] >> 8 * k) % 256;
      plain += x * y;
      with_sign += (x < 128 ? x : x - 256) * (y < 128 ? y : y - 256);
    }
    expect(VYRE__OP_DOT4_U8, VYRE_TYPE_U32, VYRE_TYPE_U32, args,
           (uint64_t)plain);
    expect(VYRE__OP_DOT4_I8, VYRE_TYPE_U32, VYRE_TYPE_I32, args,
           wrap(VYRE_TYPE_I32, with_sign));
  }
}

/* The parts were compared with exact arithmetic before. */
static void check_functions(vyre_type t, uint64_t x, uint64_t y, uint64_t z) {
#define DO(op, a, b, c) eval(VYRE__OP_##op, t, t, (a), (b), (c))
  uint64_t one = t == VYRE_TYPE_F32 ? 0x3F800000 : 0x3FF0000000000000;
  uint64_t two = t == VYRE_TYPE_F32 ? 0x40000000 : 0x4000000000000000;
  uint64_t three = t == VYRE_TYPE_F32 ? 0x40400000 : 0x4008000000000000;
  const uint64_t args[3] = {x, y, z};
  uint64_t minus = DO(NEG, z, 0, 0);
  expect(VYRE__OP_MIX, t, t, args, DO(FMA, z, y, DO(FMA, minus, x, x)));
  expect(VYRE__OP_FRACT, t, t, args, DO(SUB, x, DO(FLOOR, x, 0, 0), 0));
  uint64_t s = DO(DIV, DO(SUB, z, x, 0), DO(SUB, y, x, 0), 0);
  s = DO(MIN, DO(MAX, s, 0, 0), one, 0);
  uint64_t rest = DO(SUB, three, DO(MUL, two, s, 0), 0);
  expect(VYRE__OP_SMOOTHSTEP, t, t, args, DO(MUL, DO(MUL, s, s, 0), rest, 0));
#undef DO
}

TEST(functions_of_floats) {
  uint64_t seed = 11;
  for (int t = VYRE_TYPE_F32; t <= VYRE_TYPE_F64; t++) {
    const format *f = format_of((vyre_type)t);
    for (int i = 0; i < RANDOM_VECTORS; i++) {
      uint64_t v[3];
      for (int k = 0; k < 3; k++) {
        v[k] = i % 3 == k ? edge(f, i % EDGES) : random_float(f, &seed);
      }
      check_functions((vyre_type)t, v[0], v[1], v[2]);
    }
  }
}

/* --- coverage --------------------------------------------------------------*/

static bool takes(vyre__op op, vyre_type from, vyre_type to) {
  bool is_bool = from == VYRE_TYPE_BOOL, is_float = format_of(from) != NULL;
  bool integer = !is_bool && !is_float, same = from == to;
  /* made of other operations by the builder */
  if (op == VYRE__OP_CLAMP || op == VYRE__OP_SATURATE || op == VYRE__OP_STEP) {
    return false;
  }
  if (vyre__op_is_workgroup(op)) return false; /* of many invocations */
  if (vyre__op_is_subgroup(op)) return false;
  switch (vyre__ops[op].rule) {
    case VYRE__RULE_U32:
      return from == VYRE_TYPE_U32 &&
             to == (op == VYRE__OP_DOT4_I8 ? VYRE_TYPE_I32 : VYRE_TYPE_U32);
    case VYRE__RULE_ANY_SAME:
      return same;
    case VYRE__RULE_BOOL_SAME:
      return is_bool && same;
    case VYRE__RULE_INTEGER_SAME:
    case VYRE__RULE_SHIFT:
    case VYRE__RULE_EXTRACT:
    case VYRE__RULE_INSERT:
      return integer && same;
    case VYRE__RULE_BITS_SAME:
      return !is_float && same;
    case VYRE__RULE_FLOAT_SAME:
      return is_float && same;
    case VYRE__RULE_F32_SAME: /* done by the math library */
      return false;
    case VYRE__RULE_SIGNED_SAME:
      return (is_float || is_signed(from)) && same;
    case VYRE__RULE_NUMBER_SAME:
      return !is_bool && same;
    case VYRE__RULE_COMPARE_ANY:
      return to == VYRE_TYPE_BOOL;
    case VYRE__RULE_COMPARE_NUMBER:
      return !is_bool && to == VYRE_TYPE_BOOL;
    case VYRE__RULE_CAST:
      return true;
    case VYRE__RULE_BITCAST:
      return !is_bool && to != VYRE_TYPE_BOOL && bits_of(from) == bits_of(to);
    case VYRE__RULE_SELECT:
      return is_bool;
    default:
      return false;
  }
}

/* Runs last: every operation was compared with an oracle on every type that
 * it accepts, and scalar.c accepts no other pair. */
TEST(every_operation_and_type_was_compared) {
  int count = 0;
  for (vyre__op op = 0; op < VYRE__OP_COUNT; op++) {
    for (int i = 0; i < TYPES; i++) {
      for (int j = 0; j < TYPES; j++) {
        bool wanted = takes(op, types[i], types[j]);
        if (covered[op][types[i]][types[j]] != wanted) {
          printf("    %s of type %d to %d: %s\n", vyre__ops[op].name, types[i],
                 types[j], wanted ? "not tested" : "tested, but no operation");
          CHECK(false);
        }
        count += wanted;
      }
    }
  }
  CHECK_U64(count, 271);
}
TEST(refuses_unknown_operations) {
  const uint64_t args[3] = {0, 0, 0};
  uint64_t out = 42;
  CHECK(!vyre__scalar_eval(VYRE__OP_LOAD, VYRE_TYPE_U32, VYRE_TYPE_U32, args,
                           &out));
  CHECK(!vyre__scalar_eval(VYRE__OP_SQRT, VYRE_TYPE_U32, VYRE_TYPE_U32, args,
                           &out));
  CHECK(!vyre__scalar_eval(VYRE__OP_BITCAST, VYRE_TYPE_U32, VYRE_TYPE_U64, args,
                           &out));
  CHECK(!vyre__scalar_eval(VYRE__OP_ADD, VYRE_TYPE_VOID, VYRE_TYPE_VOID, args,
                           &out));
  CHECK_U64(out, 42);
}

/* The caller may have set the processor to flush subnormals or to round up. */
TEST(the_callers_environment_does_not_matter) {
  fesetround(FE_UPWARD);
  uint64_t sum =
      eval(VYRE__OP_ADD, VYRE_TYPE_F32, VYRE_TYPE_F32, 0x3F800000, 1, 0);
  int rounding = fegetround();
  fesetround(FE_TONEAREST);
  CHECK_U64(sum, 0x3F800000);
  CHECK(rounding == FE_UPWARD);
}

TEST_MAIN(TEST_ENTRY(integers_against_wide_numbers), TEST_ENTRY(bool_tables),
          TEST_ENTRY(f32_against_exact_numbers),
          TEST_ENTRY(f64_against_exact_numbers),
          TEST_ENTRY(fma_is_rounded_once), TEST_ENTRY(casts_at_their_edges),
          TEST_ENTRY(casts_round_once), TEST_ENTRY(all_f16_both_ways),
          TEST_ENTRY(all_bf16_both_ways), TEST_ENTRY(elements_widen_and_narrow),
          TEST_ENTRY(ranges_of_bits), TEST_ENTRY(products_of_bytes),
          TEST_ENTRY(functions_of_floats),
          TEST_ENTRY(every_operation_and_type_was_compared),
          TEST_ENTRY(refuses_unknown_operations),
          TEST_ENTRY(the_callers_environment_does_not_matter))
