/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The twins of the suite. */
#ifndef VYRE_BENCH_PUBLIC_TWINS_LIST_H
#define VYRE_BENCH_PUBLIC_TWINS_LIST_H

#include "peer.h"

/* X(name): name of the twin. */
#define PUBLIC_TWIN_MAP(X) \
  X(attention)             \
  X(bitonic)               \
  X(btree)                 \
  X(convsep)               \
  X(dct8x8)                \
  X(fft512)                \
  X(fft512_same)           \
  X(gaussian)              \
  X(hotspot)               \
  X(hotspot_same)          \
  X(layernorm)             \
  X(life)                  \
  X(nbody)                 \
  X(pathfinder)            \
  X(pathfinder_same)       \
  X(radix)                 \
  X(radix_same)            \
  X(raytrace)              \
  X(sha256)                \
  X(spmv)                  \
  X(transpose)

#define PUBLIC_X(name) void twin_##name(const public_args *args);
PUBLIC_TWIN_MAP(PUBLIC_X)
#undef PUBLIC_X

#endif
