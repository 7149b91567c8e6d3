/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Kernels between the chunks of a work queue (flow/queue_steps.vyre), for
 * backends that run kernels and nothing else. The runtime compiles them for a
 * queue; the backend launches them. */
#ifndef VYRE_HAL_QUEUE_STEPS_H
#define VYRE_HAL_QUEUE_STEPS_H

/* Kernels, with their names in the text. TURN, PLACE and SCAN differ between
 * lists and sets; the PLACE of a set is `fill_set`. */
#define VYRE__QUEUE_STEP_MAP(X)      \
  X(TURN, "turn_list", "turn_set")   \
  X(PLACE, "place_list", "fill_set") \
  X(FETCH, "fetch", "fetch")         \
  X(SCAN, "scan_list", "scan_set")   \
  X(REVERSE, "reverse_list", NULL)   \
  X(START, NULL, "start_set")

typedef enum vyre__queue_step {
#define X(name, list, set) VYRE__QUEUE_STEP_##name,
  VYRE__QUEUE_STEP_MAP(X)
#undef X
      VYRE__QUEUE_STEPS
} vyre__queue_step;

/* Words of `state`. Counters of 64 bits take two. */
enum {
  VYRE__STATE_HEAD,
  VYRE__STATE_CURRENT,
  VYRE__STATE_NEXT,
  VYRE__STATE_POSITION,
  VYRE__STATE_WINDOW,
  VYRE__STATE_STOP, /* a vyre_queue_stop; VYRE__STATE_RUNNING: none */
  VYRE__STATE_CHUNK,
  VYRE__STATE_PLACED_AT,
  VYRE__STATE_PLACED,
  VYRE__STATE_FAILED, /* item of the chunk that pushed too often */
  VYRE__STATE_FAILED_SITE,
  VYRE__STATE_LAST_ITEMS,
  VYRE__STATE_SUMS,
  VYRE__STATE_HASH = VYRE__STATE_SUMS + 2,
  VYRE__STATE_SEEN_KEYS = VYRE__STATE_HASH + 2,
  VYRE__STATE_WINDOWS,
  VYRE__STATE_CHUNKS,
  VYRE__STATE_HIGH_WATER,
  VYRE__STATE_ITEMS,
  VYRE__STATE_PUSHED = VYRE__STATE_ITEMS + 2,
  VYRE__STATE_DROPPED = VYRE__STATE_PUSHED + 2,
  VYRE__STATE_GRIDS = VYRE__STATE_DROPPED + 2, /* three words each */
  VYRE__STATE_NARROW_WINDOWS = VYRE__STATE_GRIDS + 12,
  VYRE__STATE_MUST_SCAN,
  VYRE__STATE_WORDS
};

/* Grids that `turn` writes, in this order. */
enum {
  VYRE__QUEUE_GRID_PLACE,
  VYRE__QUEUE_GRID_FETCH,
  VYRE__QUEUE_GRID_KERNEL,
  VYRE__QUEUE_GRID_SCAN,
  VYRE__QUEUE_GRIDS
};

#define VYRE__STATE_RUNNING UINT32_MAX
#define VYRE__STATE_NONE    UINT32_MAX

/* Numbers that a workgroup of SCAN sums, and items of one of PLACE and FETCH. */
enum {
  VYRE__QUEUE_SCAN_BLOCK = 512,
  VYRE__QUEUE_STEP_GROUP = 64,
  VYRE__QUEUE_NARROW = 64 /* NARROW */
};

/* First item of a chunk, as FETCH takes it. */
enum { VYRE__FETCH_FROM_HEAD, VYRE__FETCH_FROM_TOP, VYRE__FETCH_FROM_POSITION };

#endif
