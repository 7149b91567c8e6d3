/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* PNG encoder; the decoder is declared in image.h. */
#ifndef VYRE_TOOLS_IO_PNG_H
#define VYRE_TOOLS_IO_PNG_H

#include "io/image.h"

/* Writes samples of 8 or 16 bits (high byte first) as a PNG file. The shape
 * has 1 to 4 channels and sides of at least 1. */
void png_put(const unsigned char *samples, const image_shape *shape,
             unsigned bits, sink *out);

#endif
