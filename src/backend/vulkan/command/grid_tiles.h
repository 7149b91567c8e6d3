/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tiles: the grid of a launch as a sequence of vkCmdDispatch calls. */
#ifndef VYRE_BACKEND_VULKAN_COMMAND_GRID_TILES_H
#define VYRE_BACKEND_VULKAN_COMMAND_GRID_TILES_H

#include "backend/vulkan/pipeline.h"

enum {
  VK_WINDOW_TILES = 256, /* max tiles of one submission */
  /* Max tiles of a kernel without grid barriers in one submission. Launches
   * with more tiles run in windows. */
  VK_FEW_TILES = 4
};

/* One vkCmdDispatch. */
typedef struct vk_tile {
  uint32_t phase;
  uint32_t base[3], groups[3];
  bool needs_barrier; /* before this tile */
} vk_tile;

/* Iterator over the tiles of a launch: the phases in the order of the host
 * schedule, each in tiles of at most `max` workgroups per axis. */
typedef struct vk_tile_walk {
  vyre__host_schedule schedule;
  uint32_t grid[3], max[3];
  uint32_t next[3]; /* first workgroup of the next tile */
  uint32_t size[3]; /* of the last tile */
  uint32_t phase;
  bool has_started; /* the first tile was returned */
  bool is_done;
} vk_tile_walk;

/* Starts a walk. @p values has room for vyre__host_schedule_size numbers. */
vk_tile_walk vk_tile_walk_begin(const vk_pipeline *pipeline,
                                const vyre__launch *launch, uint64_t *values);
/* Returns the next tile, of at most @p groups workgroups and at least one. Call
 * only while the walk is not done. schedule.values holds the loop values of the
 * tile until vk_tile_walk_advance. */
void vk_tile_walk_next(vk_tile_walk *walk, uint64_t groups, vk_tile *out);
void vk_tile_walk_advance(vk_tile_walk *walk);
/* Returns true if the last tile was the last one of its phase. */
bool vk_tile_walk_is_between_phases(const vk_tile_walk *walk);
/* Leaves loops that no invocation is in (vyre__host_schedule_leave). */
void vk_tile_walk_leave_loops(vk_tile_walk *walk);
/* Returns the number of tiles of one phase over @p grid. */
uint64_t vk_tile_count(const uint32_t grid[3], const uint32_t limit[3]);

#endif
