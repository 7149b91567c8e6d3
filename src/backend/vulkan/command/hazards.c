/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Who needs what another wrote. Resident buffers: a barrier is before it. Bytes of the
 * host: they are copied to a job before it is submitted, so that a submission ends
 * first. And where a launch may fail, what follows must not have written. */
#include <string.h>

#include "backend/vulkan/vulkan.h"
#include "base/memory.h"

bool vk_hazards_init(vk_hazards *h, size_t views, vyre_arena *arena) {
  size_t slots = 16;
  while (slots < 2 * views) slots *= 2;
  *h = (vk_hazards){.mask = slots - 1};
  h->table = vyre__arena_array(arena, slots, sizeof *h->table);
  h->written = vyre__arena_array(arena, views, sizeof *h->written);
  h->ever = vyre__arena_array(arena, views, sizeof *h->ever);
  if (!h->table || !h->written || !h->ever) return false;
  memset(h->table, 0, slots * sizeof *h->table);
  return true;
}

void vk_hazards_pass(vk_hazards *h) {
  h->barriers++;
}

void vk_hazards_reset(vk_hazards *h) {
  h->barriers++;
  h->written_count = 0;
  h->has_status = h->is_guessed = false;
  h->ns = 0;
}

/* --- resident buffers ------------------------------------------------------------*/

static vk_touched *find(const vk_hazards *h, const vyre__buffer *buffer) {
  size_t at = ((uintptr_t)buffer >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 32;
  at &= h->mask;
  while (h->table[at].buffer && h->table[at].buffer != buffer) {
    at = (at + 1) & h->mask;
  }
  return &h->table[at];
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

static bool next_of_copy(const vyre__command_list_item *item, uint32_t *at,
                         access *out) {
  if (*at > 1) return false;
  bool is_to = (*at)++ == 1;
  uint64_t begin = is_to ? item->to_offset : item->from_offset;
  *out =
      (access){is_to ? item->to : item->from, begin, begin + item->size, is_to};
  return true;
}

/* The next resident range, from number *at on. */
static bool next_access(const vyre__command_list_item *item, uint32_t *at,
                        access *out) {
  const vyre__launch *launch = item->launch;
  if (!launch) return next_of_copy(item, at, out);
  const vk_plan *plan = &((const vk_pipeline *)launch->pipeline)->plan;
  for (; *at < plan->buffer_count; ++*at) {
    if (!plan->buffers[*at].is_bound) continue;
    const vyre__view *view = &launch->views[*at];
    if (!view->buffer || view->length == 0) continue;
    uint64_t size = (uint64_t)view->length * plan->buffers[*at].unit;
    *out = (access){view->buffer, view->offset, view->offset + size,
                    is_written(plan, view, *at)};
    ++*at;
    return true;
  }
  return false;
}

static bool overlaps(uint64_t from, uint64_t to, const access *a) {
  return from < a->end && a->begin < to;
}

bool vk_hazards_meet(const vk_hazards *h, const vyre__command_list_item *item) {
  access a;
  for (uint32_t at = 0; next_access(item, &at, &a);) {
    const vk_touched *t = find(h, a.buffer);
    if (!t->buffer || t->since != h->barriers) continue;
    if (overlaps(t->written_from, t->written_to, &a) ||
        (a.is_written && overlaps(t->read_from, t->read_to, &a))) {
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

static void note_residents(vk_hazards *h, const vyre__command_list_item *item) {
  access a;
  for (uint32_t at = 0; next_access(item, &at, &a);) {
    vk_touched *t = find(h, a.buffer);
    if (!t->buffer || t->since != h->barriers) {
      *t = (vk_touched){.buffer = a.buffer, .since = h->barriers};
    }
    if (a.is_written) {
      widen(&t->written_from, &t->written_to, &a);
    } else {
      widen(&t->read_from, &t->read_to, &a);
    }
  }
}

static bool writes_resident(const vyre__command_list_item *item) {
  access a;
  for (uint32_t at = 0; next_access(item, &at, &a);) {
    if (a.is_written) return true;
  }
  return false;
}

/* --- the host --------------------------------------------------------------------*/

/* Bytes of the host that buffer @p i is; false: none. */
static bool host_span(const vyre__launch *launch, uint32_t i, vk_span *out) {
  const vk_plan *plan = &((const vk_pipeline *)launch->pipeline)->plan;
  if (!plan->buffers[i].is_bound) return false;
  const vyre__view *view = &launch->views[i];
  if (view->buffer || !view->data) return false;
  *out = (vk_span){view->data,
                   view->data + (size_t)view->length * plan->buffers[i].unit};
  return true;
}

static bool is_among(const vk_span *list, uint32_t count, const vk_span *span) {
  for (uint32_t i = 0; i < count; i++) {
    if (span->begin < list[i].end && list[i].begin < span->end) return true;
  }
  return false;
}

bool vk_binds(const vyre__launch *launch, const unsigned char *begin,
              uint64_t size) {
  const vk_plan *plan = &((const vk_pipeline *)launch->pipeline)->plan;
  const vk_span written = {begin, begin + size};
  vk_span span;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    if (host_span(launch, i, &span) && is_among(&written, 1, &span))
      return true;
  }
  return false;
}

static bool meets_host(const vk_hazards *h, const vyre__launch *launch) {
  const vk_plan *plan = &((const vk_pipeline *)launch->pipeline)->plan;
  vk_span span;
  if (launch->is_independent || h->written_count == 0) return false;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    if (!host_span(launch, i, &span)) continue;
    if (is_among(h->written, h->written_count, &span)) return true;
  }
  return false;
}

bool vk_hazards_spoil(const vk_hazards *h, const vyre__launch *launch) {
  const vk_pipeline *p = (const vk_pipeline *)launch->pipeline;
  vk_span span;
  if (!p->has_values || launch->is_independent || h->ever_count == 0)
    return false;
  for (uint32_t i = 0; i < p->plan.buffer_count; i++) {
    if (!(p->values[i] & VK_BY_VALUE) || !host_span(launch, i, &span)) continue;
    if (is_among(h->ever, h->ever_count, &span)) return true;
  }
  return false;
}

static void note_host(vk_hazards *h, const vyre__launch *launch) {
  const vk_plan *plan = &((const vk_pipeline *)launch->pipeline)->plan;
  vk_span span;
  for (uint32_t i = 0; !launch->is_independent && i < plan->buffer_count; i++) {
    if (!host_span(launch, i, &span) ||
        !is_written(plan, &launch->views[i], i)) {
      continue;
    }
    h->written[h->written_count++] = span;
    h->ever[h->ever_count++] = span;
  }
}

/* --- all of it -------------------------------------------------------------------*/

/* Resident bytes that are part of what is recorded: one before it may write them. */
static bool has_resident_values(const vk_pipeline *p,
                                const vyre__launch *launch) {
  for (uint32_t i = 0; p->has_values && i < p->plan.buffer_count; i++) {
    if (p->values[i] & VK_BY_VALUE && launch->views[i].buffer) return true;
  }
  return false;
}

bool vk_is_simple(const vyre__launch *launch) {
  const vk_pipeline *p = (const vk_pipeline *)launch->pipeline;
  return !has_resident_values(p, launch) && vk_is_whole(p, launch);
}

static bool takes_too_long(const vk_hazards *h, const vyre__launch *launch) {
  const vk_pipeline *p = (const vk_pipeline *)launch->pipeline;
  const vk_device *device = (const vk_device *)p->base.device;
  return h->ns + vk_expected_ns(p, launch) > device->most_ns;
}

bool vk_hazards_admit(const vk_hazards *h, const vyre__command_list_item *item,
                      bool is_first) {
  if (is_first) return true;
  if (h->has_status && writes_resident(item)) return false;
  if (!item->launch) return true;
  return !takes_too_long(h, item->launch) && !meets_host(h, item->launch);
}

bool vk_hazards_guess(const vk_hazards *h,
                      const vyre__command_list_item *item) {
  return item->launch && takes_too_long(h, item->launch) &&
         (h->is_guessed || vk_is_unknown(item->launch));
}

/* A loop of it may be ended. */
static bool may_fail(const vk_plan *plan) {
  for (uint32_t i = 0; i < plan->descriptor_count; i++) {
    if (plan->descriptors[i].what == VYRE__SPIRV_STATUS) return true;
  }
  return false;
}

void vk_hazards_note(vk_hazards *h, const vyre__command_list_item *item) {
  note_residents(h, item);
  if (!item->launch) return;
  const vk_pipeline *p = (const vk_pipeline *)item->launch->pipeline;
  note_host(h, item->launch);
  h->has_status = h->has_status || may_fail(&p->plan);
  h->is_guessed = h->is_guessed || vk_is_unknown(item->launch);
  h->ns += vk_expected_ns(p, item->launch);
}
