/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/version.h
 *  Version of vyre. docs/reference/compatibility.md explains what the numbers promise. */
#ifndef VYRE_VERSION_H
#define VYRE_VERSION_H

#include <stdint.h>

#include "vyre/export.h"

#define VYRE_VERSION_MAJOR  0
#define VYRE_VERSION_MINOR  1
#define VYRE_VERSION_PATCH  0
#define VYRE_VERSION_STRING "0.1.0"

VYRE_BEGIN

/** Returns the version of the loaded library as major * 1000000 + minor * 1000
 *  + patch. The macros give the version of the headers, which may differ.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API uint32_t vyre_version(void);

/** Returns the version of the loaded library as text ("0.1.0"). Static
 *  storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_version_string(void);

VYRE_END

#endif
