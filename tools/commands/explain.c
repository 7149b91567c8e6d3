/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre explain` */
#include <string.h>

#include "vyre/diagnostic.h"

#include "cli/args.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/text.h"
#include "plan/plan_json.h"

enum { WIDTH = 79, MAX_FINDINGS = 16 };

/* Writes a paragraph in lines of at most WIDTH columns. */
static void put_wrapped(const char *text, sink *out) {
  size_t column = 0;
  while (*text) {
    size_t length = strcspn(text, " ");
    if (column > 0 && column + 1 + length > WIDTH) {
      sink_text(out, "\n");
      column = 0;
    } else if (column > 0) {
      sink_text(out, " ");
      column++;
    }
    sink_bytes(out, text, length);
    column += length;
    text += length + strspn(text + length, " ");
  }
  sink_text(out, "\n");
}

static void put_indented(const char *text, sink *out) {
  while (*text) {
    size_t length = strcspn(text, "\n");
    if (length > 0) sink_text(out, "    ");
    sink_bytes(out, text, length);
    sink_text(out, "\n");
    text += length;
    if (*text == '\n') text++;
  }
}

/* Returns true for a rule of the language, false for a finding of a checked
 * run. */
static bool is_of_language(const vyre_rule *rule) {
  return rule->id[0] == 'V';
}

static void put_rule(const vyre_rule *rule, sink *out) {
  sink_format(out, "%s: %s\n\n", rule->id, rule->title);
  put_wrapped(rule->explanation, out);
  sink_text(out, is_of_language(rule) ? "\nThis breaks it:\n\n"
                                      : "\nThis has it:\n\n");
  put_indented(rule->bad_example, out);
  sink_text(out, "\nThis does not:\n\n");
  put_indented(rule->good_example, out);
}

static void put_rule_json(json_out *json, const vyre_rule *rule) {
  json_text(json, "rule", rule->id);
  json_text(json, "title", rule->title);
  json_text(json, "explanation", rule->explanation);
  json_text(json, "bad", rule->bad_example);
  json_text(json, "good", rule->good_example);
}

static void list_rules(bool json, sink *out) {
  size_t count;
  const vyre_rule *rules = vyre_rules(&count);
  if (!json) {
    for (size_t i = 0; i < count; i++) {
      sink_format(out, "%s  %s\n", rules[i].id, rules[i].title);
    }
    return;
  }
  json_out answer = json_begin(out);
  json_open(&answer, "rules", '[');
  for (size_t i = 0; i < count; i++) {
    json_open(&answer, NULL, '{');
    json_text(&answer, "rule", rules[i].id);
    json_text(&answer, "title", rules[i].title);
    json_close(&answer, '}');
  }
  json_close(&answer, ']');
  json_end(&answer);
}

static int no_such_rule(const char *id, bool json) {
  const char *names[MAX_FINDINGS];
  problem wrong = {0};
  char shown[80];
  size_t count, named = 0;
  const vyre_rule *rules = vyre_rules(&count);
  for (size_t i = 0; i < count && named < MAX_FINDINGS; i++) {
    /* Suggest words only: every rule number is similar to every other. */
    if (!is_of_language(&rules[i])) names[named++] = rules[i].id;
  }
  show_into(shown, sizeof shown, id, strlen(id));
  const char *meant = nearest_word(id, strlen(id), names, named);
  problem_set(&wrong, KIND_USAGE, "'vyre explain' lists all rules",
              "unknown rule '%s'", shown);
  if (meant) {
    problem_fix(&wrong, "did you mean '%s'? 'vyre explain' lists all rules",
                meant);
  }
  return problem_report(&wrong, json);
}

int cmd_explain(int count, char **words, bool json) {
  const char *id = NULL;
  problem wrong = {0};
  sink out = {0};
  arguments spec = {.command = "explain", .operand = &id};
  if (!args_read(&spec, count, words, &wrong)) {
    return problem_report(&wrong, json);
  }
  if (!id) {
    list_rules(json, &out);
    return publish(&out, NULL, NULL, json);
  }
  const vyre_rule *rule = vyre_rule_find(id);
  if (!rule) return no_such_rule(id, json);
  if (json) {
    json_out answer = json_begin(&out);
    put_rule_json(&answer, rule);
    json_end(&answer);
  } else {
    put_rule(rule, &out);
  }
  return publish(&out, NULL, NULL, json);
}
