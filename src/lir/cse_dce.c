/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The pass `cse-dce`: removes common subexpressions and dead code. It makes
 * three passes over the array: forwards to find equal values, backwards to find
 * needed instructions, forwards to compact the array. */
#include "lir/cse_dce.h"

#include <string.h>

#include "base/memory.h"

typedef struct cse_state {
  vyre__lir_writer *lir;
  uint32_t *table; /* hash table of values; 0: free */
  uint32_t mask;
  uint32_t *same;  /* Per value: the equal value that replaces it, later its new
                    * index. For a SET: the previous SET of its variable. */
  uint32_t *stack; /* First the filled table entries, to be cleared at block
                    * ends. Later a work list of needed instructions behind the
                    * current one. */
  size_t stacked;
  uint32_t *blocks; /* open blocks */
  uint8_t *needed;
  uint32_t *last_set; /* per variable; 0: none */
  uint8_t *is_read;   /* per variable */
} cse_state;

/* --- common subexpressions
 * ----------------------------------------------------- */

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

static void share(cse_state *t, uint32_t i) {
  const vyre__lir_inst *code = t->lir->code;
  uint32_t entry = hash_of(&code[i]) & t->mask;
  while (t->table[entry]) {
    if (is_same(&code[t->table[entry]], &code[i])) {
      t->same[i] = t->table[entry];
      return;
    }
    entry = (entry + 1) & t->mask;
  }
  t->table[entry] = i;
  t->stack[t->stacked++] = entry;
}

/* Opens and closes blocks: a value can be reused in its block and in blocks
 * nested in it. Removing the newest entries of an open-addressed table leaves
 * no holes in the chains of older ones. Returns the new nesting depth. */
static size_t share_control(cse_state *t, const vyre__lir_inst *inst,
                            size_t depth) {
  if (inst->op == VYRE__LIR_IF || inst->op == VYRE__LIR_LOOP) {
    t->blocks[depth] = (uint32_t)t->stacked;
    if (inst->op == VYRE__LIR_IF) return depth + 1;
    /* Values of a counted loop must stay available during the loop. */
    vyre__lir_loop *loop = &t->lir->loops[inst->aux];
    loop->first = t->same[loop->first];
    loop->bound = t->same[loop->bound];
    loop->first_high = t->same[loop->first_high];
    loop->bound_high = t->same[loop->bound_high];
    return depth + 1;
  }
  /* ELSE and END close a block. At STEP the body's values may be missing,
   * because CONTINUE skips some of them. */
  while (t->stacked > t->blocks[depth - 1]) {
    t->table[t->stack[--t->stacked]] = 0;
  }
  return inst->op == VYRE__LIR_END ? depth - 1 : depth;
}

/* Returns true if equal instructions have equal values: operations, and loads
 * of uniforms, which do not change during a launch. */
static bool is_shareable(const cse_state *t, const vyre__lir_inst *inst) {
  if (vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE) return true;
  return inst->op == VYRE__LIR_LOAD &&
         t->lir->buffers[inst->aux].kind == VYRE_MEMORY_UNIFORM;
}

static void share_values(cse_state *t) {
  size_t depth = 0;
  uint32_t count = (uint32_t)t->lir->count;
  t->same[0] = 0;
  for (uint32_t i = 1; i < count; i++) {
    vyre__lir_inst *inst = &t->lir->code[i];
    const vyre__lir_info *info = &vyre__lir_ops[inst->op];
    t->same[i] = i;
    for (unsigned k = 0; k < info->operands; k++) {
      inst->v[k] = t->same[inst->v[k]];
    }
    if (is_shareable(t, inst)) {
      share(t, i);
    } else if (info->flags & VYRE__LIRF_CONTROL) {
      depth = share_control(t, inst, depth);
    } else if (inst->op == VYRE__LIR_SET) {
      t->same[i] = t->last_set[inst->aux];
      t->last_set[inst->aux] = i;
    }
  }
}

/* --- dead code
 * ------------------------------------------------------------------- */

static bool has_effect(const vyre__lir_inst *inst) {
  uint16_t flags = vyre__lir_ops[inst->op].flags;
  return flags & (uint16_t)~(VYRE__LIRF_PURE_HIGH | VYRE__LIRF_READS |
                             VYRE__LIRF_WRITES_VAR);
}

/* Marks an instruction as needed. The backward scan is at @p here: it will
 * reach earlier instructions itself, later ones go to the work list. */
static void mark(cse_state *t, uint32_t i, uint32_t here) {
  if (t->needed[i]) return;
  t->needed[i] = 1;
  if (i > here) t->stack[t->stacked++] = i;
}

/* Marks everything that a needed instruction depends on. A SET is needed if a
 * needed GET reads its variable, in any order. */
static void mark_operands(cse_state *t, uint32_t i, uint32_t here) {
  const vyre__lir_inst *inst = &t->lir->code[i];
  unsigned operands = vyre__lir_ops[inst->op].operands;
  for (unsigned k = 0; k < operands; k++) mark(t, inst->v[k], here);
  if (inst->op == VYRE__LIR_LOOP && t->lir->loops[inst->aux].high_var) {
    /* The host runs this loop, so it needs all four values even if the loop
     * condition in the kernel does not use one half. */
    const vyre__lir_loop *loop = &t->lir->loops[inst->aux];
    mark(t, loop->first, here);
    mark(t, loop->bound, here);
    mark(t, loop->first_high, here);
    mark(t, loop->bound_high, here);
  }
  if (inst->op != VYRE__LIR_GET || t->is_read[inst->aux]) return;
  t->is_read[inst->aux] = 1;
  uint32_t set = t->last_set[inst->aux];
  for (; set; set = t->same[set]) mark(t, set, here);
}

static void mark_needed(cse_state *t) {
  t->stacked = 0;
  for (uint32_t i = (uint32_t)t->lir->count - 1; i > 0; i--) {
    if (!t->needed[i] && !has_effect(&t->lir->code[i])) continue;
    t->needed[i] = 1;
    mark_operands(t, i, i);
    while (t->stacked > 0) mark_operands(t, t->stack[--t->stacked], i);
  }
}

/* --- compaction
 * ------------------------------------------------------------------ */

/* Removes the IF that ends here, with its ELSE, if it is empty. */
static bool drop_if(vyre__lir_writer *lir, uint32_t begin, uint32_t *count) {
  uint32_t inside = begin + 1;
  if (lir->code[begin].op != VYRE__LIR_IF) return false;
  if (inside < *count && lir->code[inside].op == VYRE__LIR_ELSE) inside++;
  if (inside < *count) return false;
  *count = begin;
  return true;
}

static void compact(cse_state *t) {
  vyre__lir_writer *lir = t->lir;
  uint32_t *map = t->same, count = 1;
  size_t depth = 0;
  map[0] = 0;
  for (uint32_t i = 1; i < lir->count; i++) {
    map[i] = 0;
    if (!t->needed[i]) continue;
    vyre__lir_inst inst = lir->code[i];
    const vyre__lir_info *info = &vyre__lir_ops[inst.op];
    for (unsigned k = 0; k < info->operands; k++) inst.v[k] = map[inst.v[k]];
    if (inst.op == VYRE__LIR_IF || inst.op == VYRE__LIR_LOOP) {
      t->blocks[depth++] = count;
    } else if (inst.op == VYRE__LIR_END) {
      if (drop_if(lir, t->blocks[--depth], &count)) continue;
    }
    if (inst.op == VYRE__LIR_LOOP) {
      vyre__lir_loop *loop = &lir->loops[inst.aux];
      loop->first = map[loop->first];
      loop->bound = map[loop->bound];
      loop->first_high = map[loop->first_high];
      loop->bound_high = map[loop->bound_high];
      if (!loop->first || !loop->bound) loop->is_counted = false;
    }
    map[i] = count;
    lir->source_locs[count] = lir->source_locs[i];
    lir->code[count++] = inst;
  }
  lir->count = count;
}

void vyre__lir_cse_dce(vyre__lir_writer *lir, vyre_arena *scratch) {
  size_t count = lir->count, vars = lir->var_count;
  uint32_t table = 16;
  while (table < count * 2) table *= 2;
  cse_state t = {.lir = lir, .mask = table - 1};
  t.table = vyre__arena_filled(scratch, table, sizeof *t.table, 0);
  t.same = vyre__arena_array(scratch, count, sizeof *t.same);
  t.needed = vyre__arena_filled(scratch, count, 1, 0);
  t.last_set = vyre__arena_filled(scratch, vars, sizeof *t.last_set, 0);
  t.is_read = vyre__arena_filled(scratch, vars, 1, 0);
  t.stack = vyre__arena_array(scratch, count, sizeof *t.stack);
  t.blocks = vyre__arena_array(scratch, count, sizeof *t.blocks);
  if (lir->no_memory || !t.table || !t.same || !t.needed || !t.last_set ||
      !t.is_read || !t.stack || !t.blocks) {
    lir->no_memory = true;
    return;
  }
  share_values(&t);
  mark_needed(&t);
  compact(&t);
}
