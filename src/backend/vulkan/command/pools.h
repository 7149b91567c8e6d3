/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Command buffers and descriptor sets, each in a pool of its own. */
#ifndef VYRE_BACKEND_VULKAN_COMMAND_POOLS_H
#define VYRE_BACKEND_VULKAN_COMMAND_POOLS_H

#include "backend/vulkan/command/descriptor_layout.h"

/* Creates a command buffer and its pool. Destroying the pool frees both. A
 * failure leaves neither. */
VkResult vk_command_buffer_create(const vk_device *device,
                                  VkCommandPoolCreateFlags flags,
                                  VkCommandPool *pool, VkCommandBuffer *out);
/* Creates a descriptor set and its pool, in the same way. Creates nothing for a
 * layout without descriptors. */
VkResult vk_descriptor_set_create(const vk_device *device,
                                  const vk_layout *layout,
                                  VkDescriptorPool *pool, VkDescriptorSet *out);
/* Binds the memory of @p info to descriptor @p d of a set. */
void vk_descriptor_set_write(const vk_device *device, VkDescriptorSet set,
                             const vyre__spirv_descriptor *d,
                             const VkDescriptorBufferInfo *info);

#endif
