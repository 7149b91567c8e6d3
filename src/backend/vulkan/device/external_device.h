/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* External devices: VkDevices that the caller of vyre created and owns. */
#ifndef VYRE_BACKEND_VULKAN_DEVICE_EXTERNAL_DEVICE_H
#define VYRE_BACKEND_VULKAN_DEVICE_EXTERNAL_DEVICE_H

#include "vyre/vulkan.h"

#include "backend/vulkan/device/device.h"

/* Sets up @p device over the handles of the caller.
 * Errors: VYRE_UNSUPPORTED_FEATURE; VYRE_INVALID_ARGUMENT. */
vyre_code vk_device_init_external(vk_device *device,
                                  const vyre_vulkan_handles *from,
                                  vyre_status *st);

#endif
