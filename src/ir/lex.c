/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "ir/lex.h"

#include <string.h>

#include "ir/symbols.h"

enum { SPACE = 1, DIGIT = 2, LETTER = 4, WORD = DIGIT | LETTER };

/* Class of every byte. */
static const uint8_t classes[256] = {
    [' '] = SPACE,  ['\t'] = SPACE, ['\r'] = SPACE, ['\n'] = SPACE,
    ['0'] = DIGIT,  ['1'] = DIGIT,  ['2'] = DIGIT,  ['3'] = DIGIT,
    ['4'] = DIGIT,  ['5'] = DIGIT,  ['6'] = DIGIT,  ['7'] = DIGIT,
    ['8'] = DIGIT,  ['9'] = DIGIT,  ['_'] = LETTER, ['a'] = LETTER,
    ['b'] = LETTER, ['c'] = LETTER, ['d'] = LETTER, ['e'] = LETTER,
    ['f'] = LETTER, ['g'] = LETTER, ['h'] = LETTER, ['i'] = LETTER,
    ['j'] = LETTER, ['k'] = LETTER, ['l'] = LETTER, ['m'] = LETTER,
    ['n'] = LETTER, ['o'] = LETTER, ['p'] = LETTER, ['q'] = LETTER,
    ['r'] = LETTER, ['s'] = LETTER, ['t'] = LETTER, ['u'] = LETTER,
    ['v'] = LETTER, ['w'] = LETTER, ['x'] = LETTER, ['y'] = LETTER,
    ['z'] = LETTER, ['A'] = LETTER, ['B'] = LETTER, ['C'] = LETTER,
    ['D'] = LETTER, ['E'] = LETTER, ['F'] = LETTER, ['G'] = LETTER,
    ['H'] = LETTER, ['I'] = LETTER, ['J'] = LETTER, ['K'] = LETTER,
    ['L'] = LETTER, ['M'] = LETTER, ['N'] = LETTER, ['O'] = LETTER,
    ['P'] = LETTER, ['Q'] = LETTER, ['R'] = LETTER, ['S'] = LETTER,
    ['T'] = LETTER, ['U'] = LETTER, ['V'] = LETTER, ['W'] = LETTER,
    ['X'] = LETTER, ['Y'] = LETTER, ['Z'] = LETTER,
};

static unsigned class_at(const vyre__lexer *lexer, uint32_t at) {
  return at < lexer->length ? classes[(unsigned char)lexer->text[at]] : 0;
}

/* The byte at an offset; 0 behind the end (no byte of the text is 0). */
static char byte_at(const vyre__lexer *lexer, uint32_t at) {
  return (char)(at < lexer->length ? lexer->text[at] : '\0');
}

void vyre__lexer_init(vyre__lexer *lexer, const char *text, uint32_t length,
                      vyre__symbols *symbols) {
  *lexer = (vyre__lexer){
      .text = text, .length = length, .line = 1, .symbols = symbols};
  if (length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) lexer->at = 3;
}

/* Skips a comment that ends in star and slash. False if it does not end. */
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

/* Past a comment, if one begins here. */
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

/* To the next token. False at a comment that does not end. */
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
  lexer->at = end;
}

static void lex_name(vyre__lexer *lexer, vyre__token *token) {
  uint32_t at = lexer->at + 1, end = lexer->length;
  while (at < end && (classes[(unsigned char)lexer->text[at]] & WORD)) at++;
  uint32_t length = at - lexer->at;
  if (length > VYRE__MAX_NAME) {
    bad(lexer, token, VYRE__LEX_LONG, at);
    return;
  }
  const char *text = lexer->text + lexer->at;
  token->kind = VYRE__T_NAME;
  lexer->at = at;
  if (!lexer->symbols) return;
  token->symbol =
      vyre__intern(lexer->symbols, text, length,
                   vyre__hash_name(text, length, lexer->length - token->start));
  token->kind = lexer->symbols->items[token->symbol].kind;
}

/* Everything that clings to a digit; ir/number.h says whether it is a number. */
static void lex_number(vyre__lexer *lexer, vyre__token *token) {
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
  if (at - lexer->at > VYRE__MAX_NUMBER) {
    bad(lexer, token, VYRE__LEX_LONG, at);
  }
  lexer->at = at;
}

static void lex_string(vyre__lexer *lexer, vyre__token *token, char quote) {
  uint32_t at = lexer->at + 1;
  for (;; at++) {
    char c = byte_at(lexer, at);
    if (c == '\0' || c == '\n' || c == '\r') {
      /* A lone quote is one character; a string is the rest of its line. */
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
    lexer->at = at + 1;
  } else {
    bad(lexer, token, VYRE__LEX_QUOTE, at + 1);
  }
}

/* One that is followed by itself or by = may be a longer token. */
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

/* Bytes of the UTF-8 character that begins here; the text is well formed. */
static uint32_t character_length(unsigned char lead) {
  return lead < 0x80 ? 1u : lead < 0xE0 ? 2u : lead < 0xF0 ? 3u : 4u;
}

static void lex_operator(vyre__lexer *lexer, vyre__token *token,
                         unsigned char c) {
  operator_row row = c < 128 ? operators[c] : (operator_row){0, 0, 0, 0};
  char next = byte_at(lexer, lexer->at + 1);
  if (row.alone == 0) {
    bad(lexer, token, VYRE__LEX_CHARACTER, lexer->at + character_length(c));
  } else if (c == '-' && next == '>') {
    token->kind = VYRE__T_ARROW;
    lexer->at += 2;
  } else if (row.twice && next == (char)c) {
    bool set = row.twice_set && byte_at(lexer, lexer->at + 2) == '=';
    token->kind = set ? row.twice_set : row.twice;
    lexer->at += set ? 3 : 2;
  } else if (row.set && next == '=') {
    token->kind = row.set;
    lexer->at += 2;
  } else {
    token->kind = row.alone;
    lexer->at++;
  }
}

void vyre__lex_to(vyre__lexer *lexer, vyre__token *token) {
  bool blank = skip_blank(lexer);
  *token = (vyre__token){.kind = VYRE__T_END,
                         .start = lexer->at,
                         .line = lexer->line,
                         .column = lexer->at - lexer->line_start + 1};
  if (!blank) {
    bad(lexer, token, VYRE__LEX_COMMENT, lexer->length);
    token->length = 2;
    return;
  }
  if (lexer->at >= lexer->length) return;
  unsigned char c = (unsigned char)lexer->text[lexer->at];
  unsigned class = classes[c];
  if (class == LETTER) {
    lex_name(lexer, token);
  } else if (class == DIGIT ||
             (c == '.' && class_at(lexer, lexer->at + 1) == DIGIT)) {
    lex_number(lexer, token);
  } else if (c == '"' || c == '\'') {
    lex_string(lexer, token, (char)c);
  } else if (c == '#') {
    skip_line(lexer);
    bad(lexer, token, VYRE__LEX_HASH, lexer->at);
  } else {
    lex_operator(lexer, token, c);
  }
  token->length = lexer->at - token->start;
}

vyre__token vyre__lex(vyre__lexer *lexer) {
  vyre__token token;
  vyre__lex_to(lexer, &token);
  return token;
}

const char *vyre__token_text(unsigned kind) {
  static const char *const texts[VYRE__T_COUNT] = {
      [VYRE__T_END] = "the end of the file",
      [VYRE__T_BAD] = "a character that is no token",
      [VYRE__T_NAME] = "a name",
      [VYRE__T_NUMBER] = "a number",
      [VYRE__T_STRING] = "a string",
#define PUNCTUATION(name, text) [VYRE__T_##name] = (text),
#define KEYWORD(name, text)     [VYRE__T_##name] = (text),
#include "ir/tokens.def"
#undef PUNCTUATION
#undef KEYWORD
  };
  return kind < VYRE__T_COUNT ? texts[kind] : "?";
}
