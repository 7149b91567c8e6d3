/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/program.h"

#include <string.h>

#include "support/check.h"

static vyre_program_desc one_buffer(const vyre_buffer_decl *buffer) {
  return (vyre_program_desc){
      .buffers = buffer, .buffer_count = 1, .workgroup = {64, 1, 1}};
}

TEST(a_program_copies_what_it_is_made_from) {
  char name[] = "input";
  vyre_buffer_decl buffer = {
      .name = name,
      .binding = 3,
      .access = VYRE_ACCESS_READ_WRITE,
      .element = VYRE_ELEMENT_F32,
      .count = 7,
      .pipeline_live_out = true,
      .hints = {.preferred_alignment = 64,
                .cache_locality = VYRE_LOCALITY_STREAMING}};
  vyre_program_desc desc = one_buffer(&buffer);
  vyre_program *program;
  vyre_status st = {0};
  CHECK_OK(vyre_program_create(&desc, (vyre_allocator){0}, &program, &st), st);
  memset(name, '?', sizeof name - 1);
  buffer = (vyre_buffer_decl){0};
  size_t count;
  const vyre_buffer_decl *got = vyre_program_buffers(program, &count);
  CHECK_U64(count, 1);
  CHECK_TEXT(got->name, "input");
  CHECK(got->binding == 3 && got->access == VYRE_ACCESS_READ_WRITE);
  CHECK(got->element == VYRE_ELEMENT_F32 && got->count == 7);
  CHECK(got->pipeline_live_out && got->hints.preferred_alignment == 64);
  CHECK(got->hints.cache_locality == VYRE_LOCALITY_STREAMING);
  CHECK_U64(vyre_program_workgroup(program)[0], 64);
  vyre_program_release(program);
  vyre_program_release(NULL);
}

TEST(a_program_may_have_no_buffers) {
  vyre_program_desc desc = {.workgroup = {1, 1, 1}};
  vyre_program *program;
  vyre_status st = {0};
  CHECK_OK(vyre_program_create(&desc, (vyre_allocator){0}, &program, &st), st);
  size_t count = 1;
  (void)vyre_program_buffers(program, &count);
  CHECK_U64(count, 0);
  vyre_program_release(program);
}

TEST(bad_declarations_are_refused_by_name) {
  static char long_name[400];
  memset(long_name, 'n', sizeof long_name - 1);
  static const struct {
    vyre_buffer_decl buffer;
    const char *says;
  } cases[] = {
      {{.name = NULL}, "has no name"},
      {{.name = ""}, "has no name"},
      {{.name = long_name}, "longer than 255"},
      {{.name = "a\x1b[31m"}, "not printable"},
      {{.name = "\xE2\x80\xAE"}, "not printable"},
      {{.name = "x", .kind = (vyre_memory)9}, "unknown memory kind: 9"},
      {{.name = "x", .access = (vyre_access)5}, "unknown access: 5"},
      {{.name = "x", .element = VYRE_ELEMENT_COUNT}, "unknown element type"},
      {{.name = "x", .hints.cache_locality = (vyre_locality)3},
       "unknown cache locality: 3"},
      {{.name = "x", .hints = {.has_coalesce_axis = true, .coalesce_axis = 3}},
       "coalesce_axis 3"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_program_desc desc = one_buffer(&cases[i].buffer);
    vyre_program *program = (vyre_program *)&desc;
    vyre_status st = {0};
    CHECK_FAILS(vyre_program_create(&desc, (vyre_allocator){0}, &program, &st),
                st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM);
    CHECK(program == NULL);
    CHECK_HAS(st.message, cases[i].says);
  }
}

TEST(an_axis_that_is_not_given_is_ignored) {
  vyre_buffer_decl buffer = {.name = "x", .hints = {.coalesce_axis = 5}};
  vyre_program_desc desc = one_buffer(&buffer);
  vyre_program *program;
  vyre_status st = {0};
  CHECK_OK(vyre_program_create(&desc, (vyre_allocator){0}, &program, &st), st);
  vyre_program_release(program);
}

TEST(too_many_buffers_are_refused_before_they_are_read) {
  vyre_buffer_decl one = {.name = "x"};
  vyre_program_desc desc = {&one, UINT32_MAX, {1, 1, 1}};
  vyre_program *program;
  vyre_status st = {0};
  CHECK_FAILS(vyre_program_create(&desc, (vyre_allocator){0}, &program, &st),
              st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM);
}

TEST(a_workgroup_axis_of_zero_is_refused_and_named) {
  for (int axis = 0; axis < 3; axis++) {
    vyre_program_desc desc = {.workgroup = {4, 5, 6}};
    desc.workgroup[axis] = 0;
    vyre_program *program;
    vyre_status st = {0};
    CHECK_FAILS(vyre_program_create(&desc, (vyre_allocator){0}, &program, &st),
                st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM);
    char says[] = "axis ? is 0";
    says[5] = "xyz"[axis];
    CHECK_HAS(st.message, says);
  }
}

TEST(null_arguments_are_a_status) {
  vyre_program *program;
  vyre_program_desc desc = {.buffer_count = 1, .workgroup = {1, 1, 1}};
  vyre_status st = {0};
  CHECK_FAILS(vyre_program_create(NULL, (vyre_allocator){0}, &program, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  st = (vyre_status){0};
  CHECK_FAILS(vyre_program_create(&desc, (vyre_allocator){0}, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  st = (vyre_status){0};
  CHECK_FAILS(vyre_program_create(&desc, (vyre_allocator){0}, &program, &st),
              st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
}

static vyre_code make_many(vyre_allocator allocator, vyre_status *st) {
  static vyre_buffer_decl buffers[200];
  for (uint32_t i = 0; i < 200; i++) {
    buffers[i] = (vyre_buffer_decl){.name = "a_rather_long_buffer_name_here"};
  }
  vyre_program_desc desc = {buffers, 200, {1, 1, 1}};
  vyre_program *program;
  vyre_code code = vyre_program_create(&desc, allocator, &program, st);
  vyre_program_release(program);
  return code;
}

TEST(creation_survives_every_allocation_failure) {
  CHECK(sweep_allocations(make_many) > 1);
}

TEST(elements_have_names_and_sizes) {
  static const struct {
    vyre_element element;
    const char *name;
    uint32_t size;
  } cases[] = {{VYRE_ELEMENT_BOOL, "bool", 1},
               {VYRE_ELEMENT_U8, "u8", 1},
               {VYRE_ELEMENT_I8, "i8", 1},
               {VYRE_ELEMENT_U16, "u16", 2},
               {VYRE_ELEMENT_I16, "i16", 2},
               {VYRE_ELEMENT_U32, "u32", 4},
               {VYRE_ELEMENT_I32, "i32", 4},
               {VYRE_ELEMENT_U64, "u64", 8},
               {VYRE_ELEMENT_I64, "i64", 8},
               {VYRE_ELEMENT_F16, "f16", 2},
               {VYRE_ELEMENT_BF16, "bf16", 2},
               {VYRE_ELEMENT_F32, "f32", 4},
               {VYRE_ELEMENT_F64, "f64", 8},
               {VYRE_ELEMENT_BYTES, "bytes", 0},
               {VYRE_ELEMENT_SUM_F32, "sum_f32", 96},
               {VYRE_ELEMENT_SUM_F64, "sum_f64", 576}};
  CHECK_U64(sizeof cases / sizeof cases[0], VYRE_ELEMENT_COUNT);
  for (size_t i = 0; i < VYRE_ELEMENT_COUNT; i++) {
    CHECK_TEXT(vyre_element_name(cases[i].element), cases[i].name);
    CHECK_U64(vyre_element_size(cases[i].element), cases[i].size);
  }
  CHECK_TEXT(vyre_element_name(VYRE_ELEMENT_COUNT), "?");
  CHECK_U64(vyre_element_size(VYRE_ELEMENT_COUNT), 0);
  CHECK_TEXT(vyre_memory_name(VYRE_MEMORY_PERSISTENT), "persistent");
  CHECK_TEXT(vyre_memory_name(VYRE_MEMORY_COUNT), "?");
  CHECK_TEXT(vyre_access_name(VYRE_ACCESS_READ_WRITE), "read_write");
  CHECK_TEXT(vyre_access_name(VYRE_ACCESS_COUNT), "?");
  CHECK_TEXT(vyre_locality_name(VYRE_LOCALITY_STREAMING), "streaming");
  CHECK_TEXT(vyre_locality_name(VYRE_LOCALITY_COUNT), "?");
}

TEST_MAIN(TEST_ENTRY(a_program_copies_what_it_is_made_from),
          TEST_ENTRY(a_program_may_have_no_buffers),
          TEST_ENTRY(bad_declarations_are_refused_by_name),
          TEST_ENTRY(an_axis_that_is_not_given_is_ignored),
          TEST_ENTRY(too_many_buffers_are_refused_before_they_are_read),
          TEST_ENTRY(a_workgroup_axis_of_zero_is_refused_and_named),
          TEST_ENTRY(null_arguments_are_a_status),
          TEST_ENTRY(creation_survives_every_allocation_failure),
          TEST_ENTRY(elements_have_names_and_sizes))
