/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Descriptor set and pipeline layouts, shared by pipelines with equal
 * bindings. */
#ifndef VYRE_BACKEND_VULKAN_COMMAND_DESCRIPTOR_LAYOUT_H
#define VYRE_BACKEND_VULKAN_COMMAND_DESCRIPTOR_LAYOUT_H

#include "vyre/binding.h"

#include "backend/vulkan/device/functions.h"
#include "backend/vulkan/plan.h"

typedef struct vk_device vk_device;
typedef struct vk_pipeline vk_pipeline;

typedef struct vk_layout {
  struct vk_layout *next;
  uint32_t references; /* under layout_lock of the device */
  VkDescriptorSetLayout set;
  VkPipelineLayout pipeline;
  uint32_t count; /* descriptors */
  /* Key: the fingerprint of the descriptors, and what it does not cover. */
  vyre_arena arena; /* of the fingerprint */
  vyre_layout_fingerprint fingerprint;
  uint32_t push_bytes;
  uint32_t block_binding; /* of the launch block; VYRE_NO_INDEX: none */
} vk_layout;

/* Returns a layout for the descriptors of the pipeline: an existing one, or a
 * new one. Release it with vk_layout_release. Errors: VYRE_OUT_OF_MEMORY; those of
 * vk_failed. */
vyre_code vk_layout_acquire(vk_device *device, const vk_pipeline *pipeline,
                            vk_layout **out, vyre_status *st);
/* Drops a reference; the last release destroys the layout. Accepts NULL. */
void vk_layout_release(vk_device *device, vk_layout *layout);
VkDescriptorType vk_descriptor_type(const vyre__spirv_descriptor *d);

#endif
