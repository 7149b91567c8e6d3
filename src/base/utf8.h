/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_BASE_UTF8_H
#define VYRE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the bytes are well-formed UTF-8 (shortest form, no surrogates, at
 * most U+10FFFF) without control characters: safe to show on a terminal. */
bool vyre__utf8_printable(const char *text, size_t length);

/* Bytes of the character at @p text, of which @p left are there; 0 if it is
 * malformed or a control character. */
size_t vyre__utf8_step(const char *text, size_t left);

/* A name for a message: as it is if it has at most 64 bytes, else its start,
 * cut between two characters, and "...". Bytes that are not safe to show
 * become '?'. Returns @p out. */
enum { VYRE__NAME_TEXT = 68 };
const char *vyre__name(const char *name, char out[VYRE__NAME_TEXT]);

#endif
