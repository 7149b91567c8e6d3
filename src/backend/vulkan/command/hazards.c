/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds hazards between commands. A device buffer that another command wrote needs a
 * barrier. Host bytes that another command wrote need a new submission, because
 * inputs are copied before submitting. After a command that may fail, none may
 * write device buffers. */
#include "backend/vulkan/command/hazards.h"

#include <string.h>

#include "backend/vulkan/command/launch.h"
#include "backend/vulkan/pipeline.h"
#include "backend/vulkan/plan.h"
#include "base/memory.h"

bool vk_hazards_init(vk_hazards *h, const vyre__command *commands, size_t count,
                     bool is_independent, vyre_arena *arena) {
  size_t size = 16, views = 0;
  for (size_t i = 0; i < count; i++) {
    const vyre__launch *launch = commands[i].launch;
    views +=
        launch ? ((const vk_pipeline *)launch->pipeline)->plan.buffer_count : 2;
  }
  while (size < 2 * views) size *= 2;
  *h = (vk_hazards){.mask = size - 1, .is_independent = is_independent};
  h->table = vyre__arena_array(arena, size, sizeof *h->table);
  h->written = vyre__arena_array(arena, views, sizeof *h->written);
  h->all_written = vyre__arena_array(arena, views, sizeof *h->all_written);
  if (!h->table || !h->written || !h->all_written) return false;
  memset(h->table, 0, size * sizeof *h->table);
  return true;
}

void vk_hazards_add_barrier(vk_hazards *h) {
  h->barriers++;
}

void vk_hazards_reset(vk_hazards *h) {
  h->barriers++;
  h->written_count = 0;
  h->has_status = h->has_unmeasured = false;
  h->expected_ns = 0;
}

/* --- device buffers ------------------------------------------------------- */

static vk_buffer_access *find_entry(const vk_hazards *h,
                                    const vyre__buffer *buffer) {
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
  const vyre__spirv_descriptor *d = vk_plan_descriptor(plan, buffer);
  return view->begins_zero || (d && d->is_written);
}

static bool next_copy_access(const vyre__command *command, uint32_t *at,
                             access *out) {
  if (*at > 1) return false;
  bool is_to = (*at)++ == 1;
  uint64_t begin = is_to ? command->copy.to_offset : command->copy.from_offset;
  *out = (access){is_to ? command->copy.to : command->copy.from, begin,
                  begin + command->copy.size, is_to};
  return true;
}

/* Returns the next access to a device buffer, starting at binding *at. */
static bool next_access(const vyre__command *command, uint32_t *at,
                        access *out) {
  const vyre__launch *launch = command->launch;
  if (!launch) return next_copy_access(command, at, out);
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

bool vk_hazards_need_barrier(const vk_hazards *h,
                             const vyre__command *command) {
  access a;
  for (uint32_t at = 0; next_access(command, &at, &a);) {
    const vk_buffer_access *t = find_entry(h, a.buffer);
    if (!t->buffer || t->since != h->barriers) continue;
    if (overlaps(t->written_from, t->written_to, &a) ||
        (a.is_written && overlaps(t->read_from, t->read_to, &a))) {
      return true;
    }
  }
  return false;
}

static void widen(uint64_t *from, uint64_t *to, const access *a) {
  bool is_empty = *from == *to;
  if (is_empty || a->begin < *from) *from = a->begin;
  if (is_empty || a->end > *to) *to = a->end;
}

static void add_device_accesses(vk_hazards *h, const vyre__command *command) {
  access a;
  for (uint32_t at = 0; next_access(command, &at, &a);) {
    vk_buffer_access *t = find_entry(h, a.buffer);
    if (!t->buffer || t->since != h->barriers) {
      *t = (vk_buffer_access){.buffer = a.buffer, .since = h->barriers};
    }
    if (a.is_written) {
      widen(&t->written_from, &t->written_to, &a);
    } else {
      widen(&t->read_from, &t->read_to, &a);
    }
  }
}

static bool writes_device_buffer(const vyre__command *command) {
  access a;
  for (uint32_t at = 0; next_access(command, &at, &a);) {
    if (a.is_written) return true;
  }
  return false;
}

/* --- host memory ---------------------------------------------------------- */

/* Returns the host range that buffer @p i is bound to; false if there is
 * none. */
static bool get_host_range(const vyre__launch *launch, uint32_t i,
                           vk_host_range *out) {
  const vk_plan *plan = &((const vk_pipeline *)launch->pipeline)->plan;
  if (!plan->buffers[i].is_bound) return false;
  const vyre__view *view = &launch->views[i];
  if (view->buffer || !view->data) return false;
  *out = (vk_host_range){
      view->data, view->data + (size_t)view->length * plan->buffers[i].unit};
  return true;
}

static bool overlaps_any(const vk_host_range *list, uint32_t count,
                         const vk_host_range *range) {
  for (uint32_t i = 0; i < count; i++) {
    if (range->begin < list[i].end && list[i].begin < range->end) return true;
  }
  return false;
}

bool vk_launch_binds(const vyre__launch *launch, const unsigned char *begin,
                     uint64_t size) {
  const vk_plan *plan = &((const vk_pipeline *)launch->pipeline)->plan;
  const vk_host_range written = {begin, begin + size};
  vk_host_range range;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    if (get_host_range(launch, i, &range) && overlaps_any(&written, 1, &range))
      return true;
  }
  return false;
}

static bool overlaps_host(const vk_hazards *h, const vyre__launch *launch) {
  const vk_plan *plan = &((const vk_pipeline *)launch->pipeline)->plan;
  vk_host_range range;
  if (h->is_independent || h->written_count == 0) return false;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    if (!get_host_range(launch, i, &range)) continue;
    if (overlaps_any(h->written, h->written_count, &range)) return true;
  }
  return false;
}

bool vk_hazards_change_uniforms(const vk_hazards *h,
                                const vyre__launch *launch) {
  const vk_pipeline *p = (const vk_pipeline *)launch->pipeline;
  vk_host_range range;
  if (!p->has_encoded_uniforms || h->is_independent ||
      h->all_written_count == 0)
    return false;
  for (uint32_t i = 0; i < p->plan.buffer_count; i++) {
    if (!(p->uniform_uses[i] & VK_UNIFORM_ENCODED) ||
        !get_host_range(launch, i, &range))
      continue;
    if (overlaps_any(h->all_written, h->all_written_count, &range)) return true;
  }
  return false;
}

static void add_host_write(vk_hazards *h, vk_host_range range) {
  h->written[h->written_count++] = range;
  h->all_written[h->all_written_count++] = range;
}

static void add_host_writes(vk_hazards *h, const vyre__launch *launch) {
  const vk_plan *plan = &((const vk_pipeline *)launch->pipeline)->plan;
  vk_host_range range;
  for (uint32_t i = 0; !h->is_independent && i < plan->buffer_count; i++) {
    if (!get_host_range(launch, i, &range) ||
        !is_written(plan, &launch->views[i], i)) {
      continue;
    }
    add_host_write(h, range);
  }
  for (uint32_t i = 0; !h->is_independent && i < launch->readback_count; i++) {
    const vyre__readback *r = &launch->readbacks[i];
    add_host_write(h, (vk_host_range){r->to, r->to + r->size});
  }
}

/* --- commands ------------------------------------------------------------- */

/* Returns true if the commands depend on bytes in device buffers. An earlier
 * command may write these. */
static bool encodes_device_uniforms(const vk_pipeline *p,
                                    const vyre__launch *launch) {
  for (uint32_t i = 0; p->has_encoded_uniforms && i < p->plan.buffer_count;
       i++) {
    if (p->uniform_uses[i] & VK_UNIFORM_ENCODED && launch->views[i].buffer)
      return true;
  }
  return false;
}

bool vk_launch_is_encodable(const vyre__launch *launch) {
  const vk_pipeline *p = (const vk_pipeline *)launch->pipeline;
  return !encodes_device_uniforms(p, launch) &&
         vk_launch_fits_submission(p, launch);
}

static bool exceeds_submission(const vk_hazards *h,
                               const vyre__launch *launch) {
  const vk_pipeline *p = (const vk_pipeline *)launch->pipeline;
  const vk_device *device = (const vk_device *)p->base.device;
  return h->expected_ns + vk_launch_expected_ns(p, launch) >
         device->max_submit_ns;
}

bool vk_hazards_can_join(const vk_hazards *h, const vyre__command *command,
                         bool is_first) {
  if (is_first) return true;
  if (h->has_status && writes_device_buffer(command)) return false;
  if (!command->launch) return true;
  return !exceeds_submission(h, command->launch) &&
         !overlaps_host(h, command->launch);
}

bool vk_hazards_is_estimate(const vk_hazards *h, const vyre__command *command) {
  return command->launch && exceeds_submission(h, command->launch) &&
         (h->has_unmeasured || vk_launch_is_unmeasured(command->launch));
}

/* Returns true if the kernel has a status word, for loops that may be ended. */
static bool may_fail(const vk_plan *plan) {
  for (uint32_t i = 0; i < plan->descriptor_count; i++) {
    if (plan->descriptors[i].what == VYRE__SPIRV_STATUS) return true;
  }
  return false;
}

void vk_hazards_add(vk_hazards *h, const vyre__command *command) {
  add_device_accesses(h, command);
  if (!command->launch) return;
  const vk_pipeline *p = (const vk_pipeline *)command->launch->pipeline;
  add_host_writes(h, command->launch);
  h->has_status = h->has_status || may_fail(&p->plan);
  h->has_unmeasured =
      h->has_unmeasured || vk_launch_is_unmeasured(command->launch);
  h->expected_ns += vk_launch_expected_ns(p, command->launch);
}
