/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre graph`: loads a graph, runs the
 * algorithm on each device and compares the results. */
#include "commands/graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/stopwatch.h"
#include "cli/text.h"

enum { DEFAULT_ITERATIONS = 20, DEFAULT_DELTA = 16 };

static const char *const names[GRAPH_ALGORITHMS] = {
    "bfs", "components", "pagerank", "sssp", "triangles"};

const char *graph_algorithm_name(graph_algorithm algorithm) {
  return names[algorithm];
}

uint64_t graph_hash(const uint32_t *words, uint64_t count) {
  uint64_t hash = graph_mix(count);
  for (uint64_t i = 0; i < count; i++) hash = graph_mix(hash ^ words[i]);
  return hash;
}

/* --- flags -------------------------------------------------------------------*/

static bool read_damping(graph_state *s, problem *wrong) {
  s->settings.damping = 0.85f;
  if (!s->damping) return true;
  char *end;
  float value = strtof(s->damping, &end);
  if (end != s->damping && !*end && value >= 0.0f && value < 1.0f) {
    s->settings.damping = value;
    return true;
  }
  char shown[60];
  show_into(shown, sizeof shown, s->damping, strlen(s->damping));
  return problem_set(wrong, KIND_USAGE, "write, for example, --damping 0.85",
                     "--damping is '%s'; expected a number from 0 to 1, "
                     "without 1",
                     shown);
}

/* Sets what the algorithm needs of the graph. */
static void choose_loading(graph_state *s) {
  graph_options *o = &s->loading;
  o->is_undirected |=
      s->algorithm == GRAPH_COMPONENTS || s->algorithm == GRAPH_TRIANGLES;
  o->drops_loops = s->algorithm == GRAPH_TRIANGLES;
  o->needs_in = s->algorithm == GRAPH_PAGERANK || s->algorithm == GRAPH_BFS;
  o->needs_weights = s->algorithm == GRAPH_SSSP;
}

static bool read_flags(graph_state *s, int count, char **words,
                       problem *wrong) {
  char command[32];
  const flag all[] = {
      FLAG("--backend", &s->backends),
      FLAG("--undirected", &s->loading.is_undirected),
      FLAG("--one-based", &s->loading.is_one_based),
      FLAG("--runs", &s->runs),
      FLAG("--out", &s->output),
      FLAG("--no-time", &s->has_no_time),
      FLAG("--option", &s->options),
      FLAG("--keep-duplicates", &s->loading.keeps_duplicates),
      FLAG("--source", &s->source),
      FLAG("--iterations", &s->iterations),
      FLAG("--damping", &s->damping),
      FLAG("--delta", &s->delta),
      FLAG("--scale", &s->scale),
      FLAG("--budget", &s->settings.budget),
  };
  enum { ALL = sizeof all / sizeof all[0] };
  flag flags[ALL];
  snprintf(command, sizeof command, "graph %s", names[s->algorithm]);
  memcpy(flags, all, sizeof all);
  arguments spec = {.command = command,
                    .flags = flags,
                    .flag_count = ALL,
                    .operand = &s->file};
  s->runs = 1;
  s->iterations = DEFAULT_ITERATIONS;
  s->delta = DEFAULT_DELTA;
  s->backends = "auto";
  if (!args_read(&spec, count, words, wrong)) return false;
  choose_loading(s);
  s->settings.source = (uint32_t)s->source;
  s->settings.iterations = (uint32_t)s->iterations;
  s->settings.delta = (uint32_t)s->delta;
  s->loading.scale = (uint32_t)s->scale;
  return args_options(s->options, wrong) && read_damping(s, wrong) &&
         (!s->output || strcmp(s->file, "-") == 0 ||
          is_other_file("--out", s->output, s->file, wrong));
}

/* --- work ---------------------------------------------------------------------*/

static bool load(graph_state *s, problem *wrong) {
  progress_bar bar;
  uint64_t start = stopwatch_ns();
  progress_begin(&bar, is_generated_graph(s->file) ? "edges" : "bytes", NULL);
  s->loading.bar = &bar;
  bool is_fine = graph_load(s->file, &s->loading, &s->g, wrong);
  progress_end(&bar);
  s->loading.bar = NULL;
  s->load_ns = stopwatch_ns() - start;
  if (!is_fine) return false;
  bool has_source = s->algorithm == GRAPH_BFS || s->algorithm == GRAPH_SSSP;
  if (!has_source || s->settings.source < s->g.vertices) return true;
  problem_set(wrong, KIND_USAGE, "", "--source is %u, and the graph has %u %s",
              s->settings.source, s->g.vertices,
              s->g.vertices == 1 ? "vertex" : "vertices");
  if (s->g.vertices == 0) {
    problem_fix(wrong, "use a graph with a vertex");
  } else {
    problem_fix(wrong, "use a vertex from 0 to %u", s->g.vertices - 1);
  }
  return false;
}

static int by_time(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* Runs the job as often as asked for, and stores the median time. */
static bool measure(graph_state *s, graph_job *job, graph_outcome *out) {
  static uint64_t times[GRAPH_MAX_RUNS];
  for (uint64_t i = 0; i < s->runs; i++) {
    if (!graph_job_run(job, &times[i])) return false;
  }
  qsort(times, s->runs, sizeof times[0], by_time);
  out->time_ns = times[s->runs / 2];
  return true;
}

/* Reads the result, and compares it with that of the first backend. */
static bool compare(graph_state *s, graph_job *job, graph_outcome *out,
                    problem *wrong) {
  uint64_t bytes = job->result_words * 4;
  uint32_t *result = graph_pages(bytes);
  if (!result) return problem_no_memory(wrong, "the result");
  bool is_fine = graph_job_read(job, result);
  out->hash = graph_hash(result, job->result_words);
  if (is_fine && !s->result) {
    s->result = result;
    s->result_words = job->result_words;
    return true;
  }
  if (is_fine && !s->differs && memcmp(s->result, result, bytes) != 0) {
    s->differs = out->name;
  }
  graph_pages_free(result, bytes);
  return is_fine;
}

static bool run_on(graph_state *s, const char *name, problem *wrong) {
  vyre_status st = {0};
  vyre_device *device;
  graph_job job;
  graph_outcome *out = &s->outcomes[s->outcome_count++];
  if (vyre_device_open(s->context, name, &device, &st) != VYRE_OK) {
    return problem_from_status(wrong, &st);
  }
  snprintf(out->name, sizeof out->name, "%s", vyre_device_name(device));
  bool is_fine = false;
  if (vyre_device_get_caps(device)->is_stub) {
    problem_set(wrong, KIND_USAGE, "use --backend cpu",
                "device %s is a stub, which runs no kernel", out->name);
  } else {
    is_fine = graph_job_init(&job, s->algorithm, &s->g, &s->settings, device,
                             wrong) &&
              measure(s, &job, out) && compare(s, &job, out, wrong);
    out->bytes = job.on.bytes;
    graph_job_deinit(&job);
  }
  vyre_device_release(device);
  return is_fine;
}

static bool open_context(graph_state *s, problem *wrong) {
  vyre_status st = {0};
  vyre_context_options options = {.backend_options = s->options};
  if (vyre_context_create(&options, &s->context, &st) == VYRE_OK) return true;
  return problem_from_options(wrong, &st);
}

/* Runs the algorithm on each of the backends. */
static bool run_all(graph_state *s, problem *wrong) {
  const char *at = s->backends;
  for (;;) {
    char name[VYRE_DEVICE_NAME];
    size_t length = strcspn(at, ",");
    if (length == 0 || length >= sizeof name) {
      return problem_set(wrong, KIND_USAGE,
                         "write names of 'vyre devices', such as ref,cpu",
                         "--backend has a name of %zu bytes", length);
    }
    if (s->outcome_count == GRAPH_MAX_BACKENDS) {
      return problem_set(wrong, KIND_USAGE, "name fewer of them",
                         "--backend has more than %d names",
                         GRAPH_MAX_BACKENDS);
    }
    memcpy(name, at, length);
    name[length] = '\0';
    if (!run_on(s, name, wrong)) return false;
    if (!at[length]) return true;
    at += length + 1;
  }
}

static int answer(graph_state *s) {
  sink text = {0}, values = {0};
  (s->json ? graph_tell_json : graph_tell)(s, &text);
  if (s->output) graph_put_values(s, &values);
  out_file file = {
      .path = s->output, .head = values.data, .head_length = values.length};
  if (values.failed) text.failed = true;
  int code = publish_files(&text, &file, s->output ? 1 : 0, s->json);
  sink_deinit(&values);
  return code == EXIT_FINE && s->differs ? EXIT_WRONG : code;
}

static int run_graph(graph_algorithm algorithm, int count, char **words,
                     bool json) {
  graph_state s = {.algorithm = algorithm, .json = json};
  problem wrong = {0};
  bool is_fine = read_flags(&s, count, words, &wrong) &&
                 open_context(&s, &wrong) && load(&s, &wrong) &&
                 run_all(&s, &wrong);
  int code = is_fine ? answer(&s) : problem_report(&wrong, json);
  graph_pages_free(s.result, s.result_words * 4);
  graph_deinit(&s.g);
  vyre_context_release(s.context);
  return code;
}

int graph_bfs_command(int count, char **words, bool json) {
  return run_graph(GRAPH_BFS, count, words, json);
}

int graph_components_command(int count, char **words, bool json) {
  return run_graph(GRAPH_COMPONENTS, count, words, json);
}

int graph_pagerank_command(int count, char **words, bool json) {
  return run_graph(GRAPH_PAGERANK, count, words, json);
}

int graph_sssp_command(int count, char **words, bool json) {
  return run_graph(GRAPH_SSSP, count, words, json);
}

int graph_triangles_command(int count, char **words, bool json) {
  return run_graph(GRAPH_TRIANGLES, count, words, json);
}
