/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Command lists: what a backend executes. A single dispatch is a list with one
 * launch; a batch is a list of launches; a recording is one or more lists of
 * launches, copies and loops. A backend may encode a list once and execute it
 * many times. */
#ifndef VYRE_HAL_COMMAND_LIST_H
#define VYRE_HAL_COMMAND_LIST_H

#include "hal/launch.h"

/* Maximum number of commands in a list. Lists of a backend that encodes
 * nothing are shorter, so that their prepared dispatches still are in the CPU
 * cache when the list ends. */
enum { VYRE__MAX_COMMANDS = 1024, VYRE__MAX_SHORT_LIST = 32 };

/* New kinds are added at the end. Every backend executes launches; its table
 * has a mask of the other kinds that it executes. The runtime refuses a list
 * with any other kind (VYRE_UNSUPPORTED_FEATURE), so a backend never sees
 * one. */
#define VYRE__COMMAND_MAP(X)                                            \
  X(LAUNCH, "launches")                                                 \
  X(COPY, "copies")  /* between two device buffers */                   \
  X(LOOP, "loops")   /* repeats the commands after it, to the end of  \
                             the list */ \
  X(INDIRECT_LAUNCH, /* a launch whose grid is in device memory */      \
    "indirect launches")                                                \
  X(QUEUE_STEP, "steps of a work queue") /* one window of a device queue */

typedef enum vyre__command_kind {
#define X(name, plural) VYRE__COMMAND_##name,
  VYRE__COMMAND_MAP(X)
#undef X
} vyre__command_kind;

typedef struct vyre__command_copy {
  vyre__buffer *from, *to;
  uint64_t from_offset, to_offset, size;
} vyre__command_copy;

/* Repeats the body while the u32 at `offset` of `flag` is not 0. The device
 * tests it before each iteration. */
typedef struct vyre__command_loop {
  const vyre__buffer *flag;
  uint64_t offset, max_iterations;
  uint64_t iterations; /* set by the backend: those that succeeded */
  bool is_unfinished;  /* set by the backend: the flag was not 0 after the last
                          iteration */
} vyre__command_loop;

/* Grid of an indirect launch: three u32 at `offset` of `grid`, which earlier
 * commands of the list may write. launch->grid is its upper bound, which the
 * runtime has checked like any grid: the device uses the smaller number on each
 * axis. A grid with a 0 runs no workgroup. */
typedef struct vyre__command_indirect {
  const vyre__buffer *grid;
  uint64_t offset; /* a multiple of 4 */
} vyre__command_indirect;

/* One window of a work queue. `control` has two u32 at `offset`: the index of
 * the first item of the window, and the index behind its last one. The device
 * launches one invocation per item, rounded up to workgroups; launch->grid is
 * the upper bound, as for an indirect launch, and a longer window is cut there.
 * Afterwards the window covers the items that are left and those that the
 * launch has pushed. */
typedef struct vyre__command_queue_step {
  vyre__buffer *control;
  uint64_t offset;    /* a multiple of 4 */
  uint32_t max_items; /* capacity of the queue */
  uint32_t items;     /* set by the backend: items that the step took */
} vyre__command_queue_step;

typedef struct vyre__command {
  vyre__command_kind kind;
  vyre__launch *launch; /* NULL for copies and loops */
  union {
    vyre__command_copy copy;
    vyre__command_loop loop;
    struct {   /* commands with a launch */
      struct { /* private to the runtime: what the last execution bound */
        uint64_t batch, max_loop_iterations;
      } bound;
      union {
        vyre__command_indirect indirect;
        vyre__command_queue_step queue_step;
      };
    };
  };
} vyre__command;

/* Part of a command that one thread runs: workgroups of a launch. */
typedef struct vyre__wave_part {
  uint32_t command; /* index in the list */
  uint32_t thread;
  uint64_t first, count;
} vyre__wave_part;

/* Groups of a wave graph. The launches of a group are independent of each
 * other: a backend may run them at the same time, and needs a barrier between
 * groups only. Group g has the commands ends[g - 1] to ends[g] - 1 of the list,
 * not counting a loop in front of them, and the parts part_ends[g - 1] to
 * part_ends[g] - 1, in order of their threads. A wave graph that fails leaves
 * its memory in any state, so later launches may write after a failure. */
typedef struct vyre__wave_groups {
  uint32_t count;
  const uint32_t *ends;
  uint32_t threads; /* of the parts; 0: parts are not given */
  const uint32_t *part_ends;
  const vyre__wave_part *parts;
  uint64_t deadline_ns, timeout_ns; /* of the run; 0: none */
  /* Added by the backend. */
  uint64_t submissions, waits, barriers, inline_groups, steals, groups_run;
} vyre__wave_groups;

/* Lists do not nest: a loop is the first command of its list. Host memory that
 * one command binds does not change while the list executes, unless an earlier
 * command writes it. One thread at a time uses a list. */
typedef struct vyre__command_list {
  vyre_device *device;
  vyre__command *commands;
  size_t count;
  uint64_t version;    /* increases before an execution whose commands or
                          bindings differ from those of the one before; 0: the
                          list of a single dispatch, which a backend need not
                          encode */
  bool is_independent; /* no launch writes host bytes that another one binds;
                          device buffers may overlap */
  bool is_reusable;    /* set by the backend: executing this version again reads
                          no launch; only the bytes in bound memory change */
  void *encoded;       /* the backend's; list_release frees it */
  vyre__wave_groups *groups; /* of a wave graph; NULL: an ordered list */
} vyre__command_list;

/* Implements `execute` for a backend that runs one launch after the other. */
static inline vyre_code vyre__execute_each(
    const vyre__command_list *list, size_t first, size_t end,
    vyre_code (*run)(vyre_pipeline *, vyre__launch *, vyre_status *),
    size_t *done, vyre_status *st) {
  vyre_code code = VYRE_OK;
  size_t at = first;
  for (; at < end && code == VYRE_OK; at += code == VYRE_OK) {
    vyre__launch *launch = list->commands[at].launch;
    code = run(launch->pipeline, launch, st);
  }
  *done = at - first;
  return code;
}

#endif
