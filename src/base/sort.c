/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/sort.h"

#include <stdbool.h>

static bool before(vyre__sort_item a, vyre__sort_item b) {
  return a.key != b.key ? a.key < b.key : a.tie < b.tie;
}

static void insertion_sort(vyre__sort_item *items, size_t count) {
  for (size_t i = 1; i < count; i++) {
    vyre__sort_item item = items[i];
    size_t at = i;
    for (; at > 0 && before(item, items[at - 1]); at--) {
      items[at] = items[at - 1];
    }
    items[at] = item;
  }
}

/* Moves the item at @p root down to its position in a heap of @p count items.
 */
static void sink(vyre__sort_item *items, size_t root, size_t count) {
  vyre__sort_item item = items[root];
  for (;;) {
    size_t child = 2 * root + 1;
    if (child >= count) break;
    if (child + 1 < count && before(items[child], items[child + 1])) child++;
    if (!before(item, items[child])) break;
    items[root] = items[child];
    root = child;
  }
  items[root] = item;
}

/* Checked first, because most callers pass sorted items. */
static bool is_sorted(const vyre__sort_item *items, size_t count) {
  for (size_t i = 1; i < count; i++) {
    if (before(items[i], items[i - 1])) return false;
  }
  return true;
}

void vyre__sort(vyre__sort_item *items, size_t count) {
  if (is_sorted(items, count)) return;
  if (count < 24) {
    insertion_sort(items, count);
    return;
  }
  for (size_t i = count / 2; i-- > 0;) sink(items, i, count);
  for (size_t end = count; end-- > 1;) {
    vyre__sort_item last = items[end];
    items[end] = items[0];
    items[0] = last;
    sink(items, 0, end);
  }
}
