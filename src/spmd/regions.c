/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The tree of parts: markers matched, what the workgroup does as one, and rare
 * pieces cut out. What is kept is in region_values.c. */
#include "spmd/regions.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "spmd/regions_internal.h"

typedef struct builder {
  vyre__regions *r;
  bool *is_group;   /* IF, LOOP and jumps that the workgroup does as one */
  uint32_t *points; /* before each instruction: those that all must reach */
  bool splits_rare;
} builder;

static bool *group_at(const builder *b, uint32_t at) {
  return &b->is_group[at - b->r->begin];
}

uint32_t vyre__lir_operands(const vyre__lir_inst *inst, vyre__val out[4]) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < vyre__lir_ops[inst->op].operands; i++) {
    if (inst->v[i]) out[count++] = inst->v[i];
  }
  return count;
}

uint32_t vyre__end_of(const vyre__regions *r, uint32_t at) {
  while (!inst_is(r, at, VYRE__LIR_END)) at = vyre__inst_info_of(r, at)->mate;
  return at;
}

/* --- markers ----------------------------------------------------------------*/

static vyre_code bad_markers(const vyre__regions *r, uint32_t at,
                             vyre_status *st) {
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                   "report this: the lowering made a kernel that is broken",
                   "instruction %u (%s) of kernel '%.100s' has no match",
                   (unsigned)at, vyre__lir_ops[inst_at(r, at)->op].text,
                   r->kernel->name);
}

/* ELSE or STEP at @p at closes the block of @p open and begins another. */
static bool turn(vyre__regions *r, uint32_t at, uint32_t open) {
  vyre__lir_op want =
      inst_is(r, at, VYRE__LIR_ELSE) ? VYRE__LIR_IF : VYRE__LIR_LOOP;
  if (!open || !inst_is(r, open, want)) return false;
  vyre__inst_info *role = vyre__inst_info_of(r, at);
  vyre__inst_info_of(r, open)->mate = at;
  role->parent =
      want == VYRE__LIR_LOOP ? open : vyre__inst_info_of(r, open)->parent;
  role->is_reached = vyre__inst_info_of(r, open)->is_reached;
  return true;
}

/* END at @p at closes @p open, an IF, ELSE, LOOP or STEP. */
static void close_block(vyre__regions *r, uint32_t at, uint32_t open) {
  vyre__inst_info *role = vyre__inst_info_of(r, at);
  vyre__inst_info_of(r, open)->mate = at;
  uint32_t begin = open;
  if (inst_is(r, open, VYRE__LIR_STEP)) {
    begin = vyre__inst_info_of(r, open)->parent;
  } else if (inst_is(r, open, VYRE__LIR_ELSE)) {
    begin = role->mate; /* noted when the ELSE came */
  }
  role->mate = begin;
  role->parent = vyre__inst_info_of(r, begin)->parent;
  role->is_reached = vyre__inst_info_of(r, begin)->is_reached;
}

/* Fills parent, mate and is_reached. The IF of an ELSE is on a stack that lives
 * in the mates of ELSEs until their END comes. */
static vyre_code match_markers(vyre__regions *r, vyre_status *st) {
  uint32_t open = 0;
  bool reached = true;
  for (uint32_t at = r->begin; at < r->end; at++) {
    vyre__inst_info *role = vyre__inst_info_of(r, at);
    uint8_t op = inst_at(r, at)->op;
    if (op == VYRE__LIR_ELSE || op == VYRE__LIR_STEP) {
      if (!turn(r, at, open)) return bad_markers(r, at, st);
      if (op == VYRE__LIR_ELSE) role->mate = open;
      reached = role->is_reached;
      open = at;
      continue;
    }
    if (op == VYRE__LIR_END) {
      if (!open) return bad_markers(r, at, st);
      if (inst_is(r, open, VYRE__LIR_ELSE)) {
        role->mate = vyre__inst_info_of(r, open)->mate;
      }
      close_block(r, at, open);
      reached = role->is_reached;
      open = role->parent;
      continue;
    }
    role->parent = open;
    role->is_reached = reached;
    if (op == VYRE__LIR_IF || op == VYRE__LIR_LOOP) open = at;
    if (op_leaves(op)) reached = false;
  }
  return open ? bad_markers(r, open, st) : VYRE_OK;
}

/* --- what the workgroup does as one -----------------------------------------*/

/* The loop that a BREAK or CONTINUE at @p at is of; 0: none. */
static uint32_t loop_around(const vyre__regions *r, uint32_t at) {
  uint32_t open = vyre__inst_info_of(r, at)->parent;
  while (open && !inst_is(r, open, VYRE__LIR_LOOP)) {
    open = vyre__inst_info_of(r, open)->parent;
  }
  return open;
}

/* The IF that an ELSE or an IF stands for. */
static uint32_t if_of(const vyre__regions *r, uint32_t open) {
  return vyre__inst_info_of(r, vyre__end_of(r, open))->mate;
}

/* Everything around @p at, up to @p limit. Whether something was new. */
static bool mark_around(builder *b, uint32_t at, uint32_t limit) {
  bool changed = false;
  uint32_t open = vyre__inst_info_of(b->r, at)->parent;
  while (open && open != limit) {
    bool *mark = group_at(b, if_of(b->r, open));
    changed |= !*mark;
    *mark = true;
    open = vyre__inst_info_of(b->r, open)->parent;
  }
  return changed;
}

/* Whether something that all must reach comes after @p at, before control leaves
 * the block of @p limit (0: the phase). */
static bool point_follows(const builder *b, uint32_t at, uint32_t limit) {
  const vyre__regions *r = b->r;
  for (;;) {
    uint32_t open = vyre__inst_info_of(r, at)->parent;
    uint32_t stop = open ? vyre__inst_info_of(r, open)->mate : r->end;
    if (b->points[stop - r->begin] > b->points[at - r->begin]) return true;
    if (!open || open == limit) return false;
    if (opens_loop(r, open) && *group_at(b, if_of(r, open))) return true;
    at = vyre__end_of(r, open);
  }
}

/* Whether the workgroup does jump @p at as one. A break out of a loop with a
 * barrier is so by validation; a continue or an exit only if all must meet
 * again afterwards. */
static bool is_group_jump(const builder *b, uint32_t at) {
  const vyre__regions *r = b->r;
  if (inst_is(r, at, VYRE__LIR_EXIT)) return point_follows(b, at, 0);
  uint32_t loop = loop_around(r, at);
  if (!loop || !*group_at(b, loop)) return false;
  if (inst_is(r, at, VYRE__LIR_BREAK)) return true;
  uint32_t open = vyre__inst_info_of(r, at)->parent;
  while (open != loop && !inst_is(r, open, VYRE__LIR_STEP)) {
    open = vyre__inst_info_of(r, open)->parent;
  }
  return point_follows(b, at, open);
}

static void count_points(builder *b) {
  const vyre__regions *r = b->r;
  uint32_t count = 0;
  for (uint32_t at = r->begin; at < r->end; at++) {
    b->points[at - r->begin] = count;
    if (!vyre__inst_info_of(r, at)->is_reached) continue;
    uint8_t op = inst_at(r, at)->op;
    bool jumps = op == VYRE__LIR_BREAK || op == VYRE__LIR_EXIT;
    count += op == VYRE__LIR_BARRIER || (jumps && *group_at(b, at));
  }
  b->points[r->end - r->begin] = count;
}

/* Loops and ifs with a barrier, then jumps out of them, then what is around
 * those, until nothing is new. */
static void mark_group(builder *b) {
  const vyre__regions *r = b->r;
  for (uint32_t at = r->begin; at < r->end; at++) {
    if (!inst_is(r, at, VYRE__LIR_BARRIER)) continue;
    if (!vyre__inst_info_of(r, at)->is_reached) continue;
    *group_at(b, at) = true;
    mark_around(b, at, 0);
  }
  for (bool changed = true; changed;) {
    changed = false;
    count_points(b);
    for (uint32_t at = r->begin; at < r->end; at++) {
      uint8_t op = inst_at(r, at)->op;
      if (!op_leaves(op) || op == VYRE__LIR_OUT_OF_FUEL) continue;
      if (!vyre__inst_info_of(r, at)->is_reached || *group_at(b, at)) continue;
      if (!is_group_jump(b, at)) continue;
      *group_at(b, at) = true;
      mark_around(b, at, 0);
      changed = true;
    }
  }
}

/* --- parts ------------------------------------------------------------------*/

static uint32_t new_part(builder *b, vyre__region_kind kind, uint32_t begin,
                         uint32_t end, uint32_t **link) {
  vyre__regions *r = b->r;
  uint32_t index = r->region_count++;
  r->regions[index] =
      (vyre__region){.kind = (uint8_t)kind, .begin = begin, .end = end};
  **link = index;
  *link = &r->regions[index].next;
  return index;
}

static uint32_t build_list(builder *b, uint32_t begin, uint32_t end);

/* The part of the IF or LOOP at @p at; gives its end. */
static uint32_t build_nest(builder *b, uint32_t at, uint32_t **link) {
  vyre__regions *r = b->r;
  bool is_if = inst_is(r, at, VYRE__LIR_IF);
  uint32_t end = vyre__end_of(r, at), middle = vyre__inst_info_of(r, at)->mate;
  uint32_t part = new_part(b, is_if ? VYRE__REGION_IF : VYRE__REGION_LOOP, at,
                           end + 1, link);
  uint32_t inner = build_list(b, at + 1, middle);
  uint32_t other = middle < end ? build_list(b, middle + 1, end) : 0;
  r->regions[part].inner = inner;
  r->regions[part].other = other;
  return end + 1;
}

/* The list of parts of instructions [begin, end), a whole block. */
static uint32_t build_list(builder *b, uint32_t begin, uint32_t end) {
  vyre__regions *r = b->r;
  uint32_t first = 0, *link = &first, start = begin;
  for (uint32_t at = begin; at < end;) {
    bool nests = inst_is(r, at, VYRE__LIR_IF) || inst_is(r, at, VYRE__LIR_LOOP);
    if (!*group_at(b, at)) {
      at = nests ? vyre__end_of(r, at) + 1 : at + 1;
      continue;
    }
    if (start < at) new_part(b, VYRE__REGION_PARALLEL, start, at, &link);
    if (nests) {
      at = build_nest(b, at, &link);
    } else {
      bool waits = inst_is(r, at, VYRE__LIR_BARRIER);
      new_part(b, waits ? VYRE__REGION_BARRIER : VYRE__REGION_JUMP, at, at + 1,
               &link);
      at++;
      if (!waits) return first; /* the rest is not reached */
    }
    start = at;
  }
  if (start < end) new_part(b, VYRE__REGION_PARALLEL, start, end, &link);
  return first;
}

/* --- pieces -----------------------------------------------------------------*/

/* A rare IF of the run that stands in no loop and in no other rare one. */
static bool is_cut(const vyre__regions *r, uint32_t at) {
  return inst_is(r, at, VYRE__LIR_IF) &&
         (inst_at(r, at)->hints & VYRE__HINT_RARE) != 0 &&
         vyre__inst_info_of(r, at)->is_reached;
}

/* Cutting pays only if the rest can become vectors: no loops, no atomics. */
static bool cut_pays(const vyre__regions *r, const vyre__region *run) {
  bool has_rare = false;
  for (uint32_t at = run->begin; at < run->end; at++) {
    if (is_cut(r, at)) {
      has_rare = true;
      at = vyre__end_of(r, at);
      continue;
    }
    uint8_t op = inst_at(r, at)->op;
    if (op == VYRE__LIR_LOOP) return false;
    if (vyre__lir_ops[op].flags & VYRE__LIRF_ATOMICS) return false;
  }
  return has_rare;
}

static void new_piece(vyre__regions *r, uint32_t part, uint32_t begin,
                      uint32_t end, bool is_rare) {
  if (begin == end) return;
  vyre__region *run = &r->regions[part];
  uint32_t index = r->subregion_count++;
  if (run->subregion_count++ == 0) run->first_subregion = index;
  r->subregions[index] = (vyre__subregion){
      .begin = begin, .end = end, .region = part, .is_rare = is_rare};
  for (uint32_t at = begin; at < end; at++)
    vyre__inst_info_of(r, at)->subregion = index;
}

static void cut_run(builder *b, uint32_t part) {
  vyre__regions *r = b->r;
  const vyre__region *run = &r->regions[part];
  uint32_t begin = run->begin, end = run->end;
  if (b->splits_rare && r->invocations > 1 && cut_pays(r, run)) {
    for (uint32_t at = begin; at < end; at++) {
      if (!is_cut(r, at)) continue;
      uint32_t after = vyre__end_of(r, at) + 1;
      new_piece(r, part, begin, at, false);
      new_piece(r, part, at, after, true);
      begin = after;
      at = after - 1;
    }
  }
  new_piece(r, part, begin, end, false);
}

/* --- jumps of single invocations --------------------------------------------*/

/* Whether the invocation that jumps at @p at has to be remembered: there are
 * pieces that it must not run. */
static bool must_remember(const vyre__regions *r, uint32_t at) {
  uint32_t stop = r->end;
  if (inst_is(r, at, VYRE__LIR_CONTINUE)) {
    stop = vyre__inst_info_of(r, loop_around(r, at))->mate;
  }
  uint32_t piece = vyre__inst_info_of(r, at)->subregion;
  for (uint32_t next = piece + 1; next < r->subregion_count; next++) {
    if (r->subregions[next].begin < stop) return true;
  }
  return false;
}

/* EXIT ends an invocation, CONTINUE of a loop of the workgroup its round: the
 * pieces after it must know. */
static void mark_done(builder *b) {
  vyre__regions *r = b->r;
  bool seen = false;
  uint32_t last = 0; /* piece with such a jump */
  for (uint32_t at = r->begin; at < r->end; at++) {
    vyre__inst_info *role = vyre__inst_info_of(r, at);
    uint8_t op = inst_at(r, at)->op;
    if (seen && role->subregion > last) {
      r->subregions[role->subregion].tests_done = true;
      uint8_t keep =
          r->subregions[last].region == r->subregions[role->subregion].region
              ? VYRE__STORAGE_ARRAY
              : VYRE__STORAGE_GROUP;
      if (r->done_storage < keep) r->done_storage = keep;
    }
    if (op != VYRE__LIR_EXIT && op != VYRE__LIR_CONTINUE) continue;
    if (!role->is_reached || !role->subregion) continue;
    if (op == VYRE__LIR_CONTINUE) {
      uint32_t loop = loop_around(r, at);
      if (vyre__inst_info_of(r, loop)->subregion)
        continue; /* inside of the piece */
    }
    if (!must_remember(r, at)) continue;
    role->sets_done = true;
    seen = true;
    last = role->subregion;
  }
}

/* Loops: whether the workgroup continues them, or invocations do. */
static void mark_loops(builder *b) {
  vyre__regions *r = b->r;
  for (uint32_t i = 1; i < r->region_count; i++) {
    vyre__region *part = &r->regions[i];
    if (part->kind != VYRE__REGION_LOOP) continue;
    for (uint32_t at = part->begin; at < part->end; at++) {
      if (!inst_is(r, at, VYRE__LIR_CONTINUE)) continue;
      const vyre__inst_info *role = vyre__inst_info_of(r, at);
      if (!role->is_reached || loop_around(r, at) != part->begin) continue;
      part->has_continue |= !role->subregion;
      part->clears_done |= role->sets_done;
    }
  }
}

/* --- all --------------------------------------------------------------------*/

static vyre_code take_arrays(builder *b, vyre_arena *arena, vyre_status *st) {
  vyre__regions *r = b->r;
  size_t count = (size_t)(r->end - r->begin) + 1, vars = r->kernel->var_count;
  /* A part begins or ends at each instruction at most; pieces end at one. */
  r->regions = vyre__arena_array(arena, 2 * count + 1, sizeof *r->regions);
  r->subregions =
      vyre__arena_array(arena, 2 * count + 1, sizeof *r->subregions);
  r->infos = vyre__arena_array(arena, count, sizeof *r->infos);
  r->var_storage = vyre__arena_array(arena, vars, sizeof *r->var_storage);
  r->var_needed = vyre__arena_array(arena, vars, sizeof *r->var_needed);
  b->is_group = vyre__arena_array(arena, count, sizeof *b->is_group);
  b->points = vyre__arena_array(arena, count, sizeof *b->points);
  if (!r->regions || !r->subregions || !r->infos || !r->var_storage ||
      !r->var_needed || !b->is_group || !b->points) {
    return vyre__no_memory(st, "regions", "instructions", count);
  }
  memset(r->infos, 0, count * sizeof *r->infos);
  memset(r->var_storage, 0, vars);
  memset(r->var_needed, 0, vars * sizeof *r->var_needed);
  memset(b->is_group, 0, count * sizeof *b->is_group);
  r->regions[0] = (vyre__region){0};
  r->subregions[0] = (vyre__subregion){0};
  r->region_count = r->subregion_count = 1;
  return VYRE_OK;
}

vyre_code vyre__regions_build(const vyre__lir_kernel *kernel,
                              vyre__lir_phase phase, bool splits_rare,
                              vyre_arena *arena, vyre__regions *out,
                              vyre_status *st) {
  *out = (vyre__regions){
      .kernel = kernel,
      .begin = phase.begin,
      .end = phase.end,
      .invocations =
          kernel->workgroup[0] * kernel->workgroup[1] * kernel->workgroup[2]};
  builder b = {.r = out, .splits_rare = splits_rare};
  VYRE_TRY(take_arrays(&b, arena, st));
  VYRE_TRY(match_markers(out, st));
  mark_group(&b);
  out->first = build_list(&b, out->begin, out->end);
  for (uint32_t i = 1; i < out->region_count; i++) {
    if (out->regions[i].kind == VYRE__REGION_PARALLEL) cut_run(&b, i);
  }
  mark_done(&b);
  mark_loops(&b);
  return vyre__regions_assign_storage(out, arena, st);
}
