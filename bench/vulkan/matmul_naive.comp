// SPDX-License-Identifier: MIT OR Apache-2.0
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 16, local_size_y = 16) in;
layout(binding = 0) readonly restrict buffer A { float a[]; };
layout(binding = 1) readonly restrict buffer B { float b[]; };
layout(binding = 2) writeonly restrict buffer C { float c[]; };
layout(push_constant) uniform Given { uint n; };

void main() {
  uint row = gl_GlobalInvocationID.y, column = gl_GlobalInvocationID.x;
  if (row >= n || column >= n) return;
  float sum = 0;
  for (uint k = 0; k < n; k++) {
    sum = FMA(a[row * n + k], b[k * n + column], sum);
  }
  c[row * n + column] = sum;
}
