// SPDX-License-Identifier: MIT OR Apache-2.0
// sorts blocks of pairs by ranks: every key searches its place in the other run,
// as in the CUDA samples
#define T (256u)
#define N (2 * T)

kernel __attribute__((reqd_work_group_size(T, 1, 1))) void merge_sort(
    global uint *keys, global uint *values) {
  local uint key[N];
  local uint value[N];
  const uint t = (uint)get_local_id(0);
  const uint base = (uint)get_group_id(0) * N;
  key[t] = keys[base + t];
  key[t + T] = keys[base + t + T];
  value[t] = values[base + t];
  value[t + T] = values[base + t + T];
  uint stride = 1u;
  while (stride < N) {
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint at = t & (stride - 1);
    const uint first = 2 * (t - at);
    const uint key_a = key[first + at];
    const uint value_a = value[first + at];
    const uint key_b = key[first + stride + at];
    const uint value_b = value[first + stride + at];
    uint place_a = 0u;
    uint step = stride;
    while (step > 0) {
      const uint probe = min(place_a + step, stride);
      if (key[first + stride + probe - 1] < key_a) place_a = probe;
      step >>= 1;
    }
    uint place_b = 0u;
    step = stride;
    while (step > 0) {
      const uint probe = min(place_b + step, stride);
      if (key[first + probe - 1] <= key_b) place_b = probe;
      step >>= 1;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    key[first + at + place_a] = key_a;
    value[first + at + place_a] = value_a;
    key[first + at + place_b] = key_b;
    value[first + at + place_b] = value_b;
    stride *= 2;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  keys[base + t] = key[t];
  keys[base + t + T] = key[t + T];
  values[base + t] = value[t];
  values[base + t + T] = value[t + T];
}
