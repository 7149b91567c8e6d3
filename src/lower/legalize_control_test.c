/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared memory that need not be zeroed: every element is written before any
 * is read. */
#include "vyre/vyre.h"

#include "lir/lir.h"
#include "support/check.h"

/* A tile has one element per invocation. */
#define HEAD                                                           \
  "kernel k workgroup(8)\nbuffer x : read u32[] @0;\nbuffer y : write" \
  " u32[] @1;\nuniform n : u32 @2;\nshared tile : u32[8];\n{ let t = " \
  "local_id.x;\n"
#define USE "tile[t] = x[t]; barrier(); y[t] = tile[7 - t];"

static const struct {
  const char *text;
  bool needs_zero;
} cases[] = {
    {HEAD USE "}", false},
    {HEAD "if (n == 0) return; " USE "}", false},
    {HEAD "if (workgroup_id.x >= min(n, len(x)) / 2) return; " USE "}", false},
    {HEAD "if (n == 0) return; if (n > grid_size.x) return; " USE "}", false},
    {HEAD "if (n > 0) { " USE " } }", false},
    {HEAD "for (let i = 0u; i < n; i++) { " USE " barrier(); } }", false},
    /* not all invocations store */
    {HEAD "if (t < n) return; tile[t] = 1; y[t] = tile[7 - t]; }", true},
    {HEAD "if (x[t] == 0) return; tile[t] = 1; y[t] = tile[7 - t]; }", true},
    {HEAD "if (t < n) { tile[t] = 1; } y[t] = tile[7 - t]; }", true},
    {HEAD "if (t < n) { tile[t] = 1; y[t] = tile[7 - t]; } }", true},
    {HEAD "if (n > 0) { if (t < n) return; } tile[t] = 1; y[t] = tile[7 - t]; "
          "}",
     true},
    {HEAD "for (let i = 0u; i < n; i++) { if (t == i) return; } tile[t] = 1; "
          "y[t] = tile[7 - t]; }",
     true},
    /* memory that decides may change between two invocations */
    {HEAD "if (x[0] == 0) return; " USE "}", true},
    {HEAD "if (x[0] == 0) return; tile[t] = 1; y[t] = tile[7 - t]; }", true},
    /* the other path reads zeros */
    {HEAD "if (n > 0) { tile[t] = 1; } barrier(); y[t] = tile[7 - t]; }", true},
    {HEAD "if (n > 0) { tile[t] = 1; } else { y[t] = tile[t]; } }", true},
    /* not every element, or not first */
    {HEAD "if (n == 0) return; tile[t / 2] = 1; barrier(); y[t] = tile[t]; }",
     true},
    {HEAD "if (n == 0) return; y[t] = tile[t]; tile[t] = 1; }", true},
};

TEST(shared_memory_that_is_written_first_is_not_zeroed) {
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    const vyre__lir_kernel *kernel;
    vyre_module *module;
    vyre_arena arena;
    vyre_status st = {0};
    CHECK_OK(vyre_module_parse(cases[c].text, strlen(cases[c].text), "k",
                               (vyre_allocator){0}, &module, NULL, &st),
             st);
    vyre_arena_init(&arena, (vyre_allocator){0});
    CHECK_OK(
        vyre__lower(vyre_module_kernel(module, 0), NULL,
                    VYRE__PASS_LEGALIZE_CONTROL, &arena, &kernel, NULL, &st),
        st);
    bool needs_zero = kernel->buffers[3].needs_zero;
    if (needs_zero != cases[c].needs_zero) printf("    %s\n", cases[c].text);
    CHECK(needs_zero == cases[c].needs_zero);
    vyre_arena_deinit(&arena);
    vyre_module_release(module);
  }
}

TEST_MAIN(TEST_ENTRY(shared_memory_that_is_written_first_is_not_zeroed))
