/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The VkInstance of the process and the physical devices that it lists. */
#ifndef VYRE_BACKEND_VULKAN_DEVICE_INSTANCE_H
#define VYRE_BACKEND_VULKAN_DEVICE_INSTANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/vulkan/device/functions.h"

enum { VK_MAX_PHYSICAL_DEVICES = 16, VK_TEXT_BYTES = 256 };

/* A physical device that can be opened. Static storage, constant after it was
 * found. */
typedef struct vk_physical_device {
  VkPhysicalDevice handle;
  VkPhysicalDeviceProperties properties;
  VkPhysicalDeviceMemoryProperties memory;
  /* Usable API version: the lower one of instance and device. */
  uint32_t version;
  bool is_software;
  /* Mesa's llvmpipe ends long loops silently and folds operations with 0.0
   * wrongly; the emitter works around both. */
  bool has_llvmpipe_bugs;
  bool can_be_unified; /* some device-local memory is host-visible */
  bool is_unified; /* that memory is also the fastest: no staging is needed */
  char driver[VK_TEXT_BYTES + 64], note[VK_TEXT_BYTES];
} vk_physical_device;

/* The instance of the process. The first lookup creates it; nothing destroys
 * it. A child process creates a new one if the parent had opened devices. */
typedef struct vk_instance {
  PFN_vkGetInstanceProcAddr get_proc_addr;
  VkInstance handle; /* NULL: unavailable, see `missing` */
  uint32_t version;  /* requested API version, at most 1.3 */
  vk_instance_api api;
  vk_physical_device devices[VK_MAX_PHYSICAL_DEVICES]; /* best first */
  uint32_t count;
  char missing[VK_TEXT_BYTES]; /* reason why Vulkan is unavailable */
  char fix[VK_TEXT_BYTES];     /* fix for `missing`, or for an absent layer */
  struct vk_instance *parent;  /* instance inherited by fork, or NULL */
} vk_instance;

/* Returns the instance of the process, and creates it on the first call. Never
 * NULL. Threads: any. Blocks: while another thread creates it. */
const vk_instance *vk_instance_find(void);
/* Records that the instance has a VkDevice, so that a child process will not
 * use it. */
void vk_instance_mark_used(void);
/* Resets the instance in a child process. Call with one thread only. */
void vk_instance_after_fork(void);

/* Hooks for tests; set them before the first call of vk_instance_find. */
typedef struct vk_hooks {
  const char *layer; /* instance layer to enable, or NULL */
  /* Receives the messages of layers (VK_EXT_debug_utils); or NULL. */
  PFN_vkDebugUtilsMessengerCallbackEXT message;
  /* Replaces the loader's vkGetInstanceProcAddr; or NULL. */
  PFN_vkGetInstanceProcAddr (*wrap_loader)(PFN_vkGetInstanceProcAddr real);
  /* Edits the function table of a device that is being opened; or NULL. */
  void (*patch_device)(vk_api *api);
} vk_hooks;
extern vk_hooks vyre__vk_hooks;

#endif
