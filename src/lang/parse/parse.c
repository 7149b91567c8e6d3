/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parser: tokens, diagnostics and error recovery. */
#include "lang/parse/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE = 512, MAX_FINDINGS = 1000 };

/* --- diagnostics -----------------------------------------------------------*/

static void stop(vyre__parser *p) {
  p->stopped = true;
  p->now.lexer.at = p->now.lexer.length;
  p->now.has_ahead = false;
  p->now.token.kind = VYRE__T_END;
}

void vyre__p_edit(vyre__parser *p, vyre__source_span span, const char *format,
                  ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(p->edit, sizeof p->edit, format, arguments);
  va_end(arguments);
  p->edit_span = span;
  p->has_edit = length >= 0 && (size_t)length < sizeof p->edit;
}

static vyre__id add_error(vyre__parser *p, vyre__source_span span,
                          const char *rule, vyre__source_span other,
                          const char *other_text, const char *fix,
                          const char *format, va_list arguments) {
  char message[MESSAGE];
  if (p->stopped) {
    p->has_edit = false;
    return 0;
  }
  vsnprintf(message, sizeof message, format, arguments);
  vyre__diagnose_span(&p->ir, span, rule, other, other_text, fix, "%s",
                      message);
  if (p->ir.error_count >= MAX_FINDINGS) stop(p);
  return 0;
}

vyre__id vyre__p_error(vyre__parser *p, vyre__source_span span,
                       const char *rule, const char *fix, const char *format,
                       ...) {
  va_list arguments;
  va_start(arguments, format);
  add_error(p, span, rule, (vyre__source_span){{0, 0}, 0}, NULL, fix, format,
            arguments);
  va_end(arguments);
  return 0;
}

vyre__id vyre__p_error2(vyre__parser *p, vyre__source_span span,
                        const char *rule, vyre__source_span other,
                        const char *other_text, const char *fix,
                        const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  add_error(p, span, rule, other, other_text, fix, format, arguments);
  va_end(arguments);
  return 0;
}

vyre__id vyre__p_syntax(vyre__parser *p, vyre__source_span span,
                        const char *rule, const char *fix, const char *format,
                        ...) {
  if (p->now.panic) {
    p->has_edit = false;
    return 0;
  }
  p->now.panic = true;
  va_list arguments;
  va_start(arguments, format);
  add_error(p, span, rule, (vyre__source_span){{0, 0}, 0}, NULL, fix, format,
            arguments);
  va_end(arguments);
  return 0;
}

/* Returns how many bytes of a text fit in @p limit without cutting a
 * character. */
static size_t shown_length(const char *text, size_t length, size_t max) {
  if (length <= max) return length;
  while (max > 0 && ((unsigned char)text[max] & 0xC0) == 0x80) max--;
  return max;
}

const char *vyre__p_found(const vyre__parser *p, const vyre__token *token,
                          char buffer[VYRE__FOUND_TEXT]) {
  if (token->kind == VYRE__T_END) return "the end of the file";
  const char *text = p->text + token->start;
  size_t length = shown_length(text, token->length, 40);
  snprintf(buffer, VYRE__FOUND_TEXT, "'%.*s%s'", (int)length, text,
           length < token->length ? "..." : "");
  return buffer;
}

vyre__id vyre__p_expected(vyre__parser *p, const char *subject,
                          const char *fix) {
  char found[VYRE__FOUND_TEXT];
  const vyre__token *token = &p->now.token;
  vyre__source_span span = vyre__p_span(token);
  if (token->kind == VYRE__T_END) span = vyre__p_behind(p);
  return vyre__p_syntax(p, span, "V013", fix, "expected %s, found %s", subject,
                        vyre__p_found(p, token, found));
}

/* --- tokens ----------------------------------------------------------------*/

static void report_bad_character(vyre__parser *p, const vyre__token *token) {
  char found[VYRE__FOUND_TEXT];
  vyre__p_found(p, token, found);
  const char *fix = "remove it";
  char c = p->text[token->start];
  if (c == '\\') fix = "remove it: a statement may continue on the next line";
  if (c == '$' || c == '`') fix = "use letters, digits and _ in names";
  if ((unsigned char)c >= 0x80) {
    fix =
        "use ASCII; other characters are allowed in comments and strings only";
  }
  vyre__p_error(p, vyre__p_span(token), "V005", fix, "invalid character %s",
                found);
}

/* Reports 'a'. */
static void report_quote(vyre__parser *p, const vyre__token *token) {
  const char *text = p->text + token->start;
  char fix[VYRE__FIX_TEXT];
  snprintf(fix, sizeof fix,
           "write the character code (65 for A), or a string in double quotes "
           "for print");
  if (token->length == 3 && (unsigned char)text[1] < 0x80 && text[1] != '\\') {
    snprintf(fix, sizeof fix, "write %d", text[1]);
    vyre__p_edit(p, vyre__p_span(token), "%d", text[1]);
  }
  vyre__p_error(p, vyre__p_span(token), "V008", fix,
                "the language has no character literals in single quotes");
}

/* Returns the length of the word that begins at @p text. */
static uint32_t word_at(const char *text, uint32_t length) {
  uint32_t count = 0;
  while (count < length &&
         (text[count] == '_' || (text[count] >= '0' && text[count] <= '9') ||
          (text[count] >= 'a' && text[count] <= 'z') ||
          (text[count] >= 'A' && text[count] <= 'Z'))) {
    count++;
  }
  return count;
}

static uint32_t spaces_at(const char *text, uint32_t length) {
  uint32_t count = 0;
  while (count < length && (text[count] == ' ' || text[count] == '\t')) count++;
  return count;
}

/* Reports a line of the C preprocessor. */
static void report_directive(vyre__parser *p, const vyre__token *token) {
  const char *at = p->text + token->start + 1;
  uint32_t left = token->length - 1;
  char fix[VYRE__FIX_TEXT];
  uint32_t skip = spaces_at(at, left);
  at += skip;
  left -= skip;
  const uint32_t word = word_at(at, left);
  const bool is_define = word == 6 && memcmp(at, "define", 6) == 0;
  skip = word + spaces_at(at + word, left - word);
  at += skip;
  left -= skip;
  const uint32_t name = word_at(at, left);
  const uint32_t blank = spaces_at(at + name, left - name);
  const char *value = at + name + blank;
  const uint32_t length = left - name - blank;
  const char *message = "the language has no preprocessor";
  vyre__source_span span = vyre__p_span(token);
  if (!is_define) {
    vyre__p_edit(p, span, "%s", "");
    vyre__p_error(p, span, "V009", "remove the line", "%s", message);
  } else if (name > 0 && blank > 0 && length > 0 && length < 100 && name < 60) {
    snprintf(fix, sizeof fix, "write const %.*s = %.*s;", (int)name, at,
             (int)length, value);
    vyre__p_edit(p, span, "%s", fix + strlen("write "));
    vyre__p_error(p, span, "V009", fix, "%s", message);
  } else {
    vyre__p_error(p, span, "V009",
                  "write a fn, or const NAME = value; for a constant", "%s",
                  message);
  }
}

/* Reports a T_BAD token. */
static void report_bad_token(vyre__parser *p, const vyre__token *token) {
  vyre__source_span span = vyre__p_span(token);
  switch (token->error) {
    case VYRE__LEX_COMMENT:
      vyre__p_error(p, span, "V006", "close it with */",
                    "this comment is not closed");
      break;
    case VYRE__LEX_STRING:
      vyre__p_error(
          p, span, "V007",
          "close it with \" on the same line; write a line end as \\n",
          "this string is not closed on its line");
      break;
    case VYRE__LEX_QUOTE:
      report_quote(p, token);
      break;
    case VYRE__LEX_HASH:
      report_directive(p, token);
      break;
    case VYRE__LEX_LONG:
      vyre__p_error(p, span, "V010", "shorten it",
                    "a name may have %d bytes and a number %d, but this has %u",
                    VYRE__MAX_NAME, VYRE__MAX_NUMBER, token->length);
      break;
    default:
      report_bad_character(p, token);
      break;
  }
}

/* Reports and skips T_BAD tokens. */
VYRE__RARE static void skip_bad_tokens(vyre__parser *p) {
  while (p->now.token.kind == VYRE__T_BAD) {
    vyre__token bad = p->now.token;
    if (!p->now.panic) report_bad_token(p, &bad);
    if (bad.error != VYRE__LEX_HASH) p->now.panic = true;
    p->now.token = vyre__lex(&p->now.lexer);
  }
}

static void move_lexer(vyre__lexer *lexer, vyre__position position) {
  lexer->at = position.at;
  lexer->line = position.line;
  lexer->line_start = position.line_start;
}

void vyre__p_advance(vyre__parser *p) {
  p->now.previous = p->now.token;
  if (p->now.has_ahead) {
    p->now.has_ahead = false;
    p->now.token = p->now.ahead;
    move_lexer(&p->now.lexer, p->now.ahead_end);
  } else {
    vyre__lex_to(&p->now.lexer, &p->now.token);
  }
  if (p->now.token.kind == VYRE__T_BAD) skip_bad_tokens(p);
}

vyre__token vyre__p_peek(vyre__parser *p) {
  if (!p->now.has_ahead) {
    vyre__lexer lexer = p->now.lexer;
    vyre__lex_to(&lexer, &p->now.ahead);
    p->now.ahead_end = (vyre__position){lexer.at, lexer.line, lexer.line_start};
    p->now.has_ahead = true;
  }
  return p->now.ahead;
}

void vyre__p_go(vyre__parser *p, vyre__position position) {
  if (p->stopped) return;
  if (p->scopes) {
    p->now.lexer.file = vyre__file_at(p->scopes, position.at);
    p->now.lexer.length = p->scopes->files[p->now.lexer.file].end;
  }
  move_lexer(&p->now.lexer, position);
  p->now.has_ahead = false;
  p->now.panic = false;
  vyre__p_advance(p);
}

vyre__position vyre__p_position(const vyre__parser *p) {
  const vyre__token *token = &p->now.token;
  return (vyre__position){token->start, token->line,
                          token->start - (token->column - 1)};
}

vyre__source_span vyre__p_behind(const vyre__parser *p) {
  const vyre__token *before = &p->now.previous;
  if (before->line == 0) return (vyre__source_span){{1, 1}, 1};
  return (vyre__source_span){{before->line, before->column + before->length},
                             1};
}

VYRE__RARE bool vyre__p_report_expected(vyre__parser *p, unsigned kind,
                                        const char *where) {
  char subject[VYRE__FIX_TEXT], fix[VYRE__FIX_TEXT];
  snprintf(subject, sizeof subject, "'%s' %s", vyre__token_text(kind), where);
  snprintf(fix, sizeof fix, "write '%s' %s", vyre__token_text(kind), where);
  vyre__p_expected(p, subject, fix);
  return false;
}

VYRE__RARE bool vyre__p_report_open(vyre__parser *p, unsigned kind,
                                    const vyre__token *open) {
  if (p->now.panic) return false;
  char found[VYRE__FOUND_TEXT], fix[VYRE__FIX_TEXT];
  bool at_end =
      vyre__p_is(p, VYRE__T_END) || p->now.token.line != p->now.previous.line;
  const vyre__foreign *word =
      vyre__foreign_find(p->text + p->now.token.start, p->now.token.length);
  snprintf(fix, sizeof fix,
           "write '%s' here, or remove an opening bracket before it",
           vyre__token_text(kind));
  if (vyre__p_is(p, VYRE__T_SET)) {
    vyre__p_error(
        p, vyre__p_span(&p->now.token), "V020",
        "write == to compare; put the assignment in a separate statement",
        "'=' assigns, and an assignment has no value");
  } else if (word && word->edit && word->edit[0] && !word->kind &&
             word->edit[0] < 'A') { /* and, or, not */
    vyre__p_edit(p, vyre__p_span(&p->now.token), "%s", word->edit);
    vyre__p_error(p, vyre__p_span(&p->now.token), "V015", word->fix,
                  "expected '%s', found %s", vyre__token_text(kind),
                  vyre__p_found(p, &p->now.token, found));
  } else {
    vyre__p_error2(p, at_end ? vyre__p_behind(p) : vyre__p_span(&p->now.token),
                   "V015", vyre__p_span(open), "opened here", fix,
                   "expected '%s', found %s", vyre__token_text(kind),
                   vyre__p_found(p, &p->now.token, found));
  }
  p->now.panic = true;
  return false;
}

static bool begins_statement(unsigned kind) {
  switch (kind) {
    case VYRE__T_LET:
    case VYRE__T_VAR:
    case VYRE__T_IF:
    case VYRE__T_ELSE:
    case VYRE__T_FOR:
    case VYRE__T_WHILE:
    case VYRE__T_DO:
    case VYRE__T_SWITCH:
    case VYRE__T_CASE:
    case VYRE__T_DEFAULT:
    case VYRE__T_BREAK:
    case VYRE__T_CONTINUE:
    case VYRE__T_RETURN:
    case VYRE__T_BARRIER:
    case VYRE__T_GRID_BARRIER:
    case VYRE__T_PRINT:
    case VYRE__T_BUFFER:
    case VYRE__T_SHARED:
    case VYRE__T_LBRACE:
    case VYRE__T_RBRACE:
    case VYRE__T_END:
      return true;
    default:
      return vyre__p_is_item(kind);
  }
}

void vyre__p_report_step(vyre__parser *p, const vyre__token *name,
                         const vyre__token *step) {
  char fix[VYRE__FIX_TEXT];
  const bool is_name = name->kind == VYRE__T_NAME && name->length <= 60;
  if (is_name) {
    snprintf(fix, sizeof fix, "write it as a separate statement: %.*s%s;",
             (int)name->length, p->text + name->start,
             vyre__token_text(step->kind));
  } else {
    snprintf(fix, sizeof fix, "write it as a separate statement");
  }
  vyre__p_error(p, vyre__p_span(step), "V021", fix,
                "'%s' is a statement, not a value",
                vyre__token_text(step->kind));
}

VYRE__RARE void vyre__p_report_semicolon(vyre__parser *p, const char *subject) {
  if (p->now.panic) return;
  const vyre__token *token = &p->now.token;
  bool forgotten =
      begins_statement(token->kind) || token->line != p->now.previous.line;
  if (forgotten) { /* continue as if it were present */
    vyre__source_span behind = vyre__p_behind(p);
    vyre__source_span nothing = {behind.place, 0};
    vyre__p_edit(p, nothing, ";");
    vyre__p_error(p, behind, "V014", "write ';' here", "expected ';' after %s",
                  subject);
    return;
  }
  if (token->kind == VYRE__T_PLUS_PLUS || token->kind == VYRE__T_MINUS_MINUS) {
    vyre__p_report_step(p, &p->now.previous, token);
    p->now.panic = true;
    return;
  }
  if (token->kind == VYRE__T_SET) {
    vyre__p_syntax(
        p, vyre__p_span(token), "V020",
        "put the assignment in a separate statement; write == to compare",
        "'=' assigns, and an assignment has no value");
    return;
  }
  char found[VYRE__FOUND_TEXT];
  if (token->kind == VYRE__T_NAME && token->length == 2 &&
      memcmp(p->text + token->start, "as", 2) == 0) { /* x as f32 */
    const vyre__token type = vyre__p_peek(p);
    const char *text = p->text + type.start;
    const char *foreign = vyre__foreign_type(text, type.length);
    char fix[VYRE__FIX_TEXT];
    snprintf(fix, sizeof fix, "write %.*s(x)",
             foreign ? (int)strlen(foreign)
                     : (int)(type.length > 20 ? 20 : type.length),
             foreign ? foreign : text);
    vyre__p_syntax(p, vyre__p_span(token), "V024", fix,
                   "a cast has the form of a call");
    return;
  }
  vyre__p_syntax(
      p, vyre__p_span(token), "V014",
      "write ';' before it, or an operator if it is part of the value",
      "expected ';' after %s, found %s", subject,
      vyre__p_found(p, token, found));
}

bool vyre__p_too_deep(vyre__parser *p) {
  p->depth--;
  bool is_chain = p->else_depth > VYRE__MAX_DEPTH / 2;
  vyre__p_syntax(p, vyre__p_span(&p->now.token), "V026",
                 is_chain
                     ? "each else counts as a level: put half of the cases "
                       "under another if, or read the values from a buffer"
                     : "store an inner expression with let, or move it to a fn",
                 "nested more than %d levels deep", VYRE__MAX_DEPTH);
  /* The rest, up to the next declaration, counts as its contents. */
  p->lost = true;
  while (!vyre__p_is(p, VYRE__T_END) && !vyre__p_is_item(vyre__p_kind(p))) {
    vyre__p_advance(p);
  }
  return false;
}

bool vyre__p_is_item(unsigned kind) {
  return kind == VYRE__T_CONST || kind == VYRE__T_FN ||
         kind == VYRE__T_KERNEL || kind == VYRE__T_STRUCT;
}

void vyre__p_skip_group(vyre__parser *p) {
  unsigned level = 0;
  do {
    switch (vyre__p_kind(p)) {
      case VYRE__T_LPAREN:
      case VYRE__T_LBRACKET:
      case VYRE__T_LBRACE:
        level++;
        break;
      case VYRE__T_RPAREN:
      case VYRE__T_RBRACKET:
        if (level > 0) level--;
        break;
      case VYRE__T_RBRACE:
        if (level == 0) return;
        level--;
        break;
      case VYRE__T_END:
      case VYRE__T_CONST:
      case VYRE__T_FN:
      case VYRE__T_KERNEL:
        return;
      default:
        break;
    }
    vyre__p_advance(p);
  } while (level > 0);
}

void vyre__p_skip_to_semicolon(vyre__parser *p) {
  uint32_t before;
  do {
    if (vyre__p_is(p, VYRE__T_SEMICOLON)) return;
    before = p->now.token.start;
    vyre__p_skip_group(p);
  } while (p->now.token.start != before);
}

void vyre__p_recover(vyre__parser *p, uint32_t start) {
  bool moved = p->now.token.start != start;
  unsigned before = p->now.previous.kind;
  bool done =
      moved && (before == VYRE__T_SEMICOLON || before == VYRE__T_RBRACE);
  while (!done) {
    unsigned kind = vyre__p_kind(p);
    if (kind == VYRE__T_END || kind == VYRE__T_RBRACE ||
        vyre__p_is_item(kind)) {
      break;
    }
    bool block = kind == VYRE__T_LBRACE;
    if (moved && !block && begins_statement(kind) &&
        p->now.token.line != p->now.previous.line) {
      break;
    }
    vyre__p_skip_group(p);
    moved = true;
    done = block || kind == VYRE__T_SEMICOLON;
  }
  if (p->now.previous.kind == VYRE__T_RBRACE) { /* of const T : x[] = {..}; */
    (void)vyre__p_accept(p, VYRE__T_SEMICOLON);
  }
  p->now.panic = p->lost;
}

/* --- types -----------------------------------------------------------------*/

static vyre_type report_bad_type(vyre__parser *p, const vyre__token *token) {
  static const char *const types[] = {"bool", "u32", "i32", "u64",
                                      "i64",  "f32", "f64"};
  const char *text = p->text + token->start;
  const vyre__symbol *symbol = vyre__p_symbol(p, token);
  char fix[VYRE__FIX_TEXT], found[VYRE__FOUND_TEXT];
  vyre__p_found(p, token, found);
  const char *other = vyre__foreign_type(text, token->length);
  if (symbol->word == VYRE__WORD_ELEMENT) {
    vyre_type wide = vyre__element_type((vyre_element)symbol->value);
    snprintf(fix, sizeof fix,
             "use %s, the type that its elements are loaded as",
             vyre__type_name(wide));
    vyre__p_error(p, vyre__p_span(token), "V034", fix,
                  "%s is only valid as an element type of buffers", found);
    return VYRE_TYPE_VOID;
  }
  if (vyre__p_foreign_array(p, token, fix)) {
    /* has its fix */
  } else if (vyre__p_foreign_value(p, token, vyre__p_kind(p), fix)) {
    if (other) snprintf(fix, sizeof fix, "write %s", other);
  } else {
    vyre__guess guess = vyre__guess_begin(text, token->length);
    vyre__guess_try_all(&guess, types, sizeof types / sizeof types[0]);
    vyre__p_did_you_mean(&guess, "use bool, u32, i32, u64, i64, f32 or f64",
                         fix);
  }
  vyre__p_error(p, vyre__p_span(token), "V034", fix, "%s is not a type", found);
  vyre__p_skip_foreign(p, true);
  return VYRE_TYPE_VOID;
}

vyre_type vyre__p_type(vyre__parser *p) {
  vyre__token token = p->now.token;
  if (token.kind != VYRE__T_NAME) {
    vyre__p_expected(p, "a type", "use bool, u32, i32, u64, i64, f32 or f64");
    return VYRE_TYPE_VOID;
  }
  vyre__p_advance(p);
  const vyre__symbol *symbol = vyre__p_symbol(p, &token);
  if (symbol->word == VYRE__WORD_TYPE) return (vyre_type)symbol->value;
  if (symbol->item && p->items[symbol->item - 1].kind == VYRE__T_STRUCT) {
    return (vyre_type)vyre__p_struct_type(p, &token);
  }
  return report_bad_type(p, &token);
}

VYRE__RARE static bool report_bad_name(vyre__parser *p, const char *subject,
                                       const vyre__token *name) {
  const vyre__symbol *symbol = vyre__p_symbol(p, name);
  bool is_word = name->symbol != 0 && symbol->word != VYRE__WORD_PLAIN;
  if (is_word) {
    char fix[VYRE__FIX_TEXT];
    snprintf(fix, sizeof fix, "use another name, such as %.*s_",
             (int)symbol->length, symbol->text);
    vyre__p_error(
        p, vyre__p_span(name), "V033", fix,
        "'%.*s' is a word of the language and cannot be the name of %s",
        (int)symbol->length, symbol->text, subject);
    vyre__p_advance(p);
    return false;
  }
  char wanted[VYRE__FIX_TEXT];
  snprintf(wanted, sizeof wanted, "a name for %s", subject);
  vyre__p_expected(p, wanted, "write a name of letters, digits and _");
  return false;
}

bool vyre__p_new_name(vyre__parser *p, const char *subject, vyre__token *name) {
  *name = p->now.token;
  if (name->kind == VYRE__T_NAME &&
      vyre__p_symbol(p, name)->word == VYRE__WORD_PLAIN) {
    vyre__p_advance(p);
    return true;
  }
  return report_bad_name(p, subject, name);
}
