/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre flow run` and `vyre flow plan`. */
#include "commands/flow/flow.h"

#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/stopwatch.h"
#include "cli/text.h"
#include "io/npy.h"
#include "plan/plan_json.h"

/* --- flags -------------------------------------------------------------------*/

static bool read_flags(flow_state *s, const char *command, int count,
                       char **words, problem *wrong) {
  flag flags[] = {
      FLAG("--set", &s->sets),
      FLAG("--out", &s->outs),
      FLAG("--backend", &s->backends),
      FLAG("--option", &s->options),
      FLAG("--runs", &s->runs),
      FLAG("--no-time", &s->has_no_time),
      FLAG("--separate", &s->is_separate),
      FLAG("--svg", &s->svg),
      FLAG("--json", &s->json),
  };
  arguments spec = {.command = command,
                    .flags = flags,
                    .flag_count = sizeof flags / sizeof flags[0],
                    .operand = &s->file};
  s->runs = 1;
  s->backends = "auto";
  s->sets.arena = s->outs.arena = &s->arena;
  return args_read(&spec, count, words, wrong) &&
         args_options(s->options, wrong) &&
         check_drawing(s->svg, s->file, wrong);
}

static bool open_file(flow_state *s, problem *wrong) {
  vyre_status st = {0};
  vyre_context_options options = {.backend_options = s->options};
  if (vyre_context_create(&options, &s->context, &st) != VYRE_OK)
    return problem_from_options(wrong, &st);
  return read_input_up_to(s->file, FLOW_LIMIT, &s->in, wrong) &&
         flow_file_read(&s->in, &s->arena, &s->flow, wrong) &&
         flow_load_kernels(s, wrong);
}

static void close_file(flow_state *s) {
  for (size_t i = 0; s->data && i < s->flow.resource_count; i++)
    data_deinit(&s->data[i]);
  for (size_t i = 0; i < s->kernel_count; i++)
    kernel_file_deinit(&s->kernels[i]);
  input_deinit(&s->in);
  vyre_context_release(s->context);
  vyre_arena_deinit(&s->arena);
}

/* --- running -----------------------------------------------------------------*/

static uint64_t mix(uint64_t hash, const unsigned char *bytes, uint64_t size) {
  for (uint64_t i = 0; i < size; i++)
    hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
  return hash;
}

static uint64_t hash_outputs(const flow_state *s,
                             unsigned char *const *outputs) {
  uint64_t hash = UINT64_C(14695981039346656037);
  for (size_t i = 0; i < s->flow.resource_count; i++) {
    if (s->flow.resources[i].is_output)
      hash = mix(hash, outputs[i], s->flow.resources[i].size);
  }
  return hash;
}

static int by_time(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static bool measure(const flow_state *s, const flow_job *job, flow_outcome *out,
                    problem *wrong) {
  static uint64_t times[FLOW_MAX_RUNS];
  for (uint64_t i = 0; i < s->runs; i++) {
    uint64_t start = stopwatch_ns();
    if (!flow_job_run(s, job, s->outputs, &out->result, wrong)) return false;
    times[i] = stopwatch_ns() - start;
  }
  qsort(times, s->runs, sizeof times[0], by_time);
  out->time_ns = times[s->runs / 2];
  out->hash = hash_outputs(s, s->outputs);
  return true;
}

static bool run_job(flow_state *s, const flow_job *job, problem *wrong) {
  flow_outcome *out = &s->outcomes[s->outcome_count++];
  vyre_status st = {0};
  memcpy(out->name, vyre_device_name(job->device),
         strlen(vyre_device_name(job->device)) + 1);
  if (vyre_wave_graph_seal(job->graph, &st) != VYRE_OK)
    return problem_from_status(wrong, &st);
  if (!measure(s, job, out, wrong)) return false;
  if (!s->differs && out->hash != s->outcomes[0].hash) s->differs = out->name;
  return true;
}

/* Copies the next of the names between commas to @p out. */
static bool next_name(const flow_state *s, const char **at,
                      char out[VYRE_DEVICE_NAME], problem *wrong) {
  size_t length = strcspn(*at, ",");
  if (length == 0 || length >= VYRE_DEVICE_NAME) {
    return problem_set(wrong, KIND_USAGE,
                       "write names of 'vyre devices', such as ref,cpu",
                       "--backend has a name of %zu bytes", length);
  }
  if (s->outcome_count == FLOW_MAX_BACKENDS) {
    return problem_set(wrong, KIND_USAGE, "name fewer of them",
                       "--backend has more than %d names", FLOW_MAX_BACKENDS);
  }
  memcpy(out, *at, length);
  out[length] = '\0';
  *at += length + ((*at)[length] == ',');
  return true;
}

/* Runs the graph on each backend; *first stays open. */
static bool run_all(flow_state *s, flow_job *first, problem *wrong) {
  const char *at = s->backends;
  do {
    char name[VYRE_DEVICE_NAME];
    flow_job other, *job = s->outcome_count == 0 ? first : &other;
    if (!next_name(s, &at, name, wrong)) return false;
    bool is_fine = flow_job_init(s, name, job, wrong) && run_job(s, job, wrong);
    if (job == &other) flow_job_deinit(s, &other);
    if (!is_fine) return false;
  } while (*at);
  return true;
}

static int publish_run(flow_state *s, const flow_job *job) {
  sink text = {0}, heads[FLOW_MAX_BACKENDS] = {{0}};
  out_file files[FLOW_MAX_BACKENDS];
  size_t count = 0;
  (s->json ? flow_tell_json : flow_tell)(s, job, &text);
  for (size_t i = 0; i < s->outs.list.count && count < FLOW_MAX_BACKENDS; i++) {
    const char *word = word_at(&s->outs, i), *path = strchr(word, '=') + 1;
    for (size_t r = 0; r < s->flow.resource_count; r++) {
      const flow_resource *resource = &s->flow.resources[r];
      size_t length = strlen(resource->name), path_length = strlen(path);
      if (!resource->is_output || strncmp(word, resource->name, length) != 0 ||
          word[length] != '=') {
        continue;
      }
      if (path_length > 4 && strcmp(path + path_length - 4, ".npy") == 0)
        npy_put_header(resource->element, resource->count, &heads[count]);
      files[count] = (out_file){.path = path,
                                .head = heads[count].data,
                                .head_length = heads[count].length,
                                .body = s->outputs[r],
                                .body_length = (size_t)resource->size};
      count++;
      break;
    }
  }
  int code = publish_files(&text, files, count, s->json);
  for (size_t i = 0; i < count; i++) sink_deinit(&heads[i]);
  return code == EXIT_FINE && s->differs ? EXIT_WRONG : code;
}

int flow_run(int count, char **words, bool json) {
  flow_state s = {.json = json};
  flow_job job = {0};
  problem wrong = {0};
  bool is_fine = read_flags(&s, "flow run", count, words, &wrong) &&
                 open_file(&s, &wrong) && flow_load_data(&s, &wrong) &&
                 run_all(&s, &job, &wrong);
  int code = is_fine ? publish_run(&s, &job) : problem_report(&wrong, json);
  flow_job_deinit(&s, &job);
  close_file(&s);
  return code;
}

/* --- planning ----------------------------------------------------------------*/

int flow_plan(int count, char **words, bool json) {
  flow_state s = {.json = json};
  flow_job job = {0};
  problem wrong = {0};
  sink text = {0}, drawing = {0};
  int code;
  if (read_flags(&s, "flow plan", count, words, &wrong) &&
      open_file(&s, &wrong) && flow_job_init(&s, s.backends, &job, &wrong)) {
    if (s.json) {
      flow_plan_json(&s, &job, &text);
    } else {
      vyre_wave_graph_print(job.graph, sink_writer(&text));
    }
    if (s.svg) flow_draw(&s, &job, &drawing);
    code = publish(&text, s.svg, &drawing, json);
  } else {
    code = problem_report(&wrong, json);
  }
  flow_job_deinit(&s, &job);
  close_file(&s);
  return code;
}
