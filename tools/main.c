/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The `vyre` command. */
#include <string.h>

#include "vyre/version.h"

#include "args.h"
#include "commands.h"
#include "json_out.h"
#include "output.h"

static const char help[] =
    "vyre: plans for GPU compute work\n"
    "\n"
    "usage: vyre plan SUBJECT ...      plan bindings, queues, waves or memory\n"
    "       vyre help [plan [SUBJECT]] explain a command\n"
    "       vyre --version             print the version\n"
    "\n"
    "Every form takes --json: one JSON object on standard output, also for\n"
    "errors. Exit codes: 0 fine, 1 the input or the plan is wrong, 2 the\n"
    "command line is wrong.\n"
    "\n"
    "example:\n"
    "  vyre plan queue --initial 256 --capacity 1024 --entry-bytes 16 \\\n"
    "                  --control-bytes 128 --budget 32768\n";

static const char *const command_names[] = {"plan", "help", "--help",
                                            "--version", "--json"};

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
  problem wrong = {0};
  args_unknown(&wrong, "vyre", word[0] == '-' ? "flag" : "command", word,
               command_names, sizeof command_names / sizeof command_names[0]);
  return problem_report(&wrong, json);
}

static int help_command(int count, char **words, bool json) {
  while (count > 0 && strcmp(words[0], "--json") == 0) {
    count--;
    words++;
  }
  if (count == 0) return print_help(help, json);
  if (strcmp(words[0], "plan") == 0) {
    return plan_help(count - 1, words + 1, json);
  }
  return unknown_command(words[0], json);
}

/* --version and --help stand alone, but for --json. */
static int lone_flag(const char *word, int count, char **words, bool json) {
  for (int i = 0; i < count; i++) {
    if (strcmp(words[i], "--json") == 0) continue;
    problem wrong = {0};
    problem_set(&wrong, KIND_USAGE, "", "'%.60s' is one word too many",
                words[i]);
    problem_fix(&wrong, "write 'vyre %s' alone", word);
    return problem_report(&wrong, json);
  }
  return strcmp(word, "--version") == 0 ? print_version(json)
                                        : print_help(help, json);
}

int main(int argc, char **argv) {
  int count = argc > 0 ? argc - 1 : 0;
  char **words = argv + 1;
  bool json = args_has(count, words, "--json");
  while (count > 0 && strcmp(words[0], "--json") == 0) {
    count--;
    words++;
  }
  if (count == 0) {
    problem wrong = {0};
    problem_set(&wrong, KIND_USAGE, "say what to do; 'vyre --help' lists it",
                "there is no command");
    return problem_report(&wrong, json);
  }
  const char *word = words[0];
  if (strcmp(word, "plan") == 0) {
    return plan_command(count - 1, words + 1, json);
  }
  if (strcmp(word, "help") == 0) {
    return help_command(count - 1, words + 1, json);
  }
  if (strcmp(word, "-h") == 0) word = "--help";
  if (strcmp(word, "--version") == 0 || strcmp(word, "--help") == 0) {
    return lone_flag(word, count - 1, words + 1, json);
  }
  return unknown_command(word, json);
}
