/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_LIR_CSE_DCE_H
#define VYRE_LIR_CSE_DCE_H

#include "lir/writer.h"

/* Runs the pass `cse-dce` in place: removes common subexpressions and dead
 * code. Sets lir->no_memory if memory runs out. */
void vyre__lir_cse_dce(vyre__lir_writer *lir, vyre_arena *scratch);

#endif
