// SPDX-License-Identifier: MIT OR Apache-2.0
// as hotspot_direct; the inside apart from the border, rows from len()
float step(float c, float n, float s, float w, float e, float p, float k,
           float rx, float ry, float rz) {
  return c + k * (p + (s + n - 2.0f * c) * ry + (e + w - 2.0f * c) * rx +
                  (80.0f - c) * rz);
}

kernel __attribute__((reqd_work_group_size(64, 4, 1))) void hotspot_guard(
    global const float *power, global const float *src, global float *dst,
    uint cols, uint rows, float k, float rx, float ry, float rz) {
  const uint x = (uint)get_global_id(0);
  const uint y = (uint)get_global_id(1);
  const uint i = y * cols + x;
  if (x > 0 && x < cols - 1 && y > 0 && y < rows - 1) {
    dst[i] = step(src[i], src[i - cols], src[i + cols], src[i - 1], src[i + 1],
                  power[i], k, rx, ry, rz);
  } else if (x < cols && y < rows) {
    const uint up = max(y, 1u) - 1;
    const uint down = min(y + 1, rows - 1);
    const uint left = max(x, 1u) - 1;
    const uint right = min(x + 1, cols - 1);
    dst[i] = step(src[i], src[up * cols + x], src[down * cols + x],
                  src[y * cols + left], src[y * cols + right], power[i], k, rx,
                  ry, rz);
  }
}
