/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "io/element_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vyre/sum.h"

enum { LONGEST_NUMBER = 80 };

/* A float format: bits of the significand with the implicit one, and the
 * exponent of the smallest normal number. */
typedef struct float_format {
  int digits, min, bytes;
} float_format;

static const float_format f16_format = {11, -14, 2};
static const float_format bf16_format = {8, -126, 2};

/* Returns the type of the numbers that an element holds: a sum shows as the
 * number that it rounds to. */
static vyre_element number_of(vyre_element element) {
  if (element == VYRE_ELEMENT_SUM_F32) return VYRE_ELEMENT_F32;
  return element == VYRE_ELEMENT_SUM_F64 ? VYRE_ELEMENT_F64 : element;
}

static bool is_float(vyre_element element) {
  element = number_of(element);
  return element == VYRE_ELEMENT_F16 || element == VYRE_ELEMENT_BF16 ||
         element == VYRE_ELEMENT_F32 || element == VYRE_ELEMENT_F64;
}

static bool is_signed(vyre_element element) {
  return element == VYRE_ELEMENT_I8 || element == VYRE_ELEMENT_I16 ||
         element == VYRE_ELEMENT_I32 || element == VYRE_ELEMENT_I64;
}

size_t element_bytes(vyre_element element) {
  uint32_t size = vyre_element_size(element);
  return size ? size : 1;
}

static void put_bits(uint64_t bits, size_t bytes, unsigned char *out) {
  for (size_t i = 0; i < bytes; i++) out[i] = (unsigned char)(bits >> (8 * i));
}

static uint64_t get_bits(const unsigned char *bytes, size_t count) {
  uint64_t bits = 0;
  for (size_t i = 0; i < count; i++) bits |= (uint64_t)bytes[i] << (8 * i);
  return bits;
}

/* Rounds to nearest even into a 16-bit format. NaN becomes the quiet NaN. */
static uint16_t narrow_float(double value, const float_format *format) {
  int fraction = format->digits - 1;
  uint32_t infinity = (uint32_t)(3 - 2 * format->min) << fraction;
  if (isnan(value)) return (uint16_t)(infinity | 1u << (fraction - 1));
  uint32_t sign = signbit(value) ? 0x8000 : 0;
  int exponent;
  double size = fabs(value);
  if (isinf(size)) return (uint16_t)(sign | infinity);
  frexp(size, &exponent); /* size is in [0.5, 1) * 2^exponent */
  int lowest = exponent - format->digits;
  int subnormal = format->min - fraction;
  if (size == 0 || lowest < subnormal) lowest = subnormal;
  uint32_t whole = (uint32_t)nearbyint(ldexp(size, -lowest));
  uint32_t bits = whole + ((uint32_t)(lowest - subnormal) << fraction);
  return (uint16_t)(sign | (bits < infinity ? bits : infinity));
}

static double widen_float(uint16_t bits, const float_format *format) {
  int fraction = format->digits - 1;
  int exponent = (bits & 0x7FFF) >> fraction;
  int part = bits & ((1 << fraction) - 1);
  int top = 3 - 2 * format->min;
  double size;
  if (exponent == top) {
    size = part ? (double)NAN : (double)INFINITY;
  } else if (exponent == 0) {
    size = ldexp(part, format->min - fraction);
  } else {
    size = ldexp(part + (1 << fraction), exponent - 1 + format->min - fraction);
  }
  return bits & 0x8000 ? -size : size;
}

static double get_float(vyre_element element, const unsigned char *bytes) {
  if (element == VYRE_ELEMENT_SUM_F32) {
    return (double)vyre_sum_round_f32(bytes);
  }
  if (element == VYRE_ELEMENT_SUM_F64) return vyre_sum_round_f64(bytes);
  uint64_t bits = get_bits(bytes, element_bytes(element));
  uint32_t low = (uint32_t)bits;
  float single;
  double wide;
  switch (element) {
    case VYRE_ELEMENT_F16:
      return widen_float((uint16_t)bits, &f16_format);
    case VYRE_ELEMENT_BF16:
      return widen_float((uint16_t)bits, &bf16_format);
    case VYRE_ELEMENT_F32:
      memcpy(&single, &low, sizeof single);
      return single;
    default:
      memcpy(&wide, &bits, sizeof wide);
      return wide;
  }
}

static void put_float(vyre_element element, double value, unsigned char *out) {
  float single = (float)value;
  memset(out, 0, element_bytes(element));
  if (element == VYRE_ELEMENT_SUM_F32) {
    vyre_sum_add_f32(out, &single, 1);
    return;
  }
  if (element == VYRE_ELEMENT_SUM_F64) {
    vyre_sum_add_f64(out, &value, 1);
    return;
  }
  uint32_t low;
  uint64_t bits;
  switch (element) {
    case VYRE_ELEMENT_F16:
      put_bits(narrow_float(value, &f16_format), 2, out);
      break;
    case VYRE_ELEMENT_BF16:
      put_bits(narrow_float(value, &bf16_format), 2, out);
      break;
    case VYRE_ELEMENT_F32:
      memcpy(&low, &single, sizeof low);
      put_bits(isnan(value) ? 0x7FC00000 : low, 4, out);
      break;
    default:
      memcpy(&bits, &value, sizeof bits);
      put_bits(isnan(value) ? 0x7FF8000000000000u : bits, 8, out);
  }
}

/* --- reading -----------------------------------------------------------------*/

static bool is_name(const char *text, const char *name) {
  return strcmp(text[0] == '-' ? text + 1 : text, name) == 0;
}

/* Parses names of values that are not finite: inf and nan. */
static bool named_float(const char *text, double *out) {
  if (is_name(text, "nan")) {
    *out = (double)NAN;
  } else if (is_name(text, "inf")) {
    *out = text[0] == '-' ? -(double)INFINITY : (double)INFINITY;
  } else {
    return false;
  }
  return true;
}

static bool parse_float(vyre_element element, const char *text,
                        unsigned char *out) {
  double value;
  if (!named_float(text, &value)) {
    if (text[strspn(text, "0123456789+-.eExXpPaAbBcCdDfF")]) return false;
    char *end;
    /* Parse f32 directly: rounding twice, by way of f64, can be wrong. */
    value = number_of(element) == VYRE_ELEMENT_F32 ? (double)strtof(text, &end)
                                                   : strtod(text, &end);
    if (end == text || *end || isinf(value)) return false;
    put_float(element, value, out);
    return isfinite(get_float(element, out));
  }
  put_float(element, value, out);
  return true;
}

static int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = (char)(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

static bool parse_digits(const char *text, uint64_t *out) {
  uint64_t base = 10;
  if (text[0] == '0' && (text[1] == 'x' || text[1] == 'b')) {
    base = text[1] == 'x' ? 16 : 2;
    text += 2;
  }
  if (!text[0]) return false;
  uint64_t value = 0;
  for (; *text; text++) {
    uint64_t digit = (uint64_t)digit_of(*text);
    if (digit >= base || value > (UINT64_MAX - digit) / base) return false;
    value = value * base + digit;
  }
  *out = value;
  return true;
}

static bool parse_integer(vyre_element element, const char *text,
                          unsigned char *out) {
  bool negative = text[0] == '-';
  size_t bytes = element_bytes(element);
  unsigned bits = element == VYRE_ELEMENT_BOOL ? 1 : (unsigned)bytes * 8;
  uint64_t size;
  if (!parse_digits(text + negative, &size)) return false;
  uint64_t max = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
  if (is_signed(element)) max = max / 2 + negative;
  if ((negative && !is_signed(element) && size) || size > max) return false;
  put_bits(negative ? -size : size, bytes, out);
  return true;
}

bool element_parse(vyre_element element, const char *text, size_t length,
                   unsigned char *out) {
  char copy[LONGEST_NUMBER];
  if (length == 0 || length >= sizeof copy || memchr(text, 0, length)) {
    return false;
  }
  memcpy(copy, text, length);
  copy[length] = '\0';
  if (is_float(element)) return parse_float(element, copy, out);
  if (element == VYRE_ELEMENT_BOOL) {
    bool yes = strcmp(copy, "true") == 0;
    if (yes || strcmp(copy, "false") == 0) {
      out[0] = yes;
      return true;
    }
  }
  return parse_integer(element, copy, out);
}

/* --- writing -----------------------------------------------------------------*/

/* Writes the fewest digits that parse to the same element. Uses an exponent
 * only for very large and very small values. */
static void put_shortest(vyre_element element, double value, sink *out) {
  char text[64];
  unsigned char want[LARGEST_ELEMENT], got[LARGEST_ELEMENT];
  size_t bytes = element_bytes(element);
  int digits = 0;
  put_float(element, value, want);
  do {
    snprintf(text, sizeof text, "%.*e", digits++, value);
  } while (digits < 17 && (!element_parse(element, text, strlen(text), got) ||
                           memcmp(want, got, bytes) != 0));
  const char *power = strchr(text, 'e');
  int exponent = power ? (int)strtol(power + 1, NULL, 10) : 0;
  if (exponent < -5 || exponent > 15) {
    snprintf(text, sizeof text, "%.*g", digits, value);
  } else {
    int decimals = digits - 1 - exponent;
    snprintf(text, sizeof text, "%.*f", decimals > 0 ? decimals : 0, value);
  }
  sink_text(out, text);
}

static void put_float_text(vyre_element element, const unsigned char *bytes,
                           sink *out) {
  double value = get_float(element, bytes);
  element = number_of(element);
  if (isnan(value)) {
    sink_text(out, "nan");
  } else if (isinf(value)) {
    sink_text(out, value < 0 ? "-inf" : "inf");
  } else {
    put_shortest(element, value, out);
  }
}

void element_format(vyre_element element, const unsigned char *bytes,
                    sink *out) {
  if (is_float(element)) {
    put_float_text(element, bytes, out);
    return;
  }
  size_t size = element_bytes(element);
  uint64_t bits = get_bits(bytes, size);
  if (element == VYRE_ELEMENT_BOOL) {
    sink_text(out, bits ? "true" : "false");
  } else if (is_signed(element) && bits >> (size * 8 - 1)) {
    uint64_t mask = size == 8 ? UINT64_MAX : ((uint64_t)1 << size * 8) - 1;
    sink_text(out, "-");
    sink_u64(out, -bits & mask);
  } else {
    sink_u64(out, bits);
  }
}

void element_json(vyre_element element, const unsigned char *bytes, sink *out) {
  bool quoted = is_float(element) && !isfinite(get_float(element, bytes));
  if (quoted) sink_text(out, "\"");
  element_format(element, bytes, out);
  if (quoted) sink_text(out, "\"");
}

/* --- sequences ---------------------------------------------------------------*/

void element_iota(vyre_element element, uint64_t index, unsigned char *out) {
  if (is_float(element)) {
    put_float(element, (double)index, out);
  } else if (element == VYRE_ELEMENT_BOOL) {
    out[0] = index & 1;
  } else {
    put_bits(index, element_bytes(element), out);
  }
}

static uint64_t splitmix(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

void element_random(vyre_element element, uint64_t seed, uint64_t index,
                    unsigned char *out) {
  uint64_t bits = splitmix(seed, index);
  size_t bytes = element_bytes(element);
  const vyre_element number = number_of(element);
  int digits = number == VYRE_ELEMENT_F16    ? 11
               : number == VYRE_ELEMENT_BF16 ? 8
               : number == VYRE_ELEMENT_F32  ? 24
                                             : 53;
  if (is_float(element)) {
    put_float(element, ldexp((double)(bits >> (64 - digits)), -digits), out);
  } else if (element == VYRE_ELEMENT_BOOL) {
    out[0] = (unsigned char)(bits >> 63);
  } else {
    put_bits(bits >> (64 - 8 * bytes), bytes, out);
  }
}
