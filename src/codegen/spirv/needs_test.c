/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Float modes that a device lacks are removed from a module, and its needs are
 * read from its capabilities. */
#include <stdlib.h>
#include <string.h>

#include "codegen/spirv/spirv.h"
#include "support/check.h"
#include "support/parse.h"

static const char *const texts[] = {
    "kernel k workgroup(4) buffer a : read_write f32[] @0;\n"
    "{ let i = global_id.x; if (i < len(a)) a[i] = a[i] * 3.0 + 1.0; }",
    "kernel k workgroup(4) buffer a : read_write f64[] @0;\n"
    "{ let i = global_id.x; if (i < len(a)) a[i] = a[i] / 3.0; }",
    "kernel k workgroup(4) buffer a : read_write f64[] @0;\n"
    "buffer b : read f32[] @1;\n"
    "{ let i = global_id.x; if (i < len(a)) a[i] += f64(b[i] * b[i]); }",
    "kernel k workgroup(4) buffer a : read_write u32[] @0;\n"
    "{ let i = global_id.x; if (i < len(a)) a[i] += 1; }"};

static vyre__spirv_module emit(const vyre_program *program,
                               vyre__spirv_target target, vyre_arena *arena) {
  const vyre__target low = {.workgroup = {4, 1, 1}};
  const vyre__lir_kernel *kernel;
  vyre__spirv_module module;
  vyre_status st = {0};
  target.int64 = target.float64 = true;
  CHECK_OK(vyre__lower(program, &low, VYRE__PASS_LEGALIZE_CONTROL, arena,
                       &kernel, NULL, &st),
           st);
  CHECK_OK(vyre__emit_spirv(kernel, &target, arena, &module, &st), st);
  return module;
}

/* Checks that a module for all float modes, limited to those of @p target, is
 * the module for @p target. */
static void check_limited(const vyre_program *program,
                          vyre__spirv_target target) {
  vyre__spirv_target all = target;
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  all.keeps_signed_zeros = all.keeps_subnormals = all.rounds_to_even = 32 | 64;
  vyre__spirv_module wanted = emit(program, target, &arena);
  vyre__spirv_module m = emit(program, all, &arena);
  uint32_t *words = malloc(m.word_count * sizeof *words);
  CHECK(words);
  memcpy(words, m.words, m.word_count * sizeof *words);
  size_t count = vyre__spirv_limit_float_modes(words, m.word_count, &target);
  CHECK_U64(count, wanted.word_count);
  CHECK(memcmp(words, wanted.words, count * sizeof *words) == 0);
  /* A second call changes nothing. */
  CHECK_U64(vyre__spirv_limit_float_modes(words, count, &target), count);
  free(words);
  vyre_arena_deinit(&arena);
}

TEST(float_modes_are_removed_for_a_device) {
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    vyre_module *module = parse_module(texts[i]);
    for (unsigned bits = 0; bits < 64; bits++) {
      check_limited(vyre_module_kernel(module, 0),
                    (vyre__spirv_target){
                        .keeps_signed_zeros = (uint8_t)((bits & 3) << 5),
                        .keeps_subnormals = (uint8_t)((bits >> 2 & 3) << 5),
                        .rounds_to_even = (uint8_t)((bits >> 4 & 3) << 5)});
    }
    vyre_module_release(module);
  }
}

TEST(capabilities_show_the_needs) {
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    vyre_module *module = parse_module(texts[i]);
    vyre_arena arena;
    vyre_arena_init(&arena, (vyre_allocator){0});
    vyre__spirv_target uses;
    vyre__spirv_module m =
        emit(vyre_module_kernel(module, 0),
             (vyre__spirv_target){.vulkan_memory_model = i == 3}, &arena);
    vyre__spirv_capabilities(m.words, m.word_count, &uses);
    CHECK(uses.float64 == (i == 1 || i == 2));
    CHECK(uses.vulkan_memory_model == (i == 3));
    CHECK(!uses.int8 && !uses.storage8 && !uses.buffer_atomics64);
    vyre_arena_deinit(&arena);
    vyre_module_release(module);
  }
}

TEST(damaged_words_do_no_harm) {
  const vyre__spirv_target none = {0};
  vyre__spirv_target uses;
  vyre_module *module = parse_module(texts[2]);
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  vyre__spirv_module m =
      emit(vyre_module_kernel(module, 0),
           (vyre__spirv_target){.keeps_subnormals = 32 | 64}, &arena);
  for (size_t at = 5; at < m.word_count; at++) {
    for (unsigned part = 0; part < 2; part++) {
      /* The exact size, so that a sanitizer sees an access outside. */
      size_t count = part ? at : m.word_count;
      uint32_t *words = malloc(count * sizeof *words);
      CHECK(words);
      memcpy(words, m.words, count * sizeof *words);
      if (!part) words[at] = UINT32_MAX - (uint32_t)at;
      vyre__spirv_capabilities(words, count, &uses);
      CHECK(vyre__spirv_limit_float_modes(words, count, &none) <= count);
      free(words);
    }
  }
  vyre_arena_deinit(&arena);
  vyre_module_release(module);
}

TEST_MAIN(TEST_ENTRY(float_modes_are_removed_for_a_device),
          TEST_ENTRY(capabilities_show_the_needs),
          TEST_ENTRY(damaged_words_do_no_harm))
