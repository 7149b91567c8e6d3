/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Indices over the slots of a recording, so that work on one slot takes no
 * time for the others: from names to slots, from slots to the commands that use
 * them, and the bound memory in the order of its addresses. */
#include <string.h>

#include "base/memory.h"
#include "base/sort.h"
#include "runtime/recording/recording.h"

/* --- names ---------------------------------------------------------------- */

/* Returns where @p name is in the hash table, or where it can be put. */
static uint32_t *find_name(const vyre_recording *rec, const char *name) {
  uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
  for (const char *c = name; *c; c++)
    hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
  size_t at = (size_t)(hash ^ hash >> 32) & (rec->name_capacity - 1);
  while (rec->names[at] != 0 &&
         strcmp(rec->slots[rec->names[at] - 1].name, name) != 0) {
    at = (at + 1) & (rec->name_capacity - 1);
  }
  return &rec->names[at];
}

uint32_t vyre_recording_find_slot(const vyre_recording *rec, const char *name) {
  if (!rec || !name || !name[0] || !rec->names) return VYRE_NO_SLOT;
  uint32_t found = *find_name(rec, name);
  return found != 0 ? found - 1 : VYRE_NO_SLOT;
}

/* Doubles the hash table. Less than half of it is in use. */
static bool grow_names(vyre_recording *rec) {
  size_t capacity = rec->name_capacity > 0 ? 2 * rec->name_capacity : 16;
  uint32_t *names =
      vyre__alloc_zeroed(rec->device->allocator, capacity * sizeof *rec->names);
  if (!names) return false;
  vyre__slot_names_free(rec);
  rec->names = names;
  rec->name_capacity = capacity;
  for (uint32_t i = 0; i < rec->slot_count; i++) {
    if (rec->slots[i].name[0]) *find_name(rec, rec->slots[i].name) = i + 1;
  }
  return true;
}

bool vyre__slot_names_reserve(vyre_recording *rec) {
  return 2 * (rec->slot_count + 1) <= rec->name_capacity || grow_names(rec);
}

void vyre__slot_names_add(const vyre_recording *rec, uint32_t slot) {
  *find_name(rec, rec->slots[slot].name) = slot + 1;
}

void vyre__slot_names_free(vyre_recording *rec) {
  vyre__resize(rec->device->allocator, rec->names,
               rec->name_capacity * sizeof *rec->names, 0);
  rec->names = NULL;
  rec->name_capacity = 0;
}

/* --- commands that use a slot --------------------------------------------- */

typedef struct use_list {
  uint32_t *ends; /* per slot: end of its commands so far */
  uint32_t *commands;
  uint32_t command;
} use_list;

static bool count_use(void *self, const vyre_slot_range *range,
                      bool is_written) {
  const use_list *list = self;
  (void)is_written;
  list->ends[range->slot]++;
  return true;
}

static bool add_use(void *self, const vyre_slot_range *range, bool is_written) {
  const use_list *list = self;
  (void)is_written;
  list->commands[list->ends[range->slot]++] = list->command;
  return true;
}

bool vyre__slot_uses_build(vyre_recording *rec) {
  size_t slots = rec->slot_count, total = 0;
  use_list list = {.ends = vyre__alloc_zeroed(rec->device->allocator,
                                              (slots + 1) * sizeof *list.ends)};
  if (!list.ends) return false;
  for (size_t i = 0; i < rec->command_count; i++)
    (void)vyre__command_slot_ranges(&rec->commands[i], count_use, &list);
  for (size_t i = 0; i < slots; i++) {
    size_t count = list.ends[i];
    list.ends[i] = (uint32_t)total;
    total += count;
  }
  rec->slot_uses = (vyre__slot_uses){.ends = list.ends, .count = total};
  if (total > UINT32_MAX) return false;
  if (total == 0) return true;
  list.commands = vyre__resize(rec->device->allocator, NULL, 0,
                               total * sizeof *list.commands);
  if (!list.commands) return false;
  rec->slot_uses.commands = list.commands;
  for (; list.command < rec->command_count; list.command++) {
    const vyre__recorded_command *c = &rec->commands[list.command];
    (void)vyre__command_slot_ranges(c, add_use, &list);
  }
  return true;
}

void vyre__slot_uses_free(vyre_recording *rec) {
  vyre_allocator allocator = rec->device->allocator;
  vyre__slot_uses *uses = &rec->slot_uses;
  if (uses->ends)
    vyre__resize(allocator, uses->ends,
                 (rec->slot_count + 1) * sizeof *uses->ends, 0);
  if (uses->commands)
    vyre__resize(allocator, uses->commands,
                 uses->count * sizeof *uses->commands, 0);
  *uses = (vyre__slot_uses){0};
}

/* --- bound memory --------------------------------------------------------- */

bool vyre__slot_spans_create(vyre_recording *rec) {
  vyre_allocator allocator = rec->device->allocator;
  size_t count = rec->slot_count;
  if (count == 0) return true;
  rec->spans = vyre__resize(allocator, NULL, 0, count * sizeof *rec->spans);
  rec->span_order =
      vyre__resize(allocator, NULL, 0, count * sizeof *rec->span_order);
  return rec->spans && rec->span_order;
}

void vyre__slot_spans_free(vyre_recording *rec) {
  vyre_allocator allocator = rec->device->allocator;
  size_t count = rec->slot_count;
  if (rec->spans)
    vyre__resize(allocator, rec->spans, count * sizeof *rec->spans, 0);
  if (rec->span_order)
    vyre__resize(allocator, rec->span_order, count * sizeof *rec->span_order,
                 0);
  rec->spans = NULL;
  rec->span_order = NULL;
}

/* Returns the memory of a slot. Memory that the host can address is in one
 * space, whether a device buffer owns it or not. */
static vyre__slot_span span_of(const vyre_recording *rec, uint32_t slot) {
  const vyre__slot *s = &rec->slots[slot];
  bool is_host = s->memory.host != NULL;
  uint64_t begin = is_host ? (uintptr_t)s->memory.host : s->memory.offset;
  return (vyre__slot_span){.space = is_host ? NULL : s->memory.buffer,
                           .begin = begin,
                           .end = begin + s->bytes,
                           .slot = slot,
                           .is_written = vyre__slot_is_written(s)};
}

static bool has_span(const vyre__slot *slot) {
  return slot->is_used && slot->bytes > 0 &&
         (slot->memory.host || slot->memory.buffer);
}

void vyre__slot_spans_sort(vyre_recording *rec) {
  vyre__sort_item *items = rec->span_order;
  size_t count = 0;
  bool is_one_space = true;
  for (uint32_t i = 0; i < rec->slot_count; i++) {
    if (!has_span(&rec->slots[i])) continue;
    vyre__slot_span span = span_of(rec, i);
    is_one_space = is_one_space && !span.space;
    items[count++] = (vyre__sort_item){span.begin, i};
  }
  vyre__sort(items, count);
  for (size_t i = 0; !is_one_space && i < count; i++) {
    /* the space is the key now, and the order so far breaks ties */
    uint32_t slot = (uint32_t)items[i].tie;
    items[i] = (vyre__sort_item){(uintptr_t)span_of(rec, slot).space,
                                 (uint64_t)i << 32 | slot};
  }
  if (!is_one_space) vyre__sort(items, count);
  for (size_t i = 0; i < count; i++)
    rec->spans[i] = span_of(rec, (uint32_t)items[i].tie);
  rec->span_count = count;
}

/* Ends of the spans that came so far, in one space. */
typedef struct span_ends {
  uint64_t any, written;
} span_ends;

/* Returns true if @p span overlaps an earlier one, and one of both is
 * written. */
static bool conflicts(const vyre__slot_span *span, const span_ends *earlier) {
  return span->begin < (span->is_written ? earlier->any : earlier->written);
}

static void add_span(span_ends *ends, const vyre__slot_span *span) {
  if (span->end > ends->any) ends->any = span->end;
  if (span->is_written && span->end > ends->written) ends->written = span->end;
}

bool vyre__slot_spans_overlap(const vyre_recording *rec) {
  span_ends ends = {0};
  for (size_t i = 0; i < rec->span_count; i++) {
    const vyre__slot_span *span = &rec->spans[i];
    if (i > 0 && span->space != rec->spans[i - 1].space) ends = (span_ends){0};
    if (conflicts(span, &ends)) return true;
    add_span(&ends, span);
  }
  return false;
}

static bool is_before(const vyre__slot_span *a, const vyre__slot_span *b) {
  uintptr_t first = (uintptr_t)a->space, second = (uintptr_t)b->space;
  return first != second ? first < second : a->begin < b->begin;
}

bool vyre__slot_spans_conflict(const vyre_recording *a,
                               const vyre_recording *b) {
  const void *space = NULL;
  span_ends a_ends = {0}, b_ends = {0};
  for (size_t i = 0, k = 0; i < a->span_count || k < b->span_count;) {
    bool is_a = k == b->span_count ||
                (i < a->span_count && is_before(&a->spans[i], &b->spans[k]));
    const vyre__slot_span *span = is_a ? &a->spans[i++] : &b->spans[k++];
    if (span->space != space) a_ends = b_ends = (span_ends){0};
    space = span->space;
    if (conflicts(span, is_a ? &b_ends : &a_ends)) return true;
    add_span(is_a ? &a_ends : &b_ends, span);
  }
  return false;
}
