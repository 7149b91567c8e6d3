/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is needed to launch a compiled kernel, once the lowered one is gone: it is
 * kept with the module, in the cache too. */
#ifndef VYRE_BACKEND_VULKAN_PLAN_H
#define VYRE_BACKEND_VULKAN_PLAN_H

#include "vyre/memory.h"
#include "vyre/status.h"
#include "vyre/writer.h"

#include "codegen/spirv/spirv.h"
#include "hal/host_plan.h"
#include "lir/lir.h"

/* Raised whenever the bytes that are kept or the modules of emit/spirv change. */
enum { VK_ARTIFACT = 12 };

enum { VK_MAX_PUSH_BYTES = 256 }; /* bytes of push constants that are used */

typedef struct vk_plan {
  VYRE__HOST_PLAN;
  uint32_t descriptor_count, field_count, word_count;
  uint32_t push_bytes, block_bytes, shared_bytes;
  uint32_t may_skip_fuel;
  const vyre__spirv_descriptor *descriptors;
  const vyre__spirv_field *fields;
  const uint32_t *words; /* the module */
} vk_plan;

/* Takes what it needs; lives in @p arena. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vk_plan_build(const vyre__lir_kernel *kernel,
                        const vyre__spirv_module *module, vyre_arena *arena,
                        vk_plan *out, vyre_status *st);

/* Plan and @p cache, as artifact.h has it. *cache is in @p bytes, the rest in
 * @p arena. Errors: VYRE_KERNEL_COMPILE_FAILED; VYRE_OUT_OF_MEMORY. */
bool vk_artifact_write(const vk_plan *plan, const void *cache, size_t size,
                       vyre_writer writer);
vyre_code vk_artifact_read(const void *bytes, size_t size, vyre_arena *arena,
                           vk_plan *out, const void **cache, size_t *cache_size,
                           vyre_status *st);

#endif
