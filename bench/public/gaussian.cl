// SPDX-License-Identifier: MIT OR Apache-2.0
kernel __attribute__((reqd_work_group_size(256, 1, 1))) void fan1(
    global float *m, global const float *a, uint size, uint t) {
  const uint i = (uint)get_global_id(0);
  if (i < size - 1 - t)
    m[size * (i + t + 1) + t] = a[size * (i + t + 1) + t] / a[size * t + t];
}

kernel __attribute__((reqd_work_group_size(16, 16, 1))) void fan2(
    global const float *m, global float *a, global float *b, uint size,
    uint t) {
  const uint x = (uint)get_global_id(0);  // column, from t
  const uint y = (uint)get_global_id(1);  // row, from t + 1
  if (y >= size - 1 - t || x >= size - t) return;
  const float f = m[size * (y + 1 + t) + t];
  a[size * (y + 1 + t) + x + t] -= f * a[size * t + x + t];
  if (x == 0) b[y + 1 + t] -= f * b[t];
}
