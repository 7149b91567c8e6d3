/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Computes the grid of a dispatch: the given one, or one workgroup per
 * `workgroup size` elements of the buffer that the grid covers. */
#include "runtime/dispatch/grid.h"

#include "base/attributes.h"
#include "base/checked_math.h"
#include "base/status.h"
#include "hal/launch.h"
#include "runtime/compile/pipeline.h"

/* Number of ids of one axis. An id has 32 bits. */
static const uint64_t max_ids = UINT64_C(1) << 32;

/* Returns the number of elements that the grid covers: those of the over(...)
 * buffer, otherwise those of the longest buffer that is neither uniform nor
 * shared. */
static uint32_t covered_elements(const vyre_pipeline *pipeline,
                                 const vyre__view *views) {
  const vyre__binding_info *info = pipeline->state->infos;
  uint32_t max = 0;
  for (size_t i = 0; i < pipeline->plan.binding_count; i++, info++) {
    uint32_t length = views[info->buffer].length;
    if (info->is_covered && length > max) max = length;
  }
  return max;
}

/* Divides and rounds up. Most workgroup sizes are powers of two, for which a
 * shift avoids the slow division. */
static uint32_t divide_round_up(uint32_t count, uint32_t size) {
  uint32_t mask = size - 1;
  if ((size & mask) == 0) {
    return (count >> __builtin_ctz(size)) + ((count & mask) != 0);
  }
  return count / size + (count % size != 0);
}

VYRE__RARE
static vyre_code grid_too_large(const vyre_pipeline *pipeline,
                                const uint32_t *grid, vyre_status *st) {
  for (int axis = 0; axis < 3; axis++) {
    if ((uint64_t)grid[axis] * pipeline->workgroup[axis] <= max_ids) continue;
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_TOO_LARGE, NULL,
        VYRE_NUMBERS({"grid", grid[axis]},
                     {"workgroup", pipeline->workgroup[axis]}),
        "split the work over several dispatches: an id has 32 bits",
        "%u workgroups of %u invocations on axis %c need ids of more than 32 "
        "bits",
        grid[axis], pipeline->workgroup[axis], "xyz"[axis]);
  }
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_TOO_LARGE, NULL,
      VYRE_NUMBERS({"grid", grid[2]}, {"workgroup", pipeline->workgroup[2]}),
      "split the work over several dispatches",
      "a grid of %u x %u x %u has more than 2^64-1 workgroups", grid[0],
      grid[1], grid[2]);
}

VYRE__RARE
static vyre_code grid_missing(const vyre_pipeline *pipeline, vyre_status *st) {
  const uint32_t *size = pipeline->workgroup;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_REQUIRED, NULL,
      VYRE_NUMBERS({"workgroup_x", size[0]}, {"workgroup_y", size[1]},
                   {"workgroup_z", size[2]}),
      "set the grid of the dispatch: on each axis, the extent of the data "
      "divided by the size of the workgroup, rounded up",
      "kernel '%.60s' has workgroups of %u x %u x %u and needs a grid; a grid "
      "can be inferred only along x",
      pipeline->program->name, size[0], size[1], size[2]);
}

vyre_code vyre__grid_check_given(const vyre_pipeline *pipeline,
                                 const uint32_t grid[3], vyre_status *st) {
  const uint32_t *size = pipeline->workgroup;
  bool is_given = (grid[0] | grid[1] | grid[2]) != 0;
  if (is_given || (size[1] | size[2]) == 1) return VYRE_OK;
  return grid_missing(pipeline, st);
}

vyre_code vyre__grid_infer(const vyre_pipeline *pipeline,
                           const uint32_t override[3], const vyre__view *views,
                           uint32_t out[3], vyre_status *st) {
  const uint32_t *size = pipeline->workgroup; /* every axis is at least 1 */
  if (!(override[0] | override[1] | override[2])) {
    VYRE_TRY(vyre__grid_check_given(pipeline, override, st));
    uint32_t count = covered_elements(pipeline, views);
    uint32_t groups = divide_round_up(count, size[0]);
    out[0] = groups > 1 ? groups : 1;
    out[1] = out[2] = 1;
    bool has_ids = (uint64_t)out[0] * size[0] <= max_ids;
    return has_ids ? VYRE_OK : grid_too_large(pipeline, out, st);
  }
  uint64_t product = 1;
  bool fits = true;
  for (int axis = 0; axis < 3; axis++) {
    out[axis] = override[axis] ? override[axis] : 1;
    fits = fits && (uint64_t)out[axis] * size[axis] <= max_ids &&
           vyre__mul_u64(product, out[axis], &product);
  }
  return fits ? VYRE_OK : grid_too_large(pipeline, out, st);
}
