/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre fmt` */
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "commands.h"
#include "kernel_file.h"
#include "output.h"
#include "plan_json.h"

typedef struct fmt_flags {
  const char *file;
  bool check, write;
} fmt_flags;

static bool read_flags(int count, char **words, fmt_flags *f, problem *wrong) {
  flag flags[] = {FLAG("--check", &f->check), FLAG("--write", &f->write)};
  arguments spec = {
      .command = "fmt", .flags = flags, .flag_count = 2, .operand = &f->file};
  if (!args_read(&spec, count, words, wrong)) return false;
  if (f->check && f->write) {
    return problem_set(wrong, KIND_USAGE, "choose --check or --write",
                       "--check and --write are both given");
  }
  if (f->write && strcmp(f->file, "-") == 0) {
    return problem_set(wrong, KIND_USAGE, "name a file, or leave --write out",
                       "standard input cannot be written in place");
  }
  return true;
}

static size_t first_difference(const input *in, const char *text,
                               size_t length) {
  size_t at = 0;
  while (at < in->length && at < length && in->text[at] == text[at]) at++;
  return at;
}

static int not_formatted(const input *in, const char *text, size_t length,
                         bool json) {
  problem wrong = {0};
  problem_at(&wrong, in, first_difference(in, text, length));
  problem_set(&wrong, KIND_INPUT, "", "it would be laid out otherwise");
  if (in->label[0] == '<') {
    problem_fix(&wrong, "let 'vyre fmt -' write it");
  } else {
    problem_fix(&wrong, "vyre fmt -w %.200s", in->label);
  }
  return problem_report(&wrong, json);
}

static int answer(const fmt_flags *f, const input *in, const char *text,
                  size_t length, bool json) {
  sink out = {0};
  bool same = length == in->length && memcmp(text, in->text, length) == 0;
  if (f->check && !same) return not_formatted(in, text, length, json);
  out_file file = {.path = f->file, .head = text, .head_length = length};
  if (json) {
    json_out answer_json = json_begin(&out);
    json_bool(&answer_json, "changed", !same);
    if (!f->write && !f->check) {
      json_string(&answer_json, "text", text, length);
    }
    json_end(&answer_json);
  } else if (!f->write && !f->check) {
    sink_bytes(&out, text, length);
  }
  return publish_files(&out, &file, f->write && !same ? 1 : 0, json);
}

int cmd_fmt(int count, char **words, bool json) {
  fmt_flags f = {.file = NULL};
  problem wrong = {0};
  kernel_file file = {.program = NULL};
  vyre_arena arena = {0};
  vyre_status st = {0};
  const char *text;
  size_t length;
  int code;
  if (!read_flags(count, words, &f, &wrong) ||
      !read_input_up_to(f.file, KERNEL_LIMIT, &file.in, &wrong)) {
    code = problem_report(&wrong, json);
  } else if (vyre_source_format(file.in.text, file.in.length, file.in.label,
                                &arena, &text, &length, &file.findings,
                                &st) == VYRE_OK) {
    code = answer(&f, &file.in, text, length, json);
  } else {
    if (file.findings.count == 0) problem_from_status(&wrong, &st);
    code = kernel_file_report(&file, &wrong, json);
  }
  vyre_arena_finish(&arena);
  kernel_file_finish(&file);
  return code;
}
