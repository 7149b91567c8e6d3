/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs a program on `ref`, and prepares the same inputs and memory for another
 * implementation to compare with. */
#ifndef VYRE_TESTING_REFERENCE_RUN_TESTING_H
#define VYRE_TESTING_REFERENCE_RUN_TESTING_H

#include <glob.h>
#include <string.h>

#include "vyre/device.h"
#include "vyre/module.h"
#include "vyre/pipeline.h"
#include "vyre/random_program.h"

#include "support/check.h"
#include "testing/lir_interp.h"

enum { MOST_BUFFERS = 64 };

typedef struct job {
  const char *name;
  vyre_program *program;
  const vyre_input *inputs;
  size_t input_count;
  vyre_output outputs[MOST_BUFFERS]; /* sizes; after run_ref also the results */
  size_t output_count;
  uint32_t grid[3];
  uint32_t workgroup[3]; /* 0 on x: as in the program */
  uint8_t poison;        /* initial value of memory */
  vyre_pipeline *pipeline;
} job;

static inline vyre_device *open_ref(void) {
  vyre_device *device = NULL;
  vyre_status st = {0};
  CHECK_OK(vyre_device_open(NULL, "ref", &device, &st), st);
  return device;
}

/* Computes the grid that covers the data with workgroups of the same size on x
 * only. */
static inline void grid_along_x(job *j, vyre_device *device,
                                const vyre_dispatch_desc *desc) {
  vyre_status st = {0};
  vyre_compile_options options = {{j->workgroup[0], 1, 1}};
  vyre_pipeline *pipeline;
  CHECK_OK(
      vyre_pipeline_compile(device, j->program, &options, &pipeline, NULL, &st),
      st);
  CHECK_OK(vyre_dispatch_grid(pipeline, desc, j->grid, &st), st);
  vyre_pipeline_release(pipeline);
}

/* Compiles and runs the program on ref. The outputs live until job_finish. */
static inline void run_ref(job *j, vyre_device *device) {
  vyre_status st = {0};
  vyre_compile_options options = {
      {j->workgroup[0], j->workgroup[1], j->workgroup[2]}};
  CHECK_OK(vyre_pipeline_compile(device, j->program, &options, &j->pipeline,
                                 NULL, &st),
           st);
  for (size_t i = 0; i < j->output_count; i++) {
    j->outputs[i].data = calloc(1, j->outputs[i].size + 1);
  }
  vyre_dispatch_desc desc = {.inputs = j->inputs,
                             .input_count = j->input_count,
                             .outputs = j->outputs,
                             .output_count = j->output_count};
  if (!j->grid[0] && (j->workgroup[1] > 1 || j->workgroup[2] > 1)) {
    grid_along_x(j, device, &desc);
  }
  memcpy(desc.grid, j->grid, sizeof desc.grid);
  CHECK_OK(vyre_dispatch_grid(j->pipeline, &desc, j->grid, &st), st);
  CHECK_OK(vyre_dispatch(j->pipeline, &desc, &st), st);
}

static inline void job_finish(job *j) {
  for (size_t i = 0; i < j->output_count; i++) free(j->outputs[i].data);
  vyre_pipeline_release(j->pipeline);
}

/* Allocates the buffers of the program with their initial contents. The caller
 * frees them. The static analyzer loses track of the array. */
/* NOLINTBEGIN(clang-analyzer-unix.Malloc) */
static inline void bind_all(const job *j, vyre__lir_binding *out) {
  const vyre_binding_plan *plan = vyre_pipeline_bindings(j->pipeline);
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    bool is_input = b->input_index != VYRE_NO_INDEX;
    bool is_output = b->output_index != VYRE_NO_INDEX;
    size_t element = b->element_size ? b->element_size : 1;
    size_t size = is_input    ? j->inputs[b->input_index].size
                  : is_output ? j->outputs[b->output_index].size
                              : (size_t)b->static_byte_len;
    if (b->role == VYRE_ROLE_SHARED) continue;
    vyre__lir_binding *to = &out[b->buffer_index];
    *to = (vyre__lir_binding){calloc(1, size + 8), (uint32_t)(size / element)};
    CHECK(to->data);
    if (is_input && size) {
      memcpy(to->data, j->inputs[b->input_index].data, size);
    }
  }
}
/* NOLINTEND(clang-analyzer-unix.Malloc) */

/* Reads a file of at most 1 MiB. The caller frees the result. */
static inline char *read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  CHECK(file);
  char *bytes = malloc(1 << 20);
  CHECK(bytes);
  *length = fread(bytes, 1, 1 << 20, file);
  fclose(file);
  return bytes;
}

/* Fills a buffer with small numbers, which are useful as indices and loop
 * bounds. */
static inline void fill(void *data, size_t size, vyre_element element,
                        uint64_t *seed) {
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

/* --- sources of programs ------------------------------------------------ */

/* Creates data for j->program in the arena. Buffers without a length get
 * @p length elements. Returns the binding plan. */
static inline vyre_binding_plan job_of_kernel(job *j, size_t length,
                                              uint64_t seed,
                                              vyre_arena *arena) {
  vyre_status st = {0};
  vyre_binding_plan plan;
  CHECK_OK(vyre_binding_plan_build(j->program, arena, &plan, &st), st);
  CHECK(plan.output_count <= MOST_BUFFERS);
  vyre_input *inputs =
      vyre_arena_alloc(arena, (plan.input_count + 1) * sizeof *inputs, 0);
  CHECK(inputs);
  for (size_t i = 0; i < plan.binding_count; i++) {
    const vyre_binding *b = &plan.bindings[i];
    size_t each = b->element_size ? b->element_size : 1;
    size_t size =
        b->has_static_byte_len ? (size_t)b->static_byte_len : length * each;
    if (b->input_index != VYRE_NO_INDEX) {
      void *data = vyre_arena_alloc(arena, size + 1, 0);
      CHECK(data);
      fill(data, size, j->program->buffers[b->buffer_index].element, &seed);
      inputs[b->input_index] = vyre_input_bytes(data, size);
    }
    if (b->output_index != VYRE_NO_INDEX) {
      j->outputs[b->output_index].size = size;
    }
  }
  j->inputs = inputs;
  j->input_count = plan.input_count;
  j->output_count = plan.output_count;
  if (j->program->workgroup[1] > 1) j->grid[0] = j->grid[1] = 2;
  return plan;
}

/* Uses the program and the data of @p g, which must outlive the job. */
static inline void job_of_generated(job *j, const vyre_random_program *g) {
  j->program = vyre_random_program_program(g);
  j->inputs = vyre_random_program_inputs(g, &j->input_count);
  const vyre_output *outputs = vyre_random_program_outputs(g, &j->output_count);
  CHECK(j->output_count <= MOST_BUFFERS &&
        j->program->buffer_count <= MOST_BUFFERS - 8);
  memcpy(j->outputs, outputs, j->output_count * sizeof *outputs);
  memcpy(j->grid, vyre_random_program_grid(g), sizeof j->grid);
}

/* Checks a kernel. Returns the number of failures. */
typedef unsigned kernel_check(vyre_program *kernel, const char *name,
                              void *self);

static inline unsigned each_kernel(const char *bytes, size_t length,
                                   const char *name, kernel_check *check,
                                   void *self) {
  vyre_module *module = NULL;
  vyre_status st = {0};
  unsigned failed = 0;
  CHECK_OK(vyre_module_parse(bytes, length, name, (vyre_allocator){0}, &module,
                             NULL, &st),
           st);
  for (size_t i = 0; i < vyre_module_kernel_count(module); i++) {
    failed += check(vyre_module_kernel(module, i), name, self);
  }
  vyre_module_release(module);
  return failed;
}

/* Checks every kernel of examples/. */
static inline unsigned each_example(kernel_check *check, void *self) {
  glob_t found;
  unsigned failed = 0;
  CHECK(glob(VYRE_EXAMPLES_DIR "/*.vyre", 0, NULL, &found) == 0);
  CHECK(found.gl_pathc >= 5);
  for (size_t i = 0; i < found.gl_pathc; i++) {
    size_t length;
    char *bytes = read_file(found.gl_pathv[i], &length);
    failed += each_kernel(bytes, length, found.gl_pathv[i], check, self);
    free(bytes);
  }
  globfree(&found);
  return failed;
}

#endif
