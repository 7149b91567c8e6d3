/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Draws groups over time: the bytes that each group holds, against the
 * budget. */
#include <stdio.h>

#include "plan/svg.h"

enum { MAX_BARS = 472 }; /* two pixels each */

typedef struct group_bytes {
  uint64_t frontier, scratch, output; /* scratch of the fused group */
  size_t waves;
} group_bytes;

static group_bytes sum_group(const vyre_frontier_desc *desc,
                             const vyre_barrier_plan *plan, size_t group) {
  group_bytes sum = {0};
  for (uint32_t i = plan->group_offsets[group];
       i < plan->group_offsets[group + 1]; i++) {
    const vyre_frontier_wave *wave = &desc->waves[plan->waves[i]];
    sum.frontier += wave->frontier_bytes;
    sum.scratch += wave->scratch_bytes * VYRE_FUSED_SCRATCH_FACTOR;
    sum.output += wave->output_bytes;
    sum.waves++;
  }
  return sum;
}

static uint64_t total(const group_bytes *sum) {
  return sum->frontier + sum->scratch + sum->output;
}

/* Returns the largest group from @p first to before @p end. */
static group_bytes largest(const vyre_frontier_desc *desc,
                           const vyre_barrier_plan *plan, size_t first,
                           size_t end) {
  group_bytes best = sum_group(desc, plan, first);
  for (size_t g = first + 1; g < end; g++) {
    group_bytes sum = sum_group(desc, plan, g);
    if (total(&sum) > total(&best)) best = sum;
  }
  return best;
}

static void draw_bar(const svg_plot *plot, double left, double width,
                     const group_bytes *sum, uint64_t resident) {
  const struct {
    const char *style;
    uint64_t bytes;
  } parts[] = {{"resident", resident},
               {"frontier", sum->frontier},
               {"scratch", sum->scratch},
               {"output", sum->output}};
  double below = 0;
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    double bytes = (double)parts[i].bytes;
    double upper = svg_y(plot, below + bytes);
    if (parts[i].bytes) {
      svg_rect(plot->out, left, upper, width, svg_y(plot, below) - upper,
               parts[i].style);
    }
    below += bytes;
  }
  if (width < 56) return;
  char size[SVG_SIZE_TEXT], group[SVG_SIZE_TEXT];
  double middle = left + width / 2, above = svg_y(plot, below);
  svg_text(plot->out, middle, above - 20, "middle ink halo", "%s",
           svg_size(resident + total(sum), size));
  bool is_wide = width > 96; /* the second label needs about that much */
  svg_text(plot->out, middle, above - 6, "tick middle halo", "%s%s%zu %s",
           is_wide ? svg_size(total(sum), group) : "", is_wide ? ", " : "",
           sum->waves, sum->waves == 1 ? "wave" : "waves");
}

static void draw_bars(const svg_plot *plot, const vyre_frontier_desc *desc,
                      const vyre_barrier_plan *plan) {
  size_t groups = plan->group_count;
  size_t bars = groups < MAX_BARS ? groups : MAX_BARS;
  for (size_t bar = 0; bar < bars; bar++) {
    /* Groups per bar, computed without overflow. */
    size_t share = groups / bars, extra = groups % bars;
    size_t first = bar * share + (bar < extra ? bar : extra);
    size_t end = first + share + (bar < extra);
    group_bytes sum = largest(desc, plan, first, end);
    double left = svg_x(plot, (double)first), right = svg_x(plot, (double)end);
    double slot = right - left;
    double width = slot < 6 ? slot : slot * 0.84 > 104 ? 104 : slot * 0.84;
    draw_bar(plot, left + (slot - width) / 2, width, &sum,
             desc->resident_graph_bytes);
  }
}

static void draw_headings(sink *out, const vyre_frontier_desc *desc,
                          const vyre_frontier_plan *plan) {
  char title[160], subtitle[320];
  char peak[SVG_SIZE_TEXT], resident[SVG_SIZE_TEXT], budget[SVG_SIZE_TEXT];
  size_t groups = plan->barriers.group_count;
  snprintf(title, sizeof title, "%zu %s in %zu %s", desc->wave_count,
           desc->wave_count == 1 ? "wave" : "waves", groups,
           groups == 1 ? "group" : "groups");
  snprintf(subtitle, sizeof subtitle,
           "labels: graph and group together, then the group alone. Graph %s, "
           "largest group %s, budget %s; %zu %s; at least %zu %s needed",
           svg_size(desc->resident_graph_bytes, resident),
           svg_size(plan->peak_group_bytes, peak),
           svg_size(desc->budget_bytes, budget), plan->barriers.global_barriers,
           plan->barriers.global_barriers == 1 ? "barrier" : "barriers",
           plan->minimum_groups,
           plan->minimum_groups == 1 ? "group is" : "groups are");
  svg_heading(out, 0, title, subtitle);
  double x = svg_legend(out, 32, 80, "resident", "resident graph");
  x = svg_legend(out, x, 80, "frontier", "frontier");
  x = svg_legend(out, x, 80, "scratch", "scratch, four times");
  x = svg_legend(out, x, 80, "output", "output");
  if (groups > MAX_BARS) {
    svg_text(out, x, 80, "tick",
             "a bar stands for %zu or %zu groups and shows the largest",
             groups / MAX_BARS, groups / MAX_BARS + 1);
  }
}

/* A budget far above all bars is labelled, but does not set the scale. */
static void draw_budget(const svg_plot *plot, uint64_t budget) {
  char size[SVG_SIZE_TEXT], text[80];
  bool far = (double)budget > plot->max_bytes;
  snprintf(text, sizeof text, far ? "budget %s, far above" : "budget %s",
           svg_size(budget, size));
  svg_line(plot, far ? plot->max_bytes : (double)budget, "budget", text);
}

void svg_frontier(const vyre_frontier_desc *desc,
                  const vyre_frontier_plan *plan,
                  const vyre_placement_plan *placement,
                  const vyre_interval *intervals, sink *out) {
  size_t groups = plan->barriers.group_count;
  double used =
      (double)plan->peak_group_bytes + (double)desc->resident_graph_bytes;
  double budget = (double)desc->budget_bytes;
  svg_plot plot = {.out = out,
                   .top = SVG_HEADING + 16,
                   .max_bytes = budget > used * 3 ? used * 1.5 : budget,
                   .groups = groups ? (double)groups : 1};
  plot.max_bytes *= 1.12;
  if (plot.max_bytes < 1) plot.max_bytes = 1;
  svg_begin(out, placement ? 2 : 1);
  draw_headings(out, desc, plan);
  svg_axes(&plot);
  draw_bars(&plot, desc, &plan->barriers);
  draw_budget(&plot, desc->budget_bytes);
  if (placement) {
    plot.top = SVG_PANEL_HEIGHT + SVG_HEADING + 16;
    svg_placement(intervals, NULL, placement, &plot);
  }
  svg_end(out);
}
