/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/buffer.h
 *  Device buffers: memory on a device that outlives a dispatch.
 *
 *      vyre_buffer x;
 *      vyre_code code = vyre_buffer_create(device, bytes, &x, &st);
 *      code = vyre_buffer_upload(device, x, 0, data, bytes, &st);
 *      vyre_input inputs[] = {{.buffer = x}}; */
#ifndef VYRE_BUFFER_H
#define VYRE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/device.h"
#include "vyre/export.h"
#include "vyre/status.h"

/** Handle of a device buffer. A plain value: it can be copied, compared and
 *  kept longer than the buffer. Functions reject handles of destroyed buffers
 *  and of other devices. A zeroed handle refers to no buffer. */
typedef struct vyre_buffer {
  uint64_t owner; /* vyre_device_id of the device */
  uint64_t id;    /* index and generation; never reused */
} vyre_buffer;

/** One transfer between host memory and a device buffer. */
typedef struct vyre_transfer {
  vyre_buffer buffer; /* device buffer */
  uint64_t offset;    /* first byte in the device buffer */
  void *data;         /* host memory; an upload only reads it */
  size_t size;        /* bytes to copy */
} vyre_transfer;

VYRE_BEGIN

/** Creates a device buffer of @p size zero bytes. The size may be 0. Its address
 *  is a multiple of 64, and of the largest align(N), up to 4096, of the kernels
 *  that were compiled for the device before.
 *  Ownership: the caller owns *out (vyre_buffer_destroy; closing the device
 *             frees it too). On failure *out is zeroed.
 *  Threads:   safe.
 *  Blocks:    on the memory allocation of the device.
 *  Errors:    VYRE_INVALID_ARGUMENT above max_buffer_bytes;
 *             VYRE_DEVICE_OUT_OF_MEMORY if the memory cannot be allocated;
 *             VYRE_OUT_OF_MEMORY if the handle cannot; VYRE_DEVICE_LOST. */
VYRE_API VYRE_NODISCARD vyre_code vyre_buffer_create(vyre_device *device,
                                                     uint64_t size,
                                                     vyre_buffer *out,
                                                     vyre_status *st);

/** Creates a device buffer like vyre_buffer_create, at an address that is a
 *  multiple of @p alignment, such as vyre_binding.preferred_alignment.
 *  Ownership, threads, blocks: as vyre_buffer_create.
 *  Errors:    VYRE_INVALID_ARGUMENT if @p alignment is not a power of two up to
 *             2 MiB; those of vyre_buffer_create. */
VYRE_API VYRE_NODISCARD vyre_code vyre_buffer_create_aligned(
    vyre_device *device, uint64_t size, uint64_t alignment, vyre_buffer *out,
    vyre_status *st);

/** Creates a device buffer that uses host memory of the caller, without a
 *  copy. Between dispatches, the host and kernels see each other's writes. The
 *  size may be 0.
 *  Ownership: the caller owns *out and keeps owning the memory.
 *  Lifetime:  the memory must live until vyre_buffer_destroy has returned and
 *             all dispatches that use the buffer have finished.
 *  Threads:   safe.
 *  Blocks:    on the device.
 *  Errors:    VYRE_INVALID_ARGUMENT for a NULL argument, or memory that is not
 *             aligned to host_alignment; VYRE_UNSUPPORTED_FEATURE if the
 *             device cannot import host memory; those of vyre_buffer_create. */
VYRE_API VYRE_NODISCARD vyre_code vyre_buffer_import(vyre_device *device,
                                                     void *memory,
                                                     uint64_t size,
                                                     vyre_buffer *out,
                                                     vyre_status *st);

/** Destroys a device buffer. The handle is invalid as soon as the call
 *  returns. The memory is freed when the last dispatch that uses it has
 *  finished.
 *  Threads:   safe.
 *  Blocks:    never.
 *  Errors:    VYRE_INVALID_ARGUMENT (stale_handle, foreign_handle). */
VYRE_API vyre_code vyre_buffer_destroy(vyre_device *device, vyre_buffer buffer,
                                       vyre_status *st);

/** Stores the size of a device buffer, in bytes, in *out.
 *  Threads:   safe.
 *  Blocks:    never.
 *  Errors:    VYRE_INVALID_ARGUMENT (stale_handle, foreign_handle). */
VYRE_API VYRE_NODISCARD vyre_code vyre_buffer_size(vyre_device *device,
                                                   vyre_buffer buffer,
                                                   uint64_t *out,
                                                   vyre_status *st);

/** Stores the host address of the first byte of a device buffer in *out. The
 *  host can read and write the memory there while no dispatch uses the buffer.
 *  A buffer of 0 bytes may have the address NULL.
 *  Lifetime:  the address is valid until vyre_buffer_destroy.
 *  Threads:   safe.
 *  Blocks:    never.
 *  Errors:    VYRE_INVALID_ARGUMENT (stale_handle, foreign_handle);
 *             VYRE_UNSUPPORTED_FEATURE (not_supported) if the memory is
 *             visible to the device only. */
VYRE_API VYRE_NODISCARD vyre_code vyre_buffer_map(vyre_device *device,
                                                  vyre_buffer buffer,
                                                  void **out, vyre_status *st);

/** Copies @p size bytes of host memory into a device buffer, starting at @p
 *  offset.
 *  Lifetime:  @p data is borrowed for the call.
 *  Threads:   safe, unless a dispatch uses the buffer at the same time.
 *  Blocks:    until the copy has finished.
 *  Errors:    VYRE_INVALID_ARGUMENT for a range outside the buffer or an
 *             invalid handle; VYRE_DEVICE_OUT_OF_MEMORY; VYRE_DEVICE_LOST. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_buffer_upload(vyre_device *device, vyre_buffer buffer, uint64_t offset,
                   const void *data, size_t size, vyre_status *st);

/** Copies @p size bytes of a device buffer, starting at @p offset, into host
 *  memory. Lifetime, threads, blocks, errors: as vyre_buffer_upload. */
VYRE_API VYRE_NODISCARD vyre_code vyre_buffer_download(vyre_device *device,
                                                       vyre_buffer buffer,
                                                       uint64_t offset,
                                                       void *data, size_t size,
                                                       vyre_status *st);

/** Uploads @p count ranges in one call, in array order. All transfers are
 *  checked before the first byte is copied. On failure the status number
 *  `item` is the index of the transfer. Lifetime, threads, blocks, errors: as
 *  vyre_buffer_upload. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_buffer_upload_many(vyre_device *device, const vyre_transfer *transfers,
                        size_t count, vyre_status *st);

/** Downloads @p count ranges in one call; otherwise as
 *  vyre_buffer_upload_many. Lifetime, threads, blocks, errors: as
 *  vyre_buffer_upload. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_buffer_download_many(vyre_device *device, const vyre_transfer *transfers,
                          size_t count, vyre_status *st);

/** Allocates zeroed host memory that @p device can use without a copy:
 *  directly in a dispatch (borrows_host_memory), or through vyre_buffer_import
 *  (imports_host_memory).
 *  Ownership: the caller owns the memory (vyre_host_free, with the same size).
 *  Threads:   safe.
 *  Blocks:    on the allocator.
 *  Errors:    VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_host_alloc(vyre_device *device,
                                                  size_t size, void **out,
                                                  vyre_status *st);

/** Frees memory from vyre_host_alloc. @p size is the size of the allocation.
 *  Accepts NULL.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API void vyre_host_free(vyre_device *device, void *memory, size_t size);

VYRE_END

#endif
