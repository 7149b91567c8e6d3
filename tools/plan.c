/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre plan`: finds the subject. */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "commands.h"

static const struct {
  const char *name;
  int (*run)(int count, char **words, bool json);
} subjects[] = {
    {"queue", plan_queue},       {"expansion", plan_expansion},
    {"frontier", plan_frontier}, {"place", plan_place},
    {"bindings", plan_bindings},
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

static int overview(bool json) {
  sink text = {0};
  put_plan_help(&text);
  return print_help(&text, json);
}

static int subject_help(int subject, bool json) {
  char name[32];
  sink text = {0};
  snprintf(name, sizeof name, "plan %s", subjects[subject].name);
  put_command_help(find_command(name), &text);
  return print_help(&text, json);
}

int plan_help(int count, char **words, bool json) {
  skip_json(&count, &words);
  if (count == 0) return overview(json);
  int subject = find_subject(words[0]);
  if (subject < 0) return unknown_subject(words[0], json);
  return subject_help(subject, json);
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
    return overview(json);
  }
  int subject = find_subject(words[0]);
  if (subject < 0) return unknown_subject(words[0], json);
  count--;
  words++;
  if (args_has(count, words, "--help") || args_has(count, words, "-h")) {
    return subject_help(subject, json);
  }
  return subjects[subject].run(count, words, json);
}
