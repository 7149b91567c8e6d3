/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Mesa's software device compiles when a kernel is dispatched first, also if there is
 * no workgroup to run: once for each phase, on memory that nobody touches. */
#include "backend/vulkan/vulkan.h"
#include "base/status.h"

typedef struct warmer {
  VkDescriptorPool sets;
  VkDescriptorSet set;
  VkCommandPool pool;
  VkCommandBuffer commands;
} warmer;

static VkResult make_set(const vk_pipeline *p, warmer *w) {
  const vk_device *device = (const vk_device *)p->base.device;
  const vk_api *api = &device->api;
  const VkDescriptorPoolSize sizes[] = {
      {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, p->plan.descriptor_count},
      {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 1},
      {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC, 1},
      {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC, 1}};
  const VkDescriptorPoolCreateInfo pool = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
      .maxSets = 1,
      .poolSizeCount = 4,
      .pPoolSizes = sizes};
  if (p->plan.descriptor_count == 0) return VK_SUCCESS;
  VkResult result =
      api->CreateDescriptorPool(device->handle, &pool, NULL, &w->sets);
  if (result != VK_SUCCESS) {
    w->sets = VK_NULL_HANDLE;
    return result;
  }
  const VkDescriptorSetAllocateInfo set = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
      .descriptorPool = w->sets,
      .descriptorSetCount = 1,
      .pSetLayouts = &p->layout->set};
  result = api->AllocateDescriptorSets(device->handle, &set, &w->set);
  for (uint32_t i = 0; i < p->plan.descriptor_count && result == VK_SUCCESS;
       i++) {
    const vyre__spirv_descriptor *d = &p->plan.descriptors[i];
    const VkDescriptorBufferInfo info = {
        device->nothing.buffer, device->nothing.offset, device->nothing.size};
    const VkWriteDescriptorSet write = {
        .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
        .dstSet = w->set,
        .dstBinding = d->binding,
        .descriptorCount = 1,
        .descriptorType = vk_descriptor_type(d),
        .pBufferInfo = &info};
    api->UpdateDescriptorSets(device->handle, 1, &write, 0, NULL);
  }
  return result;
}

static VkResult record(const vk_pipeline *p, warmer *w) {
  const vk_device *device = (const vk_device *)p->base.device;
  const vk_api *api = &device->api;
  const VkCommandPoolCreateInfo pool = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
      .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
      .queueFamilyIndex = device->family};
  VkResult result =
      api->CreateCommandPool(device->handle, &pool, NULL, &w->pool);
  if (result != VK_SUCCESS) {
    w->pool = VK_NULL_HANDLE;
    return result;
  }
  const VkCommandBufferAllocateInfo commands = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
      .commandPool = w->pool,
      .commandBufferCount = 1};
  const VkCommandBufferBeginInfo begin = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
      .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  const uint32_t zeros[64] = {0}, none = 0;
  result = api->AllocateCommandBuffers(device->handle, &commands, &w->commands);
  if (result == VK_SUCCESS) {
    result = api->BeginCommandBuffer(w->commands, &begin);
  }
  if (result != VK_SUCCESS) return result;
  for (uint32_t i = 0; i < p->plan.phase_count; i++) {
    api->CmdBindPipeline(w->commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                         p->phases[i]);
    if (w->set) {
      api->CmdBindDescriptorSets(w->commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                 p->layout->pipeline, 0, 1, &w->set,
                                 p->plan.block_bytes > 0 ? 1 : 0, &none);
    }
    if (p->plan.push_bytes > 0) {
      api->CmdPushConstants(w->commands, p->layout->pipeline,
                            VK_SHADER_STAGE_COMPUTE_BIT, 0, p->plan.push_bytes,
                            zeros);
    }
    api->CmdDispatch(w->commands, 0, 1, 1);
    vk_cmd_barrier(device, w->commands); /* all have the same memory */
  }
  return api->EndCommandBuffer(w->commands);
}

vyre_code vk_warm_up(vk_pipeline *p, vyre_status *st) {
  vk_device *device = (vk_device *)p->base.device;
  warmer w = {0};
  vk_ticket ticket = {0};
  VkResult result = make_set(p, &w);
  if (result == VK_SUCCESS) result = record(p, &w);
  vyre_code code = result == VK_SUCCESS
                       ? vk_submit(device, &w.commands, 1, &ticket, st)
                       : vk_failed(device, result, "a first dispatch", st);
  if (code == VYRE_OK) code = vk_wait(device, &ticket, st);
  vk_ticket_finish(device, &ticket);
  device->api.DestroyDescriptorPool(device->handle, w.sets, NULL);
  device->api.DestroyCommandPool(device->handle, w.pool, NULL);
  return code;
}
