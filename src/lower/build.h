/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* From the language to instructions: trees become values, locals become values
 * or variables, every access gets the check that it needs and no other.
 *
 * The same code puts functions of the libraries (mathlib, softlib) in place,
 * through whatever low->emit does to operations: see numbers.c. */
#ifndef VYRE_LOWER_BUILD_H
#define VYRE_LOWER_BUILD_H

#include "analyze/ranges.h"
#include "lir/writer.h"

/* Writes the kernel of low->program, which has no calls (analyze/inline.h).
 * Failures are in low->no_memory and low->code_failed. */
void vyre__build_kernel(vyre__lir_writer *low, const vyre__ranges *ranges,
                        vyre_arena *scratch);

/* Writes @p function of @p library with @p arguments, of which the first ones are
 * its parameters, and gives its result. The function has one return, as its last
 * statement. One that has more parameters, or more locals than there is room
 * for, is refused: ours do not. */
enum { VYRE__BUILD_ARGUMENTS = 16, VYRE__BUILD_LOCALS = 256 };
vyre__val vyre__build_call(vyre__lir_writer *low, const vyre_program *library,
                           const vyre__function *function,
                           const vyre__val *arguments, uint32_t count);

/* Binary operation of the language on operands of type @p from, unsigned or
 * signed; and a conversion. Used by passes that make them. */
vyre__val vyre__build_cast(vyre__lir_writer *low, vyre_type from, vyre_type to,
                           vyre__val a);

#endif
