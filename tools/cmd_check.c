/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre check` */
#include <string.h>
#include <unistd.h>

#include "vyre/validate.h"

#include "args.h"
#include "commands.h"
#include "kernel_file.h"
#include "output.h"

/* What goes where: answers to stdout, findings to stderr. */
typedef struct check_state {
  sink out, errors;
  json_out json;
  bool as_json, fine;
  int code;
} check_state;

/* Validates what parsed. A failure other than a finding is a problem. */
static bool validate(kernel_file *file, problem *wrong) {
  bool fine = true;
  for (size_t i = 0; i < kernel_file_count(file); i++) {
    vyre_status st = {0};
    size_t before = file->findings.count + file->findings.dropped;
    vyre_code code =
        vyre_program_validate(kernel_file_at(file, i), &file->findings, &st);
    if (code == VYRE_OK) continue;
    fine = false;
    if (file->findings.count + file->findings.dropped == before) {
      wrong->file = file->in.label;
      return problem_from_status(wrong, &st);
    }
  }
  return fine;
}

static void put_kernels(json_out *json, const kernel_file *file) {
  json_open(json, "kernels", '[');
  for (size_t i = 0; i < kernel_file_count(file); i++) {
    json_text(json, NULL, vyre_program_name(kernel_file_at(file, i)));
  }
  json_close(json, ']');
}

static void tell_json(check_state *s, const char *path, const kernel_file *file,
                      const problem *wrong, bool fine) {
  json_open(&s->json, NULL, '{');
  json_text(&s->json, "file", file->in.label ? file->in.label : path);
  json_bool(&s->json, "ok", fine);
  put_kernels(&s->json, file);
  json_findings(&s->json, &file->findings);
  if (wrong->kind) {
    json_text(&s->json, "error", wrong->message);
    json_text(&s->json, "fix", wrong->fix);
  }
  json_close(&s->json, '}');
}

static void tell_text(check_state *s, const kernel_file *file,
                      const problem *wrong, bool fine) {
  if (wrong->kind) {
    problem_text(wrong, &s->errors);
    return;
  }
  if (!fine) {
    vyre_diagnostics_print(&file->findings, file->in.label, file->in.text,
                           file->in.length, sink_writer(&s->errors));
    return;
  }
  size_t count = kernel_file_count(file);
  sink_format(&s->out, "%.800s: %zu kernel%s", file->in.label, count,
              count == 1 ? "" : "s");
  for (size_t i = 0; i < count; i++) {
    sink_text(&s->out, i ? ", " : ": ");
    sink_text(&s->out, vyre_program_name(kernel_file_at(file, i)));
  }
  sink_text(&s->out, "\n");
}

static void check_file(check_state *s, const char *path) {
  kernel_file file = {.program = NULL};
  problem wrong = {0};
  bool fine = kernel_file_read(path, &file, &wrong) &&
              kernel_file_has_any(&file, &wrong) && validate(&file, &wrong);
  if (!fine) s->fine = false;
  if (s->as_json) {
    tell_json(s, path, &file, &wrong, fine);
  } else {
    tell_text(s, &file, &wrong, fine);
  }
  kernel_file_finish(&file);
}

/* The "ok" of all files comes first, so the files are put together apart. */
static int answer_json(check_state *s) {
  sink out = {.failed = s->out.failed};
  json_out json = {.out = &out};
  json_open(&json, NULL, '{');
  json_bool(&json, "ok", s->fine);
  json_open(&json, "files", '[');
  json_raw(&json, NULL, s->out.data, s->out.length);
  json_close(&json, ']');
  json_close(&json, '}');
  sink_text(&out, "\n");
  return publish(&out, NULL, NULL, true);
}

int cmd_check(int count, char **words, bool json) {
  vyre_arena arena = {0};
  problem wrong = {0};
  word_list files = {.arena = &arena};
  arguments spec = {.command = "check", .operands = &files};
  check_state s = {.as_json = json, .fine = true};
  int code;
  s.json.out = &s.out;
  if (!args_read(&spec, count, words, &wrong)) {
    code = problem_report(&wrong, json);
  } else {
    for (size_t i = 0; i < files.list.count; i++) {
      check_file(&s, word_at(&files, i));
    }
    write_all(STDERR_FILENO, s.errors.data, s.errors.length);
    code = json ? answer_json(&s) : publish(&s.out, NULL, NULL, false);
    if (code == EXIT_FINE && !s.fine) code = EXIT_WRONG;
  }
  sink_finish(&s.out);
  sink_finish(&s.errors);
  vyre_arena_finish(&arena);
  return code;
}
