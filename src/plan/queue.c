/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/queue.h"

#include "base/bps.h"
#include "base/checked_math.h"
#include "base/enum_name.h"
#include "base/print.h"
#include "base/status.h"

static vyre_code overflow(vyre_status *st, const char *field, uint64_t a,
                          const char *operation, uint64_t b) {
  return VYRE_FAIL_WITH(
      st, VYRE_PLAN_REJECTED, VYRE_KIND_BYTE_COUNT_OVERFLOW, field, NULL,
      "split the workload over several smaller queues",
      "work queue: too large for 64 bits: %s, %llu %s %llu", field,
      (unsigned long long)a, operation, (unsigned long long)b);
}

/* Checks a profile before any arithmetic, in a fixed order. */
static vyre_code check_profile(const vyre_queue_profile *profile,
                               vyre_status *st) {
  if (profile->queue_capacity == 0) {
    return VYRE_FAIL(st, VYRE_PLAN_REJECTED, VYRE_KIND_ZERO_CAPACITY,
                     "set queue_capacity to 1 or more",
                     "work queue: queue_capacity is 0");
  }
  if (profile->entry_bytes == 0) {
    return VYRE_FAIL(st, VYRE_PLAN_REJECTED, VYRE_KIND_ZERO_ENTRY_BYTES,
                     "set entry_bytes to the size of one queue item",
                     "work queue: entry_bytes is 0");
  }
  if (profile->initial_items > profile->queue_capacity) {
    return VYRE_FAIL_WITH(
        st, VYRE_PLAN_REJECTED, VYRE_KIND_INITIAL_ITEMS_EXCEED_CAPACITY, NULL,
        VYRE_NUMBERS({"initial_items", profile->initial_items},
                     {"queue_capacity", profile->queue_capacity}),
        "raise queue_capacity, or start with fewer items",
        "work queue: %llu initial items do not fit a capacity of %llu",
        (unsigned long long)profile->initial_items,
        (unsigned long long)profile->queue_capacity);
  }
  if (profile->host_sync != VYRE_HOST_SYNC_FINAL_ONLY &&
      profile->host_sync != VYRE_HOST_SYNC_PARTICIPATES) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "use a value of vyre/queue.h",
                     "work queue: unknown host_sync value %d",
                     (int)profile->host_sync);
  }
  if (profile->host_sync != VYRE_HOST_SYNC_FINAL_ONLY) {
    return VYRE_FAIL(
        st, VYRE_PLAN_REJECTED, VYRE_KIND_HOST_PARTICIPATION_REJECTED,
        "use final-only synchronisation: the host waits once, at the end",
        "work queue: the host may not take part while the device drains");
  }
  return VYRE_OK;
}

vyre_code vyre_queue_plan_build(const vyre_queue_profile *profile,
                                vyre_queue_plan *out, vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, profile);
  VYRE_CHECK_RESERVED(st, __func__, profile);
  VYRE_TRY(check_profile(profile, st));
  uint64_t queue_bytes, resident_bytes;
  if (!vyre__mul_u64(profile->queue_capacity, profile->entry_bytes,
                     &queue_bytes)) {
    return overflow(st, "queue bytes", profile->queue_capacity, "x",
                    profile->entry_bytes);
  }
  if (!vyre__add_u64(queue_bytes, profile->control_bytes, &resident_bytes)) {
    return overflow(st, "resident bytes", queue_bytes, "+",
                    profile->control_bytes);
  }
  if (resident_bytes > profile->budget_bytes) {
    return VYRE_FAIL_WITH(
        st, VYRE_PLAN_REJECTED, VYRE_KIND_OVER_BUDGET, NULL,
        VYRE_NUMBERS({"required_bytes", resident_bytes},
                     {"budget_bytes", profile->budget_bytes}),
        "raise the budget, lower the capacity, or split the work",
        "work queue: needs %llu bytes, but the budget is %llu",
        (unsigned long long)resident_bytes,
        (unsigned long long)profile->budget_bytes);
  }
  *out =
      (vyre_queue_plan){.queue_bytes = queue_bytes,
                        .control_bytes = profile->control_bytes,
                        .resident_bytes = resident_bytes,
                        .initial_occupancy_bps = vyre__ratio_bps(
                            profile->initial_items, profile->queue_capacity, 0),
                        .final_only_host_sync = true};
  return VYRE_OK;
}

vyre_code vyre_queue_drain_plan_build(const vyre_queue_profile *profile,
                                      uint64_t max_items_per_drain,
                                      vyre_queue_drain_plan *out,
                                      vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, profile);
  VYRE_CHECK_RESERVED(st, __func__, profile);
  uint64_t chunks;
  if (!vyre__ceil_div_u64(profile->queue_capacity, max_items_per_drain,
                          &chunks)) {
    return VYRE_FAIL(st, VYRE_PLAN_REJECTED, VYRE_KIND_ZERO_DRAIN_CHUNK,
                     "set the drain window to 1 item or more",
                     "work queue: a drain window of 0 items would never end");
  }
  vyre_queue_plan queue;
  VYRE_TRY(vyre_queue_plan_build(profile, &queue, vyre__status_open(st)));
  uint64_t capacity = profile->queue_capacity;
  *out = (vyre_queue_drain_plan){
      .queue = queue,
      .strategy = chunks == 1 ? VYRE_DRAIN_SINGLE_RESIDENT
                              : VYRE_DRAIN_CHUNKED_RESIDENT,
      .items_per_chunk =
          max_items_per_drain < capacity ? max_items_per_drain : capacity,
      .chunks = chunks,
      .final_only_host_sync = true};
  return VYRE_OK;
}

/* Returns the desired capacity, limited to the budget, but at least the
 * initial capacity. */
static uint64_t expanded_capacity(const vyre_queue_expansion_profile *profile,
                                  uint64_t desired) {
  /* Without an entry size nothing can be limited; the planner reports the
   * error. */
  if (profile->entry_bytes == 0) return desired;
  uint64_t space = profile->budget_bytes > profile->control_bytes
                       ? profile->budget_bytes - profile->control_bytes
                       : 0;
  uint64_t fit = space / profile->entry_bytes;
  uint64_t capacity = desired < fit ? desired : fit;
  return capacity > profile->initial_items ? capacity : profile->initial_items;
}

vyre_code vyre_queue_expansion_plan_build(
    const vyre_queue_expansion_profile *profile, vyre_queue_expansion_plan *out,
    vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, profile);
  VYRE_CHECK_RESERVED(st, __func__, profile);
  uint64_t desired;
  if (!vyre__add_u64(profile->initial_items, profile->expansion_items,
                     &desired)) {
    return overflow(st, "queue expansion capacity", profile->initial_items, "+",
                    profile->expansion_items);
  }
  vyre_queue_profile base = {
      .initial_items = profile->initial_items,
      .queue_capacity = expanded_capacity(profile, desired),
      .entry_bytes = profile->entry_bytes,
      .control_bytes = profile->control_bytes,
      .budget_bytes = profile->budget_bytes,
      .host_sync = profile->host_sync};
  vyre_queue_plan queue;
  VYRE_TRY(vyre_queue_plan_build(&base, &queue, vyre__status_open(st)));
  *out = (vyre_queue_expansion_plan){.queue = queue,
                                     .desired_capacity = desired,
                                     .queue_capacity = base.queue_capacity};
  return VYRE_OK;
}

static void print_queue(vyre__printer *out, const vyre_queue_plan *plan) {
  vyre__print_figure(out, "queue_bytes", plan->queue_bytes, "bytes");
  vyre__print_figure(out, "control_bytes", plan->control_bytes, "bytes");
  vyre__print_figure(out, "resident_bytes", plan->resident_bytes, "bytes");
  vyre__print_figure(out, "initial_occupancy_bps", plan->initial_occupancy_bps,
                     "of 10,000");
  vyre__print_word(out, "final_only_host_sync",
                   plan->final_only_host_sync ? "yes" : "no");
}

bool vyre_queue_plan_print(const vyre_queue_plan *plan, vyre_writer writer) {
  if (!plan) return false;
  vyre__printer out = vyre__printer_make(writer);
  vyre__print(&out, "work queue\n");
  print_queue(&out, plan);
  return out.ok;
}

bool vyre_queue_drain_plan_print(const vyre_queue_drain_plan *plan,
                                 vyre_writer writer) {
  if (!plan) return false;
  vyre__printer out = vyre__printer_make(writer);
  vyre__print(&out, "work queue, drained in windows\n");
  print_queue(&out, &plan->queue);
  vyre__print_word(&out, "strategy", vyre_drain_strategy_name(plan->strategy));
  vyre__print_figure(&out, "items_per_chunk", plan->items_per_chunk, "items");
  vyre__print_figure(&out, "chunks", plan->chunks, "windows");
  return out.ok;
}

bool vyre_queue_expansion_plan_print(const vyre_queue_expansion_plan *plan,
                                     vyre_writer writer) {
  if (!plan) return false;
  vyre__printer out = vyre__printer_make(writer);
  vyre__print(&out, "work queue, with room to expand\n");
  vyre__print_figure(&out, "desired_capacity", plan->desired_capacity, "items");
  vyre__print_figure(&out, "queue_capacity", plan->queue_capacity, "items");
  print_queue(&out, &plan->queue);
  return out.ok;
}

VYRE__ENUM_NAME(vyre_drain_strategy_name, vyre_drain_strategy, VYRE_DRAIN_MAP)
