// SPDX-License-Identifier: MIT OR Apache-2.0
#define T (256u)
kernel __attribute__((reqd_work_group_size(T, 1, 1))) void nbody(
    global const float *pos, global float *acc, uint bodies, float eps2) {
  local float sx[T];
  local float sy[T];
  local float sz[T];
  local float sm[T];
  const uint i = (uint)get_global_id(0);
  const uint t = (uint)get_local_id(0);
  const float x = pos[i * 4];
  const float y = pos[i * 4 + 1];
  const float z = pos[i * 4 + 2];
  float ax = 0.0f;
  float ay = 0.0f;
  float az = 0.0f;
  for (uint tile = 0u; tile < bodies / T; tile++) {
    const uint j = tile * T + t;
    sx[t] = pos[j * 4];
    sy[t] = pos[j * 4 + 1];
    sz[t] = pos[j * 4 + 2];
    sm[t] = pos[j * 4 + 3];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0u; k < T; k++) {
      const float dx = sx[k] - x;
      const float dy = sy[k] - y;
      const float dz = sz[k] - z;
      const float d2 = dx * dx + dy * dy + dz * dz + eps2;
      const float inv = 1.0f / sqrt(d2);
      const float s = sm[k] * (inv * inv * inv);
      ax += dx * s;
      ay += dy * s;
      az += dz * s;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  acc[i * 4] = ax;
  acc[i * 4 + 1] = ay;
  acc[i * 4 + 2] = az;
  acc[i * 4 + 3] = 0.0f;
}
