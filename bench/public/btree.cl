// SPDX-License-Identifier: MIT OR Apache-2.0
#define ORDER  (256u)
#define STRIDE (2 * (ORDER + 1))  // of a node: indices, then keys
kernel __attribute__((reqd_work_group_size(ORDER, 1, 1))) void find_k(
    global const int *nodes, global const int *records, global const int *keys,
    global int *answers, uint height, uint node_count) {
  local int current[1];
  local int next[1];
  const uint t = (uint)get_local_id(0);
  const int key = keys[(uint)get_group_id(0)];
  if (t == 0) current[0] = next[0] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint level = 0u; level < height; level++) {
    const uint node = (uint)(current[0]) * STRIDE;
    if (nodes[node + ORDER + 1 + t] <= key &&
        nodes[node + ORDER + 2 + t] > key) {
      const int child = nodes[node + t];
      if (child < (int)(node_count)) next[0] = child;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t == 0) current[0] = next[0];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const uint leaf = (uint)(current[0]) * STRIDE;
  if (nodes[leaf + ORDER + 1 + t] == key)
    answers[(uint)get_group_id(0)] = records[nodes[leaf + t]];
}
