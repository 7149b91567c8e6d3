/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints literals so that parsing them gives the same bits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/print_internal.h"

/* Decimal digits of a positive number and the power of ten of the first
 * digit. */
typedef struct decimal {
  char digits[24];
  int count;
  int exponent;
} decimal;

/* Returns the fewest digits that parse to the same number. Only digits are
 * taken from the C library, because its decimal point depends on the locale. */
static decimal shortest(double value, bool is_f32) {
  char text[64];
  int max_digits = is_f32 ? 9 : 17;
  for (int count = 1; count <= max_digits; count++) {
    snprintf(text, sizeof text, "%.*e", count - 1, value);
    if (is_f32 ? strtof(text, NULL) == (float)value
               : strtod(text, NULL) == value) {
      break;
    }
  }
  decimal out = {.count = 0};
  const char *at = text;
  for (; *at != 'e'; at++) {
    if (*at >= '0' && *at <= '9') out.digits[out.count++] = *at;
  }
  out.exponent = (int)strtol(at + 1, NULL, 10);
  while (out.count > 1 && out.digits[out.count - 1] == '0') out.count--;
  return out;
}

static void print_decimal(vyre__printer *out, const decimal *d) {
  if (d->exponent < -5 || d->exponent > 15) {
    vyre__print(out, "%c.%.*se%d", d->digits[0],
                d->count > 1 ? d->count - 1 : 1,
                d->count > 1 ? d->digits + 1 : "0", d->exponent);
    return;
  }
  if (d->exponent < 0) {
    vyre__print(out, "0.");
    vyre__print_repeat(out, "0", (unsigned)(-d->exponent - 1));
    vyre__print(out, "%.*s", d->count, d->digits);
    return;
  }
  int integer = d->exponent + 1;
  if (integer >= d->count) {
    vyre__print(out, "%.*s", d->count, d->digits);
    vyre__print_repeat(out, "0", (unsigned)(integer - d->count));
    vyre__print(out, ".0");
    return;
  }
  vyre__print(out, "%.*s.%.*s", integer, d->digits, d->count - integer,
              d->digits + integer);
}

static void print_float(vyre__printer *out, double value, bool negative,
                        bool is_f32) {
  if (value != value) {
    vyre__print(out, is_f32 ? "nan" : "nan_f64");
    return;
  }
  if (negative) {
    vyre__print(out, "-");
    value = -value;
  }
  if (value > 1.7976931348623157e308) {
    vyre__print(out, is_f32 ? "inf" : "inf_f64");
    return;
  }
  if (value == 0) {
    vyre__print(out, "0.0");
  } else {
    decimal d = shortest(value, is_f32);
    print_decimal(out, &d);
  }
  vyre__print(out, is_f32 ? "f" : "d");
}

void vyre__print_literal(vyre__printer *out, const vyre__node *node) {
  uint64_t bits = vyre__literal(node);
  uint32_t low = (uint32_t)bits;
  float narrow;
  double wide;
  switch ((vyre_type)node->type) {
    case VYRE_TYPE_BOOL:
      vyre__print(out, bits ? "true" : "false");
      break;
    case VYRE_TYPE_U32:
      vyre__print(out, "%uu", low);
      break;
    case VYRE_TYPE_I32:
      vyre__print(out, "%s%ui", low >> 31 ? "-" : "",
                  low >> 31 ? 0 - low : low);
      break;
    case VYRE_TYPE_U64:
      vyre__print(out, "%lluul", (unsigned long long)bits);
      break;
    case VYRE_TYPE_I64:
      vyre__print(out, "%s%llul", bits >> 63 ? "-" : "",
                  (unsigned long long)(bits >> 63 ? 0 - bits : bits));
      break;
    case VYRE_TYPE_F32:
      memcpy(&narrow, &low, sizeof narrow);
      print_float(out, narrow, low >> 31, true);
      break;
    default:
      memcpy(&wide, &bits, sizeof wide);
      print_float(out, wide, bits >> 63, false);
  }
}

void vyre__print_text(vyre__printer *out, const char *text, size_t length) {
  vyre__print(out, "\"");
  for (size_t i = 0; i < length; i++) {
    switch (text[i]) {
      case '\n':
        vyre__print(out, "\\n");
        break;
      case '\t':
        vyre__print(out, "\\t");
        break;
      case '"':
      case '\\':
        vyre__print(out, "\\%c", text[i]);
        break;
      default:
        vyre__print(out, "%c", text[i]);
    }
  }
  vyre__print(out, "\"");
}
