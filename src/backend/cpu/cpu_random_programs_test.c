/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random programs give the same bytes on cpu as on ref: at widths 1, 4, 8, 16
 * and 32, on 1, 2 and 7 threads.
 *
 * By default, 300 programs. Each is compiled at one width, which changes after
 * every four programs, and runs on all three numbers of threads: each of the
 * fifteen pairs gets about 60 programs.
 *
 * Variables: testing/random_programs.h (a single program runs at all widths),
 * and
 *
 *   VYRE_TEST_ALL=1    each program at all five widths
 *   VYRE_TEST_TURN=1   starts at the next width; 0 to 4 cover all five
 *
 * A program runs once on ref and is compiled once per width; the other numbers
 * of threads load it from the cache. Buffers end, or begin, next to an
 * inaccessible page. Even very short work is shared between threads. */
#define _GNU_SOURCE /* mkdtemp, MAP_ANONYMOUS; NOLINT(bugprone-reserved-identifier) */
#include <sys/mman.h>

#include "backend/cpu/cpu.h"
#include "support/sanitized.h"
#include "testing/random_programs.h"

enum {
  SEEDS = SANITIZED ? 48 : 300,
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

static unsigned char *rooms[2 * MAX_BUFFERS];

/* Returns memory that ends right before an inaccessible page, or begins right
 * after one. */
static void *place(size_t index, size_t size, bool is_end) {
  CHECK(index < sizeof rooms / sizeof rooms[0] && size <= ROOM);
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

typedef struct devices {
  char directory[64];
  vyre_device *cpu[WIDTHS][THREADS];
  vyre_context *context[WIDTHS][THREADS];
  uint64_t turn;
  bool in_all_widths;
  uint64_t programs, compiled, loaded, runs;
} devices;

static void begin(devices *c) {
  vyre_status st = {0};
  *c = (devices){.directory = "/tmp/vyre-random-programs-XXXXXX"};
  CHECK(mkdtemp(c->directory));
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

static void empty_cache(devices *c) {
  const vyre_cache_prune_options all = {.remove_all = true};
  vyre_cache_pruned pruned;
  vyre_status st = {0};
  CHECK_OK(vyre_cache_prune(c->context[0][0], &all, &pruned, &st), st);
}

static void end(devices *c) {
  empty_cache(c);
  for (int w = 0; w < WIDTHS; w++) {
    for (int t = 0; t < THREADS; t++) {
      vyre_device_release(c->cpu[w][t]);
      vyre_context_release(c->context[w][t]);
    }
  }
  char command[96];
  snprintf(command, sizeof command, "rm -rf '%s'", c->directory);
  CHECK(system(command) ==
        0); /* NOLINT(bugprone-command-processor,cert-env33-c) */
}

/* --- one program -----------------------------------------------------------*/

/* Varies with the seed: functions, longer programs, more workgroups. */
static vyre_random_program_options options_of(uint64_t seed, void *self) {
  (void)self;
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

static bool run_cpu(devices *c, const job *j, int w, int n) {
  vyre_status st = {0};
  vyre_pipeline *pipeline = NULL;
  vyre_input inputs[MAX_BUFFERS];
  vyre_output outputs[MAX_BUFFERS];
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = j->input_count,
                             .outputs = outputs,
                             .output_count = j->output_count};
  vyre_cache_info info;
  bool is_end = n != 1;
  size_t used = 0;
  set_variant("width %u, threads %u", (unsigned)widths[w],
              (unsigned)threads[n]);
  for (size_t i = 0; i < desc.input_count; i++) {
    size_t size = j->inputs[i].size;
    void *to = place(used++, size, is_end);
    if (size) memcpy(to, j->inputs[i].data, size);
    inputs[i] = vyre_input_bytes(to, size);
  }
  for (size_t i = 0; i < desc.output_count; i++) {
    size_t size = j->outputs[i].size;
    void *to = place(used++, size, is_end);
    memset(to, 0xA5, size);
    outputs[i] = vyre_output_bytes(to, size);
  }
  memcpy(desc.grid, j->grid, sizeof desc.grid);
  const vyre_compile_options options = {.tier = VYRE_TIER_OPTIMISED};
  CHECK_OK(vyre_pipeline_compile(c->cpu[w][n], j->program, &options, &pipeline,
                                 NULL, &st),
           st);
  CHECK(vyre_pipeline_get_cache_info(pipeline, &info));
  c->compiled += info.result == VYRE_CACHE_MISS;
  c->loaded += info.result == VYRE_CACHE_DISK_HIT;
  let_share(pipeline);
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
  bool good = same_outputs(j, outputs);
  vyre_pipeline_release(pipeline);
  c->runs++;
  return good;
}

static unsigned check_widths(job *j, void *self) {
  devices *c = self;
  unsigned failed = 0;
  for (int w = 0; w < WIDTHS; w++) {
    if (!c->in_all_widths && (uint64_t)w != (j->seed / 4 + c->turn) % WIDTHS) {
      continue;
    }
    for (int n = 0; n < THREADS; n++) {
      failed += count_failure(run_cpu(c, j, w, n));
    }
  }
  if (++c->programs % PRUNE == 0) empty_cache(c);
  return failed;
}

/* --- test cases ------------------------------------------------------------*/

TEST(random_programs_do_the_same) {
  static devices c;
  const program_test test = {
      .check = check_widths, .self = &c, .options = options_of, .count = SEEDS};
  const seed_range seeds = test_seeds(0, SEEDS);
  begin(&c);
  c.turn = test_number("TURN", 0);
  c.in_all_widths = seeds.is_single || test_setting("ALL");
  uint64_t variants = c.in_all_widths ? WIDTHS : 1;
  unsigned failed = check_random_programs(&test);
  end(&c);
  printf(
      "    %llu programs, %llu kernels compiled for cpu, %llu loaded, %llu "
      "runs\n",
      (unsigned long long)c.programs, (unsigned long long)c.compiled,
      (unsigned long long)c.loaded, (unsigned long long)c.runs);
  CHECK_U64(failed, 0);
  CHECK_U64(c.runs, seeds.count * THREADS * variants);
  CHECK_U64(c.compiled, seeds.count * variants);
  CHECK_U64(c.loaded, c.compiled * (THREADS - 1));
}

/* Each of these programs once gave wrong results. */
TEST(programs_that_were_wrong_are_right) {
  static const uint64_t seeds[] = {1953, 6063};
  static devices c;
  const program_test test = {.check = check_widths, .self = &c};
  begin(&c);
  c.in_all_widths = true;
  for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
    CHECK_U64(check_random_program(&test, options_of(seeds[i], NULL)), 0);
  }
  end(&c);
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
