/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measures built-in math functions, compiled as C, against the C library, and
 * the speed of lowering. */
#include <dlfcn.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vyre/vyre.h"

#include "bench.h"

static const char suite[] = "numbers";

enum {
  ELEMENTS = 4096, /* three buffers fit in the first-level cache */
  ROUNDS = 41,
  TURNS = 20,
  PATH = 128,
};

static void must(vyre_code code, const vyre_status *st, const char *what) {
  if (code != VYRE_OK) bench_fail(what, st->message);
}

/* --- functions -------------------------------------------------------------*/

typedef float one(float);
typedef float two(float, float);

#if defined(__GLIBC__)
float exp10f(float); /* not in C11 */
#else
static float exp10f(float x) {
  return powf(10.0f, x);
}
#endif

static float rsqrtf(float x) {
  return 1.0f / sqrtf(x);
}

/* Arguments are in [lo, hi]; with `scales`, 2 to that power. */
typedef struct function {
  const char *name;
  one *one;
  two *two;
  float lo, hi;
  bool scales;
} function;

static const function functions[] = {
    {"exp", expf, NULL, -80, 80, false},
    {"exp2", exp2f, NULL, -120, 120, false},
    {"exp10", exp10f, NULL, -35, 35, false},
    {"expm1", expm1f, NULL, -10, 80, false},
    {"log", logf, NULL, -40, 40, true},
    {"log2", log2f, NULL, -40, 40, true},
    {"log10", log10f, NULL, -40, 40, true},
    {"log1p", log1pf, NULL, -20, 40, true},
    {"sin", sinf, NULL, -100, 100, false},
    {"cos", cosf, NULL, -100, 100, false},
    {"tan", tanf, NULL, -100, 100, false},
    {"asin", asinf, NULL, -1, 1, false},
    {"acos", acosf, NULL, -1, 1, false},
    {"atan", atanf, NULL, -10, 10, false},
    {"sinh", sinhf, NULL, -20, 20, false},
    {"cosh", coshf, NULL, -20, 20, false},
    {"tanh", tanhf, NULL, -5, 5, false},
    {"rsqrt", rsqrtf, NULL, -40, 40, true},
    {"cbrt", cbrtf, NULL, -40, 40, true},
    {"pow", NULL, powf, -8, 8, true},
    {"atan2", NULL, atan2f, -10, 10, false},
    {"hypot", NULL, hypotf, -10, 10, false},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

/* The launch struct of the emitted file, for up to three buffers. */
typedef struct launch2 {
  void *data[2];
  uint32_t len[2], grid[3];
  uint64_t fuel, loop_value[1];
} launch2;

typedef struct launch3 {
  void *data[3];
  uint32_t len[3], grid[3];
  uint64_t fuel, loop_value[1];
} launch3;

typedef struct function_job {
  const function *f;
  int (*run)(const void *launch);
  const void *launch;
  const float *x, *w;
  float *y;
} function_job;

static bool run_ours(void *self) {
  function_job *job = self;
  return job->run(job->launch) == 0;
}

static bool run_peer(void *self) {
  function_job *job = self;
  one *volatile f1 = job->f->one; /* prevents inlining */
  two *volatile f2 = job->f->two;
  one *g1 = f1;
  two *g2 = f2;
  for (int i = 0; i < ELEMENTS; i++) {
    job->y[i] = g1 ? g1(job->x[i]) : g2(job->x[i], job->w[i]);
  }
  return true;
}

/* --- from kernels to a library ---------------------------------------------*/

typedef struct place {
  char folder[PATH / 2];
  char files[FUNCTIONS][PATH]; /* C source of each function */
  char library[PATH];
  const char *compiler;
  void *handle;
} place;

static bool write_file(void *self, const char *text, size_t length) {
  return fwrite(text, 1, length, self) == length;
}

static void emit_function(const function *f, vyre_math math, const char *path) {
  char text[512];
  vyre_module *module;
  vyre_status st = {0};
  const vyre_emit_options options = {.form = VYRE_EMIT_C, .math = math};
  int length = snprintf(text, sizeof text,
                        "kernel bench_%s workgroup(256)\n"
                        "buffer x : read f32[%d] @0;\n"
                        "buffer y : write f32[%d] @1;\n"
                        "%s"
                        "{\n"
                        "    let i = global_id.x;\n"
                        "    if (i < %d) y[i] = %s(x[i]%s);\n"
                        "}\n",
                        f->name, ELEMENTS, ELEMENTS,
                        f->two ? "buffer w : read f32[4096] @2;\n" : "",
                        ELEMENTS, f->name, f->two ? ", w[i]" : "");
  FILE *file = fopen(path, "w");
  if (!file) bench_fail(path, "cannot be written");
  must(vyre_module_parse(text, (size_t)length, f->name, vyre_allocator_heap(),
                         &module, NULL, &st),
       &st, f->name);
  must(vyre_program_emit(vyre_module_kernel(module, 0), &options,
                         (vyre_writer){write_file, file}, NULL, &st),
       &st, f->name);
  vyre_module_release(module);
  if (fclose(file) != 0) bench_fail(path, "cannot be written");
}

extern char **environ;

/* Returns false if the compiler is not installed. */
static bool compile(place *p, const char *compiler) {
  char *words[FUNCTIONS + 16];
  size_t n = 0;
  pid_t child;
  int status;
  words[n++] = (char *)compiler;
  words[n++] = "-std=c11";
  words[n++] = "-O3";
  words[n++] = "-march=native";
  words[n++] = "-ffp-contract=off";
  words[n++] = "-fno-math-errno";
  words[n++] = "-fno-trapping-math";
  if (strstr(compiler, "gcc")) words[n++] = "-fno-tree-pre";
  words[n++] = "-fPIC";
  words[n++] = "-shared";
  words[n++] = "-o";
  words[n++] = p->library;
  for (int i = 0; i < FUNCTIONS; i++) words[n++] = p->files[i];
  words[n++] = "-lm";
  words[n] = NULL;
  if (posix_spawnp(&child, compiler, NULL, NULL, words, environ) != 0 ||
      waitpid(child, &status, 0) != child) {
    return false;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) return false;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    bench_fail(compiler, "cannot compile what vyre emits");
  }
  p->compiler = compiler;
  return true;
}

static void build_library(place *p, vyre_math math) {
  static const char *const compilers[] = {"clang-19", "clang", "gcc", "cc"};
  const char *chosen = getenv("VYRE_BENCH_CC");
  snprintf(p->folder, sizeof p->folder, "/tmp/vyre-bench.XXXXXX");
  if (!mkdtemp(p->folder)) bench_fail(p->folder, "cannot be made");
  snprintf(p->library, sizeof p->library, "%s/library.so", p->folder);
  for (int i = 0; i < FUNCTIONS; i++) {
    snprintf(p->files[i], PATH, "%s/%.20s.c", p->folder, functions[i].name);
    emit_function(&functions[i], math, p->files[i]);
  }
  p->compiler = NULL;
  if (chosen) compile(p, chosen);
  for (int i = 0; !chosen && !p->compiler && i < 4; i++) {
    compile(p, compilers[i]);
  }
  if (!p->compiler) bench_fail("numbers", "no C compiler is installed");
  p->handle = dlopen(p->library, RTLD_NOW | RTLD_LOCAL);
  if (!p->handle) bench_fail(p->library, dlerror());
}

static void finish_library(place *p) {
  dlclose(p->handle);
  for (int i = 0; i < FUNCTIONS; i++) remove(p->files[i]);
  remove(p->library);
  rmdir(p->folder);
}

/* --- measuring -------------------------------------------------------------*/

static float draw(const function *f, uint64_t *state) {
  double unit = (double)(bench_random(state) >> 11) * 0x1p-53;
  double value = f->lo + ((double)f->hi - f->lo) * unit;
  return (float)(f->scales ? exp2(value) : value);
}

/* Checks that the results are close: ours are exact, those of the peer nearly
 * so. */
static void compare(const function_job *job) {
  static float ours[ELEMENTS];
  if (!job->run || job->run(job->launch) != 0)
    bench_fail(job->f->name, "failed");
  memcpy(ours, job->y, sizeof ours);
  run_peer((void *)job);
  for (int i = 0; i < ELEMENTS; i++) {
    if (ours[i] == job->y[i] ||
        fabsf(ours[i] - job->y[i]) <= 1e-6f * fabsf(job->y[i]))
      continue;
    bench_fail(job->f->name, "differs from the C library");
  }
}

static void bench_function(const function *f, const place *p,
                           const char *variant) {
  static float x[ELEMENTS], y[ELEMENTS], w[ELEMENTS];
  uint64_t state = 0x9E3779B97F4A7C15u;
  char name[64];
  const launch2 l2 = {.data = {x, y},
                      .len = {ELEMENTS, ELEMENTS},
                      .grid = {ELEMENTS / 256, 1, 1},
                      .fuel = UINT32_MAX};
  const launch3 l3 = {.data = {x, y, w},
                      .len = {ELEMENTS, ELEMENTS, ELEMENTS},
                      .grid = {ELEMENTS / 256, 1, 1},
                      .fuel = UINT32_MAX};
  function_job job = {.f = f, .x = x, .w = w, .y = y};
  bench_times ours, peer;
  for (int i = 0; i < ELEMENTS; i++) {
    x[i] = draw(f, &state);
    w[i] = draw(f, &state);
  }
  job.launch = f->two ? (const void *)&l3 : (const void *)&l2;
  snprintf(name, sizeof name, "bench_%s", f->name);
  *(void **)&job.run = dlsym(p->handle, name);
  compare(&job);
  bench_pair((bench_job){run_ours, &job}, (bench_job){run_peer, &job}, ROUNDS,
             TURNS, &ours, &peer);
  snprintf(name, sizeof name, "%s, %s, compiled by %.20s", f->name, variant,
           p->compiler);
  bench_row_times(suite, strdup(name), "ns", 1.0 / ELEMENTS, ours,
                  f->one == rsqrtf ? "1 / sqrtf, not exact" : "the C library's",
                  peer);
}

/* --- lowering --------------------------------------------------------------*/

enum { GROUPS = 2000, STATEMENTS_OF_A_GROUP = 10 };

static const char lowering_head[] =
    "kernel large workgroup(64) over(y)\n"
    "buffer x : read f32[4096] @0;\n"
    "buffer y : read_write f32[] @1;\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    var sum = 0.0;\n"
    "    var bits = i;\n";

static const char lowering_group[] =
    "    {\n"
    "        let p = x[(i + %d) %% 4096];\n"
    "        var q = p * 1.5 + sum;\n"
    "        if (q > 2.0) {\n"
    "            q = q - floor(q);\n"
    "            bits = bits ^ bits << 3;\n"
    "        }\n"
    "        for (let k = 0u; k < 4; k++) {\n"
    "            q = fma(q, p, 0.25);\n"
    "        }\n"
    "        if (i < len(y)) y[i] = q;\n"
    "        sum = sum + f32((bits * 1664525 + 1013904223) >> 8);\n"
    "    }\n";

/* A writer that refuses everything: printing ends at once, and only lowering is
 * measured. */
static bool write_nowhere(void *self, const char *text, size_t length) {
  (void)self;
  (void)text;
  (void)length;
  return false;
}

static bool run_lowering(void *program) {
  vyre_status st = {0};
  const vyre_emit_options options = {.form = VYRE_EMIT_LOWERED};
  vyre_code code = vyre_program_emit(
      program, &options, (vyre_writer){write_nowhere, NULL}, NULL, &st);
  return code != VYRE_OK && st.kind == VYRE_KIND_WRITER_REFUSED;
}

static bool run_validation(void *program) {
  vyre_status st = {0};
  return vyre_program_validate(program, NULL, &st) == VYRE_OK;
}

static void bench_lowering(void) {
  const size_t room = GROUPS * (sizeof lowering_group + 8) + 1024;
  char *text = malloc(room);
  vyre_module *module;
  vyre_status st = {0};
  bench_times both;
  if (!text) bench_fail("kernel text", "no memory");
  size_t length = (size_t)snprintf(text, room, "%s", lowering_head);
  for (int i = 0; i < GROUPS; i++) {
    length += (size_t)snprintf(text + length, room - length, lowering_group, i);
  }
  length +=
      (size_t)snprintf(text + length, room - length, "    y[0] = sum;\n}\n");
  must(vyre_module_parse(text, length, "large", vyre_allocator_heap(), &module,
                         NULL, &st),
       &st, "parse");
  void *program = (void *)(uintptr_t)vyre_module_kernel(module, 0);
  bench_times lowering =
      bench_difference((bench_job){run_lowering, program},
                       (bench_job){run_validation, program}, 21, 1, &both);
  const double count = (double)GROUPS * STATEMENTS_OF_A_GROUP;
  bench_row_times(suite, "check and lower 20,000 statements", "ms", 1e-6, both,
                  "", (bench_times){0, 0});
  bench_row_figure(suite, "lowering, statements a second", "M/s",
                   count / lowering.median * 1e3, "", 0);
  vyre_module_release(module);
  free(text);
}

void bench_numbers(void) {
  static const char *const variants[] = {"f64", "f64-nofma", "u32"};
  bench_lowering();
  for (int v = 0; v < VYRE_MATH_COUNT; v++) {
    place p;
    build_library(&p, (vyre_math)v);
    for (int i = 0; i < FUNCTIONS; i++) {
      bench_function(&functions[i], &p, variants[v]);
    }
    finish_library(&p);
  }
}
