/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The flags of commands that compile one kernel of a file for a device. */
#ifndef VYRE_TOOLS_COMPILE_FLAGS_H
#define VYRE_TOOLS_COMPILE_FLAGS_H

#include "vyre/pipeline.h"

#include "args.h"

typedef struct compile_flags {
  const char *file, *kernel;
  const char *backend;
  vyre_compile_options options;
} compile_flags;

/* --kernel, --backend, --workgroup and --ulp-budget of @p command. */
bool compile_read_flags(const char *command, int count, char **words,
                        compile_flags *f, problem *wrong);

#endif
