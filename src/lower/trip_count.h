/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Decides which loops of a kernel count their rounds, and when.
 *
 * An invocation may take `max_iterations` rounds of all its loops together. Every
 * device runs out of fuel in exactly the same dispatches as `ref`. Compiled code
 * achieves that without counting each round one by one:
 *
 *   - If the rounds of all loops of an invocation are proven to be at most
 *     VYRE__UNCOUNTED_ITERATIONS in sum, the code counts none of them. It serves every
 *     dispatch whose limit is not below the proven bound. For a lower limit the
 *     driver compiles the kernel again with vyre__target.counts_rounds.
 *   - Any other kernel, and one with counts_rounds, counts every round of every
 *     loop. It may run out at another place than `ref`: where the number of rounds
 *     to come is known, they are charged all at once. A `for` without an early
 *     exit is charged at its entry, and so is a `while` that halves a number until
 *     it is 0. If the rounds inside a round are always as many, they are charged
 *     together with it.
 *
 * A loop without an early exit thus costs nothing per round and vectorises as
 * before. Other counted loops cost a compare and a subtraction per round. */
#ifndef VYRE_LOWER_TRIP_COUNT_H
#define VYRE_LOWER_TRIP_COUNT_H

#include "vyre/status.h"

#include "analyze/ranges.h"

enum { VYRE__UNCOUNTED_ITERATIONS = 1 << 20 };

/* Of a FOR or WHILE. */
typedef struct vyre__trip_count {
  uint64_t inside; /* rounds of loops inside of each round, always as many, or
                      VYRE__TRIP_COUNT_VARIES */
  uint64_t most;   /* WHILE: of its own rounds; UINT64_MAX: not known */
  bool is_left;    /* by break or return, perhaps */
  uint8_t shift; /* WHILE: its test is that local `halved`, a u32, is not 0, and
                      each round shifts that right by so much; 0: it is not so */
  uint32_t halved;
} vyre__trip_count;

#define VYRE__TRIP_COUNT_VARIES UINT64_MAX

/* Examines the kernel of a program without calls. *out has an entry for each node,
 * filled in for loops, and lives in @p arena; NULL if there are no loops. *most is
 * the proven bound of an invocation's rounds; UINT64_MAX if there is none. Returns
 * false without memory. */
bool vyre__trip_count_find(const vyre_program *program,
                           const vyre__ranges *ranges, vyre_arena *arena,
                           vyre__trip_count **out, uint64_t *most);

/* Computes the same bound for a valid program with calls, in a workgroup of that
 * size. Code that was lowered without counts_rounds counts rounds if and only if
 * *most is above VYRE__UNCOUNTED_ITERATIONS.
 * Errors: VYRE_OUT_OF_MEMORY. */
VYRE_NODISCARD vyre_code vyre__trip_count_bound(const vyre_program *program,
                                                const uint32_t workgroup[3],
                                                uint64_t *most,
                                                vyre_status *st);

#endif
