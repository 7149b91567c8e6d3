/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* PNG decoder (ISO/IEC 15948): all colour types, depths, filters and both
 * kinds of interlacing. Colour spaces and gamma are ignored; samples keep
 * their stored values. */
#include <string.h>

#include "io/checksum.h"
#include "io/image.h"
#include "io/inflate.h"

enum {
  GREY = 0,
  RGB = 2,
  PALETTE = 3,
  GREY_ALPHA = 4,
  RGB_ALPHA = 6,
  CHUNK_FRAME = 12, /* length, type and checksum of a chunk */
  PALETTE_SIZE = 256
};

/* Deflate expands a byte to at most 1032 bytes. A header that needs more is
 * rejected before memory is allocated. */
enum { MAX_GROWTH = 1032 };

static const unsigned char signature[8] = {0x89, 'P',  'N',  'G',
                                           '\r', '\n', 0x1A, '\n'};

typedef struct png_reader {
  const input *in;
  const image_target *target;
  problem *wrong;
  vyre_arena scratch;
  size_t at;
  /* the header */
  uint32_t width, height;
  unsigned depth, colour;
  bool is_interlaced;
  unsigned stored; /* samples of a stored pixel */
  /* other chunks */
  unsigned char palette[PALETTE_SIZE][4];
  unsigned palette_count;
  bool has_key; /* the transparent colour */
  uint32_t key[3];
  bool has_palette_alpha;
  unsigned char *packed; /* all IDAT chunks joined */
  size_t packed_size, packed_room;
  bool has_data, is_data_over, is_over;
} png_reader;

/* A chunk of the file. */
typedef struct png_chunk {
  const unsigned char *type, *data;
  uint32_t size;
} png_chunk;

bool is_png(const char *text, size_t length) {
  return length >= sizeof signature &&
         memcmp(text, signature, sizeof signature) == 0;
}

static bool bad(png_reader *r, const char *why) {
  (void)image_bad(r->in, r->target->buffer->name, "", r->wrong,
                  "%s (byte %zu of the file)", why, r->at);
  return false; /* for the static analyzer */
}

static uint32_t get_u32(const unsigned char *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
         p[3];
}

static bool is_chunk(const png_chunk *c, const char *type) {
  return memcmp(c->type, type, 4) == 0;
}

static bool next_chunk(png_reader *r, png_chunk *c) {
  const unsigned char *from = (const unsigned char *)r->in->text + r->at;
  size_t left = r->in->length - r->at;
  if (left < CHUNK_FRAME) return bad(r, "the file is cut short");
  c->size = get_u32(from);
  if (c->size > left - CHUNK_FRAME) return bad(r, "the file is cut short");
  c->type = from + 4;
  c->data = from + 8;
  for (int i = 0; i < 4; i++) {
    unsigned char letter = c->type[i] | 32;
    if (letter < 'a' || letter > 'z') return bad(r, "a chunk has no name");
  }
  if (crc32_png(c->type, c->size + 4) != get_u32(c->data + c->size)) {
    return bad(r, "the checksum of a chunk is wrong");
  }
  r->at += c->size + CHUNK_FRAME;
  return true;
}

static bool read_header(png_reader *r, const png_chunk *c) {
  /* Depths of each colour type as bits of a mask, and samples of a pixel. */
  static const unsigned depths[7] = {
      1 | 2 | 4 | 8 | 16, 0, 8 | 16, 1 | 2 | 4 | 8, 8 | 16, 0, 8 | 16};
  static const unsigned samples[7] = {1, 0, 3, 1, 2, 0, 4};
  const unsigned char *d = c->data;
  if (!is_chunk(c, "IHDR") || c->size != 13) {
    return bad(r, "the first chunk is not an IHDR of 13 bytes");
  }
  r->width = get_u32(d);
  r->height = get_u32(d + 4);
  r->depth = d[8];
  r->colour = d[9];
  if (r->width == 0 || r->height == 0 || r->width > INT32_MAX ||
      r->height > INT32_MAX) {
    return bad(r, "width and height are not between 1 and 2147483647");
  }
  bool is_power = r->depth && (r->depth & (r->depth - 1)) == 0;
  if (r->colour > 6 || !is_power || !(depths[r->colour] & r->depth)) {
    return bad(r, "invalid combination of colour type and depth");
  }
  if (d[10] != 0 || d[11] != 0 || d[12] > 1) {
    return bad(r, "unknown compression, filter or interlacing method");
  }
  r->stored = samples[r->colour];
  r->is_interlaced = d[12] == 1;
  return true;
}

static bool read_palette(png_reader *r, const png_chunk *c) {
  if (r->palette_count || r->has_data) return bad(r, "PLTE is out of place");
  if (r->colour == GREY || r->colour == GREY_ALPHA) {
    return bad(r, "a grey picture has a palette");
  }
  if (c->size == 0 || c->size % 3 != 0 || c->size > 3 * PALETTE_SIZE ||
      (r->colour == PALETTE && c->size / 3 > 1u << r->depth)) {
    return bad(r, "the palette has an invalid size");
  }
  r->palette_count = c->size / 3;
  for (unsigned i = 0; i < r->palette_count; i++) {
    memcpy(r->palette[i], c->data + 3 * (size_t)i, 3);
    r->palette[i][3] = 255;
  }
  return true;
}

static bool read_transparency(png_reader *r, const png_chunk *c) {
  if (r->has_key || r->has_palette_alpha || r->has_data) {
    return bad(r, "tRNS is out of place");
  }
  if (r->colour == PALETTE) {
    if (c->size == 0 || c->size > r->palette_count) {
      return bad(r, "tRNS has more entries than the palette, or none");
    }
    for (uint32_t i = 0; i < c->size; i++) r->palette[i][3] = c->data[i];
    r->has_palette_alpha = true;
    return true;
  }
  if (r->stored > 3 || r->colour == GREY_ALPHA || c->size != 2 * r->stored) {
    return bad(r, "tRNS does not suit the colour type");
  }
  for (size_t i = 0; i < r->stored; i++) {
    r->key[i] = (uint32_t)c->data[2 * i] << 8 | c->data[2 * i + 1];
  }
  r->has_key = true;
  return true;
}

static bool read_data(png_reader *r, const png_chunk *c) {
  if (r->is_data_over) return bad(r, "IDAT chunks are not consecutive");
  if (r->colour == PALETTE && !r->palette_count) {
    return bad(r, "the palette is missing");
  }
  if (!r->has_data) {
    /* A chunk cannot be longer than the rest of the file. */
    r->packed_room = (r->in->length - r->at) + c->size;
    r->packed = vyre_arena_alloc(&r->scratch, r->packed_room, 1);
    if (!r->packed) return problem_no_memory(r->wrong, "a picture");
  }
  r->has_data = true;
  if (c->size) memcpy(r->packed + r->packed_size, c->data, c->size);
  r->packed_size += c->size;
  return true;
}

static bool read_chunk(png_reader *r, const png_chunk *c) {
  if (is_chunk(c, "IDAT")) return read_data(r, c);
  r->is_data_over = r->has_data;
  if (is_chunk(c, "IEND")) {
    r->is_over = true;
    return true;
  }
  if (is_chunk(c, "PLTE")) return read_palette(r, c);
  if (is_chunk(c, "tRNS")) return read_transparency(r, c);
  bool is_needed = !(c->type[0] & 32);
  return !is_needed || bad(r, "a critical chunk is unknown");
}

/* --- pixels ---------------------------------------------------------------------*/

/* A pass of an interlaced image: every dx-th pixel of every dy-th row. */
typedef struct png_pass {
  uint32_t x, y, dx, dy;
} png_pass;

static const png_pass interlaced[7] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8},
                                       {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2},
                                       {0, 1, 1, 2}};
static const png_pass whole = {0, 0, 1, 1};

static uint32_t steps_of(uint32_t size, uint32_t first, uint32_t step) {
  return size > first ? (size - first - 1) / step + 1 : 0;
}

static const png_pass *passes_of(const png_reader *r, unsigned *count) {
  *count = r->is_interlaced ? 7 : 1;
  return r->is_interlaced ? interlaced : &whole;
}

static size_t row_bytes(const png_reader *r, uint32_t columns) {
  return ((size_t)columns * r->stored * r->depth + 7) / 8;
}

/* Returns the size of all rows of all passes with their filter bytes. There
 * are at most INPUT_LIMIT pixels of 8 bytes, so that the result does not
 * wrap. */
static uint64_t raw_size(const png_reader *r) {
  unsigned count;
  const png_pass *pass = passes_of(r, &count);
  uint64_t size = 0;
  for (unsigned i = 0; i < count; i++) {
    uint32_t columns = steps_of(r->width, pass[i].x, pass[i].dx);
    uint32_t rows = steps_of(r->height, pass[i].y, pass[i].dy);
    if (columns) size += (uint64_t)rows * (row_bytes(r, columns) + 1);
  }
  return size;
}

static unsigned char paeth(int left, int above, int corner) {
  int guess = left + above - corner;
  int a = guess > left ? guess - left : left - guess;
  int b = guess > above ? guess - above : above - guess;
  int c = guess > corner ? guess - corner : corner - guess;
  return (unsigned char)(a <= b && a <= c ? left : b <= c ? above : corner);
}

/* Reverts the filter of a row. @p above is NULL for the first row of a pass. */
static bool unfilter(unsigned filter, unsigned char *row,
                     const unsigned char *above, size_t size, size_t unit) {
  if (filter > 4) return false;
  for (size_t i = 0; filter && i < size; i++) {
    int left = i >= unit ? row[i - unit] : 0;
    int up = above ? above[i] : 0;
    int corner = above && i >= unit ? above[i - unit] : 0;
    int guess = filter == 1   ? left
                : filter == 2 ? up
                : filter == 3 ? (left + up) / 2
                              : paeth(left, up, corner);
    row[i] = (unsigned char)(row[i] + guess);
  }
  return true;
}

/* Returns sample @p index of a row. */
static uint32_t sample_at(const unsigned char *row, size_t index,
                          unsigned depth) {
  if (depth == 8) return row[index];
  if (depth == 16) return (uint32_t)row[2 * index] << 8 | row[2 * index + 1];
  size_t bit = index * depth;
  return row[bit / 8] >> (8 - depth - bit % 8) & ((1u << depth) - 1);
}

/* Expands a stored pixel. Returns false if its index exceeds the palette. */
static bool expand(const png_reader *r, const unsigned char *row, size_t pixel,
                   const image *out, unsigned char *to) {
  uint32_t stored[4] = {0}, channels = out->shape.channels;
  for (unsigned i = 0; i < r->stored; i++) {
    stored[i] = sample_at(row, pixel * r->stored + i, r->depth);
  }
  if (r->colour == PALETTE) {
    if (stored[0] >= r->palette_count) return false;
    memcpy(to, r->palette[stored[0]], channels);
    return true;
  }
  bool is_key = r->has_key;
  for (unsigned i = 0; is_key && i < r->stored; i++) {
    is_key = stored[i] == r->key[i];
  }
  uint32_t scale = r->depth < 8 ? 255 / ((1u << r->depth) - 1) : 1;
  for (size_t i = 0; i < channels; i++) {
    uint32_t value = i < r->stored ? stored[i] * scale
                     : is_key      ? 0
                                   : out->maximum;
    if (out->bits == 16) {
      to[2 * i] = (unsigned char)value;
      to[2 * i + 1] = (unsigned char)(value >> 8);
    } else {
      to[i] = (unsigned char)value;
    }
  }
  return true;
}

/* Decodes the rows of a pass from *raw and moves *raw past them. */
static bool take_pass(png_reader *r, const png_pass *pass, unsigned char **raw,
                      const image *out) {
  uint32_t columns = steps_of(r->width, pass->x, pass->dx);
  uint32_t rows = steps_of(r->height, pass->y, pass->dy);
  size_t size = row_bytes(r, columns);
  size_t unit = (r->stored * r->depth + 7) / 8;
  size_t pixel = (size_t)out->shape.channels * out->bits / 8;
  const unsigned char *above = NULL;
  for (uint32_t y = 0; columns && y < rows; y++) {
    unsigned char *row = *raw + 1;
    if (!unfilter(**raw, row, above, size, unit)) {
      return bad(r, "a row has an unknown filter");
    }
    size_t to_row = (size_t)(pass->y + y * pass->dy) * r->width;
    for (uint32_t x = 0; x < columns; x++) {
      size_t at = to_row + pass->x + (size_t)x * pass->dx;
      if (!expand(r, row, x, out, out->samples + at * pixel)) {
        return bad(r, "a pixel index exceeds the palette");
      }
    }
    above = row;
    *raw += size + 1;
  }
  return true;
}

static uint32_t channels_of(const png_reader *r) {
  if (r->colour == PALETTE) return r->has_palette_alpha ? 4 : 3;
  return r->stored + (r->has_key ? 1 : 0);
}

static bool decode(png_reader *r, vyre_arena *arena, image *out) {
  uint64_t bytes;
  out->shape = (image_shape){r->width, r->height, channels_of(r)};
  out->bits = r->depth == 16 ? 16 : 8;
  out->maximum = r->depth == 16 ? 65535 : 255;
  if (!image_check(r->in, r->target, out, &bytes, r->wrong)) return false;
  uint64_t size = raw_size(r);
  if (!image_check_bytes(r->in, r->target, out, bytes + size, r->wrong)) {
    return false;
  }
  size_t samples = (size_t)r->width * r->height * out->shape.channels;
  if (size / MAX_GROWTH > r->packed_size) {
    return image_bad(r->in, r->target->buffer->name, "", r->wrong,
                     "%zu bytes of data cannot hold %u x %u pixels",
                     r->packed_size, r->width, r->height);
  }
  unsigned char *raw = vyre_arena_alloc(&r->scratch, (size_t)size, 1);
  out->samples = vyre_arena_alloc(arena, samples * (out->bits / 8), 16);
  if (!raw || !out->samples) return problem_no_memory(r->wrong, "a picture");
  const char *why = inflate_zlib(r->packed, r->packed_size, raw, (size_t)size);
  if (why) {
    return image_bad(r->in, r->target->buffer->name, "", r->wrong,
                     "the pixels cannot be decoded: %s", why);
  }
  unsigned count;
  const png_pass *pass = passes_of(r, &count);
  for (unsigned i = 0; i < count; i++) {
    if (!take_pass(r, &pass[i], &raw, out)) return false;
  }
  return true;
}

static bool read_chunks(png_reader *r) {
  png_chunk c = {0};
  if (!is_png(r->in->text, r->in->length)) {
    return bad(r, "the file does not start like a PNG file");
  }
  r->at = sizeof signature;
  if (!next_chunk(r, &c) || !read_header(r, &c)) return false;
  while (!r->is_over) {
    if (!next_chunk(r, &c) || !read_chunk(r, &c)) return false;
  }
  return r->has_data || bad(r, "the IDAT chunk is missing");
}

bool png_read(const input *in, const image_target *target, vyre_arena *arena,
              image *out, problem *wrong) {
  png_reader r = {.in = in, .target = target, .wrong = wrong};
  *out = (image){.bits = 8};
  bool fine = read_chunks(&r) && decode(&r, arena, out);
  vyre_arena_deinit(&r.scratch);
  return fine;
}
