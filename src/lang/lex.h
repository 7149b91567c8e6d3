/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lexer: text to tokens. Names are interned: the token of a name carries the
 * number of its symbol, and the symbol holds all declarations of the name. */
#ifndef VYRE_LANG_LEX_H
#define VYRE_LANG_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/memory.h"

#include "ir/keywords.h"

enum {
  VYRE__MAX_SOURCE = 16 << 20, /* bytes of one file */
  VYRE__MAX_NUMBER = 512,      /* bytes of one number */
};

typedef enum vyre__token_kind {
  VYRE__T_END,
  VYRE__T_BAD, /* error; see vyre__lex_error */
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

/* Kind of error of a T_BAD token. */
typedef enum vyre__lex_error {
  VYRE__LEX_CHARACTER, /* not the start of any token; may have several bytes */
  VYRE__LEX_COMMENT,   /* not closed; the token is its opening */
  VYRE__LEX_STRING,    /* not closed on its line */
  VYRE__LEX_QUOTE,     /* 'x' */
  VYRE__LEX_HASH,      /* a line of the C preprocessor */
  VYRE__LEX_LONG,      /* name or number longer than its limit */
} vyre__lex_error;

typedef struct vyre__token {
  uint8_t kind;   /* vyre__token_kind */
  uint8_t error;  /* vyre__lex_error of a T_BAD */
  uint32_t start; /* offset in the text */
  uint32_t length;
  uint32_t line, column; /* from 1; columns count bytes */
  uint32_t symbol;       /* of names and keywords */
} vyre__token;

typedef struct vyre__symbol {
  const char *text; /* not terminated */
  uint32_t length;
  uint32_t hash;
  uint64_t tail;  /* vyre__name_tail of its last bytes: all of a short name */
  uint8_t kind;   /* of its token: T_NAME or a keyword */
  uint8_t word;   /* vyre__word */
  uint16_t value; /* PLAIN: a built-in function with this name, or 0 */
  uint32_t item;  /* declaration at file level: index + 1; 0 if absent */
  /* declaration in the kernel or function: index + 1; 0 if absent */
  uint32_t local;
  uint32_t import; /* index + 1 of the file that it names; 0 without one */
} vyre__symbol;

/* Symbol table. Symbol 0 is the empty name. A table that is zeroed except for
 * its allocator is empty. */
typedef struct vyre__symbols {
  vyre_allocator allocator;
  vyre__symbol *items;
  size_t count, capacity;
  uint32_t *slots; /* open addressing; size is a power of two */
  size_t slot_count;
  bool failed; /* memory was exhausted; names are symbol 0 then */
} vyre__symbols;

/* Initialises the table with all words of the language. Returns false if
 * memory is exhausted. */
bool vyre__symbols_init(vyre__symbols *symbols, vyre_allocator allocator);
void vyre__symbols_deinit(vyre__symbols *symbols);

typedef struct vyre__lexer {
  const char *text; /* checked by vyre__source_check */
  uint32_t at, length;
  uint32_t line, line_start;
  vyre__symbols *symbols; /* NULL: names get symbol 0, keywords are T_NAME */
  struct vyre__scopes *scopes; /* meanings by file; NULL without imports */
  uint32_t file;               /* in `scopes` */
} vyre__lexer;

void vyre__lexer_init(vyre__lexer *lexer, const char *text, uint32_t length,
                      vyre__symbols *symbols);
vyre__token vyre__lex(vyre__lexer *lexer);
void vyre__lex_to(vyre__lexer *lexer,
                  vyre__token *token); /* stores the next token */

/* Returns "(" for T_LPAREN, "let" for T_LET, "a name" for T_NAME and so on. */
const char *vyre__token_text(unsigned kind);

/* Encoding errors of a text. */
typedef enum vyre__source_fault {
  VYRE__SOURCE_FINE,
  VYRE__SOURCE_LONG,
  VYRE__SOURCE_NUL,
  VYRE__SOURCE_UTF8,
  VYRE__SOURCE_CONTROL, /* a control character other than tab and line ends */
} vyre__source_fault;

/* Checks the full text. *at is the offset of the first error. */
vyre__source_fault vyre__source_check(const char *text, size_t length,
                                      size_t *at);

/* Finds line and column (from 1) of an offset. */
void vyre__source_loc_find(const char *text, size_t length, size_t at,
                           uint32_t *line, uint32_t *column);

#endif
