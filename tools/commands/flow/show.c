/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shows the results of `vyre flow`. */
#include <stdio.h>

#include "commands/flow/flow.h"
#include "io/element_text.h"
#include "plan/plan_json.h"
#include "plan/svg.h"

enum { VALUES_SHOWN = 8, LANE_MAX = 40 };

/* --- text --------------------------------------------------------------------*/

static void tell_output(const flow_state *s, size_t index, sink *out) {
  const flow_resource *r = &s->flow.resources[index];
  size_t size = element_bytes(r->element);
  sink_format(out, "%s:", r->name);
  for (uint64_t i = 0; i < r->count && i < VALUES_SHOWN; i++) {
    sink_text(out, " ");
    element_format(r->element, s->outputs[index] + i * size, out);
  }
  if (r->count > VALUES_SHOWN)
    sink_format(out, " ... (%llu more)",
                (unsigned long long)(r->count - VALUES_SHOWN));
  sink_text(out, "\n");
}

static void tell_pair(sink *out, const char *name, uint64_t value,
                      const char *planned_name, uint64_t planned) {
  sink_format(out, "  %-16s %12llu   (%s %llu)\n", name,
              (unsigned long long)value, planned_name,
              (unsigned long long)planned);
}

void flow_tell(const flow_state *s, const flow_job *job, sink *out) {
  const vyre_wave_plan *plan = job->plan;
  const vyre_wave_result *result = &s->outcomes[0].result;
  const vyre_barrier_plan *groups = &plan->frontier.barriers;
  sink_format(out, "%zu waves in %zu groups on %s\n", s->flow.wave_count,
              groups->group_count, s->outcomes[0].name);
  tell_pair(out, "allocated_bytes", result->allocated_bytes, "placed_bytes",
            plan->placement.placed_bytes);
  tell_pair(out, "readback_bytes", result->readback_bytes,
            "amortized_readback_bytes",
            plan->frontier.amortized_readback_bytes);
  tell_pair(out, "submissions", result->submissions, "planned",
            plan->submissions);
  if (s->flow.repeats) {
    sink_format(out, "  %-16s %12llu%s\n", "iterations",
                (unsigned long long)result->iterations,
                result->reached_max ? "   (the maximum)" : "");
  } else {
    tell_pair(out, "barriers", result->barriers, "planned", plan->barriers);
  }
  for (size_t i = 0; i < s->flow.resource_count; i++) {
    if (s->flow.resources[i].is_output) tell_output(s, i, out);
  }
  for (size_t i = 0; i < s->outcome_count; i++) {
    const flow_outcome *o = &s->outcomes[i];
    sink_format(out, "%-12s hash %016llx", o->name,
                (unsigned long long)o->hash);
    if (!s->has_no_time)
      sink_format(out, "   %.3f ms", (double)o->time_ns / 1e6);
    sink_text(out, "\n");
  }
  if (s->differs) sink_format(out, "DIFFERENT: %s\n", s->differs);
}

/* --- JSON --------------------------------------------------------------------*/

static void plan_fields(const flow_state *s, const flow_job *job,
                        json_out *json) {
  const vyre_wave_plan *plan = job->plan;
  json_u64(json, "waves", s->flow.wave_count);
  json_u64(json, "groups", plan->frontier.barriers.group_count);
  json_u64(json, "barriers", plan->barriers);
  json_u64(json, "submissions", plan->submissions);
  json_u64(json, "placed_bytes", plan->placement.placed_bytes);
  json_u64(json, "lower_bound_bytes", plan->placement.lower_bound_bytes);
  json_u64(json, "separate_bytes", plan->separate_bytes);
  json_u64(json, "resident_bytes", plan->resident_bytes);
  json_u64(json, "upload_bytes", plan->upload_bytes);
  json_u64(json, "readback_bytes", plan->readback_bytes);
  json_u64(json, "amortized_readback_bytes",
           plan->frontier.amortized_readback_bytes);
  json_u64(json, "threads", plan->threads);
}

void flow_tell_json(const flow_state *s, const flow_job *job, sink *out) {
  json_out json = {.out = out};
  const vyre_wave_result *result = &s->outcomes[0].result;
  json_open(&json, NULL, '{');
  json_bool(&json, "ok", !s->differs);
  json_open(&json, "plan", '{');
  plan_fields(s, job, &json);
  json_close(&json, '}');
  json_open(&json, "run", '{');
  json_u64(&json, "allocated_bytes", result->allocated_bytes);
  json_u64(&json, "readback_bytes", result->readback_bytes);
  json_u64(&json, "submissions", result->submissions);
  json_u64(&json, "barriers", result->barriers);
  json_u64(&json, "waits", result->waits);
  json_u64(&json, "iterations", result->iterations);
  json_bool(&json, "reached_max", result->reached_max);
  json_close(&json, '}');
  json_open(&json, "backends", '[');
  for (size_t i = 0; i < s->outcome_count; i++) {
    char hash[20];
    (void)snprintf(hash, sizeof hash, "%016llx",
                   (unsigned long long)s->outcomes[i].hash);
    json_open(&json, NULL, '{');
    json_text(&json, "name", s->outcomes[i].name);
    json_text(&json, "hash", hash);
    if (!s->has_no_time) json_u64(&json, "time_ns", s->outcomes[i].time_ns);
    json_close(&json, '}');
  }
  json_close(&json, ']');
  json_close(&json, '}');
  sink_text(out, "\n");
}

void flow_plan_json(const flow_state *s, const flow_job *job, sink *out) {
  const vyre_wave_plan *plan = job->plan;
  const vyre_barrier_plan *groups = &plan->frontier.barriers;
  json_out json = json_begin(out);
  plan_fields(s, job, &json);
  json_open(&json, "order", '[');
  for (size_t g = 0; g < groups->group_count; g++) {
    json_open(&json, NULL, '[');
    for (uint32_t i = groups->group_offsets[g];
         i < groups->group_offsets[g + 1]; i++) {
      json_text(&json, NULL, s->flow.waves[groups->waves[i]].label);
    }
    json_close(&json, ']');
  }
  json_close(&json, ']');
  json_open(&json, "resources", '[');
  for (size_t i = 0; i < s->flow.resource_count; i++) {
    json_open(&json, NULL, '{');
    json_text(&json, "name", s->flow.resources[i].name);
    json_u64(&json, "offset", plan->offsets[i]);
    json_u64(&json, "bytes", s->flow.resources[i].size);
    json_u64(&json, "first_group", plan->intervals[i].first_group);
    json_u64(&json, "last_group", plan->intervals[i].last_group);
    json_close(&json, '}');
  }
  json_close(&json, ']');
  json_open(&json, "parts", '[');
  size_t parts = plan->parts ? plan->part_offsets[groups->group_count] : 0;
  for (size_t i = 0; i < parts; i++) {
    json_open(&json, NULL, '{');
    json_u64(&json, "wave", plan->parts[i].wave);
    json_u64(&json, "thread", plan->parts[i].thread);
    json_u64(&json, "first_group", plan->parts[i].first_group);
    json_u64(&json, "group_count", plan->parts[i].group_count);
    json_close(&json, '}');
  }
  json_close(&json, ']');
  json_end(&json);
}

/* --- drawing -----------------------------------------------------------------*/

static const char *const hues[] = {"box h0", "box h1", "box h2", "box h3",
                                   "box h4", "box h5", "box h6", "box h7"};

static void draw_wave(const flow_state *s, const svg_plot *plot, uint32_t wave,
                      double group, double top, double height) {
  double left = svg_x(plot, group) + 2,
         width = svg_x(plot, group + 1) - left - 2;
  svg_rect(plot->out, left, top, width, height, hues[wave % 8]);
  if (height < 13 || width < 40) return;
  svg_text(plot->out, left + width / 2, top + height / 2 + 4, "inside", "%.*s",
           (int)(width / 7), s->flow.waves[wave].label);
}

/* Draws the parts of a group, thread above thread. Returns false if the plan has
 * none. */
static bool draw_parts(const flow_state *s, const vyre_wave_plan *plan,
                       const svg_plot *plot, size_t group) {
  if (!plan->parts) return false;
  double lane = (double)SVG_PLOT_HEIGHT / plan->threads;
  uint32_t first = plan->part_offsets[group],
           end = plan->part_offsets[group + 1];
  for (uint32_t i = first; i < end;) {
    uint32_t thread = plan->parts[i].thread, last = i;
    while (last < end && plan->parts[last].thread == thread) last++;
    double height = (lane - 6) / (last - i);
    for (uint32_t k = i; k < last; k++) {
      draw_wave(s, plot, plan->parts[k].wave, (double)group,
                plot->top + lane * thread + 3 + height * (k - i),
                height > 3 ? height - 1 : height);
    }
    i = last;
  }
  return true;
}

static void draw_groups(const flow_state *s, const vyre_wave_plan *plan,
                        svg_plot *plot) {
  const vyre_barrier_plan *b = &plan->frontier.barriers;
  char title[128], subtitle[160];
  (void)snprintf(title, sizeof title,
                 "Waves: %zu in %zu groups, %llu barriers, 1 submission",
                 s->flow.wave_count, b->group_count,
                 (unsigned long long)plan->barriers);
  if (plan->parts) {
    (void)snprintf(subtitle, sizeof subtitle,
                   "%u threads, thread 0 at the top; a wave in two rows is "
                   "split between threads",
                   plan->threads);
  } else {
    (void)snprintf(subtitle, sizeof subtitle,
                   "the waves of a column run at the same time");
  }
  svg_heading(plot->out, plot->top - SVG_HEADING - 16, title, subtitle);
  for (size_t g = 0; g < b->group_count; g++) {
    double x = svg_x(plot, (double)g);
    sink_format(plot->out,
                "<line class=\"grid\" x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" "
                "y2=\"%.2f\"/>\n",
                x, plot->top, x, plot->top + SVG_PLOT_HEIGHT);
    if (b->group_count <= LANE_MAX)
      svg_text(plot->out, svg_x(plot, (double)g + 0.5),
               plot->top + SVG_PLOT_HEIGHT + 18, "tick middle", "group %zu", g);
    if (draw_parts(s, plan, plot, g)) continue;
    uint32_t first = b->group_offsets[g], end = b->group_offsets[g + 1];
    double height = (double)(SVG_PLOT_HEIGHT - 6) / (end - first);
    for (uint32_t i = first; i < end; i++) {
      draw_wave(s, plot, b->waves[i], (double)g,
                plot->top + 3 + height * (i - first),
                height > 3 ? height - 1 : height);
    }
  }
}

void flow_draw(flow_state *s, const flow_job *job, sink *out) {
  const vyre_wave_plan *plan = job->plan;
  size_t count = s->flow.resource_count;
  interval_id *ids = vyre_arena_alloc(&s->arena, (count + 1) * sizeof *ids, 8);
  if (!ids) {
    out->failed = true;
    return;
  }
  for (size_t i = 0; i < count; i++) {
    const char *name = s->flow.resources[i].name;
    size_t length = 0;
    while (name[length]) length++;
    ids[i] = (interval_id){.text = name, .length = length};
  }
  svg_plot plot = {.out = out,
                   .top = SVG_HEADING + 16,
                   .groups = (double)plan->frontier.barriers.group_count};
  svg_begin(out, 2);
  draw_groups(s, plan, &plot);
  plot.top += SVG_PANEL_HEIGHT;
  svg_placement(plan->intervals, ids, &plan->placement, &plot);
  svg_end(out);
}
