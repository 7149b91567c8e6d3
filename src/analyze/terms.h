/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Values under names of their own, and what is known to be less than what.
 *
 * A term stands for one integer: that of its type, not modulo anything. Two
 * expressions that always have the same value have the same term, whatever
 * locals they are written with. So a guard goes on saying what it said: when a
 * variable changes, it gets another term. Of terms that operations make, the
 * operation wraps as the type does; every rule about them says why it does not,
 * or does not mind. */
#ifndef VYRE_ANALYZE_TERMS_H
#define VYRE_ANALYZE_TERMS_H

#include "vyre/memory.h"

#include "analyze/interval.h"

typedef uint32_t vyre__term; /* 0 is none */

typedef struct vyre__term_info {
  uint8_t op;   /* NONE: just some value */
  uint8_t type; /* that it is computed in */
  uint32_t a, b, c;
  vyre__interval range;  /* here: see vyre__terms_narrow */
  uint32_t next_alike;   /* with the same hash */
  uint32_t above, below; /* newest fact with it on the left, on the right */
  uint32_t divided;      /* newest quotient with it as the divisor ... */
  uint32_t next_divided; /* ... and of a quotient, the one before it */
} vyre__term_info;

/* p + by <= q. */
typedef struct vyre__term_fact {
  vyre__term p, q;
  vyre__wide by;
  uint32_t next_above, next_below; /* the one before with that p, that q */
} vyre__term_fact;

typedef struct vyre__term_undo {
  vyre__term term;
  vyre__interval range;
} vyre__term_undo;

typedef struct vyre__terms {
  vyre_allocator allocator;
  vyre__term_info *items; /* [0] is none */
  size_t count, capacity;
  uint32_t *buckets; /* a power of two of them */
  size_t bucket_count;
  vyre__term_fact *facts; /* [0] is none */
  size_t fact_count, fact_capacity;
  vyre__term_undo *undo;
  size_t undo_count, undo_capacity;
  unsigned budget; /* steps that the question at hand may still take */
  bool no_memory;  /* then nothing that was said since counts */
} vyre__terms;

/* What is known up to here, to go back to. */
typedef struct vyre__terms_mark {
  size_t facts, undo;
} vyre__terms_mark;

/* False without memory: there is nothing to finish then. */
bool vyre__terms_init(vyre__terms *terms, vyre_allocator allocator);
void vyre__terms_deinit(vyre__terms *terms);

/* Some value of the type, of which nothing is known. */
vyre__term vyre__terms_fresh(vyre__terms *terms, vyre_type type);

vyre__term vyre__terms_literal(vyre__terms *terms, vyre__wide value);

/* What @p op gives for these operands, always the same: terms, or what else the
 * operation is made of (a buffer, an axis). */
vyre__term vyre__terms_make(vyre__terms *terms, vyre__op op, vyre_type type,
                            const uint32_t operands[3]);

/* From here on, the term is also in @p range. */
void vyre__terms_narrow(vyre__terms *terms, vyre__term term,
                        vyre__interval range);

/* From here on, the condition holds, or does not. */
void vyre__terms_suppose(vyre__terms *terms, vyre__term condition, bool holds);

/* From here on, p + by <= q. */
void vyre__terms_assume(vyre__terms *terms, vyre__term p, vyre__wide by,
                        vyre__term q);

vyre__terms_mark vyre__terms_here(const vyre__terms *terms);
void vyre__terms_rewind(vyre__terms *terms, vyre__terms_mark mark);

/* Whether a < b follows from what is known. */
bool vyre__terms_less(vyre__terms *terms, vyre__term a, vyre__term b);

/* For the parts of this only: a term if there is one, else 0. */
vyre__term vyre__terms_find(const vyre__terms *terms, vyre__op op,
                            vyre_type type, const uint32_t operands[3]);

#endif
