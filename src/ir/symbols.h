/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The table behind the lexer's names. */
#ifndef VYRE_IR_SYMBOLS_H
#define VYRE_IR_SYMBOLS_H

#include <string.h>

#include "ir/lex.h"

/* The first @p count bytes (below 8) as a number; @p readable are there. */
static inline uint64_t vyre__name_tail(const char *text, uint32_t count,
                                       uint32_t readable) {
  uint64_t word = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  if (readable >= 8) {
    memcpy(&word, text, 8);
    return word & ((UINT64_C(1) << 8 * count) - 1);
  }
#else
  (void)readable;
#endif
  for (uint32_t i = 0; i < count; i++) {
    word |= (uint64_t)(unsigned char)text[i] << (8 * i);
  }
  return word;
}

/* Eight bytes a step: names are short, and this runs once a name in the text.
 * @p readable bytes are there from @p text on, @p length or more. */
static inline uint32_t vyre__hash_name(const char *text, uint32_t length,
                                       uint32_t readable) {
  const uint64_t prime = 0x9E3779B97F4A7C15u;
  uint64_t hash = length * prime;
  for (; length >= 8; text += 8, length -= 8, readable -= 8) {
    uint64_t word;
    memcpy(&word, text, 8);
    hash = (hash ^ word) * prime;
    hash ^= hash >> 29;
  }
  hash = (hash ^ vyre__name_tail(text, length, readable)) * prime;
  return (uint32_t)(hash ^ hash >> 32);
}

/* The symbol of a name; 0 without memory (symbols->failed is then set). */
uint32_t vyre__intern(vyre__symbols *symbols, const char *text, uint32_t length,
                      uint32_t hash);

#endif
