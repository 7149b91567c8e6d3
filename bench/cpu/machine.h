/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Describes the setting of a measurement: the machine, the device, the
 * peers. */
#ifndef VYRE_BENCH_CPU_MACHINE_H
#define VYRE_BENCH_CPU_MACHINE_H

/* Prints the head of a suite, at most 100 columns wide. */
void cpu_machine_print(const char *suite, const char *device);

/* Loads the peers and prints their versions. */
void cpu_peers_print(void);

/* Reports that a rival is missing and why: prints a line, adds an empty row. */
void cpu_missing(const char *suite, const char *rival, const char *why);

/* Reason why a peer in C is missing. */
extern const char cpu_peer_missing[];

#endif
