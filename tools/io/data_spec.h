/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads or generates the data of `--set NAME=SPEC`. */
#ifndef VYRE_TOOLS_IO_DATA_SPEC_H
#define VYRE_TOOLS_IO_DATA_SPEC_H

#include "vyre/program.h"

#include "io/image.h"
#include "io/read_file.h"

/* Elements for a buffer. A zeroed struct is empty. */
typedef struct buffer_data {
  const unsigned char *bytes;
  size_t length;     /* in bytes */
  uint64_t count;    /* in elements */
  input file;        /* owns the bytes if they were read from a file */
  image_shape shape; /* shape of the image that was read; zero: not an image */
  uint32_t bits;     /* bits per sample of that image */
} buffer_data;

/* Reads or generates the elements; generated ones live in @p arena. The
 * count must match the declared one, if any. A problem names the buffer and
 * both sizes. data_finish releases @p out, after a failure too. */
bool data_read(const char *spec, const vyre_buffer_decl *buffer,
               vyre_arena *arena, buffer_data *out, problem *wrong);
void data_deinit(buffer_data *data);

/* Makes @p count zeros. */
bool data_zeros(const vyre_buffer_decl *buffer, uint64_t count,
                vyre_arena *arena, buffer_data *out, problem *wrong);

#endif
