/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#include "vyre/validate.h"

#include "support/analysis.h"
#include "support/check.h"

/* A body, and the location of its error; rule NULL: no error. */
typedef struct flow_case {
  const char *body;
  const char *rule;
  uint32_t line, other_line;
} flow_case;

#define OK NULL, 0, 0

static const flow_case cases[] = {
    /* conditions */
    {"barrier();", OK},
    {"if (l < 3) { barrier(); }", "V100", 9, 9},
    {"if (n < 3) { barrier(); }", OK},
    {"if (i < n) {\n tile[l] = 1;\n barrier();\n}", "V100", 11, 9},
    {"if (workgroup_id.x < n) { barrier(); }", OK},
    {"if (len(y) > 7) { barrier(); }", OK},
    {"if (grid_size.x > 7) { barrier(); } else { barrier(); }", OK},
    {"if (n > 7) {\n y[i] = 1;\n} else if (l > 2) {\n barrier();\n}", "V100",
     12, 11},
    {"if (x[3] > 7) { barrier(); }", OK},
    {"if (x[workgroup_id.x] > 7) { barrier(); }", OK},
    {"if (x[l] > 7) { barrier(); }", "V100", 9, 9},
    {"if (y[3] > 7) { barrier(); }", "V100", 9, 9},
    {"if (tile[3] > 7) { barrier(); }", "V100", 9, 9},
    {"if (uniform(tile[3]) > 7) { barrier(); }", OK},
    {"if (atomic_add(y[0], 1) == 0) { barrier(); }", "V100", 9, 9},
    {"if (uniform(atomic_add(y[0], 1)) == 0) { barrier(); }", OK},
    {"if (select(l > 3, n, n) > 2) { barrier(); }", "V100", 9, 9},
    {"if (n > 2 && x[0] > 2) { barrier(); }", OK},
    {"if (n > 2 || l > 2) { barrier(); }", "V100", 9, 9},
    /* locals */
    {"let a = n + 1;\nlet b = a * 2;\nif (b > 2) { barrier(); }", OK},
    {"let a = l + 1;\nlet b = a * 2;\nif (b > 2) { barrier(); }", "V100", 11,
     11},
    {"var a = l;\na = n;\nif (a > 2) { barrier(); }", OK},
    {"var a = n;\na = l;\nif (a > 2) { barrier(); }", "V100", 11, 11},
    {"var a = n;\nif (l > 2) a = 7;\nif (a > 2) { barrier(); }", "V100", 11,
     11},
    {"var a = n;\nif (n > 2) a = 7;\nif (a > 2) { barrier(); }", OK},
    {"var a = l;\nif (n > 2) a = 7; else a = 8;\nif (a > 2) { barrier(); }",
     OK},
    {"var a = l;\nif (n > 2) a = 7;\nif (a > 2) { barrier(); }", "V100", 11,
     11},
    {"var a = n;\nif (n > 2) a = l; else a = 8;\nif (a > 2) { barrier(); }",
     "V100", 11, 11},
    {"var a = l;\nif (n > 2) { return; } else { a = 8; }\n"
     "if (a > 2) { barrier(); }",
     OK},
    {"var a = n;\nif (n > 2) { a = l; return; }\nif (a > 2) { barrier(); }",
     OK},
    {"var a = l;\na = uniform(a);\nif (a > 2) { barrier(); }", OK},
    /* for */
    {"for (let k = 0u; k < n; k++) { barrier(); }", OK},
    {"for (let k = 0u; k < l; k++) { barrier(); }", "V100", 9, 9},
    {"for (let k = l; k < n; k++) { barrier(); }", "V100", 9, 9},
    {"for (let k = 0u; k < x[workgroup_id.x]; k++) { barrier(); }", OK},
    {"for (let k = 0u; k < n; k++) {\n if (k > 2) { barrier(); }\n}", OK},
    {"for (let k = 0u; k < l; k++) { y[i] = k; }\nbarrier();", OK},
    {"for (let k = 0u; k < n; k++) {\n if (l == k) break;\n barrier();\n}",
     "V100", 11, 10},
    {"for (let k = 0u; k < n; k++) {\n barrier();\n if (l == k) break;\n}",
     "V100", 10, 11},
    {"for (let k = 0u; k < n; k++) {\n if (l == k) break;\n}\nbarrier();", OK},
    {"for (let k = 0u; k < n; k++) {\n if (k == 3) break;\n barrier();\n}", OK},
    /* a lane that continues takes part in the next iteration */
    {"for (let k = 0u; k < n; k++) {\n barrier();\n if (l == k) continue;\n"
     " y[i] = k;\n}",
     OK},
    {"for (let k = 0u; k < n; k++) {\n if (l == k) continue;\n barrier();\n}",
     "V100", 11, 10},
    {"var k = 0u;\nwhile (k < n) {\n barrier();\n k++;\n"
     " if (l == k) continue;\n y[i] = k;\n}",
     OK},
    {"var k = 0u;\nwhile (k < n) {\n barrier();\n if (l == k) continue;\n"
     " k++;\n}",
     "V100", 11, 10},
    {"for (let k = 0u; k < n; k++) {\n if (l == k) continue;\n y[i] = k;\n}\n"
     "barrier();",
     OK},
    {"for (let k = 0u; k < n; k++) {\n if (n == k) continue;\n barrier();\n}",
     OK},
    {"for (let k = 0u; k < n; k++) {\n for (let j = 0u; j < l; j++) {\n"
     "  if (j > 7) break;\n }\n barrier();\n}",
     OK},
    {"for (let k = 0u; k < n; k++) {\n for (let j = 0u; j < n; j++) {\n"
     "  if (l > 7) return;\n }\n barrier();\n}",
     "V100", 13, 11},
    {"for (let k = 0u; k < n; k++) {\n barrier();\n"
     " for (let j = 0u; j < n; j++) {\n  if (l > 7) return;\n }\n}",
     "V100", 10, 12},
    {"var a = 0u;\nfor (let k = 0u; k < n; k++) {\n"
     " if (a > 3) { barrier(); }\n a = l;\n}",
     "V100", 11, 11},
    {"var a = 0u;\nfor (let k = 0u; k < n; k++) {\n"
     " if (a > 3) { barrier(); }\n a += k;\n}",
     OK},
    {"var a = 0u;\nvar b = 0u;\nvar c = 0u;\nfor (let k = 0u; k < n; k++) {\n"
     " if (a > 3) { barrier(); }\n a = b;\n b = c;\n c = l;\n}",
     "V100", 13, 13},
    {"var a = 0u;\nfor (let k = 0u; k < n; k++) {\n a = k;\n"
     " if (l == k) break;\n}\nif (a > 3) { barrier(); }",
     "V100", 14, 14},
    {"var a = 0u;\nfor (let k = 0u; k < n; k++) {\n a = l;\n"
     " if (n == k) break;\n a = 0;\n}\nif (a > 3) { barrier(); }",
     "V100", 15, 15},
    {"var a = 0u;\nfor (let k = 0u; k < n; k++) {\n a = l;\n"
     " if (n == k) continue;\n a = 0;\n}\nif (a > 3) { barrier(); }",
     "V100", 15, 15},
    {"var a = 0u;\nfor (let k = 0u; k < n; k++) {\n a = l;\n a = 0;\n}\n"
     "if (a > 3) { barrier(); }",
     OK},
    /* while */
    {"var s = 32u;\nwhile (s > 0) {\n if (l < s) tile[l] += tile[l + s];\n"
     " barrier();\n s /= 2;\n}",
     OK},
    {"var s = l;\nwhile (s > 0) {\n barrier();\n s /= 2;\n}", "V100", 11, 10},
    {"while (true) {\n barrier();\n if (uniform(y[0]) == 0) break;\n}", OK},
    {"while (true) {\n barrier();\n if (y[0] == 0) break;\n}", "V100", 10, 11},
    {"var more = true;\nwhile (more) {\n barrier();\n more = false;\n"
     " if (y[i] > 3) more = true;\n more = uniform(more);\n}",
     OK},
    {"var more = true;\nwhile (more) {\n barrier();\n more = false;\n"
     " if (y[i] > 3) more = true;\n}",
     "V100", 11, 10},
    {"while (uniform(y[0]) > 3) { y[i] = 1; }", OK},
    {"while (uniform(y[0]) > l) { y[i] = 1; }", "V101", 9, 9},
    /* return */
    {"if (i >= len(y)) return;\nbarrier();", "V100", 10, 9},
    {"if (n >= len(y)) return;\nbarrier();", OK},
    {"if (workgroup_id.x >= n) return;\nbarrier();", OK},
    {"if (n > 2) {\n if (l > 2) return;\n} else {\n barrier();\n}", OK},
    {"if (n > 2) {\n if (l > 2) return;\n} else {\n y[i] = 2;\n}\nbarrier();",
     "V100", 14, 10},
    /* uniform() */
    {"if (l < 3) { y[i] = uniform(n); }", "V101", 9, 9},
    {"if (n < 3) { y[i] = uniform(l); }", OK},
    {"if (uniform(l) < 3 && l > 3) y[i] = 1;", OK},
    {"if (l < 3 && uniform(l) > 3) y[i] = 1;", "V101", 9, 9},
    {"if (l < 3 || uniform(l) > 3) y[i] = 1;", "V101", 9, 9},
    {"y[i] = select(l < 3, uniform(l), 2u);", OK},
    /* grid_barrier */
    {"grid_barrier();", OK},
    {"for (let k = 0u; k < len(y); k++) { grid_barrier(); }", OK},
    {"let m = n * 2;\nfor (let k = 0u; k < m; k++) { grid_barrier(); }", OK},
    {"for (let k = 0u; k < x[0]; k++) { grid_barrier(); }", "V102", 9, 9},
    {"for (let k = 0u; k < workgroup_id.x; k++) { grid_barrier(); }", "V102", 9,
     9},
    {"let m = n * 2 + len(y);\nfor (let k = n; k < m; k++) { grid_barrier(); }",
     OK},
    {"for (let k = 0u; k < n; k++) {\n for (let j = k; j < n; j++) "
     "grid_barrier();\n}",
     OK},
    {"var m = 1u;\nwhile (m < n) m = m * 3;\n"
     "for (let k = 0u; k < m; k++) { grid_barrier(); }",
     "V102", 11, 11},
    {"var m = 1u;\nwhile (m < n) m = m * 3;\nlet e = m + 1;\n"
     "for (let k = 0u; k < e; k++) { grid_barrier(); }",
     "V102", 12, 12},
    {"if (n > 2) { grid_barrier(); }", "V102", 9, 9},
    {"while (n > 2) { grid_barrier(); }", "V102", 9, 9},
    {"{ grid_barrier(); }", OK},
    {"if (workgroup_id.x > 2) return;\ngrid_barrier();", "V103", 10, 9},
    {"if (n > 2) return;\ngrid_barrier();", OK},
    {"for (let k = 0u; k < n; k++) {\n if (workgroup_id.x == k) break;\n"
     " grid_barrier();\n}",
     "V103", 11, 10},
    {"for (let k = 0u; k < n; k++) {\n if (n == k + 2) break;\n"
     " grid_barrier();\n}",
     OK},
};

static void check_flow(const flow_case *c) {
  vyre_module *module = parse_module(kernel_text(c->body));
  vyre_diagnostics found = {0};
  vyre_status st = {0};
  vyre_code code =
      vyre_program_validate(vyre_module_kernel(module, 0), &found, &st);
  const vyre_diagnostic *d = found.count ? &found.items[0] : NULL;
  bool good = c->rule
                  ? code == VYRE_INVALID_PROGRAM && found.count == 1 &&
                        strcmp(d->rule, c->rule) == 0 && d->line == c->line &&
                        d->note && d->note_line == c->other_line && d->fix[0]
                  : code == VYRE_OK && found.count == 0;
  if (!good) {
    printf("    %s\n    wanted %s %u/%u, got %s %u/%u: %s\n", c->body,
           c->rule ? c->rule : "nothing", c->line, c->other_line,
           d ? d->rule : "nothing", d ? d->line : 0, d ? d->note_line : 0,
           st.message);
  }
  vyre_diagnostics_deinit(&found);
  vyre_module_release(module);
  CHECK(good);
}

TEST(finds_the_divergent_barriers_and_no_others) {
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    check_flow(&cases[i]);
  }
}

/* Returns the message of the first diagnostic of a body. */
static void first_message(const char *text, char out[512]) {
  vyre_module *module = parse_module(text);
  vyre_diagnostics found = {0};
  vyre_status st = {0};
  if (vyre_program_validate(vyre_module_kernel(module, 0), &found, &st) ==
      VYRE_OK) {
    st.message[0] = 0;
  }
  snprintf(out, 512, "%s", found.count ? found.items[0].message : "");
  vyre_diagnostics_deinit(&found);
  vyre_module_release(module);
}

TEST(says_why_a_value_varies) {
  static const struct {
    const char *body, *why;
  } whys[] = {
      {"let a = l * 2;\nif (a > 3) { barrier(); }",
       "the 'if' at line 10 depends on local_id.x at line 8"},
      {"if (i >= n) return;\nbarrier();",
       "some leave at the 'return' at line 9, because its 'if' depends "
       "on global_id.x at line 7"},
      {"if (tile[0] > 3) { barrier(); }",
       "depends on 'tile[...]' at line 9, which invocations may write"},
      {"var a = 1u;\nif (l > 3) a = 2;\nif (a > 1) { barrier(); }",
       "depends on which invocations take the 'if' at line 10"},
      {"for (let k = 0u; k < n; k++) {\nif (l == k) break;\nbarrier();\n}",
       "leave at the 'break' at line 10, because its 'if' depends on "
       "local_id.x at "
       "line 8"},
      {"for (let k = 0u; k < l; k++) { barrier(); }",
       "the 'for' at line 9 depends on local_id.x at line 8"},
      {"if (atomic_add(y[0], 1) > 3) { barrier(); }",
       "depends on atomic_add at line 9"},
      {"for (let k = 0u; k < n; k++) {\nif (x[0] > k) break;\n"
       "grid_barrier();\n}",
       "depends on 'x[...]' at line 10, which the host does not see"},
  };
  for (size_t i = 0; i < sizeof whys / sizeof whys[0]; i++) {
    char message[512];
    first_message(kernel_text(whys[i].body), message);
    CHECK_HAS(message, whys[i].why);
  }
}

TEST(sees_through_calls) {
  char message[512];
  static const char fns[] =
      "fn twice(v: u32) -> u32 { if (v > 3) return 7; return v * 2; }\n"
      "fn where() -> u32 { return local_id.x; }\n";
  char text[20000];
  snprintf(text, sizeof text, "%s%s", fns,
           kernel_text("if (twice(n) > 3) { barrier(); }"));
  first_message(text, message);
  CHECK_TEXT(message, "");
  snprintf(text, sizeof text, "%s%s", fns,
           kernel_text("if (twice(l) > 3) { barrier(); }"));
  first_message(text, message);
  CHECK_HAS(message, "local_id.x at line 10");
  snprintf(text, sizeof text, "%s%s", fns,
           kernel_text("if (where() > 3) { barrier(); }"));
  first_message(text, message);
  CHECK_HAS(message, "where()");
}

/* A chain that each iteration shifts by one link, and nested loops that are
 * walked again and again: both must end soon, with a safe result. */
TEST(analysis_of_long_chains_ends_early) {
  enum { LINKS = 2000 };
  char *text = malloc(LINKS * 64 + 4096);
  CHECK(text);
  size_t at = (size_t)sprintf(text, "%s", HEAD);
  for (int i = 0; i <= LINKS; i++) {
    at += (size_t)sprintf(text + at, "var v%d = 0u;\n", i);
  }
  at += (size_t)sprintf(text + at, "for (let k = 0u; k < n; k++) {\n");
  at += (size_t)sprintf(text + at, "if (v0 > 3) { barrier(); }\n");
  for (int i = 0; i < LINKS; i++) {
    at += (size_t)sprintf(text + at, "v%d = v%d;\n", i, i + 1);
  }
  sprintf(text + at, "v%d = l;\n}\n}\n", LINKS);
  char message[512];
  first_message(text, message);
  free(text);
  CHECK_HAS(message, "not all invocations of a workgroup reach this barrier");
}

TEST(walks_deep_nests_quickly) {
  enum { DEPTH = 80 };
  char text[16384];
  size_t at = (size_t)sprintf(text, "%svar a = 0u;\n", HEAD);
  for (int i = 0; i < DEPTH; i++) {
    at += (size_t)sprintf(text + at, "for (let k%d = 0u; k%d < n; k%d++) {\n",
                          i, i, i);
  }
  at += (size_t)sprintf(text + at, "if (a > 3) { barrier(); }\na += 1;\n");
  for (int i = 0; i <= DEPTH; i++) at += (size_t)sprintf(text + at, "}");
  char message[512];
  first_message(text, message);
  CHECK_TEXT(message, "");
}

TEST_MAIN(TEST_ENTRY(finds_the_divergent_barriers_and_no_others),
          TEST_ENTRY(says_why_a_value_varies), TEST_ENTRY(sees_through_calls),
          TEST_ENTRY(analysis_of_long_chains_ends_early),
          TEST_ENTRY(walks_deep_nests_quickly))
