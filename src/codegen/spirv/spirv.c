/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Assembles the module: capabilities, entry points and sections. */
#include "codegen/spirv/spirv.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "codegen/spirv/internal.h"

static const char function_name[] = "vyre__emit_spirv";

static void capability(spv_emitter *e, uint32_t number) {
  SPV_PUT(e, SPV_HEAD, SPV_OpCapability, number);
}

static void extension(spv_emitter *e, const char *name) {
  spv_put_text(e, SPV_HEAD, SPV_OpExtension, NULL, 0, name, NULL, 0);
}

/* Returns the widths of floats that the kernel uses. */
static unsigned widths(const spv_emitter *e) {
  unsigned all = e->uses_float64 ? 64 : 0;
  for (size_t i = 0; i < e->type_count; i++) {
    const spv_type *t = &e->types[i];
    if (t->op == SPV_OpTypeFloat) all |= t->operands[0];
  }
  return all;
}

typedef struct float_mode {
  uint32_t capability, mode;
  unsigned widths;
} float_mode;

static void find_modes(const spv_emitter *e, float_mode out[3]) {
  const vyre__spirv_target *t = e->target;
  unsigned has = widths(e);
  out[0] = (float_mode){SPV_CAPABILITY_DenormPreserve,
                        SPV_EXECUTION_MODE_DenormPreserve,
                        t->keeps_subnormals & has};
  out[1] = (float_mode){SPV_CAPABILITY_SignedZeroInfNanPreserve,
                        SPV_EXECUTION_MODE_SignedZeroInfNanPreserve,
                        t->keeps_signed_zeros & has};
  out[2] =
      (float_mode){SPV_CAPABILITY_RoundingModeRTE,
                   SPV_EXECUTION_MODE_RoundingModeRTE, t->rounds_to_even & has};
}

static void put_needs(spv_emitter *e, const float_mode modes[3]) {
  bool has_modes = false;
  const bool uses_model = e->target->vulkan_memory_model;
  capability(e, SPV_CAPABILITY_Shader);
  if (e->uses_float64) capability(e, SPV_CAPABILITY_Float64);
  if (e->uses_int64) capability(e, SPV_CAPABILITY_Int64);
  if (e->uses_atomics64) capability(e, SPV_CAPABILITY_Int64Atomics);
  if (e->uses_int16) capability(e, SPV_CAPABILITY_Int16);
  if (e->uses_int8) capability(e, SPV_CAPABILITY_Int8);
  if (e->uses_storage16) {
    capability(e, SPV_CAPABILITY_StorageBuffer16BitAccess);
  }
  if (e->uses_storage8) capability(e, SPV_CAPABILITY_StorageBuffer8BitAccess);
  for (int i = 0; i < 3; i++) {
    if (!modes[i].widths) continue;
    capability(e, modes[i].capability);
    has_modes = true;
  }
  if (uses_model) capability(e, SPV_CAPABILITY_VulkanMemoryModel);
  if (uses_model && e->target->device_scope) {
    capability(e, SPV_CAPABILITY_VulkanMemoryModelDeviceScope);
  }
  if (e->uses_storage8) extension(e, "SPV_KHR_8bit_storage");
  if (has_modes) extension(e, "SPV_KHR_float_controls");
  if (uses_model) extension(e, "SPV_KHR_vulkan_memory_model");
}

static void put_head(spv_emitter *e, const uint32_t *functions) {
  const uint32_t *size = e->k->workgroup;
  float_mode modes[3];
  find_modes(e, modes);
  put_needs(e, modes);
  spv_put_text(e, SPV_HEAD, SPV_OpExtInstImport, &e->glsl, 1, "GLSL.std.450",
               NULL, 0);
  SPV_PUT(e, SPV_HEAD, SPV_OpMemoryModel, SPV_ADDRESSING_Logical,
          e->target->vulkan_memory_model ? SPV_MEMORY_MODEL_Vulkan
                                         : SPV_MEMORY_MODEL_GLSL450);
  for (uint32_t i = 0; i < e->k->phase_count; i++) {
    char name[24];
    const uint32_t before[2] = {SPV_EXECUTION_MODEL_GLCompute, functions[i]};
    const uint32_t inputs[3] = {e->workgroup_id, e->local_id, e->local_index};
    snprintf(name, sizeof name, "phase%u", (unsigned)i);
    spv_put_text(e, SPV_HEAD, SPV_OpEntryPoint, before, 2, name, inputs, 3);
  }
  for (uint32_t i = 0; i < e->k->phase_count; i++) {
    SPV_PUT(e, SPV_HEAD, SPV_OpExecutionMode, functions[i],
            SPV_EXECUTION_MODE_LocalSize, size[0], size[1], size[2]);
    for (int m = 0; m < 3; m++) {
      for (unsigned width = 32; width <= 64; width *= 2) {
        if (!(modes[m].widths & width)) continue;
        SPV_PUT(e, SPV_HEAD, SPV_OpExecutionMode, functions[i], modes[m].mode,
                width);
      }
    }
  }
}

static vyre_code join_sections(spv_emitter *e) {
  size_t count = SPV_HEADER, at = SPV_HEADER;
  for (int i = 0; i < SPV_SECTIONS; i++) count += e->sections[i].count;
  uint32_t *words = vyre__arena_array(e->arena, count, sizeof *words);
  if (!words) return vyre__no_memory(e->st, function_name, "words", count);
  const uint32_t header[SPV_HEADER] = {SPV_MAGIC, SPV_MODULE_VERSION, 0,
                                       e->next_id, 0};
  memcpy(words, header, sizeof header);
  for (int i = 0; i < SPV_SECTIONS; i++) {
    const spv_words *section = &e->sections[i];
    if (section->count == 0) continue;
    memcpy(words + at, section->words, section->count * sizeof *words);
    at += section->count;
  }
  e->out->words = words;
  e->out->word_count = count;
  return VYRE_OK;
}

static void *zeroed(spv_emitter *e, size_t count, size_t size) {
  void *made = vyre__arena_filled(e->arena, count + 1, size, 0);
  if (!made) e->no_memory = true;
  return made;
}

static vyre_code emit_module(spv_emitter *e) {
  const vyre__lir_kernel *k = e->k;
  uint32_t *functions = zeroed(e, k->phase_count, sizeof *functions);
  e->infos = zeroed(e, k->buffer_count, sizeof *e->infos);
  e->ids = zeroed(e, k->count, sizeof *e->ids);
  e->vars = zeroed(e, k->var_count, sizeof *e->vars);
  e->lengths = zeroed(e, k->buffer_count, sizeof *e->lengths);
  e->spans = zeroed(e, k->buffer_count, sizeof *e->spans);
  e->uses = zeroed(e, k->count, sizeof *e->uses);
  e->is_delayed = zeroed(e, k->count, sizeof *e->is_delayed);
  e->is_checked = zeroed(e, k->phase_count, sizeof *e->is_checked);
  e->is_opaque = zeroed(e, k->count, sizeof *e->is_opaque);
  e->left = zeroed(e, k->loop_count, sizeof *e->left);
  e->loop_values =
      zeroed(e, 2 * (size_t)k->grid_loop_count, sizeof *e->loop_values);
  if (e->no_memory)
    return vyre__no_memory(e->st, function_name, "ids", k->count);
  VYRE_TRY(spv_plan(e));
  VYRE_TRY(vyre__find_deciding_loads(k, false, e->arena, &e->decides, e->st));
  e->glsl = spv_id(e);
  if (e->target->lines) { /* must precede all names */
    const char *file = k->program && k->program->file ? k->program->file : "";
    e->file = spv_id(e);
    spv_put_text(e, SPV_DEBUG, SPV_OpString, &e->file, 1, file, NULL, 0);
  }
  spv_declare(e);
  for (uint32_t i = 0; i < k->phase_count; i++) {
    if (e->no_memory || e->failed != VYRE_OK) break;
    functions[i] = spv_phase(e, i);
  }
  put_head(e, functions);
  if (e->failed != VYRE_OK) return e->failed;
  if (e->no_memory)
    return vyre__no_memory(e->st, function_name, "words", k->count);
  e->out->entry_points = k->phase_count;
  memcpy(e->out->workgroup, k->workgroup, sizeof e->out->workgroup);
  return join_sections(e);
}

vyre_code vyre__emit_spirv(const vyre__lir_kernel *kernel,
                           const vyre__spirv_target *target, vyre_arena *arena,
                           vyre__spirv_module *out, vyre_status *st) {
  static const vyre__spirv_target min_width = {0};
  spv_emitter e = {.k = kernel,
                   .target = target ? target : &min_width,
                   .arena = arena,
                   .allocator = arena->allocator,
                   .st = st,
                   .out = out,
                   .next_id = 1};
  *out = (vyre__spirv_module){0};
  vyre_code code = emit_module(&e);
  for (int i = 0; i < SPV_SECTIONS; i++) {
    vyre__reserve_free(e.allocator, &e.sections[i].words,
                       &e.sections[i].capacity, sizeof *e.sections[i].words);
  }
  vyre__reserve_free(e.allocator, &e.types, &e.type_capacity, sizeof *e.types);
  vyre__reserve_free(e.allocator, &e.constants, &e.constant_capacity,
                     sizeof *e.constants);
  vyre__reserve_free(e.allocator, &e.open, &e.open_capacity, sizeof *e.open);
  if (code != VYRE_OK) *out = (vyre__spirv_module){0};
  return code;
}
