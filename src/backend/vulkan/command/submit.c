/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The queue of a device: submits command buffers, waits for them, and
 * translates failed Vulkan calls into a status. */
#include "backend/vulkan/command/submit.h"

#include "backend/vulkan/device/device.h"
#include "base/status.h"
#include "hal/device.h"

/* --- failures ------------------------------------------------------------- */

static vyre_code out_of_memory(const vk_device *device, VkResult result,
                               const char *operation, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_DEVICE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED, NULL,
      VYRE_NUMBERS({"result", (uint64_t)(uint32_t)result}),
      "free device buffers and pipelines, or split the data",
      "device '%s' ran out of memory during %s: VkResult %d",
      vyre_device_name(&device->base), operation, (int)result);
}

vyre_code vk_failed(vk_device *device, VkResult result, const char *operation,
                    vyre_status *st) {
  vyre_code code;
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      code = vyre__no_memory(st, operation, "bytes of the driver", 1);
      break;
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
    case VK_ERROR_MEMORY_MAP_FAILED:
      code = out_of_memory(device, result, operation, st);
      break;
    case VK_ERROR_INVALID_EXTERNAL_HANDLE:
      code = VYRE_FAIL_WITH(
          st, VYRE_DEVICE_OUT_OF_MEMORY, VYRE_KIND_NOT_SUPPORTED, NULL,
          VYRE_NUMBERS({"result", (uint64_t)(uint32_t)result}),
          "import private writable memory, or upload to a device buffer",
          "device '%s' cannot import this host memory: VkResult %d",
          vyre_device_name(&device->base), (int)result);
      break;
    case VK_ERROR_DEVICE_LOST:
      vyre__device_lose(&device->base);
      if (device->logical) atomic_store(&device->logical->is_lost, true);
      code = vyre__device_lost(&device->base, st);
      break;
    default:
      code = VYRE_FAIL_WITH(
          st, VYRE_DISPATCH_FAILED, VYRE_KIND_NONE, NULL,
          VYRE_NUMBERS({"result", (uint64_t)(uint32_t)result}),
          "update the driver of the device; `vyre doctor` names it",
          "device '%s': %s failed with VkResult %d",
          vyre_device_name(&device->base), operation, (int)result);
  }
  if (st && st->native_code == 0) st->native_code = (int)result;
  return code;
}

/* --- the queue ------------------------------------------------------------ */

void vk_cmd_barrier(const vk_device *device, VkCommandBuffer commands) {
  const VkPipelineStageFlags stages =
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  const VkMemoryBarrier barrier = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
      .srcAccessMask =
          VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
      .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                       VK_ACCESS_UNIFORM_READ_BIT |
                       VK_ACCESS_TRANSFER_READ_BIT |
                       VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_HOST_READ_BIT |
                       VK_ACCESS_INDIRECT_COMMAND_READ_BIT};
  device->api.CmdPipelineBarrier(
      commands, stages,
      stages | VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT,
      0, 1, &barrier, 0, NULL, 0, NULL);
}

vyre_code vk_queue_init(vk_device *device, vyre_status *st) {
  if (!device->has.timeline) return VYRE_OK;
  const VkSemaphoreTypeCreateInfo type = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  VkResult result = device->api.CreateSemaphore(device->handle, &info, NULL,
                                                &device->timeline);
  if (result != VK_SUCCESS) device->timeline = VK_NULL_HANDLE;
  VK_TRY(device, result, "vkCreateSemaphore", st);
  return VYRE_OK;
}

void vk_queue_deinit(vk_device *device) {
  device->api.DestroySemaphore(device->handle, device->timeline, NULL);
}

vyre_code vk_command_buffer_begin(vk_device *device, VkCommandBuffer commands,
                                  vyre_status *st) {
  const VkCommandBufferBeginInfo begin = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  VK_TRY(device, device->api.BeginCommandBuffer(commands, &begin),
         "vkBeginCommandBuffer", st);
  return VYRE_OK;
}

vyre_code vk_command_buffer_end(vk_device *device, VkCommandBuffer commands,
                                bool ends_with_barrier, vyre_status *st) {
  if (ends_with_barrier) vk_cmd_barrier(device, commands);
  VK_TRY(device, device->api.EndCommandBuffer(commands), "vkEndCommandBuffer",
         st);
  atomic_fetch_add_explicit(&device->counters.command_buffers, 1,
                            memory_order_relaxed);
  return VYRE_OK;
}

/* --- submissions ---------------------------------------------------------- */

static VkResult prepare_fence(vk_device *device, vk_submission *submission) {
  if (submission->fence) {
    return device->api.ResetFences(device->handle, 1, &submission->fence);
  }
  const VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  VkResult result =
      device->api.CreateFence(device->handle, &info, NULL, &submission->fence);
  if (result != VK_SUCCESS) submission->fence = VK_NULL_HANDLE;
  return result;
}

vyre_code vk_submit(vk_device *device, const VkCommandBuffer *commands,
                    uint32_t count, vk_submission *submission,
                    vyre_status *st) {
  if (!device->timeline) {
    VK_TRY(device, prepare_fence(device, submission), "vkCreateFence", st);
  }
  VkTimelineSemaphoreSubmitInfo timeline = {
      .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
      .signalSemaphoreValueCount = 1};
  VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                       .commandBufferCount = count,
                       .pCommandBuffers = commands};
  if (device->timeline) {
    info.pNext = &timeline;
    info.signalSemaphoreCount = 1;
    info.pSignalSemaphores = &device->timeline;
  }
  pthread_mutex_lock(&device->logical->queue_lock);
  if (device->lock_queue) device->lock_queue(device->queue_user_data);
  uint64_t value = device->last_submission + 1;
  timeline.pSignalSemaphoreValues = &value;
  VkResult result =
      device->api.QueueSubmit(device->queue, 1, &info, submission->fence);
  if (device->unlock_queue) device->unlock_queue(device->queue_user_data);
  if (result == VK_SUCCESS) device->last_submission = submission->value = value;
  pthread_mutex_unlock(&device->logical->queue_lock);
  VK_TRY(device, result, "vkQueueSubmit", st);
  atomic_fetch_add_explicit(&device->counters.submissions, 1,
                            memory_order_relaxed);
  return VYRE_OK;
}

/* Waits until the queue is idle. */
static VkResult wait_idle(vk_device *device) {
  pthread_mutex_lock(&device->logical->queue_lock);
  if (device->lock_queue) device->lock_queue(device->queue_user_data);
  VkResult result = device->api.QueueWaitIdle(device->queue);
  if (device->unlock_queue) device->unlock_queue(device->queue_user_data);
  pthread_mutex_unlock(&device->logical->queue_lock);
  return result;
}

vyre_code vk_wait(vk_device *device, vk_submission *submission,
                  vyre_status *st) {
  VkResult result;
  if (device->timeline) {
    const VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &device->timeline,
        .pValues = &submission->value};
    do {
      result = device->api.WaitSemaphores(device->handle, &info, UINT64_MAX);
    } while (result == VK_TIMEOUT);
  } else {
    do {
      result = device->api.WaitForFences(device->handle, 1, &submission->fence,
                                         VK_TRUE, UINT64_MAX);
    } while (result == VK_TIMEOUT);
  }
  if (result == VK_SUCCESS) return VYRE_OK;
  /* The submission is still running, and the caller will free what it uses. */
  if (result != VK_ERROR_DEVICE_LOST && wait_idle(device) != VK_SUCCESS) {
    result = VK_ERROR_DEVICE_LOST;
  }
  return vk_failed(device, result, "a wait for the device", st);
}

void vk_submission_deinit(vk_device *device, vk_submission *submission) {
  device->api.DestroyFence(device->handle, submission->fence, NULL);
  *submission = (vk_submission){0};
}
