/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The Vulkan functions that the backend calls: those of the instance, those of
 * the device, and optional ones that may be NULL. loader.c and logical_device.c
 * fill the tables by name, so the library links nothing of Vulkan. Tests
 * replace entries in the table of a device. */
#ifndef VYRE_BACKEND_VULKAN_DEVICE_FUNCTIONS_H
#define VYRE_BACKEND_VULKAN_DEVICE_FUNCTIONS_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#define VK_INSTANCE_CALLS(X)                   \
  X(DestroyInstance)                           \
  X(EnumeratePhysicalDevices)                  \
  X(GetPhysicalDeviceProperties)               \
  X(GetPhysicalDeviceProperties2)              \
  X(GetPhysicalDeviceFeatures2)                \
  X(GetPhysicalDeviceMemoryProperties)         \
  X(GetPhysicalDeviceMemoryProperties2)        \
  X(GetPhysicalDeviceQueueFamilyProperties)    \
  X(GetPhysicalDeviceExternalBufferProperties) \
  X(EnumerateDeviceExtensionProperties)        \
  X(CreateDevice)                              \
  X(GetDeviceProcAddr)

#define VK_DEVICE_CALLS(X)       \
  X(DestroyDevice)               \
  X(GetDeviceQueue)              \
  X(QueueSubmit)                 \
  X(QueueWaitIdle)               \
  X(CreateBuffer)                \
  X(DestroyBuffer)               \
  X(GetBufferMemoryRequirements) \
  X(AllocateMemory)              \
  X(FreeMemory)                  \
  X(BindBufferMemory)            \
  X(MapMemory)                   \
  X(CreateShaderModule)          \
  X(DestroyShaderModule)         \
  X(CreateDescriptorSetLayout)   \
  X(DestroyDescriptorSetLayout)  \
  X(CreatePipelineLayout)        \
  X(DestroyPipelineLayout)       \
  X(CreatePipelineCache)         \
  X(DestroyPipelineCache)        \
  X(GetPipelineCacheData)        \
  X(CreateComputePipelines)      \
  X(DestroyPipeline)             \
  X(CreateDescriptorPool)        \
  X(DestroyDescriptorPool)       \
  X(AllocateDescriptorSets)      \
  X(UpdateDescriptorSets)        \
  X(CreateCommandPool)           \
  X(DestroyCommandPool)          \
  X(ResetCommandPool)            \
  X(AllocateCommandBuffers)      \
  X(BeginCommandBuffer)          \
  X(EndCommandBuffer)            \
  X(CmdBindPipeline)             \
  X(CmdBindDescriptorSets)       \
  X(CmdPushConstants)            \
  X(CmdDispatch)                 \
  X(CmdDispatchIndirect)         \
  X(CmdCopyBuffer)               \
  X(CmdFillBuffer)               \
  X(CmdPipelineBarrier)          \
  X(CreateQueryPool)             \
  X(DestroyQueryPool)            \
  X(CmdResetQueryPool)           \
  X(CmdWriteTimestamp)           \
  X(GetQueryPoolResults)         \
  X(CreateFence)                 \
  X(DestroyFence)                \
  X(ResetFences)                 \
  X(WaitForFences)               \
  X(CreateSemaphore)             \
  X(DestroySemaphore)

#define VK_OPTIONAL_CALLS(X)           \
  X(WaitSemaphores)                    \
  X(GetMemoryHostPointerPropertiesEXT) \
  X(CmdBeginConditionalRenderingEXT)   \
  X(CmdEndConditionalRenderingEXT)

typedef struct vk_instance_api {
#define X(name) PFN_vk##name name;
  VK_INSTANCE_CALLS(X)
#undef X
} vk_instance_api;

typedef struct vk_api {
#define X(name) PFN_vk##name name;
  VK_DEVICE_CALLS(X) VK_OPTIONAL_CALLS(X)
#undef X
} vk_api;

#endif
