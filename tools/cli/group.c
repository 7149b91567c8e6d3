/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli/group.h"

#include <stdio.h>
#include <string.h>

#include "cli/args.h"

enum { MOST_MEMBERS = 16 };

/* The second words of a group, in the order of the table. */
static size_t list_names(const command_group *group,
                         const char *names[MOST_MEMBERS]) {
  size_t count = 0;
  for (size_t i = 0; i < command_count && count < MOST_MEMBERS; i++) {
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
  const char *names[MOST_MEMBERS];
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

int group_run(const char *name, const group_member *members, size_t count,
              int word_count, char **words, bool json) {
  const command_group *group = find_group(name);
  /* Before the second word, --json only says how to answer. */
  skip_json(&word_count, &words);
  if (word_count == 0) return overview(group, json);
  const char *word = words[0];
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
    return overview(group, json);
  }
  word_count--;
  words++;
  for (size_t i = 0; i < count; i++) {
    if (strcmp(word, members[i].name) != 0) continue;
    bool help = args_has(word_count, words, "--help") ||
                args_has(word_count, words, "-h");
    return help ? member_help(find_member(group, word), json)
                : members[i].run(word_count, words, json);
  }
  return unknown_member(group, word, json);
}
