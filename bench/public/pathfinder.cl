// SPDX-License-Identifier: MIT OR Apache-2.0
#define B (256)
kernel __attribute__((reqd_work_group_size(B, 1, 1))) void pathfinder(
    global const int *wall, global const int *src, global int *dst,
    int iterations, int cols, int start, int border) {
  local int prev[B];
  local int result[B];
  const int tx = (int)((uint)get_local_id(0));
  const int bx = (B - iterations * 2) * (int)((uint)get_group_id(0)) - border;
  const int x = bx + tx;
  const int xmin = max(0, -bx);
  const int xmax = min(B - 1, cols - 1 - bx);
  const int w = max(tx - 1, xmin);
  const int e = min(tx + 1, xmax);
  const bool valid = tx >= xmin && tx <= xmax;
  if (valid) prev[tx] = src[x];
  barrier(CLK_LOCAL_MEM_FENCE);
  bool computed = false;
  for (int i = 0; i < iterations; i++) {
    computed = tx >= i + 1 && tx <= B - i - 2 && valid;
    if (computed)
      result[tx] =
          min(min(prev[w], prev[tx]), prev[e]) + wall[cols * (start + i) + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i == iterations - 1) break;
    if (computed) prev[tx] = result[tx];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (computed) dst[x] = result[tx];
}
