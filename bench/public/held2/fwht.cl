// SPDX-License-Identifier: MIT OR Apache-2.0
// fast Walsh transform with radix 4, as in the CUDA samples
#define T (256u)
#define N (4 * T)

kernel __attribute__((reqd_work_group_size(T, 1, 1))) void fwht_shared(
    global float *data) {
  local float s[N];
  const uint t = (uint)get_local_id(0);
  const uint base = (uint)get_group_id(0) * N;
  for (uint i = t; i < N; i += T) s[i] = data[base + i];
  uint stride = N / 4;
  while (stride > 0) {
    const uint low = t & (stride - 1);
    const uint i0 = (t - low) * 4 + low;
    const uint i1 = i0 + stride;
    const uint i2 = i1 + stride;
    const uint i3 = i2 + stride;
    barrier(CLK_LOCAL_MEM_FENCE);
    const float d0 = s[i0];
    const float d1 = s[i1];
    const float d2 = s[i2];
    const float d3 = s[i3];
    const float a0 = d0 + d2;
    const float a1 = d1 + d3;
    const float a2 = d0 - d2;
    const float a3 = d1 - d3;
    s[i0] = a0 + a1;
    s[i1] = a0 - a1;
    s[i2] = a2 + a3;
    s[i3] = a2 - a3;
    stride >>= 2;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint i = t; i < N; i += T) data[base + i] = s[i];
}

kernel __attribute__((reqd_work_group_size(T, 1, 1))) void fwht_step(
    global float *data, uint stride) {
  const uint t = (uint)get_global_id(0);
  const uint low = t & (stride - 1);
  const uint i0 = (t - low) * 4 + low;
  const uint i1 = i0 + stride;
  const uint i2 = i1 + stride;
  const uint i3 = i2 + stride;
  const float d0 = data[i0];
  const float d1 = data[i1];
  const float d2 = data[i2];
  const float d3 = data[i3];
  const float a0 = d0 + d2;
  const float a1 = d1 + d3;
  const float a2 = d0 - d2;
  const float a3 = d1 - d3;
  data[i0] = a0 + a1;
  data[i1] = a0 - a1;
  data[i2] = a2 + a3;
  data[i3] = a2 - a3;
}
