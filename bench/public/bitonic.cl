// SPDX-License-Identifier: MIT OR Apache-2.0
#define N (512u)
#define H (N / 2)
// sorts blocks of 512 keys with values in shared memory
kernel __attribute__((reqd_work_group_size(H, 1, 1))) void bitonic_shared(
    global uint *keys, global uint *vals) {
  local uint k[N];
  local uint v[N];
  const uint t = (uint)get_local_id(0);
  const uint base = (uint)get_group_id(0) * N;
  k[t] = keys[base + t];
  v[t] = vals[base + t];
  k[t + H] = keys[base + t + H];
  v[t + H] = vals[base + t + H];
  uint size = 2u;
  while (size <= N) {
    uint stride = size / 2;
    const bool up = (t & (size / 2)) == 0;
    while (stride > 0) {
      barrier(CLK_LOCAL_MEM_FENCE);
      const uint a = 2 * t - (t & (stride - 1));
      const uint b = a + stride;
      if ((k[a] > k[b]) == up) {
        const uint tk = k[a];
        k[a] = k[b];
        k[b] = tk;
        const uint tv = v[a];
        v[a] = v[b];
        v[b] = tv;
      }
      stride /= 2;
    }
    size *= 2;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  keys[base + t] = k[t];
  vals[base + t] = v[t];
  keys[base + t + H] = k[t + H];
  vals[base + t + H] = v[t + H];
}
