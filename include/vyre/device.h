/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/device.h
 *  Devices: what compiles and runs kernels. */
#ifndef VYRE_DEVICE_H
#define VYRE_DEVICE_H

#include <stddef.h>

#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/status.h"

/** An opened device. Threads: safe. */
typedef struct vyre_device vyre_device;

VYRE_BEGIN

/** Opens a device: "auto" takes the best there is (vyre_device_name says which),
 *  a name takes that one or fails. There is "ref", the reference: an interpreter
 *  that is always there.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_device_release). On failure
 *             *out is NULL.
 *  Lifetime:  @p name is borrowed for the call; @p allocator must outlive the
 *             device and all that is made from it.
 *  Threads:   safe.          Blocks: on the allocator only.
 *  Errors:    VYRE_UNSUPPORTED_FEATURE (device_unavailable) for a name that is
 *             not there; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_device_open(const char *name,
                                                   vyre_allocator allocator,
                                                   vyre_device **out,
                                                   vyre_status *st);

/** Keeps a device: one more vyre_device_release is due. Returns it.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_device *vyre_device_retain(vyre_device *device);

/** Lets go of a device; the last one closes it. Pipelines keep theirs. NULL is
 *  fine.  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API void vyre_device_release(vyre_device *device);

/** The name that opens this device ("ref"), also if "auto" chose it. Static
 *  storage.  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_device_name(const vyre_device *device);

/** The name of device @p index ("ref"), best first; NULL beyond the last. Static
 *  storage.  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_device_list(size_t index);

VYRE_END

#endif
