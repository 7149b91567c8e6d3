/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks the encoding of a source text before the lexer sees it. */
#include <string.h>

#include "lang/lex.h"

enum { CHUNK = 4096 };

/* Returns true if every byte is plain ASCII text. Nearly every file is. The
 * loop has no branches and works on bytes, so that the compiler vectorises
 * it. */
static bool all_plain(const unsigned char *bytes, size_t count) {
  uint8_t odd = 0;
  for (size_t i = 0; i < count; i++) {
    uint8_t c = bytes[i];
    uint8_t high = c >= 0x7F, low = c < 0x20;
    uint8_t fine = (uint8_t)((c == '\t') | (c == '\n') | (c == '\r'));
    odd |= (uint8_t)(high | (low & (uint8_t)(fine ^ 1)));
  }
  return odd == 0;
}

/* Returns true for control characters and marks that change the text
 * direction: with them, the source looks different from what is compiled. */
static bool is_control(uint32_t point) {
  return (point < 0x20 && point != '\t' && point != '\n' && point != '\r') ||
         (point >= 0x7F && point <= 0x9F) ||
         (point >= 0x200E && point <= 0x200F) ||
         (point >= 0x2028 && point <= 0x202E) ||
         (point >= 0x2066 && point <= 0x2069) || point == 0xFEFF;
}

/* Decodes the character at @p at. *length is its size in bytes, 0 if it is
 * not UTF-8. */
static uint32_t decode(const unsigned char *at, size_t left, size_t *length) {
  static const uint32_t min_point[] = {0, 0x80, 0x800, 0x10000};
  uint32_t point = at[0];
  *length = 1;
  if (point < 0x80) return point;
  size_t tail = point >= 0xF0 ? 3 : point >= 0xE0 ? 2 : 1;
  if (point < 0xC2 || point > 0xF4 || left <= tail) {
    *length = 0;
    return 0;
  }
  point &= 0x3Fu >> tail;
  for (size_t i = 1; i <= tail; i++) {
    if ((at[i] & 0xC0) != 0x80) *length = 0;
    point = point << 6 | (at[i] & 0x3Fu);
  }
  bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  if (point < min_point[tail] || point > 0x10FFFF || surrogate) *length = 0;
  if (*length) *length = tail + 1;
  return point;
}

vyre__source_fault vyre__source_check(const char *text, size_t length,
                                      size_t *at) {
  *at = 0;
  if (length > VYRE__MAX_SOURCE) {
    return VYRE__SOURCE_LONG; /* at the start: the length may be wrong */
  }
  const unsigned char *bytes = (const unsigned char *)text;
  for (size_t i = 0; i < length;) {
    size_t chunk = length - i < CHUNK ? length - i : CHUNK;
    if (all_plain(bytes + i, chunk)) {
      i += chunk;
      continue;
    }
    for (size_t end = i + chunk; i < end;) {
      size_t size;
      uint32_t point = decode(bytes + i, length - i, &size);
      *at = i;
      if (size == 0) return VYRE__SOURCE_UTF8;
      if (point == 0) return VYRE__SOURCE_NUL;
      bool mark = point == 0xFEFF && i == 0; /* byte order mark */
      if (is_control(point) && !mark) return VYRE__SOURCE_CONTROL;
      i += size;
    }
  }
  return VYRE__SOURCE_FINE;
}

void vyre__source_loc_find(const char *text, size_t length, size_t at,
                           uint32_t *line, uint32_t *column) {
  const char *from = text, *end = text + (at < length ? at : length);
  *line = 1;
  for (const char *next; (next = memchr(from, '\n', (size_t)(end - from)));) {
    from = next + 1;
    ++*line;
  }
  *column = (uint32_t)(end - from) + 1;
}
