/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/vulkan.h
 *  Kernels on a Vulkan device that the program has already: its instance, its
 *  device and one of its queues. vyre/vyre.h includes it, and needs no header of
 *  Vulkan: handles are pointers here, as Vulkan's own of these kinds are. */
#ifndef VYRE_VULKAN_H
#define VYRE_VULKAN_H

#include <stddef.h>
#include <stdint.h>

#include "vyre/context.h"
#include "vyre/device.h"
#include "vyre/export.h"
#include "vyre/status.h"

/** What is brought. Vulkan 1.1 or later, of instance and device. */
typedef struct vyre_vulkan_handles {
  void *get_instance_proc_addr; /* PFN_vkGetInstanceProcAddr; NULL: the
                                   loader's own, libvulkan.so.1 */
  void *instance;               /* VkInstance */
  void *physical_device;        /* VkPhysicalDevice */
  void *device;                 /* VkDevice */
  void *queue;                  /* VkQueue, that can compute */
  uint32_t queue_family;        /* which family it is of */
  const void *features; /* VkPhysicalDeviceFeatures2: what the device was made
                           with, all of the chain; NULL: no feature is on */
  const char *const *extensions; /* likewise; names */
  size_t extension_count;
  void (*lock_queue)(void *self); /* around each use of the queue, if others */
  void (*unlock_queue)(void *self); /* use it as well; or both NULL */
  void *queue_user_data;
} vyre_vulkan_handles;

VYRE_BEGIN

/** Opens a device over what @p vulkan names: like device "vulkan", but nothing is
 *  created that others see, and only features that are on are used.
 *  @p context may be NULL: the process's own.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_device_release); instance,
 *             device and queue stay the caller's. On failure *out is NULL.
 *             Retains the context.
 *  Lifetime:  @p vulkan and its arrays are borrowed for the call; instance, device,
 *             queue and queue_self must outlive *out and all made from it.
 *  Threads:   safe. The queue is used from any thread that calls into *out, one at
 *             a time, between lock_queue and unlock_queue.
 *  Blocks:    on the allocator and the device's driver; the first time a device is
 *             seen, on its numeric probe.
 *  Errors:    VYRE_INVALID_ARGUMENT for a NULL or a queue family that is none;
 *             VYRE_UNSUPPORTED_FEATURE (device_unavailable) if this library was
 *             built without Vulkan or the device is not one that it finds itself;
 *             those of vyre_device_open. */
VYRE_API VYRE_NODISCARD vyre_code vyre_device_open_external_vulkan(
    vyre_context *context, const vyre_vulkan_handles *vulkan, vyre_device **out,
    vyre_status *st);

VYRE_END

#endif
