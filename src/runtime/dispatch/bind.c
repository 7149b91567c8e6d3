/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Resolves and checks the bindings of a dispatch against the plan of its
 * kernel, before anything is changed. A first pass resolves sizes and device
 * buffers; bind_memory.c then checks overlaps and copies. Bindings
 * that equal those of the last dispatch skip both (prepared_match.h). */
#include "runtime/dispatch/bind.h"

#include <string.h>

#include "base/attributes.h"
#include "base/memory.h"
#include "base/status.h"
#include "hal/backend.h"
#include "ir/ir.h"
#include "runtime/compile/device_limits.h"
#include "runtime/compile/pipeline.h"
#include "runtime/dispatch/bind_memory.h"
#include "runtime/dispatch/dimensions.h"
#include "runtime/dispatch/grid.h"
#include "runtime/dispatch/prepared.h"
#include "runtime/memory/device_buffer.h"

static vyre__binding_info build_info(const vyre_binding *b, size_t index,
                                     const vyre_program *program) {
  uint32_t grid_buffer = program->over;
  uint8_t access = (uint8_t)program->buffers[b->buffer_index].access;
  bool is_persistent = b->role == VYRE_ROLE_PERSISTENT;
  uint32_t element = b->element_size > 1 ? b->element_size : 1;
  vyre_element kind = program->buffers[b->buffer_index].element;
  uint32_t scalar =
      vyre__is_sum(kind) ? sizeof(uint64_t) : vyre_element_size(kind);
  bool is_excluded =
      b->role == VYRE_ROLE_UNIFORM || b->role == VYRE_ROLE_SHARED;
  return (vyre__binding_info){
      .binding = b,
      .static_bytes = b->static_byte_len,
      .index = (uint32_t)index,
      .buffer = b->buffer_index,
      .input = b->input_index,
      .output = b->output_index,
      .resource = VYRE_NO_INDEX,
      .element = element,
      .shift = (element & (element - 1)) == 0 ? (uint8_t)__builtin_ctz(element)
                                              : VYRE__NO_SHIFT,
      .mask = (uint8_t)(scalar > 1 ? scalar - 1 : 0),
      .aligned = 1,
      .is_static = b->has_static_byte_len,
      .has_contents = b->input_index != VYRE_NO_INDEX || is_persistent,
      .is_persistent = is_persistent,
      .is_written =
          access == VYRE_ACCESS_WRITE || access == VYRE_ACCESS_READ_WRITE,
      .is_covered = grid_buffer == VYRE_NO_INDEX
                        ? !is_excluded
                        : b->buffer_index == grid_buffer};
}

/* Requires natural alignment for buffers that atomic operations access: CPU
 * atomics need it. */
static void align_atomics(const vyre_program *program,
                          vyre__binding_info *infos, size_t count) {
  for (size_t k = 0; k < count; k++) { /* stores to narrow fields */
    const vyre_struct *s = program->buffers[infos[k].buffer].structure;
    if (s) infos[k].aligned = (uint8_t)s->alignment;
  }
  for (uint32_t i = 0; i < program->node_count; i++) {
    const vyre__node *node = &program->nodes[i];
    if (!(vyre__ops[node->op].flags & VYRE__OPF_ATOMICS)) continue;
    for (size_t k = 0; k < count; k++) {
      if (infos[k].buffer == node->a) infos[k].aligned = infos[k].mask + 1;
    }
  }
}

vyre_code vyre__binding_infos_build(vyre_pipeline *pipeline, vyre_status *st) {
  const vyre_binding_plan *plan = &pipeline->plan;
  struct vyre__pipeline_state *state = pipeline->state;
  vyre_arena *arena = &pipeline->arena;
  size_t count = plan->binding_count;
  vyre__binding_info *infos = vyre__arena_array(arena, count, sizeof *infos);
  state->inputs = (const vyre__binding_info **)vyre__arena_array(
      arena, plan->input_count, sizeof *state->inputs);
  state->outputs = (const vyre__binding_info **)vyre__arena_array(
      arena, plan->output_count, sizeof *state->outputs);
  state->resources = (const vyre__binding_info **)vyre__arena_array(
      arena, count, sizeof *state->resources);
  state->persistents = (const vyre__binding_info **)vyre__arena_array(
      arena, count, sizeof *state->persistents);
  if (!infos || !state->inputs || !state->outputs || !state->resources ||
      !state->persistents) {
    return vyre__no_memory(st, "vyre_pipeline_compile", "bindings", count);
  }
  for (size_t i = 0; i < count; i++) {
    const vyre__binding_info *info = &infos[i];
    infos[i] = build_info(&plan->bindings[i], i, pipeline->program);
    if (info->input != VYRE_NO_INDEX) state->inputs[info->input] = info;
    if (info->output != VYRE_NO_INDEX) state->outputs[info->output] = info;
    if (info->is_persistent)
      state->persistents[state->persistent_count++] = info;
    if (info->binding->role == VYRE_ROLE_SHARED) continue;
    infos[i].resource = (uint32_t)state->resource_count;
    state->resources[state->resource_count++] = info;
  }
  if (pipeline->device->backend->aligns_atomics) {
    align_atomics(pipeline->program, infos, count);
  }
  state->infos = infos;
  state->has_dimensions = vyre__has_dimensions(pipeline->program);
  return VYRE_OK;
}

/* --- device buffers ----------------------------------------------------- */

static bool is_given(vyre_buffer handle) {
  return (handle.owner | handle.id) != 0;
}

/* Returns what the descriptor gives to a binding that has_contents. */
static const vyre_input *memory_of(const vyre_dispatch_desc *desc,
                                   const vyre__binding_info *info) {
  return desc->resources ? &desc->resources[info->resource]
                         : &desc->inputs[info->input];
}

static uint64_t partial_element(const vyre__binding_info *info,
                                uint64_t bytes) {
  return info->shift == VYRE__NO_SHIFT ? bytes % info->element
                                       : bytes & (info->element - 1);
}

VYRE__RARE
static vyre_code bad_range(const vyre_binding *b, const vyre__buffer *buffer,
                           uint64_t offset, uint64_t size, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"offset", offset}, {"size", size},
                   {"buffer_bytes", buffer->size}),
      "keep the range inside the buffer",
      "buffer '%.100s': %llu bytes at offset %llu, in a device buffer of %llu "
      "bytes",
      b->name, (unsigned long long)size, (unsigned long long)offset,
      (unsigned long long)buffer->size);
}

VYRE__RARE
static vyre_code unaligned_range(const vyre_binding *b, uint64_t offset,
                                 uint64_t alignment, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"offset", offset}, {"alignment", alignment}),
      "set the offset to a multiple of the element size",
      "buffer '%.100s': offset %llu is not a multiple of the element size, "
      "%llu bytes",
      b->name, (unsigned long long)offset, (unsigned long long)alignment);
}

/* Checks a range of a device buffer. A size of 0 reaches to the end. */
static vyre_code find_range(const vyre__binding_info *info,
                            const vyre__device_buffer *entry, uint64_t offset,
                            uint64_t *size, unsigned char **data,
                            vyre_status *st) {
  const vyre__buffer *buffer = entry->buffer;
  if (offset > buffer->size || *size > buffer->size - offset) {
    return bad_range(info->binding, buffer, offset, *size, st);
  }
  if ((offset & info->mask) != 0) {
    return unaligned_range(info->binding, offset, info->mask + 1, st);
  }
  if (*size == 0) *size = buffer->size - offset;
  *data = buffer->host ? buffer->host + offset : NULL;
  return VYRE_OK;
}

VYRE__RARE
static vyre_code input_twice(const vyre__binding_info *info, vyre_status *st) {
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH,
                   "set either data or buffer of the input",
                   "input '%.100s' sets both data and buffer",
                   info->binding->name);
}

/* Returns true if an input has a size that the plan allows. */
static bool fits(const vyre__binding_info *info, uint64_t size,
                 bool is_device_buffer) {
  if (info->is_static) {
    return is_device_buffer ? size >= info->static_bytes
                            : size == info->static_bytes;
  }
  return partial_element(info, size) == 0 &&
         vyre__elements_in(info, size) <= UINT32_MAX;
}

static vyre_code resolve_device_input(vyre__prepared *prepared,
                                      const vyre__binding_info *info,
                                      const vyre_input *input,
                                      vyre__bound_buffer *bound,
                                      vyre_status *st) {
  if (input->data) return input_twice(info, st);
  prepared->holds_buffers = true;
  VYRE_TRY(vyre__device_buffer_acquire(prepared->pipeline->device,
                                       input->buffer, &bound->in_buffer, st));
  VYRE_TRY(find_range(info, bound->in_buffer, input->offset, &bound->in_size,
                      &bound->in, st));
  /* A device buffer may be longer than the kernel declares. */
  if (info->is_static && bound->in_size > info->static_bytes) {
    bound->in_size = info->static_bytes;
  }
  return VYRE_OK;
}

/* Fails with the message of the plan for an input that does not fit. */
VYRE__RARE
static vyre_code input_mismatch(vyre__prepared *prepared, vyre_status *st) {
  const vyre_binding_plan *plan = &prepared->pipeline->plan;
  for (size_t i = 0; i < plan->input_count; i++) {
    const vyre__binding_info *info = prepared->pipeline->state->inputs[i];
    const vyre__bound_buffer *bound = &prepared->bound[info->index];
    prepared->extents[i] =
        (vyre_input_extent){.byte_len = bound->in_size,
                            .is_device_buffer = bound->in_buffer != NULL};
  }
  return vyre_binding_plan_validate(plan, prepared->extents, plan->input_count,
                                    vyre__status_open(st));
}

VYRE__RARE
static vyre_code many_destinations(const vyre__binding_info *info,
                                   const char *first, const char *second,
                                   vyre_status *st) {
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH,
                   "set at most one of buffer and new_buffer, and at most one "
                   "of data and host_buffer",
                   "output '%.100s' sets both %s and %s", info->binding->name,
                   first, second);
}

VYRE__RARE
static vyre_code wrong_readback_size(const vyre__binding_info *info,
                                     uint64_t expected, uint64_t received,
                                     vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"output_index", info->output}, {"expected_bytes", expected},
                   {"received_bytes", received}),
      "set the size of the output to the size of the buffer",
      "output '%.100s' has %llu bytes on the device, but %llu bytes of host "
      "memory",
      info->binding->name, (unsigned long long)expected,
      (unsigned long long)received);
}

/* Acquires the device buffer of an output and computes its range. */
static vyre_code resolve_device_output(vyre__prepared *prepared,
                                       const vyre__binding_info *info,
                                       const vyre_output *output,
                                       vyre__bound_buffer *bound,
                                       vyre_status *st) {
  bool is_in_place_buffer =
      bound->in_buffer &&
      memcmp(&output->buffer, &memory_of(prepared->desc, info)->buffer,
             sizeof output->buffer) == 0;
  if (is_in_place_buffer) {
    bound->out_buffer = bound->in_buffer; /* already acquired */
  } else {
    prepared->holds_buffers = true;
    VYRE_TRY(vyre__device_buffer_acquire(
        prepared->pipeline->device, output->buffer, &bound->out_buffer, st));
  }
  if (bound->out_buffer->buffer->is_read_only) {
    return vyre__device_buffer_read_only("output", info->binding->name, st);
  }
  VYRE_TRY(find_range(info, bound->out_buffer, output->offset, &bound->out_size,
                      &bound->out, st));
  uint64_t kernel_bytes = info->is_static      ? info->static_bytes
                          : info->has_contents ? bound->in_size
                                               : bound->out_size;
  if (bound->out_size > kernel_bytes) bound->out_size = kernel_bytes;
  return VYRE_OK;
}

/* Resolves an output that is not just memory of the caller: it has device
 * memory, or memory that the runtime allocates. */
static vyre_code resolve_destinations(vyre__prepared *prepared,
                                      const vyre__binding_info *info,
                                      bool is_device, vyre__bound_buffer *bound,
                                      vyre_status *st) {
  vyre_output *output = &prepared->outputs[info->output];
  bool has_host = output->data || output->host_buffer;
  if (is_device) bound->out = NULL;
  bound->has_readback = is_device && has_host;
  if (output->host_buffer || output->new_buffer) prepared->grows_outputs = true;
  if (is_given(output->buffer)) {
    VYRE_TRY(resolve_device_output(prepared, info, output, bound, st));
  } else if (output->size == 0) { /* the runtime can compute it */
    if (info->is_static) {
      bound->out_size = info->static_bytes;
    } else if (info->has_contents) {
      bound->out_size = bound->in_size;
    }
  }
  if ((output->data || (bound->has_readback && output->size > 0)) &&
      output->size != bound->out_size) {
    return wrong_readback_size(info, bound->out_size, output->size, st);
  }
  return VYRE_OK;
}

VYRE__RARE
static vyre_code output_is_host_memory(const vyre__binding_info *info,
                                       vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"resource", info->resource}),
      "set a device buffer, or zero the resource and set the memory in outputs",
      "resource '%.100s' is an output, but is host memory",
      info->binding->name);
}

/* Takes the device buffer of an output from the resources. */
static vyre_code resolve_resource(const vyre__prepared *prepared,
                                  const vyre__binding_info *info,
                                  vyre_output *output,
                                  vyre__bound_buffer *bound, vyre_status *st) {
  const vyre_input *resource = &prepared->desc->resources[info->resource];
  if (is_given(output->buffer) || output->new_buffer) {
    return many_destinations(info, "a resource",
                             output->new_buffer ? "new_buffer" : "buffer", st);
  }
  if (info->has_contents) return VYRE_OK;
  if (resource->data) return output_is_host_memory(info, st);
  if (is_given(resource->buffer)) {
    output->buffer = resource->buffer;
    output->offset = bound->out_offset = resource->offset;
    bound->out_size = resource->size;
  } else if (output->size == 0) {
    output->size = bound->out_size = resource->size;
  }
  return VYRE_OK;
}

static vyre_code resolve_output(vyre__prepared *prepared,
                                const vyre__binding_info *info,
                                vyre__bound_buffer *bound, vyre_status *st) {
  const vyre_dispatch_desc *desc = prepared->desc;
  vyre_output *output = &prepared->outputs[info->output];
  *output =
      desc->output_count > 0 ? desc->outputs[info->output] : (vyre_output){0};
  bound->out = output->data;
  bound->out_size = output->size;
  bound->out_offset = output->offset;
  bound->has_readback = false;
  if (desc->resources)
    VYRE_TRY(resolve_resource(prepared, info, output, bound, st));
  bool is_device = is_given(output->buffer);
  if (output->data && output->host_buffer) {
    return many_destinations(info, "data", "host_buffer", st);
  }
  if (is_device && output->new_buffer) {
    return many_destinations(info, "buffer", "new_buffer", st);
  }
  is_device |= output->new_buffer != NULL;
  if (!is_device && bound->in_buffer) { /* updated in place */
    const vyre_input *input = memory_of(desc, info);
    output->buffer = input->buffer;
    output->offset = bound->out_offset = input->offset;
    is_device = true;
    /* Imported memory is updated in place already. */
    if (output->data == bound->in) output->data = NULL;
  }
  if (!is_device && desc->output_buffers) {
    output->new_buffer = &desc->output_buffers[info->output];
    is_device = true;
  }
  if (!is_device && !output->host_buffer) return VYRE_OK;
  return resolve_destinations(prepared, info, is_device, bound, st);
}

VYRE__RARE
static vyre_code wrong_output_count(const vyre_binding_plan *plan,
                                    size_t received, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"expected_outputs", plan->output_count},
                   {"received_outputs", received}),
      "pass memory for each output and input_output buffer, in order of "
      "their binding numbers",
      "the program has %zu output%s, but %zu %s given", plan->output_count,
      plan->output_count == 1 ? "" : "s", received,
      received == 1 ? "was" : "were");
}

vyre_code vyre__check_counts(const vyre_binding_plan *plan,
                             const vyre_dispatch_desc *desc, vyre_status *st) {
  const vyre_input_extent none = {0};
  if (desc->input_count != plan->input_count) { /* the plan has the message */
    return vyre_binding_plan_validate(plan, &none, desc->input_count,
                                      vyre__status_open(st));
  }
  return desc->output_count == plan->output_count
             ? VYRE_OK
             : wrong_output_count(plan, desc->output_count, st);
}

/* --- sizes -------------------------------------------------------------- */

VYRE__RARE
static vyre_code wrong_output_size(const vyre_binding *binding,
                                   uint64_t expected, uint64_t received,
                                   vyre_status *st) {
  if (!binding->has_static_byte_len && binding->input_index == VYRE_NO_INDEX) {
    return VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH,
                          NULL,
                          VYRE_NUMBERS({"output_index", binding->output_index},
                                       {"expected_bytes", expected},
                                       {"received_bytes", received}),
                          "use a size that is a multiple of the element size",
                          "output '%.100s' has %llu bytes, which is not a "
                          "multiple of its element "
                          "size; %llu would be",
                          binding->name, (unsigned long long)received,
                          (unsigned long long)expected);
  }
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"output_index", binding->output_index},
                   {"expected_bytes", expected}, {"received_bytes", received}),
      "set the size of the output to the size of the buffer",
      "output '%.100s' must have %llu bytes, but has %llu", binding->name,
      (unsigned long long)expected, (unsigned long long)received);
}

VYRE__RARE
static vyre_code output_too_long(const vyre__binding_info *info,
                                 uint64_t elements, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"output_index", info->output}, {"elements", elements},
                   {"max_elements", UINT32_MAX}),
      "split the output: kernels index elements with 32 bits",
      "output '%.100s' has %llu elements; at most 4294967295 are supported",
      info->binding->name, (unsigned long long)elements);
}

/* Checks the size of an output against its declaration or its input. */
static vyre_code check_output(const vyre__binding_info *info,
                              const vyre__bound_buffer *bound,
                              vyre_status *st) {
  uint64_t size = bound->out_size;
  if (info->is_static || info->has_contents) {
    uint64_t expected = info->is_static ? info->static_bytes : bound->in_size;
    if (size == expected) return VYRE_OK;
    return wrong_output_size(info->binding, expected, size, st);
  }
  uint64_t excess = partial_element(info, size);
  if (excess != 0)
    return wrong_output_size(info->binding, size - excess, size, st);
  if (vyre__elements_in(info, size) <= UINT32_MAX) return VYRE_OK;
  return output_too_long(info, vyre__elements_in(info, size), st);
}

VYRE__RARE
static vyre_code too_much_output(uint64_t host_bytes, uint64_t limit,
                                 vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_OUTPUT_TOO_LARGE, NULL,
      VYRE_NUMBERS({"output_bytes", host_bytes}, {"max_output_bytes", limit}),
      "raise max_output_bytes, or write outputs to device buffers",
      "the outputs have %llu bytes, but max_output_bytes is %llu",
      (unsigned long long)host_bytes, (unsigned long long)limit);
}

static vyre_code check_output_bytes(const vyre__prepared *prepared,
                                    vyre_status *st) {
  uint64_t limit = prepared->desc->max_output_bytes;
  if (limit == 0 || prepared->host_out <= limit) return VYRE_OK;
  return too_much_output(prepared->host_out, limit, st);
}

VYRE__RARE
static vyre_code no_persistent(const vyre__prepared *prepared,
                               const vyre__binding_info *info,
                               vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"resource", info->resource},
                   {"resources", prepared->pipeline->state->resource_count}),
      "set resources instead of inputs, with a device buffer "
      "(vyre_buffer_create) for each persistent buffer",
      "persistent buffer '%.100s' of kernel '%.60s' has no device buffer",
      info->binding->name, prepared->pipeline->program->name);
}

VYRE__RARE
static vyre_code wrong_resource_count(const vyre__prepared *prepared,
                                      vyre_status *st) {
  size_t expected = prepared->pipeline->state->resource_count,
         received = prepared->desc->resource_count;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"expected_resources", expected},
                   {"received_resources", received}),
      "pass one resource for each buffer that is not shared, in order of the "
      "binding numbers",
      "kernel '%.60s' has %zu resource%s, but %zu %s given",
      prepared->pipeline->program->name, expected, expected == 1 ? "" : "s",
      received, received == 1 ? "was" : "were");
}

static vyre_code check_resource_count(const vyre__prepared *prepared,
                                      vyre_status *st) {
  const vyre_dispatch_desc *desc = prepared->desc;
  if (!desc->resources) {
    return vyre__null_argument(st, "vyre_dispatch", "desc->resources");
  }
  if (desc->inputs || desc->input_count > 0) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
        VYRE_NUMBERS({"inputs", desc->input_count},
                     {"resources", desc->resource_count}),
        "set inputs to NULL and input_count to 0: resources has all buffers",
        "the dispatch of kernel '%.60s' has both inputs and resources",
        prepared->pipeline->program->name);
  }
  return desc->resource_count == prepared->pipeline->state->resource_count
             ? VYRE_OK
             : wrong_resource_count(prepared, st);
}

VYRE__RARE
static vyre_code wrong_handle_count(const vyre_binding_plan *plan,
                                    size_t received, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"expected_outputs", plan->output_count},
                   {"received_outputs", received}),
      "pass one entry in output_buffers for each output",
      "the program has %zu output%s, but output_buffers has %zu",
      plan->output_count, plan->output_count == 1 ? "" : "s", received);
}

static vyre_code check_counts(const vyre__prepared *prepared, vyre_status *st) {
  const vyre_binding_plan *plan = &prepared->pipeline->plan;
  const struct vyre__pipeline_state *state = prepared->pipeline->state;
  const vyre_dispatch_desc *desc = prepared->desc;
  if (!desc->output_buffers && desc->output_buffer_count > 0) {
    return vyre__null_argument(st, "vyre_dispatch", "desc->output_buffers");
  }
  if (desc->output_buffers && desc->output_buffer_count != plan->output_count) {
    return wrong_handle_count(plan, desc->output_buffer_count, st);
  }
  if (!desc->inputs && desc->input_count > 0) {
    return vyre__null_argument(st, "vyre_dispatch", "desc->inputs");
  }
  if (!desc->outputs && desc->output_count > 0) {
    return vyre__null_argument(st, "vyre_dispatch", "desc->outputs");
  }
  if (desc->resources || desc->resource_count > 0) {
    return check_resource_count(prepared, st);
  }
  if (state->persistent_count > 0) {
    return no_persistent(prepared, state->persistents[0], st);
  }
  if (desc->input_count != plan->input_count) { /* the plan has the message */
    return vyre_binding_plan_validate(plan, prepared->extents,
                                      desc->input_count, vyre__status_open(st));
  }
  return VYRE_OK;
}

/* Resolves all inputs. They come before the outputs, because the size of an
 * output may depend on one. */
static vyre_code resolve_inputs(vyre__prepared *prepared, vyre_status *st) {
  const struct vyre__pipeline_state *state = prepared->pipeline->state;
  size_t count = prepared->pipeline->plan.input_count;
  uint64_t max_bytes = prepared->pipeline->device->caps.max_buffer_bytes;
  bool all_fit = true;
  for (size_t i = 0; i < count; i++) {
    const vyre__binding_info *info = state->inputs[i];
    const vyre_input *input = memory_of(prepared->desc, info);
    vyre__bound_buffer *bound = &prepared->bound[info->index];
    bool is_device_buffer = is_given(input->buffer);
    bound->in = (unsigned char *)(uintptr_t)input->data; /* never written */
    bound->in_size = input->size;
    bound->in_offset = input->offset;
    if (is_device_buffer) {
      VYRE_TRY(resolve_device_input(prepared, info, input, bound, st));
    }
    if (bound->in_size > max_bytes) {
      return vyre__buffer_too_large(prepared->pipeline->device,
                                    info->binding->name, bound->in_size, st);
    }
    all_fit = fits(info, bound->in_size, is_device_buffer) && all_fit;
    prepared->views[info->buffer] = (vyre__view){
        .data = bound->in,
        .length = (uint32_t)(vyre__elements_in(info, bound->in_size)),
        .buffer = is_device_buffer ? bound->in_buffer->buffer : NULL,
        .offset = bound->in_offset};
  }
  return all_fit ? VYRE_OK : input_mismatch(prepared, st);
}

VYRE__RARE
static vyre_code wrong_persistent_size(const vyre__binding_info *info,
                                       uint64_t size, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"resource", info->resource},
                   {"expected_bytes", info->static_bytes},
                   {"received_bytes", size}),
      "bind at least as many bytes as the kernel declares, in a multiple of "
      "the "
      "element size",
      "persistent buffer '%.100s' has %llu bytes; the kernel declares %llu, in "
      "elements of %u bytes",
      info->binding->name, (unsigned long long)size,
      (unsigned long long)info->static_bytes, info->element);
}

/* Resolves the persistent buffers. Each is a device buffer that is updated in
 * place. */
static vyre_code resolve_persistents(vyre__prepared *prepared,
                                     vyre_status *st) {
  const struct vyre__pipeline_state *state = prepared->pipeline->state;
  uint64_t max_bytes = prepared->pipeline->device->caps.max_buffer_bytes;
  for (size_t i = 0; i < state->persistent_count; i++) {
    const vyre__binding_info *info = state->persistents[i];
    const vyre_input *input = memory_of(prepared->desc, info);
    vyre__bound_buffer *bound = &prepared->bound[info->index];
    if (!is_given(input->buffer)) return no_persistent(prepared, info, st);
    bound->in_size = input->size;
    bound->in_offset = bound->out_offset = input->offset;
    VYRE_TRY(resolve_device_input(prepared, info, input, bound, st));
    if (!fits(info, bound->in_size, true)) {
      return wrong_persistent_size(info, bound->in_size, st);
    }
    if (bound->in_size > max_bytes) {
      return vyre__buffer_too_large(prepared->pipeline->device,
                                    info->binding->name, bound->in_size, st);
    }
    if (info->is_written && bound->in_buffer->buffer->is_read_only) {
      return vyre__device_buffer_read_only("persistent buffer",
                                           info->binding->name, st);
    }
    bound->out = bound->in;
    bound->out_size = bound->in_size;
    bound->out_buffer = bound->in_buffer;
    bound->has_readback = false;
    prepared->views[info->buffer] = (vyre__view){
        .data = bound->in,
        .length = (uint32_t)(vyre__elements_in(info, bound->in_size)),
        .buffer = bound->in_buffer->buffer,
        .offset = bound->in_offset};
  }
  return VYRE_OK;
}

/* Resolves all bindings, the lengths of all buffers, and the bytes that return
 * to the host. */
vyre_code vyre__prepared_resolve(vyre__prepared *prepared, vyre_status *st) {
  const vyre_binding_plan *plan = &prepared->pipeline->plan;
  const struct vyre__pipeline_state *state = prepared->pipeline->state;
  uint64_t host_bytes = 0;
  if (prepared->is_cached || prepared->holds_buffers)
    vyre__prepared_invalidate(prepared);
  prepared->grows_outputs = prepared->is_bound = false;
  VYRE_TRY(check_counts(prepared, st));
  VYRE_TRY(resolve_inputs(prepared, st));
  if (state->persistent_count > 0) VYRE_TRY(resolve_persistents(prepared, st));
  bool has_outputs =
      prepared->desc->output_count > 0 ||
      !(prepared->desc->resources || prepared->desc->output_buffers);
  if (has_outputs && prepared->desc->output_count != plan->output_count) {
    return wrong_output_count(plan, prepared->desc->output_count, st);
  }
  for (size_t i = 0; i < plan->output_count; i++) {
    const vyre__binding_info *info = state->outputs[i];
    vyre__bound_buffer *bound = &prepared->bound[info->index];
    VYRE_TRY(resolve_output(prepared, info, bound, st));
    VYRE_TRY(check_output(info, bound, st));
    if (bound->out_size > prepared->pipeline->device->caps.max_buffer_bytes) {
      return vyre__buffer_too_large(prepared->pipeline->device,
                                    info->binding->name, bound->out_size, st);
    }
    const vyre_output *output = &prepared->outputs[i];
    if (output->data || output->host_buffer) host_bytes += bound->out_size;
    prepared->views[info->buffer].length =
        (uint32_t)(vyre__elements_in(info, bound->out_size));
  }
  prepared->host_out = host_bytes;
  if (state->has_dimensions) VYRE_TRY(vyre__check_dimensions(prepared, st));
  return check_output_bytes(prepared, st);
}

/* --- entry points ------------------------------------------------------- */

vyre_code vyre__zero_repeat_count(const vyre_device *device, vyre_status *st) {
  return VYRE_FAIL(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_ZERO_REPEAT_COUNT,
      "set repeat_count to 1 or more, or has_repeat_count to false",
      "repeat_count is 0 for a dispatch on device '%s'",
      vyre_device_name(device));
}

vyre_code vyre__prepared_check_options(const vyre__prepared *prepared,
                                       vyre_status *st) {
  const vyre_dispatch_desc *desc = prepared->desc;
  const vyre_check_options *check = &desc->check;
  const vyre_device *device = prepared->pipeline->device;
  bool is_checked =
      check->out_of_bounds || check->races || check->schedules > 0;
  if (is_checked && !desc->report) {
    return vyre__null_argument(st, "vyre_dispatch", "desc->report");
  }
  if (is_checked && !device->caps.has_checks) {
    return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                     "run the check on device 'ref'",
                     "device '%s' does not support vyre_check_options",
                     vyre_device_name(device));
  }
  return desc->has_repeat_count && desc->repeat_count == 0
             ? vyre__zero_repeat_count(device, st)
             : VYRE_OK;
}

vyre_code vyre__prepared_check_limits(const vyre__prepared *prepared,
                                      vyre_status *st) {
  VYRE_TRY(check_output_bytes(prepared, st));
  return vyre__prepared_check_copies(prepared, st);
}

/* Returns true if every output is updated in place. The views of the inputs
 * are then complete, and no memory has to be prepared. */
static bool is_in_place(const vyre__prepared *prepared) {
  const vyre__binding_info **infos = prepared->pipeline->state->outputs;
  if (prepared->grows_outputs) return false;
  for (size_t i = 0; i < prepared->pipeline->plan.output_count; i++) {
    if (!vyre__in_place(&prepared->bound[infos[i]->index])) return false;
  }
  return true;
}

vyre_code vyre__prepared_check_again(vyre__prepared *prepared,
                                     vyre_status *st) {
  prepared->host_in = prepared->host_out = 0;
  prepared->copies = (vyre_copy_report){0};
  prepared->has_moved_output = false;
  prepared->batch = 0;
  VYRE_TRY(vyre__prepared_resolve(prepared, st));
  VYRE_TRY(vyre__grid_infer(prepared->pipeline, prepared->desc->grid,
                            prepared->views, prepared->launch.grid, st));
  VYRE_TRY(vyre__launch_check(&prepared->launch, st));
  VYRE_TRY(vyre__prepared_check_memory(prepared, st));
  vyre__prepared_set_readbacks(prepared);
  prepared->is_bound = is_in_place(prepared);
  return VYRE_OK;
}
