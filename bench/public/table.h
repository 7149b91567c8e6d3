/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Table of a peer, for the one file that defines it. */
#ifndef VYRE_BENCH_PUBLIC_TABLE_H
#define VYRE_BENCH_PUBLIC_TABLE_H

#include <omp.h>

#include "peer.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static void set_threads(int count) {
  omp_set_num_threads(count);
}

/* Defines the table of a peer from its array `twins`. */
#define PUBLIC_PEER_TABLE                                              \
  extern const public_peer public_peer_table;                          \
  const public_peer public_peer_table = {COMPILER, set_threads, twins, \
                                         sizeof twins / sizeof twins[0]};

#endif
