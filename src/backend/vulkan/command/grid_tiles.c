/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A launch as the dispatches that the device takes: not more workgroups on an axis
 * than it can count, and not more at once than the caller wants. Ids do not change:
 * the launch block says where a dispatch begins in the grid. */
#include "backend/vulkan/vulkan.h"

vk_tiles vk_tiles_begin(const vk_pipeline *pipeline, const vyre__launch *launch,
                        uint64_t *values) {
  const vk_device *device = (const vk_device *)pipeline->base.device;
  const uint32_t *limit =
      device->physical->properties.limits.maxComputeWorkGroupCount;
  vk_tiles tiles = {
      .walk = vyre__host_schedule_begin(&pipeline->plan.base, launch, values)};
  for (int i = 0; i < 3; i++) {
    tiles.grid[i] = launch->grid[i];
    tiles.most[i] = limit[i] < launch->grid[i] ? limit[i] : launch->grid[i];
  }
  tiles.is_over = !vyre__host_schedule_next(&tiles.walk, &tiles.phase);
  return tiles;
}

static uint32_t least(uint64_t a, uint64_t b) {
  return (uint32_t)(a < b ? a : b);
}

/* Rows of x as long as they may be, then as many rows, then as many planes; what is
 * less than a whole row or plane goes alone, so that tiles stay boxes. */
static void cut(const vk_tiles *t, uint64_t groups, uint32_t size[3]) {
  uint32_t left[3];
  for (int i = 0; i < 3; i++) left[i] = t->grid[i] - t->at[i];
  size[0] = least(least(left[0], t->most[0]), groups);
  size[1] = size[2] = 1;
  if (size[0] < t->grid[0] || size[0] == 0) return;
  size[1] = least(least(left[1], t->most[1]), groups / size[0]);
  if (size[1] == 0) size[1] = 1;
  if (size[1] < t->grid[1]) return;
  uint64_t plane = (uint64_t)size[0] * size[1];
  size[2] = least(least(left[2], t->most[2]), groups / plane);
  if (size[2] == 0) size[2] = 1;
}

/* As many as cut() makes of a grid, if nobody wants fewer at once: where an axis is
 * cut, those behind it go one by one. */
uint64_t vk_tiles_count(const uint32_t grid[3], const uint32_t limit[3]) {
  uint64_t parts[3];
  for (int i = 0; i < 3; i++) {
    parts[i] = (grid[i] + (uint64_t)limit[i] - 1) / limit[i];
    if (parts[i] == 0) parts[i] = 1;
  }
  uint64_t rows = parts[0] > 1 ? grid[1] : parts[1];
  uint64_t planes = parts[0] > 1 || parts[1] > 1 ? grid[2] : parts[2];
  if (rows > 0 && planes > UINT64_MAX / rows) return UINT64_MAX;
  rows *= planes;
  return rows > UINT64_MAX / parts[0] ? UINT64_MAX : rows * parts[0];
}

/* To the first workgroup that is not behind us. */
static bool advance(vk_tiles *t) {
  for (int i = 0; i < 3; i++) {
    t->at[i] += t->last[i];
    if (t->at[i] < t->grid[i]) return true;
    t->at[i] = 0;
  }
  return false;
}

/* Parts of one phase need no order; but one may write what another reads beside it,
 * and whoever looks at whole buffers, as the validation layer does, would see a race. */
void vk_tiles_next(vk_tiles *t, uint64_t groups, vk_part *out) {
  *out = (vk_part){.phase = t->phase, .needs_barrier = t->has_begun};
  for (int i = 0; i < 3; i++) out->base[i] = t->at[i];
  cut(t, groups > 0 ? groups : 1, out->groups);
  for (int i = 0; i < 3; i++) t->last[i] = out->groups[i];
  t->has_begun = true;
}

void vk_tiles_advance(vk_tiles *t) {
  if (advance(t)) return;
  t->is_over = !vyre__host_schedule_next(&t->walk, &t->phase);
}
