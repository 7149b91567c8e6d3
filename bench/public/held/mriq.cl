// SPDX-License-Identifier: MIT OR Apache-2.0
// MRI reconstruction, matrix Q, as in Parboil
#define PIX2 (6.2831853071795864769f)

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void mriq(
    global const float *samples, global const float *x, global const float *y,
    global const float *z, global float *qr, global float *qi, uint count,
    uint voxels) {
  const uint i = (uint)get_global_id(0);
  if (i >= voxels) return;
  const float px = x[i];
  const float py = y[i];
  const float pz = z[i];
  float re = 0.0f;
  float im = 0.0f;
  for (uint k = 0u; k < count; k++) {
    const float angle = PIX2 * (samples[k * 4] * px + samples[k * 4 + 1] * py +
                                samples[k * 4 + 2] * pz);
    const float phi = samples[k * 4 + 3];
    re += phi * cos(angle);
    im += phi * sin(angle);
  }
  qr[i] = re;
  qi[i] = im;
}
