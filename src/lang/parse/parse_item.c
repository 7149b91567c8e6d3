/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parser: the contents of a file, that is consts, fns and kernels in any
 * order. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "lang/parse/parse.h"

enum { MAX_CONSTS_DEEP = 100 }; /* depth of consts that use later consts */

/* --- the index -------------------------------------------------------------*/

static void add_item(vyre__parser *p, const vyre__lexer *at, unsigned kind,
                     bool nested) {
  vyre__lexer lexer = *at;
  (void)vyre__lex(&lexer); /* skips the keyword */
  vyre__token name = vyre__lex(&lexer);
  if (name.kind != VYRE__T_NAME) return; /* reported when it is read */
  void *items = p->items;
  if (!vyre__reserve(p->allocator, &items, &p->item_capacity, p->item_count + 1,
                     sizeof *p->items, false)) {
    p->out_of_memory = true;
    return;
  }
  p->items = items;
  p->items[p->item_count++] =
      (vyre__item){.kind = (uint8_t)kind,
                   .nested = nested,
                   .symbol = name.symbol,
                   .span = vyre__p_span(&name),
                   .start = {at->at, at->line, at->line_start}};
  if (kind == VYRE__T_FN) { /* a const has its value there */
    p->items[p->item_count - 1].function = VYRE_NO_INDEX;
  }
  vyre__symbol *symbol = &p->symbols.items[name.symbol];
  if (name.symbol && symbol->word == VYRE__WORD_PLAIN && !symbol->item) {
    symbol->item = (uint32_t)p->item_count;
    if (at->scopes) vyre__scope_declare(at->scopes, at->file, name.symbol);
  }
}

static bool is_word_byte(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

/* Returns the kind of declaration that the word at @p at begins, or 0. */
static unsigned item_word(const char *text, uint32_t at, uint32_t length) {
  static const struct {
    const char *word;
    uint8_t length, kind;
  } rows[] = {{"fn", 2, VYRE__T_FN},
              {"const", 5, VYRE__T_CONST},
              {"kernel", 6, VYRE__T_KERNEL},
              {"struct", 6, VYRE__T_STRUCT},
              {"override", 8, VYRE__T_CONST}};
  const unsigned which = text[at] == 'f'   ? 0
                         : text[at] == 'c' ? 1
                         : text[at] == 'k' ? 2
                         : text[at] == 's' ? 3
                                           : 4;
  const uint32_t end = at + rows[which].length;
  if (at > 0 && is_word_byte((unsigned char)text[at - 1])) return 0;
  if (end > length || memcmp(text + at, rows[which].word, end - at) != 0) {
    return 0;
  }
  if (end < length && is_word_byte((unsigned char)text[end])) return 0;
  if (which == 4) { /* a word only before a name */
    uint32_t name = end;
    while (name < length && (text[name] == ' ' || text[name] == '\t')) name++;
    if (name == end || name == length ||
        !is_word_byte((unsigned char)text[name])) {
      return 0;
    }
  }
  return rows[which].kind;
}

/* Scans bytes for keywords of declarations. It recognises comments and
 * strings just well enough to skip them. */
enum { MARKS = 512 };

typedef struct scanner {
  vyre__lexer at;
  unsigned braces;
  uint32_t first, end; /* range that the marks cover */
  uint8_t marks[MARKS + 8];
} scanner;

/* Marks line ends, braces, starts of comments, strings and preprocessor
 * lines, and letters that may begin an item. Few bytes are
 * marked. The loop has no branches and works on bytes, so that the compiler
 * vectorises it. */
static void mark_bytes(const unsigned char *restrict text, uint32_t count,
                       uint8_t *restrict marks) {
  for (uint32_t i = 0; i < count; i++) {
    const uint8_t c = text[i], next = text[i + 1];
    const uint8_t plain =
        (uint8_t)((c == '\n') | (c == '{') | (c == '}') |
                  ((uint8_t)(c | 1) == '#') | ((uint8_t)(c | 8) == '/'));
    const uint8_t word =
        (uint8_t)(((c == 'f') & (next == 'n')) | ((c == 'c') & (next == 'o')) |
                  ((c == 'k') & (next == 'e')) | ((c == 'o') & (next == 'v')) |
                  ((c == 's') & (next == 't')));
    marks[i] = plain | word;
  }
}

static_assert(('"' | 1) == '#' && ('\'' | 8) == '/', "two at one go");

/* Returns the next marked byte from @p at on, or the end of the text. The
 * last byte is always marked, because marking it would read past the end. */
static uint32_t next_mark(scanner *s, uint32_t at) {
  const uint32_t last = s->at.length - 1;
  for (;;) {
    if (at >= last) return at;
    if (at >= s->end) {
      uint32_t count = last - at < MARKS ? last - at : MARKS;
      mark_bytes((const unsigned char *)s->at.text + at, count, s->marks);
      memset(s->marks + count, 0, 8);
      s->first = at;
      s->end = at + count;
    }
    for (; at < s->end; at += 8) {
      uint64_t eight;
      memcpy(&eight, s->marks + (at - s->first), 8);
      if (eight == 0) continue;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
      return at + (uint32_t)__builtin_ctzll(eight) / 8;
#else
      while (s->marks[at - s->first] == 0) at++;
      return at;
#endif
    }
    at = s->end;
  }
}

/* Skips a comment, a string or a preprocessor line. */
static void scan_opaque(scanner *s) {
  uint32_t before = s->at.at;
  char c = s->at.text[before];
  vyre__symbols *symbols = s->at.symbols;
  s->at.symbols = NULL; /* a name after it is read again */
  vyre__token token = vyre__lex(&s->at);
  s->at.symbols = symbols;
  if (c == '/') { /* skips only the comment */
    bool open = token.kind == VYRE__T_BAD && token.error == VYRE__LEX_COMMENT;
    s->at.at = open ? s->at.length : token.start;
    s->at.line = token.line;
    s->at.line_start = token.start - (token.column - 1);
  }
  if (s->at.at <= before) s->at.at = before + 1; /* a division */
}

/* Returns true for the const of a parameter or after static, in the syntax of
 * C. */
static bool is_inside(const scanner *s) {
  const char *text = s->at.text;
  uint32_t at = s->at.at;
  while (at > s->at.line_start && (text[at - 1] == ' ' || text[at - 1] == '\t'))
    at--;
  if (at > s->at.line_start) {
    const unsigned char c = (unsigned char)text[at - 1];
    return is_word_byte(c) || c == '(' || c == ',' || c == '*';
  }
  while (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '\t' ||
                    text[at - 1] == '\n' || text[at - 1] == '\r')) {
    at--;
  }
  return at > 0 && (text[at - 1] == '(' || text[at - 1] == ',');
}

static void scan_word(vyre__parser *p, scanner *s) {
  unsigned kind = item_word(s->at.text, s->at.at, s->at.length);
  if (kind == 0) return;
  if ((kind == VYRE__T_CONST || kind == VYRE__T_STRUCT) && is_inside(s)) return;
  if (kind == VYRE__T_STRUCT && s->braces > 0) return;
  const bool is_override = s->at.text[s->at.at] == 'o';
  if (is_override && vyre__p_declare_type(p, &s->at)) return;
  /* At the start of a line it is not part of a body: a brace is missing. */
  if (s->at.at == s->at.line_start) s->braces = 0;
  const size_t count = p->item_count;
  add_item(p, &s->at, kind, s->braces > 0);
  if (p->item_count > count) p->items[count].is_override = is_override;
}

/* Returns a lexer at the start of a file. */
static vyre__lexer lexer_of(const vyre__parser *p, uint32_t file) {
  vyre__lexer lexer = p->now.lexer;
  if (!p->scopes) return lexer;
  const vyre__linked_file *own = &p->scopes->files[file];
  vyre__lexer_init(&lexer, p->text, own->end, p->now.lexer.symbols);
  if (file > 0) lexer.at = own->start;
  lexer.line = own->first_line;
  lexer.line_start = own->start;
  lexer.scopes = p->scopes;
  lexer.file = file;
  return lexer;
}

static uint32_t file_count(const vyre__parser *p) {
  return p->scopes ? (uint32_t)p->scopes->file_count : 1;
}

static void index_file(vyre__parser *p, vyre__lexer lexer) {
  scanner s = {.at = lexer};
  if (lexer.at == lexer.length) return;
  while (s.at.at < s.at.length && !p->out_of_memory) {
    s.at.at = next_mark(&s, s.at.at);
    switch (s.at.text[s.at.at]) {
      case '\n':
        s.at.line++;
        s.at.line_start = s.at.at + 1;
        break;
      case '{':
        s.braces++;
        break;
      case '}':
        s.braces -= s.braces > 0;
        break;
      case 'f':
      case 'c':
      case 'k':
      case 'o':
      case 's':
        scan_word(p, &s);
        break;
      case '/':
      case '"':
      case '\'':
      case '#':
        scan_opaque(&s);
        continue;
      default: /* the last byte */
        break;
    }
    s.at.at++;
  }
}

void vyre__p_index(vyre__parser *p) {
  for (uint32_t i = 0; i < file_count(p); i++) index_file(p, lexer_of(p, i));
}

/* --- consts ----------------------------------------------------------------*/

bool vyre__p_item_name(vyre__parser *p, vyre__item *item, vyre__token *name) {
  const char *subject = item->kind == VYRE__T_FN       ? "a fn"
                        : item->kind == VYRE__T_STRUCT ? "a struct"
                                                       : "a const";
  if (!vyre__p_new_name(p, subject, name)) return false;
  const vyre__symbol *symbol = vyre__p_symbol(p, name);
  const vyre__item *first = symbol->item ? &p->items[symbol->item - 1] : item;
  if (first->start.at == item->start.at) return true;
  vyre__p_error2(p, vyre__p_span(name), "V031", first->span, "declared here",
                 "use another name, or remove one of them",
                 "'%.*s' is already the name of a %s", (int)symbol->length,
                 symbol->text, vyre__token_text(first->kind));
  return true;
}

/* Reads const NAME [: type] = value ; */
static bool read_const(vyre__parser *p, vyre__item *item) {
  vyre__token name;
  vyre__p_advance(p);
  if (vyre__p_is(p, VYRE__T_NAME) &&
      vyre__p_peek(p).kind == VYRE__T_NAME) { /* const int X = 3 */
    vyre__p_foreign_const(p);
  }
  if (!vyre__p_item_name(p, item, &name)) return false;
  vyre_type type = VYRE_TYPE_VOID;
  if (vyre__p_accept(p, VYRE__T_COLON)) {
    vyre_element narrow;
    if (!item->is_override && vyre__p_narrow_table(p, &narrow)) {
      return vyre__p_table(p, &name, vyre__element_type(narrow), narrow, item);
    }
    type = vyre__p_type(p);
    if (type == VYRE_TYPE_VOID) {
      p->now.panic = true;
      return false;
    }
    if (vyre__p_is(p, VYRE__T_LBRACKET) && item->is_override) {
      vyre__p_syntax(p, vyre__p_span(&p->now.token), "V098",
                     "declare a const, whose values may use overrides",
                     "an override is one value, not a table");
      return false;
    }
    if (vyre__p_is(p, VYRE__T_LBRACKET)) {
      return vyre__p_table(p, &name, type, VYRE_ELEMENT_COUNT, item);
    }
  }
  if (!vyre__p_expect(p, VYRE__T_SET, "and a value after the name of a const"))
    return false;
  vyre__id value = vyre__p_value(p);
  vyre__p_mark(p, &name);
  if (value && type != VYRE_TYPE_VOID) {
    value =
        vyre__expect(&p->ir, value, type, "V065", "the value of this const");
  }
  if (type == VYRE_TYPE_VOID && !item->is_override &&
      vyre__const_integer(&p->ir, value, &item->bits)) {
    item->is_untyped = true;
    item->type = VYRE_TYPE_I32;
    return !p->now.panic;
  }
  value = vyre__resolve_type(&p->ir, value, VYRE_TYPE_VOID);
  if (!value || p->now.panic) return false;
  if (!vyre__const_eval(&p->ir, value, &item->bits)) return false;
  item->type = (uint8_t)vyre__type_of(&p->ir, value);
  return !item->is_override || vyre__p_apply_define(p, item);
}

static void need_const(vyre__parser *p, uint32_t index) {
  vyre__p_go(p, p->items[index].start);
  p->const_depth++;
  p->items[index].state = VYRE__ITEM_BUSY;
  vyre__item item = p->items[index];
  bool good = read_const(p, &item);
  vyre__p_semicolon(p, "a const");
  if (p->now.panic) vyre__p_recover(p, item.start.at);
  item.state = good ? VYRE__ITEM_DONE : VYRE__ITEM_WRONG;
  item.end = vyre__p_position(p);
  p->items[index] = item;
  p->const_depth--;
}

/* --- fns -------------------------------------------------------------------*/

static void add_parameter(vyre__parser *p, vyre__item *item,
                          const vyre__token *name, vyre__local spec) {
  void *parameters = p->parameters;
  if (!vyre__reserve(p->allocator, &parameters, &p->parameter_capacity,
                     p->parameter_count + 1, sizeof *p->parameters, false)) {
    p->out_of_memory = true;
    return;
  }
  p->parameters = parameters;
  p->parameters[p->parameter_count++] =
      (vyre__parameter){.symbol = name->symbol,
                        .start = name->start,
                        .spec = spec,
                        .span = vyre__p_span(name)};
  item->parameter_count++;
}

/* Reads [var] NAME : type. */
static bool read_parameter(vyre__parser *p, vyre__item *item) {
  const bool is_mutable = vyre__p_accept(p, VYRE__T_VAR);
  vyre__token name = p->now.token;
  if (name.kind == VYRE__T_NAME && vyre__p_peek(p).kind == VYRE__T_NAME) {
    vyre__p_syntax(p, vyre__p_span(&name), "V018",
                   "write the name, then the type: x: f32",
                   "the type of a parameter comes after its name");
    return false;
  }
  if (!vyre__p_new_name(p, "a parameter", &name)) return false;
  if (!vyre__p_expect(p, VYRE__T_COLON, "and a type after a parameter")) {
    return false;
  }
  vyre__local spec = {0};
  if (!vyre__p_parameter_type(p, is_mutable, &spec)) return false;
  add_parameter(p, item, &name, spec);
  return true;
}

/* Reads fn NAME ( parameters ) [-> type or types]. */
static bool read_head(vyre__parser *p, vyre__item *item, vyre_type *result) {
  vyre__token name;
  vyre__p_advance(p);
  if (!vyre__p_item_name(p, item, &name)) return false;
  vyre__token open = p->now.token;
  if (!vyre__p_expect(p, VYRE__T_LPAREN, "after the name of a fn")) {
    return false;
  }
  bool good = true;
  while (!vyre__p_is(p, VYRE__T_RPAREN) && !p->now.panic) {
    good = read_parameter(p, item) && good;
    if (!vyre__p_accept(p, VYRE__T_COMMA)) break;
  }
  if (!vyre__p_close(p, VYRE__T_RPAREN, &open)) return false;
  if (!vyre__p_accept(p, VYRE__T_ARROW)) return good;
  if (vyre__p_is(p, VYRE__T_LPAREN)) {
    return vyre__p_result_types(p, item) && good;
  }
  *result = vyre__p_type(p);
  return good && *result != VYRE_TYPE_VOID;
}

static void need_head(vyre__parser *p, uint32_t index) {
  vyre__p_go(p, p->items[index].start);
  vyre__item item = p->items[index];
  vyre_type result = VYRE_TYPE_VOID;
  item.first_parameter = (uint32_t)p->parameter_count;
  bool good = read_head(p, &item, &result) && !p->now.panic;
  item.state = good ? VYRE__ITEM_DONE : VYRE__ITEM_WRONG;
  item.end = vyre__p_position(p);
  p->items[index] = item;
  if (!good) return;
  vyre__ir_builder *m = &p->ir;
  const vyre__symbol *symbol = &p->symbols.items[item.symbol];
  m->place = item.span.place;
  m->length = item.span.length;
  uint32_t function =
      vyre__function_declare(m, symbol->text, symbol->length, result);
  p->items[index].function = function;
  if (function == VYRE_NO_INDEX) return;
  for (uint32_t i = 0; i < item.parameter_count; i++) {
    const vyre__parameter *it = &p->parameters[item.first_parameter + i];
    const vyre__symbol *own = &p->symbols.items[it->symbol];
    m->place = it->span.place;
    m->length = it->span.length;
    if (it->spec.is_memory) {
      vyre__function_memory(m, function, own->text, own->length, &it->spec);
    } else {
      vyre__function_parameter(m, function, own->text, own->length,
                               (vyre_type)it->spec.type);
    }
  }
  vyre__function_results(m, function, item.results, item.result_count);
}

static void read_fn_body(vyre__parser *p, const vyre__item *item) {
  vyre__function_begin(&p->ir, item->function);
  size_t scope = p->binding_count;
  for (uint32_t i = 0; i < item->parameter_count; i++) {
    const vyre__parameter *it = &p->parameters[item->first_parameter + i];
    vyre__token name = {.kind = VYRE__T_NAME,
                        .symbol = it->symbol,
                        .start = it->start,
                        .line = it->span.place.line,
                        .column = it->span.place.column,
                        .length = it->span.length};
    vyre__p_check_free(p, &name);
    if (it->spec.is_memory) {
      vyre__p_bind(p, &name, VYRE__BIND_BUFFER, VYRE__MEMORY_LOCAL | i);
    } else {
      vyre__p_bind(p, &name, VYRE__BIND_LOCAL, i);
    }
  }
  if (vyre__p_is(p, VYRE__T_SEMICOLON)) {
    vyre__p_syntax(p, vyre__p_span(&p->now.token), "V013",
                   "remove the line: a fn may be used before its declaration",
                   "expected '{': a fn needs a body");
  }
  vyre__function_end(&p->ir, vyre__p_body(p));
  vyre__p_unbind(p, scope);
}

void vyre__p_need(vyre__parser *p, vyre__item *item) {
  uint32_t index = (uint32_t)(item - p->items);
  if (item->state == VYRE__ITEM_BUSY) {
    vyre__p_error(p, item->span, "V044",
                  "give one of them a value that does not depend on the others",
                  item->kind == VYRE__T_STRUCT
                      ? "this struct contains itself"
                      : "this const depends on itself");
    item->state = VYRE__ITEM_WRONG;
    return;
  }
  if (item->state != VYRE__ITEM_NEW || item->kind == VYRE__T_KERNEL) return;
  if (p->const_depth >= MAX_CONSTS_DEEP) {
    vyre__p_error(
        p, item->span, "V026", "move consts before the consts that use them",
        "more than %d consts in a row use consts that are declared later",
        MAX_CONSTS_DEEP);
    item->state = VYRE__ITEM_WRONG;
    return;
  }
  vyre__token_cursor before = p->now;
  bool lost = p->lost;
  unsigned depth = p->depth;
  p->lost = false;
  p->depth = 0;
  if (item->kind == VYRE__T_CONST) {
    need_const(p, index);
  } else if (item->kind == VYRE__T_STRUCT) {
    p->const_depth++;
    vyre__p_struct(p, index);
    p->const_depth--;
  } else {
    need_head(p, index);
  }
  p->lost = lost;
  p->depth = depth;
  if (!p->stopped) p->now = before;
}

/* --- the file --------------------------------------------------------------*/

static vyre__item *item_here(vyre__parser *p) {
  uint32_t at = p->now.token.start;
  while (p->next_item < p->item_count && p->items[p->next_item].start.at < at) {
    p->next_item++;
  }
  if (p->next_item == p->item_count || p->items[p->next_item].start.at != at) {
    return NULL;
  }
  return &p->items[p->next_item];
}

/* Skips to the next declaration. */
static void skip_to_item(vyre__parser *p) {
  while (!vyre__p_is(p, VYRE__T_END) && !vyre__p_is_item(vyre__p_kind(p))) {
    if (vyre__p_is(p, VYRE__T_LBRACE)) { /* a body in another syntax */
      vyre__p_skip_group(p);
    } else {
      vyre__p_advance(p);
    }
  }
}

/* Reports a token that begins no declaration, unless it is known from another
 * language. */
static void report_no_item(vyre__parser *p) {
  static const char *const names[] = {"kernel", "fn", "const", "struct"};
  const vyre__token token = p->now.token;
  char fix[VYRE__FIX_TEXT], found[VYRE__FOUND_TEXT];
  const char *text = p->text + token.start;
  const vyre__foreign *foreign = vyre__foreign_find(text, token.length);
  vyre__guess guess = vyre__guess_begin(text, token.length);
  if (token.kind == VYRE__T_NAME && !foreign) {
    vyre__guess_try_all(&guess, names, 4);
  }
  vyre__p_did_you_mean(
      &guess,
      foreign ? foreign->fix
              : "begin the declaration with const, struct, fn or kernel",
      fix);
  if (foreign && foreign->kind >= VYRE__FOREIGN_QUALIFIER && foreign->edit) {
    vyre__p_edit(p, vyre__p_span(&token), "%s", foreign->edit);
  }
  if (token.kind == VYRE__T_RBRACE) {
    snprintf(fix, sizeof fix, "remove it, or add a missing '{' before it");
  }
  vyre__p_error(p, vyre__p_span(&token), "V016", fix,
                "expected const, fn or kernel, found %s",
                vyre__p_found(p, &token, found));
}

static void skip_no_item(vyre__parser *p) {
  const uint32_t start = p->now.token.start;
  if (!vyre__p_foreign_item(p)) report_no_item(p);
  p->now.panic = true;
  if (p->now.token.start == start) vyre__p_advance(p);
  skip_to_item(p);
}

static void read_item(vyre__parser *p) {
  vyre__item *item = item_here(p);
  if (!item) { /* no name */
    vyre__token name;
    char subject[16];
    snprintf(subject, sizeof subject, "a %s",
             vyre__token_text(vyre__p_kind(p)));
    vyre__p_advance(p);
    (void)vyre__p_new_name(p, subject, &name);
    skip_to_item(p);
    return;
  }
  if (item->kind == VYRE__T_KERNEL && p->now.lexer.file > 0) {
    vyre__p_advance(p); /* kernels are not imported */
    skip_to_item(p);
    return;
  }
  if (item->kind == VYRE__T_KERNEL) {
    vyre__p_kernel(p, item);
    return;
  }
  vyre__p_need(p, item);
  bool read = item->end.at > item->start.at; /* up to the error */
  if (!read ||
      (item->kind != VYRE__T_CONST && item->state != VYRE__ITEM_DONE)) {
    p->now.panic = true; /* reported: suppresses errors of the rest */
    vyre__p_advance(p);
    skip_to_item(p);
    return;
  }
  vyre__p_go(p, item->end);
  if (item->kind == VYRE__T_FN) read_fn_body(p, item);
}

/* Reads the current file to its end. */
static void read_file(vyre__parser *p) {
  vyre__p_advance(p);
  while (!vyre__p_is(p, VYRE__T_END) && !p->out_of_memory &&
         !p->ir.out_of_memory) {
    p->lost = p->now.panic = false;
    p->depth = 0;
    if (vyre__p_is_override(p)) {
      if (!vyre__p_override_type(p)) read_item(p);
    } else if (vyre__p_is_item(vyre__p_kind(p))) {
      read_item(p);
    } else if (!vyre__p_import(p)) {
      skip_no_item(p);
    }
  }
}

void vyre__p_file(vyre__parser *p) {
  for (size_t i = 0; i < p->item_count && !p->stopped; i++) {
    if (!p->items[i].nested) vyre__p_need(p, &p->items[i]);
  }
  for (uint32_t i = 0; i < file_count(p) && !p->stopped; i++) {
    p->now = (vyre__token_cursor){.lexer = lexer_of(p, i)};
    read_file(p);
  }
}
