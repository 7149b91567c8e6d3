/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is needed to launch a compiled kernel, once the lowered one is gone: it is
 * kept with the module, in the cache too. */
#ifndef VYRE_BACKEND_VULKAN_PLAN_H
#define VYRE_BACKEND_VULKAN_PLAN_H

#include "vyre/memory.h"
#include "vyre/status.h"
#include "vyre/text.h"

#include "driver/backend.h"
#include "emit/spirv.h"
#include "lower/low.h"

/* Raised whenever the bytes that are kept or the modules of emit/spirv change. */
enum { VK_ARTIFACT = 5 };

enum { VK_MOST_PUSHED = 256 }; /* bytes of push constants that are used */

typedef struct vk_plan_buffer {
  uint32_t least, most; /* elements that may be bound */
  uint8_t kind;         /* vyre_memory */
  uint8_t unit;         /* bytes of an element as it is bound */
  uint8_t width;        /* bytes of an access */
  uint8_t is_bound;     /* by the caller */
} vk_plan_buffer;

/* As vyre__low_step; values are places in `host`. */
typedef struct vk_step {
  uint8_t kind, loop_kind, type, reserved;
  uint32_t phase, loop;
  uint32_t first, bound;
  uint32_t mate; /* FOR: its END_FOR; END_FOR: its FOR */
  uint64_t by;
} vk_step;

typedef struct vk_plan {
  uint32_t workgroup[3];
  uint32_t most_groups[3];
  uint32_t phase_count, buffer_count, step_count, host_count, loop_count;
  uint32_t descriptor_count, field_count, word_count;
  uint32_t hidden; /* buffer, or VYRE_NO_INDEX */
  uint32_t hidden_words;
  uint32_t push_bytes, block_bytes, shared_bytes;
  uint32_t may_skip_fuel;
  const vk_plan_buffer *buffers;
  const vk_step *steps;
  const vyre__low_inst *host; /* operands are places in it, plus 1 */
  const vyre__spirv_descriptor *descriptors;
  const vyre__spirv_field *fields;
  const uint32_t *words; /* the module */
} vk_plan;

/* Takes what it needs; lives in @p arena. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vk_plan_build(const vyre__low_kernel *kernel,
                        const vyre__spirv_module *module, vyre_arena *arena,
                        vk_plan *out, vyre_status *st);

/* Writes plan and @p cache, and reads them: everything is looked at, and what is not
 * as it was written is refused. *cache is in @p bytes, the rest in @p arena.
 * Errors: VYRE_KERNEL_COMPILE_FAILED; VYRE_OUT_OF_MEMORY. */
bool vk_artifact_write(const vk_plan *plan, const void *cache, size_t size,
                       vyre_writer writer);
vyre_code vk_artifact_read(const void *bytes, size_t size, vyre_arena *arena,
                           vk_plan *out, const void **cache, size_t *cache_size,
                           vyre_status *st);

/* --- what the host does between phases ---------------------------------------------*/

typedef struct vk_walk {
  const vk_plan *plan;
  const vyre__launch *launch;
  uint64_t *values, *bounds, *host; /* of loops; of plan->host */
  uint32_t at;
} vk_walk;

/* Where loops stand; @p values has room for 2 * loop_count + host_count. Uniforms
 * that the plan's host code reads are at launch->views[i].data. */
vk_walk vk_walk_begin(const vk_plan *plan, const vyre__launch *launch,
                      uint64_t *values);
/* The next phase to run, with loop values in walk->values; false: that was all. */
bool vk_walk_next(vk_walk *walk, uint32_t *phase);

#endif
