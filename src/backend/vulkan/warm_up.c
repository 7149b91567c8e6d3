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
  const VkDescriptorBufferInfo info = {
      device->nothing.buffer, device->nothing.offset, device->nothing.size};
  VkResult result = vk_set_make(device, p->layout, &w->sets, &w->set);
  for (uint32_t i = 0; i < p->plan.descriptor_count && result == VK_SUCCESS;
       i++) {
    vk_set_put(device, w->set, &p->plan.descriptors[i], &info);
  }
  return result;
}

static VkResult record(const vk_pipeline *p, const VkPipeline *phases,
                       uint32_t count, warmer *w) {
  const vk_device *device = (const vk_device *)p->base.device;
  const vk_api *api = &device->api;
  const VkCommandBufferBeginInfo begin = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
      .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  const uint32_t zeros[VK_MOST_PUSHED / 4] = {0}, none = 0;
  VkResult result =
      vk_commands_make(device, VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                       VK_COMMAND_BUFFER_LEVEL_PRIMARY, &w->pool, &w->commands);
  if (result == VK_SUCCESS) {
    result = api->BeginCommandBuffer(w->commands, &begin);
  }
  if (result != VK_SUCCESS) return result;
  for (uint32_t i = 0; i < count; i++) {
    api->CmdBindPipeline(w->commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                         phases[i]);
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

vyre_code vk_warm_up(vk_pipeline *p, const VkPipeline *phases, uint32_t count,
                     vyre_status *st) {
  vk_device *device = (vk_device *)p->base.device;
  warmer w = {0};
  vk_ticket ticket = {0};
  VkResult result = make_set(p, &w);
  if (result == VK_SUCCESS) result = record(p, phases, count, &w);
  vyre_code code = result == VK_SUCCESS
                       ? vk_submit(device, &w.commands, 1, &ticket, st)
                       : vk_failed(device, result, "a first dispatch", st);
  if (code == VYRE_OK) code = vk_wait(device, &ticket, st);
  vk_ticket_finish(device, &ticket);
  device->api.DestroyDescriptorPool(device->handle, w.sets, NULL);
  device->api.DestroyCommandPool(device->handle, w.pool, NULL);
  return code;
}
