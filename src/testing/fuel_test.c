/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks loop fuel (lower/trip_count.h): with any max_loop_iterations, the
 * lowered kernel and the C code generated from it run out of fuel if `ref`
 * does, which counts every iteration. Otherwise they give the same bytes. */
#include "vyre/dispatch.h"
#include "vyre/module.h"

#include "codegen/c/c_testing.h"
#include "testing/lir_interp.h"

enum {
  GRID = 2,
  LANES = 4,
  OUT = GRID * LANES, /* one element per invocation */
  LEN = 5,            /* elements of buffer z */
};

/* Kernel bodies; `kernel_text` declares the names they use. n[0..3] are known
 * at run time only, so that no loop is proven to be short. */
static const char *const bodies[] = {
    /* nested */
    "for (let a = 0u; a < n[0]; a++) { s += a; "
    "for (let b = 0u; b < n[1]; b++) { s ^= b + a; } }",
    "for (let a = 0u; a < n[0]; a++) { for (let b = a; b < n[1]; b++) { "
    "for (let c = 0u; c <= b; c += 2) { s += c; } } }",
    "for (let a = 0u; a < len(z); a++) { for (let b = 0u; b < len(z); b++) "
    "s += z[b] * a; }",
    /* constant inner trip counts, charged with the outer iteration */
    "for (let a = 0u; a < n[0]; a++) { for (let b = 0u; b < 3; b++) { "
    "s = s * 3 + b; } }",
    "for (let a = 0u; a < n[0]; a++) { for (let b = 0u; b < 2; b++) { "
    "for (let c = 0u; c < 3; c++) { s += c; } } for (let d = 0; d < 2; d++) "
    "{ s ^= 5; } }",
    "var w = 0u; while (w < n[0]) { w++; for (let b = 0u; b < 3; b++) { "
    "s += b; } }",
    "for (let a = 0u; a < n[0]; a++) { if (a == l) { for (let b = 0u; b < 2; "
    "b++) { s += 1; } } else { for (let b = 4; b > 2; b--) { s += 2; } } }",
    "for (let a = 0u; a < n[0]; a++) { if (a == l) { for (let b = 0u; b < 2; "
    "b++) { s += 1; } } }",
    "for (let a = 0u; a < n[0]; a++) { for (let b = 0u; b < 0; b++) s++; }",
    "for (let a = 0u; a < 3; a++) { for (let b = 0u; b < 4; b++) s++; } "
    "for (let a = 0u; a < n[0]; a++) { s += 3; }",
    /* consecutive loops */
    "for (let a = 0u; a < n[0]; a++) { s += a; } for (let b = 0u; b < n[1]; "
    "b++) { s ^= b; } for (let c = 0u; c < len(z); c++) { s += z[c]; }",
    "if (l > 1) { for (let a = 0u; a < n[0]; a++) { s += a; } } else { "
    "for (let a = 0u; a < n[1]; a++) { s ^= a; } }",
    /* with and without an early exit */
    "for (let a = 0u; a < n[0]; a++) { if (a > l) break; s += a; }",
    "for (let a = 0u; a < n[0]; a++) { for (let b = 0u; b < 3; b++) { s++; } "
    "if (a > l) break; }",
    "for (let a = 0u; a < n[0]; a++) { if (a > l) break; "
    "for (let b = 0u; b < 3; b++) { s++; } }",
    "for (let a = 0u; a < n[0]; a++) { for (let b = 0u; b < n[1]; b++) { "
    "if (b == l) break; s += b; } }",
    "for (let a = 0u; a < n[0]; a++) { for (let b = 0u; b < 4; b++) { "
    "if (b == l) break; s += b; } }",
    "for (let a = 0u; a < n[0]; a++) { if (a == l) continue; s += a; }",
    "for (let a = 0u; a < n[0]; a++) { if (a == l) continue; "
    "for (let b = 0u; b < 2; b++) { s += b; } }",
    "for (let a = 0u; a < n[0]; a++) { for (let b = 0u; b < 2; b++) { "
    "s += b; } if (a == l) continue; s ^= 9; }",
    "for (let a = 0u; a < n[0]; a++) { if (a + 1 == l) return; s += a; "
    "out[i] = s; }",
    "for (let a = 0u; a < n[0]; a++) { for (let b = 0u; b < n[1]; b++) { "
    "if (b + a == l * 2) return; s += a; out[i] = s; } }",
    "if (l == 2) return; for (let a = 0u; a < n[0]; a++) { s += a; }",
    "for (let a = 0u; a < n[0]; a++) { while (true) { s++; if (s % 4 == l) "
    "break; } }",
    /* halved down to 0, or nearly */
    "for (let a = 0u; a < n[0]; a++) { s += a; } var h = n[1]; "
    "while (h > 0) { s += h; h /= 2; }",
    "for (let a = 0u; a < n[0]; a++) { var h = n[1] * 9; while (0 != h) { "
    "h >>= 3; s += h; } }",
    "var h = n[0] << 20; while (h >= 1) { h = h >> 2; "
    "for (let b = 0u; b < 3; b++) { s += b; } } "
    "for (let a = 0u; a < n[1]; a++) { s += 3; }",
    "var h = n[0]; while (h > 2) { h /= 2; s += h; } "
    "for (let a = 0u; a < n[1]; a++) { s += 3; }",
    "var h = n[0] * n[1]; while (h != 0) { if (h == l) break; h /= 2; s++; } "
    "for (let a = 0u; a < n[1]; a++) { s += 3; }",
    "var h = n[0]; while (h > 0) { h /= 3; s++; for (let b = 0u; b < n[1]; "
    "b++) { s += b; } }",
    "var h = n[0]; while (h > 0) { h /= 2; s++; for (let b = 0u; b < h; b++) "
    "{ s += b; } }",
    "var h = u64(n[0]) << 35; while (h > 0) { h >>= 5; s++; } "
    "for (let a = 0u; a < n[1]; a++) { s += 3; }",
    "var h = n[0]; while (h > 0) { s++; h /= 2; h -= min(h, 1); } "
    "for (let a = 0u; a < n[1]; a++) { s += 3; }",
    "var h = n[0]; while (h > 0) { if (s % 3 == 1) { h--; s++; continue; } "
    "s++; h /= 2; } for (let a = 0u; a < n[1]; a++) { s += 3; }",
    /* comparisons, types and steps */
    "for (let a = 0u; a <= n[0]; a += 3) s += a;",
    "for (let a = n[0]; a > 2; a -= 2) s += a;",
    "for (let a = n[0]; a >= 1; a--) s += a;",
    "for (let a = n[0]; a >= 0; a -= 7) s += a;",
    "for (let a = -3; a < i32(n[0]); a += 2) s += u32(a);",
    "for (let a = i32(n[0]) - 4; a <= 3; a++) s += u32(a);",
    "for (let a = i32(n[0]); a > -5; a -= 3) s += u32(a);",
    "for (let a = i32(n[0]); a >= -2; a--) { for (let b = 0; b < 2; b++) "
    "s += u32(a); }",
    "for (let a = 0ul; a < u64(n[0]); a++) s += u32(a);",
    "for (let a = u64(n[0]) << 33; a > u64(n[1]); a -= 0x1000000001) s += 7;",
    "for (let a = -5l; a <= i64(n[0]); a += 2) { for (let b = 0; b < 2; b++) "
    "s += u32(a); }",
    "for (let a = 4294967290u + n[2]; a <= 4294967295; a++) s += a;",
    "for (let a = 2147483640 + i32(n[2]); a <= 2147483647; a += 3) "
    "s += u32(a);",
    /* calls: an early return of a function is not a loop */
    "for (let a = 0u; a < n[0]; a++) { s += early(a, l); }",
    "var w = 0u; while (early(w, 9) < n[0]) { w++; s += w; }",
    "var w = 0u; while (looping(w, n[1]) < n[0] + n[1] && s < 1000000) { "
    "w++; s += w; }",
    "for (let a = 0u; a < n[0]; a++) { s += looping(a, n[1]); }",
    /* barriers of the workgroup and of the grid */
    "for (let a = 0u; a < n[0]; a++) { t[l] = s; barrier(); "
    "for (let b = 0u; b < 4; b++) { s += t[b]; } barrier(); }",
    "for (let a = 0u; a < n[0]; a++) { t[l] = s; barrier(); "
    "for (let b = 0u; b < l; b++) { s += t[b]; } barrier(); }",
    "for (let a = 0u; a < n[0]; a++) { t[l] = s; barrier(); s += t[3 - l]; "
    "if (a == n[1]) break; barrier(); }",
    "for (let a = 0u; a < n[0]; a++) { s += a; } out[i] = s; grid_barrier(); "
    "for (let b = 0u; b < n[1]; b++) { s ^= out[b % 8]; } grid_barrier();",
    "for (let a = 0u; a < u; a++) { out[i] = s; grid_barrier(); "
    "s += out[(i + 1) % 8]; grid_barrier(); }",
    "for (let a = 0u; a < u; a++) { for (let b = a; b < len(z); b += 2) { "
    "out[i] = s; grid_barrier(); s += out[(i + 1) % 8]; grid_barrier(); } "
    "for (let c = 0u; c < n[1]; c++) { s += c; } }",
    "for (let a = 0u; a < u; a++) { if (a == 2) break; s += a; out[i] = s; "
    "grid_barrier(); s ^= out[7 - i]; grid_barrier(); }",
};

static const char *kernel_text(const char *body) {
  static char source[4096];
  snprintf(source, sizeof source,
           "fn early(a: u32, b: u32) -> u32 { for (let k = 0u; k < 1; k++) { "
           "if (a > b) return 3; } if (a == b) return 1; return a; }\n"
           "fn looping(a: u32, b: u32) -> u32 { var r = a; "
           "for (let k = 0u; k < b; k++) { if (k == 3) return r; r++; } "
           "return r; }\n"
           "kernel k workgroup(%d)\n"
           "buffer n : read u32[4] @0;\n"
           "buffer z : read u32[] @1;\n"
           "uniform u : u32 @2;\n"
           "buffer out : read_write u32[%d] @3;\n"
           "shared t : u32[%d];\n"
           "{ let i = global_id.x; let l = local_id.x; var s = i;\n"
           "t[l] = 0; %s\n if (i == 99) { out[0] = n[0] + z[0] + u; }\n"
           "out[i] = s; }\n",
           LANES, OUT, LANES, body);
  return source;
}

/* --- ref, LIR and C ----------------------------------------------------- */

typedef struct data {
  uint32_t n[4], z[LEN], u, out[OUT];
} data;

static data make_data(uint32_t a, uint32_t b) {
  data d = {.n = {a, b, a & 1, b & 3}, .u = a % 4};
  for (uint32_t i = 0; i < LEN; i++) d.z[i] = i * 3 + 1;
  for (uint32_t i = 0; i < OUT; i++) d.out[i] = i * i;
  return d;
}

typedef struct subject {
  vyre_module *module;
  vyre_pipeline *pipeline;
  vyre_arena arena;
  const vyre__lir_kernel *kernels[2]; /* with and without 64-bit integers */
  program compiled;
} subject;

static subject subject_init(const char *source, bool compiles) {
  static const vyre__target targets[] = {
      {.math = VYRE__MATH_F64},
      {.math = VYRE__MATH_U32, .no_u64 = true, .no_f64 = true}};
  subject s = {0};
  vyre_device *device = NULL;
  vyre_status st = {0};
  vyre_arena_init(&s.arena, (vyre_allocator){0});
  s.module = parse_module(source);
  vyre_program *kernel = vyre_module_kernel(s.module, 0);
  CHECK_OK(vyre_device_open(NULL, "ref", &device, &st), st);
  CHECK_OK(vyre_pipeline_compile(device, kernel, NULL, &s.pipeline, NULL, &st),
           st);
  vyre_device_release(device);
  for (int i = 0; i < 2; i++) {
    CHECK_OK(vyre__lower(kernel, &targets[i], VYRE__PASS_LEGALIZE_CONTROL,
                         &s.arena, &s.kernels[i], NULL, &st),
             st);
  }
  if (!compiles) return s;
  text c = emit_text(s.kernels[0], NULL);
  s.compiled = build(&c, "k", flags_of("-O1"));
  free(c.bytes);
  return s;
}

static void subject_deinit(subject *s) {
  if (s->compiled.library) dlclose(s->compiled.library);
  vyre_arena_deinit(&s->arena);
  vyre_pipeline_release(s->pipeline);
  vyre_module_release(s->module);
}

/* The run functions return false if the fuel runs out. */
static bool run_on_ref(const subject *s, data *d, uint64_t fuel) {
  vyre_input inputs[] = {{d->n, sizeof d->n},
                         {d->z, sizeof d->z},
                         {&d->u, sizeof d->u},
                         {d->out, sizeof d->out}};
  vyre_output output = {d->out, sizeof d->out};
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = 4,
                             .outputs = &output,
                             .output_count = 1,
                             .grid = {GRID, 1, 1},
                             .max_loop_iterations = fuel};
  vyre_status st = {0};
  vyre_code code = vyre_dispatch(s->pipeline, &desc, &st);
  if (code != VYRE_OK && st.kind != VYRE_KIND_OUT_OF_FUEL) CHECK_OK(code, st);
  return code == VYRE_OK;
}

static void bind(const vyre__lir_kernel *k, data *d, uint32_t *spill,
                 vyre__lir_binding out[8]) {
  CHECK(k->buffer_count <= 8);
  memset(out, 0, 8 * sizeof *out);
  out[0] = (vyre__lir_binding){d->n, 4};
  out[1] = (vyre__lir_binding){d->z, LEN};
  out[2] = (vyre__lir_binding){&d->u, 1};
  out[3] = (vyre__lir_binding){d->out, OUT};
  if (k->spill_buffer == VYRE_NO_INDEX) return;
  CHECK(k->spill_words <= 32);
  out[k->spill_buffer] = (vyre__lir_binding){spill, k->spill_words * OUT};
}

static bool run_lowered(const vyre__lir_kernel *k, data *d, uint32_t fuel) {
  vyre__lir_binding buffers[8];
  vyre_status st = {0};
  bind(k, d, NULL, buffers);
  vyre__lir_launch how = {.buffers = buffers,
                          .grid = {GRID, 1, 1},
                          .fuel = fuel,
                          .poison = 0xA5,
                          .max_instructions = 10000000};
  vyre_code code = vyre__lir_interpret(k, &how, (vyre_allocator){0}, &st);
  if (code != VYRE_OK && st.kind != VYRE_KIND_OUT_OF_FUEL) CHECK_OK(code, st);
  return code == VYRE_OK;
}

static bool run_compiled(const subject *s, data *d, uint64_t fuel) {
  static uint32_t spill[32 * OUT];
  static const uint32_t grid[3] = {GRID, 1, 1};
  vyre__lir_binding buffers[8];
  bind(s->kernels[0], d, spill, buffers);
  launch l = make_launch(s->kernels[0], buffers, grid, fuel);
  int code = s->compiled.run(&l);
  CHECK(code == 0 || code == 1);
  return code == 0;
}

static bool same(const char *variant, const char *body, uint64_t fuel,
                 bool want, bool got, const data *a, const data *b) {
  if (want == got && (!want || memcmp(a->out, b->out, sizeof a->out) == 0)) {
    return true;
  }
  printf("    %s: %s with fuel %llu, ref %s\n      %s\n", variant,
         want != got ? (got ? "ends" : "runs out") : "other bytes",
         (unsigned long long)fuel, want ? "ends" : "runs out", body);
  return false;
}

static unsigned compare(const subject *s, const char *body, const data *d,
                        uint32_t fuel, bool *ends) {
  data want = *d, got = *d;
  unsigned failed = 0;
  *ends = run_on_ref(s, &want, fuel);
  for (int i = 0; i < 2; i++) {
    got = *d;
    bool ended = run_lowered(s->kernels[i], &got, fuel);
    failed += !same(i ? "without u64" : "lowered", body, fuel, *ends, ended,
                    &want, &got);
  }
  got = *d;
  bool ended = run_compiled(s, &got, fuel);
  return failed + !same("C", body, fuel, *ends, ended, &want, &got);
}

TEST(runs_out_if_ref_does) {
  static const uint32_t sizes[][2] = {{0, 0}, {1, 3}, {3, 0}, {7, 5}};
  unsigned failed = 0, ended = 0, ran_out = 0;
  for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
    subject s = subject_init(kernel_text(bodies[i]), true);
    if (!s.kernels[0]->has_fuel) {
      printf("    counts nothing: %s\n", bodies[i]);
      failed++;
    }
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
      data d = make_data(sizes[k][0], sizes[k][1]);
      bool ends = false;
      for (uint32_t fuel = 1; fuel < 400 && !ends; fuel++) {
        failed += compare(&s, bodies[i], &d, fuel, &ends);
        ran_out += !ends;
      }
      ended += ends;
      failed += !ends;
      failed += compare(&s, bodies[i], &d, UINT32_MAX, &ends);
    }
    subject_deinit(&s);
  }
  CHECK_U64(ended, sizeof bodies / sizeof bodies[0] * 4);
  CHECK(ran_out > 1000);
  CHECK_U64(failed, 0);
}

/* --- random nested loops ------------------------------------------------ */

typedef struct nest {
  uint64_t seed;
  char text[2048];
  size_t length;
  unsigned loops; /* loops so far, for variable names */
} nest;

static uint32_t below(nest *r, uint32_t n) {
  return (uint32_t)random_below(&r->seed, n);
}

#define PUT(r, ...)                 \
  ((r)->length += (size_t)snprintf( \
       (r)->text + (r)->length, sizeof(r)->text - (r)->length, __VA_ARGS__))

static void put_statements(nest *r, unsigned depth, bool in_loop);

static void put_loop(nest *r, unsigned depth) {
  static const char *const bounds[] = {"n[0]", "n[1]", "n[3]", "len(z) - 2",
                                       "2",    "3",    "l",    "l * 2"};
  const char *bound = bounds[below(r, 8)];
  unsigned name = r->loops++;
  switch (below(r, 4)) {
    case 0:
      PUT(r, "var w%u = 0u; while (w%u < %s) { w%u++; ", name, name, bound,
          name);
      break;
    case 1:
      PUT(r, "for (let a%u = %s; a%u > 0; a%u -= %u) { ", name, bound, name,
          name, 1 + below(r, 2));
      break;
    default:
      PUT(r, "for (let a%u = %uu; a%u <%s %s; a%u += %u) { ", name, below(r, 2),
          name, below(r, 3) ? "" : "=", bound, name, 1 + below(r, 2));
  }
  put_statements(r, depth + 1, true);
  PUT(r, "} ");
}

static void put_statements(nest *r, unsigned depth, bool in_loop) {
  static const char *const jumps[] = {"break;", "continue;", "return;"};
  unsigned count = 1 + below(r, 3);
  for (unsigned i = 0; i < count && r->length < 1200; i++) {
    uint32_t kind = below(r, 8);
    if (kind < 3 && depth < 3) {
      put_loop(r, depth);
    } else if (kind == 3 && depth < 3) {
      PUT(r, "if ((s + %u) %% 3 == 1) { ", below(r, 5));
      put_statements(r, depth + 1, in_loop);
      PUT(r, "} else { ");
      put_statements(r, depth + 1, in_loop);
      PUT(r, "} ");
    } else if (kind == 4 && in_loop) {
      PUT(r, "if ((s + l) %% %u == 0) %s ", 3 + below(r, 4),
          jumps[below(r, 3)]);
    } else {
      PUT(r, "s = s * %u + l; ", 3 + below(r, 9));
    }
  }
}

TEST(random_nests_run_out_if_ref_does) {
  unsigned failed = 0, counted = 0, ran_out = 0;
  for (uint64_t seed = 1; seed <= 400; seed++) {
    nest r = {.seed = seed};
    put_loop(&r, 0);
    put_statements(&r, 0, false);
    subject s = subject_init(kernel_text(r.text), false);
    counted += s.kernels[0]->has_fuel;
    for (uint32_t fuel = 1; fuel < 4000 && s.kernels[0]->has_fuel;
         fuel += 1 + fuel / 7) {
      data d = make_data(3, 2), want = d, got = d;
      bool ends = run_on_ref(&s, &want, fuel);
      bool ended = run_lowered(s.kernels[0], &got, fuel);
      failed += !same("lowered", r.text, fuel, ends, ended, &want, &got);
      ran_out += !ends;
    }
    subject_deinit(&s);
  }
  CHECK(counted > 250 && ran_out > 1000);
  CHECK_U64(failed, 0);
}

/* --- default limit ------------------------------------------------------ */

/* More iterations than any fuel: the kernel stops before the first one. */
TEST(endless_nests_end_at_once) {
  static const char *const endless[] = {
      "for (let a = 0u; a < 4000000000; a++) { for (let b = 0u; b < "
      "4000000000; b++) { s += b; } }",
      "for (let a = 0u; a < n[0]; a++) { for (let b = 0u; b < n[0]; b++) { "
      "s += b; } }",
      "for (let a = 0u; a < n[0]; a++) { s += a; if (s == 3) break; "
      "for (let b = 0u; b < 0xffffffff; b++) { s += b; } }",
      "for (let a = 0u; a <= 0xffffffff; a++) { s += a; }",
      "for (let a = 0u; a < n[1]; a++) { for (let b = 0u; b <= 0xffffffff; "
      "b++) { s ^= b; } }",
      "for (let a = -2147483647 - 1; a <= 2147483647; a++) { s += u32(a); }",
      "for (let a = 0ul; a < u64(n[0]) << 20; a += 3) { s += u32(a); }",
      "for (let a = 0ul; a <= 0xffffffffffffffff; a++) { s += u32(a); }",
      "for (let a = 0u; a < 70000; a++) { for (let b = 0u; b < 70000; b++) { "
      "s += b; } }",
      "for (let a = 0u; a < n[0]; a++) { for (let b = 0u; b < 2; b++) { "
      "s += b; } }",
      "for (let a = 0u; a < 0xfffffff0; a++) { for (let b = 0u; b < "
      "0xfffffff0; b++) { for (let c = 0u; c < 0xfffffff0; c++) { s++; } } }",
  };
  for (size_t i = 0; i < sizeof endless / sizeof endless[0]; i++) {
    subject s = subject_init(kernel_text(endless[i]), true);
    data d = make_data(4000000000u, 2);
    bool ends = run_compiled(&s, &d, UINT64_MAX);
    for (int k = 0; k < 2; k++) {
      d = make_data(4000000000u, 2);
      ends |= run_lowered(s.kernels[k], &d, UINT32_MAX);
    }
    if (ends) printf("    %s\n", endless[i]);
    CHECK(!ends);
    subject_deinit(&s);
  }
}

/* Loops that need all the fuel; one unit less is not enough. */
TEST(the_last_iteration_counts) {
  static const struct {
    const char *body;
    uint32_t min_fuel; /* smallest sufficient fuel */
  } rows[] = {
      {"for (let a = 0u; a < 1000000; a++) { for (let b = 0; b < 3; b++) {} }",
       4000000},
      {"for (let a = 0u; a < 1048577; a++) {}", 1048577},
      {"for (let a = 0u; a < 1048576; a++) {} for (let b = 0; b < 1; b++) {}",
       1048577},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    subject s = subject_init(kernel_text(rows[i].body), true);
    data d = make_data(1, 1);
    CHECK(!run_compiled(&s, &d, rows[i].min_fuel - 1));
    CHECK(run_compiled(&s, &d, rows[i].min_fuel));
    subject_deinit(&s);
  }
}

/* --- kernels that do not count ------------------------------------------ */

TEST(few_iterations_are_not_counted) {
  static const struct {
    const char *body;
    bool counts;
  } rows[] = {
      {"s++;", false},
      {"for (let a = 0u; a < 1048576; a++) s++;", false},
      {"for (let a = 0u; a < 1048577; a++) s++;", true},
      {"for (let a = 0u; a < 1024; a++) { for (let b = 0u; b < 1023; b++) "
       "s++; }",
       false},
      {"for (let a = 0u; a < 1024; a++) { for (let b = 0u; b < 1024; b++) "
       "s++; }",
       true},
      {"for (let a = 0u; a < 524288; a++) s++; "
       "for (let a = 0u; a < 524288; a++) { if (s == 4) break; }",
       false},
      {"for (let a = 0u; a < 524288; a++) s++; "
       "for (let a = 0u; a < 524289; a++) { if (s == 4) break; }",
       true},
      {"if (l == 1) { for (let a = 0u; a < 1000000; a++) s++; } else { "
       "for (let a = 0u; a < 1000000; a++) s--; }",
       false},
      {"for (let a = 0u; a < n[0] % 1000; a++) s++;", false},
      {"for (let a = 0u; a < len(z); a++) s++;", true},
      {"while (s % 7 != 3) s++;", true},
      {"var h = n[0]; while (h > 0) { s++; h /= 2; }", false},
      {"var h = n[0]; while (h > 0) { if (l == 1) break; h >>= 1; }", false},
      {"var h = n[0]; while (h >= 0) { s++; h /= 2; if (s > 9) break; }", true},
      {"var h = n[0]; while (h > 0) { if (l == 1) continue; h /= 2; }", true},
      {"var h = n[0]; while (h > 0) { if (s > 3) { h /= 2; } s++; }", true},
      {"var h = n[0]; while (h > 0) { h /= 2; if (s > 3) h = 9; s++; }", true},
      {"var h = n[0]; while (h > 0) { h /= 1; s++; if (s > 9) h = 0; }", true},
      {"for (let a = 0u; a < 1000; a++) { while (s % 7 != 3) s++; }", true},
      {"s += early(s, 3);", false},
      {"for (let a = 0l; a < 4000000000; a++) s++;", true},
      {"for (let a = 0l; a < 4000; a++) s++;", false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    subject s = subject_init(kernel_text(rows[i].body), false);
    if (s.kernels[0]->has_fuel != rows[i].counts) {
      printf("    %s\n", rows[i].body);
      test_fail(__FILE__, __LINE__);
    }
    subject_deinit(&s);
  }
}

/* Counts a word in the printed LIR. */
static unsigned count_in(const vyre__lir_kernel *k, const char *word) {
  text c = {0};
  CHECK(vyre__lir_print(k, growing_writer(&c)));
  unsigned count = 0;
  const char *at = c.bytes;
  for (; at && (at = strstr(at, word)) != NULL; at++) count++;
  free(c.bytes);
  return count;
}

/* Checks the proven trip counts of halving loops. */
TEST(halving_takes_few_iterations) {
  static const struct {
    const char *body;
    uint64_t max;
  } rows[] = {
      {"var h = n[0]; while (h > 0) { s++; h /= 2; }", 32},
      {"var h = n[0]; while (h >= 3) { s++; h >>= 2; }", 32},
      {"var h = n[0]; while (h != 0) { if (l == 1) break; h /= 3; }", 32},
      {"var h = u64(n[0]); while (h > 0) { s++; h /= 2; }", 64},
      {"var h = n[0]; while (h > 0) { s++; h /= n[1]; }", UINT64_MAX},
      {"var h = n[0]; while (h > 0) { if (l == 1) continue; h /= 2; }",
       UINT64_MAX},
      {"var h = n[0]; while (h > 0) { h /= 2; if (s > 3) h = 9; s++; }",
       UINT64_MAX},
      {"for (let a = 0u; a < len(z); a++) { var h = a; while (h > 0) h /= 2; }",
       32},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    subject s = subject_init(kernel_text(rows[i].body), false);
    const vyre__lir_kernel *k = s.kernels[0];
    uint64_t max = k->loops[k->loop_count - 1].max_trips;
    if (max != rows[i].max) printf("    %s\n", rows[i].body);
    CHECK_U64(max, rows[i].max);
    subject_deinit(&s);
  }
}

/* A loop without an early exit costs nothing per iteration. */
TEST(iterations_are_counted_as_rarely_as_possible) {
  static const struct {
    const char *body;
    unsigned tests, reads; /* tests of the fuel, and reads of it inside loops */
  } rows[] = {
      {"for (let a = 0u; a < len(z); a++) s += z[a];", 1, 0},
      {"for (let a = 0u; a < len(z); a++) { for (let b = 0u; b < 8; b++) "
       "s += z[a]; }",
       1, 0},
      {"for (let a = 0u; a < len(z); a++) s++; "
       "for (let a = 0u; a < len(z); a++) s--;",
       2, 0},
      {"for (let a = 0u; a < len(z); a++) { for (let b = 0u; b < len(z); b++) "
       "s += z[b]; }",
       2, 1},
      {"for (let a = 0u; a < len(z); a++) { if (z[a] == 3) break; }", 1, 1},
      {"while (s % 7 != 3) { for (let b = 0u; b < 8; b++) s++; }", 1, 1},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    subject s = subject_init(kernel_text(rows[i].body), false);
    unsigned tests = count_in(s.kernels[0], "out_of_fuel");
    unsigned reads = count_in(s.kernels[0], "get u32 fuel");
    if (tests != rows[i].tests || reads != rows[i].reads) {
      printf("    %u tests, %u reads: %s\n", tests, reads, rows[i].body);
    }
    CHECK_U64(tests, rows[i].tests);
    CHECK_U64(reads, rows[i].reads);
    subject_deinit(&s);
  }
  finish_folder();
}

TEST_MAIN(TEST_ENTRY(runs_out_if_ref_does),
          TEST_ENTRY(random_nests_run_out_if_ref_does),
          TEST_ENTRY(endless_nests_end_at_once),
          TEST_ENTRY(the_last_iteration_counts),
          TEST_ENTRY(few_iterations_are_not_counted),
          TEST_ENTRY(halving_takes_few_iterations),
          TEST_ENTRY(iterations_are_counted_as_rarely_as_possible))
