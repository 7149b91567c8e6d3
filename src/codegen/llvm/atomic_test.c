/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests atomics in compiled kernels: combined across lanes, privatised, and in
 * loops of which each iteration runs for all lanes. Every kernel runs at every
 * width, in ranges of a few workgroups, on buffers of several lengths. Plain loops
 * in C compute the expected results. */
#define _DEFAULT_SOURCE /* NOLINT(bugprone-reserved-identifier) */

#include <sys/mman.h>
#include <unistd.h>

#include "vyre/module.h"

#include "codegen/llvm/llvm_testing.h"
#include "spmd/schedule.h"

enum { ITEMS = 24 * 64, MOST = 5000, LEFT = 0xA0A0 };

/* Computes the expected contents of y and z, which have `length` elements, in
 * place. x has ITEMS elements. */
typedef void oracle(const uint32_t *x, uint32_t *y, uint32_t *z,
                    uint32_t length);

static void add(uint32_t *y, uint32_t length, uint32_t at, uint32_t value) {
  if (at < length) y[at] += value;
}

#define EACH for (uint32_t i = 0; i < ITEMS; i++)

static void adds(const uint32_t *x, uint32_t *y, uint32_t *z, uint32_t n) {
  (void)z;
  EACH add(y, n, x[i] % 128, x[i]);
}

/* Of elements x[i] % 128, by an expression of a (before) and b. */
#define FOLD(name, type, expression)                                          \
  static void name(const uint32_t *x, uint32_t *y, uint32_t *z, uint32_t n) { \
    (void)z;                                                                  \
    EACH {                                                                    \
      if (x[i] % 128 >= n) continue;                                          \
      type a = (type)y[x[i] % 128], b = (type)x[i];                           \
      y[x[i] % 128] = (uint32_t)(expression);                                 \
    }                                                                         \
  }
FOLD(min_u, uint32_t, a < b ? a : b)
FOLD(max_u, uint32_t, a > b ? a : b)
FOLD(min_s, int32_t, a < (b & INT32_MAX) ? a : b & INT32_MAX)
FOLD(max_s, int32_t, a > (b | INT32_MIN) ? a : b | INT32_MIN)
FOLD(ands, uint32_t, a &b)
FOLD(ors, uint32_t, a | b)
FOLD(xors, uint32_t, a ^ b)

static void two_kinds(const uint32_t *x, uint32_t *y, uint32_t *z, uint32_t n) {
  (void)z;
  EACH {
    uint32_t at = x[i] % 128;
    if (at >= n) continue;
    if (at % 2) {
      y[at] += x[i];
    } else if (y[at] < x[i]) {
      y[at] = x[i];
    }
  }
}

static void counts(const uint32_t *x, uint32_t *y, uint32_t *z, uint32_t n) {
  (void)n;
  EACH {
    if (x[i] % 3 == 0) y[0] += 5;
    z[0] += x[i];
    z[1] = z[1] > x[i] ? z[1] : x[i];
    z[2] ^= 9 * (x[i] % 2);
  }
}

/* The places that were given out are all there, each once: their order is not
 * certain, so the kernel leaves marks. */
static void ranks(const uint32_t *x, uint32_t *y, uint32_t *z, uint32_t n) {
  uint32_t before = y[0];
  EACH {
    if (x[i] % 3 == 0) y[0] += 7;
  }
  for (uint32_t at = before; at < y[0]; at += 7) add(z, n, at - before, 1);
}

/* Accesses outside the buffer return 0. */
static void nothing(const uint32_t *x, uint32_t *y, uint32_t *z, uint32_t n) {
  (void)x;
  (void)y;
  (void)z;
  (void)n;
}

static void looks(const uint32_t *x, uint32_t *y, uint32_t *z, uint32_t n) {
  EACH {
    if (i >= n || x[i] % 4 == 0) continue;
    uint32_t at = x[i] % 128, was = at < n ? y[at] : 0;
    z[i] = was * 3 + (x[i] % 2 ? was : 0);
  }
}

static void shared_bytes(const uint32_t *x, uint32_t *y, uint32_t *z,
                         uint32_t n) {
  (void)z;
  const unsigned char *bytes = (const unsigned char *)x;
  for (uint32_t i = 0; i < 4 * ITEMS - 5; i++) add(y, n, bytes[i], 1);
}

static void many_shared(const uint32_t *x, uint32_t *y, uint32_t *z,
                        uint32_t n) {
  (void)z;
  EACH {
    for (uint32_t k = 0; k < 40; k++) add(y, n, (x[i] + k) % 128, 1);
  }
}

static void some_shared(const uint32_t *x, uint32_t *y, uint32_t *z,
                        uint32_t n) {
  (void)z;
  EACH {
    if (x[i] % 5 == 0) continue;
    for (uint32_t k = 0; k < 40; k++) add(y, n, (x[i] + k) % 128, 1);
  }
}

static void few_groups(const uint32_t *x, uint32_t *y, uint32_t *z,
                       uint32_t n) {
  (void)z;
  EACH {
    if (i / 64 % 3 == 1) continue;
    for (uint32_t k = 0; k < 40; k++) add(y, n, (x[i] + k) % 128, 1);
  }
}

static void odd_shared(const uint32_t *x, uint32_t *y, uint32_t *z,
                       uint32_t n) {
  (void)z;
  EACH {
    for (uint32_t k = 0; k < 40; k++) {
      uint32_t at = (x[i] + k) % 101;
      if (at < n) y[at] |= 1u << x[i] % 31;
    }
  }
}

static void interchanged_twice(const uint32_t *x, uint32_t *y, uint32_t *z,
                               uint32_t n) {
  (void)z;
  EACH {
    for (uint32_t k = 0; k < 6; k++) {
      add(y, n, (x[(i + 64 * k) % ITEMS] + k % 2) % 128, k);
    }
  }
}

static void own_iterations(const uint32_t *x, uint32_t *y, uint32_t *z,
                           uint32_t n) {
  (void)z;
  EACH {
    for (uint32_t k = 0; k < x[i] % 7; k++) add(y, n, (x[i] + k) % 128, 1);
  }
}

static void iterations_by_number(const uint32_t *x, uint32_t *y, uint32_t *z,
                                 uint32_t n) {
  (void)x;
  (void)z;
  EACH {
    for (uint32_t k = 0; k < (i & 7); k++) add(y, n, (i + k) & 127, 1);
  }
}

static void keeps_state(const uint32_t *x, uint32_t *y, uint32_t *z,
                        uint32_t n) {
  EACH {
    uint32_t sum = 1;
    for (uint32_t k = 0; k < 5; k++) {
      sum = sum * 3 + x[(i + k) % ITEMS];
      add(y, n, sum % 128, 1);
    }
    if (i < n) z[i] = sum;
  }
}

static void some_left(const uint32_t *x, uint32_t *y, uint32_t *z, uint32_t n) {
  (void)z;
  EACH {
    if (x[i] % 5 == 0) continue;
    for (uint32_t k = 0; k < 4; k++) add(y, n, (x[i] + k) % 128, 1);
  }
}

static void seen_later(const uint32_t *x, uint32_t *y, uint32_t *z,
                       uint32_t n) {
  EACH add(y, n, i, x[i]);
  EACH {
    if (i < n) z[i] = (i ^ 1) < n ? y[i ^ 1] : 0;
  }
}

/* x[x[i]], of which most are outside, says where. */
static void behind_two(const uint32_t *x, uint32_t *y, uint32_t *z,
                       uint32_t n) {
  EACH {
    uint32_t at = x[i] < ITEMS ? x[x[i]] & 127 : 0;
    uint32_t near = x[x[i] & 1023] & 127;
    if (at < n && y[at] < i) y[at] = i;
    if (near < n && z[near] > x[i]) z[near] = x[i];
  }
}

static void behind_a_loop(const uint32_t *x, uint32_t *y, uint32_t *z,
                          uint32_t n) {
  (void)z;
  EACH {
    uint32_t first = x[i] & 2047;
    for (uint32_t k = first; k < first + (x[i] >> 28); k++) {
      uint32_t at = (k < ITEMS ? x[k] : 0) & 127;
      if (at < n && y[at] > k) y[at] = k;
    }
  }
}

static void first_wins(const uint32_t *x, uint32_t *y, uint32_t *z,
                       uint32_t n) {
  EACH {
    if (i >= n) continue;
    uint32_t was = y[i];
    if (was == LEFT) y[i] = x[i];
    z[i] = was;
  }
}

#define TYPED(x, type)               \
  "kernel k workgroup(64) over(x)\n" \
  "buffer x : read " x               \
  "[] @0;\n"                         \
  "buffer y : read_write " type      \
  "[] @1;\n"                         \
  "buffer z : read_write " type      \
  "[] @2;\n"                         \
  "shared s : u32[128];\n"           \
  "{ let i = global_id.x;\n  let l = local_id.x;\n"
#define HEAD   TYPED("u32", "u32")
#define SIGNED TYPED("i32", "i32")

#define MANY \
  "for (let k = 0u; k < 40; k++) { atomic_add(s[(x[i] + k) % 128], 1); }"
#define SHOW \
  "barrier(); atomic_add(y[l], s[l]); atomic_add(y[l + 64], s[l + 64]); }"

static const struct {
  const char *name, *text;
  oracle *right;
  bool waits;      /* updates of y are delayed to the end of a range */
  bool turned;     /* the loop is interchanged with the lanes */
  bool ahead;      /* elements are prefetched */
  bool replicated; /* every other lane counts in a copy of the array */
} cases[] = {
    {"adds", HEAD "atomic_add(y[x[i] % 128], x[i]); }", adds, true, false},
    {"min", HEAD "atomic_min(y[x[i] % 128], x[i]); }", min_u, true, false},
    {"max", HEAD "atomic_max(y[x[i] % 128], x[i]); }", max_u, true, false},
    {"signed min",
     SIGNED "atomic_min(y[u32(x[i]) % 128], x[i] & 0x7FFFFFFF); }", min_s, true,
     false},
    {"signed max", SIGNED "atomic_max(y[u32(x[i]) % 128], x[i] | (1 << 31)); }",
     max_s, true, false},
    {"and", HEAD "atomic_and(y[x[i] % 128], x[i]); }", ands, true, false},
    {"or", HEAD "atomic_or(y[x[i] % 128], x[i]); }", ors, true, false},
    {"xor", HEAD "atomic_xor(y[x[i] % 128], x[i]); }", xors, true, false},
    {"two kinds on one buffer",
     HEAD "let at = x[i] % 128; if (at % 2 == 1) { atomic_add(y[at], x[i]); }"
          "else { atomic_max(y[at], x[i]); } }",
     two_kinds, false, false},
    {"one element for all",
     HEAD "if (x[i] % 3 == 0) { atomic_add(y[0], 5); }"
          "atomic_add(z[0], x[i]); atomic_max(z[1], x[i]);"
          "atomic_xor(z[2], 9 * (x[i] % 2)); }",
     counts, true, false},
    {"ranks",
     HEAD "if (x[i] % 3 == 0) { let at = atomic_add(y[0], 7);"
          "let place = at - "
          "0xA0A0"
          "u;"
          "if (place % 7 == 0) { atomic_add(z[place], 1); } } }",
     ranks, false, false},
    {"outside",
     HEAD "let far = len(y) + i / 64; let got = atomic_add(y[far], 3);"
          "atomic_add(z[1], got); atomic_add(y[len(y)], 1); }",
     nothing, false, false},
    {"looks without a change",
     HEAD "if (i >= len(z) || x[i] % 4 == 0) return;"
          "let a = atomic_or(y[x[i] % 128], 0);"
          "let b = atomic_min(y[x[i] % 128], 0xFFFFFFFFu);"
          "var r = a + b; r = r + atomic_xor(y[x[i] % 128], 0);"
          "if (x[i] % 2 == 1) { r = r + atomic_add(y[x[i] % 128], 0); }"
          "z[i] = r; }",
     looks, false, false},
    {"bytes in shared memory",
     "kernel k workgroup(64) over(x)\n"
     "buffer x : read bytes[] @0;\n"
     "buffer y : read_write u32[] @1;\n"
     "buffer z : read_write u32[] @2;\n"
     "shared s : u32[256];\n"
     "{ let first = workgroup_id.x * 256 + local_id.x;"
     "  for (let k = 0u; k < 4; k++) { let j = first + k * 64;"
     "    if (j < len(x) - 5) atomic_add(s[x[j]], 1); }"
     "  barrier();"
     "  for (let k = 0u; k < 4; k++) {"
     "    atomic_add(y[k * 64 + local_id.x], s[k * 64 + local_id.x]); } }",
     shared_bytes, true, true},
    {"many on shared memory", HEAD MANY SHOW, many_shared, true, true, false,
     true},
    {"many on shared memory, of some",
     HEAD "if (x[i] % 5 != 0) { " MANY " }" SHOW, some_shared, true, false,
     false, true},
    {"many on shared memory with unused results",
     HEAD MANY "if (workgroup_id.x % 3 == 1) return; " SHOW, few_groups, true,
     true, false, true},
    {"many on shared memory, another kind, an odd length",
     "kernel k workgroup(64)\n"
     "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
     "buffer z : read_write u32[] @2;\nshared s : u32[101];\n"
     "{ let i = global_id.x; let l = local_id.x; "
     "for (let k = 0u; k < 40; k++) "
     "{ atomic_or(s[(x[i] + k) % 101], 1 << x[i] % 31); }"
     "barrier(); atomic_or(y[l], s[l]);"
     "if (l < 37) atomic_or(y[l + 64], s[l + 64]); }",
     odd_shared, true, true, false, true},
    {"few on shared memory",
     HEAD "for (let k = 0u; k < 3; k++) { atomic_add(s[(x[i] + k) % 128], 0); }"
          "for (let k = 0u; k < 40; k++) { atomic_add(y[(x[i] + k) % 128], 1); "
          "}"
          "barrier(); atomic_add(y[l], s[l]); }",
     many_shared, true, true},
    {"many on shared memory, asked for",
     HEAD "for (let k = 0u; k < 40; k++) {"
          "if (atomic_add(s[(x[i] + k) % 128], 1) == 99999) s[0] = 1; }" SHOW,
     many_shared, true, false},
    {"many on shared memory, asked for later",
     HEAD MANY "barrier(); let at = l * 5 % 64; let was = atomic_or(s[at], 0);"
               "let more = atomic_or(s[at + 64], 0);"
               "atomic_add(y[at], was); atomic_add(y[at + 64], more); }",
     many_shared, true, true, false, true},
    {"many on shared memory, looked at before a barrier",
     HEAD MANY "if (atomic_or(s[l], 0) == 99999) y[0] = 0;" SHOW, many_shared,
     false, true, false, true},
    {"many on shared memory, in iterations of the workgroup",
     HEAD "for (let r = 0u; r < 4; r++) { for (let k = 0u; k < 10; k++) {"
          "atomic_add(s[(x[i] + r * 10 + k) % 128], 1); } barrier();"
          "if (s[l] == 99999) z[0] = 0; barrier(); }" SHOW,
     many_shared, true, true},
    {"a loop in a loop",
     HEAD "for (let a = 0u; a < 3; a++) { for (let b = 0u; b < 2; b++) {"
          "let k = 2 * a + b; atomic_add("
          "y[(x[(i + 64 * k) % 1536] + k % 2) % 128], k); } } }",
     interchanged_twice, true, true},
    {"iterations of their own",
     HEAD "for (let k = 0u; k < x[i] % 7; k++) {"
          "atomic_add(y[(x[i] + k) % 128], 1); } }",
     own_iterations, true, false},
    {"iterations by number",
     HEAD "for (let k = 0u; k < (l & 7); k++) {"
          "atomic_add(y[(i + k) & 127], 1); } }",
     iterations_by_number, true, false},
    {"state that goes on",
     HEAD "var sum = 1u; for (let k = 0u; k < 5; k++) {"
          "sum = sum * 3 + x[(i + k) % 1536]; atomic_add(y[sum % 128], 1); }"
          "if (i < len(z)) z[i] = sum; }",
     keeps_state, true, false},
    {"some left before",
     HEAD "if (x[i] % 5 == 0) return; for (let k = 0u; k < 4; k++) {"
          "atomic_add(y[(x[i] + k) % 128], 1); } }",
     some_left, true, false},
    {"seen by the workgroup later",
     HEAD "atomic_add(y[i], x[i]); barrier();"
          "if (i < len(z)) { z[i] = y[i ^ 1]; } }",
     seen_later, false, false},
    {"compare and exchange",
     HEAD "if (i < len(z)) { z[i] = atomic_compare_exchange(y[i], 0xA0A0u,"
          " x[i]); } }",
     first_wins, false, false},
    {"behind two loads",
     HEAD "let was = atomic_max(y[x[x[i]] & 127], i);"
          "let other = atomic_min(z[x[x[i] & 1023] & 127], x[i]);"
          "if (was == 0xFFFFFFFFu && other == 0) y[0] = 0; }",
     behind_two, false, false, true},
    {"behind loads in a loop",
     HEAD "let first = x[i] & 2047; let end = first + (x[i] >> 28);"
          "for (let k = first; k < end; k++) {"
          "let was = atomic_min(y[x[k] & 127], k);"
          "if (was == 0xFFFFFFFFu) atomic_min(y[0], was); } }",
     behind_a_loop, false, false, true},
};

enum { CASES = sizeof cases / sizeof cases[0] };

static vyre__lir_kernel lower_case(size_t i, vyre_arena *arena,
                                   vyre_module **module) {
  vyre_status st = {0};
  const vyre__lir_kernel *k = NULL;
  vyre__target target = cpu_target();
  CHECK_OK(
      vyre_module_parse(cases[i].text, strlen(cases[i].text), cases[i].name,
                        (vyre_allocator){0}, module, NULL, &st),
      st);
  CHECK_OK(
      vyre__lower(vyre_module_kernel(*module, 0), &target,
                  (vyre__pass)(VYRE__PASS_COUNT - 1), arena, &k, NULL, &st),
      st);
  return *k;
}

static uint32_t *input; /* behind it, there is nothing to be read */
static uint32_t got[2][MOST + 1], want[2][MOST + 1];

/* Elements hold LEFT, a few of them something else. */
static void prepare(uint64_t seed) {
  for (uint32_t i = 0; i < ITEMS; i++) {
    input[i] = (uint32_t)random_below(&seed, i % 3 ? UINT32_MAX : 2 * ITEMS);
  }
  for (uint32_t b = 0; b < 2; b++) {
    for (uint32_t i = 0; i <= MOST; i++) {
      got[b][i] = i % 5 == 4 ? (uint32_t)random_below(&seed, UINT32_MAX) : LEFT;
    }
  }
  memcpy(want, got, sizeof want);
}

static void take_input(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t size = (ITEMS * sizeof *input + page - 1) / page * page;
  unsigned char *pages = mmap(NULL, size + page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED && mprotect(pages + size, page, PROT_NONE) == 0);
  input = (uint32_t *)(void *)(pages + size) - ITEMS;
}

static unsigned check_case(size_t i) {
  static const uint32_t lengths[] = {3, 100, 257, MOST};
  vyre_arena arena;
  vyre_module *module = NULL;
  unsigned failed = 0;
  vyre_arena_init(&arena, (vyre_allocator){0});
  vyre__lir_kernel k = lower_case(i, &arena, &module);
  compiled c = compile(&k, VYRE__JIT_FULL);
  bool is_bytes = k.buffers[0].width == 1;
  for (unsigned w = 0; w < WIDTHS; w++) {
    for (unsigned n = 0; n < sizeof lengths / sizeof lengths[0]; n++) {
      uint32_t length = lengths[n], grid[3] = {ITEMS / 64, 1, 1};
      vyre__lir_binding buffers[4] = {
          {input, is_bytes ? 4 * ITEMS : ITEMS},
          {got[0], length},
          {got[1], length},
      };
      prepare(11 + w);
      cases[i].right(input, want[0], want[1], length);
      CHECK(run_compiled(&k, &c, w, buffers, grid, UINT32_MAX) ==
            VYRE__SPMD_DONE);
      if (memcmp(got, want, sizeof got) == 0) continue;
      printf("    %s at width %u, %u elements\n", cases[i].name,
             (unsigned)widths[w], (unsigned)length);
      failed++;
    }
  }
  compiled_free(&c);
  vyre_module_release(module);
  vyre_arena_deinit(&arena);
  return failed;
}

TEST(atomics_give_the_expected_memory) {
  unsigned failed = 0;
  take_input();
  for (size_t i = 0; i < CASES; i++) failed += check_case(i);
  CHECK_U64(failed, 0);
}

/* Checks that the emitted code matches the description of each kernel. */
TEST(atomics_and_loops_transform_only_where_legal) {
  unsigned failed = 0;
  for (size_t i = 0; i < CASES; i++) {
    vyre_arena arena;
    vyre_module *module = NULL;
    vyre_status st = {0};
    vyre__spmd_info info;
    vyre_arena_init(&arena, (vyre_allocator){0});
    vyre__lir_kernel k = lower_case(i, &arena, &module);
    text code = emit_text(&k, 8, &info);
    bool waits = strstr(code.bytes, "%q1 = ") != NULL;
    const vyre__lir_kernel *changed = NULL;
    CHECK_OK(vyre__interchange_loops(&k, &arena, &changed, &st), st);
    bool turned = changed != &k;
    bool ahead = strstr(code.bytes, "@llvm.prefetch") != NULL;
    bool replicated = strstr(code.bytes, "%replica3 = ") != NULL;
    if (replicated != cases[i].replicated) {
      printf("    %s: counters replicated or not\n", cases[i].name);
      failed++;
    }
    if (waits != cases[i].waits || turned != cases[i].turned ||
        ahead != cases[i].ahead) {
      printf("    %s: y %s, the loop %s, %s\n", cases[i].name,
             waits ? "waits" : "does not wait", turned ? "turns" : "stays",
             ahead ? "looks ahead" : "does not look ahead");
      failed++;
    }
    free(code.bytes);
    vyre_module_release(module);
    vyre_arena_deinit(&arena);
  }
  CHECK_U64(failed, 0);
}

TEST_MAIN(TEST_ENTRY(atomics_give_the_expected_memory),
          TEST_ENTRY(atomics_and_loops_transform_only_where_legal))
