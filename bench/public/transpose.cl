// SPDX-License-Identifier: MIT OR Apache-2.0
#define T (16u)
kernel __attribute__((reqd_work_group_size(T, T, 1))) void transpose(
    global const float *x, global float *y, uint width, uint height) {
  local float tile[T * (T + 1)];
  const uint x0 = (uint)get_group_id(0) * T;
  const uint y0 = (uint)get_group_id(1) * T;
  if (x0 + (uint)get_local_id(0) < width &&
      y0 + (uint)get_local_id(1) < height) {
    tile[(uint)get_local_id(1) * (T + 1) + (uint)get_local_id(0)] =
        x[(y0 + (uint)get_local_id(1)) * width + x0 + (uint)get_local_id(0)];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (y0 + (uint)get_local_id(0) < height &&
      x0 + (uint)get_local_id(1) < width) {
    y[(x0 + (uint)get_local_id(1)) * height + y0 + (uint)get_local_id(0)] =
        tile[(uint)get_local_id(0) * (T + 1) + (uint)get_local_id(1)];
  }
}
