/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre plan frontier` */
#include <string.h>

#include "vyre/frontier.h"

#include "cli/args.h"
#include "cli/commands.h"
#include "plan/plan_json.h"
#include "plan/read_plan.h"
#include "plan/svg.h"

typedef struct frontier_flags {
  const char *file, *svg;
  uint64_t alignment;
  bool place;
} frontier_flags;

static bool read_flags(int count, char **words, frontier_flags *out,
                       problem *wrong) {
  flag flags[] = {
      FLAG("--place", &out->place),
      FLAG("--alignment", &out->alignment),
      FLAG("--svg", &out->svg),
  };
  arguments spec = {.command = "plan frontier",
                    .flags = flags,
                    .flag_count = sizeof flags / sizeof flags[0],
                    .operand = &out->file};
  if (!args_read(&spec, count, words, wrong)) return false;
  if (flags[1].given && !out->place && !out->svg) {
    return problem_set(wrong, KIND_USAGE,
                       "add --place or --svg, or remove --alignment",
                       "--alignment needs --place or --svg");
  }
  return check_drawing(out->svg, out->file, wrong);
}

/* The plan, for the answer and the drawing. */
typedef struct frontier_answer {
  vyre_frontier_desc desc;
  vyre_frontier_plan plan;
  const vyre_interval *intervals;
  vyre_placement_plan placement;
  bool shows_placement; /* part of the answer; a drawing always has it */
} frontier_answer;

static vyre_code build(frontier_answer *a, const frontier_flags *f,
                       vyre_arena *arena, vyre_status *st) {
  vyre_barrier_scratch scratch = {0};
  vyre_placement_scratch place_scratch = {0};
  vyre_code code =
      vyre_frontier_plan_build(&a->desc, &scratch, arena, &a->plan, st);
  if (code == VYRE_OK && (f->place || f->svg)) {
    code = vyre_frontier_intervals(&a->plan, &a->desc, f->alignment, arena,
                                   &a->intervals, st);
    if (code == VYRE_OK) {
      code = vyre_placement_plan_build(
          a->intervals, a->desc.wave_count * VYRE_PART_COUNT, NULL,
          &place_scratch, arena, &a->placement, st);
    }
  }
  vyre_placement_scratch_deinit(&place_scratch);
  vyre_barrier_scratch_deinit(&scratch);
  return code;
}

static bool fits_budget(const frontier_answer *a) {
  uint64_t resident = a->desc.resident_graph_bytes;
  return resident <= a->desc.budget_bytes &&
         a->placement.placed_bytes <= a->desc.budget_bytes - resident;
}

static void put_groups(json_out *json, const vyre_barrier_plan *plan) {
  json_open(json, "groups", '[');
  for (size_t g = 0; g < plan->group_count; g++) {
    json_open(json, NULL, '[');
    for (uint32_t i = plan->group_offsets[g]; i < plan->group_offsets[g + 1];
         i++) {
      json_u64(json, NULL, plan->waves[i]);
    }
    json_close(json, ']');
  }
  json_close(json, ']');
  json_u64(json, "global_barriers", plan->global_barriers);
}

static void put_placement(json_out *json, const frontier_answer *a) {
  json_open(json, "placement", '{');
  json_placement_fields(json, &a->placement);
  json_bool(json, "fits_budget", fits_budget(a));
  json_open(json, "intervals", '[');
  for (size_t i = 0; i < a->placement.interval_count; i++) {
    const vyre_interval *interval = &a->intervals[i];
    json_open(json, NULL, '{');
    json_u64(json, "wave", i / VYRE_PART_COUNT);
    json_text(json, "part", vyre_wave_part_name(i % VYRE_PART_COUNT));
    json_u64(json, "first_group", interval->first_group);
    json_u64(json, "last_group", interval->last_group);
    json_u64(json, "size", interval->size);
    json_u64(json, "offset", a->placement.offsets[i]);
    json_close(json, '}');
  }
  json_close(json, ']');
  json_close(json, '}');
}

static void put_json(const frontier_answer *a, sink *out) {
  const vyre_frontier_plan *plan = &a->plan;
  json_out json = json_begin(out);
  put_groups(&json, &plan->barriers);
  json_u64(&json, "peak_frontier_bytes", plan->peak_frontier_bytes);
  json_u64(&json, "peak_scratch_bytes", plan->peak_scratch_bytes);
  json_u64(&json, "peak_output_bytes", plan->peak_output_bytes);
  json_u64(&json, "peak_group_bytes", plan->peak_group_bytes);
  json_u64(&json, "amortized_readback_bytes", plan->amortized_readback_bytes);
  json_u64(&json, "max_group_width", plan->max_group_width);
  json_u64(&json, "minimum_groups", plan->minimum_groups);
  if (a->shows_placement) put_placement(&json, a);
  json_end(&json);
}

static void put_text(const frontier_answer *a, sink *out) {
  vyre_frontier_plan_print(&a->plan, &a->desc, sink_writer(out));
  if (!a->shows_placement) return;
  sink_text(out,
            "\n"
            "Wave w has three intervals: 3w is its frontier, 3w+1 its scratch\n"
            "(four times), 3w+2 its output.\n");
  vyre_placement_plan_print(&a->placement, a->intervals, sink_writer(out));
  sink_text(out, fits_budget(a)
                     ? "  with the resident graph, this fits the budget\n"
                     : "  with the resident graph, this exceeds the budget\n");
}

int plan_frontier(int count, char **words, bool json) {
  frontier_flags f = {.alignment = 256};
  frontier_answer a = {0};
  problem wrong = {0};
  vyre_arena arena = {0};
  vyre_status st = {0};
  sink out = {0}, svg = {0};
  input in = {0};
  int code;
  if (!read_flags(count, words, &f, &wrong) ||
      !read_input(f.file, &in, &wrong) ||
      (!read_frontier_json(&in, &arena, &a.desc, &wrong) &&
       !explain_kernel(&in, "frontier", &wrong))) {
    code = problem_report(&wrong, json);
  } else {
    a.shows_placement = f.place;
    if (build(&a, &f, &arena, &st) == VYRE_OK) {
      if (json) {
        put_json(&a, &out);
      } else {
        put_text(&a, &out);
      }
      if (f.svg) {
        svg_frontier(&a.desc, &a.plan, &a.placement, a.intervals, &svg);
      }
    }
    code = finish_plan(&st, &out, f.svg, &svg, json);
  }
  input_deinit(&in);
  vyre_arena_deinit(&arena);
  return code;
}
