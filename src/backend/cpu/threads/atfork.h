/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Callbacks in the child of a fork(), for objects that own threads: the child
 * does not have these threads. Callbacks run before fork() returns in the
 * child. A child made by a bare clone() or by vfork() runs none of them, and
 * must not use objects made before. */
#ifndef VYRE_BACKEND_CPU_THREADS_ATFORK_H
#define VYRE_BACKEND_CPU_THREADS_ATFORK_H

typedef struct vyre__atfork_entry {
  void (*child)(void *self); /* called on the only thread of the child */
  void *self;
  struct vyre__atfork_entry *next, *previous;
} vyre__atfork_entry;

/* Add and remove a callback. The entry belongs to the caller and must stay
 * valid until it is removed. Threads: safe. */
void vyre__atfork_add(vyre__atfork_entry *entry);
void vyre__atfork_remove(vyre__atfork_entry *entry);

#endif
