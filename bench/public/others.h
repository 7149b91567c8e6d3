/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Workloads without a twin. */
#ifndef VYRE_BENCH_PUBLIC_OTHERS_H
#define VYRE_BENCH_PUBLIC_OTHERS_H

#include "workload.h"

/* Makes workload @p index of the suite cpu.kernels. */
void public_wrap_cpu(public_workload *w, int index);

extern const public_entry public_examples[];
extern const int public_example_count;

#endif
