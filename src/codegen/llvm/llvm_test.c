/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compiles kernels through LLVM IR, runs them at every width, and compares the
 * results with ref byte for byte. testing/random_programs.h lists the environment
 * variables that select the programs. */
#include "backend/cpu/jit/llvm_c.h"
#include "codegen/llvm/llvm_testing.h"
#include "support/sanitized.h"

enum { ACCEPTED = SANITIZED ? 8 : 60 };
enum { SEEDS = 4 }; /* cpu_random_programs_test has many more */

/* --- against ref ------------------------------------------------------------*/

static unsigned check_tier(const job *j, vyre__jit_tier tier) {
  vyre__lir_binding bound[MAX_BUFFERS] = {{0}};
  vyre_status st = {0};
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  const vyre__lir_kernel *k = NULL;
  vyre__target target = cpu_target();
  memcpy(target.workgroup, j->workgroup, sizeof target.workgroup);
  CHECK_OK(vyre__lower(j->program, &target, (vyre__pass)(VYRE__PASS_COUNT - 1),
                       &arena, &k, NULL, &st),
           st);
  compiled c = compile(k, tier);
  unsigned failed = 0;
  for (unsigned i = 0; i < WIDTHS; i++) {
    set_variant("width %u", (unsigned)widths[i]);
    bind_all(j, k, bound);
    failed += count_failure(
        run_compiled(k, &c, i, bound, j->grid, UINT32_MAX) == VYRE__SPMD_DONE &&
        same_buffers(j, bound));
    unbind_all(bound);
  }
  compiled_free(&c);
  vyre_arena_deinit(&arena);
  return failed;
}

static unsigned check_optimised(job *j, void *self) {
  (void)self;
  return check_tier(j, VYRE__JIT_FULL);
}

static unsigned check_baseline(job *j, void *self) {
  (void)self;
  return check_tier(j, VYRE__JIT_BASELINE);
}

/* --- shapes of control flow and of accesses ------------------------------------*/

/* i: number of the invocation in the dispatch, whatever the workgroup. */
#define HEAD                                                               \
  "kernel k workgroup(64) over(x)\n"                                       \
  "buffer x : read u32[] @0;\n"                                            \
  "buffer y : read_write u32[] @1;\n"                                      \
  "shared s : u32[128];\n"                                                 \
  "{ let size = workgroup_size.x * workgroup_size.y * workgroup_size.z;\n" \
  "  let l = (local_id.z * workgroup_size.y + local_id.y) *\n"             \
  "          workgroup_size.x + local_id.x;\n"                             \
  "  let i = workgroup_id.x * size + l;\n"

static const struct {
  const char *name, *body;
} shapes[] = {
    {"straight", "y[i] = x[i] * 3 + i; }"},
    {"nested ifs",
     "var r = 1u; if (x[i] > 20) { r = 2; if (x[i] % 2 == 0) { r = r + x[i]; "
     "y[i] = 9; } else { r = 5; } } else if (i % 3 == 0) { r = x[i + 1]; } "
     "y[i] += r; }"},
    {"break and continue",
     "var r = 0u; for (let k = 0u; k < 40; k++) { if (x[i + k] % 7 == 3) "
     "continue; if (r > 300) break; r += x[i + k] + k; } y[i] = r; }"},
    {"a loop variable after its loop",
     "var n = 0u; while (n < 50 && x[i + n] != 11) n++; y[i] = n * 1000 + x[i "
     "+ n]; }"},
    {"loops in loops",
     "var r = 0u; for (let a = 0u; a < x[i] % 5; a++) { var t = a; for (let b "
     "= 0u; b < 9; b++) { if (t > x[i + b]) break; t += b; if (b == 7 && x[i] "
     "% 2 == 1) continue; r ^= t; } r += t; } y[i] = r; }"},
    {"returns",
     "if (x[i] % 11 == 5) return; for (let k = 0u; k < 9; k++) { if (x[i + k] "
     "== 50) return; y[i] += k; } if (i % 4 == 2) { if (x[i] < 50) return; "
     "y[i] = 1; } y[i] += 7; }"},
    {"short circuits",
     "if ((i > 2 && x[i - 1] > 9) || (x[i] % 2 == 1 && i < len(x) - 5)) y[i] "
     "= x[i + 2]; }"},
    {"places that wrap",
     "y[i + 0xFFFFFFFBu] = x[i - 3] + 2 * x[i + 0xFFFFFFF0u] + x[i * "
     "0x80000001u]; }"},
    {"gather and scatter",
     "let t = x[i] * 7 + i * 3; y[i * 2] = x[t]; if (i % 5 == 0) y[i * 2 + 1] "
     "= x[t + 1] + 1; }"},
    {"divisions and shifts",
     "let a = x[i]; let b = x[i + 1] % 5; var r = a / b + a % b; if (b != 0) r "
     "+= "
     "(a * 77) / b; r += (a << b) + (a >> (x[i] % 40)); y[i] = r; }"},
    {"floats",
     "let f = f32(x[i]) / 3.0; var g = min(f, 9.5) - max(f * 2.0, 1.0); if (g "
     "< -20.0) g = sqrt(f) + round(f); y[i] = as_u32(fma(f, g, 0.1)) + "
     "u32(f) + u32(i32(g)); }"},
    {"wide numbers",
     "let a : u64 = u64(x[i]) * 0x100000007ul + u64(i); let d = f64(x[i]) / "
     "7.0; y[i] = u32(a >> 16) ^ u32(a % 1013ul) + u32(d * 100.0) + "
     "u32(as_u64(d) >> 40); }"},
    {"one lane", "if (l == 3) y[i] = x[i] + 1; if (i == 77) y[i] = 5; }"},
    {"shared memory",
     "s[l] = x[i]; barrier(); let t = s[(l + 1) % size] + s[size - 1 - l]; "
     "barrier(); if (l % 3 != 1) s[l] = t; barrier(); y[i] = s[l] + s[l / 2]; "
     "}"},
    {"barriers in loops",
     "s[l] = x[i]; barrier(); var h = 32u; while (h > 0) { if (l < h && l + h "
     "< size) s[l] += s[l + h]; barrier(); h /= 2; } if (l == 0) y[i] = s[0]; "
     "}"},
    {"a tree behind guards",
     "s[l] = 7; if (i < len(x)) s[l] = x[i]; barrier(); var h = size / 2; "
     "while (h > 0) { if (l < h) s[l] = s[l] * 3 + s[l + h]; barrier(); "
     "h /= 2; } if (l == 0 && workgroup_id.x < len(y)) y[workgroup_id.x] = "
     "s[0]; }"},
    {"sums of all before",
     "if (i < len(x)) s[l] = x[i]; barrier(); var d = 1u; while (d < size) { "
     "var t = 0u; if (l >= d) t = s[l - d]; barrier(); s[l] += t; barrier(); "
     "d *= 2; } if (i < len(y)) y[i] = s[l]; }"},
    {"loops that lanes leave last",
     "var r = 0u; for (let k = l; k < x[workgroup_id.x] * 5; k += 16) r = r * "
     "3 + x[k] + k; for (let k = 900 + l; k > x[3]; k -= 13) { r ^= x[k]; if "
     "(x[k] % 3 == 0) r += k; } s[l] = r; barrier(); for (let k = i32(l) - "
     "20; k <= i32(x[workgroup_id.x]); k += 3) { for (let m = l; m < 90; m += "
     "32) r += s[m % size] + u32(k); } for (let k = 0xFFFFFF00u + l; k < "
     "0xFFFFFFF9; k += 11) r = r * 5 + k; y[i] = r; }"},
    {"what lives across barriers",
     "var a = x[i]; var f = f32(a) * 0.5; for (let k = 0u; k < 3; k++) { s[l] "
     "= a + k; barrier(); if (a % 2 == 0) { a += s[(l + k) % size]; f += 1.0; "
     "} barrier(); if (a % 9 == 4) continue; a ^= u32(f); } y[i] = a + "
     "u32(f); }"},
    {"a place that is kept across barriers",
     "let k = (i * 3 + 1) * 5 - i * 14; s[l] = k; y[k] = x[i] + 1; barrier(); "
     "y[k] += s[size - 1 - l]; }"},
    {"uniform values",
     "s[l] = l * 3; barrier(); let t = uniform(s[size / 2]); if (t % 2 == 0) { "
     "s[l] += t; barrier(); } for (let k = 0u; k < uniform(x[0]) % 4; k++) { "
     "barrier(); s[l] += k; } y[i] = s[l] + t; }"},
    {"atomics",
     "atomic_add(s[x[i] % 8], x[i]); atomic_max(s[8 + l % 3], x[i]); "
     "atomic_min(s[9], 7); if (x[i] % 2 == 0) atomic_xor(s[20], x[i] * 8); "
     "barrier(); let old = atomic_or(s[30 + l], 5); atomic_add(y[990], x[i]); "
     "atomic_max(y[991], atomic_compare_exchange(s[30 + l], 5, 8)); "
     "atomic_and(y[992 + i % 3], ~(1u << (x[i] % 32))); atomic_add(y[5000 + "
     "i], 1); barrier(); if (i < 900) y[i] = s[l % 24] + old + s[30 + l]; }"},
    {"the whole grid",
     "var a = x[i] + 1; if (i < 1000) y[i] = a; grid_barrier(); for (let k = "
     "0u; k < 3; k++) { a += y[(i * 7 + k) % len(y)]; grid_barrier(); if (i < "
     "1000) y[i] = a; grid_barrier(); } }"},
};

static const uint32_t groups_of[][3] = {{1, 1, 1},  {3, 1, 1},  {64, 1, 1},
                                        {20, 1, 1}, {16, 2, 1}, {5, 3, 1},
                                        {8, 4, 2},  {33, 1, 1}, {48, 1, 1}};

static unsigned check_shape(const char *name, const char *body,
                            unsigned which) {
  char bytes[4096], label[128];
  snprintf(bytes, sizeof bytes, "%s%s", HEAD, body);
  snprintf(label, sizeof label, "%s, workgroup %u x %u x %u", name,
           (unsigned)groups_of[which][0], (unsigned)groups_of[which][1],
           (unsigned)groups_of[which][2]);
  const program_test test = {
      .check = which == 2 ? check_optimised : check_baseline,
      .length = 1000,
      .workgroup = groups_of[which]};
  return check_text(&test, bytes, label);
}

TEST(every_shape_equals_ref_in_every_workgroup) {
  unsigned failed = 0;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    for (unsigned g = 0; g < sizeof groups_of / sizeof *groups_of; g++) {
      if (SANITIZED && (g + i) % 3 != 0) continue;
      failed += check_shape(shapes[i].name, shapes[i].body, g);
    }
  }
  CHECK_U64(failed, 0);
}

/* Bytes, halves and bools, side by side and apart. */
TEST(narrow_elements_equal_ref) {
  static const char text_of[] =
      "kernel k workgroup(50) over(a)\n"
      "buffer a : read u8[] @0;\nbuffer b : read i16[] @1;\n"
      "buffer c : read_write u8[] @2;\nbuffer d : read_write i16[] @3;\n"
      "buffer e : read_write bool[] @4;\nbuffer f : read_write f16[] @5;\n"
      "{ let i = global_id.x; c[i] = u32(a[i]) * 3;\n"
      "  if (a[i] % 3 == 1) { c[i] = a[i + 1]; e[i] = b[i] > 9; }\n"
      "  if (i % 2 == 0) { d[i] = i32(b[i]) - 70; d[i + 1] = i32(a[i * 2]); } "
      "f[i] = f32(a[i]) / "
      "7.0;\n"
      "}";
  for (unsigned g = 0; g < 4; g++) {
    const program_test test = {
        .check = check_optimised, .length = 1000, .workgroup = groups_of[g]};
    CHECK_U64(check_text(&test, text_of, "narrow"), 0);
  }
}

/* --- kernels by hand --------------------------------------------------------------*/

static kit t;

/* y[i] = x[i] + 1 while i < len(y). */
static void make_add(void) {
  kit_begin(&t, "add", 64, 1, 1);
  uint32_t x = kit_buffer(&t, "x", VYRE_MEMORY_GLOBAL, 4, false, 0);
  uint32_t y = kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL, 4, true, 0);
  vyre__val i = kit_global(&t, 0);
  vyre__val len = kit_op(&t, VYRE__LIR_LEN, VYRE_TYPE_U32, y, 0, 0, 0);
  kit_if(&t, kit_b(&t, VYRE__LIR_LT_U, i, len), 0);
  vyre__val one = kit_u32(&t, 1);
  kit_store(&t, y, i, kit_u(&t, VYRE__LIR_ADD, kit_load(&t, x, i, 0), one), 0);
  kit_mark(&t, VYRE__LIR_END);
  kit_end(&t);
}

static uint32_t run_kit(unsigned which, const compiled *c, void *x, void *y,
                        uint32_t length, uint32_t groups, uint32_t fuel) {
  vyre__lir_binding buffers[2] = {{x, length}, {y, length}};
  uint32_t grid[3] = {groups, 1, 1};
  return run_compiled(&t.k, c, which, buffers, grid, fuel);
}

/* Not a byte beyond what is bound is touched, wherever it begins. */
TEST(unaligned_buffers_work) {
  make_add();
  compiled c = compile(&t.k, VYRE__JIT_FULL);
  for (unsigned w = 0; w < WIDTHS; w++) {
    for (uint32_t length = 1; length < 200; length += 13) {
      unsigned char *x = malloc(4 * (size_t)length + 3);
      unsigned char *y = malloc(4 * (size_t)length + 3);
      CHECK(x && y);
      for (uint32_t i = 0; i < length; i++)
        memcpy(x + 3 + (size_t)4 * i, &i, 4);
      CHECK(run_kit(w, &c, x + 3, y + 3, length, 4, 0) == VYRE__SPMD_DONE);
      for (uint32_t i = 0; i < length; i++) {
        uint32_t got;
        memcpy(&got, y + 3 + (size_t)4 * i, 4);
        CHECK_U64(got, i + 1);
      }
      free(x);
      free(y);
    }
  }
  compiled_free(&c);
}

/* y[i] = x[3] if 3 < 5, and x[3] if 5 < 3; x[7] counts those that came. */
TEST(a_condition_known_at_compile_time) {
  kit_begin(&t, "known", 64, 1, 1);
  uint32_t x = kit_buffer(&t, "x", VYRE_MEMORY_GLOBAL, 4, true, 0);
  uint32_t y = kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL, 4, true, 0);
  vyre__val i = kit_global(&t, 0), three = kit_u32(&t, 3),
            five = kit_u32(&t, 5), one = kit_u32(&t, 1), at = kit_u32(&t, 7);
  vyre__val holds = kit_b(&t, VYRE__LIR_LT_U, three, five);
  vyre__val fails = kit_b(&t, VYRE__LIR_LT_U, five, three);
  vyre__val is = kit_load(&t, x, three, holds);
  vyre__val is_not = kit_load(&t, x, three, fails);
  vyre__val before =
      kit_op(&t, VYRE__LIR_ATOMIC_ADD, VYRE_TYPE_U32, x, at, one, holds);
  vyre__val none =
      kit_op(&t, VYRE__LIR_ATOMIC_ADD, VYRE_TYPE_U32, x, at, one, fails);
  vyre__val sum = kit_u(&t, VYRE__LIR_ADD, is, is_not);
  vyre__val came = kit_u(&t, VYRE__LIR_MUL, before, none); /* 0 */
  kit_store(&t, y, i, kit_u(&t, VYRE__LIR_ADD, sum, came), 0);
  kit_end(&t);
  for (int tier = 0; tier < 2; tier++) {
    compiled c = compile(&t.k, tier ? VYRE__JIT_BASELINE : VYRE__JIT_FULL);
    for (unsigned w = 0; w < WIDTHS; w++) {
      uint32_t in[128] = {0}, out[128] = {0};
      in[3] = 41;
      CHECK(run_kit(w, &c, in, out, 128, 2, 0) == VYRE__SPMD_DONE);
      for (uint32_t n = 0; n < 128; n++) CHECK_U64(out[n], 41);
      CHECK_U64(in[7], 128);
    }
    compiled_free(&c);
  }
}

/* for (;;) until the fuel is gone. */
static void make_endless(void) {
  kit_begin(&t, "endless", 8, 1, 1);
  kit_buffer(&t, "x", VYRE_MEMORY_GLOBAL, 4, false, 0);
  kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL, 4, true, 0);
  uint32_t left = kit_var(&t, "left", VYRE_TYPE_U32);
  vyre__val none = kit_u32(&t, 0), one = kit_u32(&t, 1);
  kit_set(&t, left, kit_op(&t, VYRE__LIR_FUEL, VYRE_TYPE_U32, 0, 0, 0, 0));
  kit_mark(&t, VYRE__LIR_LOOP);
  vyre__val have = kit_get(&t, left);
  kit_if(&t, kit_b(&t, VYRE__LIR_EQ, have, none), 0);
  kit_mark(&t, VYRE__LIR_OUT_OF_FUEL);
  kit_mark(&t, VYRE__LIR_EXIT);
  kit_mark(&t, VYRE__LIR_END);
  kit_set(&t, left, kit_u(&t, VYRE__LIR_SUB, have, one));
  kit_mark(&t, VYRE__LIR_STEP);
  kit_mark(&t, VYRE__LIR_END);
  kit_end(&t);
}

TEST(out_of_fuel_and_stop_end_a_phase) {
  uint32_t x[8], y[8];
  make_endless();
  compiled c = compile(&t.k, VYRE__JIT_BASELINE);
  for (unsigned w = 0; w < WIDTHS; w++) {
    CHECK(run_kit(w, &c, x, y, 8, 1, 1000) == VYRE__SPMD_OUT_OF_FUEL);
    stop_now = 1;
    uint32_t stopped = run_kit(w, &c, x, y, 8, 1, UINT32_MAX);
    stop_now = 0;
    CHECK_U64(stopped, VYRE__SPMD_STOPPED);
  }
  compiled_free(&c);
}

/* y[i] = big[63 - l] after big[l] = i: too much for a stack. */
TEST(big_arrays_are_in_scratch) {
  kit_begin(&t, "big", 64, 1, 1);
  kit_buffer(&t, "x", VYRE_MEMORY_GLOBAL, 4, false, 0);
  uint32_t y = kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL, 4, true, 0);
  uint32_t big = kit_buffer(&t, "big", VYRE_MEMORY_SHARED, 4, true, 40000);
  vyre__val i = kit_global(&t, 0), l = kit_local(&t, 0);
  kit_store(&t, big, l, i, 0);
  kit_mark(&t, VYRE__LIR_BARRIER);
  vyre__val other = kit_u(&t, VYRE__LIR_SUB, kit_u32(&t, 63), l);
  kit_store(&t, y, i, kit_load(&t, big, other, 0), 0);
  kit_end(&t);
  compiled c = compile(&t.k, VYRE__JIT_BASELINE);
  for (unsigned w = 0; w < WIDTHS; w++) {
    uint32_t out[128] = {0};
    CHECK(c.info[w].scratch_bytes >= 160000);
    CHECK(run_kit(w, &c, out, out, 128, 2, 0) == VYRE__SPMD_DONE);
    for (uint32_t n = 0; n < 128; n++) {
      CHECK_U64(out[n], n / 64 * 64 + (63 - n % 64));
    }
  }
  compiled_free(&c);
}

/* --- the text -------------------------------------------------------------------------*/

static unsigned count_of(const char *bytes, const char *word) {
  unsigned count = 0;
  for (const char *at = bytes; (at = strstr(at, word)) != NULL; at++) count++;
  return count;
}

/* big[2 * l + 1] = big[2 * l - (l & 1)] + i, which spans two vectors. */
TEST(lanes_at_known_distances_are_shuffled) {
  vyre__spmd_info info;
  kit_begin(&t, "apart", 64, 1, 1);
  kit_buffer(&t, "x", VYRE_MEMORY_GLOBAL, 4, false, 0);
  uint32_t y = kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL, 4, true, 0);
  uint32_t big = kit_buffer(&t, "big", VYRE_MEMORY_SHARED, 4, true, 128);
  vyre__val i = kit_global(&t, 0), l = kit_local(&t, 0);
  vyre__val twice = kit_u(&t, VYRE__LIR_MUL, l, kit_u32(&t, 2));
  vyre__val odd = kit_u(&t, VYRE__LIR_AND, l, kit_u32(&t, 1));
  vyre__val from = kit_u(&t, VYRE__LIR_SUB, twice, odd);
  vyre__val to = kit_u(&t, VYRE__LIR_ADD, twice, kit_u32(&t, 1));
  vyre__val sum = kit_u(&t, VYRE__LIR_ADD, kit_load(&t, big, from, 0), i);
  kit_store(&t, big, to, sum, 0);
  kit_mark(&t, VYRE__LIR_BARRIER);
  kit_store(&t, y, i, kit_load(&t, big, l, 0), 0);
  kit_end(&t);
  text code = emit_text(&t.k, 8, &info);
  CHECK(count_of(code.bytes, "= load <16 x i32>, ptr") >= 2);
  CHECK(count_of(code.bytes, " store <16 x i32>") >= 1);
  CHECK_U64(count_of(code.bytes, "masked.gather"), 0);
  CHECK_U64(count_of(code.bytes, "masked.scatter"), 0);
  free(code.bytes);
}

TEST(rows_run_as_full_vectors) {
  make_add();
  vyre__spmd_info info;
  text code = emit_text(&t.k, 16, &info);
  CHECK_U64(info.width, 16);
  CHECK_HAS(code.bytes, "define i32 @phase0(ptr readonly %launch, ");
  CHECK(count_of(code.bytes, "= load <16 x i32>, ptr") >= 1);
  CHECK(count_of(code.bytes, " store <16 x i32>") >= 1);
  text assembly = {0};
  vyre_status st = {0};
  CHECK_OK(vyre__jit_load(&st), st);
  CHECK_OK(vyre__jit(code.bytes, code.length, "x86-64-v3", "", VYRE__JIT_FULL,
                     VYRE__JIT_ASSEMBLY, growing_writer(&assembly), &st),
           st);
  CHECK(count_of(assembly.bytes, "vpsubd") +
            count_of(assembly.bytes, "vpaddd") >=
        2);
  free(assembly.bytes);
  free(code.bytes);
  code = emit_text(&t.k, 1, &info);
  CHECK_U64(count_of(code.bytes, " x i32>"), 0);
  free(code.bytes);
}

/* s[20 * i] = i, y[i] = s[20 * i] in a buffer, whose layout is fixed: no index
 * is in a vector. */
TEST(lanes_far_apart_are_scalar_accesses) {
  vyre__spmd_info info;
  kit_begin(&t, "far", 64, 1, 1);
  uint32_t y = kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL, 4, true, 64);
  uint32_t s = kit_buffer(&t, "s", VYRE_MEMORY_GLOBAL, 4, true, 1280);
  vyre__val i = kit_local(&t, 0);
  vyre__val at = kit_u(&t, VYRE__LIR_MUL, i, kit_u32(&t, 20));
  kit_store(&t, s, at, i, 0);
  kit_store(&t, y, i, kit_load(&t, s, at, 0), 0);
  kit_end(&t);
  text code = emit_text(&t.k, 16, &info);
  CHECK_U64(count_of(code.bytes, "@llvm.masked."), 0);
  CHECK(count_of(code.bytes, "insertelement <16 x i32>") >= 16);
  CHECK(count_of(code.bytes, "extractelement <16 x i32>") >= 16);
  free(code.bytes);
}

TEST(same_kernel_same_bytes) {
  vyre__spmd_info info;
  make_add();
  text a = emit_text(&t.k, 0, &info), b = emit_text(&t.k, 0, &info);
  CHECK(a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0);
  free(a.bytes);
  free(b.bytes);
}

TEST(refuses_unsupported_instructions) {
  make_add();
  vyre_status st = {0};
  vyre__spmd_info info;
  text out = {0};
  for (uint32_t i = 1; i < t.k.count; i++) {
    if (t.code[i].op == VYRE__LIR_ADD) t.code[i].op = VYRE__LIR_TOTAL_DIV_U;
  }
  CHECK_FAILS(vyre__emit_llvm(&t.k, NULL, growing_writer(&out), &info, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_HAS(st.message, "total_div_u");
  free(out.bytes);
}

TEST(reports_a_writer_error) {
  make_add();
  vyre_status st = {0};
  vyre__spmd_info info;
  CHECK_FAILS(vyre__emit_llvm(&t.k, NULL, refusing_writer(), &info, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_WRITER_REFUSED);
}

static vyre_code sweep_emit(vyre_allocator allocator, vyre_status *st) {
  text out = {0};
  vyre__spmd_info info;
  vyre__emit_llvm_options options = {.allocator = allocator};
  vyre_code code =
      vyre__emit_llvm(&t.k, &options, growing_writer(&out), &info, st);
  free(out.bytes);
  return code;
}

TEST(reports_out_of_memory) {
  make_add();
  CHECK(sweep_allocations(sweep_emit) > 0);
}

TEST(examples_do_the_same) {
  const program_test test = {.check = check_optimised, .length = 1000};
  CHECK_U64(check_examples(&test), 0);
}

static vyre_random_program_options small_options(uint64_t seed, void *self) {
  (void)self;
  return (vyre_random_program_options){
      .seed = seed, .max_invocations = 300, .has_math = seed % 4 == 3};
}

static unsigned check_random(job *j, void *self) {
  (void)self;
  static const vyre__jit_tier tiers[] = {VYRE__JIT_FULL, VYRE__JIT_BASELINE,
                                         VYRE__JIT_FIRST, VYRE__JIT_FIRST};
  return check_tier(j, tiers[j->seed % 4]);
}

TEST(random_programs_do_the_same) {
  const program_test test = {
      .check = check_random, .options = small_options, .count = SEEDS};
  CHECK_U64(check_random_programs(&test), 0);
}

/* Checks that LLVM parses the text, which takes a hundredth of the time for
 * compiling. */
static bool is_accepted(const text *code) {
  llvm_context *context = vyre__llvm.LLVMContextCreate();
  llvm_module *module = NULL;
  char *message = NULL;
  llvm_buffer *buffer = vyre__llvm.LLVMCreateMemoryBufferWithMemoryRange(
      code->bytes, code->length, "kernel", 1);
  bool good =
      !vyre__llvm.LLVMParseIRInContext(context, buffer, &module, &message) &&
      !vyre__llvm.LLVMVerifyModule(module, LLVM_VERIFY_RETURNS, &message);
  if (!good) printf("    %s\n", message ? message : "LLVM did not say why");
  if (message) vyre__llvm.LLVMDisposeMessage(message);
  if (module) vyre__llvm.LLVMDisposeModule(module);
  vyre__llvm.LLVMContextDispose(context);
  return good;
}

static vyre_random_program_options default_options(uint64_t seed, void *self) {
  (void)self;
  return (vyre_random_program_options){.seed = seed, .has_math = seed % 4 == 3};
}

static unsigned check_accepted(job *j, void *self) {
  unsigned failed = 0;
  vyre_status st = {0};
  vyre_arena arena;
  const vyre__lir_kernel *k = NULL;
  vyre__target target = cpu_target();
  (void)self;
  vyre_arena_init(&arena, (vyre_allocator){0});
  CHECK_OK(vyre__lower(j->program, &target, (vyre__pass)(VYRE__PASS_COUNT - 1),
                       &arena, &k, NULL, &st),
           st);
  for (unsigned i = 0; i < WIDTHS; i++) {
    vyre__spmd_info info;
    text code = emit_text(k, widths[i], &info);
    set_variant("width %u", (unsigned)widths[i]);
    failed += count_failure(is_accepted(&code));
    free(code.bytes);
  }
  vyre_arena_deinit(&arena);
  return failed;
}

TEST(llvm_accepts_random_programs) {
  const program_test test = {.check = check_accepted,
                             .skips_ref = true,
                             .options = default_options,
                             .first = 100000,
                             .count = ACCEPTED};
  vyre_status st = {0};
  CHECK_OK(vyre__jit_load(&st), st);
  CHECK_U64(check_random_programs(&test), 0);
}

TEST_MAIN(TEST_ENTRY(every_shape_equals_ref_in_every_workgroup),
          TEST_ENTRY(narrow_elements_equal_ref),
          TEST_ENTRY(unaligned_buffers_work),
          TEST_ENTRY(a_condition_known_at_compile_time),
          TEST_ENTRY(out_of_fuel_and_stop_end_a_phase),
          TEST_ENTRY(big_arrays_are_in_scratch),
          TEST_ENTRY(lanes_at_known_distances_are_shuffled),
          TEST_ENTRY(rows_run_as_full_vectors),
          TEST_ENTRY(lanes_far_apart_are_scalar_accesses),
          TEST_ENTRY(same_kernel_same_bytes),
          TEST_ENTRY(refuses_unsupported_instructions),
          TEST_ENTRY(reports_a_writer_error), TEST_ENTRY(reports_out_of_memory),
          TEST_ENTRY(examples_do_the_same),
          TEST_ENTRY(random_programs_do_the_same),
          TEST_ENTRY(llvm_accepts_random_programs))
