/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of memory: transfers, staging, budgets, shared devices and forks. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/vulkan/pipeline.h"
#include "backend/vulkan/vulkan_testing.h"
#include "support/sanitized.h"

static const char kernels[] =
    "kernel add workgroup(64) over(y)\n"
    "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = y[i] + x[i]; }\n"
    "kernel even workgroup(64) over(y)\n"
    "buffer x : read u16[] @0;\nbuffer y : write u16[] @1;\n"
    "{ let i = global_id.x; if (i < len(y) && i % 2 == 0) y[i] = x[i] + 3; }\n";
enum { ADD, EVEN };

static const char staged[] = "vulkan.staging=1";
static const char *const configs[] = {"", staged,
                                      "vulkan.staging=1,vulkan.force_fences=1"};
enum { CONFIGS = sizeof configs / sizeof configs[0] };

static unsigned char byte_at(size_t i, unsigned seed) {
  return (unsigned char)((i * 2654435761u + (size_t)seed * 40503u) >> 13);
}

static unsigned char *bytes(size_t size, unsigned seed) {
  unsigned char *data = malloc(size + 1);
  for (size_t i = 0; i < size; i++) data[i] = byte_at(i, seed);
  return data;
}

/* --- the ring ------------------------------------------------------------- */

static const struct {
  size_t size;
  uint64_t offset;
} transfers[] = {{1, 0},
                 {3, 5},
                 {4096, 16},
                 {VK_STAGING_CHUNK_BYTES - 1, 1},
                 {VK_STAGING_CHUNK_BYTES, 0},
                 {VK_STAGING_CHUNK_BYTES + 1, 4},
                 {3 * (size_t)VK_STAGING_CHUNK_BYTES + 7, 13},
                 {(VK_STAGING_CHUNKS + 2) * (size_t)VK_STAGING_CHUNK_BYTES, 3}};

TEST(transfers_of_every_size_round_trip) {
  for (int w = 0; w < CONFIGS; w++) {
    vk_rig r;
    vk_rig_open(&r, configs[w]);
    for (size_t i = 0; i < sizeof transfers / sizeof transfers[0]; i++) {
      vyre_status st = {0};
      vyre_buffer x;
      size_t size = transfers[i].size, all = size + 32;
      uint64_t offset = transfers[i].offset;
      unsigned char *data = bytes(size, w), *got = bytes(all, 9);
      CHECK_OK(vyre_buffer_create(r.device, all, &x, &st), st);
      CHECK_OK(vyre_buffer_upload(r.device, x, offset, data, size, &st), st);
      CHECK_OK(vyre_buffer_download(r.device, x, 0, got, all, &st), st);
      for (size_t k = 0; k < all; k++) { /* bytes around them are still zero */
        bool is_inside = k >= offset && k - offset < size;
        CHECK_U64(got[k], is_inside ? byte_at(k - offset, (unsigned)w) : 0);
      }
      memset(got, 0, all);
      CHECK_OK(vyre_buffer_download(r.device, x, offset, got, size, &st), st);
      CHECK(memcmp(got, data, size) == 0);
      CHECK_OK(vyre_buffer_destroy(r.device, x, &st), st);
      free(data);
      free(got);
    }
    vk_rig_close(&r);
  }
}

TEST(large_uploads_overlap_chunks_and_allocate_nothing) {
  enum { TIMES = 3 };
  const size_t size =
      TIMES * (size_t)VK_STAGING_CHUNKS * VK_STAGING_CHUNK_BYTES;
  vk_rig r;
  vyre_status st = {0};
  vyre_buffer x;
  vk_rig_open(&r, staged);
  unsigned char *data = bytes(size, 1), *got = malloc(size);
  CHECK_OK(vyre_buffer_create(r.device, size, &x, &st), st);
  vk_staging_ring_wait(r.own); /* wait for the clear of the buffer */
  uint64_t blocks = r.own->counters.device_blocks,
           chunks = r.own->counters.staged_chunks;
  unsigned waits = vk_calls.waits;
  CHECK_OK(vyre_buffer_upload(r.device, x, 0, data, size, &st), st);
  CHECK_U64(r.own->counters.staged_chunks - chunks,
            UINT64_C(1) * TIMES * VK_STAGING_CHUNKS);
  /* A chunk is waited for when it is reused, not earlier. */
  CHECK_U64(vk_calls.waits - waits,
            (UINT64_C(0) + TIMES - 1) * VK_STAGING_CHUNKS);
  waits = vk_calls.waits;
  CHECK_OK(vyre_buffer_download(r.device, x, 0, got, size, &st), st);
  /* The remaining chunks of the upload, and those of the download. */
  CHECK_U64(vk_calls.waits - waits, (UINT64_C(1) + TIMES) * VK_STAGING_CHUNKS);
  CHECK(memcmp(got, data, size) == 0);
  CHECK_U64(r.own->counters.staged_bytes, 2 * size);
  CHECK(r.own->counters.device_blocks <= blocks + 1);
  CHECK_U64(r.own->ring.memory.size,
            (size_t)VK_STAGING_CHUNKS * VK_STAGING_CHUNK_BYTES);
  free(data);
  free(got);
  vk_rig_close(&r);
}

/* Validation layers report memory that is freed during a copy. */
TEST(buffers_can_be_freed_during_their_upload) {
  /* A separate block, which is freed with the buffer. */
  const size_t size = 40 << 20;
  vk_rig r;
  vyre_status st = {0};
  vk_rig_open(&r, staged);
  unsigned char *data = bytes(size, 1), last = 1;
  for (int i = 0; i < 4; i++) {
    vyre_buffer x;
    CHECK_OK(vyre_buffer_create(r.device, size, &x, &st), st);
    CHECK_OK(vyre_buffer_download(r.device, x, size - 1, &last, 1, &st), st);
    CHECK_U64(last, 0); /* no bytes of the previous buffer remain */
    CHECK_OK(vyre_buffer_upload(r.device, x, 0, data, size, &st), st);
    CHECK_OK(vyre_buffer_destroy(r.device, x, &st), st);
  }
  free(data);
  vk_rig_close(&r);
}

typedef struct transfer_thread {
  pthread_t thread;
  vyre_device *device;
  unsigned seed;
  bool is_good;
} transfer_thread;

/* No CHECK: a failed one would leave the thread. */
static void *transfer_repeatedly(void *self) {
  transfer_thread *c = self;
  const size_t size =
      (3 + c->seed % 3) * (size_t)VK_STAGING_CHUNK_BYTES + c->seed;
  unsigned char *data = bytes(size, c->seed), *got = malloc(size);
  vyre_buffer x;
  c->is_good = true;
  for (int i = 0; i < 4 && c->is_good; i++) {
    memset(got, 0, size);
    c->is_good =
        vyre_buffer_create(c->device, size, &x, NULL) == VYRE_OK &&
        vyre_buffer_upload(c->device, x, 0, data, size, NULL) == VYRE_OK &&
        vyre_buffer_download(c->device, x, 0, got, size, NULL) == VYRE_OK &&
        memcmp(data, got, size) == 0 &&
        vyre_buffer_destroy(c->device, x, NULL) == VYRE_OK;
  }
  free(data);
  free(got);
  return NULL;
}

/* More threads than chunks, so that threads wait for each other. */
TEST(threads_share_the_ring) {
  enum { THREADS = VK_STAGING_CHUNKS + 4 };
  transfer_thread all[THREADS];
  vk_rig r;
  vk_rig_open(&r, staged);
  for (unsigned i = 0; i < THREADS; i++) {
    all[i] = (transfer_thread){.device = r.device, .seed = i + 1};
    CHECK(pthread_create(&all[i].thread, NULL, transfer_repeatedly, &all[i]) ==
          0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(all[i].thread, NULL);
  for (int i = 0; i < THREADS; i++) CHECK(all[i].is_good);
  vk_rig_close(&r);
}

/* --- host views ----------------------------------------------------------- */

enum {
  LARGE = VK_LARGE_VIEW_BYTES / 4 + 1,
  HALVES = VK_LARGE_VIEW_BYTES / 2 + 3
};

static void add(vk_rig *r, uint32_t n, unsigned seed) {
  vyre_status st = {0};
  uint32_t *x = malloc((size_t)n * 4), *y = malloc((size_t)n * 4);
  for (uint32_t i = 0; i < n; i++) {
    x[i] = i * 2654435761u ^ seed;
    y[i] = i;
  }
  vyre_input in[] = {vyre_input_bytes(x, (size_t)n * 4),
                     vyre_input_bytes(y, (size_t)n * 4)};
  vyre_output out[] = {vyre_output_bytes(y, (size_t)n * 4)};
  vyre_copy_report copies = {0};
  vyre_dispatch_desc desc = {.inputs = in,
                             .input_count = 2,
                             .outputs = out,
                             .output_count = 1,
                             .is_borrowed = true,
                             .copies = &copies};
  CHECK_OK(vyre_dispatch(r->pipelines[ADD], &desc, &st), st);
  for (uint32_t i = 0; i < n; i++) {
    CHECK_U64(y[i], (uint32_t)((i * 2654435761u ^ seed) + i));
  }
  CHECK_U64(copies.copied_bytes, UINT64_C(8) * n); /* y is input and output */
  CHECK_U64(copies.copies, 2);
  CHECK_TEXT(copies.first_copied, "x");
  CHECK(copies.first_reason == VYRE_COPY_DEVICE_MEMORY);
  free(x);
  free(y);
}

TEST(only_large_host_views_use_the_staging_ring) {
  for (int w = 0; w < CONFIGS; w++) {
    vk_rig r;
    vk_rig_open(&r, configs[w]);
    vk_rig_compile(&r, kernels);
    add(&r, 100, 1);
    CHECK_U64(r.own->counters.staged_chunks, 0);
    add(&r, LARGE, 2);
    add(&r, LARGE, 3);
    /* uploads of x and y, and a download of y, one chunk each */
    CHECK_U64(r.own->counters.staged_chunks, w == 0 ? 0 : 2 * 3);
    unsigned begins = vk_calls.begins;
    uint64_t command_buffers = r.own->counters.command_buffers;
    add(&r, LARGE, 4);
    CHECK_U64(r.own->counters.command_buffers,
              command_buffers); /* the commands of the kernel are reused */
    CHECK_U64(vk_calls.begins, begins + (w == 0 ? 0 : 3));
    add(&r, 3 * VK_STAGING_CHUNK_BYTES / 4 + 5, 5);
    vk_rig_close(&r);
  }
}

TEST(unwritten_elements_of_large_outputs_are_zero) {
  for (int w = 0; w < CONFIGS; w++) {
    vk_rig r;
    vyre_status st = {0};
    uint16_t *x = malloc(HALVES * sizeof *x), *y = malloc(HALVES * sizeof *y);
    vk_rig_open(&r, configs[w]);
    vk_rig_compile(&r, kernels);
    for (unsigned pass = 0; pass < 3; pass++) {
      for (uint32_t i = 0; i < HALVES; i++) {
        x[i] = (uint16_t)(i * 31 + pass);
        y[i] = 0xABAB;
      }
      vyre_input in[] = {vyre_input_bytes(x, HALVES * sizeof *x)};
      vyre_output out[] = {vyre_output_bytes(y, HALVES * sizeof *y)};
      vyre_dispatch_desc desc = {
          .inputs = in, .input_count = 1, .outputs = out, .output_count = 1};
      CHECK_OK(vyre_dispatch(r.pipelines[EVEN], &desc, &st), st);
      for (uint32_t i = 0; i < HALVES; i++) {
        CHECK_U64(y[i], i % 2 == 0 ? (uint16_t)(x[i] + 3) : 0);
      }
    }
    free(x);
    free(y);
    vk_rig_close(&r);
  }
}

TEST(batch_with_large_host_views) {
  enum { ITEMS = 5 };
  for (int w = 0; w < CONFIGS; w++) {
    vk_rig r;
    vyre_status st = {0};
    uint32_t *x[ITEMS], *y[ITEMS];
    vyre_input in[ITEMS][2];
    vyre_output out[ITEMS];
    vyre_dispatch_desc items[ITEMS];
    vk_rig_open(&r, configs[w]);
    vk_rig_compile(&r, kernels);
    for (uint32_t k = 0; k < ITEMS; k++) {
      uint32_t n = k % 2 ? 50 : LARGE + k;
      size_t size = (size_t)n * 4;
      x[k] = malloc(size);
      y[k] = malloc(size);
      for (uint32_t i = 0; i < n; i++) {
        x[k][i] = i * 77 + k;
        y[k][i] = i;
      }
      in[k][0] = vyre_input_bytes(x[k], size);
      in[k][1] = vyre_input_bytes(y[k], size);
      out[k] = vyre_output_bytes(y[k], size);
      items[k] = (vyre_dispatch_desc){.inputs = in[k],
                                      .input_count = 2,
                                      .outputs = &out[k],
                                      .output_count = 1,
                                      .is_borrowed = true};
    }
    CHECK_OK(vyre_submit(r.pipelines[ADD], items, ITEMS, NULL, &st), st);
    for (uint32_t k = 0; k < ITEMS; k++) {
      for (uint32_t i = 0; i < (k % 2 ? 50 : LARGE + k); i++) {
        CHECK_U64(y[k][i], i * 78 + k);
      }
      free(x[k]);
      free(y[k]);
    }
    vk_rig_close(&r);
  }
}

/* --- budgets -------------------------------------------------------------- */

static struct {
  PFN_vkGetPhysicalDeviceMemoryProperties2 real;
  vk_instance_api api;
  uint64_t budget;   /* 0: as reported by the driver */
  atomic_ullong has; /* bytes allocated now */
} fake;

static VKAPI_ATTR void VKAPI_CALL
fake_budget(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties2 *out) {
  fake.real(device, out);
  VkPhysicalDeviceMemoryBudgetPropertiesEXT *b = out->pNext;
  for (uint32_t i = 0; b && fake.budget > 0 && i < VK_MAX_MEMORY_HEAPS; i++) {
    b->heapBudget[i] = fake.budget;
    b->heapUsage[i] = fake.has;
  }
}

/* Live allocations and their sizes. */
static struct {
  VkDeviceMemory memory;
  uint64_t size;
} sizes[64];

static VKAPI_ATTR VkResult VKAPI_CALL
count_allocation(VkDevice device, const VkMemoryAllocateInfo *info,
                 const VkAllocationCallbacks *calls, VkDeviceMemory *out) {
  VkResult result = vk_AllocateMemory(device, info, calls, out);
  for (int i = 0; i < 64 && result == VK_SUCCESS; i++) {
    if (sizes[i].memory) continue;
    sizes[i].memory = *out;
    sizes[i].size = info->allocationSize;
    fake.has += info->allocationSize;
    break;
  }
  return result;
}

static VKAPI_ATTR void VKAPI_CALL count_free(VkDevice device,
                                             VkDeviceMemory memory,
                                             const VkAllocationCallbacks *c) {
  for (int i = 0; i < 64; i++) {
    if (!memory || sizes[i].memory != memory) continue;
    fake.has -= sizes[i].size;
    sizes[i].memory = VK_NULL_HANDLE;
  }
  vk_FreeMemory(device, memory, c);
}

/* Opens a device whose driver reports @p budget bytes, and the bytes in use. */
static void begin_budget(vk_rig *r, const char *options, uint64_t budget) {
  vk_rig_open(r, options);
  fake.api = *r->own->instance;
  fake.real = fake.api.GetPhysicalDeviceMemoryProperties2;
  fake.api.GetPhysicalDeviceMemoryProperties2 = fake_budget;
  fake.budget = budget;
  fake.has = 0;
  r->own->instance = &fake.api;
  r->own->api.AllocateMemory = count_allocation;
  r->own->api.FreeMemory = count_free;
  r->own->has.budget = true;
}

TEST(allocations_over_budget_report_both_numbers) {
  const uint64_t budget = 100 << 20, size = 40 << 20;
  for (int w = 0; w < 2; w++) {
    vk_rig r;
    vyre_status st = {0};
    vyre_buffer x, y, z;
    begin_budget(&r, configs[w], budget);
    CHECK_OK(vyre_buffer_create(r.device, size, &x, &st), st);
    /* The ring allocated memory, too. */
    if (w == 1) vk_staging_ring_wait(r.own);
    uint64_t used = fake.has;
    if (budget - used >= size) {
      CHECK_OK(vyre_buffer_create(r.device, size, &y, &st), st);
    }
    used = fake.has;
    vyre_code code = vyre_buffer_create(r.device, size, &z, &st);
    CHECK_U64(code, VYRE_DEVICE_OUT_OF_MEMORY);
    CHECK(st.kind == VYRE_KIND_STORAGE_RESERVE_FAILED);
    CHECK_U64(status_number(&st, "requested_bytes"), size);
    CHECK_U64(status_number(&st, "used_bytes"), used);
    CHECK_U64(status_number(&st, "budget_bytes"), budget);
    CHECK(st.fix[0]);
    CHECK_HAS(st.message, "budget");
    CHECK_U64(fake.has, used); /* nothing was allocated */
    st = (vyre_status){0};
    CHECK_OK(vyre_buffer_destroy(r.device, x, &st), st);
    CHECK_OK(vyre_buffer_create(r.device, size, &z, &st), st);
    vk_rig_close(&r);
  }
}

TEST(small_buffers_use_what_is_left_of_the_budget) {
  vk_rig r;
  vyre_status st = {0};
  vyre_buffer x;
  begin_budget(&r, "", 1 << 20); /* far less than the usual block */
  CHECK_OK(vyre_buffer_create(r.device, 4096, &x, &st), st);
  CHECK(fake.has >= 4096 && fake.has <= 1 << 20);
  vk_rig_close(&r);
}

TEST(without_the_extension_no_budget_applies) {
  vk_rig r;
  vyre_status st = {0};
  vyre_buffer x;
  begin_budget(&r, "", 1 << 20);
  r.own->has.budget = false;
  CHECK_OK(vyre_buffer_create(r.device, 40 << 20, &x, &st), st);
  vk_rig_close(&r);
}

TEST(device_details_include_the_budget) {
  vk_rig r;
  vk_budget b;
  vk_rig_open(&r, "");
  const char *details = vyre_device_get_caps(r.device)->details;
  CHECK_HAS(details, "\nheap: ");
  if (r.own->has.budget) {
    CHECK(vk_budget_read(r.own, VK_MEMORY_KIND_DEVICE, &b));
    CHECK(b.max > 0 && b.max <= vk_heap_bytes(r.own, VK_MEMORY_KIND_DEVICE));
    CHECK_HAS(details, "of a budget of");
    CHECK_HAS(details, "memory-budget");
  }
  CHECK_HAS(details, "no staging");
  vk_rig_close(&r);
  vk_rig_open(&r, staged);
  CHECK_HAS(vyre_device_get_caps(r.device)->details, "through staging");
  vk_rig_close(&r);
}

static uint64_t idle_bytes(const vk_rig *r) {
  return ((const vk_pipeline *)r->pipelines[ADD])->idle_bytes;
}

TEST(idle_dispatches_stay_within_their_limit) {
  vk_rig r;
  vk_rig_open(&r, "");
  vk_rig_compile(&r, kernels);
  add(&r, 1000, 1);
  uint64_t dispatch_bytes = idle_bytes(&r);
  CHECK(dispatch_bytes >= 8000);
  r.own->max_idle_bytes = 5 * dispatch_bytes;
  for (uint32_t n = 1000; n > 900; n--) add(&r, n, n);
  CHECK(idle_bytes(&r) <= 5 * dispatch_bytes);
  CHECK(((const vk_pipeline *)r.pipelines[ADD])->idle_count >= 5);
  r.own->max_idle_bytes = 0; /* no idle dispatches: dispatching still works */
  add(&r, 1000, 2);
  CHECK_U64(idle_bytes(&r), 0);
  vk_rig_close(&r);
}

TEST(idle_dispatches_are_freed_when_memory_runs_out) {
  vk_rig r;
  const uint64_t budget = 150 << 20;
  begin_budget(&r, "", budget);
  vk_rig_compile(&r, kernels);
  uint32_t n = (40 << 20) / 8; /* 40 MiB per dispatch; only a few fit */
  for (uint32_t i = 0; i < 6; i++) add(&r, n + i * 16, i);
  CHECK(idle_bytes(&r) > 0 && fake.has <= budget);
  vk_rig_close(&r);
}

/* --- memory of command lists ---------------------------------------------- */

enum { LIST_ITEMS = 4, LIST_WORDS = 1 << 20 };

/* Submits a batch of ADD that binds 32 MiB of host memory, and checks it. */
static void add_batch(const vk_rig *r, uint32_t *memory) {
  vyre_input in[LIST_ITEMS][2];
  vyre_output out[LIST_ITEMS];
  vyre_dispatch_desc items[LIST_ITEMS];
  vyre_status st = {0};
  const size_t size = 4 * (size_t)LIST_WORDS;
  for (uint32_t i = 0; i < LIST_ITEMS; i++) {
    uint32_t *x = memory + (size_t)2 * i * LIST_WORDS, *y = x + LIST_WORDS;
    for (uint32_t k = 0; k < LIST_WORDS; k++) x[k] = y[k] = i + k;
    in[i][0] = vyre_input_bytes(x, size);
    in[i][1] = vyre_input_bytes(y, size);
    out[i] = vyre_output_bytes(y, size);
    items[i] = (vyre_dispatch_desc){.inputs = in[i],
                                    .input_count = 2,
                                    .outputs = &out[i],
                                    .output_count = 1};
  }
  CHECK_OK(vyre_submit(r->pipelines[ADD], items, LIST_ITEMS, NULL, &st), st);
  for (uint32_t i = 0; i < LIST_ITEMS; i++) {
    const uint32_t *y = memory + (size_t)(2 * i + 1) * LIST_WORDS;
    for (uint32_t k = 0; k < LIST_WORDS; k += 1001) {
      CHECK_U64(y[k], UINT64_C(2) * (i + k));
    }
  }
}

TEST(encodings_are_freed_when_memory_runs_out) {
  vk_rig r;
  vyre_status st = {0};
  vyre_buffer buffer;
  uint32_t *memory = malloc((size_t)8 * LIST_ITEMS * LIST_WORDS);
  begin_budget(&r, "", 100 << 20);
  vk_rig_compile(&r, kernels);
  add_batch(&r, memory); /* measures the kernel */
  add_batch(&r, memory);
  CHECK(r.own->list_bytes >= (size_t)8 * LIST_ITEMS * LIST_WORDS);
  CHECK_OK(vyre_buffer_create(r.device, 60 << 20, &buffer, &st), st);
  CHECK_U64(r.own->list_bytes, 0);
  CHECK_OK(vyre_buffer_destroy(r.device, buffer, &st), st);
  add_batch(&r, memory); /* encoded again */
  CHECK(r.own->list_bytes > 0);
  vk_rig_close(&r);
  free(memory);
}

/* Two lists, of which one has to go. The one that executes now stays. */
TEST(encodings_stay_within_their_limit) {
  vk_rig r;
  uint32_t *memory = malloc((size_t)8 * LIST_ITEMS * LIST_WORDS);
  vyre_status st = {0};
  vyre_pipeline *first;
  vk_rig_open(&r, "");
  vk_rig_compile(&r, kernels);
  add_batch(&r, memory); /* measures the kernel */
  add_batch(&r, memory);
  uint64_t list_bytes = r.own->list_bytes;
  CHECK(list_bytes > 0);
  first = r.pipelines[ADD];
  const vyre_compile_options other = {.workgroup = {32, 1, 1}};
  CHECK_OK(vyre_pipeline_compile(r.device, vyre_module_kernel(r.module, ADD),
                                 &other, &r.pipelines[ADD], NULL, &st),
           st);
  CHECK(r.pipelines[ADD] != first);
  r.own->max_idle_bytes = list_bytes + list_bytes / 2;
  for (int i = 0; i < 4; i++) {
    add_batch(&r, memory);
    add_batch(&r, memory);
    CHECK(r.own->list_bytes > 0 && r.own->list_bytes <= r.own->max_idle_bytes);
    vyre_pipeline *next = first;
    first = r.pipelines[ADD];
    r.pipelines[ADD] = next;
  }
  r.own->max_idle_bytes = 0;
  add_batch(&r, memory);
  vyre_pipeline_release(first);
  vk_rig_close(&r);
  free(memory);
}

/* --- memory selection ----------------------------------------------------- */

TEST(staging_follows_the_option) {
  static const struct {
    const char *options;
    bool is_unified;
  } cases[] = {{"", true},
               {"vulkan.staging=auto", true},
               {"vulkan.staging=0", true},
               {"vulkan.staging=1", false},
               {"vulkan.staging=1,vulkan.staging=auto", true}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vk_rig r;
    vk_rig_open(&r, cases[i].options);
    CHECK(r.own->physical->is_unified); /* software devices always are */
    CHECK(r.own->is_unified == cases[i].is_unified);
    vyre_buffer x;
    vyre_status st = {0};
    CHECK_OK(vyre_buffer_create(r.device, 64, &x, &st), st);
    CHECK((r.own->heap.blocks[VK_MEMORY_KIND_HOST] == NULL) ==
          cases[i].is_unified);
    vk_rig_close(&r);
  }
}

/* Simulates a discrete GPU whose memory cannot be mapped. */
TEST(devices_without_mappable_memory_are_staged) {
  vk_physical_device *physical =
      (vk_physical_device *)&vk_instance_find()->devices[0];
  const vk_physical_device saved = *physical;
  vk_rig r;
  vyre_status st = {0};
  vyre_context *context;
  vyre_device *device = NULL;
  const vyre_context_options options = {.cache_directory = "",
                                        .backend_options = "vulkan.staging=0"};
  physical->can_be_unified = physical->is_unified = false;
  vk_rig_open(&r, "");
  vk_rig_compile(&r, kernels);
  CHECK(!r.own->is_unified);
  add(&r, LARGE, 1);
  vk_rig_close(&r);
  CHECK_OK(vyre_context_create(&options, &context, &st), st);
  vyre_code code = vyre_device_open(context, "vulkan", &device, &st);
  vyre_context_release(context);
  *physical = saved;
  CHECK_U64(code, VYRE_UNSUPPORTED_FEATURE);
  CHECK(!device && st.fix[0]);
  CHECK_HAS(st.message, "vulkan.staging=0");
}

/* --- shared devices ------------------------------------------------------- */

TEST(a_second_open_shares_instance_and_device) {
  vk_rig a, b;
  unsigned devices = vk_created.devices;
  vk_rig_open(&a, "");
  CHECK_U64(vk_created.devices, devices + 1);
  for (int w = 0; w < CONFIGS; w++) {
    vk_rig_open(&b, configs[w]);
    CHECK(a.own->handle == b.own->handle);
    vk_rig_compile(&b, kernels);
    add(&b, 100, (unsigned)w);
    for (int i = 0; i < 8; i++) vyre_pipeline_release(b.pipelines[i]);
    vyre_module_release(b.module);
    vyre_device_release(b.device);
    vyre_context_release(b.context);
  }
  CHECK_U64(vk_created.devices, devices + 1);
  CHECK_U64(vk_created.instances, 1); /* one per process */
  vk_rig_compile(&a, kernels);
  add(&a, 100, 7);
  vk_rig_close(&a);
  vk_rig_open(&a, ""); /* the last release destroyed the device */
  CHECK_U64(vk_created.devices, devices + 2);
  CHECK_U64(vk_created.instances, 1);
  vk_rig_close(&a);
}

/* Loss reported by a submission, by a wait, or by vkQueueWaitIdle after a
 * failed wait. */
static const struct {
  VkResult submit, wait, idle;
} losses[] = {{VK_ERROR_DEVICE_LOST, VK_SUCCESS, VK_SUCCESS},
              {VK_SUCCESS, VK_ERROR_DEVICE_LOST, VK_SUCCESS},
              {VK_SUCCESS, VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_DEVICE_LOST}};

TEST(lost_devices_are_not_shared) {
  for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
    vk_rig a, b;
    vyre_status st = {0};
    vyre_buffer x;
    uint32_t words[16];
    unsigned devices = vk_created.devices;
    vk_rig_open(&a, staged);
    CHECK_OK(vyre_buffer_create(a.device, 64, &x, &st), st);
    vk_calls.submit_result = losses[i].submit;
    vk_calls.wait_result = losses[i].wait;
    vk_calls.idle_result = losses[i].idle;
    CHECK_U64(vyre_buffer_download(a.device, x, 0, words, 64, &st),
              VYRE_DEVICE_LOST);
    vk_calls.submit_result = vk_calls.wait_result = vk_calls.idle_result =
        VK_SUCCESS;
    CHECK(vyre_device_is_lost(a.device));
    vk_rig_open(&b, staged);
    CHECK_U64(vk_created.devices, devices + 2);
    CHECK(a.own->handle != b.own->handle);
    st = (vyre_status){0};
    CHECK_OK(vyre_buffer_create(b.device, 64, &x, &st), st);
    vyre_device_release(a.device);
    vyre_context_release(a.context);
    vk_rig_close(&b);
  }
}

static vyre_code add_to(vyre_pipeline *pipeline, uint32_t y[4],
                        vyre_status *st) {
  uint32_t x[4] = {2, 4, 6, 8};
  const vyre_input in[] = {vyre_input_bytes(x, sizeof x),
                           vyre_input_bytes(y, 4 * sizeof *y)};
  const vyre_output out[] = {vyre_output_bytes(y, 4 * sizeof *y)};
  const vyre_dispatch_desc desc = {
      .inputs = in, .input_count = 2, .outputs = out, .output_count = 1};
  return vyre_dispatch(pipeline, &desc, st);
}

/* Runs in the child process. Returns 0, or the number of the step that
 * failed. */
static int use_lost_device(vk_rig *r, vyre_buffer x) {
  vyre_status st = {0};
  uint32_t y[4] = {1, 2, 3, 4};
  if (add_to(r->pipelines[ADD], y, &st) != VYRE_DEVICE_LOST) return 1;
  if (!strstr(st.message, "forked") || !strstr(st.fix, "child")) return 2;
  if (vyre_buffer_upload(r->device, x, 0, y, 16, NULL) != VYRE_DEVICE_LOST)
    return 3;
  unsigned idles = vk_calls.idles, waits = vk_calls.waits;
  int live = vk_calls.live;
  for (int i = ADD; i <= EVEN; i++) vyre_pipeline_release(r->pipelines[i]);
  vyre_device_release(r->device);
  vyre_context_release(r->context);
  if (r->heap.live_bytes != 0) return 4;
  /* No Vulkan function was called for it. */
  if (vk_calls.live != live || vk_calls.idles != idles ||
      vk_calls.waits != waits)
    return 5;
  return 0;
}

static int use_new_device(vk_rig *r) {
  vyre_device *device = NULL;
  vyre_pipeline *pipeline = NULL;
  unsigned devices = vk_created.devices, instances = vk_created.instances;
  uint32_t y[4] = {1, 2, 3, 4};
  if (vyre_device_open(NULL, "vulkan", &device, NULL) != VYRE_OK) return 11;
  if (vk_created.devices != devices + 1) return 12;
  if (vk_created.instances != instances + 1) return 13;
  if (vyre_pipeline_compile(device, vyre_module_kernel(r->module, ADD), NULL,
                            &pipeline, NULL, NULL) != VYRE_OK) {
    return 14;
  }
  for (uint32_t i = 0; i < 2; i++) {
    if (add_to(pipeline, y, NULL) != VYRE_OK) return 15;
  }
  for (uint32_t i = 0; i < 4; i++) {
    if (y[i] != 5 * (i + 1)) return 16;
  }
  vyre_pipeline_release(pipeline);
  vyre_device_release(device);
  return 0;
}

/* A child process has no driver threads; waiting for them would never end. */
TEST(a_forked_child_creates_its_own_device) {
  if (THREAD_SANITIZED) return;
  for (int w = 0; w < 2 * CONFIGS; w++) {
    vk_rig a;
    vyre_status st = {0};
    vyre_buffer x;
    uint32_t y[4] = {1, 2, 3, 4};
    int status = 0;
    vk_rig_open(&a, configs[w / 2]);
    vk_rig_compile(&a, kernels);
    CHECK_OK(vyre_buffer_create(a.device, 64, &x, &st), st);
    CHECK_OK(add_to(a.pipelines[ADD], y, &st), st);
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      (void)alarm(60);
      int failed_step = w % 2 == 0 ? use_lost_device(&a, x) : 0;
      _exit(failed_step ? failed_step : use_new_device(&a));
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_U64((unsigned)status, 0);
    CHECK_OK(add_to(a.pipelines[ADD], y, &st), st); /* the parent still works */
    CHECK_U64(y[3], 20);
    CHECK_OK(vyre_buffer_destroy(a.device, x, &st), st);
    vk_rig_close(&a);
  }
}

/* An instance without devices has no threads, so a child can use it. */
TEST(a_forked_child_keeps_an_unused_instance) {
  if (THREAD_SANITIZED) return;
  /* The child gets a new, unused instance; its own child inherits that. */
  int status = 0;
  (void)fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    (void)alarm(60);
    unsigned instances = vk_created.instances;
    if (!vk_instance_find()->handle || vk_created.instances != instances + 1) {
      _exit(1);
    }
    pid_t second = fork();
    if (second == 0) {
      vyre_device *device = NULL;
      vyre_code code = vyre_device_open(NULL, "vulkan", &device, NULL);
      _exit(code == VYRE_OK && vk_created.instances == instances + 1 ? 0 : 2);
    }
    _exit(waitpid(second, &status, 0) == second && status == 0 ? 0 : 3);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_U64((unsigned)status, 0);
}

/* --- the disk cache ------------------------------------------------------- */

/* Opens a device, compiles with a cache in @p directory, and closes the
 * device. */
static void compile_once(const char *directory, vyre_cache_result want) {
  vk_rig r = {.heap = {.left = -1}};
  vyre_status st = {0};
  vyre_cache_info info;
  const vyre_context_options options = {
      .allocator = {test_heap_resize, &r.heap},
      .cache_directory = directory,
      .trace_file = "",
      .faults = "",
      .backend_options = ""};
  CHECK_OK(vyre_context_create(&options, &r.context, &st), st);
  CHECK_OK(vyre_device_open(r.context, "vulkan", &r.device, &st), st);
  r.own = (vk_device *)r.device;
  unsigned pipelines = vk_calls.pipelines, submits = vk_calls.submits;
  vk_rig_compile(&r, kernels);
  for (int i = ADD; i <= EVEN; i++) {
    CHECK(vyre_pipeline_get_cache_info(r.pipelines[i], &info));
    CHECK_U64(info.origin, want);
  }
  CHECK_U64(vk_calls.pipelines - pipelines, 2); /* one phase each */
  CHECK_U64(vk_calls.submits - submits, 2);     /* warm-up */
  add(&r, 100, 1);
  vk_rig_close(&r);
}

TEST(cached_kernels_create_each_pipeline_once) {
  char directory[] = "/tmp/vyre-vulkan-XXXXXX", command[80];
  CHECK(mkdtemp(directory));
  compile_once(directory, VYRE_CACHE_MISS);
  compile_once(directory, VYRE_CACHE_DISK_HIT);
  (void)snprintf(command, sizeof command, "rm -rf '%s'", directory);
  CHECK(system(command) == 0);
}

VK_TEST_MAIN(TEST_ENTRY(cached_kernels_create_each_pipeline_once),
             TEST_ENTRY(transfers_of_every_size_round_trip),
             TEST_ENTRY(large_uploads_overlap_chunks_and_allocate_nothing),
             TEST_ENTRY(buffers_can_be_freed_during_their_upload),
             TEST_ENTRY(threads_share_the_ring),
             TEST_ENTRY(only_large_host_views_use_the_staging_ring),
             TEST_ENTRY(unwritten_elements_of_large_outputs_are_zero),
             TEST_ENTRY(batch_with_large_host_views),
             TEST_ENTRY(allocations_over_budget_report_both_numbers),
             TEST_ENTRY(small_buffers_use_what_is_left_of_the_budget),
             TEST_ENTRY(without_the_extension_no_budget_applies),
             TEST_ENTRY(device_details_include_the_budget),
             TEST_ENTRY(idle_dispatches_stay_within_their_limit),
             TEST_ENTRY(idle_dispatches_are_freed_when_memory_runs_out),
             TEST_ENTRY(encodings_are_freed_when_memory_runs_out),
             TEST_ENTRY(encodings_stay_within_their_limit),
             TEST_ENTRY(staging_follows_the_option),
             TEST_ENTRY(devices_without_mappable_memory_are_staged),
             TEST_ENTRY(a_second_open_shares_instance_and_device),
             TEST_ENTRY(lost_devices_are_not_shared),
             TEST_ENTRY(a_forked_child_creates_its_own_device),
             TEST_ENTRY(a_forked_child_keeps_an_unused_instance))
