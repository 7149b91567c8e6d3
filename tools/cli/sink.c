/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli/sink.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "vyre/memory.h"

static bool reserve(sink *out, size_t more) {
  if (out->failed) return false;
  if (more <= out->capacity - out->length) return true;
  size_t target = out->capacity ? out->capacity : 4096;
  while (target - out->length < more) {
    if (target > SIZE_MAX / 2) break;
    target *= 2;
  }
  vyre_allocator heap = vyre_allocator_heap();
  char *grown = NULL;
  if (target - out->length >= more) {
    grown = heap.resize(heap.self, out->data, out->capacity, target);
  }
  out->failed = !grown;
  if (!grown) return false;
  out->data = grown;
  out->capacity = target;
  return true;
}

void sink_bytes(sink *out, const char *text, size_t length) {
  if (length == 0 || !reserve(out, length)) return;
  memcpy(out->data + out->length, text, length);
  out->length += length;
}

void sink_text(sink *out, const char *text) {
  sink_bytes(out, text, strlen(text));
}

void sink_u64(sink *out, uint64_t value) {
  char digits[20];
  char *end = digits + sizeof digits, *from = end;
  do {
    *--from = (char)('0' + value % 10);
    value /= 10;
  } while (value);
  sink_bytes(out, from, (size_t)(end - from));
}

void sink_format(sink *out, const char *format, ...) {
  char buffer[1024];
  va_list arguments;
  va_start(arguments, format);
  int wanted = vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  if (wanted < 0) return;
  size_t length = (size_t)wanted;
  if (length >= sizeof buffer) length = sizeof buffer - 1;
  sink_bytes(out, buffer, length);
}

void sink_deinit(sink *out) {
  vyre_allocator heap = vyre_allocator_heap();
  if (out->data) heap.resize(heap.self, out->data, out->capacity, 0);
  *out = (sink){0};
}

static bool take(void *self, const char *text, size_t length) {
  sink *out = self;
  sink_bytes(out, text, length);
  return !out->failed;
}

vyre_writer sink_writer(sink *out) {
  return (vyre_writer){take, out};
}
