// SPDX-License-Identifier: MIT OR Apache-2.0
// one query each; tiles of keys and values in shared memory, softmax as it goes
#define T (64u)
#define D (32u)
kernel __attribute__((reqd_work_group_size(T, 1, 1))) void attention(
    global const float *q, global const float *k, global const float *v,
    global float *o, uint n, float scale) {
  local float kt[T * D];
  local float vt[T * D];
  local float qs[T * D];
  local float acc[T * D];
  const uint t = (uint)get_local_id(0);
  const uint head = (uint)get_group_id(1) * n * D;
  const uint row = head + (uint)get_global_id(0) * D;
  for (uint d = 0u; d < D; d++) qs[d * T + t] = q[row + d] * scale;
  for (uint d = 0u; d < D; d++) acc[d * T + t] = 0;
  float m = -INFINITY;
  float l = 0.0f;
  for (uint tile = 0u; tile < n; tile += T) {
    for (uint i = t; i < T * D; i += T) {
      kt[i] = k[head + tile * D + i];
      vt[i] = v[head + tile * D + i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint j = 0u; j < T; j++) {
      float s = 0.0f;
      for (uint d = 0u; d < D; d++) s = fma(qs[d * T + t], kt[j * D + d], s);
      const float next = max(m, s);
      const float fix = exp(m - next);
      const float p = exp(s - next);
      l = l * fix + p;
      for (uint d = 0u; d < D; d++)
        acc[d * T + t] = fma(p, vt[j * D + d], acc[d * T + t] * fix);
      m = next;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (uint d = 0u; d < D; d++) o[row + d] = acc[d * T + t] / l;
}
