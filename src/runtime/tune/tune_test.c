/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks that settings never change a result, and that choices are stored,
 * found and left alone where they do not apply. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier): mkdtemp */
#define _DEFAULT_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include "vyre/tune.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vyre/module.h"

#include "runtime/cache/cache_testing.h"
#include "runtime/core/device.h"
#include "runtime/tune/apply.h"
#include "support/check.h"
#include "support/sanitized.h"

enum { COUNT = 900, COUNTERS = 16 };

static const char text[] =
    "kernel plain workgroup(64) over(y)\n"
    "buffer x : read f32[] @0;\n"
    "buffer y : read_write f32[] @1;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = sin(y[i]) * x[i] + 0.1; }\n"
    "kernel loops workgroup(64) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "{ let i = global_id.x; if (i >= len(y)) return; var s = y[i];\n"
    "  for (let k = 0u; k < i % 37; k++) { if (s % 3 == 0) s += x[k];\n"
    "    else s = s * 5 + 1; }\n"
    "  y[i] = s; }\n"
    "kernel counts workgroup(64) over(x)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[16] @1;\n"
    "{ let i = global_id.x;\n"
    "  if (i < len(x)) atomic_add(y[x[i] % 16], x[i]); }\n"
    "kernel sums workgroup(64) over(x)\n"
    "buffer x : read f32[] @0;\n"
    "buffer y : write f32[] @1;\n"
    "shared t : f32[64];\n"
    "{ let l = local_id.x; let i = global_id.x;\n"
    "  var v = 0.0; if (i < len(x)) v = x[i];\n"
    "  t[l] = v; barrier();\n"
    "  var s = 32u;\n"
    "  while (s > 0) { if (l < s) t[l] = t[l] + t[l + s]; barrier();\n"
    "    s = s / 2; }\n"
    "  if (l == 0) y[workgroup_id.x] = t[0]; }\n"
    /* The number of invocations depends on the workgroup size. */
    "kernel careless workgroup(64) over(x)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[16] @1;\n"
    "{ atomic_add(y[0], 1); }\n"
    "kernel copies workgroup(64) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : write u32[] @1;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = x[i]; }\n";

typedef struct rig {
  char folder[64];
  vyre_context *context;
  vyre_module *module;
  vyre_device *device;
  uint32_t x[COUNT], y[COUNT];
  vyre_input inputs[2];
  vyre_output output;
  vyre_dispatch_desc desc;
} rig;

static void open_device(rig *r, const char *name, const char *options) {
  vyre_status st = {0};
  vyre_context_options how = {.cache_directory = r->folder,
                              .trace_file = "",
                              .faults = "",
                              .backend_options = options};
  CHECK_OK(vyre_context_create(&how, &r->context, &st), st);
  CHECK_OK(vyre_device_open(r->context, name, &r->device, &st), st);
}

static void close_device(rig *r) {
  vyre_device_release(r->device);
  vyre_context_release(r->context);
}

static void open_rig(rig *r, const char *name) {
  vyre_status st = {0};
  memset(r, 0, sizeof *r);
  folder_make(r->folder);
  open_device(r, name, "cpu.threads=4");
  CHECK_OK(vyre_module_parse(text, sizeof text - 1, "t.vyre",
                             (vyre_allocator){0}, &r->module, NULL, &st),
           st);
}

static void close_rig(rig *r) {
  vyre_module_release(r->module);
  close_device(r);
  folder_remove(r->folder);
}

static vyre_program *kernel(const rig *r, const char *name) {
  return vyre_module_find(r->module, name);
}

/* Floats between 0 and 2, which are integers of all kinds, too. */
static void fill(uint32_t *to, uint32_t seed) {
  for (uint32_t i = 0; i < COUNT; i++) {
    to[i] = 0x3f000000 + (i * 2654435761u + seed) % 0x00ffffff;
  }
}

/* Binds COUNT elements, or as many as the kernel declares. */
static void bind(rig *r, const char *name) {
  bool is_small = strcmp(name, "counts") == 0 || strcmp(name, "careless") == 0;
  bool has_sums = strcmp(name, "sums") == 0;
  size_t size = is_small   ? sizeof(uint32_t) * COUNTERS
                : has_sums ? sizeof(uint32_t) * ((COUNT + 63) / 64)
                           : sizeof r->y;
  fill(r->x, 1);
  fill(r->y, 2);
  r->inputs[0] = vyre_input_bytes(r->x, sizeof r->x);
  r->inputs[1] = vyre_input_bytes(r->y, size);
  r->output = vyre_output_bytes(r->y, size);
  bool has_state = !has_sums && strcmp(name, "copies") != 0;
  r->desc = (vyre_dispatch_desc){.inputs = r->inputs,
                                 .input_count = has_state ? 2 : 1,
                                 .outputs = &r->output,
                                 .output_count = 1};
}

/* Runs a kernel on the interpreter. */
static void run_on_ref(rig *r, const char *name, uint32_t out[COUNT]) {
  vyre_device *ref;
  vyre_status st = {0};
  bind(r, name);
  CHECK_OK(vyre_device_open(r->context, "ref", &ref, &st), st);
  CHECK_OK(vyre_device_run_program(ref, kernel(r, name), &r->desc, &st), st);
  memcpy(out, r->y, sizeof r->y);
  vyre_device_release(ref);
}

/* Runs a kernel with @p settings, and compares it with @p expected. */
static void check_settings(rig *r, const char *name,
                           const vyre__settings *settings,
                           const uint32_t expected[COUNT]) {
  vyre_pipeline *pipeline;
  vyre_status st = {0};
  CHECK_OK(vyre__pipeline_compile_tuned(r->device, kernel(r, name), settings,
                                        VYRE_TIER_OPTIMISED, &pipeline, &st),
           st);
  bind(r, name);
  CHECK_OK(vyre_dispatch(pipeline, &r->desc, &st), st);
  if (memcmp(r->y, expected, sizeof r->y) != 0) {
    char what[VYRE__SETTINGS_TEXT];
    vyre__settings_text(r->device, settings, what);
    printf("    %s with %s differs\n", name, what);
    test_fail(__FILE__, __LINE__);
  }
  vyre_pipeline_release(pipeline);
}

/* Adds 1 to the value index of one setting after the other, like a counter.
 * Returns false at the end. */
static bool next_settings(const rig *r, bool may_resize,
                          vyre__settings *settings) {
  vyre__tunable t;
  for (uint32_t i = 0; r->device->backend->tunable_at(r->device, i, &t); i++) {
    uint32_t at = 0;
    while (settings->tuned[i] && at < t.count &&
           t.values[at] + 1 != settings->tuned[i]) {
      at++;
    }
    at += settings->tuned[i] != 0;
    settings->tuned[i] = at < t.count ? t.values[at] + 1 : 0;
    if (settings->tuned[i]) return true;
  }
  if (!may_resize) return false;
  settings->workgroup = settings->workgroup ? settings->workgroup * 4 : 16;
  return settings->workgroup <= 1024;
}

TEST(every_combination_of_settings_gives_the_same_bits) {
  static const char *const names[] = {"plain", "loops", "counts", "sums"};
  rig r;
  uint32_t expected[COUNT];
  open_rig(&r, "cpu");
  for (size_t k = 0; k < 4; k++) {
    vyre__settings settings = {0};
    int count = 0;
    run_on_ref(&r, names[k], expected);
    bool may_resize = strcmp(names[k], "sums") != 0;
    do {
      check_settings(&r, names[k], &settings, expected);
      count++;
    } while (next_settings(&r, may_resize, &settings));
    CHECK_U64(count, may_resize ? 6 * 3 * 2 * 5 : 6 * 3 * 2);
  }
  close_rig(&r);
}

/* --- the search ------------------------------------------------------------*/

static vyre_tuning *tune(rig *r, const char *name, bool is_trial) {
  vyre_tuning *tuning;
  vyre_status st = {0};
  vyre_tune_options options = {.max_ns = UINT64_C(120000000000),
                               .is_trial = is_trial};
  CHECK_OK(
      vyre_tune(r->device, kernel(r, name), &r->desc, &options, &tuning, &st),
      st);
  return tuning;
}

TEST(all_variants_tried_have_one_hash) {
  rig r;
  uint32_t before[COUNT];
  vyre_tune_variant first, v;
  open_rig(&r, "cpu");
  bind(&r, "loops");
  memcpy(before, r.y, sizeof before);
  vyre_tuning *tuning = tune(&r, "loops", true);
  CHECK(memcmp(before, r.y, sizeof before) == 0); /* read only */
  CHECK(!vyre_tuning_is_stored(tuning));
  CHECK(vyre_tuning_fixed_workgroup(tuning) == NULL);
  CHECK(vyre_tuning_variant_at(tuning, 0, &first));
  CHECK_TEXT(first.settings, "as compiled");
  size_t count = 0, choices = 0, widths = 0, groups = 0;
  for (; vyre_tuning_variant_at(tuning, count, &v); count++) {
    choices += v.is_choice;
    widths += strstr(v.settings, "width") != NULL;
    groups += strstr(v.settings, "workgroup") != NULL;
    CHECK(v.outcome == VYRE_TUNE_MEASURED || v.outcome == VYRE_TUNE_HOPELESS);
    CHECK(!v.has_outputs || (v.outputs.low == first.outputs.low &&
                             v.outputs.high == first.outputs.high));
  }
  CHECK_U64(choices, 1);
  CHECK(widths >= 5 && groups >= 6);
  vyre_tuning_release(tuning);
  close_rig(&r);
}

TEST(a_workgroup_size_that_matters_stays) {
  static const char *const names[] = {"sums", "careless"};
  rig r;
  vyre_tune_variant v;
  open_rig(&r, "cpu");
  for (size_t k = 0; k < 2; k++) {
    bind(&r, names[k]);
    vyre_tuning *tuning = tune(&r, names[k], true);
    CHECK(vyre_tuning_fixed_workgroup(tuning) != NULL);
    for (size_t i = 0; vyre_tuning_variant_at(tuning, i, &v); i++) {
      CHECK(strstr(v.settings, "workgroup") == NULL);
    }
    vyre_tuning_release(tuning);
  }
  /* It would have changed the result. */
  uint32_t expected[COUNT];
  vyre_status st = {0};
  vyre_pipeline *pipeline;
  run_on_ref(&r, "careless", expected);
  bind(&r, "careless");
  vyre__settings settings = {.workgroup = 256};
  CHECK_OK(
      vyre__pipeline_compile_tuned(r.device, kernel(&r, "careless"), &settings,
                                   VYRE_TIER_AUTO, &pipeline, &st),
      st);
  CHECK_OK(vyre_dispatch(pipeline, &r.desc, &st), st);
  CHECK(r.y[0] != expected[0]);
  vyre_pipeline_release(pipeline);
  close_rig(&r);
}

TEST(a_given_grid_fixes_the_workgroup_size) {
  rig r;
  open_rig(&r, "cpu");
  bind(&r, "plain");
  r.desc.grid[0] = 4;
  vyre_tuning *tuning = tune(&r, "plain", true);
  CHECK_HAS(vyre_tuning_fixed_workgroup(tuning), "grid");
  vyre_tuning_release(tuning);
  close_rig(&r);
}

typedef struct noise {
  atomic_bool ends;
  uint32_t *at;
} noise;

static void *change_memory(void *self) {
  noise *n = self;
  while (!atomic_load(&n->ends)) {
    __atomic_fetch_add(n->at, 1, __ATOMIC_RELAXED);
  }
  return NULL;
}

TEST(results_that_differ_are_an_error) {
  rig r;
  pthread_t thread;
  vyre_status st = {0};
  vyre_tuning *tuning;
  open_rig(&r, "cpu");
  bind(&r, "copies");
  noise n = {.at = &r.x[7]};
  CHECK(pthread_create(&thread, NULL, change_memory, &n) == 0);
  CHECK_FAILS(
      vyre_tune(r.device, kernel(&r, "copies"), &r.desc, NULL, &tuning, &st),
      st, VYRE_DISPATCH_FAILED, VYRE_KIND_NONE);
  CHECK_HAS(st.message, "other results");
  CHECK(tuning == NULL);
  atomic_store(&n.ends, true);
  pthread_join(thread, NULL);
  close_rig(&r);
}

TEST(a_run_longer_than_the_time_for_tuning_is_stopped) {
  static const char endless[] =
      "kernel endless workgroup(64) over(y)\n"
      "buffer x : read u32[] @0;\n"
      "buffer y : write u32[] @1;\n"
      "{ let i = global_id.x; if (i >= len(y)) return; var k = x[i];\n"
      "  for (let n = 0u; n < 4000000000; n++) k = k * 3 + n;\n"
      "  y[i] = k; }\n";
  rig r;
  vyre_status st = {0};
  vyre_module *module;
  vyre_tuning *tuning;
  uint64_t max_ns = 0;
  const vyre_tune_options options = {.max_ns = 60000000};
  open_rig(&r, "cpu");
  bind(&r, "copies");
  CHECK_OK(vyre_module_parse(endless, sizeof endless - 1, "endless",
                             vyre_allocator_heap(), &module, NULL, &st),
           st);
  CHECK_FAILS(vyre_tune(r.device, vyre_module_kernel(module, 0), &r.desc,
                        &options, &tuning, &st),
              st, VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT);
  CHECK_HAS(st.message, "the time for tuning");
  CHECK(vyre_status_number_get(&st, "max_ns", &max_ns));
  CHECK_U64(max_ns, 60000000);
  /* The time limit of the caller comes first. */
  st = (vyre_status){0};
  r.desc.timeout_ns = 20000000;
  CHECK_FAILS(vyre_tune(r.device, vyre_module_kernel(module, 0), &r.desc,
                        &options, &tuning, &st),
              st, VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT);
  CHECK_HAS(st.message, "20 ms");
  vyre_module_release(module);
  close_rig(&r);
}

TEST(dispatches_that_cannot_be_tuned_are_refused) {
  rig r;
  vyre_status st = {0};
  vyre_tuning *tuning;
  vyre_buffer buffer;
  open_rig(&r, "cpu");
  CHECK_OK(vyre_buffer_create(r.device, sizeof r.x, &buffer, &st), st);
  for (int way = 0; way < 4; way++) {
    vyre_tune_options options = {.reserved = {way == 3}};
    const vyre_compile_options variant = {{32}};
    bind(&r, "plain");
    if (way == 0) r.inputs[0] = vyre_input_buffer(buffer);
    if (way == 1) r.desc.max_loop_iterations = 3;
    if (way == 2) r.desc.variant = &variant;
    CHECK_FAILS(vyre_tune(r.device, kernel(&r, "plain"), &r.desc, &options,
                          &tuning, &st),
                st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
    CHECK(tuning == NULL && st.fix[0]);
  }
  close_rig(&r);
}

/* --- choices ---------------------------------------------------------------*/

/* Stores a choice for the size that is bound. */
static void store_choice(rig *r, const char *name, vyre__settings settings) {
  vyre_status st = {0};
  vyre__tunings *tunings = vyre__tunings_of(r->context);
  vyre__time time = {.program = vyre_program_fingerprint(kernel(r, name)),
                     .device = vyre__device_identity_of(r->device),
                     .settings = vyre__settings_pack(&settings),
                     .size_class = vyre__desc_size_class(r->device, &r->desc),
                     .samples = 5,
                     .time_ns = 1000,
                     .is_choice = true};
  vyre__times_add(&tunings->times, &time);
  CHECK_OK(vyre__times_save(&tunings->times, &time.device, 1, &st), st);
  vyre__tunings_changed(r->context);
}

static vyre_pipeline *compile(const rig *r, const char *name,
                              const vyre_compile_options *options) {
  vyre_pipeline *pipeline;
  vyre_status st = {0};
  CHECK_OK(vyre_pipeline_compile(r->device, kernel(r, name), options, &pipeline,
                                 NULL, &st),
           st);
  return pipeline;
}

/* Returns the workgroup size that a dispatch uses. */
static uint32_t size_used(const rig *r, vyre_pipeline *pipeline) {
  return vyre__tuned_for(pipeline, &r->desc, 1)->workgroup[0];
}

static const vyre__settings wide = {.workgroup = 256, .tuned = {9, 2}};

TEST(a_stored_choice_is_used_after_a_restart) {
  rig r;
  vyre_status st = {0};
  vyre_tuned_choice choice;
  uint32_t expected[COUNT];
  open_rig(&r, "cpu");
  run_on_ref(&r, "loops", expected);
  bind(&r, "loops");
  store_choice(&r, "loops", wide);
  close_device(&r);
  open_device(&r, "cpu", "cpu.threads=4");
  vyre_pipeline *pipeline = compile(&r, "loops", NULL);
  CHECK(vyre_pipeline_tuned_at(pipeline, 0, &choice));
  CHECK_TEXT(choice.settings, "workgroup 256, width 8, threads 1");
  CHECK(choice.min_bytes <= 2 * sizeof r.y + sizeof r.x &&
        choice.max_bytes >= 2 * sizeof r.y + sizeof r.x);
  CHECK(!vyre_pipeline_tuned_at(pipeline, 1, &choice));
  CHECK_U64(size_used(&r, pipeline), 256);
  CHECK_OK(vyre_dispatch(pipeline, &r.desc, &st), st);
  CHECK(memcmp(r.y, expected, sizeof r.y) == 0);
  /* Again, from the pipelines in memory. */
  vyre_pipeline_release(pipeline);
  pipeline = compile(&r, "loops", NULL);
  CHECK_U64(size_used(&r, pipeline), 256);
  vyre_pipeline_release(pipeline);
  close_rig(&r);
}

/* An array that ends at the end of its page: a read past it is a signal. */
typedef struct fenced {
  unsigned char *pages;
  size_t page;
} fenced;

static void *fence_end(fenced *f, const void *bytes, size_t size) {
  f->page = (size_t)sysconf(_SC_PAGESIZE);
  f->pages = mmap(NULL, 2 * f->page, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(f->pages != MAP_FAILED);
  CHECK(mprotect(f->pages + f->page, f->page, PROT_NONE) == 0);
  return memcpy(f->pages + f->page - size, bytes, size);
}

TEST(lists_of_a_wrong_length_are_not_read) {
  rig r;
  vyre_status st = {0};
  vyre_tuning *tuning;
  fenced inputs, outputs;
  open_rig(&r, "cpu");
  bind(&r, "loops");
  store_choice(&r, "loops", wide);
  vyre_pipeline *pipeline = compile(&r, "loops", NULL);
  r.desc.inputs = fence_end(&inputs, r.inputs, sizeof r.inputs);
  r.desc.outputs = fence_end(&outputs, &r.output, sizeof r.output);
  CHECK_U64(size_used(&r, pipeline), 256);
  for (int way = 0; way < 2; way++) {
    r.desc.input_count = way == 0 ? 3 : 2;
    r.desc.output_count = way == 0 ? 1 : 2;
    CHECK(vyre_dispatch(pipeline, &r.desc, &st) != VYRE_OK);
    CHECK_HAS(st.message, way == 0 ? "takes 2, got 3" : "1 output, but 2");
    st = (vyre_status){0};
    CHECK(vyre_tune(r.device, kernel(&r, "loops"), &r.desc, NULL, &tuning,
                    &st) != VYRE_OK);
    CHECK_HAS(st.message, way == 0 ? "takes 2, got 3" : "1 output, but 2");
    st = (vyre_status){0};
  }
  vyre_pipeline_release(pipeline);
  CHECK(munmap(inputs.pages, 2 * inputs.page) == 0);
  CHECK(munmap(outputs.pages, 2 * outputs.page) == 0);
  close_rig(&r);
}

TEST(a_choice_is_used_only_where_it_applies) {
  rig r;
  uint32_t big[2];
  open_rig(&r, "cpu");
  bind(&r, "loops");
  store_choice(&r, "loops", wide);
  vyre_pipeline *pipeline = compile(&r, "loops", NULL);
  CHECK_U64(size_used(&r, pipeline), 256);
  r.desc.grid[0] = 16; /* a given grid means a given number of invocations */
  CHECK_U64(size_used(&r, pipeline), 64);
  r.desc.grid[0] = 0;
  r.desc.max_loop_iterations = 100;
  CHECK_U64(size_used(&r, pipeline), 64);
  r.desc.max_loop_iterations = 0;
  r.inputs[0] = vyre_input_bytes(big, sizeof big); /* another size */
  r.inputs[1] = vyre_input_bytes(big, sizeof big);
  r.output = vyre_output_bytes(big, sizeof big);
  CHECK_U64(size_used(&r, pipeline), 64);
  bind(&r, "loops");
  static const vyre_compile_options none = {.ignores_tuning = true};
  static const vyre_compile_options other = {.workgroup = {128}};
  vyre_pipeline *untuned = compile(&r, "loops", &none);
  vyre_pipeline *sized = compile(&r, "loops", &other);
  CHECK(untuned != pipeline);
  CHECK_U64(size_used(&r, untuned), 64);
  CHECK_U64(size_used(&r, sized), 128);
  vyre_pipeline_release(untuned);
  vyre_pipeline_release(sized);
  vyre_pipeline_release(pipeline);
  /* Another option of the device is another device. */
  close_device(&r);
  open_device(&r, "cpu", "cpu.threads=3");
  pipeline = compile(&r, "loops", NULL);
  CHECK_U64(size_used(&r, pipeline), 64);
  vyre_pipeline_release(pipeline);
  close_rig(&r);
}

TEST(device_buffers_have_the_size_of_their_memory) {
  rig r;
  vyre_status st = {0};
  vyre_buffer x, y;
  open_rig(&r, "cpu");
  bind(&r, "loops");
  store_choice(&r, "loops", wide);
  CHECK_OK(vyre_buffer_create(r.device, sizeof r.x, &x, &st), st);
  CHECK_OK(vyre_buffer_create(r.device, sizeof r.y, &y, &st), st);
  r.inputs[0] = vyre_input_buffer(x);
  r.inputs[1] = vyre_input_buffer(y);
  r.output = vyre_output_buffer(y);
  vyre_pipeline *pipeline = compile(&r, "loops", NULL);
  CHECK_U64(size_used(&r, pipeline), 256);
  CHECK_OK(vyre_dispatch(pipeline, &r.desc, &st), st);
  vyre_pipeline_release(pipeline);
  close_rig(&r);
}

TEST(a_choice_that_does_not_fit_is_not_used) {
  static const vyre__settings bad[] = {{.workgroup = 2048},
                                       {.tuned = {8}},
                                       {.tuned = {0, 100}},
                                       {.tuned = {0, 0, 0, 1}}};
  rig r;
  open_rig(&r, "cpu");
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    bind(&r, "loops");
    store_choice(&r, "loops", bad[i]);
    vyre_pipeline *pipeline = compile(&r, "loops", NULL);
    CHECK(vyre__tuned_for(pipeline, &r.desc, 1) == pipeline);
    vyre_pipeline_release(pipeline);
  }
  /* A size is proven again: the file may say anything. */
  bind(&r, "careless");
  store_choice(&r, "careless", (vyre__settings){.workgroup = 256});
  vyre_pipeline *pipeline = compile(&r, "careless", NULL);
  CHECK_U64(size_used(&r, pipeline), 64);
  vyre_pipeline_release(pipeline);
  close_rig(&r);
}

TEST(tuning_again_replaces_the_choice_and_forgetting_removes_it) {
  rig r;
  vyre_status st = {0};
  uint64_t count;
  open_rig(&r, "cpu");
  bind(&r, "loops");
  store_choice(&r, "loops", wide);
  vyre_pipeline *pipeline = compile(&r, "loops", NULL);
  CHECK_U64(size_used(&r, pipeline), 256);
  store_choice(&r, "loops", (vyre__settings){.workgroup = 128});
  vyre_pipeline *again = compile(&r, "loops", NULL);
  CHECK(again == pipeline);
  CHECK_U64(size_used(&r, pipeline), 128);
  CHECK_OK(vyre_tune_forget(r.device, kernel(&r, "loops"), &count, &st), st);
  CHECK_U64(count, 2);
  vyre_pipeline *third = compile(&r, "loops", NULL);
  CHECK_U64(size_used(&r, pipeline), 64);
  vyre_pipeline_release(third);
  vyre_pipeline_release(again);
  vyre_pipeline_release(pipeline);
  close_device(&r);
  open_device(&r, "cpu", "cpu.threads=4");
  pipeline = compile(&r, "loops", NULL);
  CHECK_U64(size_used(&r, pipeline), 64);
  vyre_pipeline_release(pipeline);
  close_rig(&r);
}

static size_t stored(const rig *r) {
  vyre__times times = {.context = r->context, .file = VYRE__TIMES_OF_TUNING};
  vyre__times_load(&times, NULL, 0);
  size_t count = times.count;
  vyre__times_deinit(&times);
  return count;
}

/* Stores a time of its own @p count times, as a process of its own. */
static int store_own(const rig *r, uint64_t id, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    vyre_status st = {0};
    vyre__times times = {.context = r->context, .file = VYRE__TIMES_OF_TUNING};
    vyre__times_load(&times, NULL, 0);
    const vyre__time time = {.program = {id, i}, .samples = 1, .time_ns = 1000};
    vyre__times_add(&times, &time);
    if (vyre__times_save(&times, NULL, 0, &st) != VYRE_OK) return 1;
    vyre__times_deinit(&times);
  }
  return 0;
}

TEST(processes_that_store_at_once_keep_the_times_of_all) {
  enum { PROCESSES = 4, EACH = 25 };
  if (THREAD_SANITIZED) return; /* it cannot fork a process with threads */
  rig r;
  pid_t children[PROCESSES];
  open_rig(&r, "ref");
  (void)fflush(stdout);
  for (uint64_t i = 0; i < PROCESSES; i++) {
    children[i] = fork();
    CHECK(children[i] >= 0);
    if (children[i] == 0) _exit(store_own(&r, i + 1, EACH));
  }
  for (int i = 0; i < PROCESSES; i++) {
    int status = -1;
    CHECK(waitpid(children[i], &status, 0) == children[i]);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  CHECK_U64(stored(&r), (uint64_t)PROCESSES * EACH);
  close_rig(&r);
}

TEST(a_damaged_file_or_another_driver_means_no_choice) {
  rig r;
  char path[128];
  vyre__device_identity identity;
  open_rig(&r, "cpu");
  bind(&r, "loops");
  vyre_tuning_release(tune(&r, "loops", false));
  size_t count = stored(&r);
  CHECK(count >= 1 && count <= 2);
  identity = vyre__device_identity_of(r.device);
  identity.driver ^= 1;
  vyre__times times = {.context = r.context, .file = VYRE__TIMES_OF_TUNING};
  vyre__times_load(&times, &identity, 1);
  CHECK_U64(times.count, 0);
  vyre__times_deinit(&times);
  (void)snprintf(path, sizeof path, "%s/%s", r.folder, VYRE__TIMES_OF_TUNING);
  for (long at = 3; at < 200; at += 31) {
    FILE *file = fopen(path, "r+b");
    CHECK(file != NULL);
    fseek(file, at, SEEK_SET);
    int byte = fgetc(file);
    if (byte == EOF) {
      fclose(file);
      break;
    }
    fseek(file, at, SEEK_SET);
    fputc(byte ^ 4, file);
    fclose(file);
    CHECK_U64(stored(&r), 0);
    file = fopen(path, "r+b");
    CHECK(file != NULL);
    fseek(file, at, SEEK_SET);
    fputc(byte, file);
    fclose(file);
    CHECK_U64(stored(&r), count);
  }
  close_rig(&r);
}

/* --- threads ---------------------------------------------------------------*/

static void *dispatch_often(void *self) {
  rig own = *(rig *)self;
  vyre_status st = {0};
  vyre_pipeline *pipeline = compile(&own, "loops", NULL);
  for (int i = 0; i < 50; i++) {
    bind(&own, "loops");
    CHECK_OK(vyre_dispatch(pipeline, &own.desc, &st), st);
    vyre_pipeline *again = compile(&own, "loops", NULL);
    vyre_pipeline_release(again);
  }
  vyre_pipeline_release(pipeline);
  return NULL;
}

TEST(threads_dispatch_while_choices_change) {
  rig r;
  pthread_t threads[3];
  open_rig(&r, "cpu");
  for (int i = 0; i < 3; i++) {
    CHECK(pthread_create(&threads[i], NULL, dispatch_often, &r) == 0);
  }
  rig own = r;
  for (uint32_t i = 0; i < 10; i++) {
    vyre__tunings *tunings = vyre__tunings_of(r.context);
    bind(&own, "loops");
    pthread_mutex_lock(&tunings->lock);
    store_choice(&own, "loops", (vyre__settings){.workgroup = 16u << (i % 4)});
    pthread_mutex_unlock(&tunings->lock);
  }
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  close_rig(&r);
}

TEST_MAIN(
    TEST_ENTRY(every_combination_of_settings_gives_the_same_bits),
    TEST_ENTRY(all_variants_tried_have_one_hash),
    TEST_ENTRY(a_workgroup_size_that_matters_stays),
    TEST_ENTRY(a_given_grid_fixes_the_workgroup_size),
    TEST_ENTRY(results_that_differ_are_an_error),
    TEST_ENTRY(a_run_longer_than_the_time_for_tuning_is_stopped),
    TEST_ENTRY(dispatches_that_cannot_be_tuned_are_refused),
    TEST_ENTRY(a_stored_choice_is_used_after_a_restart),
    TEST_ENTRY(lists_of_a_wrong_length_are_not_read),
    TEST_ENTRY(a_choice_is_used_only_where_it_applies),
    TEST_ENTRY(device_buffers_have_the_size_of_their_memory),
    TEST_ENTRY(a_choice_that_does_not_fit_is_not_used),
    TEST_ENTRY(tuning_again_replaces_the_choice_and_forgetting_removes_it),
    TEST_ENTRY(processes_that_store_at_once_keep_the_times_of_all),
    TEST_ENTRY(a_damaged_file_or_another_driver_means_no_choice),
    TEST_ENTRY(threads_dispatch_while_choices_change))
