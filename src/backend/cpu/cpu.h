/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Types and functions shared by the files of the CPU backend.
 *
 *   cpu.c                 backend table: devices, pipelines, cache entries
 *   compile.c             program to LIR to LLVM IR to object file
 *   plan.c                launch data of a kernel, saved with its object file
 *   full_write.c          finds outputs that a kernel overwrites completely
 *   launch.c              one dispatch, or a batch of them
 *   jit/llvm_compile.c    LLVM IR to object file
 *   jit/elf_loader.c      object file to callable code
 *   jit/host_cpu.c        processor detection
 *   threads/pool.c        thread pool
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

typedef struct cpu_device {
  vyre_device base;
  const vyre__host_cpu *host_cpu;
  uint32_t width;   /* lanes of a vector; 0: chosen for each kernel */
  const char *llvm; /* file of LLVM; NULL: the default search */
  vyre__pool *pool;
  vyre__deadlines *deadlines;
  cpu_thread_scratch *thread_scratch; /* for each thread number */
  void *thread_scratch_block;         /* allocation of that array */
  size_t thread_scratch_bytes;
  atomic_uint clear_cost; /* cost estimate of clear() for the pool */
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

typedef struct cpu_pipeline {
  vyre_pipeline base;
  cpu_plan plan;
  const cpu_uniform *uniforms; /* in the arena */
  uint32_t uniform_count;
  uint64_t uniform_bytes;         /* size of all copies */
  _Atomic(const cpu_code *) code; /* code in use: &first or &full */
  cpu_code first;
  cpu_code full;      /* optimised code that replaced `first`; empty before */
  atomic_uint *costs; /* for each phase: cost of a workgroup, for the pool */
  const void *bytes;  /* object file in the arena, for the cache; or NULL */
  size_t size;
  bool first_is_baseline; /* optimised code replaces `first` later */
} cpu_pipeline;

/* Returns true if @p code is the baseline code of @p pipeline.
 * Threads: safe. */
static inline bool cpu_is_baseline(const cpu_pipeline *pipeline,
                                   const cpu_code *code) {
  return pipeline->first_is_baseline && code == &pipeline->first;
}

/* LLVM IR of a kernel. */
typedef struct cpu_text {
  const vyre__lir_kernel *kernel;
  vyre__spmd_info info;
  const char *text;
  size_t size;
  vyre__jit_tier tier;  /* best tier for a text of this size */
  uint64_t stack_bytes; /* stack frame of its code, if too large; else 0 */
} cpu_text;

/* Lowers the program of @p pipeline for its device and prints it as LLVM IR
 * with vectors of @p width (0: chosen). A very large kernel gets narrower
 * vectors. The kernel and the text live in @p arena; a NUL that is not counted
 * ends the text.
 * Errors: those of vyre__lower and vyre__emit_llvm; VYRE_UNSUPPORTED_FEATURE if
 * the kernel is too large. */
vyre_code cpu_emit_text(const vyre_pipeline *pipeline, uint32_t width,
                        vyre_arena *arena, cpu_text *out, vyre_status *st);

/* Last step of a compile and of a load from the cache: lists the uniforms and
 * allocates the cost estimates. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code cpu_init_launch_data(cpu_pipeline *pipeline, vyre_status *st);

/* Loads the object file @p bytes as the first code of @p pipeline. */
vyre_code cpu_load(cpu_pipeline *pipeline, const void *bytes, size_t size,
                   vyre_status *st);

/* Compiles the program of @p pipeline. Implements pipeline_init. */
vyre_code cpu_compile(cpu_pipeline *pipeline, vyre_status *st);

/* Prints the code as "llvm", "llvm-optimised" or "asm". */
vyre_code cpu_print(vyre_pipeline *pipeline, const char *form,
                    vyre_writer writer, vyre_status *st);

/* Run one launch, and a linked list of launches. */
vyre_code cpu_run(vyre_pipeline *pipeline, vyre__launch *launch,
                  vyre_status *st);
vyre_code cpu_run_batch(vyre_device *device, vyre__launch *first, size_t *done,
                        vyre_status *st);

#endif
