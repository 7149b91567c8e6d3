/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Keeps the process alive while a driver compiles. exit() destroys the static
 * objects of a driver's compiler, and a thread inside it would crash.
 *
 * Handlers of atexit run in reverse order of registration, so the handler must
 * be younger than these objects. Compilers create some of them while they
 * compile; so the handler is registered again after the first compiles, at
 * growing distances. Waiting twice does no harm. */
#include "backend/vulkan/device/compile_guard.h"

#include <stdlib.h>

#include "base/exit_guard.h"
#include "base/status.h"

/* Some drivers never finish some kernels. Beyond this time, the end of the
 * process is worth more than the small risk of a crash. */
enum { MAX_WAIT_MS = 20000 };

static vyre__exit_guard guard;
static atomic_uint compiles;
static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Nesting depth of this thread, which may call exit() itself. */
static _Thread_local unsigned own_depth
    __attribute__((tls_model("initial-exec")));

static void at_exit(void) {
  vyre__exit_guard_wait(&guard, own_depth, MAX_WAIT_MS);
}

static void begin(void) {
  vyre__exit_guard_begin(&guard, own_depth);
}

vyre_code vk_compile_enter(vyre_status *st) {
  (void)pthread_once(&once, begin);
  unsigned count = atomic_fetch_add(&compiles, 1);
  /* Without memory for a handler, exit() does not wait. */
  if ((count & (count - 1)) == 0) (void)atexit(at_exit);
  if (vyre__exit_guard_enter(&guard)) {
    own_depth++;
    return VYRE_OK;
  }
  return vyre__exit_guard_refuse(st);
}

void vk_compile_leave(void) {
  own_depth--;
  vyre__exit_guard_leave(&guard);
}

void vk_compile_after_fork(void) {
  vyre__exit_guard_begin(&guard, own_depth);
}
