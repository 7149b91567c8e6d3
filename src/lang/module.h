/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_LANG_MODULE_H
#define VYRE_LANG_MODULE_H

#include "vyre/module.h"

#include "lang/lex.h"

/* Whether a text can be read at all: its size, NUL bytes, UTF-8. Adds a finding
 * (V001) and gives VYRE_INVALID_PROGRAM if it cannot; VYRE_OUT_OF_MEMORY. */
vyre_code vyre__source_accept(const char *text, size_t length,
                              vyre_diagnostics *diagnostics);

#endif
