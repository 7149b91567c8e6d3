// SPDX-License-Identifier: MIT OR Apache-2.0
// a = b + s * c, as in SHOC
kernel __attribute__((reqd_work_group_size(128, 1, 1))) void triad(
    global const float *b, global const float *c, global float *a, float s) {
  const uint i = (uint)get_global_id(0);
  a[i] = b[i] + s * c[i];
}
