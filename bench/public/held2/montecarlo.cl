// SPDX-License-Identifier: MIT OR Apache-2.0
// prices of options from random paths, with the counter-based generator Philox
#define T    (128u)
#define EACH (32u)  // pairs of paths of an invocation

kernel __attribute__((reqd_work_group_size(T, 1, 1))) void montecarlo(
    global const float *price, global const float *strike, global float *sums,
    float drift, float spread) {
  local float part[T];
  const uint t = (uint)get_local_id(0);
  const uint option = (uint)get_group_id(0);
  const float s = price[option];
  const float x = strike[option];
  float sum = 0.0f;
  for (uint path = 0u; path < EACH; path++) {
    uint c0 = path * T + t;
    uint c1 = option;
    uint c2 = 0u;
    uint c3 = 0u;
    uint k0 = 0x1234ABCDu;
    uint k1 = 0x9876FEDCu;
    for (int r = 0; r < 10; r++) {
      const ulong p = (ulong)c0 * 0xD2511F53;
      const ulong q = (ulong)c2 * 0xCD9E8D57;
      c0 = (uint)(q >> 32) ^ c1 ^ k0;
      c2 = (uint)(p >> 32) ^ c3 ^ k1;
      c1 = (uint)q;
      c3 = (uint)p;
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    const float u = ((float)(c0 >> 9) + 0.5f) / 8388608.0f;
    const float angle = (float)(c1 >> 8) * 3.7450704e-7f;
    const float radius = sqrt(-2.0f * log(u));
    sum += max(s * exp(drift + spread * (radius * cos(angle))) - x, 0.0f);
    sum += max(s * exp(drift + spread * (radius * sin(angle))) - x, 0.0f);
  }
  part[t] = sum;
  uint active = T / 2;
  while (active > 0) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < active) part[t] += part[t + active];
    active /= 2;
  }
  if (t == 0) sums[option] = part[0];
}
