/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The pass `numbers`: every operation becomes what the target does right. */
#ifndef VYRE_LOWER_LEGALIZE_FLOATS_H
#define VYRE_LOWER_LEGALIZE_FLOATS_H

#include "lir/writer.h"

/* Writes one operation in the form that low->target asks for: what low->emit is
 * during this pass and the ones after it. Operands are values of @p low. */
vyre__val vyre__numbers_emit(vyre__low *low, const vyre__low_inst *inst);

/* What is built into @p low, which has been begun, is that from the start. */
void vyre__numbers_begin(vyre__low *low);

/* A function of softlib in place. */
vyre__val vyre__soft_call(vyre__low *low, const char *name, vyre__val a,
                          vyre__val b, vyre__val c, vyre__val d);

/* Copies @p from, instruction by instruction, through low->emit; values and
 * variables get new numbers. @p low has been begun and is empty. */
void vyre__low_rewrite(vyre__low *low, const vyre__low *from,
                       vyre_arena *scratch);

/* The type by which values of @p type are held. */
static inline vyre_type vyre__numbers_type(const vyre__low *low,
                                           vyre_type type) {
  return type == VYRE_TYPE_F32 && low->target->f32_as_bits ? VYRE_TYPE_U32
                                                           : type;
}

#endif
