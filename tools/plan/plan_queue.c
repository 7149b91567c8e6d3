/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre plan queue` */
#include "vyre/queue.h"

#include "cli/args.h"
#include "cli/commands.h"
#include "plan/plan_json.h"

typedef struct queue_flags {
  vyre_queue_profile profile;
  uint64_t drain;
  bool has_drain;
} queue_flags;

static bool read_flags(int count, char **words, queue_flags *out,
                       problem *wrong) {
  size_t sync = 0;
  vyre_queue_profile *p = &out->profile;
  flag flags[] = {
      FLAG("--initial", &p->initial_items),
      FLAG("--capacity", &p->queue_capacity),
      FLAG("--entry-bytes", &p->entry_bytes),
      FLAG("--control-bytes", &p->control_bytes),
      FLAG("--budget", &p->budget_bytes),
      FLAG("--drain", &out->drain),
      FLAG("--host-sync", &sync),
  };
  arguments spec = {.command = "plan queue",
                    .flags = flags,
                    .flag_count = sizeof flags / sizeof flags[0]};
  if (!args_read(&spec, count, words, wrong)) return false;
  p->host_sync =
      sync == 0 ? VYRE_HOST_SYNC_FINAL_ONLY : VYRE_HOST_SYNC_PARTICIPATES;
  out->has_drain = flags[5].given;
  return true;
}

static bool answer_plain(const queue_flags *f, bool json, sink *out,
                         vyre_status *st) {
  vyre_queue_plan plan;
  if (vyre_queue_plan_build(&f->profile, &plan, st) != VYRE_OK) return false;
  if (!json) return vyre_queue_plan_print(&plan, sink_writer(out));
  json_out answer = json_begin(out);
  json_queue_fields(&answer, &plan);
  json_end(&answer);
  return true;
}

static bool answer_drain(const queue_flags *f, bool json, sink *out,
                         vyre_status *st) {
  vyre_queue_drain_plan plan;
  if (vyre_queue_drain_plan_build(&f->profile, f->drain, &plan, st) !=
      VYRE_OK) {
    return false;
  }
  if (!json) return vyre_queue_drain_plan_print(&plan, sink_writer(out));
  json_out answer = json_begin(out);
  json_open(&answer, "queue", '{');
  json_queue_fields(&answer, &plan.queue);
  json_close(&answer, '}');
  json_text(&answer, "strategy", vyre_drain_strategy_name(plan.strategy));
  json_u64(&answer, "items_per_chunk", plan.items_per_chunk);
  json_u64(&answer, "chunks", plan.chunks);
  json_bool(&answer, "final_only_host_sync", plan.final_only_host_sync);
  json_end(&answer);
  return true;
}

int plan_queue(int count, char **words, bool json) {
  queue_flags f = {.has_drain = false};
  problem wrong = {0};
  vyre_status st = {0};
  sink out = {0};
  if (!read_flags(count, words, &f, &wrong)) {
    return problem_report(&wrong, json);
  }
  if (f.has_drain) {
    answer_drain(&f, json, &out, &st);
  } else {
    answer_plain(&f, json, &out, &st);
  }
  return finish_plan(&st, &out, NULL, NULL, json);
}
