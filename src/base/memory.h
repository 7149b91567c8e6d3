/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Allocation for the rest of the library. No other folder calls the C library's
 * allocator. */
#ifndef VYRE_BASE_MEMORY_H
#define VYRE_BASE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "vyre/memory.h"

/* As allocator.resize, with a zeroed allocator taken as the heap. */
void *vyre__resize(vyre_allocator allocator, void *ptr, size_t old_size,
                   size_t new_size);

/* Grows an array of *capacity elements of @p element_size bytes to hold @p need
 * elements or more; keeps contents, never shrinks. @p array is the address of the
 * pointer to the elements, whatever their type: it is read and written as bytes,
 * so that no pointer of one type is stored through another. Growing by appends
 * doubles, @p exact takes just what is needed. False if there is no memory; the
 * array is then as before. */
bool vyre__grow(vyre_allocator allocator, void *array, size_t *capacity,
                size_t need, size_t element_size, bool exact);
static inline bool vyre__reserve(vyre_allocator allocator, void *array,
                                 size_t *capacity, size_t need,
                                 size_t element_size, bool exact) {
  return need <= *capacity ||
         vyre__grow(allocator, array, capacity, need, element_size, exact);
}

/* Frees what vyre__reserve made and clears it. */
void vyre__reserve_free(vyre_allocator allocator, void *array, size_t *capacity,
                        size_t element_size);

/* count * size bytes from the arena, NULL on overflow or without memory. A
 * count of 0 gives a valid pointer. */
void *vyre__arena_array(vyre_arena *arena, size_t count, size_t element_size);

/* Makes the first block of an arena that has none just as large as what will be
 * taken from it. False without memory. */
bool vyre__arena_reserve(vyre_arena *arena, size_t size);

/* A place in an arena to go back to. */
typedef struct vyre__arena_mark {
  struct vyre_arena_block *block;
  size_t used;
} vyre__arena_mark;

vyre__arena_mark vyre__arena_here(const vyre_arena *arena);
void vyre__arena_rewind(vyre_arena *arena, vyre__arena_mark mark);

/* Gives back the end of the newest array: it held @p count elements, and keeps
 * @p kept. Does nothing if something else was taken since. */
void vyre__arena_trim(vyre_arena *arena, void *array, size_t count, size_t kept,
                      size_t element_size);

#endif
