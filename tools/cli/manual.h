/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is made from the table of commands for the installation. */
#ifndef VYRE_TOOLS_CLI_MANUAL_H
#define VYRE_TOOLS_CLI_MANUAL_H

#include "cli/command_table.h"

void put_man(sink *out);
void put_bash(sink *out);
void put_zsh(sink *out);
void put_fish(sink *out);

#endif
