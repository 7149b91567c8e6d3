/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Describes the floating-point arithmetic of a device to lowering. */
#ifndef VYRE_HAL_FLOAT_TARGET_H
#define VYRE_HAL_FLOAT_TARGET_H

#include "hal/float_ops.h"
#include "lir/lir.h"

/* Sets the float mode of each operation of @p out to the one that was probed,
 * and chooses the arithmetic of math functions: f64 only if @p out has it, and
 * if all f64 operations are exact. */
void vyre__target_set_floats(const vyre_float_op_info *probed,
                             vyre__target *out);

/* Returns the probed operations that choose the mode of @p op, as bits. */
uint64_t vyre__float_ops_of(vyre__lir_op op);

#endif
