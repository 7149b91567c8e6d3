/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of recordings: an unchanged replay records no commands and updates no
 * descriptors. */
#include <pthread.h>
#include <time.h>

#include "backend/vulkan/vulkan_testing.h"

static const char kernels[] =
    "kernel add workgroup(64) over(y)\n"
    "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = y[i] + x[i]; }\n"
    "kernel count workgroup(1)\nbuffer n : read_write u32[2] @0;\n"
    "{ if (global_id.x == 0) { n[0] = n[0] - 1; n[1] = n[1] + 1; } }\n"
    "kernel spin workgroup(1)\nbuffer n : read_write u32[2] @0;\n"
    "{ while (n[0] > 0) { n[1] = n[1] + 1; } }\n"
    "kernel iterate workgroup(8) over(y)\n"
    "buffer y : read_write u32[] @0;\nuniform n : u32 @1;\n"
    "{ let i = global_id.x;\n"
    "  for (let k = 0; k < n; k += 1) {\n    y[i % len(y)] = y[i % len(y)] + "
    "1;\n"
    "    grid_barrier();\n  } }\n"
    "kernel mix workgroup(64) over(y)\nbuffer n : read u32[2] @0;\n"
    "buffer y : read_write u32[] @1;\nuniform a : u32 @2;\n"
    "{ let i = global_id.x;\n"
    "  if (i < len(y)) y[i] = y[i] * a + n[1] + i; }\n"
    "kernel slow workgroup(1)\nbuffer n : read_write u32[2] @0;\n"
    "{ if (global_id.x == 0) { var k = n[0]; while (k > 0) k -= 1;\n"
    "    n[0] = n[0] - 1; n[1] = n[1] + 1; } }\n"
    "kernel steps workgroup(64) over(y)\nbuffer limit : read u32[1] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "{ let i = global_id.x; var h = y[i];\n"
    "  for (let k = 0u; k < 60000; k++) {\n"
    "    if (k >= limit[0]) break;\n    h = h * 5 + k;\n  }\n"
    "  y[i] = h; }\n";
enum { ADD, COUNT, SPIN, ITERATE, MIX, SLOW, STEPS, N = 500 };

typedef struct scene {
  vk_rig r;
  vyre_recording *rec;
  uint32_t x, y, z; /* slots */
  vyre_buffer buffers[4];
} scene;

static void fill_buffer(scene *s, vyre_buffer buffer, uint32_t value) {
  uint32_t data[N];
  vyre_status st = {0};
  for (int i = 0; i < N; i++) data[i] = value;
  CHECK_OK(vyre_buffer_upload(s->r.device, buffer, 0, data, sizeof data, &st),
           st);
}

static void check_buffer(scene *s, vyre_buffer buffer, uint32_t value) {
  uint32_t data[N];
  vyre_status st = {0};
  CHECK_OK(vyre_buffer_download(s->r.device, buffer, 0, data, sizeof data, &st),
           st);
  for (int i = 0; i < N; i++) CHECK_U64(data[i], value);
}

static void bind(scene *s, uint32_t slot, vyre_buffer buffer) {
  vyre_status st = {0};
  CHECK_OK(vyre_recording_bind_slot(
               s->rec, slot, &(vyre_slot_binding){.buffer = buffer}, &st),
           st);
}

/* Records y += x, y += x, z = y, z += x: four dependent commands. */
static void begin(scene *s, const char *options) {
  vyre_status st = {0};
  *s = (scene){0};
  vk_rig_open(&s->r, options);
  vk_rig_compile(&s->r, kernels);
  for (int i = 0; i < 4; i++) {
    CHECK_OK(vyre_buffer_create(s->r.device, sizeof(uint32_t[N]),
                                &s->buffers[i], &st),
             st);
  }
  CHECK_OK(vyre_recording_create(s->r.device, &s->rec, &st), st);
  CHECK_OK(vyre_recording_add_slot(s->rec, "x", 0, &s->x, &st), st);
  CHECK_OK(vyre_recording_add_slot(s->rec, "y", 0, &s->y, &st), st);
  CHECK_OK(vyre_recording_add_slot(s->rec, "z", 0, &s->z, &st), st);
  vyre_slot_range in[] = {vyre_slot_range_all(s->x), vyre_slot_range_all(s->y)};
  vyre_slot_range to_z[] = {vyre_slot_range_all(s->x),
                            vyre_slot_range_all(s->z)};
  vyre_recorded_dispatch one = {
      .inputs = in, .input_count = 2, .outputs = &in[1], .output_count = 1};
  vyre_recorded_dispatch last = {
      .inputs = to_z, .input_count = 2, .outputs = &to_z[1], .output_count = 1};
  vyre_pipeline *add = s->r.pipelines[ADD];
  CHECK_OK(vyre_recording_add_dispatch(s->rec, add, &one, &st), st);
  CHECK_OK(vyre_recording_add_dispatch(s->rec, add, &one, &st), st);
  CHECK_OK(vyre_recording_add_copy(s->rec, in[1], to_z[1], &st), st);
  CHECK_OK(vyre_recording_add_dispatch(s->rec, add, &last, &st), st);
  CHECK_OK(vyre_recording_seal(s->rec, &st), st);
  fill_buffer(s, s->buffers[0], 3);
  bind(s, s->x, s->buffers[0]);
  bind(s, s->y, s->buffers[1]);
  bind(s, s->z, s->buffers[2]);
}

static void end(scene *s) {
  vyre_recording_release(s->rec);
  vk_rig_close(&s->r);
}

static vyre_replay_result replay(scene *s) {
  vyre_replay_result result;
  vyre_status st = {0};
  CHECK_OK(vyre_recording_replay(
               s->rec, &(vyre_replay_options){.result = &result}, NULL, &st),
           st);
  return result;
}

TEST(an_unchanged_replay_records_nothing) {
  static const char *const configs[] = {"", "vulkan.staging=1",
                                        "vulkan.force_fences=1"};
  for (int w = 0; w < 3; w++) {
    enum { REPLAYS = 1000 };
    scene s;
    begin(&s, configs[w]);
    vyre_replay_result first = replay(&s);
    CHECK_U64(first.dispatches, 3);
    CHECK_U64(first.copies, 1);
    unsigned begins = vk_calls.begins, updates = vk_calls.updates,
             submits = vk_calls.submits;
    for (int i = 1; i < REPLAYS; i++) (void)replay(&s);
    CHECK_U64(vk_calls.begins - begins, 0);
    CHECK_U64(vk_calls.updates - updates, 0);
    CHECK_U64(vk_calls.submits - submits, REPLAYS - 1); /* one per replay */
    check_buffer(&s, s.buffers[1], 2 * 3 * REPLAYS);
    check_buffer(&s, s.buffers[2], 2 * 3 * REPLAYS + 3);
    end(&s);
  }
}

TEST(encodings_of_earlier_bindings_are_kept) {
  scene s;
  begin(&s, "");
  (void)replay(&s);
  unsigned begins = vk_calls.begins;
  bind(&s, s.y, s.buffers[3]);
  (void)replay(&s);
  CHECK_U64(vk_calls.begins, begins + 1);
  for (int i = 0; i < 10; i++) { /* alternates between two encodings */
    bind(&s, s.y, s.buffers[i % 2 ? 3 : 1]);
    (void)replay(&s);
  }
  CHECK_U64(vk_calls.begins, begins + 1);
  check_buffer(&s, s.buffers[1], 6 * 6);
  check_buffer(&s, s.buffers[3], 6 * 6);
  end(&s);
}

TEST(a_new_buffer_in_reused_memory_is_recorded_again) {
  scene s;
  vyre_status st = {0};
  begin(&s, "");
  for (int i = 0; i < 20; i++) {
    (void)replay(&s);
    CHECK_OK(vyre_buffer_destroy(s.r.device, s.buffers[1], &st), st);
    CHECK_OK(
        vyre_buffer_create(s.r.device, sizeof(uint32_t[N]), &s.buffers[1], &st),
        st);
    bind(&s, s.y, s.buffers[1]);
    fill_buffer(&s, s.buffers[1], (uint32_t)i);
    (void)replay(&s);
    check_buffer(&s, s.buffers[1], (uint32_t)i + 6);
  }
  end(&s);
}

/* Host slots are copied in and out in each replay. */
TEST(host_slots_are_read_each_time) {
  static uint32_t x[N], y[N], z[N];
  scene s;
  vyre_status st = {0};
  begin(&s, "");
  const vyre_slot_binding bound[] = {{.data = x, .size = sizeof x},
                                     {.data = y, .size = sizeof y},
                                     {.data = z, .size = sizeof z}};
  CHECK_OK(vyre_recording_bind_slot(s.rec, s.x, &bound[0], &st), st);
  CHECK_OK(vyre_recording_bind_slot(s.rec, s.y, &bound[1], &st), st);
  CHECK_OK(vyre_recording_bind_slot(s.rec, s.z, &bound[2], &st), st);
  for (uint32_t k = 1; k < 9; k++) {
    for (uint32_t i = 0; i < N; i++) {
      x[i] = i * k;
      y[i] = 7;
    }
    (void)replay(&s);
    for (uint32_t i = 0; i < N; i++) {
      CHECK_U64(y[i], 7 + 2 * i * k);
      CHECK_U64(z[i], 7 + 3 * i * k);
    }
  }
  end(&s);
}

/* --- loops ---------------------------------------------------------------- */

/* Large host slots use the staging ring; two items depend on each other. */
TEST(large_host_slots_are_read_and_written_each_time) {
  enum { LARGE = (1 << 20) / 4 };
  static uint32_t x[LARGE], y[LARGE], z[LARGE];
  static const char *const configs[] = {"", "vulkan.staging=1"};
  for (int w = 0; w < 2; w++) {
    scene s;
    vyre_status st = {0};
    begin(&s, configs[w]);
    const vyre_slot_binding bound[] = {{.data = x, .size = sizeof x},
                                       {.data = y, .size = sizeof y},
                                       {.data = z, .size = sizeof z}};
    const uint32_t slots[] = {s.x, s.y, s.z};
    for (int i = 0; i < 3; i++) {
      CHECK_OK(vyre_recording_bind_slot(s.rec, slots[i], &bound[i], &st), st);
    }
    for (uint32_t k = 1; k < 5; k++) {
      for (uint32_t i = 0; i < LARGE; i++) {
        x[i] = i * k;
        y[i] = 7 + i;
        z[i] = 0;
      }
      (void)replay(&s);
      for (uint32_t i = 0; i < LARGE; i++) {
        if (y[i] == 7 + i + 2 * i * k && z[i] == 7 + i + 3 * i * k) continue;
        CHECK_U64(i, LARGE); /* element i is wrong */
      }
    }
    end(&s);
  }
}

/* A recording for any device: while (n[0]) { n[0]--, n[1]++; y = y * a + n[1] +
 * i } */
typedef struct loop_scene {
  vyre_recording *rec;
  vyre_buffer n, y;
} loop_scene;

enum { LOOP_N = 100 };

static void loop_begin(loop_scene *s, vyre_device *device,
                       vyre_pipeline *const *pipelines, uint64_t max,
                       uint32_t check_interval, uint32_t *step) {
  vyre_status st = {0};
  uint32_t n, y, a;
  CHECK_OK(vyre_recording_create(device, &s->rec, &st), st);
  CHECK_OK(vyre_recording_add_slot(s->rec, "n", 8, &n, &st), st);
  CHECK_OK(vyre_recording_add_slot(s->rec, "y", 0, &y, &st), st);
  CHECK_OK(vyre_recording_add_slot(s->rec, "a", 4, &a, &st), st);
  vyre_slot_range pn = vyre_slot_range_all(n);
  vyre_slot_range mix[] = {pn, vyre_slot_range_all(y), vyre_slot_range_all(a)};
  vyre_recorded_dispatch count = {.inputs = &pn,
                                  .input_count = 1,
                                  .outputs = &pn,
                                  .output_count = 1},
                         both = {.inputs = mix,
                                 .input_count = 3,
                                 .outputs = &mix[1],
                                 .output_count = 1};
  CHECK_OK(vyre_recording_begin_while(s->rec, pn, max, check_interval, &st),
           st);
  CHECK_OK(vyre_recording_add_dispatch(s->rec, pipelines[COUNT], &count, &st),
           st);
  CHECK_OK(vyre_recording_add_dispatch(s->rec, pipelines[MIX], &both, &st), st);
  CHECK_OK(vyre_recording_end_while(s->rec, &st), st);
  CHECK_OK(vyre_recording_seal(s->rec, &st), st);
  CHECK_OK(vyre_buffer_create(device, 8, &s->n, &st), st);
  CHECK_OK(vyre_buffer_create(device, UINT64_C(4) * LOOP_N, &s->y, &st), st);
  CHECK_OK(vyre_recording_bind_slot(s->rec, n,
                                    &(vyre_slot_binding){.buffer = s->n}, &st),
           st);
  CHECK_OK(vyre_recording_bind_slot(s->rec, y,
                                    &(vyre_slot_binding){.buffer = s->y}, &st),
           st);
  CHECK_OK(vyre_recording_bind_slot(
               s->rec, a, &(vyre_slot_binding){.data = step, .size = 4}, &st),
           st);
}

typedef struct loop_end {
  vyre_code code;
  vyre_kind kind;
  vyre_replay_result result;
  uint32_t n[2], y[LOOP_N];
} loop_end;

static void loop_run(const loop_scene *s, vyre_device *device,
                     uint32_t iterations, bool max_is_error, loop_end *out) {
  vyre_status st = {0};
  uint32_t zero[LOOP_N] = {0}, words[2] = {iterations, 0};
  memset(out, 0, sizeof *out);
  CHECK_OK(vyre_buffer_upload(device, s->n, 0, words, 8, &st), st);
  CHECK_OK(vyre_buffer_upload(device, s->y, 0, zero, sizeof zero, &st), st);
  out->code =
      vyre_recording_replay(s->rec,
                            &(vyre_replay_options){.result = &out->result,
                                                   .fail_at_max = max_is_error},
                            NULL, &st);
  out->kind = st.kind;
  out->result.wall_ns = out->result.rebuilt = 0;
  st = (vyre_status){0};
  CHECK_OK(vyre_buffer_download(device, s->n, 0, out->n, 8, &st), st);
  CHECK_OK(vyre_buffer_download(device, s->y, 0, out->y, sizeof out->y, &st),
           st);
}

/* Compares all fields except the time. */
static bool is_same_result(const vyre_replay_result *a,
                           const vyre_replay_result *b) {
  return a->dispatches == b->dispatches && a->skipped == b->skipped &&
         a->copies == b->copies && a->skipped_uploads == b->skipped_uploads &&
         a->iterations == b->iterations && a->flag_reads == b->flag_reads &&
         a->rebuilt == b->rebuilt && a->reached_max == b->reached_max;
}

/* Compares bytes and results of replays with the reference, and counts
 * submissions. */
TEST(loops_match_the_reference) {
  static const struct {
    uint64_t max;
    uint32_t check_interval;
  } loops[] = {{100, 4}, {100, 1}, {7, 3},      {6, 3},
               {1, 4},   {3, 64},  {5000, 3000}};
  static const uint32_t iterations[] = {0, 1, 2, 3,  4,   5,
                                        6, 7, 8, 12, 101, 4097};
  static const char *const configs[] = {
      "vulkan.loop_check=1", "vulkan.loop_check=2",
      "vulkan.loop_check=2,vulkan.staging=1",
      "vulkan.loop_check=2,vulkan.push_constants=1", ""};
  static loop_end want, got;
  for (size_t w = 0; w < sizeof configs / sizeof configs[0]; w++) {
    vk_rig r;
    vyre_status st = {0};
    vyre_device *ref;
    vyre_pipeline *pipelines[8] = {0};
    vk_rig_open(&r, configs[w]);
    vk_rig_compile(&r, kernels);
    CHECK_OK(vyre_device_open(r.context, "ref", &ref, &st), st);
    for (size_t i = 0; r.pipelines[i] && i < 8; i++) {
      CHECK_OK(vyre_pipeline_compile(ref, vyre_module_kernel(r.module, i), NULL,
                                     &pipelines[i], NULL, &st),
               st);
    }
    for (size_t l = 0; l < sizeof loops / sizeof loops[0]; l++) {
      loop_scene mine, theirs;
      uint32_t step = 1;
      loop_begin(&mine, r.device, r.pipelines, loops[l].max,
                 loops[l].check_interval, &step);
      loop_begin(&theirs, ref, pipelines, loops[l].max, loops[l].check_interval,
                 &step);
      for (size_t k = 0; k < sizeof iterations / sizeof iterations[0]; k++) {
        if (iterations[k] > 200 && loops[l].max < 200) continue;
        bool is_error = k % 2 == 1;
        step = 3 + (uint32_t)k; /* in host memory: read by each replay */
        loop_run(&theirs, ref, iterations[k], is_error, &want);
        unsigned submits = vk_calls.submits;
        loop_run(&mine, r.device, iterations[k], is_error, &got);
        CHECK(got.code == want.code && got.kind == want.kind);
        CHECK(is_same_result(&got.result, &want.result));
        CHECK(memcmp(got.n, want.n, sizeof got.n) == 0);
        CHECK(memcmp(got.y, want.y, sizeof got.y) == 0);
        bool on_device = r.own->tests_loop_flags && loops[l].check_interval > 1;
        if (r.own->is_unified && on_device && loops[l].check_interval < 100) {
          CHECK_U64(vk_calls.submits - submits, want.result.flag_reads - 1);
        } else if (r.own->is_unified && !on_device && iterations[k] < 13) {
          CHECK(vk_calls.submits - submits >= want.result.iterations);
        }
      }
      vyre_recording_release(mine.rec);
      vyre_recording_release(theirs.rec);
    }
    for (size_t i = 0; i < 8; i++) vyre_pipeline_release(pipelines[i]);
    vyre_device_release(ref);
    vk_rig_close(&r);
  }
}

/* Once recorded, a loop records nothing, also with another number of
 * iterations. */
TEST(an_unchanged_loop_records_nothing) {
  vk_rig r;
  loop_scene s;
  static loop_end got;
  uint32_t step = 1;
  vk_rig_open(&r, "vulkan.loop_check=2");
  vk_rig_compile(&r, kernels);
  CHECK(r.own->tests_loop_flags);
  loop_begin(&s, r.device, r.pipelines, 10, 4, &step);
  loop_run(&s, r.device, 10, false,
           &got); /* command buffers with 4 and 2 iterations */
  unsigned begins = vk_calls.begins, updates = vk_calls.updates;
  for (uint32_t i = 0; i < 200; i++) {
    loop_run(&s, r.device, i % 12, false, &got);
    CHECK_U64(got.result.iterations, i % 12 < 10 ? i % 12 : 10);
  }
  CHECK_U64(vk_calls.begins - begins, 0);
  CHECK_U64(vk_calls.updates - updates, 0);
  vyre_recording_release(s.rec);
  vk_rig_close(&r);
}

/* With unmeasured kernels the first submissions are short. They grow when
 * durations are known, also in loops. */
TEST(first_replays_use_short_submissions) {
  static loop_end got;
  scene s;
  begin(&s,
        /* 20 workgroups of 2 ms; each dispatch has 8 */
        "vulkan.max_submit_ms=40");
  unsigned submits = vk_calls.submits;
  (void)replay(&s);
  CHECK(vk_calls.submits - submits >= 2);
  uint32_t replays = 1, stable = 0; /* converges even on a busy machine */
  for (; replays < 100 && stable < 3; replays++) {
    unsigned begins = vk_calls.begins;
    submits = vk_calls.submits;
    (void)replay(&s);
    bool is_one = vk_calls.begins == begins && vk_calls.submits == submits + 1;
    stable = is_one ? stable + 1 : 0;
  }
  CHECK_U64(stable, 3);
  check_buffer(&s, s.buffers[1], 2 * 3 * replays);
  end(&s);

  vk_rig r;
  loop_scene l;
  uint32_t step = 1;
  vk_rig_open(&r, "vulkan.max_submit_ms=60");
  vk_rig_compile(&r, kernels);
  loop_begin(&l, r.device, r.pipelines, 500, 500, &step);
  for (int i = 0; i < 4;
       i++) { /* 3 workgroups per iteration: 10 iterations at first */
    submits = vk_calls.submits;
    loop_run(&l, r.device, 400, false, &got);
    CHECK_U64(got.result.iterations, 400);
    CHECK_U64(got.n[1], 400);
    unsigned used = vk_calls.submits - submits;
    CHECK(i == 0 ? used >= 2 : used < 400);
  }
  vyre_recording_release(l.rec);
  vk_rig_close(&r);
}

/* The device cannot skip copies, and cannot stop after a failure: the host runs
 * such loops. */
TEST(loops_that_copy_or_can_fail_run_on_the_host) {
  static const struct {
    bool copies;
    int kernel;
  } bodies[] = {{true, COUNT}, {false, SLOW}};
  for (int i = 0; i < 2; i++) {
    vk_rig r;
    vyre_status st = {0};
    vyre_recording *rec;
    vyre_buffer buffers[2];
    uint32_t n, m, words[2] = {5, 0};
    vk_rig_open(&r, "vulkan.loop_check=2");
    vk_rig_compile(&r, kernels);
    CHECK_OK(vyre_recording_create(r.device, &rec, &st), st);
    CHECK_OK(vyre_recording_add_slot(rec, "n", 8, &n, &st), st);
    CHECK_OK(vyre_recording_add_slot(rec, "m", 8, &m, &st), st);
    vyre_slot_range pn = vyre_slot_range_all(n), pm = vyre_slot_range_all(m);
    vyre_recorded_dispatch d = {
        .inputs = &pn, .input_count = 1, .outputs = &pn, .output_count = 1};
    CHECK_OK(vyre_recording_begin_while(rec, pn, 100, 8, &st), st);
    CHECK_OK(vyre_recording_add_dispatch(rec, r.pipelines[bodies[i].kernel], &d,
                                         &st),
             st);
    if (bodies[i].copies)
      CHECK_OK(vyre_recording_add_copy(rec, pn, pm, &st), st);
    CHECK_OK(vyre_recording_end_while(rec, &st), st);
    CHECK_OK(vyre_recording_seal(rec, &st), st);
    for (int k = 0; k < 2; k++) {
      CHECK_OK(vyre_buffer_create(r.device, 8, &buffers[k], &st), st);
      CHECK_OK(vyre_recording_bind_slot(
                   rec, k == 0 ? n : m,
                   &(vyre_slot_binding){.buffer = buffers[k]}, &st),
               st);
    }
    for (int k = 0; k < 3; k++) {
      vyre_replay_result result;
      words[0] = 5;
      words[1] = 0;
      CHECK_OK(vyre_buffer_upload(r.device, buffers[0], 0, words, 8, &st), st);
      unsigned submits = vk_calls.submits;
      CHECK_OK(vyre_recording_replay(
                   rec, &(vyre_replay_options){.result = &result}, NULL, &st),
               st);
      CHECK_U64(result.iterations, 5);
      CHECK_U64(result.skipped, 3);
      CHECK(vk_calls.submits - submits >= 5);
      CHECK_OK(vyre_buffer_download(r.device, buffers[0], 0, words, 8, &st),
               st);
      CHECK_U64(words[1], 5);
    }
    vyre_recording_release(rec);
    vk_rig_close(&r);
  }
}

/* Host memory that the body writes is copied once, after all iterations. */
TEST(loops_write_host_memory_once) {
  enum { MANY = 700 };
  static const char *const configs[] = {
      "vulkan.loop_check=2", "vulkan.staging=1", "vulkan.loop_check=1"};
  for (int w = 0; w < 3; w++) {
    vk_rig r;
    vyre_status st = {0};
    loop_scene s;
    static loop_end end;
    uint32_t y[LOOP_N], want[LOOP_N], step = 3;
    vk_rig_open(&r, configs[w]);
    vk_rig_compile(&r, kernels);
    loop_begin(&s, r.device, r.pipelines, UINT64_C(2) * MANY, MANY, &step);
    CHECK_OK(vyre_recording_bind_slot(
                 s.rec, vyre_recording_find_slot(s.rec, "y"),
                 &(vyre_slot_binding){.data = y, .size = sizeof y}, &st),
             st);
    for (uint32_t pass = 0; pass < 2; pass++) {
      for (uint32_t i = 0; i < LOOP_N; i++) y[i] = want[i] = pass;
      for (uint32_t k = 1; k <= MANY; k++) {
        for (uint32_t i = 0; i < LOOP_N; i++) want[i] = want[i] * step + k + i;
      }
      loop_run(&s, r.device, MANY, false, &end);
      CHECK_U64(end.result.iterations, MANY);
      CHECK(memcmp(y, want, sizeof y) == 0);
    }
    vyre_recording_release(s.rec);
    vk_rig_close(&r);
  }
}

/* --- durations ------------------------------------------------------------ */

/* Runs y = steps(y) several times, with `limit` steps; all in device
 * buffers. */
typedef struct time_scene {
  vk_rig r;
  vyre_recording *rec;
  vyre_buffer limit, y, n;
} time_scene;

static void time_begin(time_scene *s, int dispatches, uint32_t groups,
                       uint32_t check_interval) {
  vyre_status st = {0};
  uint32_t slots[3];
  *s = (time_scene){0};
  vk_rig_open(&s->r, "vulkan.max_submit_ms=1");
  vk_rig_compile(&s->r, kernels);
  vyre_device *device = s->r.device;
  CHECK_OK(vyre_buffer_create(device, 4, &s->limit, &st), st);
  CHECK_OK(vyre_buffer_create(device, UINT64_C(256) * groups, &s->y, &st), st);
  CHECK_OK(vyre_buffer_create(device, 8, &s->n, &st), st);
  CHECK_OK(vyre_recording_create(device, &s->rec, &st), st);
  const vyre_buffer all[] = {s->limit, s->y, s->n};
  for (int i = 0; i < 3; i++) {
    CHECK_OK(
        vyre_recording_add_fixed_slot(
            s->rec, &(vyre_slot_binding){.buffer = all[i]}, &slots[i], &st),
        st);
  }
  vyre_slot_range in[] = {vyre_slot_range_all(slots[0]),
                          vyre_slot_range_all(slots[1])},
                  n = vyre_slot_range_all(slots[2]);
  vyre_recorded_dispatch d = {
      .inputs = in, .input_count = 2, .outputs = &in[1], .output_count = 1};
  vyre_recorded_dispatch count = {.inputs = &n,
                                  .input_count = 1,
                                  .outputs = &n,
                                  .output_count = 1,
                                  .grid = {1}};
  if (check_interval)
    CHECK_OK(vyre_recording_begin_while(s->rec, n, 1000, check_interval, &st),
             st);
  for (int i = 0; i < dispatches; i++) {
    CHECK_OK(
        vyre_recording_add_dispatch(s->rec, s->r.pipelines[STEPS], &d, &st),
        st);
  }
  if (check_interval) {
    CHECK_OK(
        vyre_recording_add_dispatch(s->rec, s->r.pipelines[COUNT], &count, &st),
        st);
    CHECK_OK(vyre_recording_end_while(s->rec, &st), st);
  }
  CHECK_OK(vyre_recording_seal(s->rec, &st), st);
}

static void time_upload(time_scene *s, vyre_buffer to, uint32_t value) {
  vyre_status st = {0};
  CHECK_OK(vyre_buffer_upload(s->r.device, to, 0, &value, 4, &st), st);
}

/* Replays, and returns the number of submissions. */
static unsigned time_replay(time_scene *s) {
  vyre_status st = {0};
  unsigned before = vk_calls.submits;
  CHECK_OK(vyre_recording_replay(s->rec, NULL, NULL, &st), st);
  return vk_calls.submits - before;
}

static uint32_t expected_steps(uint32_t h, uint32_t limit, uint32_t times) {
  for (; times > 0; times--) {
    for (uint32_t k = 0; k < limit; k++) h = h * 5 + k;
  }
  return h;
}

static void time_end(time_scene *s, uint32_t groups, uint32_t want) {
  vyre_status st = {0};
  uint32_t y[64 * 64];
  CHECK_OK(
      vyre_buffer_download(s->r.device, s->y, 0, y, (size_t)256 * groups, &st),
      st);
  for (uint32_t i = 0; i < 64 * groups; i++) CHECK_U64(y[i], want);
  vyre_recording_release(s->rec);
  vk_rig_close(&s->r);
}

/* Also after several identical replays. */
TEST(slower_kernels_are_split_on_later_replays) {
  enum { GROUPS = 64, FAST = 6, SLOW_REPLAYS = 24 };
  for (int dispatches = 1; dispatches < 3; dispatches++) {
    time_scene s;
    unsigned submits = 0;
    time_begin(&s, dispatches, GROUPS, 0);
    time_upload(&s, s.limit, 1);
    for (int i = 0; i < FAST; i++) (void)time_replay(&s);
    time_upload(&s, s.limit, 60000);
    for (int i = 0; i < SLOW_REPLAYS; i++) submits = time_replay(&s);
    CHECK(submits > (unsigned)dispatches);
    uint32_t h = expected_steps(0, 1, (uint32_t)dispatches * FAST);
    time_end(&s, GROUPS,
             expected_steps(h, 60000, (uint32_t)dispatches * SLOW_REPLAYS));
  }
}

/* The kernel is unmeasured at first. */
TEST(slow_loops_use_several_submissions) {
  enum { ITERATIONS = 32 };
  time_scene s;
  time_begin(&s, 1, 1, ITERATIONS);
  time_upload(&s, s.limit, 60000);
  for (int i = 0; i < 2; i++) {
    time_upload(&s, s.n, ITERATIONS);
    CHECK(time_replay(&s) > 4);
  }
  time_end(&s, 1, expected_steps(0, 60000, 2 * ITERATIONS));
}

/* The trip count of a grid loop is recorded; it comes from memory that
 * changes. */
TEST(grid_loops_follow_their_uniform) {
  vk_rig r;
  vyre_status st = {0};
  vyre_recording *rec;
  vyre_buffer buffer;
  uint32_t y, n, count = 0, got[16];
  vk_rig_open(&r, "");
  vk_rig_compile(&r, kernels);
  CHECK_OK(vyre_recording_create(r.device, &rec, &st), st);
  CHECK_OK(vyre_recording_add_slot(rec, "y", 0, &y, &st), st);
  CHECK_OK(vyre_recording_add_slot(rec, "n", 4, &n, &st), st);
  vyre_slot_range in[] = {vyre_slot_range_all(y), vyre_slot_range_all(n)};
  vyre_recorded_dispatch d = {
      .inputs = in, .input_count = 2, .outputs = in, .output_count = 1};
  CHECK_OK(vyre_recording_add_dispatch(rec, r.pipelines[ITERATE], &d, &st), st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  CHECK_OK(vyre_buffer_create(r.device, sizeof got, &buffer, &st), st);
  CHECK_OK(vyre_recording_bind_slot(
               rec, y, &(vyre_slot_binding){.buffer = buffer}, &st),
           st);
  CHECK_OK(vyre_recording_bind_slot(
               rec, n, &(vyre_slot_binding){.data = &count, .size = 4}, &st),
           st);
  uint32_t sum = 0;
  for (count = 0; count < 5; count++) {
    CHECK_OK(vyre_recording_replay(rec, NULL, NULL, &st), st);
    sum += count;
    CHECK_OK(vyre_buffer_download(r.device, buffer, 0, got, sizeof got, &st),
             st);
    CHECK_U64(got[5], sum);
  }
  vyre_recording_release(rec);
  vk_rig_close(&r);
}

/* --- failures ------------------------------------------------------------- */

TEST(items_after_a_failure_do_not_run) {
  vk_rig r;
  vyre_status st = {0};
  vyre_recording *rec;
  vyre_buffer a, b;
  uint32_t sa, sb, words[2] = {1, 0};
  vk_rig_open(&r, "");
  vk_rig_compile(&r, kernels);
  CHECK_OK(vyre_recording_create(r.device, &rec, &st), st);
  CHECK_OK(vyre_recording_add_slot(rec, "a", 8, &sa, &st), st);
  CHECK_OK(vyre_recording_add_slot(rec, "b", 8, &sb, &st), st);
  vyre_slot_range pa[] = {vyre_slot_range_all(sa)},
                  pb[] = {vyre_slot_range_all(sb)};
  vyre_recorded_dispatch first = {.inputs = pb,
                                  .input_count = 1,
                                  .outputs = pb,
                                  .output_count = 1},
                         endless = {.inputs = pa,
                                    .input_count = 1,
                                    .outputs = pa,
                                    .output_count = 1,
                                    .max_loop_iterations = 100};
  CHECK_OK(vyre_recording_add_dispatch(rec, r.pipelines[COUNT], &first, &st),
           st);
  CHECK_OK(vyre_recording_add_dispatch(rec, r.pipelines[SPIN], &endless, &st),
           st);
  CHECK_OK(vyre_recording_add_dispatch(rec, r.pipelines[COUNT], &first, &st),
           st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  CHECK_OK(vyre_buffer_create(r.device, 8, &a, &st), st);
  CHECK_OK(vyre_buffer_create(r.device, 8, &b, &st), st);
  CHECK_OK(vyre_buffer_upload(r.device, a, 0, words, 8, &st), st);
  CHECK_OK(
      vyre_recording_bind_slot(rec, sa, &(vyre_slot_binding){.buffer = a}, &st),
      st);
  CHECK_OK(
      vyre_recording_bind_slot(rec, sb, &(vyre_slot_binding){.buffer = b}, &st),
      st);
  for (uint32_t i = 1; i < 4; i++) {
    st = (vyre_status){0};
    CHECK_FAILS(vyre_recording_replay(rec, NULL, NULL, &st), st,
                VYRE_DISPATCH_FAILED, VYRE_KIND_OUT_OF_FUEL);
    CHECK_U64(status_number(&st, "command"), 1);
    st = (vyre_status){0};
    CHECK_OK(vyre_buffer_download(r.device, b, 0, words, 8, &st), st);
    CHECK_U64(words[1], i); /* only the first item ran */
  }
  words[0] = words[1] = 0; /* the loop ends at once, so all items run */
  CHECK_OK(vyre_buffer_upload(r.device, a, 0, words, 8, &st), st);
  CHECK_OK(vyre_recording_replay(rec, NULL, NULL, &st), st);
  CHECK_OK(vyre_buffer_download(r.device, b, 0, words, 8, &st), st);
  CHECK_U64(words[1], 5);
  vyre_recording_release(rec);
  vk_rig_close(&r);
}

/* --- threads -------------------------------------------------------------- */

static void *replay_often(void *self) {
  vyre_status st = {0};
  for (int i = 0; i < 50; i++) {
    if (vyre_recording_replay(
            self, &(vyre_replay_options){.wait_for_conflicts = true}, NULL,
            &st) != VYRE_OK) {
      return self;
    }
  }
  return NULL;
}

TEST(replays_from_many_threads) {
  enum { THREADS = 4 };
  scene s;
  pthread_t threads[THREADS];
  begin(&s, "");
  (void)replay(&s);
  unsigned begins = vk_calls.begins;
  for (int i = 0; i < THREADS; i++) {
    CHECK(pthread_create(&threads[i], NULL, replay_often, s.rec) == 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *failed;
    CHECK(pthread_join(threads[i], &failed) == 0);
    CHECK(failed == NULL);
  }
  CHECK_U64(vk_calls.begins, begins);
  check_buffer(&s, s.buffers[1], 6 * (1 + 50 * THREADS));
  end(&s);
}

/* --- overlapping replays -------------------------------------------------- */

/* Fence callback that blocks the thread of the queue. */
static void block_queue(void *self, vyre_fence *fence) {
  atomic_bool *may_end = self;
  (void)fence;
  for (int i = 0; i < 10000 && !atomic_load(may_end); i++) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
}

/* Requests replays before the first one runs, each with other buffers. Each
 * gets its own commands, which later replays reuse. */
TEST(replays_in_flight_have_separate_commands) {
  enum { REPLAYS = 3, ITERATIONS = 4 };
  scene s;
  vyre_buffer y[REPLAYS], z[REPLAYS];
  vyre_status st = {0};
  begin(&s, "");
  for (int i = 0; i < REPLAYS; i++) {
    CHECK_OK(vyre_buffer_create(s.r.device, sizeof(uint32_t[N]), &y[i], &st),
             st);
    CHECK_OK(vyre_buffer_create(s.r.device, sizeof(uint32_t[N]), &z[i], &st),
             st);
  }
  for (uint32_t pass = 0; pass < ITERATIONS; pass++) {
    atomic_bool may_end = false;
    vyre_fence *stop, *fences[REPLAYS];
    vyre_input in[] = {vyre_input_buffer(s.buffers[0]),
                       vyre_input_buffer(s.buffers[3])};
    vyre_output out = vyre_output_buffer(s.buffers[3]);
    vyre_dispatch_desc d = {
        .inputs = in, .input_count = 2, .outputs = &out, .output_count = 1};
    CHECK_OK(vyre_dispatch(s.r.pipelines[ADD], &d, &st), st); /* encodes it */
    CHECK_OK(vyre_submit(s.r.pipelines[ADD], &d, 1, &stop, &st), st);
    CHECK_OK(vyre_fence_set_callback(stop, block_queue, &may_end, &st), st);
    unsigned begins = vk_calls.begins, updates = vk_calls.updates;
    for (int i = 0; i < REPLAYS; i++) {
      bind(&s, s.y, y[i]);
      bind(&s, s.z, z[i]);
      CHECK_OK(vyre_recording_replay(s.rec, NULL, &fences[i], &st), st);
    }
    atomic_store(&may_end, true);
    for (int i = 0; i < REPLAYS; i++) {
      CHECK_OK(vyre_fence_wait(fences[i], VYRE_WAIT_FOREVER, &st), st);
      vyre_fence_release(fences[i]);
      check_buffer(&s, y[i], 6 * (pass + 1));
      check_buffer(&s, z[i], 6 * (pass + 1) + 3);
    }
    vyre_fence_release(stop);
    if (pass == 0) CHECK_U64(vk_calls.begins - begins, REPLAYS);
    if (pass > 1) {
      CHECK_U64(vk_calls.begins - begins, 0);
      CHECK_U64(vk_calls.updates - updates, 0);
    }
  }
  end(&s);
}

/* Lets waits return only when two threads wait: both replays are in flight
 * then. */
static atomic_int waiting;
static atomic_bool is_meeting;

static VKAPI_ATTR VkResult VKAPI_CALL wait_for_two(
    VkDevice device, const VkSemaphoreWaitInfo *info, uint64_t timeout) {
  if (atomic_load(&is_meeting)) {
    atomic_fetch_add(&waiting, 1);
    for (int i = 0; i < 10000 && atomic_load(&waiting) < 2; i++) {
      nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
  }
  return vk_calls.real.WaitSemaphores(device, info, timeout);
}

static void patch_wait(vk_api *api) {
  vk_patch(api);
  if (api->WaitSemaphores) api->WaitSemaphores = wait_for_two;
}

/* Simulates a slow device. */
static atomic_bool is_slow;

static VKAPI_ATTR VkResult VKAPI_CALL wait_longer(
    VkDevice device, const VkSemaphoreWaitInfo *info, uint64_t timeout) {
  if (atomic_load(&is_slow)) {
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
  }
  return vk_calls.real.WaitSemaphores(device, info, timeout);
}

static void patch_slow(vk_api *api) {
  vk_patch(api);
  if (api->WaitSemaphores) api->WaitSemaphores = wait_longer;
}

/* Also after several replays of normal duration. */
TEST(overlong_submissions_are_recorded_again) {
  scene s;
  vyre__vk_hooks.patch_device = patch_slow;
  begin(&s, "vulkan.max_submit_ms=100");
  vyre__vk_hooks.patch_device = vk_patch;
  for (int i = 0; i < 3; i++) (void)replay(&s);
  atomic_store(&is_slow, s.r.own->timeline != VK_NULL_HANDLE);
  (void)replay(&s);
  unsigned begins = vk_calls.begins;
  if (atomic_exchange(&is_slow, false)) {
    (void)replay(&s);
    CHECK(vk_calls.begins - begins > 0);
  }
  end(&s);
}

static void *replay_once(void *self) {
  return vyre_recording_replay(self, NULL, NULL, NULL) == VYRE_OK ? NULL : self;
}

TEST(two_replays_of_a_recording_overlap) {
  scene s;
  vyre_status st = {0};
  vyre_buffer y, z;
  pthread_t thread;
  void *failed;
  vyre__vk_hooks.patch_device = patch_wait;
  begin(&s, "");
  vyre__vk_hooks.patch_device = vk_patch;
  CHECK_OK(vyre_buffer_create(s.r.device, sizeof(uint32_t[N]), &y, &st), st);
  CHECK_OK(vyre_buffer_create(s.r.device, sizeof(uint32_t[N]), &z, &st), st);
  (void)replay(&s);
  unsigned begins = vk_calls.begins;
  atomic_store(&waiting, 0);
  atomic_store(&is_meeting, s.r.own->timeline != VK_NULL_HANDLE);
  CHECK(pthread_create(&thread, NULL, replay_once, s.rec) == 0);
  while (atomic_load(&is_meeting) && atomic_load(&waiting) == 0) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  bind(&s, s.y, y); /* the other replay still writes z */
  if (atomic_load(&is_meeting)) {
    CHECK_FAILS(vyre_recording_replay(s.rec, NULL, NULL, &st), st,
                VYRE_INVALID_ARGUMENT, VYRE_KIND_RESOURCE_BUSY);
    CHECK_HAS(st.message, "slot 'z'");
    CHECK_U64(status_number(&st, "device_buffer"), s.buffers[2].id);
    st = (vyre_status){0};
  }
  bind(&s, s.z, z);
  CHECK_OK(vyre_recording_replay(s.rec, NULL, NULL, &st), st);
  CHECK(pthread_join(thread, &failed) == 0);
  CHECK(failed == NULL);
  atomic_store(&is_meeting, false);
  CHECK_U64(vk_calls.begins - begins, 1); /* commands of the second replay */
  check_buffer(&s, s.buffers[1], 12);
  check_buffer(&s, s.buffers[2], 15);
  check_buffer(&s, y, 6);
  check_buffer(&s, z, 9);
  end(&s);
}

VK_TEST_MAIN(TEST_ENTRY(an_unchanged_replay_records_nothing),
             TEST_ENTRY(encodings_of_earlier_bindings_are_kept),
             TEST_ENTRY(a_new_buffer_in_reused_memory_is_recorded_again),
             TEST_ENTRY(host_slots_are_read_each_time),
             TEST_ENTRY(large_host_slots_are_read_and_written_each_time),
             TEST_ENTRY(loops_match_the_reference),
             TEST_ENTRY(an_unchanged_loop_records_nothing),
             TEST_ENTRY(first_replays_use_short_submissions),
             TEST_ENTRY(loops_that_copy_or_can_fail_run_on_the_host),
             TEST_ENTRY(loops_write_host_memory_once),
             TEST_ENTRY(slower_kernels_are_split_on_later_replays),
             TEST_ENTRY(slow_loops_use_several_submissions),
             TEST_ENTRY(grid_loops_follow_their_uniform),
             TEST_ENTRY(items_after_a_failure_do_not_run),
             TEST_ENTRY(replays_from_many_threads),
             TEST_ENTRY(replays_in_flight_have_separate_commands),
             TEST_ENTRY(overlong_submissions_are_recorded_again),
             TEST_ENTRY(two_replays_of_a_recording_overlap))
