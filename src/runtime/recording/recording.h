/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the parts of recordings know of each other.
 *
 *   recording.c          objects, slots, commands as they are recorded
 *   seal.c     finish: checks, barriers, tables
 *   slots.c     slots against memory; dispatches prepared for it
 *   replay.c   running
 *   instances.c   what is bound while replays are on their way
 *   conflicts.c   replays of all recordings that run, and what they share
 *   command_list.c    parts of it that the backend runs by itself
 *   print.c
 *
 * A dispatch keeps its run prepared, without holding resident buffers: a replay
 * takes hold of every buffer that is bound, once, and since a handle is never
 * used again, what it then finds is what the run was prepared for. */
#ifndef VYRE_RUNTIME_RECORDING_RECORDING_H
#define VYRE_RUNTIME_RECORDING_RECORDING_H

#include "vyre/recording.h"

#include "runtime/runtime.h"

enum { VYRE__SLOT_NAME = 64, VYRE__LABEL = 64, VYRE__BOUNCE = 64 << 10 };

/* Memory: of the host, or of a buffer, which may be seen by the host or not. */
typedef struct vyre__memory {
  unsigned char *host;
  vyre__buffer *buffer; /* NULL: of the host only */
  uint64_t offset;      /* in the buffer */
} vyre__memory;

/* A named slot. */
typedef struct vyre__slot {
  char name[VYRE__SLOT_NAME]; /* "": fixed */
  uint64_t size;              /* declared; 0: any */
  bool is_bound;
  bool is_used, is_written; /* by a command; set by finish */
  vyre_slot_binding binding;
  uint64_t bytes; /* of what is bound */
  vyre__memory memory;
  vyre__device_buffer *buffer; /* where the handle leads, or NULL */
} vyre__slot;

typedef enum vyre__command_kind {
  VYRE__COMMAND_DISPATCH,
  VYRE__COMMAND_COPY,
  VYRE__COMMAND_BARRIER,
  VYRE__COMMAND_WHILE,
  VYRE__COMMAND_END
} vyre__command_kind;

/* What a kernel is given: a buffer, or, the last of a dispatch, its grid. */
typedef struct vyre__argument {
  uint32_t slot; /* VYRE_NO_SLOT: the launch block */
  uint32_t binding;
  uint64_t offset, size;
} vyre__argument;

/* The tables of a dispatch, as large as its capture plan says. */
typedef struct vyre__tables {
  vyre_slot_range *in;       /* input_device_capacity */
  vyre_input *inputs;        /* as many */
  vyre_slot_range *out;      /* output_readback_capacity */
  vyre_output *outputs;      /* as many */
  vyre__argument *arguments; /* kernel_argument_capacity: inputs, then outputs
                                that take none, then the launch block */
} vyre__tables;

typedef struct vyre__command {
  vyre__command_kind kind;
  bool needs_barrier; /* before it; barrier_slot says for what */
  bool is_ready;      /* for what is bound */
  bool was_ready;     /* once */
  uint32_t barrier_slot;
  uint32_t match; /* of a loop: its other end */

  /* dispatch */
  vyre_pipeline *pipeline;  /* retained */
  vyre_pipeline *variant;   /* what runs: the pipeline's own */
  vyre__prepared *prepared; /* from finish on */
  vyre_dispatch_desc desc;  /* without bindings */
  char label[VYRE__LABEL];
  vyre_capture_plan plan;
  vyre__tables tables; /* until finish: in and out only, in `building` */

  /* copy; of a loop, `from` is the flag */
  vyre_slot_range from, to;
  uint64_t size; /* resolved */
  vyre__memory source, target;
  bool is_upload, is_uploaded;

  /* loop */
  uint64_t max_iterations;
  uint32_t check_interval;
  uint64_t body_dispatches;
} vyre__command;

struct vyre_recording {
  atomic_uint references;
  vyre_device *device; /* retained */
  bool is_sealed;
  vyre_arena building; /* places of dispatches, until finish */
  vyre__slot *slots;
  size_t slot_count, slot_capacity;
  vyre__command *commands;
  size_t command_count, command_capacity;
  uint32_t open[VYRE_RECORDING_DEPTH]; /* loops that are not ended */
  uint32_t open_count;
  unsigned char *tables;
  size_t tables_size;
  vyre_capture_plan sums;

  /* Copies. What people have is the first of them, `home`; bind and replay mean
   * its `current`. While a copy has users, nothing of it is bound: who binds then
   * goes on to one that has none. */
  vyre_recording *first, *current, *next_instance;
  uint32_t instance_count; /* of home: beside it */

  /* Of home: of all that changes after finish, of all copies. Not held while
   * commands run: those belong to who has the flight. */
  pthread_mutex_t lock;
  uint32_t users;     /* replays that were asked for and are not over */
  uint32_t pending;   /* those in the queue */
  bool is_dirty;      /* something was bound since the last look */
  bool is_keep_known; /* whether keeping inputs is safe was found out */
  bool is_keep_safe;
  vyre_status keep_refusal; /* why it is not */
  unsigned char
      *staging; /* between buffers that only the device sees; or NULL */

  uint64_t version; /* how often something was made ready */
  struct vyre__recording_part
      *parts; /* that the backend has; of who has the flight */
};

enum { VYRE__MAX_COPIES = 7 }; /* beside the first */

/* Tables and runs, for commands whose places are elsewhere. */
vyre_code vyre__recording_lay_out(vyre_recording *recording, const char *who,
                                  vyre_status *st);

/* Under the lock: gives home another current, with the same bindings and without
 * users, which is best for binding @p resource (NULL: nothing) to @p slot, and may
 * have that already.
 * Errors: all have users, and there are as many as may be; VYRE_OUT_OF_MEMORY. */
vyre_code vyre__recording_end_replay(vyre_recording *home, uint32_t slot,
                                     const vyre_slot_binding *resource,
                                     vyre_status *st);
/* Frees what a copy has. */
void vyre__recording_clear(vyre_recording *copy);
/* Commands that use the slot are not ready any more. */
void vyre__recording_invalidate(vyre_recording *recording, uint32_t slot);
bool vyre__slot_binding_equal(const vyre_slot_binding *a,
                              const vyre_slot_binding *b);
/* Whether what is bound to two slots shares bytes. */
bool vyre__slots_overlap(const vyre__slot *a, const vyre__slot *b);

/* A replay that runs; on the stack of who runs it, or in its fence. */
typedef struct vyre__active_replay {
  const vyre_recording *rec; /* held: what is bound is there */
  pthread_t runner;
  bool is_queued; /* the device's queue runs it: those come in their order */
  struct vyre__active_replay *next;
} vyre__active_replay;

/* Before commands run: another replay that runs, and with which it shares bytes
 * that one of them writes, is waited for if one of both is the queue's, or with
 * @p takes_turns; else it is refused, with the slot's name. A callback of a replay
 * waits for none. */
vyre_code vyre__active_replay_begin(vyre__active_replay *flight,
                                    const vyre_recording *recording,
                                    bool is_queued, bool takes_turns,
                                    vyre_status *st);
void vyre__active_replay_end(vyre__active_replay *flight);

/* Commands from @p at on that the backend runs as a piece, if it has pieces and they
 * are such. *is_taken: they were run, and *end is behind the last; of those that
 * ended well so many were dispatches and copies. After a failure *end is where. */
typedef struct vyre__part_result {
  size_t end;
  uint64_t dispatches, copies;
  bool is_taken;
} vyre__part_result;

vyre_code vyre__recording_run_part(vyre_recording *recording, size_t at,
                                   vyre__part_result *out, vyre_status *st);
/* Rounds of the loop that command @p at begins, if all of it is one piece, whose flag
 * the backend can look at: as many as loop->most. */
vyre_code vyre__recording_run_loop(vyre_recording *recording, size_t at,
                                   vyre__command_list_loop *loop,
                                   vyre_status *st);
void vyre__recording_drop_parts(vyre_recording *recording);

/* What a slot is called in messages. */
const char *vyre__slot_name(const vyre_recording *recording, uint32_t slot,
                            char text[VYRE__SLOT_NAME]);

/* Takes a reading of @p resource for @p slot: its memory and its size. *held: its
 * buffer, which is held; left as it is if there is none. */
vyre_code vyre__host_buffer_bind(vyre_recording *recording, uint32_t slot,
                                 const vyre_slot_binding *resource,
                                 vyre__device_buffer **held, vyre_status *st);

/* Whoever is the last to hold a buffer tells the caller that it is gone, who may
 * want the recording: so it is let go of without the lock. */

/* Under the lock: takes hold of all that is bound, or says what is stale or
 * missing. *held: how many slots were, in either case. */
vyre_code vyre__recording_acquire(vyre_recording *recording, size_t *held,
                                  vyre_status *st);
/* Without it, while a replay runs or is pending: nothing is bound meanwhile. */
void vyre__recording_drop(vyre_recording *recording, size_t held);

/* Under the lock and held: makes all commands ready. Adds the dispatches that
 * had been ready before to *recaptures. */
vyre_code vyre__recording_prepare(vyre_recording *recording,
                                  uint64_t *recaptures, vyre_status *st);

/* Whether uploads may be left out, as far as the commands tell; and whether all
 * were done that would be. If not, why. */
vyre_code vyre__recording_may_keep(vyre_recording *recording, vyre_status *st);
vyre_code vyre__recording_was_uploaded(const vyre_recording *recording,
                                       vyre_status *st);

/* Forgets what a run was prepared for. With @p is_held its buffers are still
 * held by it. */
void vyre__prepared_unbind(vyre__prepared *run, bool is_held);

/* Calls @p visit for every place that @p command reads or writes, until it
 * returns false. */
typedef bool (*vyre__place_visitor)(void *self, const vyre_slot_range *place,
                                    bool is_written);
bool vyre__command_slot_ranges(const vyre__command *command,
                               vyre__place_visitor visit, void *self);

/* Whether two places may share bytes, as far as places alone tell. */
static inline bool vyre__slot_ranges_overlap(const vyre_slot_range *a,
                                             const vyre_slot_range *b) {
  if (a->slot != b->slot) return false;
  bool a_first = a->size != 0 && a->offset + a->size <= b->offset;
  bool b_first = b->size != 0 && b->offset + b->size <= a->offset;
  return !a_first && !b_first;
}

#endif
