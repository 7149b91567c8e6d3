/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Control flow of the workgroup, and loops over its invocations. */
#include <string.h>

#include "base/memory.h"
#include "codegen/llvm/internal.h"

enum {
  MASK = LL_I32 | LL_VEC,
  MAX_TRIPS = 17,       /* iterations that are unrolled, and the last test */
  MAX_TEXT = 96 * 1024, /* bytes of their text */
};

uint32_t ll_vector_count(const ll *e) {
  const uint32_t *size = e->kernel->workgroup;
  if (!e->s->has_rows) return (e->s->r.invocations + e->width - 1) / e->width;
  return (size[0] + e->width - 1) / e->width * size[1] * size[2];
}

ll_known ll_known_of(ll *e, vyre__val v) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  if (inst->op == VYRE__LIR_CONST) {
    return vyre__lir_const(inst) ? LL_TRUE : LL_FALSE;
  }
  if (!e->range || !e->range->known) return LL_UNKNOWN;
  uint8_t known = e->range->known[v - e->s->r.begin];
  return known < VYRE__KNOWN_A ? (ll_known)known : LL_UNKNOWN;
}

bool ll_is_x(const ll *e, vyre__val v) {
  return e->s->is_fused && v == e->s->fused_x;
}

void ll_give_x(ll *e, vyre__val v) {
  ll_give(e, v, e->width == 1 ? LL_SCALAR : LL_LINEAR, e->x);
  e->reps[v - e->s->r.begin].stride = 1;
}

/* --- counting -----------------------------------------------------------------------*/

typedef struct count {
  ll_op at, now;
  uint32_t head;
} count;

/* for (now = 0; ..), with at least one iteration. */
static count open_count(ll *e) {
  count c = {.at = ll_alloca(e, LL_I32, 1, 4), .head = ll_label(e)};
  ll_do(e, "store i32 0, ptr %v", LL_PTR, c.at);
  ll_place(e, c.head);
  c.now = ll_def(e, "load i32, ptr %v", LL_PTR, c.at);
  return c;
}

static void close_count_at(ll *e, count c, uint32_t step, ll_op limit) {
  uint32_t end = ll_label(e);
  ll_op next = ll_def(e, "add nuw i32 %v, %u", LL_I32, c.now, step);
  ll_do(e, "store i32 %v, ptr %v", LL_I32, next, LL_PTR, c.at);
  ll_cond(e, ll_def(e, "icmp ult i32 %v, %v", LL_I32, next, LL_I32, limit),
          c.head, end);
  ll_place(e, end);
}

static void close_count(ll *e, count c, uint32_t step, uint32_t limit) {
  close_count_at(e, c, step, ll_const(limit));
}

/* --- a subregion --------------------------------------------------------------------------*/

/* Skips invocations that are done. */
static void test_done(ll *e, ll_scope *region) {
  uint32_t rest = ll_label(e);
  ll_op done =
      ll_def(e, "load %t, ptr %v", MASK, LL_PTR, ll_element(e, e->done, MASK));
  region->end_used = true;
  if (e->width == 1) {
    ll_cond(e, ll_def(e, "icmp eq i32 %v, 0", LL_I32, done), rest, region->end);
  } else {
    ll_set_mask(e, ll_and_not(e, e->mask.lanes, done));
    ll_cond(e, ll_any(e, e->mask.lanes), rest, region->end);
  }
  ll_place(e, rest);
}

static void rematerialize(ll *e, uint32_t v) {
  ll_pure(e, v);
  ll_agree(e, v);
}

/* Emits the code of one vector of invocations. */
void ll_run_range(ll *e, const vyre__sched_node *range, ll_op mask) {
  uint32_t index = range->subregion;
  const vyre__subregion *subregion = &e->s->r.subregions[index];
  ll_scope region = {.kind = LL_SCOPE_REGION,
                     .end = ll_label(e),
                     .has_act = e->s->lanes_leave[index]};
  uint32_t mark = ll_enter(e);
  e->subregion = index;
  e->range = range;
  e->stamp = ++e->stamps;
  e->scope = &region;
  e->copies = e->no_copies ? UINT16_MAX : 1;
  ll_set_mask(e, mask);
  const vyre__sched_node *code = range->body;
  for (; code && code->kind == VYRE__SCHED_PREFETCH; code = code->next) {
    if (ll_is_all_on(e)) ll_prefetch(e, code->prefetch);
  }
  if (subregion->tests_done) test_done(e, &region);
  if (region.has_act) {
    region.act = ll_alloca(e, MASK, 1, 64);
    ll_do(e, "store %o, ptr %v", MASK, ll_mask_vector(e), LL_PTR, region.act);
  }
  for (uint32_t i = 0; i < subregion->remat_count; i++) {
    ll_each_row(e, e->s->r.remats[subregion->first_remat + i], rematerialize);
  }
  ll_nodes(e, code);
  ll_place(e, region.end);
  ll_leave(e, mark);
  ll_set_mask(e, (ll_op){0});
  e->scope = NULL;
  e->range = NULL;
  e->subregion = 0;
  e->stamp = 0;
}

/* --- rows: z, y, x -----------------------------------------------------------------------*/

static ll_op times_plus(ll *e, ll_op a, uint32_t by, ll_op b) {
  ll_op product = ll_def(e, "mul nuw i32 %v, %u", LL_I32, a, by);
  return ll_def(e, "add nuw i32 %v, %v", LL_I32, product, LL_I32, b);
}

void ll_set_vector_index(ll *e, ll_op x) {
  if (e->width > 1) {
    x = ll_def(e, "udiv exact i32 %v, %u", LL_I32, x, e->width);
  }
  e->vector_index =
      ll_def(e, "add nuw i32 %v, %v", LL_I32, e->row_first, LL_I32, x);
}

void ll_begin_row(ll *e) {
  const uint32_t *size = e->kernel->workgroup;
  uint32_t vectors = (size[0] + e->width - 1) / e->width;
  ll_op row = times_plus(e, e->local[2], size[1], e->local[1]);
  e->row_first = ll_def(e, "mul nuw i32 %v, %u", LL_I32, row, vectors);
}

/* Emits jammed rows, then the remaining ones one by one. */
static void run_jam(ll *e, const vyre__sched_node *rows, ll_op first,
                    ll_op count_x) {
  const vyre__sched_node *jam = rows->body;
  ll_op y = e->local[1];
  ll_interval done;
  if (!ll_run_together(e, rows, jam, first, count_x, &done)) return;
  count rest = open_count(e);
  e->local[1] = ll_def(e, "add nuw i32 %v, %v", LL_I32, y, LL_I32, rest.now);
  ll_begin_row(e);
  ll_run_rest(e, rows, first, count_x, done);
  close_count(e, rest, 1, jam->jam->rows);
}

/* Hides a number from LLVM. Loop optimisations on a count of few iterations
 * take long and gain nothing. */
ll_op ll_opaque(ll *e, ll_op op) {
  if (op.kind == LL_CONST) return op;
  return ll_def(e, "call i32 asm \"\", \"=r,0\"(i32 %v)", LL_I32, op);
}

/* Emits the rows [first, end), which are constants. Returns false if the text
 * would be too long. */
static bool run_few_rows(ll *e, const vyre__sched_node *rows, uint32_t first,
                         uint32_t end, ll_op first_x, ll_op count_x) {
  enum { MAX_ROWS = 8, MAX_UNROLLED = 400 };
  const vyre__subregion *of = &e->s->r.subregions[rows->subregion];
  uint32_t length = of->end - of->begin, few = end - first;
  uint32_t vectors = (e->kernel->workgroup[0] + e->width - 1) / e->width;
  if (few > 1 && (few > MAX_ROWS || e->options->is_compact || ll_is_spare(e) ||
                  !e->unrolls || length > MAX_UNROLLED ||
                  few * vectors * length > MAX_UNROLLED)) {
    return false;
  }
  for (uint32_t y = first; y < end; y++) {
    e->local[1] = ll_const(y);
    ll_begin_row(e);
    ll_run_row(e, rows, first_x, count_x);
  }
  return true;
}

/* Emits the rows that have something to do (spmd/passes/row_limit.c). */
static void run_limited(ll *e, const vyre__sched_node *rows, ll_op first_x,
                        ll_op count_x) {
  const uint32_t *size = e->kernel->workgroup;
  const vyre__row_split *row = rows->split;
  ll_op limit = ll_scalar(e, row->limit), from = ll_const(0), to;
  uint32_t begin = ll_label(e), skip = ll_label(e);
  for (unsigned i = 1; i < 3; i++) e->local_form[i] = LL_SCALAR;
  e->local[2] = ll_const(0);
  if (limit.kind == LL_CONST) {
    uint32_t first, end;
    vyre__row_limits(e->s, row, limit.bits & UINT32_MAX, &first, &end);
    if (first == end || run_few_rows(e, rows, first, end, first_x, count_x)) {
      return;
    }
    from = ll_const(first);
    to = ll_const(end);
  } else {
    ll_op of = ll_def(e, "udiv i32 %v, %u", LL_I32, limit, size[0]);
    ll_op rest = ll_def(e, "urem i32 %v, %u", LL_I32, limit, size[0]);
    ll_op more = ll_def(e, "icmp ne i32 %v, 0", LL_I32, rest);
    more = row->limit_is_point ? ll_const(1)
                               : ll_def(e, "zext i1 %v to i32", LL_I1, more);
    to = ll_def(e, "add i32 %v, %v", LL_I32, of, LL_I32, more);
    ll_op is_many = ll_def(e, "icmp ugt i32 %v, %u", LL_I32, to, size[1]);
    to = ll_def(e, "select i1 %v, i32 %u, i32 %v", LL_I1, is_many, size[1],
                LL_I32, to);
    if (row->limit_is_point) from = of;
    ll_cond(e, ll_def(e, "icmp ult i32 %v, %v", LL_I32, from, LL_I32, to),
            begin, skip);
    ll_place(e, begin);
  }
  count c = {.at = ll_alloca(e, LL_I32, 1, 4), .head = ll_label(e)};
  ll_do(e, "store i32 %v, ptr %v", LL_I32, from, LL_PTR, c.at);
  ll_place(e, c.head);
  c.now = ll_def(e, "load i32, ptr %v", LL_PTR, c.at);
  e->local[1] = ll_opaque(e, c.now);
  ll_begin_row(e);
  ll_run_row(e, rows, first_x, count_x);
  close_count_at(e, c, 1, to);
  if (limit.kind != LL_CONST) ll_place(e, skip);
}

void ll_run_rows(ll *e, const vyre__sched_node *rows, ll_op first,
                 ll_op count_x) {
  const uint32_t *size = e->kernel->workgroup;
  if (rows->split && rows->split->limit) {
    run_limited(e, rows, first, count_x);
    return;
  }
  uint32_t step_y =
      rows->body->kind == VYRE__SCHED_JAM ? rows->body->jam->rows : 1;
  count c[3] = {{{0}}};
  for (unsigned i = 3; i-- > 1;) {
    e->local[i] = ll_const(0);
    e->local_form[i] = LL_SCALAR;
    if (size[i] == 1) continue;
    c[i] = open_count(e);
    e->local[i] = ll_opaque(e, c[i].now);
  }
  ll_begin_row(e);
  if (rows->body->kind == VYRE__SCHED_JAM) {
    run_jam(e, rows, first, count_x);
  } else {
    ll_run_row(e, rows, first, count_x);
  }
  for (unsigned i = 1; i < 3; i++) {
    uint32_t step = i == 1 ? step_y : 1;
    if (size[i] != 1) close_count(e, c[i], step, size[i]);
  }
}

/* --- all invocations one after the other ---------------------------------------------------*/

static void make_ids(ll *e, ll_op base) {
  const uint32_t *size = e->kernel->workgroup;
  if (size[1] == 1 && size[2] == 1) {
    e->local[0] = base;
    e->local_form[0] = LL_LINEAR;
    return;
  }
  ll_op all = ll_splat(e, LL_I32, base);
  all = ll_def(e, "add %o, %%iota", MASK, all);
  for (unsigned i = 0; i < 3; i++) {
    e->local_form[i] = LL_VECTOR;
    e->local[i] =
        i == 2 ? all
               : ll_def(e, "urem %o, %v", MASK, all, MASK, ll_const(size[i]));
    if (i < 2) {
      all = ll_def(e, "udiv %o, %v", MASK, all, MASK, ll_const(size[i]));
    }
  }
}

static void run_vectors(ll *e, const vyre__sched_node *vectors) {
  uint32_t full = e->s->r.invocations / e->width;
  uint32_t rest = e->s->r.invocations % e->width;
  const vyre__sched_node *range = vectors->body;
  if (full) {
    count c = open_count(e);
    e->vector_index = c.now;
    make_ids(e, ll_def(e, "mul nuw i32 %v, %u", LL_I32, c.now, e->width));
    ll_run_range(e, range, (ll_op){0});
    close_count(e, c, 1, full);
    range = range->next;
  }
  if (rest) {
    e->vector_index = ll_const(full);
    make_ids(e, ll_const((uint64_t)full * e->width));
    ll_op on = ll_def(e, "icmp ult %t %%iota, %v", MASK, MASK, ll_const(rest));
    ll_run_range(e, range, ll_widen(e, on));
  }
}

void ll_hoist(ll *e, const vyre__sched_node *leaf) {
  for (uint32_t at = leaf->begin; at < leaf->end; at++) {
    const vyre__inst_info *role = ll_role(e, at);
    if (role->storage == VYRE__STORAGE_UNIFORM && role->is_needed) {
      ll_instruction(e, at);
    }
  }
}

/* --- the workgroup ------------------------------------------------------------------------------------*/

void ll_clear_done(ll *e) {
  ll_do(
      e,
      "call void @llvm.memset.p0.i64(ptr align 64 %v, i8 0, i64 %l, i1 false)",
      LL_PTR, e->done, (uint64_t)ll_vector_count(e) * e->width * 4);
}

/* Forgets the known values of workgroup variables that [begin, end) sets. */
static bool forget(ll *e, uint32_t begin, uint32_t end) {
  bool any = false;
  for (uint32_t at = begin; at < end; at++) {
    if (ll_inst(e, at)->op != VYRE__LIR_SET) continue;
    any |= e->vars[ll_inst(e, at)->aux].is_const;
    e->vars[ll_inst(e, at)->aux].is_const = false;
  }
  return any;
}

/* State that can be restored. */
typedef struct trial {
  size_t body, entry;
  uint64_t stack, scratch;
  uint32_t temps, labels;
  bool fuel, next, stop;
  ll_op rounds;
  ll_var *vars;
  ll_op *kept;
} trial;

static bool begin_trial(ll *e, trial *t) {
  size_t vars = e->kernel->var_count, insts = e->s->r.end - e->s->r.begin + 1;
  *t = (trial){.body = e->body.length,
               .entry = e->entry.length,
               .stack = e->stack_used,
               .scratch = e->scratch_used,
               .temps = e->temps,
               .labels = e->labels,
               .fuel = e->uses_fuel_exit,
               .next = e->uses_next,
               .stop = e->uses_stop,
               .rounds = e->rounds,
               .vars = vyre__arena_array(e->arena, vars, sizeof *t->vars),
               .kept = vyre__arena_array(e->arena, insts, sizeof *t->kept)};
  if (!t->vars || !t->kept) {
    e->no_memory = true;
    return false;
  }
  memcpy(t->vars, e->vars, vars * sizeof *t->vars);
  memcpy(t->kept, e->kept, insts * sizeof *t->kept);
  return true;
}

static void undo_trial(ll *e, const trial *t) {
  e->body.length = t->body;
  e->entry.length = t->entry;
  if (e->body.bytes) e->body.bytes[t->body] = '\0';
  if (e->entry.bytes) e->entry.bytes[t->entry] = '\0';
  e->stack_used = t->stack;
  e->scratch_used = t->scratch;
  e->temps = t->temps;
  e->labels = t->labels;
  e->uses_fuel_exit = t->fuel;
  e->uses_next = t->next;
  e->uses_stop = t->stop;
  e->rounds = t->rounds;
  memcpy(e->vars, t->vars, e->kernel->var_count * sizeof *t->vars);
  memcpy(e->kept, t->kept, (e->s->r.end - e->s->r.begin + 1) * sizeof *t->kept);
  e->is_open = true;
}

/* Returns true if all invocations are active again at the step of a loop. */
static bool clears_done(const ll *e, const vyre__sched_node *loop) {
  return e->s->r.regions[loop->region].clears_done;
}

/* Unrolls a loop of the workgroup with constant bounds, so that positions in
 * shared memory become constants. Returns true if it did. */
static bool unroll_loop(ll *e, const vyre__sched_node *loop, ll_scope *scope) {
  trial t;
  if (e->width == 1 || e->unrolls || e->options->is_compact || ll_is_spare(e)) {
    return false;
  }
  if (!begin_trial(e, &t)) return false;
  uint32_t mark = ll_enter(e);
  e->unrolls = true;
  for (unsigned round = 0; round < MAX_TRIPS && e->is_open; round++) {
    scope->step = ll_label(e);
    scope->step_used = false;
    ll_group_nodes(e, loop->body);
    ll_leave(e, mark);
    if (e->is_open && scope->end_used) break;
    if (!e->is_open && !scope->step_used) break;
    ll_place(e, scope->step);
    if (clears_done(e, loop) && e->done.kind != LL_NONE) ll_clear_done(e);
    ll_group_nodes(e, loop->other);
    ll_leave(e, mark);
    if (e->body.length - t.body > MAX_TEXT) break;
  }
  e->unrolls = false;
  if (!e->is_open && scope->end_used) return true;
  undo_trial(e, &t);
  scope->end_used = scope->step_used = false;
  scope->end = ll_label(e);
  scope->step = ll_label(e);
  return false;
}

static void group_loop(ll *e, const vyre__sched_node *loop) {
  ll_scope scope = {.up = e->group_scope,
                    .kind = LL_SCOPE_LOOP,
                    .at = loop->begin,
                    .end = ll_label(e),
                    .step = ll_label(e)};
  const vyre__sched_note *note = ll_note_of(e, loop->begin);
  uint32_t outer = 0;
  ll_op counter = {0};
  e->group_scope = &scope;
  bool knows = false;
  for (uint32_t at = loop->begin; at < loop->end; at++) {
    knows |= ll_inst(e, at)->op == VYRE__LIR_SET &&
             e->vars[ll_inst(e, at)->aux].is_const;
  }
  if (knows && unroll_loop(e, loop, &scope)) {
    forget(e, loop->begin, loop->end);
    e->group_scope = scope.up;
    ll_place(e, scope.end);
    return;
  }
  forget(e, loop->begin, loop->end);
  uint32_t head = ll_label(e); /* earlier values may be restored */
  if (note->is_long) ll_open_long(e, &counter, &outer);
  ll_place(e, head);
  uint32_t mark = ll_enter(e);
  ll_group_nodes(e, loop->body);
  ll_leave(e, mark);
  if (e->is_open || scope.step_used) {
    ll_place(e, scope.step);
    if (clears_done(e, loop) && e->done.kind != LL_NONE) ll_clear_done(e);
    ll_group_nodes(e, loop->other);
    if (note->is_long && e->is_open) ll_close_long(e, counter, head, outer);
    ll_br(e, head);
    ll_leave(e, mark);
  }
  forget(e, loop->begin, loop->end);
  e->group_scope = scope.up;
  if (scope.end_used) ll_place(e, scope.end);
}

static void group_if(ll *e, const vyre__sched_node *node) {
  uint32_t yes = ll_label(e), no = ll_label(e), end = ll_label(e);
  ll_op condition = ll_scalar(e, ll_inst(e, node->begin)->a);
  if (condition.kind == LL_CONST) {
    ll_group_nodes(e, condition.bits ? node->body : node->other);
    return;
  }
  if (ll_inst(e, node->begin)->hints & VYRE__HINT_VERSION && ll_is_spare(e)) {
    ll_group_nodes(e, node->other);
    return;
  }
  ll_cond(e, condition, yes, no);
  uint32_t mark = ll_enter(e);
  ll_place(e, yes);
  ll_group_nodes(e, node->body);
  ll_leave(e, mark);
  bool falls = e->is_open;
  ll_br(e, end);
  forget(e, node->begin, node->end);
  ll_place(e, no);
  ll_group_nodes(e, node->other);
  ll_leave(e, mark);
  falls |= e->is_open;
  ll_br(e, end);
  forget(e, node->begin, node->end);
  if (falls) ll_place(e, end);
}

static void group_jump(ll *e, const vyre__sched_node *node) {
  ll_scope *loop = e->group_scope;
  switch (ll_inst(e, node->begin)->op) {
    case VYRE__LIR_BREAK:
      loop->end_used = true;
      ll_br(e, loop->end);
      break;
    case VYRE__LIR_CONTINUE:
      loop->step_used = true;
      ll_br(e, loop->step);
      break;
    default: /* EXIT */
      e->uses_next = true;
      ll_br(e, e->next_group);
  }
}

/* Merges the replica of a shared array (spmd/passes/privatize_atomics.c). */
static void merge_replica(ll *e, uint32_t buffer) {
  count c = open_count(e);
  ll_op at = ll_def(e, "mul nuw i32 %v, %u", LL_I32, c.now, e->width);
  at = ll_def(e, "zext i32 %v to i64", LL_I32, at);
  ll_op base = ll_base(e, buffer), place[2], value[2];
  for (unsigned k = 0; k < 2; k++) {
    place[k] = ll_def(e, "getelementptr inbounds i32, ptr %v, i64 %v", LL_PTR,
                      k ? ll_replica(e, buffer) : base, LL_I64, at);
    value[k] = ll_def(e, "load %t, ptr %v, align 4", MASK, LL_PTR, place[k]);
  }
  ll_op both =
      ll_combine(e, e->s->privatised[buffer].op, MASK, value[0], value[1]);
  ll_do(e, "store %o, ptr %v, align 4", MASK, both, LL_PTR, place[0]);
  ll_do(e, "store %t zeroinitializer, ptr %v, align 4", MASK, LL_PTR, place[1]);
  close_count(e, c, 1, (uint32_t)(ll_replica_elements(e, buffer) / e->width));
}

void ll_group_nodes(ll *e, const vyre__sched_node *first) {
  for (const vyre__sched_node *node = first; node && e->is_open;
       node = node->next) {
    switch (node->kind) {
      case VYRE__SCHED_UNIFORM:
        ll_hoist(e, node);
        break;
      case VYRE__SCHED_ROWS:
        ll_run_rows(e, node, ll_const(0), ll_const(e->kernel->workgroup[0]));
        break;
      case VYRE__SCHED_VECTORS:
        run_vectors(e, node);
        break;
      case VYRE__SCHED_GROUP_IF:
        group_if(e, node);
        break;
      case VYRE__SCHED_GROUP_LOOP:
        group_loop(e, node);
        break;
      case VYRE__SCHED_GROUP_JUMP:
        group_jump(e, node);
        break;
      case VYRE__SCHED_MERGE:
        merge_replica(e, node->buffer);
        break;
      default: /* a barrier: one thread executes the workgroup in order */
        break;
    }
  }
}
