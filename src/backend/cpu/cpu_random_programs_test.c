/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random programs give the same bytes on cpu as on ref: at widths 1, 4, 8, 16
 * and 32, on 1, 2 and 7 threads.
 *
 * By default, 300 programs. Each is compiled at one width, which changes after
 * every four programs, and runs on all three numbers of threads: each of the
 * fifteen pairs gets about 60 programs.
 *
 *   VYRE_CPU_SEED=42      only this program, at all widths
 *   VYRE_CPU_FIRST=300    the first program; VYRE_CPU_SEEDS=250 their number
 *   VYRE_CPU_WIDTHS=all   each program at all five widths
 *   VYRE_CPU_TURN=1       starts at the next width; 0 to 4 cover all five
 *
 * A program runs once on ref and is compiled once per width; the other numbers
 * of threads load it from the cache. Buffers end, or begin, next to an
 * inaccessible page. Even very short work is shared between threads. */
#define _GNU_SOURCE /* mkdtemp, MAP_ANONYMOUS; NOLINT(bugprone-reserved-identifier) */
#include <sys/mman.h>

#include "backend/cpu/cpu.h"
#include "support/campaign.h"
#include "support/sanitized.h"

enum {
  SEEDS = SANITIZED ? 48 : 300,
  MAX_FAILURES = 20,
  PAGE = 4096,
  ROOM = 1 << 20, /* bytes of one buffer */
  PRUNE = 32      /* programs after which the cache is cleared */
};

static const uint32_t widths[] = {1, 4, 8, 16, 32}, threads[] = {1, 2, 7};
enum {
  WIDTHS = sizeof widths / sizeof widths[0],
  THREADS = sizeof threads / sizeof threads[0]
};

/* --- memory ----------------------------------------------------------------*/

static unsigned char *rooms[CAMPAIGN_BUFFERS];

/* Returns memory that ends right before an inaccessible page, or begins right
 * after one. */
static void *place(size_t index, size_t size, bool is_end) {
  CHECK(index < CAMPAIGN_BUFFERS && size <= ROOM);
  if (!rooms[index]) {
    void *all = mmap(NULL, ROOM + 2 * PAGE, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(all != MAP_FAILED);
    rooms[index] = (unsigned char *)all + PAGE;
    CHECK(mprotect(rooms[index], ROOM, PROT_READ | PROT_WRITE) == 0);
  }
  return rooms[index] + (is_end ? ROOM - size : 0);
}

/* --- devices ---------------------------------------------------------------*/

typedef struct campaign {
  char directory[64];
  vyre_device *ref, *cpu[WIDTHS][THREADS];
  vyre_context *context[WIDTHS][THREADS];
  uint64_t programs, compiled, loaded, runs, failed;
} campaign;

static void begin(campaign *c) {
  vyre_status st = {0};
  *c = (campaign){.directory = "/tmp/vyre-campaign-XXXXXX"};
  CHECK(mkdtemp(c->directory));
  CHECK_OK(vyre_device_open(NULL, "ref", &c->ref, &st), st);
  for (int w = 0; w < WIDTHS; w++) {
    for (int t = 0; t < THREADS; t++) {
      char own[64];
      snprintf(own, sizeof own, "cpu.width=%u,cpu.threads=%u",
               (unsigned)widths[w], (unsigned)threads[t]);
      const vyre_context_options options = {.cache_directory = c->directory,
                                            .trace_file = "",
                                            .faults = "",
                                            .backend_options = own};
      CHECK_OK(vyre_context_create(&options, &c->context[w][t], &st), st);
      CHECK_OK(vyre_device_open(c->context[w][t], "cpu", &c->cpu[w][t], &st),
               st);
    }
  }
}

static void empty_cache(campaign *c) {
  const vyre_cache_prune_options all = {.remove_all = true};
  vyre_cache_pruned pruned;
  vyre_status st = {0};
  CHECK_OK(vyre_cache_prune(c->context[0][0], &all, &pruned, &st), st);
}

static void end(campaign *c) {
  empty_cache(c);
  for (int w = 0; w < WIDTHS; w++) {
    for (int t = 0; t < THREADS; t++) {
      vyre_device_release(c->cpu[w][t]);
      vyre_context_release(c->context[w][t]);
    }
  }
  vyre_device_release(c->ref);
  char command[96];
  snprintf(command, sizeof command, "rm -rf '%s'", c->directory);
  CHECK(system(command) ==
        0); /* NOLINT(bugprone-command-processor,cert-env33-c) */
}

/* --- one program -----------------------------------------------------------*/

/* Varies with the seed: functions, longer programs, more workgroups. */
static vyre_random_program_options options_of(uint64_t seed) {
  vyre_random_program_options options = {.seed = seed,
                                         .has_math = seed % 4 == 3};
  if (seed % 8 == 5) options.statements = 60;
  if (seed % 4 == 2) options.max_invocations = 4000;
  return options;
}

/* Sets a high cost estimate, so that the pool shares even a few workgroups. */
static void let_share(vyre_pipeline *pipeline) {
  cpu_pipeline *own = (cpu_pipeline *)pipeline;
  for (uint32_t i = 0; i < own->plan.phase_count; i++) {
    atomic_store(&own->costs[i], 1000000000u);
  }
}

static bool run_cpu(campaign *c, const trial *t, int w, int n) {
  vyre_status st = {0};
  vyre_pipeline *pipeline = NULL;
  vyre_input inputs[CAMPAIGN_BUFFERS];
  vyre_output outputs[CAMPAIGN_BUFFERS];
  vyre_dispatch_desc desc = t->desc;
  vyre_cache_info info;
  bool is_end = n != 1;
  size_t used = 0;
  (void)snprintf(campaign_now.how, sizeof campaign_now.how,
                 "width %u, threads %u", (unsigned)widths[w],
                 (unsigned)threads[n]);
  for (size_t i = 0; i < desc.input_count; i++) {
    void *to = place(used++, desc.inputs[i].size, is_end);
    if (desc.inputs[i].size) {
      memcpy(to, desc.inputs[i].data, desc.inputs[i].size);
    }
    inputs[i] = vyre_input_bytes(to, desc.inputs[i].size);
  }
  for (size_t i = 0; i < desc.output_count; i++) {
    void *to = place(used++, t->want[i].size, is_end);
    memset(to, 0xA5, t->want[i].size);
    outputs[i] = vyre_output_bytes(to, t->want[i].size);
  }
  desc.inputs = inputs;
  desc.outputs = outputs;
  CHECK_OK(vyre_pipeline_compile(c->cpu[w][n], t->program, NULL, &pipeline,
                                 NULL, &st),
           st);
  CHECK(vyre_pipeline_get_cache_info(pipeline, &info));
  c->compiled += info.result == VYRE_CACHE_MISS;
  c->loaded += info.result == VYRE_CACHE_DISK_HIT;
  let_share(pipeline);
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
  bool good = trial_is_same(t, pipeline, outputs);
  vyre_pipeline_release(pipeline);
  c->runs++;
  return good;
}

typedef struct attempt {
  campaign *campaign;
  uint64_t seed, turn;
  bool is_wide;
} attempt;

static void run_program(void *self) {
  const attempt *a = self;
  campaign *c = a->campaign;
  uint64_t seed = a->seed;
  trial t;
  trial_begin(&t, options_of(seed), c->ref);
  for (int w = 0; w < WIDTHS; w++) {
    if (!a->is_wide && (uint64_t)w != (seed / 4 + a->turn) % WIDTHS) {
      continue;
    }
    for (int n = 0; n < THREADS; n++) c->failed += !run_cpu(c, &t, w, n);
  }
  trial_end(&t);
  if (++c->programs % PRUNE == 0) empty_cache(c);
}

/* --- test cases ------------------------------------------------------------*/

TEST(random_programs_do_the_same) {
  static campaign c;
  const seed_range seeds = seeds_of("VYRE_CPU", 0, SEEDS);
  uint64_t turn = seed_number("VYRE_CPU", "TURN", 0);
  bool is_wide = seeds.is_one || seed_text("VYRE_CPU", "WIDTHS");
  campaign_begin("VYRE_CPU");
  begin(&c);
  for (uint64_t i = 0; i < seeds.count && c.failed < MAX_FAILURES; i++) {
    attempt one = {&c, seeds.first + i, turn, is_wide};
    if (test_part(run_program, &one)) continue;
    printf("    VYRE_CPU_SEED=%llu, %s\n", campaign_now.seed, campaign_now.how);
    c.failed++;
  }
  campaign_end();
  end(&c);
  printf(
      "    %llu programs, %llu kernels compiled for cpu, %llu loaded, %llu "
      "runs\n",
      (unsigned long long)c.programs, (unsigned long long)c.compiled,
      (unsigned long long)c.loaded, (unsigned long long)c.runs);
  CHECK_U64(c.failed, 0);
  CHECK_U64(c.runs, seeds.count * THREADS * (is_wide ? WIDTHS : 1));
  CHECK_U64(c.compiled, seeds.count * (is_wide ? WIDTHS : 1));
  CHECK_U64(c.loaded, c.compiled * (THREADS - 1));
}

/* Each of these programs once gave wrong results. */
TEST(programs_that_were_wrong_are_right) {
  static const uint64_t seeds[] = {1953, 6063};
  static campaign c;
  campaign_begin("VYRE_CPU");
  begin(&c);
  for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
    attempt one = {&c, seeds[i], 0, true};
    CHECK(test_part(run_program, &one));
  }
  campaign_end();
  end(&c);
  CHECK_U64(c.failed, 0);
  CHECK_U64(c.runs, sizeof seeds / sizeof seeds[0] * WIDTHS * THREADS);
}

static const test_case all_cases[] = {
    TEST_ENTRY(random_programs_do_the_same),
    TEST_ENTRY(programs_that_were_wrong_are_right)};

int main(int argc, char **argv) {
  if (!vyre__host_cpu_detect()->is_usable) {
    puts("skipped: device 'cpu' does not support this processor");
    return 77;
  }
  return run_tests(all_cases, sizeof all_cases / sizeof all_cases[0],
                   argc > 1 ? argv[1] : NULL);
}
