// SPDX-License-Identifier: MIT OR Apache-2.0
// potential on a lattice from the atoms within a cutoff, as in Parboil
#define SLOTS (8u)  // atoms of a bin
#define BIN   (4u)  // points of a bin along each axis
#define SPAN  (4u)  // bins along x and y that reach a workgroup

kernel __attribute__((reqd_work_group_size(8, 8, 4))) void cutcp(
    global const float *bins, global float *energy, uint bins_x, uint bins_y,
    float cutoff2, float inverse) {
  local float atoms[SPAN * SPAN * SLOTS * 4];
  const uint t = ((uint)get_local_id(2) * 8 + (uint)get_local_id(1)) * 8 +
                 (uint)get_local_id(0);
  const float x = (float)((uint)get_global_id(0));
  const float y = (float)((uint)get_global_id(1));
  const float z = (float)((uint)get_global_id(2));
  const uint bx = (uint)get_group_id(0) * 8 / BIN;
  const uint by = (uint)get_group_id(1) * 8 / BIN;
  const uint bz = (uint)get_group_id(2);
  float sum = 0.0f;
  for (uint dz = 0u; dz < 3; dz++) {
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = t; k < SPAN * SPAN * SLOTS * 4; k += 256) {
      const uint bin = k / (SLOTS * 4);
      const uint column = bx + bin % SPAN;
      const uint line = by + bin / SPAN;
      const uint at = ((bz + dz) * bins_y + line) * bins_x + column;
      atoms[k] = bins[at * SLOTS * 4 + k % (SLOTS * 4)];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0u; k < SPAN * SPAN * SLOTS; k++) {
      const float dx = atoms[k * 4] - x;
      const float dy = atoms[k * 4 + 1] - y;
      const float ez = atoms[k * 4 + 2] - z;
      const float r2 = dx * dx + dy * dy + ez * ez;
      if (r2 < cutoff2) {
        const float s = 1.0f - r2 * inverse;
        sum += atoms[k * 4 + 3] * rsqrt(r2) * s * s;
      }
    }
  }
  const uint width = (uint)get_num_groups(0) * 8;
  const uint height = (uint)get_num_groups(1) * 8;
  energy[((uint)get_global_id(2) * height + (uint)get_global_id(1)) * width +
         (uint)get_global_id(0)] = sum;
}
