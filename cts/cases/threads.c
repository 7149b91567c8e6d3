/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases: many threads at once. Each checks its own results; the case checks the
 * launch counter. */
#include <pthread.h>
#include <stdio.h>

#include "cts/harness/saxpy.h"

enum { THREADS = 8, ROUNDS = 12 };

typedef struct thread_work {
  cts *c;
  vyre_pipeline *pipeline;
  vyre_program *program;
  vyre_recording *recording; /* may be NULL */
  uint64_t seed;
  unsigned number;
  uint64_t refused; /* rejected iterations, which are allowed */
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
  vyre_code code = vyre_fence_wait(fence, VYRE_WAIT_FOREVER, st);
  vyre_fence_release(fence);
  return code == VYRE_OK && is_right(&d, &got);
}

static bool compile(thread_work *w, unsigned round, vyre_status *st) {
  saxpy_data d;
  saxpy_result got;
  saxpy_make(&d, w->seed + round, &got);
  return vyre_device_run_program(w->c->device, w->program, &d.desc, st) ==
             VYRE_OK &&
         is_right(&d, &got);
}

static bool variants(thread_work *w, unsigned round, vyre_status *st) {
  saxpy_data d;
  saxpy_result got;
  vyre_compile_options options = {.workgroup = {1 + round % 5}};
  saxpy_make(&d, w->seed + round, &got);
  d.desc.variant = &options;
  return vyre_pipeline_add_variant(w->pipeline, &options, st) == VYRE_OK &&
         vyre_dispatch(w->pipeline, &d.desc, st) == VYRE_OK &&
         is_right(&d, &got);
}

static bool device_buffers(thread_work *w, unsigned round, vyre_status *st) {
  vyre_device *device = w->c->device;
  saxpy_data d;
  saxpy_result got;
  vyre_buffer x, z;
  saxpy_make(&d, w->seed + round, &got);
  if (vyre_buffer_create(device, SAXPY_BYTES, &x, st) != VYRE_OK) {
    return false;
  }
  d.in[0] = vyre_input_buffer(x);
  d.out[1] = vyre_output_new_buffer(&z, 0);
  return vyre_buffer_upload(device, x, 0, d.x, SAXPY_BYTES, st) == VYRE_OK &&
         vyre_dispatch(w->pipeline, &d.desc, st) == VYRE_OK &&
         vyre_buffer_download(device, z, 0, got.z, SAXPY_SUMS, st) == VYRE_OK &&
         vyre_buffer_destroy(device, x, st) == VYRE_OK &&
         vyre_buffer_destroy(device, z, st) == VYRE_OK && is_right(&d, &got);
}

/* One thread compiles what another one releases. */
static bool compile_and_release(thread_work *w, unsigned round,
                                vyre_status *st) {
  saxpy_data d;
  saxpy_result got;
  vyre_compile_options options = {.workgroup = {1 + round % 3}};
  vyre_pipeline *pipeline;
  saxpy_make(&d, w->seed + round, &got);
  if (vyre_pipeline_compile(w->c->device, w->program, &options, &pipeline, NULL,
                            st) != VYRE_OK) {
    return false;
  }
  vyre_code code = vyre_dispatch(pipeline, &d.desc, st);
  vyre_pipeline_release(pipeline);
  return code == VYRE_OK && is_right(&d, &got);
}

/* Buffer handles of the threads; all buffers have equal contents. */
static _Atomic uint64_t shared_ids[THREADS];

/* Dispatches with a buffer that another thread may destroy at any time: the
 * result is correct, or the call is rejected. */
static bool free_in_use(thread_work *w, unsigned round, vyre_status *st) {
  vyre_device *device = w->c->device;
  saxpy_data d;
  saxpy_result got;
  vyre_buffer own;
  saxpy_make(&d, 4711, &got);
  if (vyre_buffer_create(device, SAXPY_BYTES, &own, st) != VYRE_OK ||
      vyre_buffer_upload(device, own, 0, d.x, SAXPY_BYTES, st) != VYRE_OK) {
    return false;
  }
  atomic_store(&shared_ids[w->number], own.id);
  uint64_t id = atomic_load(&shared_ids[(w->number + round) % THREADS]);
  vyre_buffer other = {own.owner, id};
  if (id != 0) d.in[0] = vyre_input_buffer(other);
  vyre_code code = vyre_dispatch(w->pipeline, &d.desc, st);
  bool fine = code == VYRE_OK && is_right(&d, &got);
  if (code != VYRE_OK && st->kind == VYRE_KIND_STALE_HANDLE) {
    *st = (vyre_status){0};
    w->refused++;
    fine = true;
  }
  atomic_store(&shared_ids[w->number], 0);
  return vyre_buffer_destroy(device, own, st) == VYRE_OK && fine;
}

/* Replays one recording on all threads. Each replay adds 1, so that concurrent
 * replays would lose some. */
static bool replay(thread_work *w, unsigned round, vyre_status *st) {
  vyre_fence *fence = NULL;
  vyre_code code = vyre_recording_replay(
      w->recording, &(vyre_replay_options){.wait_for_conflicts = true},
      round % 3 == 0 ? &fence : NULL, st);
  if (fence) code = vyre_fence_wait(fence, VYRE_WAIT_FOREVER, st);
  vyre_fence_release(fence);
  return code == VYRE_OK;
}

static bool all_of_it(thread_work *w, unsigned round, vyre_status *st) {
  static bool (*const ways[])(thread_work *, unsigned, vyre_status *) = {
      dispatch,   submit,         compile,
      variants,   device_buffers, compile_and_release,
      free_in_use};
  return ways[(round + w->number) % 7](w, round, st);
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

static void run_with(cts *c, vyre_recording *recording,
                     bool (*run)(thread_work *, unsigned, vyre_status *)) {
  pthread_t threads[THREADS];
  thread_work *all = cts_memory(c, THREADS * sizeof *all);
  vyre_program *program = cts_program(c, saxpy_text);
  vyre_pipeline *pipeline = cts_compile(c, program, 0);
  for (unsigned i = 0; i < THREADS; i++) {
    all[i] = (thread_work){.c = c,
                           .pipeline = pipeline,
                           .program = program,
                           .recording = recording,
                           .number = i,
                           .seed = c->seed + UINT64_C(1000) * i,
                           .run = run};
    CTS_CHECK(c, pthread_create(&threads[i], NULL, work, &all[i]) == 0);
  }
  for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (unsigned i = 0; i < THREADS; i++) {
    if (!all[i].wrong[0]) continue;
    cts_fail(c, __FILE__, __LINE__, "thread %u, %s", i, all[i].wrong);
  }
  uint64_t launches = UINT64_C(1) * THREADS * ROUNDS;
  for (unsigned i = 0; i < THREADS; i++) launches -= all[i].refused;
  CTS_LAUNCHED(c, launches);
}

static void run_threads(cts *c,
                        bool (*run)(thread_work *, unsigned, vyre_status *)) {
  run_with(c, NULL, run);
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
static void add_variants_at_once(cts *c) {
  run_threads(c, variants);
}
static void device_buffers_at_once(cts *c) {
  run_threads(c, device_buffers);
}
static void compile_and_release_at_once(cts *c) {
  run_threads(c, compile_and_release);
}
static void freed_in_use(cts *c) {
  run_threads(c, free_in_use);
}

static void same_recording(cts *c) {
  vyre_pipeline *count = cts_kernel(c,
                                    "kernel count workgroup(1)\n"
                                    "buffer n : read_write u32[1] @0;\n"
                                    "{ n[0] = n[0] + 1; }\n");
  vyre_recording *rec;
  vyre_buffer n;
  uint32_t slot, got = 0;
  CTS_OK(c, vyre_buffer_create(c->device, 4, &n, &c->st));
  CTS_OK(c, vyre_recording_create(c->device, &rec, &c->st));
  vyre_slot_binding r = {.buffer = n};
  CTS_OK(c, vyre_recording_add_fixed_slot(rec, &r, &slot, &c->st));
  vyre_slot_range p = vyre_slot_range_all(slot);
  vyre_recorded_dispatch d = {
      .inputs = &p, .input_count = 1, .outputs = &p, .output_count = 1};
  CTS_OK(c, vyre_recording_add_dispatch(rec, count, &d, &c->st));
  CTS_OK(c, vyre_recording_seal(rec, &c->st));
  run_with(c, rec, replay);
  vyre_recording_release(rec);
  CTS_OK(c, vyre_buffer_download(c->device, n, 0, &got, 4, &c->st));
  CTS_U64(c, got, UINT64_C(1) * THREADS * ROUNDS);
  CTS_OK(c, vyre_buffer_destroy(c->device, n, &c->st));
}

static void everything(cts *c) {
  run_threads(c, all_of_it);
}

static const cts_entry entries[] = {
    {"same_pipeline", same_pipeline},
    {"same_queue", same_queue},
    {"compile", compile_at_once},
    {"add_variant", add_variants_at_once},
    {"device_buffers", device_buffers_at_once},
    {"everything", everything},
    {"compile_and_release", compile_and_release_at_once},
    {"freed_in_use", freed_in_use},
    {"same_recording", same_recording},
};

CTS_LIST(threads, "eight threads at once");
