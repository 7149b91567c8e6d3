/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/memory.h
 *  Where memory comes from, and the arena that results live in.
 *
 *  Nothing in vyre calls malloc behind your back: whoever allocates takes a
 *  vyre_allocator, and a zeroed one means the C library's heap. */
#ifndef VYRE_MEMORY_H
#define VYRE_MEMORY_H

#include <stddef.h>

#include "vyre/export.h"

/** One function does it all, as realloc would, but with the old size known:
 *    ptr == NULL      allocate new_size bytes (old_size is 0)
 *    new_size == 0    free ptr, return NULL
 *    else             grow or shrink, contents kept; NULL leaves ptr alone
 *  Memory is aligned for any C object. The function may be called from every
 *  thread that uses an object made with the allocator. */
typedef struct vyre_allocator {
  void *(*resize)(void *self, void *ptr, size_t old_size, size_t new_size);
  void *self;
} vyre_allocator;

struct vyre_arena_block;

/** Memory that dies together. Plans are built into an arena and stay valid
 *  until it is reset or finished. A reset keeps the blocks, so that building a
 *  result of the same shape again allocates nothing. A zeroed arena is ready
 *  for use and takes the C library's heap. Threads: compatible (one thread at
 *  a time). */
typedef struct vyre_arena {
  vyre_allocator allocator;
  struct vyre_arena_block *first;   /* all blocks, oldest first */
  struct vyre_arena_block *current; /* the one that is being filled */
  size_t used;                      /* bytes taken in current */
} vyre_arena;

VYRE_BEGIN

/** The C library's heap as an allocator; what a zeroed allocator means.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_allocator vyre_allocator_heap(void);

/** Makes an empty arena over @p allocator. Allocates nothing yet.
 *  Ownership: end it with vyre_arena_deinit.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_arena_init(vyre_arena *arena, vyre_allocator allocator);

/** Takes @p size bytes aligned to @p alignment (a power of two up to 4096; 0
 *  means aligned for any C object). The bytes are not cleared.
 *  Ownership: the arena's.  Lifetime: until the next reset or finish.
 *  Threads: compatible.  Blocks: on the allocator only.
 *  Errors: NULL if the allocator has no more, or size + alignment overflows. */
VYRE_API void *vyre_arena_alloc(vyre_arena *arena, size_t size,
                                size_t alignment);

/** Makes all that was taken from the arena invalid, and keeps its blocks.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_arena_reset(vyre_arena *arena);

/** Gives all memory back. A NULL or zeroed arena is fine; the arena may be used
 *  again afterwards.  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_arena_deinit(vyre_arena *arena);

/** Bytes that the arena holds from its allocator, used or not.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API size_t vyre_arena_footprint(const vyre_arena *arena);

VYRE_END

#endif
