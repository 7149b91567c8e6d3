/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "backend/cpu/threads/atfork.h"

#include <pthread.h>
#include <stddef.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static vyre__atfork_entry *entries;

/* The lock is held during the fork, so that the child finds a consistent
 * list. */
static void lock_list(void) {
  pthread_mutex_lock(&lock);
}

static void unlock_list(void) {
  pthread_mutex_unlock(&lock);
}

static void run_callbacks(void) {
  for (vyre__atfork_entry *e = entries; e; e = e->next) e->child(e->self);
  pthread_mutex_unlock(&lock);
}

static void register_handlers(void) {
  /* This fails only without memory. Children must then not use threads made
   * here; a process that short of memory does not get that far. */
  (void)pthread_atfork(lock_list, unlock_list, run_callbacks);
}

void vyre__atfork_add(vyre__atfork_entry *entry) {
  pthread_once(&once, register_handlers);
  pthread_mutex_lock(&lock);
  entry->previous = NULL;
  entry->next = entries;
  if (entries) entries->previous = entry;
  entries = entry;
  pthread_mutex_unlock(&lock);
}

void vyre__atfork_remove(vyre__atfork_entry *entry) {
  pthread_mutex_lock(&lock);
  if (entry->previous) {
    entry->previous->next = entry->next;
  } else {
    entries = entry->next;
  }
  if (entry->next) entry->next->previous = entry->previous;
  pthread_mutex_unlock(&lock);
}
