/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli/group.h"

#include <stdio.h>
#include <string.h>

#include "cli/args.h"

enum { MAX_MEMBERS = 16 };

command_function *find_function(const char *name) {
  static const struct {
    const char *name;
    command_function *function;
  } commands[] = {
#define COMMAND(name, function) {name, function},
#include "cli/commands.def"
#undef COMMAND
  };
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    if (strcmp(commands[i].name, name) == 0) return commands[i].function;
  }
  return NULL;
}

/* Lists the second words of a group in the order of the table. */
static size_t list_names(const command_group *group,
                         const char *names[MAX_MEMBERS]) {
  size_t count = 0;
  for (size_t i = 0; i < command_count && count < MAX_MEMBERS; i++) {
    if (group_of(&command_table[i]) != group) continue;
    names[count++] = command_table[i].name + strlen(group->name) + 1;
  }
  return count;
}

static const command_doc *find_member(const command_group *group,
                                      const char *word) {
  char name[64];
  snprintf(name, sizeof name, "%s %.40s", group->name, word);
  return find_command(name);
}

static int unknown_member(const command_group *group, const char *word,
                          bool json) {
  static const char *const flags[] = {"--help", "--json"};
  const char *names[MAX_MEMBERS];
  char command[32];
  problem wrong = {0};
  snprintf(command, sizeof command, "vyre %s", group->name);
  if (word[0] == '-') {
    args_unknown(&wrong, command, "flag", word, flags, 2);
  } else {
    args_unknown(&wrong, command, group->noun, word, names,
                 list_names(group, names));
  }
  return problem_report(&wrong, json);
}

static void skip_json(int *count, char ***words) {
  while (*count > 0 && strcmp((*words)[0], "--json") == 0) {
    --*count;
    ++*words;
  }
}

static int overview(const command_group *group, bool json) {
  sink text = {0};
  put_group_help(group, &text);
  return print_help(&text, json);
}

static int member_help(const command_doc *member, bool json) {
  sink text = {0};
  put_command_help(member, &text);
  return print_help(&text, json);
}

int group_help(const command_group *group, int count, char **words, bool json) {
  skip_json(&count, &words);
  if (count == 0) return overview(group, json);
  const command_doc *member = find_member(group, words[0]);
  return member ? member_help(member, json)
                : unknown_member(group, words[0], json);
}

int group_run(const command_group *group, int count, char **words, bool json) {
  /* Before the second word, --json selects the form of the answer only. */
  skip_json(&count, &words);
  if (count == 0 || strcmp(words[0], "--help") == 0 ||
      strcmp(words[0], "-h") == 0) {
    return overview(group, json);
  }
  const command_doc *member = find_member(group, words[0]);
  if (!member) return unknown_member(group, words[0], json);
  count--;
  words++;
  if (args_has(count, words, "--help") || args_has(count, words, "-h")) {
    return member_help(member, json);
  }
  return find_function(member->name)(count, words, json);
}
