/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The parser, between its files: recursive descent over the tokens, straight into
 * a maker.
 *
 * A first look at the text finds where consts, fns and kernels begin (their
 * keywords stand nowhere else), so that each may be used before it is written.
 * Then consts are evaluated and the heads of fns read, then the file is gone
 * through once, from top to bottom.
 *
 * After a syntax error the parser is in panic: it reports nothing more until it
 * has found the end of the statement. A value that was wrong is id 0, and nothing
 * that is made of it complains. */
#ifndef VYRE_LANG_PARSE_H
#define VYRE_LANG_PARSE_H

#include "base/attributes.h"
#include "diag/diagnostics.h"
#include "ir/ir_builder.h"
#include "lang/lex.h"
#include "lang/literal.h"
#include "lang/suggest.h"

/* What a name stands for inside a kernel or fn. */
typedef enum vyre__binding_kind {
  VYRE__BIND_LOCAL,
  VYRE__BIND_BUFFER,
  VYRE__BIND_WRONG, /* reported before: uses are silent */
} vyre__binding_kind;

typedef struct vyre__binding {
  uint8_t kind;
  uint32_t symbol;
  uint32_t index;         /* of the local or buffer */
  uint32_t previous;      /* what the symbol was bound to before */
  vyre__source_span span; /* of the declaration */
} vyre__binding;

typedef enum vyre__item_state {
  VYRE__ITEM_NEW,
  VYRE__ITEM_BUSY,
  VYRE__ITEM_DONE,
  VYRE__ITEM_WRONG, /* reported: uses are silent */
} vyre__item_state;

/* A place that the lexer can go on from. */
typedef struct vyre__position {
  uint32_t at, line, line_start;
} vyre__position;

/* A const, fn or kernel of the file. */
typedef struct vyre__item {
  uint8_t kind;  /* T_CONST, T_FN, T_KERNEL */
  uint8_t state; /* vyre__item_state */
  uint8_t type;  /* of a const */
  bool nested;   /* seems to be inside of a body */
  uint32_t symbol;
  union {
    struct {
      uint32_t function; /* of a fn: the maker's */
      uint32_t first_parameter;
    };
    uint64_t bits; /* value of a const */
  };
  uint32_t parameter_count;
  vyre__source_span span;
  vyre__position start; /* of its keyword */
  vyre__position end;   /* behind a const, or behind the head of a fn */
} vyre__item;

typedef struct vyre__parameter {
  uint32_t symbol;
  uint8_t type;
  vyre__source_span span;
} vyre__parameter;

/* A kernel that was read, and is not sealed. */
typedef struct vyre__parsed_kernel {
  vyre__kernel head;
  uint32_t function;
} vyre__parsed_kernel;

/* One of the file's kernels, as one or the other. */
typedef struct vyre__read_kernel {
  vyre_program *program;
  vyre__parsed_kernel *parsed; /* NULL once it is sealed */
} vyre__read_kernel;

/* Where the parser is. */
typedef struct vyre__token_cursor {
  vyre__lexer lexer;
  vyre__token token;    /* the next one, not yet taken */
  vyre__token previous; /* the one taken last */
  bool panic;
  bool has_ahead;           /* the token behind the next one is known: */
  vyre__token ahead;        /* it */
  vyre__position ahead_end; /* where the lexer goes on behind it */
} vyre__token_cursor;

typedef struct vyre__parser {
  vyre__token_cursor now;
  const char *text;
  uint32_t length;
  const char *file;
  vyre__symbols symbols;
  vyre__ir_builder maker;
  vyre_diagnostics *diagnostics;
  vyre_arena arena; /* heads of kernels */
  vyre_allocator allocator;
  bool out_of_memory;
  bool stopped; /* too many findings: nothing is read any more */
  bool lost;    /* in panic until the next item */
  unsigned depth;
  unsigned else_depth; /* of them, links of else-if chains */
  unsigned const_depth;
  unsigned wrong_calls; /* that the parser is in the arguments of */

  vyre__item *items; /* in the order of the file */
  size_t item_count, item_capacity;
  size_t next_item;
  vyre__binding *bindings;
  size_t binding_count, binding_capacity;
  vyre__parameter *parameters; /* of all fns */
  size_t parameter_count, parameter_capacity;
  vyre_buffer_decl *buffers; /* of the kernel that is being read */
  size_t buffer_count, buffer_capacity;
  vyre__read_kernel *kernels; /* in the order of the file */
  size_t kernel_count, kernel_capacity;
} vyre__parser;

/* --- parse.c ----------------------------------------------------------------*/

void vyre__p_advance(vyre__parser *p);
/* The token behind the next one. */
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

/* From @p first to the token taken last. */
static inline vyre__source_span vyre__p_since(const vyre__parser *p,
                                              const vyre__token *first) {
  uint32_t end = p->now.previous.start + p->now.previous.length;
  uint32_t length = end > first->start ? end - first->start : first->length;
  return (vyre__source_span){{first->line, first->column}, length};
}

/* What is made next begins at @p first and ends at the token taken last. */
static inline void vyre__p_mark(vyre__parser *p, const vyre__token *first) {
  vyre__source_span span = vyre__p_since(p, first);
  p->maker.place = span.place;
  p->maker.length = span.length;
}

/* Just behind the token taken last. */
vyre__source_span vyre__p_behind(const vyre__parser *p);

/* A finding. Returns 0, the value that is wrong. */
vyre__id vyre__p_error(vyre__parser *p, vyre__source_span span,
                       const char *rule, const char *fix, const char *format,
                       ...) VYRE__PRINTF(5, 6);
vyre__id vyre__p_error2(vyre__parser *p, vyre__source_span span,
                        const char *rule, vyre__source_span other,
                        const char *other_text, const char *fix,
                        const char *format, ...) VYRE__PRINTF(7, 8);
/* One that the parser cannot go on from; nothing if it is in panic already. */
vyre__id vyre__p_syntax(vyre__parser *p, vyre__source_span span,
                        const char *rule, const char *fix, const char *format,
                        ...) VYRE__PRINTF(5, 6);
/* V013: expected @p what, found the next token. */
vyre__id vyre__p_expected(vyre__parser *p, const char *what, const char *fix);

enum { VYRE__FOUND_TEXT = 64, VYRE__FIX_TEXT = 192 };
/* The token as a message names it: 'x', or "the end of the file". */
const char *vyre__p_found(const vyre__parser *p, const vyre__token *token,
                          char buffer[VYRE__FOUND_TEXT]);

/* What there is to tell if one of those below does not find its token: it takes
 * room, which those that find it do without. */
bool vyre__p_tell_expected(vyre__parser *p, unsigned kind, const char *where);
bool vyre__p_tell_open(vyre__parser *p, unsigned kind, const vyre__token *open);
void vyre__p_tell_semicolon(vyre__parser *p, const char *what);

static inline bool vyre__p_expect(vyre__parser *p, unsigned kind,
                                  const char *where) {
  return vyre__p_accept(p, kind) || vyre__p_tell_expected(p, kind, where);
}

/* The bracket that closes @p open (V015). */
static inline bool vyre__p_close(vyre__parser *p, unsigned kind,
                                 const vyre__token *open) {
  return vyre__p_accept(p, kind) || vyre__p_tell_open(p, kind, open);
}

/* The semicolon at the end of something (V014). */
static inline void vyre__p_semicolon(vyre__parser *p, const char *what) {
  if (!vyre__p_accept(p, VYRE__T_SEMICOLON)) vyre__p_tell_semicolon(p, what);
}

/* One level deeper; false, and reported, if that is too deep (V026). */
bool vyre__p_too_deep(vyre__parser *p);
static inline bool vyre__p_enter(vyre__parser *p) {
  return ++p->depth <= VYRE__MAX_DEPTH || vyre__p_too_deep(p);
}
/* To the end of the statement that began at offset @p start and went wrong. */
void vyre__p_recover(vyre__parser *p, uint32_t start);
/* Past what is in brackets, if a bracket is next; else past one token. */
void vyre__p_skip_group(vyre__parser *p);
bool vyre__p_is_item(unsigned kind);

/* A type of values; VOID if there is none (reported). */
vyre_type vyre__p_type(vyre__parser *p);
/* The name that is declared here, with its token; false, and reported, if there
 * is none, or if it is a word of the language. */
bool vyre__p_new_name(vyre__parser *p, const char *what, vyre__token *name);

/* --- parse_name.c -----------------------------------------------------------*/

void vyre__p_bind(vyre__parser *p, const vyre__token *name, unsigned kind,
                  uint32_t index);
/* A declaration is called like something built in, which was told: what the name
 * is used for from here on is silent. */
void vyre__p_bind_word(vyre__parser *p, const vyre__token *name);
/* Ends a scope: forgets what was bound since. */
void vyre__p_unbind(vyre__parser *p, size_t mark);
/* A name that stands for nothing (V030); @p next is the token behind it. */
vyre__id vyre__p_unknown(vyre__parser *p, const vyre__token *name,
                         unsigned next);
/* Fix: "did you mean 'x'?" if something is near, else @p otherwise. */
const char *vyre__p_did_you_mean(const vyre__guess *guess,
                                 const char *otherwise,
                                 char buffer[VYRE__FIX_TEXT]);
/* Reports a declaration whose name means something already. */
void vyre__p_check_free(vyre__parser *p, const vyre__token *name);

/* --- parse_item.c -----------------------------------------------------------*/

void vyre__p_index(vyre__parser *p);
void vyre__p_file(vyre__parser *p);
/* Evaluates a const, or reads the head of a fn, if that was not yet done. */
void vyre__p_need(vyre__parser *p, vyre__item *item);

/* --- parse_kernel.c ---------------------------------------------------------*/

void vyre__p_kernel(vyre__parser *p, vyre__item *item);

/* --- parse_statement.c ------------------------------------------------------*/

/* { ... } of a kernel or fn. */
vyre__id vyre__p_body(vyre__parser *p);

/* --- parse_assign.c ---------------------------------------------------------*/

/* The operation of += and the like; NONE for =; COUNT if it assigns nothing. */
unsigned vyre__p_assigned_op(unsigned kind);
/* The operator, and the value behind it; for ++ and -- that is 1. */
vyre__id vyre__p_assigned(vyre__parser *p, unsigned *op);
vyre__id vyre__p_assign_local(vyre__parser *p, uint32_t local);
vyre__id vyre__p_assign_element(vyre__parser *p, uint32_t buffer);
/* An assignment to a name that cannot be assigned to. */
vyre__id vyre__p_tell_assignment(vyre__parser *p);

/* --- parse_value.c, parse_call.c ---------------------------------------------*/

enum {
  VYRE__ABOVE_COMPARE = 8
}; /* precedence: shifts and what binds tighter */

vyre__id vyre__p_value(vyre__parser *p);
vyre__id vyre__p_operators(vyre__parser *p, int precedence);
/* A name and what follows it. */
vyre__id vyre__p_name(vyre__parser *p);
/* The index behind a buffer's name: [i] */
vyre__id vyre__p_index_of(vyre__parser *p);
/* A constant expression of integer type from @p least to @p most. False, and
 * reported as @p rule, if it is none. */
bool vyre__p_constant(vyre__parser *p, const char *rule, const char *what,
                      uint64_t least, uint64_t most, uint32_t *out);
/* ( a, b, ...) as a list on the maker's stack; false if it was wrong. */
bool vyre__p_arguments(vyre__parser *p, uint32_t *count);
/* print(...) */
vyre__id vyre__p_print(vyre__parser *p);

#endif
