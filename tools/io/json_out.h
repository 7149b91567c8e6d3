/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes JSON on one line. Commas are put where they belong; the caller sees to
 * it that what is opened gets closed. Keys are ours and need no escaping; in an
 * array the key is NULL. */
#ifndef VYRE_TOOLS_IO_JSON_OUT_H
#define VYRE_TOOLS_IO_JSON_OUT_H

#include "cli/sink.h"

typedef struct json_out {
  sink *out;
  bool comma; /* something stands before in the same object or array */
} json_out;

void json_open(json_out *json, const char *key, char bracket);
void json_close(json_out *json, char bracket);
void json_u64(json_out *json, const char *key, uint64_t value);
void json_bool(json_out *json, const char *key, bool value);
void json_null(json_out *json, const char *key);
void json_text(json_out *json, const char *key, const char *text);

/* Escapes what JSON wants escaped and every control character; bytes that are
 * no UTF-8 become U+FFFD. */
void json_string(json_out *json, const char *key, const char *text,
                 size_t length);

/* What a kernel has printed, if anything, and the bytes that were not kept. */
void json_printed(json_out *json, const sink *printed, uint64_t dropped);

/* Puts @p text as it is. */
void json_raw(json_out *json, const char *key, const char *text, size_t length);

#endif
