/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/text.h"
#include "io/json_out.h"

bool problem_set(problem *out, const char *kind, const char *fix,
                 const char *format, ...) {
  if (out->kind) return false;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(out->message, sizeof out->message, format, arguments);
  va_end(arguments);
  snprintf(out->fix, sizeof out->fix, "%s", fix);
  out->kind = kind;
  return false;
}

void problem_fix(problem *out, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(out->fix, sizeof out->fix, format, arguments);
  va_end(arguments);
}

/* Codes below 1100 come from backends. Two of them are not the device's
 * fault: a program that breaks a rule, and one that does not end. */
static bool is_device_fault(const vyre_status *st) {
  return st->code > VYRE_OK && st->code < VYRE_PLAN_REJECTED &&
         st->code != VYRE_INVALID_PROGRAM && st->kind != VYRE_KIND_OUT_OF_FUEL;
}

bool problem_from_status(problem *out, const vyre_status *st) {
  if (out->kind) return false;
  /* The library's fix names C functions. Keep only fixes that a backend
   * wrote. */
  bool is_name = st->kind == VYRE_KIND_DEVICE_UNAVAILABLE &&
                 strncmp(st->fix, "open \"auto\"", 11) == 0;
  problem_set(out,
              st->kind == VYRE_KIND_NONE ? vyre_code_name(st->code)
                                         : vyre_kind_name(st->kind),
              is_name ? "write --backend auto, or a device that `vyre devices` "
                        "lists"
                      : st->fix,
              "%s", st->message);
  out->field = st->field;
  out->number_count = st->number_count;
  memcpy(out->numbers, st->numbers, sizeof out->numbers);
  out->device = is_device_fault(st);
  return false;
}

bool problem_from_options(problem *out, const vyre_status *st) {
  bool is_usage = st->field && strcmp(st->field, "backend_options") == 0;
  if (out->kind) return false;
  problem_from_status(out, st);
  if (is_usage) {
    out->kind = KIND_USAGE;
    out->field = NULL;
  }
  return false;
}

bool problem_no_memory(problem *out, const char *what) {
  return problem_set(out, vyre_kind_name(VYRE_KIND_STORAGE_RESERVE_FAILED),
                     "free memory, or use a smaller input",
                     "out of memory for %s", what);
}

/* "waves.json:3:12: " */
static void put_place(const problem *what, sink *out) {
  if (!what->file) return;
  show_bytes(out, what->file, strlen(what->file));
  if (what->line) {
    sink_format(out, ":%llu:%llu", (unsigned long long)what->line,
                (unsigned long long)what->column);
  }
  sink_text(out, ": ");
}

static void put_sentence(const problem *what, sink *out) {
  put_place(what, out);
  show_bytes(out, what->message, strlen(what->message));
}

void problem_json(const problem *what, sink *out) {
  json_out json = {.out = out};
  sink sentence = {0};
  put_sentence(what, &sentence);
  sink_text(&sentence, ". Fix: ");
  show_bytes(&sentence, what->fix, strlen(what->fix));
  json_open(&json, NULL, '{');
  json_bool(&json, "ok", false);
  json_open(&json, "error", '{');
  json_text(&json, "kind", what->kind);
  if (what->field) json_text(&json, "field", what->field);
  for (uint32_t i = 0; i < what->number_count; i++) {
    json_u64(&json, what->numbers[i].name, what->numbers[i].value);
  }
  if (what->file) json_text(&json, "file", what->file);
  if (what->line) {
    json_u64(&json, "line", what->line);
    json_u64(&json, "column", what->column);
  }
  json_string(&json, "message", sentence.data, sentence.length);
  json_close(&json, '}');
  if (what->printed) {
    json_printed(&json, what->printed, what->printed_dropped);
  }
  json_close(&json, '}');
  sink_text(out, "\n");
  if (sentence.failed) out->failed = true;
  sink_deinit(&sentence);
}

void problem_text(const problem *what, sink *out) {
  sink_format(out, "error: %s: ", what->kind);
  put_sentence(what, out);
  sink_text(out, "\nFix: ");
  show_bytes(out, what->fix, strlen(what->fix));
  sink_text(out, "\n");
}

int problem_report(const problem *what, bool json) {
  sink out = {0};
  bool told = false;
  if (json) {
    problem_json(what, &out);
    told = !out.failed && write_all(STDOUT_FILENO, out.data, out.length);
    out.length = 0;
  }
  if (!told) {
    problem_text(what, &out);
    write_all(STDERR_FILENO, out.data, out.length);
  }
  sink_deinit(&out);
  if (what->device) return EXIT_DEVICE;
  return strcmp(what->kind, KIND_USAGE) == 0 ? EXIT_USAGE : EXIT_WRONG;
}
