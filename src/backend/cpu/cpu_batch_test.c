/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Batches and recordings: the results are those of single dispatches, whatever
 * the sizes of the items and however they end. */
#include "vyre/vyre.h"

#include "support/check.h"
#include "support/parse.h"

enum { FEW = 64, MANY = 1 << 18, ITEMS = 100 };
enum { STEP, THIRDS, LOOP, GROWING, TURNS, KERNELS };

static const char text[] =
    /* y = 3 y + k */
    "kernel step workgroup(64) over(y)\n"
    "buffer y : read_write u32[] @0;\nuniform k : u32 @1;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = y[i] * 3 + k; }\n"
    /* divides its input by three */
    "kernel thirds workgroup(64) over(z)\n"
    "buffer z : write u32[] @0;\nuniform k : u32 @1;\n"
    "{ let i = global_id.x; if (i < len(z) && i % 3 == 1) z[i] = i + k; }\n"
    /* k iterations, unknown at compile time */
    "kernel loop workgroup(64) over(y)\n"
    "buffer y : read_write u32[] @0;\nuniform k : u32 @1;\n"
    "{\n  var n = 0u;\n  while (n < k) { for (let i = 0u; i < k; i++) "
    "{ n += select(y[0] == 77, 0u, 1u); } }\n  y[global_id.x] = n;\n}\n"
    /* starts as zero and grows from launch to launch */
    "kernel growing workgroup(64) over(y)\n"
    "buffer y : read_write u32[] @0 output;\nuniform k : u32 @1;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] += k; }\n"
    /* k iterations that do not depend on its input */
    "kernel turns workgroup(64) over(z)\n"
    "buffer z : write u32[] @0;\nuniform k : u32 @1;\n"
    "{\n  var n = 0u;\n  while (n < k) { n += select(k == 7777, 0u, 1u); }\n"
    "  z[global_id.x] = n;\n}\n";

typedef struct rig {
  vyre_context *context;
  vyre_device *device;
  vyre_module *module;
  vyre_pipeline *kernels[KERNELS];
} rig;

static void rig_open(rig *r, uint32_t threads) {
  vyre_status st = {0};
  char own[32];
  snprintf(own, sizeof own, "cpu.threads=%u", (unsigned)threads);
  vyre_context_options options = {.cache_directory = "",
                                  .trace_file = "",
                                  .faults = "",
                                  .backend_options = own};
  *r = (rig){0};
  CHECK_OK(vyre_context_create(&options, &r->context, &st), st);
  CHECK_OK(vyre_device_open(r->context, "cpu", &r->device, &st), st);
  r->module = parse_module(text);
  for (size_t i = 0; i < KERNELS; i++) {
    CHECK_OK(vyre_pipeline_compile(r->device, vyre_module_kernel(r->module, i),
                                   NULL, &r->kernels[i], NULL, &st),
             st);
  }
}

static void rig_close(rig *r) {
  for (size_t i = 0; i < KERNELS; i++) vyre_pipeline_release(r->kernels[i]);
  vyre_module_release(r->module);
  vyre_device_release(r->device);
  vyre_context_release(r->context);
}

/* Items of a batch, all with the same kernel. */
typedef struct batch {
  vyre_dispatch_desc items[ITEMS];
  vyre_input inputs[ITEMS][2];
  vyre_output outputs[ITEMS];
  vyre_code results[ITEMS];
  uint32_t k[ITEMS];
} batch;

static void in_place(batch *b, size_t i, uint32_t *y, size_t size, uint32_t k) {
  b->k[i] = k;
  b->inputs[i][0] = vyre_input_bytes(y, size);
  b->inputs[i][1] = vyre_input_bytes(&b->k[i], 4);
  b->outputs[i] = vyre_output_bytes(y, size);
  b->items[i] = (vyre_dispatch_desc){.inputs = b->inputs[i],
                                     .input_count = 2,
                                     .outputs = &b->outputs[i],
                                     .output_count = 1,
                                     .result = &b->results[i]};
}

/* Adds an item whose only input is a uniform. */
static void outwards(batch *b, size_t i, uint32_t *z, size_t size, uint32_t k) {
  in_place(b, i, z, size, k);
  b->inputs[i][0] = b->inputs[i][1];
  b->items[i].input_count = 1;
}

/* --- batches ---------------------------------------------------------------*/

static uint32_t memory[MANY];

TEST(items_read_results_of_earlier_items) {
  static const size_t lengths[] = {1, FEW, 1000, MANY};
  static batch b;
  for (uint32_t threads = 1; threads <= 5; threads += 2) {
    rig r;
    rig_open(&r, threads);
    for (int l = 0; l < 4; l++) {
      vyre_status st = {0};
      vyre_buffer y;
      size_t size = lengths[l] * 4;
      uint32_t want = 0;
      CHECK_OK(vyre_buffer_create(r.device, size, &y, &st), st);
      for (uint32_t i = 0; i < ITEMS; i++) {
        in_place(&b, i, NULL, 0, i);
        b.inputs[i][0] = vyre_input_buffer(y);
        b.outputs[i] = vyre_output_buffer(y);
        want = want * 3 + i;
      }
      CHECK_OK(vyre_submit(r.kernels[STEP], b.items, ITEMS, NULL, &st), st);
      CHECK_OK(vyre_buffer_download(r.device, y, 0, memory, size, &st), st);
      for (size_t i = 0; i < lengths[l]; i++) CHECK_U64(memory[i], want);
      CHECK_OK(vyre_buffer_destroy(r.device, y, &st), st);
    }
    rig_close(&r);
  }
}

/* Data cached from the batch before must not be used for other arguments. */
TEST(repeated_and_changed_batches_are_told_apart) {
  static uint32_t y[ITEMS + 1][FEW], want[ITEMS + 1];
  static batch b;
  rig r;
  rig_open(&r, 2);
  memset(y, 0, sizeof y);
  memset(want, 0, sizeof want);
  for (uint32_t i = 0; i < ITEMS; i++) {
    in_place(&b, i, y[i], sizeof y[i], i + 1);
  }
  for (uint32_t round = 0; round < 12; round++) {
    vyre_status st = {0};
    size_t count = round % 4 == 3 ? ITEMS / 2 : ITEMS;
    if (round ==
        6) { /* other memory for one item, another number for another */
      in_place(&b, 40, y[ITEMS], sizeof y[0], 41);
      b.k[41] = 1000;
    }
    if (round == 8) b.inputs[42][0].size = b.outputs[42].size = 4;
    CHECK_OK(vyre_submit(r.kernels[STEP], b.items, count, NULL, &st), st);
    for (size_t i = 0; i < count; i++) {
      size_t at = i == 40 && round >= 6 ? ITEMS : i;
      want[at] = want[at] * 3 + b.k[i];
      CHECK_U64(y[at][0], want[at]);
      if (i != 42 || round < 8) CHECK_U64(y[at][FEW - 1], want[at]);
      CHECK(b.results[i] == VYRE_OK);
    }
  }
  CHECK(y[42][FEW - 1] != y[42][0]);
  rig_close(&r);
}

static void check_thirds(const uint32_t *z, size_t length, uint32_t k) {
  for (size_t i = 0; i < length; i++) {
    CHECK_U64(z[i], i % 3 == 1 ? (uint32_t)i + k : 0);
  }
}

TEST(old_contents_of_an_output_are_not_visible) {
  static const size_t lengths[] = {1, 63, 1000, MANY - 5};
  static batch b;
  for (uint32_t threads = 1; threads <= 3; threads += 2) {
    rig r;
    rig_open(&r, threads);
    for (int l = 0; l < 4; l++) {
      vyre_status st = {0};
      size_t size = lengths[l] * 4;
      vyre_host_buffer host_buffers[3] = {{0}};
      vyre_buffer kept[2];
      CHECK_OK(vyre_buffer_create(r.device, size, &kept[0], &st), st);
      for (int round = 0; round < 3; round++) {
        memset(memory, 0xee, size);
        for (int i = 0; i < 3; i++) {
          if (host_buffers[i].data) memset(host_buffers[i].data, 0xee, size);
        }
        outwards(&b, 0, memory, size, 5);
        for (size_t i = 1; i < 6; i++) {
          outwards(&b, i, NULL, size, (uint32_t)i);
          if (i < 4)
            b.outputs[i] = vyre_output_host_buffer(&host_buffers[i - 1], size);
        }
        b.outputs[4] = vyre_output_buffer(kept[0]);
        b.outputs[5] = vyre_output_new_buffer(&kept[1], size);
        CHECK_OK(vyre_submit(r.kernels[THIRDS], b.items, 6, NULL, &st), st);
        check_thirds(memory, lengths[l], 5);
        for (uint32_t i = 0; i < 3; i++) {
          check_thirds(host_buffers[i].data, lengths[l], i + 1);
        }
        for (uint32_t i = 0; i < 2; i++) {
          CHECK_OK(
              vyre_buffer_download(r.device, kept[i], 0, memory, size, &st),
              st);
          check_thirds(memory, lengths[l], i + 4);
        }
        CHECK_OK(vyre_buffer_destroy(r.device, kept[1], &st), st);
      }
      CHECK_OK(vyre_buffer_destroy(r.device, kept[0], &st), st);
      for (int i = 0; i < 3; i++) vyre_host_buffer_deinit(&host_buffers[i]);
    }
    rig_close(&r);
  }
}

TEST(only_the_first_launch_clears_outputs) {
  static const size_t lengths[] = {FEW, MANY};
  static batch b;
  rig r;
  rig_open(&r, 2);
  for (int l = 0; l < 2; l++) {
    for (int round = 0; round < 2; round++) {
      vyre_status st = {0};
      outwards(&b, 0, memory, lengths[l] * 4, 7);
      b.items[0].has_repeat_count = true;
      b.items[0].repeat_count = 4;
      CHECK_OK(vyre_dispatch(r.kernels[GROWING], &b.items[0], &st), st);
      for (size_t i = 0; i < lengths[l]; i++) CHECK_U64(memory[i], 28);
    }
  }
  rig_close(&r);
}

TEST(items_after_a_failure_do_not_run) {
  static uint32_t y[ITEMS][FEW];
  static batch b;
  rig r;
  rig_open(&r, 2);
  for (size_t bad = 0; bad < 80; bad += 33) {
    vyre_status st = {0};
    memset(y, 0xee, sizeof y);
    for (size_t i = 0; i < ITEMS; i++) {
      in_place(&b, i, y[i], sizeof y[i], i == bad ? 100 : 3);
      b.items[i].max_loop_iterations = 50;
    }
    CHECK_FAILS(vyre_submit(r.kernels[LOOP], b.items, ITEMS, NULL, &st), st,
                VYRE_DISPATCH_FAILED, VYRE_KIND_OUT_OF_FUEL);
    CHECK_U64(status_number(&st, "item"), bad);
    for (size_t i = 0; i < ITEMS; i++) {
      if (i < bad) CHECK_U64(y[i][5], 3);
      if (i > bad) CHECK_U64(y[i][5], 0xeeeeeeee);
      CHECK(b.results[i] == (i < bad    ? VYRE_OK
                             : i == bad ? VYRE_DISPATCH_FAILED
                                        : VYRE_NOT_RUN));
    }
  }
  rig_close(&r);
}

TEST(outputs_that_are_not_reached_are_not_even_cleared) {
  static batch b;
  static uint32_t z[8][FEW];
  rig r;
  rig_open(&r, 2);
  vyre_status st = {0};
  memset(z, 0xee, sizeof z);
  for (uint32_t i = 0; i < 8; i++) {
    outwards(&b, i, z[i], sizeof z[i], i == 3 ? 100 : 6);
    b.items[i].max_loop_iterations = 50;
  }
  CHECK_FAILS(vyre_submit(r.kernels[TURNS], b.items, 8, NULL, &st), st,
              VYRE_DISPATCH_FAILED, VYRE_KIND_OUT_OF_FUEL);
  for (int i = 0; i < 3; i++) CHECK_U64(z[i][FEW - 1], 6);
  for (int i = 4; i < 8; i++) CHECK_U64(z[i][FEW - 1], 0xeeeeeeee);
  rig_close(&r);
}

/* Host buffers report a failing item in the same way as a single dispatch. */
TEST(a_failing_item_reports_host_buffers_like_a_single_dispatch) {
  enum { TOGETHER = 8, BAD = 5 };
  static batch b;
  vyre_host_buffer host_buffers[TOGETHER] = {{0}};
  vyre_output_stats stats[TOGETHER], alone = {0};
  rig r;
  rig_open(&r, 2);
  for (int round = 0; round < 3; round++) {
    vyre_status st = {0};
    memset(stats, 0, sizeof stats);
    for (uint32_t i = 0; i < TOGETHER; i++) {
      outwards(&b, i, NULL, 0, i == BAD && round > 0 ? 100 : 6);
      b.outputs[i] =
          vyre_output_host_buffer(&host_buffers[i], FEW * sizeof(uint32_t));
      b.items[i].max_loop_iterations = 50;
      b.items[i].output_stats = &stats[i];
    }
    vyre_code code =
        vyre_submit(r.kernels[TURNS], b.items, TOGETHER, NULL, &st);
    CHECK(code == (round > 0 ? VYRE_DISPATCH_FAILED : VYRE_OK));
    if (round == 0) continue; /* the host buffers grow in the first round */
    st = (vyre_status){0};
    alone = (vyre_output_stats){0};
    b.items[BAD].output_stats = &alone;
    CHECK_FAILS(vyre_dispatch(r.kernels[TURNS], &b.items[BAD], &st), st,
                VYRE_DISPATCH_FAILED, VYRE_KIND_OUT_OF_FUEL);
    CHECK_U64(alone.filled, 1);
    for (uint32_t i = 0; i < TOGETHER; i++) {
      static const vyre_output_stats none;
      CHECK(memcmp(&stats[i], i <= BAD ? &alone : &none, sizeof alone) == 0);
    }
  }
  for (int i = 0; i < TOGETHER; i++) vyre_host_buffer_deinit(&host_buffers[i]);
  rig_close(&r);
}

TEST(a_batch_counts_as_its_items_do) {
  static uint32_t y[ITEMS][FEW];
  static batch b;
  vyre_counters counters[3];
  rig r;
  rig_open(&r, 2);
  for (size_t i = 0; i < ITEMS; i++) in_place(&b, i, y[i], sizeof y[i], 1);
  vyre_counters_read(r.device, &counters[0]);
  for (int round = 0; round < 3; round++) {
    vyre_status st = {0};
    CHECK_OK(vyre_submit(r.kernels[STEP], b.items, ITEMS, NULL, &st), st);
  }
  vyre_counters_read(r.device, &counters[1]);
  for (int i = 0; i < 3 * ITEMS; i++) {
    vyre_status st = {0};
    CHECK_OK(vyre_dispatch(r.kernels[STEP], &b.items[i % ITEMS], &st), st);
  }
  vyre_counters_read(r.device, &counters[2]);
#define VYRE_X4(field, metric, labels, help)       \
  CHECK_U64(counters[1].field - counters[0].field, \
            counters[2].field - counters[1].field);
  VYRE_COUNTER_MAP(VYRE_X4)
#undef VYRE_X4
  CHECK_U64(counters[1].launches - counters[0].launches, UINT64_C(3) * ITEMS);
  rig_close(&r);
}

/* --- recordings ------------------------------------------------------------*/

static uint32_t fixed(vyre_recording *rec, vyre_slot_binding resource) {
  vyre_status st = {0};
  uint32_t slot;
  CHECK_OK(vyre_recording_add_fixed_slot(rec, &resource, &slot, &st), st);
  return slot;
}

typedef struct chain {
  vyre_recording *rec;
  vyre_slot_range y, z;
  uint32_t k[ITEMS];
} chain;

static void record(chain *c, vyre_pipeline *kernel, uint32_t i, uint32_t k,
                   const vyre_slot_range *to) {
  vyre_status st = {0};
  bool is_out = to == &c->z;
  c->k[i] = k;
  vyre_slot_range number = vyre_slot_range_all(
      fixed(c->rec, (vyre_slot_binding){.data = &c->k[i], .size = 4}));
  vyre_slot_range in[] = {is_out ? number : *to, number};
  vyre_recorded_dispatch d = {.inputs = in,
                              .input_count = is_out ? 1 : 2,
                              .outputs = to,
                              .output_count = 1,
                              .max_loop_iterations = 50};
  CHECK_OK(vyre_recording_add_dispatch(c->rec, kernel, &d, &st), st);
}

TEST(a_recording_equals_its_dispatches) {
  static const size_t lengths[] = {FEW, MANY};
  static uint32_t z[MANY];
  static chain c;
  for (uint32_t threads = 1; threads <= 3; threads += 2) {
    for (int l = 0; l < 2; l++) {
      rig r;
      rig_open(&r, threads);
      vyre_status st = {0};
      vyre_buffer y;
      size_t size = lengths[l] * 4;
      uint32_t want = 0;
      CHECK_OK(vyre_buffer_create(r.device, size, &y, &st), st);
      CHECK_OK(vyre_recording_create(r.device, &c.rec, &st), st);
      c.y = vyre_slot_range_all(fixed(c.rec, (vyre_slot_binding){.buffer = y}));
      c.z = vyre_slot_range_all(
          fixed(c.rec, (vyre_slot_binding){.data = z, .size = size}));
      for (uint32_t i = 0; i < ITEMS; i++) {
        bool is_out = i % 10 == 9;
        record(&c, r.kernels[is_out ? THIRDS : STEP], i, i,
               is_out ? &c.z : &c.y);
      }
      CHECK_OK(vyre_recording_seal(c.rec, &st), st);
      for (int round = 0; round < 3; round++) {
        vyre_replay_result result;
        vyre_replay_options options = {.result = &result};
        memset(z, 0xee, size);
        CHECK_OK(vyre_recording_replay(c.rec, &options, NULL, &st), st);
        CHECK_U64(result.dispatches, ITEMS);
        for (uint32_t i = 0; i < ITEMS; i++) {
          if (i % 10 != 9) want = want * 3 + i;
        }
        CHECK_OK(vyre_buffer_download(r.device, y, 0, memory, size, &st), st);
        for (size_t i = 0; i < lengths[l]; i++) CHECK_U64(memory[i], want);
        check_thirds(z, lengths[l], 99);
      }
      vyre_recording_release(c.rec);
      CHECK_OK(vyre_buffer_destroy(r.device, y, &st), st);
      rig_close(&r);
    }
  }
}

TEST(a_recording_names_the_command_that_failed) {
  static const uint32_t bad[] = {0, 1, 40, 99};
  static chain c;
  static uint32_t y[FEW];
  rig r;
  rig_open(&r, 2);
  for (int k = 0; k < 4; k++) {
    vyre_status st = {0};
    vyre_replay_result result;
    vyre_replay_options options = {.result = &result};
    CHECK_OK(vyre_recording_create(r.device, &c.rec, &st), st);
    c.y = vyre_slot_range_all(
        fixed(c.rec, (vyre_slot_binding){.data = y, .size = sizeof y}));
    for (uint32_t i = 0; i < ITEMS; i++) {
      record(&c, r.kernels[LOOP], i, i == bad[k] ? 100 : 3, &c.y);
    }
    CHECK_OK(vyre_recording_seal(c.rec, &st), st);
    CHECK_FAILS(vyre_recording_replay(c.rec, &options, NULL, &st), st,
                VYRE_DISPATCH_FAILED, VYRE_KIND_OUT_OF_FUEL);
    CHECK_U64(status_number(&st, "command"), bad[k]);
    CHECK_U64(result.dispatches, bad[k]);
    vyre_recording_release(c.rec);
  }
  rig_close(&r);
}

/* --- deadlines -------------------------------------------------------------*/

/* Long enough for short work on a busy machine. */
enum { SOON_NS = 300000000, AT_ONCE = 3, FOREVER = 4000000000u };

static void check_usable(rig *r) {
  static batch b;
  vyre_status st = {0};
  memset(memory, 0, FEW * sizeof *memory);
  in_place(&b, 0, memory, FEW * sizeof *memory, 9);
  CHECK_OK(vyre_dispatch(r->kernels[STEP], &b.items[0], &st), st);
  CHECK_U64(memory[FEW - 1], 9);
}

/* y[0] of 77 makes the inner loop of `loop` run k times k iterations. */
TEST(an_item_that_never_ends_ends_at_its_timeout) {
  static uint32_t y[8][FEW];
  static batch b;
  rig r;
  rig_open(&r, 2);
  for (int with_fence = 0; with_fence < 2; with_fence++) {
    vyre_status st = {0};
    vyre_fence *fence = NULL;
    for (uint32_t i = 0; i < 8; i++) {
      y[i][0] = i == 5 ? 77 : 0;
      in_place(&b, i, y[i], sizeof y[i], i == 5 ? FOREVER : AT_ONCE);
      b.items[i].is_borrowed = true;
      if (i > 3) b.items[i].timeout_ns = SOON_NS;
    }
    vyre_code code = vyre_submit(r.kernels[LOOP], b.items, 8,
                                 with_fence ? &fence : NULL, &st);
    if (fence) {
      CHECK_OK(code, st);
      code = vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st);
      vyre_fence_release(fence);
    }
    CHECK_FAILS(code, st, VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT);
    CHECK_U64(status_number(&st, "item"), 5);
    CHECK_U64(y[4][1], 3);
    CHECK(b.results[6] == VYRE_NOT_RUN);
    check_usable(&r);
  }
  rig_close(&r);
}

TEST(a_replay_that_never_ends_ends_at_its_timeout) {
  static chain c;
  static uint32_t y[FEW], other[FEW];
  rig r;
  rig_open(&r, 2);
  for (int with_fence = 0; with_fence < 2; with_fence++) {
    vyre_status st = {0};
    vyre_fence *fence = NULL;
    vyre_replay_options options = {.timeout_ns = SOON_NS};
    y[0] = 77;
    CHECK_OK(vyre_recording_create(r.device, &c.rec, &st), st);
    c.y = vyre_slot_range_all(
        fixed(c.rec, (vyre_slot_binding){.data = y, .size = sizeof y}));
    vyre_slot_range free_one = vyre_slot_range_all(
        fixed(c.rec, (vyre_slot_binding){.data = other, .size = sizeof other}));
    for (uint32_t i = 0; i < 6; i++) {
      record(&c, r.kernels[LOOP], i, AT_ONCE, &free_one);
    }
    vyre_slot_range number = vyre_slot_range_all(
        fixed(c.rec, (vyre_slot_binding){.data = &c.k[9], .size = 4}));
    vyre_slot_range in[] = {c.y, number};
    vyre_recorded_dispatch d = {
        .inputs = in, .input_count = 2, .outputs = &c.y, .output_count = 1};
    c.k[9] = FOREVER;
    CHECK_OK(vyre_recording_add_dispatch(c.rec, r.kernels[LOOP], &d, &st), st);
    CHECK_OK(vyre_recording_seal(c.rec, &st), st);
    vyre_code code =
        vyre_recording_replay(c.rec, &options, with_fence ? &fence : NULL, &st);
    if (fence) {
      CHECK_OK(code, st);
      code = vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st);
      vyre_fence_release(fence);
    }
    CHECK_FAILS(code, st, VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT);
    CHECK_U64(status_number(&st, "command"), 6);
    vyre_recording_release(c.rec);
    check_usable(&r);
  }
  rig_close(&r);
}

TEST_MAIN(
    TEST_ENTRY(items_read_results_of_earlier_items),
    TEST_ENTRY(repeated_and_changed_batches_are_told_apart),
    TEST_ENTRY(old_contents_of_an_output_are_not_visible),
    TEST_ENTRY(only_the_first_launch_clears_outputs),
    TEST_ENTRY(items_after_a_failure_do_not_run),
    TEST_ENTRY(outputs_that_are_not_reached_are_not_even_cleared),
    TEST_ENTRY(a_failing_item_reports_host_buffers_like_a_single_dispatch),
    TEST_ENTRY(a_batch_counts_as_its_items_do),
    TEST_ENTRY(a_recording_equals_its_dispatches),
    TEST_ENTRY(a_recording_names_the_command_that_failed),
    TEST_ENTRY(an_item_that_never_ends_ends_at_its_timeout),
    TEST_ENTRY(a_replay_that_never_ends_ends_at_its_timeout))
