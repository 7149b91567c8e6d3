/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli/kernel_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vyre/binary.h"

#include "cli/output.h"
#include "cli/parse_options.h"
#include "cli/text.h"

enum { MAX_NAMES = 64, SHOWN_NAME = 80 };

/* --- packages ------------------------------------------------------------- */

bool is_package_file(const char *path) {
  char head[8];
  if (strcmp(path, "-") == 0) return false;
  FILE *file = fopen(path, "rb");
  size_t length = file ? fread(head, 1, sizeof head, file) : 0;
  if (file) (void)fclose(file);
  return vyre_package_is_package(head, length);
}

/* Decodes the programs of a package. */
static bool read_programs(kernel_file *out, problem *wrong) {
  vyre_status st = {0};
  size_t count = vyre_package_kernel_count(out->package);
  out->programs = calloc(count + 1, sizeof(vyre_program *));
  if (!out->programs) return problem_no_memory(wrong, "the kernels");
  for (; out->program_count < count; out->program_count++) {
    vyre_package_kernel kernel;
    (void)vyre_package_get_kernel(out->package, out->program_count, &kernel);
    if (vyre_package_read_program(out->package, kernel.name,
                                  &out->programs[out->program_count],
                                  &st) != VYRE_OK) {
      return problem_from_status(wrong, &st);
    }
  }
  return true;
}

static bool open_package(const char *path, kernel_file *out, problem *wrong) {
  vyre_status st = {0};
  out->in.label = path;
  out->in.text = "";
  bool fine = vyre_package_open_file(path, vyre_allocator_heap(), &out->package,
                                     &st) == VYRE_OK
                  ? read_programs(out, wrong)
                  : problem_from_status(wrong, &st);
  if (!fine) wrong->file = path;
  return fine;
}

static void close_package(kernel_file *file) {
  for (size_t i = 0; i < file->program_count; i++) {
    vyre_program_release(file->programs[i]);
  }
  free(file->programs);
  vyre_package_release(file->package);
}

/* --- kernel files --------------------------------------------------------- */

bool kernel_file_read(const char *path, kernel_file *out, problem *wrong) {
  input in = {0};
  if (is_package_file(path)) return open_package(path, out, wrong);
  if (!read_input_up_to(path, KERNEL_LIMIT, &in, wrong)) {
    input_deinit(&in);
    return false;
  }
  return kernel_file_parse(&in, out, wrong);
}

bool kernel_file_parse(input *in, kernel_file *out, problem *wrong) {
  vyre_status st = {0};
  vyre_code code;
  out->in = *in;
  *in = (input){0};
  if (vyre_program_is_binary(out->in.text, out->in.length)) {
    code =
        vyre_program_read_binary((const uint8_t *)out->in.text, out->in.length,
                                 vyre_allocator_heap(), &out->program, &st);
  } else {
    code = vyre_module_parse_with(out->in.text, out->in.length, out->in.label,
                                  parse_options(), vyre_allocator_heap(),
                                  &out->module, &out->findings, &st);
  }
  if (code == VYRE_OK) return true;
  if (out->findings.count == 0) {
    problem_from_status(wrong, &st);
    wrong->file = out->in.label;
  }
  return false;
}

void kernel_file_deinit(kernel_file *file) {
  close_package(file);
  vyre_module_release(file->module);
  vyre_program_release(file->program);
  vyre_diagnostics_deinit(&file->findings);
  input_deinit(&file->in);
  *file = (kernel_file){.program = NULL};
}

size_t kernel_file_count(const kernel_file *file) {
  if (file->package) return file->program_count;
  if (file->program) return 1;
  return file->module ? vyre_module_kernel_count(file->module) : 0;
}

vyre_program *kernel_file_at(const kernel_file *file, size_t index) {
  if (file->package) {
    return index < file->program_count ? file->programs[index] : NULL;
  }
  return file->program ? file->program
                       : vyre_module_kernel(file->module, index);
}

/* "'a', 'b' and 5 more" */
static void list_names(const kernel_file *file, char *text, size_t size) {
  size_t count = kernel_file_count(file), used = 0;
  size_t max = count > 6 ? 5 : count;
  text[0] = '\0';
  for (size_t i = 0; i < max && used < size; i++) {
    used += (size_t)snprintf(text + used, size - used, "%s'%.40s'",
                             i == 0           ? ""
                             : i + 1 == count ? " and "
                                              : ", ",
                             vyre_program_name(kernel_file_at(file, i)));
  }
  if (max < count && used < size) {
    snprintf(text + used, size - used, " and %zu more", count - max);
  }
}

static vyre_program *no_such_kernel(const kernel_file *file, const char *name,
                                    problem *wrong) {
  const char *names[MAX_NAMES];
  char list[400], shown[SHOWN_NAME];
  size_t count = kernel_file_count(file);
  if (count > MAX_NAMES) count = MAX_NAMES;
  for (size_t i = 0; i < count; i++) {
    names[i] = vyre_program_name(kernel_file_at(file, i));
  }
  list_names(file, list, sizeof list);
  show_into(shown, sizeof shown, name, strlen(name));
  const char *meant = nearest_word(name, strlen(name), names, count);
  wrong->file = file->in.label;
  problem_set(wrong, KIND_USAGE, "", "unknown kernel '%s'; the file has %s",
              shown, list);
  problem_fix(wrong, meant ? "did you mean -k %s?" : "write -k %s",
              meant ? meant : names[0]);
  return NULL;
}

bool kernel_file_has_any(const kernel_file *file, problem *wrong) {
  if (kernel_file_count(file) > 0) return true;
  wrong->file = file->in.label;
  return problem_set(
      wrong, KIND_INPUT,
      "add a kernel: kernel NAME, its buffers, and a body in braces",
      "the file has no kernel");
}

vyre_program *kernel_file_choose(const kernel_file *file, const char *name,
                                 problem *wrong) {
  size_t count = kernel_file_count(file);
  if (!kernel_file_has_any(file, wrong)) return NULL;
  for (size_t i = 0; name && i < count; i++) {
    vyre_program *program = kernel_file_at(file, i);
    if (strcmp(vyre_program_name(program), name) == 0) return program;
  }
  if (name) return no_such_kernel(file, name, wrong);
  if (count == 1) return kernel_file_at(file, 0);
  char list[400];
  list_names(file, list, sizeof list);
  wrong->file = file->in.label;
  problem_set(wrong, KIND_USAGE, "", "the file has %zu kernels: %s", count,
              list);
  problem_fix(wrong, "choose one with -k, such as -k %s",
              vyre_program_name(kernel_file_at(file, 0)));
  return NULL;
}

vyre_program *kernel_file_open(const char *path, const char *kernel,
                               kernel_file *file, bool json, int *code) {
  problem wrong = {0};
  vyre_program *program = NULL;
  if (kernel_file_read(path, file, &wrong)) {
    program = kernel_file_choose(file, kernel, &wrong);
  }
  if (!program) *code = kernel_file_report(file, &wrong, json);
  return program;
}

static void put_finding(json_out *json, const vyre_diagnostic *d) {
  const char *file = d->files ? d->files->file : NULL;
  const char *note_file = d->files ? d->files->note_file : NULL;
  json_open(json, NULL, '{');
  if (file) json_text(json, "file", file);
  json_text(json, "rule", d->rule);
  json_u64(json, "line", d->line);
  json_u64(json, "column", d->column);
  json_u64(json, "length", d->length);
  json_text(json, "message", d->message);
  json_text(json, "fix", d->fix);
  if (d->note) {
    json_open(json, "other", '{');
    if (note_file) json_text(json, "file", note_file);
    json_u64(json, "line", d->note_line);
    json_u64(json, "column", d->note_column);
    json_text(json, "message", d->note);
    json_close(json, '}');
  }
  json_close(json, '}');
}

void json_findings(json_out *json, const vyre_diagnostics *findings) {
  json_open(json, "findings", '[');
  for (size_t i = 0; i < findings->count; i++) {
    put_finding(json, &findings->items[i]);
  }
  json_close(json, ']');
  json_u64(json, "dropped", findings->dropped);
}

int kernel_file_report(const kernel_file *file, const problem *wrong,
                       bool json) {
  if (wrong->kind) return problem_report(wrong, json);
  sink out = {0};
  if (json) {
    json_out answer = {.out = &out};
    json_open(&answer, NULL, '{');
    json_bool(&answer, "ok", false);
    json_text(&answer, "file", file->in.label);
    json_findings(&answer, &file->findings);
    json_close(&answer, '}');
    sink_text(&out, "\n");
  } else {
    vyre_diagnostics_print(&file->findings, file->in.label, file->in.text,
                           file->in.length, sink_writer(&out));
  }
  write_all(json ? STDOUT_FILENO : STDERR_FILENO, out.data, out.length);
  sink_deinit(&out);
  return EXIT_WRONG;
}
