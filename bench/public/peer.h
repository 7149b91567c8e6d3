/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Table of functions of a peer in C: the kernels of the suite public as loops.
 *
 * cpu/peers.sh compiles the twins with several compilers, each into a shared
 * object that the benchmark loads. */
#ifndef VYRE_BENCH_PUBLIC_PEER_H
#define VYRE_BENCH_PUBLIC_PEER_H

#include <stddef.h>
#include <stdint.h>

enum { PUBLIC_BUFFERS = 8, PUBLIC_NUMBERS = 4 };

/* Arguments: the buffers of the workload, and its sizes. */
typedef struct public_args {
  void *buffers[PUBLIC_BUFFERS];
  int numbers[PUBLIC_NUMBERS];
} public_args;

/* A twin. A name that ends with "_same" uses the algorithm of the GPU kernel
 * where the other twin has one that is made for processors. */
typedef struct public_twin {
  const char *name;
  void (*run)(const public_args *args);
} public_twin;

typedef struct public_peer {
  const char *compiler; /* name and version */
  void (*threads)(int count);
  const public_twin *twins;
  size_t twin_count;
} public_peer;

/* The only exported symbol of a peer. */
#define PUBLIC_PEER_SYMBOL "public_peer_table"

#endif
