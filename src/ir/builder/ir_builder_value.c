/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* IR builder: values, their operand types and result types. */
#include <stdio.h>
#include <string.h>

#include "ir/builder/ir_builder.h"
#include "ir/builder/ir_builder_internal.h"

/* --- literals --------------------------------------------------------------*/

static uint64_t canonical_bits(vyre_type type, uint64_t bits) {
  switch (type) {
    case VYRE_TYPE_BOOL:
      return bits != 0;
    case VYRE_TYPE_U32:
    case VYRE_TYPE_I32:
      return bits & UINT32_MAX;
    case VYRE_TYPE_F32:
      bits &= UINT32_MAX;
      return (bits & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC00000u : bits;
    case VYRE_TYPE_F64:
      return (bits & INT64_MAX) > 0x7FF0000000000000u ? 0x7FF8000000000000u
                                                      : bits;
    default:
      return bits;
  }
}

static vyre__id append_literal(vyre__ir_builder *m, unsigned type,
                               uint64_t bits, uint8_t aux, uint32_t c) {
  return vyre__append(m,
                      (vyre__node){.op = VYRE__OP_LITERAL,
                                   .type = (uint8_t)type,
                                   .aux = aux,
                                   .a = (uint32_t)bits,
                                   .b = (uint32_t)(bits >> 32),
                                   .c = c},
                      0);
}

vyre__id vyre__ir_build_literal(vyre__ir_builder *m, vyre_type type,
                                uint64_t bits) {
  if (type <= VYRE_TYPE_VOID || type >= VYRE_TYPE_COUNT) {
    return vyre__diagnose(m, "", "use bool, u32, i32, u64, i64, f32 or f64",
                          "a literal of unknown type %u", (unsigned)type);
  }
  return append_literal(m, type, canonical_bits(type, bits), 0, 0);
}

vyre__id vyre__ir_build_integer(vyre__ir_builder *m, uint64_t magnitude,
                                bool negative, vyre_type type) {
  vyre__id id = append_literal(m, VYRE__TYPE_INT, magnitude,
                               negative && magnitude != 0, 0);
  return type == VYRE_TYPE_VOID ? id : vyre__resolve_type(m, id, type);
}

vyre__id vyre__ir_build_const_integer(vyre__ir_builder *m, int64_t value) {
  const uint64_t bits = (uint64_t)value;
  return append_literal(m, VYRE__TYPE_INT, value < 0 ? 0 - bits : bits,
                        value < 0, VYRE__FROM_CONST);
}

vyre__id vyre__ir_build_step(vyre__ir_builder *m) {
  return append_literal(m, VYRE__TYPE_INT, 1, 0, VYRE__FROM_STEP);
}

vyre__id vyre__ir_build_float(vyre__ir_builder *m, double as_f64, float as_f32,
                              vyre_type type) {
  uint64_t bits;
  uint32_t narrow;
  memcpy(&bits, &as_f64, sizeof bits);
  memcpy(&narrow, &as_f32, sizeof narrow);
  vyre__id id = append_literal(m, VYRE__TYPE_FLOAT, bits, 0, narrow);
  return type == VYRE_TYPE_VOID ? id : vyre__resolve_type(m, id, type);
}

/* Negates a literal. A NaN has no sign; an integer may wrap. */
static vyre__id negate_literal(vyre__ir_builder *m, vyre__id id) {
  vyre__node node = m->nodes[id];
  uint64_t bits = vyre__literal(&node);
  switch ((unsigned)node.type) {
    case VYRE__TYPE_INT:
      return append_literal(m, node.type, bits, bits != 0 && !node.aux, 0);
    case VYRE__TYPE_FLOAT:
      return append_literal(m, node.type, bits ^ (UINT64_C(1) << 63), 0,
                            node.c ^ 0x80000000u);
    case VYRE_TYPE_F32:
      return vyre__ir_build_literal(m, VYRE_TYPE_F32, bits ^ 0x80000000u);
    case VYRE_TYPE_F64:
      return vyre__ir_build_literal(m, VYRE_TYPE_F64,
                                    bits ^ (UINT64_C(1) << 63));
    default:
      return vyre__ir_build_literal(m, (vyre_type)node.type, 0 - bits);
  }
}

/* --- operand types ---------------------------------------------------------*/

/* Sets of types, one bit per type. */
enum {
  BOOL = 1 << VYRE_TYPE_BOOL,
  INTEGERS = 1 << VYRE_TYPE_U32 | 1 << VYRE_TYPE_I32 | 1 << VYRE_TYPE_U64 |
             1 << VYRE_TYPE_I64 | 1 << VYRE__TYPE_INT,
  F32 = 1 << VYRE_TYPE_F32 | 1 << VYRE__TYPE_FLOAT,
  FLOATS = F32 | 1 << VYRE_TYPE_F64,
  SIGNED =
      1 << VYRE_TYPE_I32 | 1 << VYRE_TYPE_I64 | 1 << VYRE__TYPE_INT | FLOATS,
  NUMBERS = INTEGERS | FLOATS,
  EVERYTHING = NUMBERS | BOOL
};

static const uint16_t taken[] = {
    [VYRE__RULE_NONE] = EVERYTHING,
    [VYRE__RULE_ANY_SAME] = EVERYTHING,
    [VYRE__RULE_BOOL_SAME] = BOOL,
    [VYRE__RULE_INTEGER_SAME] = INTEGERS,
    [VYRE__RULE_BITS_SAME] = INTEGERS | BOOL,
    [VYRE__RULE_FLOAT_SAME] = FLOATS,
    [VYRE__RULE_F32_SAME] = F32,
    [VYRE__RULE_SIGNED_SAME] = SIGNED,
    [VYRE__RULE_NUMBER_SAME] = NUMBERS,
    [VYRE__RULE_SHIFT] = INTEGERS,
    [VYRE__RULE_COMPARE_ANY] = EVERYTHING,
    [VYRE__RULE_COMPARE_NUMBER] = NUMBERS,
    [VYRE__RULE_CAST] = EVERYTHING,
    [VYRE__RULE_BITCAST] = NUMBERS,
    [VYRE__RULE_SELECT] = EVERYTHING,
    [VYRE__RULE_ATOMIC] = INTEGERS,
    [VYRE__RULE_PUSH] = EVERYTHING,
    [VYRE__RULE_EXTRACT] = INTEGERS,
    [VYRE__RULE_INSERT] = INTEGERS,
    [VYRE__RULE_U32] = 1 << VYRE_TYPE_U32 | 1 << VYRE__TYPE_INT,
    [VYRE__RULE_QUEUE_KEY] = INTEGERS,
    [VYRE__RULE_VECTOR] = 0, /* vectors have types above 15 */
    [VYRE__RULE_LANES] = EVERYTHING,
};

bool vyre__rule_takes(vyre__rule rule, unsigned type) {
  return type < 16 && (taken[rule] >> type & 1) != 0;
}

const char *vyre__rule_wants(vyre__rule rule) {
  switch (rule) {
    case VYRE__RULE_BOOL_SAME:
      return "bool";
    case VYRE__RULE_INTEGER_SAME:
    case VYRE__RULE_SHIFT:
    case VYRE__RULE_ATOMIC:
    case VYRE__RULE_EXTRACT:
    case VYRE__RULE_INSERT:
      return "an integer (u32, i32, u64, i64)";
    case VYRE__RULE_BITS_SAME:
      return "an integer or bool";
    case VYRE__RULE_FLOAT_SAME:
      return "a float (f32, f64)";
    case VYRE__RULE_F32_SAME:
      return "f32";
    case VYRE__RULE_U32:
      return "u32";
    case VYRE__RULE_SIGNED_SAME:
      return "a signed number (i32, i64, f32, f64)";
    case VYRE__RULE_NUMBER_SAME:
    case VYRE__RULE_COMPARE_NUMBER:
    case VYRE__RULE_BITCAST:
      return "a number";
    default:
      return "a value";
  }
}

static const char *operand_fix(vyre__rule rule, vyre__op op, unsigned type) {
  if (op == VYRE__OP_BIT_NOT && type == VYRE_TYPE_BOOL) {
    return "use ! to negate a bool";
  }
  if (rule == VYRE__RULE_BOOL_SAME) return "compare it: x != 0";
  if (op == VYRE__OP_REM && (type == VYRE_TYPE_F32 || type == VYRE_TYPE_F64)) {
    return "write x - trunc(x / y) * y";
  }
  if (rule == VYRE__RULE_SIGNED_SAME && type != VYRE_TYPE_BOOL) {
    return "cast it to a signed type first: i32(x)";
  }
  if (rule == VYRE__RULE_FLOAT_SAME || rule == VYRE__RULE_F32_SAME) {
    return "cast it first: f32(x)";
  }
  if (type == VYRE_TYPE_BOOL) {
    return "use && || ! == != on bools, or select(b, 1, 0)";
  }
  return "cast it first: u32(x)";
}

vyre__id vyre__diagnose_operand(vyre__ir_builder *m, vyre__op op, vyre__id id,
                                unsigned type) {
  const vyre__op_info *info = &vyre__ops[op];
  if (type == VYRE_TYPE_VOID) return vyre__no_value(m, id);
  if (type == VYRE__TYPE_INT && (info->rule == VYRE__RULE_FLOAT_SAME ||
                                 info->rule == VYRE__RULE_F32_SAME)) {
    char fix[VYRE__FLOAT_FIX];
    return vyre__diagnose_at(m, id, "V062", vyre__float_fix(m, id, fix),
                             "'%s' needs %s, not an integer literal",
                             info->text, vyre__rule_wants(info->rule));
  }
  if (type == VYRE__TYPE_FLOAT &&
      (info->rule == VYRE__RULE_INTEGER_SAME ||
       info->rule == VYRE__RULE_SHIFT || info->rule == VYRE__RULE_BITS_SAME ||
       info->rule >= VYRE__RULE_EXTRACT)) {
    return vyre__diagnose_at(m, id, "V063",
                             "write an integer, or cast the float: u32(x)",
                             "'%s' needs %s, not a float literal", info->text,
                             vyre__rule_wants(info->rule));
  }
  return vyre__diagnose_at(m, id, "V061", operand_fix(info->rule, op, type),
                           "'%s' needs %s, not %s", info->text,
                           vyre__rule_wants(info->rule), vyre__type_name(type));
}

static inline bool takes(vyre__ir_builder *m, vyre__op op, vyre__id id) {
  unsigned type = vyre__type_of(m, id);
  if (vyre__ops[op].rule == VYRE__RULE_LANES && vyre__is_vector(type)) {
    type = vyre__component_type(type);
  }
  if (vyre__rule_takes(vyre__ops[op].rule, type)) return true;
  vyre__diagnose_operand(m, op, id, type);
  return false;
}

/* Writes the fix for operands of the types @p ta and @p tb. A local whose
 * type comes from a literal is better declared with the other type. */
static void agreement_fix(const vyre__ir_builder *m, vyre__id a, vyre__id b,
                          char *fix, size_t size) {
  const vyre__id ids[] = {a, b};
  for (int i = 0; i < 2; i++) {
    const vyre__node *node = &m->nodes[ids[i]];
    const unsigned other = vyre__type_of(m, ids[1 - i]);
    if (node->op != VYRE__OP_LOCAL || !vyre__type_is_integer(other)) continue;
    const vyre__ir_local *it =
        &m->locals[m->functions[m->function].first_local + node->a];
    if (!it->is_default) continue;
    snprintf(fix, size,
             "declare it as %s %.60s : %s, or cast it here: %s(%.60s)",
             it->is_mutable ? "var" : "let", it->name, vyre__type_name(other),
             vyre__type_name(other), it->name);
    return;
  }
  const unsigned ta = vyre__type_of(m, a), tb = vyre__type_of(m, b);
  if (vyre__type_is_float(ta) != vyre__type_is_float(tb) &&
      (vyre__type_is_integer(ta) || vyre__type_is_integer(tb))) {
    snprintf(fix, size, "cast the integer: %s(x)",
             vyre__type_name(vyre__type_is_float(ta) ? ta : tb));
    return;
  }
  snprintf(fix, size, "cast one side to the type of the other: %s(x)",
           vyre__type_name(vyre__type_is_untyped(ta) ? tb : ta));
}

/* Slow path of `agree`: the two types differ. */
VYRE__NOINLINE static bool make_agree(vyre__ir_builder *m, vyre__op op,
                                      vyre__id a, vyre__id b) {
  unsigned ta = vyre__type_of(m, a), tb = vyre__type_of(m, b);
  bool free_a = vyre__type_is_untyped(ta), free_b = vyre__type_is_untyped(tb);
  if (free_a && free_b) {
    char fix[VYRE__FLOAT_FIX];
    vyre__id integer = ta == VYRE__TYPE_INT ? a : b;
    vyre__diagnose_at(m, integer, "V062", vyre__float_fix(m, integer, fix),
                      "'%s' between an integer literal and a float literal",
                      vyre__ops[op].text);
    return false;
  }
  if ((free_a && ta == VYRE__TYPE_FLOAT && vyre__type_is_integer(tb)) ||
      (free_b && tb == VYRE__TYPE_FLOAT && vyre__type_is_integer(ta))) {
    const vyre__id literal = free_a ? a : b;
    vyre__diagnose_at(m, literal, "V063",
                      "write an integer, or cast the other side: f32(x)",
                      "'%s' between %s and a float literal", vyre__ops[op].text,
                      vyre__type_name(free_a ? tb : ta));
    return false;
  }
  if (free_a && tb != VYRE_TYPE_BOOL) return vyre__resolve_type(m, a, tb) != 0;
  if (free_b && ta != VYRE_TYPE_BOOL) return vyre__resolve_type(m, b, ta) != 0;
  const char *name = vyre__type_name(ta);
  char fix[256];
  agreement_fix(m, a, b, fix, sizeof fix);
  vyre__diagnose(m, "V060", fix,
                 "both sides of '%s' must have the same type, not %s and %s",
                 vyre__ops[op].text, name, vyre__type_name(tb));
  return false;
}

/* Unifies the types of two values: an untyped value gets the type of the
 * other; two untyped values of one kind stay untyped. */
static inline bool agree(vyre__ir_builder *m, vyre__op op, vyre__id a,
                         vyre__id b) {
  return vyre__type_of(m, a) == vyre__type_of(m, b) || make_agree(m, op, a, b);
}

/* --- leaves ----------------------------------------------------------------*/

bool vyre__need_kernel(vyre__ir_builder *m, const char *subject) {
  if (m->kernel) return true;
  vyre__diagnose(m, "V086",
                 "use it in the kernel, and pass the value to the fn",
                 "%s cannot be used in a fn", subject);
  return false;
}

bool vyre__need_procedure(vyre__ir_builder *m, const char *subject) {
  if (m->kernel) return true;
  if (m->function < m->function_count &&
      m->functions[m->function].result == VYRE_TYPE_VOID &&
      m->functions[m->function].result_count == 0) {
    return true;
  }
  vyre__diagnose(m, "V086", "use it in the kernel, or in a fn without a result",
                 "%s cannot be used in a fn with a result", subject);
  return false;
}

vyre__id vyre__ir_build_local(vyre__ir_builder *m, uint32_t local) {
  uint32_t count = m->function < m->function_count
                       ? m->functions[m->function].local_count
                       : 0;
  if (local >= count) {
    if (m->out_of_memory) return 0;
    return vyre__diagnose(m, "", "declare the local first",
                          "local %u, but there are only %u", local, count);
  }
  const vyre__ir_local *it =
      &m->locals[m->functions[m->function].first_local + local];
  if (!it->is_open) {
    return vyre__diagnose(m, "", "declare it in an outer block",
                          "local %u ('%.100s') is used after its block", local,
                          it->name);
  }
  if (it->type == VYRE_TYPE_VOID) return 0; /* reported at its declaration */
  if (it->is_memory) {
    return vyre__diagnose(m, "V098", "write the element: name[i]",
                          "'%.100s' is an array, not a value", it->name);
  }
  return vyre__append(
      m, (vyre__node){.op = VYRE__OP_LOCAL, .type = it->type, .a = local}, 0);
}

bool vyre__take_list(vyre__ir_builder *m, uint32_t mark, uint32_t *offset,
                     uint32_t *count, unsigned *height) {
  *count = (uint32_t)m->stack_count - mark;
  *height = 0;
  bool good = !m->out_of_memory;
  for (uint32_t i = 0; i < *count; i++) {
    vyre__id id = m->stack[mark + i];
    good = good && id != 0;
    unsigned own = vyre__height(m, id);
    if (own > *height) *height = own;
  }
  *offset = 0;
  if (good) *offset = vyre__append_list(m, vyre__stack_from(m, mark), *count);
  vyre__stack_drop(m, mark);
  return good && *offset != VYRE_NO_INDEX;
}

static bool check_arguments(vyre__ir_builder *m, const vyre__ir_function *f,
                            uint32_t mark) {
  uint32_t count = (uint32_t)m->stack_count - mark;
  if (count != f->parameter_count) {
    vyre__diagnose(m, "V074", "pass one value for each parameter",
                   "fn '%.100s' takes %u value%s, not %u", f->name,
                   f->parameter_count, f->parameter_count == 1 ? "" : "s",
                   count);
    return false;
  }
  bool good = true;
  for (uint32_t i = 0; i < count; i++) {
    const vyre__ir_parameter *parameter =
        &m->parameters[f->first_parameter + i];
    vyre__id id = m->stack[mark + i];
    if (parameter->is_memory) {
      good = vyre__check_memory_argument(m, f, parameter, id) && good;
      continue;
    }
    good = !vyre__is_no_operand(m, id) &&
           vyre__expect_named(m, id, parameter->type, "V075", "parameter",
                              parameter->name) &&
           good;
  }
  return good && vyre__check_aliases(m, f, mark);
}

vyre__id vyre__ir_build_call(vyre__ir_builder *m, uint32_t function,
                             uint32_t mark) {
  if (function >= m->function_count || m->functions[function].is_kernel) {
    vyre__stack_drop(m, mark);
    return vyre__diagnose(m, "", "call a declared fn",
                          "function %u does not exist or cannot be called",
                          function);
  }
  const vyre__ir_function *f = &m->functions[function];
  uint32_t offset, count;
  unsigned height;
  if (m->out_of_memory || !check_arguments(m, f, mark)) {
    vyre__stack_drop(m, mark);
    return 0;
  }
  if (!vyre__take_list(m, mark, &offset, &count, &height)) return 0;
  if (!m->kernel) m->has_nested_calls = true;
  const unsigned type = f->result_count > 0           ? VYRE__TYPE_RESULTS
                        : f->result == VYRE_TYPE_VOID ? VYRE__TYPE_NOTHING
                                                      : f->result;
  return vyre__append(m,
                      (vyre__node){.op = VYRE__OP_CALL,
                                   .type = (uint8_t)type,
                                   .a = function,
                                   .b = offset,
                                   .c = count},
                      height);
}

const vyre_buffer_decl *vyre__buffer_at(vyre__ir_builder *m, uint32_t buffer) {
  if (buffer >= VYRE__MEMORY_TABLE) return vyre__memory_at(m, buffer);
  if (!m->kernel) {
    vyre__diagnose(m, "V086", "pass it as a parameter: x: read f32[]",
                   "a buffer of a kernel cannot be named in a fn");
    return NULL;
  }
  if (buffer < m->kernel->buffer_count) return &m->kernel->buffers[buffer];
  vyre__diagnose(m, "", "use a buffer of this kernel",
                 "buffer %u, but the kernel has only %u", buffer,
                 m->kernel->buffer_count);
  return NULL;
}

vyre__id vyre__ir_build_index(vyre__ir_builder *m,
                              const vyre_buffer_decl *buffer, vyre__id index) {
  if (!index) return 0;
  if (m->nodes[index].op == VYRE__OP_AT) return index; /* an inlined program */
  if (!vyre__check_indices(m, buffer, index)) return 0;
  if (m->nodes[index].op == VYRE__OP_INDEX) return index;
  if (vyre__type_of(m, index) == VYRE__TYPE_INT) {
    return vyre__resolve_index_type(m, index);
  }
  unsigned type = vyre__type_of(m, index);
  if (vyre__type_is_integer(type)) return index;
  return vyre__diagnose_at(m, index, "V068", "cast it: u32(x)",
                           "the index of '%.100s' is %s; it must be an integer",
                           buffer->name, vyre__type_name(type));
}

vyre__id vyre__ir_build_load(vyre__ir_builder *m, uint32_t buffer,
                             vyre__id index) {
  const vyre_buffer_decl *decl = vyre__buffer_at(m, buffer);
  if (decl && index && decl->access == VYRE_ACCESS_WRITE) {
    return vyre__diagnose(m, "V070", "declare it read_write",
                          "%s '%.100s' is declared write and cannot be read",
                          buffer >= VYRE__MEMORY_TABLE ? "parameter" : "buffer",
                          decl->name);
  }
  return decl ? vyre__ir_build_element(m, buffer, index) : 0;
}

vyre__id vyre__ir_build_element(vyre__ir_builder *m, uint32_t buffer,
                                vyre__id index) {
  const vyre_buffer_decl *decl = vyre__buffer_at(m, buffer);
  if (decl) index = vyre__ir_build_index(m, decl, index);
  if (!decl || !index) return 0;
  return vyre__append(m,
                      (vyre__node){.op = VYRE__OP_LOAD,
                                   .type = (uint8_t)vyre__buffer_type(decl),
                                   .a = buffer,
                                   .b = index},
                      vyre__height(m, index));
}

/* Checks the access of a buffer that an atomic reads and writes. */
static bool can_change(vyre__ir_builder *m, vyre__op op,
                       const vyre_buffer_decl *decl) {
  if (decl->access == VYRE_ACCESS_READ_WRITE ||
      decl->access == VYRE_ACCESS_WORKGROUP) {
    return true;
  }
  vyre__diagnose(m, "V073", "declare it read_write",
                 "'%s' reads and writes, but buffer '%.100s' is declared %s",
                 vyre__ops[op].text, decl->name,
                 vyre_access_name(decl->access));
  return false;
}

vyre__id vyre__ir_build_scalar_load(vyre__ir_builder *m, uint32_t buffer,
                                    vyre__id at, unsigned element) {
  if (!at) return 0;
  return vyre__append(
      m,
      (vyre__node){.op = VYRE__OP_LOAD,
                   .type = (uint8_t)vyre__element_type(
                       (vyre_element)(element & VYRE__AUX_ELEMENT)),
                   .aux = (uint8_t)(element + 1),
                   .a = buffer,
                   .b = at},
      vyre__height(m, at));
}

vyre__id vyre__ir_build_scalar_store(vyre__ir_builder *m, uint32_t buffer,
                                     vyre__id at, unsigned element,
                                     vyre__id value) {
  if (!at || !value) return 0;
  return vyre__append(m,
                      (vyre__node){.op = VYRE__OP_STORE,
                                   .aux = (uint8_t)(element + 1),
                                   .a = buffer,
                                   .b = at,
                                   .c = value},
                      vyre__height2(m, at, value));
}

/* Builds the addition of sum t[j] to sum s[i]; @p from is the load t[j]. */
vyre__id vyre__ir_build_merge(vyre__ir_builder *m, uint32_t buffer,
                              vyre__id index, vyre__id from) {
  const vyre_buffer_decl *decl = vyre__buffer_at(m, buffer);
  if (decl) index = vyre__ir_build_index(m, decl, index);
  if (!decl || !index || !from) return 0;
  const vyre_buffer_decl *other = m->nodes[from].op == VYRE__OP_LOAD
                                      ? &m->kernel->buffers[m->nodes[from].a]
                                      : NULL;
  if (!vyre__is_sum(decl->element) || !other ||
      other->element != decl->element) {
    return vyre__diagnose(
        m, "V072", "declare both buffers sum_f32, or both sum_f64",
        "'atomic_merge' needs elements of two buffers of sum_f32, or of "
        "sum_f64, but '%.100s' has %s and the second argument is %s",
        decl->name, vyre_element_name(decl->element),
        other ? vyre_element_name(other->element) : "no element of a buffer");
  }
  if (!can_change(m, VYRE__OP_ATOMIC_MERGE, decl)) return 0;
  return vyre__append(
      m,
      (vyre__node){
          .op = VYRE__OP_ATOMIC_MERGE, .a = buffer, .b = index, .c = from},
      vyre__height2(m, index, from));
}

vyre__id vyre__ir_build_len(vyre__ir_builder *m, uint32_t buffer) {
  const vyre_buffer_decl *decl = vyre__buffer_at(m, buffer);
  if (!decl) return 0;
  if (buffer >= VYRE__MEMORY_TABLE && decl->count > 0) {
    return vyre__ir_build_literal(m, VYRE_TYPE_U32, decl->count);
  }
  return vyre__append(
      m, (vyre__node){.op = VYRE__OP_LEN, .type = VYRE_TYPE_U32, .a = buffer},
      0);
}

vyre__id vyre__ir_build_axis(vyre__ir_builder *m, vyre__op op, unsigned axis) {
  if ((unsigned)op >= VYRE__OP_COUNT || vyre__ops[op].form != VYRE__FORM_AXIS ||
      axis > 2) {
    return vyre__diagnose(m, "", "use an id with axis 0, 1 or 2 (x, y, z)",
                          "operation %u with axis %u is not an id",
                          (unsigned)op, axis);
  }
  return vyre__append(
      m,
      (vyre__node){
          .op = (uint8_t)op, .type = VYRE_TYPE_U32, .aux = (uint8_t)axis},
      0);
}

/* --- operations ------------------------------------------------------------*/

static bool is_form(vyre__ir_builder *m, vyre__op op, vyre__form form) {
  bool is_one = (unsigned)op < VYRE__OP_COUNT;
  if (is_one && vyre__ops[op].form == form) return true;
  vyre__diagnose(m, "", "use an operation with that number of operands",
                 "operation '%s' does not fit here",
                 is_one ? vyre__ops[op].text : "?");
  return false;
}

/* --- functions of other operations. They use each operand once. ---------- */

static vyre__id float_literal(vyre__ir_builder *m, vyre__id like, float value) {
  unsigned type = vyre__type_of(m, like);
  vyre_type fixed = type == VYRE__TYPE_FLOAT ? VYRE_TYPE_VOID : (vyre_type)type;
  return vyre__ir_build_float(m, value, value, fixed);
}

/* Builds min(max(x, low), high). */
static vyre__id make_clamp(vyre__ir_builder *m, vyre__id x, vyre__id low,
                           vyre__id high) {
  x = vyre__ir_build_binary(m, VYRE__OP_MAX, x, low);
  return vyre__ir_build_binary(m, VYRE__OP_MIN, x, high);
}

static vyre__id make_saturate(vyre__ir_builder *m, vyre__id x) {
  vyre__id zero = float_literal(m, x, 0), one = float_literal(m, x, 1);
  return make_clamp(m, x, zero, one);
}

/* Builds select(edge > x, 0, 1). */
static vyre__id make_step(vyre__ir_builder *m, vyre__id edge, vyre__id x) {
  vyre__id below = vyre__ir_build_binary(m, VYRE__OP_GT, edge, x);
  if (!below) return 0;
  vyre__id zero = float_literal(m, x, 0), one = float_literal(m, x, 1);
  return vyre__ir_build_ternary(m, VYRE__OP_SELECT, below, zero, one);
}

/* Checks that a value is u32, or makes it one. */
static bool need_u32(vyre__ir_builder *m, vyre__op op, vyre__id id) {
  unsigned type = vyre__type_of(m, id);
  if (type == VYRE__TYPE_INT) return vyre__resolve_type(m, id, VYRE_TYPE_U32);
  if (type == VYRE_TYPE_U32) return true;
  vyre__diagnose_at(m, id, "V078", "cast it: u32(n)", "'%s' needs u32, not %s",
                    vyre__ops[op].text, vyre__type_name(type));
  return false;
}

static vyre__id make_u32(vyre__ir_builder *m, vyre__op op, vyre__id a,
                         vyre__id b) {
  if (!need_u32(m, op, a) || !need_u32(m, op, b)) return 0;
  uint8_t type = op == VYRE__OP_DOT4_I8 ? VYRE_TYPE_I32 : VYRE_TYPE_U32;
  return vyre__append(
      m, (vyre__node){.op = (uint8_t)op, .type = type, .a = a, .b = b},
      vyre__height2(m, a, b));
}

/* Builds extract(x, from, count), or insert(x, y, range). */
static vyre__id make_bits(vyre__ir_builder *m, vyre__op op, vyre__id a,
                          vyre__id b, vyre__id c) {
  bool is_insert = op == VYRE__OP_INSERT;
  if (!takes(m, op, a)) return 0;
  if (is_insert) {
    if (m->nodes[c].op != VYRE__OP_BIT_RANGE) {
      return vyre__diagnose(m, "", "use vyre_build_insert",
                            "'insert' needs the range of its bits");
    }
    if (!takes(m, op, b) || !agree(m, op, a, b)) return 0;
  } else if (!need_u32(m, op, b) || !need_u32(m, op, c)) {
    return 0;
  }
  unsigned height = vyre__height2(m, a, b), more = vyre__height(m, c);
  return vyre__append(
      m,
      (vyre__node){
          .op = (uint8_t)op, .type = m->nodes[a].type, .a = a, .b = b, .c = c},
      height > more ? height : more);
}

vyre__id vyre__ir_build_insert(vyre__ir_builder *m, vyre__id x, vyre__id y,
                               vyre__id from, vyre__id count) {
  if (!x || !y || !from || !count) return 0;
  vyre__id range = make_u32(m, VYRE__OP_BIT_RANGE, from, count);
  return range ? make_bits(m, VYRE__OP_INSERT, x, y, range) : 0;
}

vyre__id vyre__ir_build_unary(vyre__ir_builder *m, vyre__op op, vyre__id a) {
  if (!a || !is_form(m, op, VYRE__FORM_UNARY)) return 0;
  vyre__rule rule = vyre__ops[op].rule;
  if (rule == VYRE__RULE_NONE || rule == VYRE__RULE_CAST ||
      rule == VYRE__RULE_BITCAST || rule == VYRE__RULE_PUSH ||
      rule == VYRE__RULE_QUEUE_KEY) {
    return vyre__diagnose(m, "", "use the builder function for it",
                          "'%s' is not a pure operation", vyre__ops[op].text);
  }
  if (op == VYRE__OP_UNIFORM && !vyre__need_procedure(m, "uniform()")) return 0;
  if (vyre__is_aggregate(vyre__type_of(m, a)) || rule == VYRE__RULE_VECTOR) {
    if (vyre__is_no_operand(m, a)) return 0;
    return vyre__vector_unary(m, op, a);
  }
  if (vyre__op_is_workgroup(op) || vyre__op_is_subgroup(op)) {
    if (!vyre__op_is_subgroup(op) &&
        !vyre__need_kernel(m, vyre__ops[op].text)) {
      return 0;
    }
    a = vyre__resolve_type(m, a, VYRE_TYPE_VOID);
    if (!a) return 0;
  }
  if (!takes(m, op, a)) return 0;
  if (op == VYRE__OP_SATURATE) return make_saturate(m, a);
  if (rule == VYRE__RULE_F32_SAME) {
    a = vyre__resolve_type(m, a, VYRE_TYPE_F32);
    if (!a) return 0;
  }
  if (op == VYRE__OP_NEG && m->nodes[a].op == VYRE__OP_LITERAL) {
    return negate_literal(m, a);
  }
  const uint8_t type = op == VYRE__OP_BALLOT ? VYRE_TYPE_U32 : m->nodes[a].type;
  return vyre__append(m, (vyre__node){.op = (uint8_t)op, .type = type, .a = a},
                      vyre__height(m, a));
}

static bool is_value_type(vyre__ir_builder *m, vyre_type type) {
  if (type > VYRE_TYPE_VOID && type < VYRE_TYPE_COUNT) return true;
  vyre__diagnose(m, "", "use bool, u32, i32, u64, i64, f32 or f64",
                 "a cast to unknown type %u", (unsigned)type);
  return false;
}

static vyre__id append_cast(vyre__ir_builder *m, vyre__op op, vyre_type type,
                            vyre__id a) {
  return vyre__append(
      m, (vyre__node){.op = (uint8_t)op, .type = (uint8_t)type, .a = a},
      vyre__height(m, a));
}

/* An untyped literal gets the type that it is cast to, so that u64(1 << 40)
 * is what it looks like. */
vyre__id vyre__ir_build_cast(vyre__ir_builder *m, vyre_type type, vyre__id a) {
  if (!a) return 0;
  if (vyre__is_aggregate(vyre__type_of(m, a))) {
    if (vyre__is_no_operand(m, a)) return 0;
    return vyre__vector_cast(m, VYRE__OP_CAST, type, a);
  }
  if (!is_value_type(m, type)) return 0;
  unsigned from = vyre__type_of(m, a);
  if ((from == VYRE__TYPE_INT && vyre__type_is_integer(type)) ||
      (from == VYRE__TYPE_FLOAT && vyre__type_is_float(type))) {
    return vyre__resolve_type(m, a, type);
  }
  a = vyre__resolve_type(m, a, VYRE_TYPE_VOID);
  return a ? append_cast(m, VYRE__OP_CAST, type, a) : 0;
}

/* Returns the type that a literal takes as the operand of a bitcast to @p
 * type. */
static vyre_type bits_type(const vyre__ir_builder *m, vyre__id a,
                           vyre_type type) {
  bool wide = vyre__type_bits(type) == 64;
  if (vyre__type_of(m, a) == VYRE__TYPE_FLOAT) {
    return wide ? VYRE_TYPE_F64 : VYRE_TYPE_F32;
  }
  if (m->nodes[a].op == VYRE__OP_LITERAL && m->nodes[a].aux) {
    return wide ? VYRE_TYPE_I64 : VYRE_TYPE_I32;
  }
  return wide ? VYRE_TYPE_U64 : VYRE_TYPE_U32;
}

vyre__id vyre__ir_build_bitcast(vyre__ir_builder *m, vyre_type type,
                                vyre__id a) {
  if (!a || !is_value_type(m, type)) return 0;
  if (vyre__type_is_untyped(vyre__type_of(m, a)) && type != VYRE_TYPE_BOOL) {
    a = vyre__resolve_type(m, a, bits_type(m, a, type));
    if (!a) return 0;
  }
  if (vyre__is_no_operand(m, a)) return 0;
  unsigned from = vyre__type_of(m, a);
  const unsigned scalar =
      vyre__is_vector(from) ? vyre__component_type(from) : from;
  if (scalar == VYRE_TYPE_BOOL || type == VYRE_TYPE_BOOL ||
      vyre__type_bits(scalar) != vyre__type_bits(type)) {
    return vyre__diagnose(
        m, "V079", "use a type of the same width, or convert the value: u64(x)",
        "the bits of %s cannot be reinterpreted as %s", vyre__type_name(from),
        vyre__type_name(type));
  }
  if (vyre__is_vector(from)) {
    return vyre__vector_cast(m, VYRE__OP_BITCAST, type, a);
  }
  return append_cast(m, VYRE__OP_BITCAST, type, a);
}

/* Builds a shift, or with the rule LANES, shuffle and the like. */
static vyre__id make_shift(vyre__ir_builder *m, vyre__op op, vyre__id a,
                           vyre__id b) {
  const bool is_lane = vyre__ops[op].rule == VYRE__RULE_LANES;
  if (!takes(m, op, a)) return 0;
  if (is_lane && !vyre__resolve_type(m, a, VYRE_TYPE_VOID)) return 0;
  unsigned type = vyre__type_of(m, b);
  if (type == VYRE__TYPE_INT) {
    if (!vyre__resolve_type(m, b, VYRE_TYPE_U32)) return 0;
  } else if (type != VYRE_TYPE_U32) {
    return vyre__diagnose_at(
        m, b, "V078", is_lane ? "cast it: u32(n)" : "cast the count: u32(n)",
        is_lane ? "the second value of '%s' must be u32, not %s"
                : "the count of '%s' must be u32, not %s",
        vyre__ops[op].text, vyre__type_name(type));
  }
  return vyre__append(
      m,
      (vyre__node){.op = (uint8_t)op, .type = m->nodes[a].type, .a = a, .b = b},
      vyre__height2(m, a, b));
}

vyre__id vyre__ir_build_binary(vyre__ir_builder *m, vyre__op op, vyre__id a,
                               vyre__id b) {
  if (!a || !b || !is_form(m, op, VYRE__FORM_BINARY)) return 0;
  vyre__rule rule = vyre__ops[op].rule;
  if (rule == VYRE__RULE_LANES && vyre__is_vector(vyre__type_of(m, a)) &&
      !vyre__is_aggregate(vyre__type_of(m, b))) {
    return make_shift(m, op, a, b);
  }
  if (rule == VYRE__RULE_VECTOR || vyre__is_aggregate(vyre__type_of(m, a)) ||
      vyre__is_aggregate(vyre__type_of(m, b))) {
    if (vyre__is_no_operand(m, a) || vyre__is_no_operand(m, b)) return 0;
    return vyre__vector_binary(m, op, a, b);
  }
  if (rule == VYRE__RULE_SHIFT || rule == VYRE__RULE_LANES) {
    return make_shift(m, op, a, b);
  }
  if (rule == VYRE__RULE_U32) return make_u32(m, op, a, b);
  if (!takes(m, op, a) || !takes(m, op, b) || !agree(m, op, a, b)) return 0;
  if (rule == VYRE__RULE_F32_SAME) {
    a = vyre__resolve_type(m, a, VYRE_TYPE_F32);
    b = vyre__resolve_type(m, b, VYRE_TYPE_F32);
    if (!a || !b) return 0;
  }
  if (op == VYRE__OP_STEP) return make_step(m, a, b);
  unsigned type = vyre__type_of(m, a);
  if (rule == VYRE__RULE_COMPARE_ANY || rule == VYRE__RULE_COMPARE_NUMBER) {
    /* The result is bool, so nothing else resolves the operands. */
    if (!vyre__resolve_type(m, a, VYRE_TYPE_VOID)) return 0;
    if (!vyre__resolve_type(m, b, VYRE_TYPE_VOID)) return 0;
    type = VYRE_TYPE_BOOL;
  }
  return vyre__append(
      m, (vyre__node){.op = (uint8_t)op, .type = (uint8_t)type, .a = a, .b = b},
      vyre__height2(m, a, b));
}

vyre__id vyre__ir_build_ternary(vyre__ir_builder *m, vyre__op op, vyre__id a,
                                vyre__id b, vyre__id c) {
  if (!a || !b || !c || !is_form(m, op, VYRE__FORM_TERNARY)) return 0;
  if (vyre__is_aggregate(vyre__type_of(m, a)) ||
      vyre__is_aggregate(vyre__type_of(m, b)) ||
      vyre__is_aggregate(vyre__type_of(m, c))) {
    if (vyre__is_no_operand(m, a) || vyre__is_no_operand(m, b) ||
        vyre__is_no_operand(m, c)) {
      return 0;
    }
    return vyre__vector_ternary(m, op, a, b, c);
  }
  if (vyre__ops[op].rule == VYRE__RULE_EXTRACT ||
      vyre__ops[op].rule == VYRE__RULE_INSERT) {
    return make_bits(m, op, a, b, c);
  }
  if (vyre__ops[op].rule == VYRE__RULE_SELECT) {
    if (op == VYRE__OP_SELECT && vyre__type_of(m, a) != VYRE_TYPE_BOOL &&
        vyre__type_of(m, c) == VYRE_TYPE_BOOL) {
      return vyre__diagnose_at(m, a, "V067",
                               "write the condition first: select(c, x, y) is "
                               "x if c is true, otherwise y",
                               "the condition of select must be bool, not %s",
                               vyre__type_name(vyre__type_of(m, a)));
    }
    if (!vyre__expect(m, a, VYRE_TYPE_BOOL, "V067",
                      op == VYRE__OP_SELECT ? "the condition of select"
                                            : "the condition of ?:") ||
        !agree(m, op, b, c)) {
      return 0;
    }
  } else {
    if (!takes(m, op, a) || !takes(m, op, b) || !takes(m, op, c)) return 0;
    /* The third call passes a type that b got from c on to a. */
    if (!agree(m, op, a, b) || !agree(m, op, b, c) || !agree(m, op, a, b)) {
      return 0;
    }
    if (op == VYRE__OP_CLAMP) return make_clamp(m, a, b, c);
  }
  unsigned height = vyre__height2(m, a, b), more = vyre__height(m, c);
  return vyre__append(
      m,
      (vyre__node){
          .op = (uint8_t)op, .type = m->nodes[b].type, .a = a, .b = b, .c = c},
      height > more ? height : more);
}

/* --- atomics and push ------------------------------------------------------*/

/* Reports an element type that an atomic does not support. */
static void diagnose_atomic(vyre__ir_builder *m, vyre__op op,
                            const vyre_buffer_decl *decl) {
  char fix[160] = "declare the buffer u32, i32, u64 or i64";
  const bool is_float = decl->type == 0 && (decl->element == VYRE_ELEMENT_F32 ||
                                            decl->element == VYRE_ELEMENT_F64);
  if (op == VYRE__OP_ATOMIC_ADD && is_float) {
    snprintf(fix, sizeof fix,
             decl->kind == VYRE_MEMORY_SHARED
                 ? "declare an exact sum: shared %.60s : sum_%s[%u];"
                 : "declare an exact sum: buffer %.60s : read_write sum_%s[]",
             decl->name, vyre_element_name(decl->element), decl->count);
  }
  if (vyre__is_sum(decl->element)) {
    snprintf(fix, sizeof fix, "use atomic_add or atomic_merge on sums");
  }
  vyre__diagnose(
      m, "V072", fix,
      "'%s' needs elements of u32, i32, u64 or i64, but '%.100s' has %s",
      vyre__ops[op].text, decl->name,
      decl->type ? vyre__type_name(decl->type)
                 : vyre_element_name(decl->element));
}

/* Checks the buffer and resolves index and value. Returns false after a
 * report. */
static bool atomic_operands(vyre__ir_builder *m, vyre__op op, uint32_t buffer,
                            vyre__id *index, vyre__id *value) {
  const vyre_buffer_decl *decl = vyre__buffer_at(m, buffer);
  if (!decl || !*value) return false;
  *index = vyre__ir_build_index(m, decl, *index);
  if (!*index) return false;
  const bool is_sum = op == VYRE__OP_ATOMIC_ADD && vyre__is_sum(decl->element);
  if (!is_sum && (decl->type || decl->element < VYRE_ELEMENT_U32 ||
                  decl->element > VYRE_ELEMENT_I64)) {
    diagnose_atomic(m, op, decl);
    return false;
  }
  if (!can_change(m, op, decl)) return false;
  if (!vyre__need_procedure(m, "an atomic")) return false;
  if (vyre__is_no_operand(m, *value)) return false;
  *value = vyre__expect(m, *value, vyre__element_type(decl->element), "V069",
                        "the value of an atomic");
  return *value != 0;
}

static vyre__id append_atomic(vyre__ir_builder *m, vyre__op op, uint32_t buffer,
                              vyre__id index, uint32_t c, unsigned height) {
  const vyre_buffer_decl *decl = vyre__buffer_at(m, buffer);
  if (!decl) return 0;
  const vyre_type type = vyre__is_sum(decl->element)
                             ? VYRE_TYPE_VOID
                             : vyre__element_type(decl->element);
  return vyre__append(m,
                      (vyre__node){.op = (uint8_t)op,
                                   .type = (uint8_t)type,
                                   .a = buffer,
                                   .b = index,
                                   .c = c},
                      height);
}

vyre__id vyre__ir_build_atomic(vyre__ir_builder *m, vyre__op op,
                               uint32_t buffer, vyre__id index,
                               vyre__id value) {
  if (op == VYRE__OP_ATOMIC_MERGE) {
    return vyre__ir_build_merge(m, buffer, index, value);
  }
  if (!is_form(m, op, VYRE__FORM_ATOMIC) ||
      !atomic_operands(m, op, buffer, &index, &value)) {
    return 0;
  }
  return append_atomic(m, op, buffer, index, value,
                       vyre__height2(m, index, value));
}

vyre__id vyre__ir_build_atomic_cas(vyre__ir_builder *m, uint32_t buffer,
                                   vyre__id index, vyre__id expected,
                                   vyre__id desired) {
  const vyre__op op = VYRE__OP_ATOMIC_CAS;
  if (!desired || !atomic_operands(m, op, buffer, &index, &expected)) return 0;
  const vyre_buffer_decl *decl = vyre__buffer_at(m, buffer);
  if (!decl || vyre__is_no_operand(m, desired)) return 0;
  vyre_type type = vyre__element_type(decl->element);
  desired = vyre__expect(m, desired, type, "V069", "the value of an atomic");
  if (!desired) return 0;
  uint32_t list =
      vyre__append_list(m, (const uint32_t[]){expected, desired}, 2);
  if (list == VYRE_NO_INDEX) return 0;
  unsigned height = vyre__height2(m, expected, desired);
  unsigned more = vyre__height(m, index);
  return append_atomic(m, op, buffer, index, list,
                       height > more ? height : more);
}
