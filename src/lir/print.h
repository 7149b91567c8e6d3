/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints one instruction as text, for messages. */
#ifndef VYRE_LIR_PRINT_H
#define VYRE_LIR_PRINT_H

#include "lir/lir.h"

enum { VYRE__LIR_TEXT = 160 };

/* Prints an instruction like a line of vyre__lir_print, without newline,
 * truncated to the buffer. @p number may be out of range and the kernel
 * invalid, since messages report such kernels. Returns @p buffer. */
const char *vyre__lir_text(const vyre__lir_kernel *kernel, uint32_t number,
                           char buffer[VYRE__LIR_TEXT]);

#endif
