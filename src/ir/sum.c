/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "ir/sum.h"

#include <string.h>

#include "vyre/sum.h"

#include "base/status.h"

enum { BIN_BITS = 32 };

static const uint64_t digit_mask = UINT32_MAX;

/* Number format of the addends. */
typedef struct format {
  unsigned precision; /* bits of a significand, with the hidden one */
  uint64_t infinity;  /* bits */
  uint64_t sign;
} format;

static format format_of(unsigned element) {
  return element == VYRE_ELEMENT_SUM_F64
             ? (format){53, UINT64_C(0x7FF) << 52, UINT64_C(1) << 63}
             : (format){24, UINT64_C(0xFF) << 23, UINT64_C(1) << 31};
}

static uint64_t get(const void *sum, uint32_t word) {
  uint64_t value;
  memcpy(&value, (const unsigned char *)sum + (size_t)word * sizeof value,
         sizeof value);
  return value;
}

static void put(void *sum, uint32_t word, uint64_t value) {
  memcpy((unsigned char *)sum + (size_t)word * sizeof value, &value,
         sizeof value);
}

/* Returns v / 2^32, rounded down, for v in two's complement. */
static uint64_t carry_of(uint64_t v) {
  const uint64_t high = v >> BIN_BITS;
  return v >> 63 ? high | ~digit_mask : high;
}

vyre__sum_parts vyre__sum_split(unsigned element, uint64_t bits) {
  const format f = format_of(element);
  const uint64_t magnitude = bits & (f.sign - 1);
  const bool is_negative = (bits & f.sign) != 0;
  vyre__sum_parts parts = {0};
  if (magnitude > f.infinity) {
    parts.flags = VYRE__SUM_NAN;
    return parts;
  }
  if (magnitude == f.infinity) {
    parts.flags = is_negative ? VYRE__SUM_MINUS_INF : VYRE__SUM_PLUS_INF;
    return parts;
  }
  const uint64_t hidden = UINT64_C(1) << (f.precision - 1);
  uint64_t exponent = magnitude >> (f.precision - 1);
  uint64_t significand = magnitude & (hidden - 1);
  if (exponent > 0) {
    significand |= hidden;
    exponent--;
  }
  const unsigned shift = (unsigned)exponent % BIN_BITS;
  const uint64_t low = significand << shift;
  const uint64_t high = shift ? significand >> (64 - shift) : 0;
  parts.bin = (uint32_t)exponent / BIN_BITS;
  parts.digits[0] = (int64_t)(low & digit_mask);
  parts.digits[1] = (int64_t)(low >> BIN_BITS);
  parts.digits[2] = (int64_t)high;
  for (int i = 0; i < 3 && is_negative; i++) parts.digits[i] *= -1;
  return parts;
}

static void add_parts(void *sum, const vyre__sum_parts *parts, uint32_t bins) {
  for (uint32_t i = 0; i < 3; i++) {
    if (parts->digits[i] == 0) continue;
    const uint32_t word = parts->bin + i;
    put(sum, word, get(sum, word) + (uint64_t)parts->digits[i]);
  }
  put(sum, bins, get(sum, bins) | parts->flags);
}

void vyre__sum_settle(unsigned element, void *sum) {
  const uint32_t last = vyre__sum_bins(element) - 1;
  uint64_t carry = 0;
  for (uint32_t k = 0; k < last; k++) {
    const uint64_t v = get(sum, k) + carry;
    put(sum, k, v & digit_mask);
    carry = carry_of(v);
  }
  put(sum, last, get(sum, last) + carry);
}

void vyre__sum_add(unsigned element, void *sum, uint64_t bits) {
  const vyre__sum_parts parts = vyre__sum_split(element, bits);
  add_parts(sum, &parts, vyre__sum_bins(element));
  vyre__sum_settle(element, sum);
}

void vyre__sum_set(unsigned element, void *sum, uint64_t bits) {
  memset(sum, 0, vyre__sum_words(element) * sizeof(uint64_t));
  vyre__sum_add(element, sum, bits);
}

void vyre__sum_merge(unsigned element, void *to, const void *from) {
  const uint32_t bins = vyre__sum_bins(element);
  for (uint32_t k = 0; k < bins; k++) put(to, k, get(to, k) + get(from, k));
  put(to, bins, get(to, bins) | get(from, bins));
  vyre__sum_settle(element, to);
}

bool vyre__changes_sums(const vyre_program *program, uint32_t buffer) {
  const vyre_buffer_decl *decl = &program->buffers[buffer];
  if (!vyre__is_sum(decl->element) || vyre__is_shared(decl)) return false;
  for (vyre__id id = 1; id < program->node_count; id++) {
    const vyre__node *node = &program->nodes[id];
    const uint8_t flags = vyre__ops[node->op].flags;
    if (node->a == buffer && node->op != VYRE__OP_SET_PLACE &&
        (flags & (VYRE__OPF_WRITES | VYRE__OPF_ATOMICS))) {
      return true;
    }
  }
  return false;
}

/* --- rounding --------------------------------------------------------------*/

/* A magnitude as a 64-bit window below its highest bit. */
typedef struct window {
  uint64_t head;  /* highest bit set */
  bool has_more;  /* bits below the window are set */
  uint32_t place; /* number of the highest bit, in units */
} window;

/* Returns bits [at, at + 64) of digits in normal form. */
static uint64_t bits_from(const uint64_t *digits, uint32_t count, int64_t at) {
  uint64_t out = 0;
  for (uint32_t i = 0; i < 64; i++) {
    const int64_t bit = at + i;
    if (bit < 0 || bit >= (int64_t)count * BIN_BITS) continue;
    out |= (digits[bit / BIN_BITS] >> (bit % BIN_BITS) & 1) << i;
  }
  return out;
}

static window window_of(const uint64_t *digits, uint32_t count) {
  uint32_t top = count - 1;
  while (digits[top] == 0) top--;
  window w = {.place =
                  BIN_BITS * top + 63 - (uint32_t)__builtin_clzll(digits[top])};
  const int64_t low = (int64_t)w.place - 63;
  w.head = bits_from(digits, count, low);
  for (int64_t bit = 0; bit < low && !w.has_more; bit++) {
    w.has_more = digits[bit / BIN_BITS] >> (bit % BIN_BITS) & 1;
  }
  return w;
}

static uint64_t round_window(const window *w, const format *f) {
  if (w->place < f->precision - 1) return w->head >> (63 - w->place);
  const unsigned dropped = 64 - f->precision;
  uint64_t kept = w->head >> dropped;
  const uint64_t rest = w->head << f->precision;
  const bool is_half = rest >> 63 != 0;
  const bool is_above = rest << 1 != 0 || w->has_more;
  kept += is_half && (is_above || (kept & 1));
  const uint64_t exponent = w->place - (f->precision - 1);
  const uint64_t bits = (exponent << (f->precision - 1)) + kept;
  return bits < f->infinity ? bits : f->infinity;
}

uint64_t vyre__sum_round(unsigned element, const void *sum) {
  const format f = format_of(element);
  const uint32_t bins = vyre__sum_bins(element), last = bins - 1;
  const uint64_t flags = get(sum, bins);
  const uint64_t both = VYRE__SUM_PLUS_INF | VYRE__SUM_MINUS_INF;
  if (flags & VYRE__SUM_NAN || (flags & both) == both) {
    return f.infinity | UINT64_C(1) << (f.precision - 2);
  }
  if (flags & VYRE__SUM_PLUS_INF) return f.infinity;
  if (flags & VYRE__SUM_MINUS_INF) return f.sign | f.infinity;
  uint64_t digits[VYRE__SUM_F64_BINS], any = 0;
  for (uint32_t k = 0; k < bins; k++) digits[k] = get(sum, k);
  vyre__sum_settle(element, digits);
  const bool is_negative = digits[last] >> 63 != 0;
  for (uint32_t k = 0; k < bins && is_negative; k++) digits[k] = 0 - digits[k];
  if (is_negative) vyre__sum_settle(element, digits);
  for (uint32_t k = 0; k < bins; k++) any |= digits[k];
  if (any == 0) return 0;
  /* The last bin is beyond the largest finite number. */
  if (digits[last] != 0) return f.infinity | (is_negative ? f.sign : 0);
  const window w = window_of(digits, bins);
  return round_window(&w, &f) | (is_negative ? f.sign : 0);
}

/* --- public ----------------------------------------------------------------*/

float vyre_sum_round_f32(const void *sum) {
  const uint32_t bits = (uint32_t)vyre__sum_round(VYRE_ELEMENT_SUM_F32, sum);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

double vyre_sum_round_f64(const void *sum) {
  const uint64_t bits = vyre__sum_round(VYRE_ELEMENT_SUM_F64, sum);
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

void vyre_sum_add_f32(void *sum, const float *numbers, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, &numbers[i], sizeof bits);
    vyre__sum_add(VYRE_ELEMENT_SUM_F32, sum, bits);
  }
}

void vyre_sum_add_f64(void *sum, const double *numbers, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint64_t bits;
    memcpy(&bits, &numbers[i], sizeof bits);
    vyre__sum_add(VYRE_ELEMENT_SUM_F64, sum, bits);
  }
}

vyre_code vyre_sum_merge(vyre_element element, void *to, const void *from,
                         size_t count, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE_ARRAY(st, to, count);
  VYRE_REQUIRE_ARRAY(st, from, count);
  if (!vyre__is_sum(element)) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "pass VYRE_ELEMENT_SUM_F32 or VYRE_ELEMENT_SUM_F64",
                     "vyre_sum_merge: element type %u is not a sum",
                     (unsigned)element);
  }
  const size_t size = vyre_element_size(element);
  for (size_t i = 0; i < count; i++) {
    vyre__sum_merge(element, (unsigned char *)to + i * size,
                    (const unsigned char *)from + i * size);
  }
  return VYRE_OK;
}
