/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks of the memory that a dispatch binds. */
#ifndef VYRE_RUNTIME_DISPATCH_BIND_MEMORY_H
#define VYRE_RUNTIME_DISPATCH_BIND_MEMORY_H

#include "runtime/dispatch/prepared.h"

/* Checks that no memory is bound twice if something writes it, and fills in the
 * copy report. The bindings are resolved. */
vyre_code vyre__prepared_check_memory(vyre__prepared *prepared,
                                      vyre_status *st);
/* Checks require_zero_copy against the copy report. */
vyre_code vyre__prepared_check_copies(const vyre__prepared *prepared,
                                      vyre_status *st);

#endif
