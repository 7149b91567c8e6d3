// SPDX-License-Identifier: MIT OR Apache-2.0
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 256) in;
layout(binding = 0) readonly restrict buffer X { float x[]; };
layout(binding = 1) restrict buffer Y { float y[]; };
layout(push_constant) uniform Given { float a; uint n; };

void main() {
  uint i = PLACE;
  if (i < n) y[i] = FMA(a, x[i], y[i]);
}
