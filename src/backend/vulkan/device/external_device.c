/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Opens devices over an instance, a VkDevice and a queue that the caller owns.
 * Only the features and extensions that the caller lists are used. */
#include "backend/vulkan/device/external_device.h"

#include <string.h>

#include "vyre/vulkan.h"

#include "backend/vulkan/device/device.h"
#include "backend/vulkan/device/functions.h"
#include "backend/vulkan/device/instance.h"
#include "backend/vulkan/device/logical_device.h"
#include "base/status.h"
#include "hal/device.h"

/* --- features ------------------------------------------------------------- */

/* Reads one structure of the caller's feature chain. */
static void read_feature_struct(const VkBaseInStructure *s, vk_features *has) {
  const void *at = s;
  switch (s->sType) {
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2: {
      const VkPhysicalDeviceFeatures2 *f = at;
      has->int16 = f->features.shaderInt16;
      has->int64 = f->features.shaderInt64;
      has->float64 = f->features.shaderFloat64;
      return;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES: {
      const VkPhysicalDeviceVulkan11Features *f = at;
      has->storage16 = f->storageBuffer16BitAccess;
      return;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES: {
      const VkPhysicalDevice16BitStorageFeatures *f = at;
      has->storage16 = f->storageBuffer16BitAccess;
      return;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES: {
      const VkPhysicalDeviceVulkan12Features *f = at;
      has->storage8 = f->storageBuffer8BitAccess;
      has->int8 = f->shaderInt8;
      has->buffer_atomics64 = f->shaderBufferInt64Atomics;
      has->shared_atomics64 = f->shaderSharedInt64Atomics;
      has->memory_model = f->vulkanMemoryModel;
      has->device_scope = f->vulkanMemoryModelDeviceScope;
      has->timeline = f->timelineSemaphore;
      return;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES: {
      const VkPhysicalDeviceVulkan13Features *f = at;
      has->zeroes_workgroup = f->shaderZeroInitializeWorkgroupMemory;
      return;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES: {
      const VkPhysicalDevice8BitStorageFeatures *f = at;
      has->storage8 = f->storageBuffer8BitAccess;
      return;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES: {
      const VkPhysicalDeviceShaderFloat16Int8Features *f = at;
      has->int8 = f->shaderInt8;
      return;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_INT64_FEATURES: {
      const VkPhysicalDeviceShaderAtomicInt64Features *f = at;
      has->buffer_atomics64 = f->shaderBufferInt64Atomics;
      has->shared_atomics64 = f->shaderSharedInt64Atomics;
      return;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES: {
      const VkPhysicalDeviceVulkanMemoryModelFeatures *f = at;
      has->memory_model = f->vulkanMemoryModel;
      has->device_scope = f->vulkanMemoryModelDeviceScope;
      return;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES: {
      const VkPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures *f = at;
      has->zeroes_workgroup = f->shaderZeroInitializeWorkgroupMemory;
      return;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES: {
      const VkPhysicalDeviceTimelineSemaphoreFeatures *f = at;
      has->timeline = f->timelineSemaphore;
      return;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_CONDITIONAL_RENDERING_FEATURES_EXT: {
      const VkPhysicalDeviceConditionalRenderingFeaturesEXT *f = at;
      has->conditional = f->conditionalRendering;
      return;
    }
    default: /* an unknown structure enables nothing */
      return;
  }
}

static void read_features(const vyre_vulkan_handles *from, vk_features *has) {
  *has = (vk_features){0};
  bool has_extension = false;
  const VkBaseInStructure *s = from->features;
  for (; s; s = s->pNext) read_feature_struct(s, has);
  for (size_t i = 0; i < from->extension_count; i++) {
    const char *name = from->extensions[i];
    if (strcmp(name, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME) == 0) {
      has->host_import = true;
    }
    if (strcmp(name, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME) == 0) {
      has->budget = true;
    }
    if (strcmp(name, VK_EXT_CONDITIONAL_RENDERING_EXTENSION_NAME) == 0) {
      has_extension = true;
    }
  }
  has->conditional = has->conditional && has_extension;
}

/* --- opening -------------------------------------------------------------- */

static vyre_code check_family(vk_device *device, vyre_status *st) {
  VkQueueFamilyProperties families[32];
  uint32_t count = 32, family = device->family;
  device->instance->GetPhysicalDeviceQueueFamilyProperties(
      device->physical->handle, &count, families);
  if (family < count && families[family].queueFlags & VK_QUEUE_COMPUTE_BIT) {
    device->timestamp_bits = families[family].timestampValidBits;
    return VYRE_OK;
  }
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "queue_family",
      VYRE_NUMBERS({"queue_family", family}, {"families", count}),
      "pass a queue of a family with VK_QUEUE_COMPUTE_BIT",
      "queue family %u of %u does not exist or has no VK_QUEUE_COMPUTE_BIT",
      (unsigned)family, (unsigned)count);
}

vyre_code vk_device_init_external(vk_device *device,
                                  const vyre_vulkan_handles *from,
                                  vyre_status *st) {
  PFN_vkGetInstanceProcAddr get = vk_instance_find()->get_proc_addr;
  if (from->get_instance_proc_addr) {
    memcpy(&get, &from->get_instance_proc_addr, sizeof get);
  }
  bool is_complete = get != NULL;
  VkInstance instance = from->instance;
#define X(name)                                            \
  if (is_complete) {                                       \
    device->external_functions.name =                      \
        (PFN_vk##name)(get(instance, "vk" #name));         \
    is_complete = device->external_functions.name != NULL; \
  }
  VK_INSTANCE_CALLS(X)
#undef X
  if (!is_complete) {
    return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE,
                     "create the instance with apiVersion 1.1 or later",
                     "the external VkInstance lacks functions of Vulkan 1.1");
  }
  device->instance = &device->external_functions;
  /* Copies the description of the physical device found by vyre; only the
   * handle differs. */
  device->external_physical = *device->physical;
  device->external_physical.handle = from->physical_device;
  device->physical = &device->external_physical;
  device->handle = from->device;
  device->queue = from->queue;
  device->family = from->queue_family;
  device->lock_queue = from->lock_queue;
  device->unlock_queue = from->unlock_queue;
  device->queue_user_data = from->queue_user_data;
  read_features(from, &device->has);
  VYRE_TRY(check_family(device, st));
  VYRE_TRY(vk_device_load_functions(device, st));
  vk_logical_device_wrap_external(device);
  return VYRE_OK;
}

/* Finds the index of the external device among the devices that vyre lists. The
 * cache and the probe identify devices by that index. */
static bool find_index(const vyre_vulkan_handles *from, uint32_t *out) {
  const vk_instance *instance = vk_instance_find();
  if (!instance->handle) return false;
  PFN_vkGetInstanceProcAddr get = instance->get_proc_addr;
  if (from->get_instance_proc_addr) {
    memcpy(&get, &from->get_instance_proc_addr, sizeof get);
  }
  PFN_vkGetPhysicalDeviceProperties read =
      (PFN_vkGetPhysicalDeviceProperties)get(from->instance,
                                             "vkGetPhysicalDeviceProperties");
  VkPhysicalDeviceProperties p;
  if (!read) return false;
  read(from->physical_device, &p);
  for (uint32_t i = 0; i < instance->count; i++) {
    const VkPhysicalDeviceProperties *q = &instance->devices[i].properties;
    if (q->vendorID == p.vendorID && q->deviceID == p.deviceID &&
        q->driverVersion == p.driverVersion &&
        memcmp(q->pipelineCacheUUID, p.pipelineCacheUUID, VK_UUID_SIZE) == 0) {
      *out = i;
      return true;
    }
  }
  return false;
}

extern const vyre__backend vyre__backend_vulkan;

vyre_code vyre_device_open_external_vulkan(vyre_context *context,
                                           const vyre_vulkan_handles *vulkan,
                                           vyre_device **out, vyre_status *st) {
  vyre__status_begin(st);
  static const char function[] = "vyre_device_open_external_vulkan";
  uint32_t index;
  if (!out) return vyre__null_argument(st, function, "out");
  *out = NULL;
  if (!vulkan) return vyre__null_argument(st, function, "vulkan");
  VYRE_CHECK_RESERVED(st, function, vulkan);
  if (!vulkan->instance) return vyre__null_argument(st, function, "instance");
  if (!vulkan->physical_device) {
    return vyre__null_argument(st, function, "physical_device");
  }
  if (!vulkan->device) return vyre__null_argument(st, function, "device");
  if (!vulkan->queue) return vyre__null_argument(st, function, "queue");
  if (vulkan->extension_count > 0 && !vulkan->extensions) {
    return vyre__null_argument(st, function, "extensions");
  }
  for (size_t i = 0; i < vulkan->extension_count; i++) {
    if (!vulkan->extensions[i]) {
      return vyre__null_argument(st, function, "extensions[...]");
    }
  }
  if (!vulkan->lock_queue != !vulkan->unlock_queue) {
    return vyre__null_argument(
        st, function, vulkan->lock_queue ? "unlock_queue" : "lock_queue");
  }
  if (!find_index(vulkan, &index)) {
    return VYRE_FAIL(
        st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE,
        "pass a device that `vyre devices` lists",
        "the external Vulkan device is not among the devices that vyre lists");
  }
  return vyre__device_open_given(context, &vyre__backend_vulkan, index, vulkan,
                                 out, st);
}
