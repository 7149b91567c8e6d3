/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/queue.h
 *  Queue planners: memory of a device work queue, its initial occupancy, and
 *  the number of items that each launch drains. */
#ifndef VYRE_QUEUE_H
#define VYRE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** Host synchronisation of a queue. */
typedef enum vyre_host_sync {
  VYRE_HOST_SYNC_FINAL_ONLY, /* once, after the device has drained the queue */
  VYRE_HOST_SYNC_PARTICIPATES, /* while it drains; planners reject this */
} vyre_host_sync;

/** Input of the queue planner. */
typedef struct vyre_queue_profile {
  uint64_t initial_items;   /* items in the queue before the launch */
  uint64_t queue_capacity;  /* maximum number of items */
  uint64_t entry_bytes;     /* bytes of one item */
  uint64_t control_bytes;   /* bytes of head, tail and flags */
  uint64_t budget_bytes;    /* device memory limit */
  vyre_host_sync host_sync; /* host synchronisation */
  uint64_t reserved[4];     /* must be zero */
} vyre_queue_profile;

/** Memory of a queue. */
typedef struct vyre_queue_plan {
  uint64_t queue_bytes;    /* queue_capacity * entry_bytes */
  uint64_t control_bytes;  /* bytes of head, tail and flags */
  uint64_t resident_bytes; /* queue_bytes + control_bytes */
  /* Initial items / capacity; 10000 means full. */
  uint32_t initial_occupancy_bps;
  bool final_only_host_sync; /* always true: planners reject anything else */
  uint64_t reserved[2];      /* zero; for future fields */
} vyre_queue_plan;

/** Drain strategies: X(enumerator, name). */
#define VYRE_DRAIN_MAP(X)                                \
  X(VYRE_DRAIN_SINGLE_RESIDENT, "single_resident_drain") \
  X(VYRE_DRAIN_CHUNKED_RESIDENT, "chunked_resident_drain")

/** Drain strategy of a queue: one launch, or launches of limited size. */
typedef enum vyre_drain_strategy {
#define VYRE_X2(name, text) name,
  VYRE_DRAIN_MAP(VYRE_X2) VYRE_DRAIN_COUNT
#undef VYRE_X2
} vyre_drain_strategy;

/** Queue whose launches drain at most items_per_chunk items each. */
typedef struct vyre_queue_drain_plan {
  vyre_queue_plan queue;        /* memory of the queue */
  vyre_drain_strategy strategy; /* one launch or several */
  uint64_t items_per_chunk;     /* maximum number of items per launch */
  uint64_t chunks;              /* launches that cover the full capacity */
  bool final_only_host_sync;    /* as in `queue` */
  uint64_t reserved[2];         /* zero; for future fields */
} vyre_queue_drain_plan;

/** Input of the expansion planner: a queue with space for items that the
 *  kernel adds. */
typedef struct vyre_queue_expansion_profile {
  uint64_t initial_items;   /* items in the queue before the launch */
  uint64_t expansion_items; /* items that the kernel may add */
  uint64_t entry_bytes;     /* bytes of one item */
  uint64_t control_bytes;   /* bytes of head, tail and flags */
  uint64_t budget_bytes;    /* device memory limit */
  vyre_host_sync host_sync; /* host synchronisation */
  uint64_t reserved[4];     /* must be zero */
} vyre_queue_expansion_profile;

/** Queue with space for expansion. The capacity is the desired one, reduced to
 *  what fits into the budget, but not below the initial items. */
typedef struct vyre_queue_expansion_plan {
  vyre_queue_plan queue;     /* memory of the queue */
  uint64_t desired_capacity; /* initial_items + expansion_items */
  uint64_t queue_capacity;   /* capacity that fits */
  uint64_t reserved[2];      /* zero; for future fields */
} vyre_queue_expansion_plan;

VYRE_BEGIN

/** Plans the memory of a queue. Allocates nothing.
 *  Ownership: fills *out; zeroed on failure.
 *  Lifetime:  borrows @p profile.
 *  Threads:   safe.
 *  Blocks:    never.
 *  Errors:    VYRE_PLAN_REJECTED, the first of: zero_capacity,
 *             zero_entry_bytes, initial_items_exceed_capacity,
 *             host_participation_rejected, byte_count_overflow (queue bytes,
 *             resident bytes), over_budget. */
VYRE_API VYRE_NODISCARD vyre_code vyre_queue_plan_build(
    const vyre_queue_profile *profile, vyre_queue_plan *out, vyre_status *st);

/** Plans a queue whose launches drain at most @p max_items_per_drain items
 *  each. Ownership, lifetime, threads, blocks: as vyre_queue_plan_build.
 *  Errors:    zero_drain_chunk first, then those of vyre_queue_plan_build. */
VYRE_API VYRE_NODISCARD vyre_code vyre_queue_drain_plan_build(
    const vyre_queue_profile *profile, uint64_t max_items_per_drain,
    vyre_queue_drain_plan *out, vyre_status *st);

/** Plans a queue with as much space for expansion as the budget allows.
 *  Ownership, lifetime, threads, blocks: as vyre_queue_plan_build.
 *  Errors:    byte_count_overflow (queue expansion capacity) first, then those
 *             of vyre_queue_plan_build; over_budget if the initial items alone
 *             do not fit. */
VYRE_API VYRE_NODISCARD vyre_code vyre_queue_expansion_plan_build(
    const vyre_queue_expansion_profile *profile, vyre_queue_expansion_plan *out,
    vyre_status *st);

/** Print a plan as a table. Return false if @p writer fails or @p plan is
 *  NULL.
 *  Threads:   safe.
 *  Blocks:    on the writer.
 *  Errors:    none. */
VYRE_API bool vyre_queue_plan_print(const vyre_queue_plan *plan,
                                    vyre_writer writer);
VYRE_API bool vyre_queue_drain_plan_print(const vyre_queue_drain_plan *plan,
                                          vyre_writer writer);
VYRE_API bool vyre_queue_expansion_plan_print(
    const vyre_queue_expansion_plan *plan, vyre_writer writer);

/** Returns the name of a strategy ("single_resident_drain"), or "?" for an
 *  unknown value. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_drain_strategy_name(vyre_drain_strategy strategy);

VYRE_END

#endif
