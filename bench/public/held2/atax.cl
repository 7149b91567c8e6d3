// SPDX-License-Identifier: MIT OR Apache-2.0
// y = A' (A x) with one row or one column for each invocation, as in PolyBench
kernel __attribute__((reqd_work_group_size(256, 1, 1))) void atax_rows(
    global const float *a, global const float *x, global float *product,
    uint rows, uint columns) {
  const uint i = (uint)get_global_id(0);
  if (i < rows) {
    float sum = 0.0f;
    for (uint j = 0u; j < columns; j++) sum += a[i * columns + j] * x[j];
    product[i] = sum;
  }
}

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void atax_columns(
    global const float *a, global const float *product, global float *y,
    uint rows, uint columns) {
  const uint j = (uint)get_global_id(0);
  if (j < columns) {
    float sum = 0.0f;
    for (uint i = 0u; i < rows; i++) sum += a[i * columns + j] * product[i];
    y[j] = sum;
  }
}
