/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* PNG encoder (RFC 2083) with a simple deflate (RFC 1951): the fixed Huffman
 * code, and matches of the pixel to the left or of the row above. Images
 * with plain areas become small. */
#include "io/png.h"

#include <string.h>

#include "io/checksum.h"

enum { LONGEST_MATCH = 258, SHORTEST_MATCH = 4, FARTHEST = 32768 };
enum { LARGEST_CHUNK = 1 << 30 };

/* Bit writer, lowest bit first. */
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

/* Huffman codes are written highest bit first. */
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

/* Lengths and distances follow one pattern: @p per codes for each number of
 * extra bits; the first two groups have none. */
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
  size_t max = end - at < LONGEST_MATCH ? end - at : LONGEST_MATCH;
  while (length < max && data[at + length] == data[at + length - distance]) {
    length++;
  }
  return length;
}

static void deflate(const unsigned char *data, size_t size, size_t near,
                    size_t far, sink *out) {
  bit_sink to = {.out = out};
  put_bits(&to, 1, 1); /* the last block */
  put_bits(&to, 1, 2); /* fixed Huffman code */
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
  put_bits(&to, 0, 7); /* pad the last byte */
}

static void put_u32(uint32_t value, sink *out) {
  char bytes[4] = {(char)(value >> 24), (char)(value >> 16), (char)(value >> 8),
                   (char)value};
  sink_bytes(out, bytes, 4);
}

static void put_chunk(const char *type, const sink *data, sink *out) {
  put_u32((uint32_t)data->length, out);
  size_t begin = out->length;
  sink_text(out, type);
  sink_bytes(out, data->data, data->length);
  if (data->failed) out->failed = true;
  if (out->failed) return;
  put_u32(
      crc32_png((const unsigned char *)out->data + begin, out->length - begin),
      out);
}

/* The length of a chunk must be below 2^31, so write several. */
static void put_data(const sink *packed, sink *out) {
  if (packed->failed) out->failed = true;
  for (size_t at = 0; !out->failed && at < packed->length;) {
    size_t left = packed->length - at;
    sink part = {.data = packed->data + at,
                 .length = left < LARGEST_CHUNK ? left : LARGEST_CHUNK};
    put_chunk("IDAT", &part, out);
    at += part.length;
  }
}

void png_put(const unsigned char *samples, const image_shape *shape,
             unsigned bits, sink *out) {
  static const char colours[] = {0, 0, 4, 2, 6};
  sink head = {0}, rows = {0}, packed = {0}, none = {0};
  size_t pixel = (size_t)shape->channels * (bits / 8);
  size_t stride = shape->width * pixel;
  const char format[5] = {(char)bits, colours[shape->channels]};
  put_u32(shape->width, &head);
  put_u32(shape->height, &head);
  sink_bytes(&head, format, sizeof format);
  for (uint32_t y = 0; y < shape->height; y++) {
    sink_bytes(&rows, "", 1); /* no filter */
    sink_bytes(&rows, (const char *)samples + y * stride, stride);
  }
  sink_bytes(&packed, "\x78\x01", 2);
  if (!rows.failed) {
    const unsigned char *bytes = (const unsigned char *)rows.data;
    deflate(bytes, rows.length, pixel, stride + 1, &packed);
    put_u32(adler32(bytes, rows.length), &packed);
  }
  sink_bytes(out, "\x89PNG\r\n\x1a\n", 8);
  put_chunk("IHDR", &head, out);
  put_data(&packed, out);
  put_chunk("IEND", &none, out);
  if (rows.failed) out->failed = true;
  sink_deinit(&head);
  sink_deinit(&rows);
  sink_deinit(&packed);
}
