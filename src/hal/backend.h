/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The backend interface: one constant table of functions per backend.
 *
 * The runtime checks arguments, validates programs, plans bindings and sizes,
 * counts references, manages device buffers, queues work and waits for it. A
 * backend only sees valid calls, and reports failures through a status.
 * docs/backend-guide.md walks through an example. */
#ifndef VYRE_HAL_BACKEND_H
#define VYRE_HAL_BACKEND_H

#include <stdatomic.h>

#include "hal/command_list.h"
#include "hal/device.h"
#include "hal/launch.h"

/* What can be chosen when a device is opened: a number in a range. `numbers` is
 * the driver's: the least form of floats, whatever the probe found. */
typedef struct vyre__option {
  const char *name; /* NULL: the end of the list */
  uint64_t min, max;
  const char *help;
} vyre__option;

enum { VYRE__BACKEND_ABI = 3 };

struct vyre__backend {
  uint32_t abi, struct_size;
  const char *name;
  bool is_exact; /* floats are right by definition: they are never probed, and
                    always native */
  bool counts_iterations; /* all its code counts loop iterations exactly */
  bool is_explicit_only;  /* "auto" never takes it */
  bool clears_outputs;    /* it sees itself to views that begin as zero */
  bool aligns_atomics; /* memory that a kernel does atomics on is copied, in and
                          out, unless it begins at a whole element */
  size_t
      device_size; /* bytes of its device, its pipeline and its buffer; the */
  size_t
      pipeline_size; /* driver allocates and zeroes them, and sets the start. */
  size_t buffer_size; /* Without buffer_init: 0 */

  /* Says what device @p index of this backend is: all texts static, name and
   * backend are the driver's. False: there is none; for index 0 the note then
   * says what was looked for, and the fix what to install. */
  bool (*describe)(uint32_t index, vyre_device_info *out);
  /* Whether "auto" may take it in that context: false if it would open but
   * could not do what people expect of it, such as to compile; *why (static)
   * then says what is missing and what to do. Quick, and asked before describe.
   * Or NULL: it may. */
  bool (*is_ready)(const vyre_context *context, const char **why);
  vyre_code (*device_init)(vyre_device *device, vyre_status *st);
  void (*device_deinit)(vyre_device *device); /* after a successful init only */
  vyre_code (*pipeline_init)(vyre_pipeline *pipeline, vyre_status *st);
  void (*pipeline_deinit)(vyre_pipeline *pipeline);

  /* Resident memory. All NULL: the driver keeps it in the host's. size and host
   * (what to import, or NULL) are set; new memory is zeroed. */
  vyre_code (*buffer_init)(vyre_device *device, vyre__buffer *buffer,
                           vyre_status *st);
  void (*buffer_deinit)(vyre_device *device, vyre__buffer *buffer);
  vyre_code (*buffer_write)(vyre_device *device, vyre__buffer *buffer,
                            uint64_t offset, const void *data, size_t size,
                            vyre_status *st);
  vyre_code (*buffer_read)(vyre_device *device, vyre__buffer *buffer,
                           uint64_t offset, void *data, size_t size,
                           vyre_status *st);

  /* Runs a kernel once and waits for it. Many threads may be in it at once. */
  vyre_code (*run)(vyre_pipeline *pipeline, vyre__launch *launch,
                   vyre_status *st);

  /* What the cache keeps on disk of a pipeline. Without load and save: nothing.
   * load stands in for pipeline_init, save follows it. The bytes were written
   * by this backend for the same key, all of it: the program but for its names
   * and places, the options, the texts of describe and features, the versions.
   * They are aligned to 16 and borrowed for the call. A load that fails is a
   * miss, for which pipeline_init is called. A save that fails keeps
   * nothing. */
  uint32_t artifact_version; /* of these bytes */
  vyre_code (*pipeline_load)(vyre_pipeline *pipeline, const void *artifact,
                             size_t size, vyre_status *st);
  vyre_code (*pipeline_save)(vyre_pipeline *pipeline, vyre_writer writer,
                             vyre_status *st);
  /* Writes all else that the code depends on: features of the processor,
   * classes of the numeric probe. Or NULL. False if the writer refused. */
  bool (*features)(vyre_device *device, vyre_writer writer);

  const vyre__option *options; /* what can be chosen; NULL: nothing */
  /* Takes the code of @p full, which is of the same program and options, for
   * @p pipeline, which is quick; others may be running it. Once for each; full
   * runs nothing afterwards. Or NULL: nothing is compiled quickly. */
  void (*pipeline_replace_code)(vyre_pipeline *pipeline, vyre_pipeline *full);

  /* Writes the code of a pipeline, for people, in one of the forms that the
   * backend has names for. Or NULL: it has none.
   * Errors: VYRE_UNSUPPORTED_FEATURE for another form, with those there are. */
  vyre_code (*pipeline_print)(vyre_pipeline *pipeline, const char *form,
                              vyre_writer writer, vyre_status *st);

  /* Adds what the backend knows to what the driver set: from has_launches on.
   * May be called while others run it. Or NULL: it tells nothing. */
  void (*pipeline_describe)(const vyre_pipeline *pipeline,
                            vyre_pipeline_resources *out);

  /* Runs @p first and what follows it, of any pipelines of the device, each as
   * if it began when the one before is over, and waits for all. After a failure
   * nothing is run; *done says how many were before it. Neither timed nor
   * checked, without deadline and print. Or NULL: run is called for each. */
  vyre_code (*run_batch)(vyre_device *device, vyre__launch *first, size_t *done,
                         vyre_status *st);
  uint32_t max_batch; /* launches of one run_many; 0: VYRE__COMMAND_LIST */

  /* Runs a piece, as run_many would, and keeps what it needs to do it again;
   * nobody else is in it. *done: items that ended well. finish: for one that
   * was zeroed, or run. Or NULL, with a size of 0: launches are run one by one,
   * or many. */
  size_t command_list_size;
  vyre_code (*command_list_run)(vyre__command_list *piece, size_t *done,
                                vyre_status *st);
  void (*command_list_deinit)(vyre__command_list *piece);
  /* Runs a piece in a loop, whose flag the device tests before each round.
   * After a failure `rounds` are those that ended well. Or NULL: the host tests
   * it. */
  vyre_code (*command_list_loop)(vyre__command_list *piece,
                                 vyre__command_list_loop *loop,
                                 vyre_status *st);

  /* Loads the libraries that a device of this backend will need, as @p context
   * names them, and starts no thread: the process may be about to fork. Opens
   * nothing that a child could not share. Or NULL: there is nothing to load. */
  vyre_code (*preload)(const vyre_context *context, vyre_status *st);
};

/* All there are, best first; NULL beyond the last. */
const vyre__backend *vyre__backend_at(size_t index);

#endif
