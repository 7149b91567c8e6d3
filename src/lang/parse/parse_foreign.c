/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parser: constructs of CUDA, OpenCL C, WGSL, GLSL, HLSL, ispc and C that this
 * language writes differently. The functions scan ahead with a copy of the
 * lexer, so that a diagnostic can show the same declaration in this
 * language. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lang/parse/parse.h"

/* --- scanning --------------------------------------------------------------*/

/* Tokens from the current one on. Keywords are plain names here. */
typedef struct scan {
  vyre__lexer lexer;
  vyre__token token;
  uint32_t end; /* of the last token consumed */
} scan;

static scan scan_from(const vyre__parser *p) {
  scan s = {.lexer = p->now.lexer, .token = p->now.token};
  s.lexer.symbols = NULL;
  s.lexer.at = p->now.token.start;
  s.lexer.line = p->now.token.line;
  s.lexer.line_start = p->now.token.start - (p->now.token.column - 1);
  s.token = vyre__lex(&s.lexer);
  return s;
}

static void next(scan *s) {
  s->end = s->token.start + s->token.length;
  s->token = vyre__lex(&s->lexer);
}

static bool is_word(const scan *s, const char *word) {
  return s->token.kind == VYRE__T_NAME && s->token.length == strlen(word) &&
         memcmp(s->lexer.text + s->token.start, word, s->token.length) == 0;
}

static bool take(scan *s, unsigned kind) {
  if (s->token.kind != kind) return false;
  next(s);
  return true;
}

/* --- texts -----------------------------------------------------------------*/

typedef struct line_text {
  char text[VYRE__FIX_TEXT];
  size_t length;
  bool is_full;
} line_text;

VYRE__PRINTF(2, 3) static void put(line_text *t, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(t->text + t->length, sizeof t->text - t->length,
                         format, arguments);
  va_end(arguments);
  t->length += length > 0 ? (size_t)length : 0;
  if (t->length < sizeof t->text) return;
  t->length = sizeof t->text - 1;
  t->is_full = true;
}

static void put_token(line_text *t, const vyre__parser *p,
                      const vyre__token *token) {
  put(t, "%.*s", (int)token->length, p->text + token->start);
}

/* --- declarations in the syntax of C ---------------------------------------*/

enum { MAX_SIZES = 4, MAX_PARAMETERS = 16 };

/* Declaration such as `__shared__ const float t[64]`. */
typedef struct c_declaration {
  vyre__token first, name;
  bool is_const, is_pointer, is_uniform, is_void, is_auto;
  unsigned kind;       /* vyre__foreign_kind of the last word with one */
  const char *type;    /* type of values; NULL for auto and void */
  const char *element; /* type of elements in memory */
  vyre__token sizes[MAX_SIZES]; /* one token each */
  unsigned size_count;
  bool has_open_size; /* [] */
  vyre__token last;   /* of the name and the sizes */
} c_declaration;

/* Finds a type of this language. */
static const char *own_type(const scan *s) {
  for (size_t i = 0; i < vyre__reserved_word_count; i++) {
    const vyre__reserved_word *row = &vyre__reserved_words[i];
    if ((row->word == VYRE__WORD_TYPE || row->word == VYRE__WORD_ELEMENT) &&
        is_word(s, row->text)) {
      return row->text;
    }
  }
  return NULL;
}

/* Adds a type word: unsigned and long change the word before or after them. */
static void add_type(c_declaration *d, const char *value, const char *element,
                     bool is_unsigned, bool is_plain) {
  static const char *const both[][2] = {
      {"i32", "u32"}, {"i64", "u64"}, {"i16", "u16"}, {"i8", "u8"}};
  const char *before = d->type;
  bool was_unsigned = before && before[0] == 'u';
  if (!before || !is_plain || strcmp(before, "f32") == 0) {
    d->type = value;
    d->element = element;
  }
  if (!was_unsigned && !(is_unsigned && before)) return;
  for (size_t i = 0; i < sizeof both / sizeof both[0]; i++) {
    if (strcmp(d->type, both[i][0]) == 0) d->type = both[i][1];
    if (strcmp(d->element, both[i][0]) == 0) d->element = both[i][1];
  }
}

/* Reads a word before the name of a declaration. Returns false if it is the
 * name. */
static bool read_c_word(const vyre__parser *p, const scan *s,
                        c_declaration *d) {
  const char *text = p->text + s->token.start;
  const uint32_t length = s->token.length;
  const vyre__foreign *row = vyre__foreign_find(text, length);
  if (row && row->kind >= VYRE__FOREIGN_QUALIFIER) {
    if (row->kind != VYRE__FOREIGN_QUALIFIER) d->kind = row->kind;
    d->is_const = d->is_const || is_word(s, "constexpr");
    return true;
  }
  if (is_word(s, "const")) return d->is_const = true;
  if (is_word(s, "uniform")) return d->is_uniform = true;
  if (is_word(s, "auto")) return d->is_auto = true;
  if (is_word(s, "void")) return d->is_void = true;
  if (is_word(s, "shared") || is_word(s, "kernel")) {
    d->kind =
        is_word(s, "shared") ? VYRE__FOREIGN_SHARED : VYRE__FOREIGN_KERNEL;
    return true;
  }
  const char *own = own_type(s);
  if (own) {
    d->type = d->element = own;
    return true;
  }
  const char *value = vyre__foreign_type(text, length);
  if (!value) return false;
  const char *element = vyre__foreign_element(text, length);
  add_type(d, value, element ? element : value, is_word(s, "unsigned"),
           is_word(s, "int") || is_word(s, "unsigned") || is_word(s, "signed"));
  return true;
}

/* Reads a declaration up to the token after its name and sizes. Returns false
 * for other tokens. */
static bool read_c_declaration(const vyre__parser *p, scan *s,
                               c_declaration *d) {
  *d = (c_declaration){.first = s->token};
  while (s->token.kind == VYRE__T_NAME && read_c_word(p, s, d)) next(s);
  const bool has_type = d->type || d->is_auto || d->is_void;
  while (s->token.kind == VYRE__T_STAR || s->token.kind == VYRE__T_AMP ||
         (d->is_pointer && s->token.kind == VYRE__T_NAME &&
          read_c_word(p, s, d))) {
    d->is_pointer = true;
    next(s);
  }
  if (!has_type || s->token.kind != VYRE__T_NAME) return false;
  d->name = d->last = s->token;
  next(s);
  while (take(s, VYRE__T_LBRACKET)) {
    if (s->token.kind == VYRE__T_RBRACKET) {
      d->has_open_size = true;
    } else if (d->size_count < MAX_SIZES) {
      d->sizes[d->size_count++] = s->token;
      next(s);
    }
    d->last = s->token;
    if (!take(s, VYRE__T_RBRACKET)) return false;
  }
  return true;
}

/* Appends "NAME : TYPE[SIZE]". */
static void put_memory(line_text *t, const vyre__parser *p,
                       const c_declaration *d) {
  put_token(t, p, &d->name);
  put(t, " : %s[", d->element ? d->element : "f32");
  for (unsigned i = 0; i < d->size_count; i++) {
    if (i > 0) put(t, ", ");
    put_token(t, p, &d->sizes[i]);
  }
  if (d->size_count == 0) put(t, "64");
  put(t, "]");
}

/* Makes "declare it in the kernel's header: shared t : f32[64];". */
static void fix_shared(line_text *fix, const vyre__parser *p,
                       const c_declaration *d) {
  put(fix, "declare it in the kernel's header: shared ");
  put_memory(fix, p, d);
  put(fix, ";");
}

/* Returns the type of the elements of an array. */
static const char *array_type(const c_declaration *d) {
  return d->type ? d->type : "f32";
}

/* Appends "NAME : f32[16]" or, for a parameter, "NAME: f32[16]". */
static void put_array(line_text *t, const vyre__parser *p,
                      const c_declaration *d, const char *colon) {
  put_token(t, p, &d->name);
  put(t, "%s%s[", colon, array_type(d));
  for (unsigned i = 0; i < d->size_count; i++) {
    if (i > 0) put(t, " * ");
    put_token(t, p, &d->sizes[i]);
  }
  put(t, "]");
}

/* Appends a parameter of a fn. */
static void put_parameter(line_text *t, const vyre__parser *p,
                          const c_declaration *d) {
  const bool is_read = d->is_const || d->kind == VYRE__FOREIGN_CONSTANT;
  if (d->is_pointer || d->has_open_size) {
    put_token(t, p, &d->name);
    put(t, ": %s %s[]", is_read ? "read" : "read_write",
        d->element ? d->element : "u8");
  } else if (d->size_count > 0) {
    if (!is_read) put(t, "var ");
    put_array(t, p, d, ": ");
  } else {
    put_token(t, p, &d->name);
    put(t, ": %s", d->type);
  }
}

/* Moves the parser to a token that was scanned. */
static void advance_to(vyre__parser *p, uint32_t start) {
  while (p->now.token.start < start && !vyre__p_is(p, VYRE__T_END)) {
    vyre__p_advance(p);
  }
}

/* --- functions and kernels -------------------------------------------------*/

/* Appends a parameter of a kernel as a declaration of its header. */
static void put_kernel_parameter(line_text *t, const vyre__parser *p,
                                 const c_declaration *d, unsigned binding) {
  const bool is_memory = d->is_pointer || d->size_count || d->has_open_size;
  const char *element = d->element ? d->element : "u8";
  if (d->kind == VYRE__FOREIGN_SHARED) {
    put(t, " shared ");
    put_memory(t, p, d);
    put(t, ";");
    return;
  }
  put(t, is_memory ? " buffer " : " uniform ");
  put_token(t, p, &d->name);
  if (is_memory) {
    const bool is_read = d->is_const || d->kind == VYRE__FOREIGN_CONSTANT;
    put(t, " : %s %s[] @%u;", is_read ? "read" : "read_write", element,
        binding);
  } else {
    put(t, " : %s @%u;", element, binding);
  }
}

/* Appends "kernel NAME workgroup(64)" with its buffers, or "fn NAME(a: f32) ->
 * f32", for a C function. Stores the bracket at the end of the parameters.
 * Returns false if a parameter is not understood. */
static bool put_function(line_text *t, const vyre__parser *p, scan *s,
                         const c_declaration *d, bool is_kernel,
                         vyre__token *end) {
  unsigned binding = 0, count = 0;
  put(t, is_kernel ? "kernel " : "fn ");
  put_token(t, p, &d->name);
  put(t, is_kernel ? " workgroup(64)" : "(");
  next(s);
  if (is_word(s, "void")) next(s);
  while (s->token.kind != VYRE__T_RPAREN) {
    c_declaration parameter;
    if (!read_c_declaration(p, s, &parameter)) return false;
    if (is_kernel) {
      put_kernel_parameter(t, p, &parameter, binding);
      binding += parameter.kind != VYRE__FOREIGN_SHARED;
    } else {
      if (!parameter.type) return false;
      put(t, count ? ", " : "");
      put_parameter(t, p, &parameter);
    }
    count++;
    if (!take(s, VYRE__T_COMMA) && s->token.kind != VYRE__T_RPAREN) {
      return false;
    }
  }
  *end = s->token;
  if (!is_kernel) put(t, d->type ? ") -> %s" : ")", d->type);
  return !t->is_full;
}

/* Reports a function in the syntax of C. */
static void report_function(vyre__parser *p, scan *s, const c_declaration *d,
                            const char *message) {
  const bool is_kernel =
      d->kind == VYRE__FOREIGN_KERNEL ||
      (d->is_void && d->kind != VYRE__FOREIGN_FUNCTION && s->token.kind);
  line_text text = {.length = 0};
  vyre__token end;
  char fix[VYRE__FIX_TEXT + 8];
  if (put_function(&text, p, s, d, is_kernel, &end)) {
    snprintf(fix, sizeof fix, "write %s", text.text);
    if (end.line == d->first.line) {
      const bool has_keyword = p->now.previous.kind == VYRE__T_KERNEL;
      vyre__p_edit(p, vyre__p_between(&d->first, &end), "%s",
                   text.text + (has_keyword ? strlen("kernel ") : 0));
    }
  } else {
    snprintf(fix, sizeof fix, "%s",
             is_kernel ? "write kernel name workgroup(64), and a declaration "
                         "for each parameter: buffer x : read f32[] @0;"
                       : "write fn name(a: f32, x: read f32[]) -> f32 { ... }, "
                         "without -> if it has no result");
  }
  vyre__p_error(p, vyre__p_span(&d->first), "V016", fix, "%s", message);
  advance_to(p, s->token.start);
}

/* --- WGSL ------------------------------------------------------------------*/

/* Returns the type of a WGSL type, or NULL: f32, vec4f, vec4<f32>,
 * atomic<u32>. */
static const char *read_wgsl_type(const vyre__parser *p, scan *s) {
  char name[8];
  vyre__token outer = s->token;
  const char *own = own_type(s);
  const char *type =
      own ? own : vyre__foreign_type(p->text + outer.start, outer.length);
  const bool is_atomic = is_word(s, "atomic");
  if (outer.kind != VYRE__T_NAME) return NULL;
  next(s);
  if (!take(s, VYRE__T_LT)) return type;
  const char *inner = own_type(s);
  next(s);
  if (!inner || !take(s, VYRE__T_GT)) return NULL;
  if (is_atomic) return inner;
  if (outer.length != 4 || memcmp(p->text + outer.start, "vec", 3) != 0) {
    return NULL;
  }
  const int length =
      snprintf(name, sizeof name, "%sx%c", inner, p->text[outer.start + 3]);
  for (size_t i = 0; i < vyre__reserved_word_count; i++) {
    const vyre__reserved_word *row = &vyre__reserved_words[i];
    if (row->length == (size_t)length &&
        memcmp(row->text, name, (size_t)length) == 0) {
      return row->text;
    }
  }
  return NULL;
}

/* Reads array<T, N> or T. Appends "T[N]", "T[]" or "T". */
static bool put_wgsl_type(line_text *t, const vyre__parser *p, scan *s,
                          bool is_shared) {
  const bool is_array = is_word(s, "array");
  if (is_array) {
    next(s);
    if (!take(s, VYRE__T_LT)) return false;
  }
  const char *type = read_wgsl_type(p, s);
  if (!type) return false;
  put(t, "%s", type);
  if (!is_array) {
    if (is_shared) put(t, "[1]");
    return true;
  }
  put(t, "[");
  if (take(s, VYRE__T_COMMA)) {
    put_token(t, p, &s->token);
    next(s);
  }
  put(t, "]");
  return take(s, VYRE__T_GT);
}

/* Reads @group(0) @binding(1) and the like. Stores the number of the binding
 * and the arguments of the workgroup size. */
static void read_attributes(scan *s, vyre__token *binding, vyre__token *size) {
  while (take(s, VYRE__T_AT)) {
    const bool is_binding = is_word(s, "binding");
    const bool is_size = is_word(s, "workgroup_size");
    next(s);
    if (s->token.kind != VYRE__T_LPAREN) continue;
    next(s);
    const vyre__token first = s->token;
    if (is_binding) *binding = first;
    while (s->token.kind != VYRE__T_RPAREN && s->token.kind != VYRE__T_END) {
      next(s);
    }
    if (is_size) {
      *size = first;
      size->length = s->token.start - first.start;
    }
    next(s);
  }
}

/* Makes the declaration of `var<storage, read> z : array<f32>`. */
static bool put_wgsl_variable(line_text *t, const vyre__parser *p, scan *s,
                              const vyre__token *binding) {
  const bool is_shared = is_word(s, "workgroup");
  const bool is_uniform = is_word(s, "uniform");
  bool is_written = false;
  if (!is_shared && !is_uniform && !is_word(s, "storage")) return false;
  next(s);
  if (take(s, VYRE__T_COMMA)) {
    is_written = !is_word(s, "read");
    next(s);
  }
  if (!take(s, VYRE__T_GT) || s->token.kind != VYRE__T_NAME) return false;
  put(t, is_shared ? "shared " : is_uniform ? "uniform " : "buffer ");
  put_token(t, p, &s->token);
  next(s);
  if (!take(s, VYRE__T_COLON)) return false;
  put(t, is_shared || is_uniform ? " : "
         : is_written            ? " : read_write "
                                 : " : read ");
  if (!put_wgsl_type(t, p, s, is_shared)) return false;
  if (!is_shared) {
    put(t, " @");
    if (binding->kind == VYRE__T_NUMBER) {
      put_token(t, p, binding);
    } else {
      put(t, "0");
    }
  }
  put(t, ";");
  return !t->is_full;
}

/* Makes the fix for a declaration of WGSL, which begins with @ or var<. */
static bool fix_wgsl(line_text *fix, const vyre__parser *p, scan *s) {
  vyre__token binding = {.kind = VYRE__T_END};
  vyre__token size = {.length = 0};
  line_text text = {.length = 0};
  read_attributes(s, &binding, &size);
  if (is_word(s, "var")) {
    next(s);
    if (!take(s, VYRE__T_LT)) return false;
    if (!put_wgsl_variable(&text, p, s, &binding)) {
      put(fix,
          "declare it in the kernel's header: buffer x : read f32[] @0; "
          "or shared x : f32[64];");
    } else {
      put(fix, "declare it in the kernel's header: %s", text.text);
    }
    return true;
  }
  if (!is_word(s, "fn")) return false;
  next(s);
  put(fix, "write kernel ");
  put_token(fix, p, &s->token);
  put(fix, " workgroup(%.*s)", size.length ? (int)size.length : 2,
      size.length ? p->text + size.start : "64");
  return true;
}

/* --- the file --------------------------------------------------------------*/

/* Makes the fix for a declaration at the level of the file. */
static bool fix_item(line_text *fix, vyre__parser *p, const c_declaration *d,
                     const vyre__token *end) {
  if (d->kind == VYRE__FOREIGN_SHARED) {
    fix_shared(fix, p, d);
  } else if (d->is_uniform && d->element) {
    put(fix, "declare it in the kernel's header: uniform ");
    put_token(fix, p, &d->name);
    put(fix, " : %s @0;", d->element);
  } else if (d->size_count > 0 || d->has_open_size) {
    put(fix, "write const ");
    put_array(fix, p, d, " : ");
    vyre__p_edit(p, vyre__p_between(&d->first, end), "%s",
                 fix->text + strlen("write "));
    put(fix, " = {x, y};");
  } else if (d->type || d->is_auto) {
    put(fix, "write const ");
    put_token(fix, p, &d->name);
    if (d->type) put(fix, " : %s", d->type);
    vyre__p_edit(p, vyre__p_between(&d->first, &d->name), "%s",
                 fix->text + strlen("write "));
    put(fix, " = value;");
  }
  return fix->length > 0;
}

bool vyre__p_foreign_item(vyre__parser *p) {
  scan s = scan_from(p);
  c_declaration d;
  line_text fix = {.length = 0};
  char message[128], found[VYRE__FOUND_TEXT];
  snprintf(message, sizeof message, "expected const, fn or kernel, found %s",
           vyre__p_found(p, &p->now.token, found));
  if (s.token.kind == VYRE__T_AT || is_word(&s, "var")) {
    if (!fix_wgsl(&fix, p, &s)) return false;
  } else if (is_word(&s, "let")) {
    vyre__p_edit(p, vyre__p_span(&p->now.token), "const");
    put(&fix, "write const NAME = value;");
  } else if (s.token.kind == VYRE__T_LBRACKET) { /* HLSL */
    next(&s);
    if (!is_word(&s, "numthreads")) return false;
    put(&fix, "write kernel name workgroup(64)");
  } else {
    if (!read_c_declaration(p, &s, &d)) return false;
    if (s.token.kind == VYRE__T_LPAREN) {
      report_function(p, &s, &d, message);
      return true;
    }
    if (!fix_item(&fix, p, &d, &d.last)) return false;
  }
  vyre__p_error(p, vyre__p_span(&p->now.token), "V016", fix.text, "%s",
                message);
  const bool is_wgsl = p->now.token.kind == VYRE__T_AT;
  advance_to(p, s.token.start);
  if (is_wgsl) { /* @compute fn main() { } */
    while (!vyre__p_is(p, VYRE__T_LBRACE) && !vyre__p_ends_block(p) &&
           !vyre__p_is(p, VYRE__T_SEMICOLON)) {
      vyre__p_advance(p);
    }
    if (vyre__p_is(p, VYRE__T_LBRACE)) vyre__p_skip_group(p);
  }
  return true;
}

void vyre__p_foreign_const(vyre__parser *p) {
  scan s = scan_from(p);
  c_declaration d;
  line_text fix = {.length = 0};
  if (!read_c_declaration(p, &s, &d)) {
    vyre__p_error(p, vyre__p_span(&p->now.token), "V018",
                  "write const NAME : u32 = value;, or omit the type",
                  "the type of a const comes after its name");
    vyre__p_advance(p);
    return;
  }
  if (d.size_count > 0 || d.has_open_size) {
    put(&fix, "write const ");
    put_array(&fix, p, &d, " : ");
    vyre__p_edit(p, vyre__p_between(&d.first, &d.last), "%s",
                 fix.text + strlen("write const "));
    put(&fix, " = {x, y};");
    vyre__p_error(p, vyre__p_span(&d.first), "V018", fix.text,
                  "the type of a const comes after its name");
    vyre__p_skip_to_semicolon(p);
    p->now.panic = true;
    return;
  } else {
    put(&fix, "write const ");
    put_token(&fix, p, &d.name);
    if (d.type) put(&fix, " : %s", d.type);
    vyre__p_edit(p, vyre__p_between(&d.first, &d.name), "%s",
                 fix.text + strlen("write const "));
    put(&fix, " = value;");
  }
  vyre__p_error(p, vyre__p_span(&d.first), "V018", fix.text,
                "the type of a const comes after its name");
  advance_to(p, d.name.start);
}

bool vyre__p_foreign_kernel(vyre__parser *p) {
  scan s = scan_from(p);
  c_declaration d;
  if (!read_c_declaration(p, &s, &d) || !d.is_void ||
      s.token.kind != VYRE__T_LPAREN) {
    return false;
  }
  report_function(p, &s, &d,
                  "a kernel has no result, and no parameters in parentheses");
  return true;
}

bool vyre__p_foreign_memory(vyre__parser *p) {
  scan s = scan_from(p);
  c_declaration d;
  line_text fix = {.length = 0};
  if (!read_c_declaration(p, &s, &d) || d.is_pointer) return false;
  if (d.kind == VYRE__FOREIGN_SHARED) {
    put(&fix, "write shared ");
    put_memory(&fix, p, &d);
  } else if (d.is_uniform) {
    put(&fix, "write uniform ");
    put_token(&fix, p, &d.name);
    put(&fix, " : %s @0", d.element);
  } else {
    return false;
  }
  if (d.kind == VYRE__FOREIGN_SHARED && s.token.line == d.first.line) {
    vyre__token end = s.token; /* the token after it */
    vyre__source_span span = vyre__p_span(&d.first);
    span.length = end.start - d.first.start;
    vyre__p_edit(p, span, "%s", fix.text + strlen("write "));
  }
  put(&fix, ";");
  vyre__p_syntax(p, vyre__p_span(&d.first), "V018", fix.text,
                 "the type of a buffer comes after its name");
  return true;
}

/* --- statements ------------------------------------------------------------*/

/* Appends the zero of a type. */
static const char *zero_of(const char *type) {
  if (!type) return "0";
  if (strcmp(type, "bool") == 0) return "false";
  return type[0] == 'f' ? "0.0" : "0";
}

static bool is_scalar(const char *type) {
  return type && !strchr(type, 'x');
}

/* Reports `float f`, `const int n = 4` or `auto x = y`. */
static void report_local(vyre__parser *p, const scan *s, const c_declaration *d,
                         const char *word) {
  line_text fix = {.length = 0};
  const bool has_value = s->token.kind == VYRE__T_SET;
  put(&fix, "write %s ", d->is_const ? "let" : word);
  put_token(&fix, p, &d->name);
  if (d->type) put(&fix, " : %s", d->type);
  if (has_value) {
    vyre__p_edit(p, vyre__p_between(&d->first, &d->name), "%s",
                 fix.text + strlen("write "));
    put(&fix, " = value;");
  } else if (is_scalar(d->type)) {
    put(&fix, " = %s", zero_of(d->type));
    vyre__p_edit(p, vyre__p_between(&d->first, &d->name), "%s",
                 fix.text + strlen("write "));
    put(&fix, ";");
  } else {
    put(&fix, " = %s(0);", d->type ? d->type : "u32");
  }
  vyre__p_error(
      p, vyre__p_span(&d->first), "V018", fix.text,
      "declare a local with let or var; its type comes after its name");
}

/* Reports `float a[16]`. */
static void report_local_array(vyre__parser *p, const scan *s,
                               const c_declaration *d) {
  line_text fix = {.length = 0};
  const bool has_value = s->token.kind == VYRE__T_SET;
  put(&fix, "write %s ", d->is_const ? "let" : "var");
  put_array(&fix, p, d, " : ");
  vyre__p_edit(p, vyre__p_between(&d->first, &d->last), "%s",
               fix.text + strlen("write "));
  put(&fix, has_value ? " = {x, y};" : ";");
  if (d->size_count > 1) {
    put(&fix, " and a[row * ");
    put_token(&fix, p, &d->sizes[1]);
    put(&fix, " + column]");
  }
  vyre__p_error(p, vyre__p_span(&d->first), "V018", fix.text,
                "the type and the length of an array come after its name");
}

bool vyre__p_foreign_array(vyre__parser *p, const vyre__token *name,
                           char fix[VYRE__FIX_TEXT]) {
  line_text text = {.length = 0};
  if (!vyre__p_text_is(p, name, "array") || !vyre__p_is(p, VYRE__T_LT)) {
    return false;
  }
  scan s = scan_from(p);
  s.token = *name;
  s.lexer.at = name->start + name->length;
  vyre__source_span span = vyre__p_span(name);
  if (!put_wgsl_type(&text, p, &s, false)) return false;
  span.length = s.end - name->start;
  vyre__p_edit(p, span, "%s", text.text);
  snprintf(fix, VYRE__FIX_TEXT, "write %.100s, the type and then the length",
           text.text);
  return true;
}

vyre__foreign_local vyre__p_foreign_declaration(vyre__parser *p,
                                                const char *word,
                                                vyre__token *name) {
  scan s = scan_from(p);
  c_declaration d;
  line_text fix = {.length = 0};
  if (!read_c_declaration(p, &s, &d)) return VYRE__LOCAL_NONE;
  if (d.kind == VYRE__FOREIGN_SHARED) {
    fix_shared(&fix, p, &d);
    vyre__p_syntax(p, vyre__p_span(&d.first), "V046", fix.text,
                   "shared memory must be declared in the header of a kernel");
  } else if (d.is_pointer) {
    vyre__p_syntax(p, vyre__p_span(&d.first), "V025",
                   "use an index into a buffer: buffer[i]",
                   "the language has no pointers");
  } else if (d.is_void || d.kind >= VYRE__FOREIGN_GLOBAL ||
             s.token.kind == VYRE__T_LPAREN) {
    return VYRE__LOCAL_NONE;
  } else if (d.size_count > 0 || d.has_open_size) {
    report_local_array(p, &s, &d);
  } else {
    report_local(p, &s, &d, word);
    advance_to(p, d.name.start);
    *name = p->now.token;
    vyre__p_advance(p);
    return VYRE__LOCAL_NAMED;
  }
  advance_to(p, d.name.start);
  if (!vyre__p_symbol(p, &p->now.token)->local) {
    vyre__p_bind_word(p, &p->now.token);
  }
  if (!p->now.panic) {
    vyre__p_skip_to_semicolon(p);
    (void)vyre__p_accept(p, VYRE__T_SEMICOLON);
  }
  return VYRE__LOCAL_WRONG;
}

/* --- values ----------------------------------------------------------------*/

/* Reads ( NUMBER ) after get_global_id. Returns the axis, or 0. */
static char read_axis_argument(const vyre__parser *p, scan *s,
                               vyre__token *end) {
  if (!take(s, VYRE__T_LPAREN) || s->token.kind != VYRE__T_NUMBER) return 0;
  const char digit = p->text[s->token.start];
  const bool is_one = s->token.length == 1;
  next(s);
  *end = s->token;
  if (!is_one || digit > '2' || s->token.kind != VYRE__T_RPAREN) return 0;
  return (char)('x' + (digit - '0'));
}

/* Replaces %c by an axis. */
static void put_axis(line_text *t, const char *pattern, char axis) {
  for (; *pattern; pattern++) {
    const bool is_axis = pattern[0] == '%' && pattern[1] == 'c';
    put(t, "%c", is_axis ? axis : *pattern);
    if (is_axis) pattern++;
  }
}

/* Makes the fix for vec3<f32>, static_cast<float> and bitcast<u32>. */
static bool fix_generic(line_text *fix, vyre__parser *p, scan *s,
                        const vyre__token *name) {
  const bool is_bits = is_word(s, "bitcast") || is_word(s, "as_type") ||
                       is_word(s, "reinterpret_cast");
  const bool is_cast = is_word(s, "static_cast") || is_bits;
  const char *type;
  if (is_cast) {
    next(s);
    if (!take(s, VYRE__T_LT)) return false;
    type = own_type(s);
    if (!type) {
      type = vyre__foreign_type(p->text + s->token.start, s->token.length);
    }
    next(s);
  } else {
    type = read_wgsl_type(p, s);
  }
  if (!type) return false;
  vyre__source_span span = vyre__p_span(name);
  if (is_cast && !take(s, VYRE__T_GT)) return false;
  span.length = s->end - name->start;
  vyre__p_edit(p, span, "%s%s", is_bits ? "as_" : "", type);
  put(fix, "write %s%s(%s)", is_bits ? "as_" : "", type,
      is_cast || is_scalar(type) ? "x" : "x, ...");
  return true;
}

/* Makes the fix for sizeof(float). */
static void fix_sizeof(line_text *fix, const vyre__parser *p, scan *s) {
  static const uint8_t bytes[] = {['8'] = 1, ['6'] = 2, ['2'] = 4, ['4'] = 8};
  next(s);
  next(s);
  const char *type =
      vyre__foreign_element(p->text + s->token.start, s->token.length);
  if (!type) type = own_type(s);
  if (is_scalar(type) && strcmp(type, "bool") != 0) {
    put(fix, "write %u", bytes[(unsigned char)type[strlen(type) - 1]]);
  } else {
    put(fix, "use len(buffer) for the number of elements, or write the number");
  }
}

const char *vyre__p_foreign_value(vyre__parser *p, const vyre__token *name,
                                  unsigned next_kind,
                                  char buffer[VYRE__FIX_TEXT]) {
  const char *text = p->text + name->start;
  const vyre__foreign *row = vyre__foreign_find(text, name->length);
  const char *type = vyre__foreign_type(text, name->length);
  line_text fix = {.length = 0};
  scan s = scan_from(p), generic;
  s.lexer.at = name->start + name->length;
  s.lexer.line = name->line;
  s.lexer.line_start = name->start - (name->column - 1);
  s.token = generic.token = *name;
  generic.lexer = s.lexer;
  vyre__token end = *name;
  const bool is_scope = next_kind == VYRE__T_COLON &&
                        p->length - name->start >= name->length + 2 &&
                        memcmp(text + name->length, "::", 2) == 0;
  if (next_kind == VYRE__T_LT && fix_generic(&fix, p, &generic, name)) {
    /* done */
  } else if (is_scope) {
    vyre__source_span span = vyre__p_span(name);
    span.length += 2;
    vyre__p_edit(p, span, "%s", "");
    put(&fix, "remove '%.*s::'", (int)(name->length > 40 ? 40 : name->length),
        text);
  } else if (is_word(&s, "sizeof")) {
    fix_sizeof(&fix, p, &s);
  } else if (row && row->kind == VYRE__FOREIGN_ID) {
    next(&s);
    const char axis = read_axis_argument(p, &s, &end);
    put_axis(&fix, row->fix, (char)(axis ? axis : 'x'));
    if (axis && end.line == name->line) {
      line_text edit = {.length = 0};
      put_axis(&edit, row->edit, axis);
      vyre__p_edit(p, vyre__p_between(name, &end), "%s", edit.text);
    }
  } else if (row) {
    if (row->edit) vyre__p_edit(p, vyre__p_span(name), "%s", row->edit);
    put(&fix, "%s", row->fix);
  } else if (type) {
    vyre__p_edit(p, vyre__p_span(name), "%s", type);
    put(&fix, is_scalar(type) ? "write %s(x)" : "write %s(x, ...)", type);
  } else {
    return NULL;
  }
  memcpy(buffer, fix.text, fix.length + 1);
  return buffer;
}

void vyre__p_skip_foreign(vyre__parser *p, bool in_type) {
  if (vyre__p_is(p, VYRE__T_COLON) &&
      vyre__p_peek(p).kind == VYRE__T_COLON) { /* std::min */
    vyre__p_advance(p);
    vyre__p_advance(p);
    (void)vyre__p_accept(p, VYRE__T_NAME);
  }
  if (!vyre__p_is(p, VYRE__T_LT)) return;
  scan s = scan_from(p); /* vec3<f32>( */
  next(&s);
  if (s.token.kind != VYRE__T_NAME) return;
  const bool is_type =
      in_type || own_type(&s) ||
      vyre__foreign_type(p->text + s.token.start, s.token.length);
  next(&s);
  if (s.token.kind == VYRE__T_COMMA) { /* array<f32, 4> */
    next(&s);
    next(&s);
  }
  if (!is_type || s.token.kind != VYRE__T_GT) return;
  advance_to(p, s.token.start);
  vyre__p_advance(p);
}
