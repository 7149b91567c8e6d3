/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests generated C: compiles kernels with the system compiler, runs them and
 * compares with ref, byte for byte. Variables: c_testing.h and
 * testing/random_programs.h. */
#include "codegen/c/c_testing.h"
#include "support/sanitized.h"
#include "testing/random_programs.h"

enum { SEEDS = SANITIZED ? 8 : 24 };

/* --- kernels built by hand ------------------------------------------------ */

/* Runs a kernel on @p data, which holds all buffers that are not shared, with 4
 * bytes per element. */
static void run_kit(const char *flags, uint32_t groups, uint32_t *const *data,
                    const uint32_t *length) {
  text code = emit_text(&t.k, NULL);
  program p = build(&code, t.k.name, flags_of(flags));
  vyre__lir_binding buffers[KIT_BUFFERS] = {{0}};
  uint32_t at = 0;
  for (uint32_t i = 0; i < t.k.buffer_count; i++) {
    if (t.k.buffers[i].kind == VYRE_MEMORY_SHARED) continue;
    buffers[i] = (vyre__lir_binding){data[at], length[at]};
    at++;
  }
  uint32_t grid[3] = {groups, 1, 1};
  launch l = make_launch(&t.k, buffers, grid, UINT32_MAX);
  CHECK(p.run(&l) == 0);
  dlclose(p.library);
  free(code.bytes);
}

TEST(prints_and_runs_saxpy) {
  make_saxpy("saxpy");
  text code = emit_text(&t.k, NULL);
  CHECK_HAS(code.bytes, "const uint32_t *const x = launch->data[0];");
  CHECK_HAS(code.bytes, "int saxpy_phase0(const saxpy_launch *launch, ");
  CHECK_HAS(code.bytes,
            "vyre_bits32(3.0f * vyre_f32(x[first_x + local_x]) + "
            "vyre_f32(y[first_x + local_x]));");
  free(code.bytes);
  uint32_t x[600], y[600];
  for (unsigned i = 0; i < 600; i++) {
    float fx = (float)i, fy = 0.5f;
    memcpy(&x[i], &fx, 4);
    memcpy(&y[i], &fy, 4);
  }
  run_kit("-O2", 3, (uint32_t *const[]){x, y}, (uint32_t[]){600, 600});
  for (unsigned i = 0; i < 600; i++) {
    float want = 3 * (float)i + 0.5f, got;
    memcpy(&got, &y[i], 4);
    CHECK(got == want);
  }
}

TEST(names_are_c_names) {
  make_saxpy("exp");
  t.buffers[0].name = "for";
  t.buffers[1].name = "größe x";
  text code = emit_text(&t.k, NULL);
  CHECK_HAS(code.bytes, "int exp_kernel(const exp_kernel_launch *launch);");
  CHECK_HAS(code.bytes, "*const for_ = launch->data[0];");
  program p = build(&code, "exp_kernel", flags_of("-O1"));
  dlclose(p.library);
  free(code.bytes);
}

/* A program that links the file may call these functions. */
TEST(kernels_leave_the_library_its_names) {
  static const char *const names[] = {"rand",   "div",  "time",   "signal",
                                      "system", "exit", "stdout", "wcstombs"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char want[64];
    make_saxpy(names[i]);
    text code = emit_text(&t.k, NULL);
    snprintf(want, sizeof want, "int %s_kernel(const ", names[i]);
    CHECK_HAS(code.bytes, want);
    free(code.bytes);
  }
}

TEST(same_kernel_same_bytes) {
  make_saxpy("saxpy");
  text a = emit_text(&t.k, NULL), b = emit_text(&t.k, NULL);
  CHECK(a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0);
  free(a.bytes);
  free(b.bytes);
}

/* out[i] = sum over the workgroup of x, as a tree with barriers. */
TEST(barriers_in_a_loop) {
  kit_begin(&t, "tree", 64, 1, 1);
  uint32_t x = kit_buffer(&t, "x", VYRE_MEMORY_GLOBAL, 4, false, 0);
  uint32_t out = kit_buffer(&t, "out", VYRE_MEMORY_GLOBAL, 4, true, 0);
  uint32_t partial = kit_buffer(&t, "part", VYRE_MEMORY_SHARED, 4, true, 64);
  uint32_t half = kit_var(&t, "half", VYRE_TYPE_U32);
  vyre__val i = kit_global(&t, 0), l = kit_local(&t, 0);
  vyre__val zero = kit_u32(&t, 0), one = kit_u32(&t, 1);
  kit_store(&t, partial, l, kit_load(&t, x, i, 0), 0);
  kit_mark(&t, VYRE__LIR_BARRIER);
  kit_set(&t, half, kit_u32(&t, 32));
  kit_mark(&t, VYRE__LIR_LOOP);
  vyre__val h = kit_get(&t, half);
  kit_if(&t, kit_b(&t, VYRE__LIR_EQ, h, zero), 0);
  kit_mark(&t, VYRE__LIR_BREAK);
  kit_mark(&t, VYRE__LIR_END);
  kit_if(&t, kit_b(&t, VYRE__LIR_LT_U, l, h), 0);
  vyre__val mine = kit_load(&t, partial, l, 0);
  vyre__val far = kit_load(&t, partial, kit_u(&t, VYRE__LIR_ADD, l, h), 0);
  kit_store(&t, partial, l, kit_u(&t, VYRE__LIR_ADD, mine, far), 0);
  kit_mark(&t, VYRE__LIR_END);
  kit_mark(&t, VYRE__LIR_BARRIER);
  kit_mark(&t, VYRE__LIR_STEP);
  kit_set(&t, half, kit_u(&t, VYRE__LIR_SHR_U, h, one));
  kit_mark(&t, VYRE__LIR_END);
  kit_store(&t, out, i, kit_load(&t, partial, zero, 0), 0);
  kit_end(&t);
  uint32_t in[128], sums[128];
  for (uint32_t n = 0; n < 128; n++) in[n] = n * n;
  run_kit("-O2", 2, (uint32_t *const[]){in, sums}, (uint32_t[]){128, 128});
  uint32_t want[2] = {0, 0};
  for (uint32_t n = 0; n < 128; n++) want[n / 64] += in[n];
  for (uint32_t n = 0; n < 128; n++) CHECK_U64(sums[n], want[n / 64]);
}

/* A rare path in an `if`, after an exit: y[i] = f(x[i]), all in strips. */
static void make_rare(const char *name, uint32_t size) {
  kit_begin(&t, name, size, 1, 1);
  uint32_t x = kit_buffer(&t, "x", VYRE_MEMORY_GLOBAL, 4, false, 0);
  uint32_t y = kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL, 4, true, 0);
  uint32_t r = kit_var(&t, "result", VYRE_TYPE_U32);
  vyre__val i = kit_global(&t, 0);
  vyre__val len = kit_op(&t, VYRE__LIR_LEN, VYRE_TYPE_U32, y, 0, 0, 0);
  vyre__val seven = kit_u32(&t, 7), thousand = kit_u32(&t, 1000);
  kit_if(&t, kit_b(&t, VYRE__LIR_LE_U, len, i), 0);
  kit_mark(&t, VYRE__LIR_EXIT);
  kit_mark(&t, VYRE__LIR_END);
  vyre__val v = kit_load(&t, x, i, 0);
  kit_if(&t, kit_b(&t, VYRE__LIR_NE, v, seven), 0);
  kit_set(&t, r, kit_u(&t, VYRE__LIR_MUL, v, v));
  vyre__val big = kit_b(&t, VYRE__LIR_LT_U, thousand, v);
  kit_if(&t, big, VYRE__HINT_RARE);
  kit_set(&t, r, kit_u(&t, VYRE__LIR_REM_U, kit_get(&t, r), thousand));
  kit_mark(&t, VYRE__LIR_END);
  vyre__val got = kit_get(&t, r);
  kit_store(&t, y, i, kit_u(&t, VYRE__LIR_ADD, got, v), 0);
  kit_mark(&t, VYRE__LIR_END);
  kit_end(&t);
}

static void check_rare(uint32_t size) {
  make_rare("rare", size);
  uint32_t x[1000], y[1000];
  for (uint32_t i = 0; i < 1000; i++) {
    x[i] = i % 50 == 3 ? 5000 + i : i % 30;
    y[i] = 99;
  }
  run_kit("-O3", 1000 / size + 1, (uint32_t *const[]){x, y},
          (uint32_t[]){1000, 1000});
  for (uint32_t i = 0; i < 1000; i++) {
    uint32_t v = x[i], r = v > 1000 ? v * v % 1000 : v * v;
    CHECK_U64(y[i], v == 7 ? 99 : r + v);
  }
}

TEST(rare_paths_in_strips) {
  check_rare(256);
  check_rare(64);
  check_rare(100);
  check_rare(3);
  make_rare("rare", 256);
  text code = emit_text(&t.k, NULL);
  CHECK_HAS(code.bytes, "strip += 64u");
  free(code.bytes);
  code = emit_text(&t.k, &(vyre__emit_c_options){.no_strips = true});
  CHECK(!strstr(code.bytes, "strip"));
  free(code.bytes);
}

/* y[i] = big[63 - l] after big[l] = i: too large for the stack. */
TEST(big_arrays_are_in_scratch) {
  kit_begin(&t, "big", 8, 4, 2);
  uint32_t y = kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL, 4, true, 0);
  uint32_t big = kit_buffer(&t, "memory", VYRE_MEMORY_SHARED, 4, true, 40000);
  vyre__val group = kit_op(&t, VYRE__LIR_GROUP_ID, VYRE_TYPE_U32, 0, 0, 0, 0);
  vyre__val yz = kit_u(&t, VYRE__LIR_MUL, kit_local(&t, 2), kit_u32(&t, 4));
  vyre__val row = kit_u(&t, VYRE__LIR_ADD, yz, kit_local(&t, 1));
  vyre__val first = kit_u(&t, VYRE__LIR_MUL, row, kit_u32(&t, 8));
  vyre__val l = kit_u(&t, VYRE__LIR_ADD, first, kit_local(&t, 0));
  vyre__val base = kit_u(&t, VYRE__LIR_MUL, group, kit_u32(&t, 64));
  vyre__val i = kit_u(&t, VYRE__LIR_ADD, base, l);
  vyre__val q = kit_u(&t, VYRE__LIR_REM_U, i, kit_u32(&t, 7)); /* stored */
  kit_store(&t, big, l, i, 0);
  kit_mark(&t, VYRE__LIR_BARRIER);
  vyre__val other = kit_u(&t, VYRE__LIR_SUB, kit_u32(&t, 63), l);
  vyre__val got = kit_load(&t, big, other, 0);
  kit_store(&t, y, i, kit_u(&t, VYRE__LIR_ADD, got, q), 0);
  kit_end(&t);
  uint32_t out[128] = {0};
  run_kit("-O2", 2, (uint32_t *const[]){out}, (uint32_t[]){128});
  for (uint32_t n = 0; n < 128; n++) {
    CHECK_U64(out[n], n / 64 * 64 + (63 - n % 64) + n % 7);
  }
  text code = emit_text(&t.k, NULL);
  CHECK_HAS(code.bytes,
            "const uint64_t big_scratch[1] = {sizeof(big_memory0)};");
  free(code.bytes);
}

TEST(out_of_fuel_ends_the_dispatch) {
  kit_begin(&t, "endless", 4, 1, 1);
  kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL, 4, true, 0);
  uint32_t left = kit_var(&t, "left", VYRE_TYPE_U32);
  vyre__val none = kit_const(&t, VYRE_TYPE_U32, 0);
  vyre__val one = kit_const(&t, VYRE_TYPE_U32, 1);
  kit_set(&t, left, kit_op(&t, VYRE__LIR_FUEL, VYRE_TYPE_U32, 0, 0, 0, 0));
  kit_mark(&t, VYRE__LIR_LOOP);
  vyre__val have = kit_get(&t, left);
  kit_if(&t, kit_b(&t, VYRE__LIR_EQ, have, none), 0);
  kit_mark(&t, VYRE__LIR_OUT_OF_FUEL);
  kit_mark(&t, VYRE__LIR_EXIT);
  kit_mark(&t, VYRE__LIR_END);
  vyre__val less = kit_op(&t, VYRE__LIR_SUB, VYRE_TYPE_U32, 0, have, one, 0);
  kit_set(&t, left, less);
  kit_mark(&t, VYRE__LIR_STEP);
  kit_mark(&t, VYRE__LIR_END);
  kit_end(&t);
  text code = emit_text(&t.k, NULL);
  program p = build(&code, "endless", flags_of("-O1"));
  uint32_t y[4], grid[3] = {1, 1, 1};
  vyre__lir_binding buffers[1] = {{y, 4}};
  launch l = make_launch(&t.k, buffers, grid, 1000);
  CHECK(p.run(&l) == 1);
  dlclose(p.library);
  free(code.bytes);
}

TEST(rejects_kernels_not_fully_lowered) {
  make_saxpy("saxpy");
  vyre_status st = {0};
  text out = {0};
  t.code[3].op = VYRE__LIR_TOTAL_DIV_U;
  CHECK_FAILS(vyre__emit_c(&t.k, NULL, growing_writer(&out), &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_HAS(st.message, "total_div_u");
  free(out.bytes);
}

TEST(reports_writer_failure) {
  make_saxpy("saxpy");
  vyre_status st = {0};
  CHECK_FAILS(vyre__emit_c(&t.k, NULL, refusing_writer(), &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_WRITER_REFUSED);
}

static vyre_code sweep_emit(vyre_allocator allocator, vyre_status *st) {
  text out = {0};
  vyre__emit_c_options options = {.allocator = allocator};
  vyre_code code = vyre__emit_c(&t.k, &options, growing_writer(&out), st);
  free(out.bytes);
  return code;
}

TEST(reports_out_of_memory) {
  make_rare("rare", 256);
  CHECK(sweep_allocations(sweep_emit) > 0);
}

/* --- against ref ---------------------------------------------------------- */

/* Runs the compiled kernel: the full dispatch, or, if there is one phase,
 * workgroup by workgroup from the last one. */
static int run_program(const program *p, const vyre__lir_kernel *k,
                       const launch *l, const uint32_t grid[3],
                       bool backwards) {
  if (!backwards || k->phase_count != 1 || k->grid_loop_count) return p->run(l);
  int (*phase)(const void *, uint64_t, uint64_t, void *);
  memcpy(&phase, &p->phases[0], sizeof phase);
  void *scratch = aligned_alloc(64, (p->scratch[0] + 127) / 64 * 64);
  CHECK(scratch);
  memset(scratch, 0xA5, p->scratch[0]);
  int failed = 0;
  for (uint64_t g = (uint64_t)grid[0] * grid[1] * grid[2];
       g-- > 0 && !failed;) {
    failed = phase(l, g, 1, scratch);
  }
  free(scratch);
  return failed;
}

static bool kernel_agrees(const job *j, const vyre__lir_kernel *k,
                          const char *flags,
                          const vyre__emit_c_options *options, bool backwards) {
  vyre__lir_binding bound[MAX_BUFFERS] = {{0}};
  text code = emit_text(k, options);
  program p = build(&code, "k", flags);
  bind_all(j, k, bound);
  launch l = make_launch(k, bound, j->grid, UINT32_MAX);
  bool good =
      run_program(&p, k, &l, j->grid, backwards) == 0 && same_buffers(j, bound);
  unbind_all(bound);
  dlclose(p.library);
  free(code.bytes);
  return good;
}

static unsigned check_flags(const job *j, const char *const *flags,
                            unsigned flag_count) {
  vyre_status st = {0};
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  const vyre__lir_kernel *k = NULL;
  vyre__target target = {.math = VYRE__MATH_F64};
  CHECK_OK(vyre__lower(j->program, &target, (vyre__pass)(VYRE__PASS_COUNT - 1),
                       &arena, &k, NULL, &st),
           st);
  unsigned failed = 0;
  for (unsigned i = 0; i < flag_count; i++) {
    const char *own = flags_of(flags[i]);
    vyre__emit_c_options options = {.name = "k", .no_strips = i % 2 == 1};
    set_variant("%s", own);
    failed += count_failure(kernel_agrees(j, k, own, &options, i % 2 == 1));
  }
  vyre_arena_deinit(&arena);
  return failed;
}

static unsigned check_example(job *j, void *self) {
  static const char *const flags[] = {
      "-O3 -march=native -fno-math-errno -fno-trapping-math",
      "-O1 -fsanitize=undefined -fsanitize-undefined-trap-on-error"};
  (void)self;
  return check_flags(j, flags, 2);
}

TEST(examples_do_the_same) {
  const program_test test = {.check = check_example, .length = 1000};
  CHECK_U64(check_examples(&test), 0);
}

static vyre_random_program_options options_of(uint64_t seed, void *self) {
  (void)self;
  return (vyre_random_program_options){
      .seed = seed, .max_invocations = 300, .has_math = seed % 4 == 3};
}

static unsigned check_random(job *j, void *self) {
  static const char *const flags[] = {
      "-O1 -fsanitize=undefined -fsanitize-undefined-trap-on-error", "-O1",
      "-O3"};
  (void)self;
  return check_flags(j, &flags[j->seed % 3], 1);
}

TEST(random_programs_do_the_same) {
  const program_test test = {
      .check = check_random, .options = options_of, .count = SEEDS};
  CHECK_U64(check_random_programs(&test), 0);
}

/* Must be last: the folder must be empty. */
TEST(cleans_up) {
  finish_folder();
}

TEST_MAIN(TEST_ENTRY(prints_and_runs_saxpy), TEST_ENTRY(names_are_c_names),
          TEST_ENTRY(kernels_leave_the_library_its_names),
          TEST_ENTRY(same_kernel_same_bytes), TEST_ENTRY(barriers_in_a_loop),
          TEST_ENTRY(rare_paths_in_strips),
          TEST_ENTRY(big_arrays_are_in_scratch),
          TEST_ENTRY(out_of_fuel_ends_the_dispatch),
          TEST_ENTRY(rejects_kernels_not_fully_lowered),
          TEST_ENTRY(reports_writer_failure), TEST_ENTRY(reports_out_of_memory),
          TEST_ENTRY(examples_do_the_same),
          TEST_ENTRY(random_programs_do_the_same), TEST_ENTRY(cleans_up))
