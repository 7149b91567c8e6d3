// SPDX-License-Identifier: MIT OR Apache-2.0
// sum with a loop over the grid and a tree in shared memory, as in the CUDA samples
#define T (256u)

kernel __attribute__((reqd_work_group_size(T, 1, 1))) void reduction(
    global const float *data, global float *sums, uint count) {
  local float part[T];
  const uint t = (uint)get_local_id(0);
  float sum = 0.0f;
  uint i = (uint)get_group_id(0) * T * 2 + t;
  while (i < count) {
    sum += data[i];
    if (i + T < count) sum += data[i + T];
    i += T * 2 * (uint)get_num_groups(0);
  }
  part[t] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (t < 128) part[t] += part[t + 128];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (t < 64) part[t] += part[t + 64];
  barrier(CLK_LOCAL_MEM_FENCE);
  uint active = 32u;
  while (active > 0) {
    if (t < active) part[t] += part[t + active];
    barrier(CLK_LOCAL_MEM_FENCE);
    active /= 2;
  }
  if (t == 0) sums[(uint)get_group_id(0)] = part[0];
}
