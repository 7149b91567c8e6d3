/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parser: names in values, that is locals, buffers, consts, calls and
 * built-ins. */
#include <stdio.h>
#include <string.h>

#include "lang/parse/parse.h"

/* --- arguments -------------------------------------------------------------*/

/* Reads an argument: whole memory for a parameter that is memory. */
static vyre__id read_argument(vyre__parser *p, const vyre__item *item,
                              uint32_t index) {
  vyre__token name = p->now.token;
  uint32_t memory;
  const bool is_memory =
      item && item->state == VYRE__ITEM_DONE && index < item->parameter_count &&
      p->parameters[item->first_parameter + index].spec.is_memory;
  if (!is_memory) return vyre__p_value(p);
  if (vyre__p_is(p, VYRE__T_AMP)) {
    vyre__p_error(p, vyre__p_span(&p->now.token), "V025",
                  "remove '&': pass the name of the array or buffer",
                  "the language has no pointers");
    vyre__p_advance(p);
    name = p->now.token;
  }
  if (!vyre__p_names_memory(p, &name, &memory)) return vyre__p_value(p);
  const unsigned next = vyre__p_peek(p).kind;
  if (next != VYRE__T_COMMA && next != VYRE__T_RPAREN) return vyre__p_value(p);
  vyre__p_advance(p);
  vyre__p_mark(p, &name);
  return vyre__ir_build_memory(&p->ir, memory);
}

static bool read_all_arguments(vyre__parser *p, const vyre__item *item,
                               uint32_t *count) {
  vyre__token open = p->now.token;
  *count = 0;
  if (!vyre__p_accept(p, VYRE__T_LPAREN)) return false;
  while (!vyre__p_is(p, VYRE__T_RPAREN) && !p->now.panic) {
    vyre__push(&p->ir, read_argument(p, item, *count));
    ++*count;
    if (!vyre__p_accept(p, VYRE__T_COMMA)) break;
  }
  return vyre__p_close(p, VYRE__T_RPAREN, &open);
}

bool vyre__p_arguments(vyre__parser *p, uint32_t *count) {
  return read_all_arguments(p, NULL, count);
}

vyre__id vyre__p_skip_arguments(vyre__parser *p) {
  uint32_t count, mark = vyre__stack_mark(&p->ir);
  p->wrong_calls++;
  if (vyre__p_is(p, VYRE__T_LPAREN)) (void)vyre__p_arguments(p, &count);
  p->wrong_calls--;
  vyre__stack_drop(&p->ir, mark);
  return 0;
}

/* Reads exactly @p wanted arguments into @p ids. */
static bool read_arguments(vyre__parser *p, const vyre__token *name,
                           uint32_t wanted, vyre__id *ids) {
  vyre__ir_builder *m = &p->ir;
  uint32_t count, mark = vyre__stack_mark(m);
  char found[VYRE__FOUND_TEXT];
  if (!vyre__p_is(p, VYRE__T_LPAREN)) {
    vyre__p_syntax(p, vyre__p_behind(p), "V035",
                   "write '(' and the arguments after it",
                   "%s is a function: call it", vyre__p_found(p, name, found));
    return false;
  }
  bool good = vyre__p_arguments(p, &count);
  if (good && count != wanted) {
    char fix[VYRE__FIX_TEXT];
    snprintf(fix, sizeof fix, "give it %u", wanted);
    vyre__p_error(p, vyre__p_since(p, name), "V051", fix,
                  "%s takes %u argument%s, not %u",
                  vyre__p_found(p, name, found), wanted, wanted == 1 ? "" : "s",
                  count);
    good = false;
  }
  /* fails if memory is exhausted */
  good = good && m->stack_count == mark + wanted;
  for (uint32_t i = 0; good && i < wanted; i++) ids[i] = m->stack[mark + i];
  vyre__stack_drop(m, mark);
  return good;
}

/* --- buffers ---------------------------------------------------------------*/

vyre__id vyre__p_index_of(vyre__parser *p) {
  vyre__token open = p->now.token;
  if (!vyre__p_accept(p, VYRE__T_LBRACKET)) return 0;
  return vyre__p_indices(p, &open, vyre__p_value(p));
}

vyre__id vyre__p_load(vyre__parser *p, const vyre__token *name,
                      uint32_t buffer) {
  vyre__ir_builder *m = &p->ir;
  const vyre_buffer_decl *decl = vyre__p_buffer(p, buffer);
  vyre__id index;
  if (!decl) {
    if (vyre__p_is(p, VYRE__T_LBRACKET)) (void)vyre__p_index_of(p);
    return 0;
  }
  if (vyre__p_is(p, VYRE__T_LBRACKET)) {
    index = vyre__p_index_of(p);
  } else if (decl->kind == VYRE_MEMORY_UNIFORM && decl->count == 1) {
    vyre__p_mark(p, name);
    index = vyre__ir_build_literal(m, VYRE_TYPE_U32, 0);
  } else if (p->wrong_calls > 0) {
    return 0; /* the intended function may accept a buffer, like len */
  } else {
    char fix[VYRE__FIX_TEXT];
    snprintf(fix, sizeof fix, "write %.100s[i], or len(%.60s)", decl->name,
             decl->name);
    return vyre__p_error(p, vyre__p_span(name), "V035", fix,
                         "'%.100s' is %s and needs an index", decl->name,
                         vyre__p_kind_of_memory(buffer));
  }
  vyre__p_mark(p, name);
  return index ? vyre__ir_build_load(m, buffer, index) : 0;
}

/* Finds the buffer of a name. Returns false after a report. */
static bool find_buffer(vyre__parser *p, const vyre__token *name,
                        const char *subject, uint32_t *buffer) {
  char found[VYRE__FOUND_TEXT], fix[VYRE__FIX_TEXT];
  const vyre__symbol *symbol = vyre__p_symbol(p, name);
  const vyre__binding *binding = NULL;
  if (name->kind == VYRE__T_NAME && symbol->local) {
    binding = &p->bindings[symbol->local - 1];
  }
  if (binding && binding->kind == VYRE__BIND_WRONG) return false;
  if (vyre__p_names_memory(p, name, buffer)) return true;
  vyre__guess guess = {.best = NULL};
  if (name->kind == VYRE__T_NAME) {
    guess = vyre__guess_begin(symbol->text, symbol->length);
    for (size_t i = 0; i < p->buffer_count && i < 1000; i++) {
      vyre__guess_try(&guess, p->buffers[i].name, strlen(p->buffers[i].name));
    }
  }
  vyre__p_did_you_mean(&guess, "use the name of a buffer of this kernel", fix);
  vyre__p_error(p, vyre__p_span(name), "V053", fix,
                "%s, but %s is not a buffer of this kernel", subject,
                vyre__p_found(p, name, found));
  return false;
}

/* Reads len(buffer). */
static vyre__id read_len(vyre__parser *p, const vyre__token *first) {
  vyre__token open = p->now.token, name;
  uint32_t buffer = 0;
  if (!vyre__p_expect(p, VYRE__T_LPAREN, "and a buffer after len")) return 0;
  if (vyre__p_is(p, VYRE__T_AMP)) {
    vyre__p_edit(p, vyre__p_span(&p->now.token), "%s", "");
    vyre__p_error(p, vyre__p_span(&p->now.token), "V025",
                  "remove '&': len takes a buffer",
                  "the language has no pointers");
    vyre__p_advance(p);
  }
  name = p->now.token;
  if (name.kind != VYRE__T_NAME) {
    return vyre__p_expected(p, "the name of a buffer",
                            "use the name of a buffer of this kernel");
  }
  vyre__p_advance(p);
  bool good = find_buffer(p, &name, "len takes a buffer", &buffer);
  if (good && vyre__p_is(p, VYRE__T_LBRACKET)) {
    vyre__p_error(p, vyre__p_span(&p->now.token), "V053",
                  "remove the index: len(buffer)",
                  "len takes a buffer, not one of its elements");
    (void)vyre__p_index_of(p);
    good = false;
  }
  uint32_t dimension = 0;
  const bool has_dimension = vyre__p_accept(p, VYRE__T_COMMA);
  if (has_dimension) {
    good = vyre__p_constant(p, "V068", "the number of a dimension", 0,
                            VYRE_MAX_DIMENSIONS - 1, &dimension) &&
           good;
  }
  if (!vyre__p_close(p, VYRE__T_RPAREN, &open) || !good) return 0;
  vyre__p_mark(p, first);
  return has_dimension ? vyre__ir_build_dimension(&p->ir, buffer, dimension)
                       : vyre__ir_build_len(&p->ir, buffer);
}

/* --- atomics ---------------------------------------------------------------*/

/* Reads the start of ( buffer[i] , values ), up to the index. */
static bool read_element(vyre__parser *p, uint32_t *buffer, vyre__id *index) {
  if (vyre__p_is(p, VYRE__T_AMP)) {
    vyre__p_edit(p, vyre__p_span(&p->now.token), "%s", "");
    vyre__p_error(p, vyre__p_span(&p->now.token), "V025",
                  "remove '&': atomics take buffer[i]",
                  "the language has no pointers");
    vyre__p_advance(p);
  }
  vyre__token name = p->now.token;
  if (name.kind != VYRE__T_NAME) {
    vyre__p_syntax(p, vyre__p_span(&name), "V053",
                   "write the element first: atomic_add(buffer[i], value)",
                   "an atomic takes an element of a buffer");
    return false;
  }
  vyre__p_advance(p);
  bool good =
      find_buffer(p, &name, "an atomic takes an element of a buffer", buffer);
  if (!vyre__p_is(p, VYRE__T_LBRACKET)) {
    if (good) {
      vyre__p_error(p, vyre__p_behind(p), "V053", "write the index: buffer[i]",
                    "an atomic takes an element of a buffer");
    }
    return false;
  }
  *index = vyre__p_index_of(p);
  return good && !p->now.panic;
}

/* Arguments of an atomic: an element and up to two values. */
typedef struct atomic_arguments {
  uint32_t buffer, count;
  vyre__id index, values[2];
} atomic_arguments;

/* Reads the arguments and checks the number of values; @p fix shows a correct
 * call. Returns false after an error. */
static bool read_atomic_arguments(vyre__parser *p, const vyre__token *name,
                                  uint32_t wanted, const char *fix,
                                  atomic_arguments *out) {
  vyre__token open = p->now.token;
  char found[VYRE__FOUND_TEXT];
  *out = (atomic_arguments){0};
  if (!vyre__p_expect(p, VYRE__T_LPAREN, "and a buffer's element")) {
    return false;
  }
  bool good = read_element(p, &out->buffer, &out->index);
  while (!p->now.panic && vyre__p_accept(p, VYRE__T_COMMA)) {
    vyre__id value = vyre__p_value(p);
    if (out->count < 2) out->values[out->count] = value;
    out->count++;
  }
  if (!vyre__p_close(p, VYRE__T_RPAREN, &open) || !good) return false;
  vyre__p_mark(p, name);
  if (out->count == wanted) return true;
  vyre__p_error(p, vyre__p_since(p, name), "V051", fix,
                "%s takes an element and %u value%s, not %u values",
                vyre__p_found(p, name, found), wanted, wanted == 1 ? "" : "s",
                out->count);
  return false;
}

static vyre__id read_atomic(vyre__parser *p, const vyre__token *name,
                            vyre__op op) {
  atomic_arguments a;
  if (op == VYRE__OP_ATOMIC_CAS) {
    if (!read_atomic_arguments(
            p, name, 2,
            "write atomic_compare_exchange(buffer[i], expected, desired)",
            &a)) {
      return 0;
    }
    return vyre__ir_build_atomic_cas(&p->ir, a.buffer, a.index, a.values[0],
                                     a.values[1]);
  }
  if (!read_atomic_arguments(p, name, 1, "write atomic_add(buffer[i], value)",
                             &a)) {
    return 0;
  }
  return vyre__ir_build_atomic(&p->ir, op, a.buffer, a.index, a.values[0]);
}

/* Reads atomic_load(b[i]) as an atomic_or with 0, which code generators turn
 * into a load. */
static vyre__id read_atomic_load(vyre__parser *p, const vyre__token *name) {
  vyre__ir_builder *m = &p->ir;
  atomic_arguments a;
  if (!read_atomic_arguments(p, name, 0, "write atomic_load(buffer[i])", &a)) {
    return 0;
  }
  return vyre__ir_build_atomic(
      m, VYRE__OP_ATOMIC_OR, a.buffer, a.index,
      vyre__ir_build_integer(m, 0, false, VYRE_TYPE_VOID));
}

/* Reads atomic_store(b[i], v) as an atomic_exchange whose result is unused. */
static vyre__id read_atomic_store(vyre__parser *p, const vyre__token *name) {
  atomic_arguments a;
  if (!read_atomic_arguments(p, name, 1,
                             "write atomic_store(buffer[i], value);", &a)) {
    return 0;
  }
  if (name->start != p->statement || !vyre__p_is(p, VYRE__T_SEMICOLON)) {
    return vyre__p_error(p, vyre__p_since(p, name), "V057",
                         "make it a statement of its own, or use "
                         "atomic_exchange(), which returns the old value",
                         "atomic_store() has no value");
  }
  return vyre__ir_build_atomic(&p->ir, VYRE__OP_ATOMIC_EXCHANGE, a.buffer,
                               a.index, a.values[0]);
}

/* --- everything built in ---------------------------------------------------*/

static vyre__id report_axis(vyre__parser *p, const vyre__token *at, vyre__op op,
                            bool is_missing) {
  char fix[VYRE__FIX_TEXT], found[VYRE__FOUND_TEXT];
  const char *name = vyre__ops[op].text;
  snprintf(fix, sizeof fix, "write %s.x, %s.y or %s.z", name, name, name);
  if (is_missing) {
    return vyre__p_error(p, vyre__p_span(at), "V036", fix,
                         "'%s' needs an axis: .x, .y or .z", name);
  }
  return vyre__p_error(p, vyre__p_span(at), "V036", fix, "'%s' has no axis %s",
                       name, vyre__p_found(p, at, found));
}

/* Reads .x, .y or .z after global_id and the like. */
static vyre__id read_axis(vyre__parser *p, const vyre__token *name,
                          vyre__op op) {
  if (!vyre__p_accept(p, VYRE__T_DOT)) return report_axis(p, name, op, true);
  vyre__token member = p->now.token;
  int c = member.length == 1 ? p->text[member.start] : 0;
  if (member.kind != VYRE__T_NAME || c < 'x' || c > 'z') {
    report_axis(p, &member, op, false);
    (void)vyre__p_accept(p, VYRE__T_NAME);
    return 0;
  }
  vyre__p_advance(p);
  vyre__p_mark(p, name);
  return vyre__ir_build_axis(&p->ir, op, (unsigned)(c - 'x'));
}

/* Builds `item`, which an item of one field has. */
static vyre__id read_item_word(vyre__parser *p) {
  const vyre__kernel *kernel = p->ir.kernel;
  if (kernel && kernel->queue && kernel->queue->field_count > 1) {
    return vyre__diagnose(&p->ir, "V095", "use the names of its fields",
                          "the item has %u fields, so 'item' is not a value",
                          kernel->queue->field_count);
  }
  return vyre__ir_build_item(&p->ir, 0);
}

static vyre__id read_op(vyre__parser *p, const vyre__token *name, vyre__op op) {
  vyre__ir_builder *m = &p->ir;
  vyre__id ids[4] = {0, 0, 0, 0};
  if (op == VYRE__OP_INSERT) {
    if (!read_arguments(p, name, 4, ids)) return 0;
    vyre__p_mark(p, name);
    return vyre__ir_build_insert(m, ids[0], ids[1], ids[2], ids[3]);
  }
  switch (vyre__ops[op].form) {
    case VYRE__FORM_AXIS:
      return read_axis(p, name, op);
    case VYRE__FORM_NULLARY:
      vyre__p_mark(p, name);
      return read_item_word(p);
    case VYRE__FORM_BUFFER:
      return read_len(p, name);
    case VYRE__FORM_ATOMIC:
    case VYRE__FORM_ATOMIC2:
      return read_atomic(p, name, op);
    case VYRE__FORM_UNARY:
      if (op == VYRE__OP_PUSH) return vyre__p_push(p, name);
      if (!read_arguments(p, name, 1, ids)) return 0;
      vyre__p_mark(p, name);
      return vyre__ir_build_unary(m, op, ids[0]);
    case VYRE__FORM_BINARY:
      if (!read_arguments(p, name, 2, ids)) return 0;
      vyre__p_mark(p, name);
      return vyre__ir_build_binary(m, op, ids[0], ids[1]);
    default:
      if (!read_arguments(p, name, 3, ids)) return 0;
      vyre__p_mark(p, name);
      return vyre__ir_build_ternary(m, op, ids[0], ids[1], ids[2]);
  }
}

/* Reads f32x3(...). */
static vyre__id read_vector(vyre__parser *p, const vyre__token *name,
                            unsigned type) {
  vyre__ir_builder *m = &p->ir;
  uint32_t count;
  const uint32_t mark = vyre__stack_mark(m);
  if (!vyre__p_is(p, VYRE__T_LPAREN)) {
    char fix[VYRE__FIX_TEXT];
    snprintf(fix, sizeof fix, "write %s(x, ...), or let v : %s = value;",
             vyre__type_name(type), vyre__type_name(type));
    return vyre__p_syntax(p, vyre__p_span(name), "V035", fix,
                          "'%s' is a type, not a value", vyre__type_name(type));
  }
  if (!vyre__p_arguments(p, &count)) {
    vyre__stack_drop(m, mark);
    return 0;
  }
  vyre__p_mark(p, name);
  return vyre__ir_build_make(m, type, mark);
}

/* Reads u32(x) or as_f32(x). */
static vyre__id read_cast(vyre__parser *p, const vyre__token *name,
                          vyre_type type, bool bits) {
  vyre__id id = 0;
  if (vyre__is_vector(type)) return read_vector(p, name, type);
  if (!vyre__p_is(p, VYRE__T_LPAREN) && !bits) {
    char fix[VYRE__FIX_TEXT];
    snprintf(fix, sizeof fix,
             vyre__p_is(p, VYRE__T_LBRACKET)
                 ? "write the type after the name: var a : %s[4];"
                 : "write %s(x) to cast, or let x : %s = value;",
             vyre__type_name(type), vyre__type_name(type));
    return vyre__p_syntax(p, vyre__p_span(name), "V035", fix,
                          "'%s' is a type, not a value", vyre__type_name(type));
  }
  if (!read_arguments(p, name, 1, &id)) return 0;
  vyre__p_mark(p, name);
  return bits ? vyre__ir_build_bitcast(&p->ir, type, id)
              : vyre__ir_build_cast(&p->ir, type, id);
}

static vyre__id read_float_word(vyre__parser *p, const vyre__token *name,
                                unsigned which) {
  static const struct {
    vyre_type type;
    uint64_t bits;
  } rows[] = {[VYRE__INF] = {VYRE_TYPE_F32, 0x7F800000u},
              [VYRE__NAN] = {VYRE_TYPE_F32, 0x7FC00000u},
              [VYRE__INF_F64] = {VYRE_TYPE_F64, 0x7FF0000000000000u},
              [VYRE__NAN_F64] = {VYRE_TYPE_F64, 0x7FF8000000000000u}};
  vyre__p_mark(p, name);
  return vyre__ir_build_literal(&p->ir, rows[which].type, rows[which].bits);
}

static vyre__id report_element(vyre__parser *p, const vyre__token *name,
                               vyre_element element) {
  char fix[VYRE__FIX_TEXT];
  vyre_type wide = vyre__element_type(element);
  snprintf(fix, sizeof fix,
           "use %s(x); a store converts the value to the element type",
           vyre__type_name(wide));
  vyre__p_error(p, vyre__p_span(name), "V034", fix,
                "'%s' is only valid as an element type of buffers",
                vyre_element_name(element));
  return vyre__p_skip_arguments(p);
}

static vyre__id read_word(vyre__parser *p, const vyre__token *name,
                          vyre__symbol symbol) {
  switch (symbol.word) {
    case VYRE__WORD_TYPE:
      return read_cast(p, name, (vyre_type)symbol.value, false);
    case VYRE__WORD_BITCAST:
      return read_cast(p, name, (vyre_type)symbol.value, true);
    case VYRE__WORD_OP:
      return read_op(p, name, (vyre__op)symbol.value);
    case VYRE__WORD_FLOAT:
      return read_float_word(p, name, symbol.value);
    case VYRE__WORD_ATOMIC:
      return symbol.value == VYRE__ATOMIC_LOAD ? read_atomic_load(p, name)
                                               : read_atomic_store(p, name);
    case VYRE__WORD_ELEMENT:
    default:
      return report_element(p, name, (vyre_element)symbol.value);
  }
}

/* --- names of the file -----------------------------------------------------*/

static vyre__id read_call(vyre__parser *p, const vyre__token *name,
                          const vyre__item *item) {
  vyre__ir_builder *m = &p->ir;
  const vyre__symbol *symbol = vyre__p_symbol(p, name);
  if (!vyre__p_is(p, VYRE__T_LPAREN)) {
    return vyre__p_error(
        p, vyre__p_span(name), "V035", "write '(' and the arguments after it",
        "'%.*s' is a function: call it", (int)symbol->length, symbol->text);
  }
  uint32_t count, mark = vyre__stack_mark(m), function = item->function;
  bool good = read_all_arguments(p, item, &count) &&
              item->state == VYRE__ITEM_DONE && function != VYRE_NO_INDEX;
  vyre__p_mark(p, name);
  if (good) return vyre__ir_build_call(m, function, mark);
  vyre__stack_drop(m, mark);
  return 0;
}

static vyre__id read_item_name(vyre__parser *p, const vyre__token *name,
                               vyre__item *item) {
  const vyre__symbol *symbol = vyre__p_symbol(p, name);
  if (item->kind == VYRE__T_KERNEL) {
    vyre__p_error(p, vyre__p_span(name), "V035",
                  "move the shared code to a fn, and call that",
                  "'%.*s' is a kernel, and kernels cannot be called",
                  (int)symbol->length, symbol->text);
    return vyre__p_skip_arguments(p);
  }
  if (item->kind == VYRE__T_STRUCT) return vyre__p_struct_value(p, name);
  if (!item->nested) vyre__p_need(p, item);
  if (item->kind == VYRE__T_FN) return read_call(p, name, item);
  if (item->state != VYRE__ITEM_DONE) return 0;
  if (item->is_table) {
    return vyre__p_load(p, name, VYRE__MEMORY_TABLE | (uint32_t)item->bits);
  }
  vyre__p_mark(p, name);
  if (item->is_untyped) {
    return vyre__ir_build_const_integer(&p->ir, (int64_t)item->bits);
  }
  return vyre__ir_build_literal(&p->ir, (vyre_type)item->type, item->bits);
}

void vyre__p_skip_parts(vyre__parser *p) {
  while (!p->now.panic) {
    if (vyre__p_is(p, VYRE__T_LBRACKET)) {
      (void)vyre__p_index_of(p);
    } else if (vyre__p_accept(p, VYRE__T_DOT)) {
      (void)vyre__p_accept(p, VYRE__T_NAME);
    } else {
      return;
    }
  }
}

/* Skips what follows an undeclared name, which was reported. */
static vyre__id skip_wrong(vyre__parser *p) {
  vyre__p_skip_foreign(p, false);
  if (vyre__p_is(p, VYRE__T_LPAREN)) return vyre__p_skip_arguments(p);
  vyre__p_skip_parts(p);
  return 0;
}

vyre__id vyre__p_name(vyre__parser *p) {
  vyre__token name = p->now.token;
  vyre__p_advance(p);
  const vyre__symbol *symbol = vyre__p_symbol(p, &name);
  if (symbol->word != VYRE__WORD_PLAIN) {
    return symbol->local ? skip_wrong(p) : read_word(p, &name, *symbol);
  }
  if (symbol->value && !vyre__op_is_lane(symbol->value) &&
      vyre__p_is(p, VYRE__T_LPAREN) &&
      !(symbol->item && p->items[symbol->item - 1].kind == VYRE__T_FN)) {
    return read_op(p, &name, (vyre__op)symbol->value);
  }
  if (symbol->local) {
    const vyre__binding *binding = &p->bindings[symbol->local - 1];
    switch (binding->kind) {
      case VYRE__BIND_LOCAL:
        vyre__p_mark(p, &name);
        return vyre__ir_build_local(&p->ir, binding->index);
      case VYRE__BIND_BUFFER:
        return vyre__p_load(p, &name, binding->index);
      case VYRE__BIND_FIELD:
        vyre__p_mark(p, &name);
        return vyre__ir_build_item(&p->ir, binding->index);
      default:
        return skip_wrong(p);
    }
  }
  vyre__id id;
  const bool is_fixed =
      symbol->item && p->items[symbol->item - 1].kind != VYRE__T_KERNEL;
  if (!is_fixed && vyre__p_queue_word(p, &name, &id)) return id;
  if (!is_fixed && vyre__op_is_lane(symbol->value)) {
    vyre__p_mark(p, &name);
    return vyre__ir_build_position(&p->ir, (vyre__op)symbol->value);
  }
  if (symbol->item) {
    return read_item_name(p, &name, &p->items[symbol->item - 1]);
  }
  vyre__p_unknown(p, &name, vyre__p_kind(p));
  return skip_wrong(p);
}

/* --- print -----------------------------------------------------------------*/

/* Removes quotes and escapes of a string; @p to has space for the result.
 * Returns false after reporting an invalid escape. */
static bool unescape(vyre__parser *p, const vyre__token *token, char *to,
                     size_t *length) {
  const char *from = p->text + token->start + 1;
  const char *end = p->text + token->start + token->length - 1;
  *length = 0;
  for (; from < end; from++) {
    char c = *from;
    if (c == '\\') {
      c = *++from;
      if (c == 'n') {
        c = '\n';
      } else if (c == 't') {
        c = '\t';
      } else if (c != '"' && c != '\\') {
        vyre__source_span span = vyre__p_span(token);
        span.place.column += (uint32_t)(from - 1 - (p->text + token->start));
        span.length = 2;
        vyre__p_error(p, span, "V012", "use \\n, \\t, \\\" or \\\\",
                      "unknown escape sequence");
        return false;
      }
    }
    to[(*length)++] = c;
  }
  return true;
}

static vyre__id read_text(vyre__parser *p) {
  vyre__token token = p->now.token;
  size_t length;
  char *text = vyre_arena_alloc(&p->arena, token.length, 1);
  vyre__p_advance(p);
  if (!text) {
    p->out_of_memory = true;
    return 0;
  }
  if (!unescape(p, &token, text, &length)) return 0;
  vyre__p_mark(p, &token);
  return vyre__ir_build_text(&p->ir, text, length);
}

vyre__id vyre__p_print(vyre__parser *p) {
  vyre__ir_builder *m = &p->ir;
  vyre__token first = p->now.token;
  vyre__p_advance(p);
  vyre__token open = p->now.token;
  uint32_t mark = vyre__stack_mark(m);
  if (!vyre__p_expect(p, VYRE__T_LPAREN, "after print")) return 0;
  while (!vyre__p_is(p, VYRE__T_RPAREN) && !p->now.panic) {
    bool text = vyre__p_is(p, VYRE__T_STRING);
    vyre__push(m, text ? read_text(p) : vyre__p_value(p));
    if (!vyre__p_accept(p, VYRE__T_COMMA)) break;
  }
  if (!vyre__p_close(p, VYRE__T_RPAREN, &open)) {
    vyre__stack_drop(m, mark);
    return 0;
  }
  vyre__p_mark(p, &first);
  return vyre__ir_build_print(m, mark);
}
