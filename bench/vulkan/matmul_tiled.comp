// SPDX-License-Identifier: MIT OR Apache-2.0
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 16, local_size_y = 16) in;
layout(binding = 0) readonly restrict buffer A { float a[]; };
layout(binding = 1) readonly restrict buffer B { float b[]; };
layout(binding = 2) writeonly restrict buffer C { float c[]; };
layout(push_constant) uniform Given { uint n; };
shared float tile_a[256], tile_b[256];

void main() {
  uint x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y;
  uint row = gl_GlobalInvocationID.y, column = gl_GlobalInvocationID.x;
  uint here = y * 16 + x;
  float sum = 0;
  for (uint first = 0; first < n; first += 16) {
    tile_a[here] = row < n && first + x < n ? a[row * n + first + x] : 0.0;
    tile_b[here] = column < n && first + y < n ? b[(first + y) * n + column] : 0.0;
    barrier();
    [[unroll]] for (uint k = 0; k < 16; k++) {
      sum = FMA(tile_a[y * 16 + k], tile_b[k * 16 + x], sum);
    }
    barrier();
  }
  if (row < n && column < n) c[row * n + column] = sum;
}
