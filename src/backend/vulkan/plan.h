/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The part of a compiled kernel that a launch needs: the host plan, the
 * descriptors, the fields of the launch block and the SPIR-V module. The
 * artifact holds it; the LIR is gone when the kernel is launched. */
#ifndef VYRE_BACKEND_VULKAN_PLAN_H
#define VYRE_BACKEND_VULKAN_PLAN_H

#include "vyre/memory.h"
#include "vyre/status.h"

#include "codegen/spirv/spirv.h"
#include "hal/host_plan.h"
#include "lir/lir.h"

/* Version of artifacts. Increase it when their format or the emitted SPIR-V
 * changes. */
enum { VK_ARTIFACT = 14 };

enum { VK_MAX_PUSH_BYTES = 256 }; /* limit on push constants that kernels use */

typedef struct vk_plan {
  VYRE__HOST_PLAN;
  uint32_t descriptor_count, field_count, word_count;
  union {
    struct {
      uint32_t push_bytes, block_bytes, shared_bytes, may_skip_fuel;
    };
    uint32_t numbers[4]; /* the same, as an artifact stores them */
  };
  const vyre__spirv_descriptor *descriptors;
  const vyre__spirv_field *fields;
  const uint32_t *words; /* the SPIR-V module */
} vk_plan;

/* Returns the descriptor of a buffer, or NULL if the module does not use it. */
static inline const vyre__spirv_descriptor *vk_plan_descriptor(
    const vk_plan *plan, uint32_t buffer) {
  for (uint32_t i = 0; i < plan->descriptor_count; i++) {
    const vyre__spirv_descriptor *d = &plan->descriptors[i];
    if (d->what == VYRE__SPIRV_BUFFER && d->buffer == buffer) return d;
  }
  return NULL;
}

/* Builds the plan of @p kernel and of its module, which it borrows.
 * Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vk_plan_build(const vyre__lir_kernel *kernel,
                        const vyre__spirv_module *module, vyre_arena *arena,
                        vk_plan *out, vyre_status *st);

/* Write and read a plan as an artifact (hal/artifact.h). On reading, the plan is
 * in @p arena, and *cache points to the driver's pipeline cache data at the end
 * of @p bytes. Errors: VYRE_KERNEL_COMPILE_FAILED, VYRE_OUT_OF_MEMORY. */
void vk_artifact_write(vk_plan *plan, vyre__bytes *to);
vyre_code vk_artifact_read(const void *bytes, size_t size, vyre_arena *arena,
                           vk_plan *out, const void **cache, size_t *cache_size,
                           vyre_status *st);

#endif
