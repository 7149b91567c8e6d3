// SPDX-License-Identifier: MIT OR Apache-2.0
float hit(float ox, float oy, float oz, float dx, float dy, float dz, float r) {
  const float b = ox * dx + oy * dy + oz * dz;
  const float c = ox * ox + oy * oy + oz * oz - r * r;
  const float d = b * b - c;
  if (d < 0.0f) return INFINITY;
  const float t = -b - sqrt(d);
  return (t > 0.001f ? t : INFINITY);
}

kernel __attribute__((reqd_work_group_size(16, 16, 1))) void raytrace(
    global const float *spheres, global uchar *image, uint width, uint height,
    uint count) {
  const uint px = (uint)get_global_id(0);
  const uint py = (uint)get_global_id(1);
  if (px >= width || py >= height) return;
  float ox = 0.0f;
  float oy = 0.0f;
  float oz = -4.0f;
  const float sx = ((float)(px) + 0.5f) / (float)(width) * 2.0f - 1.0f;
  const float sy = 1.0f - ((float)(py) + 0.5f) / (float)(height) * 2.0f;
  const float n0 = 1.0f / sqrt(sx * sx + sy * sy + 2.25f);
  float dx = sx * n0;
  float dy = sy * n0;
  float dz = 1.5f * n0;
  float red = 0.0f;
  float green = 0.0f;
  float blue = 0.0f;
  float weight = 1.0f;
  for (int bounce = 0; bounce < 4; bounce++) {
    float best = INFINITY;
    uint which = 0u;
    for (uint s = 0u; s < count; s++) {
      const float t =
          hit(ox - spheres[s * 8], oy - spheres[s * 8 + 1],
              oz - spheres[s * 8 + 2], dx, dy, dz, spheres[s * 8 + 3]);
      if (t < best) {
        best = t;
        which = s;
      }
    }
    if (best == INFINITY) {
      const float sky = 0.5f * (dy + 1.0f);
      red += weight * (1.0f - 0.5f * sky);
      green += weight * (1.0f - 0.3f * sky);
      blue += weight;
      break;
    }
    ox += dx * best;
    oy += dy * best;
    oz += dz * best;
    const float r = spheres[which * 8 + 3];
    const float nx = (ox - spheres[which * 8]) / r;
    const float ny = (oy - spheres[which * 8 + 1]) / r;
    const float nz = (oz - spheres[which * 8 + 2]) / r;
    const float light =
        max(nx * 0.57735f + ny * 0.57735f - nz * 0.57735f, 0.1f);
    const float mirror = spheres[which * 8 + 7];
    red += weight * (1.0f - mirror) * spheres[which * 8 + 4] * light;
    green += weight * (1.0f - mirror) * spheres[which * 8 + 5] * light;
    blue += weight * (1.0f - mirror) * spheres[which * 8 + 6] * light;
    weight *= mirror;
    if (weight < 0.01f) break;
    const float dn = 2.0f * (dx * nx + dy * ny + dz * nz);
    dx -= dn * nx;
    dy -= dn * ny;
    dz -= dn * nz;
  }
  const uint o = (py * width + px) * 3;
  image[o] = (uint)(min(red, 1.0f) * 255.0f);
  image[o + 1] = (uint)(min(green, 1.0f) * 255.0f);
  image[o + 2] = (uint)(min(blue, 1.0f) * 255.0f);
}
