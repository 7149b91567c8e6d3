/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks that lowered kernels stay inside their buffers and never divide by an
 * untested value, even if memory changes during the dispatch. The interpreter
 * checks each access while memory changes after every load, for every number
 * of loads. */
#include "vyre/module.h"

#include "testing/changing_memory_testing.h"
#include "testing/lir_interp.h"

/* --- contents for each load --------------------------------------------- */

typedef struct changer {
  const changing_kernel *kernel;
  uint64_t loads;  /* loads of q so far */
  uint64_t turn;   /* number of loads after which q changes, or the seed */
  bool alternates; /* changes with every load, by the seed */
} changer;

static void on_load(void *self, uint32_t buffer, uint8_t *bytes,
                    uint64_t size) {
  changer *c = self;
  if (buffer != 0 || size == 0) return;
  c->loads++;
  bool is_bad = c->loads >= c->turn;
  if (c->alternates) {
    uint64_t h = (c->loads + 64 * c->turn) * UINT64_C(0x9E3779B97F4A7C15);
    is_bad = (h ^ h >> 29) >> 60 & 1;
  }
  changing_fill(c->kernel, is_bad ? c->kernel->bad : c->kernel->good, bytes);
}

/* --- kernels ------------------------------------------------------------ */

static const vyre__lir_kernel *lower(const changing_kernel *k,
                                     changing_kind kind, bool no_narrow,
                                     vyre_arena *arena, vyre_module **module) {
  char text[CHANGING_TEXT];
  vyre_status st = {0};
  const vyre__lir_kernel *out;
  const vyre__target target = {
      .math = VYRE__MATH_F64, .no_narrow = no_narrow, .no_u64 = no_narrow};
  changing_text(k, kind, text);
  vyre_code code = vyre_module_parse(text, strlen(text), k->name,
                                     (vyre_allocator){0}, module, NULL, &st);
  if (code != VYRE_OK) printf("    %s\n", text);
  CHECK_OK(code, st);
  CHECK_OK(vyre__lower(vyre_module_kernel(*module, 0), &target,
                       VYRE__PASS_LEGALIZE_CONTROL, arena, &out, NULL, &st),
           st);
  return out;
}

static void interpret(const vyre__lir_kernel *low, changing_kind kind,
                      changer *c) {
  unsigned char q[8 * CHANGING_ELEMENTS];
  uint32_t data[CHANGING_ELEMENTS], w[CHANGING_OUT] = {0};
  vyre_status st = {0};
  for (uint32_t i = 0; i < CHANGING_ELEMENTS; i++) data[i] = i + 1;
  changing_fill(c->kernel, c->kernel->good, q);
  const vyre__lir_binding buffers[8] = {
      {q, CHANGING_ELEMENTS}, {data, CHANGING_ELEMENTS}, {w, CHANGING_OUT}};
  CHECK(low->buffer_count <= 8);
  const vyre__lir_launch launch = {.buffers = buffers,
                                   .grid = {1, 1, 1},
                                   .fuel = 2000,
                                   .poison = 0xA5,
                                   .max_instructions = 2000000,
                                   .loaded = on_load,
                                   .changer = c};
  c->loads = 0;
  vyre_code code = vyre__lir_interpret(low, &launch, (vyre_allocator){0}, &st);
  /* A bad value may ask for too many iterations. */
  if (code == VYRE_OK || st.kind == VYRE_KIND_OUT_OF_FUEL) return;
  printf("    kernel '%s', q is %s, after load %llu, turn %llu: %s\n",
         c->kernel->name, changing_kind_name(kind),
         (unsigned long long)c->loads, (unsigned long long)c->turn, st.message);
  test_fail(__FILE__, __LINE__);
}

static uint64_t run_kernel(const changing_kernel *k, changing_kind kind,
                           bool no_narrow) {
  enum { RANDOM = 20 };
  vyre_module *module;
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  const vyre__lir_kernel *low = lower(k, kind, no_narrow, &arena, &module);
  changer c = {.kernel = k, .turn = UINT64_MAX};
  interpret(low, kind, &c);
  uint64_t loads = c.loads;
  CHECK((loads > 0) == (kind != CHANGING_UNIFORM));
  for (uint64_t i = 1; i <= loads; i++) {
    c.turn = i;
    interpret(low, kind, &c);
  }
  c.alternates = true;
  for (c.turn = 1; c.turn <= RANDOM; c.turn++) interpret(low, kind, &c);
  vyre_arena_deinit(&arena);
  vyre_module_release(module);
  return loads;
}

static void run_all(bool no_narrow) {
  uint64_t loads = 0;
  for (unsigned i = 0; i < CHANGING_KERNELS; i++) {
    for (unsigned kind = 0; kind < CHANGING_KINDS; kind++) {
      if (!changing_has(&changing_kernels[i], (changing_kind)kind)) continue;
      loads += run_kernel(&changing_kernels[i], (changing_kind)kind, no_narrow);
    }
  }
  printf("    %d kernels, changed after each of %llu loads\n",
         (int)CHANGING_KERNELS, (unsigned long long)loads);
}

TEST(all_operations) {
  run_all(false);
}
TEST(words_and_pairs) {
  run_all(true);
}

TEST_MAIN(TEST_ENTRY(all_operations), TEST_ENTRY(words_and_pairs))
