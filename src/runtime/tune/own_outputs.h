/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Memory of the library for the outputs of a dispatch that runs once more. */
#ifndef VYRE_RUNTIME_TUNE_OWN_OUTPUTS_H
#define VYRE_RUNTIME_TUNE_OWN_OUTPUTS_H

#include "vyre/binding.h"
#include "vyre/dispatch.h"

#include "base/bytes.h"

enum { VYRE__OWN_OUTPUTS = 64 }; /* maximum number */

/* Returns the size of output @p index before the dispatch: given, or declared
 * by the program. */
uint64_t vyre__output_size(const vyre_binding_plan *plan,
                           const vyre_dispatch_desc *desc, size_t index);

/* Fills @p outputs with memory in @p bytes, one after the other.
 * Errors: VYRE_UNSUPPORTED_FEATURE for more than VYRE__OWN_OUTPUTS;
 * VYRE_OUT_OF_MEMORY. @p function: for messages. */
vyre_code vyre__own_outputs(const char *function, const vyre_binding_plan *plan,
                            const vyre_dispatch_desc *desc,
                            vyre_output outputs[VYRE__OWN_OUTPUTS],
                            vyre__bytes *bytes, vyre_status *st);

#endif
