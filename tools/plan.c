/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre plan`: finds the subject. */
#include <string.h>

#include "args.h"
#include "commands.h"

static const char help[] =
    "vyre plan: what would run, before anything runs\n"
    "\n"
    "usage: vyre plan SUBJECT ...\n"
    "\n"
    "subjects:\n"
    "  queue      bytes, occupancy and drain windows of a device work queue\n"
    "  expansion  the largest queue that a budget holds\n"
    "  frontier   waves into groups that keep a byte budget\n"
    "  place      lifetimes and sizes into offsets of one allocation\n"
    "  bindings   what is bound where, in which role and order\n"
    "\n"
    "'vyre plan SUBJECT --help' has the flags and an example of each.\n"
    "Plans are pure: no device is opened, and equal input gives equal plans.\n"
    "\n"
    "example:\n"
    "  vyre plan frontier examples/plans/bfs.json --place\n";

static const struct {
  const char *name;
  int (*run)(int count, char **words, bool json);
  const char *help;
} subjects[] = {
    {"queue", plan_queue, queue_help},
    {"expansion", plan_expansion, expansion_help},
    {"frontier", plan_frontier, frontier_help},
    {"place", plan_place, place_help},
    {"bindings", plan_bindings, bindings_help},
};

enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

static int find_subject(const char *word) {
  for (int i = 0; i < SUBJECTS; i++) {
    if (strcmp(word, subjects[i].name) == 0) return i;
  }
  return -1;
}

static int unknown_subject(const char *word, bool json) {
  static const char *const flags[] = {"--help", "--json"};
  const char *names[SUBJECTS];
  for (int i = 0; i < SUBJECTS; i++) names[i] = subjects[i].name;
  problem wrong = {0};
  if (word[0] == '-') {
    args_unknown(&wrong, "vyre plan", "flag", word, flags, 2);
  } else {
    args_unknown(&wrong, "vyre plan", "subject", word, names, SUBJECTS);
  }
  return problem_report(&wrong, json);
}

static void skip_json(int *count, char ***words) {
  while (*count > 0 && strcmp((*words)[0], "--json") == 0) {
    --*count;
    ++*words;
  }
}

int plan_help(int count, char **words, bool json) {
  skip_json(&count, &words);
  if (count == 0) return print_help(help, json);
  int subject = find_subject(words[0]);
  if (subject < 0) return unknown_subject(words[0], json);
  return print_help(subjects[subject].help, json);
}

int plan_command(int count, char **words, bool json) {
  /* Before the subject, --json only says how to answer. */
  skip_json(&count, &words);
  if (count == 0) {
    problem wrong = {0};
    problem_set(&wrong, KIND_USAGE,
                "add queue, expansion, frontier, place or bindings; 'vyre plan "
                "--help' explains them",
                "'vyre plan' needs to know what to plan");
    return problem_report(&wrong, json);
  }
  if (strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0) {
    return print_help(help, json);
  }
  int subject = find_subject(words[0]);
  if (subject < 0) return unknown_subject(words[0], json);
  count--;
  words++;
  if (args_has(count, words, "--help") || args_has(count, words, "-h")) {
    return print_help(subjects[subject].help, json);
  }
  return subjects[subject].run(count, words, json);
}
