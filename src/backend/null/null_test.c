/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The runtime with a device whose memory the host cannot access. The null
 * backend runs nothing, so outputs hold what the runtime put there: zeros, or
 * the input. */

#include "support/check.h"
#include "support/driver.h"

static const char text[] =
    "kernel k workgroup(8) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "buffer z : write u32[] @2;\n"
    "{\n    y[global_id.x] = x[global_id.x];\n    z[global_id.x] = 1;\n}\n";

enum { COUNT = 3000, BYTES = 4 * COUNT };

static test_heap heap;

static rig open_null(void) {
  heap = (test_heap){.left = -1};
  vyre_context_options options = {.allocator = {test_heap_resize, &heap},
                                  .cache_directory = "",
                                  .trace_file = "",
                                  .faults = ""};
  return rig_open_as(&options, "null", text);
}

static void close_null(rig *r) {
  rig_close(r);
  CHECK_U64(heap.live_bytes, 0);
}

static uint32_t x[COUNT], y[COUNT], to[COUNT], z[COUNT], zeros[COUNT],
    ones[COUNT], got[COUNT];

static void fill(void) {
  for (uint32_t i = 0; i < COUNT; i++) {
    x[i] = i;
    y[i] = i * 7 + 1;
    to[i] = z[i] = ones[i] = 0xffffffff;
    zeros[i] = 0;
  }
}

static vyre_buffer make(rig *r, const void *data) {
  vyre_buffer made;
  vyre_status st = {0};
  CHECK_OK(vyre_buffer_create(r->device, BYTES, &made, &st), st);
  CHECK_OK(vyre_buffer_upload(r->device, made, 0, data, BYTES, &st), st);
  return made;
}

static const uint32_t *download(rig *r, vyre_buffer from) {
  vyre_status st = {0};
  CHECK_OK(vyre_buffer_download(r->device, from, 0, got, BYTES, &st), st);
  return got;
}

/* Input y: host memory or a device buffer. Output y: host memory, a device
 * buffer, a new buffer, or in place. Output z: host memory, a device buffer or
 * a new buffer. */
static void check_mixture(rig *r, bool in_resident, int out, int zs) {
  vyre_status st = {0};
  fill();
  vyre_buffer ry = {0}, rto = {0}, rz = {0};
  vyre_input in[] = {vyre_input_bytes(x, BYTES), vyre_input_bytes(y, BYTES)};
  vyre_output outs[] = {vyre_output_bytes(to, BYTES),
                        vyre_output_bytes(z, BYTES)};
  if (in_resident) {
    ry = make(r, y);
    in[1] = vyre_input_buffer(ry);
  }
  if (out == 1) rto = make(r, ones);
  if (out == 1) outs[0] = vyre_output_buffer(rto);
  if (out == 2) outs[0] = vyre_output_new_buffer(&rto, 0);
  if (out == 3)
    outs[0] = (vyre_output){.data = in_resident ? NULL : y,
                            .size = in_resident ? 0 : BYTES};
  if (zs == 1) rz = make(r, ones);
  if (zs == 1) outs[1] = vyre_output_buffer(rz);
  if (zs == 2) outs[1] = vyre_output_new_buffer(&rz, BYTES);
  vyre_dispatch_desc desc = {
      .inputs = in, .input_count = 2, .outputs = outs, .output_count = 2};
  uint32_t kept[COUNT];
  memcpy(kept, y, BYTES);
  CHECK_OK(vyre_dispatch(r->pipeline, &desc, &st), st);
  const uint32_t *result = out == 0   ? to
                           : out == 3 ? in_resident ? download(r, ry) : y
                                      : download(r, rto);
  CHECK(memcmp(result, kept, BYTES) == 0);
  result = zs == 0 ? z : download(r, rz);
  CHECK(memcmp(result, zeros, BYTES) == 0);
  vyre_buffer all[] = {ry, rto, rz};
  for (int i = 0; i < 3; i++) {
    if (all[i].owner) {
      CHECK_OK(vyre_buffer_destroy(r->device, all[i], &st), st);
    }
  }
}

TEST(first_contents_reach_memory_that_the_host_cannot_touch) {
  rig r = open_null();
  for (int mix = 0; mix < 24; mix++) {
    check_mixture(&r, mix % 2, mix / 2 % 4, mix / 8);
  }
  vyre_counters counters;
  vyre_counters_read(r.device, &counters);
  CHECK_U64(counters.launches, 0); /* it reports that it ran nothing */
  CHECK_U64(counters.live_device_buffers, 0);
  close_null(&r);
}

TEST(copies_to_the_device_are_reported_and_can_be_refused) {
  vyre_status st = {0};
  vyre_copy_report copies;
  rig r = open_null();
  fill();
  vyre_input in[] = {vyre_input_bytes(x, BYTES), vyre_input_bytes(y, BYTES)};
  vyre_output outs[] = {vyre_output_bytes(y, BYTES),
                        vyre_output_bytes(z, BYTES)};
  vyre_dispatch_desc desc = {.inputs = in,
                             .input_count = 2,
                             .outputs = outs,
                             .output_count = 2,
                             .copies = &copies};
  CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
  CHECK_U64(copies.borrowed_bytes, 0);
  CHECK_U64(copies.copied_bytes, UINT64_C(3) * BYTES);
  CHECK_U64(copies.copies, 3);
  CHECK_TEXT(copies.first_copied, "x");
  CHECK_TEXT(vyre_copy_reason_name(copies.first_reason), "device_memory");
  vyre_fence *fence; /* owned inputs are copied once more before it */
  CHECK_OK(vyre_submit(r.pipeline, &desc, 1, &fence, &st), st);
  CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
  vyre_fence_release(fence);
  CHECK_U64(copies.borrowed_bytes, 0);
  CHECK_U64(copies.copied_bytes, UINT64_C(4) * BYTES);
  desc.require_zero_copy = true;
  CHECK_FAILS(vyre_dispatch(r.pipeline, &desc, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_COPY_NEEDED);
  CHECK_HAS(st.message, "cannot use host memory directly");
  st = (vyre_status){0};
  vyre_buffer rx = make(&r, x), ry = make(&r, y), rz = make(&r, z);
  in[0] = vyre_input_buffer(rx);
  in[1] = vyre_input_buffer(ry);
  outs[0] = vyre_output_buffer(ry);
  outs[1] = vyre_output_buffer(rz);
  CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
  CHECK_U64(copies.copied_bytes, 0);
  CHECK_U64(copies.device_buffer_bytes, UINT64_C(3) * BYTES);
  close_null(&r);
}

TEST(bytes_copied_to_host_buffers_are_counted) {
  vyre_status st = {0};
  vyre_counters counters;
  vyre_host_buffer slot = {0};
  vyre_output_stats stats = {0};
  rig r = open_null();
  fill();
  vyre_input in[] = {vyre_input_bytes(x, BYTES), vyre_input_bytes(y, BYTES)};
  vyre_output outs[] = {vyre_output_bytes(y, BYTES),
                        vyre_output_host_buffer(&slot, BYTES)};
  vyre_dispatch_desc desc = {.inputs = in,
                             .input_count = 2,
                             .outputs = outs,
                             .output_count = 2,
                             .output_stats = &stats};
  for (uint64_t i = 1; i <= 2; i++) {
    CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
    vyre_counters_read(r.device, &counters);
    CHECK_U64(counters.host_buffer_copied_bytes, i * BYTES);
    CHECK_U64(stats.copied_bytes, i * BYTES);
  }
  vyre_host_buffer_deinit(&slot);
  close_null(&r);
}

TEST(memory_of_the_host_cannot_be_imported) {
  vyre_status st = {0};
  vyre_buffer made;
  rig r = open_null();
  CHECK_FAILS(vyre_buffer_import(r.device, x, BYTES, &made, &st), st,
              VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
  close_null(&r);
}

TEST(auto_never_takes_it) {
  vyre_status st = {0};
  vyre_device *device;
  vyre_device_info info;
  CHECK_OK(vyre_device_open(NULL, "auto", &device, &st), st);
  CHECK(strcmp(vyre_device_name(device), "null") != 0);
  vyre_device_release(device);
  bool is_listed = false;
  for (size_t i = 0; vyre_device_info_at(i, &info); i++) {
    if (strcmp(info.name, "null") != 0) continue;
    is_listed = true;
    CHECK_TEXT(info.description, "runs nothing: a template");
    CHECK(info.is_available);
  }
  CHECK(is_listed);
}

TEST_MAIN(TEST_ENTRY(first_contents_reach_memory_that_the_host_cannot_touch),
          TEST_ENTRY(copies_to_the_device_are_reported_and_can_be_refused),
          TEST_ENTRY(bytes_copied_to_host_buffers_are_counted),
          TEST_ENTRY(memory_of_the_host_cannot_be_imported),
          TEST_ENTRY(auto_never_takes_it))
