/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre conform`: the conformance suite on one backend. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vyre/cache.h"
#include "vyre/device.h"

#include "cli/args.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "commands/device_smoke.h"
#include "commands/generate_flags.h"
#include "cts/harness/runner.h"
#include "io/read_file.h"
#include "plan/plan_json.h"

#define SELF "/proc/self/exe"

enum { MAX_JOBS = 64, MAX_PROGRAMS = 1000000, MAX_TIMEOUT = 86400 };

typedef struct conform_flags {
  const char *backend, *options, *filter, *one, *list_file;
  uint64_t programs, seed, jobs, timeout;
  bool list, json;
  bool wants_programs; /* --programs is given */
  vyre_random_program_options
      lacks; /* features that random programs must not use on this device */
} conform_flags;

static bool at_most(const char *name, uint64_t value, uint64_t max,
                    problem *wrong) {
  if (value <= max) return true;
  problem_set(wrong, KIND_USAGE, "", "%s is %llu; the maximum is %llu", name,
              (unsigned long long)value, (unsigned long long)max);
  problem_fix(wrong, "write a smaller number");
  return false;
}

static bool read_flags(int count, char **words, conform_flags *f,
                       problem *wrong) {
  flag flags[] = {
      FLAG("--backend", &f->backend),   FLAG("--option", &f->options),
      FLAG("--programs", &f->programs), FLAG("--seed", &f->seed),
      FLAG("--filter", &f->filter),     FLAG("--list", &f->list),
      FLAG("--case", &f->one),          FLAG("--jobs", &f->jobs),
      FLAG("--timeout", &f->timeout),   FLAG("--expectations", &f->list_file)};
  arguments spec = {.command = "conform",
                    .flags = flags,
                    .flag_count = sizeof flags / sizeof flags[0]};
  if (!args_read(&spec, count, words, wrong)) return false;
  f->wants_programs = flags[2].given && f->programs > 0;
  if (f->one && f->json) {
    return problem_set(wrong, KIND_USAGE, "use --filter NAME, or remove --json",
                       "--case prints text and does not support --json");
  }
  return at_most("--jobs", f->jobs, MAX_JOBS, wrong) &&
         at_most("--programs", f->programs, MAX_PROGRAMS, wrong) &&
         at_most("--timeout", f->timeout, MAX_TIMEOUT, wrong);
}

/* --- what there is --------------------------------------------------------------*/

/* Returns true if no compiled kernel is cached, so that the device has to
 * compile all of them. */
static bool is_cache_empty(void) {
  vyre_arena arena = {0};
  vyre_cache_listing listing;
  vyre_status st = {0};
  bool is_empty = vyre_cache_list(NULL, &arena, &listing, &st) != VYRE_OK ||
                  listing.entry_count == 0;
  vyre_arena_deinit(&arena);
  return is_empty;
}

/* Opens the device once, so that an unknown name is reported only once, and
 * so is a device that has no cached kernels and cannot compile any. */
static bool find_device(conform_flags *f, vyre_device_info *out,
                        problem *wrong) {
  vyre_device *device;
  vyre_status st = {0};
  if (vyre_device_open(NULL, f->backend, &device, &st) != VYRE_OK) {
    return problem_from_status(wrong, &st);
  }
  for (size_t i = 0; vyre_context_device_info_at(NULL, i, out); i++) {
    if (out->is_available && strcmp(out->name, vyre_device_name(device)) == 0) {
      break;
    }
  }
  if (!out->description) *out = (vyre_device_info){.description = ""};
  (void)snprintf(out->name, sizeof out->name, "%s", vyre_device_name(device));
  vyre_random_program_options_fit(&f->lacks, vyre_device_get_caps(device));
  bool is_empty = is_cache_empty();
  device_trial trial = {.is_done = false};
  if (is_empty) device_try(vyre_device_name(device), &trial);
  vyre_device_release(device);
  return trial.st.kind != VYRE_KIND_DEVICE_UNAVAILABLE ||
         problem_from_status(wrong, &trial.st);
}

static cts_options options_of(const conform_flags *f) {
  static const char *const words[] = {"conform", NULL};
  return (cts_options){.backend = f->backend,
                       .programs = f->programs,
                       .seed = f->seed,
                       .filter = f->filter,
                       .jobs = (unsigned)f->jobs,
                       .timeout_s = (unsigned)f->timeout,
                       .program = SELF,
                       .words = words};
}

/* Refuses --programs with a filter that excludes all random programs. */
static bool has_programs(const conform_flags *f, const cts_report *report,
                         problem *wrong) {
  if (!f->wants_programs || !f->filter) return true;
  for (size_t i = 0; i < report->count; i++) {
    if (strncmp(report->results[i].name, "programs.", 9) == 0) return true;
  }
  return problem_set(
      wrong, KIND_USAGE, "remove --programs, or use --filter programs",
      "--programs is %llu, but no random program has a name that contains "
      "'%.60s'",
      (unsigned long long)f->programs, f->filter);
}

/* The cases and their expected outcomes. */
static bool begin(const conform_flags *f, cts_report *report, problem *wrong) {
  cts_options options = options_of(f);
  input in = {0};
  size_t bad_line;
  bool fine = true;
  if (f->list_file) {
    fine = read_input(f->list_file, &in, wrong);
  } else {
    in.text = cts_expectations(f->backend);
    in.length = strlen(in.text);
  }
  if (fine && !cts_report_begin(&cts_all, &options, in.text, in.length,
                                &bad_line, report)) {
    fine = false;
    if (bad_line > 0) {
      wrong->file = f->list_file;
      wrong->line = bad_line;
      wrong->column = 1;
      problem_set(
          wrong, KIND_INPUT,
          "write the case, then 'unsupported' or 'fails', then the reason",
          "invalid line in the expectations file");
    } else {
      problem_no_memory(wrong, "the cases");
    }
  }
  if (f->list_file) input_deinit(&in);
  if (!fine) return false;
  if (report->count > 0) return has_programs(f, report, wrong);
  return problem_set(wrong, KIND_USAGE, "use --list to see all names",
                     "no case has a name that contains '%.60s'", f->filter);
}

/* --- lists ----------------------------------------------------------------------*/

static const char *expected(const cts_result *r) {
  if (!r->row) return "passes";
  return r->row->is_unsupported ? "unsupported" : "fails";
}

static int answer_list(const cts_report *report, bool json) {
  sink out = {0};
  if (json) {
    json_out text = json_begin(&out);
    json_open(&text, "cases", '[');
    for (size_t i = 0; i < report->count; i++) {
      const cts_result *r = &report->results[i];
      json_open(&text, NULL, '{');
      json_text(&text, "case", r->name);
      json_text(&text, "expected", expected(r));
      if (r->row) json_text(&text, "reason", r->row->reason);
      json_close(&text, '}');
    }
    json_close(&text, ']');
    json_end(&text);
  } else {
    for (size_t i = 0; i < report->count; i++) {
      const cts_result *r = &report->results[i];
      sink_text(&out, r->name);
      if (r->row) {
        sink_format(&out, "  %s: %s", expected(r), r->row->reason);
      }
      sink_text(&out, "\n");
    }
  }
  return publish(&out, NULL, NULL, json);
}

/* --- reports --------------------------------------------------------------------*/

typedef struct area_sum {
  char name[CTS_NAME];
  size_t passed, failed, expected, unsupported, not_applicable;
  uint64_t launches;
} area_sum;

enum { MAX_AREAS = 64 };

static size_t sum_areas(const cts_report *report, area_sum *sums) {
  size_t count = 0;
  for (size_t i = 0; i < report->count; i++) {
    const cts_result *r = &report->results[i];
    size_t length = strcspn(r->name, ".*");
    size_t at = 0;
    while (at < count && (strlen(sums[at].name) != length ||
                          memcmp(sums[at].name, r->name, length) != 0)) {
      at++;
    }
    if (at == MAX_AREAS) continue;
    if (at == count) {
      sums[count] = (area_sum){.passed = 0};
      memcpy(sums[count++].name, r->name, length);
    }
    sums[at].launches += r->launches;
    sums[at].passed += r->verdict == CTS_PASSED;
    sums[at].failed += r->verdict == CTS_FAILED;
    sums[at].expected += r->verdict == CTS_EXPECTED_FAILURE;
    sums[at].unsupported += r->verdict == CTS_UNSUPPORTED;
    sums[at].not_applicable += r->verdict == CTS_NOT_APPLICABLE;
  }
  return count;
}

/* Writes the command that runs this case alone. */
static void put_again(const conform_flags *f, const cts_result *r, sink *out) {
  sink_format(out, "vyre conform --backend %s%s%s --seed %llu --case %s",
              f->backend, f->options ? " --option " : "",
              f->options ? f->options : "", (unsigned long long)f->seed,
              r->shrunk ? r->shrunk : r->name);
}

/* Writes "programs.17:size=3:no-f64" as arguments of `vyre generate`, with
 * flags for the features that the device lacks. */
static bool put_program(const conform_flags *f, const cts_result *r,
                        sink *out) {
  const char *at = r->shrunk ? r->shrunk : r->name;
  vyre_random_program_options lacks = f->lacks;
  if (strncmp(at, "programs.", 9) != 0) return false;
  if (strstr(at, ":no-f64")) lacks.no_f64 = false;
  if (strstr(at, ":no-int64")) lacks.no_int64 = false;
  if (strstr(at, ":no-atomics64")) lacks.no_atomics64 = false;
  at += 9;
  size_t length = strcspn(at, ":");
  sink_format(out, "vyre generate --seed %.*s", (int)length, at);
  for (at += length; *at; at += length) {
    length = 1 + strcspn(at + 1, ":");
    sink_text(out, " --");
    for (size_t i = 1; i < length; i++) {
      sink_bytes(out, at[i] == '=' ? " " : at + i, 1);
    }
  }
  put_generate_flags(&lacks, out);
  return true;
}

static void put_indented(const char *text, sink *out) {
  while (*text) {
    size_t length = strcspn(text, "\n");
    sink_text(out, "  ");
    sink_bytes(out, text, length);
    sink_text(out, "\n");
    text += length + (text[length] == '\n');
  }
}

static void put_failures(const conform_flags *f, const cts_report *report,
                         sink *out) {
  for (size_t i = 0; i < report->count; i++) {
    const cts_result *r = &report->results[i];
    if (r->verdict != CTS_FAILED) continue;
    sink_format(out, "\nFAILED %s\n", r->name);
    put_indented(r->reason ? r->reason : "(out of memory for the reason)", out);
    if (r->is_row) continue;
    sink_text(out, "  again: ");
    put_again(f, r, out);
    sink_text(out, "\n");
    sink program = {0};
    if (put_program(f, r, &program)) {
      sink_text(out, "  show it: ");
      sink_bytes(out, program.data, program.length);
      sink_text(out, "\n");
    }
    sink_deinit(&program);
  }
}

static const char *case_text(size_t count) {
  return count == 1 ? "case" : "cases";
}

/* Writes "conforms, without f64, atomics64", or the reason for failure. */
static void put_verdict(const conform_flags *f, const cts_report *report,
                        sink *out) {
  if (report->failed > 0) {
    sink_format(out, "does not conform: %zu %s failed", report->failed,
                case_text(report->failed));
    return;
  }
  if (report->passed == 0) {
    sink_text(out,
              "no case passed: the run proves nothing and counts as failed");
    return;
  }
  if (report->skipped > 0) {
    sink_format(out, "meets its expectations, which list %zu %s",
                report->skipped, case_text(report->skipped));
  } else {
    sink_text(out, "conforms");
  }
  for (size_t i = 0; i < report->lack_count; i++) {
    sink_format(out, "%s%s", i ? ", " : ", without ", report->lacks[i].what);
  }
  if (f->filter) {
    sink_format(out, " (only cases whose name contains '%.60s')", f->filter);
  }
}

/* Writes the cases that were skipped and why: by line of the expectations
 * file, then by missing feature. */
static void put_skipped(const cts_report *report, sink *out) {
  for (size_t i = 0; i < report->list.count; i++) {
    const cts_row *row = &report->list.rows[i];
    size_t count = 0;
    for (size_t k = 0; k < report->count; k++) {
      const cts_result *r = &report->results[k];
      count += r->row == row && r->verdict != CTS_FAILED;
    }
    if (count == 0) continue;
    sink_format(out, "%s %s (%zu): %s\n",
                row->is_unsupported ? "unsupported" : "fails, as expected,",
                row->pattern, count, row->reason);
  }
  for (size_t i = 0; i < report->lack_count; i++) {
    const cts_lack *lack = &report->lacks[i];
    sink_format(out, "without %s: %zu %s not applicable\n", lack->what,
                lack->cases, case_text(lack->cases));
  }
}

static void put_text(const conform_flags *f, const vyre_device_info *info,
                     const cts_report *report, sink *out) {
  area_sum sums[MAX_AREAS];
  size_t count = sum_areas(report, sums);
  sink_format(out, "conformance of %s%s: %s%s%s\n\n", info->name,
              strcmp(f->backend, "auto") == 0 ? ", chosen by auto" : "",
              info->description, f->options ? ", with " : "",
              f->options ? f->options : "");
  sink_format(out, "%-12s %7s %7s %7s %7s %8s\n", "area", "passed", "failed",
              "n/a", "skipped", "kernels");
  for (size_t i = 0; i < count; i++) {
    sink_format(out, "%-12s %7zu %7zu %7zu %7zu %8llu\n", sums[i].name,
                sums[i].passed, sums[i].failed, sums[i].not_applicable,
                sums[i].unsupported + sums[i].expected,
                (unsigned long long)sums[i].launches);
  }
  if (report->skipped + report->not_applicable > 0) sink_text(out, "\n");
  put_skipped(report, out);
  put_failures(f, report, out);
  sink_text(out, "\nverdict: ");
  put_verdict(f, report, out);
  sink_format(
      out, "\n%zu passed, %zu failed, %zu not applicable, %zu skipped\n",
      report->passed, report->failed, report->not_applicable, report->skipped);
}

static void json_case(const conform_flags *f, const cts_result *r,
                      json_out *text) {
  sink command = {0};
  json_open(text, NULL, '{');
  json_text(text, "case", r->name);
  json_text(text, "verdict",
            r->verdict == CTS_FAILED             ? "failed"
            : r->verdict == CTS_EXPECTED_FAILURE ? "expected_failure"
            : r->verdict == CTS_UNSUPPORTED      ? "unsupported"
                                                 : "not_applicable");
  json_text(text, "reason", r->reason ? r->reason : "");
  if (r->verdict == CTS_NOT_APPLICABLE) json_text(text, "lacks", r->lacks);
  if (r->row) json_text(text, "expected", r->row->reason);
  if (r->verdict == CTS_FAILED && !r->is_row) {
    put_again(f, r, &command);
    json_string(text, "again", command.data, command.length);
    command.length = 0;
    if (put_program(f, r, &command)) {
      json_string(text, "program", command.data, command.length);
    }
  }
  json_close(text, '}');
  if (command.failed) text->out->failed = true;
  sink_deinit(&command);
}

static void put_json(const conform_flags *f, const vyre_device_info *info,
                     const cts_report *report, sink *out) {
  area_sum sums[MAX_AREAS];
  size_t count = sum_areas(report, sums);
  json_out text = {.out = out};
  sink verdict = {0};
  put_verdict(f, report, &verdict);
  json_open(&text, NULL, '{');
  json_bool(&text, "ok", cts_report_is_good(report));
  json_string(&text, "verdict", verdict.data, verdict.length);
  json_open(&text, "lacks", '[');
  for (size_t i = 0; i < report->lack_count; i++) {
    json_open(&text, NULL, '{');
    json_text(&text, "feature", report->lacks[i].what);
    json_u64(&text, "cases", report->lacks[i].cases);
    json_close(&text, '}');
  }
  json_close(&text, ']');
  json_text(&text, "backend", f->backend);
  json_text(&text, "device", info->name);
  if (f->options) json_text(&text, "options", f->options);
  json_text(&text, "description", info->description);
  json_u64(&text, "seed", f->seed);
  json_open(&text, "areas", '[');
  for (size_t i = 0; i < count; i++) {
    json_open(&text, NULL, '{');
    json_text(&text, "area", sums[i].name);
    json_u64(&text, "passed", sums[i].passed);
    json_u64(&text, "failed", sums[i].failed);
    json_u64(&text, "not_applicable", sums[i].not_applicable);
    json_u64(&text, "expected_failures", sums[i].expected);
    json_u64(&text, "unsupported", sums[i].unsupported);
    json_u64(&text, "kernels", sums[i].launches);
    json_close(&text, '}');
  }
  json_close(&text, ']');
  json_open(&text, "cases", '[');
  for (size_t i = 0; i < report->count; i++) {
    if (report->results[i].verdict == CTS_PASSED) continue;
    json_case(f, &report->results[i], &text);
  }
  json_close(&text, ']');
  json_u64(&text, "passed", report->passed);
  json_u64(&text, "failed", report->failed);
  json_u64(&text, "not_applicable", report->not_applicable);
  json_u64(&text, "skipped", report->skipped);
  json_close(&text, '}');
  sink_text(out, "\n");
  if (verdict.failed) out->failed = true;
  sink_deinit(&verdict);
}

static void show_progress(void *self, size_t done, size_t all) {
  progress_set(self, done, all);
}

/* Runs the cases, which can take minutes, and shows the progress. */
static bool run_cases(const conform_flags *f, cts_report *report) {
  progress_bar bar;
  cts_options options = options_of(f);
  options.on_progress = show_progress;
  options.user_data = &bar;
  progress_begin(&bar, "cases", "conform");
  bool fine = cts_report_run(&options, report);
  progress_end(&bar);
  return fine;
}

static int run(conform_flags *f, problem *wrong) {
  vyre_device_info info = {0};
  cts_report report = {0};
  sink out = {0};
  int code;
  if (!begin(f, &report, wrong) ||
      (!f->list && !find_device(f, &info, wrong))) {
    code = problem_report(wrong, f->json);
  } else if (f->list) {
    code = answer_list(&report, f->json);
  } else if (!run_cases(f, &report)) {
    problem_set(wrong, KIND_INPUT, "end other processes, or use --jobs 1",
                "the system cannot start more processes");
    code = problem_report(wrong, f->json);
  } else {
    if (f->json) {
      put_json(f, &info, &report, &out);
    } else {
      put_text(f, &info, &report, &out);
    }
    code = publish(&out, NULL, NULL, f->json);
    if (code == EXIT_FINE && !cts_report_is_good(&report)) code = EXIT_WRONG;
  }
  cts_report_deinit(&report);
  return code;
}

/* These options replace those of the environment. */
static bool check_options(const char *text, problem *wrong) {
  vyre_status st = {0};
  vyre_context *context;
  vyre_context_options o = {.cache_directory = "",
                            .trace_file = "",
                            .faults = "",
                            .backend_options = text};
  (void)unsetenv("VYRE_OPTIONS");
  if (vyre_context_create(&o, &context, &st) != VYRE_OK) {
    return problem_from_options(wrong, &st);
  }
  vyre_context_release(context);
  return true;
}

int cmd_conform(int count, char **words, bool json) {
  conform_flags f = {.json = json};
  problem wrong = {0};
  if (!read_flags(count, words, &f, &wrong)) {
    return problem_report(&wrong, json);
  }
  if (f.options && !check_options(f.options, &wrong)) {
    return problem_report(&wrong, json);
  }
  if (f.one && !cts_has_case(&cts_all, f.one)) {
    problem_set(&wrong, KIND_USAGE, "", "unknown case '%.80s'", f.one);
    problem_fix(&wrong,
                "run 'vyre conform --backend %.60s --list' for all names",
                f.backend);
    return problem_report(&wrong, json);
  }
  /* The processes of the cases and their contexts read the options from the
   * environment. */
  if (f.options && setenv("VYRE_OPTIONS", f.options, 1) != 0) {
    problem_no_memory(&wrong, "the options");
    return problem_report(&wrong, json);
  }
  return f.one ? cts_run_case(&cts_all, f.backend, f.one, f.seed)
               : run(&f, &wrong);
}
