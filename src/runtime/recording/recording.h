/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Internal state of recordings, shared by the files of this folder.
 *
 *   recording.c     creates recordings and adds slots and commands
 *   seal.c          checks a recording, places barriers, allocates tables
 *   range_map.c     finds commands that access the same range of a slot
 *   slot_index.c    finds slots by name, commands by slot, memory by address
 *   slots.c         binds memory to slots and prepares dispatches for it
 *   replay.c        runs the commands
 *   instances.c     copies a recording whose slots are bound during a replay
 *   conflicts.c     finds replays that share memory
 *   recorded_list.c runs several commands as one command list
 *   steps.c         adds, checks and runs work queues and wave graphs
 *   print.c         prints a recording
 *
 * A recorded dispatch owns its prepared dispatch, which holds no device
 * buffers. Instead a replay acquires every bound buffer once. A handle is never
 * reused, so an acquired buffer is the one that the dispatch was prepared
 * for. */
#ifndef VYRE_RUNTIME_RECORDING_RECORDING_H
#define VYRE_RUNTIME_RECORDING_RECORDING_H

#include "vyre/recording.h"

#include "base/sort.h"
#include "hal/command_list.h"
#include "runtime/dispatch/prepared.h"
#include "runtime/memory/device_buffer.h"
#include "runtime/recording/step.h"

enum {
  VYRE__SLOT_NAME = 64, /* bytes of a slot name, with the final zero */
  VYRE__LABEL = 64,
  VYRE__STAGING_BYTES = 64 << 10
};

/* Location of bytes: in host memory, or in a device buffer. */
typedef struct vyre__memory {
  unsigned char *host;  /* NULL if only the device sees the bytes */
  vyre__buffer *buffer; /* NULL for plain host memory */
  uint64_t offset;      /* in the buffer */
} vyre__memory;

typedef struct vyre__slot {
  char name[VYRE__SLOT_NAME]; /* "" for a fixed slot */
  uint64_t size;              /* declared size; 0 accepts any size */
  bool is_bound;
  bool is_used, is_written; /* by a command; known after the seal */
  bool is_updated; /* a dispatch writes it in place, because it is a device
                      buffer and the output of the dispatch is host memory;
                      known once the slots are bound */
  vyre_slot_binding binding;
  uint64_t version; /* of the binding; see vyre_recording.version_count */
  uint64_t bytes;   /* size of the bound memory */
  vyre__memory memory;
  vyre__device_buffer *buffer; /* entry of the bound handle, or NULL */
} vyre__slot;

typedef enum vyre__recorded_kind {
  VYRE__RECORDED_DISPATCH,
  VYRE__RECORDED_COPY,
  VYRE__RECORDED_BARRIER,
  VYRE__RECORDED_WHILE,
  VYRE__RECORDED_END,
  VYRE__RECORDED_STEP
} vyre__recorded_kind;

/* Kernel argument: a buffer, or, as the last argument, the launch block. */
typedef struct vyre__argument {
  uint32_t slot; /* VYRE_NO_SLOT for the launch block */
  uint32_t binding;
  uint64_t offset, size;
} vyre__argument;

/* Tables of a dispatch. The capture plan gives their lengths. */
typedef struct vyre__tables {
  /* input_device_capacity entries; with resources, kernel_pointer_capacity */
  vyre_slot_range *in;
  vyre_input *inputs;   /* as many */
  vyre_slot_range *out; /* output_readback_capacity entries */
  vyre_output *outputs; /* output_readback_capacity entries */
  /* kernel_argument_capacity entries: the inputs, then the outputs that are not
   * also inputs, then the launch block. */
  vyre__argument *arguments;
} vyre__tables;

typedef struct vyre__recorded_command {
  vyre__recorded_kind kind;
  bool needs_barrier;    /* before this command, because of barrier_slot */
  bool is_ready;         /* prepared for the memory that is bound now */
  bool was_ready;        /* prepared at least once */
  uint32_t barrier_slot; /* slot that an earlier command accesses */
  uint32_t match;        /* of a loop: index of its other end */

  /* Dispatches. */
  vyre_pipeline *pipeline;  /* retained */
  vyre_pipeline *variant;   /* variant that runs; owned by the pipeline */
  vyre__prepared *prepared; /* NULL before the seal */
  vyre_dispatch_desc desc;  /* without bindings */
  char label[VYRE__LABEL];
  vyre_capture_plan plan;
  vyre__tables tables; /* before the seal only `in` and `out`, in `building` */

  /* Copies. The flag of a loop is in `from`. */
  vyre_slot_range from, to;
  uint64_t size; /* bytes, once the slots are bound */
  vyre__memory source, target;
  bool is_upload;

  /* Steps. */
  vyre__step *step;          /* shared by all instances */
  vyre__step_memory *memory; /* one per range of the step */

  /* Loops. */
  uint64_t max_iterations;
  uint32_t check_interval;
  uint64_t body_dispatches;

  /* The replaying thread writes the fields from here on, so they come last: an
   * instance copies the fields before them only.
   *
   * Command list that begins here, if list_version is the version of the
   * recording. NULL: none can begin here. */
  struct vyre__recorded_list *list;
  uint64_t list_version;
  /* Copies: versions of the bindings of `from` and `to` in the last upload, or
   * 0. Those of the first instance stand for all instances. */
  uint64_t uploaded_from, uploaded_to;
} vyre__recorded_command;

/* Commands that use each slot, in ascending order. The list of slot i begins at
 * ends[i - 1] and ends before ends[i]. It names a command twice if the command
 * uses the slot twice. */
typedef struct vyre__slot_uses {
  uint32_t *ends; /* one per slot, and one more */
  uint32_t *commands;
  size_t count;
} vyre__slot_uses;

/* Memory of a slot: bytes of one address space. */
typedef struct vyre__slot_span {
  const void *space; /* NULL: the host; otherwise a device buffer */
  uint64_t begin, end;
  uint32_t slot;
  bool is_written;
} vyre__slot_span;

struct vyre_recording {
  atomic_uint references;
  vyre_device *device; /* retained */
  bool is_sealed;
  vyre_arena building; /* slot ranges of dispatches; freed by the seal */
  vyre__slot *slots;
  size_t slot_count, slot_capacity;
  uint32_t *names; /* hash table of slot numbers + 1; 0: empty */
  size_t name_capacity;
  vyre__recorded_command *commands;
  size_t command_count, command_capacity;
  uint32_t open_loops[VYRE_RECORDING_DEPTH]; /* loops without an end so far */
  uint32_t open_count;
  unsigned char *tables; /* one block with the tables of all dispatches */
  size_t tables_size;
  vyre__slot_uses slot_uses; /* owned by the first instance; set by the seal */
  vyre_capture_plan totals;  /* sums of the capture plans of all dispatches */

  /* Instances. Callers have the first one; binding and replaying act on its
   * `current`. Slots of an instance with users are never bound: a bind call
   * then switches to an instance without users. */
  vyre_recording *first, *current, *next_instance;
  uint32_t instance_count; /* of the first: instances in addition to it */
  /* Of the first: number of bindings so far. Each new binding of a slot gets
   * the next number, which its copies in other instances keep. */
  uint64_t version_count;

  /* Lock of the first instance. It guards everything that changes after the
   * seal, in all instances. It is not held while commands run: the active
   * replay owns them. */
  pthread_mutex_t lock;
  uint32_t users;       /* replays that were requested and are still pending */
  unsigned generation;  /* of the process that they belong to */
  uint32_t pending;     /* replays in the queue */
  bool is_dirty;        /* a slot was bound after the last preparation */
  bool is_skip_checked; /* is_skip_safe and skip_refusal are valid */
  bool is_skip_safe;    /* replays may skip uploads */
  vyre_status skip_refusal;

  /* VYRE__STAGING_BYTES for copies between buffers that only the device sees,
   * or NULL. */
  unsigned char *staging;

  /* Memory of the used slots, by address, since the last preparation. Both
   * arrays have slot_count entries. */
  vyre__slot_span *spans;
  size_t span_count;
  vyre__sort_item *span_order; /* scratch memory */

  uint64_t version;                  /* number of preparations; starts at 0 */
  struct vyre__recorded_list *lists; /* owned by the active replay */
};

/* Instances of a recording in addition to the first. */
enum { VYRE__MAX_INSTANCES = 7 };

/* Allocates tables and prepared dispatches for the commands of @p recording,
 * whose slot ranges lie elsewhere. @p function: public function, for messages.
 * Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__recording_build_tables(vyre_recording *recording,
                                       const char *function, vyre_status *st);

/* Makes an instance without users the current one, with the same bindings. It
 * prefers an instance that has @p binding (NULL: nothing) bound to @p slot
 * already. The caller holds the lock.
 * Errors: all instances have users and no more may be created;
 * VYRE_OUT_OF_MEMORY. */
vyre_code vyre__recording_switch_instance(vyre_recording *first, uint32_t slot,
                                          const vyre_slot_binding *binding,
                                          vyre_status *st);
/* Frees everything that an instance owns, but not the object itself. */
void vyre__recording_clear(vyre_recording *instance);
/* Hash table of slot names. Reserve makes space for one more name, and returns
 * false if memory is exhausted. */
bool vyre__slot_names_reserve(vyre_recording *recording);
void vyre__slot_names_add(const vyre_recording *recording, uint32_t slot);
void vyre__slot_names_free(vyre_recording *recording);

/* Builds slot_uses. Returns false if memory is exhausted; then, too, the caller
 * frees it. */
bool vyre__slot_uses_build(vyre_recording *recording);
void vyre__slot_uses_free(vyre_recording *recording);

/* Allocates `spans`. Returns false if memory is exhausted; then, too, the
 * caller frees it. */
bool vyre__slot_spans_create(vyre_recording *recording);
void vyre__slot_spans_free(vyre_recording *recording);
/* Updates `spans` for the memory that is bound now. */
void vyre__slot_spans_sort(vyre_recording *recording);
/* Return true if two slots, of one recording or of each of two, share bytes
 * that one of them writes. */
bool vyre__slot_spans_overlap(const vyre_recording *recording);
bool vyre__slot_spans_conflict(const vyre_recording *a,
                               const vyre_recording *b);

/* Marks all commands that use @p slot as not ready. */
void vyre__recording_invalidate(vyre_recording *recording, uint32_t slot);
bool vyre__slot_binding_equal(const vyre_slot_binding *a,
                              const vyre_slot_binding *b);
/* Returns true if two used slots share bytes, and a command writes one of
 * them. */
bool vyre__slots_conflict(const vyre__slot *a, const vyre__slot *b);

/* Replay whose commands run now. Lives on the stack of its thread, or in its
 * fence. */
typedef struct vyre__active_replay {
  const vyre_recording *rec; /* its bound buffers are acquired */
  pthread_t thread;
  bool is_queued; /* runs on the device's queue, which keeps submission order */
  struct vyre__active_replay *next;
} vyre__active_replay;

/* Registers a replay before its commands run. Two replays conflict if they
 * share bytes that one of them writes. A conflict with an active replay is
 *   - waited for, if one of the two is queued, or with @p wait_for_conflicts;
 *   - refused otherwise, with the name of the slot.
 * A callback of a replay never waits. */
vyre_code vyre__active_replay_begin(vyre__active_replay *replay,
                                    const vyre_recording *recording,
                                    bool is_queued, bool wait_for_conflicts,
                                    vyre_status *st);
void vyre__active_replay_end(vyre__active_replay *replay);

/* Runs the commands from *at on as one command list, if they may be in one.
 * Then *at is the next command, or the one that failed. *is_taken is false if
 * nothing ran. Adds to the counts of @p result. */
vyre_code vyre__recording_run_list(vyre_recording *recording, size_t *at,
                                   vyre_replay_result *result, bool *is_taken,
                                   vyre_status *st);
/* Runs up to @p max_iterations of the loop that command @p at begins as one
 * command list. *is_taken is false, and nothing ran, if the body cannot be in a
 * list or the device cannot test the flag. Sets the results in @p out. */
vyre_code vyre__recording_run_loop(vyre_recording *recording, size_t at,
                                   uint64_t max_iterations,
                                   vyre__command_loop *out, bool *is_taken,
                                   vyre_status *st);
void vyre__recording_free_lists(vyre_recording *recording);

/* Prepares command @p command, a step, for the memory that is bound now. */
vyre_code vyre__recording_prepare_step(const vyre_recording *recording,
                                       vyre__recorded_command *c,
                                       size_t command, vyre_status *st);

/* Checks that the bound memory contains @p range, and computes its size:
 * @p declared if that is not 0, or the size of the range, or all that follows.
 * Errors: the memory is too small, or the size is not a multiple of
 * @p element. */
vyre_code vyre__slot_range_measure(const vyre_recording *recording,
                                   const vyre_slot_range *range,
                                   uint64_t declared, uint64_t element,
                                   size_t command, uint64_t *out,
                                   vyre_status *st);
/* Returns the memory of a range whose slot is bound. */
vyre__memory vyre__slot_range_memory(const vyre_recording *recording,
                                     const vyre_slot_range *range);
/* Checks that a range names a slot and does not end beyond 2^64. */
vyre_code vyre__slot_range_check(const vyre_recording *recording,
                                 const vyre_slot_range *range, vyre_status *st);
/* Reserves memory for the next command and clears it. The caller fills it in
 * and increments command_count. */
vyre_code vyre__recording_next_command(vyre_recording *recording,
                                       const char *function,
                                       vyre__recorded_command **out,
                                       vyre_status *st);

/* Checks that the recording has a slot with this number. */
vyre_code vyre__slot_check(const vyre_recording *recording, uint32_t slot,
                           vyre_status *st);
/* Returns the name of a slot for messages: its own, or its number in
 * @p text. */
const char *vyre__slot_name(const vyre_recording *recording, uint32_t slot,
                            char text[VYRE__SLOT_NAME]);

/* Stores @p binding in @p slot, with the address and size of its memory. *held
 * receives the device buffer of the binding, which the caller must release; it
 * is unchanged for host memory. */
vyre_code vyre__slot_resolve(vyre_recording *recording, uint32_t slot,
                             const vyre_slot_binding *binding,
                             vyre__device_buffer **held, vyre_status *st);

/* The last release of a device buffer calls the release callback of its owner,
 * and that callback may use the recording. So buffers are released without the
 * lock. */

/* Acquires the device buffers of all slots in use. The caller holds the lock.
 * *held is the number of slots done, also after a failure.
 * Errors: a slot is unbound, or its buffer was freed. */
vyre_code vyre__recording_acquire_buffers(vyre_recording *recording,
                                          size_t *held, vyre_status *st);
/* Releases the buffers of the first @p held slots. The caller does not hold the
 * lock, but has a replay active or pending, so that no slot is bound now. */
void vyre__recording_release_buffers(vyre_recording *recording, size_t held);

/* Prepares all commands that are not ready. The caller holds the lock and
 * the buffers. Adds the number of dispatches that were prepared again to
 * *rebuilt. */
vyre_code vyre__recording_prepare(vyre_recording *recording, uint64_t *rebuilt,
                                  vyre_status *st);

/* Checks that the commands allow a replay to skip its uploads. */
vyre_code vyre__recording_may_skip_uploads(vyre_recording *recording,
                                           vyre_status *st);
/* Checks that every upload has run since its slots were bound. */
vyre_code vyre__recording_check_uploaded(const vyre_recording *recording,
                                         vyre_status *st);

/* Clears the bindings of a prepared dispatch. Also releases its buffers if
 * @p is_held. */
void vyre__prepared_unbind(vyre__prepared *prepared, bool is_held);

/* Returns the range that a dispatch gives to a binding as input or as device
 * memory, or NULL. */
static inline const vyre_slot_range *vyre__command_in(
    const vyre__recorded_command *c, const vyre__binding_info *info) {
  uint32_t index = c->desc.resource_count > 0 ? info->resource : info->input;
  if (index == VYRE_NO_INDEX || !c->tables.in ||
      c->tables.in[index].slot == VYRE_NO_SLOT) {
    return NULL;
  }
  return &c->tables.in[index];
}

/* Returns the range that a dispatch gives to a binding as output, or NULL. */
static inline const vyre_slot_range *vyre__command_out(
    const vyre__recorded_command *c, const vyre__binding_info *info) {
  if (info->output == VYRE_NO_INDEX || c->desc.output_count == 0 ||
      c->tables.out[info->output].slot == VYRE_NO_SLOT)
    return NULL;
  return &c->tables.out[info->output];
}

/* Returns true if a dispatch writes the range of vyre__command_in, or may do so
 * with other memory bound. */
static inline bool vyre__command_may_update(const vyre__binding_info *info) {
  return info->output != VYRE_NO_INDEX ||
         (info->is_persistent && info->is_written);
}

/* Returns true if a command writes @p slot, with the memory bound now. */
static inline bool vyre__slot_is_written(const vyre__slot *slot) {
  return slot->is_written || slot->is_updated;
}

/* Calls @p visit for every slot range that @p command reads or writes, until it
 * returns false. Returns the last result of @p visit. The input of an
 * input_output counts as written: it may be updated in place. */
typedef bool (*vyre__slot_range_visitor)(void *self,
                                         const vyre_slot_range *range,
                                         bool is_written);
bool vyre__command_slot_ranges(const vyre__recorded_command *command,
                               vyre__slot_range_visitor visit, void *self);

/* Returns true if two slot ranges may overlap, whatever is bound. A size of 0
 * reaches to the end of the slot. */
static inline bool vyre__slot_ranges_overlap(const vyre_slot_range *a,
                                             const vyre_slot_range *b) {
  if (a->slot != b->slot) return false;
  bool a_first = a->size != 0 && a->offset + a->size <= b->offset;
  bool b_first = b->size != 0 && b->offset + b->size <= a->offset;
  return !a_first && !b_first;
}

#endif
