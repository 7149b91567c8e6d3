/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The table behind the lexer's names. */
#ifndef VYRE_IR_SYMBOLS_H
#define VYRE_IR_SYMBOLS_H

#include <string.h>

#include "ir/lex.h"

/* Eight bytes a step: names are short, and this runs once a name in the text. */
static inline uint32_t vyre__hash_name(const char *text, uint32_t length) {
  const uint64_t prime = 0x9E3779B97F4A7C15u;
  uint64_t hash = length * prime;
  uint64_t word;
  while (length >= 8) {
    memcpy(&word, text, 8);
    hash = (hash ^ word) * prime;
    hash ^= hash >> 29;
    text += 8;
    length -= 8;
  }
  word = 0;
  for (uint32_t i = 0; i < length; i++) {
    word |= (uint64_t)(unsigned char)text[i] << (8 * i);
  }
  hash = (hash ^ word) * prime;
  return (uint32_t)(hash ^ hash >> 32);
}

/* The symbol of a name; 0 without memory (symbols->failed is then set). */
uint32_t vyre__intern(vyre__symbols *symbols, const char *text, uint32_t length,
                      uint32_t hash);

#endif
