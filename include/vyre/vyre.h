/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/vyre.h
 *  All of vyre. Each header also stands alone.
 *
 *  What holds in every header, unless it says otherwise:
 *  - Threads: *safe* means any threads at once; *compatible* means one thread
 *    at a time per object. Functions are safe; arenas, scratch and statuses are
 *    compatible.
 *  - Blocks: a call waits for nothing but the allocator it was given.
 *  - Lifetime: what is passed in is borrowed for the call.
 *  - NULL: a status may be NULL, and so may an array of no elements. Where a
 *    function returns a code, any other NULL is VYRE_INVALID_ARGUMENT. Enders
 *    (finish, release) and resets take NULL and do nothing; printers and
 *    comparisons return false. What is asked of an object that is NULL gives
 *    NULL, 0, false or an empty text.
 *  - Status: every call starts the status it is given afresh (vyre/status.h).
 *  - Failure: *out is zeroed or NULL, the arena is as before.
 *  docs/ownership.md shows how it goes together. */
#ifndef VYRE_VYRE_H
#define VYRE_VYRE_H

#include "vyre/barrier.h"
#include "vyre/binary.h"
#include "vyre/binding.h"
#include "vyre/buffer.h"
#include "vyre/builder.h"
#include "vyre/cache.h"
#include "vyre/capture.h"
#include "vyre/context.h"
#include "vyre/counters.h"
#include "vyre/device.h"
#include "vyre/diagnostic.h"
#include "vyre/dispatch.h"
#include "vyre/dispatch_forms.h"
#include "vyre/dlpack.h"
#include "vyre/emit.h"
#include "vyre/export.h"
#include "vyre/fence.h"
#include "vyre/frontier.h"
#include "vyre/memory.h"
#include "vyre/module.h"
#include "vyre/ops.h"
#include "vyre/pipeline.h"
#include "vyre/placement.h"
#include "vyre/program.h"
#include "vyre/queue.h"
#include "vyre/random_program.h"
#include "vyre/recording.h"
#include "vyre/status.h"
#include "vyre/validate.h"
#include "vyre/version.h"
#include "vyre/vulkan.h"
#include "vyre/writer.h"

#endif
