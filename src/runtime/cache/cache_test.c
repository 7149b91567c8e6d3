/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of cache lookups during a compile, in memory and on disk, and of their
 * reports. */
#include "lir/lir.h"
#include "runtime/cache/cache_testing.h"

static vyre_pipeline *compile(kept_rig *r,
                              const vyre_compile_options *options) {
  vyre_status st = {0};
  vyre_pipeline *pipeline;
  CHECK_OK(vyre_pipeline_compile(r->device, r->program, options, &pipeline,
                                 NULL, &st),
           st);
  return pipeline;
}

static vyre_cache_info info_of(const vyre_pipeline *pipeline) {
  vyre_cache_info info;
  CHECK(vyre_pipeline_get_cache_info(pipeline, &info));
  return info;
}

/* --- memory --------------------------------------------------------------- */

TEST(the_same_program_gives_the_same_pipeline) {
  kept_reset();
  kept_rig r = kept_open("");
  vyre_pipeline *a = compile(&r, NULL), *b = compile(&r, NULL);
  CHECK(a == b);
  CHECK_U64(kept_generates, 1);
  vyre_cache_info info = info_of(a);
  CHECK(info.result == VYRE_CACHE_MEMORY_HIT && info.origin == VYRE_CACHE_OFF);
  CHECK_U64(info.memory_hits, 1);
  vyre_pipeline_release(a);
  kept_check_runs(b);
  vyre_pipeline_release(b);
  kept_close(&r);
}

TEST(a_program_parsed_again_gives_the_same_pipeline) {
  kept_reset();
  kept_rig r = kept_open("");
  vyre_pipeline *a = compile(&r, NULL);
  vyre_module *again;
  r.program = kept_parse(&again, kept_kernel);
  CHECK(r.program != vyre_pipeline_program(a));
  vyre_pipeline *b = compile(&r, NULL);
  CHECK(a == b);
  vyre_pipeline_release(a);
  vyre_pipeline_release(b);
  vyre_module_release(again);
  kept_close(&r);
}

/* Each differs from kept_kernel in one visible detail. */
static const struct {
  const char *what, *text;
} other_programs[] = {
    {"a constant",
     "kernel twice workgroup(64) over(y)\nbuffer y : read_write u32[] @0;\n"
     "{ let i = global_id.x; if (i < len(y)) y[i] = y[i] * 3; }\n"},
    {"the name of a local",
     "kernel twice workgroup(64) over(y)\nbuffer y : read_write u32[] @0;\n"
     "{ let k = global_id.x; if (k < len(y)) y[k] = y[k] * 2; }\n"},
    {"the place in the source",
     "\nkernel twice workgroup(64) over(y)\nbuffer y : read_write u32[] @0;\n"
     "{ let i = global_id.x; if (i < len(y)) y[i] = y[i] * 2; }\n"},
    {"the name of the kernel",
     "kernel Twice workgroup(64) over(y)\nbuffer y : read_write u32[] @0;\n"
     "{ let i = global_id.x; if (i < len(y)) y[i] = y[i] * 2; }\n"},
    {"the workgroup",
     "kernel twice workgroup(32) over(y)\nbuffer y : read_write u32[] @0;\n"
     "{ let i = global_id.x; if (i < len(y)) y[i] = y[i] * 2; }\n"},
};

TEST(another_program_gives_another_pipeline) {
  for (size_t i = 0; i < sizeof other_programs / sizeof other_programs[0];
       i++) {
    kept_reset();
    kept_rig r = kept_open("");
    vyre_pipeline *a = compile(&r, NULL);
    vyre_module *other;
    r.program = kept_parse(&other, other_programs[i].text);
    vyre_pipeline *b = compile(&r, NULL);
    if (a == b) printf("    %s\n", other_programs[i].what);
    CHECK(a != b);
    CHECK_U64(kept_generates, 2);
    vyre_pipeline_release(a);
    vyre_pipeline_release(b);
    vyre_module_release(other);
    kept_close(&r);
  }
}

TEST(other_options_give_another_pipeline) {
  kept_reset();
  kept_rig r = kept_open("");
  const vyre_compile_options wide = {.workgroup = {128}}, own = {{64, 1, 1}, 0},
                             loose = {.ulp_budget = 2};
  vyre_pipeline *a = compile(&r, NULL), *b = compile(&r, &wide),
                *c = compile(&r, &loose), *d = compile(&r, &own);
  CHECK(a != b && a != c && b != c);
  CHECK(a == d); /* the size that the program declares */
  vyre_pipeline_release(a);
  vyre_pipeline_release(b);
  vyre_pipeline_release(c);
  vyre_pipeline_release(d);
  kept_close(&r);
}

TEST(a_released_pipeline_is_found_again) {
  kept_reset();
  kept_rig r = kept_open("");
  for (int i = 0; i < 5; i++) {
    vyre_pipeline *pipeline = compile(&r, NULL);
    kept_check_runs(pipeline);
    vyre_pipeline_release(pipeline);
  }
  CHECK_U64(kept_generates, 1);
  vyre_counters counters;
  vyre_counters_read(r.device, &counters);
  CHECK_U64(counters.cache_memory_hits, 4);
  CHECK_U64(counters.cache_misses, 1);
  CHECK_U64(counters.compiles, 1);
  kept_close(&r);
}

TEST(devices_do_not_share_pipelines) {
  kept_reset();
  kept_rig r = kept_open(""), other = kept_open("");
  vyre_pipeline *a = compile(&r, NULL), *b = compile(&other, NULL);
  CHECK(a != b);
  vyre_pipeline_release(a);
  vyre_pipeline_release(b);
  kept_close(&r);
  kept_close(&other);
}

/* Kernels that differ in a constant. */
static void compile_constant(kept_rig *r, int constant) {
  char text[256];
  vyre_module *module;
  snprintf(text, sizeof text,
           "kernel k workgroup(64) over(y)\nbuffer y : read_write u32[] @0;\n"
           "{ y[global_id.x] = %d; }\n",
           constant);
  vyre_program *kept = r->program;
  r->program = kept_parse(&module, text);
  vyre_pipeline_release(compile(r, NULL));
  vyre_module_release(module);
  r->program = kept;
}

TEST(the_least_recently_used_pipeline_is_evicted_first) {
  kept_reset();
  kept_rig r = kept_open("");
  for (int i = 0; i < VYRE_CACHE_IDLE; i++) compile_constant(&r, i);
  CHECK_U64(kept_generates, VYRE_CACHE_IDLE);
  compile_constant(&r, 0);               /* used again: 1 is the oldest */
  compile_constant(&r, VYRE_CACHE_IDLE); /* replaces it */
  CHECK_U64(kept_generates, VYRE_CACHE_IDLE + 1);
  compile_constant(&r, 0);
  CHECK_U64(kept_generates, VYRE_CACHE_IDLE + 1);
  compile_constant(&r, 1);
  CHECK_U64(kept_generates, VYRE_CACHE_IDLE + 2);
  kept_close(&r);
}

TEST(a_pipeline_in_use_is_always_found) {
  kept_reset();
  kept_rig r = kept_open("");
  vyre_pipeline *used = compile(&r, NULL);
  for (int i = 0; i < 2 * VYRE_CACHE_IDLE; i++) compile_constant(&r, i);
  vyre_pipeline *again = compile(&r, NULL);
  CHECK(used == again);
  vyre_pipeline_release(used);
  vyre_pipeline_release(again);
  kept_close(&r);
}

TEST(idle_pipelines_do_not_retain_the_device) {
  test_heap heap = {.left = -1};
  kept_reset();
  vyre_status st = {0};
  vyre_context *context;
  kept_rig r = {0};
  vyre_context_options options = {.allocator = test_heap_allocator(&heap),
                                  .cache_directory = "",
                                  .trace_file = "",
                                  .faults = ""};
  CHECK_OK(vyre_context_create(&options, &context, &st), st);
  CHECK_OK(
      vyre__device_open_given(context, &kept_backend, 0, NULL, &r.device, &st),
      st);
  vyre_context_release(context);
  r.program = kept_parse(&r.module, kept_kernel);
  vyre_pipeline *a = compile(&r, NULL);
  CHECK_OK(vyre_pipeline_add_variant(
               a, &(vyre_compile_options){.workgroup = {8}}, &st),
           st);
  kept_check_runs(a);
  vyre_pipeline_release(a);
  vyre_device_release(r.device);
  vyre_module_release(r.module);
  CHECK_U64(heap.live_bytes, 0);
}

TEST(a_pipeline_outlives_the_callers_device) {
  kept_reset();
  kept_rig r = kept_open("");
  vyre_pipeline *pipeline = compile(&r, NULL);
  kept_close(&r);
  kept_check_runs(pipeline);
  vyre_pipeline_release(pipeline);
}

/* The caller may destroy its allocator after it has released the program. */
TEST(a_program_with_its_own_allocator_is_not_kept) {
  test_heap heap = {.left = -1};
  kept_reset();
  kept_rig r = kept_open("");
  vyre_status st = {0};
  vyre_module *module;
  CHECK_OK(vyre_module_parse(kept_kernel, strlen(kept_kernel), "kept.vyre",
                             test_heap_allocator(&heap), &module, NULL, &st),
           st);
  r.program = vyre_module_kernel(module, 0);
  vyre_pipeline *a = compile(&r, NULL), *b = compile(&r, NULL);
  CHECK(a == b);
  vyre_pipeline_release(a);
  vyre_pipeline_release(b);
  vyre_module_release(module);
  CHECK_U64(heap.live_bytes, 0);
  kept_close(&r);
}

TEST(variants_are_freed_with_the_last_reference) {
  kept_reset();
  kept_rig r = kept_open("");
  const vyre_compile_options eight = {.workgroup = {8}};
  vyre_status st = {0};
  vyre_pipeline *a = compile(&r, NULL);
  CHECK_OK(vyre_pipeline_add_variant(a, &eight, &st), st);
  vyre_pipeline_release(a);
  a = compile(&r, NULL);
  uint32_t y = 1;
  const vyre_input in = {.data = &y, .size = sizeof y};
  const vyre_output out = {.data = &y, .size = sizeof y};
  const vyre_dispatch_desc desc = {.inputs = &in,
                                   .input_count = 1,
                                   .outputs = &out,
                                   .output_count = 1,
                                   .variant = &eight};
  CHECK_FAILS(vyre_dispatch(a, &desc, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_VARIANT_NOT_COMPILED);
  vyre_pipeline_release(a);
  kept_close(&r);
}

TEST(ref_has_no_disk_cache_and_reports_it) {
  char folder[FOLDER_TEXT];
  folder_make(folder);
  kept_reset();
  vyre_status st = {0};
  kept_rig r = kept_open(folder);
  vyre_device_release(r.device);
  CHECK_OK(vyre_device_open(r.context, "ref", &r.device, &st), st);
  kept_result got = kept_compile_with(&r, NULL);
  CHECK(got.info.result == VYRE_CACHE_OFF && !got.info.is_stored);
  CHECK_TEXT(got.reason, "this backend has no disk cache");
  CHECK_U64(folder_count(folder, NULL), 0);
  kept_close(&r);
  folder_remove(folder);
}

TEST(a_reference_run_does_not_use_the_cache) {
  char folder[FOLDER_TEXT];
  folder_make(folder);
  kept_reset();
  kept_rig r = kept_open(folder);
  vyre_pipeline *pipeline = compile(&r, NULL);
  CHECK_U64(kept_generates, 1);
  uint32_t y = 4;
  const vyre_input in = {.data = &y, .size = sizeof y};
  const vyre_output out = {.data = &y, .size = sizeof y};
  const vyre_compile_options eight = {.workgroup = {8}};
  const vyre_dispatch_desc desc = {.inputs = &in,
                                   .input_count = 1,
                                   .outputs = &out,
                                   .output_count = 1,
                                   .variant = &eight};
  vyre_status st = {0};
  for (int i = 1; i <= 3; i++) {
    CHECK_OK(vyre_device_run_program(r.device, r.program, &desc, &st), st);
    CHECK_U64(kept_generates, 1 + i);
  }
  CHECK_U64(y, 32);
  CHECK_U64(kept_loads, 0);
  CHECK_U64(folder_count(folder, NULL), 1);
  vyre_pipeline_release(pipeline);
  kept_close(&r);
  folder_remove(folder);
}

/* --- disk ----------------------------------------------------------------- */

TEST(a_second_context_loads_what_the_first_compiled) {
  char folder[FOLDER_TEXT];
  folder_make(folder);
  kept_reset();
  kept_result first = kept_compile(folder);
  CHECK(first.info.result == VYRE_CACHE_MISS && first.info.is_stored);
  CHECK_TEXT(first.reason, "no entry for this program");
  CHECK_U64(first.counters.cache_misses, 1);
  CHECK_U64(first.counters.compiles, 1);
  kept_result second = kept_compile(folder);
  CHECK(second.info.result == VYRE_CACHE_DISK_HIT && !second.info.is_stored);
  CHECK_U64(second.counters.cache_disk_hits, 1);
  CHECK_U64(second.counters.cache_misses, 0);
  CHECK_U64(second.counters.compiles, 0);
  CHECK_U64(kept_generates, 1);
  CHECK_U64(kept_loads, 1);
  CHECK_U64(folder_count(folder, NULL), 1);
  folder_remove(folder);
}

TEST(names_and_source_locations_do_not_change_the_key) {
  char folder[FOLDER_TEXT];
  folder_make(folder);
  kept_reset();
  kept_compile(folder);
  for (size_t i = 1; i <= 2; i++) {
    kept_rig r = kept_open_sized(folder, other_programs[i].text, 0);
    kept_result got = kept_compile_with(&r, NULL);
    CHECK(got.info.result == VYRE_CACHE_DISK_HIT);
    kept_close(&r);
  }
  folder_remove(folder);
}

TEST(function_names_do_not_change_the_key) {
  static const char form[] =
      "fn %s(a: u32) -> u32 { return a * 2; }\n"
      "kernel twice workgroup(64) over(y)\nbuffer y : read_write u32[] @0;\n"
      "{ y[global_id.x] = %s(y[global_id.x]); }\n";
  char folder[FOLDER_TEXT], text[512];
  folder_make(folder);
  kept_reset();
  for (int i = 0; i < 2; i++) {
    const char *name = i == 0 ? "doubled" : "times_two";
    snprintf(text, sizeof text, form, name, name);
    kept_rig r = kept_open_sized(folder, text, 0);
    kept_result got = kept_compile_with(&r, NULL);
    CHECK(got.info.result == (i ? VYRE_CACHE_DISK_HIT : VYRE_CACHE_MISS));
    kept_close(&r);
  }
  folder_remove(folder);
}

TEST(variants_are_loaded_from_disk) {
  char folder[FOLDER_TEXT];
  folder_make(folder);
  kept_reset();
  const vyre_compile_options eight = {.workgroup = {8}};
  vyre_status st = {0};
  for (int i = 0; i < 2; i++) {
    kept_rig r = kept_open(folder);
    vyre_pipeline *pipeline = compile(&r, NULL);
    CHECK_OK(vyre_pipeline_add_variant(pipeline, &eight, &st), st);
    vyre_pipeline_release(pipeline);
    kept_close(&r);
  }
  CHECK_U64(kept_generates, 2);
  CHECK_U64(kept_loads, 2);
  folder_remove(folder);
}

TEST(an_entry_that_the_backend_rejects_is_compiled_again) {
  char folder[FOLDER_TEXT];
  folder_make(folder);
  kept_reset();
  kept_compile(folder);
  kept_refuses = true;
  kept_result got = kept_compile(folder);
  CHECK(got.info.result == VYRE_CACHE_MISS && got.info.is_stored);
  CHECK_HAS(got.reason, "rejected the entry: not of this backend");
  CHECK_U64(got.counters.cache_misses, 1);
  CHECK_U64(got.counters.cache_rejected, 0);
  CHECK_U64(kept_generates, 2);
  kept_refuses = false;
  CHECK(kept_compile(folder).info.result == VYRE_CACHE_DISK_HIT);
  folder_remove(folder);
}

TEST(an_empty_artifact_is_not_stored) {
  char folder[FOLDER_TEXT];
  folder_make(folder);
  kept_reset();
  kept_saves_none = true;
  kept_result got = kept_compile(folder);
  CHECK(got.info.result == VYRE_CACHE_MISS && !got.info.is_stored);
  CHECK_HAS(got.not_stored, "nothing to keep");
  CHECK_U64(folder_count(folder, NULL), 0);
  folder_remove(folder);
}

/* --- every field of the key ----------------------------------------------- */

static void change_backend(void) {
  kept_backend.name = "other";
}
static void change_device(void) {
  kept_description = "another device";
}
static void change_driver(void) {
  kept_driver = "driver 2";
}
static void change_features(void) {
  kept_features = "sse avx avx2";
}
static void change_artifact(void) {
  kept_backend.artifact_version = 2;
}
static void change_nothing(void) {}

static const struct {
  const char *field;
  void (*change)(void);
  vyre_compile_options options;
  const char *text; /* NULL: the same kernel */
  const char *wanted, *found;
} changes[] = {
    {"backend", change_backend, {{0}, 0}, NULL, "other", "kept"},
    {"device",
     change_device,
     {{0}, 0},
     NULL,
     "another device",
     "a device of the test"},
    {"driver", change_driver, {{0}, 0}, NULL, "driver 2", "driver 1"},
    {"features", change_features, {{0}, 0}, NULL, "sse avx avx2", "sse avx"},
    {"artifact", change_artifact, {{0}, 0}, NULL, "2", "1"},
    {"workgroup", change_nothing, {{16}, 0}, NULL, "16x1x1", "64x1x1"},
    {"ulp_budget", change_nothing, {{0}, 3}, NULL, "3", "0"},
    {"kernel",
     change_nothing,
     {{0}, 0},
     "kernel Twice workgroup(64) over(y)\nbuffer y : read_write u32[] @0;\n"
     "{ let i = global_id.x; if (i < len(y)) y[i] = y[i] * 2; }\n",
     "Twice",
     "twice"},
};

TEST(a_changed_field_is_a_miss_and_is_named_with_both_values) {
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    char folder[FOLDER_TEXT];
    folder_make(folder);
    kept_reset();
    kept_compile(folder);
    changes[i].change();
    kept_rig r = kept_open_sized(
        folder, changes[i].text ? changes[i].text : kept_kernel, 0);
    kept_result got = kept_compile_with(&r, &changes[i].options);
    CHECK(got.info.result == VYRE_CACHE_MISS && got.info.is_stored);
    CHECK_TEXT(got.field, changes[i].field);
    CHECK_TEXT(got.wanted, changes[i].wanted);
    CHECK_TEXT(got.found, changes[i].found);
    CHECK_HAS(got.reason, changes[i].field);
    CHECK_U64(kept_generates, 2);
    CHECK_U64(folder_count(folder, NULL), 2);
    kept_close(&r);
    folder_remove(folder);
  }
}

/* Versions are constants, so the test checks their fields in the key itself. */
TEST(the_key_has_every_field_once_and_in_order) {
  static const char *const names[] = {
      "vyre",       "backend",  "device",      "driver",    "features",
      "float_mode", "lowering", "artifact",    "workgroup", "ulp_budget",
      "counted",    "kernel",   "fingerprint", "program"};
  enum { COUNT = sizeof names / sizeof names[0] };
  kept_reset();
  kept_rig r = kept_open("");
  vyre_arena arena = {0};
  vyre_status st = {0};
  vyre_cache_explanation e;
  CHECK_OK(vyre_cache_explain(r.device, r.program, NULL, &arena, &e, &st), st);
  CHECK_U64(e.field_count, COUNT);
  for (size_t i = 0; i < COUNT; i++) CHECK_TEXT(e.fields[i].name, names[i]);
  CHECK_TEXT(e.fields[0].text, VYRE_VERSION_STRING);
  CHECK_TEXT(e.fields[4].text, "sse avx");
  CHECK_U64(e.fields[6].size, 16); /* a hash of the sources */
  CHECK_TEXT(e.fields[6].text, vyre__lowering_hash);
  char hash[VYRE_HASH128_TEXT];
  vyre_hash128_text(vyre_program_fingerprint(r.program), hash);
  CHECK_TEXT(e.fields[12].text, hash);
  CHECK(vyre_program_is_binary(e.fields[13].value, e.fields[13].size));
  CHECK_HAS(e.fields[13].text, " bytes, ");
  vyre_arena_deinit(&arena);
  kept_close(&r);
}

TEST(a_field_of_another_version_is_named_too) {
  kept_reset();
  const vyre__cache_key_field ours[] = {
      {"vyre", 4, (const unsigned char *)"2", 1},
      {"speed", 5, (const unsigned char *)"x", 1}};
  const vyre__cache_key_field theirs[] = {
      {"vyre", 4, (const unsigned char *)"2", 1},
      {"old", 3, (const unsigned char *)"y", 1}};
  vyre__cache_key_field a, b;
  vyre_arena arena = {0};
  CHECK_U64(vyre__cache_key_compare(ours, 2, theirs, 2, &a, &b), 2);
  CHECK(a.name_size == 5 && memcmp(a.name, "speed", 5) == 0);
  CHECK_TEXT(vyre__cache_field_text(&arena, &b), "(no such field)");
  CHECK_U64(vyre__cache_key_compare(ours, 1, theirs, 2, &a, &b), 1);
  CHECK(b.name_size == 3 && b.size == 1 && !a.value);
  CHECK_U64(vyre__cache_key_compare(ours, 2, ours, 2, &a, &b), 0);
  vyre_arena_deinit(&arena);
}

TEST(the_nearest_of_several_entries_is_named) {
  char folder[FOLDER_TEXT];
  folder_make(folder);
  kept_reset();
  kept_driver = "driver 0";
  kept_features = "";
  kept_compile(folder);
  kept_reset();
  kept_compile(folder);
  kept_features = "sse";
  kept_result got = kept_compile(folder);
  CHECK_TEXT(got.field, "features"); /* the other differs in two fields */
  CHECK_TEXT(got.found, "sse avx");
  folder_remove(folder);
}

TEST(an_entry_of_another_program_is_never_the_nearest) {
  char folder[FOLDER_TEXT];
  folder_make(folder);
  kept_reset();
  kept_compile(folder);
  kept_rig r = kept_open(folder);
  compile_constant(&r, 7);
  vyre_pipeline *pipeline = compile(&r, NULL);
  CHECK(info_of(pipeline).origin == VYRE_CACHE_DISK_HIT);
  vyre_pipeline_release(pipeline);
  kept_close(&r);
  r = kept_open_sized(folder, other_programs[0].text, 0);
  pipeline = compile(&r, NULL);
  CHECK(info_of(pipeline).origin == VYRE_CACHE_MISS &&
        !info_of(pipeline).field);
  vyre_pipeline_release(pipeline);
  kept_close(&r);
  folder_remove(folder);
}

TEST(explain_finds_a_hit_without_loading_or_writing) {
  char folder[FOLDER_TEXT];
  folder_make(folder);
  kept_reset();
  vyre_arena arena = {0};
  vyre_status st = {0};
  vyre_cache_explanation e;
  kept_rig r = kept_open(folder);
  CHECK_OK(vyre_cache_explain(r.device, r.program, NULL, &arena, &e, &st), st);
  CHECK(e.info.result == VYRE_CACHE_MISS);
  CHECK_U64(folder_count(folder, NULL), 0);
  vyre_pipeline_release(compile(&r, NULL));
  CHECK_OK(vyre_cache_explain(r.device, r.program, NULL, &arena, &e, &st), st);
  CHECK(e.info.result == VYRE_CACHE_DISK_HIT);
  CHECK_U64(kept_loads, 0);
  vyre_counters counters;
  vyre_counters_read(r.device, &counters);
  CHECK_U64(counters.cache_misses, 1);
  CHECK_U64(counters.cache_disk_hits, 0);
  vyre_arena_deinit(&arena);
  kept_close(&r);
  folder_remove(folder);
}

TEST(bad_calls_are_refused) {
  kept_reset();
  kept_rig r = kept_open("");
  vyre_arena arena = {0};
  vyre_status st[7] = {{0}};
  vyre_cache_explanation e;
  vyre_cache_listing l;
  vyre_cache_pruned p;
  vyre_cache_info info;
#define REFUSED(call, n) \
  CHECK_FAILS(call, st[n], VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT)
  REFUSED(vyre_cache_explain(NULL, r.program, NULL, &arena, &e, &st[0]), 0);
  REFUSED(vyre_cache_explain(r.device, NULL, NULL, &arena, &e, &st[1]), 1);
  REFUSED(vyre_cache_explain(r.device, r.program, NULL, NULL, &e, &st[2]), 2);
  REFUSED(vyre_cache_explain(r.device, r.program, NULL, &arena, NULL, &st[3]),
          3);
  REFUSED(vyre_cache_list(r.context, NULL, &l, &st[4]), 4);
  REFUSED(vyre_cache_list(r.context, &arena, NULL, &st[5]), 5);
  REFUSED(vyre_cache_prune(r.context, NULL, NULL, &st[6]), 6);
#undef REFUSED
  test_heap heap = {0};
  vyre_arena none = {.allocator = test_heap_allocator(&heap)};
  vyre_status full = {0};
  CHECK(vyre_cache_explain(r.device, r.program, NULL, &none, &e, &full) ==
        VYRE_OUT_OF_MEMORY);
  CHECK_HAS(full.message, "vyre_cache_explain");
  CHECK(!vyre_pipeline_get_cache_info(NULL, &info) && !info.reason);
  CHECK(vyre_cache_prune(r.context, NULL, &p, NULL) == VYRE_OK);
  CHECK_TEXT(vyre_cache_result_name(VYRE_CACHE_DISK_HIT), "disk_hit");
  CHECK_TEXT(vyre_cache_result_name((vyre_cache_result)99), "?");
  vyre_arena_deinit(&arena);
  kept_close(&r);
}

/* --- faults and threads --------------------------------------------------- */

static char sweep_folder[FOLDER_TEXT];

/* Compiles once with an allocator that fails after @p n calls. */
static vyre_code compile_with_heap(test_heap *heap, vyre_program *program,
                                   vyre_status *st) {
  vyre_context *context;
  vyre_device *device = NULL;
  vyre_pipeline *pipeline = NULL;
  vyre_context_options options = {.allocator = test_heap_allocator(heap),
                                  .cache_directory = sweep_folder,
                                  .trace_file = "",
                                  .faults = ""};
  vyre_code code = vyre_context_create(&options, &context, st);
  if (code == VYRE_OK) {
    code =
        vyre__device_open_given(context, &kept_backend, 0, NULL, &device, st);
  }
  if (code == VYRE_OK) {
    code = vyre_pipeline_compile(device, program, NULL, &pipeline, NULL, st);
  }
  if (code == VYRE_OK) {
    vyre_cache_info info;
    CHECK(vyre_pipeline_get_cache_info(pipeline, &info));
    CHECK(info.reason && info.entry && info.not_stored);
    vyre_arena arena;
    vyre_cache_listing listing;
    vyre_arena_init(&arena, test_heap_allocator(heap));
    code = vyre_cache_list(context, &arena, &listing, st);
    vyre_arena_deinit(&arena);
  }
  vyre_pipeline_release(pipeline);
  vyre_device_release(device);
  vyre_context_release(context);
  return code;
}

/* Without memory, the cache may find nothing, but the compile fails only if its
 * own memory is missing. Starts from an empty and from a full cache. */
TEST(no_allocation_failure_leaks_or_harms) {
  for (int warm = 0; warm < 2; warm++) {
    for (int once = 0; once < 2; once++) {
      long failures = 0, degraded = 0, n = 0;
      for (bool is_over = false; !is_over; n++) {
        folder_make(sweep_folder);
        kept_reset();
        vyre_module *module;
        vyre_program *program = kept_parse(&module, kept_kernel);
        if (warm) kept_compile(sweep_folder);
        test_heap heap = {.left = n, .once = once};
        vyre_status st = {0};
        vyre_code code = compile_with_heap(&heap, program, &st);
        CHECK_U64(heap.live_bytes, 0);
        CHECK(code == VYRE_OK || code == VYRE_OUT_OF_MEMORY);
        CHECK(code == VYRE_OK || (st.message[0] && st.fix[0]));
        is_over = heap.left > 0;
        failures += code != VYRE_OK;
        degraded += code == VYRE_OK && !is_over;
        /* The files that it left are valid. */
        CHECK(kept_compile(sweep_folder).info.is_rejected == false);
        vyre_module_release(module);
        folder_remove(sweep_folder);
      }
      CHECK(failures > 3 && n < 500);
      if (once) CHECK(degraded > 0);
    }
  }
}

TEST(an_injected_fault_fails_a_compile_but_not_a_hit) {
  char folder[FOLDER_TEXT];
  folder_make(folder);
  kept_reset();
  kept_compile(folder);
  kept_rig r = kept_open(folder);
  vyre_status st = {0};
  CHECK_OK(vyre_context_inject_faults(r.context, "compile:1", &st), st);
  vyre_pipeline_release(compile(&r, NULL)); /* a hit compiles nothing */
  const vyre_compile_options other = {.workgroup = {2}};
  vyre_pipeline *none;
  CHECK_FAILS(
      vyre_pipeline_compile(r.device, r.program, &other, &none, NULL, &st), st,
      VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_INJECTED_FAULT);
  CHECK_U64(folder_count(folder, NULL), 1);
  kept_close(&r);
  folder_remove(folder);
}

enum { THREADS = 8, TURNS = 60, KERNELS = 3 };

typedef struct worker {
  kept_rig *rig;
  vyre_program *programs[KERNELS];
  unsigned number;
  bool failed;
} worker;

static void *compile_many(void *self) {
  worker *w = self;
  for (unsigned i = 0; i < TURNS && !w->failed; i++) {
    const vyre_compile_options options = {.workgroup = {i % 7 == 0 ? 32 : 64}};
    vyre_pipeline *pipeline = NULL;
    vyre_program *program = w->programs[(i + w->number) % KERNELS];
    w->failed = vyre_pipeline_compile(w->rig->device, program, &options,
                                      &pipeline, NULL, NULL) != VYRE_OK;
    vyre_cache_info info;
    if (!w->failed && i % 5 == 0) vyre_pipeline_get_cache_info(pipeline, &info);
    if (!w->failed && i % 9 == 0) {
      w->failed = vyre_pipeline_add_variant(
                      pipeline, &(vyre_compile_options){.workgroup = {4}},
                      NULL) != VYRE_OK;
    }
    uint32_t y = 21;
    const vyre_input in = {.data = &y, .size = sizeof y};
    const vyre_output out = {.data = &y, .size = sizeof y};
    const vyre_dispatch_desc desc = {
        .inputs = &in, .input_count = 1, .outputs = &out, .output_count = 1};
    if (!w->failed) {
      w->failed = vyre_dispatch(pipeline, &desc, NULL) != VYRE_OK || y != 42;
    }
    vyre_pipeline_release(pipeline);
  }
  return NULL;
}

TEST(eight_threads_compile_run_and_release) {
  char folder[FOLDER_TEXT];
  folder_make(folder);
  kept_reset();
  kept_rig r = kept_open(folder);
  vyre_module *modules[KERNELS];
  pthread_t threads[THREADS];
  worker workers[THREADS] = {{0}};
  for (int k = 0; k < KERNELS; k++) {
    char text[256];
    snprintf(text, sizeof text,
             "kernel k%d workgroup(64) over(y)\nbuffer y : read_write u32[] "
             "@0;\n{ y[global_id.x] = y[global_id.x] * 2; }\n",
             k);
    for (int t = 0; t < THREADS; t++) {
      if (t == 0) kept_parse(&modules[k], text);
      workers[t].programs[k] = vyre_module_kernel(modules[k], 0);
    }
  }
  for (unsigned t = 0; t < THREADS; t++) {
    workers[t].rig = &r;
    workers[t].number = t;
    CHECK(pthread_create(&threads[t], NULL, compile_many, &workers[t]) == 0);
  }
  bool failed = false;
  for (int t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
    failed = failed || workers[t].failed;
  }
  CHECK(!failed);
  vyre_counters c;
  vyre_counters_read(r.device, &c);
  CHECK_U64(c.cache_rejected, 0);
  CHECK(c.cache_memory_hits > THREADS * TURNS / 2);
  /* For each kernel: two workgroup sizes and one added variant. */
  CHECK_U64(folder_count(folder, NULL), (size_t)3 * KERNELS);
  for (int k = 0; k < KERNELS; k++) vyre_module_release(modules[k]);
  kept_close(&r);
  folder_remove(folder);
}

TEST_MAIN(TEST_ENTRY(the_same_program_gives_the_same_pipeline),
          TEST_ENTRY(a_program_parsed_again_gives_the_same_pipeline),
          TEST_ENTRY(another_program_gives_another_pipeline),
          TEST_ENTRY(other_options_give_another_pipeline),
          TEST_ENTRY(a_released_pipeline_is_found_again),
          TEST_ENTRY(devices_do_not_share_pipelines),
          TEST_ENTRY(the_least_recently_used_pipeline_is_evicted_first),
          TEST_ENTRY(a_pipeline_in_use_is_always_found),
          TEST_ENTRY(idle_pipelines_do_not_retain_the_device),
          TEST_ENTRY(a_pipeline_outlives_the_callers_device),
          TEST_ENTRY(a_program_with_its_own_allocator_is_not_kept),
          TEST_ENTRY(variants_are_freed_with_the_last_reference),
          TEST_ENTRY(ref_has_no_disk_cache_and_reports_it),
          TEST_ENTRY(a_reference_run_does_not_use_the_cache),
          TEST_ENTRY(a_second_context_loads_what_the_first_compiled),
          TEST_ENTRY(names_and_source_locations_do_not_change_the_key),
          TEST_ENTRY(function_names_do_not_change_the_key),
          TEST_ENTRY(variants_are_loaded_from_disk),
          TEST_ENTRY(an_entry_that_the_backend_rejects_is_compiled_again),
          TEST_ENTRY(an_empty_artifact_is_not_stored),
          TEST_ENTRY(a_changed_field_is_a_miss_and_is_named_with_both_values),
          TEST_ENTRY(the_key_has_every_field_once_and_in_order),
          TEST_ENTRY(a_field_of_another_version_is_named_too),
          TEST_ENTRY(the_nearest_of_several_entries_is_named),
          TEST_ENTRY(an_entry_of_another_program_is_never_the_nearest),
          TEST_ENTRY(explain_finds_a_hit_without_loading_or_writing),
          TEST_ENTRY(bad_calls_are_refused),
          TEST_ENTRY(no_allocation_failure_leaks_or_harms),
          TEST_ENTRY(an_injected_fault_fails_a_compile_but_not_a_hit),
          TEST_ENTRY(eight_threads_compile_run_and_release))
