// SPDX-License-Identifier: MIT OR Apache-2.0
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(binding = 0) readonly restrict buffer X { float x[]; };
layout(binding = 1) restrict buffer Y { float y[]; };
layout(push_constant) uniform Given { uint width; };
shared float part[64];

void main() {
  uint i = gl_LocalInvocationID.x, row = gl_WorkGroupID.x * width;
  float most = uintBitsToFloat(0xFF800000u);
  for (uint k = i; k < width; k += 64) most = max(most, x[row + k]);
  part[i] = most;
  barrier();
  for (uint half_size = 32; half_size > 0; half_size /= 2) {
    if (i < half_size) part[i] = max(part[i], part[i + half_size]);
    barrier();
  }
  most = part[0];
  barrier();
  float sum = 0;
  for (uint k = i; k < width; k += 64) {
    float e = exp(x[row + k] - most);
    y[row + k] = e;
    sum += e;
  }
  part[i] = sum;
  barrier();
  for (uint half_size = 32; half_size > 0; half_size /= 2) {
    if (i < half_size) part[i] += part[i + half_size];
    barrier();
  }
  float share = 1.0 / part[0];
  for (uint k = i; k < width; k += 64) y[row + k] *= share;
}
