// SPDX-License-Identifier: MIT OR Apache-2.0
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#extension GL_EXT_shader_8bit_storage : require
layout(local_size_x = 256) in;
layout(binding = 0) readonly restrict buffer Data { uint8_t data[]; };
layout(binding = 1) restrict buffer Bins { uint bins[]; };
layout(push_constant) uniform Given { uint n; };
shared uint mine[256];

void main() {
  mine[gl_LocalInvocationID.x] = 0;
  barrier();
  uint first = gl_WorkGroupID.x * (256 * 64) + gl_LocalInvocationID.x;
  for (uint k = 0; k < 64; k++) {
    uint i = first + k * 256;
    if (i < n) atomicAdd(mine[uint(data[i])], 1);
  }
  barrier();
  atomicAdd(bins[gl_LocalInvocationID.x], mine[gl_LocalInvocationID.x]);
}
