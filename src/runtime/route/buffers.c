/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Buffers of a router. Each has a copy on every device that needed it so far,
 * and a mask of the copies with the newest contents. A dispatch moves missing
 * contents through host memory to the device that runs it. */
#include <string.h>

#include "runtime/route/router_internal.h"

/* --- handles ---------------------------------------------------------------*/

static vyre_code bad_handle(const vyre_router *router, vyre_buffer handle,
                            vyre_status *st) {
  bool is_foreign = handle.owner != router->id;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT,
      is_foreign ? VYRE_KIND_FOREIGN_HANDLE : VYRE_KIND_STALE_HANDLE, NULL,
      VYRE_NUMBERS({"owner", handle.owner}, {"id", handle.id}),
      "use a buffer from vyre_router_buffer_create of this router that was not "
      "destroyed",
      "buffer %llu of owner %llu is not a buffer of this router",
      (unsigned long long)handle.id, (unsigned long long)handle.owner);
}

/* Finds the buffer of a handle. The caller holds the lock. */
static vyre_code find(vyre_router *router, vyre_buffer handle, uint32_t *index,
                      vyre_status *st) {
  uint64_t at = handle.id & UINT32_MAX;
  if (handle.owner != router->id || at >= router->buffer_count ||
      router->buffers[at].generation != handle.id >> 32 ||
      router->buffers[at].generation % 2 == 0) {
    return bad_handle(router, handle, st);
  }
  *index = (uint32_t)at;
  return VYRE_OK;
}

static uint32_t free_entry(const vyre_router *router) {
  for (size_t i = 0; i < router->buffer_count; i++) {
    if (router->buffers[i].generation % 2 == 0) return (uint32_t)i;
  }
  return (uint32_t)router->buffer_count;
}

vyre_code vyre_router_buffer_create(vyre_router *router, uint64_t size,
                                    vyre_buffer *out, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, out);
  *out = (vyre_buffer){0, 0};
  VYRE_REQUIRE(st, router);
  pthread_mutex_lock(&router->lock);
  uint32_t at = free_entry(router);
  bool is_ok = at < router->buffer_count ||
               vyre__reserve(router->allocator, &router->buffers,
                             &router->buffer_capacity, (size_t)at + 1,
                             sizeof *router->buffers, false);
  if (is_ok) {
    uint32_t generation = 0;
    if (at == router->buffer_count) {
      router->buffer_count++;
    } else {
      generation = router->buffers[at].generation;
    }
    router->buffers[at] = (route_buffer){
        .size = size, .generation = generation + 1, .is_zero = true};
    *out = (vyre_buffer){router->id, (uint64_t)(generation + 1) << 32 | at};
  }
  pthread_mutex_unlock(&router->lock);
  return is_ok ? VYRE_OK : vyre__no_memory(st, __func__, "buffers", at + 1u);
}

/* Frees the copies on devices that still exist. */
static void destroy_copies(vyre_router *router, route_buffer *buffer) {
  for (uint32_t i = 0; i < router->device_count; i++) {
    vyre_device *device = atomic_load(&router->devices[i].device);
    if (buffer->copies[i].owner == vyre_device_id(device)) {
      (void)vyre_buffer_destroy(device, buffer->copies[i], NULL);
    }
    buffer->copies[i] = (vyre_buffer){0, 0};
  }
  if (buffer->host) {
    vyre__resize(router->allocator, buffer->host, (size_t)buffer->size, 0);
    buffer->host = NULL;
  }
}

vyre_code vyre_router_buffer_destroy(vyre_router *router, vyre_buffer buffer,
                                     vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, router);
  uint32_t at;
  pthread_mutex_lock(&router->lock);
  vyre_code code = find(router, buffer, &at, st);
  if (code == VYRE_OK) {
    destroy_copies(router, &router->buffers[at]);
    router->buffers[at].generation++;
  }
  pthread_mutex_unlock(&router->lock);
  return code;
}

void vyre__route_buffers_deinit(vyre_router *router) {
  for (size_t i = 0; i < router->buffer_count; i++) {
    destroy_copies(router, &router->buffers[i]);
  }
  vyre__reserve_free(router->allocator, &router->buffers,
                     &router->buffer_capacity, sizeof *router->buffers);
}

/* --- contents --------------------------------------------------------------*/

static vyre_code contents_lost(const char *name, vyre_status *st) {
  return VYRE_FAIL(st, VYRE_DEVICE_LOST, VYRE_KIND_DEVICE_LOST,
                   "write the buffer again with vyre_router_buffer_upload",
                   "the newest contents of %.80s were on a device that is lost",
                   name);
}

/* Creates the copy of a buffer on a device. */
static vyre_code make_copy(vyre_router *router, route_buffer *buffer,
                           uint32_t index, vyre_status *st) {
  VYRE_TRY(vyre__router_revive(router, index, st));
  vyre_device *device = atomic_load(&router->devices[index].device);
  if (buffer->copies[index].owner == vyre_device_id(device)) return VYRE_OK;
  buffer->copies[index] = (vyre_buffer){0, 0};
  buffer->current &= ~(1u << index);
  return vyre_buffer_create(device, buffer->size, &buffer->copies[index],
                            vyre__status_open(st));
}

/* Returns a device with the newest contents, or ROUTE_NONE. */
static uint32_t newest_device(const route_buffer *buffer) {
  uint32_t devices = buffer->current & (ROUTE_HOST - 1);
  return devices ? (uint32_t)__builtin_ctz(devices) : ROUTE_NONE;
}

/* Reads the newest contents from any copy. A copy that cannot be read is not
 * asked again if there is another one. */
static vyre_code read_newest(vyre_router *router, route_buffer *buffer,
                             void *to, const char *name, vyre_status *st) {
  if (buffer->current & ROUTE_HOST) {
    if (to) memcpy(to, buffer->host, (size_t)buffer->size); /* or size 0 */
    return VYRE_OK;
  }
  uint32_t from;
  vyre_code code = VYRE_DEVICE_LOST;
  while ((from = newest_device(buffer)) != ROUTE_NONE) {
    vyre_device *source = atomic_load(&router->devices[from].device);
    vyre__status_begin(st);
    code = vyre_buffer_download(source, buffer->copies[from], 0, to,
                                (size_t)buffer->size, vyre__status_open(st));
    bool is_lost = vyre_device_is_lost(source);
    uint32_t others = buffer->current & ~(1u << from);
    if (code == VYRE_OK || (!is_lost && others == 0)) return code;
    buffer->current = others;
  }
  vyre__status_begin(st);
  return contents_lost(name, st);
}

/* Copies the newest contents to device @p index through host memory. */
static vyre_code move(vyre_router *router, route_buffer *buffer, uint32_t index,
                      const char *name, vyre_status *st) {
  if (buffer->current == 0) return contents_lost(name, st);
  vyre_device *target = atomic_load(&router->devices[index].device);
  void *bytes = vyre__resize(router->allocator, NULL, 0, (size_t)buffer->size);
  if (!bytes && buffer->size > 0) {
    return vyre__no_memory(st, "vyre_route_dispatch", "bytes to move",
                           buffer->size);
  }
  uint64_t start = vyre__clock_ns();
  vyre_code code = read_newest(router, buffer, bytes, name, st);
  if (code == VYRE_OK) {
    code = vyre_buffer_upload(target, buffer->copies[index], 0, bytes,
                              (size_t)buffer->size, vyre__status_open(st));
  }
  uint64_t ns = vyre__clock_ns() - start;
  vyre__resize(router->allocator, bytes, (size_t)buffer->size, 0);
  if (code == VYRE_OK && buffer->size > 0) {
    atomic_store(&router->devices[index].transfer_ps,
                 ns * 1000 / buffer->size + 1);
  }
  return code;
}

/* Gives device @p index the newest contents. The caller holds the lock. */
static vyre_code make_current(vyre_router *router, route_buffer *buffer,
                              uint32_t index, const char *name,
                              vyre_status *st) {
  VYRE_TRY(make_copy(router, buffer, index, st));
  if (buffer->current >> index & 1) return VYRE_OK;
  if (!buffer->is_zero) {
    VYRE_TRY(move(router, buffer, index, name, st));
  }
  buffer->current |= 1u << index;
  return VYRE_OK;
}

/* --- transfers -------------------------------------------------------------*/

/* Returns the device whose copy a transfer uses: one with the newest contents,
 * or the first. */
static uint32_t transfer_device(const route_buffer *buffer) {
  uint32_t index = newest_device(buffer);
  return index == ROUTE_NONE ? 0 : index;
}

static vyre_code transfer(vyre_router *router, vyre_buffer handle,
                          uint64_t offset, void *data, size_t size,
                          bool is_upload, vyre_status *st) {
  uint32_t at;
  VYRE_TRY(find(router, handle, &at, st));
  route_buffer *buffer = &router->buffers[at];
  uint32_t index = transfer_device(buffer);
  bool is_whole = is_upload && offset == 0 && size == buffer->size;
  if (is_whole) {
    VYRE_TRY(make_copy(router, buffer, index, st));
  } else {
    VYRE_TRY(make_current(router, buffer, index, "the buffer", st));
  }
  vyre_device *device = atomic_load(&router->devices[index].device);
  vyre_buffer copy = buffer->copies[index];
  if (!is_upload) {
    return vyre_buffer_download(device, copy, offset, data, size,
                                vyre__status_open(st));
  }
  VYRE_TRY(vyre_buffer_upload(device, copy, offset, data, size,
                              vyre__status_open(st)));
  buffer->current = 1u << index;
  buffer->is_zero = false;
  return VYRE_OK;
}

vyre_code vyre_router_buffer_upload(vyre_router *router, vyre_buffer buffer,
                                    uint64_t offset, const void *data,
                                    size_t size, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, router);
  VYRE_REQUIRE_ARRAY(st, data, size);
  pthread_mutex_lock(&router->lock);
  vyre_code code =
      transfer(router, buffer, offset, (void *)data, size, true, st);
  pthread_mutex_unlock(&router->lock);
  return code;
}

vyre_code vyre_router_buffer_download(vyre_router *router, vyre_buffer buffer,
                                      uint64_t offset, void *data, size_t size,
                                      vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, router);
  VYRE_REQUIRE_ARRAY(st, data, size);
  pthread_mutex_lock(&router->lock);
  vyre_code code = transfer(router, buffer, offset, data, size, false, st);
  pthread_mutex_unlock(&router->lock);
  return code;
}

/* --- dispatches ------------------------------------------------------------*/

/* Gives device @p index a copy to write to. The dispatch defines the contents
 * of the range; bytes outside it must be the newest. */
static vyre_code prepare_output(vyre_router *router, route_buffer *buffer,
                                uint32_t index, const vyre_output *output,
                                const char *name, vyre_status *st) {
  bool is_whole = output->offset == 0 &&
                  (output->size == 0 || output->size == buffer->size);
  return is_whole ? make_copy(router, buffer, index, st)
                  : make_current(router, buffer, index, name, st);
}

/* Returns the name of the binding with this input or output. */
static const char *name_of(const vyre_binding_plan *plan, size_t index,
                           bool is_output) {
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if ((is_output ? b->output_index : b->input_index) == index) return b->name;
  }
  return "a buffer";
}

static vyre_code bind_all(vyre_router *router, const vyre_binding_plan *plan,
                          uint32_t index, route_bound *out, vyre_status *st) {
  uint32_t at;
  for (size_t i = 0; i < out->desc.input_count; i++) {
    vyre_input *in = &out->inputs[i];
    if (!route_owns(in->buffer)) continue;
    VYRE_TRY(find(router, in->buffer, &at, st));
    VYRE_TRY(make_current(router, &router->buffers[at], index,
                          name_of(plan, i, false), st));
    in->buffer = router->buffers[at].copies[index];
  }
  for (size_t i = 0; i < out->desc.output_count; i++) {
    vyre_output *to = &out->outputs[i];
    if (!route_owns(to->buffer)) continue;
    VYRE_TRY(find(router, to->buffer, &at, st));
    VYRE_TRY(prepare_output(router, &router->buffers[at], index, to,
                            name_of(plan, i, true), st));
    to->buffer = router->buffers[at].copies[index];
    out->written[out->written_count++] = at;
  }
  return VYRE_OK;
}

/* Adds the buffers that the dispatch updates in place: inputs of an
 * input_output without another device buffer as output. */
static vyre_code add_updated(vyre_router *router, const vyre_binding_plan *plan,
                             const vyre_dispatch_desc *desc, route_bound *out,
                             vyre_status *st) {
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    uint32_t at;
    if (b->input_index >= desc->input_count ||
        b->output_index >= desc->output_count ||
        !route_owns(desc->inputs[b->input_index].buffer)) {
      continue;
    }
    const vyre_output *output = &desc->outputs[b->output_index];
    if (output->buffer.owner || output->buffer.id || output->new_buffer)
      continue;
    VYRE_TRY(find(router, desc->inputs[b->input_index].buffer, &at, st));
    out->written[out->written_count++] = at;
  }
  return VYRE_OK;
}

/* Lists the written buffers that are also read. */
static void add_read(vyre_router *router, const vyre_dispatch_desc *desc,
                     route_bound *out) {
  uint32_t at;
  for (uint32_t w = 0; w < out->written_count; w++) {
    for (size_t i = 0; i < desc->input_count; i++) {
      if (!route_owns(desc->inputs[i].buffer) ||
          find(router, desc->inputs[i].buffer, &at, NULL) != VYRE_OK ||
          at != out->written[w]) {
        continue;
      }
      if (out->updated_count < ROUTE_BINDINGS) {
        out->updated[out->updated_count++] = at;
      }
      break;
    }
  }
}

vyre_code vyre__route_bind(vyre_router *router, const vyre_binding_plan *plan,
                           const vyre_dispatch_desc *desc, uint32_t index,
                           route_bound *out, vyre_status *st) {
  if (desc->input_count > ROUTE_BINDINGS ||
      desc->output_count > ROUTE_BINDINGS) {
    return VYRE_FAIL_WITH(
        st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, NULL,
        VYRE_NUMBERS({"inputs", desc->input_count},
                     {"outputs", desc->output_count}, {"max", ROUTE_BINDINGS}),
        "use fewer bindings, or device buffers",
        "a routed dispatch with router buffers has %zu inputs and %zu outputs; "
        "the maximum is %d each",
        desc->input_count, desc->output_count, ROUTE_BINDINGS);
  }
  out->desc = *desc;
  out->written_count = out->updated_count = 0;
  if (desc->input_count > 0) {
    memcpy(out->inputs, desc->inputs, desc->input_count * sizeof *out->inputs);
  }
  if (desc->output_count > 0) {
    memcpy(out->outputs, desc->outputs,
           desc->output_count * sizeof *out->outputs);
  }
  out->desc.inputs = out->inputs;
  out->desc.outputs = out->outputs;
  pthread_mutex_lock(&router->lock);
  vyre_code code = bind_all(router, plan, index, out, st);
  if (code == VYRE_OK) code = add_updated(router, plan, desc, out, st);
  if (code == VYRE_OK) add_read(router, desc, out);
  pthread_mutex_unlock(&router->lock);
  return code;
}

void vyre__route_bound_done(vyre_router *router, const route_bound *bound,
                            uint32_t index) {
  if (bound->written_count == 0) return;
  pthread_mutex_lock(&router->lock);
  for (uint32_t i = 0; i < bound->written_count; i++) {
    router->buffers[bound->written[i]].current = 1u << index;
    router->buffers[bound->written[i]].is_zero = false;
  }
  pthread_mutex_unlock(&router->lock);
}

uint32_t vyre__route_bound_failed(vyre_router *router, const route_bound *bound,
                                  uint32_t index) {
  uint32_t torn = ROUTE_NONE;
  pthread_mutex_lock(&router->lock);
  for (uint32_t i = 0; i < bound->updated_count; i++) {
    const route_buffer *buffer = &router->buffers[bound->updated[i]];
    if ((buffer->current & ~(1u << index)) == 0) torn = bound->updated[i];
  }
  for (uint32_t i = 0; i < bound->written_count; i++) {
    route_buffer *buffer = &router->buffers[bound->written[i]];
    uint32_t others = buffer->current & ~(1u << index);
    if (others) buffer->current = others;
  }
  pthread_mutex_unlock(&router->lock);
  return torn;
}

/* Makes a copy in host memory, unless another device has one. */
static vyre_code keep(vyre_router *router, route_buffer *buffer, uint32_t index,
                      vyre_status *st) {
  if (buffer->current & ~(1u << index)) return VYRE_OK;
  if (!buffer->host) {
    buffer->host =
        vyre__resize(router->allocator, NULL, 0, (size_t)buffer->size);
    if (!buffer->host && buffer->size > 0) {
      return vyre__no_memory(st, "vyre_route_dispatch", "bytes of a snapshot",
                             buffer->size);
    }
  }
  VYRE_TRY(read_newest(router, buffer, buffer->host, "a buffer", st));
  buffer->current |= ROUTE_HOST;
  return VYRE_OK;
}

vyre_code vyre__route_bound_keep(vyre_router *router, const route_bound *bound,
                                 uint32_t index, vyre_status *st) {
  vyre_code code = VYRE_OK;
  if (bound->updated_count == 0) return VYRE_OK;
  pthread_mutex_lock(&router->lock);
  for (uint32_t i = 0; i < bound->updated_count && code == VYRE_OK; i++) {
    code = keep(router, &router->buffers[bound->updated[i]], index, st);
  }
  pthread_mutex_unlock(&router->lock);
  return code;
}

uint64_t vyre__route_buffer_size(vyre_router *router, vyre_buffer buffer) {
  uint64_t size = 0;
  uint32_t at;
  pthread_mutex_lock(&router->lock);
  if (!route_owns(buffer)) {
    for (uint32_t i = 0; i < router->device_count; i++) {
      vyre_device *device = atomic_load(&router->devices[i].device);
      if (vyre_device_id(device) == buffer.owner) {
        if (vyre_buffer_size(device, buffer, &size, NULL) != VYRE_OK) size = 0;
      }
    }
  } else if (find(router, buffer, &at, NULL) == VYRE_OK) {
    size = router->buffers[at].size;
  }
  pthread_mutex_unlock(&router->lock);
  return size;
}

/* Downloads a range of a device or router buffer, under the lock. */
static vyre_code fetch(vyre_router *router, vyre_buffer buffer, uint64_t offset,
                       uint64_t size, void *to, vyre_status *st) {
  if (route_owns(buffer)) {
    return transfer(router, buffer, offset, to, (size_t)size, false, st);
  }
  for (uint32_t i = 0; i < router->device_count; i++) {
    vyre_device *device = atomic_load(&router->devices[i].device);
    if (vyre_device_id(device) == buffer.owner) {
      return vyre_buffer_download(device, buffer, offset, to, (size_t)size,
                                  vyre__status_open(st));
    }
  }
  return bad_handle(router, buffer, st);
}

vyre_code vyre__route_fetch(vyre_router *router, vyre_buffer buffer,
                            uint64_t offset, uint64_t size, vyre__bytes *to,
                            uint64_t *out, vyre_status *st) {
  uint64_t whole = vyre__route_buffer_size(router, buffer);
  *out = size ? size : whole > offset ? whole - offset : 0;
  if (!vyre__reserve(to->allocator, &to->data, &to->capacity,
                     to->size + (size_t)*out + 1, 1, false)) {
    return vyre__no_memory(st, "vyre_route_dispatch", "bytes of a snapshot",
                           *out);
  }
  pthread_mutex_lock(&router->lock);
  vyre_code code = fetch(router, buffer, offset, *out, to->data + to->size, st);
  pthread_mutex_unlock(&router->lock);
  if (code == VYRE_OK) to->size += (size_t)*out;
  return code;
}

uint64_t vyre__route_missing_bytes(vyre_router *router,
                                   const vyre_dispatch_desc *desc,
                                   uint32_t index) {
  uint64_t bytes = 0;
  uint32_t at;
  bool is_locked = false;
  for (size_t i = 0; i < desc->input_count; i++) {
    if (!route_owns(desc->inputs[i].buffer)) continue;
    if (!is_locked) pthread_mutex_lock(&router->lock);
    is_locked = true;
    if (find(router, desc->inputs[i].buffer, &at, NULL) != VYRE_OK) continue;
    const route_buffer *buffer = &router->buffers[at];
    if (!buffer->is_zero && !(buffer->current >> index & 1)) {
      bytes += buffer->size;
    }
  }
  if (is_locked) pthread_mutex_unlock(&router->lock);
  return bytes;
}

vyre_code vyre__route_buffers_check(vyre_router *router,
                                    const vyre_route *route,
                                    const vyre_dispatch_desc *desc,
                                    vyre_status *st) {
  const vyre_binding_plan *plan = vyre__route_plan(route);
  vyre_code code = VYRE_OK;
  pthread_mutex_lock(&router->lock);
  for (size_t i = 0; i < plan->binding_count && code == VYRE_OK; i++) {
    const vyre_binding *b = &plan->bindings[i];
    uint32_t at;
    if (b->input_index >= desc->input_count ||
        !route_owns(desc->inputs[b->input_index].buffer)) {
      continue;
    }
    code = find(router, desc->inputs[b->input_index].buffer, &at, st);
    if (code == VYRE_OK && !router->buffers[at].is_zero &&
        router->buffers[at].current == 0) {
      code = contents_lost(b->name, st);
    }
  }
  pthread_mutex_unlock(&router->lock);
  return code;
}
