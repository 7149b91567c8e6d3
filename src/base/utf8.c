/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/utf8.h"

#include <stdint.h>

/* Bytes that follow a lead byte; 0 for a byte that cannot lead. */
static size_t tail_length(unsigned char lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return 1;
  if (lead >= 0xE0 && lead <= 0xEF) return 2;
  if (lead >= 0xF0 && lead <= 0xF4) return 3;
  return 0;
}

static bool is_control(uint32_t point) {
  /* C0, DEL, C1, line and paragraph separators, and the marks that change the
   * direction of the text around them. */
  return point < 0x20 || (point >= 0x7F && point <= 0x9F) ||
         (point >= 0x200E && point <= 0x200F) ||
         (point >= 0x2028 && point <= 0x202E) ||
         (point >= 0x2066 && point <= 0x2069) || point == 0xFEFF;
}

bool vyre__utf8_printable(const char *text, size_t length) {
  static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
  const unsigned char *at = (const unsigned char *)text;
  const unsigned char *end = at + length;
  while (at < end) {
    uint32_t point = *at++;
    if (point >= 0x80) {
      size_t tail = tail_length((unsigned char)point);
      if (tail == 0 || (size_t)(end - at) < tail) return false;
      point &= 0x3Fu >> tail;
      for (size_t i = 0; i < tail; i++) {
        if ((at[i] & 0xC0) != 0x80) return false;
        point = point << 6 | (at[i] & 0x3Fu);
      }
      at += tail;
      if (point < least[tail] || point > 0x10FFFF) return false;
      if (point >= 0xD800 && point <= 0xDFFF) return false;
    }
    if (is_control(point)) return false;
  }
  return true;
}
