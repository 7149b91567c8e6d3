/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rivals that run a workload of the suite public: vyre, C, OpenCL. */
#ifndef VYRE_BENCH_PUBLIC_RIVAL_H
#define VYRE_BENCH_PUBLIC_RIVAL_H

#include <stdbool.h>

#include "vyre/status.h"

#include "workload.h"

/* A rival. bind() exits if it fails. */
typedef struct public_rival {
  const char *name;
  void *self; /* NULL: not installed */
  void (*bind)(void *self, public_workload *w);
  void (*launch)(void *self); /* runs all launches and waits */
  void (*unbind)(void *self);
} public_rival;

/* Opens the device "cpu" with backend options, as "cpu.threads=1". If it is not
 * available, self is NULL and @p st says why. */
public_rival public_vyre_open(const char *name, const char *options,
                              vyre_status *st);
void public_vyre_close(public_rival *rival);
/* Sets the tier of the kernels that are bound next: a vyre_tier. The default is
 * VYRE_TIER_OPTIMISED. */
void public_vyre_set_tier(const public_rival *rival, int tier);

/* Vector width and tier of the bound pipelines. Of several kernels, the one
 * that is launched last. */
typedef struct public_code {
  uint32_t width;
  bool is_baseline;
  int kernels; /* number of pipelines */
} public_code;
public_code public_vyre_code(const public_rival *rival);

/* Loads build/peers/NAME.so. Without the object, self is NULL. suffix: appended
 * to the name of the twin ("" or "_same"); the rival of a workload without such
 * a twin cannot be bound. */
public_rival public_peer_open(const char *name, const char *object,
                              const char *suffix, bool is_alone);
bool public_peer_has(const public_rival *rival, const public_workload *w);

/* Opens PoCL with or without threads. Without PoCL, self is NULL and *why says
 * why. */
public_rival public_opencl_open(const char *name, bool is_alone,
                                const char **why);

#endif
