/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of the properties of devices and pipelines, and of programs that no
 * device compiles. */

#include "support/check.h"
#include "support/driver.h"

static const char text[] =
    "kernel k workgroup(4, 2, 1) over(y)\n"
    "buffer x : read f32[] @3;\n"
    "buffer y : read_write u16[6] @1;\n"
    "shared s : u32[8];\n"
    "uniform a : u32 @2;\n"
    "{\n"
    "    s[local_id.x] = a;\n"
    "    if (x[0] < 1.0) y[global_id.x] = y[global_id.x] + 1;\n"
    "}\n";

TEST(an_id_is_the_device_and_the_fingerprint) {
  rig r = rig_open(text, NULL);
  vyre_status st = {0};
  char hash[VYRE_HASH128_TEXT], want[128];
  vyre_hash128_text(vyre_program_fingerprint(r.program), hash);
  snprintf(want, sizeof want, "ref:%s", hash);
  CHECK_TEXT(vyre_pipeline_id(r.pipeline), want);
  vyre_compile_options same = {.workgroup = {4, 2, 1}}, other = {{16, 1, 1}, 0};
  vyre_pipeline *p;
  CHECK_OK(vyre_pipeline_compile(r.device, r.program, &same, &p, NULL, &st),
           st);
  CHECK_TEXT(vyre_pipeline_id(p), want);
  vyre_pipeline_release(p);
  CHECK_OK(vyre_pipeline_compile(r.device, r.program, &other, &p, NULL, &st),
           st);
  snprintf(want, sizeof want, "ref:%s:16x1x1", hash);
  CHECK_TEXT(vyre_pipeline_id(p), want);
  vyre_pipeline_release(p);
  rig_close(&r);
}

TEST(a_pipeline_describes_its_bindings) {
  rig r = rig_open(text, NULL);
  CHECK(vyre_pipeline_program(r.pipeline) == r.program);
  const uint32_t *size = vyre_pipeline_workgroup(r.pipeline);
  CHECK(size[0] == 4 && size[1] == 2 && size[2] == 1);
  const vyre_binding_plan *plan = vyre_pipeline_bindings(r.pipeline);
  /* Inputs and outputs are counted by binding number. */
  static const struct {
    const char *name;
    size_t input, output;
    uint64_t bytes; /* 0: sized at run time */
  } want[] = {{"x", 2, VYRE_NO_INDEX, 0},
              {"y", 0, 0, 12},
              {"s", VYRE_NO_INDEX, VYRE_NO_INDEX, 32},
              {"a", 1, VYRE_NO_INDEX, 4}};
  CHECK_U64(plan->binding_count, 4);
  for (size_t i = 0; i < 4; i++) {
    const vyre_binding *found = NULL;
    for (size_t k = 0; k < 4; k++) {
      const vyre_binding *b = &plan->bindings[k];
      if (strcmp(b->name, want[i].name) == 0) found = b;
    }
    CHECK(found);
    CHECK_U64(found->input_index, want[i].input);
    CHECK_U64(found->output_index, want[i].output);
    CHECK_U64(found->has_static_byte_len ? found->static_byte_len : 0,
              want[i].bytes);
  }
  CHECK_U64(plan->input_count, 3);
  CHECK_U64(plan->output_count, 1);
  rig_close(&r);
}

TEST(a_device_describes_its_name_and_capabilities) {
  vyre_status st = {0};
  for (size_t i = 0;; i++) {
    vyre_device_info info;
    if (!vyre_device_info_at(i, &info)) {
      CHECK(i > 0);
      break;
    }
    if (!info.is_available) {
      CHECK(info.note[0]);
      continue;
    }
    vyre_device *device;
    CHECK_OK(vyre_device_open(NULL, info.name, &device, &st), st);
    CHECK_TEXT(vyre_device_name(device), info.name);
    CHECK_TEXT(vyre_device_selection_reason(device), "asked for by name");
    const vyre_device_caps *caps = vyre_device_get_caps(device);
    CHECK(caps->max_workgroup_invocations >= 1 && caps->max_buffer_bytes > 0);
    CHECK(caps->host_alignment >= 1 && caps->float_op_count > 0);
    vyre_device_release(device);
  }
}

/* Features of the language that no device supports: the status names the
 * device and the kernel. */
TEST(an_unsupported_feature_names_the_real_device) {
  static const struct {
    const char *text, *names, *fix;
  } cases[] = {
      {"kernel q queue(u32)\n"
       "buffer y : read_write u32[] @0;\n"
       "{ y[item] = 1; }\n",
       "kernel 'q'", "vyre_queue_create"},
  };
  static const char *const devices[] = {"ref", "null"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (size_t k = 0; k < 2; k++) {
      vyre_status st = {0};
      vyre_device *device;
      vyre_module *module;
      vyre_pipeline *pipeline;
      char name[64];
      CHECK_OK(vyre_module_parse(cases[i].text, strlen(cases[i].text), "t.vyre",
                                 (vyre_allocator){0}, &module, NULL, &st),
               st);
      CHECK_OK(vyre_device_open(NULL, devices[k], &device, &st), st);
      CHECK_FAILS(vyre_pipeline_compile(device, vyre_module_kernel(module, 0),
                                        NULL, &pipeline, NULL, &st),
                  st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
      CHECK(!pipeline);
      snprintf(name, sizeof name, "device '%s'", devices[k]);
      CHECK_HAS(st.message, name);
      CHECK_HAS(st.message, cases[i].names);
      CHECK_HAS(st.fix, cases[i].fix);
      vyre_device_release(device);
      vyre_module_release(module);
    }
  }
}

/* A device buffer keeps its contents. */
TEST(a_device_buffer_keeps_its_contents_between_dispatches) {
  rig r = rig_open(
      "kernel count workgroup(1)\nbuffer n : read_write u32[1] @0;\n"
      "{ n[0] = n[0] + 1; }\n",
      NULL);
  vyre_status st = {0};
  vyre_buffer n;
  uint32_t got = 0;
  CHECK_OK(vyre_buffer_create(r.device, 4, &n, &st), st);
  vyre_input in = vyre_input_buffer(n);
  vyre_output out = vyre_output_buffer(n);
  vyre_dispatch_desc desc = {.inputs = &in,
                             .input_count = 1,
                             .outputs = &out,
                             .output_count = 1,
                             .require_zero_copy = true};
  for (int i = 0; i < 3; i++) {
    CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
  }
  CHECK_OK(vyre_buffer_download(r.device, n, 0, &got, 4, &st), st);
  CHECK_U64(got, 3);
  CHECK_OK(vyre_buffer_destroy(r.device, n, &st), st);
  rig_close(&r);
}

TEST(grid_barriers_are_counted_when_a_kernel_is_compiled) {
  vyre_counters counters;
  rig r = rig_open(
      "kernel k workgroup(2)\nbuffer y : read_write u32[] @0;\n"
      "{ y[0] = 1; grid_barrier(); y[1] = y[0]; grid_barrier(); y[0] = 3; }\n",
      NULL);
  vyre_counters_read(r.device, &counters);
  CHECK_U64(counters.grid_sync_splits, 1);
  CHECK_U64(counters.grid_sync_segments, 3);
  CHECK_U64(counters.grid_sync_points, 2);
  rig_close(&r);
  r = rig_open(text, NULL);
  vyre_counters_read(r.device, &counters);
  CHECK_U64(counters.grid_sync_splits, 0);
  CHECK_U64(counters.grid_sync_segments, 0);
  rig_close(&r);
}

TEST(a_pipeline_describes_its_resources) {
  static const char *const texts[] = {text, /* over(y), 8 x 4 bytes shared */
                                      "kernel g workgroup(4)\n"
                                      "buffer y : read_write u32[] @0;\n"
                                      "{\n"
                                      "    let mine = y[global_id.x];\n"
                                      "    grid_barrier();\n"
                                      "    y[global_id.x] = mine + y[0];\n"
                                      "}\n"};
  static const vyre_pipeline_resources want[] = {
      {.workgroup = {4, 2, 1},
       .grid_buffer = "y",
       .shared_count = 1,
       .shared_bytes = 32,
       .has_launches = true,
       .phase_count = 1},
      {.workgroup = {4, 1, 1},
       .grid_barriers = 1,
       .has_launches = true,
       .phase_count = 1, /* this device needs one launch */
       .spill_buffer_count = 1,
       .spill_bytes = UINT64_C(8) * (1 + 3)}}; /* a local; done, fuel, active */
  vyre_pipeline_resources got;
  for (size_t i = 0; i < 2; i++) {
    rig r = rig_open(texts[i], NULL);
    CHECK(vyre_pipeline_get_resources(r.pipeline, &got));
    CHECK(memcmp(got.workgroup, want[i].workgroup, sizeof got.workgroup) == 0);
    CHECK(!got.grid_buffer == !want[i].grid_buffer);
    if (got.grid_buffer) CHECK_TEXT(got.grid_buffer, want[i].grid_buffer);
    CHECK_U64(got.shared_count, want[i].shared_count);
    CHECK_U64(got.shared_bytes, want[i].shared_bytes);
    CHECK_U64(got.grid_barriers, want[i].grid_barriers);
    CHECK(got.has_launches && !got.has_width && !got.has_code);
    CHECK_U64(got.phase_count, want[i].phase_count);
    CHECK_U64(got.spill_buffer_count, want[i].spill_buffer_count);
    CHECK_U64(got.spill_bytes, want[i].spill_bytes);
    CHECK(got.scratch_bytes >= want[i].shared_bytes);
    /* A variant has other numbers: twice the lanes. */
    vyre_pipeline *wide;
    vyre_status st = {0};
    vyre_compile_options options = {
        .workgroup = {2 * got.workgroup[0], got.workgroup[1]}};
    CHECK_OK(
        vyre_pipeline_compile(r.device, r.program, &options, &wide, NULL, &st),
        st);
    vyre_pipeline_resources twice;
    CHECK(vyre_pipeline_get_resources(wide, &twice));
    CHECK_U64(twice.workgroup[0], options.workgroup[0]);
    CHECK_U64(twice.scratch_bytes,
              2 * got.scratch_bytes - want[i].shared_bytes);
    vyre_pipeline_release(wide);
    rig_close(&r);
  }
  CHECK(!vyre_pipeline_get_resources(NULL, &got) && !got.has_launches);
}

TEST_MAIN(TEST_ENTRY(a_pipeline_describes_its_resources),
          TEST_ENTRY(an_id_is_the_device_and_the_fingerprint),
          TEST_ENTRY(a_pipeline_describes_its_bindings),
          TEST_ENTRY(grid_barriers_are_counted_when_a_kernel_is_compiled),
          TEST_ENTRY(a_device_describes_its_name_and_capabilities),
          TEST_ENTRY(an_unsupported_feature_names_the_real_device),
          TEST_ENTRY(a_device_buffer_keeps_its_contents_between_dispatches))
