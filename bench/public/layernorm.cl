// SPDX-License-Identifier: MIT OR Apache-2.0
kernel __attribute__((reqd_work_group_size(128, 1, 1))) void layernorm(
    global const float *x, global const float *gamma, global const float *beta,
    global float *y, uint width) {
  local float a[128];
  local float b[128];
  const uint t = (uint)get_local_id(0);
  const uint row = (uint)get_group_id(0) * width;
  float sum = 0.0f;
  float sq = 0.0f;
  for (uint i = t; i < width; i += 128) {
    const float v = x[row + i];
    sum += v;
    sq += v * v;
  }
  a[t] = sum;
  b[t] = sq;
  barrier(CLK_LOCAL_MEM_FENCE);
  uint half_size = 64u;
  while (half_size > 0) {
    if (t < half_size) {
      a[t] += a[t + half_size];
      b[t] += b[t + half_size];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    half_size /= 2;
  }
  const float mean = a[0] / (float)(width);
  const float scale = 1.0f / sqrt(b[0] / (float)(width)-mean * mean + 1e-5f);
  for (uint i = t; i < width; i += 128)
    y[row + i] = (x[row + i] - mean) * scale * gamma[i] + beta[i];
}
