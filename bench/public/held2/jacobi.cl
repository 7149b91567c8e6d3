// SPDX-License-Identifier: MIT OR Apache-2.0
// a step of Jacobi for Poisson's equation and the change of each tile, as in HeCBench
#define B (16u)

kernel __attribute__((reqd_work_group_size(B, B, 1))) void jacobi(
    global const float *from, global const float *source, global float *to,
    global float *change, uint n) {
  local float part[B * B];
  const uint t = (uint)get_local_id(1) * B + (uint)get_local_id(0);
  const uint x = (uint)get_global_id(0);
  const uint y = (uint)get_global_id(1);
  const uint i = y * n + x;
  float square = 0.0f;
  if (x >= 1 && x < n - 1 && y >= 1 && y < n - 1) {
    const float sum = from[i - 1] + from[i + 1] + from[i - n] + from[i + n];
    const float next = 0.25f * (sum - source[i]);
    const float diff = next - from[i];
    square = diff * diff;
    to[i] = next;
  } else if (x < n && y < n) {
    to[i] = from[i];
  }
  part[t] = square;
  barrier(CLK_LOCAL_MEM_FENCE);
  uint active = B * B / 2;
  while (active > 0) {
    if (t < active) part[t] += part[t + active];
    barrier(CLK_LOCAL_MEM_FENCE);
    active /= 2;
  }
  if (t == 0)
    change[(uint)get_group_id(1) * (uint)get_num_groups(0) +
           (uint)get_group_id(0)] = part[0];
}
