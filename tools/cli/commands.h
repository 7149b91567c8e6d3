/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The commands, one file each. They take the words after their own name and
 * return the exit code. @p json tells how to report even if the flags cannot be
 * read. What they take is in the table of commands. */
#ifndef VYRE_TOOLS_CLI_COMMANDS_H
#define VYRE_TOOLS_CLI_COMMANDS_H

#include <stdbool.h>

typedef int command_function(int count, char **words, bool json);

command_function cmd_check, cmd_fmt, cmd_run, cmd_emit, cmd_explain,
    cmd_generate, cmd_conform, cmd_devices, cmd_doctor, cmd_embed, cmd_inspect;
command_function plan_command, plan_queue, plan_expansion, plan_frontier,
    plan_place, plan_bindings;
command_function cache_command;

#endif
