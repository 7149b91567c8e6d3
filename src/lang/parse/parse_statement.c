/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "lang/parse/parse.h"

/* --- blocks ----------------------------------------------------------------*/

/* A const at the start of a line belongs to the file; an indented one is a
 * mistake of C programmers. */
bool vyre__p_ends_block(const vyre__parser *p) {
  unsigned kind = vyre__p_kind(p);
  return p->lost || kind == VYRE__T_RBRACE || kind == VYRE__T_END ||
         kind == VYRE__T_FN || kind == VYRE__T_KERNEL ||
         ((kind == VYRE__T_CONST || kind == VYRE__T_STRUCT) &&
          p->now.token.column == 1);
}

static vyre__id read_block(vyre__parser *p) {
  vyre__ir_builder *m = &p->ir;
  vyre__token open = p->now.token;
  vyre__p_advance(p);
  vyre__mark mark = vyre__block_begin(m);
  size_t scope = p->binding_count;
  while (!vyre__p_ends_block(p) && !m->out_of_memory && !p->out_of_memory) {
    vyre__p_statement(p);
  }
  if (!vyre__p_close(p, VYRE__T_RBRACE, &open)) p->lost = p->now.panic = true;
  vyre__p_unbind(p, scope);
  m->place = (vyre__source_loc){open.line, open.column};
  m->length = 1;
  return vyre__block_end(m, mark);
}

vyre__id vyre__p_body(vyre__parser *p) {
  if (vyre__p_is(p, VYRE__T_LBRACE)) {
    p->now.panic = false;
    return read_block(p);
  }
  vyre__p_expected(p, "'{' and the body", "write the statements in { and }");
  while (!vyre__p_is(p, VYRE__T_LBRACE) && !vyre__p_is(p, VYRE__T_END) &&
         !vyre__p_is_item(vyre__p_kind(p))) {
    vyre__p_advance(p);
  }
  p->now.panic = false;
  return vyre__p_is(p, VYRE__T_LBRACE) ? read_block(p) : 0;
}

/* Reads the statement after if, else, for or while; the result is a block. */
static vyre__id read_inner(vyre__parser *p) {
  vyre__ir_builder *m = &p->ir;
  if (vyre__p_is(p, VYRE__T_LBRACE) && !p->now.panic) {
    if (!vyre__p_enter(p)) return 0;
    vyre__id id = read_block(p);
    p->depth--;
    return id;
  }
  vyre__mark mark = vyre__block_begin(m);
  size_t scope = p->binding_count;
  vyre__token first = p->now.token;
  if (vyre__p_ends_block(p)) {
    vyre__p_expected(p, "a statement", "write a statement, or a block { }");
  } else if (!p->now.panic) {
    vyre__p_statement(p);
  }
  vyre__p_unbind(p, scope);
  m->place = (vyre__source_loc){first.line, first.column};
  m->length = 1;
  return vyre__block_end(m, mark);
}

/* --- declarations ----------------------------------------------------------*/

/* Reports let a = 1, b = 2 and consumes the comma. */
static void report_list(vyre__parser *p, bool is_mutable) {
  const char *word = is_mutable ? "var" : "let";
  char fix[VYRE__FIX_TEXT];
  snprintf(fix, sizeof fix, "write ';' and %s before the next name", word);
  vyre__p_edit(p, vyre__p_span(&p->now.token), "; %s", word);
  vyre__p_error(p, vyre__p_span(&p->now.token), "V014", fix,
                "a declaration has one name");
  vyre__p_advance(p);
}

/* Reads the value and the end of a declaration, after its name. */
static vyre__id finish_declaration(vyre__parser *p, const vyre__token *name,
                                   vyre_type type, bool is_mutable) {
  vyre__ir_builder *m = &p->ir;
  vyre__id value = 0;
  uint32_t local = VYRE_NO_INDEX;
  if (vyre__p_is(p, VYRE__T_LBRACKET) || vyre__p_is_whole_array(p)) {
    return vyre__p_array(p, name, type, is_mutable);
  }
  if (vyre__p_accept(p, VYRE__T_SET)) {
    value = vyre__p_value(p);
  } else if (vyre__p_is(p, VYRE__T_SEMICOLON)) {
    vyre__p_error(p, vyre__p_behind(p), "V028", "write = and a value",
                  "a local needs an initial value");
  } else {
    vyre__p_expect(p, VYRE__T_SET, "and a value after the name");
  }
  vyre__p_check_free(p, name);
  m->place = (vyre__source_loc){name->line, name->column};
  m->length = name->length;
  vyre__id id = vyre__ir_build_let(m, p->text + name->start, name->length, type,
                                   is_mutable, value, &local);
  if (local != VYRE_NO_INDEX) vyre__p_bind(p, name, VYRE__BIND_LOCAL, local);
  if (p->now.panic) return id;
  if (!vyre__p_is(p, VYRE__T_COMMA)) {
    vyre__p_semicolon(p, "a declaration");
    return id;
  }
  vyre__statement(m, id);
  report_list(p, is_mutable);
  vyre__token next;
  if (!vyre__p_new_name(p, "a local", &next)) {
    p->now.panic = true;
    return 0;
  }
  return finish_declaration(p, &next, VYRE_TYPE_VOID, is_mutable);
}

/* Reads the value of a declaration in the syntax of C, which was reported. */
static vyre__id finish_foreign(vyre__parser *p, const vyre__token *name) {
  if (!vyre__p_is(p, VYRE__T_SEMICOLON)) {
    return finish_declaration(p, name, VYRE_TYPE_VOID, true);
  }
  vyre__p_bind(p, name, VYRE__BIND_WRONG, 0);
  vyre__p_advance(p);
  return 0;
}

/* Returns true if two words, or a word and a star, follow each other: the
 * statement may be a declaration in the syntax of C. */
static bool is_declaration_start(vyre__parser *p) {
  const unsigned next = vyre__p_peek(p).kind;
  return next == VYRE__T_NAME || next == VYRE__T_STAR ||
         next == VYRE__T_CONST || next == VYRE__T_SHARED ||
         next == VYRE__T_UNIFORM;
}

/* Reads let NAME [: type] = value ; or the same with var. */
static vyre__id read_declaration(vyre__parser *p) {
  bool is_mutable = vyre__p_is(p, VYRE__T_VAR);
  const vyre__token first = p->now.token;
  vyre__token name;
  vyre__p_advance(p);
  if (vyre__p_is(p, VYRE__T_LPAREN)) return vyre__p_let_results(p, is_mutable);
  if (vyre__p_is(p, VYRE__T_NAME) && vyre__p_peek(p).kind == VYRE__T_NAME &&
      vyre__p_text_is(p, &p->now.token, "mut")) {
    is_mutable = true;
    vyre__p_edit(p, vyre__p_between(&first, &p->now.token), "var");
    vyre__p_error(p, vyre__p_span(&p->now.token), "V018",
                  "write var x = value;",
                  "a local that changes is declared with var");
    vyre__p_advance(p);
  } else if (vyre__p_is(p, VYRE__T_NAME) &&
             vyre__p_peek(p).kind == VYRE__T_NAME) {
    vyre__p_error(p, vyre__p_span(&p->now.token), "V018",
                  "write the name first: let x : f32 = value;",
                  "the type of a local comes after its name");
    vyre__p_advance(p);
  }
  if (!vyre__p_new_name(p, "a local", &name)) {
    vyre__p_bind_word(p, &name);
    p->now.panic = true;
    return 0;
  }
  vyre_type type = VYRE_TYPE_VOID;
  if (vyre__p_accept(p, VYRE__T_COLON)) {
    type = vyre__p_type(p);
    if (type == VYRE_TYPE_VOID && vyre__p_is(p, VYRE__T_SEMICOLON)) {
      vyre__p_bind(p, &name, VYRE__BIND_WRONG, 0);
      vyre__p_advance(p);
      return 0;
    }
  }
  return finish_declaration(p, &name, type, is_mutable);
}

/* --- statements that begin with a name -------------------------------------*/

static vyre__id read_expression(vyre__parser *p) {
  vyre__token first = p->now.token;
  p->statement = first.start;
  vyre__id value = vyre__p_value(p);
  if (p->now.panic) return 0;
  vyre__p_mark(p, &first);
  vyre__id id = vyre__ir_build_eval(&p->ir, value);
  vyre__p_semicolon(p, "a statement");
  return id;
}

static bool is_word(const vyre__symbol *symbol, const char *word) {
  return symbol->length == strlen(word) &&
         memcmp(symbol->text, word, symbol->length) == 0;
}

/* Reports statements of C and other languages. */
static bool report_foreign_statement(vyre__parser *p) {
  const vyre__token token = p->now.token;
  unsigned next = vyre__p_peek(p).kind; /* first: it may move the symbols */
  const vyre__symbol *symbol = vyre__p_symbol(p, &token);
  if (symbol->local || symbol->item || symbol->word != VYRE__WORD_PLAIN) {
    return false;
  }
  if (vyre__p_assigned_op(next) != VYRE__OP_COUNT) return false;
  const vyre__foreign *row = vyre__foreign_find(symbol->text, symbol->length);
  if (!row || next == VYRE__T_DOT || next == VYRE__T_COLON ||
      (next == VYRE__T_LPAREN && !is_word(symbol, "elif") &&
       !is_word(symbol, "elseif") && !is_word(symbol, "foreach"))) {
    return false;
  }
  if (row->edit) vyre__p_edit(p, vyre__p_span(&token), "%s", row->edit);
  vyre__p_syntax(p, vyre__p_span(&token), "V029", row->fix,
                 "the language has no '%.*s'", (int)symbol->length,
                 symbol->text);
  return true;
}

/* Skips an assignment to a name that was reported. */
static vyre__id read_wrong_store(vyre__parser *p) {
  unsigned op;
  vyre__p_advance(p);
  vyre__p_skip_parts(p);
  if (vyre__p_assigned_op(vyre__p_kind(p)) != VYRE__OP_COUNT) {
    (void)vyre__p_assigned(p, &op);
  }
  vyre__p_semicolon(p, "an assignment");
  return 0;
}

/* Reads a declaration in the syntax of C, after a report. Returns false
 * for other statements. */
static bool read_foreign_declaration(vyre__parser *p, vyre__id *id) {
  vyre__token name;
  const vyre__symbol *symbol = vyre__p_symbol(p, &p->now.token);
  *id = 0;
  if (symbol->local || symbol->item || symbol->word == VYRE__WORD_OP) {
    return false;
  }
  switch (vyre__p_foreign_declaration(p, "var", &name)) {
    case VYRE__LOCAL_NAMED:
      *id = finish_foreign(p, &name);
      return true;
    case VYRE__LOCAL_WRONG:
      return true;
    default:
      return false;
  }
}

static vyre__id read_named(vyre__parser *p) {
  vyre__id id;
  if (is_declaration_start(p) && read_foreign_declaration(p, &id)) return id;
  if (report_foreign_statement(p)) return 0;
  unsigned next = vyre__p_peek(p).kind;
  bool assigns = vyre__p_assigned_op(next) != VYRE__OP_COUNT;
  const vyre__symbol *symbol = vyre__p_symbol(p, &p->now.token);
  if (symbol->local) {
    vyre__binding binding = p->bindings[symbol->local - 1];
    if (binding.kind == VYRE__BIND_LOCAL && assigns) {
      return vyre__p_assign_local(p, binding.index);
    }
    if (binding.kind == VYRE__BIND_LOCAL &&
        (next == VYRE__T_DOT || next == VYRE__T_LBRACKET)) {
      return vyre__p_assign_part(p, binding.index);
    }
    if (binding.kind == VYRE__BIND_BUFFER) {
      const vyre_buffer_decl *buffer = vyre__p_buffer(p, binding.index);
      if (!buffer) return read_wrong_store(p);
      if (next == VYRE__T_SET && binding.index >= VYRE__MEMORY_TABLE) {
        return vyre__p_assign_array(p, binding.index);
      }
      bool scalar = buffer->kind == VYRE_MEMORY_UNIFORM && buffer->count == 1;
      if (next == VYRE__T_LBRACKET ||
          ((assigns || next == VYRE__T_DOT) && scalar)) {
        return vyre__p_assign_element(p, binding.index);
      }
      if (assigns) {
        char fix[VYRE__FIX_TEXT];
        snprintf(fix, sizeof fix, "write %.100s[i] = value;", buffer->name);
        vyre__p_syntax(p, vyre__p_span(&p->now.token), "V035", fix,
                       "'%.100s' is %s and needs an index", buffer->name,
                       vyre__p_kind_of_memory(binding.index));
        return 0;
      }
    }
    if (binding.kind == VYRE__BIND_FIELD && assigns) {
      vyre__p_syntax(p, vyre__p_span(&p->now.token), "V066",
                     "copy it to a var, and assign that",
                     "'%.*s' is a field of the item and cannot be assigned",
                     (int)symbol->length, symbol->text);
      return 0;
    }
    if (binding.kind == VYRE__BIND_WRONG &&
        (assigns || next == VYRE__T_LBRACKET)) {
      return read_wrong_store(p);
    }
  } else if (symbol->item && next == VYRE__T_LBRACKET &&
             p->items[symbol->item - 1].is_table) {
    return vyre__p_assign_element(
        p, VYRE__MEMORY_TABLE | (uint32_t)p->items[symbol->item - 1].bits);
  } else if (assigns) {
    return vyre__p_report_assignment(p);
  } else if ((next == VYRE__T_LBRACKET || next == VYRE__T_DOT) &&
             !symbol->item && symbol->word == VYRE__WORD_PLAIN) {
    vyre__p_unknown(p, &p->now.token, next);
    return read_wrong_store(p);
  }
  return read_expression(p);
}

/* --- control ---------------------------------------------------------------*/

vyre__id vyre__p_condition(vyre__parser *p, const char *word) {
  vyre__token open = p->now.token;
  if (!vyre__p_accept(p, VYRE__T_LPAREN)) {
    char fix[VYRE__FIX_TEXT];
    snprintf(fix, sizeof fix, "write %s (condition)", word);
    vyre__p_error(p, vyre__p_behind(p), "V013", fix, "expected '(' after %s",
                  word);
    return vyre__p_value(p);
  }
  vyre__id id = vyre__p_value(p);
  if (vyre__p_is(p, VYRE__T_SET) && !p->now.panic) {
    vyre__p_error(
        p, vyre__p_span(&p->now.token), "V020",
        "write == to compare; put the assignment in a separate statement",
        "'=' assigns, and an assignment has no value");
    vyre__p_advance(p);
    (void)vyre__p_value(p);
    id = 0;
  }
  (void)vyre__p_close(p, VYRE__T_RPAREN, &open);
  return id;
}

void vyre__p_skip_head(vyre__parser *p) {
  unsigned level = 0;
  while (!vyre__p_is(p, VYRE__T_LBRACE) && !vyre__p_ends_block(p)) {
    bool closes = vyre__p_is(p, VYRE__T_RPAREN);
    if (vyre__p_is(p, VYRE__T_LPAREN)) level++;
    vyre__p_advance(p);
    if (closes && level-- == 0) break;
  }
  p->now.panic = vyre__p_ends_block(p); /* the body is missing */
}

static vyre__id read_if(vyre__parser *p) {
  vyre__token first = p->now.token;
  vyre__p_advance(p);
  vyre__id condition = vyre__p_condition(p, "if");
  vyre__source_span span = vyre__p_since(p, &first);
  if (p->now.panic) vyre__p_skip_head(p);
  vyre__id then = read_inner(p), otherwise = 0;
  if (vyre__p_accept(p, VYRE__T_ELSE)) {
    p->else_depth++;
    otherwise = read_inner(p);
    p->else_depth--;
  }
  p->ir.place = span.place;
  p->ir.length = span.length;
  return vyre__ir_build_if(&p->ir, condition, then, otherwise);
}

static vyre__id read_while(vyre__parser *p) {
  vyre__token first = p->now.token;
  vyre__p_advance(p);
  vyre__id condition = vyre__p_condition(p, "while");
  vyre__source_span span = vyre__p_since(p, &first);
  if (p->now.panic) vyre__p_skip_head(p);
  vyre__while_begin(&p->ir);
  vyre__id body = read_inner(p);
  p->ir.place = span.place;
  p->ir.length = span.length;
  return vyre__while_end(&p->ir, condition, body);
}

static vyre__id read_do(vyre__parser *p) {
  vyre__ir_builder *m = &p->ir;
  vyre__token first = p->now.token;
  vyre__do loop;
  vyre__p_advance(p);
  vyre__p_mark(p, &first);
  vyre__do_begin(m, &loop);
  vyre__id body = read_inner(p), condition = 0;
  if (vyre__p_expect(p, VYRE__T_WHILE,
                     "and a condition after the body of do")) {
    condition = vyre__p_condition(p, "while");
  }
  vyre__p_mark(p, &first);
  vyre__id id = vyre__do_end(m, &loop, body, condition);
  vyre__p_semicolon(p, "a do loop");
  return id;
}

/* --- for -------------------------------------------------------------------*/

typedef struct for_head {
  vyre__token name;
  bool has_name;
  vyre_type type;
  vyre__loop kind;
  vyre__id first, bound, step;
  unsigned op; /* of the step */
} for_head;

/* Reports a wrong for header. Each '$' in @p pattern becomes the loop
 * variable in the fix. */
static bool report_for_header(vyre__parser *p, const for_head *head,
                              const char *pattern, const char *message) {
  const vyre__token *token = head->has_name ? &head->name : &p->now.token;
  bool usable = token->kind == VYRE__T_NAME && token->length <= 40;
  const char *name = usable ? p->text + token->start : "i";
  size_t length = usable ? token->length : 1, used = 0;
  char fix[VYRE__FIX_TEXT];
  for (; *pattern; pattern++) {
    bool is_name = *pattern == '$';
    memcpy(fix + used, is_name ? name : pattern, is_name ? length : 1);
    used += is_name ? length : 1;
  }
  fix[used] = '\0';
  vyre__p_syntax(p, vyre__p_span(&p->now.token), "V019", fix, "%s", message);
  return false;
}

static const char shape[] = "write for (let $ = first; $ < bound; $ += step)";
static_assert(sizeof shape + (size_t)3 * 40 <= VYRE__FIX_TEXT,
              "the longest Fix");

/* Reads let i = first. */
static bool read_for_name(vyre__parser *p, for_head *head) {
  if (vyre__p_is(p, VYRE__T_NAME) && is_declaration_start(p)) {
    if (vyre__p_foreign_declaration(p, "let", &head->name) !=
        VYRE__LOCAL_NAMED) {
      return report_for_header(p, head, shape,
                               "a for loop must begin with let");
    }
  } else if (vyre__p_is(p, VYRE__T_SEMICOLON)) {
    return report_for_header(p, head, "write while (condition) { ... }",
                             "a for loop declares its own variable");
  } else {
    if (vyre__p_is(p, VYRE__T_VAR)) {
      vyre__p_edit(p, vyre__p_span(&p->now.token), "let");
      vyre__p_error(p, vyre__p_span(&p->now.token), "V019",
                    "write let, or use while with a var",
                    "the variable of a for loop cannot change in its body");
    } else if (!vyre__p_is(p, VYRE__T_LET)) {
      return report_for_header(p, head, shape,
                               "a for loop must begin with let");
    }
    vyre__p_advance(p);
    if (!vyre__p_new_name(p, "the variable of a loop", &head->name)) {
      vyre__p_bind_word(p, &head->name);
      return false;
    }
  }
  head->has_name = true;
  if (vyre__p_accept(p, VYRE__T_COLON)) head->type = vyre__p_type(p);
  if (!vyre__p_expect(p, VYRE__T_SET, "and the first value of the loop")) {
    return false;
  }
  head->first = vyre__p_value(p);
  return !p->now.panic &&
         vyre__p_expect(p, VYRE__T_SEMICOLON, "after the first value");
}

static bool is_loop_name(vyre__parser *p, const for_head *head) {
  if (vyre__p_is(p, VYRE__T_NAME) && p->now.token.symbol == head->name.symbol) {
    vyre__p_advance(p);
    return true;
  }
  return report_for_header(p, head, shape,
                           "a for loop must compare and step its own variable");
}

/* Reads i < bound ; */
static bool read_for_bound(vyre__parser *p, for_head *head) {
  if (!is_loop_name(p, head)) return false;
  switch (vyre__p_kind(p)) {
    case VYRE__T_LT:
      head->kind = VYRE__LOOP_LT;
      break;
    case VYRE__T_LE:
      head->kind = VYRE__LOOP_LE;
      break;
    case VYRE__T_GT:
      head->kind = VYRE__LOOP_GT;
      break;
    case VYRE__T_GE:
      head->kind = VYRE__LOOP_GE;
      break;
    default:
      return report_for_header(p, head,
                               "compare with <, <=, > or >=, or use while",
                               "a for loop must count up or down to a bound");
  }
  vyre__p_advance(p);
  head->bound = vyre__p_operators(p, VYRE__ABOVE_COMPARE);
  if (p->now.panic) return false;
  if (vyre__p_accept(p, VYRE__T_SEMICOLON)) return true;
  return report_for_header(
      p, head, "move other conditions to the body: if (done) break;",
      "a for loop has one comparison, followed by ';'");
}

static bool is_geometric(unsigned op) {
  return op == VYRE__OP_MUL || op == VYRE__OP_DIV || op == VYRE__OP_SHL ||
         op == VYRE__OP_SHR;
}

/* Reports ++i in the header of a loop. */
static bool report_prefix_step(vyre__parser *p, const for_head *head) {
  const vyre__token op = p->now.token;
  const vyre__token name = vyre__p_peek(p);
  if (name.kind == VYRE__T_NAME && name.line == op.line) {
    vyre__source_span span = vyre__p_span(&op);
    span.length = name.start + name.length - op.start;
    vyre__p_edit(p, span, "%.*s%s", (int)name.length, p->text + name.start,
                 vyre__token_text(op.kind));
  }
  return report_for_header(
      p, head, op.kind == VYRE__T_PLUS_PLUS ? "write $++" : "write $--",
      "the operator must come after the variable");
}

/* Reports i = i + 1 in the header of a loop. */
static bool report_assigned_step(vyre__parser *p, const for_head *head) {
  const vyre__token first = p->now.previous; /* the variable */
  char pattern[] = "write $ += step";
  vyre__p_advance(p);
  vyre__token name = p->now.token;
  const bool is_own =
      name.kind == VYRE__T_NAME && name.symbol == head->name.symbol;
  const vyre__token op = is_own ? vyre__p_peek(p) : name;
  if (is_own && op.length <= 2 && op.line == first.line &&
      (op.kind == VYRE__T_PLUS || op.kind == VYRE__T_MINUS ||
       op.kind == VYRE__T_STAR || op.kind == VYRE__T_SLASH)) {
    vyre__source_span span = vyre__p_span(&first);
    span.length = op.start + op.length - first.start;
    vyre__p_edit(p, span, "%.*s %c=", (int)first.length, p->text + first.start,
                 p->text[op.start]);
    pattern[strlen("write $ ")] = p->text[op.start];
    return report_for_header(p, head, pattern,
                             "a for loop must step with += -= *= /= <<= >>=");
  }
  return report_for_header(p, head, "write $ += step or $ *= factor",
                           "a for loop must step with += -= *= /= <<= >>=");
}

/* Reads i += step, i++, i *= step, i <<= step or their opposites. */
static bool read_for_step(vyre__parser *p, for_head *head) {
  if (vyre__p_is(p, VYRE__T_PLUS_PLUS) || vyre__p_is(p, VYRE__T_MINUS_MINUS)) {
    return report_prefix_step(p, head);
  }
  if (!is_loop_name(p, head)) return false;
  vyre__token token = p->now.token;
  unsigned op = vyre__p_assigned_op(token.kind);
  bool up = head->kind == VYRE__LOOP_LT || head->kind == VYRE__LOOP_LE;
  if (op == VYRE__OP_NONE) return report_assigned_step(p, head);
  if (op != VYRE__OP_ADD && op != VYRE__OP_SUB && !is_geometric(op)) {
    return report_for_header(p, head, "write $ += step or $ *= factor",
                             "a for loop must step with += -= *= /= <<= >>=");
  }
  bool steps_up =
      op == VYRE__OP_ADD || op == VYRE__OP_MUL || op == VYRE__OP_SHL;
  if (up != steps_up) {
    static const char *const fixes[2][2] = {
        {"write -=, or compare with <", "write +=, or compare with >"},
        {"write /=, or compare with <", "write *=, or compare with >"}};
    vyre__p_error(p, vyre__p_span(&token), "V019", fixes[is_geometric(op)][up],
                  up ? "this loop counts up to its bound, but steps down"
                     : "this loop counts down to its bound, but steps up");
  }
  head->op = op;
  head->step = vyre__p_assigned(p, &op);
  return !p->now.panic;
}

/* A for loop of either kind, while its body is read. */
typedef struct any_for {
  bool is_geometric;
  vyre__for counted;
  vyre__geometric geometric;
  uint32_t local;
} any_for;

static void begin_for(vyre__parser *p, const for_head *head, any_for *loop) {
  vyre__ir_builder *m = &p->ir;
  const char *name = head->has_name ? p->text + head->name.start : "";
  size_t length = head->has_name ? head->name.length : 0;
  loop->is_geometric = is_geometric(head->op);
  if (loop->is_geometric) {
    vyre__geometric_begin(m, &loop->geometric, name, length, head->type,
                          head->kind, (vyre__op)head->op, head->first,
                          head->bound, head->step);
    loop->local = loop->geometric.local;
  } else {
    vyre__for_begin(m, &loop->counted, name, length, head->type, head->kind,
                    head->first, head->bound, head->step);
    loop->local = loop->counted.local;
  }
}

static vyre__id end_for(vyre__parser *p, const any_for *loop, vyre__id body) {
  return loop->is_geometric
             ? vyre__geometric_end(&p->ir, &loop->geometric, body)
             : vyre__for_end(&p->ir, &loop->counted, body);
}

static vyre__id read_for(vyre__parser *p) {
  vyre__ir_builder *m = &p->ir;
  vyre__token first = p->now.token, open;
  for_head head = {.has_name = false, .type = VYRE_TYPE_VOID};
  any_for loop;
  vyre__p_advance(p);
  open = p->now.token;
  bool good = vyre__p_expect(p, VYRE__T_LPAREN, "behind for") &&
              read_for_name(p, &head) && read_for_bound(p, &head) &&
              read_for_step(p, &head) &&
              vyre__p_close(p, VYRE__T_RPAREN, &open);
  if (!good) {
    p->now.panic = true;
    head.first = 0;
    vyre__p_skip_head(p);
  }
  size_t scope = p->binding_count;
  if (head.has_name) vyre__p_check_free(p, &head.name);
  vyre__source_span span = vyre__p_since(p, &first);
  m->place = span.place;
  m->length = span.length;
  begin_for(p, &head, &loop);
  if (head.has_name) {
    vyre__p_bind(
        p, &head.name,
        loop.local == VYRE_NO_INDEX ? VYRE__BIND_WRONG : VYRE__BIND_LOCAL,
        loop.local);
  }
  vyre__id body = read_inner(p);
  vyre__p_unbind(p, scope);
  m->place = span.place;
  m->length = span.length;
  return end_for(p, &loop, body);
}

/* --- other statements ------------------------------------------------------*/

/* Reports barrier(CLK_LOCAL_MEM_FENCE). */
static vyre__id report_barrier(vyre__parser *p, const vyre__token *word) {
  const char *name = vyre__token_text(word->kind);
  const vyre__token first = p->now.token;
  char fix[VYRE__FIX_TEXT];
  while (!vyre__p_is(p, VYRE__T_RPAREN) && !vyre__p_is(p, VYRE__T_SEMICOLON) &&
         !vyre__p_ends_block(p)) {
    vyre__p_advance(p);
  }
  if (p->now.previous.line == first.line) {
    vyre__p_edit(p, vyre__p_since(p, &first), "%s", "");
  }
  snprintf(fix, sizeof fix,
           "write %s();, which orders shared memory and buffers", name);
  return vyre__p_syntax(p, vyre__p_span(&first), "V051", fix,
                        "%s() takes no arguments", name);
}

static vyre__id read_simple(vyre__parser *p, vyre__op op, bool is_call) {
  vyre__token first = p->now.token;
  vyre__p_advance(p);
  if (is_call) {
    vyre__token open = p->now.token;
    if (!vyre__p_expect(p, VYRE__T_LPAREN, "and ')' after a barrier")) {
      return 0;
    }
    if (!vyre__p_is(p, VYRE__T_RPAREN)) return report_barrier(p, &first);
    if (!vyre__p_close(p, VYRE__T_RPAREN, &open)) return 0;
  }
  vyre__p_mark(p, &first);
  vyre__id id = vyre__ir_build_simple(&p->ir, op);
  vyre__p_semicolon(p, "a statement");
  return id;
}

static vyre__id read_return(vyre__parser *p) {
  vyre__token first = p->now.token;
  vyre__p_advance(p);
  const vyre__ir_builder *m = &p->ir;
  if (m->function < m->function_count &&
      (m->functions[m->function].result_count > 0)) {
    return vyre__p_return_results(p, &first);
  }
  bool has_value = !vyre__p_is(p, VYRE__T_SEMICOLON) && !vyre__p_ends_block(p);
  vyre__id value = has_value ? vyre__p_value(p) : 0;
  if (p->now.panic) return 0;
  vyre__p_mark(p, &first);
  vyre__id id = vyre__ir_build_return(&p->ir, has_value, value);
  vyre__p_semicolon(p, "a return");
  return id;
}

static vyre__id read_printing(vyre__parser *p) {
  vyre__id id = vyre__p_print(p);
  vyre__p_semicolon(p, "a statement");
  return id;
}

/* Reports ++i; */
static vyre__id report_increment(vyre__parser *p) {
  const vyre__token token = p->now.token;
  const char *op = vyre__token_text(token.kind);
  char fix[VYRE__FIX_TEXT];
  vyre__p_advance(p);
  vyre__token end = p->now.token;
  uint32_t stop = end.start + end.length;
  while (!vyre__p_is(p, VYRE__T_SEMICOLON) && !vyre__p_ends_block(p) &&
         p->now.token.line == token.line) { /* ++n[i]; */
    stop = p->now.token.start + p->now.token.length;
    vyre__p_advance(p);
  }
  vyre__source_span span = vyre__p_span(&token);
  span.length = stop - token.start;
  const int shown = stop - end.start > 60 ? 60 : (int)(stop - end.start);
  snprintf(fix, sizeof fix, "write %.*s%s;", shown, p->text + end.start, op);
  vyre__p_edit(p, span, "%.*s%s", (int)(stop - end.start), p->text + end.start,
               op);
  return vyre__p_syntax(p, vyre__p_span(&token), "V021", fix,
                        "'%s' must come after the variable", op);
}

/* Reports tokens that begin a statement in other languages, but not here. */
static vyre__id report_statement(vyre__parser *p) {
  vyre__token token = p->now.token;
  vyre__source_span span = vyre__p_span(&token);
  vyre__id id;
  switch (token.kind) {
    case VYRE__T_SEMICOLON:
      vyre__p_edit(p, span, "%s", "");
      vyre__p_error(p, span, "V013", "remove it",
                    "expected a statement, found ';'");
      vyre__p_advance(p);
      return 0;
    case VYRE__T_ELSE:
      vyre__p_error(p, span, "V013",
                    "put it directly after the statement or block of an if",
                    "expected a statement, found an else without an if");
      vyre__p_advance(p);
      return 0;
    case VYRE__T_CASE:
    case VYRE__T_DEFAULT:
      return vyre__p_syntax(p, span, "V091",
                            "move it to the outermost level of a switch",
                            "a label must be directly in a switch");
    case VYRE__T_CONST:
      if (read_foreign_declaration(p, &id)) return id;
      vyre__p_edit(p, span, "let");
      vyre__p_syntax(p, span, "V046",
                     "write let x = value;, or move it out of the body",
                     "a const must be outside kernels and fns");
      vyre__p_advance(p); /* recovery stops at a const */
      return 0;
    case VYRE__T_BUFFER:
    case VYRE__T_SHARED:
    case VYRE__T_UNIFORM:
      if (read_foreign_declaration(p, &id)) return id;
      if (token.kind == VYRE__T_UNIFORM) return read_expression(p);
      return vyre__p_syntax(
          p, span, "V046", "move it before the '{' of the kernel",
          "buffers must be declared in the header of a kernel");
    case VYRE__T_PLUS_PLUS:
    case VYRE__T_MINUS_MINUS:
      return report_increment(p);
    case VYRE__T_STAR:
      return vyre__p_syntax(p, span, "V025",
                            "use an index into a buffer: buffer[i] = value;",
                            "the language has no pointers");
    default:
      return read_expression(p);
  }
}

static vyre__id read_any(vyre__parser *p) {
  switch (vyre__p_kind(p)) {
    case VYRE__T_NAME:
      return read_named(p);
    case VYRE__T_LBRACE:
      return read_block(p);
    case VYRE__T_LET:
    case VYRE__T_VAR:
      return read_declaration(p);
    case VYRE__T_IF:
      return read_if(p);
    case VYRE__T_FOR:
      return read_for(p);
    case VYRE__T_WHILE:
      return read_while(p);
    case VYRE__T_DO:
      return read_do(p);
    case VYRE__T_SWITCH:
      return vyre__p_switch(p);
    case VYRE__T_STRUCT:
      return vyre__p_struct_statement(p);
    case VYRE__T_BREAK:
      return read_simple(p, VYRE__OP_BREAK, false);
    case VYRE__T_CONTINUE:
      return read_simple(p, VYRE__OP_CONTINUE, false);
    case VYRE__T_RETURN:
      return read_return(p);
    case VYRE__T_BARRIER:
      return read_simple(p, VYRE__OP_BARRIER, true);
    case VYRE__T_GRID_BARRIER:
      return read_simple(p, VYRE__OP_GRID_BARRIER, true);
    case VYRE__T_PRINT:
      return read_printing(p);
    case VYRE__T_LPAREN:
      return vyre__p_is_result_list(p) ? vyre__p_assign_results(p)
                                       : read_expression(p);
    default:
      return report_statement(p);
  }
}

void vyre__p_statement(vyre__parser *p) {
  uint32_t start = p->now.token.start;
  if (!vyre__p_enter(p)) return;
  vyre__id id = read_any(p);
  p->depth--;
  vyre__statement(&p->ir, id);
  if (p->now.panic) vyre__p_recover(p, start);
}
