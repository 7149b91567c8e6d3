/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Work queues: windows by indirect dispatch. */
#ifndef VYRE_BACKEND_VULKAN_COMMAND_QUEUE_DRAIN_H
#define VYRE_BACKEND_VULKAN_COMMAND_QUEUE_DRAIN_H

#include "hal/backend.h"

/* Entries of the backend table. */
void vk_queue_plan(const vyre_device *device, vyre__queue_info *info);
vyre_code vk_queue_drain(vyre__drain *drain, vyre_status *st);

#endif
