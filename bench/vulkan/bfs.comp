// SPDX-License-Identifier: MIT OR Apache-2.0
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(binding = 0) readonly restrict buffer Starts { uint starts[]; };
layout(binding = 1) readonly restrict buffer Targets { uint targets[]; };
layout(binding = 2) readonly restrict buffer Frontier { uint frontier[]; };
layout(binding = 3) restrict buffer Distance { uint distance[]; };
layout(binding = 4) writeonly restrict buffer Next { uint next[]; };
layout(binding = 5) restrict buffer Count { uint count; };
layout(push_constant) uniform Given { uint depth, n; };

void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i >= n) return;
  uint node = frontier[i], end = starts[node + 1];
  for (uint edge = starts[node]; edge < end; edge++) {
    uint target = targets[edge];
    if (distance[target] == 0xFFFFFFFFu &&
        atomicCompSwap(distance[target], 0xFFFFFFFFu, depth + 1) ==
            0xFFFFFFFFu) {
      next[atomicAdd(count, 1)] = target;
    }
  }
}
