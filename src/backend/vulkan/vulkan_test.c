/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of the Vulkan device beyond the conformance suite: recorded commands,
 * submissions, barriers, and external devices. */
#include "backend/vulkan/vulkan_testing.h"

static const char kernels[] =
    "kernel add workgroup(64) over(y)\n"
    "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = y[i] + x[i]; }\n"
    "kernel scale workgroup(64) over(y)\n"
    "buffer x : read u32[] @0;\nbuffer y : write u32[] @1;\nuniform a : u32 "
    "@2;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = a * x[i]; }\n"
    "kernel mix workgroup(32) over(y)\n"
    "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = y[i] ^ x[i]; }\n"
    "kernel ids workgroup(1)\nbuffer y : write u32[] @0;\n"
    "{ let n = workgroup_id.x + grid_size.x * (workgroup_id.y + grid_size.y * "
    "workgroup_id.z);\n  if (n < len(y)) y[n] = workgroup_id.x * 7 + "
    "workgroup_id.y * 1000 "
    "+ workgroup_id.z * 100000; }\n"
    "kernel half workgroup(4) over(y)\n"
    "buffer x : read u16[] @0;\nbuffer y : write u16[] @1;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = x[i] + 3; }\n"
    "kernel iterate workgroup(8) over(y)\n"
    "buffer y : read_write u32[] @0;\nuniform n : u32 @1;\n"
    "{ let i = global_id.x;\n"
    "  for (let k = 0; k < n; k += 1) {\n"
    "    let other = y[(i + 1) % len(y)];\n    grid_barrier();\n"
    "    y[i % len(y)] = other + k;\n    grid_barrier();\n  } }\n";
enum { ADD, SCALE, MIX, IDS, HALF, ITERATE };

/* All combinations of memory and wait options. */
static const char *const configs[] = {"", "vulkan.staging=1",
                                      "vulkan.force_fences=1",
                                      "vulkan.staging=1,vulkan.force_fences=1"};
enum { CONFIGS = sizeof configs / sizeof configs[0], N = 1000 };

static void begin(vk_rig *r, const char *options) {
  vk_rig_open(r, options);
  vk_rig_compile(r, kernels);
}

static uint32_t value(uint32_t i, uint32_t seed) {
  return (i + 1) * 2654435761u ^ seed * 40503u;
}

/* Runs y += x with @p n elements and checks all of them. */
static void add_once(vk_rig *r, uint32_t n, uint32_t seed) {
  static uint32_t x[4 * N], y[4 * N];
  vyre_status st = {0};
  CHECK(n <= 4 * N);
  for (uint32_t i = 0; i < n; i++) {
    x[i] = value(i, seed);
    y[i] = i;
  }
  vyre_input in[] = {vyre_input_bytes(x, n * sizeof *x),
                     vyre_input_bytes(y, n * sizeof *y)};
  vyre_output out[] = {vyre_output_bytes(y, n * sizeof *y)};
  vyre_dispatch_desc desc = {
      .inputs = in, .input_count = 2, .outputs = out, .output_count = 1};
  CHECK_OK(vyre_dispatch(r->pipelines[ADD], &desc, &st), st);
  for (uint32_t i = 0; i < n; i++) CHECK_U64(y[i], value(i, seed) + i);
}

TEST(runs_with_every_memory_and_wait_option) {
  for (int i = 0; i < CONFIGS; i++) {
    vk_rig r;
    begin(&r, configs[i]);
    CHECK(r.own->is_unified == (strstr(configs[i], "staging") == NULL));
    CHECK((r.own->timeline == NULL) == (strstr(configs[i], "fences") != NULL));
    for (uint32_t n = 1; n < 3 * N; n += 701) add_once(&r, n, n);
    vk_rig_close(&r);
  }
}

TEST(a_warm_dispatch_records_nothing) {
  for (int i = 0; i < CONFIGS; i++) {
    vk_rig r;
    begin(&r, configs[i]);
    add_once(&r, N, 1);
    unsigned begins = vk_calls.begins, updates = vk_calls.updates,
             submits = vk_calls.submits;
    for (uint32_t k = 0; k < 20; k++) add_once(&r, N, k);
    CHECK_U64(vk_calls.begins, begins);
    CHECK_U64(vk_calls.updates, updates);
    CHECK_U64(vk_calls.submits, submits + 20);
    add_once(&r, N + 1, 1); /* other lengths need other commands */
    CHECK_U64(vk_calls.begins, begins + 1);
    add_once(&r, N, 2); /* the first commands are still cached */
    CHECK_U64(vk_calls.begins, begins + 1);
    vk_rig_close(&r);
  }
}

TEST(a_batch_is_one_submission) {
  enum { ITEMS = 1000, LENGTH = 16 };
  static uint32_t x[ITEMS][LENGTH], y[ITEMS][LENGTH];
  static vyre_input in[ITEMS][2];
  static vyre_output out[ITEMS];
  static vyre_dispatch_desc items[ITEMS];
  vk_rig r;
  vyre_status st = {0};
  begin(&r, "");
  for (unsigned pass = 0; pass < 5; pass++) {
    for (uint32_t k = 0; k < ITEMS; k++) {
      for (uint32_t i = 0; i < LENGTH; i++) {
        x[k][i] = value(i, k + pass);
        y[k][i] = k;
      }
      in[k][0] = vyre_input_bytes(x[k], sizeof x[k]);
      in[k][1] = vyre_input_bytes(y[k], sizeof y[k]);
      out[k] = vyre_output_bytes(y[k], sizeof y[k]);
      items[k] = (vyre_dispatch_desc){.inputs = in[k],
                                      .input_count = 2,
                                      .outputs = &out[k],
                                      .output_count = 1,
                                      .is_borrowed = true};
    }
    unsigned submits = vk_calls.submits, begins = vk_calls.begins,
             updates = vk_calls.updates;
    CHECK_OK(vyre_submit(r.pipelines[ADD], items, ITEMS, NULL, &st), st);
    CHECK_U64(vk_calls.submits, submits + 1);
    /* the second batch is encoded as one buffer, later ones not at all */
    if (pass > 0) {
      CHECK_U64(vk_calls.begins, begins + (pass == 1));
      if (pass > 1) CHECK_U64(vk_calls.updates, updates);
    }
    for (uint32_t k = 0; k < ITEMS; k++) {
      for (uint32_t i = 0; i < LENGTH; i++) {
        CHECK_U64(y[k][i], value(i, k + pass) + k);
      }
    }
  }
  vk_rig_close(&r);
}

/* Submits @p items that add to the @p count buffers of @p y in turn. */
static void add_device_buffers(vk_rig *r, vyre_buffer x, vyre_buffer *y,
                               unsigned count, unsigned items) {
  enum { MAX_ITEMS = 16 };
  vyre_input in[MAX_ITEMS][2];
  vyre_output out[MAX_ITEMS];
  vyre_dispatch_desc list[MAX_ITEMS];
  vyre_status st = {0};
  CHECK(items <= MAX_ITEMS);
  for (unsigned i = 0; i < items; i++) {
    in[i][0] = (vyre_input){.buffer = x};
    in[i][1] = (vyre_input){.buffer = y[i % count]};
    out[i] = (vyre_output){.buffer = y[i % count]};
    list[i] = (vyre_dispatch_desc){.inputs = in[i],
                                   .input_count = 2,
                                   .outputs = &out[i],
                                   .output_count = 1};
  }
  CHECK_OK(vyre_submit(r->pipelines[ADD], list, items, NULL, &st), st);
}

TEST(device_buffers_are_bound_directly) {
  vk_rig r;
  vyre_status st = {0};
  vyre_buffer x, y[8];
  static uint32_t data[N], got[N];
  begin(&r, "");
  for (uint32_t i = 0; i < N; i++) data[i] = value(i, 3);
  CHECK_OK(vyre_buffer_create(r.device, sizeof data, &x, &st), st);
  CHECK_OK(vyre_buffer_upload(r.device, x, 0, data, sizeof data, &st), st);
  for (int i = 0; i < 8; i++) {
    CHECK_OK(vyre_buffer_create(r.device, sizeof data, &y[i], &st), st);
  }
  unsigned copies = vk_calls.copies, submits = vk_calls.submits;
  uint64_t barriers = r.own->counters.barriers;
  add_device_buffers(&r, x, y, 8, 8);
  CHECK_U64(r.own->counters.barriers, barriers); /* all buffers differ */
  add_device_buffers(&r, x, y, 1, 8);
  CHECK_U64(r.own->counters.barriers,
            barriers + 7); /* each item reads the previous one */
  add_device_buffers(&r, x, y, 4, 8);
  CHECK_U64(r.own->counters.barriers,
            barriers + 8); /* before the second four */
  CHECK_U64(vk_calls.copies, copies);
  CHECK_U64(vk_calls.submits, submits + 3);
  for (int b = 0; b < 8; b++) {
    uint32_t times = 1 + (b == 0 ? 8 : 0) + (b < 4 ? 2 : 0);
    CHECK_OK(vyre_buffer_download(r.device, y[b], 0, got, sizeof got, &st), st);
    for (uint32_t i = 0; i < N; i++)
      CHECK_U64(got[i], (uint32_t)(times * data[i]));
  }
  vk_rig_close(&r);
}

/* Offsets that descriptors cannot have, and 16-bit elements. */
TEST(device_buffers_at_any_offset) {
  for (int w = 0; w < CONFIGS; w++) {
    vk_rig r;
    vyre_status st = {0};
    vyre_buffer x, y;
    uint16_t data[64], got[64];
    begin(&r, configs[w]);
    for (uint32_t i = 0; i < 64; i++) data[i] = (uint16_t)(i * 1001);
    CHECK_OK(vyre_buffer_create(r.device, sizeof data, &x, &st), st);
    CHECK_OK(vyre_buffer_create(r.device, sizeof data, &y, &st), st);
    CHECK_OK(vyre_buffer_upload(r.device, x, 0, data, sizeof data, &st), st);
    for (uint32_t from = 0; from < 9; from++) {
      const uint32_t count = 13;
      memset(got, 0xAB, sizeof got);
      CHECK_OK(vyre_buffer_upload(r.device, y, 0, got, sizeof got, &st), st);
      vyre_input in[] = {{.buffer = x,
                          .offset = from * UINT64_C(2),
                          .size = count * (size_t)2}};
      vyre_output out[] = {{.buffer = y,
                            .offset = UINT64_C(2) * (from + 5),
                            .size = count * (size_t)2}};
      vyre_dispatch_desc desc = {
          .inputs = in, .input_count = 1, .outputs = out, .output_count = 1};
      CHECK_OK(vyre_dispatch(r.pipelines[HALF], &desc, &st), st);
      CHECK_OK(vyre_buffer_download(r.device, y, 0, got, sizeof got, &st), st);
      for (uint32_t i = 0; i < 64; i++) {
        uint32_t at = i - (from + 5);
        bool is_inside = i >= from + 5 && at < count;
        CHECK_U64(got[i], is_inside ? (uint16_t)(data[from + at] + 3) : 0xABAB);
      }
    }
    vk_rig_close(&r);
  }
}

TEST(layouts_are_shared) {
  vk_rig r;
  vk_rig_open(&r, "");
  uint64_t info = r.own->counters.layouts_made,
           shared = r.own->counters.layouts_shared;
  vk_rig_compile(&r, kernels);
  /* add and mix have equal bindings; half has other elements. */
  CHECK_U64(r.own->counters.layouts_shared, shared + 1);
  CHECK_U64(r.own->counters.layouts_made, info + 5);
  vk_rig_close(&r);
}

/* --- grids ---------------------------------------------------------------- */

static void check_ids(vk_rig *r, uint32_t gx, uint32_t gy, uint32_t gz) {
  uint32_t count = gx * gy * gz;
  uint32_t *y = calloc(count, 4);
  vyre_status st = {0};
  vyre_output out[] = {vyre_output_bytes(y, (size_t)count * 4)};
  vyre_dispatch_desc desc = {
      .outputs = out, .output_count = 1, .grid = {gx, gy, gz}};
  CHECK_OK(vyre_dispatch(r->pipelines[IDS], &desc, &st), st);
  for (uint32_t i = 0; i < count; i++) {
    CHECK_U64(y[i], i % gx * 7 + i / gx % gy * 1000 + i / gx / gy * 100000);
  }
  free(y);
}

TEST(grids_larger_than_one_vulkan_dispatch) {
  vk_rig r;
  begin(&r, "");
  check_ids(&r, 65535, 1, 1);
  check_ids(&r, 65536, 1, 1);
  check_ids(&r, 200001, 1, 1);
  check_ids(&r, 1, 70000, 2);
  check_ids(&r, 2, 1, 66000);
  vk_rig_close(&r);
}

/* With a limit of 1 ms most of these launches are split. */
TEST(long_dispatches_are_split) {
  vk_rig r;
  begin(&r, "vulkan.max_submit_ms=1");
  unsigned submits = vk_calls.submits;
  check_ids(&r, 100, 60, 10);
  CHECK(vk_calls.submits > submits + 2);
  for (uint32_t n = 1; n < 40; n += 7) check_ids(&r, n, 41 - n, 37);
  vk_rig_close(&r);
}

TEST(grid_barriers_with_every_option) {
  for (int w = 0; w < CONFIGS; w++) {
    vk_rig r;
    vyre_status st = {0};
    begin(&r, configs[w]);
    for (uint32_t n = 0; n < 9; n += 2) {
      uint32_t y[40], want[40], next[40];
      for (uint32_t i = 0; i < 40; i++) y[i] = want[i] = value(i, n);
      for (uint32_t k = 0; k < n; k++) {
        for (uint32_t i = 0; i < 40; i++) next[i] = want[(i + 1) % 40] + k;
        memcpy(want, next, sizeof want);
      }
      vyre_input in[] = {vyre_input_bytes(y, sizeof y),
                         vyre_input_bytes(&n, 4)};
      vyre_output out[] = {vyre_output_bytes(y, sizeof y)};
      vyre_dispatch_desc desc = {
          .inputs = in, .input_count = 2, .outputs = out, .output_count = 1};
      CHECK_OK(vyre_dispatch(r.pipelines[ITERATE], &desc, &st), st);
      CHECK(memcmp(y, want, sizeof y) == 0);
    }
    vk_rig_close(&r);
  }
}

TEST(buffers_larger_than_the_range_are_rejected) {
  vk_rig r;
  vyre_status st = {0};
  vyre_buffer x;
  begin(&r, "");
  uint64_t max = vyre_device_get_caps(r.device)->max_buffer_bytes;
  CHECK(max <= r.own->physical->properties.limits.maxStorageBufferRange);
  CHECK_FAILS(vyre_buffer_create(r.device, max + 4, &x, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_U64(status_number(&st, "max_bytes"), max);
  vk_rig_close(&r);
}

/* Simulates a device with few push constants and short uniform buffers. */
TEST(launch_blocks_larger_than_the_range_are_rejected) {
  vk_rig r;
  vyre_status st = {0};
  vk_rig_open(&r, "vulkan.push_constants=1");
  vk_physical_device small = *r.own->physical;
  small.properties.limits.maxPushConstantsSize = 8;
  small.properties.limits.maxUniformBufferRange = 8;
  r.own->physical = &small;
  r.module = parse_module(kernels);
  CHECK_FAILS(vyre_pipeline_compile(r.device, vyre_module_kernel(r.module, ADD),
                                    NULL, &r.pipelines[0], NULL, &st),
              st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
  CHECK_HAS(st.message, "launch block");
  CHECK_U64(status_number(&st, "max"), 8);
  r.own->physical = r.own->logical->physical;
  vk_rig_close(&r);
}

/* Simulates a device with ranges of 4 GiB, which allow more bytes than a signed
 * index. */
TEST(more_elements_than_a_signed_index_are_rejected) {
  static const uint32_t lengths[] = {0, 1, INT32_MAX, (uint32_t)INT32_MAX + 1,
                                     UINT32_MAX};
  vk_rig r;
  vk_rig_open(&r, "");
  vk_rig_compile(&r,
                 "kernel b workgroup(1)\nbuffer y : read_write u8[] @0;\n"
                 "{ y[len(y) - 1] = 1; }\n");
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    vyre_status st = {0};
    const vyre__view view = {.length = lengths[i]};
    const vyre__launch launch = {
        .pipeline = r.pipelines[0], .views = &view, .grid = {1, 1, 1}};
    vyre_code code = vyre__launch_check(&launch, &st);
    CHECK_U64(code, lengths[i] <= INT32_MAX ? VYRE_OK : VYRE_INVALID_ARGUMENT);
    if (code == VYRE_OK) continue;
    CHECK_U64(status_number(&st, "elements"), lengths[i]);
    CHECK_U64(status_number(&st, "max_elements"), INT32_MAX);
  }
  vk_rig_close(&r);
}

/* --- devices -------------------------------------------------------------- */

TEST(another_open_reuses_the_instance) {
  const vk_instance *instance = vk_instance_find();
  VkInstance handle = instance->handle;
  vk_rig a, b;
  begin(&a, "");
  begin(&b, "");
  CHECK(vk_instance_find() == instance && instance->handle == handle);
  CHECK(a.own->handle == b.own->handle);
  add_once(&a, N, 1);
  add_once(&b, N, 2);
  for (int i = 0; i < 8; i++) vyre_pipeline_release(b.pipelines[i]);
  vyre_module_release(b.module);
  vyre_device_release(b.device);
  vyre_context_release(b.context);
  add_once(&a, N, 3);
  vk_rig_close(&a);
}

TEST(works_next_to_a_cpu_device) {
  vk_rig r;
  vyre_device *cpu;
  vyre_status st = {0};
  vyre_pipeline *pipeline;
  begin(&r, "");
  CHECK_OK(vyre_device_open(r.context, "cpu", &cpu, &st), st);
  vyre_code code = vyre_pipeline_compile(
      cpu, vyre_module_kernel(r.module, SCALE), NULL, &pipeline, NULL, &st);
  if (code == VYRE_UNSUPPORTED_FEATURE) { /* LLVM is not installed */
    vyre_device_release(cpu);
    vk_rig_close(&r);
    return;
  }
  CHECK_OK(code, st);
  static uint32_t x[N], y[2][N];
  uint32_t a = 77;
  for (uint32_t i = 0; i < N; i++) x[i] = value(i, 5);
  for (int i = 0; i < 2; i++) {
    vyre_input in[] = {vyre_input_bytes(x, sizeof x), vyre_input_bytes(&a, 4)};
    vyre_output out[] = {vyre_output_bytes(y[i], sizeof y[i])};
    vyre_dispatch_desc desc = {
        .inputs = in, .input_count = 2, .outputs = out, .output_count = 1};
    CHECK_OK(vyre_dispatch(i ? pipeline : r.pipelines[SCALE], &desc, &st), st);
  }
  CHECK(memcmp(y[0], y[1], sizeof y[0]) == 0);
  CHECK_U64(y[0][9], (uint32_t)(a * x[9]));
  vyre_pipeline_release(pipeline);
  vyre_device_release(cpu);
  vk_rig_close(&r);
}

/* --- host memory and external devices ------------------------------------- */

TEST(host_memory_is_imported) {
  vk_rig r;
  vyre_status st = {0};
  vyre_buffer x, y;
  void *memory;
  begin(&r, "");
  if (!vyre_device_get_caps(r.device)->imports_host_memory) {
    vk_rig_close(&r);
    return;
  }
  CHECK_OK(vyre_host_alloc(r.device, sizeof(uint32_t[N]), &memory, &st), st);
  uint32_t *words = memory;
  for (uint32_t i = 0; i < N; i++) words[i] = i;
  CHECK_OK(vyre_buffer_import(r.device, memory, sizeof(uint32_t[N]), &y, &st),
           st);
  CHECK_OK(vyre_buffer_create(r.device, sizeof(uint32_t[N]), &x, &st), st);
  CHECK_OK(vyre_buffer_upload(r.device, x, 0, words, sizeof(uint32_t[N]), &st),
           st);
  unsigned copies = vk_calls.copies;
  add_device_buffers(&r, x, &y, 1, 3);
  CHECK_U64(vk_calls.copies, copies);
  for (uint32_t i = 0; i < N; i++) CHECK_U64(words[i], UINT64_C(4) * i);
  vyre_buffer device;
  CHECK_FAILS(vyre_buffer_import(r.device, words + 1, 64, &device, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  st = (vyre_status){0};
  vyre_input in[] = {vyre_input_buffer(x),
                     vyre_input_bytes(memory, sizeof(uint32_t[N]))};
  vyre_output out[] = {vyre_output_bytes(memory, sizeof(uint32_t[N]))};
  vyre_dispatch_desc desc = {.inputs = in,
                             .input_count = 2,
                             .outputs = out,
                             .output_count = 1,
                             .require_zero_copy = true};
  CHECK_FAILS(vyre_dispatch(r.pipelines[ADD], &desc, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_COPY_NEEDED);
  CHECK_HAS(st.fix, "vyre_buffer_import"); /* the fix imports the same memory */
  st = (vyre_status){0};
  CHECK_OK(vyre_buffer_destroy(r.device, y, &st), st);
  vyre_host_free(r.device, memory, sizeof(uint32_t[N]));
  vk_rig_close(&r);
}

static VKAPI_ATTR void VKAPI_CALL require_more_bytes(
    VkDevice device, VkBuffer buffer, VkMemoryRequirements *out) {
  vk_calls.real.GetBufferMemoryRequirements(device, buffer, out);
  out->size += out->alignment;
}

static VKAPI_ATTR VkResult VKAPI_CALL
allow_any_type(VkDevice device, VkExternalMemoryHandleTypeFlagBits type,
               const void *host, VkMemoryHostPointerPropertiesEXT *out) {
  (void)device, (void)type, (void)host;
  out->memoryTypeBits = UINT32_MAX;
  return VK_SUCCESS;
}

/* The buffer needs more bytes than the memory has, or allows only memory types
 * with special properties. */
TEST(unsuitable_host_memory_is_rejected) {
  for (int i = 0; i < 2; i++) {
    vk_rig r;
    vyre_status st = {0};
    vyre_buffer y;
    void *memory;
    begin(&r, "");
    if (vyre_device_get_caps(r.device)->imports_host_memory) {
      vk_physical_device own = *r.own->physical;
      CHECK_OK(vyre_host_alloc(r.device, 4096, &memory, &st), st);
      if (i == 0) {
        r.own->api.GetBufferMemoryRequirements = require_more_bytes;
      } else {
        r.own->api.GetMemoryHostPointerPropertiesEXT = allow_any_type;
        for (uint32_t k = 0; k < own.memory.memoryTypeCount; k++) {
          own.memory.memoryTypes[k].propertyFlags |=
              VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD;
        }
        r.own->physical = &own;
      }
      CHECK_FAILS(vyre_buffer_import(r.device, memory, 4096, &y, &st), st,
                  VYRE_INVALID_ARGUMENT, VYRE_KIND_NOT_SUPPORTED);
      r.own->physical = r.own->logical->physical;
      vyre_host_free(r.device, memory, 4096);
    }
    vk_rig_close(&r);
  }
}

/* The Vulkan objects of an application. */
typedef struct app {
  PFN_vkGetInstanceProcAddr get;
  VkInstance instance;
  VkPhysicalDevice physical;
  VkDevice device;
  VkQueue queue;
  VkPhysicalDeviceVulkan12Features v12;
  VkPhysicalDeviceFeatures2 features;
  VkPhysicalDeviceConditionalRenderingFeaturesEXT conditional;
  unsigned locked, unlocked;
} app;

static const char *const app_extensions[] = {
    VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
    VK_EXT_CONDITIONAL_RENDERING_EXTENSION_NAME};

#define APP_CALL(a, name) ((PFN_vk##name)(a)->get((a)->instance, "vk" #name))

static void app_open_with(app *a, const VkPhysicalDeviceFeatures *features,
                          bool is_extended) {
  static const float one = 1;
  *a = (app){.get = vk_instance_find()->get_proc_addr};
  const VkApplicationInfo application = {
      .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
      .apiVersion = VK_API_VERSION_1_2};
  const VkInstanceCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
      .pApplicationInfo = &application};
  CHECK(APP_CALL(a, CreateInstance)(&info, NULL, &a->instance) == VK_SUCCESS);
  uint32_t count = 1;
  CHECK(APP_CALL(a, EnumeratePhysicalDevices)(a->instance, &count,
                                              &a->physical) >= 0);
  a->v12 = (VkPhysicalDeviceVulkan12Features){
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
      .timelineSemaphore = VK_TRUE};
  a->features = (VkPhysicalDeviceFeatures2){
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
      .pNext = &a->v12,
      .features = *features};
  a->conditional = (VkPhysicalDeviceConditionalRenderingFeaturesEXT){
      .sType =
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_CONDITIONAL_RENDERING_FEATURES_EXT,
      .conditionalRendering = VK_TRUE};
  if (is_extended) a->v12.pNext = &a->conditional;
  const VkDeviceQueueCreateInfo queue = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
      .queueCount = 1,
      .pQueuePriorities = &one};
  const VkDeviceCreateInfo device = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
      .pNext = &a->features,
      .queueCreateInfoCount = 1,
      .pQueueCreateInfos = &queue,
      .enabledExtensionCount = is_extended ? 2 : 0,
      .ppEnabledExtensionNames = app_extensions};
  CHECK(APP_CALL(a, CreateDevice)(a->physical, &device, NULL, &a->device) ==
        VK_SUCCESS);
  APP_CALL(a, GetDeviceQueue)(a->device, 0, 0, &a->queue);
}

static void app_open(app *a, const VkPhysicalDeviceFeatures *features) {
  app_open_with(a, features, false);
}

static void app_lock(void *self) {
  ((app *)self)->locked++;
}

static void app_unlock(void *self) {
  ((app *)self)->unlocked++;
}

/* The external device has no 64-bit integers and no narrow elements; lowering
 * replaces them. */
TEST(runs_on_an_external_device) {
  app a;
  vk_rig r = {.heap = {.left = -1}};
  vyre_status st = {0};
  app_open(&a, &(VkPhysicalDeviceFeatures){0});
  vyre_vulkan_handles handles = {.instance = a.instance,
                                 .physical_device = a.physical,
                                 .device = a.device,
                                 .queue = a.queue,
                                 .features = &a.features,
                                 .lock_queue = app_lock,
                                 .unlock_queue = app_unlock,
                                 .queue_user_data = &a};
  CHECK_OK(vyre_device_open_external_vulkan(NULL, &handles, &r.device, &st),
           st);
  r.own = (vk_device *)r.device;
  CHECK(r.own->handle == a.device && r.own->timeline);
  CHECK(!vyre_device_get_caps(r.device)->has_f64);
  vk_rig_compile(&r, kernels);
  add_once(&r, N, 1);
  check_ids(&r, 5, 6, 7);
  CHECK(a.locked > 0 && a.locked == a.unlocked);
  vk_rig_close(&r);
  vyre_device *device = NULL;
  handles.queue_family = 77;
  CHECK_FAILS(vyre_device_open_external_vulkan(NULL, &handles, &device, &st),
              st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  handles.queue = NULL;
  CHECK(vyre_device_open_external_vulkan(NULL, &handles, &device, NULL) ==
        VYRE_INVALID_ARGUMENT);
  CHECK(!device);
  APP_CALL(&a, DestroyDevice)(a.device,
                              NULL); /* the application still owns it */
  APP_CALL(&a, DestroyInstance)(a.instance, NULL);
}

/* f64 needs 64-bit integers. Each device is probed. */
TEST(runs_on_external_devices_with_f64) {
  static const VkPhysicalDeviceFeatures cases[] = {
      {.shaderFloat64 = VK_TRUE},
      {.shaderFloat64 = VK_TRUE, .shaderInt64 = VK_TRUE}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    app a;
    vk_rig r = {.heap = {.left = -1}};
    vyre_status st = {0};
    app_open(&a, &cases[i]);
    vyre_vulkan_handles handles = {.instance = a.instance,
                                   .physical_device = a.physical,
                                   .device = a.device,
                                   .queue = a.queue,
                                   .features = &a.features};
    CHECK_OK(vyre_device_open_external_vulkan(NULL, &handles, &r.device, &st),
             st);
    r.own = (vk_device *)r.device;
    CHECK(vyre_device_get_caps(r.device)->has_f64 ==
          (cases[i].shaderFloat64 && cases[i].shaderInt64));
    vk_rig_compile(&r, kernels);
    add_once(&r, N, 1);
    vk_rig_close(&r);
    APP_CALL(&a, DestroyDevice)(a.device, NULL);
    APP_CALL(&a, DestroyInstance)(a.instance, NULL);
  }
}

static void report_no_import(VkPhysicalDevice physical,
                             const VkPhysicalDeviceExternalBufferInfo *query,
                             VkExternalBufferProperties *found) {
  (void)physical;
  CHECK(query->handleType ==
        VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT);
  CHECK(query->usage & VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
  found->externalMemoryProperties = (VkExternalMemoryProperties){0};
}

static PFN_vkVoidFunction get_without_import(VkInstance instance,
                                             const char *name) {
  if (strcmp(name, "vkGetPhysicalDeviceExternalBufferProperties") == 0) {
    return (PFN_vkVoidFunction)report_no_import;
  }
  return vk_instance_find()->get_proc_addr(instance, name);
}

/* Only extensions and features that the application enabled are used. Host
 * memory is imported only if the driver allows it for these buffers. */
TEST(external_devices_use_enabled_features_only) {
  static const struct {
    bool is_extended, takes_memory;
  } cases[] = {{false, false}, {true, true}, {true, false}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    app a;
    vk_rig r = {.heap = {.left = -1}};
    vyre_status st = {0};
    app_open_with(&a, &(VkPhysicalDeviceFeatures){0}, cases[i].is_extended);
    vyre_vulkan_handles handles = {
        .instance = a.instance,
        .physical_device = a.physical,
        .device = a.device,
        .queue = a.queue,
        .features = &a.features,
        .extensions = app_extensions,
        .extension_count = cases[i].is_extended ? 2 : 0};
    if (!cases[i].takes_memory) {
      PFN_vkGetInstanceProcAddr get_proc = get_without_import;
      memcpy(&handles.get_instance_proc_addr, &get_proc, sizeof get_proc);
    }
    CHECK_OK(vyre_device_open_external_vulkan(NULL, &handles, &r.device, &st),
             st);
    r.own = (vk_device *)r.device;
    CHECK(vyre_device_get_caps(r.device)->imports_host_memory ==
          cases[i].takes_memory);
    CHECK(r.own->tests_loop_flags == cases[i].is_extended);
    vk_rig_compile(&r, kernels);
    add_once(&r, N, 1);
    vk_rig_close(&r);
    APP_CALL(&a, DestroyDevice)(a.device, NULL);
    APP_CALL(&a, DestroyInstance)(a.instance, NULL);
  }
}

TEST(incomplete_external_handles_are_rejected) {
  app a;
  app_open(&a, &(VkPhysicalDeviceFeatures){0});
  const vyre_vulkan_handles complete = {.instance = a.instance,
                                        .physical_device = a.physical,
                                        .device = a.device,
                                        .queue = a.queue,
                                        .features = &a.features};
  vyre_vulkan_handles cases[] = {complete, complete, complete, complete};
  static const char *const expected[] = {"unlock_queue", "lock_queue",
                                         "'vulkan->extensions'",
                                         "'vulkan->extensions[]'"};
  static const char *const names[] = {"VK_KHR_maintenance1", NULL};
  cases[0].lock_queue = app_lock;
  cases[1].unlock_queue = app_unlock;
  cases[2].extension_count = 1;
  cases[3].extension_count = 2;
  cases[3].extensions = names;
  for (int i = 0; i < 4; i++) {
    vyre_device *device;
    vyre_status st = {0};
    CHECK_U64(vyre_device_open_external_vulkan(NULL, &cases[i], &device, &st),
              VYRE_INVALID_ARGUMENT);
    CHECK_HAS(st.message, expected[i]);
    CHECK(!device);
  }
  APP_CALL(&a, DestroyDevice)(a.device, NULL);
  APP_CALL(&a, DestroyInstance)(a.instance, NULL);
}

TEST(reports_device_time) {
  vk_rig r;
  vyre_status st = {0};
  begin(&r, "");
  static uint32_t x[4 * N], y[4 * N];
  vyre_timing timing = {0};
  vyre_input in[] = {vyre_input_bytes(x, sizeof x),
                     vyre_input_bytes(y, sizeof y)};
  vyre_output out[] = {vyre_output_bytes(y, sizeof y)};
  vyre_dispatch_desc desc = {.inputs = in,
                             .input_count = 2,
                             .outputs = out,
                             .output_count = 1,
                             .timing = &timing};
  CHECK_OK(vyre_dispatch(r.pipelines[ADD], &desc, &st), st);
  CHECK(timing.has_device);
  CHECK(timing.device_ns > 0 && timing.device_ns <= timing.wall_ns);
  vk_rig_close(&r);
}

VK_TEST_MAIN(TEST_ENTRY(runs_with_every_memory_and_wait_option),
             TEST_ENTRY(a_warm_dispatch_records_nothing),
             TEST_ENTRY(a_batch_is_one_submission),
             TEST_ENTRY(device_buffers_are_bound_directly),
             TEST_ENTRY(device_buffers_at_any_offset),
             TEST_ENTRY(layouts_are_shared),
             TEST_ENTRY(grids_larger_than_one_vulkan_dispatch),
             TEST_ENTRY(long_dispatches_are_split),
             TEST_ENTRY(grid_barriers_with_every_option),
             TEST_ENTRY(buffers_larger_than_the_range_are_rejected),
             TEST_ENTRY(launch_blocks_larger_than_the_range_are_rejected),
             TEST_ENTRY(more_elements_than_a_signed_index_are_rejected),
             TEST_ENTRY(another_open_reuses_the_instance),
             TEST_ENTRY(works_next_to_a_cpu_device),
             TEST_ENTRY(host_memory_is_imported),
             TEST_ENTRY(unsuitable_host_memory_is_rejected),
             TEST_ENTRY(runs_on_an_external_device),
             TEST_ENTRY(runs_on_external_devices_with_f64),
             TEST_ENTRY(external_devices_use_enabled_features_only),
             TEST_ENTRY(incomplete_external_handles_are_rejected),
             TEST_ENTRY(reports_device_time))
