/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The processor that the process runs on, in LLVM's words, found without LLVM. */
#ifndef VYRE_BACKEND_CPU_JIT_HOST_CPU_H
#define VYRE_BACKEND_CPU_JIT_HOST_CPU_H

#include <stdbool.h>
#include <stdint.h>

typedef struct vyre__host_cpu {
  bool is_usable; /* x86-64 with SSE4.2 and POPCNT */
  bool has_fma;
  bool has_rounding;    /* floor, ceil, trunc and rint as instructions */
  uint32_t lanes;       /* 32-bit ones of a vector register: 4, 8 or 16 */
  const char *cpu;      /* "znver3": what code is scheduled for */
  const char *features; /* "+avx2,-avx512f,...": all that code may use or not */
  const char *text;     /* both: code runs where this is the same */
} vyre__host_cpu;

/* Static storage; the same always.  Threads: safe. */
const vyre__host_cpu *vyre__host_cpu_detect(void);

/* How much of a processor code uses at most, whatever it has. */
enum {
  VYRE__LEVEL_ALL,
  VYRE__LEVEL_SSE2,
  VYRE__LEVEL_SSE42,
  VYRE__LEVEL_AVX, /* neither AVX2 nor FMA */
  VYRE__LEVEL_AVX2,
  VYRE__LEVELS
};

/* This one without what is above @p level. */
const vyre__host_cpu *vyre__host_cpu_at(uint32_t level);

/* --- for tests ------------------------------------------------------------------*/

/* The name for a family and model; NULL: not known. */
const char *vyre__host_cpu_name(bool is_amd, uint32_t family, uint32_t model);

#endif
