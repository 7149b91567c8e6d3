/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_LANG_MODULE_H
#define VYRE_LANG_MODULE_H

#include "vyre/module.h"

#include "lang/lex.h"

/* Checks that a text can be read: size, NUL bytes, UTF-8. Otherwise adds
 * diagnostic V001 and returns VYRE_INVALID_PROGRAM. Errors:
 * VYRE_OUT_OF_MEMORY. */
vyre_code vyre__source_accept(const char *text, size_t length,
                              vyre_diagnostics *diagnostics);

#endif
