// SPDX-License-Identifier: MIT OR Apache-2.0
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64, local_size_y = 4) in;
layout(binding = 0) readonly restrict buffer Heat { float heat[]; };
layout(binding = 1) writeonly restrict buffer Next { float next[]; };
layout(push_constant) uniform Given { uint width, height; };

void main() {
  uint x = gl_GlobalInvocationID.x, y = gl_GlobalInvocationID.y;
  if (x > 0 && x + 1 < width && y > 0 && y + 1 < height) {
    uint i = y * width + x;
    next[i] = 0.2 * (heat[i] + heat[i - 1] + heat[i + 1] + heat[i - width] +
                     heat[i + width]);
  }
}
