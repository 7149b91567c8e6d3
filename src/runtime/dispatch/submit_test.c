/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compares all dispatch functions on `ref`: they give the same bytes as
 * vyre_device_run_program. */

#include "support/check.h"
#include "support/driver.h"

/* y = 3 x + y, and the sum of y; z is an output of a declared size. */
static const char text[] =
    "kernel k workgroup(8) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "buffer z : read_write u32[4] @2 output;\n"
    "uniform a : u32 @3;\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    if (i >= len(y)) return;\n"
    "    y[i] = a * x[i] + y[i];\n"
    "    atomic_add(z[i % 4], y[i]);\n"
    "}\n";

enum { ELEMENTS = 20, BYTES = 4 * ELEMENTS };

typedef struct data {
  uint32_t x[ELEMENTS], y[ELEMENTS], a;
} data;

static data make_data(uint32_t seed) {
  data d = {.a = seed + 3};
  for (uint32_t i = 0; i < ELEMENTS; i++) {
    d.x[i] = i * seed;
    d.y[i] = 1000 + i;
  }
  return d;
}

typedef struct want {
  uint32_t y[ELEMENTS], z[4];
} want;

/* Computes the expected result without code of the library. */
static want expect(const data *d, unsigned runs) {
  want w = {{0}, {0}};
  memcpy(w.y, d->y, BYTES);
  for (unsigned r = 0; r < runs; r++) {
    for (uint32_t i = 0; i < ELEMENTS; i++) {
      w.y[i] = d->a * d->x[i] + w.y[i];
      w.z[i % 4] += w.y[i];
    }
  }
  return w;
}

#define INPUTS(d)                                                  \
  {vyre_input_bytes((d).x, BYTES), vyre_input_bytes((d).y, BYTES), \
   vyre_input_bytes(&(d).a, 4)}

#define DESC(ins, outs)                    \
  ((vyre_dispatch_desc){.inputs = (ins),   \
                        .input_count = 3,  \
                        .outputs = (outs), \
                        .output_count = 2})

TEST(the_reference_run_and_a_pipeline_agree) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  data d = make_data(5);
  want w = expect(&d, 1), a, b;
  vyre_input in[] = INPUTS(d);
  vyre_output out[] = {{a.y, BYTES}, {a.z, 16}};
  vyre_dispatch_desc desc = DESC(in, out);
  CHECK_OK(vyre_device_run_program(r.device, r.program, &desc, &st), st);
  vyre_output again[] = {{b.y, BYTES}, {b.z, 16}};
  desc.outputs = again;
  CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
  CHECK(memcmp(&a, &w, sizeof w) == 0 && memcmp(&b, &w, sizeof w) == 0);
  vyre_counters counters;
  vyre_counters_read(r.device, &counters);
  CHECK_U64(counters.launches, 2);
  CHECK_U64(counters.compiles, 2);
  CHECK_U64(counters.input_bytes, UINT64_C(2) * (2 * BYTES + 4));
  CHECK_U64(counters.output_bytes, UINT64_C(2) * (BYTES + 16));
  rig_close(&r);
}

TEST(host_buffers_keep_their_memory) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  vyre_host_buffer y = {0}, z = {0};
  vyre_output_stats stats = {0};
  void *first = NULL;
  for (uint32_t i = 0; i < 3; i++) {
    data d = make_data(i);
    want w = expect(&d, 1);
    vyre_input in[] = INPUTS(d);
    vyre_output out[] = {vyre_output_host_buffer(&y, 0),
                         vyre_output_host_buffer(&z, 0)};
    vyre_dispatch_desc desc = DESC(in, out);
    desc.output_stats = &stats;
    CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
    CHECK(y.size == BYTES && z.size == 16);
    CHECK(memcmp(y.data, w.y, BYTES) == 0 && memcmp(z.data, w.z, 16) == 0);
    if (i == 0) first = y.data;
    CHECK(y.data == first);
  }
  CHECK_U64(stats.filled, 6);
  CHECK_U64(stats.appended, 2);
  CHECK_U64(stats.reused, 4);
  CHECK_U64(stats.moved, 0);
  CHECK_U64(stats.incoming_bytes, UINT64_C(3) * (BYTES + 16));
  CHECK_U64(stats.retained_capacity_bytes, UINT64_C(3) * (BYTES + 16));
  vyre_host_buffer_deinit(&y);
  vyre_host_buffer_deinit(&z);
  rig_close(&r);
}

static uint64_t retained(const vyre_device *device) {
  vyre_counters counters;
  vyre_counters_read(device, &counters);
  return counters.host_buffer_retained_capacity_bytes;
}

/* A gauge: the current value, not a sum. */
TEST(retained_capacity_is_counted_while_host_buffers_have_it) {
  vyre_status st = {0};
  uint64_t before = retained(NULL);
  rig r = rig_open(text, NULL);
  data d = make_data(1);
  vyre_host_buffer y = {0}, z = {0};
  /* Memory that the caller allocated is not counted, and may be too small. */
  z.data = malloc(4);
  z.capacity = 4;
  vyre_input in[] = INPUTS(d);
  vyre_output out[] = {vyre_output_host_buffer(&y, 0),
                       vyre_output_host_buffer(&z, 0)};
  vyre_dispatch_desc desc = DESC(in, out);
  for (int i = 0; i < 3; i++) {
    desc.has_fresh_outputs = i == 2; /* other memory of the same size */
    CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
    CHECK_U64(retained(r.device), y.capacity + z.capacity);
    CHECK_U64(retained(NULL), before + BYTES + 16);
  }
  vyre_host_buffer other = {0}; /* written to memory of the caller */
  CHECK_OK(vyre_host_buffers_replace(&y, 1, &other, 1, NULL, &st), st);
  CHECK_U64(retained(r.device), BYTES + 16);
  vyre_host_buffer_deinit(&other);
  vyre_host_buffer_deinit(&y);
  CHECK_U64(retained(r.device), 16);
  rig_close(&r); /* the device is closed */
  CHECK_U64(retained(NULL), before + 16);
  vyre_host_buffer_deinit(&z);
  CHECK_U64(retained(NULL), before);
}

/* Example of the contract: host buffers of 8 and 1 bytes receive 2, 2 and 1
 * bytes. */
TEST(host_buffers_are_replaced_one_by_one) {
  vyre_status st = {0};
  vyre_allocator heap = vyre_allocator_heap();
  vyre_host_buffer buffers[3] = {{0}}, incoming[3] = {{0}};
  static const size_t capacities[2] = {8, 1}, sizes[3] = {2, 2, 1};
  for (int i = 0; i < 2; i++) {
    buffers[i].data = heap.resize(heap.self, NULL, 0, capacities[i]);
    buffers[i].capacity = capacities[i];
  }
  for (int i = 0; i < 3; i++) {
    incoming[i].data = heap.resize(heap.self, NULL, 0, sizes[i]);
    incoming[i].capacity = incoming[i].size = sizes[i];
    memset(incoming[i].data, 7 + i, sizes[i]);
  }
  void *new_buffer = buffers[0].data, *moved = incoming[1].data;
  vyre_output_stats s = {0};
  CHECK_OK(vyre_host_buffers_replace(incoming, 3, buffers, 2, &s, &st), st);
  CHECK(buffers[0].data == new_buffer && buffers[1].data == moved);
  CHECK(*(unsigned char *)buffers[2].data == 9 && !incoming[2].data);
  CHECK_U64(s.filled, 3);
  CHECK_U64(s.reused, 1);
  CHECK_U64(s.moved, 1);
  CHECK_U64(s.appended, 1);
  CHECK_U64(s.incoming_bytes, 5);
  CHECK_U64(s.copied_bytes, 2);
  CHECK_U64(s.moved_bytes, 2);
  CHECK_U64(s.appended_bytes, 1);
  CHECK_U64(s.retained_capacity_bytes, 11);
  for (int i = 0; i < 3; i++) vyre_host_buffer_deinit(&buffers[i]);
}

TEST(device_buffers_feed_the_next_dispatch) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  data d = make_data(9);
  want w = expect(&d, 2);
  vyre_buffer x, y, z = {0};
  static uint32_t mine[BYTES / 4]; /* memory of the caller, imported */
  CHECK_OK(vyre_buffer_import(r.device, mine, BYTES, &x, &st), st);
  CHECK_OK(vyre_buffer_create(r.device, BYTES + 8, &y, &st), st);
  vyre_transfer up[] = {{x, 0, d.x, BYTES}, {y, 8, d.y, BYTES}};
  CHECK_OK(vyre_buffer_upload_many(r.device, up, 2, &st), st);
  uint32_t sums[2][4];
  for (int i = 0; i < 2; i++) {
    vyre_input in[] = {vyre_input_buffer(x),
                       {.buffer = y, .offset = 8},
                       vyre_input_bytes(&d.a, 4)};
    vyre_output out[] = {{.buffer = y, .offset = 8},
                         vyre_output_new_buffer(&z, 0)};
    vyre_copy_report copies;
    vyre_dispatch_desc desc = DESC(in, out);
    desc.copies = &copies;
    desc.require_zero_copy = true;
    CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
    CHECK_U64(copies.copied_bytes, 0);
    CHECK_U64(copies.device_buffer_bytes, UINT64_C(2) * BYTES);
    CHECK_U64(copies.mapped_bytes, BYTES);
    CHECK_OK(vyre_buffer_download(r.device, z, 0, sums[i], 16, &st), st);
    CHECK_OK(vyre_buffer_destroy(r.device, z, &st), st);
  }
  want got;
  vyre_transfer down = {y, 8, got.y, BYTES};
  CHECK_OK(vyre_buffer_download_many(r.device, &down, 1, &st), st);
  for (int i = 0; i < 4; i++) got.z[i] = sums[0][i] + sums[1][i];
  CHECK(memcmp(&got, &w, sizeof w) == 0);
  vyre_counters counters;
  vyre_counters_read(r.device, &counters);
  CHECK_U64(counters.live_device_buffers, 2);
  CHECK_U64(counters.live_device_buffer_bytes, 2 * BYTES + 8);
  rig_close(&r);
}

TEST(a_device_input_output_is_updated_in_place) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  data d = make_data(2);
  want w = expect(&d, 1), got;
  vyre_buffer y;
  CHECK_OK(vyre_buffer_import(r.device, d.y, BYTES, &y, &st), st);
  vyre_input in[] = {vyre_input_bytes(d.x, BYTES), vyre_input_buffer(y),
                     vyre_input_bytes(&d.a, 4)};
  vyre_output out[] = {{0}, {got.z, 16}};
  vyre_dispatch_desc desc = DESC(in, out);
  CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
  memcpy(got.y, d.y, BYTES); /* imported memory needs no download */
  CHECK(memcmp(&got, &w, sizeof w) == 0);
  rig_close(&r);
}

TEST(dead_and_foreign_handles_are_refused) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL), other = rig_open(text, NULL);
  vyre_buffer a, b, none = {0};
  uint64_t size;
  CHECK_OK(vyre_buffer_create(r.device, 64, &a, &st), st);
  CHECK_FAILS(vyre_buffer_size(other.device, a, &size, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_FOREIGN_HANDLE);
  CHECK_U64(status_number(&st, "owner"), vyre_device_id(r.device));
  st = (vyre_status){0};
  CHECK_OK(vyre_buffer_destroy(r.device, a, &st), st);
  CHECK_OK(vyre_buffer_create(r.device, 64, &b, &st), st);
  CHECK(a.id != b.id && (uint32_t)a.id == (uint32_t)b.id); /* same range */
  CHECK_FAILS(vyre_buffer_destroy(r.device, a, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_STALE_HANDLE);
  st = (vyre_status){0};
  CHECK_FAILS(vyre_buffer_size(r.device, none, &size, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_STALE_HANDLE);
  st = (vyre_status){0};
  data d = make_data(1);
  vyre_input in[] = {vyre_input_buffer(a), vyre_input_bytes(d.y, BYTES),
                     vyre_input_bytes(&d.a, 4)};
  uint32_t z[4];
  vyre_output out[] = {{d.y, BYTES}, {z, 16}};
  vyre_dispatch_desc desc = DESC(in, out);
  CHECK_FAILS(vyre_dispatch(r.pipeline, &desc, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_STALE_HANDLE);
  rig_close(&r);
  rig_close(&other);
}

TEST(bad_descriptors_are_refused_before_anything_runs) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  data d = make_data(1), before = d;
  vyre_buffer x, small;
  vyre_host_buffer buffer = {0};
  CHECK_OK(vyre_buffer_create(r.device, BYTES, &x, &st), st);
  CHECK_OK(vyre_buffer_create(r.device, 8, &small, &st), st);
  uint32_t z[4] = {7, 7, 7, 7};
  vyre_input good_in[] = INPUTS(d);
  vyre_output good_out[] = {{d.y, BYTES}, {z, 16}};
  struct {
    const char *name;
    vyre_input in;   /* instead of x */
    vyre_output out; /* instead of z */
    vyre_dispatch_desc desc;
    vyre_kind kind;
  } cases[] = {
      {"input twice",
       {.data = d.x, .size = BYTES, .buffer = x},
       {z, 16},
       {0},
       VYRE_KIND_BINDING_MISMATCH},
      {"output twice",
       {d.x, BYTES},
       {.data = z, .size = 16, .host_buffer = &buffer},
       {0},
       VYRE_KIND_BINDING_MISMATCH},
      {"range outside",
       {.buffer = x, .offset = 8, .size = BYTES},
       {z, 16},
       {0},
       VYRE_KIND_BINDING_MISMATCH},
      {"half an element",
       {.buffer = x, .offset = 2, .size = 8},
       {z, 16},
       {0},
       VYRE_KIND_BINDING_MISMATCH},
      {"output too small",
       {d.x, BYTES},
       {.buffer = small},
       {0},
       VYRE_KIND_BINDING_MISMATCH},
      {"no place", {d.x, BYTES}, {0}, {0}, VYRE_KIND_BINDING_MISMATCH},
      {"0 iterations",
       {d.x, BYTES},
       {z, 16},
       {.has_repeat_count = true},
       VYRE_KIND_ZERO_REPEAT_COUNT},
      {"too much output",
       {d.x, BYTES},
       {z, 16},
       {.max_output_bytes = 90},
       VYRE_KIND_OUTPUT_TOO_LARGE},
      {"not prepared",
       {d.x, BYTES},
       {z, 16},
       {.variant = &(vyre_compile_options){.workgroup = {4}}},
       VYRE_KIND_VARIANT_NOT_COMPILED},
      {"overlap",
       {.data = d.x, .size = BYTES},
       {d.x, 16},
       {0},
       VYRE_KIND_BINDING_MISMATCH},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_input in[] = {cases[i].in, good_in[1], good_in[2]};
    vyre_output out[] = {good_out[0], cases[i].out};
    vyre_dispatch_desc desc = cases[i].desc;
    desc.inputs = in, desc.input_count = 3;
    desc.outputs = out, desc.output_count = 2;
    st = (vyre_status){0};
    vyre_code code = vyre_dispatch(r.pipeline, &desc, &st);
    if (code == VYRE_OK || st.kind != cases[i].kind) {
      printf("    %s: %s\n", cases[i].name, st.message);
    }
    CHECK(code != VYRE_OK && st.kind == cases[i].kind && st.fix[0]);
    if (strcmp(cases[i].name, "half an element") == 0) {
      CHECK_HAS(st.message,
                "offset 2 is not a multiple of the element size, 4");
    }
    CHECK(z[0] == 7 && memcmp(&d, &before, sizeof d) == 0);
  }
  vyre_counters counters;
  vyre_counters_read(r.device, &counters);
  CHECK_U64(counters.launches, 0);
  rig_close(&r);
}

/* A host buffer may move when it grows, so it cannot be an input of the same
 * dispatch. */
TEST(a_host_buffer_cannot_be_input_and_output) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  data d = make_data(1);
  vyre_host_buffer buffer = {0};
  vyre_input in[] = INPUTS(d);
  uint32_t z[4];
  vyre_output out[] = {vyre_output_host_buffer(&buffer, 0), {z, 16}};
  vyre_dispatch_desc desc = DESC(in, out);
  CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
  in[0] = vyre_input_bytes(buffer.data, BYTES);
  CHECK_FAILS(vyre_dispatch(r.pipeline, &desc, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_BINDING_MISMATCH);
  CHECK_HAS(st.message, "'x' and 'y'");
  vyre_host_buffer_deinit(&buffer);
  rig_close(&r);
}

/* One buffer is held once, even with different ranges. */
TEST(one_device_buffer_may_be_input_and_output) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  data d = make_data(1);
  uint32_t z[4];
  vyre_buffer both;
  CHECK_OK(vyre_buffer_create(r.device, UINT64_C(2) * BYTES, &both, &st), st);
  CHECK_OK(vyre_buffer_upload(r.device, both, 0, d.y, BYTES, &st), st);
  vyre_input in[] = {vyre_input_bytes(d.x, BYTES),
                     {.buffer = both, .size = BYTES},
                     vyre_input_bytes(&d.a, 4)};
  vyre_output out[] = {{.buffer = both, .offset = BYTES}, {z, 16}};
  vyre_dispatch_desc desc = DESC(in, out);
  want w = expect(&d, 1), got;
  CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
  CHECK_OK(vyre_buffer_download(r.device, both, BYTES, got.y, BYTES, &st), st);
  CHECK(memcmp(got.y, w.y, BYTES) == 0);
  in[1].offset = 4; /* now the ranges overlap */
  CHECK_FAILS(vyre_dispatch(r.pipeline, &desc, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_BINDING_MISMATCH);
  st = (vyre_status){0};
  vyre_counters counters;
  CHECK_OK(vyre_buffer_destroy(r.device, both, &st), st);
  vyre_counters_read(r.device, &counters);
  CHECK_U64(counters.live_device_buffers, 0); /* no longer held */
  rig_close(&r);
}

TEST(repeated_launches_run_back_to_back) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  data d = make_data(4);
  want w = expect(&d, 5), got;
  vyre_input in[] = INPUTS(d);
  vyre_output out[] = {{got.y, BYTES}, {got.z, 16}};
  vyre_dispatch_desc desc = DESC(in, out);
  desc.has_repeat_count = true;
  desc.repeat_count = 5;
  CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
  CHECK(memcmp(&got, &w, sizeof w) == 0);
  rig_close(&r);
}

TEST(variants_are_compiled_before_they_run) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  vyre_compile_options wide = {.workgroup = {32}};
  CHECK_OK(vyre_pipeline_add_variant(r.pipeline, &wide, &st), st);
  CHECK_OK(vyre_pipeline_add_variant(r.pipeline, &wide, &st), st);
  vyre_counters counters;
  vyre_counters_read(r.device, &counters);
  CHECK_U64(counters.compiles, 2); /* the second call finds it */
  data d = make_data(4);
  want w = expect(&d, 1), got;
  vyre_input in[] = INPUTS(d);
  vyre_output out[] = {{got.y, BYTES}, {got.z, 16}};
  vyre_dispatch_desc desc = DESC(in, out);
  desc.variant = &wide;
  CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
  CHECK(memcmp(&got, &w, sizeof w) == 0);
  uint32_t grid[3];
  CHECK_OK(vyre_dispatch_grid(r.pipeline, &desc, grid, &st), st);
  CHECK_U64(grid[0], 1);
  rig_close(&r);
}

TEST(a_batch_runs_in_order_and_names_what_failed) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  enum { ITEMS = 20 };
  static data d[ITEMS];
  static want got[ITEMS];
  static vyre_input in[ITEMS][3];
  static vyre_output out[ITEMS][2];
  vyre_dispatch_desc items[ITEMS];
  vyre_code results[ITEMS];
  for (uint32_t i = 0; i < ITEMS; i++) {
    d[i] = make_data(i);
    vyre_input one[] = INPUTS(d[i]);
    memcpy(in[i], one, sizeof one);
    out[i][0] = vyre_output_bytes(got[i].y, BYTES);
    out[i][1] = vyre_output_bytes(got[i].z, 16);
    items[i] = DESC(in[i], out[i]);
    items[i].result = &results[i];
  }
  CHECK_OK(vyre_submit(r.pipeline, items, ITEMS, NULL, &st), st);
  for (uint32_t i = 0; i < ITEMS; i++) {
    want w = expect(&d[i], 1);
    CHECK(results[i] == VYRE_OK && memcmp(&got[i], &w, sizeof w) == 0);
  }
  in[7][0].size = 2;
  memset(got, 0xab, sizeof got);
  CHECK(vyre_submit(r.pipeline, items, ITEMS, NULL, &st) != VYRE_OK);
  CHECK_U64(status_number(&st, "item"), 7);
  CHECK_HAS(st.message, "items[7] of 20 (none of them ran): ");
  CHECK(results[0] == VYRE_NOT_RUN && got[0].y[0] == 0xabababab);
  in[7][0].size = BYTES;
  st = (vyre_status){0};
  CHECK_OK(vyre_context_inject_faults(r.context, "submit:4", &st), st);
  CHECK_FAILS(vyre_submit(r.pipeline, items, ITEMS, NULL, &st), st,
              VYRE_DISPATCH_FAILED, VYRE_KIND_INJECTED_FAULT);
  CHECK_U64(status_number(&st, "item"), 3);
  CHECK_HAS(st.message,
            "items[3] of 20 (3 before it ran, 16 after it did not)");
  CHECK(results[2] == VYRE_OK && results[3] == VYRE_DISPATCH_FAILED);
  CHECK(results[4] == VYRE_NOT_RUN);
  rig_close(&r);
}

TEST(copies_are_reported_and_can_be_refused) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  data d = make_data(3);
  want got;
  vyre_copy_report copies;
  vyre_input in[] = INPUTS(d);
  vyre_output out[] = {{got.y, BYTES}, {got.z, 16}};
  vyre_dispatch_desc desc = DESC(in, out);
  desc.copies = &copies;
  CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
  CHECK_U64(copies.copied_bytes, BYTES);
  CHECK_TEXT(copies.first_copied, "y");
  CHECK_TEXT(vyre_copy_reason_name(copies.first_reason), "input_output_apart");
  CHECK_U64(copies.borrowed_bytes, BYTES + 4 + 16);
  desc.require_zero_copy = true;
  CHECK_FAILS(vyre_dispatch(r.pipeline, &desc, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_COPY_NEEDED);
  out[0] = vyre_output_bytes(d.y, BYTES);
  st = (vyre_status){0};
  CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
  CHECK_U64(copies.copied_bytes, 0);
  rig_close(&r);
}

TEST(unmeasured_values_are_absent) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  data d = make_data(3);
  want got;
  vyre_timing timing = {0};
  vyre_input in[] = INPUTS(d);
  vyre_output out[] = {{got.y, BYTES}, {got.z, 16}};
  vyre_dispatch_desc desc = DESC(in, out);
  desc.timing = &timing;
  CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
  CHECK(timing.wall_ns > 0 && !timing.has_device && timing.has_wait);
  CHECK(timing.enqueue_ns + timing.wait_ns == timing.wall_ns);
  rig_close(&r);
}

/* A dispatch allocates nothing in the runtime, once each of two alternating
 * bindings has its prepared dispatch. */
TEST(a_warm_dispatch_allocates_nothing) {
  vyre_status st = {0};
  test_heap heap = {.left = -1};
  rig r = rig_open(text, &heap);
  data d = make_data(3);
  want got;
  vyre_buffer x;
  CHECK_OK(vyre_buffer_create(r.device, BYTES, &x, &st), st);
  vyre_host_buffer buffer = {0};
  vyre_input in[] = INPUTS(d);
  vyre_output out[] = {{got.y, BYTES}, vyre_output_host_buffer(&buffer, 0)};
  size_t calls = 0;
  for (int i = 0; i < 20; i++) {
    in[0] = i % 2 ? vyre_input_buffer(x) : vyre_input_bytes(d.x, BYTES);
    vyre_dispatch_desc desc = DESC(in, out);
    CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
    if (i == 3) calls = heap.calls;
  }
  CHECK(calls > 0);
  CHECK_U64(heap.calls, calls);
  vyre_host_buffer_deinit(&buffer);
  rig_close(&r);
  CHECK_U64(heap.live_bytes, 0);
}

TEST(counters_are_text_for_prometheus) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  data d = make_data(3);
  want got;
  vyre_input in[] = INPUTS(d);
  vyre_output out[] = {{got.y, BYTES}, {got.z, 16}};
  vyre_dispatch_desc desc = DESC(in, out);
  CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
  static char page[1 << 16];
  memory_text memory = {page, sizeof page, 0};
  CHECK(vyre_counters_print((vyre_writer){memory_write, &memory}));
  char line[128];
  snprintf(
      line, sizeof line,
      "vyre_driver_dispatch_launches_total{device=\"ref\",id=\"%llu\"} 1\n",
      (unsigned long long)vyre_device_id(r.device));
  CHECK_HAS(page, line);
  /* Metrics that dashboards use. */
  static const char *const names[] = {
      "dispatch_launches_total counter",
      "dispatch_bytes_total counter",
      "dispatch_host_buffers_total counter",
      "dispatch_host_buffer_bytes_total counter",
      "dispatch_host_buffer_retained_capacity_bytes gauge",
      "grid_sync_splits_total counter",
      "device_buffers gauge",
      "device_buffer_bytes gauge"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    snprintf(line, sizeof line, "# TYPE vyre_driver_%s\n", names[i]);
    CHECK_HAS(page, line);
  }
  static const char *const labels[][2] = {
      {"dispatch_bytes_total", "direction=\"input\""},
      {"dispatch_bytes_total", "direction=\"output\""},
      {"dispatch_host_buffers_total", "kind=\"reused\""},
      {"dispatch_host_buffers_total", "kind=\"moved\""},
      {"dispatch_host_buffers_total", "kind=\"appended\""},
      {"dispatch_host_buffer_bytes_total", "kind=\"incoming\""},
      {"dispatch_host_buffer_bytes_total", "kind=\"copied\""},
      {"dispatch_host_buffer_bytes_total", "kind=\"moved\""},
      {"dispatch_host_buffer_bytes_total", "kind=\"appended\""},
      {"grid_sync_splits_total", "kind=\"programs\""},
      {"grid_sync_splits_total", "kind=\"segments\""},
      {"grid_sync_splits_total", "kind=\"sync_points\""}};
  for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
    snprintf(line, sizeof line,
             "\nvyre_driver_%s{device=\"ref\",id=\"%llu\",%s} ", labels[i][0],
             (unsigned long long)vyre_device_id(r.device), labels[i][1]);
    CHECK_HAS(page, line);
  }
  vyre_counters before, after;
  vyre_counters_read(NULL, &before);
  rig_close(&r); /* the sum keeps the counters of a closed device */
  vyre_counters_read(NULL, &after);
  CHECK_U64(after.launches, before.launches);
}

/* Memory changes each time, so that it is all checked and sorted. The scratch
 * memory of one batch is reused by the next. */
TEST(a_large_batch_after_the_first_allocates_nothing) {
  enum { ITEMS = 1000 };
  test_heap heap = {.left = -1};
  rig r = rig_open(text, &heap);
  vyre_status st = {0};
  data d = make_data(3);
  static want got[4][ITEMS];
  static vyre_dispatch_desc items[ITEMS];
  static vyre_output outs[ITEMS][2];
  vyre_input ins[] = INPUTS(d);
  want right = expect(&d, 1);
  for (int round = 0; round < 4; round++) {
    for (int i = 0; i < ITEMS; i++) {
      outs[i][0] = vyre_output_bytes(got[round][i].y, BYTES);
      outs[i][1] = vyre_output_bytes(got[round][i].z, 16);
      items[i] = DESC(ins, outs[i]);
    }
    size_t before = heap.calls;
    CHECK_OK(vyre_submit(r.pipeline, items, ITEMS, NULL, &st), st);
    if (round > 0) CHECK_U64(heap.calls - before, 0);
    for (int i = 0; i < ITEMS; i++) {
      CHECK(memcmp(&got[round][i], &right, sizeof right) == 0);
    }
  }
  /* Shared memory is still found. */
  outs[ITEMS - 1][1] = outs[500][1];
  CHECK_FAILS(vyre_submit(r.pipeline, items, ITEMS, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  CHECK_U64(status_number(&st, "other_item"), 500);
  rig_close(&r);
  CHECK_U64(heap.live_bytes, 0);
}

TEST_MAIN(TEST_ENTRY(the_reference_run_and_a_pipeline_agree),
          TEST_ENTRY(a_large_batch_after_the_first_allocates_nothing),
          TEST_ENTRY(host_buffers_keep_their_memory),
          TEST_ENTRY(retained_capacity_is_counted_while_host_buffers_have_it),
          TEST_ENTRY(host_buffers_are_replaced_one_by_one),
          TEST_ENTRY(device_buffers_feed_the_next_dispatch),
          TEST_ENTRY(a_device_input_output_is_updated_in_place),
          TEST_ENTRY(dead_and_foreign_handles_are_refused),
          TEST_ENTRY(bad_descriptors_are_refused_before_anything_runs),
          TEST_ENTRY(a_host_buffer_cannot_be_input_and_output),
          TEST_ENTRY(one_device_buffer_may_be_input_and_output),
          TEST_ENTRY(repeated_launches_run_back_to_back),
          TEST_ENTRY(variants_are_compiled_before_they_run),
          TEST_ENTRY(a_batch_runs_in_order_and_names_what_failed),
          TEST_ENTRY(copies_are_reported_and_can_be_refused),
          TEST_ENTRY(unmeasured_values_are_absent),
          TEST_ENTRY(a_warm_dispatch_allocates_nothing),
          TEST_ENTRY(counters_are_text_for_prometheus))
