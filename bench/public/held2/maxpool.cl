// SPDX-License-Identifier: MIT OR Apache-2.0
// largest of 3 x 3 with a step of 2, as in HeCBench
kernel __attribute__((reqd_work_group_size(16, 16, 1))) void maxpool(
    global const float *input, global float *pooled, uint width, uint height) {
  const uint x = (uint)get_global_id(0);
  const uint y = (uint)get_global_id(1);
  const uint image = (uint)get_group_id(2);
  const uint across = width / 2;
  const uint down = height / 2;
  if (x >= across || y >= down) return;
  float best = -INFINITY;
  for (uint dy = 0u; dy < 3; dy++) {
    for (uint dx = 0u; dx < 3; dx++) {
      const uint ix = x * 2 + dx;
      const uint iy = y * 2 + dy;
      if (ix < width && iy < height)
        best = max(best, input[(image * height + iy) * width + ix]);
    }
  }
  pooled[(image * down + y) * across + x] = best;
}
