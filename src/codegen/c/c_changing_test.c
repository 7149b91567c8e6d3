/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests that generated C stays within its buffers even if the bytes that it
 * reads change after every access. The system compiler optimises the code,
 * including its loads. */
#define _GNU_SOURCE /* for changing_page_testing.h; NOLINT(bugprone-reserved-identifier) */
#include "vyre/module.h"

#include "codegen/c/c_testing.h"
#include "testing/changing_page_testing.h"

typedef struct changing_job {
  const vyre__lir_kernel *k;
  program p;
  uint32_t spill[64 * CHANGING_LANES]; /* words across grid barriers */
} changing_job;

static void run_job(void *self) {
  changing_job *j = self;
  static const uint32_t grid[3] = {1, 1, 1};
  vyre__lir_binding buffers[8] = {{watch.q, CHANGING_ELEMENTS},
                                  {watch.data, CHANGING_ELEMENTS},
                                  {watch.w, CHANGING_OUT}};
  CHECK(j->k->buffer_count <= 8);
  if (j->k->spill_buffer != VYRE_NO_INDEX) {
    buffers[j->k->spill_buffer] =
        (vyre__lir_binding){j->spill, sizeof j->spill / sizeof j->spill[0]};
  }
  launch l = make_launch(j->k, buffers, grid, 2000);
  CHECK(j->p.run(l.bytes) < 2); /* 1: a changed value asked for too many
                                 * iterations */
}

static uint64_t run_kernel(const changing_kernel *k, changing_kind kind,
                           const char *flags) {
  static changing_job j;
  char source[CHANGING_TEXT];
  vyre_arena arena;
  vyre_status st = {0};
  const vyre__target target = {.math = VYRE__MATH_F64};
  vyre_arena_init(&arena, (vyre_allocator){0});
  changing_text(k, kind, source);
  vyre_module *module = parse_module(source);
  CHECK_OK(vyre__lower(vyre_module_kernel(module, 0), &target,
                       VYRE__PASS_LEGALIZE_CONTROL, &arena, &j.k, NULL, &st),
           st);
  text code = emit_text(j.k, NULL);
  j.p = build(&code, "k", flags);
  free(code.bytes);
  uint64_t runs = watch_all(k, kind, flags, run_job, &j);
  dlclose(j.p.library);
  vyre_arena_deinit(&arena);
  vyre_module_release(module);
  return runs;
}

/* Runs each kernel with one kind of memory, rotating over the kinds. */
static void run_all(const char *flags, unsigned turn) {
  uint64_t runs = 0;
  watch_begin();
  for (unsigned i = 0; i < CHANGING_KERNELS; i++) {
    const changing_kernel *k = &changing_kernels[i];
    changing_kind kind = (changing_kind)((i + turn) % CHANGING_KINDS);
    if (!changing_has(k, kind)) kind = CHANGING_UNIFORM;
    runs += run_kernel(k, kind, flags_of(flags));
  }
  printf("    %d kernels, %llu runs\n", (int)CHANGING_KERNELS,
         (unsigned long long)runs);
}

TEST(at_low_optimisation) {
  run_all("-O1", 0);
}
TEST(at_high_optimisation) {
  run_all("-O3 -march=native", 1);
  finish_folder();
}

TEST_MAIN(TEST_ENTRY(at_low_optimisation), TEST_ENTRY(at_high_optimisation))
