/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A compiled kernel: its plan, one VkPipeline per phase, and idle encoded
 * dispatches. */
#ifndef VYRE_BACKEND_VULKAN_PIPELINE_H
#define VYRE_BACKEND_VULKAN_PIPELINE_H

#include "backend/vulkan/command/descriptor_layout.h"
#include "backend/vulkan/device/device.h"
#include "backend/vulkan/plan.h"
#include "hal/launch.h"

typedef struct vk_dispatch vk_dispatch;

enum { VK_DISPATCH_BUCKETS = 64, VK_MAX_IDLE_DISPATCHES = 1100 };

/* Ways in which a kernel uses a uniform buffer; a mask. */
enum vk_uniform_use {
  /* The commands depend on its bytes: they are push constants, or bounds of
   * grid loops. */
  VK_UNIFORM_ENCODED = 1,
  VK_UNIFORM_IN_BLOCK = 2, /* its bytes are in the launch block, in memory */
};

/* The phase of a kernel that may skip fuel, compiled with fuel; created when a
 * launch limits loop iterations. The lock is not held while it compiles. */
typedef struct vk_counted_phase {
  pthread_mutex_t lock;
  pthread_cond_t ended; /* a compile */
  bool is_compiling;
  uint64_t failures;  /* number of compiles that failed */
  vyre_status status; /* of the last one that failed */
  VkPipeline phase;
} vk_counted_phase;

typedef struct vk_pipeline {
  vyre_pipeline base;
  struct vk_pipeline *next, **link; /* list of the device */
  vk_plan plan;
  vk_layout *layout;
  const uint8_t *uniform_uses; /* vk_uniform_use of each buffer of the plan */
  bool has_encoded_uniforms;
  VkPipeline *phases; /* plan.phase_count, in the arena */
  vk_counted_phase counted;
  _Atomic uint64_t group_ps; /* measured ps of a workgroup; 0: not measured */
  pthread_mutex_t lock;      /* of the idle dispatches below */
  vk_dispatch *buckets[VK_DISPATCH_BUCKETS];
  vk_dispatch *oldest, *newest;
  uint32_t idle_count;
  uint64_t idle_bytes; /* device memory of the idle dispatches */
} vk_pipeline;

/* Pipeline entries of the backend table. */
void vk_pipeline_target(const vyre_pipeline *pipeline, vyre__target *out);
vyre_code vk_pipeline_generate(const vyre_pipeline *pipeline,
                               const vyre__lir_kernel *kernel,
                               vyre_arena *scratch, vyre__bytes *artifact,
                               vyre_status *st);
vyre_code vk_pipeline_load(vyre_pipeline *pipeline,
                           const vyre__code_source *source, vyre_status *st);
void vk_pipeline_deinit(vyre_pipeline *pipeline);
vyre_code vk_pipeline_print(const vyre_pipeline *pipeline,
                            const vyre__lir_kernel *kernel, vyre_arena *scratch,
                            const char *form, vyre_writer writer,
                            vyre_status *st);

/* The targets of packages. */
extern const vyre__portable vk_portable;

/* Creates the shader module of a pipeline. */
VkResult vk_module_create(const vk_pipeline *pipeline, VkShaderModule *out);
/* Creates the VkPipeline of a phase. @p counts_iterations: with fuel, for a
 * kernel that may skip it. */
VkResult vk_phase_create(const vk_pipeline *pipeline, uint32_t phase,
                         bool counts_iterations, VkShaderModule module,
                         VkPipelineCache cache, VkPipeline *out);
/* Reports that the driver could not create a VkPipeline. */
vyre_code vk_compile_failed(vk_pipeline *pipeline, VkResult result,
                            vyre_status *st);
void vk_counted_phase_init(vk_counted_phase *counted);
void vk_counted_phase_deinit(vk_pipeline *pipeline);

/* Fills pipeline->uniform_uses from the plan. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vk_find_uniforms(vk_pipeline *pipeline, vyre_status *st);
/* Returns the VkPipelines to dispatch. With @p counts_iterations, a kernel that
 * may skip fuel is compiled with fuel on the first call. *out lives as long as
 * the pipeline. A compile that is not done at the deadline of @p launch goes on
 * without this call, which then fails with timed_out. */
vyre_code vk_pipeline_phases(vk_pipeline *pipeline, bool counts_iterations,
                             const vyre__launch *launch, const VkPipeline **out,
                             vyre_status *st);
/* Waits for warm-ups that other threads submitted to the queue of the device.
 * Returns false at the time @p deadline_ns. */
bool vk_wait_for_warm_ups(const vk_device *device, uint64_t deadline_ns);
/* Dispatches each phase with an empty grid, so that drivers that compile at the
 * first dispatch do so now. */
vyre_code vk_warm_up(vk_pipeline *pipeline, const VkPipeline *phases,
                     uint32_t count, vyre_status *st);

/* Tunable settings of a pipeline. */
enum { VK_TUNES_PUSH_CONSTANTS };

/* Returns true if the launch block is pushed, false if it is in memory. */
static inline bool vk_uses_push_constants(const vyre_pipeline *pipeline) {
  const vk_device *device = (const vk_device *)pipeline->device;
  return vyre__tuned(pipeline, VK_TUNES_PUSH_CONSTANTS,
                     device->uses_push_constants) != 0;
}

/* Returns the target of the SPIR-V emitter, from the features of the device and
 * the float modes of the pipeline. */
vyre__spirv_target vk_spirv_target(const vyre_pipeline *pipeline);

#endif
