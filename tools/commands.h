/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The commands, one file each. They take the words after their own name and
 * return the exit code. @p json tells how to report even if the flags cannot be
 * read. What they take is in the table of commands. */
#ifndef VYRE_TOOLS_COMMANDS_H
#define VYRE_TOOLS_COMMANDS_H

#include <stdbool.h>

typedef int command_function(int count, char **words, bool json);

command_function cmd_check, cmd_fmt, cmd_run, cmd_emit, cmd_explain,
    cmd_generate, cmd_conform, cmd_embed;
command_function plan_command, plan_queue, plan_expansion, plan_frontier,
    plan_place, plan_bindings;

/* `vyre help plan NAME...`: the help that belongs to the words. */
int plan_help(int count, char **words, bool json);

#endif
