/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre tune`: measures a kernel with other workgroup sizes and backend
 * settings, and remembers the fastest. */
#include "vyre/tune.h"

#include <string.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "commands/bench/bench.h"
#include "plan/plan_json.h"

enum { DEFAULT_SIZE = 1 << 20, DEFAULT_SECONDS = 5 };

typedef struct tune_run {
  bench_state bench; /* first */
  vyre_dispatch_desc desc;
  vyre_tuning *tuning;
  uint64_t seconds, forgotten;
  bool is_trial, forgets;
} tune_run;

static bool read_flags(int count, char **words, tune_run *s, problem *wrong) {
  run_flags *f = &s->bench.run.flags;
  const char *grid = NULL;
  flag flags[] = {
      FLAG("--kernel", &f->kernel),   FLAG("--set", &f->sets),
      FLAG("--size", &s->bench.size), FLAG("--grid", &grid),
      FLAG("--backend", &f->backend), FLAG("--seconds", &s->seconds),
      FLAG("--trial", &s->is_trial),  FLAG("--forget", &s->forgets),
      FLAG("--option", &f->options),
  };
  arguments spec = {.command = "tune",
                    .flags = flags,
                    .flag_count = sizeof flags / sizeof flags[0],
                    .operand = &f->file};
  s->bench.size = DEFAULT_SIZE;
  s->seconds = DEFAULT_SECONDS;
  f->backend = "auto";
  f->tier = VYRE_TIER_OPTIMISED;
  f->is_untuned = true;
  if (!args_read(&spec, count, words, wrong)) return false;
  if (s->seconds == 0) {
    return problem_set(wrong, KIND_USAGE, "write 1 or more",
                       "--seconds is 0, so nothing could be measured");
  }
  return args_options(f->options, wrong) &&
         (!grid || args_extent("--grid", grid, f->grid, wrong));
}

static bool is_stub(const tune_run *s, problem *wrong) {
  const run_state *r = &s->bench.run;
  if (!vyre_device_get_caps(r->device)->is_stub) return false;
  problem_set(wrong, KIND_USAGE, "use --backend cpu",
              "device %s is a stub, which runs no kernel",
              vyre_device_name(r->device));
  return true;
}

static bool measure(tune_run *s, problem *wrong) {
  run_state *r = &s->bench.run;
  vyre_status st = {0};
  if (!run_refuse_persistent(r, "vyre tune", wrong)) return false;
  vyre_tune_options options = {.max_ns = s->seconds * 1000000000,
                               .is_trial = s->is_trial};
  s->desc = (vyre_dispatch_desc){.inputs = r->inputs,
                                 .input_count = r->input_count,
                                 .outputs = r->outputs,
                                 .output_count = r->output_count};
  memcpy(s->desc.grid, r->flags.grid, sizeof s->desc.grid);
  if (is_stub(s, wrong)) return false;
  if (vyre_tune(r->device, r->program, &s->desc, &options, &s->tuning, &st) ==
      VYRE_OK) {
    return true;
  }
  (void)run_failed(r, wrong, &st);
  if (st.kind == VYRE_KIND_TIMED_OUT)
    problem_fix(wrong, "raise --seconds, or use less data: a lower --size");
  if (st.kind == VYRE_KIND_GRID_REQUIRED) run_suggest_grid(r, wrong);
  return false;
}

static bool forget(tune_run *s, problem *wrong) {
  vyre_status st = {0};
  run_state *r = &s->bench.run;
  if (vyre_tune_forget(r->device, r->program, &s->forgotten, &st) == VYRE_OK) {
    return true;
  }
  problem_from_status(wrong, &st);
  return false;
}

/* --- the answer ------------------------------------------------------------*/

static void put_time(sink *out, uint64_t ns) {
  if (ns == 0) {
    sink_format(out, "%12s", "-");
  } else if (ns < 10000000) {
    sink_format(out, "%9.2f us", (double)ns / 1e3);
  } else {
    sink_format(out, "%9.2f ms", (double)ns / 1e6);
  }
}

static vyre_tune_variant variant_at(const tune_run *s, size_t index) {
  vyre_tune_variant v;
  (void)vyre_tuning_variant_at(s->tuning, index, &v);
  return v;
}

static vyre_tune_variant choice_of(const tune_run *s) {
  vyre_tune_variant v;
  for (size_t i = 0; vyre_tuning_variant_at(s->tuning, i, &v); i++) {
    if (v.is_choice) break;
  }
  return v;
}

static void put_verdict(const tune_run *s, const vyre_tune_variant *v,
                        sink *out) {
  uint64_t first = variant_at(s, 0).time_ns;
  if (v->outcome == VYRE_TUNE_FAILED) {
    sink_format(out, "  failed: %.160s", v->why);
  } else if (v->outcome == VYRE_TUNE_NOT_TRIED) {
    sink_text(out, "  not tried: raise --seconds");
  } else if (v->outcome == VYRE_TUNE_HOPELESS) {
    sink_text(out, "  stopped: far slower");
  } else if (v->time_ns) {
    sink_format(out, "  %.2fx the time", (double)v->time_ns / (double)first);
  }
  if (v->is_choice) sink_text(out, ", chosen");
}

static void tell(const tune_run *s, sink *out) {
  const run_state *r = &s->bench.run;
  vyre_tune_variant v, choice = choice_of(s), first = variant_at(s, 0);
  char hash[VYRE_HASH128_TEXT];
  sink_format(out, "%s on %s\n", vyre_program_name(r->program),
              vyre_device_name(r->device));
  if (s->bench.made_up.length > 0) {
    sink_format(out, "made up: %.*s\n", (int)s->bench.made_up.length,
                s->bench.made_up.data);
  }
  sink_format(out, "%-40s %12s\n", "settings", "median");
  for (size_t i = 0; vyre_tuning_variant_at(s->tuning, i, &v); i++) {
    sink_format(out, "%-40s ", v.settings);
    put_time(out, v.time_ns);
    put_verdict(s, &v, out);
    sink_text(out, "\n");
  }
  const char *fixed = vyre_tuning_fixed_workgroup(s->tuning);
  if (fixed) sink_format(out, "the workgroup size stays: %s\n", fixed);
  vyre_hash128_text(first.outputs, hash);
  sink_format(out, "all results are the same: %s\n", hash);
  sink_format(out, "choice: %s, %.2fx as fast as before%s\n", choice.settings,
              (double)first.time_ns / (double)choice.time_ns,
              vyre_tuning_is_stored(s->tuning) ? "; stored"
              : s->is_trial                    ? "; not stored: --trial"
                                               : "; not stored: no cache");
}

static void put_variant(json_out *json, const vyre_tune_variant *v) {
  char hash[VYRE_HASH128_TEXT] = "";
  if (v->has_outputs) vyre_hash128_text(v->outputs, hash);
  json_open(json, NULL, '{');
  json_text(json, "settings", v->settings);
  json_text(json, "outcome", vyre_tune_outcome_name(v->outcome));
  json_bool(json, "is_choice", v->is_choice);
  json_u64(json, "samples", v->samples);
  json_u64(json, "time_ns", v->time_ns);
  json_text(json, "outputs", hash);
  json_text(json, "why", v->why);
  json_close(json, '}');
}

static void tell_json(const tune_run *s, sink *out) {
  vyre_tune_variant v;
  const char *fixed = vyre_tuning_fixed_workgroup(s->tuning);
  json_out json = json_begin(out);
  json_text(&json, "kernel", vyre_program_name(s->bench.run.program));
  json_text(&json, "device", vyre_device_name(s->bench.run.device));
  json_text(&json, "choice", choice_of(s).settings);
  json_bool(&json, "is_stored", vyre_tuning_is_stored(s->tuning));
  json_text(&json, "fixed_workgroup", fixed ? fixed : "");
  json_open(&json, "variants", '[');
  for (size_t i = 0; vyre_tuning_variant_at(s->tuning, i, &v); i++) {
    put_variant(&json, &v);
  }
  json_close(&json, ']');
  json_end(&json);
}

static void tell_forgotten(const tune_run *s, sink *out) {
  const run_state *r = &s->bench.run;
  if (r->flags.json) {
    json_out json = json_begin(out);
    json_u64(&json, "forgotten", s->forgotten);
    json_end(&json);
    return;
  }
  sink_format(out, "%s on %s: forgot %llu stored times\n",
              vyre_program_name(r->program), vyre_device_name(r->device),
              (unsigned long long)s->forgotten);
}

static bool work(bench_state *bench, problem *wrong) {
  tune_run *s = (tune_run *)bench;
  if (!run_compile(&bench->run, wrong)) return false;
  if (s->forgets) return forget(s, wrong);
  return bench_make_up_data(bench, wrong) && run_bind(&bench->run, wrong) &&
         measure(s, wrong);
}

static void tell_all(const bench_state *bench, sink *answer, sink *drawing) {
  const tune_run *s = (const tune_run *)bench;
  (void)drawing;
  if (s->forgets) {
    tell_forgotten(s, answer);
  } else {
    (bench->run.flags.json ? tell_json : tell)(s, answer);
  }
}

static void release(bench_state *bench) {
  vyre_tuning_release(((tune_run *)bench)->tuning);
}

int cmd_tune(int count, char **words, bool json) {
  tune_run s = {.bench = {.run = {.flags = {.json = json}}}};
  problem wrong = {0};
  s.bench.run.flags.sets.arena = &s.bench.run.arena;
  bool has_flags = read_flags(count, words, &s, &wrong);
  return bench_run(&s.bench, &(const bench_command){work, tell_all, release},
                   has_flags, &wrong);
}
