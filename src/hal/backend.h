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

#include "base/bytes.h"
#include "hal/command_list.h"
#include "hal/device.h"
#include "hal/launch.h"
#include "hal/portable.h"
#include "hal/queue.h"
#include "lir/lir.h"

/* An option of a backend; the fields are those of vyre_device_option. Every
 * backend that is probed has "float_mode", which the runtime reads: the lowest
 * float mode to use, whatever the probe found. */
typedef struct vyre__option {
  const char *name; /* NULL: the end of the list */
  uint64_t min, max;
  const char *help;
  vyre_option_type type;
  const char *values; /* of a number: the only ones allowed; NULL: all */
} vyre__option;

/* A setting that a pipeline can have a value of its own for, in
 * vyre_pipeline.tuned. It changes the speed, never a result. */
typedef struct vyre__tunable {
  const char *name;    /* "width" */
  bool changes_code;   /* it is an input of `generate` */
  bool is_tier;        /* its values are those of vyre_tier */
  uint32_t values[16]; /* values worth trying on this device, other than the
                          default */
  uint32_t count;      /* 0: the device was opened with a fixed value */
} vyre__tunable;

/* The code of a kernel, as `load` receives it. */
typedef struct vyre__code_source {
  /* Bytes of generate, from this process or from the disk cache. They are
   * aligned to 16 and borrowed for the call. NULL without generate. */
  const void *artifact;
  size_t size;
  /* Without generate: the lowered program, in the arena of the pipeline. NULL
   * for a backend without target. */
  const vyre__lir_kernel *kernel;
  /* Takes bytes that only exist after loading, such as the pipeline cache of a
   * driver. The disk cache stores them behind the artifact. NULL: the artifact
   * will not be stored. */
  vyre__bytes *extra;
} vyre__code_source;

enum { VYRE__BACKEND_ABI = 5 };

/* A compile in the background that waits until it pays. */
typedef struct vyre__optimise_wait {
  uint64_t now_ns;     /* set before each call */
  uint64_t begin_ns;   /* of the wait */
  uint64_t compile_ns; /* time that the compile of the baseline code took */
  /* For the backend; 0 at first. */
  uint64_t last_ns, busy_ns, launches;
} vyre__optimise_wait;

struct vyre__backend {
  uint32_t abi, struct_size;
  const char *name;
  bool is_exact; /* floats are exact by definition: no probe, all native */
  bool counts_iterations; /* all its code counts loop iterations exactly */
  /* "auto" takes the available backend with the highest number, and never one
   * with 0. Lists of devices have the same order. */
  uint32_t precedence;
  bool clears_outputs; /* handles views with begins_zero itself */
  bool aligns_atomics; /* copies memory with atomic accesses in and out unless
                             it is aligned to its elements */
  /* Bytes of the backend's device, pipeline and buffer. The runtime allocates
   * and zeroes them, and fills the first member. buffer_size is 0 without
   * buffer_init. */
  size_t device_size;
  size_t pipeline_size;
  size_t buffer_size;

  /* Describes device @p index; the runtime sets name and backend. Texts live as
   * long as the table. Returns false if the device does not exist. For index 0, `note`
   * then says what is missing, and `fix` what to install. */
  bool (*describe)(const vyre__backend *self, uint32_t index,
                   vyre_device_info *out);
  /* Returns true if "auto" may select the backend in @p context. Returns false
   * if a device would open but could not work, for example without a compiler.
   * *why (static) then says what is missing and how to install it. Called
   * before describe, and must be fast. NULL: always true. */
  bool (*is_ready)(const vyre_context *context, const char **why);
  vyre_code (*device_init)(vyre_device *device, vyre_status *st);
  /* After a successful init only. NULL: there is nothing to free. */
  void (*device_deinit)(vyre_device *device);

  /* Compiling. The runtime lowers the program for `target`, `generate` writes
   * the artifact, and `load` makes the pipeline from it. A kernel from the disk
   * cache only takes the last step.
   *
   * target fills @p out, except the workgroup size and counts_iterations. NULL:
   * the backend takes programs, and gets no LIR. */
  void (*target)(const vyre_pipeline *pipeline, vyre__target *out);
  /* Writes all that a launch needs besides the program and its options. The
   * kernel and @p scratch live until the end of the call. The runtime reports a
   * failure of @p artifact, and does not store one without bytes. NULL: the
   * backend has neither artifacts nor a disk cache. */
  vyre_code (*generate)(const vyre_pipeline *pipeline,
                        const vyre__lir_kernel *kernel, vyre_arena *scratch,
                        vyre__bytes *artifact, vyre_status *st);
  /* Makes the pipeline ready to launch. An artifact comes from `generate` of
   * this backend for the same key: the program without its names and source
   * locations, the options, the texts of describe and features, the versions.
   * A file may be corrupt or hostile, so everything is checked. After a failure
   * the runtime restores the pipeline; if the artifact came from the disk, it
   * generates a new one. */
  vyre_code (*load)(vyre_pipeline *pipeline, const vyre__code_source *source,
                    vyre_status *st);
  uint32_t artifact_version; /* format of the artifact */
  /* After a successful load only. NULL: there is nothing to free. */
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

  /* Executes the commands [first, end) of a list, of any pipelines of the
   * device, and waits for them. Each sees the results of the ones before. Stops
   * at the first failure. *done is the number of commands that succeeded; it
   * may be smaller than the range without a failure, and the runtime then
   * continues after them. It is 0 without a failure only for a loop that the
   * device cannot execute; the runtime then tests the flag itself. A launch
   * that is timed or checked, or has a deadline, progress or a writer, is the
   * only command of its list. Several threads may execute lists at the same
   * time. */
  vyre_code (*execute)(vyre__command_list *list, size_t first, size_t end,
                       size_t *done, vyre_status *st);
  /* Frees list->encoded, which is not NULL. NULL: the backend keeps nothing. */
  void (*list_release)(vyre__command_list *list);
  /* Mask of the kinds of commands besides launches: 1 << vyre__command_kind. */
  uint32_t command_kinds;

  /* Appends a text with everything else that the code depends on: CPU features,
   * float modes. NULL: nothing. */
  void (*features)(const vyre_device *device, vyre__bytes *to);

  const vyre__option *options; /* NULL: none */
  /* Moves the code of @p full into @p pipeline, which has the baseline tier of
   * the same program and options. Other threads may run @p pipeline at the same
   * time. Called once per pipeline; @p full is not launched afterwards. NULL:
   * the backend has no baseline tier. */
  void (*pipeline_replace_code)(vyre_pipeline *pipeline, vyre_pipeline *full);
  /* Returns true when the compile for pipeline_replace_code is to begin: it
   * takes processor time from launches. Called on a thread in the background,
   * every 100 microseconds or so, until it returns true. NULL: begins at
   * once. */
  bool (*optimise_is_due)(vyre_pipeline *pipeline, vyre__optimise_wait *wait);
  /* Called before and after that compile, on its thread. NULL: nothing. */
  void (*optimise_begins)(vyre_device *device);
  void (*optimise_ends)(vyre_device *device);

  /* Writes the code of a pipeline in a human-readable form that @p form names.
   * The kernel and @p scratch are as for generate. NULL: the backend has none.
   * Errors: VYRE_UNSUPPORTED_FEATURE for an unknown
   * form, with a list of the known ones. */
  vyre_code (*pipeline_print)(const vyre_pipeline *pipeline,
                              const vyre__lir_kernel *kernel,
                              vyre_arena *scratch, const char *form,
                              vyre_writer writer, vyre_status *st);

  /* Fills the fields of @p out from has_launches on; the runtime has set the
   * others. Other threads may run the pipeline at the same time. NULL: adds
   * nothing. */
  void (*pipeline_describe)(const vyre_pipeline *pipeline,
                            vyre_pipeline_resources *out);

  /* Loads the libraries that a device needs, as @p context names them. Starts
   * no thread and opens nothing that a child process could not share: the
   * process may be about to fork. NULL: there is nothing to load. */
  vyre_code (*preload)(const vyre_context *context, vyre_status *st);

  /* Describes tunable setting @p index, below VYRE__TUNABLES. Returns false
   * past the last. NULL: the backend has none. */
  bool (*tunable_at)(const vyre_device *device, uint32_t index,
                     vyre__tunable *out);
  /* Returns the number of threads that vyre__wave_part numbers. The backend
   * then executes loops in lists with groups, and wave_release frees
   * list->encoded of such lists. NULL: the backend needs no parts. */
  uint32_t (*wave_threads)(const vyre_device *device);
  void (*wave_release)(vyre__command_list *list);
  /* Targets of code that is generated without a device. NULL: packages hold no
   * code of this backend. */
  const vyre__portable *portable;

  /* Work queues (hal/queue.h). queue_plan chooses what @p info leaves open: the
   * mode if it is AUTO, items_per_chunk if it is 0, and its fields from
   * first_batch to work_bytes. queue_drain runs windows until the queue is empty
   * or must stop. After a failure, the queue is lost. Both NULL: the backend
   * runs no queues. */
  void (*queue_plan)(const vyre_device *device, vyre__queue_info *info);
  vyre_code (*queue_drain)(vyre__drain *drain, vyre_status *st);
  bool needs_queue_steps;    /* drain->steps has the kernels of
                                hal/queue_steps.h */
  bool takes_queue_programs; /* pipelines of a queue have queue kernels, not the
                                kernels of analyze/queue/queue_kernel.h */
};

#endif
