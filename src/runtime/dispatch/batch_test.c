/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks which outputs and batch items may share memory, and how the status of
 * a failed batch names the item. */

#include "support/check.h"
#include "support/driver.h"

/* b = x + 1; a has a declared size. */
static const char text[] =
    "kernel k workgroup(4) over(b)\n"
    "buffer x : read u32[] @0;\n"
    "buffer a : write u32[4] @1 output;\n"
    "buffer b : write u32[] @2 output;\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    if (i < 4) a[i] = 7;\n"
    "    if (i < len(b)) b[i] = x[i] + 1;\n"
    "}\n";

enum { COUNT = 8, BYTES = 4 * COUNT };

typedef struct item {
  uint32_t x[COUNT], a[4], b[COUNT];
  vyre_input in;
  vyre_output out[2];
  vyre_dispatch_desc desc;
} item;

static void make(item *it, uint32_t first) {
  memset(it, 0, sizeof *it);
  for (uint32_t i = 0; i < COUNT; i++) it->x[i] = first + i;
  it->in = vyre_input_bytes(it->x, BYTES);
  it->out[0] = vyre_output_bytes(it->a, 16);
  it->out[1] = vyre_output_bytes(it->b, BYTES);
  it->desc = (vyre_dispatch_desc){.inputs = &it->in,
                                  .input_count = 1,
                                  .outputs = it->out,
                                  .output_count = 2};
}

TEST(two_outputs_cannot_share_a_host_buffer_or_a_handle) {
  rig r = rig_open(text, NULL);
  vyre_host_buffer buffer = {0};
  vyre_buffer new_buffer = {0};
  item it;
  for (int i = 0; i < 2; i++) { /* without memory, then with memory */
    vyre_status st = {0};
    make(&it, 1);
    it.out[0] = vyre_output_host_buffer(&buffer, 0);
    it.out[1] = vyre_output_host_buffer(&buffer, BYTES);
    CHECK_FAILS(vyre_dispatch(r.pipeline, &it.desc, &st), st,
                VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
    CHECK_HAS(st.message, "'a' and 'b' use the same host buffer");
    it.out[1] = vyre_output_bytes(it.b, BYTES);
    st = (vyre_status){0};
    CHECK_OK(vyre_dispatch(r.pipeline, &it.desc, &st), st);
  }
  vyre_status st = {0};
  vyre_counters counters;
  it.out[0] = vyre_output_new_buffer(&new_buffer, 0);
  it.out[1] = vyre_output_new_buffer(&new_buffer, BYTES);
  CHECK_FAILS(vyre_dispatch(r.pipeline, &it.desc, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  CHECK_HAS(st.message, "'a' and 'b' use the same handle");
  vyre_counters_read(r.device, &counters);
  CHECK_U64(counters.live_device_buffers, 0);
  vyre_host_buffer_deinit(&buffer);
  rig_close(&r);
}

TEST(fresh_outputs_do_not_reuse_the_memory_of_an_input) {
  rig r = rig_open(text, NULL);
  vyre_status st = {0};
  vyre_host_buffer buffer = {0};
  vyre_output_stats stats = {0};
  item it;
  make(&it, 1);
  it.out[1] = vyre_output_host_buffer(&buffer, BYTES);
  it.desc.output_stats = &stats;
  CHECK_OK(
      vyre_dispatch_borrowed(r.pipeline, &it.in, 1, it.out, 2, &it.desc, &st),
      st);
  const void *before = buffer.data;
  CHECK_OK(
      vyre_dispatch_borrowed(r.pipeline, &it.in, 1, it.out, 2, &it.desc, &st),
      st);
  CHECK(buffer.data != before && ((uint32_t *)buffer.data)[7] == 9);
  CHECK_U64(stats.appended, 2);
  CHECK_U64(stats.reused + stats.moved, 0);
  it.in = vyre_input_bytes(buffer.data, BYTES);
  CHECK_FAILS(
      vyre_dispatch_borrowed(r.pipeline, &it.in, 1, it.out, 2, NULL, &st), st,
      VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  CHECK_HAS(st.message, "'x' and 'b' overlaps");
  /* a refused dispatch leaves no output */
  CHECK(!buffer.data && buffer.capacity == 0);
  rig_close(&r);
}

/* --- items of one batch ------------------------------------------------- */

typedef struct pair {
  item items[2];
  vyre_host_buffer buffer, other;
  vyre_buffer new_buffer, imported;
  uint32_t shared[COUNT]; /* memory of `imported` */
} pair;

static void separate_memory(pair *p) {
  p->items[1].in = p->items[0].in; /* two inputs may share memory */
}
static void one_host_buffer(pair *p) {
  for (int i = 0; i < 2; i++) {
    p->items[i].out[1] = vyre_output_host_buffer(&p->buffer, BYTES);
  }
}
static void one_host_buffer_for_two_bindings(pair *p) {
  p->items[0].out[0] = vyre_output_host_buffer(&p->buffer, 0);
  p->items[1].out[1] = vyre_output_host_buffer(&p->buffer, BYTES);
}
static void one_handle(pair *p) {
  for (int i = 0; i < 2; i++) {
    p->items[i].out[1] = vyre_output_new_buffer(&p->new_buffer, BYTES);
  }
}
static void reads_a_growing_buffer(pair *p) {
  p->items[0].out[1] = vyre_output_host_buffer(&p->other, BYTES);
  p->items[1].in = vyre_input_bytes(p->other.data, p->other.capacity);
  p->items[1].out[1].size = p->other.capacity;
}
static void reads_a_buffer_replaced_later(pair *p) {
  p->items[1].out[1] = vyre_output_host_buffer(&p->other, BYTES);
  p->items[0].in = vyre_input_bytes(p->other.data, p->other.capacity);
  p->items[0].out[1].size = p->other.capacity;
}
static void reads_written_memory(pair *p) {
  p->items[1].in = vyre_input_bytes(p->items[0].b, BYTES);
}
static void outputs_overlap(pair *p) {
  p->items[1].out[1].data = p->items[0].b + 1;
}

/* Memory that is bound as a device buffer and as host memory. */
static void reads_an_import_that_is_written(pair *p) {
  p->items[0].out[1] = vyre_output_buffer(p->imported);
  p->items[1].in = vyre_input_bytes(p->shared, BYTES);
}
static void writes_an_import_that_is_read(pair *p) {
  p->items[0].in = vyre_input_buffer(p->imported);
  p->items[1].out[1] = vyre_output_bytes(p->shared, BYTES);
}
static void writes_an_import_that_is_written(pair *p) {
  p->items[0].out[1] = vyre_output_bytes(p->shared, BYTES);
  p->items[1].out[1] = vyre_output_buffer(p->imported);
}
static void reads_an_import_that_is_read(pair *p) {
  for (uint32_t i = 0; i < COUNT; i++) p->shared[i] = 10 + i;
  p->items[0].in = vyre_input_buffer(p->imported);
  p->items[1].in = vyre_input_bytes(p->shared, BYTES);
}
static void passes_an_import_on(pair *p) {
  for (uint32_t i = 0; i < COUNT; i++) p->items[0].x[i] = 9 + i;
  p->items[0].out[1] = vyre_output_buffer(p->imported);
  p->items[1].in = vyre_input_buffer(p->imported);
}

/* Creates two items. `other` has 16 bytes, which a dispatch has to reallocate.
 */
static void make_pair(pair *p, const rig *r) {
  vyre_status st = {0};
  memset(p, 0, sizeof *p);
  make(&p->items[0], 10);
  make(&p->items[1], 100);
  item small;
  make(&small, 5);
  small.out[1] = vyre_output_host_buffer(&p->other, 16);
  CHECK_OK(vyre_dispatch(r->pipeline, &small.desc, &st), st);
  CHECK_OK(vyre_buffer_import(r->device, p->shared, BYTES, &p->imported, &st),
           st);
}

TEST(items_cannot_share_memory_that_one_writes) {
  static const struct {
    void (*spoil)(pair *p);
    const char *message; /* NULL: accepted */
  } cases[] = {
      {separate_memory, NULL},
      {one_host_buffer, "'b' shares a host buffer with buffer 'b' of items[0]"},
      {one_host_buffer_for_two_bindings,
       "'b' shares a host buffer with buffer 'a' of items[0]"},
      {one_handle, "'b' shares a handle with buffer 'b' of items[0]"},
      {reads_a_growing_buffer, "'x' shares memory with buffer 'b' of items[0]"},
      {reads_a_buffer_replaced_later,
       "'b' shares memory with buffer 'x' of items[0]"},
      {reads_written_memory, "'x' shares memory with buffer 'b' of items[0]"},
      {outputs_overlap, "'b' shares memory with buffer 'b' of items[0]"},
      {reads_an_import_that_is_written,
       "'x' shares memory with buffer 'b' of items[0]"},
      {writes_an_import_that_is_read,
       "'b' shares memory with buffer 'x' of items[0]"},
      {writes_an_import_that_is_written,
       "'b' shares memory with buffer 'b' of items[0]"},
      {reads_an_import_that_is_read, NULL},
      {passes_an_import_on, NULL},
  };
  rig r = rig_open(text, NULL);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    for (int has_fence = 0; has_fence < 2; has_fence++) {
      vyre_status st = {0};
      vyre_fence *fence = NULL;
      pair p;
      make_pair(&p, &r);
      cases[i].spoil(&p);
      vyre_dispatch_desc items[] = {p.items[0].desc, p.items[1].desc};
      items[0].inputs = &p.items[0].in;
      vyre_code code =
          vyre_submit(r.pipeline, items, 2, has_fence ? &fence : NULL, &st);
      if (cases[i].message) {
        CHECK_FAILS(code, st, VYRE_INVALID_ARGUMENT,
                    VYRE_KIND_BINDING_MISMATCH);
        CHECK_HAS(st.message, cases[i].message);
        CHECK_U64(status_number(&st, "item"), 1);
        CHECK_U64(status_number(&st, "other_item"), 0);
      } else {
        CHECK_OK(code, st);
        if (fence) CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
        CHECK_U64(p.items[1].b[3], 14);
      }
      vyre_fence_release(fence);
      st = (vyre_status){0};
      CHECK_OK(vyre_buffer_destroy(r.device, p.imported, &st), st);
      vyre_host_buffer_deinit(&p.buffer);
      vyre_host_buffer_deinit(&p.other);
    }
  }
  rig_close(&r);
}

/* Compares the check with a test of every pair, for random ranges in one block
 * of memory. */
TEST(random_batches_are_refused_if_and_only_if_two_items_overlap) {
  enum { ITEMS = 40, WORDS = 4000, RUNS = 200 };
  rig r = rig_open(text, NULL);
  static uint32_t memory[WORDS], a[ITEMS][4];
  static item it[ITEMS];
  static vyre_dispatch_desc items[ITEMS];
  uint64_t state = 77;
  int refused = 0;
  for (int run = 0; run < RUNS; run++) {
    uint64_t at[ITEMS][2]; /* offsets of x and b, of COUNT words each */
    size_t count = 2 + random_below(&state, ITEMS - 1);
    bool overlaps = false, overlaps_itself = false;
    for (size_t i = 0; i < count; i++) {
      make(&it[i], 0);
      for (int k = 0; k < 2; k++) {
        at[i][k] = random_below(&state, WORDS / COUNT) * COUNT +
                   (k == 0 ? random_below(&state, 2) : 0);
        if (at[i][k] > WORDS - COUNT) at[i][k] = WORDS - COUNT;
      }
      it[i].in.data = memory + at[i][0];
      it[i].out[0].data = a[i];
      it[i].out[1].data = memory + at[i][1];
      items[i] = it[i].desc;
    }
    for (size_t i = 0; i < count; i++) {
      for (size_t j = 0; j < count; j++) {
        uint64_t read = at[j][0], other = at[j][1], mine = at[i][1];
        bool reads = read < mine + COUNT && mine < read + COUNT;
        bool writes = other < mine + COUNT && mine < other + COUNT;
        if (i == j) {
          overlaps_itself |= reads;
        } else {
          overlaps |= reads || writes;
        }
      }
    }
    vyre_status st = {0};
    vyre_code code = vyre_submit(r.pipeline, items, count, NULL, &st);
    CHECK((code != VYRE_OK) == (overlaps || overlaps_itself));
    refused += code != VYRE_OK;
  }
  CHECK(refused > 20 && refused < RUNS - 20);
  rig_close(&r);
}

TEST(a_repeated_batch_is_checked_once) {
  enum { ITEMS = 8 };
  test_heap heap = {.left = -1};
  rig r = rig_open(text, &heap);
  static item it[ITEMS];
  vyre_dispatch_desc items[ITEMS];
  vyre_host_buffer slots[ITEMS] = {{0}};
  for (uint32_t i = 0; i < ITEMS; i++) {
    make(&it[i], i);
    it[i].out[1] = vyre_output_host_buffer(&slots[i], BYTES);
    items[i] = it[i].desc;
  }
  long calls = 0;
  for (int run = 0; run < 8; run++) {
    vyre_status st = {0};
    if (run == 5) calls = (long)heap.calls;
    CHECK_OK(vyre_submit(r.pipeline, items, ITEMS, NULL, &st), st);
  }
  CHECK_U64(heap.calls, calls);
  /* One item changes, so the batch is checked again. */
  vyre_status st = {0};
  it[5].in = vyre_input_bytes(slots[2].data, BYTES);
  CHECK_FAILS(vyre_submit(r.pipeline, items, ITEMS, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  CHECK_U64(status_number(&st, "item"), 5);
  CHECK_U64(status_number(&st, "other_item"), 2);
  for (int i = 0; i < ITEMS; i++) vyre_host_buffer_deinit(&slots[i]);
  rig_close(&r);
}

/* --- messages ----------------------------------------------------------- */

TEST(a_failure_of_a_batch_or_replay_names_its_item_or_command) {
  rig r = rig_open(text, NULL);
  vyre_status st = {0};
  vyre_device *none;
  item it[2];
  CHECK(vyre_device_open(r.context, NULL, &none, &st) != VYRE_OK);
  for (int i = 0; i < 2; i++) make(&it[i], 1);
  it[1].in.size = 3;
  vyre_dispatch_desc items[] = {it[0].desc, it[1].desc};
  items[0].inputs = &it[0].in;
  items[1].inputs = &it[1].in;
  CHECK(vyre_submit(r.pipeline, items, 2, NULL, &st) == VYRE_INVALID_PROGRAM);
  CHECK_U64(status_number(&st, "item"), 1);
  CHECK_HAS(st.message, "items[1] of 2");

  vyre_recording *rec;
  vyre_status own = {0};
  CHECK_OK(vyre_recording_create(r.device, &rec, &own), own);
  uint32_t places[3];
  vyre_slot_binding bytes[] = {{.data = it[0].x, .size = BYTES},
                               {.data = it[0].a, .size = 16},
                               {.data = it[0].b, .size = BYTES}};
  for (int i = 0; i < 3; i++) {
    CHECK_OK(vyre_recording_add_fixed_slot(rec, &bytes[i], &places[i], &own),
             own);
  }
  vyre_slot_range in = vyre_slot_range_all(places[0]);
  vyre_slot_range out[] = {vyre_slot_range_all(places[1]),
                           vyre_slot_range_all(places[2])};
  vyre_recorded_dispatch made = {
      .inputs = &in, .input_count = 1, .outputs = out, .output_count = 2};
  CHECK_OK(vyre_recording_add_dispatch(rec, r.pipeline, &made, &own), own);
  CHECK_OK(vyre_recording_seal(rec, &own), own);
  CHECK_OK(vyre_context_inject_faults(r.context, "submit:1", &own), own);
  CHECK_FAILS(vyre_recording_replay(rec, NULL, NULL, &st), st,
              VYRE_DISPATCH_FAILED, VYRE_KIND_INJECTED_FAULT);
  CHECK_U64(status_number(&st, "command"), 0);
  CHECK_HAS(st.message, "command 0: ");
  CHECK(!strstr(st.message, "items["));
  vyre_recording_release(rec);
  rig_close(&r);
}

TEST(repeated_launches_end_at_the_timeout) {
  rig r = rig_open(text, NULL);
  vyre_status st = {0};
  item it;
  make(&it, 1);
  it.desc.has_repeat_count = true;
  it.desc.repeat_count = 4000000000u;
  it.desc.timeout_ns = 2000000;
  CHECK_FAILS(vyre_dispatch(r.pipeline, &it.desc, &st), st,
              VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT);
  CHECK_U64(status_number(&st, "timeout_ns"), 2000000);
  CHECK(status_number(&st, "launches") >= 1);
  rig_close(&r);
}

TEST_MAIN(
    TEST_ENTRY(two_outputs_cannot_share_a_host_buffer_or_a_handle),
    TEST_ENTRY(fresh_outputs_do_not_reuse_the_memory_of_an_input),
    TEST_ENTRY(items_cannot_share_memory_that_one_writes),
    TEST_ENTRY(random_batches_are_refused_if_and_only_if_two_items_overlap),
    TEST_ENTRY(a_repeated_batch_is_checked_once),
    TEST_ENTRY(a_failure_of_a_batch_or_replay_names_its_item_or_command),
    TEST_ENTRY(repeated_launches_end_at_the_timeout))
