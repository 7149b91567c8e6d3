/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Determines the shapes of the images that `vyre run --out` writes. */
#include <stdio.h>
#include <string.h>

#include "commands/run/run.h"

static bool is_packed(const run_buffer *b) {
  return b->decl->element == VYRE_ELEMENT_U32;
}

static bool takes_input(const run_buffer *b) {
  return b->binding->input_index != VYRE_NO_INDEX;
}

/* Starts a problem with "--out y=y.png". */
static bool refuse(const run_buffer *b, problem *wrong, const char *why) {
  return problem_set(wrong, KIND_USAGE, "", "--out %s=%.150s: %.300s",
                     b->decl->name, b->path, why);
}

/* Returns the number of channels that every file of a format has; 0 if the
 * format allows several. */
static uint32_t only_channels(image_format format) {
  return format == IMAGE_PGM ? 1 : format == IMAGE_PPM ? 3 : 0;
}

/* Suggests shapes that match the number of elements of the buffer. */
static void fix_by_count(const run_buffer *b, problem *wrong) {
  const char *name = b->decl->name;
  unsigned long long count = b->count;
  uint32_t only = only_channels(b->format);
  if (is_packed(b)) {
    problem_fix(wrong, "write --out %s=%s:WxH%s with W x H = %llu", name,
                b->path, b->format == IMAGE_PNG ? "" : "x3", count);
  } else if (only == 1) {
    problem_fix(wrong, "write --out %s=%s:WxH with W x H = %llu", name, b->path,
                count);
  } else if (only == 3 && count % 3 == 0) {
    problem_fix(wrong, "write --out %s=%s:WxH with W x H x 3 = %llu", name,
                b->path, count);
  } else if (only == 3) {
    problem_fix(wrong, "name a .png file; %llu elements are not an RGB picture",
                count);
  } else {
    problem_fix(wrong, "write --out %s=%s:WxHxC with W x H x C = %llu", name,
                b->path, count);
  }
}

/* Suggests both readings of a buffer whose size comes from another buffer: a
 * grey image, or an image of that many channels. */
static void fix_by_channels(const run_buffer *b, const image_shape *shape,
                            problem *wrong) {
  const char *name = b->decl->name;
  unsigned long long pixels = (uint64_t)shape->width * shape->height;
  char grey[IMAGE_SHAPE_TEXT + 1], colour[IMAGE_SHAPE_TEXT + 1] = "";
  (void)snprintf(grey, sizeof grey, ":%ux%ux1", shape->width, shape->height);
  if (image_has_channels(b->format, shape->channels)) {
    (void)snprintf(colour, sizeof colour, ":%ux%ux%u", shape->width,
                   shape->height, shape->channels);
  }
  if (colour[0]) {
    problem_fix(wrong,
                "for grey write --set %s=zeros:%llu --out %s=%.100s%s, for %u "
                "channels --out %s=%.100s%s",
                name, pixels, name, b->path, grey, shape->channels, name,
                b->path, colour);
  } else {
    problem_fix(wrong, "for grey write --set %s=zeros:%llu --out %s=%s%s", name,
                pixels, name, b->path, grey);
  }
}

/* Suggests an image of the same width and height as one that was read.
 * Returns false if none matches the buffer. */
static bool fix_by_input(const run_buffer *b, const run_buffer *from,
                         problem *wrong) {
  const char *name = b->decl->name;
  image_shape shape = from->in.shape;
  uint64_t pixels = (uint64_t)shape.width * shape.height;
  uint32_t only = only_channels(b->format);
  char text[IMAGE_SHAPE_TEXT];
  if (!pixels || b->count % pixels != 0 || b->count / pixels > 4) return false;
  shape.channels = (uint32_t)(b->count / pixels);
  if (is_packed(b)) {
    if (shape.channels != 1) return false;
    shape.channels = b->format == IMAGE_PNG ? 4 : 3;
  } else if (b->is_sized_by_others && only && only != shape.channels) {
    unsigned long long elements = pixels * only;
    shape.channels = only;
    image_shape_text(&shape, text);
    problem_fix(wrong,
                "for a picture as large as that of '%s', write --set "
                "%s=zeros:%llu --out %s=%s:%s",
                from->decl->name, name, elements, name, b->path, text);
    return true;
  } else if (b->is_sized_by_others && shape.channels > 1 && !only) {
    fix_by_channels(b, &shape, wrong);
    return true;
  }
  if (!image_has_channels(b->format, shape.channels)) return false;
  image_shape_text(&shape, text);
  problem_fix(wrong,
              "for a picture as large as that of '%s', write --out %s=%s:%s",
              from->decl->name, name, b->path, text);
  return true;
}

static bool no_shape(const run_state *s, const run_buffer *b, problem *wrong) {
  char why[200];
  (void)snprintf(why, sizeof why,
                 "the buffer has %llu %s elements; the width and height of the "
                 "picture are unknown",
                 (unsigned long long)b->count,
                 vyre_element_name(b->decl->element));
  refuse(b, wrong, why);
  for (size_t i = 0; i < s->buffer_count; i++) {
    if (fix_by_input(b, &s->buffers[i], wrong)) return false;
  }
  fix_by_count(b, wrong);
  return false;
}

/* The size of the buffer comes from another buffer, so that several elements
 * per pixel may be a coincidence. */
static bool ambiguous(const run_buffer *b, const image_shape *shape,
                      problem *wrong) {
  char why[240];
  uint64_t pixels = (uint64_t)shape->width * shape->height;
  (void)snprintf(why, sizeof why,
                 "the buffer has %llu elements because its size comes from "
                 "another buffer, and a picture of %ux%u has %llu pixels: "
                 "grey, or %u channels?",
                 (unsigned long long)b->count, shape->width, shape->height,
                 (unsigned long long)pixels, shape->channels);
  refuse(b, wrong, why);
  fix_by_channels(b, shape, wrong);
  return false;
}

static bool mismatch(const run_buffer *b, const image_shape *shape,
                     problem *wrong) {
  char why[240], text[IMAGE_SHAPE_TEXT];
  uint64_t pixels = (uint64_t)shape->width * shape->height;
  uint64_t count =
      shape->channels ? image_elements(shape, b->decl->element) : pixels;
  image_shape_text(shape, text);
  if (!shape->channels) text[strlen(text) - 2] = '\0';
  (void)snprintf(
      why, sizeof why,
      "a picture of %s has %llu%s %s elements; the buffer has %llu", text,
      (unsigned long long)count, shape->channels ? "" : " times 1, 2, 3 or 4",
      vyre_element_name(b->decl->element), (unsigned long long)b->count);
  refuse(b, wrong, why);
  if (shape->channels && !b->decl->count && !takes_input(b)) {
    problem_fix(
        wrong, "%s --set %s=zeros:%llu%s, or give a shape of %llu elements",
        b->spec ? "write" : "add", b->decl->name, (unsigned long long)count,
        b->spec ? " instead" : "", (unsigned long long)b->count);
  } else if (b->is_sized_by_others) {
    fix_by_channels(b, shape, wrong);
  } else {
    fix_by_count(b, wrong);
  }
  return false;
}

/* Returns the channels of an image of known width and height; 0 if the
 * buffer does not have a whole number of them. The format decides if the
 * size of the buffer is not deliberate or the shape has no channels. */
static uint32_t channels_of(const run_buffer *b, const image_shape *shape,
                            bool is_given) {
  uint64_t pixels = (uint64_t)shape->width * shape->height;
  uint32_t only = only_channels(b->format);
  if (is_packed(b)) return 4;
  if (only && (is_given || b->is_sized_by_others)) return only;
  uint64_t channels = b->count / pixels;
  return b->count % pixels == 0 && channels <= 4 ? (uint32_t)channels : 0;
}

/* Returns the invocations of a given two-dimensional grid. */
static bool grid_shape(const run_state *s, image_shape *out) {
  uint64_t extent[3];
  run_extent(s, extent);
  if (!s->flags.grid[0] || extent[1] == 1 || extent[2] != 1 ||
      extent[0] > INT32_MAX || extent[1] > INT32_MAX) {
    return false;
  }
  *out = (image_shape){.width = (uint32_t)extent[0],
                       .height = (uint32_t)extent[1]};
  return true;
}

static bool check_format(const run_buffer *b, const image_shape *shape,
                         problem *wrong) {
  static const char *const names[] = {[IMAGE_PNG] = "PNG",
                                      [IMAGE_PPM] = ".ppm",
                                      [IMAGE_PGM] = ".pgm",
                                      [IMAGE_PNM] = ".pnm"};
  char why[120], text[IMAGE_SHAPE_TEXT];
  image_shape_text(shape, text);
  if (is_packed(b) && shape->channels < 3) {
    refuse(b, wrong, "a u32 element is a pixel of 3 or 4 channels");
    problem_fix(wrong, "write --out %s=%s:%ux%ux%d", b->decl->name, b->path,
                shape->width, shape->height, b->format == IMAGE_PNG ? 4 : 3);
    return false;
  }
  if (image_has_channels(b->format, shape->channels)) return true;
  (void)snprintf(
      why, sizeof why, "the picture is %s; %s files do not have %u channel%s",
      text, names[b->format], shape->channels, shape->channels == 1 ? "" : "s");
  refuse(b, wrong, why);
  if (is_packed(b)) {
    problem_fix(wrong,
                "name a .png, or write --out %s=%s:%ux%ux3 to leave alpha out",
                b->decl->name, b->path, shape->width, shape->height);
  } else {
    problem_fix(wrong, "name a .png%s",
                shape->channels == 1   ? " or a .pgm"
                : shape->channels == 3 ? " or a .ppm"
                                       : "");
  }
  return false;
}

static bool shape_image(const run_state *s, run_buffer *b, problem *wrong) {
  image_shape shape = b->shape;
  bool is_given = shape.width != 0;
  if (image_elements(&(image_shape){1, 1, 1}, b->decl->element) == 0) {
    char why[80];
    (void)snprintf(why, sizeof why,
                   "%s elements cannot be written as a picture",
                   vyre_element_name(b->decl->element));
    refuse(b, wrong, why);
    problem_fix(wrong,
                "write --out %s=FILE.npy, or declare the buffer as u8, u16, "
                "u32 or f32",
                b->decl->name);
    return false;
  }
  if (is_packed(b) && b->format == IMAGE_PGM) {
    refuse(b, wrong,
           "a u32 element is a pixel of 3 or 4 channels; .pgm files have 1");
    problem_fix(wrong,
                "name a .png or a .ppm, or declare the buffer as u8, u16 or "
                "f32");
    return false;
  }
  if (!is_given && b->in.shape.width) {
    shape = b->in.shape;
    if (is_packed(b)) shape.channels = 4;
    is_given = true;
  }
  if (!is_given && !grid_shape(s, &shape)) return no_shape(s, b, wrong);
  bool is_guess = !shape.channels && !only_channels(b->format);
  if (!shape.channels) shape.channels = channels_of(b, &shape, is_given);
  if (!shape.channels || image_elements(&shape, b->decl->element) != b->count) {
    return mismatch(b, &shape, wrong);
  }
  if (is_guess && b->is_sized_by_others && shape.channels > 1 &&
      !is_packed(b)) {
    return ambiguous(b, &shape, wrong);
  }
  b->shape = shape;
  return check_format(b, &shape, wrong);
}

bool run_shape_images(run_state *s, problem *wrong) {
  for (size_t i = 0; i < s->buffer_count; i++) {
    run_buffer *b = &s->buffers[i];
    if (b->path && b->format != IMAGE_NONE && strcmp(b->path, "-") != 0 &&
        !shape_image(s, b, wrong)) {
      return false;
    }
  }
  return true;
}
