/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_LOWER_LEGALIZE_MEMORY_H
#define VYRE_LOWER_LEGALIZE_MEMORY_H

#include "lir/writer.h"

/* Returns whether the pass `memory` changes anything for that target. */
bool vyre__legalize_memory_is_needed(const vyre__target *target,
                                     const vyre__lir_writer *low);

/* The pass `memory`: from @p from into @p low, which has been begun. Replaces what
 * low->target lacks: narrow accesses become words, u64 becomes two u32, and an
 * atomic_add of 64 bits becomes two of 32 bits where that is exact. */
void vyre__legalize_memory(vyre__lir_writer *low, const vyre__lir_writer *from,
                           vyre_arena *scratch);

#endif
