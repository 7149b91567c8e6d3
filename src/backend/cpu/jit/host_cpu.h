/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Detects the processor and its features, in LLVM's terms but without LLVM. */
#ifndef VYRE_BACKEND_CPU_JIT_HOST_CPU_H
#define VYRE_BACKEND_CPU_JIT_HOST_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct vyre__host_cpu {
  bool is_usable; /* x86-64 with SSE4.2 and POPCNT */
  bool has_fma;
  bool has_rounding;    /* instructions for floor, ceil, trunc and rint */
  uint32_t lanes;       /* 32-bit lanes of a vector register: 4, 8 or 16 */
  const char *cpu;      /* scheduling model, such as "znver3" */
  const char *features; /* "+avx2,-avx512f,...": every feature, on or off */
  const char *text;     /* both; code may run only where this is the same */
} vyre__host_cpu;

/* Returns the host's processor, in static storage. Threads: safe. */
const vyre__host_cpu *vyre__host_cpu_detect(void);

/* Upper limit on the instruction sets that compiled code uses. */
enum {
  VYRE__LEVEL_ALL,
  VYRE__LEVEL_SSE2,
  VYRE__LEVEL_SSE42,
  VYRE__LEVEL_AVX, /* neither AVX2 nor FMA */
  VYRE__LEVEL_AVX2,
  VYRE__LEVELS
};

/* Returns the host's processor without the features above @p level. */
const vyre__host_cpu *vyre__host_cpu_at(uint32_t level);

/* Levels of the x86-64 psABI, best first. Code for one runs on every processor
 * that has all its features. */
enum {
  VYRE__PORTABLE_V4,
  VYRE__PORTABLE_V3,
  VYRE__PORTABLE_V2,
  VYRE__PORTABLES
};

/* Returns a processor with exactly the features of a level. */
const vyre__host_cpu *vyre__host_cpu_portable(uint32_t level);
/* Returns the first feature of a level that @p host lacks, of *length bytes, or
 * NULL. */
const char *vyre__host_cpu_lacks(const vyre__host_cpu *host, uint32_t level,
                                 size_t *length);

/* --- for tests -------------------------------------------------------------*/

/* Returns LLVM's name for a family and model, or NULL if unknown. */
const char *vyre__host_cpu_name(bool is_amd, uint32_t family, uint32_t model);

#endif
