/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of uniforms and of iteration limits. Uniforms are in the launch block,
 * in memory or as push constants; iterations are counted only if a launch
 * limits them. */
#include "backend/vulkan/pipeline.h"
#include "backend/vulkan/vulkan_testing.h"
#include "runtime/compile/pipeline.h"
#include "runtime/tune/settings.h"

static const char kernels[] =
    "kernel scale workgroup(64) over(y)\n"
    "buffer x : read u32[] @0;\nbuffer y : write u32[] @1;\n"
    "uniform a : u32 @2;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = a * x[i]; }\n"
    "kernel put workgroup(1)\nbuffer to : write u32[1] @0;\n"
    "uniform v : u32 @1;\n{ to[0] = v + 1; }\n"
    "kernel many workgroup(32) over(y)\nbuffer y : write u32[] @0;\n"
    "uniform octets : u8[3] @1;\nuniform wide : u64[2] @2;\n"
    "uniform small : i16[3] @3;\nuniform r : f32[2] @4;\n"
    "uniform table : u32[40] @5;\nuniform longer : u32[60] @6;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = u32(octets[2]) + "
    "u32(wide[1] >> 32) * 3 + u32(small[1]) * 5 + as_u32(r[1]) + "
    "table[i % 40] + longer[59] + len(small) * 100000; }\n"
    "kernel spin workgroup(8) over(y)\nbuffer y : read_write u32[] @0;\n"
    "uniform n : u32 @1;\n{ let i = global_id.x; var s = 0u; while (s < n) { "
    "if (s == 4000000000) break; s += 1; } y[i] = s; }\n"
    "kernel forever workgroup(8) over(y)\nbuffer y : read_write u32[] @0;\n"
    "{ let i = global_id.x; var s = 0u; while (true) { s += 1; if (s == 0) "
    "y[i] "
    "= 1; } }\n"
    "kernel returns workgroup(8) over(y)\nbuffer y : read_write u32[] @0;\n"
    "{ let i = global_id.x; var s = i; while (true) { s += 1; if (s == "
    "4000000000) { y[i] = s; return; } } }\n";
enum { SCALE, PUT, MANY, SPIN, FOREVER, RETURNS };

/* Kinds of launch blocks and of memory. */
static const struct {
  const char *options;
  bool pushes;
} configs[] = {{"vulkan.push_constants=0", false},
               {"vulkan.push_constants=1", true},
               {"vulkan.push_constants=0,vulkan.staging=1", false},
               {"vulkan.push_constants=1,vulkan.staging=1", true}};
enum { CONFIGS = sizeof configs / sizeof configs[0], N = 300 };

static void begin(vk_rig *r, int way) {
  vk_rig_open(r, configs[way].options);
  CHECK(r->own->uses_push_constants == configs[way].pushes);
  vk_rig_compile(r, kernels);
}

static const vk_plan *plan_of(const vk_rig *r, int kernel) {
  return &((const vk_pipeline *)r->pipelines[kernel])->plan;
}

/* Counts the descriptors of buffers of the program. */
static unsigned bound_buffers(const vk_plan *plan) {
  unsigned count = 0;
  for (uint32_t i = 0; i < plan->descriptor_count; i++) {
    count += plan->descriptors[i].what == VYRE__SPIRV_BUFFER;
  }
  return count;
}

TEST(uniforms_are_in_the_launch_block) {
  for (int w = 0; w < CONFIGS; w++) {
    vk_rig r;
    begin(&r, w);
    const vk_plan *scale = plan_of(&r, SCALE), *many = plan_of(&r, MANY);
    CHECK_U64(bound_buffers(scale), 2);
    /* y, the uniform with a dynamic index, and the one that is too long. */
    CHECK_U64(bound_buffers(many), 3);
    CHECK((scale->push_bytes > 0) == configs[w].pushes);
    CHECK((scale->block_bytes > 0) == !configs[w].pushes);
    CHECK(many->push_bytes <= 128);
    vk_rig_close(&r);
  }
}

static void scale_once(vk_rig *r, uint32_t a) {
  uint32_t x[N], y[N];
  vyre_status st = {0};
  for (uint32_t i = 0; i < N; i++) x[i] = i * 77 + 1;
  vyre_input in[] = {vyre_input_bytes(x, sizeof x), vyre_input_bytes(&a, 4)};
  vyre_output out[] = {vyre_output_bytes(y, sizeof y)};
  vyre_dispatch_desc desc = {
      .inputs = in, .input_count = 2, .outputs = out, .output_count = 1};
  CHECK_OK(vyre_dispatch(r->pipelines[SCALE], &desc, &st), st);
  for (uint32_t i = 0; i < N; i++) CHECK_U64(y[i], (uint64_t)a * x[i]);
}

/* A tuned pipeline may have another kind of launch block than its device. */
TEST(a_pipeline_chooses_its_launch_block) {
  for (int w = 0; w < CONFIGS; w++) {
    vk_rig r;
    vyre_status st = {0};
    begin(&r, w);
    vyre_pipeline *as_opened = r.pipelines[SCALE];
    for (uint32_t pushes = 0; pushes < 2; pushes++) {
      const vyre__settings settings = {
          .workgroup = 32, .tuned = {[VK_TUNES_PUSH_CONSTANTS] = pushes + 1}};
      CHECK_OK(vyre__pipeline_compile_tuned(
                   r.device, vyre_module_kernel(r.module, SCALE), &settings,
                   VYRE_TIER_AUTO, &r.pipelines[SCALE], &st),
               st);
      CHECK((plan_of(&r, SCALE)->push_bytes > 0) == (pushes == 1));
      scale_once(&r, 3);
      scale_once(&r, 7);
      vyre_pipeline_release(r.pipelines[SCALE]);
    }
    r.pipelines[SCALE] = as_opened;
    vk_rig_close(&r);
  }
}

/* Push constants are part of the commands: each new value is recorded once. */
TEST(new_values_are_recorded_only_as_push_constants) {
  for (int w = 0; w < CONFIGS; w++) {
    vk_rig r;
    begin(&r, w);
    scale_once(&r, 3);
    unsigned begins = vk_calls.begins;
    for (uint32_t k = 0; k < 5; k++) scale_once(&r, 3);
    CHECK_U64(vk_calls.begins, begins);
    for (uint32_t a = 10; a < 15; a++) scale_once(&r, a);
    CHECK_U64(vk_calls.begins, begins + (configs[w].pushes ? 5 : 0));
    for (uint32_t a = 10; a < 15; a++) scale_once(&r, a);
    scale_once(&r, 3);
    CHECK_U64(vk_calls.begins, begins + (configs[w].pushes ? 5 : 0));
    vk_rig_close(&r);
  }
}

/* Narrow and wide elements, a length, and two uniforms that are not in the
 * block. */
TEST(uniforms_of_all_widths) {
  static const uint8_t bytes[3] = {1, 2, 250};
  static const uint64_t wide[2] = {5, UINT64_C(0x1234567890ABCDEF)};
  static const int16_t small[3] = {7, -300, 9};
  static const float real[2] = {1.5f, -2.25f};
  uint32_t table[40], longer[60], y[100], bits;
  memcpy(&bits, &real[1], 4);
  for (uint32_t i = 0; i < 60; i++) longer[i] = 1000 * i;
  for (uint32_t i = 0; i < 40; i++) table[i] = i * i;
  for (int w = 0; w < CONFIGS; w++) {
    vk_rig r;
    vyre_status st = {0};
    begin(&r, w);
    vyre_input in[] = {vyre_input_bytes(bytes, sizeof bytes),
                       vyre_input_bytes(wide, sizeof wide),
                       vyre_input_bytes(small, sizeof small),
                       vyre_input_bytes(real, sizeof real),
                       vyre_input_bytes(table, sizeof table),
                       vyre_input_bytes(longer, sizeof longer)};
    vyre_output out[] = {vyre_output_bytes(y, sizeof y)};
    vyre_dispatch_desc desc = {
        .inputs = in, .input_count = 6, .outputs = out, .output_count = 1};
    CHECK_OK(vyre_dispatch(r.pipelines[MANY], &desc, &st), st);
    for (uint32_t i = 0; i < 100; i++) {
      CHECK_U64(y[i], (uint32_t)(250 + 0x12345678u * 3 + (uint32_t)-300 * 5 +
                                 bits + table[i % 40] + 59000 + 300000));
    }
    vk_rig_close(&r);
  }
}

/* --- uniforms in device buffers ------------------------------------------- */

typedef struct device_buffers {
  vyre_buffer x, y, a; /* a: longer than declared, bound at an offset */
  uint32_t in[N];
} device_buffers;

static void create_device_buffers(vk_rig *r, device_buffers *own) {
  vyre_status st = {0};
  uint32_t a[4] = {9, 6, 9, 9};
  for (uint32_t i = 0; i < N; i++) own->in[i] = i + 5;
  CHECK_OK(vyre_buffer_create(r->device, UINT64_C(4) * N, &own->x, &st), st);
  CHECK_OK(vyre_buffer_create(r->device, UINT64_C(4) * N, &own->y, &st), st);
  CHECK_OK(vyre_buffer_create(r->device, sizeof a, &own->a, &st), st);
  CHECK_OK(
      vyre_buffer_upload(r->device, own->x, 0, own->in, sizeof own->in, &st),
      st);
  CHECK_OK(vyre_buffer_upload(r->device, own->a, 0, a, sizeof a, &st), st);
}

static void check_scaled(vk_rig *r, const device_buffers *own, uint32_t a) {
  vyre_status st = {0};
  uint32_t y[N];
  CHECK_OK(vyre_buffer_download(r->device, own->y, 0, y, sizeof y, &st), st);
  for (uint32_t i = 0; i < N; i++) CHECK_U64(y[i], (uint64_t)a * own->in[i]);
}

TEST(uniforms_in_device_buffers_are_current) {
  for (int w = 0; w < CONFIGS; w++) {
    vk_rig r;
    device_buffers own;
    vyre_status st = {0};
    begin(&r, w);
    create_device_buffers(&r, &own);
    vyre_input in[] = {{.buffer = own.x}, {.buffer = own.a, .offset = 4}};
    vyre_output out[] = {{.buffer = own.y}};
    vyre_dispatch_desc desc = {
        .inputs = in, .input_count = 2, .outputs = out, .output_count = 1};
    CHECK_OK(vyre_dispatch(r.pipelines[SCALE], &desc, &st), st);
    check_scaled(&r, &own, 6);
    for (uint32_t a = 20; a < 24; a++) {
      CHECK_OK(vyre_buffer_upload(r.device, own.a, 4, &a, 4, &st), st);
      CHECK_OK(vyre_dispatch(r.pipelines[SCALE], &desc, &st), st);
      check_scaled(&r, &own, a);
    }
    vk_rig_close(&r);
  }
}

static vyre_slot_range fixed(vyre_recording *rec,
                             const vyre_slot_binding *binding) {
  uint32_t slot;
  vyre_status st = {0};
  CHECK_OK(vyre_recording_add_fixed_slot(rec, binding, &slot, &st), st);
  return vyre_slot_range_all(slot);
}

/* Records `put`, which writes the uniform, and `scale`, which reads it. */
static void record_both(vk_rig *r, const device_buffers *own, uint32_t *v,
                        vyre_recording **out) {
  vyre_status st = {0};
  CHECK_OK(vyre_recording_create(r->device, out, &st), st);
  vyre_slot_range number =
                      fixed(*out, &(vyre_slot_binding){.data = v, .size = 4}),
                  x = fixed(*out, &(vyre_slot_binding){.buffer = own->x}),
                  y = fixed(*out, &(vyre_slot_binding){.buffer = own->y}),
                  a = fixed(*out, &(vyre_slot_binding){.buffer = own->a});
  a.offset = 4;
  a.size = 4;
  const vyre_slot_range scale[] = {x, a};
  const vyre_recorded_dispatch first = {.inputs = &number,
                                        .input_count = 1,
                                        .outputs = &a,
                                        .output_count = 1},
                               second = {.inputs = scale,
                                         .input_count = 2,
                                         .outputs = &y,
                                         .output_count = 1};
  CHECK_OK(vyre_recording_add_dispatch(*out, r->pipelines[PUT], &first, &st),
           st);
  CHECK_OK(vyre_recording_add_dispatch(*out, r->pipelines[SCALE], &second, &st),
           st);
  CHECK_OK(vyre_recording_seal(*out, &st), st);
}

TEST(uniforms_written_by_the_previous_launch) {
  for (int w = 0; w < CONFIGS; w++) {
    vk_rig r;
    device_buffers own;
    vyre_status st = {0};
    vyre_recording *rec = NULL;
    uint32_t v = 40;
    begin(&r, w);
    create_device_buffers(&r, &own);
    record_both(&r, &own, &v, &rec);
    for (; v < 45; v++) {
      CHECK_OK(vyre_recording_replay(rec, NULL, NULL, &st), st);
      check_scaled(&r, &own, v + 1);
    }
    vyre_recording_release(rec);
    vk_rig_close(&r);
  }
}

/* --- iteration limits ----------------------------------------------------- */

static vyre_code spin(vk_rig *r, int kernel, uint32_t n, uint64_t max,
                      uint32_t *out, vyre_status *st) {
  uint32_t y[8] = {0};
  vyre_input in[] = {vyre_input_bytes(y, sizeof y), vyre_input_bytes(&n, 4)};
  vyre_output to[] = {vyre_output_bytes(y, sizeof y)};
  vyre_dispatch_desc desc = {.inputs = in,
                             .input_count = kernel == SPIN ? 2 : 1,
                             .outputs = to,
                             .output_count = 1,
                             .max_loop_iterations = max};
  *st = (vyre_status){0};
  vyre_code code = vyre_dispatch(r->pipelines[kernel], &desc, st);
  *out = y[7];
  return code;
}

TEST(iterations_are_counted_only_if_limited) {
  vk_rig r;
  vyre_status st;
  uint32_t y;
  begin(&r, 0);
  const vk_pipeline *p = (const vk_pipeline *)r.pipelines[SPIN];
  bool may_skip = r.own->max_loop_iterations > 0;
  CHECK(p->plan.may_skip_fuel == may_skip);
  CHECK_OK(spin(&r, SPIN, 1000, 0, &y, &st), st);
  CHECK_U64(y, 1000);
  CHECK_OK(spin(&r, SPIN, 1000, UINT32_MAX, &y, &st), st);
  CHECK(spin(&r, SPIN, 1000, UINT64_C(1) << 40, &y, &st) ==
        VYRE_UNSUPPORTED_FEATURE);
  CHECK(!p->counted.phase);
  CHECK_OK(spin(&r, SPIN, 1000, 1000, &y, &st), st);
  CHECK_U64(y, 1000);
  CHECK((p->counted.phase != VK_NULL_HANDLE) == may_skip);
  CHECK(spin(&r, SPIN, 1000, 999, &y, &st) == VYRE_DISPATCH_FAILED);
  CHECK(st.kind == VYRE_KIND_OUT_OF_FUEL && strstr(st.message, "999"));
  CHECK(spin(&r, SPIN, 1, 1, &y, &st) == VYRE_OK && y == 1);
  CHECK(spin(&r, SPIN, 2, 1, &y, &st) == VYRE_DISPATCH_FAILED);
  CHECK_OK(spin(&r, SPIN, 2000, 0, &y, &st), st); /* again without a limit */
  CHECK_U64(y, 2000);
  vk_rig_close(&r);
}

/* Endless loops; the compiler may even remove the code after them. */
TEST(endless_loops_run_out_of_fuel) {
  static const int endless[] = {FOREVER, RETURNS, SPIN};
  static const uint64_t max[] = {0, 1, 1000, UINT32_MAX};
  vk_rig r;
  vyre_status st;
  uint32_t y;
  begin(&r, 0);
  /* Others need minutes for 2^32 iterations. */
  bool has_loop_limit = r.own->max_loop_iterations > 0;
  for (size_t k = 0; k < sizeof endless / sizeof endless[0]; k++) {
    for (size_t i = 0; i < sizeof max / sizeof max[0]; i++) {
      if (!has_loop_limit && (max[i] == 0 || max[i] == UINT32_MAX)) continue;
      vyre_code code = spin(&r, endless[k], UINT32_MAX, max[i], &y, &st);
      if (code != VYRE_DISPATCH_FAILED) {
        printf("    kernel %d with %llu iterations\n", endless[k],
               (unsigned long long)max[i]);
      }
      CHECK(code == VYRE_DISPATCH_FAILED);
      CHECK(st.kind == VYRE_KIND_OUT_OF_FUEL && st.fix[0]);
    }
  }
  vk_rig_close(&r);
}

VK_TEST_MAIN(TEST_ENTRY(uniforms_are_in_the_launch_block),
             TEST_ENTRY(a_pipeline_chooses_its_launch_block),
             TEST_ENTRY(new_values_are_recorded_only_as_push_constants),
             TEST_ENTRY(uniforms_of_all_widths),
             TEST_ENTRY(uniforms_in_device_buffers_are_current),
             TEST_ENTRY(uniforms_written_by_the_previous_launch),
             TEST_ENTRY(iterations_are_counted_only_if_limited),
             TEST_ENTRY(endless_loops_run_out_of_fuel))
