/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre build`: compiles kernels ahead of time. */
#include "commands/build.h"

#include <stdlib.h>
#include <string.h>

#include "vyre/validate.h"

#include "cli/args.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "commands/package_text.h"
#include "plan/plan_json.h"

enum { MAX_VARIANTS = 3 };

typedef struct build_flags {
  const char *file, *output;
  vyre_package_options options;
  vyre_compile_options variants[MAX_VARIANTS];
} build_flags;

static bool read_flags(int count, char **words, build_flags *f,
                       problem *wrong) {
  const char *workgroup = NULL;
  uint64_t ulp_budget = 0;
  bool counts = false;
  flag flags[] = {
      FLAG("--output", &f->output), FLAG("--target", &f->options.targets),
      FLAG("--workgroup", &workgroup), FLAG("--ulp-budget", &ulp_budget),
      FLAG("--count-iterations", &counts)};
  arguments spec = {.command = "build",
                    .flags = flags,
                    .flag_count = sizeof flags / sizeof flags[0],
                    .operand = &f->file};
  if (!args_read(&spec, count, words, wrong)) return false;
  if (f->output && strcmp(f->output, "-") == 0) f->output = NULL;
  if (!is_other_file("--output", f->output, f->file, wrong)) return false;
  size_t used = 0;
  if (workgroup && !args_extent("--workgroup", workgroup,
                                f->variants[used++].workgroup, wrong)) {
    return false;
  }
  if (ulp_budget > 0) f->variants[used++].ulp_budget = (uint8_t)ulp_budget;
  if (counts) f->variants[used++].counts_iterations = true;
  f->options.variants = f->variants;
  f->options.variant_count = used;
  return true;
}

bool build_package(kernel_file *file, const vyre_package_options *options,
                   sink *out, problem *wrong) {
  size_t count = kernel_file_count(file);
  vyre_program **programs = calloc(count + 1, sizeof(vyre_program *));
  vyre_status st = {0};
  if (!programs) return problem_no_memory(wrong, "the kernels");
  bool fine = true;
  for (size_t i = 0; i < count && fine; i++) {
    programs[i] = kernel_file_at(file, i);
    fine = vyre_program_validate(programs[i], &file->findings, &st) == VYRE_OK;
  }
  if (fine) {
    fine = vyre_package_write(NULL, programs, count, options, sink_writer(out),
                              &st) == VYRE_OK;
  }
  free(programs);
  if (fine || file->findings.count > 0) return fine;
  wrong->file = file->in.label;
  return problem_from_status(wrong, &st);
}

/* Prints the contents of the package, and writes it to the file. */
static int answer(const build_flags *f, const sink *package, bool json) {
  vyre_package *opened;
  vyre_status st = {0};
  problem wrong = {0};
  sink out = {0};
  out_file file = {
      .path = f->output, .body = package->data, .body_length = package->length};
  if (vyre_package_open(package->data, package->length, vyre_allocator_heap(),
                        &opened, &st) != VYRE_OK) {
    problem_from_status(&wrong, &st);
    return problem_report(&wrong, json);
  }
  if (json) {
    json_out text = json_begin(&out);
    json_package(&text, opened);
    json_u64(&text, "bytes", package->length);
    json_text(&text, "file", f->output);
    json_end(&text);
  } else if (f->output) {
    put_package(&out, opened);
    sink_format(&out, "wrote %.800s, %zu bytes\n", f->output, package->length);
  } else {
    sink_bytes(&out, package->data, package->length);
  }
  vyre_package_release(opened);
  return publish_files(&out, &file, f->output ? 1 : 0, json);
}

int cmd_build(int count, char **words, bool json) {
  build_flags f = {.file = NULL};
  problem wrong = {0};
  kernel_file file = {.program = NULL};
  sink package = {0};
  int code;
  if (!read_flags(count, words, &f, &wrong)) {
    code = problem_report(&wrong, json);
  } else if (json && !f.output) {
    problem_set(&wrong, KIND_USAGE, "name a file with -o",
                "--json needs --output: a package is not text");
    code = problem_report(&wrong, json);
  } else {
    bool fine = kernel_file_read(f.file, &file, &wrong) &&
                kernel_file_has_any(&file, &wrong) &&
                build_package(&file, &f.options, &package, &wrong);
    code = fine ? answer(&f, &package, json)
                : kernel_file_report(&file, &wrong, json);
  }
  sink_deinit(&package);
  kernel_file_deinit(&file);
  return code;
}
