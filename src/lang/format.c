/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Source formatter: keeps the tokens and comments of a valid file and
 * replaces the white space between them. Line breaks inside a statement stay;
 * everything else is decided here. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "lang/module.h"

enum { INDENT = 4 };

typedef enum gap { GAP_NONE, GAP_SPACE, GAP_LINE } gap;

typedef struct formatter {
  const char *text;
  vyre__lexer lexer;
  vyre__token token;    /* next token, not written yet */
  vyre__token previous; /* last token written; T_END at first */
  bool unary;           /* `previous` is a unary operator */
  bool broken;          /* a line end precedes the next token */
  unsigned level;       /* indentation level */
  unsigned brackets;    /* number of open ( and [ */
  bool in_parameters, in_label;
  bool blank_wanted; /* write an empty line before the next output */
  vyre_allocator allocator;
  char *out;
  size_t length, capacity;
  bool out_of_memory;
  unsigned before; /* kind of the token before `previous` */
  unsigned braces; /* open braces of struct values */
} formatter;

/* --- output ----------------------------------------------------------------*/

static void put(formatter *f, const char *text, size_t length) {
  void *out = f->out;
  if (!vyre__reserve(f->allocator, &out, &f->capacity, f->length + length, 1,
                     false)) {
    f->out_of_memory = true;
    return;
  }
  f->out = out;
  memcpy(f->out + f->length, text, length);
  f->length += length;
}

static void put_line(formatter *f, bool blank, unsigned level) {
  static const char spaces[] = "                                ";
  if (f->length == 0) return; /* no empty line at the start of the file */
  put(f, "\n\n", blank || f->blank_wanted ? 2 : 1);
  f->blank_wanted = false;
  for (unsigned columns = level * INDENT; columns > 0;) {
    unsigned some = columns < sizeof spaces - 1 ? columns : sizeof spaces - 1;
    put(f, spaces, some);
    columns -= some;
  }
}

/* --- comments --------------------------------------------------------------*/

/* Text between two tokens. */
typedef struct between {
  const char *at, *end;
  unsigned lines; /* line ends since the last token or comment */
} between;

static void skip_spaces(between *b) {
  for (; b->at < b->end && *b->at != '/'; b->at++) b->lines += *b->at == '\n';
}

/* Returns the length of the comment that begins here. */
static size_t comment_length(const between *b) {
  size_t left = (size_t)(b->end - b->at), length;
  if (b->at[1] == '/') {
    const char *stop = memchr(b->at, '\n', left);
    length = stop ? (size_t)(stop - b->at) : left;
    while (length > 0 &&
           (b->at[length - 1] == ' ' || b->at[length - 1] == '\t' ||
            b->at[length - 1] == '\r')) {
      length--;
    }
    return length;
  }
  for (length = 4; length < left; length++) {
    if (b->at[length - 1] == '/' && b->at[length - 2] == '*') break;
  }
  return length;
}

/* Writes the comments before the next token. Returns true if the line must
 * end after the last one; *lines is the number of line ends after it. */
static bool put_comments(formatter *f, unsigned level, bool opened,
                         unsigned *lines) {
  uint32_t from = f->previous.start + f->previous.length;
  between b = {f->text + from, f->text + f->token.start, 0};
  bool must_break = false;
  for (skip_spaces(&b); b.at < b.end; skip_spaces(&b)) {
    bool to_line_end = b.at[1] == '/';
    bool first = f->previous.kind == VYRE__T_END && f->length == 0;
    if (!first && (b.lines > 0 || must_break)) {
      put_line(f, b.lines > 1 && !opened, level);
    } else if (!first) {
      put(f, "  ", to_line_end ? 2 : 1);
    }
    size_t length = comment_length(&b);
    put(f, b.at, length);
    b.at += length;
    b.lines = 0;
    opened = false;
    must_break = to_line_end;
  }
  *lines = b.lines;
  return must_break;
}

/* --- tokens ----------------------------------------------------------------*/

static bool is_value_end(unsigned kind) {
  return kind == VYRE__T_NAME || kind == VYRE__T_NUMBER ||
         kind == VYRE__T_STRING || kind == VYRE__T_RPAREN ||
         kind == VYRE__T_RBRACKET || kind == VYRE__T_TRUE ||
         kind == VYRE__T_FALSE;
}

static bool has_call_form(unsigned kind) {
  return is_value_end(kind) || kind == VYRE__T_PRINT ||
         kind == VYRE__T_BARRIER || kind == VYRE__T_GRID_BARRIER ||
         kind == VYRE__T_UNIFORM;
}

/* Returns true if the next colon follows the name of a field in braces. */
static bool is_field_colon(const formatter *f) {
  return f->braces > 0 && f->previous.kind == VYRE__T_NAME &&
         (f->before == VYRE__T_LBRACE || f->before == VYRE__T_COMMA);
}

/* Returns the gap before the next token inside a statement. */
static gap gap_between(const formatter *f) {
  unsigned before = f->previous.kind, next = f->token.kind;
  if (f->unary) {
    bool merges = before == VYRE__T_MINUS &&
                  (next == VYRE__T_MINUS || next == VYRE__T_MINUS_MINUS);
    return merges ? GAP_SPACE : GAP_NONE;
  }
  switch (before) {
    case VYRE__T_LPAREN:
    case VYRE__T_LBRACKET:
    case VYRE__T_LBRACE:
    case VYRE__T_DOT:
    case VYRE__T_AT:
      return GAP_NONE;
    default:
      break;
  }
  switch (next) {
    case VYRE__T_RPAREN:
    case VYRE__T_RBRACKET:
    case VYRE__T_RBRACE:
    case VYRE__T_COMMA:
    case VYRE__T_SEMICOLON:
    case VYRE__T_DOT:
    case VYRE__T_PLUS_PLUS:
    case VYRE__T_MINUS_MINUS:
    case VYRE__T_LBRACKET:
      return GAP_NONE;
    case VYRE__T_LPAREN:
      return has_call_form(before) ? GAP_NONE : GAP_SPACE;
    case VYRE__T_COLON:
      return f->in_parameters || f->in_label || is_field_colon(f) ? GAP_NONE
                                                                  : GAP_SPACE;
    case VYRE__T_LBRACE:
      return before == VYRE__T_NAME ? GAP_NONE : GAP_SPACE;
    default:
      return GAP_SPACE;
  }
}

/* Reads the next token and sets `broken`. */
static void read_token(formatter *f) {
  f->token = vyre__lex(&f->lexer);
  f->broken = f->token.line != f->previous.line;
}

/* Writes the next token after a gap. Comments on lines of their own before it
 * have indentation @p comment_level. */
static void put_token(formatter *f, gap wanted, unsigned level,
                      unsigned comment_level) {
  unsigned lines;
  bool opened = f->previous.kind == VYRE__T_LBRACE;
  size_t before = f->length;
  bool must_break = put_comments(f, comment_level, opened, &lines);
  opened = opened && f->length == before;
  if (wanted == GAP_LINE) {
    bool closes = f->token.kind == VYRE__T_RBRACE;
    put_line(f, lines > 1 && !opened && !closes, level);
  } else if (must_break) {
    put_line(f, false, level + 1);
  } else if (wanted == GAP_SPACE && f->length > 0) {
    put(f, " ", 1);
  }
  unsigned kind = f->token.kind;
  f->unary = kind == VYRE__T_BANG || kind == VYRE__T_TILDE ||
             (kind == VYRE__T_MINUS && !is_value_end(f->previous.kind));
  if (kind == VYRE__T_LPAREN || kind == VYRE__T_LBRACKET) f->brackets++;
  if (kind == VYRE__T_RPAREN || kind == VYRE__T_RBRACKET) f->brackets--;
  put(f, f->text + f->token.start, f->token.length);
  f->before = f->previous.kind;
  f->previous = f->token;
  read_token(f);
}

/* Writes a token in the middle of a statement and keeps a line break before
 * it. */
static void put_inside(formatter *f) {
  if (f->token.kind == VYRE__T_LBRACE) f->braces++;
  if (f->token.kind == VYRE__T_RBRACE && f->braces > 0) f->braces--;
  gap wanted = gap_between(f);
  unsigned kind = f->token.kind;
  bool may_break = kind != VYRE__T_SEMICOLON && kind != VYRE__T_COMMA;
  if (f->broken && may_break) {
    put_token(f, GAP_LINE, f->level + 1, f->level + 1);
  } else {
    put_token(f, wanted, f->level, f->level + 1);
  }
}

/* --- statements ------------------------------------------------------------*/

static void put_statement(formatter *f, gap before);

static bool at_end(const formatter *f) {
  return f->token.kind == VYRE__T_END || f->out_of_memory;
}

/* Writes tokens up to and including the semicolon. */
static void put_rest(formatter *f) {
  while (!at_end(f)) {
    bool last = f->token.kind == VYRE__T_SEMICOLON && f->brackets == 0;
    put_inside(f);
    if (last) return;
  }
}

/* Returns true if the block that begins here is one short statement on one
 * line. */
static bool is_short_block(const formatter *f) {
  vyre__lexer lexer = f->lexer;
  lexer.symbols = NULL;
  unsigned ends = 0, level = 0;
  uint32_t at = f->token.start + f->token.length;
  for (;;) {
    vyre__token token = vyre__lex(&lexer);
    if (token.kind == VYRE__T_END || token.line != f->token.line) return false;
    if (memchr(f->text + at, '/', token.start - at)) return false;
    at = token.start + token.length;
    switch (token.kind) {
      case VYRE__T_LBRACE:
        return false;
      case VYRE__T_LPAREN:
        level++;
        break;
      case VYRE__T_RPAREN:
        level--;
        break;
      case VYRE__T_SEMICOLON:
        if (level == 0 && ++ends > 1) return false;
        break;
      case VYRE__T_RBRACE:
        return ends == 1;
      default:
        break;
    }
  }
}

static bool is_empty_block(const formatter *f) {
  vyre__lexer lexer = f->lexer;
  vyre__token next = vyre__lex(&lexer);
  uint32_t at = f->token.start + f->token.length;
  return next.kind == VYRE__T_RBRACE &&
         !memchr(f->text + at, '/', next.start - at);
}

static void put_block(formatter *f, gap before) {
  bool empty = is_empty_block(f);
  bool brief = before != GAP_LINE && is_short_block(f);
  put_token(f, before, f->level, f->level);
  if (empty) {
    put_token(f, GAP_NONE, f->level, f->level);
    return;
  }
  if (brief) {
    put_statement(f, GAP_SPACE);
    put_token(f, GAP_SPACE, f->level, f->level);
    return;
  }
  f->level++;
  while (f->token.kind != VYRE__T_RBRACE && !at_end(f)) {
    put_statement(f, GAP_LINE);
  }
  f->level--;
  put_token(f, GAP_LINE, f->level, f->level + 1);
}

/* Writes the ( ... ) after the keyword of a statement. */
static void put_head(formatter *f) {
  do {
    put_inside(f);
  } while (f->brackets > 0 && !at_end(f));
}

static void put_inner(formatter *f) {
  if (f->token.kind == VYRE__T_LBRACE) {
    put_block(f, GAP_SPACE);
  } else if (f->broken) {
    f->level++;
    put_statement(f, GAP_LINE);
    f->level--;
  } else {
    put_statement(f, GAP_SPACE);
  }
}

static void put_do(formatter *f, gap before) {
  put_token(f, before, f->level, f->level);
  bool block = f->token.kind == VYRE__T_LBRACE;
  put_inner(f);
  if (f->token.kind != VYRE__T_WHILE) return;
  put_token(f, block || !f->broken ? GAP_SPACE : GAP_LINE, f->level, f->level);
  put_rest(f);
}

/* Writes case value: or default: */
static void put_label(formatter *f, gap before) {
  f->in_label = true;
  put_token(f, before, f->level, f->level);
  while (f->previous.kind != VYRE__T_COLON && !at_end(f)) put_inside(f);
  f->in_label = false;
}

/* Writes the labels of an arm and its statements. Keeps labels and a
 * short arm on one line if the source has them on one line. */
static void put_arm(formatter *f) {
  gap before = GAP_LINE;
  while (f->token.kind == VYRE__T_CASE || f->token.kind == VYRE__T_DEFAULT) {
    put_label(f, before);
    before = f->broken ? GAP_LINE : GAP_SPACE;
  }
  f->level++;
  while (f->token.kind != VYRE__T_CASE && f->token.kind != VYRE__T_DEFAULT &&
         f->token.kind != VYRE__T_RBRACE && !at_end(f)) {
    put_statement(f, f->broken ? GAP_LINE : GAP_SPACE);
  }
  f->level--;
}

static void put_switch(formatter *f, gap before) {
  put_token(f, before, f->level, f->level);
  put_head(f);
  put_token(f, GAP_SPACE, f->level, f->level);
  f->level++;
  while (f->token.kind != VYRE__T_RBRACE && !at_end(f)) put_arm(f);
  f->level--;
  put_token(f, GAP_LINE, f->level, f->level + 1);
}

static void put_if(formatter *f, gap before) {
  for (;;) {
    put_token(f, before, f->level, f->level);
    put_head(f);
    bool block = f->token.kind == VYRE__T_LBRACE;
    put_inner(f);
    if (f->token.kind != VYRE__T_ELSE) return;
    bool same_line = block ? f->previous.kind == VYRE__T_RBRACE : !f->broken;
    put_token(f, same_line ? GAP_SPACE : GAP_LINE, f->level, f->level);
    if (f->token.kind != VYRE__T_IF) break;
    before = GAP_SPACE;
  }
  put_inner(f);
}

static void put_statement(formatter *f, gap before) {
  switch (f->token.kind) {
    case VYRE__T_LBRACE:
      put_block(f, before == GAP_LINE ? GAP_LINE : GAP_SPACE);
      break;
    case VYRE__T_IF:
      put_if(f, before);
      break;
    case VYRE__T_DO:
      put_do(f, before);
      break;
    case VYRE__T_SWITCH:
      put_switch(f, before);
      break;
    case VYRE__T_FOR:
    case VYRE__T_WHILE:
      put_token(f, before, f->level, f->level);
      put_head(f);
      put_inner(f);
      break;
    default:
      put_token(f, before, f->level, f->level);
      put_rest(f);
      break;
  }
}

/* --- items -----------------------------------------------------------------*/

static bool is_word(const formatter *f, const char *word) {
  const vyre__token *token = &f->token;
  return token->kind == VYRE__T_NAME && token->length == strlen(word) &&
         memcmp(f->text + token->start, word, token->length) == 0;
}

static void put_kernel(formatter *f) {
  put_token(f, GAP_LINE, 0, 0);
  while (f->token.kind != VYRE__T_LBRACE && !at_end(f)) {
    unsigned kind = f->token.kind;
    bool declares = kind == VYRE__T_BUFFER || kind == VYRE__T_UNIFORM ||
                    kind == VYRE__T_SHARED;
    if (declares && f->brackets == 0) {
      put_token(f, GAP_LINE, 0, 0);
      put_rest(f);
    } else {
      /* the fields of an item are written like parameters */
      if (is_word(f, "queue") && f->brackets == 0) f->in_parameters = true;
      put_inside(f);
      if (f->previous.kind == VYRE__T_RPAREN) f->in_parameters = false;
    }
  }
  f->in_parameters = false;
  put_block(f, GAP_LINE);
  if (is_word(f, "pull")) {
    put_token(f, GAP_LINE, 0, 0);
    put_block(f, GAP_SPACE);
  }
}

static void put_fn(formatter *f) {
  put_token(f, GAP_LINE, 0, 0);
  f->in_parameters = true;
  while (f->token.kind != VYRE__T_LBRACE && !at_end(f)) put_inside(f);
  f->in_parameters = false;
  put_block(f, GAP_SPACE);
}

static void put_struct(formatter *f) {
  put_token(f, GAP_LINE, 0, 0);
  while (f->token.kind != VYRE__T_LBRACE && !at_end(f)) put_inside(f);
  if (at_end(f)) return;
  put_token(f, GAP_SPACE, 0, 1);
  f->level = 1;
  while (f->token.kind != VYRE__T_RBRACE && !at_end(f)) {
    put_token(f, GAP_LINE, 1, 1);
    if (f->previous.kind != VYRE__T_SEMICOLON) put_rest(f);
  }
  f->level = 0;
  if (!at_end(f)) put_token(f, GAP_LINE, 0, 1);
}

static void put_file(formatter *f) {
  read_token(f);
  while (!at_end(f)) {
    bool is_const = f->token.kind == VYRE__T_CONST || is_word(f, "override") ||
                    is_word(f, "import");
    if (!is_const && f->length > 0) f->blank_wanted = true;
    if (f->token.kind == VYRE__T_KERNEL) {
      put_kernel(f);
    } else if (f->token.kind == VYRE__T_FN) {
      put_fn(f);
    } else if (f->token.kind == VYRE__T_STRUCT) {
      put_struct(f);
    } else {
      put_token(f, GAP_LINE, 0, 0);
      put_rest(f);
    }
    f->blank_wanted = !is_const;
  }
  unsigned lines;
  (void)put_comments(f, 0, false, &lines);
  if (f->length > 0) put(f, "\n", 1);
  put(f, "", 1); /* terminator */
}

static vyre_code no_memory(vyre_status *st) {
  return vyre__no_memory(st, "vyre_source_format", "the formatted text", 1);
}

static vyre_code format(const char *text, size_t length, vyre_arena *arena,
                        const char **out, size_t *out_length, vyre_status *st) {
  vyre__symbols symbols;
  if (!vyre__symbols_init(&symbols, arena->allocator)) return no_memory(st);
  formatter f = {.text = text, .allocator = arena->allocator};
  vyre__lexer_init(&f.lexer, text, (uint32_t)length, &symbols);
  f.previous = (vyre__token){.kind = VYRE__T_END, .start = f.lexer.at};
  put_file(&f);
  char *copy = NULL;
  bool failed = f.out_of_memory || symbols.failed;
  if (!failed) copy = vyre_arena_alloc(arena, f.length, 1);
  if (copy) memcpy(copy, f.out, f.length);
  size_t size = f.length;
  void *bytes = f.out;
  vyre__reserve_free(f.allocator, &bytes, &f.capacity, 1);
  vyre__symbols_deinit(&symbols);
  if (!copy) return no_memory(st);
  *out = copy;
  *out_length = size - 1;
  return VYRE_OK;
}

vyre_code vyre_source_format_with(
    const char *text, size_t length, const char *file,
    const vyre_module_options *options, vyre_arena *arena, const char **out,
    size_t *out_length, vyre_diagnostics *diagnostics, vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE_BOTH(st, arena, out_length);
  *out_length = 0;
  vyre_module *module;
  VYRE_TRY(vyre_module_parse_with(text, length, file, options, arena->allocator,
                                  &module, diagnostics, vyre__status_open(st)));
  vyre_module_release(module);
  return format(text, length, arena, out, out_length, st);
}

vyre_code vyre_source_format(const char *text, size_t length, const char *file,
                             vyre_arena *arena, const char **out,
                             size_t *out_length, vyre_diagnostics *diagnostics,
                             vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  return vyre_source_format_with(text, length, file, NULL, arena, out,
                                 out_length, diagnostics,
                                 vyre__status_open(st));
}
