/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The backend table of the CPU: its one device, its options, its pipelines. */
#include "backend/cpu/cpu.h"

#include <stdio.h>
#include <string.h>

#include "vyre/emit.h"
#include "vyre/validate.h"
#include "vyre/version.h"

#include "base/memory.h"
#include "base/status.h"
#include "hal/device.h"
#include "ir/ir.h"

/* --- devices ---------------------------------------------------------------*/

static bool describe(uint32_t index, vyre_device_info *out) {
  const vyre__host_cpu *host_cpu = vyre__host_cpu_detect();
  if (!host_cpu->is_usable) {
    out->note = "needs an x86-64 processor with SSE4.2 and POPCNT";
    return false;
  }
  if (index > 0) {
    out->note = "the only CPU device is 'cpu', which uses all processors";
    return false;
  }
  out->description = host_cpu->cpu;
  out->driver = "vyre " VYRE_VERSION_STRING;
  out->note =
      "kernels compiled for this machine, on all of its threads; compiling "
      "needs LLVM 19 (apt-get install libllvm19)";
  return true;
}

static vyre_code make_thread_scratch(cpu_device *own, vyre_status *st) {
  uint32_t count = vyre__pool_numbers(own->pool);
  own->thread_scratch_bytes = (count + (size_t)1) * sizeof(cpu_thread_scratch);
  own->thread_scratch_block =
      vyre__resize(own->base.allocator, NULL, 0, own->thread_scratch_bytes);
  if (!own->thread_scratch_block)
    return vyre__no_memory(st, "cpu", "threads", count);
  uintptr_t at = ((uintptr_t)own->thread_scratch_block + 63) & ~(uintptr_t)63;
  own->thread_scratch = (cpu_thread_scratch *)at;
  memset(own->thread_scratch, 0, count * sizeof *own->thread_scratch);
  return VYRE_OK;
}

static void device_deinit(vyre_device *device) {
  cpu_device *own = (cpu_device *)device;
  for (uint32_t i = 0; own->thread_scratch && i < vyre__pool_numbers(own->pool);
       i++) {
    vyre__resize(device->allocator, own->thread_scratch[i].memory,
                 own->thread_scratch[i].size, 0);
  }
  vyre__resize(device->allocator, own->thread_scratch_block,
               own->thread_scratch_bytes, 0);
  vyre__deadlines_free(own->deadlines);
  vyre__pool_free(own->pool);
}

/* Rejects numbers in the range of the option that are not a vector width. */
static vyre_code check_width(uint32_t width, vyre_status *st) {
  if (vyre_emit_is_valid_width(width)) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "cpu.width",
      VYRE_NUMBERS({"width", width}),
      "set cpu.width to 1, 4, 8, 16 or 32, or to 0: chosen for each kernel",
      "device 'cpu' has no vectors of width %u", width);
}

static const vyre__option options[] = {
    {"threads", 0, 1024,
     "threads of a dispatch, including the caller's; 0: all cores"},
    {"width", 0, 32,
     "invocations per vector: 1, 4, 8, 16 or 32; 0: chosen for each kernel"},
    {"isa_level", 0, VYRE__LEVELS - 1,
     "highest instruction set: 1 SSE2, 2 SSE4.2, 3 AVX, 4 AVX2; 0: all"},
    {0}};

static vyre_code make_device(cpu_device *own, vyre_status *st) {
  vyre_context *context = own->base.context;
  own->host_cpu = vyre__host_cpu_at(
      (uint32_t)vyre__device_option(&own->base, "isa_level", VYRE__LEVEL_ALL));
  own->width = (uint32_t)vyre__device_option(&own->base, "width", 0);
  VYRE_TRY(check_width(own->width, st));
  uint64_t threads = vyre__device_option(&own->base, "threads", 0);
  own->llvm = vyre__context_llvm(context);
  VYRE_TRY(vyre__pool_create(own->base.allocator, (uint32_t)threads, &own->pool,
                             st));
  VYRE_TRY(vyre__deadlines_create(own->base.allocator, &own->deadlines, st));
  return make_thread_scratch(own, st);
}

static vyre_code device_init(vyre_device *device, vyre_status *st) {
  vyre_code code = make_device((cpu_device *)device, st);
  if (code != VYRE_OK) {
    device_deinit(device);
    return code;
  }
  device->caps = (vyre_device_caps){
      .max_workgroup = {VYRE_MAX_INVOCATIONS, VYRE_MAX_INVOCATIONS,
                        VYRE_MAX_INVOCATIONS},
      .max_workgroup_invocations = VYRE_MAX_INVOCATIONS,
      .max_shared_bytes = VYRE_MAX_SHARED_BYTES,
      .max_buffer_bytes = SIZE_MAX / 2,
      .host_alignment = 1,
      .borrows_host_memory = true,
      .has_device_time = true,
      .has_f64 = true,
      .has_u64 = true,
      .has_atomics64 = true};
  return VYRE_OK;
}

static bool is_ready(const vyre_context *context, const char **why) {
  const char *library = vyre__context_llvm(context);
  if (library && strcmp(library, "none") == 0) {
    *why =
        "auto: LLVM, which 'cpu' compiles with, is disabled by 'none' in "
        "VYRE_LLVM or the context's llvm; unset it";
    return false;
  }
  *why = library
             ? "auto: the file in VYRE_LLVM is not an LLVM 19 that 'cpu' can "
               "use; unset it, or name another file"
             : "auto: 'cpu' found no LLVM 19; run `apt-get install "
               "libllvm19`";
  if (!vyre__jit_is_available(library)) return false;
  *why =
      "auto: the LLVM that 'cpu' compiles with does not fit in the address "
      "space; start the process with a higher limit (`ulimit -v`)";
  return vyre__jit_fits(library);
}

static vyre_code preload(const vyre_context *context, vyre_status *st) {
  return vyre__jit_load_from(vyre__context_llvm(context), st);
}

/* Writes everything that compiled code depends on besides the program. A cached
 * object file is only loaded if this text is the same. */
static bool features(vyre_device *device, vyre_writer writer) {
  const cpu_device *own = (const cpu_device *)device;
  const char *text = own->host_cpu->text;
  char abi[48];
  int length = snprintf(abi, sizeof abi, "spmd %d, width %u; ", VYRE__SPMD_ABI,
                        (unsigned)own->width);
  return writer.write(writer.self, abi, (size_t)length) &&
         writer.write(writer.self, text, strlen(text));
}

/* --- pipelines -------------------------------------------------------------*/

static vyre_code pipeline_init(vyre_pipeline *pipeline, vyre_status *st) {
  return cpu_compile((cpu_pipeline *)pipeline, st);
}

static void pipeline_deinit(vyre_pipeline *pipeline) {
  cpu_pipeline *own = (cpu_pipeline *)pipeline;
  vyre__elf_object_free(&own->first.object);
  vyre__elf_object_free(&own->full.object);
}

/* Takes over the optimised code of @p full. Kernel and plan are the same,
 * except for the fields of cpu_code. Running launches finish with the old code,
 * which stays loaded until the pipeline is destroyed. */
static void pipeline_replace_code(vyre_pipeline *pipeline,
                                  vyre_pipeline *full) {
  cpu_pipeline *own = (cpu_pipeline *)pipeline, *other = (cpu_pipeline *)full;
  own->full = other->first;
  other->first.object = (vyre__elf_object){0};
  atomic_store_explicit(&own->code, &own->full, memory_order_release);
}

static vyre_code pipeline_load(vyre_pipeline *pipeline, const void *artifact,
                               size_t size, vyre_status *st) {
  cpu_pipeline *own = (cpu_pipeline *)pipeline;
  const void *object;
  size_t object_size;
  VYRE_TRY(cpu_artifact_read(artifact, size, &pipeline->arena, &own->plan,
                             &object, &object_size, st));
  VYRE_TRY(vyre__host_plan_fits(&own->plan.base, pipeline, st));
  VYRE_TRY(cpu_init_launch_data(own, st));
  return cpu_load(own, object, object_size, st);
}

static vyre_code pipeline_save(vyre_pipeline *pipeline, vyre_writer writer,
                               vyre_status *st) {
  const cpu_pipeline *own = (const cpu_pipeline *)pipeline;
  if (cpu_artifact_write(&own->plan, own->bytes, own->size, writer)) {
    return VYRE_OK;
  }
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_WRITER_REFUSED,
                   "free space in the cache directory",
                   "the writer refused an object of %zu bytes", own->size);
}

static void pipeline_describe(const vyre_pipeline *pipeline,
                              vyre_pipeline_resources *out) {
  const cpu_pipeline *own = (const cpu_pipeline *)pipeline;
  const cpu_plan *plan = &own->plan;
  const cpu_code *code = atomic_load_explicit(&own->code, memory_order_acquire);
  out->has_launches = out->has_width = out->has_code = true;
  out->is_baseline = plan->is_baseline || cpu_is_baseline(own, code);
  out->phase_count = plan->phase_count;
  out->spill_buffer_count =
      plan->buffer_count - (uint32_t)pipeline->program->buffer_count;
  out->spill_bytes = 4 * (uint64_t)plan->spill_words;
  out->scratch_bytes = code->scratch_bytes;
  out->width = code->width;
  out->code_bytes = code->object.size;
}

/* --- backend table ---------------------------------------------------------*/

extern const vyre__backend vyre__backend_cpu;

/* is_exact: compiled code uses IEEE 754 instructions only, and lowering expands
 * what the processor lacks (minimum, maximum, round; fma without FMA). A test
 * runs the float probe on this device. */
const vyre__backend vyre__backend_cpu = {
    .abi = VYRE__BACKEND_ABI,
    .struct_size = sizeof(vyre__backend),
    .name = "cpu",
    .is_exact = true,
    .clears_outputs = true,
    .aligns_atomics = true,
    .device_size = sizeof(cpu_device),
    .pipeline_size = sizeof(cpu_pipeline),
    .describe = describe,
    .is_ready = is_ready,
    .device_init = device_init,
    .device_deinit = device_deinit,
    .pipeline_init = pipeline_init,
    .pipeline_deinit = pipeline_deinit,
    .run = cpu_run,
    .run_batch = cpu_run_batch,
    .artifact_version = CPU_ARTIFACT,
    .pipeline_load = pipeline_load,
    .pipeline_save = pipeline_save,
    .features = features,
    .pipeline_replace_code = pipeline_replace_code,
    .pipeline_print = cpu_print,
    .pipeline_describe = pipeline_describe,
    .options = options,
    .preload = preload};
