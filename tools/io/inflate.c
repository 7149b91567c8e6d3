/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Canonical Huffman codes are decoded one bit at a time from the counts per code
 * length. That is several times slower than table lookup and a tenth of the
 * code; a picture of 4096 x 4096 pixels takes about a second. */
#include "io/inflate.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "io/checksum.h"

enum {
  LONGEST_CODE = 15,
  LITERALS = 288, /* literals, end of block, lengths */
  DISTANCES = 30,
  LENGTH_CODES = 19,
  END_OF_BLOCK = 256
};

/* A canonical Huffman code. */
typedef struct huffman {
  uint16_t counts[LONGEST_CODE + 1]; /* symbols per code length */
  uint16_t symbols[LITERALS];        /* ordered by code */
} huffman;

typedef struct inflater {
  const unsigned char *in;
  size_t at, length;
  uint32_t bits;
  unsigned bit_count;
  unsigned char *out;
  size_t done, size;
  const char *wrong; /* first error; NULL: success */
} inflater;

static bool fail(inflater *s, const char *why) {
  if (!s->wrong) s->wrong = why;
  return false;
}

static bool take_bits(inflater *s, unsigned count, uint32_t *value) {
  while (s->bit_count < count) {
    if (s->at == s->length) return fail(s, "the data is truncated");
    s->bits |= (uint32_t)s->in[s->at++] << s->bit_count;
    s->bit_count += 8;
  }
  *value = s->bits & ((UINT32_C(1) << count) - 1);
  s->bits >>= count;
  s->bit_count -= count;
  return true;
}

/* Builds the code whose symbol i has lengths[i] bits (0: unused). An incomplete
 * code is accepted only when it has a single symbol, as RFC 1951 allows for
 * distances. */
static bool build(inflater *s, huffman *code, const uint8_t *lengths,
                  unsigned count) {
  uint16_t next[LONGEST_CODE + 1];
  memset(code->counts, 0, sizeof code->counts);
  for (unsigned i = 0; i < count; i++) code->counts[lengths[i]]++;
  unsigned used = count - code->counts[0];
  code->counts[0] = 0;
  int left = 1; /* unused codes of this length */
  next[0] = next[1] = 0;
  for (unsigned i = 1; i <= LONGEST_CODE; i++) {
    left = 2 * left - code->counts[i];
    if (left < 0) return fail(s, "a Huffman code is oversubscribed");
    if (i < LONGEST_CODE) next[i + 1] = (uint16_t)(next[i] + code->counts[i]);
  }
  if (left > 0 && !(used == 0 || (used == 1 && code->counts[1] == 1))) {
    return fail(s, "a Huffman code is incomplete");
  }
  for (unsigned i = 0; i < count; i++) {
    if (lengths[i]) code->symbols[next[lengths[i]]++] = (uint16_t)i;
  }
  return true;
}

static bool take_symbol(inflater *s, const huffman *code, unsigned *symbol) {
  uint32_t bit, value = 0, first = 0, index = 0;
  for (unsigned length = 1; length <= LONGEST_CODE; length++) {
    if (!take_bits(s, 1, &bit)) return false;
    value |= bit;
    uint32_t count = code->counts[length];
    if (value < first + count) {
      *symbol = code->symbols[index + (value - first)];
      return true;
    }
    index += count;
    first = (first + count) << 1;
    value <<= 1;
  }
  return fail(s, "a code has no symbol");
}

static bool copy_match(inflater *s, size_t distance, size_t length) {
  if (distance > s->done) return fail(s, "a match starts before the data");
  if (length > s->size - s->done) {
    return fail(s, "the data is longer than the picture");
  }
  for (size_t i = 0; i < length; i++, s->done++) {
    s->out[s->done] = s->out[s->done - distance];
  }
  return true;
}

static bool take_match(inflater *s, unsigned symbol, const huffman *distances) {
  static const uint16_t length_base[] = {
      3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
      31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
  static const uint8_t length_extra[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1,
                                         1, 1, 2, 2, 2, 2, 3, 3, 3, 3,
                                         4, 4, 4, 4, 5, 5, 5, 5, 0};
  static const uint16_t distance_base[DISTANCES] = {
      1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
      33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
      1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
  uint32_t extra;
  unsigned distance;
  if (symbol > 285) return fail(s, "a length code is reserved");
  if (!take_bits(s, length_extra[symbol - 257], &extra)) return false;
  size_t length = length_base[symbol - 257] + extra;
  if (!take_symbol(s, distances, &distance)) return false;
  if (distance >= DISTANCES) return fail(s, "a distance code is reserved");
  if (!take_bits(s, distance < 2 ? 0 : distance / 2 - 1, &extra)) return false;
  return copy_match(s, distance_base[distance] + extra, length);
}

static bool take_block(inflater *s, const huffman *literals,
                       const huffman *distances) {
  unsigned symbol;
  for (;;) {
    if (!take_symbol(s, literals, &symbol)) return false;
    if (symbol == END_OF_BLOCK) return true;
    if (symbol > END_OF_BLOCK) {
      if (!take_match(s, symbol, distances)) return false;
    } else {
      if (s->done == s->size) {
        return fail(s, "the data is longer than the picture");
      }
      s->out[s->done++] = (unsigned char)symbol;
    }
  }
}

static bool take_stored(inflater *s) {
  s->bits = 0; /* skip to the next byte */
  s->bit_count = 0;
  if (s->length - s->at < 4) return fail(s, "the data is truncated");
  size_t count = s->in[s->at] | (size_t)s->in[s->at + 1] << 8;
  size_t inverse = s->in[s->at + 2] | (size_t)s->in[s->at + 3] << 8;
  s->at += 4;
  if ((count ^ inverse) != 0xFFFF) {
    return fail(s, "the length of a stored block is corrupt");
  }
  if (count > s->length - s->at) return fail(s, "the data is truncated");
  if (count > s->size - s->done) {
    return fail(s, "the data is longer than the picture");
  }
  if (count) memcpy(s->out + s->done, s->in + s->at, count);
  s->at += count;
  s->done += count;
  return true;
}

static bool take_fixed(inflater *s) {
  huffman literals, distances;
  uint8_t lengths[LITERALS];
  memset(lengths, 8, 144);
  memset(lengths + 144, 9, 112);
  memset(lengths + 256, 7, 24);
  memset(lengths + 280, 8, 8);
  if (!build(s, &literals, lengths, LITERALS)) return false;
  memset(lengths, 5, 32); /* codes 30 and 31 are reserved */
  return build(s, &distances, lengths, 32) &&
         take_block(s, &literals, &distances);
}

/* Reads code lengths, which are run-length and Huffman coded. */
static bool take_lengths(inflater *s, const huffman *code, unsigned count,
                         uint8_t *lengths) {
  for (unsigned at = 0; at < count;) {
    unsigned symbol;
    uint32_t run;
    uint8_t value = 0;
    if (!take_symbol(s, code, &symbol)) return false;
    if (symbol < 16) {
      lengths[at++] = (uint8_t)symbol;
      continue;
    }
    if (symbol == 16) {
      if (at == 0) return fail(s, "a run of code lengths repeats nothing");
      value = lengths[at - 1];
    }
    unsigned bits = symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
    if (!take_bits(s, bits, &run)) return false;
    run += symbol == 18 ? 11 : 3;
    if (run > count - at) return fail(s, "a run of code lengths is too long");
    memset(lengths + at, value, run);
    at += run;
  }
  return true;
}

static bool take_dynamic(inflater *s) {
  static const uint8_t order[LENGTH_CODES] = {
      16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  huffman code, distances;
  uint8_t lengths[LITERALS + 32] = {0};
  uint32_t literal_count, distance_count, code_count, bits;
  if (!take_bits(s, 5, &literal_count) || !take_bits(s, 5, &distance_count) ||
      !take_bits(s, 4, &code_count)) {
    return false;
  }
  literal_count += 257;
  distance_count += 1;
  code_count += 4;
  if (literal_count > 286 || distance_count > DISTANCES) {
    return fail(s, "a block has too many codes");
  }
  for (uint32_t i = 0; i < code_count; i++) {
    if (!take_bits(s, 3, &bits)) return false;
    lengths[order[i]] = (uint8_t)bits;
  }
  if (!build(s, &code, lengths, LENGTH_CODES)) return false;
  if (!take_lengths(s, &code, literal_count + distance_count, lengths)) {
    return false;
  }
  if (lengths[END_OF_BLOCK] == 0) return fail(s, "a block has no end");
  return build(s, &distances, lengths + literal_count, distance_count) &&
         build(s, &code, lengths, literal_count) &&
         take_block(s, &code, &distances);
}

static bool take_blocks(inflater *s) {
  uint32_t last = 0, kind;
  while (!last) {
    if (!take_bits(s, 1, &last) || !take_bits(s, 2, &kind)) return false;
    bool fine = kind == 0   ? take_stored(s)
                : kind == 1 ? take_fixed(s)
                : kind == 2 ? take_dynamic(s)
                            : fail(s, "a block has a reserved type");
    if (!fine) return false;
  }
  return true;
}

const char *inflate_zlib(const unsigned char *data, size_t length,
                         unsigned char *out, size_t size) {
  if (length < 6) return "the data is truncated";
  if ((data[0] & 15) != 8 || data[0] >> 4 > 7 ||
      ((unsigned)data[0] << 8 | data[1]) % 31 != 0 || data[1] & 32) {
    return "the data is not a zlib stream without a dictionary";
  }
  inflater s = {
      .in = data, .at = 2, .length = length, .out = out, .size = size};
  if (!take_blocks(&s)) return s.wrong;
  if (s.done < size) return "the data is shorter than the picture";
  if (s.length - s.at < 4) return "the data is truncated";
  const unsigned char *sum =
      data + s.at; /* bytes after the stream are ignored */
  uint32_t wanted = (uint32_t)sum[0] << 24 | (uint32_t)sum[1] << 16 |
                    (uint32_t)sum[2] << 8 | sum[3];
  return adler32(out, size) == wanted ? NULL : "the checksum is wrong";
}
