/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Generates SPIR-V from LIR, and creates the VkPipelines of an artifact. */
#include <stdio.h>
#include <string.h>

#include "backend/vulkan/command/descriptor_layout.h"
#include "backend/vulkan/command/encoded_dispatch.h"
#include "backend/vulkan/command/submit.h"
#include "backend/vulkan/device/compile_guard.h"
#include "backend/vulkan/device/device.h"
#include "backend/vulkan/device/functions.h"
#include "backend/vulkan/memory/heap.h"
#include "backend/vulkan/pipeline.h"
#include "backend/vulkan/plan.h"
#include "base/memory.h"
#include "base/status.h"

/* --- limits --------------------------------------------------------------- */

static vyre_code limit_exceeded(const vk_pipeline *own, const char *resource,
                                uint64_t needed, uint64_t max,
                                vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, NULL,
      VYRE_NUMBERS({"needed", needed}, {"max", max}),
      "split the kernel, or use device 'cpu'",
      "kernel '%.60s' needs %llu %s; device '%s' has at most %llu",
      own->base.program->name, (unsigned long long)needed, resource,
      vyre_device_name(own->base.device), (unsigned long long)max);
}

static vyre_code check_limits(const vk_pipeline *own, vyre_status *st) {
  const vk_device *device = (const vk_device *)own->base.device;
  const VkPhysicalDeviceLimits *l = &device->physical->properties.limits;
  uint32_t storage = 0;
  for (uint32_t i = 0; i < own->plan.descriptor_count; i++) {
    storage += !own->plan.descriptors[i].is_uniform;
  }
  if (storage > l->maxPerStageDescriptorStorageBuffers) {
    return limit_exceeded(own, "storage buffers, including internal ones",
                          storage, l->maxPerStageDescriptorStorageBuffers, st);
  }
  uint32_t block = vk_uses_push_constants(&own->base)
                       ? l->maxUniformBufferRange
                       : l->maxStorageBufferRange;
  if (own->plan.block_bytes > block) {
    return limit_exceeded(own, "bytes of a launch block", own->plan.block_bytes,
                          block, st);
  }
  if (own->plan.shared_bytes > l->maxComputeSharedMemorySize) {
    return limit_exceeded(
        own, "bytes of shared memory in the layout of the device",
        own->plan.shared_bytes, l->maxComputeSharedMemorySize, st);
  }
  return VYRE_OK;
}

/* --- VkPipelines ---------------------------------------------------------- */

/* Returns true if pipeline cache data was written by the same driver and
 * device. Other data is not passed to the driver. */
static bool is_cache_for_device(const vk_device *device, const void *bytes,
                                size_t size) {
  const VkPhysicalDeviceProperties *p = &device->physical->properties;
  VkPipelineCacheHeaderVersionOne head;
  if (size < sizeof head) return false;
  memcpy(&head, bytes, sizeof head);
  return head.headerSize >= sizeof head && head.headerSize <= size &&
         head.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
         head.vendorID == p->vendorID && head.deviceID == p->deviceID &&
         memcmp(head.pipelineCacheUUID, p->pipelineCacheUUID,
                sizeof head.pipelineCacheUUID) == 0;
}

/* Appends the driver's pipeline cache data to @p to, if there is any. */
static void save_driver_cache(const vk_device *device, VkPipelineCache cache,
                              vyre__bytes *to) {
  size_t size = 0;
  if (device->api.GetPipelineCacheData(device->handle, cache, &size, NULL) !=
          VK_SUCCESS ||
      size > UINT32_MAX ||
      !vyre__reserve(to->allocator, &to->data, &to->capacity, size, 1, true)) {
    return;
  }
  if (device->api.GetPipelineCacheData(device->handle, cache, &size,
                                       to->data) == VK_SUCCESS) {
    to->size = size;
  }
}

VkResult vk_phase_create(const vk_pipeline *own, uint32_t phase,
                         bool counts_iterations, VkShaderModule module,
                         VkPipelineCache cache, VkPipeline *out) {
  const vk_device *device = (const vk_device *)own->base.device;
  char name[24];
  const VkBool32 counts = counts_iterations;
  const VkSpecializationMapEntry entry = {VYRE__SPIRV_COUNTS_FUEL, 0,
                                          sizeof counts};
  const VkSpecializationInfo constants = {1, &entry, sizeof counts, &counts};
  (void)snprintf(name, sizeof name, "phase%u", (unsigned)phase);
  const VkComputePipelineCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
      .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .module = module,
                .pName = name,
                .pSpecializationInfo =
                    own->plan.may_skip_fuel ? &constants : NULL},
      .layout = own->layout->pipeline};
  VkResult result = device->api.CreateComputePipelines(device->handle, cache, 1,
                                                       &info, NULL, out);
  if (result != VK_SUCCESS) *out = VK_NULL_HANDLE;
  return result;
}

static VkResult create_phases(const vk_pipeline *own, VkShaderModule module,
                              VkPipelineCache cache) {
  VkResult result = VK_SUCCESS;
  for (uint32_t i = 0; i < own->plan.phase_count && result == VK_SUCCESS; i++) {
    result = vk_phase_create(own, i, false, module, cache, &own->phases[i]);
  }
  return result;
}

VkResult vk_module_create(const vk_pipeline *own, VkShaderModule *out) {
  const vk_device *device = (const vk_device *)own->base.device;
  const VkShaderModuleCreateInfo code = {
      .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
      .codeSize = (size_t)own->plan.word_count * 4,
      .pCode = own->plan.words};
  return device->api.CreateShaderModule(device->handle, &code, NULL, out);
}

vyre_code vk_compile_failed(vk_pipeline *own, VkResult result,
                            vyre_status *st) {
  vk_device *device = (vk_device *)own->base.device;
  vyre_status inner = {0};
  vyre_code code = vk_failed(device, result, "pipeline creation", &inner);
  if (code != VYRE_DISPATCH_FAILED) {
    return vk_failed(device, result, "pipeline creation", st);
  }
  return VYRE_FAIL_WITH(
      st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE, NULL,
      VYRE_NUMBERS({"result", (uint64_t)(uint32_t)result}),
      "update the driver of the device, or use device 'cpu'",
      "device '%s' could not compile kernel '%.60s': VkResult %d",
      vyre_device_name(own->base.device), own->base.program->name, (int)result);
}

/* Creates the VkPipelines, with the help of a driver's cache data. Appends its
 * new data to @p extra, unless that is NULL. */
static vyre_code create_pipelines(vk_pipeline *own, const void *bytes,
                                  size_t size, vyre__bytes *extra,
                                  vyre_status *st) {
  vk_device *device = (vk_device *)own->base.device;
  const vk_api *api = &device->api;
  VkShaderModule module = VK_NULL_HANDLE;
  VkPipelineCache cache = VK_NULL_HANDLE;
  bool is_usable = is_cache_for_device(device, bytes, size);
  const VkPipelineCacheCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
      .initialDataSize = is_usable ? size : 0,
      .pInitialData = is_usable ? bytes : NULL};
  VkResult result =
      api->CreatePipelineCache(device->handle, &info, NULL, &cache);
  if (result == VK_SUCCESS) {
    result = vk_module_create(own, &module);
    if (result == VK_SUCCESS) {
      result = create_phases(own, module, cache);
      api->DestroyShaderModule(device->handle, module, NULL);
    }
    if (result == VK_SUCCESS && extra) save_driver_cache(device, cache, extra);
    api->DestroyPipelineCache(device->handle, cache, NULL);
  }
  return result == VK_SUCCESS ? VYRE_OK : vk_compile_failed(own, result, st);
}

static void add_to_device(vk_device *device, vk_pipeline *own) {
  pthread_mutex_lock(&device->pipeline_lock);
  own->next = device->pipelines;
  own->link = &device->pipelines;
  if (own->next) own->next->link = &own->next;
  device->pipelines = own;
  pthread_mutex_unlock(&device->pipeline_lock);
}

/* Removes float modes that the device lacks: portable modules ask for all. */
static void limit_float_modes(vk_pipeline *own) {
  const vyre__spirv_target target = vk_spirv_target(&own->base);
  uint32_t *words = (uint32_t *)own->plan.words; /* a copy in the arena */
  own->plan.word_count = (uint32_t)vyre__spirv_limit_float_modes(
      words, own->plan.word_count, &target);
}

vyre_code vk_pipeline_load(vyre_pipeline *pipeline,
                           const vyre__code_source *source, vyre_status *st) {
  vk_pipeline *own = (vk_pipeline *)pipeline;
  vk_device *device = (vk_device *)pipeline->device;
  const void *cache;
  size_t cache_size;
  VYRE_TRY(vk_artifact_read(source->artifact, source->size, &pipeline->arena,
                            &own->plan, &cache, &cache_size, st));
  VYRE_TRY(vyre__host_plan_fits(&own->plan.base, pipeline, st));
  pipeline->host_plan = &own->plan.base;
  uint32_t count = own->plan.phase_count;
  limit_float_modes(own);
  VYRE_TRY(check_limits(own, st));
  VYRE_TRY(vk_find_uniforms(own, st));
  own->phases = vyre__arena_array(&own->base.arena, count, sizeof *own->phases);
  if (!own->phases) return vyre__no_memory(st, "vulkan", "phases", count);
  memset(own->phases, 0, count * sizeof *own->phases);
  VYRE_TRY(vk_dummy_range_create(device, st));
  VYRE_TRY(vk_layout_acquire(device, own, &own->layout, st));
  pthread_mutex_init(&own->lock, NULL);
  vk_counted_phase_init(&own->counted);
  add_to_device(device, own);
  vyre_code code = vk_compile_enter(st);
  if (code == VYRE_OK) {
    code = create_pipelines(own, cache, cache_size, source->extra, st);
    if (code == VYRE_OK && device->physical->is_software) {
      code = vk_warm_up(own, own->phases, count, st);
    }
    vk_compile_leave();
  }
  if (code != VYRE_OK) vk_pipeline_deinit(&own->base);
  return code;
}

void vk_pipeline_deinit(vyre_pipeline *pipeline) {
  vk_pipeline *own = (vk_pipeline *)pipeline;
  vk_device *device = (vk_device *)pipeline->device;
  pthread_mutex_lock(&device->pipeline_lock);
  *own->link = own->next;
  if (own->next) own->next->link = own->link;
  pthread_mutex_unlock(&device->pipeline_lock);
  while (own->oldest) {
    vk_dispatch *dispatch = own->oldest;
    own->oldest = dispatch->newer;
    vk_dispatch_free(dispatch);
  }
  for (uint32_t i = 0; i < own->plan.phase_count; i++) {
    device->api.DestroyPipeline(device->handle, own->phases[i], NULL);
  }
  vk_counted_phase_deinit(own);
  vk_layout_release(device, own->layout);
  pthread_mutex_destroy(&own->lock);
}

/* --- generating ----------------------------------------------------------- */

static vyre_code emit(const vyre_pipeline *pipeline,
                      const vyre__lir_kernel *kernel, vyre_arena *arena,
                      bool has_names, vyre__spirv_module *out,
                      vyre_status *st) {
  vyre__spirv_target target = vk_spirv_target(pipeline);
  target.names = has_names;
  return vyre__emit_spirv(kernel, &target, arena, out, st);
}

vyre_code vk_pipeline_generate(const vyre_pipeline *pipeline,
                               const vyre__lir_kernel *kernel,
                               vyre_arena *scratch, vyre__bytes *artifact,
                               vyre_status *st) {
  vyre__spirv_module module;
  vk_plan plan;
  VYRE_TRY(emit(pipeline, kernel, scratch, false, &module, st));
  VYRE_TRY(vk_plan_build(kernel, &module, scratch, &plan, st));
  vk_artifact_write(&plan, artifact);
  return VYRE_OK;
}

/* --- printing ------------------------------------------------------------- */

vyre_code vk_pipeline_print(const vyre_pipeline *pipeline,
                            const vyre__lir_kernel *kernel, vyre_arena *scratch,
                            const char *form, vyre_writer writer,
                            vyre_status *st) {
  bool is_text = strcmp(form, "spirv-text") == 0;
  if (!is_text && strcmp(form, "spirv") != 0) {
    return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                     "use the form spirv or spirv-text",
                     "device 'vulkan' cannot print code in the form '%.60s'",
                     form);
  }
  vyre__spirv_module module;
  VYRE_TRY(emit(pipeline, kernel, scratch, is_text, &module, st));
  return vyre__spirv_write(&module, is_text, scratch->allocator, writer, st);
}
