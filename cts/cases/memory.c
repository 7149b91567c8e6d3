/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases: accesses outside buffers, kinds of buffers, odd sizes. */
#include "cts/harness/small_kernels.h"

/* --- Out-of-bounds indices
 * ---------------------------------------------------- */

static void loads_outside(cts *c) {
  static const uint32_t in[] = {11, 12, 13};
  static const uint32_t want[] = {12, 0, 0, 0, 0, 0, 0, 13, 0, 13};
  small_run(c,
            "kernel k workgroup(1)\n"
            "buffer r : write u32[] @0;\n"
            "buffer a : read u32[] @1;\n"
            "{\n"
            "    let n = len(a);\n" /* not known at compile time */
            "    let m = -i32(n);\n"
            "    r[0] = a[n - 2];\n"
            "    r[1] = a[n];\n"
            "    r[2] = a[n + 1000000];\n"
            "    r[3] = a[n - 4];\n" /* 2^32 - 1 */
            "    r[4] = a[m];\n"
            "    r[5] = a[m - 2147483645];\n"
            "    r[6] = a[m + 2147483647];\n"
            "    r[7] = a[m + 5];\n"
            "    if (n > 3) r[8] = 1;\n"
            "    r[9] = a[n * 1431655766];\n" /* wraps to 2 */
            "}\n",
            in, 3, want, 10, 1, 1, 1);
}

static void wide_indices(cts *c) {
  static const uint32_t in[] = {21, 22, 23};
  static const uint32_t want[] = {22, 0, 0, 0, 23};
  if (!c->caps->has_u64) {
    cts_lacks(c, "u64"); /* ops.add.u64 checks that it is rejected */
  }
  small_run(c,
            "kernel k workgroup(1)\n"
            "buffer r : write u32[] @0;\n"
            "buffer a : read u32[] @1;\n"
            "{\n"
            "    let n = u64(len(a));\n"
            "    let m = i64(len(a));\n"
            "    r[0] = a[n - 2];\n"
            "    r[1] = a[(n << 32) + 1];\n" /* 1 in the low half */
            "    r[2] = a[0ul - n];\n"
            "    r[3] = a[1l - (m << 32)];\n"
            "    r[4] = a[m - 1];\n"
            "}\n",
            in, 3, want, 5, 1, 1, 1);
}

static void stores_outside(cts *c) {
  uint32_t want[33];
  for (uint32_t i = 0; i < 33; i++) want[i] = i < 30 ? 100 + i : 0;
  want[30] = 7;
  small_run(c,
            "kernel k workgroup(8)\n"
            "buffer r : write u32[] @0;\n"
            "{\n"
            "    let i = global_id.x;\n"
            "    let n = len(r);\n"
            "    if (i < 30) r[i] = 100 + i;\n"
            "    if (i == 31) r[30] = 7;\n"
            "    r[n + i] = 1;\n"
            "    r[i32(i) - 100000] = 2;\n"
            "    r[0xFFFFFFFFu - i] = 3;\n"
            "}\n",
            NULL, 0, want, 33, 6, 1, 1);
}

static void atomics_outside(cts *c) {
  static const uint32_t want[] = {5, 0, 0, 0, 0};
  small_run(c,
            "kernel k workgroup(1)\n"
            "buffer r : read_write u32[] @0 output;\n"
            "{\n"
            "    let n = len(r);\n"
            "    atomic_add(r[0], 5);\n"
            "    r[1] = atomic_add(r[n], 5);\n"
            "    r[2] = atomic_exchange(r[n + 7], 9);\n"
            "    r[3] = atomic_compare_exchange(r[-1 - i32(n)], 0, 9);\n"
            "}\n",
            NULL, 0, want, 5, 1, 1, 1);
}

static void shared_outside(cts *c) {
  uint32_t want[16];
  for (uint32_t i = 0; i < 16; i++) want[i] = i < 4 ? i + 1 : 0;
  small_run(c,
            "kernel k workgroup(16)\n"
            "buffer r : write u32[] @0;\n"
            "shared s : u32[4];\n"
            "shared t : u32[4];\n"
            "{\n"
            "    let l = local_id.x;\n"
            "    s[l] = l + 1;\n" /* stores from index 4 on must not reach t */
            "    barrier();\n"
            "    r[l] = s[l] + t[l % 4];\n"
            "}\n",
            NULL, 0, want, 16, 1, 1, 1);
}

/* Every invocation owns element i and reads the constant in the last one, with
 * and without a result, outside the buffer, and in shared memory. */
static void atomic_load_and_store(cts *c) {
  vyre_pipeline *pipeline =
      cts_kernel(c,
                 "kernel k workgroup(16) over(x)\n"
                 "buffer x : read_write u32[] @0;\n"
                 "shared s : i32[16];\n"
                 "{\n"
                 "    let i = global_id.x;\n"
                 "    let l = local_id.x;\n"
                 "    if (i + 1 < len(x)) {\n"
                 "        if (i % 3 != 0) atomic_store(x[i], i * 5);\n"
                 "        atomic_store(x[i + 1000000], 7);\n"
                 "        let y = atomic_load(x[i]);\n"
                 "        atomic_store(x[i], y + atomic_load(x[len(x) - 1]) +\n"
                 "                           atomic_load(x[len(x) + i]));\n"
                 "    }\n"
                 "    atomic_store(s[l], i32(l) - 8);\n"
                 "    barrier();\n"
                 "    if (i + 1 < len(x)) {\n"
                 "        atomic_add(x[i], u32(atomic_load(s[15 - l])));\n"
                 "    }\n"
                 "}\n");
  enum { N = 77 };
  uint32_t x[N], want[N];
  for (uint32_t i = 0; i < N; i++) {
    x[i] = want[i] = i * i + 100;
    if (i + 1 == N) break;
    if (i % 3 != 0) want[i] = i * 5;
    want[i] += (N - 1) * (N - 1) + 100 + (7 - i % 16);
  }
  vyre_input in[] = {vyre_input_bytes(x, sizeof x)};
  vyre_output out[] = {vyre_output_bytes(x, sizeof x)};
  vyre_dispatch_desc desc = {
      .inputs = in, .input_count = 1, .outputs = out, .output_count = 1};
  CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
  CTS_LAUNCHED(c, 1);
  CTS_SAME(c, "x", x, want, sizeof x);
}

/* --- Buffers
 * ------------------------------------------------------------------ */

/* Binds all kinds of buffers at once, in another order than their numbers. */
static void binding_order(cts *c) {
  vyre_pipeline *pipeline =
      cts_kernel(c,
                 "kernel k workgroup(4) over(last)\n"
                 "buffer last : write u32[] @9;\n"
                 "uniform scale : u32 @4;\n"
                 "buffer first : read u32[] @0;\n"
                 "buffer between : read_write u32[] @2;\n"
                 "buffer fixed : read u16[3] @7;\n"
                 "buffer sums : read_write u32[2] @1 output;\n"
                 "{\n"
                 "    let i = global_id.x;\n"
                 "    if (i >= len(last)) return;\n"
                 "    last[i] = first[i] * scale + u32(fixed[i % 3]);\n"
                 "    between[i] += first[i];\n"
                 "    atomic_add(sums[i % 2], 1);\n"
                 "}\n");
  enum { N = 11 };
  uint32_t first[N], between[N], last[N], sums[2], scale = 3;
  uint16_t fixed[3] = {1000, 2000, 60000};
  uint32_t want_between[N], want_last[N];
  for (uint32_t i = 0; i < N; i++) {
    first[i] = i * 7;
    between[i] = i + 50;
    want_between[i] = i + 50 + i * 7;
    want_last[i] = i * 21 + fixed[i % 3];
  }
  vyre_input in[] = {vyre_input_bytes(first, sizeof first),
                     vyre_input_bytes(between, sizeof between),
                     vyre_input_bytes(&scale, sizeof scale),
                     vyre_input_bytes(fixed, sizeof fixed)};
  vyre_output out[] = {vyre_output_bytes(sums, sizeof sums),
                       vyre_output_bytes(between, sizeof between),
                       vyre_output_bytes(last, sizeof last)};
  vyre_dispatch_desc desc = {
      .inputs = in, .input_count = 4, .outputs = out, .output_count = 3};
  CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
  CTS_LAUNCHED(c, 1);
  CTS_SAME(c, "between", between, want_between, sizeof between);
  CTS_SAME(c, "last", last, want_last, sizeof last);
  CTS_CHECK(c, sums[0] == 6 && sums[1] == 5);
}

static void no_elements(cts *c) {
  vyre_pipeline *pipeline =
      cts_kernel(c,
                 "kernel k workgroup(4)\n"
                 "buffer a : read u32[] @0;\n"
                 "buffer b : write u32[] @1;\n"
                 "buffer r : write u32[] @2;\n"
                 "{\n    b[0] = 1;\n    r[global_id.x] = len(a) * 100 + "
                 "len(b) * 10 + a[0] + 1;\n}\n");
  uint32_t r[3] = {9, 9, 9};
  static const uint32_t want[3] = {1, 1, 1};
  vyre_input in = vyre_input_bytes(NULL, 0);
  vyre_output out[] = {vyre_output_bytes(NULL, 0),
                       vyre_output_bytes(r, sizeof r)};
  vyre_dispatch_desc desc = {
      .inputs = &in, .input_count = 1, .outputs = out, .output_count = 2};
  CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
  CTS_LAUNCHED(c, 1);
  CTS_SAME(c, "r", r, want, sizeof want);
}

/* Inputs do not change, even if the kernel writes everywhere it may. */
static void inputs_stay(cts *c) {
  vyre_pipeline *pipeline =
      cts_kernel(c,
                 "kernel k workgroup(4) over(a)\n"
                 "buffer a : read u32[] @0;\n"
                 "buffer y : read_write u32[] @1;\n"
                 "{\n    y[global_id.x] = a[global_id.x] + 1;\n}\n");
  enum { N = 1000 };
  const size_t bytes = N * sizeof(uint32_t);
  uint32_t *a = cts_memory(c, bytes), *y = cts_memory(c, bytes);
  uint32_t *to = cts_memory(c, bytes), *kept = cts_memory(c, bytes);
  for (uint32_t i = 0; i < N; i++) {
    a[i] = i * i;
    kept[i] = y[i] = i + 5;
  }
  vyre_input in[] = {vyre_input_bytes(a, bytes), vyre_input_bytes(y, bytes)};
  vyre_output out = vyre_output_bytes(to, bytes);
  vyre_dispatch_desc desc = {
      .inputs = in, .input_count = 2, .outputs = &out, .output_count = 1};
  CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
  CTS_LAUNCHED(c, 1);
  CTS_SAME(c, "the input", y, kept, bytes);
  for (uint32_t i = 0; i < N; i++) kept[i] = i * i + 1;
  CTS_SAME(c, "the output", to, kept, bytes);
}

/* Inputs may overlap if nothing writes them. */
static void overlapping_inputs(cts *c) {
  vyre_pipeline *pipeline = cts_kernel(c,
                                       "kernel k workgroup(4) over(r)\n"
                                       "buffer a : read u32[] @0;\n"
                                       "buffer b : read u32[] @1;\n"
                                       "buffer r : write u32[] @2;\n"
                                       "{\n    let i = global_id.x;\n"
                                       "    r[i] = a[i] * 100 + b[i];\n}\n");
  uint32_t data[6] = {1, 2, 3, 4, 5, 6}, r[5];
  static const uint32_t want[5] = {102, 203, 304, 405, 506};
  vyre_input in[] = {vyre_input_bytes(data, 20),
                     vyre_input_bytes(data + 1, 20)};
  vyre_output out = vyre_output_bytes(r, 20);
  vyre_dispatch_desc desc = {
      .inputs = in, .input_count = 2, .outputs = &out, .output_count = 1};
  CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
  CTS_LAUNCHED(c, 1);
  CTS_SAME(c, "r", r, want, sizeof want);
}

/* Uses more than a page and an odd number of bytes. */
static void large(cts *c) {
  enum { N = 300007 };
  uint8_t *a = cts_memory(c, N), *r = cts_memory(c, N), *w = cts_memory(c, N);
  for (uint32_t i = 0; i < N; i++) {
    a[i] = (uint8_t)(i * 2654435761u >> 24);
    w[i] = (uint8_t)(a[i] ^ i);
  }
  vyre_pipeline *pipeline =
      cts_kernel(c,
                 "kernel k workgroup(64) over(r)\n"
                 "buffer a : read bytes[] @0;\n"
                 "buffer r : write bytes[] @1;\n"
                 "{\n    let i = global_id.x;\n    r[i] = a[i] ^ i;\n}\n");
  vyre_input in = vyre_input_bytes(a, N);
  vyre_output out = vyre_output_bytes(r, N);
  vyre_dispatch_desc desc = {
      .inputs = &in, .input_count = 1, .outputs = &out, .output_count = 1};
  CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
  CTS_LAUNCHED(c, 1);
  CTS_SAME(c, "r", r, w, N);
}

static void live_out(cts *c) {
  vyre_pipeline *pipeline =
      cts_kernel(c,
                 "kernel k workgroup(4) over(y)\n"
                 "buffer y : read_write u32[] @0 live_out;\n"
                 "{\n    y[global_id.x] *= 2;\n}\n");
  uint32_t y[5] = {1, 2, 3, 4, 5};
  static const uint32_t want[5] = {2, 4, 6, 8, 10};
  vyre_input in = vyre_input_bytes(y, 20);
  vyre_output out = vyre_output_bytes(y, 20);
  vyre_dispatch_desc desc = {
      .inputs = &in, .input_count = 1, .outputs = &out, .output_count = 1};
  CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
  CTS_LAUNCHED(c, 1);
  CTS_SAME(c, "y", y, want, sizeof want);
}

static const cts_entry entries[] = {
    {"loads_outside", loads_outside},
    {"wide_indices", wide_indices},
    {"stores_outside", stores_outside},
    {"atomics_outside", atomics_outside},
    {"shared_outside", shared_outside},
    {"atomic_load_and_store", atomic_load_and_store},
    {"binding_order", binding_order},
    {"no_elements", no_elements},
    {"inputs_stay", inputs_stay},
    {"overlapping_inputs", overlapping_inputs},
    {"large", large},
    {"live_out", live_out},
};

CTS_LIST(memory, "out-of-bounds accesses and buffer kinds");
