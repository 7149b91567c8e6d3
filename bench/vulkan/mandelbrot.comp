// SPDX-License-Identifier: MIT OR Apache-2.0
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 16, local_size_y = 16) in;
layout(binding = 0) writeonly restrict buffer Steps { uint steps[]; };
layout(push_constant) uniform Given {
  uint width, limit;
  float left, top, scale;
  uint height;
};

void main() {
  uint px = gl_GlobalInvocationID.x, py = gl_GlobalInvocationID.y;
  if (px >= width || py >= height) return;
  float cx = FMA(float(px), scale, left), cy = FMA(float(py), scale, top);
  float x = 0, y = 0, xx = 0, yy = 0;
  uint n = 0;
  while (n < limit && xx + yy <= 4) {
    y = FMA(x + x, y, cy);
    x = xx - yy + cx;
    xx = x * x;
    yy = y * y;
    n++;
  }
  steps[py * width + px] = n;
}
