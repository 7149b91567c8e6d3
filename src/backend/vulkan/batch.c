/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Launches that follow each other, as jobs of one submission. One that needs what
 * another wrote to resident memory has a barrier before it; what it needs of bytes of
 * the host has to be there first, so that a submission ends before it. */
#include <string.h>

#include "backend/vulkan/vulkan.h"
#include "base/memory.h"
#include "base/status.h"
#include "driver/stretch.h"

/* What was done to a resident buffer since barrier number `since`; ranges are as wide
 * as all that was, which at worst makes a barrier too many. */
typedef struct touched {
  const vyre__buffer *buffer;
  uint32_t since;
  uint64_t read_from, read_to, written_from, written_to;
} touched;

typedef struct span {
  const unsigned char *begin, *end;
} span;

typedef struct batch {
  vk_device *device;
  vk_job **jobs;
  vyre__launch **launches;
  VkCommandBuffer *commands; /* twice as many: barriers */
  touched *table;            /* `mask` + 1, by buffer */
  span *written;             /* of the host, by those that may meet */
  size_t mask;
  uint32_t count, command_count, barriers;
  uint32_t written_count;
  bool has_status; /* one of them may fail after others have begun */
  uint64_t ns;     /* that all of it is expected to take */
} batch;

/* --- who touches what ------------------------------------------------------------*/

static touched *find(const batch *b, const vyre__buffer *buffer) {
  size_t at = ((uintptr_t)buffer >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 32;
  at &= b->mask;
  while (b->table[at].buffer && b->table[at].buffer != buffer) {
    at = (at + 1) & b->mask;
  }
  return &b->table[at];
}

static bool meets(uint64_t from, uint64_t to, uint64_t begin, uint64_t end) {
  return from < end && begin < to;
}

typedef struct access {
  const vyre__buffer *buffer;
  uint64_t begin, end;
  bool is_written;
} access;

static bool is_written(const vk_plan *plan, const vyre__view *view,
                       uint32_t buffer) {
  if (view->begins_zero) return true;
  for (uint32_t i = 0; i < plan->descriptor_count; i++) {
    const vyre__spirv_descriptor *d = &plan->descriptors[i];
    if (d->what == VYRE__SPIRV_BUFFER && d->buffer == buffer) {
      return d->is_written;
    }
  }
  return false;
}

/* The next resident range of a launch, from buffer *at on. */
static bool next_access(const vyre__launch *launch, uint32_t *at, access *out) {
  const vk_plan *plan = &((const vk_pipeline *)launch->pipeline)->plan;
  for (; *at < plan->buffer_count; ++*at) {
    if (!plan->buffers[*at].is_bound) continue;
    const vyre__view *view = &launch->views[*at];
    if (!view->buffer || view->length == 0) continue;
    *out = (access){
        view->buffer, view->offset,
        view->offset + (uint64_t)view->length * plan->buffers[*at].unit,
        is_written(plan, view, *at)};
    ++*at;
    return true;
  }
  return false;
}

static bool needs_barrier(const batch *b, const vyre__launch *launch) {
  access a;
  for (uint32_t at = 0; next_access(launch, &at, &a);) {
    const touched *t = find(b, a.buffer);
    if (!t->buffer || t->since != b->barriers) continue;
    if (meets(t->written_from, t->written_to, a.begin, a.end) ||
        (a.is_written && meets(t->read_from, t->read_to, a.begin, a.end))) {
      return true;
    }
  }
  return false;
}

static void widen(uint64_t *from, uint64_t *to, const access *a) {
  bool is_none = *from == *to;
  if (is_none || a->begin < *from) *from = a->begin;
  if (is_none || a->end > *to) *to = a->end;
}

static void note(batch *b, const vyre__launch *launch) {
  access a;
  for (uint32_t at = 0; next_access(launch, &at, &a);) {
    touched *t = find(b, a.buffer);
    if (!t->buffer || t->since != b->barriers) {
      *t = (touched){.buffer = a.buffer, .since = b->barriers};
    }
    if (a.is_written) {
      widen(&t->written_from, &t->written_to, &a);
    } else {
      widen(&t->read_from, &t->read_to, &a);
    }
  }
}

/* --- what ends a submission ------------------------------------------------------*/

static bool writes_resident(const vyre__launch *launch) {
  access a;
  for (uint32_t at = 0; next_access(launch, &at, &a);) {
    if (a.is_written) return true;
  }
  return false;
}

/* Whether it binds bytes of the host that one before it writes. */
static bool meets_host(const batch *b, const vyre__launch *launch) {
  const vk_plan *plan = &((const vk_pipeline *)launch->pipeline)->plan;
  if (launch->is_apart || b->written_count == 0) return false;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    if (!plan->buffers[i].is_bound) continue;
    const vyre__view *view = &launch->views[i];
    if (view->buffer || !view->data) continue;
    const unsigned char *end =
        view->data + (size_t)view->length * plan->buffers[i].unit;
    for (uint32_t k = 0; k < b->written_count; k++) {
      if (view->data < b->written[k].end && b->written[k].begin < end) {
        return true;
      }
    }
  }
  return false;
}

static void note_host(batch *b, const vyre__launch *launch) {
  const vk_plan *plan = &((const vk_pipeline *)launch->pipeline)->plan;
  for (uint32_t i = 0; !launch->is_apart && i < plan->buffer_count; i++) {
    if (!plan->buffers[i].is_bound) continue;
    const vyre__view *view = &launch->views[i];
    if (view->buffer || !view->data || !is_written(plan, view, i)) continue;
    b->written[b->written_count++] = (span){
        view->data, view->data + (size_t)view->length * plan->buffers[i].unit};
  }
}

/* Grid loops may ask for uniforms that the host does not see. */
static bool is_simple(const vk_device *device, const vyre__launch *launch) {
  const vk_pipeline *p = (const vk_pipeline *)launch->pipeline;
  return (device->is_in_place || p->plan.host_count == 0) &&
         vk_is_whole(p, launch);
}

static bool may_join(const batch *b, const vyre__launch *launch) {
  if (b->count == 0) return true;
  if (b->has_status && writes_resident(launch)) return false;
  const vk_pipeline *p = (const vk_pipeline *)launch->pipeline;
  return b->ns + vk_expected_ns(p, launch) <= b->device->most_ns &&
         !meets_host(b, launch);
}

/* --- one submission --------------------------------------------------------------*/

static vyre_code join(batch *b, vyre__launch *launch, vyre_status *st) {
  vk_pipeline *p = (vk_pipeline *)launch->pipeline;
  vk_job *job;
  VYRE_TRY(vk_check(p, launch, st));
  VYRE_TRY(vk_job_take(p, launch, 0, &job, st));
  vk_job_fill(job, launch);
  if (needs_barrier(b, launch)) {
    b->commands[b->command_count++] = b->device->barrier;
    b->barriers++;
  }
  note(b, launch);
  note_host(b, launch);
  b->has_status = b->has_status || p->plan.has_fuel;
  b->ns += vk_expected_ns(p, launch);
  b->commands[b->command_count++] = job->commands;
  b->launches[b->count] = launch;
  b->jobs[b->count++] = job;
  return VYRE_OK;
}

/* Runs what was gathered. *done: how many of all ended well. */
static vyre_code flush(batch *b, size_t *done, vyre_status *st) {
  if (b->count == 0) return VYRE_OK;
  vk_device *device = b->device;
  vk_ticket *ticket = &b->jobs[0]->ticket;
  atomic_fetch_add_explicit(&device->counts.barriers, b->barriers,
                            memory_order_relaxed);
  b->commands[b->command_count++] = device->barrier; /* for who comes next */
  vyre_code code = vk_submit(device, b->commands, b->command_count, ticket, st);
  if (code == VYRE_OK) code = vk_wait(device, ticket, st);
  bool is_over = code == VYRE_OK;
  for (uint32_t i = 0; i < b->count; i++) {
    if (code == VYRE_OK) {
      code = vk_job_finish(b->jobs[i], b->launches[i], st);
      *done += code == VYRE_OK;
    }
    if (is_over) {
      vk_job_give(b->jobs[i]);
    } else {
      vk_job_free(b->jobs[i]);
    }
  }
  b->count = b->command_count = b->written_count = 0;
  b->barriers++; /* what was noted is behind */
  b->has_status = false;
  b->ns = 0;
  return code;
}

/* --- all of them -----------------------------------------------------------------*/

static bool make_room(batch *b, const vyre__launch *first) {
  size_t count = 0, views = 0, slots = 16;
  for (const vyre__launch *l = first; l; l = l->next) {
    count++;
    views += ((const vk_pipeline *)l->pipeline)->plan.buffer_count;
  }
  while (slots < 2 * views) slots *= 2;
  vyre_arena *scratch = first->scratch;
  b->jobs = vyre__arena_array(scratch, count, sizeof *b->jobs);
  b->launches = vyre__arena_array(scratch, count, sizeof *b->launches);
  b->commands =
      vyre__arena_array(scratch, 2 * count + 1, sizeof(VkCommandBuffer));
  b->table = vyre__arena_array(scratch, slots, sizeof *b->table);
  b->written = vyre__arena_array(scratch, views, sizeof *b->written);
  if (!b->jobs || !b->launches || !b->commands || !b->table || !b->written) {
    return false;
  }
  memset(b->table, 0, slots * sizeof *b->table);
  b->mask = slots - 1;
  return true;
}

vyre_code vk_run_many(vyre_device *device, vyre__launch *first, size_t *done,
                      vyre_status *st) {
  batch b = {.device = (vk_device *)device};
  vyre_code code = VYRE_OK;
  *done = 0;
  if (!make_room(&b, first)) {
    return vyre__no_memory(st, "vulkan", "launches", 1);
  }
  for (vyre__launch *l = first; l && code == VYRE_OK; l = l->next) {
    bool is_one = is_simple(b.device, l);
    if (!is_one || !may_join(&b, l)) code = flush(&b, done, st);
    if (code != VYRE_OK) break;
    if (is_one) {
      vyre_status inner = {0};
      code = join(&b, l, &inner);
      if (code == VYRE_OK) continue;
      /* Those before it are not its fault. */
      vyre_code before = flush(&b, done, st);
      if (before == VYRE_OK && st) *st = inner;
      return before == VYRE_OK ? code : before;
    }
    code = vk_run(l->pipeline, l, st);
    *done += code == VYRE_OK;
  }
  return code == VYRE_OK ? flush(&b, done, st) : code;
}
