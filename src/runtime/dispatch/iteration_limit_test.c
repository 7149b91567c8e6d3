/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks that max_loop_iterations has the same outcome on every device: with a
 * limit of L, a dispatch whose busiest invocation takes N iterations runs out
 * of fuel if and only if N > L. The kernels take exactly `n` iterations. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vyre/vyre.h"

#include "support/check.h"
#include "support/sanitized.h"

enum { LANES = 8, GROUPS = 2, OUT = LANES * GROUPS };

/* E stands for n: either unbounded, or proven to be at most 2^20, so that
 * compiled code does not count by default. */
static const struct shape {
  const char *name, *body;
} shapes[] = {
    {"for", "for (let a = 0u; a < E; a++) { s = s * 3 + a; }"},
    {"for down", "for (let a = E; a > 0; a--) { s = s * 3 + a; }"},
    {"for that is skipped",
     "if (E > 0) { for (let a = 1u; a <= E; a++) s += 5; "
     "} else { s = 1; }"},
    {"while", "var w = E; while (w > 0) { w--; s = s * 3 + w; }"},
    {"nested",
     "for (let a = 0u; a < min(E, 1); a++) { "
     "for (let b = 1u; b < E; b++) { s = s * 3 + b; } }"},
    {"nested, always as many",
     "for (let a = 0u; a < E / 4; a++) { for (let b = 0u; b < 3; b++) s += b; "
     "} for (let c = 0u; c < E % 4; c++) { s ^= c; }"},
    {"divergent", "for (let a = 0u; a < E >> l; a++) { s = s * 3 + a; }"},
    {"divergent while",
     "var w = E >> (l * 2); while (w != 0) { s = s * 5 + w; w -= 1; }"},
    {"continue",
     "for (let a = 0u; a < E; a++) { if (a % 3 == l % 3) continue; "
     "s = s * 3 + a; }"},
    {"break",
     "for (let a = 0u; a < E; a++) { if (a == 3 * l + 1 && l > 1) "
     "break; s = s * 3 + a; }"},
    {"return",
     "out[i] = 7; for (let a = 0u; a < E; a++) { if (l == 3 && "
     "a == 2) return; s = s * 3 + a; }"},
    {"break out of a nested loop",
     "for (let a = 0u; a < E; a++) { if (a + 1 == E && l == 0) { s += 9; "
     "break; } if (l > 0) { break; } s = s * 3 + a; }"},
    {"function", "s += sum(E);"},
    {"function that returns early", "s += find(E, l);"},
    {"barrier",
     "for (let a = 0u; a < E; a++) { t[l] = s + a; barrier(); "
     "s += t[(l + 1) % 8]; barrier(); }"},
    {"loops one after the other",
     "for (let a = 0u; a < E / 2; a++) { s += a; } "
     "for (let b = 0u; b < E - E / 2; b++) { s ^= b * 3; }"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static const uint32_t limits[] = {
    1, 2, 9, 10, 11, 4095, 4096, 4097, (1 << 20) - 1, 1 << 20, (1 << 20) + 1};
enum { LIMITS = sizeof limits / sizeof *limits };

static const char *kernel_text(const char *body, bool is_bounded) {
  static char made[2048];
  snprintf(made, sizeof made,
           "fn sum(m: u32) -> u32 { var r = 0u; "
           "for (let k = 0u; k < m; k++) { r = r * 3 + k; } return r; }\n"
           "fn find(m: u32, x: u32) -> u32 { for (let k = 0u; k < m; k++) { "
           "if (k > 4 && k == x) return k; } return 77; }\n"
           "kernel k workgroup(%d)\n"
           "uniform n : u32 @0;\n"
           "buffer out : write u32[%d] @1;\n"
           "shared t : u32[%d];\n"
           "{ let i = global_id.x; let l = local_id.x; var s = i; t[l] = 0;\n"
           "let E = %s;\n%s\nout[i] = s; }\n",
           LANES, OUT, LANES, is_bounded ? "min(n, 1048576)" : "n", body);
  return made;
}

typedef struct target {
  const char *device, *options;
  /* use the baseline tier until the optimised code is ready */
  bool is_baseline;
  vyre_context *context;
  vyre_device *opened;     /* NULL if not available */
  uint32_t max_iterations; /* iterations that its driver supports */
} target;

static target targets[] = {{"ref", "", false},
                           {"cpu", "cpu.width=1", false},
                           {"cpu", "cpu.width=4", false},
                           {"cpu", "cpu.width=8", false},
                           {"cpu", "cpu.width=16", false},
                           {"cpu", "cpu.width=8", true},
                           {"vulkan", "", false}};
enum { TARGETS = sizeof targets / sizeof *targets };

static void open_targets(void) {
  for (size_t i = 0; i < TARGETS; i++) {
    target *m = &targets[i];
    vyre_status st = {0};
    vyre_context_options options = {.cache_directory = "",
                                    .trace_file = "",
                                    .faults = "",
                                    .backend_options = m->options};
    CHECK_OK(vyre_context_create(&options, &m->context, &st), st);
    vyre_code code = vyre_device_open(m->context, m->device, &m->opened, &st);
    if (code != VYRE_OK) printf("    %s: %s\n", m->device, st.message);
    CHECK(code == VYRE_OK || strcmp(m->device, "ref") != 0);
    /* Mesa's software driver ends loops after 65,535 iterations and reports
     * it. */
    m->max_iterations = strcmp(m->device, "vulkan") == 0 ? 60000 : UINT32_MAX;
  }
}

static void close_targets(void) {
  for (size_t i = 0; i < TARGETS; i++) {
    vyre_device_release(targets[i].opened);
    vyre_context_release(targets[i].context);
    targets[i].opened = NULL;
  }
}

static void add_counting_code(vyre_pipeline *pipeline) {
  vyre_compile_options counted = {.counts_iterations = true,
                                  .tier = VYRE_TIER_OPTIMISED};
  vyre_status st;
  CHECK_OK(vyre_pipeline_add_variant(pipeline, &counted, &st), st);
}

static vyre_pipeline *compile_with(const target *m, const char *text,
                                   const vyre_compile_options *options) {
  vyre_module *module = NULL;
  vyre_pipeline *pipeline;
  vyre_status st = {0};
  CHECK_OK(vyre_module_parse(text, strlen(text), "limit.vyre",
                             (vyre_allocator){0}, &module, NULL, &st),
           st);
  CHECK_OK(vyre_pipeline_compile(m->opened, vyre_module_kernel(module, 0),
                                 options, &pipeline, NULL, &st),
           st);
  vyre_module_release(module);
  return pipeline;
}

static vyre_pipeline *compile_only(const target *m, const char *text) {
  vyre_compile_options options = {.tier = m->is_baseline ? VYRE_TIER_BASELINE
                                                         : VYRE_TIER_OPTIMISED};
  return compile_with(m, text, &options);
}

static vyre_pipeline *compile(const target *m, const char *text) {
  vyre_pipeline *pipeline = compile_only(m, text);
  add_counting_code(pipeline);
  return pipeline;
}

/* Dispatch with all its bindings. */
typedef struct job {
  uint32_t n, out[OUT];
  vyre_input input;
  vyre_output output;
  vyre_dispatch_desc desc;
} job;

static void job_init(job *j, uint32_t n, uint64_t limit) {
  *j = (job){.n = n};
  j->input = vyre_input_bytes(&j->n, sizeof j->n);
  j->output = vyre_output_bytes(j->out, sizeof j->out);
  j->desc = (vyre_dispatch_desc){.inputs = &j->input,
                                 .input_count = 1,
                                 .outputs = &j->output,
                                 .output_count = 1,
                                 .max_loop_iterations = limit};
}

/* Returns true if the status reports that @p limit was exceeded. */
static bool is_out_of_fuel(vyre_code code, const vyre_status *st,
                           uint64_t limit) {
  uint64_t number;
  return code == VYRE_DISPATCH_FAILED && st->code == code &&
         st->kind == VYRE_KIND_OUT_OF_FUEL && st->fix[0] &&
         vyre_status_number_get(st, "max_iterations", &number) &&
         number == limit &&
         !vyre_status_number_get(st, "device_max_iterations", &number);
}

/* Result of n iterations of a shape. The first target sets it; the others must
 * agree. */
typedef struct result {
  uint32_t n;
  bool is_known;
  uint32_t out[OUT];
} result;

static unsigned check_one(const target *m, vyre_pipeline *pipeline,
                          const char *name, uint32_t n, uint32_t limit,
                          result *first) {
  job j;
  vyre_status st;
  job_init(&j, n, limit);
  vyre_code code = vyre_dispatch(pipeline, &j.desc, &st);
  bool good = n > limit ? is_out_of_fuel(code, &st, limit) : code == VYRE_OK;
  if (good && code == VYRE_OK) {
    if (!first->is_known || first->n != n) {
      *first = (result){.n = n, .is_known = true};
      memcpy(first->out, j.out, sizeof j.out);
    }
    good = memcmp(first->out, j.out, sizeof j.out) == 0;
  }
  if (!good) {
    printf("    %s %s%s, %s: %u iterations with a limit of %u: %s %s\n",
           m->device, m->options, m->is_baseline ? " quick" : "", name,
           (unsigned)n, (unsigned)limit, vyre_code_name(code), st.message);
  }
  return !good;
}

static unsigned check_shape(const struct shape *shape, bool is_bounded) {
  vyre_pipeline *pipelines[TARGETS] = {NULL};
  char name[80];
  unsigned failed = 0;
  result first = {0};
  snprintf(name, sizeof name, "%s%s", shape->name,
           is_bounded ? ", bounded" : "");
  for (size_t i = 0; i < TARGETS; i++) {
    if (!targets[i].opened) continue;
    pipelines[i] = compile(&targets[i], kernel_text(shape->body, is_bounded));
  }
  for (size_t k = 0; k < LIMITS; k++) {
    bool is_large = limits[k] > 10000;
    /* Large limits take long: each shape tests them with one of its two
     * bounds. */
    if (is_large && (SANITIZED || (shape - shapes) % 2 == is_bounded)) continue;
    for (uint32_t n = limits[k] - 1; n <= limits[k] + 1; n++) {
      if (is_bounded && n > 1 << 20) continue;
      for (size_t i = 0; i < TARGETS; i++) {
        if (!pipelines[i] || n > targets[i].max_iterations) continue;
        /* The interpreter needs a second: it runs the first shape only. */
        if (i == 0 && is_large && shape != shapes) continue;
        failed +=
            check_one(&targets[i], pipelines[i], name, n, limits[k], &first);
      }
    }
  }
  for (size_t i = 0; i < TARGETS; i++) vyre_pipeline_release(pipelines[i]);
  return failed;
}

TEST(a_limit_means_the_same_on_every_device) {
  unsigned failed = 0;
  open_targets();
  for (size_t s = 0; s < SHAPES; s++) {
    if (SANITIZED && s % 4 != 0) continue;
    failed += check_shape(&shapes[s], false);
    failed += check_shape(&shapes[s], true);
  }
  close_targets();
  CHECK_U64(failed, 0);
}

/* The host runs loops around grid barriers. Their iterations count too, even
 * if their number is constant. */
TEST(iterations_around_grid_barriers_count) {
  unsigned failed = 0;
  open_targets();
  for (size_t i = 0; i < TARGETS; i++) {
    if (!targets[i].opened) continue;
    result first = {0};
    for (int is_constant = 0; is_constant < 2; is_constant++) {
      char text[512];
      snprintf(text, sizeof text,
               "kernel k workgroup(%d)\nuniform n : u32 @0;\n"
               "buffer out : write u32[%d] @1;\n"
               "{ let i = global_id.x; var s = i + n;\n"
               "  for (let a = 0u; a < %s; a++) { s = s * 3 + a; "
               "grid_barrier(); }\n  out[i] = s; }\n",
               LANES, OUT, is_constant ? "6" : "n");
      vyre_pipeline *p = compile(&targets[i], text);
      for (uint32_t limit = 1; limit <= 11; limit++) {
        for (uint32_t n = limit - 1; n <= limit + 1; n++) {
          if (is_constant && n != 6) continue;
          failed += check_one(&targets[i], p, "grid barrier", n, limit, &first);
        }
      }
      vyre_pipeline_release(p);
    }
  }
  close_targets();
  CHECK_U64(failed, 0);
}

/* Constant bounds below and above 2^20, up to which compiled code does not
 * count by default. */
TEST(a_constant_number_of_iterations_is_checked_against_the_limit) {
  static const uint32_t counts[] = {1, 100, (1 << 20) - 1, 1 << 20,
                                    (1 << 20) + 1};
  unsigned failed = 0;
  open_targets();
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
    char body[128];
    result first = {0};
    if (SANITIZED && counts[c] > 1000) continue;
    snprintf(body, sizeof body,
             "for (let a = 0u; a < %u; a++) { s = s * 3 + a + E; }",
             (unsigned)counts[c]);
    for (size_t i = 0; i < TARGETS; i++) {
      const target *m = &targets[i];
      if (!m->opened || counts[c] > m->max_iterations || (i == 0 && c > 2))
        continue;
      vyre_pipeline *p = compile(m, kernel_text(body, false));
      static const int32_t around[] = {-91, -1, 0, 1};
      for (size_t k = 0; k < 4; k++) {
        job j;
        vyre_status st;
        int64_t limit = (int64_t)counts[c] + around[k];
        if (limit < 1) continue;
        job_init(&j, 5, (uint64_t)limit);
        vyre_code code = vyre_dispatch(p, &j.desc, &st);
        bool good = around[k] < 0 ? is_out_of_fuel(code, &st, (uint64_t)limit)
                                  : code == VYRE_OK;
        if (code == VYRE_OK && !first.is_known) {
          first.is_known = true;
          memcpy(first.out, j.out, sizeof j.out);
        }
        good = good &&
               (code != VYRE_OK || memcmp(first.out, j.out, sizeof j.out) == 0);
        if (!good) {
          printf("    %s %s: %u iterations with a limit of %lld: %s\n",
                 m->device, m->options, (unsigned)counts[c], (long long)limit,
                 vyre_code_name(code));
        }
        failed += !good;
      }
      vyre_pipeline_release(p);
    }
  }
  close_targets();
  CHECK_U64(failed, 0);
}

static vyre_code replay(vyre_device *device, vyre_pipeline *pipeline, job *j,
                        vyre_status *st) {
  vyre_recording *rec;
  uint32_t slots[2];
  vyre_status own;
  vyre_slot_binding in = {.data = &j->n, .size = sizeof j->n};
  vyre_slot_binding out = {.data = j->out, .size = sizeof j->out};
  CHECK_OK(vyre_recording_create(device, &rec, &own), own);
  CHECK_OK(vyre_recording_add_fixed_slot(rec, &in, &slots[0], &own), own);
  CHECK_OK(vyre_recording_add_fixed_slot(rec, &out, &slots[1], &own), own);
  vyre_slot_range from = vyre_slot_range_all(slots[0]),
                  to = vyre_slot_range_all(slots[1]);
  vyre_recorded_dispatch d = {
      .inputs = &from,
      .input_count = 1,
      .outputs = &to,
      .output_count = 1,
      .max_loop_iterations = j->desc.max_loop_iterations};
  CHECK_OK(vyre_recording_add_dispatch(rec, pipeline, &d, &own), own);
  CHECK_OK(vyre_recording_seal(rec, &own), own);
  vyre_code code = vyre_recording_replay(rec, NULL, NULL, st);
  vyre_recording_release(rec);
  return code;
}

/* Uses other limits from call to call, in each dispatch form and with a
 * variant. */
TEST(a_limit_holds_in_every_form) {
  open_targets();
  for (size_t i = 0; i < TARGETS; i++) {
    const target *m = &targets[i];
    if (!m->opened) continue;
    vyre_pipeline *p = compile(m, kernel_text(shapes[0].body, true));
    vyre_compile_options variant = {.workgroup = {4, 1, 1}};
    vyre_status st;
    CHECK_OK(vyre_pipeline_add_variant(p, &variant, &st), st);
    variant.counts_iterations = true;
    CHECK_OK(vyre_pipeline_add_variant(p, &variant, &st), st);
    static const uint64_t given[] = {0, 10, 99, 100, 0, 99, 1 << 20, 5};
    for (size_t k = 0; k < sizeof given / sizeof *given; k++) {
      job j[2];
      bool ends = given[k] == 0 || given[k] >= 100;
      vyre_code codes[6];
      vyre_status statuses[6];
      vyre_fence *fence = NULL;
      job_init(&j[0], 3, 0);
      job_init(&j[1], 100, given[k]);
      codes[0] = vyre_dispatch(p, &j[1].desc, &statuses[0]);
      vyre_dispatch_desc both[] = {j[0].desc, j[1].desc};
      codes[1] = vyre_submit(p, both, 2, NULL, &statuses[1]);
      CHECK_OK(vyre_submit(p, both, 2, &fence, &st), st);
      codes[2] = vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &statuses[2]);
      vyre_fence_release(fence);
      codes[3] = replay(m->opened, p, &j[1], &statuses[3]);
      codes[4] = vyre_device_run_program(
          m->opened, (vyre_program *)(uintptr_t)vyre_pipeline_program(p),
          &j[1].desc, &statuses[4]);
      j[1].desc.variant = &variant;
      codes[5] = vyre_dispatch(p, &j[1].desc, &statuses[5]);
      for (int f = 0; f < 6; f++) {
        bool good = ends ? codes[f] == VYRE_OK
                         : is_out_of_fuel(codes[f], &statuses[f], given[k]);
        if (!good) {
          printf("    %s %s: form %d with a limit of %u: %s\n", m->device,
                 m->options, f, (unsigned)given[k], statuses[f].message);
        }
        CHECK(good);
      }
      if (!ends) CHECK_U64(status_number(&statuses[1], "item"), 1);
    }
    vyre_pipeline_release(p);
  }
  close_targets();
}

/* --- limits above what compiled code counts ------------------------------- */

/* Checks that a dispatch form refused @p limit, with both numbers and a fix. */
static void check_refused(vyre_code code, const vyre_status *st,
                          uint64_t limit) {
  char text[32];
  CHECK_FAILS(code, *st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
  CHECK_U64(status_number(st, "max_iterations"), limit);
  CHECK_U64(status_number(st, "device_max_iterations"), UINT32_MAX);
  snprintf(text, sizeof text, "%llu", (unsigned long long)limit);
  CHECK_HAS(st->message, text);
  CHECK_HAS(st->message, "4294967295");
  CHECK_HAS(st->fix, "max_loop_iterations to 4294967295");
  CHECK_HAS(st->fix, "'ref'");
}

/* Dispatches a kernel that is not proven to stay below 2^32 iterations. */
static void check_large_limit(const target *m, vyre_pipeline *p,
                              uint64_t limit) {
  vyre_program *program = (vyre_program *)(uintptr_t)vyre_pipeline_program(p);
  bool is_ref = strcmp(m->device, "ref") == 0;
  job j[2];
  vyre_status st[4];
  vyre_fence *fence = NULL;
  job_init(&j[0], 3, 0);
  job_init(&j[1], 3, limit);
  vyre_dispatch_desc both[] = {j[0].desc, j[1].desc};
  vyre_code codes[4];
  codes[0] = vyre_dispatch(p, &j[1].desc, &st[0]);
  codes[1] = vyre_submit(p, both, 2, NULL, &st[1]);
  codes[2] = vyre_submit(p, both, 2, &fence, &st[2]);
  /* The next dispatch writes the same memory. */
  if (fence) codes[2] = vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st[2]);
  codes[3] = vyre_device_run_program(m->opened, program, &j[1].desc, &st[3]);
  for (int i = 0; i < 4; i++) {
    if (is_ref || limit <= UINT32_MAX) {
      CHECK_OK(codes[i], st[i]);
    } else {
      check_refused(codes[i], &st[i], limit);
    }
  }
  vyre_fence_release(fence);
}

/* Compiled code counts up to 2^32-1. A larger limit would end a dispatch that
 * `ref` completes, so it is refused. */
TEST(a_limit_that_the_device_cannot_count_is_refused) {
  static const uint64_t given[] = {UINT32_MAX, UINT64_C(1) << 32,
                                   UINT64_C(5000000000), UINT64_MAX};
  static const char *const bodies[] = {
      "var w = E; while (w > 0) { w--; s = s * 3 + w; }",
      "for (let a = 0u; a < E; a++) { for (let b = 0u; b < E; b++) s += b; }"};
  open_targets();
  for (size_t i = 0; i < (size_t)2 * TARGETS; i++) {
    const target *m = &targets[i / 2];
    if (!m->opened) continue;
    vyre_pipeline *p = compile_only(m, kernel_text(bodies[i % 2], false));
    for (size_t k = 0; k < sizeof given / sizeof *given; k++) {
      check_large_limit(m, p, given[k]);
    }
    vyre_pipeline_release(p);
  }
  close_targets();
}

/* A recording refuses such a limit when the dispatch is added. */
TEST(a_recording_refuses_a_limit_that_the_device_cannot_count) {
  const target *m = &targets[3];
  open_targets();
  if (m->opened) {
    vyre_pipeline *p = compile_only(m, kernel_text(shapes[3].body, false));
    vyre_recording *rec;
    uint32_t slots[2];
    vyre_status st;
    CHECK_OK(vyre_recording_create(m->opened, &rec, &st), st);
    CHECK_OK(vyre_recording_add_slot(rec, "n", 0, &slots[0], &st), st);
    CHECK_OK(vyre_recording_add_slot(rec, "out", 0, &slots[1], &st), st);
    vyre_slot_range from = vyre_slot_range_all(slots[0]),
                    to = vyre_slot_range_all(slots[1]);
    vyre_recorded_dispatch d = {.inputs = &from,
                                .input_count = 1,
                                .outputs = &to,
                                .output_count = 1,
                                .max_loop_iterations = UINT64_C(1) << 32};
    check_refused(vyre_recording_add_dispatch(rec, p, &d, &st), &st,
                  UINT64_C(1) << 32);
    d.max_loop_iterations = UINT32_MAX;
    CHECK_OK(vyre_recording_add_dispatch(rec, p, &d, &st), st);
    vyre_recording_release(rec);
    vyre_pipeline_release(p);
  }
  close_targets();
}

/* No invocation of these kernels can need more than 2^32-1 iterations. */
TEST(a_large_limit_is_accepted_where_it_cannot_matter) {
  static const char *const bodies[] = {
      "s += E;", /* no loop */
      "for (let a = 0u; a < E; a++) { s = s * 3 + a; }",
      "for (let a = 0u; a < 100; a++) { s = s * 3 + E; }"};
  open_targets();
  for (size_t i = 0; i < (size_t)3 * TARGETS; i++) {
    const target *m = &targets[i / 3];
    if (!m->opened) continue;
    vyre_pipeline *p = compile_only(m, kernel_text(bodies[i % 3], false));
    job j;
    vyre_status st;
    job_init(&j, 10, UINT64_C(5000000000));
    CHECK_OK(vyre_dispatch(p, &j.desc, &st), st);
    j.desc.max_loop_iterations = UINT64_MAX;
    CHECK_OK(vyre_dispatch(p, &j.desc, &st), st);
    vyre_pipeline_release(p);
  }
  close_targets();
}

/* --- code that counts --------------------------------------------------- */

static const char hundred[] =
    "kernel hundred workgroup(8)\nuniform n : u32 @0;\n"
    "buffer out : write u32[16] @1;\n"
    "{ var s = n; for (let a = 0u; a < 100; a++) { s = s * 3 + a; }\n"
    "  out[global_id.x] = s; }\n";

static uint64_t compiles(const vyre_device *device) {
  vyre_counters counters;
  vyre_counters_read(device, &counters);
  return counters.compiles;
}

static const target *cpu_target(void) {
  open_targets();
  return targets[3].opened ? &targets[3] : NULL;
}

/* A dispatch never compiles. A limit below the proven bound is refused until
 * the code that counts was added; it is compiled once. */
TEST(a_limit_below_the_bound_needs_code_that_counts) {
  const target *m = cpu_target();
  if (m) {
    vyre_pipeline *p = compile_only(m, hundred);
    static const struct {
      uint64_t limit;
      bool ends;
    } steps[] = {{0, true},  {1 << 30, true}, {100, true}, {99, false},
                 {1, false}, {100, true},     {98, false}, {0, true}};
    for (int prepared = 0; prepared < 2; prepared++) {
      uint64_t before = compiles(m->opened);
      if (prepared) add_counting_code(p);
      if (prepared) add_counting_code(p);
      CHECK_U64(compiles(m->opened) - before, (uint64_t)prepared);
      for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        job j;
        vyre_status st;
        job_init(&j, 1, steps[i].limit);
        vyre_code code = vyre_dispatch(p, &j.desc, &st);
        if (steps[i].ends) {
          CHECK_OK(code, st);
        } else if (prepared) {
          CHECK(is_out_of_fuel(code, &st, steps[i].limit));
        } else {
          CHECK_FAILS(code, st, VYRE_INVALID_ARGUMENT,
                      VYRE_KIND_VARIANT_NOT_COMPILED);
          CHECK_U64(status_number(&st, "bound"), 100);
          CHECK_U64(status_number(&st, "max_iterations"), steps[i].limit);
          CHECK_HAS(st.fix, "counts_iterations");
        }
      }
      CHECK_U64(compiles(m->opened) - before, (uint64_t)prepared);
    }
    vyre_pipeline_release(p);
  }
  close_targets();
}

/* Dispatches `hundred` with limits around its 100 iterations. */
static void check_limits(const target *m, vyre_pipeline *p,
                         const vyre_compile_options *variant) {
  static const uint64_t given[] = {0, 1, 99, 100, 101, 1 << 30, 99, 0};
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
    job j;
    vyre_status st;
    job_init(&j, 1, given[i]);
    j.desc.variant = variant;
    vyre_code code = vyre_dispatch(p, &j.desc, &st);
    bool good = given[i] == 0 || given[i] >= 100
                    ? code == VYRE_OK
                    : is_out_of_fuel(code, &st, given[i]);
    if (!good) {
      printf("    %s %s: a limit of %llu: %s\n", m->device, m->options,
             (unsigned long long)given[i], st.message);
    }
    CHECK(good);
  }
}

/* One call compiles a variant for every limit. */
TEST(a_variant_is_compiled_for_all_limits_at_once) {
  static const vyre_compile_options variants[] = {
      {.workgroup = {16, 1, 1}}, {.ulp_budget = 2}, {{4, 1, 1}, 2}};
  open_targets();
  for (size_t i = 0; i < TARGETS; i++) {
    const target *m = &targets[i];
    if (!m->opened) continue;
    for (size_t k = 0; k < sizeof variants / sizeof *variants; k++) {
      vyre_pipeline *p = compile_only(m, hundred);
      vyre_compile_options counted = variants[k];
      vyre_status st;
      counted.counts_iterations = true;
      CHECK_OK(vyre_pipeline_add_variant(p, &counted, &st), st);
      uint64_t before = compiles(m->opened);
      check_limits(m, p, &variants[k]);
      check_limits(m, p, &counted); /* the flag has no effect here */
      CHECK_OK(vyre_pipeline_add_variant(p, &variants[k], &st), st);
      CHECK_OK(vyre_pipeline_add_variant(p, &counted, &st), st);
      if (!m->is_baseline) CHECK_U64(compiles(m->opened) - before, 0);
      vyre_pipeline_release(p);
    }
  }
  close_targets();
}

TEST(compiling_may_include_code_for_all_limits) {
  open_targets();
  for (size_t i = 0; i < TARGETS; i++) {
    const target *m = &targets[i];
    if (!m->opened) continue;
    vyre_compile_options options = {
        .tier = m->is_baseline ? VYRE_TIER_BASELINE : VYRE_TIER_OPTIMISED,
        .counts_iterations = true};
    vyre_pipeline *p = compile_with(m, hundred, &options);
    check_limits(m, p, NULL);
    vyre_pipeline_release(p);
  }
  close_targets();
}

/* The pipeline may be shared with one that was compiled without counting. */
TEST(compiling_adds_code_that_counts_to_a_shared_pipeline) {
  const target *m = cpu_target();
  if (m) {
    vyre_pipeline *plain = compile_only(m, hundred);
    uint64_t before = compiles(m->opened);
    vyre_compile_options options = {.counts_iterations = true};
    vyre_pipeline *p = compile_with(m, hundred, &options);
    CHECK(p == plain);
    CHECK_U64(compiles(m->opened) - before, 1);
    check_limits(m, p, NULL);
    vyre_pipeline_release(p);
    vyre_pipeline_release(plain);
  }
  close_targets();
}

TEST(compiling_fails_if_code_that_counts_does) {
  const target *m = cpu_target();
  if (m) {
    vyre_pipeline *plain = compile_only(m, hundred), *p = plain;
    vyre_compile_options options = {.counts_iterations = true};
    vyre_status st;
    CHECK_OK(vyre_context_inject_faults(m->context, "compile:1", &st), st);
    CHECK_FAILS(
        vyre_pipeline_compile(
            m->opened, (vyre_program *)(uintptr_t)vyre_pipeline_program(plain),
            &options, &p, NULL, &st),
        st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_INJECTED_FAULT);
    CHECK(p == NULL);
    vyre_pipeline_release(plain);
  }
  close_targets();
}

/* Kernels with unbounded loops always count. */
TEST(code_that_counts_already_is_not_compiled_again) {
  const target *m = cpu_target();
  if (m) {
    vyre_pipeline *p = compile_only(m, kernel_text(shapes[0].body, false));
    uint64_t before = compiles(m->opened);
    add_counting_code(p);
    CHECK_U64(compiles(m->opened) - before, 0);
    vyre_pipeline_release(p);
  }
  close_targets();
}

TEST(adding_code_may_fail_and_leaves_the_pipeline_usable) {
  const target *m = cpu_target();
  if (m) {
    vyre_pipeline *p = compile_only(m, hundred);
    vyre_compile_options counted = {.counts_iterations = true};
    job j;
    vyre_status st;
    CHECK_OK(vyre_context_inject_faults(m->context, "compile:1", &st), st);
    CHECK_FAILS(vyre_pipeline_add_variant(p, &counted, &st), st,
                VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_INJECTED_FAULT);
    job_init(&j, 1, 100);
    CHECK_OK(vyre_dispatch(p, &j.desc, &st), st);
    add_counting_code(p);
    j.desc.max_loop_iterations = 10;
    CHECK(is_out_of_fuel(vyre_dispatch(p, &j.desc, &st), &st, 10));
    vyre_pipeline_release(p);
  }
  close_targets();
}

static void *dispatch_with_limits(void *self) {
  vyre_pipeline *p = self;
  uintptr_t failed = 0;
  add_counting_code(p);
  for (uint64_t limit = 96; limit < 104; limit++) {
    job j;
    vyre_status st;
    job_init(&j, 1, limit);
    vyre_code code = vyre_dispatch(p, &j.desc, &st);
    failed +=
        !(limit < 100 ? is_out_of_fuel(code, &st, limit) : code == VYRE_OK);
  }
  return (void *)failed; /* NOLINT(performance-no-int-to-ptr) */
}

TEST(threads_share_the_code_that_counts) {
  enum { THREADS = 4 };
  const target *m = cpu_target();
  if (m) {
    vyre_pipeline *p = compile_only(m, hundred);
    uint64_t before = compiles(m->opened);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
      CHECK(pthread_create(&threads[i], NULL, dispatch_with_limits, p) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
      void *failed = NULL;
      CHECK(pthread_join(threads[i], &failed) == 0);
      CHECK(failed == NULL);
    }
    CHECK_U64(compiles(m->opened) - before, 1);
    vyre_pipeline_release(p);
  }
  close_targets();
}

/* The two forms of code are separate entries on disk. */
TEST(the_cache_keeps_code_that_counts_apart) {
  char folder[64], command[96];
  snprintf(folder, sizeof folder, "/tmp/vyre-limit-%d", (int)getpid());
  vyre_context_options options = {
      .cache_directory = folder, .trace_file = "", .faults = ""};
  for (int round = 0; round < 3; round++) {
    target m = {"cpu", "", false};
    vyre_status st;
    CHECK_OK(vyre_context_create(&options, &m.context, &st), st);
    if (vyre_device_open(m.context, "cpu", &m.opened, &st) == VYRE_OK) {
      vyre_pipeline *p = compile(&m, hundred);
      job j;
      job_init(&j, 1, round == 1 ? 0 : 10);
      vyre_code code = vyre_dispatch(p, &j.desc, &st);
      CHECK(round == 1 ? code == VYRE_OK : is_out_of_fuel(code, &st, 10));
      CHECK_U64(compiles(m.opened), round == 0 ? 2 : 0);
      vyre_pipeline_release(p);
    }
    vyre_device_release(m.opened);
    vyre_context_release(m.context);
  }
  snprintf(command, sizeof command, "rm -rf %s", folder);
  CHECK(system(command) == 0);
}

TEST_MAIN(
    TEST_ENTRY(a_limit_means_the_same_on_every_device),
    TEST_ENTRY(iterations_around_grid_barriers_count),
    TEST_ENTRY(a_constant_number_of_iterations_is_checked_against_the_limit),
    TEST_ENTRY(a_limit_holds_in_every_form),
    TEST_ENTRY(a_limit_that_the_device_cannot_count_is_refused),
    TEST_ENTRY(a_recording_refuses_a_limit_that_the_device_cannot_count),
    TEST_ENTRY(a_large_limit_is_accepted_where_it_cannot_matter),
    TEST_ENTRY(a_limit_below_the_bound_needs_code_that_counts),
    TEST_ENTRY(a_variant_is_compiled_for_all_limits_at_once),
    TEST_ENTRY(compiling_may_include_code_for_all_limits),
    TEST_ENTRY(compiling_adds_code_that_counts_to_a_shared_pipeline),
    TEST_ENTRY(compiling_fails_if_code_that_counts_does),
    TEST_ENTRY(code_that_counts_already_is_not_compiled_again),
    TEST_ENTRY(adding_code_may_fail_and_leaves_the_pipeline_usable),
    TEST_ENTRY(threads_share_the_code_that_counts),
    TEST_ENTRY(the_cache_keeps_code_that_counts_apart))
