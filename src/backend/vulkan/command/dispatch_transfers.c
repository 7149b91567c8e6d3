/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Moves bytes between the host and encoded dispatches, and reads their results.
 */
#include <string.h>

#include "backend/vulkan/command/encoded_dispatch.h"
#include "backend/vulkan/memory/staging.h"
#include "backend/vulkan/pipeline.h"
#include "backend/vulkan/plan.h"
#include "base/status.h"

static vk_device *device_of(const vk_dispatch *dispatch) {
  return (vk_device *)dispatch->pipeline->base.device;
}

vyre_code vk_dispatch_upload(const vk_dispatch *dispatch, uint64_t at,
                             const void *from, uint64_t size, vyre_status *st) {
  vk_device *device = device_of(dispatch);
  if (!from)
    return vk_fill(device, &dispatch->memory, at, (size + 3) / 4 * 4, st);
  return vk_upload(device, &dispatch->memory, at, from, size, st);
}

vyre_code vk_dispatch_download(const vk_dispatch *dispatch, uint64_t at,
                               void *to, uint64_t size, vyre_status *st) {
  return vk_download(device_of(dispatch), &dispatch->memory, at, to, size, st);
}

vyre_code vk_dispatch_write_inputs(const vk_dispatch *dispatch,
                                   const vyre__launch *launch,
                                   vyre_status *st) {
  if (dispatch->has_status) memset(dispatch->host + dispatch->status_at, 0, 4);
  for (uint32_t i = 0; i < dispatch->uniform_count; i++) {
    const vk_block_uniform *v = &dispatch->uniforms[i];
    unsigned char *to = dispatch->host + v->at;
    const unsigned char *from = launch->views[v->buffer].data;
    /* Every block gets the same bytes: the caller's memory is read once. */
    for (uint32_t n = 0; !v->device_buffer && n < dispatch->tile_count; n++) {
      memcpy(to, from, (size_t)v->size);
      from = dispatch->host + v->at;
      to += dispatch->block_stride;
    }
  }
  for (uint32_t i = 0; i < dispatch->staged_count; i++) {
    const vk_staged_view *s = &dispatch->staged[i];
    const vyre__view *view = &launch->views[s->buffer];
    if (s->readback != VYRE_NO_INDEX) continue;
    if (s->is_large) {
      const void *from = view->begins_zero ? NULL : view->data;
      VYRE_TRY(vk_dispatch_upload(dispatch, s->at, from, s->size, st));
    } else if (view->begins_zero) {
      memset(dispatch->host + s->at, 0, (size_t)s->size);
    } else {
      memcpy(dispatch->host + s->at, view->data, (size_t)s->size);
    }
  }
  return VYRE_OK;
}

/* Zeroes outputs that the kernel does not write. */
static void clear_unwritten_outputs(const vk_dispatch *dispatch,
                                    const vyre__launch *launch) {
  const vk_plan *plan = &dispatch->pipeline->plan;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    if (!plan->buffers[i].is_bound) continue;
    const vyre__view *view = &launch->views[i];
    if (!view->begins_zero || view->buffer) continue;
    const vyre__spirv_descriptor *d = vk_plan_descriptor(plan, i);
    if (d && d->is_written) continue;
    memset(view->data, 0, (size_t)view->length * plan->buffers[i].unit);
  }
}

vyre_code vk_dispatch_read_outputs(const vk_dispatch *dispatch,
                                   const vyre__launch *launch,
                                   vyre_status *st) {
  for (uint32_t i = 0; i < dispatch->staged_count; i++) {
    const vk_staged_view *s = &dispatch->staged[i];
    unsigned char *data = vk_staged_target(s, launch);
    if (!s->is_written) continue;
    if (s->is_large) {
      VYRE_TRY(vk_dispatch_download(dispatch, s->at, data, s->size, st));
    } else {
      memcpy(data, dispatch->host + s->at, (size_t)s->size);
    }
  }
  for (uint32_t i = 0; i < launch->readback_count; i++) {
    const vyre__readback *r = &launch->readbacks[i];
    const vyre__view *view = &launch->views[r->buffer];
    if (vk_reads_directly(dispatch, view))
      memcpy(r->to, view->data, (size_t)r->size);
  }
  if (dispatch->has_unwritten_output) clear_unwritten_outputs(dispatch, launch);
  return VYRE_OK;
}

vyre__spirv_end vk_dispatch_end_status(const vk_dispatch *dispatch) {
  uint32_t word;
  if (!dispatch->has_status) return VYRE__SPIRV_ENDED;
  memcpy(&word, dispatch->host + dispatch->status_at, 4);
  return (vyre__spirv_end)word;
}

uint64_t vk_dispatch_device_ns(const vk_dispatch *dispatch) {
  const vk_device *device = device_of(dispatch);
  double period = device->physical->properties.limits.timestampPeriod;
  uint64_t ticks[2];
  if (!dispatch->queries ||
      device->api.GetQueryPoolResults(device->handle, dispatch->queries, 0, 2,
                                      sizeof ticks, ticks, sizeof ticks[0],
                                      VK_QUERY_RESULT_64_BIT) != VK_SUCCESS) {
    return 0;
  }
  uint64_t mask = device->timestamp_bits < 64
                      ? (UINT64_C(1) << device->timestamp_bits) - 1
                      : UINT64_MAX;
  return (uint64_t)((double)((ticks[1] - ticks[0]) & mask) * period);
}
