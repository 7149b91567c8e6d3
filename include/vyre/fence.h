/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/fence.h
 *  Fences: completion and result of submitted work. */
#ifndef VYRE_FENCE_H
#define VYRE_FENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/status.h"

/** Completion state of submitted work. Reference counted. Threads: safe.
 *  Work that was not done at a fork ends in the parent process only. In the
 *  child its fence counts as done, with the error VYRE_DEVICE_LOST. */
typedef struct vyre_fence vyre_fence;

/** Timeout value: wait without a limit. */
#define VYRE_WAIT_FOREVER UINT64_MAX

VYRE_BEGIN

/** Adds a reference, which needs one more vyre_fence_release. Returns @p
 *  fence.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_fence *vyre_fence_retain(vyre_fence *fence);

/** Drops a reference. The work continues, and keeps all objects that it uses.
 *  Accepts NULL.
 *  Threads:   safe.
 *  Blocks:    on the trace file, if the fence holds the last reference to the
 *             context.
 *  Errors:    none. */
VYRE_API void vyre_fence_release(vyre_fence *fence);

/** Returns true when the work has finished.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_fence_is_done(const vyre_fence *fence);

/** Waits until the work has finished and returns its result. Can be called
 *  again, with the same result.
 *  Threads:   safe.
 *  Blocks:    for at most @p timeout_ns.
 *  Errors:    VYRE_DISPATCH_FAILED (timed_out) if the work is still running;
 *             it continues. VYRE_DEVICE_LOST in a forked child, if the work
 *             belongs to its parent. Otherwise the error of the work. */
VYRE_API VYRE_NODISCARD vyre_code vyre_fence_wait(vyre_fence *fence,
                                                  uint64_t timeout_ns,
                                                  vyre_status *st);

/** Waits until one of @p count fences is done and stores the index of the
 *  first such fence in *out. Does not report its result.
 *  Threads:   safe.
 *  Blocks:    for at most @p timeout_ns.
 *  Errors:    VYRE_INVALID_ARGUMENT for a NULL argument or no fences;
 *             VYRE_DISPATCH_FAILED (timed_out). */
VYRE_API VYRE_NODISCARD vyre_code vyre_fence_wait_any(vyre_fence *const *fences,
                                                      size_t count,
                                                      uint64_t timeout_ns,
                                                      size_t *out,
                                                      vyre_status *st);

/** Sets a callback that is called once when the work has finished: on a thread
 *  of the library, or immediately if it has already finished. The callback
 *  must not wait for other work of the device.
 *  Lifetime:  @p user_data must live until the callback has returned.
 *  Threads:   safe.
 *  Blocks:    never.
 *  Errors:    VYRE_INVALID_ARGUMENT for a NULL argument or a second callback;
 *             VYRE_DEVICE_LOST as for vyre_fence_wait. */
VYRE_API VYRE_NODISCARD vyre_code vyre_fence_set_callback(
    vyre_fence *fence, void (*done)(void *user_data, vyre_fence *fence),
    void *user_data, vyre_status *st);

/** Returns a file descriptor for event loops that becomes readable when the
 *  work has finished. Created on the first call.
 *  Ownership: owned by the fence. Do not read from it or close it.
 *  Lifetime:  valid as long as the fence.
 *  Threads:   safe.
 *  Blocks:    never.
 *  Errors:    VYRE_OUT_OF_MEMORY if no descriptor is available;
 *             VYRE_DEVICE_LOST as for vyre_fence_wait. */
VYRE_API VYRE_NODISCARD vyre_code vyre_fence_fd(vyre_fence *fence, int *out,
                                                vyre_status *st);

VYRE_END

#endif
