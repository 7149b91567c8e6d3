/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Splits a kernel with grid barriers into phases.
 *
 * A phase is the code between two grid barriers, or between one and the end of
 * an enclosing loop. The host runs such loops. A phase recomputes a value of an
 * earlier phase if that is cheap and gives the same result (ids, lengths,
 * uniforms, sums of a few of them). Other values are stored in the spill
 * buffer, at index word * invocations + invocation. Variables that several
 * phases access are loaded at the start of each phase and stored at its end.
 * The same applies to shared memory if a segment ends without a grid barrier
 * (phase_split_shared.c).
 *
 * An invocation that ends (EXIT), or that leaves a host loop (BREAK, CONTINUE),
 * sets a flag in a spill word, which later phases test first. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "lower/phase_split_internal.h"

/* Instructions needed to recompute a value; shared operands count more than
 * once. CHEAP also bounds the recursion depth of copy_value. */
enum { CHEAP = 64, COSTLY = 254, NEVER = 255 };

/* --- finding the segments ------------------------------------------------- */

static void *grow(splitter *s, void *array, size_t *capacity, size_t count,
                  size_t size) {
  if (!vyre__reserve(s->lir->allocator, array, capacity, count + 1, size,
                     false)) {
    s->lir->no_memory = true;
    return NULL;
  }
  return array;
}

static void add_step(splitter *s, vyre__lir_step step) {
  vyre__split *o = s->out;
  if (!grow(s, &o->steps, &o->step_capacity, o->step_count, sizeof step))
    return;
  o->steps[o->step_count++] = step;
}

static void add_segment(splitter *s, segment p) {
  if (!grow(s, &s->segments, &s->segment_capacity, s->segment_count, sizeof p))
    return;
  uint32_t number = (uint32_t)s->segment_count++;
  s->segments[number] = p;
  add_step(s, (vyre__lir_step){.kind = VYRE__STEP_RUN, .phase = number});
  for (uint32_t i = p.begin; i < p.end; i++) s->home[i] = number;
}

static void add_clear(splitter *s, uint32_t at, uint32_t loop) {
  add_segment(s,
              (segment){.begin = at, .end = at, .loop = loop, .clears = true});
}

static void add_barrier(splitter *s, uint32_t at, uint32_t loop) {
  if (!grow(s, &s->barriers, &s->barrier_capacity, s->barrier_count,
            sizeof *s->barriers)) {
    return;
  }
  s->barriers[s->barrier_count++] = (uint32_t)s->out->step_count;
  if (s->carried_count > 0) add_clear(s, at, loop);
}

/* Returns true if a BREAK or CONTINUE in the body belongs to the loop
 * itself. */
static bool leaves_early(const splitter *s, uint32_t loop) {
  size_t inner = 0;
  for (uint32_t i = loop + 1; i < s->match[loop]; i++) {
    const vyre__lir_inst *inst = &s->from->code[i];
    if (inst->op == VYRE__LIR_LOOP) {
      inner = !s->has_grid[i] ? s->match[i] : 0;
      if (inner) i = (uint32_t)inner;
      continue;
    }
    if (inst->op == VYRE__LIR_IF && (inst->hints & VYRE__HINT_TEST)) {
      i = s->match[i];
      continue;
    }
    if (inst->op == VYRE__LIR_BREAK || inst->op == VYRE__LIR_CONTINUE) {
      return true;
    }
  }
  return false;
}

static void find_segments(splitter *s, uint32_t begin, uint32_t end,
                          uint32_t loop);

static void find_loop(splitter *s, uint32_t at, uint32_t outer) {
  if (!grow(s, &s->loops, &s->loop_capacity, s->loop_count, sizeof *s->loops)) {
    return;
  }
  uint32_t number = (uint32_t)s->loop_count++;
  s->loops[number] = (host_loop){at, outer, NO_PHASE};
  if (leaves_early(s, at)) {
    s->loops[number].skip_word = s->words++;
    add_segment(
        s, (segment){.begin = at, .end = at, .loop = number, .resets = true});
  }
  const vyre__lir_loop *loop = &s->from->loops[s->from->code[at].aux];
  bool wide = loop->high_var || s->from->vars[loop->var].type == VYRE_TYPE_U64;
  vyre_type type = loop->is_signed ? (wide ? VYRE_TYPE_I64 : VYRE_TYPE_I32)
                                   : (wide ? VYRE_TYPE_U64 : VYRE_TYPE_U32);
  add_step(s, (vyre__lir_step){.kind = VYRE__STEP_FOR,
                               .loop_kind = loop->kind,
                               .type = (uint8_t)type,
                               .loop = number,
                               .left_flag = s->loops[number].skip_word + 1,
                               .step = loop->step});
  uint32_t step = at + 1, end = s->match[at];
  size_t nested = 0;
  for (; step < end; step++) { /* finds its own STEP */
    unsigned op = s->from->code[step].op;
    if (op == VYRE__LIR_STEP && nested == 0) break;
    if (op == VYRE__LIR_IF || op == VYRE__LIR_LOOP) nested++;
    if (op == VYRE__LIR_END) nested--;
  }
  find_segments(s, at + 1, step, number);
  add_step(s, (vyre__lir_step){.kind = VYRE__STEP_END_FOR, .loop = number});
}

static void find_segments(splitter *s, uint32_t begin, uint32_t end,
                          uint32_t loop) {
  bool is_first = loop != NO_PHASE;
  uint32_t start = begin;
  for (uint32_t i = begin; i < end && !s->lir->no_memory; i++) {
    unsigned op = s->from->code[i].op;
    if (op == VYRE__LIR_IF || (op == VYRE__LIR_LOOP && !s->has_grid[i])) {
      while (s->from->code[i].op != VYRE__LIR_END) i = s->match[i];
      continue;
    }
    if (op != VYRE__LIR_GRID_BARRIER && op != VYRE__LIR_LOOP) continue;
    if (i > start || is_first) {
      add_segment(
          s, (segment){
                 .begin = start, .end = i, .loop = loop, .is_first = is_first});
      is_first = false;
    }
    if (op == VYRE__LIR_GRID_BARRIER) add_barrier(s, i, loop);
    if (op == VYRE__LIR_LOOP) {
      find_loop(s, i, loop);
      i = s->match[i];
    }
    start = i + 1;
  }
  if (end > start || is_first) {
    add_segment(
        s, (segment){
               .begin = start, .end = end, .loop = loop, .is_first = is_first});
  }
}

/* --- values that live across phases --------------------------------------- */

static uint32_t words_of(unsigned type) {
  return type == VYRE_TYPE_U64 || type == VYRE_TYPE_F64 ? 2 : 1;
}

static uint8_t cost_of(const splitter *s, const vyre__lir_inst *inst) {
  const vyre__lir_info *info = &vyre__lir_ops[inst->op];
  bool lasts = (info->flags & VYRE__LIRF_PURE) != 0;
  unsigned cost = 1;
  if (inst->op == VYRE__LIR_LOAD) {
    lasts = s->from->buffers[inst->aux].kind == VYRE_MEMORY_UNIFORM;
  }
  if (inst->op == VYRE__LIR_GET) lasts = s->var_loop[inst->aux] != NO_PHASE;
  for (unsigned k = 0; lasts && k < info->operands; k++) {
    lasts = s->cost[inst->v[k]] != NEVER;
    cost += s->cost[inst->v[k]];
  }
  if (!lasts) return NEVER;
  return (uint8_t)(cost <= CHEAP ? cost : COSTLY);
}

/* One pass suffices, since operands precede their uses. */
static void find_costs(splitter *s) {
  for (uint32_t k = 0; k < s->loop_count; k++) {
    const vyre__lir_inst *at = &s->from->code[s->loops[k].at];
    const vyre__lir_loop *loop = &s->from->loops[at->aux];
    s->var_loop[loop->var] = k;
    if (loop->high_var) s->var_loop[loop->high_var] = k;
  }
  s->cost[0] = 0;
  for (uint32_t i = 1; i < s->from->count; i++) {
    s->cost[i] = cost_of(s, &s->from->code[i]);
  }
}

static bool is_cheap(const splitter *s, vyre__val v) {
  return s->cost[v] <= CHEAP;
}

/* Returns true if an invocation that exits in this segment would run again, in
 * a later segment or in the next iteration of a loop. */
static bool runs_again(const splitter *s, uint32_t number) {
  return number + 1 < s->segment_count || s->segments[number].loop != NO_PHASE;
}

static void assign_spill_words(splitter *s) {
  const vyre__lir_writer *from = s->from;
  for (uint32_t i = 1; i < from->count; i++) {
    const vyre__lir_inst *inst = &from->code[i];
    uint32_t here = s->home[i];
    if (here == NO_PHASE) continue;
    for (unsigned k = 0; k < vyre__lir_ops[inst->op].operands; k++) {
      vyre__val v = inst->v[k];
      if (!v || s->home[v] == here || is_cheap(s, v)) continue;
      if (s->spill_word[v] == NO_PHASE) {
        s->spill_word[v] = s->words;
        s->words += words_of(from->code[v].type);
      }
    }
    bool is_out_of_fuel = from->code[i - 1].op == VYRE__LIR_OUT_OF_FUEL;
    if (inst->op == VYRE__LIR_EXIT && runs_again(s, here) && !is_out_of_fuel &&
        s->alive_word == NO_PHASE) {
      s->alive_word = s->words++;
    }
    if (inst->op != VYRE__LIR_GET && inst->op != VYRE__LIR_SET) continue;
    uint32_t var = inst->aux;
    if (s->var_loop[var] != NO_PHASE) continue;
    if (s->var_segment[var] == NO_PHASE) s->var_segment[var] = here;
    if (s->var_segment[var] != here && s->var_word[var] == NO_PHASE) {
      s->var_word[var] = s->words;
      s->words += words_of(from->vars[var].type);
    }
  }
}

/* --- writing -------------------------------------------------------------- */

vyre__val split_op2(splitter *s, vyre__lir_op op, vyre_type type, vyre__val a,
                    vyre__val b) {
  return vyre__lir_simplify(
      s->lir, &(vyre__lir_inst){
                  .op = (uint8_t)op, .type = (uint8_t)type, .v = {a, b, 0, 0}});
}

vyre__val split_u32(splitter *s, uint32_t value) {
  return vyre__lir_bits(s->lir, VYRE_TYPE_U32, value);
}

vyre__val split_word_index(splitter *s, uint32_t spill_word) {
  vyre__val base = split_op2(s, VYRE__LIR_MUL, VYRE_TYPE_U32, s->invocations,
                             split_u32(s, spill_word));
  return split_op2(s, VYRE__LIR_ADD, VYRE_TYPE_U32, base, s->invocation);
}

void split_store_at(splitter *s, vyre__val at, vyre__val value) {
  vyre__lir_push(s->lir, &(vyre__lir_inst){.op = VYRE__LIR_STORE,
                                           .hints = VYRE__HINT_PROVEN,
                                           .aux = s->out->spill_buffer,
                                           .v = {at, value, 0, 0}});
}

vyre__val split_load_at(splitter *s, vyre__val at) {
  return vyre__lir_push(s->lir, &(vyre__lir_inst){.op = VYRE__LIR_LOAD,
                                                  .type = VYRE_TYPE_U32,
                                                  .hints = VYRE__HINT_PROVEN,
                                                  .aux = s->out->spill_buffer,
                                                  .v = {at, 0, 0, 0}});
}

static void store_word(splitter *s, uint32_t spill_word, vyre__val value) {
  split_store_at(s, split_word_index(s, spill_word), value);
}

static vyre__val load_word(splitter *s, uint32_t spill_word) {
  return split_load_at(s, split_word_index(s, spill_word));
}

static void store_value(splitter *s, uint32_t spill_word, vyre__val v) {
  vyre_type type = vyre__lir_type_of(s->lir, v);
  vyre__lir_writer *lir = s->lir;
  if (type == VYRE_TYPE_BOOL)
    v = split_op2(s, VYRE__LIR_ZEXT, VYRE_TYPE_U32, v, 0);
  if (type == VYRE_TYPE_F32)
    v = split_op2(s, VYRE__LIR_BITCAST, VYRE_TYPE_U32, v, 0);
  if (type == VYRE_TYPE_F64)
    v = split_op2(s, VYRE__LIR_BITCAST, VYRE_TYPE_U64, v, 0);
  if (words_of(type) == 1) {
    store_word(s, spill_word, v);
    return;
  }
  store_word(s, spill_word, split_op2(s, VYRE__LIR_TRUNC, VYRE_TYPE_U32, v, 0));
  v = split_op2(s, VYRE__LIR_SHR_U, VYRE_TYPE_U64, v,
                vyre__lir_bits(lir, VYRE_TYPE_U32, 32));
  store_word(s, spill_word + 1,
             split_op2(s, VYRE__LIR_TRUNC, VYRE_TYPE_U32, v, 0));
}

static vyre__val load_value(splitter *s, uint32_t spill_word, vyre_type type) {
  vyre__val v = load_word(s, spill_word);
  if (words_of(type) == 2) {
    vyre__val high = split_op2(s, VYRE__LIR_ZEXT, VYRE_TYPE_U64,
                               load_word(s, spill_word + 1), 0);
    high = split_op2(s, VYRE__LIR_SHL, VYRE_TYPE_U64, high, split_u32(s, 32));
    v = split_op2(s, VYRE__LIR_OR, VYRE_TYPE_U64, high,
                  split_op2(s, VYRE__LIR_ZEXT, VYRE_TYPE_U64, v, 0));
  }
  if (type == VYRE_TYPE_BOOL) {
    return split_op2(s, VYRE__LIR_NE, VYRE_TYPE_BOOL, v, split_u32(s, 0));
  }
  if (type == VYRE_TYPE_F32 || type == VYRE_TYPE_F64) {
    return split_op2(s, VYRE__LIR_BITCAST, type, v, 0);
  }
  return v;
}

static vyre__val axis(splitter *s, vyre__lir_op op, unsigned k) {
  return vyre__lir_push(
      s->lir,
      &(vyre__lir_inst){.op = (uint8_t)op, .type = VYRE_TYPE_U32, .aux = k});
}

/* Computes the index of this invocation in the dispatch, and the number of
 * invocations. */
static void find_invocation(splitter *s) {
  vyre__lir_writer *lir = s->lir;
  vyre__val group = 0, local = 0, all = 0;
  uint32_t size = 1;
  for (unsigned k = 3; k-- > 0;) {
    vyre__val count = axis(s, VYRE__LIR_GRID_SIZE, k);
    vyre__val id = axis(s, VYRE__LIR_GROUP_ID, k);
    vyre__val lane = lir->workgroup[k] == 1 ? split_u32(s, 0)
                                            : axis(s, VYRE__LIR_LOCAL_ID, k);
    vyre__val each = split_u32(s, lir->workgroup[k]);
    size *= lir->workgroup[k];
    if (k == 2) {
      all = count;
      group = id;
      local = lane;
      continue;
    }
    all = split_op2(s, VYRE__LIR_MUL, VYRE_TYPE_U32, all, count);
    group = split_op2(s, VYRE__LIR_MUL, VYRE_TYPE_U32, group, count);
    group = split_op2(s, VYRE__LIR_ADD, VYRE_TYPE_U32, group, id);
    local = split_op2(s, VYRE__LIR_MUL, VYRE_TYPE_U32, local, each);
    local = split_op2(s, VYRE__LIR_ADD, VYRE_TYPE_U32, local, lane);
  }
  vyre__val lanes = split_u32(s, size);
  s->invocations = split_op2(s, VYRE__LIR_MUL, VYRE_TYPE_U32, all, lanes);
  group = split_op2(s, VYRE__LIR_MUL, VYRE_TYPE_U32, group, lanes);
  s->local = local;
  s->invocation = split_op2(s, VYRE__LIR_ADD, VYRE_TYPE_U32, group, local);
}

static vyre__val copy_value(splitter *s, vyre__val v);

/* Adds a bounds check to a load in the host range. The host computes bounds
 * even if all invocations exited before, so proofs about indices do not hold
 * there. */
static void check_on_host(splitter *s, vyre__lir_inst *load) {
  const vyre__lir_buffer *buffer = &s->from->buffers[load->aux];
  uint64_t bytes = (uint64_t)buffer->count * buffer->unit, known;
  uint32_t places = (uint32_t)((bytes + buffer->width - 1) / buffer->width);
  if (load->b) return;
  vyre__val inside = split_op2(s, VYRE__LIR_LT_U, VYRE_TYPE_BOOL, load->a,
                               split_u32(s, places));
  if (vyre__lir_is_constant(s->lir, inside, &known) && known) return;
  load->b = inside;
  load->hints &= (uint16_t)~VYRE__HINT_PROVEN;
}

static const vyre__lir_loop *loop_of(const splitter *s, uint32_t number) {
  return &s->from->loops[s->from->code[s->loops[number].at].aux];
}

/* Recomputes a pure value in the current segment. */
static vyre__val recompute(splitter *s, vyre__val v) {
  vyre__lir_inst inst = s->from->code[v];
  if (inst.op == VYRE__LIR_GET) {
    uint32_t loop = s->var_loop[inst.aux];
    bool is_upper = inst.aux == loop_of(s, loop)->high_var && inst.aux > 0;
    return vyre__lir_push(s->lir, &(vyre__lir_inst){.op = VYRE__LIR_LOOP_VALUE,
                                                    .type = inst.type,
                                                    .aux = loop,
                                                    .c = is_upper});
  }
  for (unsigned k = 0; k < vyre__lir_ops[inst.op].operands; k++) {
    inst.v[k] = copy_value(s, inst.v[k]);
  }
  if (inst.op == VYRE__LIR_LOAD && s->now == s->segment_count) {
    check_on_host(s, &inst);
  }
  return vyre__lir_simplify(s->lir, &inst);
}

/* Returns a value in the current segment: as defined here, recomputed, or
 * loaded from its spill word (which the host range cannot read). Values of
 * other segments are requested at the start, so that they are visible in the
 * full segment. */
static vyre__val copy_value(splitter *s, vyre__val v) {
  if (v == 0 || s->lir->no_memory) return 0;
  if (s->map_stamp[v] == s->now + 1) return s->map[v];
  bool is_spilled = s->spill_word[v] != NO_PHASE && s->home[v] != s->now &&
                    s->now < s->segment_count;
  vyre__val made = is_spilled ? load_value(s, s->spill_word[v],
                                           (vyre_type)s->from->code[v].type)
                              : recompute(s, v);
  s->map[v] = made;
  s->map_stamp[v] = s->now + 1;
  return made;
}

static void exit_if(splitter *s, uint32_t spill_word, bool if_zero) {
  vyre__val flag = load_word(s, spill_word);
  vyre__val go = split_op2(s, if_zero ? VYRE__LIR_EQ : VYRE__LIR_NE,
                           VYRE_TYPE_BOOL, flag, split_u32(s, 0));
  size_t begin = vyre__lir_if(s->lir, go, 0);
  vyre__lir_plain(s->lir, VYRE__LIR_EXIT);
  vyre__lir_end(s->lir, begin);
}

/* Tests the flags of all enclosing loops. Each of them can end the
 * invocation. */
static void test_flags(splitter *s, const segment *p) {
  if (s->alive_word != NO_PHASE && s->now > 0) exit_if(s, s->alive_word, true);
  if (p->resets) return;
  for (uint32_t k = p->loop; k != NO_PHASE; k = s->loops[k].outer) {
    uint32_t spill_word = s->loops[k].skip_word;
    if (spill_word == NO_PHASE) continue;
    if (p->is_first && k == p->loop) {
      vyre__val flag = load_word(s, spill_word);
      vyre__val again = split_op2(s, VYRE__LIR_EQ, VYRE_TYPE_BOOL, flag,
                                  split_u32(s, VYRE__LOOP_CONTINUED));
      flag = vyre__lir_simplify(
          s->lir, &(vyre__lir_inst){
                      .op = VYRE__LIR_SELECT,
                      .type = VYRE_TYPE_U32,
                      .v = {again, split_u32(s, VYRE__LOOP_RUNS), flag, 0}});
      store_word(s, spill_word, flag);
    }
    exit_if(s, spill_word, false);
  }
}

static void load_variables(splitter *s, const segment *p) {
  for (uint32_t i = p->begin; i < p->end; i++) {
    const vyre__lir_inst *inst = &s->from->code[i];
    if (inst->op != VYRE__LIR_GET && inst->op != VYRE__LIR_SET) continue;
    uint32_t var = inst->aux, spill_word = s->var_word[var];
    if (inst->op == VYRE__LIR_SET) s->var_set[var] = s->now + 1;
    if (spill_word == NO_PHASE || s->var_segment[var] == s->now + 1) continue;
    s->var_segment[var] = s->now + 1; /* from here on: the segment that loaded
                                       * it */
    vyre__lir_push(
        s->lir,
        &(vyre__lir_inst){.op = VYRE__LIR_SET,
                          .aux = var,
                          .a = load_value(s, spill_word,
                                          (vyre_type)s->from->vars[var].type)});
  }
}

static void store_variables(splitter *s) {
  for (uint32_t var = 0; var < s->from->var_count; var++) {
    if (s->var_word[var] == NO_PHASE || s->var_set[var] != s->now + 1) continue;
    vyre__val v = vyre__lir_push(
        s->lir,
        &(vyre__lir_inst){
            .op = VYRE__LIR_GET, .type = s->from->vars[var].type, .aux = var});
    store_value(s, s->var_word[var], v);
  }
}

/* Copies the bound of an inner loop if that needs no extra spill word. The
 * bound only helps optimisation. */
static void fetch_bound(splitter *s, vyre__val v) {
  if (s->home[v] == s->now) return;
  if (is_cheap(s, v) || s->spill_word[v] != NO_PHASE) (void)copy_value(s, v);
}

/* Fetches values of other segments that this one uses. */
static void fetch_values(splitter *s, const segment *p) {
  for (uint32_t i = p->begin; i < p->end; i++) {
    const vyre__lir_inst *inst = &s->from->code[i];
    for (unsigned k = 0; k < vyre__lir_ops[inst->op].operands; k++) {
      vyre__val v = inst->v[k];
      if (v && s->home[v] != s->now) (void)copy_value(s, v);
    }
    if (inst->op == VYRE__LIR_LOOP) {
      const vyre__lir_loop *loop = &s->from->loops[inst->aux];
      fetch_bound(s, loop->first);
      fetch_bound(s, loop->bound);
    }
  }
}

static void leave(splitter *s, const segment *p, const vyre__lir_inst *inst) {
  if (inst->op == VYRE__LIR_EXIT) {
    if (s->alive_word != NO_PHASE && runs_again(s, s->now)) {
      store_word(s, s->alive_word, split_u32(s, 0));
    }
  } else {
    store_variables(s);
    store_word(
        s, s->loops[p->loop].skip_word,
        split_u32(s, inst->op == VYRE__LIR_BREAK ? VYRE__LOOP_LEFT
                                                 : VYRE__LOOP_CONTINUED));
  }
  vyre__lir_plain(s->lir, VYRE__LIR_EXIT);
}

static void copy_loop(splitter *s, const vyre__lir_inst *inst) {
  vyre__lir_loop *loop = &s->lir->loops[inst->aux];
  bool first = s->map_stamp[loop->first] == s->now + 1;
  bool bound = s->map_stamp[loop->bound] == s->now + 1;
  if (first && bound) {
    loop->first = s->map[loop->first];
    loop->bound = s->map[loop->bound];
  } else {
    loop->is_counted = false;
    loop->first = loop->bound = 0;
  }
}

static void copy_segment(splitter *s, const segment *p) {
  vyre__lir_writer *lir = s->lir;
  size_t inner = 0; /* depth of loops that the kernel itself runs */
  for (uint32_t i = p->begin; i < p->end && !lir->no_memory; i++) {
    vyre__lir_inst inst = s->from->code[i];
    lir->here = s->from->source_locs[i];
    if (inst.op == VYRE__LIR_IF && (inst.hints & VYRE__HINT_TEST) &&
        inner == 0) {
      i = s->match[i]; /* the host tests this condition */
      continue;
    }
    if (inst.op == VYRE__LIR_LOOP) {
      inner++;
      copy_loop(s, &inst);
    }
    if (inst.op == VYRE__LIR_END &&
        s->from->code[s->match[i]].op == VYRE__LIR_LOOP) {
      inner--;
    }
    bool jumps = inst.op == VYRE__LIR_BREAK || inst.op == VYRE__LIR_CONTINUE;
    if (inst.op == VYRE__LIR_EXIT || (jumps && inner == 0)) {
      leave(s, p, &inst);
      continue;
    }
    if (inst.op == VYRE__LIR_GET && s->var_loop[inst.aux] != NO_PHASE) {
      (void)copy_value(s, i);
      continue;
    }
    for (unsigned k = 0; k < vyre__lir_ops[inst.op].operands; k++) {
      if (inst.v[k]) inst.v[k] = copy_value(s, inst.v[k]);
    }
    s->map[i] = vyre__lir_push(lir, &inst);
    s->map_stamp[i] = s->now + 1;
    if (s->spill_word[i] != NO_PHASE)
      store_value(s, s->spill_word[i], s->map[i]);
  }
}

static void write_segment(splitter *s, uint32_t number) {
  const segment *p = &s->segments[number];
  vyre__lir_writer *lir = s->lir;
  vyre__split *o = s->out;
  uint32_t begin = (uint32_t)lir->count;
  s->now = number;
  if (s->words > 0) {
    find_invocation(s);
    test_flags(s, p);
  }
  if (p->clears) {
    split_clear(s);
  } else if (p->resets) {
    store_word(s, s->loops[p->loop].skip_word, split_u32(s, VYRE__LOOP_RUNS));
  } else {
    split_restore(s);
    fetch_values(s, p);
    load_variables(s, p);
    copy_segment(s, p);
    store_variables(s);
    split_save(s);
    if (number == 0 && s->alive_word != NO_PHASE) {
      store_word(s, s->alive_word, split_u32(s, 1));
    }
  }
  if (!grow(s, &o->phases, &o->phase_capacity, o->phase_count,
            sizeof *o->phases)) {
    return;
  }
  o->phases[o->phase_count++] = (vyre__lir_phase){begin, (uint32_t)lir->count};
}

/* Checks that the host can compute the bounds of a loop, and requests them.
 * Fails otherwise. */
static bool check_bounds(splitter *s, const vyre__lir_loop *loop) {
  if (!loop->is_counted) {
    s->lir->code_failed =
        VYRE_FAIL(s->lir->st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE,
                  VYRE__LIR_DEFECT,
                  "line %u: no known bounds for a loop around grid_barrier()",
                  s->lir->here.line);
    return false;
  }
  if (s->cost[loop->first] == NEVER || s->cost[loop->bound] == NEVER ||
      s->cost[loop->first_high] == NEVER ||
      s->cost[loop->bound_high] == NEVER) {
    s->lir->code_failed = VYRE_FAIL(
        s->lir->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
        "write the bounds of that loop with constants, uniforms and len()",
        "line %u: the bounds of a loop around grid_barrier() change while the "
        "kernel runs",
        s->lir->here.line);
    return false;
  }
  s->wanted[loop->first] = s->wanted[loop->bound] = 1;
  s->wanted[loop->first_high] = s->wanted[loop->bound_high] = 1;
  return true;
}

static const vyre__lir_loop *loop_of_step(splitter *s,
                                          const vyre__lir_step *step) {
  s->lir->here = s->from->source_locs[s->loops[step->loop].at];
  return loop_of(s, step->loop);
}

/* Builds a bound of a host loop. The host has 64-bit integers, even if the
 * target does not. */
static vyre__val host_bound(splitter *s, vyre__val v, vyre__val high) {
  v = copy_value(s, v);
  if (!high) return v;
  high = split_op2(s, VYRE__LIR_ZEXT, VYRE_TYPE_U64, copy_value(s, high), 0);
  high = split_op2(s, VYRE__LIR_SHL, VYRE_TYPE_U64, high, split_u32(s, 32));
  v = split_op2(s, VYRE__LIR_ZEXT, VYRE_TYPE_U64, v, 0);
  return split_op2(s, VYRE__LIR_OR, VYRE_TYPE_U64, high, v);
}

/* Writes the host range: the bounds of host loops. A bound may end a long chain
 * of values, so they are copied in source order without recursion. */
static void write_host(splitter *s) {
  const vyre__lir_writer *from = s->from;
  uint32_t begin = (uint32_t)s->lir->count;
  s->now = (uint32_t)s->segment_count; /* a segment of its own */
  for (size_t i = 0; i < s->out->step_count; i++) {
    const vyre__lir_step *step = &s->out->steps[i];
    if (step->kind != VYRE__STEP_FOR) continue;
    if (!check_bounds(s, loop_of_step(s, step))) return;
  }
  for (uint32_t i = (uint32_t)from->count; i-- > 1;) {
    if (!s->wanted[i]) continue;
    unsigned operands = vyre__lir_ops[from->code[i].op].operands;
    for (unsigned k = 0; k < operands; k++) s->wanted[from->code[i].v[k]] = 1;
  }
  for (uint32_t i = 1; i < from->count && !s->lir->no_memory; i++) {
    if (!s->wanted[i]) continue;
    s->lir->here = from->source_locs[i];
    (void)copy_value(s, i);
  }
  for (size_t i = 0; i < s->out->step_count; i++) {
    vyre__lir_step *step = &s->out->steps[i];
    if (step->kind != VYRE__STEP_FOR) continue;
    const vyre__lir_loop *loop = loop_of_step(s, step);
    step->first = host_bound(s, loop->first, loop->first_high);
    step->bound = host_bound(s, loop->bound, loop->bound_high);
  }
  s->out->host = (vyre__lir_phase){begin, (uint32_t)s->lir->count};
}

static void match_blocks(splitter *s, uint32_t *stack) {
  const vyre__lir_writer *from = s->from;
  size_t depth = 0;
  for (uint32_t i = 0; i < from->count; i++) {
    unsigned op = from->code[i].op;
    if (op == VYRE__LIR_IF || op == VYRE__LIR_LOOP) stack[depth++] = i;
    if (op == VYRE__LIR_ELSE) s->match[stack[depth - 1]] = i;
    if (op == VYRE__LIR_END) {
      uint32_t opened = stack[--depth];
      s->match[i] = opened;
      if (from->code[opened].op == VYRE__LIR_IF &&
          from->code[s->match[opened]].op == VYRE__LIR_ELSE &&
          s->match[opened] > opened) {
        s->match[s->match[opened]] = i;
      } else {
        s->match[opened] = i;
      }
    }
    if (op == VYRE__LIR_GRID_BARRIER) {
      for (size_t k = 0; k < depth; k++) s->has_grid[stack[k]] = 1;
    }
  }
}

static bool prepare(splitter *s) {
  size_t n = s->from->count, vars = s->from->var_count;
  uint32_t *stack = vyre__arena_array(s->scratch, n, sizeof *stack);
  s->match = vyre__arena_filled(s->scratch, n, sizeof *s->match, 0);
  s->home = vyre__arena_filled(s->scratch, n, sizeof *s->home, 0xFF);
  s->cost = vyre__arena_array(s->scratch, n, 1);
  s->wanted = vyre__arena_filled(s->scratch, n, 1, 0);
  s->has_grid = vyre__arena_filled(s->scratch, n, 1, 0);
  s->spill_word =
      vyre__arena_filled(s->scratch, n, sizeof *s->spill_word, 0xFF);
  s->map = vyre__arena_array(s->scratch, n, sizeof *s->map);
  s->map_stamp = vyre__arena_filled(s->scratch, n, sizeof *s->map_stamp, 0);
  s->var_word = vyre__arena_filled(s->scratch, vars, sizeof *s->var_word, 0xFF);
  s->var_segment =
      vyre__arena_filled(s->scratch, vars, sizeof *s->var_segment, 0xFF);
  s->var_set = vyre__arena_filled(s->scratch, vars, sizeof *s->var_set, 0);
  s->var_loop = vyre__arena_filled(s->scratch, vars, sizeof *s->var_loop, 0xFF);
  if (!stack || !s->match || !s->home || !s->cost || !s->wanted ||
      !s->has_grid || !s->spill_word || !s->map || !s->map_stamp ||
      !s->var_word || !s->var_segment || !s->var_set || !s->var_loop) {
    return false;
  }
  match_blocks(s, stack);
  return true;
}

bool vyre__split_phases(vyre__lir_writer *lir, const vyre__lir_writer *from,
                        vyre_arena *scratch, vyre__split *out) {
  bool has_grid = false;
  for (size_t i = 1; i < from->count; i++) {
    has_grid |= from->code[i].op == VYRE__LIR_GRID_BARRIER;
  }
  *out = (vyre__split){.spill_buffer = VYRE_NO_INDEX};
  if (!has_grid) return false;
  splitter s = {.lir = lir,
                .from = from,
                .scratch = scratch,
                .out = out,
                .alive_word = NO_PHASE};
  lir->emit = vyre__lir_simplify;
  if (!prepare(&s) || !vyre__lir_copy_tables(lir, from)) {
    lir->no_memory = true;
    return true;
  }
  find_segments(&s, 1, (uint32_t)from->count, NO_PHASE);
  if (!lir->no_memory && split_find_carried(&s)) {
    /* Repeat with segments that clear the saved memory, at the begin and after
     * every barrier. */
    s.segment_count = s.loop_count = s.barrier_count = out->step_count = 0;
    s.words = 0;
    add_clear(&s, 1, NO_PHASE);
    find_segments(&s, 1, (uint32_t)from->count, NO_PHASE);
    if (!lir->no_memory) (void)split_find_carried(&s);
  }
  if (!lir->no_memory) find_costs(&s);
  if (!lir->no_memory) assign_spill_words(&s);
  if (!lir->no_memory) split_carry(&s);
  memset(s.var_segment, 0, from->var_count * sizeof *s.var_segment);
  if (s.words > 0) {
    out->spill_buffer = vyre__lir_new_buffer(
        lir, &(vyre__lir_buffer){.name = "grid_barrier",
                                 .source = VYRE_NO_INDEX,
                                 .kind = VYRE_MEMORY_GLOBAL,
                                 .width = 4,
                                 .unit = 4,
                                 .is_written = true});
  }
  out->spill_words = s.words;
  out->alive_flag = s.alive_word + 1; /* NO_PHASE becomes 0 */
  out->loop_count = (uint32_t)s.loop_count;
  if (!lir->no_memory) write_host(&s);
  for (uint32_t i = 0;
       i < s.segment_count && !lir->no_memory && lir->code_failed == VYRE_OK;
       i++) {
    write_segment(&s, i);
  }
  vyre__reserve_free(lir->allocator, &s.segments, &s.segment_capacity,
                     sizeof(segment));
  vyre__reserve_free(lir->allocator, &s.loops, &s.loop_capacity,
                     sizeof(host_loop));
  vyre__reserve_free(lir->allocator, &s.barriers, &s.barrier_capacity,
                     sizeof *s.barriers);
  return true;
}

void vyre__split_deinit(vyre__lir_writer *lir, vyre__split *split) {
  vyre__reserve_free(lir->allocator, &split->phases, &split->phase_capacity,
                     sizeof *split->phases);
  vyre__reserve_free(lir->allocator, &split->steps, &split->step_capacity,
                     sizeof *split->steps);
}
