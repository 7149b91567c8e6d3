/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A whole dispatch, once. Between grid barriers workgroups run one after the
 * other, in the order of the schedule. A program with grid barriers keeps the
 * frame of every workgroup and goes through its top statements: stretches without
 * a barrier are run by each workgroup in turn, loops around a barrier here. */
#include <string.h>

#include "backend/ref/ref.h"
#include "base/checked_math.h"
#include "base/memory.h"
#include "base/status.h"
#include "ir/scalar.h"

/* --- frames ----------------------------------------------------------------- */

static uint64_t *frame_slot(const ref_machine *m, const ref_frame *frame,
                            uint32_t slot) {
  return frame->slots + (size_t)slot * m->lanes;
}

static uint32_t fixed_slots(const ref_machine *m) {
  return m->program->functions[0].local_count;
}

static uint64_t *frame_returned(const ref_machine *m, const ref_frame *frame) {
  return frame_slot(m, frame, fixed_slots(m));
}

static uint64_t *frame_fuel(const ref_machine *m, const ref_frame *frame) {
  return frame_slot(m, frame, fixed_slots(m) + 1);
}

typedef enum loop_slot { LOOP_INSIDE, LOOP_ACTIVE, LOOP_CONTINUED } loop_slot;

static uint64_t *frame_loop(const ref_machine *m, const ref_frame *frame,
                            uint32_t depth, loop_slot which) {
  return frame_slot(
      m, frame,
      fixed_slots(m) + REF_FRAME_FIXED + REF_FRAME_LOOP * (depth - 1) + which);
}

/* The lanes that run at some depth of loops with grid barriers. */
static uint64_t *frame_mask(const ref_machine *m, const ref_frame *frame,
                            uint32_t depth) {
  if (depth == 0) return frame_slot(m, frame, fixed_slots(m) + 2);
  return frame_loop(m, frame, depth, LOOP_INSIDE);
}

static void fill(const ref_machine *m, uint64_t *slot, uint64_t value) {
  for (uint32_t i = 0; i < m->lanes; i++) slot[i] = value;
}

static void frame_begin(const ref_machine *m, ref_frame *frame) {
  fill(m, frame_returned(m, frame), 0);
  fill(m, frame_fuel(m, frame), 0);
  fill(m, frame_mask(m, frame, 0), UINT64_MAX);
  frame->epoch = 1;
}

static void clear_shared(const ref_machine *m, ref_frame *frame) {
  size_t bytes = m->pipeline->shape.shared_bytes;
  if (bytes > 0) memset(frame->shared, 0, bytes);
}

static ref_frame *frame_of(const ref_machine *m, uint64_t group) {
  return &m->frames[m->frame_count > 1 ? group : 0];
}

static void group_id(const ref_machine *m, uint64_t group, uint32_t out[3]) {
  const uint32_t *grid = m->launch->grid;
  out[0] = (uint32_t)(group % grid[0]);
  out[1] = (uint32_t)(group / grid[0] % grid[1]);
  out[2] = (uint32_t)(group / grid[0] / grid[1]);
}

/* Makes @p group the workgroup that runs. */
static void switch_to(ref_machine *m, uint64_t group, uint32_t depth) {
  ref_frame *frame = frame_of(m, group);
  m->frame = frame;
  m->group_index = group;
  group_id(m, group, m->group);
  m->fuel = frame_fuel(m, frame);
  m->activation = (ref_activation){.locals = frame->slots,
                                   .returned = frame_returned(m, frame)};
  m->loop.continued =
      depth > 0 ? frame_loop(m, frame, depth, LOOP_CONTINUED) : NULL;
  for (size_t i = 0; i < m->program->buffer_count; i++) {
    ref_view *view = &m->views[i];
    if (view->is_shared) view->data = frame->shared + view->shared_offset;
  }
  m->top = 0;
}

/* --- stretches without a grid barrier --------------------------------------- */

static ref_order group_order(const ref_machine *m) {
  const ref_schedule *schedule = &m->schedule;
  if (!schedule->permute_groups) return ref_order_forward(m->group_count);
  if (schedule->backward) return ref_order_backward(m->group_count);
  return ref_order_make(m->group_count, schedule->seed);
}

static void run_stretch(ref_machine *m, const uint32_t *ids, uint32_t count,
                        uint32_t depth) {
  ref_mask mask = {frame_mask(m, m->frame, depth), 0};
  mask.count = ref_mask_count(m, mask.lane);
  for (uint32_t i = 0; i < count; i++) {
    if (mask.count == 0 || m->code != VYRE_OK) return;
    ref_exec(m, ids[i], &mask);
  }
}

static void run_all(ref_machine *m, const uint32_t *ids, uint32_t count,
                    uint32_t depth) {
  ref_order order = group_order(m);
  for (uint64_t k = 0; k < m->group_count && m->code == VYRE_OK; k++) {
    switch_to(m, ref_order_at(&order, k), depth);
    run_stretch(m, ids, count, depth);
    if (!ref_in_time(m)) return;
  }
}

/* --- programs that keep a frame for each workgroup -------------------------- */

static void grid_exec(ref_machine *m, vyre__id id, uint32_t depth);

static void grid_block(ref_machine *m, const vyre__node *node, uint32_t depth) {
  const uint32_t *list = m->program->lists + node->a;
  const uint8_t *has_grid = m->pipeline->shape.has_grid;
  uint32_t i = 0;
  while (i < node->b && m->code == VYRE_OK) {
    if (has_grid[list[i]]) {
      grid_exec(m, list[i++], depth);
      continue;
    }
    uint32_t first = i++;
    while (!m->schedule.by_statement && i < node->b && !has_grid[list[i]]) i++;
    run_all(m, list + first, i - first, depth);
  }
}

/* Whether anybody is here: all are, or none is, as validation has proven. After a
 * break, continue or return that all took, nobody is. */
static bool is_anybody_here(ref_machine *m, uint32_t depth) {
  for (uint64_t g = 0; g < m->frame_count; g++) {
    if (ref_mask_count(m, frame_mask(m, &m->frames[g], depth)) > 0) return true;
  }
  return false;
}

/* Every workgroup has got here; all go on in an epoch that none was in yet. */
static void grid_barrier(ref_machine *m, uint32_t depth) {
  uint32_t epoch = 0;
  if (!is_anybody_here(m, depth)) return;
  for (uint64_t g = 0; g < m->frame_count; g++) {
    if (m->frames[g].epoch > epoch) epoch = m->frames[g].epoch;
  }
  for (uint64_t g = 0; g < m->frame_count; g++) {
    m->frames[g].epoch = epoch + 1;
    clear_shared(m, &m->frames[g]);
  }
  if (m->check) ref_check_grid_barrier(m, epoch + 1);
}

/* A bound of a loop around a grid barrier is the same everywhere. */
static uint64_t grid_value(ref_machine *m, vyre__id id, uint32_t depth) {
  switch_to(m, 0, depth);
  ref_mask all = {ref_push(m), m->lanes};
  fill(m, all.lane, UINT64_MAX);
  uint64_t value = ref_eval(m, id, &all)[0];
  m->top = 0;
  return value;
}

/* Sets up one time round in every workgroup; false if no lane is left. */
static bool grid_round(ref_machine *m, vyre__id id, uint32_t depth,
                       uint64_t value) {
  bool any = false;
  for (uint64_t g = 0; g < m->frame_count; g++) {
    switch_to(m, g, depth);
    uint64_t *active = frame_loop(m, m->frame, depth, LOOP_ACTIVE);
    if (ref_mask_count(m, active) > 0) any = true;
    memcpy(frame_loop(m, m->frame, depth, LOOP_INSIDE), active,
           m->lanes * sizeof(uint64_t));
    fill(m, frame_loop(m, m->frame, depth, LOOP_CONTINUED), 0);
    fill(m, ref_local(m, m->nodes[id].a), value);
    if (!ref_loop_tick(m, id, active)) return false;
  }
  return any;
}

/* Who is still in the loop after a time round. */
static void grid_round_end(ref_machine *m, uint32_t depth) {
  for (uint64_t g = 0; g < m->frame_count; g++) {
    const ref_frame *frame = &m->frames[g];
    uint64_t *active = frame_loop(m, frame, depth, LOOP_ACTIVE);
    const uint64_t *inside = frame_loop(m, frame, depth, LOOP_INSIDE);
    const uint64_t *continued = frame_loop(m, frame, depth, LOOP_CONTINUED);
    for (uint32_t i = 0; i < m->lanes; i++) {
      active[i] = inside[i] | continued[i];
    }
  }
}

static void grid_for(ref_machine *m, vyre__id id, uint32_t depth) {
  const vyre__node *node = &m->nodes[id];
  const uint32_t *list = m->program->lists + node->b;
  vyre_type type = m->nodes[list[0]].type;
  uint64_t value = grid_value(m, list[0], depth);
  uint64_t bound = grid_value(m, list[1], depth);
  uint64_t step = vyre__literal(&m->nodes[list[2]]);
  for (uint64_t g = 0; g < m->frame_count; g++) {
    const ref_frame *frame = &m->frames[g];
    memcpy(frame_loop(m, frame, depth + 1, LOOP_ACTIVE),
           frame_mask(m, frame, depth), m->lanes * sizeof(uint64_t));
  }
  uint64_t fits = UINT64_MAX;
  while (fits && m->code == VYRE_OK) {
    const uint64_t args[3] = {value, bound, 0};
    uint64_t goes_on = 0;
    (void)vyre__scalar_apply(ref_loop_test(node->aux), type, VYRE_TYPE_BOOL,
                             args, &goes_on);
    if (!goes_on || !grid_round(m, id, depth + 1, value)) break;
    grid_exec(m, list[3], depth + 1);
    grid_round_end(m, depth + 1);
    ref_loop_step(type, node->aux, step, 1, &value, &fits);
  }
  for (uint64_t g = 0; g < m->frame_count; g++) {
    const ref_frame *frame = &m->frames[g];
    uint64_t *mask = frame_mask(m, frame, depth);
    const uint64_t *returned = frame_returned(m, frame);
    for (uint32_t i = 0; i < m->lanes; i++) mask[i] &= ~returned[i];
  }
}

/* @p id has a grid barrier inside, or the schedule goes by statements. */
static void grid_exec(ref_machine *m, vyre__id id, uint32_t depth) {
  const vyre__node *node = &m->nodes[id];
  switch (node->op) {
    case VYRE__OP_BLOCK:
      grid_block(m, node, depth);
      return;
    case VYRE__OP_GRID_BARRIER:
      grid_barrier(m, depth);
      return;
    case VYRE__OP_FOR:
      grid_for(m, id, depth);
      return;
    default: /* validation lets none through */
      ref_fail(
          m, VYRE_FAIL(m->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                       "move grid_barrier(); to the top of the kernel or "
                       "into for loops",
                       "kernel '%.60s' has a grid barrier in a statement "
                       "that cannot have one",
                       m->program->name));
      return;
  }
}

/* --- the run ---------------------------------------------------------------- */

/* No grid barrier: one frame does for all, which take turns. */
static void run_groups(ref_machine *m) {
  uint32_t body = m->program->functions[0].body;
  ref_order order = group_order(m);
  uint32_t turns = m->workgroup_lanes / m->lanes;
  for (uint64_t k = 0; k < m->group_count && m->code == VYRE_OK; k++) {
    uint64_t group = ref_order_at(&order, k);
    ref_order lanes = turns > 1 ? ref_order_make(turns, m->schedule.seed + k)
                                : ref_order_forward(1);
    clear_shared(m, m->frames);
    for (uint32_t turn = 0; turn < turns && m->code == VYRE_OK; turn++) {
      m->first_lane = (uint32_t)ref_order_at(&lanes, turn) * m->lanes;
      m->rounds = 0;
      frame_begin(m, m->frames);
      switch_to(m, group, 0);
      run_stretch(m, &body, 1, 0);
    }
    if (!ref_in_time(m) || m->code != VYRE_OK) return;
    vyre__progress_add(m->launch, 1);
  }
}

/* The ids of @p group for its lanes; one beyond the grid does not run. */
static void place_part(ref_machine *m, uint64_t group, uint32_t first) {
  uint64_t *mask = frame_mask(m, m->frame, 0);
  uint32_t id[3];
  group_id(m, group, id);
  for (uint32_t i = first; i < first + m->workgroup_lanes; i++) {
    for (int axis = 0; axis < 3; axis++) m->group_ids[axis][i] = id[axis];
    if (group >= m->group_count) mask[i] = 0;
  }
}

/* Small workgroups, several at a time: each has its part of the lanes. */
static void run_batches(ref_machine *m) {
  uint32_t body = m->program->functions[0].body;
  for (uint64_t k = 0; k < m->group_count && m->code == VYRE_OK;
       k += m->batch) {
    m->rounds = 0;
    frame_begin(m, m->frames);
    switch_to(m, k, 0);
    for (uint32_t part = 0; part < m->batch; part++) {
      place_part(m, k + part, part * m->workgroup_lanes);
    }
    run_stretch(m, &body, 1, 0);
    if (!ref_in_time(m) || m->code != VYRE_OK) return;
    uint64_t left = m->group_count - k;
    vyre__progress_add(m->launch, left < m->batch ? left : m->batch);
  }
}

static void run_frames(ref_machine *m) {
  for (uint64_t g = 0; g < m->frame_count; g++) {
    frame_begin(m, &m->frames[g]);
    clear_shared(m, &m->frames[g]);
  }
  grid_exec(m, m->program->functions[0].body, 0);
}

static vyre_code no_frames(const ref_machine *m) {
  return vyre__no_memory(m->st, "ref", "invocations' locals",
                         m->frame_count * m->lanes);
}

/* All frames in one piece each of slots and of shared memory, zeroed: lanes that
 * never ran hold numbers too. */
static vyre_code make_frames(ref_machine *m) {
  const ref_shape *shape = &m->pipeline->shape;
  bool keep = shape->has_grid_barrier || m->schedule.by_statement;
  m->frame_count = keep ? m->group_count : 1;
  m->frame_slots = ref_frame_slots(m->pipeline);
  size_t lanes = (size_t)m->frame_slots * m->lanes, slots, shared, bytes;
  if (!vyre__mul(m->frame_count, lanes, &slots)) return no_frames(m);
  if (!vyre__mul(m->frame_count, shape->shared_bytes, &shared)) {
    return no_frames(m);
  }
  if (!vyre__mul(slots, sizeof(uint64_t), &bytes)) return no_frames(m);
  m->frames = vyre__arena_array(m->arena, m->frame_count, sizeof *m->frames);
  uint64_t *all = vyre_arena_alloc(m->arena, bytes, 0);
  unsigned char *memory = vyre_arena_alloc(m->arena, shared, 0);
  if (!m->frames || !all || !memory) return no_frames(m);
  memset(all, 0, bytes);
  for (uint64_t g = 0; g < m->frame_count; g++) {
    m->frames[g] = (ref_frame){.slots = all + g * lanes,
                               .shared = memory + g * shape->shared_bytes};
  }
  return VYRE_OK;
}

static vyre_code make_stack(ref_machine *m) {
  m->limit = m->pipeline->shape.temporary_slots;
  size_t count;
  m->temporaries = NULL;
  if (vyre__mul(m->limit, m->lanes, &count)) {
    m->temporaries = vyre__arena_array(m->arena, count, sizeof(uint64_t));
  }
  if (!m->temporaries) {
    return vyre__no_memory(m->st, "ref", "temporaries", m->limit);
  }
  memset(m->temporaries, 0, count * sizeof(uint64_t));
  return VYRE_OK;
}

static vyre_code make_ids(ref_machine *m) {
  const uint32_t *size = m->pipeline->base.workgroup;
  uint32_t count = m->workgroup_lanes * m->batch;
  for (int axis = 0; axis < 3; axis++) {
    m->local_ids[axis] = vyre__arena_array(m->arena, count, sizeof(uint64_t));
    m->group_ids[axis] = vyre__arena_array(m->arena, count, sizeof(uint64_t));
    if (!m->local_ids[axis] || !m->group_ids[axis]) {
      return vyre__no_memory(m->st, "ref", "ids", count);
    }
  }
  for (uint32_t i = 0; i < count; i++) {
    m->local_ids[0][i] = i % size[0];
    m->local_ids[1][i] = i / size[0] % size[1];
    m->local_ids[2][i] = i / size[0] / size[1] % size[2];
  }
  return VYRE_OK;
}

enum { BATCH_LANES = 256 };

vyre_code ref_run(ref_machine *m) {
  const uint32_t *size = m->pipeline->base.workgroup;
  const uint32_t *grid = m->launch->grid;
  m->workgroup_lanes = size[0] * size[1] * size[2];
  bool plain = !m->check && !m->node_hashes; /* checks ask who did it */
  bool batches = plain && m->pipeline->shape.can_batch;
  m->group_count = (uint64_t)grid[0] * grid[1] * grid[2];
  m->batch = 1;
  if (batches && m->workgroup_lanes < BATCH_LANES) {
    /* Lanes of workgroups that are not there would cost as much as others. */
    uint32_t most = BATCH_LANES / m->workgroup_lanes;
    m->batch = m->group_count < most ? (uint32_t)m->group_count : most;
  }
  m->lanes = m->schedule.lanes_one_by_one ? 1 : m->workgroup_lanes * m->batch;
  m->first_lane = 0;
  m->code = VYRE_OK;
  VYRE_TRY(make_frames(m));
  VYRE_TRY(make_stack(m));
  VYRE_TRY(make_ids(m));
  bool keep = m->pipeline->shape.has_grid_barrier || m->schedule.by_statement;
  vyre__progress_begin(m->launch, keep ? 0 : m->group_count);
  if (keep) {
    run_frames(m);
  } else if (m->batch > 1) {
    run_batches(m);
  } else {
    run_groups(m);
  }
  return m->code;
}
