// SPDX-License-Identifier: MIT OR Apache-2.0
// gain of opening a new centre, as in Rodinia
#define MOST (64u)  // dimensions

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void pgain(
    global const float *coord, global const float *weight,
    global const float *cost, global const uint *assigned,
    global const uint *centre_table, global uchar *switched,
    global float *gains, uint points, uint dims, uint centres, uint candidate) {
  local float centre[MOST];
  const uint i = (uint)get_global_id(0);
  if ((uint)get_local_id(0) < dims)
    centre[(uint)get_local_id(0)] =
        coord[(uint)get_local_id(0) * points + candidate];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i >= points) return;
  float distance = 0.0f;
  for (uint d = 0u; d < dims; d++) {
    const float diff = coord[d * points + i] - centre[d];
    distance += diff * diff;
  }
  const float new_cost = distance * weight[i];
  const uint base = i * (centres + 1);
  if (new_cost < cost[i]) {
    switched[i] = 1;
    gains[base + centres] += new_cost - cost[i];
  } else {
    switched[i] = 0;
    gains[base + centre_table[assigned[i]]] += cost[i] - new_cost;
  }
}
