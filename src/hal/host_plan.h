/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What launches a compiled kernel, once the lowered one is gone: its buffers, and
 * the steps that the host takes between phases. A backend's own plan begins with
 * it, and is kept with the code (artifact.h). */
#ifndef VYRE_HAL_HOST_PLAN_H
#define VYRE_HAL_HOST_PLAN_H

#include "hal/backend.h"
#include "lir/lir.h"

typedef struct vyre__plan_buffer {
  uint32_t min, max; /* elements that may be bound */
  uint8_t kind;      /* vyre_memory */
  uint8_t unit;      /* bytes of an element as it is bound */
  uint8_t width;     /* bytes of an access */
  uint8_t is_bound;  /* by the caller; else it is the backend's */
  uint8_t aligned;   /* bytes that its address is to be a multiple of, where
                           accesses are the processor's: atomics, else 1 */
  uint8_t reserved[3];
} vyre__plan_buffer;

/* As vyre__lir_step; values are places in `host`. */
typedef struct vyre__plan_step {
  uint8_t kind, loop_kind, type, reserved;
  uint32_t phase, loop;
  uint32_t first, bound;
  uint32_t mate; /* FOR: its END_FOR; END_FOR: its FOR; RUN: itself */
  uint64_t by;
} vyre__plan_step;

/* Operands of `host` are places in it, plus 1. Numbers come first: they are kept
 * as they are. */
#define VYRE__HOST_PLAN_FIELDS                                            \
  uint32_t workgroup[3];                                                  \
  uint32_t most_groups[3];                                                \
  uint32_t has_fuel;                                                      \
  uint32_t phase_count, buffer_count, step_count, host_count, loop_count; \
  uint32_t hidden; /* buffer, or VYRE_NO_INDEX */                         \
  uint32_t hidden_words;                                                  \
  const vyre__plan_buffer *buffers;                                       \
  const vyre__plan_step *steps;                                           \
  const vyre__lir_inst *host;                                             \
  bool has_floats; /* what `host` computes: found, not kept */

typedef struct vyre__host_plan {
  VYRE__HOST_PLAN_FIELDS
} vyre__host_plan;

/* In the plan of a backend: the fields as its own, and all of them as `base`. */
#define VYRE__HOST_PLAN      \
  union {                    \
    vyre__host_plan base;    \
    struct {                 \
      VYRE__HOST_PLAN_FIELDS \
    };                       \
  }

/* Takes what it needs of @p kernel; lives in @p arena. No buffer may have more
 * than @p most elements. Errors: VYRE_OUT_OF_MEMORY, told for @p backend. */
vyre_code vyre__host_plan_build(const vyre__lir_kernel *kernel, uint32_t most,
                                const char *backend, vyre_arena *arena,
                                vyre__host_plan *out, vyre_status *st);

/* Whether all of what was read can be walked, whatever is bound: every index is
 * one, and loops are closed in the order in which they were opened. Sets what is
 * not kept. Errors: VYRE_KERNEL_COMPILE_FAILED; VYRE_OUT_OF_MEMORY. */
vyre_code vyre__host_plan_check(vyre__host_plan *plan, vyre_arena *arena,
                                vyre_status *st);

/* Holds a plan that was read against the program of the pipeline: one that was
 * made for another is not run, however it came here.
 * Errors: VYRE_KERNEL_COMPILE_FAILED. */
vyre_code vyre__host_plan_fits(const vyre__host_plan *plan,
                               const vyre_pipeline *pipeline, vyre_status *st);

/* --- what the host does between phases ---------------------------------------------*/

/* Loops of the host, and where they stand. */
typedef struct vyre__host_schedule {
  const vyre__host_plan *plan;
  const vyre__launch *launch;
  uint64_t *values, *bounds, *host; /* of loops; of plan->host */
  uint32_t at;
} vyre__host_schedule;

typedef enum vyre__host_step {
  VYRE__HOST_STEP_END,    /* there is nothing more */
  VYRE__HOST_STEP_LAUNCH, /* a phase is to be run */
  VYRE__HOST_STEP_LOOP,   /* a loop has begun, or goes on, or is over */
} vyre__host_step;

/* Numbers that a walk needs room for. */
static inline size_t vyre__host_schedule_size(const vyre__host_plan *plan) {
  return 2 * (size_t)plan->loop_count + plan->host_count;
}

/* @p values has room for vyre__host_schedule_size. Uniforms that the host's code reads are
 * at launch->views[i].data; ones that are not there are read as zero. */
vyre__host_schedule vyre__host_schedule_begin(const vyre__host_plan *plan,
                                              const vyre__launch *launch,
                                              uint64_t *values);
/* One step; there may be very many in which nothing is run. RUN: *phase is next,
 * with the loops' values in walk->values. */
vyre__host_step vyre__host_schedule_step(vyre__host_schedule *walk,
                                         uint32_t *phase);
/* Steps until there is a phase to run; false: that was all. */
bool vyre__host_schedule_next(vyre__host_schedule *walk, uint32_t *phase);

/* That a launch of compiled code ran out of its iterations, or of its time. */
vyre_code vyre__out_of_fuel(const vyre_pipeline *p, const vyre__launch *launch,
                            vyre_status *st);
vyre_code vyre__timed_out(const vyre_pipeline *p, const vyre__launch *launch,
                          vyre_status *st);

#endif
