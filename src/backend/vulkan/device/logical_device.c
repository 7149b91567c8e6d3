/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Creates and shares VkDevices. All devices over one physical device share one
 * VkDevice: the first open creates it, the last release destroys it. A lost
 * VkDevice is not shared again, so that the next open works. Neither is one
 * inherited by fork, which is lost in the child. */
#include "backend/vulkan/device/logical_device.h"

#include <stddef.h>
#include <string.h>

#include "backend/vulkan/command/submit.h"
#include "backend/vulkan/device/device.h"
#include "backend/vulkan/device/fork.h"
#include "backend/vulkan/device/functions.h"
#include "backend/vulkan/device/instance.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

/* --- features and extensions ---------------------------------------------- */

/* The chain of feature structures that the API version allows. */
typedef struct feature_chain {
  VkPhysicalDeviceFeatures2 core;
  VkPhysicalDevice16BitStorageFeatures storage16;
  VkPhysicalDeviceVulkan12Features v12;
  VkPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures zeroes;
} feature_chain;

static void link_chain(const vk_device *device, feature_chain *c) {
  uint32_t version = device->physical->version;
  *c = (feature_chain){
      .core = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2},
      .storage16 =
          {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES},
      .v12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES},
      .zeroes = {
          .sType =
              VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES}};
  c->core.pNext = &c->storage16;
  if (version >= VK_API_VERSION_1_2) c->storage16.pNext = &c->v12;
  if (version >= VK_API_VERSION_1_3) c->v12.pNext = &c->zeroes;
}

/* A feature that vyre uses, in one of the structures that can hold it. */
typedef struct feature_row {
  VkStructureType type;
  size_t from; /* offset of the VkBool32 in that structure */
  size_t to;   /* offset of the bool in vk_features */
} feature_row;

#define FEATURE(type, structure, feature, field)   \
  {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##type,       \
   offsetof(VkPhysicalDevice##structure, feature), \
   offsetof(vk_features, field)}

static const feature_row feature_rows[] = {
    FEATURE(FEATURES_2, Features2, features.shaderInt16, int16),
    FEATURE(FEATURES_2, Features2, features.shaderInt64, int64),
    FEATURE(FEATURES_2, Features2, features.shaderFloat64, float64),
    FEATURE(VULKAN_1_1_FEATURES, Vulkan11Features, storageBuffer16BitAccess,
            storage16),
    FEATURE(16BIT_STORAGE_FEATURES, 16BitStorageFeatures,
            storageBuffer16BitAccess, storage16),
    FEATURE(VULKAN_1_2_FEATURES, Vulkan12Features, storageBuffer8BitAccess,
            storage8),
    FEATURE(VULKAN_1_2_FEATURES, Vulkan12Features, shaderInt8, int8),
    FEATURE(VULKAN_1_2_FEATURES, Vulkan12Features, shaderBufferInt64Atomics,
            buffer_atomics64),
    FEATURE(VULKAN_1_2_FEATURES, Vulkan12Features, shaderSharedInt64Atomics,
            shared_atomics64),
    FEATURE(VULKAN_1_2_FEATURES, Vulkan12Features, vulkanMemoryModel,
            memory_model),
    FEATURE(VULKAN_1_2_FEATURES, Vulkan12Features, vulkanMemoryModelDeviceScope,
            device_scope),
    FEATURE(VULKAN_1_2_FEATURES, Vulkan12Features, timelineSemaphore, timeline),
    FEATURE(VULKAN_1_3_FEATURES, Vulkan13Features,
            shaderZeroInitializeWorkgroupMemory, zeroes_workgroup),
    FEATURE(8BIT_STORAGE_FEATURES, 8BitStorageFeatures, storageBuffer8BitAccess,
            storage8),
    FEATURE(SHADER_FLOAT16_INT8_FEATURES, ShaderFloat16Int8Features, shaderInt8,
            int8),
    FEATURE(SHADER_ATOMIC_INT64_FEATURES, ShaderAtomicInt64Features,
            shaderBufferInt64Atomics, buffer_atomics64),
    FEATURE(SHADER_ATOMIC_INT64_FEATURES, ShaderAtomicInt64Features,
            shaderSharedInt64Atomics, shared_atomics64),
    FEATURE(VULKAN_MEMORY_MODEL_FEATURES, VulkanMemoryModelFeatures,
            vulkanMemoryModel, memory_model),
    FEATURE(VULKAN_MEMORY_MODEL_FEATURES, VulkanMemoryModelFeatures,
            vulkanMemoryModelDeviceScope, device_scope),
    FEATURE(ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES,
            ZeroInitializeWorkgroupMemoryFeatures,
            shaderZeroInitializeWorkgroupMemory, zeroes_workgroup),
    FEATURE(TIMELINE_SEMAPHORE_FEATURES, TimelineSemaphoreFeatures,
            timelineSemaphore, timeline),
    FEATURE(CONDITIONAL_RENDERING_FEATURES_EXT, ConditionalRenderingFeaturesEXT,
            conditionalRendering, conditional),
};

void vk_features_read(const void *chain, vk_features *has) {
  *has = (vk_features){0};
  const VkBaseInStructure *s = chain;
  for (; s; s = s->pNext) {
    for (size_t i = 0; i < sizeof feature_rows / sizeof feature_rows[0]; i++) {
      const feature_row *row = &feature_rows[i];
      if (row->type != s->sType) continue;
      VkBool32 is_set;
      memcpy(&is_set, (const char *)s + row->from, sizeof is_set);
      *(bool *)((char *)has + row->to) = is_set;
    }
  }
}

/* Enables only the features that are used: others may cost performance. */
static void choose_features(const vk_features *has, feature_chain *c) {
  void *next16 = c->storage16.pNext, *next12 = c->v12.pNext;
  c->core.features = (VkPhysicalDeviceFeatures){.shaderInt16 = has->int16,
                                                .shaderInt64 = has->int64,
                                                .shaderFloat64 = has->float64};
  c->storage16 = (VkPhysicalDevice16BitStorageFeatures){
      .sType = c->storage16.sType,
      .pNext = next16,
      .storageBuffer16BitAccess = has->storage16};
  c->v12 = (VkPhysicalDeviceVulkan12Features){
      .sType = c->v12.sType,
      .pNext = next12,
      .storageBuffer8BitAccess = has->storage8,
      .shaderInt8 = has->int8,
      .shaderBufferInt64Atomics = has->buffer_atomics64,
      .shaderSharedInt64Atomics = has->shared_atomics64,
      .vulkanMemoryModel = has->memory_model,
      .vulkanMemoryModelDeviceScope = has->device_scope,
      .timelineSemaphore = has->timeline};
}

static bool has_extension(const VkExtensionProperties *list, uint32_t count,
                          const char *name) {
  for (uint32_t i = 0; i < count; i++) {
    if (strcmp(list[i].extensionName, name) == 0) return true;
  }
  return false;
}

enum { MAX_EXTENSIONS = 512, MAX_ENABLED = 8 };

/* Collects the extensions to enable, and sets the features that they stand
 * for. */
static uint32_t choose_extensions(vk_device *device,
                                  const char *names[MAX_ENABLED]) {
  const vk_instance_api *api = device->instance;
  vyre_allocator allocator = device->base.allocator;
  uint32_t count = MAX_EXTENSIONS, chosen = 0;
  size_t bytes = MAX_EXTENSIONS * sizeof(VkExtensionProperties);
  VkExtensionProperties *list = vyre__resize(allocator, NULL, 0, bytes);
  if (!list) return 0; /* all extensions are optional */
  VkResult result = api->EnumerateDeviceExtensionProperties(
      device->physical->handle, NULL, &count, list);
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) count = 0;
  const struct {
    const char *name;
    bool *has;
  } used[] = {
      {VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME, &device->has.host_import},
      {VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, &device->has.budget},
      {VK_EXT_CONDITIONAL_RENDERING_EXTENSION_NAME, &device->has.conditional},
      /* The specification requires it to be enabled where it exists. Its name
       * is only in vulkan_beta.h. */
      {"VK_KHR_portability_subset", &device->has.portability_subset}};
  for (size_t i = 0; i < sizeof used / sizeof used[0]; i++) {
    *used[i].has = has_extension(list, count, used[i].name);
    if (*used[i].has) names[chosen++] = used[i].name;
  }
  vyre__resize(allocator, list, bytes, 0);
  return chosen;
}

/* --- creating a VkDevice -------------------------------------------------- */

/* Chooses a queue family. One without graphics runs in parallel with
 * rendering. */
static bool find_family(vk_device *device) {
  VkQueueFamilyProperties families[32];
  uint32_t count = 32;
  device->instance->GetPhysicalDeviceQueueFamilyProperties(
      device->physical->handle, &count, families);
  device->family = UINT32_MAX;
  for (uint32_t i = 0; i < count; i++) {
    VkQueueFlags flags = families[i].queueFlags;
    if (!(flags & VK_QUEUE_COMPUTE_BIT)) continue;
    bool is_compute_only = !(flags & VK_QUEUE_GRAPHICS_BIT);
    if (device->family != UINT32_MAX && !is_compute_only) continue;
    device->family = i;
    device->timestamp_bits = families[i].timestampValidBits;
    if (is_compute_only) break;
  }
  return device->family != UINT32_MAX;
}

static vyre_code unusable(const vk_device *device, const char *reason,
                          vyre_status *st) {
  return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                   "use another device, or update this one's driver",
                   "device '%s' cannot be used: %s",
                   vyre_device_name(&device->base), reason);
}

vyre_code vk_device_load_functions(vk_device *device, vyre_status *st) {
  bool is_complete = true;
  PFN_vkGetDeviceProcAddr get = device->instance->GetDeviceProcAddr;
#define X(name)                                                       \
  device->api.name = (PFN_vk##name)(get(device->handle, "vk" #name)); \
  is_complete = is_complete && device->api.name;
  VK_DEVICE_CALLS(X)
#undef X
#define X(name) \
  device->api.name = (PFN_vk##name)(get(device->handle, "vk" #name));
  VK_OPTIONAL_CALLS(X)
#undef X
  if (!device->api.WaitSemaphores) device->has.timeline = false;
  if (!device->api.GetMemoryHostPointerPropertiesEXT) {
    device->has.host_import = false;
  }
  if (!device->api.CmdBeginConditionalRenderingEXT ||
      !device->api.CmdEndConditionalRenderingEXT) {
    device->has.conditional = false;
  }
  return is_complete
             ? VYRE_OK
             : unusable(device, "its driver lacks functions of Vulkan 1.1", st);
}

static vyre_code create_device(vk_device *device, vyre_status *st) {
  static const float priority = 1;
  const char *extensions[MAX_ENABLED];
  feature_chain chain;
  if (!find_family(device)) {
    return unusable(device, "it has no compute queue", st);
  }
  link_chain(device, &chain);
  device->instance->GetPhysicalDeviceFeatures2(device->physical->handle,
                                               &chain.core);
  vk_features_read(&chain.core, &device->has);
  vk_device_read_float_controls(device);
  choose_features(&device->has, &chain);
  uint32_t count = choose_extensions(device, extensions);
  VkPhysicalDeviceConditionalRenderingFeaturesEXT conditional = {
      .sType =
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_CONDITIONAL_RENDERING_FEATURES_EXT};
  if (device->has.conditional) {
    VkPhysicalDeviceFeatures2 asked = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
        .pNext = &conditional};
    device->instance->GetPhysicalDeviceFeatures2(device->physical->handle,
                                                 &asked);
    device->has.conditional = conditional.conditionalRendering;
    conditional.inheritedConditionalRendering = VK_FALSE;
    conditional.pNext = &chain.core;
  }
  const VkDeviceQueueCreateInfo queue = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
      .queueFamilyIndex = device->family,
      .queueCount = 1,
      .pQueuePriorities = &priority};
  const VkDeviceCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
      .pNext = device->has.conditional ? (const void *)&conditional
                                       : (const void *)&chain.core,
      .queueCreateInfoCount = 1,
      .pQueueCreateInfos = &queue,
      .enabledExtensionCount = count,
      .ppEnabledExtensionNames = extensions};
  vk_instance_mark_used();
  VkResult result = device->instance->CreateDevice(
      device->physical->handle, &info, NULL, &device->handle);
  if (result != VK_SUCCESS) {
    device->handle = VK_NULL_HANDLE;
    return vk_failed(device, result, "vkCreateDevice", st);
  }
  vyre_code code = vk_device_load_functions(device, st);
  if (code != VYRE_OK) {
    /* The driver may lack even vkDestroyDevice. */
    if (device->api.DestroyDevice) {
      device->api.DestroyDevice(device->handle, NULL);
    }
    device->handle = VK_NULL_HANDLE;
    return code;
  }
  device->api.GetDeviceQueue(device->handle, device->family, 0, &device->queue);
  return VYRE_OK;
}

/* --- sharing -------------------------------------------------------------- */

/* The shared VkDevices of the process; an entry without references is free. */
static vk_logical_device shared[2 * VK_MAX_PHYSICAL_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static vk_logical_device *find_shared(const vk_physical_device *physical) {
  for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) {
    if (shared[i].references > 0 && shared[i].physical == physical &&
        !atomic_load(&shared[i].is_lost) && !atomic_load(&shared[i].is_stuck)) {
      return &shared[i];
    }
  }
  return NULL;
}

/* Returns a free entry, or the private one of the device if all are in use. */
static vk_logical_device *find_free_entry(vk_device *device) {
  for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) {
    if (shared[i].references == 0) return &shared[i];
  }
  return &device->private_logical;
}

static void store(vk_device *device, vk_logical_device *to) {
  to->physical = device->physical;
  to->references = 1;
  atomic_store(&to->is_lost, false);
  atomic_store(&to->is_stuck, false);
  to->handle = device->handle;
  to->queue = device->queue;
  to->family = device->family;
  to->timestamp_bits = device->timestamp_bits;
  to->has = device->has;
  to->api = device->api;
  pthread_mutex_init(&to->queue_lock, NULL);
  to->warm_ups = 0;
  pthread_mutex_init(&to->warm_up_lock, NULL);
  vyre__condition_init(&to->warm_up_ended);
  device->logical = to;
}

vyre_code vk_logical_device_acquire(vk_device *device, vyre_status *st) {
  vyre_code code = VYRE_OK;
  pthread_mutex_lock(&lock);
  vk_logical_device *found = find_shared(device->physical);
  if (found) {
    found->references++;
    device->handle = found->handle;
    device->queue = found->queue;
    device->family = found->family;
    device->timestamp_bits = found->timestamp_bits;
    device->has = found->has;
    device->api = found->api;
    device->logical = found;
  } else {
    code = create_device(device, st);
    if (code == VYRE_OK) store(device, find_free_entry(device));
  }
  if (code == VYRE_OK) vk_fork_list_add(device);
  pthread_mutex_unlock(&lock);
  return code;
}

void vk_logical_device_wrap_external(vk_device *device) {
  store(device, &device->private_logical);
  device->is_external = true;
  vk_fork_list_add(device);
}

void vk_logical_device_after_fork(void) {
  pthread_mutex_init(&lock, NULL);
}

void vk_logical_device_release(vk_device *device) {
  vk_logical_device *from = device->logical;
  vk_fork_list_remove(device);
  pthread_mutex_lock(&lock);
  if (--from->references == 0) {
    pthread_mutex_destroy(&from->queue_lock);
    pthread_mutex_destroy(&from->warm_up_lock);
    pthread_cond_destroy(&from->warm_up_ended);
    if (!device->is_external) device->api.DestroyDevice(device->handle, NULL);
  }
  pthread_mutex_unlock(&lock);
}
