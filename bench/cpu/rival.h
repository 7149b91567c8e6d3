/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rivals that run a workload: vyre on a device, C with OpenMP, OpenCL. */
#ifndef VYRE_BENCH_CPU_RIVAL_H
#define VYRE_BENCH_CPU_RIVAL_H

#include <stdbool.h>

#include "vyre/vyre.h"

#include "workload.h"

/* A rival. bind() exits if it fails. */
typedef struct cpu_rival {
  const char *name;
  void *self; /* NULL: not installed */
  void (*bind)(void *self, cpu_workload *w);
  void (*launch)(void *self); /* launches once and waits */
  void (*unbind)(void *self);
} cpu_rival;

/* --- vyre ------------------------------------------------------------------*/

typedef struct cpu_vyre cpu_vyre;

/* Opens @p device with its default number of threads, or with one. Returns NULL
 * if it is not available; @p st says why. */
cpu_vyre *cpu_vyre_open(const char *device, bool is_alone, uint8_t ulp_budget,
                        vyre_status *st);
void cpu_vyre_close(cpu_vyre *v); /* accepts NULL */
cpu_rival cpu_vyre_rival(cpu_vyre *v, const char *name);

/* Compiles FILE.vyre, as binding a workload does; unbind releases it. */
void cpu_vyre_compile(cpu_vyre *v, const char *file);
vyre_pipeline *cpu_vyre_pipeline(const cpu_vyre *v);
vyre_device *cpu_vyre_device(const cpu_vyre *v);

/* Returns the text of bench/cpu/NAME.EXTENSION; the caller frees it. */
char *cpu_text(const char *name, const char *extension);

/* Returns the device to measure: $VYRE_BENCH_DEVICE, or "cpu". "none" measures
 * the peers alone. */
const char *cpu_device_name(void);

/* --- C ---------------------------------------------------------------------*/

/* Loads build/peers/NAME.so, or returns NULL. It stays loaded. */
const cpu_peer *cpu_peer_load(const char *name);
cpu_rival cpu_peer_rival(const cpu_peer *peer, const char *name);

/* --- OpenCL ----------------------------------------------------------------*/

typedef struct cpu_opencl cpu_opencl;

/* Opens PoCL's device whose name begins with @p driver ("pthread", "basic").
 * Returns NULL if it is missing; *why then says why. It stays open. */
cpu_opencl *cpu_opencl_open(const char *driver, const char **why);
const char *cpu_opencl_version(const cpu_opencl *cl);
cpu_rival cpu_opencl_rival(cpu_opencl *cl, const char *name);

/* Enqueue the bound kernel without waiting; wait. */
void cpu_opencl_enqueue(cpu_opencl *cl);
void cpu_opencl_finish(cpu_opencl *cl);

/* Compiles all kernels again and runs each once, until they are ready. */
void cpu_opencl_build(cpu_opencl *cl);

/* Binds the kernel `pieces` with @p count items. */
void cpu_opencl_bind_pieces(cpu_opencl *cl, uint32_t *out, uint32_t count,
                            uint32_t rounds);

#endif
