/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a backend is: one constant table. The driver checks arguments, validates
 * programs, plans bindings and sizes, counts references, keeps resident buffers,
 * queues and waits; a backend gets only what is right, and every slot that can
 * fail says so by a status. docs/backend-guide.md walks through one. */
#ifndef VYRE_HAL_BACKEND_H
#define VYRE_HAL_BACKEND_H

#include <stdatomic.h>

#include "vyre/device.h"
#include "vyre/dispatch.h"
#include "vyre/pipeline.h"

typedef struct vyre__backend vyre__backend;
struct vyre__device_state;
struct vyre__pipeline_state;

/* The start of every backend's device. */
struct vyre_device {
  const vyre__backend *backend;
  vyre_context *context;    /* retained */
  vyre_allocator allocator; /* the context's: what a backend allocates with */
  uint32_t index;           /* among the backend's devices */
  vyre_device_caps caps;    /* device_init fills it */
  const void *external;     /* what vyre__device_open_given got, for device_init
                               only; else NULL */
  struct vyre__device_state *state; /* the driver's */
};

enum { VYRE__PIPELINE_ID = 96 };

/* The start of every backend's pipeline. */
struct vyre_pipeline {
  vyre_device *device;   /* retained */
  vyre_program *program; /* retained; has a body and is valid */
  vyre_arena arena;      /* holds the plan; the backend may add at its init */
  vyre_binding_plan plan;
  uint32_t workgroup[3];
  uint8_t ulp_budget;
  bool counts_iterations; /* vyre__target.counts_rounds of its code */
  bool is_baseline; /* pipeline_init is to be quick: only with pipeline_take */
  const vyre_float_op_info
      *float_ops; /* the form of every float operation in this
                                       pipeline, by vyre__float_op; the probe asks
                                       for others than the device's */
  char id[VYRE__PIPELINE_ID];
  struct vyre__pipeline_state *state; /* the driver's */
};

/* Resident memory: the start of every backend's buffer. */
typedef struct vyre__buffer {
  uint64_t size;
  unsigned char *host; /* where the host can touch it, or NULL */
  bool is_imported;    /* the memory at host is the caller's */
  bool is_read_only;   /* nothing may write it; the driver sees to that */
  void (*release)(
      void *self); /* the driver's: tells whose memory it was that it
                                 is used no more; or NULL */
  void *release_user_data;
} vyre__buffer;

/* One buffer of a dispatch. With `buffer`, it is resident: a backend that has
 * memory of its own uses that, from `offset` on. Without, data are bytes of the
 * host, as unaligned as the caller's: a backend that cannot bind them where they
 * are (caps.borrows_host_memory, caps.host_alignment) copies them in before the
 * kernel, and those that the kernel may write back out after it. The driver has
 * set the first contents of outputs already, here as there, and counts these
 * copies from the caps and aligns_atomics alone (vyre_copy_report). */
typedef struct vyre__view {
  unsigned char *data;  /* NULL for shared buffers, ones without bytes, and ones
                          that the host cannot touch */
  uint32_t length;      /* elements */
  vyre__buffer *buffer; /* resident, or NULL */
  uint64_t offset;      /* in it, bytes */
  bool begins_zero; /* only for a backend that clears, and with data: what they
                           hold is not to be seen, and what the kernel does not
                           write is to be zero afterwards */
} vyre__view;

/* One run, checked. */
typedef struct vyre__launch {
  vyre_pipeline *pipeline;
  struct vyre__launch
      *next; /* of run_many: what comes after it; NULL: nothing */
  bool
      is_independent; /* of run_many: bytes of the host that it binds are none that
                    one before it writes; resident ones may be */
  const vyre__view *views;      /* one a buffer, in the program's order */
  uint32_t grid[3];             /* ids fit in 32 bits, the product in 64 */
  uint64_t max_loop_iterations; /* at least 1 */
  uint64_t deadline_ns;         /* of vyre__clock_ns; 0: none */
  uint64_t timeout_ns;          /* what the deadline came from, to name it */
  bool is_complete;  /* set by run: it timed out, and all of it ran */
  vyre_writer print; /* write may be NULL */
  vyre_check_options check;
  vyre_check_report *report; /* empty; not NULL if check asks for anything */
  vyre_arena *scratch;       /* empty; kept from run to run, so that a warm one
                                allocates nothing */
  bool is_timed;             /* somebody wants device_ns */
  uint64_t device_ns;        /* set by a backend that has_device_time */
  uint32_t launches;         /* what this run adds to the counter: 1, unless the
                                backend changes it */
  vyre_progress *progress;   /* NULL: nobody asks */
  uint32_t launch_index,
      launch_count; /* which launch of how many of the dispatch it is */
} vyre__launch;

/* For a backend that tells how far it is: that a launch begins which has so many
 * workgroups (0: not known), and that so many more of them are done. Any thread. */
void vyre__progress_begin(const vyre__launch *launch, uint64_t groups);

static inline void vyre__progress_add(const vyre__launch *launch,
                                      uint64_t groups) {
  if (!launch->progress) return;
  __atomic_fetch_add(&launch->progress->completed, groups, __ATOMIC_RELAXED);
}

/* A part of a recording that has no loops and no bytes of the host between: the same
 * launches, and copies between resident buffers, each time in that order. */
typedef struct vyre__command_list_item {
  vyre__launch *launch; /* NULL: a copy */
  vyre__buffer *from, *to;
  uint64_t from_offset, to_offset, size;
} vyre__command_list_item;

/* The start of every backend's piece. */
typedef struct vyre__command_list {
  vyre_device *device;
  const vyre__command_list_item *items;
  size_t count;
  bool is_changed; /* something may be bound otherwise than the last time */
  bool
      is_reusable; /* set by the backend: to run it again as it is, it looks at no
                      launch; what changes is in the bytes that they bind */
} vyre__command_list;

/* A piece that is repeated while the u32 at `offset` in `flag` is not 0. */
typedef struct vyre__command_list_loop {
  const vyre__buffer *flag;
  uint64_t offset, max_iterations; /* most: rounds */
  uint64_t iterations;             /* that were run */
  bool is_taken;      /* false: the backend does not do this one by itself, and
                            nothing was run */
  bool is_unfinished; /* the flag was not 0 after the last of them */
} vyre__command_list_loop;

/* What can be chosen when a device is opened: a number in a range. `numbers` is
 * the driver's: the least form of floats, whatever the probe found. */
typedef struct vyre__option {
  const char *name; /* NULL: the end of the list */
  uint64_t min, max;
  const char *help;
} vyre__option;

/* The option "<backend>.<key>" of the device's context, which was checked, or
 * @p otherwise, also for "auto". For device_init; one that changes code belongs to
 * `features`. */
uint64_t vyre__device_option(const vyre_device *device, const char *key,
                             uint64_t otherwise);

/* A variable of the environment, for a file that a backend loads or a tool reads.
 * NULL: it is not set, or the process has more rights than who started it. */
const char *vyre__environment(const char *variable);

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
  /* Whether "auto" may take it in that context: false if it would open but could
   * not do what people expect of it, such as to compile; *why (static) then says
   * what is missing and what to do. Quick, and asked before describe. Or NULL: it
   * may. */
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
   * load stands in for pipeline_init, save follows it. The bytes were written by
   * this backend for the same key, all of it: the program but for its names and
   * places, the options, the texts of describe and features, the versions. They
   * are aligned to 16 and borrowed for the call. A load that fails is a miss, for
   * which pipeline_init is called. A save that fails keeps nothing. */
  uint32_t artifact_version; /* of these bytes */
  vyre_code (*pipeline_load)(vyre_pipeline *pipeline, const void *artifact,
                             size_t size, vyre_status *st);
  vyre_code (*pipeline_save)(vyre_pipeline *pipeline, vyre_writer writer,
                             vyre_status *st);
  /* Writes all else that the code depends on: features of the processor, classes
   * of the numeric probe. Or NULL. False if the writer refused. */
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

  /* Adds what the backend knows to what the driver set: from has_launches on. May
   * be called while others run it. Or NULL: it tells nothing. */
  void (*pipeline_describe)(const vyre_pipeline *pipeline,
                            vyre_pipeline_resources *out);

  /* Runs @p first and what follows it, of any pipelines of the device, each as if
   * it began when the one before is over, and waits for all. After a failure
   * nothing is run; *done says how many were before it. Neither timed nor checked,
   * without deadline and print. Or NULL: run is called for each. */
  vyre_code (*run_batch)(vyre_device *device, vyre__launch *first, size_t *done,
                         vyre_status *st);
  uint32_t max_batch; /* launches of one run_many; 0: VYRE__COMMAND_LIST */

  /* Runs a piece, as run_many would, and keeps what it needs to do it again; nobody
   * else is in it. *done: items that ended well. finish: for one that was zeroed, or
   * run. Or NULL, with a size of 0: launches are run one by one, or many. */
  size_t command_list_size;
  vyre_code (*command_list_run)(vyre__command_list *piece, size_t *done,
                                vyre_status *st);
  void (*command_list_deinit)(vyre__command_list *piece);
  /* Runs a piece in a loop, whose flag the device tests before each round. After a
   * failure `rounds` are those that ended well. Or NULL: the host tests it. */
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
