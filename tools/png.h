/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pictures that everything opens. */
#ifndef VYRE_TOOLS_PNG_H
#define VYRE_TOOLS_PNG_H

#include <stdint.h>

#include "sink.h"

/* Writes rows of pixels, top to bottom: one byte a pixel (grey) or three (red,
 * green, blue). Both sides are at least 1 and their product fits memory. */
void png_put(const unsigned char *pixels, uint32_t width, uint32_t height,
             uint32_t channels, sink *out);

#endif
