/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The functions behind the commands. A function receives the words after the name
 * of its command and returns the exit code. @p json selects the form of error reports
 * even if the flags cannot be parsed. command_table.h documents the flags. */
#ifndef VYRE_TOOLS_CLI_COMMANDS_H
#define VYRE_TOOLS_CLI_COMMANDS_H

#include <stdbool.h>

typedef int command_function(int count, char **words, bool json);

#define COMMAND(name, function) command_function function;
#include "cli/commands.def"
#undef COMMAND

#endif
