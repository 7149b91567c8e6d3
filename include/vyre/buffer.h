/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/resident.h
 *  Buffers that stay on a device between dispatches.
 *
 *      vyre_buffer x;
 *      vyre_code code = vyre_buffer_create(device, bytes, &x, &st);
 *      code = vyre_buffer_upload(device, x, 0, data, bytes, &st);
 *      vyre_input inputs[] = {{.resident = x}};
 */
#ifndef VYRE_BUFFER_H
#define VYRE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/device.h"
#include "vyre/export.h"
#include "vyre/status.h"

/** A buffer on a device, as a plain value: it may be copied, compared and kept
 *  for longer than the buffer. A handle of another device, or of a buffer that
 *  was freed, is refused wherever it is used. Zeroed: none. */
typedef struct vyre_buffer {
  uint64_t owner; /* vyre_device_id */
  uint64_t id;    /* place and generation; never used again */
} vyre_buffer;

/** One of many transfers. */
typedef struct vyre_transfer {
  vyre_buffer buffer;
  uint64_t offset; /* in the buffer */
  void *data;      /* of the host; only read by an upload */
  size_t size;
} vyre_transfer;

VYRE_BEGIN

/** Makes a buffer of @p size bytes, all zero. A size of 0 is fine.
 *  Ownership: *out is the caller's (vyre_buffer_destroy, or the device's end);
 *             zeroed on failure.
 *  Threads:   safe.  Blocks: on the device's memory.
 *  Errors:    VYRE_INVALID_ARGUMENT for more than max_buffer_bytes;
 *             VYRE_DEVICE_OUT_OF_MEMORY for its bytes, VYRE_OUT_OF_MEMORY for its
 *             handle; VYRE_DEVICE_LOST. */
VYRE_API VYRE_NODISCARD vyre_code vyre_buffer_create(vyre_device *device,
                                                     uint64_t size,
                                                     vyre_buffer *out,
                                                     vyre_status *st);

/** Makes a buffer out of the caller's own memory, without a copy: what kernels
 *  write is seen there, and the other way round, between dispatches. A size of
 *  0 is fine.
 *  Ownership: *out is the caller's; the memory stays so.
 *  Lifetime:  the memory must live until vyre_buffer_destroy has returned and
 *             every dispatch that used it is over.
 *  Threads:   safe.  Blocks: on the device.
 *  Errors:    VYRE_INVALID_ARGUMENT for a NULL, or memory that is not aligned to
 *             host_alignment; VYRE_UNSUPPORTED_FEATURE if the device cannot;
 *             as vyre_buffer_create. */
VYRE_API VYRE_NODISCARD vyre_code vyre_buffer_import(vyre_device *device,
                                                     void *memory,
                                                     uint64_t size,
                                                     vyre_buffer *out,
                                                     vyre_status *st);

/** Frees a buffer. The handle is dead at once; memory that a dispatch still
 *  uses is kept until that is over.
 *  Threads: safe.  Blocks: never.
 *  Errors:  VYRE_INVALID_ARGUMENT (stale_handle, foreign_handle). */
VYRE_API VYRE_NODISCARD vyre_code vyre_buffer_destroy(vyre_device *device,
                                                      vyre_buffer buffer,
                                                      vyre_status *st);

/** Bytes of a buffer.
 *  Threads: safe.  Blocks: never.
 *  Errors:  VYRE_INVALID_ARGUMENT (stale_handle, foreign_handle). */
VYRE_API VYRE_NODISCARD vyre_code vyre_buffer_size(vyre_device *device,
                                                   vyre_buffer buffer,
                                                   uint64_t *out,
                                                   vyre_status *st);

/** Copies bytes of the host into a buffer from @p offset on.
 *  Lifetime: @p data is borrowed for the call.
 *  Threads:  safe; not while a dispatch uses the buffer.
 *  Blocks:   until the bytes are there.
 *  Errors:   VYRE_INVALID_ARGUMENT for a range that is not in the buffer, a dead
 *            handle; VYRE_DEVICE_OUT_OF_MEMORY; VYRE_DEVICE_LOST. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_buffer_upload(vyre_device *device, vyre_buffer buffer, uint64_t offset,
                   const void *data, size_t size, vyre_status *st);

/** Copies bytes of a buffer from @p offset on to the host.
 *  All else as vyre_buffer_upload. */
VYRE_API VYRE_NODISCARD vyre_code vyre_buffer_download(vyre_device *device,
                                                       vyre_buffer buffer,
                                                       uint64_t offset,
                                                       void *data, size_t size,
                                                       vyre_status *st);

/** Many transfers as one, in their order; all are checked before the first byte
 *  is copied. A failure has the number `item`.
 *  All else as vyre_buffer_upload. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_buffer_upload_many(vyre_device *device, const vyre_transfer *transfers,
                        size_t count, vyre_status *st);
VYRE_API VYRE_NODISCARD vyre_code
vyre_buffer_download_many(vyre_device *device, const vyre_transfer *transfers,
                          size_t count, vyre_status *st);

/** Memory of the host that @p device takes without a copy, zeroed: as it is
 *  (borrows_host_memory), or by vyre_buffer_import (imports_host_memory).
 *  Ownership: the caller's (vyre_host_free, with the same size).
 *  Threads:   safe.  Blocks: on the allocator.
 *  Errors:    VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_host_alloc(vyre_device *device,
                                                  size_t size, void **out,
                                                  vyre_status *st);
VYRE_API void vyre_host_free(vyre_device *device, void *memory, size_t size);

VYRE_END

#endif
