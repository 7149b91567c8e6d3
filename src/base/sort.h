/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_BASE_SORT_H
#define VYRE_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>

/* Sort key and tie breaker. With a distinct tie per item (its index), the
 * order is total, so every machine gets the same result. */
typedef struct vyre__sort_item {
  uint64_t key;
  uint64_t tie;
} vyre__sort_item;

/* Sorts in place, ascending by (key, tie), in O(n log n). Unlike qsort of the
 * C library, it never allocates. */
void vyre__sort(vyre__sort_item *items, size_t count);

#endif
