// SPDX-License-Identifier: MIT OR Apache-2.0
kernel __attribute__((reqd_work_group_size(256, 1, 1))) void spmv_scalar(
    global const float *val, global const int *col, global const int *start,
    global const float *x, global float *y, uint rows) {
  const uint r = (uint)get_global_id(0);
  if (r >= rows) return;
  float sum = 0.0f;
  for (int j = start[r]; j < start[r + 1]; j++) sum += val[j] * x[col[j]];
  y[r] = sum;
}

// one row for each 32 invocations; no shuffles in the language: shared
kernel __attribute__((reqd_work_group_size(128, 1, 1))) void spmv_vector(
    global const float *val, global const int *col, global const int *start,
    global const float *x, global float *y, uint rows) {
  local float part[128];
  const uint t = (uint)get_local_id(0);
  const uint lane = t % 32;
  const uint r = (uint)get_group_id(0) * 4 + t / 32;
  float sum = 0.0f;
  if (r < rows) {
    const int end = start[r + 1];
    for (int j = start[r] + (int)(lane); j < end; j += 32)
      sum += val[j] * x[col[j]];
  }
  part[t] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  uint half_size = 16u;
  while (half_size > 0) {
    if (lane < half_size) part[t] += part[t + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
    half_size /= 2;
  }
  if (lane == 0 && r < rows) y[r] = part[t];
}
