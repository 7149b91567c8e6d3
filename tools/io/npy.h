/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* NumPy's file format: https://numpy.org/doc/stable/reference/generated/
 * numpy.lib.format.html */
#ifndef VYRE_TOOLS_IO_NPY_H
#define VYRE_TOOLS_IO_NPY_H

#include "vyre/program.h"

#include "io/read_file.h"

enum { NPY_LONGEST_HEADER = 65536 };

bool is_npy(const char *text, size_t length);

/* Finds the elements of a buffer in a file. Their type must be the declared
 * one, in C order and little endian; any shape is accepted. A problem names
 * the buffer and both types or sizes. The caller checks the count. */
bool npy_read(const input *in, const vyre_buffer_decl *buffer,
              const unsigned char **data, uint64_t *count, problem *wrong);

/* Writes the header of a one-dimensional file. NumPy does not have bf16; it
 * is written as two opaque bytes, '<V2', as the ml_dtypes package does. */
void npy_put_header(vyre_element element, uint64_t count, sink *out);

/* The same with @p parts values in a second dimension; 1: without one. */
void npy_put_rows(vyre_element element, uint64_t count, size_t parts,
                  sink *out);

#endif
