// SPDX-License-Identifier: MIT OR Apache-2.0
// Sobol numbers in the order of the Gray code, as in the CUDA samples
#define T      (64u)
#define ctz(x) (31 - clz((x) & -(x)))

kernel __attribute__((reqd_work_group_size(T, 1, 1))) void sobol(
    global const uint *directions, global float *numbers, uint count) {
  local uint v[32];
  if ((uint)get_local_id(0) < 32)
    v[(uint)get_local_id(0)] =
        directions[(uint)get_group_id(1) * 32 + (uint)get_local_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint first = (uint)get_group_id(0) * T + (uint)get_local_id(0);
  const uint stride = (uint)get_num_groups(0) * T;
  const uint out = (uint)get_group_id(1) * count;
  uint x = 0u;
  uint gray = first ^ first >> 1;
  for (uint k = 0u; k < ctz(stride); k++) {
    x ^= (gray & 1) * v[k];
    gray >>= 1;
    if (gray == 0) break;
  }
  if (first < count) numbers[out + first] = (float)x * 2.3283064e-10f;
  const uint mask = v[ctz(stride) - 1];
  uint i = first + stride;
  while (i < count) {
    x ^= mask ^ v[ctz(~(i - stride | stride - 1))];
    numbers[out + i] = (float)x * 2.3283064e-10f;
    i += stride;
  }
}
