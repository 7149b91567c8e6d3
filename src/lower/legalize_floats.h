/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The pass `legalize-floats`: replaces every operation by operations that the
 * target computes exactly. */
#ifndef VYRE_LOWER_LEGALIZE_FLOATS_H
#define VYRE_LOWER_LEGALIZE_FLOATS_H

#include "lir/writer.h"

/* Writes one operation in the float mode of lir->target. This is lir->emit
 * during this pass and later ones. Operands are values of @p lir. */
vyre__val vyre__legalize_float_op(vyre__lir_writer *lir,
                                  const vyre__lir_inst *inst);

/* Makes the empty writer @p lir legalise every operation during writing. */
void vyre__legalize_floats_begin(vyre__lir_writer *lir);

/* Fails because the target has no f64, which @p line of the source uses. */
vyre_code vyre__no_f64(uint32_t line, vyre_status *st);

/* Expands a softlib function in place. */
vyre__val vyre__soft_call(vyre__lir_writer *lir, const char *name, vyre__val a,
                          vyre__val b, vyre__val c, vyre__val d);

/* Copies @p from, instruction by instruction, through lir->emit. Values and
 * variables get new indices. @p lir must be empty. */
void vyre__lir_rewrite(vyre__lir_writer *lir, const vyre__lir_writer *from,
                       vyre_arena *scratch);

/* Returns the type that represents values of @p type. */
static inline vyre_type vyre__legalized_float_type(const vyre__lir_writer *lir,
                                                   vyre_type type) {
  return type == VYRE_TYPE_F32 && lir->target->f32_as_bits ? VYRE_TYPE_U32
                                                           : type;
}

#endif
