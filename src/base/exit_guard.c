/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/exit_guard.h"

#include <time.h>
#include <unistd.h>

#include "base/status.h"

enum { ENDING = 1, ONE = 2 };

bool vyre__exit_guard_enter(vyre__exit_guard *guard) {
  if (!(atomic_fetch_add(&guard->inside, ONE) & ENDING)) return true;
  atomic_fetch_sub(&guard->inside, ONE);
  return false;
}

vyre_code vyre__exit_guard_refuse(vyre_status *st) {
  return VYRE_FAIL(st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE,
                   "compile before the process ends",
                   "the kernel is not compiled, because the process is ending");
}

void vyre__exit_guard_leave(vyre__exit_guard *guard) {
  atomic_fetch_sub(&guard->inside, ONE);
}

bool vyre__exit_guard_is_ending(vyre__exit_guard *guard) {
  return (atomic_load(&guard->inside) & ENDING) != 0;
}

void vyre__exit_guard_begin(vyre__exit_guard *guard, unsigned own) {
  atomic_store(&guard->process, getpid());
  atomic_store(&guard->inside,
               (atomic_load(&guard->inside) & ENDING) | own * ONE);
}

void vyre__exit_guard_wait(vyre__exit_guard *guard, unsigned own,
                           uint32_t max_ms) {
  const struct timespec pause = {.tv_nsec = 1000000};
  if (atomic_load(&guard->process) != getpid()) return;
  atomic_fetch_or(&guard->inside, ENDING);
  for (uint32_t ms = 0; atomic_load(&guard->inside) / ONE > own; ms++) {
    if (max_ms > 0 && ms >= max_ms) return;
    (void)nanosleep(&pause, NULL);
  }
}
