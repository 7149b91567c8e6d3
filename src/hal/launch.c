/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks of a launch, which the runtime makes for all backends. */
#include "hal/launch.h"

#include <assert.h>

#include "base/attributes.h"
#include "base/status.h"
#include "hal/host_plan.h"

VYRE__RARE
static vyre_code wrong_length(const vyre__launch *launch, uint32_t buffer,
                              vyre_status *st) {
  const vyre_program *program = launch->pipeline->program;
  const vyre__plan_buffer *b = &launch->pipeline->host_plan->buffers[buffer];
  uint32_t length = launch->views[buffer].length;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"elements", length}, {"min_elements", b->min},
                   {"max_elements", b->max}),
      "bind as many elements as the kernel declares",
      "buffer '%.60s' of kernel '%.60s' has %u elements; expected %u to %u",
      program->buffers[buffer].name, program->name, length, b->min, b->max);
}

vyre_code vyre__launch_check(const vyre__launch *launch, vyre_status *st) {
  const vyre__host_plan *plan = launch->pipeline->host_plan;
  if (!plan) return VYRE_OK;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    const vyre__plan_buffer *b = &plan->buffers[i];
    if (!b->is_bound) continue; /* it may have no view */
    uint32_t length = launch->views[i].length;
    if (length < b->min || length > b->max) return wrong_length(launch, i, st);
  }
  return VYRE_OK;
}

vyre_code vyre__spill_size(const vyre__launch *launch, const uint32_t group[3],
                           uint64_t groups, uint32_t max_words, uint32_t *words,
                           vyre_status *st) {
  const uint32_t each = launch->pipeline->host_plan->spill_words;
  uint64_t invocations = (uint64_t)group[0] * group[1] * group[2];
  uint64_t max = each ? max_words / each : UINT64_MAX;
  if (groups > max / invocations) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_TOO_LARGE, NULL,
        VYRE_NUMBERS({"workgroups", groups}, {"max_invocations", max}),
        "use a smaller grid, or keep fewer values across grid_barrier()",
        "kernel '%.60s': %llu workgroups of %llu invocations keep %u words "
        "each across grid barriers, which is more than the device can index",
        launch->pipeline->program->name, (unsigned long long)groups,
        (unsigned long long)invocations, (unsigned)each);
  }
  *words = (uint32_t)(groups * invocations * each);
  return VYRE_OK;
}

#ifndef NDEBUG
void vyre__launch_assert(const vyre__launch *launch) {
  const uint32_t *size = launch->pipeline->workgroup;
  for (unsigned axis = 0; axis < 3; axis++) {
    assert((uint64_t)launch->grid[axis] * size[axis] <= UINT64_C(1) << 32);
  }
  assert(vyre__launch_check(launch, NULL) == VYRE_OK);
}
#endif
