/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_LOWER_MEMORY_H
#define VYRE_LOWER_MEMORY_H

#include "lower/write.h"

/* The pass `memory`: from @p from into @p low, which has been begun. Does what
 * low->target lacks: narrow accesses become words, u64 becomes two u32. */
void vyre__memory_pass(vyre__low *low, const vyre__low *from,
                       vyre_arena *scratch);

#endif
