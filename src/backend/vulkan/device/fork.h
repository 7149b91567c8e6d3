/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Devices after fork(): in the child process they are lost. */
#ifndef VYRE_BACKEND_VULKAN_DEVICE_FORK_H
#define VYRE_BACKEND_VULKAN_DEVICE_FORK_H

#include "backend/vulkan/device/logical_device.h"

/* Installs the pthread_atfork handlers, once. */
void vk_fork_handlers_install(void);
/* Adds an open device to the list that the handlers walk, or removes it. */
void vk_fork_list_add(vk_device *device);
void vk_fork_list_remove(vk_device *device);

#endif
