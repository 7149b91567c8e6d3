/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks for order dependence: repeats the dispatch in other orders and
 * compares the outputs byte for byte with the first run. If they differ,
 * changes the order of one atomic at a time to find the cause. */
#include <string.h>

#include "backend/ref/ref.h"
#include "base/memory.h"
#include "base/status.h"

typedef struct trial {
  ref_machine *canonical;
  const unsigned char *const *initial; /* for each buffer; NULL: not written */
  vyre__launch launch;                 /* the same, without print */
  ref_view *views;                     /* with separate memory for outputs */
  uint64_t *hashes;                    /* atomics of the last run */
  uint32_t buffer;                     /* of the first difference */
  uint64_t index;
} trial;

enum { MAX_FRAME_BYTES = 1 << 28 };

static size_t bytes_of(const ref_view *view) {
  return (size_t)view->length * view->stride;
}

static vyre_code make_trial(trial *t) {
  const ref_machine *m = t->canonical;
  size_t count = m->program->buffer_count;
  uint32_t nodes = m->program->node_count;
  t->launch = *m->launch;
  t->launch.print = (vyre_writer){0};
  t->views = vyre__arena_array(m->arena, count, sizeof *t->views);
  t->hashes = vyre__arena_array(m->arena, nodes, sizeof *t->hashes);
  if (!t->views || !t->hashes) {
    return vyre__no_memory(m->st, "ref", "views", count);
  }
  for (size_t i = 0; i < count; i++) {
    t->views[i] = m->views[i];
    if (!t->initial[i]) continue;
    t->views[i].data = vyre_arena_alloc(m->arena, bytes_of(&m->views[i]), 0);
    if (!t->views[i].data) {
      return vyre__no_memory(m->st, "ref", "bytes of outputs",
                             bytes_of(&m->views[i]));
    }
  }
  return VYRE_OK;
}

/* Returns true if the last run gave other outputs, and records the first
 * one. */
static bool differs(trial *t) {
  const ref_machine *m = t->canonical;
  for (uint32_t b = 0; b < m->program->buffer_count; b++) {
    size_t bytes = bytes_of(&m->views[b]);
    if (!t->initial[b] || bytes == 0) continue;
    const unsigned char *expected = m->views[b].data, *got = t->views[b].data;
    if (memcmp(expected, got, bytes) == 0) continue;
    size_t at = 0;
    while (expected[at] == got[at]) at++;
    t->buffer = b;
    t->index = at / m->views[b].stride;
    return true;
  }
  return false;
}

static vyre_code run_trial(trial *t, const ref_schedule *schedule,
                           bool *different) {
  const ref_machine *m = t->canonical;
  for (size_t i = 0; i < m->program->buffer_count; i++) {
    size_t bytes = bytes_of(&m->views[i]);
    if (t->initial[i] && bytes) memcpy(t->views[i].data, t->initial[i], bytes);
  }
  memset(t->hashes, 0, m->program->node_count * sizeof *t->hashes);
  ref_machine machine = {.pipeline = m->pipeline,
                         .program = m->program,
                         .nodes = m->nodes,
                         .launch = &t->launch,
                         .schedule = *schedule,
                         .arena = m->arena,
                         .st = m->st,
                         .views = t->views,
                         .node_hashes = t->hashes};
  vyre__arena_mark here = vyre__arena_here(m->arena);
  vyre_code code = ref_run(&machine);
  vyre__arena_rewind(m->arena, here);
  if (code == VYRE_OK) *different = differs(t);
  return code;
}

/* --- finding the cause -----------------------------------------------------*/

static bool is_atomic(const ref_machine *m, vyre__id id) {
  return vyre__ops[m->nodes[id].op].flags & VYRE__OPF_ATOMICS;
}

static void report_order(trial *t, vyre__id id) {
  ref_machine *m = t->canonical;
  vyre_finding *f = ref_finding(m, VYRE_FINDING_ORDER_DEPENDENCE, id, 0);
  if (!f) return;
  f->buffer = m->program->buffers[t->buffer].name;
  f->index = t->index;
  f->length = (uint32_t)m->views[t->buffer].length;
  f->message = ref_finding_text(
      m, "'%.100s'[%llu] depends on the order in which invocations %s",
      f->buffer, (unsigned long long)f->index,
      id ? "come to this atomic" : "run");
  f->fix = id ? "keep the value that the atomic returns, and the last writer's "
                "value, out of the outputs; compute positions with a scan "
                "instead"
              : "run the check with races on, to look for a race";
}

/* Runs with this atomic alone in another order. */
static vyre_code try_node(trial *t, vyre__id id, uint64_t seed, bool *blamed) {
  for (int backward = 1; backward >= 0 && !*blamed; backward--) {
    ref_schedule schedule = {
        .permute_lanes = true, .backward = backward, .only = id, .seed = seed};
    VYRE_TRY(run_trial(t, &schedule, blamed));
  }
  if (*blamed) report_order(t, id);
  return VYRE_OK;
}

/* Returns the likely cause if the order of workgroups matters: the first atomic
 * whose used results differ; otherwise an exchange, whose last write stays. */
static vyre__id suspect(const trial *t, const uint64_t *hashes) {
  const ref_machine *m = t->canonical;
  uint32_t count = m->program->node_count;
  for (vyre__id id = 1; id < count; id++) {
    if (!is_atomic(m, id) || m->pipeline->info.is_ignored[id]) continue;
    if (m->node_hashes[id] != hashes[id]) return id;
  }
  for (vyre__id id = 1; id < count; id++) {
    uint8_t op = m->nodes[id].op;
    if (op != VYRE__OP_ATOMIC_EXCHANGE && op != VYRE__OP_ATOMIC_CAS) continue;
    if (hashes[id] != 0) return id;
  }
  return 0;
}

static bool has_race(const vyre_check_report *report) {
  for (size_t i = 0; i < report->count; i++) {
    if (report->findings[i].kind == VYRE_FINDING_RACE) return true;
  }
  return false;
}

static vyre_code blame(trial *t, uint64_t seed) {
  ref_machine *m = t->canonical;
  /* Computed first: further runs overwrite the hashes. */
  vyre__id likely = suspect(t, t->hashes);
  uint32_t buffer = t->buffer;
  uint64_t index = t->index;
  bool any = false;
  for (vyre__id id = 1; id < m->program->node_count; id++) {
    if (!is_atomic(m, id) || m->node_hashes[id] == 0) continue;
    bool blamed = false;
    VYRE_TRY(try_node(t, id, seed, &blamed));
    any = any || blamed;
  }
  if (any) return VYRE_OK;
  t->buffer = buffer;
  t->index = index;
  /* A race that was found already explains the difference. */
  if (likely || !has_race(m->launch->report)) report_order(t, likely);
  return VYRE_OK;
}

/* --- the schedules ---------------------------------------------------------*/

/* Returns true if frames for all workgroups fit in MAX_FRAME_BYTES. */
static bool can_keep_frames(const ref_machine *m) {
  uint64_t vectors = m->program->functions[0].local_count + REF_FRAME_FIXED;
  uint64_t bytes = vectors * m->workgroup_lanes * sizeof(uint64_t) +
                   m->pipeline->info.shared_bytes;
  return m->group_count <= MAX_FRAME_BYTES / bytes;
}

/* Chooses a schedule: backwards first, which finds the most, then by statement,
 * lane by lane, and random ones in turn. */
static ref_schedule choose(const ref_machine *m, uint32_t number) {
  const ref_program_info *info = &m->pipeline->info;
  ref_schedule schedule = {.permute_groups = true,
                           .permute_lanes = true,
                           .backward = number == 0,
                           .seed = ref_mix(m->launch->check.seed + number)};
  if (number % 4 == 1) {
    schedule.by_statement = !info->has_grid_barrier && can_keep_frames(m);
  } else if (number % 4 == 2) {
    schedule.lanes_one_by_one = !info->has_barrier;
  }
  return schedule;
}

vyre_code ref_check_order(ref_machine *m, const unsigned char *const *initial) {
  trial t = {.canonical = m, .initial = initial};
  VYRE_TRY(make_trial(&t));
  for (uint32_t i = 0; i < m->launch->check.schedules; i++) {
    ref_schedule schedule = choose(m, i);
    bool different = false;
    VYRE_TRY(run_trial(&t, &schedule, &different));
    m->launch->report->schedules++;
    if (!different) continue;
    VYRE_TRY(blame(&t, schedule.seed));
    break;
  }
  return m->code;
}
