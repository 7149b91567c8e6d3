/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Basis points: ratios and scales in units of 1/10000. Products have 128
 * bits, so results are exact for all 64-bit operands. Results that do not fit
 * saturate. */
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

/* Returns part / total in basis points, rounded down, or @p if_zero if @p
 * total is 0. */
static inline uint64_t vyre__ratio_bps_u64(uint64_t part, uint64_t total,
                                           uint64_t if_zero) {
  if (total == 0) return if_zero;
  return vyre__clamp_u64((vyre__u128)part * VYRE__BPS_ONE / total);
}

static inline uint32_t vyre__ratio_bps(uint64_t part, uint64_t total,
                                       uint32_t if_zero) {
  return vyre__clamp_u32(vyre__ratio_bps_u64(part, total, if_zero));
}

/* Multiplies two ratios. */
static inline uint32_t vyre__compose_bps(uint32_t a, uint32_t b) {
  return vyre__clamp_u32((uint64_t)a * b / VYRE__BPS_ONE);
}

/* Scales @p base and rounds to nearest, halves up. */
static inline uint64_t vyre__scale_bps_round(uint64_t base, uint64_t scale) {
  vyre__u128 scaled = (vyre__u128)base * scale;
  vyre__u128 down = scaled / VYRE__BPS_ONE;
  return vyre__clamp_u64(down + (scaled % VYRE__BPS_ONE >= VYRE__BPS_ONE / 2));
}

/* Scales @p base and rounds down; returns @p min if the result is smaller. */
static inline uint64_t vyre__scale_bps_floor(uint64_t base, uint64_t scale,
                                             uint64_t min) {
  uint64_t scaled = vyre__clamp_u64((vyre__u128)base * scale / VYRE__BPS_ONE);
  return scaled > min ? scaled : min;
}

#endif
