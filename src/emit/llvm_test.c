/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Kernels become LLVM IR, LLVM makes them run, and they do what ref does, byte for
 * byte, at every width.
 *
 *   VYRE_LLVM_SEED=42     only that random program
 *   VYRE_LLVM_FIRST=7     the first one; VYRE_LLVM_SEEDS=9 how many
 *
 * llvm_testing.h has the rest. */
#include <glob.h>

#include "vyre/device.h"
#include "vyre/generate.h"
#include "vyre/module.h"
#include "vyre/pipeline.h"

#include "emit/llvm_testing.h"

enum { SEEDS = 24 };

/* What a kernel is bound to; one at a time. */
static vyre__low_binding bound[MOST_BUFFERS];

static void unbind_all(void) {
  for (size_t i = 0; i < MOST_BUFFERS; i++) free(bound[i].data);
  memset(bound, 0, sizeof bound);
}

/* The hidden buffer, with room for all. */
static void bind_hidden(const vyre__low_kernel *k, const uint32_t grid[3]) {
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    if (k->buffers[i].source != VYRE_NO_INDEX) continue;
    if (k->buffers[i].kind == VYRE_MEMORY_SHARED) continue;
    uint32_t length =
        k->hidden_words * vyre__low_group_size(k) * grid[0] * grid[1] * grid[2];
    bound[i].data = calloc((size_t)length + 1, 4);
    CHECK(bound[i].data);
    bound[i].length = length;
  }
}

/* --- against ref ------------------------------------------------------------*/

static bool same_outputs(const job *j) {
  const vyre_binding_plan *plan = vyre_pipeline_bindings(j->pipeline);
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->output_index == VYRE_NO_INDEX) continue;
    const vyre_output *want = &j->outputs[b->output_index];
    const uint8_t *w = want->data, *g = bound[b->buffer_index].data;
    CHECK(w && g);
    for (size_t n = 0; n < want->size; n++) {
      if (w[n] == g[n]) continue;
      size_t unit = b->element_size ? b->element_size : 1;
      printf("    output '%s' differs at element %zu of %zu\n", b->name,
             n / unit, want->size / unit);
      return false;
    }
  }
  return true;
}

static unsigned check_job(job *j, vyre_device *device,
                          vyre__codegen_tier tier) {
  run_ref(j, device);
  vyre_status st = {0};
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  const vyre__low_kernel *k = NULL;
  vyre__target target = cpu_target();
  memcpy(target.workgroup, j->workgroup, sizeof target.workgroup);
  CHECK_OK(vyre__lower(j->program, &target, (vyre__pass)(VYRE__PASS_COUNT - 1),
                       &arena, &k, NULL, &st),
           st);
  compiled c = compile(k, tier);
  unsigned failed = 0;
  for (unsigned i = 0; i < WIDTHS; i++) {
    bind_all(j, bound);
    bind_hidden(k, j->grid);
    bool good = run_compiled(k, &c, i, bound, j->grid, UINT32_MAX) ==
                    VYRE__SPMD_DONE &&
                same_outputs(j);
    if (!good) printf("    %s at width %u\n", j->name, (unsigned)widths[i]);
    failed += !good;
    unbind_all();
  }
  compiled_free(&c);
  vyre_arena_finish(&arena);
  job_finish(j);
  return failed;
}

static unsigned check_kernel(vyre_program *source, const char *name,
                             vyre_device *device, const uint32_t *workgroup) {
  vyre_input inputs[MOST_BUFFERS];
  vyre_arena arena;
  vyre_binding_plan plan;
  vyre_status st = {0};
  uint64_t seed = 12345;
  job j = {.name = name, .program = source, .inputs = inputs};
  if (workgroup) memcpy(j.workgroup, workgroup, sizeof j.workgroup);
  vyre_arena_init(&arena, (vyre_allocator){0});
  CHECK_OK(vyre_binding_plan_build(source, &arena, &plan, &st), st);
  for (size_t i = 0; i < plan.binding_count; i++) {
    const vyre_binding *b = &plan.bindings[i];
    size_t each = b->element_size ? b->element_size : 1;
    size_t size =
        b->has_static_byte_len ? (size_t)b->static_byte_len : 1000 * each;
    if (b->input_index != VYRE_NO_INDEX) {
      void *data = vyre_arena_alloc(&arena, size + 1, 0);
      fill(data, size, source->buffers[b->buffer_index].element, &seed);
      inputs[b->input_index] = (vyre_input){data, size};
    }
    if (b->output_index != VYRE_NO_INDEX) {
      j.outputs[b->output_index].size = size;
    }
  }
  j.input_count = plan.input_count;
  j.output_count = plan.output_count;
  if (source->workgroup[1] > 1) j.grid[0] = j.grid[1] = 2;
  unsigned failed = check_job(&j, device, VYRE__CODEGEN_FULL);
  vyre_arena_finish(&arena);
  return failed;
}

static unsigned check_text(const char *bytes, size_t length, const char *name,
                           vyre_device *device) {
  vyre_module *module = NULL;
  vyre_status st = {0};
  CHECK_OK(vyre_module_parse(bytes, length, name, (vyre_allocator){0}, &module,
                             NULL, &st),
           st);
  unsigned failed = 0;
  for (size_t k = 0; k < vyre_module_kernel_count(module); k++) {
    failed += check_kernel(vyre_module_kernel(module, k), name, device, NULL);
  }
  vyre_module_release(module);
  return failed;
}

TEST(examples_do_the_same) {
  vyre_device *device = open_ref();
  unsigned failed = 0;
  glob_t found;
  CHECK(glob(VYRE_EXAMPLES_DIR "/*.vyre", 0, NULL, &found) == 0);
  CHECK(found.gl_pathc >= 5);
  for (size_t i = 0; i < found.gl_pathc; i++) {
    size_t length;
    char *bytes = read_file(found.gl_pathv[i], &length);
    failed += check_text(bytes, length, found.gl_pathv[i], device);
    free(bytes);
  }
  globfree(&found);
  vyre_device_release(device);
  CHECK_U64(failed, 0);
}

static uint64_t number_of(const char *name, uint64_t otherwise) {
  const char *given = getenv(name);
  return given ? strtoull(given, NULL, 10) : otherwise;
}

static unsigned check_seed(uint64_t seed, vyre_device *device) {
  vyre_generate_options options = {
      .seed = seed, .max_invocations = 300, .math = seed % 4 == 3};
  vyre_generated *g = NULL;
  vyre_status st = {0};
  CHECK_OK(vyre_generate(&options, (vyre_allocator){0}, &g, &st), st);
  char name[64];
  snprintf(name, sizeof name, "VYRE_LLVM_SEED=%llu", (unsigned long long)seed);
  job j = {.name = name, .program = vyre_generated_program(g)};
  j.inputs = vyre_generated_inputs(g, &j.input_count);
  const vyre_output *outputs = vyre_generated_outputs(g, &j.output_count);
  CHECK(j.output_count <= MOST_BUFFERS);
  memcpy(j.outputs, outputs, j.output_count * sizeof *outputs);
  memcpy(j.grid, vyre_generated_grid(g), sizeof j.grid);
  unsigned failed = check_job(
      &j, device, seed % 4 ? VYRE__CODEGEN_QUICK : VYRE__CODEGEN_FULL);
  vyre_generated_release(g);
  return failed;
}

TEST(random_programs_do_the_same) {
  vyre_device *device = open_ref();
  uint64_t first = number_of("VYRE_LLVM_FIRST", 0);
  uint64_t count = number_of("VYRE_LLVM_SEEDS", SEEDS);
  unsigned failed = 0;
  if (getenv("VYRE_LLVM_SEED")) {
    first = number_of("VYRE_LLVM_SEED", 0);
    count = 1;
  }
  for (uint64_t seed = first; seed < first + count && failed < 20; seed++) {
    failed += check_seed(seed, device);
  }
  vyre_device_release(device);
  CHECK_U64(failed, 0);
}

TEST_MAIN(TEST_ENTRY(examples_do_the_same),
          TEST_ENTRY(random_programs_do_the_same))
