/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/attributes.h"
#include "base/checked_math.h"
#include "base/status.h"
#include "ir/ir.h"
#include "runtime/runtime.h"

/* Ids of one axis: they have 32 bits. */
static const uint64_t most_ids = UINT64_C(1) << 32;

/* Elements that the grid covers: those of over(...), else of the largest binding
 * that is neither uniform nor shared. */
static uint32_t covered(const vyre_pipeline *pipeline,
                        const vyre__view *views) {
  const vyre__binding_info *p = pipeline->state->ports;
  uint32_t most = 0;
  for (size_t i = 0; i < pipeline->plan.binding_count; i++, p++) {
    uint32_t length = views[p->buffer].length;
    if (p->is_covered && length > most) most = length;
  }
  return most;
}

/* Most sizes are powers of two, and a division takes as long as ten sums. */
static uint32_t groups_of(uint32_t count, uint32_t size) {
  uint32_t mask = size - 1;
  if ((size & mask) == 0) {
    return (count >> __builtin_ctz(size)) + ((count & mask) != 0);
  }
  return count / size + (count % size != 0);
}

VYRE__RARE
static vyre_code too_large(const vyre_pipeline *pipeline, const uint32_t *grid,
                           vyre_status *st) {
  for (int axis = 0; axis < 3; axis++) {
    if ((uint64_t)grid[axis] * pipeline->workgroup[axis] <= most_ids) continue;
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_TOO_LARGE, NULL,
        VYRE_NUMBERS({"grid", grid[axis]},
                     {"workgroup", pipeline->workgroup[axis]}),
        "split the work: an id has 32 bits",
        "%u workgroups of %u invocations on axis %c: ids would not fit in 32 "
        "bits",
        grid[axis], pipeline->workgroup[axis], "xyz"[axis]);
  }
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_TOO_LARGE, NULL,
      VYRE_NUMBERS({"grid", grid[2]}, {"workgroup", pipeline->workgroup[2]}),
      "split the work",
      "a grid of %u x %u x %u has more than 2^64-1 workgroups", grid[0],
      grid[1], grid[2]);
}

VYRE__RARE
static vyre_code not_given(const vyre_pipeline *pipeline, vyre_status *st) {
  const uint32_t *size = pipeline->workgroup;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_REQUIRED, NULL,
      VYRE_NUMBERS({"workgroup_x", size[0]}, {"workgroup_y", size[1]},
                   {"workgroup_z", size[2]}),
      "set the grid of the dispatch: on each axis, the extent of the data "
      "divided by the workgroup's, rounded up",
      "kernel '%.60s' has workgroups of %u x %u x %u and was given no grid; "
      "one can be inferred only along x",
      pipeline->program->name, size[0], size[1], size[2]);
}

vyre_code vyre__grid_check_given(const vyre_pipeline *pipeline,
                                 const uint32_t grid[3], vyre_status *st) {
  const uint32_t *size = pipeline->workgroup;
  bool is_given = (grid[0] | grid[1] | grid[2]) != 0;
  if (is_given || (size[1] | size[2]) == 1) return VYRE_OK;
  return not_given(pipeline, st);
}

vyre_code vyre__grid_infer(const vyre_pipeline *pipeline,
                           const uint32_t override[3], const vyre__view *views,
                           uint32_t out[3], vyre_status *st) {
  const uint32_t *size = pipeline->workgroup; /* no axis is 0 */
  if (!(override[0] | override[1] | override[2])) {
    VYRE_TRY(vyre__grid_check_given(pipeline, override, st));
    uint32_t count = covered(pipeline, views);
    uint32_t groups = groups_of(count, size[0]);
    out[0] = groups > 1 ? groups : 1;
    out[1] = out[2] = 1;
    bool has_ids = (uint64_t)out[0] * size[0] <= most_ids;
    return has_ids ? VYRE_OK : too_large(pipeline, out, st);
  }
  uint64_t product = 1;
  bool fits = true;
  for (int axis = 0; axis < 3; axis++) {
    out[axis] = override[axis] ? override[axis] : 1;
    fits = fits && (uint64_t)out[axis] * size[axis] <= most_ids &&
           vyre__mul_u64(product, out[axis], &product);
  }
  return fits ? VYRE_OK : too_large(pipeline, out, st);
}
