// SPDX-License-Identifier: MIT OR Apache-2.0
// A device has 65,535 workgroups an axis at least, and some no more: rows of them
// count as one line. PLAIN: a product and a sum instead of fma.
#extension GL_EXT_control_flow_attributes : enable

#define LINE (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x)
#define PLACE (LINE * gl_WorkGroupSize.x + gl_LocalInvocationID.x)

#ifdef PLAIN
#define FMA(a, b, c) ((a) * (b) + (c))
#else
#define FMA(a, b, c) fma(a, b, c)
#endif
