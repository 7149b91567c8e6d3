/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Splits a phase into parallel regions, so that one thread can run all
 * invocations of a workgroup.
 *
 * All invocations must reach a barrier before any continues. A phase is
 * therefore cut at its barriers. Code without a barrier runs in a loop over the
 * invocations. An `if` or loop that contains a barrier runs once for the
 * workgroup; validation proves that all invocations take it or none. The result
 * is a tree of regions:
 *
 *     parallel   instructions, for every invocation
 *     if, loop   with lists of regions inside
 *     barrier    nothing to do for one thread; a fence for others
 *     jump       break, continue or exit of the full workgroup
 *
 * A parallel region is cut further into subregions at an IF that is hardly ever
 * taken. The code before and after it is then a loop without branches, which
 * vectorises, and the rare subregion runs only for the invocations that need
 * it. Subregions cover the invocations in strips along x, so that values that
 * live across them stay in the first-level cache. A subregion may begin and end
 * inside IFs (never inside loops). IFs that are open at its begin are reopened,
 * and those open at its end are closed.
 *
 * A value that is used in another subregion is stored, or rematerialised if
 * that is cheap; see vyre__storage. OUT_OF_FUEL ends its block: the dispatch
 * ends, and the rest of the block is unreachable. */
#ifndef VYRE_SPMD_REGIONS_H
#define VYRE_SPMD_REGIONS_H

#include "vyre/memory.h"

#include "lir/lir.h"

enum { VYRE__STRIP = 64 }; /* maximum number of invocations in a strip */

typedef enum vyre__storage {
  VYRE__STORAGE_LOCAL,         /* used only in its subregion */
  VYRE__STORAGE_REMATERIALIZE, /* Pure and cheap: recomputed in each subregion
                                * that uses it (see vyre__subregion); local in
                                * its own */
  VYRE__STORAGE_UNIFORM,   /* Equal for the workgroup: computed once, before its
                            * region. Variables: one per workgroup */
  VYRE__STORAGE_BROADCAST, /* A condition of the workgroup that validation
                            * proved uniform, although this analysis did not:
                            * every invocation writes the same value to one
                            * location */
  VYRE__STORAGE_ARRAY,     /* array with one element per invocation of a
                            * strip */
  VYRE__STORAGE_GROUP,     /* array with one element per invocation of the
                            * workgroup */
} vyre__storage;

/* Properties of an instruction of the phase. */
typedef struct vyre__inst_info {
  uint32_t parent; /* IF, ELSE, LOOP or STEP that opens its block; 0: none. For
                    * a STEP its LOOP, for an ELSE the block around the IF */
  uint32_t mate;   /* IF: its ELSE or END; LOOP: its STEP; ELSE, STEP: the END;
                    * END: the IF or LOOP */
  uint32_t subregion; /* 0: executed by the workgroup, not per invocation */
  uint32_t uses;   /* uses in its own subregion; 0 and not stored: not computed
                    * there */
  uint8_t storage; /* vyre__storage; valid if is_needed */
  bool is_needed;  /* its result or effect is used */
  bool is_uniform; /* equal for all invocations that reach it */
  bool is_leaf;    /* available everywhere: a constant, an id, a length ... */
  bool is_reached; /* not after a jump in its block */
  bool sets_done;  /* EXIT, CONTINUE in a subregion: later subregions must test
                    * it */
} vyre__inst_info;

typedef struct vyre__subregion {
  uint32_t begin, end;  /* instructions */
  uint32_t region;      /* index of its parallel region */
  uint32_t first_remat; /* The first of remat_count values in remats, which are
                         * recomputed at its begin, in this order */
  uint32_t remat_count;
  bool is_rare;    /* one IF .. END, hardly ever taken */
  bool tests_done; /* some invocations may have ended already */
  bool is_empty;   /* its loop over invocations has no work */
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
  uint8_t kind;        /* vyre__region_kind */
  bool is_empty;       /* PARALLEL: no work in its loops (uniform values may
                        * remain) */
  bool has_continue;   /* LOOP: a JUMP goes to its step */
  bool clears_done;    /* LOOP: all invocations are active again at its step */
  uint32_t begin, end; /* instructions, including markers */
  uint32_t inner;      /* IF: then, LOOP: body; first region of a list, or 0 */
  uint32_t other;      /* IF: else, LOOP: step */
  uint32_t next;       /* next in the same list, or 0 */
  uint32_t first_subregion,
      subregion_count; /* PARALLEL; more than one: run in strips */
} vyre__region;

typedef struct vyre__regions {
  const vyre__lir_kernel *kernel;
  uint32_t begin, end; /* range of the phase */
  uint32_t invocations;
  vyre__region *regions; /* [0] is unused */
  uint32_t region_count;
  uint32_t first;              /* first region of the phase, or 0 */
  vyre__subregion *subregions; /* [0] is unused */
  uint32_t subregion_count;
  vyre__val *remats;
  uint32_t remat_count;
  vyre__inst_info *infos; /* info of instruction begin + i; see
                           * vyre__inst_info_of */
  uint8_t
      *var_storage; /* vyre__storage of each variable; a variable that the phase
                     * does not need is LOCAL and not var_needed */
  bool *var_needed;
  uint8_t done_storage; /* storage of the flag "invocation has ended": LOCAL
                         * (never tested), ARRAY or GROUP */
} vyre__regions;

static inline vyre__inst_info *vyre__inst_info_of(const vyre__regions *r,
                                                  vyre__val v) {
  return &r->infos[v - r->begin];
}

/* Returns the END that belongs to @p at, an IF, ELSE, LOOP or STEP. */
uint32_t vyre__end_of(const vyre__regions *r, uint32_t at);

/* Copies the operands of an instruction to @p out, without absent ones. Returns
 * their number. */
uint32_t vyre__lir_operands(const vyre__lir_inst *inst, vyre__val out[4]);

/* Builds the regions of @p phase of @p kernel, which must be fully lowered.
 * Rare IFs become subregions only if @p splits_rare. *out lives in @p arena.
 * Errors: VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT if markers do not match. */
vyre_code vyre__regions_build(const vyre__lir_kernel *kernel,
                              vyre__lir_phase phase, bool splits_rare,
                              vyre_arena *arena, vyre__regions *out,
                              vyre_status *st);

#endif
