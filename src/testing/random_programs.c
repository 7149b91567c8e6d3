/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE /* SA_ONSTACK; NOLINT(bugprone-reserved-identifier) */
#include "testing/random_programs.h"

#include <glob.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

enum { MAX_SECONDS = 300, MAX_FAILURES = 20, MAX_FILE = 1 << 20 };

/* --- settings ------------------------------------------------------------- */

const char *test_setting(const char *name) {
  char variable[64];
  (void)snprintf(variable, sizeof variable, "VYRE_TEST_%s", name);
  return getenv(variable);
}

uint64_t test_number(const char *name, uint64_t otherwise) {
  const char *given = test_setting(name);
  return given ? strtoull(given, NULL, 10) : otherwise;
}

seed_range test_seeds(uint64_t first, uint64_t count) {
  if (test_setting("SEED")) {
    return (seed_range){test_number("SEED", first), 1, true};
  }
  return (seed_range){test_number("FIRST", first), test_number("COUNT", count),
                      false};
}

/* --- the current program -------------------------------------------------- */

/* Static, because the handler of a crash prints it. */
static struct {
  char program[128], variant[128];
} current;

void set_variant(const char *format, ...) {
  va_list args;
  va_start(args, format);
  (void)vsnprintf(current.variant, sizeof current.variant, format, args);
  va_end(args);
}

static void set_program(const char *name) {
  (void)snprintf(current.program, sizeof current.program, "%s", name);
  set_variant("ref");
}

unsigned count_failure(bool good) {
  if (good) return 0;
  printf("    %s, %s\n", current.program, current.variant);
  (void)fflush(stdout);
  return 1;
}

FILE *test_keep(const char *suffix) {
  const char *directory = test_setting("KEEP"), *name = current.program;
  char path[512];
  if (!directory) return NULL;
  if (strrchr(name, '/')) name = strrchr(name, '/') + 1;
  if (strchr(name, '=')) name = strchr(name, '=') + 1;
  (void)snprintf(path, sizeof path, "%s/%s.%s", directory, name, suffix);
  FILE *file = fopen(path, "wb");
  CHECK(file);
  return file;
}

bool test_write(void *file, const char *text, size_t length) {
  return fwrite(text, 1, length, file) == length;
}

static void keep_program(const vyre_program *program) {
  FILE *file = test_keep("vyre");
  if (!file) return;
  CHECK(vyre_program_print(program, (vyre_writer){test_write, file}));
  CHECK(fclose(file) == 0);
}

/* --- crashes -------------------------------------------------------------- */

static const int signals[] = {SIGSEGV, SIGBUS,  SIGILL, SIGFPE,
                              SIGABRT, SIGTRAP, SIGALRM};
enum { SIGNALS = sizeof signals / sizeof *signals };
static struct sigaction handlers_before[SIGNALS];

static void write_text(const char *text) {
  (void)!write(STDOUT_FILENO, text, strlen(text));
}

/* Runs the previous handler afterwards. */
static void on_signal(int number) {
  const char digits[] = {(char)('0' + number / 10), (char)('0' + number % 10),
                         '\0'};
  write_text("    signal ");
  write_text(digits);
  write_text(" in ");
  write_text(current.program);
  write_text(", ");
  write_text(current.variant);
  write_text("\n");
  for (int i = 0; i < SIGNALS; i++) {
    if (signals[i] != number) continue;
    (void)sigaction(number, &handlers_before[i], NULL);
  }
  if (number == SIGALRM) (void)raise(SIGALRM);
}

static void catch_signals(void) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < SIGNALS; i++) {
    CHECK(sigaction(signals[i], &action, &handlers_before[i]) == 0);
  }
  (void)alarm(MAX_SECONDS);
}

static void restore_signals(void) {
  (void)alarm(0);
  for (int i = 0; i < SIGNALS; i++) {
    CHECK(sigaction(signals[i], &handlers_before[i], NULL) == 0);
  }
}

/* --- ref ------------------------------------------------------------------ */

static vyre_dispatch_desc desc_of(const job *j) {
  return (vyre_dispatch_desc){.inputs = j->inputs,
                              .input_count = j->input_count,
                              .outputs = j->outputs,
                              .output_count = j->output_count};
}

static vyre_pipeline *compile_ref(const job *j, vyre_device *ref, uint32_t y,
                                  uint32_t z) {
  vyre_compile_options options = {{j->workgroup[0], y, z}};
  vyre_pipeline *pipeline = NULL;
  vyre_status st = {0};
  CHECK_OK(
      vyre_pipeline_compile(ref, j->program, &options, &pipeline, NULL, &st),
      st);
  return pipeline;
}

/* Computes the grid that covers the data with workgroups of the same size on x
 * only. */
static void grid_along_x(job *j, vyre_device *ref) {
  vyre_status st = {0};
  vyre_dispatch_desc desc = desc_of(j);
  vyre_pipeline *pipeline = compile_ref(j, ref, 1, 1);
  CHECK_OK(vyre_dispatch_grid(pipeline, &desc, j->grid, &st), st);
  vyre_pipeline_release(pipeline);
}

void run_ref(job *j) {
  vyre_status st = {0};
  vyre_device *ref = NULL;
  CHECK_OK(vyre_device_open(NULL, "ref", &ref, &st), st);
  j->pipeline = compile_ref(j, ref, j->workgroup[1], j->workgroup[2]);
  for (size_t i = 0; i < j->output_count; i++) {
    j->outputs[i].data = calloc(1, j->outputs[i].size + 1);
    CHECK(j->outputs[i].data);
  }
  if (!j->grid[0] && (j->workgroup[1] > 1 || j->workgroup[2] > 1)) {
    grid_along_x(j, ref);
  }
  vyre_dispatch_desc desc = desc_of(j);
  memcpy(desc.grid, j->grid, sizeof desc.grid);
  CHECK_OK(vyre_dispatch_grid(j->pipeline, &desc, j->grid, &st), st);
  CHECK_OK(vyre_dispatch(j->pipeline, &desc, &st), st);
  vyre_device_release(ref);
}

void job_deinit(job *j) {
  for (size_t i = 0; i < j->output_count; i++) free(j->outputs[i].data);
  vyre_pipeline_release(j->pipeline);
}

/* --- memory --------------------------------------------------------------- */

void fill(void *data, size_t size, vyre_element element, uint64_t *seed) {
  size_t each = vyre_element_size(element) ? vyre_element_size(element) : 1;
  for (size_t at = 0; at + each <= size; at += each) {
    uint64_t value = random_below(seed, 100);
    float f = (float)value / 16 - 3;
    double d = f;
    if (element == VYRE_ELEMENT_F32) {
      memcpy((char *)data + at, &f, sizeof f);
    } else if (element == VYRE_ELEMENT_F64) {
      memcpy((char *)data + at, &d, sizeof d);
    } else {
      memcpy((char *)data + at, &value, each);
    }
  }
}

static size_t element_size(const vyre_binding *b) {
  return b->element_size ? b->element_size : 1;
}

static void bind_spill(const job *j, const vyre__lir_kernel *k,
                       vyre__lir_binding *out) {
  uint64_t words = 0;
  if (k->spill_buffer == VYRE_NO_INDEX) return;
  CHECK(vyre__lir_spill_words(
      k,
      (uint64_t)vyre__lir_group_size(k) * j->grid[0] * j->grid[1] * j->grid[2],
      &words));
  out[k->spill_buffer] =
      (vyre__lir_binding){calloc(words + 1, 4), (uint32_t)words};
  CHECK(out[k->spill_buffer].data);
}

/* The static analyzer loses track of the array. */
/* NOLINTBEGIN(clang-analyzer-unix.Malloc) */
void bind_all(const job *j, const vyre__lir_kernel *kernel,
              vyre__lir_binding out[MAX_BUFFERS]) {
  const vyre_binding_plan *plan = vyre_pipeline_bindings(j->pipeline);
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    bool is_input = b->input_index != VYRE_NO_INDEX;
    bool is_output = b->output_index != VYRE_NO_INDEX;
    size_t size = is_input    ? j->inputs[b->input_index].size
                  : is_output ? j->outputs[b->output_index].size
                              : (size_t)b->static_byte_len;
    if (b->role == VYRE_ROLE_SHARED) continue;
    vyre__lir_binding *to = &out[b->buffer_index];
    *to = (vyre__lir_binding){calloc(1, size + 8),
                              (uint32_t)(size / element_size(b))};
    CHECK(to->data);
    if (is_input && size) {
      memcpy(to->data, j->inputs[b->input_index].data, size);
    }
  }
  if (kernel) bind_spill(j, kernel, out);
}
/* NOLINTEND(clang-analyzer-unix.Malloc) */

void unbind_all(vyre__lir_binding bound[MAX_BUFFERS]) {
  for (size_t i = 0; i < MAX_BUFFERS; i++) free(bound[i].data);
  memset(bound, 0, MAX_BUFFERS * sizeof *bound);
}

/* --- comparison ----------------------------------------------------------- */

static void print_element(const unsigned char *bytes, size_t size) {
  printf("0x");
  for (size_t i = size; i-- > 0;) printf("%02x", bytes[i]);
}

static bool same_output(const vyre_binding *b, const vyre_output *want,
                        const unsigned char *got) {
  const unsigned char *bytes = want->data;
  size_t each = element_size(b), at = 0;
  if (want->size == 0) return true;
  CHECK(bytes && got);
  if (memcmp(bytes, got, want->size) == 0) return true;
  while (bytes[at] == got[at]) at++;
  at = at / each * each;
  printf("    output '%s' differs at element %zu of %zu: ", b->name, at / each,
         want->size / each);
  print_element(got + at, each);
  printf(", must be ");
  print_element(bytes + at, each);
  printf("\n");
  return false;
}

static bool same_results(const job *j, const vyre_output *outputs,
                         const vyre__lir_binding *buffers) {
  const vyre_binding_plan *plan = vyre_pipeline_bindings(j->pipeline);
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->output_index == VYRE_NO_INDEX) continue;
    if (!same_output(b, &j->outputs[b->output_index],
                     outputs ? outputs[b->output_index].data
                             : buffers[b->buffer_index].data)) {
      return false;
    }
  }
  return true;
}

bool same_outputs(const job *j, const vyre_output *got) {
  return same_results(j, got, NULL);
}

bool same_buffers(const job *j, const vyre__lir_binding *got) {
  return same_results(j, NULL, got);
}

/* --- random programs ------------------------------------------------------ */

typedef struct random_check {
  const program_test *test;
  vyre_random_program_options options;
  unsigned failed;
} random_check;

static void job_of_generated(job *j, const vyre_random_program *g) {
  j->program = vyre_random_program_program(g);
  const vyre_input *inputs = vyre_random_program_inputs(g, &j->input_count);
  const vyre_output *outputs = vyre_random_program_outputs(g, &j->output_count);
  CHECK(j->input_count <= MAX_BUFFERS && j->output_count <= MAX_BUFFERS &&
        j->program->buffer_count <= MAX_BUFFERS - 8);
  memcpy(j->inputs, inputs, j->input_count * sizeof *inputs);
  memcpy(j->outputs, outputs, j->output_count * sizeof *outputs);
  memcpy(j->grid, vyre_random_program_grid(g), sizeof j->grid);
}

static void run_random_program(void *self) {
  random_check *c = self;
  vyre_random_program *g = NULL;
  vyre_status st = {0};
  job j = {.name = current.program, .seed = c->options.seed};
  CHECK_OK(
      vyre_random_program_create(&c->options, (vyre_allocator){0}, &g, &st),
      st);
  job_of_generated(&j, g);
  keep_program(j.program);
  if (c->test->skips_ref) {
    j.output_count = 0;
  } else {
    run_ref(&j);
  }
  c->failed = c->test->check(&j, c->test->self);
  job_deinit(&j);
  vyre_random_program_release(g);
}

unsigned check_random_program(const program_test *test,
                              vyre_random_program_options options) {
  random_check c = {test, options, 0};
  char name[64];
  (void)snprintf(name, sizeof name, "VYRE_TEST_SEED=%llu",
                 (unsigned long long)options.seed);
  set_program(name);
  catch_signals();
  bool is_complete = test_part(run_random_program, &c);
  restore_signals();
  return c.failed + count_failure(is_complete);
}

unsigned check_random_programs(const program_test *test) {
  const seed_range seeds = test_seeds(test->first, test->count);
  unsigned failed = 0;
  for (uint64_t i = 0; i < seeds.count && failed < MAX_FAILURES; i++) {
    failed +=
        check_random_program(test, test->options(seeds.first + i, test->self));
  }
  return failed;
}

/* --- kernels from text ---------------------------------------------------- */

vyre_binding_plan job_of_kernel(job *j, size_t length, uint64_t seed,
                                vyre_arena *arena) {
  vyre_status st = {0};
  vyre_binding_plan plan;
  CHECK_OK(vyre_binding_plan_build(j->program, arena, &plan, &st), st);
  CHECK(plan.input_count <= MAX_BUFFERS && plan.output_count <= MAX_BUFFERS);
  set_program(j->name);
  j->seed = seed;
  for (size_t i = 0; i < plan.binding_count; i++) {
    const vyre_binding *b = &plan.bindings[i];
    size_t size = b->has_static_byte_len ? (size_t)b->static_byte_len
                                         : length * element_size(b);
    if (b->input_index != VYRE_NO_INDEX) {
      void *data = vyre_arena_alloc(arena, size + 1, 0);
      CHECK(data);
      fill(data, size, j->program->buffers[b->buffer_index].element, &seed);
      j->inputs[b->input_index] = vyre_input_bytes(data, size);
    }
    if (b->output_index != VYRE_NO_INDEX) {
      j->outputs[b->output_index].size = size;
    }
  }
  j->input_count = plan.input_count;
  j->output_count = plan.output_count;
  if (j->program->workgroup[1] > 1) j->grid[0] = j->grid[1] = 2;
  return plan;
}

unsigned check_kernel(const program_test *test, vyre_program *program,
                      const char *name) {
  vyre_arena arena;
  job j = {.name = name, .program = program};
  vyre_arena_init(&arena, (vyre_allocator){0});
  if (test->workgroup) {
    memcpy(j.workgroup, test->workgroup, sizeof j.workgroup);
  }
  (void)job_of_kernel(&j, test->length, 12345, &arena);
  keep_program(program);
  run_ref(&j);
  unsigned failed = test->check(&j, test->self);
  job_deinit(&j);
  vyre_arena_deinit(&arena);
  return failed;
}

static unsigned check_one(vyre_program *program, const char *name, void *self) {
  return check_kernel(self, program, name);
}

unsigned check_text(const program_test *test, const char *text,
                    const char *name) {
  program_test copy = *test;
  return each_kernel(text, strlen(text), name, check_one, &copy);
}

unsigned check_examples(const program_test *test) {
  program_test copy = *test;
  return each_example(check_one, &copy);
}

unsigned each_kernel(const char *text, size_t length, const char *name,
                     kernel_function *function, void *self) {
  vyre_module *module = NULL;
  vyre_status st = {0};
  unsigned failed = 0;
  CHECK_OK(vyre_module_parse(text, length, name, (vyre_allocator){0}, &module,
                             NULL, &st),
           st);
  for (size_t i = 0; i < vyre_module_kernel_count(module); i++) {
    failed += function(vyre_module_kernel(module, i), name, self);
  }
  vyre_module_release(module);
  return failed;
}

unsigned each_example(kernel_function *function, void *self) {
  static char text[MAX_FILE];
  glob_t found;
  unsigned failed = 0;
  CHECK(glob(VYRE_EXAMPLES_DIR "/*.vyre", 0, NULL, &found) == 0);
  CHECK(found.gl_pathc >= 5);
  for (size_t i = 0; i < found.gl_pathc; i++) {
    FILE *file = fopen(found.gl_pathv[i], "rb");
    CHECK(file);
    size_t length = fread(text, 1, sizeof text, file);
    CHECK(fclose(file) == 0 && length < sizeof text);
    failed += each_kernel(text, length, found.gl_pathv[i], function, self);
  }
  globfree(&found);
  return failed;
}
