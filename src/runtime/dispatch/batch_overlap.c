/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks the host memory that the items of a batch share. Each item was
 * checked on its own before; only this check finds an item that writes or
 * frees memory that another item uses. Device buffers are not checked: the
 * order of the items defines what each one reads. The exception is imported
 * memory, which another item may bind as host memory. */
#include "runtime/dispatch/batch_overlap.h"

#include <string.h>

#include "base/attributes.h"
#include "base/sort.h"
#include "base/status.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/device.h"
#include "runtime/dispatch/prepared.h"
#include "runtime/memory/device_buffer.h"
#include "runtime/memory/scratch_pool.h"

/* The structs of host buffers and handles count as memory too: the dispatch
 * writes them. */
typedef enum access_kind {
  IS_READ,
  IS_WRITTEN,
  IS_HOST_BUFFER,
  IS_HANDLE,
  IS_IMPORT_READ,
  IS_IMPORT_WRITTEN
} access_kind;

typedef struct memory_access {
  uint64_t begin, end;
  const vyre_binding *binding;
  size_t item;
  access_kind kind;
} memory_access;

typedef struct access_list {
  memory_access *list;
  vyre__sort_item *order; /* sorted by address; as many entries as `list` */
  size_t count;
  uint64_t low, high; /* range that contains all written bytes */
} access_list;

static bool is_written(access_kind kind) {
  return kind != IS_READ && kind != IS_IMPORT_READ;
}

static bool is_import(access_kind kind) {
  return kind == IS_IMPORT_READ || kind == IS_IMPORT_WRITTEN;
}

static void add(access_list *list, access_kind kind, const void *data,
                uint64_t size, const vyre_binding *binding, size_t item) {
  if (size == 0) return;
  memory_access added = {(uintptr_t)data, (uintptr_t)data + size, binding, item,
                         kind};
  if (!is_written(kind)) {
    if (added.end <= list->low || added.begin >= list->high) return;
  } else {
    if (added.begin < list->low) list->low = added.begin;
    if (added.end > list->high) list->high = added.end;
  }
  list->order[list->count] = (vyre__sort_item){added.begin, list->count};
  list->list[list->count++] = added;
}

static void add_outputs(access_list *list, const vyre__prepared *prepared,
                        size_t item) {
  const vyre__binding_info **infos = prepared->pipeline->state->outputs;
  for (size_t i = 0; i < prepared->pipeline->plan.output_count; i++) {
    const vyre_binding *b = infos[i]->binding;
    const vyre__bound_buffer *bound = &prepared->bound[infos[i]->index];
    const vyre_output *output = &prepared->outputs[i];
    if (output->host_buffer) {
      add(list, IS_HOST_BUFFER, output->host_buffer,
          sizeof *output->host_buffer, b, item);
      add(list, IS_WRITTEN, output->host_buffer->data,
          output->host_buffer->capacity, b, item);
    } else if (output->data) {
      add(list, IS_WRITTEN, output->data, bound->out_size, b, item);
    }
    if (output->new_buffer) {
      add(list, IS_HANDLE, output->new_buffer, sizeof *output->new_buffer, b,
          item);
    } else if (bound->out_buffer && bound->out_buffer->buffer->is_imported) {
      add(list, IS_IMPORT_WRITTEN, bound->out, bound->out_size, b, item);
    }
  }
}

static void add_persistents(access_list *list, const vyre__prepared *prepared,
                            size_t item) {
  const struct vyre__pipeline_state *state = prepared->pipeline->state;
  for (size_t i = 0; i < state->persistent_count; i++) {
    const vyre__binding_info *info = state->persistents[i];
    const vyre__bound_buffer *bound = &prepared->bound[info->index];
    if (!bound->in_buffer->buffer->is_imported) continue;
    add(list, info->is_written ? IS_IMPORT_WRITTEN : IS_IMPORT_READ, bound->in,
        bound->in_size, info->binding, item);
  }
}

static void add_inputs(access_list *list, const vyre__prepared *prepared,
                       size_t item) {
  const vyre__binding_info **infos = prepared->pipeline->state->inputs;
  for (size_t i = 0; i < prepared->pipeline->plan.input_count; i++) {
    const vyre__bound_buffer *bound = &prepared->bound[infos[i]->index];
    const vyre__device_buffer *buffer = bound->in_buffer;
    if ((buffer && !buffer->buffer->is_imported) || vyre__in_place(bound))
      continue;
    add(list, buffer ? IS_IMPORT_READ : IS_READ, bound->in, bound->in_size,
        infos[i]->binding, item);
  }
}

/* The two accesses of different items that end last. One of them belongs to
 * another item than any access that is compared with them. */
typedef struct furthest_ends {
  const memory_access *first, *second;
} furthest_ends;

static void extend(furthest_ends *furthest, const memory_access *current) {
  if (!furthest->first || current->end > furthest->first->end) {
    if (furthest->first && furthest->first->item != current->item)
      furthest->second = furthest->first;
    furthest->first = current;
  } else if (current->item != furthest->first->item &&
             (!furthest->second || current->end > furthest->second->end)) {
    furthest->second = current;
  }
}

static const memory_access *find_overlap(const furthest_ends *furthest,
                                         const memory_access *current) {
  const memory_access *other =
      furthest->first && furthest->first->item == current->item
          ? furthest->second
          : furthest->first;
  return other && other->end > current->begin ? other : NULL;
}

VYRE__RARE
static vyre_code memory_shared(const memory_access *a, const memory_access *b,
                               size_t *item, vyre_status *st) {
  const memory_access *first = a->item < b->item ? a : b,
                      *last = first == a ? b : a;
  const char *shared_object =
      a->kind == IS_HOST_BUFFER || b->kind == IS_HOST_BUFFER ? "a host buffer"
      : a->kind == IS_HANDLE || b->kind == IS_HANDLE         ? "a handle"
                                                             : "memory";
  *item = last->item;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"other_item", first->item}),
      "use separate memory for outputs, or pass data from item to item in a "
      "device buffer",
      "buffer '%.80s' shares %s with buffer '%.80s' of items[%zu], and one "
      "of them is written",
      last->binding->name, shared_object, first->binding->name, first->item);
}

/* Compares each access, in the order of addresses, with the accesses before it
 * that end last. Two imported ranges never conflict: the order of the items
 * defines the result. */
static vyre_code find_conflict(const access_list *all, size_t *item,
                               vyre_status *st) {
  enum { READ = 0, WRITTEN = 1, IMPORTED = 2, KINDS = 4 };
  furthest_ends before[KINDS] = {{NULL, NULL}};
  for (size_t i = 0; i < all->count; i++) {
    const memory_access *current = &all->list[all->order[i].tie];
    int kind = (is_written(current->kind) ? WRITTEN : READ) |
               (is_import(current->kind) ? IMPORTED : 0);
    for (int k = 0; k < KINDS; k++) {
      if (!((k | kind) & WRITTEN) || k & kind & IMPORTED) continue;
      const memory_access *other = find_overlap(&before[k], current);
      if (other) return memory_shared(other, current, item, st);
    }
    extend(&before[kind], current);
  }
  return VYRE_OK;
}

/* Returns true if the same items were checked together before and nothing else
 * was bound since. */
static bool was_checked(vyre__prepared **dispatches, size_t count) {
  uint64_t batch = dispatches[0]->batch;
  for (size_t i = 0; i < count; i++) {
    if (dispatches[i]->batch != batch || dispatches[i]->has_moved_output)
      return false;
  }
  return batch != 0;
}

static size_t max_accesses(vyre__prepared **dispatches, size_t count) {
  size_t max_count = 0;
  for (size_t i = 0; i < count; i++) {
    const vyre_binding_plan *plan = &dispatches[i]->pipeline->plan;
    max_count += plan->input_count + 3 * plan->output_count +
                 dispatches[i]->pipeline->state->persistent_count;
  }
  return max_count;
}

uint64_t vyre__batch_new_id(vyre_device *device) {
  return 1 + atomic_fetch_add_explicit(&device->state->batch_ids, 1,
                                       memory_order_relaxed);
}

vyre_code vyre__batch_check_overlap(vyre__prepared **dispatches, size_t count,
                                    size_t *item, vyre_status *st) {
  enum { SMALL = 96 };
  memory_access small_list[SMALL];
  vyre__sort_item small_order[SMALL];
  if (count < 2 || was_checked(dispatches, count)) return VYRE_OK;
  vyre_device *device = dispatches[0]->pipeline->device;
  size_t max_count = max_accesses(dispatches, count);
  size_t size = max_count * (sizeof(memory_access) + sizeof(vyre__sort_item));
  access_list all = {
      .list = small_list, .order = small_order, .low = UINT64_MAX};
  vyre__scratch_block *block = NULL;
  if (max_count > SMALL) {
    block = vyre__scratch_acquire(device, VYRE__SCRATCH_PARTS, size);
    if (!block) {
      *item = count - 1;
      return vyre__no_memory(st, "vyre_submit", "bindings", max_count);
    }
    all.list = (memory_access *)(void *)block->bytes;
    all.order = (vyre__sort_item *)(void *)(all.list + max_count);
  }
  for (size_t i = 0; i < count; i++) add_outputs(&all, dispatches[i], i);
  for (size_t i = 0; i < count; i++) add_persistents(&all, dispatches[i], i);
  for (size_t i = 0; i < count; i++) add_inputs(&all, dispatches[i], i);
  vyre__sort(all.order, all.count);
  vyre_code code = find_conflict(&all, item, st);
  vyre__scratch_return(device, VYRE__SCRATCH_PARTS, block);
  if (code != VYRE_OK) return code;
  uint64_t batch = vyre__batch_new_id(device);
  for (size_t i = 0; i < count; i++) dispatches[i]->batch = batch;
  return VYRE_OK;
}
