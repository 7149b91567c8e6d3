/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random programs give the same bytes on cpu as on ref: at widths 1, 4, 8, 16
 * and 32, on 1, 2 and 7 threads.
 *
 * By default, 150 programs. Each is compiled at one width, which changes after
 * every four programs, and runs on all three numbers of threads: each of the
 * fifteen pairs gets about 60 programs.
 *
 * Half of the programs run with all passes of the vectoriser, an eighth without
 * any that can be disabled, and the others without a random subset.
 *
 * Variables: testing/random_programs.h (a single program runs at all widths),
 * and
 *
 *   VYRE_TEST_ALL=1    each program at all five widths, and at each width
 *                      both with all passes and with none or a subset
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
  SEEDS = SANITIZED ? 32 : 150,
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
  uint64_t turn, all_passes;
  bool in_all_widths;
  uint64_t programs, compiled, loaded, runs, without;
} devices;

/* Opens a device that does not run the passes @p off. */
static void open_device(const devices *c, int w, int t, uint64_t off,
                        vyre_context **context, vyre_device **device) {
  char own[96];
  vyre_status st = {0};
  snprintf(own, sizeof own, "cpu.width=%u,cpu.threads=%u,cpu.passes_off=%llu",
           (unsigned)widths[w], (unsigned)threads[t], (unsigned long long)off);
  const vyre_context_options options = {.cache_directory = c->directory,
                                        .trace_file = "",
                                        .faults = "",
                                        .backend_options = own};
  CHECK_OK(vyre_context_create(&options, context, &st), st);
  CHECK_OK(vyre_device_open(*context, "cpu", device, &st), st);
}

/* Returns the bits of all passes that can be disabled. */
static uint64_t find_passes(void) {
  vyre_device_option o;
  for (size_t i = 0; vyre_device_option_at("cpu", i, &o); i++) {
    if (strcmp(o.name, "passes_off") == 0) return o.max;
  }
  return 0;
}

static void begin(devices *c) {
  *c = (devices){.directory = "/tmp/vyre-random-programs-XXXXXX"};
  CHECK(mkdtemp(c->directory));
  c->all_passes = find_passes();
  CHECK(c->all_passes > 0);
  for (int w = 0; w < WIDTHS; w++) {
    for (int t = 0; t < THREADS; t++) {
      open_device(c, w, t, 0, &c->context[w][t], &c->cpu[w][t]);
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

static bool run_on(devices *c, vyre_device *device, const job *j, int n) {
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
  CHECK_OK(
      vyre_pipeline_compile(device, j->program, &options, &pipeline, NULL, &st),
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

/* Runs the program without the passes @p off. */
static bool run_cpu(devices *c, const job *j, int w, int n, uint64_t off) {
  vyre_context *context = NULL;
  vyre_device *device = NULL;
  set_variant("width %u, threads %u, cpu.passes_off=%llu", (unsigned)widths[w],
              (unsigned)threads[n], (unsigned long long)off);
  if (!off) return run_on(c, c->cpu[w][n], j, n);
  open_device(c, w, n, off, &context, &device);
  bool good = run_on(c, device, j, n);
  vyre_device_release(device);
  vyre_context_release(context);
  c->without++;
  return good;
}

/* Returns the passes to disable: all, or a random half of them. */
static uint64_t passes_of(const devices *c, uint64_t seed, int w) {
  uint64_t random = (seed * WIDTHS + (uint64_t)w + 1) * 0x9E3779B97F4A7C15u;
  if (random >> 62 == 0) return c->all_passes;
  return (random >> 20 & c->all_passes) | 1;
}

static unsigned check_widths(job *j, void *self) {
  devices *c = self;
  unsigned failed = 0;
  for (int w = 0; w < WIDTHS; w++) {
    if (!c->in_all_widths && (uint64_t)w != (j->seed / 4 + c->turn) % WIDTHS) {
      continue;
    }
    const uint64_t off = passes_of(c, j->seed, w);
    const bool with = c->in_all_widths || j->seed / 2 % 2 == 0;
    for (int n = 0; with && n < THREADS; n++) {
      failed += count_failure(run_cpu(c, j, w, n, 0));
    }
    const bool without = c->in_all_widths || j->seed / 2 % 2 == 1;
    for (int n = 0; without && n < THREADS; n++) {
      failed += count_failure(run_cpu(c, j, w, n, off));
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
  uint64_t variants = c.in_all_widths ? 2 * WIDTHS : 1;
  unsigned failed = check_random_programs(&test);
  end(&c);
  printf(
      "    %llu programs, %llu kernels compiled for cpu, %llu loaded, %llu "
      "runs, %llu of them without some passes\n",
      (unsigned long long)c.programs, (unsigned long long)c.compiled,
      (unsigned long long)c.loaded, (unsigned long long)c.runs,
      (unsigned long long)c.without);
  CHECK_U64(failed, 0);
  CHECK_U64(c.runs, seeds.count * THREADS * variants);
  CHECK_U64(c.compiled, seeds.count * variants);
  CHECK_U64(c.loaded, c.compiled * (THREADS - 1));
  CHECK(seeds.count < 4 || (c.without > 0 && c.without < c.runs));
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
  CHECK_U64(c.runs, sizeof seeds / sizeof seeds[0] * 2 * WIDTHS * THREADS);
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
