/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/fence.h
 *  Fences: whether work that was submitted is over, and how it ended. */
#ifndef VYRE_FENCE_H
#define VYRE_FENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/status.h"

/** Threads: safe. */
typedef struct vyre_fence vyre_fence;

/** Wait for as long as it takes. */
#define VYRE_WAIT_FOREVER UINT64_MAX

VYRE_BEGIN

/** Keeps a fence: one more vyre_fence_release is due. Returns it.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_fence *vyre_fence_retain(vyre_fence *fence);

/** Lets go of a fence. The work goes on, and all it uses is kept until it is
 *  over. NULL is fine.  Threads: safe.  Blocks: if it is the last that holds the
 *  context, on the trace file.  Errors: none. */
VYRE_API void vyre_fence_release(vyre_fence *fence);

/** Whether the work is over.  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_fence_is_done(const vyre_fence *fence);

/** Waits until the work is over, at most @p timeout_ns, and tells how it ended:
 *  the same every time.
 *  Threads: safe.  Blocks: as it says.
 *  Errors:  VYRE_DISPATCH_FAILED (timed_out) if it is not over, which changes
 *           nothing: it goes on, and may be waited for again; else what the work
 *           failed with. */
VYRE_API VYRE_NODISCARD vyre_code vyre_fence_wait(vyre_fence *fence,
                                                  uint64_t timeout_ns,
                                                  vyre_status *st);

/** Waits until one of @p count fences is over: *out is the first of them in
 *  their order. Does not say how it ended.
 *  Threads: safe.  Blocks: at most @p timeout_ns.
 *  Errors:  VYRE_INVALID_ARGUMENT for none or a NULL; VYRE_DISPATCH_FAILED
 *           (timed_out). */
VYRE_API VYRE_NODISCARD vyre_code vyre_fence_wait_any(vyre_fence *const *fences,
                                                      size_t count,
                                                      uint64_t timeout_ns,
                                                      size_t *out,
                                                      vyre_status *st);

/** Calls @p done when the work is over: once, on a thread of the library, or at
 *  once if it is over already. It must not wait for other work of the device.
 *  Lifetime: @p self until the call.
 *  Threads:  safe.  Blocks: never.
 *  Errors:   VYRE_INVALID_ARGUMENT for a NULL or a second callback. */
VYRE_API VYRE_NODISCARD vyre_code vyre_fence_set_callback(
    vyre_fence *fence, void (*done)(void *self, vyre_fence *fence), void *self,
    vyre_status *st);

/** A file descriptor that becomes readable when the work is over, for an event
 *  loop. Made the first time it is asked for.
 *  Ownership: the fence's: neither read nor close it.
 *  Lifetime:  as long as the fence.
 *  Threads:   safe.  Blocks: never.
 *  Errors:    VYRE_OUT_OF_MEMORY if the system has none left. */
VYRE_API VYRE_NODISCARD vyre_code vyre_fence_fd(vyre_fence *fence, int *out,
                                                vyre_status *st);

VYRE_END

#endif
