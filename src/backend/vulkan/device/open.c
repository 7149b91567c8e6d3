/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/validate.h"

#include "backend/vulkan/vulkan.h"
#include "base/status.h"
#include "hal/device.h"

static uint64_t least(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static void set_caps(vk_device *device) {
  const VkPhysicalDeviceLimits *l = &device->physical->properties.limits;
  VkPhysicalDeviceMaintenance3Properties more = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  VkPhysicalDeviceProperties2 all = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &more};
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host = {
      .sType =
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
  VkPhysicalDeviceMaintenance4Properties buffers = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
  if (device->has.imports) more.pNext = &host;
  /* That the instance of a device that was brought has 1.3 is not known. */
  if (device->physical->version >= VK_API_VERSION_1_3 && !device->is_brought) {
    buffers.pNext = more.pNext;
    more.pNext = &buffers;
  }
  device->instance->GetPhysicalDeviceProperties2(device->physical->handle,
                                                 &all);
  uint64_t aligned = host.minImportedHostPointerAlignment;
  uint64_t most = l->maxStorageBufferRange & ~(uint64_t)3;
  device->most_block = more.maxMemoryAllocationSize > 0
                           ? more.maxMemoryAllocationSize
                           : UINT64_MAX;
  if (buffers.maxBufferSize > 0) {
    device->most_block = least(device->most_block, buffers.maxBufferSize);
  }
  most = least(most, device->most_block);
  vyre_device_caps *caps = &device->base.caps;
  *caps = (vyre_device_caps){
      .max_workgroup_invocations = (uint32_t)least(
          l->maxComputeWorkGroupInvocations, VYRE_MAX_INVOCATIONS),
      .max_shared_bytes = l->maxComputeSharedMemorySize,
      .max_buffer_bytes = most,
      .host_alignment = !device->has.imports ? 1
                        : aligned < 4        ? 4
                                             : aligned, /* words */
      .imports_host_memory = device->has.imports,
      .has_device_time = device->timestamp_bits > 0 && l->timestampPeriod > 0,
      .has_f64 = device->has.float64 && device->has.int64,
      .has_u64 = true,
      .has_atomics64 =
          device->has.buffer_atomics64 && device->has.shared_atomics64,
      .details = device->details};
  vk_details_put(device, device->details, sizeof device->details);
  for (int i = 0; i < 3; i++) {
    caps->max_workgroup[i] = l->maxComputeWorkGroupSize[i];
  }
}

/* Mesa's software device gives a vector of invocations 65,535 rounds of loops, and
 * then goes on behind them without a word. */
enum { LLVMPIPE_ROUNDS = 65535 };

/* Where memory is: as the device's kind has it, or as the option says. */
static vyre_code choose_memory(vk_device *device, vyre_status *st) {
  const vk_physical *physical = device->physical;
  uint64_t asked = vyre__device_option(&device->base, "staging", VK_AUTO);
  device->is_in_place = asked == VK_AUTO ? physical->is_in_place : asked == 0;
  if (!device->is_in_place || physical->can_be_in_place) return VYRE_OK;
  return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                   "leave vulkan.staging=0 out",
                   "device '%s' has no memory that is both its own and the "
                   "host's, as vulkan.staging=0 needs it",
                   vyre_device_name(&device->base));
}

/* Bytes of jobs that a pipeline keeps for another time. */
static uint64_t find_idle(const vk_device *device) {
  const uint64_t most = UINT64_C(1) << 30;
  return least(vk_heap_bytes(device, VK_WHERE_DEVICE) / 8, most);
}

static vyre_code fill_device(vk_device *own, vyre_status *st) {
  pthread_mutex_init(&own->layout_lock, NULL);
  pthread_mutex_init(&own->pipeline_lock, NULL);
  vyre_code code = vk_queue_init(own, st);
  if (code == VYRE_OK) {
    code = vk_heap_init(own, st);
    if (code == VYRE_OK) {
      own->most_idle = find_idle(own);
      set_caps(own);
      return VYRE_OK;
    }
    vk_heap_finish(own);
  }
  vk_queue_finish(own);
  pthread_mutex_destroy(&own->pipeline_lock);
  pthread_mutex_destroy(&own->layout_lock);
  return code;
}

vyre_code vk_device_init(vyre_device *device, vyre_status *st) {
  vk_device *own = (vk_device *)device;
  const vk_instance *instance = vk_instance_find();
  const struct vyre_vulkan_handles *brought = device->external;
  own->instance = &instance->api;
  own->physical = &instance->found[device->index];
  VYRE_TRY(brought ? vk_bring(own, brought, st) : vk_logical_take(own, st));
  if (vyre__vk_hooks.patch) vyre__vk_hooks.patch(&own->api);
  if (vyre__device_option(device, "force_fences", 0)) own->has.timeline = false;
  /* Nothing watches over a program on the processor, whose time is that of all. */
  uint64_t most_ms = own->physical->is_software ? 10000 : 500;
  own->most_ns =
      1000000 * vyre__device_option(device, "max_submit_ms", most_ms);
  if (own->has.imports) own->has.imports = vk_can_import(own);
  own->most_rounds = own->physical->ends_loops ? LLVMPIPE_ROUNDS : 0;
  own->pushes = vyre__device_option(device, "push_constants",
                                    !own->physical->is_software) != 0;
  own->tests_flags =
      own->has.conditional && vyre__device_option(device, "loop_check", 0) != 1;
  vyre_code code = choose_memory(own, st);
  if (code == VYRE_OK) code = fill_device(own, st);
  if (code != VYRE_OK) vk_logical_give(own);
  return code;
}

void vk_device_finish(vyre_device *device) {
  vk_device *own = (vk_device *)device;
  vk_heap_finish(own);
  vk_queue_finish(own);
  pthread_mutex_destroy(&own->pipeline_lock);
  pthread_mutex_destroy(&own->layout_lock);
  vk_logical_give(own);
}
