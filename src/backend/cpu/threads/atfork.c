/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "backend/cpu/threads/atfork.h"

#include <pthread.h>
#include <stddef.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static vyre__atfork_entry *entries;

/* Held over the fork, so that the child finds the list whole. */
static void before(void) {
  pthread_mutex_lock(&lock);
}

static void after(void) {
  pthread_mutex_unlock(&lock);
}

static void in_child(void) {
  for (vyre__atfork_entry *e = entries; e; e = e->next) e->child(e->self);
  pthread_mutex_unlock(&lock);
}

static void listen(void) {
  /* Fails without memory only; then children may not use our threads, which no
   * process that is so short of memory gets as far as. */
  (void)pthread_atfork(before, after, in_child);
}

void vyre__atfork_add(vyre__atfork_entry *entry) {
  pthread_once(&once, listen);
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
