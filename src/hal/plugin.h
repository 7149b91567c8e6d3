/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Backends outside the library: makes a table of hal/backend.h from a public
 * one (vyre/backend.h). src/backend/plugin defines these functions. */
#ifndef VYRE_HAL_PLUGIN_H
#define VYRE_HAL_PLUGIN_H

#include "vyre/backend.h"

#include "hal/backend.h"

/* Checks @p table, and makes a backend that calls its functions.
 * Errors: VYRE_UNSUPPORTED_FEATURE for another version or size;
 * VYRE_INVALID_ARGUMENT; VYRE_OUT_OF_MEMORY. */
vyre_code vyre__plugin_create(vyre_allocator allocator,
                              const vyre_backend *table, vyre__backend **out,
                              vyre_status *st);
void vyre__plugin_destroy(vyre_allocator allocator, vyre__backend *backend);

#endif
