/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/bytes.h"

#include <string.h>

#include "base/memory.h"

void vyre__bytes_put(vyre__bytes *to, const void *bytes, size_t count) {
  if (to->failed || count == 0) return;
  bool is_stored =
      to->max == 0 || (to->size <= to->max && count <= to->max - to->size);
  if (count > SIZE_MAX / 2 - to->size ||
      (is_stored && !vyre__reserve(to->allocator, &to->data, &to->capacity,
                                   to->size + count, 1, false))) {
    to->failed = true;
    return;
  }
  if (is_stored) memcpy(to->data + to->size, bytes, count);
  to->size += count;
}

static bool write_bytes(void *self, const char *text, size_t length) {
  vyre__bytes *to = self;
  vyre__bytes_put(to, text, length);
  return !to->failed;
}

vyre_writer vyre__bytes_writer(vyre__bytes *to) {
  return (vyre_writer){write_bytes, to};
}

void vyre__bytes_deinit(vyre__bytes *bytes) {
  vyre__reserve_free(bytes->allocator, &bytes->data, &bytes->capacity, 1);
  bytes->size = 0;
  bytes->failed = false;
}
