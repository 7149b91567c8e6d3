// SPDX-License-Identifier: MIT OR Apache-2.0
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#extension GL_EXT_shader_8bit_storage : require
layout(local_size_x = 256) in;
layout(binding = 0) readonly restrict buffer Text { uint8_t text[]; };
layout(binding = 1) readonly restrict buffer Pattern { uint8_t pattern[]; };
layout(binding = 2) restrict buffer Count { uint count; };
layout(push_constant) uniform Given { uint n, size; };

void main() {
  uint place = PLACE;
  if (size > n || place > n - size) return;
  uint same = 0;
  while (same < size && uint(text[place + same]) == uint(pattern[same])) same++;
  if (same == size) atomicAdd(count, 1);
}
