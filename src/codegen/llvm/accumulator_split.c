/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Accumulator splitting: loops with more accumulators than registers.
 *
 *     for (k ..) { s0 = fma(a0[k], v[k], s0); .. s7 = fma(a7[k], v[k], s7); }
 *
 * Eight accumulators of two registers each occupy all sixteen registers, and one that
 * is spilled waits for memory in every iteration. If each accumulator depends on itself
 * only and the loop has no other effect, the loop runs once per group of accumulators.
 * Each accumulator still adds the same terms in the same order. */
#include "codegen/llvm/internal.h"

enum { MAX_GROUPS = 8, MAX_SUMS = 32, EVERY = 0xFF };

typedef struct sums {
  uint32_t vars[MAX_SUMS];
  uint32_t count;
  uint32_t counter; /* variable */
  uint32_t each;    /* sums a group */
} sums;

static uint32_t index_of(const sums *s, uint32_t var) {
  uint32_t i = 0;
  while (i < s->count && s->vars[i] != var) i++;
  return i;
}

/* Checks that the body is a test and straight-line code that sets each
 * accumulator once. */
static bool find_sums(const ll *e, uint32_t at, sums *s) {
  uint32_t step = ll_role(e, at)->mate, end = vyre__end_of(&e->r, at);
  uint32_t ifs = 0;
  for (uint32_t i = at + 1; i < end; i++) {
    const vyre__lir_inst *inst = ll_inst(e, i);
    uint16_t flags = vyre__lir_ops[inst->op].flags;
    if (!ll_role(e, i)->is_needed && !(flags & VYRE__LIRF_CONTROL)) continue;
    if (ll_role(e, i)->storage >= VYRE__STORAGE_BROADCAST) return false;
    if (flags & (VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS)) return false;
    if (inst->op == VYRE__LIR_LOOP) return false;
    if (inst->op == VYRE__LIR_IF) {
      bool tests = i < step && ll_inst(e, i + 1)->op == VYRE__LIR_BREAK &&
                   ll_inst(e, i + 2)->op == VYRE__LIR_END;
      if (!tests || ifs++) return false;
    }
    if (inst->op != VYRE__LIR_SET || inst->aux == s->counter) continue;
    if (i > step || e->vars[inst->aux].form != LL_VECTOR) return false;
    if (e->vars[inst->aux].has_shadow || s->count == MAX_SUMS) return false;
    if (index_of(s, inst->aux) < s->count) return false;
    s->vars[s->count++] = inst->aux;
  }
  return ifs == 1;
}

/* Marks the operands of @p v in the loop as part of @p group. Returns false
 * if an accumulator of another group is among them. */
static bool mark(ll *e, const sums *s, uint32_t loop, vyre__val v,
                 uint8_t group) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  if (v < loop || ll_role(e, v)->is_leaf) return true;
  uint8_t *groups = &ll_note_of(e, v)->groups;
  if ((*groups & group) == group) return true;
  if (inst->op == VYRE__LIR_GET) {
    uint32_t of = index_of(s, inst->aux);
    if (of < s->count && 1u << of / s->each != group) return false;
  }
  *groups |= group;
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst, operands);
  for (uint32_t i = 0; i < count; i++) {
    if (!mark(e, s, loop, operands[i], group)) return false;
  }
  return true;
}

static void clear_marks(ll *e, uint32_t at, uint8_t groups) {
  uint32_t end = vyre__end_of(&e->r, at);
  for (uint32_t i = at + 1; i < end; i++) ll_note_of(e, i)->groups = groups;
}

/* Returns the last SET of the counter before the loop, in its block; 0:
 * none. */
static uint32_t start_of(const ll *e, uint32_t at, uint32_t counter) {
  for (uint32_t i = at; i-- > e->r.begin;) {
    const vyre__lir_inst *inst = ll_inst(e, i);
    if (ll_role(e, i)->parent != ll_role(e, at)->parent) return 0;
    if (vyre__lir_ops[inst->op].flags & VYRE__LIRF_CONTROL) return 0;
    if (inst->op == VYRE__LIR_SET && inst->aux == counter) return i;
  }
  return 0;
}

/* Returns the number of groups, so that the accumulators, two operands and
 * one more value fit into registers. */
static uint32_t choose_groups(const ll *e, uint32_t count) {
  uint32_t lanes = e->options->lanes ? e->options->lanes : 8;
  uint32_t registers = lanes == 16 ? 28 : 13;
  uint32_t each = e->width > lanes ? e->width / lanes : 1;
  uint32_t fit = registers / each - 1;
  if (registers / each < 3 || count <= fit) return 1;
  uint32_t groups = (count + fit - 1) / fit;
  return groups <= MAX_GROUPS ? groups : 1;
}

static void plan_loop(ll *e, uint32_t at) {
  const vyre__lir_loop *loop = &e->kernel->loops[ll_inst(e, at)->aux];
  const ll_note *note = ll_note_of(e, at);
  if (!loop->is_counted || note->parts || note->continues || note->drops) {
    return;
  }
  sums s = {.counter = loop->var};
  if (!find_sums(e, at, &s)) return;
  uint32_t groups = choose_groups(e, s.count);
  uint32_t start = start_of(e, at, loop->var);
  if (groups == 1 || !start) return;
  s.each = (s.count + groups - 1) / groups;
  uint32_t step = ll_role(e, at)->mate;
  clear_marks(e, at, 0);
  bool is_good = true;
  for (uint32_t i = at + 1; i < step && is_good; i++) {
    const vyre__lir_inst *inst = ll_inst(e, i);
    if (inst->op == VYRE__LIR_IF) {
      is_good = mark(e, &s, at, inst->a, EVERY);
    }
    if (inst->op != VYRE__LIR_SET || !ll_role(e, i)->is_needed) continue;
    uint8_t group = (uint8_t)(1u << index_of(&s, inst->aux) / s.each);
    ll_note_of(e, i)->groups = group;
    is_good = mark(e, &s, at, inst->a, group);
  }
  uint32_t end = vyre__end_of(&e->r, at);
  for (uint32_t i = step; i < end; i++) {
    ll_note_of(e, i)->groups = EVERY;
    if (ll_inst(e, i)->op != VYRE__LIR_SET) continue;
    is_good &= mark(e, &s, at, ll_inst(e, i)->a, EVERY);
  }
  ll_note_of(e, at)->groups = is_good ? (uint8_t)groups : 0;
  ll_note_of(e, at)->group_start = start;
}

void ll_plan_splits(ll *e) {
  for (uint32_t at = e->r.begin; at < e->r.end && e->width > 1; at++) {
    bool is_loop = ll_inst(e, at)->op == VYRE__LIR_LOOP;
    if (is_loop && ll_role(e, at)->subregion) plan_loop(e, at);
  }
}

bool ll_is_other_group(const ll *e, uint32_t at) {
  return e->group_now && !(ll_note_of(e, at)->groups & e->group_now);
}
