/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fault tests: each Vulkan call and each allocation fails once. Each failure
 * sets a status, leaks nothing, and the next call works. */
#include "backend/vulkan/vulkan_testing.h"

static const char kernels[] =
    "kernel add workgroup(64) over(y)\n"
    "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = y[i] + x[i]; }\n"
    "kernel phased workgroup(8) over(y)\n"
    "buffer y : read_write u32[] @0;\n"
    "{ let i = global_id.x; y[i] = y[i] + 1; grid_barrier(); y[i] = y[i] * 2; "
    "}\n";
enum { ADD, PHASED, N = 100 };

/* The objects of an application that uses all features, up to the first
 * failure. */
typedef struct story {
  vyre_context *context;
  vyre_device *device;
  vyre_module *module;
  vyre_pipeline *add, *phased;
  vyre_buffer x, y, z;
  vyre_recording *rec;
  uint32_t data[N], sum[N];
} story;

static vyre_code compile(story *s, vyre_status *st) {
  if (vyre_module_parse(kernels, strlen(kernels), "k", (vyre_allocator){0},
                        &s->module, NULL, st) != VYRE_OK) {
    return VYRE_UNKNOWN;
  }
  vyre_code code = vyre_pipeline_compile(
      s->device, vyre_module_kernel(s->module, ADD), NULL, &s->add, NULL, st);
  if (code != VYRE_OK) return code;
  return vyre_pipeline_compile(s->device, vyre_module_kernel(s->module, PHASED),
                               NULL, &s->phased, NULL, st);
}

static vyre_code dispatch(story *s, vyre_status *st) {
  for (uint32_t i = 0; i < N; i++) s->sum[i] = s->data[i] = i;
  vyre_input in[] = {vyre_input_bytes(s->data, sizeof s->data),
                     vyre_input_bytes(s->sum, sizeof s->sum)};
  vyre_output out[] = {vyre_output_bytes(s->sum, sizeof s->sum)};
  vyre_dispatch_desc desc = {
      .inputs = in, .input_count = 2, .outputs = out, .output_count = 1};
  vyre_code code = vyre_dispatch(s->add, &desc, st);
  if (code != VYRE_OK) return code;
  for (uint32_t i = 0; i < N; i++) CHECK_U64(s->sum[i], UINT64_C(2) * i);
  vyre_input both[] = {vyre_input_bytes(s->sum, sizeof s->sum)};
  desc.inputs = both;
  desc.input_count = 1;
  code = vyre_dispatch(s->phased, &desc, st);
  if (code != VYRE_OK) return code;
  for (uint32_t i = 0; i < N; i++)
    CHECK_U64(s->sum[i], 2 * (UINT64_C(2) * i + 1));
  return VYRE_OK;
}

static vyre_code use_device_buffers(story *s, vyre_status *st) {
  vyre_buffer *all[] = {&s->x, &s->y, &s->z};
  for (int i = 0; i < 3; i++) {
    vyre_code code = vyre_buffer_create(s->device, sizeof s->data, all[i], st);
    if (code != VYRE_OK) return code;
  }
  vyre_code code =
      vyre_buffer_upload(s->device, s->x, 0, s->data, sizeof s->data, st);
  if (code != VYRE_OK) return code;
  vyre_input in[2][2] = {{{.buffer = s->x}, {.buffer = s->y}},
                         {{.buffer = s->x}, {.buffer = s->z}}};
  vyre_output out[2] = {{.buffer = s->y}, {.buffer = s->z}};
  vyre_dispatch_desc items[2];
  for (int i = 0; i < 2; i++) {
    items[i] = (vyre_dispatch_desc){.inputs = in[i],
                                    .input_count = 2,
                                    .outputs = &out[i],
                                    .output_count = 1};
  }
  return vyre_submit(s->add, items, 2, NULL, st);
}

#define TRY(call)                       \
  do {                                  \
    vyre_code code_ = (call);           \
    if (code_ != VYRE_OK) return code_; \
  } while (0)

static vyre_code record(story *s, vyre_status *st) {
  uint32_t x, y, z;
  TRY(vyre_recording_create(s->device, &s->rec, st));
  TRY(vyre_recording_add_slot(s->rec, "x", 0, &x, st));
  TRY(vyre_recording_add_slot(s->rec, "y", 0, &y, st));
  TRY(vyre_recording_add_slot(s->rec, "z", 0, &z, st));
  vyre_slot_range in[] = {vyre_slot_range_all(x), vyre_slot_range_all(y)};
  vyre_recorded_dispatch one = {
      .inputs = in, .input_count = 2, .outputs = &in[1], .output_count = 1};
  TRY(vyre_recording_add_dispatch(s->rec, s->add, &one, st));
  TRY(vyre_recording_add_copy(s->rec, in[1], vyre_slot_range_all(z), st));
  TRY(vyre_recording_add_dispatch(s->rec, s->add, &one, st));
  TRY(vyre_recording_seal(s->rec, st));
  TRY(vyre_recording_bind_slot(s->rec, x, &(vyre_slot_binding){.buffer = s->x},
                               st));
  TRY(vyre_recording_bind_slot(s->rec, y, &(vyre_slot_binding){.buffer = s->y},
                               st));
  TRY(vyre_recording_bind_slot(s->rec, z, &(vyre_slot_binding){.buffer = s->z},
                               st));
  TRY(vyre_recording_replay(s->rec, NULL, NULL, st));
  uint32_t got[N];
  TRY(vyre_buffer_download(s->device, s->z, 0, got, sizeof got, st));
  for (uint32_t i = 0; i < N; i++) CHECK_U64(got[i], UINT64_C(2) * i);
  return VYRE_OK;
}

static vyre_code run_all(story *s, const char *backend_options,
                         vyre_allocator allocator, vyre_status *st) {
  const vyre_context_options options = {.allocator = allocator,
                                        .cache_directory = "",
                                        .trace_file = "",
                                        .faults = "",
                                        .backend_options = backend_options};
  vyre_code code = vyre_context_create(&options, &s->context, st);
  if (code == VYRE_OK) {
    code = vyre_device_open(s->context, "vulkan", &s->device, st);
  }
  if (code == VYRE_OK) code = compile(s, st);
  if (code == VYRE_OK) code = dispatch(s, st);
  if (code == VYRE_OK) code = use_device_buffers(s, st);
  if (code == VYRE_OK) code = record(s, st);
  return code;
}

static void release_all(story *s) {
  vyre_recording_release(s->rec);
  vyre_pipeline_release(s->add);
  vyre_pipeline_release(s->phased);
  vyre_module_release(s->module);
  vyre_device_release(s->device);
  vyre_context_release(s->context);
}

static void check_clean(const test_heap *heap) {
  CHECK_U64(heap->live_bytes, 0);
  CHECK_U64((uint64_t)atomic_load(&vk_calls.live), 0);
  CHECK_U64(atomic_load(&vk_messages), 0);
}

/* Fails each Vulkan allocation once. */
static void sweep(VkResult result, const char *backend_options,
                  vyre_code want) {
  unsigned failures = 0;
  for (long n = 0;; n++) {
    static story s;
    test_heap heap = {.left = -1};
    vyre_status st = {0};
    s = (story){0};
    unsigned before = atomic_load(&vk_calls.failed);
    vk_calls.allocation_result = result;
    atomic_store(&vk_calls.allocations_left, n);
    vyre_code code = run_all(&s, backend_options,
                             (vyre_allocator){test_heap_resize, &heap}, &st);
    atomic_store(&vk_calls.allocations_left, -1);
    bool has_failed = atomic_load(&vk_calls.failed) > before;
    if (code != VYRE_OK) {
      CHECK(has_failed);
      CHECK_U64(code, want);
      CHECK(st.message[0] && st.fix[0]);
      failures++;
    }
    release_all(&s);
    check_clean(&heap);
    if (!has_failed) break;
    CHECK(n < 500);
  }
  CHECK(failures > 20);
  vk_calls.allocation_result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

TEST(out_of_device_memory_at_every_call) {
  sweep(VK_ERROR_OUT_OF_DEVICE_MEMORY, "", VYRE_DEVICE_OUT_OF_MEMORY);
}

TEST(out_of_host_memory_at_every_call) {
  sweep(VK_ERROR_OUT_OF_HOST_MEMORY, "vulkan.force_fences=1",
        VYRE_OUT_OF_MEMORY);
}

TEST(out_of_device_memory_with_staging) {
  sweep(VK_ERROR_OUT_OF_DEVICE_MEMORY, "vulkan.staging=1",
        VYRE_DEVICE_OUT_OF_MEMORY);
}

/* Fails host allocations, one per run. */
TEST(out_of_memory_at_every_host_allocation) {
  for (long n = 0;; n += 1 + n / 16) { /* all early ones, then a sample */
    static story s;
    test_heap heap = {.left = n, .once = true};
    vyre_status st = {0};
    s = (story){0};
    vyre_code code =
        run_all(&s, "", (vyre_allocator){test_heap_resize, &heap}, &st);
    bool has_failed = heap.left < 0 || heap.calls > (size_t)n;
    if (code != VYRE_OK) {
      CHECK(code == VYRE_OUT_OF_MEMORY || code == VYRE_DEVICE_OUT_OF_MEMORY);
      CHECK(st.message[0] && st.fix[0]);
    }
    release_all(&s);
    check_clean(&heap);
    if (!has_failed) break;
  }
}

/* --- submissions ---------------------------------------------------------- */

static const struct {
  const char *name;
  VkResult submit, wait;
  vyre_code code;
  bool is_lost;
} failures[] = {
    {"submit out of device memory", VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_SUCCESS,
     VYRE_DEVICE_OUT_OF_MEMORY, false},
    {"submit fails", VK_ERROR_UNKNOWN, VK_SUCCESS, VYRE_DISPATCH_FAILED, false},
    {"lost at submit", VK_ERROR_DEVICE_LOST, VK_SUCCESS, VYRE_DEVICE_LOST,
     true},
    {"lost during the wait", VK_SUCCESS, VK_ERROR_DEVICE_LOST, VYRE_DEVICE_LOST,
     true},
    {"wait out of device memory", VK_SUCCESS, VK_ERROR_OUT_OF_DEVICE_MEMORY,
     VYRE_DEVICE_OUT_OF_MEMORY, false},
    {"wait out of host memory", VK_SUCCESS, VK_ERROR_OUT_OF_HOST_MEMORY,
     VYRE_OUT_OF_MEMORY, false},
};

static const char *const configs[] = {"", "vulkan.force_fences=1",
                                      "vulkan.staging=1"};

static void fail_once(unsigned which, const char *backend_options) {
  static story s;
  test_heap heap = {.left = -1};
  vyre_status st = {0};
  s = (story){0};
  CHECK_OK(run_all(&s, backend_options,
                   (vyre_allocator){test_heap_resize, &heap}, &st),
           st);
  unsigned idles = vk_calls.idles;
  vk_calls.submit_result = failures[which].submit;
  vk_calls.wait_result = failures[which].wait;
  vyre_code code = dispatch(&s, &st);
  vyre_status replay_status = {0};
  vyre_code replayed = vyre_recording_replay(s.rec, NULL, NULL, &replay_status);
  vk_calls.submit_result = vk_calls.wait_result = VK_SUCCESS;
  CHECK_U64(code, failures[which].code);
  CHECK(st.message[0] && st.fix[0]);
  CHECK_U64(replayed, failures[which].code);
  CHECK(vyre_device_is_lost(s.device) == failures[which].is_lost);
  /* After a failed wait the queue is idle before memory is freed. */
  bool is_still_running =
      failures[which].wait != VK_SUCCESS && !failures[which].is_lost;
  CHECK(is_still_running == (vk_calls.idles > idles));
  st = (vyre_status){0};
  if (failures[which].is_lost) {
    CHECK_FAILS(dispatch(&s, &st), st, VYRE_DEVICE_LOST, VYRE_KIND_DEVICE_LOST);
  } else {
    CHECK_OK(dispatch(&s, &st), st);
    CHECK_OK(vyre_recording_replay(s.rec, NULL, NULL, &st), st);
  }
  release_all(&s);
  check_clean(&heap);
}

TEST(failed_submissions_are_reported_and_recovered) {
  for (unsigned i = 0; i < sizeof failures / sizeof failures[0]; i++) {
    for (unsigned w = 0; w < 3; w++) fail_once(i, configs[w]);
  }
}

VK_TEST_MAIN(TEST_ENTRY(out_of_device_memory_at_every_call),
             TEST_ENTRY(out_of_host_memory_at_every_call),
             TEST_ENTRY(out_of_device_memory_with_staging),
             TEST_ENTRY(out_of_memory_at_every_host_allocation),
             TEST_ENTRY(failed_submissions_are_reported_and_recovered))
