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

#include <string.h>

#include "vyre/module.h"

#include "base/attributes.h"
#include "diag/diagnostics.h"
#include "ir/builder/ir_builder.h"
#include "lang/foreign.h"
#include "lang/import.h"
#include "lang/lex.h"
#include "lang/literal.h"
#include "lang/suggest.h"

enum { VYRE__FOUND_TEXT = 64, VYRE__FIX_TEXT = 256 };

/* Meaning of a name inside a kernel or fn. The index of a BUFFER may be that of
 * an array, a memory parameter or a table (VYRE__MEMORY_* in ir/ir.h). */
typedef enum vyre__binding_kind {
  VYRE__BIND_LOCAL,
  VYRE__BIND_BUFFER,
  VYRE__BIND_FIELD, /* of the item of a queue kernel */
  VYRE__BIND_WRONG, /* reported before; uses are silent */
} vyre__binding_kind;

typedef struct vyre__binding {
  uint8_t kind;
  uint32_t symbol;
  uint32_t index;         /* of the local, buffer or field */
  uint32_t previous;      /* earlier binding of the symbol */
  uint32_t number;        /* in the index of names, if there is one */
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

/* Dimension of a buffer that is the name of a uniform, declared before or
 * after. */
typedef struct vyre__dimension_name {
  uint32_t buffer, dimension;
  vyre__token name;
} vyre__dimension_name;

/* A const, fn or kernel of the file. */
typedef struct vyre__item {
  uint8_t kind;     /* T_CONST, T_FN, T_KERNEL */
  uint8_t state;    /* vyre__item_state */
  uint8_t type;     /* of a const */
  bool nested;      /* looks like part of a body */
  bool is_override; /* a const whose value options may replace */
  bool is_table;    /* a const with elements */
  bool is_untyped;  /* an integer const that adapts like a literal */
  uint32_t symbol;
  union {
    struct {
      uint32_t function; /* index of a fn in the IR builder */
      uint32_t first_parameter;
    };
    uint64_t bits; /* value of a const; number of a table */
  };
  uint32_t parameter_count;
  uint8_t result_count; /* of several results */
  uint8_t results[VYRE__MAX_RESULTS];
  vyre__source_span span;
  vyre__position start; /* of its keyword */
  vyre__position end;   /* after a const, or after the header of a fn */
} vyre__item;

typedef struct vyre__parameter {
  uint32_t symbol;
  uint32_t start;   /* offset of the name */
  vyre__local spec; /* its name is not used */
  vyre__source_span span;
} vyre__parameter;

/* Parsed kernel that is not canonicalised yet. */
typedef struct vyre__parsed_kernel {
  vyre__kernel head;
  vyre__queue_clauses queue; /* head.queue, if it is a queue kernel */
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
  vyre__scopes *scopes; /* NULL without imports */
  char *joined;         /* the file and its imports; `text` then */
  size_t joined_length, joined_capacity;
  const vyre__source_files *files; /* of line numbers; NULL without imports */
  vyre__symbols symbols;
  vyre__ir_builder ir;
  vyre_diagnostics *diagnostics;
  vyre_arena arena; /* headers of kernels */
  vyre_allocator allocator;
  vyre_module_options options;
  bool *used_defines; /* per define: the file has such an override */
  bool out_of_memory;
  bool stopped; /* too many diagnostics: the rest is not read */
  bool lost;    /* in panic mode until the next const, fn or kernel */
  unsigned depth;
  unsigned else_depth; /* number of else-if links among them */
  unsigned const_depth;
  unsigned wrong_calls; /* calls with errors around the current position */
  uint32_t statement;   /* offset of the statement that is being read */
  bool has_edit;        /* the next diagnostic has this edit */
  vyre__source_span edit_span;
  char edit[VYRE__FIX_TEXT];

  vyre__item *items; /* in file order */
  size_t item_count, item_capacity;
  size_t next_item;
  vyre__binding *bindings;
  size_t binding_count, binding_capacity;
  vyre__parameter *parameters; /* of all fns */
  size_t parameter_count, parameter_capacity;
  vyre_buffer_decl *buffers; /* of the current kernel */
  size_t buffer_count, buffer_capacity;
  vyre__dimension_name *dimensions; /* of the current kernel */
  size_t dimension_count, dimension_capacity;
  struct vyre__name_index *index; /* collects names for editors, or NULL */
  vyre__read_kernel *kernels;     /* in file order */
  size_t kernel_count, kernel_capacity;
} vyre__parser;

/* --- module.c --------------------------------------------------------------*/

/* Reads the file; the text, its length, the allocator and the diagnostics are
 * set. Errors: VYRE_INVALID_PROGRAM, VYRE_OUT_OF_MEMORY. */
vyre_code vyre__p_read(vyre__parser *p, vyre_status *st);
void vyre__p_deinit(vyre__parser *p);

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

/* Returns the span from @p first to @p last, which are on one line. */
static inline vyre__source_span vyre__p_between(const vyre__token *first,
                                                const vyre__token *last) {
  return (vyre__source_span){{first->line, first->column},
                             last->start + last->length - first->start};
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

/* Gives the next diagnostic an edit: @p format replaces the text of @p span.
 * No edit if the text is too long. */
void vyre__p_edit(vyre__parser *p, vyre__source_span span, const char *format,
                  ...) VYRE__PRINTF(3, 4);

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

/* Returns the name of a token for a message: 'x', or "the end of the file". */
const char *vyre__p_found(const vyre__parser *p, const vyre__token *token,
                          char buffer[VYRE__FOUND_TEXT]);

/* Report a missing token. Out of line, so that the functions below need no
 * stack space for messages. */
bool vyre__p_report_expected(vyre__parser *p, unsigned kind, const char *where);
bool vyre__p_report_open(vyre__parser *p, unsigned kind,
                         const vyre__token *open);
void vyre__p_report_semicolon(vyre__parser *p, const char *subject);
/* Reports ++ or -- of @p name inside a value (V021). */
void vyre__p_report_step(vyre__parser *p, const vyre__token *name,
                         const vyre__token *step);

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
/* Skips a bracketed group if a bracket is next, otherwise one token. Stays at
 * the end of a block or file, and at const, fn and kernel. */
void vyre__p_skip_group(vyre__parser *p);
/* Skips to the next semicolon, or to where vyre__p_skip_group stays. */
void vyre__p_skip_to_semicolon(vyre__parser *p);
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
/* Reads the name of a declaration. Returns true if it is the first of that
 * name. */
bool vyre__p_item_name(vyre__parser *p, vyre__item *item, vyre__token *name);

/* --- parse_override.c ------------------------------------------------------*/

/* Returns true if the next token begins an override. */
bool vyre__p_is_override(vyre__parser *p);
/* Declares the type of `override type NAME = TYPE;`, which begins at @p at, so
 * that it can be used everywhere. Returns false for any other line. */
bool vyre__p_declare_type(vyre__parser *p, const vyre__lexer *at);
/* Reads that line, and reports its errors. Returns false for another
 * override. */
bool vyre__p_override_type(vyre__parser *p);
/* Replaces the value of an override by that of the options. Returns false after
 * a report. */
bool vyre__p_apply_define(vyre__parser *p, vyre__item *item);

/* --- parse_queue.c ---------------------------------------------------------*/

/* Clauses of a queue kernel, as read. */
typedef struct vyre__queue_head {
  bool has_queue, has_kind, has_pushes, has_by;
  vyre__queue_clauses queue;
  vyre__token word;                          /* of the clause queue(...) */
  vyre__token names[VYRE__MAX_QUEUE_FIELDS]; /* of the fields; T_END: none */
  vyre__queue_field fields[VYRE__MAX_QUEUE_FIELDS];
  vyre__token bound; /* name of the bound; T_END: a constant, or none */
  vyre__position by; /* of the bracket after `by` */
} vyre__queue_head;

/* Reads a clause of a queue kernel if the next word begins one. Returns false
 * otherwise. */
bool vyre__p_queue_clause(vyre__parser *p, vyre__queue_head *head);
/* Completes the clauses when the buffers are known. Copies them to *out, or
 * returns false after a report. Binds the names of the fields. */
bool vyre__p_queue_finish(vyre__parser *p, vyre__queue_head *head,
                          vyre__queue_clauses *out);
/* Reads the further bodies: `pull { ... }`, which is next, and by(...). */
void vyre__p_queue_parts(vyre__parser *p, const vyre__queue_head *head,
                         const vyre__kernel *kernel,
                         vyre__queue_clauses *queue);
/* Reads a call of push, or a name with a meaning in queue kernels only.
 * Returns false if the name is none of them. */
vyre__id vyre__p_push(vyre__parser *p, const vyre__token *name);
bool vyre__p_queue_word(vyre__parser *p, const vyre__token *name, vyre__id *id);

/* --- parse_kernel.c --------------------------------------------------------*/

/* Returns true if a token is the word @p text. Inline, so that strlen of a
 * constant text is a constant. */
static inline bool vyre__p_text_is(const vyre__parser *p,
                                   const vyre__token *token, const char *text) {
  return token->kind == VYRE__T_NAME && token->length == strlen(text) &&
         memcmp(p->text + token->start, text, token->length) == 0;
}

/* --- parse_struct.c --------------------------------------------------------*/

/* Reads struct NAME { ... }, item @p index. */
void vyre__p_struct(vyre__parser *p, uint32_t index);
/* Reports a statement that begins with struct. */
vyre__id vyre__p_struct_statement(vyre__parser *p);
/* Returns the type number of the struct that a token names; VOID if it had an
 * error. */
unsigned vyre__p_struct_type(vyre__parser *p, const vyre__token *name);
/* Reads {field: value, ...} after the name of a struct. */
vyre__id vyre__p_struct_value(vyre__parser *p, const vyre__token *name);
/* Reads .field after a struct. */
vyre__id vyre__p_field(vyre__parser *p, const vyre__token *first, vyre__id id);

/* --- parse_dimension.c -----------------------------------------------------*/

/* Reads [ count ], [ height, width ], or [] for a size that is known when a
 * buffer is bound. */
bool vyre__p_dimensions(vyre__parser *p, vyre_buffer_decl *buffer);
/* Finds the uniforms of dimensions, when all buffers are known. */
void vyre__p_dimensions_finish(vyre__parser *p);
/* Reads a closing bracket, or a number of indices and it. */
vyre__id vyre__p_indices(vyre__parser *p, const vyre__token *open,
                         vyre__id first);

/* Reads the type of an element. Returns false after a report. */
bool vyre__p_element(vyre__parser *p, vyre_buffer_decl *buffer);
/* Copies a name to the arena of the parser. */
const char *vyre__p_copy_name(vyre__parser *p, const vyre__token *name);
/* Reports a clause or attribute that appears twice (V047). */
bool vyre__p_repeated(vyre__parser *p, const vyre__token *word, bool *seen);

/* Reads the element type of a buffer. */
bool vyre__p_element(vyre__parser *p, vyre_buffer_decl *buffer);

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

/* --- parse_foreign.c -------------------------------------------------------*/

/* Report a declaration in C, CUDA, OpenCL, WGSL or HLSL at the current token.
 * The fix shows the same declaration in the kernel language. Return false if
 * the token begins no such declaration. */
/* At the level of the file. */
bool vyre__p_foreign_item(vyre__parser *p);
/* After the keyword const: int N. Reports it and moves to the name. */
void vyre__p_foreign_const(vyre__parser *p);
/* After the keyword kernel: void name(...). */
bool vyre__p_foreign_kernel(vyre__parser *p);
/* In the header of a kernel: shared float t[64]. */
bool vyre__p_foreign_memory(vyre__parser *p);

typedef enum vyre__foreign_local {
  VYRE__LOCAL_NONE,  /* not a declaration */
  VYRE__LOCAL_NAMED, /* reported; its value is next */
  VYRE__LOCAL_WRONG, /* reported; nothing of it is usable */
} vyre__foreign_local;

/* Reports a declaration of a local in the syntax of C, and reads it up to its
 * name. @p word is "let" or "var". */
vyre__foreign_local vyre__p_foreign_declaration(vyre__parser *p,
                                                const char *word,
                                                vyre__token *name);
/* Returns the fix for an undeclared name of another language, or NULL. Sets
 * the edit of the next diagnostic. @p next is the kind of the token after
 * it. */
const char *vyre__p_foreign_value(vyre__parser *p, const vyre__token *name,
                                  unsigned next, char buffer[VYRE__FIX_TEXT]);
/* Skips ::name or <type> after an undeclared name; @p in_type is true if '<'
 * cannot be an operator. */
void vyre__p_skip_foreign(vyre__parser *p, bool in_type);

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
/* Assigns a part of a local: v.x = value; v[k] = value; */
vyre__id vyre__p_assign_part(vyre__parser *p, uint32_t local);
/* Reports an assignment to something that cannot be assigned. */
vyre__id vyre__p_report_assignment(vyre__parser *p);

/* --- parse_array.c ---------------------------------------------------------*/

/* Returns the declaration of a bound buffer, array or memory parameter; NULL if
 * it had an error. */
const vyre_buffer_decl *vyre__p_buffer(vyre__parser *p, uint32_t memory);
/* Returns "a buffer", "an array" or "a table". */
const char *vyre__p_kind_of_memory(uint32_t memory);
/* Returns true and sets *memory if a token names memory. */
bool vyre__p_names_memory(vyre__parser *p, const vyre__token *name,
                          uint32_t *memory);
/* Reads [ length ] or [ length, length ] after a type. *length is the number of
 * elements, 0 for []. */
bool vyre__p_length(vyre__parser *p, uint32_t *length, vyre__shape *shape);
/* Reads the elements of an array: { x, y }; with several lengths, also
 * { {x, y}, {z, w} }. */
vyre__id vyre__p_elements(vyre__parser *p, vyre__shape shape);
/* Reads the rest of let NAME : type [ or of a declaration whose value is a whole
 * array. */
vyre__id vyre__p_array(vyre__parser *p, const vyre__token *name, vyre_type type,
                       bool is_mutable);
/* Returns true before the name of an array as the whole value of a statement. */
bool vyre__p_is_whole_array(vyre__parser *p);
vyre__id vyre__p_whole_array(vyre__parser *p, vyre__shape shape);
/* Reads name = {..}; and name = other; */
vyre__id vyre__p_assign_array(vyre__parser *p, uint32_t memory);
/* Reads let (a, b) = call; after let or var. */
vyre__id vyre__p_let_results(vyre__parser *p, bool is_mutable);
/* Returns true before (a, b[i]) = call; */
bool vyre__p_is_result_list(vyre__parser *p);
vyre__id vyre__p_assign_results(vyre__parser *p);
/* Reads what follows return in a fn with several results. */
vyre__id vyre__p_return_results(vyre__parser *p, const vyre__token *first);
/* Reads the type of const NAME : u8 [ .. ], if it is next: an integer of 8 or
 * 16 bits, which is loaded as a wider one. */
bool vyre__p_narrow_table(vyre__parser *p, vyre_element *element);
/* Reads the rest of const NAME : type [ .. ] = { .. }. Values fit @p narrow
 * unless that is ELEMENT_COUNT. */
bool vyre__p_table(vyre__parser *p, const vyre__token *name, vyre_type type,
                   vyre_element narrow, vyre__item *item);
/* Reads the type of a parameter, after the colon. */
bool vyre__p_parameter_type(vyre__parser *p, bool is_mutable,
                            vyre__local *spec);
/* Reads the types of several results. */
bool vyre__p_result_types(vyre__parser *p, vyre__item *item);

/* Makes the fix for array<f32, 8>, which begins with token @p name. Returns
 * false for other types. */
bool vyre__p_foreign_array(vyre__parser *p, const vyre__token *name,
                           char fix[VYRE__FIX_TEXT]);

/* --- parse_value.c, parse_call.c -------------------------------------------*/

enum {
  VYRE__ABOVE_COMPARE = 8
}; /* precedence of shifts and tighter operators */

vyre__id vyre__p_value(vyre__parser *p);
/* Reports the second bracket of a[y][x], which is the next token. */
void vyre__p_report_second_bracket(vyre__parser *p);
vyre__id vyre__p_operators(vyre__parser *p, int precedence);
/* Reads a name and what belongs to it: call, index, axis. */
vyre__id vyre__p_name(vyre__parser *p);
/* Reads .x, .zyx or [i] after a value that has parts. */
vyre__id vyre__p_part(vyre__parser *p, const vyre__token *first, vyre__id id);
/* Reads an element of a buffer, array or table, after its name. */
vyre__id vyre__p_load(vyre__parser *p, const vyre__token *name,
                      uint32_t buffer);
/* Reads the index after the name of a buffer: [i] */
vyre__id vyre__p_index_of(vyre__parser *p);
/* Reads a constant integer expression from @p min to @p max. Returns false
 * after reporting @p rule. */
bool vyre__p_constant(vyre__parser *p, const char *rule, const char *subject,
                      uint64_t min, uint64_t max, uint32_t *out);
/* Skips [i] and .x after a name with an error. */
void vyre__p_skip_parts(vyre__parser *p);
/* Reads ( a, b, ...) into a list on the IR builder's stack. Returns false
 * after an error. */
bool vyre__p_arguments(vyre__parser *p, uint32_t *count);
/* Reads the arguments of a call that has an error. Returns 0. */
vyre__id vyre__p_skip_arguments(vyre__parser *p);
/* Reads print(...). */
vyre__id vyre__p_print(vyre__parser *p);

#endif
