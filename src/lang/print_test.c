/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#include "vyre/module.h"
#include "vyre/program.h"

#include "support/check.h"
#include "support/random_program.h"
#include "support/text.h"

static vyre_module *parse(const char *text, size_t length) {
  vyre_status st = {0};
  vyre_diagnostics found = {0};
  vyre_module *module;
  vyre_code code = vyre_module_parse(text, length, "t", (vyre_allocator){0},
                                     &module, &found, &st);
  for (size_t i = 0; i < found.count; i++) {
    printf("    %u:%u: %s\n", found.items[i].line, found.items[i].column,
           found.items[i].message);
  }
  vyre_diagnostics_deinit(&found);
  if (code != VYRE_OK) printf("%.*s\n", (int)length, text);
  CHECK_OK(code, st);
  return module;
}

/* Prints, parses and compares a program; printing again gives the same text. */
static void round_trip(const vyre_program *program) {
  growing_text once = {0}, twice = {0};
  CHECK(vyre_program_print(program, growing_writer(&once)));
  vyre_module *module = parse(once.bytes, once.length);
  CHECK_U64(vyre_module_kernel_count(module), 1);
  const vyre_program *again = vyre_module_kernel(module, 0);
  CHECK(vyre_program_print(again, growing_writer(&twice)));
  if (!vyre_program_equal(program, again)) {
    printf("%s\n---\n%s\n", once.bytes, twice.bytes);
  }
  CHECK(vyre_program_equal(program, again));
  vyre_hash128 a = vyre_program_fingerprint(program);
  vyre_hash128 b = vyre_program_fingerprint(again);
  CHECK(a.high == b.high && a.low == b.low);
  CHECK(strcmp(once.bytes, twice.bytes) == 0);
  vyre_module_release(module);
  free(once.bytes);
  free(twice.bytes);
}

static const char example[] =
    "fn lerp(a: f32, b: f32, t: f32) -> f32 {\n"
    "    return fma(t, b - a, a);\n"
    "}\n"
    "\n"
    "kernel k workgroup(8, 4) over(y)\n"
    "buffer x : read f32[] @0;\n"
    "buffer y : persistent read_write f32[64] @1 output align(16);\n"
    "uniform a : f32 @2;\n"
    "uniform t : u32[4] @3;\n"
    "shared tile : u32[32];\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    var s = -1.5f;\n"
    "    for (let j = 0u; j < len(x); j++) {\n"
    "        s = s + x[j] * (a - 1.0e-30f);\n"
    "    }\n"
    "    for (let j = 9i; j >= -2i; j -= 3i) {\n"
    "        if (j == 3i || (i & 7u) != t[0u] && !(s < 0.25f)) {\n"
    "            continue;\n"
    "        } else if (-(-j) > 2i) {\n"
    "            break;\n"
    "        } else {\n"
    "            print(\"j = \", j, \"\\n\");\n"
    "        }\n"
    "    }\n"
    "    while (s < inf) {\n"
    "        s = s * 2.0f;\n"
    "    }\n"
    "    atomic_add(tile[i % 32u], 1u);\n"
    "    atomic_store(tile[3u], atomic_load(tile[i % 32u]));\n"
    "    barrier();\n"
    "    y[i] = lerp(s, f32(tile[0u]), as_f32(1065353216u));\n"
    "}\n";

TEST(text_in_the_printed_form_stays_as_it_is) {
  static text_buffer got;
  got = (text_buffer){0};
  vyre_module *module = parse(example, strlen(example));
  CHECK(vyre_program_print(vyre_module_kernel(module, 0), text_writer(&got)));
  CHECK_TEXT(got.bytes, example);
  round_trip(vyre_module_kernel(module, 0));
  vyre_module_release(module);
}

TEST(random_programs_survive_printing) {
  for (uint64_t seed = 1; seed <= 3000; seed++) {
    vyre_status st = {0};
    vyre_program *program;
    CHECK_OK(random_program_make(seed, (vyre_allocator){0}, &program, &st), st);
    round_trip(program);
    vyre_program_release(program);
  }
}

/* Builds a kernel with a store of each literal. */
static vyre_program *literals(const uint32_t *bits, size_t count, bool wide) {
  vyre_status st = {0};
  vyre_builder *b;
  vyre_program *program;
  CHECK_OK(vyre_builder_create("k", (vyre_allocator){0}, &b, &st), st);
  vyre_build_buffer_ref y =
      vyre_build_buffer(b, "y", VYRE_ACCESS_WRITE,
                        wide ? VYRE_ELEMENT_F64 : VYRE_ELEMENT_F32, 0, 0);
  vyre_value zero = vyre_build_u32(b, 0);
  for (size_t i = 0; i < count; i++) {
    float f;
    double d;
    uint64_t both = (uint64_t)bits[i] << 32 | bits[(i + 1) % count];
    memcpy(&f, &bits[i], sizeof f);
    memcpy(&d, &both, sizeof d);
    vyre_build_store(b, y, zero,
                     wide ? vyre_build_f64(b, d) : vyre_build_f32(b, f));
  }
  CHECK_OK(vyre_builder_build(b, &program, &st), st);
  vyre_builder_release(b);
  return program;
}

TEST(floats_read_back_as_the_same_bits) {
  enum { COUNT = 20000 };
  static uint32_t bits[COUNT];
  uint64_t state = 7;
  for (size_t i = 0; i < COUNT; i++) bits[i] = (uint32_t)random_next(&state);
  static const uint32_t edges[] = {
      0x00000000, 0x80000000, 0x00000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF,
      0x7F800000, 0xFF800000, 0x7FC00000, 0x3F800000, 0x4B800000, 0x4B7FFFFF,
      0x3DCCCCCD, 0x3E99999A, 0x5A0E1BCA, 0x15AE43FD};
  memcpy(bits, edges, sizeof edges);
  for (int wide = 0; wide < 2; wide++) {
    vyre_program *program = literals(bits, COUNT, wide);
    round_trip(program);
    vyre_program_release(program);
  }
}

TEST(names_that_clash_are_changed_and_nothing_else_is) {
  vyre_status st = {0};
  vyre_builder *b;
  CHECK_OK(vyre_builder_create("y", (vyre_allocator){0}, &b, &st), st);
  vyre_build_buffer_ref y =
      vyre_build_buffer(b, "y", VYRE_ACCESS_WRITE, VYRE_ELEMENT_U32, 0, 0);
  vyre_variable a = vyre_build_let(b, "a", vyre_build_u32(b, 1));
  vyre_variable again = vyre_build_let(b, "a", vyre_build_u32(b, 2));
  vyre_variable keyword = vyre_build_let(b, "for", vyre_build_u32(b, 3));
  vyre_variable taken = vyre_build_let(b, "a_1", vyre_build_u32(b, 4));
  vyre_variable buffer = vyre_build_let(b, "y", vyre_build_u32(b, 5));
  vyre_build_block(b);
  (void)vyre_build_let(b, "inner", vyre_build_u32(b, 6));
  vyre_build_end(b);
  (void)vyre_build_let(b, "inner", vyre_build_u32(b, 7));
  vyre_variable all[] = {a, again, keyword, taken, buffer};
  for (int i = 0; i < 5; i++) {
    vyre_build_store(b, y, vyre_build_u32(b, 0), vyre_build_get(b, all[i]));
  }
  vyre_program *program;
  CHECK_OK(vyre_builder_build(b, &program, &st), st);
  text_buffer text = {.length = 0};
  CHECK(vyre_program_print(program, text_writer(&text)));
  CHECK_TEXT(text.bytes,
             "kernel y_0 workgroup(1)\n"
             "buffer y : write u32[] @0;\n"
             "{\n"
             "    let a = 1u;\n"
             "    let a__1 = 2u;\n"
             "    let v_2 = 3u;\n"
             "    let a_1 = 4u;\n"
             "    let y_4 = 5u;\n"
             "    {\n"
             "        let inner = 6u;\n"
             "    }\n"
             "    let inner = 7u;\n"
             "    y[0u] = a;\n"
             "    y[0u] = a__1;\n"
             "    y[0u] = v_2;\n"
             "    y[0u] = a_1;\n"
             "    y[0u] = y_4;\n"
             "}\n");
  round_trip(program);
  vyre_program_release(program);
  vyre_builder_release(b);
}

TEST(a_refusing_writer_and_a_bare_program_print_nothing) {
  vyre_status st = {0};
  vyre_program *program;
  CHECK_OK(random_program_make(3, (vyre_allocator){0}, &program, &st), st);
  CHECK(!vyre_program_print(program, refusing_writer()));
  CHECK(!vyre_program_print(program, (vyre_writer){0}));
  vyre_program_release(program);
  vyre_program_desc desc = {.workgroup = {1, 1, 1}};
  CHECK_OK(vyre_program_create(&desc, (vyre_allocator){0}, &program, &st), st);
  static text_buffer text;
  CHECK(!vyre_program_print(program, text_writer(&text)));
  CHECK_TEXT(vyre_program_name(program), "");
  CHECK(!vyre_program_has_body(program));
  vyre_program_release(program);
}

TEST_MAIN(TEST_ENTRY(text_in_the_printed_form_stays_as_it_is),
          TEST_ENTRY(random_programs_survive_printing),
          TEST_ENTRY(floats_read_back_as_the_same_bits),
          TEST_ENTRY(names_that_clash_are_changed_and_nothing_else_is),
          TEST_ENTRY(a_refusing_writer_and_a_bare_program_print_nothing))
