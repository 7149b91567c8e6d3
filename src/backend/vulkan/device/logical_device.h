/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A VkDevice and its queue, shared by all vyre devices over one physical
 * device. */
#ifndef VYRE_BACKEND_VULKAN_DEVICE_LOGICAL_DEVICE_H
#define VYRE_BACKEND_VULKAN_DEVICE_LOGICAL_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "vyre/status.h"

#include "backend/vulkan/device/instance.h"

typedef struct vk_device vk_device;

/* Features and extensions that are enabled on a device. */
typedef struct vk_features {
  bool storage8, storage16, int8, int16, int64, float64;
  bool buffer_atomics64, shared_atomics64;
  bool memory_model, device_scope;
  bool zeroes_workgroup;
  /* Float controls, as a mask of the widths 32 and 64. */
  uint8_t keeps_signed_zeros, keeps_subnormals, rounds_to_even;
  bool timeline, host_import, budget, conditional;
  bool portability_subset; /* a layer over another API, such as Metal */
} vk_features;

/* Sets the features that @p chain, a list of Vulkan feature structures, has
 * enabled, and clears all others. Ignores structures that vyre does not use. */
void vk_features_read(const void *chain, vk_features *has);

typedef struct vk_logical_device {
  const vk_physical_device *physical;
  uint32_t references; /* under the lock of logical_device.c */
  /* A device that is lost, or whose queue compiled for too long, is not shared
   * with later opens. */
  atomic_bool is_lost, is_stuck;
  VkDevice handle;
  VkQueue queue;
  uint32_t family, timestamp_bits;
  vk_features has;
  vk_api api;
  pthread_mutex_t queue_lock; /* held while a thread submits */
  /* First dispatches in the queue, in which some drivers compile. Later
   * submissions wait for them. Guarded by warm_up_lock. */
  uint32_t warm_ups;
  pthread_mutex_t warm_up_lock;
  pthread_cond_t warm_up_ended;
} vk_logical_device;

/* Sets the handle, queue, features and functions of @p device. Shares the
 * VkDevice of another open device over the same physical device, or creates
 * one. Errors: VYRE_UNSUPPORTED_FEATURE; those of vk_failed. */
vyre_code vk_logical_device_acquire(vk_device *device, vyre_status *st);
/* Drops the reference. The last one destroys the VkDevice, unless the caller of
 * vyre owns it. */
void vk_logical_device_release(vk_device *device);
/* Stores the external handles of @p device in an unshared logical device. */
void vk_logical_device_wrap_external(vk_device *device);
/* Resets the locks of this file in a child process. */
void vk_logical_device_after_fork(void);

/* Fills device->api by name, and clears features whose functions are missing.
 * Errors: VYRE_UNSUPPORTED_FEATURE. */
vyre_code vk_device_load_functions(vk_device *device, vyre_status *st);

#endif
