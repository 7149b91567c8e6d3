// SPDX-License-Identifier: MIT OR Apache-2.0
#define B (16)
kernel __attribute__((reqd_work_group_size(16, 16, 1))) void hotspot(
    global const float *power, global const float *src, global float *dst,
    int iterations, int cols, int rows, int border, float step_div_cap,
    float rx, float ry, float rz) {
  local float t[256];
  local float p[256];
  local float tn[256];
  const int small = B - iterations * 2;
  const int tx = (int)((uint)get_local_id(0));
  const int ty = (int)((uint)get_local_id(1));
  const int bx = small * (int)((uint)get_group_id(0)) - border;
  const int by = small * (int)((uint)get_group_id(1)) - border;
  const int x = bx + tx;
  const int y = by + ty;
  const int me = ty * B + tx;
  const int index = cols * y + x;
  const bool inside = x >= 0 && x < cols && y >= 0 && y < rows;
  if (inside) {
    t[me] = src[index];
    p[me] = power[index];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int xmin = max(0, -bx);
  const int xmax = min(B - 1, cols - 1 - bx);
  const int ymin = max(0, -by);
  const int ymax = min(B - 1, rows - 1 - by);
  const int n = max(ty - 1, ymin) * B + tx;
  const int s = min(ty + 1, ymax) * B + tx;
  const int w = ty * B + max(tx - 1, xmin);
  const int e = ty * B + min(tx + 1, xmax);
  bool computed = false;
  for (int i = 0; i < iterations; i++) {
    computed = tx >= i + 1 && tx <= B - i - 2 && ty >= i + 1 &&
               ty <= B - i - 2 && inside;
    if (computed) {
      const float c = t[me];
      tn[me] =
          c + step_div_cap * (p[me] + (t[s] + t[n] - 2.0f * c) * ry +
                              (t[e] + t[w] - 2.0f * c) * rx + (80.0f - c) * rz);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i == iterations - 1) break;
    if (computed) t[me] = tn[me];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (computed) dst[index] = tn[me];
}
