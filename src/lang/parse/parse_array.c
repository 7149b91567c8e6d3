/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parser: arrays, tables, memory parameters, and calls with several results. */
#include <stdio.h>

#include "lang/parse/parse.h"

/* --- names of memory -------------------------------------------------------*/

const vyre_buffer_decl *vyre__p_buffer(vyre__parser *p, uint32_t memory) {
  if (memory < VYRE__MEMORY_TABLE) return &p->buffers[memory];
  return vyre__buffer_at(&p->ir, memory);
}

const char *vyre__p_kind_of_memory(uint32_t memory) {
  if (memory & VYRE__MEMORY_TABLE) return "a table";
  return memory & VYRE__MEMORY_LOCAL ? "an array" : "a buffer";
}

bool vyre__p_names_memory(vyre__parser *p, const vyre__token *name,
                          uint32_t *memory) {
  if (name->kind != VYRE__T_NAME) return false;
  vyre__symbol *symbol = vyre__p_symbol(p, name);
  if (symbol->local) {
    const vyre__binding *binding = &p->bindings[symbol->local - 1];
    *memory = binding->index;
    return binding->kind == VYRE__BIND_BUFFER;
  }
  if (!symbol->item) return false;
  vyre__item *item = &p->items[symbol->item - 1];
  if (item->kind != VYRE__T_CONST) return false;
  if (!item->nested) vyre__p_need(p, item);
  item = &p->items[vyre__p_symbol(p, name)->item - 1];
  if (item->state != VYRE__ITEM_DONE || !item->is_table) return false;
  *memory = VYRE__MEMORY_TABLE | (uint32_t)item->bits;
  return true;
}

/* --- arrays ----------------------------------------------------------------*/

/* Reads the lengths up to ]. */
static bool read_lengths(vyre__parser *p, uint32_t *length,
                         vyre__shape *shape) {
  uint64_t product = 1;
  unsigned count = 0;
  do {
    const vyre__token first = p->now.token;
    uint32_t own;
    if (!vyre__p_constant(p, "V098", "the length of an array", 1, UINT32_MAX,
                          &own)) {
      p->now.panic = true;
      return false;
    }
    product *= own;
    *length = (uint32_t)product;
    if (count == 0 && !vyre__p_is(p, VYRE__T_COMMA)) return true;
    if (product > VYRE__MAX_TABLE || count == VYRE_MAX_DIMENSIONS) {
      const bool is_long = product > VYRE__MAX_TABLE;
      vyre__p_syntax(p, vyre__p_span(&first), "V098",
                     is_long ? "use smaller lengths, or a buffer"
                             : "use up to four lengths",
                     is_long ? "the array has more than %d elements"
                             : "an array has at most %d lengths",
                     is_long ? VYRE__MAX_TABLE : VYRE_MAX_DIMENSIONS);
      return false;
    }
    *shape |= (vyre__shape)own << VYRE__SHAPE_BITS * count++;
  } while (vyre__p_accept(p, VYRE__T_COMMA));
  return true;
}

bool vyre__p_length(vyre__parser *p, uint32_t *length, vyre__shape *shape) {
  vyre__token open = p->now.token;
  *length = 0;
  *shape = 0;
  if (!vyre__p_accept(p, VYRE__T_LBRACKET)) return false;
  if (vyre__p_accept(p, VYRE__T_RBRACKET)) return true;
  if (!read_lengths(p, length, shape)) return false;
  if (!vyre__p_close(p, VYRE__T_RBRACKET, &open)) return false;
  if (!vyre__p_is(p, VYRE__T_LBRACKET)) return true;
  vyre__p_syntax(p, vyre__p_span(&p->now.token), "V098",
                 "write all lengths together, as in f32[8, 8], and "
                 "a[row, column]",
                 "the lengths of an array are in one pair of brackets");
  return false;
}

/* Pushes the values of a list, which are lists themselves for each length of
 * the shape after @p level. */
static bool push_elements(vyre__parser *p, vyre__shape shape, unsigned level) {
  vyre__ir_builder *m = &p->ir;
  vyre__token open = p->now.token;
  const size_t mark = m->stack_count;
  vyre__p_advance(p);
  while (!vyre__p_is(p, VYRE__T_RBRACE) && !p->now.panic) {
    if (vyre__p_is(p, VYRE__T_LBRACE) && level + 1 < vyre__shape_count(shape)) {
      if (!push_elements(p, shape, level + 1)) return false;
    } else {
      vyre__push(m, vyre__p_value(p));
    }
    if (!vyre__p_accept(p, VYRE__T_COMMA)) break;
  }
  if (!vyre__p_close(p, VYRE__T_RBRACE, &open)) return false;
  const uint64_t want = vyre__shape_product(shape, level);
  const size_t have = m->stack_count - mark;
  if (level == 0 || want == have || m->out_of_memory) return true;
  char fix[VYRE__FIX_TEXT];
  snprintf(fix, sizeof fix, "give it %u value%s", (unsigned)want,
           want == 1 ? "" : "s");
  vyre__p_error(p, vyre__p_span(&open), "V098", fix,
                "a row of %u gets %zu value%s", (unsigned)want, have,
                have == 1 ? "" : "s");
  return false;
}

vyre__id vyre__p_elements(vyre__parser *p, vyre__shape shape) {
  vyre__ir_builder *m = &p->ir;
  vyre__token open = p->now.token;
  const uint32_t mark = vyre__stack_mark(m);
  if (!push_elements(p, shape, 0)) {
    vyre__stack_drop(m, mark);
    return 0;
  }
  vyre__p_mark(p, &open);
  if (m->stack_count > mark) return vyre__ir_build_array_value(m, mark);
  return vyre__p_error(p, vyre__p_span(&open), "V098",
                       "write its values, or ; for zeros: var a : f32[4];",
                       "the list of values is empty");
}

/* A buffer that is not whole is reported where its index is missing. */
bool vyre__p_is_whole_array(vyre__parser *p) {
  if (!vyre__p_is(p, VYRE__T_SET)) return false;
  vyre__token next = vyre__p_peek(p);
  uint32_t memory;
  if (next.kind == VYRE__T_LBRACE) return true;
  if (!vyre__p_names_memory(p, &next, &memory)) return false;
  const uint32_t end = next.start + next.length;
  uint32_t at = end;
  while (at < p->length && (p->text[at] == ' ' || p->text[at] == '\n')) at++;
  return at < p->length && p->text[at] == ';' && memory >= VYRE__MEMORY_TABLE;
}

vyre__id vyre__p_whole_array(vyre__parser *p, vyre__shape shape) {
  vyre__token name = p->now.token;
  uint32_t memory;
  if (vyre__p_is(p, VYRE__T_LBRACE)) return vyre__p_elements(p, shape);
  if (!vyre__p_names_memory(p, &name, &memory) || memory < VYRE__MEMORY_TABLE ||
      vyre__p_peek(p).kind != VYRE__T_SEMICOLON) {
    return vyre__p_value(p);
  }
  vyre__p_advance(p);
  vyre__p_mark(p, &name);
  return vyre__ir_build_memory(&p->ir, memory);
}

/* Returns the type of the elements of a MEMORY, for a copy without a type. */
static vyre_type type_of_copy(vyre__parser *p, vyre__id value) {
  if (!value || p->ir.nodes[value].op != VYRE__OP_MEMORY) return VYRE_TYPE_VOID;
  const vyre_buffer_decl *decl = vyre__buffer_at(&p->ir, p->ir.nodes[value].a);
  return decl ? (vyre_type)vyre__buffer_type(decl) : VYRE_TYPE_VOID;
}

/* Reports an array whose type is missing, or written before its length. */
static vyre__id report_array(vyre__parser *p, const vyre__token *name,
                             vyre__source_span span, uint32_t length) {
  char fix[VYRE__FIX_TEXT];
  const int shown = name->length > 60 ? 60 : (int)name->length;
  if (length > 0) {
    snprintf(fix, sizeof fix, "write var %.*s : f32[%u];", shown,
             p->text + name->start, length);
  } else {
    snprintf(fix, sizeof fix, "write let %.*s : f32[3] = {x, y, z};", shown,
             p->text + name->start);
  }
  return vyre__p_error(p, span, "V098", fix,
                       "the type and the length of an array come after its "
                       "name");
}

vyre__id vyre__p_array(vyre__parser *p, const vyre__token *name, vyre_type type,
                       bool is_mutable) {
  vyre__ir_builder *m = &p->ir;
  vyre__source_span span = vyre__p_span(&p->now.token);
  uint32_t length = 0, local = VYRE_NO_INDEX;
  vyre__shape shape = 0;
  vyre__id value = 0;
  bool good = true, has_value = false;
  const bool has_length = vyre__p_is(p, VYRE__T_LBRACKET);
  if (has_length && !vyre__p_length(p, &length, &shape)) {
    vyre__p_bind(p, name, VYRE__BIND_WRONG, 0);
    return 0;
  }
  if (has_length && type == VYRE_TYPE_VOID) { /* a[16] : f32 */
    if (vyre__p_accept(p, VYRE__T_COLON)) (void)vyre__p_type(p);
    (void)report_array(p, name, span, length);
    good = false;
  }
  if (vyre__p_accept(p, VYRE__T_SET)) {
    has_value = true;
    value = vyre__p_whole_array(p, shape);
    if (type == VYRE_TYPE_VOID && good) {
      type = type_of_copy(p, value);
      if (type == VYRE_TYPE_VOID) {
        if (value) (void)report_array(p, name, span, 0);
        good = false;
      }
    } else if (!has_length && good && value) {
      char fix[VYRE__FIX_TEXT];
      snprintf(fix, sizeof fix, "write %s[] before =", vyre__type_name(type));
      vyre__p_error(p, span, "V098", fix, "the type of an array has a length");
      good = false;
    }
  } else if (!is_mutable && good) {
    good = false;
    vyre__p_error(p, vyre__p_behind(p), "V028",
                  "write = {x, y, z}, or declare it with var: zeros",
                  "a let array needs initial values");
  } else if (length == 0 && good) {
    good = false;
    vyre__p_error(p, span, "V098", "write the length: f32[16]",
                  "an array without values needs a length");
  }
  vyre__p_check_free(p, name);
  m->place = (vyre__source_loc){name->line, name->column};
  m->length = name->length;
  vyre__id id = 0;
  if (good && !p->now.panic && (value || !has_value)) {
    id = vyre__ir_build_array(m, p->text + name->start, name->length, type,
                              length, shape, is_mutable, value, &local);
  }
  if (local != VYRE_NO_INDEX &&
      m->locals[m->local_count - 1].type != VYRE_TYPE_VOID) {
    vyre__p_bind(p, name, VYRE__BIND_BUFFER, VYRE__MEMORY_LOCAL | local);
  } else {
    vyre__p_bind(p, name, VYRE__BIND_WRONG, 0);
  }
  if (!p->now.panic) vyre__p_semicolon(p, "a declaration");
  return id;
}

/* Returns the shape of an array of the function. */
static vyre__shape shape_of(vyre__parser *p, uint32_t memory) {
  vyre__ir_builder *m = &p->ir;
  if (!(memory & VYRE__MEMORY_LOCAL)) return 0;
  return m
      ->locals[m->functions[m->function].first_local +
               (memory & VYRE__MEMORY_INDEX)]
      .shape;
}

vyre__id vyre__p_assign_array(vyre__parser *p, uint32_t memory) {
  vyre__token name = p->now.token;
  vyre__p_advance(p);
  vyre__p_advance(p);
  vyre__id value = vyre__p_whole_array(p, shape_of(p, memory));
  if (p->now.panic) return 0;
  vyre__p_mark(p, &name);
  vyre__id id = 0;
  if (memory & VYRE__MEMORY_LOCAL) {
    id = vyre__ir_build_assign(&p->ir, memory & VYRE__MEMORY_INDEX, value);
  }
  vyre__p_semicolon(p, "an assignment");
  return id;
}

/* --- tables ----------------------------------------------------------------*/

bool vyre__p_narrow_table(vyre__parser *p, vyre_element *element) {
  const vyre__token token = p->now.token;
  const vyre__symbol *symbol = vyre__p_symbol(p, &token);
  if (token.kind != VYRE__T_NAME || symbol->word != VYRE__WORD_ELEMENT ||
      vyre__p_peek(p).kind != VYRE__T_LBRACKET) {
    return false;
  }
  *element = (vyre_element)vyre__p_symbol(p, &token)->value;
  if (*element != VYRE_ELEMENT_U8 && *element != VYRE_ELEMENT_I8 &&
      *element != VYRE_ELEMENT_U16 && *element != VYRE_ELEMENT_I16) {
    return false;
  }
  vyre__p_advance(p);
  return true;
}

/* Reports a value that does not fit an integer of 8 or 16 bits. */
static bool fits_narrow(vyre__parser *p, vyre__id id, vyre_element narrow,
                        uint64_t bits) {
  if (narrow == VYRE_ELEMENT_COUNT) return true;
  const bool is_signed =
      narrow == VYRE_ELEMENT_I8 || narrow == VYRE_ELEMENT_I16;
  const int64_t values = INT64_C(1) << 8 * vyre_element_size(narrow);
  const int64_t low = is_signed ? -values / 2 : 0;
  const int64_t value =
      is_signed ? (int32_t)(uint32_t)bits : (int64_t)(uint32_t)bits;
  if (value >= low && value < low + values) return true;
  char fix[VYRE__FIX_TEXT];
  snprintf(fix, sizeof fix, "use a value from %lld to %lld, or a table of %s",
           (long long)low, (long long)(low + values - 1),
           is_signed ? "i32" : "u32");
  vyre__diagnose_at(&p->ir, id, "V064", fix, "%lld does not fit %s",
                    (long long)value, vyre_element_name(narrow));
  return false;
}

/* Evaluates the values of a table. */
static bool read_values(vyre__parser *p, vyre_type type, vyre_element narrow,
                        vyre__id list, uint64_t *values, uint32_t count) {
  vyre__ir_builder *m = &p->ir;
  for (uint32_t i = 0; i < count; i++) {
    vyre__id id = m->lists[m->nodes[list].a + i];
    id = vyre__expect(m, id, type, "V065", "a value of the table");
    if (!id || !vyre__const_eval(m, id, &values[i]) ||
        !fits_narrow(p, id, narrow, values[i])) {
      return false;
    }
  }
  return true;
}

bool vyre__p_table(vyre__parser *p, const vyre__token *name, vyre_type type,
                   vyre_element narrow, vyre__item *item) {
  vyre__ir_builder *m = &p->ir;
  uint32_t length;
  vyre__shape shape;
  if (!vyre__p_length(p, &length, &shape)) return false;
  if (!vyre__p_expect(p, VYRE__T_SET, "and the values of the table")) {
    return false;
  }
  if (!vyre__p_is(p, VYRE__T_LBRACE)) {
    vyre__p_expected(p, "'{' and the values of the table",
                     "write const T : u32[3] = {1, 2, 3};");
    return false;
  }
  if (vyre__is_aggregate(type)) {
    vyre__p_error(p, vyre__p_span(name), "V098",
                  "use one table for each component",
                  "elements of a table are bool, u32, i32, u64, i64, f32 or "
                  "f64, not %s",
                  vyre__type_name(type));
    return false;
  }
  const vyre__id list = vyre__p_elements(p, shape);
  if (!list || p->now.panic) return false;
  const uint32_t count = m->nodes[list].b;
  char fix[VYRE__FIX_TEXT];
  if ((length > 0 && length != count) || count > VYRE__MAX_TABLE) {
    snprintf(fix, sizeof fix, "give it %u values, or declare the length %u",
             length, count);
    if (count > VYRE__MAX_TABLE) {
      vyre__p_error(p, vyre__p_span(name), "V098", "use a read buffer",
                    "the table has %u values; the maximum is %d", count,
                    VYRE__MAX_TABLE);
    } else {
      vyre__p_error(p, vyre__p_span(name), "V098", fix,
                    "a table of %u gets %u value%s", length, count,
                    count == 1 ? "" : "s");
    }
    return false;
  }
  vyre__arena_mark mark = vyre__arena_here(&p->arena);
  uint64_t *values =
      vyre_arena_alloc(&p->arena, count * sizeof *values, sizeof *values);
  if (!values) {
    p->out_of_memory = true;
    return false;
  }
  const bool good = read_values(p, type, narrow, list, values, count);
  if (good) {
    item->bits = vyre__table_add(m, p->text + name->start, name->length, type,
                                 values, count, shape);
    item->is_table = true;
    item->type = (uint8_t)type;
  }
  vyre__arena_rewind(&p->arena, mark);
  return good && item->bits != VYRE_NO_INDEX;
}

/* --- heads of functions ----------------------------------------------------*/

/* Reports float *x and the like. */
static bool report_pointer(vyre__parser *p) {
  vyre__p_syntax(p, vyre__p_span(&p->now.token), "V025",
                 "take memory: x: read f32[], or x: read_write f32[] if the fn "
                 "writes it",
                 "the language has no pointers");
  return false;
}

bool vyre__p_parameter_type(vyre__parser *p, bool is_mutable,
                            vyre__local *spec) {
  spec->is_mutable = is_mutable;
  if (vyre__p_is(p, VYRE__T_STAR) || vyre__p_is(p, VYRE__T_AMP)) {
    return report_pointer(p);
  }
  for (unsigned i = VYRE_ACCESS_READ; i <= VYRE_ACCESS_READ_WRITE; i++) {
    vyre__token word = p->now.token;
    if (!vyre__p_text_is(p, &word, vyre_access_name((vyre_access)i))) continue;
    vyre_buffer_decl decl = {0};
    uint32_t length = 0;
    vyre__p_advance(p);
    if (!vyre__p_element(p, &decl)) return false;
    if (decl.structure) {
      vyre__p_syntax(p, vyre__p_span(&word), "V099",
                     "pass one element: f(p[i]), or use the buffer in the "
                     "kernel",
                     "a memory parameter does not have structs");
      return false;
    }
    if (!vyre__p_is(p, VYRE__T_LBRACKET)) {
      vyre__p_expected(p, "'[]' after the type",
                       "write x: read f32[], memory of any length");
      return false;
    }
    vyre__shape shape;
    if (!vyre__p_length(p, &length, &shape)) return false;
    if (length > 0 || is_mutable) {
      vyre__p_error(p, vyre__p_span(&word), "V099",
                    is_mutable ? "remove var: the access says whether it writes"
                               : "write [] without a length",
                    "a memory parameter takes memory of any length");
    }
    spec->type = (uint8_t)vyre__buffer_type(&decl);
    spec->is_memory = true;
    spec->is_mutable = false;
    spec->access = (uint8_t)i;
    spec->element = (uint8_t)decl.element;
    return true;
  }
  vyre__token first = p->now.token;
  const vyre_type type = vyre__p_type(p);
  if (type == VYRE_TYPE_VOID) return false;
  spec->type = (uint8_t)type;
  if (vyre__p_is(p, VYRE__T_STAR) || vyre__p_is(p, VYRE__T_AMP)) {
    return report_pointer(p);
  }
  if (vyre__p_is(p, VYRE__T_LBRACKET)) {
    spec->is_memory = true;
    if (!vyre__p_length(p, &spec->length, &spec->shape)) return false;
    if (vyre__is_struct(type)) {
      vyre__p_error(p, vyre__p_span(&first), "V098",
                    "use one array for each field",
                    "elements of an array are bool, u32, i32, u64, i64, f32, "
                    "f64 or vectors of them, not a struct");
      return false;
    }
    if (spec->length > 0) return true;
    char fix[VYRE__FIX_TEXT];
    snprintf(fix, sizeof fix,
             "write x: read %s[] for memory of any length, or %s[16]",
             vyre__type_name(type), vyre__type_name(type));
    vyre__p_error(p, vyre__p_since(p, &first), "V099", fix,
                  "an array parameter needs a length");
    return false;
  }
  if (!is_mutable) return true;
  vyre__p_error(p, vyre__p_span(&first), "V099",
                "return the new value: fn f(x: f32) -> f32, and x = f(x);",
                "only array parameters can be var");
  return false;
}

bool vyre__p_result_types(vyre__parser *p, vyre__item *item) {
  vyre__token open = p->now.token;
  vyre__p_advance(p);
  item->result_count = 0;
  bool good = true;
  while (!vyre__p_is(p, VYRE__T_RPAREN) && !p->now.panic) {
    vyre__token first = p->now.token;
    const vyre_type type = vyre__p_type(p);
    if (vyre__p_is(p, VYRE__T_LBRACKET)) {
      vyre__p_syntax(p, vyre__p_since(p, &first), "V099",
                     "take a var parameter: fn f(var a: f32[4])",
                     "a result cannot be an array");
      return false;
    }
    good = good && type != VYRE_TYPE_VOID;
    if (item->result_count < VYRE__MAX_RESULTS) {
      item->results[item->result_count] = (uint8_t)type;
    }
    item->result_count++;
    if (!vyre__p_accept(p, VYRE__T_COMMA) ||
        item->result_count > VYRE__MAX_RESULTS) {
      break;
    }
  }
  if (!vyre__p_close(p, VYRE__T_RPAREN, &open)) return false;
  if (good && item->result_count >= 2 &&
      item->result_count <= VYRE__MAX_RESULTS) {
    return true;
  }
  if (!good) return false;
  vyre__p_error(p, vyre__p_since(p, &open), "V099",
                item->result_count < 2 ? "write -> f32, or leave out ->"
                                       : "fill a var array parameter instead",
                "a list of results has 2 to %d types, not %u",
                VYRE__MAX_RESULTS, item->result_count);
  return false;
}

/* --- several results -------------------------------------------------------*/

/* Reads = call; and checks that it has @p count results. Returns the call. */
static vyre__id read_results(vyre__parser *p, const vyre__token *first,
                             uint32_t count) {
  vyre__ir_builder *m = &p->ir;
  if (!vyre__p_expect(p, VYRE__T_SET, "and a call")) return 0;
  const vyre__id call = vyre__p_value(p);
  if (!call || p->now.panic) return 0;
  if (vyre__type_of(m, call) != VYRE__TYPE_RESULTS) {
    return vyre__p_error(p, vyre__p_since(p, first), "V099",
                         "write one declaration or assignment for each value",
                         "only a call of a fn with several results can give "
                         "values to a list");
  }
  const vyre__ir_function *f = &m->functions[m->nodes[call].a];
  if (f->result_count != count) {
    char fix[VYRE__FIX_TEXT];
    snprintf(fix, sizeof fix, "write %u names, one for each result",
             f->result_count);
    return vyre__p_error(p, vyre__p_since(p, first), "V099", fix,
                         "fn '%.60s' returns %u values, but the list has %u",
                         f->name, f->result_count, count);
  }
  vyre__p_mark(p, first);
  return vyre__ir_build_results(m, call) ? call : 0;
}

vyre__id vyre__p_let_results(vyre__parser *p, bool is_mutable) {
  vyre__ir_builder *m = &p->ir;
  vyre__token open = p->now.token, names[VYRE__MAX_RESULTS];
  uint32_t count = 0;
  vyre__p_advance(p);
  while (!vyre__p_is(p, VYRE__T_RPAREN) && !p->now.panic) {
    vyre__token name;
    if (!vyre__p_new_name(p, "a local", &name)) {
      p->now.panic = true;
      return 0;
    }
    if (vyre__p_is(p, VYRE__T_COLON)) {
      vyre__p_syntax(p, vyre__p_span(&p->now.token), "V099",
                     "remove the type: it is that of the result",
                     "a name in a list of results has no type of its own");
      return 0;
    }
    if (count < VYRE__MAX_RESULTS) names[count] = name;
    count++;
    if (!vyre__p_accept(p, VYRE__T_COMMA)) break;
  }
  if (!vyre__p_close(p, VYRE__T_RPAREN, &open)) return 0;
  const vyre__id call = read_results(p, &open, count);
  for (uint32_t i = 0; i < count && i < VYRE__MAX_RESULTS; i++) {
    uint32_t local = VYRE_NO_INDEX;
    vyre__p_check_free(p, &names[i]);
    m->place = (vyre__source_loc){names[i].line, names[i].column};
    m->length = names[i].length;
    if (call) {
      vyre__statement(
          m, vyre__ir_build_let(m, p->text + names[i].start, names[i].length,
                                VYRE_TYPE_VOID, is_mutable,
                                vyre__ir_build_result(m, i), &local));
    }
    vyre__p_bind(p, &names[i],
                 local == VYRE_NO_INDEX ? VYRE__BIND_WRONG : VYRE__BIND_LOCAL,
                 local);
  }
  if (!p->now.panic) vyre__p_semicolon(p, "a declaration");
  return 0;
}

/* A place of an assignment to several results. */
typedef struct place {
  vyre__source_span span;
  vyre__id part, index; /* of a vector; of an element */
  uint32_t number;      /* of a local or of memory */
  bool is_local, is_wrong;
} place;

bool vyre__p_is_result_list(vyre__parser *p) {
  vyre__token next = vyre__p_peek(p);
  if (next.kind != VYRE__T_NAME) return false;
  const vyre__symbol *symbol = vyre__p_symbol(p, &next);
  if (!symbol->local && !symbol->item) return false;
  /* A list has a comma or an index after its first name. */
  uint32_t at = next.start + next.length;
  while (at < p->length && (p->text[at] == ' ' || p->text[at] == '\n')) at++;
  return at < p->length && (p->text[at] == ',' || p->text[at] == '[' ||
                            p->text[at] == '.' || p->text[at] == ')');
}

/* Stores an index that a later statement could change. */
static vyre__id keep(vyre__parser *p, vyre__id index) {
  vyre__ir_builder *m = &p->ir;
  uint32_t local = VYRE_NO_INDEX;
  if (!index) return 0;
  index = vyre__type_of(m, index) == VYRE__TYPE_INT
              ? vyre__resolve_index_type(m, index)
              : vyre__resolve_type(m, index, VYRE_TYPE_VOID);
  if (!index || m->nodes[index].op == VYRE__OP_LITERAL) return index;
  if (m->nodes[index].op == VYRE__OP_LOCAL &&
      !m->locals[m->functions[m->function].first_local + m->nodes[index].a]
           .is_mutable) {
    return index;
  }
  vyre__statement(
      m, vyre__ir_build_let(m, "", 0, VYRE_TYPE_VOID, false, index, &local));
  return local == VYRE_NO_INDEX ? 0 : vyre__ir_build_local(m, local);
}

static place read_place(vyre__parser *p) {
  vyre__ir_builder *m = &p->ir;
  vyre__token name = p->now.token;
  place out = {.is_wrong = true};
  if (name.kind != VYRE__T_NAME) {
    (void)vyre__p_expected(p, "a name", "write a var or an element: (a, b[i])");
    return out;
  }
  const vyre__symbol *symbol = vyre__p_symbol(p, &name);
  const vyre__binding *binding =
      symbol->local ? &p->bindings[symbol->local - 1] : NULL;
  if (!binding) (void)vyre__p_unknown(p, &name, VYRE__T_SET);
  out.is_wrong = !binding || (binding->kind != VYRE__BIND_LOCAL &&
                              binding->kind != VYRE__BIND_BUFFER);
  out.is_local = !out.is_wrong && binding->kind == VYRE__BIND_LOCAL;
  if (!out.is_wrong) out.number = binding->index;
  vyre__p_advance(p);
  if (out.is_local) {
    vyre__p_mark(p, &name);
    out.part = 0;
    if (vyre__p_is(p, VYRE__T_DOT) || vyre__p_is(p, VYRE__T_LBRACKET)) {
      out.part = vyre__p_part(p, &name, vyre__ir_build_local(m, out.number));
      if (out.part && m->nodes[out.part].op == VYRE__OP_COMPONENT) {
        m->nodes[out.part].b = keep(p, m->nodes[out.part].b);
      }
      out.is_wrong = out.part == 0;
    }
  } else if (vyre__p_is(p, VYRE__T_LBRACKET)) {
    out.index = keep(p, vyre__p_index_of(p));
    out.is_wrong = out.is_wrong || out.index == 0;
  } else if (!out.is_wrong) {
    (void)vyre__p_error(p, vyre__p_span(&name), "V035", "write an index: x[i]",
                        "'%.*s' is %s and needs an index",
                        (int)(name.length > 100 ? 100 : name.length),
                        p->text + name.start,
                        vyre__p_kind_of_memory(out.number));
    out.is_wrong = true;
  }
  out.span = vyre__p_since(p, &name);
  return out;
}

static vyre__id store(vyre__parser *p, const place *to, vyre__id value) {
  vyre__ir_builder *m = &p->ir;
  m->place = to->span.place;
  m->length = to->span.length;
  if (to->part) return vyre__ir_build_set_place(m, to->part, value);
  if (to->is_local) return vyre__ir_build_assign(m, to->number, value);
  return vyre__ir_build_store(m, to->number, to->index, value);
}

vyre__id vyre__p_assign_results(vyre__parser *p) {
  vyre__ir_builder *m = &p->ir;
  vyre__token open = p->now.token;
  place places[VYRE__MAX_RESULTS];
  uint32_t count = 0;
  bool good = true;
  vyre__p_advance(p);
  while (!vyre__p_is(p, VYRE__T_RPAREN) && !p->now.panic) {
    const place one = read_place(p);
    good = good && !one.is_wrong;
    if (count < VYRE__MAX_RESULTS) places[count] = one;
    count++;
    if (!vyre__p_accept(p, VYRE__T_COMMA)) break;
  }
  if (!vyre__p_close(p, VYRE__T_RPAREN, &open)) return 0;
  const vyre__id call = read_results(p, &open, count);
  for (uint32_t i = 0; i < count && i < VYRE__MAX_RESULTS && call; i++) {
    m->place = places[i].span.place;
    m->length = places[i].span.length;
    const vyre__id result = vyre__ir_build_result(m, i);
    if (!good) continue;
    vyre__statement(m, store(p, &places[i], result));
  }
  if (!p->now.panic) vyre__p_semicolon(p, "an assignment");
  return 0;
}

vyre__id vyre__p_return_results(vyre__parser *p, const vyre__token *first) {
  vyre__ir_builder *m = &p->ir;
  uint32_t mark = vyre__stack_mark(m);
  vyre__token open = p->now.token;
  if (vyre__p_accept(p, VYRE__T_LPAREN)) {
    while (!vyre__p_is(p, VYRE__T_RPAREN) && !p->now.panic) {
      vyre__push(m, vyre__p_value(p));
      if (!vyre__p_accept(p, VYRE__T_COMMA)) break;
    }
    if (!vyre__p_close(p, VYRE__T_RPAREN, &open)) {
      vyre__stack_drop(m, mark);
      return 0;
    }
  } else if (vyre__p_is(p, VYRE__T_SEMICOLON)) {
    vyre__p_mark(p, first);
    vyre__p_semicolon(p, "a return");
    return vyre__ir_build_return(m, false, 0);
  } else {
    const vyre__id call = vyre__p_value(p);
    if (!call || p->now.panic) return 0;
    if (vyre__type_of(m, call) != VYRE__TYPE_RESULTS) {
      vyre__p_mark(p, first);
      vyre__push(m, call);
    } else {
      const uint32_t count = m->functions[m->nodes[call].a].result_count;
      vyre__p_mark(p, first);
      if (!vyre__ir_build_results(m, call)) return 0;
      mark = vyre__stack_mark(m);
      for (uint32_t i = 0; i < count; i++) {
        vyre__push(m, vyre__ir_build_result(m, i));
      }
    }
  }
  vyre__p_mark(p, first);
  const vyre__id id = vyre__ir_build_return_results(m, mark);
  vyre__p_semicolon(p, "a return");
  return id;
}
