/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_BASE_UTF8_H
#define VYRE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the bytes are well-formed UTF-8 (shortest form, no surrogates, at most
 * U+10FFFF) without control characters: safe to show on a terminal. */
bool vyre__utf8_printable(const char *text, size_t length);

#endif
