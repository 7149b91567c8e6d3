/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre embed`: writes kernels as a C header. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "vyre/device.h"
#include "vyre/pipeline.h"

#include "cli/args.h"
#include "cli/commands.h"
#include "cli/kernel_file.h"
#include "cli/output.h"
#include "commands/build.h"
#include "commands/embed/internal.h"
#include "plan/plan_json.h"

typedef struct embed_flags {
  const char *file, *output, *prefix, *targets;
  bool is_aot, may_compile;
} embed_flags;

typedef struct product {
  const embed_flags *flags;
  vyre_arena arena;
  name_set names;
  struct_list structs;
  embedded *kernels;
  size_t count;
  sink text;
} product;

static bool read_flags(int count, char **words, embed_flags *f,
                       problem *wrong) {
  flag flags[] = {FLAG("--output", &f->output), FLAG("--prefix", &f->prefix),
                  FLAG("--aot", &f->is_aot), FLAG("--target", &f->targets),
                  FLAG("--may-compile", &f->may_compile)};
  arguments spec = {.command = "embed",
                    .flags = flags,
                    .flag_count = sizeof flags / sizeof flags[0],
                    .operand = &f->file};
  if (!args_read(&spec, count, words, wrong)) return false;
  if (f->output && strcmp(f->output, "-") == 0) f->output = NULL;
  if (!is_other_file("--output", f->output, f->file, wrong)) return false;
  if (!f->is_aot && (f->targets || f->may_compile)) {
    return problem_set(wrong, KIND_USAGE, "add --aot",
                       "%s is for code that is compiled ahead of time",
                       f->targets ? "--target" : "--may-compile");
  }
  if (!f->prefix || (is_identifier(f->prefix) && strlen(f->prefix) < 100)) {
    return true;
  }
  return problem_set(
      wrong, KIND_USAGE, "use letters, digits and _, starting with a letter",
      "--prefix is '%.60s', which is not the start of a C identifier",
      f->prefix);
}

/* Refuse a kernel that no device can run. */
static bool check_kernel(vyre_program *program, kernel_file *file,
                         problem *wrong) {
  vyre_device *device = NULL;
  vyre_pipeline *pipeline = NULL;
  vyre_status st = {0};
  bool fine = vyre_device_open(NULL, "ref", &device, &st) == VYRE_OK &&
              vyre_pipeline_compile(device, program, NULL, &pipeline,
                                    &file->findings, &st) == VYRE_OK;
  vyre_pipeline_release(pipeline);
  vyre_device_release(device);
  if (fine || file->findings.count > 0) return fine;
  wrong->file = file->in.label;
  return problem_from_status(wrong, &st);
}

/* Writes "saxpy.vyre" as "SAXPY" for the include guard. */
static void put_base(const char *path, sink *out) {
  const char *base = strrchr(path, '/');
  base = base ? base + 1 : path;
  size_t length = strcspn(base, ".");
  if (strcmp(path, "-") == 0 || length == 0) {
    sink_text(out, "KERNELS");
    return;
  }
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)base[i];
    char shown = isalnum(c) ? (char)toupper(c) : '_';
    if (i == 0 && isdigit(c)) sink_text(out, "K");
    sink_bytes(out, &shown, 1);
  }
}

static void put_guard(const product *p, sink *out) {
  if (p->flags->prefix) {
    put_base(p->flags->prefix, out);
    sink_text(out, "_");
  }
  put_base(p->flags->file, out);
  sink_text(out, "_VYRE_H");
}

static bool put_head(product *p) {
  sink *out = &p->text;
  sink_text(out,
            "/* Made by `vyre embed`: kernels, and functions that run them.\n"
            " *");
  for (size_t i = 0; i < p->count; i++) {
    sink_format(out, "%s %.300s", i ? "," : "", p->kernels[i].function);
  }
  const char *verb = p->flags->is_aot ? "loads" : "compiles";
  sink_format(out,
              "\n *\n"
              " * NAME_run %s and runs it once; NAME_pipeline with "
              "NAME_dispatch %s it\n",
              verb, verb);
  sink_text(
      out,
      " * once and runs it often. Memory is the caller's; sizes are counts "
      "of elements.\n"
      " * Functions return a code and fill a status, like the vyre API. "
      "*/\n#ifndef ");
  put_guard(p, out);
  sink_text(out, "\n#define ");
  put_guard(p, out);
  sink_text(out,
            "\n\n#include <assert.h>\n#include <stddef.h>\n\n#include "
            "<vyre/vyre.h>\n");
  return true;
}

static bool name_kernels(product *p, const kernel_file *file, problem *wrong) {
  static const char *const endings[] = {
      "_source", "_program",          "_pipeline", "_dispatch",
      "_run",    "_dispatch_buffers", "_record",   NULL};
  char prefix[128] = "";
  if (p->flags->prefix) {
    (void)snprintf(prefix, sizeof prefix, "%.100s_", p->flags->prefix);
  }
  p->names.arena = &p->arena;
  p->count = kernel_file_count(file);
  p->kernels =
      vyre_arena_alloc(&p->arena, (p->count + 1) * sizeof *p->kernels, 0);
  for (size_t i = 0; p->kernels && i < p->count; i++) {
    vyre_program *program = kernel_file_at(file, i);
    const char *name = unique_name(&p->names, NULL, prefix,
                                   vyre_program_name(program), false, endings);
    p->kernels[i] = (embedded){.program = program, .function = name};
    if (!name) p->kernels = NULL;
  }
  return p->kernels || problem_no_memory(wrong, "the names of kernels");
}

/* Compiles all kernels, and writes the package as an array with a function that
 * opens it. */
static bool put_package(product *p, kernel_file *file, problem *wrong) {
  const vyre_package_options options = {.targets = p->flags->targets};
  const char *name = p->kernels[0].function;
  sink package = {0};
  if (!build_package(file, &options, &package, wrong)) {
    sink_deinit(&package);
    return false;
  }
  sink_format(&p->text,
              "\n/* The package of all kernels: machine code. */\n"
              "static const uint8_t %s_bytes[] = {\n",
              name);
  put_bytes((const uint8_t *)package.data, package.length, &p->text);
  sink_format(&p->text,
              "\n/* Opens the package. The caller releases it with\n"
              " * vyre_package_release. */\n"
              "static inline vyre_code %s_package(\n"
              "    vyre_package **out, vyre_status *st) {\n"
              "  return vyre_package_open(%s_bytes, sizeof %s_bytes,\n"
              "                           vyre_allocator_heap(), out, st);\n"
              "}\n",
              name, name, name);
  for (size_t i = 0; i < p->count; i++) {
    p->kernels[i].package = name;
    p->kernels[i].may_compile = p->flags->may_compile;
    p->kernels[i].bytes = package.length;
  }
  sink_deinit(&package);
  return true;
}

/* Writes the structs that buffers of the kernels have. */
static bool put_structs(product *p, const kernel_file *file, problem *wrong) {
  char prefix[128] = "";
  if (p->flags->prefix) {
    (void)snprintf(prefix, sizeof prefix, "%.100s_", p->flags->prefix);
  }
  for (size_t i = 0; i < p->count; i++) {
    if (!embed_structs(&p->structs, &p->names, prefix, kernel_file_at(file, i),
                       &p->arena, &p->text)) {
      return problem_no_memory(wrong, "the structs");
    }
  }
  return true;
}

static bool make(product *p, kernel_file *file, problem *wrong) {
  if (!name_kernels(p, file, wrong)) return false;
  put_head(p);
  if (p->flags->is_aot && !put_package(p, file, wrong)) return false;
  if (!put_structs(p, file, wrong)) return false;
  for (size_t i = 0; i < p->count; i++) {
    sink_text(&p->text, "\n");
    if (!check_kernel(kernel_file_at(file, i), file, wrong) ||
        !embed_kernel(&p->kernels[i], &p->names, &p->structs, &p->arena,
                      &p->text, wrong)) {
      return false;
    }
  }
  sink_text(&p->text, "\n#endif\n");
  return !p->text.failed || problem_no_memory(wrong, "the header");
}

static int answer(product *p, bool json) {
  sink out = {0};
  const char *path = p->flags->output;
  out_file file = {
      .path = path, .head = p->text.data, .head_length = p->text.length};
  if (json) {
    json_out text = json_begin(&out);
    json_open(&text, "kernels", '[');
    for (size_t i = 0; i < p->count; i++) {
      json_open(&text, NULL, '{');
      json_text(&text, "kernel", vyre_program_name(p->kernels[i].program));
      char function[MAX_NAME + 8];
      (void)snprintf(function, sizeof function, "%s_run",
                     p->kernels[i].function);
      json_text(&text, "function", function);
      json_text(&text, "form",
                p->kernels[i].package   ? "package"
                : p->kernels[i].is_text ? "text"
                                        : "binary");
      json_u64(&text, "bytes", p->kernels[i].bytes);
      json_close(&text, '}');
    }
    json_close(&text, ']');
    if (path) {
      json_text(&text, "file", path);
    } else {
      json_string(&text, "text", p->text.data, p->text.length);
    }
    json_end(&text);
  } else if (!path) {
    sink_bytes(&out, p->text.data, p->text.length);
  }
  return publish_files(&out, &file, path ? 1 : 0, json);
}

int cmd_embed(int count, char **words, bool json) {
  embed_flags f = {.file = NULL};
  product p = {.flags = &f};
  problem wrong = {0};
  kernel_file file = {.program = NULL};
  int code;
  if (!read_flags(count, words, &f, &wrong)) {
    code = problem_report(&wrong, json);
  } else {
    bool fine = kernel_file_read(f.file, &file, &wrong) &&
                kernel_file_has_any(&file, &wrong) && make(&p, &file, &wrong);
    code = fine ? answer(&p, json) : kernel_file_report(&file, &wrong, json);
  }
  sink_deinit(&p.text);
  vyre_arena_deinit(&p.arena);
  kernel_file_deinit(&file);
  return code;
}
