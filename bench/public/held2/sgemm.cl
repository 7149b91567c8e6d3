// SPDX-License-Identifier: MIT OR Apache-2.0
// C = alpha A B' + beta C in tiles; all matrices are stored by columns, as in Parboil
#define B (16u)

kernel __attribute__((reqd_work_group_size(B, B, 1))) void sgemm(
    global const float *a, global const float *b, global float *c, uint m,
    uint n, uint k, float alpha, float beta) {
  local float ta[B * B];
  local float tb[B * B];
  const uint x = (uint)get_local_id(0);
  const uint y = (uint)get_local_id(1);
  const uint row = (uint)get_global_id(0);
  const uint column = (uint)get_global_id(1);
  float sum = 0.0f;
  for (uint from = 0u; from < k; from += B) {
    ta[y * B + x] = a[(from + y) * m + row];
    tb[y * B + x] = b[(from + y) * n + (uint)get_group_id(1) * B + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0u; i < B; i++) sum += ta[i * B + x] * tb[i * B + y];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[column * m + row] = c[column * m + row] * beta + alpha * sum;
}
