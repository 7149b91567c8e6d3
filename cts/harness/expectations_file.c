/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parser of expectation lists. */
#include <stdlib.h>
#include <string.h>

#include "cts/harness/runner.h"

static bool fits(const char *pattern, const char *name) {
  size_t length = strlen(pattern);
  if (length > 0 && pattern[length - 1] == '*') {
    return strncmp(pattern, name, length - 1) == 0;
  }
  return strcmp(pattern, name) == 0;
}

cts_row *cts_list_find(const cts_list *list, const char *name) {
  for (size_t i = 0; i < list->count; i++) {
    if (fits(list->rows[i].pattern, name)) return &list->rows[i];
  }
  return NULL;
}

/* Splits off the next word of a line. Returns false at the end of the line, or
 * if the word is too long. */
static bool take(const char **at, const char *end, char *out, size_t size,
                 bool to_the_end) {
  const char *from = *at;
  while (from < end && (*from == ' ' || *from == '\t')) from++;
  const char *to = from;
  while (to < end && (to_the_end || (*to != ' ' && *to != '\t'))) to++;
  *at = to;
  size_t length = (size_t)(to - from);
  if (length == 0 || length >= size) return false;
  memcpy(out, from, length);
  out[length] = '\0';
  return true;
}

static bool read_row(const char *line, const char *end, cts_row *out) {
  char what[16];
  *out = (cts_row){{0}, false, {0}, 0};
  if (!take(&line, end, out->pattern, sizeof out->pattern, false) ||
      !take(&line, end, what, sizeof what, false) ||
      !take(&line, end, out->reason, sizeof out->reason, true)) {
    return false;
  }
  out->is_unsupported = strcmp(what, "unsupported") == 0;
  return out->is_unsupported || strcmp(what, "fails") == 0;
}

static bool is_empty(const char *line, const char *end) {
  while (line < end && (*line == ' ' || *line == '\t')) line++;
  return line == end || *line == '#';
}

bool cts_list_read(cts_list *list, const char *text, size_t length,
                   size_t *line) {
  const char *end = text + length;
  for (*line = 1; text < end; ++*line) {
    const char *stop = memchr(text, '\n', (size_t)(end - text));
    if (!stop) stop = end;
    if (!is_empty(text, stop)) {
      if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 16;
        cts_row *grown = realloc(list->rows, capacity * sizeof *grown);
        if (!grown) return false;
        list->rows = grown;
        list->capacity = capacity;
      }
      if (!read_row(text, stop, &list->rows[list->count])) return false;
      list->count++;
    }
    text = stop < end ? stop + 1 : end;
  }
  return true;
}

void cts_list_deinit(cts_list *list) {
  free(list->rows);
  *list = (cts_list){0};
}
