/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Commands that compile one kernel of a file for a device. */
#ifndef VYRE_TOOLS_CLI_COMPILE_FLAGS_H
#define VYRE_TOOLS_CLI_COMPILE_FLAGS_H

#include "vyre/pipeline.h"

#include "cli/args.h"
#include "cli/kernel_file.h"
#include "cli/sink.h"

typedef struct compile_flags {
  const char *file, *kernel;
  const char *backend;
  vyre_compile_options options;
  bool explains; /* --why */
} compile_flags;

/* Parses --kernel, --backend, --workgroup and --ulp-budget of @p command. */
bool compile_read_flags(const char *command, int count, char **words,
                        compile_flags *f, problem *wrong);

/* The work of such a command: fills @p out. Returns false with diagnostics
 * in the file, or with a problem. */
typedef bool compile_action(const compile_flags *f, kernel_file *file,
                            vyre_program *program, bool json, sink *out,
                            problem *wrong);

/* Runs such a command from its flags to its output. Returns the exit code. */
int compile_command(const char *command, int count, char **words, bool json,
                    compile_action *action);

#endif
