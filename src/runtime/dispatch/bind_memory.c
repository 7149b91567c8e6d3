/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks the memory of resolved bindings: overlaps, and what has to be copied.
 */
#include "runtime/dispatch/bind_memory.h"

#include "base/attributes.h"
#include "base/status.h"
#include "runtime/compile/pipeline.h"
#include "runtime/dispatch/bind.h"
#include "runtime/dispatch/prepared.h"
#include "runtime/memory/device_buffer.h"

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
    case VYRE_COPY_READBACK:
      return "its output is a device buffer and host memory";
    default:
      return "its input and its output are different memory";
  }
}

#define COPY_NEEDED(fix)                                                 \
  VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_COPY_NEEDED, NULL, \
                 VYRE_NUMBERS({"copied_bytes", copies->copied_bytes},    \
                              {"copies", copies->copies}),               \
                 fix,                                                    \
                 "%llu bytes would be copied, first those of buffer "    \
                 "'%.100s': %s",                                         \
                 (unsigned long long)copies->copied_bytes,               \
                 copies->first_copied, copy_reason_text(copies->first_reason))

VYRE__RARE
static vyre_code copy_needed(const vyre_copy_report *copies, vyre_status *st) {
  if (copies->first_reason == VYRE_COPY_DEVICE_MEMORY) {
    return COPY_NEEDED(
        "bind device buffers (vyre_buffer_create or "
        "vyre_buffer_import), or set require_zero_copy to "
        "false");
  }
  if (copies->first_reason == VYRE_COPY_READBACK) {
    return COPY_NEEDED(
        "set data and host_buffer of the output to NULL, or "
        "set require_zero_copy to false");
  }
  return COPY_NEEDED(
      "use the same memory for input and output, bind device "
      "buffers or memory of vyre_host_alloc, or set "
      "require_zero_copy to false");
}

vyre_code vyre__prepared_check_copies(const vyre__prepared *prepared,
                                      vyre_status *st) {
  if (prepared->copies.copies == 0 || !prepared->desc->require_zero_copy)
    return VYRE_OK;
  return copy_needed(&prepared->copies, st);
}

/* Returns the memory of a host buffer. The full capacity: a reallocation would
 * free it while an input reads it. */
static vyre__memory_range host_buffer_range(const vyre_binding *b,
                                            const vyre_host_buffer *buffer) {
  if (buffer->capacity == 0) return (vyre__memory_range){0};
  return range_of(b, buffer->data, buffer->capacity, 0, NULL);
}

/* Returns the memory that the kernel writes for an output; an empty range if it
 * is not allocated yet. */
static vyre_code written_range(const vyre__prepared *prepared,
                               const vyre__binding_info *info,
                               const vyre__bound_buffer *bound,
                               vyre__memory_range *out, vyre_status *st) {
  const vyre_output *output = &prepared->outputs[info->output];
  uint64_t size = bound->out_size;
  *out = (vyre__memory_range){0};
  if (size == 0 || output->new_buffer) return VYRE_OK;
  if (output->host_buffer && !bound->has_readback) {
    *out = host_buffer_range(info->binding, output->host_buffer);
    return VYRE_OK;
  }
  if (!bound->out && !bound->out_buffer) {
    return null_memory(info->binding, size, st);
  }
  *out = range_of(info->binding, bound->out, size, bound->out_offset,
                  bound->out_buffer);
  return VYRE_OK;
}

/* Returns the host memory that an output on the device is copied to; an empty
 * range without a readback. */
static vyre__memory_range readback_range(const vyre__prepared *prepared,
                                         const vyre__binding_info *info,
                                         const vyre__bound_buffer *bound) {
  const vyre_output *output = &prepared->outputs[info->output];
  if (!bound->has_readback || bound->out_size == 0) {
    return (vyre__memory_range){0};
  }
  if (output->host_buffer)
    return host_buffer_range(info->binding, output->host_buffer);
  return range_of(info->binding, output->data, bound->out_size, 0, NULL);
}

void vyre__prepared_set_readbacks(vyre__prepared *prepared) {
  const vyre__binding_info **infos = prepared->pipeline->state->outputs;
  uint32_t count = 0;
  for (size_t i = 0; i < prepared->pipeline->plan.output_count; i++) {
    const vyre__bound_buffer *bound = &prepared->bound[infos[i]->index];
    const vyre_output *output = &prepared->outputs[i];
    if (!bound->has_readback || bound->out_size == 0) continue;
    prepared->readbacks[count++] = (vyre__readback){
        .buffer = infos[i]->buffer,
        .to = output->host_buffer ? output->host_buffer->data : output->data,
        .size = bound->out_size};
  }
  prepared->readback_count = prepared->launch.readback_count = count;
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
  bool is_input = info->has_contents;
  bool is_unaligned = (uintptr_t)bound->out % info->aligned != 0;
  if (bound->has_readback && bound->out_size > 0)
    add_copy(prepared, info, bound->out_size, VYRE_COPY_READBACK);
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

/* Adds memory that is written, and checks that no other output writes it. */
static vyre_code add_written(const vyre__prepared *prepared,
                             const vyre__memory_range *range, size_t *written,
                             vyre_status *st) {
  if (range->begin >= range->end) return VYRE_OK;
  for (size_t k = 0; k < *written; k++) {
    if (overlap(range, &prepared->ranges[k]))
      return ranges_overlap(range, &prepared->ranges[k], st);
  }
  prepared->ranges[(*written)++] = *range;
  return VYRE_OK;
}

/* Checks that written memory is bound only once. Outputs are compared with
 * each other here; check_input compares inputs with them. */
static vyre_code check_outputs(vyre__prepared *prepared, size_t *count,
                               vyre_status *st) {
  const struct vyre__pipeline_state *state = prepared->pipeline->state;
  size_t written = 0;
  if (prepared->grows_outputs) VYRE_TRY(check_destinations(prepared, st));
  for (size_t i = 0; i < prepared->pipeline->plan.output_count; i++) {
    const vyre__binding_info *info = state->outputs[i];
    const vyre__bound_buffer *bound = &prepared->bound[info->index];
    vyre__memory_range range;
    count_output(prepared, info, bound);
    VYRE_TRY(written_range(prepared, info, bound, &range, st));
    VYRE_TRY(add_written(prepared, &range, &written, st));
    range = readback_range(prepared, info, bound);
    VYRE_TRY(add_written(prepared, &range, &written, st));
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

/* Adds the persistent buffers to the copy report. Adds those that are written,
 * and not also outputs, to the written memory; checks the others against it. */
static vyre_code check_persistents(vyre__prepared *prepared, size_t *written,
                                   vyre_status *st) {
  const struct vyre__pipeline_state *state = prepared->pipeline->state;
  for (size_t i = 0; i < 2 * state->persistent_count; i++) {
    const vyre__binding_info *info =
        state->persistents[i % state->persistent_count];
    const vyre__bound_buffer *bound = &prepared->bound[info->index];
    bool is_first = i < state->persistent_count; /* written ones come first */
    if (bound->in_size == 0) continue;
    if (is_first) {
      count_device_buffer(&prepared->copies, bound->in_buffer, bound->in_size);
    }
    if (info->output != VYRE_NO_INDEX) continue;
    if (is_first && info->is_written) {
      const vyre__memory_range range =
          range_of(info->binding, bound->in, bound->in_size, bound->in_offset,
                   bound->in_buffer);
      VYRE_TRY(add_written(prepared, &range, written, st));
      if ((uintptr_t)bound->in % info->aligned != 0)
        add_copy(prepared, info, bound->in_size, VYRE_COPY_ALIGNMENT);
    } else if (!is_first && !info->is_written) {
      VYRE_TRY(check_input(prepared, info, bound, *written, st));
    }
  }
  return VYRE_OK;
}

vyre_code vyre__prepared_check_memory(vyre__prepared *prepared,
                                      vyre_status *st) {
  const vyre__binding_info **infos = prepared->pipeline->state->inputs;
  const vyre__binding_info **end = infos + prepared->pipeline->plan.input_count;
  const vyre_device *device = prepared->pipeline->device;
  size_t written = 0;
  uint64_t borrowed = 0;
  VYRE_TRY(check_outputs(prepared, &written, st));
  if (prepared->pipeline->state->persistent_count > 0) {
    VYRE_TRY(check_persistents(prepared, &written, st));
  }
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
  return vyre__prepared_check_copies(prepared, st);
}
