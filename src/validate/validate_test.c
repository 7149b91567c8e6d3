/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/validate.h"

#include "vyre/builder.h"
#include "vyre/module.h"

#include "support/analysis.h"
#include "support/check.h"

/* Parses and validates all kernels of a text and collects the diagnostics. */
static vyre_code check_text(const char *text, vyre_diagnostics *found,
                            vyre_status *st) {
  vyre_module *module = NULL;
  vyre_code code = vyre_module_parse(text, strlen(text), "test.vyre",
                                     (vyre_allocator){0}, &module, found, st);
  size_t count = code == VYRE_OK ? vyre_module_kernel_count(module) : 0;
  for (size_t i = 0; i < count; i++) {
    vyre_code own =
        vyre_program_validate(vyre_module_kernel(module, i), found, st);
    if (own != VYRE_OK) code = own;
  }
  vyre_module_release(module);
  return code;
}

static bool breaks_rule(const vyre_rule *rule) {
  vyre_diagnostics found = {0};
  vyre_status st = {0};
  bool good =
      check_text(rule->bad_example, &found, &st) == VYRE_INVALID_PROGRAM &&
      found.count;
  for (size_t i = 0; i < found.count; i++) {
    const vyre_diagnostic *d = &found.items[i];
    good &= strcmp(d->rule, rule->id) == 0 && d->line > 0 && d->column > 0 &&
            d->message[0] && d->fix[0];
  }
  if (!good) {
    printf("    %s: %s\n%s\n", rule->id,
           found.count ? found.items[0].message : "(nothing)",
           rule->bad_example);
  }
  vyre_diagnostics_deinit(&found);
  return good;
}

static bool keeps_rules(const vyre_rule *rule) {
  vyre_diagnostics found = {0};
  vyre_status st = {0};
  bool good = check_text(rule->good_example, &found, &st) == VYRE_OK;
  if (!good)
    printf("    %s: %s\n%s\n", rule->id, st.message, rule->good_example);
  vyre_diagnostics_deinit(&found);
  return good;
}

TEST(every_rule_has_examples_that_are_right) {
  size_t count = 0, seen = 0;
  const vyre_rule *rules = vyre_rules(&count);
  for (size_t i = 0; i < count; i++) {
    /* Rules of validation only; findings of runs follow them. */
    if (rules[i].id[0] != 'V' || strcmp(rules[i].id, "V100") < 0) continue;
    CHECK(breaks_rule(&rules[i]));
    CHECK(keeps_rules(&rules[i]));
    seen++;
  }
  CHECK_U64(seen, 19);
}

/* A body for HEAD, the rule that it breaks (NULL: none), the line, and a part
 * of the message. */
typedef struct body_case {
  const char *body, *rule;
  uint32_t line;
  const char *message;
} body_case;

static const body_case bodies[] = {
    /* indices */
    {"tile[l] = 1;", NULL, 0, NULL},
    {"tile[64] = 1;", "V105", 9, "at least 64, but the buffer has 64 elements"},
    {"tile[l + 100] = 1;", "V105", 9, "at least 100"},
    {"tile[l + 1] = 1;", NULL, 0, NULL},
    {"tile[i32(l) - 64] = 1;", "V105", 9, "at most -1"},
    {"y[i32(l) - 64] = 1;", "V105", 9, "always negative (at most -1)"},
    {"y[i32(l) - 63] = 1;", NULL, 0, NULL},
    {"y[i] = tile[l | 64];", "V105", 9, "'tile'"},
    {"y[i] = tile[l & 64];", NULL, 0, NULL},
    {"atomic_add(tile[70], 1);", "V105", 9, "'tile'"},
    {"{ tile[70] = 1; }", "V105", 9, "'tile'"},
    {"if (tile[70] > 1) y[i] = 1;", "V105", 9, "'tile'"},
    /* possibly guarded accesses are not reported */
    {"if (l > 63) tile[l + 64] = 1;", NULL, 0, NULL},
    {"if (false) tile[70] = 1;", NULL, 0, NULL},
    {"if (l + 64 < len(tile)) tile[l + 64] = 1;", NULL, 0, NULL},
    {"if (l < 3 && tile[70] == 1) y[i] = 1;", NULL, 0, NULL},
    {"y[i] = select(l < 3, tile[70], 0);", NULL, 0, NULL},
    {"if (n > 3) return;\ntile[70] = 1;", NULL, 0, NULL},
    {"for (let k = 64u; k < 128; k++) tile[k] = 1;", NULL, 0, NULL},
    {"for (let k = 0u; k < 128; k++) tile[k] = 1;", NULL, 0, NULL},
    /* unreachable statements */
    {"y[i] = 1;\nreturn;", NULL, 0, NULL},
    {"return;\ny[i] = 1;", "V106", 10, "'return' at line 9"},
    {"if (n > 2) { return; } else { return; }\ny[i] = 1;", "V106", 10,
     "'if' at line 9"},
    {"for (let k = 0u; k < n; k++) {\nbreak;\ny[i] = 1;\n}", "V106", 11,
     "'break' at line 10"},
    {"for (let k = 0u; k < n; k++) {\nif (n > 2) continue;\ny[i] = 1;\n}", NULL,
     0, NULL},
    {"while (true) { y[i] = 1; }", NULL, 0, NULL},
    {"while (true) { y[i] = 1; }\ny[i] = 2;", NULL, 0, NULL},
    {"while (true) { if (n > 2) break; }\ny[i] = 2;", NULL, 0, NULL},
    {"{ return; }\ny[i] = 1;", "V106", 10, "line 9"},
};

static bool body_is_right(const body_case *c) {
  vyre_diagnostics found = {0};
  vyre_status st = {0};
  vyre_code code = check_text(kernel_text(c->body), &found, &st);
  const vyre_diagnostic *d = found.count ? &found.items[0] : NULL;
  bool good = c->rule
                  ? code == VYRE_INVALID_PROGRAM && found.count == 1 &&
                        strcmp(d->rule, c->rule) == 0 && d->line == c->line &&
                        strstr(d->message, c->message) && d->fix[0] &&
                        strstr(st.message, d->rule)
                  : code == VYRE_OK;
  if (!good) {
    printf("    %s\n    %s line %u: %s\n", c->body, d ? d->rule : "nothing",
           d ? d->line : 0, d ? d->message : st.message);
  }
  vyre_diagnostics_deinit(&found);
  return good;
}

TEST(judges_bodies) {
  for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
    CHECK(body_is_right(&bodies[i]));
  }
}

/* Full files. */
static const body_case files[] = {
    {"kernel k workgroup(1024) buffer y : write u32[] @0; { y[0] = 1; }", NULL,
     0, NULL},
    {"kernel k workgroup(1025) buffer y : write u32[] @0; { y[0] = 1; }",
     "V108", 1, "1025 x 1 x 1"},
    {"kernel k workgroup(65536, 65536, 65536) buffer y : write u32[] @0; { "
     "y[0] = 1; }",
     "V108", 1, "65536 x 65536 x 65536"},
    {"kernel k buffer y : read_write u32[] @0 output; { let a = y[0]; }",
     "V107", 1, "'y'"},
    {"kernel k buffer y : read_write u32[] @0; { let a = y[0]; }", NULL, 0,
     NULL},
    {"kernel k buffer y : read_write u32[] @0 output; { atomic_add(y[0], 1); }",
     NULL, 0, NULL},
    {"kernel k buffer y : write u32[] @0; shared a : f64[20000]; shared b : "
     "u8[200000]; { y[0] = 1; }",
     "V109", 1, "have 360000 bytes, 'b' alone 200000"},
    {"kernel k queue(u32) buffer y : read_write u32[] @0; { y[uniform(item)] = "
     "1; }",
     "V104", 1, "uniform in queue kernel 'k'"},
};

TEST(judges_files) {
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    const body_case *c = &files[i];
    vyre_diagnostics found = {0};
    vyre_status st = {0};
    vyre_code code = check_text(c->body, &found, &st);
    if (found.count != (c->rule != NULL)) printf("    %s\n", c->body);
    CHECK_U64(found.count, c->rule != NULL);
    CHECK(code == (c->rule ? VYRE_INVALID_PROGRAM : VYRE_OK));
    if (c->rule) CHECK_TEXT(found.items[0].rule, c->rule);
    if (c->rule) CHECK_HAS(found.items[0].message, c->message);
    vyre_diagnostics_deinit(&found);
  }
}

TEST(reports_all_findings_in_order) {
  vyre_diagnostics found = {0};
  vyre_status st = {0};
  CHECK(check_text(kernel_text("if (l > 2) { barrier(); }\n"
                               "tile[99] = 1;\n"
                               "if (l > 3) { y[0] = uniform(l); }\n"
                               "return;\n"
                               "y[0] = 1;"),
                   &found, &st) == VYRE_INVALID_PROGRAM);
  CHECK_U64(found.count, 4);
  static const char *const rules[] = {"V100", "V105", "V101", "V106"};
  for (size_t i = 0; i < 4; i++) CHECK_TEXT(found.items[i].rule, rules[i]);
  CHECK_HAS(st.message, "V100");
  CHECK_HAS(st.message, "test.vyre:9:");
  vyre_diagnostics_deinit(&found);
}

/* A body that breaks V101, where its note points, its fix, and the body after
 * the fix was followed to the letter. */
typedef struct fix_case {
  const char *body;
  uint32_t note_line;
  const char *fix, *fixed;
} fix_case;

static const fix_case uniform_fixes[] = {
    {"for (let a = 0u; a < 4; a++) {\n"
     "if (y[i] % 4 == a) continue;\n"
     "if (uniform(y[i]) > 1000) break;\n"
     "y[i] += a + 1;\n}",
     10,
     "move the 'break' at line 11 with its condition, and this uniform(), "
     "before the 'continue' at line 10",
     "for (let a = 0u; a < 4; a++) {\n"
     "if (uniform(y[i]) > 1000) break;\n"
     "if (y[i] % 4 == a) continue;\n"
     "y[i] += a + 1;\n}"},
    {"for (let a = 0u; a < 4; a++) {\n"
     "let u = uniform(y[i]);\n"
     "if (y[i] % 4 == a) continue;\n"
     "if (u > 1000) break;\n"
     "y[i] += a + 1;\n}",
     11,
     "move the 'break' at line 12 with its condition before the 'continue' "
     "at line 11",
     "for (let a = 0u; a < 4; a++) {\n"
     "let u = uniform(y[i]);\n"
     "if (u > 1000) break;\n"
     "if (y[i] % 4 == a) continue;\n"
     "y[i] += a + 1;\n}"},
    {"for (let a = 0u; a < 4; a++) {\n"
     "if (y[i] % 4 == a) continue;\n"
     "y[i] += uniform(i);\n}",
     10, "compute the uniform() before the 'continue' at line 10",
     "for (let a = 0u; a < 4; a++) {\n"
     "let u = uniform(i);\n"
     "if (y[i] % 4 == a) continue;\n"
     "y[i] += u;\n}"},
    {"for (let a = 0u; a < 4; a++) {\n"
     "if (y[i] % 4 == a) break;\n"
     "y[i] += uniform(i);\n}",
     10, "set a variable instead of the 'break' at line 10",
     "var done = false;\n"
     "for (let a = 0u; a < 4; a++) {\n"
     "if (y[i] % 4 == a) done = true;\n"
     "let u = uniform(i);\n"
     "if (!done) y[i] += u;\n}"},
    {"for (let a = 0u; a < 4; a++) {\n"
     "y[i] += uniform(i);\n"
     "if (y[i] % 4 == a) return;\n}",
     11, "set a variable instead of the 'return' at line 11",
     "var done = false;\n"
     "for (let a = 0u; a < 4; a++) {\n"
     "let u = uniform(i);\n"
     "if (!done) y[i] += u;\n"
     "if (y[i] % 4 == a) done = true;\n}"},
    {"if (l > 3) return;\ny[i] = uniform(i);", 9,
     "compute the uniform() before the 'return' at line 9",
     "let u = uniform(i);\nif (l > 3) return;\ny[i] = u;"},
    {"if (l > 3) {\ny[i] = uniform(i);\n}", 9,
     "compute the uniform() before the 'if' at line 9",
     "let u = uniform(i);\nif (l > 3) {\ny[i] = u;\n}"},
    {"if (l > 3 && uniform(i) > 2) y[i] = 1;", 9,
     "compute the uniform() before the '&&' at line 9",
     "let u = uniform(i);\nif (l > 3 && u > 2) y[i] = 1;"},
};

TEST(fixes_for_uniform_work_literally) {
  for (size_t i = 0; i < sizeof uniform_fixes / sizeof uniform_fixes[0]; i++) {
    const fix_case *c = &uniform_fixes[i];
    vyre_diagnostics found = {0};
    vyre_status st = {0};
    CHECK(check_text(kernel_text(c->body), &found, &st) ==
          VYRE_INVALID_PROGRAM);
    CHECK_U64(found.count, 1);
    CHECK_TEXT(found.items[0].rule, "V101");
    CHECK_U64(found.items[0].note_line, c->note_line);
    CHECK_HAS(found.items[0].fix, c->fix);
    vyre_diagnostics_deinit(&found);
    CHECK(check_text(kernel_text(c->fixed), NULL, &st) == VYRE_OK);
  }
}

/* Conditions that stand for very many others, by definitions or by nesting,
 * and jumps out of a loop with many changes. Without limits on the work, each
 * of these would take very long or all memory. */
TEST(hostile_guards_are_judged_in_bounded_work) {
  enum { SIZE = 4 << 20 };
  char *text = malloc(SIZE);
  CHECK(text);
  for (int shape = 0; shape < 5; shape++) {
    char *to = text;
    to += sprintf(to,
                  "kernel k workgroup(64)\nbuffer y : read_write u32[] @0;\n"
                  "{\nlet i = global_id.x;\nlet b0 = i < 4;\n");
    int lines = shape == 0 ? 60 : shape == 1 ? 60000 : shape == 4 ? 6000 : 50;
    if (shape == 0 || shape == 1) { /* doubling, and a long chain */
      for (int n = 1; n <= lines; n++) {
        to += shape == 0
                  ? sprintf(to, "let b%d = b%d && b%d;\n", n, n - 1, n - 1)
                  : sprintf(to, "let b%d = b%d & (i < 9);\n", n, n - 1);
      }
      to += sprintf(to, "if (b%d) y[i] = 1;\n", lines);
    } else if (shape < 4) { /* nesting */
      to += sprintf(to, "y[0] = u32(");
      for (int n = 0; n < lines; n++) {
        to += sprintf(to, shape == 2 ? "select(" : "((");
      }
      to += sprintf(to, "b0");
      for (int n = 0; n < lines; n++) {
        to += sprintf(to, shape == 2 ? ", i, 5) < 9" : ") == b0) && b0");
      }
      to += sprintf(to, ");\n");
    } else { /* jumps */
      to += sprintf(to, "var x = 0u;\nwhile (x < 5) {\n");
      for (int n = 0; n < lines; n++) to += sprintf(to, "x = 1;\n");
      for (int n = 0; n < lines; n++) to += sprintf(to, "if (x == 1) break;\n");
      to += sprintf(to, "}\n");
    }
    sprintf(to, "y[1] = 2;\n}\n");
    vyre_diagnostics found = {0};
    vyre_status st = {0};
    CHECK_OK(check_text(text, &found, &st), st);
    vyre_diagnostics_deinit(&found);
  }
  free(text);
}

/* A chain of functions is valid; one that multiplies or nests too deep is
 * not. */
TEST(inlining_has_a_size_limit) {
  char text[32768];
  size_t at = (size_t)sprintf(text, "fn g0(x: u32) -> u32 { return x; }\n");
  for (int i = 1; i < 120; i++) {
    at += (size_t)sprintf(
        text + at, "fn g%d(x: u32) -> u32 { return g%d(x) + 1; }\n", i, i - 1);
  }
  sprintf(text + at,
          "kernel k buffer y : write u32[] @0; { y[0] = g119(3u); }\n");
  vyre_diagnostics found = {0};
  vyre_status st = {0};
  CHECK_OK(check_text(text, &found, &st), st);

  at = (size_t)sprintf(text, "fn g0(x: u32) -> u32 { return x; }\n");
  for (int i = 1; i < 120; i++) {
    at += (size_t)sprintf(text + at,
                          "fn g%d(x: u32) -> u32 { for (let k = 0u; k < x; "
                          "k++) { if (g%d(x) > k) return k; } return x; }\n",
                          i, i - 1);
  }
  sprintf(text + at,
          "kernel k buffer y : write u32[] @0; { y[0] = g119(3u); }\n");
  CHECK(check_text(text, &found, &st) == VYRE_INVALID_PROGRAM);
  CHECK_U64(found.count, 1);
  CHECK_TEXT(found.items[0].rule, "V110");
  vyre_diagnostics_deinit(&found);
}

TEST(needs_no_diagnostics) {
  vyre_module *module = parse_module(kernel_text("if (l > 2) { barrier(); }"));
  vyre_status st = {0};
  CHECK_FAILS(vyre_program_validate(vyre_module_kernel(module, 0), NULL, &st),
              st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM);
  CHECK(vyre_program_validate(vyre_module_kernel(module, 0), NULL, NULL) ==
        VYRE_INVALID_PROGRAM);
  st = (vyre_status){0};
  CHECK_FAILS(vyre_program_validate(NULL, NULL, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_INVALID_ARGUMENT);
  vyre_module_release(module);
}

TEST(names_the_kernel_where_there_is_no_source) {
  vyre_status st = {0};
  vyre_builder *b;
  vyre_program *program;
  CHECK_OK(vyre_builder_create("k", (vyre_allocator){0}, &b, &st), st);
  vyre_build_if(
      b, vyre_build_binary(b, VYRE_OP_GT, vyre_build_id(b, VYRE_OP_LOCAL_ID, 0),
                           vyre_build_u32(b, 2)));
  vyre_build_barrier(b);
  vyre_build_end(b);
  CHECK_OK(vyre_builder_build(b, &program, &st), st);
  CHECK_FAILS(vyre_program_validate(program, NULL, &st), st,
              VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM);
  CHECK_HAS(st.message, "kernel 'k': not all invocations");
  vyre_program_release(program);
  vyre_builder_release(b);
}

TEST(checks_buffers_without_a_body) {
  vyre_buffer_decl buffers[] = {
      {.name = "a", .binding = 1, .element = VYRE_ELEMENT_U32},
      {.name = "b", .binding = 1, .element = VYRE_ELEMENT_U32}};
  vyre_program_desc desc = {buffers, 2, {64, 1, 1}};
  vyre_program *program = NULL;
  vyre_status st = {0};
  CHECK_OK(vyre_program_create(&desc, (vyre_allocator){0}, &program, &st), st);
  CHECK_FAILS(vyre_program_validate(program, NULL, &st), st,
              VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM);
  vyre_program_release(program);
  buffers[1].binding = 2;
  st = (vyre_status){0};
  CHECK_OK(vyre_program_create(&desc, (vyre_allocator){0}, &program, &st), st);
  CHECK_OK(vyre_program_validate(program, NULL, &st), st);
  vyre_program_release(program);
}

static const char sweep_text[] =
    "fn f(v: u32) -> u32 { if (v > 3) return 7; return v * 2; }\n"
    "kernel k workgroup(64) over(y)\n"
    "buffer y : read_write u32[] @0;\nuniform n : u32 @1;\n"
    "shared tile : u32[64];\n"
    "{\n    let l = local_id.x;\n    var a = f(l);\n"
    "    for (let k = 0u; k < n; k++) {\n"
    "        if (a > 3) { a = k; barrier(); } else { a += l; }\n"
    "        if (l == k) break;\n        tile[99] = a;\n    }\n"
    "    if (a < len(y)) y[a] = tile[l];\n}\n";

/* Parses and validates, with diagnostics, under a failing allocator. */
static vyre_code sweep_scenario(vyre_allocator allocator, vyre_status *st) {
  vyre_module *module = NULL;
  vyre_diagnostics found = {.arena.allocator = allocator};
  vyre_code code = vyre_module_parse(sweep_text, sizeof sweep_text - 1, "",
                                     allocator, &module, &found, st);
  if (code == VYRE_OK) {
    code = vyre_program_validate(vyre_module_kernel(module, 0), &found, st);
    if (code == VYRE_INVALID_PROGRAM) code = VYRE_OK;
  }
  vyre_diagnostics_deinit(&found);
  vyre_module_release(module);
  return code;
}

TEST(survives_running_out_of_memory) {
  CHECK(sweep_allocations(sweep_scenario) > 5);
}

TEST_MAIN(TEST_ENTRY(hostile_guards_are_judged_in_bounded_work),
          TEST_ENTRY(every_rule_has_examples_that_are_right),
          TEST_ENTRY(judges_bodies), TEST_ENTRY(judges_files),
          TEST_ENTRY(reports_all_findings_in_order),
          TEST_ENTRY(fixes_for_uniform_work_literally),
          TEST_ENTRY(inlining_has_a_size_limit),
          TEST_ENTRY(needs_no_diagnostics),
          TEST_ENTRY(names_the_kernel_where_there_is_no_source),
          TEST_ENTRY(checks_buffers_without_a_body),
          TEST_ENTRY(survives_running_out_of_memory))
