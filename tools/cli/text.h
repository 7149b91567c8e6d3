/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Text that came from outside: reading numbers, guessing what a misspelled word
 * meant, and making it safe to show. */
#ifndef VYRE_TOOLS_CLI_TEXT_H
#define VYRE_TOOLS_CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/sink.h"

/* Digits and nothing else, up to 2^64-1. */
bool parse_u64(const char *text, size_t length, uint64_t *out);

/* Whether it is such a number, but above @p most. */
bool is_too_large(const char *text, size_t length, uint64_t most);

/* The one of @p count names that @p word is most likely a slip of; NULL if none
 * is near. Dashes at the begin count for nothing. */
const char *nearest_word(const char *word, size_t length,
                         const char *const *names, size_t count);

/* Bytes of the UTF-8 sequence at @p text, and its code point; 0 if there is no
 * valid one. Refuses overlong forms, surrogates and what is above U+10FFFF. */
size_t utf8_next(const char *text, size_t length, uint32_t *code_point);

/* Whether the terminal would act on it rather than show it. */
bool is_control(uint32_t code_point);

/* Offset of the first byte that is no UTF-8, or that starts a control
 * character; @p length if there is none. */
size_t find_unprintable(const char *text, size_t length);

/* Shows bytes on a terminal: control characters and stray bytes as \xNN. */
void show_bytes(sink *out, const char *text, size_t length);

/* The same into a buffer, with what does not fit cut to "..." at a character
 * boundary. The buffer has 4 bytes or more. */
void show_into(char *buffer, size_t size, const char *text, size_t length);

#endif
