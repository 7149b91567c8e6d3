/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Public program builder: handles and values. */
#include <string.h>

#include "base/memory.h"
#include "ir/builder/builder_internal.h"
#include "ir/builder/ir_builder_internal.h"

/* --- handles ---------------------------------------------------------------*/

static vyre_value handle(const vyre_builder *b, vyre__id id) {
  return id ? (vyre_value){id, b->number} : (vyre_value){0};
}

static bool is_leaf(const vyre__node *node) {
  switch ((vyre__form)vyre__ops[node->op].form) {
    case VYRE__FORM_LITERAL:
    case VYRE__FORM_LOCAL:
    case VYRE__FORM_BUFFER:
    case VYRE__FORM_AXIS:
      return true;
    default:
      return vyre__ops[node->op].form == VYRE__FORM_NULLARY;
  }
}

static bool is_own(const vyre_builder *b, vyre_value value) {
  const vyre__ir_builder *m = &b->ir;
  return value.builder == b->number && value.id < m->node_count &&
         m->nodes[value.id].type != VYRE_TYPE_VOID;
}

/* Grows used[] to the number of nodes. */
static bool grow_used(vyre_builder *b) {
  size_t count = b->ir.node_count;
  if (!vyre__reserve(b->allocator, &b->used, &b->used_capacity, count,
                     sizeof *b->used, false)) {
    b->ir.out_of_memory = true;
    return false;
  }
  if (count > b->used_count) {
    memset(b->used + b->used_count, 0, count - b->used_count);
    b->used_count = count;
  }
  return true;
}

vyre__id vyre__builder_use(vyre_builder *b, vyre_value value) {
  vyre__ir_builder *m = &b->ir;
  if (b->failure.code != VYRE_OK || m->out_of_memory) return 0;
  if (value.id == 0 || !is_own(b, value)) {
    vyre__builder_fail(b, "use a value that this builder returned",
                       value.id ? "the value belongs to another builder"
                                : "the value handle is zero");
    return 0;
  }
  if (value.id < m->functions[m->function].first_node) {
    vyre__builder_fail(
        b, "pass it as a parameter, or build it again in this function",
        "the value belongs to another function");
    return 0;
  }
  if (!grow_used(b)) return 0;
  if (!b->used[value.id]) {
    b->used[value.id] = 1;
    return value.id;
  }
  if (is_leaf(&m->nodes[value.id])) {
    return vyre__append(m, m->nodes[value.id], 0);
  }
  vyre__builder_fail(
      b, "store it with vyre_build_let, and read it with vyre_build_get",
      "the result of '%s' is used twice",
      vyre__ops[m->nodes[value.id].op].text);
  return 0;
}

static bool locals_open(const vyre__ir_builder *m, vyre__id id);

static bool list_open(const vyre__ir_builder *m, uint32_t list,
                      uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (!locals_open(m, m->lists[list + i])) return false;
  }
  return true;
}

/* Returns true if all variables of an expression are in scope. */
static bool locals_open(const vyre__ir_builder *m, vyre__id id) {
  if (id == 0) return true;
  const vyre__node *node = &m->nodes[id];
  switch ((vyre__form)vyre__ops[node->op].form) {
    case VYRE__FORM_LOCAL:
      return m->locals[m->functions[m->function].first_local + node->a].is_open;
    case VYRE__FORM_CALL:
      return list_open(m, node->b, node->c);
    case VYRE__FORM_LOAD:
      return locals_open(m, node->b);
    case VYRE__FORM_MAKE:
      return list_open(m, node->a, node->b);
    case VYRE__FORM_ATOMIC:
      return locals_open(m, node->b) && locals_open(m, node->c);
    case VYRE__FORM_ATOMIC2:
      return locals_open(m, node->b) && list_open(m, node->c, 2);
    case VYRE__FORM_UNARY:
    case VYRE__FORM_BINARY:
    case VYRE__FORM_TERNARY:
      return locals_open(m, node->a) && locals_open(m, node->b) &&
             locals_open(m, node->c);
    default:
      return true;
  }
}

vyre__id vyre__builder_take(vyre_builder *b, vyre_value value) {
  vyre__id id = vyre__builder_use(b, value);
  if (!id || locals_open(&b->ir, id)) return id;
  vyre__builder_fail(
      b, "declare the variable in an outer body",
      "a value uses a variable outside the body that declares it");
  return 0;
}

uint32_t vyre__builder_local(vyre_builder *b, vyre_variable variable) {
  const vyre__ir_builder *m = &b->ir;
  const vyre__ir_function *f = &m->functions[m->function];
  if (variable.builder == b->number && variable.id > f->first_local &&
      variable.id - 1 - f->first_local < f->local_count) {
    return variable.id - 1 - f->first_local;
  }
  vyre__builder_fail(b, "use a variable that this function declares",
                     variable.id
                         ? "the variable belongs to another builder or function"
                         : "the variable handle is zero");
  return VYRE_NO_INDEX;
}

vyre_type vyre_build_type(const vyre_builder *b, vyre_value value) {
  if (!b || value.id == 0 || !is_own(b, value)) return VYRE_TYPE_VOID;
  return (vyre_type)b->ir.nodes[value.id].type;
}

/* --- operations ------------------------------------------------------------*/

/* Maps public operations to internal ones, so that internal numbers may
 * change. */
#define VYRE_X1(name) [VYRE_OP_##name] = VYRE__OP_##name,
static const uint8_t ops[VYRE_OP_COUNT] = {
    VYRE_OP_UNARY_MAP(VYRE_X1) VYRE_OP_BINARY_MAP(VYRE_X1)
        VYRE_OP_TERNARY_MAP(VYRE_X1) VYRE_OP_ATOMIC_MAP(VYRE_X1)
            VYRE_OP_ID_MAP(VYRE_X1)};
#undef VYRE_X1

const char *vyre_op_text(vyre_op op) {
  return (unsigned)op < VYRE_OP_COUNT ? vyre__ops[ops[op]].text : "?";
}

bool vyre_op_accepts(vyre_op op, vyre_type type) {
  if ((unsigned)op >= VYRE_OP_COUNT || (unsigned)type >= VYRE_TYPE_COUNT) {
    return false;
  }
  vyre__rule rule = (vyre__rule)vyre__ops[ops[op]].rule;
  return rule != VYRE__RULE_NONE && vyre__rule_takes(rule, type);
}

static vyre__op inside(vyre_builder *b, vyre_op op) {
  if ((unsigned)op < VYRE_OP_COUNT) return (vyre__op)ops[op];
  vyre__builder_fail(b, "use a vyre_op of vyre/ops.h",
                     "unknown operation %u; the last one is %u", (unsigned)op,
                     (unsigned)VYRE_OP_COUNT - 1);
  return VYRE__OP_COUNT;
}

static vyre_value literal(vyre_builder *b, vyre_type type, uint64_t bits) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  return handle(b, vyre__ir_build_literal(&b->ir, type, bits));
}

vyre_value vyre_build_bool(vyre_builder *b, bool value) {
  return literal(b, VYRE_TYPE_BOOL, value);
}

vyre_value vyre_build_u32(vyre_builder *b, uint32_t value) {
  return literal(b, VYRE_TYPE_U32, value);
}

vyre_value vyre_build_i32(vyre_builder *b, int32_t value) {
  return literal(b, VYRE_TYPE_I32, (uint32_t)value);
}

vyre_value vyre_build_u64(vyre_builder *b, uint64_t value) {
  return literal(b, VYRE_TYPE_U64, value);
}

vyre_value vyre_build_i64(vyre_builder *b, int64_t value) {
  return literal(b, VYRE_TYPE_I64, (uint64_t)value);
}

vyre_value vyre_build_f32(vyre_builder *b, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return literal(b, VYRE_TYPE_F32, bits);
}

vyre_value vyre_build_f64(vyre_builder *b, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return literal(b, VYRE_TYPE_F64, bits);
}

vyre_value vyre_build_get(vyre_builder *b, vyre_variable variable) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  uint32_t local = vyre__builder_local(b, variable);
  if (local == VYRE_NO_INDEX) return (vyre_value){0};
  return handle(b, vyre__ir_build_local(&b->ir, local));
}

vyre_value vyre_build_load(vyre_builder *b, vyre_build_buffer_ref buffer,
                           vyre_value index) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  uint32_t from = vyre__builder_buffer(b, buffer);
  vyre__id at = vyre__builder_use(b, index);
  if (from == VYRE_NO_INDEX || !at) return (vyre_value){0};
  return handle(b, vyre__ir_build_load(&b->ir, from, at));
}

vyre_value vyre_build_scalar(vyre_builder *b, vyre_build_buffer_ref buffer) {
  return vyre_build_load(b, buffer, vyre_build_u32(b, 0));
}

vyre_value vyre_build_len(vyre_builder *b, vyre_build_buffer_ref buffer) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  uint32_t of = vyre__builder_buffer(b, buffer);
  if (of == VYRE_NO_INDEX) return (vyre_value){0};
  return handle(b, vyre__ir_build_len(&b->ir, of));
}

vyre_value vyre_build_id(vyre_builder *b, vyre_op op, unsigned axis) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  return handle(b, vyre__ir_build_axis(&b->ir, inside(b, op), axis));
}

vyre_value vyre_build_item(vyre_builder *b) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  return handle(b, vyre__ir_build_item(&b->ir, 0));
}

vyre_value vyre_build_item_field(vyre_builder *b, uint32_t field) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  return handle(b, vyre__ir_build_item(&b->ir, field));
}

vyre_value vyre_build_window(vyre_builder *b) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  return handle(b, vyre__ir_build_position(&b->ir, VYRE__OP_WINDOW));
}

vyre_value vyre_build_item_index(vyre_builder *b) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  return handle(b, vyre__ir_build_position(&b->ir, VYRE__OP_ITEM_INDEX));
}

vyre_value vyre_build_lane(vyre_builder *b) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  return handle(b, vyre__ir_build_position(&b->ir, VYRE__OP_LANE));
}

vyre_value vyre_build_subgroup_id(vyre_builder *b) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  return handle(b, vyre__ir_build_position(&b->ir, VYRE__OP_SUBGROUP_ID));
}

vyre_value vyre_build_unary(vyre_builder *b, vyre_op op, vyre_value a) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  vyre__id x = vyre__builder_use(b, a);
  return handle(b, vyre__ir_build_unary(&b->ir, inside(b, op), x));
}

vyre_value vyre_build_binary(vyre_builder *b, vyre_op op, vyre_value a,
                             vyre_value c) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  vyre__id x = vyre__builder_use(b, a);
  vyre__id y = vyre__builder_use(b, c);
  return handle(b, vyre__ir_build_binary(&b->ir, inside(b, op), x, y));
}

vyre_value vyre_build_ternary(vyre_builder *b, vyre_op op, vyre_value a,
                              vyre_value c, vyre_value d) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  vyre__id x = vyre__builder_use(b, a);
  vyre__id y = vyre__builder_use(b, c);
  vyre__id z = vyre__builder_use(b, d);
  return handle(b, vyre__ir_build_ternary(&b->ir, inside(b, op), x, y, z));
}

vyre_value vyre_build_insert(vyre_builder *b, vyre_value to, vyre_value bits,
                             vyre_value from, vyre_value count) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  vyre__id x = vyre__builder_use(b, to);
  vyre__id y = vyre__builder_use(b, bits);
  vyre__id at = vyre__builder_use(b, from);
  vyre__id n = vyre__builder_use(b, count);
  return handle(b, vyre__ir_build_insert(&b->ir, x, y, at, n));
}

vyre_value vyre_build_cast(vyre_builder *b, vyre_type type, vyre_value a) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  vyre__id x = vyre__builder_use(b, a);
  return handle(b, vyre__ir_build_cast(&b->ir, type, x));
}

vyre_value vyre_build_bitcast(vyre_builder *b, vyre_type type, vyre_value a) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  vyre__id x = vyre__builder_use(b, a);
  return handle(b, vyre__ir_build_bitcast(&b->ir, type, x));
}

vyre_value vyre_build_call(vyre_builder *b, vyre_build_function_ref function,
                           const vyre_value *values, size_t count) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  if (function.builder != b->number || function.id == 0 ||
      (!values && count > 0)) {
    vyre__builder_fail(
        b, "pass a function of this builder, and an array of arguments",
        "the function handle or the argument array is invalid");
    return (vyre_value){0};
  }
  vyre__ir_builder *m = &b->ir;
  uint32_t mark = vyre__stack_mark(m);
  for (size_t i = 0; i < count; i++) {
    vyre__push(m, vyre__builder_use(b, values[i]));
  }
  if (b->failure.code != VYRE_OK) {
    vyre__stack_drop(m, mark);
    return (vyre_value){0};
  }
  return handle(b, vyre__ir_build_call(m, function.id - 1, mark));
}

vyre_value vyre_build_atomic(vyre_builder *b, vyre_op op,
                             vyre_build_buffer_ref buffer, vyre_value index,
                             vyre_value value) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  uint32_t to = vyre__builder_buffer(b, buffer);
  vyre__id at = vyre__builder_use(b, index);
  vyre__id with = vyre__builder_use(b, value);
  if (to == VYRE_NO_INDEX || !at || !with) return (vyre_value){0};
  return handle(b, vyre__ir_build_atomic(&b->ir, inside(b, op), to, at, with));
}

vyre_value vyre_build_compare_exchange(vyre_builder *b,
                                       vyre_build_buffer_ref buffer,
                                       vyre_value index, vyre_value expected,
                                       vyre_value desired) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  uint32_t to = vyre__builder_buffer(b, buffer);
  vyre__id at = vyre__builder_use(b, index);
  vyre__id old = vyre__builder_use(b, expected);
  vyre__id with = vyre__builder_use(b, desired);
  if (to == VYRE_NO_INDEX || !at || !old || !with) return (vyre_value){0};
  return handle(b, vyre__ir_build_atomic_cas(&b->ir, to, at, old, with));
}

vyre_value vyre_build_push(vyre_builder *b, vyre_value value) {
  return vyre_build_push_fields(b, &value, 1);
}

vyre_value vyre_build_push_fields(vyre_builder *b, const vyre_value *values,
                                  size_t count) {
  if (!vyre__builder_ready(b)) return (vyre_value){0};
  if (!values && count > 0) {
    vyre__builder_fail(b, "pass an array of values", "the array is NULL");
    return (vyre_value){0};
  }
  const uint32_t mark = vyre__stack_mark(&b->ir);
  for (size_t i = 0; i < count; i++) {
    vyre__push(&b->ir, vyre__builder_use(b, values[i]));
  }
  if (b->failure.code != VYRE_OK) {
    vyre__stack_drop(&b->ir, mark);
    return (vyre_value){0};
  }
  return handle(b, vyre__ir_build_push(&b->ir, mark));
}
