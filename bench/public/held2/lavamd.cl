// SPDX-License-Identifier: MIT OR Apache-2.0
// forces between the particles of a box and of its neighbours, as in Rodinia
#define T    (128u)
#define EACH (100u)  // particles of a box

kernel __attribute__((reqd_work_group_size(T, 1, 1))) void lavamd(
    global const uint *starts, global const uint *neighbours,
    global const float *rv, global const float *charge, global float *force,
    float a2) {
  local float ra[4 * EACH];
  local float rb[4 * EACH];
  local float qb[EACH];
  const uint t = (uint)get_local_id(0);
  const uint first = (uint)get_group_id(0) * EACH;
  if (t < EACH) {
    for (uint k = 0u; k < 4; k++) ra[t * 4 + k] = rv[(first + t) * 4 + k];
  }
  float fv = 0.0f;
  float fx = 0.0f;
  float fy = 0.0f;
  float fz = 0.0f;
  const uint last = starts[(uint)get_group_id(0) + 1];
  for (uint k = starts[(uint)get_group_id(0)]; k < last; k++) {
    const uint other = neighbours[k] * EACH;
    if (t < EACH) {
      for (uint c = 0u; c < 4; c++) rb[t * 4 + c] = rv[(other + t) * 4 + c];
      qb[t] = charge[other + t];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < EACH) {
      for (uint j = 0u; j < EACH; j++) {
        const float dot = ra[t * 4 + 1] * rb[j * 4 + 1] +
                          ra[t * 4 + 2] * rb[j * 4 + 2] +
                          ra[t * 4 + 3] * rb[j * 4 + 3];
        const float r2 = ra[t * 4] + rb[j * 4] - dot;
        const float vij = exp(-(a2 * r2));
        const float fs = 2.0f * vij;
        fv += qb[j] * vij;
        fx += qb[j] * (fs * (ra[t * 4 + 1] - rb[j * 4 + 1]));
        fy += qb[j] * (fs * (ra[t * 4 + 2] - rb[j * 4 + 2]));
        fz += qb[j] * (fs * (ra[t * 4 + 3] - rb[j * 4 + 3]));
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (t < EACH) {
    force[(first + t) * 4] = fv;
    force[(first + t) * 4 + 1] = fx;
    force[(first + t) * 4 + 2] = fy;
    force[(first + t) * 4 + 3] = fz;
  }
}
