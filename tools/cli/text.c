/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli/text.h"

#include <stdio.h>
#include <string.h>

bool parse_u64(const char *text, size_t length, uint64_t *out) {
  if (length == 0) return false;
  uint64_t value = 0;
  for (size_t i = 0; i < length; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    uint64_t digit = (uint64_t)(text[i] - '0');
    if (value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *out = value;
  return true;
}

enum { LONGEST_WORD = 40 };

/* Returns the edit distance (insert, delete, replace, swap of neighbours)
 * between two words of at most LONGEST_WORD bytes. */
static unsigned edit_distance(const char *a, size_t a_length, const char *b,
                              size_t b_length) {
  unsigned rows[3][LONGEST_WORD + 1];
  unsigned *before = rows[0], *last = rows[1], *row = rows[2];
  memset(rows, 0, sizeof rows);
  for (size_t j = 0; j <= b_length; j++) last[j] = (unsigned)j;
  for (size_t i = 1; i <= a_length; i++) {
    row[0] = (unsigned)i;
    for (size_t j = 1; j <= b_length; j++) {
      unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);
      if (last[j] + 1 < best) best = last[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
                     a[i - 2] == b[j - 1] && before[j - 2] + 1 < best;
      row[j] = swapped ? before[j - 2] + 1 : best;
    }
    unsigned *oldest = before;
    before = last;
    last = row;
    row = oldest;
  }
  return last[b_length];
}

/* Returns the distance that counts as a typing error: 1 in a short word,
 * more in a long one. */
static unsigned max_edits(size_t length) {
  return length < 6 ? 1 : length < 9 ? 2 : 3;
}

/* Skips the dashes of a flag, which all flags share. */
static size_t dashes(const char *word, size_t length) {
  size_t count = 0;
  while (count < length && word[count] == '-') count++;
  return count;
}

const char *nearest_word(const char *word, size_t length,
                         const char *const *names, size_t count) {
  const char *best = NULL;
  size_t skipped = dashes(word, length);
  word += skipped;
  length -= skipped;
  unsigned best_distance = max_edits(length) + 1;
  if (length > LONGEST_WORD) return NULL;
  for (size_t i = 0; i < count; i++) {
    size_t name_length = strlen(names[i]);
    const char *name = names[i] + dashes(names[i], name_length);
    name_length -= (size_t)(name - names[i]);
    if (name_length > LONGEST_WORD) continue;
    unsigned distance = edit_distance(word, length, name, name_length);
    /* A prefix counts as one error, however much is missing. */
    bool begins = length >= 3 && strncmp(name, word, length) == 0;
    if (begins && distance > 1) distance = 1;
    /* Not a typing error: words that differ in more letters than they share,
     * or that have several errors and differ in the first letter. */
    if (distance < best_distance && distance < name_length &&
        distance < length && (distance <= 1 || word[0] == name[0])) {
      best = names[i];
      best_distance = distance;
    }
  }
  return best;
}

bool parse_bytes(const char *text, size_t length, uint64_t *out) {
  static const char units[] = {'K', 'M', 'G'};
  const char *unit =
      length > 1 ? memchr(units, text[length - 1], sizeof units) : NULL;
  const uint64_t factor =
      unit ? UINT64_C(1) << (10 * (unit - units + 1)) : UINT64_C(1);
  if (!parse_u64(text, length - (unit != NULL), out) ||
      *out > UINT64_MAX / factor) {
    return false;
  }
  *out *= factor;
  return true;
}

bool is_too_large(const char *text, size_t length, uint64_t max) {
  uint64_t value;
  if (parse_u64(text, length, &value)) return value > max;
  for (size_t i = 0; i < length; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
  }
  return length > 0;
}

size_t utf8_next(const char *text, size_t length, uint32_t *code_point) {
  if (length == 0) return 0;
  unsigned char lead = (unsigned char)text[0];
  size_t size = lead < 0x80   ? 1
                : lead < 0xC2 ? 0 /* continuation, or overlong */
                : lead < 0xE0 ? 2
                : lead < 0xF0 ? 3
                : lead < 0xF5 ? 4
                              : 0;
  if (size == 0 || size > length) return 0;
  uint32_t value = size == 1 ? lead : lead & (0xFFu >> (size + 1));
  for (size_t i = 1; i < size; i++) {
    unsigned char next = (unsigned char)text[i];
    if ((next & 0xC0) != 0x80) return 0;
    value = value << 6 | (next & 0x3F);
  }
  bool overlong =
      (size == 3 && value < 0x800) || (size == 4 && value < 0x10000);
  if (overlong || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
    return 0;
  }
  *code_point = value;
  return size;
}

bool is_control(uint32_t code_point) {
  return code_point < 0x20 || (code_point >= 0x7F && code_point <= 0x9F) ||
         (code_point >= 0x200E && code_point <= 0x200F) ||
         (code_point >= 0x2028 && code_point <= 0x202E) ||
         (code_point >= 0x2066 && code_point <= 0x2069) || code_point == 0xFEFF;
}

size_t find_unprintable(const char *text, size_t length) {
  size_t at = 0;
  while (at < length) {
    uint32_t code_point = 0;
    size_t size = utf8_next(text + at, length - at, &code_point);
    if (size == 0 || is_control(code_point)) return at;
    at += size;
  }
  return length;
}

void show_bytes(sink *out, const char *text, size_t length) {
  size_t at = 0;
  while (at < length) {
    size_t plain = find_unprintable(text + at, length - at);
    sink_bytes(out, text + at, plain);
    at += plain;
    if (at < length) {
      sink_format(out, "\\x%02x", (unsigned)(unsigned char)text[at]);
      at++;
    }
  }
}

void show_into(char *buffer, size_t size, const char *text, size_t length) {
  size_t used = 0, at = 0;
  size_t cut = 0; /* last character boundary that leaves space for "..." */
  while (at < length) {
    uint32_t code_point = 0;
    size_t taken = utf8_next(text + at, length - at, &code_point);
    bool plain = taken && !is_control(code_point);
    if (!plain) taken = 1;
    size_t shown = plain ? taken : 4;
    if (used + sizeof "..." <= size) cut = used;
    if (used + shown >= size) {
      memcpy(buffer + cut, "...", sizeof "...");
      return;
    }
    if (plain) {
      memcpy(buffer + used, text + at, taken);
    } else {
      snprintf(buffer + used, 5, "\\x%02x", (unsigned)(unsigned char)text[at]);
    }
    used += shown;
    at += taken;
  }
  buffer[used] = '\0';
}
