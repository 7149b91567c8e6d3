/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks which kernels may run with another workgroup size. */
#include "analyze/workgroup_size.h"

#include "support/analysis.h"
#include "support/check.h"

typedef struct size_case {
  const char *body;
  const char *why; /* part of the reason; NULL: any size will do */
} size_case;

#define GUARD "that no comparison"

static const size_case cases[] = {
    {"if (i < len(y)) y[i] = x[i];", NULL},
    {"if (i >= len(y)) return; y[i] = x[i];", NULL},
    {"if (i >= len(y)) { return; } for (let k = 0u; k < n; k++) y[i] += k;",
     NULL},
    {"if (len(y) > i && n > 2) { y[i] = x[i]; }", NULL},
    {"if (!(i < len(y))) return; atomic_add(y[0], 1);", NULL},
    {"if (n == 0 || i >= len(y)) return; atomic_add(y[0], 1);", NULL},
    {"if (i < min(len(x), len(y))) atomic_add(y[0], 1);", NULL},
    {"let m = min(len(y), n); if (i < m) atomic_add(y[0], 1);", NULL},
    {"let ok = i < len(y); if (ok) atomic_add(y[0], 1);", NULL},
    {"if (i >= len(y)) { } else { atomic_add(y[0], 1); }", NULL},
    {"if (n > 3) { if (i >= len(y)) return; } else { return; } y[0] = n;",
     NULL},
    {"let v = x[i] * 2; if (i < len(y)) y[i] = v;", NULL},
    /* a store outside the buffer is dropped */
    {"y[i] = x[i] + n;", NULL},
    {"y[global_id.x] = n;", NULL},

    {"y[0] = n;", GUARD},
    {"y[i / 2] = n;", GUARD},
    {"atomic_add(y[i], 1);", GUARD},
    {"y[i] = atomic_add(y[0], 1);", GUARD},
    {"if (atomic_add(y[0], 1) < 3) { return; } ", GUARD},
    {"if (i < len(x)) y[0] = 1;", GUARD},
    {"if (i <= len(y)) y[0] = 1;", GUARD},
    {"if (i < len(y) || n > 2) y[0] = 1;", GUARD},
    {"if (i < max(len(x), len(y))) y[0] = 1;", GUARD},
    {"if (i < len(y) + 1) y[0] = 1;", GUARD},
    {"if (i < n) y[0] = 1;", GUARD},
    {"if (i > len(y)) return; y[0] = 1;", GUARD},
    {"if (i >= len(y) && n > 2) return; y[0] = 1;", GUARD},
    {"if (i < len(y)) { y[i] = 1; } else { y[0] = 2; }", GUARD},
    {"var j = global_id.x; j = 0; if (j < len(y)) atomic_add(y[0], 1);", GUARD},
    {"if (global_id.y < len(y)) y[0] = 1;", GUARD},
    /* an invocation past the end could run out of fuel */
    {"var s = 0u; while (s < n) { s += x[0]; } if (i < len(y)) y[i] = s;",
     GUARD},
    {"for (let k = 0u; k < n; k++) { } ", GUARD},

    {"if (i < len(y)) y[i] = local_id.x;", "local_id"},
    {"if (i < len(y)) y[i] = workgroup_id.x;", "workgroup_id"},
    {"if (i < len(y)) y[i] = workgroup_size.x;", "workgroup_size"},
    {"if (i < len(y)) y[i] = grid_size.x;", "grid_size"},
    {"if (i < len(y)) y[i] = n; barrier();", "barrier"},
    {"if (i < len(y)) y[i] = n; grid_barrier();", "barrier"},
    {"let u = uniform(n); if (i < len(y)) y[i] = u;", "barrier"},
    {"if (i < len(y)) print(i);", "prints"},
};

static const char head[] =
    "kernel k workgroup(64) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "uniform n : u32 @2;\n"
    "{ let i = global_id.x;\n";

static const char *reason_of(const char *text) {
  vyre_arena arena = {0};
  vyre_status st = {0};
  const char *why = NULL;
  vyre_module *module = parse_module(text);
  CHECK_OK(vyre__workgroup_size_matters(vyre_module_kernel(module, 0), &arena,
                                        &why, &st),
           st);
  vyre_arena_deinit(&arena);
  vyre_module_release(module);
  return why;
}

TEST(only_kernels_that_do_not_depend_on_the_size_are_accepted) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[1024];
    snprintf(text, sizeof text, "%s%s\n}\n", head, cases[i].body);
    const char *why = reason_of(text);
    bool is_right = cases[i].why ? why && strstr(why, cases[i].why) : !why;
    if (!is_right)
      printf("    %s: %s\n", cases[i].body, why ? why : "accepted");
    CHECK(is_right);
  }
}

TEST(properties_of_the_program_count_too) {
  CHECK_HAS(reason_of("kernel k workgroup(64)\nbuffer y : write u32[] @0;\n"
                      "{ let i = global_id.x; if (i < len(y)) y[i] = 1; }\n"),
            "no over");
  CHECK_HAS(reason_of("kernel k workgroup(8, 8) over(y)\n"
                      "buffer y : write u32[] @0;\n"
                      "{ let i = global_id.x; if (i < len(y)) y[i] = 1; }\n"),
            "more than one dimension");
  CHECK_HAS(
      reason_of("kernel k workgroup(64) over(y)\n"
                "buffer y : write u32[] @0;\nshared t : u32[4];\n"
                "{ let i = global_id.x; if (i < len(y)) y[i] = t[0]; }\n"),
      "shared memory");
}

/* Each local doubles the paths through those before it. */
TEST(shared_locals_do_not_multiply_the_paths) {
  enum { LOCALS = 60 };
  char text[8192];
  size_t at = (size_t)snprintf(text, sizeof text, "%slet b0 = i > n;\n", head);
  for (int k = 1; k <= LOCALS; k++) {
    at += (size_t)snprintf(text + at, sizeof text - at,
                           "let b%d = b%d && (i > %d && b%d);\n", k, k - 1, k,
                           k - 1);
    CHECK(at < sizeof text);
  }
  (void)snprintf(text + at, sizeof text - at, "if (b%d) y[0] = 1;\n}\n",
                 (int)LOCALS);
  CHECK_HAS(reason_of(text), GUARD);
}

/* Functions are followed: one may loop, or have an effect. */
TEST(functions_are_followed) {
  CHECK(reason_of("fn twice(v: u32) -> u32 { return v * 2; }\n"
                  "kernel k workgroup(64) over(y)\n"
                  "buffer y : write u32[] @0;\n"
                  "{ let i = global_id.x; let v = twice(i);\n"
                  "  if (i < len(y)) y[i] = v; }\n") == NULL);
  CHECK_HAS(reason_of("fn sum(v: u32) -> u32 { var s = 0u;\n"
                      "  for (let k = 0u; k < v; k++) s += k; return s; }\n"
                      "kernel k workgroup(64) over(y)\n"
                      "buffer y : write u32[] @0;\n"
                      "{ let i = global_id.x; let v = sum(i);\n"
                      "  if (i < len(y)) y[i] = v; }\n"),
            GUARD);
}

TEST_MAIN(TEST_ENTRY(only_kernels_that_do_not_depend_on_the_size_are_accepted),
          TEST_ENTRY(properties_of_the_program_count_too),
          TEST_ENTRY(shared_locals_do_not_multiply_the_paths),
          TEST_ENTRY(functions_are_followed))
