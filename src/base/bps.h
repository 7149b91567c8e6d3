/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Basis points: ratios and scales in parts of 10000, with 128-bit products, so
 * that they are exact up to 2^64-1. Results that do not fit are the largest
 * number that does. */
#ifndef VYRE_BASE_BPS_H
#define VYRE_BASE_BPS_H

#include <stdbool.h>
#include <stdint.h>

#define VYRE__BPS_ONE 10000u

__extension__ typedef unsigned __int128 vyre__u128;

static inline uint64_t vyre__clamp_u64(vyre__u128 value) {
  return value > UINT64_MAX ? UINT64_MAX : (uint64_t)value;
}

static inline uint32_t vyre__clamp_u32(uint64_t value) {
  return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* part of whole, rounded down; @p if_zero if the whole is 0. */
static inline uint64_t vyre__ratio_bps_u64(uint64_t part, uint64_t whole,
                                           uint64_t if_zero) {
  if (whole == 0) return if_zero;
  return vyre__clamp_u64((vyre__u128)part * VYRE__BPS_ONE / whole);
}

static inline uint32_t vyre__ratio_bps(uint64_t part, uint64_t whole,
                                       uint32_t if_zero) {
  return vyre__clamp_u32(vyre__ratio_bps_u64(part, whole, if_zero));
}

/* Two ratios one after the other. */
static inline uint32_t vyre__compose_bps(uint32_t a, uint32_t b) {
  return vyre__clamp_u32((uint64_t)a * b / VYRE__BPS_ONE);
}

/* base scaled and rounded to nearest, halves up. */
static inline uint64_t vyre__scale_bps_round(uint64_t base, uint64_t scale) {
  vyre__u128 scaled = (vyre__u128)base * scale;
  vyre__u128 down = scaled / VYRE__BPS_ONE;
  return vyre__clamp_u64(down + (scaled % VYRE__BPS_ONE >= VYRE__BPS_ONE / 2));
}

/* base scaled and rounded down, but at least @p least. */
static inline uint64_t vyre__scale_bps_floor(uint64_t base, uint64_t scale,
                                             uint64_t least) {
  uint64_t scaled = vyre__clamp_u64((vyre__u128)base * scale / VYRE__BPS_ONE);
  return scaled > least ? scaled : least;
}

#endif
