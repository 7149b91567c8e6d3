/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Threads inside a library whose static objects exit() destroys. A handler of
 * atexit waits until they have left, and no thread enters after that. */
#ifndef VYRE_BASE_EXIT_GUARD_H
#define VYRE_BASE_EXIT_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "vyre/status.h"

typedef struct vyre__exit_guard {
  /* Twice the number of threads inside; the lowest bit is set when the process
   * ends. */
  atomic_uint inside;
  _Atomic pid_t process; /* that the threads belong to */
} vyre__exit_guard;

/* Returns false if the process is ending. Otherwise the thread is inside until
 * it leaves. */
bool vyre__exit_guard_enter(vyre__exit_guard *guard);
/* Sets the status of a compile that was refused because the process is
 * ending. */
vyre_code vyre__exit_guard_refuse(vyre_status *st);
void vyre__exit_guard_leave(vyre__exit_guard *guard);
/* Returns true if the process is ending. */
bool vyre__exit_guard_is_ending(vyre__exit_guard *guard);
/* Begins to watch this process, in which the calling thread has entered @p own
 * times. Called at first, and in the child of a fork: other threads are gone
 * there. */
void vyre__exit_guard_begin(vyre__exit_guard *guard, unsigned own);
/* Lets no more threads in, and waits at most @p max_ms milliseconds (0: without
 * a limit) for those inside, except the calling thread, which has entered @p own
 * times. Does nothing in a child that was made without the handlers of fork. */
void vyre__exit_guard_wait(vyre__exit_guard *guard, unsigned own,
                           uint32_t max_ms);

#endif
