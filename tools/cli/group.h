/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Commands of two words: finds the second. */
#ifndef VYRE_TOOLS_CLI_GROUP_H
#define VYRE_TOOLS_CLI_GROUP_H

#include "cli/command_table.h"
#include "cli/commands.h"

typedef struct group_member {
  const char *name; /* the second word */
  command_function *run;
} group_member;

/* Runs the member that the words begin with, or tells what they should. */
int group_run(const char *group, const group_member *members, size_t count,
              int word_count, char **words, bool json);

/* `vyre help GROUP NAME...`: the help that belongs to the words. */
int group_help(const command_group *group, int count, char **words, bool json);

#endif
