/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A file of kernels in text or binary form, or a package, with its
 * diagnostics. */
#ifndef VYRE_TOOLS_CLI_KERNEL_FILE_H
#define VYRE_TOOLS_CLI_KERNEL_FILE_H

#include "vyre/diagnostic.h"
#include "vyre/dispatch.h"
#include "vyre/module.h"
#include "vyre/package.h"

#include "io/json_out.h"
#include "io/read_file.h"

/* Largest kernel file in bytes; the limit of the library. */
#define KERNEL_LIMIT ((size_t)16 << 20)

/* A zeroed struct is empty. kernel_file_finish releases it. */
typedef struct kernel_file {
  input in;
  vyre_module *module;   /* of a text file */
  vyre_program *program; /* of a binary file */
  vyre_package *package; /* of a package, with its programs */
  vyre_program **programs;
  size_t program_count;
  vyre_diagnostics findings;
} kernel_file;

/* Reads and parses a file. Returns false with a problem, or without one if
 * the diagnostics say what is wrong. */
bool kernel_file_read(const char *path, kernel_file *out, problem *wrong);
/* Parses bytes that were read before and takes ownership of them. */
bool kernel_file_parse(input *in, kernel_file *out, problem *wrong);
void kernel_file_deinit(kernel_file *file);

/* Returns true if the file @p path starts like a package. */
bool is_package_file(const char *path);

size_t kernel_file_count(const kernel_file *file);
vyre_program *kernel_file_at(const kernel_file *file, size_t index);

/* Checks that the file has a kernel. A file without one is most likely the
 * wrong file. */
bool kernel_file_has_any(const kernel_file *file, problem *wrong);

/* Returns the kernel called @p name, or the only one if @p name is NULL. */
vyre_program *kernel_file_choose(const kernel_file *file, const char *name,
                                 problem *wrong);

/* Reads @p path and returns the kernel, which belongs to the file. On
 * failure prints the error and sets *code. */
vyre_program *kernel_file_open(const char *path, const char *kernel,
                               kernel_file *file, bool json, int *code);

/* Prints the diagnostics, or the problem if there is one. Returns the exit
 * code. */
int kernel_file_report(const kernel_file *file, const problem *wrong,
                       bool json);

/* Writes "findings":[...], "dropped":N. */
void json_findings(json_out *json, const vyre_diagnostics *findings);

#endif
