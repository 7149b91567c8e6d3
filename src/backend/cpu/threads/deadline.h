/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Deadlines of running kernels. When a deadline passes, a flag is set, which
 * the kernel checks in its loops.
 *
 * One thread serves all deadlines; the first deadline starts it. It sleeps
 * until the nearest deadline. A kernel that finishes in time does not wake it:
 * a warm begin and end make no system call and allocate nothing. */
#ifndef VYRE_BACKEND_CPU_THREADS_DEADLINE_H
#define VYRE_BACKEND_CPU_THREADS_DEADLINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "vyre/memory.h"
#include "vyre/status.h"

typedef struct vyre__deadlines vyre__deadlines;

/* One deadline. The memory belongs to the caller, from begin to end. */
typedef struct vyre__deadline {
  uint64_t deadline_ns;
  atomic_uint *stop;
  bool has_passed;
  struct vyre__deadline *next, *previous;
} vyre__deadline;

/* Creates the service without starting its thread. Errors:
 * VYRE_OUT_OF_MEMORY. */
vyre_code vyre__deadlines_create(vyre_allocator allocator,
                                 vyre__deadlines **out, vyre_status *st);
/* Stops the thread. No deadline may be between begin and end. Accepts NULL. */
void vyre__deadlines_free(vyre__deadlines *deadlines);

/* Sets *stop to 1 when vyre__clock_ns() reaches @p deadline_ns, or as soon
 * after as the system wakes a thread; at once if it has passed already. Every
 * call that succeeds must be followed by vyre__deadline_end.
 * Threads: safe.
 * Forks: the child drops the deadlines of its parent; they must not be ended
 * there.
 * Errors: VYRE_OUT_OF_MEMORY if the system refuses the thread. */
vyre_code vyre__deadline_begin(vyre__deadlines *deadlines,
                               vyre__deadline *entry, uint64_t deadline_ns,
                               atomic_uint *stop, vyre_status *st);

/* Removes the deadline; *stop is not touched any more. Returns true if the
 * deadline had passed. */
bool vyre__deadline_end(vyre__deadlines *deadlines, vyre__deadline *entry);

#endif
