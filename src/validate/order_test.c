/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/validate.h"

#include "support/check.h"
#include "support/parse.h"

/* Buffers of all cases; the body begins at line 7. */
#define BUFFERS                       \
  "buffer x : read u32[] @0;\n"       \
  "buffer y : read_write u32[] @1;\n" \
  "buffer z : read_write u32[] @2;\n" \
  "uniform n : u32 @3;\n"             \
  "{\n"

typedef struct order_case {
  const char *head, *body;
  unsigned line; /* of the body, from 1; 0: proven */
} order_case;

#define SET  "queue(u32) set(n)"
#define ONCE "queue(u32) once(n)"
#define LIST "queue(u32) pushes(9)"
#define ANY  "queue(u32) any pushes(9)"

static const order_case planted[] = {
    {LIST, "y[0] = item;", 1},
    {LIST, "let i = item_index;\ny[item] = i;", 2},
    {SET, "y[x[item]] = window;", 1},
    {SET, "y[item] = 1;\ny[item + 1] = 2;", 2},
    {SET, "let a = atomic_add(y[0], 1);\npush(a);", 1},
    {SET, "if (atomic_min(y[x[item]], item) > item)\n  push(x[item]);", 1},
    {SET, "atomic_max(y[x[item]], item);\nif (y[item] > 3) push(1);", 2},
    {SET, "y[item] = 5;\nlet a = y[x[item]];\npush(a);", 2},
    {ONCE, "z[item] = atomic_add(y[0], 1);", 1},
    {ONCE, "atomic_exchange(y[x[item]], item);", 1},
    {ONCE, "atomic_store(y[0], item);", 1},
    {ONCE, "atomic_store(y[0], 1);\natomic_store(y[0], 2);", 2},
    {ONCE, "atomic_add(y[0], 1);\natomic_max(y[1], item);", 2},
    {ONCE, "y[item] = 1;\natomic_add(y[x[item]], 1);", 1},
    {ONCE, "atomic_add(y[x[item]], 1);\nz[item] = atomic_load(y[item]);", 2},
    {ONCE, "atomic_compare_exchange(y[x[item]], 0, item);", 1},
    {ANY, "y[item] = 1;", 1},
    {ANY, "if (atomic_or(y[0], 1) == 0)\n  push(3);", 1},
    {LIST, "y[item_index] = item;\npush(y[item_index + 1]);", 2},
    {LIST, "y[item_index + 1] = item;\ny[item_index + 2] = item;", 2},
    {SET, "var i = item;\ni = i / 2;\ny[i] = window;", 3},
    {SET, "for (let k = 0u; k < 3; k++)\n  y[item + k] = 1;", 2},
    {SET, "y[item & 15] = 1;", 1},
    {ONCE, "y[item * 2] = 1;", 1},
};

static const order_case similar[] = {
    {LIST, "y[item_index] = item;", 0},
    {LIST, "let i = item_index;\ny[i] = item;\nz[i] = y[i];", 0},
    {SET, "y[item] = window;", 0},
    {SET, "y[item + 1] = 1;\nz[item + 1] = y[item + 1];", 0},
    {SET, "let a = x[item];\npush(a);", 0},
    {SET, "atomic_min(y[x[item]], item);\npush(x[item]);", 0},
    {SET, "atomic_max(y[x[item]], item);\nif (z[item] > 3) push(1);", 0},
    {SET, "y[item] = 5;\nlet a = y[item];\npush(a);", 0},
    {ONCE, "z[item] = atomic_add(y[item], 1);", 0},
    {ONCE, "atomic_exchange(y[item], x[item]);", 0},
    {ONCE, "atomic_store(y[x[item]], 1);", 0},
    {ONCE, "atomic_store(y[0], 1);\natomic_store(y[1], 1);", 0},
    {ONCE, "atomic_add(y[0], 1);\natomic_add(y[1], item);", 0},
    {ONCE, "y[item] = 1;\natomic_add(z[x[item]], 1);", 0},
    {ONCE, "z[item] = atomic_load(y[item]);", 0},
    {ONCE, "y[item] = atomic_compare_exchange(z[item], 0, item);", 0},
    {ANY, "atomic_add(y[0], item);", 0},
    {ANY, "if (x[item] == 0)\n  push(3);", 0},
    {LIST, "y[item_index] = item;\npush(x[item_index + 1]);", 0},
    {LIST, "y[item_index + 1] = item;\ny[item_index + 1] = item + 1;", 0},
    {SET, "let i = item;\nlet j = i + 2;\ny[j] = window;", 0},
    {SET, "for (let k = 0u; k < 3; k++)\n  y[item] += k;", 0},
    {ONCE, "for (let e = x[item]; e < x[item + 1]; e++) push(x[e]);", 0},
    {SET, "let ok = push(n);\ny[item] = select(ok, 1u, 2u);", 0},
};

/* Checks the proof of one case. Returns false after printing a difference. */
static bool check_case(const order_case *c) {
  enum { BODY_LINE = 7 };
  char text[1024];
  snprintf(text, sizeof text, "kernel k %s\n" BUFFERS "%s\n}\n", c->head,
           c->body);
  vyre_module *module = parse_module(text);
  vyre_program *program = vyre_module_kernel(module, 0);
  vyre_diagnostics found = {0};
  vyre_order_proof proof;
  vyre_status st = {0};
  CHECK_OK(vyre_program_validate(program, NULL, &st), st);
  CHECK_OK(vyre_program_prove_order(program, &proof, &found, &st), st);
  const unsigned line = found.count ? found.items[0].line : 0;
  const unsigned wanted = c->line ? c->line + BODY_LINE - 1 : 0;
  const bool good = proof.is_queue && proof.is_proven == (c->line == 0) &&
                    line == wanted &&
                    (!line || (found.items[0].fix[0] && found.items[0].length));
  if (!good) {
    printf("    %s\n    line %u, not %u: %s\n", text, line, wanted,
           found.count ? found.items[0].message : "proven");
  }
  vyre_diagnostics_deinit(&found);
  vyre_module_release(module);
  return good;
}

TEST(planted_dependences_are_found_by_line) {
  bool good = true;
  for (size_t i = 0; i < sizeof planted / sizeof planted[0]; i++) {
    good = check_case(&planted[i]) && good;
  }
  CHECK(good);
}

TEST(similar_kernels_are_proven) {
  bool good = true;
  for (size_t i = 0; i < sizeof similar / sizeof similar[0]; i++) {
    good = check_case(&similar[i]) && good;
  }
  CHECK(good);
}

TEST(a_pull_body_is_proven_too) {
  static const char text[] =
      "kernel k queue(u32) once(n)\n" BUFFERS
      "    z[item] = window;\n    push(x[item]);\n}\n"
      "pull {\n    if (in_window(x[item])) push(item);\n%s}\n";
  static const char *const more[] = {"    y[item] = 1;\n",
                                     "    y[0] = item;\n"};
  for (int i = 0; i < 2; i++) {
    char whole[1024];
    snprintf(whole, sizeof whole, text, more[i]);
    vyre_module *module = parse_module(whole);
    vyre_order_proof proof;
    vyre_status st = {0};
    CHECK_OK(vyre_program_prove_order(vyre_module_kernel(module, 0), &proof,
                                      NULL, &st),
             st);
    CHECK(proof.is_proven == (i == 0));
    vyre_module_release(module);
  }
}

TEST(other_kernels_are_not_judged) {
  vyre_module *module = parse_module(
      "kernel k over(y)\nbuffer y : write u32[] @0;\n{ y[0] = global_id.x; }");
  vyre_order_proof proof;
  vyre_status st = {0};
  CHECK_OK(vyre_program_prove_order(vyre_module_kernel(module, 0), &proof, NULL,
                                    &st),
           st);
  CHECK(!proof.is_queue && !proof.is_proven);
  CHECK(vyre_program_prove_order(NULL, &proof, NULL, NULL) ==
        VYRE_INVALID_ARGUMENT);
  vyre_module_release(module);
}

TEST_MAIN(TEST_ENTRY(planted_dependences_are_found_by_line),
          TEST_ENTRY(similar_kernels_are_proven),
          TEST_ENTRY(a_pull_body_is_proven_too),
          TEST_ENTRY(other_kernels_are_not_judged))
