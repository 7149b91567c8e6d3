/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Builds memory accesses: indices with their bounds checks, and conversions
 * between values and elements. */
#include "ir/scalar.h"
#include "ir/sum.h"
#include "lower/build_internal.h"

/* Returns the elements of a table in memory. */
static const unsigned char *table_bytes(vyre__lir_writer *lir,
                                        const vyre_buffer_decl *decl,
                                        const vyre__table *table) {
  const uint32_t size = vyre_element_size(decl->element);
  unsigned char *bytes =
      vyre_arena_alloc(lir->tables, (size_t)table->length * size, 8);
  if (!bytes) {
    lir->no_memory = true;
    return NULL;
  }
  for (uint32_t i = 0; i < table->length; i++) {
    vyre__element_store(decl->element, bytes + (size_t)i * size,
                        table->values[i]);
  }
  return bytes;
}

static bool has_grid_barrier(const vyre_program *program) {
  for (uint32_t i = 1; i < program->node_count; i++) {
    if (program->nodes[i].op == VYRE__OP_GRID_BARRIER) return true;
  }
  return false;
}

/* Adds a table, or an array of which each invocation has its own elements. In
 * shared memory, element i of invocation l is at i * size + l. There it survives
 * a grid barrier. */
static void build_hidden(vyre__lir_writer *lir, uint32_t buffer) {
  const vyre_buffer_decl *decl = &lir->program->buffers[buffer];
  const vyre__hidden *hidden = vyre__hidden_of(lir->program, buffer);
  const uint32_t size = vyre_element_size(decl->element);
  const bool is_private = !hidden->table && lir->target->private_arrays &&
                          !has_grid_barrier(lir->program);
  const uint32_t lanes =
      hidden->table || is_private
          ? 1
          : lir->workgroup[0] * lir->workgroup[1] * lir->workgroup[2];
  vyre__lir_new_buffer(
      lir, &(vyre__lir_buffer){
               .name = hidden->table ? "table" : "array",
               .source = VYRE_NO_INDEX,
               .kind = VYRE_MEMORY_SHARED,
               .width = (uint8_t)size,
               .unit = size,
               .count = decl->count * lanes,
               .is_private = is_private,
               .table = hidden->table ? table_bytes(lir, decl, hidden->table)
                                      : NULL});
}

void build_buffers(vyre__lir_writer *lir) {
  for (size_t i = 0; i < lir->program->buffer_count; i++) {
    const vyre_buffer_decl *decl = &lir->program->buffers[i];
    if (vyre__hidden_of(lir->program, (uint32_t)i)) {
      build_hidden(lir, (uint32_t)i);
      continue;
    }
    uint32_t size = vyre_element_size(decl->element);
    if (size == 0) size = 1; /* elements of type `bytes` */
    if (vyre__is_sum(decl->element)) size = sizeof(uint64_t);
    const vyre__struct *own = vyre__program_struct(lir->program, decl->type);
    if (own) size = own->width;
    vyre__lir_new_buffer(
        lir, &(vyre__lir_buffer){
                 .name = vyre__is_hidden(decl) ? "workgroup" : decl->name,
                 .source = vyre__is_hidden(decl) ? VYRE_NO_INDEX : (uint32_t)i,
                 .kind = (uint8_t)decl->kind,
                 .width = (uint8_t)size,
                 .unit = vyre_buffer_stride(decl),
                 .needs_zero = decl->kind == VYRE_MEMORY_SHARED,
                 .count = decl->count});
  }
}

static vyre__val length_of(vyre__lir_writer *lir, uint32_t buffer) {
  uint32_t count = lir->buffers[buffer].count;
  if (vyre__hidden_of(lir->program, buffer)) {
    count = lir->program->buffers[buffer].count;
  }
  if (count) return vyre__lir_bits(lir, VYRE_TYPE_U32, count);
  return lir->emit(
      lir, &(vyre__lir_inst){
               .op = VYRE__LIR_LEN, .type = VYRE_TYPE_U32, .aux = buffer});
}

typedef struct access {
  vyre__val index; /* u32 */
  vyre__val check; /* holds if the index is in bounds; 0: proven */
} access;

/* Builds the test that an index is below @p length, a u32. */
static vyre__val build_check(build *b, vyre__id index_id, vyre__val index,
                             vyre__val length) {
  vyre__lir_writer *lir = b->lir;
  const vyre_type type = (vyre_type)node_of(b, index_id)->type;
  if (type == VYRE_TYPE_U64 || type == VYRE_TYPE_I64) {
    length = vyre__lir_do(lir, VYRE__LIR_ZEXT, VYRE_TYPE_U64, length, 0, 0);
  }
  /* Compares unsigned: a negative 64-bit index is above every length. */
  vyre__val check =
      vyre__lir_do(lir, VYRE__LIR_LT_U, VYRE_TYPE_BOOL, index, length, 0);
  if (type == VYRE_TYPE_I32 && vyre__range_of(b->ranges, index_id).lo < 0) {
    vyre__val minus = vyre__lir_bits(lir, VYRE_TYPE_U32, UINT32_MAX);
    vyre__val above =
        vyre__lir_do(lir, VYRE__LIR_LT_S, VYRE_TYPE_BOOL, minus, index, 0);
    check = vyre__lir_do(lir, VYRE__LIR_AND, VYRE_TYPE_BOOL, check, above, 0);
  }
  return check;
}

static vyre__val low_half(build *b, vyre__id id, vyre__val value) {
  const vyre_type type = (vyre_type)node_of(b, id)->type;
  if (type != VYRE_TYPE_U64 && type != VYRE_TYPE_I64) return value;
  return vyre__lir_do(b->lir, VYRE__LIR_TRUNC, VYRE_TYPE_U32, value, 0, 0);
}

/* Returns true if dimension @p at of an AT needs no test of its own. */
static bool is_below(const build *b, const vyre__id *at) {
  const vyre__interval index = vyre__range_of(b->ranges, at[0]);
  return index.lo >= 0 && index.hi < vyre__range_of(b->ranges, at[1]).lo;
}

static vyre__val product(vyre__lir_writer *lir, vyre__val a, vyre__val b) {
  uint64_t known;
  if (vyre__lir_is_constant(lir, b, &known) && known == 1) return a;
  return vyre__lir_do(lir, VYRE__LIR_MUL, VYRE_TYPE_U32, a, b, 0);
}

/* Adds b to a. An @p a of 0 stands for a missing value. */
static vyre__val sum(vyre__lir_writer *lir, vyre__val a, vyre__val b) {
  uint64_t known;
  if (!a) return b;
  if (vyre__lir_is_constant(lir, b, &known) && known == 0) return a;
  return vyre__lir_do(lir, VYRE__LIR_ADD, VYRE_TYPE_U32, a, b, 0);
}

/* Builds an index with dimensions: each has its own test. */
static access build_at(build *b, const vyre__node *node, bool is_proven) {
  vyre__lir_writer *lir = b->lir;
  const vyre__id *list = b->program->lists + node->a;
  access p = {0, 0};
  for (uint32_t i = 0; i + 1 < node->b; i += VYRE__AT_STEP) {
    vyre__val index = build_value(b, list[i]);
    if (!is_proven && !is_below(b, list + i)) {
      vyre__val test =
          build_check(b, list[i], index, build_value(b, list[i + 1]));
      p.check = p.check ? vyre__lir_do(lir, VYRE__LIR_AND, VYRE_TYPE_BOOL,
                                       p.check, test, 0)
                        : test;
    }
    p.index = sum(
        lir, p.index,
        product(lir, low_half(b, list[i], index), build_value(b, list[i + 2])));
  }
  p.index = sum(lir, p.index, build_value(b, list[node->b - 1]));
  uint64_t known;
  if (p.check && vyre__lir_is_constant(lir, p.check, &known) && known) {
    p.check = 0;
  }
  return p;
}

/* Returns the place of the element of an array that this invocation owns; of
 * other memory, @p index. */
static vyre__val own_element(build *b, uint32_t buffer, vyre__val index) {
  vyre__lir_writer *lir = b->lir;
  if (!vyre__is_private(lir->program, buffer) ||
      lir->buffers[buffer].is_private) {
    return index;
  }
  vyre__val lane = 0;
  uint32_t size = 1;
  for (unsigned axis = 0; axis < 3; axis++) {
    if (lir->workgroup[axis] > 1) {
      vyre__val id = lir->emit(lir, &(vyre__lir_inst){.op = VYRE__LIR_LOCAL_ID,
                                                      .type = VYRE_TYPE_U32,
                                                      .aux = axis});
      lane = sum(lir, lane,
                 product(lir, id, vyre__lir_bits(lir, VYRE_TYPE_U32, size)));
    }
    size *= lir->workgroup[axis];
  }
  if (!lane) return index;
  index = product(lir, index, vyre__lir_bits(lir, VYRE_TYPE_U32, size));
  return sum(lir, index, lane);
}

/* Builds the index of an access and its bounds check. Negative indices and
 * indices above 32 bits are out of bounds. */
static access build_access(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *lir = b->lir;
  vyre__id index_id = node->b;
  const bool is_proven = b->ranges->flags[id] & VYRE__RANGE_INSIDE;
  lir->access_count++;
  lir->proven_count += is_proven;
  if (node_of(b, index_id)->op == VYRE__OP_AT) {
    access p = build_at(b, node_of(b, index_id), is_proven);
    p.index = own_element(b, node->a, p.index);
    return p;
  }
  access p = {.index = build_value(b, index_id)};
  if (is_proven) {
    return (access){own_element(b, node->a, low_half(b, index_id, p.index)), 0};
  }
  p.check = build_check(b, index_id, p.index, length_of(lir, node->a));
  p.index = own_element(b, node->a, low_half(b, index_id, p.index));
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

/* --- scalars of another size than the accesses of their struct ------------- */

static vyre__val u32_op(vyre__lir_writer *lir, vyre__lir_op op, vyre__val a,
                        uint32_t by) {
  return vyre__lir_do(lir, op, VYRE_TYPE_U32, a,
                      vyre__lir_bits(lir, VYRE_TYPE_U32, by), 0);
}

static vyre__val load_unit(vyre__lir_writer *lir, uint32_t buffer, access p) {
  return lir->emit(lir, &(vyre__lir_inst){.op = VYRE__LIR_LOAD,
                                          .type = VYRE_TYPE_U32,
                                          .hints = hints_of(p),
                                          .aux = buffer,
                                          .v = {p.index, p.check, 0, 0}});
}

static void store_unit(vyre__lir_writer *lir, uint32_t buffer, access p,
                       vyre__val value) {
  lir->emit(lir, &(vyre__lir_inst){.op = VYRE__LIR_STORE,
                                   .hints = hints_of(p),
                                   .aux = buffer,
                                   .v = {p.index, value, p.check, 0}});
}

static access next_unit(vyre__lir_writer *lir, access p) {
  p.index = u32_op(lir, VYRE__LIR_ADD, p.index, 1);
  return p;
}

/* Returns the mask of a scalar of 1 or 2 bytes. */
static uint32_t mask_of(uint32_t size) {
  return size == 1 ? 0xFF : 0xFFFF;
}

/* Loads the bits of a scalar of @p size bytes from units of @p width. @p byte
 * is its position in the unit, if it is smaller. */
static vyre__val load_bits(vyre__lir_writer *lir, uint32_t buffer, access p,
                           uint32_t size, uint32_t width, uint32_t byte) {
  vyre__val low = load_unit(lir, buffer, p);
  if (size < width) {
    if (byte) low = u32_op(lir, VYRE__LIR_SHR_U, low, 8 * byte);
    return u32_op(lir, VYRE__LIR_AND, low, mask_of(size));
  }
  vyre__val high = load_unit(lir, buffer, next_unit(lir, p));
  if (width < 4) {
    high = u32_op(lir, VYRE__LIR_SHL, high, 8 * width);
    return vyre__lir_do(lir, VYRE__LIR_OR, VYRE_TYPE_U32, low, high, 0);
  }
  low = vyre__lir_do(lir, VYRE__LIR_ZEXT, VYRE_TYPE_U64, low, 0, 0);
  high = vyre__lir_do(lir, VYRE__LIR_ZEXT, VYRE_TYPE_U64, high, 0, 0);
  high = vyre__lir_do(lir, VYRE__LIR_SHL, VYRE_TYPE_U64, high,
                      vyre__lir_bits(lir, VYRE_TYPE_U32, 32), 0);
  return vyre__lir_do(lir, VYRE__LIR_OR, VYRE_TYPE_U64, high, low, 0);
}

/* Replaces some bits of a unit. Other invocations may store to the other bits at
 * the same time, so the two steps are atomic. */
static void replace_bits(vyre__lir_writer *lir, uint32_t buffer, access p,
                         uint32_t mask, uint32_t shift, vyre__val value) {
  vyre__val bits = u32_op(lir, VYRE__LIR_AND, value, mask);
  if (shift) bits = u32_op(lir, VYRE__LIR_SHL, bits, shift);
  vyre__lir_inst inst = {
      .op = VYRE__LIR_ATOMIC_AND,
      .type = VYRE_TYPE_U32,
      .hints = hints_of(p),
      .aux = buffer,
      .v = {p.index, vyre__lir_bits(lir, VYRE_TYPE_U32, ~(mask << shift)),
            p.check, 0}};
  lir->emit(lir, &inst);
  inst.op = VYRE__LIR_ATOMIC_OR;
  inst.b = bits;
  lir->emit(lir, &inst);
  lir->buffers[buffer].is_atomic = true;
}

static void store_bits(vyre__lir_writer *lir, uint32_t buffer, access p,
                       uint32_t size, uint32_t width, uint32_t byte,
                       vyre__val value) {
  if (size < width) {
    replace_bits(lir, buffer, p, mask_of(size), 8 * byte, value);
    return;
  }
  vyre__val high;
  if (width < 4) {
    high = u32_op(lir, VYRE__LIR_SHR_U, value, 8 * width);
  } else {
    high = vyre__lir_do(lir, VYRE__LIR_SHR_U, VYRE_TYPE_U64, value,
                        vyre__lir_bits(lir, VYRE_TYPE_U32, 32), 0);
    high = vyre__lir_do(lir, VYRE__LIR_TRUNC, VYRE_TYPE_U32, high, 0, 0);
    value = vyre__lir_do(lir, VYRE__LIR_TRUNC, VYRE_TYPE_U32, value, 0, 0);
  }
  store_unit(lir, buffer, p, value);
  store_unit(lir, buffer, next_unit(lir, p), high);
}

/* Returns the size of an accessed scalar if it differs from the unit, else 0.
 */
static uint32_t odd_size(const build *b, const vyre__node *node) {
  const uint32_t size =
      vyre_element_size(vyre__accessed_element(b->program, node));
  const bool is_struct =
      vyre__program_struct(b->program, b->program->buffers[node->a].type);
  return is_struct && size != b->lir->buffers[node->a].width ? size : 0;
}

vyre__val build_load(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *lir = b->lir;
  vyre_element element = vyre__accessed_element(b->program, node);
  access p = build_access(b, id);
  if (lir->no_memory) return 0;
  const uint32_t odd = odd_size(b, node), width = lir->buffers[node->a].width;
  if (odd) {
    return widen(lir, element,
                 load_bits(lir, node->a, p, odd, width,
                           node->aux >> VYRE__AUX_BYTE_SHIFT));
  }
  vyre_type type = memory_type(width);
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
  vyre_element element = vyre__accessed_element(b->program, node);
  access p = build_access(b, id);
  vyre__val value = build_value(b, node->c);
  /* The NaN payload becomes visible only when a value is copied from shared
   * memory to a buffer or converted to an integer. NaNs are made canonical
   * there, not here. */
  const uint32_t odd = odd_size(b, node);
  bool is_any_nan =
      lir->buffers[node->a].kind == VYRE_MEMORY_SHARED && !odd &&
      (element == VYRE_ELEMENT_F32 || element == VYRE_ELEMENT_F64);
  value = is_any_nan ? to_bits(lir, value) : narrow(lir, element, value);
  if (lir->no_memory) return;
  lir->buffers[node->a].is_written = true;
  if (odd) {
    store_bits(lir, node->a, p, odd, lir->buffers[node->a].width,
               node->aux >> VYRE__AUX_BYTE_SHIFT, value);
    return;
  }
  store_unit(lir, node->a, p, value);
}

static vyre__val build_sum_add(build *b, vyre__id id);

vyre__val build_atomic(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *lir = b->lir;
  if (node->type == VYRE_TYPE_VOID) return build_sum_add(b, id);
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

/* --- exact sums ------------------------------------------------------------*/

static vyre__val op2(vyre__lir_writer *lir, vyre__lir_op op, vyre__val a,
                     vyre__val b) {
  return vyre__lir_do(lir, op, vyre__lir_type_of(lir, a), a, b, 0);
}

static vyre__val u32_of(vyre__lir_writer *lir, uint32_t value) {
  return vyre__lir_bits(lir, VYRE_TYPE_U32, value);
}

/* A constant of the type of @p like. */
static vyre__val bits_like(vyre__lir_writer *lir, vyre__val like,
                           uint64_t value) {
  return vyre__lir_bits(lir, vyre__lir_type_of(lir, like), value);
}

static vyre__val both(vyre__lir_writer *lir, vyre__val check, vyre__val test) {
  return check
             ? vyre__lir_do(lir, VYRE__LIR_AND, VYRE_TYPE_BOOL, check, test, 0)
             : test;
}

/* A number as parts of a sum, as in vyre__sum_split; @p bits are unsigned. */
typedef struct sum_parts {
  vyre__val bin;       /* u32 */
  vyre__val digits[3]; /* u64; 0: none */
  vyre__val flags;     /* u64 */
  vyre__val is_finite, is_special;
} sum_parts;

static sum_parts split_number(vyre__lir_writer *lir, vyre__val bits) {
  const bool wide = vyre__lir_type_of(lir, bits) == VYRE_TYPE_U64;
  const unsigned fraction = wide ? 52 : 23;
  const uint64_t sign = wide ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
  const uint64_t infinity = wide ? UINT64_C(0x7FF) << 52 : 0x7F800000u;
  const uint64_t hidden = UINT64_C(1) << fraction;
  sum_parts p = {0};
  const vyre__val zero = bits_like(lir, bits, 0);
  vyre__val magnitude =
      op2(lir, VYRE__LIR_AND, bits, bits_like(lir, bits, sign - 1));
  vyre__val is_negative = vyre__lir_do(
      lir, VYRE__LIR_NE, VYRE_TYPE_BOOL,
      op2(lir, VYRE__LIR_AND, bits, bits_like(lir, bits, sign)), zero, 0);
  p.is_finite = vyre__lir_do(lir, VYRE__LIR_LT_U, VYRE_TYPE_BOOL, magnitude,
                             bits_like(lir, bits, infinity), 0);
  p.is_special =
      vyre__lir_do(lir, VYRE__LIR_NOT, VYRE_TYPE_BOOL, p.is_finite, 0, 0);
  vyre__val is_nan = vyre__lir_do(lir, VYRE__LIR_LT_U, VYRE_TYPE_BOOL,
                                  bits_like(lir, bits, infinity), magnitude, 0);
  const vyre__val one = vyre__lir_bits(lir, VYRE_TYPE_U64, 1);
  const vyre__val two = vyre__lir_bits(lir, VYRE_TYPE_U64, 2);
  const vyre__val four = vyre__lir_bits(lir, VYRE_TYPE_U64, 4);
  p.flags =
      vyre__lir_do(lir, VYRE__LIR_SELECT, VYRE_TYPE_U64, is_negative, two, one);
  p.flags =
      vyre__lir_do(lir, VYRE__LIR_SELECT, VYRE_TYPE_U64, is_nan, four, p.flags);
  vyre__val exponent =
      op2(lir, VYRE__LIR_SHR_U, magnitude, u32_of(lir, fraction));
  if (wide) {
    exponent =
        vyre__lir_do(lir, VYRE__LIR_TRUNC, VYRE_TYPE_U32, exponent, 0, 0);
  }
  vyre__val is_normal = vyre__lir_do(lir, VYRE__LIR_NE, VYRE_TYPE_BOOL,
                                     exponent, u32_of(lir, 0), 0);
  vyre__val significand =
      op2(lir, VYRE__LIR_AND, magnitude, bits_like(lir, bits, hidden - 1));
  vyre__val top =
      vyre__lir_do(lir, VYRE__LIR_SELECT, vyre__lir_type_of(lir, bits),
                   is_normal, bits_like(lir, bits, hidden), zero);
  significand = op2(lir, VYRE__LIR_OR, significand, top);
  vyre__val at = op2(lir, VYRE__LIR_MAX_U, exponent, u32_of(lir, 1));
  at = op2(lir, VYRE__LIR_SUB, at, u32_of(lir, 1));
  vyre__val shift = op2(lir, VYRE__LIR_AND, at, u32_of(lir, 31));
  p.bin = op2(lir, VYRE__LIR_SHR_U, at, u32_of(lir, 5));
  if (!wide) {
    significand =
        vyre__lir_do(lir, VYRE__LIR_ZEXT, VYRE_TYPE_U64, significand, 0, 0);
  }
  vyre__val low = op2(lir, VYRE__LIR_SHL, significand, shift);
  p.digits[0] = op2(lir, VYRE__LIR_AND, low,
                    vyre__lir_bits(lir, VYRE_TYPE_U64, UINT32_MAX));
  p.digits[1] = op2(lir, VYRE__LIR_SHR_U, low, u32_of(lir, 32));
  if (wide) { /* (significand >> 1) >> (63 - shift) */
    vyre__val half = op2(lir, VYRE__LIR_SHR_U, significand, u32_of(lir, 1));
    p.digits[2] = op2(lir, VYRE__LIR_SHR_U, half,
                      op2(lir, VYRE__LIR_SUB, u32_of(lir, 63), shift));
  }
  const vyre__val none = vyre__lir_bits(lir, VYRE_TYPE_U64, 0);
  for (int i = 0; i < 3 && p.digits[i]; i++) {
    vyre__val minus = op2(lir, VYRE__LIR_SUB, none, p.digits[i]);
    p.digits[i] = vyre__lir_do(lir, VYRE__LIR_SELECT, VYRE_TYPE_U64,
                               is_negative, minus, p.digits[i]);
  }
  return p;
}

static void add_word(vyre__lir_writer *lir, vyre__lir_op op, uint32_t buffer,
                     vyre__val index, vyre__val value, vyre__val check) {
  lir->emit(lir, &(vyre__lir_inst){.op = (uint8_t)op,
                                   .type = VYRE_TYPE_U64,
                                   .aux = buffer,
                                   .v = {index, value, check, 0}});
}

/* Builds the addition of a number to a sum: an atomic for each bin that it
 * changes. */
static vyre__val build_sum_add(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *lir = b->lir;
  const unsigned element = b->program->buffers[node->a].element;
  access p = build_access(b, id);
  vyre__val number = build_value(b, node->c);
  if (lir->no_memory) return 0;
  lir->buffers[node->a].is_written = true;
  lir->buffers[node->a].is_atomic = true;
  const bool wide = vyre__lir_type_of(lir, number) == VYRE_TYPE_F64;
  vyre__val bits = to_bits(lir, number); /* every NaN sets one flag */
  vyre__val base = product(lir, p.index, u32_of(lir, vyre__sum_words(element)));
  if (lir->target->has_sum_strips) {
    if (!wide) {
      bits = vyre__lir_do(lir, VYRE__LIR_ZEXT, VYRE_TYPE_U64, bits, 0, 0);
    }
    add_word(lir, VYRE__LIR_SUM_ADD, node->a, base, bits, p.check);
    return 0;
  }
  sum_parts parts = split_number(lir, bits);
  vyre__val flags =
      op2(lir, VYRE__LIR_ADD, base, u32_of(lir, vyre__sum_bins(element)));
  vyre__val bin = op2(lir, VYRE__LIR_ADD, base, parts.bin);
  vyre__val finite = both(lir, p.check, parts.is_finite);
  for (uint32_t i = 0; i < 3 && parts.digits[i]; i++) {
    add_word(lir, VYRE__LIR_ATOMIC_ADD, node->a,
             i ? op2(lir, VYRE__LIR_ADD, bin, u32_of(lir, i)) : bin,
             parts.digits[i], finite);
  }
  add_word(lir, VYRE__LIR_ATOMIC_OR, node->a, flags, parts.flags,
           both(lir, p.check, parts.is_special));
  return 0;
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
