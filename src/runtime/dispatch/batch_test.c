/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Memory that outputs and items of a batch would share, and how a batch tells
 * what failed. */
#include "vyre/vyre.h"

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

TEST(two_outputs_have_two_slots_and_two_handles) {
  rig r = rig_open(text, NULL);
  vyre_host_buffer slot = {0};
  vyre_buffer kept = {0};
  item it;
  for (int i = 0; i < 2; i++) { /* also with memory that is there */
    vyre_status st = {0};
    make(&it, 1);
    it.out[0] = vyre_output_host_buffer(&slot, 0);
    it.out[1] = vyre_output_host_buffer(&slot, BYTES);
    CHECK_FAILS(vyre_dispatch(r.pipeline, &it.desc, &st), st,
                VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
    CHECK_HAS(st.message, "'a' and 'b' use the same host buffer");
    it.out[1] = vyre_output_bytes(it.b, BYTES);
    st = (vyre_status){0};
    CHECK_OK(vyre_dispatch(r.pipeline, &it.desc, &st), st);
  }
  vyre_status st = {0};
  vyre_counters counters;
  it.out[0] = vyre_output_new_buffer(&kept, 0);
  it.out[1] = vyre_output_new_buffer(&kept, BYTES);
  CHECK_FAILS(vyre_dispatch(r.pipeline, &it.desc, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  CHECK_HAS(st.message, "'a' and 'b' use the same handle");
  vyre_counters_read(r.device, &counters);
  CHECK_U64(counters.live_residents, 0);
  vyre_host_buffer_deinit(&slot);
  rig_close(&r);
}

TEST(fresh_outputs_are_not_where_an_input_is) {
  rig r = rig_open(text, NULL);
  vyre_status st = {0};
  vyre_host_buffer slot = {0};
  vyre_output_stats stats = {0};
  item it;
  make(&it, 1);
  it.out[1] = vyre_output_host_buffer(&slot, BYTES);
  it.desc.output_stats = &stats;
  CHECK_OK(
      vyre_dispatch_borrowed(r.pipeline, &it.in, 1, it.out, 2, &it.desc, &st),
      st);
  const void *before = slot.data;
  CHECK_OK(
      vyre_dispatch_borrowed(r.pipeline, &it.in, 1, it.out, 2, &it.desc, &st),
      st);
  CHECK(slot.data != before && ((uint32_t *)slot.data)[7] == 9);
  CHECK_U64(stats.appended, 2);
  CHECK_U64(stats.reused + stats.moved, 0);
  it.in = vyre_input_bytes(slot.data, BYTES);
  CHECK_FAILS(
      vyre_dispatch_borrowed(r.pipeline, &it.in, 1, it.out, 2, NULL, &st), st,
      VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  CHECK_HAS(st.message, "'x' and 'b' overlaps");
  CHECK(!slot.data && slot.capacity == 0); /* there is no output */
  rig_close(&r);
}

/* --- items of one batch ------------------------------------------------------*/

typedef struct pair {
  item items[2];
  vyre_host_buffer slot, other;
  vyre_buffer kept, imported;
  uint32_t shared[COUNT]; /* its memory */
} pair;

static void apart(pair *p) {
  p->items[1].in = p->items[0].in; /* both only read it */
}
static void one_slot(pair *p) {
  for (int i = 0; i < 2; i++) {
    p->items[i].out[1] = vyre_output_host_buffer(&p->slot, BYTES);
  }
}
static void one_slot_of_two_bindings(pair *p) {
  p->items[0].out[0] = vyre_output_host_buffer(&p->slot, 0);
  p->items[1].out[1] = vyre_output_host_buffer(&p->slot, BYTES);
}
static void one_handle(pair *p) {
  for (int i = 0; i < 2; i++) {
    p->items[i].out[1] = vyre_output_new_buffer(&p->kept, BYTES);
  }
}
static void reads_what_grows(pair *p) {
  p->items[0].out[1] = vyre_output_host_buffer(&p->other, BYTES);
  p->items[1].in = vyre_input_bytes(p->other.data, p->other.capacity);
  p->items[1].out[1].size = p->other.capacity;
}
static void read_what_is_replaced_later(pair *p) {
  p->items[1].out[1] = vyre_output_host_buffer(&p->other, BYTES);
  p->items[0].in = vyre_input_bytes(p->other.data, p->other.capacity);
  p->items[0].out[1].size = p->other.capacity;
}
static void reads_what_is_written(pair *p) {
  p->items[1].in = vyre_input_bytes(p->items[0].b, BYTES);
}
static void outputs_overlap(pair *p) {
  p->items[1].out[1].data = p->items[0].b + 1;
}

/* Memory that is bound as a resident buffer and as bytes of the host. */
static void reads_what_an_import_writes(pair *p) {
  p->items[0].out[1] = vyre_output_buffer(p->imported);
  p->items[1].in = vyre_input_bytes(p->shared, BYTES);
}
static void writes_what_an_import_reads(pair *p) {
  p->items[0].in = vyre_input_buffer(p->imported);
  p->items[1].out[1] = vyre_output_bytes(p->shared, BYTES);
}
static void writes_what_an_import_writes(pair *p) {
  p->items[0].out[1] = vyre_output_bytes(p->shared, BYTES);
  p->items[1].out[1] = vyre_output_buffer(p->imported);
}
static void reads_what_an_import_reads(pair *p) {
  for (uint32_t i = 0; i < COUNT; i++) p->shared[i] = 10 + i;
  p->items[0].in = vyre_input_buffer(p->imported);
  p->items[1].in = vyre_input_bytes(p->shared, BYTES);
}
static void passes_an_import_on(pair *p) {
  for (uint32_t i = 0; i < COUNT; i++) p->items[0].x[i] = 9 + i;
  p->items[0].out[1] = vyre_output_buffer(p->imported);
  p->items[1].in = vyre_input_buffer(p->imported);
}

/* A slot's memory of 16 bytes, which an item makes longer. */
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

TEST(items_share_no_memory_that_one_writes) {
  static const struct {
    void (*spoil)(pair *p);
    const char *word; /* NULL: it is good */
  } cases[] = {
      {apart, NULL},
      {one_slot, "'b' shares a host buffer with buffer 'b' of items[0]"},
      {one_slot_of_two_bindings,
       "'b' shares a host buffer with buffer 'a' of items[0]"},
      {one_handle, "'b' shares a handle with buffer 'b' of items[0]"},
      {reads_what_grows, "'x' shares memory with buffer 'b' of items[0]"},
      {read_what_is_replaced_later,
       "'b' shares memory with buffer 'x' of items[0]"},
      {reads_what_is_written, "'x' shares memory with buffer 'b' of items[0]"},
      {outputs_overlap, "'b' shares memory with buffer 'b' of items[0]"},
      {reads_what_an_import_writes,
       "'x' shares memory with buffer 'b' of items[0]"},
      {writes_what_an_import_reads,
       "'b' shares memory with buffer 'x' of items[0]"},
      {writes_what_an_import_writes,
       "'b' shares memory with buffer 'b' of items[0]"},
      {reads_what_an_import_reads, NULL},
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
      if (cases[i].word) {
        CHECK_FAILS(code, st, VYRE_INVALID_ARGUMENT,
                    VYRE_KIND_BINDING_MISMATCH);
        CHECK_HAS(st.message, cases[i].word);
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
      vyre_host_buffer_deinit(&p.slot);
      vyre_host_buffer_deinit(&p.other);
    }
  }
  rig_close(&r);
}

/* Against every pair, for batches of random places in one block of memory. */
TEST(random_batches_are_refused_if_and_only_if_a_pair_meets) {
  enum { ITEMS = 40, WORDS = 4000, ROUNDS = 200 };
  rig r = rig_open(text, NULL);
  static uint32_t memory[WORDS], a[ITEMS][4];
  static item it[ITEMS];
  static vyre_dispatch_desc items[ITEMS];
  uint64_t state = 77;
  int refused = 0;
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t at[ITEMS][2]; /* x and b, of COUNT words */
    size_t count = 2 + random_below(&state, ITEMS - 1);
    bool meets = false, meets_itself = false;
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
          meets_itself |= reads;
        } else {
          meets |= reads || writes;
        }
      }
    }
    vyre_status st = {0};
    vyre_code code = vyre_submit(r.pipeline, items, count, NULL, &st);
    CHECK((code != VYRE_OK) == (meets || meets_itself));
    refused += code != VYRE_OK;
  }
  CHECK(refused > 20 && refused < ROUNDS - 20);
  rig_close(&r);
}

TEST(a_warm_batch_is_looked_at_once) {
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
  for (int round = 0; round < 8; round++) {
    vyre_status st = {0};
    if (round == 5) calls = (long)heap.calls;
    CHECK_OK(vyre_submit(r.pipeline, items, ITEMS, NULL, &st), st);
  }
  CHECK_U64(heap.calls, calls);
  /* One of them changes, and is held against the others anew. */
  vyre_status st = {0};
  it[5].in = vyre_input_bytes(slots[2].data, BYTES);
  CHECK_FAILS(vyre_submit(r.pipeline, items, ITEMS, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  CHECK_U64(status_number(&st, "item"), 5);
  CHECK_U64(status_number(&st, "other_item"), 2);
  for (int i = 0; i < ITEMS; i++) vyre_host_buffer_deinit(&slots[i]);
  rig_close(&r);
}

/* --- what is told ------------------------------------------------------------*/

TEST(a_failure_of_a_batch_or_replay_names_its_own_place) {
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

TEST(iterations_end_at_the_timeout) {
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

TEST_MAIN(TEST_ENTRY(two_outputs_have_two_slots_and_two_handles),
          TEST_ENTRY(fresh_outputs_are_not_where_an_input_is),
          TEST_ENTRY(items_share_no_memory_that_one_writes),
          TEST_ENTRY(random_batches_are_refused_if_and_only_if_a_pair_meets),
          TEST_ENTRY(a_warm_batch_is_looked_at_once),
          TEST_ENTRY(a_failure_of_a_batch_or_replay_names_its_own_place),
          TEST_ENTRY(iterations_end_at_the_timeout))
