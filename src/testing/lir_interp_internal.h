/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parts of the LIR interpreter that the schedule interpreter shares. */
#ifndef VYRE_TESTING_LIR_INTERP_INTERNAL_H
#define VYRE_TESTING_LIR_INTERP_INTERNAL_H

#include "testing/lir_interp.h"

typedef struct interp_memory {
  /* copy with padding, so that a word access at the end is valid */
  uint8_t *bytes;
  size_t capacity;
  uint64_t size;   /* bytes of the buffer, without padding */
  uint32_t length; /* result of LEN */
} interp_memory;

/* Targets of control instructions. */
typedef struct match {
  /* IF: its ELSE or END; ELSE, LOOP: the END; BREAK, CONTINUE: the LOOP;
   * END: start of the next iteration, or 0 for the END of an IF */
  uint32_t end;
  /* LOOP: its STEP. While targets are computed, for open blocks: the
   * enclosing block */
  uint32_t step;
} match;

typedef struct invocation {
  uint32_t at; /* next instruction */
  uint32_t id[3];
} invocation;

/* Result of an AGREE of the first invocation. */
typedef struct agreement {
  uint32_t at;
  uint64_t value;
} agreement;

typedef enum stop { STOP_END, STOP_BARRIER, STOP_FAILED } stop;

typedef struct vyre__interp {
  const vyre__lir_kernel *k;
  const vyre__lir_launch *launch;
  vyre_allocator allocator;
  vyre_status *st;
  vyre_code code; /* code of the failure */

  interp_memory *memories;
  size_t memory_capacity;
  match *matches;
  size_t match_capacity;
  invocation *invocations;
  size_t invocation_capacity;
  uint64_t *values; /* values of all invocations of the workgroup */
  size_t value_capacity;
  uint64_t *vars;
  size_t var_capacity;
  uint64_t *host; /* values of the host range */
  size_t host_capacity;
  uint64_t *loop_values; /* values of the grid loops, then their bounds */
  size_t loop_capacity;

  agreement *agreed; /* AGREE results since the last barrier, in order */
  size_t agreed_count, agreed_capacity;
  size_t agreed_next; /* next result for the current invocation */

  uint32_t total_spill_words; /* sum over all invocations */
  uint32_t group[3];
  uint64_t instructions_left; /* before the dispatch is stopped */
  invocation on_host;
} vyre__interp;

vyre_code vyre__interp_fail(vyre__interp *m, uint32_t at, const char *problem);
vyre_code vyre__interp_out_of_fuel(vyre__interp *m);
/* Runs the instruction at @p at, which is not a control instruction, for
 * invocation @p i. @p values: those of the invocation, from instruction
 * @p begin on. Returns a problem, or NULL. */
const char *vyre__interp_step(vyre__interp *m, const invocation *i, uint32_t at,
                              uint64_t *values, uint64_t *vars, uint32_t begin);
/* Returns what an atomic operation stores. */
uint64_t vyre__interp_atomic(unsigned op, unsigned width, uint64_t old,
                             uint64_t a, uint64_t b);
/* Prepares shared memory for a workgroup. */
void vyre__interp_begin_group(vyre__interp *m);
/* Returns the initial contents of a variable. */
uint64_t vyre__interp_poison(const vyre__interp *m, unsigned type);

#endif
