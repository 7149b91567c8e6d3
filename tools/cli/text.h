/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Handles text from outside: parses numbers, suggests names for misspelled
 * words, and escapes text for a terminal. */
#ifndef VYRE_TOOLS_CLI_TEXT_H
#define VYRE_TOOLS_CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/sink.h"

/* Parses decimal digits, up to 2^64-1. */
bool parse_u64(const char *text, size_t length, uint64_t *out);

/* Parses decimal digits, which K, M or G (powers of 1024) may follow. */
bool parse_bytes(const char *text, size_t length, uint64_t *out);

/* Returns true if the text is a number above @p most. */
bool is_too_large(const char *text, size_t length, uint64_t max);

/* Returns the one of @p count names that @p word is most likely meant to be,
 * or NULL. Leading dashes do not count. */
const char *nearest_word(const char *word, size_t length,
                         const char *const *names, size_t count);

/* Returns the length of the UTF-8 sequence at @p text and stores its code
 * point; 0 if it is invalid. Overlong forms, surrogates and code points
 * above U+10FFFF are invalid. */
size_t utf8_next(const char *text, size_t length, uint32_t *code_point);

/* Returns true for control characters, which a terminal interprets. */
bool is_control(uint32_t code_point);

/* Returns the offset of the first byte that is not valid UTF-8 or starts a
 * control character, or @p length. */
size_t find_unprintable(const char *text, size_t length);

/* Appends bytes with control characters and invalid bytes as \xNN. */
void show_bytes(sink *out, const char *text, size_t length);

/* Does the same into a buffer of at least 4 bytes. Text that does not fit is
 * cut at a character boundary and ends in "...". */
void show_into(char *buffer, size_t size, const char *text, size_t length);

#endif
