// SPDX-License-Identifier: MIT OR Apache-2.0
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#define SIDE 64
#define DEPTH 16
#define EACH 8
layout(local_size_x = SIDE, local_size_y = SIDE / EACH) in;
layout(binding = 0) readonly restrict buffer A { float a[]; };
layout(binding = 1) readonly restrict buffer B { float b[]; };
layout(binding = 2) writeonly restrict buffer C { float c[]; };
layout(push_constant) uniform Given { uint n; };
shared float tile_a[SIDE * DEPTH], tile_b[DEPTH * SIDE];

void main() {
  uint x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y;
  uint here = y * SIDE + x, column = gl_WorkGroupID.x * SIDE + x;
  uint top = gl_WorkGroupID.y * SIDE, row = top + y * EACH;
  float sums[EACH];
  [[unroll]] for (uint e = 0; e < EACH; e++) sums[e] = 0;
  for (uint first = 0; first < n; first += DEPTH) {
    [[unroll]] for (uint part = 0; part < 2; part++) {
      uint i = here + part * (SIDE * EACH);
      uint a_row = top + i / DEPTH, a_column = first + i % DEPTH;
      uint b_row = first + i / SIDE;
      tile_a[i] = a_row < n && a_column < n ? a[a_row * n + a_column] : 0.0;
      tile_b[i] = b_row < n && column < n ? b[b_row * n + column] : 0.0;
    }
    barrier();
    for (uint k = 0; k < DEPTH; k++) {
      float v = tile_b[k * SIDE + x];
      [[unroll]] for (uint e = 0; e < EACH; e++) {
        sums[e] = FMA(tile_a[(y * EACH + e) * DEPTH + k], v, sums[e]);
      }
    }
    barrier();
  }
  if (column >= n) return;
  [[unroll]] for (uint e = 0; e < EACH; e++) {
    if (row + e < n) c[(row + e) * n + column] = sums[e];
  }
}
