/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pass `prefetch`: software prefetch for streams that are read in pieces, and for
 * indirect accesses.
 *
 * Streams. The lanes of `for (j = start[r] + lane; j < start[r + 1]; j += 32)` read
 * beyond the end of row r, in whole vectors, and then go back to the start of
 * row r + 1. Processors that recognise ascending addresses only load nothing
 * ahead then. A masked loop therefore prefetches its contiguous loads itself.
 *
 * Indirect accesses: node -> its edges -> their targets.
 *
 * An out-of-order processor overlaps such chains by itself, but not past
 * atomics that threads share. Before an invocation runs, the loads of an
 * address chain are therefore executed for a later invocation, and the final
 * address is prefetched. Results do not depend on it: the extra loads stay
 * inside read-only buffers and are used as addresses only. */

#include "base/memory.h"
#include "base/status.h"
#include "spmd/schedule_internal.h"

enum {
  MAX_STEPS = VYRE__MAX_PREFETCH_STEPS,
  MAX_DEPTH = 16,
  MAX_PLACES = 4, /* chains of a subregion */
  MAX_LOADS = 2,  /* loads of a chain */
  NEAR =
      4, /* smallest distance in invocations, with MAX_LOADS loads; else twice that */
  NOT_FOUND = -1,
};

static bool add_step(vyre__prefetch *p, uint32_t at) {
  uint32_t to = p->count;
  for (uint32_t i = 0; i < p->count; i++) {
    if (p->steps[i] == at) return true;
  }
  if (p->count == MAX_STEPS) return false;
  p->count++;
  for (; to > 0 && p->steps[to - 1] > at; to--) p->steps[to] = p->steps[to - 1];
  p->steps[to] = at;
  return true;
}

static bool is_simple(uint8_t op) {
  return op == VYRE__LIR_MUL || op == VYRE__LIR_ADD || op == VYRE__LIR_SUB ||
         (op >= VYRE__LIR_AND && op <= VYRE__LIR_SHR_S);
}

/* Returns the initial value of the loop counter that @p v is a GET of; 0:
 * not a counter. */
vyre__val vyre__counter_first(const vyre__schedule *s, vyre__val v) {
  for (uint32_t open = info_at(s, v)->parent; open;
       open = info_at(s, open)->parent) {
    if (inst_at(s, open)->op != VYRE__LIR_LOOP) continue;
    const vyre__lir_loop *loop = &s->kernel->loops[inst_at(s, open)->aux];
    if (loop->is_counted && loop->var == inst_at(s, v)->aux) return loop->first;
  }
  return 0;
}

static bool is_readable(const vyre__schedule *s, const vyre__lir_inst *inst) {
  const vyre__lir_buffer *buffer = &s->kernel->buffers[inst->aux];
  return buffer->kind == VYRE_MEMORY_GLOBAL && !buffer->is_written &&
         buffer->width == buffer->unit && inst->type == VYRE_TYPE_U32;
}

/* Returns the number of dependent loads that lead to @p v in the first
 * iteration of loops; NOT_FOUND if it cannot be computed ahead. */
static int follow(const vyre__schedule *s, vyre__val v, vyre__prefetch *p,
                  unsigned depth) {
  const vyre__lir_inst *inst = inst_at(s, v);
  const vyre__inst_info *role = info_at(s, v);
  int most = 0;
  bool is_x = s->is_fused ? is_fused_x(s, v)
                          : inst->op == VYRE__LIR_LOCAL_ID && inst->aux == 0;
  p->has_x |= is_x;
  if (is_x) return s->is_fused && !add_step(p, v) ? NOT_FOUND : 0;
  if (role->is_leaf || role->storage == VYRE__STORAGE_UNIFORM) return 0;
  if (depth == MAX_DEPTH || inst->type != VYRE_TYPE_U32) return NOT_FOUND;
  vyre__val operands[4] = {inst->a};
  uint32_t count = 1;
  if (inst->op == VYRE__LIR_LOAD) {
    if (!is_readable(s, inst)) return NOT_FOUND;
  } else if (inst->op == VYRE__LIR_GET) {
    operands[0] = vyre__counter_first(s, v);
    if (!operands[0]) return NOT_FOUND;
  } else if (is_simple(inst->op)) {
    count = vyre__lir_operands(inst, operands);
  } else {
    return NOT_FOUND;
  }
  for (uint32_t i = 0; i < count; i++) {
    int loads = follow(s, operands[i], p, depth + 1);
    if (loads == NOT_FOUND) return NOT_FOUND;
    if (loads > most) most = loads;
  }
  if (!add_step(p, v)) return NOT_FOUND;
  return most + (inst->op == VYRE__LIR_LOAD);
}

/* Returns true if the subregion has atomics that threads contend for: the
 * processor does not look ahead past them. */
static bool meets(const vyre__schedule *s, const vyre__subregion *of) {
  for (uint32_t at = of->begin; at < of->end; at++) {
    const vyre__lir_inst *inst = inst_at(s, at);
    if (!(vyre__lir_ops[inst->op].flags & VYRE__LIRF_ATOMICS)) continue;
    if (info_at(s, at)->is_needed && !s->privatised[inst->aux].is_on &&
        s->kernel->buffers[inst->aux].kind != VYRE_MEMORY_SHARED) {
      return true;
    }
  }
  return false;
}

/* Prefetches of a subregion. */
typedef struct prefetches {
  vyre__prefetch all[MAX_PLACES];
  uint32_t count;
} prefetches;

/* Returns true if a chain leads to the buffer already: neighbouring elements
 * mostly share the cache line. */
static bool is_asked(const vyre__schedule *s, const prefetches *to,
                     uint32_t buffer) {
  for (uint32_t i = 0; i < to->count; i++) {
    if (inst_at(s, to->all[i].at)->aux == buffer) return true;
  }
  return false;
}

static void look_at(const vyre__schedule *s, uint32_t at, prefetches *to) {
  const vyre__lir_inst *inst = inst_at(s, at);
  uint16_t memory = VYRE__LIRF_READS | VYRE__LIRF_ATOMICS;
  if (!(flags_at(s, at) & memory)) return;
  if (!info_at(s, at)->is_needed || !inst->a) return;
  if (s->kernel->buffers[inst->aux].kind != VYRE_MEMORY_GLOBAL) return;
  if (is_asked(s, to, inst->aux)) return;
  vyre__prefetch chain = {.at = at};
  int loads = follow(s, inst->a, &chain, 0);
  if (loads < 1 || loads > MAX_LOADS || !chain.has_x) return;
  uint32_t near = s->width > NEAR ? s->width : NEAR;
  chain.distance = loads == MAX_LOADS ? near : 2 * near;
  to->all[to->count++] = chain;
}

/* Adds a PREFETCH leaf for each chain at the start of @p range. */
static vyre_code add_nodes(vyre__schedule *s, const prefetches *from,
                           vyre__sched_node *range) {
  vyre__sched_node **to = &range->body, *rest = range->body;
  for (uint32_t i = 0; i < from->count; i++) {
    vyre__sched_node *node = vyre__arena_array(s->arena, 1, sizeof *node);
    vyre__prefetch *chain = vyre__arena_array(s->arena, 1, sizeof *chain);
    if (!node || !chain) return vyre__schedule_no_memory(s, 1);
    *chain = from->all[i];
    *node = (vyre__sched_node){.kind = VYRE__SCHED_PREFETCH,
                               .begin = chain->at,
                               .end = chain->at + 1,
                               .subregion = range->subregion,
                               .prefetch = chain};
    *to = node;
    to = &node->next;
  }
  *to = rest;
  return VYRE_OK;
}

static vyre_code add_all(vyre__schedule *s, const prefetches *from,
                         vyre__sched_node *first) {
  for (vyre__sched_node *node = first; node; node = node->next) {
    bool is_jam = node->kind == VYRE__SCHED_JAM;
    VYRE_TRY(add_nodes(s, from, is_jam ? node->body : node));
  }
  return VYRE_OK;
}

static vyre_code prefetch_all(vyre__schedule *s, vyre__sched_node *first) {
  for (vyre__sched_node *node = first; node; node = node->next) {
    if (node->kind != VYRE__SCHED_ROWS) {
      VYRE_TRY(prefetch_all(s, node->body));
      VYRE_TRY(prefetch_all(s, node->other));
      continue;
    }
    const vyre__subregion *of = &s->r.subregions[node->subregion];
    prefetches found = {.count = 0};
    if (!meets(s, of)) continue;
    for (uint32_t at = of->begin; at < of->end && found.count < MAX_PLACES;
         at++) {
      look_at(s, at, &found);
    }
    VYRE_TRY(add_all(s, &found, node->body));
  }
  return VYRE_OK;
}

/* --- streams --------------------------------------------------------------*/

/* Returns true if the value changes by a constant from one iteration of @p loop
 * to the next. */
static bool follows(const vyre__schedule *s, const vyre__lir_loop *loop,
                    vyre__val v, unsigned depth) {
  const vyre__lir_inst *inst = inst_at(s, v);
  if (inst->op == VYRE__LIR_GET) return inst->aux == loop->var;
  if (depth == MAX_DEPTH || inst->type != VYRE_TYPE_U32) return false;
  if (inst->op != VYRE__LIR_ADD && inst->op != VYRE__LIR_SUB) return false;
  return follows(s, loop, inst->a, depth + 1) ||
         follows(s, loop, inst->b, depth + 1);
}

static bool is_stream(const vyre__schedule *s, const vyre__lir_loop *loop,
                      uint32_t at) {
  return is_op(s, at, VYRE__LIR_LOAD) && info_at(s, at)->is_needed &&
         s->kernel->buffers[inst_at(s, at)->aux].kind == VYRE_MEMORY_GLOBAL &&
         vyre__access_kind_of(s, at) == VYRE__ACCESS_CONTIGUOUS &&
         follows(s, loop, inst_at(s, at)->a, 0);
}

/* Marks the streams of masked loops without other loops in them. */
static void read_ahead(vyre__schedule *s, vyre__sched_node *first) {
  enum { AHEAD = 1024 };
  for (vyre__sched_node *node = first; node; node = node->next) {
    read_ahead(s, node->body);
    read_ahead(s, node->other);
    bool is_masked = node->mode == VYRE__MODE_MASKED;
    if (node->kind != VYRE__SCHED_LOOP || !is_masked) continue;
    const vyre__lir_loop *loop =
        &s->kernel->loops[inst_at(s, node->begin)->aux];
    uint32_t end = info_at(s, node->begin)->mate;
    if (!loop->is_counted || !note_at(s, node->begin)->parts) continue;
    for (uint32_t at = node->begin + 1; at < end; at++) {
      if (!is_stream(s, loop, at)) continue;
      note_at(s, at)->ahead = AHEAD;
      node->streams++;
    }
  }
}

vyre_code vyre__schedule_prefetch(vyre__schedule *s) {
  if (s->width > 1) read_ahead(s, s->root);
  return s->has_rows ? prefetch_all(s, s->root) : VYRE_OK;
}
