/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE /* exp10 */
#include "verify/reference.h"

#include <float.h>
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <string.h>

#include "verify/items.h"

typedef int (*mpfr_one)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
typedef int (*mpfr_two)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);

struct reference {
  const char *name;
  reference_one one;
  reference_two two;
  mpfr_one exact_one;
  mpfr_two exact_two;
};

static double rsqrt(double x) {
  return 1.0 / sqrt(x);
}

#define ONE(name) {#name, name, NULL, mpfr_##name, NULL}
#define TWO(name) {#name, NULL, name, NULL, mpfr_##name}
static const reference references[] = {
    ONE(exp),   ONE(exp2),
    ONE(exp10), ONE(expm1),
    ONE(log),   ONE(log2),
    ONE(log10), ONE(log1p),
    ONE(sin),   ONE(cos),
    ONE(tan),   ONE(asin),
    ONE(acos),  ONE(atan),
    ONE(sinh),  ONE(cosh),
    ONE(tanh),  ONE(cbrt),
    TWO(pow),   TWO(atan2),
    TWO(hypot), {"rsqrt", rsqrt, NULL, mpfr_rec_sqrt, NULL},
};
#undef ONE
#undef TWO

const reference *reference_find(const char *name) {
  for (size_t i = 0; i < sizeof references / sizeof references[0]; i++) {
    if (strcmp(references[i].name, name) == 0) return &references[i];
  }
  return NULL;
}

reference_one reference_host_one(const reference *r) {
  return r->one;
}
reference_two reference_host_two(const reference *r) {
  return r->two;
}

double reference_ulp(double value) {
  int exponent = 0;
  frexp(value, &exponent);
  if (isinf(value) || exponent > 128) exponent = 128;
  if (value == 0.0 || exponent < -125) exponent = -125;
  return ldexp(1.0, exponent - 24);
}

/* Numbers of MPFR that are kept: arguments, the value, a difference. */
typedef struct numbers {
  mpfr_t x, y, value, error;
} numbers;

static numbers *scratch(void) {
  static numbers n;
  static bool is_ready;
  if (!is_ready) {
    mpfr_inits2(24, n.x, n.y, (mpfr_ptr)0);
    mpfr_inits2(160, n.value, n.error, (mpfr_ptr)0);
    is_ready = true;
  }
  return &n;
}

static void compute(const reference *r, float x, float y, numbers *n) {
  mpfr_set_flt(n->x, x, MPFR_RNDN);
  mpfr_set_flt(n->y, y, MPFR_RNDN);
  if (r->one) {
    r->exact_one(n->value, n->x, MPFR_RNDN);
  } else {
    r->exact_two(n->value, n->x, n->y, MPFR_RNDN);
  }
}

float reference_exact(const reference *r, float x) {
  numbers *n = scratch();
  compute(r, x, 0.0f, n);
  return mpfr_get_flt(n->value, MPFR_RNDN);
}

double reference_error(const reference *r, float x, float y, float got) {
  numbers *n = scratch();
  compute(r, x, y, n);
  double ulp = reference_ulp(mpfr_get_d(n->value, MPFR_RNDN));
  double value = isinf(got) ? copysign(0x1p128, got) : (double)got;
  mpfr_sub_d(n->error, n->value, value, MPFR_RNDN);
  return fabs(mpfr_get_d(n->error, MPFR_RNDN)) / ulp;
}

/* --- the host --------------------------------------------------------------- */

/* Returns the relative error in units of 2^-53; 0 for results that do not
 * matter: NaN, or far outside the range of f32. */
static double host_error(const reference *r, float x, float y) {
  double host = r->one ? r->one((double)x) : r->two((double)x, (double)y);
  if (!(fabs(host) < 0x1p140) || fabs(host) < 0x1p-170) return 0.0;
  numbers *n = scratch();
  compute(r, x, y, n);
  if (mpfr_zero_p(n->value)) return 0.0;
  mpfr_sub_d(n->error, n->value, host, MPFR_RNDN);
  mpfr_div(n->error, n->error, n->value, MPFR_RNDN);
  return fabs(mpfr_get_d(n->error, MPFR_RNDN)) * 0x1p53;
}

/* An argument of any size; half of them where most functions do something. */
static float argument(float_vectors *v) {
  uint64_t random = float_vectors_next(v);
  uint32_t bits = (uint32_t)(random >> 32);
  if ((random & 1) != 0) {
    bits = float_vectors_scale(bits, 97 + (int)((random >> 8) % 38));
  }
  return float_vectors_f32(bits);
}

double reference_measure(const reference *r, unsigned count, const char *hard) {
  float_vectors v = float_vectors_make(1);
  double worst = 0.0;
  for (unsigned measured = 0, tries = 0; measured < count && tries < 64 * count;
       tries++) {
    uint32_t pair[2] = {float_vectors_bits(argument(&v)), 0};
    if (!r->one)
      (strcmp(r->name, "pow") == 0 ? pair_pow : pair_plane)(&v, pair);
    float x = float_vectors_f32(pair[0]), y = float_vectors_f32(pair[1]);
    if (x != x || y != y) continue;
    double error = host_error(r, x, y);
    measured += error != 0.0;
    if (error > worst) worst = error;
  }
  FILE *file = r->one ? fopen(hard, "r") : NULL;
  unsigned bits = 0, result = 0;
  while (file && fscanf(file, "%x %x", &bits, &result) == 2) {
    double error = host_error(r, float_vectors_f32(bits), 0.0f);
    if (error > worst) worst = error;
  }
  if (file) fclose(file);
  return worst;
}
