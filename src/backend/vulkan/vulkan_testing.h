/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Test support: a device under validation layers whose Vulkan calls are counted
 * and can be made to fail. */
#ifndef VYRE_BACKEND_VULKAN_TESTING_H
#define VYRE_BACKEND_VULKAN_TESTING_H

#include <dlfcn.h>

#include "vyre/vyre.h"

#include "backend/vulkan/device/device.h"
#include "backend/vulkan/device/functions.h"
#include "backend/vulkan/device/instance.h"
#include "support/check.h"
#include "support/parse.h"

/* --- layer messages ------------------------------------------------------- */

static atomic_uint vk_messages;

static inline VKAPI_ATTR VkBool32 VKAPI_CALL
vk_on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
              VkDebugUtilsMessageTypeFlagsEXT types,
              const VkDebugUtilsMessengerCallbackDataEXT *data, void *self) {
  (void)severity, (void)types, (void)self;
  printf("    layer: %s\n", data->pMessage);
  atomic_fetch_add(&vk_messages, 1);
  return VK_FALSE;
}

static inline bool vk_has_layer(const char *name) {
  VkLayerProperties list[64];
  uint32_t count = 64;
  PFN_vkEnumerateInstanceLayerProperties enumerate;
  void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  void *symbol =
      library ? dlsym(library, "vkEnumerateInstanceLayerProperties") : NULL;
  if (!symbol) return false;
  memcpy(&enumerate, &symbol, sizeof enumerate);
  if (enumerate(&count, list) < 0) count = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (strcmp(list[i].layerName, name) == 0) return true;
  }
  return false;
}

/* --- counted calls -------------------------------------------------------- */

/* Vulkan objects: X(create function, destroy function, type). */
#define VK_OBJECTS(X)                                              \
  X(CreateBuffer, DestroyBuffer, VkBuffer)                         \
  X(CreateShaderModule, DestroyShaderModule, VkShaderModule)       \
  X(CreateDescriptorSetLayout, DestroyDescriptorSetLayout,         \
    VkDescriptorSetLayout)                                         \
  X(CreatePipelineLayout, DestroyPipelineLayout, VkPipelineLayout) \
  X(CreatePipelineCache, DestroyPipelineCache, VkPipelineCache)    \
  X(CreateDescriptorPool, DestroyDescriptorPool, VkDescriptorPool) \
  X(CreateCommandPool, DestroyCommandPool, VkCommandPool)          \
  X(CreateQueryPool, DestroyQueryPool, VkQueryPool)                \
  X(CreateFence, DestroyFence, VkFence)                            \
  X(CreateSemaphore, DestroySemaphore, VkSemaphore)

static struct {
  vk_api real;
  atomic_uint begins, updates, submits, waits, copies, pipelines, idles;
  atomic_int live; /* objects that were not destroyed yet */
  /* Allocations before one fails; negative: none fails. */
  atomic_long allocations_left;
  atomic_uint failed; /* number of failed ones */
  VkResult allocation_result, submit_result, wait_result, idle_result;
  /* Called before commands are recorded or submitted; or NULL. */
  void (*called)(void);
  /* Called before pipelines are created, and before a submission; or NULL. */
  void (*compiles)(void);
  void (*submitting)(void);
} vk_calls;

static inline void vk_notify_call(void) {
  if (vk_calls.called) vk_calls.called();
}

/* Returns true if this allocation is to fail. */
static inline bool vk_should_fail(void) {
  if (atomic_load(&vk_calls.allocations_left) < 0) return false;
  if (atomic_fetch_sub(&vk_calls.allocations_left, 1) != 0) return false;
  atomic_fetch_add(&vk_calls.failed, 1);
  return true;
}

/* `type` cannot stand in parentheses. NOLINTBEGIN(bugprone-macro-parentheses) */
#define X(create, destroy, type)                                          \
  static inline VKAPI_ATTR VkResult VKAPI_CALL vk_##create(               \
      VkDevice device, const Vk##create##Info_ *info,                     \
      const VkAllocationCallbacks *calls, type *out) {                    \
    if (vk_should_fail()) return vk_calls.allocation_result;              \
    VkResult result = vk_calls.real.create(device, info, calls, out);     \
    if (result == VK_SUCCESS) atomic_fetch_add(&vk_calls.live, 1);        \
    return result;                                                        \
  }                                                                       \
  static inline VKAPI_ATTR void VKAPI_CALL vk_##destroy(                  \
      VkDevice device, type object, const VkAllocationCallbacks *calls) { \
    if (object) atomic_fetch_sub(&vk_calls.live, 1);                      \
    vk_calls.real.destroy(device, object, calls);                         \
  }
/* NOLINTEND(bugprone-macro-parentheses) */
typedef VkBufferCreateInfo VkCreateBufferInfo_;
typedef VkShaderModuleCreateInfo VkCreateShaderModuleInfo_;
typedef VkDescriptorSetLayoutCreateInfo VkCreateDescriptorSetLayoutInfo_;
typedef VkPipelineLayoutCreateInfo VkCreatePipelineLayoutInfo_;
typedef VkPipelineCacheCreateInfo VkCreatePipelineCacheInfo_;
typedef VkDescriptorPoolCreateInfo VkCreateDescriptorPoolInfo_;
typedef VkCommandPoolCreateInfo VkCreateCommandPoolInfo_;
typedef VkQueryPoolCreateInfo VkCreateQueryPoolInfo_;
typedef VkFenceCreateInfo VkCreateFenceInfo_;
typedef VkSemaphoreCreateInfo VkCreateSemaphoreInfo_;
VK_OBJECTS(X)
#undef X

static inline VKAPI_ATTR VkResult VKAPI_CALL
vk_AllocateMemory(VkDevice device, const VkMemoryAllocateInfo *info,
                  const VkAllocationCallbacks *calls, VkDeviceMemory *out) {
  if (vk_should_fail()) return vk_calls.allocation_result;
  VkResult result = vk_calls.real.AllocateMemory(device, info, calls, out);
  if (result == VK_SUCCESS) atomic_fetch_add(&vk_calls.live, 1);
  return result;
}

static inline VKAPI_ATTR void VKAPI_CALL vk_FreeMemory(
    VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks *c) {
  if (memory) atomic_fetch_sub(&vk_calls.live, 1);
  vk_calls.real.FreeMemory(device, memory, c);
}

static inline VKAPI_ATTR VkResult VKAPI_CALL vk_CreateComputePipelines(
    VkDevice device, VkPipelineCache cache, uint32_t count,
    const VkComputePipelineCreateInfo *info, const VkAllocationCallbacks *calls,
    VkPipeline *out) {
  if (vk_should_fail()) return vk_calls.allocation_result;
  atomic_fetch_add(&vk_calls.pipelines, count);
  if (vk_calls.compiles) vk_calls.compiles();
  VkResult result = vk_calls.real.CreateComputePipelines(device, cache, count,
                                                         info, calls, out);
  if (result == VK_SUCCESS) atomic_fetch_add(&vk_calls.live, 1);
  return result;
}

static inline VKAPI_ATTR void VKAPI_CALL vk_DestroyPipeline(
    VkDevice device, VkPipeline pipeline, const VkAllocationCallbacks *c) {
  if (pipeline) atomic_fetch_sub(&vk_calls.live, 1);
  vk_calls.real.DestroyPipeline(device, pipeline, c);
}

static inline VKAPI_ATTR VkResult VKAPI_CALL
vk_AllocateDescriptorSets(VkDevice device, const VkDescriptorSetAllocateInfo *i,
                          VkDescriptorSet *out) {
  if (vk_should_fail()) return vk_calls.allocation_result;
  return vk_calls.real.AllocateDescriptorSets(device, i, out);
}

static inline VKAPI_ATTR VkResult VKAPI_CALL
vk_AllocateCommandBuffers(VkDevice device, const VkCommandBufferAllocateInfo *i,
                          VkCommandBuffer *out) {
  if (vk_should_fail()) return vk_calls.allocation_result;
  return vk_calls.real.AllocateCommandBuffers(device, i, out);
}

static inline VKAPI_ATTR VkResult VKAPI_CALL
vk_MapMemory(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset,
             VkDeviceSize size, VkMemoryMapFlags flags, void **out) {
  if (vk_should_fail()) return vk_calls.allocation_result;
  return vk_calls.real.MapMemory(device, memory, offset, size, flags, out);
}

static inline VKAPI_ATTR VkResult VKAPI_CALL vk_BeginCommandBuffer(
    VkCommandBuffer commands, const VkCommandBufferBeginInfo *info) {
  if (vk_should_fail()) return vk_calls.allocation_result;
  atomic_fetch_add(&vk_calls.begins, 1);
  vk_notify_call();
  return vk_calls.real.BeginCommandBuffer(commands, info);
}

static inline VKAPI_ATTR VkResult VKAPI_CALL
vk_EndCommandBuffer(VkCommandBuffer commands) {
  if (vk_should_fail()) return vk_calls.allocation_result;
  return vk_calls.real.EndCommandBuffer(commands);
}

static inline VKAPI_ATTR void VKAPI_CALL vk_UpdateDescriptorSets(
    VkDevice device, uint32_t writes, const VkWriteDescriptorSet *list,
    uint32_t copies, const VkCopyDescriptorSet *more) {
  atomic_fetch_add(&vk_calls.updates, 1);
  vk_calls.real.UpdateDescriptorSets(device, writes, list, copies, more);
}

static inline VKAPI_ATTR VkResult VKAPI_CALL vk_QueueSubmit(
    VkQueue queue, uint32_t count, const VkSubmitInfo *infos, VkFence fence) {
  atomic_fetch_add(&vk_calls.submits, 1);
  vk_notify_call();
  if (vk_calls.submitting) vk_calls.submitting();
  if (vk_calls.submit_result != VK_SUCCESS) return vk_calls.submit_result;
  return vk_calls.real.QueueSubmit(queue, count, infos, fence);
}

/* Returns true if a wait really waits. On a lost device it still waits until
 * the work ended; with another failure it returns at once. */
static inline bool vk_should_wait(void) {
  return vk_calls.wait_result == VK_SUCCESS ||
         vk_calls.wait_result == VK_ERROR_DEVICE_LOST;
}

static inline VKAPI_ATTR VkResult VKAPI_CALL vk_QueueWaitIdle(VkQueue queue) {
  atomic_fetch_add(&vk_calls.idles, 1);
  VkResult result = vk_calls.real.QueueWaitIdle(queue);
  return vk_calls.idle_result != VK_SUCCESS ? vk_calls.idle_result : result;
}

static inline VKAPI_ATTR VkResult VKAPI_CALL vk_WaitSemaphores(
    VkDevice device, const VkSemaphoreWaitInfo *info, uint64_t timeout) {
  atomic_fetch_add(&vk_calls.waits, 1);
  if (!vk_should_wait()) return vk_calls.wait_result;
  VkResult result = vk_calls.real.WaitSemaphores(device, info, timeout);
  return vk_calls.wait_result != VK_SUCCESS ? vk_calls.wait_result : result;
}

static inline VKAPI_ATTR VkResult VKAPI_CALL
vk_WaitForFences(VkDevice device, uint32_t count, const VkFence *fences,
                 VkBool32 all, uint64_t timeout) {
  atomic_fetch_add(&vk_calls.waits, 1);
  if (!vk_should_wait()) return vk_calls.wait_result;
  VkResult result =
      vk_calls.real.WaitForFences(device, count, fences, all, timeout);
  return vk_calls.wait_result != VK_SUCCESS ? vk_calls.wait_result : result;
}

static inline VKAPI_ATTR void VKAPI_CALL
vk_CmdCopyBuffer(VkCommandBuffer commands, VkBuffer from, VkBuffer to,
                 uint32_t count, const VkBufferCopy *regions) {
  atomic_fetch_add(&vk_calls.copies, 1);
  vk_notify_call();
  vk_calls.real.CmdCopyBuffer(commands, from, to, count, regions);
}

static inline VKAPI_ATTR void VKAPI_CALL
vk_CmdDispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
  vk_notify_call();
  vk_calls.real.CmdDispatch(commands, x, y, z);
}

static inline void vk_patch(vk_api *api) {
  vk_calls.real = *api;
#define X(create, destroy, type) \
  api->create = vk_##create;     \
  api->destroy = vk_##destroy;
  VK_OBJECTS(X)
#undef X
  api->AllocateMemory = vk_AllocateMemory;
  api->FreeMemory = vk_FreeMemory;
  api->CreateComputePipelines = vk_CreateComputePipelines;
  api->DestroyPipeline = vk_DestroyPipeline;
  api->AllocateDescriptorSets = vk_AllocateDescriptorSets;
  api->AllocateCommandBuffers = vk_AllocateCommandBuffers;
  api->MapMemory = vk_MapMemory;
  api->BeginCommandBuffer = vk_BeginCommandBuffer;
  api->EndCommandBuffer = vk_EndCommandBuffer;
  api->UpdateDescriptorSets = vk_UpdateDescriptorSets;
  api->QueueSubmit = vk_QueueSubmit;
  api->QueueWaitIdle = vk_QueueWaitIdle;
  if (api->WaitSemaphores) api->WaitSemaphores = vk_WaitSemaphores;
  api->WaitForFences = vk_WaitForFences;
  api->CmdCopyBuffer = vk_CmdCopyBuffer;
  api->CmdDispatch = vk_CmdDispatch;
}

/* --- counted instances and devices ---------------------------------------- */

static struct {
  PFN_vkGetInstanceProcAddr real;
  PFN_vkCreateInstance create_instance;
  PFN_vkCreateDevice create_device;
  atomic_uint instances, devices;
} vk_created;

static inline VKAPI_ATTR VkResult VKAPI_CALL
vk_CreateInstance(const VkInstanceCreateInfo *info,
                  const VkAllocationCallbacks *calls, VkInstance *out) {
  atomic_fetch_add(&vk_created.instances, 1);
  return vk_created.create_instance(info, calls, out);
}

static inline VKAPI_ATTR VkResult VKAPI_CALL
vk_CreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                const VkAllocationCallbacks *calls, VkDevice *out) {
  atomic_fetch_add(&vk_created.devices, 1);
  return vk_created.create_device(physical, info, calls, out);
}

static inline VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL
vk_GetInstanceProcAddr(VkInstance instance, const char *name) {
  PFN_vkVoidFunction found = vk_created.real(instance, name);
  if (found && strcmp(name, "vkCreateInstance") == 0) {
    vk_created.create_instance = (PFN_vkCreateInstance)found;
    return (PFN_vkVoidFunction)vk_CreateInstance;
  }
  if (found && strcmp(name, "vkCreateDevice") == 0) {
    vk_created.create_device = (PFN_vkCreateDevice)found;
    return (PFN_vkVoidFunction)vk_CreateDevice;
  }
  return found;
}

static inline PFN_vkGetInstanceProcAddr vk_wrap(
    PFN_vkGetInstanceProcAddr real) {
  vk_created.real = real;
  return vk_GetInstanceProcAddr;
}

/* --- the test rig --------------------------------------------------------- */

typedef struct vk_rig {
  test_heap heap;
  vyre_context *context;
  vyre_device *device;
  vk_device *own; /* the same object */
  vyre_module *module;
  vyre_pipeline *pipelines[8];
} vk_rig;

/* Opens a device. The float probe takes seconds, so its results come from the
 * cache or from an earlier device of the process. */
static inline void vk_rig_open(vk_rig *r, const char *options) {
  vyre_status st = {0};
  *r = (vk_rig){.heap = {.left = -1}};
  const vyre_context_options given = {.allocator = {test_heap_resize, &r->heap},
                                      .cache_directory = "",
                                      .trace_file = "",
                                      .faults = "",
                                      .backend_options = options};
  CHECK_OK(vyre_context_create(&given, &r->context, &st), st);
  CHECK_OK(vyre_device_open(r->context, "vulkan", &r->device, &st), st);
  r->own = (vk_device *)r->device;
}

static inline void vk_rig_compile(vk_rig *r, const char *text) {
  vyre_status st = {0};
  r->module = parse_module(text);
  size_t count = vyre_module_kernel_count(r->module);
  CHECK(count <= 8);
  for (size_t i = 0; i < count; i++) {
    CHECK_OK(vyre_pipeline_compile(r->device, vyre_module_kernel(r->module, i),
                                   NULL, &r->pipelines[i], NULL, &st),
             st);
  }
}

/* Releases everything. Checks that no host memory and no Vulkan objects remain,
 * and that layers reported nothing. */
static inline void vk_rig_close(vk_rig *r) {
  for (int i = 0; i < 8; i++) vyre_pipeline_release(r->pipelines[i]);
  vyre_module_release(r->module);
  vyre_device_release(r->device);
  vyre_context_release(r->context);
  CHECK_U64(r->heap.live_bytes, 0);
  CHECK_U64((uint64_t)atomic_load(&vk_calls.live), 0);
  CHECK_U64(atomic_load(&vk_messages), 0);
}

/* Prepares the tests. Returns 0, or the exit code of main if there is no
 * device. */
static inline int vk_testing_begin(void) {
  static const char layer[] = "VK_LAYER_KHRONOS_validation";
  setenv("MESA_SHADER_CACHE_DISABLE", "true", 1);
  /* Reports missing barriers, too: software devices hide them. */
  setenv("VK_LAYER_ENABLES",
         "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT", 1);
  atomic_store(&vk_calls.allocations_left, -1);
  vk_calls.allocation_result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  if (vk_has_layer(layer)) {
    vyre__vk_hooks.layer = layer;
    vyre__vk_hooks.message = vk_on_message;
  } else {
    printf("note: without %s (vulkan-validationlayers)\n", layer);
  }
  vyre__vk_hooks.wrap_loader = vk_wrap;
  const vk_instance *instance = vk_instance_find();
  if (!instance->handle || instance->count == 0) {
    printf("skipped: %s\n", instance->missing);
    return 77;
  }
  /* Runs the float probe if the cache has no results. */
  vyre_device *device = NULL;
  vyre_status st = {0};
  if (vyre_device_open(NULL, "vulkan", &device, &st) != VYRE_OK) {
    printf("FAIL open: %s\n", st.message);
    return 1;
  }
  vyre_device_release(device);
  vyre__vk_hooks.patch_device = vk_patch;
  return 0;
}

/* Memory that drivers, loaders and layers hold until the process ends is not a
 * leak of vyre. The stack of allocations in layers is incomplete. */
/* The name is the sanitizer's. NOLINTBEGIN(bugprone-reserved-identifier) */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  /* NOLINTEND(bugprone-reserved-identifier) */
  return "leak:libvulkan\nleak:libLLVM\nleak:libdrm\nleak:<unknown module>\n"
         "leak:_dlerror_run\nleak:libVkLayer\nleak:libstdc++\n";
}

#define VK_TEST_MAIN(...)                                               \
  static const test_case all_cases[] = {__VA_ARGS__};                   \
  int main(int argc, char **argv) {                                     \
    int skipped = vk_testing_begin();                                   \
    if (skipped != 0) return skipped;                                   \
    return run_tests(all_cases, sizeof all_cases / sizeof all_cases[0], \
                     argc > 1 ? argv[1] : NULL);                        \
  }

#endif
