/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Control flow of a subregion, for all lanes of a vector at once.
 *
 * At least one lane is on wherever code runs. A uniform condition is a branch. At a
 * divergent `if`, the lanes that take an arm run it while the others wait at its
 * end. masked_exits.c says what continue, break and return do. */
#include "codegen/llvm/internal.h"

enum {
  MASK = LL_I32 | LL_VEC,
  MAX_COPIES =
      3000, /* instructions that may be duplicated for the case that all lanes are active */
  ROUNDS = 4096, /* iterations between two polls of `stop` */
};

/* Continues with the active lanes, or leaves if no lane is active. */
static void go_on_if_any(ll *e) {
  uint32_t rest = ll_label(e);
  ll_cond(e, ll_any(e, e->mask.lanes), rest, ll_resume(e));
  ll_place(e, rest);
}

/* Restores mask @p before, without the lanes that left since. */
static void drop_lanes(ll *e, ll_mask before, bool may_be_none) {
  ll_scope *iteration = ll_iteration(e);
  if (!iteration->has_act) {
    e->mask = before;
    return;
  }
  ll_op act = ll_load_mask(e, iteration->act);
  ll_set_mask(e, ll_and(e, before.lanes, act));
  if (may_be_none) go_on_if_any(e);
}

static void nodes_until(ll *e, const vyre__sched_node *first, uint32_t end);

/* --- if ---------------------------------------------------------------------------*/

typedef struct branch {
  const vyre__sched_node *node;
  uint32_t at, end; /* IF, END */
  bool has_else;
  vyre__val condition;
  bool is_not; /* taken if the condition is false */
} branch;

static branch branch_at(const ll *e, const vyre__sched_node *node) {
  branch b = {.node = node, .at = node->begin, .end = node->end - 1};
  b.has_else = ll_role(e, b.at)->mate != b.end;
  b.condition = ll_inst(e, b.at)->a;
  return b;
}

static void then_arm(ll *e, branch b) {
  uint32_t mark = ll_enter(e);
  ll_nodes(e, b.node->body);
  ll_leave(e, mark);
}

static void else_arm(ll *e, branch b) {
  if (!b.has_else) return;
  uint32_t mark = ll_enter(e);
  ll_nodes(e, b.node->other);
  ll_leave(e, mark);
}

static void uniform_if(ll *e, branch b) {
  ll_mask before = e->mask;
  uint32_t yes = ll_label(e), no = ll_label(e), end = ll_label(e);
  ll_op condition = ll_scalar(e, b.condition);
  ll_cond(e, condition, b.is_not ? no : yes, b.is_not ? yes : no);
  ll_place(e, yes);
  then_arm(e, b);
  bool falls = e->is_open;
  ll_br(e, end);
  e->mask = before;
  ll_place(e, no);
  else_arm(e, b);
  falls |= e->is_open;
  ll_br(e, end);
  e->is_open = false;
  if (!falls) return;
  ll_place(e, end);
  e->mask = before;
  if (ll_note_of(e, b.at)->drops) drop_lanes(e, before, false);
}

/* Executes both arms in all lanes; inactive lanes have no effect. */
static void straight_if(ll *e, branch b, ll_op yes, ll_op no) {
  ll_mask before = e->mask;
  bool was = e->is_speculated;
  e->is_speculated = true;
  ll_set_mask(e, yes);
  then_arm(e, b);
  if (b.has_else) {
    ll_set_mask(e, no);
    else_arm(e, b);
  }
  e->is_speculated = was;
  e->mask = before;
}

/* Executes the arms one after the other, each if a lane takes it. */
static void masked_arms(ll *e, branch b, ll_op yes, ll_op no, ll_scope *scope) {
  uint32_t inside = ll_label(e), next = b.has_else ? ll_label(e) : scope->end;
  uint32_t outer_end = scope->end;
  ll_cond(e, ll_any(e, yes), inside, next);
  ll_place(e, inside);
  e->scope = scope;
  /* Lanes that leave from here must not skip the other arm. */
  scope->end = next;
  ll_set_mask(e, yes);
  then_arm(e, b);
  ll_br(e, next);
  scope->end = outer_end;
  if (b.has_else) {
    uint32_t other = ll_label(e);
    ll_place(e, next);
    ll_cond(e, ll_any(e, no), other, scope->end);
    ll_place(e, other);
    ll_set_mask(e, no);
    else_arm(e, b);
    ll_br(e, scope->end);
  }
  e->scope = scope->up;
}

/* A few SETs and a jump: executed without a branch, because the other lanes
 * are inactive. */
static void straight_jump(ll *e, branch b, ll_op yes) {
  ll_mask before = e->mask;
  bool was = e->is_speculated;
  uint32_t mark = ll_enter(e);
  e->is_speculated = true;
  ll_set_mask(e, yes);
  nodes_until(e, b.node->body, b.end - 1);
  e->is_speculated = was;
  ll_exit_some(e, b.end - 1);
  ll_leave(e, mark);
  ll_set_mask(e, ll_and_not(e, before.lanes, yes));
  go_on_if_any(e);
}

/* The dispatch ends as soon as one lane runs out of fuel. */
static void end_if_any(ll *e, ll_op yes) {
  uint32_t rest = ll_label(e);
  e->uses_fuel_exit = true;
  ll_cond(e, ll_any(e, yes), e->fuel_label, rest);
  ll_place(e, rest);
}

static void varying_if(ll *e, branch b) {
  const vyre__sched_note *note = ll_note_of(e, b.at);
  ll_mask before = e->mask;
  ll_op condition = ll_mask_of(e, b.condition, b.is_not);
  ll_op yes = ll_and(e, before.lanes, condition), no = {0};
  if (!b.has_else && ll_inst(e, b.at + 1)->op == VYRE__LIR_OUT_OF_FUEL) {
    end_if_any(e, yes);
    return;
  }
  if (b.has_else) no = ll_and_not(e, before.lanes, condition);
  if (b.node->mode == VYRE__MODE_JUMP) {
    straight_jump(e, b, yes);
    return;
  }
  if (b.node->mode == VYRE__MODE_SELECT) {
    straight_if(e, b, yes, no);
    return;
  }
  ll_scope scope = {.up = e->scope, .kind = LL_SCOPE_IF, .end = ll_label(e)};
  uint32_t weight = b.end - b.at;
  bool copies = before.lanes.kind == LL_NONE && weight * e->copies < MAX_COPIES;
  if (copies) { /* a second copy without masks, for the case that all lanes take it */
    uint32_t all = ll_label(e), some = ll_label(e);
    e->copies *= 2;
    ll_op test = ll_test(e, b.condition, !b.is_not);
    if (test.kind == LL_NONE) test = ll_all(e, yes);
    ll_cond(e, test, all, some);
    ll_place(e, all);
    then_arm(e, b);
    ll_br(e, scope.end);
    ll_place(e, some);
    e->mask = before;
  }
  masked_arms(e, b, yes, no, &scope);
  if (copies) e->copies /= 2;
  ll_place(e, scope.end);
  e->mask = before;
  if (note->drops) drop_lanes(e, before, true);
}

static void choose_if(ll *e, branch b);

/* Splits u && v: a branch on the uniform u, then v per lane. Returns true if
 * it did. */
static bool split_if(ll *e, branch b) {
  vyre__val first_of, last_of;
  bool is_or;
  if (ll_role(e, b.condition)->subregion != e->subregion || b.has_else)
    return false;
  if (!vyre__sched_operation(e->s, b.condition, &first_of, &last_of, &is_or))
    return false;
  bool is_and = !is_or;
  bool left = ll_is_scalar(e, first_of), right = ll_is_scalar(e, last_of);
  if (left == right) return false;
  branch uniform = b, rest = b;
  uniform.condition = left ? first_of : last_of;
  rest.condition = left ? last_of : first_of;
  uint32_t yes = ll_label(e), no = ll_label(e), end = ll_label(e);
  ll_op first = ll_scalar(e, uniform.condition);
  if (is_and != b.is_not) {
    ll_mask before = e->mask;
    ll_cond(e, first, b.is_not ? end : yes, b.is_not ? yes : end);
    ll_place(e, yes);
    uint32_t mark = ll_enter(e);
    choose_if(e, rest);
    ll_leave(e, mark);
    ll_place(e, end);
    e->mask = before;
    if (ll_note_of(e, b.at)->drops) drop_lanes(e, before, false);
    return true;
  }
  if (b.node->mode != VYRE__MODE_JUMP) return false;
  ll_mask before = e->mask;
  ll_cond(e, first, b.is_not ? no : yes, b.is_not ? yes : no);
  ll_place(e, yes);
  then_arm(e, uniform);
  e->mask = before;
  ll_place(e, no);
  choose_if(e, rest);
  return true;
}

static void choose_if(ll *e, branch b) {
  while (ll_inst(e, b.condition)->op == VYRE__LIR_NOT &&
         ll_role(e, b.condition)->subregion == e->subregion) {
    b.condition = ll_inst(e, b.condition)->a;
    b.is_not = !b.is_not;
  }
  if (ll_is_scalar(e, b.condition)) {
    uniform_if(e, b);
  } else if (!split_if(e, b)) {
    varying_if(e, b);
  }
}

static void branch_if(ll *e, const vyre__sched_node *node) {
  branch b = branch_at(e, node);
  if (node->mode == VYRE__MODE_SPECULATE) {
    bool was = e->is_speculated;
    e->is_speculated = true;
    ll_nodes(e, node->body);
    e->is_speculated = was;
    return;
  }
  ll_known known = ll_known_of(e, b.condition);
  if (known == LL_TRUE) {
    ll_nodes(e, b.node->body);
  } else if (known == LL_FALSE) {
    if (b.has_else) ll_nodes(e, b.node->other);
  } else {
    choose_if(e, b);
  }
}

/* --- loops ------------------------------------------------------------------------*/

void ll_open_rounds(ll *e) {
  if (e->rounds.kind != LL_NONE) return;
  ll_text *was = e->to;
  e->rounds = ll_alloca(e, LL_I32, 1, 4);
  e->to = &e->entry;
  ll_print(e, " store i32 %u, ptr %v\n", (unsigned)ROUNDS, LL_PTR, e->rounds);
  e->to = was;
}

void ll_poll(ll *e, uint32_t again) {
  uint32_t rest = ll_label(e);
  ll_op stop = ll_def(e, "load atomic i32, ptr %%stop monotonic, align 4");
  e->uses_stop = true;
  ll_cond(e, ll_def(e, "icmp eq i32 %v, 0", LL_I32, stop), rest, e->stop_label);
  ll_place(e, rest);
  ll_do(e, "store i32 %u, ptr %v", (unsigned)ROUNDS, LL_PTR, e->rounds);
  ll_br(e, again);
}

/* One counter for all loops: the count continues from one execution of a loop to
 * the next, because short loops may run very often, and several counters would
 * take several registers. */
void ll_open_long(ll *e, ll_op *counter, uint32_t *outer) {
  ll_open_rounds(e);
  *counter = e->rounds;
  *outer = ll_label(e);
  ll_place(e, *outer);
}

/* Counts iterations. The outer loop polls `stop`, so that inner loops
 * contain nothing that may change memory. */
void ll_close_long(ll *e, ll_op counter, uint32_t head, uint32_t outer) {
  uint32_t look = ll_label(e);
  ll_op left = ll_def(e, "load i32, ptr %v", LL_PTR, counter);
  left = ll_def(e, "sub i32 %v, 1", LL_I32, left);
  ll_do(e, "store i32 %v, ptr %v", LL_I32, left, LL_PTR, counter);
  ll_cond(e, ll_def(e, "icmp sle i32 %v, 0", LL_I32, left), look, head);
  ll_place(e, look);
  ll_poll(e, outer);
}

/* @p polls: each iteration counts, to poll `stop`. */
static void run_masked_loop(ll *e, const vyre__sched_node *loop, bool polls) {
  uint32_t at = loop->begin;
  const vyre__sched_note *note = ll_note_of(e, at);
  ll_mask before = e->mask;
  ll_scope scope = {.up = e->scope,
                    .kind = LL_SCOPE_LOOP,
                    .at = at,
                    .end = ll_label(e),
                    .step = ll_label(e),
                    .check = ll_label(e),
                    .has_live = note->parts,
                    .has_act = note->parts || note->continues};
  uint32_t head = ll_label(e), outer = 0;
  ll_op counter = {0};
  ll_peeled_iterations(e, loop);
  if (scope.has_live) {
    scope.live = ll_alloca(e, MASK, 1, 64);
    ll_store_mask(e, ll_mask_vector(e), scope.live);
  }
  if (scope.has_act) scope.act = ll_alloca(e, MASK, 1, 64);
  e->scope = &scope;
  if (polls) ll_open_long(e, &counter, &outer);
  ll_place(e, head);
  uint32_t mark = ll_enter(e);
  e->mask = before;
  e->mask.bits = (ll_op){0};
  if (scope.has_live) ll_set_mask(e, ll_load_mask(e, scope.live));
  if (scope.has_act) ll_store_mask(e, ll_mask_vector(e), scope.act);
  ll_nodes(e, loop->body);
  bool goes_on = e->is_open || scope.step_used || scope.check_used;
  ll_br(e, scope.step);
  ll_leave(e, mark); /* the step may be reached without the last instructions */
  if (scope.check_used) {
    ll_place(e, scope.check);
    scope.end_used = true;
    ll_cond(e, ll_any(e, ll_load_mask(e, scope.live)), scope.step, scope.end);
  }
  if (goes_on) {
    ll_place(e, scope.step);
    scope.lanes_at_step = false;
    e->mask = before;
    e->mask.bits = (ll_op){0};
    if (scope.has_live) ll_set_mask(e, ll_load_mask(e, scope.live));
    if (scope.has_act) ll_store_mask(e, ll_mask_vector(e), scope.act);
    ll_nodes(e, loop->other);
    if (polls && e->is_open) ll_close_long(e, counter, head, outer);
    ll_br(e, head);
  }
  ll_leave(e, mark);
  e->scope = scope.up;
  e->mask = before;
  if (!scope.end_used) return; /* it is left by exits only, or never */
  ll_place(e, scope.end);
  if (note->drops) drop_lanes(e, before, true);
}

static void run_iterations(ll *e, const vyre__sched_node *loop, bool polls) {
  ll_walks walks;
  if (loop->walks) ll_open_walks(e, loop, &walks);
  run_masked_loop(e, loop, polls);
  if (loop->walks) ll_close_walks(e);
}

static void run_loop(ll *e, const vyre__sched_node *loop) {
  ll_parts parts;
  bool polls = ll_note_of(e, loop->begin)->is_long;
  bool has_parts = polls && ll_open_parts(e, loop, &parts);
  run_iterations(e, loop, polls && !has_parts);
  if (has_parts) ll_close_parts(e, loop, &parts);
}

/* Emits the loop once per accumulator group; each starts at the first value
 * of the counter. */
static void run_groups(ll *e, const vyre__sched_node *node) {
  uint32_t start = ll_note_of(e, node->begin)->group_start;
  for (const vyre__sched_node *loop = node->body; loop; loop = loop->next) {
    if (loop != node->body) ll_instruction(e, start);
    e->group_now = loop->group;
    run_loop(e, loop);
    e->group_now = 0;
  }
}

/* --- instructions -------------------------------------------------------------------*/

/* Loads a variable, or the operands of && and || that it stands for. */
static void get(ll *e, vyre__val v) {
  const vyre__sched_note *note = ll_note_of(e, v);
  if (!note->logic_a || !note->is_straight) {
    ll_get(e, v);
    return;
  }
  bool both = ll_is_scalar(e, note->logic_a) && ll_is_scalar(e, note->logic_b);
  unsigned type = both ? LL_I1 : LL_I1 | LL_VEC;
  ll_op a = both ? ll_scalar(e, note->logic_a) : ll_vector(e, note->logic_a);
  ll_op b = both ? ll_scalar(e, note->logic_b) : ll_vector(e, note->logic_b);
  ll_give(
      e, v, both ? LL_SCALAR : LL_VECTOR,
      ll_def(e, "%s %o, %v", note->logic_or ? "or" : "and", type, a, type, b));
}

static void make(ll *e, uint32_t at) {
  uint16_t flags = vyre__lir_ops[ll_inst(e, at)->op].flags;
  ll_known known = ll_known_of(e, at);
  if (at == e->parts_test) {
    ll_test_part(e, at);
    return;
  }
  if (flags & VYRE__LIRF_PURE && known != LL_UNKNOWN) {
    ll_give(e, at, LL_SCALAR, ll_const(known == LL_TRUE));
    return;
  }
  if (ll_inst(e, at)->op == VYRE__LIR_SUM_ADD) {
    ll_sum_add(e, at);
  } else if (flags & VYRE__LIRF_ATOMICS) {
    ll_atomic(e, at);
  } else if (ll_is_row_load(e, at)) {
    ll_give_row_load(e, at);
  } else if (flags & VYRE__LIRF_READS) {
    ll_load(e, at);
  } else if (ll_inst(e, at)->op == VYRE__LIR_GET) {
    get(e, at);
  } else if (ll_is_x(e, at)) {
    ll_give_x(e, at);
  } else {
    ll_pure(e, at);
  }
  ll_agree(e, at);
}

static void instruction(ll *e, uint32_t at) {
  const vyre__inst_info *role = ll_role(e, at);
  switch (ll_inst(e, at)->op) {
    case VYRE__LIR_SET:
      if (!ll_note_of(e, at)->is_dead && at != e->unused_set) ll_set(e, at);
      return;
    case VYRE__LIR_STORE:
      ll_store(e, at);
      return;
    case VYRE__LIR_OUT_OF_FUEL:
      e->uses_fuel_exit = true;
      ll_br(e, e->fuel_label);
      return;
    default:
      if (!role->is_leaf) make(e, at);
      if (e->subregion && !ll_role(e, at)->is_leaf) ll_store_live(e, at);
      if (e->subregion && role->is_leaf &&
          role->storage == VYRE__STORAGE_BROADCAST) {
        ll_store_live(e, at);
      }
  }
}

void ll_instruction(ll *e, uint32_t at) {
  ll_each_row(e, at, instruction);
}

static bool is_other_group(const ll *e, uint32_t at) {
  return e->group_now && !(ll_note_of(e, at)->groups & e->group_now);
}

void ll_code(ll *e, uint32_t begin, uint32_t end) {
  for (uint32_t at = begin; at < end && e->is_open; at++) {
    const vyre__inst_info *role = ll_role(e, at);
    if (role->is_needed && role->storage != VYRE__STORAGE_UNIFORM &&
        !is_other_group(e, at)) {
      ll_instruction(e, at);
    }
  }
}

/* Emits the nodes of a list that begin before instruction @p end. */
static void nodes_until(ll *e, const vyre__sched_node *first, uint32_t end) {
  for (const vyre__sched_node *node = first;
       node && node->begin < end && e->is_open; node = node->next) {
    switch (node->kind) {
      case VYRE__SCHED_IF:
        branch_if(e, node);
        break;
      case VYRE__SCHED_LOOP:
        run_loop(e, node);
        break;
      case VYRE__SCHED_ACCUMULATORS:
        run_groups(e, node);
        break;
      case VYRE__SCHED_JUMP:
        ll_exit_all(e, node->begin);
        break;
      default:
        ll_code(e, node->begin, node->end);
    }
  }
}

void ll_nodes(ll *e, const vyre__sched_node *first) {
  nodes_until(e, first, UINT32_MAX);
}
