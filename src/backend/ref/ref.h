/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The reference backend: an interpreter of the program's tree, and the oracle
 * that every other backend is held against. It is meant to be obviously right.
 *
 * A workgroup runs in lockstep: every expression is evaluated for all its
 * invocations ("lanes") before the next one. A value is a slot: one 64-bit
 * number a lane, as ir.h holds values. Divergent control flow is masks: a slot of
 * all ones (the lane runs) and zeros (it does not). Pure operations are total, so
 * they are done for all lanes, running or not; what touches memory, locals or
 * output obeys the mask.
 *
 * Slots of temporaries come from a stack whose depth is known at compile time
 * (shape.c). Locals of the kernel are in the frame of the workgroup: programs with
 * grid barriers have a frame for each workgroup, others one that all take turns
 * with. */
#ifndef VYRE_BACKEND_REF_REF_H
#define VYRE_BACKEND_REF_REF_H

#include <assert.h>

#include "base/attributes.h"
#include "hal/backend.h"
#include "ir/ir.h"

/* What is known of a program before it runs. */
typedef struct ref_shape {
  uint32_t temporary_slots; /* deepest use of the stack */
  uint32_t grid_depth;      /* nesting of loops with grid barriers in them */
  bool has_grid_barrier;
  bool has_barrier;      /* of any kind, uniform() too */
  bool can_batch;        /* workgroups cannot tell whether others run with them
                            in lockstep */
  uint64_t shared_bytes; /* of all shared buffers */
  uint8_t *has_grid;     /* one a node: a grid barrier is inside */
  uint8_t *is_ignored;   /* one a node: its value is not used */
} ref_shape;

typedef struct ref_pipeline {
  vyre_pipeline base;
  vyre_program *linked; /* with the functions of mathematics that it calls */
  ref_shape shape;
} ref_pipeline;

static_assert(offsetof(ref_pipeline, base) == 0, "base first");

vyre_code ref_shape_build(const vyre_program *program, vyre_arena *arena,
                          ref_shape *out, vyre_status *st);

/* --- orders ----------------------------------------------------------------- */

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

/* How one run differs from the canonical one, which is all zero. */
typedef struct ref_schedule {
  bool permute_groups;
  bool permute_lanes; /* in atomics, anew each time one is executed */
  bool backward;      /* instead of random */
  bool by_statement;  /* each top statement in all workgroups, then the next */
  bool lanes_one_by_one; /* a lane runs to its end before the next begins */
  vyre__id only;         /* permute lanes only in this node; 0: in all */
  uint64_t seed;
} ref_schedule;

/* --- a run ------------------------------------------------------------------ */

typedef struct ref_mask {
  uint64_t *lane;
  uint32_t count; /* lanes that run */
} ref_mask;

/* The innermost loop of a machine: where `continue` leaves its lanes. */
typedef struct ref_loop {
  uint64_t *continued;
} ref_loop;

/* A function that is being run. */
typedef struct ref_activation {
  uint64_t *locals;
  uint64_t *returned; /* mask */
  uint64_t *result;   /* NULL for the kernel */
} ref_activation;

typedef struct ref_view {
  unsigned char *data;
  uint64_t length;
  vyre_element element;
  uint32_t size; /* bytes of an element */
  bool is_shared, is_written;
  uint64_t shared_offset; /* in the frame's shared memory */
} ref_view;

struct ref_check;

/* One workgroup between two grid barriers. */
typedef struct ref_frame {
  uint64_t *slots;
  unsigned char *shared;
  uint32_t epoch; /* barriers so far */
} ref_frame;

typedef struct ref_machine {
  const ref_pipeline *pipeline;
  const vyre_program *program;
  const vyre__node *nodes;
  const vyre__launch *launch;
  ref_schedule schedule;
  vyre_arena *arena; /* dies with the run */
  vyre_status *st;
  vyre_code code; /* the first failure; everything stops */

  uint32_t lanes; /* that run in lockstep */
  uint32_t first_lane;
  uint32_t workgroup_lanes;
  uint64_t group_count;
  ref_view *views;
  uint64_t *local_ids[3]; /* one a lane of the workgroup */
  uint32_t batch; /* workgroups that run in lockstep: small ones together,
                             else it would be all overhead */
  uint64_t *group_ids[3]; /* one a lane, if there is more than one workgroup */
  uint64_t *temporaries;
  uint32_t top, limit; /* slots in use, slots there are */
  ref_frame *frames;
  uint64_t frame_count;
  uint32_t frame_slots;

  /* the workgroup that runs */
  ref_frame *frame;
  uint64_t group_index;
  uint32_t group[3];
  uint64_t *fuel; /* iterations so far, a slot */
  uint64_t rounds, ticks;
  ref_activation activation;
  ref_loop loop;

  struct ref_check *check; /* NULL: nothing is watched */
  uint64_t executed;       /* atomics so far, to vary their order */
  uint64_t *node_hashes;   /* what each atomic gave; NULL if nobody asks */
} ref_machine;

/* Slots of a frame before those of the grid loops. */
enum { REF_FRAME_FIXED = 3, REF_FRAME_LOOP = 3 };

/* Slots of a frame: of each, one number a lane. */
static inline uint32_t ref_frame_slots(const ref_pipeline *pipeline) {
  return pipeline->linked->functions[0].local_count + REF_FRAME_FIXED +
         REF_FRAME_LOOP * pipeline->shape.grid_depth;
}

static inline uint64_t *ref_local(const ref_machine *m, uint32_t local) {
  return m->activation.locals + (size_t)local * m->lanes;
}

static inline uint64_t *ref_push(ref_machine *m) {
  assert(m->top < m->limit);
  return m->temporaries + (size_t)m->top++ * m->lanes;
}

/* m->loop and the like say what runs; these run it. */
void ref_exec(ref_machine *m, vyre__id id, ref_mask *mask);

/* The value of an expression: the slot that was on top of the stack (now below
 * m->top), or a local or id in its place, which must not be written. */
const uint64_t *ref_eval(ref_machine *m, vyre__id id, const ref_mask *mask);

/* Pieces of a `for`: the test that goes on, and one step of every lane that is
 * active (a variable that would leave its type ends the loop of its lane). */
vyre__op ref_loop_test(vyre__loop loop);
void ref_loop_step(vyre_type type, vyre__loop loop, uint64_t step,
                   uint32_t lanes, uint64_t *variable, uint64_t *active);

/* One time round a loop: fuel and time. False: stop. */
bool ref_loop_tick(ref_machine *m, vyre__id id, const uint64_t *active);
bool ref_in_time(ref_machine *m);
void ref_fail(ref_machine *m, vyre_code code);

/* One pure operation for all lanes. @p out may be one of the operands. */
void ref_lanes(vyre__op op, vyre_type operand, vyre_type result, uint32_t lanes,
               const uint64_t *const args[3], uint64_t *out);

/* Memory, memory.c. Indices are of type @p index_type. */
void ref_load(ref_machine *m, vyre__id id, const uint64_t *index,
              const ref_mask *mask, uint64_t *out);
void ref_store(ref_machine *m, vyre__id id, const uint64_t *index,
               const uint64_t *value, const ref_mask *mask);
void ref_atomic(ref_machine *m, vyre__id id, const uint64_t *index,
                const uint64_t *const values[2], const ref_mask *mask,
                uint64_t *out);

void ref_print(ref_machine *m, vyre__id id, const ref_mask *mask);

uint32_t ref_mask_count(const ref_machine *m, const uint64_t *mask);

/* The whole dispatch, once, into @p views. grid.c. */
vyre_code ref_run(ref_machine *m);

/* --- checks ----------------------------------------------------------------- */

typedef enum ref_access { REF_READ, REF_WRITE, REF_ATOMIC } ref_access;

/* Refuses a grid that checks cannot count. */
vyre_code ref_check_grid(const ref_machine *m);
struct ref_check *ref_check_make(const ref_machine *m, vyre_status *st);
void ref_check_bounds(ref_machine *m, vyre__id id, uint32_t lane,
                      uint64_t index, bool negative);
void ref_check_access(ref_machine *m, vyre__id id, uint32_t lane,
                      uint64_t index, ref_access access);
/* After a grid barrier: @p epoch is where all workgroups go on. */
void ref_check_grid_barrier(ref_machine *m, uint32_t epoch);

typedef struct ref_key {
  vyre__id node, other;
} ref_key;

/* A new finding to fill, or NULL (too many; or no memory: m->code). A known one
 * with the same kind and nodes is counted, and gives NULL. */
vyre_finding *ref_finding(ref_machine *m, vyre_finding_kind kind, vyre__id node,
                          vyre__id other);
const char *ref_finding_text(ref_machine *m, const char *format, ...)
    VYRE__PRINTF(2, 3);
void ref_global_id(const ref_machine *m, uint64_t group, uint32_t lane,
                   uint32_t out[3]);

/* Runs the schedules after the canonical run @p m and adds what they show. */
vyre_code ref_check_order(ref_machine *m, const unsigned char *const *initial);

#endif
