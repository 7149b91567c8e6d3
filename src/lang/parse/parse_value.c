/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parser: values, that is operators by precedence, literals, parentheses. */
#include <stdio.h>
#include <string.h>

#include "lang/parse/parse.h"

/* Classes of operators whose precedence in C is a trap: a & b == c. */
enum { PLAIN, COMPARE, BITS };

typedef struct binary_row {
  uint8_t precedence; /* 0: not a binary operator */
  uint8_t op;         /* vyre__op */
  uint8_t class;
} binary_row;

static const binary_row binaries[VYRE__T_COUNT] = {
    [VYRE__T_LOR] = {1, VYRE__OP_LOR, PLAIN},
    [VYRE__T_LAND] = {2, VYRE__OP_LAND, PLAIN},
    [VYRE__T_PIPE] = {3, VYRE__OP_OR, BITS},
    [VYRE__T_CARET] = {4, VYRE__OP_XOR, BITS},
    [VYRE__T_AMP] = {5, VYRE__OP_AND, BITS},
    [VYRE__T_EQ] = {6, VYRE__OP_EQ, COMPARE},
    [VYRE__T_NE] = {6, VYRE__OP_NE, COMPARE},
    [VYRE__T_LT] = {7, VYRE__OP_LT, COMPARE},
    [VYRE__T_LE] = {7, VYRE__OP_LE, COMPARE},
    [VYRE__T_GT] = {7, VYRE__OP_GT, COMPARE},
    [VYRE__T_GE] = {7, VYRE__OP_GE, COMPARE},
    [VYRE__T_SHL] = {VYRE__ABOVE_COMPARE, VYRE__OP_SHL, PLAIN},
    [VYRE__T_SHR] = {VYRE__ABOVE_COMPARE, VYRE__OP_SHR, PLAIN},
    [VYRE__T_PLUS] = {9, VYRE__OP_ADD, PLAIN},
    [VYRE__T_MINUS] = {9, VYRE__OP_SUB, PLAIN},
    [VYRE__T_STAR] = {10, VYRE__OP_MUL, PLAIN},
    [VYRE__T_SLASH] = {10, VYRE__OP_DIV, PLAIN},
    [VYRE__T_PERCENT] = {10, VYRE__OP_REM, PLAIN},
};

/* --- primary values --------------------------------------------------------*/

/* Reads a number; @p minus is the sign directly before it, or NULL. */
static vyre__id read_number(vyre__parser *p, const vyre__token *minus) {
  vyre__ir_builder *m = &p->ir;
  vyre__token token = p->now.token;
  vyre__number_token number;
  vyre__number_fault fault;
  vyre__p_advance(p);
  if (!vyre__number_read(p->text + token.start, token.length, &number,
                         &fault)) {
    return vyre__p_error(p, vyre__p_span(&token), "V011", fault.fix, "%s",
                         fault.message);
  }
  if (!number.is_float) {
    vyre__p_mark(p, minus ? minus : &token);
    return vyre__ir_build_integer(m, number.integer, minus != NULL,
                                  number.type);
  }
  if (number.vanishes) {
    return vyre__p_error(p, vyre__p_span(&token), "V064", "write 0.0",
                         "the number is too small for f64: it would become 0");
  }
  vyre__p_mark(p, &token);
  vyre__id id = vyre__ir_build_float(m, number.f64, number.f32, number.type);
  if (!minus) return id;
  vyre__p_mark(p, minus);
  return vyre__ir_build_unary(m, VYRE__OP_NEG, id);
}

static vyre__id read_unary(vyre__parser *p);

/* Returns true if a C cast begins after an opening parenthesis: (float)x. */
static bool is_c_cast(vyre__parser *p) {
  const vyre__token *token = &p->now.token;
  if (token->kind != VYRE__T_NAME) return false;
  const vyre__symbol *symbol = vyre__p_symbol(p, token);
  if (symbol->local || symbol->item) return false;
  if (symbol->word != VYRE__WORD_TYPE && symbol->word != VYRE__WORD_ELEMENT &&
      !vyre__foreign_type(symbol->text, symbol->length)) {
    return false;
  }
  unsigned next = vyre__p_peek(p).kind;
  return next == VYRE__T_RPAREN || next == VYRE__T_STAR || next == VYRE__T_NAME;
}

/* Sets the edit for (float)x and (float4)(x, y, z, w); @p end is the bracket
 * after the type. */
static void edit_c_cast(vyre__parser *p, const vyre__token *open,
                        const vyre__token *end, const char *type) {
  const vyre__token operand = p->now.token;
  vyre__source_span span = vyre__p_span(open);
  if (operand.line != open->line) return;
  if (operand.kind == VYRE__T_LPAREN) {
    span.length = end->start + end->length - open->start;
    vyre__p_edit(p, span, "%s", type);
    return;
  }
  const unsigned next = vyre__p_peek(p).kind;
  if ((operand.kind != VYRE__T_NAME && operand.kind != VYRE__T_NUMBER) ||
      next == VYRE__T_LPAREN || next == VYRE__T_LBRACKET ||
      next == VYRE__T_DOT || next == VYRE__T_ARROW) {
    return;
  }
  span.length = operand.start + operand.length - open->start;
  vyre__p_edit(p, span, "%s(%.*s)", type, (int)operand.length,
               p->text + operand.start);
}

static vyre__id report_c_cast(vyre__parser *p, const vyre__token *open) {
  const vyre__symbol *symbol = vyre__p_symbol(p, &p->now.token);
  const char *foreign = vyre__foreign_type(symbol->text, symbol->length);
  char fix[VYRE__FIX_TEXT], type[16];
  snprintf(type, sizeof type, "%.*s", (int)symbol->length, symbol->text);
  if (foreign) snprintf(type, sizeof type, "%s", foreign);
  while (vyre__p_is(p, VYRE__T_NAME) || vyre__p_is(p, VYRE__T_STAR)) {
    vyre__p_advance(p);
  }
  const vyre__token end = p->now.token;
  const bool is_pointer = p->now.previous.kind == VYRE__T_STAR;
  if (!vyre__p_close(p, VYRE__T_RPAREN, open)) return 0;
  if (is_pointer) {
    vyre__p_error(p, vyre__p_since(p, open), "V025",
                  "use a buffer with elements of this type",
                  "the language has no pointers");
  } else {
    const bool is_vector = strchr(type, 'x') != NULL;
    snprintf(fix, sizeof fix, is_vector ? "write %s(x, ...)" : "write %s(x)",
             type);
    edit_c_cast(p, open, &end, type);
    vyre__p_error(p, vyre__p_since(p, open), "V024", fix,
                  "a cast has the form of a call");
  }
  if (vyre__p_is(p, VYRE__T_LPAREN)) return vyre__p_skip_arguments(p);
  (void)read_unary(p);
  return 0;
}

static vyre__id read_parentheses(vyre__parser *p) {
  vyre__token open = p->now.token;
  vyre__p_advance(p);
  if (is_c_cast(p)) return report_c_cast(p, &open);
  vyre__id id = vyre__p_value(p);
  if (!vyre__p_close(p, VYRE__T_RPAREN, &open)) return 0;
  return id;
}

static vyre__id read_bool(vyre__parser *p) {
  vyre__token token = p->now.token;
  vyre__p_advance(p);
  vyre__p_mark(p, &token);
  return vyre__ir_build_literal(&p->ir, VYRE_TYPE_BOOL,
                                token.kind == VYRE__T_TRUE);
}

static vyre__id read_uniform(vyre__parser *p) {
  vyre__token first = p->now.token, open;
  vyre__p_advance(p);
  open = p->now.token;
  if (!vyre__p_expect(p, VYRE__T_LPAREN, "and a value after uniform")) {
    return 0;
  }
  vyre__id id = vyre__p_value(p);
  if (!vyre__p_close(p, VYRE__T_RPAREN, &open)) return 0;
  vyre__p_mark(p, &first);
  return vyre__ir_build_unary(&p->ir, VYRE__OP_UNIFORM, id);
}

static vyre__id read_primary(vyre__parser *p) {
  switch (vyre__p_kind(p)) {
    case VYRE__T_NAME:
      return vyre__p_name(p);
    case VYRE__T_NUMBER:
      return read_number(p, NULL);
    case VYRE__T_LPAREN:
      return read_parentheses(p);
    case VYRE__T_TRUE:
    case VYRE__T_FALSE:
      return read_bool(p);
    case VYRE__T_UNIFORM:
      return read_uniform(p);
    case VYRE__T_STRING:
      if (p->wrong_calls > 0) { /* of printf */
        vyre__p_advance(p);
        return 0;
      }
      vyre__p_error(p, vyre__p_span(&p->now.token), "V055",
                    "use numbers; strings are allowed in print(...) only",
                    "a string is not a value");
      vyre__p_advance(p);
      return 0;
    case VYRE__T_LBRACKET:
      vyre__p_expected(p, "a value",
                       "write let a : f32[3] = {x, y, z}; for an array");
      return 0;
    default:
      return vyre__p_expected(p, "a value",
                              "write a number, a name or an expression here");
  }
}

void vyre__p_report_second_bracket(vyre__parser *p) {
  vyre__p_error(p, vyre__p_span(&p->now.token), "V035",
                "write one bracket, as in a[y, x], and declare the buffer "
                "with its dimensions: f32[height, width]",
                "only buffers and vectors have elements");
}

/* Reports postfix syntax of C that this language does not have. */
static vyre__id report_postfix(vyre__parser *p) {
  vyre__token token = p->now.token;
  vyre__source_span span = vyre__p_span(&token);
  switch (token.kind) {
    case VYRE__T_LBRACKET:
      vyre__p_report_second_bracket(p);
      (void)vyre__p_index_of(p);
      return 0;
    case VYRE__T_LPAREN:
      return vyre__p_syntax(p, span, "V035",
                            "write an operator between them, or call a fn",
                            "this is not a function and cannot be called");
    case VYRE__T_DOT:
      vyre__p_error(
          p, span, "V036",
          "only vectors, global_id, local_id and the like have .x .y .z",
          "this value has no members");
      vyre__p_advance(p);
      (void)vyre__p_accept(p, VYRE__T_NAME);
      return 0;
    case VYRE__T_ARROW:
      return vyre__p_syntax(p, span, "V025", "use an index into a buffer",
                            "the language has no pointers");
    default:
      vyre__p_report_step(p, &p->now.previous, &token);
      vyre__p_advance(p);
      return 0;
  }
}

static bool is_postfix(unsigned kind) {
  return kind == VYRE__T_LBRACKET || kind == VYRE__T_LPAREN ||
         kind == VYRE__T_DOT || kind == VYRE__T_ARROW ||
         kind == VYRE__T_PLUS_PLUS || kind == VYRE__T_MINUS_MINUS;
}

/* Reads .x or .zyx. */
static vyre__id read_components(vyre__parser *p, const vyre__token *first,
                                vyre__id id) {
  vyre__p_advance(p);
  vyre__token name = p->now.token;
  uint8_t components[VYRE__MAX_COMPONENTS];
  char found[VYRE__FOUND_TEXT];
  const bool is_rgba = name.kind == VYRE__T_NAME && name.length >= 1 &&
                       strchr("rgba", p->text[name.start]) != NULL;
  if (name.kind != VYRE__T_NAME) {
    return vyre__p_expected(p, "a component", "write .x, .y, .z or .w");
  }
  vyre__p_advance(p);
  if (id == 0) return 0; /* reported */
  bool good = name.length <= VYRE__MAX_COMPONENTS;
  for (uint32_t i = 0; good && i < name.length; i++) {
    const char *at = strchr("xyzw", p->text[name.start + i]);
    good = at != NULL;
    if (good) components[i] = (uint8_t)(at - "xyzw");
  }
  if (!good) {
    return vyre__p_error(
        p, vyre__p_span(&name), "V036",
        is_rgba ? "use .x for .r, .y for .g, .z for .b and .w for .a"
                : "use .x, .y, .z or .w, or several of them, as in v.xy",
        "a vector has no component %s", vyre__p_found(p, &name, found));
  }
  vyre__p_mark(p, first);
  return vyre__ir_build_part(&p->ir, id, components, name.length);
}

vyre__id vyre__p_part(vyre__parser *p, const vyre__token *first, vyre__id id) {
  if (vyre__p_is(p, VYRE__T_DOT)) {
    return vyre__struct_at(&p->ir, vyre__type_of(&p->ir, id))
               ? vyre__p_field(p, first, id)
               : read_components(p, first, id);
  }
  vyre__id index = vyre__p_index_of(p);
  vyre__p_mark(p, first);
  return vyre__ir_build_component(&p->ir, id, index);
}

static vyre__id read_postfix(vyre__parser *p) {
  vyre__token first = p->now.token;
  vyre__id id = read_primary(p);
  while (is_postfix(vyre__p_kind(p)) && !p->now.panic) {
    if (p->now.token.line != p->now.previous.line) break; /* a ';' is missing */
    const bool is_part =
        vyre__p_is(p, VYRE__T_DOT) || vyre__p_is(p, VYRE__T_LBRACKET);
    if (is_part && id == 0) { /* reported */
      vyre__p_skip_parts(p);
    } else if (is_part && vyre__is_aggregate(vyre__type_of(&p->ir, id))) {
      id = vyre__p_part(p, &first, id);
    } else {
      id = report_postfix(p);
    }
  }
  return id;
}

/* --- operators -------------------------------------------------------------*/

static vyre__id report_prefix(vyre__parser *p) {
  vyre__token token = p->now.token;
  vyre__source_span span = vyre__p_span(&token);
  if (token.kind == VYRE__T_PLUS) {
    vyre__p_edit(p, span, "%s", "");
    vyre__p_error(
        p, span, "V013", "remove it",
        "expected a value, found '+': the language has no unary plus");
  } else if (token.kind == VYRE__T_STAR || token.kind == VYRE__T_AMP) {
    if (token.kind == VYRE__T_AMP && p->wrong_calls > 0) { /* atomicAdd(&x) */
      vyre__p_advance(p);
      return read_unary(p);
    }
    if (token.kind == VYRE__T_AMP) vyre__p_edit(p, span, "%s", "");
    const bool is_power = token.kind == VYRE__T_STAR && token.start > 0 &&
                          p->text[token.start - 1] == '*';
    if (is_power) {
      vyre__p_error(p, span, "V013", "write pow(x, y)",
                    "the language has no operator **");
      vyre__p_advance(p);
      (void)read_unary(p);
      return 0;
    }
    vyre__p_error(p, span, "V025",
                  token.kind == VYRE__T_AMP
                      ? "remove '&'; atomics take buffer[i]"
                      : "use an index into a buffer: buffer[i]",
                  "the language has no pointers");
    vyre__p_advance(p);
    p->wrong_calls++; /* the operand may be a buffer */
    (void)read_unary(p);
    p->wrong_calls--;
    return 0;
  } else {
    const vyre__token next = vyre__p_peek(p);
    vyre__p_report_step(p, &next, &token);
  }
  vyre__p_advance(p);
  (void)read_unary(p);
  return 0;
}

static vyre__id read_prefix(vyre__parser *p) {
  vyre__token first = p->now.token;
  vyre__op op = VYRE__OP_NEG;
  switch (first.kind) {
    case VYRE__T_BANG:
      op = VYRE__OP_NOT;
      break;
    case VYRE__T_TILDE:
      op = VYRE__OP_BIT_NOT;
      break;
    case VYRE__T_MINUS:
      break;
    case VYRE__T_PLUS:
    case VYRE__T_STAR:
    case VYRE__T_AMP:
    case VYRE__T_PLUS_PLUS:
    case VYRE__T_MINUS_MINUS:
      return report_prefix(p);
    default:
      return read_postfix(p);
  }
  vyre__p_advance(p);
  if (op == VYRE__OP_NEG && vyre__p_is(p, VYRE__T_NUMBER)) {
    return read_number(p, &first);
  }
  vyre__id id = read_unary(p);
  vyre__p_mark(p, &first);
  return vyre__ir_build_unary(&p->ir, op, id);
}

static vyre__id read_unary(vyre__parser *p) {
  if (!vyre__p_enter(p)) return 0;
  const unsigned kind = vyre__p_kind(p);
  bool plain =
      kind == VYRE__T_NAME || kind == VYRE__T_NUMBER; /* the common case */
  vyre__id id = plain ? read_postfix(p) : read_prefix(p);
  p->depth--;
  return id;
}

/* Reports two operators whose combination is easily misread. */
static bool is_trap(vyre__parser *p, vyre__source_span op, unsigned kind,
                    unsigned left, unsigned right) {
  if (left != COMPARE && right != COMPARE) return false;
  if (binaries[kind].class == COMPARE) {
    vyre__p_error(p, op, "V022",
                  "write a < b && b < c, or put one comparison in parentheses",
                  "'%s' compares the result of a comparison",
                  vyre__token_text(kind));
    return true;
  }
  if (binaries[kind].class == BITS) {
    vyre__p_error(p, op, "V023", "add parentheses: (a & b) == c",
                  "'%s' has lower precedence than a comparison, as in C",
                  vyre__token_text(kind));
    return true;
  }
  return false;
}

static vyre__id read_operators(vyre__parser *p, int precedence,
                               unsigned *class) {
  vyre__token first = p->now.token;
  *class = PLAIN;
  vyre__id left = read_unary(p);
  for (;;) {
    binary_row row = binaries[vyre__p_kind(p)];
    if (row.precedence == 0 || row.precedence < precedence) return left;
    if (p->now.panic) return 0;
    const vyre__source_span op = vyre__p_span(&p->now.token);
    const unsigned kind = vyre__p_kind(p);
    unsigned right_class;
    vyre__p_advance(p);
    vyre__id right = read_operators(p, row.precedence + 1, &right_class);
    if (p->now.panic) return 0;
    if (is_trap(p, op, kind, *class, right_class)) {
      left = 0;
    } else {
      vyre__p_mark(p, &first);
      left = vyre__ir_build_binary(&p->ir, (vyre__op)row.op, left, right);
    }
    *class = row.class;
  }
}

vyre__id vyre__p_operators(vyre__parser *p, int precedence) {
  unsigned class;
  return read_operators(p, precedence, &class);
}

vyre__id vyre__p_value(vyre__parser *p) {
  vyre__token first = p->now.token;
  vyre__id id = vyre__p_operators(p, 1);
  if (!vyre__p_is(p, VYRE__T_QUESTION) || p->now.panic) return id;
  if (!vyre__p_enter(p)) return 0;
  vyre__p_advance(p);
  vyre__id then = vyre__p_value(p), otherwise = 0;
  if (vyre__p_expect(p, VYRE__T_COLON, "and the other value after '?'")) {
    otherwise = vyre__p_value(p);
  }
  p->depth--;
  if (p->now.panic) return 0;
  vyre__p_mark(p, &first);
  return vyre__ir_build_ternary(&p->ir, VYRE__OP_COND, id, then, otherwise);
}

bool vyre__p_constant(vyre__parser *p, const char *rule, const char *subject,
                      uint64_t min, uint64_t max, uint32_t *out) {
  vyre__ir_builder *m = &p->ir;
  vyre__token first = p->now.token;
  vyre__id id = vyre__p_value(p);
  uint64_t bits = 0;
  vyre__p_mark(p, &first);
  if (!id || p->now.panic) return false;
  /* 3000000000 is a valid size, although it does not fit an i32. */
  if (vyre__type_of(m, id) == VYRE__TYPE_INT) {
    id = vyre__resolve_type(m, id, VYRE_TYPE_I64);
  }
  if (!id || !vyre__const_eval(m, id, &bits)) return false;
  unsigned type = vyre__type_of(m, id);
  char fix[VYRE__FIX_TEXT];
  if (!vyre__type_is_integer(type)) {
    vyre__p_error(p, vyre__p_since(p, &first), rule, "write an integer",
                  "%s must be an integer, not %s", subject,
                  vyre__type_name(type));
    return false;
  }
  bool negative = (type == VYRE_TYPE_I32 && bits > INT32_MAX) ||
                  (type == VYRE_TYPE_I64 && bits > INT64_MAX);
  if (negative || bits < min || bits > max) {
    snprintf(fix, sizeof fix, "use a number from %llu to %llu",
             (unsigned long long)min, (unsigned long long)max);
    long long shown = type == VYRE_TYPE_I32 ? (long long)(int32_t)(uint32_t)bits
                                            : (long long)bits;
    if (negative) {
      vyre__p_error(p, vyre__p_since(p, &first), rule, fix, "%s cannot be %lld",
                    subject, shown);
    } else {
      vyre__p_error(p, vyre__p_since(p, &first), rule, fix, "%s cannot be %llu",
                    subject, (unsigned long long)bits);
    }
    return false;
  }
  *out = (uint32_t)bits;
  return true;
}
