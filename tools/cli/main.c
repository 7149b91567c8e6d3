/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The `vyre` command. */
#include <signal.h>
#include <string.h>

#include "vyre/version.h"

#include "cli/args.h"
#include "cli/group.h"
#include "cli/output.h"
#include "io/json_out.h"

static int main_help(bool json) {
  sink text = {0};
  put_main_help(&text);
  return print_help(&text, json);
}

static int command_help(const command_doc *command, bool json) {
  sink text = {0};
  put_command_help(command, &text);
  return print_help(&text, json);
}

static int print_version(bool json) {
  sink out = {0};
  if (json) {
    json_out answer = {.out = &out};
    json_open(&answer, NULL, '{');
    json_bool(&answer, "ok", true);
    json_text(&answer, "version", vyre_version_string());
    json_close(&answer, '}');
    sink_text(&out, "\n");
  } else {
    sink_format(&out, "vyre %s\n", vyre_version_string());
  }
  return publish(&out, NULL, NULL, json);
}

static int unknown_command(const char *word, bool json) {
  enum { MAX_WORDS = 64 };
  const char *known[MAX_WORDS] = {"help", "--help", "--version", "--json"};
  size_t count = 4;
  for (size_t i = 0; i < command_group_count && count < MAX_WORDS; i++) {
    known[count++] = command_groups[i].name;
  }
  for (size_t i = 0; i < command_count && count < MAX_WORDS; i++) {
    if (!group_of(&command_table[i])) known[count++] = command_table[i].name;
  }
  problem wrong = {0};
  args_unknown(&wrong, "vyre", word[0] == '-' ? "flag" : "command", word, known,
               count);
  return problem_report(&wrong, json);
}

static int help_command(int count, char **words, bool json) {
  while (count > 0 && strcmp(words[0], "--json") == 0) {
    count--;
    words++;
  }
  if (count == 0 || strcmp(words[0], "--help") == 0 ||
      strcmp(words[0], "-h") == 0) {
    return main_help(json);
  }
  const command_group *group = find_group(words[0]);
  if (group) return group_help(group, count - 1, words + 1, json);
  const command_doc *command = find_command(words[0]);
  return command ? command_help(command, json)
                 : unknown_command(words[0], json);
}

/* Handles --version and --help, which accept no other word than --json. */
static int lone_flag(const char *word, int count, char **words, bool json) {
  for (int i = 0; i < count; i++) {
    if (strcmp(words[i], "--json") == 0) continue;
    problem wrong = {0};
    problem_set(&wrong, KIND_USAGE, "", "unexpected argument '%.60s'",
                words[i]);
    problem_fix(&wrong, "write 'vyre %s' alone", word);
    return problem_report(&wrong, json);
  }
  return strcmp(word, "--version") == 0 ? print_version(json) : main_help(json);
}

static int run_command(const char *word, int count, char **words, bool json) {
  const command_group *group = find_group(word);
  if (group) return group_run(group, count, words, json);
  const command_doc *command = find_command(word);
  if (!command || group_of(command)) return unknown_command(word, json);
  bool help = args_has(count, words, "--help") || args_has(count, words, "-h");
  return help ? command_help(command, json)
              : find_function(word)(count, words, json);
}

int main(int argc, char **argv) {
  int count = argc > 0 ? argc - 1 : 0;
  char **words = argv + 1;
  bool json = args_has(count, words, "--json");
  /* Without a handler, a write beyond RLIMIT_FSIZE kills the process. Ignoring the
   * signal turns it into EFBIG, which is reported. */
  (void)signal(SIGXFSZ, SIG_IGN);
  while (count > 0 && strcmp(words[0], "--json") == 0) {
    count--;
    words++;
  }
  /* No command given: print the help and succeed, as docker and kubectl do. */
  if (count == 0) return main_help(json);
  const char *word = words[0];
  if (strcmp(word, "help") == 0) {
    return help_command(count - 1, words + 1, json);
  }
  if (strcmp(word, "-h") == 0) word = "--help";
  if (strcmp(word, "--version") == 0 || strcmp(word, "--help") == 0) {
    return lone_flag(word, count - 1, words + 1, json);
  }
  return run_command(word, count - 1, words + 1, json);
}
