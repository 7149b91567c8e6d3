/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/check.h"
#include "base/status.h"
#include "driver/driver.h"
#include "ir/ir.h"

/* Elements that the grid covers: those of over(...), else of the largest binding
 * that is neither uniform nor shared. */
static uint32_t covered(const vyre_pipeline *pipeline,
                        const vyre__view *views) {
  uint32_t over = pipeline->program->over;
  if (over != VYRE_NO_INDEX) return views[over].length;
  uint32_t most = 0;
  for (size_t i = 0; i < pipeline->plan.binding_count; i++) {
    const vyre_binding *binding = &pipeline->plan.bindings[i];
    if (binding->role == VYRE_ROLE_UNIFORM) continue;
    if (binding->role == VYRE_ROLE_SHARED) continue;
    uint32_t length = views[binding->buffer_index].length;
    if (length > most) most = length;
  }
  return most;
}

static vyre_code check_axis(const vyre_pipeline *pipeline, const uint32_t *grid,
                            int axis, vyre_status *st) {
  uint64_t ids = (uint64_t)grid[axis] * pipeline->workgroup[axis];
  if (ids <= (uint64_t)UINT32_MAX + 1) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_TOO_LARGE, NULL,
      VYRE_NUMBERS({"grid", grid[axis]},
                   {"workgroup", pipeline->workgroup[axis]}),
      "split the work: an id has 32 bits",
      "%u workgroups of %u invocations on axis %c: ids would not fit in 32 "
      "bits",
      grid[axis], pipeline->workgroup[axis], "xyz"[axis]);
}

vyre_code vyre__grid_infer(const vyre_pipeline *pipeline,
                           const uint32_t override[3], const vyre__view *views,
                           uint32_t out[3], vyre_status *st) {
  bool given = override[0] | override[1] | override[2];
  for (int axis = 0; axis < 3; axis++) {
    out[axis] = given && override[axis] ? override[axis] : 1;
  }
  if (!given) {
    uint64_t groups = 1;
    (void)vyre__ceil_div_u64(covered(pipeline, views), pipeline->workgroup[0],
                             &groups); /* a workgroup has no axis of 0 */
    out[0] = groups > 1 ? (uint32_t)groups : 1;
  }
  uint64_t product = 1;
  for (int axis = 0; axis < 3; axis++) {
    VYRE_TRY(check_axis(pipeline, out, axis, st));
    if (vyre__mul_u64(product, out[axis], &product)) continue;
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_TOO_LARGE, NULL,
        VYRE_NUMBERS({"grid", out[axis]},
                     {"workgroup", pipeline->workgroup[axis]}),
        "split the work",
        "a grid of %u x %u x %u has more than 2^64-1 "
        "workgroups",
        out[0], out[1], out[2]);
  }
  return VYRE_OK;
}
