// SPDX-License-Identifier: MIT OR Apache-2.0
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 256) in;
layout(binding = 0) readonly restrict buffer X { float x[]; };
layout(binding = 1) writeonly restrict buffer Sums { float sums[]; };
layout(push_constant) uniform Given { uint n; };
shared float part[256];

void main() {
  uint i = gl_LocalInvocationID.x;
  part[i] = PLACE < n ? x[PLACE] : 0.0;
  barrier();
  for (uint half_size = 128; half_size > 0; half_size /= 2) {
    if (i < half_size) part[i] += part[i + half_size];
    barrier();
  }
  if (i == 0 && LINE < (n + 255) / 256) sums[LINE] = part[0];
}
