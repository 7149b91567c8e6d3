/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The twins of the suite public.held2. */
#ifndef VYRE_BENCH_PUBLIC_HELD2_TWINS_LIST_H
#define VYRE_BENCH_PUBLIC_HELD2_TWINS_LIST_H

#include "public/peer.h"

/* X(name): name of the twin. */
#define PUBLIC_TWIN_MAP(X) \
  X(aes)                   \
  X(atax)                  \
  X(bfs)                   \
  X(bfs_same)              \
  X(binomial)              \
  X(boxfilter)             \
  X(cfd)                   \
  X(compact)               \
  X(conv2d)                \
  X(cutcp)                 \
  X(cutcp_same)            \
  X(fwht)                  \
  X(haar)                  \
  X(histogram256)          \
  X(jacobi)                \
  X(knapsack)              \
  X(lavamd)                \
  X(lbm)                   \
  X(lookup)                \
  X(lud)                   \
  X(maxpool)               \
  X(md)                    \
  X(median)                \
  X(mergesort)             \
  X(mergesort_same)        \
  X(montecarlo)            \
  X(murmur)                \
  X(nn)                    \
  X(pagerank)              \
  X(reduction)             \
  X(sad)                   \
  X(sgemm)                 \
  X(sobol)                 \
  X(stencil2d)             \
  X(streamcluster)         \
  X(triad)

#define PUBLIC_X(name) void twin_##name(const public_args *args);
PUBLIC_TWIN_MAP(PUBLIC_X)
#undef PUBLIC_X

#endif
