/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Text to tokens. Names are interned: a token of a name carries the number of
 * its symbol, and everything the parser knows about the name hangs there. */
#ifndef VYRE_LANG_LEX_H
#define VYRE_LANG_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/memory.h"

enum {
  VYRE__MAX_SOURCE = 16 << 20, /* bytes of one file */
  VYRE__MAX_NAME = 255,        /* bytes of one name */
  VYRE__MAX_NUMBER = 512,      /* bytes of one number */
};

typedef enum vyre__token_kind {
  VYRE__T_END,
  VYRE__T_BAD, /* see vyre__lex_error */
  VYRE__T_NAME,
  VYRE__T_NUMBER,
  VYRE__T_STRING, /* with its quotes */
#define PUNCTUATION(name, text) VYRE__T_##name,
#define KEYWORD(name, text)     VYRE__T_##name,
#include "ir/keywords.def"
#undef PUNCTUATION
#undef KEYWORD
  VYRE__T_COUNT
} vyre__token_kind;

/* What is wrong with a T_BAD. */
typedef enum vyre__lex_error {
  VYRE__LEX_CHARACTER, /* one that no token begins with; may be several bytes */
  VYRE__LEX_COMMENT,   /* not ended; the token is what opened it */
  VYRE__LEX_STRING,    /* not ended on its line */
  VYRE__LEX_QUOTE,     /* 'x' */
  VYRE__LEX_HASH,      /* a line of the C preprocessor */
  VYRE__LEX_LONG,      /* a name or number above its limit */
} vyre__lex_error;

typedef struct vyre__token {
  uint8_t kind;   /* vyre__token_kind */
  uint8_t error;  /* vyre__lex_error of a T_BAD */
  uint32_t start; /* offset in the text */
  uint32_t length;
  uint32_t line, column; /* from 1; columns count bytes */
  uint32_t symbol;       /* of names and keywords */
} vyre__token;

/* What a name means without any declaration. */
typedef enum vyre__word {
  VYRE__WORD_PLAIN,   /* nothing */
  VYRE__WORD_KEYWORD, /* value: vyre__token_kind */
  VYRE__WORD_TYPE,    /* value: vyre_type */
  VYRE__WORD_ELEMENT, /* a type that only buffers have; value: vyre_element */
  VYRE__WORD_BITCAST, /* as_u32 ...; value: vyre_type */
  VYRE__WORD_OP,      /* a built-in function or id; value: vyre__op */
  VYRE__WORD_FLOAT,   /* inf, nan ...; value: an index for the parser */
} vyre__word;

enum { VYRE__INF, VYRE__NAN, VYRE__INF_F64, VYRE__NAN_F64 };

typedef struct vyre__symbol {
  const char *text; /* not terminated */
  uint32_t length;
  uint32_t hash;
  uint64_t tail; /* vyre__name_tail of its last bytes: all of a short name */
  uint8_t kind;  /* of its token: T_NAME or a keyword */
  uint8_t word;  /* vyre__word */
  uint16_t value;
  uint32_t item;  /* what the file declares by it: index + 1; 0: nothing */
  uint32_t local; /* what the kernel or function declares by it, likewise */
} vyre__symbol;

/* Symbol 0 is none. Zeroed but for the allocator, it is empty. */
typedef struct vyre__symbols {
  vyre_allocator allocator;
  vyre__symbol *items;
  size_t count, capacity;
  uint32_t *slots; /* open addressing; a power of two */
  size_t slot_count;
  bool failed; /* there was no memory; names are then symbol 0 */
} vyre__symbols;

/* Interns all words of the language. False without memory. */
bool vyre__symbols_init(vyre__symbols *symbols, vyre_allocator allocator);
void vyre__symbols_deinit(vyre__symbols *symbols);

/* Whether a name is a word of the language, which nothing may be called. */
bool vyre__is_reserved(const char *name, size_t length);

typedef struct vyre__lexer {
  const char *text; /* checked by vyre__source_check */
  uint32_t at, length;
  uint32_t line, line_start;
  vyre__symbols *symbols; /* NULL: names stay symbol 0, keywords T_NAME */
} vyre__lexer;

void vyre__lexer_init(vyre__lexer *lexer, const char *text, uint32_t length,
                      vyre__symbols *symbols);
vyre__token vyre__lex(vyre__lexer *lexer);
void vyre__lex_to(vyre__lexer *lexer, vyre__token *token); /* the same */

/* "(" for T_LPAREN, "let" for T_LET, "a name" ... */
const char *vyre__token_text(unsigned kind);

/* What may be wrong with a text before it has tokens. */
typedef enum vyre__source_fault {
  VYRE__SOURCE_FINE,
  VYRE__SOURCE_LONG,
  VYRE__SOURCE_NUL,
  VYRE__SOURCE_UTF8,
  VYRE__SOURCE_CONTROL, /* a control character other than tab and line ends */
} vyre__source_fault;

/* Looks at the whole text; *at is the first fault's offset. */
vyre__source_fault vyre__source_check(const char *text, size_t length,
                                      size_t *at);

/* Line and column (from 1) of an offset. */
void vyre__source_loc_find(const char *text, size_t length, size_t at,
                           uint32_t *line, uint32_t *column);

#endif
