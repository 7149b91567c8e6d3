/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Strips: numbers that a thread collects for one exact sum (ir/sum.h) before it
 * adds them together. Compiled kernels fill them; functions of the runtime
 * (backend/cpu/sums.c) add them to private bins, and these to the sum in
 * memory. */
#ifndef VYRE_SPMD_SUM_STRIP_H
#define VYRE_SPMD_SUM_STRIP_H

#include <stdbool.h>
#include <stdint.h>

enum {
  VYRE__STRIP_BYTES = 8192, /* of numbers */
  VYRE__STRIP_WORDS = 72,   /* of a sum_f64, the larger kind */
  VYRE__STRIP_PARTIALS = 64,
};

/* Offsets are part of the text of compiled kernels. All but the numbers are 0 at
 * the start. */
typedef struct vyre__sum_strip {
  uint64_t *target; /* sum in memory; NULL: none yet */
  uint64_t count;   /* bytes of numbers */
  uint64_t bins[VYRE__STRIP_WORDS];
  /* Exact partial sums in f64, of f32 numbers. They are added to the bins when
   * they grow too large for the next numbers. */
  bool has_partials;
  uint32_t pause; /* strips that are added to the bins at once */
  uint64_t reserved[5];
  double partials[VYRE__STRIP_PARTIALS]; /* aligned to 64 bytes */
  unsigned char numbers[VYRE__STRIP_BYTES];
} vyre__sum_strip;

/* Makes room for numbers of the sum @p target. They probably come from memory
 * at @p source, or from elsewhere if that is NULL. */
void vyre__sum_strip_begin_f32(vyre__sum_strip *strip, uint64_t *target,
                               const void *source);
void vyre__sum_strip_begin_f64(vyre__sum_strip *strip, uint64_t *target,
                               const void *source);
/* Adds all collected numbers to their sum. */
void vyre__sum_strip_end_f32(vyre__sum_strip *strip);
void vyre__sum_strip_end_f64(vyre__sum_strip *strip);
/* Adds one number, given by its bits, with atomics. */
void vyre__sum_strip_add_f32(uint64_t *target, uint32_t bits);
void vyre__sum_strip_add_f64(uint64_t *target, uint64_t bits);

#endif
