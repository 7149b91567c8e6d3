/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by phase_split.c and phase_split_shared.c. */
#ifndef VYRE_LOWER_PHASE_SPLIT_INTERNAL_H
#define VYRE_LOWER_PHASE_SPLIT_INTERNAL_H

#include "lower/legalize_control.h"

enum { NO_PHASE = UINT32_MAX };

/* A range of source instructions that becomes a phase. */
typedef struct segment {
  uint32_t begin, end;
  uint32_t loop; /* innermost enclosing host loop, or NO_PHASE */
  bool is_first; /* first of an iteration of that loop */
  bool resets;   /* generated: resets the flag of a loop */
  bool clears;   /* generated: clears the saved shared memory */
} segment;

typedef struct host_loop {
  uint32_t at;        /* index of the LOOP in the source */
  uint32_t outer;     /* enclosing host loop, or NO_PHASE */
  uint32_t skip_word; /* flag word, or NO_PHASE if no invocation exits early */
} host_loop;

/* A shared buffer whose contents outlive a segment that ends without a grid
 * barrier. Each invocation saves every size'th element, starting at its index
 * in the workgroup. */
typedef struct carried {
  uint32_t buffer;
  uint32_t elements;   /* elements of the buffer, in accessed width */
  uint32_t each;       /* elements that one invocation saves */
  uint32_t words;      /* words per element */
  uint32_t spill_word; /* first of each * words spill words */
  uint8_t *how;        /* per segment: RESTORES, SAVES */
} carried;

enum { RESTORES = 1, SAVES = 2 };

typedef struct splitter {
  vyre__lir_writer *lir;
  const vyre__lir_writer *from;
  vyre_arena *scratch;
  vyre__split *out;
  uint32_t *match;      /* IF, ELSE, LOOP: matching marker; END: its opener */
  uint32_t *home;       /* per instruction: its segment, or NO_PHASE */
  uint8_t *cost;        /* per value: instructions to recompute it, up to CHEAP;
                         * COSTLY: more; NEVER: the value could differ */
  uint8_t *wanted;      /* per value: the host computes it */
  uint32_t *spill_word; /* per value: its spill word, or NO_PHASE */
  uint32_t *var_word;   /* per variable: its spill word, or NO_PHASE */
  uint32_t *var_segment; /* per variable: the segment that accesses it */
  uint32_t *var_set;     /* per variable: segment + 1 that sets it */
  uint32_t *var_loop;    /* per variable: the host loop that it counts */
  uint8_t *has_grid;     /* per LOOP: contains a grid barrier */
  vyre__val *map;
  uint32_t *map_stamp; /* per value: segment + 1 for which `map` is valid */
  segment *segments;
  size_t segment_count, segment_capacity;
  host_loop *loops;
  size_t loop_count, loop_capacity;
  uint32_t *barriers; /* index of the step after each grid barrier */
  size_t barrier_count, barrier_capacity;
  carried *carried;
  size_t carried_count;
  uint32_t words;
  uint32_t alive_word;
  uint32_t now; /* segment that is being written */
  vyre__val invocation, invocations, local;
} splitter;

vyre__val split_op2(splitter *s, vyre__lir_op op, vyre_type type, vyre__val a,
                    vyre__val b);
vyre__val split_u32(splitter *s, uint32_t value);

/* Emits the index of a spill word of this invocation. */
vyre__val split_word_index(splitter *s, uint32_t spill_word);

/* Emits a store to, or a load from, the spill buffer. */
void split_store_at(splitter *s, vyre__val at, vyre__val value);
vyre__val split_load_at(splitter *s, vyre__val at);

/* --- phase_split_shared.c ------------------------------------------------- */

/* Finds the shared buffers that outlive a segment, and what each segment must
 * do for them. Returns false if it finds none, or without memory. */
bool split_find_carried(splitter *s);

/* Reserves spill words for these buffers, or fails. */
void split_carry(splitter *s);

/* Emit the code at the begin and the end of the current segment, and the body
 * of a segment that clears. */
void split_restore(splitter *s);
void split_save(splitter *s);
void split_clear(splitter *s);

#endif
