/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases: for loops that multiply, divide or shift, of every integer type, from
 * and to every edge of the type. */
#include <stdio.h>

#include "cts/harness/cts.h"
#include "cts/harness/test_values.h"

__extension__ typedef __int128 wide;

typedef struct loop_case {
  vyre_type type;
  char op; /* * / l r: *= /= <<= >>= */
  bool is_inclusive;
  bool has_constant_bound;
} loop_case;

static const vyre_type types[] = {VYRE_TYPE_U32, VYRE_TYPE_I32, VYRE_TYPE_U64,
                                  VYRE_TYPE_I64};
static const char ops[] = {'*', '/', 'l', 'r'};
static const char *const spellings[] = {"*=", "/=", "<<=", ">>="};

enum { CASES = 4 * 4 * 2 * 2, MAX_TEXT = 700, FACTORS = 3 };

static loop_case case_at(size_t index) {
  return (loop_case){.type = types[index % 4],
                     .op = ops[index / 4 % 4],
                     .is_inclusive = index / 16 % 2,
                     .has_constant_bound = index / 32 % 2};
}

static size_t loops_count(void) {
  return CASES;
}

static void loops_label(size_t index, char *out, size_t size) {
  static const char *const names[] = {"multiply", "divide", "shift_left",
                                      "shift_right"};
  loop_case l = case_at(index);
  (void)snprintf(
      out, size, "%s%s%s.%s", names[index / 4 % 4], l.is_inclusive ? "_to" : "",
      l.has_constant_bound ? "_constant" : "", vyre_type_name(l.type));
}

static unsigned width_of(vyre_type type) {
  return 8 * (unsigned)cts_type_size(type);
}

static bool is_signed(vyre_type type) {
  return type == VYRE_TYPE_I32 || type == VYRE_TYPE_I64;
}

static wide value_of(vyre_type type, uint64_t bits) {
  if (type == VYRE_TYPE_I32) return (int32_t)(uint32_t)bits;
  return type == VYRE_TYPE_I64 ? (wide)(int64_t)bits : (wide)bits;
}

static bool fits(vyre_type type, wide value) {
  wide high = (wide)1 << (width_of(type) - is_signed(type));
  return value < high && value >= (is_signed(type) ? -high : 0);
}

/* A factor, or the amount of a shift. */
static unsigned step_of(loop_case l, unsigned which) {
  static const unsigned factors[FACTORS] = {2, 3, 1000};
  const unsigned shifts[FACTORS] = {1, 5, width_of(l.type) - 1};
  return l.op == '*' || l.op == '/' ? factors[which] : shifts[which];
}

static bool goes_up(loop_case l) {
  return l.op == '*' || l.op == 'l';
}

static bool holds(loop_case l, wide v, wide bound) {
  if (v == bound) return l.is_inclusive;
  return goes_up(l) ? v < bound : v > bound;
}

/* Returns what the body of the kernel computes over all iterations. */
static uint32_t expected(loop_case l, wide v, wide bound, unsigned step) {
  wide factor = l.op == '*' || l.op == '/' ? step : (wide)1 << step;
  uint32_t hash = 7;
  while (holds(l, v, bound)) {
    hash = hash * 31 + (uint32_t)v + 1;
    if ((hash & 3) != 1) hash += 5;
    if (v < 1) break;
    wide next = goes_up(l) ? v * factor : v / factor;
    if (!fits(l.type, next)) break;
    v = next;
  }
  return hash;
}

static void write_kernel(loop_case l, size_t index, unsigned step,
                         const char *bound, char text[MAX_TEXT]) {
  const char *type = vyre_type_name(l.type);
  const char *compares[] = {">", ">=", "<", "<="};
  (void)snprintf(text, MAX_TEXT,
                 "kernel k workgroup(32) over(r)\n"
                 "buffer f : read %s[] @0;\nbuffer b : read %s[] @1;\n"
                 "buffer r : write u32[] @2;\n"
                 "{\n    let i = global_id.x;\n    var hash = 7u;\n"
                 "    for (let v = f[i]; v %s %s; v %s %u) {\n"
                 "        hash = hash * 31 + u32(v) + 1;\n"
                 "        if ((hash & 3) == 1) continue;\n"
                 "        hash += 5;\n    }\n    r[i] = hash;\n}\n",
                 type, type, compares[goes_up(l) * 2 + l.is_inclusive], bound,
                 spellings[index / 4 % 4], step);
}

/* Runs one kernel over all pairs of edges, or all first values and one bound. */
static void run(cts *c, loop_case l, size_t index, unsigned step,
                const uint64_t *constant) {
  char text[MAX_TEXT], bound[48] = "b[i]";
  size_t edges, size = cts_type_size(l.type);
  const uint64_t *values = cts_edges(l.type, &edges);
  size_t rows = constant ? edges : edges * edges;
  if (constant) {
    if (is_signed(l.type)) {
      (void)snprintf(bound, sizeof bound, "%lld%s",
                     (long long)value_of(l.type, *constant),
                     size == 8 ? "l" : "i");
    } else {
      (void)snprintf(bound, sizeof bound, "%llu%s",
                     (unsigned long long)*constant, size == 8 ? "ul" : "u");
    }
  }
  void *first = cts_memory(c, rows * size), *last = cts_memory(c, rows * size);
  uint32_t *got = (uint32_t *)cts_memory(c, rows * 4);
  uint32_t *want = (uint32_t *)cts_memory(c, rows * 4);
  for (size_t row = 0; row < rows; row++) {
    uint64_t from = values[row % edges];
    uint64_t to = constant ? *constant : values[row / edges];
    cts_put(first, row, l.type, from);
    cts_put(last, row, l.type, to);
    want[row] = expected(l, value_of(l.type, from), value_of(l.type, to), step);
  }
  vyre_input in[] = {vyre_input_bytes(first, rows * size),
                     vyre_input_bytes(last, rows * size)};
  vyre_output out = vyre_output_bytes(got, rows * 4);
  vyre_dispatch_desc desc = {
      .inputs = in, .input_count = 2, .outputs = &out, .output_count = 1};
  write_kernel(l, index, step, bound, text);
  vyre_pipeline *pipeline =
      cts_compile(c, cts_program(c, text), cts_needs_of(l.type));
  vyre_counters before;
  vyre_counters_read(c->device, &before);
  CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
  CTS_LAUNCHED(c, before.launches + 1);
  CTS_SAME(c, text, got, want, rows * 4);
}

static void loops_run(cts *c, size_t index) {
  loop_case l = case_at(index);
  size_t edges;
  const uint64_t *values = cts_edges(l.type, &edges);
  for (unsigned which = 0; which < FACTORS; which++) {
    unsigned step = step_of(l, which);
    /* A constant bound is another kernel, so that few are tried. */
    const uint64_t *bound = &values[(index * 7 + (size_t)which * 5) % edges];
    run(c, l, index, step, l.has_constant_bound ? bound : NULL);
  }
}

const cts_area area_geometric_loops = {"geometric_loops",
                                       "for loops that multiply or divide",
                                       loops_count, loops_label, loops_run};
