/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Generates and loads code for the CPU: prints the LIR as LLVM IR, lets LLVM
 * make an object file, and loads it. Vector width and tier depend on the size
 * of the IR, because LLVM's compile time grows faster than its input. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/explain.h"
#include "base/memory.h"
#include "base/status.h"
#include "ir/sum.h"

/* --- LLVM IR ---------------------------------------------------------------*/

/* Code of a kernel while it is generated. */
typedef struct codegen {
  const vyre_pipeline *pipeline;
  const cpu_device *device;
  const vyre__lir_kernel *kernel;
  uint32_t fixed_width; /* set by an option or by tuning; 0: chosen */
  vyre__spmd_info info;
  vyre__bytes text;     /* LLVM IR; a NUL that is not counted ends it */
  vyre__jit_tier tier;  /* best tier for a text of this size */
  vyre__bytes object;   /* object file */
  uint64_t stack_bytes; /* its stack frame, if too large; else 0 */
  bool is_compact;      /* without copies of code for special cases */
  uint32_t passes_off;  /* bits of vyre__optional_pass */
  bool is_replaced;     /* it is baseline code, to be replaced later */
  vyre_status *st;
} codegen;

/* Operations without an instruction are corrected;
 * all others are exact on every x86-64 processor. */
void cpu_target(const vyre_pipeline *pipeline, vyre__target *out) {
  const cpu_device *device = (const cpu_device *)pipeline->device;
  *out = (vyre__target){.math = VYRE__MATH_F64, .has_sum_strips = true};
  if (!device->host_cpu->has_fma) {
    out->f32[VYRE__LIR_FMA] = VYRE__FLOAT_MODE_CORRECTED;
    out->math = VYRE__MATH_F64_NOFMA;
  }
  if (!device->host_cpu->has_rounding) {
    out->f32[VYRE__LIR_FFLOOR] = VYRE__FLOAT_MODE_CORRECTED;
    out->f32[VYRE__LIR_FCEIL] = VYRE__FLOAT_MODE_CORRECTED;
    out->f32[VYRE__LIR_FTRUNC] = VYRE__FLOAT_MODE_CORRECTED;
    out->f32[VYRE__LIR_FRINT] = VYRE__FLOAT_MODE_CORRECTED;
  }
}

/* Limits on the size of the LLVM IR, in bytes. LLVM's compile time grows faster
 * than the IR, above all where a value takes several registers. Beyond
 * COPIES_TEXT code is not copied for special cases (is_compact); beyond
 * WIDE_TEXT a vector is one register; beyond FULL_TEXT rows are not split into
 * ranges, if that suffices; beyond VECTORS_TEXT the code is scalar.
 * A text that is then still above FULL_TEXT is compiled in the baseline tier,
 * and above VECTORS_TEXT in the plain tier, whose compile time is linear.
 * Hand-written kernels stay below FULL_TEXT. A width set by the option
 * cpu.width is kept, with the lower limit MAX_FORCED_TEXT. The limits were
 * measured with thousands of values, branches, loads and 32-bit products in a
 * row: none took four seconds. 64-bit values take twice the registers, and
 * longer. */
enum {
  COPIES_TEXT = 160 << 10,
  WIDE_TEXT = 400 << 10,
  FULL_TEXT = 420 << 10,
  VECTORS_TEXT = 768 << 10,
  MAX_FORCED_TEXT = 1 << 20,
  MAX_TEXT = 4 << 20
};

static vyre_code too_large(const codegen *g) {
  size_t size = g->text.size;
  const char *name = g->pipeline->program->name;
  if (g->fixed_width > 1) {
    return VYRE_FAIL_WITH(
        g->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, "cpu.width",
        VYRE_NUMBERS({"bytes", size}, {"max_bytes", MAX_FORCED_TEXT},
                     {"width", g->fixed_width}),
        "do not set cpu.width, so that very large kernels get narrower "
        "vectors; or use device 'ref'",
        "kernel '%.60s' is too large for vectors of width %u on device 'cpu': "
        "%zu bytes of code to compile; the limit is %d",
        name, (unsigned)g->fixed_width, size, MAX_FORCED_TEXT);
  }
  return VYRE_FAIL_WITH(
      g->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, NULL,
      VYRE_NUMBERS({"bytes", size}, {"max_bytes", MAX_TEXT}),
      "split the kernel, turn repeated code into a loop, or use device 'ref'",
      "kernel '%.60s' is too large for device 'cpu': %zu bytes of code to "
      "compile; the limit is %d",
      name, size, MAX_TEXT);
}

static vyre__jit_tier tier_by_size(size_t size) {
  return size > VECTORS_TEXT ? VYRE__JIT_PLAIN
         : size > FULL_TEXT  ? VYRE__JIT_BASELINE
                             : VYRE__JIT_FULL;
}

/* Returns @p code, or an error if there was no memory for @p bytes: the writer
 * that refused was ours. */
static vyre_code check_memory(const codegen *g, const vyre__bytes *bytes,
                              vyre_code code) {
  if (!bytes->failed) return code;
  if (g->st) *g->st = (vyre_status){0};
  return vyre__no_memory(g->st, "cpu", "bytes of code", bytes->size);
}

/* Prints the kernel with vectors of @p width (0: chosen). Of a text that is too
 * large to be compiled, only the size is kept. */
static vyre_code print_llvm(codegen *g, uint32_t width, bool is_compact) {
  const vyre__emit_llvm_options options = {
      .width = width,
      .lanes = g->device->host_cpu->lanes,
      .cpu = g->device->host_cpu->cpu,
      .is_relaxed = g->pipeline->ulp_budget > 0,
      .is_compact = is_compact,
      .off = g->passes_off,
      .allocator = g->device->base.allocator};
  g->text.size = 0;
  g->is_compact = is_compact;
  vyre_code code = vyre__emit_llvm(
      g->kernel, &options, vyre__bytes_writer(&g->text), &g->info, g->st);
  g->tier = tier_by_size(g->text.size);
  vyre__bytes_put(&g->text, "", 1);
  if (!g->text.failed) g->text.size--;
  return check_memory(g, &g->text, code);
}

/* Prints the kernel again with vectors of @p width, if that is narrower and the
 * width was not set by an option. */
static vyre_code print_narrower(codegen *g, uint32_t width) {
  if (g->fixed_width > 0 || g->info.width <= width) return VYRE_OK;
  return print_llvm(g, width, true);
}

/* Does the same, unless the text becomes larger: narrow vectors may need code for
 * ranges that wide ones do not have. */
static vyre_code print_smaller(codegen *g, uint32_t width) {
  const uint32_t wide = g->info.width;
  const size_t size = g->text.size;
  VYRE_TRY(print_narrower(g, width));
  return g->text.size > size ? print_llvm(g, wide, true) : VYRE_OK;
}

/* Prints the kernel again with one code for all of a row, without ranges, if
 * that brings it to a better tier: optimised code with conditions is faster
 * than baseline code without them. At best the text becomes half as large. */
static vyre_code print_unsplit(codegen *g) {
  const vyre__jit_tier tier = g->tier;
  const uint32_t width = g->info.width, split = UINT32_C(1)
                                                << VYRE__OPTIONAL_RANGE_SPLIT;
  if (g->text.size / 2 > FULL_TEXT || g->passes_off & split) return VYRE_OK;
  g->passes_off |= split;
  VYRE_TRY(print_llvm(g, width, true));
  if (g->tier != tier) return VYRE_OK;
  g->passes_off = g->device->passes_off;
  return print_llvm(g, width, true);
}

/* Prints the kernel with vectors of @p width (0: chosen). If it is very large,
 * prints it without copies of code, then with narrower vectors, and then
 * without ranges of rows. */
static vyre_code print_within_limits(codegen *g, uint32_t width,
                                     bool is_compact) {
  g->passes_off = g->device->passes_off;
  VYRE_TRY(print_llvm(g, width, is_compact));
  if (g->text.size > COPIES_TEXT && !is_compact) {
    VYRE_TRY(print_llvm(g, g->info.width, true));
  }
  if (g->text.size > WIDE_TEXT) {
    VYRE_TRY(print_smaller(g, g->device->host_cpu->lanes));
  }
  if (g->text.size > FULL_TEXT) VYRE_TRY(print_unsplit(g));
  if (g->text.size > VECTORS_TEXT) VYRE_TRY(print_smaller(g, 1));
  size_t max = g->fixed_width > 1 ? MAX_FORCED_TEXT : MAX_TEXT;
  return g->text.size > max ? too_large(g) : VYRE_OK;
}

/* Returns the vector width of baseline code: one register. More registers per
 * value cost more compile time than they gain in speed. */
static uint32_t baseline_width(const codegen *g) {
  return g->fixed_width > 0 ? g->fixed_width : g->device->host_cpu->lanes;
}

static codegen begin(const vyre_pipeline *pipeline,
                     const vyre__lir_kernel *kernel, vyre_status *st) {
  vyre_allocator allocator = pipeline->device->allocator;
  const cpu_device *device = (const cpu_device *)pipeline->device;
  return (codegen){
      .pipeline = pipeline,
      .device = device,
      .fixed_width = vyre__tuned(pipeline, CPU_TUNES_WIDTH, device->width),
      .passes_off = device->passes_off,
      .kernel = kernel,
      .text = {.allocator = allocator, .max = MAX_TEXT + 1},
      .object = {.allocator = allocator},
      .st = st};
}

static void end(codegen *g) {
  vyre__bytes_deinit(&g->text);
  vyre__bytes_deinit(&g->object);
}

/* --- stack size ------------------------------------------------------------*/

/* The threads of an application may have small stacks, and an overflow ends the
 * process with a signal. */
enum { MAX_STACK = 256 << 10 };

static vyre_code check_stack(const codegen *g) {
  if (g->stack_bytes == 0) return VYRE_OK;
  return VYRE_FAIL_WITH(
      g->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, NULL,
      VYRE_NUMBERS({"bytes", g->stack_bytes}, {"max_bytes", MAX_STACK}),
      "split the kernel, do not set cpu.width, or use device 'ref'",
      "kernel '%.60s' keeps too many values at once for device 'cpu': %llu "
      "bytes of stack; the limit is %d",
      g->pipeline->program->name, (unsigned long long)g->stack_bytes,
      MAX_STACK);
}

/* --- object file -----------------------------------------------------------*/

static vyre_code compile_object(codegen *g, vyre__jit_tier tier) {
  const vyre__host_cpu *host = g->device->host_cpu;
  g->object.size = 0;
  vyre_code code = vyre__jit_object(
      (const char *)g->text.data, g->text.size, host->cpu, host->features, tier,
      MAX_STACK, &g->stack_bytes, vyre__bytes_writer(&g->object), g->st);
  return check_memory(g, &g->object, code);
}

/* Compiles baseline code, without copies for special cases, unless the kernel is too large for the optimised tier
 * anyway, or the code needs too much stack: baseline code needs more than
 * optimised code. */
static vyre_code compile_baseline(codegen *g) {
  VYRE_TRY(print_within_limits(g, baseline_width(g), true));
  if (g->tier != VYRE__JIT_FULL) return VYRE_OK;
  VYRE_TRY(compile_object(g, VYRE__JIT_FIRST));
  g->is_replaced = g->stack_bytes == 0;
  return VYRE_OK;
}

/* Compiles optimised code, with narrower vectors if it needs too much stack. */
static vyre_code compile_optimised(codegen *g) {
  const uint32_t widths[] = {g->device->host_cpu->lanes, 1};
  VYRE_TRY(print_within_limits(g, g->fixed_width, false));
  VYRE_TRY(compile_object(g, g->tier));
  for (size_t i = 0; i < 2 && g->stack_bytes > 0; i++) {
    uint32_t width = g->info.width;
    VYRE_TRY(print_narrower(g, widths[i]));
    if (g->info.width == width) continue;
    if (g->text.size > MAX_TEXT) return too_large(g);
    VYRE_TRY(compile_object(g, g->tier));
  }
  return check_stack(g);
}

static vyre_code generate(codegen *g, vyre_arena *scratch,
                          vyre__bytes *artifact) {
  cpu_plan plan;
  VYRE_TRY(cpu_load_llvm(g->device->base.context, g->st));
  bool stays_baseline = vyre__tuned(g->pipeline, CPU_TUNES_TIER,
                                    VYRE_TIER_AUTO) == VYRE_TIER_BASELINE;
  if (g->pipeline->is_baseline || stays_baseline) VYRE_TRY(compile_baseline(g));
  if (!g->is_replaced) VYRE_TRY(compile_optimised(g));
  VYRE_TRY(cpu_plan_build(g->kernel, &g->info, scratch, &plan, g->st));
  plan.numbers.is_baseline =
      g->tier != VYRE__JIT_FULL || (stays_baseline && g->is_replaced);
  plan.numbers.is_replaced = g->is_replaced && !stays_baseline;
  cpu_artifact_write(&plan, g->object.data, g->object.size, artifact);
  return VYRE_OK;
}

vyre_code cpu_generate(const vyre_pipeline *pipeline,
                       const vyre__lir_kernel *kernel, vyre_arena *scratch,
                       vyre__bytes *artifact, vyre_status *st) {
  codegen g = begin(pipeline, kernel, st);
  vyre_code code = generate(&g, scratch, artifact);
  end(&g);
  return code;
}

/* --- loading ---------------------------------------------------------------*/

static vyre_code find_sums(cpu_pipeline *pipeline, vyre_status *st) {
  const vyre_program *program = pipeline->base.program;
  const size_t count = program->buffer_count;
  pipeline->sums =
      vyre__arena_array(&pipeline->base.arena, count, sizeof *pipeline->sums);
  if (!pipeline->sums) return vyre__no_memory(st, "cpu", "buffers", count);
  for (uint32_t i = 0; i < count; i++) {
    if (!vyre__changes_sums(program, i)) continue;
    pipeline->sums[pipeline->sum_count++] = i;
  }
  return VYRE_OK;
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

static vyre_code init_launch_data(cpu_pipeline *pipeline, vyre_status *st) {
  VYRE_TRY(find_uniforms(pipeline, st));
  VYRE_TRY(find_sums(pipeline, st));
  uint32_t count = pipeline->plan.phase_count;
  pipeline->costs =
      vyre__arena_array(&pipeline->base.arena, count, sizeof(atomic_uint));
  if (!pipeline->costs) return vyre__no_memory(st, "cpu", "phases", count);
  for (uint32_t i = 0; i < count; i++) atomic_init(&pipeline->costs[i], 0);
  return VYRE_OK;
}

vyre_code cpu_load(vyre_pipeline *pipeline, const vyre__code_source *source,
                   vyre_status *st) {
  cpu_pipeline *own = (cpu_pipeline *)pipeline;
  const void *object;
  size_t size;
  VYRE_TRY(cpu_artifact_read(source->artifact, source->size, &pipeline->arena,
                             &own->plan, &object, &size, st));
  VYRE_TRY(vyre__host_plan_fits(&own->plan.base, pipeline, st));
  pipeline->host_plan = &own->plan.base;
  VYRE_TRY(init_launch_data(own, st));
  pipeline->is_baseline = own->plan.numbers.is_replaced;
  own->first.width = own->plan.numbers.width;
  own->first.scratch_bytes = own->plan.numbers.scratch_bytes;
  VYRE_TRY(vyre__elf_object_load(object, size, own->plan.phase_count,
                                 &own->first.object, st));
  atomic_init(&own->code, &own->first);
  return VYRE_OK;
}

/* --- printing --------------------------------------------------------------*/

/* Prints the kernel as the optimised code in use was printed: possibly with
 * narrower vectors than the first choice, because of its stack. */
static vyre_code print_as_compiled(codegen *g) {
  const cpu_pipeline *pipeline = (const cpu_pipeline *)g->pipeline;
  const cpu_code *code =
      atomic_load_explicit(&pipeline->code, memory_order_acquire);
  VYRE_TRY(print_within_limits(g, g->fixed_width, false));
  return print_narrower(g, code->width);
}

static vyre_code print_text(codegen *g, vyre_writer writer) {
  VYRE_TRY(print_as_compiled(g));
  return vyre__jit_write(writer, (const char *)g->text.data, g->text.size,
                         g->st);
}

static vyre_code print_compiled(codegen *g, vyre__jit_form form,
                                vyre_writer writer) {
  const vyre__host_cpu *host = g->device->host_cpu;
  VYRE_TRY(cpu_load_llvm(g->device->base.context, g->st));
  VYRE_TRY(print_as_compiled(g));
  return vyre__jit((const char *)g->text.data, g->text.size, host->cpu,
                   host->features, g->tier, form, writer, g->st);
}

static vyre_code print_why(codegen *g, vyre_arena *scratch, bool json,
                           vyre_writer writer) {
  const vyre__host_cpu *host = g->device->host_cpu;
  const vyre__lir_kernel *kernel;
  const vyre__shared_layout *layouts;
  VYRE_TRY(print_as_compiled(g));
  VYRE_TRY(vyre__prepare_kernel(g->kernel, g->passes_off, scratch, &kernel,
                                &layouts, g->st));
  const vyre__schedule_options with = {.lanes = host->lanes,
                                       .off = g->passes_off};
  cpu_choice choice = {.device = g->device,
                       .width = g->info.width,
                       .fixed_width = g->fixed_width,
                       .is_compact = g->is_compact,
                       .is_baseline = g->tier != VYRE__JIT_FULL,
                       .text = g->text.size,
                       .max_text = FULL_TEXT};
  VYRE_TRY(vyre__choose_width(kernel, &with,
                              vyre__cost_machine_of(host->cpu, host->lanes),
                              true, scratch, &choice.widths, g->st));
  if (cpu_explain(&choice, json, writer)) return VYRE_OK;
  return VYRE_FAIL(g->st, VYRE_INVALID_ARGUMENT, VYRE_KIND_WRITER_REFUSED,
                   "give a writer that takes all of the text",
                   "the writer refused the explanation of kernel '%.100s'",
                   g->pipeline->program->name);
}

vyre_code cpu_print(const vyre_pipeline *pipeline,
                    const vyre__lir_kernel *kernel, vyre_arena *scratch,
                    const char *form, vyre_writer writer, vyre_status *st) {
  bool is_text = strcmp(form, "llvm") == 0, is_asm = strcmp(form, "asm") == 0;
  bool is_json = strcmp(form, "why-json") == 0;
  bool is_why = is_json || strcmp(form, "why") == 0;
  if (!is_text && !is_asm && !is_why && strcmp(form, "llvm-optimised") != 0) {
    return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                     "use the form llvm, llvm-optimised, asm, why or why-json",
                     "device 'cpu' has no code in the form '%.60s'", form);
  }
  codegen g = begin(pipeline, kernel, st);
  vyre_code code =
      is_why ? print_why(&g, scratch, is_json, writer)
      : is_text
          ? print_text(&g, writer)
          : print_compiled(
                &g, is_asm ? VYRE__JIT_ASSEMBLY : VYRE__JIT_OPTIMISED, writer);
  end(&g);
  return code;
}
