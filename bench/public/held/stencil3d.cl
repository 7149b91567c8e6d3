// SPDX-License-Identifier: MIT OR Apache-2.0
// seven points, as in Parboil
kernel __attribute__((reqd_work_group_size(32, 4, 1))) void stencil3d(
    global const float *a0, global float *anext, uint nx, uint ny, uint nz,
    float c0, float c1) {
  const uint i = (uint)get_global_id(0);
  const uint j = (uint)get_global_id(1);
  const uint k = (uint)get_global_id(2);
  if (i < 1 || j < 1 || k < 1) return;
  if (i >= nx - 1 || j >= ny - 1 || k >= nz - 1) return;
  const uint at = i + nx * (j + ny * k);
  anext[at] = (a0[at + nx * ny] + a0[at - nx * ny] + a0[at + nx] + a0[at - nx] +
               a0[at + 1] + a0[at - 1]) *
                  c1 -
              a0[at] * c0;
}
