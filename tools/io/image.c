/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "io/image.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/text.h"
#include "io/element_text.h"
#include "io/png.h"

bool image_bad(const input *in, const char *buffer, const char *fix,
               problem *wrong, const char *format, ...) {
  char why[300];
  if (wrong->kind) return false;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why, sizeof why, format, arguments);
  va_end(arguments);
  wrong->file = in->label;
  problem_set(wrong, KIND_INPUT, fix, "buffer '%s': %s", buffer, why);
  if (!fix[0]) {
    problem_fix(wrong,
                "save the picture again as PNG, PGM or PPM; --set "
                "%s=raw:%.200s reads the file as raw bytes",
                buffer, strcmp(in->label, "<stdin>") == 0 ? "-" : in->label);
  }
  return false;
}

/* --- names ----------------------------------------------------------------------*/

static bool ends_in(const char *path, size_t length, const char *end) {
  size_t tail = strlen(end);
  return length > tail && strncasecmp(path + length - tail, end, tail) == 0;
}

image_format image_format_of(const char *path, size_t length) {
  static const struct {
    const char *end;
    image_format format;
  } formats[] = {{".png", IMAGE_PNG},
                 {".ppm", IMAGE_PPM},
                 {".pgm", IMAGE_PGM},
                 {".pnm", IMAGE_PNM}};
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
    if (ends_in(path, length, formats[i].end)) return formats[i].format;
  }
  return IMAGE_NONE;
}

const char *image_unknown_format(const char *path, size_t length) {
  /* Keep in step with the list in docs/reference/file-formats.md. */
  static const char *const ends[] = {
      ".jpg",  ".jpeg", ".jfif", ".jp2",  ".jxl", ".gif", ".apng",
      ".webp", ".avif", ".heic", ".heif", ".bmp", ".ico", ".tif",
      ".tiff", ".psd",  ".tga",  ".dds",  ".pcx", ".qoi", ".exr",
      ".hdr",  ".pfm",  ".pbm",  ".pam",  ".xbm", ".xpm", ".svg"};
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
    if (ends_in(path, length, ends[i])) return ends[i];
  }
  return NULL;
}

/* Parses a decimal number from 1 to @p most and moves *text past it. */
static bool take_side(const char **text, uint32_t max, uint32_t *out) {
  uint64_t value;
  size_t length = strspn(*text, "0123456789");
  if (!parse_u64(*text, length, &value) || value == 0 || value > max) {
    return false;
  }
  *out = (uint32_t)value;
  *text += length;
  return true;
}

/* Parses WxH or WxHxC up to the end of the text. */
static bool parse_shape(const char *at, image_shape *shape) {
  *shape = (image_shape){0};
  if (!take_side(&at, INT32_MAX, &shape->width) || *at++ != 'x' ||
      !take_side(&at, INT32_MAX, &shape->height)) {
    return false;
  }
  if (*at != 'x') return !*at;
  at++;
  return take_side(&at, 4, &shape->channels) && !*at;
}

bool image_split_shape(const char *text, size_t *length, image_shape *shape,
                       problem *wrong) {
  const char *colon = strrchr(text, ':');
  *length = strlen(text);
  *shape = (image_shape){0};
  if (!colon) return true;
  size_t before = (size_t)(colon - text);
  bool is_picture = image_format_of(text, before) != IMAGE_NONE;
  bool has_digit = colon[1] >= '0' && colon[1] <= '9';
  if (!has_digit && !(is_picture && !colon[1])) return true;
  bool is_unknown = image_unknown_format(text, before) != NULL;
  bool is_shape = parse_shape(colon + 1, shape);
  if (!is_shape) *shape = (image_shape){0};
  if (is_picture ? is_shape : is_unknown) {
    *length = before;
    return true;
  }
  if (!is_picture && !is_shape) return true;
  char shown[160];
  show_into(shown, sizeof shown, text, strlen(text));
  if (!is_picture) {
    problem_set(wrong, KIND_USAGE, "",
                "'%s' gives a shape to a file that is not a picture", shown);
    problem_fix(wrong,
                "name a .png, .ppm, .pgm or .pnm file, or remove %.40s; raw:%s "
                "means the file of exactly that name",
                colon, shown);
    return false;
  }
  return problem_set(wrong, KIND_USAGE,
                     "write width x height or width x height x channels (1 to "
                     "4), such as :640x480 or :640x480x3",
                     "'%s' does not end in a valid shape", shown);
}

void image_shape_text(const image_shape *shape, char out[IMAGE_SHAPE_TEXT]) {
  (void)snprintf(out, IMAGE_SHAPE_TEXT, "%ux%ux%u", shape->width, shape->height,
                 shape->channels);
}

/* --- elements -------------------------------------------------------------------*/

uint64_t image_elements(const image_shape *shape, vyre_element element) {
  uint64_t pixels = (uint64_t)shape->width * shape->height;
  switch (element) {
    case VYRE_ELEMENT_U8:
    case VYRE_ELEMENT_BYTES:
    case VYRE_ELEMENT_U16:
    case VYRE_ELEMENT_F32:
      return pixels * shape->channels;
    case VYRE_ELEMENT_U32:
      return pixels;
    default:
      return 0;
  }
}

bool image_has_channels(image_format format, uint32_t channels) {
  switch (format) {
    case IMAGE_PNG:
      return channels >= 1 && channels <= 4;
    case IMAGE_PPM:
      return channels == 3;
    case IMAGE_PGM:
      return channels == 1;
    case IMAGE_PNM:
      return channels == 1 || channels == 3;
    default:
      return false;
  }
}

static uint32_t sample_at(const image *from, uint64_t index) {
  if (from->bits == 8) return from->samples[index];
  return from->samples[2 * index] | (uint32_t)from->samples[2 * index + 1] << 8;
}

/* Scales a sample to the whole range of 8 or 16 bits. */
static uint32_t scaled(const image *from, uint64_t index) {
  uint32_t full = from->bits == 8 ? 255 : 65535;
  uint64_t value = sample_at(from, index);
  return (uint32_t)((value * full + from->maximum / 2) / from->maximum);
}

/* Packs red into the lowest byte, then green, blue and alpha. */
static uint32_t packed_pixel(const image *from, uint64_t pixel) {
  uint32_t channels = from->shape.channels;
  uint64_t at = pixel * channels;
  uint32_t red = scaled(from, at), alpha = 255;
  uint32_t green = channels > 2 ? scaled(from, at + 1) : red;
  uint32_t blue = channels > 2 ? scaled(from, at + 2) : red;
  if (channels % 2 == 0) alpha = scaled(from, at + channels - 1);
  return red | green << 8 | blue << 16 | alpha << 24;
}

static void put_element(const image *from, vyre_element element, uint64_t index,
                        unsigned char *to) {
  if (element == VYRE_ELEMENT_F32) {
    float value = (float)sample_at(from, index) / (float)from->maximum;
    memcpy(to, &value, sizeof value);
    return;
  }
  uint32_t value = element == VYRE_ELEMENT_U32 ? packed_pixel(from, index)
                                               : scaled(from, index);
  for (size_t i = 0; i < element_bytes(element); i++) {
    to[i] = (unsigned char)(value >> 8 * i);
  }
}

/* Checks that elements of the buffer hold the samples without losing or inventing
 * bits. */
static bool check_element(const image *from, const vyre_buffer_decl *buffer,
                          const input *in, problem *wrong) {
  vyre_element element = buffer->element;
  const char *name = vyre_element_name(element);
  if (image_elements(&from->shape, element) == 0) {
    return image_bad(in, buffer->name,
                     "declare the buffer as u8, u16, u32 (a pixel each) or f32 "
                     "(0 to 1)",
                     wrong, "%s elements cannot hold a picture", name);
  }
  bool is_wide = element == VYRE_ELEMENT_U16;
  if (element == VYRE_ELEMENT_F32 || is_wide == (from->bits == 16)) return true;
  return image_bad(in, buffer->name,
                   is_wide ? "declare the buffer as u8 or f32, or save the "
                             "picture with 16 bits per sample"
                           : "declare the buffer as u16 or f32, or save the "
                             "picture with 8 bits per sample",
                   wrong,
                   "%s elements hold samples of %d bits; the picture has %u",
                   name, is_wide ? 16 : 8, from->bits);
}

/* Returns true if the elements are the samples, byte by byte. */
static bool is_same_in_memory(const image *from, vyre_element element) {
  bool is_byte = element == VYRE_ELEMENT_U8 || element == VYRE_ELEMENT_BYTES;
  return (is_byte && from->maximum == 255) ||
         (element == VYRE_ELEMENT_U16 && from->maximum == 65535);
}

static bool check_shape(const input *in, const image_target *target,
                        const image_shape *has, problem *wrong) {
  const image_shape *wanted = &target->shape;
  char text[IMAGE_SHAPE_TEXT], fix[64];
  if (!wanted->width ||
      (wanted->width == has->width && wanted->height == has->height &&
       (!wanted->channels || wanted->channels == has->channels))) {
    return true;
  }
  image_shape_text(has, text);
  (void)snprintf(fix, sizeof fix, "write :%s after the file name", text);
  return image_bad(in, target->buffer->name, fix, wrong,
                   "the picture is %s; %s requires another shape", text,
                   target->asked_as);
}

static bool check_count(const input *in, const vyre_buffer_decl *buffer,
                        uint64_t count, problem *wrong) {
  char fix[80];
  if (!buffer->count || buffer->count == count) return true;
  (void)snprintf(fix, sizeof fix,
                 "give it %u elements, or declare the buffer without a count",
                 buffer->count);
  return image_bad(
      in, buffer->name, fix, wrong,
      "the buffer is declared with %u elements; the picture has %llu",
      buffer->count, (unsigned long long)count);
}

bool image_check(const input *in, const image_target *target, const image *made,
                 uint64_t *bytes, problem *wrong) {
  const image_shape *shape = &made->shape;
  const vyre_buffer_decl *buffer = target->buffer;
  uint64_t pixels = (uint64_t)shape->width * shape->height;
  *bytes = pixels;
  if (!check_shape(in, target, shape, wrong) ||
      !check_element(made, buffer, in, wrong)) {
    return false;
  }
  /* A pixel takes at least one byte, so that no number below wraps. */
  if (!image_check_bytes(in, target, made, pixels, wrong)) return false;
  uint64_t count = image_elements(shape, buffer->element);
  *bytes = pixels * shape->channels * (made->bits / 8);
  if (!is_same_in_memory(made, buffer->element)) {
    *bytes += count * element_bytes(buffer->element);
  }
  return check_count(in, buffer, count, wrong);
}

bool image_check_bytes(const input *in, const image_target *target,
                       const image *made, uint64_t bytes, problem *wrong) {
  if (bytes <= INPUT_LIMIT) return true;
  return image_bad(in, target->buffer->name, "use a smaller picture", wrong,
                   "reading %u x %u pixels takes at least %llu bytes of "
                   "memory; the maximum is %llu",
                   made->shape.width, made->shape.height,
                   (unsigned long long)bytes, (unsigned long long)INPUT_LIMIT);
}

bool image_to_elements(const image *from, const vyre_buffer_decl *buffer,
                       const input *in, vyre_arena *arena,
                       const unsigned char **bytes, uint64_t *count,
                       problem *wrong) {
  if (!check_element(from, buffer, in, wrong)) return false;
  vyre_element element = buffer->element;
  size_t size = element_bytes(element);
  *count = image_elements(&from->shape, element);
  *bytes = from->samples;
  if (is_same_in_memory(from, element)) return true;
  unsigned char *to = vyre_arena_alloc(arena, (size_t)*count * size, 16);
  if (!to) return problem_no_memory(wrong, "the elements of a buffer");
  for (uint64_t i = 0; i < *count; i++) {
    put_element(from, element, i, to + i * size);
  }
  *bytes = to;
  return true;
}

/* --- writing --------------------------------------------------------------------*/

static bool put_floats(const image_shape *shape, const vyre_buffer_decl *buffer,
                       const unsigned char *elements, sink *out,
                       problem *wrong) {
  uint64_t count = image_elements(shape, VYRE_ELEMENT_F32);
  for (uint64_t i = 0; i < count; i++) {
    float value;
    memcpy(&value, elements + 4 * i, sizeof value);
    if (value != value) {
      problem_set(
          wrong, KIND_INPUT, "",
          "buffer '%s': element %llu is NaN, which a picture cannot hold",
          buffer->name, (unsigned long long)i);
      problem_fix(wrong,
                  "write --out %s=FILE.npy, or make the kernel write numbers "
                  "from 0 to 1",
                  buffer->name);
      return false;
    }
    double part = value < 0 ? 0 : value > 1 ? 1 : (double)value;
    char sample = (char)(unsigned char)(part * 255 + 0.5);
    sink_bytes(out, &sample, 1);
  }
  return true;
}

/* All formats store 16-bit samples with the high byte first. */
static void put_words(const image_shape *shape, const unsigned char *elements,
                      sink *out) {
  uint64_t count = image_elements(shape, VYRE_ELEMENT_U16);
  for (uint64_t i = 0; i < count; i++) {
    char sample[2] = {(char)elements[2 * i + 1], (char)elements[2 * i]};
    sink_bytes(out, sample, 2);
  }
}

/* Unpacks 32-bit pixels; with three channels, alpha is dropped. */
static void put_pixels(const image_shape *shape, const unsigned char *elements,
                       sink *out) {
  uint64_t count = image_elements(shape, VYRE_ELEMENT_U32);
  for (uint64_t i = 0; i < count; i++) {
    sink_bytes(out, (const char *)elements + 4 * i, shape->channels);
  }
}

bool image_put(image_format format, const image_shape *shape,
               const vyre_buffer_decl *buffer, const unsigned char *elements,
               sink *out, problem *wrong) {
  sink made = {0};
  unsigned bits = buffer->element == VYRE_ELEMENT_U16 ? 16 : 8;
  const unsigned char *samples = elements;
  if (buffer->element == VYRE_ELEMENT_F32) {
    if (!put_floats(shape, buffer, elements, &made, wrong)) {
      sink_deinit(&made);
      return false;
    }
  } else if (bits == 16) {
    put_words(shape, elements, &made);
  } else if (buffer->element == VYRE_ELEMENT_U32) {
    put_pixels(shape, elements, &made);
  }
  if (made.failed) {
    out->failed = true;
  } else if (made.length) {
    samples = (const unsigned char *)made.data;
  }
  if (!out->failed && format == IMAGE_PNG) {
    png_put(samples, shape, bits, out);
  } else if (!out->failed) {
    sink_format(out, "P%c\n%u %u\n%u\n", shape->channels == 3 ? '6' : '5',
                shape->width, shape->height, bits == 16 ? 65535u : 255u);
    sink_bytes(
        out, (const char *)samples,
        (size_t)shape->width * shape->height * shape->channels * (bits / 8));
  }
  sink_deinit(&made);
  return true;
}
