/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compiles LLVM IR to an object, by LLVM 19's C API, which is loaded when it is
 * first needed: a process whose kernels all come from the cache never has LLVM in
 * it. */
#ifndef VYRE_BACKEND_CPU_JIT_LLVM_COMPILE_H
#define VYRE_BACKEND_CPU_JIT_LLVM_COMPILE_H

#include <stdbool.h>
#include <stddef.h>

#include "vyre/memory.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/* Whether LLVM can be loaded; loads it. Threads: safe.
 * Errors: VYRE_UNSUPPORTED_FEATURE with what was looked for and the package;
 *         VYRE_OUT_OF_MEMORY if it is there and cannot be mapped. */
vyre_code vyre__jit_load(vyre_status *st);
/* The same from a file of that name only (NULL: wherever it is); "none" never
 * finds it. Once a process has LLVM, that is the one. */
vyre_code vyre__jit_load_from(const char *library, vyre_status *st);

/* Checks that there is address space to compile a text of that size, if the process
 * has a limit: LLVM ends the process when it runs out of memory. Threads: safe.
 * Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__jit_stack_size(size_t text_size, vyre_status *st);

/* Whether vyre__jit_load_from would find it, as far as can be told without
 * loading it, which takes long: there is a file, and vyre__jit_problem has
 * none. Once loading it has failed, false. Threads: safe. */
bool vyre__jit_is_available(const char *library);
/* Returns false if LLVM is not loaded yet and the process has no address space for
 * it. */
bool vyre__jit_fits(const char *library);

/* Why the file of that path cannot be LLVM (static), from a few bytes of it: no
 * shared library of x86-64, shorter than it says itself, without LLVM's functions.
 * NULL: it may be. That its own libraries are there, and that it is LLVM 19, only
 * loading it tells. @p needs gets the name of the library of LLVM that it stands
 * for, which has the functions then; "" if there is none. Threads: safe. */
enum { VYRE__JIT_NAME = 64 };
const char *vyre__jit_problem(const char *path, char needs[VYRE__JIT_NAME]);
/* The doubt of a file that loaders pass over. */
extern const char vyre__jit_other_machine[];

/* The file that @p name stands for in the loader's own list, which is the file
 * @p list; false: it is not there, or that is no list. Threads: safe. */
bool vyre__jit_listed(const char *list, const char *name, char *out,
                      size_t room);

/* "19.1.7" and what was opened, or NULL before vyre__jit_load. */
const char *vyre__jit_version(void);
const char *vyre__jit_library(void);

/* Around each use of LLVM, which is on threads that nobody waits for too: the end
 * of the process, which takes LLVM's own objects away, waits for those inside.
 * Errors: VYRE_KERNEL_COMPILE_FAILED when the process is ending. */
vyre_code vyre__jit_enter(vyre_status *st);
void vyre__jit_leave(void);
/* Between two steps, by who is inside: the process ends when this one is over.
 * Errors: as vyre__jit_enter. */
vyre_code vyre__jit_continue(vyre_status *st);
/* Once LLVM is loaded, before anyone is inside: what it makes from then on is not
 * destroyed at the end of the process, and what it has made only when all have
 * left. @p function is one of it. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__jit_guard_end(const void *function, vyre_status *st);

typedef enum vyre__jit_tier {
  VYRE__JIT_FULL,
  VYRE__JIT_BASELINE, /* a quarter of the time, slower code */
  VYRE__JIT_PLAIN,    /* variables stay in memory: time grows as the text does,
                          however many there are */
  VYRE__JIT_TIERS
} vyre__jit_tier;

typedef enum vyre__jit_form {
  VYRE__JIT_OBJECT,
  VYRE__JIT_ASSEMBLY,
  VYRE__JIT_OPTIMISED, /* LLVM IR after its passes */
} vyre__jit_form;

/* Compiles @p text (ends with a NUL that is not counted) for the processor of
 * @p cpu and @p features, names as LLVM has them. Threads: safe, at the same time
 * too.
 * Errors: VYRE_KERNEL_COMPILE_FAILED with LLVM's words; those of
 * vyre__jit_load; the writer's. */
vyre_code vyre__jit(const char *text, size_t size, const char *cpu,
                    const char *features, vyre__jit_tier tier,
                    vyre__jit_form form, vyre_writer writer, vyre_status *st);

#endif
