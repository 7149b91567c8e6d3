/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "spmd/passes/shared_layout.h"

#include <stdio.h>
#include <string.h>

#include "vyre/module.h"

#include "support/check.h"
#include "testing/lir_interp.h"

enum { ELEMENTS = 4096 };

typedef struct fixture {
  vyre_module *module;
  vyre_arena arena;
  const vyre__lir_kernel *before, *after;
  char dump[512];
} fixture;

static bool put(void *self, const char *bytes, size_t size) {
  fixture *f = self;
  size_t used = strlen(f->dump);
  if (used + size >= sizeof f->dump) return false;
  memcpy(f->dump + used, bytes, size);
  f->dump[used + size] = '\0';
  return true;
}

static void lay_out(fixture *f, const char *source) {
  const vyre__target target = {.math = VYRE__MATH_F64};
  const vyre__shared_layout *layouts;
  vyre_status st = {0};
  *f = (fixture){0};
  vyre_arena_init(&f->arena, (vyre_allocator){0});
  CHECK_OK(vyre_module_parse(source, strlen(source), "t.vyre",
                             (vyre_allocator){0}, &f->module, NULL, &st),
           st);
  CHECK_OK(vyre__lower(vyre_module_kernel(f->module, 0), &target,
                       VYRE__PASS_LEGALIZE_CONTROL, &f->arena, &f->before, NULL,
                       &st),
           st);
  CHECK_OK(vyre__lay_out_shared(f->before, &f->arena, &f->after, &layouts, &st),
           st);
  CHECK_OK(
      vyre__lir_verify(f->after, VYRE__STAGE_CONTROL, (vyre_allocator){0}, &st),
      st);
  CHECK(vyre__layouts_print(f->after, layouts,
                            (vyre_writer){.write = put, .self = f}));
}

static void drop(fixture *f) {
  vyre_arena_deinit(&f->arena);
  vyre_module_release(f->module);
}

/* Runs a kernel of one input and one output, in two workgroups. */
static void run(const vyre__lir_kernel *kernel, uint32_t *out) {
  static uint32_t in[ELEMENTS];
  for (uint32_t i = 0; i < ELEMENTS; i++) in[i] = i * 2654435761u;
  memset(out, 0, ELEMENTS * sizeof *out);
  const vyre__lir_binding buffers[4] = {{in, ELEMENTS}, {out, ELEMENTS}};
  const vyre__lir_launch launch = {.buffers = buffers,
                                   .grid = {2, 1, 1},
                                   .fuel = UINT32_MAX,
                                   .poison = 0xa5,
                                   .max_instructions = 100000000};
  vyre_status st = {0};
  CHECK_OK(vyre__lir_interpret(kernel, &launch, (vyre_allocator){0}, &st), st);
}

/* Checks the layouts of a kernel and that they change no result. */
static void check_layout(const char *source, const char *dump) {
  static uint32_t before[ELEMENTS], after[ELEMENTS];
  fixture f;
  lay_out(&f, source);
  CHECK_TEXT(f.dump, dump);
  CHECK((f.after != f.before) == (dump[0] != '\0'));
  run(f.before, before);
  run(f.after, after);
  CHECK(memcmp(before, after, sizeof before) == 0);
  drop(&f);
}

#define BUFFERS \
  "buffer x : read u32[4096] @0;\nbuffer y : read_write u32[4096] @1;\n"

TEST(columns_are_transposed) {
  check_layout(
      "kernel columns workgroup(16, 4)\n" BUFFERS
      "shared t : u32[16 * 21];\n"
      "{ let a = local_id.x * 21 + local_id.y;\n"
      "  for (let i = 0u; i < 5; i++) t[a + i * 4] = x[global_id.x * 32 + a + "
      "i];\n"
      "  barrier();\n"
      "  var s = 0u;\n"
      "  for (let i = 0u; i < 17; i++) s = s * 3 + t[a + i];\n"
      "  y[global_id.x * 4 + local_id.y] = s + len(t); }\n",
      "shared t: element a * 21 + b at b * 16 + a\n");
}

/* The sum of row and column is the same for all lanes. */
TEST(diagonals_are_rows) {
  check_layout(
      "kernel wave workgroup(16)\n" BUFFERS
      "shared t : u32[17 * 17];\n"
      "{ let i = local_id.x;\n"
      "  t[(i + 1) * 17] = x[global_id.x]; t[i + 1] = x[global_id.x + 64];\n"
      "  barrier();\n"
      "  for (let m = 0u; m < 16; m++) {\n"
      "    if (i <= m) {\n"
      "      let r = m - i + 1;\n"
      "      t[r * 17 + i + 1] = t[(r - 1) * 17 + i] * 3 + t[r * 17 + i] +\n"
      "        t[(r - 1) * 17 + i + 1]; }\n"
      "    barrier(); }\n"
      "  for (let k = 1u; k < 16; k++) {\n"
      "    let m = 15 - k;\n"
      "    if (i <= m) {\n"
      "      let c = i + 16 - m; let r = 16 - i;\n"
      "      t[r * 17 + c] = t[(r - 1) * 17 + c - 1] * 3 + t[r * 17 + c - 1] "
      "+\n"
      "        t[(r - 1) * 17 + c]; }\n"
      "    barrier(); }\n"
      "  y[global_id.x] = t[16 * 17 + i] + t[i * 17 + 16]; }\n",
      "shared t: element a * 17 + b at (a + b) * 17 + b\n");
}

TEST(opposite_diagonals_are_rows) {
  check_layout(
      "kernel wave workgroup(16)\n" BUFFERS
      "shared t : u32[32 * 16];\n"
      "{ let i = local_id.x;\n"
      "  for (let m = 0u; m < 16; m++) t[(m + i) * 16 + i] = x[global_id.x * "
      "16 + m];\n"
      "  barrier();\n"
      "  var s = 0u;\n"
      "  for (let m = 0u; m < 16; m++) s = s * 3 + t[(15 - m + i) * 16 + i];\n"
      "  y[global_id.x] = s + t[i]; }\n",
      "shared t: element a * 16 + b at (a - b + 15) * 16 + b\n");
}

/* b is below the length of a row only because of the guard. */
TEST(guards_prove_a_column) {
  static const char text[] =
      "kernel guarded workgroup(16)\n" BUFFERS
      "shared t : u32[16 * 20];\n"
      "{ let i = local_id.x;\n"
      "  for (let k = 0u; k < 20; k++) t[i * 20 + k] = x[global_id.x * 20 + "
      "k];\n"
      "  barrier();\n"
      "  var s = 0u;\n"
      "  for (let k = 0u; k < 20; k++) {\n"
      "    for (let j = 0u; j < 20; j++) {\n"
      "      if (k + j %s 20) s = s * 3 + t[i * 20 + k + j]; } }\n"
      "  y[global_id.x] = s; }\n";
  char source[2048];
  snprintf(source, sizeof source, text, "<");
  check_layout(source, "shared t: element a * 20 + b at b * 16 + a\n");
  snprintf(source, sizeof source, text, "<=");
  check_layout(source, "");
}

/* Two rows of 16 invocations; vectors are not longer than that. */
TEST(columns_of_part_of_a_workgroup) {
  check_layout(
      "kernel parts workgroup(32)\n" BUFFERS
      "shared t : u32[32 * 16];\n"
      "{ let i = local_id.x % 16; let h = local_id.x / 16;\n"
      "  for (let k = 0u; k < 16; k++)\n"
      "    t[(h * 16 + i) * 16 + k] = x[global_id.x * 16 + k];\n"
      "  barrier(); var s = 0u;\n"
      "  for (let k = 0u; k < 16; k++) s = s * 3 + t[(h * 16 + i) * 16 "
      "+ (15 - k)];\n"
      "  y[global_id.x] = s; }\n",
      "shared t: element a * 16 + b at b * 32 + a\n");
}

TEST(rows_stay_as_they_are) {
  check_layout("kernel rows workgroup(16, 4)\n" BUFFERS
               "shared t : u32[16 * 4];\n"
               "{ let a = local_id.y * 16 + local_id.x;\n"
               "  t[a] = x[global_id.x + local_id.y]; barrier();\n"
               "  y[global_id.x * 4 + local_id.y] = t[63 - a]; }\n",
               "");
  /* one access each way: nothing is gained */
  check_layout("kernel turn workgroup(16, 16)\n" BUFFERS
               "shared t : u32[16 * 17];\n"
               "{ t[local_id.y * 17 + local_id.x] = x[local_id.y * 32 + "
               "global_id.x]; barrier();\n"
               "  y[global_id.x * 16 + local_id.y] = t[local_id.x * 17 + "
               "local_id.y]; }\n",
               "");
}

/* An index that memory decides has no rows and columns. */
TEST(arrays_with_unknown_indices_stay) {
  check_layout("kernel loose workgroup(16)\n" BUFFERS
               "shared t : u32[16 * 21];\n"
               "{ for (let k = 0u; k < 21; k++) t[local_id.x * 21 + k] = k;\n"
               "  barrier();\n"
               "  var s = 0u;\n"
               "  for (let k = 0u; k < 21; k++) s += t[local_id.x * 21 + k];\n"
               "  y[global_id.x] = s + t[x[global_id.x] % 300]; }\n",
               "");
}

/* Steps across the end of a row belong to the next row, wherever the
 * constants stand. */
TEST(constants_move_between_rows) {
  for (unsigned row = 8; row < 14; row++) {
    for (unsigned first = 0; first < 2 * row; first += 3) {
      char source[1024], dump[100];
      unsigned last = first / row * row + row - 1;
      snprintf(source, sizeof source,
               "kernel shift workgroup(16)\n" BUFFERS
               "shared t : u32[20 * "
               "%u];\n"
               "{ for (let k = 0u; k < %u; k++)\n"
               "    t[(local_id.x + 1) * %u + k + %u - %u] = x[local_id.x * 16 "
               "+ k];\n"
               "  barrier(); var s = 0u;\n"
               "  for (let k = %uu; k <= %uu; k++)\n"
               "    s = s * 5 + t[local_id.x * %u + k];\n"
               "  y[global_id.x] = s; }\n",
               row, row, row, row, row, first, last, row);
      snprintf(dump, sizeof dump,
               "shared t: element a * %u + b at b * 20 + a\n", row);
      check_layout(source, dump);
    }
  }
}

TEST_MAIN(TEST_ENTRY(columns_are_transposed), TEST_ENTRY(diagonals_are_rows),
          TEST_ENTRY(opposite_diagonals_are_rows),
          TEST_ENTRY(guards_prove_a_column),
          TEST_ENTRY(columns_of_part_of_a_workgroup),
          TEST_ENTRY(rows_stay_as_they_are),
          TEST_ENTRY(arrays_with_unknown_indices_stay),
          TEST_ENTRY(constants_move_between_rows))
