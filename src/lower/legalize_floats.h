/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The pass `numbers`: every operation becomes what the target does right. */
#ifndef VYRE_LOWER_LEGALIZE_FLOATS_H
#define VYRE_LOWER_LEGALIZE_FLOATS_H

#include "lir/writer.h"

/* Writes one operation in the form that low->target asks for: what low->emit is
 * during this pass and the ones after it. Operands are values of @p low. */
vyre__val vyre__legalize_float_op(vyre__lir_writer *low,
                                  const vyre__lir_inst *inst);

/* What is built into @p low, which has been begun, is that from the start. */
void vyre__legalize_floats_begin(vyre__lir_writer *low);

/* A function of softlib in place. */
vyre__val vyre__soft_call(vyre__lir_writer *low, const char *name, vyre__val a,
                          vyre__val b, vyre__val c, vyre__val d);

/* Copies @p from, instruction by instruction, through low->emit; values and
 * variables get new numbers. @p low has been begun and is empty. */
void vyre__lir_rewrite(vyre__lir_writer *low, const vyre__lir_writer *from,
                       vyre_arena *scratch);

/* The type by which values of @p type are held. */
static inline vyre_type vyre__legalized_float_type(const vyre__lir_writer *low,
                                                   vyre_type type) {
  return type == VYRE_TYPE_F32 && low->target->f32_as_bits ? VYRE_TYPE_U32
                                                           : type;
}

#endif
