/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Builds LIR from a program: expression trees become values, locals become
 * values or variables, and an access gets a bounds check only if its index is
 * not proven.
 *
 * The same code expands functions of the libraries (mathlib, softlib) in place.
 * Every operation passes through lir->emit; see legalize_floats.c. */
#ifndef VYRE_LOWER_BUILD_H
#define VYRE_LOWER_BUILD_H

#include "analyze/ranges.h"
#include "lir/writer.h"

/* Writes the kernel of lir->program, which has no calls (analyze/inline/inline.h).
 * Failures are reported in lir->no_memory and lir->code_failed. */
void vyre__build_kernel(vyre__lir_writer *lir, const vyre__ranges *ranges,
                        vyre_arena *scratch);

/* Expands @p function of @p library in place and returns its result. The first
 * of the @p arguments are its parameters. The function must have one return, as
 * its last statement. Fails if it has more parameters than @p count or more
 * than VYRE__BUILD_LOCALS locals; the built-in libraries never do. */
enum { VYRE__BUILD_ARGUMENTS = 16, VYRE__BUILD_LOCALS = 256 };
vyre__val vyre__build_call(vyre__lir_writer *lir, const vyre_program *library,
                           const vyre__function *function,
                           const vyre__val *arguments, uint32_t count);

/* Emits a conversion of the language from type @p from to type @p to. */
vyre__val vyre__build_cast(vyre__lir_writer *lir, vyre_type from, vyre_type to,
                           vyre__val a);

#endif
