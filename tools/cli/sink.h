/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Output is collected in memory and written once all of it is known to be good,
 * so that a failure never leaves half an answer behind. */
#ifndef VYRE_TOOLS_CLI_SINK_H
#define VYRE_TOOLS_CLI_SINK_H

#include "vyre/writer.h"

/* Lets the compiler check a format against its arguments. */
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

/* Text that grows. Zeroed is empty. After a failed growth it takes nothing
 * more; whoever writes it out looks at `failed` once. */
typedef struct sink {
  char *data;
  size_t length, capacity;
  bool failed;
} sink;

void sink_bytes(sink *out, const char *text, size_t length);
void sink_text(sink *out, const char *text);
void sink_u64(sink *out, uint64_t value);
/* Up to 1023 bytes a call. */
void sink_format(sink *out, const char *format, ...) PRINTF_LIKE(2, 3);
void sink_finish(sink *out);

/* For the library's printers. */
vyre_writer sink_writer(sink *out);

#endif
