/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pass `accumulator-split`: loops with more accumulators than registers.
 *
 *     for (k ..) { s0 = fma(a0[k], v[k], s0); .. s7 = fma(a7[k], v[k], s7); }
 *
 * Eight accumulators of two registers each occupy all sixteen registers, and one that
 * is spilled waits for memory in every iteration. If each accumulator depends on itself
 * only and the loop has no other effect, the loop runs once per group of accumulators.
 * Each accumulator still adds the same terms in the same order. */
#include "base/memory.h"
#include "base/status.h"
#include "spmd/schedule_internal.h"

enum { MAX_GROUPS = 8, MAX_SUMS = 32, EVERY = 0xFF };

typedef struct sums {
  uint32_t vars[MAX_SUMS];
  uint32_t count;
  uint32_t counter; /* variable */
  uint32_t each;    /* sums a group */
} sums;

static uint32_t index_of(const sums *found, uint32_t var) {
  uint32_t i = 0;
  while (i < found->count && found->vars[i] != var) i++;
  return i;
}

/* Checks that the body is a test and straight-line code that sets each
 * accumulator once. */
static bool find_sums(const vyre__schedule *s, uint32_t at, sums *found) {
  uint32_t step = info_at(s, at)->mate, end = vyre__end_of(&s->r, at);
  uint32_t ifs = 0;
  for (uint32_t i = at + 1; i < end; i++) {
    const vyre__lir_inst *inst = inst_at(s, i);
    uint16_t flags = vyre__lir_ops[inst->op].flags;
    if (!info_at(s, i)->is_needed && !(flags & VYRE__LIRF_CONTROL)) continue;
    if (info_at(s, i)->storage >= VYRE__STORAGE_BROADCAST) return false;
    if (flags & (VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS)) return false;
    if (inst->op == VYRE__LIR_LOOP) return false;
    if (inst->op == VYRE__LIR_IF) {
      bool tests = i < step && inst_at(s, i + 1)->op == VYRE__LIR_BREAK &&
                   inst_at(s, i + 2)->op == VYRE__LIR_END;
      if (!tests || ifs++) return false;
    }
    if (inst->op != VYRE__LIR_SET || inst->aux == found->counter) continue;
    if (i > step || s->vars[inst->aux].form != VYRE__AS_VECTOR) return false;
    if (s->vars[inst->aux].has_shadow || found->count == MAX_SUMS) return false;
    if (index_of(found, inst->aux) < found->count) return false;
    found->vars[found->count++] = inst->aux;
  }
  return ifs == 1;
}

/* Marks the operands of @p v in the loop as part of @p group. Returns false
 * if an accumulator of another group is among them. */
static bool mark(vyre__schedule *s, const sums *found, uint32_t loop,
                 vyre__val v, uint8_t group) {
  const vyre__lir_inst *inst = inst_at(s, v);
  if (v < loop || info_at(s, v)->is_leaf) return true;
  uint8_t *groups = &note_at(s, v)->groups;
  if ((*groups & group) == group) return true;
  if (inst->op == VYRE__LIR_GET) {
    uint32_t of = index_of(found, inst->aux);
    if (of < found->count && 1u << of / found->each != group) return false;
  }
  *groups |= group;
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst, operands);
  for (uint32_t i = 0; i < count; i++) {
    if (!mark(s, found, loop, operands[i], group)) return false;
  }
  return true;
}

static void clear_marks(vyre__schedule *s, uint32_t at, uint8_t groups) {
  uint32_t end = vyre__end_of(&s->r, at);
  for (uint32_t i = at + 1; i < end; i++) note_at(s, i)->groups = groups;
}

/* Returns the last SET of the counter before the loop, in its block; 0:
 * none. */
static uint32_t start_of(const vyre__schedule *s, uint32_t at,
                         uint32_t counter) {
  for (uint32_t i = at; i-- > s->r.begin;) {
    const vyre__lir_inst *inst = inst_at(s, i);
    if (info_at(s, i)->parent != info_at(s, at)->parent) return 0;
    if (vyre__lir_ops[inst->op].flags & VYRE__LIRF_CONTROL) return 0;
    if (inst->op == VYRE__LIR_SET && inst->aux == counter) return i;
  }
  return 0;
}

/* Returns the number of groups, so that the accumulators, two operands and
 * one more value fit into registers. */
static uint32_t choose_groups(const vyre__schedule *s, uint32_t count) {
  uint32_t lanes = s->lanes;
  uint32_t registers = lanes == 16 ? 28 : 13;
  uint32_t each = s->width > lanes ? s->width / lanes : 1;
  uint32_t fit = registers / each - 1;
  if (registers / each < 3 || count <= fit) return 1;
  uint32_t groups = (count + fit - 1) / fit;
  return groups <= MAX_GROUPS ? groups : 1;
}

static void plan_loop(vyre__schedule *s, uint32_t at) {
  const vyre__lir_loop *loop = &s->kernel->loops[inst_at(s, at)->aux];
  const vyre__sched_note *note = note_at(s, at);
  if (!loop->is_counted || note->parts || note->continues || note->drops) {
    return;
  }
  sums found = {.counter = loop->var};
  if (!find_sums(s, at, &found)) return;
  uint32_t groups = choose_groups(s, found.count);
  uint32_t start = start_of(s, at, loop->var);
  if (groups == 1 || !start) return;
  found.each = (found.count + groups - 1) / groups;
  uint32_t step = info_at(s, at)->mate;
  clear_marks(s, at, 0);
  bool is_good = true;
  for (uint32_t i = at + 1; i < step && is_good; i++) {
    const vyre__lir_inst *inst = inst_at(s, i);
    if (inst->op == VYRE__LIR_IF) {
      is_good = mark(s, &found, at, inst->a, EVERY);
    }
    if (inst->op != VYRE__LIR_SET || !info_at(s, i)->is_needed) continue;
    uint8_t group = (uint8_t)(1u << index_of(&found, inst->aux) / found.each);
    note_at(s, i)->groups = group;
    is_good = mark(s, &found, at, inst->a, group);
  }
  uint32_t end = vyre__end_of(&s->r, at);
  for (uint32_t i = step; i < end; i++) {
    note_at(s, i)->groups = EVERY;
    if (inst_at(s, i)->op != VYRE__LIR_SET) continue;
    is_good &= mark(s, &found, at, inst_at(s, i)->a, EVERY);
  }
  note_at(s, at)->groups = is_good ? (uint8_t)groups : 0;
  note_at(s, at)->group_start = start;
}

/* Replaces *at, a LOOP, by one copy per group. */
static vyre_code split_loop(vyre__schedule *s, vyre__sched_node **at) {
  vyre__sched_node *loop = *at, *copies;
  uint32_t groups = note_at(s, loop->begin)->groups;
  copies = vyre__arena_array(s->arena, groups + 1, sizeof *copies);
  if (!copies) return vyre__schedule_no_memory(s, groups);
  vyre__sched_node *all = &copies[groups];
  *all = (vyre__sched_node){.kind = VYRE__SCHED_ACCUMULATORS,
                            .begin = loop->begin,
                            .end = loop->end,
                            .subregion = loop->subregion,
                            .body = copies,
                            .next = loop->next};
  for (uint32_t i = 0; i < groups; i++) {
    copies[i] = *loop;
    copies[i].group = (uint8_t)(1u << i);
    copies[i].next = i + 1 < groups ? &copies[i + 1] : NULL;
  }
  *at = all;
  return VYRE_OK;
}

static vyre_code split_loops(vyre__schedule *s, vyre__sched_node **first) {
  for (vyre__sched_node **at = first; *at; at = &(*at)->next) {
    if ((*at)->kind == VYRE__SCHED_LOOP && note_at(s, (*at)->begin)->groups) {
      VYRE_TRY(split_loop(s, at));
      continue;
    }
    VYRE_TRY(split_loops(s, &(*at)->body));
    VYRE_TRY(split_loops(s, &(*at)->other));
  }
  return VYRE_OK;
}

vyre_code vyre__schedule_accumulator_split(vyre__schedule *s) {
  bool any = false;
  for (uint32_t at = s->r.begin; at < s->r.end && s->width > 1; at++) {
    if (!is_op(s, at, VYRE__LIR_LOOP) || !info_at(s, at)->subregion) continue;
    plan_loop(s, at);
    any |= note_at(s, at)->groups != 0;
  }
  return any ? split_loops(s, &s->root) : VYRE_OK;
}
