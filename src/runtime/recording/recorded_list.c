/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Executes recorded commands as command lists. A list covers commands that
 * follow each other: dispatches and copies between device buffers, or a loop
 * over these. It is created when its first command is reached and kept until
 * the recording is freed; the bound memory may change in between. */
#include <string.h>

#include "base/memory.h"
#include "runtime/dispatch/command_list.h"
#include "runtime/recording/recording.h"

struct vyre__recorded_list {
  struct vyre__recorded_list *next, **link; /* link: what points to it */
  size_t first, end;                        /* range of recorded commands */
  size_t launch_count;                      /* dispatches in the range */
  vyre__launch_totals totals;               /* counters of one execution */
  size_t size;                              /* bytes of this object */
  vyre__command_list list;
  vyre__command commands[];
};
typedef struct vyre__recorded_list recorded_list;

/* Returns true if @p c can be in a list. */
static bool fits(const vyre_recording *rec, const vyre__recorded_command *c) {
  return c->kind == VYRE__RECORDED_DISPATCH
             ? vyre__prepared_fits(c->prepared)
             : c->kind == VYRE__RECORDED_COPY && c->source.buffer &&
                   c->target.buffer &&
                   vyre__takes_commands(rec->device, VYRE__COMMAND_COPY);
}

/* Finds the commands that can be in a list that begins at command @p at. A loop
 * is in a list with its complete body. */
static void measure(const vyre_recording *rec, size_t at, recorded_list *out) {
  bool is_loop = rec->commands[at].kind == VYRE__RECORDED_WHILE;
  size_t limit = is_loop ? rec->commands[at].match : rec->command_count;
  size_t max = vyre__command_list_max(rec->device), count = is_loop;
  *out = (recorded_list){.first = at, .end = at + is_loop};
  for (size_t i = at + is_loop; i < limit && count < max; i++) {
    const vyre__recorded_command *c = &rec->commands[i];
    if (c->kind == VYRE__RECORDED_BARRIER) {
      if (is_loop) out->end = i + 1;
      continue;
    }
    if (!fits(rec, c)) break;
    count++;
    out->launch_count += c->kind == VYRE__RECORDED_DISPATCH;
    out->end = i + 1;
  }
  if (is_loop && out->end < limit) out->launch_count = 0;
}

/* Creates a list. Returns NULL without memory; the commands then run one by
 * one. */
static recorded_list *create(vyre_recording *rec, const recorded_list *extent) {
  size_t count = extent->end - extent->first;
  size_t size = sizeof(recorded_list) + count * sizeof(vyre__command);
  recorded_list *created = vyre__alloc_zeroed(rec->device->allocator, size);
  if (!created) return NULL;
  *created = *extent;
  created->size = size;
  created->list.device = rec->device;
  created->list.commands = created->commands;
  created->next = rec->lists;
  created->link = &rec->lists;
  if (created->next) created->next->link = &created->next;
  rec->lists = created;
  return created;
}

static void free_list(vyre_device *device, recorded_list *recorded) {
  *recorded->link = recorded->next;
  if (recorded->next) recorded->next->link = recorded->link;
  if (recorded->list.encoded) device->backend->list_release(&recorded->list);
  vyre__resize(device->allocator, recorded, recorded->size, 0);
}

void vyre__recording_free_lists(vyre_recording *rec) {
  while (rec->lists) free_list(rec->device, rec->lists);
}

static vyre__command command_of(const vyre__recorded_command *c) {
  switch (c->kind) {
    case VYRE__RECORDED_DISPATCH:
      return (vyre__command){.launch = &c->prepared->launch};
    case VYRE__RECORDED_COPY:
      return (vyre__command){.kind = VYRE__COMMAND_COPY,
                             .copy = {.from = c->source.buffer,
                                      .to = c->target.buffer,
                                      .from_offset = c->source.offset,
                                      .to_offset = c->target.offset,
                                      .size = c->size}};
    default:
      return (vyre__command){
          .kind = VYRE__COMMAND_LOOP,
          .loop = {.flag = c->source.buffer, .offset = c->source.offset}};
  }
}

/* Fills in the commands for the memory that is bound now. */
static void fill(const vyre_recording *rec, recorded_list *recorded) {
  size_t count = 0;
  for (size_t i = recorded->first; i < recorded->end; i++) {
    const vyre__recorded_command *c = &rec->commands[i];
    if (c->kind == VYRE__RECORDED_BARRIER) continue;
    recorded->commands[count++] = command_of(c);
  }
  recorded->list.count = count;
  recorded->list.version++;
  recorded->list.is_reusable = false;
  recorded->totals = vyre__command_list_totals(&recorded->list);
}

/* Remembers that no list begins at the commands of @p extent, which has no
 * launch: a list that begins later has none either, unless the maximum length
 * cut the extent. */
static void skip_copies(const vyre_recording *rec,
                        const recorded_list *extent) {
  if (extent->end - extent->first >= vyre__command_list_max(rec->device))
    return;
  for (size_t i = extent->first + 1; i < extent->end; i++) {
    vyre__recorded_command *c = &rec->commands[i];
    if (!c->list) c->list_version = rec->version;
  }
}

/* Returns the list that begins at command @p at, for the memory that is bound
 * now, or NULL. */
static recorded_list *find(vyre_recording *rec, size_t at) {
  vyre__recorded_command *c = &rec->commands[at];
  if (c->list_version == rec->version) return c->list;
  recorded_list extent;
  measure(rec, at, &extent);
  if (c->list && (c->list->end != extent.end ||
                  c->list->launch_count != extent.launch_count)) {
    free_list(rec->device, c->list);
    c->list = NULL;
  }
  c->list_version = rec->version;
  if (extent.launch_count > 0) {
    if (!c->list) c->list = create(rec, &extent);
    if (c->list) fill(rec, c->list);
  } else if (c->kind != VYRE__RECORDED_WHILE) {
    skip_copies(rec, &extent);
  }
  return c->list;
}

/* Prepares the dispatches of a list for another execution. Returns false if
 * one of them cannot be in a list any more. */
static bool reset_launches(const vyre_recording *rec,
                           const recorded_list *recorded) {
  for (size_t i = recorded->first; i < recorded->end; i++) {
    const vyre__recorded_command *c = &rec->commands[i];
    if (c->kind != VYRE__RECORDED_DISPATCH) continue;
    if (!vyre__prepared_fits(c->prepared)) return false;
    if (c->prepared->scratch.first) vyre_arena_reset(&c->prepared->scratch);
  }
  return true;
}

/* Returns the recorded command after the first @p done commands of a list. */
static size_t command_after(const vyre_recording *rec,
                            const recorded_list *recorded, size_t done) {
  size_t at = recorded->first;
  if (done == recorded->list.count) return recorded->end;
  for (;; at++) {
    if (rec->commands[at].kind == VYRE__RECORDED_BARRIER) continue;
    if (done-- == 0) return at;
  }
}

vyre_code vyre__recording_run_list(vyre_recording *rec, size_t *at,
                                   vyre_replay_result *result, bool *is_taken,
                                   vyre_status *st) {
  size_t done = 0, launches = 0;
  recorded_list *recorded = find(rec, *at);
  *is_taken =
      recorded && (recorded->list.is_reusable || reset_launches(rec, recorded));
  if (!*is_taken) return VYRE_OK;
  vyre__command_list *list = &recorded->list;
  vyre_code code =
      list->is_reusable
          ? vyre__command_list_repeat(list, &recorded->totals, &done, st)
          : vyre__command_list_execute(list, &done, st);
  *at = command_after(rec, recorded, done);
  if (done == list->count) launches = recorded->launch_count;
  for (size_t i = 0; done < list->count && i < done; i++) {
    launches += list->commands[i].launch != NULL;
  }
  result->dispatches += launches;
  result->copies += done - launches;
  return code;
}

vyre_code vyre__recording_run_loop(vyre_recording *rec, size_t at,
                                   uint64_t max_iterations,
                                   vyre__command_loop *out, bool *is_taken,
                                   vyre_status *st) {
  recorded_list *recorded = find(rec, at);
  size_t done = 0;
  *is_taken = false;
  *out = (vyre__command_loop){0};
  if (!recorded || !reset_launches(rec, recorded)) return VYRE_OK;
  vyre__command_loop *loop = &recorded->commands[0].loop;
  loop->max_iterations = max_iterations;
  loop->iterations = 0;
  vyre_code code =
      vyre__command_list_loop(&recorded->list, &recorded->totals, &done, st);
  *is_taken = done > 0;
  *out = *loop;
  return code;
}
