/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Batches: launches that the runtime submits together. */
#ifndef VYRE_BACKEND_VULKAN_COMMAND_BATCH_H
#define VYRE_BACKEND_VULKAN_COMMAND_BATCH_H

#include "backend/vulkan/command/submit.h"
#include "hal/backend.h"

/* A primary command buffer that calls the secondary ones of dispatches. */
typedef struct vk_primary {
  struct vk_primary *next;
  VkCommandPool pool;
  VkCommandBuffer commands;
  vk_submission submission;
} vk_primary;

/* Frees the idle primary command buffers of a device. */
void vk_primaries_deinit(vk_device *device);

/* The run_batch entry of the backend table. */
vyre_code vk_batch_run(vyre_device *device, vyre__launch *first, size_t *done,
                       vyre_status *st);

#endif
