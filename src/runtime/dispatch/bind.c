/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Resolves and checks the bindings of a dispatch against the plan of its
 * kernel, before anything is changed. A first pass resolves sizes and device
 * buffers; a second one checks the memory for overlaps and copies. Bindings
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
#include "runtime/dispatch/grid.h"
#include "runtime/dispatch/prepared.h"
#include "runtime/memory/device_buffer.h"

static vyre__binding_info build_info(const vyre_binding *b, size_t index,
                                     uint32_t grid_buffer) {
  uint32_t element = b->element_size > 1 ? b->element_size : 1;
  bool is_excluded =
      b->role == VYRE_ROLE_UNIFORM || b->role == VYRE_ROLE_SHARED;
  return (vyre__binding_info){
      .binding = b,
      .static_bytes = b->static_byte_len,
      .index = (uint32_t)index,
      .buffer = b->buffer_index,
      .input = b->input_index,
      .output = b->output_index,
      .shift = (uint8_t)__builtin_ctz(element),
      .mask = (uint8_t)(element - 1),
      .aligned = 1,
      .is_static = b->has_static_byte_len,
      .is_covered = grid_buffer == VYRE_NO_INDEX
                        ? !is_excluded
                        : b->buffer_index == grid_buffer};
}

/* Requires natural alignment for buffers that atomic operations access: CPU
 * atomics need it. */
static void align_atomics(const vyre_program *program,
                          vyre__binding_info *infos, size_t count) {
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
  if (!infos || !state->inputs || !state->outputs) {
    return vyre__no_memory(st, "vyre_pipeline_compile", "bindings", count);
  }
  for (size_t i = 0; i < count; i++) {
    const vyre__binding_info *info = &infos[i];
    infos[i] = build_info(&plan->bindings[i], i, pipeline->program->over);
    if (info->input != VYRE_NO_INDEX) state->inputs[info->input] = info;
    if (info->output != VYRE_NO_INDEX) state->outputs[info->output] = info;
  }
  if (pipeline->device->backend->aligns_atomics) {
    align_atomics(pipeline->program, infos, count);
  }
  state->ports = infos;
  return VYRE_OK;
}

/* --- device buffers ----------------------------------------------------- */

static bool is_given(vyre_buffer handle) {
  return (handle.owner | handle.id) != 0;
}

static uint64_t partial_element(const vyre__binding_info *info,
                                uint64_t bytes) {
  return bytes & info->mask;
}

VYRE__RARE
static vyre_code bad_range(const vyre_binding *b, const vyre__buffer *buffer,
                           uint64_t offset, uint64_t size, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"offset", offset}, {"size", size},
                   {"buffer_bytes", buffer->size}),
      "keep the range inside the buffer, at a multiple of the element size",
      "buffer '%.100s': %llu bytes at offset %llu, in a device buffer of %llu "
      "bytes",
      b->name, (unsigned long long)size, (unsigned long long)offset,
      (unsigned long long)buffer->size);
}

/* Checks a range of a device buffer. A size of 0 reaches to the end. */
static vyre_code find_range(const vyre__binding_info *info,
                            const vyre__device_buffer *entry, uint64_t offset,
                            uint64_t *size, unsigned char **data,
                            vyre_status *st) {
  const vyre__buffer *buffer = entry->buffer;
  if (offset > buffer->size || *size > buffer->size - offset ||
      partial_element(info, offset) != 0) {
    return bad_range(info->binding, buffer, offset, *size, st);
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
  return partial_element(info, size) == 0 && size >> info->shift <= UINT32_MAX;
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
                                   int destinations, vyre_status *st) {
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH,
                   "set one of data, host_buffer, buffer and new_buffer",
                   "output '%.100s' sets %d of data, host_buffer, buffer and "
                   "new_buffer; expected 1",
                   info->binding->name, destinations);
}

/* Acquires the device buffer of an output and computes its range. */
static vyre_code resolve_device_output(vyre__prepared *prepared,
                                       const vyre__binding_info *info,
                                       const vyre_output *output,
                                       vyre__bound_buffer *bound,
                                       vyre_status *st) {
  bool is_in_place_buffer =
      bound->in_buffer &&
      memcmp(&output->buffer, &prepared->desc->inputs[info->input].buffer,
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
  uint64_t kernel_bytes = info->is_static                ? info->static_bytes
                          : info->input != VYRE_NO_INDEX ? bound->in_size
                                                         : bound->out_size;
  if (bound->out_size > kernel_bytes) bound->out_size = kernel_bytes;
  return VYRE_OK;
}

static vyre_code resolve_output(vyre__prepared *prepared,
                                const vyre__binding_info *info,
                                vyre__bound_buffer *bound, vyre_status *st) {
  const vyre_output *output_desc = &prepared->desc->outputs[info->output];
  vyre_output *output = &prepared->outputs[info->output];
  bool is_device_buffer = is_given(output_desc->buffer);
  bool has_other_destination =
      output_desc->host_buffer || output_desc->new_buffer || is_device_buffer;
  bound->out = output_desc->data;
  bound->out_size = output_desc->size;
  bound->out_offset = output_desc->offset;
  *output = *output_desc;
  if (output_desc->data && !has_other_destination) return VYRE_OK;
  int destinations = (output->data != NULL) + (output->host_buffer != NULL) +
                     (output->new_buffer != NULL) + is_device_buffer;
  if (destinations > 1) return many_destinations(info, destinations, st);
  /* default: write to the buffer of the input */
  if (destinations == 0 && bound->in_buffer) {
    const vyre_input *input = &prepared->desc->inputs[info->input];
    output->buffer = input->buffer;
    output->offset = bound->out_offset = input->offset;
    is_device_buffer = true;
  }
  if (is_device_buffer)
    return resolve_device_output(prepared, info, output, bound, st);
  if (destinations == 0) return VYRE_OK;
  prepared->grows_outputs = true;
  /* The runtime allocates the memory, so it can compute a size of 0. */
  if (output->size != 0) return VYRE_OK;
  if (info->is_static) {
    bound->out_size = info->static_bytes;
  } else if (info->input != VYRE_NO_INDEX) {
    bound->out_size = bound->in_size;
  }
  return VYRE_OK;
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
      "the program has %zu outputs, but %zu were given", plan->output_count,
      received);
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
                   {"most_elements", UINT32_MAX}),
      "split the output: kernels index elements with 32 bits",
      "output '%.100s' has %llu elements; at most 4294967295 are supported",
      info->binding->name, (unsigned long long)elements);
}

/* Checks the size of an output against its declaration or its input. */
static vyre_code check_output(const vyre__binding_info *info,
                              const vyre__bound_buffer *bound,
                              vyre_status *st) {
  uint64_t size = bound->out_size;
  if (info->is_static || info->input != VYRE_NO_INDEX) {
    uint64_t expected = info->is_static ? info->static_bytes : bound->in_size;
    if (size == expected) return VYRE_OK;
    return wrong_output_size(info->binding, expected, size, st);
  }
  uint64_t excess = partial_element(info, size);
  if (excess != 0)
    return wrong_output_size(info->binding, size - excess, size, st);
  if (size >> info->shift <= UINT32_MAX) return VYRE_OK;
  return output_too_long(info, size >> info->shift, st);
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

static vyre_code check_counts(const vyre__prepared *prepared, vyre_status *st) {
  const vyre_binding_plan *plan = &prepared->pipeline->plan;
  const vyre_dispatch_desc *desc = prepared->desc;
  if (!desc->inputs && desc->input_count > 0) {
    return vyre__null_argument(st, "vyre_dispatch", "desc->inputs");
  }
  if (!desc->outputs && desc->output_count > 0) {
    return vyre__null_argument(st, "vyre_dispatch", "desc->outputs");
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
  const vyre_input *input = prepared->desc->inputs;
  size_t count = prepared->pipeline->plan.input_count;
  uint64_t max_bytes = prepared->pipeline->device->caps.max_buffer_bytes;
  bool all_fit = true;
  for (size_t i = 0; i < count; i++, input++) {
    const vyre__binding_info *info = state->inputs[i];
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
        .length = (uint32_t)(bound->in_size >> info->shift),
        .buffer = is_device_buffer ? bound->in_buffer->buffer : NULL,
        .offset = bound->in_offset};
  }
  return all_fit ? VYRE_OK : input_mismatch(prepared, st);
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
  if (prepared->desc->output_count != plan->output_count) {
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
    const vyre_output *output_desc = &prepared->desc->outputs[i];
    if (output_desc->data || output_desc->host_buffer)
      host_bytes += bound->out_size;
    prepared->views[info->buffer].length =
        (uint32_t)(bound->out_size >> info->shift);
  }
  prepared->host_out = host_bytes;
  return check_output_bytes(prepared, st);
}

/* --- memory ------------------------------------------------------------- */

VYRE__RARE
static vyre_code null_memory(const vyre_binding *b, uint64_t size,
                             vyre_status *st) {
  return VYRE_FAIL(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
      "set data to the address of the bytes",
      "the memory of buffer '%.100s' is NULL, but its size is %llu "
      "bytes",
      b->name, (unsigned long long)size);
}

/* Describes bound memory. All host memory is one address space; a device
 * buffer that the host cannot see is a space of its own. */
static vyre__memory_range range_of(const vyre_binding *b,
                                   const unsigned char *data, uint64_t size,
                                   uint64_t offset,
                                   const vyre__device_buffer *entry) {
  uint64_t begin = data ? (uintptr_t)data : offset;
  return (vyre__memory_range){b, data ? NULL : entry, begin, begin + size};
}

static bool overlap(const vyre__memory_range *a, const vyre__memory_range *b) {
  return a->begin < b->end && b->begin < a->end && a->space == b->space;
}

VYRE__RARE
static vyre_code ranges_overlap(const vyre__memory_range *a,
                                const vyre__memory_range *b, vyre_status *st) {
  if (a->binding == b->binding) {
    return VYRE_FAIL(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH,
        "use the same memory and size for both, or memory that does not "
        "overlap",
        "the input and the output of buffer '%.100s' overlap, but are not the "
        "same",
        a->binding->name);
  }
  return VYRE_FAIL(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH,
      "use separate memory for each buffer that is written; only an "
      "input_output may use the same memory for both",
      "the memory of buffers '%.100s' and '%.100s' overlaps, and one of them "
      "is written",
      b->binding->name, a->binding->name);
}

static const char *copy_reason_text(vyre_copy_reason reason) {
  switch (reason) {
    case VYRE_COPY_ALIGNMENT:
      return "its memory is not aligned for the device";
    case VYRE_COPY_DEVICE_MEMORY:
      return "the device cannot use host memory directly";
    default:
      return "its input and its output are different memory";
  }
}

VYRE__RARE
static vyre_code copy_needed(const vyre_copy_report *copies, vyre_status *st) {
  if (copies->first_reason == VYRE_COPY_DEVICE_MEMORY) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_COPY_NEEDED, NULL,
        VYRE_NUMBERS({"copied_bytes", copies->copied_bytes},
                     {"copies", copies->copies}),
        "bind device buffers (vyre_buffer_create or vyre_buffer_import), or "
        "set "
        "require_zero_copy to false",
        "%llu bytes would be copied, first those of buffer '%.100s': %s",
        (unsigned long long)copies->copied_bytes, copies->first_copied,
        copy_reason_text(copies->first_reason));
  }
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_COPY_NEEDED, NULL,
      VYRE_NUMBERS({"copied_bytes", copies->copied_bytes},
                   {"copies", copies->copies}),
      "use the same memory for input and output, bind device buffers or memory "
      "of vyre_host_alloc, or set require_zero_copy to false",
      "%llu bytes would be copied, first those of buffer '%.100s': %s",
      (unsigned long long)copies->copied_bytes, copies->first_copied,
      copy_reason_text(copies->first_reason));
}

static vyre_code check_copies(const vyre__prepared *prepared, vyre_status *st) {
  if (prepared->copies.copies == 0 || !prepared->desc->require_zero_copy)
    return VYRE_OK;
  return copy_needed(&prepared->copies, st);
}

/* Returns the memory that an output writes; an empty range if it is not
 * allocated yet. */
static vyre_code written_range(const vyre__prepared *prepared,
                               const vyre__binding_info *info,
                               const vyre__bound_buffer *bound,
                               vyre__memory_range *out, vyre_status *st) {
  const vyre_output *output = &prepared->outputs[info->output];
  uint64_t size = bound->out_size;
  *out = (vyre__memory_range){0};
  if (size == 0 || output->new_buffer) return VYRE_OK;
  if (output->host_buffer) {
    /* The full capacity: a reallocation would free it while an input reads
     * it. */
    const vyre_host_buffer *entry = output->host_buffer;
    if (entry->capacity > 0) {
      *out = range_of(info->binding, entry->data, entry->capacity, 0, NULL);
    }
    return VYRE_OK;
  }
  if (!bound->out && !bound->out_buffer) {
    return null_memory(info->binding, size, st);
  }
  *out = range_of(info->binding, bound->out, size, bound->out_offset,
                  bound->out_buffer);
  return VYRE_OK;
}

/* Adds a copy to the report. The report names the lowest binding that is
 * copied, although outputs are counted before inputs. */
static void add_copy(vyre__prepared *prepared, const vyre__binding_info *info,
                     uint64_t size, vyre_copy_reason reason) {
  vyre_copy_report *copies = &prepared->copies;
  copies->copied_bytes += size;
  if (copies->copies++ > 0 && info->index >= prepared->first_copied) return;
  prepared->first_copied = info->index;
  copies->first_copied = info->binding->name;
  copies->first_reason = reason;
}

static void count_device_buffer(vyre_copy_report *copies,
                                const vyre__device_buffer *entry,
                                uint64_t size) {
  copies->device_buffer_bytes += size;
  if (entry->buffer->is_imported) copies->mapped_bytes += size;
}

/* Adds an output to the copy report. Bytes that are updated in place count as
 * input. Memory of host buffers is allocated so that the device can use it
 * directly. */
static void count_output(vyre__prepared *prepared,
                         const vyre__binding_info *info,
                         const vyre__bound_buffer *bound) {
  vyre_copy_report *copies = &prepared->copies;
  bool is_input = info->input != VYRE_NO_INDEX;
  bool is_unaligned = (uintptr_t)bound->out % info->aligned != 0;
  if (bound->out_buffer) {
    if (!is_input)
      count_device_buffer(copies, bound->out_buffer, bound->out_size);
    if (is_unaligned)
      add_copy(prepared, info, bound->out_size, VYRE_COPY_ALIGNMENT);
    return;
  }
  if (prepared->outputs[info->output].new_buffer || bound->out_size == 0)
    return;
  vyre_copy_reason reason =
      vyre__host_reason(prepared->pipeline->device, bound->out);
  if (reason == VYRE_COPY_NONE && is_unaligned) reason = VYRE_COPY_ALIGNMENT;
  if (reason != VYRE_COPY_NONE) {
    add_copy(prepared, info, bound->out_size, reason);
  } else if (!is_input) {
    copies->borrowed_bytes += bound->out_size;
  }
}

VYRE__RARE
static vyre_code same_destination(const vyre__binding_info *a,
                                  const vyre__binding_info *b,
                                  const char *destination, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"output_index", b->output}, {"other_output", a->output}),
      "use a separate host buffer or handle for each output",
      "outputs '%.100s' and '%.100s' use the same %s", a->binding->name,
      b->binding->name, destination);
}

/* Checks that no two outputs share a host buffer or a handle, whatever their
 * sizes. */
static vyre_code check_destinations(const vyre__prepared *prepared,
                                    vyre_status *st) {
  const vyre__binding_info **infos = prepared->pipeline->state->outputs;
  for (size_t i = 1; i < prepared->pipeline->plan.output_count; i++) {
    const vyre_output *a = &prepared->outputs[i];
    if (!a->host_buffer && !a->new_buffer) continue;
    for (size_t k = 0; k < i; k++) {
      const vyre_output *b = &prepared->outputs[k];
      if (a->host_buffer && a->host_buffer == b->host_buffer) {
        return same_destination(infos[k], infos[i], "host buffer", st);
      }
      if (a->new_buffer && a->new_buffer == b->new_buffer) {
        return same_destination(infos[k], infos[i], "handle", st);
      }
    }
  }
  return VYRE_OK;
}

/* Checks that written memory is bound only once. Outputs are compared with
 * each other here; check_input compares inputs with them. */
static vyre_code check_outputs(vyre__prepared *prepared, size_t *count,
                               vyre_status *st) {
  const struct vyre__pipeline_state *state = prepared->pipeline->state;
  vyre__memory_range *ranges = prepared->ranges;
  size_t written = 0;
  if (prepared->grows_outputs) VYRE_TRY(check_destinations(prepared, st));
  for (size_t i = 0; i < prepared->pipeline->plan.output_count; i++) {
    const vyre__binding_info *info = state->outputs[i];
    const vyre__bound_buffer *bound = &prepared->bound[info->index];
    vyre__memory_range *range = &ranges[written];
    count_output(prepared, info, bound);
    VYRE_TRY(written_range(prepared, info, bound, range, st));
    for (size_t k = 0; k < written; k++) {
      if (overlap(range, &ranges[k]))
        return ranges_overlap(range, &ranges[k], st);
    }
    if (range->begin < range->end) written++;
  }
  *count = written;
  return VYRE_OK;
}

VYRE__RARE
static vyre_code input_overlaps(const vyre__binding_info *info,
                                const vyre__bound_buffer *bound,
                                const vyre__memory_range *other,
                                vyre_status *st) {
  const vyre__memory_range range =
      range_of(info->binding, bound->in, bound->in_size, bound->in_offset,
               bound->in_buffer);
  /* The message names both in the order of their bindings. */
  return range.binding <= other->binding ? ranges_overlap(other, &range, st)
                                         : ranges_overlap(&range, other, st);
}

static vyre_code check_input(const vyre__prepared *prepared,
                             const vyre__binding_info *info,
                             const vyre__bound_buffer *bound, size_t written,
                             vyre_status *st) {
  uint64_t begin = bound->in ? (uintptr_t)bound->in : bound->in_offset;
  uint64_t end = begin + bound->in_size;
  const void *space = bound->in ? NULL : bound->in_buffer;
  for (const vyre__memory_range *at = prepared->ranges;
       at < prepared->ranges + written; at++) {
    if (begin < at->end && at->begin < end && at->space == space) {
      return input_overlaps(info, bound, at, st);
    }
  }
  return VYRE_OK;
}

/* Checks an input that is a device buffer, or also an output, and adds it to
 * the copy report. */
static vyre_code check_device_or_in_out(vyre__prepared *prepared,
                                        const vyre__binding_info *info,
                                        const vyre__bound_buffer *bound,
                                        size_t written, vyre_status *st) {
  vyre_copy_report *copies = &prepared->copies;
  uint64_t size = bound->in_size;
  bool is_output = info->output != VYRE_NO_INDEX;
  bool is_copied = is_output && !vyre__in_place(bound);
  if (!is_output || is_copied) {
    VYRE_TRY(check_input(prepared, info, bound, written, st));
  }
  if (bound->in_buffer) {
    count_device_buffer(copies, bound->in_buffer, size);
  } else {
    prepared->host_in += size;
    if (!is_copied && (uintptr_t)bound->in % info->aligned == 0 &&
        vyre__host_reason(prepared->pipeline->device, bound->in) ==
            VYRE_COPY_NONE) {
      copies->borrowed_bytes += size;
    }
  }
  if (is_copied) add_copy(prepared, info, size, VYRE_COPY_IN_OUT);
  return VYRE_OK;
}

static vyre_code check_memory(vyre__prepared *prepared, vyre_status *st) {
  const vyre__binding_info **infos = prepared->pipeline->state->inputs;
  const vyre__binding_info **end = infos + prepared->pipeline->plan.input_count;
  const vyre_device *device = prepared->pipeline->device;
  size_t written = 0;
  uint64_t borrowed = 0;
  VYRE_TRY(check_outputs(prepared, &written, st));
  for (; infos < end; infos++) {
    const vyre__binding_info *info = *infos;
    const vyre__bound_buffer *bound = &prepared->bound[info->index];
    if (bound->in_size == 0) continue;
    if (bound->in_buffer || info->output != VYRE_NO_INDEX) {
      if (!bound->in && !bound->in_buffer) {
        return null_memory(info->binding, bound->in_size, st);
      }
      VYRE_TRY(check_device_or_in_out(prepared, info, bound, written, st));
      continue;
    }
    if (!bound->in) return null_memory(info->binding, bound->in_size, st);
    VYRE_TRY(check_input(prepared, info, bound, written, st));
    prepared->host_in += bound->in_size;
    vyre_copy_reason reason = vyre__host_reason(device, bound->in);
    if (reason == VYRE_COPY_NONE) {
      borrowed += bound->in_size;
    } else {
      add_copy(prepared, info, bound->in_size, reason);
    }
  }
  prepared->copies.borrowed_bytes += borrowed;
  return check_copies(prepared, st);
}

/* --- entry points ------------------------------------------------------- */

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
  if (desc->has_repeat_count && desc->repeat_count == 0) {
    return VYRE_FAIL(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_ZERO_REPEAT_COUNT,
        "set repeat_count to 1 or more, or has_repeat_count to false",
        "repeat_count is 0 for a dispatch on device '%s'",
        vyre_device_name(device));
  }
  return VYRE_OK;
}

vyre_code vyre__prepared_check_limits(const vyre__prepared *prepared,
                                      vyre_status *st) {
  VYRE_TRY(check_output_bytes(prepared, st));
  return check_copies(prepared, st);
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
  VYRE_TRY(check_memory(prepared, st));
  prepared->is_bound = is_in_place(prepared);
  return VYRE_OK;
}
