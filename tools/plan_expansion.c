/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre plan expansion` */
#include "vyre/queue.h"

#include "args.h"
#include "commands.h"
#include "output.h"
#include "plan_json.h"

const char expansion_help[] =
    "vyre plan expansion: the largest queue that a budget holds\n"
    "\n"
    "usage: vyre plan expansion --initial N --expansion N --entry-bytes N\n"
    "                           --control-bytes N --budget N [--json]\n"
    "\n"
    "  --initial N        items in the queue before the launch\n"
    "  --expansion N      items that the kernel may add\n"
    "  --entry-bytes N    bytes of one item\n"
    "  --control-bytes N  bytes of head, tail and flags\n"
    "  --budget N         bytes of device memory that may be used\n"
    "  --json             answer in JSON\n"
    "\n"
    "The queue should hold initial + expansion items. If the budget is too\n"
    "small for that, it is cut, but never below the initial items.\n"
    "\n"
    "example:\n"
    "  vyre plan expansion --initial 4 --expansion 100 --entry-bytes 8 \\\n"
    "                      --control-bytes 16 --budget 96\n";

static bool read_flags(int count, char **words, vyre_queue_expansion_profile *p,
                       problem *wrong) {
  bool json = false;
  flag flags[] = {
      {"--initial", &p->initial_items, NULL, FLAG_U64, true, false},
      {"--expansion", &p->expansion_items, NULL, FLAG_U64, true, false},
      {"--entry-bytes", &p->entry_bytes, NULL, FLAG_U64, true, false},
      {"--control-bytes", &p->control_bytes, NULL, FLAG_U64, true, false},
      {"--budget", &p->budget_bytes, NULL, FLAG_U64, true, false},
      {"--json", &json, NULL, FLAG_SWITCH, false, false},
  };
  arguments spec = {.command = "vyre plan expansion",
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
  if (vyre_queue_expansion_build(&profile, &plan, &st) != VYRE_OK) {
    return finish_plan(&st, &out, NULL, NULL, json);
  }
  if (json) {
    json_out answer = json_begin(&out);
    json_queue_fields(&answer, &plan.queue);
    json_u64(&answer, "desired_capacity", plan.desired_capacity);
    json_u64(&answer, "queue_capacity", plan.queue_capacity);
    json_end(&answer);
  } else {
    vyre_queue_expansion_print(&plan, sink_writer(&out));
  }
  return finish_plan(&st, &out, NULL, NULL, json);
}
