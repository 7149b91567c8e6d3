/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The host plan of a compiled kernel: its buffers, and the steps that the host
 * takes between its phases. It replaces the LIR kernel after code generation.
 * The plan of each backend starts with it, and the cache stores it with the
 * code (artifact.h). */
#ifndef VYRE_HAL_HOST_PLAN_H
#define VYRE_HAL_HOST_PLAN_H

#include "hal/backend.h"
#include "lir/lir.h"

typedef struct vyre__plan_buffer {
  uint32_t min, max; /* elements that may be bound */
  uint32_t unit;     /* bytes of an element in bound memory */
  uint8_t kind;      /* vyre_memory */
  uint8_t width;     /* bytes of one access */
  uint8_t is_bound;  /* 1: bound by the caller; 0: allocated by the backend */
  uint8_t aligned;   /* required alignment: the width for atomics, else 1 */
} vyre__plan_buffer;

/* A vyre__lir_step whose values are indices into the plan's `host`. */
typedef struct vyre__plan_step {
  uint8_t kind, loop_kind, type, reserved;
  union {
    uint32_t phase;     /* RUN */
    uint32_t left_flag; /* FOR */
  };
  uint32_t loop;
  uint32_t first, bound;
  uint32_t mate; /* FOR: its END_FOR; END_FOR: its FOR; RUN: itself */
  uint64_t by;
} vyre__plan_step;

/* Fields of the plan. Operands of `host` are indices into it, plus 1. The
 * numbers come first, because an artifact stores them as one block.
 * spill_buffer is an index, or VYRE_NO_INDEX. has_floats says that `host`
 * computes with floats; it is derived, and not stored. */
#define VYRE__HOST_PLAN_FIELDS                                            \
  uint32_t workgroup[3];                                                  \
  uint32_t has_fuel;                                                      \
  uint32_t phase_count, buffer_count, step_count, host_count, loop_count; \
  uint32_t spill_buffer;                                                  \
  uint32_t spill_words, alive_flag;                                       \
  const vyre__plan_buffer *buffers;                                       \
  const vyre__plan_step *steps;                                           \
  const vyre__lir_inst *host;                                             \
  bool has_floats;

typedef struct vyre__host_plan {
  VYRE__HOST_PLAN_FIELDS
} vyre__host_plan;

/* First member of a backend's plan: the fields as members of that plan, and
 * together as `base`. */
#define VYRE__HOST_PLAN      \
  union {                    \
    vyre__host_plan base;    \
    struct {                 \
      VYRE__HOST_PLAN_FIELDS \
    };                       \
  }

/* Builds the plan of @p kernel in @p arena. Limits every buffer to @p
 * max_elements.
 * Errors: VYRE_UNSUPPORTED_FEATURE if a buffer is declared longer;
 * VYRE_OUT_OF_MEMORY. They name @p backend. */
vyre_code vyre__host_plan_build(const vyre__lir_kernel *kernel,
                                uint32_t max_elements, const char *backend,
                                vyre_arena *arena, vyre__host_plan *out,
                                vyre_status *st);

/* Checks a plan that was read from an artifact, so that any memory can be bound
 * to it: all indices are in range and loops are properly nested. Sets the
 * derived fields.
 * Errors: VYRE_KERNEL_COMPILE_FAILED; VYRE_OUT_OF_MEMORY. */
vyre_code vyre__host_plan_check(vyre__host_plan *plan, vyre_arena *arena,
                                vyre_status *st);

/* Checks that a plan that was read belongs to the program of the pipeline.
 * Errors: VYRE_KERNEL_COMPILE_FAILED. */
vyre_code vyre__host_plan_fits(const vyre__host_plan *plan,
                               const vyre_pipeline *pipeline, vyre_status *st);

/* --- the host schedule ---------------------------------------------------- */

/* Position in the steps of a plan, and the state of its loops. */
typedef struct vyre__host_schedule {
  const vyre__host_plan *plan;
  const vyre__launch *launch;
  uint64_t *values, *bounds; /* one per loop */
  uint64_t *host;            /* results of plan->host */
  uint32_t at;
  /* Set by a backend that can read the spill buffer between phases: its words,
   * and the number of invocations. The schedule then ends loops that no
   * invocation is in. */
  const uint32_t *spill;
  uint64_t invocations;
  uint64_t inside; /* an invocation that was in a loop when last looked at */
} vyre__host_schedule;

typedef enum vyre__host_step {
  VYRE__HOST_STEP_END,    /* all phases have been launched */
  VYRE__HOST_STEP_LAUNCH, /* a phase must be launched */
  VYRE__HOST_STEP_LOOP,   /* a loop started, continued or ended */
} vyre__host_step;

/* Returns the number of u64 values that a schedule needs. */
static inline size_t vyre__host_schedule_size(const vyre__host_plan *plan) {
  return 2 * (size_t)plan->loop_count + plan->host_count;
}

/* Returns a schedule that is about to run the first step of @p plan for @p
 * launch. @p values has space for vyre__host_schedule_size numbers.
 * The host code reads uniforms at launch->views[i].data; a view without data
 * reads as zero. */
vyre__host_schedule vyre__host_schedule_begin(const vyre__host_plan *plan,
                                              const vyre__launch *launch,
                                              uint64_t *values);
/* Takes one step. A plan may take very many steps without a launch. LAUNCH:
 * *phase is next, with the loop values in schedule->values. */
vyre__host_step vyre__host_schedule_step(vyre__host_schedule *schedule,
                                         uint32_t *phase);
/* Takes steps until a phase must be launched. Returns false at the end. */
bool vyre__host_schedule_next(vyre__host_schedule *schedule, uint32_t *phase);

/* Leaves the loops around the phase that is next if no invocation is in them
 * any more. Returns true if it left one: then another phase is next. */
bool vyre__host_schedule_leave(vyre__host_schedule *schedule);
/* Returns true if the schedule reads spill word @p word of all invocations. */
bool vyre__host_plan_is_flag(const vyre__host_plan *plan, uint32_t word);

/* Report that a launch of compiled code exceeded max_loop_iterations, or its
 * timeout. */
vyre_code vyre__out_of_fuel(const vyre_pipeline *p, const vyre__launch *launch,
                            vyre_status *st);
vyre_code vyre__timed_out(const vyre_pipeline *p, const vyre__launch *launch,
                          vyre_status *st);

#endif
