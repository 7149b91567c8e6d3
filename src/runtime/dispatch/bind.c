/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a dispatch binds: found, measured and held against the plan, before
 * anything is changed. Each binding is looked at twice: once for what it is, once
 * for its memory. What was looked at the last time is not (prepared_match.h). */
#include <string.h>

#include "base/attributes.h"
#include "base/memory.h"
#include "base/status.h"
#include "ir/ir.h"
#include "runtime/runtime.h"

static vyre__binding_info describe(const vyre_binding *b, size_t index,
                                   uint32_t over) {
  uint32_t element = b->element_size > 1 ? b->element_size : 1;
  bool has_own = b->role == VYRE_ROLE_UNIFORM || b->role == VYRE_ROLE_SHARED;
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
      .is_covered = over == VYRE_NO_INDEX ? !has_own : b->buffer_index == over};
}

/* Atomics of a processor are for elements that are at multiples of their size. */
static void align_atomics(const vyre_program *program,
                          vyre__binding_info *ports, size_t count) {
  for (uint32_t i = 0; i < program->node_count; i++) {
    const vyre__node *node = &program->nodes[i];
    if (!(vyre__ops[node->op].flags & VYRE__OPF_ATOMICS)) continue;
    for (size_t k = 0; k < count; k++) {
      if (ports[k].buffer == node->a) ports[k].aligned = ports[k].mask + 1;
    }
  }
}

vyre_code vyre__binding_infos_build(vyre_pipeline *pipeline, vyre_status *st) {
  const vyre_binding_plan *plan = &pipeline->plan;
  struct vyre__pipeline_state *inside = pipeline->state;
  vyre_arena *arena = &pipeline->arena;
  size_t count = plan->binding_count;
  vyre__binding_info *ports = vyre__arena_array(arena, count, sizeof *ports);
  inside->inputs = (const vyre__binding_info **)vyre__arena_array(
      arena, plan->input_count, sizeof *inside->inputs);
  inside->outputs = (const vyre__binding_info **)vyre__arena_array(
      arena, plan->output_count, sizeof *inside->outputs);
  if (!ports || !inside->inputs || !inside->outputs) {
    return vyre__no_memory(st, "vyre_pipeline_compile", "bindings", count);
  }
  for (size_t i = 0; i < count; i++) {
    const vyre__binding_info *p = &ports[i];
    ports[i] = describe(&plan->bindings[i], i, pipeline->program->over);
    if (p->input != VYRE_NO_INDEX) inside->inputs[p->input] = p;
    if (p->output != VYRE_NO_INDEX) inside->outputs[p->output] = p;
  }
  if (pipeline->device->backend->aligns_atomics) {
    align_atomics(pipeline->program, ports, count);
  }
  inside->ports = ports;
  return VYRE_OK;
}

/* --- resources ---------------------------------------------------------------*/

static bool is_given(vyre_buffer handle) {
  return (handle.owner | handle.id) != 0;
}

static uint64_t rest_of(const vyre__binding_info *p, uint64_t bytes) {
  return bytes & p->mask;
}

VYRE__RARE
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
static vyre_code find_range(const vyre__binding_info *p,
                            const vyre__device_buffer *slot, uint64_t offset,
                            uint64_t *size, unsigned char **data,
                            vyre_status *st) {
  const vyre__buffer *buffer = slot->buffer;
  if (offset > buffer->size || *size > buffer->size - offset ||
      rest_of(p, offset) != 0) {
    return bad_range(p->binding, buffer, offset, *size, st);
  }
  if (*size == 0) *size = buffer->size - offset;
  *data = buffer->host ? buffer->host + offset : NULL;
  return VYRE_OK;
}

VYRE__RARE
static vyre_code input_twice(const vyre__binding_info *p, vyre_status *st) {
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH,
                   "give either bytes or a resident buffer",
                   "input '%.100s' has both", p->binding->name);
}

/* Whether an input is as the plan wants it; the plan itself says why not. */
static bool fits(const vyre__binding_info *p, uint64_t size, bool is_resident) {
  if (p->is_static) {
    return is_resident ? size >= p->static_bytes : size == p->static_bytes;
  }
  return rest_of(p, size) == 0 && size >> p->shift <= UINT32_MAX;
}

static vyre_code resolve_resident_input(vyre__prepared *run,
                                        const vyre__binding_info *p,
                                        const vyre_input *input,
                                        vyre__bound_buffer *bound,
                                        vyre_status *st) {
  if (input->data) return input_twice(p, st);
  run->holds_buffers = true;
  VYRE_TRY(vyre__device_buffer_acquire(run->pipeline->device, input->buffer,
                                       &bound->in_buffer, st));
  VYRE_TRY(find_range(p, bound->in_buffer, input->offset, &bound->in_size,
                      &bound->in, st));
  /* A buffer may be longer than what the kernel sees of it. */
  if (p->is_static && bound->in_size > p->static_bytes) {
    bound->in_size = p->static_bytes;
  }
  return VYRE_OK;
}

/* An input does not fit: the plan has the words for that. */
VYRE__RARE
static vyre_code validate(vyre__prepared *run, vyre_status *st) {
  const vyre_binding_plan *plan = &run->pipeline->plan;
  for (size_t i = 0; i < plan->input_count; i++) {
    const vyre__binding_info *p = run->pipeline->state->inputs[i];
    const vyre__bound_buffer *bound = &run->bound[p->index];
    run->extents[i] = (vyre_input_extent){.byte_len = bound->in_size,
                                          .resident = bound->in_buffer != NULL};
  }
  return vyre_binding_plan_validate(plan, run->extents, plan->input_count,
                                    vyre__status_open(st));
}

VYRE__RARE
static vyre_code many_places(const vyre__binding_info *p, int places,
                             vyre_status *st) {
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH,
                   "give it one of data, slot, resident and kept",
                   "output '%.100s' has %d places to go to", p->binding->name,
                   places);
}

/* A resident output: found, and as long as the kernel needs it. */
static vyre_code resolve_resident_output(vyre__prepared *run,
                                         const vyre__binding_info *p,
                                         const vyre_output *output,
                                         vyre__bound_buffer *bound,
                                         vyre_status *st) {
  bool is_same = bound->in_buffer &&
                 memcmp(&output->buffer, &run->desc->inputs[p->input].buffer,
                        sizeof output->buffer) == 0;
  if (is_same) {
    bound->out_buffer = bound->in_buffer; /* it is held already */
  } else {
    run->holds_buffers = true;
    VYRE_TRY(vyre__device_buffer_acquire(run->pipeline->device, output->buffer,
                                         &bound->out_buffer, st));
  }
  if (bound->out_buffer->buffer->is_read_only) {
    return vyre__device_buffer_read_only("output", p->binding->name, st);
  }
  VYRE_TRY(find_range(p, bound->out_buffer, output->offset, &bound->out_size,
                      &bound->out, st));
  uint64_t natural = p->is_static                ? p->static_bytes
                     : p->input != VYRE_NO_INDEX ? bound->in_size
                                                 : bound->out_size;
  if (bound->out_size > natural) bound->out_size = natural;
  return VYRE_OK;
}

static vyre_code resolve_output(vyre__prepared *run,
                                const vyre__binding_info *p,
                                vyre__bound_buffer *bound, vyre_status *st) {
  const vyre_output *given = &run->desc->outputs[p->output];
  vyre_output *output = &run->outputs[p->output];
  bool is_resident = is_given(given->buffer);
  bool is_elsewhere = given->host_buffer || given->new_buffer || is_resident;
  bound->out = given->data;
  bound->out_size = given->size;
  bound->out_offset = given->offset;
  *output = *given;
  if (given->data && !is_elsewhere) return VYRE_OK;
  int places = (output->data != NULL) + (output->host_buffer != NULL) +
               (output->new_buffer != NULL) + is_resident;
  if (places > 1) return many_places(p, places, st);
  if (places == 0 && bound->in_buffer) { /* it goes where it comes from */
    const vyre_input *input = &run->desc->inputs[p->input];
    output->buffer = input->buffer;
    output->offset = bound->out_offset = input->offset;
    is_resident = true;
  }
  if (is_resident) return resolve_resident_output(run, p, output, bound, st);
  if (places == 0) return VYRE_OK;
  run->grows_outputs = true;
  /* Where the memory is ours to size, its size is known without being told. */
  if (output->size != 0) return VYRE_OK;
  if (p->is_static) {
    bound->out_size = p->static_bytes;
  } else if (p->input != VYRE_NO_INDEX) {
    bound->out_size = bound->in_size;
  }
  return VYRE_OK;
}

VYRE__RARE
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

/* --- sizes -------------------------------------------------------------------*/

VYRE__RARE
static vyre_code output_size(const vyre_binding *binding, uint64_t expected,
                             uint64_t received, vyre_status *st) {
  if (!binding->has_static_byte_len && binding->input_index == VYRE_NO_INDEX) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
        VYRE_NUMBERS({"output_index", binding->output_index},
                     {"expected_bytes", expected},
                     {"received_bytes", received}),
        "give the output the bytes of whole elements",
        "output '%.100s' got %llu bytes, which are not whole elements; %llu "
        "would be",
        binding->name, (unsigned long long)received,
        (unsigned long long)expected);
  }
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"output_index", binding->output_index},
                   {"expected_bytes", expected}, {"received_bytes", received}),
      "give the output exactly the bytes of the buffer",
      "output '%.100s' must have %llu bytes, got %llu", binding->name,
      (unsigned long long)expected, (unsigned long long)received);
}

VYRE__RARE
static vyre_code output_too_long(const vyre__binding_info *p, uint64_t elements,
                                 vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"output_index", p->output}, {"elements", elements},
                   {"most_elements", UINT32_MAX}),
      "split the output: a kernel counts elements in 32 bits",
      "output '%.100s' has %llu elements, the most is 4294967295",
      p->binding->name, (unsigned long long)elements);
}

/* The size of one output against its declaration or its input. */
static vyre_code check_output(const vyre__binding_info *p,
                              const vyre__bound_buffer *bound,
                              vyre_status *st) {
  uint64_t size = bound->out_size;
  if (p->is_static || p->input != VYRE_NO_INDEX) {
    uint64_t wanted = p->is_static ? p->static_bytes : bound->in_size;
    if (size == wanted) return VYRE_OK;
    return output_size(p->binding, wanted, size, st);
  }
  uint64_t rest = rest_of(p, size);
  if (rest != 0) return output_size(p->binding, size - rest, size, st);
  if (size >> p->shift <= UINT32_MAX) return VYRE_OK;
  return output_too_long(p, size >> p->shift, st);
}

VYRE__RARE
static vyre_code too_much_output(uint64_t back, uint64_t limit,
                                 vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_OUTPUT_TOO_LARGE, NULL,
      VYRE_NUMBERS({"output_bytes", back}, {"max_output_bytes", limit}),
      "raise max_output_bytes, or let outputs stay on the device",
      "the outputs have %llu bytes, max_output_bytes is %llu",
      (unsigned long long)back, (unsigned long long)limit);
}

static vyre_code check_back(const vyre__prepared *run, vyre_status *st) {
  uint64_t limit = run->desc->max_output_bytes;
  if (limit == 0 || run->host_out <= limit) return VYRE_OK;
  return too_much_output(run->host_out, limit, st);
}

static vyre_code check_counts(const vyre__prepared *run, vyre_status *st) {
  const vyre_binding_plan *plan = &run->pipeline->plan;
  const vyre_dispatch_desc *desc = run->desc;
  if (!desc->inputs && desc->input_count > 0) {
    return vyre__null_argument(st, "vyre_dispatch", "desc->inputs");
  }
  if (!desc->outputs && desc->output_count > 0) {
    return vyre__null_argument(st, "vyre_dispatch", "desc->outputs");
  }
  if (desc->input_count != plan->input_count) { /* it has the words for that */
    return vyre_binding_plan_validate(plan, run->extents, desc->input_count,
                                      vyre__status_open(st));
  }
  return VYRE_OK;
}

/* Inputs come first, so that what is wrong with one is told before what is wrong
 * with an output that depends on it. */
static vyre_code resolve_inputs(vyre__prepared *run, vyre_status *st) {
  const struct vyre__pipeline_state *inside = run->pipeline->state;
  const vyre_input *input = run->desc->inputs;
  size_t count = run->pipeline->plan.input_count;
  uint64_t most = run->pipeline->device->caps.max_buffer_bytes;
  bool all_fit = true;
  for (size_t i = 0; i < count; i++, input++) {
    const vyre__binding_info *p = inside->inputs[i];
    vyre__bound_buffer *bound = &run->bound[p->index];
    bool is_resident = is_given(input->buffer);
    bound->in = (unsigned char *)(uintptr_t)input->data; /* only read */
    bound->in_size = input->size;
    bound->in_offset = input->offset;
    if (is_resident) {
      VYRE_TRY(resolve_resident_input(run, p, input, bound, st));
    }
    if (bound->in_size > most) {
      return vyre__buffer_too_large(run->pipeline->device, p->binding->name,
                                    bound->in_size, st);
    }
    all_fit = fits(p, bound->in_size, is_resident) && all_fit;
    run->views[p->buffer] =
        (vyre__view){.data = bound->in,
                     .length = (uint32_t)(bound->in_size >> p->shift),
                     .buffer = is_resident ? bound->in_buffer->buffer : NULL,
                     .offset = bound->in_offset};
  }
  return all_fit ? VYRE_OK : validate(run, st);
}

/* What is bound, the lengths of all buffers, and the bytes that come back. */
vyre_code vyre__prepared_resolve(vyre__prepared *run, vyre_status *st) {
  const vyre_binding_plan *plan = &run->pipeline->plan;
  const struct vyre__pipeline_state *inside = run->pipeline->state;
  uint64_t back = 0;
  if (run->is_cached || run->holds_buffers) vyre__prepared_invalidate(run);
  run->grows_outputs = run->is_bound = false;
  VYRE_TRY(check_counts(run, st));
  VYRE_TRY(resolve_inputs(run, st));
  if (run->desc->output_count != plan->output_count) {
    return output_count(plan, run->desc->output_count, st);
  }
  for (size_t i = 0; i < plan->output_count; i++) {
    const vyre__binding_info *p = inside->outputs[i];
    vyre__bound_buffer *bound = &run->bound[p->index];
    VYRE_TRY(resolve_output(run, p, bound, st));
    VYRE_TRY(check_output(p, bound, st));
    if (bound->out_size > run->pipeline->device->caps.max_buffer_bytes) {
      return vyre__buffer_too_large(run->pipeline->device, p->binding->name,
                                    bound->out_size, st);
    }
    const vyre_output *given = &run->desc->outputs[i];
    if (given->data || given->host_buffer) back += bound->out_size;
    run->views[p->buffer].length = (uint32_t)(bound->out_size >> p->shift);
  }
  run->host_out = back;
  return check_back(run, st);
}

/* --- memory ------------------------------------------------------------------*/

VYRE__RARE
static vyre_code null_memory(const vyre_binding *b, uint64_t size,
                             vyre_status *st) {
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                   "point it at the bytes",
                   "the memory for '%.100s' is NULL, with a size of %llu bytes",
                   b->name, (unsigned long long)size);
}

/* Host memory is one space; a resident buffer that only the device sees is one of
 * its own. */
static vyre__memory_range span_of(const vyre_binding *b,
                                  const unsigned char *data, uint64_t size,
                                  uint64_t offset,
                                  const vyre__device_buffer *slot) {
  uint64_t begin = data ? (uintptr_t)data : offset;
  return (vyre__memory_range){b, data ? NULL : slot, begin, begin + size};
}

static bool overlap(const vyre__memory_range *a, const vyre__memory_range *b) {
  return a->begin < b->end && b->begin < a->end && a->space == b->space;
}

VYRE__RARE
static vyre_code overlapping(const vyre__memory_range *a,
                             const vyre__memory_range *b, vyre_status *st) {
  if (a->binding == b->binding) {
    return VYRE_FAIL(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH,
        "give both the same memory and size, or memory that does not meet",
        "the input and the output of '%.100s' overlap, and are not the same",
        a->binding->name);
  }
  return VYRE_FAIL(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH,
      "give what is written memory of its own; only an input_output may use "
      "one place for both",
      "the memory of '%.100s' and '%.100s' overlaps, and one is written",
      b->binding->name, a->binding->name);
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

VYRE__RARE
static vyre_code copy_needed(const vyre_copy_report *copies, vyre_status *st) {
  if (copies->first_reason == VYRE_COPY_DEVICE_MEMORY) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_COPY_NEEDED, NULL,
        VYRE_NUMBERS({"copied_bytes", copies->copied_bytes},
                     {"copies", copies->copies}),
        "bind resident buffers (of memory of vyre_host_alloc, where the device "
        "takes it: vyre_buffer_import), or allow the copy",
        "%llu bytes would be copied, the first of '%.100s': %s",
        (unsigned long long)copies->copied_bytes, copies->first_copied,
        copy_words(copies->first_reason));
  }
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_COPY_NEEDED, NULL,
      VYRE_NUMBERS({"copied_bytes", copies->copied_bytes},
                   {"copies", copies->copies}),
      "give an input_output one place for both, use resident buffers or memory "
      "of vyre_host_alloc, or allow the copy",
      "%llu bytes would be copied, the first of '%.100s': %s",
      (unsigned long long)copies->copied_bytes, copies->first_copied,
      copy_words(copies->first_reason));
}

static vyre_code check_copies(const vyre__prepared *run, vyre_status *st) {
  if (run->copies.copies == 0 || !run->desc->require_zero_copy) return VYRE_OK;
  return copy_needed(&run->copies, st);
}

/* Memory of an output that is there already; false: none. */
static vyre_code written_span(const vyre__prepared *run,
                              const vyre__binding_info *p,
                              const vyre__bound_buffer *bound,
                              vyre__memory_range *out, vyre_status *st) {
  const vyre_output *output = &run->outputs[p->output];
  uint64_t size = bound->out_size;
  *out = (vyre__memory_range){0};
  if (size == 0 || output->new_buffer) return VYRE_OK;
  if (output->host_buffer) {
    /* All it has: it may be moved, and what reads it would read what was. */
    const vyre_host_buffer *slot = output->host_buffer;
    if (slot->capacity > 0) {
      *out = span_of(p->binding, slot->data, slot->capacity, 0, NULL);
    }
    return VYRE_OK;
  }
  if (!bound->out && !bound->out_buffer) {
    return null_memory(p->binding, size, st);
  }
  *out = span_of(p->binding, bound->out, size, bound->out_offset,
                 bound->out_buffer);
  return VYRE_OK;
}

/* Outputs are counted before inputs: the first is that of the lowest binding. */
static void note_copy(vyre__prepared *run, const vyre__binding_info *p,
                      uint64_t size, vyre_copy_reason why) {
  vyre_copy_report *copies = &run->copies;
  copies->copied_bytes += size;
  if (copies->copies++ > 0 && p->index >= run->first_copied) return;
  run->first_copied = p->index;
  copies->first_copied = p->binding->name;
  copies->first_reason = why;
}

static void count_resident(vyre_copy_report *copies,
                           const vyre__device_buffer *slot, uint64_t size) {
  copies->device_buffer_bytes += size;
  if (slot->buffer->is_imported) copies->mapped_bytes += size;
}

/* Where the bytes of an output count. What is in place counts as an input; a slot
 * gets memory that the device takes as it is. */
static void count_output(vyre__prepared *run, const vyre__binding_info *p,
                         const vyre__bound_buffer *bound) {
  vyre_copy_report *copies = &run->copies;
  bool is_in = p->input != VYRE_NO_INDEX;
  bool is_odd = (uintptr_t)bound->out % p->aligned != 0;
  if (bound->out_buffer) {
    if (!is_in) count_resident(copies, bound->out_buffer, bound->out_size);
    if (is_odd) note_copy(run, p, bound->out_size, VYRE_COPY_ALIGNMENT);
    return;
  }
  if (run->outputs[p->output].new_buffer || bound->out_size == 0) return;
  vyre_copy_reason why = vyre__host_reason(run->pipeline->device, bound->out);
  if (why == VYRE_COPY_NONE && is_odd) why = VYRE_COPY_ALIGNMENT;
  if (why != VYRE_COPY_NONE) {
    note_copy(run, p, bound->out_size, why);
  } else if (!is_in) {
    copies->borrowed_bytes += bound->out_size;
  }
}

VYRE__RARE
static vyre_code same_place(const vyre__binding_info *a,
                            const vyre__binding_info *b, const char *what,
                            vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"output_index", b->output}, {"other_output", a->output}),
      "give each output a slot or handle of its own",
      "outputs '%.100s' and '%.100s' go to one %s", a->binding->name,
      b->binding->name, what);
}

/* Slots and handles are written when memory is there: two outputs would have the
 * same, whatever their sizes. */
static vyre_code check_places(const vyre__prepared *run, vyre_status *st) {
  const vyre__binding_info **ports = run->pipeline->state->outputs;
  for (size_t i = 1; i < run->pipeline->plan.output_count; i++) {
    const vyre_output *a = &run->outputs[i];
    if (!a->host_buffer && !a->new_buffer) continue;
    for (size_t k = 0; k < i; k++) {
      const vyre_output *b = &run->outputs[k];
      if (a->host_buffer && a->host_buffer == b->host_buffer) {
        return same_place(ports[k], ports[i], "slot", st);
      }
      if (a->new_buffer && a->new_buffer == b->new_buffer) {
        return same_place(ports[k], ports[i], "handle", st);
      }
    }
  }
  return VYRE_OK;
}

/* What is written may be bound only once: outputs are held against each other
 * here, and every input against them below. */
static vyre_code check_outputs(vyre__prepared *run, size_t *count,
                               vyre_status *st) {
  const struct vyre__pipeline_state *inside = run->pipeline->state;
  vyre__memory_range *spans = run->ranges;
  size_t written = 0;
  if (run->grows_outputs) VYRE_TRY(check_places(run, st));
  for (size_t i = 0; i < run->pipeline->plan.output_count; i++) {
    const vyre__binding_info *p = inside->outputs[i];
    const vyre__bound_buffer *bound = &run->bound[p->index];
    vyre__memory_range *span = &spans[written];
    count_output(run, p, bound);
    VYRE_TRY(written_span(run, p, bound, span, st));
    for (size_t k = 0; k < written; k++) {
      if (overlap(span, &spans[k])) return overlapping(span, &spans[k], st);
    }
    if (span->begin < span->end) written++;
  }
  *count = written;
  return VYRE_OK;
}

VYRE__RARE
static vyre_code input_overlaps(const vyre__binding_info *p,
                                const vyre__bound_buffer *bound,
                                const vyre__memory_range *other,
                                vyre_status *st) {
  const vyre__memory_range span = span_of(p->binding, bound->in, bound->in_size,
                                          bound->in_offset, bound->in_buffer);
  /* Named in binding order. */
  return span.binding <= other->binding ? overlapping(other, &span, st)
                                        : overlapping(&span, other, st);
}

static vyre_code check_input(const vyre__prepared *run,
                             const vyre__binding_info *p,
                             const vyre__bound_buffer *bound, size_t written,
                             vyre_status *st) {
  uint64_t begin = bound->in ? (uintptr_t)bound->in : bound->in_offset;
  uint64_t end = begin + bound->in_size;
  const void *space = bound->in ? NULL : bound->in_buffer;
  for (const vyre__memory_range *at = run->ranges; at < run->ranges + written;
       at++) {
    if (begin < at->end && at->begin < end && at->space == space) {
      return input_overlaps(p, bound, at, st);
    }
  }
  return VYRE_OK;
}

/* An input that is resident, or also an output: whether it is copied, and where
 * its bytes count. */
static vyre_code check_special(vyre__prepared *run, const vyre__binding_info *p,
                               const vyre__bound_buffer *bound, size_t written,
                               vyre_status *st) {
  vyre_copy_report *copies = &run->copies;
  uint64_t size = bound->in_size;
  bool is_out = p->output != VYRE_NO_INDEX;
  bool is_copied = is_out && !vyre__in_place(bound);
  if (!is_out || is_copied) {
    VYRE_TRY(check_input(run, p, bound, written, st));
  }
  if (bound->in_buffer) {
    count_resident(copies, bound->in_buffer, size);
  } else {
    run->host_in += size;
    if (!is_copied && (uintptr_t)bound->in % p->aligned == 0 &&
        vyre__host_reason(run->pipeline->device, bound->in) == VYRE_COPY_NONE) {
      copies->borrowed_bytes += size;
    }
  }
  if (is_copied) note_copy(run, p, size, VYRE_COPY_IN_OUT);
  return VYRE_OK;
}

static vyre_code check_memory(vyre__prepared *run, vyre_status *st) {
  const vyre__binding_info **ports = run->pipeline->state->inputs;
  const vyre__binding_info **end = ports + run->pipeline->plan.input_count;
  const vyre_device *device = run->pipeline->device;
  size_t written = 0;
  uint64_t plain = 0;
  VYRE_TRY(check_outputs(run, &written, st));
  for (; ports < end; ports++) {
    const vyre__binding_info *p = *ports;
    const vyre__bound_buffer *bound = &run->bound[p->index];
    if (bound->in_size == 0) continue;
    if (bound->in_buffer || p->output != VYRE_NO_INDEX) {
      if (!bound->in && !bound->in_buffer) {
        return null_memory(p->binding, bound->in_size, st);
      }
      VYRE_TRY(check_special(run, p, bound, written, st));
      continue;
    }
    if (!bound->in) return null_memory(p->binding, bound->in_size, st);
    VYRE_TRY(check_input(run, p, bound, written, st));
    run->host_in += bound->in_size;
    vyre_copy_reason why = vyre__host_reason(device, bound->in);
    if (why == VYRE_COPY_NONE) {
      plain += bound->in_size;
    } else {
      note_copy(run, p, bound->in_size, why);
    }
  }
  run->copies.borrowed_bytes += plain;
  return check_copies(run, st);
}

/* --- all of it ---------------------------------------------------------------*/

vyre_code vyre__prepared_check_options(const vyre__prepared *run,
                                       vyre_status *st) {
  const vyre_dispatch_desc *desc = run->desc;
  const vyre_check_options *check = &desc->check;
  const vyre_device *device = run->pipeline->device;
  bool is_checked =
      check->out_of_bounds || check->races || check->schedules > 0;
  if (is_checked && !desc->report) {
    return vyre__null_argument(st, "vyre_dispatch", "desc->report");
  }
  if (is_checked && !device->caps.has_checks) {
    return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                     "check it on \"ref\"",
                     "device '%s' cannot check what a kernel does",
                     vyre_device_name(device));
  }
  if (desc->has_repeat_count && desc->repeat_count == 0) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_ZERO_REPEAT_COUNT,
                     "ask for 1 or more, or leave has_iterations false",
                     "0 iterations were asked for on '%s'",
                     vyre_device_name(device));
  }
  return VYRE_OK;
}

vyre_code vyre__prepared_check_limits(const vyre__prepared *run,
                                      vyre_status *st) {
  VYRE_TRY(check_back(run, st));
  return check_copies(run, st);
}

/* Whether the views are those of the inputs, which are set, and nothing has to be
 * there first: every output is where it came from. */
static bool is_in_place(const vyre__prepared *run) {
  const vyre__binding_info **ports = run->pipeline->state->outputs;
  if (run->grows_outputs) return false;
  for (size_t i = 0; i < run->pipeline->plan.output_count; i++) {
    if (!vyre__in_place(&run->bound[ports[i]->index])) return false;
  }
  return true;
}

vyre_code vyre__prepared_check_again(vyre__prepared *run, vyre_status *st) {
  run->host_in = run->host_out = 0;
  run->copies = (vyre_copy_report){0};
  run->has_moved_output = false;
  run->batch = 0;
  VYRE_TRY(vyre__prepared_resolve(run, st));
  VYRE_TRY(vyre__grid_infer(run->pipeline, run->desc->grid, run->views,
                            run->launch.grid, st));
  VYRE_TRY(check_memory(run, st));
  run->is_bound = is_in_place(run);
  return VYRE_OK;
}
