/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of vyre_program_emit: options, reports, failures, and the list of
 * accesses. */
#include "vyre/emit.h"

#include "support/analysis.h"
#include "support/check.h"
#include "support/text.h"

static const char body[] =
    "    tile[l] = x[i];\n"
    "    barrier();\n"
    "    if (i < len(y)) y[i] = tile[63 - l] + x[i] + n;\n"
    "    atomic_add(y[l], 1);";

static vyre_code emit(const vyre_program *program,
                      const vyre_emit_options *options, text_buffer *out,
                      vyre_emit_report *report, vyre_status *st) {
  memset(out, 0, sizeof *out);
  return vyre_program_emit(program, options, text_writer(out), report, st);
}

TEST(passes_have_names) {
  uint32_t count = 0;
  while (vyre_pass_at(count)) {
    CHECK(vyre_pass_description(count) && vyre_pass_description(count)[0]);
    count++;
  }
  CHECK_U64(count, 6);
  CHECK_TEXT(vyre_pass_at(0), "inline");
  CHECK_TEXT(vyre_pass_at(5), "legalize-control");
  CHECK(!vyre_pass_description(count) && !vyre_pass_at(UINT32_MAX));
}

TEST(emits_after_each_pass) {
  static text_buffer out;
  vyre_module *module = parse_module(kernel_text(body));
  const vyre_program *program = vyre_module_kernel(module, 0);
  vyre_status st = {0};
  for (uint32_t i = 0; vyre_pass_at(i); i++) {
    vyre_emit_report report = {0};
    const vyre_emit_options options = {.after = vyre_pass_at(i)};
    CHECK_OK(emit(program, &options, &out, &report, &st), st);
    CHECK_HAS(out.bytes, "kernel k");
    if (i == 0) continue; /* still a program: nothing to count */
    CHECK(report.instructions > 10);
    CHECK_U64(report.accesses, 7);
    CHECK_U64(report.phases, 1);
    CHECK_U64(report.spill_bytes, 0);
  }
  vyre_module_release(module);
}

TEST(emitting_twice_gives_the_same_text) {
  static text_buffer a, b;
  vyre_module *module = parse_module(kernel_text(body));
  const vyre_program *program = vyre_module_kernel(module, 0);
  vyre_status st = {0};
  for (int form = 0; form < VYRE_EMIT_COUNT; form++) {
    for (int numbers = 0; numbers < VYRE_FLOAT_MODE_COUNT; numbers++) {
      const vyre_emit_options options = {.form = (vyre_emit_form)form,
                                         .float_mode = (vyre_float_mode)numbers,
                                         .no_u64 = true,
                                         .no_narrow = true};
      CHECK_OK(emit(program, &options, &a, NULL, &st), st);
      CHECK_OK(emit(program, &options, &b, NULL, &st), st);
      CHECK(a.length > 0);
      CHECK_TEXT(a.bytes, b.bytes);
    }
  }
  vyre_module_release(module);
}

TEST(proves_for_the_workgroup_that_runs) {
  static text_buffer out;
  vyre_module *module = parse_module(kernel_text(body));
  const vyre_program *program = vyre_module_kernel(module, 0);
  vyre_emit_report own, larger;
  vyre_status st = {0};
  CHECK_OK(emit(program, &(vyre_emit_options){0}, &out, &own, &st), st);
  CHECK_OK(emit(program, &(vyre_emit_options){.workgroup = {128}}, &out,
                &larger, &st),
           st);
  CHECK_HAS(out.bytes, "workgroup 128 1 1");
  CHECK_U64(own.proven_accesses, 4);
  CHECK_U64(larger.proven_accesses, 2);
  vyre_module_release(module);
}

static unsigned count_of(const char *bytes, const char *word) {
  unsigned count = 0;
  for (; (bytes = strstr(bytes, word)); bytes++) count++;
  return count;
}

/* A compiler must not repeat the load of an index: `freeze` prevents that in
 * LLVM, and a volatile load in Vulkan drivers. Uniforms do not change, and
 * other values do not affect bounds checks. */
TEST(loads_for_bounds_checks_are_marked) {
  static const struct {
    const char *body;
    bool in_llvm, in_spirv;
  } cases[] = {
      {"y[r[i]] = x[i];", true, true},
      {"if (r[i] < len(y)) y[i] = x[r[i]];", true, true},
      {"let n = r[0]; if (i < n && n <= len(y)) y[i] = x[i];", true, true},
      {"y[i] = x[i] + r[i];", false, false},
      {"y[q[i & 1u]] = x[i];", false, false},
      {"if (q[i & 1u] < len(y)) y[q[i & 1u]] = x[i];", false, false},
      /* One thread runs a workgroup, or all invocations run at once. */
      {"t[l] = 3u * l; barrier(); y[t[63u - l]] = x[i];", false, true}};
  static text_buffer llvm, spirv;
  vyre_status st = {0};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char source[512];
    snprintf(source, sizeof source,
             "kernel k workgroup(64)\nbuffer x : read u32[] @0;\n"
             "buffer r : read u32[] @1;\nbuffer y : write u32[] @2;\n"
             "uniform q : u32[2] @3;\nshared t : u32[64];\n"
             "{ let i = global_id.x; let l = local_id.x; %s }\n",
             cases[i].body);
    vyre_module *module = parse_module(source);
    const vyre_program *program = vyre_module_kernel(module, 0);
    CHECK_OK(emit(program, &(vyre_emit_options){.form = VYRE_EMIT_LLVM}, &llvm,
                  NULL, &st),
             st);
    CHECK_OK(emit(program, &(vyre_emit_options){.form = VYRE_EMIT_SPIRV_TEXT},
                  &spirv, NULL, &st),
             st);
    bool has_freeze = count_of(llvm.bytes, "freeze") > 0;
    bool has_volatile = count_of(spirv.bytes, "Volatile") > 0;
    if (has_freeze != cases[i].in_llvm || has_volatile != cases[i].in_spirv) {
      printf("    %s\n", cases[i].body);
    }
    CHECK(has_freeze == cases[i].in_llvm);
    CHECK(has_volatile == cases[i].in_spirv);
    vyre_module_release(module);
  }
}

TEST(refuses_invalid_options) {
  static text_buffer out;
  vyre_module *module = parse_module(kernel_text(body));
  vyre_module *loud = parse_module(kernel_text("print(i);\ny[i] = x[i];"));
  const vyre_program *program = vyre_module_kernel(module, 0);
  const vyre_emit_options fine = {0};
  vyre_status st = {0};
  CHECK_FAILS(emit(NULL, &fine, &out, NULL, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_INVALID_ARGUMENT);
  CHECK_FAILS(emit(program, NULL, &out, NULL, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_INVALID_ARGUMENT);
  CHECK_FAILS(vyre_program_emit(program, &fine, (vyre_writer){0}, NULL, &st),
              st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  st = (vyre_status){0};
  CHECK_FAILS(vyre_program_emit(program, &fine, refusing_writer(), NULL, &st),
              st, VYRE_INVALID_ARGUMENT, VYRE_KIND_WRITER_REFUSED);
  st = (vyre_status){0};
  const vyre_emit_options wrong[] = {
      {.form = VYRE_EMIT_COUNT},
      {.float_mode = VYRE_FLOAT_MODE_COUNT},
      {.math = VYRE_MATH_COUNT},
      {.after = "ssa"},
      {.workgroup = {64, 64, 0}},
      {.workgroup = {UINT32_MAX, UINT32_MAX, 3}},
      {.workgroup = {1, 0, 1 << 20}},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    CHECK_FAILS(emit(program, &wrong[i], &out, NULL, &st), st,
                VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  }
  st = (vyre_status){0};
  CHECK_FAILS(emit(vyre_module_kernel(loud, 0), &fine, &out, NULL, &st), st,
              VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
  vyre_module_release(loud);
  vyre_module_release(module);
}

/* C has bytes, and words would need a buffer size that is a multiple of 4. */
TEST(refuses_c_with_words_for_bytes) {
  static text_buffer out;
  static const char *const elements[] = {"u8", "i16", "f16", "bool", "bytes"};
  for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++) {
    char source[256];
    snprintf(source, sizeof source,
             "kernel k workgroup(4)\n"
             "buffer x : read %s[] @0;\n"
             "buffer y : write u32[] @1;\n"
             "shared tile : u8[4];\n"
             "{ tile[0] = 1u; y[0] = u32(x[1]) + u32(tile[3]); }\n",
             elements[i]);
    vyre_module *module = parse_module(source);
    const vyre_program *program = vyre_module_kernel(module, 0);
    vyre_emit_options options = {.form = VYRE_EMIT_C, .no_narrow = true};
    vyre_status st = {0};
    CHECK_FAILS(emit(program, &options, &out, NULL, &st), st,
                VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
    CHECK_HAS(st.message, "buffer 'x' of kernel 'k'");
    CHECK_HAS(st.fix, "no_narrow");
    CHECK_U64(out.length, 0);
    options.form = VYRE_EMIT_LOWERED;
    st = (vyre_status){0};
    CHECK_OK(emit(program, &options, &out, NULL, &st), st);
    options = (vyre_emit_options){.form = VYRE_EMIT_C};
    CHECK_OK(emit(program, &options, &out, NULL, &st), st);
    vyre_module_release(module);
  }
}

/* A program without a body has nothing to lower. */
TEST(refuses_a_program_without_a_body) {
  static text_buffer out;
  const vyre_buffer_decl buffer = {.name = "x",
                                   .access = VYRE_ACCESS_READ,
                                   .element = VYRE_ELEMENT_F32,
                                   .count = 4};
  const vyre_program_desc desc = {
      .buffers = &buffer, .buffer_count = 1, .workgroup = {64, 1, 1}};
  vyre_program *program = NULL;
  vyre_arena arena = {0};
  const vyre_access_info *list;
  size_t count;
  vyre_status st = {0};
  CHECK_OK(vyre_program_create(&desc, (vyre_allocator){0}, &program, &st), st);
  CHECK_FAILS(emit(program, &(vyre_emit_options){0}, &out, NULL, &st), st,
              VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM);
  CHECK_FAILS(vyre_program_accesses(program, &arena, &list, &count, &st), st,
              VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM);
  CHECK(list == NULL && count == 0);
  vyre_arena_deinit(&arena);
  vyre_program_release(program);
}

TEST(lists_accesses) {
  vyre_module *module = parse_module(kernel_text(body));
  const vyre_program *program = vyre_module_kernel(module, 0);
  vyre_arena arena = {0};
  const vyre_access_info *list = NULL;
  size_t count = 0, proven = 0;
  vyre_status st = {0};
  CHECK_OK(vyre_program_accesses(program, &arena, &list, &count, &st), st);
  CHECK_U64(count, 7);
  for (size_t i = 0; i < count; i++) {
    proven += list[i].is_proven;
    CHECK(list[i].line >= 9 && list[i].column > 0);
    CHECK((list[i].reason == NULL) == list[i].is_proven);
    CHECK(list[i].index[0] == '[' && list[i].length[0]);
  }
  CHECK_U64(proven, 4);
  /* x[i], then tile[l] = ... */
  CHECK(!list[0].is_store && !list[0].is_proven && list[0].buffer == 0);
  CHECK_TEXT(list[0].index, "[0, 4294967295]");
  CHECK_TEXT(list[0].length, "len(x)");
  CHECK(list[1].is_store && list[1].is_proven && list[1].buffer == 3);
  CHECK_TEXT(list[1].index, "[0, 63]");
  CHECK_TEXT(list[1].length, "64");
  CHECK(list[count - 1].is_atomic && !list[count - 1].is_store);
  vyre_arena_deinit(&arena);
  vyre_module_release(module);
}

TEST(accesses_take_no_null) {
  vyre_module *module = parse_module(kernel_text(body));
  const vyre_program *program = vyre_module_kernel(module, 0);
  vyre_arena arena = {0};
  const vyre_access_info *list = NULL;
  size_t count = 0;
  vyre_status st = {0};
  CHECK_FAILS(vyre_program_accesses(NULL, &arena, &list, &count, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_FAILS(vyre_program_accesses(program, NULL, &list, &count, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_FAILS(vyre_program_accesses(program, &arena, NULL, &count, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_FAILS(vyre_program_accesses(program, &arena, &list, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  vyre_arena_deinit(&arena);
  vyre_module_release(module);
}

static vyre_code sweep_accesses(vyre_allocator allocator, vyre_status *st) {
  vyre_module *module = parse_module(kernel_text(body));
  vyre_arena arena;
  const vyre_access_info *list;
  size_t count;
  vyre_arena_init(&arena, allocator);
  vyre_code code = vyre_program_accesses(vyre_module_kernel(module, 0), &arena,
                                         &list, &count, st);
  vyre_arena_deinit(&arena);
  vyre_module_release(module);
  return code;
}

static vyre_code sweep_emit(vyre_allocator allocator, vyre_status *st) {
  static text_buffer out;
  const char *text = kernel_text(body);
  vyre_module *module = NULL;
  vyre_code code = vyre_module_parse(text, strlen(text), "test", allocator,
                                     &module, NULL, st);
  if (code == VYRE_OK) {
    code = emit(vyre_module_kernel(module, 0), &(vyre_emit_options){0}, &out,
                NULL, st);
  }
  vyre_module_release(module);
  return code;
}

TEST(survives_running_out_of_memory) {
  CHECK(sweep_allocations(sweep_accesses) > 3);
  CHECK(sweep_allocations(sweep_emit) > 5);
}

TEST_MAIN(TEST_ENTRY(passes_have_names), TEST_ENTRY(emits_after_each_pass),
          TEST_ENTRY(emitting_twice_gives_the_same_text),
          TEST_ENTRY(proves_for_the_workgroup_that_runs),
          TEST_ENTRY(loads_for_bounds_checks_are_marked),
          TEST_ENTRY(refuses_invalid_options),
          TEST_ENTRY(refuses_c_with_words_for_bytes),
          TEST_ENTRY(refuses_a_program_without_a_body),
          TEST_ENTRY(lists_accesses), TEST_ENTRY(accesses_take_no_null),
          TEST_ENTRY(survives_running_out_of_memory))
