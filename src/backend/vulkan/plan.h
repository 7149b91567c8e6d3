/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The part of a compiled kernel that a launch needs: the host plan, the
 * descriptors, the fields of the launch block and the SPIR-V module. It
 * outlives the LIR, and the cache stores it. */
#ifndef VYRE_BACKEND_VULKAN_PLAN_H
#define VYRE_BACKEND_VULKAN_PLAN_H

#include "vyre/memory.h"
#include "vyre/status.h"
#include "vyre/writer.h"

#include "codegen/spirv/spirv.h"
#include "hal/host_plan.h"
#include "lir/lir.h"

/* Version of cached artifacts. Increase it when their format or the emitted
 * SPIR-V changes. */
enum { VK_ARTIFACT = 12 };

enum { VK_MAX_PUSH_BYTES = 256 }; /* limit on push constants that kernels use */

typedef struct vk_plan {
  VYRE__HOST_PLAN;
  uint32_t descriptor_count, field_count, word_count;
  uint32_t push_bytes, block_bytes, shared_bytes;
  uint32_t may_skip_fuel;
  const vyre__spirv_descriptor *descriptors;
  const vyre__spirv_field *fields;
  const uint32_t *words; /* the SPIR-V module */
} vk_plan;

/* Builds a plan in @p arena; it refers to neither the kernel nor the module.
 * Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vk_plan_build(const vyre__lir_kernel *kernel,
                        const vyre__spirv_module *module, vyre_arena *arena,
                        vk_plan *out, vyre_status *st);

/* Write and read a plan and the driver's pipeline cache data as an artifact
 * (hal/artifact.h). On reading, *cache points into @p bytes, and the plan is in
 * @p arena. Errors: VYRE_KERNEL_COMPILE_FAILED, VYRE_OUT_OF_MEMORY. */
bool vk_artifact_write(const vk_plan *plan, const void *cache, size_t size,
                       vyre_writer writer);
vyre_code vk_artifact_read(const void *bytes, size_t size, vyre_arena *arena,
                           vk_plan *out, const void **cache, size_t *cache_size,
                           vyre_status *st);

#endif
