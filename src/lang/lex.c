/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lang/lex.h"

#include <assert.h>
#include <string.h>

#include "base/attributes.h"
#include "lang/import.h"
#include "lang/symbols.h"

/* Classes of bytes. SINGLE: always a token by itself. A slash may begin a
 * comment, a dot may begin a number. */
enum {
  SPACE = 1,
  DIGIT = 2,
  LETTER = 4,
  WORD = DIGIT | LETTER,
  SINGLE = 8,
  OPERATOR = 16,
  SLASH = 32,
  DOT = 64
};

/* Class of each byte. */
static const uint8_t classes[256] = {
    [' '] = SPACE,    ['\t'] = SPACE,   ['\r'] = SPACE,   ['\n'] = SPACE,
    ['0'] = DIGIT,    ['1'] = DIGIT,    ['2'] = DIGIT,    ['3'] = DIGIT,
    ['4'] = DIGIT,    ['5'] = DIGIT,    ['6'] = DIGIT,    ['7'] = DIGIT,
    ['8'] = DIGIT,    ['9'] = DIGIT,    ['_'] = LETTER,   ['a'] = LETTER,
    ['b'] = LETTER,   ['c'] = LETTER,   ['d'] = LETTER,   ['e'] = LETTER,
    ['f'] = LETTER,   ['g'] = LETTER,   ['h'] = LETTER,   ['i'] = LETTER,
    ['j'] = LETTER,   ['k'] = LETTER,   ['l'] = LETTER,   ['m'] = LETTER,
    ['n'] = LETTER,   ['o'] = LETTER,   ['p'] = LETTER,   ['q'] = LETTER,
    ['r'] = LETTER,   ['s'] = LETTER,   ['t'] = LETTER,   ['u'] = LETTER,
    ['v'] = LETTER,   ['w'] = LETTER,   ['x'] = LETTER,   ['y'] = LETTER,
    ['z'] = LETTER,   ['A'] = LETTER,   ['B'] = LETTER,   ['C'] = LETTER,
    ['D'] = LETTER,   ['E'] = LETTER,   ['F'] = LETTER,   ['G'] = LETTER,
    ['H'] = LETTER,   ['I'] = LETTER,   ['J'] = LETTER,   ['K'] = LETTER,
    ['L'] = LETTER,   ['M'] = LETTER,   ['N'] = LETTER,   ['O'] = LETTER,
    ['P'] = LETTER,   ['Q'] = LETTER,   ['R'] = LETTER,   ['S'] = LETTER,
    ['T'] = LETTER,   ['U'] = LETTER,   ['V'] = LETTER,   ['W'] = LETTER,
    ['X'] = LETTER,   ['Y'] = LETTER,   ['Z'] = LETTER,   ['('] = SINGLE,
    [')'] = SINGLE,   ['['] = SINGLE,   [']'] = SINGLE,   ['{'] = SINGLE,
    ['}'] = SINGLE,   [';'] = SINGLE,   [','] = SINGLE,   [':'] = SINGLE,
    ['@'] = SINGLE,   ['?'] = SINGLE,   ['~'] = SINGLE,   ['+'] = OPERATOR,
    ['-'] = OPERATOR, ['*'] = OPERATOR, ['%'] = OPERATOR, ['&'] = OPERATOR,
    ['|'] = OPERATOR, ['^'] = OPERATOR, ['!'] = OPERATOR, ['='] = OPERATOR,
    ['<'] = OPERATOR, ['>'] = OPERATOR, ['/'] = SLASH,    ['.'] = DOT,
};

static unsigned class_at(const vyre__lexer *lexer, uint32_t at) {
  return at < lexer->length ? classes[(unsigned char)lexer->text[at]] : 0;
}

/* Returns the byte at an offset; 0 past the end (the text contains no 0). */
static char byte_at(const vyre__lexer *lexer, uint32_t at) {
  return (char)(at < lexer->length ? lexer->text[at] : '\0');
}

void vyre__lexer_init(vyre__lexer *lexer, const char *text, uint32_t length,
                      vyre__symbols *symbols) {
  *lexer = (vyre__lexer){
      .text = text, .length = length, .line = 1, .symbols = symbols};
  if (length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) lexer->at = 3;
}

/* Skips a block comment. Returns false if it is not closed. */
static bool skip_block_comment(vyre__lexer *lexer) {
  uint32_t at = lexer->at + 2;
  uint32_t line = lexer->line, line_start = lexer->line_start;
  for (; at < lexer->length; at++) {
    char c = lexer->text[at];
    if (c == '\n') {
      line++;
      line_start = at + 1;
    } else if (c == '*' && byte_at(lexer, at + 1) == '/') {
      lexer->at = at + 2;
      lexer->line = line;
      lexer->line_start = line_start;
      return true;
    }
  }
  return false;
}

static void skip_line(vyre__lexer *lexer) {
  const char *from = lexer->text + lexer->at;
  const char *end = memchr(from, '\n', lexer->length - lexer->at);
  lexer->at = end ? (uint32_t)(end - lexer->text) : lexer->length;
}

/* Skips a comment, if one begins here. */
typedef enum comment { NO_COMMENT, COMMENT, OPEN_COMMENT } comment;

static comment skip_comment(vyre__lexer *lexer) {
  char next = byte_at(lexer, lexer->at + 1);
  if (next == '/') {
    skip_line(lexer);
    return COMMENT;
  }
  if (next != '*') return NO_COMMENT;
  return skip_block_comment(lexer) ? COMMENT : OPEN_COMMENT;
}

/* Skips white space and comments. Returns false at an unclosed comment. */
static bool skip_blank(vyre__lexer *lexer) {
  for (;;) {
    char c = byte_at(lexer, lexer->at);
    if (c == '\n') {
      lexer->line++;
      lexer->line_start = ++lexer->at;
    } else if (class_at(lexer, lexer->at) == SPACE) {
      lexer->at++;
    } else {
      comment found = c == '/' ? skip_comment(lexer) : NO_COMMENT;
      if (found != COMMENT) return found == NO_COMMENT;
    }
  }
}

static void bad(vyre__lexer *lexer, vyre__token *token, vyre__lex_error error,
                uint32_t end) {
  token->kind = VYRE__T_BAD;
  token->error = (uint8_t)error;
  token->length = end - token->start;
  lexer->at = end;
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* Returns a word with the top bit of every byte set that is not a letter,
 * digit or underscore. Additions use seven bits, so they do not carry into
 * the next byte. Byte 0x7F is wrongly taken for a '_'; since no known name
 * contains it, the lookup fails and lex_any_name measures the name again. */
static inline uint64_t not_of_words(uint64_t eight) {
  const uint64_t ones = UINT64_C(0x0101010101010101);
  const uint64_t bits = eight & 0x7F * ones, lower = bits | 0x20 * ones;
  const uint64_t letter =
      (lower + (0x80 - 'a') * ones) & ~(lower + (0x7F - 'z') * ones);
  const uint64_t digit =
      (bits + (0x80 - '0') * ones) & ~(bits + (0x7F - '9') * ones);
  const uint64_t other = (lower ^ ('_' | 0x20) * ones) + 0x7F * ones;
  return ((~letter & ~digit & other) | eight) & 0x80 * ones;
}

static_assert(('_' | 0x20) == 0x7F, "no other byte but 0x7F becomes that");
#endif

/* Returns the length of the word that begins at @p text. */
static uint32_t word_length(const char *text, uint32_t readable) {
  uint32_t length = 1;
  while (length < readable && (classes[(unsigned char)text[length]] & WORD)) {
    length++;
  }
  return length;
}

/* Reads a name of any length, known or not. */
VYRE__NOINLINE static void lex_any_name(vyre__lexer *lexer,
                                        vyre__token *token) {
  const char *text = lexer->text + lexer->at;
  const uint32_t readable = lexer->length - lexer->at;
  const uint32_t length = word_length(text, readable);
  if (length > VYRE__MAX_NAME) {
    bad(lexer, token, VYRE__LEX_LONG, lexer->at + length);
    return;
  }
  token->kind = VYRE__T_NAME;
  token->length = length;
  lexer->at += length;
  if (!lexer->symbols) return;
  token->symbol = vyre__intern(lexer->symbols, text,
                               vyre__name_key_of(text, length, readable));
  token->kind = lexer->symbols->items[token->symbol].kind;
}

/* Fast path for names: most are short and already interned, and are found
 * without a loop over their bytes. Like vyre__lex_to, it only makes tail
 * calls. */
VYRE__NOINLINE static void lex_name(vyre__lexer *lexer, vyre__token *token) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  const vyre__symbols *symbols = lexer->symbols;
  uint64_t eight, ends = 0;
  if (symbols && lexer->length - lexer->at >= 8) {
    memcpy(&eight, lexer->text + lexer->at, 8);
    ends = not_of_words(eight);
  }
  if (ends) {
    const uint32_t length = (uint32_t)__builtin_ctzll(ends) / 8;
    const uint64_t bytes = eight & (((ends & -ends) >> 7) - 1);
    uint32_t number = vyre__find_short_name(symbols, length, bytes);
    if (number) {
      token->kind = symbols->items[number].kind;
      token->length = length;
      token->symbol = number;
      lexer->at += length;
      return;
    }
  }
#endif
  lex_any_name(lexer, token);
}

VYRE__RARE static void lex_scoped_name(vyre__lexer *lexer, vyre__token *token) {
  lex_name(lexer, token);
  vyre__scope_name(lexer, token);
}

/* Reads a digit and all letters, digits and dots that follow. lang/literal.h
 * decides whether that is a number. */
VYRE__NOINLINE static void lex_number(vyre__lexer *lexer, vyre__token *token) {
  uint32_t at = lexer->at;
  char second = byte_at(lexer, at + 1);
  bool hex = lexer->text[at] == '0' && (second == 'x' || second == 'X');
  char exponent = hex ? 'p' : 'e';
  for (;; at++) {
    char c = byte_at(lexer, at);
    if ((class_at(lexer, at) & WORD) || c == '.') continue;
    if ((c == '+' || c == '-') && at > lexer->at &&
        (lexer->text[at - 1] | 0x20) == exponent) {
      continue;
    }
    break;
  }
  token->kind = VYRE__T_NUMBER;
  token->length = at - lexer->at;
  if (token->length > VYRE__MAX_NUMBER) bad(lexer, token, VYRE__LEX_LONG, at);
  lexer->at = at;
}

VYRE__RARE static void lex_string(vyre__lexer *lexer, vyre__token *token,
                                  char quote) {
  uint32_t at = lexer->at + 1;
  for (;; at++) {
    char c = byte_at(lexer, at);
    if (c == '\0' || c == '\n' || c == '\r') {
      /* A single quote is one character long; a string extends to the end of
       * its line. */
      uint32_t end = quote == '"' ? at : lexer->at + 1;
      bad(lexer, token, quote == '"' ? VYRE__LEX_STRING : VYRE__LEX_QUOTE, end);
      return;
    }
    char next = byte_at(lexer, at + 1);
    if (c == '\\' && next != '\0' && next != '\n' && next != '\r') {
      at++;
    } else if (c == quote) {
      break;
    }
  }
  if (quote == '"') {
    token->kind = VYRE__T_STRING;
    token->length = at + 1 - lexer->at;
    lexer->at = at + 1;
  } else {
    bad(lexer, token, VYRE__LEX_QUOTE, at + 1);
  }
}

/* Operators that may be followed by themselves or by =. */
typedef struct operator_row {
  uint8_t alone, twice, set, twice_set;
} operator_row;

static const operator_row operators[128] = {
    ['('] = {VYRE__T_LPAREN, 0, 0, 0},
    [')'] = {VYRE__T_RPAREN, 0, 0, 0},
    ['['] = {VYRE__T_LBRACKET, 0, 0, 0},
    [']'] = {VYRE__T_RBRACKET, 0, 0, 0},
    ['{'] = {VYRE__T_LBRACE, 0, 0, 0},
    ['}'] = {VYRE__T_RBRACE, 0, 0, 0},
    [';'] = {VYRE__T_SEMICOLON, 0, 0, 0},
    [','] = {VYRE__T_COMMA, 0, 0, 0},
    [':'] = {VYRE__T_COLON, 0, 0, 0},
    ['.'] = {VYRE__T_DOT, 0, 0, 0},
    ['@'] = {VYRE__T_AT, 0, 0, 0},
    ['?'] = {VYRE__T_QUESTION, 0, 0, 0},
    ['~'] = {VYRE__T_TILDE, 0, 0, 0},
    ['+'] = {VYRE__T_PLUS, VYRE__T_PLUS_PLUS, VYRE__T_SET_ADD, 0},
    ['-'] = {VYRE__T_MINUS, VYRE__T_MINUS_MINUS, VYRE__T_SET_SUB, 0},
    ['*'] = {VYRE__T_STAR, 0, VYRE__T_SET_MUL, 0},
    ['/'] = {VYRE__T_SLASH, 0, VYRE__T_SET_DIV, 0},
    ['%'] = {VYRE__T_PERCENT, 0, VYRE__T_SET_REM, 0},
    ['&'] = {VYRE__T_AMP, VYRE__T_LAND, VYRE__T_SET_AND, 0},
    ['|'] = {VYRE__T_PIPE, VYRE__T_LOR, VYRE__T_SET_OR, 0},
    ['^'] = {VYRE__T_CARET, 0, VYRE__T_SET_XOR, 0},
    ['!'] = {VYRE__T_BANG, 0, VYRE__T_NE, 0},
    ['='] = {VYRE__T_SET, VYRE__T_EQ, 0, 0},
    ['<'] = {VYRE__T_LT, VYRE__T_SHL, VYRE__T_LE, VYRE__T_SET_SHL},
    ['>'] = {VYRE__T_GT, VYRE__T_SHR, VYRE__T_GE, VYRE__T_SET_SHR},
};

/* Returns the length of the UTF-8 character that begins here; the text is
 * well formed. */
static uint32_t character_length(unsigned char lead) {
  return lead < 0x80 ? 1u : lead < 0xE0 ? 2u : lead < 0xF0 ? 3u : 4u;
}

/* Reads the operator that begins with @p c: sets kind and length. */
VYRE__NOINLINE static void lex_operator(vyre__lexer *lexer, vyre__token *token,
                                        unsigned char c) {
  const operator_row row = operators[c];
  const uint32_t at = lexer->at;
  token->kind = row.alone;
  token->length = 1;
  lexer->at = at + 1;
  char next = byte_at(lexer, at + 1);
  if (c == '-' && next == '>') {
    token->kind = VYRE__T_ARROW;
  } else if (row.twice && next == (char)c) {
    bool set = row.twice_set && byte_at(lexer, at + 2) == '=';
    token->kind = set ? row.twice_set : row.twice;
    token->length += set;
    lexer->at += set;
  } else if (row.set && next == '=') {
    token->kind = row.set;
  } else {
    return;
  }
  token->length++;
  lexer->at++;
}

/* Reads a token that begins with neither a letter, a digit nor an operator. */
VYRE__RARE static void lex_rest(vyre__lexer *lexer, vyre__token *token,
                                unsigned char c) {
  if (c == '"' || c == '\'') {
    lex_string(lexer, token, (char)c);
  } else if (c == '#') {
    skip_line(lexer);
    bad(lexer, token, VYRE__LEX_HASH, lexer->at);
  } else {
    bad(lexer, token, VYRE__LEX_CHARACTER, lexer->at + character_length(c));
  }
}

/* Sets all fields but kind and length. */
static inline void begin_token(const vyre__lexer *lexer, vyre__token *token) {
  token->error = 0;
  token->start = lexer->at;
  token->line = lexer->line;
  token->column = lexer->at - lexer->line_start + 1;
  token->symbol = 0;
}

/* Reads a slash, or skips comments and reads the token after them. */
VYRE__RARE static void lex_slash(vyre__lexer *lexer, vyre__token *token) {
  if (skip_blank(lexer)) {
    if (byte_at(lexer, lexer->at) != '/') {
      vyre__lex_to(lexer, token); /* no other white space precedes it */
    } else {
      begin_token(lexer, token);
      lex_operator(lexer, token, '/');
    }
    return;
  }
  begin_token(lexer, token);
  bad(lexer, token, VYRE__LEX_COMMENT, lexer->length);
  token->length = 2;
  /* T_END gets the line where the unclosed comment ends. */
  for (uint32_t at = token->start; at < lexer->length; at++) {
    if (lexer->text[at] != '\n') continue;
    lexer->line++;
    lexer->line_start = at + 1;
  }
}

/* Skips white space. Returns the class of the next byte, 0 at the end of the
 * text. */
static inline unsigned skip_blanks(vyre__lexer *lexer) {
  const char *text = lexer->text;
  const uint32_t end = lexer->length;
  uint32_t at = lexer->at;
  unsigned class = 0;
  while (at < end) {
    unsigned char c = (unsigned char)text[at];
    class = classes[c];
    if (class != SPACE) break;
    at++;
    class = 0;
    if (c != '\n') continue;
    lexer->line++;
    lexer->line_start = at;
    /* Most lines are indented. */
    while (end - at >= 4 && memcmp(text + at, "    ", 4) == 0) at += 4;
  }
  lexer->at = at;
  return class;
}

/* Makes tail calls only, so that the compiler saves no registers: this runs
 * for every token. */
void vyre__lex_to(vyre__lexer *lexer, vyre__token *token) {
  const unsigned class = skip_blanks(lexer);
  const uint32_t at = lexer->at;
  begin_token(lexer, token);
  if (class == LETTER) {
    if (lexer->scopes) {
      lex_scoped_name(lexer, token);
    } else {
      lex_name(lexer, token);
    }
    return;
  }
  if (at >= lexer->length) {
    token->kind = VYRE__T_END;
    token->length = 0;
    return;
  }
  const unsigned char c = (unsigned char)lexer->text[at];
  if (class == SINGLE ||
      (class == DOT && class_at(lexer, lexer->at + 1) != DIGIT)) {
    token->kind = operators[c].alone;
    token->length = 1;
    lexer->at = at + 1;
  } else if (class == OPERATOR) {
    lex_operator(lexer, token, c);
  } else if (class == DIGIT || class == DOT) {
    lex_number(lexer, token);
  } else if (class == SLASH) {
    lex_slash(lexer, token);
  } else {
    lex_rest(lexer, token, c);
  }
}

vyre__token vyre__lex(vyre__lexer *lexer) {
  vyre__token token;
  vyre__lex_to(lexer, &token);
  return token;
}

const char *vyre__token_text(unsigned kind) {
  static const char *const texts[VYRE__T_COUNT] = {
      [VYRE__T_END] = "the end of the file",
      [VYRE__T_BAD] = "an invalid character",
      [VYRE__T_NAME] = "a name",
      [VYRE__T_NUMBER] = "a number",
      [VYRE__T_STRING] = "a string",
#define PUNCTUATION(name, text) [VYRE__T_##name] = (text),
#define KEYWORD(name, text)     [VYRE__T_##name] = (text),
#include "ir/keywords.def"
#undef PUNCTUATION
#undef KEYWORD
  };
  return kind < VYRE__T_COUNT ? texts[kind] : "?";
}
