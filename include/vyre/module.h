/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/module.h
 *  Modules: kernels parsed from text, and the source formatter. */
#ifndef VYRE_MODULE_H
#define VYRE_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/diagnostic.h"
#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/program.h"
#include "vyre/status.h"

/** Kernels of one source file. Immutable. Threads: safe. */
typedef struct vyre_module vyre_module;

/** Value for one `override` of a module. */
typedef struct vyre_define {
  const char *name;     /* of the override */
  const char *value;    /* literal, as in the text form; for a type its name */
  uint64_t reserved[2]; /* must be zero */
} vyre_define;

/** Reads an imported file. @p path is the folder of the importing file, or an
 *  entry of `import_folders`, and the path of the import below it, without "."
 *  and "..". Sets *text and *length; the text may be allocated in @p arena and
 *  stays unchanged for the call that parses. Returns false if it
 *  cannot be read. */
typedef bool (*vyre_import_read)(void *context, const char *path,
                                 vyre_arena *arena, const char **text,
                                 size_t *length);

/** Options of functions that parse a source file. Zeroed: the defaults. */
typedef struct vyre_module_options {
  const vyre_define *defines; /* values of overrides; each name at most once */
  size_t define_count;        /* entries of `defines` */
  vyre_import_read import_read; /* NULL: imports are refused */
  void *import_context;         /* first argument of `import_read` */
  /* Folders for imports that the folder of the importing file does not have. */
  const char *const *import_folders;
  size_t import_folder_count; /* entries of `import_folders` */
  uint64_t reserved[2];       /* must be zero */
} vyre_module_options;

VYRE_BEGIN

/** Parses a source file and checks its names and types. Rules that need
 *  analysis, such as barriers in divergent code, are checked by
 *  vyre_program_validate.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_module_release). On
 *             failure *out is NULL.
 *  Lifetime:  @p text and @p file are borrowed for the call.
 *  Threads:   safe.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_INVALID_PROGRAM: @p diagnostics (may be NULL) receives all
 *             errors, the status the first one; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_module_parse(
    const char *text, size_t length, const char *file, vyre_allocator allocator,
    vyre_module **out, vyre_diagnostics *diagnostics, vyre_status *st);

/** Parses a source file as vyre_module_parse, with values for its overrides and
 *  with imports. A kernel is the same program as if the values and the imported
 *  declarations were in the text.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_module_release). On
 *             failure *out is NULL.
 *  Lifetime:  @p text, @p file and @p options are borrowed for the call. @p
 *             options may be NULL.
 *  Threads:   safe.
 *  Blocks:    on the allocator only.
 *  Errors:    as vyre_module_parse; VYRE_INVALID_ARGUMENT if the file has no
 *             override of a name, or a name is given twice. */
VYRE_API VYRE_NODISCARD vyre_code vyre_module_parse_with(
    const char *text, size_t length, const char *file,
    const vyre_module_options *options, vyre_allocator allocator,
    vyre_module **out, vyre_diagnostics *diagnostics, vyre_status *st);

/** Frees a module. Programs that were retained stay valid. Accepts NULL.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API void vyre_module_release(vyre_module *module);

/** Returns the number of kernels.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API size_t vyre_module_kernel_count(const vyre_module *module);

/** Returns kernel @p index, in source order, or NULL after the last. Owned by
 *  the module; retain it to keep it longer.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_program *vyre_module_kernel(const vyre_module *module,
                                          size_t index);

/** Returns the kernel called @p name, or NULL. Owned by the module.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_program *vyre_module_find(const vyre_module *module,
                                        const char *name);

/** Formats a source file in the standard style. Changes white space only;
 *  formatting twice changes nothing.
 *  Ownership: *out (zero-terminated) lives in @p arena; NULL on failure.
 *  Threads:   safe; the arena is compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_INVALID_PROGRAM if the text does not parse;
 *             VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_source_format(const char *text, size_t length, const char *file,
                   vyre_arena *arena, const char **out, size_t *out_length,
                   vyre_diagnostics *diagnostics, vyre_status *st);

/** Formats a source file as vyre_source_format, with imports. Values of
 *  overrides in @p options, which may be NULL, change nothing.
 *  Ownership: as vyre_source_format.
 *  Threads:   safe; the arena is compatible.
 *  Blocks:    on the allocator and `import_read`.
 *  Errors:    as vyre_source_format. */
VYRE_API VYRE_NODISCARD vyre_code vyre_source_format_with(
    const char *text, size_t length, const char *file,
    const vyre_module_options *options, vyre_arena *arena, const char **out,
    size_t *out_length, vyre_diagnostics *diagnostics, vyre_status *st);

VYRE_END

#endif
