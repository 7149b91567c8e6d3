/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The queue of a device: submissions, waits and failed calls. */
#ifndef VYRE_BACKEND_VULKAN_COMMAND_SUBMIT_H
#define VYRE_BACKEND_VULKAN_COMMAND_SUBMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "vyre/status.h"

#include "backend/vulkan/device/functions.h"

typedef struct vk_device vk_device;

/* A submission to wait for: a value of the timeline, or a fence if the device
 * has no timeline. Reusable after the wait; all zero before the first use. */
typedef struct vk_submission {
  uint64_t value;
  VkFence fence;
} vk_submission;

vyre_code vk_queue_init(vk_device *device, vyre_status *st);
void vk_queue_deinit(vk_device *device);

/* Submits @p count command buffers as one. @p submission must not be in
 * flight. */
vyre_code vk_submit(vk_device *device, const VkCommandBuffer *commands,
                    uint32_t count, vk_submission *submission, vyre_status *st);
/* Waits for a submission, without a limit: Vulkan cannot stop a kernel. */
vyre_code vk_wait(vk_device *device, vk_submission *submission,
                  vyre_status *st);
void vk_submission_deinit(vk_device *device, vk_submission *submission);

/* Begins to record a command buffer. */
vyre_code vk_command_buffer_begin(vk_device *device, VkCommandBuffer commands,
                                  vyre_status *st);
/* Ends recording, with a final barrier if @p ends_with_barrier. */
vyre_code vk_command_buffer_end(vk_device *device, VkCommandBuffer commands,
                                bool ends_with_barrier, vyre_status *st);

/* Records a full memory barrier: later kernels and copies, and the host, see
 * the writes of earlier kernels and copies. */
void vk_cmd_barrier(const vk_device *device, VkCommandBuffer commands);

/* Sets the status of a failed Vulkan call and returns its code. Marks the
 * device as lost if the call says so. @p operation completes the message "...
 * failed". */
vyre_code vk_failed(vk_device *device, VkResult result, const char *operation,
                    vyre_status *st);
#define VK_TRY(device, result, operation, st)                    \
  do {                                                           \
    VkResult vk_result_ = (result);                              \
    if (vk_result_ != VK_SUCCESS) {                              \
      return vk_failed((device), vk_result_, (operation), (st)); \
    }                                                            \
  } while (0)

#endif
