/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Affine forms of 32-bit integers, and bounds of values.
 *
 * The form of a value v is a sum of terms factor * leaf and a constant, equal
 * to v modulo 2^32. Leaves are values that are not sums or products with a
 * constant. Two reads of a loop counter, or of local_id, are the same leaf. */
#ifndef VYRE_SPMD_AFFINE_H
#define VYRE_SPMD_AFFINE_H

#include "vyre/memory.h"

#include "lir/lir.h"

enum {
  VYRE__AFFINE_TERMS = 12,
  VYRE__AFFINE_GUARDS = 8, /* enclosing IFs that are considered */
};

typedef struct vyre__affine_term {
  uint64_t key;   /* equal for equal leaves */
  vyre__val leaf; /* one of them */
  int64_t factor;
} vyre__affine_term;

typedef struct vyre__affine {
  vyre__affine_term terms[VYRE__AFFINE_TERMS];
  uint32_t count;
  int64_t constant;
  bool is_incomplete; /* it has more terms, or factors are too large */
  uint16_t visits;    /* values that were looked at */
} vyre__affine;

/* Exact bounds of an integer; lo > hi: unknown. */
typedef struct vyre__bounds {
  int64_t lo, hi;
} vyre__bounds;

static inline bool vyre__bounds_known(vyre__bounds b) {
  return b.lo <= b.hi;
}

typedef struct vyre__affine_guard {
  vyre__val condition;
  bool want;
} vyre__affine_guard;

/* A position in the code: what is known there. */
typedef struct vyre__affine_place {
  uint32_t at;
  vyre__affine_guard guards[VYRE__AFFINE_GUARDS];
  uint32_t guard_count;
} vyre__affine_place;

typedef struct vyre__affine_kernel {
  const vyre__lir_kernel *kernel;
  uint32_t *loop_of_var; /* per variable: LOOP that counts it; 0: none */
  uint32_t *tested_from; /* per loop: end of its test */
  uint32_t *step_of;     /* per loop: its STEP */
  uint32_t effort;       /* values that a question may still look at */
} vyre__affine_kernel;

/* Finds the counters of @p kernel. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__affine_init(vyre__affine_kernel *k,
                            const vyre__lir_kernel *kernel, vyre_arena *arena,
                            vyre_status *st);

/* Adds @p factor * @p v to two forms, @p high and @p low, so that their sum
 * @p unit * high + low equals it: terms whose factor is a multiple of @p unit
 * go to @p high. @p unit 0: all go to @p low. */
void vyre__affine_add(vyre__affine_kernel *k, vyre__val v, int64_t factor,
                      int64_t unit, vyre__affine *high, vyre__affine *low);
/* Returns true if @p product is a product of *v and the constant *by. */
bool vyre__affine_is_scaled(const vyre__affine_kernel *k, vyre__val product,
                            vyre__val *v, int64_t *by);
/* Adds @p factor * @p other to @p form. */
void vyre__affine_add_form(vyre__affine *form, const vyre__affine *other,
                           int64_t factor);
/* Returns bounds of the exact sum of @p form at @p place, which guards may
 * narrow. */
vyre__bounds vyre__affine_bounds(vyre__affine_kernel *k,
                                 const vyre__affine *form,
                                 const vyre__affine_place *place);

/* Returns by how much the exact sum of @p form grows from one invocation to
 * the next along x, inside a row of 2^n invocations if ids are divided by 2^n.
 * Sets *is_known to false if that differs. */
int64_t vyre__affine_slope(vyre__affine_kernel *k, const vyre__affine *form,
                           bool *is_known);

#endif
