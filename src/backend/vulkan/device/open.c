/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Opens a device: chooses its memory, limits and options, and initialises
 * its heap and queue. */
#include "vyre/validate.h"

#include "backend/vulkan/command/submit.h"
#include "backend/vulkan/device/device.h"
#include "backend/vulkan/device/external_device.h"
#include "backend/vulkan/device/instance.h"
#include "backend/vulkan/device/logical_device.h"
#include "backend/vulkan/memory/heap.h"
#include "base/status.h"
#include "hal/device.h"

static uint64_t min(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static void set_caps(vk_device *device) {
  const VkPhysicalDeviceLimits *l = &device->physical->properties.limits;
  VkPhysicalDeviceMaintenance3Properties maintenance3 = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  VkPhysicalDeviceProperties2 properties = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
      .pNext = &maintenance3};
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host = {
      .sType =
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
  VkPhysicalDeviceMaintenance4Properties maintenance4 = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
  if (device->has.host_import) maintenance3.pNext = &host;
  /* The API version of an external instance is unknown, and may be below
   * 1.3. */
  if (device->physical->version >= VK_API_VERSION_1_3 && !device->is_external) {
    maintenance4.pNext = maintenance3.pNext;
    maintenance3.pNext = &maintenance4;
  }
  device->instance->GetPhysicalDeviceProperties2(device->physical->handle,
                                                 &properties);
  uint64_t aligned = host.minImportedHostPointerAlignment;
  uint64_t max_bytes = l->maxStorageBufferRange & ~(uint64_t)3;
  device->max_block_bytes = maintenance3.maxMemoryAllocationSize > 0
                                ? maintenance3.maxMemoryAllocationSize
                                : UINT64_MAX;
  if (maintenance4.maxBufferSize > 0) {
    device->max_block_bytes =
        min(device->max_block_bytes, maintenance4.maxBufferSize);
  }
  max_bytes = min(max_bytes, device->max_block_bytes);
  vyre_device_caps *caps = &device->base.caps;
  *caps = (vyre_device_caps){
      .max_workgroup_invocations = (uint32_t)min(
          l->maxComputeWorkGroupInvocations, VYRE_MAX_INVOCATIONS),
      .max_shared_bytes = l->maxComputeSharedMemorySize,
      .max_buffer_bytes = max_bytes,
      .host_alignment = !device->has.host_import ? 1
                        : aligned < 4
                            ? 4
                            : aligned, /* kernels access whole words */
      .imports_host_memory = device->has.host_import,
      .has_device_time = device->timestamp_bits > 0 && l->timestampPeriod > 0,
      .has_f64 = device->has.float64 && device->has.int64,
      .has_u64 = true,
      .has_atomics64 =
          device->has.buffer_atomics64 && device->has.shared_atomics64,
      .details = device->details};
  vk_device_describe(device, device->details, sizeof device->details);
  for (int i = 0; i < 3; i++) {
    caps->max_workgroup[i] = l->maxComputeWorkGroupSize[i];
  }
}

/* Chooses unified or staged memory: by the kind of the device, or by the
 * option. */
static vyre_code choose_memory(vk_device *device, vyre_status *st) {
  const vk_physical_device *physical = device->physical;
  uint64_t option =
      vyre__device_option(&device->base, "staging", VK_OPTION_AUTO);
  device->is_unified =
      option == VK_OPTION_AUTO ? physical->is_unified : option == 0;
  if (!device->is_unified || physical->can_be_unified) return VYRE_OK;
  return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                   "remove the option vulkan.staging=0",
                   "device '%s' has no host-visible device memory, which "
                   "vulkan.staging=0 requires",
                   vyre_device_name(&device->base));
}

/* Returns the limit on idle encoded dispatches of one pipeline, and on the
 * encodings of all command lists, in bytes. */
static uint64_t idle_limit(const vk_device *device) {
  const uint64_t max_bytes = UINT64_C(1) << 30;
  return min(vk_heap_bytes(device, VK_MEMORY_KIND_DEVICE) / 8, max_bytes);
}

static vyre_code init_parts(vk_device *own, vyre_status *st) {
  pthread_mutex_init(&own->layout_lock, NULL);
  pthread_mutex_init(&own->pipeline_lock, NULL);
  pthread_mutex_init(&own->list_lock, NULL);
  vyre_code code = vk_queue_init(own, st);
  if (code == VYRE_OK) {
    code = vk_heap_init(own, st);
    if (code == VYRE_OK) {
      own->max_idle_bytes = idle_limit(own);
      set_caps(own);
      return VYRE_OK;
    }
    vk_heap_deinit(own);
  }
  vk_queue_deinit(own);
  pthread_mutex_destroy(&own->list_lock);
  pthread_mutex_destroy(&own->pipeline_lock);
  pthread_mutex_destroy(&own->layout_lock);
  return code;
}

vyre_code vk_device_init(vyre_device *device, vyre_status *st) {
  vk_device *own = (vk_device *)device;
  const vk_instance *instance = vk_instance_find();
  const struct vyre_vulkan_handles *external = device->external;
  own->instance = &instance->api;
  own->physical = &instance->devices[device->index];
  VYRE_TRY(external ? vk_device_init_external(own, external, st)
                    : vk_logical_device_acquire(own, st));
  if (vyre__vk_hooks.patch_device) vyre__vk_hooks.patch_device(&own->api);
  if (vyre__device_option(device, "force_fences", 0)) own->has.timeline = false;
  /* Software devices have no watchdog, and share the CPU with everything
   * else. */
  uint64_t default_ms = own->physical->is_software ? 10000 : 500;
  own->max_submit_ns =
      1000000 * vyre__device_option(device, "max_submit_ms", default_ms);
  own->queue_windows =
      (uint32_t)vyre__device_option(device, "queue_windows", 0);
  if (own->has.host_import) own->has.host_import = vk_can_import(own);
  own->max_loop_iterations =
      own->physical->has_llvmpipe_bugs ? VK_LLVMPIPE_MAX_ITERATIONS : 0;
  own->uses_push_constants =
      vyre__device_option(device, "push_constants",
                          !own->physical->is_software) != 0;
  own->tests_loop_flags =
      own->has.conditional && vyre__device_option(device, "loop_check", 0) != 1;
  vyre_code code = choose_memory(own, st);
  if (code == VYRE_OK) code = init_parts(own, st);
  if (code != VYRE_OK) vk_logical_device_release(own);
  return code;
}

void vk_device_deinit(vyre_device *device) {
  vk_device *own = (vk_device *)device;
  vk_heap_deinit(own);
  vk_queue_deinit(own);
  pthread_mutex_destroy(&own->list_lock);
  pthread_mutex_destroy(&own->pipeline_lock);
  pthread_mutex_destroy(&own->layout_lock);
  vk_logical_device_release(own);
}
