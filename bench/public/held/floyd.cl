// SPDX-License-Identifier: MIT OR Apache-2.0
// all shortest paths: one step a launch
kernel __attribute__((reqd_work_group_size(16, 16, 1))) void floyd(
    global int *dist, uint n, uint k) {
  const uint j = (uint)get_global_id(0);
  const uint i = (uint)get_global_id(1);
  if (i >= n || j >= n) return;
  const int through = dist[i * n + k] + dist[k * n + j];
  if (through < dist[i * n + j]) dist[i * n + j] = through;
}
