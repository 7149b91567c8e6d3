/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre fmt` */
#include <string.h>
#include <unistd.h>

#include "vyre/binary.h"

#include "cli/args.h"
#include "cli/commands.h"
#include "cli/kernel_file.h"
#include "cli/output.h"
#include "cli/parse_options.h"

typedef struct fmt_flags {
  word_list files;
  bool check, write, json;
} fmt_flags;

/* All files. Nothing is written before every file was read. */
typedef struct fmt_state {
  fmt_flags flags;
  vyre_arena arena; /* holds the words and the texts */
  sink out, errors;
  json_out json;
  out_file *written; /* array of file_count entries */
  size_t written_count;
  bool fine;
} fmt_state;

/* One file and its result. */
typedef struct fmt_file {
  kernel_file file;
  const char *path, *text;
  size_t length;
  bool same;
} fmt_file;

static bool read_flags(int count, char **words, fmt_flags *f, problem *wrong) {
  flag flags[] = {FLAG("--check", &f->check), FLAG("--write", &f->write)};
  arguments spec = {
      .command = "fmt", .flags = flags, .flag_count = 2, .operands = &f->files};
  if (!args_read(&spec, count, words, wrong)) return false;
  if (f->check && f->write) {
    return problem_set(wrong, KIND_USAGE, "choose --check or --write",
                       "--check and --write are both given");
  }
  for (size_t i = 0; f->write && i < f->files.list.count; i++) {
    if (strcmp(word_at(&f->files, i), "-") != 0) continue;
    return problem_set(wrong, KIND_USAGE, "name a file, or remove --write",
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

static bool not_formatted(const fmt_file *f, problem *wrong) {
  const input *in = &f->file.in;
  problem_at(wrong, in, first_difference(in, f->text, f->length));
  problem_set(wrong, KIND_INPUT, "", "the file is not formatted");
  if (in->label[0] == '<') {
    problem_fix(wrong, "run 'vyre fmt -'");
  } else {
    problem_fix(wrong, "vyre fmt -w %.200s", in->label);
  }
  return false;
}

/* Reads and formats a file. Returns false with a problem, or without one if
 * the diagnostics say what is wrong. */
static bool format(fmt_state *s, fmt_file *f, problem *wrong) {
  input *in = &f->file.in;
  vyre_status st = {0};
  if (!read_input_up_to(f->path, KERNEL_LIMIT, in, wrong)) return false;
  if (vyre_program_is_binary(in->text, in->length)) {
    wrong->file = in->label;
    problem_set(wrong, KIND_INPUT, "",
                "the file is in binary form and cannot be formatted");
    problem_fix(wrong, "convert it to text: vyre emit %.200s --to ir",
                in->label[0] == '<' ? "-" : in->label);
    return false;
  }
  if (vyre_source_format_with(in->text, in->length, in->label,
                              parse_options_of_imports(), &s->arena, &f->text,
                              &f->length, &f->file.findings, &st) != VYRE_OK) {
    if (f->file.findings.count == 0) {
      wrong->file = in->label;
      problem_from_status(wrong, &st);
    }
    return false;
  }
  f->same =
      f->length == in->length && memcmp(f->text, in->text, f->length) == 0;
  return !s->flags.check || f->same || not_formatted(f, wrong);
}

static void tell_json(fmt_state *s, const fmt_file *f, const problem *wrong,
                      bool fine) {
  const char *label = f->file.in.label;
  json_open(&s->json, NULL, '{');
  json_text(&s->json, "file", label ? label : f->path);
  json_bool(&s->json, "ok", fine);
  if (f->text) json_bool(&s->json, "changed", !f->same);
  if (fine && !s->flags.write && !s->flags.check) {
    json_string(&s->json, "text", f->text, f->length);
  }
  if (wrong->kind) {
    if (wrong->line) {
      json_u64(&s->json, "line", wrong->line);
      json_u64(&s->json, "column", wrong->column);
    }
    json_text(&s->json, "error", wrong->message);
    json_text(&s->json, "fix", wrong->fix);
  } else if (!fine) {
    json_findings(&s->json, &f->file.findings);
  }
  json_close(&s->json, '}');
}

static void tell_text(fmt_state *s, const fmt_file *f, const problem *wrong,
                      bool fine) {
  const input *in = &f->file.in;
  if (wrong->kind) {
    problem_text(wrong, &s->errors);
  } else if (!fine) {
    vyre_diagnostics_print(&f->file.findings, in->label, in->text, in->length,
                           sink_writer(&s->errors));
  } else if (!s->flags.write && !s->flags.check) {
    sink_bytes(&s->out, f->text, f->length);
  }
}

/* Adds a file to write. A file that is named twice is written once. */
static void write_later(fmt_state *s, const fmt_file *f) {
  for (size_t i = 0; i < s->written_count; i++) {
    if (strcmp(s->written[i].path, f->path) == 0) return;
  }
  s->written[s->written_count++] =
      (out_file){.path = f->path, .head = f->text, .head_length = f->length};
}

static void format_file(fmt_state *s, const char *path) {
  fmt_file f = {.path = path};
  problem wrong = {0};
  bool fine = format(s, &f, &wrong);
  if (!fine) s->fine = false;
  if (fine && s->flags.write && !f.same) write_later(s, &f);
  if (s->flags.json) {
    tell_json(s, &f, &wrong, fine);
  } else {
    tell_text(s, &f, &wrong, fine);
  }
  kernel_file_deinit(&f.file);
}

/* Writes standard output: the formatted texts, or one JSON object about all
 * files. */
static sink take_answer(fmt_state *s) {
  sink out = s->out;
  s->out = (sink){0};
  if (!s->flags.json) return out;
  sink all = {.failed = out.failed};
  json_out json = {.out = &all};
  json_open(&json, NULL, '{');
  json_bool(&json, "ok", s->fine);
  json_open(&json, "files", '[');
  json_raw(&json, NULL, out.data, out.length);
  json_close(&json, ']');
  json_close(&json, '}');
  sink_text(&all, "\n");
  sink_deinit(&out);
  return all;
}

static int format_all(fmt_state *s) {
  size_t count = s->flags.files.list.count;
  problem wrong = {0};
  s->written = vyre_arena_alloc(&s->arena, count * sizeof *s->written, 0);
  if (!s->written) {
    problem_no_memory(&wrong, "the list of files");
    return problem_report(&wrong, s->flags.json);
  }
  for (size_t i = 0; i < count; i++) {
    format_file(s, word_at(&s->flags.files, i));
  }
  write_all(STDERR_FILENO, s->errors.data, s->errors.length);
  sink answer = take_answer(s);
  int code =
      publish_files(&answer, s->written, s->written_count, s->flags.json);
  return code == EXIT_FINE && !s->fine ? EXIT_WRONG : code;
}

int cmd_fmt(int count, char **words, bool json) {
  fmt_state s = {.flags.json = json, .fine = true};
  problem wrong = {0};
  s.flags.files.arena = &s.arena;
  s.json.out = &s.out;
  int code = read_flags(count, words, &s.flags, &wrong)
                 ? format_all(&s)
                 : problem_report(&wrong, json);
  sink_deinit(&s.out);
  sink_deinit(&s.errors);
  vyre_arena_deinit(&s.arena);
  return code;
}
