/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Builds the tree of regions: matches markers, finds the code that the
 * workgroup executes as one, and separates rare subregions. Storage of values
 * is in region_values.c. */
#include "spmd/regions.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "spmd/regions_internal.h"

typedef struct builder {
  vyre__regions *r;
  bool *is_group;   /* IFs, LOOPs and jumps that the workgroup executes as
                     * one */
  uint32_t *points; /* before each instruction: number of points that all
                     * invocations must reach */
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

/* --- markers -------------------------------------------------------------- */

static vyre_code bad_markers(const vyre__regions *r, uint32_t at,
                             vyre_status *st) {
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                   "report it as a defect of vyre, with the kernel's source",
                   "instruction %u (%s) of kernel '%.100s' has no match",
                   (unsigned)at, vyre__lir_ops[inst_at(r, at)->op].text,
                   r->kernel->name);
}

/* ELSE or STEP at @p at closes the block of @p open and opens another. */
static bool open_second_block(vyre__regions *r, uint32_t at, uint32_t open) {
  vyre__lir_op want =
      inst_is(r, at, VYRE__LIR_ELSE) ? VYRE__LIR_IF : VYRE__LIR_LOOP;
  if (!open || !inst_is(r, open, want)) return false;
  vyre__inst_info *info = vyre__inst_info_of(r, at);
  vyre__inst_info_of(r, open)->mate = at;
  info->parent =
      want == VYRE__LIR_LOOP ? open : vyre__inst_info_of(r, open)->parent;
  info->is_reached = vyre__inst_info_of(r, open)->is_reached;
  return true;
}

/* END at @p at closes @p open, an IF, ELSE, LOOP or STEP. */
static void close_block(vyre__regions *r, uint32_t at, uint32_t open) {
  vyre__inst_info *info = vyre__inst_info_of(r, at);
  vyre__inst_info_of(r, open)->mate = at;
  uint32_t begin = open;
  if (inst_is(r, open, VYRE__LIR_STEP)) {
    begin = vyre__inst_info_of(r, open)->parent;
  } else if (inst_is(r, open, VYRE__LIR_ELSE)) {
    begin = info->mate; /* stored at the ELSE */
  }
  info->mate = begin;
  info->parent = vyre__inst_info_of(r, begin)->parent;
  info->is_reached = vyre__inst_info_of(r, begin)->is_reached;
}

/* Fills parent, mate and is_reached. Until the END is reached, the mate of an
 * ELSE is its IF. */
static vyre_code match_markers(vyre__regions *r, vyre_status *st) {
  uint32_t open = 0;
  bool reached = true;
  for (uint32_t at = r->begin; at < r->end; at++) {
    vyre__inst_info *info = vyre__inst_info_of(r, at);
    uint8_t op = inst_at(r, at)->op;
    if (op == VYRE__LIR_ELSE || op == VYRE__LIR_STEP) {
      if (!open_second_block(r, at, open)) return bad_markers(r, at, st);
      if (op == VYRE__LIR_ELSE) info->mate = open;
      reached = info->is_reached;
      open = at;
      continue;
    }
    if (op == VYRE__LIR_END) {
      if (!open) return bad_markers(r, at, st);
      if (inst_is(r, open, VYRE__LIR_ELSE)) {
        info->mate = vyre__inst_info_of(r, open)->mate;
      }
      close_block(r, at, open);
      reached = info->is_reached;
      open = info->parent;
      continue;
    }
    info->parent = open;
    info->is_reached = reached;
    if (op == VYRE__LIR_IF || op == VYRE__LIR_LOOP) open = at;
    if (op_leaves(op)) reached = false;
  }
  return open ? bad_markers(r, open, st) : VYRE_OK;
}

/* --- code that the workgroup executes as one ------------------------------ */

/* Returns the loop that a BREAK or CONTINUE at @p at belongs to; 0: none. */
static uint32_t loop_around(const vyre__regions *r, uint32_t at) {
  uint32_t open = vyre__inst_info_of(r, at)->parent;
  while (open && !inst_is(r, open, VYRE__LIR_LOOP)) {
    open = vyre__inst_info_of(r, open)->parent;
  }
  return open;
}

/* Returns the IF or LOOP that @p open belongs to. */
static uint32_t if_of(const vyre__regions *r, uint32_t open) {
  return vyre__inst_info_of(r, vyre__end_of(r, open))->mate;
}

/* Marks everything around @p at, up to @p limit. Returns true if a mark is
 * new. */
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

/* Returns true if a point that all invocations must reach follows @p at, before
 * control leaves the block of @p limit (0: the phase). */
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

/* Returns true if the workgroup executes jump @p at as one. This holds for a
 * break out of a loop with a barrier, by validation. For a continue or an exit
 * it holds only if all invocations must meet again later. */
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

/* Marks loops and ifs with a barrier, then jumps out of them, then the code
 * around those, until nothing changes. */
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

/* --- regions -------------------------------------------------------------- */

static uint32_t new_region(builder *b, vyre__region_kind kind, uint32_t begin,
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

/* Builds the region of the IF or LOOP at @p at. Returns its end. */
static uint32_t build_nest(builder *b, uint32_t at, uint32_t **link) {
  vyre__regions *r = b->r;
  bool is_if = inst_is(r, at, VYRE__LIR_IF);
  uint32_t end = vyre__end_of(r, at), middle = vyre__inst_info_of(r, at)->mate;
  uint32_t region = new_region(b, is_if ? VYRE__REGION_IF : VYRE__REGION_LOOP,
                               at, end + 1, link);
  uint32_t inner = build_list(b, at + 1, middle);
  uint32_t other = middle < end ? build_list(b, middle + 1, end) : 0;
  r->regions[region].inner = inner;
  r->regions[region].other = other;
  return end + 1;
}

/* Builds the list of regions for instructions [begin, end), a full block. */
static uint32_t build_list(builder *b, uint32_t begin, uint32_t end) {
  vyre__regions *r = b->r;
  uint32_t first = 0, *link = &first, start = begin;
  for (uint32_t at = begin; at < end;) {
    bool nests = inst_is(r, at, VYRE__LIR_IF) || inst_is(r, at, VYRE__LIR_LOOP);
    if (!*group_at(b, at)) {
      at = nests ? vyre__end_of(r, at) + 1 : at + 1;
      continue;
    }
    if (start < at) new_region(b, VYRE__REGION_PARALLEL, start, at, &link);
    if (nests) {
      at = build_nest(b, at, &link);
    } else {
      bool waits = inst_is(r, at, VYRE__LIR_BARRIER);
      new_region(b, waits ? VYRE__REGION_BARRIER : VYRE__REGION_JUMP, at,
                 at + 1, &link);
      at++;
      if (!waits) return first; /* the rest is unreachable */
    }
    start = at;
  }
  if (start < end) new_region(b, VYRE__REGION_PARALLEL, start, end, &link);
  return first;
}

/* --- subregions ----------------------------------------------------------- */

/* Returns true for a rare IF that becomes a subregion. */
static bool is_cut(const vyre__regions *r, uint32_t at) {
  return inst_is(r, at, VYRE__LIR_IF) &&
         (inst_at(r, at)->hints & VYRE__HINT_RARE) != 0 &&
         vyre__inst_info_of(r, at)->is_reached;
}

/* Returns true if cutting pays: the rest must vectorise, so it has no loops and
 * no atomics. */
static bool cut_pays(const vyre__regions *r, const vyre__region *parallel) {
  bool has_rare = false;
  for (uint32_t at = parallel->begin; at < parallel->end; at++) {
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

static void new_subregion(vyre__regions *r, uint32_t region, uint32_t begin,
                          uint32_t end, bool is_rare) {
  if (begin == end) return;
  vyre__region *parallel = &r->regions[region];
  uint32_t index = r->subregion_count++;
  if (parallel->subregion_count++ == 0) parallel->first_subregion = index;
  r->subregions[index] = (vyre__subregion){
      .begin = begin, .end = end, .region = region, .is_rare = is_rare};
  for (uint32_t at = begin; at < end; at++)
    vyre__inst_info_of(r, at)->subregion = index;
}

static void cut_region(builder *b, uint32_t region) {
  vyre__regions *r = b->r;
  const vyre__region *parallel = &r->regions[region];
  uint32_t begin = parallel->begin, end = parallel->end;
  if (b->splits_rare && r->invocations > 1 && cut_pays(r, parallel)) {
    for (uint32_t at = begin; at < end; at++) {
      if (!is_cut(r, at)) continue;
      uint32_t after = vyre__end_of(r, at) + 1;
      new_subregion(r, region, begin, at, false);
      new_subregion(r, region, at, after, true);
      begin = after;
      at = after - 1;
    }
  }
  new_subregion(r, region, begin, end, false);
}

/* --- jumps of single invocations ------------------------------------------ */

/* Returns true if later subregions must skip an invocation that jumps at @p
 * at. */
static bool must_mark_done(const vyre__regions *r, uint32_t at) {
  uint32_t stop = r->end;
  if (inst_is(r, at, VYRE__LIR_CONTINUE)) {
    stop = vyre__inst_info_of(r, loop_around(r, at))->mate;
  }
  uint32_t subregion = vyre__inst_info_of(r, at)->subregion;
  for (uint32_t next = subregion + 1; next < r->subregion_count; next++) {
    if (r->subregions[next].begin < stop) return true;
  }
  return false;
}

/* Marks jumps that later subregions must test. EXIT ends an invocation,
 * CONTINUE of a workgroup loop ends its iteration. */
static void mark_done(builder *b) {
  vyre__regions *r = b->r;
  bool seen = false;
  uint32_t last = 0; /* subregion with such a jump */
  for (uint32_t at = r->begin; at < r->end; at++) {
    vyre__inst_info *info = vyre__inst_info_of(r, at);
    uint8_t op = inst_at(r, at)->op;
    if (seen && info->subregion > last) {
      r->subregions[info->subregion].tests_done = true;
      uint8_t storage =
          r->subregions[last].region == r->subregions[info->subregion].region
              ? VYRE__STORAGE_ARRAY
              : VYRE__STORAGE_GROUP;
      if (r->done_storage < storage) r->done_storage = storage;
    }
    if (op != VYRE__LIR_EXIT && op != VYRE__LIR_CONTINUE) continue;
    if (!info->is_reached || !info->subregion) continue;
    if (op == VYRE__LIR_CONTINUE) {
      uint32_t loop = loop_around(r, at);
      if (vyre__inst_info_of(r, loop)->subregion)
        continue; /* inside the subregion */
    }
    if (!must_mark_done(r, at)) continue;
    info->sets_done = true;
    seen = true;
    last = info->subregion;
  }
}

/* Finds which loops are continued by the workgroup and which by single
 * invocations. */
static void mark_loops(builder *b) {
  vyre__regions *r = b->r;
  for (uint32_t i = 1; i < r->region_count; i++) {
    vyre__region *region = &r->regions[i];
    if (region->kind != VYRE__REGION_LOOP) continue;
    for (uint32_t at = region->begin; at < region->end; at++) {
      if (!inst_is(r, at, VYRE__LIR_CONTINUE)) continue;
      const vyre__inst_info *info = vyre__inst_info_of(r, at);
      if (!info->is_reached || loop_around(r, at) != region->begin) continue;
      region->has_continue |= !info->subregion;
      region->clears_done |= info->sets_done;
    }
  }
}

/* --- entry point ---------------------------------------------------------- */

static vyre_code allocate(builder *b, vyre_arena *arena, vyre_status *st) {
  vyre__regions *r = b->r;
  size_t count = (size_t)(r->end - r->begin) + 1, vars = r->kernel->var_count;
  /* At most one region begins and one ends at each instruction; a subregion
   * ends at one. */
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
  VYRE_TRY(allocate(&b, arena, st));
  VYRE_TRY(match_markers(out, st));
  mark_group(&b);
  out->first = build_list(&b, out->begin, out->end);
  for (uint32_t i = 1; i < out->region_count; i++) {
    if (out->regions[i].kind == VYRE__REGION_PARALLEL) cut_region(&b, i);
  }
  mark_done(&b);
  mark_loops(&b);
  return vyre__regions_assign_storage(out, arena, st);
}
