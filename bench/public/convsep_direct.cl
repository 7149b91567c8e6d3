// SPDX-License-Identifier: MIT OR Apache-2.0
kernel __attribute__((reqd_work_group_size(64, 4, 1))) void conv_rows_direct(
    global const float *src, global float *dst, global const float *coeff,
    uint width, uint height) {
  const uint x = (uint)get_global_id(0);
  const uint y = (uint)get_global_id(1);
  if (x >= width || y >= height) return;
  float sum = 0.0f;
  for (int j = -8; j <= 8; j++) {
    const int at = (int)(x) + j;
    if (at >= 0 && at < (int)(width))
      sum += coeff[8 - j] * src[y * width + (uint)(at)];
  }
  dst[y * width + x] = sum;
}

kernel __attribute__((reqd_work_group_size(64, 4, 1))) void conv_cols_direct(
    global const float *src, global float *dst, global const float *coeff,
    uint width, uint height) {
  const uint x = (uint)get_global_id(0);
  const uint y = (uint)get_global_id(1);
  if (x >= width || y >= height) return;
  float sum = 0.0f;
  for (int j = -8; j <= 8; j++) {
    const int at = (int)(y) + j;
    if (at >= 0 && at < (int)(height))
      sum += coeff[8 - j] * src[(uint)(at)*width + x];
  }
  dst[y * width + x] = sum;
}
