/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Searches the settings of a kernel.
 *
 * The search changes one setting at a time: it tries every value of a setting
 * with the best values of the others so far, and keeps the fastest. It ends
 * when a round over all settings finds nothing faster. The fastest variant is
 * then measured in turns with the program as compiled, and is the choice only
 * if it is clearly faster. */
#include "vyre/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/workgroup_size.h"
#include "base/clock.h"
#include "base/enum_name.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/print.h"
#include "base/status.h"
#include "ir/ir.h"
#include "runtime/dispatch/bind.h"
#include "runtime/tune/apply.h"
#include "runtime/tune/own_outputs.h"

enum {
  ROUNDS = 3,          /* over all settings */
  BETTER_PERCENT = 98, /* of the best time: worth keeping in the search */
  CHOSEN_PERCENT = 97, /* of the time as compiled: worth choosing */
  HOPELESS = 4,        /* times the best time */
  LATE = 10,           /* times the best time: a first run is stopped */
  MIN_SAMPLES = 5,
  MAX_SAMPLES = 401,
  TURNS = 31, /* of the last comparison */
  WHY_BYTES = 512,
};
static const uint64_t default_ns = 5000000000;
static const uint64_t sampling_ns = 15000000;    /* of a variant */
static const uint64_t long_ns = 400000000;       /* of one with long runs */
static const uint64_t min_timeout_ns = 50000000; /* of a first run */
static const uint64_t turns_ns = 500000000;

VYRE__ENUM_NAME(vyre_tune_outcome_name, vyre_tune_outcome,
                VYRE_TUNE_OUTCOME_MAP)

typedef struct variant {
  vyre__settings settings;
  vyre_tune_outcome outcome;
  vyre_pipeline *pipeline; /* NULL: it failed */
  uint64_t time_ns;
  uint32_t samples;
  bool has_outputs, is_choice;
  vyre_hash128 outputs;
  char text[VYRE__SETTINGS_TEXT];
  char why[WHY_BYTES];
} variant;

struct vyre_tuning {
  vyre_allocator allocator;
  variant *variants;
  size_t count, capacity;
  const char *fixed_workgroup;
  bool is_stored;
};

typedef struct search {
  vyre_device *device;
  vyre_program *program;
  const vyre_dispatch_desc *wanted; /* of the caller */
  vyre_dispatch_desc desc;          /* with other outputs */
  vyre_output outputs[VYRE__OWN_OUTPUTS];
  vyre__bytes bytes;
  uint64_t max_ns, end_ns;
  size_t best;
  vyre_tuning *tuning;
} search;

/* --- one variant -----------------------------------------------------------*/

static int compare_times(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static uint64_t median_of(uint64_t *times, size_t count) {
  qsort(times, count, sizeof *times, compare_times);
  return times[count / 2] + (times[count / 2] == 0);
}

static vyre_code run(const search *s, const variant *v, uint64_t timeout_ns,
                     uint64_t *ns, vyre_status *st) {
  vyre_dispatch_desc desc = s->desc;
  desc.timeout_ns = timeout_ns;
  uint64_t start = vyre__clock_ns();
  vyre_code code = vyre_dispatch(v->pipeline, &desc, vyre__status_open(st));
  *ns = vyre__clock_ns() - start;
  return code;
}

static vyre_hash128 hash_outputs(const search *s) {
  vyre__hasher hasher;
  vyre__hash_begin(&hasher, "vyre outputs");
  for (size_t i = 0; i < s->desc.output_count; i++) {
    vyre__hash_bytes(&hasher, s->outputs[i].data, s->outputs[i].size);
  }
  return vyre__hash_end(&hasher);
}

static bool is_time_up(const search *s) {
  return vyre__clock_ns() >= s->end_ns;
}

/* Returns the smaller of two limits, where the one of the caller may be 0: none.
 */
static uint64_t limit_of(const search *s, uint64_t own) {
  uint64_t given = s->wanted->timeout_ns;
  if (own < min_timeout_ns) own = min_timeout_ns;
  return given && given < own ? given : own;
}

/* Runs the program as compiled for the first time. A run that takes the whole
 * time for tuning is stopped. */
static vyre_code first_run(search *s, const variant *v, vyre_status *st) {
  uint64_t ns, limit = limit_of(s, s->max_ns);
  vyre_status one = {0};
  vyre_code code = run(s, v, limit, &ns, &one);
  if (code == VYRE_OK || one.kind != VYRE_KIND_TIMED_OUT ||
      limit == s->wanted->timeout_ns) {
    if (code != VYRE_OK && st) *st = one;
    return code;
  }
  char given[VYRE__DURATION_TEXT];
  return VYRE_FAIL_WITH(
      st, code, VYRE_KIND_TIMED_OUT, "max_ns",
      VYRE_NUMBERS({"max_ns", s->max_ns}, {"ran_ns", ns}),
      "raise max_ns (`vyre tune --seconds`), or bind less data",
      "one run of kernel '%.60s' takes longer than %s, the time for tuning",
      s->program->name, vyre__duration(limit, given));
}

/* Runs a variant once, and compares its results with those as compiled. */
static vyre_code check_run(search *s, variant *v, uint64_t best,
                           vyre_status *st) {
  uint64_t now = vyre__clock_ns(), ns;
  uint64_t left = s->end_ns > now ? s->end_ns - now : 0;
  uint64_t limit = limit_of(s, best * LATE < left ? best * LATE : left);
  const variant *first = &s->tuning->variants[0];
  VYRE_TRY(run(s, v, best ? limit : s->wanted->timeout_ns, &ns, st));
  v->outputs = hash_outputs(s);
  v->has_outputs = true;
  if (vyre__hash_equal(v->outputs, first->outputs)) {
    return VYRE_OK;
  }
  return VYRE_FAIL(
      st, VYRE_DISPATCH_FAILED, VYRE_KIND_NONE,
      "find the race with `vyre run --check`; if the kernel has no race, "
      "report "
      "it as a bug",
      "kernel '%.60s' gives other results with %s than as compiled: they "
      "depend on the order of its invocations",
      s->program->name, v->text);
}

/* Measures a variant whose first run was right. */
static vyre_code measure(const search *s, variant *v, uint64_t best,
                         vyre_status *st) {
  uint64_t times[MAX_SAMPLES], spent = 0;
  uint32_t count = 0;
  while (count < MAX_SAMPLES && (count < MIN_SAMPLES || spent < sampling_ns) &&
         (count < 2 || spent < long_ns)) {
    VYRE_TRY(run(s, v, s->wanted->timeout_ns, &times[count], st));
    spent += times[count++];
    if (best && count == 2 && times[0] > best * HOPELESS &&
        times[1] > best * HOPELESS) {
      v->outcome = VYRE_TUNE_HOPELESS;
      break;
    }
  }
  v->samples = count;
  v->time_ns = median_of(times, count);
  return VYRE_OK;
}

static variant *add_variant(search *s, const vyre__settings *settings) {
  vyre_tuning *t = s->tuning;
  if (!vyre__reserve(t->allocator, &t->variants, &t->capacity, t->count + 1,
                     sizeof *t->variants, false)) {
    return NULL;
  }
  variant *v = &t->variants[t->count++];
  memset(v, 0, sizeof *v);
  v->settings = *settings;
  vyre__settings_text(s->device, settings, v->text);
  return v;
}

static vyre_code compile(search *s, variant *v, vyre_status *st) {
  return vyre__pipeline_compile_tuned(s->device, s->program, &v->settings,
                                      VYRE_TIER_OPTIMISED, &v->pipeline, st);
}

static variant *find(const search *s, const vyre__settings *settings) {
  for (size_t i = 0; i < s->tuning->count; i++) {
    variant *v = &s->tuning->variants[i];
    if (vyre__settings_pack(&v->settings) == vyre__settings_pack(settings)) {
      return v;
    }
  }
  return NULL;
}

/* Tries settings that were not tried before. A variant may fail to compile or to
 * run, but it must not give other results. */
static vyre_code try_settings(search *s, const vyre__settings *settings,
                              vyre_status *st) {
  if (find(s, settings)) return VYRE_OK;
  variant *v = add_variant(s, settings);
  if (!v) {
    return vyre__no_memory(st, "vyre_tune", "variants", s->tuning->count + 1);
  }
  if (is_time_up(s)) {
    v->outcome = VYRE_TUNE_NOT_TRIED;
    return VYRE_OK;
  }
  uint64_t best = s->tuning->variants[s->best].time_ns;
  vyre_status one = {0};
  vyre_code code = compile(s, v, &one);
  if (code == VYRE_OK) code = check_run(s, v, best, &one);
  if (code != VYRE_OK && v->has_outputs) {
    if (st) *st = one;
    return code;
  }
  if (code == VYRE_OK) code = measure(s, v, best, &one);
  if (code == VYRE_OK) return VYRE_OK;
  v->outcome =
      one.kind == VYRE_KIND_TIMED_OUT ? VYRE_TUNE_HOPELESS : VYRE_TUNE_FAILED;
  (void)snprintf(v->why, sizeof v->why, "%s", one.message);
  return vyre_device_is_lost(s->device) ? vyre__device_lost(s->device, st)
                                        : VYRE_OK;
}

/* --- the search ------------------------------------------------------------*/

/* A setting with its values; `at` is its place in the settings. */
typedef struct dimension {
  uint32_t values[20]; /* as stored: 0 stands for the default */
  size_t count;
  int at; /* -1: the workgroup; else an index of `tuned` */
} dimension;

static uint32_t *place_of(const dimension *d, vyre__settings *settings) {
  return d->at < 0 ? &settings->workgroup : &settings->tuned[d->at];
}

static dimension workgroups_of(const search *s) {
  const vyre_device_caps *caps = &s->device->caps;
  dimension d = {.at = -1, .count = 1};
  for (uint32_t size = 16; size <= 1024; size *= 2) {
    if (size <= caps->max_workgroup[0] &&
        size <= caps->max_workgroup_invocations &&
        size != s->program->workgroup[0]) {
      d.values[d.count++] = size;
    }
  }
  return d;
}

static bool tunable_of(const search *s, int index, dimension *d) {
  const vyre__backend *backend = s->device->backend;
  vyre__tunable t;
  *d = (dimension){.at = index, .count = 1};
  if (index >= VYRE__TUNABLES || !backend->tunable_at ||
      !backend->tunable_at(s->device, (uint32_t)index, &t)) {
    return false;
  }
  for (uint32_t i = 0; i < t.count; i++)
    d->values[d->count++] = t.values[i] + 1;
  return true;
}

/* Tries every value of one setting, and keeps the best variant. */
static vyre_code search_dimension(search *s, const dimension *d,
                                  vyre_status *st) {
  const vyre__settings base = s->tuning->variants[s->best].settings;
  for (size_t i = 0; i < d->count; i++) {
    vyre__settings settings = base;
    *place_of(d, &settings) = d->values[i];
    VYRE_TRY(try_settings(s, &settings, st));
  }
  for (size_t i = 0; i < s->tuning->count; i++) {
    const variant *v = &s->tuning->variants[i];
    uint64_t best = s->tuning->variants[s->best].time_ns;
    if (v->outcome == VYRE_TUNE_MEASURED &&
        v->time_ns * 100 < best * BETTER_PERCENT) {
      s->best = i;
    }
  }
  return VYRE_OK;
}

static vyre_code search_round(search *s, vyre_status *st) {
  dimension d = workgroups_of(s);
  if (!s->tuning->fixed_workgroup) VYRE_TRY(search_dimension(s, &d, st));
  for (int i = 0; tunable_of(s, i, &d); i++) {
    VYRE_TRY(search_dimension(s, &d, st));
  }
  return VYRE_OK;
}

/* Measures the best variant in turns with the program as compiled. */
static vyre_code confirm(search *s, vyre_status *st) {
  variant *best = &s->tuning->variants[s->best], *first = s->tuning->variants;
  uint64_t ours[TURNS], theirs[TURNS], start = vyre__clock_ns();
  size_t turns = 0;
  if (best == first) {
    first->is_choice = true;
    return VYRE_OK;
  }
  while (turns < TURNS && (turns < (is_time_up(s) ? 1 : MIN_SAMPLES) ||
                           vyre__clock_ns() - start < turns_ns)) {
    VYRE_TRY(run(s, first, s->wanted->timeout_ns, &theirs[turns], st));
    VYRE_TRY(run(s, best, s->wanted->timeout_ns, &ours[turns], st));
    turns++;
  }
  first->time_ns = median_of(theirs, turns);
  best->time_ns = median_of(ours, turns);
  first->samples += (uint32_t)turns;
  best->samples += (uint32_t)turns;
  bool is_faster = best->time_ns * 100 < first->time_ns * CHOSEN_PERCENT;
  *(is_faster ? &best->is_choice : &first->is_choice) = true;
  return VYRE_OK;
}

static vyre_code find_fixed_workgroup(search *s, vyre_status *st) {
  vyre_arena arena;
  const uint32_t *grid = s->wanted->grid;
  if (grid[0] | grid[1] | grid[2]) {
    s->tuning->fixed_workgroup = "the grid of the dispatch is given";
    return VYRE_OK;
  }
  vyre_arena_init(&arena, s->tuning->allocator);
  vyre_code code = vyre__workgroup_size_matters(
      s->program, &arena, &s->tuning->fixed_workgroup, st);
  vyre_arena_deinit(&arena);
  return code;
}

static const char *unsupported_part(const vyre_dispatch_desc *desc) {
  if (desc->resources) return "resources";
  if (desc->output_buffers) return "output_buffers";
  if (desc->variant) return "a variant";
  if (desc->max_loop_iterations) return "max_loop_iterations";
  if (desc->check.races || desc->check.out_of_bounds || desc->check.schedules) {
    return "checks";
  }
  for (size_t i = 0; i < desc->input_count; i++) {
    if (desc->inputs[i].buffer.owner) return "a device buffer";
  }
  for (size_t i = 0; i < desc->output_count; i++) {
    const vyre_output *o = &desc->outputs[i];
    if (o->buffer.owner || o->new_buffer) return "a device buffer";
  }
  return NULL;
}

static vyre_code check_desc(const vyre_binding_plan *plan,
                            const vyre_dispatch_desc *desc, vyre_status *st) {
  if (!desc->resources) VYRE_TRY(vyre__check_counts(plan, desc, st));
  const char *part = unsupported_part(desc);
  if (!part) return VYRE_OK;
  return VYRE_FAIL(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
      "bind host memory only, and leave the other fields zero",
      "vyre_tune: the dispatch has %s, which would change from run "
      "to run, or select other code",
      part);
}

static vyre_code find_best(search *s, vyre_status *st) {
  const vyre__settings none = {0};
  variant *first = add_variant(s, &none);
  if (!first) return vyre__no_memory(st, "vyre_tune", "variants", 1);
  VYRE_TRY(compile(s, first, st));
  VYRE_TRY(check_desc(vyre_pipeline_bindings(first->pipeline), s->wanted, st));
  VYRE_TRY(vyre__own_outputs("vyre_tune",
                             vyre_pipeline_bindings(first->pipeline), s->wanted,
                             s->outputs, &s->bytes, st));
  s->desc = (vyre_dispatch_desc){
      .inputs = s->wanted->inputs,
      .input_count = s->wanted->input_count,
      .outputs = s->outputs,
      .output_count = s->wanted->output_count,
      .grid = {s->wanted->grid[0], s->wanted->grid[1], s->wanted->grid[2]},
      .is_borrowed = true};
  VYRE_TRY(first_run(s, first, st));
  first->outputs = hash_outputs(s);
  VYRE_TRY(check_run(s, first, 0, st)); /* the same results once more */
  VYRE_TRY(measure(s, first, 0, st));
  VYRE_TRY(find_fixed_workgroup(s, st));
  for (int round = 0; round < ROUNDS; round++) {
    size_t before = s->best;
    VYRE_TRY(search_round(s, st));
    if (s->best == before || is_time_up(s)) break;
  }
  return confirm(s, st);
}

/* --- storing ---------------------------------------------------------------*/

static vyre__time time_of(const search *s, const variant *v) {
  return (vyre__time){.program = s->program->fingerprint,
                      .device = vyre__device_identity_of(s->device),
                      .settings = vyre__settings_pack(&v->settings),
                      .size_class = vyre__desc_size_class(s->device, s->wanted),
                      .samples = v->samples,
                      .time_ns = v->time_ns,
                      .is_choice = v->is_choice};
}

static vyre_code store(search *s, vyre_status *st) {
  vyre__tunings *tunings = vyre__tunings_of(s->device->context);
  if (!tunings) return vyre__no_memory(st, "vyre_tune", "choices", 1);
  const variant *first = s->tuning->variants;
  vyre__time as_compiled = time_of(s, first);
  pthread_mutex_lock(&tunings->lock);
  vyre__times_add(&tunings->times, &as_compiled);
  for (size_t i = 1; i < s->tuning->count; i++) {
    if (!s->tuning->variants[i].is_choice) continue;
    vyre__time choice = time_of(s, &s->tuning->variants[i]);
    vyre__times_add(&tunings->times, &choice);
  }
  vyre_code code =
      vyre__times_save(&tunings->times, &as_compiled.device, 1, st);
  pthread_mutex_unlock(&tunings->lock);
  vyre__tunings_changed(s->device->context);
  s->tuning->is_stored =
      code == VYRE_OK && s->device->context->cache.path != NULL;
  return code;
}

/* --- public functions ------------------------------------------------------*/

static void release_pipelines(vyre_tuning *tuning) {
  for (size_t i = 0; i < tuning->count; i++) {
    vyre_pipeline_release(tuning->variants[i].pipeline);
    tuning->variants[i].pipeline = NULL;
  }
}

vyre_code vyre_tune(vyre_device *device, vyre_program *program,
                    const vyre_dispatch_desc *desc,
                    const vyre_tune_options *options, vyre_tuning **out,
                    vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, out);
  *out = NULL;
  VYRE_REQUIRE(st, device);
  VYRE_REQUIRE(st, program);
  VYRE_REQUIRE(st, desc);
  if (options) VYRE_CHECK_RESERVED(st, __func__, options);
  VYRE_REQUIRE_ARRAY(st, desc->inputs, desc->input_count);
  VYRE_REQUIRE_ARRAY(st, desc->outputs, desc->output_count);
  vyre_allocator allocator = device->allocator;
  vyre_tuning *tuning = vyre__alloc_zeroed(allocator, sizeof *tuning);
  if (!tuning) return vyre__no_memory(st, __func__, "tunings", 1);
  tuning->allocator = allocator;
  uint64_t max_ns = options && options->max_ns ? options->max_ns : default_ns;
  uint64_t start_ns = vyre__clock_ns();
  if (max_ns > UINT64_MAX - start_ns) max_ns = UINT64_MAX - start_ns;
  search s = {.device = device,
              .program = program,
              .wanted = desc,
              .bytes = {.allocator = allocator},
              .max_ns = max_ns,
              .end_ns = start_ns + max_ns,
              .tuning = tuning};
  vyre_code code = find_best(&s, st);
  if (code == VYRE_OK && !(options && options->is_trial)) code = store(&s, st);
  release_pipelines(tuning);
  vyre__bytes_deinit(&s.bytes);
  if (code != VYRE_OK) {
    vyre_tuning_release(tuning);
    return code;
  }
  *out = tuning;
  return VYRE_OK;
}

void vyre_tuning_release(vyre_tuning *tuning) {
  if (!tuning) return;
  vyre__reserve_free(tuning->allocator, &tuning->variants, &tuning->capacity,
                     sizeof *tuning->variants);
  vyre__resize(tuning->allocator, tuning, sizeof *tuning, 0);
}

bool vyre_tuning_variant_at(const vyre_tuning *tuning, size_t index,
                            vyre_tune_variant *out) {
  if (!out) return false;
  *out = (vyre_tune_variant){.settings = "", .why = ""};
  if (!tuning || index >= tuning->count) return false;
  const variant *v = &tuning->variants[index];
  *out = (vyre_tune_variant){.settings = v->text,
                             .outcome = v->outcome,
                             .is_choice = v->is_choice,
                             .has_outputs = v->has_outputs,
                             .samples = v->samples,
                             .time_ns = v->time_ns,
                             .outputs = v->outputs,
                             .why = v->why};
  return true;
}

const char *vyre_tuning_fixed_workgroup(const vyre_tuning *tuning) {
  return tuning ? tuning->fixed_workgroup : NULL;
}

bool vyre_tuning_is_stored(const vyre_tuning *tuning) {
  return tuning && tuning->is_stored;
}

vyre_code vyre_tune_forget(vyre_device *device, vyre_program *program,
                           uint64_t *count, vyre_status *st) {
  vyre__status_begin(st);
  uint64_t unused;
  if (!count) count = &unused;
  *count = 0;
  VYRE_REQUIRE(st, device);
  VYRE_REQUIRE(st, program);
  vyre__tunings *tunings = vyre__tunings_of(device->context);
  if (!tunings) return vyre__no_memory(st, __func__, "choices", 1);
  vyre__device_identity identity = vyre__device_identity_of(device);
  pthread_mutex_lock(&tunings->lock);
  vyre_code code = vyre__times_forget(&tunings->times, program->fingerprint,
                                      &identity, count, st);
  pthread_mutex_unlock(&tunings->lock);
  vyre__tunings_changed(device->context);
  return code;
}

bool vyre_pipeline_tuned_at(const vyre_pipeline *pipeline, size_t index,
                            vyre_tuned_choice *out) {
  if (!out) return false;
  *out = (vyre_tuned_choice){.settings = ""};
  const vyre__tuned_list *list =
      pipeline ? atomic_load(&pipeline->state->tuned) : NULL;
  if (!list || index >= list->count) return false;
  const vyre__tuned_entry *e = &list->entries[index];
  uint32_t bits = e->size_class >> 8;
  vyre__settings_text(pipeline->device, &e->settings, out->settings);
  out->min_bytes = bits ? UINT64_C(1) << (bits - 1) : 0;
  out->max_bytes = bits ? (out->min_bytes - 1) * 2 + 1 : 0;
  out->has_grid = (e->size_class & 255) != 0;
  out->time_ns = e->time_ns;
  out->default_ns = e->default_ns;
  return true;
}
