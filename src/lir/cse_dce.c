/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The pass `tidy`: what is computed twice is computed once, what nobody needs is
 * gone. Three times over the array: forwards to find what is the same, backwards
 * to find what is needed, forwards to move that together. */
#include "lir/cse_dce.h"

#include <string.h>

#include "base/memory.h"

typedef struct tidying {
  vyre__lir_writer *low;
  uint32_t *slots; /* hash table of values; 0: free */
  uint32_t mask;
  uint32_t *same;  /* per value: the one that stands for it, then its new
                      number; of a SET: the one before of its variable */
  uint32_t *stack; /* slots that were filled, to be emptied at block ends; then
                      what was found to be needed behind where we look */
  size_t stacked;
  uint32_t *blocks; /* those that are open */
  uint8_t *needed;
  uint32_t *last_set; /* per variable; 0: none */
  uint8_t *is_read;   /* per variable */
} tidying;

/* --- what is computed twice --------------------------------------------------- */

static uint32_t hash_of(const vyre__lir_inst *inst) {
  uint64_t head = (uint64_t)inst->aux << 16 | (uint32_t)inst->type << 8;
  uint64_t first = (uint64_t)inst->b << 32 | inst->a;
  uint64_t second = (uint64_t)inst->d << 32 | inst->c;
  uint64_t h = (head | inst->op) * UINT64_C(0x9E3779B97F4A7C15);
  h = (h ^ h >> 32 ^ first) * UINT64_C(0xBF58476D1CE4E5B9);
  h = (h ^ h >> 32 ^ second) * UINT64_C(0x94D049BB133111EB);
  return (uint32_t)(h >> 32);
}

static bool is_same(const vyre__lir_inst *a, const vyre__lir_inst *b) {
  return a->op == b->op && a->type == b->type && a->aux == b->aux &&
         memcmp(a->v, b->v, sizeof a->v) == 0;
}

static void share(tidying *t, uint32_t i) {
  const vyre__lir_inst *code = t->low->code;
  uint32_t slot = hash_of(&code[i]) & t->mask;
  while (t->slots[slot]) {
    if (is_same(&code[t->slots[slot]], &code[i])) {
      t->same[i] = t->slots[slot];
      return;
    }
    slot = (slot + 1) & t->mask;
  }
  t->slots[slot] = i;
  t->stack[t->stacked++] = slot;
}

/* A value is known in its block and the blocks inside. Taking the newest entries
 * out of an open-addressed table leaves no holes in the chains of older ones.
 * Gives how deep we are then. */
static size_t share_control(tidying *t, const vyre__lir_inst *inst,
                            size_t depth) {
  if (inst->op == VYRE__LIR_IF || inst->op == VYRE__LIR_LOOP) {
    t->blocks[depth] = (uint32_t)t->stacked;
    if (inst->op == VYRE__LIR_IF) return depth + 1;
    /* Values of loops that are said to be counted live as long as the loop. */
    vyre__lir_loop *loop = &t->low->loops[inst->aux];
    loop->first = t->same[loop->first];
    loop->bound = t->same[loop->bound];
    loop->first_high = t->same[loop->first_high];
    loop->bound_high = t->same[loop->bound_high];
    return depth + 1;
  }
  /* ELSE and END; and CONTINUE comes to STEP past some of the body's values. */
  while (t->stacked > t->blocks[depth - 1]) {
    t->slots[t->stack[--t->stacked]] = 0;
  }
  return inst->op == VYRE__LIR_END ? depth - 1 : depth;
}

static void share_values(tidying *t) {
  size_t depth = 0;
  uint32_t count = (uint32_t)t->low->count;
  t->same[0] = 0;
  for (uint32_t i = 1; i < count; i++) {
    vyre__lir_inst *inst = &t->low->code[i];
    const vyre__lir_info *info = &vyre__lir_ops[inst->op];
    t->same[i] = i;
    for (unsigned k = 0; k < info->operands; k++) {
      inst->v[k] = t->same[inst->v[k]];
    }
    if (info->flags & VYRE__LIRF_PURE) {
      share(t, i);
    } else if (info->flags & VYRE__LIRF_CONTROL) {
      depth = share_control(t, inst, depth);
    } else if (inst->op == VYRE__LIR_SET) {
      t->same[i] = t->last_set[inst->aux];
      t->last_set[inst->aux] = i;
    }
  }
}

/* --- what nobody needs --------------------------------------------------------- */

static bool has_effect(const vyre__lir_inst *inst) {
  uint16_t flags = vyre__lir_ops[inst->op].flags;
  return flags & (uint16_t)~(VYRE__LIRF_PURE_HIGH | VYRE__LIRF_READS |
                             VYRE__LIRF_WRITES_VAR);
}

/* We are at @p here on the way back: what is before it will be come by. */
static void need(tidying *t, uint32_t i, uint32_t here) {
  if (t->needed[i]) return;
  t->needed[i] = 1;
  if (i > here) t->stack[t->stacked++] = i;
}

/* A SET is needed if a needed GET reads its variable, wherever they stand. */
static void need_parts(tidying *t, uint32_t i, uint32_t here) {
  const vyre__lir_inst *inst = &t->low->code[i];
  unsigned operands = vyre__lir_ops[inst->op].operands;
  for (unsigned k = 0; k < operands; k++) need(t, inst->v[k], here);
  if (inst->op == VYRE__LIR_LOOP && t->low->loops[inst->aux].high_var) {
    /* The host runs this loop. Its test in the kernel may do without a half. */
    const vyre__lir_loop *loop = &t->low->loops[inst->aux];
    need(t, loop->first, here);
    need(t, loop->bound, here);
    need(t, loop->first_high, here);
    need(t, loop->bound_high, here);
  }
  if (inst->op != VYRE__LIR_GET || t->is_read[inst->aux]) return;
  t->is_read[inst->aux] = 1;
  uint32_t set = t->last_set[inst->aux];
  for (; set; set = t->same[set]) need(t, set, here);
}

static void mark_needed(tidying *t) {
  t->stacked = 0;
  for (uint32_t i = (uint32_t)t->low->count - 1; i > 0; i--) {
    if (!t->needed[i] && !has_effect(&t->low->code[i])) continue;
    t->needed[i] = 1;
    need_parts(t, i, i);
    while (t->stacked > 0) need_parts(t, t->stack[--t->stacked], i);
  }
}

/* --- moving it together -------------------------------------------------------- */

/* Whether the IF that ends here is empty: then it and its ELSE are gone. */
static bool drop_if(vyre__lir_writer *low, uint32_t begin, uint32_t *count) {
  uint32_t inside = begin + 1;
  if (low->code[begin].op != VYRE__LIR_IF) return false;
  if (inside < *count && low->code[inside].op == VYRE__LIR_ELSE) inside++;
  if (inside < *count) return false;
  *count = begin;
  return true;
}

static void compact(tidying *t) {
  vyre__lir_writer *low = t->low;
  uint32_t *map = t->same, count = 1;
  size_t depth = 0;
  map[0] = 0;
  for (uint32_t i = 1; i < low->count; i++) {
    map[i] = 0;
    if (!t->needed[i]) continue;
    vyre__lir_inst inst = low->code[i];
    const vyre__lir_info *info = &vyre__lir_ops[inst.op];
    for (unsigned k = 0; k < info->operands; k++) inst.v[k] = map[inst.v[k]];
    if (inst.op == VYRE__LIR_IF || inst.op == VYRE__LIR_LOOP) {
      t->blocks[depth++] = count;
    } else if (inst.op == VYRE__LIR_END) {
      if (drop_if(low, t->blocks[--depth], &count)) continue;
    }
    if (inst.op == VYRE__LIR_LOOP) {
      vyre__lir_loop *loop = &low->loops[inst.aux];
      loop->first = map[loop->first];
      loop->bound = map[loop->bound];
      loop->first_high = map[loop->first_high];
      loop->bound_high = map[loop->bound_high];
      if (!loop->first || !loop->bound) loop->is_counted = false;
    }
    map[i] = count;
    low->places[count] = low->places[i];
    low->code[count++] = inst;
  }
  low->count = count;
}

void vyre__lir_cse_dce(vyre__lir_writer *low, vyre_arena *scratch) {
  size_t count = low->count, vars = low->var_count;
  uint32_t slots = 16;
  while (slots < count * 2) slots *= 2;
  tidying t = {.low = low, .mask = slots - 1};
  t.slots = vyre__arena_array(scratch, slots, sizeof *t.slots);
  t.same = vyre__arena_array(scratch, count, sizeof *t.same);
  t.needed = vyre__arena_array(scratch, count, 1);
  t.last_set = vyre__arena_array(scratch, vars, sizeof *t.last_set);
  t.is_read = vyre__arena_array(scratch, vars, 1);
  t.stack = vyre__arena_array(scratch, count, sizeof *t.stack);
  t.blocks = vyre__arena_array(scratch, count, sizeof *t.blocks);
  if (low->no_memory || !t.slots || !t.same || !t.needed || !t.last_set ||
      !t.is_read || !t.stack || !t.blocks) {
    low->no_memory = true;
    return;
  }
  memset(t.slots, 0, sizeof *t.slots * slots);
  memset(t.needed, 0, count);
  memset(t.last_set, 0, sizeof *t.last_set * vars);
  memset(t.is_read, 0, vars);
  share_values(&t);
  mark_needed(&t);
  compact(&t);
}
