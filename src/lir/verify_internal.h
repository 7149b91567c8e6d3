/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_LIR_VERIFY_INTERNAL_H
#define VYRE_LIR_VERIFY_INTERNAL_H

#include "lir/lir.h"

/* Whether it is one that values may have. */
bool vyre__verify_type(unsigned type);

/* Whether the operand may be 0: the condition of an access, the second one of a
 * function. */
bool vyre__verify_may_lack(const vyre__lir_inst *inst, unsigned operand);

/* What is wrong with the types or the aux of an instruction, or NULL. Its
 * operation exists, its operands (those of a LOOP too) are instructions before
 * it, and lack only where they may. */
const char *vyre__verify_types(const vyre__lir_kernel *k,
                               const vyre__lir_inst *inst);

#endif
