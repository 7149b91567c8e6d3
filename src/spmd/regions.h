/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How one thread runs the invocations of a workgroup.
 *
 * All invocations must reach a barrier before one goes on. So a phase is cut at
 * its barriers: a run of instructions without one inside is done by a loop over
 * the invocations, and what is around (an `if` or a loop that has a barrier in
 * it, which validation proves to be taken by all or by none) is done once for
 * the workgroup. The result is a tree of parts:
 *
 *     run        instructions, for every invocation
 *     if, loop   with lists of parts inside
 *     barrier    nothing to do for one thread; a fence for others
 *     jump       break, continue or exit of the whole workgroup
 *
 * A run is cut again, into pieces, at an IF that is hardly ever taken: what
 * comes before and after is then a loop without branches, which vectorises, and
 * the rare piece runs for those that need it. Pieces go over the invocations in
 * strips along x, so that what lives across them stays in the nearest cache. A
 * piece may begin and end inside of IFs (never inside of loops): those that are
 * open at its begin are opened again, those open at its end closed.
 *
 * A value that is used in another piece than its own is kept, or made again
 * where that is cheap; vyre__storage says how. OUT_OF_FUEL ends its block: the
 * whole dispatch is over, and what comes after in the block is not needed. */
#ifndef VYRE_SPMD_REGIONS_H
#define VYRE_SPMD_REGIONS_H

#include "vyre/memory.h"

#include "lir/lir.h"

enum { VYRE__STRIP = 64 }; /* invocations a strip, at most */

typedef enum vyre__storage {
  VYRE__STORAGE_LOCAL,         /* it dies in its piece */
  VYRE__STORAGE_REMATERIALIZE, /* pure and cheap: made again in each piece that uses it,
                         see vyre__subregion; and local in its own */
  VYRE__STORAGE_UNIFORM, /* the same for the workgroup: made once, before the run
                         that has it. Variables: one for the workgroup */
  VYRE__STORAGE_BROADCAST, /* a condition of the workgroup that is not known to be
                         uniform here, but was proven to be: every invocation
                         writes the same to one place */
  VYRE__STORAGE_ARRAY,     /* an array, one element an invocation of a strip */
  VYRE__STORAGE_GROUP, /* an array, one element an invocation of the workgroup */
} vyre__storage;

/* What there is to know about an instruction of the phase. */
typedef struct vyre__inst_info {
  uint32_t parent; /* IF, ELSE, LOOP or STEP whose block it is in; 0: none. That
                      of a STEP is its LOOP, of an ELSE what is around the IF */
  uint32_t mate;   /* IF: its ELSE or END; LOOP: its STEP; ELSE, STEP: the END;
                      END: the IF or LOOP */
  uint32_t subregion; /* 0: done by the workgroup, not by invocations */
  uint32_t uses; /* in its own piece; 0 and not kept: need not be made there */
  uint8_t storage; /* vyre__storage; meaningful if needed */
  bool is_needed;  /* somebody sees what it does or gives */
  bool is_uniform; /* all invocations that get here have the same value */
  bool is_leaf;    /* has a name everywhere: a constant, an id, a length ... */
  bool is_reached; /* not behind a jump in its block */
  bool sets_done;  /* EXIT, CONTINUE in a piece: later pieces must know */
} vyre__inst_info;

typedef struct vyre__subregion {
  uint32_t begin, end;  /* instructions */
  uint32_t region;      /* the run that it is of */
  uint32_t first_remat; /* remake_count values from here on in remakes: to be
                          made at its begin, in this order */
  uint32_t remat_count;
  bool is_rare;    /* one IF .. END, hardly ever taken */
  bool tests_done; /* some invocations may be done already */
  bool is_empty;   /* nothing to do in a loop over invocations */
} vyre__subregion;

typedef enum vyre__region_kind {
  VYRE__REGION_NONE,
  VYRE__REGION_PARALLEL,
  VYRE__REGION_IF,
  VYRE__REGION_LOOP,
  VYRE__REGION_BARRIER,
  VYRE__REGION_JUMP,
} vyre__region_kind;

typedef struct vyre__region {
  uint8_t kind;      /* vyre__region_kind */
  bool is_empty;     /* RUN: nothing to loop for (uniform ones may be there) */
  bool has_continue; /* LOOP: some JUMP goes to its step */
  bool clears_done;  /* LOOP: at its step all invocations go on again */
  uint32_t begin, end; /* instructions, markers included */
  uint32_t inner;      /* IF: then, LOOP: body; first part of a list, or 0 */
  uint32_t other;      /* IF: else, LOOP: step */
  uint32_t next;       /* in the same list, or 0 */
  uint32_t first_subregion,
      subregion_count; /* RUN; more than one: go in strips */
} vyre__region;

typedef struct vyre__regions {
  const vyre__lir_kernel *kernel;
  uint32_t begin, end; /* the phase */
  uint32_t invocations;
  vyre__region *regions; /* [0] is none */
  uint32_t region_count;
  uint32_t first;              /* part of the phase, or 0 */
  vyre__subregion *subregions; /* [0] is none */
  uint32_t subregion_count;
  vyre__val *remats;
  uint32_t remat_count;
  vyre__inst_info *infos; /* of instruction begin + i; vyre__inst_info_of */
  uint8_t
      *var_storage; /* vyre__storage of each variable; one that the phase does
                         not need is LOCAL and not var_needed */
  bool *var_needed;
  uint8_t done_storage; /* where it is kept which invocations are done: LOCAL
                        (nobody asks), STRIP or GROUP */
} vyre__regions;

static inline vyre__inst_info *vyre__inst_info_of(const vyre__regions *r,
                                                  vyre__val v) {
  return &r->infos[v - r->begin];
}

/* The END of the IF or LOOP that opener @p at (an IF, ELSE, LOOP or STEP)
 * belongs to. */
uint32_t vyre__end_of(const vyre__regions *r, uint32_t at);

/* Operands of an instruction into @p out; how many there are. Absent ones are
 * left out. */
uint32_t vyre__lir_operands(const vyre__lir_inst *inst, vyre__val out[4]);

/* Cuts @p phase of @p kernel (lowered all the way). Rare IFs are cut out only if
 * @p splits_rare. *out lives in @p arena.
 * Errors: VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT if markers do not match. */
vyre_code vyre__regions_build(const vyre__lir_kernel *kernel,
                              vyre__lir_phase phase, bool splits_rare,
                              vyre_arena *arena, vyre__regions *out,
                              vyre_status *st);

#endif
