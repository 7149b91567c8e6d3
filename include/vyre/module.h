/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/module.h
 *  Kernels from text. */
#ifndef VYRE_MODULE_H
#define VYRE_MODULE_H

#include <stddef.h>

#include "vyre/diagnostic.h"
#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/program.h"
#include "vyre/status.h"

/** The kernels of one file. Immutable. Threads: safe. */
typedef struct vyre_module vyre_module;

VYRE_BEGIN

/** Parses a file of kernels and checks names and types. What needs analysis
 *  (barriers in divergent code and the like) is vyre_program_validate's.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_module_release). On failure
 *             *out is NULL.
 *  Lifetime:  @p text and @p file are borrowed for the call.
 *  Threads:   safe.          Blocks: on the allocator only.
 *  Errors:    VYRE_INVALID_PROGRAM: @p diagnostics (may be NULL) has all
 *             findings, the status the first; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_module_parse(
    const char *text, size_t length, const char *file, vyre_allocator allocator,
    vyre_module **out, vyre_diagnostics *diagnostics, vyre_status *st);

/** Lets go of a module. Programs that were retained live on. NULL is fine.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API void vyre_module_release(vyre_module *module);

/** How many kernels there are, in the order of the file.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API size_t vyre_module_kernel_count(const vyre_module *module);

/** Kernel @p index, or NULL beyond the last. The module's: retain it to keep it
 *  longer.  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_program *vyre_module_kernel(const vyre_module *module,
                                          size_t index);

/** The kernel with that name, or NULL. The module's.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_program *vyre_module_find(const vyre_module *module,
                                        const char *name);

/** Lays out a file of kernels the way everybody's looks: comments, names and
 *  literals stay as they are, only white space changes. Formatting twice changes
 *  nothing.
 *  Ownership: *out (terminated) lives in @p arena; NULL on failure.
 *  Threads:   safe; the arena is compatible.   Blocks: on the allocator only.
 *  Errors:    VYRE_INVALID_PROGRAM if the text does not parse;
 *             VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_source_format(const char *text, size_t length, const char *file,
                   vyre_arena *arena, const char **out, size_t *out_length,
                   vyre_diagnostics *diagnostics, vyre_status *st);

VYRE_END

#endif
