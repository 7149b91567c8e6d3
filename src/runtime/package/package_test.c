/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Packages: contents, choice of code, refusals, damage. */
#include "runtime/package/package.h"

#include <unistd.h>

#include "base/status.h"
#include "runtime/package/package_testing.h"

static const char text[] =
    "kernel scale workgroup(8) over(y)\n"
    "buffer x : read f32[] @0; buffer y : write f32[] @1; uniform a : f32 @2;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = x[i] * a + f32(i); }\n"
    "kernel count workgroup(8) over(n)\n"
    "buffer n : read_write u32[] @0;\n"
    "{ let i = global_id.x; var s = 0u;\n"
    "  for (let k = 0u; k < 100u; k++) s += k & i;\n"
    "  if (i < len(n)) n[i] += s; }\n";

/* --- fixtures ------------------------------------------------------------- */

typedef struct rig {
  vyre_module *module;
  vyre_program *programs[2];
  growing_text bytes;
  vyre_package *package;
  vyre_context *context;
  vyre_device *device;
} rig;

/* Writes a package of both kernels, and opens it with a device. */
static void begin(rig *r, const vyre_package_options *options,
                  const char *backend_options) {
  vyre_status st = {0};
  *r = (rig){.module = parse_module(text)};
  for (size_t i = 0; i < 2; i++) {
    r->programs[i] = vyre_module_kernel(r->module, i);
  }
  r->bytes = write_package(r->programs, 2, options);
  r->package = open_bytes(&r->bytes);
  CHECK_OK(open_with("cpu", backend_options, &r->context, &r->device, &st), st);
}

static void end(rig *r) {
  vyre_package_release(r->package);
  vyre_device_release(r->device);
  vyre_context_release(r->context);
  vyre_module_release(r->module);
  free(r->bytes.bytes);
}

/* Runs "scale", and checks the result. */
static void check_scale(vyre_pipeline *pipeline) {
  float x[20], y[20] = {0}, a = 2;
  vyre_status st = {0};
  for (int i = 0; i < 20; i++) x[i] = (float)i;
  const vyre_input in[] = {vyre_input_bytes(x, sizeof x),
                           vyre_input_bytes(&a, sizeof a)};
  vyre_output out[] = {vyre_output_bytes(y, sizeof y)};
  const vyre_dispatch_desc desc = {
      .inputs = in, .input_count = 2, .outputs = out, .output_count = 1};
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
  for (int i = 0; i < 20; i++) CHECK(y[i] == (float)(3 * i));
}

static const vyre_package_options cpu_only = {.targets = "cpu"};

/* --- contents ------------------------------------------------------------- */

TEST(targets_are_listed_by_backend) {
  const char *backend, *name;
  size_t count = 0, cpu = 0;
  while ((name = vyre_package_target_at(count, &backend)) != NULL) {
    cpu += strcmp(backend, "cpu") == 0;
    CHECK(name[0] != '\0');
    count++;
  }
  CHECK(backend == NULL);
  CHECK_U64(cpu, 3);
}

TEST(a_package_lists_kernels_and_codes) {
  rig r;
  begin(&r, &cpu_only, "");
  static const char *const names[] = {"scale", "count"};
  static const char *const targets[] = {"x86-64-v4", "x86-64-v3", "x86-64-v2"};
  CHECK_U64(vyre_package_kernel_count(r.package), 2);
  for (size_t i = 0; i < 2; i++) {
    vyre_package_kernel kernel;
    CHECK(vyre_package_get_kernel(r.package, i, &kernel));
    CHECK_TEXT(kernel.name, names[i]);
    CHECK_U64(kernel.code_count, 3);
    vyre_hash128 hash = vyre_program_fingerprint(r.programs[i]);
    CHECK_U64(kernel.fingerprint.low, hash.low);
    CHECK_U64(kernel.fingerprint.high, hash.high);
    for (size_t k = 0; k < 3; k++) {
      vyre_package_code code;
      CHECK(vyre_package_get_code(r.package, i, k, &code));
      CHECK_TEXT(code.backend, "cpu");
      CHECK_TEXT(code.target, targets[k]);
      CHECK_U64(code.workgroup[0], 8);
      CHECK_U64(code.workgroup[1], 1);
      CHECK(code.bytes > 0);
    }
    vyre_package_code code;
    CHECK(!vyre_package_get_code(r.package, i, 3, &code));
    CHECK(code.backend == NULL);
  }
  vyre_package_kernel kernel;
  CHECK(!vyre_package_get_kernel(r.package, 2, &kernel));
  CHECK(kernel.name == NULL);
  end(&r);
}

TEST(equal_programs_give_equal_packages) {
  rig r;
  begin(&r, NULL, "");
  growing_text again = write_package(r.programs, 2, NULL);
  CHECK_U64(again.length, r.bytes.length);
  CHECK(memcmp(again.bytes, r.bytes.bytes, again.length) == 0);
  free(again.bytes);
  end(&r);
}

TEST(programs_come_back) {
  rig r;
  begin(&r, &cpu_only, "");
  vyre_status st = {0};
  vyre_program *program;
  CHECK_OK(vyre_package_read_program(r.package, "count", &program, &st), st);
  CHECK_U64(vyre_program_fingerprint(program).low,
            vyre_program_fingerprint(r.programs[1]).low);
  vyre_program_release(program);
  CHECK_FAILS(vyre_package_read_program(r.package, "other", &program, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_HAS(st.message, "no kernel 'other'");
  CHECK_FAILS(vyre_package_read_program(r.package, NULL, &program, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_U64(status_number(&st, "kernels"), 2);
  end(&r);
}

/* --- loading -------------------------------------------------------------- */

TEST(a_pipeline_runs_without_a_compile) {
  rig r;
  begin(&r, &cpu_only, "");
  vyre_status st = {0};
  vyre_pipeline *pipeline;
  vyre_cache_info info;
  vyre_counters counters;
  CHECK_OK(
      vyre_pipeline_load(r.device, r.package, "scale", NULL, &pipeline, &st),
      st);
  vyre_package_release(r.package); /* the pipeline retains what it needs */
  r.package = NULL;
  check_scale(pipeline);
  CHECK(vyre_pipeline_get_cache_info(pipeline, &info));
  CHECK_HAS(info.reason, "package");
  vyre_counters_read(r.device, &counters);
  CHECK_U64(counters.compiles, 0);
  text_buffer printed = {.length = 0};
  CHECK_FAILS(vyre_pipeline_print(pipeline, "asm", text_writer(&printed), &st),
              st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
  vyre_pipeline_release(pipeline);
  end(&r);
}

TEST(unaligned_bytes_work) {
  rig r;
  begin(&r, &cpu_only, "");
  vyre_status st = {0};
  for (size_t shift = 1; shift < 16; shift += 7) {
    char *moved = malloc(r.bytes.length + 32);
    CHECK(moved);
    char *at = moved + 16 - (uintptr_t)moved % 16 + shift;
    memcpy(at, r.bytes.bytes, r.bytes.length);
    vyre_package *package;
    vyre_pipeline *pipeline;
    CHECK_OK(vyre_package_open(at, r.bytes.length, vyre_allocator_heap(),
                               &package, &st),
             st);
    CHECK_OK(
        vyre_pipeline_load(r.device, package, "scale", NULL, &pipeline, &st),
        st);
    check_scale(pipeline);
    vyre_pipeline_release(pipeline);
    vyre_package_release(package);
    free(moved);
  }
  end(&r);
}

TEST(the_interpreter_runs_the_program) {
  rig r;
  begin(&r, &cpu_only, "");
  vyre_status st = {0};
  vyre_device *ref;
  vyre_pipeline *pipeline;
  CHECK_OK(vyre_device_open(r.context, "ref", &ref, &st), st);
  CHECK_OK(vyre_pipeline_load(ref, r.package, "scale", NULL, &pipeline, &st),
           st);
  check_scale(pipeline);
  vyre_pipeline_release(pipeline);
  vyre_device_release(ref);
  end(&r);
}

/* Loads "scale" for a processor, and checks the width of the loaded code. */
static void check_level(const rig *r, const char *isa, uint32_t max_width) {
  vyre_status st = {0};
  vyre_context *context;
  vyre_device *device;
  vyre_pipeline *pipeline;
  vyre_pipeline_resources resources;
  CHECK_OK(open_with("cpu", isa, &context, &device, &st), st);
  CHECK_OK(
      vyre_pipeline_load(device, r->package, "scale", NULL, &pipeline, &st),
      st);
  CHECK(vyre_pipeline_get_resources(pipeline, &resources));
  CHECK(resources.width <= max_width);
  check_scale(pipeline);
  vyre_pipeline_release(pipeline);
  vyre_device_release(device);
  vyre_context_release(context);
}

TEST(every_level_falls_back_to_the_one_below) {
  rig r;
  begin(&r, &cpu_only, "");
  check_level(&r, "cpu.isa_level=all", 32);
  check_level(&r, "cpu.isa_level=avx2", 32);
  check_level(&r, "cpu.isa_level=avx", 32);
  check_level(&r, "cpu.isa_level=sse4.2", 32);
  end(&r);
}

TEST(a_missing_level_is_refused) {
  const vyre_package_options only_v3 = {.targets = "x86-64-v3"};
  rig r;
  begin(&r, &only_v3, "cpu.isa_level=sse4.2");
  vyre_status st = {0};
  vyre_pipeline *pipeline;
  CHECK_FAILS(
      vyre_pipeline_load(r.device, r.package, "scale", NULL, &pipeline, &st),
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
  CHECK(pipeline == NULL);
  CHECK_HAS(st.message, "'x86-64-v3' needs avx");
  CHECK_HAS(st.fix, "may_compile");
  /* The fix works. */
  const vyre_load_options compiles = {.may_compile = true};
  CHECK_OK(vyre_pipeline_load(r.device, r.package, "scale", &compiles,
                              &pipeline, &st),
           st);
  check_scale(pipeline);
  vyre_pipeline_release(pipeline);
  end(&r);
}

TEST(a_missing_backend_is_refused) {
  const char *backend = NULL, *target = NULL;
  for (size_t i = 0; (target = vyre_package_target_at(i, &backend)); i++) {
    if (strcmp(backend, "cpu") != 0) break;
  }
  if (!target) return; /* built without Vulkan */
  const vyre_package_options other = {.targets = target};
  rig r;
  begin(&r, &other, "");
  vyre_status st = {0};
  vyre_pipeline *pipeline;
  CHECK_FAILS(
      vyre_pipeline_load(r.device, r.package, "scale", NULL, &pipeline, &st),
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
  CHECK_HAS(st.message, "for device 'cpu'");
  end(&r);
}

/* Recomputes the checksum of the index after a change. */
static void sign_again(growing_text *bytes) {
  unsigned char *head = (unsigned char *)bytes->bytes;
  vyre__package_sum_index(head, (size_t)vyre__get_u64(head + VYRE__HEAD_DATA),
                          head + VYRE__PACKAGE_CHECKSUM_AT);
}

TEST(code_of_another_version_is_refused) {
  rig r;
  begin(&r, &cpu_only, "");
  vyre_status st = {0};
  vyre_pipeline *pipeline;
  for (uint32_t i = 0; i < 3; i++) {
    unsigned char *record =
        (unsigned char *)vyre__package_code_at(r.package, 0, i);
    vyre__put_u32(record + VYRE__CODE_VERSION, 3);
  }
  sign_again(&r.bytes);
  CHECK_FAILS(
      vyre_pipeline_load(r.device, r.package, "scale", NULL, &pipeline, &st),
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
  CHECK_HAS(st.message, "code version 3");
  CHECK_OK(
      vyre_pipeline_load(r.device, r.package, "count", NULL, &pipeline, &st),
      st);
  vyre_pipeline_release(pipeline);
  end(&r);
}

TEST(code_of_another_program_is_refused) {
  rig r;
  begin(&r, &cpu_only, "");
  vyre_status st = {0};
  vyre_pipeline *pipeline;
  for (uint32_t i = 0; i < 3; i++) {
    memcpy((unsigned char *)vyre__package_code_at(r.package, 0, i),
           vyre__package_code_at(r.package, 1, i), VYRE__PACKAGE_CODE);
  }
  sign_again(&r.bytes);
  CHECK_FAILS(
      vyre_pipeline_load(r.device, r.package, "scale", NULL, &pipeline, &st),
      st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE);
  CHECK(pipeline == NULL);
  end(&r);
}

/* --- variants ------------------------------------------------------------- */

TEST(variants_come_from_the_package) {
  const vyre_compile_options variants[] = {
      {.workgroup = {16}}, {.ulp_budget = 2}, {.counts_iterations = true}};
  const vyre_package_options with = {
      .targets = "cpu", .variants = variants, .variant_count = 3};
  rig r;
  begin(&r, &with, "");
  vyre_status st = {0};
  vyre_pipeline *pipeline;
  vyre_counters counters;
  CHECK_OK(
      vyre_pipeline_load(r.device, r.package, "scale", NULL, &pipeline, &st),
      st);
  CHECK_OK(vyre_pipeline_add_variant(pipeline, &variants[0], &st), st);
  CHECK_OK(vyre_pipeline_add_variant(pipeline, &variants[1], &st), st);
  vyre_pipeline_release(pipeline);
  const vyre_load_options counted = {.compile = variants[2]};
  CHECK_OK(vyre_pipeline_load(r.device, r.package, "count", &counted, &pipeline,
                              &st),
           st);
  uint32_t n[8] = {0};
  const vyre_input in[] = {vyre_input_bytes(n, sizeof n)};
  vyre_output out[] = {vyre_output_bytes(n, sizeof n)};
  const vyre_dispatch_desc desc = {.inputs = in,
                                   .input_count = 1,
                                   .outputs = out,
                                   .output_count = 1,
                                   .max_loop_iterations = 50};
  CHECK_FAILS(vyre_dispatch(pipeline, &desc, &st), st, VYRE_DISPATCH_FAILED,
              VYRE_KIND_OUT_OF_FUEL);
  vyre_pipeline_release(pipeline);
  vyre_counters_read(r.device, &counters);
  CHECK_U64(counters.compiles, 0);
  end(&r);
}

TEST(a_variant_that_is_missing_is_refused) {
  rig r;
  begin(&r, &cpu_only, "");
  vyre_status st = {0};
  vyre_pipeline *pipeline;
  const vyre_compile_options wide = {.workgroup = {16}};
  CHECK_OK(
      vyre_pipeline_load(r.device, r.package, "scale", NULL, &pipeline, &st),
      st);
  CHECK_FAILS(vyre_pipeline_add_variant(pipeline, &wide, &st), st,
              VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
  CHECK_HAS(st.message, "16 x 1 x 1");
  vyre_pipeline_release(pipeline);
  const vyre_load_options compiles = {.may_compile = true};
  CHECK_OK(vyre_pipeline_load(r.device, r.package, "scale", &compiles,
                              &pipeline, &st),
           st);
  CHECK_OK(vyre_pipeline_add_variant(pipeline, &wide, &st), st);
  vyre_pipeline_release(pipeline);
  end(&r);
}

/* --- writing -------------------------------------------------------------- */

TEST(bad_requests_are_refused) {
  rig r;
  begin(&r, &cpu_only, "");
  vyre_status st = {0};
  growing_text sink = {0};
  const vyre_writer writer = {growing_append, &sink};
  const vyre_package_options unknown = {.targets = "cpu,x86-64-v9"};
  CHECK_FAILS(
      vyre_package_write(r.context, r.programs, 2, &unknown, writer, &st), st,
      VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_HAS(st.message, "'x86-64-v9'");
  CHECK_HAS(st.message, "x86-64-v3");
  vyre_program *twice[] = {r.programs[0], r.programs[0]};
  CHECK_FAILS(vyre_package_write(r.context, twice, 2, &cpu_only, writer, &st),
              st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_HAS(st.message, "'scale'");
  const vyre_compile_options large = {.workgroup = {64, 64}};
  const vyre_package_options too_large = {.variants = &large,
                                          .variant_count = 1};
  CHECK_FAILS(
      vyre_package_write(r.context, r.programs, 1, &too_large, writer, &st), st,
      VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_U64(sink.length, 0);
  end(&r);
}

TEST(a_kernel_that_no_target_supports_is_refused) {
  vyre_module *module = parse_module(
      "kernel say workgroup(4) buffer a : read_write u32[] @0; "
      "{ if (global_id.x < len(a)) print(\"x\", a[global_id.x]); }");
  vyre_program *program = vyre_module_kernel(module, 0);
  growing_text sink = {0};
  vyre_status st = {0};
  CHECK_FAILS(vyre_package_write(NULL, &program, 1, NULL,
                                 (vyre_writer){growing_append, &sink}, &st),
              st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
  CHECK(st.fix[0] != '\0');
  vyre_module_release(module);
}

TEST(a_queue_kernel_is_refused) {
  vyre_module *module = parse_module(
      "kernel fill workgroup(4) buffer a : write u32[4] @0; "
      "{ a[global_id.x] = 1; }\n"
      "kernel visit queue(u32) buffer a : read_write u32[] @0; "
      "{ if (item < len(a)) a[item] = 1; }");
  vyre_program *programs[] = {vyre_module_kernel(module, 0),
                              vyre_module_kernel(module, 1)};
  growing_text sink = {0};
  vyre_status st = {0};
  CHECK_FAILS(vyre_package_write(NULL, programs, 2, NULL,
                                 (vyre_writer){growing_append, &sink}, &st),
              st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
  CHECK_HAS(st.message, "'visit' is a queue kernel");
  CHECK_U64(sink.length, 0);
  vyre_module_release(module);
}

/* --- damage --------------------------------------------------------------- */

/* Opens damaged bytes and loads both kernels. Returns the number of calls that
 * failed; each of them must have a message and a fix. */
static unsigned count_refusals(const rig *r, const char *bytes, size_t size) {
  static const char *const names[] = {"scale", "count"};
  vyre_status st = {0};
  vyre_package *package;
  unsigned refused = 0;
  if (vyre_package_open(bytes, size, vyre_allocator_heap(), &package, &st) !=
      VYRE_OK) {
    CHECK(st.message[0] && st.fix[0] && !package);
    return 1;
  }
  for (size_t i = 0; i < 2; i++) {
    vyre_pipeline *pipeline;
    if (vyre_pipeline_load(r->device, package, names[i], NULL, &pipeline,
                           &st) != VYRE_OK) {
      CHECK(st.message[0] && st.fix[0] && !pipeline);
      refused++;
    }
    vyre_pipeline_release(pipeline);
  }
  vyre_package_release(package);
  return refused;
}

/* Returns true if byte @p at belongs to the index, to a program, or to the code
 * that the device loads. Gaps and other targets do not matter. */
static bool is_used(const rig *r, size_t at) {
  if (at < vyre__get_u64(r->package->bytes + VYRE__HEAD_DATA)) return true;
  for (uint32_t i = 0; i < 2; i++) {
    const unsigned char *kernel = vyre__package_kernel_at(r->package, i);
    uint64_t begin_at = vyre__get_u64(kernel + VYRE__KERNEL_AT);
    uint64_t size = vyre__get_u64(kernel + VYRE__KERNEL_SIZE);
    if (at >= begin_at && at - begin_at < size) return true;
    const unsigned char *code = vyre__package_code_at(r->package, i, 0);
    begin_at = vyre__get_u64(code + VYRE__CODE_AT);
    size = vyre__get_u64(code + VYRE__CODE_SIZE);
    if (at >= begin_at && at - begin_at < size) return true;
  }
  return false;
}

TEST(a_change_of_any_byte_is_found) {
  const vyre_package_options one = {.targets = "x86-64-v2"};
  rig r;
  begin(&r, &one, "");
  size_t used = 0;
  for (size_t at = 0; at < r.bytes.length; at++) {
    if (!is_used(&r, at)) continue;
    r.bytes.bytes[at] ^= 0x10;
    CHECK(count_refusals(&r, r.bytes.bytes, r.bytes.length) > 0);
    r.bytes.bytes[at] ^= 0x10;
    used++;
  }
  CHECK(used > 2000);
  CHECK_U64(count_refusals(&r, r.bytes.bytes, r.bytes.length), 0);
  end(&r);
}

TEST(truncation_is_found) {
  rig r;
  begin(&r, &cpu_only, "");
  vyre_package *package;
  vyre_status st = {0};
  for (size_t size = 0; size < r.bytes.length; size += 1 + size / 16) {
    CHECK_FAILS(vyre_package_open(r.bytes.bytes, size, vyre_allocator_heap(),
                                  &package, &st),
                st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
    CHECK(package == NULL);
  }
  end(&r);
}

TEST(other_formats_are_refused) {
  rig r;
  begin(&r, &cpu_only, "");
  vyre_package *package;
  vyre_status st = {0};
  unsigned char *head = (unsigned char *)r.bytes.bytes;
  CHECK(vyre_package_is_package(head, r.bytes.length));
  CHECK(!vyre_package_is_package(head, 7));
  CHECK(!vyre_package_is_package(NULL, 0));
  vyre__put_u32(head + VYRE__HEAD_VERSION, VYRE__PACKAGE_VERSION + 1);
  sign_again(&r.bytes);
  CHECK_FAILS(vyre_package_open(head, r.bytes.length, vyre_allocator_heap(),
                                &package, &st),
              st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_U64(status_number(&st, "version"), VYRE__PACKAGE_VERSION + 1);
  CHECK_U64(status_number(&st, "supported_version"), VYRE__PACKAGE_VERSION);
  CHECK_FAILS(vyre_package_open(text, sizeof text, vyre_allocator_heap(),
                                &package, &st),
              st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_HAS(st.message, "not a package");
  end(&r);
}

/* --- files and memory ----------------------------------------------------- */

TEST(files_are_read) {
  rig r;
  begin(&r, &cpu_only, "");
  char path[] = "/tmp/vyre-package-XXXXXX";
  vyre_status st = {0};
  vyre_package *package;
  vyre_pipeline *pipeline;
  int file = mkstemp(path);
  CHECK(file >= 0);
  CHECK(write(file, r.bytes.bytes, r.bytes.length) == (ssize_t)r.bytes.length);
  close(file);
  CHECK_OK(vyre_package_open_file(path, vyre_allocator_heap(), &package, &st),
           st);
  CHECK(unlink(path) == 0);
  CHECK_OK(vyre_pipeline_load(r.device, package, "scale", NULL, &pipeline, &st),
           st);
  check_scale(pipeline);
  vyre_pipeline_release(pipeline);
  vyre_package_release(package);
  CHECK_FAILS(
      vyre_package_open_file(path, vyre_allocator_heap(), &package, &st), st,
      VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_HAS(st.message, path);
  CHECK_FAILS(
      vyre_package_open_file("/tmp", vyre_allocator_heap(), &package, &st), st,
      VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  end(&r);
}

static const growing_text *swept;

static vyre_code open_once(vyre_allocator allocator, vyre_status *st) {
  vyre_package *package;
  vyre_program *program = NULL;
  VYRE_TRY(
      vyre_package_open(swept->bytes, swept->length, allocator, &package, st));
  vyre_code code = vyre_package_read_program(package, "scale", &program, st);
  vyre_program_release(program);
  vyre_package_release(package);
  return code;
}

TEST(every_failed_allocation_is_reported) {
  rig r;
  begin(&r, &cpu_only, "");
  swept = &r.bytes;
  CHECK(sweep_allocations(open_once) > 1);
  end(&r);
}

TEST_MAIN(TEST_ENTRY(targets_are_listed_by_backend),
          TEST_ENTRY(a_package_lists_kernels_and_codes),
          TEST_ENTRY(equal_programs_give_equal_packages),
          TEST_ENTRY(programs_come_back),
          TEST_ENTRY(a_pipeline_runs_without_a_compile),
          TEST_ENTRY(unaligned_bytes_work),
          TEST_ENTRY(the_interpreter_runs_the_program),
          TEST_ENTRY(every_level_falls_back_to_the_one_below),
          TEST_ENTRY(a_missing_level_is_refused),
          TEST_ENTRY(a_missing_backend_is_refused),
          TEST_ENTRY(code_of_another_version_is_refused),
          TEST_ENTRY(code_of_another_program_is_refused),
          TEST_ENTRY(variants_come_from_the_package),
          TEST_ENTRY(a_variant_that_is_missing_is_refused),
          TEST_ENTRY(bad_requests_are_refused),
          TEST_ENTRY(a_kernel_that_no_target_supports_is_refused),
          TEST_ENTRY(a_queue_kernel_is_refused),
          TEST_ENTRY(a_change_of_any_byte_is_found),
          TEST_ENTRY(truncation_is_found),
          TEST_ENTRY(other_formats_are_refused), TEST_ENTRY(files_are_read),
          TEST_ENTRY(every_failed_allocation_is_reported))
