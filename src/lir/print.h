/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The text of one instruction, for messages. */
#ifndef VYRE_LIR_PRINT_H
#define VYRE_LIR_PRINT_H

#include "lir/lir.h"

enum { VYRE__LIR_TEXT = 160 };

/* As a line of vyre__lir_print, without its end; cut off if it does not fit.
 * @p number may be any, and the kernel may be wrong: that is when messages are
 * made. Returns @p buffer. */
const char *vyre__lir_text(const vyre__lir_kernel *kernel, uint32_t number,
                           char buffer[VYRE__LIR_TEXT]);

#endif
