// SPDX-License-Identifier: MIT OR Apache-2.0
// lattice Boltzmann in two dimensions with nine directions and obstacles
kernel __attribute__((reqd_work_group_size(32, 8, 1))) void lbm(
    global const float *from, global const uchar *solid, global float *to,
    uint width, uint height, float omega) {
  const uint x = (uint)get_global_id(0);
  const uint y = (uint)get_global_id(1);
  if (x >= width || y >= height) return;
  const uint cells = width * height;
  const uint i = y * width + x;
  const uint west = (x + width - 1) % width;
  const uint east = (x + 1) % width;
  const uint south = (y + height - 1) % height * width;
  const uint north = (y + 1) % height * width;
  const uint here = y * width;
  const float f0 = from[i];
  const float f1 = from[cells + here + west];
  const float f2 = from[2 * cells + south + x];
  const float f3 = from[3 * cells + here + east];
  const float f4 = from[4 * cells + north + x];
  const float f5 = from[5 * cells + south + west];
  const float f6 = from[6 * cells + south + east];
  const float f7 = from[7 * cells + north + east];
  const float f8 = from[8 * cells + north + west];
  if (solid[i] != 0) {
    to[i] = f0;
    to[cells + i] = f3;
    to[2 * cells + i] = f4;
    to[3 * cells + i] = f1;
    to[4 * cells + i] = f2;
    to[5 * cells + i] = f7;
    to[6 * cells + i] = f8;
    to[7 * cells + i] = f5;
    to[8 * cells + i] = f6;
    return;
  }
  const float rho = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8;
  const float ux = (f1 + f5 + f8 - f3 - f6 - f7) / rho;
  const float uy = (f2 + f5 + f6 - f4 - f7 - f8) / rho;
  const float square = 1.0f - 1.5f * (ux * ux + uy * uy);
  const float a = ux + uy;
  const float b = ux - uy;
  const float w0 = omega * rho * 4.0f / 9.0f;
  const float w1 = omega * rho / 9.0f;
  const float w5 = omega * rho / 36.0f;
  const float keep = 1.0f - omega;
  to[i] = keep * f0 + w0 * square;
  to[cells + i] = keep * f1 + w1 * (square + 3.0f * ux + 4.5f * ux * ux);
  to[2 * cells + i] = keep * f2 + w1 * (square + 3.0f * uy + 4.5f * uy * uy);
  to[3 * cells + i] = keep * f3 + w1 * (square - 3.0f * ux + 4.5f * ux * ux);
  to[4 * cells + i] = keep * f4 + w1 * (square - 3.0f * uy + 4.5f * uy * uy);
  to[5 * cells + i] = keep * f5 + w5 * (square + 3.0f * a + 4.5f * a * a);
  to[6 * cells + i] = keep * f6 + w5 * (square - 3.0f * b + 4.5f * b * b);
  to[7 * cells + i] = keep * f7 + w5 * (square - 3.0f * a + 4.5f * a * a);
  to[8 * cells + i] = keep * f8 + w5 * (square + 3.0f * b + 4.5f * b * b);
}
