/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Object files on disk: a process that finds one needs no LLVM, and a damaged
 * one is never run. */
/* usleep */
#define _DEFAULT_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include "runtime/cache/cache_testing.h"

static char folder[FOLDER_TEXT];

/* A device of its own, as in another process: only files are shared. */
static kept_rig cpu_open(const vyre_context_options *more, const char *text) {
  kept_rig r = {0};
  vyre_status st = {0};
  vyre_context_options options = *more;
  options.cache_directory = folder;
  options.trace_file = options.faults = "";
  CHECK_OK(vyre_context_create(&options, &r.context, &st), st);
  CHECK_OK(vyre_device_open(r.context, "cpu", &r.device, &st), st);
  r.program = kept_parse(&r.module, text);
  return r;
}

/* The cache stores optimised code. */
static const vyre_compile_options optimised = {.tier = VYRE_TIER_OPTIMISED};

static kept_result cpu_compile(const vyre_context_options *more) {
  kept_rig r = cpu_open(more, kept_kernel);
  kept_result result = kept_compile_with(&r, &optimised);
  kept_close(&r);
  return result;
}

static bool has_llvm(void) {
  FILE *maps = fopen("/proc/self/maps", "r");
  CHECK(maps != NULL);
  char line[512];
  bool found = false;
  while (fgets(line, sizeof line, maps)) found |= strstr(line, "LLVM") != NULL;
  (void)fclose(maps);
  return found;
}

static void compile_first(void) {
  kept_result made = cpu_compile(&(vyre_context_options){0});
  CHECK(made.info.origin == VYRE_CACHE_MISS && made.info.is_stored);
  CHECK(has_llvm());
}

static void compile_again(void) {
  kept_result made =
      cpu_compile(&(vyre_context_options){.backend_options = "cpu.llvm=none"});
  CHECK(made.info.origin == VYRE_CACHE_DISK_HIT);
  CHECK(!has_llvm());
}

/* Must be the first case: no LLVM is loaded in this process or its children. */
TEST(a_process_that_finds_an_object_never_has_llvm_in_it) {
  CHECK(!has_llvm());
  folder_make(folder);
  CHECK_U64(in_process(compile_first, false), 0);
  CHECK_U64(in_process(compile_again, false), 0);
  folder_remove(folder);
  CHECK(!has_llvm());
}

/* The cache directory agrees with has_disk_cache. */
TEST(only_devices_with_a_disk_cache_have_files) {
  static const struct {
    const char *device;
    bool has_disk_cache;
  } cases[] = {{"cpu", true}, {"ref", false}, {"null", false}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    folder_make(folder);
    vyre_status st = {0};
    kept_rig r = cpu_open(&(vyre_context_options){0}, kept_kernel);
    vyre_device_release(r.device);
    CHECK_OK(vyre_device_open(r.context, cases[i].device, &r.device, &st), st);
    vyre_pipeline *pipeline;
    vyre_cache_info info;
    CHECK_OK(vyre_pipeline_compile(r.device, r.program, &optimised, &pipeline,
                                   NULL, &st),
             st);
    CHECK(vyre_pipeline_get_cache_info(pipeline, &info));
    CHECK(vyre_device_get_caps(r.device)->has_disk_cache ==
          cases[i].has_disk_cache);
    CHECK(info.is_stored == cases[i].has_disk_cache);
    CHECK_U64(folder_count(folder, NULL), cases[i].has_disk_cache);
    vyre_pipeline_release(pipeline);
    kept_close(&r);
    folder_remove(folder);
  }
}

TEST(another_width_is_another_object) {
  folder_make(folder);
  static const char *const widths[] = {"cpu.width=0", "cpu.width=1",
                                       "cpu.width=4", "cpu.width=16"};
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 4; i++) {
      kept_result made =
          cpu_compile(&(vyre_context_options){.backend_options = widths[i]});
      CHECK(made.info.origin ==
            (round == 0 ? VYRE_CACHE_MISS : VYRE_CACHE_DISK_HIT));
      if (round == 0 && i > 0) CHECK_TEXT(made.field, "features");
    }
  }
  folder_remove(folder);
}

static void flip(const char *path, long at, int bit) {
  FILE *file = fopen(path, "r+b");
  CHECK(file && fseek(file, at, SEEK_SET) == 0);
  int byte = fgetc(file);
  CHECK(byte != EOF && fseek(file, at, SEEK_SET) == 0);
  CHECK(fputc(byte ^ 1 << bit, file) != EOF);
  CHECK(fclose(file) == 0);
}

static long size_of(const char *path) {
  struct stat about;
  CHECK(stat(path, &about) == 0);
  return (long)about.st_size;
}

/* A flipped bit in the header, key, plan or object makes the entry a miss. The
 * kernel is compiled, runs, and is stored again. */
TEST(a_flipped_bit_of_an_entry_is_a_miss_and_never_run) {
  enum { FLIPS = 40 };
  char path[PATH_TEXT];
  folder_make(folder);
  (void)cpu_compile(&(vyre_context_options){0});
  CHECK_U64(folder_count(folder, path), 1);
  long size = size_of(path);
  for (int i = 0; i < FLIPS; i++) {
    long at = i < 8 ? (long)i * 8 : (size - 1) * i / (FLIPS - 1);
    flip(path, at, i % 8);
    kept_result made = cpu_compile(&(vyre_context_options){0});
    CHECK(made.info.origin == VYRE_CACHE_MISS && made.info.is_rejected);
    CHECK(made.info.is_stored);
    CHECK_U64(size_of(path), size);
    made = cpu_compile(
        &(vyre_context_options){.backend_options = "cpu.llvm=none"});
    CHECK(made.info.origin == VYRE_CACHE_DISK_HIT);
  }
  folder_remove(folder);
}

TEST(an_entry_that_is_cut_short_is_a_miss) {
  char path[PATH_TEXT];
  folder_make(folder);
  (void)cpu_compile(&(vyre_context_options){0});
  CHECK_U64(folder_count(folder, path), 1);
  long size = size_of(path);
  for (int i = 0; i < 8; i++) {
    CHECK(truncate(path, size * i / 8) == 0);
    kept_result made = cpu_compile(&(vyre_context_options){0});
    CHECK(made.info.origin == VYRE_CACHE_MISS && made.info.is_stored);
    CHECK_U64(size_of(path), size);
  }
  folder_remove(folder);
}

/* Steps, loop bounds and the spill buffer are restored with the object. */
TEST(a_kernel_with_grid_barriers_is_restored) {
  static const char text[] =
      "kernel k workgroup(4) over(y)\nbuffer y : read_write u32[] @0;\n"
      "{\n    let i = global_id.x;\n"
      "    for (let k = 0u; k < len(y) - 5; k++) {\n"
      "        let next = y[(i + 1) % len(y)];\n        grid_barrier();\n"
      "        y[i] = next + k;\n        grid_barrier();\n    }\n}\n";
  enum { COUNT = 8 };
  folder_make(folder);
  for (int round = 0; round < 2; round++) {
    kept_rig r =
        cpu_open(&(vyre_context_options){.backend_options =
                                             round ? "cpu.llvm=none" : NULL},
                 text);
    vyre_status st = {0};
    vyre_pipeline *pipeline;
    CHECK_OK(vyre_pipeline_compile(r.device, r.program, &optimised, &pipeline,
                                   NULL, &st),
             st);
    uint32_t y[COUNT], want[COUNT], next[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) y[i] = want[i] = i * i;
    for (uint32_t k = 0; k < COUNT - 5; k++) {
      for (uint32_t i = 0; i < COUNT; i++) next[i] = want[(i + 1) % COUNT] + k;
      memcpy(want, next, sizeof want);
    }
    vyre_input in[] = {vyre_input_bytes(y, sizeof y)};
    vyre_output out[] = {vyre_output_bytes(y, sizeof y)};
    vyre_dispatch_desc desc = {
        .inputs = in, .input_count = 1, .outputs = out, .output_count = 1};
    CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
    CHECK(memcmp(y, want, sizeof y) == 0);
    vyre_pipeline_release(pipeline);
    kept_close(&r);
  }
  folder_remove(folder);
}

/* The baseline code runs at once; the optimised code follows, is stored, and
 * runs. */
TEST(optimised_code_replaces_baseline_code) {
  folder_make(folder);
  kept_rig r = cpu_open(&(vyre_context_options){0}, kept_kernel);
  vyre_status st = {0};
  vyre_pipeline *pipeline;
  vyre_compile_options options = {.tier = VYRE_TIER_AUTO};
  CHECK_OK(vyre_pipeline_compile(r.device, r.program, &options, &pipeline, NULL,
                                 &st),
           st);
  vyre_cache_info info;
  CHECK(vyre_pipeline_get_cache_info(pipeline, &info) && !info.is_stored);
  char name[PATH_TEXT] = "";
  for (int i = 0; i < 3000 && !strstr(name, ".vyrecache"); i++) {
    kept_check_runs(pipeline);
    usleep(10000);
    (void)folder_count(folder, name);
  }
  CHECK_HAS(name, ".vyrecache");
  kept_check_runs(pipeline);
  vyre_pipeline_release(pipeline);
  kept_close(&r);
  kept_result made =
      cpu_compile(&(vyre_context_options){.backend_options = "cpu.llvm=none"});
  CHECK(made.info.origin == VYRE_CACHE_DISK_HIT);
  folder_remove(folder);
}

TEST(programs_compile_at_the_same_time) {
  enum { PROGRAMS = 12 };
  folder_make(folder);
  kept_rig r = cpu_open(&(vyre_context_options){0}, kept_kernel);
  vyre_fence *fences[PROGRAMS];
  vyre_module *modules[PROGRAMS];
  vyre_status st = {0};
  for (int i = 0; i < PROGRAMS; i++) {
    char text[256];
    (void)snprintf(text, sizeof text,
                   "kernel k%d workgroup(64) over(y)\n"
                   "buffer y : read_write u32[] @0;\n"
                   "{ let i = global_id.x; if (i < len(y)) y[i] = y[i] * 2 + "
                   "%du; }\n",
                   i, i);
    vyre_program *program = kept_parse(&modules[i], text);
    CHECK_OK(
        vyre_pipeline_compile_async(r.device, program, NULL, &fences[i], &st),
        st);
  }
  for (int i = 0; i < PROGRAMS; i++) {
    CHECK_OK(vyre_fence_wait(fences[i], VYRE_WAIT_FOREVER, &st), st);
    vyre_pipeline *pipeline = vyre_fence_pipeline(fences[i]);
    uint32_t y[2] = {5, 7};
    vyre_input in[] = {vyre_input_bytes(y, sizeof y)};
    vyre_output out[] = {vyre_output_bytes(y, sizeof y)};
    vyre_dispatch_desc desc = {
        .inputs = in, .input_count = 1, .outputs = out, .output_count = 1};
    CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
    CHECK(y[0] == 10u + (uint32_t)i && y[1] == 14u + (uint32_t)i);
    vyre_pipeline_release(pipeline);
    vyre_fence_release(fences[i]);
    vyre_module_release(modules[i]);
  }
  kept_close(&r);
  folder_remove(folder);
}

TEST_MAIN(TEST_ENTRY(a_process_that_finds_an_object_never_has_llvm_in_it),
          TEST_ENTRY(only_devices_with_a_disk_cache_have_files),
          TEST_ENTRY(another_width_is_another_object),
          TEST_ENTRY(a_flipped_bit_of_an_entry_is_a_miss_and_never_run),
          TEST_ENTRY(an_entry_that_is_cut_short_is_a_miss),
          TEST_ENTRY(a_kernel_with_grid_barriers_is_restored),
          TEST_ENTRY(optimised_code_replaces_baseline_code),
          TEST_ENTRY(programs_compile_at_the_same_time))
