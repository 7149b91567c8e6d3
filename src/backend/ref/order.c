/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Permutations of workgroups and lanes. */
#include "backend/ref/ref.h"
#include "base/bps.h"

uint64_t ref_mix(uint64_t value) {
  value = (value ^ value >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  value = (value ^ value >> 27) * UINT64_C(0x94D049BB133111EB);
  return value ^ value >> 31;
}

ref_order ref_order_forward(uint64_t count) {
  return (ref_order){.count = count, .factor = 1};
}

ref_order ref_order_backward(uint64_t count) {
  return (ref_order){.count = count, .factor = count - 1, .offset = count - 1};
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

ref_order ref_order_make(uint64_t count, uint64_t seed) {
  uint64_t factor = ref_mix(seed + UINT64_C(0x9E3779B97F4A7C15)) % count;
  /* The steps reach all positions only if the factor and the count are coprime;
   * such a number is never far. */
  while (factor == 0 || common_divisor(factor, count) != 1) {
    factor = factor % count + 1;
  }
  return (ref_order){
      .count = count, .factor = factor, .offset = ref_mix(~seed) % count};
}

uint64_t ref_order_at(const ref_order *order, uint64_t position) {
  if (order->factor == 1 && order->offset == 0) return position;
  vyre__u128 moved = (vyre__u128)position * order->factor + order->offset;
  return (uint64_t)(moved % order->count);
}
