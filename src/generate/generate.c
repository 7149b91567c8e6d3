/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "generate/generate.h"

#include <string.h>

#include "vyre/binding.h"

#include "base/memory.h"
#include "base/status.h"
#include "generate/internal.h"

enum {
  DEFAULT_STATEMENTS = 24,
  MAX_STATEMENTS = 1000,
  DEFAULT_INVOCATIONS = 256,
  MAX_INVOCATIONS = 65536
};

struct vyre_random_program {
  vyre_arena arena; /* holds everything */
  vyre_program *program;
  uint32_t grid[3];
  vyre_input *inputs;
  vyre_output *outputs;
  size_t input_count, output_count;
};

static vyre_code check_options(gen *g,
                               const vyre_random_program_options *options,
                               vyre_status *st) {
  if (options) g->options = *options;
  if (g->options.statements > MAX_STATEMENTS) {
    return VYRE_FAIL(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
        "set statements to 1000 or less",
        "vyre_random_program_create: %u statements; the maximum is %d",
        (unsigned)g->options.statements, MAX_STATEMENTS);
  }
  if (g->options.max_invocations > MAX_INVOCATIONS) {
    return VYRE_FAIL(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
        "set invocations to 65536 or less",
        "vyre_random_program_create: %u invocations; the maximum is %d",
        (unsigned)g->options.max_invocations, MAX_INVOCATIONS);
  }
  if (!g->options.statements) g->options.statements = DEFAULT_STATEMENTS;
  if (!g->options.max_invocations) {
    g->options.max_invocations = DEFAULT_INVOCATIONS;
  }
  return VYRE_OK;
}

void vyre_random_program_options_fit(vyre_random_program_options *options,
                                     const vyre_device_caps *caps) {
  if (!options || !caps) return;
  if (!caps->has_f64) options->no_f64 = true;
  if (!caps->has_u64) options->no_int64 = options->no_atomics64 = true;
  if (!caps->has_atomics64) options->only_add64 = true;
  /* No workgroup is larger than the dispatch; in 3 dimensions y and z are the
   * smaller axes. */
  uint32_t max = caps->max_workgroup_invocations;
  for (int axis = 0; axis < 3; axis++) {
    if (caps->max_workgroup[axis] < max &&
        caps->max_workgroup[axis] < gen_largest_axis(axis)) {
      max = caps->max_workgroup[axis];
    }
  }
  uint32_t asked =
      options->max_invocations ? options->max_invocations : DEFAULT_INVOCATIONS;
  if (max < gen_largest_workgroup() && max < asked) {
    options->max_invocations = max > 0 ? max : 1;
  }
}

static vyre_code make_program(gen *g, vyre_allocator allocator,
                              vyre_program **out, vyre_status *st) {
  VYRE_TRY(vyre_builder_create("generated", allocator, &g->b,
                               vyre__status_open(st)));
  gen_kernel(g);
  vyre_code code = vyre_builder_build(g->b, out, vyre__status_open(st));
  vyre_builder_release(g->b);
  return code;
}

static size_t bytes_of(const gen_buffer *b) {
  uint32_t size = vyre_element_size(b->element);
  return (size_t)b->length * (size ? size : 1);
}

/* Creates inputs and expected output sizes in the order of the binding plan.
 * Buffers are filled in the order of their declaration. */
static vyre_code make_data(gen *g, vyre_random_program *made, vyre_status *st) {
  unsigned char *bytes[GEN_BUFFERS] = {NULL};
  vyre_binding_plan plan;
  VYRE_TRY(vyre_binding_plan_build(made->program, &made->arena, &plan,
                                   vyre__status_open(st)));
  made->input_count = plan.input_count;
  made->output_count = plan.output_count;
  made->inputs =
      vyre__arena_array(&made->arena, plan.input_count, sizeof *made->inputs);
  made->outputs =
      vyre__arena_array(&made->arena, plan.output_count, sizeof *made->outputs);
  if (!made->inputs || !made->outputs) {
    return vyre__no_memory(st, "vyre_random_program_create", "bindings",
                           plan.binding_count);
  }
  for (uint32_t i = 0; i < g->buffer_count; i++) {
    const gen_buffer *b = &g->buffers[i];
    if (b->kind == GEN_OUT || b->kind == GEN_SHARED) continue;
    bytes[i] = vyre_arena_alloc(&made->arena, bytes_of(b), 0);
    if (!bytes[i]) {
      return vyre__no_memory(st, "vyre_random_program_create", "data",
                             bytes_of(b));
    }
    gen_fill(g, b->element, bytes[i], b->length);
  }
  for (size_t i = 0; i < plan.binding_count; i++) {
    const vyre_binding *binding = &plan.bindings[i];
    size_t size = bytes_of(&g->buffers[binding->buffer_index]);
    if (binding->input_index != VYRE_NO_INDEX) {
      made->inputs[binding->input_index] =
          (vyre_input){bytes[binding->buffer_index], size};
    }
    if (binding->output_index != VYRE_NO_INDEX) {
      made->outputs[binding->output_index] = (vyre_output){NULL, size};
    }
  }
  return VYRE_OK;
}

vyre_code vyre__generate(const vyre_random_program_options *options,
                         vyre__generate_fault fault, vyre_allocator allocator,
                         vyre_random_program **out, vyre_status *st) {
  if (!out) return vyre__null_argument(st, "vyre_random_program_create", "out");
  *out = NULL;
  gen g = {.fault = fault};
  VYRE_TRY(check_options(&g, options, st));
  g.random = g.options.seed;
  vyre_arena arena;
  vyre_arena_init(&arena, allocator);
  vyre_random_program *made = vyre_arena_alloc(&arena, sizeof *made, 0);
  if (!made)
    return vyre__no_memory(st, "vyre_random_program_create", "generated", 1);
  *made = (vyre_random_program){.arena = arena};
  vyre_code code = make_program(&g, allocator, &made->program, st);
  if (code == VYRE_OK) code = make_data(&g, made, st);
  if (code != VYRE_OK) {
    vyre_random_program_release(made);
    return code;
  }
  memcpy(made->grid, g.grid, sizeof made->grid);
  *out = made;
  return VYRE_OK;
}

vyre_code vyre_random_program_create(const vyre_random_program_options *options,
                                     vyre_allocator allocator,
                                     vyre_random_program **out,
                                     vyre_status *st) {
  vyre__status_begin(st);
  if (options) VYRE_CHECK_RESERVED(st, __func__, options);
  return vyre__generate(options, VYRE__FAULT_NONE, allocator, out, st);
}

void vyre_random_program_release(vyre_random_program *generated) {
  if (!generated) return;
  vyre_arena arena = generated->arena; /* the program lives in its arena */
  vyre_program_release(generated->program);
  vyre_arena_deinit(&arena);
}

vyre_program *vyre_random_program_program(
    const vyre_random_program *generated) {
  return generated->program;
}

const uint32_t *vyre_random_program_grid(const vyre_random_program *generated) {
  return generated->grid;
}

const vyre_input *vyre_random_program_inputs(
    const vyre_random_program *generated, size_t *count) {
  *count = generated->input_count;
  return generated->inputs;
}

const vyre_output *vyre_random_program_outputs(
    const vyre_random_program *generated, size_t *count) {
  *count = generated->output_count;
  return generated->outputs;
}
