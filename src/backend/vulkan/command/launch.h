/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Single launches: checks, expected duration, and execution in one submission
 * or in several. */
#ifndef VYRE_BACKEND_VULKAN_COMMAND_LAUNCH_H
#define VYRE_BACKEND_VULKAN_COMMAND_LAUNCH_H

#include "backend/vulkan/command/encoded_dispatch.h"

/* Executes one launch and waits for it. */
vyre_code vk_launch_run(vyre_pipeline *pipeline, vyre__launch *launch,
                        vyre_status *st);

/* Sets @p snapshot to a copy of @p launch whose uniforms with one of @p uses
 * (vk_uniform_use) are private copies in the scratch arena, because the
 * caller's memory may change at any time. With @p device_memory, copies
 * uniforms in device buffers too; earlier work on these must have finished. @p
 * snapshot may be @p launch. Errors: VYRE_OUT_OF_MEMORY; those of
 * vk_buffer_read. */
vyre_code vk_snapshot_uniforms(const vk_pipeline *pipeline,
                               const vyre__launch *launch, unsigned uses,
                               bool device_memory, vyre__launch *snapshot,
                               vyre_status *st);

/* Returns true if the launch fits in one submission: few tiles, short, without
 * a deadline or progress reports. */
bool vk_launch_fits_submission(const vk_pipeline *pipeline,
                               const vyre__launch *launch);
/* Returns the expected duration. An unmeasured kernel gets a high estimate. */
uint64_t vk_launch_expected_ns(const vk_pipeline *pipeline,
                               const vyre__launch *launch);
/* Returns true if the kernel has not been measured yet and the grid is not
 * empty. */
bool vk_launch_is_unmeasured(const vyre__launch *launch);
/* Returns the workgroups that a launch runs, in all iterations of its grid
 * loops. */
uint64_t vk_launch_groups(const vk_pipeline *pipeline,
                          const vyre__launch *launch);

/* Updates the measured workgroup time: @p groups workgroups took @p ns. */
void vk_pipeline_add_timing(vk_pipeline *pipeline, uint64_t groups,
                            uint64_t ns);
/* Does the same for a submission that also ran other kernels, if this kernel
 * has no measurement yet: a rough value is better than none. */
void vk_pipeline_add_first_timing(vk_pipeline *pipeline, uint64_t groups,
                                  uint64_t ns);

/* Completes a dispatch that has finished on the device: returns the failure
 * that the kernel reports, or copies the results out. */
vyre_code vk_dispatch_complete(vk_dispatch *dispatch, vyre__launch *launch,
                               vyre_status *st);

#endif
