/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measures plans that are made for every dispatch, where nanoseconds matter. */
#include <stdio.h>
#include <stdlib.h>

#include "vyre/vyre.h"

#include "bench.h"

enum { REPEAT = 100000, ROUNDS = 21 };

/* --- queue -----------------------------------------------------------------*/

typedef struct queue_job {
  vyre_queue_profile profile;
  vyre_queue_drain_plan plan;
} queue_job;

static bool run_queue(void *self) {
  queue_job *job = self;
  job->profile.initial_items ^= 1; /* varies the input */
  return vyre_queue_drain_plan_build(&job->profile, 8192, &job->plan, NULL) ==
         VYRE_OK;
}

/* --- bindings and capture --------------------------------------------------*/

typedef struct binding_job {
  vyre_program *program;
  vyre_arena arena;
  vyre_binding_plan plan;
  vyre_capture_plan capture;
} binding_job;

static bool run_binding(void *self) {
  binding_job *job = self;
  vyre_arena_reset(&job->arena);
  return vyre_binding_plan_build(job->program, &job->arena, &job->plan, NULL) ==
         VYRE_OK;
}

static bool run_capture(void *self) {
  binding_job *job = self;
  return vyre_capture_plan_build(&job->plan, &job->capture, NULL) == VYRE_OK;
}

static vyre_program *eight_buffers(void) {
  static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
  vyre_buffer_decl buffers[8];
  for (uint32_t i = 0; i < 8; i++) {
    buffers[i] = (vyre_buffer_decl){.name = names[i],
                                    .binding = 7 - i,
                                    .access = (vyre_access)(i % 4),
                                    .element = VYRE_ELEMENT_F32,
                                    .count = 1024};
  }
  vyre_program_desc desc = {buffers, 8, {256, 1, 1}};
  vyre_program *program;
  vyre_status st = {0};
  if (vyre_program_create(&desc, (vyre_allocator){0}, &program, &st)) {
    bench_fail("program", st.message);
  }
  return program;
}

/* Adds a row without a peer. Such rows have a limit to stay below. */
static void row_alone(const char *name, bool (*run)(void *), void *self) {
  bench_times ours, none;
  bench_pair((bench_job){run, self}, (bench_job){0}, ROUNDS, REPEAT, &ours,
             &none);
  bench_row_times("plan", name, "ns", 1, ours, "", none);
}

void bench_plan(void) {
  bench_plan_frontier();
  queue_job queue = {
      .profile = {4096, 65536, 16, 128, 2 << 20, VYRE_HOST_SYNC_FINAL_ONLY}};
  row_alone("queue plan with drain windows, warm", run_queue, &queue);
  binding_job binding = {.program = eight_buffers()};
  row_alone("binding plan of 8 buffers, warm", run_binding, &binding);
  row_alone("capture plan of 8 bindings, warm", run_capture, &binding);
  vyre_arena_deinit(&binding.arena);
  vyre_program_release(binding.program);
  bench_plan_placement();
}
