/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where everything is that a module sees: bindings, fields of the launch block,
 * and the variables that stand for them. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "emit/spirv_internal.h"

bool spv_is_bound(const vyre__low_buffer *buffer) {
  return buffer->kind != VYRE_MEMORY_SHARED;
}

uint64_t spv_elements(const vyre__low_buffer *buffer) {
  uint64_t bytes = (uint64_t)buffer->count * buffer->unit;
  uint64_t count = (bytes + buffer->width - 1) / buffer->width;
  return count ? count : 1;
}

static uint64_t whole_words(const vyre__low_buffer *buffer) {
  return ((uint64_t)buffer->count * buffer->unit + 3) / 4;
}

/* --- bindings ---------------------------------------------------------------------- */

static uint32_t number_of(const vyre__low_kernel *k, uint32_t buffer) {
  const vyre__low_buffer *b = &k->buffers[buffer];
  return k->program ? k->program->buffers[b->source].binding : b->source;
}

/* How many bound buffers of the program come before it in the binding plan. */
static uint32_t slot_of(const vyre__low_kernel *k, uint32_t buffer) {
  uint32_t own = number_of(k, buffer), before = 0;
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    const vyre__low_buffer *b = &k->buffers[i];
    if (!spv_is_bound(b) || b->source == VYRE_NO_INDEX) continue;
    before += number_of(k, i) < own;
  }
  return before;
}

static uint32_t bound_count(const vyre__low_kernel *k) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    count +=
        spv_is_bound(&k->buffers[i]) && k->buffers[i].source != VYRE_NO_INDEX;
  }
  return count;
}

/* --- the launch block ----------------------------------------------------------------- */

typedef struct blocks {
  vyre__spirv_field *fields;
  size_t count;
  uint32_t pushed, most_pushed, in_buffer; /* words */
} blocks;

/* Push constants are registers: what is read at an index that is computed must not
 * be among them. (Mesa 22.3's software device gets such an index wrong at times.) */
static vyre__spirv_field *add_field(blocks *b, vyre__spirv_value value,
                                    uint32_t index, uint32_t words,
                                    bool may_push) {
  bool is_pushed = may_push && words <= b->most_pushed - b->pushed;
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

/* Uniforms whose bytes go with the launch: as many as have room in a uniform
 * buffer beside all else. */
static void choose_uniforms(spv_emitter *e) {
  const vyre__low_kernel *k = e->k;
  uint64_t used =
      8 + 2 * (uint64_t)k->grid_loop_count + (uint64_t)k->buffer_count;
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    const vyre__low_buffer *buffer = &k->buffers[i];
    uint64_t words = whole_words(buffer);
    if (buffer->kind != VYRE_MEMORY_UNIFORM || words == 0 ||
        e->target->binds_uniforms ||
        4 * (used + words) > VYRE__SPIRV_UNIFORM_BYTES) {
      continue;
    }
    e->places[i].is_in_block = true;
    used += words;
  }
}

static bool any_is_checked(const spv_emitter *e) {
  for (uint32_t i = 0; i < e->k->phase_count; i++) {
    if (e->is_checked[i]) return true;
  }
  return false;
}

static void plan_fields(spv_emitter *e, blocks *b) {
  const vyre__low_kernel *k = e->k;
  add_field(b, VYRE__SPIRV_BASE, 0, 3, true);
  add_field(b, VYRE__SPIRV_GRID, 0, 3, true);
  if (k->has_fuel) add_field(b, VYRE__SPIRV_FUEL, 0, 1, true);
  if (e->hides || any_is_checked(e)) {
    add_field(b, VYRE__SPIRV_ONE, 0, 1, true);
  }
  for (uint32_t i = 0; i < k->grid_loop_count; i++) {
    add_field(b, VYRE__SPIRV_LOOP_VALUE, i, 2, true);
  }
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    const vyre__low_buffer *buffer = &k->buffers[i];
    spv_place *p = &e->places[i];
    if (!spv_is_bound(buffer) || p->is_in_block) continue;
    const vyre__spirv_field *f = add_field(b, VYRE__SPIRV_LENGTH, i, 1, true);
    p->length_at = f->offset / 4;
    p->is_length_pushed = f->is_pushed;
  }
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    const vyre__low_buffer *buffer = &k->buffers[i];
    spv_place *p = &e->places[i];
    if (!p->is_in_block) continue;
    const vyre__spirv_field *f =
        add_field(b, VYRE__SPIRV_UNIFORM, i, (uint32_t)whole_words(buffer),
                  !p->is_indexed);
    p->word = f->offset / 4;
    p->is_pushed = f->is_pushed;
  }
}

/* --- the plan --------------------------------------------------------------------------- */

static void find_uses(spv_emitter *e) {
  const vyre__low_kernel *k = e->k;
  for (uint32_t i = 0; i < k->phase_count; i++) {
    for (uint32_t at = k->phases[i].begin; at < k->phases[i].end; at++) {
      const vyre__low_inst *inst = &k->code[at];
      if (inst->op < VYRE__LOW_LOAD || inst->op > VYRE__LOW_ATOMIC_CAS)
        continue;
      e->places[inst->aux].is_used = true;
      e->places[inst->aux].is_read |= inst->op == VYRE__LOW_LOAD;
      e->places[inst->aux].is_indexed |= k->code[inst->a].op != VYRE__LOW_CONST;
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

/* The program's slots, then status, kept and block. */
static void plan_descriptors(spv_emitter *e, vyre__spirv_descriptor *all) {
  const vyre__low_kernel *k = e->k;
  uint32_t first = bound_count(k);
  size_t count = 0;
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    const vyre__low_buffer *buffer = &k->buffers[i];
    spv_place *p = &e->places[i];
    if (!spv_is_bound(buffer)) continue;
    bool is_hidden = buffer->source == VYRE_NO_INDEX;
    p->binding = is_hidden ? first + 1 : slot_of(k, i);
    if (p->is_in_block || !p->is_used) continue;
    all[count++] = (vyre__spirv_descriptor){
        .what = is_hidden ? VYRE__SPIRV_KEPT : VYRE__SPIRV_BUFFER,
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
    const vyre__low_buffer *b = &e->k->buffers[i];
    if (spv_is_bound(b) || !e->places[i].is_used) continue;
    e->places[i].is_widened = b->width < 4 && !packs(e, b->width);
    uint64_t each = e->places[i].is_widened ? 4 : b->width;
    bytes = (bytes + each - 1) / each * each + each * spv_elements(b);
  }
  e->out->shared_bytes = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
}

vyre_code spv_plan(spv_emitter *e) {
  const vyre__low_kernel *k = e->k;
  size_t most = 4 + (size_t)k->grid_loop_count + 2 * (size_t)k->buffer_count;
  uint32_t push = e->target->push_bytes ? e->target->push_bytes
                                        : (uint32_t)VYRE__SPIRV_PUSH_BYTES;
  blocks b = {.most_pushed = e->target->block_in_storage ? 0 : push / 4};
  b.fields = vyre__arena_array(e->arena, most, sizeof *b.fields);
  vyre__spirv_descriptor *descriptors = vyre__arena_array(
      e->arena, (size_t)k->buffer_count + 2, sizeof *descriptors);
  if (!b.fields || !descriptors) {
    return vyre__no_memory(e->st, "vyre__emit_spirv", "fields", most);
  }
  for (uint32_t i = 0; i < k->phase_count; i++) {
    e->is_checked[i] = spv_may_be_cut(e, k->phases[i]);
  }
  e->has_status = k->has_fuel || any_is_checked(e);
  e->hides = spv_find_hidden(e);
  find_uses(e);
  choose_uniforms(e);
  plan_fields(e, &b);
  e->out->fields = b.fields;
  e->out->field_count = b.count;
  e->out->push_bytes = 4 * b.pushed;
  e->out->block_bytes = (4 * b.in_buffer + 15) / 16 * 16;
  plan_descriptors(e, descriptors);
  plan_shared(e);
  return VYRE_OK;
}

/* --- variables ---------------------------------------------------------------------------- */

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

/* A struct with one member, an array, as blocks are; the array's type is its own,
 * since it has a layout. */
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
  const vyre__low_buffer *b = &e->k->buffers[buffer];
  spv_place *p = &e->places[buffer];
  uint32_t *type = &types[b->width];
  if ((b->width == 1 && !e->target->storage8) ||
      (b->width == 2 && !e->target->storage16)) {
    spv_refuse(e, 0,
               b->width == 1 ? "storage buffers of 8-bit elements"
                             : "storage buffers of 16-bit elements");
  }
  e->uses_storage8 |= b->width == 1;
  e->uses_storage16 |= b->width == 2;
  if (!*type) *type = block_type(e, spv_uint(e, 8u * b->width), b->width, 0);
  p->variable = variable(e, SPV_STORAGE_StorageBuffer, *type, b->name);
  bind(e, p->variable, p->binding);
  if (!b->is_written) {
    spv_decorate(e, p->variable, SPV_DECORATION_NonWritable);
  } else if (p->is_read && e->k->has_barrier &&
             !e->target->vulkan_memory_model) {
    /* What others of the workgroup wrote before a barrier is to be seen. */
    spv_decorate(e, p->variable, SPV_DECORATION_Coherent);
  }
}

static void declare_shared(spv_emitter *e, uint32_t buffer) {
  const vyre__low_buffer *b = &e->k->buffers[buffer];
  spv_place *p = &e->places[buffer];
  unsigned width = p->is_widened ? 4 : b->width;
  uint64_t count = spv_elements(b);
  if (count > UINT32_MAX) {
    spv_refuse(e, 0, "workgroup memory of that size");
    return;
  }
  e->uses_int8 |= width == 1;
  e->uses_int16 |= width == 2;
  uint32_t element = spv_uint(e, 8 * width);
  uint32_t type =
      SPV_TYPE(e, SPV_OpTypeArray, element, spv_u32(e, (uint32_t)count));
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

/* The block as far as it is a buffer. */
static void declare_block(spv_emitter *e, uint32_t types[9]) {
  uint32_t u32 = spv_uint(e, 32), type;
  if (e->target->block_in_storage) {
    type = types[4] = block_type(e, u32, 4, 0);
    e->block = variable(e, SPV_STORAGE_StorageBuffer, type, "block");
    spv_decorate(e, e->block, SPV_DECORATION_NonWritable);
  } else {
    uint32_t four = SPV_TYPE(e, SPV_OpTypeVector, u32, 4);
    type = block_type(e, four, 16, e->out->block_bytes / 16);
    e->block = variable(e, SPV_STORAGE_Uniform, type, "block");
  }
  bind(e, e->block, bound_count(e->k) + 2);
}

static void declare_workgroup_size(spv_emitter *e, uint32_t three) {
  uint32_t u32 = spv_uint(e, 32), parts[5] = {three, spv_id(e)};
  for (uint32_t i = 0; i < 3; i++) {
    parts[2 + i] = spv_id(e);
    SPV_PUT(e, SPV_GLOBALS, SPV_OpSpecConstant, u32, parts[2 + i],
            e->k->workgroup[i]);
    SPV_PUT(e, SPV_NOTES, SPV_OpDecorate, parts[2 + i], SPV_DECORATION_SpecId,
            i);
  }
  spv_put_all(e, SPV_GLOBALS, SPV_OpSpecConstantComposite, parts, 5);
  SPV_PUT(e, SPV_NOTES, SPV_OpDecorate, parts[1], SPV_DECORATION_BuiltIn,
          SPV_BUILTIN_WorkgroupSize);
  spv_name(e, parts[1], "workgroup_size");
}

void spv_declare(spv_emitter *e) {
  const vyre__low_kernel *k = e->k;
  uint32_t u32 = spv_uint(e, 32), types[9] = {0};
  uint32_t three = SPV_TYPE(e, SPV_OpTypeVector, u32, 3);
  declare_workgroup_size(e, three);
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
    if (e->places[i].is_in_block || !e->places[i].is_used) continue;
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

uint32_t spv_block_word(spv_emitter *e, bool is_pushed, uint32_t word,
                        uint32_t more) {
  uint32_t u32 = spv_uint(e, 32), zero = spv_u32(e, 0), at = spv_u32(e, word);
  if (more) at = word ? SPV_DO(e, SPV_OpIAdd, u32, at, more) : more;
  uint32_t place;
  if (is_pushed || e->target->block_in_storage) {
    uint32_t storage = is_pushed ? (uint32_t)SPV_STORAGE_PushConstant
                                 : (uint32_t)SPV_STORAGE_StorageBuffer;
    uint32_t type = spv_pointer(e, storage, u32);
    place = SPV_DO(e, SPV_OpAccessChain, type, is_pushed ? e->push : e->block,
                   zero, at);
  } else {
    uint32_t type = spv_pointer(e, SPV_STORAGE_Uniform, u32), row, column;
    if (more) {
      row = SPV_DO(e, SPV_OpShiftRightLogical, u32, at, spv_u32(e, 2));
      column = SPV_DO(e, SPV_OpBitwiseAnd, u32, at, spv_u32(e, 3));
    } else {
      row = spv_u32(e, word / 4);
      column = spv_u32(e, word % 4);
    }
    place = SPV_DO(e, SPV_OpAccessChain, type, e->block, zero, row, column);
  }
  return SPV_DO(e, SPV_OpLoad, u32, place);
}
