/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A VkDevice and its queue. All devices of the process that are opened over the same
 * physical one share it: the first makes it, the last destroys it. One that was lost
 * is shared no more, so that the next open works; nor is one of the process that this
 * one was forked from, which is lost here. */
#include <string.h>

#include "backend/vulkan/vulkan.h"
#include "base/memory.h"
#include "base/status.h"
#include "hal/device.h"

/* --- what it can do --------------------------------------------------------------*/

/* Structures of features in a chain, as the version and the extensions have them. */
typedef struct feature_chain {
  VkPhysicalDeviceFeatures2 all;
  VkPhysicalDevice16BitStorageFeatures storage16;
  VkPhysicalDeviceVulkan12Features v12;
  VkPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures zeroes;
} feature_chain;

static void link_chain(const vk_device *device, feature_chain *c) {
  uint32_t version = device->physical->version;
  *c = (feature_chain){
      .all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2},
      .storage16 =
          {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES},
      .v12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES},
      .zeroes = {
          .sType =
              VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES}};
  c->all.pNext = &c->storage16;
  if (version >= VK_API_VERSION_1_2) c->storage16.pNext = &c->v12;
  if (version >= VK_API_VERSION_1_3) c->v12.pNext = &c->zeroes;
}

static void read_features(const feature_chain *c, vk_features *has) {
  *has = (vk_features){
      .storage16 = c->storage16.storageBuffer16BitAccess,
      .storage8 = c->v12.storageBuffer8BitAccess,
      .int8 = c->v12.shaderInt8,
      .int16 = c->all.features.shaderInt16,
      .int64 = c->all.features.shaderInt64,
      .float64 = c->all.features.shaderFloat64,
      .buffer_atomics64 = c->v12.shaderBufferInt64Atomics,
      .shared_atomics64 = c->v12.shaderSharedInt64Atomics,
      .memory_model = c->v12.vulkanMemoryModel,
      .device_scope = c->v12.vulkanMemoryModelDeviceScope,
      .zeroes_workgroup = c->zeroes.shaderZeroInitializeWorkgroupMemory,
      .timeline = c->v12.timelineSemaphore};
}

/* Only what is used: what is on may cost something. */
static void choose_features(const vk_features *has, feature_chain *c) {
  void *next16 = c->storage16.pNext, *next12 = c->v12.pNext;
  c->all.features = (VkPhysicalDeviceFeatures){.shaderInt16 = has->int16,
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

enum { MOST_EXTENSIONS = 512, MOST_WANTED = 8 };

/* Those that are there of what is wanted. */
static uint32_t choose_extensions(vk_device *device,
                                  const char *names[MOST_WANTED]) {
  const vk_instance_api *api = device->instance;
  vyre_allocator allocator = device->base.allocator;
  uint32_t count = MOST_EXTENSIONS, chosen = 0;
  size_t bytes = MOST_EXTENSIONS * sizeof(VkExtensionProperties);
  VkExtensionProperties *list = vyre__resize(allocator, NULL, 0, bytes);
  if (!list) return 0; /* it works without any */
  VkResult result = api->EnumerateDeviceExtensionProperties(
      device->physical->handle, NULL, &count, list);
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) count = 0;
  const struct {
    const char *name;
    bool *has;
  } wanted[] = {
      {VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME, &device->has.imports},
      {VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, &device->has.budget},
      {VK_EXT_CONDITIONAL_RENDERING_EXTENSION_NAME, &device->has.conditional},
      /* Whoever has it must be asked for it (vulkan_beta.h has its name). */
      {"VK_KHR_portability_subset", &device->has.is_subset}};
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
    *wanted[i].has = has_extension(list, count, wanted[i].name);
    if (*wanted[i].has) names[chosen++] = wanted[i].name;
  }
  vyre__resize(allocator, list, bytes, 0);
  return chosen;
}

/* --- making one ---------------------------------------------------------------------*/

/* A family that only computes runs beside what draws. */
static bool find_family(vk_device *device) {
  VkQueueFamilyProperties families[32];
  uint32_t count = 32;
  device->instance->GetPhysicalDeviceQueueFamilyProperties(
      device->physical->handle, &count, families);
  device->family = UINT32_MAX;
  for (uint32_t i = 0; i < count; i++) {
    VkQueueFlags flags = families[i].queueFlags;
    if (!(flags & VK_QUEUE_COMPUTE_BIT)) continue;
    bool is_own = !(flags & VK_QUEUE_GRAPHICS_BIT);
    if (device->family != UINT32_MAX && !is_own) continue;
    device->family = i;
    device->timestamp_bits = families[i].timestampValidBits;
    if (is_own) break;
  }
  return device->family != UINT32_MAX;
}

static vyre_code not_usable(const vk_device *device, const char *what,
                            vyre_status *st) {
  return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                   "use another device, or update this one's driver",
                   "device '%s' cannot be used: %s",
                   vyre_device_name(&device->base), what);
}

vyre_code vk_load_calls(vk_device *device, vyre_status *st) {
  bool is_whole = true;
  PFN_vkGetDeviceProcAddr get = device->instance->GetDeviceProcAddr;
#define X(name)                                                       \
  device->api.name = (PFN_vk##name)(get(device->handle, "vk" #name)); \
  is_whole = is_whole && device->api.name;
  VK_DEVICE_CALLS(X)
#undef X
#define X(name) \
  device->api.name = (PFN_vk##name)(get(device->handle, "vk" #name));
  VK_OPTIONAL_CALLS(X)
#undef X
  if (!device->api.WaitSemaphores) device->has.timeline = false;
  if (!device->api.GetMemoryHostPointerPropertiesEXT) {
    device->has.imports = false;
  }
  if (!device->api.CmdBeginConditionalRenderingEXT ||
      !device->api.CmdEndConditionalRenderingEXT) {
    device->has.conditional = false;
  }
  return is_whole ? VYRE_OK
                  : not_usable(device,
                               "its driver lacks functions of Vulkan 1.1", st);
}

static vyre_code create(vk_device *device, vyre_status *st) {
  static const float priority = 1;
  const char *extensions[MOST_WANTED];
  feature_chain chain;
  if (!find_family(device)) {
    return not_usable(device, "it has no queue for kernels", st);
  }
  link_chain(device, &chain);
  device->instance->GetPhysicalDeviceFeatures2(device->physical->handle,
                                               &chain.all);
  read_features(&chain, &device->has);
  vk_read_float_modes(device);
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
    conditional.pNext = &chain.all;
  }
  const VkDeviceQueueCreateInfo queue = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
      .queueFamilyIndex = device->family,
      .queueCount = 1,
      .pQueuePriorities = &priority};
  const VkDeviceCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
      .pNext = device->has.conditional ? (const void *)&conditional
                                       : (const void *)&chain.all,
      .queueCreateInfoCount = 1,
      .pQueueCreateInfos = &queue,
      .enabledExtensionCount = count,
      .ppEnabledExtensionNames = extensions};
  vk_instance_uses();
  VkResult result = device->instance->CreateDevice(
      device->physical->handle, &info, NULL, &device->handle);
  if (result != VK_SUCCESS) {
    device->handle = VK_NULL_HANDLE;
    return vk_failed(device, result, "vkCreateDevice", st);
  }
  vyre_code code = vk_load_calls(device, st);
  if (code != VYRE_OK) {
    /* Not even a way to destroy it is certain then. */
    if (device->api.DestroyDevice) {
      device->api.DestroyDevice(device->handle, NULL);
    }
    device->handle = VK_NULL_HANDLE;
    return code;
  }
  device->api.GetDeviceQueue(device->handle, device->family, 0, &device->queue);
  return VYRE_OK;
}

/* --- sharing it ------------------------------------------------------------------*/

/* Of all devices of the process; free ones have no references. */
static vk_logical all[2 * VK_MOST_PHYSICAL];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static vk_logical *find_shared(const vk_physical *physical) {
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    if (all[i].references > 0 && all[i].physical == physical &&
        !atomic_load(&all[i].is_lost)) {
      return &all[i];
    }
  }
  return NULL;
}

/* A place for one more; where all are taken, the device's own. */
static vk_logical *find_place(vk_device *device) {
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    if (all[i].references == 0) return &all[i];
  }
  return &device->own;
}

static void keep(vk_device *device, vk_logical *to) {
  to->physical = device->physical;
  to->references = 1;
  atomic_store(&to->is_lost, false);
  to->handle = device->handle;
  to->queue = device->queue;
  to->family = device->family;
  to->timestamp_bits = device->timestamp_bits;
  to->has = device->has;
  to->api = device->api;
  pthread_mutex_init(&to->queue_lock, NULL);
  device->logical = to;
}

vyre_code vk_logical_take(vk_device *device, vyre_status *st) {
  vyre_code code = VYRE_OK;
  pthread_mutex_lock(&lock);
  vk_logical *found = find_shared(device->physical);
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
    code = create(device, st);
    if (code == VYRE_OK) keep(device, find_place(device));
  }
  if (code == VYRE_OK) vk_forks_enter(device);
  pthread_mutex_unlock(&lock);
  return code;
}

void vk_logical_bring(vk_device *device) {
  keep(device, &device->own);
  device->is_brought = true;
  vk_forks_enter(device);
}

void vk_logical_forked(void) {
  pthread_mutex_init(&lock, NULL);
}

void vk_logical_give(vk_device *device) {
  vk_logical *from = device->logical;
  vk_forks_leave(device);
  pthread_mutex_lock(&lock);
  if (--from->references == 0) {
    pthread_mutex_destroy(&from->queue_lock);
    if (!device->is_brought) device->api.DestroyDevice(device->handle, NULL);
  }
  pthread_mutex_unlock(&lock);
}
