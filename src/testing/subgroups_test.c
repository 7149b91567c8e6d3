/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Subgroups: the same bytes on every device and at every width, also under
 * conditions that are only equal in a subgroup. */
#include <stdlib.h>

#include "vyre/vyre.h"

#include "support/check.h"
#include "support/parse.h"

enum { GROUP = 128, ALL = 2 * GROUP };

typedef struct target {
  const char *name, *options;
} target;

static const target targets[] = {
    {"ref", ""},
    {"cpu", ""},
    {"cpu", "cpu.width=1"},
    {"cpu", "cpu.width=4"},
    {"cpu", "cpu.width=8,cpu.threads=1"},
    {"cpu", "cpu.width=16"},
    {"cpu", "cpu.width=32"},
    {"vulkan", ""},
};
enum { TARGETS = sizeof targets / sizeof targets[0] };

/* Returns false without the device. */
static bool run(const target *t, const char *text, uint32_t groups,
                const uint32_t x[ALL], uint32_t y[ALL]) {
  vyre_status st = {0};
  vyre_context *context = NULL;
  vyre_device *device = NULL;
  const vyre_context_options options = {
      .trace_file = "", .faults = "", .backend_options = t->options};
  CHECK_OK(vyre_context_create(&options, &context, &st), st);
  const bool found =
      vyre_device_open(context, t->name, &device, &st) == VYRE_OK;
  if (found) {
    vyre_module *module = parse_module(text);
    vyre_pipeline *pipeline = NULL;
    CHECK_OK(vyre_pipeline_compile(device, vyre_module_kernel(module, 0), NULL,
                                   &pipeline, NULL, &st),
             st);
    vyre_input inputs[] = {vyre_input_bytes(x, ALL * sizeof *x)};
    vyre_output outputs[] = {vyre_output_bytes(y, ALL * sizeof *y)};
    const vyre_dispatch_desc desc = {.inputs = inputs,
                                     .input_count = 1,
                                     .outputs = outputs,
                                     .output_count = 1,
                                     .grid = {groups, 1, 1}};
    CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
    vyre_pipeline_release(pipeline);
    vyre_module_release(module);
    vyre_device_release(device);
  }
  vyre_context_release(context);
  return found;
}

/* Bodies of kernels with x, y, i, v = x[i] and shared memory t. */
static const char *const bodies[] = {
    /* the second stage of a reduction over the workgroup */
    "let s = subgroup_add(v);\n"
    "if (lane == 0) t[subgroup_id] = s;\n"
    "barrier();\n"
    "if (subgroup_id == 0) {\n"
    "    var p = select(lane < 4, t[lane & 3], 0u);\n"
    "    for (let d = 1u; d < 32; d *= 2) {\n"
    "        let o = shuffle_up(p, d);\n"
    "        if (lane >= d) p += o;\n"
    "    }\n"
    "    if (lane < 4) t[lane & 3] = p;\n"
    "}\n"
    "barrier();\n"
    "y[i] = t[subgroup_id] + s;",
    /* trip counts, breaks and continues by subgroup */
    "var w = v;\n"
    "for (let k = 0u; k < subgroup_id + 2; k++) {\n"
    "    if (subgroup_id == k) continue;\n"
    "    w += shuffle_xor(w, k + 1);\n"
    "    if (subgroup_any(w % 64 == 3)) break;\n"
    "    w ^= shuffle(w, v);\n"
    "}\n"
    "y[i] = w;",
    /* a loop that ends at the last number of its type */
    "var w = v;\n"
    "for (let k = 4294967290u + subgroup_id; k <= 4294967295; k += 2) {\n"
    "    w += shuffle_down(w, k & 7);\n"
    "}\n"
    "y[i] = w;",
    /* returns, an else, stores and atomics */
    "t[local_id.x] = 7;\n"
    "if (subgroup_id == 2) { y[i] = ballot(v > 1 << 30); return; }\n"
    "if (subgroup_any((v & 255) == 1)) {\n"
    "    y[i] = shuffle_up(v, lane & 3);\n"
    "} else {\n"
    "    let m = subgroup_max(v);\n"
    "    atomic_add(t[local_id.x], m);\n"
    "    for (let k = 0u; k < 5; k++) { if (m % 5 == k) return; }\n"
    "    y[i] = t[local_id.x];\n"
    "}\n",
    /* nested loops, and a return from a loop without an operation */
    "var w = v;\n"
    "var n = 0u;\n"
    "while (subgroup_all(w != 0) && n < subgroup_id + 2) {\n"
    "    n += 1;\n"
    "    for (let k = 0u; k < 3; k++) {\n"
    "        for (let j = 0u; j < 3; j++) {\n"
    "            if (subgroup_id == 3 && n == 2 && j == 1) {\n"
    "                y[i] = w;\n"
    "                return;\n"
    "            }\n"
    "        }\n"
    "        w = w * 3 + u32(shuffle(u64(w) << 20, k * 9) >> 20);\n"
    "    }\n"
    "}\n"
    "y[i] = w;",
    /* all operations and types */
    "let a = subgroup_scan_add_before(v) ^ subgroup_scan_add(v) * 3;\n"
    "let f = f32(v >> 8) * 1.5;\n"
    "let g = shuffle_xor(f, 7) + subgroup_min(f) - subgroup_max(f);\n"
    "let h = shuffle(i64(v) << 24, 40) ^ subgroup_xor(i64(v));\n"
    "let b = subgroup_and(v) + subgroup_or(v);\n"
    "let c = shuffle_down(f32x2(f, g), 9);\n"
    "let u = uniform(v) + u32(subgroup_add(i32(v)));\n"
    "y[i] = a + u32(g) + u32(h >> 20) + b + u32(c.x - c.y) + u;",
};

static void make_text(char out[2400], const char *body) {
  snprintf(out, 2400,
           "kernel k workgroup(32, 2, 2) over(x)\n"
           "buffer x : read u32[] @0;\n"
           "buffer y : write u32[256] @1 output;\n"
           "shared t : u32[128];\n"
           "{\n"
           "    let i = workgroup_id.x * 128 + local_id.x + 32 * (local_id.y + "
           "2 * local_id.z);\n"
           "    let v = x[i];\n"
           "%s\n}\n",
           body);
}

TEST(operations_are_the_same_on_every_device) {
  uint32_t x[ALL], want[ALL], y[ALL];
  uint32_t random = 1;
  for (size_t i = 0; i < ALL; i++) {
    random = random * 1664525 + 1013904223;
    x[i] = random;
  }
  for (size_t b = 0; b < sizeof bodies / sizeof bodies[0]; b++) {
    char text[2400];
    make_text(text, bodies[b]);
    CHECK(run(&targets[0], text, 2, x, want));
    for (size_t t = 1; t < TARGETS; t++) {
      memset(y, 0, sizeof y);
      if (!run(&targets[t], text, 2, x, y)) continue;
      if (memcmp(y, want, sizeof y) != 0) {
        printf("    body %zu on %s %s\n", b, targets[t].name,
               targets[t].options);
        CHECK(false);
      }
    }
  }
}

/* Sums that lose everything unless they are exact. */
TEST(sums_of_floats_are_exact) {
  static const char text[] =
      "kernel k workgroup(128) over(x)\n"
      "buffer x : read f32[] @0;\n"
      "buffer y : write f32[256] @1 output;\n"
      "{\n"
      "    let i = global_id.x;\n"
      "    let v = x[i];\n"
      "    let s = subgroup_add(v);\n"
      "    y[i] = select(workgroup_id.x == 0, s, subgroup_scan_add(v) + "
      "subgroup_scan_add_before(v));\n"
      "}\n";
  union {
    float f[ALL];
    uint32_t u[ALL];
  } x, y;
  for (size_t i = 0; i < ALL; i++) {
    const size_t lane = i % 32;
    x.f[i] = lane % 4 == 0   ? 0x1p100f
             : lane % 4 == 2 ? -0x1p100f
             : lane % 4 == 1 ? 0x1p-30f * (float)lane
                             : -(float)i;
  }
  for (size_t t = 0; t < TARGETS; t++) {
    if (!run(&targets[t], text, 2, x.u, y.u)) continue;
    for (size_t first = 0; first < GROUP; first += 32) {
      double sum = 0; /* of numbers whose sum is exact */
      for (size_t k = 0; k < 32; k++) {
        if (k % 2) sum += (double)x.f[first + k];
      }
      CHECK(y.f[first] == (float)sum && y.f[first + 31] == (float)sum);
    }
    for (size_t first = GROUP; first < ALL; first += 32) {
      double sum = 0, before = 0;
      for (size_t k = 0; k < 32; k++) {
        before = sum;
        if (k % 2) sum += (double)x.f[first + k];
        const bool is_large = k % 4 < 2, was_large = (k + 3) % 4 < 2;
        const float now = is_large ? 0x1p100f : (float)sum;
        const float then = k && was_large ? 0x1p100f : (float)before;
        CHECK(y.f[first + k] == now + then);
      }
    }
  }
}

static bool is_refused(const char *line, const char *rule) {
  char text[1000];
  snprintf(text, sizeof text,
           "kernel k workgroup(64) over(y)\n"
           "buffer x : read u32[] @0;\n"
           "buffer y : read_write u32[] @1;\n"
           "{\n    let i = global_id.x;\n    %s\n}\n",
           line);
  vyre_status st = {0};
  vyre_diagnostics found = {0};
  vyre_module *module = NULL;
  vyre_code code = vyre_module_parse(text, strlen(text), "k.vyre",
                                     (vyre_allocator){0}, &module, &found, &st);
  if (code == VYRE_OK) {
    code = vyre_program_validate(vyre_module_kernel(module, 0), &found, &st);
  }
  bool has = false;
  for (size_t i = 0; i < found.count; i++) {
    has |= strcmp(found.items[i].rule, rule) == 0;
  }
  if (!has) printf("    %s: %s\n", line, st.message);
  vyre_diagnostics_deinit(&found);
  vyre_module_release(module);
  return code != VYRE_OK && has;
}

TEST(wrong_uses_are_refused) {
  static const char *const rows[][2] = {
      {"if (i < len(y)) y[i] = subgroup_add(lane);", "V118"},
      {"if (x[i] > 0) { let v = shuffle(i, 0); y[i] = v; }", "V118"},
      {"let v = x[i] > 0 && ballot(true) == 0; y[i] = u32(v);", "V118"},
      {"for (let k = 0u; k < lane; k++) { y[i] = shuffle(i, k); }", "V118"},
      {"if (x[i] == 3) return; y[i] = ballot(true);", "V118"},
      {"if (subgroup_id == 0) barrier();", "V100"},
      {"if (subgroup_id == 0) y[i] = reduce_add(i);", "V100"},
      {"y[i] = shuffle(i, 1.0);", "V078"},
      {"y[i] = ballot(3);", "V061"},
      {"y[i] = subgroup_and(1.5);", "V061"},
      {"y[i] = shuffle(i);", "V051"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    CHECK(is_refused(rows[i][0], rows[i][1]));
  }
}

/* The names belong to the program if it declares them. */
TEST(names_are_not_reserved) {
  static const char text[] =
      "fn shuffle(v: u32) -> u32 { return v + 1; }\n"
      "kernel k workgroup(32) over(x)\n"
      "buffer x : read u32[] @0;\n"
      "buffer y : write u32[256] @1 output;\n"
      "{\n"
      "    let lane = x[global_id.x];\n"
      "    let subgroup_id = 5u;\n"
      "    y[global_id.x] = shuffle(lane) + subgroup_id + ballot(true);\n"
      "}\n";
  uint32_t x[ALL] = {3, 4}, y[ALL];
  CHECK(run(&targets[0], text, 8, x, y));
  CHECK(y[0] == 8 && y[1] == 9);
}

TEST_MAIN(TEST_ENTRY(operations_are_the_same_on_every_device),
          TEST_ENTRY(sums_of_floats_are_exact),
          TEST_ENTRY(wrong_uses_are_refused),
          TEST_ENTRY(names_are_not_reserved))
