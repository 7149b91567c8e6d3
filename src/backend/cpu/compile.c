/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "base/memory.h"
#include "base/status.h"

/* --- bytes in an arena -----------------------------------------------------------*/

typedef struct growing {
  vyre_allocator allocator;
  char *data;
  size_t size, capacity;
  size_t most; /* above it, they are only counted; 0: all are wanted */
} growing;

static bool grow(void *self, const char *text, size_t length) {
  growing *to = self;
  if (to->most > 0 && (to->size > to->most || length > to->most - to->size)) {
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

static void grown_free(growing *bytes) {
  vyre__reserve_free(bytes->allocator, &bytes->data, &bytes->capacity, 1);
}

/* A writer that refuses has no memory here. */
static vyre_code as_memory(vyre_code code, vyre_status *st) {
  if (code != VYRE_INVALID_ARGUMENT) return code;
  if (st && st->kind != VYRE_KIND_WRITER_REFUSED) return code;
  if (st) *st = (vyre_status){0};
  return vyre__no_memory(st, "cpu", "bytes of code", 1);
}

/* --- steps -----------------------------------------------------------------------*/

/* A processor does all operations right that the native forms leave. */
static vyre__target target_of(const vyre_pipeline *pipeline) {
  const cpu_device *device = (const cpu_device *)pipeline->device;
  vyre__target target = {.math = VYRE__MATH_F64};
  if (!device->machine->has_fma) {
    target.f32[VYRE__LIR_FMA] = VYRE__FLOAT_MODE_CORRECTED;
    target.math = VYRE__MATH_F64_NOFMA;
  }
  if (!device->machine->has_rounding) {
    target.f32[VYRE__LIR_FFLOOR] = VYRE__FLOAT_MODE_CORRECTED;
    target.f32[VYRE__LIR_FCEIL] = VYRE__FLOAT_MODE_CORRECTED;
    target.f32[VYRE__LIR_FTRUNC] = VYRE__FLOAT_MODE_CORRECTED;
    target.f32[VYRE__LIR_FRINT] = VYRE__FLOAT_MODE_CORRECTED;
  }
  memcpy(target.workgroup, pipeline->workgroup, sizeof target.workgroup);
  target.counts_iterations = pipeline->counts_iterations;
  return target;
}

/* Time to compile grows faster than the text of very large kernels, most of all
 * where a value is several registers. So theirs are one register from WIDE on, and
 * one number above VECTORS; what is then above FULL is made the quick way, and above
 * VECTORS the plain way, whose time grows as the text does. Kernels of people have
 * less than the first. Who asks for a width keeps it, and may have less.
 * (Measured with thousands of values, branches, loads and products of 32 bits in a
 * row: none took four seconds. The size of a text does not say how wide its values
 * are: those of 64 bits are twice the registers, and take longer.) */
enum {
  WIDE_TEXT = 160 << 10,
  FULL_TEXT = 192 << 10,
  VECTORS_TEXT = 768 << 10,
  MOST_ASKED_TEXT = 1 << 20,
  MOST_TEXT = 4 << 20
};

static vyre_code too_large(const vyre_pipeline *pipeline, size_t size,
                           vyre_status *st) {
  const cpu_device *device = (const cpu_device *)pipeline->device;
  if (device->width > 1) {
    return VYRE_FAIL_WITH(
        st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, "cpu.width",
        VYRE_NUMBERS({"bytes", size}, {"most_bytes", MOST_ASKED_TEXT},
                     {"width", device->width}),
        "do not set cpu.width: very large kernels then have narrow vectors; or "
        "take device 'ref'",
        "kernel '%.60s' is too large for vectors of width %u on device 'cpu': "
        "%zu bytes of code to compile, and at most %d",
        pipeline->program->name, (unsigned)device->width, size,
        MOST_ASKED_TEXT);
  }
  return VYRE_FAIL_WITH(
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, NULL,
      VYRE_NUMBERS({"bytes", size}, {"most_bytes", MOST_TEXT}),
      "make several kernels of it, write what is alike as a loop, or take "
      "device 'ref'",
      "kernel '%.60s' is too large for device 'cpu': %zu bytes of code to "
      "compile, and at most %d",
      pipeline->program->name, size, MOST_TEXT);
}

static vyre__jit_tier tier_by_size(size_t size) {
  return size > VECTORS_TEXT ? VYRE__JIT_PLAIN
         : size > FULL_TEXT  ? VYRE__JIT_BASELINE
                             : VYRE__JIT_FULL;
}

/* The kernel of *out as text, in vectors of @p width; 0: chosen. Only its size, if
 * that is too large to be compiled. */
static vyre_code spell_at(const vyre_pipeline *pipeline, uint32_t width,
                          vyre_arena *arena, cpu_text *out, vyre_status *st) {
  const cpu_device *device = (const cpu_device *)pipeline->device;
  const vyre__emit_llvm_options options = {
      .width = width,
      .lanes = device->machine->lanes,
      .is_relaxed = pipeline->ulp_budget > 0,
      .allocator = device->base.allocator};
  growing text = {.allocator = device->base.allocator, .most = MOST_TEXT};
  vyre_code code = vyre__emit_llvm(out->kernel, &options,
                                   (vyre_writer){grow, &text}, &out->info, st);
  code = as_memory(code, st);
  out->text = NULL;
  out->size = text.size;
  out->tier = tier_by_size(text.size);
  if (code == VYRE_OK && text.size <= MOST_TEXT) {
    char *copy = vyre_arena_alloc(arena, text.size + 1, 16);
    if (copy) memcpy(copy, text.data, text.size + 1);
    out->text = copy;
    if (!copy) code = vyre__no_memory(st, "cpu", "bytes of code", text.size);
  }
  grown_free(&text);
  return code;
}

/* Spells it narrower, if it may: *out is as it was otherwise. */
static vyre_code narrow(const vyre_pipeline *pipeline, uint32_t width,
                        vyre_arena *arena, cpu_text *out, vyre_status *st) {
  const cpu_device *device = (const cpu_device *)pipeline->device;
  if (device->width > 0 || out->info.width <= width) return VYRE_OK;
  return spell_at(pipeline, width, arena, out, st);
}

vyre_code cpu_spell(const vyre_pipeline *pipeline, uint32_t width,
                    vyre_arena *arena, cpu_text *out, vyre_status *st) {
  const cpu_device *device = (const cpu_device *)pipeline->device;
  vyre__target target = target_of(pipeline);
  vyre_program *inlined;
  *out = (cpu_text){0};
  VYRE_TRY(vyre__lower(pipeline->program, &target, VYRE__PASS_LEGALIZE_CONTROL,
                       arena, &out->kernel, &inlined, st));
  VYRE_TRY(spell_at(pipeline, width, arena, out, st));
  if (out->size > WIDE_TEXT) {
    VYRE_TRY(narrow(pipeline, device->machine->lanes, arena, out, st));
  }
  if (out->size > VECTORS_TEXT) {
    VYRE_TRY(narrow(pipeline, 1, arena, out, st));
  }
  size_t most = device->width > 1 ? MOST_ASKED_TEXT : MOST_TEXT;
  return out->size > most ? too_large(pipeline, out->size, st) : VYRE_OK;
}

/* Bytes of stack that the code takes: the largest `sub $n, %rsp` in it. That these
 * bytes are something else, with a number that would do, is one in a million. */
static uint32_t stack_of(const uint8_t *code, size_t size) {
  uint32_t most = 0;
  for (size_t i = 0; i + 7 <= size; i++) {
    if (code[i] != 0x48 || code[i + 1] != 0x81 || code[i + 2] != 0xEC) continue;
    uint32_t bytes;
    memcpy(&bytes, code + i + 3, sizeof bytes);
    if (bytes % 8 == 0 && bytes <= MOST_TEXT * 4 && bytes > most) most = bytes;
  }
  return most;
}

/* Threads of programs have little stack at times, and nothing tells when it is
 * over but a signal. */
enum { MOST_STACK = 256 << 10 };

static bool fits_stack(const cpu_pipeline *pipeline) {
  return stack_of(pipeline->bytes, pipeline->size) <= MOST_STACK;
}

static vyre_code check_stack(const cpu_pipeline *pipeline, vyre_status *st) {
  uint32_t bytes = stack_of(pipeline->bytes, pipeline->size);
  if (bytes <= MOST_STACK) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, NULL,
      VYRE_NUMBERS({"bytes", bytes}, {"most_bytes", MOST_STACK}),
      "make several kernels of it, do not set cpu.width, or take device 'ref'",
      "kernel '%.60s' has too many values at once for device 'cpu': %u bytes "
      "of stack, and at most %d",
      pipeline->base.program->name, (unsigned)bytes, MOST_STACK);
}

/* The object, kept for the cache. */
static vyre_code make_object(cpu_pipeline *pipeline, const cpu_text *text,
                             vyre__jit_tier tier, vyre_status *st) {
  const cpu_device *device = (const cpu_device *)pipeline->base.device;
  growing object = {.allocator = device->base.allocator};
  vyre_code code =
      as_memory(vyre__jit(text->text, text->size, device->machine->cpu,
                          device->machine->features, tier, VYRE__JIT_OBJECT,
                          (vyre_writer){grow, &object}, st),
                st);
  if (code == VYRE_OK) {
    char *copy = vyre_arena_alloc(&pipeline->base.arena, object.size, 16);
    if (copy) memcpy(copy, object.data, object.size);
    pipeline->bytes = copy;
    pipeline->size = object.size;
    if (!copy) code = vyre__no_memory(st, "cpu", "bytes of code", object.size);
  }
  grown_free(&object);
  return code;
}

/* Lists the uniforms of the kernel, and where a launch keeps their copies. */
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

vyre_code cpu_ready(cpu_pipeline *pipeline, vyre_status *st) {
  VYRE_TRY(find_uniforms(pipeline, st));
  uint32_t count = pipeline->plan.phase_count;
  pipeline->costs =
      vyre__arena_array(&pipeline->base.arena, count, sizeof(atomic_uint));
  if (!pipeline->costs) return vyre__no_memory(st, "cpu", "phases", count);
  for (uint32_t i = 0; i < count; i++) atomic_init(&pipeline->costs[i], 0);
  return VYRE_OK;
}

static vyre_code make_at(cpu_pipeline *pipeline, vyre__arena_mark before,
                         const cpu_text *text, vyre_status *st) {
  vyre__arena_rewind(&pipeline->base.arena, before);
  return make_object(pipeline, text, text->tier, st);
}

/* Quick code has vectors of one register: time to make it grows with the registers
 * of a value more than its speed does. */
static uint32_t quick_width(const cpu_pipeline *pipeline) {
  const cpu_device *device = (const cpu_device *)pipeline->base.device;
  return device->width > 0 ? device->width : device->machine->lanes;
}

/* Makes quick code, unless it is a kernel that is made the short way anyway, or
 * whose quick code takes too much stack: it takes more than full code does. */
static vyre_code make_quick(cpu_pipeline *pipeline, vyre_arena *arena,
                            cpu_text *text, vyre_status *st) {
  vyre__arena_mark before = vyre__arena_here(&pipeline->base.arena);
  VYRE_TRY(cpu_spell(&pipeline->base, quick_width(pipeline), arena, text, st));
  if (text->tier != VYRE__JIT_FULL) return VYRE_OK;
  VYRE_TRY(make_object(pipeline, text, VYRE__JIT_BASELINE, st));
  pipeline->is_less = fits_stack(pipeline);
  if (!pipeline->is_less) vyre__arena_rewind(&pipeline->base.arena, before);
  return VYRE_OK;
}

/* What takes too much stack takes less in narrower vectors. */
static vyre_code make_fitting(cpu_pipeline *pipeline, vyre_arena *arena,
                              cpu_text *text, vyre_status *st) {
  const cpu_device *device = (const cpu_device *)pipeline->base.device;
  const uint32_t widths[] = {device->machine->lanes, 1};
  vyre__arena_mark before = vyre__arena_here(&pipeline->base.arena);
  VYRE_TRY(make_at(pipeline, before, text, st));
  for (size_t i = 0; i < 2 && !fits_stack(pipeline); i++) {
    uint32_t width = text->info.width;
    VYRE_TRY(narrow(&pipeline->base, widths[i], arena, text, st));
    if (text->info.width == width) continue;
    if (text->size > MOST_TEXT) {
      return too_large(&pipeline->base, text->size, st);
    }
    VYRE_TRY(make_at(pipeline, before, text, st));
  }
  return check_stack(pipeline, st);
}

static vyre_code compile_in(cpu_pipeline *pipeline, vyre_arena *arena,
                            vyre_status *st) {
  const cpu_device *device = (const cpu_device *)pipeline->base.device;
  cpu_text text;
  pipeline->is_less = false;
  if (pipeline->base.is_baseline) {
    VYRE_TRY(make_quick(pipeline, arena, &text, st));
  }
  if (!pipeline->is_less) {
    VYRE_TRY(cpu_spell(&pipeline->base, device->width, arena, &text, st));
    VYRE_TRY(make_fitting(pipeline, arena, &text, st));
  }
  VYRE_TRY(cpu_plan_build(text.kernel, &text.info, &pipeline->base.arena,
                          &pipeline->plan, st));
  pipeline->plan.is_short = text.tier != VYRE__JIT_FULL;
  VYRE_TRY(cpu_ready(pipeline, st));
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
  vyre_arena arena; /* of what is needed on the way only */
  const cpu_device *device = (const cpu_device *)pipeline->base.device;
  VYRE_TRY(vyre__jit_load_from(device->llvm, st));
  vyre_arena_init(&arena, device->base.allocator);
  vyre_code code = compile_in(pipeline, &arena, st);
  vyre_arena_deinit(&arena);
  return code;
}

/* As what runs was spelled: that may be narrower than the first choice, for the
 * stack that it takes. */
static vyre_code spell_as_made(const cpu_pipeline *pipeline, vyre_arena *arena,
                               cpu_text *out, vyre_status *st) {
  const cpu_device *device = (const cpu_device *)pipeline->base.device;
  const cpu_code *code =
      atomic_load_explicit(&pipeline->code, memory_order_acquire);
  bool is_less = cpu_is_less(pipeline, code);
  VYRE_TRY(cpu_spell(&pipeline->base,
                     is_less ? quick_width(pipeline) : device->width, arena,
                     out, st));
  VYRE_TRY(narrow(&pipeline->base, code->width, arena, out, st));
  if (is_less) out->tier = VYRE__JIT_BASELINE;
  return VYRE_OK;
}

vyre_code cpu_print(vyre_pipeline *pipeline, const char *form,
                    vyre_writer writer, vyre_status *st) {
  const cpu_device *device = (const cpu_device *)pipeline->device;
  bool is_text = strcmp(form, "llvm") == 0, is_asm = strcmp(form, "asm") == 0;
  if (!is_text && !is_asm && strcmp(form, "llvm-optimised") != 0) {
    return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                     "ask for llvm, llvm-optimised or asm",
                     "device 'cpu' has no code in the form '%.60s'", form);
  }
  vyre_arena arena;
  vyre_arena_init(&arena, device->base.allocator);
  cpu_text text;
  vyre_code code = VYRE_OK;
  if (!is_text) code = vyre__jit_load_from(device->llvm, st);
  if (code == VYRE_OK) {
    code = spell_as_made((const cpu_pipeline *)pipeline, &arena, &text, st);
  }
  if (code == VYRE_OK && is_text) {
    if (!writer.write(writer.self, text.text, text.size)) {
      code = VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_WRITER_REFUSED,
                       "make room where the text goes",
                       "the writer refused the code of a kernel, %zu bytes",
                       text.size);
    }
  } else if (code == VYRE_OK) {
    code = vyre__jit(text.text, text.size, device->machine->cpu,
                     device->machine->features, text.tier,
                     is_asm ? VYRE__JIT_ASSEMBLY : VYRE__JIT_OPTIMISED, writer,
                     st);
  }
  vyre_arena_deinit(&arena);
  return code;
}
