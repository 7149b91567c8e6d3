/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre emit` */
#include <string.h>
#include <unistd.h>

#include "vyre/binary.h"

#include "args.h"
#include "commands.h"
#include "kernel_file.h"
#include "output.h"
#include "plan_json.h"

enum { TO_TEXT, TO_BINARY };

typedef struct emit_flags {
  const char *file, *kernel, *output;
  size_t to;
} emit_flags;

static bool read_flags(int count, char **words, emit_flags *f, bool json,
                       problem *wrong) {
  flag flags[] = {FLAG("--kernel", &f->kernel), FLAG("--to", &f->to),
                  FLAG("--output", &f->output)};
  arguments spec = {
      .command = "emit", .flags = flags, .flag_count = 3, .operand = &f->file};
  if (!args_read(&spec, count, words, wrong)) return false;
  if (f->output && strcmp(f->output, "-") == 0) f->output = NULL;
  if (!f->output && f->to == TO_BINARY && json) {
    return problem_set(wrong, KIND_USAGE, "add -o FILE",
                       "JSON cannot hold the binary form");
  }
  if (!f->output && f->to == TO_BINARY && isatty(STDOUT_FILENO)) {
    return problem_set(wrong, KIND_USAGE, "add -o FILE",
                       "the binary form would go to a terminal");
  }
  return true;
}

/* The program in the form that was asked for. */
static bool emit(const vyre_program *program, const emit_flags *f, sink *out,
                 problem *wrong) {
  if (f->to == TO_TEXT) {
    return (vyre_program_print(program, sink_writer(out)) && !out->failed) ||
           problem_no_memory(wrong, "the answer");
  }
  vyre_arena arena = {0};
  vyre_status st = {0};
  const uint8_t *bytes;
  size_t length;
  bool fine = vyre_program_write_binary(program, &arena, &bytes, &length,
                                        &st) == VYRE_OK;
  if (fine) {
    sink_bytes(out, (const char *)bytes, length);
    fine = !out->failed || problem_no_memory(wrong, "the answer");
  } else {
    problem_from_status(wrong, &st);
  }
  vyre_arena_finish(&arena);
  return fine;
}

static int answer(const vyre_program *program, const emit_flags *f, sink *made,
                  bool json) {
  sink out = {0};
  out_file file = {
      .path = f->output, .head = made->data, .head_length = made->length};
  if (json) {
    char hash[VYRE_HASH128_TEXT];
    vyre_hash128_text(vyre_program_fingerprint(program), hash);
    json_out text = json_begin(&out);
    json_text(&text, "kernel", vyre_program_name(program));
    json_text(&text, "fingerprint", hash);
    json_u64(&text, "bytes", made->length);
    if (f->output) {
      json_text(&text, "file", f->output);
    } else {
      json_string(&text, "text", made->data, made->length);
    }
    json_end(&text);
  } else if (!f->output) {
    sink_bytes(&out, made->data, made->length);
  }
  return publish_files(&out, &file, f->output ? 1 : 0, json);
}

int cmd_emit(int count, char **words, bool json) {
  emit_flags f = {.file = NULL};
  problem wrong = {0};
  kernel_file file = {.program = NULL};
  sink made = {0};
  vyre_program *program = NULL;
  int code = EXIT_FINE;
  if (!read_flags(count, words, &f, json, &wrong)) {
    code = problem_report(&wrong, json);
  } else {
    program = kernel_file_open(f.file, f.kernel, &file, json, &code);
  }
  if (program) {
    code = emit(program, &f, &made, &wrong) ? answer(program, &f, &made, json)
                                            : problem_report(&wrong, json);
  }
  sink_finish(&made);
  kernel_file_finish(&file);
  return code;
}
