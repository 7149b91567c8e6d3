/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "emit/width.h"

#include "vyre/module.h"

#include "emit/kernels_testing.h"
#include "emit/shape_testing.h"
#include "support/check.h"

typedef struct lowered {
  vyre_module *module;
  vyre_arena arena;
  const vyre__low_kernel *kernel;
} lowered;

/* As for a processor with fma. */
static void lower(const char *text, lowered *l) {
  vyre_status st = {0};
  vyre__target target = {0};
  target.f32[VYRE__LOW_FMIN] = target.f32[VYRE__LOW_FMAX] =
      target.f32[VYRE__LOW_FROUND] = VYRE__NUMBERS_FIXED;
  *l = (lowered){0};
  vyre_arena_init(&l->arena, (vyre_allocator){0});
  CHECK_OK(vyre_module_parse(text, strlen(text), "k.vyre", (vyre_allocator){0},
                             &l->module, NULL, &st),
           st);
  CHECK_OK(vyre__lower(vyre_module_kernel(l->module, 0), &target,
                       VYRE__PASS_CONTROL, &l->arena, &l->kernel, NULL, &st),
           st);
}

static void lowered_finish(lowered *l) {
  vyre_arena_finish(&l->arena);
  vyre_module_release(l->module);
}

static void measure(lowered *l, uint32_t width, vyre__width_facts *out) {
  vyre__regions regions;
  vyre__shapes shapes;
  vyre_status st = {0};
  CHECK_OK(vyre__regions_build(l->kernel, l->kernel->phases[0], false,
                               &l->arena, &regions, &st),
           st);
  CHECK_OK(vyre__shapes_find(&regions, width, &l->arena, &shapes, &st), st);
  CHECK_OK(vyre__width_measure(&regions, &shapes, &l->arena, out, &st), st);
}

static uint32_t choose(const char *text, uint32_t lanes) {
  lowered l;
  uint32_t width = 0;
  vyre_status st = {0};
  lower(text, &l);
  CHECK_OK(vyre__width_choose(l.kernel, lanes, &l.arena, &width, &st), st);
  lowered_finish(&l);
  return width;
}

/* Widths that a machine with 4, 8 and 16 lanes gets. */
typedef struct width_case {
  const char *name;
  uint32_t want[3];
} width_case;

static const width_case cases[] = {
    {"saxpy", {16, 32, 32}},
    {"exp", {4, 8, 32}},
    {"mandelbrot", {8, 16, 32}},
    {"reduce", {8, 16, 32}},
    {"softmax", {4, 8, 32}},
    {"matmul", {8, 16, 16}},
    {"matmul_tiled", {8, 16, 16}},
    {"matmul_blocked", {4, 8, 16}},
    {"stencil", {8, 16, 32}},
    {"histogram", {8, 16, 32}},
    {"bfs", {1, 1, 1}},
    {"match", {8, 16, 32}},
};

TEST(kernels_get_their_width) {
  unsigned failed = 0;
  CHECK(sizeof cases / sizeof cases[0] == KERNEL_TEXTS);
  for (size_t i = 0; i < KERNEL_TEXTS; i++) {
    lowered l;
    vyre__width_facts f;
    lower(kernel_texts[i].text, &l);
    measure(&l, 16, &f);
    CHECK_TEXT(kernel_texts[i].name, cases[i].name);
    for (size_t n = 0; n < 3; n++) {
      uint32_t got = choose(kernel_texts[i].text, 4u << n);
      if (got == cases[i].want[n]) continue;
      printf("    %s with %u lanes: %u, not %u (%u bytes live)\n",
             cases[i].name, 4u << n, got, cases[i].want[n], f.live_bytes);
      failed++;
    }
    lowered_finish(&l);
  }
  CHECK_U64(failed, 0);
}

/* --- what is measured -------------------------------------------------------*/

typedef struct facts_case {
  const char *name;
  const char *body; /* of shape_kernel, in a workgroup of 64 */
  const char *want;
} facts_case;

/* An access whose index is not proven has a comparison with the length. */
static const facts_case facts_cases[] = {
    {"a value lives until its last use", "y[i] = v * 3 + 1;",
     "live 2 + 0, arithmetic 4, aligned 2"},
    {"two do at once", "let a = v * 3; let b = v * 5; y[i] = a ^ b;",
     "live 3 + 0, arithmetic 5, aligned 2"},
    {"wide ones",
     "let a = u64(v) * wide; let b = u64(v) + wide;\n"
     "y[i] = u32(a ^ b);",
     "live 2 + 2, arithmetic 7, aligned 2"},
    {"uniform ones cost nothing", "let a = n * 3; let b = n * 5; y[i] = a ^ b;",
     "live 1 + 0, arithmetic 1, aligned 1"},
    {"a value of before lives through the loop",
     "var a = 0u; for (let k = 0u; k < n; k++) { a ^= v + k; } y[i] = a;",
     "live 3 + 0, arithmetic 4, aligned 2, loops 1"},
    {"lanes that part keep who is active", "if (v > 3) { y[i] = v; }",
     "live 3 + 0, arithmetic 3, aligned 2"},
    {"a loop that lanes leave",
     "var a = v; while (a > 3) { a /= 2; } y[i] = a;",
     "live 3 + 0, arithmetic 5, aligned 2, loops 1"},
    {"beside the id", "y[i + 1] = x[i + 2];",
     "live 2 + 0, arithmetic 2, contiguous 2"},
    {"here and there", "y[v] = x[v + 1];",
     "live 4 + 0, arithmetic 4, aligned 1, gathers 1, scatters 1"},
    {"strides", "y[i * 2] = 1;", "live 1 + 0, arithmetic 1, scatters 1"},
    {"one for all", "y[i] = x[n]; atomic_add(z[n], 1);",
     "live 1 + 0, arithmetic 1, aligned 1, atomics 1"},
    {"a loop of everyone for himself",
     "for (let k = v; k < n; k++) { y[x[k]] = 1; }",
     "live 4 + 0, arithmetic 6, aligned 1, gathers 1, scatters 1, loops 1, "
     "irregular 1"},
    {"which all leave together is none",
     "for (let k = 0u; k < n; k++) { y[x[v + k]] = 1; }",
     "live 3 + 0, arithmetic 4, aligned 1, gathers 1, scatters 1, loops 1"},
    {"nor is one that only reads",
     "var a = v; while (a > 3) { a = x[a]; } y[i] = a;",
     "live 3 + 0, arithmetic 5, aligned 2, gathers 1, loops 1"},
    {"nor is one that computes a lot",
     "for (let k = v; k < n; k++) { var a = k;\n"
     "  a = a * a + 1; a = a * a + 2; a = a * a + 3; a = a * a + 4;\n"
     "  a = a * a + 5; a = a * a + 6; a = a * a + 7; a = a * a + 8;\n"
     "  y[a] = 1; }",
     "live 4 + 0, arithmetic 21, aligned 1, scatters 1, loops 1"},
};

static void add(char out[256], const char *word, uint32_t number) {
  size_t length = strlen(out);
  if (number) snprintf(out + length, 256 - length, ", %s %u", word, number);
}

TEST(facts_are_counted) {
  unsigned failed = 0;
  for (size_t i = 0; i < sizeof facts_cases / sizeof facts_cases[0]; i++) {
    const facts_case *c = &facts_cases[i];
    char text[SHAPE_TEXT], got[256];
    lowered l;
    vyre__width_facts f;
    shape_kernel(text, "64", c->body);
    lower(text, &l);
    measure(&l, 16, &f);
    snprintf(got, sizeof got, "live %u + %u, arithmetic %u", f.live_32,
             f.live_64, f.arithmetic);
    add(got, "aligned", f.aligned);
    add(got, "contiguous", f.contiguous);
    add(got, "gathers", f.gathers);
    add(got, "scatters", f.scatters);
    add(got, "atomics", f.atomics);
    add(got, "loops", f.loops);
    add(got, "irregular", f.irregular_loops);
    if (strcmp(got, c->want) != 0) {
      printf("    %s:\n      %s\n      not %s\n", c->name, got, c->want);
      failed++;
    }
    lowered_finish(&l);
  }
  CHECK_U64(failed, 0);
}

/* --- sizes of workgroups ----------------------------------------------------*/

typedef struct size_case {
  const char *size;
  uint32_t want; /* with 8 lanes, of a kernel that streams */
} size_case;

static const size_case size_cases[] = {
    {"256", 32}, {"32", 32}, {"20", 16}, {"16", 16},   {"7", 8},
    {"3", 4},    {"1", 1},   {"48", 16}, {"32,8", 32}, {"16,16", 16},
    {"8,8", 8},  {"4,4", 8}, {"6,6", 8}, {"2,2", 4},
};

TEST(vectors_fit_the_workgroup) {
  unsigned failed = 0;
  for (size_t i = 0; i < sizeof size_cases / sizeof size_cases[0]; i++) {
    const size_case *c = &size_cases[i];
    char text[SHAPE_TEXT];
    shape_kernel(text, c->size, "y[i] = v * 3;");
    uint32_t got = choose(text, 8);
    if (got == c->want) continue;
    printf("    (%s): %u, not %u\n", c->size, got, c->want);
    failed++;
  }
  CHECK_U64(failed, 0);
}

/* With 8 lanes, in a workgroup of 64. */
TEST(only_streams_get_long_vectors) {
  static const struct {
    const char *body;
    uint32_t want;
  } bodies[] = {
      {"y[i] = v + z[i];", 32},
      {"y[i] = v + x[i + 1];", 16},
      {"y[i] = x[v];", 16},
      {"y[v] = 1;", 16},
      {"y[i] = v; atomic_add(z[n], 1);", 16},
      {"y[i] = v; barrier(); y[i] = 2;", 16},
      {"for (let k = 0u; k < n; k++) { y[i] = v; }", 16},
      {"y[i] = v + x[i + 64] + x[i + 128] + x[i + 192];", 16},
  };
  for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
    char text[SHAPE_TEXT];
    shape_kernel(text, "64", bodies[i].body);
    CHECK_U64(choose(text, 8), bodies[i].want);
  }
}

/* Phases between grid barriers have one width: the least of theirs. */
TEST(the_narrowest_phase_decides) {
  CHECK_U64(
      choose("kernel k workgroup(64)\n"
             "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
             "{ let i = global_id.x; y[i] = x[i]; grid_barrier();\n"
             "  for (let k = x[i]; k < 99; k++) {\n"
             "    atomic_add(y[x[k]], 1); } }\n",
             8),
      1);
}

static lowered swept;

static vyre_code sweep(vyre_allocator allocator, vyre_status *st) {
  vyre_arena arena;
  uint32_t width;
  vyre_arena_init(&arena, allocator);
  vyre_code code = vyre__width_choose(swept.kernel, 8, &arena, &width, st);
  vyre_arena_finish(&arena);
  return code;
}

TEST(no_memory_is_told) {
  lower(kernel_texts[2].text, &swept);
  CHECK(sweep_allocations(sweep) > 0);
  lowered_finish(&swept);
}

TEST_MAIN(TEST_ENTRY(kernels_get_their_width), TEST_ENTRY(facts_are_counted),
          TEST_ENTRY(vectors_fit_the_workgroup),
          TEST_ENTRY(only_streams_get_long_vectors),
          TEST_ENTRY(the_narrowest_phase_decides),
          TEST_ENTRY(no_memory_is_told))
