/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compares lowered programs with device ref, byte for byte: every example and
 * random programs, on targets with all features or with almost none. Variables:
 * testing/random_programs.h, and
 *
 *   VYRE_TEST_TARGET=x   only the target of that name */
#include "ir/ir.h"
#include "lir/lir.h"
#include "lower/build.h"
#include "support/sanitized.h"
#include "testing/random_programs.h"

enum { SEEDS = SANITIZED ? 60 : 300 };

/* --- targets -------------------------------------------------------------- */

enum {
  MUL = 1,
  U32 = 2,
  FIXED = 4,
  SOFT = 8,
  BITS = 16,
  NO_U64 = 32,
  NO_NARROW = 64,
  NO_F64 = 128,
  NO_ATOMICS64 = 256,
};

typedef struct named_target {
  const char *name;
  unsigned lacks;
} named_target;

static const named_target targets[] = {
    {"native", 0},
    {"mul", MUL},
    {"u32", U32},
    {"fixed", FIXED | MUL},
    {"soft", SOFT | U32},
    {"bits", BITS | SOFT | U32},
    {"no_u64", NO_U64 | U32 | NO_F64},
    {"no_narrow", NO_NARROW},
    {"words", NO_U64 | NO_NARROW | U32 | NO_F64},
    {"fixed_words", FIXED | NO_NARROW | MUL},
    {"soft_words", SOFT | NO_U64 | NO_NARROW | U32 | NO_F64},
    {"no_u64_f64", NO_U64},
    {"no_atomics64", NO_ATOMICS64},
    {"least", BITS | SOFT | U32 | NO_U64 | NO_NARROW | NO_F64},
};
enum { TARGETS = sizeof targets / sizeof targets[0] };

static vyre__target target_of(unsigned lacks) {
  vyre__target t = {.math = lacks & U32   ? VYRE__MATH_U32
                            : lacks & MUL ? VYRE__MATH_F64_NOFMA
                                          : VYRE__MATH_F64,
                    .no_f64 = (lacks & NO_F64) != 0,
                    .no_u64 = (lacks & NO_U64) != 0,
                    .no_buffer_atomics64 = (lacks & NO_ATOMICS64) != 0,
                    .no_shared_atomics64 = (lacks & NO_ATOMICS64) != 0,
                    .no_narrow = (lacks & NO_NARROW) != 0,
                    .f32_as_bits = (lacks & BITS) != 0};
  if (!(lacks & (FIXED | SOFT))) return t;
  uint8_t form =
      lacks & SOFT ? VYRE__FLOAT_MODE_SOFT : VYRE__FLOAT_MODE_CORRECTED;
  for (unsigned op = VYRE__LIR_FADD; op <= VYRE__LIR_FLE; op++)
    t.f32[op] = form;
  for (unsigned op = VYRE__LIR_U_TO_F; op <= VYRE__LIR_F_TO_S; op++) {
    t.f32[op] = form;
  }
  return t;
}

/* Checks that no operation remains that the target lacks. */
static const char *check_target(const vyre__lir_kernel *k,
                                const vyre__target *t) {
  if (!k) return "nothing";
  for (uint32_t i = 0; t->no_narrow && i < k->buffer_count; i++) {
    if (k->buffers[i].width < 4) return "a buffer of less than 4 bytes";
  }
  for (uint32_t i = 0; t->no_u64 && i < k->buffer_count; i++) {
    if (k->buffers[i].width > 4) return "a buffer of more than 4 bytes";
  }
  for (uint32_t i = 1; i < k->count; i++) {
    unsigned type = k->code[i].type, op = k->code[i].op;
    if (i >= k->host.begin && i < k->host.end) continue;
    if (t->no_u64 && type == VYRE_TYPE_U64) return "a u64";
    if (t->no_buffer_atomics64 && type == VYRE_TYPE_U64 &&
        (vyre__lir_ops[op].flags & VYRE__LIRF_ATOMICS)) {
      return "a 64-bit atomic";
    }
    if (t->no_f64 && type == VYRE_TYPE_F64) return "an f64";
    if (t->no_f64 && t->f32_as_bits && type == VYRE_TYPE_F32) return "an f32";
    if (type == VYRE_TYPE_F32 && t->f32[op] == VYRE__FLOAT_MODE_SOFT) {
      return vyre__lir_ops[op].text;
    }
  }
  return NULL;
}

/* --- jobs ----------------------------------------------------------------- */

static unsigned runs, refused;
static uint64_t steps_allowed = UINT64_C(1000000000);

/* Writes the LIR to VYRE_TEST_KEEP. */
static void keep_lir(const vyre__lir_kernel *k, const named_target *named) {
  char suffix[64];
  snprintf(suffix, sizeof suffix, "%s.lir", named->name);
  FILE *file = k ? test_keep(suffix) : NULL;
  if (!file) return;
  CHECK(vyre__lir_print(k, (vyre_writer){test_write, file}));
  CHECK(fclose(file) == 0);
}

/* Lowers for the target, runs and compares. Prints the difference and returns
 * false if there is one. */
static bool job_agrees(const job *j, const named_target *named) {
  vyre__target target = target_of(named->lacks);
  memcpy(target.workgroup, j->workgroup, sizeof target.workgroup);
  vyre_status st = {0};
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  const vyre__lir_kernel *k = NULL;
  vyre_code code = vyre__lower(j->program, &target, VYRE__PASS_LEGALIZE_CONTROL,
                               &arena, &k, NULL, &st);
  bool good = code == VYRE_OK;
  if (code == VYRE_UNSUPPORTED_FEATURE) {
    refused++;
    vyre_arena_deinit(&arena);
    return true;
  }
  keep_lir(k, named);
  if (good && check_target(k, &target)) {
    printf("    the target lacks: %s\n", check_target(k, &target));
    good = false;
  }
  vyre__lir_binding buffers[MAX_BUFFERS] = {{0}};
  bind_all(j, NULL, buffers);
  if (good) {
    vyre__lir_launch launch = {.buffers = buffers,
                               .grid = {j->grid[0], j->grid[1], j->grid[2]},
                               .fuel = UINT32_MAX,
                               .poison = j->poison,
                               .max_instructions = steps_allowed};
    code = vyre__lir_interpret(k, &launch, (vyre_allocator){0}, &st);
    good = code == VYRE_OK && same_buffers(j, buffers);
    runs++;
  }
  if (code != VYRE_OK) printf("    %s\n", st.message);
  unbind_all(buffers);
  vyre_arena_deinit(&arena);
  return good;
}
static unsigned check_targets(job *j, void *self) {
  const char *only = test_setting("TARGET");
  unsigned failed = 0;
  (void)self;
  for (size_t i = 0; i < TARGETS; i++) {
    if (only && strcmp(only, targets[i].name) != 0) continue;
    set_variant("target %s", targets[i].name);
    failed += count_failure(job_agrees(j, &targets[i]));
  }
  return failed;
}

/* --- examples ------------------------------------------------------------- */

/* Fills a buffer with edge cases: bits of floats and integers. */
static void put_edges(job *j, size_t index) {
  static const uint32_t edges[] = {
      0,          1,          2,          3,          0x7FFFFF,   0x800000,
      0x800001,   0xFFFFFF,   0x1000000,  0x33000000, 0x33800001, 0x387FC000,
      0x38800000, 0x3EFFFFFF, 0x3F000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001,
      0x3FC00000, 0x40200000, 0x40490FDB, 0x477FE000, 0x477FF000, 0x4AFFFFFF,
      0x4B000000, 0x4B000001, 0x4B7FFFFF, 0x4EFFFFFF, 0x4F000000, 0x4F7FFFFF,
      0x4F800000, 0x5EFFFFFF, 0x5F000000, 0x5F7FFFFF, 0x5F800000, 0x7EFFFFFF,
      0x7F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x80000000,
      0x80000001, 0x807FFFFF, 0x80800000, 0xBF000000, 0xBF800000, 0xC0200000,
      0xCF000000, 0xCF000001, 0xDF000000, 0xFF7FFFFF, 0xFF800000, 0xFFFFFFFF};
  CHECK(index < j->input_count);
  j->inputs[index] = vyre_input_bytes(edges, sizeof edges);
}
static unsigned check_data(vyre_program *program, const char *name,
                           uint64_t seed, const uint32_t *workgroup) {
  static const uint8_t poisons[] = {0xA5, 0, 0xFF};
  vyre_arena arena;
  bool all_pairs = strstr(name, "floats") || strstr(name, "integers");
  size_t max = all_pairs ? 54 * 54 * 21 : 200; /* elements of buffers without a
                                                 * fixed length */
  job j = {.name = name, .program = program, .poison = poisons[seed % 3]};
  vyre_arena_init(&arena, (vyre_allocator){0});
  const vyre_binding_plan plan = job_of_kernel(&j, max, seed, &arena);
  for (size_t i = 0; i < plan.binding_count; i++) {
    const vyre_binding *b = &plan.bindings[i];
    if (strcmp(b->name, "edges") == 0) {
      put_edges(&j, b->input_index);
    }
  }
  if (workgroup) memcpy(j.workgroup, workgroup, sizeof j.workgroup);
  if (all_pairs) j.grid[0] = (54 * 54 + 15) / 16; /* pairs of edge cases */
  run_ref(&j);
  unsigned failed = check_targets(&j, NULL);
  job_deinit(&j);
  vyre_arena_deinit(&arena);
  return failed;
}
static unsigned check_example(vyre_program *program, const char *name,
                              void *self) {
  (void)self;
  return check_data(program, name, 12345, NULL);
}
TEST(examples_do_the_same) {
  CHECK_U64(each_example(check_example, NULL), 0);
}

/* --- kernels -------------------------------------------------------------- */

/* Features that random programs rarely use. Buffers called `edges` hold the
 * bits of floats at interesting boundaries. */
static const char *const kernels[] = {
    /* break and continue in a grid loop, and return */
    "kernel leaves workgroup(4)\n"
    "buffer out : read_write u32[64] @0;\nuniform n : u32[8] @1;\n"
    "{ let i = global_id.x; var sum = i;\n"
    "  for (let k = 0u; k < 4 + n[0] % 4; k++) {\n"
    "    if (i < 64) { out[i] = sum + k; }\n"
    "    grid_barrier();\n"
    "    if (k == 1) { continue; }\n"
    "    sum = sum * 3 + out[(i + 1) % 64];\n"
    "    if (n[1] % 2 == 0 && k == 3) { sum += 100; break; }\n"
    "    grid_barrier();\n"
    "    sum += k; }\n"
    "  if (n[2] % 2 == 0) { return; }\n"
    "  grid_barrier(); out[i] = sum; }\n",
    /* the same with the opposite conditions */
    "kernel leaves_more workgroup(4)\n"
    "buffer out : read_write u32[64] @0;\nuniform n : u32[8] @1;\n"
    "{ let i = global_id.x; var sum = i; let kept = f32(i) * 0.5;\n"
    "  if (n[3] > 1000) { return; }\n"
    "  for (let k = 3; k >= -2; k -= 2) {\n"
    "    for (let m = 0; m <= k; m++) {\n"
    "      out[i] = sum + u32(m);\n"
    "      grid_barrier();\n"
    "      sum = sum * 3 + out[i ^ 1];\n"
    "      if (m == 1) { break; }\n"
    "      grid_barrier(); }\n"
    "    grid_barrier();\n"
    "    sum += u32(kept); }\n"
    "  out[i] = sum + u32(kept * 4.0); }\n",
    /* only some invocations exit; shared memory is zero again */
    "kernel some_leave workgroup(8)\n"
    "buffer out : read_write u32[64] @0;\nshared tile : u32[8];\n"
    "shared small : u8[13];\n"
    "{ let i = global_id.x; let l = local_id.x;\n"
    "  out[i] = tile[l] + small[l]; tile[l] = i; small[l] = i;\n"
    "  barrier(); out[i] += tile[7 - l] + small[7 - l];\n"
    "  grid_barrier();\n"
    "  out[i] += tile[l] * 1000 + small[12 - l] * 1000; tile[l] = out[i ^ 9];\n"
    "  barrier(); out[i] += tile[7 - l]; if (i % 3 == 1) return;\n"
    "  out[i] *= 7; }\n",
    /* written before it is read, but only in the first phase */
    "kernel zero_again workgroup(8)\n"
    "buffer out : read_write u32[64] @0;\nshared tile : u32[8];\n"
    "{ let i = global_id.x; let l = local_id.x; tile[l] = i + 1;\n"
    "  barrier(); out[i] = tile[7 - l]; grid_barrier();\n"
    "  out[i] = out[i] * 100 + tile[l]; }\n",
    /* shared memory that outlives an iteration of a host loop, of every size */
    "kernel lives_on workgroup(4, 2)\n"
    "buffer out : read_write u32[64] @0;\nuniform n : u32[8] @1;\n"
    "shared a : u32[8];\nshared b : u8[13];\nshared c : u64[3];\n"
    "shared d : f32[200];\nshared e : bf16[5];\n"
    "{ let i = global_id.y * 8 + global_id.x; \n"
    "  let l = local_id.y * 4 + local_id.x;\n"
    "  a[l] = i + 1; b[l] = i * 3; d[l * 25 + 3] = f32(i) + 0.5;\n"
    "  barrier();\n"
    "  for (let k = 0u; k < 1 + n[0] % 3; k++) {\n"
    "    out[i] = out[i] * 31 + a[7 - l] + b[(l + 5) % 13] + u32(e[l % 5])\n"
    "      + u32(d[(l + 1) % 8 * 25 + 3] * 2.0) + u32(c[l % 3] >> 3u);\n"
    "    grid_barrier();\n"
    "    out[i] += a[l] * 3 + u32(c[l % 3]) + u32(d[l * 25 + 3]);\n"
    "    barrier(); atomic_add(c[l % 3], u64(i) << 35u | 8ul);\n"
    "    a[l] = k + i; b[12 - l] = k + i; d[l * 25 + 3] = f32(k) * 1.5;\n"
    "    if (l < 5) { e[l] = f32(l + k) * 0.25; }\n"
    "    barrier(); }\n"
    "  out[i] = out[i] * 31 + a[7 - l] + b[12 - l] + u32(e[l % 5] * 4.0)\n"
    "    + u32(d[(l + 7) % 8 * 25 + 3]) + u32(c[l % 3] >> 35u); }\n",
    /* a loop that may have no iteration, directly before a barrier */
    "kernel lives_not_on workgroup(4)\n"
    "buffer out : read_write u32[64] @0;\nuniform n : u32[8] @1;\n"
    "shared s : u32[4];\n"
    "{ let i = global_id.x; let l = local_id.x; s[l] = 7;\n"
    "  for (let k = 0u; k < n[0] % 2; k++) { grid_barrier(); s[l] = s[l] + 9; "
    "}\n"
    "  grid_barrier(); out[i] += s[l] * 100 + 1; s[l] = i;\n"
    "  for (let k = 0u; k < n[1] % 2; k++) {\n"
    "    out[i] += s[l]; grid_barrier(); out[i] += s[l] * 50; }\n"
    "  out[i] = out[i] * 3 + s[l]; }\n",
    "kernel lives_in_nests workgroup(4)\n"
    "buffer out : read_write u32[64] @0;\nuniform n : u32[8] @1;\n"
    "shared s : u32[9];\nshared t : u32[4];\n"
    "{ let i = global_id.x; let l = local_id.x;\n"
    "  for (let j = 0u; j < 2 + n[0] % 2; j++) {\n"
    "    s[l] += j + 1; t[l] = i;\n"
    "    for (let k = 0u; k < n[1] % 3; k++) {\n"
    "      s[l + 4] = s[l] * 2 + t[l]; grid_barrier();\n"
    "      s[l] += out[(i + 5) % 64]; grid_barrier(); out[i] += k + t[l]; }\n"
    "    out[i] += s[l] * 3 + s[l + 4]; }\n"
    "  out[i] = out[i] * 5 + s[l]; }\n",
    /* return in the last segment of a host loop */
    "kernel leaves_in_loop workgroup(8)\n"
    "buffer out : read_write u32[64] @0;\n"
    "{ let i = global_id.x;\n"
    "  for (let k = 0u; k < 3; k++) { out[i] = out[i] + 1; grid_barrier();\n"
    "    if (k == 0) return; } }\n",
    /* bounds that the host reads after all invocations have exited */
    "kernel leaves_before_bounds workgroup(4)\n"
    "buffer out : read_write u32[64] @0;\nuniform n : u32[8] @1;\n"
    "uniform m : u64[3] @2;\nuniform b : u8[5] @3;\n"
    "{ let i = global_id.x;\n"
    "  for (let j = 0u; j < 900; j += 2) {\n"
    "    if (j >= 3) { break; }\n"
    "    for (let k = 0ul; k < m[j] % 3ul; k++) { grid_barrier(); out[i] += j; "
    "}\n"
    "    for (let k = b[j] % 3; k > 0; k--) { grid_barrier(); out[i] *= 3; } "
    "}\n"
    "  let far = 1000 + n[0];\n"
    "  if (far >= 8) { return; }\n"
    "  for (let k = 0u; k < n[far]; k++) { grid_barrier(); out[i] += k; } }\n",
    /* 64-bit host loops: across 2^32, to the limits of their types, nested */
    "kernel wide_grid_loops workgroup(4)\n"
    "buffer out : read_write u64[16] @0;\nuniform n : u32[8] @1;\n"
    "uniform m : u64[3] @2;\n"
    "{ let i = global_id.x; let few = u64(n[0] % 4);\n"
    "  for (let k = 4294967294ul; k < 4294967296ul + few; k++) {\n"
    "    out[i] = out[i] * 3 + k; grid_barrier();\n"
    "    for (let j = 2l - i64(few); j > -4l; j--) {\n"
    "      out[(i + 1) % 16] ^= as_u64(j) + k; grid_barrier();\n"
    "      if (j == -1) { continue; } out[i] += 5; } }\n"
    "  for (let k = m[1] >> 40u; k < 99999999999ul; k += 33333333333ul) {\n"
    "    if (k > 66666666666ul) { break; }\n"
    "    out[i] = out[i] * 7 + k / 3; grid_barrier(); }\n"
    "  for (let k = 18446744073709551610ul; k <= 18446744073709551615ul;\n"
    "    k += 4ul) { out[i] += k; grid_barrier(); }\n"
    "  for (let k = -9223372036854775806l; k >= -9223372036854775808l;\n"
    "    k -= 2l) { out[i] ^= as_u64(k); grid_barrier(); } }\n",
    /* 64-bit sums by many invocations, with carries, in and out of bounds */
    "kernel sums_of_64_bits workgroup(32)\n"
    "buffer x : read u32[] @0;\nbuffer sums : read_write u64[5] @1;\n"
    "buffer signed : read_write i64[3] @2;\nbuffer out : read_write u64[256] "
    "@3;\n"
    "shared s : u64[3];\nshared t : i64[2];\n"
    "{ let i = global_id.x; let l = local_id.x;\n"
    "  let v = (u64(x[i % 50]) << (i % 40)) + 4294967295ul;\n"
    "  atomic_add(sums[i % 5], v); atomic_add(sums[i % 7], 1);\n"
    "  atomic_add(sums[i], 18446744073709551615ul);\n"
    "  atomic_add(signed[i % 3], i64(x[i % 50]) - 3000000000l);\n"
    "  atomic_add(signed[1], 0l);\n"
    "  atomic_add(s[l % 3], v * 3); atomic_add(t[l & 1], -1l);\n"
    "  barrier();\n"
    "  out[i] = s[l % 3] + as_u64(t[l & 1]) * 17;\n"
    "  grid_barrier();\n"
    "  out[i] ^= sums[i % 5] + as_u64(signed[i % 3]); }\n",
    /* infinite bounds of floats */
    "kernel infinite_bounds workgroup(8)\n"
    "buffer x : read i32[] @0;\nbuffer out : write u32[64] @1;\n"
    "{ let i = global_id.x; let k = x[i] - 3;\n"
    "  out[i] = u32(min(select(i != 70, f32(k), inf + f32(k)), 5.0)) * 8\n"
    "    + u32(max(select(i != 70, f32(k), f32(k) - inf), -5.0)); }\n",
    /* loops to the limits of their types */
    "kernel edges_of_loops workgroup(4)\n"
    "buffer out : write u64[32] @0;\n"
    "{ let i = global_id.x; var n = 0u; var sum = 0ul;\n"
    "  for (let k = 4294967290u; k <= 4294967295u; k += 1) "
    "{ n++; sum += u64(k); }\n"
    "  for (let k = 5u; k >= 0u; k -= 2) { n++; sum ^= u64(k) << n; }\n"
    "  for (let k = -2147483646i; k >= -2147483648i; k--) "
    "{ n++; sum += as_u64(i64(k)); }\n"
    "  for (let k = 9223372036854775800l; k <= 9223372036854775807l; k += 3l) "
    "{ n++; sum ^= as_u64(k); }\n"
    "  for (let k = 18446744073709551610ul; k < 18446744073709551615ul; "
    "k += 4ul) { n++; sum += k * 3ul; }\n"
    "  out[i] = sum + u64(n); }\n",
    /* while, with continue and break, next to variables */
    "kernel whiles workgroup(16)\n"
    "buffer x : read u32[] @0;\nbuffer out : write u32[64] @1;\n"
    "{ let i = global_id.x; var n = 0u; var a = x[i]; var b = 1u;\n"
    "  while (a != 1 && n < 300) { n++; let before = b; b = a;\n"
    "    if (a % 2 == 0) { a /= 2; if (a % 5 == 0) continue; b += before; }\n"
    "    else { a = a * 3 + 1; if (a > 5000) break; }\n"
    "    a ^= before & 1 & n; }\n"
    "  out[i] = n * 65536 + b; }\n",
    /* every element type, adjacent narrow elements, in and out of bounds */
    "kernel elements workgroup(8)\n"
    "buffer a : read_write u8[37] @0;\nbuffer b : read_write i8[37] @1;\n"
    "buffer c : read_write u16[37] @2;\nbuffer d : read_write i16[37] @3;\n"
    "buffer e : read_write bool[37] @4;\nbuffer f : read_write f16[37] @5;\n"
    "buffer g : read_write bf16[37] @6;\nbuffer h : read_write bytes[] @7;\n"
    "buffer edges : read u32[] @8;\n"
    "{ let i = i32(global_id.x) - 3; let v = as_f32(edges[i + 3]);\n"
    "  a[i] = a[i] * 3 + edges[i]; b[i] = b[i] * 3 - i;\n"
    "  c[i] = c[i] * 777 + edges[i]; d[i] = d[i] * 777 - i;\n"
    "  e[i] = !e[i]; f[i] = v; g[i] = v; h[i] = h[i] + 255;\n"
    "  if (i % 2 == 0) { f[i] = f[i] * v + 1.0; g[i] = g[i] / 3.0 + v; } }\n",
    /* uniform() */
    "kernel uniforms workgroup(4, 2, 3)\n"
    "buffer x : read u32[] @0;\nbuffer out : write u32[96] @1;\n"
    "{ let i = global_id.x + 8 * (global_id.y + 4 * global_id.z);\n"
    "  let n = uniform(x[i] % 7); let w = uniform(f32(i) + 0.5);\n"
    "  let d = uniform(u64(i) << 33u); let q = uniform(i > 3);\n"
    "  var sum = 0u; for (let k = 0u; k < n; k++) { sum += k * uniform(i + k); "
    "}\n"
    "  out[i] = sum + u32(w * 2.0) + u32(d >> 31u) + u32(q); }\n",
    /* every float operation, on every pair */
    "kernel floats workgroup(16)\n"
    "buffer edges : read u32[] @0;\nbuffer out : write f32[] @1;\n"
    "buffer bits : write u32[] @2;\n"
    "{ let i = global_id.x; let a = as_f32(edges[i % 54]); \n"
    "  let b = as_f32(edges[i / 54]); let c = as_f32(edges[i * 7 % 54]);\n"
    "  let p = i * 21;\n"
    "  out[p] = a + b; out[p + 1] = a - b; out[p + 2] = a * b;\n"
    "  out[p + 3] = a / b; out[p + 4] = fma(a, b, c); out[p + 5] = sqrt(a);\n"
    "  out[p + 6] = min(a, b); out[p + 7] = max(a, b); out[p + 8] = abs(a);\n"
    "  out[p + 9] = -a; out[p + 10] = floor(a); out[p + 11] = ceil(a);\n"
    "  out[p + 12] = trunc(a); out[p + 13] = round(a); out[p + 14] = rint(a);\n"
    "  out[p + 15] = sign(a); out[p + 16] = f32(edges[i % 54]);\n"
    "  out[p + 17] = f32(as_i32(edges[i % 54]));\n"
    "  out[p + 18] = f32(u64(edges[i % 54]) * 4294967299ul);\n"
    "  out[p + 19] = f32(as_i64(u64(edges[i % 54]) * 4294967299ul));\n"
    "  out[p + 20] = fma(a, b, -(a * b));\n"
    "  bits[i] = u32(a) ^ as_u32(i32(a)) * 3 ^ u32(u64(a) >> 32u) * 5 ^\n"
    "    u32(as_u64(i64(a)) >> 29u) * 7 ^ u32(a < b) * 11 ^ u32(a <= b) * 13 "
    "^\n"
    "    u32(a == b) * 17 ^ u32(a != b) * 19 ^ u32(a > b) * 23 ^\n"
    "    u32(a >= b) * 29 ^ u32(bool(a)) * 31 ^ u32(u64(a)); }\n",
    /* every integer operation */
    "kernel integers workgroup(16)\n"
    "buffer edges : read u32[] @0;\nbuffer out : write u32[] @1;\n"
    "buffer wide : write u64[] @2;\n"
    "{ let i = global_id.x; let a = edges[i % 54]; let b = edges[i / 54];\n"
    "  let s = as_i32(a); let t = as_i32(b);\n"
    "  let aa = u64(a) << 32u | u64(b); let bb = u64(b) * u64(a * 3);\n"
    "  let ss = as_i64(aa); let tt = as_i64(bb);\n"
    "  out[i * 9] = a / b; out[i * 9 + 1] = a % b; \n"
    "  out[i * 9 + 2] = as_u32(s / t); out[i * 9 + 3] = as_u32(s % t);\n"
    "  out[i * 9 + 4] = a << b ^ a >> b; out[i * 9 + 5] = as_u32(s >> b);\n"
    "  out[i * 9 + 6] = clz(a) + 64 * ctz(a) + 4096 * popcount(a);\n"
    "  out[i * 9 + 7] = min(a, b) * 3 ^ as_u32(max(s, t));\n"
    "  out[i * 9 + 8] = u32(a < b) + 2 * u32(s < t) + 4 * u32(aa < bb) +\n"
    "    8 * u32(ss < tt) + 16 * u32(ss <= tt) + 32 * u32(aa == bb);\n"
    "  wide[i * 9] = aa / bb; wide[i * 9 + 1] = aa % bb;\n"
    "  wide[i * 9 + 2] = as_u64(ss / tt); wide[i * 9 + 3] = as_u64(ss % tt);\n"
    "  wide[i * 9 + 4] = aa << b ^ aa >> b; wide[i * 9 + 5] = as_u64(ss >> "
    "b);\n"
    "  wide[i * 9 + 6] = clz(aa) + 128ul * ctz(bb) + popcount(aa) * 9999ul;\n"
    "  wide[i * 9 + 7] = min(aa, bb) * 3ul ^ as_u64(max(ss, tt));\n"
    "  wide[i * 9 + 8] = aa * bb - as_u64(abs(ss)) + as_u64(sign(tt)); }\n",
    /* every function of several operations */
    "kernel functions workgroup(16)\n"
    "buffer edges : read u32[] @0;\nbuffer out : write u32[] @1;\n"
    "buffer wide : write u64[] @2;\n"
    "{ let i = global_id.x; let a = edges[i % 54]; let b = edges[i / 54];\n"
    "  let s = as_i32(a); let t = as_i32(b);\n"
    "  let aa = u64(a) << 32u | u64(b); let bb = u64(b) * u64(a * 3);\n"
    "  let ss = as_i64(aa); let tt = as_i64(bb);\n"
    "  out[i * 9] = reverse(a) ^ rotate(a, b);\n"
    "  out[i * 9 + 1] = extract(a, b % 40, i % 35);\n"
    "  out[i * 9 + 2] = as_u32(extract(s, i % 33, b % 33));\n"
    "  out[i * 9 + 3] = insert(a, b, i % 37, b % 40);\n"
    "  out[i * 9 + 4] = mul_high(a, b) ^ as_u32(mul_high(s, t));\n"
    "  out[i * 9 + 5] = add_sat(a, b) ^ as_u32(add_sat(s, t));\n"
    "  out[i * 9 + 6] = sub_sat(a, b) ^ as_u32(sub_sat(s, t));\n"
    "  out[i * 9 + 7] = dot4_u8(a, b); out[i * 9 + 8] = as_u32(dot4_i8(a, "
    "b));\n"
    "  wide[i * 9] = reverse(aa) ^ rotate(bb, a); \n"
    "  wide[i * 9 + 1] = extract(aa, b % 70, i % 67);\n"
    "  wide[i * 9 + 2] = as_u64(extract(ss, i % 65, b % 65));\n"
    "  wide[i * 9 + 3] = insert(aa, bb, i % 67, b % 70);\n"
    "  wide[i * 9 + 4] = mul_high(aa, bb); wide[i * 9 + 5] = "
    "as_u64(mul_high(ss, tt));\n"
    "  wide[i * 9 + 6] = add_sat(aa, bb) ^ as_u64(add_sat(ss, tt));\n"
    "  wide[i * 9 + 7] = sub_sat(aa, bb) ^ as_u64(sub_sat(ss, tt));\n"
    "  wide[i * 9 + 8] = u64(as_u32(mix(as_f32(a), as_f32(b), 0.25)) ^\n"
    "    as_u32(smoothstep(1.0, as_f32(a), as_f32(b))) ^ "
    "as_u32(fract(as_f32(a))) ^\n"
    "    as_u32(clamp(as_f32(a), 0.5, as_f32(b))) ^ "
    "as_u32(saturate(as_f32(b))) ^\n"
    "    as_u32(step(as_f32(a), as_f32(b)))); }\n",
    /* rows and columns; the interpreter reports accesses out of bounds */
    "kernel plates workgroup(4, 4)\n"
    "buffer x : read u32[] @0;\nbuffer out : read_write u32[] @1;\n"
    "uniform n : u32[8] @2;\nbuffer sums : read_write u32[2] @3;\n"
    "{ let w = n[0] % 40; let h = min(len(x), len(out)) / w;\n"
    "  let px = global_id.x + n[1] % 34; let py = global_id.y + n[2] % 30;\n"
    "  if (px < w && py < h) {\n"
    "    let left = max(px, 1) - 1; let right = min(px + 1, w - 1);\n"
    "    let above = max(py, 1) - 1; let below = min(py + 1, h - 1);\n"
    "    out[py * w + px] = x[py * w + left] + x[py * w + right] +\n"
    "      x[above * w + px] + x[below * w + px]; }\n"
    "  let q = n[3]; let column = global_id.x + n[4];\n"
    "  if (len(x) / q >= q && py < q && column < q)\n"
    "    atomic_xor(sums[0], x[py * q + global_id.x + n[4]]);\n"
    "  if (u64(w) * u64(n[5]) <= u64(len(x)) && px < w && py < n[5])\n"
    "    atomic_add(sums[1], x[py * w + px]); }\n",
    /* offsets, distances and halves of a length */
    "kernel places workgroup(32)\n"
    "buffer x : read u32[] @0;\nbuffer out : write u32[] @1;\n"
    "uniform n : u32[8] @2;\nshared part : u32[32];\n"
    "{ let l = local_id.x; let i = global_id.x + n[0] % 200; var sum = 0u;\n"
    "  let m = n[1] % 9; part[l] = i;\n"
    "  if (i < len(x) && m <= len(x) - i)\n"
    "    for (let k = 0u; k < m; k++) { sum += x[i + k]; }\n"
    "  barrier(); var half = 16u;\n"
    "  while (half > 0) { if (l < half) part[l] += part[l + half];\n"
    "    barrier(); half /= 2; }\n"
    "  var d = 1u; while (d < 32) { if (l >= d) sum += part[l - d]; d *= 2; }\n"
    "  var k = i; while (k * 3 + 2 < len(x) && k < 9000) {\n"
    "    sum += x[k * 3 + 2]; k += 1 + n[2] % 7; }\n"
    "  if (len(x) > 0) sum += x[sum % len(x)] + x[len(x) - 1];\n"
    "  if (i / 3 < len(x) / 4) sum += x[i / 3 * 4 + 3];\n"
    "  let s = i32(l) - as_i32(n[3] % 40); if (s >= 0) sum += part[s];\n"
    "  if (i < len(out)) out[len(out) - 1 - i] = sum; }\n",
};

static vyre_program *parse_one(const char *text, vyre_module **module) {
  *module = parse_module(text);
  return vyre_module_kernel(*module, 0);
}
TEST(kernels_do_the_same) {
  unsigned failed = 0;
  for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
    vyre_module *module = NULL;
    vyre_program *program = parse_one(kernels[i], &module);
    for (uint64_t seed = 1; seed <= 4; seed++) {
      failed += check_data(program, vyre_program_name(program), seed, NULL);
    }
    vyre_module_release(module);
  }
  CHECK_U64(failed, 0);
}

/* Another workgroup size than the program's: proofs for the program's size do
 * not hold. */
TEST(other_workgroups_do_the_same) {
  static const char text[] =
      "kernel other workgroup(8)\n"
      "buffer out : write u32[64] @0;\nshared tile : u32[8];\n"
      "{ let l = local_id.x; let i = global_id.x; tile[l] = i + 1; barrier();\n"
      "  out[i] = tile[7 - l % 8] * 100 + tile[l] + workgroup_size.x * 10000 "
      "+\n"
      "    uniform(i) * 1000000; }\n";
  static const uint32_t sizes[][3] = {
      {1, 1, 1}, {4, 1, 1}, {8, 1, 1}, {16, 1, 1}, {64, 1, 1}};
  vyre_module *module = NULL;
  vyre_program *program = parse_one(text, &module);
  unsigned failed = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    failed += check_data(program, "other", i, sizes[i]);
  }
  vyre_module_release(module);
  CHECK_U64(failed, 0);
}

/* --- passes --------------------------------------------------------------- */

static bool count_out(void *self, const char *text, size_t length) {
  (void)text;
  *(size_t *)self += length;
  return true;
}

/* Each pass leaves a kernel that verifies and prints. */
static unsigned check_passes(job *j, void *self) {
  (void)self;
  for (size_t i = 0; i < TARGETS; i++) {
    vyre__target target = target_of(targets[i].lacks);
    for (int pass = VYRE__PASS_INLINE; pass < VYRE__PASS_COUNT; pass++) {
      const vyre__lir_kernel *k = NULL;
      vyre_program *inlined = NULL;
      vyre_status st = {0};
      vyre_arena arena;
      size_t length = 0;
      set_variant("target %s, pass %d", targets[i].name, pass);
      vyre_arena_init(&arena, (vyre_allocator){0});
      vyre_code code = vyre__lower(j->program, &target, (vyre__pass)pass,
                                   &arena, &k, &inlined, &st);
      if (code != VYRE_UNSUPPORTED_FEATURE) CHECK_OK(code, st);
      CHECK((k != NULL) == (code == VYRE_OK && pass != VYRE__PASS_INLINE));
      if (k) CHECK(vyre__lir_print(k, (vyre_writer){count_out, &length}));
      CHECK(!k || length > 100);
      vyre_program_release(inlined);
      vyre_arena_deinit(&arena);
    }
  }
  return 0;
}
TEST(every_pass_verifies) {
  const program_test test = {.check = check_passes, .skips_ref = true};
  for (uint64_t seed = 0; seed < SEEDS / 10; seed++) {
    vyre_random_program_options options = {
        .seed = seed, .has_math = true, .no_f64 = seed % 2 == 1};
    CHECK_U64(check_random_program(&test, options), 0);
  }
}
static unsigned sweep_lacks;

static vyre_code lower_with(vyre_allocator allocator, vyre_status *st) {
  static const char text[] =
      "kernel sweeps workgroup(8)\n"
      "buffer out : read_write u8[64] @0;\nshared tile : u64[8];\n"
      "{ let l = local_id.x; var sum = u64(l); tile[l] = sum; barrier();\n"
      "  for (let k = 0u; k < len(out); k++) { grid_barrier();\n"
      "    while (sum < 9ul) { sum += tile[7 - l] + u64(exp(f32(l))); } }\n"
      "  out[l] = u32(sum); }\n";
  vyre_module *module = NULL;
  vyre_arena arena;
  vyre__target target = target_of(sweep_lacks);
  const vyre__lir_kernel *k = NULL;
  vyre_arena_init(&arena, allocator);
  vyre_code code = vyre_module_parse(text, strlen(text), "k.vyre", allocator,
                                     &module, NULL, st);
  if (code == VYRE_OK) {
    code = vyre__lower(vyre_module_kernel(module, 0), &target,
                       VYRE__PASS_LEGALIZE_CONTROL, &arena, &k, NULL, st);
  }
  vyre_arena_deinit(&arena);
  vyre_module_release(module);
  return code;
}
TEST(no_memory) {
  static const unsigned lacks[] = {0, BITS | SOFT | U32 | NO_U64 | NO_NARROW};
  for (size_t i = 0; i < 2; i++) {
    vyre_status st = {0};
    sweep_lacks = lacks[i];
    CHECK_OK(lower_with((vyre_allocator){0}, &st),
             st); /* the libraries are loaded */
    CHECK(sweep_allocations(lower_with) > 20);
  }
}

/* --- fuel ----------------------------------------------------------------- */

/* Returns true if the kernel, whose only buffer is an output of one u32, ends
 * with this much fuel. */
static bool ends_on_ref(vyre_device *device, vyre_program *program,
                        uint64_t fuel) {
  uint32_t out = 0;
  vyre_output output = {&out, sizeof out};
  vyre_pipeline *pipeline = NULL;
  vyre_status st = {0};
  CHECK_OK(vyre_pipeline_compile(device, program, NULL, &pipeline, NULL, &st),
           st);
  vyre_dispatch_desc desc = {
      .outputs = &output, .output_count = 1, .max_loop_iterations = fuel};
  vyre_code code = vyre_dispatch(pipeline, &desc, &st);
  CHECK(code == VYRE_OK || st.kind == VYRE_KIND_OUT_OF_FUEL);
  vyre_pipeline_release(pipeline);
  return code == VYRE_OK;
}
static bool ends_lowered(vyre_program *program, uint32_t fuel) {
  uint32_t out = 0;
  vyre__lir_binding buffers[4] = {{&out, 1}};
  vyre__lir_launch launch = {.buffers = buffers,
                             .grid = {1, 1, 1},
                             .fuel = fuel,
                             .max_instructions = 1000000};
  const vyre__lir_kernel *k = NULL;
  vyre_status st = {0};
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  CHECK_OK(vyre__lower(program, NULL, VYRE__PASS_LEGALIZE_CONTROL, &arena, &k,
                       NULL, &st),
           st);
  vyre_code code = vyre__lir_interpret(k, &launch, (vyre_allocator){0}, &st);
  CHECK(code == VYRE_OK || st.kind == VYRE_KIND_OUT_OF_FUEL);
  vyre_arena_deinit(&arena);
  return code == VYRE_OK;
}
TEST(fuel_runs_out_at_the_same_iteration) {
  static const char *const texts[] = {
      "kernel a workgroup(4)\nbuffer out : write u32[1] @0;\n"
      "{ var n = 0u; while (n < 10 + local_id.x) { n++; } "
      "if (n == 13) { out[0] = n; } }\n",
      "kernel b workgroup(1)\nbuffer out : write u32[1] @0;\n"
      "{ var n = 0u; var m = 0u; while (n < 10) { for (let k = 0; k < 5; k++) "
      "{ if (n == 7) continue; m++; } n++; } out[0] = m; }\n",
      /* across a grid barrier */
      "kernel c workgroup(1)\nbuffer out : write u32[1] @0;\n"
      "{ var n = 0u; while (n < 6) { n++; } grid_barrier(); "
      "while (n < 11) { n += 1; if (n == 9) continue; } out[0] = n; }\n",
      "kernel d workgroup(1)\nbuffer out : write u32[1] @0;\n"
      "{ var n = 0u; while (true) { n++; if (n > 9) break; } out[0] = n; }\n",
      "kernel e workgroup(1)\nbuffer out : write u32[1] @0;\n"
      "{ var n = 1u; while (n < 9) { n *= 3; } for (let k = 0u; k < n; k++) "
      "{ if (k == 4) continue; out[0] = k; } }\n",
  };
  vyre_device *device = NULL;
  vyre_status st = {0};
  CHECK_OK(vyre_device_open(NULL, "ref", &device, &st), st);
  unsigned failed = 0;
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    vyre_module *module = NULL;
    vyre_program *program = parse_one(texts[i], &module);
    for (uint32_t fuel = 1; fuel < 80; fuel++) {
      bool ref = ends_on_ref(device, program, fuel);
      bool lowered = ends_lowered(program, fuel);
      if (ref == lowered) continue;
      printf("    kernel %s with fuel %u: ref %s\n", vyre_program_name(program),
             fuel,
             ref ? "ends, lowered does not" : "does not end, lowered does");
      failed++;
    }
    vyre_module_release(module);
  }
  vyre_device_release(device);
  CHECK_U64(failed, 0);
}

/* --- limits --------------------------------------------------------------- */

/* Lowers @p text for a target. Returns counts, and the access widths of the
 * first @p width_count buffers. Checks that nothing remains that the target
 * lacks. */
static vyre_code lower_widths(const char *text, const vyre__target *target,
                              vyre__lir_kernel *out, unsigned *widths,
                              size_t width_count, vyre_status *st) {
  vyre_module *module = NULL;
  const vyre__lir_kernel *k = NULL;
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  *st = (vyre_status){0};
  vyre_code code =
      vyre__lower(parse_one(text, &module), target, VYRE__PASS_LEGALIZE_CONTROL,
                  &arena, &k, NULL, st);
  CHECK((k != NULL) == (code == VYRE_OK));
  CHECK(!k || !target || check_target(k, target) == NULL);
  for (size_t i = 0; k && i < width_count; i++) {
    CHECK(i < k->buffer_count);
    widths[i] = k->buffers[i].width;
  }
  *out = k ? *k : (vyre__lir_kernel){0}; /* only its counts are valid */
  vyre_arena_deinit(&arena);
  vyre_module_release(module);
  return code;
}
static vyre_code lower_text(const char *text, const vyre__target *target,
                            vyre__lir_kernel *out, vyre_status *st) {
  return lower_widths(text, target, out, NULL, 0, st);
}

/* The author of a kernel cannot correct these errors. */
TEST(oversized_library_functions_are_defects) {
  const vyre__function functions[] = {{.parameter_count = 5},
                                      {.local_count = 100000}};
  for (size_t i = 0; i < 2; i++) {
    vyre_status st = {0};
    vyre__lir_writer lir = {.st = &st};
    CHECK_U64(vyre__build_call(&lir, NULL, &functions[i], NULL, 2), 0);
    CHECK_FAILS(lir.code_failed, st, VYRE_KERNEL_COMPILE_FAILED,
                VYRE_KIND_NONE);
    CHECK_HAS(st.message, i ? "100000 locals" : "5 parameters");
    CHECK_HAS(st.fix, "defect of vyre");
  }
}
TEST(reports_kernels_that_are_too_large) {
  static const char text[] =
      "kernel k workgroup(4)\nbuffer y : read_write u64[4] @0;\n"
      "{ let i = local_id.x; while (y[i] > 7) { y[i] = y[i] / 3; } }\n";
  static const char wide[] =
      "kernel k workgroup(1)\nbuffer y : read_write u64[%u] @0;\n"
      "{ y[0] = 1; }\n";
  vyre__lir_kernel k;
  vyre_status st;
  static const unsigned lacks[] = {0, NO_U64 | NO_F64 | U32};
  for (size_t i = 0; i < 2; i++) {
    vyre__target target = target_of(lacks[i]);
    vyre_code code = VYRE_UNSUPPORTED_FEATURE;
    uint32_t max = 1;
    for (; code != VYRE_OK && max < 100000; max++) {
      target.max_instructions = max;
      code = lower_text(text, &target, &k, &st);
      if (code == VYRE_OK) break;
      CHECK_FAILS(code, st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_OVER_BUDGET);
      CHECK_U64(st.numbers[0].value, max + 1);
      CHECK_U64(st.numbers[1].value, max);
      CHECK_HAS(st.message, "line 3: ");
      CHECK_HAS(st.fix, "several kernels");
    }
    CHECK(code == VYRE_OK && max + 1 >= k.count);
  }
  char large[160];
  vyre__target words = target_of(NO_U64 | NO_F64 | U32);
  snprintf(large, sizeof large, wide, 0x7FFFFFFFu);
  CHECK_OK(lower_text(large, &words, &k, &st), st);
  snprintf(large, sizeof large, wide, 0x80000000u);
  CHECK_OK(lower_text(large, NULL, &k, &st), st);
  CHECK_FAILS(lower_text(large, &words, &k, &st), st, VYRE_UNSUPPORTED_FEATURE,
              VYRE_KIND_OVER_BUDGET);
  CHECK_HAS(st.message, "'y' has 2147483648 elements");
}

/* An invocation that has exited cannot save its share. */
TEST(carried_shared_memory_needs_all_invocations) {
  static const char text[] =
      "kernel k workgroup(4)\nbuffer y : read_write u32[4] @0;\n"
      "shared s : u32[4];\n{ let l = local_id.x;\n"
      "  if (y[l] == 9) return;\n"
      "  for (let k = 0u; k < 3; k++) {\n"
      "    y[l] += s[l]; grid_barrier(); s[l] = k;%s } }\n";
  char kernel[512];
  vyre__lir_kernel k;
  vyre_status st;
  snprintf(kernel, sizeof kernel, text, "");
  CHECK_FAILS(lower_text(kernel, NULL, &k, &st), st, VYRE_UNSUPPORTED_FEATURE,
              VYRE_KIND_NOT_SUPPORTED);
  CHECK_HAS(st.message, "line 7: shared buffer 's' must outlive");
  CHECK_HAS(st.fix, "put grid_barrier() at the end of the loop's body");
  snprintf(kernel, sizeof kernel, text, " grid_barrier();");
  CHECK_OK(lower_text(kernel, NULL, &k, &st), st);
}

/* The host has 64-bit integers even if the device does not. */
TEST(grid_loops_of_64_bits_run_on_any_target) {
  static const char text[] =
      "kernel k workgroup(4)\nbuffer y : read_write u32[4] @0;\n"
      "{ for (let k = 0ul; k < 3; k++) {\n"
      "    y[local_id.x] += u32(k); grid_barrier(); } }\n";
  vyre__target words = target_of(NO_U64 | NO_F64 | U32);
  vyre__lir_kernel k;
  vyre_status st;
  CHECK_OK(lower_text(text, NULL, &k, &st), st);
  CHECK_OK(lower_text(text, &words, &k, &st), st);
  CHECK_U64(k.grid_loop_count, 1);
}

/* Of the 64-bit atomics that a target lacks, only adds with unused results can
 * be emulated. A buffer without atomics keeps its width. */
TEST(other_64_bit_atomics_are_rejected) {
  static const struct {
    const char *statement, *says; /* NULL: lowers without error */
  } rows[] = {
      {"atomic_add(y[0], 5);", NULL},
      {"atomic_add(i[0], -5); atomic_add(s[1], 5);", NULL},
      {"n[0] = atomic_add(n[1], 1);", NULL},
      {"y[0] = 1; atomic_add(y[1], y[2]);", NULL},
      {"y[0] = atomic_add(y[1], 5);", "here it is used"},
      {"if (atomic_add(s[0], 5) > 9) { n[0] = 1; }", "here it is used"},
      {"atomic_add(y[0], 5); atomic_max(y[1], 5);", "cannot run atomic_max()"},
      {"atomic_exchange(i[0], 5);", "cannot run atomic_exchange()"},
      {"atomic_min(i[0], 5);", "cannot run atomic_min()"},
      {"atomic_compare_exchange(s[0], 5, 6);",
       "cannot run atomic_compare_exchange()"},
  };
  static const unsigned lacks[] = {NO_ATOMICS64, NO_U64 | NO_F64 | U32};
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    for (int t = 0; t < 2; t++) {
      char text[512];
      vyre__target target = target_of(lacks[t]);
      vyre__lir_kernel k;
      vyre_status st;
      snprintf(text, sizeof text,
               "kernel k workgroup(4)\nbuffer y : read_write u64[4] @0;\n"
               "buffer i : read_write i64[4] @1;\n"
               "buffer n : read_write u32[4] @2;\n"
               "buffer z : read_write u64[4] @3;\nshared s : u64[4];\n"
               "{ z[1] = z[0]; %s }\n",
               rows[r].statement);
      CHECK_OK(lower_text(text, NULL, &k, &st), st);
      if (!rows[r].says) {
        unsigned widths[4] = {0};
        CHECK_OK(lower_widths(text, &target, &k, widths, 4, &st), st);
        CHECK_U64(widths[3], target.no_u64 ? 4 : 8);
        continue;
      }
      CHECK_FAILS(lower_text(text, &target, &k, &st), st,
                  VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
      CHECK_HAS(st.message, "line 7: the target has no 64-bit atomics");
      CHECK_HAS(st.message, rows[r].says);
      bool is_add = strstr(rows[r].says, "it is used") != NULL;
      CHECK((strstr(st.fix, "the result of atomic_add") != NULL) == is_add);
      CHECK_HAS(st.fix, "a device with 64-bit atomics");
    }
  }
}

/* A target may lack them in shared memory only. */
TEST(atomics_of_64_bits_are_checked_per_memory) {
  static const char text[] =
      "kernel k workgroup(4)\nbuffer y : read_write u64[4] @0;\n"
      "shared s : u64[4];\n"
      "{ y[0] = atomic_max(y[1], 5); atomic_add(s[0], 1); barrier();\n"
      "  y[2] = s[0]; }\n";
  vyre__target target = {.math = VYRE__MATH_F64, .no_shared_atomics64 = true};
  vyre__lir_kernel k;
  vyre_status st;
  unsigned widths[2] = {0};
  CHECK_OK(lower_widths(text, &target, &k, widths, 2, &st), st);
  CHECK_U64(widths[0], 8);
  CHECK_U64(widths[1], 4);
  target = (vyre__target){.math = VYRE__MATH_F64, .no_buffer_atomics64 = true};
  CHECK_FAILS(lower_text(text, &target, &k, &st), st, VYRE_UNSUPPORTED_FEATURE,
              VYRE_KIND_NOT_SUPPORTED);
}

/* Values of another phase are found and recomputed or spilled without deep
 * recursion. They are recomputed only if that is short; otherwise a long chain
 * would be copied for each of the @p barriers. */
static void check_chain(unsigned links, unsigned barriers) {
  static const char head[] =
      "kernel k workgroup(4) over(y)\nbuffer y : read_write u32[] @0;\n"
      "{ let v0 = global_id.x;\n";
  size_t space = sizeof head + 64 * ((size_t)links + barriers) + 64;
  size_t length = sizeof head - 1;
  char *text = malloc(space);
  vyre__lir_kernel k;
  vyre_status st;
  CHECK(text != NULL);
  memcpy(text, head, sizeof head);
  for (unsigned i = 1; i <= links; i++) {
    length +=
        (size_t)snprintf(text + length, space - length,
                         "let v%u = v%u * v%u + %u;\n", i, i - 1, i - 1, i);
  }
  for (unsigned i = 0; i < barriers; i++) {
    length += (size_t)snprintf(text + length, space - length,
                               "grid_barrier(); y[v0] = v%u;\n", links);
  }
  snprintf(text + length, space - length, "}\n");
  CHECK_OK(lower_text(text, NULL, &k, &st), st);
  CHECK_U64(k.phase_count, barriers + 1);
  CHECK(k.count < 4 * links + 40 * barriers);
  free(text);
}
TEST(long_chains_across_grid_barriers) {
  check_chain(SANITIZED ? 20000 : 100000, 1);
  check_chain(1000, 1000);
}

/* --- random programs ------------------------------------------------------ */

static vyre_random_program_options options_of(uint64_t seed, void *self) {
  static const uint32_t sizes[] = {24, 8, 60, 24, 120};
  (void)self;
  return (vyre_random_program_options){.seed = seed,
                                       .statements = sizes[seed % 5],
                                       .max_invocations = seed % 7 ? 48 : 200,
                                       .has_math = seed % 4 == 3,
                                       .no_f64 = seed % 2 == 1,
                                       .only_add64 = seed % 2 == 1};
}

static unsigned check_random(job *j, void *self) {
  static const uint8_t poisons[] = {0, 0xA5, 0xFF};
  j->poison = poisons[j->seed % 3];
  return check_targets(j, self);
}

TEST(random_programs_do_the_same) {
  const program_test test = {
      .check = check_random, .options = options_of, .count = SEEDS};
  runs = refused = 0;
  unsigned failed = check_random_programs(&test);
  printf("    %u runs, %u refused by their target\n", runs, refused);
  CHECK_U64(failed, 0);
}

TEST_MAIN(TEST_ENTRY(examples_do_the_same), TEST_ENTRY(kernels_do_the_same),
          TEST_ENTRY(other_workgroups_do_the_same),
          TEST_ENTRY(every_pass_verifies), TEST_ENTRY(no_memory),
          TEST_ENTRY(fuel_runs_out_at_the_same_iteration),
          TEST_ENTRY(oversized_library_functions_are_defects),
          TEST_ENTRY(reports_kernels_that_are_too_large),
          TEST_ENTRY(carried_shared_memory_needs_all_invocations),
          TEST_ENTRY(grid_loops_of_64_bits_run_on_any_target),
          TEST_ENTRY(other_64_bit_atomics_are_rejected),
          TEST_ENTRY(atomics_of_64_bits_are_checked_per_memory),
          TEST_ENTRY(long_chains_across_grid_barriers),
          TEST_ENTRY(random_programs_do_the_same))