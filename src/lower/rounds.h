/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which loops of a kernel count their rounds, and when.
 *
 * An invocation may take `max_iterations` rounds of all its loops together. The
 * rule, for compiled code:
 *
 *   - A kernel in which all rounds of all loops of an invocation are proven to be
 *     at most VYRE__FREE_ROUNDS in sum counts none of them, however few
 *     the dispatch allows.
 *   - Any other kernel counts every round of every loop. It runs out of fuel in
 *     exactly the dispatches in which `ref` does, though not always at the same
 *     place: where it is known how many rounds must come, they are counted all
 *     at once. A `for` that nobody leaves early is charged at its entry, and so
 *     is a `while` that halves a number until it is 0; rounds inside of a round,
 *     if there are always as many, together with it.
 *
 * So a loop without an exit costs nothing a round, and stays as easy to make
 * vectors of. Others cost a compare and a subtraction a round. */
#ifndef VYRE_LOWER_ROUNDS_H
#define VYRE_LOWER_ROUNDS_H

#include "analyze/ranges.h"

enum { VYRE__FREE_ROUNDS = 1 << 20 };

/* Of a FOR or WHILE. */
typedef struct vyre__loop_rounds {
  uint64_t inside; /* rounds of loops inside of each round, always as many, or
                      VYRE__ROUNDS_VARY */
  uint64_t most;   /* WHILE: of its own rounds; UINT64_MAX: not known */
  bool is_left;    /* by break or return, perhaps */
  uint8_t shift; /* WHILE: its test is that local `halved`, a u32, is not 0, and
                      each round shifts that right by so much; 0: it is not so */
  uint32_t halved;
} vyre__loop_rounds;

#define VYRE__ROUNDS_VARY UINT64_MAX

/* Looks at the kernel of a program without calls. *out, one a node and filled in
 * for loops, lives in @p arena; NULL if there are none. *counts: rounds must be
 * counted. False without memory. */
bool vyre__rounds_find(const vyre_program *program, const vyre__ranges *ranges,
                       vyre_arena *arena, vyre__loop_rounds **out,
                       bool *counts);

#endif
