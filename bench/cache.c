/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measures the cache: getting a compiled pipeline from memory, or from disk
 * where the device supports it, against compiling it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vyre/vyre.h"

#include "bench.h"

static const char suite[] = "cache";

enum {
  ROUNDS = 101, /* of fast jobs; slower ones have fewer, within these limits: */
  MIN_ROUNDS = 5,
  REPEAT = 200,
  REPEAT_WARM = 10000,
  ROUND_NS = 10000000, /* time of a round, or one call if that is longer */
  ROW_NS = 1000000000, /* time of all rounds of a row */
  TEXT = 1 << 16,
  NAME = 64
};

typedef struct job {
  vyre_device *device;
  vyre_program *program;
  const char *name; /* of the device */
  const char *folder;
} job;

static void must(vyre_code code, const vyre_status *st, const char *what) {
  if (code != VYRE_OK) bench_fail(what, st->message);
}

/* The cache stores optimised code. */
static const vyre_compile_options optimised = {.tier = VYRE_TIER_OPTIMISED};

static bool compile(const job *j, vyre_cache_result want) {
  vyre_pipeline *pipeline = NULL;
  vyre_cache_info info;
  bool fine = vyre_pipeline_compile(j->device, j->program, &optimised,
                                    &pipeline, NULL, NULL) == VYRE_OK &&
              vyre_pipeline_get_cache_info(pipeline, &info) &&
              info.result == want;
  vyre_pipeline_release(pipeline);
  return fine;
}

static bool compile_warm(void *self) {
  return compile(self, VYRE_CACHE_MEMORY_HIT);
}

/* Opens a device in a new context, which has nothing in memory; without a
 * folder it always compiles. The time includes opening and closing the device,
 * which `open_only` measures alone. */
static bool open_device(const job *j, vyre_context **context, job *out) {
  vyre_context_options options = {
      .cache_directory = j->folder, .trace_file = "", .faults = ""};
  *out = *j;
  return vyre_context_create(&options, context, NULL) == VYRE_OK &&
         vyre_device_open(*context, j->name, &out->device, NULL) == VYRE_OK;
}

static bool compile_new(void *self) {
  vyre_context *context = NULL;
  job fresh;
  const job *j = self;
  bool fine =
      open_device(j, &context, &fresh) &&
      compile(&fresh, j->folder[0] ? VYRE_CACHE_DISK_HIT : VYRE_CACHE_OFF);
  vyre_device_release(fresh.device);
  vyre_context_release(context);
  return fine;
}

static bool open_only(void *self) {
  vyre_context *context = NULL;
  job fresh;
  bool fine = open_device(self, &context, &fresh);
  vyre_device_release(fresh.device);
  vyre_context_release(context);
  return fine;
}

/* --- rows ------------------------------------------------------------------*/

/* Measures compiling without opening, round by round. Devices differ by a
 * factor of a thousand, so the number of rounds depends on the time. */
static bench_times above_open(job *j) {
  const bench_job whole = {compile_new, j}, part = {open_only, j};
  bench_times once, all;
  bench_pair(whole, (bench_job){0}, 1, 1, &once, &all);
  double repeat = ROUND_NS / once.median;
  repeat = repeat < 1 ? 1 : repeat > REPEAT ? REPEAT : repeat;
  double rounds = ROW_NS / (repeat * once.median);
  if (rounds < MIN_ROUNDS) rounds = MIN_ROUNDS;
  if (rounds > ROUNDS) rounds = ROUNDS;
  return bench_difference(whole, part, (int)rounds, (long)repeat, &all);
}

/* Returns true if the device stores what it compiles on disk. */
static bool has_disk_cache(const job *j) {
  vyre_context *context = NULL;
  vyre_pipeline *pipeline = NULL;
  vyre_cache_info info = {0};
  job fresh;
  bool kept = open_device(j, &context, &fresh) &&
              vyre_pipeline_compile(fresh.device, fresh.program, &optimised,
                                    &pipeline, NULL, NULL) == VYRE_OK &&
              vyre_pipeline_get_cache_info(pipeline, &info) && info.is_stored;
  vyre_pipeline_release(pipeline);
  vyre_device_release(fresh.device);
  vyre_context_release(context);
  return kept;
}

static void measure(job *j, const char *kernel) {
  static char names[16][NAME];
  static int used;
  bench_times warm, cold, none;
  job without = *j, with = *j;
  char folder[] = "/tmp/vyre-bench-XXXXXX";
  vyre_pipeline *first = NULL;
  vyre_status st = {0};
  if (used + 2 > 16 || !mkdtemp(folder)) bench_fail("cache", "no folder");
  without.folder = "";
  with.folder = folder;
  must(vyre_pipeline_compile(j->device, j->program, &optimised, &first, NULL,
                             &st),
       &st, kernel);
  cold = above_open(&without);
  bench_pair((bench_job){compile_warm, j}, (bench_job){0}, ROUNDS, REPEAT_WARM,
             &warm, &none);
  char *name = names[used++];
  snprintf(name, NAME, "%s: %s from memory", j->name, kernel);
  bench_row_times(suite, name, "us", 1e-3, warm, "compiled", cold);
  if (has_disk_cache(&with)) {
    name = names[used++];
    snprintf(name, NAME, "%s: %s from disk", j->name, kernel);
    bench_row_times(suite, name, "us", 1e-3, above_open(&with), "compiled",
                    cold);
  }
  vyre_context *context = NULL;
  vyre_context_options options = {.cache_directory = folder};
  must(vyre_context_create(&options, &context, &st), &st, "context");
  vyre_cache_pruned pruned;
  must(
      vyre_cache_prune(context, &(vyre_cache_prune_options){.remove_all = true},
                       &pruned, &st),
      &st, "prune");
  vyre_context_release(context);
  rmdir(folder);
  vyre_pipeline_release(first);
}

void bench_cache(void) {
  static char text[TEXT];
  static const char *const kernels[] = {"saxpy", "matmul_tiled"};
  for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
    char path[256];
    vyre_status st = {0};
    vyre_module *module;
    snprintf(path, sizeof path, "%s/%s.vyre", VYRE_EXAMPLES, kernels[i]);
    FILE *file = fopen(path, "rb");
    if (!file) bench_fail(path, "cannot be read");
    size_t length = fread(text, 1, sizeof text, file);
    fclose(file);
    must(vyre_module_parse(text, length, kernels[i], (vyre_allocator){0},
                           &module, NULL, &st),
         &st, path);
    vyre_device_info info;
    for (size_t d = 0; vyre_device_info_at(d, &info); d++) {
      if (!info.is_available) continue;
      job j = {.program = vyre_module_kernel(module, 0), .name = info.name};
      must(vyre_device_open(NULL, info.name, &j.device, &st), &st, info.name);
      measure(&j, kernels[i]);
      vyre_device_release(j.device);
    }
    vyre_module_release(module);
  }
}
