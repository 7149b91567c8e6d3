/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of split launches and of batches: tiled grids, uniforms that an earlier
 * launch writes, and the batch cache. */
#include <pthread.h>

#include "backend/vulkan/vulkan_testing.h"

static const char kernels[] =
    "kernel ids workgroup(1)\nbuffer y : read_write u32[] @0;\n"
    "{ let i = (workgroup_id.z * grid_size.y + workgroup_id.y) * grid_size.x\n"
    "          + workgroup_id.x;\n"
    "  if (i < len(y)) y[i] = y[i] + i + 1; }\n"
    "kernel phased workgroup(1)\nbuffer y : read_write u32[] @0;\n"
    "{ let i = (workgroup_id.z * grid_size.y + workgroup_id.y) * grid_size.x\n"
    "          + workgroup_id.x;\n"
    "  if (i < len(y)) y[i] = y[i] + i;\n"
    "  grid_barrier();\n"
    "  if (i < len(y)) y[i] = y[i] + 1; }\n"
    "kernel put workgroup(1)\nbuffer v : read u32[1] @0;\n"
    "buffer n : write u32[1] @1;\n"
    "{ if (global_id.x == 0) n[0] = v[0]; }\n"
    "kernel iterate workgroup(8) over(y)\n"
    "buffer y : read_write u32[] @0;\nuniform n : u32 @1;\n"
    "{ let i = global_id.x;\n"
    "  for (let k = 0; k < n; k += 1) {\n"
    "    y[i % len(y)] = y[i % len(y)] + 1; grid_barrier(); } }\n"
    "kernel scale workgroup(8) over(y)\n"
    "buffer y : read_write u32[] @0;\nuniform n : u32 @1;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = y[i] + n; }\n"
    "kernel spill workgroup(1024)\nbuffer x : read u32[] @0;\n"
    "buffer y : write u32[4] @1;\n"
    "{ let i = global_id.x; let a = x[i % len(x)] + i; grid_barrier();\n"
    "  if (i < 4) y[i] = a; }\n";
enum { IDS, PHASED, PUT, ITERATE, SCALE, SPILL };

/* --- split grids ---------------------------------------------------------- */

enum { MAX_GROUPS = 9 * 150 };

typedef struct split_scene {
  vk_rig r;
  vk_physical_device small; /* the physical device with a small grid limit */
  uint32_t y[MAX_GROUPS];
  vyre_input in;
  vyre_output out;
  vyre_dispatch_desc desc;
} split_scene;

static void check_ids(const split_scene *s, size_t count, uint32_t times) {
  for (uint32_t i = 0; i < count; i++)
    CHECK_U64(s->y[i], (uint64_t)times * (i + 1));
}

static void dispatch_split(split_scene *s, int kernel, size_t count) {
  vyre_status st = {0};
  for (int i = 0; i < 3; i++) { /* measured after the first dispatch */
    memset(s->y, 0, sizeof s->y);
    CHECK_OK(vyre_dispatch(s->r.pipelines[kernel], &s->desc, &st), st);
    check_ids(s, count, 1);
  }
}

/* The items of the batch share a device buffer. */
static void batch_split(split_scene *s, int kernel, size_t count) {
  enum { ITEMS = 9 };
  vyre_status st = {0};
  vyre_dispatch_desc items[ITEMS];
  vyre_buffer y;
  CHECK_OK(vyre_buffer_create(s->r.device, count * 4, &y, &st), st);
  vyre_input in = vyre_input_buffer(y);
  vyre_output out = vyre_output_buffer(y);
  for (int i = 0; i < ITEMS; i++) {
    items[i] = s->desc;
    items[i].inputs = &in;
    items[i].outputs = &out;
  }
  for (uint32_t i = 1; i < 4; i++) {
    CHECK_OK(vyre_submit(s->r.pipelines[kernel], items, ITEMS, NULL, &st), st);
    CHECK_OK(vyre_buffer_download(s->r.device, y, 0, s->y, count * 4, &st), st);
    check_ids(s, count, ITEMS * i);
  }
  CHECK_OK(vyre_buffer_destroy(s->r.device, y, &st), st);
}

static void replay_split(split_scene *s, int kernel, size_t count) {
  vyre_status st = {0};
  vyre_recording *rec;
  uint32_t slot;
  CHECK_OK(vyre_recording_create(s->r.device, &rec, &st), st);
  CHECK_OK(vyre_recording_add_fixed_slot(
               rec, &(vyre_slot_binding){.data = s->y, .size = count * 4},
               &slot, &st),
           st);
  vyre_slot_range y = vyre_slot_range_all(slot);
  vyre_recorded_dispatch d = {
      .inputs = &y,
      .input_count = 1,
      .outputs = &y,
      .output_count = 1,
      .grid = {s->desc.grid[0], s->desc.grid[1], s->desc.grid[2]}};
  for (int i = 0; i < 2; i++) {
    CHECK_OK(vyre_recording_add_dispatch(rec, s->r.pipelines[kernel], &d, &st),
             st);
  }
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  for (int i = 0; i < 3; i++) {
    memset(s->y, 0, sizeof s->y);
    CHECK_OK(vyre_recording_replay(rec, NULL, NULL, &st), st);
    check_ids(s, count, 2);
  }
  vyre_recording_release(rec);
}

TEST(every_workgroup_of_a_split_grid_runs_once) {
  static const uint32_t grids[][3] = {{8, 8, 8}, {9, 2, 1},  {9, 3, 1},
                                      {1, 9, 3}, {1, 20, 7}, {9, 150, 1}};
  static const char *const configs[] = {
      "", "vulkan.staging=1,vulkan.push_constants=1"};
  static split_scene s;
  for (int w = 0; w < 2; w++) {
    vk_rig_open(&s.r, configs[w]);
    vk_rig_compile(&s.r, kernels);
    s.small = *s.r.own->physical;
    for (int i = 0; i < 3; i++) {
      s.small.properties.limits.maxComputeWorkGroupCount[i] = 8;
    }
    s.r.own->physical = &s.small;
    for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++) {
      const uint32_t *g = grids[i];
      size_t count = (size_t)g[0] * g[1] * g[2];
      CHECK(count <= MAX_GROUPS);
      s.in = vyre_input_bytes(s.y, count * 4);
      s.out = vyre_output_bytes(s.y, count * 4);
      s.desc = (vyre_dispatch_desc){.inputs = &s.in,
                                    .input_count = 1,
                                    .outputs = &s.out,
                                    .output_count = 1,
                                    .is_borrowed = true,
                                    .grid = {g[0], g[1], g[2]}};
      for (int kernel = IDS; kernel <= PHASED; kernel++) {
        dispatch_split(&s, kernel, count);
        batch_split(&s, kernel, count);
        replay_split(&s, kernel, count);
      }
    }
    vk_rig_close(&s.r);
  }
}

/* --- encoded uniforms ----------------------------------------------------- */

/* `put` writes n, which the next kernel uses as a trip count or as an operand.
 * n is in a device buffer or in host memory. */
TEST(encoded_uniforms_may_come_from_the_previous_launch) {
  static const char *const configs[] = {
      "", "vulkan.staging=1", "vulkan.push_constants=1",
      "vulkan.push_constants=1,vulkan.staging=1"};
  for (int w = 0; w < 16; w++) {
    vk_rig r;
    vyre_status st = {0};
    vyre_recording *rec;
    vyre_buffer n, y;
    uint32_t slots[3], v = 0, host_n = 0, zero[16] = {0}, got[16];
    bool is_host = w & 4, iterates = w & 8;
    vk_rig_open(&r, configs[w & 3]);
    vk_rig_compile(&r, kernels);
    CHECK_OK(vyre_buffer_create(r.device, 4, &n, &st), st);
    CHECK_OK(vyre_buffer_create(r.device, sizeof got, &y, &st), st);
    CHECK_OK(vyre_recording_create(r.device, &rec, &st), st);
    const vyre_slot_binding all[] = {
        {.data = &v, .size = 4},
        is_host ? (vyre_slot_binding){.data = &host_n, .size = 4}
                : (vyre_slot_binding){.buffer = n},
        {.buffer = y}};
    for (int i = 0; i < 3; i++) {
      CHECK_OK(vyre_recording_add_fixed_slot(rec, &all[i], &slots[i], &st), st);
    }
    vyre_slot_range from = vyre_slot_range_all(slots[0]),
                    to = vyre_slot_range_all(slots[1]),
                    in[] = {vyre_slot_range_all(slots[2]), to};
    vyre_recorded_dispatch put = {.inputs = &from,
                                  .input_count = 1,
                                  .outputs = &to,
                                  .output_count = 1,
                                  .grid = {1}},
                           use = {.inputs = in,
                                  .input_count = 2,
                                  .outputs = in,
                                  .output_count = 1};
    CHECK_OK(vyre_recording_add_dispatch(rec, r.pipelines[PUT], &put, &st), st);
    CHECK_OK(vyre_recording_add_dispatch(
                 rec, r.pipelines[iterates ? ITERATE : SCALE], &use, &st),
             st);
    CHECK_OK(vyre_recording_seal(rec, &st), st);
    for (v = 3; v < 9; v++) {
      CHECK_OK(vyre_buffer_upload(r.device, y, 0, zero, sizeof zero, &st), st);
      CHECK_OK(vyre_recording_replay(rec, NULL, NULL, &st), st);
      CHECK_OK(vyre_buffer_download(r.device, y, 0, got, sizeof got, &st), st);
      for (int i = 0; i < 16; i++) CHECK_U64(got[i], v);
    }
    vyre_recording_release(rec);
    vk_rig_close(&r);
  }
}

/* An invalid launch is not encoded; the launches before it run. */
TEST(invalid_launches_fail_in_order) {
  vk_rig r;
  vyre_status st = {0};
  vyre_recording *rec;
  vyre_buffer n[2];
  uint32_t slots[4], v = 9, x[4] = {1, 2, 3, 4}, y[4];
  vk_rig_open(&r, "vulkan.max_submit_ms=60000");
  vk_rig_compile(&r, kernels);
  vyre_input in = vyre_input_bytes(x, 16);
  vyre_output out = vyre_output_bytes(y, 16);
  vyre_dispatch_desc one = {.inputs = &in,
                            .input_count = 1,
                            .outputs = &out,
                            .output_count = 1,
                            .grid = {300}};
  CHECK_OK(vyre_dispatch(r.pipelines[SPILL], &one, &st),
           st); /* measures the kernel */
  CHECK_OK(vyre_recording_create(r.device, &rec, &st), st);
  for (int i = 0; i < 2; i++) {
    CHECK_OK(vyre_buffer_create(r.device, 4, &n[i], &st), st);
    CHECK_OK(vyre_recording_add_fixed_slot(
                 rec, &(vyre_slot_binding){.buffer = n[i]}, &slots[i], &st),
             st);
  }
  CHECK_OK(
      vyre_recording_add_fixed_slot(
          rec, &(vyre_slot_binding){.data = &v, .size = 4}, &slots[2], &st),
      st);
  CHECK_OK(
      vyre_recording_add_fixed_slot(
          rec, &(vyre_slot_binding){.data = x, .size = 16}, &slots[3], &st),
      st);
  uint32_t output_slot;
  CHECK_OK(
      vyre_recording_add_fixed_slot(
          rec, &(vyre_slot_binding){.data = y, .size = 16}, &output_slot, &st),
      st);
  vyre_slot_range from = vyre_slot_range_all(slots[2]),
                  input_range = vyre_slot_range_all(slots[3]),
                  output_range = vyre_slot_range_all(output_slot);
  for (int i = 0; i < 3; i++) {
    vyre_slot_range to = vyre_slot_range_all(slots[i < 2 ? i : 0]);
    vyre_recorded_dispatch put = {.inputs = &from,
                                  .input_count = 1,
                                  .outputs = &to,
                                  .output_count = 1,
                                  .grid = {1}};
    vyre_recorded_dispatch spill = {.inputs = &input_range,
                                    .input_count = 1,
                                    .outputs = &output_range,
                                    .output_count = 1,
                                    .grid = {40000}};
    CHECK_OK(vyre_recording_add_dispatch(rec, r.pipelines[i < 2 ? PUT : SPILL],
                                         i < 2 ? &put : &spill, &st),
             st);
  }
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  for (v = 5; v < 8; v++) {
    CHECK_FAILS(vyre_recording_replay(rec, NULL, NULL, &st), st,
                VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_TOO_LARGE);
    CHECK_U64(status_number(&st, "command"), 2);
    st = (vyre_status){0};
    for (int i = 0; i < 2; i++) {
      uint32_t got;
      CHECK_OK(vyre_buffer_download(r.device, n[i], 0, &got, 4, &st), st);
      CHECK_U64(got, v);
    }
  }
  vyre_recording_release(rec);
  vk_rig_close(&r);
}

/* --- repeated batches ----------------------------------------------------- */

enum { ITEMS = 20, LENGTH = 40 };

typedef struct batch_scene {
  vk_rig *r;
  vyre_buffer y[ITEMS];
  uint32_t step;
  vyre_input in[ITEMS][2];
  vyre_output out[ITEMS];
  vyre_dispatch_desc items[ITEMS];
  bool is_wrong;
} batch_scene;

static void batch_init(batch_scene *s, vk_rig *r) {
  vyre_status st = {0};
  *s = (batch_scene){.r = r};
  for (int i = 0; i < ITEMS; i++) {
    CHECK_OK(vyre_buffer_create(r->device, UINT64_C(4) * LENGTH, &s->y[i], &st),
             st);
    s->in[i][0] = vyre_input_buffer(s->y[i]);
    s->in[i][1] = vyre_input_bytes(&s->step, 4);
    s->out[i] = vyre_output_buffer(s->y[i]);
    s->items[i] = (vyre_dispatch_desc){.inputs = s->in[i],
                                       .input_count = 2,
                                       .outputs = &s->out[i],
                                       .output_count = 1,
                                       .is_borrowed = true};
  }
}

static bool batch_is(const batch_scene *s, int item, uint32_t want) {
  uint32_t got[LENGTH];
  vyre_status st = {0};
  if (vyre_buffer_download(s->r->device, s->y[item], 0, got, sizeof got, &st) !=
      VYRE_OK) {
    return false;
  }
  for (int i = 0; i < LENGTH; i++) {
    if (got[i] != want) return false;
  }
  return true;
}

static bool batch_submit(batch_scene *s, vyre_pipeline *pipeline) {
  vyre_status st = {0};
  return vyre_submit(pipeline, s->items, ITEMS, NULL, &st) == VYRE_OK;
}

/* Host bytes, a binding and the pipeline change between batches that are
 * otherwise equal. */
TEST(cached_batches_are_not_confused) {
  static const char *const configs[] = {"", "vulkan.staging=1",
                                        "vulkan.push_constants=1"};
  static batch_scene s;
  for (int w = 0; w < 3; w++) {
    vk_rig r;
    vyre_status st = {0};
    uint32_t want[ITEMS] = {0};
    vk_rig_open(&r, configs[w]);
    vk_rig_compile(&r, kernels);
    batch_init(&s, &r);
    for (uint32_t pass = 0; pass < 30; pass++) {
      s.step = pass / 3;
      if (pass % 10 == 7) { /* replace a buffer */
        int item = (int)(pass % ITEMS);
        CHECK_OK(vyre_buffer_destroy(r.device, s.y[item], &st), st);
        CHECK_OK(
            vyre_buffer_create(r.device, UINT64_C(4) * LENGTH, &s.y[item], &st),
            st);
        s.in[item][0] = vyre_input_buffer(s.y[item]);
        s.out[item] = vyre_output_buffer(s.y[item]);
        want[item] = 0;
      }
      if (pass % 10 == 5) { /* compile the kernel again */
        vyre_pipeline_release(r.pipelines[SCALE]);
        CHECK_OK(
            vyre_pipeline_compile(r.device, vyre_module_kernel(r.module, SCALE),
                                  NULL, &r.pipelines[SCALE], NULL, &st),
            st);
      }
      CHECK(batch_submit(&s, r.pipelines[SCALE]));
      for (int i = 0; i < ITEMS; i++) {
        want[i] += s.step;
        CHECK(batch_is(&s, i, want[i]));
      }
    }
    vk_rig_close(&r);
  }
}

static void *submit_repeatedly(void *self) {
  batch_scene *s = self;
  for (uint32_t i = 0; i < 30 && !s->is_wrong; i++) {
    s->step = i;
    s->is_wrong = !batch_submit(s, s->r->pipelines[SCALE]);
  }
  return NULL;
}

/* The duration of a workgroup is unknown at first. With a short time limit the
 * first submission has few workgroups; otherwise it has all of them. */
static const struct {
  const char *options;
  uint64_t timeout_ns;
  unsigned min, max; /* number of submissions */
} firsts[] = {{"", 0, 1, 1},
              {"vulkan.max_submit_ms=1", 0, 2, 4},
              {"", UINT64_C(60000000000), 2, 4}};

TEST(first_submissions_of_a_kernel_are_short) {
  for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
    vk_rig r;
    vyre_status st = {0};
    uint32_t y[4 * 64] = {0};
    vk_rig_open(&r, firsts[i].options);
    vk_rig_compile(&r,
                   "kernel one workgroup(64) over(y)\n"
                   "buffer y : read_write u32[] @0;\n"
                   "{ y[global_id.x] += 1; }\n");
    const vyre_input in[] = {vyre_input_bytes(y, sizeof y)};
    const vyre_output out[] = {vyre_output_bytes(y, sizeof y)};
    const vyre_dispatch_desc desc = {.inputs = in,
                                     .input_count = 1,
                                     .outputs = out,
                                     .output_count = 1,
                                     .timeout_ns = firsts[i].timeout_ns};
    unsigned before = vk_calls.submits;
    CHECK_OK(vyre_dispatch(r.pipelines[0], &desc, &st), st);
    unsigned submits = vk_calls.submits - before;
    CHECK(submits >= firsts[i].min && submits <= firsts[i].max);
    for (size_t k = 0; k < sizeof y / sizeof y[0]; k++) CHECK_U64(y[k], 1);
    vk_rig_close(&r);
  }
}

/* The limit applies to the sum over a batch. After the measurement the batch is
 * one submission. */
TEST(first_submissions_of_a_batch_are_short) {
  static batch_scene s;
  static const char *const configs[] = {"vulkan.max_submit_ms=20", ""};
  for (int w = 0; w < 2; w++) {
    vk_rig r;
    vk_rig_open(&r, configs[w]);
    vk_rig_compile(&r, kernels);
    batch_init(&s, &r); /* 5 workgroups each; a submission may have 10 */
    s.step = 1;
    unsigned submits = 0;
    for (uint32_t pass = 1; pass <= 100 && submits != 1; pass++) {
      unsigned before = vk_calls.submits;
      CHECK(batch_submit(&s, r.pipelines[SCALE]));
      submits = vk_calls.submits - before;
      if (pass == 1) CHECK(w == 0 ? submits >= 2 : submits == 1);
      for (int i = 0; i < ITEMS; i++) CHECK(batch_is(&s, i, pass));
    }
    CHECK_U64(submits, 1); /* converges even on a busy machine */
    vk_rig_close(&r);
  }
}

/* A long batch has several lists. The pipeline keeps fewer prepared dispatches
 * than the batch has items, but all lists. */
TEST(no_list_of_a_long_batch_is_encoded_again) {
  enum { LONG = 3100 };
  static vyre_input in[LONG][2];
  static vyre_output out[LONG];
  static vyre_dispatch_desc items[LONG];
  static uint32_t y[LONG];
  uint32_t step = 3;
  unsigned begins = 0;
  vk_rig r;
  vk_rig_open(&r, "");
  vk_rig_compile(&r, kernels);
  for (uint32_t i = 0; i < LONG; i++) {
    in[i][0] = vyre_input_bytes(&y[i], 4);
    in[i][1] = vyre_input_bytes(&step, 4);
    out[i] = vyre_output_bytes(&y[i], 4);
    items[i] = (vyre_dispatch_desc){.inputs = in[i],
                                    .input_count = 2,
                                    .outputs = &out[i],
                                    .output_count = 1};
  }
  for (uint32_t pass = 1; pass <= 6; pass++) {
    vyre_status st = {0};
    if (pass == 5) begins = vk_calls.begins;
    CHECK_OK(vyre_submit(r.pipelines[SCALE], items, LONG, NULL, &st), st);
    for (uint32_t i = 0; i < LONG; i++) CHECK_U64(y[i], UINT64_C(3) * pass);
  }
  CHECK_U64(vk_calls.begins, begins);
  vk_rig_close(&r);
}

/* Equal and different batches from several threads. */
TEST(batches_from_many_threads) {
  enum { THREADS = 4 };
  static batch_scene all[THREADS];
  pthread_t threads[THREADS];
  vk_rig r;
  vk_rig_open(&r, "");
  vk_rig_compile(&r, kernels);
  for (int i = 0; i < THREADS; i++) batch_init(&all[i], &r);
  for (int i = 0; i < THREADS; i++) {
    CHECK(pthread_create(&threads[i], NULL, submit_repeatedly, &all[i]) == 0);
  }
  for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  for (int i = 0; i < THREADS; i++) {
    CHECK(!all[i].is_wrong);
    for (int k = 0; k < ITEMS; k++) CHECK(batch_is(&all[i], k, 29 * 30 / 2));
  }
  vk_rig_close(&r);
}

VK_TEST_MAIN(TEST_ENTRY(every_workgroup_of_a_split_grid_runs_once),
             TEST_ENTRY(encoded_uniforms_may_come_from_the_previous_launch),
             TEST_ENTRY(invalid_launches_fail_in_order),
             TEST_ENTRY(cached_batches_are_not_confused),
             TEST_ENTRY(first_submissions_of_a_kernel_are_short),
             TEST_ENTRY(first_submissions_of_a_batch_are_short),
             TEST_ENTRY(no_list_of_a_long_batch_is_encoded_again),
             TEST_ENTRY(batches_from_many_threads))
