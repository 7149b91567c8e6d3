/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/queue.h
 *  Plans for device work queues: their bytes, how full they start, and the
 *  drain windows that bound each launch. */
#ifndef VYRE_QUEUE_H
#define VYRE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** When the host looks at the queue. */
typedef enum vyre_host_sync {
  VYRE_HOST_SYNC_FINAL_ONLY,   /* once, after the device has drained it */
  VYRE_HOST_SYNC_PARTICIPATES, /* during draining; planners refuse this */
} vyre_host_sync;

/** A queue as the caller wants it. */
typedef struct vyre_queue_profile {
  uint64_t initial_items;  /* items in the queue before the launch */
  uint64_t queue_capacity; /* most items it can hold */
  uint64_t entry_bytes;    /* bytes of one item */
  uint64_t control_bytes;  /* head, tail, flags */
  uint64_t budget_bytes;   /* device memory the caller allows */
  vyre_host_sync host_sync;
} vyre_queue_profile;

typedef struct vyre_queue_plan {
  uint64_t queue_bytes; /* queue_capacity * entry_bytes */
  uint64_t control_bytes;
  uint64_t resident_bytes;        /* queue_bytes + control_bytes */
  uint32_t initial_occupancy_bps; /* initial items of capacity, 10000 = full */
  bool final_only_host_sync;
} vyre_queue_plan;

/** How the queue is drained: X(enumerator, name). */
#define VYRE_DRAIN_MAP(X)                                \
  X(VYRE_DRAIN_SINGLE_RESIDENT, "single_resident_drain") \
  X(VYRE_DRAIN_CHUNKED_RESIDENT, "chunked_resident_drain")

typedef enum vyre_drain_strategy {
#define VYRE_X2(name, text) name,
  VYRE_DRAIN_MAP(VYRE_X2) VYRE_DRAIN_COUNT
#undef VYRE_X2
} vyre_drain_strategy;

/** A queue whose launches drain at most items_per_chunk items each. */
typedef struct vyre_queue_drain_plan {
  vyre_queue_plan queue;
  vyre_drain_strategy strategy;
  uint64_t items_per_chunk;
  uint64_t chunks; /* windows that cover the whole capacity */
  bool final_only_host_sync;
} vyre_queue_drain_plan;

/** A queue that should hold what it starts with and what that expands to. */
typedef struct vyre_queue_expansion_profile {
  uint64_t initial_items;
  uint64_t expansion_items; /* items that the kernel may add */
  uint64_t entry_bytes;
  uint64_t control_bytes;
  uint64_t budget_bytes;
  vyre_host_sync host_sync;
} vyre_queue_expansion_profile;

/** The queue that fits: queue_capacity is what was wanted, cut to what the
 *  budget holds, but never below the initial items. */
typedef struct vyre_queue_expansion_plan {
  vyre_queue_plan queue;
  uint64_t desired_capacity; /* initial + expansion items */
  uint64_t queue_capacity;
} vyre_queue_expansion_plan;

VYRE_BEGIN

/** Plans a queue. Allocates nothing.
 *  Ownership: fills *out; zeroed on failure.  Lifetime: borrows @p profile.
 *  Threads: safe.  Blocks: never.
 *  Errors: VYRE_PLAN_REJECTED, the first of: zero_capacity, zero_entry_bytes,
 *          initial_items_exceed_capacity, host_participation_rejected,
 *          byte_count_overflow (queue bytes, resident bytes), over_budget. */
VYRE_API VYRE_NODISCARD vyre_code vyre_queue_plan_build(
    const vyre_queue_profile *profile, vyre_queue_plan *out, vyre_status *st);

/** Plans a queue and its drain windows of at most @p max_items_per_drain items.
 *  Ownership, threads, blocks: as vyre_queue_plan_build.
 *  Errors: zero_drain_chunk first, then those of vyre_queue_plan_build. */
VYRE_API VYRE_NODISCARD vyre_code vyre_queue_drain_plan_build(
    const vyre_queue_profile *profile, uint64_t max_items_per_drain,
    vyre_queue_drain_plan *out, vyre_status *st);

/** Plans a queue with room for expansion, as far as the budget goes.
 *  Ownership, threads, blocks: as vyre_queue_plan_build.
 *  Errors: byte_count_overflow (queue expansion capacity) first, then those of
 *          vyre_queue_plan_build; over_budget if the initial items alone do not
 *          fit. */
VYRE_API VYRE_NODISCARD vyre_code vyre_queue_expansion_plan_build(
    const vyre_queue_expansion_profile *profile, vyre_queue_expansion_plan *out,
    vyre_status *st);

/** Print a plan as an aligned table. Return false if @p writer refused or @p
 *  plan is NULL.
 *  Threads: safe.  Blocks: on the writer.  Errors: none. */
VYRE_API bool vyre_queue_plan_print(const vyre_queue_plan *plan,
                                    vyre_writer writer);
VYRE_API bool vyre_queue_drain_plan_print(const vyre_queue_drain_plan *plan,
                                          vyre_writer writer);
VYRE_API bool vyre_queue_expansion_plan_print(
    const vyre_queue_expansion_plan *plan, vyre_writer writer);

/** "single_resident_drain" and so on; "?" for a number that is none.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_drain_strategy_name(vyre_drain_strategy strategy);

VYRE_END

#endif
