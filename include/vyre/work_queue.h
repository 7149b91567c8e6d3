/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/work_queue.h
 *  Device work queues: run a queue kernel until its queue is empty.
 *
 *      vyre_queue_options options = {.capacity = 1 << 20};
 *      vyre_queue *queue;
 *      vyre_queue_create(device, program, &options, &queue, NULL, &st);
 *      uint32_t root = 0;
 *      vyre_queue_fill(queue, &root, 1, &st);
 *      vyre_queue_run(queue, &desc, &stats, NULL, &st);
 *
 *  A queue is drained window by window. The first window has the items of
 *  vyre_queue_fill, and each other window the items that the window before it
 *  pushed, in an order that the program defines. A device can split a window
 *  into chunks, which run one after the other; this changes no order.
 *
 *  The queue has a fixed number of places. A chunk starts only if there are
 *  places for everything that its items may push, so a full queue stops between
 *  chunks and loses no item: it can be made larger and run on. */
#ifndef VYRE_WORK_QUEUE_H
#define VYRE_WORK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/buffer.h"
#include "vyre/device.h"
#include "vyre/diagnostic.h"
#include "vyre/dispatch.h"
#include "vyre/export.h"
#include "vyre/fence.h"
#include "vyre/pipeline.h"
#include "vyre/program.h"
#include "vyre/queue.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** Ways to drain a queue: X(enumerator, name). */
#define VYRE_QUEUE_MODE_MAP(X)          \
  X(VYRE_QUEUE_MODE_AUTO, "auto")       \
  X(VYRE_QUEUE_MODE_WINDOWS, "windows") \
  X(VYRE_QUEUE_MODE_NEWEST, "newest")   \
  X(VYRE_QUEUE_MODE_PERSISTENT, "persistent")

/** Reasons for the end of a run: X(enumerator, name). */
#define VYRE_QUEUE_STOP_MAP(X)                  \
  X(VYRE_QUEUE_STOP_EMPTY, "empty")             \
  X(VYRE_QUEUE_STOP_FULL, "full")               \
  X(VYRE_QUEUE_STOP_MAX_WINDOWS, "max_windows") \
  X(VYRE_QUEUE_STOP_TIMEOUT, "timeout")         \
  X(VYRE_QUEUE_STOP_CANCELLED, "cancelled")     \
  X(VYRE_QUEUE_STOP_PUSHES, "pushes")

#define VYRE_X2(name, text) name,
/** Way in which a queue is drained. NEWEST and PERSISTENT are for queues of kind
 *  `any`, whose programs do not depend on the order. */
typedef enum vyre_queue_mode {
  VYRE_QUEUE_MODE_MAP(VYRE_X2) VYRE_QUEUE_MODE_COUNT
} vyre_queue_mode;

/** Reason for the end of a run. */
typedef enum vyre_queue_stop {
  VYRE_QUEUE_STOP_MAP(VYRE_X2) VYRE_QUEUE_STOP_COUNT
} vyre_queue_stop;
#undef VYRE_X2

/** Queue of one kernel on one device. Reference counted.
 *
 *  Threads: safe. Calls for one queue take place one after the other, except
 *  vyre_queue_cancel. */
typedef struct vyre_queue vyre_queue;

/** Options of a queue. Zeroed: the defaults. */
typedef struct vyre_queue_options {
  /* AUTO: WINDOWS.
   * WINDOWS: window by window, oldest items first.
   * NEWEST: the newest items first, so that few are held at a time.
   * PERSISTENT: reserved. No device has it: the queue runs in WINDOWS. */
  vyre_queue_mode mode;
  /* Maximum number of items held. For set(N) and once(N): the largest N of a
   * run. 0: N if it is a constant, the largest number that fits into
   * budget_bytes, or 1048576. */
  uint64_t capacity;
  uint64_t budget_bytes;    /* limit on the memory of the queue; 0: none */
  uint64_t items_per_chunk; /* maximum number of items of a chunk; 0: the
                               device chooses */
  /* Maximum number of items on a path from an initial item, counting both ends;
   * 0: unknown. NEWEST proves with it that the capacity suffices. */
  uint64_t max_depth;
  uint64_t max_windows; /* windows of a run, or chunks of NEWEST; 0: no limit */
  /* Maximum time of a run; 0: none. The queue stops behind the chunk that runs
   * then. A chunk that takes another timeout_ns is stopped, and the queue is
   * lost. */
  uint64_t timeout_ns;
  /* Chunks between two looks at the clock and for vyre_queue_cancel; 0: the
   * device chooses. */
  uint64_t check_interval;
  bool has_order_hash;                 /* compute vyre_queue_stats.order_hash */
  const vyre_compile_options *compile; /* NULL: the defaults */
  uint64_t reserved[4];                /* must be zero */
} vyre_queue_options;

/** Memory and steps of a queue. Every run uses exactly this memory, and no more
 *  submissions and waits than vyre_queue_max_submissions says. */
typedef struct vyre_queue_run_plan {
  /* queue_bytes are places of items; control_bytes are counters, arenas, bit
   * sets and everything else. items_per_chunk is the size of a chunk. */
  vyre_queue_drain_plan drain;
  vyre_queue_mode mode; /* not AUTO */
  vyre_queue_kind kind; /* of the kernel */
  uint64_t capacity;    /* items, or keys */
  uint32_t item_bytes;  /* bytes of an item */
  uint32_t pushes;      /* P: maximum pushes of an item; 0 for sets */
  uint64_t max_depth;   /* D, as in the options */
  uint64_t
      memory_bytes; /* allocation of the queue: drain.queue.resident_bytes */
  /* Chunks of the first submission, and of the largest one: each has up to four
   * times as many as the one before. 0: a run is one submission. */
  uint32_t first_batch, max_batch;
  uint32_t threads;     /* threads that run items; 0: not threads */
  uint64_t reserved[8]; /* zero; for future fields */
} vyre_queue_run_plan;

/** Figures of a run. */
typedef struct vyre_queue_stats {
  uint64_t items;          /* items that ran */
  uint64_t pushed;         /* items that joined the queue; for sets, each key
                              once per window */
  uint64_t dropped_keys;   /* pushed keys that are not below N */
  uint64_t windows;        /* windows that were completed */
  uint64_t chunks;         /* parts of windows that ran one after the other */
  uint64_t narrow_windows; /* windows that ran on one thread, or in one
                              workgroup */
  uint64_t pull_windows;   /* windows that ran `pull` */
  uint64_t priority_fell;  /* keys whose priority was below that of their
                              window */
  uint64_t high_water;     /* most items held between two chunks */
  uint64_t remaining;      /* items held at the end; 0 unless the run stopped */
  uint64_t plan_bytes;     /* memory of the queue */
  uint64_t steals;         /* blocks that another thread than planned ran */
  uint64_t idle_spins;     /* looks of threads for work that found none */
  uint64_t submissions;    /* to the device */
  uint64_t waits;          /* of the host for the device */
  uint64_t flag_reads;     /* of counters, by the host */
  vyre_queue_mode mode;    /* mode that was used */
  vyre_queue_stop stop;    /* why the run ended */
  /* Hash of all items in the order of their windows, from the first item of
   * the queue on. It is the same on every device, except for `any`; 0 without
   * has_order_hash. */
  uint64_t order_hash;
  uint64_t wall_ns;     /* time of the run */
  uint64_t reserved[8]; /* zero; for future fields */
} vyre_queue_stats;

/** Items that a queue holds. */
typedef struct vyre_queue_state {
  uint64_t window;   /* number of the current window */
  uint64_t position; /* items of it that have run */
  uint64_t current;  /* items of it that are left */
  uint64_t next;     /* items of the next window so far */
  bool is_lost;      /* a failure left the items undefined: fill starts again */
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_queue_state;

VYRE_BEGIN

/** Compiles a queue kernel, plans its queue, and allocates exactly the memory
 *  of the plan.
 *  Ownership: the caller owns *out (vyre_queue_release); NULL on failure.
 *             Retains the device and the program.
 *  Lifetime:  @p options (NULL: the defaults) is borrowed for the call.
 *  Threads:   safe; @p diagnostics (may be NULL) is compatible.
 *  Blocks:    as vyre_pipeline_compile.
 *  Errors:    those of vyre_pipeline_compile; VYRE_INVALID_ARGUMENT if the
 *             program is not a queue kernel, or for a mode that its kind does not
 *             allow; VYRE_PLAN_REJECTED as in vyre_queue_drain_plan_build;
 *             VYRE_UNSUPPORTED_FEATURE if the device runs no queues, or none with
 *             by(e) or exact sums. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_queue_create(vyre_device *device, vyre_program *program,
                  const vyre_queue_options *options, vyre_queue **out,
                  vyre_diagnostics *diagnostics, vyre_status *st);

/** Adds a reference, which needs one more vyre_queue_release. Returns @p
 *  queue.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_queue *vyre_queue_retain(vyre_queue *queue);

/** Drops a reference. The last release frees the queue. Accepts NULL.
 *  Threads: safe.  Blocks: as vyre_device_release.  Errors: none. */
VYRE_API void vyre_queue_release(vyre_queue *queue);

/** Returns the plan. Owned by the queue, valid until vyre_queue_resize; NULL if
 *  @p queue is NULL.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const vyre_queue_run_plan *vyre_queue_get_plan(
    const vyre_queue *queue);

/** Returns the largest number of submissions, and of waits, of a run with @p
 *  chunks chunks.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API uint64_t vyre_queue_max_submissions(const vyre_queue_run_plan *plan,
                                             uint64_t chunks);

/** Prints a plan as a table. Returns false if @p writer fails or @p plan is
 *  NULL.
 *  Threads:   safe.
 *  Blocks:    on the writer.
 *  Errors:    none. */
VYRE_API bool vyre_queue_run_plan_print(const vyre_queue_run_plan *plan,
                                        vyre_writer writer);

/** Adds items to the first window, in order. An item has its fields in order, 4
 *  or 8 bytes each, little endian, without padding. Keys of a set are sorted,
 *  and each is kept once. Empties a queue that stopped or was lost first.
 *  Ownership: borrows @p items for the call.
 *  Threads:   safe.
 *  Blocks:    while the queue runs.
 *  Errors:    VYRE_PLAN_REJECTED (initial_items_exceed_capacity) if they do not
 *             fit: nothing is added; VYRE_INVALID_ARGUMENT for a key that is
 *             not below the capacity; those of vyre_buffer_upload. */
VYRE_API VYRE_NODISCARD vyre_code vyre_queue_fill(vyre_queue *queue,
                                                  const void *items,
                                                  uint64_t count,
                                                  vyre_status *st);

/** Adds @p count items from a device buffer, from byte @p offset on.
 *  Threads, blocks, errors: as vyre_queue_fill; VYRE_INVALID_ARGUMENT if the
 *  buffer is too small or not of the device. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_queue_fill_from_buffer(vyre_queue *queue, vyre_buffer buffer,
                            uint64_t offset, uint64_t count, vyre_status *st);

/** Drains the queue. Without @p fence, waits for the end. @p desc binds the
 *  buffers of the kernel as for a dispatch; its grid, timeout, repeat count,
 *  variant, checks and progress must be zero. A queue that stopped continues
 *  where it stopped, also with other bindings.
 *  Ownership: as vyre_submit. The caller owns *fence, if any.
 *  Lifetime:  @p stats (may be NULL) until the run has finished.
 *  Threads:   safe.
 *  Blocks:    until the run has finished, or with @p fence as vyre_submit.
 *  Errors:    those of vyre_dispatch;
 *             VYRE_DISPATCH_FAILED, and the items are kept: queue_full if the
 *             next item could push more than there are places for, timed_out,
 *             cancelled;
 *             VYRE_DISPATCH_FAILED, and the queue is lost: pushes_exceeded if
 *             an item pushed more than pushes(P), and for a failure inside a
 *             chunk, such as out_of_fuel;
 *             VYRE_PLAN_REJECTED (over_budget) in mode NEWEST, before anything
 *             runs, if the capacity is below initial items + (P - 1) *
 *             max_depth;
 *             VYRE_INVALID_ARGUMENT if N of a set exceeds the capacity, or if
 *             the queue is lost. */
VYRE_API VYRE_NODISCARD vyre_code vyre_queue_run(vyre_queue *queue,
                                                 const vyre_dispatch_desc *desc,
                                                 vyre_queue_stats *stats,
                                                 vyre_fence **fence,
                                                 vyre_status *st);

/** Stops a run behind its current chunk, with `cancelled`. Does nothing if no
 *  run is in progress. Accepts NULL.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API void vyre_queue_cancel(vyre_queue *queue);

/** Fills *out with the state between runs.
 *  Threads: safe.  Blocks: while the queue runs.
 *  Errors:  VYRE_INVALID_ARGUMENT for a NULL argument. */
VYRE_API VYRE_NODISCARD vyre_code vyre_queue_get_state(vyre_queue *queue,
                                                       vyre_queue_state *out,
                                                       vyre_status *st);

/** Removes all items, in order: those of the current window, then those of the
 *  next one. *count receives their number. If @p items is NULL or has space for
 *  fewer than that, nothing is removed.
 *  Ownership: copies to @p items, which has space for @p max items.
 *  Threads:   safe.
 *  Blocks:    while the queue runs.
 *  Errors:    VYRE_INVALID_ARGUMENT if the queue is lost; those of
 *             vyre_buffer_download. */
VYRE_API VYRE_NODISCARD vyre_code vyre_queue_take(vyre_queue *queue,
                                                  void *items, uint64_t max,
                                                  uint64_t *count,
                                                  vyre_status *st);

/** Gives the queue another capacity, and keeps its items: a run that stopped
 *  because the queue was full continues, with the results of a queue that had
 *  this capacity from the start.
 *  Threads:   safe.
 *  Blocks:    while the queue runs.
 *  Errors:    as vyre_queue_create; VYRE_PLAN_REJECTED if the items do not fit.
 *             The queue is unchanged after a failure. */
VYRE_API VYRE_NODISCARD vyre_code vyre_queue_resize(vyre_queue *queue,
                                                    uint64_t capacity,
                                                    vyre_status *st);

/** Return the name of a mode ("newest") or of a reason ("full"), or "?" for an
 *  unknown value. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_queue_mode_name(vyre_queue_mode mode);
VYRE_API const char *vyre_queue_stop_name(vyre_queue_stop stop);

VYRE_END

#endif
