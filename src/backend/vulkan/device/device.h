/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The device of the Vulkan backend. */
#ifndef VYRE_BACKEND_VULKAN_DEVICE_DEVICE_H
#define VYRE_BACKEND_VULKAN_DEVICE_DEVICE_H

#include "backend/vulkan/device/logical_device.h"
#include "backend/vulkan/memory/heap.h"
#include "backend/vulkan/memory/staging.h"
#include "hal/backend.h"

/* Value of a backend option that was not given. */
#define VK_OPTION_AUTO UINT64_MAX

/* Loop iterations that llvmpipe allows a vector of invocations. Beyond that it
 * leaves the loop silently. */
enum { VK_LLVMPIPE_MAX_ITERATIONS = 65535 };

/* Event counters that tests read. They only grow. */
typedef struct vk_counters {
  _Atomic uint64_t submissions, command_buffers, barriers, layouts_made,
      layouts_shared, device_blocks, staged_chunks, staged_bytes;
} vk_counters;

struct vk_device {
  vyre_device base;
  vk_device *next_opened; /* list of all open devices, for fork.c */
  vk_logical_device *logical;
  vk_logical_device private_logical; /* storage if it is not shared */
  vk_api api;
  const vk_instance_api *instance;
  const vk_physical_device *physical;
  /* Storage for an external device. */
  vk_physical_device external_physical;
  vk_instance_api external_functions;
  void (*lock_queue)(void *self); /* the caller's lock; both NULL if none */
  void (*unlock_queue)(void *self);
  void *queue_user_data;
  bool is_external;         /* the caller owns handle and queue */
  bool tests_loop_flags;    /* the device tests flags of recorded loops */
  bool is_unified;          /* kernels work in host-visible memory */
  bool uses_push_constants; /* for launch blocks; false: they are in memory */
  vk_features has;
  char details[3 * VK_TEXT_BYTES];
  VkDevice handle;
  VkQueue queue;
  uint32_t family;
  uint32_t timestamp_bits;
  VkSemaphore timeline; /* NULL: submissions use fences */
  uint64_t last_submission;
  vk_heap heap;
  vk_staging_ring ring;
  vk_range dummy; /* bound to empty views; the first pipeline allocates it */
  pthread_mutex_t pipeline_lock;
  struct vk_pipeline *pipelines; /* list of all pipelines */
  pthread_mutex_t list_lock;
  struct vk_command_list *oldest_list, *newest_list; /* by time of encoding */
  _Atomic uint64_t list_bytes; /* memory of the encodings of all lists */
  pthread_mutex_t layout_lock;
  struct vk_layout *layouts;
  uint64_t max_block_bytes; /* of one VkDeviceMemory */
  /* Of the idle encoded dispatches of one pipeline, and of the command lists
   * of the device. */
  uint64_t max_idle_bytes;
  uint64_t max_submit_ns; /* intended duration of one submission */
  uint32_t queue_windows; /* chunks of a queue per submission; 0: more and
                             more */
  /* Loop iterations that the driver allows a vector of invocations; 0: any. */
  uint32_t max_loop_iterations;
  vk_counters counters;
};

/* device_init and device_deinit of the backend table. */
vyre_code vk_device_init(vyre_device *device, vyre_status *st);
void vk_device_deinit(vyre_device *device);

/* Reads the float controls that the device supports into device->has. */
void vk_device_read_float_controls(vk_device *device);
/* Writes limits, features and memory of the device as text for
 * vyre_device_caps.details. */
void vk_device_describe(const vk_device *device, char *out, size_t size);

#endif
