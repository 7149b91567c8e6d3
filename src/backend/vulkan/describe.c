/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Describes a device as text: limits that kernels meet, features in use, and
 * the memory heap. */
#include <stdio.h>
#include <string.h>

#include "backend/vulkan/device/device.h"
#include "backend/vulkan/device/logical_device.h"
#include "backend/vulkan/memory/heap.h"

/* Writes the heap and its budget at the time when the device was opened. */
static void write_memory(const vk_device *device, char *out, size_t size) {
  const char *access = device->is_unified
                           ? "unified with host memory, no staging"
                           : "accessed through staging";
  unsigned long long all = vk_heap_bytes(device, VK_MEMORY_KIND_DEVICE);
  vk_budget b;
  if (vk_budget_read(device, VK_MEMORY_KIND_DEVICE, &b)) {
    (void)snprintf(
        out, size, "\nheap: %llu bytes, %llu used of a budget of %llu; %s", all,
        (unsigned long long)b.used, (unsigned long long)b.max, access);
  } else {
    (void)snprintf(out, size, "\nheap: %llu bytes, budget unknown; %s", all,
                   access);
  }
}

void vk_device_describe(const vk_device *device, char *out, size_t size) {
  const VkPhysicalDeviceLimits *l = &device->physical->properties.limits;
  const vk_features *h = &device->has;
  const struct {
    bool has;
    const char *name;
  } features[] = {{h->storage8, "storage8"},
                  {h->storage16, "storage16"},
                  {h->int8, "int8"},
                  {h->int16, "int16"},
                  {h->int64, "int64"},
                  {h->float64, "float64"},
                  {h->buffer_atomics64, "buffer-atomics64"},
                  {h->shared_atomics64, "shared-atomics64"},
                  {h->memory_model, "memory-model"},
                  {h->zeroes_workgroup, "zeroed-workgroup-memory"},
                  {h->timeline, "timeline"},
                  {h->conditional, "conditional-rendering"},
                  {h->host_import, "external-memory-host"},
                  {h->budget, "memory-budget"}};
  int used =
      snprintf(out, size,
               "limits: %u x %u x %u workgroups per dispatch, %u bytes of push "
               "constants, %u storage buffers\nfeatures:",
               l->maxComputeWorkGroupCount[0], l->maxComputeWorkGroupCount[1],
               l->maxComputeWorkGroupCount[2], l->maxPushConstantsSize,
               l->maxPerStageDescriptorStorageBuffers);
  for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
    if (!features[i].has || used < 0 || (size_t)used >= size) continue;
    used += snprintf(out + used, size - (size_t)used, " %s", features[i].name);
  }
  if (used < 0 || (size_t)used >= size) return;
  write_memory(device, out + used, size - (size_t)used);
}
