/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The backend interface: one constant table of functions per backend.
 *
 * The runtime checks arguments, validates programs, plans bindings and sizes,
 * counts references, manages device buffers, queues work and waits for it. A
 * backend only sees valid calls, and reports failures through a status.
 * docs/how-to/write-a-backend.md walks through an example. */
#ifndef VYRE_HAL_BACKEND_H
#define VYRE_HAL_BACKEND_H

#include <stdatomic.h>

#include "hal/command_list.h"
#include "hal/device.h"
#include "hal/launch.h"

/* An option of a backend: a number in a range. Every backend that is probed has
 * "float_mode", which the runtime reads: the lowest float mode to use, whatever
 * the probe found. */
typedef struct vyre__option {
  const char *name; /* NULL: the end of the list */
  uint64_t min, max;
  const char *help;
} vyre__option;

enum { VYRE__BACKEND_ABI = 3 };

struct vyre__backend {
  uint32_t abi, struct_size;
  const char *name;
  bool is_exact; /* floats are exact by definition: no probe, all native */
  bool counts_iterations; /* all its code counts loop iterations exactly */
  bool is_explicit_only;  /* "auto" never selects it */
  bool clears_outputs;    /* handles views with begins_zero itself */
  bool aligns_atomics; /* copies memory with atomic accesses in and out unless
                             it is aligned to its elements */
  /* Bytes of the backend's device, pipeline and buffer. The runtime allocates
   * and zeroes them, and fills the first member. buffer_size is 0 without
   * buffer_init. */
  size_t device_size;
  size_t pipeline_size;
  size_t buffer_size;

  /* Describes device @p index; the runtime sets name and backend, and all texts
   * are static. Returns false if the device does not exist. For index 0, `note`
   * then says what is missing, and `fix` what to install. */
  bool (*describe)(uint32_t index, vyre_device_info *out);
  /* Returns true if "auto" may select the backend in @p context. Returns false
   * if a device would open but could not work, for example without a compiler.
   * *why (static) then says what is missing and how to install it. Called
   * before describe, and must be fast. NULL: always true. */
  bool (*is_ready)(const vyre_context *context, const char **why);
  vyre_code (*device_init)(vyre_device *device, vyre_status *st);
  void (*device_deinit)(vyre_device *device); /* after a successful init only */
  vyre_code (*pipeline_init)(vyre_pipeline *pipeline, vyre_status *st);
  void (*pipeline_deinit)(vyre_pipeline *pipeline);

  /* Device memory. All four are NULL if the runtime is to use host memory.
   * `size` and `host` (memory to import, or NULL) are set; new memory is
   * zeroed. */
  vyre_code (*buffer_init)(vyre_device *device, vyre__buffer *buffer,
                           vyre_status *st);
  void (*buffer_deinit)(vyre_device *device, vyre__buffer *buffer);
  vyre_code (*buffer_write)(vyre_device *device, vyre__buffer *buffer,
                            uint64_t offset, const void *data, size_t size,
                            vyre_status *st);
  vyre_code (*buffer_read)(vyre_device *device, vyre__buffer *buffer,
                           uint64_t offset, void *data, size_t size,
                           vyre_status *st);

  /* Launches a kernel once and waits for it. Several threads may call it at the
   * same time. */
  vyre_code (*run)(vyre_pipeline *pipeline, vyre__launch *launch,
                   vyre_status *st);

  /* Serialisation of a pipeline for the disk cache; both NULL if it has none.
   * load replaces pipeline_init, save follows it. The bytes come from the save
   * of this backend for the same key: the program without its names and source
   * locations, the options, the texts of describe and features, the versions.
   * They are aligned to 16 and borrowed for the call. If load fails, the
   * runtime calls pipeline_init. If save fails, nothing is stored. */
  uint32_t artifact_version; /* format of these bytes */
  vyre_code (*pipeline_load)(vyre_pipeline *pipeline, const void *artifact,
                             size_t size, vyre_status *st);
  vyre_code (*pipeline_save)(vyre_pipeline *pipeline, vyre_writer writer,
                             vyre_status *st);
  /* Writes everything else that the code depends on: CPU features, float modes.
   * NULL: nothing. Returns false if the writer failed. */
  bool (*features)(vyre_device *device, vyre_writer writer);

  const vyre__option *options; /* NULL: none */
  /* Moves the code of @p full into @p pipeline, which has the baseline tier of
   * the same program and options. Other threads may run @p pipeline at the same
   * time. Called once per pipeline; @p full is not launched afterwards. NULL:
   * the backend has no baseline tier. */
  void (*pipeline_replace_code)(vyre_pipeline *pipeline, vyre_pipeline *full);

  /* Writes the code of a pipeline in a human-readable form that @p form names.
   * NULL: the backend has none.
   * Errors: VYRE_UNSUPPORTED_FEATURE for an unknown
   * form, with a list of the known ones. */
  vyre_code (*pipeline_print)(vyre_pipeline *pipeline, const char *form,
                              vyre_writer writer, vyre_status *st);

  /* Fills the fields of @p out from has_launches on; the runtime has set the
   * others. Other threads may run the pipeline at the same time. NULL: adds
   * nothing. */
  void (*pipeline_describe)(const vyre_pipeline *pipeline,
                            vyre_pipeline_resources *out);

  /* Executes @p first and the launches linked after it, of any pipelines of the
   * device, and waits for all. Each sees the results of the one before. Stops
   * at the first failure; *done is the number of launches that succeeded. No
   * launch is timed or checked, or has a deadline or a writer. NULL: the
   * runtime calls `run` for each. */
  vyre_code (*run_batch)(vyre_device *device, vyre__launch *first, size_t *done,
                         vyre_status *st);
  uint32_t max_batch; /* launches per run_batch; 0: VYRE__COMMAND_LIST */

  /* Executes a command list like run_batch, and keeps the encoded commands in
   * it for the next time. One thread at a time uses a list. *done is the number
   * of items that succeeded. command_list_deinit accepts a zeroed list. NULL,
   * with a size of 0: the runtime executes launches itself. */
  size_t command_list_size;
  vyre_code (*command_list_run)(vyre__command_list *list, size_t *done,
                                vyre_status *st);
  void (*command_list_deinit)(vyre__command_list *list);
  /* Executes a command list in a loop; the device tests the flag before each
   * iteration. After a failure, loop->iterations counts those that succeeded.
   * NULL: the host tests the flag. */
  vyre_code (*command_list_loop)(vyre__command_list *list,
                                 vyre__command_list_loop *loop,
                                 vyre_status *st);

  /* Loads the libraries that a device needs, as @p context names them. Starts
   * no thread and opens nothing that a child process could not share: the
   * process may be about to fork. NULL: there is nothing to load. */
  vyre_code (*preload)(const vyre_context *context, vyre_status *st);
};

/* Returns a registered backend, best first; NULL past the last. */
const vyre__backend *vyre__backend_at(size_t index);

#endif
