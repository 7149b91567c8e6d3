/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/binding.h"

#include "support/check.h"
#include "support/parse.h"
#include "support/text.h"

#define NONE VYRE_NO_INDEX

/* Returns a typical buffer: bound, u32. */
static vyre_buffer_decl buffer(const char *name, uint32_t binding,
                               vyre_access access, uint32_t count) {
  return (vyre_buffer_decl){.name = name,
                            .binding = binding,
                            .access = access,
                            .element = VYRE_ELEMENT_U32,
                            .count = count};
}

static vyre_buffer_decl output(const char *name, uint32_t binding,
                               uint32_t count) {
  vyre_buffer_decl made = buffer(name, binding, VYRE_ACCESS_READ_WRITE, count);
  made.is_output = true;
  return made;
}

static vyre_program *program_of(const vyre_buffer_decl *buffers, size_t count) {
  vyre_program_desc desc = {buffers, count, {64, 1, 1}};
  vyre_program *program;
  vyre_status st = {0};
  CHECK_OK(vyre_program_create(&desc, (vyre_allocator){0}, &program, &st), st);
  return program;
}

/* Memory of a test case; end() releases it. */
typedef struct fixture {
  vyre_program *program;
  vyre_arena arena;
  vyre_binding_plan plan;
  vyre_status st;
} fixture;

static fixture planned(const vyre_buffer_decl *buffers, size_t count) {
  fixture f = {.program = program_of(buffers, count)};
  CHECK_OK(vyre_binding_plan_build(f.program, &f.arena, &f.plan, &f.st), f.st);
  return f;
}

static void end(fixture *f) {
  vyre_arena_deinit(&f->arena);
  vyre_program_release(f->program);
}

static void check_refused(const vyre_buffer_decl *buffers, size_t count,
                          const char *says) {
  vyre_program *program = program_of(buffers, count);
  vyre_arena arena = {0};
  vyre_binding_plan plan = {.binding_count = 9};
  vyre_status st = {0};
  CHECK_FAILS(vyre_binding_plan_build(program, &arena, &plan, &st), st,
              VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM);
  CHECK_U64(plan.binding_count, 0);
  CHECK_U64(arena.used, 0);
  CHECK_HAS(st.message, says);
  vyre_arena_deinit(&arena);
  vyre_program_release(program);
}

/* --- roles -----------------------------------------------------------------*/

/* Compares every combination of kind, access and is_output with a table: rows
 * are kinds, columns accesses. */
TEST(role_precedence_over_every_combination) {
  static const vyre_role plain[VYRE_MEMORY_COUNT][VYRE_ACCESS_COUNT] = {
      {VYRE_ROLE_INPUT, VYRE_ROLE_OUTPUT, VYRE_ROLE_INPUT_OUTPUT,
       VYRE_ROLE_UNIFORM, VYRE_ROLE_SHARED},
      {VYRE_ROLE_SHARED, VYRE_ROLE_SHARED, VYRE_ROLE_SHARED, VYRE_ROLE_SHARED,
       VYRE_ROLE_SHARED},
      {VYRE_ROLE_INPUT, VYRE_ROLE_OUTPUT, VYRE_ROLE_INPUT_OUTPUT,
       VYRE_ROLE_UNIFORM, VYRE_ROLE_SHARED},
      {VYRE_ROLE_PERSISTENT, VYRE_ROLE_PERSISTENT, VYRE_ROLE_PERSISTENT,
       VYRE_ROLE_PERSISTENT, VYRE_ROLE_SHARED}};
  for (int kind = 0; kind < VYRE_MEMORY_COUNT; kind++) {
    for (int access = 0; access < VYRE_ACCESS_COUNT; access++) {
      for (int flags = 0; flags < 4; flags++) {
        vyre_buffer_decl b = buffer("b", 0, (vyre_access)access, 4);
        b.kind = (vyre_memory)kind;
        b.is_output = flags & 1;
        b.pipeline_live_out = flags & 2;
        fixture f = planned(&b, 1);
        vyre_role want = plain[kind][access];
        if (b.is_output && want != VYRE_ROLE_SHARED &&
            want != VYRE_ROLE_PERSISTENT) {
          want = VYRE_ROLE_OUTPUT;
        }
        CHECK(f.plan.bindings[0].role == want);
        bool in = want == VYRE_ROLE_INPUT || want == VYRE_ROLE_UNIFORM ||
                  want == VYRE_ROLE_INPUT_OUTPUT;
        bool out = want == VYRE_ROLE_OUTPUT || want == VYRE_ROLE_INPUT_OUTPUT ||
                   b.pipeline_live_out;
        CHECK_U64(f.plan.bindings[0].input_index, in ? 0 : NONE);
        CHECK_U64(f.plan.bindings[0].output_index, out ? 0 : NONE);
        CHECK_U64(f.plan.shared_count, want == VYRE_ROLE_SHARED);
        end(&f);
      }
    }
  }
}

TEST(inputs_and_outputs_are_numbered_by_binding_and_listed_by_declaration) {
  vyre_buffer_decl buffers[] = {
      buffer("b9", 9, VYRE_ACCESS_READ, 0), output("b8", 8, 1),
      buffer("b0", 0, VYRE_ACCESS_READ, 0), output("b1", 1, 1)};
  fixture f = {.program = program_of(buffers, 4)};
  vyre_input_extent inputs[] = {{8, false}, {12, false}};
  CHECK_OK(vyre_binding_plan_build_for(f.program, inputs, 2, &f.arena, &f.plan,
                                       &f.st),
           f.st);
  static const struct {
    uint32_t binding, buffer_index, input, output, elements;
  } want[] = {{0, 2, 0, NONE, 2},
              {1, 3, NONE, 0, 1},
              {8, 1, NONE, 1, 1},
              {9, 0, 1, NONE, 3}};
  for (int i = 0; i < 4; i++) {
    CHECK_U64(f.plan.bindings[i].binding, want[i].binding);
    CHECK_U64(f.plan.bindings[i].buffer_index, want[i].buffer_index);
    CHECK_U64(f.plan.bindings[i].input_index, want[i].input);
    CHECK_U64(f.plan.bindings[i].output_index, want[i].output);
    CHECK_U64(f.plan.bindings[i].element_count, want[i].elements);
  }
  CHECK(f.plan.input_indices[0] == 2 && f.plan.input_indices[1] == 0);
  CHECK(f.plan.output_indices[0] == 3 && f.plan.output_indices[1] == 1);
  end(&f);
}

/* --- sizes and hints -------------------------------------------------------*/

TEST(static_byte_lengths_are_counts_times_element_sizes) {
  for (int element = 0; element < VYRE_ELEMENT_BYTES; element++) {
    vyre_buffer_decl b = output("b", 0, UINT32_MAX);
    b.element = (vyre_element)element;
    fixture f = planned(&b, 1);
    CHECK(f.plan.bindings[0].has_static_byte_len);
    CHECK_U64(f.plan.bindings[0].static_byte_len,
              (uint64_t)UINT32_MAX * vyre_element_size(b.element));
    CHECK_U64(f.plan.bindings[0].element_count, UINT32_MAX);
    end(&f);
  }
}

TEST(buffers_sized_at_run_time_have_no_static_length) {
  vyre_buffer_decl b = buffer("b", 0, VYRE_ACCESS_READ, 0);
  fixture f = planned(&b, 1);
  CHECK(!f.plan.bindings[0].has_static_byte_len);
  CHECK_U64(f.plan.bindings[0].element_count, 0);
  end(&f);
}

TEST(alignment_is_the_hint_or_the_element_size) {
  static const struct {
    vyre_element element;
    uint32_t hint;
    uint64_t want;
  } cases[] = {{VYRE_ELEMENT_U32, 64, 64},
               {VYRE_ELEMENT_U32, 0, 4},
               {VYRE_ELEMENT_U32, 1, 4},
               {VYRE_ELEMENT_F64, 4, 8},
               {VYRE_ELEMENT_BYTES, 0, 1},
               {VYRE_ELEMENT_U8, 0, 1},
               {VYRE_ELEMENT_U32, 1u << 31, 1u << 31}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_buffer_decl b = output("b", 0, 0);
    b.element = cases[i].element;
    b.hints.preferred_alignment = cases[i].hint;
    fixture f = planned(&b, 1);
    CHECK_U64(f.plan.bindings[0].preferred_alignment, cases[i].want);
    end(&f);
  }
}

/* A vector has the size of all its components, and the alignment of one. The
 * size of `bytes` is 0: it is indexed as u8. */
TEST(element_sizes_are_those_of_whole_elements) {
  static const char text[] =
      "kernel k workgroup(1)\n"
      "buffer a : read f32x3[4] @0;\n"
      "buffer b : read u8x4[] @1;\n"
      "buffer c : read f64[2] @2;\n"
      "buffer d : read bytes[] @3;\n"
      "buffer e : write u16[] @4;\n"
      "{ e[0] = u32(b[0].x); }\n";
  static const struct {
    uint32_t size, alignment;
    uint64_t bytes;
  } want[] = {{12, 4, 48}, {4, 1, 0}, {8, 8, 16}, {0, 1, 0}, {2, 2, 0}};
  vyre_module *module = parse_module(text);
  vyre_arena arena = {0};
  vyre_binding_plan plan;
  vyre_status st = {0};
  CHECK_OK(vyre_binding_plan_build(vyre_module_kernel(module, 0), &arena, &plan,
                                   &st),
           st);
  CHECK_U64(plan.binding_count, 5);
  for (size_t i = 0; i < 5; i++) {
    const vyre_binding *b = &plan.bindings[i];
    CHECK_U64(b->element_size, want[i].size);
    CHECK_U64(b->preferred_alignment, want[i].alignment);
    CHECK_U64(b->static_byte_len, want[i].bytes);
  }
  vyre_arena_deinit(&arena);
  vyre_module_release(module);
}

TEST(alignment_hints_must_be_powers_of_two) {
  vyre_buffer_decl b = output("out", 0, 16);
  b.hints.preferred_alignment = 48;
  check_refused(&b, 1, "preferred_alignment=48");
}

TEST(hints_are_carried_over) {
  vyre_buffer_decl b = output("out", 0, 16);
  b.hints = (vyre_memory_hints){64, true, 2, VYRE_LOCALITY_STREAMING};
  fixture f = planned(&b, 1);
  const vyre_binding *got = &f.plan.bindings[0];
  CHECK(got->has_coalesce_axis && got->coalesce_axis == 2);
  CHECK(got->cache_locality == VYRE_LOCALITY_STREAMING);
  end(&f);
}

TEST(a_count_of_bytes_is_refused) {
  vyre_buffer_decl b = output("blob", 0, 16);
  b.element = VYRE_ELEMENT_BYTES;
  check_refused(&b, 1, "'blob': 16 elements of 'bytes'");
}

TEST(a_byte_count_is_reported_before_a_bad_hint) {
  vyre_buffer_decl b = output("blob", 0, 4);
  b.element = VYRE_ELEMENT_BYTES;
  b.hints.preferred_alignment = 48;
  check_refused(&b, 1, "4 elements of 'bytes'");
}

TEST(two_bound_buffers_on_one_binding_are_refused) {
  vyre_buffer_decl buffers[] = {buffer("left", 3, VYRE_ACCESS_READ, 1),
                                buffer("tile", 3, VYRE_ACCESS_WORKGROUP, 1),
                                output("right", 3, 1)};
  check_refused(buffers, 3, "'left' and 'right' both have binding 3");
}

TEST(shared_buffers_may_all_have_one_binding) {
  vyre_buffer_decl buffers[] = {buffer("a", 0, VYRE_ACCESS_WORKGROUP, 1),
                                buffer("in", 0, VYRE_ACCESS_READ, 1),
                                buffer("b", 0, VYRE_ACCESS_WORKGROUP, 1)};
  fixture f = planned(buffers, 3);
  CHECK_U64(f.plan.shared_count, 2);
  CHECK(f.plan.shared_indices[0] == 0 && f.plan.shared_indices[1] == 2);
  end(&f);
}

/* --- inputs ----------------------------------------------------------------*/

TEST(host_inputs_match_exactly_and_device_inputs_at_least) {
  static const struct {
    uint32_t count;
    vyre_element element;
    vyre_input_extent input;
    bool good;
    uint32_t elements;
    const char *says;
  } cases[] = {
      {2, VYRE_ELEMENT_U32, {8, false}, true, 2, NULL},
      {2, VYRE_ELEMENT_U32, {4, false}, false, 0, "8 bytes"},
      {2, VYRE_ELEMENT_U32, {12, false}, false, 0, "got 12"},
      {2, VYRE_ELEMENT_U32, {4, true}, false, 0, "at least 8 bytes"},
      {2, VYRE_ELEMENT_U32, {8, true}, true, 2, NULL},
      {2, VYRE_ELEMENT_U32, {12, true}, true, 2, NULL},
      {2, VYRE_ELEMENT_U32, {13, true}, true, 2, NULL},
      {0, VYRE_ELEMENT_U32, {12, false}, true, 3, NULL},
      {0, VYRE_ELEMENT_U32, {12, true}, true, 3, NULL},
      {0, VYRE_ELEMENT_U32, {0, false}, true, 0, NULL},
      {0, VYRE_ELEMENT_U32, {13, false}, false, 0, "4-byte element"},
      {0, VYRE_ELEMENT_U32, {13, true}, false, 0, "4-byte element"},
      {2, VYRE_ELEMENT_U32, {9, false}, false, 0, "4-byte element"},
      {0, VYRE_ELEMENT_U8, {UINT32_MAX, false}, true, UINT32_MAX, NULL},
      {0,
       VYRE_ELEMENT_U8,
       {1ull << 32, false},
       false,
       0,
       "4294967296 elements"},
      {0, VYRE_ELEMENT_BYTES, {77, false}, true, 77, NULL},
      {0,
       VYRE_ELEMENT_BYTES,
       {1ull << 32, true},
       false,
       0,
       "4294967296 elements"},
      {0, VYRE_ELEMENT_F64, {8ull * UINT32_MAX, false}, true, UINT32_MAX, NULL},
      {0,
       VYRE_ELEMENT_F64,
       {8ull << 32, false},
       false,
       0,
       "4294967296 elements"},
      {0, VYRE_ELEMENT_F64, {UINT64_MAX - 7, true}, false, 0, "elements"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_buffer_decl b = buffer("in", 5, VYRE_ACCESS_READ, cases[i].count);
    b.element = cases[i].element;
    fixture f = planned(&b, 1);
    vyre_code code =
        vyre_binding_plan_validate(&f.plan, &cases[i].input, 1, &f.st);
    CHECK((code == VYRE_OK) == cases[i].good);
    vyre_binding_plan sized;
    vyre_status st = {0};
    CHECK(vyre_binding_plan_build_for(f.program, &cases[i].input, 1, &f.arena,
                                      &sized, &st) == code);
    if (cases[i].good) {
      CHECK_U64(sized.bindings[0].element_count, cases[i].elements);
    } else {
      CHECK_HAS(f.st.message, cases[i].says);
      uint64_t expected, received;
      if (vyre_status_number_get(&f.st, "expected_bytes", &expected)) {
        CHECK(cases[i].count > 0 && expected == UINT64_C(4) * cases[i].count);
      }
      if (vyre_status_number_get(&f.st, "received_bytes", &received))
        CHECK_U64(received, cases[i].input.byte_len);
      CHECK_HAS(f.st.message, "'in'");
      CHECK_TEXT(st.message, f.st.message);
      CHECK(!sized.bindings && st.fix[0]);
    }
    end(&f);
  }
}

TEST(the_number_of_inputs_is_checked_first) {
  vyre_buffer_decl buffers[] = {buffer("a", 0, VYRE_ACCESS_READ, 1),
                                buffer("u", 1, VYRE_ACCESS_UNIFORM, 1),
                                buffer("io", 2, VYRE_ACCESS_READ_WRITE, 1)};
  fixture f = planned(buffers, 3);
  vyre_input_extent inputs[4] = {
      {1, false}, {1, false}, {1, false}, {1, false}};
  for (size_t count = 0; count <= 4; count++) {
    vyre_status st = {0};
    CHECK_FAILS(vyre_binding_plan_validate(&f.plan, inputs, count, &st), st,
                VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM);
    if (count == 3) {
      CHECK_HAS(st.message, "'a'");
    } else {
      CHECK_U64(status_number(&st, "expected_inputs"), 3);
      CHECK_U64(status_number(&st, "received_inputs"), count);
    }
  }
  end(&f);
}

TEST(a_plan_made_by_hand_is_not_trusted_with_indices) {
  vyre_binding wild = {.name = "x", .input_index = 7};
  vyre_binding_plan plan = {
      .bindings = &wild, .binding_count = 1, .input_count = 1};
  vyre_input_extent one = {4, false};
  vyre_status st = {0};
  CHECK_FAILS(vyre_binding_plan_validate(&plan, &one, 1, &st), st,
              VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM);
  CHECK_HAS(st.message, "input 7 of a plan with 1 inputs");
}

TEST(input_errors_are_reported_in_binding_order) {
  vyre_buffer_decl buffers[] = {buffer("second", 2, VYRE_ACCESS_READ, 1),
                                buffer("first", 1, VYRE_ACCESS_READ, 1)};
  fixture f = planned(buffers, 2);
  vyre_input_extent inputs[] = {{8, false}, {8, false}};
  CHECK(vyre_binding_plan_validate(&f.plan, inputs, 2, &f.st) != VYRE_OK);
  CHECK_HAS(f.st.message, "'first'");
  end(&f);
}

/* --- fingerprints ----------------------------------------------------------*/

/* Programs of the seed's tests: one layout, other counts, another layout. */
static size_t add_one(vyre_buffer_decl *buffers, uint32_t count) {
  buffers[0] = buffer("input", 0, VYRE_ACCESS_READ, count);
  buffers[1] = output("out", 1, count);
  return 2;
}

static bool same_hash(vyre_hash128 a, vyre_hash128 b) {
  return a.high == b.high && a.low == b.low;
}

TEST(layouts_are_shared_whatever_the_counts_and_names) {
  vyre_buffer_decl a[2], b[2];
  fixture fa = planned(a, add_one(a, 16));
  size_t count = add_one(b, 64);
  b[0].name = "other";
  fixture fb = planned(b, count);
  CHECK(vyre_binding_plans_share_layout(&fa.plan, &fb.plan));
  vyre_binding_fingerprint pa, pb;
  CHECK_OK(vyre_binding_fingerprint_build(&fa.plan, &fa.arena, &pa, &fa.st),
           fa.st);
  CHECK_OK(vyre_binding_fingerprint_build(&fb.plan, &fb.arena, &pb, &fb.st),
           fb.st);
  CHECK(vyre_binding_fingerprint_equal(&pa, &pb));
  CHECK(same_hash(pa.hash, pb.hash));
  CHECK_U64(pa.entry_count, 2);
  CHECK(pa.entries[0].binding == 0 && pa.entries[1].binding == 1);
  end(&fa);
  end(&fb);
}

/* A plan made by hand may have its bindings in any order. */
TEST(the_order_of_the_bindings_does_not_matter) {
  vyre_buffer_decl decls[5];
  size_t count = add_one(decls, 16);
  decls[count++] = buffer("c", 7, VYRE_ACCESS_UNIFORM, 1);
  decls[count++] = buffer("d", 5, VYRE_ACCESS_READ_WRITE, 4);
  fixture f = planned(decls, count);
  size_t n = f.plan.binding_count;
  vyre_binding mixed[8];
  vyre_binding_fingerprint want, got;
  vyre_layout_fingerprint want_layout, got_layout;
  CHECK_OK(vyre_binding_fingerprint_build(&f.plan, &f.arena, &want, &f.st),
           f.st);
  CHECK_OK(
      vyre_layout_fingerprint_from_plan(&f.plan, &f.arena, &want_layout, &f.st),
      f.st);
  for (size_t turn = 1; turn < n; turn++) {
    vyre_binding_plan plan = f.plan;
    for (size_t i = 0; i < n; i++) mixed[i] = f.plan.bindings[(i + turn) % n];
    plan.bindings = mixed;
    CHECK_OK(vyre_binding_fingerprint_build(&plan, &f.arena, &got, &f.st),
             f.st);
    CHECK(vyre_binding_fingerprint_equal(&got, &want));
    CHECK(same_hash(got.hash, want.hash));
    CHECK(vyre_binding_plans_share_layout(&plan, &f.plan));
    CHECK(vyre_binding_plans_share_layout(&f.plan, &plan));
    CHECK_OK(
        vyre_layout_fingerprint_from_plan(&plan, &f.arena, &got_layout, &f.st),
        f.st);
    CHECK(vyre_layout_fingerprint_equal(&got_layout, &want_layout));
    CHECK(same_hash(got_layout.hash, want_layout.hash));
    mixed[0].element_size++;
    CHECK(!vyre_binding_plans_share_layout(&plan, &f.plan));
  }
  end(&f);
}

/* Bindings of one number keep their order, as a stable sort keeps it. */
TEST(bindings_of_one_number_are_compared_in_order) {
  vyre_buffer_decl decls[5];
  fixture f = planned(decls, add_one(decls, 16));
  vyre_binding first[] = {f.plan.bindings[0], f.plan.bindings[1],
                          f.plan.bindings[1]};
  first[2].element_size++;
  vyre_binding second[] = {first[2], first[0], first[1]},
               third[] = {first[1], first[2], first[0]};
  vyre_binding_plan a = {.bindings = first, .binding_count = 3}, b = a, c = a;
  b.bindings = second;
  c.bindings = third;
  vyre_binding_fingerprint pa, pb, pc;
  CHECK_OK(vyre_binding_fingerprint_build(&a, &f.arena, &pa, &f.st), f.st);
  CHECK_OK(vyre_binding_fingerprint_build(&b, &f.arena, &pb, &f.st), f.st);
  CHECK_OK(vyre_binding_fingerprint_build(&c, &f.arena, &pc, &f.st), f.st);
  CHECK(!vyre_binding_fingerprint_equal(&pa, &pb));
  CHECK(!vyre_binding_plans_share_layout(&a, &b));
  CHECK(vyre_binding_fingerprint_equal(&pa, &pc));
  CHECK(vyre_binding_plans_share_layout(&a, &c));
  end(&f);
}

/* Changing any field of an entry changes entries and hash; nothing else does.
 */
TEST(layouts_differ_in_every_part_of_a_slot) {
  vyre_buffer_decl base[3];
  size_t count = add_one(base, 16);
  fixture f = planned(base, count);
  vyre_binding_fingerprint print;
  vyre_layout_fingerprint layout;
  CHECK_OK(vyre_binding_fingerprint_build(&f.plan, &f.arena, &print, &f.st),
           f.st);
  CHECK_OK(vyre_layout_fingerprint_from_plan(&f.plan, &f.arena, &layout, &f.st),
           f.st);
  for (int change = 0; change < 5; change++) {
    vyre_buffer_decl changed[3];
    size_t n = add_one(changed, 16);
    if (change == 0) changed[0].binding = 7;
    if (change == 1) changed[0].access = VYRE_ACCESS_UNIFORM;
    if (change == 2) changed[0].element = VYRE_ELEMENT_U64;
    if (change == 3) changed[0].access = VYRE_ACCESS_READ_WRITE;
    if (change == 4) changed[n++] = buffer("b", 2, VYRE_ACCESS_READ, 16);
    fixture g = planned(changed, n);
    vyre_binding_fingerprint other;
    vyre_layout_fingerprint other_layout;
    CHECK_OK(vyre_binding_fingerprint_build(&g.plan, &g.arena, &other, &g.st),
             g.st);
    CHECK_OK(vyre_layout_fingerprint_from_plan(&g.plan, &g.arena, &other_layout,
                                               &g.st),
             g.st);
    CHECK(!vyre_binding_plans_share_layout(&f.plan, &g.plan));
    CHECK(!vyre_binding_fingerprint_equal(&print, &other));
    CHECK(!same_hash(print.hash, other.hash));
    CHECK(!vyre_layout_fingerprint_equal(&layout, &other_layout));
    CHECK(!same_hash(layout.hash, other_layout.hash));
    end(&g);
  }
  end(&f);
}

/* Published: caches on disk use these hashes as names. */
TEST(hashes_are_the_same_on_every_machine) {
  vyre_buffer_decl b[2];
  fixture f = planned(b, add_one(b, 16));
  vyre_binding_fingerprint print;
  vyre_layout_fingerprint layout;
  CHECK_OK(vyre_binding_fingerprint_build(&f.plan, &f.arena, &print, &f.st),
           f.st);
  CHECK_OK(vyre_layout_fingerprint_from_plan(&f.plan, &f.arena, &layout, &f.st),
           f.st);
  char text[VYRE_HASH128_TEXT];
  vyre_hash128_text(print.hash, text);
  CHECK_TEXT(text, "1611d6e6afcbec45af5245bbb8243141");
  vyre_hash128_text(layout.hash, text);
  CHECK_TEXT(text, "8acb93eff8fa2b2fe71dc2cda770ae23");
  end(&f);
}

TEST(device_layout_has_a_slot_for_everything_bound) {
  vyre_buffer_decl buffers[] = {buffer("out", 4, VYRE_ACCESS_WRITE, 1),
                                buffer("in", 0, VYRE_ACCESS_READ, 1),
                                buffer("u", 1, VYRE_ACCESS_UNIFORM, 1),
                                buffer("tile", 2, VYRE_ACCESS_WORKGROUP, 1),
                                buffer("state", 3, VYRE_ACCESS_READ_WRITE, 1)};
  fixture f = planned(buffers, 5);
  vyre_layout_fingerprint layout;
  CHECK_OK(vyre_layout_fingerprint_from_plan(&f.plan, &f.arena, &layout, &f.st),
           f.st);
  static const vyre_layout_entry want[] = {
      {0, 0, VYRE_LAYOUT_STORAGE, true, 4},
      {0, 1, VYRE_LAYOUT_UNIFORM, true, 4},
      {0, 3, VYRE_LAYOUT_STORAGE, false, 4},
      {0, 4, VYRE_LAYOUT_STORAGE, false, 4}};
  CHECK(vyre_layout_fingerprint_equal(
      &layout, &(vyre_layout_fingerprint){want, 4, {0, 0}}));
  end(&f);
}

TEST(device_layout_slots_are_sorted_by_group_and_binding) {
  static const vyre_layout_entry slots[] = {
      {1, 4, VYRE_LAYOUT_STORAGE, false, 4},
      {0, 9, VYRE_LAYOUT_STORAGE, false, 4},
      {0, 1, VYRE_LAYOUT_UNIFORM, true, 4}};
  static const vyre_layout_entry turned[] = {
      {0, 1, VYRE_LAYOUT_UNIFORM, true, 4},
      {1, 4, VYRE_LAYOUT_STORAGE, false, 4},
      {0, 9, VYRE_LAYOUT_STORAGE, false, 4}};
  vyre_arena arena = {0};
  vyre_layout_fingerprint a, b;
  vyre_status st = {0};
  CHECK_OK(vyre_layout_fingerprint_build(slots, 3, &arena, &a, &st), st);
  CHECK_OK(vyre_layout_fingerprint_build(turned, 3, &arena, &b, &st), st);
  CHECK(vyre_layout_fingerprint_equal(&a, &b));
  CHECK(same_hash(a.hash, b.hash));
  CHECK(a.entries[0].binding == 1 && a.entries[1].binding == 9);
  CHECK(a.entries[2].group == 1);
  vyre_arena_deinit(&arena);
}

/* --- random programs -------------------------------------------------------*/

/* Compares a random program with a second, simple implementation of the
 * rules. */
TEST(random_programs_keep_their_order_and_counts) {
  uint64_t state = 99;
  static char names[300][8];
  for (int round = 0; round < 200; round++) {
    vyre_buffer_decl buffers[300];
    uint32_t count = (uint32_t)random_below(&state, 300);
    for (uint32_t i = 0; i < count; i++) {
      snprintf(names[i], sizeof names[i], "b%u", i);
      /* Odd multiples modulo 2^32 are all distinct. */
      uint32_t number = (i * 2654435761u) ^ 0x5bd1e995u;
      vyre_access access = (vyre_access)random_below(&state, VYRE_ACCESS_COUNT);
      buffers[i] = buffer(names[i], number, access, 1);
    }
    fixture f = planned(buffers, count);
    CHECK_U64(f.plan.binding_count, count);
    uint32_t inputs = 0, outputs = 0;
    for (uint32_t i = 0; i < count; i++) {
      const vyre_binding *b = &f.plan.bindings[i];
      if (i > 0) CHECK(f.plan.bindings[i - 1].binding < b->binding);
      CHECK(buffers[b->buffer_index].binding == b->binding);
      CHECK_TEXT(b->name, names[b->buffer_index]);
      if (b->input_index != NONE) {
        CHECK_U64(b->input_index, inputs);
        CHECK_U64(f.plan.input_indices[inputs++], b->buffer_index);
      }
      if (b->output_index != NONE) {
        CHECK_U64(b->output_index, outputs);
        CHECK_U64(f.plan.output_indices[outputs++], b->buffer_index);
      }
    }
    CHECK_U64(f.plan.input_count, inputs);
    CHECK_U64(f.plan.output_count, outputs);
    end(&f);
  }
}

static vyre_code plan_everything(vyre_allocator allocator, vyre_status *st) {
  vyre_buffer_decl buffers[100];
  for (uint32_t i = 0; i < 100; i++) {
    buffers[i] = buffer("b", i, VYRE_ACCESS_READ, 4);
  }
  vyre_program_desc desc = {buffers, 100, {1, 1, 1}};
  vyre_program *program = NULL;
  vyre_arena arena;
  vyre_arena_init(&arena, allocator);
  vyre_binding_plan plan;
  vyre_binding_fingerprint print;
  vyre_layout_fingerprint layout, again;
  vyre_code code = vyre_program_create(&desc, allocator, &program, st);
  if (code == VYRE_OK) {
    code = vyre_binding_plan_build(program, &arena, &plan, st);
  }
  if (code == VYRE_OK) {
    code = vyre_binding_fingerprint_build(&plan, &arena, &print, st);
  }
  if (code == VYRE_OK) {
    code = vyre_layout_fingerprint_from_plan(&plan, &arena, &layout, st);
  }
  if (code == VYRE_OK) {
    code = vyre_layout_fingerprint_build(layout.entries, layout.entry_count,
                                         &arena, &again, st);
  }
  vyre_arena_deinit(&arena);
  vyre_program_release(program);
  return code;
}

TEST(planning_survives_every_allocation_failure) {
  CHECK(sweep_allocations(plan_everything) >= 4);
}

TEST(a_second_plan_of_the_same_shape_allocates_nothing) {
  vyre_buffer_decl b[2];
  fixture f = planned(b, add_one(b, 16));
  test_heap heap = {.left = -1};
  vyre_arena arena;
  vyre_arena_init(&arena, test_heap_allocator(&heap));
  for (int round = 0; round < 3; round++) {
    size_t calls = heap.calls;
    vyre_binding_plan plan;
    CHECK_OK(vyre_binding_plan_build(f.program, &arena, &plan, &f.st), f.st);
    if (round > 0) CHECK_U64(heap.calls, calls);
    vyre_arena_reset(&arena);
  }
  vyre_arena_deinit(&arena);
  end(&f);
}

TEST(null_arguments_are_a_status) {
  vyre_buffer_decl b[2];
  fixture f = planned(b, add_one(b, 16));
  vyre_binding_plan plan;
  vyre_binding_fingerprint print;
  vyre_layout_fingerprint layout;
  vyre_arena *arena = &f.arena;
  vyre_status st[8] = {{0}};
  vyre_code codes[8] = {
      vyre_binding_plan_build(NULL, arena, &plan, &st[0]),
      vyre_binding_plan_build(f.program, NULL, &plan, &st[1]),
      vyre_binding_plan_build(f.program, arena, NULL, &st[2]),
      vyre_binding_plan_build_for(f.program, NULL, 1, arena, &plan, &st[3]),
      vyre_binding_plan_validate(NULL, NULL, 0, &st[4]),
      vyre_binding_fingerprint_build(NULL, arena, &print, &st[5]),
      vyre_layout_fingerprint_from_plan(NULL, arena, &layout, &st[6]),
      vyre_layout_fingerprint_build(NULL, 1, arena, &layout, &st[7])};
  for (int i = 0; i < 8; i++) {
    CHECK_FAILS(codes[i], st[i], VYRE_INVALID_ARGUMENT,
                VYRE_KIND_INVALID_ARGUMENT);
  }
  CHECK_HAS(st[7].message, "'entries'");
  end(&f);
}

TEST(the_printer_lines_up_its_columns) {
  vyre_buffer_decl buffers[] = {buffer("x", 0, VYRE_ACCESS_READ, 0),
                                output("result", 12, 4096)};
  fixture f = planned(buffers, 2);
  text_buffer text = {0};
  CHECK(vyre_binding_plan_print(&f.plan, text_writer(&text)));
  CHECK_TEXT(
      text.bytes,
      "bindings\n"
      "  binding  name    role          size      elements   static "
      "bytes alignment input output\n"
      "        0  x       input            4             -              "
      "-         4     0      -\n"
      "       12  result  output           4         4,096         16,384 "
      "        4     -      0\n");
  CHECK(!vyre_binding_plan_print(&f.plan, refusing_writer()));
  end(&f);
  CHECK_TEXT(vyre_role_name(VYRE_ROLE_COUNT), "?");
  CHECK_TEXT(vyre_layout_class_name(VYRE_LAYOUT_UNIFORM), "uniform");
  CHECK_TEXT(vyre_layout_class_name(VYRE_LAYOUT_CLASS_COUNT), "?");
}

TEST_MAIN(
    TEST_ENTRY(role_precedence_over_every_combination),
    TEST_ENTRY(
        inputs_and_outputs_are_numbered_by_binding_and_listed_by_declaration),
    TEST_ENTRY(static_byte_lengths_are_counts_times_element_sizes),
    TEST_ENTRY(buffers_sized_at_run_time_have_no_static_length),
    TEST_ENTRY(alignment_is_the_hint_or_the_element_size),
    TEST_ENTRY(element_sizes_are_those_of_whole_elements),
    TEST_ENTRY(alignment_hints_must_be_powers_of_two),
    TEST_ENTRY(hints_are_carried_over), TEST_ENTRY(a_count_of_bytes_is_refused),
    TEST_ENTRY(a_byte_count_is_reported_before_a_bad_hint),
    TEST_ENTRY(two_bound_buffers_on_one_binding_are_refused),
    TEST_ENTRY(shared_buffers_may_all_have_one_binding),
    TEST_ENTRY(host_inputs_match_exactly_and_device_inputs_at_least),
    TEST_ENTRY(the_number_of_inputs_is_checked_first),
    TEST_ENTRY(a_plan_made_by_hand_is_not_trusted_with_indices),
    TEST_ENTRY(input_errors_are_reported_in_binding_order),
    TEST_ENTRY(layouts_are_shared_whatever_the_counts_and_names),
    TEST_ENTRY(the_order_of_the_bindings_does_not_matter),
    TEST_ENTRY(bindings_of_one_number_are_compared_in_order),
    TEST_ENTRY(layouts_differ_in_every_part_of_a_slot),
    TEST_ENTRY(hashes_are_the_same_on_every_machine),
    TEST_ENTRY(device_layout_has_a_slot_for_everything_bound),
    TEST_ENTRY(device_layout_slots_are_sorted_by_group_and_binding),
    TEST_ENTRY(random_programs_keep_their_order_and_counts),
    TEST_ENTRY(planning_survives_every_allocation_failure),
    TEST_ENTRY(a_second_plan_of_the_same_shape_allocates_nothing),
    TEST_ENTRY(null_arguments_are_a_status),
    TEST_ENTRY(the_printer_lines_up_its_columns))
