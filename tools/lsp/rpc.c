/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lsp/rpc.h"

#include <string.h>
#include <strings.h>

void rpc_feed(rpc_reader *reader, const char *bytes, size_t length) {
  if (reader->skip > 0) { /* part of a message that is skipped */
    uint64_t some = length < reader->skip ? length : reader->skip;
    reader->skip -= some;
    bytes += some;
    length -= (size_t)some;
  }
  if (reader->consumed > 0) {
    reader->bytes.length -= reader->consumed;
    memmove(reader->bytes.data, reader->bytes.data + reader->consumed,
            reader->bytes.length);
    reader->consumed = 0;
  }
  sink_bytes(&reader->bytes, bytes, length);
}

/* Returns the length of the headers with the empty line after them, or 0 if it
 * is still missing. */
static size_t find_end(const char *text, size_t length) {
  for (size_t at = 0; at < length; at++) {
    if (text[at] != '\n') continue;
    if (at + 1 < length && text[at + 1] == '\n') return at + 2;
    if (at + 2 < length && text[at + 1] == '\r' && text[at + 2] == '\n') {
      return at + 3;
    }
  }
  return 0;
}

/* Reads the number after "Content-Length:". Returns false without a valid
 * one. */
static bool read_length(const char *text, size_t length, uint64_t *out) {
  static const char name[] = "content-length:";
  const char *end = text + length;
  for (const char *line = text; line < end;) {
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    if (!stop) break;
    const size_t size = (size_t)(stop - line);
    if (size > sizeof name - 1 &&
        strncasecmp(line, name, sizeof name - 1) == 0) {
      const char *digit = line + sizeof name - 1;
      uint64_t value = 0;
      unsigned count = 0;
      while (digit < stop && (*digit == ' ' || *digit == '\t')) digit++;
      for (; digit < stop && *digit >= '0' && *digit <= '9'; digit++) {
        if (++count > 15) return false;
        value = value * 10 + (uint64_t)(*digit - '0');
      }
      while (digit < stop && (*digit == ' ' || *digit == '\r')) digit++;
      *out = value;
      return count > 0 && digit == stop;
    }
    line = stop + 1;
  }
  return false;
}

rpc_event rpc_next(rpc_reader *reader, const char **text, size_t *length) {
  const char *from = reader->bytes.data + reader->consumed;
  const size_t left = reader->bytes.length - reader->consumed;
  uint64_t size = 0;
  if (left == 0) return RPC_NOTHING;
  const size_t head = find_end(from, left);
  if (head == 0 && left <= RPC_MAX_HEADER) return RPC_NOTHING;
  if (head == 0) { /* no header is that long */
    reader->consumed = reader->bytes.length;
    if (reader->in_header) return RPC_NOTHING; /* reported before */
    reader->in_header = true;
    return RPC_BAD_HEAD;
  }
  if (reader->in_header) { /* the end of a header that was reported */
    reader->in_header = false;
    reader->consumed += head;
    return rpc_next(reader, text, length);
  }
  if (!read_length(from, head, &size)) {
    reader->consumed += head;
    return RPC_BAD_HEAD;
  }
  if (size > RPC_MAX_CONTENT) {
    const size_t have = left - head;
    reader->skip = size > have ? size - have : 0;
    reader->consumed += head + (size > have ? have : (size_t)size);
    return RPC_TOO_LARGE;
  }
  if (left - head < size) return RPC_NOTHING;
  *text = from + head;
  *length = (size_t)size;
  reader->consumed += head + (size_t)size;
  return RPC_MESSAGE;
}

void rpc_deinit(rpc_reader *reader) {
  sink_deinit(&reader->bytes);
  *reader = (rpc_reader){.skip = 0};
}

void rpc_write(sink *out, const sink *message) {
  sink_text(out, "Content-Length: ");
  sink_u64(out, message->length);
  sink_text(out, "\r\n\r\n");
  sink_bytes(out, message->data, message->length);
}
