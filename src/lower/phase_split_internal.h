/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What phase_split.c and phase_split_shared.c share. */
#ifndef VYRE_LOWER_PHASE_SPLIT_INTERNAL_H
#define VYRE_LOWER_PHASE_SPLIT_INTERNAL_H

#include "lower/legalize_control.h"

enum { NO_PHASE = UINT32_MAX };

/* A run of the source that becomes a phase. */
typedef struct part {
  uint32_t begin, end;
  uint32_t loop; /* innermost host loop around it, or NO_PHASE */
  bool is_first; /* of a round of that loop */
  bool resets;   /* only makes a loop's flag ready */
  bool clears;   /* only makes what is kept of shared memory zero */
} part;

typedef struct host_loop {
  uint32_t at;        /* the LOOP in the source */
  uint32_t outer;     /* host loop around it, or NO_PHASE */
  uint32_t skip_slot; /* flag, or NO_PHASE if nobody leaves it early */
} host_loop;

/* A shared buffer that lives on where a part ends without a grid barrier: each
 * invocation keeps every size'th element, from its own place in the workgroup on. */
typedef struct carried {
  uint32_t buffer;
  uint32_t elements; /* of the buffer, as they are accessed */
  uint32_t each;     /* elements that an invocation keeps */
  uint32_t words;    /* of an element */
  uint32_t slot;     /* the first of each * words */
  uint8_t *how;      /* per part: RESTORES, SAVES */
} carried;

enum { RESTORES = 1, SAVES = 2 };

typedef struct splitter {
  vyre__lir_writer *low;
  const vyre__lir_writer *from;
  vyre_arena *scratch;
  vyre__split *out;
  uint32_t *match;    /* of IF, ELSE, LOOP; of END: its LOOP or IF */
  uint32_t *home;     /* per instruction: its part, or NO_PHASE */
  uint8_t *cost;      /* per value: up to CHEAP; COSTLY: more; NEVER: it may
                      not be the same again */
  uint8_t *wanted;    /* per value: the host computes it */
  uint32_t *slot;     /* per value: where it is kept, or NO_PHASE */
  uint32_t *var_slot; /* per variable */
  uint32_t *var_part; /* per variable: the part that touches it */
  uint32_t *var_set;  /* per variable: part + 1 that sets it */
  uint32_t *var_loop; /* per variable: the host loop that it counts */
  uint8_t *has_grid;  /* per LOOP: a grid barrier is inside */
  vyre__val *map;
  uint32_t *map_stamp; /* per value: part + 1 in which `map` holds */
  part *parts;
  size_t part_count, part_capacity;
  host_loop *loops;
  size_t loop_count, loop_capacity;
  uint32_t *barriers; /* grid barriers: before which step they are */
  size_t barrier_count, barrier_capacity;
  carried *carried;
  size_t carried_count;
  uint32_t words;
  uint32_t alive_slot;
  uint32_t now; /* part that is being written */
  vyre__val invocation, invocations, local;
} splitter;

vyre__val split_op2(splitter *s, vyre__lir_op op, vyre_type type, vyre__val a,
                    vyre__val b);
vyre__val split_u32(splitter *s, uint32_t value);

/* The place of a word that an invocation keeps, in the hidden buffer. */
vyre__val split_place(splitter *s, uint32_t slot);

/* A word of the hidden buffer. */
void split_store_at(splitter *s, vyre__val at, vyre__val value);
vyre__val split_load_at(splitter *s, vyre__val at);

/* --- phase_split_shared.c --- */

/* Which shared buffers live on, and what each part has to do about them. False:
 * none does, or there is no memory. */
bool split_find_carried(splitter *s);

/* Slots for them, or a failure. */
void split_carry(splitter *s);

/* At the begin and at the end of the part that is being written; all of a part
 * that clears. */
void split_restore(splitter *s);
void split_save(splitter *s);
void split_clear(splitter *s);

#endif
