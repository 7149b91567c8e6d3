/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre plan queue` */
#include "vyre/queue.h"

#include "args.h"
#include "commands.h"
#include "output.h"
#include "plan_json.h"

const char queue_help[] =
    "vyre plan queue: the bytes of a device work queue\n"
    "\n"
    "usage: vyre plan queue --initial N --capacity N --entry-bytes N\n"
    "                       --control-bytes N --budget N [--drain N]\n"
    "                       [--host-sync final|participates] [--json]\n"
    "\n"
    "  --initial N        items in the queue before the launch\n"
    "  --capacity N       most items it can hold\n"
    "  --entry-bytes N    bytes of one item\n"
    "  --control-bytes N  bytes of head, tail and flags\n"
    "  --budget N         bytes of device memory that may be used\n"
    "  --drain N          drain in windows of at most N items\n"
    "  --host-sync WHEN   final (the default): the host looks once, at the "
    "end;\n"
    "                     participates: during draining, which is refused\n"
    "  --json             answer in JSON\n"
    "\n"
    "N is a whole number from 0 to 18446744073709551615.\n"
    "\n"
    "example: 64Ki items of 16 bytes, drained 8Ki at a time\n"
    "  vyre plan queue --initial 4096 --capacity 65536 --entry-bytes 16 \\\n"
    "                  --control-bytes 128 --budget 2097152 --drain 8192\n";

static const char *const sync_names[] = {"final", "participates", NULL};

typedef struct queue_flags {
  vyre_queue_profile profile;
  uint64_t drain;
  bool has_drain, json;
} queue_flags;

static bool read_flags(int count, char **words, queue_flags *out,
                       problem *wrong) {
  size_t sync = 0;
  vyre_queue_profile *p = &out->profile;
  flag flags[] = {
      {"--initial", &p->initial_items, NULL, FLAG_U64, true, false},
      {"--capacity", &p->queue_capacity, NULL, FLAG_U64, true, false},
      {"--entry-bytes", &p->entry_bytes, NULL, FLAG_U64, true, false},
      {"--control-bytes", &p->control_bytes, NULL, FLAG_U64, true, false},
      {"--budget", &p->budget_bytes, NULL, FLAG_U64, true, false},
      {"--drain", &out->drain, NULL, FLAG_U64, false, false},
      {"--host-sync", &sync, sync_names, FLAG_CHOICE, false, false},
      {"--json", &out->json, NULL, FLAG_SWITCH, false, false},
  };
  arguments spec = {.command = "vyre plan queue",
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
  vyre_queue_backpressure_plan plan;
  if (vyre_queue_backpressure_build(&f->profile, f->drain, &plan, st) !=
      VYRE_OK) {
    return false;
  }
  if (!json) return vyre_queue_backpressure_print(&plan, sink_writer(out));
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
  queue_flags f = {.json = false};
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
