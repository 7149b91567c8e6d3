/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/inline/inline.h"
#include "analyze/queue/queue.h"
#include "base/status.h"
#include "support/check.h"
#include "support/parse.h"
#include "support/text.h"

#define HEAD                          \
  "buffer x : read u32[] @0;\n"       \
  "buffer y : read_write u32[] @1;\n" \
  "uniform n : u32 @2;\n"

/* Checks the number of pushes of a body; -1: not bounded. */
static void pushes_are(const char *body, long wanted) {
  char text[1024];
  snprintf(text, sizeof text, "kernel k queue(u32)\n" HEAD "{\n%s\n}\n", body);
  vyre_module *module = parse_module(text);
  uint32_t pushes;
  vyre__id site;
  bool known =
      vyre__queue_pushes(vyre_module_kernel(module, 0), &pushes, &site);
  if (known != (wanted >= 0) || (known && pushes != (uint32_t)wanted)) {
    printf("    %s\n    pushes %u (%d)\n", body, pushes, known);
    test_fail(__FILE__, __LINE__);
  }
  CHECK(known == (site == 0));
  vyre_module_release(module);
}

TEST(pushes_are_counted) {
  pushes_are("y[0] = 1;", 0);
  pushes_are("push(1); push(2);", 2);
  pushes_are("if (item > 3) { push(1); push(2); } else push(3);", 2);
  pushes_are("if (push(1)) push(2);", 2);
  pushes_are("let a = push(1) && push(2);", 2);
  pushes_are("for (let i = 0u; i < 8; i++) push(i);", 8);
  pushes_are("for (let i = 0u; i <= 8; i += 4) push(i);", 3);
  pushes_are("for (let i = 9; i > -3; i -= 5) push(u32(i));", 3);
  pushes_are("for (let i = 5u; i < 3; i++) push(i);", 0);
  pushes_are("for (let i = 0u; i < 2 * 3 + 1; i++) { push(i); push(i); }", 14);
  pushes_are(
      "for (let i = 0u; i < 4; i++) for (let j = 0u; j < 5; j++) push(j);", 20);
  pushes_are("for (let i = 0u; i < n; i++) y[i] = 1;\npush(2);", 1);
  pushes_are("for (let i = 0u; i < n; i++) push(i);", -1);
  pushes_are("while (y[0] > 1) push(1);", -1);
  pushes_are("for (let i = 0u; i < 16777217; i++) push(i);", -1);
  pushes_are("for (let i = 0ul; i < 9223372036854775807ul; i++) push(1);", -1);
}

static void part_is(const char *text, vyre__queue_part_kind kind,
                    const char *wanted) {
  vyre_module *module = parse_module(text);
  vyre_program *part, *inlined;
  vyre_status st = {0};
  CHECK(vyre__queue_has_part(vyre_module_kernel(module, 0), kind));
  CHECK_OK(vyre__queue_part(vyre_module_kernel(module, 0), kind,
                            (vyre_allocator){0}, &part, &st),
           st);
  vyre_module_release(module); /* the part retains its kernel */
  CHECK_OK(vyre__inline(part, (vyre_allocator){0}, &inlined, &st), st);
  static text_buffer text_of_part;
  text_of_part.length = 0;
  CHECK(vyre_program_print(inlined, text_writer(&text_of_part)));
  CHECK_TEXT(text_of_part.bytes, wanted);
  vyre_program_release(inlined);
  vyre_program_release(part);
}

static const char bfs[] = "kernel k queue(u32) once(n)\n" HEAD
                          "{\n"
                          "    y[item] = window;\n"
                          "    for (let e = x[item]; e < x[item + 1]; e++) {\n"
                          "        var v = x[e];\n"
                          "        if (v == 7) break;\n"
                          "        v += 1;\n"
                          "        push(v);\n"
                          "    }\n"
                          "    push(atomic_add(y[0], 1));\n"
                          "    if (push(5)) y[1] = 2;\n"
                          "}\n"
                          "pull {\n"
                          "    if (in_window(x[item])) push(item);\n"
                          "}\n";

TEST(a_visit_has_no_pushes) {
  part_is(bfs, VYRE__QUEUE_PART_VISIT,
          "kernel k workgroup(1) queue(u32) once(n)\n"
          "buffer x : read u32[] @0;\n"
          "buffer y : read_write u32[] @1;\n"
          "uniform n : u32 @2;\n"
          "{\n"
          "    y[item] = window;\n"
          "    if (atomic_add(y[0u], 1u) < n) {\n"
          "    }\n"
          "    if (5u < n) {\n"
          "        y[1u] = 2u;\n"
          "    }\n"
          "}\n");
}

TEST(a_pull_is_a_kernel) {
  part_is(bfs, VYRE__QUEUE_PART_PULL,
          "kernel k workgroup(1) queue(u32) once(n)\n"
          "buffer x : read u32[] @0;\n"
          "buffer y : read_write u32[] @1;\n"
          "uniform n : u32 @2;\n"
          "{\n"
          "    if (in_window(x[item])) {\n"
          "        push(item);\n"
          "    }\n"
          "}\n");
}

TEST(a_priority_is_a_kernel_that_pushes_it) {
  part_is(
      "fn half(a: u32) -> u32 { return a / 2; }\n"
      "kernel k queue(u32) set(10) by(half(y[item]))\n" HEAD
      "{ y[item] = 1; }\n",
      VYRE__QUEUE_PART_BY,
      "kernel k workgroup(1) queue(u32) pushes(1)\n"
      "buffer x : read u32[] @0;\n"
      "buffer y : read_write u32[] @1;\n"
      "uniform n : u32 @2;\n"
      "{\n"
      "    let a_1 = y[item];\n"
      "    let half_2 = a_1 / 2u;\n"
      "    push(half_2);\n"
      "}\n");
}

TEST(the_edges_of_an_item_are_the_trips_of_its_loop) {
  part_is("kernel k queue(u32) once(n)\n" HEAD
          "{\n"
          "    y[item] = window;\n"
          "    let end = x[item + 1];\n"
          "    for (let e = x[item]; e < end; e++) push(x[e]);\n"
          "    y[0] = 1;\n"
          "}\n"
          "pull { if (in_window(x[item])) push(item); }\n",
          VYRE__QUEUE_PART_BY,
          "kernel k workgroup(1) queue(u32) pushes(1)\n"
          "buffer x : read u32[] @0;\n"
          "buffer y : read_write u32[] @1;\n"
          "uniform n : u32 @2;\n"
          "{\n"
          "    let end_1 = x[item + 1u];\n"
          "    push(end_1 - x[item]);\n"
          "}\n");
}

TEST(edges_are_not_counted_without_one_loop_that_only_pushes) {
  static const char *const bodies[] = {
      "{ push(x[item]); }\n",
      "{ for (let e = 0u; e < 9; e += 2) push(x[e]); }\n",
      ("{ let a = atomic_add(y[0], 1); for (let e = 0u; e < a; e++) push(e); "
       "}\n"),
      "{ for (let e = 0u; e < 9; e++) { y[e] = 1; push(e); } }\n",
  };
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
    char text[600];
    (void)snprintf(text, sizeof text,
                   "kernel k queue(u32) once(n)\n" HEAD
                   "%s"
                   "pull { if (in_window(x[item])) push(item); }\n",
                   bodies[i]);
    vyre_module *module = parse_module(text);
    CHECK(!vyre__queue_has_part(vyre_module_kernel(module, 0),
                                VYRE__QUEUE_PART_BY));
    vyre_module_release(module);
  }
}

static vyre_code part_scenario(vyre_allocator allocator, vyre_status *st) {
  static vyre_module *module;
  if (!module) module = parse_module(bfs);
  vyre_program *part, *inlined;
  VYRE_TRY(vyre__queue_part(vyre_module_kernel(module, 0),
                            VYRE__QUEUE_PART_VISIT, allocator, &part, st));
  vyre_code code = vyre__inline(part, allocator, &inlined, st);
  vyre_program_release(part);
  if (code == VYRE_OK) vyre_program_release(inlined);
  return code;
}

TEST(parts_survive_every_allocation_failure) {
  CHECK(sweep_allocations(part_scenario) > 3);
}

TEST_MAIN(TEST_ENTRY(pushes_are_counted), TEST_ENTRY(a_visit_has_no_pushes),
          TEST_ENTRY(a_pull_is_a_kernel),
          TEST_ENTRY(a_priority_is_a_kernel_that_pushes_it),
          TEST_ENTRY(the_edges_of_an_item_are_the_trips_of_its_loop),
          TEST_ENTRY(edges_are_not_counted_without_one_loop_that_only_pushes),
          TEST_ENTRY(parts_survive_every_allocation_failure))
