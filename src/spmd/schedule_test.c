/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Schedule passes: the dump of small kernels before and after each. */
#include "spmd/schedule.h"

#include <string.h>

#include "spmd/schedule_dump_testing.h"
#include "spmd/schedule_testing.h"
#include "support/check.h"

static fixture *make(const char *source, uint32_t width,
                     vyre__schedule_pass last) {
  return make_for(source, width, 8, last, false);
}

/* Checks the dump after @p last, without its first line. */
static void expect(const char *source, uint32_t width, vyre__schedule_pass last,
                   const char *want) {
  fixture *f = make(source, width, last);
  const char *got = strchr(f->dump.bytes, '\n');
  CHECK_TEXT(got ? got + 1 : "", want);
  drop(f);
}

/* --- build ----------------------------------------------------------------*/

TEST(builds_fused_rows) {
  expect(saxpy, 16, VYRE__SCHEDULE_BUILD,
         "groups fused along x\n"
         "  uniform 1..25  1 uniform load\n"
         "  rows 1..25\n"
         "    range full\n"
         "      code 1..8\n"
         "      if 8 on %7 masked\n"
         "        code 9..24  2 contiguous load, 1 contiguous store\n"
         "    range edge\n"
         "      code 1..8\n"
         "      if 8 on %7 masked\n"
         "        code 9..24  2 contiguous load, 1 contiguous store\n");
}

/* Rows of five invocations do not fill vectors of four. */
TEST(builds_vectors_of_any_invocations) {
  expect(
      "kernel k workgroup(5, 2)\nbuffer y : write u32[] @0;\n"
      "{ let i = local_id.y * 5 + local_id.x; y[i] = 1; }\n",
      4, VYRE__SCHEDULE_BUILD,
      "groups\n"
      "  uniform 1..10\n"
      "  vectors 1..10\n"
      "    range full\n"
      "      code 1..10  1 contiguous store\n"
      "    range edge\n"
      "      code 1..10  1 contiguous store\n");
}

TEST(builds_barriers_and_loops_of_the_workgroup) {
  expect(
      "kernel k workgroup(8)\nbuffer y : read_write u32[] @0;\n"
      "shared t : u32[8];\nuniform n : u32 @1;\n"
      "{ for (let k = 0; k < n; k += 1) {\n"
      "    t[local_id.x] = k; barrier();\n"
      "    y[local_id.x] = t[local_id.x ^ 1]; barrier(); } }\n",
      8, VYRE__SCHEDULE_BUILD,
      "groups\n"
      "  uniform 1..21  1 uniform load\n"
      "  rows 1..21\n"
      "    range full\n"
      "      code 1..11\n"
      "      if 11 on %10 uniform\n"
      "        code 12..13\n"
      "        jump 13 exit\n"
      "      code 15..21\n"
      "  group-loop 21\n"
      "    uniform 22..25\n"
      "    group-if 25 on %24\n"
      "      group-jump 26 break\n"
      "    uniform 28..30\n"
      "    rows 28..30\n"
      "      range full\n"
      "        code 28..30  1 contiguous store\n"
      "    barrier\n"
      "    uniform 31..36\n"
      "    rows 31..36\n"
      "      range full\n"
      "        code 31..36  1 shuffled load, 1 contiguous store\n"
      "    barrier\n"
      "  step\n"
      "    uniform 38..40\n");
}

/* --- verify ---------------------------------------------------------------*/

/* Returns true if the verifier refuses the schedule, and says why. */
static bool is_refused(fixture *f, const char *why) {
  vyre_status st = {0};
  f->s.st = &st;
  return vyre__schedule_verify(&f->s) == VYRE_KERNEL_COMPILE_FAILED &&
         strstr(st.message, why) != NULL;
}

TEST(verifier_finds_missing_code) {
  fixture *f = make(saxpy, 16, VYRE__SCHEDULE_BUILD);
  vyre__sched_node *rows = f->s.root->body->next;
  vyre__sched_node *code = rows->body->body;
  rows->body->body = code->next;
  CHECK(is_refused(f, "instruction 1: is not run once"));
  rows->body->body = code;
  code->next->body->end--;
  CHECK(is_refused(f, "instruction 23: is not run"));
  code->next->body->end++;
  vyre_status st = {0};
  f->s.st = &st;
  CHECK_OK(vyre__schedule_verify(&f->s), st);
  drop(f);
}

TEST(verifier_finds_code_that_runs_twice) {
  fixture *f = make(saxpy, 16, VYRE__SCHEDULE_BUILD);
  vyre__sched_node *rows = f->s.root->body->next, again = *rows;
  again.next = NULL;
  rows->next = &again;
  CHECK(is_refused(f, "is not run exactly once in a workgroup"));
  drop(f);
}

TEST(verifier_finds_control_flow_in_a_leaf) {
  fixture *f = make(saxpy, 16, VYRE__SCHEDULE_BUILD);
  vyre__sched_node *code = f->s.root->body->next->body->body;
  code->end = code->next->end;
  code->next = NULL;
  CHECK(is_refused(f, "instruction 8: control flow in a leaf"));
  drop(f);
}

/* --- divergence -----------------------------------------------------------*/

TEST(builds_masks_where_lanes_diverge) {
  expect(divergent, 8, VYRE__SCHEDULE_BUILD,
         "groups\n"
         "  uniform 1..66  1 uniform load\n"
         "  rows 1..66\n"
         "    range full\n"
         "      code 1..10  1 contiguous load\n"
         "      if 10 on %9 select\n"
         "        code 11..14\n"
         "      code 15..18\n"
         "      if 18 on %17 uniform\n"
         "        code 19..22\n"
         "      loop 23 masked\n"
         "        code 24..28\n"
         "        if 28 on %27 masked jump\n"
         "          jump 29 break\n"
         "        code 31..34\n"
         "        if 34 on %33 uniform\n"
         "          code 35..36\n"
         "          jump 36 exit\n"
         "        code 38..45\n"
         "      code 47..49\n"
         "      if 49 on %48 masked\n"
         "        code 50..54  1 contiguous store\n"
         "      else\n"
         "        code 55..65  1 gather store\n");
}

TEST(one_lane_needs_no_masks) {
  fixture *f = make(divergent, 1, VYRE__SCHEDULE_BUILD);
  CHECK(!strstr(f->dump.bytes, "masked") && !strstr(f->dump.bytes, "select"));
  drop(f);
}

/* Sets the mode of every IF and LOOP below @p first to a branch. */
static void remove_masks(vyre__sched_node *first) {
  for (vyre__sched_node *node = first; node; node = node->next) {
    node->mode = VYRE__MODE_UNIFORM;
    remove_masks(node->body);
    remove_masks(node->other);
  }
}

TEST(verifier_finds_missing_masks) {
  fixture *f = make(divergent, 8, VYRE__SCHEDULE_BUILD);
  remove_masks(f->s.root);
  CHECK(is_refused(f, "lanes diverge without a mask"));
  drop(f);
}

/* --- range-split ----------------------------------------------------------*/

/* The guard holds in one range of the row, whose code does not test it. */
TEST(range_split_removes_the_guard) {
  expect(saxpy, 16, VYRE__SCHEDULE_RANGE_SPLIT,
         "groups fused along x\n"
         "  uniform 1..25  1 uniform load\n"
         "  rows 1..25 full where %7 (else nothing to do) and %13\n"
         "    range full\n"
         "      code 1..8\n"
         "      code 9..24  2 contiguous load, 1 contiguous store\n"
         "    range edge\n"
         "      code 1..8\n"
         "      if 8 on %7 masked\n"
         "        code 9..24  2 contiguous load, 1 contiguous store\n");
}

/* Vectors of the workgroup's row in which the guard holds in no lane. */
TEST(range_split_finds_where_a_guard_fails) {
  expect(
      "kernel k workgroup(64)\nbuffer y : write u32[64] @0;\n"
      "shared t : u32[64];\n"
      "{ t[local_id.x] = 1; barrier();\n"
      "  if (local_id.x < 24) { y[local_id.x] = t[local_id.x]; } }\n",
      16, VYRE__SCHEDULE_RANGE_SPLIT,
      "groups\n"
      "  uniform 1..4\n"
      "  rows 1..4\n"
      "    range full\n"
      "      code 1..4  1 contiguous store\n"
      "  barrier\n"
      "  uniform 5..11\n"
      "  rows 5..11 full where %6 (else nothing to do)\n"
      "    range full\n"
      "      code 5..7\n"
      "      code 8..10  1 contiguous load, 1 contiguous store\n"
      "    range edge\n"
      "      code 5..7\n"
      "      if 7 on %6 masked\n"
      "        code 8..10  1 contiguous load, 1 contiguous store\n"
      "    range outside\n"
      "      code 5..7\n");
}

TEST(verifier_finds_code_that_a_range_lost) {
  fixture *f = make(saxpy, 16, VYRE__SCHEDULE_RANGE_SPLIT);
  f->s.root->body->next->body->known = NULL; /* its IF is not known any more */
  CHECK(is_refused(f, "instruction 8: is not run once"));
  drop(f);
}

/* Returns the dump after @p last without its first line, in @p f. */
static const char *dump_of(fixture *f) {
  const char *got = strchr(f->dump.bytes, '\n');
  return got ? got + 1 : "";
}

/* One of two neighbours: both indices are linear, and most of the row takes
 * the same one. */
TEST(range_split_finds_the_neighbour_of_a_row) {
  fixture *f = make(
      "kernel k workgroup(64)\n"
      "buffer x : read f32[] @0;\nbuffer y : write f32[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ let i = global_id.x; if (i >= n) return;\n"
      "  y[i] = x[select(i == 0, i, i - 1)] + x[select(i < n - 1, i + 1, i)]; "
      "}\n",
      8, VYRE__SCHEDULE_RANGE_SPLIT);
  CHECK(strstr(dump_of(f), "not %14 and %19 and %23 and %26"));
  drop(f);
}

/* An `if` with an else, and one that holds for one element of the row. */
TEST(range_split_leaves_the_border_to_the_edge) {
  expect(
      "kernel k workgroup(64)\n"
      "buffer x : read f32[] @0;\nbuffer y : read_write f32[] @1;\n"
      "uniform n : u32 @2;\n"
      "{ let i = global_id.x;\n"
      "  if (i > 0 && i < n - 1) { y[i] = x[i - 1] + x[i + 1]; }\n"
      "  else if (i < n) { y[i] = x[i * 7 % n]; }\n"
      "  if (i == 3) { y[i] = y[i] + x[0]; } }\n",
      8, VYRE__SCHEDULE_RANGE_SPLIT,
      "groups fused along x\n"
      "  uniform 1..69  1 uniform load\n"
      "  rows 1..69 full where %7 and %11 and %18 and %22 and %15 and not %52\n"
      "    range full\n"
      "      code 1..13\n"
      "      code 14..31  2 contiguous load, 1 contiguous store\n"
      "      code 51..53\n"
      "    range edge\n"
      "      code 1..13\n"
      "      if 13 on %12 masked\n"
      "        code 14..31  2 contiguous load, 1 contiguous store\n"
      "      else\n"
      "        code 32..33\n"
      "        if 33 on %32 masked\n"
      "          code 34..49  1 gather load, 1 contiguous store\n"
      "      code 51..53\n"
      "      if 53 on %52 masked\n"
      "        code 54..68  1 uniform load, 1 contiguous load, 1 contiguous "
      "store\n");
}

/* --- loop-range -----------------------------------------------------------*/

TEST(loop_range_tests_a_bound_once_a_row) {
  expect(row_sum, 8, VYRE__SCHEDULE_RANGE_SPLIT,
         "groups fused along x\n"
         "  uniform 1..58  1 uniform load\n"
         "  rows 1..58\n"
         "    range full\n"
         "      code 1..18\n"
         "      code 22..28\n"
         "      loop 28 uniform\n"
         "        code 29..32\n"
         "        if 32 on %31 uniform\n"
         "          jump 33 break\n"
         "        code 35..44  1 contiguous load\n"
         "      step\n"
         "        code 45..47\n"
         "      code 48..50\n"
         "      if 50 on %49 masked\n"
         "        code 51..57  1 contiguous store\n"
         "    range edge\n"
         "      code 1..18\n"
         "      code 22..28\n"
         "      loop 28 uniform\n"
         "        code 29..32\n"
         "        if 32 on %31 uniform\n"
         "          jump 33 break\n"
         "        code 35..44  1 contiguous load\n"
         "      step\n"
         "        code 45..47\n"
         "      code 48..50\n"
         "      if 50 on %49 masked\n"
         "        code 51..57  1 contiguous store\n");
  expect(row_sum, 8, VYRE__SCHEDULE_LOOP_RANGE,
         "groups fused along x\n"
         "  uniform 1..58  1 uniform load\n"
         "  rows 1..58 full where %39 in all iterations\n"
         "    range full\n"
         "      code 1..18\n"
         "      code 22..28\n"
         "      loop 28 uniform\n"
         "        code 29..32\n"
         "        if 32 on %31 uniform\n"
         "          jump 33 break\n"
         "        code 35..44  1 contiguous load\n"
         "      step\n"
         "        code 45..47\n"
         "      code 48..50\n"
         "      if 50 on %49 masked\n"
         "        code 51..57  1 contiguous store\n"
         "    range edge\n"
         "      code 1..18\n"
         "      code 22..28\n"
         "      loop 28 uniform\n"
         "        code 29..32\n"
         "        if 32 on %31 uniform\n"
         "          jump 33 break\n"
         "        code 35..44  1 contiguous load\n"
         "      step\n"
         "        code 45..47\n"
         "      code 48..50\n"
         "      if 50 on %49 masked\n"
         "        code 51..57  1 contiguous store\n");
}

/* --- unroll-jam -----------------------------------------------------------*/

TEST(unroll_jam_runs_rows_that_share_loads_together) {
  expect(product, 8, VYRE__SCHEDULE_LOOP_RANGE,
         "groups\n"
         "  uniform 1..43\n"
         "  rows 1..43\n"
         "    range full\n"
         "      code 1..6\n"
         "      loop 6 uniform\n"
         "        code 7..10\n"
         "        if 10 on %9 uniform\n"
         "          jump 11 break\n"
         "        code 13..27  1 uniform load, 1 contiguous load\n"
         "      step\n"
         "        code 28..31\n"
         "      code 32..43  1 contiguous store\n");
  expect(product, 8, VYRE__SCHEDULE_UNROLL_JAM,
         "groups\n"
         "  uniform 1..43\n"
         "  rows 1..43\n"
         "    unroll-jam 4 rows\n"
         "      range full\n"
         "        code 1..6\n"
         "        loop 6 uniform\n"
         "          code 7..10\n"
         "          if 10 on %9 uniform\n"
         "            jump 11 break\n"
         "          code 13..27  1 uniform load, 1 contiguous load\n"
         "        step\n"
         "          code 28..31\n"
         "        code 32..43  1 contiguous store\n"
         "    range full\n"
         "      code 1..6\n"
         "      loop 6 uniform\n"
         "        code 7..10\n"
         "        if 10 on %9 uniform\n"
         "          jump 11 break\n"
         "        code 13..27  1 uniform load, 1 contiguous load\n"
         "      step\n"
         "        code 28..31\n"
         "      code 32..43  1 contiguous store\n");
}

TEST(unroll_jam_leaves_rows_without_shared_loads) {
  fixture *f = make(row_sum, 8, VYRE__SCHEDULE_UNROLL_JAM);
  CHECK(!strstr(f->dump.bytes, "unroll-jam"));
  drop(f);
}

/* Rows share a scalar; their sums are independent. */
TEST(unroll_jam_shares_uniform_loads) {
  fixture *f = make(weighted, 8, VYRE__SCHEDULE_UNROLL_JAM);
  CHECK_HAS(f->dump.bytes, "unroll-jam 4 rows");
  drop(f);
}

/* --- accumulator-split ----------------------------------------------------*/

TEST(accumulator_split_runs_a_loop_once_per_group) {
  expect(sums, 16, VYRE__SCHEDULE_UNROLL_JAM,
         "groups\n"
         "  uniform 1..83\n"
         "  rows 1..83\n"
         "    range full\n"
         "      code 1..14\n"
         "      loop 14 uniform\n"
         "        code 15..18\n"
         "        if 18 on %17 uniform\n"
         "          jump 19 break\n"
         "        code 21..58  1 contiguous load\n"
         "      step\n"
         "        code 59..62\n"
         "      code 63..83  1 contiguous store\n");
  expect(sums, 16, VYRE__SCHEDULE_ACCUMULATOR_SPLIT,
         "groups\n"
         "  uniform 1..83\n"
         "  rows 1..83\n"
         "    range full\n"
         "      code 1..14\n"
         "      accumulators 14\n"
         "        loop 14 uniform for s0.0 s1.1 s2.2 s3.3\n"
         "          code 15..18\n"
         "          if 18 on %17 uniform\n"
         "            jump 19 break\n"
         "          code 21..58  1 contiguous load\n"
         "        step\n"
         "          code 59..62\n"
         "        loop 14 uniform for s4.4 s5.5 s6.6 s7.7\n"
         "          code 15..18\n"
         "          if 18 on %17 uniform\n"
         "            jump 19 break\n"
         "          code 21..58  1 contiguous load\n"
         "        step\n"
         "          code 59..62\n"
         "      code 63..83  1 contiguous store\n");
}

TEST(verifier_finds_an_accumulator_group_that_runs_twice) {
  fixture *f = make(sums, 16, VYRE__SCHEDULE_ACCUMULATOR_SPLIT);
  vyre__sched_node *node = f->s.root->body->next->body->body;
  while (node && node->kind != VYRE__SCHED_ACCUMULATORS) node = node->next;
  CHECK(node != NULL);
  node->body->next->group = node->body->group;
  CHECK(is_refused(f, "an accumulator group runs twice"));
  drop(f);
}

/* --- privatize-atomics ----------------------------------------------------*/

TEST(privatize_atomics_uses_memory_of_the_thread) {
  expect(histogram, 8, VYRE__SCHEDULE_ACCUMULATOR_SPLIT,
         "groups fused along x\n"
         "  uniform 1..15\n"
         "  rows 1..15 full where %7 (else nothing to do)\n"
         "    range full\n"
         "      code 1..8\n"
         "      code 9..14  1 contiguous load, 1 atomic\n"
         "    range edge\n"
         "      code 1..8\n"
         "      if 8 on %7 masked\n"
         "        code 9..14  1 contiguous load, 1 atomic\n");
  expect(histogram, 8, VYRE__SCHEDULE_PRIVATIZE_ATOMICS,
         "private bins\n"
         "  groups fused along x\n"
         "    uniform 1..15\n"
         "    rows 1..15 full where %7 (else nothing to do)\n"
         "      range full\n"
         "        code 1..8\n"
         "        code 9..14  1 contiguous load, 1 atomic\n"
         "      range edge\n"
         "        code 1..8\n"
         "        if 8 on %7 masked\n"
         "          code 9..14  1 contiguous load, 1 atomic\n");
}

/* Odd lanes use a replica of the shared array, which is merged into it before
 * the next region reads it. */
TEST(privatize_atomics_replicates_shared_memory) {
  expect(
      "kernel k workgroup(64)\n"
      "buffer x : read u32[] @0;\nbuffer y : write u32[16] @1;\n"
      "shared t : u32[16];\n"
      "{ for (let k = 0u; k < 64u; k += 1u) {\n"
      "    atomic_add(t[x[k * 64 + local_id.x] & 15], 1u); }\n"
      "  barrier();\n"
      "  if (local_id.x < 16) { y[local_id.x] = t[local_id.x]; } }\n",
      8, VYRE__SCHEDULE_PRIVATIZE_ATOMICS,
      "groups\n"
      "  uniform 1..4\n"
      "  group-loop 4\n"
      "    uniform 5..8\n"
      "    group-if 8 on %7\n"
      "      group-jump 9 break\n"
      "    uniform 11..21\n"
      "    rows 11..21 full where %15\n"
      "      range full\n"
      "        code 11..21  1 contiguous load, 1 atomic\n"
      "      range edge\n"
      "        code 11..21  1 contiguous load, 1 atomic\n"
      "    barrier\n"
      "  step\n"
      "    uniform 23..26\n"
      "  merge t\n"
      "  barrier\n"
      "  uniform 28..35\n"
      "  rows 28..35 full where %30 (else nothing to do)\n"
      "    range full\n"
      "      code 28..31\n"
      "      code 32..34  1 contiguous load, 1 contiguous store\n"
      "    range edge\n"
      "      code 28..31\n"
      "      if 31 on %30 uniform\n"
      "        code 32..34  1 contiguous load, 1 contiguous store\n"
      "    range outside\n"
      "      code 28..31\n");
}

/* The old value is used: threads must see each other's additions. */
TEST(privatize_atomics_leaves_old_values_that_are_used) {
  fixture *f = make(
      "kernel k workgroup(64)\n"
      "buffer y : write u32[64] @0;\n"
      "buffer bins : read_write u32[16] @1;\n"
      "{ y[local_id.x] = atomic_add(bins[0], 1u); }\n",
      8, VYRE__SCHEDULE_PRIVATIZE_ATOMICS);
  CHECK(!strstr(f->dump.bytes, "private"));
  drop(f);
}

/* --- loop-peel ------------------------------------------------------------*/

TEST(loop_peel_runs_steady_iterations_without_masks) {
  expect(strided, 8, VYRE__SCHEDULE_PRIVATIZE_ATOMICS,
         "groups\n"
         "  uniform 1..26  1 uniform load\n"
         "  rows 1..26\n"
         "    range full\n"
         "      code 1..8\n"
         "      loop 8 masked\n"
         "        code 9..12\n"
         "        if 12 on %11 masked jump\n"
         "          jump 13 break\n"
         "        code 15..19  1 contiguous load\n"
         "      step\n"
         "        code 20..23\n"
         "      code 24..26  1 contiguous store\n");
  expect(strided, 8, VYRE__SCHEDULE_LOOP_PEEL,
         "groups\n"
         "  uniform 1..26  1 uniform load\n"
         "  rows 1..26\n"
         "    range full\n"
         "      code 1..8\n"
         "      loop 8 masked, peeled while all lanes stay\n"
         "        code 9..12\n"
         "        if 12 on %11 masked jump\n"
         "          jump 13 break\n"
         "        code 15..19  1 contiguous load\n"
         "      step\n"
         "        code 20..23\n"
         "      code 24..26  1 contiguous store\n");
}

/* The flag that ends a loop before its counter wraps does not prevent peeling. */
TEST(loop_peel_accepts_counters_that_may_wrap) {
  fixture *f = make(pieces, 16, VYRE__SCHEDULE_PRIVATIZE_ATOMICS);
  CHECK(strstr(f->dump.bytes, "masked\n") && !strstr(f->dump.bytes, "peeled"));
  drop(f);
  f = make(pieces, 16, VYRE__SCHEDULE_LOOP_PEEL);
  CHECK(strstr(f->dump.bytes, "masked, peeled while all lanes stay\n"));
  drop(f);
}

TEST(prefetch_reads_pieces_of_a_stream_ahead) {
  fixture *f = make(pieces, 16, VYRE__SCHEDULE_SPECULATE);
  CHECK(!strstr(f->dump.bytes, "ahead"));
  drop(f);
  f = make(pieces, 16, VYRE__SCHEDULE_PREFETCH);
  CHECK(strstr(f->dump.bytes, "stay, 1 loads ahead\n"));
  drop(f);
}

TEST(loop_peel_leaves_other_loops) {
  fixture *f = make(divergent, 8, VYRE__SCHEDULE_LOOP_PEEL);
  CHECK(strstr(f->dump.bytes, "masked") && !strstr(f->dump.bytes, "peeled"));
  drop(f);
}

/* --- speculate -------------------------------------------------------------*/

/* The load is inside the buffer in all lanes of the range, and the buffer is
 * read in any case. */
TEST(speculate_loads_without_a_branch) {
  expect(relax, 8, VYRE__SCHEDULE_LOOP_PEEL,
         "groups fused along x, vectors may overlap\n"
         "  uniform 1..24\n"
         "  rows 1..24 full where %7 and %15 and %21\n"
         "    range full\n"
         "      code 1..12  1 contiguous load\n"
         "      if 12 on %11 masked\n"
         "        code 13..19  1 contiguous load\n"
         "      code 20..24  1 contiguous store\n"
         "    range edge\n"
         "      code 1..12  1 contiguous load\n"
         "      if 12 on %11 masked\n"
         "        code 13..19  1 contiguous load\n"
         "      code 20..24  1 contiguous store\n");
  expect(relax, 8, VYRE__SCHEDULE_SPECULATE,
         "groups fused along x, vectors may overlap\n"
         "  uniform 1..24\n"
         "  rows 1..24 full where %7 and %15 and %21\n"
         "    range full\n"
         "      code 1..12  1 contiguous load\n"
         "      if 12 on %11 select\n"
         "        code 13..19  1 contiguous load\n"
         "      code 20..24  1 contiguous store\n"
         "    range edge\n"
         "      code 1..12  1 contiguous load\n"
         "      if 12 on %11 masked\n"
         "        code 13..19  1 contiguous load\n"
         "      code 20..24  1 contiguous store\n");
}

/* Masked stores are fast on processors with registers of 16 lanes. */
TEST(speculate_stores_where_masks_are_fast) {
  fixture *f = make(least, 8, VYRE__SCHEDULE_SPECULATE);
  CHECK(strstr(f->dump.bytes, "masked\n") && !strstr(f->dump.bytes, "select"));
  drop(f);
  f = make_for(least, 16, 16, VYRE__SCHEDULE_SPECULATE, false);
  CHECK(strstr(f->dump.bytes, "select\n"));
  drop(f);
}

/* A proof of an index may rest on the condition, and a buffer that is not read
 * otherwise would cost memory traffic. */
TEST(speculate_leaves_other_accesses) {
  fixture *f = make_for(
      "kernel k workgroup(64)\n"
      "buffer x : read u32[] @0;\nbuffer y : read u32[] @1;\n"
      "buffer z : write u32[] @2;\n"
      "{ let i = global_id.x; let v = x[i]; var s = v;\n"
      "  if (v > 2) { s = y[i]; }\n"
      "  if (v > 7) { if (i < len(x)) { s = s + x[i]; } }\n"
      "  z[i] = s; }\n",
      16, 16, VYRE__SCHEDULE_SPECULATE, false);
  CHECK(!strstr(f->dump.bytes, "select"));
  drop(f);
}

/* --- prefetch -------------------------------------------------------------*/

TEST(prefetch_looks_ahead_of_contended_atomics) {
  expect(
      chain, 8, VYRE__SCHEDULE_LOOP_PEEL,
      "groups fused along x\n"
      "  uniform 1..18\n"
      "  rows 1..18 full where %7 (else nothing to do) and %10\n"
      "    range full\n"
      "      code 1..8\n"
      "      code 9..17  1 contiguous load, 1 atomic, 1 contiguous store\n"
      "    range edge\n"
      "      code 1..8\n"
      "      if 8 on %7 masked\n"
      "        code 9..17  1 contiguous load, 1 atomic, 1 contiguous store\n");
  expect(
      chain, 8, VYRE__SCHEDULE_PREFETCH,
      "groups fused along x\n"
      "  uniform 1..18\n"
      "  rows 1..18 full where %7 (else nothing to do) and %10\n"
      "    range full\n"
      "      prefetch 15, 16 invocations ahead\n"
      "      code 1..8\n"
      "      code 9..17  1 contiguous load, 1 atomic, 1 contiguous store\n"
      "    range edge\n"
      "      prefetch 15, 16 invocations ahead\n"
      "      code 1..8\n"
      "      if 8 on %7 masked\n"
      "        code 9..17  1 contiguous load, 1 atomic, 1 contiguous store\n");
}

/* --- row-limit ------------------------------------------------------------*/

TEST(row_limit_skips_rows_without_work) {
  fixture *f = make(tree, 8, VYRE__SCHEDULE_ROW_LOADS);
  CHECK(!strstr(f->dump.bytes, " only"));
  drop(f);
  f = make(tree, 8, VYRE__SCHEDULE_ROW_LIMIT);
  CHECK(strstr(f->dump.bytes, "(else nothing to do), rows below %"));
  CHECK(strstr(f->dump.bytes, ", rows with %"));
  drop(f);
  f = make(
      "kernel k workgroup(8, 4)\nbuffer y : read_write u32[] @0;\n"
      "shared t : u32[64];\n"
      "{ let i = local_id.y * 9 + local_id.x; t[i] = i; barrier();\n"
      "  if (i < 12) { y[i] = t[i]; } }\n",
      8, VYRE__SCHEDULE_ROW_LIMIT);
  CHECK(!strstr(f->dump.bytes, " only"));
  drop(f);
}

/* --- full-workgroups ------------------------------------------------------*/

TEST(full_workgroups_run_code_without_guards) {
  expect(reduce, 8, VYRE__SCHEDULE_PREFETCH,
         "groups\n"
         "  uniform 1..16\n"
         "  rows 1..16 full where %9\n"
         "    range full\n"
         "      code 1..10\n"
         "      code 11..13  1 contiguous load\n"
         "      code 14..16  1 contiguous store\n"
         "    range edge\n"
         "      code 1..10\n"
         "      if 10 on %9 masked\n"
         "        code 11..13  1 contiguous load\n"
         "      code 14..16  1 contiguous store\n"
         "  barrier\n"
         "  uniform 17..28\n"
         "  rows 17..28 full where %18 (else nothing to do) and %21\n"
         "    range full\n"
         "      code 17..19\n"
         "      code 20..27  2 contiguous load, 1 contiguous store\n"
         "    range edge\n"
         "      code 17..19\n"
         "      if 19 on %18 uniform\n"
         "        code 20..27  2 contiguous load, 1 contiguous store\n");
  expect(
      reduce, 8, VYRE__SCHEDULE_FULL_WORKGROUPS,
      "groups\n"
      "  full-workgroups\n"
      "    uniform 1..16\n"
      "    rows 1..16 full where %9 (proven)\n"
      "      range full\n"
      "        code 1..10\n"
      "        code 11..13  1 contiguous load\n"
      "        code 14..16  1 contiguous store\n"
      "      range edge\n"
      "        code 1..10\n"
      "        if 10 on %9 masked\n"
      "          code 11..13  1 contiguous load\n"
      "        code 14..16  1 contiguous store\n"
      "    barrier\n"
      "    uniform 17..28\n"
      "    rows 17..28 full where %18 (else nothing to do) and %21 (proven)\n"
      "      range full\n"
      "        code 17..19\n"
      "        code 20..27  2 contiguous load, 1 contiguous store\n"
      "      range edge\n"
      "        code 17..19\n"
      "        if 19 on %18 uniform\n"
      "          code 20..27  2 contiguous load, 1 contiguous store\n"
      "  else\n"
      "    uniform 1..16\n"
      "    rows 1..16 full where %9\n"
      "      range full\n"
      "        code 1..10\n"
      "        code 11..13  1 contiguous load\n"
      "        code 14..16  1 contiguous store\n"
      "      range edge\n"
      "        code 1..10\n"
      "        if 10 on %9 masked\n"
      "          code 11..13  1 contiguous load\n"
      "        code 14..16  1 contiguous store\n"
      "    barrier\n"
      "    uniform 17..28\n"
      "    rows 17..28 full where %18 (else nothing to do) and %21\n"
      "      range full\n"
      "        code 17..19\n"
      "        code 20..27  2 contiguous load, 1 contiguous store\n"
      "      range edge\n"
      "        code 17..19\n"
      "        if 19 on %18 uniform\n"
      "          code 20..27  2 contiguous load, 1 contiguous store\n");
}

TEST(verifier_checks_both_versions) {
  fixture *f = make(reduce, 8, VYRE__SCHEDULE_FULL_WORKGROUPS);
  vyre__sched_node *node = f->s.root->body;
  CHECK(node->kind == VYRE__SCHED_FULL_GROUPS);
  vyre__sched_node *first = node->body;
  node->body = first->next;
  CHECK(is_refused(f, "is not run exactly once in a workgroup"));
  node->body = first;
  node->other = node->other->next;
  CHECK(is_refused(f, "is not run exactly once in a workgroup"));
  drop(f);
}

/* --- row-walk --------------------------------------------------------------*/

#define WALK(about)                                         \
  "groups fused along x\n"                                  \
  "  uniform 1..52  1 uniform load\n"                       \
  "  rows 1..52 full where %40 in all iterations and %49\n" \
  "    range full\n"                                        \
  "      code 1..17\n"                                      \
  "      code 21..27\n"                                     \
  "      loop 27 uniform" about                             \
  "\n"                                                      \
  "        code 28..31\n"                                   \
  "        if 31 on %30 uniform\n"                          \
  "          jump 32 break\n"                               \
  "        code 34..44  1 gather load\n"                    \
  "      step\n"                                            \
  "        code 45..47\n"                                   \
  "      code 48..52  1 contiguous store\n"

TEST(row_walk_loads_blocks_of_rows) {
  fixture *f = make(walk, 8, VYRE__SCHEDULE_SPECULATE);
  CHECK(strstr(f->dump.bytes, WALK("")));
  drop(f);
  f = make(walk, 8, VYRE__SCHEDULE_ROW_WALK);
  CHECK(strstr(f->dump.bytes, WALK(", blocks of rows for %41")));
  CHECK_OK(vyre__schedule_verify(&f->s), (vyre_status){0});
  drop(f);
}

static bool walks(const char *source) {
  fixture *f = make(source, 8, VYRE__SCHEDULE_ROW_WALK);
  bool found = strstr(f->dump.bytes, "blocks of rows") != NULL;
  drop(f);
  return found;
}

#define WALK_HEAD                                          \
  "kernel k workgroup(64)\n"                               \
  "buffer a : read_write u32[] @0;\n"                      \
  "buffer y : read_write u32[] @1;\nuniform n : u32 @2;\n" \
  "{ let i = global_id.x; let row = i * n; var s = 0u;\n"

TEST(row_walk_follows_clamped_offsets) {
  CHECK(walks(WALK_HEAD "  for (let k = 1u; k < n; k++) {\n"
                        "    s = s * 3 + a[row + min(k + 4, n - 1)]; }\n"
                        "  y[i] = s; }\n"));
}

/* Elements are loaded before their iteration, and each of a block is used. */
TEST(row_walk_leaves_other_loops) {
  CHECK(!walks(WALK_HEAD
               "  for (let k = 1u; k < n; k++) { a[row + k] += a[row + k - 1]; "
               "}\n  y[i] = s; }\n"));
  CHECK(!walks(WALK_HEAD
               "  for (let k = 0u; k < n; k++) { s += a[row + k];\n"
               "    atomic_add(y[0], 1u); }\n  y[i] = s; a[i] = s; }\n"));
  CHECK(!walks(WALK_HEAD
               "  for (let k = 0u; k < n; k += 8) { s = s * 3 + a[row + k]; }\n"
               "  y[i] = s; }\n"));
  CHECK(!walks(WALK_HEAD
               "  for (let k = 0u; k < 3u; k++) { s = s * 3 + a[row + k]; }\n"
               "  y[i] = s; }\n"));
}

/* --- interleave ------------------------------------------------------------*/

TEST(interleave_merges_fields) {
  fixture *f = make(fields, 8, VYRE__SCHEDULE_ROW_WALK);
  CHECK(strstr(f->dump.bytes, "  5 strided load, 3 strided store\n"));
  drop(f);
  f = make(fields, 8, VYRE__SCHEDULE_INTERLEAVE);
  CHECK(strstr(f->dump.bytes,
               "  rows 1..37 full where %9 in all iterations and %16 in all "
               "iterations and %23 in all iterations and %27 in all iterations "
               "and %33 in all iterations\n"
               "    range full\n"
               "      code 1..37  5 interleaved load, 3 interleaved store\n"));
  drop(f);
}

static unsigned merged(const char *statements, uint32_t lanes) {
  char source[512];
  unsigned count = 0;
  (void)snprintf(source, sizeof source,
                 "kernel k workgroup(64)\n"
                 "buffer v : read_write u32[] @0;\nuniform t : u32 @1;\n"
                 "{ let i = global_id.x; %s }\n",
                 statements);
  fixture *f = make_for(source, 8, lanes, VYRE__SCHEDULE_INTERLEAVE, false);
  const char *at = strstr(f->dump.bytes, "range full");
  at = at ? strstr(at, " interleaved store") : NULL;
  if (at) count = (unsigned)(at[-1] - '0');
  drop(f);
  return count;
}

/* Stores move down to the last one: not past a load of the same field, nor past
 * another place of the buffer. Some fields need fast masks. */
TEST(interleave_keeps_the_order_of_one_field) {
  CHECK_U64(merged("v[i * 2] = i; v[i * 2 + 1] = t;", 8), 2);
  CHECK_U64(merged("v[i * 2] = i; v[i * 2 + 1] = v[i * 2] + v[i * 2 + 1];", 8),
            0);
  CHECK_U64(merged("v[i * 2] = i; v[t] = 3; v[i * 2 + 1] = t;", 8), 0);
  CHECK_U64(merged("v[i * 2] = i; v[i * 2] = t;", 8), 0);
  CHECK_U64(merged("v[i * 3] = i; v[i * 3 + 2] = t;", 8), 0);
  CHECK_U64(merged("v[i * 3] = i; v[i * 3 + 2] = t;", 16), 2);
}

TEST_MAIN(TEST_ENTRY(builds_fused_rows),
          TEST_ENTRY(builds_vectors_of_any_invocations),
          TEST_ENTRY(builds_barriers_and_loops_of_the_workgroup),
          TEST_ENTRY(verifier_finds_missing_code),
          TEST_ENTRY(verifier_finds_code_that_runs_twice),
          TEST_ENTRY(verifier_finds_control_flow_in_a_leaf),
          TEST_ENTRY(builds_masks_where_lanes_diverge),
          TEST_ENTRY(one_lane_needs_no_masks),
          TEST_ENTRY(verifier_finds_missing_masks),
          TEST_ENTRY(range_split_removes_the_guard),
          TEST_ENTRY(range_split_finds_where_a_guard_fails),
          TEST_ENTRY(verifier_finds_code_that_a_range_lost),
          TEST_ENTRY(loop_range_tests_a_bound_once_a_row),
          TEST_ENTRY(unroll_jam_runs_rows_that_share_loads_together),
          TEST_ENTRY(unroll_jam_leaves_rows_without_shared_loads),
          TEST_ENTRY(unroll_jam_shares_uniform_loads),
          TEST_ENTRY(accumulator_split_runs_a_loop_once_per_group),
          TEST_ENTRY(verifier_finds_an_accumulator_group_that_runs_twice),
          TEST_ENTRY(privatize_atomics_uses_memory_of_the_thread),
          TEST_ENTRY(privatize_atomics_replicates_shared_memory),
          TEST_ENTRY(privatize_atomics_leaves_old_values_that_are_used),
          TEST_ENTRY(loop_peel_runs_steady_iterations_without_masks),
          TEST_ENTRY(loop_peel_leaves_other_loops),
          TEST_ENTRY(loop_peel_accepts_counters_that_may_wrap),
          TEST_ENTRY(prefetch_reads_pieces_of_a_stream_ahead),
          TEST_ENTRY(prefetch_looks_ahead_of_contended_atomics),
          TEST_ENTRY(row_limit_skips_rows_without_work),
          TEST_ENTRY(full_workgroups_run_code_without_guards),
          TEST_ENTRY(verifier_checks_both_versions),
          TEST_ENTRY(range_split_finds_the_neighbour_of_a_row),
          TEST_ENTRY(range_split_leaves_the_border_to_the_edge),
          TEST_ENTRY(interleave_merges_fields),
          TEST_ENTRY(interleave_keeps_the_order_of_one_field),
          TEST_ENTRY(row_walk_loads_blocks_of_rows),
          TEST_ENTRY(row_walk_follows_clamped_offsets),
          TEST_ENTRY(row_walk_leaves_other_loops),
          TEST_ENTRY(speculate_loads_without_a_branch),
          TEST_ENTRY(speculate_stores_where_masks_are_fast),
          TEST_ENTRY(speculate_leaves_other_accesses))
