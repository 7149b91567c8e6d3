/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parser: the header of a kernel, with its size and its buffers. */
#include <stdio.h>

#include "base/memory.h"
#include "base/sort.h"
#include "lang/parse/parse.h"

/* Contents of a kernel header. */
typedef struct kernel_head {
  uint32_t workgroup[3];
  vyre__token over; /* T_END: absent */
  bool has_workgroup;
  vyre__queue_head queue;
} kernel_head;

/* --- clauses ---------------------------------------------------------------*/

static bool read_workgroup(vyre__parser *p, kernel_head *head) {
  uint32_t count = 0;
  do {
    uint32_t size = 1;
    if (count == 3) {
      vyre__p_syntax(p, vyre__p_span(&p->now.token), "V042",
                     "write at most three sizes: workgroup(x, y, z)",
                     "a workgroup has at most three axes");
      return false;
    }
    (void)vyre__p_constant(p, "V042", "the size of a workgroup", 1, UINT32_MAX,
                           &size);
    head->workgroup[count++] = size;
  } while (vyre__p_accept(p, VYRE__T_COMMA));
  return true;
}

bool vyre__p_repeated(vyre__parser *p, const vyre__token *word, bool *seen) {
  if (!*seen) {
    *seen = true;
    return false;
  }
  char found[VYRE__FOUND_TEXT];
  vyre__p_error(p, vyre__p_span(word), "V047", "remove one of them",
                "%s appears twice", vyre__p_found(p, word, found));
  return true;
}

/* Reads workgroup(...), over(...), or a clause of a queue. */
static bool read_clause(vyre__parser *p, kernel_head *head) {
  vyre__token word = p->now.token;
  bool is_workgroup = vyre__p_text_is(p, &word, "workgroup");
  bool is_over = vyre__p_text_is(p, &word, "over");
  if (!is_workgroup && !is_over) {
    if (vyre__p_foreign_memory(p)) return false;
    if (vyre__p_queue_clause(p, &head->queue)) return !p->now.panic;
    static const char *const words[] = {"workgroup", "over",   "queue",  "set",
                                        "once",      "pushes", "by",     "any",
                                        "buffer",    "shared", "uniform"};
    char fix[VYRE__FIX_TEXT];
    vyre__guess guess = vyre__guess_begin(p->text + word.start, word.length);
    vyre__guess_try_all(&guess, words, sizeof words / sizeof words[0]);
    vyre__p_expected(
        p, "workgroup, over, queue, buffer, uniform, shared or '{'",
        vyre__p_did_you_mean(
            &guess, "declare a buffer like this: buffer x : read f32[] @0;",
            fix));
    return false;
  }
  vyre__p_advance(p);
  vyre__token open = p->now.token;
  if (!vyre__p_expect(p, VYRE__T_LPAREN,
                      "and a value in the kernel's header")) {
    return false;
  }
  if (is_workgroup) {
    (void)vyre__p_repeated(p, &word, &head->has_workgroup);
    if (!read_workgroup(p, head)) return false;
  } else {
    bool seen = head->over.kind != VYRE__T_END;
    (void)vyre__p_repeated(p, &word, &seen);
    head->over = p->now.token;
    if (!vyre__p_accept(p, VYRE__T_NAME)) {
      head->over.kind = VYRE__T_END;
      vyre__p_expected(p, "the name of a buffer",
                       "use the name of a buffer of this kernel");
      return false;
    }
  }
  return vyre__p_close(p, VYRE__T_RPAREN, &open);
}

/* --- buffers ---------------------------------------------------------------*/

/* Returns the element type with the name of a value type. */
static vyre_element element_of_type(vyre_type type) {
  static const uint8_t elements[VYRE_TYPE_COUNT] = {
      [VYRE_TYPE_BOOL] = VYRE_ELEMENT_BOOL, [VYRE_TYPE_U32] = VYRE_ELEMENT_U32,
      [VYRE_TYPE_I32] = VYRE_ELEMENT_I32,   [VYRE_TYPE_U64] = VYRE_ELEMENT_U64,
      [VYRE_TYPE_I64] = VYRE_ELEMENT_I64,   [VYRE_TYPE_F32] = VYRE_ELEMENT_F32,
      [VYRE_TYPE_F64] = VYRE_ELEMENT_F64,
  };
  return (vyre_element)elements[type];
}

/* Reads f32x4, or f16x2 and the like, which are elements only. Returns false if
 * the token is not a vector. */
static bool read_vector_element(vyre__parser *p, const vyre__token *token,
                                vyre_buffer_decl *buffer) {
  static const vyre_element narrow[] = {VYRE_ELEMENT_U8,  VYRE_ELEMENT_I8,
                                        VYRE_ELEMENT_U16, VYRE_ELEMENT_I16,
                                        VYRE_ELEMENT_F16, VYRE_ELEMENT_BF16};
  const char *text = p->text + token->start;
  const vyre__symbol *symbol = vyre__p_symbol(p, token);
  if (symbol->word == VYRE__WORD_TYPE && vyre__is_vector(symbol->value)) {
    const unsigned component = vyre__component_type(symbol->value);
    buffer->type = symbol->value;
    buffer->element = element_of_type((vyre_type)component);
    return true;
  }
  if (token->length < 4 || text[token->length - 2] != 'x') return false;
  const int length = text[token->length - 1] - '0';
  if (length < 2 || length > VYRE__MAX_COMPONENTS) return false;
  for (unsigned i = 0; i < sizeof narrow / sizeof narrow[0]; i++) {
    const char *name = vyre_element_name(narrow[i]);
    if (strlen(name) != token->length - 2u ||
        memcmp(name, text, strlen(name)) != 0) {
      continue;
    }
    buffer->element = narrow[i];
    buffer->type =
        vyre__vector_of(vyre__element_type(narrow[i]), (unsigned)length);
    return true;
  }
  return false;
}

/* Reads sum_f32 or sum_f64, which are words here only. */
static bool read_sum_element(const vyre__parser *p, const vyre__token *token,
                             vyre_buffer_decl *buffer) {
  for (int e = VYRE_ELEMENT_SUM_F32; e <= VYRE_ELEMENT_SUM_F64; e++) {
    const char *name = vyre_element_name((vyre_element)e);
    if (strlen(name) == token->length &&
        memcmp(name, p->text + token->start, token->length) == 0) {
      buffer->element = (vyre_element)e;
      return true;
    }
  }
  return false;
}

bool vyre__p_element(vyre__parser *p, vyre_buffer_decl *buffer) {
  vyre_element *element = &buffer->element;
  vyre__token token = p->now.token;
  const vyre__symbol *symbol = vyre__p_symbol(p, &token);
  if (token.kind == VYRE__T_NAME && read_vector_element(p, &token, buffer)) {
    vyre__p_advance(p);
    if (buffer->element != VYRE_ELEMENT_BOOL) return true;
    vyre__p_error(p, vyre__p_span(&token), "V034",
                  "use a vector of u8, or one bool for each element",
                  "a buffer has no vectors of bool");
    buffer->type = 0;
    return true;
  }
  if (token.kind == VYRE__T_NAME && symbol->item &&
      p->items[symbol->item - 1].kind == VYRE__T_STRUCT) {
    vyre__p_advance(p);
    const unsigned type = vyre__p_struct_type(p, &token);
    const vyre__struct *s = vyre__struct_at(&p->ir, type);
    if (!s) return false;
    buffer->type = (uint16_t)type;
    buffer->structure = &s->self;
    buffer->element = (vyre_element)s->main_element;
    return true;
  }
  if (token.kind == VYRE__T_NAME && read_sum_element(p, &token, buffer)) {
    vyre__p_advance(p);
    return true;
  }
  if (token.kind == VYRE__T_NAME &&
      (symbol->word == VYRE__WORD_TYPE || symbol->word == VYRE__WORD_ELEMENT)) {
    *element = symbol->word == VYRE__WORD_ELEMENT
                   ? (vyre_element)symbol->value
                   : element_of_type((vyre_type)symbol->value);
    vyre__p_advance(p);
    return true;
  }
  static const char *const names[] = {
      "bool", "u8",  "i8",   "u16", "i16", "u32",   "i32",     "u64",
      "i64",  "f16", "bf16", "f32", "f64", "bytes", "sum_f32", "sum_f64"};
  char fix[VYRE__FIX_TEXT];
  const char *text = p->text + token.start;
  const char *foreign = token.kind == VYRE__T_NAME
                            ? vyre__foreign_element(text, token.length)
                            : NULL;
  vyre__guess guess = vyre__guess_begin(text, token.length);
  if (token.kind == VYRE__T_NAME) {
    vyre__guess_try_all(&guess, names, sizeof names / sizeof names[0]);
  }
  vyre__p_did_you_mean(&guess, "use a type such as u8, u32, i32 or f32", fix);
  if (foreign) {
    snprintf(fix, sizeof fix, "write %s", foreign);
    vyre__p_edit(p, vyre__p_span(&token), "%s", foreign);
  }
  char found[VYRE__FOUND_TEXT];
  vyre__p_syntax(p, vyre__p_span(&token), "V034", fix,
                 "expected an element type, found %s",
                 vyre__p_found(p, &token, found));
  return false;
}

/* Reads @NUMBER. */
static bool read_binding(vyre__parser *p, vyre_buffer_decl *buffer) {
  if (!vyre__p_is(p, VYRE__T_AT)) {
    char fix[VYRE__FIX_TEXT];
    snprintf(fix, sizeof fix, "write @%zu, or another free number",
             p->buffer_count);
    vyre__p_syntax(p, vyre__p_behind(p), "V039", fix,
                   "'%.100s' needs a binding number: expected '@'",
                   buffer->name);
    return false;
  }
  vyre__p_advance(p);
  return vyre__p_constant(p, "V039", "a binding number", 0, UINT32_MAX,
                          &buffer->binding);
}

static bool read_access(vyre__parser *p, vyre_buffer_decl *buffer) {
  static const char *const words[] = {"read", "write", "read_write",
                                      "persistent"};
  buffer->kind = VYRE_MEMORY_GLOBAL;
  vyre__token word = p->now.token;
  if (vyre__p_text_is(p, &word, "persistent")) {
    buffer->kind = VYRE_MEMORY_PERSISTENT;
    vyre__p_advance(p);
    word = p->now.token;
  }
  for (unsigned i = VYRE_ACCESS_READ; i <= VYRE_ACCESS_READ_WRITE; i++) {
    buffer->access = (vyre_access)i;
    if (vyre__p_text_is(p, &word, vyre_access_name(buffer->access))) {
      vyre__p_advance(p);
      return true;
    }
  }
  char fix[VYRE__FIX_TEXT], found[VYRE__FOUND_TEXT];
  vyre__guess guess = vyre__guess_begin(p->text + word.start, word.length);
  const vyre__symbol *symbol = vyre__p_symbol(p, &word);
  if (word.kind == VYRE__T_NAME && symbol->word == VYRE__WORD_PLAIN) {
    vyre__guess_try_all(&guess, words, sizeof words / sizeof words[0]);
  }
  vyre__p_did_you_mean(&guess,
                       "write read, write or read_write before the type", fix);
  vyre__p_syntax(p, vyre__p_span(&word), "V040", fix,
                 "expected read, write or read_write, found %s",
                 vyre__p_found(p, &word, found));
  return false;
}

/* --- attributes ------------------------------------------------------------*/

typedef struct attributes_seen {
  bool output, live_out, align, coalesce, locality;
} attributes_seen;

static bool read_align(vyre__parser *p, vyre_buffer_decl *buffer) {
  vyre__token first = p->now.token;
  uint32_t bytes = 0;
  if (!vyre__p_constant(p, "V049", "an alignment", 1, 1u << 31, &bytes)) {
    return false;
  }
  if (bytes & (bytes - 1)) {
    vyre__p_error(p, vyre__p_since(p, &first), "V049",
                  "use 16, 64, 256 or another power of two",
                  "an alignment is a power of two, not %u", bytes);
    return true;
  }
  buffer->hints.preferred_alignment = bytes;
  return true;
}

/* Returns the index of the next token in @p words, or @p count after a
 * report. */
static unsigned read_choice(vyre__parser *p, const char *const *words,
                            unsigned count, const char *subject) {
  vyre__token word = p->now.token;
  for (unsigned i = 0; i < count; i++) {
    if (!vyre__p_text_is(p, &word, words[i])) continue;
    vyre__p_advance(p);
    return i;
  }
  char fix[VYRE__FIX_TEXT], found[VYRE__FOUND_TEXT];
  snprintf(fix, sizeof fix, "write %s, %s or %s", words[0], words[1], words[2]);
  vyre__p_syntax(p, vyre__p_span(&word), "V040", fix, "expected %s, found %s",
                 subject, vyre__p_found(p, &word, found));
  return count;
}

static bool read_argument(vyre__parser *p, const vyre__token *word,
                          vyre_buffer_decl *buffer) {
  static const char *const axes[] = {"x", "y", "z"};
  static const char *const localities[] = {"temporal", "streaming", "random"};
  vyre__token open = p->now.token;
  if (!vyre__p_expect(p, VYRE__T_LPAREN, "and a value after the attribute")) {
    return false;
  }
  if (vyre__p_text_is(p, word, "align")) {
    if (!read_align(p, buffer)) return false;
  } else if (vyre__p_text_is(p, word, "coalesce")) {
    unsigned axis = read_choice(p, axes, 3, "x, y or z");
    if (axis == 3) return false;
    buffer->hints.has_coalesce_axis = true;
    buffer->hints.coalesce_axis = (uint8_t)axis;
  } else {
    unsigned locality =
        read_choice(p, localities, 3, "temporal, streaming or random");
    if (locality == 3) return false;
    buffer->hints.cache_locality = (vyre_locality)locality;
  }
  return vyre__p_close(p, VYRE__T_RPAREN, &open);
}

static bool read_attribute(vyre__parser *p, vyre_buffer_decl *buffer,
                           attributes_seen *seen) {
  vyre__token word = p->now.token;
  struct {
    const char *name;
    bool *seen;
  } rows[] = {{"output", &seen->output},
              {"live_out", &seen->live_out},
              {"align", &seen->align},
              {"coalesce", &seen->coalesce},
              {"locality", &seen->locality}};
  vyre__guess guess = vyre__guess_begin(p->text + word.start, word.length);
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    vyre__guess_try(&guess, rows[i].name, strlen(rows[i].name));
    if (!vyre__p_text_is(p, &word, rows[i].name)) continue;
    vyre__p_advance(p);
    (void)vyre__p_repeated(p, &word, rows[i].seen);
    buffer->is_output = seen->output;
    buffer->pipeline_live_out = seen->live_out;
    return i < 2 || read_argument(p, &word, buffer);
  }
  char fix[VYRE__FIX_TEXT], found[VYRE__FOUND_TEXT];
  vyre__p_did_you_mean(
      &guess, "use output, live_out, align(N), coalesce(x) or locality(random)",
      fix);
  vyre__p_syntax(p, vyre__p_span(&word), "V040", fix,
                 "%s is not an attribute of a buffer",
                 vyre__p_found(p, &word, found));
  return false;
}

/* --- declarations ----------------------------------------------------------*/

const char *vyre__p_copy_name(vyre__parser *p, const vyre__token *name) {
  char *copy = vyre_arena_alloc(&p->arena, name->length + 1, 1);
  if (!copy) {
    p->out_of_memory = true;
    return "";
  }
  memcpy(copy, p->text + name->start, name->length);
  copy[name->length] = '\0';
  return copy;
}

/* Reports f32[8][8]. @p type is the token of the element type. */
static bool report_dimensions(vyre__parser *p, const vyre__token *type) {
  char fix[VYRE__FIX_TEXT];
  const vyre__token before = p->now.previous; /* the first ']' */
  const uint32_t start = type->start + type->length + 1;
  const int length = before.start > start && before.start - start < 40
                         ? (int)(before.start - start)
                         : 0;
  const vyre__token open = p->now.token;
  vyre__p_advance(p);
  const vyre__token size = p->now.token;
  snprintf(fix, sizeof fix, "write both in one bracket: %.*s[%.*s, %.*s]",
           (int)type->length, p->text + type->start, length, p->text + start,
           size.length < 40 ? (int)size.length : 0, p->text + size.start);
  vyre__p_syntax(p, vyre__p_span(&open), "V041", fix,
                 "the dimensions of a buffer are in one bracket");
  return false;
}

/* Reads the rest after "buffer x :", "uniform x :" or "shared x :". */
static bool read_rest(vyre__parser *p, unsigned keyword,
                      vyre_buffer_decl *buffer) {
  vyre__token type;
  if (keyword == VYRE__T_BUFFER && !read_access(p, buffer)) return false;
  type = p->now.token;
  if (!vyre__p_element(p, buffer)) return false;
  bool has_count = vyre__p_is(p, VYRE__T_LBRACKET);
  if (has_count && !vyre__p_dimensions(p, buffer)) return false;
  if (has_count && vyre__p_is(p, VYRE__T_LBRACKET)) {
    return report_dimensions(p, &type);
  }
  if (!has_count && keyword == VYRE__T_UNIFORM) buffer->count = 1;
  if (buffer->element == VYRE_ELEMENT_BYTES &&
      (buffer->count > 0 || buffer->dimension_count > 0)) {
    vyre__p_error(p, vyre__p_since(p, &type), "V048",
                  "use u8 with a number of elements, or bytes[]",
                  "a buffer of bytes has no element count");
    buffer->count = 0;
    buffer->dimension_count = buffer->dimension_uniforms = 0;
    memset(buffer->dimensions, 0, sizeof buffer->dimensions);
  }
  if (!has_count && keyword != VYRE__T_UNIFORM) {
    vyre__p_error(p, vyre__p_span(&type), "V041",
                  keyword == VYRE__T_SHARED
                      ? "write the number of elements: u32[1]"
                      : "write [] after the type, or use uniform for one value",
                  "'%.100s' needs an element count or []", buffer->name);
    buffer->count = 1;
  }
  if (keyword == VYRE__T_SHARED && vyre__p_is(p, VYRE__T_AT)) {
    uint32_t ignored;
    vyre__p_error(p, vyre__p_span(&p->now.token), "V039",
                  "remove '@' and the number", "shared memory has no binding");
    vyre__p_advance(p);
    (void)vyre__p_constant(p, "V039", "a binding number", 0, UINT32_MAX,
                           &ignored);
  } else if (keyword != VYRE__T_SHARED && !read_binding(p, buffer)) {
    return false;
  }
  attributes_seen seen = {0};
  while (vyre__p_is(p, VYRE__T_NAME) && !p->now.panic) {
    if (!read_attribute(p, buffer, &seen)) return false;
  }
  return true;
}

static void add_buffer(vyre__parser *p, const vyre__token *name,
                       const vyre_buffer_decl *buffer) {
  void *buffers = p->buffers;
  if (!vyre__reserve(p->allocator, &buffers, &p->buffer_capacity,
                     p->buffer_count + 1, sizeof *p->buffers, false)) {
    p->out_of_memory = true;
    return;
  }
  p->buffers = buffers;
  p->buffers[p->buffer_count++] = *buffer;
  vyre__p_bind(p, name, VYRE__BIND_BUFFER, (uint32_t)p->buffer_count - 1);
}

static void read_declaration(vyre__parser *p) {
  unsigned keyword = vyre__p_kind(p);
  uint32_t start = p->now.token.start;
  vyre__token name;
  vyre_buffer_decl buffer = {.kind = VYRE_MEMORY_GLOBAL};
  if (keyword == VYRE__T_UNIFORM) {
    buffer.kind = VYRE_MEMORY_UNIFORM;
    buffer.access = VYRE_ACCESS_UNIFORM;
  } else if (keyword == VYRE__T_SHARED) {
    buffer.kind = VYRE_MEMORY_SHARED;
    buffer.access = VYRE_ACCESS_WORKGROUP;
  }
  if (keyword != VYRE__T_BUFFER && vyre__p_foreign_memory(p)) {
    vyre__p_recover(p, start);
    return;
  }
  vyre__p_advance(p);
  if (vyre__p_new_name(p, "a buffer", &name)) {
    vyre__p_check_free(p, &name);
    buffer.name = vyre__p_copy_name(p, &name);
    bool good =
        vyre__p_expect(p, VYRE__T_COLON, "after the name of a buffer") &&
        read_rest(p, keyword, &buffer);
    if (good) {
      add_buffer(p, &name, &buffer);
      vyre__p_semicolon(p, "a declaration");
    } else {
      vyre__p_bind(p, &name, VYRE__BIND_WRONG, 0);
      p->now.panic = true;
    }
  } else {
    vyre__p_bind_word(p, &name);
    p->now.panic = true;
  }
  if (p->now.panic) vyre__p_recover(p, start);
}

/* --- kernels ---------------------------------------------------------------*/

/* Reports two buffers with one binding number. Index in bindings is the index
 * in the symbol table, which has the source locations of the declarations. */
static void check_bindings(vyre__parser *p, size_t scope) {
  size_t count = 0;
  vyre__sort_item *items =
      vyre__arena_array(&p->arena, p->buffer_count, sizeof *items);
  if (!items) {
    p->out_of_memory = true;
    return;
  }
  for (size_t i = scope; i < p->binding_count; i++) {
    if (p->bindings[i].kind != VYRE__BIND_BUFFER) continue;
    const vyre_buffer_decl *buffer = &p->buffers[p->bindings[i].index];
    if (buffer->kind == VYRE_MEMORY_SHARED) continue;
    items[count++] = (vyre__sort_item){buffer->binding, i};
  }
  vyre__sort(items, count);
  for (size_t i = 1; i < count; i++) {
    if (items[i].key != items[i - 1].key) continue;
    const vyre__binding *again = &p->bindings[items[i].tie];
    const vyre__binding *first = &p->bindings[items[i - 1].tie];
    vyre__p_error2(
        p, again->span, "V038", first->span, "first use",
        "use a different number for each buffer",
        "'%.100s' has binding %u, like '%.100s'", p->buffers[again->index].name,
        p->buffers[again->index].binding, p->buffers[first->index].name);
  }
}

static uint32_t find_over(vyre__parser *p, const vyre__token *over) {
  if (over->kind == VYRE__T_END) return VYRE_NO_INDEX;
  const vyre__symbol *symbol = vyre__p_symbol(p, over);
  const vyre__binding *binding =
      symbol->local ? &p->bindings[symbol->local - 1] : NULL;
  if (binding && binding->kind == VYRE__BIND_WRONG) return VYRE_NO_INDEX;
  if (!binding) {
    char fix[VYRE__FIX_TEXT];
    vyre__guess guess = vyre__guess_begin(symbol->text, symbol->length);
    for (size_t i = 0; i < p->buffer_count; i++) {
      vyre__guess_try(&guess, p->buffers[i].name, strlen(p->buffers[i].name));
    }
    vyre__p_error(p, vyre__p_span(over), "V043",
                  vyre__p_did_you_mean(
                      &guess, "use the name of a buffer of this kernel", fix),
                  "over() needs a buffer of this kernel");
    return VYRE_NO_INDEX;
  }
  vyre_memory kind = p->buffers[binding->index].kind;
  if (kind == VYRE_MEMORY_UNIFORM || kind == VYRE_MEMORY_SHARED) {
    vyre__p_error2(p, vyre__p_span(over), "V043", binding->span,
                   "declared here",
                   "use a buffer that is neither uniform nor shared",
                   "the grid cannot cover '%.*s': it is %s",
                   (int)symbol->length, symbol->text, vyre_memory_name(kind));
    return VYRE_NO_INDEX;
  }
  return binding->index;
}

/* Skips a clause with an error. */
static void skip_clause(vyre__parser *p) {
  unsigned kind = vyre__p_kind(p);
  while (kind != VYRE__T_BUFFER && kind != VYRE__T_UNIFORM &&
         kind != VYRE__T_SHARED && kind != VYRE__T_LBRACE &&
         kind != VYRE__T_RBRACE && kind != VYRE__T_END &&
         !vyre__p_is_item(kind)) {
    vyre__p_advance(p);
    kind = vyre__p_kind(p);
  }
  p->now.panic = false;
}

static void read_head(vyre__parser *p, kernel_head *head) {
  if (vyre__p_is(p, VYRE__T_LPAREN)) {
    vyre__p_syntax(p, vyre__p_span(&p->now.token), "V013",
                   "declare buffers after the name: buffer x : read f32[] @0;",
                   "a kernel has no parameters");
    while (!vyre__p_is(p, VYRE__T_LBRACE) && !vyre__p_is(p, VYRE__T_END) &&
           !vyre__p_is_item(vyre__p_kind(p)) &&
           !vyre__p_is(p, VYRE__T_BUFFER)) {
      vyre__p_advance(p);
    }
    p->now.panic = false;
  }
  for (;;) {
    unsigned kind = vyre__p_kind(p);
    if (kind == VYRE__T_BUFFER || kind == VYRE__T_UNIFORM ||
        kind == VYRE__T_SHARED) {
      read_declaration(p);
    } else if (kind == VYRE__T_NAME) {
      if (!read_clause(p, head)) skip_clause(p);
    } else if (kind == VYRE__T_SEMICOLON) {
      vyre__p_error(p, vyre__p_span(&p->now.token), "V013", "remove it",
                    "no ';' here: the kernel's header continues");
      vyre__p_advance(p);
    } else {
      break;
    }
  }
}

/* Returns NULL if memory is exhausted. */
static vyre__read_kernel *add_kernel(vyre__parser *p,
                                     vyre__parsed_kernel *kernel) {
  if (!vyre__reserve(p->allocator, &p->kernels, &p->kernel_capacity,
                     p->kernel_count + 1, sizeof *p->kernels, false)) {
    p->out_of_memory = true;
    return NULL;
  }
  p->kernels[p->kernel_count] = (vyre__read_kernel){NULL, kernel};
  return &p->kernels[p->kernel_count++];
}

static bool make_kernel(vyre__parser *p, const vyre__token *name,
                        const kernel_head *head, uint32_t over,
                        vyre__parsed_kernel *kernel) {
  vyre_buffer_decl *buffers =
      vyre__arena_array(&p->arena, p->buffer_count, sizeof *buffers);
  vyre__source_loc *places =
      vyre__arena_array(&p->arena, p->buffer_count, sizeof *places);
  if (!buffers || !places) {
    p->out_of_memory = true;
    return false;
  }
  for (size_t i = 0; i < p->binding_count; i++) {
    const vyre__binding *binding = &p->bindings[i];
    if (binding->kind != VYRE__BIND_BUFFER) continue;
    places[binding->index] = binding->span.place;
  }
  if (p->buffer_count > 0) {
    memcpy(buffers, p->buffers, p->buffer_count * sizeof *buffers);
  }
  *kernel =
      (vyre__parsed_kernel){.head = {.name = vyre__p_copy_name(p, name),
                                     .file = p->file,
                                     .files = p->files,
                                     .buffers = buffers,
                                     .buffer_places = places,
                                     .buffer_count = (uint32_t)p->buffer_count,
                                     .over = over,
                                     .has_good_names = true}};
  memcpy(kernel->head.workgroup, head->workgroup, sizeof head->workgroup);
  return true;
}

/* Canonicalises a kernel directly after parsing and frees its nodes. A kernel
 * that calls a fn further down waits for the end of the file. */
static void canonicalize_early(vyre__parser *p, vyre__read_kernel *kernel,
                               vyre__arena_mark head,
                               vyre__ir_builder_mark body) {
  vyre__ir_builder *m = &p->ir;
  if (p->index) return; /* it lists the nodes */
  if (m->error_count > 0 || m->out_of_memory || p->out_of_memory) return;
  const uint32_t function = kernel->parsed->function;
  vyre_code code = vyre__canonicalize(m, function, &kernel->parsed->head,
                                      p->allocator, &kernel->program, NULL);
  if (code == VYRE_OUT_OF_MEMORY) p->out_of_memory = true;
  if (code != VYRE_OK) return;
  kernel->parsed = NULL;
  vyre__ir_builder_drop(m, function, body);
  vyre__arena_rewind(&p->arena, head);
}

void vyre__p_kernel(vyre__parser *p, vyre__item *item) {
  vyre__token name;
  kernel_head head = {.workgroup = {1, 1, 1}, .over = {.kind = VYRE__T_END}};
  size_t scope = p->binding_count;
  vyre__arena_mark before = vyre__arena_here(&p->arena);
  vyre__parsed_kernel *kernel = vyre_arena_alloc(&p->arena, sizeof *kernel, 0);
  if (!kernel) {
    p->out_of_memory = true;
    return;
  }
  p->buffer_count = p->dimension_count = 0;
  vyre__p_advance(p);
  if (vyre__p_text_is(p, &p->now.token, "void") && vyre__p_foreign_kernel(p)) {
    while (!vyre__p_is(p, VYRE__T_LBRACE) && !vyre__p_ends_block(p)) {
      vyre__p_advance(p);
    }
    if (vyre__p_is(p, VYRE__T_LBRACE)) vyre__p_skip_group(p);
    return;
  }
  if (!vyre__p_new_name(p, "a kernel", &name)) name = p->now.token;
  const vyre__symbol *symbol = &p->symbols.items[item->symbol];
  const vyre__item *first = symbol->item ? &p->items[symbol->item - 1] : item;
  if (first != item && symbol->item) {
    vyre__p_error2(p, item->span, "V031", first->span, "declared here",
                   "use another name, or remove one of them",
                   "'%.*s' is already the name of a %s", (int)symbol->length,
                   symbol->text, vyre__token_text(first->kind));
  }
  read_head(p, &head);
  vyre__p_dimensions_finish(p);
  check_bindings(p, scope);
  uint32_t over = find_over(p, &head.over);
  vyre__queue_clauses queue;
  const bool is_queue = vyre__p_queue_finish(p, &head.queue, &queue);
  if (!make_kernel(p, &name, &head, over, kernel)) return;
  kernel->queue = queue;
  if (is_queue) kernel->head.queue = &kernel->queue;
  p->ir.place = item->span.place;
  p->ir.length = item->span.length;
  kernel->function = vyre__kernel_begin(&p->ir, &kernel->head);
  vyre__ir_builder_mark mark = vyre__ir_builder_here(&p->ir);
  vyre__function_end(&p->ir, vyre__p_body(p));
  vyre__p_queue_parts(p, &head.queue, &kernel->head, &kernel->queue);
  vyre__p_unbind(p, scope);
  vyre__read_kernel *read = add_kernel(p, kernel);
  if (read) canonicalize_early(p, read, before, mark);
  p->buffer_count = 0; /* no later fn may use them; their names may be freed */
}
