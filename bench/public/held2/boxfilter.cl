// SPDX-License-Identifier: MIT OR Apache-2.0
// sliding means: one invocation for a row or a column, as in the CUDA samples
kernel __attribute__((reqd_work_group_size(64, 1, 1))) void box_rows(
    global const float *from, global float *to, uint width, uint height,
    uint radius) {
  const uint y = (uint)get_global_id(0);
  if (y >= height) return;
  const uint row = y * width;
  const float scale = 1.0f / (float)(2 * radius + 1);
  float sum = from[row] * (float)radius;
  for (uint x = 0u; x < radius + 1; x++) sum += from[row + x];
  to[row] = sum * scale;
  for (uint x = 1u; x < width; x++) {
    sum += from[row + min(x + radius, width - 1)];
    sum -= from[row + max(x, radius + 1) - radius - 1];
    to[row + x] = sum * scale;
  }
}

kernel __attribute__((reqd_work_group_size(64, 1, 1))) void box_columns(
    global const float *from, global float *to, uint width, uint height,
    uint radius) {
  const uint x = (uint)get_global_id(0);
  if (x >= width) return;
  const float scale = 1.0f / (float)(2 * radius + 1);
  float sum = from[x] * (float)radius;
  for (uint y = 0u; y < radius + 1; y++) sum += from[y * width + x];
  to[x] = sum * scale;
  for (uint y = 1u; y < height; y++) {
    sum += from[min(y + radius, height - 1) * width + x];
    sum -= from[(max(y, radius + 1) - radius - 1) * width + x];
    to[y * width + x] = sum * scale;
  }
}
