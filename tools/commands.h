/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The subcommands of `vyre plan`, one file each. They take the words after
 * their own name and return the exit code. @p json tells how to report even if
 * the flags cannot be read. */
#ifndef VYRE_TOOLS_COMMANDS_H
#define VYRE_TOOLS_COMMANDS_H

#include <stdbool.h>

int plan_command(int count, char **words, bool json);
int plan_queue(int count, char **words, bool json);
int plan_expansion(int count, char **words, bool json);
int plan_frontier(int count, char **words, bool json);
int plan_place(int count, char **words, bool json);
int plan_bindings(int count, char **words, bool json);

/* `vyre help plan NAME...`: the help that belongs to the words. */
int plan_help(int count, char **words, bool json);

extern const char queue_help[], expansion_help[], frontier_help[], place_help[],
    bindings_help[];

#endif
