/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parts of a recording that the backend runs by itself: dispatches that follow each
 * other, and copies between resident buffers. Made when they are first met, and used
 * until the recording ends; what is bound may change. */
#include "runtime/dispatch/command_list.h"

#include <string.h>

#include "base/memory.h"
#include "runtime/recording/recording.h"

struct vyre__recording_part {
  struct vyre__recording_part *next;
  size_t first, end; /* commands */
  size_t runs;       /* of them */
  /* Of the recording, when: its items were filled in; it was run; it was a loop. */
  uint64_t filled, version, loop_version;
  vyre__launch_totals sums; /* of what is counted; while the piece is steady */
  size_t size;              /* of all of this, with piece and items behind */
  vyre__command_list *piece;
};
typedef struct vyre__recording_part part;

static bool is_device_copy(const vyre__command *c) {
  return c->kind == VYRE__COMMAND_COPY && c->source.buffer && c->target.buffer;
}

/* How far a part that begins there goes. */
static void measure(const vyre_recording *rec, size_t at, part *out) {
  size_t items = 0;
  *out = (part){.first = at, .end = at};
  for (size_t i = at; i < rec->command_count && items < VYRE__MAX_COMMAND_LIST;
       i++) {
    const vyre__command *c = &rec->commands[i];
    if (c->kind == VYRE__COMMAND_BARRIER) continue;
    bool is_run = c->kind == VYRE__COMMAND_DISPATCH;
    if (is_run ? !vyre__prepared_fits(c->prepared) : !is_device_copy(c)) break;
    items++;
    out->runs += is_run;
    out->end = i + 1;
  }
}

static size_t round_up(size_t size) {
  return (size + 63) & ~(size_t)63;
}

/* Without memory there is none, and the commands are run one by one. */
static part *make(vyre_recording *rec, const part *like) {
  const vyre_device *device = rec->device;
  size_t items = like->end - like->first;
  size_t at_piece = round_up(sizeof(part));
  size_t at_items = at_piece + round_up(device->backend->command_list_size);
  size_t size = at_items + items * sizeof(vyre__command_list_item);
  unsigned char *block = vyre__resize(device->allocator, NULL, 0, size);
  if (!block) return NULL;
  memset(block, 0, size);
  part *made = (part *)(void *)block;
  *made = *like;
  made->size = size;
  made->piece = (vyre__command_list *)(void *)(block + at_piece);
  made->piece->device = rec->device;
  made->piece->items = (vyre__command_list_item *)(void *)(block + at_items);
  made->next = rec->parts;
  rec->parts = made;
  return made;
}

static void free_part(vyre_device *device, part *p) {
  device->backend->command_list_deinit(p->piece);
  vyre__resize(device->allocator, p, p->size, 0);
}

void vyre__recording_drop_parts(vyre_recording *rec) {
  while (rec->parts) {
    part *p = rec->parts;
    rec->parts = p->next;
    free_part(rec->device, p);
  }
}

/* The part that begins there; one that went another way before is made anew. */
static part *find(vyre_recording *rec, size_t at) {
  part now, **link = &rec->parts;
  while (*link && (*link)->first != at) link = &(*link)->next;
  if (*link && (*link)->filled == rec->version) return *link;
  measure(rec, at, &now);
  if (*link && ((*link)->end != now.end || (*link)->runs != now.runs)) {
    part *other = *link;
    *link = other->next;
    free_part(rec->device, other);
    return now.runs > 0 ? make(rec, &now) : NULL;
  }
  if (*link) return *link;
  return now.runs > 0 ? make(rec, &now) : NULL;
}

/* What is bound now. */
static void fill(const vyre_recording *rec, part *p) {
  vyre__command_list_item *items =
      (vyre__command_list_item *)(uintptr_t)p->piece->items;
  size_t count = 0;
  for (size_t i = p->first; i < p->end; i++) {
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
  p->piece->count = count;
}

/* Its runs, if all can be in it: gives how many, or none. */
static size_t gather(const vyre_recording *rec, const part *p,
                     vyre__prepared *runs[VYRE__MAX_COMMAND_LIST]) {
  size_t count = 0;
  for (size_t i = p->first; i < p->end; i++) {
    const vyre__command *c = &rec->commands[i];
    if (c->kind != VYRE__COMMAND_DISPATCH) continue;
    if (!vyre__prepared_fits(c->prepared)) return 0; /* not any more */
    if (c->prepared->scratch.first) vyre_arena_reset(&c->prepared->scratch);
    runs[count++] = c->prepared;
  }
  return count;
}

/* What was bound since @p version is told to the backend. */
static void bring_up(const vyre_recording *rec, part *p, uint64_t *version) {
  if (p->filled != rec->version) fill(rec, p);
  p->filled = rec->version;
  p->piece->is_changed = *version != rec->version;
  *version = rec->version;
}

static void mistrust(part *p) {
  p->filled = p->version = p->loop_version = 0;
}

static vyre_code run(vyre_recording *rec, part *p, bool *is_taken, size_t *done,
                     vyre_status *st) {
  vyre__prepared *runs[VYRE__MAX_COMMAND_LIST];
  size_t count = gather(rec, p, runs);
  *is_taken = count > 0;
  if (count == 0) return VYRE_OK;
  bring_up(rec, p, &p->version);
  vyre_code code =
      vyre__command_list_run_encoded(runs, count, p->piece, done, st);
  if (p->piece->is_reusable) p->sums = vyre__command_list_totals(runs, count);
  return code;
}

vyre_code vyre__recording_run_part(vyre_recording *rec, size_t at,
                                   vyre__part_result *out, vyre_status *st) {
  size_t done = 0;
  vyre_code code;
  *out = (vyre__part_result){.end = at};
  part *p = find(rec, at);
  if (!p) return VYRE_OK;
  if (p->version == rec->version && p->piece->is_reusable) {
    out->is_taken = true;
    p->piece->is_changed = false;
    code = vyre__command_list_run_again(p->piece, &p->sums, &done, st);
  } else {
    code = run(rec, p, &out->is_taken, &done, st);
    if (!out->is_taken) return VYRE_OK;
  }
  out->end = p->end;
  if (code == VYRE_OK && done == p->piece->count) {
    out->dispatches = p->runs;
    out->copies = done - p->runs;
    return VYRE_OK;
  }
  for (size_t i = 0; i < done; i++) {
    bool is_run = p->piece->items[i].launch != NULL;
    out->dispatches += is_run;
    out->copies += !is_run;
  }
  for (size_t i = p->first; code != VYRE_OK && i < p->end; i++) {
    if (rec->commands[i].kind == VYRE__COMMAND_BARRIER) continue;
    if (done-- > 0) continue;
    out->end = i; /* the one that failed */
    break;
  }
  if (code != VYRE_OK) mistrust(p); /* looked at again the next time */
  return code;
}

/* Whether the part is all that the loop does. */
static bool is_body(const vyre_recording *rec, size_t at, const part *p) {
  size_t end = p->end;
  while (end < rec->commands[at].match &&
         rec->commands[end].kind == VYRE__COMMAND_BARRIER) {
    end++;
  }
  return end == rec->commands[at].match;
}

/* Where the first command of it that is one stands. */
static size_t first_of(const vyre_recording *rec, size_t at) {
  while (rec->commands[++at].kind == VYRE__COMMAND_BARRIER) {
  }
  return at;
}

vyre_code vyre__recording_run_loop(vyre_recording *rec, size_t at,
                                   vyre__command_list_loop *loop,
                                   vyre_status *st) {
  vyre__prepared *runs[VYRE__MAX_COMMAND_LIST];
  part *p = find(rec, first_of(rec, at));
  size_t count = p && is_body(rec, at, p) ? gather(rec, p, runs) : 0;
  if (count == 0) return VYRE_OK;
  bring_up(rec, p, &p->loop_version);
  vyre_code code = vyre__command_list_run_loop(runs, count, p->piece, loop, st);
  if (code != VYRE_OK) mistrust(p);
  return code;
}
