/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Index of a file for editors. The parser reports each name with its scope.
 * Uses are found by a second pass over the tokens: a name has one meaning
 * (V031, V032), so its text and its place decide. */
#include "lang/source_index.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/sort.h"
#include "base/status.h"
#include "lang/module.h"

/* --- names, while the file is parsed ---------------------------------------*/

static const char *copy_text(vyre__name_index *index, const char *text) {
  const char *copy = vyre__arena_text(index->arena, text);
  if (!copy) index->no_memory = true;
  return copy ? copy : "";
}

/* Copies text of the file on one line: white space becomes a space. */
static const char *copy_source(vyre__parser *p, uint32_t start, uint32_t end) {
  char text[256];
  size_t length = 0;
  bool is_blank = false;
  for (; start < end && length + 2 < sizeof text; start++) {
    const char c = p->text[start];
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      is_blank = length > 0;
      continue;
    }
    if (is_blank) text[length++] = ' ';
    is_blank = false;
    text[length++] = c;
  }
  /* A character that is cut off is left out. */
  while (start < end && length > 0 &&
         ((unsigned char)text[length - 1] & 0xC0) == 0x80) {
    length--;
  }
  text[length] = '\0';
  return copy_text(p->index, text);
}

/* Returns the type after a name and a colon, as written: "read f32[256]", or
 * "" if no colon follows. */
static const char *written_type(vyre__parser *p, uint32_t after) {
  vyre__lexer lexer;
  vyre__lexer_init(&lexer, p->text, p->length, NULL);
  lexer.at = after;
  vyre__token token = vyre__lex(&lexer);
  if (token.kind != VYRE__T_COLON) return "";
  token = vyre__lex(&lexer);
  const uint32_t start = token.start;
  uint32_t end = start;
  while (token.kind == VYRE__T_NAME) {
    end = token.start + token.length;
    token = vyre__lex(&lexer);
  }
  if (token.kind == VYRE__T_LBRACKET) {
    while (token.kind != VYRE__T_RBRACKET && token.kind != VYRE__T_SEMICOLON &&
           token.kind != VYRE__T_END) {
      token = vyre__lex(&lexer);
    }
    end = token.start + token.length;
  }
  return copy_source(p, start, end);
}

/* Returns true if the word before an offset is @p word. */
static bool follows_word(const vyre__parser *p, uint32_t offset,
                         const char *word) {
  const size_t length = strlen(word);
  while (offset > 0 &&
         (p->text[offset - 1] == ' ' || p->text[offset - 1] == '\t')) {
    offset--;
  }
  return offset >= length &&
         memcmp(p->text + offset - length, word, length) == 0;
}

static void describe(vyre__parser *p, const vyre__binding *binding,
                     vyre__indexed_name *out) {
  const vyre__ir_builder *m = &p->ir;
  const uint32_t after = out->name.start + out->name.length;
  out->type = written_type(p, after);
  if (binding->kind == VYRE__BIND_BUFFER) { /* or an array, or a parameter */
    out->kind =
        follows_word(p, out->name.start, "uniform")  ? VYRE_SYMBOL_UNIFORM
        : follows_word(p, out->name.start, "shared") ? VYRE_SYMBOL_SHARED
        : follows_word(p, out->name.start, "buffer") ? VYRE_SYMBOL_BUFFER
        : follows_word(p, out->name.start, "let")    ? VYRE_SYMBOL_LET
        : m->kernel                                  ? VYRE_SYMBOL_VAR
                                                     : VYRE_SYMBOL_PARAMETER;
    return;
  }
  if (binding->kind != VYRE__BIND_LOCAL) return;
  const vyre__ir_function *f = &m->functions[m->function];
  if (binding->index >= f->local_count) return;
  const vyre__ir_local *local = &m->locals[f->first_local + binding->index];
  out->kind = local->is_parameter ? VYRE_SYMBOL_PARAMETER
              : local->is_mutable ? VYRE_SYMBOL_VAR
                                  : VYRE_SYMBOL_LET;
  if (local->type != VYRE_TYPE_VOID && !out->type[0]) {
    out->type = copy_text(p->index, vyre__type_name(local->type));
  }
}

uint32_t vyre__index_bind(vyre__parser *p, const vyre__token *name,
                          const vyre__binding *binding) {
  vyre__name_index *index = p->index;
  if (!vyre__reserve(index->allocator, &index->names, &index->capacity,
                     index->count + 1, sizeof(vyre__indexed_name), false)) {
    index->no_memory = true;
    return VYRE_NO_INDEX;
  }
  vyre__indexed_name *names = index->names;
  vyre__indexed_name *it = &names[index->count++];
  *it = (vyre__indexed_name){.symbol = name->symbol,
                             .kind = VYRE_SYMBOL_FIELD,
                             .name = *name,
                             .end = UINT32_MAX};
  describe(p, binding, it);
  if (binding->kind == VYRE__BIND_WRONG) it->symbol = 0;
  return (uint32_t)index->count - 1;
}

void vyre__index_unbind(vyre__parser *p, const vyre__binding *binding) {
  vyre__indexed_name *names = p->index->names;
  if (binding->number == VYRE_NO_INDEX) return;
  names[binding->number].end = p->now.previous.start + p->now.previous.length;
}

/* --- symbols ---------------------------------------------------------------*/

enum { MANY = -1 };

/* Begins to read the parsed file, without its imports. */
static void init_lexer(vyre__parser *p, vyre__lexer *lexer) {
  const uint32_t end = p->scopes ? p->scopes->files[0].end : p->length;
  vyre__lexer_init(lexer, p->text, end, &p->symbols);
  lexer->scopes = p->scopes;
}

/* The lists, while they are made. */
typedef struct maker {
  vyre__parser *p;
  vyre__name_index *index;
  vyre_symbol *symbols;
  size_t symbol_count;
  uint32_t *of_name;   /* symbol of each indexed name */
  uint32_t *of_item;   /* symbol of each item; VYRE_NO_INDEX: none */
  uint32_t *next;      /* next indexed name with the same text */
  uint32_t *first;     /* per symbol of the parser: index + 1 */
  uint32_t *member;    /* the same for fields of structs; MANY: several */
  uint32_t *from;      /* per indexed name: offset where its scope begins */
  uint32_t *item_ends; /* offset of the end of each item */
  vyre_symbol_use *uses;
  size_t use_count, use_capacity;
} maker;

/* Returns the kind with the keyword of an item. */
static vyre_symbol_kind item_kind(const vyre__item *item) {
  const char *word = vyre__token_text(item->kind);
  if (item->is_override) return VYRE_SYMBOL_OVERRIDE;
  for (unsigned i = 0; i < VYRE_SYMBOL_KIND_COUNT; i++) {
    if (strcmp(vyre_symbol_kind_name((vyre_symbol_kind)i), word) == 0) {
      return (vyre_symbol_kind)i;
    }
  }
  return VYRE_SYMBOL_CONST;
}

/* Returns "(a: f32) -> f32" as written, or the type of a const. */
static const char *item_type(maker *k, const vyre__item *item) {
  vyre__parser *p = k->p;
  vyre__lexer lexer;
  vyre__lexer_init(&lexer, p->text, p->length, NULL);
  lexer.at = item->start.at;
  vyre__lex(&lexer); /* the keyword */
  const vyre__token name = vyre__lex(&lexer);
  const uint32_t start = name.start + name.length;
  if (item->kind == VYRE__T_FN) {
    uint32_t end = start;
    for (vyre__token token = vyre__lex(&lexer);
         token.kind != VYRE__T_LBRACE && token.kind != VYRE__T_END &&
         token.kind != VYRE__T_SEMICOLON;
         token = vyre__lex(&lexer)) {
      end = token.start + token.length;
    }
    return copy_source(p, start, end);
  }
  if (item->kind != VYRE__T_CONST) return "";
  const char *written = written_type(p, start);
  if (written[0] || item->state != VYRE__ITEM_DONE) return written;
  return copy_text(k->index, vyre__type_name(item->type));
}

static const char *name_text(maker *k, const vyre__symbol *symbol) {
  char text[VYRE__MAX_NAME + 1];
  snprintf(text, sizeof text, "%.*s", (int)symbol->length, symbol->text);
  return copy_text(k->index, text);
}

/* Converts an offset to a line and a column, for growing offsets. */
typedef struct line_finder {
  const char *text;
  uint32_t at, line, start;
} line_finder;

static void find_line(line_finder *f, uint32_t offset, uint32_t *line,
                      uint32_t *column) {
  if (offset < f->at) *f = (line_finder){.text = f->text, .line = 1};
  while (f->at < offset) {
    const char *end = memchr(f->text + f->at, '\n', offset - f->at);
    if (!end) break;
    f->at = (uint32_t)(end - f->text) + 1;
    f->line++;
    f->start = f->at;
  }
  f->at = offset;
  *line = f->line;
  *column = offset - f->start + 1;
}

/* Returns the last item that begins at or before @p offset. */
static uint32_t item_at(const vyre__parser *p, uint32_t offset) {
  uint32_t found = VYRE_NO_INDEX;
  size_t lo = 0, hi = p->item_count;
  while (lo < hi) {
    size_t middle = lo + (hi - lo) / 2;
    if (p->items[middle].start.at <= offset) {
      found = (uint32_t)middle;
      lo = middle + 1;
    } else {
      hi = middle;
    }
  }
  while (found != VYRE_NO_INDEX && p->items[found].nested) {
    found = found > 0 ? found - 1 : VYRE_NO_INDEX;
  }
  return found;
}

static bool is_in_header(unsigned kind) {
  return kind == VYRE_SYMBOL_BUFFER || kind == VYRE_SYMBOL_UNIFORM ||
         kind == VYRE_SYMBOL_SHARED || kind == VYRE_SYMBOL_FIELD;
}

/* Adds the symbol of an item or of a name. */
static void add_symbol(maker *k, line_finder *finder, uint64_t which) {
  vyre__parser *p = k->p;
  const vyre__indexed_name *names = k->index->names;
  vyre_symbol *out = &k->symbols[k->symbol_count];
  const bool is_item = which < p->item_count;
  uint32_t first, end;
  if (is_item) {
    const vyre__item *item = &p->items[which];
    *out = (vyre_symbol){.kind = item_kind(item),
                         .line = item->span.place.line,
                         .column = item->span.place.column,
                         .length = item->span.length,
                         .name = name_text(k, &p->symbols.items[item->symbol]),
                         .type = item_type(k, item),
                         .parent = VYRE_NO_INDEX};
    first = item->start.at;
    end = k->item_ends[which];
    k->of_item[which] = (uint32_t)k->symbol_count;
  } else {
    const size_t number = (size_t)which - p->item_count;
    const vyre__indexed_name *it = &names[number];
    const uint32_t item = item_at(p, it->name.start);
    *out = (vyre_symbol){
        .kind = (vyre_symbol_kind)it->kind,
        .line = it->name.line,
        .column = it->name.column,
        .length = it->name.length,
        .name = name_text(k, &p->symbols.items[it->symbol]),
        .type = it->type,
        .parent = item == VYRE_NO_INDEX ? VYRE_NO_INDEX : k->of_item[item]};
    first = k->from[number];
    end = it->end < p->length ? it->end : p->length;
    k->of_name[number] = (uint32_t)k->symbol_count;
  }
  find_line(finder, first, &out->first_line, &out->first_column);
  find_line(finder, end > first ? end : first, &out->end_line,
            &out->end_column);
  const vyre__source_file *file = vyre__source_file_of(p->files, &out->line);
  if (file) {
    (void)vyre__source_file_of(p->files, &out->first_line);
    (void)vyre__source_file_of(p->files, &out->end_line);
    out->file = copy_text(k->index, file->name);
  }
  k->symbol_count++;
}

/* Adds all symbols in the order of their declarations, and links names with the
 * same text into chains, ordered by where their scopes begin. */
static bool add_symbols(maker *k) {
  const vyre__parser *p = k->p;
  const vyre__indexed_name *names = k->index->names;
  const size_t total = p->item_count + k->index->count;
  vyre__sort_item *order =
      vyre__arena_array(k->index->arena, total + 1, sizeof *order);
  if (!order) return false;
  size_t count = 0;
  for (size_t i = 0; i < p->item_count; i++) {
    k->of_item[i] = VYRE_NO_INDEX;
    if (p->items[i].nested || p->items[i].symbol == 0) continue;
    order[count++] = (vyre__sort_item){(uint64_t)p->items[i].start.at * 2, i};
  }
  for (size_t i = 0; i < k->index->count; i++) {
    const vyre__indexed_name *it = &names[i];
    const uint32_t item = item_at(p, it->name.start);
    k->of_name[i] = VYRE_NO_INDEX;
    k->from[i] = it->name.start;
    if (item != VYRE_NO_INDEX && is_in_header(it->kind) && !it->is_member) {
      k->from[i] = p->items[item].start.at;
    }
    if (it->symbol == 0) continue;
    order[count++] =
        (vyre__sort_item){(uint64_t)it->name.start * 2 + 1, p->item_count + i};
  }
  vyre__sort(order, count);
  k->symbols =
      vyre__arena_array(k->index->arena, count + 1, sizeof *k->symbols);
  if (!k->symbols) return false;
  line_finder finder = {.text = p->text, .line = 1};
  for (size_t i = 0; i < count; i++) add_symbol(k, &finder, order[i].tie);
  count = 0;
  for (size_t i = 0; i < k->index->count; i++) {
    if (names[i].symbol == 0 || names[i].is_member) continue;
    order[count++] = (vyre__sort_item){k->from[i], i};
  }
  vyre__sort(order, count);
  for (size_t i = count; i > 0; i--) {
    const uint32_t number = (uint32_t)order[i - 1].tie;
    k->next[number] = k->first[names[number].symbol];
    k->first[names[number].symbol] = number + 1;
  }
  return true;
}

/* --- uses ------------------------------------------------------------------*/

/* State of the pass over the tokens. */
typedef struct token_pass {
  vyre__token before, token, after;
  uint32_t item;  /* current item, or VYRE_NO_INDEX */
  bool in_header; /* of a kernel */
  unsigned depth; /* open brackets in the header */
  bool is_hint;   /* in coalesce(...) or locality(...) */
} token_pass;

static bool is_text(const vyre__parser *p, const vyre__token *token,
                    const char *text) {
  return vyre__p_text_is(p, token, text);
}

static void follow_header(const vyre__parser *p, token_pass *t) {
  switch (t->token.kind) {
    case VYRE__T_KERNEL:
      t->in_header = true;
      t->depth = 0;
      break;
    case VYRE__T_LBRACE:
      t->in_header = false;
      break;
    case VYRE__T_LPAREN:
    case VYRE__T_LBRACKET:
      t->depth++;
      t->is_hint = is_text(p, &t->before, "coalesce") ||
                   is_text(p, &t->before, "locality");
      break;
    case VYRE__T_RPAREN:
    case VYRE__T_RBRACKET:
      if (t->depth > 0) t->depth--;
      t->is_hint = false;
      break;
    default:
      break;
  }
}

/* Returns the symbol that a name refers to, or VYRE_NO_INDEX. */
static uint32_t resolve(maker *k, const token_pass *t) {
  const vyre__parser *p = k->p;
  const vyre__indexed_name *names = k->index->names;
  const vyre__token *token = &t->token;
  const vyre__symbol *symbol = &p->symbols.items[token->symbol];
  uint32_t *first = &k->first[token->symbol];
  while (*first && names[*first - 1].end <= token->start) {
    *first = k->next[*first - 1];
  }
  uint32_t local = VYRE_NO_INDEX;
  if (*first && k->from[*first - 1] <= token->start) local = *first - 1;
  if (local != VYRE_NO_INDEX && names[local].name.start == token->start) {
    return k->of_name[local];
  }
  const uint32_t item = symbol->item ? symbol->item - 1 : VYRE_NO_INDEX;
  if (item != VYRE_NO_INDEX && p->items[item].span.place.line == token->line &&
      p->items[item].span.place.column == token->column) {
    return k->of_item[item];
  }
  const bool is_label =
      t->after.kind == VYRE__T_COLON &&
      (t->before.kind == VYRE__T_LBRACE || t->before.kind == VYRE__T_COMMA ||
       t->before.kind == VYRE__T_SEMICOLON);
  if (t->before.kind == VYRE__T_DOT || is_label) {
    const uint32_t member = k->member[token->symbol];
    const bool is_known = member != 0 && member != (uint32_t)MANY;
    return is_known ? k->of_name[member - 1] : VYRE_NO_INDEX;
  }
  if (t->in_header && (t->depth == 0 || t->is_hint)) {
    const bool is_type = item != VYRE_NO_INDEX &&
                         item_kind(&p->items[item]) == VYRE_SYMBOL_STRUCT &&
                         t->before.kind != VYRE__T_KERNEL;
    return is_type && !t->is_hint ? k->of_item[item] : VYRE_NO_INDEX;
  }
  const bool is_fn = item != VYRE_NO_INDEX && p->items[item].kind == VYRE__T_FN;
  if (t->after.kind == VYRE__T_LPAREN && symbol->value && !is_fn) {
    return VYRE_NO_INDEX; /* a built-in function */
  }
  if (local != VYRE_NO_INDEX) return k->of_name[local];
  return item == VYRE_NO_INDEX ? VYRE_NO_INDEX : k->of_item[item];
}

static bool add_use(maker *k, const vyre__token *token, uint32_t symbol) {
  void *uses = k->uses;
  if (!vyre__reserve(k->index->allocator, &uses, &k->use_capacity,
                     k->use_count + 1, sizeof *k->uses, false)) {
    return false;
  }
  k->uses = uses;
  const char *text = k->p->text + token->start;
  const char *dot = memchr(text, '.', token->length); /* noise.value */
  const uint32_t skip = dot ? (uint32_t)(dot - text) + 1 : 0;
  k->uses[k->use_count++] = (vyre_symbol_use){.line = token->line,
                                              .column = token->column + skip,
                                              .length = token->length - skip,
                                              .symbol = symbol};
  return true;
}

static bool add_uses(maker *k) {
  vyre__parser *p = k->p;
  vyre__lexer lexer;
  token_pass t = {.item = VYRE_NO_INDEX};
  init_lexer(p, &lexer);
  t.token = vyre__lex(&lexer);
  while (t.token.kind != VYRE__T_END && !p->symbols.failed) {
    t.after = vyre__lex(&lexer);
    follow_header(p, &t);
    if (t.token.kind == VYRE__T_NAME && t.token.symbol) {
      const uint32_t symbol = resolve(k, &t);
      if (symbol != VYRE_NO_INDEX && !add_use(k, &t.token, symbol)) {
        return false;
      }
    }
    t.before = t.token;
    t.token = t.after;
  }
  return !p->symbols.failed;
}

/* Adds a field of a struct. */
static bool add_member(maker *k, const vyre__token *name) {
  vyre__name_index *index = k->index;
  if (!vyre__reserve(index->allocator, &index->names, &index->capacity,
                     index->count + 1, sizeof(vyre__indexed_name), false)) {
    return false;
  }
  vyre__indexed_name *names = index->names;
  names[index->count++] = (vyre__indexed_name){
      .symbol = name->symbol,
      .kind = VYRE_SYMBOL_FIELD,
      .name = *name,
      .type = written_type(k->p, name->start + name->length),
      .end = UINT32_MAX,
      .is_member = true};
  uint32_t *member = &k->member[name->symbol];
  *member = *member ? (uint32_t)MANY : (uint32_t)index->count;
  return true;
}

/* Finds the ends of the items, which are the ends of the last tokens before the
 * next, and the fields of structs. */
static bool scan_items(maker *k) {
  vyre__parser *p = k->p;
  vyre__lexer lexer;
  size_t item = 0;
  k->item_ends =
      vyre__arena_array(k->index->arena, p->item_count + 1, sizeof(uint32_t));
  if (!k->item_ends) return false;
  for (size_t i = 0; i < p->item_count; i++) {
    k->item_ends[i] = p->items[i].start.at;
  }
  init_lexer(p, &lexer);
  vyre__token before = {0}, token = vyre__lex(&lexer), after;
  for (; token.kind != VYRE__T_END; before = token, token = after) {
    after = vyre__lex(&lexer);
    while (item + 1 < p->item_count &&
           (p->items[item + 1].start.at <= token.start)) {
      item++;
    }
    if (p->item_count == 0 || p->items[item].start.at > token.start) continue;
    size_t owner = item;
    while (owner > 0 && p->items[owner].nested) owner--;
    k->item_ends[owner] = token.start + token.length;
    const bool is_member =
        item_kind(&p->items[owner]) == VYRE_SYMBOL_STRUCT &&
        token.kind == VYRE__T_NAME && token.symbol &&
        after.kind == VYRE__T_COLON &&
        (before.kind == VYRE__T_LBRACE || before.kind == VYRE__T_SEMICOLON);
    if (is_member && !add_member(k, &token)) return false;
  }
  return !p->symbols.failed;
}

/* --- values ----------------------------------------------------------------*/

static bool is_value(const vyre__ir_builder *m, size_t id) {
  const vyre__node *node = &m->nodes[id];
  const unsigned form = vyre__ops[node->op].form;
  return node->type != VYRE_TYPE_VOID && !vyre__type_is_untyped(node->type) &&
         m->spans[id].length > 0 && form != VYRE__FORM_NONE &&
         (node->op < VYRE__OP_BLOCK || vyre__op_is_late_value(node->op));
}

static bool add_values(maker *k, vyre_source_index *out) {
  const vyre__ir_builder *m = &k->p->ir;
  const uint32_t last =
      k->p->files ? k->p->files->items[1].first_line : UINT32_MAX;
  size_t count = 0;
  vyre__sort_item *order =
      vyre__arena_array(k->index->arena, m->node_count + 1, sizeof *order);
  if (!order) return false;
  for (size_t i = 1; i < m->node_count; i++) {
    if (!is_value(m, i) || m->spans[i].place.line >= last) continue;
    const vyre__source_loc place = m->spans[i].place;
    order[count++] =
        (vyre__sort_item){(uint64_t)place.line << 32 | place.column, i};
  }
  vyre__sort(order, count);
  vyre_typed_text *values =
      vyre__arena_array(k->index->arena, count + 1, sizeof *values);
  if (!values) return false;
  for (size_t i = 0; i < count; i++) {
    const vyre__source_span span = m->spans[order[i].tie];
    values[i] = (vyre_typed_text){
        .line = span.place.line,
        .column = span.place.column,
        .length = span.length,
        .type =
            copy_text(k->index, vyre__type_name(m->nodes[order[i].tie].type))};
  }
  out->values = values;
  out->value_count = count;
  return true;
}

/* --- the index -------------------------------------------------------------*/

/* Interns all names, also those after the error at which the parser stopped. */
static void intern_all(vyre__parser *p) {
  vyre__lexer lexer;
  init_lexer(p, &lexer);
  while (vyre__lex(&lexer).kind != VYRE__T_END) continue;
}

static bool make_index(vyre__parser *p, vyre_source_index *out) {
  vyre__name_index *index = p->index;
  vyre_arena *arena = index->arena;
  maker k = {.p = p, .index = index};
  intern_all(p);
  k.member = vyre__arena_array(arena, p->symbols.count, sizeof *k.member);
  if (!k.member) return false;
  memset(k.member, 0, p->symbols.count * sizeof *k.member);
  if (!scan_items(&k)) return false;
  const size_t names = index->count + 1;
  k.of_name = vyre__arena_array(arena, names, sizeof *k.of_name);
  k.next = vyre__arena_array(arena, names, sizeof *k.next);
  k.from = vyre__arena_array(arena, names, sizeof *k.from);
  k.of_item = vyre__arena_array(arena, p->item_count + 1, sizeof *k.of_item);
  k.first = vyre__arena_array(arena, p->symbols.count, sizeof *k.first);
  if (!k.of_name || !k.next || !k.from || !k.of_item || !k.first) return false;
  memset(k.first, 0, p->symbols.count * sizeof *k.first);
  bool good = add_symbols(&k) && add_uses(&k) && add_values(&k, out);
  vyre_symbol_use *uses =
      good ? vyre__arena_array(arena, k.use_count + 1, sizeof *uses) : NULL;
  if (uses && k.use_count > 0) {
    memcpy(uses, k.uses, k.use_count * sizeof *uses);
  }
  void *old = k.uses;
  vyre__reserve_free(index->allocator, &old, &k.use_capacity, sizeof *k.uses);
  out->symbols = k.symbols;
  out->symbol_count = k.symbol_count;
  out->uses = uses;
  out->use_count = k.use_count;
  return uses && !index->no_memory;
}

vyre_code vyre_source_index_build(const char *text, size_t length,
                                  vyre_arena *arena, vyre_source_index *out,
                                  vyre_status *st) {
  vyre__status_begin(st);
  return vyre_source_index_build_with(text, length, "", NULL, arena, out,
                                      vyre__status_open(st));
}

vyre_code vyre_source_index_build_with(const char *text, size_t length,
                                       const char *file,
                                       const vyre_module_options *options,
                                       vyre_arena *arena,
                                       vyre_source_index *out,
                                       vyre_status *st) {
  vyre__status_begin(st);
  if (out) *out = (vyre_source_index){.symbols = NULL};
  VYRE_REQUIRE_BOTH(st, text, arena);
  VYRE_REQUIRE(st, out);
  vyre_diagnostics found = {.arena.allocator = arena->allocator};
  vyre_code code = vyre__source_accept(text, length, &found);
  if (code != VYRE_OK) {
    code = vyre__diagnostics_fail(&found, "", st);
    vyre_diagnostics_deinit(&found);
    return code;
  }
  vyre__name_index index = {.arena = arena, .allocator = arena->allocator};
  vyre__parser p = {.text = text,
                    .length = (uint32_t)length,
                    .file = file ? file : "",
                    .diagnostics = &found,
                    .allocator = arena->allocator,
                    .index = &index};
  vyre_arena_init(&p.arena, arena->allocator);
  if (options) p.options = *options;
  p.used_defines = vyre__arena_filled(&p.arena, p.options.define_count + 1,
                                      sizeof *p.used_defines, 0);
  code = p.used_defines ? vyre__p_read(&p, st)
                        : vyre__no_memory(st, __func__, "values", 1);
  if (code != VYRE_OUT_OF_MEMORY) {
    vyre__status_begin(st);
    code = VYRE_OK;
    if (!make_index(&p, out)) {
      *out = (vyre_source_index){.symbols = NULL};
      code =
          vyre__no_memory(st, "vyre_source_index_build", "names", index.count);
    }
  }
  vyre__reserve_free(index.allocator, &index.names, &index.capacity,
                     sizeof(vyre__indexed_name));
  vyre__p_deinit(&p);
  vyre_diagnostics_deinit(&found);
  return code;
}
