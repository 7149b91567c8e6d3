/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Opens devices over an instance, a VkDevice and a queue that the caller owns.
 * Only the features and extensions that the caller lists are used. */
#include "backend/vulkan/device/external_device.h"

#include <string.h>

#include "vyre/vulkan.h"

#include "backend/vulkan/device/functions.h"
#include "backend/vulkan/device/instance.h"
#include "backend/vulkan/device/logical_device.h"
#include "base/status.h"
#include "hal/device.h"

/* --- features ------------------------------------------------------------- */

static void read_features(const vyre_vulkan_handles *from, vk_features *has) {
  bool has_extension = false;
  vk_features_read(from->features, has);
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
  uint32_t index;
  VYRE_REQUIRE(st, out);
  *out = NULL;
  VYRE_REQUIRE(st, vulkan);
  VYRE_CHECK_RESERVED(st, __func__, vulkan);
  VYRE_REQUIRE_BOTH(st, vulkan->instance, vulkan->physical_device);
  VYRE_REQUIRE_BOTH(st, vulkan->device, vulkan->queue);
  VYRE_REQUIRE_ARRAY(st, vulkan->extensions, vulkan->extension_count);
  for (size_t i = 0; i < vulkan->extension_count; i++) {
    if (!vulkan->extensions[i]) {
      return vyre__null_argument(st, __func__, "vulkan->extensions[]");
    }
  }
  if (!vulkan->lock_queue != !vulkan->unlock_queue) {
    return vyre__null_argument(
        st, __func__,
        vulkan->lock_queue ? "vulkan->unlock_queue" : "vulkan->lock_queue");
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
