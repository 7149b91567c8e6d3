/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Draws the roofline of `vyre bench`: operations per second over operations per
 * byte, both on logarithmic axes. */
#include "plan/svg.h"

#include <math.h>
#include <stdio.h>

#include "commands/bench/bench.h"

enum { TOP = SVG_HEADING + 16, BOTTOM = TOP + SVG_PLOT_HEIGHT };

/* Powers of two at the edges. */
typedef struct axes {
  double left, right, bottom, top;
} axes;

static double x_of(const axes *a, double intensity) {
  double part = (log2(intensity) - a->left) / (a->right - a->left);
  return SVG_LEFT + part * SVG_PLOT_WIDTH;
}

static double y_of(const axes *a, double rate) {
  double part = (log2(rate) - a->bottom) / (a->top - a->bottom);
  return BOTTOM - part * SVG_PLOT_HEIGHT;
}

/* The axes show the point and the corners of all roofs. */
static axes find_axes(const bench_state *s, double intensity) {
  const bench_limits *l = &s->limits;
  double fast = fmax(l->sized_bytes, fmax(l->cache_bytes, l->memory_bytes));
  double slow = fmin(l->sized_bytes, fmin(l->cache_bytes, l->memory_bytes));
  double low = fmin(intensity, l->operations / fast);
  double high = fmax(intensity, l->operations / slow);
  axes a = {.left = floor(log2(low)) - 2, .right = ceil(log2(high)) + 2};
  double corner = log2(slow) + a.left;
  a.bottom = floor(fmin(corner, log2(bench_operation_rate(s)))) - 1;
  a.top = ceil(log2(l->operations)) + 1;
  return a;
}

static void put_line(sink *out, const char *style, double x1, double y1,
                     double x2, double y2) {
  sink_format(out,
              "<line class=\"%s\" x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" "
              "y2=\"%.2f\"/>\n",
              style, x1, y1, x2, y2);
}

static void put_axes(const axes *a, sink *out) {
  double right = SVG_LEFT + SVG_PLOT_WIDTH;
  int step = a->top - a->bottom > 14 ? 2 : 1;
  for (int i = (int)a->bottom; i <= (int)a->top; i += step) {
    double y = y_of(a, exp2(i));
    put_line(out, i == (int)a->bottom ? "axis" : "grid", SVG_LEFT, y, right, y);
    svg_text(out, SVG_LEFT - 8, y + 4, "tick left", "%g", exp2(i));
  }
  for (int i = (int)a->left; i <= (int)a->right; i++) {
    double x = x_of(a, exp2(i));
    put_line(out, "grid", x, TOP, x, BOTTOM);
    svg_text(out, x, BOTTOM + 18, "tick middle", "%g", exp2(i));
  }
  svg_text(out, SVG_LEFT + SVG_PLOT_WIDTH / 2.0, BOTTOM + 38, "tick middle",
           "operations per byte");
  svg_text(out, SVG_LEFT - 8, TOP - 10, "tick left", "Gop/s");
}

/* Draws the slope of a bandwidth up to the flat roof, with its name. */
static void put_slope(const bench_state *s, const axes *a, double bandwidth,
                      const char *style, const char *name, sink *out) {
  double from = exp2(a->left), to = s->limits.operations / bandwidth;
  double lowest = exp2(a->bottom) / bandwidth;
  if (from < lowest) from = lowest;
  put_line(out, style, x_of(a, from), y_of(a, from * bandwidth), x_of(a, to),
           y_of(a, s->limits.operations));
  svg_text(out, x_of(a, from) + 20, y_of(a, from * bandwidth) + 8, "tick halo",
           "%s %.1f GB/s", name, bandwidth);
}

/* Returns true if the slope of @p bandwidth does not touch that of the
 * kernel's own size. */
static bool is_apart(const bench_state *s, double bandwidth) {
  return fabs(log2(bandwidth / s->limits.sized_bytes)) > 0.5;
}

static void put_point(const bench_state *s, const axes *a, double intensity,
                      sink *out) {
  double x = x_of(a, intensity), y = y_of(a, bench_operation_rate(s));
  sink_format(out, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"7\" class=\"h4\"/>\n",
              x, y);
  svg_text(out, x + 12, y + 18, "ink halo", "%.200s: %.2f Gop/s",
           vyre_program_name(s->run.program), bench_operation_rate(s));
}

static void put_headings(const bench_state *s, sink *out) {
  char title[400], subtitle[256];
  (void)snprintf(title, sizeof title, "%.255s on %s: %.3f ms, limited by %s",
                 vyre_program_name(s->run.program),
                 vyre_device_name(s->run.device), (double)s->median_ns / 1e6,
                 bench_limit_name(bench_limited_by(s)));
  (void)snprintf(subtitle, sizeof subtitle,
                 "%.0f %% of the bandwidth at this size, %.0f %% of the "
                 "arithmetic; limits measured on this machine",
                 100 * bench_memory_share(s), 100 * bench_compute_share(s));
  svg_heading(out, 0, title, subtitle);
}

void bench_svg(const bench_state *s, sink *out) {
  svg_begin(out, 1);
  put_headings(s, out);
  double intensity = bench_intensity(s);
  if (!s->counts.is_known || intensity <= 0) {
    svg_text(out, 32, TOP + 20, "tick", "no roofline: %s",
             s->counts.is_known ? "the kernel has no arithmetic"
                                : s->counts.why_not);
    svg_end(out);
    return;
  }
  axes a = find_axes(s, intensity);
  put_axes(&a, out);
  double peak = s->limits.operations, right = SVG_LEFT + SVG_PLOT_WIDTH;
  if (is_apart(s, s->limits.cache_bytes)) {
    put_slope(s, &a, s->limits.cache_bytes, "bound", "cache", out);
  }
  if (is_apart(s, s->limits.memory_bytes)) {
    put_slope(s, &a, s->limits.memory_bytes, "bound", "memory", out);
  }
  put_slope(s, &a, s->limits.sized_bytes, "placed", "at this size", out);
  put_line(out, "placed", x_of(&a, peak / s->limits.sized_bytes),
           y_of(&a, peak), right, y_of(&a, peak));
  svg_text(out, right - 4, y_of(&a, peak) - 6, "left ink halo", "%.1f Gop/s",
           peak);
  put_point(s, &a, intensity, out);
  svg_end(out);
}
