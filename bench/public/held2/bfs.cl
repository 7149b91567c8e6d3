// SPDX-License-Identifier: MIT OR Apache-2.0
// breadth-first search by levels with masks, as in Rodinia
kernel __attribute__((reqd_work_group_size(256, 1, 1))) void bfs_visit(
    global const uint *starts, global const uint *edges, global uchar *mask,
    global uchar *updating, global const uchar *visited, global uint *cost,
    uint nodes) {
  const uint i = (uint)get_global_id(0);
  if (i < nodes && mask[i] != 0) {
    mask[i] = 0;
    const uint last = starts[i + 1];
    for (uint e = starts[i]; e < last; e++) {
      const uint id = edges[e];
      if (visited[id] == 0) {
        cost[id] = cost[i] + 1;
        updating[id] = 1;
      }
    }
  }
}

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void bfs_update(
    global uchar *mask, global uchar *updating, global uchar *visited,
    global uint *over, uint nodes) {
  const uint i = (uint)get_global_id(0);
  if (i < nodes && updating[i] != 0) {
    mask[i] = 1;
    visited[i] = 1;
    over[0] = 1;
    updating[i] = 0;
  }
}
