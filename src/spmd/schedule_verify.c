/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks a schedule.
 *
 * Every subregion with work has one ROWS or VECTORS node, and every uniform
 * value one UNIFORM leaf. Each range of such a node covers the instructions of
 * its subregion in order, without a gap or a repetition. An invocation is in
 * one range, so it runs every instruction once.
 *
 * An IF about which active lanes may disagree is not a branch. A loop that
 * lanes may leave in different iterations has a mask. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "spmd/schedule_internal.h"

typedef struct checking {
  const vyre__schedule *s;
  uint8_t *runs; /* per instruction: nodes of the workgroup that run it */
} checking;

static vyre_code broken(const vyre__schedule *s, uint32_t at,
                        const char *what) {
  return VYRE_FAIL(s->st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE,
                   VYRE__SCHEDULE_DEFECT,
                   "schedule of kernel '%.100s', instruction %u: %s",
                   s->kernel->name, at, what);
}

/* --- code of a range ------------------------------------------------------*/

/* The code of one range. */
typedef struct coverage {
  const vyre__schedule *s;
  const vyre__sched_node *range;
} coverage;

static vyre_code check_list(const coverage *c, const vyre__sched_node *first,
                            uint32_t begin, uint32_t end);

static vyre_code check_inside(const coverage *c, const vyre__sched_node *node) {
  const vyre__schedule *s = c->s;
  uint32_t close = vyre__end_of(&s->r, node->begin);
  uint32_t middle = info_at(s, node->begin)->mate;
  bool diverges = s->shapes.parts_lanes[node->begin - s->r.begin];
  if (s->width > 1 && diverges && node->mode == VYRE__MODE_UNIFORM &&
      info_at(s, node->begin)->is_reached) {
    return broken(s, node->begin, "lanes diverge without a mask");
  }
  if (node->peel && (node->peel <= node->begin || node->peel > middle)) {
    return broken(s, node->begin, "the loop is peeled outside its body");
  }
  if (node->end != close + 1) {
    return broken(s, node->begin, "the node does not end at its END");
  }
  VYRE_TRY(check_list(c, node->body, node->begin + 1, middle));
  if (middle != close) return check_list(c, node->other, middle + 1, close);
  return node->other ? broken(s, node->begin, "an arm that LIR does not have")
                     : VYRE_OK;
}

static vyre_code check_leaf(const vyre__schedule *s,
                            const vyre__sched_node *node) {
  uint16_t breaks = VYRE__LIRF_CONTROL | VYRE__LIRF_JUMPS;
  bool is_jump = node->kind == VYRE__SCHED_JUMP;
  if (node->end <= node->begin) return broken(s, node->begin, "an empty leaf");
  for (uint32_t at = node->begin; at < node->end; at++) {
    bool breaks_here = (flags_at(s, at) & breaks) != 0;
    if (breaks_here != is_jump) return broken(s, at, "control flow in a leaf");
  }
  return VYRE_OK;
}

/* Checks the copies of a loop: each is complete, and every SET except that of
 * the counter runs in exactly one of them. */
static vyre_code check_groups_of(const coverage *c,
                                 const vyre__sched_node *node) {
  const vyre__schedule *s = c->s;
  uint8_t all = 0;
  for (const vyre__sched_node *loop = node->body; loop; loop = loop->next) {
    if (loop->kind != VYRE__SCHED_LOOP || loop->begin != node->begin ||
        loop->group & all) {
      return broken(s, node->begin, "an accumulator group runs twice");
    }
    all |= loop->group;
    VYRE_TRY(check_inside(c, loop));
  }
  uint32_t counter = s->kernel->loops[inst_at(s, node->begin)->aux].var;
  for (uint32_t at = node->begin; at < node->end; at++) {
    uint16_t effects = VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
    uint8_t own = note_at(s, at)->groups & all;
    if (!info_at(s, at)->is_needed || at == node->begin) continue;
    bool sets = is_op(s, at, VYRE__LIR_SET) && inst_at(s, at)->aux != counter;
    if (flags_at(s, at) & effects || (sets && (!own || own & (own - 1)))) {
      return broken(s, at, "does not run in exactly one accumulator group");
    }
  }
  return VYRE_OK;
}

/* Checks that the loads of a loop that take blocks of rows walk along rows. */
static vyre_code check_walks(const vyre__schedule *s,
                             const vyre__sched_node *loop) {
  vyre__walk walk;
  for (uint32_t at = loop->begin; at < loop->end && loop->walks; at++) {
    if (note_at(s, at)->walk != loop->begin) continue;
    if (!is_op(s, at, VYRE__LIR_LOAD) ||
        !vyre__walk_find(s, at, loop->begin, &walk)) {
      return broken(s, at, "lanes do not walk along rows");
    }
  }
  return VYRE_OK;
}

static vyre_code check_node(const coverage *c, const vyre__sched_node *node) {
  bool is_if = is_op(c->s, node->begin, VYRE__LIR_IF);
  bool is_loop = is_op(c->s, node->begin, VYRE__LIR_LOOP);
  if (node->kind == VYRE__SCHED_ACCUMULATORS) return check_groups_of(c, node);
  if (is_if != (node->kind == VYRE__SCHED_IF) ||
      is_loop != (node->kind == VYRE__SCHED_LOOP)) {
    return broken(c->s, node->begin,
                  "the node has another kind than the instruction");
  }
  if (is_loop) VYRE_TRY(check_walks(c->s, node));
  return is_if || is_loop ? check_inside(c, node) : check_leaf(c->s, node);
}

/* Checks that *next and the nodes after it cover [begin, end) in order, and
 * moves *next past them. Only the arm that is taken of an IF with a known
 * condition is covered. */
static vyre_code check_code(const coverage *c, const vyre__sched_node **next,
                            uint32_t begin, uint32_t end) {
  const vyre__schedule *s = c->s;
  for (uint32_t at = begin; at < end;) {
    vyre__known known = VYRE__UNKNOWN;
    if (is_op(s, at, VYRE__LIR_IF)) {
      known = vyre__known_if(s, c->range->known, at);
    }
    if (known != VYRE__UNKNOWN) {
      uint32_t close = vyre__end_of(&s->r, at), middle = info_at(s, at)->mate;
      bool is_true = known == VYRE__KNOWN_TRUE;
      if (is_true) VYRE_TRY(check_code(c, next, at + 1, middle));
      if (!is_true && middle != close) {
        VYRE_TRY(check_code(c, next, middle + 1, close));
      }
      at = close + 1;
      continue;
    }
    const vyre__sched_node *node = *next;
    if (!node) return broken(s, at, "is not run");
    if (node->begin != at || node->end > end) {
      return broken(s, at, "is not run once: the list has a gap or an overlap");
    }
    VYRE_TRY(check_node(c, node));
    at = node->end;
    *next = node->next;
  }
  return VYRE_OK;
}

/* Checks that the list @p first covers [begin, end) and nothing else. */
static vyre_code check_list(const coverage *c, const vyre__sched_node *first,
                            uint32_t begin, uint32_t end) {
  const vyre__sched_node *next = first;
  VYRE_TRY(check_code(c, &next, begin, end));
  return next ? broken(c->s, next->begin, "is run again") : VYRE_OK;
}

/* --- nodes of a workgroup -------------------------------------------------*/

static vyre_code check_range(const checking *c, const vyre__sched_node *range,
                             uint32_t subregion) {
  const vyre__subregion *of = &c->s->r.subregions[subregion];
  const coverage own = {.s = c->s, .range = range};
  if (!range || range->kind != VYRE__SCHED_RANGE ||
      range->subregion != subregion) {
    return broken(c->s, of->begin, "not a range of the subregion");
  }
  const vyre__sched_node *code = range->body;
  while (code && code->kind == VYRE__SCHED_PREFETCH) code = code->next;
  return check_list(&own, code, of->begin, of->end);
}

static vyre_code check_ranges(const checking *c, const vyre__sched_node *node) {
  const vyre__subregion *of = &c->s->r.subregions[node->subregion];
  if (!node->body) return broken(c->s, node->begin, "a loop without a range");
  for (const vyre__sched_node *at = node->body; at; at = at->next) {
    bool is_jam = at->kind == VYRE__SCHED_JAM;
    if (is_jam && c->s->kernel->workgroup[1] % at->jam->rows) {
      return broken(c->s, node->begin, "jammed rows do not divide the rows");
    }
    VYRE_TRY(check_range(c, is_jam ? at->body : at, node->subregion));
  }
  for (uint32_t at = of->begin; at < of->end; at++) {
    bool is_uniform = info_at(c->s, at)->storage == VYRE__STORAGE_UNIFORM;
    if (!is_uniform) c->runs[at - c->s->r.begin]++;
  }
  return VYRE_OK;
}

static uint32_t replica_region(const vyre__schedule *s, uint32_t buffer) {
  return s->privatised ? s->privatised[buffer].replica : 0;
}

static vyre_code check_groups(const checking *c,
                              const vyre__sched_node *first) {
  for (const vyre__sched_node *node = first; node; node = node->next) {
    switch (node->kind) {
      case VYRE__SCHED_UNIFORM:
        for (uint32_t at = node->begin; at < node->end; at++) {
          bool is_uniform = info_at(c->s, at)->storage == VYRE__STORAGE_UNIFORM;
          if (is_uniform) c->runs[at - c->s->r.begin]++;
        }
        break;
      case VYRE__SCHED_ROWS:
      case VYRE__SCHED_VECTORS:
        VYRE_TRY(check_ranges(c, node));
        break;
      case VYRE__SCHED_GROUP_IF:
      case VYRE__SCHED_GROUP_LOOP:
        VYRE_TRY(check_groups(c, node->body));
        VYRE_TRY(check_groups(c, node->other));
        break;
      case VYRE__SCHED_MERGE:
        if (replica_region(c->s, node->buffer) == node->region) break;
        return broken(c->s, node->begin, "a merge of a buffer without replica");
      case VYRE__SCHED_GROUP_JUMP:
      case VYRE__SCHED_BARRIER:
        break;
      default:
        return broken(c->s, node->begin, "a node of lanes in the workgroup");
    }
  }
  return VYRE_OK;
}

/* Returns true if instruction @p at has a result or an effect that something
 * of the schedule must compute. */
static bool must_run(const vyre__schedule *s, uint32_t at) {
  const vyre__inst_info *info = info_at(s, at);
  if (!info->is_needed || !info->is_reached || info->is_leaf) return false;
  uint16_t structure =
      VYRE__LIRF_CONTROL | VYRE__LIRF_JUMPS | VYRE__LIRF_BARRIER;
  if (flags_at(s, at) & structure) return false;
  bool is_recomputed =
      info->storage == VYRE__STORAGE_REMATERIALIZE && !info->uses;
  if (is_recomputed) return false; /* only in other subregions */
  return info->subregion || info->storage == VYRE__STORAGE_UNIFORM;
}

/* Checks one version of the code of a workgroup. */
static vyre_code check_version(const vyre__schedule *s,
                               const vyre__sched_node *first) {
  size_t count = (size_t)(s->r.end - s->r.begin) + 1;
  vyre__arena_mark mark = vyre__arena_here(s->arena);
  checking c = {.s = s, .runs = vyre__arena_array(s->arena, count, 1)};
  if (!c.runs) return vyre__schedule_no_memory(s, count);
  memset(c.runs, 0, count);
  vyre_code code = check_groups(&c, first);
  for (uint32_t at = s->r.begin; at < s->r.end && code == VYRE_OK; at++) {
    if (must_run(s, at) && c.runs[at - s->r.begin] != 1) {
      code = broken(s, at, "is not run exactly once in a workgroup");
    }
  }
  vyre__arena_rewind(s->arena, mark);
  return code;
}

vyre_code vyre__schedule_verify(const vyre__schedule *s) {
  const vyre__sched_node *groups = s->root;
  while (groups && groups->kind == VYRE__SCHED_PRIVATE) groups = groups->body;
  if (!groups || groups->kind != VYRE__SCHED_GROUPS || groups->next) {
    return broken(s, s->r.begin, "the root is not a loop over workgroups");
  }
  const vyre__sched_node *first = groups->body;
  if (!first || first->kind != VYRE__SCHED_FULL_GROUPS) {
    return check_version(s, first);
  }
  VYRE_TRY(check_version(s, first->body));
  return check_version(s, first->other);
}
