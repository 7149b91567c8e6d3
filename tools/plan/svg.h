/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Drawings of plans: one self-contained SVG each. */
#ifndef VYRE_TOOLS_PLAN_SVG_H
#define VYRE_TOOLS_PLAN_SVG_H

#include "vyre/frontier.h"
#include "vyre/placement.h"

#include "cli/sink.h"
#include "plan/read_plan.h"

/* Draws groups over time against the budget and, if @p placement is given,
 * the placement of the parts of the waves. */
void svg_frontier(const vyre_frontier_desc *desc,
                  const vyre_frontier_plan *plan,
                  const vyre_placement_plan *placement,
                  const vyre_interval *intervals, sink *out);

/* Draws the placement of intervals. */
void svg_place(const place_input *in, const vyre_placement_plan *plan,
               sink *out);

/* --- drawing helpers
 * -------------------------------------------------------- */

enum {
  SVG_WIDTH = 1080,
  SVG_LEFT = 96,
  SVG_PLOT_WIDTH = 944,
  SVG_PLOT_HEIGHT = 320,
  SVG_PANEL_HEIGHT = 468, /* headings, plot and axis */
  SVG_HEADING = 92,       /* from the top of a panel to its plot */
};

/* A plot: bytes upwards, groups to the right. */
typedef struct svg_plot {
  sink *out;
  double top;           /* of the plot area */
  double max_bytes;     /* bytes at the upper edge */
  uint64_t first_group; /* group at the left edge */
  double groups;        /* number of groups across */
  const char *unit;     /* below the axis; NULL: "group" */
} svg_plot;

enum { SVG_SIZE_TEXT = 24 };

/* Formats 1536 as "1.5 KiB". Returns @p buffer. */
const char *svg_size(uint64_t bytes, char buffer[SVG_SIZE_TEXT]);

void svg_begin(sink *out, int panels);
void svg_end(sink *out);
/* Returns the x position; @p group counts from the first one of the plot. */
double svg_x(const svg_plot *plot, double group);
double svg_y(const svg_plot *plot, double bytes);
void svg_rect(sink *out, double x, double y, double width, double height,
              const char *style);

/* Writes escaped text at a point; @p style is a CSS class. */
void svg_text(sink *out, double x, double y, const char *style,
              const char *format, ...) PRINTF_LIKE(5, 6);

/* Writes the headings of a panel; its plot starts SVG_HEADING below @p top. */
void svg_heading(sink *out, double top, const char *title,
                 const char *subtitle);

/* Writes a legend entry at @p x. Returns the x position of the next one. */
double svg_legend(sink *out, double x, double y, const char *style,
                  const char *text);

/* Writes the grid, sizes on the left and group numbers below. */
void svg_axes(const svg_plot *plot);

/* Writes a line across the plot at @p bytes, labelled above its right end. */
void svg_line(const svg_plot *plot, double bytes, const char *style,
              const char *text);

/* Writes the panel of a placement. Without @p ids the intervals are the
 * three parts of waves. */
void svg_placement(const vyre_interval *intervals, const interval_id *ids,
                   const vyre_placement_plan *plan, svg_plot *plot);

#endif
