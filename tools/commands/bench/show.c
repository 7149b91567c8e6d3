/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints the report of `vyre bench`: text with a roofline, or JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "commands/bench/bench.h"
#include "plan/plan_json.h"
#include "plan/svg.h"

/* --- text ------------------------------------------------------------------*/

static void put_row(sink *out, const char *name) {
  sink_format(out, "  %-12s ", name);
}

static void put_time(sink *out, double ns) {
  if (ns < 1e3) {
    sink_format(out, "%.0f ns", ns);
  } else if (ns < 1e6) {
    sink_format(out, "%.2f us", ns / 1e3);
  } else {
    sink_format(out, "%.3f ms", ns / 1e6);
  }
}

/* Writes 1234567 as "1.235 M". */
static void put_count(sink *out, double value) {
  static const char *const units[] = {"", " k", " M", " G", " T", " P"};
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < sizeof units / sizeof units[0]) {
    value /= 1000;
    unit++;
  }
  sink_format(out, "%.*f%s", unit == 0 ? 0 : 3, value, units[unit]);
}

static void put_size(sink *out, double bytes) {
  char text[SVG_SIZE_TEXT];
  sink_text(out, svg_size((uint64_t)bytes, text));
}

static void put_extent(const uint32_t extent[3], sink *out) {
  int last = extent[2] > 1 ? 2 : extent[1] > 1 ? 1 : 0;
  for (int i = 0; i <= last; i++) {
    sink_format(out, "%s%u", i ? "," : "", (unsigned)extent[i]);
  }
}

static void tell_kernel(const bench_state *s, sink *out) {
  uint64_t extent[3];
  run_extent(&s->run, extent);
  uint64_t invocations = extent[0] * extent[1] * extent[2];
  sink_format(out, "%.255s on %s: grid ", vyre_program_name(s->run.program),
              vyre_device_name(s->run.device));
  put_extent(s->run.grid, out);
  sink_text(out, ", workgroup ");
  put_extent(vyre_pipeline_workgroup(s->run.pipeline), out);
  sink_format(out, ", %llu invocations\n", (unsigned long long)invocations);
  if (s->made_up.length > 0) {
    put_row(out, "made up");
    sink_bytes(out, s->made_up.data, s->made_up.length);
    sink_text(out, "\n");
  }
}

static void tell_counts(const bench_state *s, sink *out) {
  const bench_counts *c = &s->counts;
  put_row(out, "operations");
  if (!c->is_known) {
    sink_format(out, "not counted: %s\n", c->why_not);
    return;
  }
  if (c->is_lower_bound) sink_text(out, "at least ");
  put_count(out, c->operations);
  sink_format(out, ": %.2f Gop/s, %.3g a byte\n", bench_operation_rate(s),
              bench_intensity(s));
  put_row(out, "accesses");
  put_size(out, c->bytes);
  sink_format(out, ": %.2f GB/s\n", c->bytes / (double)s->median_ns);
  put_row(out, "divergence");
  sink_format(out, "%.2f: operations of vectors over those of invocations\n",
              c->divergence);
}

static void tell_work(const bench_state *s, sink *out) {
  put_row(out, "time");
  put_time(out, (double)s->median_ns);
  sink_format(out, ", median of %llu run%s; best ",
              (unsigned long long)s->run_count, s->run_count == 1 ? "" : "s");
  put_time(out, (double)s->best_ns);
  sink_text(out, "\n");
  put_row(out, "data");
  put_size(out, bench_traffic(s));
  sink_format(out, ": %.2f GB/s\n", bench_byte_rate(s));
  tell_counts(s, out);
  if (s->resources.has_width) {
    put_row(out, "width");
    sink_format(out, "%u invocation%s\n", (unsigned)s->resources.width,
                s->resources.width == 1 ? "" : "s");
  }
  if (s->resources.has_code) {
    put_row(out, "tier");
    sink_text(out,
              s->resources.is_baseline
                  ? "baseline: the kernel is too large for optimised code\n"
                  : "optimised\n");
  }
}

static void tell_limits(const bench_state *s, sink *out) {
  const bench_limits *l = &s->limits;
  sink_text(out, "machine\n");
  put_row(out, "memory");
  sink_format(out, "%.2f GB/s; in cache %.2f GB/s; at this size %.2f GB/s\n",
              l->memory_bytes, l->cache_bytes, l->sized_bytes);
  put_row(out, "arithmetic");
  sink_format(out, "%.2f Gop/s\n", l->operations);
  put_row(out, "launch");
  put_time(out, l->launch_ns);
  sink_text(out, "\n");
}

static void tell_verdict(const bench_state *s, sink *out) {
  static const char *const advice[] = {
      "the data cannot be moved much faster; move less of it",
      "the arithmetic units are busy; compute less",
      "the dispatch is short; give it more work, or use a batch or recording",
      "invocations of one vector do different amounts of work; sort or balance "
      "it",
      "neither memory nor arithmetic: look for gathers, barriers, atomics and "
      "chains of dependent operations"};
  bench_limit limit = bench_limited_by(s);
  sink_format(out, "share: %.0f %% of memory, ", 100 * bench_memory_share(s));
  if (s->counts.is_known) {
    sink_format(out, "%.0f %% of arithmetic, ", 100 * bench_compute_share(s));
  }
  sink_format(out, "%.0f %% is launch\n", 100 * bench_launch_share(s));
  sink_format(out, "limited by %s: %s\n", bench_limit_name(limit),
              advice[limit]);
}

void bench_tell(const bench_state *s, sink *out) {
  tell_kernel(s, out);
  tell_work(s, out);
  tell_limits(s, out);
  tell_verdict(s, out);
  if (s->counts.is_known && bench_intensity(s) > 0) bench_plot(s, out);
}

/* --- the plot --------------------------------------------------------------*/

enum { COLUMNS = 60, ROWS = 10 };

/* Logarithms of the edges of the plot, to base 2. */
typedef struct frame {
  double left, right, bottom, top;
} frame;

static frame find_frame(const bench_state *s) {
  double ridge = s->limits.operations / s->limits.sized_bytes;
  double at = bench_intensity(s), rate = bench_operation_rate(s);
  double low = at < ridge ? at : ridge, high = at < ridge ? ridge : at;
  frame f = {.left = floor(log2(low)) - 2,
             .right = ceil(log2(high)) + 2,
             .top = ceil(log2(s->limits.operations)) + 0.5};
  double corner = log2(s->limits.sized_bytes) + f.left;
  f.bottom = floor(corner < log2(rate) ? corner : log2(rate)) - 0.5;
  return f;
}

static double roof_at(const bench_state *s, double log_intensity) {
  double slope = log2(s->limits.sized_bytes) + log_intensity;
  double flat = log2(s->limits.operations);
  return slope < flat ? slope : flat;
}

static int row_of(const frame *f, double value) {
  double part = (value - f->bottom) / (f->top - f->bottom);
  int row = (int)((1 - part) * ROWS);
  return row < 0 ? 0 : row >= ROWS ? ROWS - 1 : row;
}

void bench_plot(const bench_state *s, sink *out) {
  char cells[ROWS][COLUMNS + 1];
  frame f = find_frame(s);
  memset(cells, ' ', sizeof cells);
  for (int x = 0; x < COLUMNS; x++) {
    double at = f.left + (f.right - f.left) * (x + 0.5) / COLUMNS;
    double roof = roof_at(s, at);
    bool is_flat = roof >= log2(s->limits.operations);
    cells[row_of(&f, roof)][x] = is_flat ? '-' : '/';
  }
  double part = (log2(bench_intensity(s)) - f.left) / (f.right - f.left);
  int x = (int)(part * COLUMNS);
  cells[row_of(&f, log2(bench_operation_rate(s)))][x < 0          ? 0
                                                   : x >= COLUMNS ? COLUMNS - 1
                                                                  : x] = 'o';
  sink_text(out, "\n     Gop/s\n");
  for (int row = 0; row < ROWS; row++) {
    int length = COLUMNS;
    while (length > 0 && cells[row][length - 1] == ' ') length--;
    double value = f.top - (f.top - f.bottom) * (row + 0.5) / ROWS;
    sink_format(out, "%10.3g |%.*s\n", exp2(value), length, cells[row]);
  }
  sink_text(out, "           +");
  for (int i = 0; i < COLUMNS; i++) sink_text(out, "-");
  sink_format(out, "\n            %-*.3g%.3g op/byte\n", COLUMNS - 10,
              exp2(f.left), exp2(f.right));
}

/* --- JSON ------------------------------------------------------------------*/

static void json_number(json_out *json, const char *key, double value) {
  char text[40];
  int length = snprintf(text, sizeof text, "%.6g", value);
  json_raw(json, key, text, (size_t)length);
}

static void json_extent(json_out *json, const char *key,
                        const uint32_t extent[3]) {
  json_open(json, key, '[');
  for (int axis = 0; axis < 3; axis++) json_u64(json, NULL, extent[axis]);
  json_close(json, ']');
}

static void json_counts(json_out *json, const bench_state *s) {
  const bench_counts *c = &s->counts;
  if (!c->is_known) {
    json_null(json, "operations");
    json_text(json, "not_counted", c->why_not);
    return;
  }
  json_u64(json, "operations", (uint64_t)c->operations);
  json_bool(json, "is_lower_bound", c->is_lower_bound);
  json_u64(json, "accessed_bytes", (uint64_t)c->bytes);
  json_number(json, "divergence", c->divergence);
  json_number(json, "operations_per_ns", bench_operation_rate(s));
}

void bench_json(const bench_state *s, sink *out) {
  json_out json = json_begin(out);
  json_text(&json, "kernel", vyre_program_name(s->run.program));
  json_text(&json, "device", vyre_device_name(s->run.device));
  json_extent(&json, "grid", s->run.grid);
  json_extent(&json, "workgroup", vyre_pipeline_workgroup(s->run.pipeline));
  json_string(&json, "made_up", s->made_up.data ? s->made_up.data : "",
              s->made_up.length);
  json_u64(&json, "runs", s->run_count);
  json_u64(&json, "median_ns", s->median_ns);
  json_u64(&json, "best_ns", s->best_ns);
  json_u64(&json, "bytes", (uint64_t)bench_traffic(s));
  json_number(&json, "bytes_per_ns", bench_byte_rate(s));
  json_counts(&json, s);
  if (s->resources.has_width) json_u64(&json, "width", s->resources.width);
  if (s->resources.has_code) {
    json_text(&json, "tier",
              s->resources.is_baseline ? "baseline" : "optimised");
  }
  json_open(&json, "limits", '{');
  json_number(&json, "memory_bytes_per_ns", s->limits.memory_bytes);
  json_number(&json, "cache_bytes_per_ns", s->limits.cache_bytes);
  json_number(&json, "sized_bytes_per_ns", s->limits.sized_bytes);
  json_number(&json, "operations_per_ns", s->limits.operations);
  json_u64(&json, "launch_ns", (uint64_t)s->limits.launch_ns);
  json_close(&json, '}');
  json_open(&json, "shares", '{');
  json_number(&json, "memory", bench_memory_share(s));
  json_number(&json, "compute", bench_compute_share(s));
  json_number(&json, "launch", bench_launch_share(s));
  json_close(&json, '}');
  json_text(&json, "limited_by", bench_limit_name(bench_limited_by(s)));
  json_end(&json);
}
