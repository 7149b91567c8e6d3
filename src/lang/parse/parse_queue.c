/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parser: clauses, further bodies and words of queue kernels. */
#include <stdio.h>

#include "base/memory.h"
#include "ir/keywords.h"
#include "lang/parse/parse.h"

/* --- clauses ---------------------------------------------------------------*/

/* Reads type, or name : type. */
static bool read_field(vyre__parser *p, vyre__queue_head *head) {
  const uint32_t index = head->queue.field_count;
  const vyre__token first = p->now.token;
  if (index == VYRE__MAX_QUEUE_FIELDS) {
    vyre__p_syntax(p, vyre__p_span(&first), "V095",
                   "push an index, and keep the rest of the item in a buffer",
                   "an item has at most %d fields", VYRE__MAX_QUEUE_FIELDS);
    return false;
  }
  vyre__token name = {.kind = VYRE__T_END};
  if (first.kind == VYRE__T_NAME && vyre__p_peek(p).kind == VYRE__T_COLON) {
    if (!vyre__p_new_name(p, "a field", &name)) return false;
    vyre__p_advance(p);
  }
  const vyre__token word = p->now.token;
  vyre_type type = vyre__p_type(p);
  if (type == VYRE_TYPE_VOID && p->now.panic) return false;
  if (type == VYRE_TYPE_VOID) type = VYRE_TYPE_U32; /* reported */
  if (type == VYRE_TYPE_BOOL) {
    vyre__p_error(p, vyre__p_span(&word), "V095", "use u32, with 0 or 1",
                  "a field of an item has 32 or 64 bits, and cannot be bool");
  }
  head->names[index] = name;
  head->fields[index] = (vyre__queue_field){
      name.kind == VYRE__T_END ? "" : vyre__p_copy_name(p, &name),
      (uint8_t)type};
  head->queue.field_count++;
  return true;
}

static bool read_fields(vyre__parser *p, vyre__queue_head *head) {
  head->queue.field_count = 0; /* a second clause was reported */
  do {
    if (!read_field(p, head)) return false;
  } while (vyre__p_accept(p, VYRE__T_COMMA));
  return true;
}

/* Reads the N of set(N): a constant, or the name of a uniform or buffer. */
static bool read_bound(vyre__parser *p, vyre__queue_head *head) {
  const vyre__token name = p->now.token;
  head->queue.bound_kind = VYRE__BOUND_CONSTANT;
  if (name.kind == VYRE__T_NAME && !vyre__p_symbol(p, &name)->item &&
      vyre__p_peek(p).kind == VYRE__T_RPAREN) {
    head->bound = name;
    vyre__p_advance(p);
    return true;
  }
  head->queue.bound = 1;
  return vyre__p_constant(p, "V095", "the number of keys", 1, UINT32_MAX,
                          &head->queue.bound);
}

enum { MAX_PUSHES = 1 << 24 };

static bool read_argument(vyre__parser *p, vyre__queue_head *head,
                          bool is_queue, bool is_pushes) {
  if (is_queue) return read_fields(p, head);
  if (!is_pushes) return read_bound(p, head);
  head->queue.pushes = 1;
  return vyre__p_constant(p, "V095", "the number of pushes", 1, MAX_PUSHES,
                          &head->queue.pushes);
}

/* Reads by(...): the value is read when the buffers are known. */
static bool read_by(vyre__parser *p, vyre__queue_head *head,
                    const vyre__token *word) {
  (void)vyre__p_repeated(p, word, &head->has_by);
  head->by = vyre__p_position(p);
  if (!vyre__p_is(p, VYRE__T_LPAREN)) {
    (void)vyre__p_expect(p, VYRE__T_LPAREN, "and the priority after by");
    return true;
  }
  vyre__p_skip_group(p);
  return true;
}

bool vyre__p_queue_clause(vyre__parser *p, vyre__queue_head *head) {
  const vyre__token word = p->now.token;
  const bool is_queue = vyre__p_text_is(p, &word, "queue");
  const bool is_set = vyre__p_text_is(p, &word, "set");
  const bool is_once = vyre__p_text_is(p, &word, "once");
  const bool is_any = vyre__p_text_is(p, &word, "any");
  const bool is_pushes = vyre__p_text_is(p, &word, "pushes");
  const bool is_by = vyre__p_text_is(p, &word, "by");
  if (!is_queue && !is_set && !is_once && !is_any && !is_pushes && !is_by) {
    return false;
  }
  if (!head->word.length || is_queue) head->word = word;
  vyre__p_advance(p);
  if (is_by) return read_by(p, head, &word);
  if (is_queue) {
    (void)vyre__p_repeated(p, &word, &head->has_queue);
  } else if (is_pushes) {
    (void)vyre__p_repeated(p, &word, &head->has_pushes);
  } else {
    if (head->has_kind) {
      vyre__p_error(p, vyre__p_span(&word), "V095", "keep one of them",
                    "a queue is one of set, once and any");
    }
    head->has_kind = true;
    head->queue.kind = is_set    ? VYRE__QUEUE_SET
                       : is_once ? VYRE__QUEUE_ONCE
                                 : VYRE__QUEUE_ANY;
  }
  if (is_any) return true;
  const vyre__token open = p->now.token;
  if (!vyre__p_expect(p, VYRE__T_LPAREN,
                      "and a value in the kernel's header")) {
    return true;
  }
  if (read_argument(p, head, is_queue, is_pushes)) {
    (void)vyre__p_close(p, VYRE__T_RPAREN, &open);
  }
  return true;
}

/* --- the complete clauses --------------------------------------------------*/

/* Finds the uniform or buffer that bounds the keys. */
static bool find_bound(vyre__parser *p, vyre__queue_head *head) {
  const vyre__token *name = &head->bound;
  if (name->kind != VYRE__T_NAME) return true;
  const vyre__symbol *symbol = vyre__p_symbol(p, name);
  const vyre__binding *binding =
      symbol->local ? &p->bindings[symbol->local - 1] : NULL;
  if (binding && binding->kind == VYRE__BIND_WRONG) return false;
  if (!binding || binding->kind != VYRE__BIND_BUFFER) {
    char fix[VYRE__FIX_TEXT];
    vyre__guess guess = vyre__guess_begin(symbol->text, symbol->length);
    for (size_t i = 0; i < p->buffer_count && i < 1000; i++) {
      vyre__guess_try(&guess, p->buffers[i].name, strlen(p->buffers[i].name));
    }
    vyre__p_error(p, vyre__p_span(name), "V095",
                  vyre__p_did_you_mean(
                      &guess, "use a constant, a uniform or a buffer", fix),
                  "'%.*s' is not a constant, and not a uniform or buffer of "
                  "this kernel",
                  (int)symbol->length, symbol->text);
    return false;
  }
  const vyre_buffer_decl *buffer = &p->buffers[binding->index];
  head->queue.bound = binding->index;
  head->queue.bound_kind = buffer->kind == VYRE_MEMORY_UNIFORM
                               ? VYRE__BOUND_UNIFORM
                               : VYRE__BOUND_LEN;
  const bool is_scalar =
      buffer->element == VYRE_ELEMENT_U32 && buffer->count == 1;
  if (buffer->kind == VYRE_MEMORY_SHARED ||
      (buffer->kind == VYRE_MEMORY_UNIFORM && !is_scalar)) {
    vyre__p_error2(
        p, vyre__p_span(name), "V095", binding->span, "declared here",
        "use a uniform of type u32, or a buffer that is not shared",
        "'%.*s' cannot bound the keys", (int)symbol->length, symbol->text);
    return false;
  }
  return true;
}

static bool report_clause(vyre__parser *p, const vyre__queue_head *head,
                          const char *fix, const char *message) {
  vyre__p_error(p, vyre__p_span(&head->word), "V095", fix, "%s", message);
  return false;
}

/* Checks which clauses there are. Their values are checked with the kernel. */
static bool check_clauses(vyre__parser *p, const vyre__queue_head *head) {
  const vyre__queue_clauses *queue = &head->queue;
  const bool is_set =
      queue->kind == VYRE__QUEUE_SET || queue->kind == VYRE__QUEUE_ONCE;
  if (!head->has_queue) {
    return report_clause(p, head, "add queue(u32) to the header",
                         "this clause needs a queue");
  }
  if (queue->field_count == 0) return false; /* reported */
  if (is_set &&
      (queue->field_count != 1 || queue->fields[0].type != VYRE_TYPE_U32)) {
    return report_clause(p, head, "write queue(u32)",
                         "an item of a set is one u32, the key");
  }
  if (is_set && head->has_pushes) {
    return report_clause(p, head, "remove pushes(...)",
                         "a set has space for all of its keys, so the number "
                         "of pushes does not matter");
  }
  if (head->has_by && queue->kind != VYRE__QUEUE_SET) {
    return report_clause(p, head, "write queue(u32) set(N) by(...)",
                         "by(...) orders the keys of a set");
  }
  for (uint32_t i = 0; i < queue->field_count; i++) {
    if (queue->field_count > 1 && !queue->fields[i].name[0]) {
      return report_clause(p, head, "write queue(node: u32, cost: f32)",
                           "each field of an item with several fields needs a "
                           "name");
    }
  }
  return true;
}

/* Reports buffers whose names are words of queue kernels. */
static void check_names(vyre__parser *p) {
  for (size_t i = 0; i < p->binding_count; i++) {
    const vyre__binding *binding = &p->bindings[i];
    if (binding->kind != VYRE__BIND_BUFFER) continue;
    const char *name = p->buffers[binding->index].name;
    if (!vyre__is_queue_word(name)) continue;
    vyre__p_error(p, binding->span, "V031",
                  "use another name; a name can have only one meaning",
                  "'%s' is a word of queue kernels", name);
  }
}

bool vyre__p_queue_finish(vyre__parser *p, vyre__queue_head *head,
                          vyre__queue_clauses *out) {
  *out = (vyre__queue_clauses){0};
  if (!head->word.length) return false;
  vyre__queue_clauses *queue = &head->queue;
  queue->fields = head->fields;
  if (!find_bound(p, head) || !check_clauses(p, head)) {
    /* the body may use the item: only the clauses are wrong */
    if (!head->has_queue || queue->field_count == 0) return false;
    queue->kind = VYRE__QUEUE_ORDERED;
    queue->bound_kind = VYRE__BOUND_NONE;
  }
  check_names(p);
  vyre__queue_field *fields =
      vyre__arena_array(&p->arena, queue->field_count, sizeof *fields);
  if (!fields) {
    p->out_of_memory = true;
    return false;
  }
  memcpy(fields, head->fields, queue->field_count * sizeof *fields);
  for (uint32_t i = 0; i < queue->field_count; i++) {
    if (head->names[i].kind == VYRE__T_END) continue;
    vyre__p_check_free(p, &head->names[i]);
    vyre__p_bind(p, &head->names[i], VYRE__BIND_FIELD, i);
  }
  *out = *queue;
  out->fields = fields;
  return true;
}

/* --- further bodies --------------------------------------------------------*/

static void read_pull(vyre__parser *p, const vyre__token *word,
                      const vyre__kernel *kernel, vyre__queue_clauses *queue) {
  if (!kernel->queue || queue->kind != VYRE__QUEUE_ONCE) {
    vyre__p_error(p, vyre__p_span(word), "V095",
                  "write queue(u32) once(N) in the header",
                  "only a queue of kind 'once' has a 'pull' body");
  }
  vyre__p_mark(p, word);
  const uint32_t function = vyre__kernel_part_begin(&p->ir, kernel, true);
  vyre__function_end(&p->ir, vyre__p_body(p));
  if (function != VYRE_NO_INDEX) queue->pull = function;
}

static void read_priority(vyre__parser *p, const vyre__queue_head *head,
                          const vyre__kernel *kernel,
                          vyre__queue_clauses *queue) {
  vyre__ir_builder *m = &p->ir;
  const vyre__position end = vyre__p_position(p);
  const vyre__token previous = p->now.previous;
  vyre__p_go(p, head->by);
  const vyre__token open = p->now.token;
  if (!vyre__p_accept(p, VYRE__T_LPAREN)) {
    vyre__p_go(p, end);
    return;
  }
  const uint32_t function = vyre__kernel_part_begin(m, kernel, false);
  vyre__mark mark = vyre__block_begin(m);
  vyre__id value = vyre__p_value(p);
  (void)vyre__p_close(p, VYRE__T_RPAREN, &open);
  value = vyre__ir_build_priority(m, value);
  vyre__statement(m, vyre__ir_build_eval(m, value));
  vyre__id body = vyre__block_end(m, mark);
  vyre__function_end(m, value ? body : 0);
  if (function != VYRE_NO_INDEX) queue->by = function;
  vyre__p_go(p, end);
  p->now.previous = previous; /* the end of the scope of the buffers */
}

void vyre__p_queue_parts(vyre__parser *p, const vyre__queue_head *head,
                         const vyre__kernel *kernel,
                         vyre__queue_clauses *queue) {
  const vyre__token word = p->now.token;
  if (p->now.panic || p->stopped) return;
  if (vyre__p_text_is(p, &word, "pull") &&
      vyre__p_peek(p).kind == VYRE__T_LBRACE) {
    vyre__p_advance(p);
    read_pull(p, &word, kernel, queue);
  }
  if (head->has_by && kernel->queue && !p->now.panic && !p->stopped) {
    read_priority(p, head, kernel, queue);
  }
}

/* --- values ----------------------------------------------------------------*/

vyre__id vyre__p_push(vyre__parser *p, const vyre__token *name) {
  uint32_t count, mark = vyre__stack_mark(&p->ir);
  char found[VYRE__FOUND_TEXT];
  if (!vyre__p_is(p, VYRE__T_LPAREN)) {
    return vyre__p_syntax(
        p, vyre__p_behind(p), "V035", "write '(' and the arguments after it",
        "%s is a function: call it", vyre__p_found(p, name, found));
  }
  if (!vyre__p_arguments(p, &count)) {
    vyre__stack_drop(&p->ir, mark);
    return 0;
  }
  vyre__p_mark(p, name);
  return vyre__ir_build_push(&p->ir, mark);
}

static vyre__id read_in_window(vyre__parser *p, const vyre__token *name) {
  const vyre__token open = p->now.token;
  if (!vyre__p_expect(p, VYRE__T_LPAREN, "and a key after in_window")) return 0;
  vyre__id key = vyre__p_value(p);
  if (!vyre__p_close(p, VYRE__T_RPAREN, &open)) return 0;
  vyre__p_mark(p, name);
  return vyre__ir_build_in_window(&p->ir, key);
}

bool vyre__p_queue_word(vyre__parser *p, const vyre__token *name,
                        vyre__id *id) {
  if (!p->ir.kernel || !p->ir.kernel->queue) return false;
  vyre__p_mark(p, name);
  if (vyre__p_text_is(p, name, "window")) {
    *id = vyre__ir_build_position(&p->ir, VYRE__OP_WINDOW);
  } else if (vyre__p_text_is(p, name, "item_index")) {
    *id = vyre__ir_build_position(&p->ir, VYRE__OP_ITEM_INDEX);
  } else if (vyre__p_text_is(p, name, "in_window")) {
    *id = read_in_window(p, name);
  } else {
    return false;
  }
  return true;
}
