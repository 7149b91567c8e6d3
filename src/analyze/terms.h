/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Symbolic terms for values, and known inequalities between them.
 *
 * A term stands for one mathematical integer, not for a value modulo 2^n. Two
 * expressions that always have the same value share a term, whatever locals
 * they use. So guards stay true when a variable changes: it gets another
 * term. Terms of operations wrap like their type; every rule about them shows
 * that they do not wrap, or that it does not matter. */
#ifndef VYRE_ANALYZE_TERMS_H
#define VYRE_ANALYZE_TERMS_H

#include "vyre/memory.h"

#include "analyze/interval.h"

typedef uint32_t vyre__term; /* 0: no term */

typedef struct vyre__term_info {
  uint8_t op;    /* NONE: an unknown value */
  uint8_t type;  /* type that it is computed in */
  bool is_power; /* at most one bit is set: 0 or a power of two */
  uint32_t a, b, c;
  vyre__interval range;  /* current range; see vyre__terms_narrow */
  uint32_t next_alike;   /* next entry of the hash chain */
  uint32_t above, below; /* newest fact with it on the left, on the right */
  uint32_t divided;      /* newest quotient with this divisor */
  uint32_t next_divided; /* of a quotient: the previous one with this divisor */
} vyre__term_info;

/* Fact: p + by <= q. */
typedef struct vyre__term_fact {
  vyre__term p, q;
  vyre__wide by;
  uint32_t next_above, next_below; /* previous fact with that p, with that q */
} vyre__term_fact;

typedef struct vyre__term_undo {
  vyre__term term;
  vyre__interval range;
  bool is_power;
} vyre__term_undo;

typedef struct vyre__terms {
  vyre_allocator allocator;
  vyre__term_info *items; /* [0] is unused */
  size_t count, capacity;
  uint32_t *buckets; /* number is a power of two */
  size_t bucket_count;
  vyre__term_fact *facts; /* [0] is unused */
  size_t fact_count, fact_capacity;
  vyre__term_undo *undo;
  size_t undo_count, undo_capacity;
  unsigned budget; /* remaining steps of the current proof */
  bool no_memory;  /* facts recorded since are invalid */
} vyre__terms;

/* Position in the list of facts, for vyre__terms_rewind. */
typedef struct vyre__terms_mark {
  size_t facts, undo;
} vyre__terms_mark;

/* Returns false if memory is exhausted; nothing has to be freed then. */
bool vyre__terms_init(vyre__terms *terms, vyre_allocator allocator);
void vyre__terms_deinit(vyre__terms *terms);

/* Returns a new term for an unknown value of the type. */
vyre__term vyre__terms_fresh(vyre__terms *terms, vyre_type type);

vyre__term vyre__terms_literal(vyre__terms *terms, vyre__wide value);

/* Returns the term of @p op for these operands; equal calls return equal
 * terms. Operands are terms or other contents of the node (a buffer, an
 * axis). */
vyre__term vyre__terms_make(vyre__terms *terms, vyre__op op, vyre_type type,
                            const uint32_t operands[3]);

/* Records that the term is also in @p range. */
void vyre__terms_narrow(vyre__terms *terms, vyre__term term,
                        vyre__interval range);

/* Records that at most one bit of the term is set. */
void vyre__terms_suppose_power(vyre__terms *terms, vyre__term term);

/* Records that the condition holds, or that it does not. */
void vyre__terms_suppose(vyre__terms *terms, vyre__term condition, bool holds);

/* Records p + by <= q. */
void vyre__terms_assume(vyre__terms *terms, vyre__term p, vyre__wide by,
                        vyre__term q);

vyre__terms_mark vyre__terms_here(const vyre__terms *terms);
void vyre__terms_rewind(vyre__terms *terms, vyre__terms_mark mark);

/* Returns true if a < b follows from the recorded facts. */
bool vyre__terms_less(vyre__terms *terms, vyre__term a, vyre__term b);

/* Returns true if 0 <= a follows from the recorded facts. */
bool vyre__terms_natural(vyre__terms *terms, vyre__term a);

/* Returns true if 0 <= index < length follows, for an index that is a sum
 * (linear.c). */
bool vyre__terms_sum_inside(vyre__terms *terms, vyre__term index,
                            vyre__term length);

/* For the files of this module only. */

/* Returns true if a + by <= b follows. */
bool vyre__terms_at_most(vyre__terms *terms, vyre__term a, vyre__wide by,
                         vyre__term b);
/* Returns true if (y + by) * w <= b follows, for w >= 0. */
bool vyre__terms_rows_fit(vyre__terms *terms, vyre__term y, vyre__wide by,
                          vyre__term w, vyre__term b);
/* Returns an existing term, or 0. */
vyre__term vyre__terms_find(const vyre__terms *terms, vyre__op op,
                            vyre_type type, const uint32_t operands[3]);

#endif
