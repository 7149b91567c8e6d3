/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Steps of recordings: commands that another layer runs, such as work queues
 * and wave graphs. A recording checks and orders the slot ranges of a step, as
 * it does those of a dispatch. */
#ifndef VYRE_RUNTIME_RECORDING_STEP_H
#define VYRE_RUNTIME_RECORDING_STEP_H

#include <stdatomic.h>

#include "vyre/recording.h"

#include "base/print.h"
#include "hal/backend.h"

/* Memory that a step may use. */
typedef enum vyre__step_place {
  VYRE__STEP_ANYWHERE,
  VYRE__STEP_HOST,  /* host memory only */
  VYRE__STEP_DEVICE /* a device buffer only */
} vyre__step_place;

typedef struct vyre__step_range {
  vyre_slot_range range; /* slot VYRE_NO_SLOT: no memory */
  const char *name;      /* for messages; as long as the step lives */
  uint64_t bytes;        /* exact size; 0: any whole number of elements */
  uint32_t element;      /* bytes of an element; not 0 */
  vyre__step_place place;
  bool is_written;
  /* Written in place, if the memory is a device buffer and that of `output` is
   * not. */
  bool may_update;
  uint32_t output; /* index of a range, or VYRE_NO_SLOT */
} vyre__step_range;

/* Memory of a range, bound for a replay. */
typedef struct vyre__step_memory {
  void *data;         /* host memory, or NULL */
  vyre_buffer handle; /* of a device buffer, if `buffer` is not NULL */
  vyre__buffer *buffer;
  uint64_t offset, size;
} vyre__step_memory;

/* Limits of the replay that a step runs in. */
typedef struct vyre__step_limit {
  uint64_t deadline_ns, timeout_ns; /* 0: none */
} vyre__step_limit;

/* First member of an object of the other layer. Instances of a recording share
 * the object. */
typedef struct vyre__step vyre__step;
struct vyre__step {
  atomic_uint references;
  vyre_device *device;
  size_t size;              /* bytes of the object */
  vyre__step_range *ranges; /* inside the object */
  size_t range_count;
  void (*deinit)(vyre__step *self);
  /* Checks the memory before any command runs. */
  vyre_code (*check)(vyre__step *self, const vyre__step_memory *memory,
                     vyre_status *st);
  vyre_code (*run)(vyre__step *self, const vyre__step_memory *memory,
                   vyre__step_limit limit, vyre_replay_result *result,
                   vyre_status *st);
  void (*print)(const vyre__step *self, vyre__printer *out);
};

/* Adds a step. On success the recording owns @p step, which has one
 * reference. */
VYRE_NODISCARD vyre_code vyre__recording_add_step(vyre_recording *recording,
                                                  const char *function,
                                                  vyre__step *step,
                                                  vyre_status *st);
void vyre__step_release(vyre__step *step);

#endif
