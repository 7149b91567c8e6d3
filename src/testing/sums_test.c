/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Exact sums: the bytes equal those of arithmetic on long integers, on every
 * device and for every way to cut the work; a rounded sum is nearest to the
 * exact one.
 *
 * The oracle keeps a sum as 8-bit digits in two's complement and shares no code
 * with the library. */
#include <math.h>
#include <stdlib.h>

#include "vyre/vyre.h"

#include "support/check.h"
#include "support/parse.h"
#include "support/text.h"

/* --- long integers ---------------------------------------------------------*/

enum { DIGITS = 300, LOWEST = 1080 }; /* bit 0 counts units of 2^-LOWEST */

typedef struct big {
  uint8_t digit[DIGITS];
} big;

static void big_add(big *to, const big *other) {
  unsigned carry = 0;
  for (int i = 0; i < DIGITS; i++) {
    carry += to->digit[i] + other->digit[i];
    to->digit[i] = (uint8_t)carry;
    carry >>= 8;
  }
}

static void big_negate(big *to) {
  big one = {.digit = {1}};
  for (int i = 0; i < DIGITS; i++) to->digit[i] = (uint8_t)~to->digit[i];
  big_add(to, &one);
}

/* The value of a finite number, times two if @p twice. */
static big big_of(double value, bool twice) {
  big out = {{0}};
  int exponent;
  const double part = frexp(fabs(value), &exponent);
  uint64_t whole = (uint64_t)ldexp(part, 53);
  for (int at = exponent - 53 + LOWEST + twice; whole; at++, whole >>= 1) {
    if (whole & 1) out.digit[at / 8] |= (uint8_t)(1u << at % 8);
  }
  if (signbit(value)) big_negate(&out);
  return out;
}

static bool big_is_negative(const big *a) {
  return a->digit[DIGITS - 1] >> 7;
}

static bool big_is_zero(const big *a) {
  for (int i = 0; i < DIGITS; i++) {
    if (a->digit[i]) return false;
  }
  return true;
}

/* Returns the sign of a - b. */
static int big_compare(const big *a, const big *b) {
  big minus = *b;
  big_negate(&minus);
  big_add(&minus, a);
  return big_is_zero(&minus) ? 0 : big_is_negative(&minus) ? -1 : 1;
}

/* --- expected sums ---------------------------------------------------------*/

typedef struct expected {
  big sum;
  unsigned flags;
} expected;

static void expect_add(expected *e, double value) {
  if (isnan(value)) {
    e->flags |= 4;
  } else if (isinf(value)) {
    e->flags |= value > 0 ? 1 : 2;
  } else {
    big each = big_of(value, false);
    big_add(&e->sum, &each);
  }
}

/* Writes the element that holds a sum. */
static void expect_bytes(const expected *e, bool is_wide, uint8_t *out) {
  const int bins = is_wide ? 71 : 11, unit = is_wide ? 1074 : 149;
  memset(out, 0, (size_t)(bins + 1) * 8);
  for (int bit = 0; bit < bins * 32 + 32; bit++) {
    const int at = bit + LOWEST - unit;
    const int place = at / 8 < DIGITS ? at / 8 : DIGITS - 1;
    if (!(e->sum.digit[place] >> (at / 8 < DIGITS ? at % 8 : 7) & 1)) continue;
    int bin = bit / 32, in = bit % 32;
    if (bin >= bins) bin = bins - 1, in += 32;
    out[bin * 8 + in / 8] |= (uint8_t)(1u << in % 8);
  }
  out[(size_t)bins * 8] = (uint8_t)e->flags;
}

static double next_to(double value, bool is_wide, double to) {
  if (is_wide) return nextafter(value, to);
  return (double)nextafterf((float)value, (float)to);
}

/* Checks that a value is the nearest to the sum, with ties to even: twice the
 * sum is between value + previous and value + next. */
static bool is_nearest(const expected *e, bool is_wide, double value) {
  if (e->flags) {
    if (e->flags == 1) return value == INFINITY;
    if (e->flags == 2) return value == -INFINITY;
    return isnan(value);
  }
  if (big_is_zero(&e->sum)) return value == 0 && !signbit(value);
  big twice = e->sum;
  big_add(&twice, &e->sum);
  const double most = is_wide ? 0x1.fffffffffffffp1023 : 0x1.fffffep127;
  if (isinf(value)) {
    /* from half an ulp above the largest number on */
    big limit = big_of(most, true);
    big ulp = big_of(is_wide ? 0x1p971 : 0x1p104, false);
    big_add(&limit, &ulp);
    if (value < 0) big_negate(&twice);
    return big_compare(&twice, &limit) >= 0;
  }
  int exponent;
  const double step = is_wide ? 53 : 24;
  (void)frexp(value, &exponent);
  double least = is_wide ? 0x1p-1074 : 0x1p-149;
  double ulp = ldexp(1, exponent - (int)step);
  if (ulp < least || value == 0) ulp = least;
  const bool is_odd = fmod(fabs(value) / ulp, 2) == 1;
  for (int side = -1; side <= 1; side += 2) {
    const double next = next_to(value, is_wide, side * (double)INFINITY);
    big bound = big_of(value, false);
    big other = isinf(next) ? big_of(value, false) : big_of(next, false);
    if (isinf(next)) {
      big more = big_of(side * (is_wide ? 0x1p971 : 0x1p104), false);
      big_add(&other, &more);
    }
    big_add(&bound, &other);
    const int c = big_compare(&twice, &bound) * side;
    if (c > 0 || (c == 0 && is_odd)) return false;
  }
  return true;
}

/* --- numbers ---------------------------------------------------------------*/

static uint64_t state;

static uint64_t next(void) {
  uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

enum { KINDS = 8 };

/* Returns a number of a kind that is hard to add. */
static double draw(unsigned kind, bool is_wide, double before) {
  const int range = is_wide ? 1000 : 120;
  const double sign = next() & 1 ? 1 : -1;
  const double part = 1 + (double)(next() >> 11) * 0x1p-53;
  float single;
  uint32_t low = (uint32_t)next();
  double any;
  uint64_t bits = next();
  switch (kind) {
    case 0:
      return part - 1;
    case 1:
      return sign * ldexp(part, (int)(next() % (unsigned)(2 * range)) - range);
    case 2: /* cancels the last one, nearly */
      return before != 0 && next() & 1 ? -before
                                       : sign * ldexp(part, (int)(next() % 60));
    case 3: /* subnormal */
      return sign * (double)(next() % 9) * (is_wide ? 0x1p-1074 : 0x1p-149);
    case 4: /* the largest */
      return sign * (is_wide ? 0x1.fffffffffffffp1023 : 0x1.fffffep127);
    case 5: /* ties */
      return next() & 1 ? 1 : sign * ldexp(1, is_wide ? -53 : -24);
    case 6: /* powers of two */
      return sign * ldexp(1, (int)(next() % (unsigned)range) - range / 2);
    default:
      memcpy(&single, &low, sizeof single);
      memcpy(&any, &bits, sizeof any);
      return is_wide ? any : (double)single;
  }
}

static double rounded(double value, bool is_wide) {
  return is_wide ? value : (double)(float)value;
}

/* --- host functions --------------------------------------------------------*/

enum { SUM_BYTES = 576, MOST = 40 };

static void host_add(bool is_wide, void *sum, const double *x, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const float single = (float)x[i];
    if (is_wide) {
      vyre_sum_add_f64(sum, &x[i], 1);
    } else {
      vyre_sum_add_f32(sum, &single, 1);
    }
  }
}

TEST(host_sums_are_exact_and_rounded_to_nearest) {
  state = 1;
  for (unsigned turn = 0; turn < 10000; turn++) {
    const bool is_wide = turn & 1;
    uint8_t sum[SUM_BYTES] = {0}, parts[2][SUM_BYTES] = {{0}};
    uint8_t want[SUM_BYTES];
    double x[MOST], before = 0;
    const size_t n = 1 + next() % MOST;
    const unsigned kind = turn / 2 % KINDS;
    expected e = {0};
    vyre_status st = {0};
    for (size_t i = 0; i < n; i++) {
      x[i] = before = rounded(draw(kind, is_wide, before), is_wide);
      expect_add(&e, x[i]);
    }
    host_add(is_wide, sum, x, n);
    expect_bytes(&e, is_wide, want);
    const size_t size = is_wide ? 576 : 96;
    CHECK(memcmp(sum, want, size) == 0);
    const double value =
        is_wide ? vyre_sum_round_f64(sum) : (double)vyre_sum_round_f32(sum);
    CHECK(is_nearest(&e, is_wide, value));
    host_add(is_wide, parts[0], x, n / 3);
    host_add(is_wide, parts[1], x + n / 3, n - n / 3);
    CHECK_OK(
        vyre_sum_merge(is_wide ? VYRE_ELEMENT_SUM_F64 : VYRE_ELEMENT_SUM_F32,
                       parts[0], parts[1], 1, &st),
        st);
    CHECK(memcmp(parts[0], want, size) == 0);
  }
  vyre_status st = {0};
  uint8_t sum[SUM_BYTES] = {0};
  CHECK(vyre_sum_merge(VYRE_ELEMENT_F32, sum, sum, 1, &st) ==
        VYRE_INVALID_ARGUMENT);
  CHECK(vyre_sum_merge(VYRE_ELEMENT_SUM_F32, NULL, sum, 1, &st) ==
        VYRE_INVALID_ARGUMENT);
}

/* --- devices ---------------------------------------------------------------*/

typedef struct target {
  const char *name, *options;
} target;

static const target targets[] = {
    {"ref", ""},
    {"cpu", ""},
    {"cpu", "cpu.width=1"},
    {"cpu", "cpu.width=4,cpu.threads=2"},
    {"cpu", "cpu.width=8,cpu.threads=1"},
    {"cpu", "cpu.width=16,cpu.threads=7"},
    {"cpu", "cpu.width=32,cpu.threads=3"},
    {"cpu", "cpu.isa_level=sse2"},
    {"vulkan", ""},
};

static bool is_missing;

static vyre_device *open_device(const target *t, vyre_context **context) {
  vyre_status st = {0};
  vyre_device *device = NULL;
  const vyre_context_options options = {
      .trace_file = "", .faults = "", .backend_options = t->options};
  CHECK_OK(vyre_context_create(&options, context, &st), st);
  if (vyre_device_open(*context, t->name, &device, &st) == VYRE_OK) {
    return device;
  }
  vyre_context_release(*context);
  is_missing = true;
  return NULL;
}

enum { NUMBERS = 3000, SUMS = 3, CUTS = 12 };

/* A way to cut the work: @p shards dispatches add to sums of their own, which
 * are merged on the host. Each invocation adds several numbers. */
typedef struct cut {
  unsigned workgroup, groups, shards;
} cut;

static const cut cuts[CUTS] = {{1, 1, 1},    {64, 47, 1}, {256, 12, 1},
                               {33, 5, 1},   {7, 100, 2}, {128, 1, 3},
                               {1024, 3, 1}, {96, 9, 5},  {5, 2, 1},
                               {256, 1, 2},  {32, 94, 1}, {64, 3, 7}};

/* One sum for all, one per number modulo SUMS, and one that depends on the
 * workgroup, with loops, guards and conditions. */
static const char *const kernel_format =
    "kernel k workgroup(%u)\n"
    "buffer x : read %s[] @0;\n"
    "buffer s : read_write sum_%s[%u] @1;\n"
    "buffer y : write %s[%u] @2 output;\n"
    "{\n"
    "    let all = grid_size.x * workgroup_size.x;\n"
    "    let share = (len(x) + all - 1) / all;\n"
    "    let first = global_id.x * share;\n"
    "    for (let i = first; i < min(first + share, len(x)); i++) {\n"
    "        atomic_add(s[0], x[i]);\n"
    "        atomic_add(s[1 + i %% 2], x[i]);\n"
    "    }\n"
    "    grid_barrier();\n"
    "    let j = global_id.x;\n"
    "    if (j == 0) {\n"
    "        for (let k = 0u; k < 3; k++) { y[k] = s[k]; }\n"
    "    }\n"
    "}\n";

typedef struct job {
  vyre_device *device;
  const double *x;
  bool is_wide;
  uint8_t *sums;   /* SUMS elements */
  uint8_t *values; /* SUMS numbers of the last shard */
} job;

/* Runs one shard on numbers [first, end). */
static void run_shard(const job *j, const cut *c, size_t first, size_t end,
                      uint8_t *sums) {
  char text[1600];
  vyre_status st = {0};
  const char *type = j->is_wide ? "f64" : "f32";
  const size_t each = j->is_wide ? 8 : 4, size = j->is_wide ? 576 : 96;
  snprintf(text, sizeof text, kernel_format, c->workgroup, type, type, SUMS,
           type, SUMS);
  vyre_module *module = parse_module(text);
  vyre_pipeline *pipeline = NULL;
  CHECK_OK(vyre_pipeline_compile(j->device, vyre_module_kernel(module, 0), NULL,
                                 &pipeline, NULL, &st),
           st);
  uint8_t *x = malloc(each * (end - first) + 1);
  for (size_t i = first; i < end; i++) {
    const float single = (float)j->x[i];
    memcpy(x + (i - first) * each,
           j->is_wide ? (const void *)&j->x[i] : (const void *)&single, each);
  }
  const vyre_input inputs[2] = {vyre_input_bytes(x, each * (end - first)),
                                vyre_input_bytes(sums, size * SUMS)};
  const vyre_output outputs[2] = {vyre_output_bytes(sums, size * SUMS),
                                  vyre_output_bytes(j->values, each * SUMS)};
  const vyre_dispatch_desc desc = {.inputs = inputs,
                                   .input_count = 2,
                                   .outputs = outputs,
                                   .output_count = 2,
                                   .grid = {c->groups, 1, 1}};
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
  free(x);
  vyre_pipeline_release(pipeline);
  vyre_module_release(module);
}

static void run_cut(const job *j, const cut *c) {
  vyre_status st = {0};
  const size_t size = j->is_wide ? 576 : 96;
  const size_t share = (NUMBERS + c->shards - 1) / c->shards;
  memset(j->sums, 0, size * SUMS);
  for (unsigned s = 0; s < c->shards; s++) {
    uint8_t own[SUMS * SUM_BYTES] = {0};
    const size_t first = s * share;
    const size_t end = first + share < NUMBERS ? first + share : NUMBERS;
    run_shard(j, c, first, end, own);
    /* Shards begin at even and odd numbers. */
    if (first % 2) {
      uint8_t swap[SUM_BYTES];
      memcpy(swap, own + size, size);
      memcpy(own + size, own + 2 * size, size);
      memcpy(own + 2 * size, swap, size);
    }
    CHECK_OK(
        vyre_sum_merge(j->is_wide ? VYRE_ELEMENT_SUM_F64 : VYRE_ELEMENT_SUM_F32,
                       j->sums, own, SUMS, &st),
        st);
  }
}

/* Runs all cuts on numbers of one kind. */
static void check_kind(vyre_device *device, const char *name, unsigned kind,
                       bool is_wide) {
  static double x[NUMBERS];
  static uint8_t sums[SUMS * SUM_BYTES], want[SUMS * SUM_BYTES];
  uint8_t values[SUMS * 8];
  const size_t size = is_wide ? 576 : 96;
  expected e[SUMS] = {{.flags = 0}};
  double before = 0;
  state = kind;
  for (size_t i = 0; i < NUMBERS; i++) {
    x[i] = before = rounded(draw(kind, is_wide, before), is_wide);
    if (kind == KINDS - 1 && i % 700 && !isfinite(x[i])) x[i] = 1;
    expect_add(&e[0], x[i]);
    expect_add(&e[1 + i % 2], x[i]);
  }
  for (int s = 0; s < SUMS; s++) {
    expect_bytes(&e[s], is_wide, want + (size_t)s * size);
  }
  const job j = {device, x, is_wide, sums, values};
  const uint32_t most = vyre_device_get_caps(device)->max_workgroup_invocations;
  for (size_t c = 0; c < CUTS; c++) {
    if (cuts[c].workgroup > most) continue;
    run_cut(&j, &cuts[c]);
    if (memcmp(sums, want, SUMS * size) != 0) {
      printf("    %s, %s, kind %u, cut %zu differs\n", name,
             is_wide ? "f64" : "f32", kind, c);
    }
    CHECK(memcmp(sums, want, SUMS * size) == 0);
    for (size_t s = 0; s < SUMS && cuts[c].shards == 1; s++) {
      float single;
      double value;
      memcpy(&single, values + 4 * s, sizeof single);
      memcpy(&value, values + 8 * s, sizeof value);
      CHECK(is_nearest(&e[s], is_wide, is_wide ? value : (double)single));
    }
  }
}

TEST(sums_have_the_same_bytes_on_every_device) {
  for (size_t t = 0; t < sizeof targets / sizeof targets[0]; t++) {
    vyre_context *context;
    vyre_device *device = open_device(&targets[t], &context);
    if (!device) continue;
    const vyre_device_caps *caps = vyre_device_get_caps(device);
    for (unsigned kind = 0; kind < KINDS; kind++) {
      check_kind(device, targets[t].name, kind, false);
      if (caps->has_f64 && kind % 3 == t % 3) {
        check_kind(device, targets[t].name, kind, true);
      }
    }
    vyre_device_release(device);
    vyre_context_release(context);
  }
}

/* --- workgroups ------------------------------------------------------------*/

enum { GROUP = 72, GROUPS = 3, ALL = GROUP * GROUPS, RESULTS = 5 };

/* %s: the type, twice */
static const char *const workgroup_format =
    "kernel k workgroup(12, 3, 2) over(x)\n"
    "buffer x : read %s[] @0;\n"
    "buffer y : write %s[%u] @1 output;\n"
    "{\n"
    "    let i = workgroup_id.x * 72 + local_id.x + 12 * (local_id.y + 3 * "
    "local_id.z);\n"
    "    let v = x[i];\n"
    "    y[i * 5] = reduce_add(v);\n"
    "    y[i * 5 + 1] = reduce_min(v);\n"
    "    if (reduce_max(v) == reduce_max(v)) { barrier(); }\n"
    "    y[i * 5 + 2] = reduce_max(v);\n"
    "    y[i * 5 + 3] = scan_add(v);\n"
    "    y[i * 5 + 4] = scan_add_before(v);\n"
    "}\n";

static void run_workgroups(vyre_device *device, const char *type, const void *x,
                           void *y, size_t each) {
  char text[1200];
  vyre_status st = {0};
  snprintf(text, sizeof text, workgroup_format, type, type, ALL * RESULTS);
  vyre_module *module = parse_module(text);
  vyre_pipeline *pipeline = NULL;
  CHECK_OK(vyre_pipeline_compile(device, vyre_module_kernel(module, 0), NULL,
                                 &pipeline, NULL, &st),
           st);
  const vyre_input inputs[1] = {vyre_input_bytes(x, each * ALL)};
  const vyre_output outputs[1] = {vyre_output_bytes(y, each * ALL * RESULTS)};
  const vyre_dispatch_desc desc = {.inputs = inputs,
                                   .input_count = 1,
                                   .outputs = outputs,
                                   .output_count = 1,
                                   .grid = {GROUPS, 1, 1}};
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
  vyre_pipeline_release(pipeline);
  vyre_module_release(module);
}

static void check_floats(vyre_device *device, unsigned kind) {
  float x[ALL], y[ALL * RESULTS];
  double before = 0;
  state = kind + 77;
  for (int i = 0; i < ALL; i++) {
    x[i] = (float)(before = rounded(draw(kind, false, before), false));
  }
  run_workgroups(device, "f32", x, y, sizeof *x);
  for (size_t g = 0; g < GROUPS; g++) {
    expected e = {.flags = 0}, all = {.flags = 0};
    float low = NAN, high = NAN;
    for (size_t k = 0; k < GROUP; k++) {
      const float v = x[g * GROUP + k];
      expect_add(&all, (double)v);
      if (isnan(v)) continue;
      low = isnan(low) || v < low ? v : low;
      high = isnan(high) || v > high ? v : high;
    }
    for (size_t k = 0; k < GROUP; k++) {
      const float *own = y + (g * GROUP + k) * RESULTS;
      CHECK(is_nearest(&all, false, (double)own[0]));
      CHECK(own[1] == low || (isnan(own[1]) && isnan(low)));
      CHECK(own[2] == high || (isnan(own[2]) && isnan(high)));
      CHECK(is_nearest(&e, false, (double)own[4]));
      expect_add(&e, (double)x[g * GROUP + k]);
      CHECK(is_nearest(&e, false, (double)own[3]));
    }
  }
}

static void check_integers(vyre_device *device) {
  int32_t x[ALL], y[ALL * RESULTS];
  state = 5;
  for (int i = 0; i < ALL; i++) x[i] = (int32_t)next();
  run_workgroups(device, "i32", x, y, sizeof *x);
  for (size_t g = 0; g < GROUPS; g++) {
    uint32_t sum = 0, all = 0;
    int32_t low = INT32_MAX, high = INT32_MIN;
    for (size_t k = 0; k < GROUP; k++) {
      const int32_t v = x[g * GROUP + k];
      all += (uint32_t)v;
      low = v < low ? v : low;
      high = v > high ? v : high;
    }
    for (size_t k = 0; k < GROUP; k++) {
      const int32_t *own = y + (g * GROUP + k) * RESULTS;
      CHECK(own[0] == (int32_t)all && own[1] == low && own[2] == high);
      CHECK(own[4] == (int32_t)sum);
      sum += (uint32_t)x[g * GROUP + k];
      CHECK(own[3] == (int32_t)sum);
    }
  }
}

TEST(workgroup_sums_are_exact_on_every_device) {
  for (size_t t = 0; t < sizeof targets / sizeof targets[0]; t++) {
    vyre_context *context;
    vyre_device *device = open_device(&targets[t], &context);
    if (!device) continue;
    for (unsigned kind = 0; kind < KINDS; kind++) check_floats(device, kind);
    check_integers(device);
    vyre_device_release(device);
    vyre_context_release(context);
  }
}

/* --- other forms -----------------------------------------------------------*/

TEST(sums_survive_printing_and_the_binary_form) {
  static const char text[] =
      "kernel k workgroup(64)\n"
      "buffer s : read_write sum_f64[] @0;\n"
      "buffer t : read sum_f64[4] @1;\n"
      "shared u : sum_f32[2];\n"
      "{ atomic_add(s[0], s[1]); atomic_merge(s[2], t[3]); s[4] = t[0]; "
      "atomic_add(u[1], 2.0); let v = reduce_add(scan_add(3.0)) + "
      "scan_add_before(f32(reduce_xor(5u))) + reduce_min(u[0]); "
      "if (v > reduce_max(1.0)) { s[5] = 1.0; } }";
  vyre_status st = {0};
  vyre_module *module = parse_module(text);
  const vyre_program *program = vyre_module_kernel(module, 0);
  growing_text printed = {0};
  CHECK(vyre_program_print(program, growing_writer(&printed)));
  vyre_module *again = parse_module(printed.bytes);
  CHECK(vyre_program_equal(program, vyre_module_kernel(again, 0)));
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  const uint8_t *bytes;
  size_t length;
  vyre_program *read;
  CHECK_OK(vyre_program_write_binary(program, &arena, &bytes, &length, &st),
           st);
  CHECK_OK(
      vyre_program_read_binary(bytes, length, (vyre_allocator){0}, &read, &st),
      st);
  CHECK(vyre_program_equal(program, read));
  vyre_program_release(read);
  vyre_arena_deinit(&arena);
  free(printed.bytes);
  vyre_module_release(again);
  vyre_module_release(module);
}

TEST(wrong_uses_of_sums) {
  static const struct {
    const char *text, *rule, *fix;
  } rows[] = {
      {"let v = atomic_add(s[0], 1.0);", "V057", "statement"},
      {"p[0] = 1.0 + atomic_add(s[0], 1.0);", "V057", "statement"},
      {"atomic_add(p[0], 1.0);", "V072", "buffer p : read_write sum_f32[]"},
      {"atomic_add(h[0], 1.0);", "V072", "shared h : sum_f32[4]"},
      {"atomic_max(s[0], 1.0);", "V072", "atomic_merge"},
      {"atomic_add(s[0], 1);", "V062", "1.0"},
      {"atomic_add(r[0], 1.0);", "V073", "read_write"},
      {"atomic_merge(s[0], 1.0);", "V072", "sum_f32"},
      {"atomic_merge(s[0], p[0]);", "V072", "sum_f32"},
      {"atomic_merge(p[0], s[0]);", "V072", "sum_f32"},
      {"s[0] = 1u;", "V069", "f32"},
      {"let v = reduce_and(1.0);", "V061", "cast"},
      {"let v = reduce_add(true);", "V061", ""},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[512];
    vyre_diagnostics found = {0};
    vyre_status st = {0};
    vyre_module *module;
    snprintf(text, sizeof text,
             "kernel k buffer s : read_write sum_f32[] @0; buffer r : read "
             "sum_f32[] @1; buffer p : read_write f32[] @2; shared h : f32[4]; "
             "{ %s }",
             rows[i].text);
    CHECK(vyre_module_parse(text, strlen(text), "t", (vyre_allocator){0},
                            &module, &found, &st) != VYRE_OK);
    CHECK(found.count >= 1);
    if (strcmp(found.items[0].rule, rows[i].rule) != 0 ||
        !strstr(found.items[0].fix, rows[i].fix)) {
      printf("    %s: %s %s; %s\n", rows[i].text, found.items[0].rule,
             found.items[0].message, found.items[0].fix);
    }
    CHECK_TEXT(found.items[0].rule, rows[i].rule);
    CHECK_HAS(found.items[0].fix, rows[i].fix);
    vyre_diagnostics_deinit(&found);
  }
}

TEST_MAIN(TEST_ENTRY(host_sums_are_exact_and_rounded_to_nearest),
          TEST_ENTRY(sums_have_the_same_bytes_on_every_device),
          TEST_ENTRY(workgroup_sums_are_exact_on_every_device),
          TEST_ENTRY(sums_survive_printing_and_the_binary_form),
          TEST_ENTRY(wrong_uses_of_sums))
