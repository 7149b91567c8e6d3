/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Values of buffer elements as people write and read them. Elements are little
 * endian; `bytes` goes as u8. */
#ifndef VYRE_TOOLS_IO_ELEMENT_TEXT_H
#define VYRE_TOOLS_IO_ELEMENT_TEXT_H

#include "vyre/program.h"

#include "cli/sink.h"

enum { LARGEST_ELEMENT = 8 };

/* Bytes of one element: 1 for `bytes`. */
size_t element_bytes(vyre_element element);

/* Reads a value: a whole number in decimal, hex (0x) or binary (0b) that fits;
 * for floats also 1.5, 1e-3, inf, nan; for bool also true and false. */
bool element_parse(vyre_element element, const char *text, size_t length,
                   unsigned char out[LARGEST_ELEMENT]);

/* Writes the shortest text that reads back as the same value. */
void element_format(vyre_element element, const unsigned char *bytes,
                    sink *out);

/* As above, as JSON: floats that are no number become strings. */
void element_json(vyre_element element, const unsigned char *bytes, sink *out);

/* Element @p index of 0, 1, 2, ...: the low bits, or rounded to a float. */
void element_iota(vyre_element element, uint64_t index,
                  unsigned char out[LARGEST_ELEMENT]);

/* Element @p index of the random sequence @p seed: splitmix64, of which integers
 * take the highest bits and floats as many as they hold exactly, in [0, 1). */
void element_random(vyre_element element, uint64_t seed, uint64_t index,
                    unsigned char out[LARGEST_ELEMENT]);

#endif
