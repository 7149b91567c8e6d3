/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_BASE_THREAD_H
#define VYRE_BASE_THREAD_H

#include <pthread.h>

/* Starts a thread with all signals blocked. Otherwise a handler of the program
 * could run on it, and a thread of the program that waits in sigwait would miss
 * the signal. If @p out is NULL, the thread is detached. Returns 0, or the error
 * number of pthread_create. */
int vyre__thread_start(pthread_t *out, void *(*run)(void *self), void *self);

#endif
