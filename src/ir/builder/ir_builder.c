/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* IR builder: arrays, error reports, functions, names. */
#include "ir/builder/ir_builder.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "ir/builder/ir_builder_internal.h"
#include "ir/keywords.h"

void vyre__ir_builder_init(vyre__ir_builder *m, vyre_allocator allocator,
                           vyre__reporter reporter) {
  *m = (vyre__ir_builder){.allocator = allocator,
                          .reporter = reporter,
                          .length = 1,
                          .function = VYRE_NO_INDEX};
  vyre_arena_init(&m->names, allocator);
  (void)vyre__append(m, (vyre__node){0}, 0); /* node 0 is unused */
}

#define FREE_ARRAY(m, array, capacity)                            \
  vyre__reserve_free((m)->allocator, &(m)->array, &(m)->capacity, \
                     sizeof *(m)->array)

void vyre__ir_builder_build(vyre__ir_builder *m) {
  FREE_ARRAY(m, nodes, node_capacity);
  FREE_ARRAY(m, spans, span_capacity);
  FREE_ARRAY(m, lists, list_capacity);
  FREE_ARRAY(m, texts, text_capacity);
  FREE_ARRAY(m, functions, function_capacity);
  FREE_ARRAY(m, parameters, parameter_capacity);
  FREE_ARRAY(m, locals, local_capacity);
  FREE_ARRAY(m, structs, struct_capacity);
  FREE_ARRAY(m, stack, stack_capacity);
  FREE_ARRAY(m, tables, table_capacity);
  FREE_ARRAY(m, table_values, table_value_capacity);
  vyre__canonicalizer_free(m);
  vyre_arena_deinit(&m->names);
}

/* Reserves @p more elements. Returns false and sets out_of_memory on failure.
 */
static bool grow(vyre__ir_builder *m, void *array, size_t *capacity,
                 size_t count, size_t more, size_t element_size) {
  if (more <= *capacity - count) return true;
  if (more < UINT32_MAX && count < UINT32_MAX - more &&
      vyre__reserve(m->allocator, array, capacity, count + more, element_size,
                    false)) {
    return true;
  }
  m->out_of_memory = true;
  return false;
}

#define GROW(m, array, capacity, count, more) \
  grow((m), &(m)->array, &(m)->capacity, (m)->count, (more), sizeof *(m)->array)

/* --- error reports ---------------------------------------------------------*/

static void report(vyre__ir_builder *m, vyre__source_span span,
                   const char *rule, vyre__source_span other,
                   const char *other_text, const char *fix,
                   const char *message) {
  m->error_count++;
  if (!m->reporter.report) return;
  m->reporter.report(m->reporter.self, rule, span.place,
                     span.length ? span.length : 1, message, fix, other.place,
                     other_text);
}

enum { MESSAGE = 512 };

#define FORMAT_MESSAGE(message, format)                  \
  do {                                                   \
    va_list arguments_;                                  \
    va_start(arguments_, format);                        \
    vsnprintf((message), MESSAGE, (format), arguments_); \
    va_end(arguments_);                                  \
  } while (0)

vyre__id vyre__diagnose(vyre__ir_builder *m, const char *rule, const char *fix,
                        const char *format, ...) {
  char message[MESSAGE];
  FORMAT_MESSAGE(message, format);
  report(m, (vyre__source_span){m->place, m->length}, rule,
         (vyre__source_span){0}, NULL, fix, message);
  return 0;
}

vyre__id vyre__diagnose_at(vyre__ir_builder *m, vyre__id node, const char *rule,
                           const char *fix, const char *format, ...) {
  char message[MESSAGE];
  FORMAT_MESSAGE(message, format);
  vyre__source_span span = {m->place, m->length};
  if (node) span = m->spans[node];
  report(m, span, rule, (vyre__source_span){0}, NULL, fix, message);
  return 0;
}

vyre__id vyre__diagnose_span(vyre__ir_builder *m, vyre__source_span span,
                             const char *rule, vyre__source_span other,
                             const char *other_text, const char *fix,
                             const char *format, ...) {
  char message[MESSAGE];
  FORMAT_MESSAGE(message, format);
  report(m, span, rule, other, other_text, fix, message);
  return 0;
}

/* --- nodes and lists -------------------------------------------------------*/

/* Returns a fix for too deep nesting; chains like a + b + c nest too. */
static const char *depth_fix(vyre__op op) {
  if (vyre__ops[op].form == VYRE__FORM_BINARY) {
    return "each operator counts as a level: split the expression, as in let "
           "part = a + b;";
  }
  if (op == VYRE__OP_IF) {
    return "each else counts as a level: put half of the cases under another "
           "if, or read the values from a buffer";
  }
  return "store an inner expression with let, or move it to a fn";
}

VYRE__RARE bool vyre__append_check(vyre__ir_builder *m, vyre__op op,
                                   unsigned height) {
  if (height >= VYRE__MAX_DEPTH) {
    vyre__diagnose(m, "V089", depth_fix(op), "nested more than %d levels deep",
                   VYRE__MAX_DEPTH);
    return false;
  }
  if (m->node_count >= VYRE__MAX_NODES) {
    vyre__diagnose(m, "V089", "split the file",
                   "the file has more than %d operations", VYRE__MAX_NODES);
    return false;
  }
  return GROW(m, nodes, node_capacity, node_count, 1) &&
         GROW(m, spans, span_capacity, node_count, 1);
}

uint32_t vyre__append_list(vyre__ir_builder *m, const uint32_t *items,
                           size_t count) {
  if (!GROW(m, lists, list_capacity, list_count, count)) return VYRE_NO_INDEX;
  uint32_t offset = (uint32_t)m->list_count;
  if (count > 0) memcpy(m->lists + offset, items, count * sizeof *items);
  m->list_count += count;
  return offset;
}

uint32_t vyre__stack_mark(const vyre__ir_builder *m) {
  return (uint32_t)m->stack_count;
}

void vyre__push(vyre__ir_builder *m, vyre__id id) {
  if (!GROW(m, stack, stack_capacity, stack_count, 1)) return;
  m->stack[m->stack_count++] = id;
}

void vyre__stack_drop(vyre__ir_builder *m, uint32_t mark) {
  if (mark < m->stack_count) m->stack_count = mark;
}

/* Returns true for text that the text form can express: printable characters,
 * line ends and tabs. */
static bool is_printable(const char *text, size_t length) {
  size_t start = 0;
  for (size_t i = 0; i <= length; i++) {
    if (i < length && text[i] != '\n' && text[i] != '\t') continue;
    if (!vyre__utf8_printable(text + start, i - start)) return false;
    start = i + 1;
  }
  return true;
}

vyre__id vyre__ir_build_text(vyre__ir_builder *m, const char *text,
                             size_t length) {
  if (!is_printable(text, length)) {
    return vyre__diagnose(
        m, "", "use UTF-8 without control characters",
        "the text contains characters that cannot be printed");
  }
  if (!GROW(m, texts, text_capacity, text_count, length)) return 0;
  uint32_t offset = (uint32_t)m->text_count;
  if (length > 0) memcpy(m->texts + offset, text, length);
  m->text_count += length;
  return vyre__append(
      m, (vyre__node){.op = VYRE__OP_TEXT, .a = offset, .b = (uint32_t)length},
      0);
}

/* --- functions -------------------------------------------------------------*/

static const char *copy_name(vyre__ir_builder *m, const char *name,
                             size_t length) {
  if (!name || length == 0) return "";
  char *copy = vyre_arena_alloc(&m->names, length + 1, 1);
  if (!copy) {
    m->out_of_memory = true;
    return "";
  }
  memcpy(copy, name, length);
  copy[length] = '\0';
  return copy;
}

uint32_t vyre__function_declare(vyre__ir_builder *m, const char *name,
                                size_t length, vyre_type result) {
  if (!GROW(m, functions, function_capacity, function_count, 1)) {
    return VYRE_NO_INDEX;
  }
  uint32_t index = (uint32_t)m->function_count++;
  m->functions[index] =
      (vyre__ir_function){.name = copy_name(m, name, length),
                          .span = {m->place, m->length},
                          .result = (uint8_t)result,
                          .first_parameter = (uint32_t)m->parameter_count};
  return index;
}

void vyre__function_parameter(vyre__ir_builder *m, uint32_t function,
                              const char *name, size_t length, vyre_type type) {
  if (function >= m->function_count) return;
  if (!GROW(m, parameters, parameter_capacity, parameter_count, 1)) return;
  m->parameters[m->parameter_count++] =
      (vyre__ir_parameter){.name = copy_name(m, name, length),
                           .span = {m->place, m->length},
                           .type = (uint8_t)type};
  m->functions[function].parameter_count++;
}

void vyre__function_memory(vyre__ir_builder *m, uint32_t function,
                           const char *name, size_t length,
                           const vyre__local *spec) {
  const size_t count = m->parameter_count;
  vyre__function_parameter(m, function, name, length, (vyre_type)spec->type);
  if (m->parameter_count == count) return;
  vyre__ir_parameter *it = &m->parameters[count];
  it->is_memory = true;
  it->is_mutable = spec->is_mutable;
  it->access = spec->access;
  it->element = spec->element;
  it->length = spec->length;
  it->shape = spec->shape;
}

void vyre__function_results(vyre__ir_builder *m, uint32_t function,
                            const uint8_t *types, uint32_t count) {
  if (function >= m->function_count || count > VYRE__MAX_RESULTS) return;
  m->functions[function].result_count = (uint8_t)count;
  memcpy(m->functions[function].results, types, count);
}

uint32_t vyre__table_add(vyre__ir_builder *m, const char *name, size_t length,
                         vyre_type type, const uint64_t *values, uint32_t count,
                         vyre__shape shape) {
  if (!GROW(m, tables, table_capacity, table_count, 1) ||
      !GROW(m, table_values, table_value_capacity, table_value_count, count)) {
    return VYRE_NO_INDEX;
  }
  memcpy(m->table_values + m->table_value_count, values,
         count * sizeof *values);
  m->tables[m->table_count] =
      (vyre__ir_table){.name = copy_name(m, name, length),
                       .type = (uint8_t)type,
                       .length = count,
                       .shape = shape,
                       .first = m->table_value_count};
  m->table_value_count += count;
  return (uint32_t)m->table_count++;
}

void vyre__function_begin(vyre__ir_builder *m, uint32_t function) {
  m->function = function;
  m->results_left = m->results_open = 0;
  m->kernel = NULL;
  m->in_pull = m->in_by = false;
  m->loop_depth = 0;
  m->switch_ = (vyre__break_target){.is_open = false};
  m->errors_before = m->error_count;
  if (function >= m->function_count) return;
  vyre__ir_function *f = &m->functions[function];
  f->first_local = (uint32_t)m->local_count;
  f->local_count = 0;
  f->first_node = f->end_node = (uint32_t)m->node_count;
  f->body = 0;
  if (!GROW(m, locals, local_capacity, local_count, f->parameter_count)) return;
  for (uint32_t i = 0; i < f->parameter_count; i++) {
    const vyre__ir_parameter *it = &m->parameters[f->first_parameter + i];
    m->locals[m->local_count++] = (vyre__ir_local){.name = it->name,
                                                   .span = it->span,
                                                   .type = it->type,
                                                   .is_mutable = it->is_mutable,
                                                   .is_memory = it->is_memory,
                                                   .access = it->access,
                                                   .element = it->element,
                                                   .length = it->length,
                                                   .shape = it->shape,
                                                   .is_parameter = true,
                                                   .is_open = true};
    f->local_count++;
  }
}

uint32_t vyre__kernel_begin(vyre__ir_builder *m, const vyre__kernel *kernel) {
  uint32_t index = vyre__function_declare(m, kernel->name, strlen(kernel->name),
                                          VYRE_TYPE_VOID);
  vyre__function_begin(m, index);
  m->kernel = kernel;
  if (index != VYRE_NO_INDEX) m->functions[index].is_kernel = true;
  return index;
}

uint32_t vyre__kernel_part_begin(vyre__ir_builder *m,
                                 const vyre__kernel *kernel, bool is_pull) {
  uint32_t index = vyre__function_declare(m, "", 0, VYRE_TYPE_VOID);
  vyre__function_begin(m, index);
  m->kernel = kernel;
  m->in_pull = is_pull;
  m->in_by = !is_pull;
  if (index != VYRE_NO_INDEX) m->functions[index].is_kernel = true;
  return index;
}

vyre__ir_builder_mark vyre__ir_builder_here(const vyre__ir_builder *m) {
  return (vyre__ir_builder_mark){
      m->node_count,  m->list_count,     m->text_count,
      m->local_count, m->function_count, vyre__arena_here(&m->names)};
}

void vyre__ir_builder_drop(vyre__ir_builder *m, uint32_t function,
                           vyre__ir_builder_mark mark) {
  if (m->function_count != mark.functions) return;
  vyre__ir_function *f = &m->functions[function];
  f->first_node = f->end_node = 0;
  f->first_local = f->local_count = 0;
  f->body = 0;
  if (function + 1 == mark.functions) m->function_count--; /* the last one */
  m->node_count = mark.nodes;
  m->list_count = mark.lists;
  m->text_count = mark.texts;
  m->local_count = mark.locals;
  vyre__arena_rewind(&m->names, mark.names);
}

/* Returns true if control never reaches the end of a statement. */
static bool always_returns(const vyre__ir_builder *m, vyre__id id) {
  const vyre__node *node = &m->nodes[id];
  if (node->op == VYRE__OP_RETURN || node->op == VYRE__OP_RETURN_RESULTS) {
    return true;
  }
  if (node->op == VYRE__OP_IF) {
    return node->c && always_returns(m, node->b) && always_returns(m, node->c);
  }
  if (node->op != VYRE__OP_BLOCK) return false;
  for (uint32_t i = 0; i < node->b; i++) {
    if (always_returns(m, m->lists[node->a + i])) return true;
  }
  return false;
}

void vyre__function_end(vyre__ir_builder *m, vyre__id body) {
  uint32_t function = m->function;
  m->function = VYRE_NO_INDEX;
  m->kernel = NULL;
  if (function >= m->function_count) return;
  vyre__ir_function *f = &m->functions[function];
  f->end_node = (uint32_t)m->node_count;
  for (uint32_t i = 0; i < f->local_count; i++) {
    m->locals[f->first_local + i].is_open = false;
  }
  if (!body || m->error_count != m->errors_before) return;
  f->body = body;
  const bool has_result = f->result != VYRE_TYPE_VOID || f->result_count > 0;
  if (f->is_kernel || !has_result || always_returns(m, body)) return;
  const bool is_list = f->result_count > 0;
  vyre__diagnose_span(m, f->span, "V077", (vyre__source_span){0}, NULL,
                      is_list ? "end every path with return (x, y);"
                              : "end every path with return value;",
                      "fn '%.100s' must return %s on every path", f->name,
                      is_list ? "its results" : vyre__type_name(f->result));
}

uint32_t vyre__local_add(vyre__ir_builder *m, const char *name, size_t length,
                         vyre__ir_local local) {
  if (m->function >= m->function_count ||
      !GROW(m, locals, local_capacity, local_count, 1)) {
    return VYRE_NO_INDEX;
  }
  local.name = copy_name(m, name, length);
  local.span = (vyre__source_span){m->place, m->length};
  local.is_open = true;
  m->locals[m->local_count++] = local;
  return m->functions[m->function].local_count++;
}

bool vyre__name_is_identifier(const char *name, size_t length) {
  if (length == 0 || length > VYRE__MAX_NAME) return false;
  for (size_t i = 0; i < length; i++) {
    char c = name[i];
    bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    bool is_digit = c >= '0' && c <= '9';
    if (!is_letter && c != '_' && !(is_digit && i > 0)) return false;
  }
  return !vyre__is_reserved(name, length);
}

/* --- recursion -------------------------------------------------------------*/

/* Depth-first search without recursion. cursor[f] is the next node to look at
 * in f (end + 1 when f is done), chain holds the open functions, height the
 * longest chain of calls below. */
typedef struct search {
  const vyre__call_graph *graph;
  uint32_t *cursor, *chain, *is_open, *height;
  uint32_t length; /* length of the chain */
} search;

static void raise_height(uint32_t *height, uint32_t min) {
  if (*height < min) *height = min;
}

static void search_enter(search *s, uint32_t f) {
  s->chain[s->length++] = f;
  s->is_open[f] = 1;
  s->height[f] = 1;
}

static void search_leave(search *s) {
  uint32_t f = s->chain[--s->length];
  s->is_open[f] = 0;
  s->cursor[f] = s->graph->end[f] + 1;
  if (s->length == 0) return;
  raise_height(&s->height[s->chain[s->length - 1]], s->height[f] + 1);
}

/* Returns the next call in the innermost function of the chain, or 0. */
static vyre__id search_next(search *s) {
  uint32_t f = s->chain[s->length - 1];
  while (s->cursor[f] < s->graph->end[f]) {
    vyre__id at = s->cursor[f]++;
    if (s->graph->nodes[at].op == VYRE__OP_CALL) return at;
  }
  return 0;
}

uint32_t vyre__call_cycle(const vyre__call_graph *graph, uint32_t *scratch,
                          vyre__id *call, uint32_t *depth) {
  size_t count = graph->count;
  search s = {
      graph, scratch, scratch + count, scratch + 2 * count, scratch + 3 * count,
      0};
  memset(s.is_open, 0, count * sizeof *s.is_open);
  memcpy(s.cursor, graph->begin, count * sizeof *s.cursor);
  *depth = 0;
  for (uint32_t root = 0; root < count; root++) {
    if (s.cursor[root] > graph->end[root]) continue;
    search_enter(&s, root);
    while (s.length > 0) {
      uint32_t f = s.chain[s.length - 1];
      vyre__id at = search_next(&s);
      if (at == 0) {
        search_leave(&s);
        continue;
      }
      uint32_t callee = graph->nodes[at].a;
      if (s.is_open[callee]) {
        if (call) *call = at;
        return f;
      }
      if (s.cursor[callee] > graph->end[callee]) { /* already searched */
        raise_height(&s.height[f], s.height[callee] + 1);
      } else {
        search_enter(&s, callee);
      }
    }
    raise_height(depth, s.height[root]);
  }
  return VYRE_NO_INDEX;
}

uint32_t vyre__find_recursion(vyre__ir_builder *m, vyre__id *call) {
  uint32_t count = (uint32_t)m->function_count;
  size_t bytes = (size_t)count * 6 * sizeof(uint32_t);
  if (count == 0 || !m->has_nested_calls) return VYRE_NO_INDEX;
  uint32_t *scratch = vyre__resize(m->allocator, NULL, 0, bytes);
  if (!scratch) {
    m->out_of_memory = true;
    return VYRE_NO_INDEX;
  }
  uint32_t *begin = scratch + 4 * (size_t)count, *end = begin + count;
  for (uint32_t i = 0; i < count; i++) {
    begin[i] = m->functions[i].first_node;
    end[i] = m->functions[i].end_node;
  }
  vyre__call_graph graph = {m->nodes, begin, end, count};
  uint32_t depth;
  uint32_t found = vyre__call_cycle(&graph, scratch, call, &depth);
  vyre__resize(m->allocator, scratch, bytes, 0);
  return found;
}

vyre__id vyre__ir_copy_node(vyre__ir_builder *m, vyre__node node,
                            uint32_t mark) {
  const unsigned form = vyre__ops[node.op].form;
  uint32_t *list = form == VYRE__FORM_MAKE ? &node.a : &node.c;
  uint32_t count;
  unsigned height = 0, more = 0;
  switch (form) {
    case VYRE__FORM_BUFFER:
      break;
    case VYRE__FORM_MAKE:
    case VYRE__FORM_ATOMIC2:
      if (!vyre__take_list(m, mark, list, &count, &height)) return 0;
      if (form == VYRE__FORM_ATOMIC2) more = vyre__height(m, node.b);
      break;
    case VYRE__FORM_LOAD:
    case VYRE__FORM_STORE:
    case VYRE__FORM_ATOMIC:
      height = vyre__height2(m, node.b, node.c);
      break;
    default:
      height = vyre__height2(m, node.a, node.b);
      more = vyre__height(m, node.c);
  }
  if (m->out_of_memory || m->error_count > 0) return 0;
  return vyre__append(m, node, height > more ? height : more);
}
