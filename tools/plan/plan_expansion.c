/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre plan expansion` */
#include "vyre/queue.h"

#include "cli/args.h"
#include "cli/commands.h"
#include "plan/plan_json.h"

static bool read_flags(int count, char **words, vyre_queue_expansion_profile *p,
                       problem *wrong) {
  flag flags[] = {
      FLAG("--initial", &p->initial_items),
      FLAG("--expansion", &p->expansion_items),
      FLAG("--entry-bytes", &p->entry_bytes),
      FLAG("--control-bytes", &p->control_bytes),
      FLAG("--budget", &p->budget_bytes),
  };
  arguments spec = {.command = "plan expansion",
                    .flags = flags,
                    .flag_count = sizeof flags / sizeof flags[0]};
  return args_read(&spec, count, words, wrong);
}

int plan_expansion(int count, char **words, bool json) {
  vyre_queue_expansion_profile profile = {.host_sync =
                                              VYRE_HOST_SYNC_FINAL_ONLY};
  problem wrong = {0};
  if (!read_flags(count, words, &profile, &wrong)) {
    return problem_report(&wrong, json);
  }
  vyre_queue_expansion_plan plan;
  vyre_status st = {0};
  sink out = {0};
  if (vyre_queue_expansion_plan_build(&profile, &plan, &st) != VYRE_OK) {
    return finish_plan(&st, &out, NULL, NULL, json);
  }
  if (json) {
    json_out answer = json_begin(&out);
    json_queue_fields(&answer, &plan.queue);
    json_u64(&answer, "desired_capacity", plan.desired_capacity);
    json_u64(&answer, "queue_capacity", plan.queue_capacity);
    json_end(&answer);
  } else {
    vyre_queue_expansion_plan_print(&plan, sink_writer(&out));
  }
  return finish_plan(&st, &out, NULL, NULL, json);
}
