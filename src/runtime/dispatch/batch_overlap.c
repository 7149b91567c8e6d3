/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Bytes of the host that the items of a batch share. Each item was held against
 * itself alone; that one frees a slot's memory while another is about to read it is
 * seen only here. Resident buffers are left out: there, the order of the items
 * says what the next one reads. But for memory that was imported, which others may
 * have as bytes of the host. */
#include <string.h>

#include "base/attributes.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/status.h"
#include "runtime/dispatch/prepared_match.h"
#include "runtime/runtime.h"

/* Slots and handles are memory too: they are written when the item runs. */
typedef enum part_kind {
  IS_READ,
  IS_WRITTEN,
  IS_SLOT,
  IS_HANDLE,
  IS_IMPORT_READ,
  IS_IMPORT_WRITTEN
} part_kind;

typedef struct part {
  uint64_t begin, end;
  const vyre_binding *binding;
  size_t item;
  part_kind kind;
} part;

typedef struct parts {
  part *list;
  vyre__sort_item *order; /* as many */
  size_t count;
  uint64_t low, high; /* where all that is written lies */
} parts;

static bool is_written(part_kind kind) {
  return kind != IS_READ && kind != IS_IMPORT_READ;
}

static bool is_import(part_kind kind) {
  return kind == IS_IMPORT_READ || kind == IS_IMPORT_WRITTEN;
}

static void add(parts *to, part_kind kind, const void *data, uint64_t size,
                const vyre_binding *binding, size_t item) {
  if (size == 0) return;
  part made = {(uintptr_t)data, (uintptr_t)data + size, binding, item, kind};
  if (!is_written(kind)) {
    if (made.end <= to->low || made.begin >= to->high) return;
  } else {
    if (made.begin < to->low) to->low = made.begin;
    if (made.end > to->high) to->high = made.end;
  }
  to->order[to->count] = (vyre__sort_item){made.begin, to->count};
  to->list[to->count++] = made;
}

static void add_outputs(parts *to, const vyre__prepared *run, size_t item) {
  const vyre__binding_info **ports = run->pipeline->state->outputs;
  for (size_t i = 0; i < run->pipeline->plan.output_count; i++) {
    const vyre_binding *b = ports[i]->binding;
    const vyre__bound_buffer *bound = &run->bound[ports[i]->index];
    const vyre_output *output = &run->outputs[i];
    if (output->host_buffer) {
      add(to, IS_SLOT, output->host_buffer, sizeof *output->host_buffer, b,
          item);
      add(to, IS_WRITTEN, output->host_buffer->data,
          output->host_buffer->capacity, b, item);
    } else if (output->new_buffer) {
      add(to, IS_HANDLE, output->new_buffer, sizeof *output->new_buffer, b,
          item);
    } else if (!bound->out_buffer) {
      add(to, IS_WRITTEN, bound->out, bound->out_size, b, item);
    } else if (bound->out_buffer->buffer->is_imported) {
      add(to, IS_IMPORT_WRITTEN, bound->out, bound->out_size, b, item);
    }
  }
}

static void add_inputs(parts *to, const vyre__prepared *run, size_t item) {
  const vyre__binding_info **ports = run->pipeline->state->inputs;
  for (size_t i = 0; i < run->pipeline->plan.input_count; i++) {
    const vyre__bound_buffer *bound = &run->bound[ports[i]->index];
    const vyre__device_buffer *slot = bound->in_buffer;
    if ((slot && !slot->buffer->is_imported) || vyre__in_place(bound)) continue;
    add(to, slot ? IS_IMPORT_READ : IS_READ, bound->in, bound->in_size,
        ports[i]->binding, item);
  }
}

/* The two that reach furthest, of two items: whatever the item that is asked for,
 * one of them is another's. */
typedef struct reach {
  const part *first, *second;
} reach;

static void extend(reach *r, const part *p) {
  if (!r->first || p->end > r->first->end) {
    if (r->first && r->first->item != p->item) r->second = r->first;
    r->first = p;
  } else if (p->item != r->first->item &&
             (!r->second || p->end > r->second->end)) {
    r->second = p;
  }
}

static const part *reaches(const reach *r, const part *p) {
  const part *other =
      r->first && r->first->item == p->item ? r->second : r->first;
  return other && other->end > p->begin ? other : NULL;
}

VYRE__RARE
static vyre_code shared(const part *a, const part *b, size_t *item,
                        vyre_status *st) {
  const part *first = a->item < b->item ? a : b, *last = first == a ? b : a;
  const char *what = a->kind == IS_SLOT || b->kind == IS_SLOT ? "one slot"
                     : a->kind == IS_HANDLE || b->kind == IS_HANDLE
                         ? "one handle"
                         : "memory";
  *item = last->item;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"other_item", first->item}),
      "give what an item writes memory of its own, or pass it on in a resident "
      "buffer",
      "'%.80s' shares %s with '%.80s' of items[%zu], and one is written",
      last->binding->name, what, first->binding->name, first->item);
}

/* In the order of where they begin, each is held against the furthest before. Of
 * two imported ones the order of the items says what is read. */
static vyre_code sweep(const parts *of, size_t *item, vyre_status *st) {
  enum { READ = 0, WRITTEN = 1, IMPORTED = 2, KINDS = 4 };
  reach before[KINDS] = {{NULL, NULL}};
  for (size_t i = 0; i < of->count; i++) {
    const part *p = &of->list[of->order[i].tie];
    int kind = (is_written(p->kind) ? WRITTEN : READ) |
               (is_import(p->kind) ? IMPORTED : 0);
    for (int k = 0; k < KINDS; k++) {
      if (!((k | kind) & WRITTEN) || k & kind & IMPORTED) continue;
      const part *other = reaches(&before[k], p);
      if (other) return shared(other, p, item, st);
    }
    extend(&before[kind], p);
  }
  return VYRE_OK;
}

/* What was found good together stays so as long as nothing else is bound. */
static bool is_known(vyre__prepared **runs, size_t count) {
  uint64_t batch = runs[0]->batch;
  for (size_t i = 0; i < count; i++) {
    if (runs[i]->batch != batch || runs[i]->has_moved_output) return false;
  }
  return batch != 0;
}

static size_t most_parts(vyre__prepared **runs, size_t count) {
  size_t most = 0;
  for (size_t i = 0; i < count; i++) {
    const vyre_binding_plan *plan = &runs[i]->pipeline->plan;
    most += plan->input_count + 2 * plan->output_count;
  }
  return most;
}

vyre_code vyre__batch_check_overlap(vyre__prepared **runs, size_t count,
                                    size_t *item, vyre_status *st) {
  enum { FEW = 96 };
  part few[FEW];
  vyre__sort_item few_order[FEW];
  if (count < 2 || is_known(runs, count)) return VYRE_OK;
  vyre_device *device = runs[0]->pipeline->device;
  size_t most = most_parts(runs, count);
  size_t size = most * (sizeof(part) + sizeof(vyre__sort_item));
  parts all = {.list = few, .order = few_order, .low = UINT64_MAX};
  vyre__scratch_block *room = NULL;
  if (most > FEW) {
    room = vyre__scratch_acquire(device, VYRE__SCRATCH_PARTS, size);
    if (!room) {
      *item = count - 1;
      return vyre__no_memory(st, "vyre_submit", "bindings", most);
    }
    all.list = (part *)(void *)room->bytes;
    all.order = (vyre__sort_item *)(void *)(all.list + most);
  }
  for (size_t i = 0; i < count; i++) add_outputs(&all, runs[i], i);
  for (size_t i = 0; i < count; i++) add_inputs(&all, runs[i], i);
  vyre__sort(all.order, all.count);
  vyre_code code = sweep(&all, item, st);
  vyre__scratch_return(device, VYRE__SCRATCH_PARTS, room);
  if (code != VYRE_OK) return code;
  uint64_t batch = 1 + atomic_fetch_add_explicit(&device->state->batch_ids, 1,
                                                 memory_order_relaxed);
  for (size_t i = 0; i < count; i++) runs[i]->batch = batch;
  return VYRE_OK;
}
