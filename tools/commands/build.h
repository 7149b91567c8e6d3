/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Packages of the kernels of a file, for `vyre build` and `vyre embed`. */
#ifndef VYRE_TOOLS_COMMANDS_BUILD_H
#define VYRE_TOOLS_COMMANDS_BUILD_H

#include "cli/kernel_file.h"
#include "cli/sink.h"

/* Compiles all kernels of @p file, and writes a package to @p out. Returns false
 * with diagnostics in the file, or with a problem. */
bool build_package(kernel_file *file, const vyre_package_options *options,
                   sink *out, problem *wrong);

#endif
