/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lang/literal.h"

#include <string.h>

#include "lang/lex.h"

/* --- rounding --------------------------------------------------------------*/

typedef struct float_format {
  int bits; /* of the significand, including the implicit one */
  int min;  /* smallest exponent of a normal number */
  uint64_t infinity;
} float_format;

static const float_format format_f32 = {24, -126, 0x7F800000u};
static const float_format format_f64 = {53, -1022, 0x7FF0000000000000u};

/* Rounds @p q * 2^exponent (plus a bit more if @p sticky) to nearest even. @p
 * exponent is below a million. */
static uint64_t round_to(const float_format *format, uint64_t q, int exponent,
                         bool sticky) {
  if (q == 0) return 0;
  int shift = __builtin_clzll(q);
  q <<= shift;
  int top = exponent - shift + 63;
  int drop = 64 - format->bits;
  if (top < format->min) drop += format->min - top;
  if (drop > 64) return 0;
  uint64_t remaining = drop == 64 ? 0 : q >> drop;
  uint64_t rest = drop == 64 ? q : q & ((UINT64_C(1) << drop) - 1);
  uint64_t half = UINT64_C(1) << (drop - 1);
  if (rest > half || (rest == half && (sticky || (remaining & 1)))) remaining++;
  if (top > -format->min + 1) return format->infinity;
  if (top > format->min) {
    /* adding the implicit bit increments the exponent; so does a carry */
    remaining += (uint64_t)(top - format->min) << (format->bits - 1);
  }
  return remaining >= format->infinity ? format->infinity : remaining;
}

static void set_both(vyre__number_token *out, uint64_t q, int exponent,
                     bool sticky) {
  uint64_t wide = round_to(&format_f64, q, exponent, sticky);
  uint32_t narrow = (uint32_t)round_to(&format_f32, q, exponent, sticky);
  memcpy(&out->f64, &wide, sizeof wide);
  memcpy(&out->f32, &narrow, sizeof narrow);
}

/* --- big numbers: for decimals that double arithmetic cannot round exactly -*/

enum {
  LIMBS = 144,        /* 4608 bits: 10^912 and 64 bits of quotient fit */
  MAX_DECIMAL = 320,  /* 10^320 and above is infinite in every type */
  MIN_DECIMAL = -400, /* below 10^-400 it is 0 */
};

typedef struct big {
  uint32_t limbs[LIMBS]; /* little endian */
  int count;             /* without leading zeros */
} big;

static void big_mul_add(big *b, uint32_t factor, uint32_t addend) {
  uint64_t carry = addend;
  for (int i = 0; i < b->count; i++) {
    carry += (uint64_t)b->limbs[i] * factor;
    b->limbs[i] = (uint32_t)carry;
    carry >>= 32;
  }
  if (carry && b->count < LIMBS) b->limbs[b->count++] = (uint32_t)carry;
}

static void big_mul_power10(big *b, int power) {
  for (; power >= 9; power -= 9) big_mul_add(b, 1000000000u, 0);
  for (; power > 0; power--) big_mul_add(b, 10, 0);
}

static int big_bits(const big *b) {
  if (b->count == 0) return 0;
  return b->count * 32 - __builtin_clz(b->limbs[b->count - 1]);
}

static void big_shift_left(big *b, int bits) {
  int words = bits / 32;
  if (words > 0 && b->count > 0 && b->count + words <= LIMBS) {
    memmove(b->limbs + words, b->limbs, (size_t)b->count * sizeof *b->limbs);
    memset(b->limbs, 0, (size_t)words * sizeof *b->limbs);
    b->count += words;
  }
  if (bits % 32) big_mul_add(b, UINT32_C(1) << (bits % 32), 0);
}

static void big_halve(big *b) {
  for (int i = 0; i < b->count; i++) {
    uint32_t above = i + 1 < b->count ? b->limbs[i + 1] : 0;
    b->limbs[i] = b->limbs[i] >> 1 | above << 31;
  }
  if (b->count > 0 && b->limbs[b->count - 1] == 0) b->count--;
}

/* Subtracts b from a if b <= a; returns true if it did. */
static bool big_subtract(big *a, const big *b) {
  if (a->count < b->count) return false;
  if (a->count == b->count) {
    int i = a->count - 1;
    while (i >= 0 && a->limbs[i] == b->limbs[i]) i--;
    if (i >= 0 && a->limbs[i] < b->limbs[i]) return false;
  }
  uint64_t borrow = 0;
  for (int i = 0; i < a->count; i++) {
    uint64_t less = (i < b->count ? b->limbs[i] : 0) + borrow;
    borrow = a->limbs[i] < less;
    a->limbs[i] = (uint32_t)(a->limbs[i] - less);
  }
  while (a->count > 0 && a->limbs[a->count - 1] == 0) a->count--;
  return true;
}

/* Rounds digits * 10^exponent exactly, by way of a quotient of 63 or 64 bits.
 */
static void convert_exactly(const char *digits, int count, int exponent,
                            vyre__number_token *out) {
  big n = {.count = 0}, m = {.limbs = {1}, .count = 1};
  for (int i = 0; i < count; i++) {
    big_mul_add(&n, 10, (uint32_t)(digits[i] - '0'));
  }
  big_mul_power10(exponent > 0 ? &n : &m, exponent > 0 ? exponent : -exponent);
  int shift = big_bits(&m) + 63 - big_bits(&n);
  big_shift_left(shift > 0 ? &n : &m, shift > 0 ? shift : -shift);
  big_shift_left(&m, 63);
  uint64_t q = 0;
  for (int i = 0; i < 64; i++) {
    q = q << 1 | (big_subtract(&n, &m) ? 1u : 0u);
    big_halve(&m);
  }
  set_both(out, q, -shift, n.count > 0);
}

/* Fast path: a product or quotient of two exact doubles. */
static bool convert_fast(const char *digits, int count, int exponent,
                         vyre__number_token *out) {
  static const double powers[] = {
      1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  if (count > 15 || exponent > 22 || exponent < -22) return false;
  uint64_t mantissa = 0;
  for (int i = 0; i < count; i++) {
    mantissa = mantissa * 10 + (uint64_t)(digits[i] - '0');
  }
  double value = (double)mantissa;
  value = exponent < 0 ? value / powers[-exponent] : value * powers[exponent];
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  /* Halfway between two floats: the first rounding may have lost the
   * direction. */
  if ((bits & 0x1FFFFFFF) == 0x10000000) return false;
  out->f64 = value;
  out->f32 = (float)value; /* 10^-22 to 10^37: normal in both types */
  return true;
}

/* --- reading ---------------------------------------------------------------*/

typedef struct cursor {
  const char *at, *end;
} cursor;

static bool wrong(vyre__number_fault *fault, const char *message,
                  const char *fix) {
  *fault = (vyre__number_fault){message, fix};
  return false;
}

static int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  char lower = (char)(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 99;
}

static bool is_digit(const cursor *in, int base) {
  return in->at < in->end && digit_value(*in->at) < base;
}

/* Skips a separator between two digits. */
static void skip_separator(cursor *in, int base) {
  if (in->end - in->at >= 2 && *in->at == '_' &&
      digit_value(in->at[1]) < base) {
    in->at++;
  }
}

static bool read_suffix(cursor *in, vyre__number_token *out,
                        vyre__number_fault *fault) {
  static const struct {
    const char *text;
    uint8_t type;
    bool is_float;
  } suffixes[] = {
      {"", VYRE_TYPE_VOID, false},  {"", VYRE_TYPE_VOID, true},
      {"u", VYRE_TYPE_U32, false},  {"i", VYRE_TYPE_I32, false},
      {"ul", VYRE_TYPE_U64, false}, {"l", VYRE_TYPE_I64, false},
      {"f", VYRE_TYPE_F32, true},   {"d", VYRE_TYPE_F64, true},
  };
  size_t length = (size_t)(in->end - in->at);
  for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
    if (suffixes[i].is_float == out->is_float &&
        strlen(suffixes[i].text) == length &&
        memcmp(suffixes[i].text, in->at, length) == 0) {
      out->type = (vyre_type)suffixes[i].type;
      return true;
    }
  }
  if (out->is_float) {
    return wrong(fault, "invalid suffix of a float",
                 "use no suffix, f (f32) or d (f64)");
  }
  if (length == 1 && (*in->at == 'f' || *in->at == 'd')) {
    return wrong(fault, "an integer cannot have a float suffix",
                 "add a decimal point, as in 1.0f");
  }
  return wrong(fault, "invalid suffix of an integer",
               "use no suffix, u (u32), i (i32), ul (u64) or l (i64)");
}

static bool read_exponent(cursor *in, int *exponent,
                          vyre__number_fault *fault) {
  bool negative = false;
  if (in->at < in->end && (*in->at == '+' || *in->at == '-')) {
    negative = *in->at++ == '-';
  }
  if (!is_digit(in, 10)) {
    return wrong(fault, "the exponent has no digits",
                 "write the exponent, as in 1.0e-3 or 0x1.8p3");
  }
  int value = 0;
  for (; is_digit(in, 10); in->at++) {
    if (value < 100000) value = value * 10 + (*in->at - '0');
  }
  *exponent = negative ? -value : value;
  return true;
}

static bool read_integer(cursor *in, int base, vyre__number_token *out,
                         vyre__number_fault *fault) {
  if (!is_digit(in, base)) {
    return wrong(fault, "the number has no digits after its prefix",
                 "write hexadecimal as 0x1F and binary as 0b101");
  }
  for (; is_digit(in, base); skip_separator(in, base)) {
    uint64_t digit = (uint64_t)digit_value(*in->at++);
    if (__builtin_mul_overflow(out->integer, (uint64_t)base, &out->integer) ||
        __builtin_add_overflow(out->integer, digit, &out->integer)) {
      return wrong(fault, "the integer does not fit any type",
                   "use a value of at most 18446744073709551615");
    }
  }
  return read_suffix(in, out, fault);
}

static bool read_hex_float(cursor *in, vyre__number_token *out,
                           vyre__number_fault *fault) {
  uint64_t q = 0;
  int exponent = 0;
  bool sticky = false, point = false, any = false;
  for (; in->at < in->end; skip_separator(in, 16)) {
    if (*in->at == '.' && !point) {
      point = true;
      in->at++;
      continue;
    }
    if (!is_digit(in, 16)) break;
    uint64_t digit = (uint64_t)digit_value(*in->at++);
    any = true;
    if (q >> 60) {
      sticky = sticky || digit != 0;
      exponent += point ? 0 : 4;
    } else {
      q = q << 4 | digit;
      exponent -= point ? 4 : 0;
    }
  }
  if (!any || in->at == in->end || (*in->at | 0x20) != 'p') {
    return wrong(fault, "a hexadecimal float needs digits and an exponent",
                 "end it with p and a power of two, as in 0x1.8p3");
  }
  in->at++;
  int power = 0;
  out->is_float = true;
  if (!read_exponent(in, &power, fault) || !read_suffix(in, out, fault)) {
    return false;
  }
  set_both(out, q, exponent + power, sticky);
  out->vanishes = q != 0 && out->f64 == 0;
  return true;
}

/* Digits of a decimal without leading zeros, and the power of ten of the last
 * digit. */
typedef struct decimal {
  char digits[VYRE__MAX_NUMBER];
  int count, exponent;
} decimal;

static bool read_digits(cursor *in, decimal *d) {
  bool point = false, any = false;
  for (; in->at < in->end; skip_separator(in, 10)) {
    if (*in->at == '.' && !point) {
      point = true;
      in->at++;
      continue;
    }
    if (!is_digit(in, 10)) break;
    any = true;
    if (d->count > 0 || *in->at != '0') d->digits[d->count++] = *in->at;
    d->exponent -= point;
    in->at++;
  }
  return any;
}

static bool read_decimal_float(cursor *in, vyre__number_token *out,
                               vyre__number_fault *fault) {
  decimal d = {.count = 0, .exponent = 0};
  if (!read_digits(in, &d)) {
    return wrong(fault, "the number has no digits", "write it like 0.5");
  }
  int power = 0;
  out->is_float = true;
  if (in->at < in->end && (*in->at | 0x20) == 'e') {
    in->at++;
    if (!read_exponent(in, &power, fault)) return false;
  }
  if (!read_suffix(in, out, fault)) return false;
  while (d.count > 0 && d.digits[d.count - 1] == '0') {
    d.count--;
    d.exponent++;
  }
  int exponent = d.exponent + power, top = exponent + d.count;
  if (d.count == 0 || top < MIN_DECIMAL) {
    set_both(out, 0, 0, false);
  } else if (top > MAX_DECIMAL) {
    set_both(out, 1, 2000, false);
  } else if (!convert_fast(d.digits, d.count, exponent, out)) {
    convert_exactly(d.digits, d.count, exponent, out);
  }
  out->vanishes = d.count > 0 && out->f64 == 0;
  return true;
}

/* Fast path for most numbers: few decimal digits and no suffix but u. Returns
 * false for others. */
static inline bool read_short(const char *text, size_t length,
                              vyre__number_token *out) {
  enum { DIGITS = 9 };
  if (length == 0) return false;
  const bool suffix = text[length - 1] == 'u';
  const size_t digits = length - suffix;
  uint32_t value = 0;
  if (digits == 0 || digits > DIGITS || (text[0] == '0' && digits > 1)) {
    return false;
  }
  for (size_t i = 0; i < digits; i++) {
    unsigned digit = (unsigned)(unsigned char)text[i] - '0';
    if (digit > 9) return false;
    value = value * 10 + digit;
  }
  out->integer = value;
  out->type = suffix ? VYRE_TYPE_U32 : VYRE_TYPE_VOID;
  return true;
}

bool vyre__number_read(const char *text, size_t length, vyre__number_token *out,
                       vyre__number_fault *fault) {
  *out = (vyre__number_token){.is_float = false};
  if (read_short(text, length, out)) return true;
  cursor in = {text, text + length};
  if (length > VYRE__MAX_NUMBER) {
    return wrong(fault, "the number is too long", "use fewer digits");
  }
  int second = length > 1 ? text[1] | 0x20 : 0;
  if (text[0] == '0' && second == 'b') {
    in.at += 2;
    return read_integer(&in, 2, out, fault);
  }
  if (text[0] == '0' && second == 'x') {
    in.at += 2;
    bool fraction = memchr(text, '.', length) || memchr(text, 'p', length) ||
                    memchr(text, 'P', length);
    return fraction ? read_hex_float(&in, out, fault)
                    : read_integer(&in, 16, out, fault);
  }
  if (memchr(text, '.', length) || memchr(text, 'e', length) ||
      memchr(text, 'E', length)) {
    return read_decimal_float(&in, out, fault);
  }
  if (length > 1 && text[0] == '0' && digit_value(text[1]) < 10) {
    return wrong(fault,
                 "a number cannot begin with 0, which would be octal in C",
                 "remove the leading zeros, or write it as 0x...");
  }
  return read_integer(&in, 10, out, fault);
}
