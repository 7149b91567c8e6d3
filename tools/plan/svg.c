/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "plan/svg.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char style_sheet[] =
    "<style>\n"
    "text{font-family:'Inter','Segoe UI','Helvetica Neue',Arial,"
    "'DejaVu Sans',sans-serif;font-size:12px;fill:#3b4252}\n"
    ".title{font-size:19px;font-weight:600;fill:#1f2430}\n"
    ".subtitle{font-size:13px;fill:#5b6472}\n"
    ".tick{font-size:11.5px;fill:#6b7482}\n"
    ".left{text-anchor:end}\n"
    ".middle{text-anchor:middle}\n"
    ".inside{font-size:11px;fill:#fff;text-anchor:middle}\n"
    ".ink{fill:#1f2430}\n"
    ".grid{stroke:#e6e9ee;stroke-width:1}\n"
    ".axis{stroke:#aab2bf;stroke-width:1}\n"
    ".card{fill:#fff;stroke:#e1e5eb}\n"
    ".resident{fill:#c5ccd6}\n"
    ".frontier{fill:#3f6fb5}\n"
    ".scratch{fill:#e39b34}\n"
    ".output{fill:#4b9b69}\n"
    ".resident,.frontier,.scratch,.output{shape-rendering:crispEdges}\n"
    ".box{stroke:#fff;stroke-width:.8}\n"
    ".h0{fill:#3f6fb5}.h1{fill:#e39b34}.h2{fill:#4b9b69}.h3{fill:#a05fa8}\n"
    ".h4{fill:#c8553d}.h5{fill:#3a98a6}.h6{fill:#8a7a3c}.h7{fill:#6c6fc4}\n"
    ".budget{stroke:#c2302a;stroke-width:1.6;stroke-dasharray:7 4}\n"
    ".placed{stroke:#1f2430;stroke-width:1.6}\n"
    ".bound{stroke:#c2302a;stroke-width:1.6;stroke-dasharray:7 4}\n"
    ".halo{paint-order:stroke;stroke:#fff;stroke-width:4px;"
    "stroke-linejoin:round;font-weight:600}\n"
    "</style>\n";

const char *svg_size(uint64_t bytes, char buffer[SVG_SIZE_TEXT]) {
  static const char *const units[] = {"B",   "KiB", "MiB", "GiB",
                                      "TiB", "PiB", "EiB"};
  size_t unit = 0;
  double value = (double)bytes;
  while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
    value /= 1024;
    unit++;
  }
  int decimals = unit == 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  snprintf(buffer, SVG_SIZE_TEXT - 4, "%.*f", decimals, value);
  if (strchr(buffer, '.')) {
    size_t length = strlen(buffer);
    while (buffer[length - 1] == '0') buffer[--length] = '\0';
    if (buffer[length - 1] == '.') buffer[--length] = '\0';
  }
  size_t length = strlen(buffer);
  snprintf(buffer + length, SVG_SIZE_TEXT - length, " %s", units[unit]);
  return buffer;
}

void svg_begin(sink *out, int panels) {
  int height = panels * SVG_PANEL_HEIGHT + 16;
  sink_format(out,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
              "height=\"%d\" viewBox=\"0 0 %d %d\">\n",
              SVG_WIDTH, height, SVG_WIDTH, height);
  sink_text(out, style_sheet);
  sink_format(out,
              "<rect width=\"%d\" height=\"%d\" fill=\"#f5f6f8\"/>\n"
              "<rect class=\"card\" x=\"8.5\" y=\"8.5\" width=\"%d\" "
              "height=\"%d\" rx=\"8\"/>\n",
              SVG_WIDTH, height, SVG_WIDTH - 17, height - 17);
}

void svg_end(sink *out) {
  sink_text(out, "</svg>\n");
}

double svg_x(const svg_plot *plot, double group) {
  return SVG_LEFT + group / plot->groups * SVG_PLOT_WIDTH;
}

double svg_y(const svg_plot *plot, double bytes) {
  return plot->top + SVG_PLOT_HEIGHT * (1 - bytes / plot->max_bytes);
}

void svg_rect(sink *out, double x, double y, double width, double height,
              const char *style) {
  sink_format(out,
              "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
              "height=\"%.2f\"/>\n",
              style, x, y, width, height);
}

static void put_escaped(sink *out, const char *text) {
  for (; *text; text++) {
    switch (*text) {
      case '<':
        sink_text(out, "&lt;");
        break;
      case '>':
        sink_text(out, "&gt;");
        break;
      case '&':
        sink_text(out, "&amp;");
        break;
      default:
        sink_bytes(out, text, 1);
    }
  }
}

void svg_text(sink *out, double x, double y, const char *style,
              const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  sink_format(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", style, x, y);
  put_escaped(out, text);
  sink_text(out, "</text>\n");
}

void svg_heading(sink *out, double top, const char *title,
                 const char *subtitle) {
  svg_text(out, 32, top + 36, "title", "%s", title);
  svg_text(out, 32, top + 58, "subtitle", "%s", subtitle);
}

double svg_legend(sink *out, double x, double y, const char *style,
                  const char *text) {
  svg_rect(out, x, y - 10, 12, 12, style);
  svg_text(out, x + 18, y, "tick", "%s", text);
  return x + 36 + 6.4 * (double)strlen(text);
}

/* Returns the smallest power of two with at most six steps to the top. */
static double byte_step(double max) {
  double step = 1;
  while (step * 6 < max) step *= 2;
  return step;
}

/* Returns a step of 1, 2, 5, 10, 20 ... groups, so that labels do not touch. */
static double group_step(const svg_plot *plot) {
  double min = plot->groups / (SVG_PLOT_WIDTH / 64.0);
  double step = 1;
  for (int i = 0; step < min; i++) step *= i % 3 == 1 ? 2.5 : 2;
  return step;
}

void svg_axes(const svg_plot *plot) {
  sink *out = plot->out;
  double right = SVG_LEFT + SVG_PLOT_WIDTH, bottom = svg_y(plot, 0);
  char size[SVG_SIZE_TEXT];
  double step = byte_step(plot->max_bytes);
  for (int i = 0; i * step <= plot->max_bytes; i++) {
    double at = i * step;
    double y = svg_y(plot, at);
    sink_format(out,
                "<line class=\"%s\" x1=\"%d\" y1=\"%.2f\" x2=\"%.0f\" "
                "y2=\"%.2f\"/>\n",
                at > 0 ? "grid" : "axis", SVG_LEFT, y, right, y);
    svg_text(
        out, SVG_LEFT - 8, y + 4, "tick left", "%s",
        at < 18446744073709549568.0 ? svg_size((uint64_t)at, size) : "16 EiB");
  }
  step = group_step(plot);
  for (int i = 0; i * step < plot->groups; i++) {
    uint64_t group = plot->first_group + (uint64_t)(i * step);
    svg_text(out, svg_x(plot, i * step + 0.5), bottom + 18, "tick middle",
             "%llu", (unsigned long long)group);
  }
  svg_text(out, SVG_LEFT + SVG_PLOT_WIDTH / 2.0, bottom + 38, "tick middle",
           "%s", plot->unit ? plot->unit : "group");
}

void svg_line(const svg_plot *plot, double bytes, const char *style,
              const char *text) {
  double y = svg_y(plot, bytes);
  sink_format(plot->out,
              "<line class=\"%s\" x1=\"%d\" y1=\"%.2f\" x2=\"%d\" "
              "y2=\"%.2f\"/>\n",
              style, SVG_LEFT, y, SVG_LEFT + SVG_PLOT_WIDTH, y);
  svg_text(plot->out, SVG_LEFT + SVG_PLOT_WIDTH - 4, y - 6, "left ink halo",
           "%s", text);
}
