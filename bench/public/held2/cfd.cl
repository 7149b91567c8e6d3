// SPDX-License-Identifier: MIT OR Apache-2.0
// flux of the Euler equations on an unstructured mesh, as in Rodinia
#define GAMMA     (1.4f)
#define SMOOTHING (0.2f)

static inline float pressure_of(float density, float energy, float speed2) {
  return (GAMMA - 1.0f) * (energy - 0.5f * density * speed2);
}

kernel __attribute__((reqd_work_group_size(192, 1, 1))) void cfd_flux(
    global const int *elements, global const float *normals,
    global const float *variables, global const float *far,
    global float *fluxes, uint count) {
  const uint i = (uint)get_global_id(0);
  if (i >= count) return;
  const float density = variables[i];
  const float mx = variables[i + count];
  const float my = variables[i + 2 * count];
  const float mz = variables[i + 3 * count];
  const float energy = variables[i + 4 * count];
  const float vx = mx / density;
  const float vy = my / density;
  const float vz = mz / density;
  const float speed2 = vx * vx + vy * vy + vz * vz;
  const float speed = sqrt(speed2);
  const float pressure = pressure_of(density, energy, speed2);
  const float sound = sqrt(GAMMA * pressure / density);
  const float xx = vx * mx + pressure;
  const float xy = vx * my;
  const float xz = vx * mz;
  const float yy = vy * my + pressure;
  const float yz = vy * mz;
  const float zz = vz * mz + pressure;
  const float ex = vx * (energy + pressure);
  const float ey = vy * (energy + pressure);
  const float ez = vz * (energy + pressure);
  float fd = 0.0f;
  float fx = 0.0f;
  float fy = 0.0f;
  float fz = 0.0f;
  float fe = 0.0f;
  for (uint j = 0u; j < 4; j++) {
    const int nb = elements[i + j * count];
    const float nx = normals[i + j * count];
    const float ny = normals[i + (j + 4) * count];
    const float nz = normals[i + (j + 8) * count];
    const float area = sqrt(nx * nx + ny * ny + nz * nz);
    if (nb >= 0) {
      const uint k = (uint)nb;
      const float density2 = variables[k];
      const float mx2 = variables[k + count];
      const float my2 = variables[k + 2 * count];
      const float mz2 = variables[k + 3 * count];
      const float energy2 = variables[k + 4 * count];
      const float vx2 = mx2 / density2;
      const float vy2 = my2 / density2;
      const float vz2 = mz2 / density2;
      const float sqr2 = vx2 * vx2 + vy2 * vy2 + vz2 * vz2;
      const float pressure2 = pressure_of(density2, energy2, sqr2);
      const float sound2 = sqrt(GAMMA * pressure2 / density2);
      float factor =
          -area * SMOOTHING * 0.5f * (speed + sqrt(sqr2) + sound + sound2);
      fd += factor * (density - density2);
      fe += factor * (energy - energy2);
      fx += factor * (mx - mx2);
      fy += factor * (my - my2);
      fz += factor * (mz - mz2);
      factor = 0.5f * nx;
      fd += factor * (mx2 + mx);
      fe += factor * (vx2 * (energy2 + pressure2) + ex);
      fx += factor * (vx2 * mx2 + pressure2 + xx);
      fy += factor * (vx2 * my2 + xy);
      fz += factor * (vx2 * mz2 + xz);
      factor = 0.5f * ny;
      fd += factor * (my2 + my);
      fe += factor * (vy2 * (energy2 + pressure2) + ey);
      fx += factor * (vx2 * my2 + xy);
      fy += factor * (vy2 * my2 + pressure2 + yy);
      fz += factor * (vy2 * mz2 + yz);
      factor = 0.5f * nz;
      fd += factor * (mz2 + mz);
      fe += factor * (vz2 * (energy2 + pressure2) + ez);
      fx += factor * (vx2 * mz2 + xz);
      fy += factor * (vy2 * mz2 + yz);
      fz += factor * (vz2 * mz2 + pressure2 + zz);
    } else if (nb == -1) {
      fx += nx * pressure;
      fy += ny * pressure;
      fz += nz * pressure;
    } else {
      float factor = 0.5f * nx;
      fd += factor * (far[1] + mx);
      fe += factor * (far[14] + ex);
      fx += factor * (far[5] + xx);
      fy += factor * (far[6] + xy);
      fz += factor * (far[7] + xz);
      factor = 0.5f * ny;
      fd += factor * (far[2] + my);
      fe += factor * (far[15] + ey);
      fx += factor * (far[8] + xy);
      fy += factor * (far[9] + yy);
      fz += factor * (far[10] + yz);
      factor = 0.5f * nz;
      fd += factor * (far[3] + mz);
      fe += factor * (far[16] + ez);
      fx += factor * (far[11] + xz);
      fy += factor * (far[12] + yz);
      fz += factor * (far[13] + zz);
    }
  }
  fluxes[i] = fd;
  fluxes[i + count] = fx;
  fluxes[i + 2 * count] = fy;
  fluxes[i + 3 * count] = fz;
  fluxes[i + 4 * count] = fe;
}
