/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the parts of the backend know of each other.
 *
 *   cpu.c       the table: devices, pipelines, the cache
 *   compile.c   program, lowered kernel, text, object
 *   plan.c      what a launch needs to know of a kernel
 *   run.c       a dispatch
 *   elf_loader.c    an object becomes code
 *   llvm_compile.c   text becomes an object, by LLVM
 *   machine.c   which processor it is
 *   pool.c      who runs it */
#ifndef VYRE_BACKEND_CPU_CPU_H
#define VYRE_BACKEND_CPU_CPU_H

#include "backend/cpu/jit/elf_loader.h"
#include "backend/cpu/jit/host_cpu.h"
#include "backend/cpu/jit/llvm_compile.h"
#include "backend/cpu/plan.h"
#include "backend/cpu/threads/deadline.h"
#include "backend/cpu/threads/pool.h"
#include "hal/backend.h"

/* Memory of whoever has a number of the pool, while they have it: kept from run
 * to run. */
typedef struct cpu_slot {
  _Alignas(64) unsigned char *memory;
  size_t size;
} cpu_slot;

typedef struct cpu_device {
  vyre_device base;
  const vyre__host_cpu *machine;
  uint32_t width;   /* 0: chosen for each kernel */
  const char *llvm; /* file of it; NULL: wherever it is */
  vyre__pool *pool;
  vyre__deadlines *watch;
  cpu_slot *slots; /* one a number of the pool; in `slot_block` */
  void *slot_block;
  size_t slot_bytes;
  atomic_uint clear_cost; /* of a chunk of memory that is cleared: the pool's */
} cpu_device;

/* Code, and what differs between one and another of the same kernel. */
typedef struct cpu_code {
  vyre__elf_object object;
  uint32_t width;
  uint64_t scratch_bytes; /* of one thread */
} cpu_code;

/* A uniform, which every launch copies before it runs. */
typedef struct cpu_uniform {
  uint32_t buffer;
  uint32_t length; /* elements that the program declares, and */
  uint64_t size;   /* their bytes */
  uint64_t at;     /* where the copy begins, among those of the launch */
} cpu_uniform;

typedef struct cpu_pipeline {
  vyre_pipeline base;
  cpu_plan plan;
  const cpu_uniform *uniforms; /* in the arena */
  uint32_t uniform_count;
  uint64_t uniform_bytes;         /* of all copies */
  _Atomic(const cpu_code *) code; /* what runs: one of these */
  cpu_code first;
  cpu_code full;      /* that took the place of a quick one; else empty */
  atomic_uint *costs; /* of a workgroup, one a phase: the pool's */
  const void *bytes;  /* of the object, in the arena, for the cache; or NULL */
  size_t size;
  bool is_less; /* `first` is quick code, which the full is to follow */
} cpu_pipeline;

/* Whether @p code, that runs now, is quick code. Threads: safe. */
static inline bool cpu_is_less(const cpu_pipeline *pipeline,
                               const cpu_code *code) {
  return pipeline->is_less && code == &pipeline->first;
}

/* Lowers the program of @p pipeline for its machine and spells it, in vectors of
 * @p width unless it is too large for that (0: chosen). Kernel and text (ends with a
 * NUL that is not counted) live in @p arena.
 * Errors: those of vyre__lower and vyre__emit_llvm; VYRE_UNSUPPORTED_FEATURE for
 * one that is too large. */
typedef struct cpu_text {
  const vyre__lir_kernel *kernel;
  vyre__spmd_info info;
  const char *text;
  size_t size;
  vyre__jit_tier tier; /* by its size alone: it may be asked for less */
} cpu_text;
vyre_code cpu_spell(const vyre_pipeline *pipeline, uint32_t width,
                    vyre_arena *arena, cpu_text *out, vyre_status *st);

/* Last step of a compile and of a load: lists the uniforms, and makes room for
 * the measured costs. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code cpu_ready(cpu_pipeline *pipeline, vyre_status *st);

/* Makes code of an object. */
vyre_code cpu_load(cpu_pipeline *pipeline, const void *bytes, size_t size,
                   vyre_status *st);

/* All of pipeline_init. */
vyre_code cpu_compile(cpu_pipeline *pipeline, vyre_status *st);

/* Code in another form, for people: "llvm", "llvm-optimised", "asm". */
vyre_code cpu_print(vyre_pipeline *pipeline, const char *form,
                    vyre_writer writer, vyre_status *st);

/* The table's run, and run_many. */
vyre_code cpu_run(vyre_pipeline *pipeline, vyre__launch *launch,
                  vyre_status *st);
vyre_code cpu_run_many(vyre_device *device, vyre__launch *first, size_t *done,
                       vyre_status *st);

#endif
