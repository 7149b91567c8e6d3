/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a child process does with the devices of the one that it was forked from.
 * Threads of drivers are not in the child: who waits for them waits for ever, and
 * what they were at is half done. So there the devices are lost, nothing of Vulkan
 * is called for them any more, and releasing them frees what is the host's; the rest
 * goes with the process. What the child opens is made anew, the instance too. */
#include "backend/vulkan/vulkan.h"
#include "hal/device.h"

/* --- calls that do nothing -------------------------------------------------------*/

#define GONE(X)                                        \
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
  static VKAPI_ATTR void VKAPI_CALL gone_##name(                          \
      VkDevice device, type object, const VkAllocationCallbacks *calls) { \
    (void)device, (void)object, (void)calls;                              \
  }
GONE(X)
#undef X

static VKAPI_ATTR void VKAPI_CALL
gone_DestroyDevice(VkDevice device, const VkAllocationCallbacks *calls) {
  (void)device, (void)calls;
}

static VKAPI_ATTR VkResult VKAPI_CALL gone_QueueSubmit(VkQueue queue,
                                                       uint32_t count,
                                                       const VkSubmitInfo *info,
                                                       VkFence fence) {
  (void)queue, (void)count, (void)info, (void)fence;
  return VK_ERROR_DEVICE_LOST;
}

static VKAPI_ATTR VkResult VKAPI_CALL gone_QueueWaitIdle(VkQueue queue) {
  (void)queue;
  return VK_ERROR_DEVICE_LOST;
}

static VKAPI_ATTR VkResult VKAPI_CALL gone_WaitForFences(VkDevice device,
                                                         uint32_t count,
                                                         const VkFence *fences,
                                                         VkBool32 all,
                                                         uint64_t timeout) {
  (void)device, (void)count, (void)fences, (void)all, (void)timeout;
  return VK_ERROR_DEVICE_LOST;
}

static VKAPI_ATTR VkResult VKAPI_CALL gone_WaitSemaphores(
    VkDevice device, const VkSemaphoreWaitInfo *info, uint64_t timeout) {
  (void)device, (void)info, (void)timeout;
  return VK_ERROR_DEVICE_LOST;
}

static void take_calls_away(vk_api *api) {
#define X(name, type) api->name = gone_##name;
  GONE(X)
#undef X
  api->DestroyDevice = gone_DestroyDevice;
  api->QueueSubmit = gone_QueueSubmit;
  api->QueueWaitIdle = gone_QueueWaitIdle;
  api->WaitForFences = gone_WaitForFences;
  api->WaitSemaphores = gone_WaitSemaphores;
}

/* --- in the child ----------------------------------------------------------------*/

/* Threads that had a lock, or a piece of the ring, are not there to give it back. */
static void free_locks(vk_device *device) {
  vk_ring *ring = &device->ring;
  pthread_mutex_init(&device->logical->queue_lock, NULL);
  pthread_mutex_init(&device->primary_lock, NULL);
  pthread_mutex_init(&device->layout_lock, NULL);
  pthread_mutex_init(&device->heap.lock, NULL);
  pthread_mutex_init(&ring->lock, NULL);
  pthread_cond_init(&ring->given, NULL);
  for (uint32_t i = 0; i < VK_PIECES; i++) ring->pieces[i].is_held = false;
  pthread_mutex_init(&device->pipeline_lock, NULL);
  for (vk_pipeline *p = device->pipelines; p; p = p->next) {
    pthread_mutex_init(&p->lock, NULL);
    pthread_mutex_init(&p->counting_lock, NULL);
  }
  vk_memos_free(device);
}

static vk_device *opened; /* all of the process */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void before(void) {
  pthread_mutex_lock(&lock);
}

static void after(void) {
  pthread_mutex_unlock(&lock);
}

static void in_child(void) {
  pthread_mutex_init(&lock, NULL);
  for (vk_device *d = opened; d; d = d->next_opened) {
    atomic_store(&d->logical->is_lost, true);
    take_calls_away(&d->api);
    free_locks(d);
    vyre__device_leave(&d->base);
  }
  vk_logical_forked();
  vk_instance_forked();
}

/* --- who is watched --------------------------------------------------------------*/

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void watch(void) {
  (void)pthread_atfork(before, after, in_child);
}

void vk_forks_watch(void) {
  (void)pthread_once(&once, watch);
}

void vk_forks_enter(vk_device *device) {
  vk_forks_watch();
  pthread_mutex_lock(&lock);
  device->next_opened = opened;
  opened = device;
  pthread_mutex_unlock(&lock);
}

void vk_forks_leave(vk_device *device) {
  pthread_mutex_lock(&lock);
  vk_device **at = &opened;
  while (*at && *at != device) at = &(*at)->next_opened;
  if (*at) *at = device->next_opened;
  pthread_mutex_unlock(&lock);
}
