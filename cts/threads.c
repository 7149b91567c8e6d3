/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Many threads at once. Each looks at its own results; the case counts. */
#include <pthread.h>
#include <stdio.h>

#include "saxpy.h"

enum { THREADS = 8, ROUNDS = 12 };

typedef struct thread_work {
  cts *c;
  vyre_pipeline *pipeline;
  vyre_program *program;
  uint64_t seed;
  bool (*run)(struct thread_work *w, unsigned round, vyre_status *st);
  char wrong[400];
} thread_work;

static bool is_right(const saxpy_data *d, const saxpy_result *got) {
  saxpy_result want = saxpy_expect(d, 1);
  return memcmp(got, &want, sizeof want) == 0;
}

static bool dispatch(thread_work *w, unsigned round, vyre_status *st) {
  saxpy_data d;
  saxpy_result got;
  saxpy_make(&d, w->seed + round, &got);
  return vyre_dispatch(w->pipeline, &d.desc, st) == VYRE_OK &&
         is_right(&d, &got);
}

static bool submit(thread_work *w, unsigned round, vyre_status *st) {
  saxpy_data d;
  saxpy_result got;
  vyre_fence *fence;
  saxpy_make(&d, w->seed + round, &got);
  if (vyre_submit(w->pipeline, &d.desc, 1, &fence, st) != VYRE_OK) return false;
  vyre_code code = vyre_fence_wait(fence, VYRE_FOREVER, st);
  vyre_fence_release(fence);
  return code == VYRE_OK && is_right(&d, &got);
}

static bool compile(thread_work *w, unsigned round, vyre_status *st) {
  saxpy_data d;
  saxpy_result got;
  saxpy_make(&d, w->seed + round, &got);
  return vyre_device_dispatch(w->c->device, w->program, &d.desc, st) ==
             VYRE_OK &&
         is_right(&d, &got);
}

static bool variants(thread_work *w, unsigned round, vyre_status *st) {
  saxpy_data d;
  saxpy_result got;
  vyre_compile_options options = {.workgroup = {1 + round % 5}};
  saxpy_make(&d, w->seed + round, &got);
  d.desc.variant = &options;
  return vyre_pipeline_prepare(w->pipeline, &options, st) == VYRE_OK &&
         vyre_dispatch(w->pipeline, &d.desc, st) == VYRE_OK &&
         is_right(&d, &got);
}

static bool residents(thread_work *w, unsigned round, vyre_status *st) {
  vyre_device *device = w->c->device;
  saxpy_data d;
  saxpy_result got;
  vyre_resident x, z;
  saxpy_make(&d, w->seed + round, &got);
  if (vyre_resident_create(device, SAXPY_BYTES, &x, st) != VYRE_OK) {
    return false;
  }
  d.in[0] = vyre_input_resident(x);
  d.out[1] = vyre_output_kept(&z, 0);
  return vyre_resident_upload(device, x, 0, d.x, SAXPY_BYTES, st) == VYRE_OK &&
         vyre_dispatch(w->pipeline, &d.desc, st) == VYRE_OK &&
         vyre_resident_download(device, z, 0, got.z, SAXPY_SUMS, st) ==
             VYRE_OK &&
         vyre_resident_free(device, x, st) == VYRE_OK &&
         vyre_resident_free(device, z, st) == VYRE_OK && is_right(&d, &got);
}

static bool all_of_it(thread_work *w, unsigned round, vyre_status *st) {
  static bool (*const ways[])(thread_work *, unsigned, vyre_status *) = {
      dispatch, submit, compile, variants, residents};
  return ways[(round + w->seed) % 5](w, round, st);
}

static void *work(void *self) {
  thread_work *w = self;
  vyre_status st = {0};
  for (unsigned i = 0; i < ROUNDS && !w->wrong[0]; i++) {
    if (w->run(w, i, &st)) continue;
    (void)snprintf(w->wrong, sizeof w->wrong, "round %u: %s", i,
                   st.code ? st.message : "the result is wrong");
  }
  return NULL;
}

static void run_threads(cts *c,
                        bool (*run)(thread_work *, unsigned, vyre_status *)) {
  pthread_t threads[THREADS];
  thread_work *all = cts_memory(c, THREADS * sizeof *all);
  vyre_program *program = cts_program(c, saxpy_text);
  vyre_pipeline *pipeline = cts_compile(c, program, false, false);
  for (unsigned i = 0; i < THREADS; i++) {
    all[i] = (thread_work){.c = c,
                           .pipeline = pipeline,
                           .program = program,
                           .seed = c->seed + UINT64_C(1000) * i,
                           .run = run};
    CTS_CHECK(c, pthread_create(&threads[i], NULL, work, &all[i]) == 0);
  }
  for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (unsigned i = 0; i < THREADS; i++) {
    if (!all[i].wrong[0]) continue;
    cts_fail(c, __FILE__, __LINE__, "thread %u, %s", i, all[i].wrong);
  }
  CTS_LAUNCHED(c, UINT64_C(1) * THREADS * ROUNDS);
}

static void same_pipeline(cts *c) {
  run_threads(c, dispatch);
}
static void same_queue(cts *c) {
  run_threads(c, submit);
}
static void compile_at_once(cts *c) {
  run_threads(c, compile);
}
static void prepare_at_once(cts *c) {
  run_threads(c, variants);
}
static void residents_at_once(cts *c) {
  run_threads(c, residents);
}
static void everything(cts *c) {
  run_threads(c, all_of_it);
}

static const cts_entry entries[] = {
    {"same_pipeline", same_pipeline}, {"same_queue", same_queue},
    {"compile", compile_at_once},     {"prepare", prepare_at_once},
    {"residents", residents_at_once}, {"everything", everything},
};

CTS_LIST(threads, "eight threads at once");
