/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Adds strips of numbers to exact sums (spmd/passes/sum_strip.h).
 *
 * A strip is first added in f64, in vectors and in any order: f32 directly,
 * f64 in two parts of 26 and 27 bits. The processor's flag "inexact" then says
 * whether any of these additions was rounded. If not, the partial sums are
 * exact, and go to the bins. A strip with wide ranges is added in windows of 43
 * bits from its largest number down; what is left goes to the bins one by
 * one.
 *
 * The additions whose rounding is tested are inside one function, and their
 * results are operands of the instruction that reads the flag. The compiler may
 * move other float operations past that instruction. */
#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "ir/sum.h"
#include "spmd/passes/sum_strip.h"

enum {
  F32 = VYRE_ELEMENT_SUM_F32,
  F64 = VYRE_ELEMENT_SUM_F64,
  BLOCK = 1024, /* numbers of a strip in f64 */
  PAUSE = 7,    /* strips after partial sums grew too large */
  LANES = 64,   /* numbers of one step, at most */
  SUMS = 8,     /* partial sums of a block, for f64 of both parts */
};

/* --- bins ------------------------------------------------------------------*/

static void add_atomic(uint64_t *word, uint64_t value) {
  if (value) __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}

static inline void add_bits(unsigned element, uint64_t *bins, uint64_t bits) {
  const vyre__sum_parts parts = vyre__sum_split(element, bits);
  for (uint32_t i = 0; i < 3; i++) {
    if (parts.digits[i]) bins[parts.bin + i] += (uint64_t)parts.digits[i];
  }
  bins[vyre__sum_bins(element)] |= parts.flags;
}

/* Adds a finite f64 that is a multiple of the unit of the sum. */
static void add_f64(unsigned element, uint64_t *bins, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (element == F64) {
    add_bits(F64, bins, bits);
    return;
  }
  /* The bins of sum_f32 begin 2^(1074 - 149) higher. */
  const uint64_t magnitude = bits & INT64_MAX;
  if (magnitude == 0) return;
  const int64_t exponent = (int64_t)(magnitude >> 52);
  const uint64_t significand =
      (magnitude & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
  int64_t at = exponent - 1 - (1074 - 149);
  uint64_t part = significand;
  if (at < 0) { /* the bits below the unit are 0 */
    part >>= -at;
    at = 0;
  }
  const unsigned shift = (unsigned)at % 32;
  uint64_t *bin = bins + at / 32;
  const uint64_t digits[3] = {(part << shift) & UINT32_MAX, part << shift >> 32,
                              shift ? part >> (64 - shift) : 0};
  for (int i = 0; i < 3; i++) {
    if (digits[i] == 0) continue;
    bin[i] += bits >> 63 ? 0 - digits[i] : digits[i];
  }
}

/* Moves private bins to the sum in memory. Settled first, so that each atomic
 * adds less than 2^32 to a bin. */
static void move_bins(unsigned element, vyre__sum_strip *strip) {
  const uint32_t bins = vyre__sum_bins(element);
  vyre__sum_settle(element, strip->bins);
  for (uint32_t k = 0; k < bins; k++) {
    add_atomic(&strip->target[k], strip->bins[k]);
  }
  if (strip->bins[bins]) {
    __atomic_fetch_or(&strip->target[bins], strip->bins[bins],
                      __ATOMIC_RELAXED);
  }
  memset(strip->bins, 0, sizeof strip->bins);
}

/* --- blocks ----------------------------------------------------------------*/

typedef double partial_sums[SUMS];

enum { FLAGS = 0x3f, INEXACT = 0x20 };

static inline void clear_flag(void) {
  uint32_t csr;
  __asm__ volatile("stmxcsr %0" : "=m"(csr)::"memory");
  if (!(csr & INEXACT)) return; /* writing it is slow */
  csr &= ~(uint32_t)FLAGS;
  __asm__ volatile("ldmxcsr %0" ::"m"(csr) : "memory");
}

/* Returns true if an addition since clear_flag was rounded. @p sums makes the
 * additions precede the instruction. */
static inline bool is_rounded(partial_sums *sums) {
  uint32_t csr;
  __asm__ volatile("stmxcsr %0" : "=m"(csr), "+m"(*sums)::"memory");
  return csr & INEXACT;
}

/* The loops below are compiled for two instruction sets. */
typedef double vector __attribute__((vector_size(32)));
typedef uint64_t bit_vector __attribute__((vector_size(32)));

#define EACH ((size_t)4)

#define LOAD(v, from) memcpy(&(v), from, sizeof(v))

/* The high part of each number has 26 bits of its significand. */
#define SUM_F64                                                        \
  vector s[EACH], t[EACH];                                             \
  clear_flag();                                                        \
  for (size_t j = 0; j < EACH; j++) s[j] = t[j] = (vector){0};         \
  for (size_t i = 0; i < count; i += EACH * EACH) {                    \
    for (size_t j = 0; j < EACH; j++) {                                \
      vector v;                                                        \
      LOAD(v, x + i + EACH * j);                                       \
      const vector high = (vector)((bit_vector)v & HIGH_BITS);         \
      s[j] += high;                                                    \
      t[j] += v - high;                                                \
    }                                                                  \
  }                                                                    \
  for (size_t k = EACH / 2; k > 0; k /= 2) {                           \
    for (size_t j = 0; j < k; j++) s[j] += s[j + k], t[j] += t[j + k]; \
  }                                                                    \
  memcpy(*out, s, sizeof *s);                                          \
  memcpy(*out + EACH, t, sizeof *t);                                   \
  return !is_rounded(out)

#define HIGH_BITS (~((UINT64_C(1) << 27) - 1))

#define NOINLINE  __attribute__((noinline))
#define TARGET(t) __attribute__((noinline, target(t)))

static NOINLINE bool sum_f32_sse2(const float *x, size_t count,
                                  partial_sums *out) {
  __m128d s[2 * EACH];
  clear_flag();
  for (size_t j = 0; j < 2 * EACH; j++) s[j] = _mm_setzero_pd();
  for (size_t i = 0; i < count; i += 4 * EACH) {
    for (size_t j = 0; j < EACH; j++) {
      const __m128 v = _mm_load_ps(x + i + 4 * j);
      const __m128 high = _mm_movehl_ps(v, v);
      s[2 * j] = _mm_add_pd(s[2 * j], _mm_cvtps_pd(v));
      s[2 * j + 1] = _mm_add_pd(s[2 * j + 1], _mm_cvtps_pd(high));
    }
  }
  for (size_t j = 0; j < EACH; j++) {
    _mm_storeu_pd(*out + 2 * j, _mm_add_pd(s[j], s[j + EACH]));
  }
  return !is_rounded(out);
}

static TARGET("avx2") bool sum_f32_avx2(const float *x, size_t count,
                                        partial_sums *out) {
  __m256d s[2 * EACH];
  clear_flag();
  for (size_t j = 0; j < 2 * EACH; j++) s[j] = _mm256_setzero_pd();
  for (size_t i = 0; i < count; i += 8 * EACH) {
    for (size_t j = 0; j < 2 * EACH; j++) {
      const __m256d v = _mm256_cvtps_pd(_mm_load_ps(x + i + 4 * j));
      s[j] = _mm256_add_pd(s[j], v);
    }
  }
  for (size_t j = 0; j < EACH; j++) s[j] = _mm256_add_pd(s[j], s[j + EACH]);
  _mm256_storeu_pd(*out, _mm256_add_pd(s[0], s[2]));
  _mm256_storeu_pd(*out + 4, _mm256_add_pd(s[1], s[3]));
  return !is_rounded(out);
}

static TARGET("avx512f") bool sum_f32_avx512(const float *x, size_t count,
                                             partial_sums *out) {
  __m512d s[2 * EACH];
  clear_flag();
  for (size_t j = 0; j < 2 * EACH; j++) s[j] = _mm512_setzero_pd();
  for (size_t i = 0; i < count; i += 16 * EACH) {
    for (size_t j = 0; j < 2 * EACH; j++) {
      const __m512d v = _mm512_cvtps_pd(_mm256_load_ps(x + i + 8 * j));
      s[j] = _mm512_add_pd(s[j], v);
    }
  }
  for (size_t j = 0; j < EACH; j++) s[j] = _mm512_add_pd(s[j], s[j + EACH]);
  s[0] = _mm512_add_pd(s[0], s[2]);
  s[1] = _mm512_add_pd(s[1], s[3]);
  _mm512_storeu_pd(*out, _mm512_add_pd(s[0], s[1]));
  return !is_rounded(out);
}

/* The following functions continue partial sums. If an addition is rounded, or a
 * sum is not finite, they return false and change nothing. */

typedef double all_partials[VYRE__STRIP_PARTIALS];

static inline bool is_rounded_all(all_partials *sums) {
  uint32_t csr;
  __asm__ volatile("stmxcsr %0" : "=m"(csr), "+m"(*sums)::"memory");
  return csr & INEXACT;
}

static TARGET("avx2") bool more_f32_avx2(const float *x, size_t count,
                                         double *partials) {
  __m256d s[2 * EACH];
  _Alignas(64) all_partials out = {0};
  clear_flag();
  for (size_t j = 0; j < 2 * EACH; j++) s[j] = _mm256_load_pd(partials + 4 * j);
  for (size_t i = 0; i < count; i += 8 * EACH) {
    for (size_t j = 0; j < 2 * EACH; j++) {
      const __m256d v = _mm256_cvtps_pd(_mm_load_ps(x + i + 4 * j));
      s[j] = _mm256_add_pd(s[j], v);
    }
  }
  __m256d zero = _mm256_setzero_pd(); /* NaN if a sum is not finite */
  for (size_t j = 0; j < 2 * EACH; j++) {
    zero = _mm256_add_pd(zero, _mm256_sub_pd(s[j], s[j]));
    _mm256_store_pd(out + 4 * j, s[j]);
  }
  zero = _mm256_cmp_pd(zero, zero, _CMP_UNORD_Q);
  if (is_rounded_all(&out) || _mm256_movemask_pd(zero)) return false;
  for (size_t j = 0; j < 2 * EACH; j++) {
    _mm256_store_pd(partials + 4 * j, _mm256_load_pd(out + 4 * j));
  }
  return true;
}

static TARGET("avx512f") bool more_f32_avx512(const float *x, size_t count,
                                              double *partials) {
  __m512d s[2 * EACH];
  _Alignas(64) all_partials out;
  clear_flag();
  for (size_t j = 0; j < 2 * EACH; j++) s[j] = _mm512_load_pd(partials + 8 * j);
  for (size_t i = 0; i < count; i += 16 * EACH) {
    for (size_t j = 0; j < 2 * EACH; j++) {
      const __m512d v = _mm512_cvtps_pd(_mm256_load_ps(x + i + 8 * j));
      s[j] = _mm512_add_pd(s[j], v);
    }
  }
  __m512d zero = _mm512_setzero_pd(); /* NaN if a sum is not finite */
  for (size_t j = 0; j < 2 * EACH; j++) {
    zero = _mm512_add_pd(zero, _mm512_sub_pd(s[j], s[j]));
    _mm512_store_pd(out + 8 * j, s[j]);
  }
  if (is_rounded_all(&out)) return false;
  if (_mm512_cmp_pd_mask(zero, zero, _CMP_UNORD_Q)) return false;
  for (size_t j = 0; j < 2 * EACH; j++) {
    _mm512_store_pd(partials + 8 * j, _mm512_load_pd(out + 8 * j));
  }
  return true;
}

static bool more_f32(const float *x, size_t count, double *partials) {
  if (__builtin_cpu_supports("avx512f")) {
    return more_f32_avx512(x, count, partials);
  }
  return __builtin_cpu_supports("avx2") && more_f32_avx2(x, count, partials);
}

static NOINLINE bool sum_f64_sse2(const double *x, size_t count,
                                  partial_sums *out) {
  SUM_F64;
}
static TARGET("avx2") bool sum_f64_avx2(const double *x, size_t count,
                                        partial_sums *out) {
  SUM_F64;
}

static bool sum_f32(const float *x, size_t count, partial_sums *out) {
  if (__builtin_cpu_supports("avx512f")) return sum_f32_avx512(x, count, out);
  return __builtin_cpu_supports("avx2") ? sum_f32_avx2(x, count, out)
                                        : sum_f32_sse2(x, count, out);
}

static bool sum_f64(const double *x, size_t count, partial_sums *out) {
  return __builtin_cpu_supports("avx2") ? sum_f64_avx2(x, count, out)
                                        : sum_f64_sse2(x, count, out);
}

/* Returns false, and adds nothing, unless all sums are finite. */
static bool add_lanes(unsigned element, uint64_t *bins,
                      const partial_sums *sums) {
  for (int j = 0; j < SUMS; j++) {
    if (!isfinite((*sums)[j])) return false;
  }
  for (int j = 0; j < SUMS; j++) {
    if ((*sums)[j] != 0) add_f64(element, bins, (*sums)[j]);
  }
  return true;
}

/* --- windows ---------------------------------------------------------------*/

enum {
  WINDOW = 42, /* f64 holds the sum of 1,024 numbers of 43 bits exactly */
  MAX_WINDOWS = 8,
  MAX_EXPONENT = 1000,
};

#define LARGEST                                                             \
  vector most[EACH] = {{0}};                                                \
  double largest = 0;                                                       \
  for (size_t i = 0; i < BLOCK; i += EACH * EACH) {                         \
    for (size_t j = 0; j < EACH; j++) {                                     \
      vector v;                                                             \
      LOAD(v, x + i + EACH * j);                                            \
      v = (vector)((bit_vector)v & (uint64_t)INT64_MAX);                    \
      const bit_vector more = (bit_vector)(v > most[j]);                    \
      most[j] =                                                             \
          (vector)(((bit_vector)v & more) | ((bit_vector)most[j] & ~more)); \
    }                                                                       \
  }                                                                         \
  for (size_t j = 0; j < EACH * EACH; j++) {                                \
    const double each = most[j / EACH][j % EACH];                           \
    largest = each > largest ? each : largest;                              \
  }                                                                         \
  return largest

/* Adds the bits of each number above the window's unit, and leaves the rest. */
#define TAKE_WINDOW                                 \
  vector s[EACH] = {{0}};                           \
  for (size_t i = 0; i < BLOCK; i += EACH * EACH) { \
    for (size_t j = 0; j < EACH; j++) {             \
      vector v;                                     \
      LOAD(v, x + i + EACH * j);                    \
      const vector q = (v + magic) - magic;         \
      const vector rest = v - q;                    \
      s[j] += q;                                    \
      memcpy(x + i + EACH * j, &rest, sizeof rest); \
    }                                               \
  }                                                 \
  s[0] += s[1], s[2] += s[3], s[0] += s[2];         \
  memcpy(out, s, sizeof *s)

static NOINLINE double largest_sse2(const double *x) {
  LARGEST;
}
static TARGET("avx2") double largest_avx2(const double *x) {
  LARGEST;
}
static NOINLINE void window_sse2(double *x, double magic, partial_sums *out) {
  TAKE_WINDOW;
}
static TARGET("avx2") void window_avx2(double *x, double magic,
                                       partial_sums *out) {
  TAKE_WINDOW;
}

/* Adds BLOCK finite numbers as far as windows allow. Returns false if something
 * is left in @p x. */
static bool add_windows(unsigned element, uint64_t *bins, double *x) {
  const bool has_avx2 = __builtin_cpu_supports("avx2");
  for (int w = 0; w < MAX_WINDOWS; w++) {
    partial_sums sums = {0};
    int exponent;
    const double largest = has_avx2 ? largest_avx2(x) : largest_sse2(x);
    if (largest == 0) return true;
    (void)frexp(largest, &exponent); /* largest < 2^exponent */
    if (exponent > MAX_EXPONENT) return false;
    int unit = exponent - WINDOW;
    if (unit < -1074) unit = -1074;
    const double magic = ldexp(1.5, unit + 52);
    if (has_avx2) {
      window_avx2(x, magic, &sums);
    } else {
      window_sse2(x, magic, &sums);
    }
    if (!add_lanes(element, bins, &sums)) return false;
  }
  return largest_sse2(x) == 0;
}

static void add_rest(unsigned element, uint64_t *bins, const double *x) {
  for (size_t i = 0; i < BLOCK; i++) {
    if (x[i] != 0) add_f64(element, bins, x[i]);
  }
}

/* Adds a block that did not fit f64. */
static void add_again(unsigned element, uint64_t *bins, double *x) {
  for (size_t i = 0; i < BLOCK; i++) {
    if (isfinite(x[i])) continue;
    bins[vyre__sum_bins(element)] |= isnan(x[i]) ? VYRE__SUM_NAN
                                     : x[i] > 0  ? VYRE__SUM_PLUS_INF
                                                 : VYRE__SUM_MINUS_INF;
    x[i] = 0;
  }
  if (!add_windows(element, bins, x)) add_rest(element, bins, x);
  vyre__sum_settle(element, bins);
}

/* --- strips ----------------------------------------------------------------*/

static void clear_tail(vyre__sum_strip *strip, size_t each) {
  const size_t block = LANES * each;
  const size_t used = (size_t)strip->count;
  const size_t end = (used + block - 1) / block * block;
  memset(strip->numbers + used, 0, end - used);
  strip->count = end;
}

static void move_partials(vyre__sum_strip *strip) {
  if (!strip->has_partials) return;
  for (int j = 0; j < VYRE__STRIP_PARTIALS; j++) {
    if (strip->partials[j] != 0) add_f64(F32, strip->bins, strip->partials[j]);
  }
  memset(strip->partials, 0, sizeof strip->partials);
  strip->has_partials = false;
  vyre__sum_settle(F32, strip->bins);
}

/* Adds the numbers to the partial sums. Returns false if they are not exact. */
static bool continue_f32(vyre__sum_strip *strip, const float *x, size_t count) {
  if (strip->pause > 0) {
    strip->pause--;
    return false;
  }
  if (!more_f32(x, count, strip->partials)) {
    if (strip->has_partials) strip->pause = PAUSE;
    move_partials(strip);
    return false;
  }
  strip->has_partials = true;
  return true;
}

static void drain_f32(vyre__sum_strip *strip) {
  partial_sums sums = {0};
  clear_tail(strip, sizeof(float));
  const size_t count = (size_t)strip->count / sizeof(float);
  const float *x = (const float *)(const void *)strip->numbers;
  strip->count = 0;
  if (count == 0) return;
  if (continue_f32(strip, x, count)) return;
  if (sum_f32(x, count, &sums) && add_lanes(F32, strip->bins, &sums)) return;
  for (size_t first = 0; first < count; first += BLOCK) {
    double wide[BLOCK];
    for (size_t i = 0; i < BLOCK; i++) {
      wide[i] = first + i < count ? (double)x[first + i] : 0;
    }
    add_again(F32, strip->bins, wide);
  }
}

static void drain_f64(vyre__sum_strip *strip) {
  partial_sums sums = {0};
  clear_tail(strip, sizeof(double));
  const size_t count = (size_t)strip->count / sizeof(double);
  const double *x = (const double *)(const void *)strip->numbers;
  strip->count = 0;
  if (count == 0) return;
  if (sum_f64(x, count, &sums) && add_lanes(F64, strip->bins, &sums)) return;
  double rest[BLOCK] = {0};
  memcpy(rest, x, count * sizeof *x);
  add_again(F64, strip->bins, rest);
}

/* Requests the numbers of the next strip. */
static void prefetch(const void *source) {
  enum { LINE = 64 };
  if (!source) return;
  for (size_t at = 0; at < VYRE__STRIP_BYTES; at += LINE) {
    __builtin_prefetch((const char *)source + at);
  }
}

void vyre__sum_strip_begin_f32(vyre__sum_strip *strip, uint64_t *target,
                               const void *source) {
  prefetch(source);
  drain_f32(strip);
  if (strip->target && strip->target != target) {
    move_partials(strip);
    move_bins(F32, strip);
  }
  strip->target = target;
}

void vyre__sum_strip_begin_f64(vyre__sum_strip *strip, uint64_t *target,
                               const void *source) {
  prefetch(source);
  drain_f64(strip);
  if (strip->target && strip->target != target) move_bins(F64, strip);
  strip->target = target;
}

void vyre__sum_strip_end_f32(vyre__sum_strip *strip) {
  drain_f32(strip);
  move_partials(strip);
  if (strip->target) move_bins(F32, strip);
}

void vyre__sum_strip_end_f64(vyre__sum_strip *strip) {
  drain_f64(strip);
  if (strip->target) move_bins(F64, strip);
}

static void add_now(unsigned element, uint64_t *target, uint64_t bits) {
  const vyre__sum_parts parts = vyre__sum_split(element, bits);
  for (uint32_t i = 0; i < 3; i++) {
    add_atomic(&target[parts.bin + i], (uint64_t)parts.digits[i]);
  }
  if (parts.flags) {
    __atomic_fetch_or(&target[vyre__sum_bins(element)], parts.flags,
                      __ATOMIC_RELAXED);
  }
}

void vyre__sum_strip_add_f32(uint64_t *target, uint32_t bits) {
  add_now(F32, target, bits);
}

void vyre__sum_strip_add_f64(uint64_t *target, uint64_t bits) {
  add_now(F64, target, bits);
}
