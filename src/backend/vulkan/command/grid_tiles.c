/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A launch as the dispatches that the device takes: not more workgroups on an axis
 * than it can count, and not more at once than the caller wants. Ids do not change:
 * the launch block says where a dispatch begins in the grid. */
#include "backend/vulkan/command/grid_tiles.h"

#include "backend/vulkan/device/device.h"
#include "backend/vulkan/pipeline.h"

vk_tile_walk vk_tile_walk_begin(const vk_pipeline *pipeline,
                                const vyre__launch *launch, uint64_t *values) {
  const vk_device *device = (const vk_device *)pipeline->base.device;
  const uint32_t *limit =
      device->physical->properties.limits.maxComputeWorkGroupCount;
  vk_tile_walk walk = {.schedule = vyre__host_schedule_begin(
                           &pipeline->plan.base, launch, values)};
  for (int i = 0; i < 3; i++) {
    walk.grid[i] = launch->grid[i];
    walk.max[i] = limit[i] < launch->grid[i] ? limit[i] : launch->grid[i];
  }
  walk.is_done = !vyre__host_schedule_next(&walk.schedule, &walk.phase);
  return walk;
}

static uint32_t min(uint64_t a, uint64_t b) {
  return (uint32_t)(a < b ? a : b);
}

/* Rows of x as long as they may be, then as many rows, then as many planes; what is
 * less than a whole row or plane goes alone, so that tiles stay boxes. */
static void choose_size(const vk_tile_walk *walk, uint64_t groups,
                        uint32_t size[3]) {
  uint32_t left[3];
  for (int i = 0; i < 3; i++) left[i] = walk->grid[i] - walk->next[i];
  size[0] = min(min(left[0], walk->max[0]), groups);
  size[1] = size[2] = 1;
  if (size[0] < walk->grid[0] || size[0] == 0) return;
  size[1] = min(min(left[1], walk->max[1]), groups / size[0]);
  if (size[1] == 0) size[1] = 1;
  if (size[1] < walk->grid[1]) return;
  uint64_t plane = (uint64_t)size[0] * size[1];
  size[2] = min(min(left[2], walk->max[2]), groups / plane);
  if (size[2] == 0) size[2] = 1;
}

/* As many as cut() makes of a grid, if nobody wants fewer at once: where an axis is
 * cut, those behind it go one by one. */
uint64_t vk_tile_count(const uint32_t grid[3], const uint32_t limit[3]) {
  uint64_t tiles[3];
  for (int i = 0; i < 3; i++) {
    tiles[i] = (grid[i] + (uint64_t)limit[i] - 1) / limit[i];
    if (tiles[i] == 0) tiles[i] = 1;
  }
  uint64_t rows = tiles[0] > 1 ? grid[1] : tiles[1];
  uint64_t planes = tiles[0] > 1 || tiles[1] > 1 ? grid[2] : tiles[2];
  if (rows > 0 && planes > UINT64_MAX / rows) return UINT64_MAX;
  rows *= planes;
  return rows > UINT64_MAX / tiles[0] ? UINT64_MAX : rows * tiles[0];
}

/* To the first workgroup that is not behind us. */
static bool step(vk_tile_walk *walk) {
  for (int i = 0; i < 3; i++) {
    walk->next[i] += walk->size[i];
    if (walk->next[i] < walk->grid[i]) return true;
    walk->next[i] = 0;
  }
  return false;
}

/* Parts of one phase need no order; but one may write what another reads beside it,
 * and whoever looks at whole buffers, as the validation layer does, would see a race. */
void vk_tile_walk_next(vk_tile_walk *walk, uint64_t groups, vk_tile *out) {
  *out = (vk_tile){.phase = walk->phase, .needs_barrier = walk->has_started};
  for (int i = 0; i < 3; i++) out->base[i] = walk->next[i];
  choose_size(walk, groups > 0 ? groups : 1, out->groups);
  for (int i = 0; i < 3; i++) walk->size[i] = out->groups[i];
  walk->has_started = true;
}

void vk_tile_walk_advance(vk_tile_walk *walk) {
  if (step(walk)) return;
  walk->is_done = !vyre__host_schedule_next(&walk->schedule, &walk->phase);
}
