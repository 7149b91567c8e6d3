/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compiles LLVM IR to an object file through the C API of LLVM 19. LLVM is
 * loaded when it is first needed: a process whose kernels all come from the
 * cache never loads it. */
#ifndef VYRE_BACKEND_CPU_JIT_LLVM_COMPILE_H
#define VYRE_BACKEND_CPU_JIT_LLVM_COMPILE_H

#include <stdbool.h>
#include <stddef.h>

#include "vyre/memory.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/* Loads LLVM from its default locations. Threads: safe.
 * Errors: VYRE_UNSUPPORTED_FEATURE with the names searched for and the package
 * to install; VYRE_OUT_OF_MEMORY if there is not enough address space. */
vyre_code vyre__jit_load(vyre_status *st);
/* Loads LLVM from the file @p library (NULL: the default locations). "none"
 * always fails. A process loads LLVM once; later calls succeed without looking
 * at the file. Threads: safe. Errors: as vyre__jit_load. */
vyre_code vyre__jit_load_from(const char *library, vyre_status *st);

/* Checks that the process has the address space to compile a text of that size,
 * if it has a limit. LLVM would end the process when it runs out of memory.
 * Threads: safe. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__jit_check_memory(size_t text_size, vyre_status *st);

/* Returns true if LLVM is available. For the default locations (NULL), finds a
 * file that vyre__jit_problem accepts, without loading it, which takes long. A
 * file given by name is loaded: only that shows whether it is LLVM 19. Returns
 * false once loading has failed. Threads: safe. */
bool vyre__jit_is_available(const char *library);
/* Returns false if LLVM is not loaded yet and the process lacks the address
 * space to load it. */
bool vyre__jit_fits(const char *library);

/* Returns a reason why the file cannot be loaded (static text): unreadable, not
 * a shared library for x86-64, or shorter than its headers say. NULL: it may be
 * LLVM; loading it shows the rest. Threads: safe. */
const char *vyre__jit_problem(const char *path);
/* The reason for which the loader, too, skips a file. */
extern const char vyre__jit_other_machine[];

/* Return the version, such as "19.1.7", and the name LLVM was opened with, or
 * NULL before it is loaded. */
const char *vyre__jit_version(void);
const char *vyre__jit_library(void);

/* Enter and leave LLVM. Every use is enclosed by these calls: the end of the
 * process destroys LLVM's objects, and waits until all threads have left.
 * Errors: VYRE_KERNEL_COMPILE_FAILED if the process is ending. */
vyre_code vyre__jit_enter(vyre_status *st);
void vyre__jit_leave(void);
/* Checks between two steps of a compile that the process is not ending;
 * otherwise the thread must leave. Errors: as vyre__jit_enter. */
vyre_code vyre__jit_continue(vyre_status *st);
/* Sets up the end of the process. Called once LLVM is loaded, before any thread
 * enters. Objects that LLVM creates afterwards are not destroyed; older ones
 * are destroyed when all threads have left. @p function: any function of LLVM.
 * Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__jit_guard_end(const void *function, vyre_status *st);

typedef enum vyre__jit_tier {
  VYRE__JIT_FULL,
  VYRE__JIT_BASELINE, /* a quarter of the compile time, slower code */
  VYRE__JIT_FIRST,    /* a little faster still: code that is replaced soon */
  VYRE__JIT_PLAIN,    /* variables stay in memory: compile time is linear in the
                         size of the text */
  VYRE__JIT_TIERS
} vyre__jit_tier;

typedef enum vyre__jit_form {
  VYRE__JIT_OBJECT,
  VYRE__JIT_ASSEMBLY,
  VYRE__JIT_OPTIMISED, /* LLVM IR after the passes */
} vyre__jit_form;

/* Compiles @p text for the processor @p cpu with @p features, in LLVM's terms.
 * The text ends with a NUL that @p size does not count.
 * Threads: safe; calls run in parallel.
 * Errors: VYRE_KERNEL_COMPILE_FAILED with LLVM's message; those of
 * vyre__jit_load and of the writer. */
vyre_code vyre__jit(const char *text, size_t size, const char *cpu,
                    const char *features, vyre__jit_tier tier,
                    vyre__jit_form form, vyre_writer writer, vyre_status *st);

/* Writes code of a kernel. Fails if the writer does not take all of it. */
vyre_code vyre__jit_write(vyre_writer writer, const char *bytes, size_t size,
                          vyre_status *st);

/* Compiles @p text to an object file, like vyre__jit. *stack_bytes gets the
 * largest stack frame of a function if that is above @p max_stack_bytes; else
 * 0. */
vyre_code vyre__jit_object(const char *text, size_t size, const char *cpu,
                           const char *features, vyre__jit_tier tier,
                           uint32_t max_stack_bytes, uint64_t *stack_bytes,
                           vyre_writer writer, vyre_status *st);

#endif
