/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/attributes.h"
#include "base/checked_math.h"

#if defined(__SANITIZE_ADDRESS__)
#define VYRE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VYRE_ASAN 1
#endif
#endif

#ifdef VYRE_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(start, size)   ASAN_POISON_MEMORY_REGION((start), (size))
#define UNPOISON(start, size) ASAN_UNPOISON_MEMORY_REGION((start), (size))
enum { RED_ZONE = 16 };
#else
#define POISON(start, size)   ((void)(start), (void)(size))
#define UNPOISON(start, size) ((void)(start), (void)(size))
enum { RED_ZONE = 0 };
#endif

static void *heap_resize(void *self, void *ptr, size_t old_size,
                         size_t new_size) {
  (void)self;
  (void)old_size;
  if (new_size == 0) {
    free(ptr);
    return NULL;
  }
  if (new_size > PTRDIFF_MAX) return NULL; /* no object may be larger */
  return realloc(ptr, new_size);
}

vyre_allocator vyre_allocator_heap(void) {
  return (vyre_allocator){.resize = heap_resize};
}

void *vyre__resize(vyre_allocator allocator, void *ptr, size_t old_size,
                   size_t new_size) {
  if (!allocator.resize) return heap_resize(NULL, ptr, old_size, new_size);
  return allocator.resize(allocator.self, ptr, old_size, new_size);
}

void *vyre__alloc_zeroed(vyre_allocator allocator, size_t size) {
  void *memory = vyre__resize(allocator, NULL, 0, size);
  return memory ? memset(memory, 0, size) : NULL;
}

bool vyre__grow(vyre_allocator allocator, void *array, size_t *capacity,
                size_t need, size_t element_size, bool exact) {
  size_t target = need;
  size_t doubled;
  if (!exact && vyre__mul(*capacity, 2, &doubled) && doubled > target) {
    target = doubled;
  }
  if (!exact && target < 8) target = 8;
  size_t bytes;
  if (!vyre__mul(target, element_size, &bytes)) return false;
  void *elements;
  memcpy(&elements, array, sizeof elements);
  elements = vyre__resize(allocator, elements, *capacity * element_size, bytes);
  if (!elements) return false;
  memcpy(array, &elements, sizeof elements);
  *capacity = target;
  return true;
}

void vyre__reserve_free(vyre_allocator allocator, void *array, size_t *capacity,
                        size_t element_size) {
  void *elements;
  memcpy(&elements, array, sizeof elements);
  if (elements) vyre__resize(allocator, elements, *capacity * element_size, 0);
  elements = NULL;
  memcpy(array, &elements, sizeof elements);
  *capacity = 0;
}

/* Arena block. Blocks form a list, oldest first. Blocks after `current` were
 * kept by a reset and are filled again in the same order. */
struct vyre_arena_block {
  struct vyre_arena_block *next;
  size_t size; /* bytes of data */
  _Alignas(max_align_t) unsigned char data[];
};

enum { FIRST_BLOCK = 4096, MAX_ALIGNMENT = 4096 };

void vyre_arena_init(vyre_arena *arena, vyre_allocator allocator) {
  if (arena) *arena = (vyre_arena){.allocator = allocator};
}

/* Returns the offset of an allocation in @p block at or after @p used, or
 * SIZE_MAX if it does not fit. */
static size_t fit(const struct vyre_arena_block *block, size_t used,
                  size_t size, size_t alignment) {
  uintptr_t base = (uintptr_t)block->data;
  size_t start =
      (size_t)(((base + used + alignment - 1) & ~(alignment - 1)) - base);
  if (start > block->size || size > block->size - start) return SIZE_MAX;
  return start;
}

/* Appends a block of @p wanted bytes after @p last, the end of the list. */
static struct vyre_arena_block *add_sized(vyre_arena *arena,
                                          struct vyre_arena_block *last,
                                          size_t wanted) {
  size_t bytes;
  if (!vyre__add(wanted, sizeof(struct vyre_arena_block), &bytes)) return NULL;
  struct vyre_arena_block *block =
      vyre__resize(arena->allocator, NULL, 0, bytes);
  if (!block) return NULL;
  *block = (struct vyre_arena_block){.size = wanted};
  if (last) {
    last->next = block;
  } else {
    arena->first = block;
  }
  POISON(block->data, block->size);
  return block;
}

/* Appends a block that holds @p size bytes and is larger than the previous
 * one. */
static struct vyre_arena_block *add_block(vyre_arena *arena,
                                          struct vyre_arena_block *last,
                                          size_t size, size_t alignment) {
  size_t wanted = FIRST_BLOCK;
  if (last && last->size >= FIRST_BLOCK) {
    wanted = last->size < (SIZE_MAX / 4) ? last->size * 2 : last->size;
  }
  size_t min;
  if (!vyre__add(size, alignment, &min)) return NULL;
  return add_sized(arena, last, wanted < min ? min : wanted);
}

bool vyre__arena_reserve(vyre_arena *arena, size_t size) {
  return arena->first || add_sized(arena, NULL, size);
}

/* Allocates at @p start, which fits. */
static inline void *allocate_at(vyre_arena *arena,
                                struct vyre_arena_block *block, size_t start,
                                size_t size) {
  arena->current = block;
  arena->used = start + size + RED_ZONE;
  UNPOISON(block->data + start, size);
  return block->data + start;
}

/* Allocates from a block after the current one. Kept blocks that are too
 * small are skipped until the next reset. The arena changes only if this
 * succeeds. */
VYRE__NOINLINE static void *allocate_behind(vyre_arena *arena, size_t size,
                                            size_t alignment) {
  size_t taken;
  if (!vyre__add(size, RED_ZONE, &taken)) return NULL;
  struct vyre_arena_block *block = arena->current;
  size_t start;
  do {
    struct vyre_arena_block *next = block ? block->next : arena->first;
    if (!next) next = add_block(arena, block, taken, alignment);
    if (!next) return NULL;
    block = next;
    start = fit(block, 0, taken, alignment);
  } while (start == SIZE_MAX);
  return allocate_at(arena, block, start, size);
}

void *vyre_arena_alloc(vyre_arena *arena, size_t size, size_t alignment) {
  if (alignment == 0) alignment = _Alignof(max_align_t);
  if (!arena || alignment > MAX_ALIGNMENT ||
      (alignment & (alignment - 1)) != 0) {
    return NULL;
  }
  struct vyre_arena_block *block = arena->current;
  if (block && size <= SIZE_MAX - RED_ZONE) {
    size_t start = fit(block, arena->used, size + RED_ZONE, alignment);
    if (start != SIZE_MAX) return allocate_at(arena, block, start, size);
  }
  return allocate_behind(arena, size, alignment);
}

void *vyre__arena_array(vyre_arena *arena, size_t count, size_t element_size) {
  size_t bytes;
  if (!vyre__mul(count, element_size, &bytes)) return NULL;
  return vyre_arena_alloc(arena, bytes, 0);
}

void *vyre__arena_copy(vyre_arena *arena, const void *array, size_t count,
                       size_t element_size) {
  void *copy = vyre__arena_array(arena, count, element_size);
  if (copy && count > 0) memcpy(copy, array, count * element_size);
  return copy;
}

const char *vyre__arena_text(vyre_arena *arena, const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = vyre_arena_alloc(arena, size, 1);
  return copy ? memcpy(copy, text, size) : NULL;
}

void *vyre__arena_filled(vyre_arena *arena, size_t count, size_t element_size,
                         int byte) {
  void *array = vyre__arena_array(arena, count, element_size);
  return array ? memset(array, byte, count * element_size) : NULL;
}

vyre__arena_mark vyre__arena_here(const vyre_arena *arena) {
  return (vyre__arena_mark){arena->current, arena->used};
}

void vyre__arena_rewind(vyre_arena *arena, vyre__arena_mark mark) {
  struct vyre_arena_block *block = mark.block ? mark.block : arena->first;
  size_t used = mark.block ? mark.used : 0;
  for (; block; block = block->next, used = 0) {
    POISON(block->data + used, block->size - used);
    if (block == arena->current) break;
  }
  arena->current = mark.block;
  arena->used = mark.used;
}

void vyre__arena_trim(vyre_arena *arena, void *array, size_t count, size_t kept,
                      size_t element_size) {
  struct vyre_arena_block *block = arena->current;
  unsigned char *end = (unsigned char *)array + count * element_size + RED_ZONE;
  if (!block || end != block->data + arena->used) return;
  arena->used -= (count - kept) * element_size;
  POISON(block->data + arena->used - RED_ZONE,
         (count - kept) * element_size + RED_ZONE);
}

void vyre_arena_reset(vyre_arena *arena) {
  if (!arena) return;
  vyre__arena_rewind(arena, (vyre__arena_mark){0});
}

void vyre_arena_deinit(vyre_arena *arena) {
  if (!arena) return;
  struct vyre_arena_block *block = arena->first;
  while (block) {
    struct vyre_arena_block *next = block->next;
    UNPOISON(block->data, block->size);
    vyre__resize(arena->allocator, block,
                 sizeof(struct vyre_arena_block) + block->size, 0);
    block = next;
  }
  arena->first = arena->current = NULL;
  arena->used = 0;
}

size_t vyre_arena_footprint(const vyre_arena *arena) {
  size_t bytes = 0;
  const struct vyre_arena_block *block = arena ? arena->first : NULL;
  for (; block; block = block->next) {
    bytes += sizeof(struct vyre_arena_block) + block->size;
  }
  return bytes;
}
