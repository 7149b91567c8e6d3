/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Growable text. Commands collect their output and write it only when it is
 * complete, so that a failure leaves no partial result. */
#ifndef VYRE_TOOLS_CLI_SINK_H
#define VYRE_TOOLS_CLI_SINK_H

#include <stdint.h>

#include "vyre/writer.h"

/* Makes the compiler check format arguments. */
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

/* A zeroed sink is empty. After a failed allocation it ignores further text
 * and sets `failed`, which the writer checks once. */
typedef struct sink {
  char *data;
  size_t length, capacity;
  bool failed;
} sink;

void sink_bytes(sink *out, const char *text, size_t length);
void sink_text(sink *out, const char *text);
void sink_u64(sink *out, uint64_t value);
/* Appends formatted text of at most 1023 bytes. */
void sink_format(sink *out, const char *format, ...) PRINTF_LIKE(2, 3);
void sink_deinit(sink *out);

/* Returns a writer for functions of the library. */
vyre_writer sink_writer(sink *out);

#endif
