// SPDX-License-Identifier: MIT OR Apache-2.0
// one pass of 4 bits: count, scan, scatter
#define T (256u)
kernel __attribute__((reqd_work_group_size(T, 1, 1))) void radix_count(
    global const uint *keys, global uint *sums, uint per_group, uint shift) {
  local uint h[16];
  if ((uint)get_local_id(0) < 16) h[(uint)get_local_id(0)] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint first = (uint)get_group_id(0) * per_group;
  for (uint i = first + (uint)get_local_id(0); i < first + per_group; i += T)
    atomic_add(&h[(keys[i] >> shift) & 15], 1);
  barrier(CLK_LOCAL_MEM_FENCE);
  if ((uint)get_local_id(0) < 16)
    sums[(uint)get_local_id(0) * (uint)get_num_groups(0) +
         (uint)get_group_id(0)] = h[(uint)get_local_id(0)];
}

kernel __attribute__((reqd_work_group_size(T, 1, 1))) void radix_scan(
    global uint *sums, uint length) {
  local uint a[T];
  local uint seed[1];
  const uint t = (uint)get_local_id(0);
  if (t == 0) seed[0] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint base = 0u; base < length; base += T) {
    const uint mine = sums[base + t];
    a[t] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint d = 1u;
    while (d < T) {
      uint add = 0u;
      if (t >= d) add = a[t - d];
      barrier(CLK_LOCAL_MEM_FENCE);
      a[t] += add;
      barrier(CLK_LOCAL_MEM_FENCE);
      d *= 2;
    }
    const uint before = seed[0];
    sums[base + t] = before + a[t] - mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t == 0) seed[0] = before + a[T - 1];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

kernel __attribute__((reqd_work_group_size(T, 1, 1))) void radix_scatter(
    global const uint *keys, global const uint *vals, global uint *keys_out,
    global uint *vals_out, global const uint *sums, uint per_group,
    uint shift) {
  local uint count[16 * T];
  local uint total[T];
  local uint start[16];
  local uint first_of[16];
  const uint t = (uint)get_local_id(0);
  const uint first = (uint)get_group_id(0) * per_group;
  if (t < 16)
    start[t] = sums[t * (uint)get_num_groups(0) + (uint)get_group_id(0)];
  for (uint base = first; base < first + per_group; base += 4 * T) {
    for (uint d = 0u; d < 16; d++) count[d * T + t] = 0;
    const uint at = base + 4 * t;
    const uint k0 = keys[at];
    const uint k1 = keys[at + 1];
    const uint k2 = keys[at + 2];
    const uint k3 = keys[at + 3];
    const uint d0 = ((k0 >> shift) & 15) * T + t;
    const uint d1 = ((k1 >> shift) & 15) * T + t;
    const uint d2 = ((k2 >> shift) & 15) * T + t;
    const uint d3 = ((k3 >> shift) & 15) * T + t;
    const uint r0 = count[d0];
    count[d0] = r0 + 1;
    const uint r1 = count[d1];
    count[d1] = r1 + 1;
    const uint r2 = count[d2];
    count[d2] = r2 + 1;
    const uint r3 = count[d3];
    count[d3] = r3 + 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    // exclusive scan of all 16 * T counts: 16 in a row each
    uint sum = 0u;
    for (uint q = 0u; q < 16; q++) {
      const uint c = count[t * 16 + q];
      count[t * 16 + q] = sum;
      sum += c;
    }
    total[t] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint d = 1u;
    while (d < T) {
      uint add = 0u;
      if (t >= d) add = total[t - d];
      barrier(CLK_LOCAL_MEM_FENCE);
      total[t] += add;
      barrier(CLK_LOCAL_MEM_FENCE);
      d *= 2;
    }
    const uint mine = total[t] - sum;
    for (uint q = 0u; q < 16; q++) count[t * 16 + q] += mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < 16) first_of[t] = count[t * T];
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint e0 = d0 / T;
    const uint e1 = d1 / T;
    const uint e2 = d2 / T;
    const uint e3 = d3 / T;
    const uint p0 = start[e0] + count[d0] + r0 - first_of[e0];
    const uint p1 = start[e1] + count[d1] + r1 - first_of[e1];
    const uint p2 = start[e2] + count[d2] + r2 - first_of[e2];
    const uint p3 = start[e3] + count[d3] + r3 - first_of[e3];
    keys_out[p0] = k0;
    keys_out[p1] = k1;
    keys_out[p2] = k2;
    keys_out[p3] = k3;
    vals_out[p0] = vals[at];
    vals_out[p1] = vals[at + 1];
    vals_out[p2] = vals[at + 2];
    vals_out[p3] = vals[at + 3];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < 16) {
      uint next = 4 * T;
      if (t < 15) next = first_of[t + 1];
      start[t] += next - first_of[t];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
