/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writers for tests of printers: one that keeps the text, one that refuses. */
#ifndef VYRE_TESTS_TEXT_H
#define VYRE_TESTS_TEXT_H

#include <string.h>

#include "vyre/writer.h"

typedef struct text_buffer {
  char bytes[131072]; /* always terminated */
  size_t length;
} text_buffer;

static inline bool text_append(void *self, const char *text, size_t length) {
  text_buffer *buffer = self;
  if (length >= sizeof buffer->bytes - buffer->length) return false;
  memcpy(buffer->bytes + buffer->length, text, length);
  buffer->length += length;
  buffer->bytes[buffer->length] = '\0';
  return true;
}

static inline vyre_writer text_writer(text_buffer *buffer) {
  return (vyre_writer){text_append, buffer};
}

static inline bool text_refuse(void *self, const char *text, size_t length) {
  (void)self;
  (void)text;
  (void)length;
  return false;
}

static inline vyre_writer refusing_writer(void) {
  return (vyre_writer){text_refuse, 0};
}

#endif
