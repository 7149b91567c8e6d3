/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The Vulkan backend: its function table, device list and texts.
 *
 * Sub-folders: device/ finds and opens devices, memory/ allocates and
 * stages, command/ encodes and submits.
 *
 * Data. A device has one queue, and memory in blocks. A block is one
 * VkDeviceMemory with one VkBuffer over all of it; everything else is a
 * range of a block. A pipeline has a plan, one VkPipeline per phase, and
 * layouts that it shares with equal pipelines. It also keeps idle encoded
 * dispatches. An encoded dispatch is a recorded launch: a command buffer, a
 * descriptor set, and a range of memory for host bytes, launch blocks and
 * the status word. Its key is all that the commands depend on: grid,
 * lengths, limits, and ranges of device buffers. A launch with the same key
 * only copies bytes in, submits, and copies bytes out.
 *
 * A tile is one vkCmdDispatch; large grids have several. A launch block holds
 * the parameters of a tile: its first workgroup, the grid, lengths of buffers
 * and small uniforms. A window is a submission with some tiles of a long
 * launch.
 *
 * Path of bytes. Host bytes are copied to the memory of the dispatch, and
 * back after the kernel. If device memory is unified with host memory, that
 * is all. Otherwise the dispatch has a second, host-visible range, and its
 * commands copy between the two. Large views and transfers of device buffers
 * use the staging ring of the device instead. Device buffers are bound
 * directly, unless their offset has the wrong alignment.
 *
 * Threads. A thread owns an encoded dispatch while it uses it; the lock of
 * the pipeline is held only to acquire and release it. Submitting holds the
 * queue lock. Waits for the device hold no lock, except after a failure and
 * while a phase is compiled that other threads wait for. The heap has a lock
 * of its own. A command list puts several dispatches into one submission,
 * with barriers where one reads what another wrote; its encodings belong to
 * the thread that executes it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/vulkan/command/command_list.h"
#include "backend/vulkan/command/queue_drain.h"
#include "backend/vulkan/device/device.h"
#include "backend/vulkan/device/instance.h"
#include "backend/vulkan/device/logical_device.h"
#include "backend/vulkan/memory/heap.h"
#include "backend/vulkan/options.h"
#include "backend/vulkan/pipeline.h"
#include "backend/vulkan/plan.h"
#include "hal/command_list.h"

static bool describe(const vyre__backend *self, uint32_t index,
                     vyre_device_info *out) {
  (void)self;
  const vk_instance *instance = vk_instance_find();
  if (!instance->handle || index >= instance->count) {
    if (instance->missing[0]) out->note = instance->missing;
    out->fix = instance->fix;
    return false;
  }
  const vk_physical_device *p = &instance->devices[index];
  out->description = p->properties.deviceName;
  out->driver = p->driver;
  out->note = p->note;
  out->fix = instance->fix;
  return true;
}

/* Writes what the code depends on beyond the driver: the kind of memory for
 * descriptors, and the device features in use. It is part of the cache key. */
static void features(const vyre_device *device, vyre__bytes *to) {
  const vk_device *own = (const vk_device *)device;
  const vk_features *h = &own->has;
  const VkPhysicalDeviceProperties *p = &own->physical->properties;
  char text[256];
  int length = snprintf(
      text, sizeof text,
      "spirv %d; storage %d%d int %d%d%d f64 %d atomics %d%d model %d%d zero "
      "%d modes %u,%u,%u push %u block %d; device %08x:%08x ",
      VK_ARTIFACT, h->storage8, h->storage16, h->int8, h->int16, h->int64,
      h->float64, h->buffer_atomics64, h->shared_atomics64, h->memory_model,
      h->device_scope, h->zeroes_workgroup, h->keeps_signed_zeros,
      h->keeps_subnormals, h->rounds_to_even,
      (unsigned)p->limits.maxPushConstantsSize, !own->uses_push_constants,
      (unsigned)p->vendorID, (unsigned)p->deviceID);
  for (unsigned i = 0; i < VK_UUID_SIZE; i++) {
    length += snprintf(text + length, sizeof text - (size_t)length, "%02x",
                       p->pipelineCacheUUID[i]);
  }
  vyre__bytes_put(to, text, (size_t)length);
}

/* Software devices keep their default: with push constants, lavapipe of Mesa
 * 22.3 never finishes compiling some kernels. */
static bool tunable_at(const vyre_device *device, uint32_t index,
                       vyre__tunable *out) {
  const vk_device *own = (const vk_device *)device;
  *out = (vyre__tunable){.name = "push_constants", .changes_code = true};
  if (!own->physical->is_software) {
    out->values[out->count++] = !own->uses_push_constants;
  }
  return index == VK_TUNES_PUSH_CONSTANTS;
}

static void pipeline_describe(const vyre_pipeline *pipeline,
                              vyre_pipeline_resources *out) {
  const vk_plan *plan = &((const vk_pipeline *)pipeline)->plan;
  out->has_launches = out->has_code = true;
  out->phase_count = plan->phase_count;
  out->spill_buffer_count =
      plan->buffer_count - (uint32_t)pipeline->program->buffer_count;
  out->spill_bytes = 4 * (uint64_t)plan->spill_words;
  out->scratch_bytes = plan->shared_bytes;
  out->code_bytes = 4 * (uint64_t)plan->word_count;
}

/* --- the backend table ---------------------------------------------------- */

/* Returns true if "auto" may choose this backend. Loads nothing on machines
 * without a GPU. A software device is never better than 'cpu'. */
static bool is_ready(const vyre_context *context, const char **why) {
  (void)context;
  *why = "auto: best available device; no GPU for 'vulkan'";
  if (access("/dev/dri", F_OK) != 0 && access("/dev/nvidiactl", F_OK) != 0) {
    return false;
  }
  const vk_instance *instance = vk_instance_find();
  return instance->handle && instance->count > 0 &&
         !instance->devices[0].is_software;
}

extern const vyre__backend vyre__backend_vulkan;

const vyre__backend vyre__backend_vulkan = {
    .abi = VYRE__BACKEND_ABI,
    .struct_size = sizeof(vyre__backend),
    .name = "vulkan",
    .precedence = 300,
    .clears_outputs = true,
    .device_size = sizeof(vk_device),
    .pipeline_size = sizeof(vk_pipeline),
    .buffer_size = sizeof(vk_buffer),
    .describe = describe,
    .is_ready = is_ready,
    .device_init = vk_device_init,
    .device_deinit = vk_device_deinit,
    .target = vk_pipeline_target,
    .generate = vk_pipeline_generate,
    .load = vk_pipeline_load,
    .artifact_version = VK_ARTIFACT,
    .pipeline_deinit = vk_pipeline_deinit,
    .buffer_init = vk_buffer_init,
    .buffer_deinit = vk_buffer_deinit,
    .buffer_write = vk_buffer_write,
    .buffer_read = vk_buffer_read,
    .execute = vk_execute,
    .list_release = vk_list_release,
    .command_kinds = 1 << VYRE__COMMAND_COPY | 1 << VYRE__COMMAND_LOOP,
    .features = features,
    .pipeline_print = vk_pipeline_print,
    .pipeline_describe = pipeline_describe,
    .options = vk_options,
    .tunable_at = tunable_at,
    .portable = &vk_portable,
    .queue_plan = vk_queue_plan,
    .queue_drain = vk_queue_drain,
    .needs_queue_steps = true};
