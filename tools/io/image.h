/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pictures as rows of samples, and how their samples become elements of a
 * buffer. docs/reference/file-formats.md is the contract. */
#ifndef VYRE_TOOLS_IO_IMAGE_H
#define VYRE_TOOLS_IO_IMAGE_H

#include "vyre/program.h"

#include "io/read_file.h"

/* The shape of a picture. channels: 1 grey, 2 grey and alpha, 3 red, green and
 * blue, 4 the same and alpha; 0 while it is unknown. */
typedef struct image_shape {
  uint32_t width, height, channels;
} image_shape;

/* A picture in memory: samples row by row from the top, those of a pixel next to
 * each other; 8 bits each in a byte, or 16 bits each in two bytes, low byte
 * first. */
typedef struct image {
  image_shape shape;
  uint32_t bits;    /* 8 or 16 */
  uint32_t maximum; /* the sample that stands for full intensity */
  unsigned char *samples;
} image;

typedef enum image_format {
  IMAGE_NONE,
  IMAGE_PNG,
  IMAGE_PPM, /* colour */
  IMAGE_PGM, /* grey */
  IMAGE_PNM  /* either */
} image_format;

/* Returns the format of a file name by its ending, in either case. */
image_format image_format_of(const char *path, size_t length);

/* Returns true if the bytes begin as a PNG file, or as a PGM or PPM file, does. */
bool is_png(const char *text, size_t length);
bool is_pnm(const char *text, size_t length);

/* Returns the ending of a name that belongs to a picture format which is neither
 * read nor written, such as ".jpg"; NULL if the name has none. */
const char *image_unknown_format(const char *path, size_t length);

/* Splits FILE:WxH or FILE:WxHxC. *length gets the length of FILE; *shape is zero
 * without a shape. False with a problem if FILE is a picture and a digit but no
 * shape follows the colon, or if a shape follows the name of a file that is not a
 * picture. An unknown picture format is split too, for the caller to refuse. */
bool image_split_shape(const char *text, size_t *length, image_shape *shape,
                       problem *wrong);

/* Writes "640x480x3". */
enum { IMAGE_SHAPE_TEXT = 36 };
void image_shape_text(const image_shape *shape, char out[IMAGE_SHAPE_TEXT]);

/* The buffer that a picture is read for, and the shape that --set asks for. */
typedef struct image_target {
  const vyre_buffer_decl *buffer;
  image_shape shape;    /* zero: any */
  const char *asked_as; /* the shape as typed, with its colon */
} image_target;

/* Decodes a file. The samples live in @p arena. A picture that does not suit the
 * target, or would take more than INPUT_LIMIT bytes of memory, is refused before
 * memory for its samples is allocated. A problem names the buffer. */
bool png_read(const input *in, const image_target *target, vyre_arena *arena,
              image *out, problem *wrong);
bool pnm_read(const input *in, const image_target *target, vyre_arena *arena,
              image *out, problem *wrong);

/* Checks what the header of a picture says, all of @p made but its samples: that
 * it has the shape that is asked for, suits the elements of the buffer and fills as
 * many as are declared. Returns in @p bytes what its samples and elements take. */
bool image_check(const input *in, const image_target *target, const image *made,
                 uint64_t *bytes, problem *wrong);

/* Refuses a picture whose decoding takes more than INPUT_LIMIT bytes. */
bool image_check_bytes(const input *in, const image_target *target,
                       const image *made, uint64_t bytes, problem *wrong);

/* Refuses a file. @p fix is what to do about it; "": save the picture again, or
 * read the file as bytes. Returns false. */
bool image_bad(const input *in, const char *buffer, const char *fix,
               problem *wrong, const char *format, ...) PRINTF_LIKE(5, 6);

/* Elements of @p element that a picture of this shape fills: one a sample, or one
 * a pixel for u32. 0 if the element type holds no picture. */
uint64_t image_elements(const image_shape *shape, vyre_element element);

/* Turns samples into elements of @p buffer, in @p arena. Samples that are elements
 * already are not copied. The picture comes from a reader above. */
bool image_to_elements(const image *from, const vyre_buffer_decl *buffer,
                       const input *in, vyre_arena *arena,
                       const unsigned char **bytes, uint64_t *count,
                       problem *wrong);

/* Returns true if files of the format can have that many channels. */
bool image_has_channels(image_format format, uint32_t channels);

/* Writes elements as a picture of @p shape, which they fill exactly. False with a
 * problem if a float is NaN. */
bool image_put(image_format format, const image_shape *shape,
               const vyre_buffer_decl *buffer, const unsigned char *elements,
               sink *out, problem *wrong);

#endif
