/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Emits memory accesses: buffers, shared memory, the launch block, and their
 * ordering. */
#include <string.h>

#include "codegen/spirv/internal.h"

/* --- addresses ------------------------------------------------------------ */

static uint32_t storage_of(const vyre__lir_buffer *buffer) {
  if (buffer->table || buffer->is_private) return SPV_STORAGE_Private;
  return spv_is_bound(buffer) ? SPV_STORAGE_StorageBuffer
                              : SPV_STORAGE_Workgroup;
}

/* Mesa's llvmpipe may keep a loop variable and its next value in one register,
 * and then index an array with the wrong one. So the index of an array is a sum
 * with a 0 that no compiler knows. */
static uint32_t pointer_to(spv_emitter *e, uint32_t buffer, unsigned bits,
                           uint32_t index) {
  const vyre__lir_buffer *b = &e->k->buffers[buffer];
  uint32_t type = spv_pointer(e, storage_of(b), spv_uint(e, bits));
  uint32_t variable = e->infos[buffer].variable;
  if (spv_is_bound(b)) {
    return SPV_DO(e, SPV_OpAccessChain, type, variable, spv_u32(e, 0), index);
  }
  if (b->is_private) {
    index = SPV_DO(e, SPV_OpIAdd, spv_uint(e, 32), index, e->index_zero);
  }
  return SPV_DO(e, SPV_OpAccessChain, type, variable, index);
}

static unsigned element_bits(const spv_emitter *e, uint32_t buffer) {
  return e->infos[buffer].is_widened ? 32 : 8u * e->k->buffers[buffer].width;
}

/* In the Vulkan memory model, barriers order only accesses that are marked
 * non-private. */
static uint32_t access_bits(const spv_emitter *e, const vyre__lir_buffer *b) {
  bool is_seen = spv_is_bound(b) ? b->is_written && e->k->has_barrier
                                 /* by other invocations */
                                 : b->is_written || b->needs_zero;
  is_seen = is_seen && storage_of(b) != SPV_STORAGE_Private;
  bool is_private = !e->target->vulkan_memory_model || !is_seen;
  return is_private ? 0 : SPV_MEMORY_ACCESS_NonPrivatePointer;
}

static uint32_t scope_of(spv_emitter *e, const vyre__lir_buffer *b) {
  if (!spv_is_bound(b)) return spv_u32(e, SPV_SCOPE_WORKGROUP);
  if (e->target->vulkan_memory_model && !e->target->device_scope) {
    return spv_u32(e, SPV_SCOPE_QUEUE_FAMILY);
  }
  return spv_u32(e, SPV_SCOPE_DEVICE);
}

/* --- loads ---------------------------------------------------------------- */

/* Joins two words of the launch block. */
static uint32_t join_words(spv_emitter *e, uint32_t low, uint32_t high) {
  uint32_t u64 = spv_uint(e, 64);
  low = SPV_DO(e, SPV_OpUConvert, u64, low);
  high = SPV_DO(e, SPV_OpUConvert, u64, high);
  high = SPV_DO(e, SPV_OpShiftLeftLogical, u64, high, spv_u32(e, 32));
  return SPV_DO(e, SPV_OpBitwiseOr, u64, low, high);
}

/* Extracts the bits of a narrow element from a word, at @p shift. */
static uint32_t extract_element(spv_emitter *e, uint32_t word, uint32_t shift,
                                bool is_byte) {
  uint32_t u32 = spv_uint(e, 32);
  word = SPV_DO(e, SPV_OpShiftRightLogical, u32, word, shift);
  return SPV_DO(e, SPV_OpBitwiseAnd, u32, word,
                spv_u32(e, is_byte ? 0xFF : 0xFFFF));
}

/* Loads from the launch block, whose words hold narrow and wide elements. */
static uint32_t load_block(spv_emitter *e, const vyre__lir_inst *inst) {
  const vyre__lir_buffer *b = &e->k->buffers[inst->aux];
  const spv_buffer_info *p = &e->infos[inst->aux];
  uint32_t index = (uint32_t)vyre__lir_const(&e->k->code[inst->a]);
  uint32_t word = p->word + index * b->width / 4;
  uint32_t low = spv_block_word(e, p->is_pushed, word);
  if (b->width == 4) return low;
  if (b->width == 8) {
    return join_words(e, low, spv_block_word(e, p->is_pushed, word + 1));
  }
  uint32_t shift = index * b->width % 4 * 8;
  return extract_element(e, low, spv_u32(e, shift), b->width == 1);
}

static uint32_t load(spv_emitter *e, uint32_t at) {
  const vyre__lir_inst *inst = &e->k->code[at];
  const vyre__lir_buffer *b = &e->k->buffers[inst->aux];
  uint32_t index = e->ids[inst->a];
  if (e->infos[inst->aux].is_in_block) return load_block(e, inst);
  unsigned bits = element_bits(e, inst->aux);
  uint32_t type = spv_uint(e, bits);
  uint32_t pointer = pointer_to(e, inst->aux, bits, index);
  /* Elements that share a word are stored by atomics. */
  if (b->is_atomic && b->width > b->unit) {
    return SPV_DO(e, SPV_OpAtomicLoad, type, pointer, scope_of(e, b),
                  spv_u32(e, 0));
  }
  uint32_t access = access_bits(e, b);
  /* Other invocations of the workgroup write this memory concurrently. */
  if (vyre__load_is_single_read(e->k, e->decides, at) ||
      (storage_of(b) == SPV_STORAGE_Workgroup && e->decides[at])) {
    access |= SPV_MEMORY_ACCESS_Volatile;
  }
  const uint32_t operands[2] = {pointer, access};
  uint32_t value = spv_do_all(e, SPV_OpLoad, type, operands, access ? 2 : 1);
  return bits < 32 ? SPV_DO(e, SPV_OpUConvert, spv_uint(e, 32), value) : value;
}

/* --- stores and atomics --------------------------------------------------- */

static void store(spv_emitter *e, uint32_t at) {
  const vyre__lir_inst *inst = &e->k->code[at];
  const vyre__lir_buffer *b = &e->k->buffers[inst->aux];
  unsigned bits = element_bits(e, inst->aux);
  uint32_t value = e->ids[inst->b], access = access_bits(e, b);
  uint32_t pointer = pointer_to(e, inst->aux, bits, e->ids[inst->a]);
  if (bits < 32) {
    value = SPV_DO(e, SPV_OpUConvert, spv_uint(e, bits), value);
  } else if (b->width < 4) {
    value = SPV_DO(e, SPV_OpBitwiseAnd, spv_uint(e, 32), value,
                   spv_u32(e, b->width == 1 ? 0xFF : 0xFFFF));
  }
  const uint32_t operands[3] = {pointer, value, access};
  spv_put_all(e, SPV_CODE, SPV_OpStore, operands, access ? 3 : 2);
}

static uint32_t atomic_op(unsigned op) {
  static const uint16_t ops[VYRE__LIR_COUNT] = {
      [VYRE__LIR_ATOMIC_ADD] = SPV_OpAtomicIAdd,
      [VYRE__LIR_ATOMIC_MIN_U] = SPV_OpAtomicUMin,
      [VYRE__LIR_ATOMIC_MIN_S] = SPV_OpAtomicSMin,
      [VYRE__LIR_ATOMIC_MAX_U] = SPV_OpAtomicUMax,
      [VYRE__LIR_ATOMIC_MAX_S] = SPV_OpAtomicSMax,
      [VYRE__LIR_ATOMIC_AND] = SPV_OpAtomicAnd,
      [VYRE__LIR_ATOMIC_OR] = SPV_OpAtomicOr,
      [VYRE__LIR_ATOMIC_XOR] = SPV_OpAtomicXor,
      [VYRE__LIR_ATOMIC_EXCHANGE] = SPV_OpAtomicExchange,
  };
  return ops[op];
}

/* Returns true for an atomic that changes nothing. Programs use it to read
 * memory that others change. */
static bool is_atomic_read(const spv_emitter *e, const vyre__lir_inst *inst) {
  const vyre__lir_inst *with = &e->k->code[inst->b];
  if (with->op != VYRE__LIR_CONST) return false;
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_ATOMIC_ADD:
    case VYRE__LIR_ATOMIC_MAX_U:
    case VYRE__LIR_ATOMIC_OR:
    case VYRE__LIR_ATOMIC_XOR:
      return vyre__lir_const(with) == 0;
    default:
      return false;
  }
}

static uint32_t atomic(spv_emitter *e, uint32_t at) {
  const vyre__lir_inst *inst = &e->k->code[at];
  const vyre__lir_buffer *b = &e->k->buffers[inst->aux];
  unsigned bits = element_bits(e, inst->aux);
  if (bits == 64) {
    bool has = spv_is_bound(b) ? e->target->buffer_atomics64
                               : e->target->shared_atomics64;
    e->uses_atomics64 = true;
    if (!has) spv_reject(e, at, "64-bit atomics");
  }
  uint32_t type = spv_uint(e, bits), relaxed = spv_u32(e, 0);
  uint32_t pointer = pointer_to(e, inst->aux, bits, e->ids[inst->a]);
  uint32_t scope = scope_of(e, b);
  if (inst->op == VYRE__LIR_ATOMIC_CAS) {
    return SPV_DO(e, SPV_OpAtomicCompareExchange, type, pointer, scope, relaxed,
                  relaxed, e->ids[inst->c], e->ids[inst->b]);
  }
  if (is_atomic_read(e, inst)) {
    return SPV_DO(e, SPV_OpAtomicLoad, type, pointer, scope, relaxed);
  }
  return SPV_DO(e, atomic_op(inst->op), type, pointer, scope, relaxed,
                e->ids[inst->b]);
}

static uint32_t access_now(spv_emitter *e, uint32_t at) {
  const vyre__lir_inst *inst = &e->k->code[at];
  if (inst->op == VYRE__LIR_LOAD) return load(e, at);
  if (inst->op != VYRE__LIR_STORE) return atomic(e, at);
  store(e, at);
  return 0;
}

/* Loads conditionally. If the condition is false, the first element, which
 * always exists, is loaded and ignored: a branch would cost more. */
static uint32_t load_if(spv_emitter *e, uint32_t at, uint32_t condition) {
  const vyre__lir_inst *inst = &e->k->code[at];
  uint32_t *index = &e->ids[inst->a], before = *index;
  uint32_t type = spv_type_of(e, inst->type);
  *index = SPV_DO(e, SPV_OpSelect, spv_uint(e, 32), condition, before,
                  spv_u32(e, 0));
  uint32_t value = access_now(e, at);
  *index = before;
  return SPV_DO(e, SPV_OpSelect, type, condition, value,
                spv_const(e, inst->type, 0));
}

/* Returns true if an enclosing IF has tested the condition. */
static bool is_tested(const spv_emitter *e, uint32_t condition) {
  for (size_t i = 0; i < e->open_count; i++) {
    const spv_open *open = &e->open[i];
    if (open->op != VYRE__LIR_IF) continue;
    if (open->holds[0] == condition || open->holds[1] == condition) return true;
  }
  return false;
}

/* Emits an access. If its condition is false, nothing is accessed and the value
 * is 0. */
uint32_t spv_access(spv_emitter *e, uint32_t at) {
  const vyre__lir_inst *inst = &e->k->code[at];
  uint32_t condition = inst->v[vyre__lir_ops[inst->op].operands - 1u];
  if (inst->type == VYRE_TYPE_U64 && !e->target->int64) {
    spv_reject(e, at, "64-bit integers");
    return 0;
  }
  if (!condition || is_tested(e, condition)) return access_now(e, at);
  if (inst->op == VYRE__LIR_LOAD || is_atomic_read(e, inst)) {
    return load_if(e, at, e->ids[condition]);
  }
  uint32_t from = e->label, inside = spv_id(e), merge = spv_id(e);
  SPV_PUT(e, SPV_CODE, SPV_OpSelectionMerge, merge, 0);
  SPV_PUT(e, SPV_CODE, SPV_OpBranchConditional, e->ids[condition], inside,
          merge);
  spv_begin_block(e, inside);
  uint32_t value = access_now(e, at);
  spv_branch(e, merge);
  spv_begin_block(e, merge);
  if (!value) return 0;
  return SPV_DO(e, SPV_OpPhi, spv_type_of(e, inst->type), value, inside,
                spv_const(e, inst->type, 0), from);
}

/* --- zeroing, status ------------------------------------------------------ */

void spv_set_status(spv_emitter *e, vyre__spirv_end end) {
  uint32_t u32 = spv_uint(e, 32), zero = spv_u32(e, 0);
  uint32_t type = spv_pointer(e, SPV_STORAGE_StorageBuffer, u32);
  const vyre__lir_buffer bound = {.kind = VYRE_MEMORY_GLOBAL};
  uint32_t place = SPV_DO(e, SPV_OpAccessChain, type, e->status, zero, zero);
  SPV_PUT(e, SPV_CODE, SPV_OpAtomicStore, place, scope_of(e, &bound), zero,
          spv_u32(e, (uint32_t)end));
}

/* Zeroes elements [own, count) in steps of the workgroup size. */
static void zero_buffer(spv_emitter *e, uint32_t buffer, uint32_t own) {
  const vyre__lir_buffer *b = &e->k->buffers[buffer];
  unsigned bits = element_bits(e, buffer);
  uint32_t u32 = spv_uint(e, 32), element = spv_uint(e, bits);
  uint32_t count = spv_u32(e, (uint32_t)spv_elements(b));
  uint32_t before = e->label, header = spv_id(e), body = spv_id(e);
  uint32_t step = spv_id(e), merge = spv_id(e), next = spv_id(e), zero;
  if (bits < 32) {
    zero = SPV_DO(e, SPV_OpUConvert, element, spv_u32(e, 0));
  } else {
    zero = spv_const(e, bits == 64 ? VYRE_TYPE_U64 : VYRE_TYPE_U32, 0);
  }
  spv_branch(e, header);
  spv_begin_block(e, header);
  uint32_t i = SPV_DO(e, SPV_OpPhi, u32, own, before, next, step);
  uint32_t more = SPV_DO(e, SPV_OpULessThan, spv_bool(e), i, count);
  SPV_PUT(e, SPV_CODE, SPV_OpLoopMerge, merge, step, 0);
  SPV_PUT(e, SPV_CODE, SPV_OpBranchConditional, more, body, merge);
  spv_begin_block(e, body);
  const uint32_t operands[3] = {pointer_to(e, buffer, bits, i), zero,
                                access_bits(e, b)};
  spv_put_all(e, SPV_CODE, SPV_OpStore, operands, operands[2] ? 3 : 2);
  spv_branch(e, step);
  spv_begin_block(e, step);
  SPV_PUT(e, SPV_CODE, SPV_OpIAdd, u32, next, i,
          spv_u32(e, vyre__lir_group_size(e->k)));
  spv_branch(e, header);
  spv_begin_block(e, merge);
}

void spv_zero_shared(spv_emitter *e) {
  uint32_t own = 0;
  if (e->target->zeroes_workgroup) return;
  for (uint32_t i = 0; i < e->k->buffer_count; i++) {
    const vyre__lir_buffer *b = &e->k->buffers[i];
    if (spv_is_bound(b) || !b->needs_zero || !e->infos[i].variable) continue;
    if (!own) own = SPV_DO(e, SPV_OpLoad, spv_uint(e, 32), e->local_index);
    zero_buffer(e, i, own);
  }
  if (own) spv_put_barrier(e, SPV_WORKGROUP_MEMORY);
}
