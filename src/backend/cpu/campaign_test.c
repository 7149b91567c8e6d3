/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random programs give the same bytes on cpu as on ref: at widths 1, 4, 8 and 16,
 * on 1, 2 and 7 threads.
 *
 * Unless told otherwise, 300 programs, of which each is compiled at one width, the
 * next one for every four of them, and run on all three numbers of threads: all
 * twelve pairs have 75 programs or so each.
 *
 *   VYRE_CPU_SEED=42      only that program, at all widths
 *   VYRE_CPU_FIRST=300    the first one; VYRE_CPU_SEEDS=250 how many
 *   VYRE_CPU_WIDTHS=all   each at all four widths
 *   VYRE_CPU_TURN=1       at the next width: turns 0 to 3 are all four
 *
 * One program: run once by ref, compiled once a width, loaded from the cache for
 * the other numbers of threads. Memory ends, or begins, where a page does that
 * nobody may touch. Work is shared however short it is. A crash, and what takes
 * longer than HANG_SECONDS, says which program it was. */
#define _GNU_SOURCE /* mkdtemp, MAP_ANONYMOUS; NOLINT(bugprone-reserved-identifier) */
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vyre/vyre.h"

#include "backend/cpu/cpu.h"
#include "support/check.h"
#include "support/sanitized.h"

enum {
  SEEDS = SANITIZED ? 48 : 300,
  HANG_SECONDS = 300,
  MOST_FAILURES = 20,
  MOST_BUFFERS = 64,
  PAGE = 4096,
  ROOM = 1 << 20, /* of one buffer */
  PRUNE = 32      /* programs, after which the cache is emptied */
};

static const uint32_t widths[] = {1, 4, 8, 16}, threads[] = {1, 2, 7};
enum {
  WIDTHS = sizeof widths / sizeof widths[0],
  THREADS = sizeof threads / sizeof threads[0]
};

/* --- who it was -------------------------------------------------------------------*/

static struct {
  volatile unsigned long long seed;
  volatile unsigned width, threads; /* 0: ref */
} now;

static const int signals[] = {SIGSEGV, SIGBUS,  SIGILL, SIGFPE,
                              SIGABRT, SIGTRAP, SIGALRM};
enum { SIGNALS = sizeof signals / sizeof signals[0] };
static struct sigaction before[SIGNALS];

static size_t put_number(char *to, unsigned long long value) {
  char digits[24];
  size_t count = 0;
  do {
    digits[count++] = (char)('0' + value % 10);
    value /= 10;
  } while (value);
  for (size_t i = 0; i < count; i++) to[i] = digits[count - 1 - i];
  return count;
}

static size_t put_text(char *to, const char *text) {
  size_t length = 0;
  for (; text[length]; length++) to[length] = text[length];
  return length;
}

/* What was there before then does what it does for this signal. */
static void tell(int number) {
  char line[160];
  size_t at = put_text(line, "    signal ");
  at += put_number(line + at, (unsigned)number);
  at += put_text(line + at, " at VYRE_CPU_SEED=");
  at += put_number(line + at, now.seed);
  at += put_text(line + at, ", width ");
  at += put_number(line + at, now.width);
  at += put_text(line + at, ", threads ");
  at += put_number(line + at, now.threads);
  at += put_text(line + at, "\n");
  (void)!write(STDOUT_FILENO, line, at);
  for (int i = 0; i < SIGNALS; i++) {
    if (signals[i] == number) (void)sigaction(number, &before[i], NULL);
  }
  if (number == SIGALRM) (void)raise(SIGALRM);
}

static void listen(void) {
  setvbuf(stdout, NULL, _IOLBF, 0); /* a run is long, and somebody looks */
  struct sigaction action = {.sa_handler = tell, .sa_flags = SA_ONSTACK};
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < SIGNALS; i++) {
    CHECK(sigaction(signals[i], &action, &before[i]) == 0);
  }
}

/* --- memory -----------------------------------------------------------------------*/

static unsigned char *rooms[MOST_BUFFERS];

/* Room that ends right before a page that nobody may touch, or begins right behind
 * one. */
static void *place(size_t index, size_t size, bool is_end) {
  CHECK(index < MOST_BUFFERS && size <= ROOM);
  if (!rooms[index]) {
    void *all = mmap(NULL, ROOM + 2 * PAGE, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(all != MAP_FAILED);
    rooms[index] = (unsigned char *)all + PAGE;
    CHECK(mprotect(rooms[index], ROOM, PROT_READ | PROT_WRITE) == 0);
  }
  return rooms[index] + (is_end ? ROOM - size : 0);
}

/* --- devices ----------------------------------------------------------------------*/

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
  const vyre_cache_prune_options all = {.all = true};
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

/* --- one program ------------------------------------------------------------------*/

typedef struct trial {
  uint64_t seed;
  vyre_generated *made;
  vyre_program *program;
  vyre_dispatch_desc desc;
  vyre_output want[MOST_BUFFERS];
} trial;

/* Plain ones, with functions, longer ones, on more workgroups. */
static vyre_generate_options options_of(uint64_t seed) {
  vyre_generate_options options = {.seed = seed, .math = seed % 4 == 3};
  if (seed % 8 == 5) options.statements = 60;
  if (seed % 4 == 2) options.max_invocations = 4000;
  return options;
}

static void run_on(const campaign *c, vyre_device *device, const trial *t,
                   vyre_pipeline **pipeline, vyre_dispatch_desc *desc,
                   vyre_status *st) {
  (void)c;
  CHECK_OK(vyre_pipeline_compile(device, t->program, NULL, pipeline, NULL, st),
           *st);
  CHECK_OK(vyre_dispatch(*pipeline, desc, st), *st);
}

static void run_ref(const campaign *c, trial *t) {
  vyre_status st = {0};
  vyre_pipeline *pipeline = NULL;
  vyre_dispatch_desc desc = t->desc;
  desc.outputs = t->want;
  now.width = now.threads = 0;
  for (size_t i = 0; i < desc.output_count; i++) {
    t->want[i].data = calloc(1, t->want[i].size + 1);
    CHECK(t->want[i].data);
  }
  run_on(c, c->ref, t, &pipeline, &desc, &st);
  vyre_pipeline_release(pipeline);
}

static bool is_same(const trial *t, const vyre_pipeline *pipeline,
                    const vyre_output *got) {
  const vyre_binding_plan *plan = vyre_pipeline_bindings(pipeline);
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->output_index == VYRE_NO_INDEX) continue;
    const unsigned char *g = got[b->output_index].data;
    const unsigned char *w = t->want[b->output_index].data;
    size_t size = t->want[b->output_index].size, at = 0;
    size_t unit = b->element_size ? b->element_size : 1;
    if (memcmp(g, w, size) == 0) continue;
    while (g[at] == w[at]) at++;
    printf(
        "    VYRE_CPU_SEED=%llu, width %u, threads %u: output '%s' differs "
        "at element %zu of %zu\n",
        (unsigned long long)t->seed, now.width, now.threads, b->name, at / unit,
        size / unit);
    return false;
  }
  return true;
}

/* Lets the pool think that workgroups take long: it then shares few of them too. */
static void let_share(vyre_pipeline *pipeline) {
  cpu_pipeline *own = (cpu_pipeline *)pipeline;
  for (uint32_t i = 0; i < own->plan.phase_count; i++) {
    atomic_store(&own->costs[i], 1000000000u);
  }
}

static bool run_cpu(campaign *c, const trial *t, int w, int n) {
  vyre_status st = {0};
  vyre_pipeline *pipeline = NULL;
  vyre_input inputs[MOST_BUFFERS];
  vyre_output outputs[MOST_BUFFERS];
  vyre_dispatch_desc desc = t->desc;
  vyre_cache_info info;
  bool is_end = n != 1;
  size_t used = 0;
  now.width = widths[w];
  now.threads = threads[n];
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
  CHECK(vyre_pipeline_cache_info(pipeline, &info));
  c->compiled += info.result == VYRE_CACHE_MISS;
  c->loaded += info.result == VYRE_CACHE_DISK_HIT;
  let_share(pipeline);
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
  bool good = is_same(t, pipeline, outputs);
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
  vyre_status st = {0};
  vyre_generate_options options = options_of(seed);
  trial t = {.seed = seed};
  now.seed = seed;
  (void)alarm(HANG_SECONDS);
  CHECK_OK(vyre_generate(&options, (vyre_allocator){0}, &t.made, &st), st);
  t.program = vyre_generated_program(t.made);
  t.desc.inputs = vyre_generated_inputs(t.made, &t.desc.input_count);
  const vyre_output *sizes =
      vyre_generated_outputs(t.made, &t.desc.output_count);
  CHECK(t.desc.output_count <= MOST_BUFFERS);
  memcpy(t.want, sizes, t.desc.output_count * sizeof *sizes);
  memcpy(t.desc.grid, vyre_generated_grid(t.made), sizeof t.desc.grid);
  run_ref(c, &t);
  for (int w = 0; w < WIDTHS; w++) {
    if (!a->is_wide && (uint64_t)w != (seed / 4 + a->turn) % WIDTHS) {
      continue;
    }
    for (int n = 0; n < THREADS; n++) c->failed += !run_cpu(c, &t, w, n);
  }
  for (size_t i = 0; i < t.desc.output_count; i++) free(t.want[i].data);
  vyre_generated_release(t.made);
  if (++c->programs % PRUNE == 0) empty_cache(c);
}

/* --- all of them ------------------------------------------------------------------*/

static uint64_t number_of(const char *name, uint64_t otherwise) {
  const char *given = getenv(name);
  return given ? strtoull(given, NULL, 10) : otherwise;
}

TEST(random_programs_do_the_same) {
  static campaign c;
  bool is_one = getenv("VYRE_CPU_SEED") != NULL;
  uint64_t first = number_of(is_one ? "VYRE_CPU_SEED" : "VYRE_CPU_FIRST", 0);
  uint64_t count = is_one ? 1 : number_of("VYRE_CPU_SEEDS", SEEDS);
  uint64_t turn = number_of("VYRE_CPU_TURN", 0);
  bool is_wide = is_one || getenv("VYRE_CPU_WIDTHS") != NULL;
  listen();
  begin(&c);
  for (uint64_t i = 0; i < count && c.failed < MOST_FAILURES; i++) {
    attempt one = {&c, first + i, turn, is_wide};
    if (test_part(run_program, &one)) continue;
    printf("    VYRE_CPU_SEED=%llu, width %u, threads %u\n", now.seed,
           now.width, now.threads);
    c.failed++;
  }
  (void)alarm(0);
  end(&c);
  printf(
      "    %llu programs, %llu kernels compiled for cpu, %llu loaded, %llu "
      "runs\n",
      (unsigned long long)c.programs, (unsigned long long)c.compiled,
      (unsigned long long)c.loaded, (unsigned long long)c.runs);
  CHECK_U64(c.failed, 0);
  CHECK_U64(c.runs, count * THREADS * (is_wide ? WIDTHS : 1));
  CHECK_U64(c.compiled, count * (is_wide ? WIDTHS : 1));
  CHECK_U64(c.loaded, c.compiled * (THREADS - 1));
}

/* Each of these was wrong once. */
TEST(programs_that_were_wrong_are_right) {
  static const uint64_t seeds[] = {6063};
  static campaign c;
  listen();
  begin(&c);
  for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
    attempt one = {&c, seeds[i], 0, true};
    CHECK(test_part(run_program, &one));
  }
  (void)alarm(0);
  end(&c);
  CHECK_U64(c.failed, 0);
  CHECK_U64(c.runs, sizeof seeds / sizeof seeds[0] * WIDTHS * THREADS);
}

static const test_case all_cases[] = {
    TEST_ENTRY(random_programs_do_the_same),
    TEST_ENTRY(programs_that_were_wrong_are_right)};

int main(int argc, char **argv) {
  if (!vyre__machine_find()->is_usable) {
    puts("skipped: this is no x86-64 processor that device 'cpu' can use");
    return 77;
  }
  return run_tests(all_cases, sizeof all_cases / sizeof all_cases[0],
                   argc > 1 ? argv[1] : NULL);
}
