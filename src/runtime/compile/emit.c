/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* vyre_program_emit: lowers a program, and prints it as LIR, C, LLVM or
 * SPIR-V, or its schedule. */
#include "vyre/emit.h"

#include <string.h>

#include "vyre/validate.h"

#include "base/status.h"
#include "codegen/c/c.h"
#include "codegen/llvm/llvm.h"
#include "codegen/spirv/spirv.h"
#include "lir/lir.h"
#include "runtime/compile/pipeline.h"
#include "spmd/cost/vector_width.h"

static const char *const pass_names[] = {
#define VYRE__X3(name, text, about) (text),
    VYRE__PASS_MAP(VYRE__X3)
#undef VYRE__X3
};

static const char *const schedule_names[] = {
#define VYRE__X3(name, text, about) (text),
    VYRE__SCHEDULE_PASS_MAP(VYRE__X3)
#undef VYRE__X3
};

static const char *const schedule_texts[] = {
#define VYRE__X3(name, text, about) (about),
    VYRE__SCHEDULE_PASS_MAP(VYRE__X3)
#undef VYRE__X3
};

/* The name of a pass, as part of a fix. */
#define PASS_NAME(name, text, about) " " text

static const char *const pass_texts[] = {
#define VYRE__X3(name, text, about) (about),
    VYRE__PASS_MAP(VYRE__X3)
#undef VYRE__X3
};

const char *vyre_pass_at(uint32_t index) {
  return index < VYRE__PASS_COUNT ? pass_names[index] : NULL;
}

const char *vyre_pass_description(uint32_t index) {
  return index < VYRE__PASS_COUNT ? pass_texts[index] : NULL;
}

const char *vyre_schedule_pass_at(uint32_t index) {
  return index < VYRE__SCHEDULE_COUNT ? schedule_names[index] : NULL;
}

const char *vyre_schedule_pass_description(uint32_t index) {
  return index < VYRE__SCHEDULE_COUNT ? schedule_texts[index] : NULL;
}

/* Sets the float mode of every operation that has modes. */
static void set_float_mode(vyre__target *target, vyre_float_mode mode) {
  for (int op = VYRE__LIR_FADD; op <= VYRE__LIR_F_TO_S; op++) {
    target->f32[op] = (uint8_t)mode;
  }
  target->f32[VYRE__LIR_BITCAST] = VYRE__FLOAT_MODE_NATIVE;
  target->f32_as_bits = mode == VYRE_FLOAT_MODE_SOFT;
}

static vyre_code read_workgroup(const uint32_t size[3], uint32_t out[3],
                                vyre_status *st) {
  uint64_t product = 1;
  if (size[0] == 0) return VYRE_OK;
  for (int axis = 0; axis < 3; axis++) {
    out[axis] = size[axis] ? size[axis] : 1;
    product *= out[axis];
    if (product <= VYRE_MAX_INVOCATIONS) continue;
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "use a workgroup of at most 1024 invocations",
                     "a workgroup of %u x %u x %u has more than %d invocations",
                     size[0], size[1], size[2], VYRE_MAX_INVOCATIONS);
  }
  return VYRE_OK;
}

static vyre_code read_options(const vyre_emit_options *options,
                              vyre__target *target, vyre__pass *last,
                              vyre_status *st) {
  if ((unsigned)options->form >= VYRE_EMIT_COUNT ||
      (unsigned)options->float_mode >= VYRE_FLOAT_MODE_COUNT ||
      (unsigned)options->math >= VYRE_MATH_COUNT) {
    return VYRE_FAIL(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
        "use the enumerators of vyre/emit.h",
        "vyre_program_emit: invalid form %u, float_mode %u or math %u",
        (unsigned)options->form, (unsigned)options->float_mode,
        (unsigned)options->math);
  }
  *target =
      (vyre__target){.math = (uint8_t)options->math,
                     .no_u64 = options->no_u64,
                     .no_f64 = options->no_u64,
                     .private_arrays = options->form == VYRE_EMIT_SPIRV ||
                                       options->form == VYRE_EMIT_SPIRV_TEXT,
                     .no_narrow = options->no_narrow};
  VYRE_TRY(read_workgroup(options->workgroup, target->workgroup, st));
  set_float_mode(target, options->float_mode);
  *last = VYRE__PASS_LEGALIZE_CONTROL;
  if (!options->after || options->form == VYRE_EMIT_SCHEDULE) return VYRE_OK;
  for (int i = 0; i < VYRE__PASS_COUNT; i++) {
    if (strcmp(options->after, pass_names[i]) == 0) {
      *last = (vyre__pass)i;
      return VYRE_OK;
    }
  }
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                   "use one of:" VYRE__PASS_MAP(PASS_NAME),
                   "unknown pass '%.60s'", options->after);
}

static bool is_one_of(uint32_t number, const uint32_t *list, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (list[i] == number) return true;
  }
  return false;
}

bool vyre_emit_is_valid_width(uint32_t width) {
  static const uint32_t widths[] = {0, 1, 4, 8, 16, 32};
  return is_one_of(width, widths, sizeof widths / sizeof widths[0]);
}

static vyre_code check_llvm(const vyre_emit_options *options, vyre_status *st) {
  static const uint32_t lanes[] = {0, 4, 8, 16};
  if (!vyre_emit_is_valid_width(options->width) ||
      !is_one_of(options->lanes, lanes, 4)) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "width",
        VYRE_NUMBERS({"width", options->width}, {"lanes", options->lanes}),
        "use a width of 1, 4, 8, 16 or 32, and 4, 8 or 16 lanes",
        "invalid vector width %u with %u lanes", options->width,
        options->lanes);
  }
  return VYRE_OK;
}

static vyre_code writer_failed(vyre_status *st) {
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_WRITER_REFUSED,
                   "make sure that the writer accepts all of the text",
                   "vyre_program_emit: the writer failed");
}

/* Emits SPIR-V for a device with every feature that the options do not
 * exclude. */
static vyre_code print_spirv(const vyre__lir_kernel *kernel,
                             const vyre_emit_options *options,
                             vyre_writer writer, vyre_status *st) {
  vyre_allocator allocator = kernel->program->arena.allocator;
  bool is_text = options->form == VYRE_EMIT_SPIRV_TEXT;
  const vyre__spirv_target target = {.storage8 = !options->no_narrow,
                                     .storage16 = !options->no_narrow,
                                     .int8 = !options->no_narrow,
                                     .int16 = !options->no_narrow,
                                     .int64 = !options->no_u64,
                                     .float64 = !options->no_u64,
                                     .fma64 = true,
                                     .buffer_atomics64 = !options->no_u64,
                                     .shared_atomics64 = !options->no_u64,
                                     .vulkan_memory_model = true,
                                     .names = is_text,
                                     .lines = is_text};
  vyre__spirv_module module;
  vyre_arena arena;
  vyre_arena_init(&arena, allocator);
  vyre_code code = vyre__emit_spirv(kernel, &target, &arena, &module, st);
  if (code == VYRE_OK) {
    code = vyre__spirv_write(&module, is_text, allocator, writer, st);
  }
  vyre_arena_deinit(&arena);
  return code;
}

/* --- the schedule ---------------------------------------------------------*/

static vyre_code find_schedule_pass(const char *name, vyre__schedule_pass *last,
                                    vyre_status *st) {
  *last = (vyre__schedule_pass)(VYRE__SCHEDULE_COUNT - 1);
  if (!name) return VYRE_OK;
  for (unsigned i = 0; i < VYRE__SCHEDULE_COUNT; i++) {
    if (strcmp(name, schedule_names[i]) != 0) continue;
    *last = (vyre__schedule_pass)i;
    return VYRE_OK;
  }
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                   "use one of:" VYRE__SCHEDULE_PASS_MAP(PASS_NAME),
                   "unknown schedule pass '%.60s'", name);
}

static vyre_code print_schedules(const vyre__lir_kernel *kernel,
                                 const vyre_emit_options *options,
                                 vyre__schedule_pass last, vyre_arena *arena,
                                 vyre_writer writer, vyre_status *st) {
  vyre__schedule_options with = {.width = options->width,
                                 .lanes = options->lanes};
  const vyre__shared_layout *layouts;
  VYRE_TRY(vyre__prepare_kernel(kernel, 0, arena, &kernel, &layouts, st));
  if (!vyre__layouts_print(kernel, layouts, writer)) return writer_failed(st);
  if (!with.width) {
    vyre__width_choice choice;
    VYRE_TRY(vyre__choose_width(kernel, &with,
                                vyre__cost_machine_of(NULL, with.lanes), false,
                                arena, &choice, st));
    with.width = choice.width;
  }
  VYRE_TRY(vyre__make_versions(kernel, &with, arena, &kernel, st));
  for (uint32_t i = 0; i < kernel->phase_count; i++) {
    vyre__schedule schedule;
    VYRE_TRY(vyre__schedule_make(kernel, i, &with, last, arena, &schedule, st));
    if (!vyre__schedule_print(&schedule, writer)) return writer_failed(st);
  }
  return VYRE_OK;
}

static vyre_code print_schedule(const vyre__lir_kernel *kernel,
                                const vyre_emit_options *options,
                                vyre_writer writer, vyre_status *st) {
  vyre__schedule_pass last;
  VYRE_TRY(find_schedule_pass(options->after, &last, st));
  vyre_arena arena;
  vyre_arena_init(&arena, kernel->program->arena.allocator);
  vyre_code code = print_schedules(kernel, options, last, &arena, writer, st);
  vyre_arena_deinit(&arena);
  return code;
}

static vyre_code print(const vyre__lir_kernel *kernel,
                       const vyre_emit_options *options, vyre_writer writer,
                       vyre_emit_report *report, vyre_status *st) {
  if (report) {
    *report = (vyre_emit_report){.instructions = kernel->count - 1,
                                 .accesses = kernel->access_count,
                                 .proven_accesses = kernel->proven_count,
                                 .phases = kernel->phase_count,
                                 .spill_bytes = 4 * kernel->spill_words};
  }
  if (options->form == VYRE_EMIT_C) {
    const vyre__emit_c_options with = {.allocator =
                                           kernel->program->arena.allocator};
    return vyre__emit_c(kernel, &with, writer, st);
  }
  if (options->form == VYRE_EMIT_LLVM) {
    const vyre__emit_llvm_options with = {
        .width = options->width,
        .lanes = options->lanes ? options->lanes : 8,
        .allocator = kernel->program->arena.allocator};
    vyre__spmd_info info;
    return vyre__emit_llvm(kernel, &with, writer, &info, st);
  }
  if (options->form == VYRE_EMIT_SCHEDULE) {
    return print_schedule(kernel, options, writer, st);
  }
  if (options->form >= VYRE_EMIT_SPIRV) {
    return print_spirv(kernel, options, writer, st);
  }
  return vyre__lir_print(kernel, writer) ? VYRE_OK : writer_failed(st);
}

vyre_code vyre_program_emit(const vyre_program *program,
                            const vyre_emit_options *options,
                            vyre_writer writer, vyre_emit_report *report,
                            vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE_BOTH(st, program, options);
  VYRE_REQUIRE(st, writer.write);
  VYRE_CHECK_RESERVED(st, __func__, options);
  vyre__target target;
  vyre__pass last;
  VYRE_TRY(read_options(options, &target, &last, st));
  if (options->form != VYRE_EMIT_LOWERED) last = VYRE__PASS_LEGALIZE_CONTROL;
  if (options->form == VYRE_EMIT_LLVM || options->form == VYRE_EMIT_SCHEDULE) {
    VYRE_TRY(check_llvm(options, st));
  }
  VYRE_TRY(vyre__check_body(program, NULL, st));
  vyre_arena arena;
  vyre_arena_init(&arena, program->arena.allocator);
  const vyre__lir_kernel *kernel = NULL;
  vyre_program *inlined = NULL;
  vyre_code code =
      vyre__lower(program, &target, last, &arena, &kernel, &inlined, st);
  if (code == VYRE_OK && inlined) {
    code = vyre_program_print(inlined, writer) ? VYRE_OK : writer_failed(st);
    if (report) *report = (vyre_emit_report){0};
  } else if (code == VYRE_OK) {
    code = print(kernel, options, writer, report, st);
  }
  vyre_program_release(inlined);
  vyre_arena_deinit(&arena);
  return code;
}
