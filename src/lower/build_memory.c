/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Builds memory accesses: indices with their bounds checks, and conversions
 * between values and elements. */
#include "lower/build_internal.h"

void build_buffers(vyre__lir_writer *lir) {
  for (size_t i = 0; i < lir->program->buffer_count; i++) {
    const vyre_buffer_decl *decl = &lir->program->buffers[i];
    uint32_t size = vyre_element_size(decl->element);
    if (size == 0) size = 1; /* elements of type `bytes` */
    vyre__lir_new_buffer(
        lir, &(vyre__lir_buffer){.name = decl->name,
                                 .source = (uint32_t)i,
                                 .kind = (uint8_t)decl->kind,
                                 .width = (uint8_t)size,
                                 .unit = (uint8_t)size,
                                 .needs_zero = decl->kind == VYRE_MEMORY_SHARED,
                                 .count = decl->count});
  }
}

static vyre__val length_of(vyre__lir_writer *lir, uint32_t buffer) {
  uint32_t count = lir->buffers[buffer].count;
  if (count) return vyre__lir_bits(lir, VYRE_TYPE_U32, count);
  return lir->emit(
      lir, &(vyre__lir_inst){
               .op = VYRE__LIR_LEN, .type = VYRE_TYPE_U32, .aux = buffer});
}

typedef struct access {
  vyre__val index; /* u32 */
  vyre__val check; /* holds if the index is in bounds; 0: proven */
} access;

/* Builds the index of an access and its bounds check. Negative indices and
 * indices above 32 bits are out of bounds. */
static access build_access(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *lir = b->lir;
  vyre__id index_id = node->b;
  vyre_type type = (vyre_type)node_of(b, index_id)->type;
  access p = {.index = build_value(b, index_id)};
  bool wide = type == VYRE_TYPE_U64 || type == VYRE_TYPE_I64;
  vyre__val narrow =
      wide ? vyre__lir_do(lir, VYRE__LIR_TRUNC, VYRE_TYPE_U32, p.index, 0, 0)
           : p.index;
  lir->access_count++;
  if (b->ranges->flags[id] & VYRE__RANGE_INSIDE) {
    lir->proven_count++;
    return (access){narrow, 0};
  }
  vyre__val length = length_of(lir, node->a);
  if (wide) {
    length = vyre__lir_do(lir, VYRE__LIR_ZEXT, VYRE_TYPE_U64, length, 0, 0);
  }
  /* Compares unsigned: a negative 64-bit index is above every length. */
  p.check =
      vyre__lir_do(lir, VYRE__LIR_LT_U, VYRE_TYPE_BOOL, p.index, length, 0);
  if (type == VYRE_TYPE_I32 && vyre__range_of(b->ranges, index_id).lo < 0) {
    vyre__val minus = vyre__lir_bits(lir, VYRE_TYPE_U32, UINT32_MAX);
    vyre__val above =
        vyre__lir_do(lir, VYRE__LIR_LT_S, VYRE_TYPE_BOOL, minus, p.index, 0);
    p.check =
        vyre__lir_do(lir, VYRE__LIR_AND, VYRE_TYPE_BOOL, p.check, above, 0);
  }
  p.index = narrow;
  uint64_t known;
  if (vyre__lir_is_constant(lir, p.check, &known) && known) p.check = 0;
  return p;
}

static uint16_t hints_of(access p) {
  return p.check ? 0 : VYRE__HINT_PROVEN;
}

static vyre_type memory_type(unsigned width) {
  return width == 8 ? VYRE_TYPE_U64 : VYRE_TYPE_U32;
}

static vyre__val extend(vyre__lir_writer *lir, vyre__val a, uint32_t bits) {
  vyre__val count = vyre__lir_bits(lir, VYRE_TYPE_U32, 32 - bits);
  a = vyre__lir_do(lir, VYRE__LIR_SHL, VYRE_TYPE_U32, a, count, 0);
  return vyre__lir_do(lir, VYRE__LIR_SHR_S, VYRE_TYPE_U32, a, count, 0);
}

/* Operations that convert memory to the value type of an element, and back.
 * NONE: the bits are the value. */
typedef struct conversion {
  uint8_t op, type;
} conversion;

static const struct {
  conversion load, store;
} conversions[VYRE_ELEMENT_COUNT] = {
    [VYRE_ELEMENT_BOOL] = {.store = {VYRE__LIR_ZEXT, VYRE_TYPE_U32}},
    [VYRE_ELEMENT_F16] = {{VYRE__LIR_FROM_F16, VYRE_TYPE_F32},
                          {VYRE__LIR_TO_F16, VYRE_TYPE_U32}},
    [VYRE_ELEMENT_BF16] = {{VYRE__LIR_FROM_BF16, VYRE_TYPE_F32},
                           {VYRE__LIR_TO_BF16, VYRE_TYPE_U32}},
    [VYRE_ELEMENT_F32] = {{VYRE__LIR_BITCAST, VYRE_TYPE_F32},
                          {VYRE__LIR_FBITS, VYRE_TYPE_U32}},
    [VYRE_ELEMENT_F64] = {{VYRE__LIR_BITCAST, VYRE_TYPE_F64},
                          {VYRE__LIR_FBITS, VYRE_TYPE_U64}}};

static vyre__val convert(vyre__lir_writer *lir, conversion c, vyre__val a) {
  return c.op == VYRE__LIR_NONE ? a : vyre__lir_do(lir, c.op, c.type, a, 0, 0);
}

static vyre__val widen(vyre__lir_writer *lir, vyre_element element,
                       vyre__val a) {
  if (element == VYRE_ELEMENT_BOOL) {
    return vyre__lir_do(lir, VYRE__LIR_NE, VYRE_TYPE_BOOL, a,
                        vyre__lir_bits(lir, VYRE_TYPE_U32, 0), 0);
  }
  if (element == VYRE_ELEMENT_I8) return extend(lir, a, 8);
  if (element == VYRE_ELEMENT_I16) return extend(lir, a, 16);
  return convert(lir, conversions[element].load, a);
}

static vyre__val narrow(vyre__lir_writer *lir, vyre_element element,
                        vyre__val a) {
  return convert(lir, conversions[element].store, a);
}

/* Converts a value to integer bits of 4 or 8 bytes. */
static vyre__val to_bits(vyre__lir_writer *lir, vyre__val a) {
  vyre_type type = vyre__lir_type_of(lir, a);
  if (type == VYRE_TYPE_BOOL) {
    return vyre__lir_do(lir, VYRE__LIR_ZEXT, VYRE_TYPE_U32, a, 0, 0);
  }
  if (type == VYRE_TYPE_F32 || type == VYRE_TYPE_F64) {
    return vyre__lir_do(lir, VYRE__LIR_BITCAST,
                        type == VYRE_TYPE_F32 ? VYRE_TYPE_U32 : VYRE_TYPE_U64,
                        a, 0, 0);
  }
  return a;
}

vyre__val build_load(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *lir = b->lir;
  vyre_element element = b->program->buffers[node->a].element;
  access p = build_access(b, id);
  if (lir->no_memory) return 0;
  vyre_type type = memory_type(lir->buffers[node->a].width);
  vyre__val bits =
      lir->emit(lir, &(vyre__lir_inst){.op = VYRE__LIR_LOAD,
                                       .type = (uint8_t)type,
                                       .hints = hints_of(p),
                                       .aux = node->a,
                                       .v = {p.index, p.check, 0, 0}});
  return widen(lir, element, bits);
}

void build_store(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *lir = b->lir;
  vyre_element element = b->program->buffers[node->a].element;
  access p = build_access(b, id);
  vyre__val value = build_value(b, node->c);
  /* The NaN payload becomes visible only when a value is copied from shared
   * memory to a buffer or converted to an integer. NaNs are made canonical
   * there, not here. */
  bool is_any_nan =
      lir->buffers[node->a].kind == VYRE_MEMORY_SHARED &&
      (element == VYRE_ELEMENT_F32 || element == VYRE_ELEMENT_F64);
  value = is_any_nan ? to_bits(lir, value) : narrow(lir, element, value);
  if (lir->no_memory) return;
  lir->buffers[node->a].is_written = true;
  lir->emit(lir, &(vyre__lir_inst){.op = VYRE__LIR_STORE,
                                   .hints = hints_of(p),
                                   .aux = node->a,
                                   .v = {p.index, value, p.check, 0}});
}

vyre__val build_atomic(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *lir = b->lir;
  vyre__lir_op op = build_operation((vyre__op)node->op, node->type);
  access p = build_access(b, id);
  vyre__lir_inst inst = {.op = (uint8_t)op,
                         .type = (uint8_t)vyre__lir_type((vyre_type)node->type),
                         .hints = hints_of(p),
                         .aux = node->a,
                         .a = p.index};
  if (op == VYRE__LIR_ATOMIC_CAS) {
    inst.b = build_value(b, b->program->lists[node->c]);
    inst.c = build_value(b, b->program->lists[node->c + 1]);
    inst.d = p.check;
  } else {
    inst.b = build_value(b, node->c);
    inst.c = p.check;
  }
  if (lir->no_memory) return 0;
  lir->buffers[node->a].is_written = true;
  lir->buffers[node->a].is_atomic = true;
  return lir->emit(lir, &inst);
}

static vyre__val from_bits(vyre__lir_writer *lir, vyre_type type, vyre__val a) {
  if (type == VYRE_TYPE_BOOL) {
    return vyre__lir_do(lir, VYRE__LIR_NE, VYRE_TYPE_BOOL, a,
                        vyre__lir_bits(lir, VYRE_TYPE_U32, 0), 0);
  }
  return vyre__lir_do(lir, VYRE__LIR_BITCAST, type, a, 0, 0);
}

/* Builds uniform(x). Local invocation 0 stores its value to shared memory and
 * all invocations load it. The second barrier keeps the memory valid until all
 * have loaded. */
vyre__val build_uniform(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *lir = b->lir;
  vyre__val value = build_value(b, node->a);
  vyre_type type = vyre__lir_type((vyre_type)node->type);
  if (lir->workgroup[0] * lir->workgroup[1] * lir->workgroup[2] == 1) {
    return value;
  }
  vyre__val bits = to_bits(lir, value);
  if (lir->no_memory) return 0;
  unsigned wide = vyre__lir_type_of(lir, bits) == VYRE_TYPE_U64;
  if (lir->uniform_buffer[wide] == VYRE_NO_INDEX) {
    lir->uniform_buffer[wide] = vyre__lir_new_buffer(
        lir, &(vyre__lir_buffer){.name = wide ? "uniform64" : "uniform32",
                                 .source = VYRE_NO_INDEX,
                                 .kind = VYRE_MEMORY_SHARED,
                                 .width = wide ? 8 : 4,
                                 .unit = wide ? 8 : 4,
                                 .is_written = true,
                                 .count = 1});
  }
  uint32_t buffer = lir->uniform_buffer[wide];
  vyre__val zero = vyre__lir_bits(lir, VYRE_TYPE_U32, 0), any = zero;
  for (unsigned axis = 0; axis < 3; axis++) {
    if (lir->workgroup[axis] == 1) continue;
    vyre__val id_on_axis = lir->emit(
        lir, &(vyre__lir_inst){
                 .op = VYRE__LIR_LOCAL_ID, .type = VYRE_TYPE_U32, .aux = axis});
    any = vyre__lir_do(lir, VYRE__LIR_OR, VYRE_TYPE_U32, any, id_on_axis, 0);
  }
  vyre__val first =
      vyre__lir_do(lir, VYRE__LIR_EQ, VYRE_TYPE_BOOL, any, zero, 0);
  lir->emit(lir, &(vyre__lir_inst){.op = VYRE__LIR_STORE,
                                   .aux = buffer,
                                   .v = {zero, bits, first, 0}});
  vyre__lir_plain(lir, VYRE__LIR_BARRIER);
  bits = lir->emit(
      lir, &(vyre__lir_inst){.op = VYRE__LIR_LOAD,
                             .type = wide ? VYRE_TYPE_U64 : VYRE_TYPE_U32,
                             .aux = buffer,
                             .a = zero});
  vyre__lir_plain(lir, VYRE__LIR_BARRIER);
  return from_bits(lir, type, bits);
}
