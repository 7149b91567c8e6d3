/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Device buffers: memory on a device that outlives a dispatch, and the handles
 * that name it.
 *
 * A handle has an index into a table of the device and a generation. The table
 * entry keeps the generation of its current buffer, so that a handle of a
 * freed buffer is recognised. Looking up a handle takes no lock. */
#include "runtime/memory/device_buffer.h"

#include <string.h>

#include "vyre/buffer.h"

#include "base/memory.h"
#include "base/status.h"
#include "runtime/core/device.h"
#include "runtime/core/fault_injection.h"
#include "runtime/core/trace.h"
#include "runtime/dispatch/prepared.h"
#include "runtime/memory/host_buffer.h"

enum { HOST_ALIGNMENT = 64 };

/* State of a table entry: the generation in the high half; below it a bit for a
 * valid handle, and the number of users. The buffer is freed when the low half
 * becomes 0. */
#define VALID            (UINT64_C(1) << 31)
#define USERS            (VALID - 1)
#define VALID_OR_USED    (VALID | USERS)
#define GENERATION_SHIFT 32

/* --- memory ------------------------------------------------------------- */

static size_t alignment_of(const vyre_device *device, uint64_t preferred) {
  uint64_t alignment = device->caps.host_alignment;
  if (alignment < HOST_ALIGNMENT) alignment = HOST_ALIGNMENT;
  return (size_t)(alignment > preferred ? alignment : preferred);
}

/* Allocates zeroed host memory, aligned for the device. The distance to the
 * start of the allocation is stored before the memory. */
static unsigned char *host_allocate(const vyre_device *device, size_t size,
                                    uint64_t preferred) {
  size_t alignment = alignment_of(device, preferred),
         extra = alignment + sizeof(size_t);
  if (size > SIZE_MAX - extra) return NULL;
  unsigned char *raw = vyre__resize(device->allocator, NULL, 0, size + extra);
  if (!raw) return NULL;
  size_t gap = extra - (uintptr_t)(raw + extra) % alignment;
  memcpy(raw + gap - sizeof gap, &gap, sizeof gap);
  memset(raw + gap, 0, size);
  return raw + gap;
}

static void host_release(const vyre_device *device, unsigned char *memory,
                         size_t size, uint64_t preferred) {
  if (!memory) return;
  size_t gap, extra = alignment_of(device, preferred) + sizeof(size_t);
  memcpy(&gap, memory - sizeof gap, sizeof gap);
  vyre__resize(device->allocator, memory - gap, size + extra, 0);
}

static size_t buffer_object_size(const vyre_device *device) {
  size_t size = device->backend->buffer_size;
  return size ? size : sizeof(vyre__buffer);
}

static vyre_code no_device_memory(const vyre_device *device, uint64_t size,
                                  vyre_status *st) {
  if (vyre__memory_is_injected()) {
    return VYRE_FAIL_WITH(
        st, VYRE_DEVICE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED,
        "device buffers", VYRE_NUMBERS({"requested_bytes", size}),
        "disarm it: vyre_context_inject_faults(context, \"\"), or unset "
        "VYRE_FAULTS",
        "device '%s' has no memory for a device buffer of %llu bytes: the "
        "fault 'allocation' was injected here",
        vyre_device_name(device), (unsigned long long)size);
  }
  return VYRE_FAIL_WITH(
      st, VYRE_DEVICE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED,
      "device buffers", VYRE_NUMBERS({"requested_bytes", size}),
      "free device buffers, or split the data",
      "device '%s' has no memory for a device buffer of %llu bytes",
      vyre_device_name(device), (unsigned long long)size);
}

/* Allocates or imports the memory of @p buffer. On entry it has its size, and
 * in `host` the memory to import, or NULL. */
static vyre_code buffer_init(vyre_device *device, vyre__buffer *buffer,
                             vyre_status *st) {
  if (device->backend->buffer_init) {
    return device->backend->buffer_init(device, buffer, st);
  }
  if (buffer->host) return VYRE_OK;
  if (buffer->size <= SIZE_MAX) {
    buffer->host =
        host_allocate(device, (size_t)buffer->size, buffer->alignment);
  }
  return buffer->host ? VYRE_OK : no_device_memory(device, buffer->size, st);
}

static void buffer_free(vyre_device *device, vyre__buffer *buffer) {
  void (*release)(void *) = buffer->release;
  void *release_user_data = buffer->release_user_data;
  VYRE__COUNT(device, live_device_buffers, UINT64_MAX);
  VYRE__COUNT(device, live_device_buffer_bytes, 0 - buffer->size);
  if (device->backend->buffer_deinit) {
    device->backend->buffer_deinit(device, buffer);
  } else if (!buffer->is_imported) {
    host_release(device, buffer->host, (size_t)buffer->size, buffer->alignment);
  }
  vyre__resize(device->allocator, buffer, buffer_object_size(device), 0);
  if (release) release(release_user_data);
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
    size_t chunk = size < sizeof zeros ? size : sizeof zeros;
    VYRE_TRY(vyre__buffer_write(device, buffer, offset, zeros, chunk, st));
    offset += chunk;
    size -= chunk;
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
  void *staging = bound->out;
  if (!staging) staging = vyre_arena_alloc(scratch, size, 64);
  if (!staging) return vyre__no_memory(st, "vyre_dispatch", "bytes", size);
  VYRE_TRY(vyre__buffer_read(device, bound->in_buffer->buffer, bound->in_offset,
                             staging, size, st));
  if (bound->out) return VYRE_OK;
  return vyre__buffer_write(device, bound->out_buffer->buffer,
                            bound->out_offset, staging, size, st);
}

/* --- handles ------------------------------------------------------------ */

static vyre__device_buffer *entry_at(const vyre__device_buffers *table,
                                     uint32_t index) {
  if (index >= (uint32_t)VYRE__CHUNKS * VYRE__CHUNK_SLOTS) return NULL;
  vyre__device_buffer *chunk = atomic_load_explicit(
      &table->chunks[index / VYRE__CHUNK_SLOTS], memory_order_acquire);
  return chunk ? chunk + index % VYRE__CHUNK_SLOTS : NULL;
}

/* Reserves a table entry for a new buffer, under the lock of the table. Its
 * handle is not valid yet. */
static vyre_code allocate_entry(vyre_device *device, uint32_t *out,
                                vyre_status *st) {
  vyre__device_buffers *table = &device->state->buffers;
  if (table->first_free) {
    *out = table->first_free - 1;
    table->first_free = entry_at(table, *out)->next_free;
    return VYRE_OK;
  }
  uint32_t index = table->count;
  if (index == (uint32_t)VYRE__CHUNKS * VYRE__CHUNK_SLOTS) {
    return VYRE_FAIL_WITH(
        st, VYRE_DEVICE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED,
        "device buffers", VYRE_NUMBERS({"device_buffers", index}),
        "free device buffers, or combine several into one",
        "device '%s' has %u device buffers, which is the maximum",
        vyre_device_name(device), index);
  }
  _Atomic(vyre__device_buffer *) *chunk =
      &table->chunks[index / VYRE__CHUNK_SLOTS];
  if (!atomic_load(chunk)) {
    size_t bytes = VYRE__CHUNK_SLOTS * sizeof(vyre__device_buffer);
    vyre__device_buffer *entries = vyre__alloc_zeroed(device->allocator, bytes);
    if (!entries) {
      return vyre__no_memory(st, "vyre_buffer_create", "handles",
                             VYRE__CHUNK_SLOTS);
    }
    atomic_store_explicit(chunk, entries, memory_order_release);
  }
  table->count++;
  *out = index;
  return VYRE_OK;
}

/* Frees the buffer of @p entry and puts the entry on the free list with the
 * next generation. An entry that has used all generations is never reused. */
static void recycle(vyre_device *device, vyre__device_buffer *entry,
                    uint64_t state) {
  vyre__device_buffers *table = &device->state->buffers;
  buffer_free(device, entry->buffer);
  entry->buffer = NULL;
  uint32_t generation = (uint32_t)(state >> GENERATION_SHIFT) + 1;
  if (generation == UINT32_MAX) return;
  atomic_store(&entry->state, (uint64_t)generation << GENERATION_SHIFT);
  pthread_mutex_lock(&table->lock);
  for (uint32_t i = 0; i < VYRE__CHUNKS; i++) {
    vyre__device_buffer *chunk = atomic_load(&table->chunks[i]);
    if (!chunk || entry < chunk || entry >= chunk + VYRE__CHUNK_SLOTS) continue;
    entry->next_free = table->first_free;
    table->first_free = i * VYRE__CHUNK_SLOTS + (uint32_t)(entry - chunk) + 1;
    break;
  }
  pthread_mutex_unlock(&table->lock);
}

static vyre_code foreign_handle(const vyre_device *device, vyre_buffer handle,
                                vyre_status *st) {
  if (handle.owner == 0) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_STALE_HANDLE,
                     "create a buffer with vyre_buffer_create",
                     "the buffer handle is zero");
  }
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_FOREIGN_HANDLE, NULL,
      VYRE_NUMBERS({"owner", handle.owner}, {"device", device->state->id}),
      "use the buffer on the device that created it, or upload the data to a "
      "buffer of this device",
      "the buffer belongs to device %llu, but this is device %llu ('%s')",
      (unsigned long long)handle.owner, (unsigned long long)device->state->id,
      vyre_device_name(device));
}

static vyre_code stale_handle(const vyre_device *device, vyre_buffer handle,
                              vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_STALE_HANDLE, NULL,
      VYRE_NUMBERS({"device_buffer", handle.id}),
      "do not use a handle after vyre_buffer_destroy",
      "device buffer %llx of device '%s' was freed or never existed",
      (unsigned long long)handle.id, vyre_device_name(device));
}

vyre_code vyre__device_buffer_acquire(vyre_device *device, vyre_buffer handle,
                                      vyre__device_buffer **out,
                                      vyre_status *st) {
  *out = NULL;
  if (handle.owner != device->state->id)
    return foreign_handle(device, handle, st);
  vyre__device_buffer *entry =
      entry_at(&device->state->buffers, (uint32_t)handle.id);
  if (!entry) return stale_handle(device, handle, st);
  uint64_t state = atomic_load(&entry->state);
  do {
    if (state >> GENERATION_SHIFT != handle.id >> GENERATION_SHIFT ||
        !(state & VALID) || (state & USERS) == USERS) {
      return stale_handle(device, handle, st);
    }
  } while (!atomic_compare_exchange_weak(&entry->state, &state, state + 1));
  *out = entry;
  return VYRE_OK;
}

void vyre__device_buffer_release(vyre_device *device,
                                 vyre__device_buffer *entry) {
  uint64_t state = atomic_fetch_sub(&entry->state, 1) - 1;
  if ((state & VALID_OR_USED) == 0) recycle(device, entry, state);
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

/* --- public functions --------------------------------------------------- */

static vyre_code create(vyre_device *device, void *memory, uint64_t size,
                        uint64_t alignment, vyre_buffer *out, vyre_status *st) {
  VYRE_TRY(vyre__device_check(device, st));
  if (size > device->caps.max_buffer_bytes) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
        VYRE_NUMBERS({"requested_bytes", size},
                     {"max_bytes", device->caps.max_buffer_bytes}),
        "split the data into several buffers",
        "a device buffer of %llu bytes was requested; device '%s' supports at "
        "most %llu",
        (unsigned long long)size, vyre_device_name(device),
        (unsigned long long)device->caps.max_buffer_bytes);
  }
  vyre__buffer *buffer =
      vyre__alloc_zeroed(device->allocator, buffer_object_size(device));
  if (!buffer) return vyre__no_memory(st, "vyre_buffer_create", "buffers", 1);
  *buffer = (vyre__buffer){.size = size,
                           .alignment = alignment,
                           .host = memory,
                           .is_imported = memory != NULL};
  vyre_code code = buffer_init(device, buffer, st);
  if (code != VYRE_OK) {
    vyre__resize(device->allocator, buffer, buffer_object_size(device), 0);
    return code;
  }
  VYRE__COUNT(device, live_device_buffers, 1);
  VYRE__COUNT(device, live_device_buffer_bytes, size);
  vyre__device_buffers *table = &device->state->buffers;
  uint32_t index;
  pthread_mutex_lock(&table->lock);
  code = allocate_entry(device, &index, st);
  pthread_mutex_unlock(&table->lock);
  if (code != VYRE_OK) {
    buffer_free(device, buffer);
    return code;
  }
  vyre__device_buffer *entry = entry_at(table, index);
  entry->buffer = buffer;
  uint64_t generation = atomic_load(&entry->state) >> GENERATION_SHIFT;
  if (generation == 0) generation = 1; /* a handle is never all zero */
  atomic_store(&entry->state, generation << GENERATION_SHIFT | VALID);
  *out =
      (vyre_buffer){device->state->id, generation << GENERATION_SHIFT | index};
  return VYRE_OK;
}

vyre_code vyre_buffer_create(vyre_device *device, uint64_t size,
                             vyre_buffer *out, vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, device);
  uint64_t alignment = atomic_load(&device->state->buffer_alignment);
  return create(device, NULL, size, alignment, out, st);
}

vyre_code vyre_buffer_create_aligned(vyre_device *device, uint64_t size,
                                     uint64_t alignment, vyre_buffer *out,
                                     vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, device);
  if (alignment > 0 && alignment <= VYRE__MAX_PREFERRED_ALIGNMENT &&
      (alignment & (alignment - 1)) == 0) {
    return create(device, NULL, size, alignment, out, st);
  }
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "alignment",
      VYRE_NUMBERS({"alignment", alignment},
                   {"max_alignment", VYRE__MAX_PREFERRED_ALIGNMENT}),
      "use a power of two of at most 2097152",
      "%s: the alignment is %llu; expected a power of two of at most %d",
      __func__, (unsigned long long)alignment, VYRE__MAX_PREFERRED_ALIGNMENT);
}

void vyre__device_buffers_prefer(vyre_device *device,
                                 const vyre_binding_plan *plan) {
  _Atomic uint64_t *alignment = &device->state->buffer_alignment;
  uint64_t wanted = 0, now = atomic_load(alignment);
  for (size_t i = 0; i < plan->binding_count; i++) {
    if (plan->bindings[i].preferred_alignment > wanted)
      wanted = plan->bindings[i].preferred_alignment;
  }
  if (wanted > VYRE__MAX_SHARED_ALIGNMENT) wanted = VYRE__MAX_SHARED_ALIGNMENT;
  while (now < wanted &&
         !atomic_compare_exchange_weak(alignment, &now, wanted)) {
  }
}

vyre_code vyre__device_buffer_create(vyre_device *device, uint64_t size,
                                     uint64_t alignment, vyre_buffer *out,
                                     vyre_status *st) {
  *out = (vyre_buffer){0};
  return create(device, NULL, size, alignment, out, st);
}

vyre_code vyre_buffer_import(vyre_device *device, void *memory, uint64_t size,
                             vyre_buffer *out, vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE_BOTH(st, device, memory);
  uint64_t alignment = device->caps.host_alignment;
  if (!device->caps.borrows_host_memory && !device->caps.imports_host_memory) {
    return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                     "create a buffer with vyre_buffer_create and upload to it",
                     "device '%s' cannot use host memory",
                     vyre_device_name(device));
  }
  if (alignment > 1 && (uintptr_t)memory % alignment != 0) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
        VYRE_NUMBERS({"alignment", alignment}),
        "allocate the memory with vyre_host_alloc",
        "memory to import must be aligned to %llu bytes on device '%s'",
        (unsigned long long)alignment, vyre_device_name(device));
  }
  /* an empty range cannot be mapped */
  return create(device, size > 0 ? memory : NULL, size, 0, out, st);
}

vyre_code vyre__device_buffer_import(vyre_device *device,
                                     const vyre__imported_memory *memory,
                                     vyre_buffer *out, vyre_status *st) {
  vyre_code code =
      memory->data ? vyre_buffer_import(device, memory->data, memory->size, out,
                                        vyre__status_open(st))
                   : vyre_buffer_create(device, 0, out, vyre__status_open(st));
  if (code != VYRE_OK) return code;
  /* No other thread has the handle yet. */
  vyre__device_buffer *entry =
      entry_at(&device->state->buffers, (uint32_t)out->id);
  entry->buffer->is_read_only = memory->is_read_only;
  entry->buffer->release = memory->release;
  entry->buffer->release_user_data = memory->release_user_data;
  return VYRE_OK;
}

vyre_code vyre__device_buffer_read_only(const char *writer, const char *name,
                                        vyre_status *st) {
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_READ_ONLY,
                   "write to another buffer, and copy the contents to it first "
                   "if they are needed",
                   "%s '%.100s' would write a device buffer that was "
                   "imported as read-only",
                   writer, name);
}

vyre_code vyre_buffer_destroy(vyre_device *device, vyre_buffer buffer,
                              vyre_status *st) {
  vyre__status_begin(st);
  vyre__device_buffer *entry;
  VYRE_REQUIRE(st, device);
  VYRE_TRY(vyre__device_buffer_acquire(device, buffer, &entry, st));
  uint64_t state = atomic_fetch_and(&entry->state, ~VALID);
  if ((state & USERS) > 1) vyre__prepared_list_revoke(device, entry);
  vyre__device_buffer_release(device, entry);
  /* Of two concurrent calls, the second one fails. */
  return state & VALID ? VYRE_OK : stale_handle(device, buffer, st);
}

vyre_code vyre_buffer_size(vyre_device *device, vyre_buffer buffer,
                           uint64_t *out, vyre_status *st) {
  vyre__status_begin(st);
  vyre__device_buffer *entry;
  VYRE_REQUIRE(st, out);
  *out = 0;
  VYRE_REQUIRE(st, device);
  VYRE_TRY(vyre__device_buffer_acquire(device, buffer, &entry, st));
  *out = entry->buffer->size;
  vyre__device_buffer_release(device, entry);
  return VYRE_OK;
}

vyre_code vyre__device_buffer_not_visible(const vyre_device *device,
                                          vyre_status *st) {
  return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                   "download the buffer to host memory",
                   "the memory of the buffer is visible to device '%s' only",
                   vyre_device_name(device));
}

vyre_code vyre_buffer_map(vyre_device *device, vyre_buffer buffer, void **out,
                          vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, device);
  vyre__device_buffer *entry;
  VYRE_TRY(vyre__device_buffer_acquire(device, buffer, &entry, st));
  *out = entry->buffer->host;
  bool is_visible = *out || entry->buffer->size == 0;
  vyre__device_buffer_release(device, entry);
  if (!is_visible) return vyre__device_buffer_not_visible(device, st);
  return VYRE_OK;
}

/* --- transfers ---------------------------------------------------------- */

static vyre_code check_range(const vyre__buffer *buffer, const vyre_transfer *t,
                             size_t item, vyre_status *st) {
  if (t->offset > buffer->size || t->size > buffer->size - t->offset) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
        VYRE_NUMBERS({"offset", t->offset}, {"size", t->size},
                     {"buffer_bytes", buffer->size}, {"item", item}),
        "keep the range inside the buffer",
        "transfer %zu: %zu bytes at offset %llu, in a buffer of %llu bytes",
        item, t->size, (unsigned long long)t->offset,
        (unsigned long long)buffer->size);
  }
  if (!t->data && t->size > 0) {
    return VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                          NULL, VYRE_NUMBERS({"size", t->size}, {"item", item}),
                          "set data to the address of the bytes",
                          "transfer %zu: data is NULL, but size is %zu", item,
                          t->size);
  }
  return VYRE_OK;
}

/* Checks one transfer, and executes it if @p is_executed. */
static vyre_code transfer(vyre_device *device, const vyre_transfer *t,
                          size_t item, bool is_upload, bool is_executed,
                          vyre_status *st) {
  vyre__device_buffer *entry;
  VYRE_TRY(vyre__device_buffer_acquire(device, t->buffer, &entry, st));
  vyre_code code = check_range(entry->buffer, t, item, st);
  if (code == VYRE_OK && is_upload && entry->buffer->is_read_only) {
    code = vyre__device_buffer_read_only("call", "vyre_buffer_upload", st);
  }
  if (code == VYRE_OK && is_executed) {
    code = is_upload ? vyre__buffer_write(device, entry->buffer, t->offset,
                                          t->data, t->size, st)
                     : vyre__buffer_read(device, entry->buffer, t->offset,
                                         t->data, t->size, st);
  }
  vyre__device_buffer_release(device, entry);
  return code;
}

static vyre_code transfers(vyre_device *device, const vyre_transfer *list,
                           size_t count, bool is_upload, vyre_status *st) {
  VYRE_TRY(vyre__device_check(device, st));
  for (int is_executed = count < 2; is_executed < 2; is_executed++) {
    for (size_t i = 0; i < count; i++) {
      vyre_code code =
          transfer(device, &list[i], i, is_upload, is_executed, st);
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
  VYRE_REQUIRE(st, device);
  vyre_transfer one = {buffer, offset, (void *)(uintptr_t)data, size};
  return transfers(device, &one, 1, true, st);
}

vyre_code vyre_buffer_download(vyre_device *device, vyre_buffer buffer,
                               uint64_t offset, void *data, size_t size,
                               vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, device);
  vyre_transfer one = {buffer, offset, data, size};
  return transfers(device, &one, 1, false, st);
}

vyre_code vyre_buffer_upload_many(vyre_device *device,
                                  const vyre_transfer *list, size_t count,
                                  vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, device);
  if (!list && count > 0) return vyre__null_argument(st, __func__, "transfers");
  return transfers(device, list, count, true, st);
}

vyre_code vyre_buffer_download_many(vyre_device *device,
                                    const vyre_transfer *list, size_t count,
                                    vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, device);
  if (!list && count > 0) return vyre__null_argument(st, __func__, "transfers");
  return transfers(device, list, count, false, st);
}

vyre_code vyre_host_alloc(vyre_device *device, size_t size, void **out,
                          vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, device);
  *out = host_allocate(device, size, 0);
  return *out ? VYRE_OK : vyre__no_memory(st, __func__, "bytes", size);
}

void vyre_host_free(vyre_device *device, void *memory, size_t size) {
  if (device) host_release(device, memory, size, 0);
}
