/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Creates layouts and shares them between pipelines of a device that have the
 * same bindings and the same push-constant size. */
#include "backend/vulkan/command/descriptor_layout.h"

#include <string.h>

#include "backend/vulkan/command/submit.h"
#include "backend/vulkan/device/device.h"
#include "backend/vulkan/pipeline.h"
#include "backend/vulkan/plan.h"
#include "base/memory.h"
#include "base/status.h"

static bool matches(const vk_layout *layout, const vk_plan *plan) {
  if (layout->count != plan->descriptor_count ||
      layout->push_bytes != plan->push_bytes) {
    return false;
  }
  for (uint32_t i = 0; i < layout->count; i++) {
    const vyre__spirv_descriptor *a = &layout->descriptors[i],
                                 *b = &plan->descriptors[i];
    bool is_block = a->what == VYRE__SPIRV_BLOCK;
    if (a->binding != b->binding || a->is_uniform != b->is_uniform ||
        is_block != (b->what == VYRE__SPIRV_BLOCK)) {
      return false;
    }
  }
  return true;
}

VkDescriptorType vk_descriptor_type(const vyre__spirv_descriptor *d) {
  /* Each tile has a block at another offset. */
  bool is_block = d->what == VYRE__SPIRV_BLOCK;
  if (d->is_uniform) {
    return is_block ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC
                    : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
  }
  return is_block ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC
                  : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

static VkResult create_set_layout(vk_device *device, vk_layout *layout,
                                  VkDescriptorSetLayoutBinding *bindings) {
  for (uint32_t i = 0; i < layout->count; i++) {
    const vyre__spirv_descriptor *d = &layout->descriptors[i];
    bindings[i] = (VkDescriptorSetLayoutBinding){
        .binding = d->binding,
        .descriptorType = vk_descriptor_type(d),
        .descriptorCount = 1,
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
  }
  const VkDescriptorSetLayoutCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
      .bindingCount = layout->count,
      .pBindings = bindings};
  VkResult result = device->api.CreateDescriptorSetLayout(device->handle, &info,
                                                          NULL, &layout->set);
  if (result != VK_SUCCESS) layout->set = VK_NULL_HANDLE;
  return result;
}

static VkResult create_pipeline_layout(vk_device *device, vk_layout *layout) {
  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                     layout->push_bytes};
  const VkPipelineLayoutCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
      .setLayoutCount = 1,
      .pSetLayouts = &layout->set,
      .pushConstantRangeCount = layout->push_bytes ? 1 : 0,
      .pPushConstantRanges = &range};
  VkResult result = device->api.CreatePipelineLayout(device->handle, &info,
                                                     NULL, &layout->pipeline);
  if (result != VK_SUCCESS) layout->pipeline = VK_NULL_HANDLE;
  return result;
}

static size_t layout_bytes(uint32_t count) {
  return sizeof(vk_layout) + count * sizeof(vyre__spirv_descriptor);
}

static void free_layout(vk_device *device, vk_layout *layout) {
  device->api.DestroyPipelineLayout(device->handle, layout->pipeline, NULL);
  device->api.DestroyDescriptorSetLayout(device->handle, layout->set, NULL);
  vyre__resize(device->base.allocator, layout, layout_bytes(layout->count), 0);
}

static vyre_code create_layout(vk_device *device, const vk_plan *plan,
                               vk_layout **out, vyre_status *st) {
  vyre_allocator allocator = device->base.allocator;
  uint32_t count = plan->descriptor_count;
  size_t bytes = (count + (size_t)1) * sizeof(VkDescriptorSetLayoutBinding);
  vk_layout *layout = vyre__resize(allocator, NULL, 0, layout_bytes(count));
  VkDescriptorSetLayoutBinding *bindings =
      layout ? vyre__resize(allocator, NULL, 0, bytes) : NULL;
  if (!bindings) {
    vyre__resize(allocator, layout, layout_bytes(count), 0);
    return vyre__no_memory(st, "vulkan", "descriptors", count);
  }
  *layout = (vk_layout){
      .references = 1, .push_bytes = plan->push_bytes, .count = count};
  if (count > 0) {
    memcpy(layout->descriptors, plan->descriptors,
           count * sizeof *plan->descriptors);
  }
  VkResult result = create_set_layout(device, layout, bindings);
  if (result == VK_SUCCESS) result = create_pipeline_layout(device, layout);
  vyre__resize(allocator, bindings, bytes, 0);
  if (result != VK_SUCCESS) {
    free_layout(device, layout);
    return vk_failed(device, result, "layout creation", st);
  }
  *out = layout;
  return VYRE_OK;
}

vyre_code vk_layout_acquire(vk_device *device, const vk_plan *plan,
                            vk_layout **out, vyre_status *st) {
  vyre_code code = VYRE_OK;
  pthread_mutex_lock(&device->layout_lock);
  vk_layout *found = device->layouts;
  while (found && !matches(found, plan)) found = found->next;
  if (found) {
    found->references++;
    atomic_fetch_add(&device->counters.layouts_shared, 1);
  } else {
    code = create_layout(device, plan, &found, st);
    if (code == VYRE_OK && found) {
      found->next = device->layouts;
      device->layouts = found;
      atomic_fetch_add(&device->counters.layouts_made, 1);
    }
  }
  pthread_mutex_unlock(&device->layout_lock);
  *out = code == VYRE_OK ? found : NULL;
  return code;
}

void vk_layout_release(vk_device *device, vk_layout *layout) {
  if (!layout) return;
  pthread_mutex_lock(&device->layout_lock);
  bool is_last = --layout->references == 0;
  if (is_last) {
    vk_layout **at = &device->layouts;
    while (*at != layout) at = &(*at)->next;
    *at = layout->next;
  }
  pthread_mutex_unlock(&device->layout_lock);
  if (is_last) free_layout(device, layout);
}

vyre_code vk_find_uniforms(vk_pipeline *own, vyre_status *st) {
  const vk_plan *plan = &own->plan;
  size_t count = plan->buffer_count + (size_t)1;
  uint8_t *uses = vyre__arena_array(&own->base.arena, count, 1);
  if (!uses) return vyre__no_memory(st, "vulkan", "buffers", count);
  memset(uses, 0, count);
  own->has_encoded_uniforms = false;
  for (uint32_t i = 0; i < plan->host_count; i++) {
    if (plan->host[i].op != VYRE__LIR_LOAD) continue;
    uses[plan->host[i].aux] |= VK_UNIFORM_ENCODED;
    own->has_encoded_uniforms = true;
  }
  for (uint32_t i = 0; i < plan->field_count; i++) {
    const vyre__spirv_field *f = &plan->fields[i];
    if (f->value != VYRE__SPIRV_UNIFORM) continue;
    uses[f->index] |= f->is_pushed ? VK_UNIFORM_ENCODED : VK_UNIFORM_IN_BLOCK;
    own->has_encoded_uniforms |= f->is_pushed;
  }
  own->uniform_uses = uses;
  return VYRE_OK;
}
