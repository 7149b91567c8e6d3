/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <string.h>

#include "vyre/buffer.h"

#include "base/memory.h"
#include "base/status.h"
#include "runtime/core/trace.h"
#include "runtime/runtime.h"

enum { HOST_ALIGNMENT = 64 };

#define GOOD             (UINT64_C(1) << 31)
#define USERS            (GOOD - 1)
#define LOW              (GOOD | USERS)
#define GENERATION_SHIFT 32

/* --- memory -----------------------------------------------------------------*/

static size_t alignment_of(const vyre_device *device) {
  uint64_t asked = device->caps.host_alignment;
  return asked > HOST_ALIGNMENT ? (size_t)asked : HOST_ALIGNMENT;
}

/* Zeroed and aligned, with the distance to what was allocated before it. */
static unsigned char *host_take(const vyre_device *device, size_t size) {
  size_t alignment = alignment_of(device), room = alignment + sizeof(size_t);
  if (size > SIZE_MAX - room) return NULL;
  unsigned char *raw = vyre__resize(device->allocator, NULL, 0, size + room);
  if (!raw) return NULL;
  size_t gap = room - (uintptr_t)(raw + room) % alignment;
  memcpy(raw + gap - sizeof gap, &gap, sizeof gap);
  memset(raw + gap, 0, size);
  return raw + gap;
}

static void host_give(const vyre_device *device, unsigned char *memory,
                      size_t size) {
  if (!memory) return;
  size_t gap, room = alignment_of(device) + sizeof(size_t);
  memcpy(&gap, memory - sizeof gap, sizeof gap);
  vyre__resize(device->allocator, memory - gap, size + room, 0);
}

static size_t bytes_of(const vyre_device *device) {
  size_t size = device->backend->buffer_size;
  return size ? size : sizeof(vyre__buffer);
}

static vyre_code no_device_memory(const vyre_device *device, uint64_t size,
                                  vyre_status *st) {
  if (vyre__memory_is_injected()) {
    return VYRE_FAIL_WITH(
        st, VYRE_DEVICE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED,
        "resident buffers", VYRE_NUMBERS({"requested_bytes", size}),
        "disarm it: vyre_context_inject_faults(context, \"\"), or unset "
        "VYRE_FAULTS",
        "device '%s' has no memory for a resident buffer of %llu bytes: the "
        "fault 'allocation' was injected here",
        vyre_device_name(device), (unsigned long long)size);
  }
  return VYRE_FAIL_WITH(
      st, VYRE_DEVICE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED,
      "resident buffers", VYRE_NUMBERS({"requested_bytes", size}),
      "free resident buffers, or split the data",
      "device '%s' has no memory for a resident buffer of %llu bytes",
      vyre_device_name(device), (unsigned long long)size);
}

/* @p buffer has its size, and in host what to import. */
static vyre_code buffer_init(vyre_device *device, vyre__buffer *buffer,
                             vyre_status *st) {
  if (device->backend->buffer_init) {
    return device->backend->buffer_init(device, buffer, st);
  }
  if (buffer->host) return VYRE_OK;
  if (buffer->size <= SIZE_MAX) {
    buffer->host = host_take(device, (size_t)buffer->size);
  }
  return buffer->host ? VYRE_OK : no_device_memory(device, buffer->size, st);
}

static void buffer_free(vyre_device *device, vyre__buffer *buffer) {
  void (*let_go)(void *) = buffer->release;
  void *let_go_self = buffer->release_user_data;
  VYRE__COUNT(device, live_residents, UINT64_MAX);
  VYRE__COUNT(device, live_resident_bytes, 0 - buffer->size);
  if (device->backend->buffer_deinit) {
    device->backend->buffer_deinit(device, buffer);
  } else if (!buffer->is_imported) {
    host_give(device, buffer->host, (size_t)buffer->size);
  }
  vyre__resize(device->allocator, buffer, bytes_of(device), 0);
  if (let_go) let_go(let_go_self);
}

static vyre_code buffer_write(vyre_device *device, vyre__buffer *buffer,
                              uint64_t offset, const void *data, size_t size,
                              vyre_status *st) {
  if (vyre__fault(device->context, VYRE_FAULT_UPLOAD)) {
    return vyre__fault_status(VYRE_FAULT_UPLOAD, st);
  }
  VYRE__COUNT(device, uploads, 1);
  VYRE__COUNT(device, upload_bytes, size);
  if (size == 0) return VYRE_OK;
  if (device->backend->buffer_write) {
    return device->backend->buffer_write(device, buffer, offset, data, size,
                                         st);
  }
  memmove(buffer->host + offset, data, size);
  return VYRE_OK;
}

vyre_code vyre__buffer_write(vyre_device *device, vyre__buffer *buffer,
                             uint64_t offset, const void *data, size_t size,
                             vyre_status *st) {
  uint64_t start = vyre__trace_begin(device->context);
  vyre_code code = buffer_write(device, buffer, offset, data, size, st);
  vyre__trace_end(device->context, start, .kind = VYRE__TRACE_UPLOAD,
                  .device = device, .result = code,
                  .numbers = {{"bytes", size}, {"offset", offset}});
  return code;
}

static vyre_code buffer_read(vyre_device *device, vyre__buffer *buffer,
                             uint64_t offset, void *data, size_t size,
                             vyre_status *st) {
  if (vyre__fault(device->context, VYRE_FAULT_DOWNLOAD)) {
    return vyre__fault_status(VYRE_FAULT_DOWNLOAD, st);
  }
  VYRE__COUNT(device, downloads, 1);
  VYRE__COUNT(device, download_bytes, size);
  if (size == 0) return VYRE_OK;
  if (device->backend->buffer_read) {
    return device->backend->buffer_read(device, buffer, offset, data, size, st);
  }
  memmove(data, buffer->host + offset, size);
  return VYRE_OK;
}

vyre_code vyre__buffer_read(vyre_device *device, vyre__buffer *buffer,
                            uint64_t offset, void *data, size_t size,
                            vyre_status *st) {
  uint64_t start = vyre__trace_begin(device->context);
  vyre_code code = buffer_read(device, buffer, offset, data, size, st);
  vyre__trace_end(device->context, start, .kind = VYRE__TRACE_DOWNLOAD,
                  .device = device, .result = code,
                  .numbers = {{"bytes", size}, {"offset", offset}});
  return code;
}

vyre_code vyre__buffer_clear(vyre_device *device, vyre__buffer *buffer,
                             uint64_t offset, size_t size, vyre_status *st) {
  static const unsigned char zeros[4096];
  while (size > 0) {
    size_t part = size < sizeof zeros ? size : sizeof zeros;
    VYRE_TRY(vyre__buffer_write(device, buffer, offset, zeros, part, st));
    offset += part;
    size -= part;
  }
  return VYRE_OK;
}

vyre_code vyre__buffer_copy(vyre_device *device,
                            const vyre__bound_buffer *bound, size_t size,
                            vyre_arena *scratch, vyre_status *st) {
  if (bound->in) {
    return vyre__buffer_write(device, bound->out_buffer->buffer,
                              bound->out_offset, bound->in, size, st);
  }
  void *between = bound->out;
  if (!between) between = vyre_arena_alloc(scratch, size, 64);
  if (!between) return vyre__no_memory(st, "vyre_dispatch", "bytes", size);
  VYRE_TRY(vyre__buffer_read(device, bound->in_buffer->buffer, bound->in_offset,
                             between, size, st));
  if (bound->out) return VYRE_OK;
  return vyre__buffer_write(device, bound->out_buffer->buffer,
                            bound->out_offset, between, size, st);
}

/* --- handles ----------------------------------------------------------------*/

static vyre__device_buffer *slot_at(const vyre__device_buffers *table,
                                    uint32_t index) {
  if (index >= (uint32_t)VYRE__CHUNKS * VYRE__CHUNK_SLOTS) return NULL;
  vyre__device_buffer *chunk = atomic_load_explicit(
      &table->chunks[index / VYRE__CHUNK_SLOTS], memory_order_acquire);
  return chunk ? chunk + index % VYRE__CHUNK_SLOTS : NULL;
}

/* A slot for a new buffer; its generation is set, its handle not good yet. */
static vyre_code take_slot(vyre_device *device, uint32_t *out,
                           vyre_status *st) {
  vyre__device_buffers *table = &device->state->buffers;
  if (table->first_free) {
    *out = table->first_free - 1;
    table->first_free = slot_at(table, *out)->next_free;
    return VYRE_OK;
  }
  uint32_t index = table->count;
  if (index == (uint32_t)VYRE__CHUNKS * VYRE__CHUNK_SLOTS) {
    return VYRE_FAIL_WITH(
        st, VYRE_DEVICE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED,
        "resident buffers", VYRE_NUMBERS({"resident_buffers", index}),
        "free resident buffers, or put several into one",
        "device '%s' has %u resident buffers, which is the most",
        vyre_device_name(device), index);
  }
  _Atomic(vyre__device_buffer *) *chunk =
      &table->chunks[index / VYRE__CHUNK_SLOTS];
  if (!atomic_load(chunk)) {
    size_t bytes = VYRE__CHUNK_SLOTS * sizeof(vyre__device_buffer);
    vyre__device_buffer *slots =
        vyre__resize(device->allocator, NULL, 0, bytes);
    if (!slots) {
      return vyre__no_memory(st, "vyre_buffer_create", "handles",
                             VYRE__CHUNK_SLOTS);
    }
    memset(slots, 0, bytes);
    atomic_store_explicit(chunk, slots, memory_order_release);
  }
  table->count++;
  *out = index;
  return VYRE_OK;
}

/* The slot's buffer is gone: the next one there has another generation. A slot
 * that has had all of them is never used again. */
static void recycle(vyre_device *device, vyre__device_buffer *slot,
                    uint64_t state) {
  vyre__device_buffers *table = &device->state->buffers;
  buffer_free(device, slot->buffer);
  slot->buffer = NULL;
  uint32_t generation = (uint32_t)(state >> GENERATION_SHIFT) + 1;
  if (generation == UINT32_MAX) return;
  atomic_store(&slot->state, (uint64_t)generation << GENERATION_SHIFT);
  pthread_mutex_lock(&table->lock);
  for (uint32_t i = 0; i < VYRE__CHUNKS; i++) {
    vyre__device_buffer *chunk = atomic_load(&table->chunks[i]);
    if (!chunk || slot < chunk || slot >= chunk + VYRE__CHUNK_SLOTS) continue;
    slot->next_free = table->first_free;
    table->first_free = i * VYRE__CHUNK_SLOTS + (uint32_t)(slot - chunk) + 1;
    break;
  }
  pthread_mutex_unlock(&table->lock);
}

static vyre_code foreign(const vyre_device *device, vyre_buffer handle,
                         vyre_status *st) {
  if (handle.owner == 0) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_STALE_HANDLE,
                     "make one with vyre_buffer_create",
                     "the resident buffer is a zeroed handle, which is none");
  }
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_FOREIGN_HANDLE, NULL,
      VYRE_NUMBERS({"owner", handle.owner}, {"device", device->state->id}),
      "use a buffer on the device that made it, or upload the data again here",
      "the resident buffer is one of device %llu, this is device %llu ('%s')",
      (unsigned long long)handle.owner, (unsigned long long)device->state->id,
      vyre_device_name(device));
}

static vyre_code stale(const vyre_device *device, vyre_buffer handle,
                       vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_STALE_HANDLE, NULL,
      VYRE_NUMBERS({"resident", handle.id}),
      "do not use a handle after vyre_buffer_destroy",
      "resident buffer %llx of device '%s' was freed, or never was",
      (unsigned long long)handle.id, vyre_device_name(device));
}

vyre_code vyre__device_buffer_acquire(vyre_device *device, vyre_buffer handle,
                                      vyre__device_buffer **out,
                                      vyre_status *st) {
  *out = NULL;
  if (handle.owner != device->state->id) return foreign(device, handle, st);
  vyre__device_buffer *slot =
      slot_at(&device->state->buffers, (uint32_t)handle.id);
  if (!slot) return stale(device, handle, st);
  uint64_t state = atomic_load(&slot->state);
  do {
    if (state >> GENERATION_SHIFT != handle.id >> GENERATION_SHIFT ||
        !(state & GOOD) || (state & USERS) == USERS) {
      return stale(device, handle, st);
    }
  } while (!atomic_compare_exchange_weak(&slot->state, &state, state + 1));
  *out = slot;
  return VYRE_OK;
}

void vyre__device_buffer_release(vyre_device *device,
                                 vyre__device_buffer *slot) {
  uint64_t state = atomic_fetch_sub(&slot->state, 1) - 1;
  if ((state & LOW) == 0) recycle(device, slot, state);
}

void vyre__device_buffers_deinit(vyre_device *device) {
  vyre__device_buffers *table = &device->state->buffers;
  for (size_t i = 0; i < VYRE__CHUNKS; i++) {
    vyre__device_buffer *chunk = atomic_load(&table->chunks[i]);
    if (!chunk) continue;
    for (size_t j = 0; j < VYRE__CHUNK_SLOTS; j++) {
      if (chunk[j].buffer) buffer_free(device, chunk[j].buffer);
    }
    vyre__resize(device->allocator, chunk, VYRE__CHUNK_SLOTS * sizeof *chunk,
                 0);
  }
}

/* --- what people call -------------------------------------------------------*/

static vyre_code create(vyre_device *device, void *memory, uint64_t size,
                        vyre_buffer *out, vyre_status *st) {
  VYRE_TRY(vyre__device_check(device, st));
  if (size > device->caps.max_buffer_bytes) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
        VYRE_NUMBERS({"requested_bytes", size},
                     {"most_bytes", device->caps.max_buffer_bytes}),
        "split the data into several buffers",
        "a resident buffer of %llu bytes; the most on '%s' is %llu",
        (unsigned long long)size, vyre_device_name(device),
        (unsigned long long)device->caps.max_buffer_bytes);
  }
  vyre__buffer *buffer =
      vyre__resize(device->allocator, NULL, 0, bytes_of(device));
  if (!buffer) return vyre__no_memory(st, "vyre_buffer_create", "buffers", 1);
  memset(buffer, 0, bytes_of(device));
  *buffer = (vyre__buffer){
      .size = size, .host = memory, .is_imported = memory != NULL};
  vyre_code code = buffer_init(device, buffer, st);
  if (code != VYRE_OK) {
    vyre__resize(device->allocator, buffer, bytes_of(device), 0);
    return code;
  }
  VYRE__COUNT(device, live_residents, 1);
  VYRE__COUNT(device, live_resident_bytes, size);
  vyre__device_buffers *table = &device->state->buffers;
  uint32_t index;
  pthread_mutex_lock(&table->lock);
  code = take_slot(device, &index, st);
  pthread_mutex_unlock(&table->lock);
  if (code != VYRE_OK) {
    buffer_free(device, buffer);
    return code;
  }
  vyre__device_buffer *slot = slot_at(table, index);
  slot->buffer = buffer;
  uint64_t generation = atomic_load(&slot->state) >> GENERATION_SHIFT;
  if (generation == 0) generation = 1; /* so that no handle is all zero */
  atomic_store(&slot->state, generation << GENERATION_SHIFT | GOOD);
  *out =
      (vyre_buffer){device->state->id, generation << GENERATION_SHIFT | index};
  return VYRE_OK;
}

vyre_code vyre_buffer_create(vyre_device *device, uint64_t size,
                             vyre_buffer *out, vyre_status *st) {
  vyre__status_begin(st);
  static const char who[] = "vyre_buffer_create";
  if (!out) return vyre__null_argument(st, who, "out");
  *out = (vyre_buffer){0};
  if (!device) return vyre__null_argument(st, who, "device");
  return create(device, NULL, size, out, st);
}

vyre_code vyre_buffer_import(vyre_device *device, void *memory, uint64_t size,
                             vyre_buffer *out, vyre_status *st) {
  vyre__status_begin(st);
  static const char who[] = "vyre_buffer_import";
  if (!out) return vyre__null_argument(st, who, "out");
  *out = (vyre_buffer){0};
  if (!device) return vyre__null_argument(st, who, "device");
  if (!memory) return vyre__null_argument(st, who, "memory");
  uint64_t alignment = device->caps.host_alignment;
  if (!device->caps.borrows_host_memory && !device->caps.imports_host_memory) {
    return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                     "make a resident buffer and upload to it",
                     "device '%s' cannot use memory of the host",
                     vyre_device_name(device));
  }
  if (alignment > 1 && (uintptr_t)memory % alignment != 0) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
        VYRE_NUMBERS({"alignment", alignment}),
        "take memory from vyre_host_alloc",
        "memory to import must be aligned to %llu bytes on '%s'",
        (unsigned long long)alignment, vyre_device_name(device));
  }
  /* Of nothing there is nothing to map. */
  return create(device, size > 0 ? memory : NULL, size, out, st);
}

vyre_code vyre__device_buffer_import(vyre_device *device,
                                     const vyre__imported_memory *memory,
                                     vyre_buffer *out, vyre_status *st) {
  vyre_code code =
      memory->data ? vyre_buffer_import(device, memory->data, memory->size, out,
                                        vyre__status_open(st))
                   : vyre_buffer_create(device, 0, out, vyre__status_open(st));
  if (code != VYRE_OK) return code;
  /* Nobody else knows the handle yet. */
  vyre__device_buffer *slot =
      slot_at(&device->state->buffers, (uint32_t)out->id);
  slot->buffer->is_read_only = memory->is_read_only;
  slot->buffer->release = memory->release;
  slot->buffer->release_user_data = memory->release_user_data;
  return VYRE_OK;
}

vyre_code vyre__device_buffer_read_only(const char *what, const char *name,
                                        vyre_status *st) {
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_READ_ONLY,
                   "write to a buffer of your own, and copy into it first if "
                   "the old bytes matter",
                   "%s '%.100s' would write a resident buffer that was "
                   "imported as read-only",
                   what, name);
}

vyre_code vyre_buffer_destroy(vyre_device *device, vyre_buffer buffer,
                              vyre_status *st) {
  vyre__status_begin(st);
  vyre__device_buffer *slot;
  if (!device) return vyre__null_argument(st, "vyre_buffer_destroy", "device");
  VYRE_TRY(vyre__device_buffer_acquire(device, buffer, &slot, st));
  uint64_t state = atomic_fetch_and(&slot->state, ~GOOD);
  if ((state & USERS) > 1) vyre__prepared_list_revoke(device, slot);
  vyre__device_buffer_release(device, slot);
  /* Of two who free it at once, one comes too late. */
  return state & GOOD ? VYRE_OK : stale(device, buffer, st);
}

vyre_code vyre_buffer_size(vyre_device *device, vyre_buffer buffer,
                           uint64_t *out, vyre_status *st) {
  vyre__status_begin(st);
  static const char who[] = "vyre_buffer_size";
  vyre__device_buffer *slot;
  if (!out) return vyre__null_argument(st, who, "out");
  *out = 0;
  if (!device) return vyre__null_argument(st, who, "device");
  VYRE_TRY(vyre__device_buffer_acquire(device, buffer, &slot, st));
  *out = slot->buffer->size;
  vyre__device_buffer_release(device, slot);
  return VYRE_OK;
}

/* --- transfers --------------------------------------------------------------*/

static vyre_code check_range(const vyre__buffer *buffer, const vyre_transfer *t,
                             size_t item, vyre_status *st) {
  if (t->offset > buffer->size || t->size > buffer->size - t->offset) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
        VYRE_NUMBERS({"offset", t->offset}, {"size", t->size},
                     {"buffer_bytes", buffer->size}, {"item", item}),
        "keep the range inside of the buffer",
        "transfer %zu: %zu bytes from %llu on, in a buffer of %llu", item,
        t->size, (unsigned long long)t->offset,
        (unsigned long long)buffer->size);
  }
  if (!t->data && t->size > 0) {
    return VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                          NULL, VYRE_NUMBERS({"size", t->size}, {"item", item}),
                          "point it at the bytes",
                          "transfer %zu: data is NULL, with a size of %zu",
                          item, t->size);
  }
  return VYRE_OK;
}

/* One transfer: only looked at, or done. */
static vyre_code transfer(vyre_device *device, const vyre_transfer *t,
                          size_t item, bool is_upload, bool is_done,
                          vyre_status *st) {
  vyre__device_buffer *slot;
  VYRE_TRY(vyre__device_buffer_acquire(device, t->buffer, &slot, st));
  vyre_code code = check_range(slot->buffer, t, item, st);
  if (code == VYRE_OK && is_upload && slot->buffer->is_read_only) {
    code = vyre__device_buffer_read_only("call", "vyre_buffer_upload", st);
  }
  if (code == VYRE_OK && is_done) {
    code = is_upload ? vyre__buffer_write(device, slot->buffer, t->offset,
                                          t->data, t->size, st)
                     : vyre__buffer_read(device, slot->buffer, t->offset,
                                         t->data, t->size, st);
  }
  vyre__device_buffer_release(device, slot);
  return code;
}

static vyre_code transfers(vyre_device *device, const vyre_transfer *list,
                           size_t count, bool is_upload, vyre_status *st) {
  VYRE_TRY(vyre__device_check(device, st));
  for (int is_done = count < 2; is_done < 2; is_done++) {
    for (size_t i = 0; i < count; i++) {
      vyre_code code = transfer(device, &list[i], i, is_upload, is_done, st);
      if (code == VYRE_OK) continue;
      vyre__status_where(st, "item", i, "transfer %zu", i);
      return code;
    }
  }
  return VYRE_OK;
}

vyre_code vyre_buffer_upload(vyre_device *device, vyre_buffer buffer,
                             uint64_t offset, const void *data, size_t size,
                             vyre_status *st) {
  vyre__status_begin(st);
  if (!device) return vyre__null_argument(st, "vyre_buffer_upload", "device");
  vyre_transfer one = {buffer, offset, (void *)(uintptr_t)data, size};
  return transfers(device, &one, 1, true, st);
}

vyre_code vyre_buffer_download(vyre_device *device, vyre_buffer buffer,
                               uint64_t offset, void *data, size_t size,
                               vyre_status *st) {
  vyre__status_begin(st);
  if (!device) {
    return vyre__null_argument(st, "vyre_buffer_download", "device");
  }
  vyre_transfer one = {buffer, offset, data, size};
  return transfers(device, &one, 1, false, st);
}

vyre_code vyre_buffer_upload_many(vyre_device *device,
                                  const vyre_transfer *list, size_t count,
                                  vyre_status *st) {
  vyre__status_begin(st);
  static const char who[] = "vyre_buffer_upload_many";
  if (!device) return vyre__null_argument(st, who, "device");
  if (!list && count > 0) return vyre__null_argument(st, who, "transfers");
  return transfers(device, list, count, true, st);
}

vyre_code vyre_buffer_download_many(vyre_device *device,
                                    const vyre_transfer *list, size_t count,
                                    vyre_status *st) {
  vyre__status_begin(st);
  static const char who[] = "vyre_buffer_download_many";
  if (!device) return vyre__null_argument(st, who, "device");
  if (!list && count > 0) return vyre__null_argument(st, who, "transfers");
  return transfers(device, list, count, false, st);
}

vyre_code vyre_host_alloc(vyre_device *device, size_t size, void **out,
                          vyre_status *st) {
  vyre__status_begin(st);
  static const char who[] = "vyre_host_alloc";
  if (!out) return vyre__null_argument(st, who, "out");
  *out = NULL;
  if (!device) return vyre__null_argument(st, who, "device");
  *out = host_take(device, size);
  return *out ? VYRE_OK : vyre__no_memory(st, who, "bytes", size);
}

void vyre_host_free(vyre_device *device, void *memory, size_t size) {
  if (device) host_give(device, memory, size);
}
