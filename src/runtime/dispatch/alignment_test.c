/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks the addresses of memory that the runtime allocates for bindings with a
 * preferred alignment. */
#include <string.h>

#include "hal/backend.h"
#include "runtime/memory/device_buffer.h"
#include "support/check.h"
#include "support/driver.h"

static const char text[] =
    "kernel aligned workgroup(1) over(y)\n"
    "buffer x : read u32[] @0 align(4096);\n"
    "buffer y : write u32[] @1 output align(4096);\n"
    "buffer z : write u32[] @2 output align(512);\n"
    "{ y[global_id.x] = x[global_id.x] + 1; z[global_id.x] = 1; }\n";

enum { MAX = 3000 };

/* A backend that notes the address of x, which a staged copy may have. */
static const vyre__backend *original;
static const unsigned char *x_seen;

static vyre_code execute(vyre__command_list *list, size_t first, size_t end,
                         size_t *done, vyre_status *st) {
  x_seen = list->commands[first].launch->views[0].data;
  return original->execute(list, first, end, done, st);
}

typedef struct outputs {
  vyre_host_buffer y, z;
  vyre_buffer new_y;
} outputs;

/* Runs all forms that allocate, and checks what they allocated. */
static void check_size(const rig *r, size_t count) {
  vyre_status st = {0};
  uint32_t words[MAX + 1] = {0};
  unsigned char *unaligned = (unsigned char *)words + 4;
  outputs o = {0};
  vyre_fence *fence;
  vyre__device_buffer *entry;
  vyre_input in = vyre_input_bytes(unaligned, 4 * count);
  vyre_output out[] = {vyre_output_host_buffer(&o.y, 4 * count),
                       vyre_output_host_buffer(&o.z, 4 * count)};
  vyre_dispatch_desc desc = {
      .inputs = &in, .input_count = 1, .outputs = out, .output_count = 2};
  CHECK_OK(vyre_dispatch(r->pipeline, &desc, &st), st);
  CHECK_U64((uintptr_t)o.y.data % 4096, 0);
  CHECK_U64((uintptr_t)o.z.data % 512, 0);
  void *before = o.y.data;
  CHECK_OK(vyre_dispatch(r->pipeline, &desc, &st), st);
  CHECK(o.y.data == before);
  x_seen = NULL;
  CHECK_OK(vyre_submit(r->pipeline, &desc, 1, &fence, &st), st);
  CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
  vyre_fence_release(fence);
  CHECK(x_seen && x_seen != unaligned);
  CHECK_U64((uintptr_t)x_seen % 4096, 0);
  out[0] = vyre_output_new_buffer(&o.new_y, 4 * count);
  CHECK_OK(vyre_dispatch(r->pipeline, &desc, &st), st);
  CHECK_OK(vyre__device_buffer_acquire(r->device, o.new_y, &entry, &st), st);
  CHECK(entry->buffer->host != NULL);
  CHECK_U64((uintptr_t)entry->buffer->host % 4096, 0);
  CHECK_U64(((const uint32_t *)(const void *)entry->buffer->host)[0], 1);
  vyre__device_buffer_release(r->device, entry);
  CHECK_OK(vyre_buffer_destroy(r->device, o.new_y, &st), st);
  vyre_host_buffer_deinit(&o.y);
  vyre_host_buffer_deinit(&o.z);
}

/* Checks the address of a buffer, which is also what a kernel gets. */
static void check_buffer(const rig *r, vyre_buffer buffer, uint64_t alignment) {
  vyre_status st = {0};
  vyre__device_buffer *entry;
  CHECK_OK(vyre__device_buffer_acquire(r->device, buffer, &entry, &st), st);
  CHECK(entry->buffer->host != NULL);
  CHECK_U64((uintptr_t)entry->buffer->host % alignment, 0);
  vyre__device_buffer_release(r->device, entry);
}

/* Resident buffers: as inputs, as slots of a recording, and aligned further. */
static void check_residents(const rig *r) {
  enum { N = 5 };
  vyre_status st = {0};
  vyre_buffer x[N], large;
  vyre_recording *rec;
  uint32_t slots[3];
  static const char *const names[] = {"x", "y", "z"};
  for (size_t i = 0; i < N; i++) {
    CHECK_OK(vyre_buffer_create(r->device, 4 * (1 + i), &x[i], &st), st);
    check_buffer(r, x[i], 4096);
  }
  CHECK_OK(vyre_buffer_create_aligned(r->device, 5, 1 << 20, &large, &st), st);
  check_buffer(r, large, 1 << 20);
  for (uint64_t bad = 0; bad < 4; bad++) {
    const uint64_t alignments[] = {0, 3, UINT64_C(4) << 20, UINT64_MAX};
    vyre_buffer none;
    CHECK_FAILS(
        vyre_buffer_create_aligned(r->device, 5, alignments[bad], &none, &st),
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
    CHECK(none.id == 0 && none.owner == 0);
  }
  CHECK_OK(vyre_recording_create(r->device, &rec, &st), st);
  for (int i = 0; i < 3; i++)
    CHECK_OK(vyre_recording_add_slot(rec, names[i], 4, &slots[i], &st), st);
  const vyre_slot_range in = vyre_slot_range_all(slots[0]),
                        out[] = {vyre_slot_range_all(slots[1]),
                                 vyre_slot_range_all(slots[2])};
  const vyre_recorded_dispatch one = {
      .inputs = &in, .input_count = 1, .outputs = out, .output_count = 2};
  CHECK_OK(vyre_recording_add_dispatch(rec, r->pipeline, &one, &st), st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  for (int i = 0; i < 3; i++) {
    const vyre_slot_binding to = {.buffer = x[i], .size = 4};
    CHECK_OK(vyre_recording_bind_slot(rec, slots[i], &to, &st), st);
  }
  x_seen = NULL;
  CHECK_OK(vyre_recording_replay(rec, NULL, NULL, &st), st);
  if (x_seen) CHECK_U64((uintptr_t)x_seen % 4096, 0);
  vyre_recording_release(rec);
  for (size_t i = 0; i < N; i++)
    CHECK_OK(vyre_buffer_destroy(r->device, x[i], &st), st);
  CHECK_OK(vyre_buffer_destroy(r->device, large, &st), st);
}

static void check_device(const char *device) {
  const vyre_context_options options = {
      .cache_directory = "", .trace_file = "", .faults = ""};
  rig r = rig_open_as(&options, device, text);
  static vyre__backend noting;
  original = r.device->backend;
  noting = *original;
  noting.execute = execute;
  r.device->backend = &noting;
  for (size_t count = 1; count < MAX; count = count * 3 + 1)
    check_size(&r, count);
  check_residents(&r);
  r.device->backend = original;
  rig_close(&r);
}

TEST(allocations_have_the_preferred_alignment_on_ref) {
  check_device("ref");
}

TEST(allocations_have_the_preferred_alignment_on_cpu) {
  check_device("cpu");
}

TEST(allocations_have_the_preferred_alignment_on_vulkan) {
  vyre_device *device;
  if (vyre_device_open(NULL, "vulkan", &device, NULL) != VYRE_OK) return;
  vyre_device_release(device);
  check_device("vulkan");
}

/* A preference beyond the maximum does not make allocations huge. */
TEST(a_very_large_alignment_is_limited) {
  static const char huge[] =
      "kernel huge workgroup(1) over(y)\n"
      "buffer y : write u32[] @0 output align(1073741824);\n"
      "{ y[global_id.x] = 3; }\n";
  rig r = rig_open(huge, NULL);
  vyre_status st = {0};
  vyre_host_buffer y = {0};
  vyre_output out = vyre_output_host_buffer(&y, 4);
  vyre_dispatch_desc desc = {.outputs = &out, .output_count = 1};
  CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
  CHECK_U64((uintptr_t)y.data % (2 << 20), 0);
  CHECK(y.capacity <= (2 << 20) + 4);
  vyre_host_buffer_deinit(&y);
  rig_close(&r);
}

TEST_MAIN(TEST_ENTRY(allocations_have_the_preferred_alignment_on_ref),
          TEST_ENTRY(allocations_have_the_preferred_alignment_on_cpu),
          TEST_ENTRY(allocations_have_the_preferred_alignment_on_vulkan),
          TEST_ENTRY(a_very_large_alignment_is_limited))
