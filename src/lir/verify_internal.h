/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_LIR_VERIFY_INTERNAL_H
#define VYRE_LIR_VERIFY_INTERNAL_H

#include "lir/lir.h"

/* Returns true if a value may have @p type. */
bool vyre__verify_type(unsigned type);

/* Returns true if the operand may be absent (0): the condition of an access, or
 * the second operand of a function. */
bool vyre__verify_may_lack(const vyre__lir_inst *inst, unsigned operand);

/* Checks types and aux of an instruction. Returns a description of the error,
 * or NULL. The caller has checked that the operation exists, that operands (of
 * a LOOP too) are earlier instructions, and that only optional ones are
 * absent. */
const char *vyre__verify_types(const vyre__lir_kernel *k,
                               const vyre__lir_inst *inst);

#endif
