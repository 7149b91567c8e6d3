// SPDX-License-Identifier: MIT OR Apache-2.0
// smooths an image but keeps its edges
#define R (3)

kernel __attribute__((reqd_work_group_size(16, 16, 1))) void bilateral(
    global const float *src, global float *dst, global const float *gauss,
    int width, int height, float scale) {
  const int x = (int)((uint)get_global_id(0));
  const int y = (int)((uint)get_global_id(1));
  if (x >= width || y >= height) return;
  const float centre = src[y * width + x];
  float sum = 0.0f;
  float weights = 0.0f;
  for (int dy = -R; dy <= R; dy++) {
    const int cy = min(max(y + dy, 0), height - 1);
    for (int dx = -R; dx <= R; dx++) {
      const int cx = min(max(x + dx, 0), width - 1);
      const float value = src[cy * width + cx];
      const float diff = value - centre;
      const float weight =
          gauss[dy + R] * gauss[dx + R] * exp(-(diff * diff) * scale);
      sum += weight * value;
      weights += weight;
    }
  }
  dst[y * width + x] = sum / weights;
}
