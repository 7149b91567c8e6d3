/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Overrides: a kernel with a value from the options is the same program as with
 * that value in its text. */
#include "vyre/vyre.h"

#include "support/check.h"

#define KERNEL                                                             \
  "kernel k workgroup(TILE) over(y) buffer y : read_write real[TILE] @0; " \
  "shared t : real[2 * TILE]; { t[local_id.x] = SCALE; barrier(); "        \
  "if (FAST) y[global_id.x] = t[local_id.x] * real(TILE); }"

static const char *const file =
    "override TILE : u32 = 16; override SCALE : f32 = 2.5; "
    "override FAST = true; override type real = f32; " KERNEL;

static vyre_code parse(const char *text, const vyre_define *defines,
                       size_t count, vyre_module **out, vyre_diagnostics *found,
                       vyre_status *st) {
  const vyre_module_options options = {.defines = defines,
                                       .define_count = count};
  return vyre_module_parse_with(text, strlen(text), "t", &options,
                                (vyre_allocator){0}, out, found, st);
}

static void check_equal(const vyre_define *defines, size_t count,
                        const char *plain) {
  vyre_status st = {0};
  vyre_module *module, *other;
  CHECK_OK(parse(file, defines, count, &module, NULL, &st), st);
  CHECK_OK(parse(plain, NULL, 0, &other, NULL, &st), st);
  CHECK(vyre_program_equal(vyre_module_kernel(module, 0),
                           vyre_module_kernel(other, 0)));
  vyre_module_release(module);
  vyre_module_release(other);
}

TEST(values_of_options_are_those_of_the_text) {
  check_equal(NULL, 0,
              "const TILE = 16u; const SCALE : f32 = 2.5; const FAST = true; "
              "override type real = f32; " KERNEL);
  const vyre_define defines[] = {{.name = "TILE", .value = "0x20"},
                                 {.name = "SCALE", .value = "-1e-3"},
                                 {.name = "FAST", .value = "false"}};
  check_equal(defines, 3,
              "const TILE = 32u; const SCALE : f32 = -1e-3; const FAST = "
              "false; override type real = f32; " KERNEL);
  const vyre_define type[] = {{.name = "real", .value = "i32"}};
  vyre_module *module;
  vyre_status st = {0};
  static const char sums[] =
      "override type real = f32; override N = 2; kernel k buffer y : "
      "read_write real[] @0; { y[0] = real(N); }";
  CHECK_OK(parse(sums, type, 1, &module, NULL, &st), st);
  size_t count;
  const vyre_buffer_decl *buffers =
      vyre_program_buffers(vyre_module_kernel(module, 0), &count);
  CHECK(buffers[0].element == VYRE_ELEMENT_I32);
  vyre_module_release(module);
}

TEST(override_and_type_stay_names) {
  static const char text[] =
      "kernel override workgroup(1)\nbuffer type : read_write u32[] @0;\n"
      "{\n    var override = type[0];\noverride = 3;\n    type[1] = "
      "override;\n}\n";
  vyre_status st = {0};
  vyre_module *module;
  CHECK_OK(parse(text, NULL, 0, &module, NULL, &st), st);
  vyre_module_release(module);
}

TEST(wrong_values_of_options) {
  static const struct {
    vyre_define define;
    const char *says;
  } rows[] = {
      {{.name = "TILE", .value = "-1"}, "is u32, but it is defined as '-1'"},
      {{.name = "TILE", .value = "4294967296"}, "is u32"},
      {{.name = "TILE", .value = "1 + 1"}, "is u32"},
      {{.name = "TILE", .value = ""}, "is u32"},
      {{.name = "TILE", .value = "2000"}, "workgroup"},
      {{.name = "SCALE", .value = "nan"}, "is f32"},
      {{.name = "SCALE", .value = "1e99"}, "is f32"},
      {{.name = "SCALE", .value = "two"}, "is f32"},
      {{.name = "FAST", .value = "1"}, "is bool"},
      {{.name = "real", .value = "bytes"}, "not a type"},
      {{.name = "tile", .value = "1"}, "no override called 'tile'"},
      {{.name = "k", .value = "1"}, "no override called 'k'"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    vyre_status st = {0};
    vyre_module *module;
    vyre_code code = parse(file, &rows[i].define, 1, &module, NULL, &st);
    if (code ==
        VYRE_OK) { /* the limit of the workgroup is a rule of validation */
      CHECK_TEXT(rows[i].says, "workgroup");
      vyre_module_release(module);
      continue;
    }
    CHECK(module == NULL);
    CHECK_HAS(st.message, rows[i].says);
    CHECK(st.fix[0]);
  }
  const vyre_define twice[] = {{.name = "TILE", .value = "1"},
                               {.name = "TILE", .value = "2"}};
  vyre_status st = {0};
  vyre_module *module;
  CHECK(parse(file, twice, 2, &module, NULL, &st) == VYRE_INVALID_ARGUMENT);
  CHECK_HAS(st.message, "defined twice");
  const vyre_define later[] = {
      {.name = "TILE", .value = "1", .reserved = {0, 1}}};
  CHECK(parse(file, later, 1, &module, NULL, &st) == VYRE_INVALID_ARGUMENT);
}

TEST(wrong_overrides) {
  static const char *const rows[][2] = {
      {"override type x = ;", "V013"},
      {"override type f32 = f64;", "V032"},
      {"override type q = bytes;", "V034"},
      {"override type q = f32; override type q = f64;", "V031"},
      {"override a : u32 = 1.5;", "V063"},
      {"const a = 1; override a = 2;", "V031"},
      {"override a = b; override b = a;", "V044"},
      {"override = 3;", "V016"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[256];
    vyre_diagnostics found = {0};
    vyre_status st = {0};
    vyre_module *module;
    snprintf(text, sizeof text,
             "%s kernel k buffer y : write f32[] @0; { y[0] = 1.0; }",
             rows[i][0]);
    CHECK(parse(text, NULL, 0, &module, &found, &st) == VYRE_INVALID_PROGRAM);
    CHECK(found.count >= 1);
    CHECK_TEXT(found.items[0].rule, rows[i][1]);
    vyre_diagnostics_deinit(&found);
  }
}

TEST_MAIN(TEST_ENTRY(values_of_options_are_those_of_the_text),
          TEST_ENTRY(override_and_type_stay_names),
          TEST_ENTRY(wrong_values_of_options), TEST_ENTRY(wrong_overrides))
