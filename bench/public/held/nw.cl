// SPDX-License-Identifier: MIT OR Apache-2.0
// Needleman-Wunsch: one anti-diagonal of tiles a launch, as in Rodinia
#define B (16u)
#define W (B + 1)

kernel __attribute__((reqd_work_group_size(B, 1, 1))) void nw(
    global const int *reference, global int *items, uint cols, int penalty,
    uint first_x, uint first_y) {
  local int temp[W * W];
  local int ref[B * B];
  const uint tx = (uint)get_local_id(0);
  const uint bx = first_x + (uint)get_group_id(0);
  const uint by = first_y - (uint)get_group_id(0);
  const uint base = cols * B * by + B * bx;
  const uint index = base + tx + cols + 1;
  if (tx == 0) temp[0] = items[base];
  for (uint ty = 0u; ty < B; ty++)
    ref[ty * B + tx] = reference[index + cols * ty];
  temp[(tx + 1) * W] = items[base + cols * (tx + 1)];
  temp[tx + 1] = items[base + tx + 1];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint m = 0u; m < B; m++) {
    if (tx <= m) {
      const uint x = tx + 1;
      const uint y = m - tx + 1;
      const int diagonal = temp[(y - 1) * W + x - 1] + ref[(y - 1) * B + x - 1];
      temp[y * W + x] = max(
          diagonal, max(temp[y * W + x - 1], temp[(y - 1) * W + x]) - penalty);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (uint k = 1u; k < B; k++) {
    const uint m = B - 1 - k;
    if (tx <= m) {
      const uint x = tx + B - m;
      const uint y = B - tx;
      const int diagonal = temp[(y - 1) * W + x - 1] + ref[(y - 1) * B + x - 1];
      temp[y * W + x] = max(
          diagonal, max(temp[y * W + x - 1], temp[(y - 1) * W + x]) - penalty);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (uint ty = 0u; ty < B; ty++)
    items[index + cols * ty] = temp[(ty + 1) * W + tx + 1];
}
