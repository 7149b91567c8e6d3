/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/vyre.h
 *  Includes all public headers of vyre. Each header can also be included
 *  alone.
 *
 *  Conventions of all headers, unless noted otherwise:
 *  - Threads: *safe* means that any number of threads can call at the same
 *    time. *Compatible*: different threads may use different objects; one
 *    object is used by one thread at a time. Functions are safe; arenas,
 *    scratch, builders and statuses are compatible.
 *  - Blocks: a call waits for nothing but the allocator.
 *  - Lifetime: arguments are borrowed for the call.
 *  - NULL: a status may be NULL, and so may an array of no elements. Where a
 *    function returns a code, any other NULL is VYRE_INVALID_ARGUMENT.
 *    Release, destroy, deinit and reset functions accept NULL and do nothing.
 *    Printers and comparisons return false for NULL; accessors return NULL, 0,
 *    false or "".
 *  - Zero: {0} initialises every struct; zero is the default of every field.
 *  - Growth: a struct that may gain fields ends with `reserved` words. They must
 *    be zero; functions reject descriptors with other values
 *    (VYRE_INVALID_ARGUMENT, field "reserved"). A later version puts new fields
 *    there, so that sizes and offsets stay.
 *  - Pairs: create/release for reference-counted objects (devices:
 *    open/release), create/destroy for handles, init/deinit for storage of the
 *    caller, alloc/free for memory.
 *  - Status: every call resets its status (vyre/status.h).
 *  - Failure: *out is zeroed or NULL, and an arena argument is unchanged.
 *
 *  docs/reference/api.md shows how the objects work together. */
#ifndef VYRE_VYRE_H
#define VYRE_VYRE_H

#include "vyre/backend.h"
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
#include "vyre/hash.h"
#include "vyre/memory.h"
#include "vyre/module.h"
#include "vyre/ops.h"
#include "vyre/package.h"
#include "vyre/pipeline.h"
#include "vyre/placement.h"
#include "vyre/program.h"
#include "vyre/queue.h"
#include "vyre/random_program.h"
#include "vyre/recording.h"
#include "vyre/router.h"
#include "vyre/source.h"
#include "vyre/status.h"
#include "vyre/sum.h"
#include "vyre/tune.h"
#include "vyre/validate.h"
#include "vyre/version.h"
#include "vyre/vulkan.h"
#include "vyre/wave_graph.h"
#include "vyre/work_queue.h"
#include "vyre/writer.h"

#endif
