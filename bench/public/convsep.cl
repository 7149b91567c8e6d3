// SPDX-License-Identifier: MIT OR Apache-2.0
#define R     (8u)
#define BX    (16u)
#define BY    (4u)
#define STEPS (8u)
#define HALO  (1u)
#define W     ((STEPS + 2 * HALO) * BX)
kernel __attribute__((reqd_work_group_size(BX, BY, 1))) void conv_rows(
    global const float *src, global float *dst, global const float *coeff,
    uint width, uint pitch) {
  local float t[BY * W];
  const uint tx = (uint)get_local_id(0);
  const uint row = (uint)get_local_id(1) * W;
  const int bx =
      (int)(((uint)get_group_id(0) * STEPS) * BX + tx) - (int)(HALO * BX);
  const uint line = (uint)get_global_id(1) * pitch;
  for (uint i = 0u; i < STEPS + 2 * HALO; i++) {
    const int x = bx + (int)(i * BX);
    if (x >= 0 && x < (int)(width)) {
      t[row + i * BX + tx] = src[line + (uint)(x)];
    } else {
      t[row + i * BX + tx] = 0.0f;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint i = HALO; i < HALO + STEPS; i++) {
    float sum = 0.0f;
    for (uint j = 0u; j <= 2 * R; j++)
      sum += coeff[2 * R - j] * t[row + i * BX + tx + j - R];
    dst[line + (uint)(bx + (int)(i * BX))] = sum;
  }
}

#define CX (16u)
#define CY (8u)
#define H  ((STEPS + 2) * CY + 1)
kernel __attribute__((reqd_work_group_size(CX, CY, 1))) void conv_cols(
    global const float *src, global float *dst, global const float *coeff,
    uint height, uint pitch) {
  local float t[CX * H];
  const uint tx = (uint)get_local_id(0);
  const uint ty = (uint)get_local_id(1);
  const int y0 = (int)((uint)get_group_id(1) * STEPS * CY + ty) - (int)(CY);
  for (uint i = 0u; i < STEPS + 2; i++) {
    const int y = y0 + (int)(i * CY);
    if (y >= 0 && y < (int)(height)) {
      t[tx * H + ty + i * CY] = src[(uint)(y)*pitch + (uint)get_global_id(0)];
    } else {
      t[tx * H + ty + i * CY] = 0.0f;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint i = 1u; i < 1 + STEPS; i++) {
    float sum = 0.0f;
    for (uint j = 0u; j <= 2 * R; j++)
      sum += coeff[2 * R - j] * t[tx * H + ty + i * CY + j - R];
    dst[(uint)(y0 + (int)(i * CY)) * pitch + (uint)get_global_id(0)] = sum;
  }
}
