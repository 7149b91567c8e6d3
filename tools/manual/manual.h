/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Generated documentation: manual pages and shell completions. */
#ifndef VYRE_TOOLS_MANUAL_MANUAL_H
#define VYRE_TOOLS_MANUAL_MANUAL_H

#include "cli/command_table.h"

/* Writes text in roff's syntax. */
void put_roff(const char *text, size_t length, sink *out);

/* Write the manual page of the command and the completions of the shells. */
void put_man(sink *out);
void put_bash(sink *out);
void put_zsh(sink *out);
void put_fish(sink *out);

/* Writes the manual page of <vyre/@p name.h>, whose text is given. */
void put_api(const char *name, const char *text, size_t length, sink *out);

/* Writes the names of the functions in the text of a header, one per line. */
void put_functions(const char *text, size_t length, sink *out);

#endif
