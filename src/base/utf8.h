/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_BASE_UTF8_H
#define VYRE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if the bytes are safe to show on a terminal: well-formed UTF-8
 * (shortest form, no surrogates, at most U+10FFFF) without control
 * characters. */
bool vyre__utf8_printable(const char *text, size_t length);

/* Returns the length of the character at @p text; 0 if it is malformed, a
 * control character, or longer than @p left bytes. */
size_t vyre__utf8_step(const char *text, size_t left);

/* Writes a name for a message: unchanged if it has at most 64 bytes,
 * otherwise cut between two characters and followed by "...". Unsafe bytes
 * become '?'. Returns @p out. */
enum { VYRE__NAME_TEXT = 68 };
const char *vyre__name(const char *name, char out[VYRE__NAME_TEXT]);

#endif
