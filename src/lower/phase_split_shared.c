/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Preserves shared memory across phases where the language demands it.
 *
 * A grid barrier zeroes shared memory. The end of an iteration of a host loop
 * does not:
 *
 *     for (..) { y[i] += s[l]; grid_barrier(); s[l] = 3; }
 *
 * carries s into the next iteration, although a phase ends between them. Such a
 * buffer is spilled like a variable. At the end of a segment every invocation
 * saves its share of the elements in its spill words; at the begin of the next
 * one the workgroup restores them. Generated phases clear these words at the
 * begin and after every barrier, for every path that leads there. Few kernels
 * need this. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "lower/phase_split_internal.h"

enum { UNROLLED = 8 };

/* Accesses of a segment to a buffer, and facts about its begin and end. */
enum { READS = 1, WRITES = 2, FILLED = 4, WANTED = 8 };

typedef struct walk {
  splitter *s;
  uint8_t *flags; /* per segment */
  uint32_t *seen; /* per step: number of the last walk that visited it */
  uint32_t walks;
  uint32_t *stack;
  uint32_t *other; /* per step: the END_FOR of a FOR, and the reverse */
} walk;

/* Binary search: the barriers are sorted by step. */
static bool is_at_barrier(const splitter *s, uint32_t step) {
  size_t lower = 0, upper = s->barrier_count;
  while (lower < upper) {
    size_t middle = lower + (upper - lower) / 2;
    if (s->barriers[middle] < step) {
      lower = middle + 1;
    } else {
      upper = middle;
    }
  }
  return lower < s->barrier_count && s->barriers[lower] == step;
}

/* Collects the segments that may follow @p step without a barrier between them
 * in @p out. Returns their number. */
static size_t followers(walk *w, uint32_t step, uint32_t *out) {
  const vyre__split *o = w->s->out;
  size_t depth = 0, count = 0;
  w->walks++;
  w->stack[depth++] = step + 1;
  while (depth > 0) {
    uint32_t at = w->stack[--depth];
    if (at >= o->step_count || w->seen[at] == w->walks ||
        is_at_barrier(w->s, at)) {
      continue;
    }
    w->seen[at] = w->walks;
    const vyre__lir_step *next = &o->steps[at];
    if (next->kind == VYRE__STEP_RUN && !w->s->segments[next->phase].resets &&
        !w->s->segments[next->phase].clears) {
      out[count++] = next->phase;
      continue;
    }
    w->stack[depth++] = at + 1;
    if (next->kind != VYRE__STEP_RUN) w->stack[depth++] = w->other[at] + 1;
  }
  return count;
}

static void match_steps(walk *w) {
  const vyre__split *o = w->s->out;
  size_t depth = 0;
  for (uint32_t i = 0; i < o->step_count; i++) {
    if (o->steps[i].kind == VYRE__STEP_FOR) w->stack[depth++] = i;
    if (o->steps[i].kind != VYRE__STEP_END_FOR) continue;
    uint32_t begin = w->stack[--depth];
    w->other[begin] = i;
    w->other[i] = begin;
  }
}

static bool is_memory(unsigned op) {
  return op >= VYRE__LIR_LOAD && op <= VYRE__LIR_ATOMIC_CAS;
}

static void find_accesses(walk *w, uint32_t buffer) {
  const splitter *s = w->s;
  memset(w->flags, 0, s->segment_count);
  for (uint32_t i = 1; i < s->from->count; i++) {
    const vyre__lir_inst *inst = &s->from->code[i];
    if (!is_memory(inst->op) || inst->aux != buffer) continue;
    if (s->home[i] == NO_PHASE) continue;
    if (inst->op != VYRE__LIR_STORE) w->flags[s->home[i]] |= READS;
    if (inst->op != VYRE__LIR_LOAD) w->flags[s->home[i]] |= WRITES;
  }
}

/* Propagates FILLED (may be nonzero at the begin) and WANTED (read after the
 * end) along the edges until nothing changes. This takes about one iteration
 * per level of nesting. */
static void follow(walk *w, uint32_t *next) {
  const splitter *s = w->s;
  bool changes = true;
  while (changes) {
    changes = false;
    for (uint32_t i = 0; i < s->out->step_count; i++) {
      const vyre__lir_step *step = &s->out->steps[i];
      if (step->kind != VYRE__STEP_RUN) continue;
      uint8_t *from = &w->flags[step->phase];
      size_t count = followers(w, i, next);
      for (size_t k = 0; k < count; k++) {
        uint8_t *to = &w->flags[next[k]], before = *to, had = *from;
        if (*from & (WRITES | FILLED)) *to |= FILLED;
        if (*to & (READS | WANTED)) *from |= WANTED;
        changes |= before != *to || had != *from;
      }
    }
  }
}

/* Returns true if the buffer outlives any segment. @p how then lists the
 * actions of each segment. */
static bool decide(const walk *w, uint8_t *how) {
  bool lives = false;
  for (uint32_t i = 0; i < w->s->segment_count; i++) {
    unsigned f = w->flags[i];
    bool touches = f & (READS | WRITES);
    how[i] = 0;
    if (!touches) continue; /* saved contents stay valid */
    if (f & FILLED && f & (READS | WANTED)) how[i] |= RESTORES;
    if (f & (WRITES | FILLED) && f & WANTED) how[i] |= SAVES;
    lives |= how[i] != 0;
  }
  return lives;
}

bool split_find_carried(splitter *s) {
  const vyre__lir_writer *from = s->from;
  size_t steps = s->out->step_count + 1, segments = s->segment_count + 1;
  if (s->loop_count == 0) return false; /* every segment ends at a barrier */
  walk w = {.s = s,
            .flags = vyre__arena_array(s->scratch, segments, 1),
            .seen = vyre__arena_array(s->scratch, steps, sizeof *w.seen),
            .stack = vyre__arena_array(s->scratch, 2 * steps, sizeof *w.stack),
            .other = vyre__arena_array(s->scratch, steps, sizeof *w.other)};
  uint32_t *next = vyre__arena_array(s->scratch, segments, sizeof *next);
  carried *all =
      vyre__arena_array(s->scratch, from->buffer_count + 1, sizeof *s->carried);
  if (!w.flags || !w.seen || !w.stack || !w.other || !next || !all) {
    s->lir->no_memory = true;
    return false;
  }
  memset(w.seen, 0, steps * sizeof *w.seen);
  match_steps(&w);
  size_t count = 0;
  for (uint32_t b = 0; b < from->buffer_count; b++) {
    const vyre__lir_buffer *buffer = &from->buffers[b];
    if (buffer->kind != VYRE_MEMORY_SHARED || !buffer->is_written) continue;
    uint8_t *how = vyre__arena_array(s->scratch, segments, 1);
    if (!how) {
      s->lir->no_memory = true;
      return false;
    }
    find_accesses(&w, b);
    follow(&w, next);
    if (decide(&w, how)) all[count++] = (carried){.buffer = b, .how = how};
  }
  s->carried = all;
  s->carried_count = count;
  return count > 0;
}

/* --- spill words ---------------------------------------------------------- */

static void reject(splitter *s, const carried *c) {
  uint32_t at = 1;
  while (!is_memory(s->from->code[at].op) ||
         s->from->code[at].aux != c->buffer) {
    at++;
  }
  s->lir->code_failed = VYRE_FAIL(
      s->lir->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
      "put grid_barrier() at the end of the loop's body, or keep all "
      "invocations in the kernel until it ends",
      "line %u: shared buffer '%s' must outlive an iteration of a loop around "
      "grid_barrier(), but invocations may exit before the iteration ends",
      s->from->source_locs[at].line, s->from->buffers[c->buffer].name);
}

void split_carry(splitter *s) {
  uint32_t size =
      s->lir->workgroup[0] * s->lir->workgroup[1] * s->lir->workgroup[2];
  bool may_leave = s->alive_word != NO_PHASE;
  for (size_t i = 0; i < s->loop_count; i++) {
    may_leave |= s->loops[i].skip_word != NO_PHASE;
  }
  for (size_t i = 0; i < s->carried_count; i++) {
    carried *c = &s->carried[i];
    const vyre__lir_buffer *b = &s->from->buffers[c->buffer];
    if (may_leave) {
      reject(s, c);
      return;
    }
    uint64_t bytes = (uint64_t)b->count * b->unit;
    c->elements = (uint32_t)((bytes + b->width - 1) / b->width);
    c->each = (c->elements + size - 1) / size;
    c->words = b->width == 8 ? 2 : 1;
    c->spill_word = s->words;
    s->words += c->each * c->words;
  }
}

/* --- writing -------------------------------------------------------------- */

static vyre__val op2(splitter *s, vyre__lir_op op, vyre__val a, vyre__val b) {
  return split_op2(s, op, VYRE_TYPE_U32, a, b);
}

static void save_element(splitter *s, const carried *c, vyre__val index,
                         vyre__val at, vyre__val condition) {
  vyre_type type = c->words == 2 ? VYRE_TYPE_U64 : VYRE_TYPE_U32;
  vyre__val v =
      vyre__lir_push(s->lir, &(vyre__lir_inst){.op = VYRE__LIR_LOAD,
                                               .type = (uint8_t)type,
                                               .hints = VYRE__HINT_PROVEN,
                                               .aux = c->buffer,
                                               .v = {index, condition, 0, 0}});
  if (c->words == 1) {
    split_store_at(s, at, v);
    return;
  }
  split_store_at(s, at, op2(s, VYRE__LIR_TRUNC, v, 0));
  v = split_op2(s, VYRE__LIR_SHR_U, VYRE_TYPE_U64, v, split_u32(s, 32));
  split_store_at(s, op2(s, VYRE__LIR_ADD, at, s->invocations),
                 op2(s, VYRE__LIR_TRUNC, v, 0));
}

static void restore_element(splitter *s, const carried *c, vyre__val index,
                            vyre__val at, vyre__val condition) {
  vyre__val v = split_load_at(s, at);
  if (c->words == 2) {
    vyre__val high =
        split_load_at(s, op2(s, VYRE__LIR_ADD, at, s->invocations));
    high = split_op2(s, VYRE__LIR_ZEXT, VYRE_TYPE_U64, high, 0);
    high = split_op2(s, VYRE__LIR_SHL, VYRE_TYPE_U64, high, split_u32(s, 32));
    v = split_op2(s, VYRE__LIR_ZEXT, VYRE_TYPE_U64, v, 0);
    v = split_op2(s, VYRE__LIR_OR, VYRE_TYPE_U64, high, v);
  }
  vyre__lir_push(s->lir, &(vyre__lir_inst){.op = VYRE__LIR_STORE,
                                           .hints = VYRE__HINT_PROVEN,
                                           .aux = c->buffer,
                                           .v = {index, v, condition, 0}});
}

static void clear_element(splitter *s, const carried *c, vyre__val index,
                          vyre__val at, vyre__val condition) {
  (void)index;
  (void)condition;
  split_store_at(s, at, split_u32(s, 0));
  if (c->words == 1) return;
  split_store_at(s, op2(s, VYRE__LIR_ADD, at, s->invocations), split_u32(s, 0));
}

typedef void element_writer(splitter *s, const carried *c, vyre__val index,
                            vyre__val at, vyre__val condition);

/* Handles element @p k of those that this invocation saves. */
static void write_element(splitter *s, const carried *c, vyre__val k,
                          element_writer *write) {
  uint32_t size =
      s->lir->workgroup[0] * s->lir->workgroup[1] * s->lir->workgroup[2];
  vyre__val step =
      op2(s, VYRE__LIR_MUL, s->invocations, split_u32(s, c->words));
  vyre__val at = op2(s, VYRE__LIR_ADD, split_word_index(s, c->spill_word),
                     op2(s, VYRE__LIR_MUL, k, step));
  vyre__val index = op2(s, VYRE__LIR_ADD, s->local,
                        op2(s, VYRE__LIR_MUL, k, split_u32(s, size)));
  vyre__val condition = 0;
  if ((uint64_t)c->each * size != c->elements) {
    condition = split_op2(s, VYRE__LIR_LT_U, VYRE_TYPE_BOOL, index,
                          split_u32(s, c->elements));
  }
  write(s, c, index, at, condition);
}

static void write_loop(splitter *s, const carried *c, element_writer *write) {
  vyre__lir_writer *lir = s->lir;
  uint32_t var = vyre__lir_new_var(lir, "element", VYRE_TYPE_U32);
  uint32_t loop =
      vyre__lir_new_loop(lir, &(vyre__lir_loop){.max_trips = c->each});
  if (lir->no_memory) return;
  vyre__lir_set(lir, var, split_u32(s, 0));
  vyre__lir_invalidate(lir, var);
  size_t begin = vyre__lir_loop_begin(lir, loop);
  vyre__val k = vyre__lir_get(lir, var);
  vyre__val is_done =
      split_op2(s, VYRE__LIR_LE_U, VYRE_TYPE_BOOL, split_u32(s, c->each), k);
  size_t test = vyre__lir_if(lir, is_done, VYRE__HINT_TEST);
  vyre__lir_plain(lir, VYRE__LIR_BREAK);
  vyre__lir_end(lir, test);
  write_element(s, c, k, write);
  vyre__lir_to_step(lir);
  vyre__lir_set(lir, var, op2(s, VYRE__LIR_ADD, k, split_u32(s, 1)));
  vyre__lir_end(lir, begin);
}

static void write_all(splitter *s, const carried *c, element_writer *write) {
  if (c->each > UNROLLED) {
    write_loop(s, c, write);
    return;
  }
  for (uint32_t k = 0; k < c->each; k++) {
    write_element(s, c, split_u32(s, k), write);
  }
}

void split_clear(splitter *s) {
  for (size_t i = 0; i < s->carried_count; i++) {
    write_all(s, &s->carried[i], clear_element);
  }
}

void split_restore(splitter *s) {
  bool any = false;
  for (size_t i = 0; i < s->carried_count; i++) {
    const carried *c = &s->carried[i];
    if (!(c->how[s->now] & RESTORES)) continue;
    write_all(s, c, restore_element);
    any = true;
  }
  if (any) vyre__lir_plain(s->lir, VYRE__LIR_BARRIER);
}

void split_save(splitter *s) {
  bool any = false;
  for (size_t i = 0; i < s->carried_count; i++) {
    const carried *c = &s->carried[i];
    if (!(c->how[s->now] & SAVES)) continue;
    if (!any) vyre__lir_plain(s->lir, VYRE__LIR_BARRIER);
    any = true;
    write_all(s, c, save_element);
  }
}
