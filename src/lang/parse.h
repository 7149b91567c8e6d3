/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parser: recursive descent over the tokens. It feeds an IR builder directly.
 *
 * A first scan finds the consts, fns and kernels of the file by their
 * keywords, so that each may be used before its declaration. Then consts are
 * evaluated and the headers of fns are read. Then the file is parsed once,
 * from top to bottom.
 *
 * After a syntax error the parser is in panic mode: it reports nothing until
 * it reaches the end of the statement. A value with an error is id 0, and
 * values computed from it are not reported again. */
#ifndef VYRE_LANG_PARSE_H
#define VYRE_LANG_PARSE_H

#include "base/attributes.h"
#include "diag/diagnostics.h"
#include "ir/ir_builder.h"
#include "lang/lex.h"
#include "lang/literal.h"
#include "lang/suggest.h"

/* Meaning of a name inside a kernel or fn. */
typedef enum vyre__binding_kind {
  VYRE__BIND_LOCAL,
  VYRE__BIND_BUFFER,
  VYRE__BIND_WRONG, /* reported before; uses are silent */
} vyre__binding_kind;

typedef struct vyre__binding {
  uint8_t kind;
  uint32_t symbol;
  uint32_t index;         /* of the local or buffer */
  uint32_t previous;      /* earlier binding of the symbol */
  vyre__source_span span; /* of the declaration */
} vyre__binding;

typedef enum vyre__item_state {
  VYRE__ITEM_NEW,
  VYRE__ITEM_BUSY,
  VYRE__ITEM_DONE,
  VYRE__ITEM_WRONG, /* reported before; uses are silent */
} vyre__item_state;

/* Position from which the lexer can continue. */
typedef struct vyre__position {
  uint32_t at, line, line_start;
} vyre__position;

/* A const, fn or kernel of the file. */
typedef struct vyre__item {
  uint8_t kind;  /* T_CONST, T_FN, T_KERNEL */
  uint8_t state; /* vyre__item_state */
  uint8_t type;  /* of a const */
  bool nested;   /* looks like part of a body */
  uint32_t symbol;
  union {
    struct {
      uint32_t function; /* index of a fn in the IR builder */
      uint32_t first_parameter;
    };
    uint64_t bits; /* value of a const */
  };
  uint32_t parameter_count;
  vyre__source_span span;
  vyre__position start; /* of its keyword */
  vyre__position end;   /* after a const, or after the header of a fn */
} vyre__item;

typedef struct vyre__parameter {
  uint32_t symbol;
  uint8_t type;
  vyre__source_span span;
} vyre__parameter;

/* Parsed kernel that is not canonicalised yet. */
typedef struct vyre__parsed_kernel {
  vyre__kernel head;
  uint32_t function;
} vyre__parsed_kernel;

/* Kernel of the file: a program, or still a parsed kernel. */
typedef struct vyre__read_kernel {
  vyre_program *program;
  vyre__parsed_kernel *parsed; /* NULL once there is a program */
} vyre__read_kernel;

/* Position of the parser. */
typedef struct vyre__token_cursor {
  vyre__lexer lexer;
  vyre__token token;    /* next token, not consumed yet */
  vyre__token previous; /* last token consumed */
  bool panic;
  bool has_ahead;           /* the token after the next one is known */
  vyre__token ahead;        /* that token */
  vyre__position ahead_end; /* lexer position after it */
} vyre__token_cursor;

typedef struct vyre__parser {
  vyre__token_cursor now;
  const char *text;
  uint32_t length;
  const char *file;
  vyre__symbols symbols;
  vyre__ir_builder ir;
  vyre_diagnostics *diagnostics;
  vyre_arena arena; /* headers of kernels */
  vyre_allocator allocator;
  bool out_of_memory;
  bool stopped; /* too many diagnostics: the rest is not read */
  bool lost;    /* in panic mode until the next const, fn or kernel */
  unsigned depth;
  unsigned else_depth; /* number of else-if links among them */
  unsigned const_depth;
  unsigned wrong_calls; /* calls with errors around the current position */

  vyre__item *items; /* in file order */
  size_t item_count, item_capacity;
  size_t next_item;
  vyre__binding *bindings;
  size_t binding_count, binding_capacity;
  vyre__parameter *parameters; /* of all fns */
  size_t parameter_count, parameter_capacity;
  vyre_buffer_decl *buffers; /* of the current kernel */
  size_t buffer_count, buffer_capacity;
  vyre__read_kernel *kernels; /* in file order */
  size_t kernel_count, kernel_capacity;
} vyre__parser;

/* --- parse.c ---------------------------------------------------------------*/

void vyre__p_advance(vyre__parser *p);
/* Returns the token after the next one. */
vyre__token vyre__p_peek(vyre__parser *p);
void vyre__p_go(vyre__parser *p, vyre__position position);
vyre__position vyre__p_position(const vyre__parser *p);

static inline unsigned vyre__p_kind(const vyre__parser *p) {
  return p->now.token.kind;
}

static inline bool vyre__p_is(const vyre__parser *p, unsigned kind) {
  return p->now.token.kind == kind;
}

static inline bool vyre__p_accept(vyre__parser *p, unsigned kind) {
  if (p->now.token.kind != kind) return false;
  vyre__p_advance(p);
  return true;
}

static inline vyre__symbol *vyre__p_symbol(const vyre__parser *p,
                                           const vyre__token *token) {
  return &p->symbols.items[token->symbol];
}

static inline vyre__source_span vyre__p_span(const vyre__token *token) {
  return (vyre__source_span){{token->line, token->column}, token->length};
}

/* Returns the span from @p first to the last token consumed. */
static inline vyre__source_span vyre__p_since(const vyre__parser *p,
                                              const vyre__token *first) {
  uint32_t end = p->now.previous.start + p->now.previous.length;
  uint32_t length = end > first->start ? end - first->start : first->length;
  return (vyre__source_span){{first->line, first->column}, length};
}

/* Sets the location of the next node: from @p first to the last token
 * consumed. */
static inline void vyre__p_mark(vyre__parser *p, const vyre__token *first) {
  vyre__source_span span = vyre__p_since(p, first);
  p->ir.place = span.place;
  p->ir.length = span.length;
}

/* Returns an empty span directly after the last token consumed. */
vyre__source_span vyre__p_behind(const vyre__parser *p);

/* Adds a diagnostic. Returns 0, the id of a value with an error. */
vyre__id vyre__p_error(vyre__parser *p, vyre__source_span span,
                       const char *rule, const char *fix, const char *format,
                       ...) VYRE__PRINTF(5, 6);
vyre__id vyre__p_error2(vyre__parser *p, vyre__source_span span,
                        const char *rule, vyre__source_span other,
                        const char *other_text, const char *fix,
                        const char *format, ...) VYRE__PRINTF(7, 8);
/* Reports a syntax error and enters panic mode. Does nothing in panic mode. */
vyre__id vyre__p_syntax(vyre__parser *p, vyre__source_span span,
                        const char *rule, const char *fix, const char *format,
                        ...) VYRE__PRINTF(5, 6);
/* Reports V013: expected @p subject, found the next token. */
vyre__id vyre__p_expected(vyre__parser *p, const char *subject,
                          const char *fix);

enum { VYRE__FOUND_TEXT = 64, VYRE__FIX_TEXT = 192 };
/* Returns the name of a token for a message: 'x', or "the end of the file". */
const char *vyre__p_found(const vyre__parser *p, const vyre__token *token,
                          char buffer[VYRE__FOUND_TEXT]);

/* Report a missing token. Out of line, so that the functions below need no
 * stack space for messages. */
bool vyre__p_report_expected(vyre__parser *p, unsigned kind, const char *where);
bool vyre__p_report_open(vyre__parser *p, unsigned kind,
                         const vyre__token *open);
void vyre__p_report_semicolon(vyre__parser *p, const char *subject);

static inline bool vyre__p_expect(vyre__parser *p, unsigned kind,
                                  const char *where) {
  return vyre__p_accept(p, kind) || vyre__p_report_expected(p, kind, where);
}

/* Consumes the bracket that closes @p open (V015). */
static inline bool vyre__p_close(vyre__parser *p, unsigned kind,
                                 const vyre__token *open) {
  return vyre__p_accept(p, kind) || vyre__p_report_open(p, kind, open);
}

/* Consumes the semicolon at the end of a construct (V014). */
static inline void vyre__p_semicolon(vyre__parser *p, const char *subject) {
  if (!vyre__p_accept(p, VYRE__T_SEMICOLON))
    vyre__p_report_semicolon(p, subject);
}

/* Enters one nesting level. Returns false after a report if that is too deep
 * (V026). */
bool vyre__p_too_deep(vyre__parser *p);
static inline bool vyre__p_enter(vyre__parser *p) {
  return ++p->depth <= VYRE__MAX_DEPTH || vyre__p_too_deep(p);
}
/* Skips to the end of the statement with an error that began at offset @p
 * start. */
void vyre__p_recover(vyre__parser *p, uint32_t start);
/* Skips a bracketed group if a bracket is next, otherwise one token. */
void vyre__p_skip_group(vyre__parser *p);
bool vyre__p_is_item(unsigned kind);

/* Reads a type of values; returns VOID after a report. */
vyre_type vyre__p_type(vyre__parser *p);
/* Reads the name in a declaration. Returns false after a report if it is
 * missing or a word of the language. */
bool vyre__p_new_name(vyre__parser *p, const char *subject, vyre__token *name);

/* --- parse_name.c ----------------------------------------------------------*/

void vyre__p_bind(vyre__parser *p, const vyre__token *name, unsigned kind,
                  uint32_t index);
/* Binds a name that equals a built-in word, after a report: later uses are
 * silent. */
void vyre__p_bind_word(vyre__parser *p, const vyre__token *name);
/* Ends a scope: removes the bindings made since @p mark. */
void vyre__p_unbind(vyre__parser *p, size_t mark);
/* Reports an undeclared name (V030); @p next is the kind of the token after
 * it. */
vyre__id vyre__p_unknown(vyre__parser *p, const vyre__token *name,
                         unsigned next);
/* Returns the fix "did you mean 'x'?" if a name is similar, otherwise @p
 * otherwise. */
const char *vyre__p_did_you_mean(const vyre__guess *guess,
                                 const char *otherwise,
                                 char buffer[VYRE__FIX_TEXT]);
/* Reports a declaration whose name is already in use. */
void vyre__p_check_free(vyre__parser *p, const vyre__token *name);

/* --- parse_item.c ----------------------------------------------------------*/

void vyre__p_index(vyre__parser *p);
void vyre__p_file(vyre__parser *p);
/* Evaluates a const or reads the header of a fn, if not done yet. */
void vyre__p_need(vyre__parser *p, vyre__item *item);

/* --- parse_kernel.c --------------------------------------------------------*/

void vyre__p_kernel(vyre__parser *p, vyre__item *item);

/* --- parse_statement.c -----------------------------------------------------*/

/* Reads the { ... } of a kernel or fn. */
vyre__id vyre__p_body(vyre__parser *p);
void vyre__p_statement(vyre__parser *p);
/* Returns true if the next token cannot be part of a block. */
bool vyre__p_ends_block(const vyre__parser *p);
/* Reads ( value ) after if, while and switch. */
vyre__id vyre__p_condition(vyre__parser *p, const char *word);
/* Skips from a header with an error to the body. */
void vyre__p_skip_head(vyre__parser *p);

/* --- parse_switch.c --------------------------------------------------------*/

vyre__id vyre__p_switch(vyre__parser *p);

/* --- parse_assign.c --------------------------------------------------------*/

/* Returns the operation of += and the like; NONE for =; COUNT if the token is
 * not an assignment. */
unsigned vyre__p_assigned_op(unsigned kind);
/* Reads an assignment operator and the value after it; the value of ++ and --
 * is 1. */
vyre__id vyre__p_assigned(vyre__parser *p, unsigned *op);
vyre__id vyre__p_assign_local(vyre__parser *p, uint32_t local);
vyre__id vyre__p_assign_element(vyre__parser *p, uint32_t buffer);
/* Reports an assignment to something that cannot be assigned. */
vyre__id vyre__p_report_assignment(vyre__parser *p);

/* --- parse_value.c, parse_call.c -------------------------------------------*/

enum {
  VYRE__ABOVE_COMPARE = 8
}; /* precedence of shifts and tighter operators */

vyre__id vyre__p_value(vyre__parser *p);
vyre__id vyre__p_operators(vyre__parser *p, int precedence);
/* Reads a name and what belongs to it: call, index, axis. */
vyre__id vyre__p_name(vyre__parser *p);
/* Reads the index after the name of a buffer: [i] */
vyre__id vyre__p_index_of(vyre__parser *p);
/* Reads a constant integer expression from @p min to @p max. Returns false
 * after reporting @p rule. */
bool vyre__p_constant(vyre__parser *p, const char *rule, const char *subject,
                      uint64_t min, uint64_t max, uint32_t *out);
/* Reads ( a, b, ...) into a list on the IR builder's stack. Returns false
 * after an error. */
bool vyre__p_arguments(vyre__parser *p, uint32_t *count);
/* Reads print(...). */
vyre__id vyre__p_print(vyre__parser *p);

#endif
