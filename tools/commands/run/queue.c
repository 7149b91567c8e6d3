/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs queue kernels for `vyre run`. */
#include <stdio.h>
#include <string.h>

#include "cli/output.h"
#include "commands/run/run.h"
#include "plan/svg.h"

/* --- device ---------------------------------------------------------------- */

static bool open_device(run_state *s, const char *name, problem *wrong) {
  vyre_status st = {0};
  if (vyre_device_open(s->context, name, &s->on.device, &st) == VYRE_OK) {
    s->device = s->on.device;
    return true;
  }
  problem_from_status(wrong, &st);
  wrong->device = true;
  return false;
}

static const run_buffer *buffer_at(const run_state *s, uint32_t index) {
  for (size_t i = 0; i < s->buffer_count; i++) {
    if (s->buffers[i].binding->buffer_index == index) return &s->buffers[i];
  }
  return NULL;
}

/* Returns the number of keys of this run; 0 for lists. */
static uint64_t count_keys(const run_state *s) {
  const vyre_queue_clauses *q = &s->clauses;
  const run_buffer *b = buffer_at(s, q->keys);
  uint32_t value = 0;
  if (q->key_bound == VYRE_KEY_BOUND_CONSTANT) return q->keys;
  if (q->key_bound == VYRE_KEY_BOUND_NONE || !b) return 0;
  if (q->key_bound == VYRE_KEY_BOUND_LEN) return b->count;
  if (b->in.length >= sizeof value) memcpy(&value, b->in.bytes, sizeof value);
  return value;
}

/* Creates the queue; its runs stop after @p max_windows windows, unless 0. */
static bool create(run_state *s, uint64_t max_windows, problem *wrong) {
  vyre_status st = {0};
  const run_flags *f = &s->flags;
  const vyre_compile_options compile = {
      .ulp_budget = f->ulp_budget,
      .tier = (vyre_tier)f->tier,
      .ignores_tuning = f->is_untuned,
      .counts_iterations = f->max_iterations > 0,
      .timeout_ns = f->compile_timeout_ns};
  vyre_queue_options options = {.mode = (vyre_queue_mode)f->queue_mode,
                                .capacity = f->capacity,
                                .budget_bytes = f->budget_bytes,
                                .max_depth = f->max_depth,
                                .max_windows = max_windows,
                                .timeout_ns = f->timeout_ns,
                                .has_order_hash = true,
                                .compile = &compile};
  if (options.capacity == 0) options.capacity = count_keys(s);
  if (vyre_queue_create(s->device, s->program, &options, &s->queue,
                        &s->file.findings, &st) == VYRE_OK) {
    return true;
  }
  if (s->file.findings.count > 0) return false;
  problem_from_status(wrong, &st);
  wrong->file = s->file.in.label;
  if (st.kind == VYRE_KIND_OVER_BUDGET)
    problem_fix(wrong, "raise --budget, or lower --capacity");
  return false;
}

/* --- items ------------------------------------------------------------------ */

static vyre_element element_of(vyre_type type) {
  switch (type) {
    case VYRE_TYPE_I32:
      return VYRE_ELEMENT_I32;
    case VYRE_TYPE_F32:
      return VYRE_ELEMENT_F32;
    case VYRE_TYPE_U64:
      return VYRE_ELEMENT_U64;
    case VYRE_TYPE_I64:
      return VYRE_ELEMENT_I64;
    case VYRE_TYPE_F64:
      return VYRE_ELEMENT_F64;
    default:
      return VYRE_ELEMENT_U32;
  }
}

static bool fill(run_state *s, problem *wrong) {
  vyre_status st = {0};
  const uint32_t item_bytes = s->clauses.item_bytes;
  const bool is_single = s->clauses.field_count == 1;
  const vyre_buffer_decl items = {
      .name = "--items",
      .access = VYRE_ACCESS_READ,
      .element =
          is_single ? element_of(s->clauses.fields[0].type) : VYRE_ELEMENT_U32};
  buffer_data data = {0};
  unsigned char zeros[32 * 8] = {0};
  const void *bytes = zeros;
  size_t length = item_bytes; /* one item of zeros */
  bool good = true;
  if (s->flags.items) {
    good = data_read(s->flags.items, &items, &s->arena, &data, wrong);
    bytes = data.bytes;
    length = data.length;
  }
  if (good && length % item_bytes != 0) {
    problem_set(wrong, KIND_USAGE, "",
                "--items has %zu bytes, but an item has %u", length,
                item_bytes);
    problem_fix(wrong, "write the words of all fields of each item");
    good = false;
  }
  if (good &&
      vyre_queue_fill(s->queue, bytes, length / item_bytes, &st) != VYRE_OK) {
    problem_from_status(wrong, &st);
    problem_fix(wrong, "raise --capacity, or start with fewer --items");
    good = false;
  }
  data_deinit(&data);
  return good;
}

/* --- running ---------------------------------------------------------------- */

static bool failed(run_state *s, problem *wrong, const vyre_status *st) {
  uint64_t sufficient = 0;
  problem_from_status(wrong, st);
  if (vyre_status_number_get(st, "sufficient", &sufficient) ||
      vyre_status_number_get(st, "needed", &sufficient)) {
    problem_fix(wrong, "use --capacity %llu", (unsigned long long)sufficient);
  } else if (st->kind == VYRE_KIND_OUT_OF_FUEL) {
    problem_fix(wrong, "make the loop end, or raise --max-loop-iterations");
  } else if (st->kind == VYRE_KIND_TIMED_OUT) {
    problem_fix(wrong, "raise --timeout");
  }
  wrong->file = s->file.in.label;
  return false;
}

static bool drain(run_state *s, problem *wrong) {
  vyre_status st = {0};
  vyre_dispatch_desc desc = {.inputs = s->inputs,
                             .input_count = s->input_count,
                             .outputs = s->outputs,
                             .output_count = s->output_count,
                             .max_loop_iterations = s->flags.max_iterations};
  if (s->flags.check) run_ask_check(s, &desc);
  return vyre_queue_run(s->queue, &desc, &s->queue_stats, NULL, &st) ==
             VYRE_OK ||
         failed(s, wrong, &st);
}

/* Notes the items that are held after each window. The kernel has its data from
 * the start in each run, so there is one run for each number of windows. */
static bool trace_windows(run_state *s, problem *wrong) {
  vyre_queue_state state = {.current = 1};
  vyre_status st = {0};
  while (state.current + state.next > 0 && s->held_count <= RUN_MAX_DRAWN) {
    const bool is_good = create(s, s->held_count, wrong) && fill(s, wrong) &&
                         (s->held_count == 0 || drain(s, wrong));
    if (!is_good) return false;
    if (vyre_queue_get_state(s->queue, &state, &st) != VYRE_OK)
      return problem_from_status(wrong, &st);
    s->held[s->held_count++] = state.current + state.next;
    vyre_queue_release(s->queue);
    s->queue = NULL;
  }
  return true;
}

static bool refuse(const char *name, problem *wrong) {
  problem_set(wrong, KIND_USAGE, "", "%s is not for queue kernels", name);
  return problem_fix(wrong, "remove %s", name), false;
}

static bool check_flags(const run_state *s, problem *wrong) {
  const run_flags *f = &s->flags;
  if (f->grid[0]) return refuse("--grid", wrong);
  if (f->workgroup[0]) return refuse("--workgroup", wrong);
  if (f->replay) return refuse("--replay", wrong);
  for (size_t i = 0; i < s->buffer_count; i++) {
    if (s->buffers[i].format != IMAGE_NONE && s->buffers[i].path)
      return refuse("an image of --out", wrong);
  }
  return true;
}

bool run_queue(run_state *s, problem *wrong) {
  vyre_status st = {0};
  const bool is_auto = strcmp(s->flags.backend, "auto") == 0;
  const char *by_itself = s->flags.check ? "ref" : "cpu";
  if (!run_make_context(s, wrong)) return false;
  if (vyre_binding_plan_build(s->program, &s->arena, &s->plan, &st) !=
      VYRE_OK) {
    problem_from_status(wrong, &st);
    return false;
  }
  return run_bind(s, wrong) && check_flags(s, wrong) &&
         open_device(s, is_auto ? by_itself : s->flags.backend, wrong) &&
         (!s->flags.svg || trace_windows(s, wrong)) && create(s, 0, wrong) &&
         fill(s, wrong) && drain(s, wrong);
}

/* --- output ----------------------------------------------------------------- */

void run_tell_queue(const run_state *s, sink *out) {
  const vyre_queue_stats *q = &s->queue_stats;
  sink_format(out, "ran %.255s on %s: %llu item%s in %llu window%s, ",
              vyre_program_name(s->program), vyre_device_name(s->device),
              (unsigned long long)q->items, q->items == 1 ? "" : "s",
              (unsigned long long)q->windows, q->windows == 1 ? "" : "s");
  sink_format(out, "order hash %016llx\n", (unsigned long long)q->order_hash);
  sink_format(out,
              "mode %s: %llu pushed, at most %llu held, %llu of %llu bytes "
              "are places\n",
              vyre_queue_mode_name(q->mode), (unsigned long long)q->pushed,
              (unsigned long long)q->high_water,
              (unsigned long long)vyre_queue_get_plan(s->queue)
                  ->drain.queue.queue_bytes,
              (unsigned long long)q->plan_bytes);
  if (q->dropped_keys > 0) {
    sink_format(out, "%llu keys were not below the number of keys\n",
                (unsigned long long)q->dropped_keys);
  }
  if (s->flags.time) {
    sink_format(out, "ran %.3f ms, %llu submission%s, %llu wait%s\n",
                (double)q->wall_ns / 1e6, (unsigned long long)q->submissions,
                q->submissions == 1 ? "" : "s", (unsigned long long)q->waits,
                q->waits == 1 ? "" : "s");
  }
}

/* Draws bars of items, and the places if they are not far above. */
static void draw_windows(const run_state *s, svg_plot *plot) {
  const double item = s->clauses.item_bytes;
  const double places = (double)vyre_queue_get_plan(s->queue)->capacity * item;
  for (size_t i = 0; i < s->held_count; i++) {
    if ((double)s->held[i] * item > plot->max_bytes)
      plot->max_bytes = (double)s->held[i] * item;
  }
  const bool has_places = places <= 4 * plot->max_bytes;
  if (has_places && places > plot->max_bytes) plot->max_bytes = places;
  plot->max_bytes *= 1.1;
  svg_axes(plot);
  for (size_t i = 0; i < s->held_count; i++) {
    const double top = svg_y(plot, (double)s->held[i] * item);
    const double left = svg_x(plot, (double)i + 0.1);
    const double width = svg_x(plot, (double)i + 0.9) - left;
    svg_rect(plot->out, left, top, width, svg_y(plot, 0) - top, "frontier");
    if (s->held_count > 20) continue;
    svg_text(plot->out, left + width / 2, top - 6, "middle ink halo", "%llu",
             (unsigned long long)s->held[i]);
  }
  if (!has_places) return;
  char text[64];
  (void)snprintf(text, sizeof text, "%llu places",
                 (unsigned long long)vyre_queue_get_plan(s->queue)->capacity);
  svg_line(plot, places, "budget", text);
}

void run_draw_queue(const run_state *s, sink *out) {
  const vyre_queue_stats *q = &s->queue_stats;
  const bool is_newest = q->mode == VYRE_QUEUE_MODE_NEWEST;
  char title[160], subtitle[200];
  svg_plot plot = {.out = out,
                   .top = SVG_HEADING,
                   .groups = (double)s->held_count,
                   .unit = is_newest ? "steps of the newest items" : "windows"};
  (void)snprintf(title, sizeof title, "%.80s: %llu items in %llu windows",
                 vyre_program_name(s->program), (unsigned long long)q->items,
                 (unsigned long long)q->windows);
  (void)snprintf(subtitle, sizeof subtitle,
                 "items that the queue holds after each %s, at most %llu%s",
                 is_newest ? "step" : "window",
                 (unsigned long long)q->high_water,
                 s->held_count > RUN_MAX_DRAWN ? "; the first 64" : "");
  svg_begin(out, 1);
  svg_heading(out, 0, title, subtitle);
  draw_windows(s, &plot);
  svg_end(out);
}

void run_put_queue(const run_state *s, json_out *json) {
  const vyre_queue_stats *q = &s->queue_stats;
  char hash[24];
  (void)snprintf(hash, sizeof hash, "%016llx",
                 (unsigned long long)q->order_hash);
  json_open(json, "queue", '{');
  json_text(json, "mode", vyre_queue_mode_name(q->mode));
  json_u64(json, "items", q->items);
  json_u64(json, "pushed", q->pushed);
  json_u64(json, "dropped_keys", q->dropped_keys);
  json_u64(json, "windows", q->windows);
  json_u64(json, "narrow_windows", q->narrow_windows);
  json_u64(json, "pull_windows", q->pull_windows);
  json_u64(json, "high_water", q->high_water);
  json_u64(json, "memory_bytes", q->plan_bytes);
  json_u64(json, "submissions", q->submissions);
  json_u64(json, "waits", q->waits);
  json_text(json, "order_hash", hash);
  json_close(json, '}');
}
