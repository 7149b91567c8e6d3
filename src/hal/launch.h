/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A launch: one kernel with its memory, as a backend receives it. The runtime
 * has checked everything in it. */
#ifndef VYRE_HAL_LAUNCH_H
#define VYRE_HAL_LAUNCH_H

#include <string.h>

#include "vyre/dispatch.h"
#include "vyre/pipeline.h"

#include "hal/device.h"

enum { VYRE__PIPELINE_ID = 96 };

/* Maximum number of tunable options of a backend (backend.h). */
enum { VYRE__TUNABLES = 4 };

/* First member of every backend's pipeline. */
struct vyre_pipeline {
  vyre_device *device;   /* retained */
  vyre_program *program; /* retained; valid, and has a body */
  vyre_arena arena;      /* holds the plan; load may add to it */
  vyre_binding_plan plan;
  uint32_t workgroup[3];
  uint8_t ulp_budget;
  bool counts_iterations; /* its code counts loop iterations */
  bool is_baseline;       /* generate compiles the baseline tier; only with
                             pipeline_replace_code. load clears it if the code
                             needs no replacement */
  bool ignores_tuning;    /* compiled without stored choices of vyre_tune */
  /* Values of the backend's tunable options for this pipeline, plus 1. 0: as
   * the device was opened. */
  uint32_t tuned[VYRE__TUNABLES];
  /* Float mode of every operation, indexed by vyre__float_op. Usually the
   * device's; the probe asks for others. */
  const vyre_float_op_info *float_ops;
  /* Limits that the runtime checks when bindings change. Set by load; NULL: the
   * backend accepts every length that the program allows. */
  const struct vyre__host_plan *host_plan;
  char id[VYRE__PIPELINE_ID];
  struct vyre__pipeline_state *state; /* private to the runtime */
};

/* Returns the value of a tunable option, or @p otherwise if the pipeline has
 * none of its own. */
static inline uint32_t vyre__tuned(const vyre_pipeline *pipeline,
                                   uint32_t option, uint32_t otherwise) {
  uint32_t value = pipeline->tuned[option];
  return value ? value - 1 : otherwise;
}

/* Device memory: first member of every backend's buffer. */
typedef struct vyre__buffer {
  uint64_t size;
  unsigned char *host; /* address for the host, or NULL */
  bool is_imported;    /* the memory at `host` belongs to the caller */
  bool is_read_only;   /* the runtime refuses writes to it */
  uint64_t alignment;  /* preferred by the binding that it is created for, a
                        * power of two; 0: none */
  /* Private to the runtime: called when the memory is no longer used; or
   * NULL. */
  void (*release)(void *self);
  void *release_user_data;
} vyre__buffer;

/* Memory of one buffer of a launch.
 *
 * With `buffer`, it is device memory from `offset` on. A kernel that writes it
 * updates it in place: the next launch with this memory, in the same list or
 * in another execution of it, reads what this one wrote. A backend therefore
 * never keeps a copy of it between launches.
 *
 * Without `buffer`, `data` are bytes of the host with any alignment. A backend
 * that cannot bind these where they are (caps.borrows_host_memory, caps.host_alignment) copies them in
 * before the kernel, and copies those that the kernel may write back out after
 * it. The runtime has set the first contents of outputs in both cases. It
 * derives the copies that it reports (vyre_copy_report) from the capabilities
 * and from aligns_atomics. */
typedef struct vyre__view {
  unsigned char *data;  /* NULL: a shared buffer, an empty one, or memory that
                           the host cannot address */
  uint32_t length;      /* elements */
  vyre__buffer *buffer; /* device memory, or NULL */
  uint64_t offset;      /* bytes, in `buffer` */
  bool begins_zero; /* only for a backend with clears_outputs, and with data:
                           the kernel must see zeros, and elements that it does
                           not write must be zero afterwards */
} vyre__view;

/* Bytes of a view that the caller wants in host memory, too. */
typedef struct vyre__readback {
  uint32_t buffer;   /* in the program's order; its view has device memory */
  unsigned char *to; /* overlaps no memory of the launch */
  uint64_t size;     /* bytes: all of the view, and not 0 */
} vyre__readback;

typedef struct vyre__launch {
  vyre_pipeline *pipeline;
  const vyre__view *views;      /* one per buffer, in the program's order */
  uint32_t grid[3];             /* ids fit in 32 bits, the product in 64 */
  uint64_t max_loop_iterations; /* at least 1 */
  uint64_t deadline_ns;         /* on vyre__clock_ns; 0: none */
  uint64_t timeout_ns;          /* timeout behind the deadline, for messages */
  bool is_complete;  /* set by execute: it timed out, but all of it ran */
  vyre_writer print; /* write may be NULL */
  vyre_check_options check;
  vyre_check_report *report; /* empty; not NULL if `check` asks for anything */
  vyre_arena *scratch;       /* empty; its memory is reused, so that a repeated
                                launch allocates nothing */
  bool is_timed;             /* the caller asked for device_ns */
  uint64_t device_ns;        /* set by a backend with has_device_time */
  uint32_t launches;         /* added to the launch counter: 1, unless the
                                backend changes it */
  vyre_progress *progress;   /* NULL: the caller did not ask for it */
  uint32_t launch_index, launch_count; /* position in the dispatch */
  /* Device memory that is copied to the host after the kernel, and before the
   * next launch writes it. A launch that fails need not copy it. */
  uint32_t readback_count;
  const vyre__readback *readbacks;
} vyre__launch;

/* Copies the readbacks of a launch whose views all have `data`. */
static inline void vyre__launch_read_back(const vyre__launch *launch) {
  for (uint32_t i = 0; i < launch->readback_count; i++) {
    const vyre__readback *readback = &launch->readbacks[i];
    memcpy(readback->to, launch->views[readback->buffer].data,
           (size_t)readback->size);
  }
}

/* Checks the lengths in launch->views against the host plan of the pipeline.
 * The runtime calls it whenever bindings change, so backends trust them.
 * Errors: VYRE_INVALID_ARGUMENT (binding_mismatch). */
vyre_code vyre__launch_check(const vyre__launch *launch, vyre_status *st);

/* Asserts in debug and sanitizer builds that the lengths and the grid of a
 * launch were checked. */
#ifdef NDEBUG
static inline void vyre__launch_assert(const vyre__launch *launch) {
  (void)launch;
}
#else
void vyre__launch_assert(const vyre__launch *launch);
#endif

/* Reports that a launch of @p groups workgroups (0: unknown) begins. Any
 * thread. */
void vyre__progress_begin(const vyre__launch *launch, uint64_t groups);

/* Computes the words of the spill buffer of @p groups workgroups. Fails if they
 * are more than @p max_words. */
vyre_code vyre__spill_size(const vyre__launch *launch, const uint32_t group[3],
                           uint64_t groups, uint32_t max_words, uint32_t *words,
                           vyre_status *st);

/* Reports that a launch of @p groups workgroups has ended, also if it left some
 * of them out. */
static inline void vyre__progress_end(const vyre__launch *launch,
                                      uint64_t groups) {
  if (!launch->progress) return;
  __atomic_store_n(&launch->progress->completed,
                   groups * (launch->launch_index + 1), __ATOMIC_RELAXED);
}
/* Reports that @p groups more workgroups have finished. Any thread. */
static inline void vyre__progress_add(const vyre__launch *launch,
                                      uint64_t groups) {
  if (!launch->progress) return;
  __atomic_fetch_add(&launch->progress->completed, groups, __ATOMIC_RELAXED);
}

#endif
