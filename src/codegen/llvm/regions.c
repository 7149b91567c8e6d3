/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Control flow of the workgroup, and loops over its invocations. */
#include <string.h>

#include "base/memory.h"
#include "codegen/llvm/internal.h"

enum {
  MASK = LL_I32 | LL_VEC,
  MAX_ROUNDS = 16,      /* iterations that are unrolled */
  MAX_TEXT = 96 * 1024, /* bytes of their text */
};

uint32_t ll_vector_count(const ll *e) {
  const uint32_t *size = e->kernel->workgroup;
  if (!e->has_rows) return (e->r.invocations + e->width - 1) / e->width;
  return (size[0] + e->width - 1) / e->width * size[1] * size[2];
}

ll_known ll_known_of(ll *e, vyre__val v) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  const ll_note *note = ll_note_of(e, v);
  if (inst->op == VYRE__LIR_CONST) {
    return vyre__lir_const(inst) ? LL_TRUE : LL_FALSE;
  }
  if (!e->is_full || note->known_in != e->piece) return LL_UNKNOWN;
  if (!e->is_opposite || !note->known) return (ll_known)note->known;
  return note->known == LL_TRUE ? LL_FALSE : LL_TRUE;
}

bool ll_is_x(const ll *e, vyre__val v) {
  return e->is_fused && v == e->fused_x;
}

void ll_give_x(ll *e, vyre__val v) {
  ll_give(e, v, e->width == 1 ? LL_SCALAR : LL_LINEAR, e->x);
  e->reps[v - e->r.begin].stride = 1;
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

static void close_count(ll *e, count c, uint32_t step, uint32_t limit) {
  uint32_t end = ll_label(e);
  ll_op next = ll_def(e, "add nuw i32 %v, %u", LL_I32, c.now, step);
  ll_do(e, "store i32 %v, ptr %v", LL_I32, next, LL_PTR, c.at);
  ll_cond(e, ll_def(e, "icmp ult i32 %v, %u", LL_I32, next, limit), c.head,
          end);
  ll_place(e, end);
}

/* --- a piece --------------------------------------------------------------------------*/

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

static void remake(ll *e, uint32_t v) {
  ll_pure(e, v);
  ll_agree(e, v);
}

/* Emits the code of one vector of invocations. */
void ll_run_piece(ll *e, uint32_t index, ll_op mask) {
  const vyre__subregion *piece = &e->r.subregions[index];
  ll_scope region = {.kind = LL_SCOPE_REGION,
                     .end = ll_label(e),
                     .has_act = e->piece_acts[index]};
  uint32_t mark = ll_enter(e);
  e->piece = index;
  e->stamp = ++e->stamps;
  e->scope = &region;
  e->copies = e->no_copies ? UINT16_MAX : 1;
  ll_set_mask(e, mask);
  ll_look_ahead(e, index);
  if (piece->tests_done) test_done(e, &region);
  if (region.has_act) {
    region.act = ll_alloca(e, MASK, 1, 64);
    ll_do(e, "store %o, ptr %v", MASK, ll_mask_vector(e), LL_PTR, region.act);
  }
  for (uint32_t i = 0; i < piece->remat_count; i++) {
    ll_each_row(e, e->r.remats[piece->first_remat + i], remake);
  }
  ll_block(e, piece->begin, piece->end);
  ll_place(e, region.end);
  ll_leave(e, mark);
  ll_set_mask(e, (ll_op){0});
  e->scope = NULL;
  e->piece = 0;
  e->stamp = 0;
}

static void run_pieces(ll *e, const vyre__region *run, ll_op mask) {
  for (uint32_t i = 0; i < run->subregion_count; i++) {
    if (!e->r.subregions[run->first_subregion + i].is_empty) {
      ll_run_piece(e, run->first_subregion + i, mask);
    }
  }
}

/* --- rows: z, y, x -----------------------------------------------------------------------*/

static ll_op times_plus(ll *e, ll_op a, uint32_t by, ll_op b) {
  ll_op product = ll_def(e, "mul nuw i32 %v, %u", LL_I32, a, by);
  return ll_def(e, "add nuw i32 %v, %v", LL_I32, product, LL_I32, b);
}

void ll_count_vectors(ll *e, ll_op x) {
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
static void run_jam(ll *e, uint32_t piece, ll_op first, ll_op count_x) {
  ll_jam *jam = e->jams[piece];
  ll_op y = e->local[1];
  ll_stretch done;
  if (!ll_run_together(e, e->rows[piece], jam, first, count_x, &done)) return;
  count rest = open_count(e);
  e->local[1] = ll_def(e, "add nuw i32 %v, %v", LL_I32, y, LL_I32, rest.now);
  ll_begin_row(e);
  ll_run_rest(e, e->rows[piece], first, count_x, done);
  close_count(e, rest, 1, ll_jam_rows(jam));
}

/* Hides a number from LLVM. Loop optimisations on a count of few iterations
 * take long and gain nothing. */
ll_op ll_opaque(ll *e, ll_op op) {
  if (op.kind == LL_CONST) return op;
  return ll_def(e, "call i32 asm \"\", \"=r,0\"(i32 %v)", LL_I32, op);
}

void ll_run_rows(ll *e, uint32_t piece, ll_op first, ll_op count_x) {
  const uint32_t *size = e->kernel->workgroup;
  count c[3] = {{{0}}};
  for (unsigned i = 3; i-- > 1;) {
    e->local[i] = ll_const(0);
    e->local_form[i] = LL_SCALAR;
    if (size[i] == 1) continue;
    c[i] = open_count(e);
    e->local[i] = ll_opaque(e, c[i].now);
  }
  ll_begin_row(e);
  if (e->jams[piece]) {
    run_jam(e, piece, first, count_x);
  } else {
    ll_run_row(e, e->rows[piece], first, count_x);
  }
  for (unsigned i = 1; i < 3; i++) {
    uint32_t step = i == 1 ? ll_jam_rows(e->jams[piece]) : 1;
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

static void run_flat(ll *e, const vyre__region *run) {
  uint32_t full = e->r.invocations / e->width;
  uint32_t rest = e->r.invocations % e->width;
  if (full) {
    count c = open_count(e);
    e->vector_index = c.now;
    make_ids(e, ll_def(e, "mul nuw i32 %v, %u", LL_I32, c.now, e->width));
    run_pieces(e, run, (ll_op){0});
    close_count(e, c, 1, full);
  }
  if (rest) {
    e->vector_index = ll_const(full);
    make_ids(e, ll_const((uint64_t)full * e->width));
    ll_op on = ll_def(e, "icmp ult %t %%iota, %v", MASK, MASK, ll_const(rest));
    run_pieces(e, run, ll_widen(e, on));
  }
}

void ll_hoist(ll *e, const vyre__region *run) {
  for (uint32_t at = run->begin; at < run->end; at++) {
    const vyre__inst_info *role = ll_role(e, at);
    if (role->storage == VYRE__STORAGE_UNIFORM && role->is_needed) {
      ll_instruction(e, at);
    }
  }
}

static void run_part(ll *e, const vyre__region *run) {
  ll_hoist(e, run);
  if (run->is_empty) return;
  if (e->has_rows) {
    ll_run_rows(e, run->first_subregion, ll_const(0),
                ll_const(e->kernel->workgroup[0]));
  } else {
    run_flat(e, run);
  }
}

/* --- parts ------------------------------------------------------------------------------------*/

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
  ll_var *vars;
  ll_op *kept;
} trial;

static bool begin_trial(ll *e, trial *t) {
  size_t vars = e->kernel->var_count, insts = e->r.end - e->r.begin + 1;
  *t = (trial){.body = e->body.length,
               .entry = e->entry.length,
               .stack = e->stack_used,
               .scratch = e->scratch_used,
               .temps = e->temps,
               .labels = e->labels,
               .fuel = e->uses_fuel_exit,
               .next = e->uses_next,
               .stop = e->uses_stop,
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

static void take_back(ll *e, const trial *t) {
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
  memcpy(e->vars, t->vars, e->kernel->var_count * sizeof *t->vars);
  memcpy(e->kept, t->kept, (e->r.end - e->r.begin + 1) * sizeof *t->kept);
  e->is_open = true;
}

/* Unrolls a loop of the workgroup with constant bounds, so that positions in
 * shared memory become constants. Returns true if it did. */
static bool unroll_part(ll *e, const vyre__region *part, ll_scope *scope) {
  trial t;
  if (e->width == 1 || e->unrolls || !begin_trial(e, &t)) return false;
  uint32_t mark = ll_enter(e);
  e->unrolls = true;
  for (unsigned round = 0; round < MAX_ROUNDS && e->is_open; round++) {
    scope->step = ll_label(e);
    scope->step_used = false;
    ll_parts(e, part->inner);
    ll_leave(e, mark);
    if (e->is_open && scope->end_used) break;
    if (!e->is_open && !scope->step_used) break;
    ll_place(e, scope->step);
    if (part->clears_done && e->done.kind != LL_NONE) ll_clear_done(e);
    ll_parts(e, part->other);
    ll_leave(e, mark);
    if (e->body.length - t.body > MAX_TEXT) break;
  }
  e->unrolls = false;
  if (!e->is_open && scope->end_used) return true;
  take_back(e, &t);
  scope->end_used = scope->step_used = false;
  scope->end = ll_label(e);
  scope->step = ll_label(e);
  return false;
}

static void loop_part(ll *e, const vyre__region *part) {
  ll_scope scope = {.up = e->group_scope,
                    .kind = LL_SCOPE_LOOP,
                    .at = part->begin,
                    .end = ll_label(e),
                    .step = ll_label(e)};
  const ll_note *note = ll_note_of(e, part->begin);
  uint32_t outer = 0;
  ll_op counter = {0};
  e->group_scope = &scope;
  bool knows = false;
  for (uint32_t at = part->begin; at < part->end; at++) {
    knows |= ll_inst(e, at)->op == VYRE__LIR_SET &&
             e->vars[ll_inst(e, at)->aux].is_const;
  }
  if (knows && unroll_part(e, part, &scope)) {
    forget(e, part->begin, part->end);
    e->group_scope = scope.up;
    ll_place(e, scope.end);
    return;
  }
  forget(e, part->begin, part->end);
  uint32_t head = ll_label(e); /* earlier values may be restored */
  if (note->is_long) ll_open_long(e, &counter, &outer);
  ll_place(e, head);
  uint32_t mark = ll_enter(e);
  ll_parts(e, part->inner);
  ll_leave(e, mark);
  if (e->is_open || scope.step_used) {
    ll_place(e, scope.step);
    if (part->clears_done && e->done.kind != LL_NONE) ll_clear_done(e);
    ll_parts(e, part->other);
    if (note->is_long && e->is_open) ll_close_long(e, counter, head, outer);
    ll_br(e, head);
    ll_leave(e, mark);
  }
  forget(e, part->begin, part->end);
  e->group_scope = scope.up;
  if (scope.end_used) ll_place(e, scope.end);
}

static void if_part(ll *e, const vyre__region *part) {
  uint32_t yes = ll_label(e), no = ll_label(e), end = ll_label(e);
  ll_op condition = ll_scalar(e, ll_inst(e, part->begin)->a);
  if (condition.kind == LL_CONST) {
    ll_parts(e, condition.bits ? part->inner : part->other);
    return;
  }
  ll_cond(e, condition, yes, no);
  uint32_t mark = ll_enter(e);
  ll_place(e, yes);
  ll_parts(e, part->inner);
  ll_leave(e, mark);
  bool falls = e->is_open;
  ll_br(e, end);
  forget(e, part->begin, part->end);
  ll_place(e, no);
  ll_parts(e, part->other);
  ll_leave(e, mark);
  falls |= e->is_open;
  ll_br(e, end);
  forget(e, part->begin, part->end);
  if (falls) ll_place(e, end);
}

static void jump_part(ll *e, const vyre__region *part) {
  ll_scope *loop = e->group_scope;
  switch (ll_inst(e, part->begin)->op) {
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

/* Merges the replicas of shared arrays (privatize_atomics.c). */
static void join_twins(ll *e, uint32_t part) {
  for (uint32_t i = 0; i < e->kernel->buffer_count && e->is_open; i++) {
    if (e->delays[i].twin != part) continue;
    count c = open_count(e);
    ll_op at = ll_def(e, "mul nuw i32 %v, %u", LL_I32, c.now, e->width);
    at = ll_def(e, "zext i32 %v to i64", LL_I32, at);
    ll_op base = ll_base(e, i), place[2], value[2];
    for (unsigned k = 0; k < 2; k++) {
      place[k] = ll_def(e, "getelementptr inbounds i32, ptr %v, i64 %v", LL_PTR,
                        k ? ll_twin(e, i) : base, LL_I64, at);
      value[k] = ll_def(e, "load %t, ptr %v, align 4", MASK, LL_PTR, place[k]);
    }
    ll_op both = ll_combine(e, e->delays[i].op, MASK, value[0], value[1]);
    ll_do(e, "store %o, ptr %v, align 4", MASK, both, LL_PTR, place[0]);
    ll_do(e, "store %t zeroinitializer, ptr %v, align 4", MASK, LL_PTR,
          place[1]);
    close_count(e, c, 1, (uint32_t)(ll_twin_elements(e, i) / e->width));
  }
}

void ll_parts(ll *e, uint32_t first) {
  for (uint32_t i = first; i && e->is_open; i = e->r.regions[i].next) {
    const vyre__region *part = &e->r.regions[i];
    switch (part->kind) {
      case VYRE__REGION_PARALLEL:
        run_part(e, part);
        break;
      case VYRE__REGION_IF:
        if_part(e, part);
        break;
      case VYRE__REGION_LOOP:
        loop_part(e, part);
        break;
      case VYRE__REGION_JUMP:
        jump_part(e, part);
        break;
      default: /* a barrier: one thread executes the workgroup in order */
        break;
    }
    join_twins(e, i);
  }
}
