/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The check that the dispatches of a batch do not overwrite each other's
 * memory. */
#ifndef VYRE_RUNTIME_DISPATCH_BATCH_OVERLAP_H
#define VYRE_RUNTIME_DISPATCH_BATCH_OVERLAP_H

#include "runtime/dispatch/prepared.h"

/* Compares the memory that each dispatch writes with the memory that all others
 * bind. *item: index of the one that is refused. */
vyre_code vyre__batch_check_overlap(vyre__prepared **prepared, size_t count,
                                    size_t *item, vyre_status *st);
/* Returns an id for bindings that no earlier batch of the device had. */
uint64_t vyre__batch_new_id(vyre_device *device);

#endif
