/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inlining of arrays, tables and memory parameters, and values that are known
 * while code is copied. */
#include <string.h>

#include "analyze/inline/inliner.h"
#include "analyze/walk.h"
#include "base/memory.h"
#include "ir/scalar.h"

enum {
  MAX_SCALARS = 128, /* elements of an array that becomes variables */
  MAX_STORES = 16,   /* elements that are set without a loop */
};

/* --- tables of the inliner -------------------------------------------------*/

/* Returns the effects of a node of function @p f, and of those below it. */
static uint8_t effects_of(const inliner *in, uint32_t f, vyre__id id) {
  const vyre_program *p = in->program;
  const vyre__node *node = &p->nodes[id];
  const uint8_t flags = vyre__ops[node->op].flags;
  const uint8_t orders = VYRE__OPF_WRITES | VYRE__OPF_ATOMICS |
                         VYRE__OPF_BARRIER | VYRE__OPF_GRID_BARRIER |
                         VYRE__OPF_PRINTS | VYRE__OPF_PUSHES;
  uint8_t has = 0;
  if (flags & VYRE__OPF_GRID_BARRIER) has |= INLINE_GRID;
  if (flags & VYRE__OPF_READS) has |= INLINE_EFFECT;
  if (flags & orders) has |= INLINE_EFFECT | INLINE_ORDERED;
  if (node->op == VYRE__OP_ASSIGN &&
      p->functions[f].locals[node->a].is_memory) {
    has |= INLINE_EFFECT | INLINE_ORDERED;
  }
  if (node->op == VYRE__OP_CALL) has |= in->effects[node->a];
  const uint32_t count = vyre__child_count(p, id);
  for (uint32_t i = 0; i < count; i++)
    has |= effects_of(in, f, vyre__child(p, id, i));
  return has;
}

/* Finds the effects of functions. A function may come before those it calls, so
 * this repeats until nothing changes. */
static void find_effects(inliner *in) {
  const vyre_program *p = in->program;
  bool changes = p->function_count > 1;
  while (changes) {
    changes = false;
    for (uint32_t f = 1; f < p->function_count; f++) {
      const uint8_t has =
          in->effects[f] | effects_of(in, f, p->functions[f].body);
      changes |= has != in->effects[f];
      in->effects[f] = has;
    }
  }
}

bool inline_prepare_memory(inliner *in) {
  const vyre_program *p = in->program;
  uint32_t locals = 0;
  in->effects =
      vyre__arena_filled(&in->scratch, p->function_count, sizeof(uint8_t), 0);
  in->local_base = vyre__arena_array(&in->scratch, p->function_count,
                                     sizeof *in->local_base);
  in->tables = vyre__arena_filled(&in->scratch, p->table_count,
                                  sizeof *in->tables, 0xFF);
  if (!in->effects || !in->local_base || !in->tables) return false;
  for (uint32_t i = 0; i < p->function_count; i++) {
    in->local_base[i] = locals;
    locals += p->functions[i].local_count;
  }
  if (!in->stays) {
    in->stays = vyre__arena_filled(&in->lasting, locals, sizeof(uint8_t), 0);
  }
  if (p->is_rich) find_effects(in);
  for (uint32_t i = 1; i < p->node_count && in->keeps_arrays; i++) {
    in->has_grid |= p->nodes[i].op == VYRE__OP_GRID_BARRIER;
  }
  return in->stays != NULL;
}

static uint32_t key_of(const inliner *in, const frame *f, uint32_t local) {
  return in->local_base[f->function - in->program->functions] + local;
}

/* Doubles an array of the inliner if it is full. */
static bool make_room(inliner *in, void *array, uint32_t count,
                      uint32_t *capacity, size_t size) {
  void **at = array;
  if (count < *capacity) return true;
  const uint32_t more = *capacity ? 2 * *capacity : 16;
  void *bigger = vyre__arena_array(&in->lasting, more, size);
  if (!bigger) {
    in->no_memory = true;
    return false;
  }
  if (count > 0) memcpy(bigger, *at, count * size);
  *at = bigger;
  *capacity = more;
  return true;
}

/* --- hidden buffers --------------------------------------------------------*/

static vyre_element element_of(unsigned type) {
  switch (type) {
    case VYRE_TYPE_BOOL:
      return VYRE_ELEMENT_BOOL;
    case VYRE_TYPE_I32:
      return VYRE_ELEMENT_I32;
    case VYRE_TYPE_U64:
      return VYRE_ELEMENT_U64;
    case VYRE_TYPE_I64:
      return VYRE_ELEMENT_I64;
    case VYRE_TYPE_F32:
      return VYRE_ELEMENT_F32;
    case VYRE_TYPE_F64:
      return VYRE_ELEMENT_F64;
    default:
      return VYRE_ELEMENT_U32;
  }
}

/* Adds a hidden buffer and returns its number. */
static uint32_t add_hidden(inliner *in, vyre_buffer_decl decl,
                           const vyre__table *table) {
  vyre__kernel *kernel = in->kernel;
  const uint32_t count = kernel->hidden_count;
  const uint32_t all = kernel->buffer_count;
  if (count == in->hidden_capacity) {
    const uint32_t more = count ? 2 * count : 8;
    vyre_buffer_decl *buffers =
        vyre__arena_array(&in->lasting, (size_t)all + more, sizeof *buffers);
    vyre__hidden *hidden =
        vyre__arena_array(&in->lasting, more, sizeof *hidden);
    hidden_array *arrays =
        vyre__arena_array(&in->lasting, more, sizeof *arrays);
    uint32_t *open = vyre__arena_array(&in->lasting, more, sizeof *open);
    vyre__source_loc *places =
        vyre__arena_filled(&in->lasting, (size_t)all + more, sizeof *places, 0);
    if (!buffers || !hidden || !arrays || !open || !places) {
      in->no_memory = true;
      return 0;
    }
    if (all > 0) memcpy(buffers, kernel->buffers, all * sizeof *buffers);
    if (count > 0) {
      memcpy(hidden, kernel->hidden, count * sizeof *hidden);
      memcpy(arrays, in->slots, count * sizeof *arrays);
      memcpy(open, in->open_arrays, in->open_count * sizeof *open);
    }
    if (kernel->buffer_places) {
      memcpy(places, kernel->buffer_places, all * sizeof *places);
      kernel->buffer_places = places;
    }
    kernel->buffers = in->buffers = buffers;
    kernel->hidden = in->privates = hidden;
    in->slots = arrays;
    in->open_arrays = open;
    in->hidden_capacity = more;
  }
  in->buffers[all] = decl;
  in->privates[count] = (vyre__hidden){.table = table};
  in->slots[count] = (hidden_array){
      .length = decl.count, .element = (uint8_t)decl.element, .is_used = true};
  kernel->buffer_count++;
  kernel->hidden_count++;
  return all;
}

/* Returns a hidden buffer for an array until its block ends. */
static uint32_t open_array(inliner *in, const vyre__local *local) {
  const vyre_element element = element_of(vyre__component_type(local->type));
  const uint32_t length = local->length * vyre__vector_length(local->type);
  const uint32_t first = in->kernel->buffer_count - in->kernel->hidden_count;
  uint32_t found = VYRE_NO_INDEX;
  for (uint32_t i = 0; i < in->kernel->hidden_count; i++) {
    const hidden_array *it = &in->slots[i];
    if (!in->privates[i].table && !it->is_used && it->element == element &&
        it->length == length) {
      found = i;
      break;
    }
  }
  if (found == VYRE_NO_INDEX) {
    const uint32_t buffer = add_hidden(
        in,
        (vyre_buffer_decl){.name = *local->name ? local->name : "array",
                           .kind = VYRE_MEMORY_SHARED,
                           .access = VYRE_ACCESS_WORKGROUP,
                           .element = element,
                           .count = length},
        NULL);
    if (in->no_memory) return 0;
    found = buffer - first;
  }
  in->slots[found].is_used = true;
  in->open_arrays[in->open_count++] = found;
  return first + found;
}

uint32_t inline_open_array(inliner *in, vyre_type type, uint32_t length) {
  const vyre__local array = {
      .name = "words", .type = (uint8_t)type, .length = length};
  return open_array(in, &array);
}

void inline_close_arrays(inliner *in, uint32_t mark) {
  while (in->open_count > mark) {
    in->slots[in->open_arrays[--in->open_count]].is_used = false;
  }
}

/* Returns the hidden buffer of a table. */
static uint32_t table_buffer(inliner *in, uint32_t index) {
  if (in->tables[index] == VYRE_NO_INDEX) {
    const vyre__table *table = &in->program->tables[index];
    in->tables[index] =
        add_hidden(in,
                   (vyre_buffer_decl){.name = table->name,
                                      .kind = VYRE_MEMORY_GLOBAL,
                                      .access = VYRE_ACCESS_READ,
                                      .element = element_of(table->type),
                                      .count = table->length},
                   table);
  }
  return in->tables[index];
}

uint32_t inline_ref(inliner *in, const frame *f, uint32_t memory) {
  const uint32_t index = memory & VYRE__MEMORY_INDEX;
  if (memory & VYRE__MEMORY_TABLE) return table_buffer(in, index);
  return memory & VYRE__MEMORY_LOCAL ? f->locals[index] : memory;
}

static bool is_hidden(const inliner *in, uint32_t buffer) {
  return buffer >= in->kernel->buffer_count - in->kernel->hidden_count;
}

static const vyre__table *table_of(const inliner *in, uint32_t ref) {
  const vyre__kernel *k = in->kernel;
  if (ref >= INLINE_SCALARS || !is_hidden(in, ref)) return NULL;
  return k->hidden[ref - (k->buffer_count - k->hidden_count)].table;
}

/* --- known values ----------------------------------------------------------*/

bool inline_literal(const inliner *in, vyre__id id, uint64_t *bits) {
  const vyre__node *node = &in->builder.nodes[id];
  if (id == 0 || node->op != VYRE__OP_LITERAL) return false;
  *bits = vyre__literal(node);
  return true;
}

vyre__id inline_fold(inliner *in, vyre__id id) {
  const vyre__node node = in->builder.nodes[id];
  const vyre__op_info *info = &vyre__ops[node.op];
  const vyre__id operands[3] = {node.a, node.b, node.c};
  uint64_t values[3] = {0}, bits;
  unsigned count = 3;
  if (info->form == VYRE__FORM_UNARY) count = 1;
  if (info->form == VYRE__FORM_BINARY) count = 2;
  if (id == 0 || info->flags || info->rule == VYRE__RULE_NONE ||
      (count == 3 && info->form != VYRE__FORM_TERNARY)) {
    return id;
  }
  if (node.op == VYRE__OP_COND && inline_literal(in, node.a, &bits)) {
    return bits ? node.b : node.c;
  }
  for (unsigned i = 0; i < count; i++) {
    if (!inline_literal(in, operands[i], &values[i])) return id;
  }
  const vyre_type from = (vyre_type)in->builder.nodes[node.a].type;
  if (!vyre__scalar_eval((vyre__op)node.op, from, (vyre_type)node.type, values,
                         &bits)) {
    return id;
  }
  return vyre__ir_build_literal(&in->builder, (vyre_type)node.type, bits);
}

void inline_know(inliner *in, frame *f, uint32_t local, vyre__id value) {
  uint64_t bits;
  if (!in->folds) return;
  f->known[local] = 0;
  if (!inline_literal(in, value, &bits)) return;
  if (!make_room(in, (void *)&in->values, in->value_count, &in->value_capacity,
                 sizeof *in->values)) {
    return;
  }
  in->values[in->value_count++] = bits;
  f->known[local] = in->value_count;
}

void inline_forget_assigned(const inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  if (!in->folds || !vyre__is_statement(node)) return;
  if (node->op == VYRE__OP_ASSIGN) {
    f->known[node->a] = 0;
    return;
  }
  const uint32_t count = vyre__child_count(in->program, id);
  for (uint32_t i = 0; i < count; i++) {
    inline_forget_assigned(in, f, vyre__child(in->program, id, i));
  }
}

/* Returns true if an array that is declared now may live across a grid
 * barrier. */
static bool is_kept(const inliner *in, const frame *f) {
  return in->has_grid && (in->has[f->block] & INLINE_GRID);
}

/* Returns true if memory is an array that may become variables. */
static bool may_be_scalars(const inliner *in, const frame *f, uint32_t memory) {
  const uint32_t local = memory & VYRE__MEMORY_INDEX;
  if (!(memory & VYRE__MEMORY_LOCAL)) return false;
  if (local < f->function->parameter_count) {
    return f->locals[local] >= INLINE_SCALARS;
  }
  const vyre__local *it = &f->function->locals[local];
  return it->length * vyre__vector_length(it->type) <= MAX_SCALARS &&
         !in->stays[key_of(in, f, local)];
}

static bool is_literal_index(const inliner *in, vyre__id index) {
  const vyre__node *node = inline_node(in, index);
  if (node->op != VYRE__OP_INDEX) return node->op == VYRE__OP_LITERAL;
  for (uint32_t i = 0; i < node->b; i++) {
    const vyre__id own = in->program->lists[node->a + i];
    if (inline_node(in, own)->op != VYRE__OP_LITERAL) return false;
  }
  return true;
}

bool inline_wants_unrolling(const inliner *in, const frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  const unsigned form = vyre__ops[node->op].form;
  if (node->op == VYRE__OP_MEMORY) return may_be_scalars(in, f, node->a);
  if ((form == VYRE__FORM_LOAD || form == VYRE__FORM_STORE ||
       form == VYRE__FORM_ATOMIC || form == VYRE__FORM_ATOMIC2) &&
      may_be_scalars(in, f, node->a) && !is_literal_index(in, node->b)) {
    return true;
  }
  const uint32_t count = vyre__child_count(in->program, id);
  for (uint32_t i = 0; i < count; i++) {
    const vyre__id child = vyre__child(in->program, id, i);
    if (inline_wants_unrolling(in, f, child)) return true;
  }
  return false;
}

/* --- elements --------------------------------------------------------------*/

static vyre__id number(inliner *in, uint32_t value) {
  return vyre__ir_build_literal(&in->builder, VYRE_TYPE_U32, value);
}

/* Returns an index as an unsigned value that can be copied: negative ones are
 * above every length. */
static vyre__id unsigned_index(inliner *in, vyre__id index) {
  vyre__ir_builder *m = &in->builder;
  const unsigned type = vyre__type_of(m, index);
  if (type == VYRE_TYPE_I32) {
    index = vyre__ir_build_cast(m, VYRE_TYPE_U32, index);
  } else if (type == VYRE_TYPE_I64) {
    index = vyre__ir_build_cast(m, VYRE_TYPE_U64, index);
  }
  return inline_stable(in, index);
}

static vyre__id compare(inliner *in, vyre__op op, vyre__id index,
                        uint32_t with) {
  vyre__ir_builder *m = &in->builder;
  const vyre_type type = (vyre_type)vyre__type_of(m, index);
  return vyre__ir_build_binary(m, op, inline_again(in, index),
                               vyre__ir_build_literal(m, type, with));
}

/* Returns the variable of [first, end) that the index selects, by halves. */
static vyre__id select_variable(inliner *in, const scalar_array *array,
                                vyre__id index, uint32_t first, uint32_t end) {
  vyre__ir_builder *m = &in->builder;
  if (end - first == 1) return vyre__ir_build_local(m, array->first + first);
  const uint32_t middle = first + (end - first) / 2;
  const vyre__id low = select_variable(in, array, index, first, middle);
  const vyre__id high = select_variable(in, array, index, middle, end);
  return vyre__ir_build_ternary(
      m, VYRE__OP_SELECT, compare(in, VYRE__OP_LT, index, middle), low, high);
}

static vyre__id load_any(inliner *in, const scalar_array *array,
                         vyre__id index) {
  vyre__ir_builder *m = &in->builder;
  const vyre__id at = unsigned_index(in, index);
  const vyre__id value = select_variable(in, array, at, 0, array->length);
  return vyre__ir_build_ternary(
      m, VYRE__OP_SELECT, compare(in, VYRE__OP_LT, at, array->length), value,
      vyre__ir_build_literal(m, (vyre_type)array->type, 0));
}

static void store_any(inliner *in, const scalar_array *array, vyre__id index,
                      vyre__id value) {
  vyre__ir_builder *m = &in->builder;
  const vyre__id at = unsigned_index(in, index);
  if (m->nodes[value].op != VYRE__OP_LITERAL) value = inline_let(in, value);
  for (uint32_t i = 0; i < array->length; i++) {
    inline_assign(in, array->first + i,
                  vyre__ir_build_ternary(
                      m, VYRE__OP_SELECT, compare(in, VYRE__OP_EQ, at, i),
                      inline_again(in, value),
                      vyre__ir_build_local(m, array->first + i)));
  }
}

/* Returns the variable of an element of a scalar array, or VYRE_NO_INDEX if it
 * is out of bounds. If the index is not known, the array stays in memory. */
static uint32_t variable_of(inliner *in, uint32_t ref, vyre__id index) {
  const scalar_array *array = &in->scalars[ref - INLINE_SCALARS];
  uint64_t bits;
  if (!inline_literal(in, index, &bits)) {
    in->stays[array->key] = 1;
    in->is_again = true;
    return VYRE_NO_INDEX;
  }
  /* A negative i32 has bits above every length. */
  return bits < array->length ? array->first + (uint32_t)bits : VYRE_NO_INDEX;
}

static vyre_type type_of_elements(const inliner *in, uint32_t ref) {
  if (ref >= INLINE_SCALARS) {
    return (vyre_type)in->scalars[ref - INLINE_SCALARS].type;
  }
  return vyre__element_type(in->kernel->buffers[ref].element);
}

static bool needs_selection(const inliner *in, uint32_t ref, vyre__id index) {
  uint64_t bits;
  return in->scalars[ref - INLINE_SCALARS].is_kept &&
         !inline_literal(in, index, &bits);
}

static vyre__id load(inliner *in, uint32_t ref, vyre__id index) {
  vyre__ir_builder *m = &in->builder;
  const vyre__table *table = table_of(in, ref);
  const vyre_type type = type_of_elements(in, ref);
  uint64_t bits;
  if (ref >= INLINE_SCALARS) {
    if (needs_selection(in, ref, index)) {
      const scalar_array array = in->scalars[ref - INLINE_SCALARS];
      return load_any(in, &array, index);
    }
    const uint32_t variable = variable_of(in, ref, index);
    if (variable != VYRE_NO_INDEX) return vyre__ir_build_local(m, variable);
    return vyre__ir_build_literal(m, type, 0);
  }
  if (table && in->folds && inline_literal(in, index, &bits)) {
    return vyre__ir_build_literal(
        m, type, bits < table->length ? table->values[bits] : 0);
  }
  if (m->nodes[index].op == VYRE__OP_AT) {
    return vyre__ir_build_scalar_load(m, ref, index,
                                      in->kernel->buffers[ref].element);
  }
  return vyre__ir_build_load(m, ref, index);
}

static void store(inliner *in, uint32_t ref, vyre__id index, vyre__id value) {
  vyre__ir_builder *m = &in->builder;
  if (ref < INLINE_SCALARS && m->nodes[index].op == VYRE__OP_AT) {
    const unsigned element = in->kernel->buffers[ref].element;
    vyre__statement(m,
                    vyre__ir_build_scalar_store(m, ref, index, element, value));
    return;
  }
  if (ref < INLINE_SCALARS) {
    vyre__statement(m, vyre__ir_build_store(m, ref, index, value));
    return;
  }
  if (needs_selection(in, ref, index)) {
    const scalar_array array = in->scalars[ref - INLINE_SCALARS];
    store_any(in, &array, index, value);
    return;
  }
  const uint32_t variable = variable_of(in, ref, index);
  if (variable != VYRE_NO_INDEX) {
    inline_assign(in, variable, value);
  } else if (m->nodes[value].op != VYRE__OP_LITERAL) {
    (void)inline_let(in, value); /* it may have an effect */
  }
}

vyre__id inline_load(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  const vyre__id index = inline_operand(in, f, id, 0);
  const uint32_t ref = inline_ref(in, f, node->a);
  inline_at(in, id);
  return load(in, ref, index);
}

void inline_set_element(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  const vyre__id index = inline_operand(in, f, id, 0);
  const vyre__id value = inline_operand(in, f, id, 1);
  const uint32_t ref = inline_ref(in, f, node->a);
  inline_at(in, id);
  store(in, ref, index, value);
}

static uint32_t length_of(const inliner *in, uint32_t ref) {
  if (ref >= INLINE_SCALARS) return in->scalars[ref - INLINE_SCALARS].length;
  return is_hidden(in, ref) ? in->kernel->buffers[ref].count : 0;
}

bool inline_is_array(const inliner *in, uint32_t ref) {
  return ref >= INLINE_SCALARS || is_hidden(in, ref);
}

uint32_t inline_array_length(const inliner *in, uint32_t ref) {
  return length_of(in, ref);
}

vyre__id inline_array_load(inliner *in, uint32_t ref, vyre__id index) {
  return load(in, ref, index);
}

void inline_array_store(inliner *in, uint32_t ref, vyre__id index,
                        vyre__id value) {
  store(in, ref, index, value);
}

/* Returns the sum of literal indices, or the length if one is outside.
 * VYRE_NO_INDEX: one is not a literal. */
static uint32_t known_index(const inliner *in, uint32_t ref,
                            const vyre__id *entries, uint32_t count) {
  uint64_t sum = 0, index, extent = 0, stride = 0;
  bool is_inside = true;
  (void)inline_literal(in, entries[count - 1], &sum);
  for (uint32_t i = 0; i + 1 < count; i += VYRE__AT_STEP) {
    if (!inline_literal(in, entries[i], &index)) return VYRE_NO_INDEX;
    (void)inline_literal(in, entries[i + 1], &extent);
    (void)inline_literal(in, entries[i + 2], &stride);
    is_inside &= index < extent;
    sum += is_inside ? index * stride : 0;
  }
  return is_inside ? (uint32_t)sum : length_of(in, ref);
}

/* Builds the sum of indices of an array that is variables: its length if one is
 * outside. */
static vyre__id selected_index(inliner *in, uint32_t ref,
                               const vyre__id *entries, uint32_t count) {
  vyre__ir_builder *m = &in->builder;
  vyre__id sum = entries[count - 1], inside = 0;
  uint64_t extent = 0;
  for (uint32_t i = 0; i + 1 < count; i += VYRE__AT_STEP) {
    const vyre__id at = unsigned_index(in, entries[i]);
    (void)inline_literal(in, entries[i + 1], &extent);
    const vyre__id test = compare(in, VYRE__OP_LT, at, (uint32_t)extent);
    inside =
        inside ? vyre__ir_build_binary(m, VYRE__OP_AND, inside, test) : test;
    vyre__id own = inline_again(in, at);
    if (vyre__type_of(m, own) != VYRE_TYPE_U32) {
      own = vyre__ir_build_cast(m, VYRE_TYPE_U32, own);
    }
    own = vyre__ir_build_binary(m, VYRE__OP_MUL, own, entries[i + 2]);
    sum = vyre__ir_build_binary(m, VYRE__OP_ADD, sum, own);
  }
  return inline_stable(in,
                       vyre__ir_build_ternary(m, VYRE__OP_SELECT, inside, sum,
                                              number(in, length_of(in, ref))));
}

vyre__id inline_array_index(inliner *in, uint32_t ref, uint32_t mark,
                            bool is_stable) {
  vyre__ir_builder *m = &in->builder;
  vyre__id entries[VYRE__AT_STEP * (VYRE_MAX_DIMENSIONS + 1) + 1] = {0};
  const uint32_t count = (uint32_t)m->stack_count - mark;
  memcpy(entries, m->stack + mark, count * sizeof *entries);
  const uint32_t known = known_index(in, ref, entries, count);
  if (known == VYRE_NO_INDEX && ref < INLINE_SCALARS && !is_stable) {
    return vyre__ir_build_at(m, mark);
  }
  vyre__stack_drop(m, mark);
  if (known != VYRE_NO_INDEX) return number(in, known);
  if (ref < INLINE_SCALARS || in->scalars[ref - INLINE_SCALARS].is_kept) {
    return selected_index(in, ref, entries, count);
  }
  uint64_t bits;
  uint32_t at = 0;
  while (inline_literal(in, entries[at], &bits)) at += VYRE__AT_STEP;
  return entries[at]; /* the array stays in memory */
}

vyre__id inline_len(inliner *in, const frame *f, uint32_t memory) {
  const uint32_t ref = inline_ref(in, f, memory);
  const uint32_t length = length_of(in, ref);
  const uint32_t own = memory & VYRE__MEMORY_INDEX;
  const uint32_t scalars =
      memory & VYRE__MEMORY_LOCAL
          ? vyre__vector_length(f->function->locals[own].type)
          : 1;
  if (length > 0) return number(in, length / scalars);
  return vyre__ir_build_len(&in->builder, ref);
}

/* Returns the new value of an element after an atomic. */
static vyre__id combine(inliner *in, vyre__op op, vyre__id old,
                        const vyre__id values[2]) {
  static const uint8_t pure[VYRE__OP_COUNT] = {
      [VYRE__OP_ATOMIC_ADD] = VYRE__OP_ADD,
      [VYRE__OP_ATOMIC_MIN] = VYRE__OP_MIN,
      [VYRE__OP_ATOMIC_MAX] = VYRE__OP_MAX,
      [VYRE__OP_ATOMIC_AND] = VYRE__OP_AND,
      [VYRE__OP_ATOMIC_OR] = VYRE__OP_OR,
      [VYRE__OP_ATOMIC_XOR] = VYRE__OP_XOR};
  vyre__ir_builder *m = &in->builder;
  if (op == VYRE__OP_ATOMIC_EXCHANGE) return values[0];
  if (op == VYRE__OP_ATOMIC_CAS) {
    return vyre__ir_build_ternary(
        m, VYRE__OP_SELECT,
        vyre__ir_build_binary(m, VYRE__OP_EQ, old, values[0]), values[1],
        inline_again(in, old));
  }
  return vyre__ir_build_binary(m, (vyre__op)pure[op], old, values[0]);
}

/* An array belongs to one invocation: an atomic is a load and a store. */
vyre__id inline_array_atomic(inliner *in, vyre__op op, uint32_t ref,
                             vyre__id index, const vyre__id operands[2]) {
  vyre__id values[2];
  index = inline_stable(in, index);
  for (int i = 0; i < 2; i++) values[i] = inline_stable(in, operands[i]);
  const vyre__id old = inline_let(in, load(in, ref, index));
  store(in, ref, inline_again(in, index),
        combine(in, op, inline_again(in, old), values));
  return inline_again(in, old);
}

vyre__id inline_atomic(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  const vyre__node *node = inline_node(in, id);
  const vyre__op op = (vyre__op)node->op;
  const bool is_cas = op == VYRE__OP_ATOMIC_CAS;
  const vyre__id index = inline_operand(in, f, id, 0);
  const vyre__id values[2] = {inline_operand(in, f, id, 1),
                              is_cas ? inline_operand(in, f, id, 2) : 0};
  const uint32_t ref = inline_ref(in, f, node->a);
  inline_at(in, id);
  if (ref < INLINE_SCALARS && !is_hidden(in, ref)) {
    return is_cas
               ? vyre__ir_build_atomic_cas(m, ref, index, values[0], values[1])
               : vyre__ir_build_atomic(m, op, ref, index, values[0]);
  }
  return inline_array_atomic(in, op, ref, index, values);
}

/* --- whole arrays ----------------------------------------------------------*/

/* Copies `from` to `to`, element by element; VYRE_NO_INDEX: zeros. */
static void copy_element(inliner *in, uint32_t to, uint32_t from,
                         vyre__id index) {
  vyre__ir_builder *m = &in->builder;
  const vyre__id value =
      from == VYRE_NO_INDEX
          ? vyre__ir_build_literal(m, type_of_elements(in, to), 0)
          : load(in, from, inline_again(in, index));
  store(in, to, index, value);
}

static void copy_elements(inliner *in, uint32_t to, uint32_t from) {
  vyre__ir_builder *m = &in->builder;
  const uint32_t length = length_of(in, to);
  const bool is_known =
      to >= INLINE_SCALARS || (from != VYRE_NO_INDEX && from >= INLINE_SCALARS);
  if (length <= MAX_STORES || is_known) {
    for (uint32_t i = 0; i < length; i++) {
      copy_element(in, to, from, number(in, i));
    }
    return;
  }
  vyre__for loop;
  vyre__for_begin(m, &loop, "i", 1, VYRE_TYPE_U32, VYRE__LOOP_LT, number(in, 0),
                  number(in, length), number(in, 1));
  vyre__mark mark = vyre__block_begin(m);
  copy_element(in, to, from, vyre__ir_build_local(m, loop.local));
  const vyre__id body = vyre__block_end(m, mark);
  const vyre__id made = vyre__for_end(m, &loop, body);
  if (made) m->nodes[made].c = VYRE__FOR_ONCE;
  vyre__statement(m, made);
}

/* Returns the number of scalars of an element of an ARRAY. */
static uint32_t scalars_of_list(const inliner *in, vyre__id list) {
  const vyre__id first = vyre__child(in->program, list, 0);
  return vyre__vector_length(inline_node(in, first)->type);
}

/* Copies the values of an ARRAY, scalar by scalar. They are stored in locals if @p store_all. */
static vyre__id *copy_values(inliner *in, frame *f, vyre__id value,
                             bool store_all) {
  const uint32_t count = vyre__child_count(in->program, value);
  const uint32_t scalars = scalars_of_list(in, value);
  vyre__id *ids =
      vyre__arena_filled(&in->scratch, (size_t)count * scalars, sizeof *ids, 0);
  if (!ids) {
    in->no_memory = true;
    return NULL;
  }
  for (uint32_t i = 0; i < count; i++) {
    vyre__id *own = ids + (size_t)i * scalars;
    inline_operand_scalars(in, f, value, i, own);
    for (uint32_t k = 0; k < scalars && store_all; k++) {
      if (in->builder.nodes[own[k]].op == VYRE__OP_LITERAL) continue;
      own[k] = inline_let(in, own[k]);
    }
  }
  return ids;
}

/* Adds the variables of an array. */
static uint32_t make_scalars(inliner *in, frame *f, uint32_t local,
                             const vyre__id *values) {
  const vyre__local *it = &f->function->locals[local];
  const vyre_type type = (vyre_type)vyre__component_type(it->type);
  if (!make_room(in, (void *)&in->scalars, in->scalar_count,
                 &in->scalar_capacity, sizeof *in->scalars)) {
    return INLINE_SCALARS;
  }
  scalar_array *array = &in->scalars[in->scalar_count];
  *array = (scalar_array){.length = it->length * vyre__vector_length(it->type),
                          .type = (uint8_t)type,
                          .is_kept = is_kept(in, f),
                          .key = key_of(in, f, local)};
  for (uint32_t i = 0; i < array->length; i++) {
    const uint32_t variable = inline_local(
        in, it->name, true,
        values ? values[i] : vyre__ir_build_literal(&in->builder, type, 0));
    if (i == 0) array->first = variable;
  }
  return INLINE_SCALARS + in->scalar_count++;
}

void inline_declare_array(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  const vyre__local *local = &f->function->locals[node->a];
  const bool is_list =
      node->b && inline_node(in, node->b)->op == VYRE__OP_ARRAY;
  const uint32_t from = node->b && !is_list
                            ? inline_ref(in, f, inline_node(in, node->b)->a)
                            : VYRE_NO_INDEX;
  const bool is_scalar =
      is_kept(in, f) ||
      (in->folds && may_be_scalars(in, f, VYRE__MEMORY_LOCAL | node->a));
  vyre__arena_mark mark = vyre__arena_here(&in->scratch);
  const vyre__id *values =
      is_list ? copy_values(in, f, node->b, is_scalar) : NULL;
  inline_at(in, id);
  if (!in->no_memory && is_scalar) {
    f->locals[node->a] = make_scalars(in, f, node->a, values);
    if (from != VYRE_NO_INDEX) copy_elements(in, f->locals[node->a], from);
  } else if (!in->no_memory) {
    const uint32_t to = open_array(in, local);
    f->locals[node->a] = to;
    if (in->no_memory) return;
    if (!is_list) copy_elements(in, to, from);
    const uint32_t count = length_of(in, to);
    for (uint32_t i = 0; is_list && i < count; i++) {
      store(in, to, number(in, i), values[i]);
    }
  }
  vyre__arena_rewind(&in->scratch, mark);
}

void inline_assign_array(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  const uint32_t to = f->locals[node->a];
  if (inline_node(in, node->b)->op == VYRE__OP_MEMORY) {
    const uint32_t from = inline_ref(in, f, inline_node(in, node->b)->a);
    inline_at(in, id);
    if (from != to) copy_elements(in, to, from);
    return;
  }
  vyre__arena_mark mark = vyre__arena_here(&in->scratch);
  const vyre__id *values = copy_values(in, f, node->b, true);
  const uint32_t count =
      vyre__child_count(in->program, node->b) * scalars_of_list(in, node->b);
  inline_at(in, id);
  for (uint32_t i = 0; values && i < count; i++) {
    store(in, to, number(in, i), values[i]);
  }
  vyre__arena_rewind(&in->scratch, mark);
}
