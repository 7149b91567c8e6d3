// SPDX-License-Identifier: MIT OR Apache-2.0
// Lennard-Jones forces from lists of neighbours, as in SHOC
kernel __attribute__((reqd_work_group_size(256, 1, 1))) void md(
    global const float *position, global const uint *neighbours,
    global float *force, uint atoms, uint most, float cutoff2, float lj1,
    float lj2) {
  const uint i = (uint)get_global_id(0);
  if (i >= atoms) return;
  const float x = position[i * 4];
  const float y = position[i * 4 + 1];
  const float z = position[i * 4 + 2];
  float fx = 0.0f;
  float fy = 0.0f;
  float fz = 0.0f;
  for (uint j = 0u; j < most; j++) {
    const uint other = neighbours[j * atoms + i];
    const float dx = x - position[other * 4];
    const float dy = y - position[other * 4 + 1];
    const float dz = z - position[other * 4 + 2];
    const float r2 = dx * dx + dy * dy + dz * dz;
    if (r2 < cutoff2) {
      const float r2inv = 1.0f / r2;
      const float r6inv = r2inv * r2inv * r2inv;
      const float f = r2inv * r6inv * (lj1 * r6inv - lj2);
      fx += dx * f;
      fy += dy * f;
      fz += dz * f;
    }
  }
  force[i * 3] = fx;
  force[i * 3 + 1] = fy;
  force[i * 3 + 2] = fz;
}
