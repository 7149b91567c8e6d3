/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parser: structs, their values and fields. */
#include <stdio.h>

#include "base/memory.h"
#include "lang/foreign.h"
#include "lang/parse/parse.h"

enum { MAX_FIELDS = VYRE__MAX_SCALARS };

/* --- declarations ----------------------------------------------------------*/

/* Reports NAME : element[N]. The fix is vectors, which have the same layout. */
static void report_array(vyre__parser *p, const vyre__token *name,
                         const vyre_buffer_decl *decl) {
  enum { MAX_SHOWN = 24 };
  const vyre__source_span span = vyre__p_span(&p->now.token);
  const int shown = (int)name->length;
  const char *own = p->text + name->start;
  char fix[VYRE__FIX_TEXT] = "use a buffer for each field that is an array";
  uint32_t length = 0;
  vyre__shape shape;
  if (!vyre__p_length(p, &length, &shape)) return;
  const bool has_vectors = !decl->type && !vyre__is_sum(decl->element) &&
                           decl->element != VYRE_ELEMENT_BOOL &&
                           decl->element != VYRE_ELEMENT_BYTES;
  if (has_vectors && shown <= MAX_SHOWN && length > 0 && length <= MAX_SHOWN) {
    size_t at = (size_t)snprintf(fix, sizeof fix, "write");
    for (uint32_t i = 0; 4 * i < length && at < sizeof fix; i++) {
      const uint32_t left = length - 4 * i;
      char width[4] = "";
      if (left > 1) snprintf(width, sizeof width, "x%u", left < 4 ? left : 4);
      at +=
          (size_t)snprintf(fix + at, sizeof fix - at, " %.*s_%u : %s%s;", shown,
                           own, i, vyre_element_name(decl->element), width);
    }
  }
  vyre__p_syntax(p, span, "V116", fix, "a field is not an array");
}

/* Reads NAME : element ; */
static bool read_field(vyre__parser *p, vyre_struct_field *field) {
  vyre__token name;
  if (vyre__p_is(p, VYRE__T_NAME) && vyre__p_peek(p).kind == VYRE__T_NAME) {
    char fix[VYRE__FIX_TEXT];
    const vyre__token type = p->now.token, own = vyre__p_peek(p);
    const char *text = p->text + type.start;
    const char *known = vyre__foreign_element(text, type.length);
    snprintf(fix, sizeof fix, "write %.*s : %.*s;", (int)own.length,
             p->text + own.start, known ? (int)strlen(known) : (int)type.length,
             known ? known : text);
    vyre__p_syntax(p, vyre__p_span(&type), "V018", fix,
                   "the type of a field comes after its name");
    return false;
  }
  if (!vyre__p_new_name(p, "a field", &name)) return false;
  vyre_buffer_decl decl = {.kind = VYRE_MEMORY_GLOBAL};
  field->name = vyre__p_copy_name(p, &name);
  if (!vyre__p_expect(p, VYRE__T_COLON, "after the name of a field") ||
      !vyre__p_element(p, &decl)) {
    return false;
  }
  field->element = decl.element;
  field->type = decl.type;
  if (vyre__p_is(p, VYRE__T_LBRACKET)) {
    report_array(p, &name, &decl);
    return false;
  }
  vyre__p_semicolon(p, "a field");
  return !p->now.panic;
}

/* Returns @p name, with a number if a struct of another file has that name:
 * printed programs have one file. */
static const char *own_name(vyre__parser *p, const char *name) {
  char text[VYRE__MAX_NAME + 16];
  for (size_t i = 0; p->scopes && name && i < p->ir.struct_count; i++) {
    if (strcmp(p->ir.structs[i]->self.name, name) != 0) continue;
    snprintf(text, sizeof text, "%.*s_%zu", VYRE__MAX_NAME - 8, name,
             p->ir.struct_count + 1);
    return vyre__arena_text(&p->arena, text);
  }
  return name;
}

/* Reads struct NAME { fields }. Returns its type number, or VOID. */
static unsigned read_struct(vyre__parser *p, vyre__item *item) {
  vyre__token name;
  vyre__p_advance(p);
  if (!vyre__p_item_name(p, item, &name)) return VYRE_TYPE_VOID;
  vyre__token open = p->now.token;
  if (!vyre__p_expect(p, VYRE__T_LBRACE, "after the name of a struct")) {
    return VYRE_TYPE_VOID;
  }
  vyre__arena_mark mark = vyre__arena_here(&p->arena);
  vyre_struct_field *fields =
      vyre__arena_filled(&p->arena, MAX_FIELDS, sizeof *fields, 0);
  if (!fields) {
    p->out_of_memory = true;
    return VYRE_TYPE_VOID;
  }
  size_t count = 0;
  while (!vyre__p_is(p, VYRE__T_RBRACE) && !vyre__p_is(p, VYRE__T_END)) {
    if (count == MAX_FIELDS) {
      vyre__p_syntax(p, vyre__p_span(&p->now.token), "V116",
                     "use several structs, or buffers",
                     "a struct has at most %d scalars", MAX_FIELDS);
    } else if (read_field(p, &fields[count])) {
      count++;
      continue;
    }
    return VYRE_TYPE_VOID;
  }
  if (!vyre__p_close(p, VYRE__T_RBRACE, &open)) return VYRE_TYPE_VOID;
  if (vyre__p_is(p, VYRE__T_SEMICOLON)) {
    vyre__p_error(p, vyre__p_span(&p->now.token), "V013", "remove it",
                  "no ';' after a struct");
    vyre__p_advance(p);
  }
  const vyre__symbol *symbol = vyre__p_symbol(p, &name);
  p->ir.place = vyre__p_span(&name).place;
  p->ir.length = symbol->length;
  const unsigned type = vyre__struct_add(
      &p->ir, own_name(p, vyre__p_copy_name(p, &name)), fields, count);
  vyre__arena_rewind(&p->arena, mark);
  return type;
}

void vyre__p_struct(vyre__parser *p, uint32_t index) {
  vyre__p_go(p, p->items[index].start);
  p->items[index].state = VYRE__ITEM_BUSY;
  vyre__item item = p->items[index];
  item.type = (uint8_t)read_struct(p, &item);
  /* A struct that contains itself was reported. */
  const bool good =
      item.type != VYRE_TYPE_VOID && p->items[index].state != VYRE__ITEM_WRONG;
  if (!good) p->now.panic = true;
  item.state = good ? VYRE__ITEM_DONE : VYRE__ITEM_WRONG;
  item.end = vyre__p_position(p);
  p->items[index] = item;
}

unsigned vyre__p_struct_type(vyre__parser *p, const vyre__token *name) {
  const uint32_t index = vyre__p_symbol(p, name)->item - 1;
  vyre__p_need(p, &p->items[index]);
  const vyre__item *item = &p->items[index];
  return item->state == VYRE__ITEM_DONE ? item->type : (unsigned)VYRE_TYPE_VOID;
}

vyre__id vyre__p_struct_statement(vyre__parser *p) {
  const vyre__token first = p->now.token;
  vyre__p_advance(p);
  const vyre__token type = p->now.token, name = vyre__p_peek(p);
  char fix[VYRE__FIX_TEXT];
  if (type.kind == VYRE__T_NAME && name.kind == VYRE__T_NAME) {
    snprintf(fix, sizeof fix, "write var %.*s = %.*s{field: value, ...};",
             (int)name.length, p->text + name.start, (int)type.length,
             p->text + type.start);
  } else {
    snprintf(fix, sizeof fix, "declare it before the kernel");
  }
  vyre__p_error(p, vyre__p_span(&first), "V018", fix,
                "a local is declared by let or var, and a struct before the "
                "kernel");
  vyre__p_skip_to_semicolon(p);
  (void)vyre__p_accept(p, VYRE__T_SEMICOLON);
  return 0;
}

/* --- values ----------------------------------------------------------------*/

/* Returns the number of the field that a token names, or the number of fields
 * after a report. */
static uint32_t find_field(vyre__parser *p, const vyre__struct *s,
                           const vyre__token *name) {
  const uint32_t count = (uint32_t)s->self.field_count;
  vyre__guess guess = vyre__guess_begin(p->text + name->start, name->length);
  for (uint32_t i = 0; i < count; i++) {
    const char *own = s->self.fields[i].name;
    if (vyre__p_text_is(p, name, own)) return i;
    vyre__guess_try(&guess, own, strlen(own));
  }
  char fix[VYRE__FIX_TEXT], known[VYRE__FIX_TEXT / 2], found[VYRE__FOUND_TEXT];
  snprintf(known, sizeof known, "use a field of it, such as %.60s",
           s->self.fields[0].name);
  vyre__p_error(p, vyre__p_span(name), "V036",
                vyre__p_did_you_mean(&guess, known, fix),
                "struct '%.100s' has no field %s", s->self.name,
                vyre__p_found(p, name, found));
  return count;
}

vyre__id vyre__p_field(vyre__parser *p, const vyre__token *first, vyre__id id) {
  const vyre__struct *s = vyre__struct_at(&p->ir, vyre__type_of(&p->ir, id));
  vyre__p_advance(p);
  const vyre__token name = p->now.token;
  if (name.kind != VYRE__T_NAME) {
    return vyre__p_expected(p, "a field", "write the name of a field");
  }
  vyre__p_advance(p);
  const uint32_t field = find_field(p, s, &name);
  if (field == s->self.field_count) return 0;
  vyre__p_mark(p, first);
  return vyre__ir_build_field(&p->ir, id, field);
}

/* Builds zeros of a type. */
static vyre__id zero(vyre__parser *p, unsigned type) {
  vyre__ir_builder *m = &p->ir;
  const vyre__struct *s = vyre__struct_at(m, type);
  const uint32_t mark = vyre__stack_mark(m);
  if (s) {
    for (size_t i = 0; i < s->self.field_count; i++) {
      vyre__push(m, zero(p, vyre__field_type(&s->self.fields[i])));
    }
    return vyre__ir_build_struct(m, type, mark);
  }
  const vyre__id value = vyre__ir_build_literal(
      m, (vyre_type)(type < 64 ? vyre__component_type(type) : type), 0);
  if (!vyre__is_vector(type)) return value;
  vyre__push(m, value);
  return vyre__ir_build_make(m, type, mark);
}

/* Reads the fields of a value into @p values. */
static bool read_values(vyre__parser *p, const vyre__struct *s,
                        vyre__id *values, bool *given) {
  while (!vyre__p_is(p, VYRE__T_RBRACE) && !p->now.panic) {
    const vyre__token name = p->now.token;
    if (vyre__p_accept(p, VYRE__T_DOT)) {
      vyre__p_syntax(p, vyre__p_span(&name), "V013", "write field: value",
                     "a value of a struct is written {field: value}");
      return false;
    }
    if (name.kind != VYRE__T_NAME || vyre__p_peek(p).kind != VYRE__T_COLON) {
      char fix[VYRE__FIX_TEXT];
      snprintf(fix, sizeof fix, "write %.60s{%.60s: value, ...}", s->self.name,
               s->self.fields[0].name);
      vyre__p_syntax(p, vyre__p_span(&name), "V013", fix,
                     "expected the name of a field and ':'");
      return false;
    }
    vyre__p_advance(p);
    const uint32_t field = find_field(p, s, &name);
    vyre__p_advance(p);
    const vyre__id value = vyre__p_value(p);
    if (field < s->self.field_count && given[field]) {
      vyre__p_error(p, vyre__p_span(&name), "V031", "give it one value",
                    "field '%.100s' is given twice",
                    s->self.fields[field].name);
    } else if (field < s->self.field_count) {
      values[field] = value;
      given[field] = true;
    }
    if (!vyre__p_accept(p, VYRE__T_COMMA)) break;
  }
  return !p->now.panic;
}

vyre__id vyre__p_struct_value(vyre__parser *p, const vyre__token *name) {
  vyre__ir_builder *m = &p->ir;
  const unsigned type = vyre__p_struct_type(p, name);
  const vyre__struct *s = vyre__struct_at(m, type);
  vyre__token open = p->now.token;
  if (!vyre__p_is(p, VYRE__T_LBRACE)) {
    char fix[VYRE__FIX_TEXT];
    const vyre__symbol *symbol = vyre__p_symbol(p, name);
    snprintf(fix, sizeof fix, "write %.*s{%.60s: value, ...}",
             (int)(symbol->length < 60 ? symbol->length : 60), symbol->text,
             s ? s->self.fields[0].name : "field");
    vyre__p_error(p, vyre__p_span(name), "V035", fix,
                  "'%.*s' is a struct, not a value", (int)symbol->length,
                  symbol->text);
    return vyre__p_skip_arguments(p);
  }
  if (!s) {
    vyre__p_skip_group(p);
    return 0;
  }
  vyre__id values[MAX_FIELDS] = {0};
  bool given[MAX_FIELDS] = {false};
  vyre__p_advance(p);
  if (!read_values(p, s, values, given) ||
      !vyre__p_close(p, VYRE__T_RBRACE, &open)) {
    return 0;
  }
  const uint32_t mark = vyre__stack_mark(m);
  vyre__p_mark(p, name);
  for (size_t i = 0; i < s->self.field_count; i++) {
    vyre__id value = values[i];
    if (!given[i]) value = zero(p, vyre__field_type(&s->self.fields[i]));
    vyre__push(m, value);
  }
  return vyre__ir_build_struct(m, type, mark);
}
