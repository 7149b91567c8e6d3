/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks the LIR interpreter with kernels that are built by hand: their
 * results, and that broken guarantees are found. */
#include "testing/lir_interp.h"

#include "ir/scalar.h"
#include "lir/lir_testing.h"
#include "support/check.h"

#define OP(name, type, ...) \
  kit_op(&t, VYRE__LIR_##name, VYRE_TYPE_##type, __VA_ARGS__)

static kit t;

static vyre_code run(const vyre__lir_binding *buffers, uint32_t groups,
                     vyre_status *st) {
  vyre__lir_launch launch = {.buffers = buffers,
                             .grid = {groups, 1, 1},
                             .fuel = 5,
                             .poison = 0xA5,
                             .max_instructions = 100000};
  *st = (vyre_status){0};
  CHECK_OK(vyre__lir_verify(&t.k, VYRE__STAGE_CONTROL, (vyre_allocator){0}, st),
           *st);
  return vyre__lir_interpret(&t.k, &launch, (vyre_allocator){0}, st);
}

static void check_result(const vyre__lir_binding *buffers, uint32_t groups) {
  vyre_status st;
  CHECK_OK(run(buffers, groups, &st), st);
}

/* Checks that the interpreter fails with a message that contains @p part. */
static void check_fails(const vyre__lir_binding *buffers, const char *part) {
  vyre_status st;
  CHECK_FAILS(run(buffers, 1, &st), st, VYRE_KERNEL_COMPILE_FAILED,
              VYRE_KIND_NONE);
  CHECK_HAS(st.message, part);
  CHECK_HAS(st.fix, "--dump-after");
}

static uint32_t global(const char *name, uint8_t width) {
  uint32_t buffer = kit_buffer(&t, name, VYRE_MEMORY_GLOBAL, width, true, 0);
  t.buffers[buffer].is_atomic = width >= 4;
  return buffer;
}

static vyre__val f32(float value) {
  return kit_const(&t, VYRE_TYPE_F32, vyre__of_f32(value));
}

static vyre__val u64(uint64_t value) {
  return kit_const(&t, VYRE_TYPE_U64, value);
}

TEST(computes) {
  uint64_t out[8] = {0};
  kit_begin(&t, "computes", 1, 1, 1);
  uint32_t to = global("out", 8);
  vyre__val results[8] = {
      OP(MUL, U64, 0, u64(UINT64_C(1) << 40), u64(3), 0),
      OP(SEXT, U64, 0, kit_u32(&t, 0x80000000), 0, 0),
      OP(ZEXT, U64, 0,
         kit_b(&t, VYRE__LIR_LT_S, kit_u32(&t, UINT32_MAX), kit_u32(&t, 0)), 0,
         0),
      OP(F_TO_S, U64, 0, OP(FMA, F32, 0, f32(-3), f32(5), f32(0.25f)), 0, 0),
      OP(SELECT, U64, 0, kit_const(&t, VYRE_TYPE_BOOL, 0), u64(1), u64(2)),
      OP(BITCAST, U64, 0, OP(F_EXTEND, F64, 0, f32(1.5f), 0, 0), 0, 0),
      OP(ZEXT, U64, 0, OP(CLZ, U32, 0, kit_u32(&t, 0), 0, 0), 0, 0),
      OP(SHR_S, U64, 0, u64(UINT64_C(1) << 63), kit_u32(&t, 62), 0),
  };
  for (uint32_t i = 0; i < 8; i++) {
    kit_store(&t, to, kit_u32(&t, i), results[i], 0);
  }
  kit_end(&t);
  check_result(&(vyre__lir_binding){out, 8}, 1);
  CHECK_U64(out[0], UINT64_C(3) << 40);
  CHECK_U64(out[1], UINT64_C(0xFFFFFFFF80000000));
  CHECK_U64(out[2], 1);
  CHECK_U64(out[3], (uint64_t)-14);
  CHECK_U64(out[4], 2);
  CHECK_U64(out[5], vyre__of_f64(1.5));
  CHECK_U64(out[6], 32);
  CHECK_U64(out[7], UINT64_MAX - 1);
}

TEST(lanes_that_take_different_branches) {
  uint32_t out[8] = {0};
  kit_begin(&t, "branches", 4, 1, 1);
  uint32_t to = global("out", 4), x = kit_var(&t, "x", VYRE_TYPE_U32);
  vyre__val id = kit_global(&t, 0);
  kit_set(&t, x, kit_u32(&t, 7));
  kit_if(&t, kit_b(&t, VYRE__LIR_LT_U, id, kit_u32(&t, 3)), 0);
  kit_if(&t, kit_b(&t, VYRE__LIR_EQ, id, kit_u32(&t, 1)), 0);
  kit_mark(&t, VYRE__LIR_EXIT);
  kit_mark(&t, VYRE__LIR_END);
  kit_set(&t, x, kit_u32(&t, 10));
  kit_mark(&t, VYRE__LIR_ELSE);
  kit_if(&t, kit_b(&t, VYRE__LIR_EQ, id, kit_u32(&t, 5)), 0);
  kit_set(&t, x, kit_u32(&t, 20));
  kit_mark(&t, VYRE__LIR_END);
  kit_mark(&t, VYRE__LIR_END);
  kit_store(&t, to, id, kit_get(&t, x), 0);
  kit_end(&t);
  check_result(&(vyre__lir_binding){out, 8}, 2);
  static const uint32_t want[8] = {10, 0, 10, 7, 7, 20, 7, 7};
  CHECK(memcmp(out, want, sizeof out) == 0);
}

/* for (i = 0; ; i++) { if (i == id) break; if (i is odd) continue; sum += i;
 * } */
TEST(loops) {
  uint32_t out[9] = {0};
  kit_begin(&t, "loops", 3, 3, 1);
  uint32_t to = global("out", 4), i = kit_var(&t, "i", VYRE_TYPE_U32);
  uint32_t sum = kit_var(&t, "sum", VYRE_TYPE_U32);
  vyre__val zero = kit_u32(&t, 0), one = kit_u32(&t, 1);
  vyre__val row = kit_u(&t, VYRE__LIR_MUL, kit_local(&t, 1), kit_u32(&t, 3));
  vyre__val id = kit_u(&t, VYRE__LIR_ADD, row, kit_local(&t, 0));
  t.k.loop_count = 1;
  kit_set(&t, i, zero);
  kit_set(&t, sum, zero);
  kit_mark(&t, VYRE__LIR_LOOP);
  vyre__val now = kit_get(&t, i);
  kit_if(&t, kit_b(&t, VYRE__LIR_EQ, now, id), 0);
  kit_mark(&t, VYRE__LIR_BREAK);
  kit_mark(&t, VYRE__LIR_END);
  kit_if(&t, kit_b(&t, VYRE__LIR_EQ, kit_u(&t, VYRE__LIR_AND, now, one), one),
         0);
  kit_mark(&t, VYRE__LIR_CONTINUE);
  kit_mark(&t, VYRE__LIR_END);
  kit_set(&t, sum, kit_u(&t, VYRE__LIR_ADD, kit_get(&t, sum), now));
  kit_mark(&t, VYRE__LIR_STEP);
  kit_set(&t, i, kit_u(&t, VYRE__LIR_ADD, now, one));
  kit_mark(&t, VYRE__LIR_END);
  kit_store(&t, to, id, kit_get(&t, sum), 0);
  kit_end(&t);
  check_result(&(vyre__lir_binding){out, 9}, 1);
  static const uint32_t want[9] = {0, 0, 0, 2, 2, 6, 6, 12, 12};
  CHECK(memcmp(out, want, sizeof out) == 0);
}

/* Nested loops inside an if, each with a break. */
TEST(nested_loops) {
  uint32_t out[1] = {0};
  kit_begin(&t, "nested", 1, 1, 1);
  uint32_t to = global("out", 4), n = kit_var(&t, "n", VYRE_TYPE_U32);
  vyre__val zero = kit_u32(&t, 0), one = kit_u32(&t, 1), five = kit_u32(&t, 5);
  vyre__val yes = kit_b(&t, VYRE__LIR_EQ, zero, zero);
  t.k.loop_count = 1;
  kit_set(&t, n, zero);
  kit_if(&t, yes, 0);
  kit_mark(&t, VYRE__LIR_LOOP);
  kit_mark(&t, VYRE__LIR_LOOP);
  kit_set(&t, n, kit_u(&t, VYRE__LIR_ADD, kit_get(&t, n), one));
  vyre__val rest = kit_u(&t, VYRE__LIR_REM_U, kit_get(&t, n), five);
  kit_if(&t, kit_b(&t, VYRE__LIR_NE, rest, zero), 0);
  kit_mark(&t, VYRE__LIR_CONTINUE);
  kit_mark(&t, VYRE__LIR_END);
  kit_mark(&t, VYRE__LIR_BREAK);
  kit_mark(&t, VYRE__LIR_STEP);
  kit_mark(&t, VYRE__LIR_END);
  kit_if(&t, kit_b(&t, VYRE__LIR_LT_U, kit_u32(&t, 12), kit_get(&t, n)), 0);
  kit_mark(&t, VYRE__LIR_BREAK);
  kit_mark(&t, VYRE__LIR_END);
  kit_mark(&t, VYRE__LIR_STEP);
  kit_set(&t, n, kit_u(&t, VYRE__LIR_ADD, kit_get(&t, n), kit_u32(&t, 2)));
  kit_mark(&t, VYRE__LIR_END);
  kit_mark(&t, VYRE__LIR_END);
  kit_store(&t, to, zero, kit_get(&t, n), 0);
  kit_end(&t);
  check_result(&(vyre__lir_binding){out, 1}, 1);
  CHECK_U64(out[0], 15); /* 5, 7 .. 10, 12 .. 15 */
}

typedef struct sight {
  uint32_t invocation, at;
  uint64_t value;
} sight;

static sight sights[64];
static size_t sight_count;

static void see(void *observer, uint32_t invocation, uint32_t at,
                uint64_t value) {
  CHECK(observer == sights && sight_count < 64);
  sights[sight_count++] = (sight){invocation, at, value};
}

/* if (id == 1) x = id + 7; in each of two invocations, in execution order. */
TEST(prints_the_values_of_instructions) {
  kit_begin(&t, "tells", 1, 2, 1);
  uint32_t x = kit_var(&t, "x", VYRE_TYPE_U32);
  vyre__val id = kit_local(&t, 1), one = kit_u32(&t, 1);
  vyre__val is_one = kit_b(&t, VYRE__LIR_EQ, id, one);
  uint32_t branch = kit_if(&t, is_one, 0);
  vyre__val sum = kit_u(&t, VYRE__LIR_ADD, id, kit_u32(&t, 7));
  kit_set(&t, x, sum);
  uint32_t end = kit_mark(&t, VYRE__LIR_END);
  kit_end(&t);
  vyre_status st = {0};
  vyre__lir_launch launch = {
      .grid = {1, 1, 1}, .observe = see, .observer = sights};
  sight_count = 0;
  CHECK_OK(vyre__lir_interpret(&t.k, &launch, (vyre_allocator){0}, &st), st);
  const sight want[] = {{0, id, 0},     {0, one, 1},     {0, is_one, 0},
                        {0, branch, 0}, {1, id, 1},      {1, one, 1},
                        {1, is_one, 1}, {1, branch, 1},  {1, sum - 1, 7},
                        {1, sum, 8},    {1, sum + 1, 8}, {1, end, 0}};
  CHECK_U64(sight_count, sizeof want / sizeof want[0]);
  for (size_t i = 0; i < sight_count; i++) {
    CHECK_U64(sights[i].invocation, want[i].invocation);
    CHECK_U64(sights[i].at, want[i].at);
    CHECK_U64(sights[i].value, want[i].value);
  }
}

/* --- memory ------------------------------------------------------------- */

/* tile[id] = id + 100 * group; barrier; out = tile[7 - id], with a variable
 * that lives across the barrier. */
TEST(exchanges_through_shared_memory) {
  uint32_t out[16] = {0};
  kit_begin(&t, "exchange", 8, 1, 1);
  uint32_t to = global("out", 4), spilled = kit_var(&t, "kept", VYRE_TYPE_U32);
  uint32_t tile = kit_buffer(&t, "tile", VYRE_MEMORY_SHARED, 4, true, 8);
  vyre__val local = kit_local(&t, 0), id = kit_global(&t, 0);
  vyre__val group = OP(GROUP_ID, U32, 0, 0, 0, 0);
  vyre__val sum = kit_u(&t, VYRE__LIR_ADD, local,
                        kit_u(&t, VYRE__LIR_MUL, group, kit_u32(&t, 100)));
  kit_store(&t, tile, local, sum, 0);
  kit_set(&t, spilled, kit_u(&t, VYRE__LIR_MUL, local, kit_u32(&t, 1000)));
  kit_mark(&t, VYRE__LIR_BARRIER);
  vyre__val other = kit_u(&t, VYRE__LIR_SUB, kit_u32(&t, 7), local);
  vyre__val got = kit_load(&t, tile, other, 0);
  kit_store(&t, to, id, kit_u(&t, VYRE__LIR_ADD, got, kit_get(&t, spilled)), 0);
  kit_end(&t);
  t.k.has_barrier = true;
  check_result((vyre__lir_binding[]){{out, 16}, {0}}, 2);
  for (uint32_t i = 0; i < 16; i++) {
    CHECK_U64(out[i], 7 - i % 8 + 100 * (i / 8) + 1000 * (i % 8));
  }
}

TEST(shared_memory_begins_as_zero_or_as_anything) {
  uint32_t out[1];
  for (unsigned zero = 0; zero < 2; zero++) {
    kit_begin(&t, "begins", 1, 1, 1);
    uint32_t to = global("out", 4);
    uint32_t tile = kit_buffer(&t, "tile", VYRE_MEMORY_SHARED, 4, true, 8);
    t.buffers[tile].needs_zero = zero;
    vyre__val index = kit_u32(&t, 0);
    vyre__val got = kit_load(&t, tile, index, 0);
    kit_store(&t, tile, index, kit_u32(&t, 1), 0); /* for the next group */
    kit_store(&t, to, index, got, 0);
    kit_end(&t);
    check_result((vyre__lir_binding[]){{out, 1}, {0}}, 2);
    CHECK_U64(out[0], zero ? 0 : 0xA5A5A5A5);
  }
}

TEST(atomics) {
  struct {
    uint32_t op, begin, value, want;
  } cases[] = {{VYRE__LIR_ATOMIC_ADD, UINT32_MAX, 2, 1},
               {VYRE__LIR_ATOMIC_MIN_U, 5, UINT32_MAX, 5},
               {VYRE__LIR_ATOMIC_MIN_S, 5, UINT32_MAX, UINT32_MAX},
               {VYRE__LIR_ATOMIC_MAX_U, 5, UINT32_MAX, UINT32_MAX},
               {VYRE__LIR_ATOMIC_MAX_S, 5, UINT32_MAX, 5},
               {VYRE__LIR_ATOMIC_AND, 6, 3, 2},
               {VYRE__LIR_ATOMIC_OR, 6, 3, 7},
               {VYRE__LIR_ATOMIC_XOR, 6, 3, 5},
               {VYRE__LIR_ATOMIC_EXCHANGE, 6, 3, 3},
               {VYRE__LIR_ATOMIC_CAS, 6, 6, 9},
               {VYRE__LIR_ATOMIC_CAS, 6, 7, 6}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint32_t memory[3] = {cases[i].begin, 0, 77};
    kit_begin(&t, "atomics", 1, 1, 1);
    uint32_t x = global("x", 4);
    bool cas = cases[i].op == VYRE__LIR_ATOMIC_CAS;
    vyre__val no = kit_const(&t, VYRE_TYPE_BOOL, 0), nine = kit_u32(&t, 9);
    vyre__val value = kit_u32(&t, cases[i].value);
    vyre__lir_op op = (vyre__lir_op)cases[i].op;
    vyre__val old =
        kit_op(&t, op, VYRE_TYPE_U32, x, kit_u32(&t, 0), value, cas ? nine : 0);
    kit_store(&t, x, kit_u32(&t, 1), old, 0);
    /* no effect if the condition is false */
    vyre__val far = kit_u32(&t, 1000);
    vyre__val none =
        kit_op(&t, op, VYRE_TYPE_U32, x, far, value, cas ? nine : no);
    if (cas) t.code[none].d = no;
    kit_store(&t, x, kit_u32(&t, 2), none, 0);
    kit_end(&t);
    check_result(&(vyre__lir_binding){memory, 3}, 1);
    CHECK_U64(memory[0], cases[i].want);
    CHECK_U64(memory[1], cases[i].begin);
    CHECK_U64(memory[2], 0);
  }
}

TEST(all_invocations_add) {
  uint64_t sum = 5;
  kit_begin(&t, "adds", 4, 2, 2);
  uint32_t x = global("x", 8);
  (void)OP(ATOMIC_ADD, U64, x, kit_u32(&t, 0), u64(UINT64_C(1) << 33), 0);
  kit_end(&t);
  check_result(&(vyre__lir_binding){&sum, 1}, 3);
  CHECK_U64(sum, 5 + 48 * (UINT64_C(1) << 33));
}

TEST(narrow_elements) {
  uint8_t bytes[3] = {250, 251, 252};
  uint16_t halves[2] = {0xFFFF, 1};
  kit_begin(&t, "narrow", 1, 1, 1);
  uint32_t b = global("bytes", 1), h = global("halves", 2);
  vyre__val one = kit_u32(&t, 1);
  vyre__val sum = kit_u(&t, VYRE__LIR_ADD, kit_load(&t, b, kit_u32(&t, 2), 0),
                        kit_load(&t, h, kit_u32(&t, 0), 0));
  kit_store(&t, b, one, sum, 0);
  kit_store(&t, h, one, sum, 0);
  kit_end(&t);
  check_result((vyre__lir_binding[]){{bytes, 3}, {halves, 2}}, 1);
  CHECK_U64(bytes[1], (0xFFFF + 252) & 0xFF);
  CHECK_U64(halves[1], (0xFFFF + 252) & 0xFFFF);
  CHECK(bytes[0] == 250 && bytes[2] == 252 && halves[0] == 0xFFFF);
}

/* Three bytes accessed as a word: the fourth must not change. */
TEST(a_word_access_leaves_the_bytes_behind_a_buffer) {
  for (unsigned bad = 0; bad < 2; bad++) {
    uint8_t bytes[3] = {1, 2, 3};
    kit_begin(&t, "words", 1, 1, 1);
    uint32_t x = global("x", 4);
    t.buffers[x].unit = 1;
    vyre__val zero = kit_u32(&t, 0);
    vyre__val mask = kit_u32(&t, bad ? 0 : 0xFF00FFFF);
    (void)OP(ATOMIC_AND, U32, x, zero, mask, 0);
    (void)OP(ATOMIC_OR, U32, x, zero, OP(LEN, U32, x, 0, 0, 0), 0);
    kit_end(&t);
    if (bad) {
      check_fails(&(vyre__lir_binding){bytes, 3}, "after the end of 'x'");
    } else {
      check_result(&(vyre__lir_binding){bytes, 3}, 1);
      CHECK(bytes[0] == (1 | 3) && bytes[1] == 2 && bytes[2] == 0);
    }
  }
}

/* --- phases ------------------------------------------------------------- */

/* Host range: first 1, bound n[0]. Phase 0, once: spill[id] = id. In a loop:
 * phase 1: spill[id] += value; phase 2: out[id] = spill[id ^ 1]. */
static void make_phases(vyre_type type, vyre__loop kind, uint64_t first,
                        uint64_t step) {
  kit_begin(&t, "phases", 2, 1, 1);
  uint32_t to = global("out", 4);
  uint32_t n = kit_buffer(&t, "n", VYRE_MEMORY_UNIFORM, 4, false, 1);
  uint32_t spill = global("kept", 4);
  t.buffers[spill].source = VYRE_NO_INDEX;
  t.k.spill_buffer = spill;
  t.k.spill_words = 1;
  vyre__val from = kit_u32(&t, (uint32_t)first);
  vyre__val bound = kit_load(&t, n, kit_u32(&t, 0), 0);
  t.k.host = (vyre__lir_phase){1, t.k.count};
  uint32_t begin = t.k.count;
  vyre__val id = kit_global(&t, 0);
  kit_store(&t, spill, id, id, 0);
  kit_phase(&t, begin);
  begin = t.k.count;
  id = kit_global(&t, 0);
  vyre__val sum = kit_u(&t, VYRE__LIR_ADD, kit_load(&t, spill, id, 0),
                        OP(LOOP_VALUE, U32, 0, 0, 0, 0));
  kit_store(&t, spill, id, sum, 0);
  kit_phase(&t, begin);
  begin = t.k.count;
  id = kit_global(&t, 0);
  vyre__val other = kit_u(&t, VYRE__LIR_XOR, id, kit_u32(&t, 1));
  kit_store(&t, to, id, kit_load(&t, spill, other, 0), 0);
  kit_phase(&t, begin);
  t.steps[0] = (vyre__lir_step){.kind = VYRE__STEP_RUN, .phase = 0};
  t.steps[1] = (vyre__lir_step){.kind = VYRE__STEP_FOR,
                                .loop_kind = (uint8_t)kind,
                                .type = (uint8_t)type,
                                .first = from,
                                .bound = bound,
                                .step = step};
  t.steps[2] = (vyre__lir_step){.kind = VYRE__STEP_RUN, .phase = 1};
  t.steps[3] = (vyre__lir_step){.kind = VYRE__STEP_RUN, .phase = 2};
  t.steps[4] = (vyre__lir_step){.kind = VYRE__STEP_END_FOR};
  t.k.step_count = 5;
  t.k.grid_loop_count = 1;
}

TEST(phases_and_grid_loops) {
  struct {
    vyre_type type;
    vyre__loop kind;
    uint32_t first, bound, step;
    uint32_t want; /* sum of all values of the loop, modulo 2^32 */
    bool runs;
  } cases[] = {
      {VYRE_TYPE_U32, VYRE__LOOP_LT, 1, 5, 1, 10, true},
      {VYRE_TYPE_U32, VYRE__LOOP_LT, 5, 5, 1, 0, false},
      {VYRE_TYPE_I32, VYRE__LOOP_GE, 2, (uint32_t)-2, 1, 0, true},
      {VYRE_TYPE_I32, VYRE__LOOP_GT, 7, 0, 3, 12, true},
      /* never wraps */
      {VYRE_TYPE_U32, VYRE__LOOP_LE, UINT32_MAX - 1, UINT32_MAX, 1,
       (uint32_t)-3, true},
      {VYRE_TYPE_U32, VYRE__LOOP_GE, 3, 0, 2, 4, true},
      {VYRE_TYPE_I32, VYRE__LOOP_LE, INT32_MAX, INT32_MAX, 1, INT32_MAX, true},
      {VYRE_TYPE_I32, VYRE__LOOP_LT, (uint32_t)INT32_MIN, 0, INT32_MAX,
       (uint32_t)INT32_MIN + (uint32_t)-1, true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint32_t out[4] = {9, 9, 9, 9}, bound = cases[i].bound;
    make_phases(cases[i].type, cases[i].kind, cases[i].first, cases[i].step);
    check_result((vyre__lir_binding[]){{out, 4}, {&bound, 1}, {0}}, 2);
    for (uint32_t k = 0; k < 4; k++) {
      CHECK_U64(out[k],
                cases[i].runs ? (uint32_t)((k ^ 1) + cases[i].want) : 9);
    }
  }
}

/* --- launches ----------------------------------------------------------- */

/* A launch with 32-bit indices runs; one element more is refused. */
TEST(refuses_buffers_that_cannot_be_indexed) {
  uint32_t out[4] = {9, 9, 9, 9}, bound = 0;
  uint64_t words = 7;
  vyre_status st;
  vyre__lir_binding buffers[] = {{out, 4}, {&bound, 1}, {0}};
  make_phases(VYRE_TYPE_U32, VYRE__LOOP_LT, 1, 1);
  CHECK(vyre__lir_spill_words(&t.k, UINT32_MAX, &words));
  CHECK_U64(words, UINT32_MAX);
  CHECK(!vyre__lir_spill_words(&t.k, UINT64_C(1) << 32, &words));
  t.k.spill_words = 3;
  CHECK(vyre__lir_spill_words(&t.k, UINT32_MAX / 3, &words));
  CHECK_U64(words, UINT32_MAX);
  CHECK(!vyre__lir_spill_words(&t.k, UINT32_MAX / 3 + 1, &words));
  CHECK_FAILS(run(buffers, UINT32_MAX / 2, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_GRID_TOO_LARGE);
  CHECK_HAS(st.message, "4294967294 invocations with 3 spilled words");
  CHECK_HAS(st.fix, "smaller grid");
  t.k.spill_buffer = VYRE_NO_INDEX;
  CHECK(vyre__lir_spill_words(&t.k, UINT64_MAX, &words) && words == 0);

  kit_begin(&t, "halves", 1, 1, 1);
  uint32_t to = global("out", 4);
  kit_store(&t, to, kit_u32(&t, 0), kit_u32(&t, 5), 0);
  kit_end(&t);
  t.buffers[to].unit = 8;
  CHECK(vyre__lir_buffer_fits(&t.buffers[to], INT32_MAX));
  CHECK_FAILS(run(&(vyre__lir_binding){out, UINT32_C(1) << 31}, 1, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  CHECK_HAS(st.message, "'out' has 2147483648 elements");
  check_result(&(vyre__lir_binding){out, 2}, 1);
  CHECK(out[0] == 5 && out[1] == 9);
}

/* Accesses are proven for the lengths that the program declares. */
TEST(refuses_buffers_that_are_too_short) {
  uint32_t out[4] = {9, 9, 9, 9};
  vyre_status st;
  kit_begin(&t, "fixed", 1, 1, 1);
  uint32_t to = kit_buffer(&t, "out", VYRE_MEMORY_GLOBAL, 4, true, 4);
  kit_store(&t, to, kit_u32(&t, 3), kit_u32(&t, 5), 0);
  kit_end(&t);
  CHECK_FAILS(run(&(vyre__lir_binding){out, 3}, 1, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  CHECK_HAS(st.message, "'out' has 3 elements");
  CHECK(out[3] == 9);
  check_result(&(vyre__lir_binding){out, 4}, 1);
  CHECK(out[3] == 5);
}

/* Checks ids on each axis, as generated C does. */
TEST(refuses_ids_that_do_not_fit) {
  uint32_t out[4] = {9, 9, 9, 9};
  vyre_status st;
  vyre__lir_binding buffer = {out, 4};
  kit_begin(&t, "ids", 256, 1, 1);
  uint32_t to = global("out", 4);
  vyre__val id = kit_global(&t, 0);
  vyre__val inside = OP(LT_U, BOOL, 0, id, kit_u32(&t, 4), 0);
  kit_store(&t, to, id, id, inside);
  kit_end(&t);
  CHECK_U64(vyre__lir_max_groups(&t.k, 0), 1 << 24);
  CHECK_U64(vyre__lir_max_groups(&t.k, 1), UINT32_MAX);
  CHECK_FAILS(run(&buffer, (1 << 24) + 1, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_GRID_TOO_LARGE);
  CHECK_HAS(st.message, "16777217 workgroups of 256 invocations on axis x");
  CHECK(out[0] == 9);
  check_result(&buffer, 1);
  CHECK(out[3] == 3);
}

/* --- guarantees --------------------------------------------------------- */

/* Builds a kernel with out[0] = @p op of two values; bits and types as given.
 */
static void make_one(vyre__lir_op op, vyre_type from, uint64_t a,
                     vyre_type second, uint64_t b, vyre_type type) {
  kit_begin(&t, "one", 1, 1, 1);
  (void)global("out", 4);
  vyre__val x = kit_const(&t, from, a);
  vyre__val y = second == VYRE_TYPE_VOID ? 0 : kit_const(&t, second, b);
  (void)kit_op(&t, op, type, 0, x, y, 0);
  kit_end(&t);
}

TEST(broken_promises) {
  enum { U = VYRE_TYPE_U32, W = VYRE_TYPE_U64, F = VYRE_TYPE_F32 };
  enum { D = VYRE_TYPE_F64, V = VYRE_TYPE_VOID };
  uint64_t min = UINT64_C(1) << 63, nan = 0x7FC00000;
  struct {
    vyre__lir_op op;
    int from;
    uint64_t a;
    int second;
    uint64_t b;
    int type;
    const char *what; /* NULL: no problem */
  } cases[] = {
      {VYRE__LIR_DIV_U, U, 5, U, 0, U, "division by 0"},
      {VYRE__LIR_REM_U, W, 5, W, 0, W, "division by 0"},
      {VYRE__LIR_DIV_S, U, 5, U, 0, U, "division by 0"},
      {VYRE__LIR_REM_S, U, 5, U, 0, U, "division by 0"},
      {VYRE__LIR_DIV_S, U, 0x80000000, U, UINT32_MAX, U, "MIN / -1"},
      {VYRE__LIR_DIV_S, U, 0x80000001, U, UINT32_MAX, U, NULL},
      {VYRE__LIR_DIV_S, W, min, W, UINT64_MAX, W, "MIN / -1"},
      {VYRE__LIR_REM_S, W, min, W, UINT64_MAX, W, "MIN / -1"},
      {VYRE__LIR_REM_S, W, 0x80000000, W, UINT64_MAX, W, NULL},
      {VYRE__LIR_SHL, U, 5, U, 32, U, "a shift"},
      {VYRE__LIR_SHL, U, 5, U, 31, U, NULL},
      {VYRE__LIR_SHR_U, W, 5, U, 63, W, NULL},
      {VYRE__LIR_SHR_S, W, 5, U, 64, W, "a shift"},
      {VYRE__LIR_F_TO_U, F, nan, V, 0, U, "a NaN"},
      {VYRE__LIR_F_TO_S, D, vyre__of_f64(2147483648.0), V, 0, U, "not fit"},
      {VYRE__LIR_F_TO_S, D, vyre__of_f64(2147483647.9), V, 0, U, NULL},
      {VYRE__LIR_F_TO_S, D, vyre__of_f64(-2147483648.9), V, 0, U, NULL},
      {VYRE__LIR_F_TO_S, D, vyre__of_f64(-2147483649.0), V, 0, U, "not fit"},
      {VYRE__LIR_F_TO_U, D, vyre__of_f64(-0.9), V, 0, U, NULL},
      {VYRE__LIR_F_TO_U, D, vyre__of_f64(-1), V, 0, U, "not fit"},
      {VYRE__LIR_F_TO_U, F, vyre__of_f32(4294967296.0f), V, 0, U, "not fit"},
      {VYRE__LIR_F_TO_U, F, vyre__of_f32(4294967296.0f), V, 0, W, NULL},
      {VYRE__LIR_F_TO_U, F, vyre__of_f32(0x1p64f), V, 0, W, "not fit"},
      {VYRE__LIR_F_TO_S, F, vyre__of_f32(-0x1p63f), V, 0, W, NULL},
      {VYRE__LIR_F_TO_S, F, vyre__of_f32(0x1p63f), V, 0, W, "not fit"},
      {VYRE__LIR_F_TO_S, F, 0x7F800000, V, 0, W, "not fit"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint32_t out[1] = {0};
    vyre__lir_binding buffer = {out, 1};
    make_one(cases[i].op, (vyre_type)cases[i].from, cases[i].a,
             (vyre_type)cases[i].second, cases[i].b, (vyre_type)cases[i].type);
    if (cases[i].what) {
      check_fails(&buffer, cases[i].what);
    } else {
      check_result(&buffer, 1);
    }
  }
}

TEST(accesses_inside_and_outside) {
  uint32_t x[3] = {4, 5, 6};
  vyre__lir_binding buffer = {x, 3};
  for (unsigned kind = 0; kind < 4; kind++) {
    for (unsigned holds = 0; holds < 2; holds++) {
      kit_begin(&t, "accesses", 1, 1, 1);
      uint32_t to = global("x", 4);
      vyre__val condition = kit_const(&t, VYRE_TYPE_BOOL, holds);
      vyre__val far = kit_u32(&t, kind == 3 ? UINT32_MAX : 3);
      vyre__val got = kit_u32(&t, 0);
      if (kind == 1) {
        kit_store(&t, to, far, far, condition);
      } else if (kind == 2) {
        got = OP(ATOMIC_ADD, U32, to, far, far, condition);
      } else {
        got = kit_load(&t, to, far, condition);
      }
      kit_store(&t, to, kit_u32(&t, 1), got, 0);
      kit_end(&t);
      x[1] = 5;
      if (holds) {
        check_fails(&buffer, "outside the buffer");
      } else {
        check_result(&buffer, 1);
        CHECK_U64(x[1], 0);
      }
    }
  }
}

TEST(barriers_in_divergent_code_are_found) {
  uint32_t out[8] = {0};
  for (unsigned kind = 0; kind < 3; kind++) {
    kit_begin(&t, "diverges", 4, 1, 1);
    (void)global("out", 4);
    vyre__val two = kit_u32(&t, 2), id = kit_local(&t, 0);
    kit_if(&t,
           kind == 0 ? kit_b(&t, VYRE__LIR_LT_U, id, two)
                     : kit_b(&t, VYRE__LIR_LE_U, two, id),
           0);
    kit_mark(&t, VYRE__LIR_BARRIER);
    if (kind == 2) {
      kit_mark(&t, VYRE__LIR_ELSE);
      kit_mark(&t, VYRE__LIR_BARRIER);
    }
    kit_mark(&t, VYRE__LIR_END);
    kit_end(&t);
    t.k.has_barrier = true;
    check_fails(&(vyre__lir_binding){out, 8},
                "not all invocations reach the barrier");
  }
}

/* --- out of fuel -------------------------------------------------------- */

/* while (true) { if (fuel == 0) out_of_fuel; fuel--; if (n == count) break; n++
 * } */
static void make_fuel(uint32_t rounds, bool counts) {
  kit_begin(&t, "fuel", 1, 1, 1);
  uint32_t to = global("out", 4), fuel = kit_var(&t, "fuel", VYRE_TYPE_U32);
  uint32_t n = kit_var(&t, "n", VYRE_TYPE_U32);
  vyre__val zero = kit_u32(&t, 0), one = kit_u32(&t, 1);
  t.k.loop_count = 1;
  t.k.has_fuel = true;
  kit_set(&t, fuel, OP(FUEL, U32, 0, 0, 0, 0));
  kit_set(&t, n, zero);
  kit_mark(&t, VYRE__LIR_LOOP);
  vyre__val left = kit_get(&t, fuel), now = kit_get(&t, n);
  if (counts) {
    kit_if(&t, kit_b(&t, VYRE__LIR_EQ, left, zero), 0);
    kit_mark(&t, VYRE__LIR_OUT_OF_FUEL);
    kit_mark(&t, VYRE__LIR_END);
    kit_set(&t, fuel, kit_u(&t, VYRE__LIR_SUB, left, one));
  }
  kit_if(&t, kit_b(&t, VYRE__LIR_EQ, now, kit_u32(&t, rounds)), 0);
  kit_mark(&t, VYRE__LIR_BREAK);
  kit_mark(&t, VYRE__LIR_END);
  kit_mark(&t, VYRE__LIR_STEP);
  kit_set(&t, n, kit_u(&t, VYRE__LIR_ADD, now, one));
  kit_mark(&t, VYRE__LIR_END);
  kit_store(&t, to, zero, kit_get(&t, n), 0);
  kit_end(&t);
}

TEST(fuel) {
  uint32_t out[1] = {0};
  vyre__lir_binding buffer = {out, 1};
  vyre_status st;
  make_fuel(4, true);
  check_result(&buffer, 1);
  CHECK_U64(out[0], 4);
  make_fuel(5, true);
  CHECK_FAILS(run(&buffer, 1, &st), st, VYRE_DISPATCH_FAILED,
              VYRE_KIND_OUT_OF_FUEL);
  make_fuel(1000000, false);
  check_fails(&buffer, "limit of instructions");
}

TEST(high_operations_are_not_accepted) {
  uint32_t out[1] = {0};
  vyre__lir_binding buffer = {out, 1};
  vyre__lir_launch launch = {.buffers = &buffer, .grid = {1, 1, 1}};
  vyre_status st = {0};
  make_one(VYRE__LIR_TOTAL_DIV_U, VYRE_TYPE_U32, 1, VYRE_TYPE_U32, 1,
           VYRE_TYPE_U32);
  CHECK_FAILS(vyre__lir_interpret(&t.k, &launch, (vyre_allocator){0}, &st), st,
              VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE);
  CHECK_HAS(st.message, "cannot be interpreted");
}

static vyre_code run_phases(vyre_allocator allocator, vyre_status *st) {
  uint32_t out[4], bound = 5;
  vyre__lir_binding buffers[] = {{out, 4}, {&bound, 1}, {0}};
  vyre__lir_launch launch = {.buffers = buffers, .grid = {2, 1, 1}};
  make_phases(VYRE_TYPE_U32, VYRE__LOOP_LT, 1, 1);
  return vyre__lir_interpret(&t.k, &launch, allocator, st);
}

TEST(no_memory) {
  CHECK(sweep_allocations(run_phases) > 5);
}

TEST_MAIN(TEST_ENTRY(computes), TEST_ENTRY(lanes_that_take_different_branches),
          TEST_ENTRY(loops), TEST_ENTRY(nested_loops),
          TEST_ENTRY(prints_the_values_of_instructions),
          TEST_ENTRY(exchanges_through_shared_memory),
          TEST_ENTRY(shared_memory_begins_as_zero_or_as_anything),
          TEST_ENTRY(atomics), TEST_ENTRY(all_invocations_add),
          TEST_ENTRY(narrow_elements),
          TEST_ENTRY(a_word_access_leaves_the_bytes_behind_a_buffer),
          TEST_ENTRY(phases_and_grid_loops),
          TEST_ENTRY(refuses_buffers_that_cannot_be_indexed),
          TEST_ENTRY(refuses_buffers_that_are_too_short),
          TEST_ENTRY(refuses_ids_that_do_not_fit), TEST_ENTRY(broken_promises),
          TEST_ENTRY(accesses_inside_and_outside),
          TEST_ENTRY(barriers_in_divergent_code_are_found), TEST_ENTRY(fuel),
          TEST_ENTRY(high_operations_are_not_accepted), TEST_ENTRY(no_memory))
