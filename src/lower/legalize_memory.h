/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_LOWER_LEGALIZE_MEMORY_H
#define VYRE_LOWER_LEGALIZE_MEMORY_H

#include "lir/writer.h"

/* Returns true if the pass `legalize-memory` changes anything for @p target. */
bool vyre__legalize_memory_is_needed(const vyre__target *target,
                                     const vyre__lir_writer *lir);

/* Runs the pass `legalize-memory` from @p from into the empty writer @p lir. It
 * replaces accesses that lir->target lacks: narrow elements become words, u64
 * becomes two u32, and a 64-bit atomic_add becomes two 32-bit ones where that
 * is exact. */
void vyre__legalize_memory(vyre__lir_writer *lir, const vyre__lir_writer *from,
                           vyre_arena *scratch);

#endif
