/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The backend table of the CPU: its one device, its options, its pipelines. */
#include "backend/cpu/cpu.h"

#include <stdio.h>
#include <string.h>

#include "vyre/emit.h"
#include "vyre/validate.h"
#include "vyre/version.h"

#include "backend/cpu/launch.h"
#include "base/memory.h"
#include "base/status.h"
#include "hal/device.h"
#include "ir/ir.h"
#include "spmd/schedule.h"

/* --- devices ---------------------------------------------------------------*/

/* A barrier of two threads takes about as long. */
enum { WAVE_INLINE_NS = 500 };

static bool describe(const vyre__backend *self, uint32_t index,
                     vyre_device_info *out) {
  (void)self;
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

/* Names of the passes, `build` first, which always runs. */
#define SCHEDULE_PASS_NAME(name, text, about) " " text
#define PREPARE_PASS_NAME(name, text)         " " text
static const char pass_names[] = VYRE__SCHEDULE_PASS_MAP(SCHEDULE_PASS_NAME)
    VYRE__PREPARE_PASS_MAP(PREPARE_PASS_NAME);

static const vyre__option options[] = {
    {"threads", 0, 1024,
     "threads of a dispatch, including the caller's; 0: all cores"},
    {"width", 0, 32, "invocations per vector; 0: chosen for each kernel",
     VYRE_OPTION_NUMBER, "0 1 4 8 16 32"},
    {"isa_level", 0, VYRE__LEVELS - 1, "highest instruction set",
     VYRE_OPTION_ENUM, "all sse2 sse4.2 avx avx2"},
    {"passes_off", 0, (1u << (VYRE__OPTIONAL_COUNT - 1)) - 1,
     "passes of the vectoriser that do not run, to find a defect",
     VYRE_OPTION_SET, pass_names + sizeof " build"},
    {"llvm", 0, 0,
     "LLVM 19 library; none: no LLVM, so that only cached kernels run",
     VYRE_OPTION_PATH},
    {0}};

static vyre_code make_device(cpu_device *own, vyre_status *st) {
  own->host_cpu = vyre__host_cpu_at(
      (uint32_t)vyre__device_option(&own->base, "isa_level", VYRE__LEVEL_ALL));
  own->width = (uint32_t)vyre__device_option(&own->base, "width", 0);
  own->passes_off = (uint32_t)vyre__device_option(&own->base, "passes_off", 0)
                    << 1;
  own->wave_inline_ns = WAVE_INLINE_NS;
  uint64_t threads = vyre__device_option(&own->base, "threads", 0);
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

/* Returns the verb for the environment variable or the option. */
static const char *removal_of(const char *source) {
  return strncmp(source, "VYRE_", 5) == 0 ? "unset" : "remove";
}

/* The reason of is_ready, which the caller copies before its next call. */
static _Thread_local char not_ready[200]
    __attribute__((tls_model("initial-exec")));

static bool is_ready(const vyre_context *context, const char **why) {
  const char *library = vyre__context_llvm(context);
  const char *source = vyre__context_llvm_source(context);
  const char *remove = removal_of(source);
  *why = not_ready;
  if (library && strcmp(library, "none") == 0) {
    (void)snprintf(not_ready, sizeof not_ready,
                   "auto: %s is 'none', so that 'cpu' cannot compile; %s it",
                   source, remove);
    return false;
  }
  if (library) {
    (void)snprintf(not_ready, sizeof not_ready,
                   "auto: %s names '%.50s', which is not an LLVM 19 that 'cpu' "
                   "can use; %s it",
                   source, library, remove);
  } else {
    *why = "auto: 'cpu' found no LLVM 19; run `apt-get install libllvm19`";
  }
  if (!vyre__jit_is_available(library)) return false;
  *why =
      "auto: the LLVM that 'cpu' compiles with does not fit in the address "
      "space; start the process with a higher limit (`ulimit -v`)";
  return vyre__jit_fits(library);
}

vyre_code cpu_load_llvm(const vyre_context *context, vyre_status *st) {
  const char *library = vyre__context_llvm(context);
  vyre_code code = vyre__jit_load_from(library, st);
  if (code != VYRE_UNSUPPORTED_FEATURE || !library || !st) return code;
  bool is_none = strcmp(library, "none") == 0;
  const char *source = vyre__context_llvm_source(context);
  (void)snprintf(st->fix, sizeof st->fix,
                 "%s %s%s; cached kernels and device 'ref' need no LLVM",
                 removal_of(source), source,
                 is_none ? "" : ", or name the file of LLVM 19 in it");
  if (is_none) {
    (void)snprintf(st->message, sizeof st->message,
                   "compiling needs LLVM 19, which is disabled: %s is 'none'",
                   source);
  }
  return code;
}

static vyre_code preload(const vyre_context *context, vyre_status *st) {
  return cpu_load_llvm(context, st);
}

/* Writes everything that compiled code depends on besides the program. A cached
 * object file is only loaded if this text is the same. */
static void features(const vyre_device *device, vyre__bytes *to) {
  const cpu_device *own = (const cpu_device *)device;
  const char *text = own->host_cpu->text;
  char abi[64];
  int length =
      snprintf(abi, sizeof abi, "spmd %d, width %u, off %x; ", VYRE__SPMD_ABI,
               (unsigned)own->width, (unsigned)own->passes_off);
  vyre__bytes_put(to, abi, (size_t)length);
  vyre__bytes_put(to, text, strlen(text));
}

/* Lists the powers of two below the number of threads. */
static void list_threads(const cpu_device *own, vyre__tunable *out) {
  uint32_t threads = vyre__pool_threads(own->pool);
  for (uint32_t n = 1; n < threads && out->count < 8; n *= 2) {
    out->values[out->count++] = n;
  }
}

static bool tunable_at(const vyre_device *device, uint32_t index,
                       vyre__tunable *out) {
  static const uint32_t widths[] = {1, 4, 8, 16, 32};
  const cpu_device *own = (const cpu_device *)device;
  *out = (vyre__tunable){.changes_code = true};
  switch (index) {
    case CPU_TUNES_WIDTH:
      out->name = "width";
      for (size_t i = 0; own->width == 0 && i < 5; i++) {
        out->values[out->count++] = widths[i];
      }
      return true;
    case CPU_TUNES_THREADS:
      out->name = "threads";
      out->changes_code = false;
      list_threads(own, out);
      return true;
    case CPU_TUNES_TIER:
      out->name = "tier";
      out->is_tier = true;
      out->values[out->count++] = VYRE_TIER_BASELINE;
      return true;
    default:
      return false;
  }
}

/* --- pipelines -------------------------------------------------------------*/

static void pipeline_deinit(vyre_pipeline *pipeline) {
  cpu_pipeline *own = (cpu_pipeline *)pipeline;
  vyre__elf_object_free(&own->first.object);
  vyre__elf_object_free(&own->full.object);
}

/* Takes over the optimised code of @p full. Kernel and plan are the same,
 * except for the fields of cpu_code. Running launches switch to it between two
 * pieces; the old code stays loaded until the pipeline is destroyed. */
static void pipeline_replace_code(vyre_pipeline *pipeline,
                                  vyre_pipeline *full) {
  cpu_pipeline *own = (cpu_pipeline *)pipeline, *other = (cpu_pipeline *)full;
  own->full = other->first;
  other->first.object = (vyre__elf_object){0};
  atomic_store_explicit(&own->code, &own->full, memory_order_release);
}

static void pipeline_describe(const vyre_pipeline *pipeline,
                              vyre_pipeline_resources *out) {
  const cpu_pipeline *own = (const cpu_pipeline *)pipeline;
  const cpu_plan *plan = &own->plan;
  const cpu_code *code = atomic_load_explicit(&own->code, memory_order_acquire);
  out->has_launches = out->has_width = out->has_code = true;
  out->is_baseline = plan->numbers.is_baseline || cpu_is_baseline(own, code);
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
    .precedence = 200,
    .is_exact = true,
    .clears_outputs = true,
    .wave_threads = cpu_wave_threads,
    .wave_release = cpu_wave_release,
    .queue_plan = cpu_queue_plan,
    .queue_drain = cpu_queue_drain,
    .aligns_atomics = true,
    .device_size = sizeof(cpu_device),
    .pipeline_size = sizeof(cpu_pipeline),
    .describe = describe,
    .is_ready = is_ready,
    .device_init = device_init,
    .device_deinit = device_deinit,
    .target = cpu_target,
    .generate = cpu_generate,
    .load = cpu_load,
    .artifact_version = CPU_ARTIFACT,
    .pipeline_deinit = pipeline_deinit,
    .execute = cpu_execute,
    .features = features,
    .pipeline_replace_code = pipeline_replace_code,
    .optimise_is_due = cpu_optimise_is_due,
    .optimise_begins = cpu_optimise_begins,
    .optimise_ends = cpu_optimise_ends,
    .pipeline_print = cpu_print,
    .pipeline_describe = pipeline_describe,
    .options = options,
    .preload = preload,
    .tunable_at = tunable_at,
    .portable = &cpu_portable};
