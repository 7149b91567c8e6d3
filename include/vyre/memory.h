/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/memory.h
 *  Allocators and arenas.
 *
 *  vyre never calls malloc directly. Every function that allocates uses a
 *  vyre_allocator; a zeroed one stands for the C heap. */
#ifndef VYRE_MEMORY_H
#define VYRE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "vyre/export.h"

/** Allocator with a single function, like realloc with a known old size:
 *  - ptr == NULL: allocate new_size bytes (old_size is 0);
 *  - new_size == 0: free ptr and return NULL;
 *  - otherwise: grow or shrink and keep the contents; on failure return NULL
 *    and leave ptr valid.
 *
 *  Memory must be aligned for any C object. The function is called from every
 *  thread that uses an object created with the allocator, and from threads of
 *  the library. */
typedef struct vyre_allocator {
  /* Allocates, frees or resizes. */
  void *(*resize)(void *self, void *ptr, size_t old_size, size_t new_size);
  void *self; /* first argument of `resize` */
} vyre_allocator;

struct vyre_arena_block;

/** Memory that is freed together. Results of planners live in an arena and are
 *  valid until it is reset or deinitialised. A reset keeps the blocks, so that
 *  building a result of the same size again allocates nothing. A zeroed arena
 *  is ready for use and allocates from the C heap. The fields are private.
 *  Threads:   compatible. */
typedef struct vyre_arena {
  vyre_allocator allocator;         /* source of the blocks */
  struct vyre_arena_block *first;   /* all blocks, oldest first */
  struct vyre_arena_block *current; /* block in use */
  size_t used;                      /* bytes used in `current` */
  uint64_t reserved[2];             /* zero; for future fields */
} vyre_arena;

VYRE_BEGIN

/** Returns the allocator of the C heap, which a zeroed allocator stands for.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_allocator vyre_allocator_heap(void);

/** Initialises an empty arena that allocates from @p allocator. Allocates
 *  nothing.
 *  Ownership: free the memory with vyre_arena_deinit.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_arena_init(vyre_arena *arena, vyre_allocator allocator);

/** Allocates @p size uninitialised bytes. @p alignment is a power of two up to
 *  4096; 0 means aligned for any C object.
 *  Ownership: owned by the arena.
 *  Lifetime:  until the next reset or deinit.
 *  Threads:   compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    returns NULL if the allocator fails or size + alignment
 *             overflows. */
VYRE_API void *vyre_arena_alloc(vyre_arena *arena, size_t size,
                                size_t alignment);

/** Invalidates all memory taken from the arena and keeps its blocks for reuse.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_arena_reset(vyre_arena *arena);

/** Frees all memory. The arena can be used again. Accepts NULL and a zeroed
 *  arena.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_arena_deinit(vyre_arena *arena);

/** Returns the bytes that the arena holds from its allocator, used or not.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API size_t vyre_arena_footprint(const vyre_arena *arena);

VYRE_END

#endif
