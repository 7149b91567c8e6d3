/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Creates command buffers and descriptor sets, each in a pool of its own.
 * Destroying the pool frees the object, without locks between threads. */
#include "backend/vulkan/command/pools.h"

#include "backend/vulkan/command/descriptor_layout.h"
#include "backend/vulkan/device/device.h"
#include "backend/vulkan/device/functions.h"

VkResult vk_command_buffer_create(const vk_device *device,
                                  VkCommandPoolCreateFlags flags,
                                  VkCommandPool *pool, VkCommandBuffer *out) {
  const vk_api *api = &device->api;
  const VkCommandPoolCreateInfo made = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
      .flags = flags,
      .queueFamilyIndex = device->family};
  VkResult result = api->CreateCommandPool(device->handle, &made, NULL, pool);
  if (result != VK_SUCCESS) {
    *pool = VK_NULL_HANDLE;
    return result;
  }
  const VkCommandBufferAllocateInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
      .commandPool = *pool,
      .commandBufferCount = 1};
  result = api->AllocateCommandBuffers(device->handle, &info, out);
  if (result == VK_SUCCESS) return VK_SUCCESS;
  api->DestroyCommandPool(device->handle, *pool, NULL);
  *pool = VK_NULL_HANDLE;
  *out = NULL;
  return result;
}

VkResult vk_descriptor_set_create(const vk_device *device,
                                  const vk_layout *layout,
                                  VkDescriptorPool *pool,
                                  VkDescriptorSet *out) {
  const vk_api *api = &device->api;
  const VkDescriptorPoolSize sizes[] = {
      {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, layout->count},
      {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, layout->count},
      {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC, 1},
      {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC, 1}};
  const VkDescriptorPoolCreateInfo made = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
      .maxSets = 1,
      .poolSizeCount = sizeof sizes / sizeof sizes[0],
      .pPoolSizes = sizes};
  if (layout->count == 0) return VK_SUCCESS;
  VkResult result =
      api->CreateDescriptorPool(device->handle, &made, NULL, pool);
  if (result != VK_SUCCESS) {
    *pool = VK_NULL_HANDLE;
    return result;
  }
  const VkDescriptorSetAllocateInfo info = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
      .descriptorPool = *pool,
      .descriptorSetCount = 1,
      .pSetLayouts = &layout->set};
  result = api->AllocateDescriptorSets(device->handle, &info, out);
  if (result == VK_SUCCESS) return VK_SUCCESS;
  api->DestroyDescriptorPool(device->handle, *pool, NULL);
  *pool = VK_NULL_HANDLE;
  *out = VK_NULL_HANDLE;
  return result;
}

void vk_descriptor_set_write(const vk_device *device, VkDescriptorSet set,
                             const vyre__spirv_descriptor *d,
                             const VkDescriptorBufferInfo *info) {
  const VkWriteDescriptorSet write = {
      .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
      .dstSet = set,
      .dstBinding = d->binding,
      .descriptorCount = 1,
      .descriptorType = vk_descriptor_type(d),
      .pBufferInfo = info};
  device->api.UpdateDescriptorSets(device->handle, 1, &write, 0, NULL);
}
