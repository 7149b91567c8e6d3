/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The reference backend: an interpreter of the program tree, and the oracle
 * that every other backend is compared with. It is meant to be obviously right.
 *
 * A workgroup runs in lockstep: every expression is evaluated for all its
 * invocations ("lanes") before the next one. A value is a vector with one
 * 64-bit number per lane, in the representation of ir.h. Divergent control flow
 * uses masks: vectors of all ones (the lane runs) and zeros (it does not). Pure
 * operations are total, so they are computed for all lanes; accesses to memory,
 * locals and output obey the mask.
 *
 * Vectors of temporaries come from a stack whose depth is known at compile time
 * (frame_size.c). Locals of the kernel are in the frame of the workgroup.
 * Programs with grid barriers have a frame for each workgroup; in all others,
 * workgroups use one frame one after the other. */
#ifndef VYRE_BACKEND_REF_REF_H
#define VYRE_BACKEND_REF_REF_H

#include <assert.h>

#include "base/attributes.h"
#include "hal/backend.h"
#include "ir/ir.h"

/* Facts about a program, computed when it is compiled. */
typedef struct ref_program_info {
  uint32_t temporary_vectors; /* maximum depth of the stack */
  uint32_t grid_depth;        /* nesting of loops that contain grid barriers */
  bool has_grid_barrier;
  bool has_barrier;      /* of any kind, including uniform() */
  bool can_batch;        /* results do not change if several workgroups run in
                            lockstep */
  uint64_t shared_bytes; /* of all shared buffers, then arrays */
  uint64_t zeroed_bytes; /* of shared buffers: zero at each begin */
  uint8_t *has_grid;     /* for each node: it contains a grid barrier */
  uint8_t *is_ignored;   /* for each node: its value is not used */
} ref_program_info;

typedef struct ref_pipeline {
  vyre_pipeline base;
  vyre_program *plain;  /* `linked` uses its buffers and tables */
  vyre_program *linked; /* the program with the built-in functions it calls */
  ref_program_info info;
} ref_pipeline;

static_assert(offsetof(ref_pipeline, base) == 0, "base first");

vyre_code ref_program_info_build(const vyre_program *program,
                                 const uint32_t workgroup[3], vyre_arena *arena,
                                 ref_program_info *out, vyre_status *st);

/* --- execution order -------------------------------------------------------*/

/* A permutation of 0..count-1 without a table: position i holds i * factor +
 * offset. */
typedef struct ref_order {
  uint64_t count, factor, offset;
} ref_order;

ref_order ref_order_make(uint64_t count, uint64_t seed);
ref_order ref_order_forward(uint64_t count);
ref_order ref_order_backward(uint64_t count);
uint64_t ref_order_at(const ref_order *order, uint64_t position);
uint64_t ref_mix(uint64_t value);

/* Order of one run. All zero is the canonical order. */
typedef struct ref_schedule {
  bool permute_groups;
  bool permute_lanes;    /* in atomics, differently for each execution */
  bool backward;         /* reverse order instead of a random one */
  bool by_statement;     /* run each top-level statement in all workgroups */
  bool lanes_one_by_one; /* a lane finishes before the next one starts */
  vyre__id only;         /* permute lanes in this node only; 0: in all */
  uint64_t seed;
} ref_schedule;

/* --- interpreter state -----------------------------------------------------*/

/* Value of an AT whose index is outside. */
#define REF_OUTSIDE (UINT64_C(1) << 62)

typedef struct ref_mask {
  uint64_t *lane;
  uint32_t count; /* number of lanes that run */
} ref_mask;

/* The innermost loop: collects the lanes that executed `continue`. */
typedef struct ref_loop {
  uint64_t *continued;
} ref_loop;

/* A function call in progress. */
typedef struct ref_activation {
  uint64_t *locals;
  uint64_t *returned; /* mask */
  uint64_t *result;   /* NULL for the kernel */
} ref_activation;

typedef struct ref_view {
  unsigned char *data;
  uint64_t length;
  vyre_element element;
  uint32_t size;   /* bytes per element that an access names */
  uint32_t stride; /* bytes from one element to the next */
  bool is_shared, is_written;
  uint64_t shared_offset; /* in the frame's shared memory */
  size_t lane_bytes;      /* of an array: from one lane's to the next; else 0 */
} ref_view;

struct ref_check;

/* A place in the source that one item of a queue executed. */
typedef struct ref_cause {
  uint32_t line, column; /* 0: none */
  uint64_t item;         /* position in its window, or key */
  uint64_t window;
} ref_cause;

/* Bytes of an element, and the last write to it. */
typedef struct ref_watch {
  const unsigned char *bytes;
  size_t size;
  ref_cause writer;
} ref_watch;

/* State of one workgroup between two grid barriers. */
typedef struct ref_frame {
  uint64_t *vectors;
  unsigned char *shared;
  uint32_t epoch; /* number of barriers passed, plus 1 */
} ref_frame;

typedef struct ref_machine {
  const ref_pipeline *pipeline;
  const vyre_program *program;
  const vyre__node *nodes;
  const vyre__launch *launch;
  ref_schedule schedule;
  vyre_arena *arena; /* freed after the run */
  vyre_status *st;
  vyre_code code; /* first failure; it stops the run */

  uint32_t lanes; /* lanes in lockstep */
  uint32_t first_lane;
  uint32_t workgroup_lanes;
  uint64_t group_count;
  ref_view *views;
  uint64_t *local_ids[3]; /* for each lane of the workgroup */
  uint32_t batch; /* workgroups in lockstep; small ones are run together to
                     reduce the interpreter's overhead */
  uint64_t *group_ids[3]; /* for each lane, if batch > 1 */
  uint64_t *temporaries;
  uint32_t top, limit; /* vectors in use and available */
  ref_frame *frames;
  uint64_t frame_count;
  uint32_t frame_vectors;

  /* the running workgroup */
  ref_frame *frame;
  uint64_t group_index;
  uint32_t group[3];
  uint64_t *fuel; /* for each lane: loop iterations so far */
  uint64_t iterations, ticks;
  ref_activation activation;
  ref_loop loop;

  struct ref_chunk *chunk; /* items of a queue; NULL: a dispatch */
  struct ref_check *check; /* NULL: nothing is checked */
  uint64_t executed;       /* atomics so far, to vary their order */
  uint64_t *node_hashes;   /* hash of the results of each atomic; or NULL */
  ref_watch *watch;        /* NULL: none */
} ref_machine;

/* Vectors of a frame after the locals, and for each grid loop. */
enum { REF_FRAME_FIXED = 3, REF_FRAME_LOOP = 3 };

/* Returns the number of vectors in a frame. */
static inline uint32_t ref_frame_vectors(const ref_pipeline *pipeline) {
  return pipeline->linked->functions[0].local_count + REF_FRAME_FIXED +
         REF_FRAME_LOOP * pipeline->info.grid_depth;
}

static inline uint64_t *ref_local(const ref_machine *m, uint32_t local) {
  return m->activation.locals + (size_t)local * m->lanes;
}

static inline uint64_t *ref_push(ref_machine *m) {
  assert(m->top < m->limit);
  return m->temporaries + (size_t)m->top++ * m->lanes;
}

/* Executes a statement for the lanes of @p mask. Removes the lanes that do not
 * continue after it. */
void ref_exec(ref_machine *m, vyre__id id, ref_mask *mask);

/* Evaluates an expression. Returns the vector on top of the stack (now below
 * m->top), or a local or id, which must not be written. */
const uint64_t *ref_eval(ref_machine *m, vyre__id id, const ref_mask *mask);

/* Parts of a `for` loop: the comparison that continues it, and one step of
 * every active lane. A lane whose variable would overflow leaves the loop. */
vyre__op ref_loop_test(vyre__loop loop);
void ref_loop_step(vyre_type type, vyre__loop loop, uint64_t step,
                   uint32_t lanes, uint64_t *variable, uint64_t *active);

/* Counts an iteration of a loop; checks fuel and deadline. Returns false to
 * stop. */
bool ref_loop_tick(ref_machine *m, vyre__id id, const uint64_t *active);
bool ref_in_time(ref_machine *m);
void ref_fail(ref_machine *m, vyre_code code);

/* Applies a pure operation to all lanes. @p out may be one of the operands. */
void ref_lanes(vyre__op op, vyre_type operand, vyre_type result, uint32_t lanes,
               const uint64_t *const args[3], uint64_t *out);

/* Memory accesses (memory.c). */
void ref_load(ref_machine *m, vyre__id id, const uint64_t *index,
              const ref_mask *mask, uint64_t *out);
void ref_store(ref_machine *m, vyre__id id, const uint64_t *index,
               const uint64_t *value, const ref_mask *mask);
void ref_atomic(ref_machine *m, vyre__id id, const uint64_t *index,
                const uint64_t *const values[2], const ref_mask *mask,
                uint64_t *out);

void ref_print(ref_machine *m, vyre__id id, const ref_mask *mask);

uint32_t ref_mask_count(const ref_machine *m, const uint64_t *mask);

/* Runs the dispatch once, with the buffers m->views (grid.c). */
vyre_code ref_run(ref_machine *m);
/* First step of ref_run: allocates frames. */
vyre_code ref_prepare(ref_machine *m);
/* Runs the workgroups 0 to @p count - 1 after ref_prepare, each an item of a
 * queue. */
vyre_code ref_run_items(ref_machine *m, uint64_t count);
/* Restores the normal form of the exact sums that the kernel changed. */
void ref_settle_sums(ref_machine *m);
/* Binds the buffers of a launch to a machine with `arena` and `st`. */
vyre_code ref_machine_begin(ref_machine *m, vyre_pipeline *pipeline,
                            vyre__launch *launch);

/* --- work queues (queue.c) -------------------------------------------------*/

/* The chunk that a machine runs. Its items are workgroups. */
typedef struct ref_chunk {
  const uint32_t *items;     /* of the chunk */
  uint64_t window, position; /* of its first item */
  uint32_t *out;             /* pushed items go here */
  uint64_t out_count;
  uint64_t pushing;     /* item that pushed last, plus 1 */
  uint32_t item_pushes; /* of that item */
  uint32_t max_pushes;  /* P */
  bool has_failed;      /* an item pushed more than P items: */
  uint64_t failed_item;
  vyre__id failed_node;
  /* of sets */
  const uint32_t *seen, *in_window;
  uint32_t *next; /* NULL: pushes go to `out` */
  uint64_t keys, dropped;
  /* Of a trial: push of each item of `out`, or the first push of each key in a
   * window. */
  ref_cause *pushers;
} ref_chunk;

/* Returns the item that a machine runs, for messages: its position in the
 * window, or its key. */
uint64_t ref_queue_item(const ref_machine *m);
/* Returns a hash of that item which does not depend on its position. */
uint64_t ref_queue_item_hash(const ref_machine *m);
ref_cause ref_queue_cause(const ref_machine *m, vyre__id id);

/* Evaluates ITEM, ITEM_INDEX and WINDOW. */
uint64_t ref_queue_value(const ref_machine *m, const vyre__node *node);
/* Executes a push of one lane, with a value for each field. Returns true if
 * the item fits. */
bool ref_queue_push(ref_machine *m, vyre__id id, const uint64_t *values);
bool ref_queue_in_window(const ref_machine *m, uint64_t key);

void ref_queue_plan(const vyre_device *device, vyre__queue_info *info);
vyre_code ref_queue_drain(vyre__drain *drain, vyre_status *st);

/* --- checks ----------------------------------------------------------------*/

typedef enum ref_access { REF_READ, REF_WRITE, REF_ATOMIC } ref_access;

/* Rejects a grid with more workgroups than the race check can number. */
vyre_code ref_check_grid(const ref_machine *m);
struct ref_check *ref_check_make(const ref_machine *m, vyre_status *st);
void ref_check_bounds(ref_machine *m, vyre__id id, uint32_t lane,
                      uint64_t index, bool negative);
void ref_check_access(ref_machine *m, vyre__id id, uint32_t lane,
                      uint64_t index, ref_access access);
/* Begins a window of a queue: earlier accesses are ordered before it. */
void ref_check_window(ref_machine *m);
/* Records a grid barrier: all workgroups continue in @p epoch. */
void ref_check_grid_barrier(ref_machine *m, uint32_t epoch);

typedef struct ref_key {
  vyre__id node, other;
} ref_key;

/* Returns a new finding to fill in. If one of the same kind at the same nodes
 * exists, increments its count and returns NULL. Also returns NULL if there are
 * too many findings, or without memory (then m->code is set). */
vyre_finding *ref_finding(ref_machine *m, vyre_finding_kind kind, vyre__id node,
                          vyre__id other);
const char *ref_finding_text(ref_machine *m, const char *format, ...)
    VYRE__PRINTF(2, 3);

/* Repeats the run of @p m in other orders and adds findings about
 * differences. */
vyre_code ref_check_order(ref_machine *m, const unsigned char *const *initial);

#endif
