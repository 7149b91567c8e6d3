/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Converts buffer elements to and from text. Elements are little endian;
 * `bytes` is treated as u8. An exact sum shows as the number that it rounds to.
 * Functions that write an element need memory of its size, at most
 * LARGEST_ELEMENT bytes. */
#ifndef VYRE_TOOLS_IO_ELEMENT_TEXT_H
#define VYRE_TOOLS_IO_ELEMENT_TEXT_H

#include "vyre/program.h"

#include "cli/sink.h"

enum { LARGEST_ELEMENT = 576 };

/* Returns the size of an element in bytes; 1 for `bytes`. */
size_t element_bytes(vyre_element element);

/* Parses a value: a decimal, hex (0x) or binary (0b) integer in range; for
 * floats also 1.5, 1e-3, inf, nan; for bool also true and false. */
bool element_parse(vyre_element element, const char *text, size_t length,
                   unsigned char *out);

/* Writes the shortest text that parses to the same value. */
void element_format(vyre_element element, const unsigned char *bytes,
                    sink *out);

/* Writes the same as JSON; inf and NaN become strings. */
void element_json(vyre_element element, const unsigned char *bytes, sink *out);

/* Writes element @p index of 0, 1, 2, ...: the low bits, or rounded to a
 * float. */
void element_iota(vyre_element element, uint64_t index, unsigned char *out);

/* Writes element @p index of the random sequence @p seed (splitmix64).
 * Integers take the highest bits; floats take as many as they represent
 * exactly and lie in [0, 1). */
void element_random(vyre_element element, uint64_t seed, uint64_t index,
                    unsigned char *out);

#endif
