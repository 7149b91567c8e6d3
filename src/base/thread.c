/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/thread.h"

#include <signal.h>
#include <stddef.h>

int vyre__thread_start(pthread_t *out, void *(*run)(void *self), void *self) {
  pthread_t thread;
  sigset_t all, before;
  sigfillset(&all);
  int error = pthread_sigmask(SIG_SETMASK, &all, &before);
  if (error != 0) return error;
  error = pthread_create(out ? out : &thread, NULL, run, self);
  if (error == 0 && !out) (void)pthread_detach(thread);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}
