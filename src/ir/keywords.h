/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Words of the language that a program must not use as names. The list is here
 * and not in src/lang, because programs that never had a text obey it too:
 * every program can be printed as text. */
#ifndef VYRE_IR_KEYWORDS_H
#define VYRE_IR_KEYWORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VYRE__MAX_NAME = 255 }; /* bytes of one name */

/* Keywords in the order of ir/keywords.def. */
typedef enum vyre__keyword {
#define PUNCTUATION(name, text)
#define KEYWORD(name, text) VYRE__KEYWORD_##name,
#include "ir/keywords.def"
#undef PUNCTUATION
#undef KEYWORD
} vyre__keyword;

/* Meaning of a name without any declaration. */
typedef enum vyre__word {
  VYRE__WORD_PLAIN,   /* no meaning: free for declarations */
  VYRE__WORD_KEYWORD, /* value: vyre__keyword; in a symbol vyre__token_kind */
  VYRE__WORD_TYPE,    /* value: vyre_type */
  VYRE__WORD_ELEMENT, /* a type for buffer elements only; value: vyre_element */
  VYRE__WORD_BITCAST, /* as_u32 and the like; value: vyre_type */
  VYRE__WORD_OP,      /* a built-in function or id; value: vyre__op */
  VYRE__WORD_FLOAT,   /* inf, nan and the like; value: see below */
  VYRE__WORD_ATOMIC,  /* atomic_load or atomic_store; value: see below */
} vyre__word;

enum { VYRE__INF, VYRE__NAN, VYRE__INF_F64, VYRE__NAN_F64 };
enum { VYRE__ATOMIC_LOAD, VYRE__ATOMIC_STORE };

typedef struct vyre__reserved_word {
  const char *text;
  uint8_t length;
  uint8_t word; /* vyre__word */
  uint16_t value;
} vyre__reserved_word;

extern const vyre__reserved_word vyre__reserved_words[];
extern const size_t vyre__reserved_word_count;

/* Returns true if a row of vyre__reserved_words is a word of the text form. The
 * others are operators and operations that only exist as nodes. */
bool vyre__is_word(const vyre__reserved_word *row);

/* Returns true if a name is a word of the language, which no declaration may
 * use. */
bool vyre__is_reserved(const char *name, size_t length);

/* Returns true for a word with a meaning in queue kernels only: window,
 * item_index, in_window. */
bool vyre__is_queue_word(const char *name);

#endif
