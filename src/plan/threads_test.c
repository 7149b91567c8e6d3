/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Uses functions that headers call thread-safe from many threads at once: one
 * program, one graph, and an arena and scratch per thread. ThreadSanitizer
 * finds shared state; all builds check that the plans are equal. */
#include <pthread.h>

#include "vyre/vyre.h"

#include "support/check.h"

enum { THREADS = 8, ROUNDS = 50, WAVES = 500 };

typedef struct shared_input {
  const vyre_program *program;
  vyre_frontier_desc desc;
} shared_input;

typedef struct worker {
  const shared_input *input;
  pthread_t thread;
  vyre_hash128 layout;
  size_t groups;
  uint64_t placed;
  vyre_code code;
} worker;

static vyre_code plan_all(const shared_input *input, vyre_arena *arena,
                          vyre_barrier_scratch *waves,
                          vyre_placement_scratch *places, worker *out) {
  vyre_binding_plan bindings;
  vyre_layout_fingerprint layout;
  vyre_capture_plan capture;
  vyre_frontier_plan plan;
  vyre_placement_plan placement;
  const vyre_interval *intervals;
  vyre_code code =
      vyre_binding_plan_build(input->program, arena, &bindings, NULL);
  if (!code)
    code = vyre_layout_fingerprint_from_plan(&bindings, arena, &layout, NULL);
  if (!code) code = vyre_capture_plan_build(&bindings, &capture, NULL);
  if (!code) {
    code = vyre_frontier_plan_build(&input->desc, waves, arena, &plan, NULL);
  }
  if (!code) {
    code = vyre_frontier_intervals(&plan, &input->desc, 64, arena, &intervals,
                                   NULL);
  }
  vyre_placement_options quick = {.heuristic_steps = 1, .no_search = true};
  if (!code) {
    code = vyre_placement_plan_build(intervals, 3 * input->desc.wave_count,
                                     &quick, places, arena, &placement, NULL);
  }
  if (code) return code;
  out->layout = layout.hash;
  out->groups = plan.barriers.group_count;
  out->placed = placement.placed_bytes;
  return VYRE_OK;
}

static void *work(void *self) {
  worker *me = self;
  vyre_arena arena = {0};
  vyre_barrier_scratch waves = {0};
  vyre_placement_scratch places = {0};
  for (int i = 0; i < ROUNDS && me->code == VYRE_OK; i++) {
    vyre_arena_reset(&arena);
    me->code = plan_all(me->input, &arena, &waves, &places, me);
  }
  vyre_placement_scratch_deinit(&places);
  vyre_barrier_scratch_deinit(&waves);
  vyre_arena_deinit(&arena);
  return NULL;
}

TEST(planners_are_safe_from_many_threads_at_once) {
  vyre_buffer_decl buffers[] = {
      {.name = "x", .binding = 0, .element = VYRE_ELEMENT_F32},
      {.name = "y", .binding = 1, .access = VYRE_ACCESS_READ_WRITE}};
  vyre_program_desc desc = {buffers, 2, {64, 1, 1}};
  vyre_program *program;
  vyre_status st = {0};
  CHECK_OK(vyre_program_create(&desc, (vyre_allocator){0}, &program, &st), st);
  static vyre_frontier_wave waves[WAVES];
  static vyre_wave_dependency deps[WAVES];
  uint64_t state = 3;
  for (uint64_t i = 0; i < WAVES; i++) {
    waves[i] = (vyre_frontier_wave){random_below(&state, 1000), i % 7, i % 100};
    deps[i] = (vyre_wave_dependency){i == 0 ? 0 : random_below(&state, i),
                                     i == 0 ? 1 : i};
  }
  shared_input input = {program, {waves, WAVES, deps, WAVES, 0, 100000, 0}};
  static worker workers[THREADS];
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (worker){.input = &input};
    CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
  }
  for (int i = 0; i < THREADS; i++) {
    CHECK(pthread_join(workers[i].thread, NULL) == 0);
  }
  for (int i = 0; i < THREADS; i++) {
    CHECK(workers[i].code == VYRE_OK);
    CHECK_U64(workers[i].layout.low, workers[0].layout.low);
    CHECK_U64(workers[i].groups, workers[0].groups);
    CHECK_U64(workers[i].placed, workers[0].placed);
  }
  CHECK(workers[0].groups > 1 && workers[0].placed > 0);
  vyre_program_release(program);
}

TEST_MAIN(TEST_ENTRY(planners_are_safe_from_many_threads_at_once))
