/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The pass `tidy`: what is computed twice is computed once, what nobody needs is
 * gone. Works on a whole array, then writes it anew. */
#include "lower/tidy.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

/* --- what is computed twice --------------------------------------------------- */

typedef struct shared_values {
  vyre__low_inst *code;
  uint32_t *slots; /* hash table of values; 0: free */
  uint32_t mask;
  uint32_t *same;  /* per value: the one that stands for it */
  uint32_t *added; /* slots filled, in order, to be emptied at block ends */
  size_t added_count;
} shared_values;

static uint32_t hash_of(const vyre__low_inst *inst) {
  uint64_t h = (uint64_t)inst->op << 8 | inst->type;
  for (unsigned k = 0; k < 4; k++) {
    h = (h ^ inst->v[k]) * UINT64_C(0x9E3779B97F4A7C15);
    h ^= h >> 29;
  }
  h = (h ^ inst->aux) * UINT64_C(0x9E3779B97F4A7C15);
  return (uint32_t)(h >> 32);
}

static bool is_same(const vyre__low_inst *a, const vyre__low_inst *b) {
  return a->op == b->op && a->type == b->type && a->aux == b->aux &&
         memcmp(a->v, b->v, sizeof a->v) == 0;
}

static void share(shared_values *s, uint32_t i) {
  uint32_t slot = hash_of(&s->code[i]) & s->mask;
  while (s->slots[slot]) {
    if (is_same(&s->code[s->slots[slot]], &s->code[i])) {
      s->same[i] = s->slots[slot];
      return;
    }
    slot = (slot + 1) & s->mask;
  }
  s->slots[slot] = i;
  s->added[s->added_count++] = slot;
}

/* A value is known in its block and the blocks inside. Taking the newest entries
 * out of an open-addressed table leaves no holes in the chains of older ones. */
static void share_values(shared_values *s, uint32_t count, size_t *marks) {
  size_t depth = 0;
  for (uint32_t i = 1; i < count; i++) {
    vyre__low_inst *inst = &s->code[i];
    const vyre__low_info *info = &vyre__low_ops[inst->op];
    s->same[i] = i;
    for (unsigned k = 0; k < info->operands; k++) {
      inst->v[k] = s->same[inst->v[k]];
    }
    bool opens = inst->op == VYRE__LOW_IF || inst->op == VYRE__LOW_LOOP;
    /* CONTINUE comes to STEP past some of the body's values. */
    bool closes = inst->op == VYRE__LOW_ELSE || inst->op == VYRE__LOW_STEP ||
                  inst->op == VYRE__LOW_END;
    if (closes) {
      while (s->added_count > marks[depth - 1]) {
        s->slots[s->added[--s->added_count]] = 0;
      }
      if (inst->op == VYRE__LOW_END) depth--;
    }
    if (opens) marks[depth++] = s->added_count;
    if (info->flags & VYRE__LOWF_PURE) share(s, i);
  }
}

/* --- what nobody needs --------------------------------------------------------- */

static bool has_effect(const vyre__low_inst *inst) {
  uint16_t flags = vyre__low_ops[inst->op].flags;
  return flags & (uint16_t)~(VYRE__LOWF_PURE_HIGH | VYRE__LOWF_READS |
                             VYRE__LOWF_WRITES_VAR);
}

/* Marks backwards what is needed. A SET is needed if a needed GET reads its
 * variable somewhere: that may take another round. */
static void mark_needed(const vyre__low *low, uint8_t *needed,
                        uint8_t *is_read) {
  bool again = true;
  for (unsigned round = 0; again; round++) {
    again = false;
    /* Long chains of variables are rare: what is left then is kept. */
    if (round == 8) memset(is_read, 1, low->var_count);
    for (uint32_t i = (uint32_t)low->count - 1; i > 0; i--) {
      const vyre__low_inst *inst = &low->code[i];
      bool keep = needed[i] || has_effect(inst) ||
                  (inst->op == VYRE__LOW_SET && is_read[inst->aux]);
      if (!keep) continue;
      needed[i] = 1;
      for (unsigned k = 0; k < vyre__low_ops[inst->op].operands; k++) {
        needed[inst->v[k]] = 1;
      }
      if (inst->op == VYRE__LOW_GET && !is_read[inst->aux] && round < 8) {
        is_read[inst->aux] = 1;
        again = true;
      }
    }
  }
}

/* An IF in which nothing is left. */
static void drop_empty_ifs(const vyre__low *low, uint8_t *needed,
                           uint32_t *stack) {
  /* stack: of each open IF its number, and whether something was in it */
  size_t depth = 0;
  for (uint32_t i = 1; i < low->count; i++) {
    const vyre__low_inst *inst = &low->code[i];
    if (!needed[i]) continue;
    if (inst->op == VYRE__LOW_IF || inst->op == VYRE__LOW_LOOP) {
      stack[3 * depth] = i;
      stack[3 * depth + 1] = inst->op == VYRE__LOW_LOOP;
      stack[3 * depth + 2] = 0;
      depth++;
    } else if (inst->op == VYRE__LOW_ELSE) {
      stack[3 * depth - 1] = i;
    } else if (inst->op == VYRE__LOW_END) {
      depth--;
      bool used = stack[3 * depth + 1];
      if (!used) {
        needed[stack[3 * depth]] = needed[i] = 0;
        if (stack[3 * depth + 2]) needed[stack[3 * depth + 2]] = 0;
      }
      if (depth > 0 && used) stack[3 * depth - 2] = 1;
    } else if (depth > 0) {
      stack[3 * depth - 2] = 1;
    }
  }
}

/* --- the pass ------------------------------------------------------------------ */

static void compact(vyre__low *low, const uint8_t *needed, uint32_t *map) {
  uint32_t count = 1;
  map[0] = 0;
  for (uint32_t i = 1; i < low->count; i++) {
    map[i] = 0;
    if (!needed[i]) continue;
    vyre__low_inst inst = low->code[i];
    for (unsigned k = 0; k < vyre__low_ops[inst.op].operands; k++) {
      inst.v[k] = map[inst.v[k]];
    }
    if (inst.op == VYRE__LOW_LOOP) {
      vyre__low_loop *loop = &low->loops[inst.aux];
      loop->first = map[loop->first];
      loop->bound = map[loop->bound];
      if (!loop->first || !loop->bound) loop->is_counted = false;
    }
    map[i] = count;
    low->places[count] = low->places[i];
    low->code[count++] = inst;
  }
  low->count = count;
}

/* Values of loops that are said to be counted live as long as the loop. */
static void keep_loop_values(const vyre__low *low, const uint32_t *same) {
  for (uint32_t i = 1; i < low->count; i++) {
    if (low->code[i].op != VYRE__LOW_LOOP) continue;
    vyre__low_loop *loop = &low->loops[low->code[i].aux];
    loop->first = same[loop->first];
    loop->bound = same[loop->bound];
  }
}

void vyre__low_tidy(vyre__low *low, vyre_arena *scratch) {
  size_t count = low->count;
  uint32_t slots = 16;
  while (slots < count * 2) slots *= 2;
  shared_values s = {.code = low->code, .mask = slots - 1};
  s.slots = vyre__arena_array(scratch, slots, sizeof *s.slots);
  s.same = vyre__arena_array(scratch, count, sizeof *s.same);
  s.added = vyre__arena_array(scratch, count, sizeof *s.added);
  size_t *marks = vyre__arena_array(scratch, count, sizeof *marks);
  uint8_t *needed = vyre__arena_array(scratch, count, 1);
  uint8_t *is_read = vyre__arena_array(scratch, low->var_count, 1);
  uint32_t *stack = vyre__arena_array(scratch, 3 * count, sizeof *stack);
  if (low->no_memory || !s.slots || !s.same || !s.added || !marks || !needed ||
      !is_read || !stack) {
    low->no_memory = true;
    return;
  }
  memset(s.slots, 0, sizeof *s.slots * slots);
  memset(needed, 0, count);
  memset(is_read, 0, low->var_count);
  s.same[0] = 0;
  share_values(&s, (uint32_t)count, marks);
  keep_loop_values(low, s.same);
  mark_needed(low, needed, is_read);
  drop_empty_ifs(low, needed, stack);
  compact(low, needed, s.same);
}
