/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Changes of a kernel before its schedule: stride loops, uniform versions and
 * periodic neighbours. */
#include <stdio.h>

#include "spmd/schedule_dump_testing.h"
#include "spmd/schedule_testing.h"

/* --- stride loops ---------------------------------------------------------*/

TEST(stride_loops_become_loops_of_the_workgroup) {
  fixture *f = make_for(strided, 8, 8, VYRE__SCHEDULE_RANGE_SPLIT, true);
  CHECK(strstr(f->dump.bytes, "  group-loop ") != NULL);
  CHECK(strstr(f->dump.bytes, "(else nothing to do)") != NULL);
  CHECK(!strstr(f->dump.bytes, "masked jump"));
  drop(f);
}

/* The body jumps, the loop has another loop in it, or an old value is used. */
TEST(stride_loops_leave_other_loops) {
  static const char *const bodies[] = {
      "if (x[k] == 7) break; s = s + x[k];",
      "for (let j = 0u; j < x[k]; j++) s = s + j;",
      "s = s + atomic_add(y[k & 63], x[k]);",
      "s = s + x[s & 4095];",
  };
  for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
    char source[512];
    snprintf(source, sizeof source,
             "kernel k workgroup(64)\n"
             "buffer x : read u32[4096] @0;\n"
             "buffer y : read_write u32[64] @1;\n"
             "uniform n : u32 @2;\n"
             "{ var s = 0u; let last = min(n, 4096);\n"
             "  for (let k = local_id.x; k < last; k += 64u) { %s }\n"
             "  y[local_id.x] = s; }\n",
             bodies[i]);
    fixture *f = make_for(source, 8, 8, VYRE__SCHEDULE_BUILD, true);
    if (strstr(f->dump.bytes, "group-loop")) printf("    %s\n", bodies[i]);
    CHECK(!strstr(f->dump.bytes, "group-loop"));
    drop(f);
  }
}

TEST(stride_loops_over_the_grid_become_loops_of_the_workgroup) {
  fixture *f = make_for(over_grid, 8, 8, VYRE__SCHEDULE_RANGE_SPLIT, true);
  const char *loop = strstr(f->dump.bytes, "  group-loop ");
  CHECK(loop != NULL);
  CHECK(strstr(loop, " full where ") != NULL);
  /* The loop stays for numbers that are too large. */
  CHECK(strstr(loop, "else\n") != NULL);
  CHECK(strstr(loop, "masked jump") != NULL);
  drop(f);
}

/* The counter is used afterwards, moves twice or in an if, starts elsewhere; the
 * bound differs by invocation or moves; the fuel is used again. */
TEST(stride_loops_over_the_grid_leave_other_loops) {
  static const char *const loops[] = {
      "while (i < n) { s += x[i]; i += 64 * n; } s += i;",
      "while (i < n) { s += x[i]; i += 64; i += n; }",
      "while (i < n) { s += x[i]; if (s > 5) i += 64; }",
      "i = i * 2; while (i < n) { s += x[i]; i += 64; }",
      "while (i < x[local_id.x]) { s += x[i]; i += 64; }",
      "while (i < n) { s += x[i]; i += s; }",
      "while (i < n) { s += x[i]; i += 64; } while (s > 9) s /= n;",
      "while (i < n) { s += x[i]; if (s == 7) break; i += 64; }",
  };
  for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++) {
    char source[512];
    snprintf(source, sizeof source,
             "kernel k workgroup(64)\n"
             "buffer x : read u32[4096] @0;\n"
             "buffer y : write u32[64] @1;\n"
             "uniform n : u32 @2;\n"
             "{ var s = 0u; var i = global_id.x; %s\n"
             "  y[local_id.x] = s; }\n",
             loops[i]);
    fixture *f = make_for(source, 8, 8, VYRE__SCHEDULE_BUILD, true);
    if (strstr(f->dump.bytes, "group-loop")) printf("    %s\n", loops[i]);
    CHECK(!strstr(f->dump.bytes, "group-loop"));
    drop(f);
  }
}

/* --- loop checks ------------------------------------------------------------*/

static unsigned count_of(const fixture *f, const char *what) {
  unsigned count = 0;
  for (const char *at = f->dump.bytes; (at = strstr(at, what)); at++) count++;
  return count;
}

/* Two of the three loops have checks that depend on their first value only; the
 * third one, too. */
TEST(loop_checks_precede_loops) {
  fixture *f = make_for(edges, 1, 8, VYRE__SCHEDULE_BUILD, true);
  /* In the full range and the edge. */
  CHECK_U64(count_of(f, " loop "), UINT64_C(3) * 4);
  drop(f);
  f = make_for(edges, 8, 8, VYRE__SCHEDULE_BUILD, true);
  CHECK_U64(count_of(f, " loop "), UINT64_C(3) * 2);
  drop(f);
}

/* The bounds are the same for all invocations, the loop moves its counter or has
 * another loop in it, the index is loaded or falls. */
TEST(loop_checks_leave_other_loops) {
  static const char *const loops[] = {
      "for (let e = 0u; e < n; e++) s += x[e];",
      "for (let e = x[i]; e < x[i + 1]; e++) s += x[x[e] & 1023];",
      "for (let e = x[i]; e < x[i + 1]; e++) s += x[n - e];",
      "for (let e = x[i]; e < x[i + 1]; e++) s += x[e * s];",
  };
  for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++) {
    char source[512];
    snprintf(source, sizeof source,
             "kernel k workgroup(64)\n"
             "buffer x : read u32[] @0;\n"
             "buffer y : write u32[64] @1;\n"
             "uniform n : u32 @2;\n"
             "{ var s = 0u; let i = global_id.x; %s\n"
             "  y[local_id.x] = s; }\n",
             loops[i]);
    fixture *f = make_for(source, 1, 8, VYRE__SCHEDULE_BUILD, true);
    if (count_of(f, " loop ") > 2) printf("    %s\n", loops[i]);
    CHECK(count_of(f, " loop ") <= 2 + 2 * (i == 1));
    drop(f);
  }
}

/* --- uniform versions -----------------------------------------------------*/

/* A network at @p distance, in a loop that halves d. */
static fixture *make_network(const char *distance) {
  char source[512];
  snprintf(source, sizeof source,
           "kernel k workgroup(64)\n"
           "buffer y : write u32[64] @0;\n"
           "shared s : u32[128];\n"
           "{ let t = local_id.x; var d = 32u;\n"
           "  while (d > 0) {\n"
           "    barrier(); let a = (%s) & 127;\n"
           "    s[a] = s[a] + 1; d /= 2; }\n"
           "  barrier(); y[t] = s[t]; }\n",
           distance);
  return make_for(source, 8, 8, VYRE__SCHEDULE_BUILD, true);
}

TEST(uniform_versions_have_contiguous_lanes) {
  static const char *const distances[] = {"2 * t - (t & (d - 1))", "t ^ d",
                                          "t / d * 2 * d + t % d"};
  for (size_t i = 0; i < sizeof distances / sizeof distances[0]; i++) {
    fixture *f = make_network(distances[i]);
    unsigned versions = 0;
    for (const char *at = f->dump.bytes; (at = strstr(at, "rows ")); at++) {
      versions++;
    }
    /* 1, 2, 4, multiples of 8, others; the last row. */
    CHECK(versions >= 6);
    CHECK(strstr(f->dump.bytes, "1 contiguous load, 1 contiguous store"));
    drop(f);
  }
}

TEST(uniform_versions_need_a_number_in_an_index) {
  fixture *f = make_network("t + d");
  CHECK(!strstr(f->dump.bytes, "else"));
  drop(f);
}

static unsigned count_text(const char *in, const char *what) {
  unsigned count = 0;
  for (const char *at = in; (at = strstr(at, what)); at++) count++;
  return count;
}

TEST(indices_move_behind_the_barrier) {
  fixture *f = make_for(
      "kernel k workgroup(64)\n"
      "buffer y : write u32[64] @0;\n"
      "shared s : u32[256];\n"
      "{ let t = local_id.x; var d = 32u;\n"
      "  while (d > 0) {\n"
      "    let low = t & (d - 1);\n"
      "    let a = (t - low) * 4 + low;\n"
      "    barrier();\n"
      "    s[a] = s[a + d] + 1; d /= 2; }\n"
      "  barrier(); y[t] = s[t]; }\n",
      8, 8, VYRE__SCHEDULE_BUILD, true);
  CHECK(count_text(f->dump.bytes, "group-if") >= 5);
  CHECK(strstr(f->dump.bytes, "1 contiguous load, 1 contiguous store"));
  drop(f);
}

TEST(versions_without_a_loop) {
  static const struct {
    const char *index;
    unsigned versions;                       /* apart from the last */
  } cases[] = {{"t * 2 - (t & (n - 1))", 4}, /* 1, 2, 4, multiples of 8 */
               {"t / n * 77 + t % n", 1},    /* multiples of 8 */
               {"t * n", 0},
               {"t + n", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char source[512];
    snprintf(source, sizeof source,
             "kernel k workgroup(64)\n"
             "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
             "uniform n : u32 @2;\n"
             "{ let t = global_id.x; let a = %s; y[a] = x[a] + 1; }\n",
             cases[i].index);
    fixture *f = make_for(source, 8, 8, VYRE__SCHEDULE_BUILD, true);
    bool has = strstr(f->dump.bytes, "1 contiguous load, 1 contiguous store");
    CHECK_U64(count_text(f->dump.bytes, "group-if"), cases[i].versions);
    CHECK(has == (cases[i].versions > 0 || i == 3));
    drop(f);
  }
}

/* --- periodic neighbours --------------------------------------------------*/

static fixture *make_periodic(const char *neighbour, const char *guard) {
  char source[512];
  snprintf(source, sizeof source,
           "kernel k workgroup(64)\n"
           "buffer x : read u32[] @0;\nbuffer y : write u32[] @1;\n"
           "uniform w : u32 @2;\n"
           "{ let i = global_id.x; if (%s) y[i] = x[%s]; }\n",
           guard, neighbour);
  return make_for(source, 8, 8, VYRE__SCHEDULE_RANGE_SPLIT, true);
}

TEST(periodic_neighbours_limit_the_row) {
  static const char *const neighbours[] = {
      "(i + 1) % w", "(i + w - 1) % w", "(i - 1 + w) % w", "(i + (w - 2)) % w"};
  for (size_t i = 0; i < sizeof neighbours / sizeof neighbours[0]; i++) {
    fixture *f = make_periodic(neighbours[i], "i < w");
    CHECK(count_text(f->dump.bytes, " and %") >= 3);
    drop(f);
  }
}

/* Without `i < w`, i may be the number of an element of several rows. */
TEST(other_remainders_stay) {
  static const char *const cases[][2] = {{"(i + 1) % w", "i < len(y)"},
                                         {"(i + 1) % w", "i <= w"},
                                         {"(2 * w - i) % w", "i < w"},
                                         {"(i + 100) % w", "i < w"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    fixture *f = make_periodic(cases[i][0], cases[i][1]);
    CHECK(count_text(f->dump.bytes, " and %") <= 1);
    drop(f);
  }
}

TEST_MAIN(TEST_ENTRY(stride_loops_become_loops_of_the_workgroup),
          TEST_ENTRY(stride_loops_leave_other_loops),
          TEST_ENTRY(stride_loops_over_the_grid_become_loops_of_the_workgroup),
          TEST_ENTRY(stride_loops_over_the_grid_leave_other_loops),
          TEST_ENTRY(loop_checks_precede_loops),
          TEST_ENTRY(loop_checks_leave_other_loops),
          TEST_ENTRY(uniform_versions_have_contiguous_lanes),
          TEST_ENTRY(uniform_versions_need_a_number_in_an_index),
          TEST_ENTRY(indices_move_behind_the_barrier),
          TEST_ENTRY(versions_without_a_loop),
          TEST_ENTRY(periodic_neighbours_limit_the_row),
          TEST_ENTRY(other_remainders_stay))
