/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_BASE_SORT_H
#define VYRE_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>

/* What to sort by, and what to break ties with: give each item its own tie (its
 * index), and the order is total, so that the result is the same everywhere. */
typedef struct vyre__sort_item {
  uint64_t key;
  uint64_t tie;
} vyre__sort_item;

/* Ascending by (key, tie), in place, O(n log n). The C library's qsort may
 * allocate; this does not. */
void vyre__sort(vyre__sort_item *items, size_t count);

#endif
