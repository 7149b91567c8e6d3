/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases: loads and stores of every element type, at odd lengths, by neighbours
 * that write at the same time, and outside the buffer. */
#include <stdio.h>
#include <string.h>

#include "cts/harness/test_values.h"

enum { LENGTH = 101, MAX_TEXT = 1024 };

static const struct {
  const char *element;
  vyre_type type; /* type of a loaded value */
  size_t size;
} kinds[] = {{"bool", VYRE_TYPE_BOOL, 1}, {"u8", VYRE_TYPE_U32, 1},
             {"i8", VYRE_TYPE_I32, 1},    {"u16", VYRE_TYPE_U32, 2},
             {"i16", VYRE_TYPE_I32, 2},   {"u32", VYRE_TYPE_U32, 4},
             {"i32", VYRE_TYPE_I32, 4},   {"u64", VYRE_TYPE_U64, 8},
             {"i64", VYRE_TYPE_I64, 8},   {"f16", VYRE_TYPE_F32, 2},
             {"bf16", VYRE_TYPE_F32, 2},  {"f32", VYRE_TYPE_F32, 4},
             {"f64", VYRE_TYPE_F64, 8},   {"bytes", VYRE_TYPE_U32, 1}};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* --- Elements in plain C
 * ------------------------------------------------------ */

static uint32_t half_to_float(uint32_t half) {
  uint32_t sign = (half & 0x8000) << 16, exponent = half >> 10 & 31;
  uint32_t mantissa = half & 0x3FF;
  if (exponent == 31) return mantissa ? 0x7FC00000 : sign | 0x7F800000;
  if (exponent > 0) return sign | (exponent + 112) << 23 | mantissa << 13;
  if (mantissa == 0) return sign;
  uint32_t shift = 0;
  while (!(mantissa & 0x400)) {
    mantissa <<= 1;
    shift++;
  }
  return sign | (113 - shift) << 23 | (mantissa & 0x3FF) << 13;
}

/* Finds the nearest half-precision value by searching all of them. */
static uint32_t float_to_half(uint32_t bits) {
  float value, one;
  memcpy(&value, &bits, sizeof value);
  if (value != value) return 0x7E00;
  uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7FFFFFFF, best = 0;
  if (size >= 0x477FF000) return sign | 0x7C00; /* 65520 and above */
  double wanted, nearest = 1e300;
  memcpy(&one, &size, sizeof one);
  wanted = one;
  for (uint32_t half = 0; half < 0x7C00; half++) {
    uint32_t wide = half_to_float(half);
    memcpy(&one, &wide, sizeof one);
    double distance = wanted > one ? wanted - one : one - wanted;
    if (distance > nearest || (distance == nearest && half % 2)) continue;
    nearest = distance;
    best = half;
  }
  return sign | best;
}

static uint32_t float_to_bfloat(uint32_t bits) {
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FC0;
  uint32_t rest = bits & 0xFFFF, kept = bits >> 16;
  if (rest > 0x8000 || (rest == 0x8000 && kept % 2)) kept++;
  return kept;
}

/* Returns the value that a load of these bits gives, as bits of its type. */
static uint64_t expect_load(size_t kind, uint64_t bits) {
  const char *name = kinds[kind].element;
  if (strcmp(name, "bool") == 0) return bits != 0;
  if (strcmp(name, "i8") == 0) return (uint32_t)(int32_t)(int8_t)bits;
  if (strcmp(name, "i16") == 0) return (uint32_t)(int32_t)(int16_t)bits;
  if (strcmp(name, "f16") == 0) return half_to_float((uint32_t)bits);
  if (strcmp(name, "bf16") == 0) {
    return cts_seen(VYRE_TYPE_F32, (uint32_t)bits << 16);
  }
  return cts_seen(kinds[kind].type, bits);
}

/* Returns the bits that a store of a value writes. */
static uint64_t expect_store(size_t kind, uint64_t value) {
  const char *name = kinds[kind].element;
  if (strcmp(name, "f16") == 0) return float_to_half((uint32_t)value);
  if (strcmp(name, "bf16") == 0) return float_to_bfloat((uint32_t)value);
  value = cts_seen(kinds[kind].type, value);
  if (kinds[kind].size == 8) return value;
  return value & ((UINT64_C(1) << 8 * kinds[kind].size) - 1);
}

static void put(void *to, size_t index, size_t size, uint64_t bits) {
  unsigned char *at = (unsigned char *)to + index * size;
  for (size_t i = 0; i < size; i++) at[i] = (unsigned char)(bits >> 8 * i);
}

static uint64_t get(const void *from, size_t index, size_t size) {
  const unsigned char *at = (const unsigned char *)from + index * size;
  uint64_t bits = 0;
  for (size_t i = 0; i < size; i++) bits |= (uint64_t)at[i] << 8 * i;
  return bits;
}

/* --- Cases
 * -------------------------------------------------------------------- */

static void dispatch(cts *c, size_t kind, const char *text,
                     const vyre_dispatch_desc *desc) {
  vyre_pipeline *pipeline =
      cts_compile(c, cts_program(c, text), cts_needs_of(kinds[kind].type));
  CTS_OK(c, vyre_dispatch(pipeline, desc, &c->st));
  CTS_LAUNCHED(c, 1);
}

/* Loads random bytes, and two elements outside the buffer. */
static void load(cts *c, size_t kind) {
  char text[MAX_TEXT];
  size_t size = kinds[kind].size, wide = cts_type_size(kinds[kind].type);
  unsigned char *in = cts_memory(c, LENGTH * size);
  void *got = cts_memory(c, (LENGTH + 2) * wide);
  void *want = cts_memory(c, (LENGTH + 2) * wide);
  uint64_t state = c->seed;
  for (size_t i = 0; i < LENGTH * size; i++) {
    in[i] = (unsigned char)cts_random(&state);
  }
  for (size_t i = 0; i < LENGTH; i++) {
    put(want, i, wide, expect_load(kind, get(in, i, size)));
  }
  (void)snprintf(text, sizeof text,
                 "kernel k workgroup(16) over(r)\n"
                 "buffer a : read %s[] @0;\n"
                 "buffer r : write %s[] @1;\n"
                 "{\n    r[global_id.x] = a[global_id.x];\n}\n",
                 kinds[kind].element, vyre_type_name(kinds[kind].type));
  vyre_input input = {.data = in, .size = LENGTH * size};
  vyre_output output = {.data = got, .size = (LENGTH + 2) * wide};
  vyre_dispatch_desc desc = {.inputs = &input,
                             .input_count = 1,
                             .outputs = &output,
                             .output_count = 1};
  dispatch(c, kind, text, &desc);
  CTS_SAME(c, "loads", got, want, (LENGTH + 2) * wide);
}

/* Stores edge cases and random values; stores outside the buffer are dropped.
 */
static void store(cts *c, size_t kind) {
  char text[MAX_TEXT];
  vyre_type type = kinds[kind].type;
  size_t size = kinds[kind].size, wide = cts_type_size(type), edges;
  const uint64_t *values = cts_edges(type, &edges);
  enum { OVER = 7 };
  void *in = cts_memory(c, (LENGTH + OVER) * wide);
  unsigned char *got = cts_memory(c, LENGTH * size + 8);
  unsigned char *want = cts_memory(c, LENGTH * size + 8);
  uint64_t state = c->seed;
  memset(got, 0x5a, LENGTH * size + 8);
  memset(want, 0x5a, LENGTH * size + 8);
  for (size_t i = 0; i < LENGTH + OVER; i++) {
    uint64_t value = i < edges ? values[i] : cts_random_value(&state, type);
    put(in, i, wide, value);
    if (i < LENGTH) put(want, i, size, expect_store(kind, value));
  }
  (void)snprintf(text, sizeof text,
                 "kernel k workgroup(16) over(a)\n"
                 "buffer a : read %s[] @0;\n"
                 "buffer r : write %s[] @1;\n"
                 "{\n    r[global_id.x] = a[global_id.x];\n}\n",
                 vyre_type_name(type), kinds[kind].element);
  vyre_input input = {.data = in, .size = (LENGTH + OVER) * wide};
  vyre_output output = {.data = got, .size = LENGTH * size};
  vyre_dispatch_desc desc = {.inputs = &input,
                             .input_count = 1,
                             .outputs = &output,
                             .output_count = 1};
  dispatch(c, kind, text, &desc);
  CTS_SAME(c, "stores, and what is behind them", got, want, LENGTH * size + 8);
}

/* Every invocation reads its element and writes that of a neighbour: narrow
 * stores must not tear words. */
static void in_out(cts *c, size_t kind) {
  char text[MAX_TEXT];
  size_t size = kinds[kind].size;
  unsigned char *bytes = cts_memory(c, LENGTH * size);
  unsigned char *want = cts_memory(c, LENGTH * size);
  uint64_t state = c->seed;
  for (size_t i = 0; i < LENGTH; i++) {
    uint64_t value =
        expect_store(kind, cts_random_value(&state, kinds[kind].type));
    put(bytes, i, size, value);
    /* Only odd elements are written, with their own value. */
    put(want, i, size,
        i % 2 ? value : expect_store(kind, expect_load(kind, value)));
  }
  (void)snprintf(text, sizeof text,
                 "kernel k workgroup(16) over(a)\n"
                 "buffer a : read_write %s[] @0;\n"
                 "{\n    let i = global_id.x;\n"
                 "    if (i %% 2 == 0) a[i] = a[i];\n}\n",
                 kinds[kind].element);
  vyre_input input = {.data = bytes, .size = LENGTH * size};
  vyre_output output = {.data = bytes, .size = LENGTH * size};
  vyre_dispatch_desc desc = {.inputs = &input,
                             .input_count = 1,
                             .outputs = &output,
                             .output_count = 1};
  dispatch(c, kind, text, &desc);
  CTS_SAME(c, "neighbours", bytes, want, LENGTH * size);
}

/* Copies through shared memory in reverse. All bits set is a NaN that is not
 * the canonical one. */
static void shared(cts *c, size_t kind) {
  char text[MAX_TEXT];
  enum { GROUP = 31 };
  size_t size = kinds[kind].size;
  unsigned char *in = cts_memory(c, GROUP * size);
  unsigned char *got = cts_memory(c, GROUP * size);
  unsigned char *want = cts_memory(c, GROUP * size);
  uint64_t state = c->seed;
  for (size_t i = 0; i < GROUP; i++) {
    uint64_t bits =
        expect_store(kind, cts_random_value(&state, kinds[kind].type));
    put(in, i, size, i % 8 ? bits : UINT64_MAX);
  }
  for (size_t i = 0; i < GROUP; i++) {
    uint64_t bits = get(in, GROUP - 1 - i, size);
    put(want, i, size, expect_store(kind, expect_load(kind, bits)));
  }
  (void)snprintf(text, sizeof text,
                 "kernel k workgroup(31)\n"
                 "buffer a : read %1$s[] @0;\n"
                 "buffer r : write %1$s[] @1;\n"
                 "shared s : %1$s[31];\n"
                 "{\n    s[local_id.x] = a[local_id.x];\n    barrier();\n"
                 "    r[local_id.x] = s[30 - local_id.x];\n}\n",
                 kinds[kind].element);
  vyre_input input = {.data = in, .size = GROUP * size};
  vyre_output output = {.data = got, .size = GROUP * size};
  vyre_dispatch_desc desc = {.inputs = &input,
                             .input_count = 1,
                             .outputs = &output,
                             .output_count = 1,
                             .grid = {1}};
  dispatch(c, kind, text, &desc);
  CTS_SAME(c, "shared memory", got, want, GROUP * size);
}

/* Reads uniforms of one value and of four. */
static void uniforms(cts *c, size_t kind) {
  char text[MAX_TEXT];
  size_t size = kinds[kind].size, wide = cts_type_size(kinds[kind].type);
  unsigned char *one = cts_memory(c, size), *four = cts_memory(c, 4 * size);
  void *got = cts_memory(c, 6 * wide), *want = cts_memory(c, 6 * wide);
  uint64_t state = c->seed;
  for (size_t i = 0; i < 5; i++) {
    uint64_t bits =
        expect_store(kind, cts_random_value(&state, kinds[kind].type));
    put(i ? four : one, i ? i - 1 : 0, size, bits);
    put(want, i, wide, expect_load(kind, bits));
  }
  (void)snprintf(text, sizeof text, /* the last load is out of bounds */
                 "kernel k workgroup(1)\n"
                 "uniform one : %1$s @0;\n"
                 "uniform four : %1$s[4] @1;\n"
                 "buffer r : write %2$s[] @2;\n"
                 "{\n    r[0] = one;\n"
                 "    for (let k = 0u; k < 5; k++) r[k + 1] = four[k];\n}\n",
                 kinds[kind].element, vyre_type_name(kinds[kind].type));
  vyre_input in[] = {{.data = one, .size = size},
                     {.data = four, .size = 4 * size}};
  vyre_output output = {.data = got, .size = 6 * wide};
  vyre_dispatch_desc desc = {.inputs = in,
                             .input_count = 2,
                             .outputs = &output,
                             .output_count = 1,
                             .grid = {1}};
  dispatch(c, kind, text, &desc);
  CTS_SAME(c, "uniforms", got, want, 6 * wide);
}

static const struct {
  const char *name;
  void (*run)(cts *c, size_t kind);
} ways[] = {{"load", load},
            {"store", store},
            {"in_out", in_out},
            {"shared", shared},
            {"uniform", uniforms}};

enum { WAYS = sizeof ways / sizeof *ways };

/* `bytes` has no element size; shared buffers and uniforms need one. */
static bool is_case(size_t index) {
  return index % WAYS < 3 || strcmp(kinds[index / WAYS].element, "bytes") != 0;
}

static size_t nth(size_t number) {
  size_t index = 0;
  while (!is_case(index) || number-- > 0) index++;
  return index;
}

static size_t elements_count(void) {
  size_t count = 0;
  for (size_t i = 0; i < (size_t)KINDS * WAYS; i++) count += is_case(i);
  return count;
}

static void elements_label(size_t number, char *out, size_t size) {
  size_t index = nth(number);
  (void)snprintf(out, size, "%s.%s", ways[index % WAYS].name,
                 kinds[index / WAYS].element);
}

static void elements_run(cts *c, size_t number) {
  size_t index = nth(number);
  ways[index % WAYS].run(c, index / WAYS);
}

const cts_area area_elements = {"elements", "every element type in memory",
                                elements_count, elements_label, elements_run};
