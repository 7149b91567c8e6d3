/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Draws a placement: every interval is a box from its first to its last
 * group at its offset. */
#include <stdio.h>

#include "cli/text.h"
#include "plan/svg.h"

enum { MAX_BOXES = 5000 };

/* Selects the boxes to draw if there are too many: those with an area above
 * `above`, and the first `ties` of exactly that area. Area favours boxes
 * that are large or long-lived. */
typedef struct box_choice {
  uint64_t above;
  size_t ties;
} box_choice;

/* Returns bytes times groups, saturated. */
static uint64_t area_of(const vyre_interval *interval) {
  uint64_t groups = interval->last_group - interval->first_group;
  if (groups < UINT64_MAX) groups++;
  if (interval->size > UINT64_MAX / groups) return UINT64_MAX;
  return interval->size * groups;
}

static size_t count_above(const vyre_interval *intervals, size_t count,
                          uint64_t area) {
  size_t found = 0;
  for (size_t i = 0; i < count; i++) found += area_of(&intervals[i]) > area;
  return found;
}

static box_choice choose_boxes(const vyre_interval *intervals, size_t count) {
  uint64_t low = 0, high = UINT64_MAX;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (count_above(intervals, count, middle) <= MAX_BOXES) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  size_t drawn = count_above(intervals, count, low);
  return (box_choice){low, low == 0 ? 0 : MAX_BOXES - drawn};
}

/* A border would hide small boxes. */
static const char *box_style(size_t index, bool waves, bool small) {
  static const char *const parts[] = {"box frontier", "box scratch",
                                      "box output"};
  static const char *const hues[] = {"box h0", "box h1", "box h2", "box h3",
                                     "box h4", "box h5", "box h6", "box h7"};
  const char *style = waves ? parts[index % 3] : hues[index % 8];
  return small ? style + sizeof "box" : style;
}

/* Writes a name of at most @p room pixels. */
static void name_box(size_t index, const interval_id *ids, double space,
                     char name[64]) {
  size_t letters = space / 6.6 < 60 ? (size_t)(space / 6.6) : 60;
  if (!ids) {
    snprintf(name, 64, "%s %zu", vyre_wave_part_name(index % VYRE_PART_COUNT),
             index / VYRE_PART_COUNT);
  } else if (ids[index].text) {
    show_into(name, letters < 5 ? 5 : letters, ids[index].text,
              ids[index].length);
  } else {
    snprintf(name, 64, "%zu", index);
  }
}

static void draw_box(const svg_plot *plot, const vyre_interval *interval,
                     uint64_t offset, size_t index, const interval_id *ids) {
  uint64_t origin = plot->first_group;
  double left = svg_x(plot, (double)(interval->first_group - origin));
  double right = svg_x(plot, (double)(interval->last_group - origin) + 1);
  double upper = svg_y(plot, (double)offset + (double)interval->size);
  double height = svg_y(plot, (double)offset) - upper;
  double width = right - left;
  svg_rect(plot->out, left, upper, width, height,
           box_style(index, !ids, height < 4 || width < 4));
  if (height < 14 || width < (ids ? 44 : 88)) return;
  char size[SVG_SIZE_TEXT], name[64];
  bool roomy = width >= 150;
  name_box(index, ids, roomy ? width - 70 : width, name);
  svg_text(plot->out, (left + right) / 2, upper + height / 2 + 4, "inside",
           "%s%s%s", name, roomy ? " \xC2\xB7 " : "",
           roomy ? svg_size(interval->size, size) : "");
}

static size_t draw_boxes(const svg_plot *plot, const vyre_interval *intervals,
                         const interval_id *ids,
                         const vyre_placement_plan *plan) {
  box_choice choice = choose_boxes(intervals, plan->interval_count);
  size_t drawn = 0;
  for (size_t i = 0; i < plan->interval_count; i++) {
    uint64_t area = area_of(&intervals[i]);
    if (area == choice.above && choice.ties > 0) {
      choice.ties--;
    } else if (area <= choice.above) {
      continue;
    }
    draw_box(plot, &intervals[i], plan->offsets[i], i, ids);
    drawn++;
  }
  return drawn;
}

static void draw_levels(const svg_plot *plot, const vyre_placement_plan *plan) {
  char placed[SVG_SIZE_TEXT], bound[SVG_SIZE_TEXT], text[96];
  svg_size(plan->placed_bytes, placed);
  svg_size(plan->lower_bound_bytes, bound);
  double top = (double)plan->placed_bytes;
  if (plan->gap_bytes == 0) {
    snprintf(text, sizeof text, "placed = lower bound: %s", placed);
    svg_line(plot, top, "placed", text);
    return;
  }
  double low = (double)plan->lower_bound_bytes;
  snprintf(text, sizeof text, "placed %s", placed);
  svg_line(plot, top, "placed", text);
  snprintf(text, sizeof text, "lower bound %s", bound);
  /* Labels of lines that lie close go to opposite sides. */
  bool close = svg_y(plot, low) - svg_y(plot, top) < 18;
  sink_format(plot->out,
              "<line class=\"bound\" x1=\"%d\" y1=\"%.2f\" x2=\"%d\" "
              "y2=\"%.2f\"/>\n",
              SVG_LEFT, svg_y(plot, low), SVG_LEFT + SVG_PLOT_WIDTH,
              svg_y(plot, low));
  svg_text(plot->out, SVG_LEFT + SVG_PLOT_WIDTH - 4,
           svg_y(plot, low) + (close ? 15 : -6), "left ink halo", "%s", text);
}

static void draw_headings(const svg_plot *plot, const vyre_placement_plan *plan,
                          bool waves) {
  sink *out = plot->out;
  char title[128], subtitle[256], placed[SVG_SIZE_TEXT], gap[SVG_SIZE_TEXT];
  snprintf(title, sizeof title, "Placement: %zu %s in one allocation of %s",
           plan->interval_count,
           plan->interval_count == 1 ? "interval" : "intervals",
           svg_size(plan->placed_bytes, placed));
  snprintf(
      subtitle, sizeof subtitle, "gap to the lower bound %s; %s; found by %s",
      svg_size(plan->gap_bytes, gap),
      plan->is_optimal ? "no placement is smaller" : "a smaller one may exist",
      vyre_placement_method_name(plan->method));
  svg_heading(out, plot->top - SVG_HEADING - 16, title, subtitle);
  if (!waves) return;
  double y = plot->top - 28;
  double x = svg_legend(out, 32, y, "frontier", "frontier");
  x = svg_legend(out, x, y, "scratch", "scratch, four times");
  svg_legend(out, x, y, "output", "output");
}

void svg_placement(const vyre_interval *intervals, const interval_id *ids,
                   const vyre_placement_plan *plan, svg_plot *plot) {
  plot->max_bytes = (double)plan->placed_bytes * 1.12;
  if (plot->max_bytes < 1) plot->max_bytes = 1;
  draw_headings(plot, plan, !ids);
  svg_axes(plot);
  size_t drawn = draw_boxes(plot, intervals, ids, plan);
  size_t there = count_above(intervals, plan->interval_count, 0);
  draw_levels(plot, plan);
  if (drawn < there) {
    svg_text(plot->out, ids ? 32 : 420, plot->top - 28, "tick",
             "drawn: the %zu of %zu intervals that fill most", drawn, there);
  }
}

void svg_place(const place_input *in, const vyre_placement_plan *plan,
               sink *out) {
  uint64_t first = UINT64_MAX, last = 0;
  for (size_t i = 0; i < in->count; i++) {
    if (in->intervals[i].first_group < first) {
      first = in->intervals[i].first_group;
    }
    if (in->intervals[i].last_group > last) last = in->intervals[i].last_group;
  }
  if (in->count == 0) first = 0;
  static const interval_id none[1];
  svg_plot plot = {.out = out,
                   .top = SVG_HEADING + 16,
                   .first_group = first,
                   .groups = (double)(last - first) + 1};
  svg_begin(out, 1);
  svg_placement(in->intervals, in->ids ? in->ids : none, plan, &plot);
  svg_end(out);
}
