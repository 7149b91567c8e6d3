/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "io/json_out.h"

#include <string.h>

#include "cli/text.h"

static void start(json_out *json, const char *key) {
  if (json->comma) sink_bytes(json->out, ",", 1);
  json->comma = true;
  if (!key) return;
  sink_bytes(json->out, "\"", 1);
  sink_text(json->out, key);
  sink_bytes(json->out, "\":", 2);
}

void json_open(json_out *json, const char *key, char bracket) {
  start(json, key);
  sink_bytes(json->out, &bracket, 1);
  json->comma = false;
}

void json_close(json_out *json, char bracket) {
  sink_bytes(json->out, &bracket, 1);
  json->comma = true;
}

void json_u64(json_out *json, const char *key, uint64_t value) {
  start(json, key);
  sink_u64(json->out, value);
}

void json_bool(json_out *json, const char *key, bool value) {
  start(json, key);
  sink_text(json->out, value ? "true" : "false");
}

void json_null(json_out *json, const char *key) {
  start(json, key);
  sink_text(json->out, "null");
}

static void put_escaped(sink *out, uint32_t code_point) {
  switch (code_point) {
    case '"':
      sink_text(out, "\\\"");
      break;
    case '\\':
      sink_text(out, "\\\\");
      break;
    case '\n':
      sink_text(out, "\\n");
      break;
    case '\t':
      sink_text(out, "\\t");
      break;
    default:
      sink_format(out, "\\u%04x", (unsigned)code_point);
  }
}

void json_string(json_out *json, const char *key, const char *text,
                 size_t length) {
  start(json, key);
  sink_bytes(json->out, "\"", 1);
  size_t at = 0, copied = 0;
  while (at < length) {
    uint32_t code_point = 0xFFFD;
    size_t size = utf8_next(text + at, length - at, &code_point);
    bool plain = size && !is_control(code_point) && code_point != '"' &&
                 code_point != '\\';
    if (!plain) {
      sink_bytes(json->out, text + copied, at - copied);
      put_escaped(json->out, code_point);
    }
    at += size ? size : 1;
    if (!plain) copied = at;
  }
  sink_bytes(json->out, text + copied, at - copied);
  sink_bytes(json->out, "\"", 1);
}

void json_text(json_out *json, const char *key, const char *text) {
  json_string(json, key, text, strlen(text));
}

void json_raw(json_out *json, const char *key, const char *text,
              size_t length) {
  start(json, key);
  sink_bytes(json->out, text, length);
}

void json_printed(json_out *json, const sink *printed, uint64_t dropped) {
  if (printed->length == 0) return;
  json_string(json, "printed", printed->data, printed->length);
  if (dropped > 0) json_u64(json, "printed_dropped", dropped);
}
