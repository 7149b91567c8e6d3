/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs one dispatch. Between grid barriers, workgroups run one after the other,
 * in the order of the schedule. A program with grid barriers keeps the frame of
 * every workgroup. Each workgroup in turn runs the statements between two
 * barriers; loops around a barrier are run here for all workgroups together. */
#include <string.h>

#include "backend/ref/ref.h"
#include "base/checked_math.h"
#include "base/memory.h"
#include "base/status.h"
#include "ir/scalar.h"
#include "ir/sum.h"

/* --- frames ----------------------------------------------------------------*/

static uint64_t *frame_vector(const ref_machine *m, const ref_frame *frame,
                              uint32_t vector) {
  return frame->vectors + (size_t)vector * m->lanes;
}

static uint32_t local_vectors(const ref_machine *m) {
  return m->program->functions[0].local_count;
}

static uint64_t *frame_returned(const ref_machine *m, const ref_frame *frame) {
  return frame_vector(m, frame, local_vectors(m));
}

static uint64_t *frame_fuel(const ref_machine *m, const ref_frame *frame) {
  return frame_vector(m, frame, local_vectors(m) + 1);
}

typedef enum loop_vector {
  LOOP_INSIDE,
  LOOP_ACTIVE,
  LOOP_CONTINUED
} loop_vector;

static uint64_t *frame_loop(const ref_machine *m, const ref_frame *frame,
                            uint32_t depth, loop_vector which) {
  return frame_vector(m, frame,
                      local_vectors(m) + REF_FRAME_FIXED +
                          REF_FRAME_LOOP * (depth - 1) + which);
}

/* Returns the mask of the active lanes at a depth of grid loops. */
static uint64_t *frame_mask(const ref_machine *m, const ref_frame *frame,
                            uint32_t depth) {
  if (depth == 0) return frame_vector(m, frame, local_vectors(m) + 2);
  return frame_loop(m, frame, depth, LOOP_INSIDE);
}

static void fill(const ref_machine *m, uint64_t *vector, uint64_t value) {
  for (uint32_t i = 0; i < m->lanes; i++) vector[i] = value;
}

static void frame_begin(const ref_machine *m, ref_frame *frame) {
  fill(m, frame_returned(m, frame), 0);
  fill(m, frame_fuel(m, frame), 0);
  fill(m, frame_mask(m, frame, 0), UINT64_MAX);
  frame->epoch = 1;
}

static void clear_shared(const ref_machine *m, ref_frame *frame) {
  size_t bytes = m->pipeline->info.zeroed_bytes;
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

/* Makes @p group the running workgroup. */
static void switch_to(ref_machine *m, uint64_t group, uint32_t depth) {
  ref_frame *frame = frame_of(m, group);
  m->frame = frame;
  m->group_index = group;
  group_id(m, group, m->group);
  m->fuel = frame_fuel(m, frame);
  m->activation = (ref_activation){.locals = frame->vectors,
                                   .returned = frame_returned(m, frame)};
  m->loop.continued =
      depth > 0 ? frame_loop(m, frame, depth, LOOP_CONTINUED) : NULL;
  for (size_t i = 0; i < m->program->buffer_count; i++) {
    ref_view *view = &m->views[i];
    if (view->is_shared) view->data = frame->shared + view->shared_offset;
  }
  m->top = 0;
}

/* --- statements without a grid barrier -------------------------------------*/

static ref_order group_order(const ref_machine *m) {
  const ref_schedule *schedule = &m->schedule;
  if (!schedule->permute_groups) return ref_order_forward(m->group_count);
  if (schedule->backward) return ref_order_backward(m->group_count);
  return ref_order_make(m->group_count, schedule->seed);
}

static void run_statements(ref_machine *m, const uint32_t *ids, uint32_t count,
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
    run_statements(m, ids, count, depth);
    if (!ref_in_time(m)) return;
  }
}

/* --- programs with a frame for each workgroup ------------------------------*/

static void grid_exec(ref_machine *m, vyre__id id, uint32_t depth);

static void grid_block(ref_machine *m, const vyre__node *node, uint32_t depth) {
  const uint32_t *list = m->program->lists + node->a;
  const uint8_t *has_grid = m->pipeline->info.has_grid;
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

/* Returns true if any lane is active. Validation has proven that a grid barrier
 * is reached by all lanes or by none; by none after a break, continue or return
 * of all lanes. */
static bool has_active_lane(ref_machine *m, uint32_t depth) {
  for (uint64_t g = 0; g < m->frame_count; g++) {
    if (ref_mask_count(m, frame_mask(m, &m->frames[g], depth)) > 0) return true;
  }
  return false;
}

/* Runs a grid barrier: all workgroups continue in a new epoch. */
static void grid_barrier(ref_machine *m, uint32_t depth) {
  uint32_t epoch = 0;
  if (!has_active_lane(m, depth)) return;
  for (uint64_t g = 0; g < m->frame_count; g++) {
    if (m->frames[g].epoch > epoch) epoch = m->frames[g].epoch;
  }
  for (uint64_t g = 0; g < m->frame_count; g++) {
    m->frames[g].epoch = epoch + 1;
    clear_shared(m, &m->frames[g]);
  }
  if (m->check) ref_check_grid_barrier(m, epoch + 1);
}

/* Evaluates a bound of a grid loop, which is the same for all invocations. */
static uint64_t grid_value(ref_machine *m, vyre__id id, uint32_t depth) {
  switch_to(m, 0, depth);
  ref_mask all = {ref_push(m), m->lanes};
  fill(m, all.lane, UINT64_MAX);
  uint64_t value = ref_eval(m, id, &all)[0];
  m->top = 0;
  return value;
}

/* Starts an iteration in every workgroup. Returns false if no lane is
 * active. */
static bool begin_grid_iteration(ref_machine *m, vyre__id id, uint32_t depth,
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

/* Ends an iteration: lanes that did not break or return stay active. */
static void end_grid_iteration(ref_machine *m, uint32_t depth) {
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
    uint64_t continues = 0;
    (void)vyre__scalar_apply(ref_loop_test(node->aux), type, VYRE_TYPE_BOOL,
                             args, &continues);
    if (!continues || !begin_grid_iteration(m, id, depth + 1, value)) break;
    grid_exec(m, list[3], depth + 1);
    end_grid_iteration(m, depth + 1);
    ref_loop_step(type, node->aux, step, 1, &value, &fits);
  }
  for (uint64_t g = 0; g < m->frame_count; g++) {
    const ref_frame *frame = &m->frames[g];
    uint64_t *mask = frame_mask(m, frame, depth);
    const uint64_t *returned = frame_returned(m, frame);
    for (uint32_t i = 0; i < m->lanes; i++) mask[i] &= ~returned[i];
  }
}

/* Executes a statement that contains a grid barrier, or any statement if the
 * schedule goes by statements. */
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
    default: /* validation rejects these */
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

/* --- the dispatch ----------------------------------------------------------*/

/* Runs a program without grid barriers: all workgroups use one frame in
 * turn. */
static void run_groups(ref_machine *m) {
  uint32_t body = m->program->functions[0].body;
  ref_order order = group_order(m);
  uint32_t passes = m->workgroup_lanes / m->lanes;
  for (uint64_t k = 0; k < m->group_count && m->code == VYRE_OK; k++) {
    uint64_t group = ref_order_at(&order, k);
    ref_order lanes = passes > 1 ? ref_order_make(passes, m->schedule.seed + k)
                                 : ref_order_forward(1);
    clear_shared(m, m->frames);
    for (uint32_t pass = 0; pass < passes && m->code == VYRE_OK; pass++) {
      m->first_lane = (uint32_t)ref_order_at(&lanes, pass) * m->lanes;
      m->iterations = 0;
      frame_begin(m, m->frames);
      switch_to(m, group, 0);
      run_statements(m, &body, 1, 0);
    }
    if (!ref_in_time(m) || m->code != VYRE_OK) return;
    vyre__progress_add(m->launch, 1);
  }
}

/* Sets the ids of the lanes of @p group. Disables them if it is beyond the
 * grid. */
static void set_group_ids(ref_machine *m, uint64_t group, uint32_t first) {
  uint64_t *mask = frame_mask(m, m->frame, 0);
  uint32_t id[3];
  group_id(m, group, id);
  for (uint32_t i = first; i < first + m->workgroup_lanes; i++) {
    for (int axis = 0; axis < 3; axis++) m->group_ids[axis][i] = id[axis];
    if (group >= m->group_count) mask[i] = 0;
  }
}

/* Runs several small workgroups at a time; each has a range of the lanes. */
static void run_batches(ref_machine *m) {
  uint32_t body = m->program->functions[0].body;
  for (uint64_t k = 0; k < m->group_count && m->code == VYRE_OK;
       k += m->batch) {
    m->iterations = 0;
    frame_begin(m, m->frames);
    switch_to(m, k, 0);
    for (uint32_t member = 0; member < m->batch; member++) {
      set_group_ids(m, k + member, member * m->workgroup_lanes);
    }
    run_statements(m, &body, 1, 0);
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

/* Allocates all frames, zeroed: lanes that never run also need defined
 * values. */
static vyre_code make_frames(ref_machine *m) {
  const ref_program_info *info = &m->pipeline->info;
  bool keeps_frames = info->has_grid_barrier || m->schedule.by_statement;
  m->frame_count = keeps_frames ? m->group_count : 1;
  m->frame_vectors = ref_frame_vectors(m->pipeline);
  size_t lanes = (size_t)m->frame_vectors * m->lanes, vectors, shared, bytes;
  if (!vyre__mul(m->frame_count, lanes, &vectors)) return no_frames(m);
  if (!vyre__mul(m->frame_count, info->shared_bytes, &shared)) {
    return no_frames(m);
  }
  if (!vyre__mul(vectors, sizeof(uint64_t), &bytes)) return no_frames(m);
  m->frames = vyre__arena_array(m->arena, m->frame_count, sizeof *m->frames);
  uint64_t *all = vyre_arena_alloc(m->arena, bytes, 0);
  unsigned char *memory = vyre_arena_alloc(m->arena, shared, 0);
  if (!m->frames || !all || !memory) return no_frames(m);
  memset(all, 0, bytes);
  for (uint64_t g = 0; g < m->frame_count; g++) {
    m->frames[g] = (ref_frame){.vectors = all + g * lanes,
                               .shared = memory + g * info->shared_bytes};
  }
  return VYRE_OK;
}

static vyre_code make_stack(ref_machine *m) {
  m->limit = m->pipeline->info.temporary_vectors;
  size_t count;
  m->temporaries = NULL;
  if (vyre__mul(m->limit, m->lanes, &count)) {
    m->temporaries = vyre__arena_filled(m->arena, count, sizeof(uint64_t), 0);
  }
  if (!m->temporaries) {
    return vyre__no_memory(m->st, "ref", "temporaries", m->limit);
  }
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

void ref_settle_sums(ref_machine *m) {
  for (uint32_t b = 0; b < m->program->buffer_count; b++) {
    const ref_view *view = &m->views[b];
    if (!vyre__changes_sums(m->program, b)) continue;
    for (uint64_t i = 0; i < view->length; i++) {
      vyre__sum_settle(view->element, view->data + i * view->stride);
    }
  }
}

vyre_code ref_prepare(ref_machine *m) {
  const uint32_t *size = m->pipeline->base.workgroup;
  const uint32_t *grid = m->launch->grid;
  m->workgroup_lanes = size[0] * size[1] * size[2];
  /* checks and queues need one group at a time */
  bool plain = !m->check && !m->node_hashes && !m->chunk;
  bool batches = plain && m->pipeline->info.can_batch;
  m->group_count = (uint64_t)grid[0] * grid[1] * grid[2];
  m->batch = 1;
  if (batches && m->workgroup_lanes < BATCH_LANES) {
    /* Not more than there are: lanes beyond the grid cost as much as others. */
    uint32_t max = BATCH_LANES / m->workgroup_lanes;
    m->batch = m->group_count < max ? (uint32_t)m->group_count : max;
  }
  m->lanes = m->schedule.lanes_one_by_one ? 1 : m->workgroup_lanes * m->batch;
  m->first_lane = 0;
  m->code = VYRE_OK;
  VYRE_TRY(make_frames(m));
  VYRE_TRY(make_stack(m));
  return make_ids(m);
}

vyre_code ref_run_items(ref_machine *m, uint64_t count) {
  m->group_count = count;
  run_groups(m);
  return m->code;
}

vyre_code ref_run(ref_machine *m) {
  VYRE_TRY(ref_prepare(m));
  bool keeps_frames =
      m->pipeline->info.has_grid_barrier || m->schedule.by_statement;
  vyre__progress_begin(m->launch, keeps_frames ? 0 : m->group_count);
  if (keeps_frames) {
    run_frames(m);
  } else if (m->batch > 1) {
    run_batches(m);
  } else {
    run_groups(m);
  }
  ref_settle_sums(m);
  return m->code;
}
