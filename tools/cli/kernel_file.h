/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A file of kernels, as text or in the binary form, and what is wrong with it. */
#ifndef VYRE_TOOLS_CLI_KERNEL_FILE_H
#define VYRE_TOOLS_CLI_KERNEL_FILE_H

#include "vyre/diagnostic.h"
#include "vyre/dispatch.h"
#include "vyre/module.h"

#include "io/json_out.h"
#include "io/read_file.h"

/* Most bytes of a kernel file; the library takes no more. */
#define KERNEL_LIMIT ((size_t)16 << 20)

/* Zeroed is empty. End it with kernel_file_finish. */
typedef struct kernel_file {
  input in;
  vyre_module *module;   /* text */
  vyre_program *program; /* binary */
  vyre_diagnostics findings;
} kernel_file;

/* Reads and parses. False with a problem, or without one if the findings say what
 * is wrong. */
bool kernel_file_read(const char *path, kernel_file *out, problem *wrong);
/* The same of bytes that are there already: takes them over. */
bool kernel_file_parse(input *in, kernel_file *out, problem *wrong);
void kernel_file_finish(kernel_file *file);

size_t kernel_file_count(const kernel_file *file);
vyre_program *kernel_file_at(const kernel_file *file, size_t index);

/* Whether there is a kernel; a file without one does nothing, so it is most likely
 * the wrong file. */
bool kernel_file_has_any(const kernel_file *file, problem *wrong);

/* The kernel with that name, or the only one if @p name is NULL. */
vyre_program *kernel_file_choose(const kernel_file *file, const char *name,
                                 problem *wrong);

/* Reads @p path and chooses. If anything is wrong, tells it and sets *code. The
 * program is the file's. */
vyre_program *kernel_file_open(const char *path, const char *kernel,
                               kernel_file *file, bool json, int *code);

/* Tells the findings, or the problem if there is one. Returns the exit code. */
int kernel_file_report(const kernel_file *file, const problem *wrong,
                       bool json);

/* "findings":[...], "dropped":N */
void json_findings(json_out *json, const vyre_diagnostics *findings);

#endif
