// SPDX-License-Identifier: MIT OR Apache-2.0
// speckle reducing anisotropic diffusion, as in Rodinia
#define B (16u)

kernel __attribute__((reqd_work_group_size(B, B, 1))) void srad1(
    global const float *image, global float *c, global float *dn,
    global float *ds, global float *dw, global float *de, uint cols, uint rows,
    float q0sqr) {
  local float tile[B * B];
  const uint tx = (uint)get_local_id(0);
  const uint ty = (uint)get_local_id(1);
  const uint x = (uint)get_global_id(0);
  const uint y = (uint)get_global_id(1);
  const uint me = ty * B + tx;
  const uint at = y * cols + x;
  tile[me] = image[at];
  barrier(CLK_LOCAL_MEM_FENCE);
  const float j = tile[me];
  float n = j;
  float s = j;
  float w = j;
  float e = j;
  if (ty > 0)
    n = tile[me - B];
  else if (y > 0)
    n = image[at - cols];
  if (ty < B - 1)
    s = tile[me + B];
  else if (y < rows - 1)
    s = image[at + cols];
  if (tx > 0)
    w = tile[me - 1];
  else if (x > 0)
    w = image[at - 1];
  if (tx < B - 1)
    e = tile[me + 1];
  else if (x < cols - 1)
    e = image[at + 1];
  n -= j;
  s -= j;
  w -= j;
  e -= j;
  const float g2 = (n * n + s * s + w * w + e * e) / (j * j);
  const float l = (n + s + w + e) / j;
  const float num = 0.5f * g2 - (1.0f / 16.0f) * (l * l);
  const float den = 1.0f + 0.25f * l;
  const float qsqr = num / (den * den);
  const float d = (qsqr - q0sqr) / (q0sqr * (1.0f + q0sqr));
  const float value = 1.0f / (1.0f + d);
  c[at] = min(max(value, 0.0f), 1.0f);
  dn[at] = n;
  ds[at] = s;
  dw[at] = w;
  de[at] = e;
}

kernel __attribute__((reqd_work_group_size(B, B, 1))) void srad2(
    global float *image, global const float *c, global const float *dn,
    global const float *ds, global const float *dw, global const float *de,
    uint cols, uint rows, float lambda) {
  local float tile[B * B];
  const uint tx = (uint)get_local_id(0);
  const uint ty = (uint)get_local_id(1);
  const uint x = (uint)get_global_id(0);
  const uint y = (uint)get_global_id(1);
  const uint me = ty * B + tx;
  const uint at = y * cols + x;
  tile[me] = c[at];
  barrier(CLK_LOCAL_MEM_FENCE);
  const float cc = tile[me];
  float cs = cc;
  float ce = cc;
  if (ty < B - 1)
    cs = tile[me + B];
  else if (y < rows - 1)
    cs = c[at + cols];
  if (tx < B - 1)
    ce = tile[me + 1];
  else if (x < cols - 1)
    ce = c[at + 1];
  const float d = cc * dn[at] + cs * ds[at] + cc * dw[at] + ce * de[at];
  image[at] += 0.25f * lambda * d;
}
