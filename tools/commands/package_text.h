/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lists the contents of packages, for `vyre build` and `vyre inspect`. */
#ifndef VYRE_TOOLS_COMMANDS_PACKAGE_TEXT_H
#define VYRE_TOOLS_COMMANDS_PACKAGE_TEXT_H

#include "vyre/package.h"

#include "io/json_out.h"

/* Writes a line for each kernel and each of its codes. */
void put_package(sink *out, const vyre_package *package);
/* Writes "kernels":[...]. */
void json_package(json_out *json, const vyre_package *package);

#endif
