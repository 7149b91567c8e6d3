// SPDX-License-Identifier: MIT OR Apache-2.0
// Haar wavelets of blocks, all levels in shared memory, as in the CUDA samples
#define T (256u)
#define N (2 * T)

kernel __attribute__((reqd_work_group_size(T, 1, 1))) void haar(
    global const float *signal, global float *detail) {
  local float s[N];
  const uint t = (uint)get_local_id(0);
  const uint base = (uint)get_group_id(0) * N;
  s[t] = signal[base + t];
  s[t + T] = signal[base + t + T];
  barrier(CLK_LOCAL_MEM_FENCE);
  uint active = T;
  while (active > 0) {
    float low = 0.0f;
    if (t < active) {
      const float a = s[2 * t];
      const float b = s[2 * t + 1];
      low = (a + b) * 0.70710678f;
      detail[base + active + t] = (a - b) * 0.70710678f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < active) s[t] = low;
    barrier(CLK_LOCAL_MEM_FENCE);
    active /= 2;
  }
  if (t == 0) detail[base] = s[0];
}
