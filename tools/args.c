/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "args.h"

#include <stdio.h>
#include <string.h>

#include "json_out.h"
#include "output.h"
#include "words.h"

enum { SHOWN_WORD = 80, MOST_FLAGS = 16 };

static const char *shown(char buffer[SHOWN_WORD], const char *word,
                         size_t length) {
  show_into(buffer, SHOWN_WORD, word, length);
  return buffer;
}

bool args_unknown(problem *out, const char *command, const char *what,
                  const char *word, const char *const *names, size_t count) {
  char text[SHOWN_WORD];
  size_t length = strcspn(word, "=");
  const char *meant = nearest_word(word, length, names, count);
  problem_set(out, KIND_USAGE, "", "'%s' is no %s of '%s'",
              shown(text, word, length), what, command);
  if (meant) {
    problem_fix(out, "did you mean '%s'? '%s --help' lists all", meant,
                command);
  } else {
    problem_fix(out, "'%s --help' lists all", command);
  }
  return false;
}

static bool unknown_flag(const arguments *spec, const char *word,
                         problem *out) {
  const char *names[MOST_FLAGS];
  size_t count = 0;
  for (; count < spec->flag_count && count < MOST_FLAGS; count++) {
    names[count] = spec->flags[count].name;
  }
  return args_unknown(out, spec->command, "flag", word, names, count);
}

static flag *find_flag(const arguments *spec, const char *word) {
  size_t length = strcspn(word, "=");
  for (size_t i = 0; i < spec->flag_count; i++) {
    flag *candidate = &spec->flags[i];
    if (strlen(candidate->name) == length &&
        memcmp(candidate->name, word, length) == 0) {
      return candidate;
    }
  }
  return NULL;
}

static bool read_choice(const flag *f, const char *value, problem *out) {
  char text[SHOWN_WORD];
  for (size_t i = 0; f->choices[i]; i++) {
    if (strcmp(f->choices[i], value) != 0) continue;
    *(size_t *)f->out = i;
    return true;
  }
  problem_set(out, KIND_USAGE, "", "%s is '%s', which is none of its values",
              f->name, shown(text, value, strlen(value)));
  char list[128] = "";
  for (size_t i = 0; f->choices[i]; i++) {
    size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%s %s", i ? " or " : "",
             f->name, f->choices[i]);
  }
  problem_fix(out, "write %s", list);
  return false;
}

static bool read_value(const flag *f, const char *value, problem *out) {
  char text[SHOWN_WORD];
  switch (f->type) {
    case FLAG_U64:
      if (parse_u64(value, strlen(value), f->out)) return true;
      problem_set(out, KIND_USAGE, "",
                  "%s is '%s', not a whole number from 0 to "
                  "18446744073709551615",
                  f->name, shown(text, value, strlen(value)));
      problem_fix(out, "write it in plain decimal digits, as in %s 4096",
                  f->name);
      return false;
    case FLAG_TEXT:
      *(const char **)f->out = value;
      if (value[0]) return true;
      problem_set(out, KIND_USAGE, "", "%s is empty", f->name);
      problem_fix(out, "give %s a file name", f->name);
      return false;
    case FLAG_CHOICE:
      return read_choice(f, value, out);
    case FLAG_SWITCH:
      *(bool *)f->out = true;
      return true;
  }
  return false;
}

/* Reads the flag at words[*at] and its value; moves *at to its last word. */
static bool read_flag(const arguments *spec, int count, char **words, int *at,
                      problem *out) {
  const char *word = words[*at];
  flag *f = find_flag(spec, word);
  if (!f) return unknown_flag(spec, word, out);
  const char *equals = strchr(word, '=');
  if (f->given) {
    problem_set(out, KIND_USAGE, "", "%s is given twice", f->name);
    problem_fix(out, "keep one %s", f->name);
    return false;
  }
  f->given = true;
  if (f->type == FLAG_SWITCH && equals) {
    problem_set(out, KIND_USAGE, "", "%s takes no value", f->name);
    problem_fix(out, "write %s alone", f->name);
    return false;
  }
  if (f->type == FLAG_SWITCH) return read_value(f, "", out);
  if (equals) return read_value(f, equals + 1, out);
  if (*at + 1 >= count || strncmp(words[*at + 1], "--", 2) == 0) {
    problem_set(out, KIND_USAGE, "", "%s has no value", f->name);
    problem_fix(out, "write %s %s", f->name,
                f->type == FLAG_U64    ? "N"
                : f->type == FLAG_TEXT ? "FILE"
                                       : f->choices[0]);
    return false;
  }
  ++*at;
  return read_value(f, words[*at], out);
}

static bool read_operand(const arguments *spec, const char *word,
                         problem *out) {
  char text[SHOWN_WORD];
  shown(text, word, strlen(word));
  if (!spec->operand_name) {
    problem_set(out, KIND_USAGE, "", "'%s' is one word too many", text);
    problem_fix(out, "leave it out: '%s' takes flags only", spec->command);
    return false;
  }
  if (*spec->operand) {
    problem_set(out, KIND_USAGE, "", "'%s' is one word too many", text);
    problem_fix(out, "give '%s' one %s at a time", spec->command,
                spec->operand_name);
    return false;
  }
  if (!word[0]) {
    problem_set(out, KIND_USAGE, "", "the name of %s is empty",
                spec->operand_name);
    problem_fix(out, "name a file, or - for standard input");
    return false;
  }
  *spec->operand = word;
  return true;
}

static bool check_required(const arguments *spec, problem *out) {
  for (size_t i = 0; i < spec->flag_count; i++) {
    const flag *f = &spec->flags[i];
    if (!f->required || f->given) continue;
    problem_set(out, KIND_USAGE, "", "%s is missing", f->name);
    problem_fix(out, "add %s N; '%s --help' has an example", f->name,
                spec->command);
    return false;
  }
  if (spec->operand_name && !*spec->operand) {
    problem_set(out, KIND_USAGE, "", "%s is missing", spec->operand_name);
    problem_fix(out, "name a file, or - for standard input, as in '%s -'",
                spec->command);
    return false;
  }
  return true;
}

bool args_read(const arguments *spec, int count, char **words, problem *out) {
  bool only_operands = false;
  for (int i = 0; i < count; i++) {
    const char *word = words[i];
    if (!only_operands && strcmp(word, "--") == 0) {
      only_operands = true;
    } else if (!only_operands && word[0] == '-' && word[1] != '\0') {
      if (!read_flag(spec, count, words, &i, out)) return false;
    } else if (!read_operand(spec, word, out)) {
      return false;
    }
  }
  return check_required(spec, out);
}

bool args_has(int count, char **words, const char *name) {
  for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++) {
    if (strcmp(words[i], name) == 0) return true;
  }
  return false;
}

int print_help(const char *text, bool json) {
  sink out = {0};
  if (json) {
    json_out answer = {.out = &out};
    json_open(&answer, NULL, '{');
    json_bool(&answer, "ok", true);
    json_text(&answer, "help", text);
    json_close(&answer, '}');
    sink_text(&out, "\n");
  } else {
    sink_text(&out, text);
  }
  return publish(&out, NULL, NULL, json);
}
