// SPDX-License-Identifier: MIT OR Apache-2.0
kernel __attribute__((reqd_work_group_size(64, 4, 1))) void hotspot_direct(
    global const float *power, global const float *src, global float *dst,
    uint cols, uint rows, float step_div_cap, float rx, float ry, float rz) {
  const uint x = (uint)get_global_id(0);
  const uint y = (uint)get_global_id(1);
  if (x >= cols || y >= rows) return;
  const uint i = y * cols + x;
  const float c = src[i];
  const float n = src[(y == 0 ? i : i - cols)];
  const float s = src[(y == rows - 1 ? i : i + cols)];
  const float w = src[(x == 0 ? i : i - 1)];
  const float e = src[(x == cols - 1 ? i : i + 1)];
  dst[i] = c + step_div_cap * (power[i] + (s + n - 2.0f * c) * ry +
                               (e + w - 2.0f * c) * rx + (80.0f - c) * rz);
}
