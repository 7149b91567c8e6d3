// SPDX-License-Identifier: MIT OR Apache-2.0
// PageRank by pulling along the edges that arrive
kernel __attribute__((reqd_work_group_size(256, 1, 1))) void contribute(
    global const float *rank, global const uint *degree, global float *share,
    uint nodes) {
  const uint i = (uint)get_global_id(0);
  if (i >= nodes) return;
  share[i] = rank[i] / (float)(max(degree[i], 1u));
}

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void pull(
    global const uint *starts, global const uint *sources,
    global const float *share, global float *rank, uint nodes, float base,
    float damping) {
  const uint i = (uint)get_global_id(0);
  if (i >= nodes) return;
  float sum = 0.0f;
  for (uint e = starts[i]; e < starts[i + 1]; e++) sum += share[sources[e]];
  rank[i] = base + damping * sum;
}
