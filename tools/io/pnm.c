/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* PGM and PPM (Netpbm), plain (P2, P3) and raw (P5, P6). */
#include <string.h>

#include "io/image.h"

typedef struct pnm_reader {
  const input *in;
  const image_target *target;
  size_t at;
  problem *wrong;
} pnm_reader;

static bool bad(pnm_reader *r, const char *why) {
  (void)image_bad(r->in, r->target->buffer->name, "", r->wrong,
                  "%s (byte %zu of the file)", why, r->at);
  return false; /* for the static analyzer */
}

static bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

bool is_pnm(const char *text, size_t length) {
  return length >= 3 && text[0] == 'P' && strchr("2356", text[1]) && text[1] &&
         (is_space(text[2]) || text[2] == '#');
}

/* Skips white space and comments from # to the end of the line. */
static void skip_space(pnm_reader *r) {
  const char *text = r->in->text;
  while (r->at < r->in->length) {
    if (text[r->at] == '#') {
      while (r->at < r->in->length && text[r->at] != '\n') r->at++;
    } else if (!is_space(text[r->at])) {
      return;
    } else {
      r->at++;
    }
  }
}

static bool take_number(pnm_reader *r, uint32_t max, uint32_t *value) {
  skip_space(r);
  size_t begin = r->at;
  uint64_t number = 0;
  while (r->at < r->in->length && r->in->text[r->at] >= '0' &&
         r->in->text[r->at] <= '9') {
    number = 10 * number + (uint64_t)(r->in->text[r->at++] - '0');
    if (number > max) return bad(r, "a number is too large");
  }
  if (r->at == begin) {
    return bad(r, r->at == r->in->length ? "the file is cut short"
                                         : "a number is missing");
  }
  *value = (uint32_t)number;
  return true;
}

static void put_sample(const image *out, size_t index, uint32_t value) {
  if (out->bits == 8) {
    out->samples[index] = (unsigned char)value;
  } else {
    out->samples[2 * index] = (unsigned char)value;
    out->samples[2 * index + 1] = (unsigned char)(value >> 8);
  }
}

static bool read_plain(pnm_reader *r, size_t count, const image *out) {
  for (size_t i = 0; i < count; i++) {
    uint32_t value;
    if (!take_number(r, UINT32_MAX, &value)) return false;
    if (value > out->maximum) return bad(r, "a sample is above the maximum");
    put_sample(out, i, value);
  }
  skip_space(r);
  return r->at == r->in->length || bad(r, "data follows the last sample");
}

static bool read_raw(pnm_reader *r, size_t count, const image *out) {
  const unsigned char *from = (const unsigned char *)r->in->text + r->at;
  for (size_t i = 0; i < count; i++) {
    uint32_t value =
        out->bits == 8 ? from[i] : (uint32_t)from[2 * i] << 8 | from[2 * i + 1];
    if (value > out->maximum) {
      r->at += i * out->bits / 8;
      return bad(r, "a sample is above the maximum");
    }
    put_sample(out, i, value);
  }
  return true;
}

/* A plain sample needs at least a digit and a space; the last one needs no
 * space. */
static bool check_size(pnm_reader *r, bool is_plain, uint64_t samples,
                       const image *out) {
  uint64_t there = r->in->length - r->at;
  uint64_t needed = is_plain ? 2 * samples - 1 : samples * (out->bits / 8);
  if (there == needed || (is_plain && there > needed)) return true;
  return image_bad(r->in, r->target->buffer->name, "", r->wrong,
                   "%u x %u pixels need %llu bytes; the file has %llu",
                   out->shape.width, out->shape.height,
                   (unsigned long long)needed, (unsigned long long)there);
}

static bool read_head(pnm_reader *r, char *kind, image *out) {
  if (!is_pnm(r->in->text, r->in->length)) {
    return bad(r, "the file does not start with P2, P3, P5 or P6");
  }
  *kind = r->in->text[1];
  r->at = 2;
  if (!take_number(r, INT32_MAX, &out->shape.width) ||
      !take_number(r, INT32_MAX, &out->shape.height) ||
      !take_number(r, 65535, &out->maximum)) {
    return false;
  }
  if (out->shape.width == 0 || out->shape.height == 0 || out->maximum == 0) {
    return bad(r, "width, height or maximum is 0");
  }
  out->shape.channels = *kind == '3' || *kind == '6' ? 3 : 1;
  out->bits = out->maximum > 255 ? 16 : 8;
  return true;
}

bool pnm_read(const input *in, const image_target *target, vyre_arena *arena,
              image *out, problem *wrong) {
  pnm_reader r = {.in = in, .target = target, .wrong = wrong};
  char kind = 0;
  *out = (image){.bits = 8};
  if (!read_head(&r, &kind, out)) return false;
  bool is_plain = kind < '5';
  if (!is_plain) {
    if (r.at == in->length || !is_space(in->text[r.at])) {
      return bad(&r, "white space is missing after the maximum");
    }
    r.at++;
  } else {
    skip_space(&r);
  }
  uint64_t bytes;
  if (!image_check(in, target, out, &bytes, wrong) ||
      !image_check_bytes(in, target, out, bytes, wrong)) {
    return false;
  }
  uint64_t samples =
      (uint64_t)out->shape.width * out->shape.height * out->shape.channels;
  if (!check_size(&r, is_plain, samples, out)) return false;
  out->samples = vyre_arena_alloc(arena, (size_t)samples * (out->bits / 8), 16);
  if (!out->samples) return problem_no_memory(wrong, "a picture");
  return is_plain ? read_plain(&r, (size_t)samples, out)
                  : read_raw(&r, (size_t)samples, out);
}
