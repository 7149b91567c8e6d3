/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_LOWER_TIDY_H
#define VYRE_LOWER_TIDY_H

#include "lower/write.h"

/* The pass `tidy`, in place. Sets low->no_memory if there is none. */
void vyre__low_tidy(vyre__low *low, vyre_arena *scratch);

#endif
