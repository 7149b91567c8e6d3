/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/builder.h"

#include "vyre/module.h"

#include "support/check.h"
#include "support/parse.h"
#include "support/random_program.h"

static vyre_builder *begin(const char *name) {
  vyre_status st = {0};
  vyre_builder *b;
  CHECK_OK(vyre_builder_create(name, (vyre_allocator){0}, &b, &st), st);
  return b;
}

static vyre_program *finish(vyre_builder *b) {
  vyre_status st = {0};
  vyre_program *program;
  CHECK_OK(vyre_builder_build(b, &program, &st), st);
  vyre_builder_release(b);
  return program;
}

static vyre_build_buffer_ref buffer(vyre_builder *b, const char *name,
                                    vyre_element element, uint32_t binding) {
  return vyre_build_buffer(b, name, VYRE_ACCESS_READ_WRITE, element, 0,
                           binding);
}

static vyre_value add(vyre_builder *b, vyre_value x, vyre_value y) {
  return vyre_build_binary(b, VYRE_OP_ADD, x, y);
}

/* Parses one kernel, compares it with the built one and releases both. */
static void check_same(const char *text, vyre_program *built) {
  vyre_module *module = parse_module(text);
  const vyre_program *parsed = vyre_module_kernel(module, 0);
  CHECK(vyre_program_equal(parsed, built));
  vyre_hash128 a = vyre_program_fingerprint(parsed);
  vyre_hash128 b = vyre_program_fingerprint(built);
  CHECK(a.low == b.low && a.high == b.high);
  CHECK_TEXT(vyre_program_name(parsed), vyre_program_name(built));
  vyre_module_release(module);
  vyre_program_release(built);
}

TEST(text_and_builder_give_the_same_program) {
  vyre_builder *b = begin("saxpy");
  vyre_builder_workgroup(b, 256, 1, 1);
  vyre_build_buffer_ref x =
      vyre_build_buffer(b, "x", VYRE_ACCESS_READ, VYRE_ELEMENT_F32, 0, 0);
  vyre_build_buffer_ref y = buffer(b, "y", VYRE_ELEMENT_F32, 1);
  vyre_build_buffer_ref a = vyre_build_uniform(b, "a", VYRE_ELEMENT_F32, 1, 2);
  vyre_builder_over(b, y);
  vyre_variable i =
      vyre_build_let(b, "i", vyre_build_id(b, VYRE_OP_GLOBAL_ID, 0));
  vyre_value at = vyre_build_get(b, i);
  vyre_build_if(b, vyre_build_binary(b, VYRE_OP_LT, at, vyre_build_len(b, y)));
  vyre_build_store(
      b, y, at,
      vyre_build_ternary(b, VYRE_OP_FMA, vyre_build_scalar(b, a),
                         vyre_build_load(b, x, at), vyre_build_load(b, y, at)));
  vyre_build_end(b);
  check_same(
      "kernel saxpy workgroup(256) over(y)\n"
      "buffer x : read f32[] @0;\n"
      "buffer y : read_write f32[] @1;\n"
      "uniform a : f32 @2;\n"
      "{\n"
      "    let index = global_id.x;\n"
      "    if (index < len(y)) y[index] = fma(a, x[index], y[index]);\n"
      "}\n",
      finish(b));
}

TEST(builder_functions_loops_and_atomics_match_the_text) {
  static const vyre_parameter types[] = {{"n", VYRE_TYPE_U32}};
  vyre_variable n;
  vyre_builder *b = begin("k");
  vyre_build_buffer_ref y = buffer(b, "y", VYRE_ELEMENT_U32, 0);
  vyre_build_buffer_ref t = vyre_build_shared(b, "t", VYRE_ELEMENT_U32, 4);
  vyre_builder_queue(b, VYRE_TYPE_U32);
  vyre_build_function_ref f =
      vyre_build_function(b, "f", VYRE_TYPE_U32, types, 1, &n);
  vyre_build_return_value(b,
                          add(b, vyre_build_get(b, n), vyre_build_u32(b, 1)));
  vyre_build_end(b);
  vyre_variable s = vyre_build_var(b, NULL, vyre_build_item(b));
  vyre_variable j = vyre_build_for(b, "j", vyre_build_u32(b, 0), VYRE_OP_LE,
                                   vyre_build_u32(b, 9), vyre_build_u32(b, 2));
  vyre_value argument = vyre_build_get(b, j);
  vyre_build_assign(b, s, vyre_build_call(b, f, &argument, 1));
  vyre_build_continue(b);
  vyre_build_end(b);
  vyre_build_while(b, vyre_build_bool(b, true));
  vyre_build_break(b);
  vyre_build_end(b);
  vyre_value zero = vyre_build_u32(b, 0);
  vyre_build_eval(b, vyre_build_atomic(b, VYRE_OP_ATOMIC_MAX, t, zero,
                                       vyre_build_get(b, s)));
  vyre_build_barrier(b);
  vyre_build_if(b, vyre_build_push(b, zero));
  vyre_build_print(b, &(vyre_print_part){.text = "ok"}, 1);
  vyre_build_else(b);
  vyre_build_store(b, y, zero,
                   vyre_build_compare_exchange(b, t, zero, zero, zero));
  vyre_build_return(b);
  vyre_build_end(b);
  check_same(
      "kernel k queue(u32)\n"
      "buffer y : read_write u32[] @0;\n"
      "shared t : u32[4];\n"
      "{\n"
      "    var s = item;\n"
      "    for (let j = 0u; j <= 9; j += 2) { s = g(j); continue; }\n"
      "    while (true) break;\n"
      "    atomic_max(t[0], s);\n"
      "    barrier();\n"
      "    if (push(0)) { print(\"ok\"); }\n"
      "    else { y[0] = atomic_compare_exchange(t[0], 0, 0); return; }\n"
      "}\n"
      "fn unused(a: f32) -> f32 { return a; }\n"
      "fn g(a: u32) -> u32 { return a + 1; }\n",
      finish(b));
}

/* --- fingerprints ----------------------------------------------------------*/

typedef struct variant {
  const char *kernel, *buffer, *local;
  uint32_t binding, size, literal;
  bool over, is_mutable, output;
} variant;

static vyre_program *make_variant(variant v) {
  vyre_builder *b = begin(v.kernel);
  vyre_builder_workgroup(b, v.size, 1, 1);
  vyre_build_buffer_ref y =
      vyre_build_declare(b, &(vyre_buffer_decl){.name = v.buffer,
                                                .binding = v.binding,
                                                .access = VYRE_ACCESS_WRITE,
                                                .element = VYRE_ELEMENT_U32,
                                                .is_output = v.output});
  if (v.over) vyre_builder_over(b, y);
  vyre_value value = vyre_build_u32(b, v.literal);
  vyre_variable local = v.is_mutable ? vyre_build_var(b, v.local, value)
                                     : vyre_build_let(b, v.local, value);
  vyre_build_store(b, y, vyre_build_u32(b, 0), vyre_build_get(b, local));
  return finish(b);
}

static vyre_value number(vyre_builder *b, uint32_t value) {
  return vyre_build_u32(b, value);
}

TEST(builder_switches_and_do_loops_match_the_text) {
  vyre_builder *b = begin("k");
  vyre_build_buffer_ref y = buffer(b, "y", VYRE_ELEMENT_U32, 0);
  vyre_variable i =
      vyre_build_let(b, "i", vyre_build_id(b, VYRE_OP_GLOBAL_ID, 0));
  vyre_variable n = vyre_build_var(b, "n", number(b, 0));
  vyre_build_switch(b, vyre_build_get(b, i));
  vyre_value labels[] = {number(b, 1), number(b, 4)};
  vyre_build_case(b, labels, 2);
  vyre_build_if(
      b, vyre_build_binary(b, VYRE_OP_GT, vyre_build_get(b, n), number(b, 3)));
  vyre_build_break(b);
  vyre_build_end(b);
  vyre_build_assign(b, n, number(b, 8));
  vyre_build_default(b);
  vyre_build_return(b);
  vyre_build_end(b);
  vyre_build_do(b);
  vyre_build_assign(b, n, add(b, vyre_build_get(b, n), number(b, 1)));
  vyre_build_do_while(b, vyre_build_binary(b, VYRE_OP_LT, vyre_build_get(b, n),
                                           vyre_build_get(b, i)));
  vyre_variable k =
      vyre_build_geometric_for(b, "k", vyre_build_get(b, n), VYRE_OP_GT,
                               number(b, 0), VYRE_OP_SHR, number(b, 2));
  vyre_build_store(
      b, y, vyre_build_get(b, k),
      vyre_build_ternary(
          b, VYRE_OP_COND,
          vyre_build_binary(b, VYRE_OP_EQ, vyre_build_get(b, k), number(b, 5)),
          number(b, 1), vyre_build_get(b, k)));
  vyre_build_end(b);
  check_same(
      "kernel k\n"
      "buffer y : read_write u32[] @0;\n"
      "{\n"
      "    let i = global_id.x;\n"
      "    var n = 0u;\n"
      "    switch (i) {\n"
      "        case 1: case 4:\n"
      "            if (n > 3) break;\n"
      "            n = 8;\n"
      "            break;\n"
      "        default: return;\n"
      "    }\n"
      "    do { n = n + 1; } while (n < i);\n"
      "    for (let k = n; k > 0; k >>= 2) y[k] = k == 5 ? 1 : k;\n"
      "}\n",
      finish(b));
}

TEST(content_counts_and_names_of_locals_and_kernels_do_not) {
  const variant base = {"k", "y", "a", 0, 1, 7, false, false, false};
  variant cases[8];
  for (int i = 0; i < 8; i++) cases[i] = base;
  cases[0].kernel = "other";
  cases[1].local = NULL;
  cases[2].buffer = "z";
  cases[3].binding = 1;
  cases[4].size = 2;
  cases[5].literal = 8;
  cases[6].is_mutable = true;
  cases[7].over = true;
  vyre_program *first = make_variant(base);
  vyre_hash128 a = vyre_program_fingerprint(first);
  for (int i = 0; i < 8; i++) {
    vyre_program *second = make_variant(cases[i]);
    vyre_hash128 b = vyre_program_fingerprint(second);
    CHECK(vyre_program_equal(first, second) == (i < 2));
    CHECK((a.high == b.high && a.low == b.low) == (i < 2));
    vyre_program_release(second);
  }
  CHECK(vyre_program_equal(first, first) && !vyre_program_equal(first, NULL));
  CHECK(vyre_program_retain(first) == first);
  vyre_program_release(first);
  CHECK_TEXT(vyre_program_name(first), "k");
  vyre_program_release(first);
}

/* --- mistakes --------------------------------------------------------------*/

static void wrong_types(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  add(b, vyre_build_u32(b, 1), vyre_build_f32(b, 1));
}

static void assign_to_let(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  vyre_variable v = vyre_build_let(b, "v", vyre_build_u32(b, 1));
  vyre_build_assign(b, v, vyre_build_u32(b, 2));
}

static void wrong_store(vyre_builder *b, vyre_build_buffer_ref y) {
  vyre_build_store(b, y, vyre_build_u32(b, 0), vyre_build_f32(b, 1));
}

static void unbalanced_end(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  vyre_build_end(b);
}

static void open_body(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  vyre_build_if(b, vyre_build_bool(b, true));
}

static void lonely_else(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  vyre_build_block(b);
  vyre_build_else(b);
}

static void second_use(vyre_builder *b, vyre_build_buffer_ref y) {
  vyre_value v = vyre_build_load(b, y, vyre_build_u32(b, 0));
  vyre_build_store(b, y, vyre_build_u32(b, 0), add(b, v, v));
}

static void unused_atomic(vyre_builder *b, vyre_build_buffer_ref y) {
  vyre_build_atomic(b, VYRE_OP_ATOMIC_ADD, y, vyre_build_u32(b, 0),
                    vyre_build_u32(b, 1));
}

static void after_its_body(vyre_builder *b, vyre_build_buffer_ref y) {
  vyre_build_block(b);
  vyre_variable v = vyre_build_let(b, "v", vyre_build_u32(b, 1));
  vyre_value late = add(b, vyre_build_get(b, v), vyre_build_u32(b, 1));
  vyre_build_end(b);
  vyre_build_store(b, y, vyre_build_u32(b, 0), late);
}

static void got_after_its_body(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  vyre_build_block(b);
  vyre_variable v = vyre_build_let(b, "v", vyre_build_u32(b, 1));
  vyre_build_end(b);
  vyre_build_get(b, v);
}

static void empty_handles(vyre_builder *b, vyre_build_buffer_ref y) {
  vyre_build_store(b, y, (vyre_value){0}, vyre_build_u32(b, 0));
}

static void empty_buffer(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  vyre_build_len(b, (vyre_build_buffer_ref){0});
}

static void empty_variable(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  vyre_build_get(b, (vyre_variable){0});
}

static void another_builder(vyre_builder *b, vyre_build_buffer_ref y) {
  vyre_builder *other = begin("other");
  vyre_value v = vyre_build_u32(other, 1);
  vyre_build_store(b, y, v, v);
  vyre_builder_release(other);
}

static void forged(vyre_builder *b, vyre_build_buffer_ref y) {
  vyre_value v = vyre_build_u32(b, 1);
  v.id = 123456;
  vyre_build_store(b, y, v, v);
}

static void forged_statement(vyre_builder *b, vyre_build_buffer_ref y) {
  vyre_value v = vyre_build_u32(b, 1);
  vyre_build_store(b, y, v, v);
  for (v.id = 0; v.id < 5; v.id++) (void)vyre_build_type(b, v);
  v.id = 4; /* the store */
  vyre_build_store(b, y, v, v);
}

static void bad_operation(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  vyre_build_unary(b, (vyre_op)999, vyre_build_u32(b, 1));
}

static void wrong_arity(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  vyre_build_unary(b, VYRE_OP_ADD, vyre_build_u32(b, 1));
}

static void bad_axis(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  vyre_build_id(b, VYRE_OP_GLOBAL_ID, 3);
}

static void bad_cast(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  vyre_build_cast(b, (vyre_type)77, vyre_build_u32(b, 1));
}

static void break_outside(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  vyre_build_break(b);
}

static void pushes(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  vyre_build_push(b, vyre_build_u32(b, 1));
}

static void late_function(vyre_builder *b, vyre_build_buffer_ref y) {
  vyre_build_store(b, y, vyre_build_u32(b, 0), vyre_build_u32(b, 0));
  vyre_build_function(b, "f", VYRE_TYPE_U32, NULL, 0, NULL);
}

static void open_function(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  vyre_build_function(b, "f", VYRE_TYPE_U32, NULL, 0, NULL);
}

static void function_without_return(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  vyre_build_function(b, "f", VYRE_TYPE_U32, NULL, 0, NULL);
  vyre_build_end(b);
}

static void buffer_in_function(vyre_builder *b, vyre_build_buffer_ref y) {
  vyre_build_function(b, "f", VYRE_TYPE_U32, NULL, 0, NULL);
  vyre_build_return_value(b, vyre_build_load(b, y, vyre_build_u32(b, 0)));
}

static void recursion(vyre_builder *b, vyre_build_buffer_ref y) {
  vyre_build_function_ref f =
      vyre_build_function(b, "f", VYRE_TYPE_U32, NULL, 0, NULL);
  vyre_build_return_value(b, vyre_build_call(b, f, NULL, 0));
  vyre_build_end(b);
  vyre_build_store(b, y, vyre_build_u32(b, 0), vyre_build_call(b, f, NULL, 0));
}

static void foreign_variable(vyre_builder *b, vyre_build_buffer_ref y) {
  static const vyre_parameter types[] = {{"n", VYRE_TYPE_U32}};
  vyre_variable v;
  (void)y;
  vyre_build_function(b, "f", VYRE_TYPE_U32, types, 1, &v);
  vyre_build_return_value(b, vyre_build_get(b, v));
  vyre_build_end(b);
  vyre_build_get(b, v);
}

static void too_deep(vyre_builder *b, vyre_build_buffer_ref y) {
  vyre_value v = vyre_build_u32(b, 1);
  for (int i = 0; i < 300; i++) v = add(b, v, vyre_build_u32(b, 1));
  vyre_build_store(b, y, vyre_build_u32(b, 0), v);
}

static void too_many_bodies(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  for (int i = 0; i < 300; i++) vyre_build_block(b);
}

static void step_of_zero(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  vyre_value zero = vyre_build_u32(b, 0);
  vyre_build_for(b, "i", zero, VYRE_OP_LT, vyre_build_u32(b, 9), zero);
}

static void bad_text(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  vyre_build_print(b, &(vyre_print_part){.text = "\x1b[2J"}, 1);
}

static void same_binding(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  buffer(b, "z", VYRE_ELEMENT_U32, 0);
}

static void keyword_name(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  buffer(b, "while", VYRE_ELEMENT_U32, 4);
}

static void zero_workgroup(vyre_builder *b, vyre_build_buffer_ref y) {
  (void)y;
  vyre_builder_workgroup(b, 0, 1, 1);
}

TEST(the_first_mistake_is_reported_with_a_fix) {
  static const struct {
    void (*make)(vyre_builder *, vyre_build_buffer_ref);
    const char *says;
    bool at_end; /* found at the end, so that a later error is reported first */
  } cases[] = {
      {wrong_types, "u32 and f32", false},
      {assign_to_let, "cannot be assigned", false},
      {wrong_store, "must be u32, not f32", false},
      {unbalanced_end, "without an open body", false},
      {open_body, "still open", true},
      {lonely_else, "without an open if", false},
      {second_use, "is used twice", false},
      {unused_atomic, "never used", true},
      {after_its_body, "outside the body", false},
      {got_after_its_body, "after its block", false},
      {empty_handles, "value handle is zero", false},
      {empty_buffer, "buffer handle is zero", false},
      {empty_variable, "variable handle is zero", false},
      {another_builder, "another builder", false},
      {forged, "another builder", false},
      {forged_statement, "another builder", false},
      {bad_operation, "unknown operation 999", false},
      {wrong_arity, "operation '+'", false},
      {bad_axis, "axis 3", false},
      {bad_cast, "type 77", false},
      {break_outside, "outside a loop", false},
      {pushes, "queue kernel", false},
      {late_function, "inside another body", false},
      {open_function, "still open", true},
      {function_without_return, "on every path", false},
      {buffer_in_function, "cannot be named in a fn", false},
      {recursion, "calls itself", true},
      {foreign_variable, "another builder or function", false},
      {too_deep, "200 levels", false},
      {too_many_bodies, "nested more than", false},
      {step_of_zero, "at least 1", false},
      {bad_text, "cannot be printed", false},
      {same_binding, "both have binding 0", true},
      {keyword_name, "cannot be the name of a buffer", false},
      {zero_workgroup, "axis x is 0", true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_builder *b = begin("k");
    vyre_build_buffer_ref y = buffer(b, "y", VYRE_ELEMENT_U32, 0);
    cases[i].make(b, y);
    /* changes nothing: the first error wins */
    if (!cases[i].at_end) wrong_types(b, y);
    vyre_status st = {0};
    vyre_program *program = (vyre_program *)&st;
    vyre_code code = vyre_builder_build(b, &program, &st);
    if (code == VYRE_OK || !strstr(st.message, cases[i].says)) {
      printf("    case %zu: '%s' has no '%s'\n", i, st.message, cases[i].says);
    }
    CHECK(code == VYRE_INVALID_PROGRAM && program == NULL);
    CHECK_HAS(st.message, cases[i].says);
    CHECK(st.fix[0]);
    CHECK_TEXT(vyre_builder_status(b)->message, st.message);
    CHECK(vyre_builder_build(b, &program, NULL) == VYRE_INVALID_ARGUMENT);
    vyre_builder_release(b);
  }
}

TEST(a_finished_builder_does_nothing_more) {
  vyre_builder *b = begin("k");
  vyre_program *program, *second;
  vyre_status st = {0};
  CHECK_OK(vyre_builder_build(b, &program, &st), st);
  CHECK(vyre_program_has_body(program));
  CHECK_U64(vyre_build_u32(b, 1).id, 0);
  vyre_build_barrier(b);
  vyre_build_end(b);
  CHECK_FAILS(vyre_builder_build(b, &second, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_INVALID_ARGUMENT);
  CHECK(second == NULL);
  vyre_program_release(program);
  vyre_builder_release(b);
}

TEST(no_builder_is_no_crash) {
  vyre_program *program;
  CHECK(vyre_builder_build(NULL, &program, NULL) == VYRE_INVALID_ARGUMENT);
  CHECK_U64(vyre_build_u32(NULL, 1).id, 0);
  vyre_build_store(NULL, (vyre_build_buffer_ref){0}, (vyre_value){0},
                   (vyre_value){0});
  vyre_build_end(NULL);
  vyre_builder_release(NULL);
  CHECK(vyre_builder_status(NULL)->code == VYRE_OK);
  vyre_builder *b;
  CHECK(vyre_builder_create(NULL, (vyre_allocator){0}, &b, NULL) ==
        VYRE_INVALID_ARGUMENT);
}

static uint64_t sweep_seed;

static vyre_code sweep_scenario(vyre_allocator allocator, vyre_status *st) {
  vyre_program *program;
  vyre_code code = random_program_make(sweep_seed, allocator, &program, st);
  vyre_program_release(program);
  return code;
}

TEST(building_survives_every_allocation_failure) {
  for (sweep_seed = 1; sweep_seed <= 40; sweep_seed++) {
    CHECK(sweep_allocations(sweep_scenario) > 5);
  }
}

TEST_MAIN(TEST_ENTRY(text_and_builder_give_the_same_program),
          TEST_ENTRY(builder_functions_loops_and_atomics_match_the_text),
          TEST_ENTRY(builder_switches_and_do_loops_match_the_text),
          TEST_ENTRY(content_counts_and_names_of_locals_and_kernels_do_not),
          TEST_ENTRY(the_first_mistake_is_reported_with_a_fix),
          TEST_ENTRY(a_finished_builder_does_nothing_more),
          TEST_ENTRY(no_builder_is_no_crash),
          TEST_ENTRY(building_survives_every_allocation_failure))
