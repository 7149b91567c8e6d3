/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inlining replaces reductions and scans over a workgroup by shared memory that
 * the program does not declare, and barriers.
 *
 * A reduction is an atomic of all invocations on one element, which invocation 0
 * sets first. A float sum is an exact sum. The smallest and largest float are
 * found as integers in the same order. A scan of integers adds neighbours at
 * distances 1, 2, 4 and so on. In a scan of floats, invocation 0 adds one number
 * after the other to an exact sum. */
#include <stdio.h>
#include <string.h>

#include "analyze/inline/inliner.h"
#include "analyze/walk.h"
#include "base/memory.h"

static bool is_scan(unsigned op) {
  return op == VYRE__OP_SCAN_ADD || op == VYRE__OP_SCAN_ADD_BEFORE;
}

static vyre_element element_of(unsigned type) {
  static const uint8_t elements[VYRE_TYPE_COUNT] = {
      [VYRE_TYPE_U32] = VYRE_ELEMENT_U32, [VYRE_TYPE_I32] = VYRE_ELEMENT_I32,
      [VYRE_TYPE_U64] = VYRE_ELEMENT_U64, [VYRE_TYPE_I64] = VYRE_ELEMENT_I64,
      [VYRE_TYPE_F32] = VYRE_ELEMENT_F32, [VYRE_TYPE_F64] = VYRE_ELEMENT_F64};
  return (vyre_element)elements[type];
}

/* Returns the element type of the shared memory of a reduction. */
static vyre_element kept_as(unsigned op, unsigned type) {
  const bool is_sum = op == VYRE__OP_REDUCE_ADD || is_scan(op);
  if (type == VYRE_TYPE_F32) {
    return is_sum ? VYRE_ELEMENT_SUM_F32 : VYRE_ELEMENT_U32;
  }
  if (type == VYRE_TYPE_F64) {
    return is_sum ? VYRE_ELEMENT_SUM_F64 : VYRE_ELEMENT_U64;
  }
  return element_of(type);
}

/* --- memory ----------------------------------------------------------------*/

static uint32_t invocations(const inliner *in) {
  const uint32_t *size = in->program->workgroup;
  return size[0] * size[1] * size[2];
}

static bool is_name(const vyre__kernel *kernel, const char *name) {
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    if (strcmp(kernel->buffers[i].name, name) == 0) return true;
  }
  return false;
}

static void declare(inliner *in, vyre__kernel *kernel, vyre_buffer_decl *decls,
                    uint32_t *slot, vyre_element element, uint32_t count) {
  enum { LENGTH = 24 };
  char *name = vyre_arena_alloc(&in->scratch, LENGTH, 1);
  if (*slot || !name) {
    in->no_memory |= !name;
    return;
  }
  do {
    snprintf(name, LENGTH, "workgroup_%u", (unsigned)++in->unique);
  } while (is_name(kernel, name));
  *slot = kernel->buffer_count++;
  decls[*slot] = (vyre_buffer_decl){.name = name,
                                    .kind = VYRE_MEMORY_SHARED,
                                    .access = VYRE_ACCESS_WORKGROUP,
                                    .element = element,
                                    .count = count,
                                    .reserved = {1}};
}

void inline_add_hidden(inliner *in, vyre__kernel *kernel) {
  const vyre_program *p = in->program;
  const uint32_t most = kernel->buffer_count + 2 * VYRE_ELEMENT_COUNT + 1;
  vyre_buffer_decl *decls = NULL;
  /* Slot 0 means none: the memory begins at buffer 1 at least. */
  for (vyre__id id = 1; id < p->node_count; id++) {
    const vyre__node *node = &p->nodes[id];
    if (!vyre__op_is_workgroup(node->op)) continue;
    if (!decls) {
      decls = vyre__arena_array(&in->scratch, most, sizeof *decls);
      if (!decls) {
        in->no_memory = true;
        return;
      }
      if (kernel->buffer_count > 0) {
        memcpy(decls, kernel->buffers, kernel->buffer_count * sizeof *decls);
      }
      kernel->buffers = decls;
      kernel->buffer_places = NULL;
      uint32_t unused = 0; /* so that no slot in use has number 0 */
      if (kernel->buffer_count == 0) {
        declare(in, kernel, decls, &unused, VYRE_ELEMENT_U32, 1);
      }
    }
    const vyre_element kept = kept_as(node->op, node->type);
    const bool is_integer =
        kept != VYRE_ELEMENT_SUM_F32 && kept != VYRE_ELEMENT_SUM_F64;
    if (!is_scan(node->op) || !is_integer) {
      declare(in, kernel, decls, &in->hidden[kept], kept, 1);
    }
    if (is_scan(node->op)) {
      const vyre_element element = element_of(node->type);
      declare(in, kernel, decls, &in->arrays[element], element,
              invocations(in));
    }
  }
}

/* --- statements ------------------------------------------------------------*/

static vyre__id literal(inliner *in, vyre_type type, uint64_t bits) {
  return vyre__ir_build_literal(&in->builder, type, bits);
}

static vyre__id zero(inliner *in) {
  return literal(in, VYRE_TYPE_U32, 0);
}

static vyre__id local_of(inliner *in, uint32_t local) {
  return vyre__ir_build_local(&in->builder, local);
}

static void barrier(inliner *in) {
  vyre__statement(&in->builder,
                  vyre__ir_build_simple(&in->builder, VYRE__OP_BARRIER));
}

/* Returns whether this is invocation 0 of the workgroup. */
static vyre__id is_first(inliner *in) {
  vyre__ir_builder *m = &in->builder;
  vyre__id any = vyre__ir_build_axis(m, VYRE__OP_LOCAL_ID, 0);
  for (unsigned axis = 1; axis < 3; axis++) {
    any = vyre__ir_build_binary(
        m, VYRE__OP_OR, any, vyre__ir_build_axis(m, VYRE__OP_LOCAL_ID, axis));
  }
  return vyre__ir_build_binary(m, VYRE__OP_EQ, any, zero(in));
}

/* Returns the number of this invocation in the workgroup, x fastest. */
static vyre__id lane(inliner *in) {
  vyre__ir_builder *m = &in->builder;
  const uint32_t *size = in->program->workgroup;
  vyre__id at = vyre__ir_build_axis(m, VYRE__OP_LOCAL_ID, 2);
  for (unsigned axis = 2; axis-- > 0;) {
    at = vyre__ir_build_binary(m, VYRE__OP_MUL, at,
                               literal(in, VYRE_TYPE_U32, size[axis]));
    at = vyre__ir_build_binary(m, VYRE__OP_ADD, at,
                               vyre__ir_build_axis(m, VYRE__OP_LOCAL_ID, axis));
  }
  return at;
}

static void end_if(inliner *in, vyre__id condition, vyre__mark mark) {
  vyre__ir_builder *m = &in->builder;
  vyre__id then = vyre__block_end(m, mark);
  vyre__statement(m, vyre__ir_build_if(m, condition, then, 0));
}

static void add_to(inliner *in, uint32_t buffer, vyre__op op, vyre__id value) {
  vyre__ir_builder *m = &in->builder;
  vyre__statement(
      m, vyre__ir_build_eval(
             m, vyre__ir_build_atomic(m, op, buffer, zero(in), value)));
}

/* --- reductions ------------------------------------------------------------*/

static vyre__op atomic_of(unsigned op) {
  static const uint8_t ops[] = {VYRE__OP_ATOMIC_ADD, VYRE__OP_ATOMIC_MIN,
                                VYRE__OP_ATOMIC_MAX, VYRE__OP_ATOMIC_AND,
                                VYRE__OP_ATOMIC_OR,  VYRE__OP_ATOMIC_XOR};
  return (vyre__op)ops[op - VYRE__OP_REDUCE_ADD];
}

/* Returns the value that changes nothing, as bits of @p type. */
static uint64_t identity(unsigned op, unsigned type) {
  const bool wide = vyre__is_wide(type);
  const uint64_t ones = wide ? UINT64_MAX : UINT32_MAX;
  const bool is_signed = type == VYRE_TYPE_I32 || type == VYRE_TYPE_I64;
  if (op == VYRE__OP_REDUCE_AND) return ones;
  if (op == VYRE__OP_REDUCE_MIN) return is_signed ? ones >> 1 : ones;
  if (op == VYRE__OP_REDUCE_MAX) return is_signed ? ones ^ ones >> 1 : 0;
  return 0;
}

/* Returns an integer in the order of floats, from the bits of one. NaN becomes
 * the identity, whose float is a NaN. */
static vyre__id key_of(inliner *in, unsigned op, vyre__id value) {
  vyre__ir_builder *m = &in->builder;
  const bool wide = vyre__type_of(m, value) == VYRE_TYPE_F64;
  const vyre_type type = wide ? VYRE_TYPE_U64 : VYRE_TYPE_U32;
  const vyre_type is_signed = wide ? VYRE_TYPE_I64 : VYRE_TYPE_I32;
  const uint64_t top = wide ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
  const uint32_t bits =
      inline_local(in, "bits", false,
                   vyre__ir_build_bitcast(m, type, inline_again(in, value)));
  vyre__id sign = vyre__ir_build_binary(
      m, VYRE__OP_SHR, vyre__ir_build_cast(m, is_signed, local_of(in, bits)),
      literal(in, VYRE_TYPE_U32, wide ? 63 : 31));
  vyre__id flip =
      vyre__ir_build_binary(m, VYRE__OP_OR, vyre__ir_build_cast(m, type, sign),
                            literal(in, type, top));
  vyre__id key =
      vyre__ir_build_binary(m, VYRE__OP_XOR, local_of(in, bits), flip);
  vyre__id is_nan = vyre__ir_build_binary(
      m, VYRE__OP_NE, inline_again(in, value), inline_again(in, value));
  return vyre__ir_build_ternary(m, VYRE__OP_SELECT, is_nan,
                                literal(in, type, identity(op, type)), key);
}

/* Returns the float of a key. */
static vyre__id float_of(inliner *in, vyre_type type, vyre__id key) {
  vyre__ir_builder *m = &in->builder;
  const bool wide = type == VYRE_TYPE_F64;
  const vyre_type bits = wide ? VYRE_TYPE_U64 : VYRE_TYPE_U32;
  const uint64_t top = wide ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
  const uint64_t ones = wide ? UINT64_MAX : UINT32_MAX;
  const uint32_t local = inline_local(in, "key", false, key);
  vyre__id is_plus = vyre__ir_build_binary(m, VYRE__OP_GE, local_of(in, local),
                                           literal(in, bits, top));
  vyre__id flip =
      vyre__ir_build_ternary(m, VYRE__OP_SELECT, is_plus,
                             literal(in, bits, top), literal(in, bits, ones));
  return vyre__ir_build_bitcast(
      m, type,
      vyre__ir_build_binary(m, VYRE__OP_XOR, local_of(in, local), flip));
}

static vyre__id reduce_sum(inliner *in, vyre_type type, vyre__id value) {
  vyre__ir_builder *m = &in->builder;
  const vyre_element kept = kept_as(VYRE__OP_REDUCE_ADD, type);
  const uint32_t buffer = in->hidden[kept];
  vyre__id first = is_first(in);
  vyre__mark mark = vyre__block_begin(m);
  inline_clear_sum(in, buffer, kept);
  end_if(in, first, mark);
  barrier(in);
  add_to(in, buffer, VYRE__OP_ATOMIC_ADD, value);
  barrier(in);
  const uint32_t sum = inline_local(in, "sum", true, literal(in, type, 0));
  first = is_first(in);
  mark = vyre__block_begin(m);
  inline_assign(in, sum, inline_round_sum(in, buffer, kept));
  end_if(in, first, mark);
  return vyre__ir_build_unary(m, VYRE__OP_UNIFORM, local_of(in, sum));
}

static vyre__id reduce(inliner *in, unsigned op, vyre_type type,
                       vyre__id value) {
  vyre__ir_builder *m = &in->builder;
  if (vyre__is_float(type) && op == VYRE__OP_REDUCE_ADD) {
    return reduce_sum(in, type, value);
  }
  const vyre_element kept = kept_as(op, type);
  const vyre_type kept_type = vyre__element_type(kept);
  const uint32_t buffer = in->hidden[kept];
  vyre__id first = is_first(in);
  vyre__mark mark = vyre__block_begin(m);
  vyre__statement(
      m, vyre__ir_build_store(m, buffer, zero(in),
                              literal(in, kept_type, identity(op, kept_type))));
  end_if(in, first, mark);
  barrier(in);
  add_to(in, buffer, atomic_of(op),
         vyre__is_float(type) ? key_of(in, op, value) : value);
  barrier(in);
  vyre__id all = vyre__ir_build_unary(m, VYRE__OP_UNIFORM,
                                      vyre__ir_build_load(m, buffer, zero(in)));
  return vyre__is_float(type) ? float_of(in, type, all) : all;
}

/* --- scans -----------------------------------------------------------------*/

static vyre__id minus(inliner *in, uint32_t local, uint32_t distance) {
  return vyre__ir_build_binary(&in->builder, VYRE__OP_SUB, local_of(in, local),
                               literal(in, VYRE_TYPE_U32, distance));
}

/* A load before the array, at an index that wraps, gives 0. */
static void scan_integers(inliner *in, uint32_t array, uint32_t at,
                          vyre__id value) {
  vyre__ir_builder *m = &in->builder;
  const uint32_t sum = inline_local(in, "sum", true, value);
  vyre__statement(
      m, vyre__ir_build_store(m, array, local_of(in, at), local_of(in, sum)));
  barrier(in);
  for (uint32_t d = 1; d < invocations(in); d *= 2) {
    const uint32_t before = inline_local(
        in, "before", false, vyre__ir_build_load(m, array, minus(in, at, d)));
    barrier(in);
    inline_assign(in, sum,
                  vyre__ir_build_binary(m, VYRE__OP_ADD, local_of(in, before),
                                        local_of(in, sum)));
    vyre__statement(
        m, vyre__ir_build_store(m, array, local_of(in, at), local_of(in, sum)));
    barrier(in);
  }
}

/* Invocation 0 replaces each number by the sum up to it. */
static void scan_floats(inliner *in, uint32_t array, uint32_t at,
                        vyre_type type, vyre__id value) {
  vyre__ir_builder *m = &in->builder;
  const vyre_element kept = kept_as(VYRE__OP_SCAN_ADD, type);
  const uint32_t buffer = in->hidden[kept];
  vyre__statement(m, vyre__ir_build_store(m, array, local_of(in, at), value));
  barrier(in);
  vyre__id first = is_first(in);
  vyre__mark mark = vyre__block_begin(m);
  inline_clear_sum(in, buffer, kept);
  vyre__for loop;
  vyre__for_begin(m, &loop, "scan", 4, VYRE_TYPE_U32, VYRE__LOOP_LT, zero(in),
                  literal(in, VYRE_TYPE_U32, invocations(in)),
                  literal(in, VYRE_TYPE_U32, 1));
  vyre__mark body = vyre__block_begin(m);
  add_to(in, buffer, VYRE__OP_ATOMIC_ADD,
         vyre__ir_build_load(m, array, local_of(in, loop.local)));
  vyre__id sum = inline_round_sum(in, buffer, kept);
  vyre__statement(
      m, vyre__ir_build_store(m, array, local_of(in, loop.local), sum));
  vyre__statement(m, vyre__for_end(m, &loop, vyre__block_end(m, body)));
  end_if(in, first, mark);
  barrier(in);
}

static vyre__id scan(inliner *in, unsigned op, vyre_type type, vyre__id value) {
  vyre__ir_builder *m = &in->builder;
  const uint32_t array = in->arrays[element_of(type)];
  const uint32_t at = inline_local(in, "lane", false, lane(in));
  if (vyre__is_float(type)) {
    scan_floats(in, array, at, type, value);
  } else {
    scan_integers(in, array, at, value);
  }
  const uint32_t out = inline_local(
      in, "scan", false,
      vyre__ir_build_load(m, array,
                          minus(in, at, op == VYRE__OP_SCAN_ADD_BEFORE)));
  barrier(in); /* the array may be used again */
  return local_of(in, out);
}

vyre__id inline_workgroup(inliner *in, frame *f, vyre__id id) {
  const vyre__node node = *inline_node(in, id);
  const vyre__id value = inline_stable(in, inline_value(in, f, node.a));
  inline_at(in, id);
  const vyre_type type = (vyre_type)node.type;
  if (is_scan(node.op)) return scan(in, node.op, type, value);
  return inline_let(in, reduce(in, node.op, type, value));
}
