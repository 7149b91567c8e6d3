/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Splits the grid of a launch into vkCmdDispatch calls. A tile has at most as
 * many workgroups per axis as the device allows, and in total at most as many
 * as the caller asks for. Ids are unaffected: the launch block holds the first
 * workgroup of the tile. */
#include "backend/vulkan/command/grid_tiles.h"

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

/* Chooses the size of a tile: the longest possible row, then rows, then planes.
 * A partial row or plane is a tile of its own, so that tiles stay boxes. */
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

/* Counts the tiles that choose_size makes if only the limit per axis applies.
 * After an axis that is split, tiles have a size of 1 on later axes. */
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

/* Moves to the first workgroup of the next tile. Returns false at the end of
 * the phase. */
static bool step(vk_tile_walk *walk) {
  for (int i = 0; i < 3; i++) {
    walk->next[i] += walk->size[i];
    if (walk->next[i] < walk->grid[i]) return true;
    walk->next[i] = 0;
  }
  return false;
}

/* Tiles of a phase are unordered. The barrier is for tools that track full
 * buffers, such as the validation layer: one tile may read next to what another
 * writes. */
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

bool vk_tile_walk_is_between_phases(const vk_tile_walk *walk) {
  return (walk->next[0] | walk->next[1] | walk->next[2]) == 0;
}

void vk_tile_walk_leave_loops(vk_tile_walk *walk) {
  if (vyre__host_schedule_leave(&walk->schedule))
    walk->is_done = !vyre__host_schedule_next(&walk->schedule, &walk->phase);
}
