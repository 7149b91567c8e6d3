/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes JSON on one line and inserts the commas. The caller closes what it
 * opens. Keys need no escaping; in an array the key is NULL. */
#ifndef VYRE_TOOLS_IO_JSON_OUT_H
#define VYRE_TOOLS_IO_JSON_OUT_H

#include "cli/sink.h"

typedef struct json_out {
  sink *out;
  bool comma; /* an element precedes in this object or array */
} json_out;

void json_open(json_out *json, const char *key, char bracket);
void json_close(json_out *json, char bracket);
void json_u64(json_out *json, const char *key, uint64_t value);
void json_bool(json_out *json, const char *key, bool value);
void json_null(json_out *json, const char *key);
void json_text(json_out *json, const char *key, const char *text);

/* Writes a string. Escapes control characters; invalid UTF-8 becomes U+FFFD. */
void json_string(json_out *json, const char *key, const char *text,
                 size_t length);

/* Writes the output of print(...), if any, and the number of dropped bytes. */
void json_printed(json_out *json, const sink *printed, uint64_t dropped);

/* Writes @p text without escaping. */
void json_raw(json_out *json, const char *key, const char *text, size_t length);

#endif
