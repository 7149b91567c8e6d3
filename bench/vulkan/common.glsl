// SPDX-License-Identifier: MIT OR Apache-2.0
// Shared definitions of the kernels. Some devices allow only 65,535 workgroups per axis,
// so a long x axis is split into rows; LINE and PLACE undo that. PLAIN: a product and a
// sum replace fma.
#extension GL_EXT_control_flow_attributes : enable

#define LINE (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x)
#define PLACE (LINE * gl_WorkGroupSize.x + gl_LocalInvocationID.x)

#ifdef PLAIN
#define FMA(a, b, c) ((a) * (b) + (c))
#else
#define FMA(a, b, c) fma(a, b, c)
#endif
