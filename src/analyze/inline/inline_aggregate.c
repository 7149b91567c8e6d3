/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inlining replaces aggregates by their scalars. An aggregate local becomes one
 * local for each scalar, a load of an aggregate element the loads of its
 * scalars, and an operation on vectors one operation for each component. A
 * scalar that is used several times is stored in a `let`. */
#include <string.h>

#include "analyze/inline/inliner.h"
#include "analyze/walk.h"
#include "base/memory.h"

enum { MAX_INDEX = 8 }; /* nodes of an index that is copied, not stored */

uint32_t inline_scalars(const inliner *in, unsigned type) {
  const vyre__struct *s = vyre__program_struct(in->program, type);
  return s ? s->scalar_count : vyre__vector_length(type);
}

static vyre_type scalar_type(const inliner *in, unsigned type, uint32_t at) {
  const vyre__struct *s = vyre__program_struct(in->program, type);
  return s ? vyre__element_type((vyre_element)s->scalars[at].element)
           : (vyre_type)vyre__component_type(type);
}

/* Returns the number of the first scalar of a field. */
static uint32_t field_at(const inliner *in, const vyre__node *field) {
  const vyre__struct *s =
      vyre__program_struct(in->program, in->program->nodes[field->a].type);
  return s->firsts[field->aux];
}

static unsigned type_of(const inliner *in, vyre__id id) {
  return inline_node(in, id)->type;
}

/* Returns the number of nodes of a value, up to @p limit. */
static uint32_t size_of(const inliner *in, vyre__id id, uint32_t limit) {
  uint32_t size = 1;
  const uint32_t count = vyre__child_count(in->program, id);
  for (uint32_t i = 0; i < count && size < limit; i++) {
    size += size_of(in, vyre__child(in->program, id, i), limit - size);
  }
  return size;
}

/* Returns true for an index that is copied for each access. */
static bool is_simple(const inliner *in, vyre__id id) {
  return in->has[id] == 0 && size_of(in, id, MAX_INDEX) < MAX_INDEX;
}

/* Returns true if all indices of an access are simple. */
static bool all_simple(const inliner *in, vyre__id index) {
  const vyre__node *node = inline_node(in, index);
  if (node->op != VYRE__OP_INDEX) return is_simple(in, index);
  for (uint32_t i = 0; i < node->b; i++) {
    if (!is_simple(in, in->program->lists[node->a + i])) return false;
  }
  return true;
}

static bool is_leaf(const inliner *in, vyre__id id) {
  const uint8_t op = inline_node(in, id)->op;
  return op == VYRE__OP_LITERAL || op == VYRE__OP_LOCAL;
}

/* Returns true if PART names a component twice. */
static bool repeats(const vyre__node *part) {
  uint32_t seen = 0;
  for (unsigned i = 0; i < vyre__vector_length(part->type); i++) {
    const uint32_t bit = 1u << (part->aux >> 2 * i & 3);
    if (seen & bit) return true;
    seen |= bit;
  }
  return false;
}

static bool shares_operand(const inliner *in, const vyre__node *node) {
  switch ((vyre__op)node->op) {
    case VYRE__OP_LOAD:
      return !all_simple(in, node->b);
    case VYRE__OP_MAKE:
      return node->b == 1 && !vyre__is_struct(node->type) &&
             !is_leaf(in, in->program->lists[node->a]);
    case VYRE__OP_PART:
      return repeats(node) && !is_leaf(in, node->a);
    case VYRE__OP_COMPONENT:
    case VYRE__OP_LENGTH:
    case VYRE__OP_NORMALIZE:
    case VYRE__OP_DISTANCE:
    case VYRE__OP_CROSS:
    case VYRE__OP_COND:
      return true;
    case VYRE__OP_SELECT:
      return !vyre__is_aggregate(type_of(in, node->a)) && !is_leaf(in, node->a);
    case VYRE__OP_MUL:
    case VYRE__OP_DIV:
      return (!vyre__is_aggregate(type_of(in, node->a)) &&
              !is_leaf(in, node->a)) ||
             (!vyre__is_aggregate(type_of(in, node->b)) &&
              !is_leaf(in, node->b));
    default:
      return false;
  }
}

uint8_t inline_hoists(const inliner *in, vyre__id id, bool has_ordered) {
  const vyre__node *node = inline_node(in, id);
  const bool is_own =
      (node->op >= VYRE__OP_MAKE && node->op <= VYRE__OP_DISTANCE) ||
      node->op == VYRE__OP_FIELD ||
      (vyre__is_aggregate(node->type) && !vyre__is_no_value(node->type));
  if (!is_own) return 0;
  return has_ordered || shares_operand(in, node) ? INLINE_CALL : 0;
}

/* --- values that are used several times ------------------------------------*/

vyre__id inline_again(inliner *in, vyre__id id) {
  const vyre__node node = in->builder.nodes[id];
  if (id == 0) return 0;
  return node.op == VYRE__OP_LITERAL
             ? vyre__ir_build_literal(&in->builder, (vyre_type)node.type,
                                      vyre__literal(&node))
             : vyre__ir_build_local(&in->builder, node.a);
}

vyre__id inline_stable(inliner *in, vyre__id id) {
  const uint8_t op = in->builder.nodes[id].op;
  if (id == 0 || op == VYRE__OP_LITERAL || op == VYRE__OP_LOCAL) return id;
  return inline_let(in, id);
}

/* Stores a value in a `let`: the elements of an array may be variables, which
 * change. */
static vyre__id frozen(inliner *in, vyre__id id) {
  const bool is_literal = in->builder.nodes[id].op == VYRE__OP_LITERAL;
  return id == 0 || is_literal ? id : inline_let(in, id);
}

static vyre__id *scratch_ids(inliner *in, uint32_t count) {
  vyre__id *ids = vyre__arena_filled(&in->scratch, count, sizeof *ids, 0);
  if (!ids) in->no_memory = true;
  return ids;
}

/* Copies scalars of child @p index of node @p id. They are stored if a later
 * child could observe or cause effects. */
static bool operand(inliner *in, frame *f, vyre__id id, uint32_t index,
                    uint32_t first, uint32_t count, vyre__id *out) {
  const uint32_t children = vyre__child_count(in->program, id);
  const vyre__id child = vyre__child(in->program, id, index);
  bool store = (in->has[id] & INLINE_ORDERED) != 0;
  for (uint32_t i = index + 1; i < children; i++) {
    const vyre__id later = vyre__child(in->program, id, i);
    store |= (in->has[later] & INLINE_CALL) &&
             (in->has[child] & (INLINE_CALL | INLINE_EFFECT));
  }
  inline_scalars_of(in, f, child, first, count, out);
  for (uint32_t i = 0; i < count && store; i++) out[i] = frozen(in, out[i]);
  return !in->no_memory;
}

void inline_operand_scalars(inliner *in, frame *f, vyre__id id, uint32_t index,
                            vyre__id *out) {
  const vyre__id child = vyre__child(in->program, id, index);
  const uint32_t count = inline_scalars(in, type_of(in, child));
  if (count == 1) {
    out[0] = inline_operand(in, f, id, index);
  } else {
    (void)operand(in, f, id, index, 0, count, out);
  }
}

/* --- accesses --------------------------------------------------------------*/

/* A place: its root, and the scalar in it. One index may be variable. */
typedef struct path {
  vyre__id root;           /* LOCAL, LOAD or another value */
  uint32_t offset;         /* number of its first scalar */
  vyre__id index;          /* node; 0: none */
  uint32_t extent, stride; /* of that index, in scalars */
} path;

static path path_of(const inliner *in, vyre__id id) {
  path p = {.root = id};
  for (;;) {
    const vyre__node *node = inline_node(in, p.root);
    if (node->op == VYRE__OP_PART && !vyre__is_aggregate(node->type)) {
      p.offset += node->aux & 3;
    } else if (node->op == VYRE__OP_FIELD) {
      p.offset += field_at(in, node);
    } else if (node->op == VYRE__OP_COMPONENT) {
      const vyre__node *index = inline_node(in, node->b);
      const uint32_t extent = vyre__vector_length(type_of(in, node->a));
      if (index->op == VYRE__OP_LITERAL && vyre__literal(index) < extent) {
        p.offset += (uint32_t)vyre__literal(index);
      } else {
        p.index = node->b;
        p.extent = extent;
        p.stride = 1;
      }
    } else {
      return p;
    }
    p.root = node->a;
  }
}

static vyre__id number(inliner *in, uint32_t value) {
  return vyre__ir_build_literal(&in->builder, VYRE_TYPE_U32, value);
}

/* Index of an element while its scalars are accessed, for each dimension: a
 * node of the program that is copied each time, or a stored value. */
typedef struct element {
  uint32_t buffer, count;
  bool is_array;    /* or a table; `buffer` is its reference */
  uint32_t scalars; /* of an array: of an element */
  vyre__shape shape;
  bool is_stable; /* its index is used twice: an atomic */
  bool is_once;   /* the values are used once, and need not be stored */
  vyre__id source[VYRE_MAX_DIMENSIONS], value[VYRE_MAX_DIMENSIONS];
} element;

/* Returns the indices of an access, and sets *count to their number. */
static const vyre__id *indices_of(const inliner *in, const vyre__id *index,
                                  uint32_t *count) {
  const vyre__node *node = inline_node(in, *index);
  if (node->op != VYRE__OP_INDEX) {
    *count = 1;
    return index;
  }
  *count = node->b;
  return in->program->lists + node->a;
}

static element element_of(inliner *in, const frame *f, const vyre__node *node) {
  const uint32_t index = node->a & VYRE__MEMORY_INDEX;
  element e = {.buffer = inline_ref(in, f, node->a), .scalars = 1};
  e.is_array = inline_is_array(in, e.buffer);
  if (node->a & VYRE__MEMORY_TABLE) {
    e.shape = in->program->tables[index].shape;
  } else if (e.is_array) {
    const vyre__local *local = &f->function->locals[index];
    e.scalars = vyre__vector_length(local->type);
    e.shape = local->shape;
  }
  return e;
}

static element begin_element(inliner *in, frame *f, const vyre__node *node) {
  const vyre__id index = node->b;
  element e = element_of(in, f, node);
  const vyre__id *ids = indices_of(in, &index, &e.count);
  for (uint32_t i = 0; i < e.count; i++) {
    if (is_simple(in, ids[i])) {
      e.source[i] = ids[i];
    } else {
      e.value[i] = e.is_array ? frozen(in, inline_value(in, f, ids[i]))
                              : inline_stable(in, inline_value(in, f, ids[i]));
    }
  }
  return e;
}

/* The same for an element that is accessed once, directly after. */
static element begin_once(inliner *in, frame *f, const vyre__node *node) {
  const vyre__id index = node->b;
  element e = element_of(in, f, node);
  e.is_once = true;
  const vyre__id *ids = indices_of(in, &index, &e.count);
  for (uint32_t i = 0; i < e.count; i++) {
    bool call_follows = false;
    for (uint32_t k = i + 1; k < e.count; k++) {
      call_follows |= (in->has[ids[k]] & INLINE_CALL) != 0;
    }
    e.value[i] = inline_value(in, f, ids[i]);
    if (call_follows && !is_simple(in, ids[i])) {
      e.value[i] = frozen(in, e.value[i]);
    }
  }
  return e;
}

static vyre__id extent_of(inliner *in, const element *e, uint32_t at) {
  if (!e->is_array) return inline_extent(in, e->buffer, at);
  if (e->shape && at < VYRE_MAX_DIMENSIONS) {
    return number(in, vyre__shape_length(e->shape, at));
  }
  return number(in, inline_array_length(in, e->buffer) / e->scalars);
}

static vyre__id stride_of(inliner *in, const element *e, uint32_t at,
                          uint32_t units) {
  if (!e->is_array) return inline_stride(in, e->buffer, at, units);
  const uint64_t elements = vyre__shape_product(e->shape, at + 1);
  return number(in, (uint32_t)elements * units);
}

/* Builds the index of scalar @p at of an element, with the variable index of
 * @p p (a value that can be copied by `again`) if there is one. */
static vyre__id scalar_index(inliner *in, frame *f, const element *e,
                             uint32_t at, const path *p, vyre__id variable) {
  vyre__ir_builder *m = &in->builder;
  const uint32_t mark = vyre__stack_mark(m);
  const vyre_buffer_decl *decl =
      e->is_array ? NULL : &in->kernel->buffers[e->buffer];
  const vyre__struct *own =
      decl ? vyre__program_struct(in->program, decl->type) : NULL;
  uint32_t units = e->scalars;
  if (decl) {
    units = own ? own->self.size / own->width
                : vyre__vector_length(vyre__buffer_type(decl));
  }
  for (uint32_t i = 0; i < e->count; i++) {
    vyre__id index = e->value[i];
    if (e->source[i]) {
      index = inline_value(in, f, e->source[i]);
    } else if (!e->is_once) {
      index = inline_again(in, index);
    }
    vyre__push(m, index);
    vyre__push(m, extent_of(in, e, i));
    vyre__push(m, stride_of(in, e, i, units));
  }
  if (variable) {
    vyre__push(m, inline_again(in, variable));
    vyre__push(m, number(in, p->extent));
    vyre__push(m, number(in, p->stride));
  }
  if (own) at = own->scalars[at].offset / own->width;
  vyre__push(m, number(in, at));
  return e->is_array ? inline_array_index(in, e->buffer, mark, e->is_stable)
                     : vyre__ir_build_at(m, mark);
}

/* Returns the element type of scalar @p at of a buffer. For a struct, the bits
 * from VYRE__AUX_BYTE_SHIFT up hold its byte offset in the access unit. */
static unsigned element_at(const inliner *in, uint32_t buffer, uint32_t at) {
  const vyre_buffer_decl *decl = &in->kernel->buffers[buffer];
  const vyre__struct *s = vyre__program_struct(in->program, decl->type);
  if (!s) return decl->element;
  const vyre__scalar *scalar = &s->scalars[at];
  return scalar->element +
         ((scalar->offset % s->width) << VYRE__AUX_BYTE_SHIFT);
}

/* Returns true if a variable index of a path can be part of an index of memory:
 * the scalars have the size of an access. */
static bool is_addressable(const inliner *in, const path *p) {
  const uint32_t memory = inline_node(in, p->root)->a;
  if (memory >= VYRE__MEMORY_TABLE) return true;
  const vyre_buffer_decl *decl = &in->kernel->buffers[memory];
  const vyre__struct *s = vyre__program_struct(in->program, decl->type);
  return !s || !p->index ||
         vyre_element_size((vyre_element)s->scalars[p->offset].element) ==
             s->width;
}

static vyre__id load_scalar(inliner *in, frame *f, const element *e,
                            uint32_t at, const path *p, vyre__id variable) {
  const vyre__id index = scalar_index(in, f, e, at, p, variable);
  if (e->is_array) return inline_array_load(in, e->buffer, index);
  return vyre__ir_build_scalar_load(&in->builder, e->buffer, index,
                                    element_at(in, e->buffer, at));
}

/* Stores scalar @p at of an element. */
static void store_scalar(inliner *in, frame *f, const element *e, uint32_t at,
                         const path *p, vyre__id variable, vyre__id value) {
  const vyre__id index = scalar_index(in, f, e, at, p, variable);
  if (e->is_array) {
    inline_array_store(in, e->buffer, index, value);
    return;
  }
  vyre__statement(&in->builder, vyre__ir_build_scalar_store(
                                    &in->builder, e->buffer, index,
                                    element_at(in, e->buffer, at), value));
}

/* --- parts -----------------------------------------------------------------*/

static void copy_load(inliner *in, frame *f, vyre__id id, uint32_t first,
                      uint32_t count, vyre__id *out) {
  const vyre__node *node = inline_node(in, id);
  const element e = begin_element(in, f, node);
  inline_at(in, id);
  for (uint32_t i = 0; i < count; i++) {
    out[i] = load_scalar(in, f, &e, first + i, NULL, 0);
  }
}

/* A single value for all components, or one vector to convert. */
static void copy_only(inliner *in, frame *f, vyre__id id, uint32_t first,
                      uint32_t count, vyre__id *out) {
  vyre__ir_builder *m = &in->builder;
  const unsigned type = type_of(in, id);
  const vyre__id only = in->program->lists[inline_node(in, id)->a];
  const vyre_type component = (vyre_type)vyre__component_type(type);
  if (vyre__is_aggregate(type_of(in, only))) {
    inline_scalars_of(in, f, only, first, count, out);
    inline_at(in, id);
    for (uint32_t i = 0; i < count; i++) {
      if (m->nodes[out[i]].type != component) {
        out[i] = vyre__ir_build_cast(m, component, out[i]);
      }
    }
    return;
  }
  const vyre__id value = inline_value(in, f, only);
  const vyre__id kept = count > 1 ? inline_stable(in, value) : value;
  for (uint32_t i = 0; i < count; i++)
    out[i] = i ? inline_again(in, kept) : kept;
}

static void copy_make(inliner *in, frame *f, vyre__id id, uint32_t first,
                      uint32_t count, vyre__id *out) {
  const vyre__node *node = inline_node(in, id);
  if (node->b == 1 && !vyre__is_struct(node->type)) {
    copy_only(in, f, id, first, count, out);
    return;
  }
  uint32_t at = 0;
  for (uint32_t i = 0; i < node->b; i++) {
    const vyre__id child = in->program->lists[node->a + i];
    const uint32_t own = inline_scalars(in, type_of(in, child));
    const uint32_t lo = at > first ? at : first;
    const uint32_t end = at + own < first + count ? at + own : first + count;
    if (lo < end) {
      (void)operand(in, f, id, i, lo - at, end - lo, out + (lo - first));
    }
    at += own;
  }
}

static void copy_part(inliner *in, frame *f, vyre__id id, uint32_t first,
                      uint32_t count, vyre__id *out) {
  const vyre__node *node = inline_node(in, id);
  uint32_t lo = VYRE__MAX_COMPONENTS, hi = 0;
  vyre__id parts[VYRE__MAX_COMPONENTS] = {0};
  bool used[VYRE__MAX_COMPONENTS] = {false};
  for (uint32_t i = first; i < first + count; i++) {
    const uint32_t at = node->aux >> 2 * i & 3;
    if (at < lo) lo = at;
    if (at > hi) hi = at;
  }
  inline_scalars_of(in, f, node->a, lo, hi - lo + 1, parts + lo);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t at = node->aux >> 2 * (first + i) & 3;
    if (used[at]) {
      out[i] = inline_again(in, parts[at]);
      continue;
    }
    if (repeats(node)) parts[at] = inline_stable(in, parts[at]);
    out[i] = parts[at];
    used[at] = true;
  }
}

/* Copies c ? x : y as `var t; if (c) t = x; else t = y;`. */
static void copy_cond(inliner *in, frame *f, vyre__id id, uint32_t first,
                      uint32_t count, vyre__id *out) {
  vyre__ir_builder *m = &in->builder;
  const vyre__node *node = inline_node(in, id);
  const vyre__id sides[2] = {node->b, node->c};
  vyre__id blocks[2];
  const vyre__id condition = inline_value(in, f, node->a);
  inline_at(in, id);
  const uint32_t value = inline_zeros(in, node->type, "t");
  for (int i = 0; i < 2; i++) {
    vyre__mark mark = vyre__block_begin(m);
    inline_assign_all(in, f, value, sides[i]);
    blocks[i] = vyre__block_end(m, mark);
  }
  inline_at(in, id);
  vyre__statement(m, vyre__ir_build_if(m, condition, blocks[0], blocks[1]));
  for (uint32_t i = 0; i < count; i++) {
    out[i] = vyre__ir_build_local(m, value + first + i);
  }
}

/* a.y * b.z - a.z * b.y and so on, as fma(a.y, b.z, -(a.z * b.y)) */
static void copy_cross(inliner *in, frame *f, vyre__id id, vyre__id out[3]) {
  vyre__ir_builder *m = &in->builder;
  vyre__id a[3] = {0}, b[3] = {0};
  if (!operand(in, f, id, 0, 0, 3, a) || !operand(in, f, id, 1, 0, 3, b)) {
    return;
  }
  inline_at(in, id);
  for (int i = 0; i < 3; i++) a[i] = inline_stable(in, a[i]);
  for (int i = 0; i < 3; i++) b[i] = inline_stable(in, b[i]);
  for (int i = 0; i < 3; i++) {
    const int y = (i + 1) % 3, z = (i + 2) % 3;
    vyre__id minus = vyre__ir_build_binary(
        m, VYRE__OP_MUL, inline_again(in, a[z]), inline_again(in, b[y]));
    minus = vyre__ir_build_unary(m, VYRE__OP_NEG, minus);
    out[i] = vyre__ir_build_ternary(m, VYRE__OP_FMA, inline_again(in, a[y]),
                                    inline_again(in, b[z]), minus);
  }
}

/* Returns the sum of the products of a[i] and b[i], in this order. */
static vyre__id dot_of(inliner *in, const vyre__id *a, const vyre__id *b,
                       uint32_t count) {
  vyre__ir_builder *m = &in->builder;
  vyre__id sum = vyre__ir_build_binary(m, VYRE__OP_MUL, a[0], b[0]);
  for (uint32_t i = 1; i < count; i++) {
    if (vyre__is_float(vyre__type_of(m, a[i]))) {
      sum = vyre__ir_build_ternary(m, VYRE__OP_FMA, a[i], b[i], sum);
    } else {
      sum = vyre__ir_build_binary(
          m, VYRE__OP_ADD, sum,
          vyre__ir_build_binary(m, VYRE__OP_MUL, a[i], b[i]));
    }
  }
  return sum;
}

/* Returns the length of a vector whose parts are literals and locals. */
static vyre__id length_of(inliner *in, const vyre__id *v, uint32_t count) {
  vyre__id copy[2][VYRE__MAX_COMPONENTS] = {{0}};
  for (uint32_t i = 0; i < count; i++) {
    copy[0][i] = inline_again(in, v[i]);
    copy[1][i] = inline_again(in, v[i]);
  }
  return vyre__ir_build_unary(&in->builder, VYRE__OP_SQRT,
                              dot_of(in, copy[0], copy[1], count));
}

static void copy_normalize(inliner *in, frame *f, vyre__id id, uint32_t first,
                           uint32_t count, vyre__id *out) {
  vyre__ir_builder *m = &in->builder;
  const vyre__node *node = inline_node(in, id);
  const uint32_t length = vyre__vector_length(node->type);
  vyre__id v[VYRE__MAX_COMPONENTS] = {0};
  inline_scalars_of(in, f, node->a, 0, length, v);
  inline_at(in, id);
  for (uint32_t i = 0; i < length; i++) v[i] = inline_stable(in, v[i]);
  const vyre__id by = inline_stable(in, length_of(in, v, length));
  for (uint32_t i = 0; i < count; i++) {
    out[i] = vyre__ir_build_binary(
        m, VYRE__OP_DIV, inline_again(in, v[first + i]), inline_again(in, by));
  }
}

/* --- operations by component -----------------------------------------------*/

static vyre__id combine(vyre__ir_builder *m, const vyre__node *node,
                        const vyre__id v[3]) {
  const vyre_type component = (vyre_type)vyre__component_type(node->type);
  switch ((vyre__form)vyre__ops[node->op].form) {
    case VYRE__FORM_UNARY:
      if (node->op == VYRE__OP_CAST) {
        return vyre__ir_build_cast(m, component, v[0]);
      }
      if (node->op == VYRE__OP_BITCAST) {
        return vyre__ir_build_bitcast(m, component, v[0]);
      }
      return vyre__ir_build_unary(m, (vyre__op)node->op, v[0]);
    case VYRE__FORM_BINARY:
      return vyre__ir_build_binary(m, (vyre__op)node->op, v[0], v[1]);
    default:
      return vyre__ir_build_ternary(m, (vyre__op)node->op, v[0], v[1], v[2]);
  }
}

static void copy_operation(inliner *in, frame *f, vyre__id id, uint32_t first,
                           uint32_t count, vyre__id *out) {
  const uint32_t operands = vyre__child_count(in->program, id);
  vyre__id v[3][VYRE__MAX_COMPONENTS] = {{0}};
  for (uint32_t k = 0; k < operands && k < 3; k++) {
    const vyre__id child = vyre__child(in->program, id, k);
    if (vyre__is_aggregate(type_of(in, child))) {
      if (!operand(in, f, id, k, first, count, v[k])) return;
      continue;
    }
    if (!operand(in, f, id, k, 0, 1, v[k])) return;
    if (count > 1) v[k][0] = inline_stable(in, v[k][0]);
    for (uint32_t i = 1; i < count; i++) v[k][i] = inline_again(in, v[k][0]);
  }
  inline_at(in, id);
  for (uint32_t i = 0; i < count; i++) {
    const vyre__id each[3] = {v[0][i], v[1][i], v[2][i]};
    if (vyre__op_is_subgroup(inline_node(in, id)->op)) {
      out[i] = inline_subgroup_of(in, inline_node(in, id)->op, each);
      continue;
    }
    out[i] = combine(&in->builder, inline_node(in, id), each);
  }
}

static void copy_locals(inliner *in, uint32_t local, uint32_t count,
                        vyre__id *out) {
  for (uint32_t i = 0; i < count; i++) {
    out[i] = vyre__ir_build_local(&in->builder, local + i);
  }
}

static void copy_range(inliner *in, frame *f, vyre__id id, uint32_t first,
                       uint32_t count, vyre__id *out) {
  const vyre__node *node = inline_node(in, id);
  vyre__id three[3] = {0};
  switch ((vyre__op)node->op) {
    case VYRE__OP_LOCAL:
      inline_at(in, id);
      copy_locals(in, f->locals[node->a] + first, count, out);
      break;
    case VYRE__OP_CALL:
      copy_locals(in, inline_call(in, f, id) + first, count, out);
      break;
    case VYRE__OP_RESULT:
      inline_at(in, id);
      copy_locals(in, f->last_results[node->aux] + first, count, out);
      break;
    case VYRE__OP_LOAD:
      copy_load(in, f, id, first, count, out);
      break;
    case VYRE__OP_MAKE:
      copy_make(in, f, id, first, count, out);
      break;
    case VYRE__OP_PART:
      copy_part(in, f, id, first, count, out);
      break;
    case VYRE__OP_FIELD:
      inline_scalars_of(in, f, node->a, field_at(in, node) + first, count, out);
      break;
    case VYRE__OP_COND:
      copy_cond(in, f, id, first, count, out);
      break;
    case VYRE__OP_CROSS:
      copy_cross(in, f, id, three);
      memcpy(out, three + first, count * sizeof *out);
      break;
    case VYRE__OP_NORMALIZE:
      copy_normalize(in, f, id, first, count, out);
      break;
    default:
      copy_operation(in, f, id, first, count, out);
  }
}

void inline_scalars_of(inliner *in, frame *f, vyre__id id, uint32_t first,
                       uint32_t count, vyre__id *out) {
  const unsigned type = type_of(in, id);
  const uint32_t all = inline_scalars(in, type);
  if (!vyre__is_aggregate(type)) {
    out[0] = inline_value(in, f, id);
    return;
  }
  if (count == all || !(in->has[id] & INLINE_ORDERED)) {
    copy_range(in, f, id, first, count, out);
    return;
  }
  /* The other scalars have effects, too. */
  vyre__arena_mark mark = vyre__arena_here(&in->scratch);
  vyre__id *ids = scratch_ids(in, all);
  if (!ids) return;
  copy_range(in, f, id, 0, all, ids);
  for (uint32_t i = 0; i < all; i++) ids[i] = inline_stable(in, ids[i]);
  memcpy(out, ids + first, count * sizeof *out);
  vyre__arena_rewind(&in->scratch, mark);
}

/* --- scalars of aggregates -------------------------------------------------*/

/* Returns v[k] as select(k == 0, v.x, select(k == 1, v.y, ...)), and 0 for an
 * index outside. */
static vyre__id choose(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  const vyre__node *node = inline_node(in, id);
  const unsigned type = type_of(in, node->a);
  const uint32_t count = vyre__vector_length(type);
  vyre__id v[VYRE__MAX_COMPONENTS] = {0};
  if (!operand(in, f, id, 0, 0, count, v)) return 0;
  const vyre__id k = inline_stable(in, inline_value(in, f, node->b));
  inline_at(in, id);
  const vyre_type own = (vyre_type)vyre__type_of(m, k);
  vyre__id value =
      vyre__ir_build_literal(m, (vyre_type)vyre__component_type(type), 0);
  for (uint32_t i = count; i-- > 0;) {
    vyre__id is_it = vyre__ir_build_binary(m, VYRE__OP_EQ, inline_again(in, k),
                                           vyre__ir_build_literal(m, own, i));
    value = vyre__ir_build_ternary(m, VYRE__OP_SELECT, is_it, v[i], value);
  }
  return value;
}

static vyre__id load_variable(inliner *in, frame *f, const path *p) {
  const vyre__node *root = inline_node(in, p->root);
  const element e = begin_element(in, f, root);
  const vyre__id k = inline_stable(in, inline_value(in, f, p->index));
  inline_at(in, p->root);
  return load_scalar(in, f, &e, p->offset, p, k);
}

static vyre__id join(inliner *in, vyre__op op, const vyre__id *v,
                     uint32_t count) {
  vyre__id all = v[0];
  for (uint32_t i = 1; i < count; i++) {
    all = vyre__ir_build_binary(&in->builder, op, all, v[i]);
  }
  return all;
}

vyre__id inline_reduction(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  const vyre__node *node = inline_node(in, id);
  const uint32_t count =
      vyre__vector_length(type_of(in, vyre__child(in->program, id, 0)));
  vyre__id a[VYRE__MAX_COMPONENTS] = {0}, b[VYRE__MAX_COMPONENTS] = {0};
  path p;
  switch ((vyre__op)node->op) {
    case VYRE__OP_FIELD:
      inline_scalars_of(in, f, node->a, field_at(in, node), 1, a);
      return a[0];
    case VYRE__OP_PART:
      inline_scalars_of(in, f, node->a, node->aux & 3, 1, a);
      return a[0];
    case VYRE__OP_COMPONENT:
      p = path_of(in, id);
      if (p.index == 0) {
        inline_scalars_of(in, f, node->a,
                          (uint32_t)vyre__literal(inline_node(in, node->b)), 1,
                          a);
        return a[0];
      }
      if (inline_node(in, p.root)->op == VYRE__OP_LOAD &&
          is_addressable(in, &p)) {
        return load_variable(in, f, &p);
      }
      return choose(in, f, id);
    case VYRE__OP_ALL:
    case VYRE__OP_ANY:
      inline_scalars_of(in, f, node->a, 0, count, a);
      inline_at(in, id);
      return join(in, node->op == VYRE__OP_ALL ? VYRE__OP_AND : VYRE__OP_OR, a,
                  count);
    case VYRE__OP_LENGTH:
      inline_scalars_of(in, f, node->a, 0, count, a);
      break;
    default: /* DOT, DISTANCE */
      if (!operand(in, f, id, 0, 0, count, a) ||
          !operand(in, f, id, 1, 0, count, b)) {
        return 0;
      }
  }
  inline_at(in, id);
  if (node->op == VYRE__OP_DOT) return dot_of(in, a, b, count);
  for (uint32_t i = 0; i < count; i++) {
    if (node->op == VYRE__OP_DISTANCE) {
      a[i] = vyre__ir_build_binary(m, VYRE__OP_SUB, a[i], b[i]);
    }
    a[i] = inline_stable(in, a[i]);
  }
  return length_of(in, a, count);
}

/* --- locals ----------------------------------------------------------------*/

uint32_t inline_zeros(inliner *in, unsigned type, const char *name) {
  const uint32_t count = inline_scalars(in, type);
  uint32_t first = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t local = inline_local(
        in, name, true,
        vyre__ir_build_literal(&in->builder, scalar_type(in, type, i), 0));
    if (i == 0) first = local;
  }
  return first;
}

/* Copies all scalars of a value; stores them if @p store. */
static vyre__id *copy_all(inliner *in, frame *f, vyre__id value, bool store) {
  const uint32_t count = inline_scalars(in, type_of(in, value));
  vyre__id *ids = scratch_ids(in, count);
  if (!ids) return NULL;
  inline_scalars_of(in, f, value, 0, count, ids);
  for (uint32_t i = 0; i < count && store; i++)
    ids[i] = inline_stable(in, ids[i]);
  return ids;
}

uint32_t inline_to_locals(inliner *in, frame *f, vyre__id value,
                          const char *name, bool is_mutable) {
  const uint32_t count = inline_scalars(in, type_of(in, value));
  vyre__arena_mark mark = vyre__arena_here(&in->scratch);
  const vyre__id *ids = copy_all(in, f, value, false);
  uint32_t first = 0;
  in->last_value = ids && count == 1 ? ids[0] : 0;
  inline_at(in, value);
  for (uint32_t i = 0; ids && i < count; i++) {
    const uint32_t local = inline_local(in, name, is_mutable, ids[i]);
    if (i == 0) first = local;
  }
  vyre__arena_rewind(&in->scratch, mark);
  return first;
}

/* Stores the scalars first: the value may read the locals, as in v = v.yx. */
void inline_assign_all(inliner *in, frame *f, uint32_t local, vyre__id value) {
  const uint32_t count = inline_scalars(in, type_of(in, value));
  vyre__arena_mark mark = vyre__arena_here(&in->scratch);
  vyre__id *ids = copy_all(in, f, value, false);
  in->last_value = ids && count == 1 ? ids[0] : 0;
  inline_at(in, value);
  for (uint32_t i = 0; ids && count > 1 && i < count; i++) {
    if (in->builder.nodes[ids[i]].op != VYRE__OP_LITERAL) {
      ids[i] = inline_let(in, ids[i]);
    }
  }
  for (uint32_t i = 0; ids && i < count; i++) {
    inline_assign(in, local + i, ids[i]);
  }
  vyre__arena_rewind(&in->scratch, mark);
}

/* --- memory ----------------------------------------------------------------*/

static bool any_call(const inliner *in, vyre__id id, uint32_t first) {
  const uint32_t count = vyre__child_count(in->program, id);
  for (uint32_t i = first; i < count; i++) {
    if (in->has[vyre__child(in->program, id, i)] & INLINE_CALL) return true;
  }
  return false;
}

vyre__id inline_access(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  const vyre__node *node = inline_node(in, id);
  const uint32_t count = vyre__child_count(in->program, id);
  element e = any_call(in, id, 1) ? begin_element(in, f, node)
                                  : begin_once(in, f, node);
  vyre__id v[3] = {0};
  e.is_stable = e.is_array && node->op != VYRE__OP_LOAD;
  for (uint32_t i = 1; i < count && i < 3; i++) {
    const vyre__id child = vyre__child(in->program, id, i);
    v[i] = inline_value(in, f, child);
    if (any_call(in, id, i + 1) && !is_simple(in, child)) {
      v[i] = inline_stable(in, v[i]);
    }
  }
  inline_at(in, id);
  const vyre__id at = scalar_index(in, f, &e, 0, NULL, 0);
  if (e.is_array) {
    return node->op == VYRE__OP_LOAD
               ? inline_array_load(in, e.buffer, at)
               : inline_array_atomic(in, (vyre__op)node->op, e.buffer, at,
                                     v + 1);
  }
  const unsigned scalar = element_at(in, e.buffer, 0);
  if (node->op == VYRE__OP_LOAD) {
    return vyre__ir_build_scalar_load(m, e.buffer, at, scalar);
  }
  return vyre__ir_build_scalar_atomic(m, (vyre__op)node->op, e.buffer, at,
                                      (vyre_element)scalar, v[1], v[2]);
}

void inline_scalar_store(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  const element e = any_call(in, id, 1) ? begin_element(in, f, node)
                                        : begin_once(in, f, node);
  vyre__id value = inline_value(in, f, node->c);
  inline_at(in, id);
  store_scalar(in, f, &e, 0, NULL, 0, value);
}

void inline_store(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  const uint32_t count = inline_scalars(in, type_of(in, node->c));
  vyre__arena_mark mark = vyre__arena_here(&in->scratch);
  const element e = begin_element(in, f, node);
  vyre__id *ids = copy_all(in, f, node->c, true);
  inline_at(in, id);
  for (uint32_t i = 0; ids && e.is_array && i < count; i++) {
    ids[i] = frozen(in, ids[i]);
  }
  for (uint32_t i = 0; ids && i < count; i++) {
    store_scalar(in, f, &e, i, NULL, 0, ids[i]);
  }
  vyre__arena_rewind(&in->scratch, mark);
}

/* Stores to scalar k of those from @p p->offset on: `if (k == 0) ...` */
static void set_each(inliner *in, frame *f, const path *p, vyre__id value) {
  vyre__ir_builder *m = &in->builder;
  const vyre__node *root = inline_node(in, p->root);
  const element e = begin_element(in, f, root);
  const vyre__id k = inline_let(in, inline_value(in, f, p->index));
  const vyre__id stored = inline_stable(in, inline_value(in, f, value));
  const vyre_type own = (vyre_type)vyre__type_of(m, k);
  for (uint32_t i = 0; i < p->extent; i++) {
    const uint32_t at = p->offset + i * p->stride;
    vyre__id is_it = vyre__ir_build_binary(m, VYRE__OP_EQ, inline_again(in, k),
                                           vyre__ir_build_literal(m, own, i));
    vyre__mark mark = vyre__block_begin(m);
    store_scalar(in, f, &e, at, NULL, 0, inline_again(in, stored));
    vyre__id then = vyre__block_end(m, mark);
    vyre__statement(m, vyre__ir_build_if(m, is_it, then, 0));
  }
}

static void set_element(inliner *in, frame *f, const path *p, vyre__id value) {
  if (!is_addressable(in, p)) {
    set_each(in, f, p, value);
    return;
  }
  const vyre__node *root = inline_node(in, p->root);
  const element e = begin_element(in, f, root);
  const vyre__id k = p->index ? frozen(in, inline_value(in, f, p->index)) : 0;
  vyre__id stored = inline_value(in, f, value);
  /* The index is built after the value, but evaluated before it. */
  if (in->has[value] & INLINE_EFFECT) stored = inline_stable(in, stored);
  inline_at(in, p->root);
  store_scalar(in, f, &e, p->offset, p, k, stored);
}

/* Assigns v[k] of a local: each component that is not k keeps its value. */
static void set_variable(inliner *in, frame *f, const path *p, uint32_t local,
                         vyre__id value) {
  vyre__ir_builder *m = &in->builder;
  const vyre__id k = inline_stable(in, inline_value(in, f, p->index));
  vyre__id stored = inline_value(in, f, value);
  if (m->nodes[stored].op != VYRE__OP_LITERAL) stored = inline_let(in, stored);
  const vyre_type own = (vyre_type)vyre__type_of(m, k);
  for (uint32_t i = 0; i < p->extent; i++) {
    const uint32_t each = local + i * p->stride;
    vyre__id is_it = vyre__ir_build_binary(m, VYRE__OP_EQ, inline_again(in, k),
                                           vyre__ir_build_literal(m, own, i));
    inline_assign(in, each,
                  vyre__ir_build_ternary(m, VYRE__OP_SELECT, is_it,
                                         inline_again(in, stored),
                                         vyre__ir_build_local(m, each)));
  }
}

/* Stores all scalars of a field that is an aggregate. */
static void set_scalars(inliner *in, frame *f, const path *p, vyre__id value) {
  const vyre__node *root = inline_node(in, p->root);
  const uint32_t count = inline_scalars(in, type_of(in, value));
  vyre__arena_mark mark = vyre__arena_here(&in->scratch);
  const element e = begin_element(in, f, root);
  const vyre__id *ids = copy_all(in, f, value, true);
  inline_at(in, p->root);
  for (uint32_t i = 0; ids && i < count; i++) {
    store_scalar(in, f, &e, p->offset + i, NULL, 0, ids[i]);
  }
  vyre__arena_rewind(&in->scratch, mark);
}

void inline_set_place(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  const path p = path_of(in, node->a);
  const vyre__node *root = inline_node(in, p.root);
  const bool is_aggregate = vyre__is_aggregate(type_of(in, node->a));
  if (root->op == VYRE__OP_LOAD && is_aggregate) {
    set_scalars(in, f, &p, node->b);
    return;
  }
  if (root->op == VYRE__OP_LOAD) {
    set_element(in, f, &p, node->b);
    return;
  }
  const uint32_t local = f->locals[root->a] + p.offset;
  if (is_aggregate) {
    inline_assign_all(in, f, local, node->b);
    return;
  }
  if (p.index) {
    set_variable(in, f, &p, local, node->b);
    return;
  }
  const vyre__id value = inline_value(in, f, node->b);
  inline_at(in, id);
  inline_assign(in, local, value);
}
