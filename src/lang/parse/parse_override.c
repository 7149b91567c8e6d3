/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parser: overrides. They are consts whose values, and names of types that, the
 * options of the parser may replace. `override` and `type` are words only
 * here. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lang/parse/parse.h"

static bool is_word(const char *text, const vyre__token *token,
                    const char *word) {
  return token->kind == VYRE__T_NAME && token->length == strlen(word) &&
         memcmp(text + token->start, word, token->length) == 0;
}

bool vyre__p_is_override(vyre__parser *p) {
  return is_word(p->text, &p->now.token, "override") &&
         vyre__p_peek(p).kind == VYRE__T_NAME;
}

/* Returns the value that the options give to a name, or NULL. */
static const char *define_of(vyre__parser *p, const char *name, size_t length) {
  for (size_t i = 0; i < p->options.define_count; i++) {
    const vyre_define *each = &p->options.defines[i];
    if (strlen(each->name) != length || memcmp(each->name, name, length) != 0) {
      continue;
    }
    p->used_defines[i] = true;
    return each->value;
  }
  return NULL;
}

/* --- types -----------------------------------------------------------------*/

/* Returns the type of that name, or VOID. */
static unsigned type_called(const char *name, size_t length) {
  for (size_t i = 0; i < vyre__reserved_word_count; i++) {
    const vyre__reserved_word *row = &vyre__reserved_words[i];
    if (row->word == VYRE__WORD_TYPE && row->length == length &&
        memcmp(row->text, name, length) == 0) {
      return row->value;
    }
  }
  return VYRE_TYPE_VOID;
}

/* Tokens of override type NAME = TYPE; */
typedef struct type_line {
  vyre__token name, type;
  bool is_complete;
} type_line;

static bool read_line(const vyre__parser *p, const vyre__lexer *at,
                      type_line *out) {
  vyre__lexer lexer = *at;
  (void)vyre__lex(&lexer); /* override */
  const vyre__token word = vyre__lex(&lexer);
  out->name = vyre__lex(&lexer);
  if (!is_word(p->text, &word, "type") || out->name.kind != VYRE__T_NAME) {
    return false;
  }
  const vyre__token set = vyre__lex(&lexer);
  out->type = vyre__lex(&lexer);
  out->is_complete = set.kind == VYRE__T_SET &&
                     out->type.kind == VYRE__T_NAME &&
                     vyre__lex(&lexer).kind == VYRE__T_SEMICOLON;
  return true;
}

bool vyre__p_declare_type(vyre__parser *p, const vyre__lexer *at) {
  type_line line;
  if (!read_line(p, at, &line)) return false;
  vyre__symbol *symbol = &p->symbols.items[line.name.symbol];
  const bool is_own =
      symbol->word == VYRE__WORD_TYPE &&
      type_called(symbol->text, symbol->length) == VYRE_TYPE_VOID;
  if (is_own && line.is_complete) {
    vyre__p_error(p, vyre__p_span(&line.name), "V031",
                  "use another name, or remove one of them",
                  "'%.*s' is already the name of a type", (int)symbol->length,
                  symbol->text);
    return true;
  }
  if (!line.is_complete || symbol->word != VYRE__WORD_PLAIN || symbol->item) {
    return true; /* reported when it is read */
  }
  const char *define =
      define_of(p, p->text + line.name.start, line.name.length);
  unsigned type = type_called(p->text + line.type.start, line.type.length);
  if (define && type_called(define, strlen(define)) != VYRE_TYPE_VOID) {
    type = type_called(define, strlen(define));
  }
  if (type == VYRE_TYPE_VOID) return true;
  symbol->word = VYRE__WORD_TYPE;
  symbol->value = (uint16_t)type;
  return true;
}

bool vyre__p_override_type(vyre__parser *p) {
  vyre__lexer at = p->now.lexer;
  type_line line;
  at.at = p->now.token.start;
  at.line = p->now.token.line;
  at.line_start = p->now.token.start - (p->now.token.column - 1);
  if (!read_line(p, &at, &line)) return false;
  const char *name = p->text + line.name.start;
  const int length = (int)line.name.length;
  const char *define = define_of(p, name, line.name.length);
  if (!line.is_complete) {
    vyre__p_syntax(
        p, vyre__p_span(&line.name), "V013", "write override type NAME = f32;",
        "expected '=', a type and ';' after override type %.*s", length, name);
  } else if (vyre__p_symbol(p, &line.name)->word != VYRE__WORD_TYPE ||
             type_called(name, line.name.length) != VYRE_TYPE_VOID) {
    const bool is_type = type_called(p->text + line.type.start,
                                     line.type.length) != VYRE_TYPE_VOID;
    vyre__p_error(p, vyre__p_span(is_type ? &line.name : &line.type),
                  is_type ? "V032" : "V034",
                  is_type ? "use another name" : "use a type such as f32",
                  is_type ? "'%.*s' cannot be the name of a type"
                          : "override type %.*s needs a type of values",
                  length, name);
  } else if (define && type_called(define, strlen(define)) == VYRE_TYPE_VOID) {
    vyre__p_error(p, vyre__p_span(&line.name), "V034",
                  "define a type of values, such as f32",
                  "override '%.*s' is defined as '%.40s', which is not a type",
                  length, name, define);
  }
  while (!vyre__p_is(p, VYRE__T_SEMICOLON) && !vyre__p_is(p, VYRE__T_END)) {
    vyre__p_advance(p);
  }
  vyre__p_advance(p);
  return true;
}

/* --- values ----------------------------------------------------------------*/

static bool parse_integer(const char *text, bool is_signed, unsigned bits,
                          uint64_t *out) {
  const bool is_negative = text[0] == '-';
  char *end;
  if (text[is_negative] < '0' || text[is_negative] > '9') return false;
  errno = 0;
  const uint64_t size = strtoull(text + is_negative, &end, 0);
  const uint64_t top = UINT64_C(1) << (bits - 1);
  const uint64_t most = is_signed ? top - 1 + is_negative : top - 1 + top;
  if (*end || errno || size > most || (is_negative && !is_signed && size)) {
    return false;
  }
  *out = (is_negative ? 0 - size : size) & (top - 1 + top);
  return true;
}

static bool parse_float(const char *text, bool is_wide, uint64_t *out) {
  char *end;
  if (text[strspn(text, "0123456789+-.eExXpPaAbBcCdDfF")] || !*text) {
    return false;
  }
  if (is_wide) {
    const double value = strtod(text, &end);
    memcpy(out, &value, sizeof *out);
    return !*end && isfinite(value);
  }
  const float value = strtof(text, &end);
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  *out = bits;
  return !*end && isfinite(value);
}

static bool parse_value(const char *text, unsigned type, uint64_t *out) {
  switch (type) {
    case VYRE_TYPE_BOOL:
      *out = strcmp(text, "true") == 0;
      return *out || strcmp(text, "false") == 0;
    case VYRE_TYPE_F32:
    case VYRE_TYPE_F64:
      return parse_float(text, type == VYRE_TYPE_F64, out);
    default:
      return parse_integer(text, type == VYRE_TYPE_I32 || type == VYRE_TYPE_I64,
                           vyre__is_wide(type) ? 64 : 32, out);
  }
}

bool vyre__p_apply_define(vyre__parser *p, vyre__item *item) {
  const vyre__symbol *symbol = &p->symbols.items[item->symbol];
  const char *define = define_of(p, symbol->text, symbol->length);
  if (!define || parse_value(define, item->type, &item->bits)) return true;
  vyre__p_error(p, item->span, "V065", "define a literal of that type",
                "override '%.*s' is %s, but it is defined as '%.40s'",
                (int)symbol->length, symbol->text, vyre__type_name(item->type),
                define);
  return false;
}
