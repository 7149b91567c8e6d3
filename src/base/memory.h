/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Memory allocation for the whole library. No other folder calls malloc or
 * free. */
#ifndef VYRE_BASE_MEMORY_H
#define VYRE_BASE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "vyre/memory.h"

/* Calls allocator.resize. A zeroed allocator stands for the C heap. */
void *vyre__resize(vyre_allocator allocator, void *ptr, size_t old_size,
                   size_t new_size);

/* Allocates @p size bytes that are all zero. Returns NULL if memory is
 * exhausted. */
void *vyre__alloc_zeroed(vyre_allocator allocator, size_t size);

/* Grows an array of *capacity elements of @p element_size bytes to hold at
 * least @p need elements. Keeps the contents and never shrinks. @p array is
 * the address of the pointer to the elements. It may have any type, because
 * it is read and written as bytes (strict aliasing). The capacity doubles at
 * least, unless @p exact is set. Returns false and leaves the array unchanged
 * if memory is exhausted. */
bool vyre__grow(vyre_allocator allocator, void *array, size_t *capacity,
                size_t need, size_t element_size, bool exact);
static inline bool vyre__reserve(vyre_allocator allocator, void *array,
                                 size_t *capacity, size_t need,
                                 size_t element_size, bool exact) {
  return need <= *capacity ||
         vyre__grow(allocator, array, capacity, need, element_size, exact);
}

/* Frees an array made by vyre__reserve and clears its pointer and capacity. */
void vyre__reserve_free(vyre_allocator allocator, void *array, size_t *capacity,
                        size_t element_size);

/* Allocates count * element_size bytes from the arena. Returns NULL if that
 * overflows or memory is exhausted. A count of 0 returns a valid pointer. */
void *vyre__arena_array(vyre_arena *arena, size_t count, size_t element_size);

/* Copies an array, or a text with its NUL, to the arena. Return NULL if memory
 * is exhausted. */
void *vyre__arena_copy(vyre_arena *arena, const void *array, size_t count,
                       size_t element_size);
const char *vyre__arena_text(vyre_arena *arena, const char *text);

/* Returns an array from the arena with all bytes set to @p byte. */
void *vyre__arena_filled(vyre_arena *arena, size_t count, size_t element_size,
                         int byte);

/* Gives an empty arena a first block of exactly @p size bytes. Returns false
 * if memory is exhausted. */
bool vyre__arena_reserve(vyre_arena *arena, size_t size);

/* Position in an arena. vyre__arena_rewind frees all later allocations. */
typedef struct vyre__arena_mark {
  struct vyre_arena_block *block;
  size_t used;
} vyre__arena_mark;

vyre__arena_mark vyre__arena_here(const vyre_arena *arena);
void vyre__arena_rewind(vyre_arena *arena, vyre__arena_mark mark);

/* Frees the end of the newest array: of its @p count elements, @p kept stay.
 * Does nothing if it is not the newest allocation. */
void vyre__arena_trim(vyre_arena *arena, void *array, size_t count, size_t kept,
                      size_t element_size);

#endif
