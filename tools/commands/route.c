/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre route`: measures a kernel on several devices and explains the choice;
 * runs the file of a difference again. */
#include <string.h>

#include "vyre/router.h"

#include "cli/commands.h"
#include "cli/output.h"
#include "commands/bench/bench.h"
#include "io/read_file.h"
#include "plan/plan_json.h"

enum { DEFAULT_SIZE = 1 << 20, DEFAULT_RUNS = 200 };

typedef struct route_run {
  bench_state bench; /* first */
  const char *devices, *policy;
  vyre_route_policy by;
  vyre_router *router;
  vyre_route *route;
  vyre_dispatch_desc desc;
  vyre_route_report last;
} route_run;

/* --- flags -----------------------------------------------------------------*/

static bool read_policy(route_run *s, problem *wrong) {
  for (int i = 0; i < VYRE_ROUTE_POLICY_COUNT; i++) {
    s->by = (vyre_route_policy)i;
    if (strcmp(vyre_route_policy_name(s->by), s->policy) == 0) return true;
  }
  return problem_set(wrong, KIND_USAGE,
                     "write --policy fixed, capable or fastest",
                     "--policy '%.40s' is not a policy", s->policy);
}

static bool read_flags(int count, char **words, route_run *s, problem *wrong) {
  run_flags *f = &s->bench.run.flags;
  const char *grid = NULL;
  flag flags[] = {
      FLAG("--kernel", &f->kernel),   FLAG("--set", &f->sets),
      FLAG("--size", &s->bench.size), FLAG("--grid", &grid),
      FLAG("--backend", &s->devices), FLAG("--policy", &s->policy),
      FLAG("--runs", &s->bench.runs), FLAG("--option", &f->options),
  };
  arguments spec = {.command = "route explain",
                    .flags = flags,
                    .flag_count = sizeof flags / sizeof flags[0],
                    .operand = &f->file};
  s->bench.size = DEFAULT_SIZE;
  s->bench.runs = DEFAULT_RUNS;
  s->devices = "all";
  s->policy = vyre_route_policy_name(VYRE_ROUTE_FASTEST);
  f->backend = "auto";
  return args_read(&spec, count, words, wrong) &&
         args_options(f->options, wrong) && read_policy(s, wrong) &&
         (!grid || args_extent("--grid", grid, f->grid, wrong));
}

/* --- measuring -------------------------------------------------------------*/

static bool open_route(route_run *s, problem *wrong) {
  vyre_status st = {0};
  run_state *r = &s->bench.run;
  vyre_router_options options = {.devices = s->devices, .policy = s->by};
  if (vyre_router_open(r->context, &options, &s->router, &st) == VYRE_OK &&
      vyre_router_compile(s->router, r->program, NULL, &s->route, NULL, &st) ==
          VYRE_OK) {
    return true;
  }
  problem_from_status(wrong, &st);
  return false;
}

static bool measure(route_run *s, problem *wrong) {
  run_state *r = &s->bench.run;
  vyre_status st = {0};
  if (!run_refuse_persistent(r, "vyre route explain", wrong)) return false;
  s->desc = (vyre_dispatch_desc){.inputs = r->inputs,
                                 .input_count = r->input_count,
                                 .outputs = r->outputs,
                                 .output_count = r->output_count};
  memcpy(s->desc.grid, r->flags.grid, sizeof s->desc.grid);
  for (uint64_t i = 0; i < s->bench.runs; i++) {
    if (vyre_route_dispatch(s->route, &s->desc, &s->last, &st) != VYRE_OK) {
      (void)run_failed(r, wrong, &st);
      if (st.kind == VYRE_KIND_GRID_REQUIRED) run_suggest_grid(r, wrong);
      return false;
    }
  }
  return true;
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

static void put_verdict(const route_run *s, const vyre_route_candidate *c,
                        uint64_t best_ns, sink *out) {
  if (!c->can_run) {
    sink_format(out, "cannot run it: %.200s", c->why);
  } else if (c->is_choice && s->by == VYRE_ROUTE_FASTEST) {
    sink_text(out, c->time_ns ? "chosen: the shortest time"
                              : "chosen: the only device that can run it");
  } else if (c->is_choice) {
    sink_text(out, s->by == VYRE_ROUTE_FIXED
                       ? "chosen: the first of the list"
                       : "chosen: the first that can run it");
  } else if (c->is_hopeless) {
    sink_text(out, "not measured: a trial took too long");
  } else if (c->time_ns && best_ns) {
    sink_format(out, "%.2fx the time", (double)c->time_ns / (double)best_ns);
  } else {
    sink_text(out, "not needed");
  }
}

static uint64_t best_time(const route_run *s) {
  vyre_route_candidate c;
  uint64_t best = 0;
  for (size_t i = 0; vyre_route_candidate_at(s->route, &s->desc, i, &c); i++) {
    if (c.is_choice) best = c.time_ns;
  }
  return best;
}

static void tell(const route_run *s, sink *out) {
  vyre_route_candidate c;
  sink_format(out, "%s: policy %s, %llu dispatches, the last one on %s (%s)\n",
              vyre_program_name(s->bench.run.program),
              vyre_route_policy_name(s->by), (unsigned long long)s->bench.runs,
              s->last.device ? s->last.device : "none",
              vyre_route_reason_name(s->last.reason));
  if (s->bench.made_up.length > 0) {
    sink_format(out, "made up: %.*s\n", (int)s->bench.made_up.length,
                s->bench.made_up.data);
  }
  sink_format(out, "%-12s %12s %8s\n", "device", "median", "samples");
  for (size_t i = 0; vyre_route_candidate_at(s->route, &s->desc, i, &c); i++) {
    sink_format(out, "%-12s ", c.device);
    put_time(out, c.time_ns);
    sink_format(out, " %8u  ", c.samples);
    put_verdict(s, &c, best_time(s), out);
    sink_text(out, "\n");
  }
}

static void tell_json(const route_run *s, sink *out) {
  vyre_route_candidate c;
  json_out json = json_begin(out);
  json_text(&json, "kernel", vyre_program_name(s->bench.run.program));
  json_text(&json, "policy", vyre_route_policy_name(s->by));
  json_u64(&json, "dispatches", s->bench.runs);
  json_text(&json, "device", s->last.device ? s->last.device : "");
  json_text(&json, "reason", vyre_route_reason_name(s->last.reason));
  json_open(&json, "candidates", '[');
  for (size_t i = 0; vyre_route_candidate_at(s->route, &s->desc, i, &c); i++) {
    json_open(&json, NULL, '{');
    json_text(&json, "device", c.device);
    json_bool(&json, "can_run", c.can_run);
    json_bool(&json, "is_choice", c.is_choice);
    json_bool(&json, "is_hopeless", c.is_hopeless);
    json_u64(&json, "samples", c.samples);
    json_u64(&json, "time_ns", c.time_ns);
    json_text(&json, "why", c.why);
    json_close(&json, '}');
  }
  json_close(&json, ']');
  json_end(&json);
}

static bool work(bench_state *bench, problem *wrong) {
  route_run *s = (route_run *)bench;
  return run_compile(&bench->run, wrong) && bench_make_up_data(bench, wrong) &&
         run_bind(&bench->run, wrong) && open_route(s, wrong) &&
         measure(s, wrong);
}

static void tell_all(const bench_state *bench, sink *answer, sink *drawing) {
  (void)drawing;
  (bench->run.flags.json ? tell_json : tell)((const route_run *)bench, answer);
}

static void release(bench_state *bench) {
  vyre_route_release(((route_run *)bench)->route);
  vyre_router_release(((route_run *)bench)->router);
}

int route_explain(int count, char **words, bool json) {
  route_run s = {.bench = {.run = {.flags = {.json = json}}}};
  problem wrong = {0};
  s.bench.run.flags.sets.arena = &s.bench.run.arena;
  bool has_flags = read_flags(count, words, &s, &wrong);
  return bench_run(&s.bench, &(const bench_command){work, tell_all, release},
                   has_flags, &wrong);
}

/* --- replay ----------------------------------------------------------------*/

static bool append(void *self, const char *text, size_t length) {
  sink_bytes(self, text, length);
  return true;
}

static bool replay(const char *devices, const input *in, sink *lines,
                   bool *is_same, problem *wrong) {
  vyre_status st = {0};
  vyre_router *router;
  vyre_router_options options = {.devices = devices,
                                 .policy = VYRE_ROUTE_CAPABLE};
  if (vyre_router_open(NULL, &options, &router, &st) != VYRE_OK ||
      vyre_shadow_replay(router, in->text, in->length,
                         (vyre_writer){append, lines}, is_same,
                         &st) != VYRE_OK) {
    problem_from_status(wrong, &st);
  }
  vyre_router_release(router);
  return wrong->kind == NULL;
}

int route_replay(int count, char **words, bool json) {
  const char *file = NULL, *devices = "all";
  problem wrong = {0};
  input in = {0};
  sink lines = {0}, answer = {0};
  bool is_same = true;
  flag flags[] = {FLAG("--backend", &devices)};
  arguments spec = {.command = "route replay",
                    .flags = flags,
                    .flag_count = sizeof flags / sizeof flags[0],
                    .operand = &file};
  int code;
  if (args_read(&spec, count, words, &wrong) && read_input(file, &in, &wrong) &&
      replay(devices, &in, &lines, &is_same, &wrong)) {
    if (json) {
      json_out out = json_begin(&answer);
      json_bool(&out, "is_same", is_same);
      json_string(&out, "hashes", lines.data, lines.length);
      json_end(&out);
    } else {
      sink_bytes(&answer, lines.data, lines.length);
      sink_text(&answer, is_same ? "the results are the same\n"
                                 : "the results differ\n");
    }
    code = publish(&answer, NULL, NULL, json);
    if (code == EXIT_FINE && !is_same) code = EXIT_WRONG;
  } else {
    code = problem_report(&wrong, json);
  }
  sink_deinit(&lines);
  input_deinit(&in);
  return code;
}
