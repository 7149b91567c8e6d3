/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre plan place` */
#include "vyre/placement.h"

#include "cli/args.h"
#include "cli/commands.h"
#include "plan/plan_json.h"
#include "plan/read_plan.h"
#include "plan/svg.h"

typedef struct place_flags {
  const char *file, *svg;
  bool csv, json;
} place_flags;

static bool read_flags(int count, char **words, place_flags *out,
                       problem *wrong) {
  flag flags[] = {
      FLAG("--csv", &out->csv),
      FLAG("--svg", &out->svg),
      FLAG("--json", &out->json),
  };
  arguments spec = {.command = "plan place",
                    .flags = flags,
                    .flag_count = sizeof flags / sizeof flags[0],
                    .operand = &out->file};
  if (!args_read(&spec, count, words, wrong)) return false;
  if (out->csv && out->json) {
    return problem_set(wrong, KIND_USAGE, "choose --csv or --json",
                       "--csv and --json are both given");
  }
  return check_drawing(out->svg, out->file, wrong);
}

static void put_id(json_out *json, const interval_id *id, size_t index) {
  if (!id->text) {
    json_u64(json, "id", index);
  } else if (id->number) {
    json_raw(json, "id", id->text, id->length);
  } else {
    json_string(json, "id", id->text, id->length);
  }
}

static void put_json(const place_input *in, const vyre_placement_plan *plan,
                     sink *out) {
  json_out json = json_begin(out);
  json_placement_fields(&json, plan);
  json_open(&json, "intervals", '[');
  for (size_t i = 0; i < in->count; i++) {
    const vyre_interval *interval = &in->intervals[i];
    json_open(&json, NULL, '{');
    put_id(&json, &in->ids[i], i);
    json_u64(&json, "size", interval->size);
    json_u64(&json, "alignment", interval->alignment);
    json_u64(&json, "first_group", interval->first_group);
    json_u64(&json, "last_group", interval->last_group);
    json_u64(&json, "offset", plan->offsets[i]);
    json_close(&json, '}');
  }
  json_close(&json, ']');
  json_end(&json);
}

static bool answer(const place_input *in, const place_flags *f,
                   const vyre_placement_plan *plan, sink *out, sink *svg,
                   problem *wrong) {
  if (f->csv) {
    if (!write_place_csv(in, plan->offsets, out, wrong)) return false;
  } else if (f->json) {
    put_json(in, plan, out);
  } else {
    vyre_placement_plan_print(plan, in->intervals, sink_writer(out));
  }
  if (f->svg) svg_place(in, plan, svg);
  return true;
}

int plan_place(int count, char **words, bool json) {
  place_flags f = {.file = NULL};
  problem wrong = {0};
  vyre_arena arena = {0};
  vyre_placement_scratch scratch = {0};
  vyre_placement_plan plan = {0};
  vyre_status st = {0};
  sink out = {0}, svg = {0};
  input in = {0};
  place_input place = {0};
  bool fine = read_flags(count, words, &f, &wrong) &&
              read_input(f.file, &in, &wrong) &&
              (read_place(&in, &arena, &place, &wrong) ||
               explain_kernel(&in, "place", &wrong));
  if (fine &&
      vyre_placement_plan_build(place.intervals, place.count, NULL, &scratch,
                                &arena, &plan, &st) == VYRE_OK) {
    fine = answer(&place, &f, &plan, &out, &svg, &wrong);
  }
  if (!fine) sink_deinit(&out);
  int code = fine ? finish_plan(&st, &out, f.svg, &svg, json)
                  : problem_report(&wrong, json);
  vyre_placement_scratch_deinit(&scratch);
  input_deinit(&in);
  vyre_arena_deinit(&arena);
  return code;
}
