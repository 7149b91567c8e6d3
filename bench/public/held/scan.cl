// SPDX-License-Identifier: MIT OR Apache-2.0
// exclusive scan of many elements: blocks, their sums, and both together
#define T (256u)

kernel __attribute__((reqd_work_group_size(T, 1, 1))) void scan_blocks(
    global const uint *data, global uint *result, global uint *sums) {
  local uint temp[2 * T];
  const uint t = (uint)get_local_id(0);
  const uint base = (uint)get_group_id(0) * 2 * T;
  temp[2 * t] = data[base + 2 * t];
  temp[2 * t + 1] = data[base + 2 * t + 1];
  uint offset = 1u;
  uint d = T;
  while (d > 0) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < d) {
      const uint a = offset * (2 * t + 1) - 1;
      const uint b = offset * (2 * t + 2) - 1;
      temp[b] += temp[a];
    }
    offset *= 2;
    d /= 2;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (t == 0) {
    sums[(uint)get_group_id(0)] = temp[2 * T - 1];
    temp[2 * T - 1] = 0;
  }
  d = 1;
  while (d <= T) {
    offset /= 2;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < d) {
      const uint a = offset * (2 * t + 1) - 1;
      const uint b = offset * (2 * t + 2) - 1;
      const uint old = temp[a];
      temp[a] = temp[b];
      temp[b] += old;
    }
    d *= 2;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  result[base + 2 * t] = temp[2 * t];
  result[base + 2 * t + 1] = temp[2 * t + 1];
}

// Hillis and Steele, in one workgroup
#define S (1024u)

kernel __attribute__((reqd_work_group_size(S, 1, 1))) void scan_sums(
    global uint *sums, uint count) {
  local uint temp[2 * S];
  const uint t = (uint)get_local_id(0);
  uint from = 0u;
  uint mine = 0u;
  if (t < count) mine = sums[t];
  temp[t] = mine;
  barrier(CLK_LOCAL_MEM_FENCE);
  uint d = 1u;
  while (d < S) {
    uint sum = temp[from + t];
    if (t >= d) sum += temp[from + t - d];
    from = S - from;
    temp[from + t] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    d *= 2;
  }
  if (t < count) sums[t] = temp[from + t] - mine;
}

kernel __attribute__((reqd_work_group_size(T, 1, 1))) void scan_add(
    global uint *result, global const uint *sums) {
  const uint base = (uint)get_group_id(0) * 2 * T + (uint)get_local_id(0);
  const uint add = sums[(uint)get_group_id(0)];
  result[base] += add;
  result[base + T] += add;
}
