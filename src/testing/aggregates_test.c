/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Kernels with vectors give the same bytes as the same kernels with scalars
 * that were written by hand: on ref, on cpu at several widths, and on vulkan.
 * They also survive printing, parsing and the binary form. */
#include <stdlib.h>

#include "vyre/vyre.h"

#include "support/check.h"
#include "support/parse.h"
#include "support/text.h"

enum { BYTES = 4800, UNIFORMS = 4 };

/* Buffer 0 is read and written, buffer 1 read. Uniforms 2 and 3 are u32. */
typedef struct pair {
  const char *name, *rich, *plain;
  size_t sizes[2];
  uint32_t uniforms[2];
} pair;

#define HEAD_2(a, b)                                        \
  "kernel k workgroup(8) over(a)\nbuffer a : read_write " a \
  " @0;\nbuffer b : read " b " @1;\n"

static const pair pairs[] = {
    {"operators",
     HEAD_2("f32x3[]", "f32x3[]") "{ let i = global_id.x; if (i >= len(a)) "
                                  "return; let v = b[i]; a[i] = (v + a[i] * "
                                  "2.0) / 3.0 - 1.0 / v; }",
     HEAD_2("f32[]", "f32[]") "{ for (let k = 0u; k < 3; k++) { let i = "
                              "global_id.x * 3 + k; let v = b[i]; a[i] = (v + "
                              "a[i] * 2.0) / 3.0 - 1.0 "
                              "/ v; } }",
     {BYTES, BYTES},
     {0}},
    {"swizzles",
     HEAD_2("f32x4[]", "f32x2[]") "{ let i = global_id.x; if (i >= len(a)) "
                                  "return; var v = a[i]; let w = b[i]; v.x += "
                                  "w.y; v.w = w.yx.y; "
                                  "v = v.wzyx; a[i] = f32x4(v.xx, w); a[i].z "
                                  "-= v.y; v[i % 4] = 7.0; "
                                  "a[i][i % 4] *= v[i % 5]; }",
     HEAD_2("f32[]",
            "f32[]") "{ let i = global_id.x; if (i * 4 >= len(a)) return; var "
                     "x = a[4 * i]; "
                     "let y = a[4 * i + 1]; let z = a[4 * i + 2]; let wx = b[2 "
                     "* i]; let wy = "
                     "b[2 * i + 1]; x += wy; let w = wx; a[4 * i] = w; a[4 * i "
                     "+ 1] = w; "
                     "a[4 * i + 2] = wx; a[4 * i + 3] = wy; a[4 * i + 2] -= z; "
                     "var p = w; if (i % 5 == 1) { p = z; } if (i % 5 == 2) { "
                     "p = y; } if (i "
                     "% 5 == 3) { p = x; } if (i % 5 == 4) { p = 0.0; } if (i "
                     "% 4 == i % 5) { "
                     "p = 7.0; } a[4 * i + i % 4] *= p; }",
     {BYTES, BYTES / 2},
     {0}},
    {"products",
     "fn f(v: f32x3, w: f32x3) -> f32x3 { if (dot(v, w) > 0.0) { return "
     "cross(v, w); } return normalize(v) * distance(v, w); }" HEAD_2(
         "f32x3[]", "f32x3[]") "{ let i = global_id.x; if (i >= len(a)) "
                               "return; a[i] = f(a[i], b[i]) + "
                               "f32x3(length(b[i])); }",
     HEAD_2("f32[]", "f32[]") "{ let i = global_id.x * 3; if (i >= len(a)) "
                              "return; let x = a[i]; let y "
                              "= a[i + 1]; let z = a[i + 2]; let u = b[i]; let "
                              "v = b[i + 1]; let w = "
                              "b[i + 2]; let d = fma(z, w, fma(y, v, x * u)); "
                              "let l = sqrt(fma(w, w, "
                              "fma(v, v, u * u))); if (d > 0.0) { a[i] = "
                              "fma(y, w, -(z * v)) + l; "
                              "a[i + 1] = fma(z, u, -(x * w)) + l; a[i + 2] = "
                              "fma(x, v, -(y * u)) + l; "
                              "} else { let n = sqrt(fma(z, z, fma(y, y, x * "
                              "x))); let e = x - u; let "
                              "f = y - v; let g = z - w; let s = sqrt(fma(g, "
                              "g, fma(f, f, e * e))); "
                              "a[i] = x / n * s + l; a[i + 1] = y / n * s + l; "
                              "a[i + 2] = z / n * s + "
                              "l; } }",
     {BYTES, BYTES},
     {0}},
    {"comparisons",
     HEAD_2(
         "u32x2[]",
         "i32x2[]") "{ let i = global_id.x; if (i >= len(a)) return; let v = "
                    "b[i]; let c = v "
                    "< i32x2(0); a[i] = select(c, u32x2(v), a[i] >> u32x2(3, "
                    "5)); if "
                    "(any(c)) a[i].x ^= 1; if (all(!c)) { a[i].y = as_u32(v).y "
                    "+ 1; } let d "
                    "= i > 20 ? a[i] : a[i].yx; a[i] = d & u32x2(0xFFFFFF); }",
     HEAD_2("u32[]", "i32[]") "{ let i = global_id.x * 2; if (i >= len(a)) "
                              "return; let x = b[i]; let y "
                              "= b[i + 1]; a[i] = select(x < 0, u32(x), a[i] "
                              ">> 3); a[i + 1] = "
                              "select(y < 0, u32(y), a[i + 1] >> 5); if (x < 0 "
                              "|| y < 0) a[i] ^= 1; if "
                              "(!(x < 0) && !(y < 0)) { a[i + 1] = as_u32(y) + "
                              "1; } if (global_id.x <= "
                              "20) { let t = a[i]; a[i] = a[i + 1]; a[i + 1] = "
                              "t; } a[i] = a[i] & "
                              "0xFFFFFF; a[i + 1] = a[i + 1] & 0xFFFFFF; }",
     {BYTES, BYTES},
     {0}},
    {"narrow",
     HEAD_2("u8x4[]", "f16x2[]") "{ let i = global_id.x; if (i >= len(a)) "
                                 "return; let v = a[i]; a[i] = v.wzyx + "
                                 "u32x4(u32x2(b[i]), 3, i); "
                                 "a[i].y = 200; }",
     HEAD_2(
         "u8[]",
         "f16[]") "{ let i = global_id.x; if (4 * i >= len(a)) return; let x = "
                  "a[4 * i]; "
                  "let z = a[4 * i + 2]; let y = a[4 * i + 1]; a[4 * i] = a[4 "
                  "* i + 3] + "
                  "u32(b[2 * i]); a[4 * i + 1] = 200; a[4 * i + 2] = y + 3; "
                  "a[4 * i + 3] = "
                  "x + i; if (z + u32(b[2 * i + 1]) == 77777) { a[0] = 1; } }",
     {BYTES, BYTES},
     {0}},
    {"shared",
     HEAD_2("f32x2[]", "f32x2[]") "shared t : f32x2[8];\n{ let i = "
                                  "global_id.x; let l = local_id.x; t[l] = "
                                  "b[i].yx; barrier(); t[l].x += "
                                  "1.0; barrier(); a[i] = t[7 - l] + t[l]; }",
     HEAD_2("f32[]",
            "f32[]") "shared t : f32[16];\n{ let i = global_id.x * 2; "
                     "let l = local_id.x; if (true) { t[2 * l] = b[i + 1]; t[2 "
                     "* l + 1] = "
                     "b[i]; } barrier(); t[2 * l] += 1.0; barrier(); a[i] = "
                     "t[14 - 2 * l] + "
                     "t[2 * l]; a[i + 1] = t[15 - 2 * l] + t[2 * l + 1]; }",
     {BYTES, BYTES},
     {0}},
    {"dimensions",
     "fn g(x: f32) -> f32 { if (x > 1.0) { return x * 0.5; } return x; "
     "}" HEAD_2(
         "f32[h, w]",
         "f32x2[, w]") "uniform w : u32 @2;\nuniform h : u32 "
                       "@3;\n{ let i = global_id.x; let r = i / w; let c = i % "
                       "w; let s = "
                       "a[r, c] + g(b[r, c].x); a[r, c] = g(s); if (r < len(b, "
                       "0)) a[r, c] += "
                       "b[r, c + 1].y; a[g(a[r, c]) > 0.5 ? r : h, c] -= "
                       "f32(len(a, 1)); "
                       "a[r + 1, c] += 0.0; if (i == 0) a[0, w] = 5.0; }",
     "fn g(x: f32) -> f32 { if (x > 1.0) { return x * 0.5; } return x; "
     "}" HEAD_2("f32[]",
                "f32[]") "uniform w : u32 @2;\nuniform h : u32 @3;\n{ "
                         "let i = global_id.x; let r = i / w; let c = i % w; "
                         "if (r < h) { let n = "
                         "len(b) / 2 / w; var bx = 0.0; if (r < n) { bx = b[2 "
                         "* i]; } let s = "
                         "a[i] + g(bx); a[i] = g(s); if (r < n) { if (c + 1 < "
                         "w) a[i] += b[2 * i + "
                         "3]; } if (g(a[i]) > 0.5) a[i] -= f32(w); } }",
     {BYTES, BYTES},
     {40, 30}},
    {"constant dimensions",
     HEAD_2("u32[5, 6, 40]", "u32[8]") "shared t : u32[2, 4];\n{ let i = "
                                       "global_id.x; t[i % 8 / 4, i % 4] = b[i "
                                       "% 8]; barrier(); let v = "
                                       "t[i % 4 / 2, i % 2]; a[i / 240, i / 40 "
                                       "% 6, i % 40] ^= v + len(t, 0) + "
                                       "len(a); }",
     HEAD_2("u32[1200]", "u32[8]") "{ let i = global_id.x; a[i] ^= b[(i % 4 / "
                                   "2) * 4 + i % 2] + 1202; }",
     {BYTES, 32},
     {0}},
};

enum { PAIRS = sizeof pairs / sizeof pairs[0] };

/* --- running ---------------------------------------------------------------*/

static void fill(unsigned char *bytes, size_t size, uint64_t seed) {
  for (size_t i = 0; i + 4 <= size; i += 4) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const float value = (float)(int32_t)(seed >> 32) / 1073741824.0f;
    memcpy(bytes + i, &value, 4);
  }
}

static void run(vyre_device *device, const char *text, const pair *p,
                unsigned char *out) {
  vyre_status st = {0};
  unsigned char in[BYTES];
  fill(out, p->sizes[0], 1);
  fill(in, p->sizes[1], 2);
  vyre_module *module = parse_module(text);
  vyre_pipeline *pipeline;
  CHECK_OK(vyre_pipeline_compile(device, vyre_module_kernel(module, 0), NULL,
                                 &pipeline, NULL, &st),
           st);
  const vyre_input inputs[UNIFORMS] = {vyre_input_bytes(out, p->sizes[0]),
                                       vyre_input_bytes(in, p->sizes[1]),
                                       vyre_input_bytes(&p->uniforms[0], 4),
                                       vyre_input_bytes(&p->uniforms[1], 4)};
  const vyre_output outputs[1] = {vyre_output_bytes(out, p->sizes[0])};
  const vyre_dispatch_desc desc = {.inputs = inputs,
                                   .input_count = p->uniforms[0] ? 4 : 2,
                                   .outputs = outputs,
                                   .output_count = 1};
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
  vyre_pipeline_release(pipeline);
  vyre_module_release(module);
}

static const char *const devices[][2] = {{"cpu", "cpu.width=1"},
                                         {"cpu", "cpu.width=8"},
                                         {"cpu", "cpu.width=16"},
                                         {"vulkan", ""}};

/* Opens a device; NULL if this machine has none of the kind. */
static vyre_device *open_device(const char *name, const char *own,
                                vyre_context **context) {
  vyre_status st = {0};
  vyre_device *device = NULL;
  const vyre_context_options options = {
      .trace_file = "", .faults = "", .backend_options = own};
  CHECK_OK(vyre_context_create(&options, context, &st), st);
  if (vyre_device_open(*context, name, &device, &st) == VYRE_OK) return device;
  CHECK(strcmp(name, "vulkan") == 0 || strcmp(name, "cpu") == 0);
  vyre_context_release(*context);
  return NULL;
}

TEST(aggregates_equal_scalars_on_every_device) {
  static unsigned char want[PAIRS][BYTES], got[BYTES];
  vyre_context *context;
  vyre_device *ref = open_device("ref", "", &context);
  CHECK(ref);
  for (size_t i = 0; i < PAIRS; i++) {
    run(ref, pairs[i].plain, &pairs[i], want[i]);
    run(ref, pairs[i].rich, &pairs[i], got);
    if (memcmp(want[i], got, pairs[i].sizes[0]) != 0) {
      printf("    %s differs on ref\n", pairs[i].name);
    }
    CHECK(memcmp(want[i], got, pairs[i].sizes[0]) == 0);
    fill(got, pairs[i].sizes[0], 1);
    CHECK(memcmp(want[i], got, pairs[i].sizes[0]) != 0);
  }
  vyre_device_release(ref);
  vyre_context_release(context);
  for (size_t d = 0; d < sizeof devices / sizeof devices[0]; d++) {
    vyre_device *device = open_device(devices[d][0], devices[d][1], &context);
    if (!device) continue;
    for (size_t i = 0; i < PAIRS; i++) {
      run(device, pairs[i].rich, &pairs[i], got);
      if (memcmp(want[i], got, pairs[i].sizes[0]) != 0) {
        printf("    %s differs on %s %s\n", pairs[i].name, devices[d][0],
               devices[d][1]);
      }
      CHECK(memcmp(want[i], got, pairs[i].sizes[0]) == 0);
    }
    vyre_device_release(device);
    vyre_context_release(context);
  }
}

/* --- other forms -----------------------------------------------------------*/

/* Prints and parses a kernel, writes and reads its binary form. */
static void check_forms(const char *text) {
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

TEST(aggregates_survive_printing_and_the_binary_form) {
  for (size_t i = 0; i < PAIRS; i++) check_forms(pairs[i].rich);
}

/* --- diagnostics -----------------------------------------------------------*/

TEST(wrong_uses_of_vectors) {
  static const struct {
    const char *text, *rule;
  } rows[] = {
      {"let v = f32x3(1.0, 2.0);", "V051"},
      {"let v = f32x3(1.0, 2u, 3.0);", "V065"},
      {"let v = f32x3(1.0) + 1.0;", "V060"},
      {"let v = f32x3(1.0) + f32x2(1.0);", "V060"},
      {"let v = f32x3(1.0) * 2u;", "V060"},
      {"let v = f32x3(1.0) % f32x3(2.0);", "V061"},
      {"let v = f32x3(1.0) < f32x3(2.0) && true;", "V061"},
      {"if (f32x3(1.0) == f32x3(2.0)) { }", "V067"},
      {"let v = f32x3(1.0).w;", "V036"},
      {"let v = f32x3(1.0).r;", "V036"},
      {"let v = (1.0).x;", "V036"},
      {"let v = f32x3(1.0); v.x = 2.0;", "V066"},
      {"var v = f32x3(1.0); v.xy = f32x2(2.0);", "V037"},
      {"var v = f32x3(1.0); v.x = 2u;", "V065"},
      {"let v = dot(1.0, 2.0);", "V061"},
      {"let v = cross(f32x2(1.0), f32x2(1.0));", "V061"},
      {"let v = all(f32x2(1.0));", "V061"},
      {"let v = u32(f32x2(1.0));", "V079"},
      {"let v = u32x2(1) << 2;", "V078"},
      {"b[0].x = 1.0;", "V071"},
      {"let v = f32x3;", "V035"},
      {"for (let i = f32x2(0.0); i < f32x2(1.0); i += f32x2(1.0)) { }", "V081"},
      {"let v = f32x2(1.0)[1.0];", "V063"},
      {"switch (u32x2(1)) { case 1: break; }", "V"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[512];
    vyre_diagnostics found = {0};
    vyre_status st = {0};
    vyre_module *module;
    snprintf(text, sizeof text,
             "kernel k buffer a : read_write f32x2[] @0; buffer b : read "
             "f32x2[] @1; { %s }",
             rows[i].text);
    CHECK(vyre_module_parse(text, strlen(text), "t", (vyre_allocator){0},
                            &module, &found, &st) != VYRE_OK);
    CHECK(found.count >= 1);
    if (strncmp(found.items[0].rule, rows[i].rule, strlen(rows[i].rule)) != 0) {
      printf("    %s: %s %s\n", rows[i].text, found.items[0].rule,
             found.items[0].message);
    }
    CHECK(strncmp(found.items[0].rule, rows[i].rule, strlen(rows[i].rule)) ==
          0);
    CHECK(found.items[0].fix[0]);
    vyre_diagnostics_deinit(&found);
  }
}

/* --- structs ---------------------------------------------------------------*/

typedef struct inner {
  uint16_t a;
  uint8_t b;
} inner;

typedef struct particle {
  float position[3];
  float mass;
  uint8_t kind;
  inner in;
  double big;
} particle;

static const char move[] =
    "struct inner { a : u16; b : u8; }\n"
    "struct particle {\n"
    "    position : f32x3; mass : f32; kind : u8;\n"
    "    in : inner; big : f64;\n"
    "}\n"
    "fn half(p: particle, s: f32) -> particle {\n"
    "    var r = p;\n"
    "    r.position *= s;\n"
    "    r.in.a += 1;\n"
    "    return r;\n"
    "}\n"
    "kernel move workgroup(64) over(p)\n"
    "buffer p : read_write particle[] @0;\n"
    "buffer q : read_write particle[] @1;\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    if (i >= len(p)) return;\n"
    "    let a = p[i];\n"
    "    q[i] = half(a, 0.5);\n"
    "    p[i].position = a.position.zyx + f32x3(1.0);\n"
    "    if (a.mass > 1.0) p[i].kind = 7;\n"
    "    p[i].in = inner{a: 300, b: u32(a.kind) + 250};\n"
    "    let r = particle{position: a.position, mass: 2.0, big: f64(a.mass) * "
    "3.0};\n"
    "    if (i % 2 == 0) q[i] = r;\n"
    "    p[i].position.y += q[i].position[i % 3];\n"
    "}\n";

enum { PARTICLES = 300 };

/* The same kernel in C, for one particle. */
static void move_in_c(particle *p, particle *q, size_t i) {
  const particle a = p[i];
  for (int k = 0; k < 3; k++) q[i].position[k] = a.position[k] * 0.5f;
  q[i].mass = a.mass;
  q[i].kind = a.kind;
  q[i].in.a = (uint16_t)(a.in.a + 1);
  q[i].in.b = a.in.b;
  q[i].big = a.big;
  for (int k = 0; k < 3; k++) p[i].position[k] = a.position[2 - k] + 1.0f;
  if (a.mass > 1.0f) p[i].kind = 7;
  p[i].in.a = 300;
  p[i].in.b = (uint8_t)(a.kind + 250);
  if (i % 2 == 0) {
    for (int k = 0; k < 3; k++) q[i].position[k] = a.position[k];
    q[i].mass = 2.0f;
    q[i].kind = 0;
    q[i].in.a = 0;
    q[i].in.b = 0;
    q[i].big = (double)a.mass * 3.0;
  }
  p[i].position[1] += q[i].position[i % 3];
}

/* Fills structs and their padding with bytes; floats have small values. */
static void fill_particles(particle *p, unsigned char first) {
  for (size_t i = 0; i < PARTICLES; i++) {
    memset(&p[i], first + (int)(i % 50), sizeof p[i]);
    for (int k = 0; k < 3; k++) p[i].position[k] = (float)(i * 3 + (size_t)k);
    p[i].mass = (float)(i % 4);
    p[i].big = (double)i / 3.0;
  }
}

static void run_particles(vyre_device *device, particle *p, particle *q,
                          const vyre_check_options *check) {
  vyre_status st = {0};
  vyre_module *module = parse_module(move);
  vyre_pipeline *pipeline;
  vyre_check_report report = {0};
  const size_t size = PARTICLES * sizeof *p;
  CHECK_OK(vyre_pipeline_compile(device, vyre_module_kernel(module, 0), NULL,
                                 &pipeline, NULL, &st),
           st);
  const vyre_input inputs[2] = {vyre_input_bytes(p, size),
                                vyre_input_bytes(q, size)};
  const vyre_output outputs[2] = {vyre_output_bytes(p, size),
                                  vyre_output_bytes(q, size)};
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = 2,
                             .outputs = outputs,
                             .output_count = 2};
  if (check) {
    desc.check = *check;
    desc.report = &report;
  }
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
  CHECK(report.count == 0);
  vyre_check_report_deinit(&report);
  vyre_pipeline_release(pipeline);
  vyre_module_release(module);
}

static void check_particles(const char *name, const char *own,
                            const vyre_check_options *check) {
  static particle want[2][PARTICLES], got[2][PARTICLES];
  vyre_context *context;
  vyre_device *device = open_device(name, own, &context);
  if (!device) return;
  for (int k = 0; k < 2; k++) {
    fill_particles(want[k], (unsigned char)(k * 100));
    memcpy(got[k], want[k], sizeof got[k]);
  }
  for (size_t i = 0; i < PARTICLES; i++) move_in_c(want[0], want[1], i);
  run_particles(device, got[0], got[1], check);
  for (size_t i = 0; i < PARTICLES; i++) {
    for (int k = 0; k < 2; k++) {
      /* The padding is compared too. */
      const unsigned char *expected = (const unsigned char *)&want[k][i];
      const unsigned char *found = (const unsigned char *)&got[k][i];
      if (memcmp(expected, found, sizeof(particle)) == 0) continue;
      printf("    %s %s: element %zu of buffer %d differs\n", name, own, i, k);
      for (size_t b = 0; b < sizeof(particle); b++) {
        printf("%02x/%02x ", expected[b], found[b]);
      }
      CHECK(false);
    }
  }
  vyre_device_release(device);
  vyre_context_release(context);
}

TEST(structs_equal_those_of_c_on_every_device) {
  const vyre_check_options check = {
      .out_of_bounds = true, .races = true, .schedules = 2};
  check_particles("ref", "", NULL);
  check_particles("ref", "", &check);
  for (size_t d = 0; d < sizeof devices / sizeof devices[0]; d++) {
    check_particles(devices[d][0], devices[d][1], NULL);
  }
}

TEST(structs_survive_printing_and_the_binary_form) {
  check_forms(move);
}

/* --- dimensions ------------------------------------------------------------*/

TEST(dimensions_above_the_bound_memory_are_refused) {
  static const struct {
    uint32_t w, h;
    const char *message;
  } rows[] = {{40, 30, NULL},
              {30, 40, NULL},
              {0, 9, NULL},
              {41, 30, "30 x 41 elements by its dimensions, but 1200 are"},
              {0x10000, 0x10000, "65536 x 65536"},
              {UINT32_MAX, UINT32_MAX, "but 1200 are bound"}};
  static const char text[] =
      "kernel k workgroup(8)\nbuffer a : read_write f32[h, w] @0;\nuniform w "
      ": u32 @1;\nuniform h : u32 @2;\n{ if (1 < w && 1 < h) a[1, 1] = 3.0; "
      "}";
  vyre_context *context;
  vyre_device *device = open_device("cpu", "", &context);
  vyre_status st = {0};
  float data[1200] = {0};
  uint32_t w = 0, h = 0;
  CHECK(device);
  vyre_module *module = parse_module(text);
  vyre_pipeline *pipeline;
  CHECK_OK(vyre_pipeline_compile(device, vyre_module_kernel(module, 0), NULL,
                                 &pipeline, NULL, &st),
           st);
  const vyre_input inputs[3] = {vyre_input_bytes(data, sizeof data),
                                vyre_input_bytes(&w, 4),
                                vyre_input_bytes(&h, 4)};
  const vyre_output outputs[1] = {vyre_output_bytes(data, sizeof data)};
  const vyre_dispatch_desc desc = {.inputs = inputs,
                                   .input_count = 3,
                                   .outputs = outputs,
                                   .output_count = 1};
  for (int round = 0; round < 3; round++) { /* the same memory each time */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
      w = rows[i].w;
      h = rows[i].h;
      memset(data, 0, sizeof data);
      const vyre_code code = vyre_dispatch(pipeline, &desc, &st);
      if (rows[i].message) {
        CHECK(code == VYRE_INVALID_ARGUMENT);
        CHECK(strstr(st.message, rows[i].message));
        continue;
      }
      CHECK_OK(code, st);
      CHECK(w == 0 || data[w + 1] == 3.0f);
    }
  }
  vyre_pipeline_release(pipeline);
  vyre_module_release(module);
  vyre_device_release(device);
  vyre_context_release(context);
}

TEST(wrong_dimensions) {
  static const struct {
    const char *dimensions, *body, *rule;
  } rows[] = {
      {"[2, 3]", "a[0] = 1.0;", "V068"},
      {"[2, 3]", "a[0, 1, 2] = 1.0;", "V068"},
      {"[6]", "a[0, 1] = 1.0;", "V068"},
      {"[2, 3]", "a[0, f32(1)] = 1.0;", "V068"},
      {"[2, 3]", "let x = len(a, 2);", "V068"},
      {"[1, 1, 1, 1, 1]", "", "V041"},
      {"[0, 3]", "", "V041"},
      {"[2][3]", "", "V041"},
      {"[v, 3]", "", "V041"},
      {"[missing, 3]", "", "V041"},
      {"[n, ]", "", "V013"},
      {"[65536, 65537]", "", "V041"},
      {"[n * 2, 3]", "", "V"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[512];
    vyre_diagnostics found = {0};
    vyre_status st = {0};
    vyre_module *module;
    snprintf(text, sizeof text,
             "kernel k buffer a : read_write f32%s @0; uniform n : u32 @1; "
             "uniform v : f32 @2; { %s }",
             rows[i].dimensions, rows[i].body);
    CHECK(vyre_module_parse(text, strlen(text), "t", (vyre_allocator){0},
                            &module, &found, &st) != VYRE_OK);
    CHECK(found.count >= 1);
    if (strncmp(found.items[0].rule, rows[i].rule, strlen(rows[i].rule)) != 0) {
      printf("    %s %s: %s %s\n", rows[i].dimensions, rows[i].body,
             found.items[0].rule, found.items[0].message);
      CHECK(false);
    }
    vyre_diagnostics_deinit(&found);
  }
}

TEST_MAIN(TEST_ENTRY(aggregates_equal_scalars_on_every_device),
          TEST_ENTRY(aggregates_survive_printing_and_the_binary_form),
          TEST_ENTRY(wrong_uses_of_vectors),
          TEST_ENTRY(dimensions_above_the_bound_memory_are_refused),
          TEST_ENTRY(wrong_dimensions),
          TEST_ENTRY(structs_equal_those_of_c_on_every_device),
          TEST_ENTRY(structs_survive_printing_and_the_binary_form))
