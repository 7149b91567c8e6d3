/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Clauses of queue kernels: checks, content hash, comparison. */
#ifndef VYRE_IR_QUEUE_H
#define VYRE_IR_QUEUE_H

#include "base/hash.h"
#include "ir/builder/ir_builder.h"

/* Checks the clauses of a queue kernel that did not come from text. Fails with
 * VYRE_INVALID_PROGRAM. */
VYRE_NODISCARD vyre_code vyre__queue_check(const vyre__kernel *kernel,
                                           vyre_status *st);

void vyre__queue_hash(vyre__hasher *hasher, const vyre__queue_clauses *queue);

/* Returns true if both are NULL, or if all clauses are equal. */
bool vyre__queue_equal(const vyre__queue_clauses *a,
                       const vyre__queue_clauses *b);

/* Returns the clause as in the text form: "ordered", "set", "once" or "any". */
const char *vyre__queue_kind_name(unsigned kind);

/* Buffers of u32 that the kernel of a queue has behind those of its program
 * (analyze/queue/queue_kernel.h). Kernels of lists have those before SEEN. */
enum {
  VYRE__HIDDEN_ITEMS, /* items of the launch; read */
  VYRE__HIDDEN_PLACE, /* VYRE__PLACE_*; read */
  /* Lists: P items for each item of the launch, in order of its pushes.
   * Sets: keys that were not in NEXT, in any order. */
  VYRE__HIDDEN_PUSHED,
  /* Lists: number of pushes of each item; P + 1 + n if it pushed more than P
   * items, first with push n of the source. Sets: VYRE__COUNT_*. */
  VYRE__HIDDEN_COUNTS,
  VYRE__HIDDEN_SEEN,   /* bit set of keys that `once` does not take; read */
  VYRE__HIDDEN_NEXT,   /* bit set that pushes set bits in */
  VYRE__HIDDEN_WINDOW, /* bit set that in_window() tests; read */
  VYRE__HIDDEN_COUNT,
  VYRE__HIDDEN_OF_LISTS = VYRE__HIDDEN_SEEN
};

/* Words of PLACE. */
enum {
  VYRE__PLACE_WINDOW, /* number of the window */
  VYRE__PLACE_FIRST,  /* position of the first item of the launch */
  VYRE__PLACE_COUNT,  /* items of the launch */
  VYRE__PLACE_KEYS,   /* N */
  VYRE__PLACE_LIMIT,  /* keys that PUSHED has space for */
  VYRE__PLACE_WORDS
};

/* Words of COUNTS in a set. */
enum {
  VYRE__COUNT_KEYS, /* keys in PUSHED; above the limit: some are missing */
  VYRE__COUNT_DROPPED,
  VYRE__COUNT_WORDS
};

/* Returns the number of these buffers of a queue of this kind. */
static inline uint32_t vyre__hidden_count(unsigned kind) {
  return kind == VYRE__QUEUE_SET || kind == VYRE__QUEUE_ONCE
             ? VYRE__HIDDEN_COUNT
             : VYRE__HIDDEN_OF_LISTS;
}

#endif
