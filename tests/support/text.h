/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writers for tests of printers: two that keep the text, one that refuses. */
#ifndef VYRE_TESTS_TEXT_H
#define VYRE_TESTS_TEXT_H

#include <stdlib.h>
#include <string.h>

#include "vyre/writer.h"

typedef struct text_buffer {
  char bytes[131072]; /* always terminated */
  size_t length;
} text_buffer;

static inline bool text_append(void *self, const char *bytes, size_t length) {
  text_buffer *buffer = self;
  if (length >= sizeof buffer->bytes - buffer->length) return false;
  memcpy(buffer->bytes + buffer->length, bytes, length);
  buffer->length += length;
  buffer->bytes[buffer->length] = '\0';
  return true;
}

static inline vyre_writer text_writer(text_buffer *buffer) {
  return (vyre_writer){text_append, buffer};
}

/* Text in memory that grows. The caller frees `bytes`. */
typedef struct growing_text {
  char *bytes; /* terminated, or NULL */
  size_t length, capacity;
} growing_text;

static inline bool growing_append(void *self, const char *bytes,
                                  size_t length) {
  growing_text *t = self;
  if (t->length + length + 1 > t->capacity) {
    t->capacity = 2 * (t->length + length) + 4096;
    char *grown = realloc(t->bytes, t->capacity);
    if (!grown) return false;
    t->bytes = grown;
  }
  memcpy(t->bytes + t->length, bytes, length);
  t->length += length;
  t->bytes[t->length] = '\0';
  return true;
}

static inline vyre_writer growing_writer(growing_text *t) {
  return (vyre_writer){growing_append, t};
}

static inline bool text_refuse(void *self, const char *bytes, size_t length) {
  (void)self;
  (void)bytes;
  (void)length;
  return false;
}

static inline vyre_writer refusing_writer(void) {
  return (vyre_writer){text_refuse, 0};
}

#endif
