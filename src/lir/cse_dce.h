/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_LIR_CSE_DCE_H
#define VYRE_LIR_CSE_DCE_H

#include "lir/writer.h"

/* The pass `tidy`, in place. Sets low->no_memory if there is none. */
void vyre__lir_cse_dce(vyre__lir_writer *low, vyre_arena *scratch);

#endif
