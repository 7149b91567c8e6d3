// SPDX-License-Identifier: MIT OR Apache-2.0
// nine points from a tile in shared memory, as in SHOC
#define B (16u)
#define W (B + 2)

kernel __attribute__((reqd_work_group_size(B, B, 1))) void stencil2d(
    global const float *from, global float *to, uint pitch, float middle,
    float side, float corner) {
  local float tile[W * W];
  const uint tx = (uint)get_local_id(0);
  const uint ty = (uint)get_local_id(1);
  const uint x = (uint)get_global_id(0) + 1;
  const uint y = (uint)get_global_id(1) + 1;
  const uint i = y * pitch + x;
  const uint at = (ty + 1) * W + tx + 1;
  tile[at] = from[i];
  if (ty == 0) tile[at - W] = from[i - pitch];
  if (ty == B - 1) tile[at + W] = from[i + pitch];
  if (tx == 0) tile[at - 1] = from[i - 1];
  if (tx == B - 1) tile[at + 1] = from[i + 1];
  if (tx == 0 && ty == 0) tile[at - W - 1] = from[i - pitch - 1];
  if (tx == B - 1 && ty == 0) tile[at - W + 1] = from[i - pitch + 1];
  if (tx == 0 && ty == B - 1) tile[at + W - 1] = from[i + pitch - 1];
  if (tx == B - 1 && ty == B - 1) tile[at + W + 1] = from[i + pitch + 1];
  barrier(CLK_LOCAL_MEM_FENCE);
  const float sides = tile[at - W] + tile[at - 1] + tile[at + 1] + tile[at + W];
  const float corners =
      tile[at - W - 1] + tile[at - W + 1] + tile[at + W - 1] + tile[at + W + 1];
  to[i] = middle * tile[at] + side * sides + corner * corners;
}
