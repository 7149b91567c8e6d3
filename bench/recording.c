/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measures recordings against the same dispatches one by one. The kernels are
 * as small as possible, so that only the overhead counts. Rounds are short and
 * many, so that most of them are not interrupted on a busy machine. */
#include <stdio.h>
#include <string.h>

#include "vyre/vyre.h"

#include "bench.h"

static const char suite[] = "recording";

enum { CHAIN = 32, WORDS = 4, BYTES = 4 * WORDS, ROUNDS = 801, REPEAT = 4 };

static const char text[] =
    "kernel step workgroup(1)\n"
    "buffer a : read u32[4] @0;\n"
    "buffer b : read u32[4] @1;\n"
    "buffer y : read_write u32[4] @2;\n"
    "uniform k : u32 @3;\n"
    "{ if (global_id.x == 0) y[0] = y[0] + a[0] * b[0] + k; }\n"
    "kernel idle workgroup(1)\n"
    "buffer a : read u32[4] @0;\n"
    "buffer b : read u32[4] @1;\n"
    "buffer y : read_write u32[4] @2;\n"
    "uniform k : u32 @3;\n"
    "{ return; }\n"
    "kernel count workgroup(1)\n"
    "buffer n : read_write u32[2] @0;\n"
    "{ if (global_id.x == 0) { n[0] = n[0] - 1; n[1] = n[1] + 1; } }\n";

enum { STEP, IDLE, COUNT, KERNELS };

static void must(vyre_code code, const vyre_status *st, const char *what) {
  if (code != VYRE_OK) bench_fail(what, st->message);
}

typedef struct ground {
  vyre_device *device;
  vyre_module *module;
  vyre_pipeline *pipelines[KERNELS];
  vyre_buffer a, b, y, other;
  uint32_t k;
} ground;

static void ground_open(ground *g) {
  vyre_status st = {0};
  *g = (ground){.k = 3};
  must(vyre_device_open(NULL, "ref", &g->device, &st), &st, "device");
  must(vyre_module_parse(text, strlen(text), "recording", vyre_allocator_heap(),
                         &g->module, NULL, &st),
       &st, "parse");
  for (size_t i = 0; i < KERNELS; i++) {
    must(vyre_pipeline_compile(g->device, vyre_module_kernel(g->module, i),
                               NULL, &g->pipelines[i], NULL, &st),
         &st, "compile");
  }
  vyre_buffer *all[] = {&g->a, &g->b, &g->y, &g->other};
  for (int i = 0; i < 4; i++) {
    must(vyre_buffer_create(g->device, BYTES, all[i], &st), &st, "resident");
  }
}

static void ground_close(ground *g) {
  for (size_t i = 0; i < KERNELS; i++) vyre_pipeline_release(g->pipelines[i]);
  vyre_module_release(g->module);
  vyre_device_release(g->device);
}

/* --- a chain of dispatches -------------------------------------------------*/

typedef struct chain_job {
  ground *g;
  vyre_pipeline *pipeline;
  vyre_recording *rec;
  uint32_t slot_y;
  bool turn;
} chain_job;

static bool run_one_by_one(void *self) {
  const chain_job *job = self;
  const ground *g = job->g;
  vyre_status st = {0};
  vyre_input in[] = {vyre_input_buffer(g->a), vyre_input_buffer(g->b),
                     vyre_input_buffer(g->y), vyre_input_bytes(&g->k, 4)};
  vyre_output out[] = {vyre_output_buffer(g->y)};
  vyre_dispatch_desc desc = {.inputs = in,
                             .input_count = 4,
                             .outputs = out,
                             .output_count = 1,
                             .grid = {1}};
  for (int i = 0; i < CHAIN; i++) {
    must(vyre_dispatch(job->pipeline, &desc, &st), &st, "dispatch");
  }
  return true;
}

static bool run_replay(void *self) {
  const chain_job *job = self;
  vyre_status st = {0};
  must(vyre_recording_replay(job->rec, NULL, NULL, &st), &st, "replay");
  return true;
}

/* Binds another buffer each time, so that all dispatches are prepared again. */
static bool run_rebound(void *self) {
  chain_job *job = self;
  vyre_status st = {0};
  job->turn = !job->turn;
  vyre_slot_binding y = {.buffer = job->turn ? job->g->other : job->g->y};
  must(vyre_recording_bind_slot(job->rec, job->slot_y, &y, &st), &st, "bind");
  return run_replay(self);
}

static void record_chain(chain_job *job) {
  const ground *g = job->g;
  vyre_status st = {0};
  vyre_recording *rec;
  vyre_slot_binding bound[] = {
      {.buffer = g->a},
      {.buffer = g->b},
      {.buffer = g->y},
      {.data = (void *)(uintptr_t)&g->k, .size = 4, .is_read_only = true}};
  static const char *const names[] = {"a", "b", "y", "k"};
  vyre_slot_range places[4];
  must(vyre_recording_create(g->device, &rec, &st), &st, "recording");
  for (int i = 0; i < 4; i++) {
    uint32_t slot;
    must(vyre_recording_add_slot(rec, names[i], 0, &slot, &st), &st, "slot");
    must(vyre_recording_bind_slot(rec, slot, &bound[i], &st), &st, "bind");
    places[i] = vyre_slot_range_all(slot);
  }
  vyre_recorded_dispatch d = {.inputs = places,
                              .input_count = 4,
                              .outputs = &places[2],
                              .output_count = 1,
                              .grid = {1}};
  for (int i = 0; i < CHAIN; i++) {
    must(vyre_recording_add_dispatch(rec, job->pipeline, &d, &st), &st,
         "record");
  }
  must(vyre_recording_seal(rec, &st), &st, "finish");
  job->rec = rec;
  job->slot_y = places[2].slot;
}

static void bench_chain(ground *g, int kernel, const char *name,
                        const char *rebound_name) {
  bench_times ours, peer;
  chain_job job = {.g = g, .pipeline = g->pipelines[kernel]};
  record_chain(&job);
  bench_pair((bench_job){run_replay, &job}, (bench_job){run_one_by_one, &job},
             ROUNDS, REPEAT, &ours, &peer);
  bench_row_times(suite, name, "ns", 1.0 / CHAIN, ours, "one by one", peer);
  bench_pair((bench_job){run_rebound, &job}, (bench_job){run_one_by_one, &job},
             ROUNDS, REPEAT, &ours, &peer);
  bench_row_times(suite, rebound_name, "ns", 1.0 / CHAIN, ours, "one by one",
                  peer);
  vyre_recording_release(job.rec);
}

/* --- a loop ----------------------------------------------------------------*/

enum { TURNS = 50, MAX_TURNS = 1000 };

typedef struct loop_job {
  ground *g;
  vyre_recording *rec;
  uint32_t words[2];
} loop_job;

static bool run_loop(void *self) {
  loop_job *job = self;
  vyre_status st = {0};
  job->words[0] = TURNS;
  must(vyre_recording_replay(job->rec, NULL, NULL, &st), &st, "replay");
  return job->words[0] == 0;
}

/* The same loop on the host: dispatch, read the flag, dispatch. */
static bool run_host_loop(void *self) {
  loop_job *job = self;
  vyre_status st = {0};
  vyre_input in = vyre_input_bytes(job->words, 8);
  vyre_output out = vyre_output_bytes(job->words, 8);
  vyre_dispatch_desc desc = {.inputs = &in,
                             .input_count = 1,
                             .outputs = &out,
                             .output_count = 1,
                             .grid = {1}};
  job->words[0] = TURNS;
  for (int i = 0; i < MAX_TURNS && job->words[0] > 0; i++) {
    must(vyre_dispatch(job->g->pipelines[COUNT], &desc, &st), &st, "dispatch");
  }
  return job->words[0] == 0;
}

static void bench_loop(ground *g) {
  bench_times ours, peer;
  loop_job job = {.g = g};
  vyre_status st = {0};
  uint32_t slot;
  vyre_slot_binding words = {.data = job.words, .size = 8};
  must(vyre_recording_create(g->device, &job.rec, &st), &st, "recording");
  must(vyre_recording_add_fixed_slot(job.rec, &words, &slot, &st), &st, "slot");
  vyre_slot_range place = vyre_slot_range_all(slot);
  vyre_recorded_dispatch d = {.inputs = &place,
                              .input_count = 1,
                              .outputs = &place,
                              .output_count = 1,
                              .grid = {1}};
  must(vyre_recording_begin_while(job.rec, place, MAX_TURNS, 4, &st), &st,
       "while");
  must(vyre_recording_add_dispatch(job.rec, g->pipelines[COUNT], &d, &st), &st,
       "record");
  must(vyre_recording_end_while(job.rec, &st), &st, "end");
  must(vyre_recording_seal(job.rec, &st), &st, "finish");
  bench_pair((bench_job){run_loop, &job}, (bench_job){run_host_loop, &job},
             ROUNDS, REPEAT, &ours, &peer);
  bench_row_times(suite, "a round of while (flag), one dispatch", "ns",
                  1.0 / TURNS, ours, "a loop of the host", peer);
  vyre_recording_release(job.rec);
}

/* --- many slots ------------------------------------------------------------*/

enum { MANY = 10000, SLOTS_EACH = 4 };

/* Records MANY / 4 dispatches, each with four slots of its own. */
static vyre_recording *record_many(ground *g, uint32_t slots[MANY]) {
  vyre_status st = {0};
  vyre_recording *rec;
  must(vyre_recording_create(g->device, &rec, &st), &st, "recording");
  for (uint32_t i = 0; i < MANY; i += SLOTS_EACH) {
    vyre_slot_range in[SLOTS_EACH];
    for (uint32_t k = 0; k < SLOTS_EACH; k++) {
      char name[16];
      (void)snprintf(name, sizeof name, "%u", i + k);
      must(vyre_recording_add_slot(rec, name, 0, &slots[i + k], &st), &st,
           "slot");
      in[k] = vyre_slot_range_all(slots[i + k]);
    }
    vyre_recorded_dispatch d = {.inputs = in,
                                .input_count = SLOTS_EACH,
                                .outputs = &in[2],
                                .output_count = 1,
                                .grid = {1}};
    must(vyre_recording_add_dispatch(rec, g->pipelines[IDLE], &d, &st), &st,
         "record");
  }
  return rec;
}

static void bench_many(ground *g) {
  enum { RUNS = 21 };
  static uint32_t slots[MANY], words[MANY][WORDS];
  double best = 1e18;
  for (int run = 0; run < RUNS; run++) {
    vyre_status st = {0};
    vyre_recording *rec = record_many(g, slots);
    double start = bench_now_ns();
    must(vyre_recording_seal(rec, &st), &st, "seal");
    for (uint32_t i = 0; i < MANY; i++) {
      const vyre_slot_binding to = {.data = words[i],
                                    .size = i % SLOTS_EACH == 3 ? 4 : BYTES};
      must(vyre_recording_bind_slot(rec, slots[i], &to, &st), &st, "bind");
    }
    double took = bench_now_ns() - start;
    if (took < best) best = took;
    vyre_recording_release(rec);
  }
  bench_row_figure(suite, "seal and bind 10,000 slots", "ms", best * 1e-6, "",
                   0);
}

void bench_recording(void) {
  ground g;
  ground_open(&g);
  bench_chain(&g, STEP, "a dispatch of a replay", "and bound again each time");
  bench_chain(&g, IDLE, "one that does nothing", "that, bound again each time");
  bench_loop(&g);
  bench_many(&g);
  ground_close(&g);
}
