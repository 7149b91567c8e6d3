/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre emit` */
#include "vyre/emit.h"

#include <string.h>
#include <unistd.h>

#include "vyre/binary.h"
#include "vyre/pipeline.h"
#include "vyre/validate.h"

#include "cli/args.h"
#include "cli/commands.h"
#include "cli/kernel_file.h"
#include "cli/output.h"
#include "cli/text.h"
#include "plan/plan_json.h"

/* Same order as in the command table. */
enum {
  TO_TEXT,
  TO_BINARY,
  TO_LOWERED,
  TO_SCHEDULE,
  TO_C,
  TO_LLVM,
  TO_ASM,
  TO_SPIRV,
  TO_SPIRV_TEXT
};

enum { MAX_PASSES = 16 };

typedef struct emit_flags {
  const char *file, *kernel, *output;
  size_t to;
  uint64_t width;
  bool is_lowered_otherwise; /* other than device cpu would choose */
  vyre_emit_options options;
} emit_flags;

/* Facts about the emitted code. */
typedef struct emit_facts {
  vyre_emit_report report;
  uint32_t width; /* vector width of the code that cpu runs; 0: not compiled */
} emit_facts;

static bool has_report(const emit_flags *f) {
  return f->to >= TO_LOWERED && f->to != TO_ASM &&
         (!f->options.after || strcmp(f->options.after, "inline") != 0);
}

static bool check_output(emit_flags *f, bool json, problem *wrong) {
  if (f->output && strcmp(f->output, "-") == 0) f->output = NULL;
  if (f->output || (f->to != TO_BINARY && f->to != TO_SPIRV)) return true;
  const char *what = f->to == TO_SPIRV ? "SPIR-V" : "the binary form";
  if (json) {
    return problem_set(wrong, KIND_USAGE, "add -o FILE", "JSON cannot hold %s",
                       what);
  }
  if (isatty(STDOUT_FILENO)) {
    return problem_set(wrong, KIND_USAGE, "add -o FILE",
                       "%s would go to a terminal", what);
  }
  return true;
}

/* @p pass_at: lists the passes of the form. */
static bool check_pass(const char *name, const char *(*pass_at)(uint32_t index),
                       problem *wrong) {
  const char *names[MAX_PASSES];
  char shown[60], list[240] = "";
  uint32_t count = 0;
  for (; count < MAX_PASSES && pass_at(count); count++) {
    names[count] = pass_at(count);
    if (strcmp(names[count], name) == 0) return true;
    if (count) strncat(list, ", ", sizeof list - strlen(list) - 1);
    strncat(list, names[count], sizeof list - strlen(list) - 1);
  }
  const char *meant = nearest_word(name, strlen(name), names, count);
  show_into(shown, sizeof shown, name, strlen(name));
  problem_set(wrong, KIND_USAGE, "", "--dump-after: unknown pass '%s'", shown);
  if (meant) {
    problem_fix(wrong, "did you mean '%s'? The passes are %s", meant, list);
  } else {
    problem_fix(wrong, "the passes are %s", list);
  }
  return false;
}

static const char *const forms[] = {"ir",   "bin", "lowered", "schedule",  "c",
                                    "llvm", "asm", "spirv",   "spirv-text"};

/* Lowering flags have no meaning for the program itself nor for code of this
 * machine. The last flag, --workgroup, does. */
static bool check_lowering(const emit_flags *f, const flag *flags, size_t count,
                           problem *wrong) {
  bool lowers = f->to >= TO_LOWERED && f->to != TO_ASM;
  if (lowers && f->options.after) {
    if (f->to == TO_LOWERED) {
      return check_pass(f->options.after, vyre_pass_at, wrong);
    }
    if (f->to == TO_SCHEDULE) {
      return check_pass(f->options.after, vyre_schedule_pass_at, wrong);
    }
    problem_set(wrong, KIND_USAGE,
                "write --to lowered or --to schedule, or remove --dump-after",
                "--dump-after needs --to lowered or --to schedule, but --to is "
                "%s",
                forms[f->to]);
    return false;
  }
  if (f->to == TO_ASM) count--;
  for (size_t i = 0; !lowers && i < count; i++) {
    if (!flags[i].given) continue;
    problem_set(wrong, KIND_USAGE, "", "%s says how to lower, but --to %s %s",
                flags[i].name, forms[f->to],
                f->to == TO_ASM ? "is for this machine" : "does not lower");
    problem_fix(wrong, "write --to lowered or --to c, or remove %s",
                flags[i].name);
    return false;
  }
  return true;
}

static bool check_width(const emit_flags *f, bool is_given, problem *wrong) {
  if (!is_given) return true;
  if (f->to == TO_SCHEDULE || f->to == TO_LLVM || f->to == TO_ASM) {
    return args_width(f->width, wrong);
  }
  problem_set(wrong, KIND_USAGE,
              "write --to llvm, --to asm or --to schedule, or remove --width",
              "--width has no meaning with --to %s, which has no vectors",
              forms[f->to]);
  return false;
}

static bool read_flags(int count, char **words, emit_flags *f, bool json,
                       problem *wrong) {
  enum { WIDTH = 3, FIRST_OF_LOWERING };
  const char *workgroup = NULL;
  size_t numbers = 0, math = 0;
  flag flags[] = {
      FLAG("--kernel", &f->kernel),
      FLAG("--to", &f->to),
      FLAG("--output", &f->output),
      FLAG("--width", &f->width),
      FLAG("--dump-after", &f->options.after),
      FLAG("--float-mode", &numbers),
      FLAG("--math", &math),
      FLAG("--no-u64", &f->options.no_u64),
      FLAG("--no-narrow", &f->options.no_narrow),
      FLAG("--workgroup", &workgroup),
  };
  size_t all = sizeof flags / sizeof flags[0];
  arguments spec = {.command = "emit",
                    .flags = flags,
                    .flag_count = all,
                    .operand = &f->file};
  if (!args_read(&spec, count, words, wrong)) return false;
  static const vyre_emit_form form_of[] = {
      [TO_SCHEDULE] = VYRE_EMIT_SCHEDULE,
      [TO_C] = VYRE_EMIT_C,
      [TO_LLVM] = VYRE_EMIT_LLVM,
      [TO_SPIRV] = VYRE_EMIT_SPIRV,
      [TO_SPIRV_TEXT] =
          VYRE_EMIT_SPIRV_TEXT}; /* other forms are lowered or have no report */
  f->options.form = form_of[f->to];
  f->options.width = (uint32_t)f->width;
  f->options.float_mode = (vyre_float_mode)numbers;
  f->options.math = (vyre_math)math;
  f->is_lowered_otherwise =
      numbers || math || f->options.no_u64 || f->options.no_narrow;
  return check_output(f, json, wrong) &&
         is_other_file("--output", f->output, f->file, wrong) &&
         check_width(f, flags[WIDTH].given, wrong) &&
         check_lowering(f, flags + FIRST_OF_LOWERING, all - FIRST_OF_LOWERING,
                        wrong) &&
         (!workgroup ||
          args_extent("--workgroup", workgroup, f->options.workgroup, wrong));
}

static bool emit_binary(const vyre_program *program, sink *out,
                        problem *wrong) {
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
  vyre_arena_deinit(&arena);
  return fine;
}

/* Returns false with diagnostics in the file, or with a problem. */
static bool emit_lowered(const vyre_program *program, kernel_file *file,
                         const emit_flags *f, vyre_writer writer,
                         emit_facts *facts, problem *wrong) {
  vyre_status st = {0};
  if (vyre_program_validate(program, &file->findings, &st) != VYRE_OK) {
    return file->findings.count == 0 && problem_from_status(wrong, &st);
  }
  if (vyre_program_emit(program, &f->options, writer, &facts->report, &st) ==
      VYRE_OK) {
    return true;
  }
  return st.kind == VYRE_KIND_WRITER_REFUSED
             ? problem_no_memory(wrong, "the answer")
             : problem_from_status(wrong, &st);
}

/* Prints the code that device cpu compiles on this machine. Compiling a
 * pipeline decides the width, so this is the code that runs. */
static vyre_code print_compiled(vyre_program *program, kernel_file *file,
                                const emit_flags *f, sink *out, uint32_t *width,
                                vyre_status *st) {
  vyre_context *context = NULL;
  vyre_device *device = NULL;
  vyre_pipeline *pipeline = NULL;
  char text[OPTIONS_TEXT];
  vyre_context_options with = {.backend_options =
                                   args_cpu_options(0, f->options.width, text)};
  vyre_compile_options options = {.tier = VYRE_TIER_OPTIMISED};
  memcpy(options.workgroup, f->options.workgroup, sizeof options.workgroup);
  vyre_code code = vyre_context_create(&with, &context, st);
  if (code == VYRE_OK) code = vyre_device_open(context, "cpu", &device, st);
  if (code == VYRE_OK) {
    code = vyre_pipeline_compile(device, program, &options, &pipeline,
                                 &file->findings, st);
  }
  if (code == VYRE_OK) {
    vyre_pipeline_resources resources;
    (void)vyre_pipeline_get_resources(pipeline, &resources);
    *width = resources.width;
    code = vyre_pipeline_print(pipeline, f->to == TO_ASM ? "asm" : "llvm",
                               sink_writer(out), st);
  }
  vyre_pipeline_release(pipeline);
  vyre_device_release(device);
  vyre_context_release(context);
  return code;
}

static bool emit_asm(vyre_program *program, kernel_file *file,
                     const emit_flags *f, sink *out, emit_facts *facts,
                     problem *wrong) {
  vyre_status st = {0};
  vyre_code code = print_compiled(program, file, f, out, &facts->width, &st);
  if (out->failed) return problem_no_memory(wrong, "the answer");
  if (code == VYRE_OK) return true;
  return file->findings.count == 0 && problem_from_status(wrong, &st);
}

/* Returns true if the device could not compile because LLVM could not be loaded. */
static bool is_without_llvm(const vyre_status *st) {
  return st->code != VYRE_OK && st->field && strcmp(st->field, "llvm") == 0;
}

static bool drop(void *self, const char *text, size_t length) {
  (void)self;
  (void)text;
  (void)length;
  return true;
}

/* Prints the LLVM text of a kernel. The final vector width is only known after
 * compiling; without LLVM, a note says that it may differ. */
static bool emit_llvm(vyre_program *program, kernel_file *file,
                      const emit_flags *f, sink *out, emit_facts *facts,
                      problem *wrong) {
  vyre_status st = {0};
  if (f->is_lowered_otherwise) {
    return emit_lowered(program, file, f, sink_writer(out), facts, wrong);
  }
  vyre_code code = print_compiled(program, file, f, out, &facts->width, &st);
  if (code == VYRE_OK) {
    /* Emit again for the counts only. */
    return emit_lowered(program, file, f, (vyre_writer){.write = drop}, facts,
                        wrong) &&
           (!out->failed || problem_no_memory(wrong, "the answer"));
  }
  if (out->failed) return problem_no_memory(wrong, "the answer");
  if (file->findings.count > 0) return false;
  if (!is_without_llvm(&st)) return problem_from_status(wrong, &st);
  sink note = {0};
  sink_format(
      &note,
      "note: not compiled, so a device may choose another width: %.500s\n",
      st.message);
  write_all(STDERR_FILENO, note.data, note.length);
  sink_deinit(&note);
  return emit_lowered(program, file, f, sink_writer(out), facts, wrong) &&
         (!out->failed || problem_no_memory(wrong, "the answer"));
}

/* Writes the program in the requested form. */
static bool emit(vyre_program *program, kernel_file *file, const emit_flags *f,
                 sink *out, emit_facts *facts, problem *wrong) {
  if (f->to == TO_BINARY) return emit_binary(program, out, wrong);
  if (f->to == TO_ASM) return emit_asm(program, file, f, out, facts, wrong);
  if (f->to == TO_LLVM) return emit_llvm(program, file, f, out, facts, wrong);
  if (f->to >= TO_LOWERED) {
    return emit_lowered(program, file, f, sink_writer(out), facts, wrong);
  }
  return (vyre_program_print(program, sink_writer(out)) && !out->failed) ||
         problem_no_memory(wrong, "the answer");
}

static void put_report(json_out *json, const vyre_emit_report *report) {
  json_open(json, "report", '{');
  json_u64(json, "instructions", report->instructions);
  json_u64(json, "accesses", report->accesses);
  json_u64(json, "proven_accesses", report->proven_accesses);
  json_u64(json, "phases", report->phases);
  json_u64(json, "spill_bytes", report->spill_bytes);
  json_close(json, '}');
}

static int answer(const vyre_program *program, const emit_flags *f, sink *made,
                  const emit_facts *facts, bool json) {
  sink out = {0};
  out_file file = {
      .path = f->output, .head = made->data, .head_length = made->length};
  if (json) {
    char hash[VYRE_HASH128_TEXT];
    vyre_hash128_text(vyre_program_fingerprint(program), hash);
    json_out text = json_begin(&out);
    json_text(&text, "kernel", vyre_program_name(program));
    json_text(&text, "fingerprint", hash);
    if (has_report(f)) put_report(&text, &facts->report);
    if (facts->width) json_u64(&text, "width", facts->width);
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
  emit_facts facts = {.width = 0};
  vyre_program *program = NULL;
  int code = EXIT_FINE;
  if (!read_flags(count, words, &f, json, &wrong)) {
    code = problem_report(&wrong, json);
  } else {
    program = kernel_file_open(f.file, f.kernel, &file, json, &code);
  }
  if (program) {
    code = emit(program, &file, &f, &made, &facts, &wrong)
               ? answer(program, &f, &made, &facts, json)
               : kernel_file_report(&file, &wrong, json);
  }
  sink_deinit(&made);
  kernel_file_deinit(&file);
  return code;
}
