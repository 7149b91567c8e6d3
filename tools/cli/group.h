/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Commands of two words, such as `plan queue`. */
#ifndef VYRE_TOOLS_CLI_GROUP_H
#define VYRE_TOOLS_CLI_GROUP_H

#include "cli/command_table.h"
#include "cli/commands.h"

/* Returns the function of the command @p name ("plan queue"), or NULL. */
command_function *find_function(const char *name);

/* Runs the command of @p group whose second word comes first in @p words, or reports
 * the words that the group accepts. */
int group_run(const command_group *group, int count, char **words, bool json);

/* Prints the help for `vyre help GROUP NAME...`. */
int group_help(const command_group *group, int count, char **words, bool json);

#endif
