/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a dispatch binds: found, measured and held against the plan, before
 * anything is changed. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "driver/driver.h"
#include "ir/ir.h"

static uint64_t element_of(const vyre_binding *binding) {
  return binding->element_size > 1 ? binding->element_size : 1;
}

/* --- resources ---------------------------------------------------------------*/

static vyre_code bad_range(const vyre_binding *b, const vyre__buffer *buffer,
                           uint64_t offset, uint64_t size, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"offset", offset}, {"size", size},
                   {"buffer_bytes", buffer->size}),
      "keep the range inside of the buffer, from a whole element on",
      "'%.100s': %llu bytes from %llu on, in a resident buffer of %llu",
      b->name, (unsigned long long)size, (unsigned long long)offset,
      (unsigned long long)buffer->size);
}

/* The part of a resident buffer that is meant. */
static vyre_code resolve(vyre__run *run, const vyre_binding *b,
                         vyre_resident handle, uint64_t offset, uint64_t *size,
                         vyre__resident_slot **slot, unsigned char **data,
                         vyre_status *st) {
  VYRE_TRY(vyre__resident_acquire(run->pipeline->device, handle, slot, st));
  const vyre__buffer *buffer = (*slot)->buffer;
  if (offset > buffer->size || *size > buffer->size - offset ||
      offset % element_of(b) != 0) {
    return bad_range(b, buffer, offset, *size, st);
  }
  if (*size == 0) *size = buffer->size - offset;
  *data = buffer->host ? buffer->host + offset : NULL;
  return VYRE_OK;
}

static vyre_code resolve_input(vyre__run *run, const vyre_binding *b,
                               vyre__bound *bound, vyre_status *st) {
  const vyre_input *input = &run->desc.inputs[b->input_index];
  bound->in = (unsigned char *)(uintptr_t)input->data; /* only read */
  bound->in_size = input->size;
  bound->in_offset = input->offset;
  bool is_resident = input->resident.owner != 0 || input->resident.id != 0;
  if (is_resident && input->data) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH,
                     "give either bytes or a resident buffer",
                     "input '%.100s' has both", b->name);
  }
  if (is_resident) {
    VYRE_TRY(resolve(run, b, input->resident, input->offset, &bound->in_size,
                     &bound->in_slot, &bound->in, st));
    /* A buffer may be longer than what the kernel sees of it. */
    if (b->has_static_byte_len && bound->in_size > b->static_byte_len) {
      bound->in_size = b->static_byte_len;
    }
  }
  run->extents[b->input_index] =
      (vyre_input_extent){.byte_len = bound->in_size, .resident = is_resident};
  return VYRE_OK;
}

static vyre_code check_one_place(const vyre_binding *b,
                                 const vyre_output *output, bool is_resident,
                                 vyre_status *st) {
  int places = (output->data != NULL) + (output->slot != NULL) +
               (output->kept != NULL) + is_resident;
  if (places <= 1) return VYRE_OK;
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH,
                   "give it one of data, slot, resident and kept",
                   "output '%.100s' has %d places to go to", b->name, places);
}

static vyre_code resolve_output(vyre__run *run, const vyre_binding *b,
                                vyre__bound *bound, vyre_status *st) {
  vyre_output *output = &run->outputs[b->output_index];
  bool is_resident = output->resident.owner != 0 || output->resident.id != 0;
  VYRE_TRY(check_one_place(b, output, is_resident, st));
  if (!output->data && !output->slot && !output->kept && !is_resident &&
      b->input_index != VYRE_NO_INDEX && bound->in_slot) {
    /* It goes where it comes from. */
    output->resident = run->desc.inputs[b->input_index].resident;
    output->offset = run->desc.inputs[b->input_index].offset;
    is_resident = true;
  }
  bound->out = output->data;
  bound->out_size = output->size;
  bound->out_offset = output->offset;
  if (is_resident) {
    VYRE_TRY(resolve(run, b, output->resident, output->offset, &bound->out_size,
                     &bound->out_slot, &bound->out, st));
  }
  /* Where the memory is ours to size, its size is known without being told. */
  bool is_ours = output->slot || output->kept || is_resident;
  if (!is_ours || (output->size != 0 && !is_resident)) return VYRE_OK;
  uint64_t natural = b->has_static_byte_len            ? b->static_byte_len
                     : b->input_index != VYRE_NO_INDEX ? bound->in_size
                                                       : bound->out_size;
  if (!is_resident || bound->out_size > natural) bound->out_size = natural;
  return VYRE_OK;
}

static vyre_code output_count(const vyre_binding_plan *plan, size_t received,
                              vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"expected_outputs", plan->output_count},
                   {"received_outputs", received}),
      "pass memory for each output and input_output buffer, in order of "
      "their binding numbers",
      "outputs: the program gives %zu, got memory for %zu", plan->output_count,
      received);
}

vyre_code vyre__run_resolve(vyre__run *run, vyre_status *st) {
  const vyre_binding_plan *plan = &run->pipeline->plan;
  const vyre_dispatch_desc *desc = &run->desc;
  if (!desc->inputs && desc->input_count > 0) {
    return vyre__null_argument(st, "vyre_dispatch", "desc->inputs");
  }
  if (!desc->outputs && desc->output_count > 0) {
    return vyre__null_argument(st, "vyre_dispatch", "desc->outputs");
  }
  if (desc->input_count != plan->input_count) { /* it has the words for that */
    return vyre_binding_plan_validate(plan, run->extents, desc->input_count,
                                      st);
  }
  bool outputs_match = desc->output_count == plan->output_count;
  if (outputs_match && desc->output_count > 0) {
    memcpy(run->outputs, desc->outputs,
           desc->output_count * sizeof *run->outputs);
  }
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->input_index == VYRE_NO_INDEX) continue;
    VYRE_TRY(resolve_input(run, b, &run->bound[i], st));
  }
  VYRE_TRY(
      vyre_binding_plan_validate(plan, run->extents, plan->input_count, st));
  if (!outputs_match) return output_count(plan, desc->output_count, st);
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->output_index == VYRE_NO_INDEX) continue;
    VYRE_TRY(resolve_output(run, b, &run->bound[i], st));
  }
  return VYRE_OK;
}

/* --- sizes -------------------------------------------------------------------*/

static vyre_code output_size(const vyre_binding *binding, uint64_t expected,
                             uint64_t received, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"output_index", binding->output_index},
                   {"expected_bytes", expected}, {"received_bytes", received}),
      "give the output exactly the bytes of the buffer",
      "output '%.100s' must have %llu bytes, got %llu", binding->name,
      (unsigned long long)expected, (unsigned long long)received);
}

/* The size of one output against its declaration or its input. */
static vyre_code check_output(const vyre_binding *b, const vyre__bound *bound,
                              vyre_status *st) {
  uint64_t size = bound->out_size, element = element_of(b);
  if (b->has_static_byte_len) {
    if (size == b->static_byte_len) return VYRE_OK;
    return output_size(b, b->static_byte_len, size, st);
  }
  if (b->input_index != VYRE_NO_INDEX) {
    if (size == bound->in_size) return VYRE_OK;
    return output_size(b, bound->in_size, size, st);
  }
  if (size % element) return output_size(b, size - size % element, size, st);
  if (size / element <= UINT32_MAX) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"output_index", b->output_index},
                   {"elements", size / element}, {"most_elements", UINT32_MAX}),
      "split the output: a kernel counts elements in 32 bits",
      "output '%.100s' has %llu elements, the most is 4294967295", b->name,
      (unsigned long long)(size / element));
}

/* Sizes of outputs, lengths of all buffers, and the bytes that come back. */
vyre_code vyre__run_size(vyre__run *run, vyre_status *st) {
  const vyre_binding_plan *plan = &run->pipeline->plan;
  uint64_t back = 0;
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    const vyre__bound *bound = &run->bound[i];
    uint64_t size = b->static_byte_len;
    if (b->input_index != VYRE_NO_INDEX) size = bound->in_size;
    if (b->output_index != VYRE_NO_INDEX) {
      VYRE_TRY(check_output(b, bound, st));
      size = bound->out_size;
      const vyre_output *output = &run->outputs[b->output_index];
      if (output->data || output->slot) back += size;
    }
    run->views[b->buffer_index] =
        (vyre__view){.length = (uint32_t)(size / element_of(b))};
  }
  run->host_out = back;
  uint64_t limit = run->desc.max_output_bytes;
  if (limit == 0 || back <= limit) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_OUTPUT_TOO_LARGE, NULL,
      VYRE_NUMBERS({"output_bytes", back}, {"max_output_bytes", limit}),
      "raise max_output_bytes, or let outputs stay on the device",
      "the outputs have %llu bytes, max_output_bytes is %llu",
      (unsigned long long)back, (unsigned long long)limit);
}

/* --- memory ------------------------------------------------------------------*/

static vyre_code null_memory(const vyre_binding *b, uint64_t size,
                             vyre_status *st) {
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                   "point it at the bytes",
                   "the memory for '%.100s' is NULL, with a size of %llu bytes",
                   b->name, (unsigned long long)size);
}

static vyre__span span_of(const vyre_binding *b, const unsigned char *data,
                          uint64_t size, uint64_t offset,
                          const vyre__resident_slot *slot, bool is_written) {
  uint64_t begin = slot && !data ? offset : (uintptr_t)data;
  return (vyre__span){b, slot && !data ? slot : NULL, begin, begin + size,
                      is_written};
}

static bool overlap(const vyre__span *a, const vyre__span *b) {
  return (a->is_written || b->is_written) && a->space == b->space &&
         a->begin < b->end && b->begin < a->end;
}

static vyre_code overlapping(const vyre__span *a, const vyre__span *b,
                             vyre_status *st) {
  return VYRE_FAIL(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH,
      "give what is written memory of its own; only an input_output may use "
      "one place for both",
      "the memory of '%.100s' and '%.100s' overlaps, and one is written",
      b->binding->name, a->binding->name);
}

/* What is written may be bound only once. All pairs: bindings are few. */
static vyre_code check_overlap(vyre__run *run, vyre_status *st) {
  const vyre_binding_plan *plan = &run->pipeline->plan;
  vyre__span *spans = run->spans;
  size_t count = 0;
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    const vyre__bound *bound = &run->bound[i];
    size_t first = count;
    if (b->input_index != VYRE_NO_INDEX && bound->in_size > 0 &&
        !vyre__in_place(bound)) {
      spans[count++] = span_of(b, bound->in, bound->in_size, bound->in_offset,
                               bound->in_slot, false);
    }
    if (b->output_index != VYRE_NO_INDEX && bound->out_size > 0 &&
        (bound->out || bound->out_slot)) {
      spans[count++] = span_of(b, bound->out, bound->out_size,
                               bound->out_offset, bound->out_slot, true);
    }
    for (size_t k = first; k < count; k++) {
      for (size_t j = 0; j < k; j++) {
        if (overlap(&spans[k], &spans[j])) {
          return overlapping(&spans[k], &spans[j], st);
        }
      }
    }
  }
  return VYRE_OK;
}

vyre_copy_reason vyre__host_reason(const vyre_device *device,
                                   const void *data) {
  uint64_t alignment = device->caps.host_alignment;
  if (!device->caps.borrows_host_memory) return VYRE_COPY_DEVICE_MEMORY;
  if (alignment > 1 && (uintptr_t)data % alignment) return VYRE_COPY_ALIGNMENT;
  return VYRE_COPY_NONE;
}

static void add_copy(vyre_copy_report *copies, const vyre_binding *b,
                     uint64_t size, vyre_copy_reason why) {
  if (size == 0) return;
  if (why == VYRE_COPY_NONE) {
    copies->borrowed_bytes += size;
    return;
  }
  copies->copied_bytes += size;
  if (copies->copies++ > 0) return;
  copies->first_copied = b->name;
  copies->first_why = why;
}

/* One binding: what its kernel sees is the output's memory, else the input's. */
static void count_binding(vyre__run *run, const vyre_binding *b,
                          const vyre__bound *bound) {
  vyre_copy_report *copies = &run->copies;
  bool has_in = b->input_index != VYRE_NO_INDEX;
  bool has_out = b->output_index != VYRE_NO_INDEX;
  const vyre_device *device = run->pipeline->device;
  if (has_in && bound->in_slot) copies->resident_bytes += bound->in_size;
  if (has_in && !bound->in_slot) run->host_in += bound->in_size;
  if (!has_out) {
    if (has_in && !bound->in_slot) {
      add_copy(copies, b, bound->in_size, vyre__host_reason(device, bound->in));
    }
    return;
  }
  bool is_apart = has_in && !vyre__in_place(bound);
  if (is_apart) add_copy(copies, b, bound->in_size, VYRE_COPY_IN_OUT);
  if (!has_in && bound->out_slot) copies->resident_bytes += bound->out_size;
  const vyre_output *output = &run->outputs[b->output_index];
  if (bound->out_slot || output->kept) return;
  vyre_copy_reason why = vyre__host_reason(device, bound->out);
  /* A slot has no memory yet; the copy from in to out is counted already. */
  bool is_counted = why == VYRE_COPY_NONE && (is_apart || output->slot);
  if (!is_counted) add_copy(copies, b, bound->out_size, why);
}

static const char *copy_words(vyre_copy_reason why) {
  switch (why) {
    case VYRE_COPY_ALIGNMENT:
      return "its memory is not aligned for the device";
    case VYRE_COPY_DEVICE_MEMORY:
      return "the device has memory of its own";
    default:
      return "its input is not where its output goes";
  }
}

/* What will be copied, and whether it may be. */
static vyre_code count_copies(vyre__run *run, vyre_status *st) {
  const vyre_binding_plan *plan = &run->pipeline->plan;
  const vyre_copy_report *copies = &run->copies;
  for (size_t i = 0; i < plan->binding_count; i++) {
    count_binding(run, &plan->bindings[i], &run->bound[i]);
  }
  if (copies->copies == 0 || !run->desc.require_zero_copy) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_COPY_NEEDED, NULL,
      VYRE_NUMBERS({"copied_bytes", copies->copied_bytes},
                   {"copies", copies->copies}),
      "give an input_output one place for both, use resident buffers or memory "
      "of vyre_host_alloc, or allow the copy",
      "%llu bytes would be copied, the first of '%.100s': %s",
      (unsigned long long)copies->copied_bytes, copies->first_copied,
      copy_words(copies->first_why));
}

vyre_code vyre__run_check_memory(vyre__run *run, vyre_status *st) {
  const vyre_binding_plan *plan = &run->pipeline->plan;
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    const vyre__bound *bound = &run->bound[i];
    if (b->input_index != VYRE_NO_INDEX && !bound->in && !bound->in_slot &&
        bound->in_size > 0) {
      return null_memory(b, bound->in_size, st);
    }
    if (b->output_index == VYRE_NO_INDEX) continue;
    const vyre_output *output = &run->outputs[b->output_index];
    if (!bound->out && !bound->out_slot && !output->slot && !output->kept &&
        bound->out_size > 0) {
      return null_memory(b, bound->out_size, st);
    }
  }
  VYRE_TRY(check_overlap(run, st));
  return count_copies(run, st);
}
