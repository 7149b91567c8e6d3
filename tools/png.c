/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* PNG (RFC 2083) with a small deflate (RFC 1951): the fixed code, and repeats of
 * the pixel to the left or of the row above. Not the smallest file, but a small
 * fraction of the pixels for pictures with plain areas. */
#include "png.h"

#include <string.h>

enum { LONGEST_MATCH = 258, SHORTEST_MATCH = 4, FARTHEST = 32768 };

/* Bits on their way into bytes, lowest first. */
typedef struct bit_sink {
  sink *out;
  uint32_t bits;
  unsigned count;
} bit_sink;

static void put_bits(bit_sink *to, uint32_t bits, unsigned count) {
  to->bits |= bits << to->count;
  to->count += count;
  while (to->count >= 8) {
    char byte = (char)(to->bits & 0xFF);
    sink_bytes(to->out, &byte, 1);
    to->bits >>= 8;
    to->count -= 8;
  }
}

/* Codes go highest bit first. */
static void put_code(bit_sink *to, uint32_t code, unsigned count) {
  uint32_t turned = 0;
  for (unsigned i = 0; i < count; i++)
    turned |= (code >> i & 1) << (count - 1 - i);
  put_bits(to, turned, count);
}

static void put_symbol(bit_sink *to, uint32_t symbol) {
  if (symbol < 144) {
    put_code(to, 0x30 + symbol, 8);
  } else if (symbol < 256) {
    put_code(to, 0x190 + symbol - 144, 9);
  } else if (symbol < 280) {
    put_code(to, symbol - 256, 7);
  } else {
    put_code(to, 0xC0 + symbol - 280, 8);
  }
}

/* Lengths and distances share a pattern: @p per codes for each number of extra
 * bits, the first two numbers of them with none. */
static uint32_t split(uint32_t value, uint32_t per, unsigned *extra,
                      uint32_t *rest) {
  uint32_t code = 0, base = 0;
  *extra = 0;
  for (;;) {
    uint32_t size = (uint32_t)1 << *extra;
    if (value < base + size) break;
    base += size;
    code++;
    if (code >= 2 * per && code % per == 0) ++*extra;
  }
  *rest = value - base;
  return code;
}

static void put_match(bit_sink *to, uint32_t length, uint32_t distance) {
  unsigned extra;
  uint32_t rest;
  if (length == LONGEST_MATCH) {
    put_symbol(to, 285);
  } else {
    uint32_t code = split(length - 3, 4, &extra, &rest);
    put_symbol(to, 257 + code);
    put_bits(to, rest, extra);
  }
  uint32_t code = split(distance - 1, 2, &extra, &rest);
  put_code(to, code, 5);
  put_bits(to, rest, extra);
}

static size_t match_length(const unsigned char *data, size_t at, size_t end,
                           size_t distance) {
  if (distance > at || distance > FARTHEST) return 0;
  size_t length = 0;
  size_t most = end - at < LONGEST_MATCH ? end - at : LONGEST_MATCH;
  while (length < most && data[at + length] == data[at + length - distance]) {
    length++;
  }
  return length;
}

static void deflate(const unsigned char *data, size_t size, size_t near,
                    size_t far, sink *out) {
  bit_sink to = {.out = out};
  put_bits(&to, 1, 1); /* the last block */
  put_bits(&to, 1, 2); /* with the fixed code */
  for (size_t at = 0; at < size;) {
    size_t left = match_length(data, at, size, near);
    size_t above = match_length(data, at, size, far);
    size_t best = left >= above ? left : above;
    if (best < SHORTEST_MATCH) {
      put_symbol(&to, data[at++]);
    } else {
      put_match(&to, (uint32_t)best, (uint32_t)(left >= above ? near : far));
      at += best;
    }
  }
  put_symbol(&to, 256);
  put_bits(&to, 0, 7); /* the rest of the last byte */
}

static void put_u32(uint32_t value, sink *out) {
  char bytes[4] = {(char)(value >> 24), (char)(value >> 16), (char)(value >> 8),
                   (char)value};
  sink_bytes(out, bytes, 4);
}

static uint32_t adler(const unsigned char *data, size_t size) {
  uint32_t a = 1, b = 0;
  for (size_t i = 0; i < size; i++) {
    a = (a + data[i]) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

static uint32_t crc(const char *data, size_t size) {
  uint32_t sum = 0xFFFFFFFF;
  for (size_t i = 0; i < size; i++) {
    sum ^= (unsigned char)data[i];
    for (int bit = 0; bit < 8; bit++) {
      sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320 : 0);
    }
  }
  return ~sum;
}

static void put_chunk(const char *type, const sink *data, sink *out) {
  put_u32((uint32_t)data->length, out);
  size_t begin = out->length;
  sink_text(out, type);
  sink_bytes(out, data->data, data->length);
  if (data->failed) out->failed = true;
  if (out->failed) return;
  put_u32(crc(out->data + begin, out->length - begin), out);
}

void png_put(const unsigned char *pixels, uint32_t width, uint32_t height,
             uint32_t channels, sink *out) {
  sink head = {0}, rows = {0}, packed = {0}, none = {0};
  size_t stride = (size_t)width * channels;
  put_u32(width, &head);
  put_u32(height, &head);
  sink_bytes(&head, channels == 3 ? "\x08\x02\0\0\0" : "\x08\0\0\0\0", 5);
  for (uint32_t y = 0; y < height; y++) {
    sink_bytes(&rows, "", 1); /* no filter */
    sink_bytes(&rows, (const char *)pixels + y * stride, stride);
  }
  sink_bytes(&packed, "\x78\x01", 2);
  if (!rows.failed) {
    const unsigned char *bytes = (const unsigned char *)rows.data;
    deflate(bytes, rows.length, channels, stride + 1, &packed);
    put_u32(adler(bytes, rows.length), &packed);
  }
  sink_bytes(out, "\x89PNG\r\n\x1a\n", 8);
  put_chunk("IHDR", &head, out);
  put_chunk("IDAT", &packed, out);
  put_chunk("IEND", &none, out);
  if (rows.failed) out->failed = true;
  sink_finish(&head);
  sink_finish(&rows);
  sink_finish(&packed);
}
