/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs each phase once with an empty grid. Mesa's software device compiles a
 * kernel at its first dispatch, even if the grid is empty, so later dispatches
 * are fast. */
#include <time.h>

#include "backend/vulkan/command/pools.h"
#include "backend/vulkan/command/submit.h"
#include "backend/vulkan/device/functions.h"
#include "backend/vulkan/pipeline.h"
#include "backend/vulkan/plan.h"

typedef struct warm_up_objects {
  VkDescriptorPool sets;
  VkDescriptorSet set;
  VkCommandPool pool;
  VkCommandBuffer commands;
} warm_up_objects;

static VkResult create_set(const vk_pipeline *p, warm_up_objects *w) {
  const vk_device *device = (const vk_device *)p->base.device;
  const VkDescriptorBufferInfo info = {
      device->dummy.buffer, device->dummy.offset, device->dummy.size};
  VkResult result =
      vk_descriptor_set_create(device, p->layout, &w->sets, &w->set);
  for (uint32_t i = 0; i < p->plan.descriptor_count && result == VK_SUCCESS;
       i++) {
    vk_descriptor_set_write(device, w->set, &p->plan.descriptors[i], &info);
  }
  return result;
}

static VkResult record(const vk_pipeline *p, const VkPipeline *phases,
                       uint32_t count, warm_up_objects *w) {
  const vk_device *device = (const vk_device *)p->base.device;
  const vk_api *api = &device->api;
  const VkCommandBufferBeginInfo begin = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
      .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  const uint32_t zeros[VK_MAX_PUSH_BYTES / 4] = {0}, zero = 0;
  VkResult result = vk_command_buffer_create(
      device, VK_COMMAND_POOL_CREATE_TRANSIENT_BIT, &w->pool, &w->commands);
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
                                 p->plan.block_bytes > 0 ? 1 : 0, &zero);
    }
    if (p->plan.push_bytes > 0) {
      api->CmdPushConstants(w->commands, p->layout->pipeline,
                            VK_SHADER_STAGE_COMPUTE_BIT, 0, p->plan.push_bytes,
                            zeros);
    }
    api->CmdDispatch(w->commands, 0, 1, 1);
    vk_cmd_barrier(device, w->commands); /* all phases bind the same memory */
  }
  return api->EndCommandBuffer(w->commands);
}

/* Counts a warm-up that begins (1) or has ended (-1). */
static void count_warm_up(const vk_device *device, int change) {
  vk_logical_device *logical = device->logical;
  pthread_mutex_lock(&logical->warm_up_lock);
  logical->warm_ups += (uint32_t)change;
  if (logical->warm_ups == 0) pthread_cond_broadcast(&logical->warm_up_ended);
  pthread_mutex_unlock(&logical->warm_up_lock);
}

bool vk_wait_for_warm_ups(const vk_device *device, uint64_t deadline_ns) {
  vk_logical_device *logical = device->logical;
  const struct timespec end = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                               .tv_nsec = (long)(deadline_ns % 1000000000u)};
  int error = 0;
  pthread_mutex_lock(&logical->warm_up_lock);
  while (logical->warm_ups > 0 && error == 0) {
    error = pthread_cond_timedwait(&logical->warm_up_ended,
                                   &logical->warm_up_lock, &end);
  }
  bool is_idle = logical->warm_ups == 0;
  atomic_store(&logical->is_stuck, !is_idle);
  pthread_mutex_unlock(&logical->warm_up_lock);
  return is_idle;
}

vyre_code vk_warm_up(vk_pipeline *p, const VkPipeline *phases, uint32_t count,
                     vyre_status *st) {
  vk_device *device = (vk_device *)p->base.device;
  warm_up_objects w = {0};
  vk_submission submission = {0};
  VkResult result = create_set(p, &w);
  if (result == VK_SUCCESS) result = record(p, phases, count, &w);
  count_warm_up(device, 1);
  vyre_code code = result == VK_SUCCESS
                       ? vk_submit(device, &w.commands, 1, &submission, st)
                       : vk_failed(device, result, "the first dispatch", st);
  if (code == VYRE_OK) code = vk_wait(device, &submission, st);
  count_warm_up(device, -1);
  vk_submission_deinit(device, &submission);
  device->api.DestroyDescriptorPool(device->handle, w.sets, NULL);
  device->api.DestroyCommandPool(device->handle, w.pool, NULL);
  return code;
}
