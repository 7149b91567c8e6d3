/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs dispatches and copies of a recording as command lists. A list covers
 * commands that follow each other: dispatches, and copies between device
 * buffers. It is created when its first command is reached and kept until the
 * recording is freed; the bound memory may change in between. */
#include "runtime/dispatch/command_list.h"

#include <string.h>

#include "base/memory.h"
#include "hal/backend.h"
#include "runtime/dispatch/prepared.h"
#include "runtime/recording/recording.h"

struct vyre__recorded_list {
  struct vyre__recorded_list *next;
  size_t first, end;     /* range of commands */
  size_t dispatch_count; /* dispatches in the range */
  /* Versions of the recording when the items were filled in, when the list
   * ran, and when it ran as a loop body. */
  uint64_t filled_version, run_version, loop_version;
  /* counters of one run; valid while the list is reusable */
  vyre__launch_totals totals;
  /* of this struct, the list and its items, in one block */
  size_t size;
  vyre__command_list *list;
};
typedef struct vyre__recorded_list recorded_list;

static bool is_device_copy(const vyre__command *c) {
  return c->kind == VYRE__COMMAND_COPY && c->source.buffer && c->target.buffer;
}

/* Finds the commands that can be in a list that begins at command @p at. */
static void measure(const vyre_recording *rec, size_t at, recorded_list *out) {
  size_t items = 0;
  *out = (recorded_list){.first = at, .end = at};
  for (size_t i = at; i < rec->command_count && items < VYRE__MAX_COMMAND_LIST;
       i++) {
    const vyre__command *c = &rec->commands[i];
    if (c->kind == VYRE__COMMAND_BARRIER) continue;
    bool is_dispatch = c->kind == VYRE__COMMAND_DISPATCH;
    if (is_dispatch ? !vyre__prepared_fits(c->prepared) : !is_device_copy(c))
      break;
    items++;
    out->dispatch_count += is_dispatch;
    out->end = i + 1;
  }
}

static size_t round_up(size_t size) {
  return (size + 63) & ~(size_t)63;
}

/* Creates a command list. Returns NULL without memory; the commands then run
 * one by one. */
static recorded_list *create(vyre_recording *rec, const recorded_list *extent) {
  const vyre_device *device = rec->device;
  size_t items = extent->end - extent->first;
  size_t list_offset = round_up(sizeof(recorded_list));
  size_t items_offset =
      list_offset + round_up(device->backend->command_list_size);
  size_t size = items_offset + items * sizeof(vyre__command_list_item);
  unsigned char *block = vyre__resize(device->allocator, NULL, 0, size);
  if (!block) return NULL;
  memset(block, 0, size);
  recorded_list *created = (recorded_list *)(void *)block;
  *created = *extent;
  created->size = size;
  created->list = (vyre__command_list *)(void *)(block + list_offset);
  created->list->device = rec->device;
  created->list->items =
      (vyre__command_list_item *)(void *)(block + items_offset);
  created->next = rec->lists;
  rec->lists = created;
  return created;
}

static void free_list(vyre_device *device, recorded_list *recorded) {
  device->backend->command_list_deinit(recorded->list);
  vyre__resize(device->allocator, recorded, recorded->size, 0);
}

void vyre__recording_free_lists(vyre_recording *rec) {
  while (rec->lists) {
    recorded_list *recorded = rec->lists;
    rec->lists = recorded->next;
    free_list(rec->device, recorded);
  }
}

/* Returns the list that begins at command @p at, or NULL. Creates it again if
 * the bound memory changed which commands fit. */
static recorded_list *find(vyre_recording *rec, size_t at) {
  recorded_list extent, **link = &rec->lists;
  while (*link && (*link)->first != at) link = &(*link)->next;
  if (*link && (*link)->filled_version == rec->version) return *link;
  measure(rec, at, &extent);
  if (*link && ((*link)->end != extent.end ||
                (*link)->dispatch_count != extent.dispatch_count)) {
    recorded_list *other = *link;
    *link = other->next;
    free_list(rec->device, other);
    return extent.dispatch_count > 0 ? create(rec, &extent) : NULL;
  }
  if (*link) return *link;
  return extent.dispatch_count > 0 ? create(rec, &extent) : NULL;
}

/* Fills in the items for the memory that is bound now. */
static void fill(const vyre_recording *rec, recorded_list *recorded) {
  vyre__command_list_item *items =
      (vyre__command_list_item *)(uintptr_t)recorded->list->items;
  size_t count = 0;
  for (size_t i = recorded->first; i < recorded->end; i++) {
    const vyre__command *c = &rec->commands[i];
    if (c->kind == VYRE__COMMAND_BARRIER) continue;
    items[count++] =
        c->kind == VYRE__COMMAND_DISPATCH
            ? (vyre__command_list_item){.launch = &c->prepared->launch}
            : (vyre__command_list_item){.from = c->source.buffer,
                                        .to = c->target.buffer,
                                        .from_offset = c->source.offset,
                                        .to_offset = c->target.offset,
                                        .size = c->size};
  }
  recorded->list->count = count;
}

/* Collects the prepared dispatches of a list. Returns their number, or 0 if
 * one of them cannot be in a list any more. */
static size_t gather(const vyre_recording *rec, const recorded_list *recorded,
                     vyre__prepared *prepared[VYRE__MAX_COMMAND_LIST]) {
  size_t count = 0;
  for (size_t i = recorded->first; i < recorded->end; i++) {
    const vyre__command *c = &rec->commands[i];
    if (c->kind != VYRE__COMMAND_DISPATCH) continue;
    if (!vyre__prepared_fits(c->prepared)) return 0;
    if (c->prepared->scratch.first) vyre_arena_reset(&c->prepared->scratch);
    prepared[count++] = c->prepared;
  }
  return count;
}

/* Updates the items if slots were bound since, and tells the backend whether
 * they changed since @p run_version. */
static void refresh(const vyre_recording *rec, recorded_list *recorded,
                    uint64_t *run_version) {
  if (recorded->filled_version != rec->version) fill(rec, recorded);
  recorded->filled_version = rec->version;
  recorded->list->is_changed = *run_version != rec->version;
  *run_version = rec->version;
}

/* Makes the next replay fill in the items and encode the list again. */
static void reset_versions(recorded_list *recorded) {
  recorded->filled_version = recorded->run_version = recorded->loop_version = 0;
}

static vyre_code run_once(vyre_recording *rec, recorded_list *recorded,
                          bool *is_taken, size_t *done, vyre_status *st) {
  vyre__prepared *prepared[VYRE__MAX_COMMAND_LIST];
  size_t count = gather(rec, recorded, prepared);
  *is_taken = count > 0;
  if (count == 0) return VYRE_OK;
  refresh(rec, recorded, &recorded->run_version);
  vyre_code code =
      vyre__command_list_run_encoded(prepared, count, recorded->list, done, st);
  if (recorded->list->is_reusable)
    recorded->totals = vyre__command_list_totals(prepared, count);
  return code;
}

vyre_code vyre__recording_run_list(vyre_recording *rec, size_t at,
                                   vyre__recorded_list_result *out,
                                   vyre_status *st) {
  size_t done = 0;
  vyre_code code;
  *out = (vyre__recorded_list_result){.end = at};
  recorded_list *recorded = find(rec, at);
  if (!recorded) return VYRE_OK;
  if (recorded->run_version == rec->version && recorded->list->is_reusable) {
    out->is_taken = true;
    recorded->list->is_changed = false;
    code = vyre__command_list_run_again(recorded->list, &recorded->totals,
                                        &done, st);
  } else {
    code = run_once(rec, recorded, &out->is_taken, &done, st);
    if (!out->is_taken) return VYRE_OK;
  }
  out->end = recorded->end;
  if (code == VYRE_OK && done == recorded->list->count) {
    out->dispatches = recorded->dispatch_count;
    out->copies = done - recorded->dispatch_count;
    return VYRE_OK;
  }
  for (size_t i = 0; i < done; i++) {
    bool is_dispatch = recorded->list->items[i].launch != NULL;
    out->dispatches += is_dispatch;
    out->copies += !is_dispatch;
  }
  for (size_t i = recorded->first; code != VYRE_OK && i < recorded->end; i++) {
    if (rec->commands[i].kind == VYRE__COMMAND_BARRIER) continue;
    if (done-- > 0) continue;
    out->end = i; /* the command that failed */
    break;
  }
  if (code != VYRE_OK) reset_versions(recorded);
  return code;
}

/* Returns true if the list is the complete body of the loop at @p at. */
static bool is_body(const vyre_recording *rec, size_t at,
                    const recorded_list *recorded) {
  size_t end = recorded->end;
  while (end < rec->commands[at].match &&
         rec->commands[end].kind == VYRE__COMMAND_BARRIER) {
    end++;
  }
  return end == rec->commands[at].match;
}

/* Returns the first command of the loop body that is not a barrier. */
static size_t first_command(const vyre_recording *rec, size_t at) {
  while (rec->commands[++at].kind == VYRE__COMMAND_BARRIER) {
  }
  return at;
}

vyre_code vyre__recording_run_loop(vyre_recording *rec, size_t at,
                                   vyre__command_list_loop *loop,
                                   vyre_status *st) {
  vyre__prepared *prepared[VYRE__MAX_COMMAND_LIST];
  recorded_list *recorded = find(rec, first_command(rec, at));
  size_t count = recorded && is_body(rec, at, recorded)
                     ? gather(rec, recorded, prepared)
                     : 0;
  if (count == 0) return VYRE_OK;
  refresh(rec, recorded, &recorded->loop_version);
  vyre_code code =
      vyre__command_list_run_loop(prepared, count, recorded->list, loop, st);
  if (code != VYRE_OK) reset_versions(recorded);
  return code;
}
