/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What has threads of its own loses them in the child of a fork(): whoever is
 * listed here is told there, before fork() returns. A child made by other means
 * (a bare clone(), vfork()) is not told, and must not use what was made before. */
#ifndef VYRE_BACKEND_CPU_THREADS_ATFORK_H
#define VYRE_BACKEND_CPU_THREADS_ATFORK_H

typedef struct vyre__atfork_entry {
  void (*child)(void *self); /* on the only thread there is */
  void *self;
  struct vyre__atfork_entry *next, *previous;
} vyre__atfork_entry;

/* The entry stays the caller's, until it is removed. Threads: safe. */
void vyre__atfork_add(vyre__atfork_entry *entry);
void vyre__atfork_remove(vyre__atfork_entry *entry);

#endif
