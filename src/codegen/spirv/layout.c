/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Plans the interface of a module: bindings, fields of the launch block, and
 * the variables for them. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "codegen/spirv/internal.h"

bool spv_is_bound(const vyre__lir_buffer *buffer) {
  return buffer->kind != VYRE_MEMORY_SHARED;
}

uint64_t spv_elements(const vyre__lir_buffer *buffer) {
  uint64_t bytes = (uint64_t)buffer->count * buffer->unit;
  uint64_t count = (bytes + buffer->width - 1) / buffer->width;
  return count ? count : 1;
}

static uint64_t word_count_of(const vyre__lir_buffer *buffer) {
  return ((uint64_t)buffer->count * buffer->unit + 3) / 4;
}

/* --- bindings ------------------------------------------------------------- */

static uint32_t number_of(const vyre__lir_kernel *k, uint32_t buffer) {
  const vyre__lir_buffer *b = &k->buffers[buffer];
  return k->program ? k->program->buffers[b->source].binding : b->source;
}

/* Returns the binding of a buffer: the number of bound buffers before it in the
 * binding plan. */
static uint32_t binding_of(const vyre__lir_kernel *k, uint32_t buffer) {
  uint32_t own = number_of(k, buffer), before = 0;
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    const vyre__lir_buffer *b = &k->buffers[i];
    if (!spv_is_bound(b) || b->source == VYRE_NO_INDEX) continue;
    before += number_of(k, i) < own;
  }
  return before;
}

static uint32_t bound_count(const vyre__lir_kernel *k) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    count +=
        spv_is_bound(&k->buffers[i]) && k->buffers[i].source != VYRE_NO_INDEX;
  }
  return count;
}

/* --- the launch block ----------------------------------------------------- */

typedef struct blocks {
  vyre__spirv_field *fields;
  size_t count;
  uint32_t pushed, max_pushed, in_buffer; /* words */
} blocks;

static vyre__spirv_field *add_field(blocks *b, vyre__spirv_value value,
                                    uint32_t index, uint32_t words) {
  bool is_pushed = words <= b->max_pushed - b->pushed;
  uint32_t *used = is_pushed ? &b->pushed : &b->in_buffer;
  vyre__spirv_field *f = &b->fields[b->count++];
  *f = (vyre__spirv_field){.value = (uint8_t)value,
                           .is_pushed = is_pushed,
                           .index = index,
                           .offset = 4 * *used,
                           .size = 4 * words};
  *used += words;
  return f;
}

static bool any_is_checked(const spv_emitter *e) {
  for (uint32_t i = 0; i < e->k->phase_count; i++) {
    if (e->is_checked[i]) return true;
  }
  return false;
}

/* Returns the number of words for uniforms in the launch block: the free push
 * constants, or the same number if the full block is a buffer. */
static uint32_t max_uniform_words(const spv_emitter *e, const blocks *b) {
  if (e->target->binds_uniforms) return 0;
  if (e->target->block_in_storage) return VYRE__SPIRV_PUSH_BYTES / 4;
  return b->max_pushed - b->pushed;
}

/* Decides which uniforms are stored in the launch block. A bound uniform may be
 * longer than declared, and push constants are registers (Mesa 22.3's software
 * device sometimes miscomputes a variable index of them). So only uniforms read
 * at constant indices within the declared length qualify. */
static void plan_uniforms(spv_emitter *e, blocks *b) {
  uint32_t free_words = max_uniform_words(e, b);
  for (uint32_t i = 0; i < e->k->buffer_count; i++) {
    const vyre__lir_buffer *buffer = &e->k->buffers[i];
    uint64_t words = word_count_of(buffer);
    spv_buffer_info *p = &e->infos[i];
    if (buffer->kind != VYRE_MEMORY_UNIFORM || !p->is_used || p->is_indexed ||
        words > free_words) {
      continue;
    }
    const vyre__spirv_field *f =
        add_field(b, VYRE__SPIRV_UNIFORM, i, (uint32_t)words);
    p->is_in_block = true;
    p->word = f->offset / 4;
    p->is_pushed = f->is_pushed;
    free_words -= (uint32_t)words;
  }
}

static void plan_fields(spv_emitter *e, blocks *b) {
  const vyre__lir_kernel *k = e->k;
  add_field(b, VYRE__SPIRV_BASE, 0, 3);
  if (e->uses_grid) add_field(b, VYRE__SPIRV_GRID, 0, 3);
  if (k->has_fuel) add_field(b, VYRE__SPIRV_FUEL, 0, 1);
  if (e->has_opaque || e->has_private || e->leaves || any_is_checked(e)) {
    add_field(b, VYRE__SPIRV_ONE, 0, 1);
  }
  for (uint32_t i = 0; i < k->grid_loop_count; i++) {
    add_field(b, VYRE__SPIRV_LOOP_VALUE, i, 2);
  }
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    spv_buffer_info *p = &e->infos[i];
    if (!spv_is_bound(&k->buffers[i]) || !p->is_measured) continue;
    const vyre__spirv_field *f = add_field(b, VYRE__SPIRV_LENGTH, i, 1);
    p->length_at = f->offset / 4;
    p->is_length_pushed = f->is_pushed;
  }
  plan_uniforms(e, b);
}

/* --- the plan ------------------------------------------------------------- */

/* Returns true if the index is a constant below the declared length. */
static bool has_constant_index(const vyre__lir_kernel *k,
                               const vyre__lir_inst *inst) {
  const vyre__lir_inst *index = &k->code[inst->a];
  const vyre__lir_buffer *b = &k->buffers[inst->aux];
  return index->op == VYRE__LIR_CONST && b->count > 0 &&
         vyre__lir_const(index) < spv_elements(b);
}

static void find_uses(spv_emitter *e) {
  const vyre__lir_kernel *k = e->k;
  for (uint32_t i = 0; i < k->phase_count; i++) {
    for (uint32_t at = k->phases[i].begin; at < k->phases[i].end; at++) {
      const vyre__lir_inst *inst = &k->code[at];
      e->uses_grid |= inst->op == VYRE__LIR_GRID_SIZE;
      if (inst->op == VYRE__LIR_LEN) e->infos[inst->aux].is_measured = true;
      if (inst->op < VYRE__LIR_LOAD || inst->op > VYRE__LIR_ATOMIC_CAS)
        continue;
      spv_buffer_info *p = &e->infos[inst->aux];
      p->is_used = true;
      p->is_read |= inst->op == VYRE__LIR_LOAD;
      p->is_indexed |= !has_constant_index(k, inst);
    }
  }
}

static void sort_by_binding(vyre__spirv_descriptor *all, size_t count) {
  for (size_t i = 1; i < count; i++) {
    vyre__spirv_descriptor d = all[i];
    size_t at = i;
    for (; at > 0 && all[at - 1].binding > d.binding; at--)
      all[at] = all[at - 1];
    all[at] = d;
  }
}

/* Lists the program's bindings, then status, spill buffer and launch block. */
static void plan_descriptors(spv_emitter *e, vyre__spirv_descriptor *all) {
  const vyre__lir_kernel *k = e->k;
  uint32_t first = bound_count(k);
  size_t count = 0;
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    const vyre__lir_buffer *buffer = &k->buffers[i];
    spv_buffer_info *p = &e->infos[i];
    if (!spv_is_bound(buffer)) continue;
    bool is_opaque = buffer->source == VYRE_NO_INDEX;
    p->binding = is_opaque ? first + 1 : binding_of(k, i);
    if (p->is_in_block || !p->is_used) continue;
    all[count++] = (vyre__spirv_descriptor){
        .what = is_opaque ? VYRE__SPIRV_KEPT : VYRE__SPIRV_BUFFER,
        .is_written = buffer->is_written,
        .binding = p->binding,
        .buffer = i};
  }
  if (e->has_status) {
    all[count++] = (vyre__spirv_descriptor){.what = VYRE__SPIRV_STATUS,
                                            .is_written = true,
                                            .binding = first,
                                            .buffer = VYRE_NO_INDEX};
  }
  if (e->out->block_bytes) {
    all[count++] =
        (vyre__spirv_descriptor){.what = VYRE__SPIRV_BLOCK,
                                 .is_uniform = !e->target->block_in_storage,
                                 .binding = first + 2,
                                 .buffer = VYRE_NO_INDEX};
  }
  sort_by_binding(all, count);
  e->out->descriptors = all;
  e->out->descriptor_count = count;
  e->out->slots = first + 3;
}

static bool packs(const spv_emitter *e, unsigned width) {
  return width == 1 ? e->target->int8 : e->target->int16;
}

static void plan_shared(spv_emitter *e) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < e->k->buffer_count; i++) {
    const vyre__lir_buffer *b = &e->k->buffers[i];
    if (spv_is_bound(b) || !e->infos[i].is_used) continue;
    e->infos[i].is_widened = b->width < 4 && (!packs(e, b->width) || b->table);
    if (b->table || b->is_private) continue;
    uint64_t each = e->infos[i].is_widened ? 4 : b->width;
    bytes = (bytes + each - 1) / each * each + each * spv_elements(b);
  }
  e->out->shared_bytes = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
}

/* Returns true if a partly filled vector reaches a loop. */
static bool has_surplus_lanes(const spv_emitter *e) {
  const vyre__lir_kernel *k = e->k;
  if (e->target->vector == 0 || k->workgroup[0] % e->target->vector == 0) {
    return false;
  }
  for (uint32_t i = 0; i < k->phase_count; i++) {
    for (uint32_t at = k->phases[i].begin; at < k->phases[i].end; at++) {
      if (k->code[at].op == VYRE__LIR_LOOP) return true;
    }
  }
  return false;
}

vyre_code spv_plan(spv_emitter *e) {
  const vyre__lir_kernel *k = e->k;
  size_t max_fields =
      4 + (size_t)k->grid_loop_count + 2 * (size_t)k->buffer_count;
  uint32_t push = e->target->push_bytes ? e->target->push_bytes
                                        : (uint32_t)VYRE__SPIRV_PUSH_BYTES;
  blocks b = {.max_pushed = e->target->block_in_storage ? 0 : push / 4};
  b.fields = vyre__arena_array(e->arena, max_fields, sizeof *b.fields);
  vyre__spirv_descriptor *descriptors = vyre__arena_array(
      e->arena, (size_t)k->buffer_count + 2, sizeof *descriptors);
  if (!b.fields || !descriptors) {
    return vyre__no_memory(e->st, "vyre__emit_spirv", "fields", max_fields);
  }
  for (uint32_t i = 0; i < k->phase_count; i++) {
    e->is_checked[i] = spv_may_be_cut(e, k->phases[i]);
  }
  e->has_status = k->has_fuel || any_is_checked(e);
  e->has_opaque = spv_find_opaque(e);
  e->leaves = has_surplus_lanes(e);
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    e->has_private |= k->buffers[i].is_private;
  }
  find_uses(e);
  plan_fields(e, &b);
  e->out->fields = b.fields;
  e->out->field_count = b.count;
  e->out->push_bytes = 4 * b.pushed;
  e->out->block_bytes = (4 * b.in_buffer + 15) / 16 * 16;
  plan_descriptors(e, descriptors);
  plan_shared(e);
  return VYRE_OK;
}

/* --- variables ------------------------------------------------------------ */

static uint32_t variable(spv_emitter *e, uint32_t storage, uint32_t type,
                         const char *name) {
  uint32_t pointer = spv_pointer(e, storage, type), id = spv_id(e);
  SPV_PUT(e, SPV_GLOBALS, SPV_OpVariable, pointer, id, storage);
  spv_name(e, id, name);
  return id;
}

static void bind(spv_emitter *e, uint32_t id, uint32_t binding) {
  SPV_PUT(e, SPV_NOTES, SPV_OpDecorate, id, SPV_DECORATION_DescriptorSet, 0);
  SPV_PUT(e, SPV_NOTES, SPV_OpDecorate, id, SPV_DECORATION_Binding, binding);
}

/* Declares a struct with one array member, as blocks require. The array type is
 * not shared, since it has a layout. */
static uint32_t block_type(spv_emitter *e, uint32_t element, uint32_t stride,
                           uint32_t count) {
  uint32_t array = spv_id(e), type = spv_id(e);
  if (count) {
    uint32_t length = spv_u32(e, count);
    SPV_PUT(e, SPV_GLOBALS, SPV_OpTypeArray, array, element, length);
  } else {
    SPV_PUT(e, SPV_GLOBALS, SPV_OpTypeRuntimeArray, array, element);
  }
  SPV_PUT(e, SPV_GLOBALS, SPV_OpTypeStruct, type, array);
  SPV_PUT(e, SPV_NOTES, SPV_OpDecorate, array, SPV_DECORATION_ArrayStride,
          stride);
  spv_decorate(e, type, SPV_DECORATION_Block);
  SPV_PUT(e, SPV_NOTES, SPV_OpMemberDecorate, type, 0, SPV_DECORATION_Offset,
          0);
  return type;
}

static void declare_storage(spv_emitter *e, uint32_t buffer,
                            uint32_t types[9]) {
  const vyre__lir_buffer *b = &e->k->buffers[buffer];
  spv_buffer_info *p = &e->infos[buffer];
  uint32_t *type = &types[b->width];
  if ((b->width == 1 && !e->target->storage8) ||
      (b->width == 2 && !e->target->storage16)) {
    spv_reject(e, 0,
               b->width == 1 ? "storage buffers of 8-bit elements"
                             : "storage buffers of 16-bit elements");
  }
  e->uses_storage8 |= b->width == 1;
  e->uses_storage16 |= b->width == 2;
  if (!*type) *type = block_type(e, spv_uint(e, 8u * b->width), b->width, 0);
  p->variable = variable(e, SPV_STORAGE_StorageBuffer, *type, b->name);
  bind(e, p->variable, p->binding);
  /* A written buffer is never bound twice. */
  spv_decorate(e, p->variable, SPV_DECORATION_Restrict);
  if (!b->is_written) {
    spv_decorate(e, p->variable, SPV_DECORATION_NonWritable);
  } else if (p->is_read && e->k->has_barrier &&
             !e->target->vulkan_memory_model) {
    /* Makes writes of other invocations visible after a barrier. */
    spv_decorate(e, p->variable, SPV_DECORATION_Coherent);
  }
}

/* Declares a table as a variable that begins with its elements. */
static void declare_table(spv_emitter *e, const vyre__lir_buffer *b,
                          spv_buffer_info *p, uint32_t type, unsigned width) {
  const uint32_t count = (uint32_t)spv_elements(b);
  uint32_t *words =
      vyre__arena_array(e->arena, (size_t)count + 2, sizeof *words);
  if (!words) {
    e->no_memory = true;
    return;
  }
  words[0] = type;
  words[1] = spv_id(e);
  for (uint32_t i = 0; i < count; i++) {
    uint64_t bits = 0;
    memcpy(&bits, b->table + (size_t)i * b->width, b->width);
    words[2 + i] =
        spv_const(e, width == 8 ? VYRE_TYPE_U64 : VYRE_TYPE_U32, bits);
  }
  spv_put_all(e, SPV_GLOBALS, SPV_OpConstantComposite, words,
              (size_t)count + 2);
  const uint32_t pointer = spv_pointer(e, SPV_STORAGE_Private, type);
  p->variable = spv_id(e);
  SPV_PUT(e, SPV_GLOBALS, SPV_OpVariable, pointer, p->variable,
          SPV_STORAGE_Private, words[1]);
  spv_name(e, p->variable, b->name);
}

static void declare_shared(spv_emitter *e, uint32_t buffer) {
  const vyre__lir_buffer *b = &e->k->buffers[buffer];
  spv_buffer_info *p = &e->infos[buffer];
  unsigned width = p->is_widened ? 4 : b->width;
  uint64_t count = spv_elements(b);
  if (count > UINT32_MAX) {
    spv_reject(e, 0, "workgroup memory of that size");
    return;
  }
  e->uses_int8 |= width == 1;
  e->uses_int16 |= width == 2;
  uint32_t element = spv_uint(e, 8 * width);
  uint32_t type =
      SPV_TYPE(e, SPV_OpTypeArray, element, spv_u32(e, (uint32_t)count));
  if (b->table) {
    declare_table(e, b, p, type, width);
    return;
  }
  if (b->is_private) {
    p->variable = variable(e, SPV_STORAGE_Private, type, b->name);
    return;
  }
  if (!b->needs_zero || !e->target->zeroes_workgroup) {
    p->variable = variable(e, SPV_STORAGE_Workgroup, type, b->name);
    return;
  }
  uint32_t pointer = spv_pointer(e, SPV_STORAGE_Workgroup, type);
  uint32_t zero = spv_id(e);
  p->variable = spv_id(e);
  SPV_PUT(e, SPV_GLOBALS, SPV_OpConstantNull, type, zero);
  SPV_PUT(e, SPV_GLOBALS, SPV_OpVariable, pointer, p->variable,
          SPV_STORAGE_Workgroup, zero);
  spv_name(e, p->variable, b->name);
}

static uint32_t declare_input(spv_emitter *e, uint32_t type, uint32_t builtin,
                              const char *name) {
  uint32_t id = variable(e, SPV_STORAGE_Input, type, name);
  SPV_PUT(e, SPV_NOTES, SPV_OpDecorate, id, SPV_DECORATION_BuiltIn, builtin);
  return id;
}

/* Declares the part of the launch block that is a buffer. */
static void declare_block(spv_emitter *e, uint32_t types[9]) {
  uint32_t u32 = spv_uint(e, 32), type;
  if (e->target->block_in_storage) {
    type = types[4] = block_type(e, u32, 4, 0);
    e->block = variable(e, SPV_STORAGE_StorageBuffer, type, "block");
    spv_decorate(e, e->block, SPV_DECORATION_Restrict);
    spv_decorate(e, e->block, SPV_DECORATION_NonWritable);
  } else {
    uint32_t four = SPV_TYPE(e, SPV_OpTypeVector, u32, 4);
    type = block_type(e, four, 16, e->out->block_bytes / 16);
    e->block = variable(e, SPV_STORAGE_Uniform, type, "block");
  }
  bind(e, e->block, bound_count(e->k) + 2);
}

static void declare_workgroup_size(spv_emitter *e, uint32_t three) {
  uint32_t u32 = spv_uint(e, 32), words[5] = {three, spv_id(e)};
  for (uint32_t i = 0; i < 3; i++) {
    words[2 + i] = spv_id(e);
    SPV_PUT(e, SPV_GLOBALS, SPV_OpSpecConstant, u32, words[2 + i],
            e->k->workgroup[i]);
    SPV_PUT(e, SPV_NOTES, SPV_OpDecorate, words[2 + i], SPV_DECORATION_SpecId,
            i);
  }
  spv_put_all(e, SPV_GLOBALS, SPV_OpSpecConstantComposite, words, 5);
  SPV_PUT(e, SPV_NOTES, SPV_OpDecorate, words[1], SPV_DECORATION_BuiltIn,
          SPV_BUILTIN_WorkgroupSize);
  spv_name(e, words[1], "workgroup_size");
}

/* Declares the constant that disables counting. A device that ends loops long
 * before 2^32-1 iterations, and reports it, makes counting up to that limit
 * needless. The device counts per launch, but fuel covers all phases, so this
 * needs a single step. */
static void declare_fuel_switch(spv_emitter *e) {
  if (!e->k->has_fuel || !e->target->max_iterations || e->k->step_count > 1) {
    return;
  }
  e->counts_fuel = spv_id(e);
  SPV_PUT(e, SPV_GLOBALS, SPV_OpSpecConstantTrue, spv_bool(e), e->counts_fuel);
  SPV_PUT(e, SPV_NOTES, SPV_OpDecorate, e->counts_fuel, SPV_DECORATION_SpecId,
          VYRE__SPIRV_COUNTS_FUEL);
  spv_name(e, e->counts_fuel, "counts_fuel");
  e->out->may_skip_fuel = true;
}

void spv_declare(spv_emitter *e) {
  const vyre__lir_kernel *k = e->k;
  uint32_t u32 = spv_uint(e, 32), types[9] = {0};
  uint32_t three = SPV_TYPE(e, SPV_OpTypeVector, u32, 3);
  declare_workgroup_size(e, three);
  declare_fuel_switch(e);
  e->workgroup_id =
      declare_input(e, three, SPV_BUILTIN_WorkgroupId, "workgroup_id");
  e->local_id =
      declare_input(e, three, SPV_BUILTIN_LocalInvocationId, "local_id");
  e->local_index =
      declare_input(e, u32, SPV_BUILTIN_LocalInvocationIndex, "local_index");
  if (e->out->push_bytes) {
    e->push = variable(e, SPV_STORAGE_PushConstant,
                       block_type(e, u32, 4, e->out->push_bytes / 4), "push");
  }
  if (e->out->block_bytes) declare_block(e, types);
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    if (e->infos[i].is_in_block || !e->infos[i].is_used) continue;
    if (spv_is_bound(&k->buffers[i])) {
      declare_storage(e, i, types);
    } else {
      declare_shared(e, i);
    }
  }
  if (e->has_status) {
    if (!types[4]) types[4] = block_type(e, u32, 4, 0);
    e->status = variable(e, SPV_STORAGE_StorageBuffer, types[4], "status");
    bind(e, e->status, bound_count(k));
  }
}

uint32_t spv_block_word(spv_emitter *e, bool is_pushed, uint32_t word) {
  uint32_t u32 = spv_uint(e, 32), zero = spv_u32(e, 0);
  uint32_t place;
  if (is_pushed || e->target->block_in_storage) {
    uint32_t storage = is_pushed ? (uint32_t)SPV_STORAGE_PushConstant
                                 : (uint32_t)SPV_STORAGE_StorageBuffer;
    uint32_t type = spv_pointer(e, storage, u32);
    place = SPV_DO(e, SPV_OpAccessChain, type, is_pushed ? e->push : e->block,
                   zero, spv_u32(e, word));
  } else {
    uint32_t type = spv_pointer(e, SPV_STORAGE_Uniform, u32);
    place = SPV_DO(e, SPV_OpAccessChain, type, e->block, zero,
                   spv_u32(e, word / 4), spv_u32(e, word % 4));
  }
  return SPV_DO(e, SPV_OpLoad, u32, place);
}
