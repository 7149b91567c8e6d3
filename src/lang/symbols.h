/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Symbol table of the lexer. */
#ifndef VYRE_LANG_SYMBOLS_H
#define VYRE_LANG_SYMBOLS_H

#include <string.h>

#include "lang/lex.h"

/* Returns the first @p count bytes (fewer than 8) as a number; @p readable
 * bytes may be read. */
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

/* Key by which the table compares names. */
typedef struct vyre__name_key {
  uint32_t length, hash;
  uint64_t tail; /* bytes after the last full group of eight */
} vyre__name_key;

enum { VYRE__SHORT_NAME = 7 }; /* longest name that fits into `tail` */

static const uint64_t vyre__name_prime = 0x9E3779B97F4A7C15u;

static inline vyre__name_key vyre__name_key_end(uint32_t length, uint64_t hash,
                                                uint64_t tail) {
  hash = (hash ^ tail) * vyre__name_prime;
  return (vyre__name_key){length, (uint32_t)(hash ^ hash >> 32), tail};
}

/* Returns the key of a name of at most VYRE__SHORT_NAME bytes. */
static inline vyre__name_key vyre__short_name_key(uint32_t length,
                                                  uint64_t tail) {
  return vyre__name_key_end(length, length * vyre__name_prime, tail);
}

/* Computes the key of a name, eight bytes at a time, because this runs for
 * every name of the text. @p readable bytes may be read from @p text on; at
 * least @p length. */
static inline vyre__name_key vyre__name_key_of(const char *text,
                                               uint32_t length,
                                               uint32_t readable) {
  uint64_t hash = length * vyre__name_prime;
  uint32_t left = length;
  for (; left > VYRE__SHORT_NAME; text += 8, left -= 8, readable -= 8) {
    uint64_t word;
    memcpy(&word, text, 8);
    hash = (hash ^ word) * vyre__name_prime;
    hash ^= hash >> 29;
  }
  return vyre__name_key_end(length, hash,
                            vyre__name_tail(text, left, readable));
}

/* Adds a name that the table does not contain. */
uint32_t vyre__symbol_add(vyre__symbols *symbols, const char *text,
                          vyre__name_key key);

/* Returns the symbol of a name; 0 if it is unknown. */
static inline uint32_t vyre__find_name(const vyre__symbols *symbols,
                                       const char *text, vyre__name_key key) {
  const size_t mask = symbols->slot_count - 1;
  size_t slot = key.hash & mask;
  for (; symbols->slots[slot]; slot = (slot + 1) & mask) {
    const vyre__symbol *symbol = &symbols->items[symbols->slots[slot]];
    if (symbol->tail == key.tail && symbol->length == key.length &&
        symbol->hash == key.hash &&
        (key.length <= VYRE__SHORT_NAME ||
         memcmp(symbol->text, text, key.length & ~7u) == 0)) {
      return symbols->slots[slot];
    }
  }
  return 0;
}

/* Returns the symbol of a name; 0 if memory is exhausted (sets
 * symbols->failed). */
static inline uint32_t vyre__intern(vyre__symbols *symbols, const char *text,
                                    vyre__name_key key) {
  const uint32_t known = vyre__find_name(symbols, text, key);
  return known ? known : vyre__symbol_add(symbols, text, key);
}

/* Returns the symbol of a name of at most VYRE__SHORT_NAME bytes; 0 if it is
 * unknown. */
static inline uint32_t vyre__find_short_name(const vyre__symbols *symbols,
                                             uint32_t length, uint64_t bytes) {
  const size_t mask = symbols->slot_count - 1;
  size_t slot = vyre__short_name_key(length, bytes).hash & mask;
  for (;; slot = (slot + 1) & mask) {
    const uint32_t number = symbols->slots[slot];
    const vyre__symbol *symbol = &symbols->items[number]; /* [0] is "" */
    if (number == 0 || (symbol->tail == bytes && symbol->length == length)) {
      return number;
    }
  }
}

#endif
