/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The levels of the x86-64 psABI, as processors that code is generated for. */
#include <string.h>

#include "backend/cpu/jit/host_cpu.h"

#define V2 "+sse3,+ssse3,+sse4.1,+sse4.2,+cx16,+popcnt"
#define V3 V2 ",+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"
#define V4 V3 ",+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"

static const vyre__host_cpu levels[VYRE__PORTABLES] = {
    [VYRE__PORTABLE_V4] = {.is_usable = true,
                           .has_fma = true,
                           .has_rounding = true,
                           .lanes = 16,
                           .cpu = "x86-64-v4",
                           .features = V4,
                           .text = "x86-64-v4 " V4},
    [VYRE__PORTABLE_V3] = {.is_usable = true,
                           .has_fma = true,
                           .has_rounding = true,
                           .lanes = 8,
                           .cpu = "x86-64-v3",
                           .features = V3,
                           .text = "x86-64-v3 " V3},
    [VYRE__PORTABLE_V2] = {.is_usable = true,
                           .has_rounding = true,
                           .lanes = 4,
                           .cpu = "x86-64-v2",
                           .features = V2,
                           .text = "x86-64-v2 " V2},
};

const vyre__host_cpu *vyre__host_cpu_portable(uint32_t level) {
  return &levels[level];
}

/* Returns true if the feature @p name, of @p length bytes with its sign, is in
 * @p list. */
static bool has_feature(const char *list, const char *name, size_t length) {
  for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
    if (strcspn(at, ",") == length && memcmp(at, name, length) == 0) {
      return true;
    }
  }
  return false;
}

const char *vyre__host_cpu_lacks(const vyre__host_cpu *host, uint32_t level,
                                 size_t *length) {
  const char *at = levels[level].features;
  for (; *at; at += *length, at += *at == ',') {
    *length = strcspn(at, ",");
    if (has_feature(host->features, at, *length)) continue;
    --*length;
    return at + 1;
  }
  return NULL;
}
