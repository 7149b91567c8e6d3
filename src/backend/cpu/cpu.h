/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Types and functions shared by the files of the CPU backend.
 *
 *   cpu.c                 backend table: devices, pipelines
 *   compile.c             LIR to LLVM IR to object file, and loading that
 *   explain.c             why a width and a tier were chosen
 *   plan.c                launch data of a kernel, stored with its object file
 *   full_write.c          finds outputs that a kernel overwrites completely
 *   launch.c              one dispatch, or a batch of them
 *   waves.c               the groups of a wave graph
 *   queue.c               work queues
 *   portable.c            the x86-64 levels of packages
 *   optimise_wait.c       when optimised code is compiled in the background
 *   jit/llvm_compile.c    LLVM IR to object file
 *   jit/elf_loader.c      object file to callable code
 *   jit/host_cpu.c        processor detection
 *   jit/portable_cpu.c    processors that packages have code for
 *   threads/pool.c        thread pool
 *   threads/pool_region.c steps with a barrier between them
 *   threads/deadline.c    timeouts */
#ifndef VYRE_BACKEND_CPU_CPU_H
#define VYRE_BACKEND_CPU_CPU_H

#include "backend/cpu/jit/elf_loader.h"
#include "backend/cpu/jit/host_cpu.h"
#include "backend/cpu/jit/llvm_compile.h"
#include "backend/cpu/plan.h"
#include "backend/cpu/threads/deadline.h"
#include "backend/cpu/threads/pool.h"
#include "hal/backend.h"

/* Scratch memory of one thread number of the pool, reused from launch to
 * launch. Only the thread that holds the number uses it. */
typedef struct cpu_thread_scratch {
  _Alignas(64) unsigned char *memory;
  size_t size;
} cpu_thread_scratch;

/* Tunable settings of a pipeline. */
enum { CPU_TUNES_WIDTH, CPU_TUNES_THREADS, CPU_TUNES_TIER, CPU_TUNABLES };

typedef struct cpu_device {
  vyre_device base;
  const vyre__host_cpu *host_cpu;
  uint32_t width;      /* lanes of a vector; 0: chosen for each kernel */
  uint32_t passes_off; /* bits of vyre__optional_pass */
  vyre__pool *pool;
  vyre__deadlines *deadlines;
  cpu_thread_scratch *thread_scratch; /* for each thread number */
  void *thread_scratch_block;         /* allocation of that array */
  size_t thread_scratch_bytes;
  uint64_t wave_inline_ns; /* groups of a wave graph with at most this work run
                              on one thread */
  uint32_t queue_block;    /* items of a call for a work queue; 0: chosen */
  atomic_uint clear_cost;  /* cost estimate of clear() for the pool */
  /* Launches with baseline code: begun so far, and running. */
  _Atomic uint64_t baseline_launches;
  atomic_uint baseline_running;
} cpu_device;

/* Compiled code, with the launch data that differs between two tiers. */
typedef struct cpu_code {
  vyre__elf_object object;
  uint32_t width;
  uint64_t scratch_bytes; /* per thread */
} cpu_code;

/* A uniform buffer. Every launch copies it before the kernel starts. */
typedef struct cpu_uniform {
  uint32_t buffer;
  uint32_t length; /* elements declared by the program */
  uint64_t size;   /* bytes of these elements */
  uint64_t at;     /* offset of the copy in the launch's block of copies */
} cpu_uniform;

typedef struct cpu_pipeline cpu_pipeline;
struct cpu_pipeline {
  vyre_pipeline base;
  cpu_plan plan;
  const cpu_uniform *uniforms; /* in the arena */
  uint32_t uniform_count;
  uint32_t *sums; /* buffers of exact sums that the kernel changes */
  uint32_t sum_count;
  uint64_t uniform_bytes;         /* size of all copies */
  _Atomic(const cpu_code *) code; /* code in use: &first or &full */
  cpu_code first;
  cpu_code full;      /* optimised code that replaced `first`; empty before */
  atomic_uint *costs; /* for each phase: cost of a workgroup, for the pool */
  /* Time of finished launches with baseline code, and estimated rest of a
   * running one. */
  _Atomic uint64_t baseline_ns, baseline_rest_ns;
  /* For tests: called before each chunk of a launch with baseline code, whose
   * size is then chunk_groups workgroups. NULL: sized by time. */
  void (*before_chunk)(cpu_pipeline *pipeline, uint64_t first);
  uint64_t chunk_groups;
};

/* Returns true if @p code is the baseline code of @p pipeline.
 * Threads: safe. */
static inline bool cpu_is_baseline(const cpu_pipeline *pipeline,
                                   const cpu_code *code) {
  return pipeline->plan.numbers.is_replaced && code == &pipeline->first;
}

/* Loads LLVM as @p context says. Errors: as vyre__jit_load_from; the fix names
 * the setting that is in the way. */
vyre_code cpu_load_llvm(const vyre_context *context, vyre_status *st);

/* Compile entries of the backend table. The code prints as "llvm",
 * "llvm-optimised", "asm", "why" or "why-json". */
void cpu_target(const vyre_pipeline *pipeline, vyre__target *out);
vyre_code cpu_generate(const vyre_pipeline *pipeline,
                       const vyre__lir_kernel *kernel, vyre_arena *scratch,
                       vyre__bytes *artifact, vyre_status *st);
vyre_code cpu_load(vyre_pipeline *pipeline, const vyre__code_source *source,
                   vyre_status *st);
vyre_code cpu_print(const vyre_pipeline *pipeline,
                    const vyre__lir_kernel *kernel, vyre_arena *scratch,
                    const char *form, vyre_writer writer, vyre_status *st);

/* The targets of packages. */
extern const vyre__portable cpu_portable;

/* Implement optimise_is_due, optimise_begins and optimise_ends. */
bool cpu_optimise_is_due(vyre_pipeline *pipeline, vyre__optimise_wait *wait);
void cpu_optimise_begins(vyre_device *device);
void cpu_optimise_ends(vyre_device *device);

/* Implements execute. */
vyre_code cpu_execute(vyre__command_list *list, size_t first, size_t end,
                      size_t *done, vyre_status *st);

#endif
