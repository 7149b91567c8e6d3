/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Backend options of a context, such as "cpu.threads=2,cpu.width=8". */
#ifndef VYRE_RUNTIME_CORE_OPTIONS_H
#define VYRE_RUNTIME_CORE_OPTIONS_H

#include "hal/backend.h"
#include "runtime/core/context.h"

#define VYRE__FIELD_OPTIONS "backend_options"

/* Checks @p text against the options of the named backends, and appends it to
 * those of the context. The last value of a key counts. NULL and "" add
 * nothing. @p from is the environment variable that holds the text, which a
 * status then names; NULL: the program passed it. */
vyre_code vyre__options_add(vyre_context *context, const char *from,
                            const char *text, vyre_status *st);

/* Checks the options for the device's backend against its own table. The table
 * may differ from the registered one of the same name. */
vyre_code vyre__options_check(const vyre_device *device, vyre_status *st);

/* Stores the path of the LLVM library in the context: the option "cpu.llvm",
 * or without it @p name, the value of $VYRE_LLVM. NULL: none. The value "auto"
 * stores none. */
vyre_code vyre__llvm_set(vyre_context *context, const char *name,
                         vyre_status *st);

/* Returns an option like vyre_context_option. No argument may be NULL. */
uint64_t vyre__context_option(const vyre_context *context, const char *backend,
                              const char *key, uint64_t otherwise);

#endif
