/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/* Returns the number of bytes after a lead byte; 0 for an invalid lead byte. */
static size_t tail_length(unsigned char lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return 1;
  if (lead >= 0xE0 && lead <= 0xEF) return 2;
  if (lead >= 0xF0 && lead <= 0xF4) return 3;
  return 0;
}

static bool is_control(uint32_t point) {
  /* C0, DEL, C1, line and paragraph separators, and the marks that change the
   * text direction. */
  return point < 0x20 || (point >= 0x7F && point <= 0x9F) ||
         (point >= 0x200E && point <= 0x200F) ||
         (point >= 0x2028 && point <= 0x202E) ||
         (point >= 0x2066 && point <= 0x2069) || point == 0xFEFF;
}

/* Returns the length of the character at @p at, or 0 if it is malformed or a
 * control character. */
static size_t printable_length(const unsigned char *at, size_t left) {
  static const uint32_t min[] = {0, 0x80, 0x800, 0x10000};
  uint32_t point = at[0];
  size_t tail = 0;
  if (point >= 0x80) {
    tail = tail_length((unsigned char)point);
    if (tail == 0 || left <= tail) return 0;
    point &= 0x3Fu >> tail;
    for (size_t i = 1; i <= tail; i++) {
      if ((at[i] & 0xC0) != 0x80) return 0;
      point = point << 6 | (at[i] & 0x3Fu);
    }
    if (point < min[tail] || point > 0x10FFFF) return 0;
    if (point >= 0xD800 && point <= 0xDFFF) return 0;
  }
  return is_control(point) ? 0 : tail + 1;
}

bool vyre__utf8_printable(const char *text, size_t length) {
  const unsigned char *at = (const unsigned char *)text;
  for (size_t done = 0; done < length;) {
    size_t step = printable_length(at + done, length - done);
    if (step == 0) return false;
    done += step;
  }
  return true;
}

size_t vyre__utf8_step(const char *text, size_t left) {
  return left > 0 ? printable_length((const unsigned char *)text, left) : 0;
}

const char *vyre__name(const char *name, char out[VYRE__NAME_TEXT]) {
  enum { MAX_COUNT = VYRE__NAME_TEXT - 4 };
  if (!name) name = "";
  size_t length = strnlen(name, MAX_COUNT + 1);
  size_t at = 0, used = 0;
  while (at < length && used < MAX_COUNT) {
    const unsigned char *from = (const unsigned char *)name + at;
    /* A character that exceeds the limit is dropped as a whole. */
    size_t step = printable_length(from, strnlen(name + at, 4));
    if (step > MAX_COUNT - used) break;
    memcpy(out + used, step > 0 ? name + at : "?", step > 0 ? step : 1);
    used += step > 0 ? step : 1;
    at += step > 0 ? step : 1;
  }
  memcpy(out + used, name[at] ? "..." : "", name[at] ? 4 : 1);
  return out;
}
