/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests that generated C stays within its buffers with races and with large
 * grids, and that it compiles whatever names the kernel uses. */
#include "vyre/module.h"

#include "codegen/c/c_testing.h"

/* --- kernels in text form ------------------------------------------------- */

/* A kernel of the language, lowered for a target with all features. */
typedef struct lowered {
  vyre_module *module;
  vyre_arena arena;
  const vyre__lir_kernel *k;
} lowered;

static lowered lower_text(const char *source) {
  lowered l = {0};
  vyre_status st = {0};
  const vyre__target target = {.math = VYRE__MATH_F64};
  vyre_arena_init(&l.arena, (vyre_allocator){0});
  l.module = parse_module(source);
  CHECK_OK(vyre__lower(vyre_module_kernel(l.module, 0), &target,
                       (vyre__pass)(VYRE__PASS_COUNT - 1), &l.arena, &l.k, NULL,
                       &st),
           st);
  return l;
}

static void lowered_deinit(lowered *l) {
  vyre_arena_deinit(&l->arena);
  vyre_module_release(l->module);
}

/* Counts the single-read loads in the code for @p body; the kernel writes the
 * index buffers x, b and w. */
static unsigned count_single_reads(const char *body, const char *pattern) {
  char source[2048];
  snprintf(
      source, sizeof source,
      "kernel once workgroup(64) over(y)\n"
      "buffer x : read_write u32[] @0;\n"
      "buffer y : read_write u32[] @1;\n"
      "buffer b : read_write u8[] @2;\n"
      "buffer w : read_write u64[] @3;\n"
      "buffer f : read_write f32[] @4;\n"
      "buffer r : read u32[] @5;\n"
      "buffer c : read_write u32[100] @6;\n"
      "shared tile : u32[64];\n"
      "{\n"
      "    let i = global_id.x;\n"
      "    let l = local_id.x;\n"
      "    %s\n"
      "    if (i == 0xffffffff) { x[0] = 1; y[0] = 1; b[0] = 1u; w[0] = 1; "
      "f[0] = 1.0; c[0] = 1; tile[0] = r[0]; }\n"
      "}\n",
      body);
  lowered l = lower_text(source);
  text code = emit_text(l.k, NULL);
  program p = build(&code, "once", flags_of("-O1"));
  dlclose(p.library);
  unsigned count = 0;
  for (const char *at = code.bytes; (at = strstr(at, pattern)); at++) count++;
  free(code.bytes);
  lowered_deinit(&l);
  return count;
}

/* The checked value must be the used value, even if another thread writes
 * it. */
TEST(loads_that_influence_an_index_are_single) {
  static const char *const once[] = {
      "y[x[i]] = i;",
      "let n = x[0]; if (i < n && n <= len(y)) { y[i] = 1; }",
      "let n = min(x[0], len(y)); for (let k = 0u; k < n; k++) y[k] = 1;",
      "var k = 0u; if (x[i] == 3) { k = 100; } y[k] = 1;",
      "var k = 0u; while (k < 9) { if (x[k] == i) break; k++; } y[k] = 1;",
      "tile[l] = x[i]; barrier(); y[tile[63 - l]] = 1;",
      "y[i] = r[i] / x[i];",
      "y[u32(sqrt(f32(x[i])))] = 1;",
      "y[select(x[i] < 7, 3, 1000)] = 1;",
      /* A value computed from an index, or from its bound, is compared. */
      "let n = x[0]; let k = r[i]; if (n <= len(y) && k + 3u < n && k < 1000u)"
      " { y[k] = 1; }",
      "let n = x[0]; if (n <= len(y) && u64(i) + 3ul < u64(n)) { y[i] = 1; }",
      "let n = x[0]; if (n + 64u <= len(y) && n < 1000u) { y[l] = 1; }",
      "let n = x[0]; if (n < 100u && l + n < len(y)) { y[l] = 1; }",
      "let n = x[0]; if (n <= 97u && l + 3u <= n) { c[l] = 1; }",
      "let n = x[0]; if (n <= len(y)) { let k = l + 3u; if (k < n) { y[l] = 1; "
      "} }",
      "let n = x[0]; if (n <= 97u) { if (l + 3u <= n) { c[l + 2u] = 1; } }",
      "let n = x[0]; if (n <= len(y)) { var k = l + 3u; if (k < n) { y[l] = 1; "
      "} k = 7u; }",
      "let n = x[0]; if (l < 50u && n >= 50u && n <= len(y)) { y[l] = 1; }",
      "let n = x[0]; if (l <= len(y) && n < len(y) - l) { y[l] = 1; }",
      "let n = x[0]; let k = r[i]; let fits = n <= len(y) && k < n; "
      "grid_barrier(); if (fits) { y[k] = 1; }",
      "let n = x[0]; let k = r[i] & 7; let m = k + 3u; grid_barrier(); if (m < "
      "n && n <= len(y)) { y[k] = 1; }",
  };
  unsigned missed = 0;
  for (size_t i = 0; i < sizeof once / sizeof once[0]; i++) {
    if (count_single_reads(once[i], "vyre_load32(&x[")) continue;
    printf("    %s\n", once[i]);
    missed++;
  }
  CHECK_U64(missed, 0);
  CHECK(count_single_reads("y[b[i]] = i;", "vyre_load8(&b[") > 0);
  CHECK(count_single_reads("y[w[i]] = 1;", "vyre_load64(&w[") > 0);
  CHECK(count_single_reads("y[u32(f[i])] = 1;", "vyre_load32(&f[") > 0);
  /* Another dispatch may write memory that this one only reads. */
  CHECK(count_single_reads("y[r[i]] = x[i];", "vyre_load32(&r[") > 0);
  CHECK_U64(count_single_reads("y[r[i]] = x[i];", "vyre_load32(&x["), 0);
  /* x[i] is stored to y, which is then read as an index. */
  CHECK(count_single_reads("y[i] = x[i]; f[y[l]] = 1.0;", "vyre_load32(&x[") >
        0);
}

/* Loads that influence only values stay plain and vectorise. */
TEST(other_loads_are_plain) {
  static const char *const plain[] = {
      "f[i] = 3.0 * f32(x[i]) + f[i];",
      "f[i] = max(f[i], 0.0);",
      "if (f[i] > 0.5) { f[i] = f[i] - 1.0; }",
      "if (x[i] > 5) { x[i] = x[i] - 1; }",
      "if (x[i] > y[i]) { y[i] = x[i]; }",
      "if (x[i] == 0) { return; } y[i] = y[i] / 3;",
      "tile[l] = x[i]; barrier(); y[i] = tile[63 - l];",
      "let old = atomic_add(x[i], 1); y[old] = y[i];",
      "if (i < len(f)) { f[i] = 3.0 * f32(i) + f[i]; }",
      "if (i >= len(x)) { return; } if (x[i] > 5) { x[i] = x[i] - i; }",
      "if (i < len(x) && i < len(y)) { if (x[i] > y[i]) { y[i] = x[i]; } }",
      "let v = select(i > 0, x[i - 1], 0); if (v > x[i]) { x[i] = v + i; }",
      "let k = i ^ 4; if ((x[i] > x[k]) == ((i & 8) == 0)) { x[i] = x[k]; }",
      "var m = 0u; for (let k = 0; k < 9; k++) { if (x[k] > m) { m = x[k]; } }",
      "var m = 0u; for (let k = 0u; k < len(x); k++) { m += x[k]; } y[i] = m;",
  };
  for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
    unsigned count = count_single_reads(plain[i], "vyre_load");
    if (count) printf("    %s\n", plain[i]);
    CHECK_U64(count, 0);
  }
}

/* gcc warns about a loop beyond an array even if it is unreachable. */
TEST(a_row_that_does_not_fit_is_printed_once) {
  static const char source[] =
      "kernel row workgroup(96) over(y)\n"
      "buffer y : read_write u32[] @0;\n"
      "shared tile : u32[%u];\n"
      "{\n"
      "    let i = global_id.x;\n"
      "    tile[95 - local_id.x] = i;\n"
      "    barrier();\n"
      "    if (i < len(y)) { y[i] = tile[i]; }\n"
      "}\n";
  for (unsigned count = 95; count <= 96; count++) {
    char with[sizeof source + 8];
    snprintf(with, sizeof with, source, count);
    lowered l = lower_text(with);
    text code = emit_text(l.k, NULL);
    const char *at = strstr(code.bytes, "/* barrier */");
    CHECK(at && (strstr(at, "row are inside") != NULL) == (count == 96));
    program p = build(&code, "row", flags_of("-O2"));
    dlclose(p.library);
    free(code.bytes);
    lowered_deinit(&l);
  }
}

/* Long chains of f64 are faster as two vectors at a time. Code that does not
 * vectorise gets no hint. */
TEST(chains_of_f64_are_hinted) {
  static const struct {
    unsigned workgroup;
    const char *statement;
    bool is_hinted;
  } cases[] = {
      {256, "y[i] = log(x[i]);", true},
      {256, "if (i < len(y)) y[i] = log(x[i]);", true},
      {256, "if (i >= len(y)) return; y[i] = log(x[i]);", true},
      {256, "y[i] = sin(x[i]);", true},
      {24, "y[i] = log(x[i]);", false}, /* not a multiple */
      {256, "y[i] = 2.0 * x[i] + y[i];", false},
      {256, "if (x[i] > 2.0) y[i] = log(x[i]);", false},
      {256, "for (let k = 0u; k < i; k++) y[i] = log(x[k]);", false},
      {256, "y[u32(y[i])] = log(x[i]);", false},
  };
  for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
    char source[512];
    snprintf(source, sizeof source,
             "kernel chain workgroup(%u)\n"
             "buffer x : read f32[] @0;\n"
             "buffer y : read_write f32[] @1;\n"
             "{ let i = global_id.x; %s }\n",
             cases[n].workgroup, cases[n].statement);
    lowered l = lower_text(source);
    text code = emit_text(l.k, NULL);
    if ((strstr(code.bytes, "VYRE_ROW") != NULL) != cases[n].is_hinted) {
      printf("    %s\n", cases[n].statement);
      test_fail(__FILE__, __LINE__);
    }
    program p = build(&code, "chain", flags_of("-O2"));
    dlclose(p.library);
    free(code.bytes);
    lowered_deinit(&l);
  }
}

/* Uses every kind of name in a file: host loops, scratch, strips. */
static const char everything[] =
    "kernel k workgroup(32) over(x)\n"
    "buffer x : read_write f32[] @0;\n"
    "uniform n : u32 @1;\n"
    "shared tile : f32[20000];\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    let l = local_id.x;\n"
    "    var sum = 0.0;\n"
    "    for (let a = 0u; a < n; a++) {\n"
    "        for (let b = 0u; b < len(x); b += 3) {\n"
    "            tile[l + b % 7] = f32(a);\n"
    "            barrier();\n"
    "            var w = 0u;\n"
    "            while (w < l && sum < 3.0) {\n"
    "                w = w * 2 + 1;\n"
    "                sum = sum + tile[l];\n"
    "            }\n"
    "            if (i < len(x)) { x[i] = sin(sum); }\n"
    "            grid_barrier();\n"
    "        }\n"
    "    }\n"
    "    for (let c = 0u; c < n; c++) {\n"
    "        if (i < len(x)) { x[i] = x[i] + sum + f32(c); }\n"
    "        sum = sum * 2.0;\n"
    "        grid_barrier();\n"
    "    }\n"
    "}\n";

/* K is replaced by the name of the kernel. */
static const char *const clashes[] = {
    "groups",
    "bound_0",
    "bound_1",
    "i_0",
    "i_1",
    "K",
    "K_launch",
    "K_phase0",
    "K_phase3",
    "K_scratch",
    "K_memory",
    "len_x",
    "len_for_",
    "K_memory2",
    "memory",
    "scratch",
    "launch",
    "here",
    "group",
    "group_x",
    "grid_x",
    "first_x",
    "local_x",
    "global_x",
    "fuel",
    "done",
    "strip",
    "strip_end",
    "next_group",
    "first_group",
    "loop_0",
    "loop_1",
    "loop_at_0",
    "loop_bound_",
    "loop_bound_1",
    "uniform_1",
    "rare_2",
    "rare",
    "rare",
    "rare_3",
    "step_9",
    "v12",
    "t12",
    "v",
    "vyre_f32",
    "vyre_load32",
    "VYRE_ROW",
    "for",
    "for_",
    "for",
    "int",
    "size_t",
    "uint32_t",
    "FLT_MAX",
    "INT32_MAX",
    "NULL",
    "NAN",
    "M_PI",
    "isnan",
    "offsetof",
    "memset",
    "memcpy",
    "fabsf",
    "fma",
    "sin",
    "y0",
    "printf",
    "signgam",
    "strtod",
    "copysignf",
    "lgammaf_r",
    "lgammal_r",
    "fadd",
    "fsubl",
    "dmull",
    "dsqrtl",
    "fmaximum_mag_numf",
    "fminimum",
    "canonicalizel",
    "nextup",
    "nextdownf",
    "llogb",
    "fromfpxl",
    "ufromfp",
    "roundevenf",
    "iszero",
    "unreachable",
    "nullptr",
    "constexpr",
    "typeof",
    "typeof_unqual",
    "static_assert",
    "alignas",
    "alignof",
    "thread_local",
    "bool",
    "true",
    "false",
    "DEC_NAN",
    "DEC64_MAX",
    "x",
    "x_2",
    "x",
    "x_3",
    "x",
    "len_x_2",
    "len_x_2_",
    "len",
    "len",
    "len_2",
    "data",
    "loop",
    "loop",
    "loop",
    "grid",
    "first",
    "a_name_of_more_than_sixty_characters_that_is_cut_somewhere_x",
    "a_name_of_more_than_sixty_characters_that_is_cut_somewhere_y",
    "größe x",
    "größe x",
    "0",
    "_Bool",
    "__LINE__",
    "",
    "bits",
    "value",
    "at",
    "expected",
};
enum { CLASHES = sizeof clashes / sizeof clashes[0] };

static const char *clash(size_t at, const char *kernel, char out[64]) {
  const char *name = clashes[at % CLASHES];
  if (name[0] != 'K') return name;
  snprintf(out, 64, "%s%s", kernel, name + 1);
  return out;
}

/* Compiles as C11, and with headers that declare C23 functions. */
static void check_compiles(const text *code) {
  const char *cc = getenv("CC"), *folder = work_folder();
  char source[256], command[1024];
  snprintf(source, sizeof source, "%s/names.c", folder);
  FILE *file = fopen(source, "wb");
  CHECK(file);
  CHECK(fwrite(code->bytes, 1, code->length, file) == code->length);
  CHECK(fclose(file) == 0);
  static const char *const standards[] = {"c11", "gnu2x"};
  for (size_t i = 0; i < sizeof standards / sizeof standards[0]; i++) {
    snprintf(command, sizeof command, "%s %s -std=%s -fsyntax-only %s",
             cc && cc[0] ? cc : "cc", strict_flags, standards[i], source);
    CHECK(system(command) == 0);
  }
  unlink(source);
}

/* Uses every name of the list for a kernel, for buffers and for variables. */
TEST(names_do_not_clash) {
  lowered l = lower_text(everything);
  vyre__lir_kernel k = *l.k;
  vyre__lir_buffer buffers[8];
  vyre__lir_var vars[32];
  char names[40][64];
  CHECK(k.buffer_count <= 8 && k.var_count <= 32 && k.var_count >= 3);
  memcpy(buffers, k.buffers, k.buffer_count * sizeof *buffers);
  memcpy(vars, k.vars, k.var_count * sizeof *vars);
  k.buffers = buffers;
  k.vars = vars;
  for (size_t turn = 0; turn < CLASHES; turn++) {
    k.name = clashes[turn][0] == 'K' ? "kernel_x" : clashes[turn];
    size_t at = turn;
    for (uint32_t i = 0; i < k.buffer_count; i++, at++) {
      buffers[i].name = clash(at, k.name, names[i]);
    }
    for (uint32_t i = 0; i < k.var_count; i++, at++) {
      vars[i].name = clash(at, k.name, names[8 + i]);
    }
    text code = emit_text(&k, NULL);
    check_compiles(&code);
    free(code.bytes);
  }
  lowered_deinit(&l);
}

/* With a quadratic algorithm this would take minutes. */
TEST(many_names_are_printed_in_linear_time) {
  enum { MANY = 200000 };
  make_saxpy("saxpy");
  vyre__lir_var *vars = calloc(MANY, sizeof *vars);
  char(*names)[16] = calloc(MANY, sizeof *names);
  CHECK(vars && names);
  for (uint32_t i = 0; i < MANY; i++) {
    snprintf(names[i], sizeof names[i], i % 2 ? "x" : "x_%u", (unsigned)i);
    vars[i] = (vyre__lir_var){names[i], VYRE_TYPE_U32};
  }
  t.k.vars = vars;
  t.k.var_count = MANY;
  text code = emit_text(&t.k, NULL);
  free(code.bytes);
  free(vars);
  free(names);
}

/* --- limits of a launch --------------------------------------------------- */

TEST(rejects_ids_that_do_not_fit) {
  make_saxpy("saxpy");
  text code = emit_text(&t.k, NULL);
  program p = build(&code, "saxpy", flags_of("-O1"));
  uint32_t x[4] = {0}, y[4] = {0};
  vyre__lir_binding buffers[2] = {{x, 4}, {y, 4}};
  launch l = make_launch(&t.k, buffers, (uint32_t[]){(1u << 24) + 1, 1, 1}, 0);
  CHECK(p.run(&l) == 2);
  l = make_launch(&t.k, buffers, (uint32_t[]){UINT32_MAX, 1, 1}, 0);
  CHECK(p.run(&l) == 2);
  l = make_launch(&t.k, buffers, (uint32_t[]){1, UINT32_MAX, 0}, 0);
  CHECK(p.run(&l) == 0); /* y is not used */
  l = make_launch(&t.k, buffers, (uint32_t[]){16, 1u << 31, 1u << 31}, 0);
  CHECK(p.run(&l) == 2); /* 2^66 workgroups */
  dlclose(p.library);
  free(code.bytes);
}

/* Elements of 8 bytes that are accessed in halves have two indices each. */
TEST(rejects_buffers_whose_halves_cannot_be_indexed) {
  make_saxpy("saxpy");
  t.k.buffers[0].unit = 8;
  t.k.buffers[0].width = 4;
  text code = emit_text(&t.k, NULL);
  program p = build(&code, "saxpy", flags_of("-O1"));
  uint32_t x[4] = {0}, y[4] = {0};
  vyre__lir_binding buffers[2] = {{x, 1u << 31}, {y, 4}};
  launch l = make_launch(&t.k, buffers, (uint32_t[]){0, 1, 1}, 0);
  CHECK(p.run(&l) == 2);
  buffers[0].length--;
  l = make_launch(&t.k, buffers, (uint32_t[]){0, 1, 1}, 0);
  CHECK(p.run(&l) == 0);
  dlclose(p.library);
  free(code.bytes);
}

/* Accesses are proven against the declared lengths. */
TEST(rejects_buffers_that_are_too_short) {
  lowered w = lower_text(
      "kernel fixed workgroup(64)\n"
      "buffer x : read_write u32[100] @0;\n"
      "buffer y : read u32[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ x[local_id.x + 36] = y[0] + n; }\n");
  text code = emit_text(w.k, NULL);
  program p = build(&code, "fixed", flags_of("-O1"));
  uint32_t x[100] = {0}, n = 1;
  vyre__lir_binding buffers[3] = {{x, 100}, {NULL, 0}, {&n, 1}};
  launch l = make_launch(w.k, buffers, (uint32_t[]){1, 1, 1}, 0);
  CHECK(p.run(&l) == 0 && x[99] == 1);
  buffers[0].length = 99;
  l = make_launch(w.k, buffers, (uint32_t[]){1, 1, 1}, 0);
  CHECK(p.run(&l) == 2);
  buffers[0].length = 100;
  buffers[2].length = 0;
  l = make_launch(w.k, buffers, (uint32_t[]){1, 1, 1}, 0);
  CHECK(p.run(&l) == 2);
  dlclose(p.library);
  free(code.bytes);
  lowered_deinit(&w);
}

/* Bit operations on results of comparisons and on narrow values compile without
 * warnings. */
TEST(bits_of_conditions_compile) {
  lowered w = lower_text(
      "kernel bits workgroup(32)\n"
      "buffer x : read bool[] @0;\n"
      "buffer y : read_write u64[32] @1;\n"
      "buffer b : read u8[32] @2;\n"
      "{ let i = global_id.x % 32; if (~u32(b[i]) != 0) { "
      "y[i] = ~u64(x[i]) ^ ~u64(i < 7); } }\n");
  text code = emit_text(w.k, NULL);
  program p = build(&code, "bits", flags_of("-O1"));
  uint8_t x[32] = {1, 0}, b[32] = {0};
  uint64_t y[32] = {0};
  vyre__lir_binding buffers[3] = {{x, 32}, {y, 32}, {b, 32}};
  launch l = make_launch(w.k, buffers, (uint32_t[]){1, 1, 1}, 0);
  CHECK(p.run(&l) == 0 && y[0] == 0 && y[1] == 1 && y[9] == 0);
  dlclose(p.library);
  free(code.bytes);
  lowered_deinit(&w);
}

/* A hoisted value is used once in its own subregion and once after the barrier,
 * by a rematerialised value. */
TEST(rematerialised_after_a_barrier) {
  lowered w = lower_text(
      "kernel again workgroup(2)\n"
      "buffer x : read_write u32[] @0;\n"
      "shared t : u32[4];\n"
      "{ let group = workgroup_id.y * grid_size.x + workgroup_id.x;\n"
      "let i = group * 2 + local_id.x; let first = i < group;\n"
      "t[local_id.x] = i; barrier();\n"
      "if (first) { x[i] = t[1 - local_id.x]; } "
      "else { x[i] = t[local_id.x] + 100; } }\n");
  text code = emit_text(w.k, NULL);
  program p = build(&code, "again", flags_of("-O1"));
  uint32_t x[4] = {0};
  vyre__lir_binding buffers[2] = {{x, 4}};
  launch l = make_launch(w.k, buffers, (uint32_t[]){2, 1, 1}, 0);
  CHECK(p.run(&l) == 0 && x[0] == 100 && x[1] == 101 && x[3] == 103);
  dlclose(p.library);
  free(code.bytes);
  lowered_deinit(&w);
}

/* The file documents the names of the kernel and the fields to set. */
TEST(documents_the_launch_block) {
  lowered w = lower_text(
      "kernel said workgroup(32)\n"
      "buffer int : read_write u32[] @0;\n"
      "buffer plain : read u32[] @1;\n"
      "{ int[global_id.x] = plain[0]; }\n");
  text code = emit_text(w.k, NULL);
  CHECK_HAS(code.bytes, "(int in the kernel)");
  CHECK(!strstr(code.bytes, "(plain in"));
  CHECK_HAS(code.bytes, "loop_value is not used");
  free(code.bytes);
  lowered_deinit(&w);
  w = lower_text(everything);
  code = emit_text(w.k, NULL);
  CHECK(w.k->grid_loop_count == 3);
  CHECK_HAS(code.bytes, "k() sets loop_value");
  CHECK_HAS(code.bytes, "\n *   loop_value[0] u32, in phases ");
  CHECK_HAS(code.bytes, "\n *   loop_value[2] u32, in phases ");
  free(code.bytes);
  lowered_deinit(&w);
}

/* The spill buffer must have room for all invocations, with 32-bit indices. */
TEST(rejects_small_spill_buffers) {
  lowered w = lower_text(everything);
  const vyre__lir_kernel *k = w.k;
  text code = emit_text(k, NULL);
  program p = build(&code, "k", flags_of("-O1"));
  CHECK(k->spill_buffer != VYRE_NO_INDEX && k->spill_words > 1);
  static uint32_t kept[4096], x[64], n = 1;
  vyre__lir_binding buffers[8] = {{0}};
  buffers[0] = (vyre__lir_binding){x, 64};
  buffers[1] = (vyre__lir_binding){&n, 1};
  uint32_t need = 2 * 32 * k->spill_words;
  CHECK(need <= 4096);
  buffers[k->spill_buffer] = (vyre__lir_binding){kept, need};
  launch l = make_launch(k, buffers, (uint32_t[]){2, 1, 1}, UINT32_MAX);
  CHECK(p.run(&l) == 0);
  const uint32_t larger[][3] = {
      {3, 1, 1},       {1, 3, 1},
      {1, 1, 3},       {1 << 16, 1 << 16, 1 << 16},
      {1 << 27, 1, 1}, {1 << 22, 1 << 22, 1 << 20},
  };
  for (size_t i = 0; i < sizeof larger / sizeof larger[0]; i++) {
    l = make_launch(k, buffers, larger[i], UINT32_MAX);
    CHECK(p.run(&l) == 2);
  }
  buffers[k->spill_buffer].length = need - 1;
  l = make_launch(k, buffers, (uint32_t[]){2, 1, 1}, UINT32_MAX);
  CHECK(p.run(&l) == 2);
  CHECK_U64(vyre__lir_max_invocations(k), UINT32_MAX / k->spill_words);
  dlclose(p.library);
  free(code.bytes);
  lowered_deinit(&w);
}

TEST(cleans_up) {
  finish_folder();
}

TEST_MAIN(TEST_ENTRY(loads_that_influence_an_index_are_single),
          TEST_ENTRY(other_loads_are_plain),
          TEST_ENTRY(a_row_that_does_not_fit_is_printed_once),
          TEST_ENTRY(chains_of_f64_are_hinted), TEST_ENTRY(names_do_not_clash),
          TEST_ENTRY(many_names_are_printed_in_linear_time),
          TEST_ENTRY(bits_of_conditions_compile),
          TEST_ENTRY(rematerialised_after_a_barrier),
          TEST_ENTRY(documents_the_launch_block),
          TEST_ENTRY(rejects_ids_that_do_not_fit),
          TEST_ENTRY(rejects_buffers_whose_halves_cannot_be_indexed),
          TEST_ENTRY(rejects_buffers_that_are_too_short),
          TEST_ENTRY(rejects_small_spill_buffers), TEST_ENTRY(cleans_up))
