/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Encodings: builds the transfers of host bytes, and executes them around the
 * submissions of a command list. */
#include "backend/vulkan/command/encoding.h"

#include <string.h>

#include "backend/vulkan/command/submit.h"
#include "base/memory.h"
#include "base/status.h"

void vk_encoding_clear(vk_device *device, vk_encoding *encoding) {
  if (encoding->last_used == 0) return;
  for (uint32_t i = 0; i < encoding->command_count; i++) {
    if (encoding->dispatches[i]) vk_dispatch_free(encoding->dispatches[i]);
  }
  device->api.DestroyCommandPool(device->handle, encoding->pool, NULL);
  vk_submission_deinit(device, &encoding->submission);
  vyre_arena_deinit(&encoding->arena);
  atomic_fetch_sub_explicit(&device->list_bytes, encoding->bytes,
                            memory_order_relaxed);
  *encoding = (vk_encoding){0};
}

bool vk_encoding_alloc_transfers(vk_encoding *encoding) {
  size_t in = 0, out = 0, checked = 0;
  for (uint32_t i = 0; i < encoding->command_count; i++) {
    const vk_dispatch *dispatch = encoding->dispatches[i];
    if (!dispatch) continue;
    in += dispatch->staged_count +
          (size_t)dispatch->uniform_count * dispatch->tile_count + 1;
    out += dispatch->staged_count;
    checked++;
  }
  encoding->in = vyre__arena_array(&encoding->arena, in, sizeof *encoding->in);
  encoding->out =
      vyre__arena_array(&encoding->arena, out, sizeof *encoding->out);
  encoding->checked =
      vyre__arena_array(&encoding->arena, checked, sizeof(vk_dispatch *));
  return encoding->in && encoding->out && encoding->checked;
}

/* Caches the bytes of a small input that kernels only read. The caller's memory
 * is read once, because it may change. */
static void cache_transfer(vk_transfer *m) {
  m->is_cached = m->from && m->to && m->size <= sizeof m->last;
  if (!m->is_cached) return;
  memcpy(m->last, m->from, (size_t)m->size);
  memcpy(m->to, m->last, (size_t)m->size);
}

static void add_transfers(vk_encoding *encoding, vk_dispatch *dispatch,
                          const vyre__launch *launch) {
  for (uint32_t i = 0; i < dispatch->staged_count; i++) {
    const vk_staged_view *s = &dispatch->staged[i];
    const vyre__view *view = &launch->views[s->buffer];
    const vk_dispatch *unmapped = s->is_large ? dispatch : NULL;
    unsigned char *mapped = s->is_large ? NULL : dispatch->host + s->at;
    if (s->readback == VYRE_NO_INDEX) {
      vk_transfer *m = &encoding->in[encoding->in_count++];
      *m = (vk_transfer){.to = mapped,
                         .from = view->begins_zero ? NULL : view->data,
                         .size = s->size,
                         .dispatch = unmapped,
                         .at = s->at};
      if (!s->is_written) cache_transfer(m);
    }
    if (!s->is_written) continue;
    encoding->out[encoding->out_count++] =
        (vk_transfer){.to = vk_staged_target(s, launch),
                      .from = mapped,
                      .size = s->size,
                      .dispatch = unmapped,
                      .at = s->at};
  }
  for (uint32_t i = 0; i < dispatch->uniform_count; i++) {
    const vk_block_uniform *v = &dispatch->uniforms[i];
    const unsigned char *from = launch->views[v->buffer].data;
    for (uint32_t n = 0; !v->device_buffer && n < dispatch->tile_count; n++) {
      vk_transfer *m = &encoding->in[encoding->in_count++];
      *m = (vk_transfer){
          .to = dispatch->host + v->at + n * dispatch->block_stride,
          .from = from,
          .size = v->size};
      cache_transfer(m);
      /* All tiles get the same bytes. */
      if (n == 0) from = m->is_cached ? m->last : m->to;
    }
  }
  if (dispatch->has_status) {
    encoding->in[encoding->in_count++] =
        (vk_transfer){.to = dispatch->host + dispatch->status_at, .size = 4};
  }
  if (dispatch->has_status || dispatch->has_unwritten_output) {
    encoding->checked[encoding->checked_count++] = dispatch;
  }
}

void vk_encoding_build_transfers(vk_encoding *encoding,
                                 const vyre__command *commands) {
  encoding->in_count = encoding->out_count = encoding->checked_count = 0;
  for (uint32_t i = 0; i < encoding->segment_count; i++) {
    vk_segment *s = &encoding->segments[i];
    s->in_first = encoding->in_count;
    s->out_first = encoding->out_count;
    s->checked_first = encoding->checked_count;
    for (uint32_t k = s->first; k < s->last; k++) {
      if (!encoding->dispatches[k]) continue;
      add_transfers(encoding, encoding->dispatches[k], commands[k].launch);
    }
    s->in_last = encoding->in_count;
    s->out_last = encoding->out_count;
    s->checked_last = encoding->checked_count;
  }
}

vyre_code vk_encoding_write_inputs(const vk_encoding *encoding,
                                   const vk_segment *s, vyre_status *st) {
  for (uint32_t i = s->in_first; i < s->in_last; i++) {
    vk_transfer *m = &encoding->in[i];
    size_t size = (size_t)m->size;
    if (m->is_cached) {
      if (memcmp(m->last, m->from, size) == 0) continue;
      memcpy(m->last, m->from, size);
      memcpy(m->to, m->last, size);
      continue;
    }
    if (m->dispatch) {
      VYRE_TRY(vk_dispatch_upload(m->dispatch, m->at, m->from, m->size, st));
    } else if (m->from) {
      memcpy(m->to, m->from, size);
    } else {
      memset(m->to, 0, size);
    }
  }
  return VYRE_OK;
}

vyre_code vk_encoding_read_outputs(const vk_encoding *encoding,
                                   const vk_segment *s, vyre_status *st) {
  for (uint32_t i = s->out_first; i < s->out_last; i++) {
    const vk_transfer *m = &encoding->out[i];
    if (m->dispatch) {
      VYRE_TRY(vk_dispatch_download(m->dispatch, m->at, m->to, m->size, st));
    } else {
      memcpy(m->to, m->from, (size_t)m->size);
    }
  }
  return VYRE_OK;
}
