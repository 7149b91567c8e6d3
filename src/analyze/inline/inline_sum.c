/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inlining replaces loads and stores of exact sums by accesses to their bins.
 * The statements are those of kernels in lang/sumlib.vyre, which are copied with
 * other buffers. Adding a number stays one operation. */
#include "analyze/inline/inliner.h"
#include "analyze/walk.h"
#include "base/memory.h"
#include "ir/sum.h"
#include "lang/builtins.h"

static vyre__id number(inliner *in, uint32_t value) {
  return vyre__ir_build_literal(&in->builder, VYRE_TYPE_U32, value);
}

/* --- copying a kernel of the library ---------------------------------------*/

/* Copies the statements of an operation on sums. */
static void splice(inliner *in, const sum_splice *with,
                   vyre__sum_kernel which) {
  const vyre_program *library = NULL, *program = in->program;
  uint8_t *has = in->has;
  const bool folds = in->folds;
  vyre__arena_mark mark = vyre__arena_here(&in->scratch);
  if (vyre__builtins_sum((vyre_element)with->element, which, &library, NULL) !=
      VYRE_OK) {
    in->no_memory = true;
    return;
  }
  frame f = {.function = &library->functions[0], .is_kernel = true};
  f.locals = vyre__arena_array(&in->scratch, f.function->local_count,
                               sizeof *f.locals);
  in->has = vyre__arena_array(&in->scratch, library->node_count, 1);
  in->no_memory |= !f.locals || !in->has;
  if (!in->no_memory) {
    in->program = library;
    in->splice = with;
    in->folds = false;
    inline_mark_nodes(in);
    inline_body(in, &f);
  }
  in->program = program;
  in->splice = NULL;
  in->folds = folds;
  in->has = has;
  vyre__arena_rewind(&in->scratch, mark);
}

/* Returns the index of a word of an element: dimensions [length, words]. */
static vyre__id word_index(inliner *in, const sum_place *place, vyre__id word) {
  vyre__ir_builder *m = &in->builder;
  const uint32_t words = vyre__sum_words(in->splice->element);
  const uint32_t mark = vyre__stack_mark(m);
  vyre__push(m, inline_again(in, place->index));
  vyre__push(m, vyre__ir_build_len(m, place->buffer));
  vyre__push(m, number(in, words));
  vyre__push(m, word);
  vyre__push(m, number(in, words));
  vyre__push(m, number(in, 1));
  vyre__push(m, number(in, 0));
  return vyre__ir_build_at(m, mark);
}

enum { BINS, VALUE, MORE }; /* buffers of the library's kernels */

static const sum_place *place_of(const inliner *in, uint32_t buffer) {
  return buffer == MORE ? &in->splice->more : &in->splice->bins;
}

/* Returns true for the words of one sum in an array of the invocation. */
static bool is_words(const inliner *in, const sum_place *place) {
  return place->buffer >= in->kernel->buffer_count - in->kernel->hidden_count;
}

vyre__id inline_spliced_load(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  if (node->a == VALUE) {
    return vyre__ir_build_local(&in->builder, in->splice->value);
  }
  const sum_place *place = place_of(in, node->a);
  if (is_words(in, place)) {
    return vyre__ir_build_load(&in->builder, place->buffer,
                               inline_value(in, f, node->b));
  }
  const vyre__id at = word_index(in, place, inline_value(in, f, node->b));
  return vyre__ir_build_scalar_load(&in->builder, place->buffer, at,
                                    VYRE_ELEMENT_I64);
}

void inline_spliced_store(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  vyre__ir_builder *m = &in->builder;
  if (node->a == VALUE) {
    inline_assign(in, in->splice->value, inline_value(in, f, node->c));
    return;
  }
  const sum_place *place = place_of(in, node->a);
  if (is_words(in, place)) {
    const vyre__id word = inline_value(in, f, node->b);
    vyre__statement(m, vyre__ir_build_store(m, place->buffer, word,
                                            inline_value(in, f, node->c)));
    return;
  }
  const vyre__id at = word_index(in, place, inline_value(in, f, node->b));
  const vyre__id value = inline_value(in, f, node->c);
  vyre__statement(m, vyre__ir_build_scalar_store(m, place->buffer, at,
                                                 VYRE_ELEMENT_I64, value));
}

vyre__id inline_spliced_atomic(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  const sum_place *place = place_of(in, node->a);
  const vyre__id at = word_index(in, place, inline_value(in, f, node->b));
  const vyre__id value = inline_value(in, f, node->c);
  return vyre__ir_build_scalar_atomic(&in->builder, (vyre__op)node->op,
                                      place->buffer, at, VYRE_ELEMENT_I64,
                                      value, 0);
}

/* --- accesses --------------------------------------------------------------*/

static sum_splice begin(inliner *in, frame *f, uint32_t buffer,
                        vyre__id index) {
  return (sum_splice){
      .element = in->program->buffers[buffer].element,
      .bins = {buffer, inline_stable(in, inline_value(in, f, index))}};
}

static vyre__id round_sum(inliner *in, sum_splice *with) {
  vyre__ir_builder *m = &in->builder;
  with->value = inline_local(in, "sum", true,
                             vyre__ir_build_literal(m, VYRE_TYPE_U64, 0));
  splice(in, with, VYRE__SUM_LOAD);
  const vyre__id bits = vyre__ir_build_local(m, with->value);
  if (with->element == VYRE_ELEMENT_SUM_F64) {
    return vyre__ir_build_bitcast(m, VYRE_TYPE_F64, bits);
  }
  return vyre__ir_build_bitcast(m, VYRE_TYPE_F32,
                                vyre__ir_build_cast(m, VYRE_TYPE_U32, bits));
}

vyre__id inline_sum_load(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  sum_splice with = begin(in, f, node->a, node->b);
  inline_at(in, id);
  return round_sum(in, &with);
}

vyre__id inline_round_sum(inliner *in, uint32_t buffer, unsigned element) {
  sum_splice with = {.element = element, .bins = {buffer, number(in, 0)}};
  return round_sum(in, &with);
}

void inline_clear_sum(inliner *in, uint32_t buffer, unsigned element) {
  sum_splice with = {.element = element, .bins = {buffer, number(in, 0)}};
  with.value = inline_local(
      in, "sum", false, vyre__ir_build_literal(&in->builder, VYRE_TYPE_U64, 0));
  splice(in, &with, VYRE__SUM_STORE);
}

/* Emits code that stores a float into an exact sum. */
static void set_sum(inliner *in, sum_splice *with, vyre__id value) {
  vyre__ir_builder *m = &in->builder;
  vyre__id bits;
  if (with->element == VYRE_ELEMENT_SUM_F64) {
    bits = vyre__ir_build_bitcast(m, VYRE_TYPE_U64, value);
  } else {
    bits = vyre__ir_build_bitcast(m, VYRE_TYPE_U32, value);
    bits = vyre__ir_build_cast(m, VYRE_TYPE_U64, bits);
  }
  with->value = inline_local(in, "sum", false, bits);
  splice(in, with, VYRE__SUM_STORE);
}

void inline_set_sum(inliner *in, uint32_t buffer, unsigned element,
                    vyre__id value) {
  sum_splice with = {.element = element, .bins = {buffer, number(in, 0)}};
  set_sum(in, &with, value);
}

void inline_sum_store(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  sum_splice with = begin(in, f, node->a, node->b);
  const vyre__id value = inline_value(in, f, node->c);
  inline_at(in, id);
  set_sum(in, &with, value);
}

void inline_sum_merge(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  const vyre__node *from = inline_node(in, node->c);
  sum_splice with = begin(in, f, node->a, node->b);
  const vyre__id index = inline_value(in, f, from->b);
  with.more = (sum_place){from->a, inline_stable(in, index)};
  inline_at(in, id);
  splice(in, &with, VYRE__SUM_MERGE);
}

/* --- the end of a kernel ---------------------------------------------------*/

bool inline_changes_sums(const inliner *in) {
  for (uint32_t i = 0; i < in->program->buffer_count; i++) {
    if (vyre__changes_sums(in->program, i)) return true;
  }
  return false;
}

static vyre__id local_of(inliner *in, uint32_t local) {
  return vyre__ir_build_local(&in->builder, local);
}

/* Adds a loop over the elements of this invocation. Those with an id of 0 in y
 * and z share the elements; each has a range of `share` of them. */
static void settle_buffer(inliner *in, uint32_t buffer) {
  vyre__ir_builder *m = &in->builder;
  vyre__id n = vyre__ir_build_binary(
      m, VYRE__OP_SUB, vyre__ir_build_len(m, buffer), number(in, 1));
  vyre__id all = vyre__ir_build_binary(
      m, VYRE__OP_MUL, vyre__ir_build_axis(m, VYRE__OP_GRID_SIZE, 0),
      vyre__ir_build_axis(m, VYRE__OP_WORKGROUP_SIZE, 0));
  vyre__id share = vyre__ir_build_binary(
      m, VYRE__OP_ADD, vyre__ir_build_binary(m, VYRE__OP_DIV, n, all),
      number(in, 1));
  const uint32_t shared = inline_local(in, "share", false, share);
  const uint32_t first = inline_local(
      in, "first", false,
      vyre__ir_build_binary(m, VYRE__OP_MUL,
                            vyre__ir_build_axis(m, VYRE__OP_GLOBAL_ID, 0),
                            local_of(in, shared)));
  vyre__id end = vyre__ir_build_binary(m, VYRE__OP_ADD, local_of(in, first),
                                       local_of(in, shared));
  end = vyre__ir_build_binary(m, VYRE__OP_MIN, end,
                              vyre__ir_build_len(m, buffer));
  vyre__for loop;
  vyre__for_begin(m, &loop, "sum", 3, VYRE_TYPE_U32, VYRE__LOOP_LT,
                  local_of(in, first), end, number(in, 1));
  vyre__mark mark = vyre__block_begin(m);
  const sum_splice with = {.element = in->program->buffers[buffer].element,
                           .bins = {buffer, local_of(in, loop.local)}};
  splice(in, &with, VYRE__SUM_SETTLE);
  vyre__statement(m, vyre__for_end(m, &loop, vyre__block_end(m, mark)));
}

void inline_settle_sums(inliner *in) {
  vyre__ir_builder *m = &in->builder;
  vyre__statement(m, vyre__ir_build_simple(m, VYRE__OP_GRID_BARRIER));
  vyre__id row = vyre__ir_build_binary(
      m, VYRE__OP_OR, vyre__ir_build_axis(m, VYRE__OP_GLOBAL_ID, 1),
      vyre__ir_build_axis(m, VYRE__OP_GLOBAL_ID, 2));
  row = vyre__ir_build_binary(m, VYRE__OP_EQ, row, number(in, 0));
  vyre__mark mark = vyre__block_begin(m);
  for (uint32_t i = 0; i < in->program->buffer_count; i++) {
    if (vyre__changes_sums(in->program, i)) settle_buffer(in, i);
  }
  vyre__id then = vyre__block_end(m, mark);
  vyre__statement(m, vyre__ir_build_if(m, row, then, 0));
}
