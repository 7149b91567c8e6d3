/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Handles fork(). The child process does not have the threads of the drivers:
 * waiting for them would never end, and their work is half done. So in the
 * child all open devices are lost, and their Vulkan functions are replaced by
 * stubs. Releasing a device frees host memory only; the rest ends with the
 * process. Devices that the child opens use a new instance. */
#include "backend/vulkan/device/fork.h"

#include "backend/vulkan/command/command_list.h"
#include "backend/vulkan/device/compile_guard.h"
#include "backend/vulkan/device/functions.h"
#include "backend/vulkan/device/instance.h"
#include "backend/vulkan/device/logical_device.h"
#include "backend/vulkan/memory/staging.h"
#include "backend/vulkan/pipeline.h"
#include "base/clock.h"
#include "hal/device.h"

/* --- stub functions ------------------------------------------------------- */

#define DESTROY_FUNCTIONS(X)                           \
  X(DestroyBuffer, VkBuffer)                           \
  X(FreeMemory, VkDeviceMemory)                        \
  X(DestroyShaderModule, VkShaderModule)               \
  X(DestroyDescriptorSetLayout, VkDescriptorSetLayout) \
  X(DestroyPipelineLayout, VkPipelineLayout)           \
  X(DestroyPipelineCache, VkPipelineCache)             \
  X(DestroyPipeline, VkPipeline)                       \
  X(DestroyDescriptorPool, VkDescriptorPool)           \
  X(DestroyCommandPool, VkCommandPool)                 \
  X(DestroyQueryPool, VkQueryPool)                     \
  X(DestroyFence, VkFence)                             \
  X(DestroySemaphore, VkSemaphore)

#define X(name, type)                                                     \
  static VKAPI_ATTR void VKAPI_CALL dead_##name(                          \
      VkDevice device, type object, const VkAllocationCallbacks *calls) { \
    (void)device, (void)object, (void)calls;                              \
  }
DESTROY_FUNCTIONS(X)
#undef X

static VKAPI_ATTR void VKAPI_CALL
dead_DestroyDevice(VkDevice device, const VkAllocationCallbacks *calls) {
  (void)device, (void)calls;
}

static VKAPI_ATTR VkResult VKAPI_CALL dead_QueueSubmit(VkQueue queue,
                                                       uint32_t count,
                                                       const VkSubmitInfo *info,
                                                       VkFence fence) {
  (void)queue, (void)count, (void)info, (void)fence;
  return VK_ERROR_DEVICE_LOST;
}

static VKAPI_ATTR VkResult VKAPI_CALL dead_QueueWaitIdle(VkQueue queue) {
  (void)queue;
  return VK_ERROR_DEVICE_LOST;
}

static VKAPI_ATTR VkResult VKAPI_CALL dead_WaitForFences(VkDevice device,
                                                         uint32_t count,
                                                         const VkFence *fences,
                                                         VkBool32 all,
                                                         uint64_t timeout) {
  (void)device, (void)count, (void)fences, (void)all, (void)timeout;
  return VK_ERROR_DEVICE_LOST;
}

static VKAPI_ATTR VkResult VKAPI_CALL dead_WaitSemaphores(
    VkDevice device, const VkSemaphoreWaitInfo *info, uint64_t timeout) {
  (void)device, (void)info, (void)timeout;
  return VK_ERROR_DEVICE_LOST;
}

static void disable_functions(vk_api *api) {
#define X(name, type) api->name = dead_##name;
  DESTROY_FUNCTIONS(X)
#undef X
  api->DestroyDevice = dead_DestroyDevice;
  api->QueueSubmit = dead_QueueSubmit;
  api->QueueWaitIdle = dead_QueueWaitIdle;
  api->WaitForFences = dead_WaitForFences;
  api->WaitSemaphores = dead_WaitSemaphores;
}

/* --- in the child --------------------------------------------------------- */

/* Resets locks and ring chunks: the threads that held them do not exist in the
 * child. */
static void reset_locks(vk_device *device) {
  vk_staging_ring *ring = &device->ring;
  pthread_mutex_init(&device->logical->queue_lock, NULL);
  pthread_mutex_init(&device->logical->warm_up_lock, NULL);
  vyre__condition_init(&device->logical->warm_up_ended);
  device->logical->warm_ups = 0;
  pthread_mutex_init(&device->layout_lock, NULL);
  pthread_mutex_init(&device->heap.lock, NULL);
  pthread_mutex_init(&ring->lock, NULL);
  pthread_cond_init(&ring->chunk_released, NULL);
  for (uint32_t i = 0; i < VK_STAGING_CHUNKS; i++)
    ring->chunks[i].is_held = false;
  pthread_mutex_init(&device->list_lock, NULL);
  for (vk_command_list *l = device->oldest_list; l; l = l->newer)
    pthread_mutex_init(&l->lock, NULL);
  pthread_mutex_init(&device->pipeline_lock, NULL);
  for (vk_pipeline *p = device->pipelines; p; p = p->next) {
    pthread_mutex_init(&p->lock, NULL);
    pthread_mutex_init(&p->counted.lock, NULL);
    vyre__condition_init(&p->counted.ended);
  }
}

static vk_device *open_devices; /* list of all open devices */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_list(void) {
  pthread_mutex_lock(&lock);
}

static void unlock_list(void) {
  pthread_mutex_unlock(&lock);
}

static void reset_child(void) {
  pthread_mutex_init(&lock, NULL);
  for (vk_device *d = open_devices; d; d = d->next_opened) {
    atomic_store(&d->logical->is_lost, true);
    disable_functions(&d->api);
    reset_locks(d);
    vyre__device_leave(&d->base);
  }
  vk_compile_after_fork();
  vk_logical_device_after_fork();
  vk_instance_after_fork();
}

/* --- the list of open devices --------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void install_handlers(void) {
  (void)pthread_atfork(lock_list, unlock_list, reset_child);
}

void vk_fork_handlers_install(void) {
  (void)pthread_once(&once, install_handlers);
}

void vk_fork_list_add(vk_device *device) {
  vk_fork_handlers_install();
  pthread_mutex_lock(&lock);
  device->next_opened = open_devices;
  open_devices = device;
  pthread_mutex_unlock(&lock);
}

void vk_fork_list_remove(vk_device *device) {
  pthread_mutex_lock(&lock);
  vk_device **at = &open_devices;
  while (*at && *at != device) at = &(*at)->next_opened;
  if (*at) *at = device->next_opened;
  pthread_mutex_unlock(&lock);
}
