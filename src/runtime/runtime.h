/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the parts of the driver know of each other.
 *
 * A dispatch is a run: an object of its pipeline that has room for everything one
 * dispatch needs, and is used again and again, so that a warm one allocates
 * nothing and takes no lock. It goes through
 *   vyre__prepared_check   all checks, nothing changed
 *   vyre__prepared_stage     only for work that outlives the call: inputs are copied
 *   vyre__prepared_execute   memory for outputs, first contents, the backend, results
 * on the caller's thread, or, with a fence, on the device's queue. */
#ifndef VYRE_RUNTIME_RUNTIME_H
#define VYRE_RUNTIME_RUNTIME_H

#include <pthread.h>

#include "vyre/counters.h"

#include "hal/backend.h"
#include "runtime/cache/cache.h"

/* --- contexts --------------------------------------------------------------- */

struct vyre_context {
  vyre_allocator base_allocator; /* the caller's */
  vyre_allocator allocator;      /* that, with faults: what devices use */
  atomic_uint references;
  bool is_default;
  _Atomic(struct vyre__trace *) trace; /* trace.c; NULL: none. Never changes */

  /* fault_injection.c. Armed: one bit a fault, so that nothing is looked at otherwise. */
  atomic_uint armed;
  struct {
    _Atomic uint64_t left; /* how many more until it fails; 0: not armed */
    atomic_bool repeats;   /* and all after */
  } faults[VYRE_FAULT_COUNT];
  vyre__cache cache; /* of pipelines, on disk */
  char options[512]; /* of backends; options.c */
  char llvm[256];    /* where device "cpu" finds it; "": wherever it is */
};

/* Adds the text to the options there are, if it is one of options that its backends
 * have; NULL or "" is nothing. The last of a key counts. @p from: the variable of
 * the environment that has it, which a status names and has as its field; NULL: a
 * program gave it. */
vyre_code vyre__options_add(vyre_context *context, const char *from,
                            const char *text, vyre_status *st);
#define VYRE__FIELD_OPTIONS "backend_options"
/* Keeps the name of a file of LLVM; NULL: none. */
vyre_code vyre__llvm_set(vyre_context *context, const char *name,
                         vyre_status *st);
/* Whether the device's backend has those that are meant for it: it need not be the
 * one that the registry has by its name. */
vyre_code vyre__options_check(const vyre_device *device, vyre_status *st);

/* Whether this one is to fail. */
bool vyre__fault_hits(vyre_context *context, vyre_fault fault);

static inline bool vyre__fault(vyre_context *context, vyre_fault fault) {
  return atomic_load_explicit(&context->armed, memory_order_relaxed) != 0 &&
         vyre__fault_hits(context, fault);
}

/* The status of a fault that hit. */
vyre_code vyre__fault_status(vyre_fault fault, vyre_status *st);

/* The process's own context, retained. */
vyre_code vyre__context_default(vyre_context **out, vyre_status *st);

/* --- fences and queues ------------------------------------------------------ */

/* Work with an end. Who makes one embeds it at the start of what the work needs.
 */
struct vyre_fence {
  atomic_uint references;
  atomic_bool is_done;
  vyre_context *context; /* retained */
  size_t size;           /* bytes of the whole object */
  vyre_code code;        /* once done */
  vyre_status status;

  vyre_code (*work)(vyre_fence *fence, vyre_status *st);
  void (*cleanup)(vyre_fence *fence); /* gives back what the work needed; after
                                        it, when nobody waits yet */
  void (*on_free)(vyre_fence *fence); /* with the last reference; or NULL */
  vyre_pipeline *pipeline;            /* made by the work, or NULL */

  pthread_mutex_t lock; /* of all below */
  pthread_cond_t changed;
  void (*callback)(void *self, vyre_fence *fence);
  void *callback_user_data;
  int fd;                    /* -1: nobody asked */
  vyre_fence *next;          /* of the queue */
  struct vyre__queue *queue; /* that does it; NULL: none */
};

/* A zeroed object of @p size bytes that starts with a fence. */
vyre_code vyre__fence_make(vyre_context *context, size_t size, vyre_fence **out,
                           vyre_status *st);
/* Frees one whose work was never handed on. */
void vyre__fence_discard(vyre_fence *fence);
/* Does the work on this thread, tells everybody, drops the queue's reference. */
void vyre__fence_run(vyre_fence *fence);

/* A thread that does work in order; it begins with the first piece. */
typedef struct vyre__queue vyre__queue;

vyre_code vyre__queue_push(vyre_device *device, vyre__queue **queue,
                           vyre_fence *fence, vyre_status *st);
/* Waits until all that was submitted to the device's queue is done, unless this is
 * the thread that does it, or one that has a turn on the device. */
void vyre__queue_wait(vyre_device *device);

/* A replay that this thread is in the middle of. What is queued may wait for its
 * end, so that no callback of it can wait for what is queued: what it asks for
 * belongs to the replay, and comes before. On the stack of who runs it. */
typedef struct vyre__replay_scope {
  const vyre_device *device;
  struct vyre__replay_scope *outer;
} vyre__replay_scope;

void vyre__replay_scope_begin(vyre__replay_scope *turn,
                              const vyre_device *device);
void vyre__replay_scope_end(const vyre__replay_scope *turn);
bool vyre__replay_scope_is_held(const vyre_device *device);
/* One more is done: what it wrote is there. */
void vyre__queue_passed(vyre__queue *queue);
/* Ends it when all is done. NULL is fine. From its own thread it does not wait.
 */
void vyre__queue_deinit(vyre__queue *queue);

/* --- resident buffers ------------------------------------------------------- */

enum { VYRE__CHUNK_SLOTS = 256, VYRE__CHUNKS = 4096 };

/* state: generation in the high half; below it a bit that says that the handle
 * is good, and how many use the buffer right now. Whoever takes that half to zero
 * frees the buffer. */
typedef struct vyre__device_buffer {
  _Atomic uint64_t state;
  vyre__buffer *buffer;
  uint32_t next_free; /* index + 1 */
} vyre__device_buffer;

typedef struct vyre__device_buffers {
  _Atomic(vyre__device_buffer *) chunks[VYRE__CHUNKS];
  pthread_mutex_t lock; /* of those who create and free */
  uint32_t count;       /* slots that were ever used */
  uint32_t first_free;  /* index + 1; 0: none */
} vyre__device_buffers;

/* Finds a buffer and keeps it from being freed. */
vyre_code vyre__device_buffer_acquire(vyre_device *device, vyre_buffer handle,
                                      vyre__device_buffer **out,
                                      vyre_status *st);
void vyre__device_buffer_release(vyre_device *device,
                                 vyre__device_buffer *slot);
void vyre__device_buffers_deinit(vyre_device *device);

/* Memory of somebody else that becomes a resident buffer; let_go is called, on
 * whatever thread, when the buffer is gone. data may be NULL if size is 0. */
typedef struct vyre__imported_memory {
  void *data;
  uint64_t size;
  bool is_read_only;
  void (*release)(void *self);
  void *release_user_data;
} vyre__imported_memory;

vyre_code vyre__device_buffer_import(vyre_device *device,
                                     const vyre__imported_memory *memory,
                                     vyre_buffer *out, vyre_status *st);

/* @p what ("output", "slot") @p name would write a buffer that is read-only. */
vyre_code vyre__device_buffer_read_only(const char *what, const char *name,
                                        vyre_status *st);

/* Bytes between host and buffer; ranges are checked. */
vyre_code vyre__buffer_write(vyre_device *device, vyre__buffer *buffer,
                             uint64_t offset, const void *data, size_t size,
                             vyre_status *st);
vyre_code vyre__buffer_read(vyre_device *device, vyre__buffer *buffer,
                            uint64_t offset, void *data, size_t size,
                            vyre_status *st);

typedef struct vyre__bound_buffer vyre__bound_buffer;

/* Zeroes a range; copies the input of a binding to its output, where one of them
 * is memory that only the device sees. */
vyre_code vyre__buffer_clear(vyre_device *device, vyre__buffer *buffer,
                             uint64_t offset, size_t size, vyre_status *st);
vyre_code vyre__buffer_copy(vyre_device *device,
                            const vyre__bound_buffer *bound, size_t size,
                            vyre_arena *scratch, vyre_status *st);

/* --- devices ---------------------------------------------------------------- */

typedef struct vyre__prepared vyre__prepared;

enum { VYRE__DEVICE_REASON = 160 };

typedef struct vyre__atomic_counters {
#define VYRE_X4(field, metric, labels, help) _Atomic uint64_t field;
  VYRE_COUNTER_MAP(VYRE_X4)
#undef VYRE_X4
} vyre__atomic_counters;

/* scratch_pool.c: memory that a call has for its own time, aligned to 16. */
typedef struct vyre__scratch_block {
  _Alignas(16) size_t size; /* of all of it */
  _Alignas(16) unsigned char bytes[];
} vyre__scratch_block;

typedef enum vyre__scratch_kind {
  VYRE__SCRATCH_PREPARED, /* of the items of a batch */
  VYRE__SCRATCH_PARTS,    /* of memory that they bind */
  VYRE__SCRATCH_KINDS
} vyre__scratch_kind;

/* At least @p size bytes, which were kept, if they are enough; NULL without
 * memory. Given back, they are kept for the next who asks. */
vyre__scratch_block *vyre__scratch_acquire(vyre_device *device,
                                           vyre__scratch_kind kind,
                                           size_t size);
void vyre__scratch_return(vyre_device *device, vyre__scratch_kind kind,
                          vyre__scratch_block *room);
void vyre__scratch_pool_deinit(vyre_device *device);

enum { VYRE__COMPILERS = 8 };

struct vyre__device_state {
  atomic_uint references;
  atomic_bool is_lost;
  atomic_bool is_forked; /* so, as it is of the process that this one was forked
                          from */
  atomic_uint queued;    /* work of its queue that is not done */
  _Atomic uint64_t batch_ids; /* that were found good; a name for each */
  uint64_t id;
  char name[VYRE_DEVICE_NAME];
  char reason[VYRE__DEVICE_REASON];
  vyre__device_buffers buffers;
  _Atomic(vyre__scratch_block *) scratch[VYRE__SCRATCH_KINDS];
  pthread_mutex_t lock; /* of the queues, while they begin */
  vyre__queue *queue;
  vyre__queue
      *compile_queues[VYRE__COMPILERS]; /* programs compile at the same time */
  atomic_uint compiles_begun;
  vyre__pipeline_table pipelines; /* that compiles share */
  pthread_mutex_t
      prepared_lock; /* of the list of all runs, whose counters count */
  vyre__prepared *first_prepared;
  pthread_mutex_t replay_lock; /* of the replays that run; conflicts.c */
  pthread_cond_t replay_ended;
  struct vyre__active_replay *active_replays;
  vyre_float_op_info *float_ops; /* found by a probe; NULL: it is exact */
  vyre_device *next, *previous;  /* of all that are open; counters.c */
  _Alignas(64) vyre__atomic_counters counters;
};

/* Whether its queue has work, which may write what is about to be used. */
static inline bool vyre__device_is_busy(const vyre_device *device) {
  return atomic_load_explicit(&device->state->queued, memory_order_acquire) > 0;
}

#define VYRE__COUNT(device, field, value)                              \
  atomic_fetch_add_explicit(&(device)->state->counters.field, (value), \
                            memory_order_relaxed)

/* Opens device @p index of a table that need not be built in: for tests.
 * Else as vyre_device_open. */
vyre_code vyre__device_open_backend(vyre_context *context,
                                    const vyre__backend *backend,
                                    uint32_t index, vyre_device **out,
                                    vyre_status *st);
/* The same over what the caller has already: @p given is the backend's to read, in
 * device_init alone. */
vyre_code vyre__device_open_given(vyre_context *context,
                                  const vyre__backend *backend, uint32_t index,
                                  const void *given, vyre_device **out,
                                  vyre_status *st);

/* vyre_device_info_at and vyre_device_open over tables that need not be those that
 * are built in, best first: for tests. */
typedef struct vyre__backends {
  const vyre__backend *const *list;
  size_t count;
} vyre__backends;

bool vyre__device_list_of(vyre__backends of, size_t index,
                          vyre_device_info *out);
vyre_code vyre__device_open_of(vyre__backends of, vyre_context *context,
                               const char *name, vyre_device **out,
                               vyre_status *st);
vyre_code vyre__device_preload_of(vyre__backends of, vyre_context *context,
                                  const char *name, vyre_status *st);

vyre_code vyre__device_lost(const vyre_device *device, vyre_status *st);

/* VYRE_DEVICE_LOST if it is. */
static inline vyre_code vyre__device_check(const vyre_device *device,
                                           vyre_status *st) {
  return atomic_load_explicit(&device->state->is_lost, memory_order_relaxed)
             ? vyre__device_lost(device, st)
             : VYRE_OK;
}

void vyre__device_lose(vyre_device *device);
/* In a child, for one that is its parent's. No locks: it has one thread. */
void vyre__device_leave(vyre_device *device);

/* For counters of all devices. */
void vyre__counters_enter(vyre_device *device);
void vyre__counters_leave(vyre_device *device);
/* Back to nothing; for a device that nobody has yet. */
void vyre__counters_clear(vyre_device *device);
/* Capacity of slots that came or, negative, went: counts for the device with that
 * id, also when it is closed. */
void vyre__counters_retained(uint64_t device, uint64_t change);
/* As enter and leave, for a run: what it has counted is the device's when it leaves. */
void vyre__counters_enter_run(vyre__prepared *run);
void vyre__counters_leave_run(vyre__prepared *run);

/* --- pipelines -------------------------------------------------------------- */

enum { VYRE__PREPARED_PER_PIPELINE = 8, VYRE__PREPARED_SPARE = 1024 };

/* Dispatches in a row that are something else each time, after which what they
 * were given is remembered only once in so many. */
enum { VYRE__PATIENCE = 4, VYRE__SELDOM = 32 };

/* Whether somebody has a run. ASKED: somebody has it, and lets go of resident
 * buffers with it, since one was freed in the meantime. */
typedef atomic_uchar vyre__prepared_state;
enum { VYRE__PREPARED_IDLE, VYRE__PREPARED_BUSY, VYRE__PREPARED_WANTED };

/* A binding of the plan, as every dispatch needs it. */
typedef struct vyre__binding_info {
  const vyre_binding *binding;
  uint64_t static_bytes;          /* only if is_static; else 0 */
  uint32_t index;                 /* among the bindings */
  uint32_t buffer, input, output; /* indices; VYRE_NO_INDEX */
  uint8_t shift, mask; /* an element has 1 << shift = mask + 1 bytes */
  uint8_t aligned;     /* what its address is a multiple of, or it is copied */
  bool is_static;
  bool is_covered; /* the grid covers the longest of these */
} vyre__binding_info;

/* Fills pipeline->inside->ports from its plan. */
vyre_code vyre__binding_infos_build(vyre_pipeline *pipeline, vyre_status *st);

struct vyre__pipeline_state {
  atomic_uint references;
  /* Variants are pipelines of their own, which this one owns; a list that only
   * grows, so that a dispatch reads it without a lock. */
  _Atomic(vyre_pipeline *) variants;
  vyre_pipeline *next_variant;
  pthread_mutex_t lock; /* of those who add to it */
  const vyre__binding_info
      *ports; /* one a binding; all in the pipeline's arena */
  const vyre__binding_info **inputs,
      **outputs; /* those that have one, in their order */
  struct {
    vyre__prepared_state state; /* busy also while the run is made */
    vyre__prepared *run; /* whose it is while it is busy; NULL: not made yet */
  } runs[VYRE__PREPARED_PER_PIPELINE];
  _Atomic(vyre__prepared *) spare; /* more of them, for batches: a list */

  atomic_bool
      wants_full; /* quick code was made, and nobody makes the full yet */
  vyre__cache_note note; /* what came of the cache */
  vyre_arena texts;      /* of the note, as far as it was completed later */
  /* pipeline_table.c, under the lock of the device's table. Variants are not shared:
   * two pipelines could be each other's. */
  bool is_shared, is_parked;
  vyre_pipeline *next_in_bucket, *newer, *older;
  _Atomic uint64_t memory_hits;
  _Atomic uint64_t rounds; /* proven bound of an invocation's loop iterations,
                              plus 1; 0: not computed yet */
  bool is_fresh;           /* made without the cache, and so are its variants */
};

/* As vyre_pipeline_compile, of arguments that are none of them NULL, but really:
 * nothing of the cache is used, and nothing goes there. The yardstick would else
 * be compared with itself. */
vyre_code vyre__pipeline_compile_fresh(vyre_device *device,
                                       vyre_program *program,
                                       const vyre_compile_options *options,
                                       vyre_pipeline **out, vyre_status *st);
/* Compiles with other forms of floats than the device's, for the probe; fresh
 * too. */
vyre_code vyre__pipeline_compile_as(vyre_device *device, vyre_program *program,
                                    const vyre_float_op_info *numbers,
                                    vyre_pipeline **out, vyre_status *st);
/* Frees a pipeline that nobody has. Leaves its reference to the device. */
void vyre__pipeline_free(vyre_pipeline *pipeline);
/* Frees the runs that it keeps. */
void vyre__pipeline_drop_runs(vyre_pipeline *pipeline);
/* What the program asks for that the device does not have. */
vyre_code vyre__program_check_caps(const vyre_device *device,
                                   const vyre_program *program,
                                   vyre_status *st);
/* Of a buffer that is bound: more than the device takes. */
vyre_code vyre__buffer_too_large(const vyre_device *device, const char *name,
                                 uint64_t size, vyre_status *st);
/* The size that @p asked means: all 0 stand for @p own, one 0 for 1. */
void vyre__workgroup_resolve(const uint32_t asked[3], const uint32_t own[3],
                             uint32_t out[3]);

/* Finds the variant of @p pipeline that @p desc asks for, with code that counts
 * iterations if max_iterations needs it. It must have been prepared. */
vyre_code vyre__pipeline_variant(vyre_pipeline *pipeline,
                                 const vyre_dispatch_desc *desc,
                                 vyre_pipeline **out, vyre_status *st);
/* Compiles code of @p pipeline that counts iterations, if @p max_iterations needs it
 * and there is none yet. */
vyre_code vyre__pipeline_count(vyre_pipeline *pipeline, uint64_t max_iterations,
                               vyre_status *st);

/* --- runs ------------------------------------------------------------------- */

/* What is bound to one binding of the plan. */
struct vyre__bound_buffer {
  unsigned char *in, *out; /* NULL: none, or memory only the device sees */
  uint64_t in_size, out_size;
  uint64_t in_offset, out_offset;              /* in their resident buffers */
  vyre__device_buffer *in_buffer, *out_buffer; /* the same: held once */
};

/* In and out of an input_output are the same bytes. */
static inline bool vyre__in_place(const vyre__bound_buffer *bound) {
  if (bound->in_buffer && bound->in_buffer == bound->out_buffer) {
    return bound->in_offset == bound->out_offset;
  }
  return bound->in && bound->in == bound->out;
}

/* Memory that is bound: of the host, or of one resident buffer that only the
 * device sees. */
typedef struct vyre__memory_range {
  const vyre_binding *binding;
  const void *space; /* NULL: the host */
  uint64_t begin, end;
} vyre__memory_range;

/* An output as it was given, with the memory that its slot had. */
typedef struct vyre__host_output {
  vyre_output output;
  const void *buffer_data;
  size_t buffer_capacity;
} vyre__host_output;

/* A run remembers what it was given last, and still holds the resident buffers of
 * that: the same once more was found good already (prepared_match.h). Who frees such a
 * buffer makes the run forget first. */
struct vyre__prepared {
  vyre_pipeline *pipeline;    /* the variant that runs; not retained */
  size_t size;                /* bytes of the whole object */
  vyre__prepared_state *home; /* its place in the pipeline; NULL: none */
  vyre__prepared *next_spare;
  uint32_t spare_count;            /* of the first: of the whole list */
  vyre__prepared *next, *previous; /* of the device */
  vyre__bound_buffer *bound;       /* one a binding of the plan */
  vyre__view *views;               /* one a buffer of the program */
  vyre_input_extent *extents;      /* one an input */
  vyre__memory_range *ranges;      /* room for all that is written */
  vyre_output *outputs;            /* copies of the descriptor's */
  vyre_buffer
      *new_buffers; /* one an output: new buffers until they are handed out */
  const vyre_dispatch_desc *desc; /* the caller's, or `own` */
  uint32_t item;                  /* its place in the batch, for the trace */
  uint64_t batch;     /* with which it was found good as it is now; 0: none */
  uint64_t called_ns; /* when it was asked for; 0: as it is run */
  uint64_t host_in, host_out; /* bytes, for the counters */
  bool
      is_plain; /* nothing is to be looked at before or after it (command_list.h) */
  bool has_reports;      /* the descriptor has places for what comes back */
  bool grows_outputs;    /* an output is a slot, or kept */
  bool has_moved_output; /* to memory that was not looked at */
  bool holds_buffers;    /* that are held */
  bool is_cached;        /* what is bound is what `given_...` say */
  bool is_bound;         /* nothing is to be done for the views */
  uint32_t miss_count; /* dispatches in a row that were given something else */
  uint32_t cached_grid[3];
  vyre_input *cached_inputs;         /* one an input */
  vyre__host_output *cached_outputs; /* one an output */
  vyre__launch launch;

  /* From here on: what a dispatch that is known does not touch. */
  vyre_arena scratch, staging;
  vyre_copy_report copies;
  uint32_t first_copied;          /* binding that it names */
  vyre_output_stats stats;        /* of its part of a stretch */
  vyre_dispatch_desc own;         /* of work that outlives the call */
  vyre__atomic_counters counters; /* of all its dispatches: only who has the run
                                     writes them, so that no bus is locked */
};

#define VYRE__COUNT_RUN(run, field, value)                                 \
  atomic_store_explicit(                                                   \
      &(run)->counters.field,                                              \
      atomic_load_explicit(&(run)->counters.field, memory_order_relaxed) + \
          (value),                                                         \
      memory_order_relaxed)

/* vyre__prepared_acquire, _prepare and _give are in prepared_match.h; these are what they do
 * seldom: another place than the first, bindings that are not known, resident
 * buffers or memory that are not kept. */
vyre_code vyre__prepared_acquire_second(vyre_pipeline *pipeline,
                                        vyre__prepared **out, vyre_status *st);
/* A run with no place in the pipeline, for who keeps it: those in its places are
 * for dispatches, and stay warm. Ends as all do, with vyre__prepared_set_outputs. */
vyre_code vyre__prepared_create(vyre_pipeline *pipeline, vyre__prepared **out,
                                vyre_status *st);
/* For @p desc, which @p first knows not: the run in the second place, if it has
 * that, or should keep it; or @p first. Two that take turns, as buffers that are
 * swapped do, are then both known. The other one is given back. */
vyre__prepared *vyre__prepared_second(vyre__prepared *first,
                                      const vyre_dispatch_desc *desc);
vyre_code vyre__prepared_check_again(vyre__prepared *run, vyre_status *st);
void vyre__prepared_abandon(vyre__prepared *run);
void vyre__prepared_free(vyre__prepared *run);
/* A copy of its descriptor, for work that outlives the call. */
void vyre__prepared_copy_desc(vyre__prepared *run);
/* Lets go of all resident buffers, and of what it knows. */
void vyre__prepared_invalidate(vyre__prepared *run);
/* After it ran, with memory that is the caller's: the same once more is known. */
void vyre__prepared_cache(vyre__prepared *run, const vyre_dispatch_desc *desc);
/* For who frees @p slot, and still holds it: runs that wait for their next
 * dispatch let go of it; those at work will when they are done. */
void vyre__prepared_list_revoke(vyre_device *device, vyre__device_buffer *slot);
/* A batch takes all runs that are spare, in the order in which they were given: the
 * same batch once more finds for each of its items the run that knows it. give_to
 * puts one that is the pipeline's and has no home to the end of a list; return puts
 * a list before what is spare already. */
typedef struct vyre__prepared_list {
  vyre__prepared *first, *last; /* last: only in one that runs are put to */
  uint32_t count;
} vyre__prepared_list;
vyre__prepared_list vyre__prepared_list_acquire(vyre_pipeline *pipeline);
void vyre__prepared_list_return(vyre_pipeline *pipeline,
                                vyre__prepared_list *list);
void vyre__prepared_set_output(vyre__prepared *run, vyre_pipeline *pipeline,
                               vyre__prepared_list *list);
/* Lets go of the resident buffers that it holds; still says which they were. */
void vyre__prepared_release(vyre__prepared *run);

/* Holds what the runs of a batch write against what the others bind. *item: which
 * of them is refused. */
vyre_code vyre__batch_check_overlap(vyre__prepared **runs, size_t count,
                                    size_t *item, vyre_status *st);
vyre_code vyre__prepared_check_options(const vyre__prepared *run,
                                       vyre_status *st);
vyre_code vyre__prepared_check_limits(const vyre__prepared *run,
                                      vyre_status *st);
vyre_code vyre__prepared_stage(vyre__prepared *run, vyre_status *st);
vyre_code vyre__prepared_execute(vyre__prepared *run, vyre_status *st);
/* Parts of it: memory of outputs and their first contents, counted in @p stats;
 * what comes back but times; the counters of one that ended well. */
vyre_code vyre__prepared_bind(vyre__prepared *run, vyre_output_stats *stats,
                              vyre_status *st);
void vyre__prepared_report(const vyre__prepared *run,
                           const vyre_output_stats *stats, vyre_code code);
void vyre__prepared_count(vyre__prepared *run, const vyre_output_stats *stats);

/* The part of prepare that looks at sizes only: run->desc is set, and pointers of
 * the host may be NULL. */
vyre_code vyre__prepared_resolve(vyre__prepared *run, vyre_status *st);
/* Why bytes of the host cannot be bound where they are; NONE if they can. */
static inline vyre_copy_reason vyre__host_reason(const vyre_device *device,
                                                 const void *data) {
  uint64_t alignment = device->caps.host_alignment;
  if (!device->caps.borrows_host_memory) return VYRE_COPY_DEVICE_MEMORY;
  if (alignment > 1 && (uintptr_t)data % alignment) return VYRE_COPY_ALIGNMENT;
  return VYRE_COPY_NONE;
}

/* Of memory that we allocate for it to bind. */
static inline size_t vyre__host_alignment(const vyre_device *device) {
  uint64_t alignment = device->caps.host_alignment;
  return device->caps.borrows_host_memory && alignment > 1 ? (size_t)alignment
                                                           : 1;
}

/* Fails if a dispatch without a grid would leave data out: the inferred grid has
 * one workgroup on y and z. */
vyre_code vyre__grid_check_given(const vyre_pipeline *pipeline,
                                 const uint32_t grid[3], vyre_status *st);

/* Decides the grid of every dispatch. @p views has the elements of every buffer of
 * the program. */
vyre_code vyre__grid_infer(const vyre_pipeline *pipeline,
                           const uint32_t override[3], const vyre__view *views,
                           uint32_t out[3], vyre_status *st);

/* --- options ---------------------------------------------------------------- */

/* As vyre_context_option, of arguments that are not NULL. */
uint64_t vyre__context_option(const vyre_context *context, const char *backend,
                              const char *key, uint64_t otherwise);

/* --- slots ------------------------------------------------------------------ */

/* Makes room for @p size bytes, which the slot then has, aligned for @p device,
 * which counts what it keeps. Counts in @p stats. */
bool vyre__host_buffer_fit(vyre_host_buffer *slot, size_t size,
                           const vyre_device *device, vyre_output_stats *stats);

#endif
