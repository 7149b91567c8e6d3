// SPDX-License-Identifier: MIT OR Apache-2.0
// LU decomposition in blocks: diagonal, perimeter and interior, as in Rodinia
#define B (16u)

kernel __attribute__((reqd_work_group_size(B, 1, 1))) void lud_diagonal(
    global float *a, uint n, uint offset) {
  local float tile[B * B];
  const uint t = (uint)get_local_id(0);
  const uint base = offset * n + offset;
  for (uint i = 0u; i < B; i++) tile[i * B + t] = a[base + i * n + t];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint i = 0u; i < B - 1; i++) {
    if (t > i) {
      for (uint j = 0u; j < i; j++)
        tile[t * B + i] -= tile[t * B + j] * tile[j * B + i];
      tile[t * B + i] /= tile[i * B + i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t > i) {
      for (uint j = 0u; j < i + 1; j++) {
        tile[(i + 1) * B + t] -= tile[(i + 1) * B + j] * tile[j * B + t];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (uint i = 1u; i < B; i++) a[base + i * n + t] = tile[i * B + t];
}

kernel __attribute__((reqd_work_group_size(2 * B, 1, 1))) void lud_perimeter(
    global float *a, uint n, uint offset) {
  local float dia[B * B];
  local float row[B * B];
  local float col[B * B];
  const uint t = (uint)get_local_id(0);
  const uint i = t % B;
  const uint base = offset * n + offset;
  const uint next = ((uint)get_group_id(0) + 1) * B;
  if (t < B) {
    for (uint r = 0u; r < B / 2; r++) dia[r * B + i] = a[base + r * n + i];
    for (uint r = 0u; r < B; r++) row[r * B + i] = a[base + next + r * n + i];
  } else {
    for (uint r = B / 2; r < B; r++) dia[r * B + i] = a[base + r * n + i];
    for (uint r = 0u; r < B; r++) col[r * B + i] = a[base + (next + r) * n + i];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (t < B) {
    for (uint r = 1u; r < B; r++) {
      for (uint j = 0u; j < r; j++)
        row[r * B + i] -= dia[r * B + j] * row[j * B + i];
    }
  } else {
    for (uint r = 0u; r < B; r++) {
      for (uint j = 0u; j < r; j++)
        col[i * B + r] -= col[i * B + j] * dia[j * B + r];
      col[i * B + r] /= dia[r * B + r];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (t < B) {
    for (uint r = 1u; r < B; r++) a[base + next + r * n + i] = row[r * B + i];
  } else {
    for (uint r = 0u; r < B; r++) a[base + (next + r) * n + i] = col[r * B + i];
  }
}

kernel __attribute__((reqd_work_group_size(B, B, 1))) void lud_internal(
    global float *a, uint n, uint offset) {
  local float row[B * B];
  local float col[B * B];
  const uint x = (uint)get_local_id(0);
  const uint y = (uint)get_local_id(1);
  const uint column = offset + ((uint)get_group_id(0) + 1) * B + x;
  const uint line = offset + ((uint)get_group_id(1) + 1) * B + y;
  row[y * B + x] = a[(offset + y) * n + column];
  col[y * B + x] = a[line * n + offset + x];
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0.0f;
  for (uint i = 0u; i < B; i++) sum += col[y * B + i] * row[i * B + x];
  a[line * n + column] -= sum;
}
