/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/vulkan.h
 *  External Vulkan devices: run kernels on a VkDevice and VkQueue that the
 *  caller owns.
 *
 *  vyre/vyre.h includes this header. It needs no Vulkan header: dispatchable
 *  Vulkan handles are pointers. */
#ifndef VYRE_VULKAN_H
#define VYRE_VULKAN_H

#include <stddef.h>
#include <stdint.h>

#include "vyre/context.h"
#include "vyre/device.h"
#include "vyre/export.h"
#include "vyre/status.h"

/** Handles of an external Vulkan device. Instance and device must have Vulkan
 *  1.1 or later. */
typedef struct vyre_vulkan_handles {
  /* PFN_vkGetInstanceProcAddr; NULL: from libvulkan.so.1. */
  void *get_instance_proc_addr;
  void *instance;        /* VkInstance */
  void *physical_device; /* VkPhysicalDevice */
  void *device;          /* VkDevice */
  void *queue;           /* VkQueue with compute support */
  uint32_t queue_family; /* queue family index of `queue` */
  /* VkPhysicalDeviceFeatures2 that the device was created with, with its
   * full pNext chain; NULL: no features. */
  const void *features;
  const char *const *extensions; /* names of the enabled device extensions */
  size_t extension_count;        /* entries of `extensions` */
  /* Called before each use of the queue, if the caller uses it too; may be
   * NULL together with unlock_queue. */
  void (*lock_queue)(void *user_data);
  void (*unlock_queue)(
      void *user_data);  /* called after each use of the queue */
  void *queue_user_data; /* argument of lock_queue and unlock_queue */
  uint64_t reserved[4];  /* must be zero */
} vyre_vulkan_handles;

VYRE_BEGIN

/** Opens a device on the handles of @p vulkan. It behaves like the device
 *  "vulkan", but creates no objects that the caller can see and uses enabled
 *  features only. @p context may be NULL for the default context.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_device_release), and keeps
 *             owning instance, device and queue. On failure *out is NULL.
 *             Retains the context.
 *  Lifetime:  @p vulkan and its arrays are borrowed for the call. Instance,
 *             device, queue and queue_user_data must outlive *out and all
 *             objects made from it.
 *  Threads:   safe. Every thread that uses *out may use the queue, one at a
 *             time, between lock_queue and unlock_queue.
 *  Blocks:    on the allocator and the driver; on the float probe when a
 *             device is opened for the first time.
 *  Errors:    VYRE_INVALID_ARGUMENT for a NULL argument or an invalid queue
 *             family; VYRE_UNSUPPORTED_FEATURE (device_unavailable) if the
 *             library was built without Vulkan, or the physical device is not
 *             among those that vyre_device_info_at lists; those of
 *             vyre_device_open. */
VYRE_API VYRE_NODISCARD vyre_code vyre_device_open_external_vulkan(
    vyre_context *context, const vyre_vulkan_handles *vulkan, vyre_device **out,
    vyre_status *st);

VYRE_END

#endif
