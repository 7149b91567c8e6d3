/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Types of untyped literals, and constant expressions. */
#include <stdio.h>

#include "ir/builder/ir_builder.h"
#include "ir/builder/ir_builder_internal.h"
#include "ir/scalar.h"

#define VYRE_X3(name, text, bits) [name] = {text, bits},
static const struct {
  const char *name;
  uint8_t bits;
} types[] = {VYRE_TYPE_MAP(VYRE_X3)[VYRE__TYPE_INT] = {"an integer literal", 0},
             [VYRE__TYPE_FLOAT] = {"a float literal", 0}};
#undef VYRE_X3

/* Names of vectors, by component type. */
#define VECTORS(scalar) {scalar "x2", scalar "x3", scalar "x4"}

static const char *const vectors[VYRE_TYPE_COUNT][3] = {
    [VYRE_TYPE_VOID] = VECTORS("?"),  [VYRE_TYPE_BOOL] = VECTORS("bool"),
    [VYRE_TYPE_U32] = VECTORS("u32"), [VYRE_TYPE_I32] = VECTORS("i32"),
    [VYRE_TYPE_U64] = VECTORS("u64"), [VYRE_TYPE_I64] = VECTORS("i64"),
    [VYRE_TYPE_F32] = VECTORS("f32"), [VYRE_TYPE_F64] = VECTORS("f64"),
};

const char *vyre__type_name(unsigned type) {
  const unsigned component = vyre__component_type(type);
  const unsigned row = vyre__vector_length(type) - 2;
  if (vyre__is_vector(type) && component < VYRE_TYPE_COUNT && row < 3) {
    return vectors[component][row];
  }
  if (vyre__is_struct(type)) return "a struct";
  if (type == VYRE__TYPE_INDEX) return "several indices";
  return type <= VYRE__TYPE_FLOAT ? types[type].name : "?";
}

unsigned vyre__type_bits(unsigned type) {
  return type <= VYRE__TYPE_FLOAT ? types[type].bits : 0;
}

/* --- resolving literal types -----------------------------------------------*/

static bool integer_fits(uint64_t magnitude, bool negative, vyre_type type) {
  switch (type) {
    case VYRE_TYPE_U32:
      return !negative && magnitude <= UINT32_MAX;
    case VYRE_TYPE_U64:
      return !negative;
    case VYRE_TYPE_I32:
      return magnitude <= (uint64_t)INT32_MAX + negative;
    default:
      return magnitude <= (uint64_t)INT64_MAX + negative;
  }
}

static const char *fitting_fix(uint64_t magnitude, bool negative,
                               vyre_type type) {
  if (integer_fits(magnitude, negative, VYRE_TYPE_I32)) {
    return "use i32, or the bit pattern: as_u32(-1), as_u64(-1)";
  }
  if (type == VYRE_TYPE_I32 &&
      integer_fits(magnitude, negative, VYRE_TYPE_U32)) {
    return "add the suffix u to make it u32";
  }
  if (integer_fits(magnitude, negative, VYRE_TYPE_I64)) {
    return negative ? "add the suffix l to make it i64"
                    : "add the suffix l to make it i64, or ul for u64";
  }
  if (!negative) return "add the suffix ul to make it u64";
  return "use a number that fits";
}

static vyre__id resolve_integer(vyre__ir_builder *m, vyre__id id,
                                vyre_type type) {
  vyre__node *node = &m->nodes[id];
  uint64_t magnitude = vyre__literal(node);
  bool negative = node->aux != 0;
  if (!integer_fits(magnitude, negative, type)) {
    return vyre__diagnose_at(
        m, id, "V064", fitting_fix(magnitude, negative, type),
        "%s%llu does not fit %s", negative ? "-" : "",
        (unsigned long long)magnitude, vyre__type_name(type));
  }
  uint64_t bits = negative ? 0 - magnitude : magnitude;
  if (vyre__type_bits(type) == 32) bits &= UINT32_MAX;
  node->a = (uint32_t)bits;
  node->b = (uint32_t)(bits >> 32);
  node->c = 0;
  node->aux = 0;
  node->type = (uint8_t)type;
  return id;
}

vyre__id vyre__resolve_index_type(vyre__ir_builder *m, vyre__id id) {
  const vyre__node *node = &m->nodes[id];
  uint64_t magnitude = vyre__literal(node);
  if (node->op != VYRE__OP_LITERAL || !node->aux ||
      !integer_fits(magnitude, true, VYRE_TYPE_I32)) {
    return vyre__resolve_type(m, id, VYRE_TYPE_U32);
  }
  char fix[96];
  snprintf(fix, sizeof fix, "write -%llui: an index may have any integer type",
           (unsigned long long)magnitude);
  return vyre__diagnose_at(
      m, id, "V064", fix, "-%llu does not fit u32, the type of a literal index",
      (unsigned long long)magnitude);
}

/* The literal holds the value rounded to both types, so that f32 rounds once.
 */
static vyre__id resolve_float(vyre__ir_builder *m, vyre__id id,
                              vyre_type type) {
  vyre__node *node = &m->nodes[id];
  uint64_t bits = type == VYRE_TYPE_F32 ? node->c : vyre__literal(node);
  uint64_t infinity = type == VYRE_TYPE_F32 ? 0x7F800000u : 0x7FF0000000000000u;
  if ((bits & infinity) == infinity) {
    return vyre__diagnose_at(
        m, id, "V064",
        type == VYRE_TYPE_F32 ? "write inf, or add the suffix d to make it f64"
                              : "write inf_f64",
        "the number is too large for %s", vyre__type_name(type));
  }
  if (type == VYRE_TYPE_F32 && (bits & INT32_MAX) == 0 &&
      (vyre__literal(node) & INT64_MAX) != 0) {
    return vyre__diagnose_at(
        m, id, "V064", "write 0.0, or add the suffix d to make it f64",
        "the number is too small for f32: it would become 0");
  }
  node->a = (uint32_t)bits;
  node->b = (uint32_t)(bits >> 32);
  node->c = 0;
  node->type = (uint8_t)type;
  return id;
}

/* Resolves the operands that have the type of an untyped operation. */
static bool resolve_operands(vyre__ir_builder *m, vyre__id id, vyre_type type) {
  vyre__node node = m->nodes[id];
  bool good = true;
  switch ((unsigned)vyre__ops[node.op].form) {
    case VYRE__FORM_UNARY:
      return vyre__resolve_type(m, node.a, type) != 0;
    case VYRE__FORM_BINARY:
      good = vyre__resolve_type(m, node.a, type) != 0;
      if (vyre__ops[node.op].rule == VYRE__RULE_SHIFT ||
          vyre__ops[node.op].rule == VYRE__RULE_LANES) {
        return good;
      }
      return vyre__resolve_type(m, node.b, type) && good;
    default:
      if (vyre__ops[node.op].rule == VYRE__RULE_EXTRACT) {
        return vyre__resolve_type(m, node.a, type) != 0;
      }
      if (vyre__ops[node.op].rule == VYRE__RULE_INSERT) {
        good = vyre__resolve_type(m, node.a, type) != 0;
        return vyre__resolve_type(m, node.b, type) && good;
      }
      if (vyre__ops[node.op].rule != VYRE__RULE_SELECT) {
        good = vyre__resolve_type(m, node.a, type) != 0;
      }
      good = vyre__resolve_type(m, node.b, type) && good;
      return vyre__resolve_type(m, node.c, type) && good;
  }
}

const char *vyre__float_fix(const vyre__ir_builder *m, vyre__id id,
                            char fix[VYRE__FLOAT_FIX]) {
  const vyre__node *node = &m->nodes[id];
  const char *sign = node->aux ? "-" : "";
  unsigned long long magnitude = vyre__literal(node);
  if (node->op != VYRE__OP_LITERAL) return "write floats: 2.0 instead of 2";
  if (node->c == VYRE__FROM_CONST) return "cast it: f32(x)";
  if (node->c == VYRE__FROM_STEP) return "write += 1.0 or -= 1.0";
  snprintf(fix, VYRE__FLOAT_FIX, "write %s%llu.0 instead of %s%llu", sign,
           magnitude, sign, magnitude);
  return fix;
}

static vyre__id wrong_literal(vyre__ir_builder *m, vyre__id id,
                              vyre_type type) {
  const char *name = vyre__type_name(type);
  if (vyre__type_of(m, id) == VYRE__TYPE_INT) {
    char fix[VYRE__FLOAT_FIX];
    return vyre__diagnose_at(
        m, id, "V062", vyre__float_fix(m, id, fix),
        "expected %s; an integer literal never becomes a float", name);
  }
  return vyre__diagnose_at(m, id, "V063",
                           "write an integer, or cast the float: u32(x)",
                           "expected %s, found a float literal", name);
}

/* Returns true for an integer that all integer types represent alike. */
static inline bool is_small_integer(const vyre__node *node) {
  return node->op == VYRE__OP_LITERAL && node->type == VYRE__TYPE_INT &&
         node->aux == 0 && node->b == 0 && node->a <= INT32_MAX;
}

vyre__id vyre__resolve_literal_type(vyre__ir_builder *m, vyre__id id,
                                    vyre_type type) {
  unsigned from = vyre__type_of(m, id);
  if (type == VYRE_TYPE_VOID || type == VYRE_TYPE_BOOL) {
    type = from == VYRE__TYPE_INT ? VYRE_TYPE_I32 : VYRE_TYPE_F32;
  }
  if (vyre__type_is_integer(type) && is_small_integer(&m->nodes[id])) {
    m->nodes[id].type = (uint8_t)type; /* the common case */
    m->nodes[id].c = 0;
    return id;
  }
  if (vyre__type_is_float(type) != vyre__type_is_float(from)) {
    return wrong_literal(m, id, type);
  }
  vyre__op op = m->nodes[id].op;
  if (op == VYRE__OP_LITERAL) {
    return from == VYRE__TYPE_INT ? resolve_integer(m, id, type)
                                  : resolve_float(m, id, type);
  }
  if (!vyre__rule_takes(vyre__ops[op].rule, type)) {
    return vyre__diagnose_operand(m, op, id, type);
  }
  if (!resolve_operands(m, id, type)) return 0;
  m->nodes[id].type = (uint8_t)type;
  return id;
}

vyre__id vyre__no_value(vyre__ir_builder *m, vyre__id id) {
  return vyre__diagnose_at(m, id, "V057",
                           "make it a statement of its own; read the sum after "
                           "a barrier or in the next kernel",
                           "%s() on a sum has no value",
                           vyre__ops[m->nodes[id].op].text);
}

vyre__id vyre__expect(vyre__ir_builder *m, vyre__id id, vyre_type type,
                      const char *rule, const char *subject) {
  id = vyre__resolve_type(m, id, type);
  if (!id) return 0;
  unsigned got = vyre__type_of(m, id);
  if (got == (unsigned)type) return id;
  if (got == VYRE_TYPE_VOID) return vyre__no_value(m, id);
  char fix[64];
  const vyre__node *node = &m->nodes[id];
  if (type == VYRE_TYPE_BOOL && node->op == VYRE__OP_LITERAL) {
    snprintf(fix, sizeof fix, "write %s",
             vyre__literal(node) ? "true" : "false");
  } else if (type == VYRE_TYPE_BOOL) {
    snprintf(fix, sizeof fix, "compare it: x != %s",
             vyre__type_is_float(got) ? "0.0" : "0");
  } else if (got == VYRE_TYPE_BOOL) {
    snprintf(fix, sizeof fix, "convert it: select(x, 1, 0)");
  } else {
    snprintf(fix, sizeof fix, "cast it: %s(x)", vyre__type_name(type));
  }
  return vyre__diagnose_at(m, id, rule, fix, "%s must be %s, not %s", subject,
                           vyre__type_name(type), vyre__type_name(got));
}

vyre__id vyre__expect_named(vyre__ir_builder *m, vyre__id id, vyre_type type,
                            const char *rule, const char *subject,
                            const char *name) {
  id = vyre__resolve_type(m, id, type);
  if (!id || vyre__type_of(m, id) == (unsigned)type) return id;
  char text[128];
  snprintf(text, sizeof text, "%s '%.60s'", subject, name);
  return vyre__expect(m, id, type, rule, text);
}

/* --- constants -------------------------------------------------------------*/

static bool eval(vyre__ir_builder *m, vyre__id id, uint64_t *bits);

static bool eval_operation(vyre__ir_builder *m, const vyre__node *node,
                           uint64_t *bits) {
  unsigned form = vyre__ops[node->op].form;
  const vyre__id operands[3] = {node->a, node->b, node->c};
  unsigned count = form == VYRE__FORM_UNARY    ? 1
                   : form == VYRE__FORM_BINARY ? 2
                                               : 3;
  uint64_t values[3] = {0};
  for (unsigned i = 0; i < count; i++) {
    if (!eval(m, operands[i], &values[i])) return false;
  }
  unsigned from = vyre__type_of(m, node->a);
  return vyre__scalar_eval(node->op, (vyre_type)from, (vyre_type)node->type,
                           values, bits);
}

static bool eval(vyre__ir_builder *m, vyre__id id, uint64_t *bits) {
  vyre__node node = m->nodes[id];
  const vyre__op_info *info = &vyre__ops[node.op];
  if (node.op == VYRE__OP_LITERAL) {
    *bits = vyre__literal(&node);
    return true;
  }
  if (vyre__op_is_math(node.op)) {
    vyre__diagnose_at(
        m, id, "V090", "write the number, or call the function in the kernel",
        "%s() runs on the device, but this must be a compile-time constant",
        info->text);
    return false;
  }
  bool is_pure =
      info->flags == 0 && info->rule != VYRE__RULE_NONE &&
      (info->form == VYRE__FORM_UNARY || info->form == VYRE__FORM_BINARY ||
       info->form == VYRE__FORM_TERNARY);
  if (is_pure) return eval_operation(m, &node, bits);
  vyre__diagnose_at(m, id, "V090",
                    "use only literals, consts and operations on them",
                    "this must be a compile-time constant");
  return false;
}

/* Evaluates integer literals and operations on them as @p type. */
static bool eval_untyped(const vyre__ir_builder *m, vyre__id id, vyre_type type,
                         uint64_t *bits) {
  const vyre__node *node = &m->nodes[id];
  if (id == 0 || node->type != VYRE__TYPE_INT) return false;
  if (node->op == VYRE__OP_LITERAL) {
    const uint64_t magnitude = vyre__literal(node);
    if (!integer_fits(magnitude, node->aux != 0, type)) return false;
    *bits = node->aux ? 0 - magnitude : magnitude;
    if (type == VYRE_TYPE_I32) *bits &= UINT32_MAX;
    return true;
  }
  const vyre__op_info *info = &vyre__ops[node->op];
  const bool is_unary = info->form == VYRE__FORM_UNARY;
  uint64_t values[3] = {0};
  if (info->flags || (!is_unary && info->form != VYRE__FORM_BINARY) ||
      info->rule == VYRE__RULE_SHIFT || vyre__op_is_math(node->op)) {
    return false;
  }
  return eval_untyped(m, node->a, type, &values[0]) &&
         (is_unary || eval_untyped(m, node->b, type, &values[1])) &&
         vyre__scalar_eval(node->op, type, type, values, bits);
}

bool vyre__const_integer(const vyre__ir_builder *m, vyre__id id,
                         uint64_t *bits) {
  uint64_t narrow;
  if (id && m->nodes[id].op == VYRE__OP_LITERAL) {
    return eval_untyped(m, id, VYRE_TYPE_I64, bits);
  }
  if (!eval_untyped(m, id, VYRE_TYPE_I32, &narrow) ||
      !eval_untyped(m, id, VYRE_TYPE_I64, bits)) {
    return false;
  }
  return *bits == (uint64_t)(int64_t)(int32_t)(uint32_t)narrow;
}

bool vyre__const_eval(vyre__ir_builder *m, vyre__id id, uint64_t *bits) {
  id = vyre__resolve_type(m, id, VYRE_TYPE_VOID);
  return id != 0 && eval(m, id, bits);
}
