/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the figures are of: the machine, the device, the peers. */
#ifndef VYRE_BENCH_CPU_MACHINE_H
#define VYRE_BENCH_CPU_MACHINE_H

/* Prints the head of a suite: a few lines, at most 100 columns. */
void cpu_machine_print(const char *suite, const char *device);

/* A line of the peers and their versions. Loads them. */
void cpu_peers_print(void);

/* Says that a rival is not there and why: a line, and a row without figures. */
void cpu_missing(const char *suite, const char *who, const char *why);

/* Why a peer in C is not there. */
extern const char cpu_peer_missing[];

#endif
