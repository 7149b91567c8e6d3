/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* bench [FILE]: runs all suites, or the one named in $VYRE_BENCH_SUITE. Prints
 * a table and writes FILE as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

typedef struct row {
  const char *suite, *name, *unit, *peer;
  double value, minimum, peer_value, peer_minimum;
  const bench_result
      *result; /* if not NULL, used instead of the fields above */
} row;

enum { MAX_ROWS = 1024, MAX_ROUNDS = 1001 };
static row rows[MAX_ROWS];
static int row_count;
static bool has_head; /* the header of the shared table has been printed */

double bench_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

uint64_t bench_random(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 2685821657736338717u;
}

void bench_fail(const char *what, const char *why) {
  fprintf(stderr, "bench: %s: %s\n", what, why);
  exit(1);
}

static double time_once(bench_job job, long repeat) {
  double start = bench_now_ns();
  for (long i = 0; i < repeat; i++) {
    if (!job.run(job.self)) bench_fail("a job", "failed");
  }
  return (bench_now_ns() - start) / (double)repeat;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static bench_times summary(double *times, int rounds) {
  qsort(times, (size_t)rounds, sizeof *times, by_value);
  return (bench_times){times[rounds / 2], times[0]};
}

void bench_pair(bench_job ours, bench_job peer, int rounds, long repeat,
                bench_times *our_times, bench_times *peer_times) {
  static double mine[MAX_ROUNDS], theirs[MAX_ROUNDS];
  if (rounds > MAX_ROUNDS) rounds = MAX_ROUNDS;
  time_once(ours, 1); /* warms up caches and allocations */
  if (peer.run) time_once(peer, 1);
  for (int i = 0; i < rounds; i++) {
    mine[i] = time_once(ours, repeat);
    theirs[i] = peer.run ? time_once(peer, repeat) : 0;
  }
  *our_times = summary(mine, rounds);
  *peer_times = summary(theirs, rounds);
}

bench_times bench_difference(bench_job whole, bench_job part, int rounds,
                             long repeat, bench_times *whole_times) {
  static double wholes[MAX_ROUNDS], parts[MAX_ROUNDS], differences[MAX_ROUNDS];
  if (rounds > MAX_ROUNDS) rounds = MAX_ROUNDS;
  time_once(whole, 1);
  time_once(part, 1);
  for (int i = 0; i < rounds; i++) {
    wholes[i] = time_once(whole, repeat);
    parts[i] = time_once(part, repeat);
    differences[i] = wholes[i] - parts[i];
  }
  *whole_times = summary(wholes, rounds);
  return (bench_times){summary(differences, rounds).median,
                       whole_times->minimum - summary(parts, rounds).minimum};
}

static void keep(row made) {
  if (row_count == MAX_ROWS) bench_fail("table", "too many rows");
  rows[row_count++] = made;
}

static void add(row made) {
  if (!has_head) {
    printf("%-8s %-44s %10s %10s %-7s %9s  %s\n", "suite", "name", "median",
           "minimum", "unit", "ratio", "peer (ratio above 1: vyre is better)");
    has_head = true;
  }
  keep(made);
  char ratio[32] = "";
  if (made.peer[0]) {
    snprintf(ratio, sizeof ratio, "%8.2fx", made.peer_value / made.value);
  }
  printf("%-8s %-44s %10.3f %10.3f %-7s %9s  %s\n", made.suite, made.name,
         made.value, made.minimum, made.unit, ratio, made.peer);
  fflush(stdout);
}

void bench_row_times(const char *suite, const char *name, const char *unit,
                     double scale, bench_times ours, const char *peer,
                     bench_times peer_times) {
  add((row){suite, name, unit, peer, ours.median * scale, ours.minimum * scale,
            peer_times.median * scale, peer_times.minimum * scale});
}

void bench_row_figure(const char *suite, const char *name, const char *unit,
                      double value, const char *peer, double peer_value) {
  add((row){suite, name, unit, peer, value, value, peer_value, peer_value});
}

static const char *copy(const char *text) {
  size_t size = strlen(text) + 1;
  char *made = malloc(size);
  if (!made) bench_fail("table", "out of memory");
  return memcpy(made, text, size);
}

void bench_row_add(const bench_result *result) {
  bench_result *kept = malloc(sizeof *kept);
  if (!kept) bench_fail("table", "out of memory");
  *kept = *result;
  kept->name = copy(result->name);
  kept->unit = copy(result->unit);
  kept->peer = copy(result->peer);
  kept->note = copy(result->note);
  keep((row){.suite = kept->suite, .result = kept});
}

void bench_row_show(const bench_result *r) {
  char ratio[32] = "";
  if (r->ratio > 0) snprintf(ratio, sizeof ratio, "%8.2fx", r->ratio);
  printf("%-10s %-34s %10.3f %10.3f %-9s %9s  %s%s%s\n", r->suite, r->name,
         r->value, r->best, r->unit, ratio, r->peer, r->note[0] ? "; " : "",
         r->note);
  fflush(stdout);
  bench_row_add(r);
}

static void write_figure(FILE *file, const char *name, double value) {
  if (value > 0 || value < 0) {
    fprintf(file, ", \"%s\": %.6g", name, value);
  } else {
    fprintf(file, ", \"%s\": null", name);
  }
}

static void write_text(FILE *file, const char *name, const char *text) {
  fprintf(file, ", \"%s\": ", name);
  fprintf(file, text[0] ? "\"" : "null");
  for (; text[0]; text++) {
    fprintf(file, text[0] == '"' || text[0] == '\\' ? "\\%c" : "%c", text[0]);
    if (!text[1]) fprintf(file, "\"");
  }
}

static void write_result(FILE *file, const bench_result *r) {
  fprintf(file, "  {\"suite\": \"%s\"", r->suite);
  write_text(file, "name", r->name);
  write_text(file, "unit", r->unit);
  write_figure(file, "value", r->value);
  write_figure(file, "best", r->best);
  write_text(file, "peer", r->peer);
  write_figure(file, "peer_value", r->peer_value);
  write_figure(file, "peer_best", r->peer_best);
  write_figure(file, "ratio", r->ratio);
  write_figure(file, "ratio_low", r->ratio_low);
  write_figure(file, "ratio_high", r->ratio_high);
  write_text(file, "note", r->note);
  fprintf(file, "}");
}

static void write_json(FILE *file) {
  fprintf(file, "[\n");
  for (int i = 0; i < row_count; i++) {
    const row *r = &rows[i];
    if (r->result) {
      write_result(file, r->result);
      fprintf(file, "%s\n", i + 1 < row_count ? "," : "");
      continue;
    }
    fprintf(file,
            "  {\"suite\": \"%s\", \"name\": \"%s\", \"unit\": \"%s\", "
            "\"value\": %.6g, \"minimum\": %.6g, ",
            r->suite, r->name, r->unit, r->value, r->minimum);
    if (r->peer[0]) {
      fprintf(file,
              "\"peer\": \"%s\", \"peer_value\": %.6g, \"peer_minimum\": %.6g, "
              "\"ratio\": %.4g}",
              r->peer, r->peer_value, r->peer_minimum,
              r->peer_value / r->value);
    } else {
      fprintf(file,
              "\"peer\": null, \"peer_value\": null, "
              "\"peer_minimum\": null, \"ratio\": null}");
    }
    fprintf(file, "%s\n", i + 1 < row_count ? "," : "");
  }
  fprintf(file, "]\n");
}

/* Returns true if suite @p name is selected: "cpu" selects all of cpu.*. */
static bool is_selected(const char *only, const char *name) {
  size_t length = only ? strlen(only) : 0;
  return !only || (strncmp(only, name, length) == 0 &&
                   (name[length] == 0 || name[length] == '.'));
}

int main(int argc, char **argv) {
  const char *only = getenv("VYRE_BENCH_SUITE");
  const char *child = getenv("VYRE_BENCH_CHILD");
  if (child) return bench_vulkan_child(child);
  if (is_selected(only, "plan")) bench_plan();
  if (is_selected(only, "language")) bench_language();
  if (is_selected(only, "numbers")) bench_numbers();
  if (is_selected(only, "sums")) bench_sums();
  if (is_selected(only, "cache")) bench_cache();
  if (is_selected(only, "recording")) bench_recording();
  if (is_selected(only, "runtime")) {
    bench_runtime();
    bench_package();
  }
  if (is_selected(only, "dispatch")) bench_dispatch();
  /* This suite comes first: it measures loading LLVM. */
  if (is_selected(only, "cpu.compile")) bench_cpu_compile();
  if (is_selected(only, "cpu.first_dispatch")) bench_public_first();
  if (is_selected(only, "cpu.dispatch")) bench_cpu_dispatch();
  if (is_selected(only, "cpu.threads")) bench_cpu_threads();
  if (is_selected(only, "cpu.kernels")) bench_cpu_kernels();
  if (is_selected(only, "cpu.pool")) bench_cpu_pool();
  if (is_selected(only, "public") || is_selected(only, "public.pocl"))
    bench_public();
  if (is_selected(only, "public.held")) bench_public_held();
  if (is_selected(only, "public.held2")) bench_public_held2();
  if (is_selected(only, "public.width")) bench_public_widths();
  if (is_selected(only, "flow.graphs")) bench_flow_graphs();
  if (is_selected(only, "flow.fixpoint")) bench_flow_fixpoint();
  if (is_selected(only, "flow.queue")) bench_flow_queue();
  if (is_selected(only, "flow.waves")) bench_flow_waves();
  if (is_selected(only, "vulkan.compile")) bench_vulkan_compile();
  if (is_selected(only, "vulkan.dispatch")) bench_vulkan_dispatch();
  if (is_selected(only, "vulkan.replay")) bench_vulkan_replay();
  if (is_selected(only, "vulkan.kernels")) bench_vulkan_kernels();
  if (argc < 2) return 0;
  FILE *file = fopen(argv[1], "w");
  if (!file) bench_fail(argv[1], "cannot be written");
  write_json(file);
  if (fclose(file) != 0) bench_fail(argv[1], "cannot be written");
  printf("rows written to %s\n", argv[1]);
  return 0;
}
