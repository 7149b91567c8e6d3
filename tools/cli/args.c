/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli/args.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "vyre/emit.h"

#include "cli/output.h"
#include "cli/parse_options.h"
#include "cli/text.h"
#include "io/json_out.h"

enum { SHOWN_WORD = 80, MAX_FLAGS = 32 };

/* State of parsing one command line. */
typedef struct reading {
  const arguments *spec;
  const command_doc *command;
  char name[40];        /* "vyre plan queue" */
  bool seen[MAX_FLAGS]; /* indexed like the flags in the command table */
  problem *out;
} reading;

static const char *shown(char buffer[SHOWN_WORD], const char *word,
                         size_t length) {
  show_into(buffer, SHOWN_WORD, word, length);
  return buffer;
}

const char *word_at(const word_list *words, size_t index) {
  return ((const char *const *)words->list.items)[index];
}

static bool word_add(word_list *words, const char *word, problem *out) {
  const char **space =
      (const char **)list_add(&words->list, sizeof(char *), words->arena);
  if (!space) return problem_no_memory(out, "the words of the command");
  *space = word;
  return true;
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

static bool unknown_flag(reading *r, const char *word) {
  const char *names[MAX_FLAGS];
  size_t count = r->command->flag_count;
  for (size_t i = 0; i < count; i++) names[i] = r->command->flags[i].name;
  return args_unknown(r->out, r->name, "flag", word, names, count);
}

static bool is_word(const char *name, const char *word, size_t length) {
  return name && strlen(name) == length && memcmp(name, word, length) == 0;
}

static const flag_doc *find_flag(const reading *r, const char *word) {
  size_t length = strcspn(word, "=");
  for (size_t i = 0; i < r->command->flag_count; i++) {
    const flag_doc *doc = &r->command->flags[i];
    if (is_word(doc->name, word, length) ||
        is_word(doc->letter, word, length)) {
      return doc;
    }
  }
  return NULL;
}

static bool read_choice(const flag_doc *doc, const char *value, size_t *choice,
                        problem *out) {
  char text[SHOWN_WORD];
  for (size_t i = 0; doc->choices[i]; i++) {
    if (strcmp(doc->choices[i], value) != 0) continue;
    *choice = i;
    return true;
  }
  problem_set(out, KIND_USAGE, "", "%s: unknown value '%s'", doc->name,
              shown(text, value, strlen(value)));
  char list[128] = "";
  for (size_t i = 0; doc->choices[i]; i++) {
    size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%s %s", i ? " or " : "",
             doc->name, doc->choices[i]);
  }
  problem_fix(out, "write %s", list);
  return false;
}

static bool read_text(const flag_doc *doc, const char *value, problem *out) {
  if (value[0]) return true;
  problem_set(out, KIND_USAGE, "", "%s is empty", doc->name);
  problem_fix(out, "write %s %s", doc->name, doc->value);
  return false;
}

/* Reads a number of bytes that is not 0. */
static bool read_size(const flag_doc *doc, const char *value, uint64_t *to,
                      problem *out) {
  char text[SHOWN_WORD];
  if (parse_bytes(value, strlen(value), to) && *to > 0) return true;
  problem_set(out, KIND_USAGE, "",
              "%s is '%s'; expected a number of bytes from 1 on", doc->name,
              shown(text, value, strlen(value)));
  problem_fix(out, "write digits and perhaps K, M or G, such as %s 64M",
              doc->name);
  return false;
}

static bool read_number(const flag_doc *doc, const char *value, uint64_t *to,
                        problem *out) {
  char text[SHOWN_WORD];
  uint64_t max = doc->max ? doc->max : UINT64_MAX;
  int example = max < 4096 ? 1 : 4096;
  bool is_number = parse_u64(value, strlen(value), to);
  if (is_number && *to <= max) return true;
  if (is_number || is_too_large(value, strlen(value), max)) {
    problem_set(out, KIND_USAGE, "", "%s is %s; the maximum is %llu", doc->name,
                shown(text, value, strlen(value)), (unsigned long long)max);
    problem_fix(out, "write a smaller number, such as %s %d", doc->name,
                example);
    return false;
  }
  problem_set(out, KIND_USAGE, "",
              "%s is '%s'; expected an integer from %d to %llu", doc->name,
              shown(text, value, strlen(value)), doc->min,
              (unsigned long long)max);
  problem_fix(out, "write decimal digits, such as %s %d", doc->name, example);
  return false;
}

static bool read_value(const flag_doc *doc, void *to, const char *value,
                       problem *out) {
  switch (doc->type) {
    case FLAG_U64:
      return read_number(doc, value, to, out);
    case FLAG_BYTES:
      return read_size(doc, value, to, out);
    case FLAG_TEXT:
    case FLAG_DEVICE:
      *(const char **)to = value;
      return read_text(doc, value, out);
    case FLAG_LIST:
      return read_text(doc, value, out) && word_add(to, value, out);
    case FLAG_CHOICE:
      return read_choice(doc, value, to, out);
    case FLAG_SWITCH:
      *(bool *)to = true;
      return true;
  }
  return false;
}

/* Stores the value where the command wants it. A switch without a
 * destination, such as --json, which main() handles, is only checked. */
static bool deliver(reading *r, const flag_doc *doc, const char *value) {
  for (size_t i = 0; i < r->spec->flag_count; i++) {
    flag *f = &r->spec->flags[i];
    if (strcmp(f->name, doc->name) != 0) continue;
    f->given = true;
    return read_value(doc, f->out, value, r->out);
  }
  bool is_known = false;
  if (doc->type == FLAG_LIST &&
      !parse_options_add(doc->name, value, &is_known, r->out)) {
    return false;
  }
  assert(doc->type == FLAG_SWITCH || is_known);
  return true;
}

/* Parses the flag at words[*at] and its value. Moves *at to the last word
 * used. */
static bool read_flag(reading *r, int count, char **words, int *at) {
  const char *word = words[*at];
  const flag_doc *doc = find_flag(r, word);
  if (!doc) return unknown_flag(r, word);
  const char *equals = strchr(word, '=');
  bool *seen = &r->seen[doc - r->command->flags];
  if (*seen && doc->type != FLAG_LIST) {
    problem_set(r->out, KIND_USAGE, "", "%s is given twice", doc->name);
    problem_fix(r->out,
                strcmp(doc->name, "--option") == 0
                    ? "join the values with a comma in one %s"
                    : "keep one %s",
                doc->name);
    return false;
  }
  *seen = true;
  if (doc->type == FLAG_SWITCH && equals) {
    problem_set(r->out, KIND_USAGE, "", "%s takes no value", doc->name);
    problem_fix(r->out, "write %s alone", doc->name);
    return false;
  }
  if (doc->type == FLAG_SWITCH) return deliver(r, doc, "");
  if (equals) return deliver(r, doc, equals + 1);
  if (*at + 1 >= count || strncmp(words[*at + 1], "--", 2) == 0) {
    problem_set(r->out, KIND_USAGE, "", "%s has no value", doc->name);
    problem_fix(r->out, "write %s %s", doc->name,
                doc->choices ? doc->choices[0] : doc->value);
    return false;
  }
  ++*at;
  return deliver(r, doc, words[*at]);
}

static const char *operand_name(const reading *r) {
  return r->command->operand_kind == OPERAND_RULE ? "RULE" : "FILE";
}

static bool read_operand(reading *r, const char *word) {
  char text[SHOWN_WORD];
  shown(text, word, strlen(word));
  operand_type kind = r->command->operand_kind;
  if (kind == OPERAND_NONE) {
    problem_set(r->out, KIND_USAGE, "", "unexpected argument '%s'", text);
    problem_fix(r->out, "remove it; '%s' takes flags only", r->name);
    return false;
  }
  if (kind != OPERAND_FILES && *r->spec->operand) {
    problem_set(r->out, KIND_USAGE, "", "unexpected argument '%s'", text);
    problem_fix(r->out, "give '%s' one %s at a time", r->name, operand_name(r));
    return false;
  }
  if (!word[0]) {
    problem_set(r->out, KIND_USAGE, "", "the name of %s is empty",
                operand_name(r));
    problem_fix(r->out, kind == OPERAND_RULE
                            ? "name a rule, or give no argument to list all"
                            : "name a file, or - for standard input");
    return false;
  }
  if (kind == OPERAND_FILES) return word_add(r->spec->operands, word, r->out);
  *r->spec->operand = word;
  return true;
}

static bool check_required(reading *r) {
  for (size_t i = 0; i < r->command->flag_count; i++) {
    const flag_doc *doc = &r->command->flags[i];
    if (!doc->required || r->seen[i]) continue;
    problem_set(r->out, KIND_USAGE, "", "%s is missing", doc->name);
    problem_fix(r->out, "add %s %s; '%s --help' has an example", doc->name,
                doc->choices ? doc->choices[0] : doc->value, r->name);
    return false;
  }
  operand_type kind = r->command->operand_kind;
  if ((kind == OPERAND_FILE && !*r->spec->operand) ||
      (kind == OPERAND_FILES && r->spec->operands->list.count == 0)) {
    problem_set(r->out, KIND_USAGE, "", "FILE is missing");
    problem_fix(r->out, "name a file, or - for standard input, as in '%s -'",
                r->name);
    return false;
  }
  return true;
}

bool args_read(const arguments *spec, int count, char **words, problem *out) {
  reading r = {
      .spec = spec, .command = find_command(spec->command), .out = out};
  assert(r.command && r.command->flag_count <= MAX_FLAGS);
  snprintf(r.name, sizeof r.name, "vyre %s", spec->command);
  bool only_operands = false;
  for (int i = 0; i < count; i++) {
    const char *word = words[i];
    if (!only_operands && strcmp(word, "--") == 0) {
      only_operands = true;
    } else if (!only_operands && word[0] == '-' && word[1] != '\0') {
      if (!read_flag(&r, count, words, &i)) return false;
    } else if (!read_operand(&r, word)) {
      return false;
    }
  }
  return check_required(&r);
}

static bool bad_extent(const char *flag_name, const char *text,
                       problem *wrong) {
  char shown[60];
  show_into(shown, sizeof shown, text, strlen(text));
  problem_set(wrong, KIND_USAGE, "",
              "%s is '%s'; expected one to three integers from 1 to 4294967295",
              flag_name, shown);
  problem_fix(wrong, "write, for example, %s 16,16", flag_name);
  return false;
}

static bool large_extent(const char *flag_name, const char *number,
                         size_t length, problem *wrong) {
  char shown[60];
  show_into(shown, sizeof shown, number, length);
  problem_set(wrong, KIND_USAGE, "",
              "%s: %s is too large; the maximum per axis is 4294967295",
              flag_name, shown);
  problem_fix(
      wrong,
      strcmp(flag_name, "--grid") == 0
          ? "use more axes, such as --grid 65536,65536, or run the kernel in "
            "parts"
          : "use at most 1024 invocations in all, such as --workgroup 16,16");
  return false;
}

bool args_extent(const char *flag_name, const char *text, uint32_t out[3],
                 problem *wrong) {
  size_t axes = 0;
  const char *at = text;
  for (;; axes++) {
    size_t length = strcspn(at, ",");
    uint64_t value;
    if (axes < 3 && is_too_large(at, length, UINT32_MAX)) {
      return large_extent(flag_name, at, length, wrong);
    }
    if (axes == 3 || !parse_u64(at, length, &value) || value == 0) {
      return bad_extent(flag_name, text, wrong);
    }
    out[axes] = (uint32_t)value;
    if (!at[length]) break;
    at += length + 1;
  }
  while (++axes < 3) out[axes] = 1;
  return true;
}

const char *args_cpu_options(uint64_t threads, uint64_t width,
                             char out[OPTIONS_TEXT]) {
  int used = 0;
  out[0] = '\0';
  if (threads > 0) {
    used = snprintf(out, OPTIONS_TEXT, "cpu.threads=%llu",
                    (unsigned long long)threads);
  }
  if (width > 0) {
    (void)snprintf(out + used, (size_t)(OPTIONS_TEXT - used),
                   "%scpu.width=%llu", used > 0 ? "," : "",
                   (unsigned long long)width);
  }
  return out[0] ? out : NULL;
}

bool args_options(const char *text, problem *wrong) {
  if (!text || strlen(text) <= MAX_OPTIONS) return true;
  return problem_set(wrong, KIND_USAGE, "write fewer of them",
                     "--option has %zu bytes; the maximum is %d", strlen(text),
                     MAX_OPTIONS);
}

bool args_own_option(const char *text, const char *key, const char *name,
                     uint64_t value, problem *wrong) {
  size_t size = strlen(key);
  while (value > 0 && text && text[0]) {
    if (strncmp(text, key, size) == 0 && text[size] == '=') {
      problem_set(wrong, KIND_USAGE, "",
                  "%s is %llu, but --option sets the same option: '%.*s'", name,
                  (unsigned long long)value, (int)strcspn(text, ","), text);
      problem_fix(wrong, "keep one of them");
      return false;
    }
    text += strcspn(text, ",");
    text += *text == ',';
  }
  return true;
}

bool args_seconds(const char *name, const char *text, uint64_t *out_ns,
                  problem *wrong) {
  enum {
    DIGITS = 9
  }; /* Digits of a nanosecond, and digits allowed before the point. */
  uint64_t ns = 0;
  size_t whole = strspn(text, "0123456789"), point = text[whole] == '.';
  const char *fraction = text + whole + point;
  size_t parts = strspn(fraction, "0123456789");
  bool is_good = whole > 0 && whole <= DIGITS && parts <= DIGITS &&
                 (parts > 0) == (point > 0) && !fraction[parts];
  for (size_t i = 0; is_good && i < whole; i++) {
    ns = ns * 10 + (uint64_t)(text[i] - '0');
  }
  for (size_t i = 0; i < DIGITS; i++) {
    ns = ns * 10 + (is_good && i < parts ? (uint64_t)(fraction[i] - '0') : 0);
  }
  *out_ns = ns;
  if (is_good && ns > 0) return true;
  char shown[60];
  show_into(shown, sizeof shown, text, strlen(text));
  return problem_set(
      wrong, KIND_USAGE, "write a decimal number such as 2 or 0.25",
      "%s is '%s'; expected seconds from 0.000000001 to 999999999.999999999",
      name, shown);
}

bool args_width(uint64_t width, problem *wrong) {
  if (width <= UINT32_MAX && vyre_emit_is_valid_width((uint32_t)width))
    return true;
  return problem_set(wrong, KIND_USAGE, "write 1, 4, 8, 16 or 32",
                     "--width is %llu, which is not a vector width",
                     (unsigned long long)width);
}

bool args_has(int count, char **words, const char *name) {
  for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++) {
    if (strcmp(words[i], name) == 0) return true;
  }
  return false;
}

int print_help(sink *text, bool json) {
  if (!json) return publish(text, NULL, NULL, json);
  sink out = {.failed = text->failed};
  json_out answer = {.out = &out};
  json_open(&answer, NULL, '{');
  json_bool(&answer, "ok", true);
  json_string(&answer, "help", text->data, text->length);
  json_close(&answer, '}');
  sink_text(&out, "\n");
  sink_deinit(text);
  return publish(&out, NULL, NULL, json);
}
