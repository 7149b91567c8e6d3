/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/queue/queue_kernel.h"

#include "analyze/inline/inliner.h"
#include "analyze/queue/queue.h"
#include "analyze/walk.h"
#include "base/memory.h"
#include "base/status.h"
#include "ir/queue.h"

/* State of the inliner for a kernel of a queue. */
struct queue_form {
  const vyre__queue_clauses *clauses;
  uint32_t first_hidden, workgroup;
  bool is_set, counts; /* counts: an item may push more than P items */
  uint32_t item_words;
  uint32_t fields[VYRE__MAX_QUEUE_FIELDS]; /* locals */
  uint32_t index, pushed;                  /* locals */
  uint32_t pushes;                         /* P; 0 for sets */
};

/* --- short forms -----------------------------------------------------------*/

static vyre__id number(inliner *in, uint64_t value) {
  return vyre__ir_build_literal(&in->builder, VYRE_TYPE_U32, value);
}

static vyre__id local(inliner *in, uint32_t index) {
  return vyre__ir_build_local(&in->builder, index);
}

static vyre__id binary(inliner *in, vyre__op op, vyre__id a, vyre__id b) {
  return vyre__ir_build_binary(&in->builder, op, a, b);
}

static vyre__id load(inliner *in, uint32_t hidden, vyre__id index) {
  return vyre__ir_build_load(&in->builder, in->form->first_hidden + hidden,
                             index);
}

static void store(inliner *in, uint32_t hidden, vyre__id index,
                  vyre__id value) {
  vyre__statement(
      &in->builder,
      vyre__ir_build_store(&in->builder, in->form->first_hidden + hidden, index,
                           value));
}

static vyre__id atomic(inliner *in, vyre__op op, uint32_t hidden,
                       vyre__id index, vyre__id value) {
  return vyre__ir_build_atomic(&in->builder, op,
                               in->form->first_hidden + hidden, index, value);
}

static vyre__id place(inliner *in, uint32_t word) {
  return load(in, VYRE__HIDDEN_PLACE, number(in, word));
}

static vyre__id bit_word(inliner *in, uint32_t key) {
  return binary(in, VYRE__OP_SHR, local(in, key), number(in, 5));
}

static vyre__id is_zero(inliner *in, vyre__id value) {
  return binary(in, VYRE__OP_EQ, value, number(in, 0));
}

static uint32_t let(inliner *in, const char *name, vyre__id value) {
  return inline_local(in, name, false, value);
}

static void end_if(inliner *in, vyre__id condition, vyre__mark mark) {
  const vyre__id then = vyre__block_end(&in->builder, mark);
  vyre__statement(&in->builder,
                  vyre__ir_build_if(&in->builder, condition, then, 0));
}

/* --- prologue --------------------------------------------------------------*/

/* Returns the field of the item from its words. */
static vyre__id read_field(inliner *in, uint32_t word, vyre_type type) {
  vyre__ir_builder *m = &in->builder;
  vyre__id words[2] = {0, 0};
  for (uint32_t i = 0; i < 1u + vyre__is_wide(type); i++) {
    const vyre__id first = binary(in, VYRE__OP_MUL, local(in, in->form->index),
                                  number(in, in->form->item_words));
    words[i] = load(in, VYRE__HIDDEN_ITEMS,
                    binary(in, VYRE__OP_ADD, first, number(in, word + i)));
  }
  if (!vyre__is_wide(type)) {
    return type == VYRE_TYPE_U32 ? words[0]
                                 : vyre__ir_build_bitcast(m, type, words[0]);
  }
  const vyre__id low = vyre__ir_build_cast(m, VYRE_TYPE_U64, words[0]);
  vyre__id high = vyre__ir_build_cast(m, VYRE_TYPE_U64, words[1]);
  high = binary(in, VYRE__OP_SHL, high, number(in, 32));
  const vyre__id both = binary(in, VYRE__OP_OR, low, high);
  return type == VYRE_TYPE_U64 ? both : vyre__ir_build_bitcast(m, type, both);
}

static void leave_unless_item(inliner *in) {
  vyre__ir_builder *m = &in->builder;
  const vyre__id is_outside =
      binary(in, VYRE__OP_GE, local(in, in->form->index),
             place(in, VYRE__PLACE_COUNT));
  vyre__mark mark = vyre__block_begin(m);
  vyre__statement(m, vyre__ir_build_return(m, false, 0));
  end_if(in, is_outside, mark);
}

void queue_form_begin(inliner *in) {
  struct queue_form *form = in->form;
  const vyre__queue_clauses *queue = form->clauses;
  inline_at(in, in->program->functions[0].body);
  form->index = let(in, "index",
                    vyre__ir_build_axis(&in->builder, VYRE__OP_GLOBAL_ID, 0));
  if (form->workgroup > 1) leave_unless_item(in);
  uint32_t word = 0;
  for (uint32_t i = 0; i < queue->field_count; i++) {
    const vyre_type type = (vyre_type)queue->fields[i].type;
    form->fields[i] = let(in, "item", read_field(in, word, type));
    word += vyre__is_wide(type) ? 2 : 1;
  }
  if (form->is_set) return;
  form->pushed = inline_local(in, "pushed", true, number(in, 0));
  store(in, VYRE__HIDDEN_COUNTS, local(in, form->index), number(in, 0));
}

vyre__id queue_form_leaf(inliner *in, const vyre__node *node) {
  if (node->op == VYRE__OP_ITEM) return local(in, in->form->fields[node->aux]);
  if (node->op == VYRE__OP_WINDOW) return place(in, VYRE__PLACE_WINDOW);
  return binary(in, VYRE__OP_ADD, place(in, VYRE__PLACE_FIRST),
                local(in, in->form->index));
}

/* --- lists -----------------------------------------------------------------*/

/* Stores a field of a pushed item. */
static void write_field(inliner *in, uint32_t base, uint32_t word,
                        uint32_t value, vyre_type type) {
  vyre__ir_builder *m = &in->builder;
  for (uint32_t i = 0; i < 1u + vyre__is_wide(type); i++) {
    vyre__id bits = local(in, value);
    if (vyre__is_wide(type)) {
      if (type != VYRE_TYPE_U64)
        bits = vyre__ir_build_bitcast(m, VYRE_TYPE_U64, bits);
      if (i == 1) bits = binary(in, VYRE__OP_SHR, bits, number(in, 32));
      bits = vyre__ir_build_cast(m, VYRE_TYPE_U32, bits);
    } else if (type != VYRE_TYPE_U32) {
      bits = vyre__ir_build_bitcast(m, VYRE_TYPE_U32, bits);
    }
    store(in, VYRE__HIDDEN_PUSHED,
          binary(in, VYRE__OP_ADD, local(in, base), number(in, word + i)),
          bits);
  }
}

/* Adds an item behind those that this invocation has pushed. */
static void write_item(inliner *in, const uint32_t *values) {
  const struct queue_form *form = in->form;
  const vyre__queue_clauses *queue = form->clauses;
  const uint64_t places = (uint64_t)form->pushes * form->item_words;
  vyre__id own = binary(in, VYRE__OP_MUL, local(in, form->index),
                        number(in, (uint32_t)places));
  vyre__id next = binary(in, VYRE__OP_MUL, local(in, form->pushed),
                         number(in, form->item_words));
  const uint32_t base = let(in, "at", binary(in, VYRE__OP_ADD, own, next));
  uint32_t word = 0;
  for (uint32_t i = 0; i < queue->field_count; i++) {
    const vyre_type type = (vyre_type)queue->fields[i].type;
    write_field(in, base, word, values[i], type);
    word += vyre__is_wide(type) ? 2 : 1;
  }
  inline_assign(
      in, form->pushed,
      binary(in, VYRE__OP_ADD, local(in, form->pushed), number(in, 1)));
  store(in, VYRE__HIDDEN_COUNTS, local(in, form->index),
        local(in, form->pushed));
}

/* Reports the first push above P in COUNTS. */
static void write_excess(inliner *in, uint32_t site) {
  const struct queue_form *form = in->form;
  const uint32_t most = form->pushes;
  const vyre__id is_first =
      binary(in, VYRE__OP_EQ, local(in, form->pushed), number(in, most));
  vyre__mark mark = vyre__block_begin(&in->builder);
  inline_assign(in, form->pushed, number(in, most + 1));
  store(in, VYRE__HIDDEN_COUNTS, local(in, form->index),
        number(in, most + 1 + site));
  end_if(in, is_first, mark);
}

static vyre__id push_item(inliner *in, vyre__id id, const uint32_t *values) {
  vyre__ir_builder *m = &in->builder;
  const struct queue_form *form = in->form;
  if (!form->counts) {
    write_item(in, values);
    return vyre__ir_build_literal(m, VYRE_TYPE_BOOL, 1);
  }
  const uint32_t site = queue_push_number(in->program, id);
  const uint32_t fits = let(in, "fits",
                            binary(in, VYRE__OP_LT, local(in, form->pushed),
                                   number(in, form->pushes)));
  vyre__mark mark = vyre__block_begin(m);
  write_item(in, values);
  const vyre__id then = vyre__block_end(m, mark);
  mark = vyre__block_begin(m);
  write_excess(in, site);
  const vyre__id otherwise = vyre__block_end(m, mark);
  vyre__statement(m, vyre__ir_build_if(m, local(in, fits), then, otherwise));
  return local(in, fits);
}

/* --- sets ------------------------------------------------------------------*/

/* Adds a key, whose bit was not set, to the list. The list may be too short:
 * its counter then stops growing soon. */
static void list_key(inliner *in, uint32_t key) {
  const vyre__id counted = atomic(in, VYRE__OP_ATOMIC_OR, VYRE__HIDDEN_COUNTS,
                                  number(in, VYRE__COUNT_KEYS), number(in, 0));
  const vyre__id has_space =
      binary(in, VYRE__OP_LE, counted, place(in, VYRE__PLACE_LIMIT));
  vyre__mark outer = vyre__block_begin(&in->builder);
  const uint32_t at = let(in, "at",
                          atomic(in, VYRE__OP_ATOMIC_ADD, VYRE__HIDDEN_COUNTS,
                                 number(in, VYRE__COUNT_KEYS), number(in, 1)));
  const vyre__id fits =
      binary(in, VYRE__OP_LT, local(in, at), place(in, VYRE__PLACE_LIMIT));
  vyre__mark mark = vyre__block_begin(&in->builder);
  store(in, VYRE__HIDDEN_PUSHED, local(in, at), local(in, key));
  end_if(in, fits, mark);
  end_if(in, has_space, outer);
}

/* Sets the bit of a key. Most keys of a graph have theirs already: a load finds
 * that out faster than an atomic. */
static void set_bit(inliner *in, uint32_t key, uint32_t bit) {
  const vyre__id before = atomic(in, VYRE__OP_ATOMIC_OR, VYRE__HIDDEN_NEXT,
                                 bit_word(in, key), number(in, 0));
  const vyre__id is_missing =
      is_zero(in, binary(in, VYRE__OP_AND, before, local(in, bit)));
  vyre__mark outer = vyre__block_begin(&in->builder);
  const uint32_t old = let(in, "old",
                           atomic(in, VYRE__OP_ATOMIC_OR, VYRE__HIDDEN_NEXT,
                                  bit_word(in, key), local(in, bit)));
  const vyre__id is_new =
      is_zero(in, binary(in, VYRE__OP_AND, local(in, old), local(in, bit)));
  vyre__mark mark = vyre__block_begin(&in->builder);
  list_key(in, key);
  end_if(in, is_new, mark);
  end_if(in, is_missing, outer);
}

static uint32_t bit_of(inliner *in, uint32_t key) {
  const vyre__id shift =
      binary(in, VYRE__OP_AND, local(in, key), number(in, 31));
  return let(in, "bit", binary(in, VYRE__OP_SHL, number(in, 1), shift));
}

static vyre__id push_key(inliner *in, uint32_t key) {
  vyre__ir_builder *m = &in->builder;
  const uint32_t fits =
      let(in, "fits",
          binary(in, VYRE__OP_LT, local(in, key), place(in, VYRE__PLACE_KEYS)));
  vyre__mark mark = vyre__block_begin(m);
  const uint32_t bit = bit_of(in, key);
  if (in->form->clauses->kind == VYRE__QUEUE_ONCE) {
    const vyre__id seen = load(in, VYRE__HIDDEN_SEEN, bit_word(in, key));
    const vyre__id is_unseen =
        is_zero(in, binary(in, VYRE__OP_AND, seen, local(in, bit)));
    vyre__mark inner = vyre__block_begin(m);
    set_bit(in, key, bit);
    end_if(in, is_unseen, inner);
  } else {
    set_bit(in, key, bit);
  }
  const vyre__id then = vyre__block_end(m, mark);
  mark = vyre__block_begin(m);
  vyre__statement(
      m, vyre__ir_build_eval(
             m, atomic(in, VYRE__OP_ATOMIC_ADD, VYRE__HIDDEN_COUNTS,
                       number(in, VYRE__COUNT_DROPPED), number(in, 1))));
  const vyre__id otherwise = vyre__block_end(m, mark);
  vyre__statement(m, vyre__ir_build_if(m, local(in, fits), then, otherwise));
  return local(in, fits);
}

static vyre__id key_in_window(inliner *in, uint32_t key) {
  vyre__ir_builder *m = &in->builder;
  const uint32_t found = inline_local(
      in, "found", true, vyre__ir_build_literal(m, VYRE_TYPE_BOOL, 0));
  const vyre__id is_key =
      binary(in, VYRE__OP_LT, local(in, key), place(in, VYRE__PLACE_KEYS));
  vyre__mark mark = vyre__block_begin(m);
  const uint32_t bit = bit_of(in, key);
  const vyre__id word = load(in, VYRE__HIDDEN_WINDOW, bit_word(in, key));
  const vyre__id test =
      binary(in, VYRE__OP_NE, binary(in, VYRE__OP_AND, word, local(in, bit)),
             number(in, 0));
  inline_assign(in, found, test);
  end_if(in, is_key, mark);
  return local(in, found);
}

vyre__id queue_form_value(inliner *in, frame *f, vyre__id id) {
  uint32_t values[VYRE__MAX_QUEUE_FIELDS] = {0};
  const uint32_t count = vyre__child_count(in->program, id);
  for (uint32_t i = 0; i < count; i++)
    values[i] = let(in, "value", inline_operand(in, f, id, i));
  inline_at(in, id);
  if (inline_node(in, id)->op == VYRE__OP_IN_WINDOW)
    return key_in_window(in, values[0]);
  return in->form->is_set ? push_key(in, values[0]) : push_item(in, id, values);
}

/* --- program ---------------------------------------------------------------*/

static struct queue_form form_of(const vyre_program *body) {
  struct queue_form form = {
      .clauses = body->queue,
      .first_hidden = (uint32_t)body->buffer_count - body->queue->hidden,
      .workgroup = body->workgroup[0],
      .is_set = vyre__queue_has_keys(body->queue),
      .counts = body->queue->pushes > 0,
      .item_words = vyre__queue_item_words(body->queue)};
  if (!form.is_set) (void)vyre__queue_pushes(body, &form.pushes, NULL);
  return form;
}

vyre_code inline_queue_part(const vyre_program *program, bool is_for_code,
                            vyre_allocator allocator, vyre_program **out,
                            vyre_status *st) {
  *out = NULL;
  vyre_arena arena;
  vyre_arena_init(&arena, allocator);
  const vyre_program *body = queue_part_body(program, &arena);
  vyre_code code;
  if (body) {
    struct queue_form form = form_of(body);
    code =
        inline_program(body, is_for_code, false,
                       body->queue->hidden ? &form : NULL, allocator, out, st);
  } else {
    code = vyre__no_memory(st, __func__, "nodes", program->node_count);
  }
  vyre_arena_deinit(&arena);
  return code;
}
