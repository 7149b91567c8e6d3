/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compiles a program for the CPU: lowers it, prints LLVM IR, lets LLVM make an
 * object file, and loads it. Vector width and tier depend on the size of the
 * IR, because LLVM's compile time grows faster than its input. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "base/memory.h"
#include "base/status.h"

/* --- growing byte array ----------------------------------------------------*/

typedef struct byte_array {
  vyre_allocator allocator;
  char *data;
  size_t size, capacity;
  size_t max; /* bytes beyond this are counted but not stored; 0: no limit */
} byte_array;

static bool append_bytes(void *self, const char *text, size_t length) {
  byte_array *to = self;
  if (to->max > 0 && (to->size > to->max || length > to->max - to->size)) {
    to->size += length;
    return true;
  }
  if (length > SIZE_MAX / 2 - to->size ||
      !vyre__reserve(to->allocator, &to->data, &to->capacity,
                     to->size + length + 1, 1, false)) {
    return false;
  }
  if (length > 0) memcpy(to->data + to->size, text, length);
  to->size += length;
  to->data[to->size] = '\0';
  return true;
}

static void free_bytes(byte_array *bytes) {
  vyre__reserve_free(bytes->allocator, &bytes->data, &bytes->capacity, 1);
}

/* Turns the refusal of the writer above, which means no memory, into that
 * error. */
static vyre_code writer_error_as_no_memory(vyre_code code, vyre_status *st) {
  if (code != VYRE_INVALID_ARGUMENT) return code;
  if (st && st->kind != VYRE_KIND_WRITER_REFUSED) return code;
  if (st) *st = (vyre_status){0};
  return vyre__no_memory(st, "cpu", "bytes of code", 1);
}

/* --- LLVM IR ---------------------------------------------------------------*/

/* Returns the lowering target. Operations without an instruction are corrected;
 * all others are exact on every x86-64 processor. */
static vyre__target target_of(const vyre_pipeline *pipeline) {
  const cpu_device *device = (const cpu_device *)pipeline->device;
  vyre__target target = {.math = VYRE__MATH_F64};
  if (!device->host_cpu->has_fma) {
    target.f32[VYRE__LIR_FMA] = VYRE__FLOAT_MODE_CORRECTED;
    target.math = VYRE__MATH_F64_NOFMA;
  }
  if (!device->host_cpu->has_rounding) {
    target.f32[VYRE__LIR_FFLOOR] = VYRE__FLOAT_MODE_CORRECTED;
    target.f32[VYRE__LIR_FCEIL] = VYRE__FLOAT_MODE_CORRECTED;
    target.f32[VYRE__LIR_FTRUNC] = VYRE__FLOAT_MODE_CORRECTED;
    target.f32[VYRE__LIR_FRINT] = VYRE__FLOAT_MODE_CORRECTED;
  }
  memcpy(target.workgroup, pipeline->workgroup, sizeof target.workgroup);
  target.counts_iterations = pipeline->counts_iterations;
  return target;
}

/* Limits on the size of the LLVM IR, in bytes. LLVM's compile time grows faster
 * than the IR, above all where a value takes several registers. Beyond
 * WIDE_TEXT a vector is one register; beyond VECTORS_TEXT the code is scalar.
 * A text that is then still above FULL_TEXT is compiled in the baseline tier,
 * and above VECTORS_TEXT in the plain tier, whose compile time is linear.
 * Hand-written kernels stay below WIDE_TEXT. A width set by the option
 * cpu.width is kept, with the lower limit MAX_FORCED_TEXT. The limits were
 * measured with thousands of values, branches, loads and 32-bit products in a
 * row: none took four seconds. 64-bit values take twice the registers, and
 * longer. */
enum {
  WIDE_TEXT = 160 << 10,
  FULL_TEXT = 192 << 10,
  VECTORS_TEXT = 768 << 10,
  MAX_FORCED_TEXT = 1 << 20,
  MAX_TEXT = 4 << 20
};

static vyre_code too_large(const vyre_pipeline *pipeline, size_t size,
                           vyre_status *st) {
  const cpu_device *device = (const cpu_device *)pipeline->device;
  if (device->width > 1) {
    return VYRE_FAIL_WITH(
        st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, "cpu.width",
        VYRE_NUMBERS({"bytes", size}, {"max_bytes", MAX_FORCED_TEXT},
                     {"width", device->width}),
        "do not set cpu.width, so that very large kernels get print_narrower "
        "vectors; "
        "or use device 'ref'",
        "kernel '%.60s' is too large for vectors of width %u on device 'cpu': "
        "%zu bytes of code to compile; the limit is %d",
        pipeline->program->name, (unsigned)device->width, size,
        MAX_FORCED_TEXT);
  }
  return VYRE_FAIL_WITH(
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, NULL,
      VYRE_NUMBERS({"bytes", size}, {"max_bytes", MAX_TEXT}),
      "split the kernel, turn repeated code into a loop, or use device 'ref'",
      "kernel '%.60s' is too large for device 'cpu': %zu bytes of code to "
      "compile; the limit is %d",
      pipeline->program->name, size, MAX_TEXT);
}

static vyre__jit_tier tier_by_size(size_t size) {
  return size > VECTORS_TEXT ? VYRE__JIT_PLAIN
         : size > FULL_TEXT  ? VYRE__JIT_BASELINE
                             : VYRE__JIT_FULL;
}

/* Prints out->kernel as LLVM IR with vectors of @p width (0: chosen). If the
 * text is too large to be compiled, only its size is returned. */
static vyre_code print_llvm(const vyre_pipeline *pipeline, uint32_t width,
                            vyre_arena *arena, cpu_text *out, vyre_status *st) {
  const cpu_device *device = (const cpu_device *)pipeline->device;
  const vyre__emit_llvm_options options = {
      .width = width,
      .lanes = device->host_cpu->lanes,
      .is_relaxed = pipeline->ulp_budget > 0,
      .allocator = device->base.allocator};
  byte_array text = {.allocator = device->base.allocator, .max = MAX_TEXT};
  vyre_code code =
      vyre__emit_llvm(out->kernel, &options, (vyre_writer){append_bytes, &text},
                      &out->info, st);
  code = writer_error_as_no_memory(code, st);
  out->text = NULL;
  out->size = text.size;
  out->tier = tier_by_size(text.size);
  if (code == VYRE_OK && text.size <= MAX_TEXT) {
    char *copy = vyre_arena_alloc(arena, text.size + 1, 16);
    if (copy) memcpy(copy, text.data, text.size + 1);
    out->text = copy;
    if (!copy) code = vyre__no_memory(st, "cpu", "bytes of code", text.size);
  }
  free_bytes(&text);
  return code;
}

/* Prints the kernel again with vectors of @p width, if that is narrower and the
 * width was not set by an option. Otherwise *out stays unchanged. */
static vyre_code print_narrower(const vyre_pipeline *pipeline, uint32_t width,
                                vyre_arena *arena, cpu_text *out,
                                vyre_status *st) {
  const cpu_device *device = (const cpu_device *)pipeline->device;
  if (device->width > 0 || out->info.width <= width) return VYRE_OK;
  return print_llvm(pipeline, width, arena, out, st);
}

vyre_code cpu_emit_text(const vyre_pipeline *pipeline, uint32_t width,
                        vyre_arena *arena, cpu_text *out, vyre_status *st) {
  const cpu_device *device = (const cpu_device *)pipeline->device;
  vyre__target target = target_of(pipeline);
  vyre_program *inlined;
  *out = (cpu_text){0};
  VYRE_TRY(vyre__lower(pipeline->program, &target, VYRE__PASS_LEGALIZE_CONTROL,
                       arena, &out->kernel, &inlined, st));
  VYRE_TRY(print_llvm(pipeline, width, arena, out, st));
  if (out->size > WIDE_TEXT) {
    VYRE_TRY(print_narrower(pipeline, device->host_cpu->lanes, arena, out, st));
  }
  if (out->size > VECTORS_TEXT) {
    VYRE_TRY(print_narrower(pipeline, 1, arena, out, st));
  }
  size_t max = device->width > 1 ? MAX_FORCED_TEXT : MAX_TEXT;
  return out->size > max ? too_large(pipeline, out->size, st) : VYRE_OK;
}

/* --- stack size ------------------------------------------------------------*/

/* The threads of an application may have small stacks, and an overflow ends the
 * process with a signal. */
enum { MAX_STACK = 256 << 10 };

static vyre_code check_stack(const cpu_pipeline *pipeline, const cpu_text *text,
                             vyre_status *st) {
  if (text->stack_bytes == 0) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, NULL,
      VYRE_NUMBERS({"bytes", text->stack_bytes}, {"max_bytes", MAX_STACK}),
      "split the kernel, do not set cpu.width, or use device 'ref'",
      "kernel '%.60s' keeps too many values at once for device 'cpu': %llu "
      "bytes of stack; the limit is %d",
      pipeline->base.program->name, (unsigned long long)text->stack_bytes,
      MAX_STACK);
}

/* --- object file -----------------------------------------------------------*/

/* Compiles @p text. The object file stays in the pipeline's arena for the
 * cache. */
static vyre_code compile_object(cpu_pipeline *pipeline, cpu_text *text,
                                vyre__jit_tier tier, vyre_status *st) {
  const cpu_device *device = (const cpu_device *)pipeline->base.device;
  byte_array object = {.allocator = device->base.allocator};
  vyre_code code = writer_error_as_no_memory(
      vyre__jit_object(text->text, text->size, device->host_cpu->cpu,
                       device->host_cpu->features, tier, MAX_STACK,
                       &text->stack_bytes, (vyre_writer){append_bytes, &object},
                       st),
      st);
  if (code == VYRE_OK) {
    char *copy = vyre_arena_alloc(&pipeline->base.arena, object.size, 16);
    if (copy) memcpy(copy, object.data, object.size);
    pipeline->bytes = copy;
    pipeline->size = object.size;
    if (!copy) code = vyre__no_memory(st, "cpu", "bytes of code", object.size);
  }
  free_bytes(&object);
  return code;
}

/* Lists the uniforms of the kernel, with the offsets of their copies. */
static vyre_code find_uniforms(cpu_pipeline *pipeline, vyre_status *st) {
  enum { ALIGNMENT = 8 };
  const cpu_plan *plan = &pipeline->plan;
  uint32_t count = 0;
  uint64_t bytes = 0;
  cpu_uniform *all =
      vyre__arena_array(&pipeline->base.arena, plan->buffer_count, sizeof *all);
  if (!all) return vyre__no_memory(st, "cpu", "buffers", plan->buffer_count);
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    const vyre__plan_buffer *b = &plan->buffers[i];
    if (!b->is_bound || b->kind != VYRE_MEMORY_UNIFORM) continue;
    uint64_t size = (uint64_t)b->min * b->unit;
    all[count++] =
        (cpu_uniform){.buffer = i, .length = b->min, .size = size, .at = bytes};
    bytes += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
  pipeline->uniforms = all;
  pipeline->uniform_count = count;
  pipeline->uniform_bytes = bytes;
  return VYRE_OK;
}

vyre_code cpu_init_launch_data(cpu_pipeline *pipeline, vyre_status *st) {
  VYRE_TRY(find_uniforms(pipeline, st));
  uint32_t count = pipeline->plan.phase_count;
  pipeline->costs =
      vyre__arena_array(&pipeline->base.arena, count, sizeof(atomic_uint));
  if (!pipeline->costs) return vyre__no_memory(st, "cpu", "phases", count);
  for (uint32_t i = 0; i < count; i++) atomic_init(&pipeline->costs[i], 0);
  return VYRE_OK;
}

static vyre_code compile_again(cpu_pipeline *pipeline, vyre__arena_mark before,
                               cpu_text *text, vyre_status *st) {
  vyre__arena_rewind(&pipeline->base.arena, before);
  return compile_object(pipeline, text, text->tier, st);
}

/* Returns the vector width of baseline code: one register. More registers per
 * value cost more compile time than they gain in speed. */
static uint32_t baseline_width(const cpu_pipeline *pipeline) {
  const cpu_device *device = (const cpu_device *)pipeline->base.device;
  return device->width > 0 ? device->width : device->host_cpu->lanes;
}

/* Compiles baseline code. Does nothing if the kernel is too large for the
 * optimised tier anyway. Drops the code if it needs too much stack: baseline
 * code needs more than optimised code. */
static vyre_code compile_baseline(cpu_pipeline *pipeline, vyre_arena *arena,
                                  cpu_text *text, vyre_status *st) {
  vyre__arena_mark before = vyre__arena_here(&pipeline->base.arena);
  VYRE_TRY(cpu_emit_text(&pipeline->base, baseline_width(pipeline), arena, text,
                         st));
  if (text->tier != VYRE__JIT_FULL) return VYRE_OK;
  VYRE_TRY(compile_object(pipeline, text, VYRE__JIT_BASELINE, st));
  pipeline->first_is_baseline = text->stack_bytes == 0;
  if (!pipeline->first_is_baseline)
    vyre__arena_rewind(&pipeline->base.arena, before);
  return VYRE_OK;
}

/* Compiles optimised code, with narrower vectors if it needs too much stack. */
static vyre_code compile_within_stack(cpu_pipeline *pipeline, vyre_arena *arena,
                                      cpu_text *text, vyre_status *st) {
  const cpu_device *device = (const cpu_device *)pipeline->base.device;
  const uint32_t widths[] = {device->host_cpu->lanes, 1};
  vyre__arena_mark before = vyre__arena_here(&pipeline->base.arena);
  VYRE_TRY(compile_again(pipeline, before, text, st));
  for (size_t i = 0; i < 2 && text->stack_bytes > 0; i++) {
    uint32_t width = text->info.width;
    VYRE_TRY(print_narrower(&pipeline->base, widths[i], arena, text, st));
    if (text->info.width == width) continue;
    if (text->size > MAX_TEXT) {
      return too_large(&pipeline->base, text->size, st);
    }
    VYRE_TRY(compile_again(pipeline, before, text, st));
  }
  return check_stack(pipeline, text, st);
}

static vyre_code compile_in(cpu_pipeline *pipeline, vyre_arena *arena,
                            vyre_status *st) {
  const cpu_device *device = (const cpu_device *)pipeline->base.device;
  cpu_text text;
  pipeline->first_is_baseline = false;
  if (pipeline->base.is_baseline) {
    VYRE_TRY(compile_baseline(pipeline, arena, &text, st));
  }
  if (!pipeline->first_is_baseline) {
    VYRE_TRY(cpu_emit_text(&pipeline->base, device->width, arena, &text, st));
    VYRE_TRY(compile_within_stack(pipeline, arena, &text, st));
  }
  VYRE_TRY(cpu_plan_build(text.kernel, &text.info, &pipeline->base.arena,
                          &pipeline->plan, st));
  pipeline->plan.is_baseline = text.tier != VYRE__JIT_FULL;
  VYRE_TRY(cpu_init_launch_data(pipeline, st));
  return cpu_load(pipeline, pipeline->bytes, pipeline->size, st);
}

vyre_code cpu_load(cpu_pipeline *pipeline, const void *bytes, size_t size,
                   vyre_status *st) {
  pipeline->first.width = pipeline->plan.width;
  pipeline->first.scratch_bytes = pipeline->plan.scratch_bytes;
  VYRE_TRY(vyre__elf_object_load(bytes, size, pipeline->plan.phase_count,
                                 &pipeline->first.object, st));
  atomic_init(&pipeline->code, &pipeline->first);
  return VYRE_OK;
}

vyre_code cpu_compile(cpu_pipeline *pipeline, vyre_status *st) {
  vyre_arena arena; /* temporary: LIR and text */
  const cpu_device *device = (const cpu_device *)pipeline->base.device;
  VYRE_TRY(vyre__jit_load_from(device->llvm, st));
  vyre_arena_init(&arena, device->base.allocator);
  vyre_code code = compile_in(pipeline, &arena, st);
  vyre_arena_deinit(&arena);
  return code;
}

/* Prints the kernel as the code in use was printed: possibly with narrower
 * vectors than the first choice, because of its stack. */
static vyre_code print_as_compiled(const cpu_pipeline *pipeline,
                                   vyre_arena *arena, cpu_text *out,
                                   vyre_status *st) {
  const cpu_device *device = (const cpu_device *)pipeline->base.device;
  const cpu_code *code =
      atomic_load_explicit(&pipeline->code, memory_order_acquire);
  bool is_baseline = cpu_is_baseline(pipeline, code);
  VYRE_TRY(cpu_emit_text(&pipeline->base,
                         is_baseline ? baseline_width(pipeline) : device->width,
                         arena, out, st));
  VYRE_TRY(print_narrower(&pipeline->base, code->width, arena, out, st));
  if (is_baseline) out->tier = VYRE__JIT_BASELINE;
  return VYRE_OK;
}

vyre_code cpu_print(vyre_pipeline *pipeline, const char *form,
                    vyre_writer writer, vyre_status *st) {
  const cpu_device *device = (const cpu_device *)pipeline->device;
  bool is_text = strcmp(form, "llvm") == 0, is_asm = strcmp(form, "asm") == 0;
  if (!is_text && !is_asm && strcmp(form, "llvm-optimised") != 0) {
    return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                     "use the form llvm, llvm-optimised or asm",
                     "device 'cpu' has no code in the form '%.60s'", form);
  }
  vyre_arena arena;
  vyre_arena_init(&arena, device->base.allocator);
  cpu_text text;
  vyre_code code = VYRE_OK;
  if (!is_text) code = vyre__jit_load_from(device->llvm, st);
  if (code == VYRE_OK) {
    code = print_as_compiled((const cpu_pipeline *)pipeline, &arena, &text, st);
  }
  if (code == VYRE_OK && is_text) {
    if (!writer.write(writer.self, text.text, text.size)) {
      code = VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_WRITER_REFUSED,
                       "free space at the destination of the text",
                       "the writer refused the code of a kernel, %zu bytes",
                       text.size);
    }
  } else if (code == VYRE_OK) {
    code = vyre__jit(text.text, text.size, device->host_cpu->cpu,
                     device->host_cpu->features, text.tier,
                     is_asm ? VYRE__JIT_ASSEMBLY : VYRE__JIT_OPTIMISED, writer,
                     st);
  }
  vyre_arena_deinit(&arena);
  return code;
}
