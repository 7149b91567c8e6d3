/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests code for rows of invocations: partial vectors at their ends, jammed rows,
 * bounds checks hoisted out of loops, and sums with several accumulators. Every
 * kernel must equal ref at every width. Each buffer ends at a page that cannot be
 * accessed. */
#define _DEFAULT_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include <sys/mman.h>
#include <unistd.h>

#include "codegen/llvm/llvm_testing.h"
#include "spmd/schedule_testing.h"

/* --- buffers that end at a guard page ---------------------------------------------------*/

typedef struct guarded {
  void *map;
  size_t size;
} guarded;

static guarded maps[MAX_BUFFERS];
static vyre__lir_binding bound[MAX_BUFFERS];

static void *guarded_take(uint32_t i, size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t room = (size + page - 1) / page * page;
  char *map = mmap(NULL, room + page, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(map != MAP_FAILED);
  memset(map, 0xA5, room); /* what is before shows, too */
  CHECK(mprotect(map + room, page, PROT_NONE) == 0);
  maps[i] = (guarded){map, room + page};
  return map + room - size;
}

static void unbind(void) {
  for (uint32_t i = 0; i < MAX_BUFFERS; i++) {
    if (maps[i].map) CHECK(munmap(maps[i].map, maps[i].size) == 0);
    maps[i] = (guarded){0};
  }
}

/* The analyzer loses track of the array. */
/* NOLINTBEGIN(clang-analyzer-unix.Malloc) */
static void bind_guarded(const job *j) {
  vyre__lir_binding plain[MAX_BUFFERS] = {{0}};
  const vyre_binding_plan *plan = vyre_pipeline_bindings(j->pipeline);
  bind_all(j, NULL, plain);
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    const vyre__lir_binding *from = &plain[b->buffer_index];
    if (b->role == VYRE_ROLE_SHARED) continue;
    size_t size =
        (size_t)from->length * (b->element_size ? b->element_size : 1);
    void *to = guarded_take(b->buffer_index, size);
    if (size) memcpy(to, from->data, size);
    bound[b->buffer_index] = (vyre__lir_binding){to, from->length};
    free(from->data);
  }
}
/* NOLINTEND(clang-analyzer-unix.Malloc) */

/* --- one kernel, several sizes ----------------------------------------------------------*/

/* Buffers have `elements`, uniforms are `number`. */
typedef struct size_case {
  uint32_t number, elements, grid[2];
} size_case;

static unsigned run_case(const vyre__lir_kernel *k, const compiled *c,
                         vyre_program *program, const size_case *s) {
  vyre_arena arena;
  vyre_binding_plan plan;
  vyre_status st = {0};
  uint64_t seed = 99 + s->number;
  job j = {.name = "rows", .program = program};
  j.grid[0] = s->grid[0];
  j.grid[1] = s->grid[1];
  j.grid[2] = 1;
  vyre_arena_init(&arena, (vyre_allocator){0});
  CHECK_OK(vyre_binding_plan_build(program, &arena, &plan, &st), st);
  for (size_t i = 0; i < plan.binding_count; i++) {
    const vyre_binding *b = &plan.bindings[i];
    size_t each = b->element_size ? b->element_size : 1;
    bool is_uniform = b->has_static_byte_len && b->role != VYRE_ROLE_SHARED;
    size_t size = is_uniform ? (size_t)b->static_byte_len : s->elements * each;
    if (b->input_index != VYRE_NO_INDEX) {
      void *data = vyre_arena_alloc(&arena, size + 8, 0);
      fill(data, size, program->buffers[b->buffer_index].element, &seed);
      if (is_uniform) memcpy(data, &s->number, sizeof s->number);
      j.inputs[b->input_index] = (vyre_input){data, size};
    }
    if (b->output_index != VYRE_NO_INDEX) {
      j.outputs[b->output_index].size = size;
    }
  }
  j.input_count = plan.input_count;
  j.output_count = plan.output_count;
  run_ref(&j);
  unsigned failed = 0;
  for (unsigned w = 0; w < WIDTHS; w++) {
    bind_guarded(&j);
    bool good =
        run_compiled(k, c, w, bound, j.grid, UINT32_MAX) == VYRE__SPMD_DONE &&
        same_buffers(&j, bound);
    if (!good) {
      printf("    at width %u, number %u, %u elements\n", (unsigned)widths[w],
             (unsigned)s->number, (unsigned)s->elements);
    }
    failed += !good;
    unbind();
  }
  job_deinit(&j);
  vyre_arena_deinit(&arena);
  return failed;
}

static void check_rows(const char *source, const size_case *sizes,
                       size_t count) {
  vyre_status st = {0};
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  vyre_module *module = parse_module(source);
  vyre_program *program = vyre_module_kernel(module, 0);
  const vyre__lir_kernel *k = NULL;
  vyre__target target = cpu_target();
  CHECK_OK(vyre__lower(program, &target, (vyre__pass)(VYRE__PASS_COUNT - 1),
                       &arena, &k, NULL, &st),
           st);
  compiled c = compile(k, VYRE__JIT_FULL);
  unsigned failed = 0;
  for (size_t i = 0; i < count; i++) {
    failed += run_case(k, &c, program, &sizes[i]);
  }
  compiled_free(&c);
  vyre_arena_deinit(&arena);
  vyre_module_release(module);
  CHECK_U64(failed, 0);
}

#define CHECK_ROWS(source, sizes) \
  check_rows(source, sizes, sizeof(sizes) / sizeof(sizes)[0])

/* --- rows side by side --------------------------------------------------------------------*/

#define PRODUCT_HEAD                                       \
  "buffer a : read f32[] @0;\nbuffer b : read f32[] @1;\n" \
  "buffer c : read_write f32[] @2;\nuniform n : u32 @3;\n" \
  "{ let x = global_id.x; let y = global_id.y;\n"

static const size_case squares[] = {
    {1, 1, {1, 1}},     {5, 25, {1, 2}},     {16, 256, {1, 4}},
    {33, 1089, {3, 9}}, {40, 1600, {3, 10}}, {40, 900, {3, 10}},
    {7, 100, {2, 3}},   {0, 50, {2, 2}},
};

TEST(jammed_rows_compute_a_product) {
  CHECK_ROWS("kernel k workgroup(16, 4)\n" PRODUCT_HEAD
             "  if (x >= n || y >= n) return;\n"
             "  var sum = 0.0;\n"
             "  for (let k = 0u; k < n; k++) {\n"
             "    sum = fma(a[y * n + k], b[k * n + x], sum); }\n"
             "  c[y * n + x] = sum; }\n",
             squares);
}

TEST(rows_of_different_lengths_run_separately) {
  CHECK_ROWS("kernel k workgroup(16, 4)\n" PRODUCT_HEAD
             "  if (y >= n || x > y) return;\n"
             "  var sum = 0.0;\n"
             "  for (let k = 0u; k < n; k++) {\n"
             "    sum += a[y * n + k] * b[k * n + x]; }\n"
             "  c[y * n + x] = sum; }\n",
             squares);
}

TEST(a_loop_that_ends_by_its_row_is_not_shared) {
  CHECK_ROWS("kernel k workgroup(16, 4)\n" PRODUCT_HEAD
             "  if (y >= n || x >= n) return;\n"
             "  var sum = 0.0;\n"
             "  for (let k = 0u; k <= y; k++) {\n"
             "    sum += a[y * n + k] * b[k * n + x]; }\n"
             "  c[y * n + x] += sum; }\n",
             squares);
}

TEST(rows_keep_their_own_variables_across_barriers) {
  CHECK_ROWS(
      "kernel k workgroup(32, 4)\n"
      "buffer a : read f32[] @0;\nbuffer c : read_write f32[] @1;\n"
      "uniform n : u32 @2;\nshared t : f32[128];\n"
      "{ let l = local_id.y * 32 + local_id.x;\n"
      "  let i = workgroup_id.x * 128 + l;\n"
      "  var s = 0.0; var u = f32(local_id.y);\n"
      "  for (let r = 0u; r < 3; r++) {\n"
      "    t[l] = a[i + r];\n    barrier();\n    let z = t[local_id.x + r];\n"
      "    for (let k = 0u; k < 4; k++) {\n"
      "      s = fma(t[local_id.y * 32 + k], t[k * 32 + local_id.x], s);\n"
      "      u = u + t[k * 32 + local_id.x]; }\n"
      "    barrier();\n    s += z; }\n"
      "  if (i < len(c)) c[i] = s + u; }\n",
      squares);
}

/* --- ends of rows ------------------------------------------------------------------------*/

static const size_case rows[] = {
    {1, 40, {1, 9}},    {2, 40, {1, 9}},    {7, 100, {1, 4}},
    {31, 310, {1, 3}},  {34, 340, {1, 3}},  {65, 650, {2, 3}},
    {130, 910, {3, 2}}, {130, 900, {3, 2}}, {200, 150, {4, 1}},
};

TEST(visible_effects_at_row_ends_happen_once) {
  CHECK_ROWS(
      "kernel k workgroup(64, 4)\n"
      "buffer x : read f32[] @0;\nbuffer y : read_write f32[] @1;\n"
      "uniform w : u32 @2;\n"
      "{ let i = global_id.x; let j = global_id.y;\n"
      "  if (i > 0 && i + 1 < w) { let at = j * w + i;\n"
      "    y[at] = 2.0 * y[at] + x[at - 1] + x[at + 1]; } }\n",
      rows);
}

TEST(row_ends_run_as_full_vectors) {
  CHECK_ROWS(
      "kernel k workgroup(64, 4)\n"
      "buffer x : read f32[] @0;\nbuffer y : read_write f32[] @1;\n"
      "uniform w : u32 @2;\n"
      "{ let i = global_id.x; let j = global_id.y;\n"
      "  if (i > 2 && i + 3 < w && j > 0) { let at = j * w + i;\n"
      "    y[at] = x[at - 3] + x[at + 3] + x[at - w]; } }\n",
      rows);
}

TEST(code_that_depends_on_vector_starts_stays_right) {
  CHECK_ROWS(
      "kernel k workgroup(64, 2)\n"
      "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
      "uniform w : u32 @2;\n"
      "{ let i = global_id.x; let j = global_id.y;\n"
      "  if (i > 0 && i < w) { let at = j * w + i;\n"
      "    y[at] = x[i / 8] + (i & 3) * 100 + x[i >> 2]; } }\n",
      rows);
}

TEST(invocation_counts_are_not_doubled) {
  CHECK_ROWS(
      "kernel k workgroup(64, 2)\n"
      "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
      "uniform w : u32 @2;\n"
      "{ let i = global_id.x;\n"
      "  if (i > 0 && i < w) { atomic_add(y[i % 7], x[i]); } }\n",
      rows);
}

/* --- checks of a loop -----------------------------------------------------------------------*/

TEST(a_neighbourhood_beyond_the_edge_is_zero) {
  CHECK_ROWS(
      "kernel k workgroup(32, 4)\n"
      "buffer x : read f32[] @0;\nbuffer f : read f32[] @1;\n"
      "buffer y : read_write f32[] @2;\nuniform w : u32 @3;\n"
      "{ let i = global_id.x; let j = global_id.y;\n"
      "  if (i < w) { var s = 0.0;\n"
      "    for (let v = 0u; v < 3; v++) { for (let u = 0u; u < 3; u++) {\n"
      "      s += x[(j + v - 1) * w + i + u - 1] * f[v * 3 + u]; } }\n"
      "    y[j * w + i] = s; } }\n",
      rows);
}

TEST(a_strided_loop_ends_in_its_last_iteration) {
  CHECK_ROWS(
      "kernel k workgroup(32, 2)\n"
      "buffer x : read f32[] @0;\nbuffer y : read_write f32[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ let i = global_id.x; let j = global_id.y; var s = 0.0;\n"
      "  for (let k = 0u; k < n; k += 4) {\n"
      "    s += x[j * n + k] + x[j * n + k + 1] * x[k + 2 + i] +\n"
      "         x[k + 3]; }\n"
      "  y[j * 128 + i] = s; }\n",
      rows);
}

/* The distance may be below the workgroup's size, or wrap. */
TEST(a_loop_over_the_grid_ends_where_its_counter_wraps) {
  static const size_case distances[] = {
      {0, 300, {5, 1}},          {100, 3000, {5, 1}},
      {0x7FFFFFFF, 300, {5, 1}}, {0x80000000, 300, {5, 1}},
      {0xFFFFFFC0, 300, {5, 1}}, {0xFFFFFFFF, 300, {5, 1}},
      {64, 3001, {5, 1}},        {63, 2999, {5, 1}},
  };
  CHECK_ROWS(
      "kernel k workgroup(64) over(y)\n"
      "buffer x : read u32[] @0;\n"
      "buffer y : write u32[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ var s = 0u; var i = global_id.x; var rounds = 0u;\n"
      "  while (i < len(x)) {\n"
      "    s = s * 3 + x[i];\n"
      "    if (i + 5 < n) s += x[i + 5];\n"
      "    i += select(n == 0, grid_size.x * 64, max(n, 16));\n"
      "  }\n"
      "  y[global_id.x] = s; }\n",
      distances);
}

TEST(edges_outside_a_buffer_are_zero) {
  static const size_case starts[] = {
      {0, 300, {5, 1}},          {0, 20, {2, 1}},
      {285, 300, {5, 1}},        {250, 300, {5, 1}},
      {0x7FFFFFF0, 300, {5, 1}}, {0x7FFFFFFF, 300, {5, 1}},
      {0xFFFFFFE8, 300, {5, 1}}, {0xFFFFFFFF, 300, {5, 1}},
  };
  CHECK_ROWS(edges, starts);
}

TEST(sums_up_and_down_a_tree_are_right) {
  CHECK_ROWS(up_and_down, squares);
}

TEST(indices_that_wrap_are_not_taken_for_small_ones) {
  static const size_case wraps[] = {
      {0x80000000u, 100, {2, 1}}, {0x40000000u, 100, {2, 1}},
      {0xFFFFFFFFu, 100, {2, 1}}, {0x00010000u, 100, {2, 1}},
      {3, 100, {2, 1}},
  };
  CHECK_ROWS(
      "kernel k workgroup(32, 2)\n"
      "buffer x : read f32[] @0;\nbuffer y : read_write f32[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ let i = global_id.x; let j = global_id.y; var s = 0.0;\n"
      "  for (let k = 0u; k < 8; k++) {\n"
      "    s += x[k * n + i] + x[(k - 4) * n + i] + x[k + n]; }\n"
      "  for (let k = 2u; k < 5; k += 2) {\n"
      "    s += x[i + k - 4] + x[k * 0x80000000 + i]; }\n"
      "  y[j * 128 + i] = s; }\n",
      wraps);
}

/* --- elements apart ------------------------------------------------------------------------*/

static const size_case lines[] = {
    {1, 1, {1, 1}},     {3, 40, {1, 1}},   {7, 130, {2, 1}},
    {64, 257, {4, 1}},  {99, 512, {9, 1}}, {130, 1000, {16, 1}},
    {200, 199, {8, 1}},
};

TEST(strided_elements_are_loaded_together) {
  CHECK_ROWS(
      "kernel k workgroup(64)\n"
      "buffer x : read f32[] @0;\nbuffer y : read_write f32[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ let i = global_id.x;\n"
      "  if (i < len(y)) {\n"
      "    var s = x[2 * i] + x[3 * i + 1] * 2.0 + x[8 * i + 7] * 3.0;\n"
      "    s += x[len(x) - 1 - i] * 4.0 + x[n - 3 * i] * 5.0;\n"
      "    s += x[2 * i - 9] * 6.0;\n"
      "    if (i % 3 == 1) s += x[4 * i + n];\n"
      "    y[i] = s; } }\n",
      lines);
}

TEST(strided_bytes_are_loaded_together) {
  CHECK_ROWS(
      "kernel k workgroup(64)\n"
      "buffer x : read u8[] @0;\nbuffer y : read_write u32[] @1;\n"
      "buffer z : read_write u8[] @2;\nuniform n : u32 @3;\n"
      "{ let i = global_id.x;\n"
      "  if (i < len(y)) {\n"
      "    y[i] = u32(x[3 * i]) * 65536 + u32(x[3 * i + 1]) * 256 +\n"
      "           u32(x[3 * i + 2]); }\n"
      "  if (i < n) z[i] = x[len(x) - 1 - 2 * i]; }\n",
      lines);
}

TEST(strided_shared_elements_are_right) {
  CHECK_ROWS(
      "kernel k workgroup(64)\n"
      "buffer x : read f32[] @0;\nbuffer y : read_write f32[] @1;\n"
      "uniform n : u32 @2;\nshared t : f32[64];\n"
      "{ let l = local_id.x; let i = global_id.x; t[l] = x[i];\n"
      "  barrier();\n"
      "  var s = t[63 - l];\n"
      "  if (l < 32) s += t[2 * l] + 3.0 * t[2 * l + 1];\n"
      "  if (l < n) s += 5.0 * t[3 * l];\n"
      "  if (i < len(y)) y[i] = s; }\n",
      lines);
}

TEST(elements_at_large_strides_are_right) {
  CHECK_ROWS(
      "kernel k workgroup(32)\n"
      "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
      "buffer z : read_write u8[] @2;\nuniform n : u32 @3;\n"
      "{ let i = global_id.x;\n"
      "  if (i < len(y)) {\n"
      "    var s = x[20 * i] + x[len(x) - 1 - 11 * i] * 3;\n"
      "    if (i % 3 == 1) s += x[9 * i + n] * 5;\n"
      "    s += x[0xfffffff0 + 16 * i] * 7;\n"
      "    y[i] = s; }\n"
      "  z[13 * i] = i; }\n",
      lines);
}

TEST(shared_elements_at_large_strides_are_right) {
  CHECK_ROWS(
      "kernel k workgroup(32)\n"
      "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
      "uniform n : u32 @2;\nshared t : u32[700];\nshared u : u32[300];\n"
      "{ let l = local_id.x; let i = global_id.x;\n"
      "  t[20 * l + 7] = x[i]; barrier(); t[640 - 19 * l] = i; barrier();\n"
      "  for (let k = 0u; k < 6; k++) {\n"
      "    if (l < 3 * k + 2) u[l + 33 * k + 1] = t[20 * l + k] * 3 + n;\n"
      "    barrier();\n"
      "    if (l > k) u[l + 33 * k] += t[650 - 17 * l - k];\n"
      "    barrier(); }\n"
      "  let v = t[l * 21] + u[l] * 3 + u[(31 - l) * 9 + 5];\n"
      "  if (i < len(y)) y[i] = v; }\n",
      lines);
}

TEST(tiles_in_another_layout_are_right) {
  CHECK_ROWS(columns, rows);
  CHECK_ROWS(wavefront, lines);
}

/* --- networks -----------------------------------------------------------------------------*/

#define NETWORK_HEAD                                                  \
  "kernel k workgroup(64)\n"                                          \
  "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"      \
  "uniform n : u32 @2;\nshared s : u32[256];\nshared v : f32[256];\n" \
  "{ let t = local_id.x; let g = workgroup_id.x;\n"                   \
  "  for (let k = t; k < 256; k += 64) {\n"                           \
  "    s[k] = x[g * 64 + k] * 7 + k; v[k] = f32(k ^ n); }\n"
#define NETWORK_TAIL                        \
  "  barrier();\n"                          \
  "  for (let k = t; k < 256; k += 64) {\n" \
  "    let i = g * 256 + k;\n"              \
  "    if (i < len(y)) y[i] = s[k] * 3 + u32(v[k]); } }\n"

/* Distances of one power of two after the other, up and down. */
TEST(a_sorting_network_sorts) {
  CHECK_ROWS(NETWORK_HEAD
             "  var size = 2u;\n"
             "  while (size <= 128) {\n"
             "    var d = size / 2; let up = (t & (size / 2)) == 0;\n"
             "    while (d > 0) { barrier();\n"
             "      let a = 2 * t - (t & (d - 1)); let b = a + d;\n"
             "      if ((s[a] > s[b]) == up) {\n"
             "        let m = s[a]; s[a] = s[b]; s[b] = m;\n"
             "        let w = v[a]; v[a] = v[b]; v[b] = w; }\n"
             "      d /= 2; }\n"
             "    size *= 2; }\n" NETWORK_TAIL,
             lines);
}

/* Any distance, by division; ids that differ in one bit; parts of a row. */
TEST(distances_other_than_powers_of_two_work) {
  CHECK_ROWS(NETWORK_HEAD
             "  var d = n % 100 + 1;\n"
             "  while (d > 0) { barrier();\n"
             "    let a = (t / d * (2 * d) + t % d) & 255;\n"
             "    let b = (a + d) & 255;\n"
             "    if (s[a] > s[b]) { let m = s[a]; s[a] = s[b]; s[b] = m; }\n"
             "    v[a] = v[a] + v[b];\n"
             "    d = d / 2; }\n"
             "  d = 32;\n"
             "  while (d > 0) { barrier();\n"
             "    let o = (t ^ d) & 63;\n"
             "    if (o > t) { let m = s[t]; s[t] = s[o] + 1; s[o] = m; }\n"
             "    if (t < n) v[t + 192] = v[o] * 0.5;\n"
             "    d /= 2; }\n" NETWORK_TAIL,
             lines);
}

/* Lanes at known distances, some of them inactive, up to the last element. */
TEST(patterned_shared_elements_are_stored_alone) {
  CHECK_ROWS(
      NETWORK_HEAD
      "  barrier();\n"
      "  s[4 * t + 3] = s[4 * t] + s[4 * t + 1];\n"
      "  v[2 * t - (t & 1)] = 1.5; barrier();\n"
      "  if (t % 3 == n % 3) { s[2 * t + 128] += 5;\n"
      "    v[(2 * t + 1) ^ 2] = v[2 * t] + 0.5; }\n"
      "  barrier();\n"
      "  if (t < n && t > 2) s[4 * t + 3] = s[252 - 4 * t];\n"
      "  if (t >= 60) v[4 * t + 3 - 2 * (t & 1)] = 0.25;\n"
      "  barrier();\n"
      "  if ((n >> (t & 7)) % 2 == 1) s[t / 8 * 9 + t % 8] = t;\n" NETWORK_TAIL,
      lines);
}

/* Indices that are computed before a barrier, with a factor of four. */
TEST(butterflies_of_four_are_right) {
  CHECK_ROWS(NETWORK_HEAD
             "  var d = 64u;\n"
             "  while (d > 0) {\n"
             "    let low = t & (d - 1); let a = (t - low) * 4 + low;\n"
             "    let b = a + d; let kept = s[t];\n"
             "    barrier();\n"
             "    let p = s[a]; let q = s[b]; let r = s[b + d];\n"
             "    s[a] = p + q * 3; s[b] = p - r; s[b + d] = q ^ r;\n"
             "    v[t] = v[t] + f32((kept + low) & 255);\n"
             "    d >>= 2; }\n" NETWORK_TAIL,
             lines);
}

/* Without a loop: a stride that is a uniform, and a row-major index. */
TEST(indices_taken_apart_by_a_uniform_are_right) {
  CHECK_ROWS(
      "kernel k workgroup(64)\n"
      "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ let d = 1u << (n & 7); let t = global_id.x;\n"
      "  let low = t & (d - 1); let a = (t - low) * 2 + low;\n"
      "  if (a < len(y)) y[a] = x[a] * 3 + x[a + d] + t; }\n",
      lines);
  CHECK_ROWS(
      "kernel k workgroup(64)\n"
      "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ let w = n / 4 * 4 + 4; let at = global_id.x;\n"
      "  let column = at % w; let row = at / w;\n"
      "  if (at < len(y)) y[at] = x[row * w + column] * 3 +\n"
      "    x[column * 2 + row] + x[(row + 1) * w + column]; }\n",
      lines);
}

/* Neighbours around the ends of a row, for any width, 0 and very large ones. */
TEST(periodic_neighbours_are_right) {
  CHECK_ROWS(
      "kernel k workgroup(64)\n"
      "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ let i = global_id.x; let w = n; if (i < w) {\n"
      "  y[i] = x[(i + 1) % w] + x[(i + w - 1) % w] * 3 +\n"
      "    x[(i - 2 + w) % w] * 5 + (i + 3) % w; } }\n",
      lines);
  CHECK_ROWS(
      "kernel k workgroup(64)\n"
      "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ let i = global_id.x; let w = 0u - n; if (i < w) {\n"
      "  if (i < len(y)) y[i] = (i + w - 1) % w + (i + w + 5) % w * 3 +\n"
      "    (i - 4 + w) % w * 5 + (i + 3) % w; } }\n",
      lines);
}

/* A processor does not forward a store to a load that overlaps it in part:
 * lanes at the sides of a tile are stored without loading the others. */
TEST(sides_of_a_tile_are_stored_alone) {
  CHECK_ROWS(
      "kernel k workgroup(32)\n"
      "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
      "uniform n : u32 @2;\nshared s : u32[34];\n"
      "{ let t = local_id.x; let i = global_id.x;\n"
      "  s[t + 1] = x[i] * 3;\n"
      "  if (t == 0) s[t] = x[i + 1] + 1;\n"
      "  if (t >= 31) s[t + 2] = x[i] + 2;\n"
      "  if (t < n % 9) s[t] = x[i + 2] + 3;\n"
      "  barrier();\n"
      "  if (i < len(y)) y[i] = s[t] + s[t + 1] * 5 + s[t + 2] * 7; }\n",
      lines);
}

/* --- sums ---------------------------------------------------------------------------------*/

TEST(split_accumulators_equal_one_loop) {
  CHECK_ROWS(
      "kernel k workgroup(32, 2)\n"
      "buffer x : read f32[] @0;\nbuffer y : read_write f32[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ let i = global_id.x; let j = global_id.y;\n"
      "  var a = 0.0; var b = 1.0; var c = 2.0; var d = 3.0;\n"
      "  var e = 4.0; var f = 5.0; var g = 6.0; var h = 7.0;\n"
      "  var o = 8.0; var p = 9.0; var q = 10.0; var r = 11.0;\n"
      "  for (let k = 0u; k < n; k++) { let v = x[k + i];\n"
      "    a += v; b = fma(v, v, b); c = c * 0.5 + v; d = max(d, v);\n"
      "    e -= v; f += x[k] * v; g += v * x[k + j]; h = min(h, v);\n"
      "    o += v * 2.0; p -= v * v; q = v - q; r += x[k] * v; }\n"
      "  y[j * 128 + i] = a + 2.0 * b + 3.0 * c + 4.0 * d + 5.0 * e +\n"
      "    6.0 * f + 7.0 * g + 8.0 * h + 9.0 * o + 10.0 * p +\n"
      "    11.0 * q + 12.0 * r; }\n",
      rows);
}

TEST(sums_that_depend_on_each_other_stay_together) {
  CHECK_ROWS(
      "kernel k workgroup(32, 2)\n"
      "buffer x : read f32[] @0;\nbuffer y : read_write f32[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ let i = global_id.x; let j = global_id.y;\n"
      "  var a = 0.0; var b = 1.0; var c = 2.0; var d = 3.0;\n"
      "  var e = 4.0; var f = 5.0; var g = 6.0; var h = 7.0;\n"
      "  for (let k = 0u; k < n; k++) { let v = x[k + i];\n"
      "    a += v; b = fma(v, 0.25, b); c = c * 0.5 + v; d += 0.1 * a;\n"
      "    e -= v; f += x[k] * v; g += v * x[k + j]; h = 0.5 * h + 0.01 * a; "
      "}\n"
      "  y[j * 128 + i] = a + 2.0 * b + 3.0 * c + 4.0 * d + 5.0 * e +\n"
      "    6.0 * f + 7.0 * g + 8.0 * h; }\n",
      rows);
}

/* --- one of two neighbours ----------------------------------------------------------------*/

TEST(a_neighbour_or_the_element_itself) {
  CHECK_ROWS("kernel k workgroup(16, 4)\n" PRODUCT_HEAD
             "  if (x >= n || y >= n) return;\n"
             "  let i = y * n + x;\n"
             "  let up = a[select(y == 0, i, i - n)];\n"
             "  let down = a[select(y == n - 1, i, i + n)];\n"
             "  let left = a[select(x == 0, i, i - 1)];\n"
             "  let right = a[select(x < n - 1, i + 1, i)];\n"
             "  let far = b[select(x > 2, i - 3, i + 3)];\n"
             "  c[i] = up + down * 2.0 + left * 4.0 + right * 8.0 + far; }\n",
             squares);
}

TEST(the_border_has_separate_code) {
  CHECK_ROWS("kernel k workgroup(16, 4)\n" PRODUCT_HEAD
             "  let i = y * n + x;\n"
             "  if (x > 0 && x < n - 1 && y > 0 && y < n - 1) {\n"
             "    c[i] = a[i - 1] + a[i + 1] + a[i - n] * b[i + n];\n"
             "  } else if (x < n && y < n) {\n"
             "    c[i] = a[y * n + (x + n - 1) % n] - b[i];\n"
             "  }\n"
             "  if (x == 0 && y < n) c[i] += b[y]; }\n",
             squares);
}

/* --- ifs that depend on data -----------------------------------------------------------*/

static const size_case some_lines[] = {
    {0, 1, {1, 1}},   {1, 31, {1, 1}},    {3, 64, {2, 1}},
    {9, 100, {2, 1}}, {2, 1000, {17, 1}}, {5, 1000, {15, 1}},
};

TEST(lanes_that_skip_an_if_store_nothing) {
  CHECK_ROWS(
      "kernel k workgroup(64)\n"
      "buffer a : read i32[] @0;\nbuffer b : read i32[] @1;\n"
      "buffer c : read_write i32[] @2;\nbuffer d : read_write i32[] @3;\n"
      "uniform n : u32 @4;\n"
      "{ let i = global_id.x;\n"
      "  let v = a[i] + c[i];\n"
      "  if (v < b[i]) c[i] = v;\n"
      "  if ((v & 3) == 1) { if ((v & 4) == 0) d[i + n] = a[i + n]; } }\n",
      some_lines);
}

TEST(loads_for_no_lane_stay_inside) {
  CHECK_ROWS(
      "kernel k workgroup(64)\n"
      "buffer a : read u8[] @0;\nbuffer c : write u32[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ let i = global_id.x; let v = a[i];\n"
      "  c[i] = u32(v == 3 || (v % 4 == n && a[i + n] > 7 && a[i - n] < 99)); "
      "}\n",
      some_lines);
}

/* --- division ----------------------------------------------------------------*/

static const size_case divisors[] = {
    {1, 300, {5, 1}},          {3, 300, {5, 1}},
    {7, 300, {5, 1}},          {641, 300, {5, 1}},
    {65535, 300, {5, 1}},      {65537, 300, {5, 1}},
    {0x7fffffff, 300, {5, 1}}, {0x80000000, 300, {5, 1}},
    {0x80000001, 300, {5, 1}}, {0xffffffff, 300, {5, 1}},
    {0, 300, {5, 1}},
};

/* Multiples of the divisor and their neighbours are the hard cases. */
TEST(quotients_are_exact) {
  CHECK_ROWS(
      "kernel k workgroup(64)\n"
      "buffer a : read u32[] @0;\nbuffer q : write u32[] @1;\n"
      "buffer r : write u32[] @2;\nbuffer s : write i32[] @3;\n"
      "uniform n : u32 @4;\n"
      "{ let i = global_id.x; let v = a[i];\n"
      "  let top = 0xffffffffu / n * n - (v & 1) + (v >> 1 & 1);\n"
      "  let d = v >> (i & 31);\n"
      "  let most = 0xffffffffu / d * d - (v >> 8 & 1);\n"
      "  q[i] = top / n + most / d * 3 + (v >> (i & 15)) / n;\n"
      "  r[i] = top % n ^ most % d << 1 ^ v % n;\n"
      "  if ((v & 2) == 0) { let e = i32(d) - 5; s[i] = i32(v) / e + i32(top) "
      "% "
      "e + i32(v) / i32(n); } }\n",
      divisors);
}

/* --- guards in loops, elements of a row ----------------------------------------*/

TEST(taps_beyond_the_ends_of_a_row_are_skipped) {
  CHECK_ROWS("kernel k workgroup(16, 4)\n" PRODUCT_HEAD
             "  if (x >= n || y >= n) return;\n"
             "  var sum = 0.0;\n"
             "  for (let j = -3; j <= 3; j++) {\n"
             "    let at = i32(x) + j;\n"
             "    if (at >= 0 && at < i32(n)) sum += b[3 - j] * a[y * n + "
             "u32(at)];\n"
             "    let row = y + u32(j);\n"
             "    if (row < n) sum = sum * 0.5 + a[row * n + x];\n"
             "    if (!(x + u32(j) >= n)) sum += b[x + u32(j)];\n"
             "  }\n"
             "  c[y * n + x] = sum; }\n",
             squares);
}

/* The bound of a signed guard may be negative, and x may be near 2^31. */
TEST(taps_compare_as_signed_numbers) {
  static const size_case far[] = {
      {0x7ffffff0, 100, {2, 1}}, {0x80000000, 100, {2, 1}},
      {0xfffffff8, 100, {2, 1}}, {0xffffffff, 100, {2, 1}},
      {40, 100, {2, 1}},         {0, 100, {2, 1}},
  };
  CHECK_ROWS(
      "kernel k workgroup(64)\n"
      "buffer a : read u32[] @0;\nbuffer c : write u32[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ let i = global_id.x; var sum = 0u;\n"
      "  for (let k = 0u; k < 5; k++) {\n"
      "    let at = i + n + k;\n"
      "    if (i32(at) < 50) sum += a[i + k] * 3;\n"
      "    if (i32(at) >= i32(n)) sum ^= a[i] << k;\n"
      "    if (at > 60) sum += a[k] + 1;\n"
      "    if (at <= n + 70) sum = sum * 5 + a[at]; }\n"
      "  c[i] = sum; }\n",
      far);
}

TEST(an_element_of_a_row_is_loaded_once) {
  CHECK_ROWS("kernel k workgroup(16, 4)\n" PRODUCT_HEAD
             "  if (x >= n || y >= n) return;\n"
             "  let f = c[y * (n + 1) + n];\n"
             "  if (a[x] > b[y]) c[y * (n + 1) + x] -= f * a[x];\n"
             "  c[y * (n + 1) + x] += f; }\n",
             squares);
}

/* Blocks reach past the end of a row, and not past that of the buffer. */
TEST(rows_that_lanes_walk_are_loaded_in_blocks) {
  static const size_case walks[] = {
      {50, 6400, {2, 1}},  {16, 2048, {2, 1}}, {7, 900, {2, 1}},
      {33, 3000, {2, 1}},  {1, 128, {2, 1}},   {0, 128, {2, 1}},
      {100, 5000, {2, 1}}, {12, 11, {2, 1}},
  };
  CHECK_ROWS(walk, walks);
  CHECK_ROWS(
      "kernel k workgroup(32, 2)\n"
      "buffer a : read f32[] @0;\nbuffer y : write f32[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ let i = global_id.x * 2 + global_id.y; let row = i * n;\n"
      "  var s = 0.0; let m = min(n, 40);\n"
      "  for (let k = 3u; k < m; k++) {\n"
      "    s = s * 0.5 + a[row + min(k + 2, m - 1)];\n"
      "    if (k % 5 == i % 7) continue;\n"
      "    s -= a[row + max(k, 4) - 4];\n"
      "    for (let l = 2u; l < k; l += 2) { s += a[row + l + k - i]; }\n"
      "    if (s > 60.0) break; }\n"
      "  y[i] = s; }\n",
      walks);
}

/* Fields in any order, some of them missing, and read again. */
TEST(fields_of_structures_are_right) {
  static const size_case structures[] = {
      {64, 384, {2, 1}}, {0, 300, {2, 1}}, {90, 511, {2, 1}},
      {5, 1, {1, 1}},    {1, 640, {2, 1}}, {0xffffffff, 1000, {2, 1}},
  };
  CHECK_ROWS(fields, structures);
  CHECK_ROWS(
      "kernel k workgroup(64)\n"
      "buffer p : read f32[] @0;\nbuffer v : read_write f32[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ let i = global_id.x; let x = p[i * 5 + 4]; let y = p[i * 5];\n"
      "  v[i * 5 + 3] = x + y; v[i * 5 + 1] = p[i * 5 + 1] * 2.0;\n"
      "  v[i * 5 + 4] += v[i * 5 + 2]; v[i * 5 + 3] = x * v[i * 5 + 3];\n"
      "  if (i < n) { v[i * 5] = x; v[i * 5 + 2] = y;\n"
      "    if (x > y) { v[i * 5 + 4] = 1.0; v[i * 5 + 1] = y; } } }\n",
      structures);
  CHECK_ROWS(
      "kernel k workgroup(64)\n"
      "buffer p : read u8[] @0;\nbuffer v : write u8[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ let i = global_id.x + n; let x = p[i * 3 + 2]; \n"
      "  v[i * 3 + 2] = p[i * 3] + p[i * 3 + 1];\n"
      "  v[i * 3] = x; v[i * 3 + 1] = x * 3; }\n",
      structures);
  CHECK_ROWS(
      "kernel k workgroup(32, 2)\n"
      "buffer p : read u64[] @0;\nbuffer v : read_write u64[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ let i = global_id.y * (n & 7) + global_id.x;\n"
      "  v[(i - 2) * 2] = p[i * 2 + 1]; v[(i - 2) * 2 + 1] = p[i * 2]; "
      "}\n",
      structures);
}

/* Guards of the number of an invocation end the loop over rows. */
TEST(rows_after_the_last_one_with_work_are_skipped) {
  static const size_case limits[] = {
      {0, 300, {2, 1}},          {1, 300, {2, 1}},          {15, 300, {2, 1}},
      {16, 300, {2, 1}},         {17, 300, {2, 1}},         {100, 300, {2, 1}},
      {127, 300, {2, 1}},        {128, 300, {2, 1}},        {129, 300, {2, 1}},
      {0x80000000, 300, {2, 1}}, {0xffffffff, 300, {2, 1}},
  };
  CHECK_ROWS(
      "kernel k workgroup(16, 8)\n"
      "buffer a : read u32[] @0;\nbuffer c : read_write u32[] @1;\n"
      "uniform n : u32 @2;\nshared t : u32[256];\n"
      "{ let i = local_id.y * 16 + local_id.x;\n"
      "  t[i] = a[workgroup_id.x * 128 + i]; t[i + 128] = i; barrier();\n"
      "  if (i < n) t[i] += t[i + 128] * 3;\n"
      "  barrier();\n"
      "  if (i == n) t[i + 128] = 77;\n"
      "  barrier();\n"
      "  if (!(n <= i)) t[i + 128] += t[i];\n"
      "  barrier();\n"
      "  var active = 128u;\n"
      "  while (active > 0) {\n"
      "    if (i < active) t[i] = t[i] * 5 + t[i + active];\n"
      "    barrier(); active /= 2; }\n"
      "  var rest = n & 255;\n"
      "  while (rest > 0) {\n"
      "    if (i < rest) t[i + 128] ^= t[i] + rest;\n"
      "    barrier(); rest /= 3; }\n"
      "  c[workgroup_id.x * 128 + i] = t[i] ^ t[i + 128]; }\n",
      limits);
}

/* Peeled iterations do not ask whether the counter wraps: a test before them
 * does. Indices below 0 are outside. */
TEST(a_loop_ends_before_its_counter_wraps) {
  static const size_case ends[] = {
      {0, 300, {3, 1}},          {39, 300, {3, 1}},
      {100, 300, {3, 1}},        {300, 300, {3, 1}},
      {310, 17, {3, 1}},         {0x7fffffef, 300, {3, 1}},
      {0x7ffffff0, 300, {3, 1}}, {0x7ffffff1, 300, {3, 1}},
      {0x7fffffff, 300, {3, 1}}, {0x80000000, 300, {3, 1}},
      {0xffffffef, 300, {3, 1}}, {0xfffffff0, 300, {3, 1}},
      {0xfffffff1, 300, {3, 1}}, {0xffffffff, 300, {3, 1}},
  };
  CHECK_ROWS(
      "kernel k workgroup(32)\n"
      "buffer a : read u32[] @0;\nbuffer c : read_write u32[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ let t = local_id.x; var s = 1u; let end = i32(n);\n"
      "  let first = end - 70 - i32(workgroup_id.x); let low = n - 70;\n"
      "  for (let j = first + i32(t); j < end; j += 16)\n"
      "    s = s * 3 + a[j] + a[u32(j - first)];\n"
      "  for (let j = low + t; j < n; j += 16) s = s * 5 + a[j - low] + a[j];\n"
      "  c[global_id.x] = s; }\n",
      ends);
}

/* A value of one lane goes to an element that all lanes share. */
TEST(one_lane_stores_to_a_shared_element) {
  static const size_case lanes[] = {
      {0, 300, {3, 1}}, {5, 300, {3, 1}}, {31, 300, {3, 1}}, {40, 2, {3, 1}}};
  CHECK_ROWS(
      "kernel k workgroup(48)\n"
      "buffer a : read u32[] @0;\nbuffer c : read_write u32[] @1;\n"
      "buffer d : read_write u8[] @2;\nuniform n : u32 @3;\n"
      "{ let t = local_id.x; let g = workgroup_id.x;\n"
      "  if (a[t] % 48 == n % 48) { if (t == n % 48) c[g] = a[t] * 7 + t; }\n"
      "  if (t == n % 48) c[g + 3] = a[t] * 3 + t;\n"
      "  if (t == 17) d[g] = a[t] + n; }\n",
      lanes);
}

TEST_MAIN(TEST_ENTRY(jammed_rows_compute_a_product),
          TEST_ENTRY(rows_of_different_lengths_run_separately),
          TEST_ENTRY(a_loop_that_ends_by_its_row_is_not_shared),
          TEST_ENTRY(rows_keep_their_own_variables_across_barriers),
          TEST_ENTRY(visible_effects_at_row_ends_happen_once),
          TEST_ENTRY(row_ends_run_as_full_vectors),
          TEST_ENTRY(code_that_depends_on_vector_starts_stays_right),
          TEST_ENTRY(invocation_counts_are_not_doubled),
          TEST_ENTRY(a_neighbourhood_beyond_the_edge_is_zero),
          TEST_ENTRY(a_strided_loop_ends_in_its_last_iteration),
          TEST_ENTRY(a_loop_over_the_grid_ends_where_its_counter_wraps),
          TEST_ENTRY(edges_outside_a_buffer_are_zero),
          TEST_ENTRY(sums_up_and_down_a_tree_are_right),
          TEST_ENTRY(indices_that_wrap_are_not_taken_for_small_ones),
          TEST_ENTRY(strided_elements_are_loaded_together),
          TEST_ENTRY(strided_bytes_are_loaded_together),
          TEST_ENTRY(strided_shared_elements_are_right),
          TEST_ENTRY(elements_at_large_strides_are_right),
          TEST_ENTRY(shared_elements_at_large_strides_are_right),
          TEST_ENTRY(tiles_in_another_layout_are_right),

          TEST_ENTRY(a_sorting_network_sorts),
          TEST_ENTRY(butterflies_of_four_are_right),
          TEST_ENTRY(indices_taken_apart_by_a_uniform_are_right),
          TEST_ENTRY(periodic_neighbours_are_right),
          TEST_ENTRY(sides_of_a_tile_are_stored_alone),
          TEST_ENTRY(distances_other_than_powers_of_two_work),
          TEST_ENTRY(patterned_shared_elements_are_stored_alone),
          TEST_ENTRY(split_accumulators_equal_one_loop),
          TEST_ENTRY(sums_that_depend_on_each_other_stay_together),
          TEST_ENTRY(a_neighbour_or_the_element_itself),
          TEST_ENTRY(the_border_has_separate_code),
          TEST_ENTRY(lanes_that_skip_an_if_store_nothing),
          TEST_ENTRY(loads_for_no_lane_stay_inside),
          TEST_ENTRY(quotients_are_exact),
          TEST_ENTRY(taps_beyond_the_ends_of_a_row_are_skipped),
          TEST_ENTRY(taps_compare_as_signed_numbers),
          TEST_ENTRY(an_element_of_a_row_is_loaded_once),
          TEST_ENTRY(fields_of_structures_are_right),
          TEST_ENTRY(rows_that_lanes_walk_are_loaded_in_blocks),
          TEST_ENTRY(rows_after_the_last_one_with_work_are_skipped),
          TEST_ENTRY(a_loop_ends_before_its_counter_wraps),
          TEST_ENTRY(one_lane_stores_to_a_shared_element))
