/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A launch of compiled code, and what waves.c needs of launch.c. */
#ifndef VYRE_BACKEND_CPU_LAUNCH_H
#define VYRE_BACKEND_CPU_LAUNCH_H

#include "backend/cpu/cpu.h"

enum { CPU_VIEWS_ON_STACK = 24, CPU_UNIFORMS_ON_STACK = 128 };

/* State of one launch. */
typedef struct cpu_launch {
  cpu_pipeline *pipeline;
  cpu_device *device;
  vyre__launch *launch;
  vyre__spmd_launch *block;
  unsigned char
      *uniforms; /* CPU_UNIFORMS_ON_STACK bytes for copies of uniforms */
  uint64_t groups;
  const vyre__pool_session *session; /* of a batch, which also has set the
                                        floating-point state; or NULL */
  uint32_t upcoming; /* launches after this one in the session */
  uint32_t phase;
  bool clears;     /* some output must start as zero */
  bool has_copies; /* some buffer was copied to aligned memory */
  /* With baseline code: start of the phase, and workgroups that are done. */
  uint64_t phase_ns;
  _Atomic uint64_t groups_done;
  atomic_uint stop; /* set when the deadline passes; used only with one */
} cpu_launch;

/* Prepares a launch that runs many times. @p block has space for the buffers of
 * the pipeline, at most CPU_VIEWS_ON_STACK, and @p uniforms for its uniforms, at
 * most CPU_UNIFORMS_ON_STACK bytes; more is allocated from launch->scratch. */
vyre_code cpu_launch_fill(cpu_launch *l, vyre__launch *launch,
                          vyre__spmd_launch *block, unsigned char *uniforms,
                          const atomic_uint *stop, vyre_status *st);
/* Returns true if the launch overwrites all outputs that begin as zeros. */
bool cpu_launch_clears_nothing(const cpu_launch *l);
/* Runs workgroups of the current phase. Returns 0, or the value for
 * cpu_launch_failed. */
uint32_t cpu_launch_run(cpu_launch *l, uint64_t first, uint64_t count,
                        uint32_t number);
/* Calls the kernel for workgroups of the current phase. Returns as
 * cpu_launch_run. */
uint32_t cpu_launch_call(const cpu_launch *l, uint64_t first, uint64_t count,
                         uint32_t number);
vyre_code cpu_launch_failed(const cpu_launch *l, uint32_t result,
                            vyre_status *st);
/* Runs one launch with all threads. */
vyre_code cpu_launch_execute(vyre__launch *launch, vyre_status *st);

/* Entries of the backend table for lists with groups (waves.c). */
vyre_code cpu_execute_groups(vyre__command_list *list, size_t *done,
                             vyre_status *st);
uint32_t cpu_wave_threads(const vyre_device *device);
void cpu_wave_release(vyre__command_list *list);

/* Entries of the backend table for work queues (queue.c). */
void cpu_queue_plan(const vyre_device *device, vyre__queue_info *info);
vyre_code cpu_queue_drain(vyre__drain *drain, vyre_status *st);

#endif
