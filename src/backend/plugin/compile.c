/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lowers for a device, and gives kernels to the backend: as the binary form of
 * the program, as C, or as SPIR-V. */
#include <string.h>

#include "vyre/binary.h"

#include "backend/plugin/plugin.h"
#include "base/memory.h"
#include "base/status.h"
#include "codegen/c/c.h"
#include "hal/float_target.h"
#include "ir/ir.h"

void plugin_target(const vyre_pipeline *pipeline, vyre__target *out) {
  const plugin_device *own = (const plugin_device *)pipeline->device;
  const vyre_device_caps *caps = &own->base.caps;
  const vyre_spirv_features *spirv = &own->opened.spirv;
  bool is_spirv = plugin_table(&own->base)->form == VYRE_BACKEND_FORM_SPIRV;
  *out = (vyre__target){
      .no_f64 = !caps->has_f64 || !caps->has_u64,
      .no_u64 = !caps->has_u64,
      .no_buffer_atomics64 = is_spirv && !spirv->has_buffer_atomics64,
      .no_shared_atomics64 = is_spirv && !spirv->has_shared_atomics64,
      .private_arrays = is_spirv,
      .no_narrow = is_spirv && (!spirv->has_storage8 || !spirv->has_storage16)};
  vyre__target_set_floats(pipeline->float_ops, out);
}

static vyre__spirv_target spirv_target(const vyre_pipeline *pipeline) {
  const plugin_device *own = (const plugin_device *)pipeline->device;
  const vyre_device_caps *caps = &own->base.caps;
  const vyre_spirv_features *has = &own->opened.spirv;
  const vyre_float_op_info *ops = pipeline->float_ops;
  bool is_exact = own->base.backend->is_exact;
  return (vyre__spirv_target){
      .storage8 = has->has_storage8,
      .storage16 = has->has_storage16,
      .int8 = has->has_int8,
      .int16 = has->has_int16,
      .int64 = caps->has_u64,
      .float64 = caps->has_f64,
      .fma64 = ops[VYRE__FLOAT_OP_F64_FMA].mode == VYRE_FLOAT_MODE_NATIVE &&
               (is_exact || ops[VYRE__FLOAT_OP_F64_FMA].tested > 0),
      .whole64 = ops[VYRE__FLOAT_OP_F64_RINT].mode == VYRE_FLOAT_MODE_NATIVE,
      .buffer_atomics64 = has->has_buffer_atomics64,
      .shared_atomics64 = has->has_shared_atomics64,
      .vulkan_memory_model = has->has_vulkan_memory_model,
      .device_scope = has->has_device_scope,
      .zeroes_workgroup = has->zeroes_workgroup,
      .keeps_signed_zeros = has->keeps_signed_zeros,
      .keeps_subnormals = has->keeps_subnormals,
      .rounds_to_even = has->rounds_to_even,
      .push_bytes = has->push_bytes,
      .block_in_storage = has->block_in_storage,
      .binds_uniforms = true};
}

/* --- bindings --------------------------------------------------------------*/

static bool is_written(const vyre_buffer_decl *buffer) {
  return buffer->access != VYRE_ACCESS_READ &&
         buffer->access != VYRE_ACCESS_UNIFORM;
}

/* Describes buffer @p index of the program. */
static plugin_binding program_binding(const vyre_program *program,
                                      uint32_t index) {
  const vyre_buffer_decl *b = &program->buffers[index];
  uint32_t unit = vyre_buffer_stride(b);
  return (plugin_binding){.role = PLUGIN_BUFFER,
                          .buffer = index,
                          .unit = unit,
                          .width = vyre_element_size(b->element)
                                       ? vyre_element_size(b->element)
                                       : 1,
                          .is_uniform = b->kind == VYRE_MEMORY_UNIFORM,
                          .is_written = is_written(b),
                          .is_shared = vyre__is_shared(b)};
}

/* Describes buffer @p index of the lowered kernel. */
static plugin_binding kernel_binding(const plugin_pipeline *own,
                                     uint32_t index) {
  const vyre__plan_buffer *b = &own->plan.buffers[index];
  if (!b->is_bound) {
    return (plugin_binding){
        .role = PLUGIN_SPILL, .unit = 4, .width = 4, .is_written = true};
  }
  plugin_binding out = program_binding(own->base.program, index);
  out.width = b->width;
  return out;
}

static plugin_binding descriptor_binding(const plugin_pipeline *own,
                                         const vyre__spirv_descriptor *d) {
  plugin_binding out = {.unit = 4, .width = 4, .is_written = d->is_written};
  switch ((vyre__spirv_what)d->what) {
    case VYRE__SPIRV_BUFFER:
    case VYRE__SPIRV_KEPT:
      out = kernel_binding(own, d->buffer);
      break;
    case VYRE__SPIRV_STATUS:
      out.role = PLUGIN_STATUS;
      break;
    case VYRE__SPIRV_BLOCK:
      out.role = PLUGIN_BLOCK;
      break;
  }
  return out;
}

static vyre_code make_bindings(plugin_pipeline *own, vyre_backend_form form,
                               vyre_status *st) {
  const vyre_program *program = own->base.program;
  size_t max = form == VYRE_BACKEND_FORM_SPIRV ? own->module.descriptor_count
               : form == VYRE_BACKEND_FORM_C   ? own->plan.buffer_count
                                               : program->buffer_count;
  own->bindings =
      vyre__arena_array(&own->base.arena, max, sizeof *own->bindings);
  if (!own->bindings) return vyre__no_memory(st, "a backend", "bindings", max);
  for (uint32_t i = 0; i < max; i++) {
    plugin_binding *to = &own->bindings[own->binding_count];
    if (form == VYRE_BACKEND_FORM_SPIRV) {
      *to = descriptor_binding(own, &own->module.descriptors[i]);
    } else if (form == VYRE_BACKEND_FORM_BINARY) {
      *to = program_binding(program, i);
    } else if (own->plan.buffers[i].kind == VYRE_MEMORY_SHARED) {
      continue;
    } else {
      *to = kernel_binding(own, i);
    }
    own->binding_count++;
  }
  return VYRE_OK;
}

/* Returns the bindings in the public form. They live in @p arena. */
static const vyre_backend_binding *public_bindings(const plugin_pipeline *own,
                                                   vyre_backend_form form,
                                                   vyre_arena *arena) {
  vyre_backend_binding *out =
      vyre__arena_filled(arena, own->binding_count + 1, sizeof *out, 0);
  for (uint32_t i = 0; out && i < own->binding_count; i++) {
    const plugin_binding *b = &own->bindings[i];
    out[i] = (vyre_backend_binding){
        .name = b->role == PLUGIN_BUFFER
                    ? own->base.program->buffers[b->buffer].name
                    : "",
        .element_bytes = b->unit,
        .is_uniform = b->is_uniform,
        .is_shared = b->is_shared,
        .is_written = b->is_written};
    if (form != VYRE_BACKEND_FORM_SPIRV) continue;
    out[i].binding = own->module.descriptors[i].binding;
    out[i].is_uniform = own->module.descriptors[i].is_uniform;
  }
  return out;
}

/* --- code ------------------------------------------------------------------*/

/* Code of a kernel in the form of its backend. */
typedef struct kernel_code {
  vyre__bytes text; /* C */
  const void *bytes;
  size_t size;
} kernel_code;

static vyre_code write_c(const plugin_pipeline *own,
                         const vyre__lir_kernel *kernel, kernel_code *out,
                         vyre_status *st) {
  const vyre__emit_c_options options = {
      .name = "entry", .allocator = own->base.device->allocator};
  vyre_code code =
      vyre__emit_c(kernel, &options, vyre__bytes_writer(&out->text), st);
  vyre__bytes_put(&out->text, "", 1);
  if (out->text.failed) {
    if (st) *st = (vyre_status){0};
    return vyre__no_memory(st, "a backend", "bytes of code", out->text.size);
  }
  out->bytes = out->text.data;
  out->size = out->text.size - 1;
  return code;
}

static vyre_code write_code(plugin_pipeline *own,
                            const vyre__code_source *source,
                            vyre_backend_form form, vyre_arena *arena,
                            kernel_code *out, vyre_status *st) {
  if (form == VYRE_BACKEND_FORM_BINARY) {
    const uint8_t *bytes;
    VYRE_TRY(vyre_program_write_binary(own->base.program, arena, &bytes,
                                       &out->size, vyre__status_open(st)));
    out->bytes = bytes;
    return VYRE_OK;
  }
  bool is_spirv = form == VYRE_BACKEND_FORM_SPIRV;
  /* OpAccessChain reads an index as a signed number. */
  VYRE_TRY(vyre__host_plan_build(
      source->kernel, is_spirv ? INT32_MAX : UINT32_MAX,
      own->base.device->backend->name, &own->base.arena, &own->plan, st));
  own->base.host_plan = &own->plan;
  if (!is_spirv) return write_c(own, source->kernel, out, st);
  const vyre__spirv_target target = spirv_target(&own->base);
  VYRE_TRY(vyre__emit_spirv(source->kernel, &target, &own->base.arena,
                            &own->module, st));
  out->bytes = own->module.words;
  out->size = own->module.word_count * sizeof *own->module.words;
  return VYRE_OK;
}

static vyre_code load_code(plugin_pipeline *own, vyre_backend_form form,
                           const kernel_code *code, vyre_arena *arena,
                           vyre_status *st) {
  const plugin_device *device = (const plugin_device *)own->base.device;
  const vyre_backend *table = plugin_table(&device->base);
  VYRE_TRY(make_bindings(own, form, st));
  vyre_backend_kernel kernel = {.name = own->base.program->name,
                                .form = form,
                                .code = code->bytes,
                                .code_bytes = code->size,
                                .phase_count = form == VYRE_BACKEND_FORM_BINARY
                                                   ? 1
                                                   : own->plan.phase_count,
                                .bindings = public_bindings(own, form, arena),
                                .binding_count = own->binding_count,
                                .shared_bytes = own->module.shared_bytes,
                                .push_bytes = own->module.push_bytes};
  memcpy(kernel.workgroup, own->base.workgroup, sizeof kernel.workgroup);
  if (!kernel.bindings) {
    return vyre__no_memory(st, table->name, "bindings", own->binding_count);
  }
  vyre_status inner = {0};
  return plugin_report(
      table, own->base.device, "kernel_load",
      table->kernel_load(device->opened.device, &kernel, &own->kernel, &inner),
      &inner, VYRE_KERNEL_COMPILE_FAILED, st);
}

vyre_code plugin_load(vyre_pipeline *pipeline, const vyre__code_source *source,
                      vyre_status *st) {
  plugin_pipeline *own = (plugin_pipeline *)pipeline;
  vyre_backend_form form = plugin_table(pipeline->device)->form;
  kernel_code code = {.text = {.allocator = pipeline->device->allocator}};
  vyre_arena arena;
  vyre_arena_init(&arena, pipeline->device->allocator);
  vyre_code result = write_code(own, source, form, &arena, &code, st);
  if (result == VYRE_OK) result = load_code(own, form, &code, &arena, st);
  vyre__bytes_deinit(&code.text);
  vyre_arena_deinit(&arena);
  return result;
}

void plugin_pipeline_deinit(vyre_pipeline *pipeline) {
  const plugin_device *device = (const plugin_device *)pipeline->device;
  const vyre_backend *table = plugin_table(pipeline->device);
  if (!table->kernel_unload) return;
  table->kernel_unload(device->opened.device,
                       ((plugin_pipeline *)pipeline)->kernel);
}
