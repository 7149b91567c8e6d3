/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What `--set NAME=SPEC` puts into a buffer. */
#ifndef VYRE_TOOLS_IO_DATA_SPEC_H
#define VYRE_TOOLS_IO_DATA_SPEC_H

#include "vyre/program.h"

#include "io/image.h"
#include "io/read_file.h"

/* Elements for a buffer. Zeroed is empty. */
typedef struct buffer_data {
  const unsigned char *bytes;
  size_t length;     /* in bytes */
  uint64_t count;    /* in elements */
  input file;        /* owns the bytes if they came from one */
  image_shape shape; /* of the picture that they came from; zero: none */
  uint32_t bits;     /* of its samples */
} buffer_data;

/* Reads or makes the elements; generated ones live in @p arena. The number of
 * elements must be the declared one, if there is one. The problem names the
 * buffer and both sizes. End with data_finish, after a failure too. */
bool data_read(const char *spec, const vyre_buffer_decl *buffer,
               vyre_arena *arena, buffer_data *out, problem *wrong);
void data_finish(buffer_data *data);

/* @p count zeros. */
bool data_zeros(const vyre_buffer_decl *buffer, uint64_t count,
                vyre_arena *arena, buffer_data *out, problem *wrong);

#endif
