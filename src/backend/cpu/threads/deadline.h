/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Deadlines of kernels that run: a word is set when the time is over, and the
 * kernel looks at it in its loops.
 *
 * One thread, started by the first that asks; without anyone who asks there is
 * none. It sleeps until the nearest deadline it knows. Those who begin and end in
 * time do not wake it: a warm begin and end make no system call and allocate
 * nothing. */
#ifndef VYRE_BACKEND_CPU_THREADS_DEADLINE_H
#define VYRE_BACKEND_CPU_THREADS_DEADLINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "vyre/memory.h"
#include "vyre/status.h"

typedef struct vyre__deadlines vyre__deadlines;

/* One deadline; the caller's memory, from begin to end. */
typedef struct vyre__deadline {
  uint64_t deadline_ns;
  atomic_uint *stop;
  bool is_over;
  struct vyre__deadline *next, *previous;
} vyre__deadline;

/* Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__deadlines_create(vyre_allocator allocator,
                                 vyre__deadlines **out, vyre_status *st);
/* When none is between begin and end. NULL is fine. */
void vyre__deadlines_free(vyre__deadlines *watch);

/* Sets *stop to 1 at @p deadline_ns of vyre__clock_ns, or as soon after as the
 * system wakes a thread; at once if that is over. Each that succeeds is followed
 * by vyre__deadline_end.
 * Threads: safe. Forks: in the child, what was begun before is watched no more,
 * and is not ended.
 * Errors: VYRE_OUT_OF_MEMORY if the system refuses the thread. */
vyre_code vyre__deadline_begin(vyre__deadlines *watch, vyre__deadline *entry,
                               uint64_t deadline_ns, atomic_uint *stop,
                               vyre_status *st);

/* Afterwards *stop is not touched. Gives whether the deadline came first. */
bool vyre__deadline_end(vyre__deadlines *watch, vyre__deadline *entry);

#endif
