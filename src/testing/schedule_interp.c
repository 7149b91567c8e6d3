/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "testing/schedule_interp.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "testing/lir_interp_internal.h"

enum { MAX_LANES = 32 * VYRE__MAX_JAMMED_ROWS, MAX_DEPTH = 200 };

typedef struct lane {
  uint32_t slot; /* of its values and variables */
  uint32_t row;  /* of jammed rows */
  uint32_t group_x;
  invocation at;
} lane;

typedef struct lanes {
  bool on[MAX_LANES];
} lanes;

/* A loop that lanes leave. */
typedef struct frame {
  lanes left, waiting; /* by break; by continue */
} frame;

typedef struct private_memory {
  uint8_t *own;     /* private memory of the thread, or NULL */
  uint8_t *replica; /* of shared memory, or NULL */
} private_memory;

typedef struct machine {
  vyre__interp *m;
  vyre__schedule s;
  vyre_arena arena;
  uint32_t slots, stride;
  uint64_t *values, *vars; /* of all slots, of the workgroup, of lanes that
                            * do not exist */
  bool *done;
  private_memory *privates;

  lane all[MAX_LANES];
  uint32_t count;
  const vyre__sched_node *range; /* NULL: start of a row */
  const vyre__jam *jam;
  uint8_t group; /* bit of the accumulator group */
  uint32_t region;
  bool is_at_start; /* of the workgroup: uniform values do not exist yet */
  frame *loop;
} machine;

typedef enum flow { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE, FLOW_EXIT } flow;

static const vyre__lir_inst *inst_of(const machine *c, uint32_t at) {
  return &c->s.kernel->code[at];
}

static const vyre__inst_info *info_of(const machine *c, uint32_t at) {
  return vyre__inst_info_of(&c->s.r, at);
}

static uint64_t *values_of(const machine *c, uint32_t slot) {
  return c->values + (size_t)slot * c->stride;
}

static uint64_t *vars_of(const machine *c, uint32_t slot) {
  return c->vars + (size_t)slot * (c->s.kernel->var_count + 1);
}

static bool any(const machine *c, const lanes *mask) {
  for (uint32_t i = 0; i < c->count; i++) {
    if (mask->on[i]) return true;
  }
  return false;
}

static void add(lanes *to, const lanes *from) {
  for (uint32_t i = 0; i < MAX_LANES; i++) to->on[i] |= from->on[i];
}

static vyre_code defect(machine *c, uint32_t at, const char *what) {
  return vyre__interp_fail(c->m, at, what);
}

/* --- values ---------------------------------------------------------------*/

static bool is_of_workgroup(const machine *c, const lane *l, vyre__val v) {
  const vyre__inst_info *info = info_of(c, v);
  if (c->is_at_start) return false;
  if (l->slot == c->slots || info->storage == VYRE__STORAGE_UNIFORM) {
    return true;
  }
  return info->storage == VYRE__STORAGE_BROADCAST && c->range &&
         info->subregion != c->range->subregion;
}

static bool is_leaf(uint8_t op) {
  return op == VYRE__LIR_CONST ||
         (op >= VYRE__LIR_LOCAL_ID && op <= VYRE__LIR_FUEL);
}

/* Brings @p v into the values of a lane. */
static vyre_code fetch(machine *c, const lane *l, vyre__val v) {
  uint64_t *own = values_of(c, l->slot);
  uint32_t begin = c->s.r.begin;
  if (is_leaf(inst_of(c, v)->op)) {
    uint32_t saved = c->m->group[0];
    c->m->group[0] = l->group_x;
    const char *problem =
        vyre__interp_step(c->m, &l->at, v, own, vars_of(c, l->slot), begin);
    c->m->group[0] = saved;
    return problem ? defect(c, v, problem) : VYRE_OK;
  }
  if (is_of_workgroup(c, l, v)) {
    own[v - begin] = values_of(c, c->slots)[v - begin];
  }
  return VYRE_OK;
}

static vyre_code fetch_operands(machine *c, const lane *l, uint32_t at) {
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst_of(c, at), operands);
  for (uint32_t i = 0; i < count; i++) VYRE_TRY(fetch(c, l, operands[i]));
  return VYRE_OK;
}

static vyre__known known_of(const machine *c, vyre__val v) {
  if (!c->range || !c->range->known) return VYRE__UNKNOWN;
  return (vyre__known)c->range->known[v - c->s.r.begin];
}

/* Returns the memory that an atomic of a lane uses instead of the buffer's. */
static uint8_t *other_memory(const machine *c, const lane *l, uint32_t at) {
  const vyre__lir_inst *inst = inst_of(c, at);
  if (!(vyre__lir_ops[inst->op].flags & VYRE__LIRF_ATOMICS)) return NULL;
  const private_memory *own = &c->privates[inst->aux];
  if (own->own) return own->own;
  if (!c->s.privatised) return NULL; /* before the pass */
  const vyre__privatised *plan = &c->s.privatised[inst->aux];
  bool is_odd = l->at.id[0] % 2 && l->slot != c->slots;
  bool uses =
      own->replica && is_odd && plan->op == inst->op && !info_of(c, at)->uses;
  return uses && c->region == plan->replica ? own->replica : NULL;
}

static vyre_code run_one(machine *c, const lane *l, uint32_t at) {
  const vyre__lir_inst *inst = inst_of(c, at);
  const vyre__sched_note *note = &c->s.notes[at - c->s.r.begin];
  uint64_t *own = values_of(c, l->slot), *vars = vars_of(c, l->slot);
  uint64_t *out = &own[at - c->s.r.begin];
  VYRE_TRY(fetch_operands(c, l, at));
  if (c->s.is_fused && at == c->s.fused_x) {
    *out = l->group_x * c->s.kernel->workgroup[0] + l->at.id[0];
    return VYRE_OK;
  }
  bool is_var = inst->op == VYRE__LIR_GET || inst->op == VYRE__LIR_SET;
  if (is_var && c->s.r.var_storage[inst->aux] == VYRE__STORAGE_UNIFORM) {
    vars = vars_of(c, c->slots);
  }
  if (inst->op == VYRE__LIR_GET && note->logic_a && note->is_straight) {
    VYRE_TRY(fetch(c, l, note->logic_a));
    VYRE_TRY(fetch(c, l, note->logic_b));
    uint64_t a = own[note->logic_a - c->s.r.begin],
             b = own[note->logic_b - c->s.r.begin];
    *out = note->logic_or ? a | b : a & b;
    return VYRE_OK;
  }
  uint8_t *other = other_memory(c, l, at), *bytes = NULL;
  if (other) {
    bytes = c->m->memories[inst->aux].bytes;
    c->m->memories[inst->aux].bytes = other;
  }
  const char *problem =
      vyre__interp_step(c->m, &l->at, at, own, vars, c->s.r.begin);
  if (other) c->m->memories[inst->aux].bytes = bytes;
  if (problem) return defect(c, at, problem);
  if (info_of(c, at)->storage == VYRE__STORAGE_BROADCAST) {
    values_of(c, c->slots)[at - c->s.r.begin] = *out;
  }
  return VYRE_OK;
}

/* --- code of a vector -----------------------------------------------------*/

/* Gives the values of row 0 to the other jammed rows. */
static void share(machine *c, uint32_t at, const lanes *mask) {
  const vyre__lir_inst *inst = inst_of(c, at);
  for (uint32_t i = c->s.width; i < c->count; i++) {
    if (!mask->on[i]) continue;
    uint32_t same = i - c->all[i].row * c->s.width; /* lane of row 0 */
    uint32_t from = c->all[same].slot, to = c->all[i].slot;
    values_of(c, to)[at - c->s.r.begin] = values_of(c, from)[at - c->s.r.begin];
    if (inst->op == VYRE__LIR_SET) {
      vars_of(c, to)[inst->aux] = vars_of(c, from)[inst->aux];
    }
  }
}

/* Destroys a variable in inactive lanes, whose old value is never read. */
static void destroy(machine *c, uint32_t at, const lanes *mask) {
  uint32_t var = inst_of(c, at)->aux;
  if (!c->s.notes[at - c->s.r.begin].no_blend) return;
  if (c->s.vars[var].form != VYRE__AS_VECTOR) return;
  for (uint32_t i = 0; i < c->count; i++) {
    if (!mask->on[i]) vars_of(c, c->all[i].slot)[var] ^= 0x5A;
  }
}

static vyre_code run_instruction(machine *c, uint32_t at, const lanes *mask) {
  const vyre__lir_inst *inst = inst_of(c, at);
  const vyre__sched_note *note = &c->s.notes[at - c->s.r.begin];
  bool is_pure = vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE;
  vyre__known known = is_pure ? known_of(c, at) : VYRE__UNKNOWN;
  bool is_common = c->jam && c->jam->is_common[at - c->s.r.begin];
  if (note->is_dead) return VYRE_OK;
  if (inst->op == VYRE__LIR_OUT_OF_FUEL) {
    return any(c, mask) ? vyre__interp_out_of_fuel(c->m) : VYRE_OK;
  }
  for (uint32_t i = 0; i < c->count; i++) {
    if (!mask->on[i] || (is_common && c->all[i].row)) continue;
    uint64_t *values = values_of(c, c->all[i].slot);
    if (known >= VYRE__KNOWN_A) {
      vyre__val operand = inst->v[known - VYRE__KNOWN_A];
      VYRE_TRY(fetch(c, &c->all[i], operand));
      values[at - c->s.r.begin] = values[operand - c->s.r.begin];
    } else if (known != VYRE__UNKNOWN) {
      values[at - c->s.r.begin] = known == VYRE__KNOWN_TRUE;
    } else {
      VYRE_TRY(run_one(c, &c->all[i], at));
    }
  }
  if (is_common) share(c, at, mask);
  if (inst->op == VYRE__LIR_SET) destroy(c, at, mask);
  return VYRE_OK;
}

static vyre_code run_code(machine *c, const vyre__sched_node *leaf,
                          const lanes *mask) {
  for (uint32_t at = leaf->begin; at < leaf->end; at++) {
    const vyre__inst_info *info = info_of(c, at);
    uint8_t groups = c->s.notes[at - c->s.r.begin].groups;
    if (!info->is_needed || info->storage == VYRE__STORAGE_UNIFORM) continue;
    if (c->group && !(groups & c->group)) continue;
    VYRE_TRY(run_instruction(c, at, mask));
  }
  return VYRE_OK;
}

static vyre_code run_list(machine *c, const vyre__sched_node *first,
                          lanes *mask);

/* Splits @p mask by the condition of an IF. */
static vyre_code split(machine *c, uint32_t at, const lanes *mask, lanes *yes,
                       lanes *no) {
  vyre__val v = inst_of(c, at)->a;
  memset(yes, 0, sizeof *yes);
  memset(no, 0, sizeof *no);
  for (uint32_t i = 0; i < c->count; i++) {
    if (!mask->on[i]) continue;
    VYRE_TRY(fetch(c, &c->all[i], v));
    bool is = values_of(c, c->all[i].slot)[v - c->s.r.begin] != 0;
    (is ? yes : no)->on[i] = true;
  }
  return VYRE_OK;
}

static vyre_code run_if(machine *c, const vyre__sched_node *node, lanes *mask) {
  lanes yes, no;
  if (node->mode == VYRE__MODE_SPECULATE) return run_list(c, node->body, mask);
  VYRE_TRY(split(c, node->begin, mask, &yes, &no));
  if (node->mode == VYRE__MODE_UNIFORM && any(c, &yes) && any(c, &no)) {
    return defect(c, node->begin, "lanes disagree about a uniform IF");
  }
  VYRE_TRY(run_list(c, node->body, &yes));
  VYRE_TRY(run_list(c, node->other, &no));
  *mask = yes;
  add(mask, &no);
  return VYRE_OK;
}

static bool all_on(const machine *c, const lanes *mask) {
  for (uint32_t i = 0; i < c->count; i++) {
    if (!mask->on[i]) return false;
  }
  return true;
}

/* Runs iterations that no lane leaves. */
static vyre_code run_peeled(machine *c, const vyre__sched_node *loop,
                            lanes *mask) {
  while (loop->peel && all_on(c, mask)) {
    const vyre__sched_node *node = loop->body;
    for (; node && node->begin < loop->peel; node = node->next) {
      lanes yes, no;
      if (node->kind == VYRE__SCHED_CODE) {
        VYRE_TRY(run_code(c, node, mask));
        continue;
      }
      VYRE_TRY(split(c, node->begin, mask, &yes, &no));
      if (any(c, &yes)) return VYRE_OK;
    }
    VYRE_TRY(run_list(c, node, mask));
    VYRE_TRY(run_list(c, loop->other, mask));
    if (!all_on(c, mask)) {
      return defect(c, loop->begin, "a lane leaves a peeled iteration");
    }
  }
  return VYRE_OK;
}

static vyre_code run_loop(machine *c, const vyre__sched_node *loop,
                          lanes *mask) {
  frame own, *outer = c->loop;
  lanes left = {{0}}, live;
  VYRE_TRY(run_peeled(c, loop, mask));
  live = *mask;
  c->loop = &own;
  while (any(c, &live)) {
    memset(&own, 0, sizeof own);
    VYRE_TRY(run_list(c, loop->body, &live));
    add(&live, &own.waiting);
    VYRE_TRY(run_list(c, loop->other, &live));
    if (loop->mode == VYRE__MODE_UNIFORM && any(c, &own.left) &&
        any(c, &live)) {
      return defect(c, loop->begin, "lanes leave a uniform loop apart");
    }
    add(&left, &own.left);
  }
  c->loop = outer;
  *mask = left;
  return VYRE_OK;
}

static vyre_code run_groups(machine *c, const vyre__sched_node *node,
                            lanes *mask) {
  uint32_t start = c->s.notes[node->begin - c->s.r.begin].group_start;
  lanes before = *mask;
  for (const vyre__sched_node *loop = node->body; loop; loop = loop->next) {
    *mask = before;
    if (loop != node->body) VYRE_TRY(run_instruction(c, start, mask));
    c->group = loop->group;
    VYRE_TRY(run_loop(c, loop, mask));
    c->group = 0;
  }
  return VYRE_OK;
}

static void run_jump(machine *c, uint32_t at, lanes *mask) {
  vyre__exit_kind kind = vyre__exit_kind_of(&c->s, at);
  for (uint32_t i = 0; i < c->count; i++) {
    if (!mask->on[i]) continue;
    if (kind == VYRE__EXIT_CONTINUE) c->loop->waiting.on[i] = true;
    if (kind == VYRE__EXIT_BREAK) c->loop->left.on[i] = true;
    if (kind == VYRE__EXIT_RETURN && info_of(c, at)->sets_done) {
      c->done[c->all[i].slot] = true;
    }
    mask->on[i] = false;
  }
}

static vyre_code run_list(machine *c, const vyre__sched_node *first,
                          lanes *mask) {
  for (const vyre__sched_node *node = first; node && any(c, mask);
       node = node->next) {
    switch (node->kind) {
      case VYRE__SCHED_IF:
        VYRE_TRY(run_if(c, node, mask));
        break;
      case VYRE__SCHED_LOOP:
        VYRE_TRY(run_loop(c, node, mask));
        break;
      case VYRE__SCHED_ACCUMULATORS:
        VYRE_TRY(run_groups(c, node, mask));
        break;
      case VYRE__SCHED_JUMP:
        run_jump(c, node->begin, mask);
        break;
      case VYRE__SCHED_PREFETCH:
        break;
      default:
        VYRE_TRY(run_code(c, node, mask));
    }
  }
  return VYRE_OK;
}

static vyre_code run_range(machine *c, const vyre__sched_node *range,
                           lanes mask) {
  const vyre__subregion *of = &c->s.r.subregions[range->subregion];
  c->range = range;
  for (uint32_t i = 0; of->tests_done && i < c->count; i++) {
    if (c->done[c->all[i].slot]) mask.on[i] = false;
  }
  for (uint32_t i = 0; i < of->remat_count; i++) {
    VYRE_TRY(run_instruction(c, c->s.r.remats[of->first_remat + i], &mask));
  }
  VYRE_TRY(run_list(c, range->body, &mask));
  c->range = NULL;
  return VYRE_OK;
}

/* --- rows -----------------------------------------------------------------*/

/* A row of invocations, counted from x = first. */
typedef struct row {
  const vyre__sched_node *rows;
  uint32_t y, z;
  uint32_t group_x; /* workgroup of its first invocation */
  uint64_t count;
} row;

static lane lane_at(const machine *c, const row *r, uint64_t d, uint32_t slot) {
  const uint32_t *size = c->s.kernel->workgroup;
  uint32_t x = (uint32_t)(d % size[0]);
  uint32_t own = x + size[0] * (r->y + size[1] * r->z);
  return (lane){.slot = c->s.is_fused ? slot : own,
                .group_x = r->group_x + (uint32_t)(d / size[0]),
                .at = {.id = {x, r->y, r->z}}};
}

/* Computes @p v for one lane before its vector runs. */
static vyre_code compute(machine *c, const lane *l, vyre__val v,
                         unsigned depth) {
  const vyre__inst_info *info = info_of(c, v);
  bool is_uniform = info->storage == VYRE__STORAGE_UNIFORM;
  bool is_there = info->is_leaf || (is_uniform && !c->is_at_start);
  bool is_x = c->s.is_fused && v == c->s.fused_x;
  if (is_there && !is_x) return fetch(c, l, v);
  if (depth == MAX_DEPTH) return defect(c, v, "cannot be computed ahead");
  vyre__val operands[4];
  uint32_t count = is_x ? 0 : vyre__lir_operands(inst_of(c, v), operands);
  for (uint32_t i = 0; i < count; i++) {
    VYRE_TRY(compute(c, l, operands[i], depth + 1));
  }
  return run_one(c, l, v);
}

static vyre_code number(machine *c, const lane *l, vyre__val v, bool is_signed,
                        int64_t *out) {
  VYRE_TRY(compute(c, l, v, 0));
  uint32_t bits = (uint32_t)values_of(c, l->slot)[v - c->s.r.begin];
  *out = is_signed ? (int64_t)(int32_t)bits : (int64_t)bits;
  return VYRE_OK;
}

typedef struct interval {
  int64_t low, top;
  bool is_good;
} interval;

static vyre_code counter_interval(machine *c, const lane *l, vyre__val v,
                                  interval *out) {
  uint32_t at = vyre__counter_loop(&c->s, v);
  const vyre__lir_loop *loop = &c->s.kernel->loops[inst_of(c, at)->aux];
  int64_t bound;
  VYRE_TRY(number(c, l, loop->first, loop->is_signed, &out->low));
  VYRE_TRY(number(c, l, loop->bound, loop->is_signed, &bound));
  int64_t span = bound - out->low - (loop->kind == VYRE__LOOP_LT);
  if (span < 0) span = 0;
  span -= span % (int64_t)loop->step;
  out->top = out->low + span;
  out->is_good = true;
  return VYRE_OK;
}

/* Computes the interval of an index over all iterations (loop_range.c). */
static vyre_code interval_of(machine *c, const lane *l, vyre__row_split *split,
                             vyre__val v, interval *out) {
  const vyre__lir_inst *inst = inst_of(c, v);
  interval b = {.is_good = true};
  out->is_good = true;
  if (vyre__row_is_uniform(&c->s, split, v) ||
      vyre__row_is_linear(&c->s, split, v)) {
    VYRE_TRY(number(c, l, v, true, &out->low));
    out->top = out->low;
    return VYRE_OK;
  }
  if (inst->op == VYRE__LIR_GET) return counter_interval(c, l, v, out);
  bool is_left =
      inst->op == VYRE__LIR_MUL && vyre__row_is_uniform(&c->s, split, inst->a);
  VYRE_TRY(interval_of(c, l, split, is_left ? inst->b : inst->a, out));
  VYRE_TRY(interval_of(c, l, split, is_left ? inst->a : inst->b, &b));
  out->is_good &= b.is_good;
  if (inst->op == VYRE__LIR_MUL) {
    out->is_good &= b.low >= 0 && b.low < 1 << 27;
    if (!out->is_good) return VYRE_OK;
    out->low *= b.low;
    out->top *= b.low;
  } else {
    out->low = inst->op == VYRE__LIR_SUB ? out->low - b.low : out->low + b.low;
    out->top = inst->op == VYRE__LIR_SUB ? out->top - b.top : out->top + b.top;
  }
  return VYRE_OK;
}

/* Finds whether a condition of the row has its expected value in a lane. */
static vyre_code holds(machine *c, const lane *l, vyre__row_split *split,
                       const vyre__row_condition *condition, bool *out) {
  *out = true;
  if (condition->is_proven) return VYRE_OK;
  if (!condition->in_loops) {
    VYRE_TRY(compute(c, l, condition->v, 0));
    const uint64_t *values = values_of(c, l->slot);
    uint64_t is = values[condition->v - c->s.r.begin];
    if (condition->is_clamp) {
      vyre__val operand = vyre__row_operand(&c->s, split, condition->v);
      *out = is == values[operand - c->s.r.begin];
    } else {
      *out = (is != 0) == condition->want;
    }
    return VYRE_OK;
  }
  vyre__index_limit limit =
      vyre__index_limit_of(&c->s, split, condition->v, condition->want);
  interval all;
  int64_t bound, half = INT64_C(1) << 31;
  VYRE_TRY(interval_of(c, l, split, limit.index, &all));
  VYRE_TRY(number(c, l, limit.bound, limit.is_signed, &bound));
  if (limit.one_more) bound++;
  int64_t low = limit.is_signed ? -half : 0, top = low + 2 * half;
  if (limit.is_top) top = bound;
  if (!limit.is_top) low = bound;
  *out = all.is_good && all.low >= low && all.top < top;
  return VYRE_OK;
}

/* Result of the conditions of a row for a vector. */
typedef struct vector_test {
  lanes visit; /* lanes that exist and have something to do */
  bool is_full, is_outside;
} vector_test;

/* Fills the lanes of the vector at @p d, from lane @p first on. */
static vyre_code test_vector(machine *c, const row *r, uint64_t d,
                             uint32_t first, vector_test *out) {
  vyre__row_split *split = r->rows->split;
  *out = (vector_test){.is_full = true, .is_outside = true};
  for (uint32_t i = 0; i < c->s.width; i++) {
    lane *l = &c->all[first + i];
    bool exists = d + i < r->count;
    *l = lane_at(c, r, exists ? d + i : d, first + i);
    if (!exists) l->slot = c->slots + 1;
    out->is_full &= exists;
    out->is_outside &= exists;
    out->visit.on[first + i] = exists;
    for (uint32_t k = 0; exists && split && k < split->count; k++) {
      bool is;
      VYRE_TRY(holds(c, l, split, &split->conditions[k], &is));
      out->is_full &= is;
      out->is_outside &= !is;
      if (!is && split->conditions[k].clips) out->visit.on[first + i] = false;
    }
  }
  return VYRE_OK;
}

static const vyre__sched_node *range_of(const vyre__sched_node *rows,
                                        vyre__range_kind kind) {
  const vyre__sched_node *node = rows->body;
  while (node && (node->kind != VYRE__SCHED_RANGE || node->range != kind)) {
    node = node->next;
  }
  return node;
}

static vyre_code run_vector(machine *c, const row *r, uint64_t d) {
  vector_test test;
  c->count = c->s.width;
  VYRE_TRY(test_vector(c, r, d, 0, &test));
  const vyre__sched_node *outside = range_of(r->rows, VYRE__RANGE_OUTSIDE);
  const vyre__sched_node *range =
      range_of(r->rows, test.is_full ? VYRE__RANGE_FULL : VYRE__RANGE_EDGE);
  if (outside && test.is_outside) range = outside;
  if (!any(c, &test.visit)) return VYRE_OK;
  if (!range) return defect(c, r->rows->begin, "the row has no edge range");
  return run_range(c, range, test.visit);
}

/* Evaluates the tests that the start of a row makes. */
static vyre_code start_row(machine *c, const row *r) {
  const vyre__subregion *of = &c->s.r.subregions[r->rows->subregion];
  lane first = lane_at(c, r, 0, 0);
  for (uint32_t at = of->begin; r->rows->split && at < of->end; at++) {
    if (!c->s.notes[at - c->s.r.begin].is_hoisted) continue;
    vyre__val v = inst_of(c, at)->a;
    VYRE_TRY(compute(c, &first, v, 0));
    if (values_of(c, first.slot)[v - c->s.r.begin]) {
      return vyre__interp_out_of_fuel(c->m);
    }
  }
  return VYRE_OK;
}

static vyre_code run_row(machine *c, const row *r) {
  VYRE_TRY(start_row(c, r));
  for (uint64_t d = 0; d < r->count; d += c->s.width) {
    VYRE_TRY(run_vector(c, r, d));
    /* Vectors may overlap: invocations run again. */
    if (c->s.overlaps && d + 1 < r->count) VYRE_TRY(run_vector(c, r, d + 1));
  }
  return VYRE_OK;
}

/* Runs vectors that are full in all rows together. */
static vyre_code run_jam(machine *c, const vyre__sched_node *jam, row r) {
  uint32_t rows = jam->jam->rows, y = r.y;
  for (uint32_t i = 0; i < rows; i++) {
    r.y = y + i;
    VYRE_TRY(start_row(c, &r));
  }
  for (uint64_t d = 0; d < r.count; d += c->s.width) {
    bool is_full = true;
    lanes mask = {{0}};
    c->count = rows * c->s.width;
    for (uint32_t i = 0; i < rows; i++) {
      vector_test test;
      r.y = y + i;
      VYRE_TRY(test_vector(c, &r, d, i * c->s.width, &test));
      is_full &= test.is_full;
      add(&mask, &test.visit);
      for (uint32_t k = 0; k < c->s.width; k++) {
        c->all[i * c->s.width + k].row = i;
      }
    }
    if (is_full) {
      c->jam = jam->jam;
      VYRE_TRY(run_range(c, jam->body, mask));
      c->jam = NULL;
      continue;
    }
    for (uint32_t i = 0; i < rows; i++) {
      r.y = y + i;
      VYRE_TRY(run_vector(c, &r, d));
    }
  }
  return VYRE_OK;
}

static lane group_lane(const machine *c) {
  return (lane){.slot = c->slots, .group_x = c->m->group[0]};
}

/* Finds the rows of a workgroup that have something to do. */
static vyre_code limit_rows(machine *c, const vyre__sched_node *node,
                            uint32_t *first, uint32_t *end) {
  const vyre__row_split *split = node->split;
  lane l = group_lane(c);
  if (!split || !split->limit) return VYRE_OK;
  VYRE_TRY(compute(c, &l, split->limit, 0));
  vyre__row_limits(&c->s, split,
                   values_of(c, l.slot)[split->limit - c->s.r.begin], first,
                   end);
  return VYRE_OK;
}

static vyre_code run_rows(machine *c, const vyre__sched_node *node,
                          uint64_t groups) {
  const uint32_t *size = c->s.kernel->workgroup;
  bool is_jam = node->body->kind == VYRE__SCHED_JAM;
  row r = {.rows = node, .group_x = c->m->group[0], .count = groups * size[0]};
  uint32_t first = 0, end = size[1];
  VYRE_TRY(limit_rows(c, node, &first, &end));
  for (r.z = 0; r.z < size[2]; r.z++) {
    for (r.y = first; r.y < end;) {
      VYRE_TRY(is_jam ? run_jam(c, node->body, r) : run_row(c, &r));
      r.y += is_jam ? node->body->jam->rows : 1;
    }
  }
  return VYRE_OK;
}

/* Runs the invocations of a workgroup in order, whatever their rows. */
static vyre_code run_vectors(machine *c, const vyre__sched_node *node) {
  const uint32_t *size = c->s.kernel->workgroup;
  for (uint32_t d = 0; d < c->s.r.invocations; d += c->s.width) {
    lanes mask = {{0}};
    bool is_full = true;
    c->count = c->s.width;
    for (uint32_t i = 0; i < c->s.width; i++) {
      uint32_t own = d + i < c->s.r.invocations ? d + i : d;
      mask.on[i] = d + i < c->s.r.invocations;
      is_full &= mask.on[i];
      c->all[i] = (lane){.slot = mask.on[i] ? own : c->slots + 1,
                         .group_x = c->m->group[0],
                         .at = {.id = {own % size[0], own / size[0] % size[1],
                                       own / size[0] / size[1]}}};
    }
    const vyre__sched_node *range =
        range_of(node, is_full ? VYRE__RANGE_FULL : VYRE__RANGE_EDGE);
    if (!range) return defect(c, node->begin, "no range for a vector");
    VYRE_TRY(run_range(c, range, mask));
  }
  return VYRE_OK;
}

/* --- the workgroup --------------------------------------------------------*/

static vyre_code run_uniform(machine *c, const vyre__sched_node *leaf) {
  lane l = group_lane(c);
  for (uint32_t at = leaf->begin; at < leaf->end; at++) {
    const vyre__inst_info *info = info_of(c, at);
    if (info->storage != VYRE__STORAGE_UNIFORM || !info->is_needed) continue;
    VYRE_TRY(run_one(c, &l, at));
  }
  return VYRE_OK;
}

static void merge(machine *c, uint32_t buffer) {
  const interp_memory *to = &c->m->memories[buffer];
  uint8_t *from = c->privates[buffer].replica;
  for (uint64_t i = 0; from && i + 4 <= to->size; i += 4) {
    uint32_t a, b;
    memcpy(&a, to->bytes + i, 4);
    memcpy(&b, from + i, 4);
    a = (uint32_t)vyre__interp_atomic(c->s.privatised[buffer].op, 4, a, b, 0);
    memcpy(to->bytes + i, &a, 4);
    memset(from + i, 0, 4);
  }
}

static vyre_code run_group_list(machine *c, const vyre__sched_node *first,
                                bool is_top, flow *out);

static vyre_code run_group_loop(machine *c, const vyre__sched_node *node,
                                flow *out) {
  const vyre__region *region = &c->s.r.regions[node->region];
  for (;;) {
    VYRE_TRY(run_group_list(c, node->body, false, out));
    if (*out == FLOW_EXIT) return VYRE_OK;
    if (*out == FLOW_BREAK) break;
    if (region->clears_done) memset(c->done, 0, c->slots);
    VYRE_TRY(run_group_list(c, node->other, false, out));
    if (*out == FLOW_EXIT) return VYRE_OK;
    if (*out == FLOW_BREAK) break;
  }
  *out = FLOW_NEXT;
  return VYRE_OK;
}

static vyre_code run_group_if(machine *c, const vyre__sched_node *node,
                              flow *out) {
  lane l = group_lane(c);
  vyre__val v = inst_of(c, node->begin)->a;
  VYRE_TRY(fetch(c, &l, v));
  bool is = values_of(c, c->slots)[v - c->s.r.begin] != 0;
  return run_group_list(c, is ? node->body : node->other, false, out);
}

static vyre_code run_group_list(machine *c, const vyre__sched_node *first,
                                bool is_top, flow *out) {
  *out = FLOW_NEXT;
  for (const vyre__sched_node *node = first; node && *out == FLOW_NEXT;
       node = node->next) {
    if (is_top) c->region = node->region;
    switch (node->kind) {
      case VYRE__SCHED_UNIFORM:
        VYRE_TRY(run_uniform(c, node));
        break;
      case VYRE__SCHED_ROWS:
        VYRE_TRY(run_rows(c, node, 1));
        break;
      case VYRE__SCHED_VECTORS:
        VYRE_TRY(run_vectors(c, node));
        break;
      case VYRE__SCHED_GROUP_IF:
        VYRE_TRY(run_group_if(c, node, out));
        break;
      case VYRE__SCHED_GROUP_LOOP:
        VYRE_TRY(run_group_loop(c, node, out));
        break;
      case VYRE__SCHED_GROUP_JUMP:
        *out = inst_of(c, node->begin)->op == VYRE__LIR_BREAK ? FLOW_BREAK
               : inst_of(c, node->begin)->op == VYRE__LIR_CONTINUE
                   ? FLOW_CONTINUE
                   : FLOW_EXIT;
        break;
      case VYRE__SCHED_MERGE:
        merge(c, node->buffer);
        break;
      default: /* a barrier */
        break;
    }
  }
  return VYRE_OK;
}

/* Finds whether all conditions that the start of a workgroup evaluates hold. */
static vyre_code is_full_group(machine *c, bool *out) {
  *out = true;
  for (uint32_t i = 1; i < c->s.r.subregion_count; i++) {
    vyre__row_split *own = c->s.splits[i];
    for (uint32_t k = 0; own && k < own->count; k++) {
      const vyre__row_condition *condition = &own->conditions[k];
      if (!condition->by_group) continue;
      for (uint32_t x = 0; x < c->s.kernel->workgroup[0]; x++) {
        row r = {.group_x = c->m->group[0]};
        lane l = lane_at(c, &r, x, 0);
        bool is;
        VYRE_TRY(holds(c, &l, own, condition, &is));
        *out &= is;
      }
    }
  }
  return VYRE_OK;
}

static void begin_group(machine *c) {
  size_t vars = c->s.kernel->var_count + 1;
  vyre__interp_begin_group(c->m);
  memset(c->done, 0, c->slots + 2);
  for (uint32_t i = 0; i < c->s.kernel->buffer_count; i++) {
    if (c->privates[i].replica) {
      memset(c->privates[i].replica, 0, c->m->memories[i].size);
    }
  }
  for (size_t i = 0; i < (c->slots + 2) * vars; i++) {
    bool is_var = i % vars < c->s.kernel->var_count;
    unsigned type = is_var ? c->s.kernel->vars[i % vars].type : VYRE_TYPE_U32;
    c->vars[i] = vyre__interp_poison(c->m, type);
  }
}

static vyre_code run_group(machine *c, const vyre__sched_node *groups) {
  const vyre__sched_node *first = groups->body;
  flow end;
  begin_group(c);
  if (c->s.is_fused) { /* a row of all workgroups along x */
    VYRE_TRY(run_uniform(c, first));
    return run_rows(c, first->next, c->m->launch->grid[0]);
  }
  if (first && first->kind == VYRE__SCHED_FULL_GROUPS) {
    bool is_full;
    c->is_at_start = true;
    VYRE_TRY(is_full_group(c, &is_full));
    c->is_at_start = false;
    first = is_full ? first->body : first->other;
  }
  return run_group_list(c, first, true, &end);
}

/* --- a phase --------------------------------------------------------------*/

static bool allocate(machine *c) {
  const vyre__lir_kernel *k = c->s.kernel;
  c->slots = c->s.is_fused ? MAX_LANES : c->s.r.invocations;
  c->stride = c->s.r.end - c->s.r.begin + 1;
  size_t slots = (size_t)c->slots + 2; /* workgroup, absent lanes */
  c->values =
      vyre__arena_array(&c->arena, slots * c->stride, sizeof *c->values);
  c->vars =
      vyre__arena_array(&c->arena, slots * (k->var_count + 1), sizeof *c->vars);
  c->done = vyre__arena_array(&c->arena, slots, 1);
  c->privates = vyre__arena_array(&c->arena, (size_t)k->buffer_count + 1,
                                  sizeof *c->privates);
  if (!c->values || !c->vars || !c->done || !c->privates) return false;
  memset(c->values, 0xA5, slots * c->stride * sizeof *c->values);
  memset(c->privates, 0, (k->buffer_count + 1) * sizeof *c->privates);
  return true;
}

/* Gives private memory to the buffers for which the schedule has it. */
static bool open_private(machine *c) {
  const vyre__lir_kernel *k = c->s.kernel;
  for (uint32_t i = 0; c->s.privatised && i < k->buffer_count; i++) {
    const vyre__privatised *plan = &c->s.privatised[i];
    const interp_memory *of = &c->m->memories[i];
    unsigned width = k->buffers[i].width;
    uint64_t identity = vyre__atomic_identity(plan->op, width);
    private_memory *to = &c->privates[i];
    bool is_on = plan->is_on && of->length <= plan->elements;
    uint8_t *bytes = NULL;
    if (!is_on && !plan->replica) continue;
    bytes = vyre__arena_array(&c->arena, of->size + 8, 1);
    if (!bytes) return false;
    if (is_on) to->own = bytes;
    if (!is_on) to->replica = bytes;
    for (uint64_t at = 0; is_on && at + width <= of->size; at += width) {
      memcpy(bytes + at, &identity, width);
    }
  }
  return true;
}

static void close_private(machine *c) {
  for (uint32_t i = 0; i < c->s.kernel->buffer_count; i++) {
    const interp_memory *of = &c->m->memories[i];
    unsigned width = c->s.kernel->buffers[i].width;
    const uint8_t *from = c->privates[i].own;
    for (uint64_t at = 0; from && at + width <= of->size; at += width) {
      uint64_t a = 0, b = 0;
      memcpy(&a, of->bytes + at, width);
      memcpy(&b, from + at, width);
      a = vyre__interp_atomic(c->s.privatised[i].op, width, a, b, 0);
      memcpy(of->bytes + at, &a, width);
    }
  }
}

static vyre_code run_grid(machine *c) {
  const uint32_t *grid = c->m->launch->grid;
  const vyre__sched_node *groups = vyre__sched_groups(&c->s);
  uint32_t columns = c->s.is_fused && grid[0] ? 1 : grid[0];
  for (uint32_t z = 0; z < grid[2]; z++) {
    for (uint32_t y = 0; y < grid[1]; y++) {
      for (uint32_t x = 0; x < columns; x++) {
        c->m->group[0] = x, c->m->group[1] = y, c->m->group[2] = z;
        VYRE_TRY(run_group(c, groups));
      }
    }
  }
  return VYRE_OK;
}

static vyre_code run_machine(machine *c, uint32_t phase) {
  const vyre__schedule_runner *with = c->m->launch->runner;
  VYRE_TRY(vyre__schedule_make(c->m->k, phase, &with->options, with->last,
                               &c->arena, &c->s, c->m->st));
  VYRE_TRY(vyre__schedule_verify(&c->s));
  if (!allocate(c) || !open_private(c)) {
    return vyre__no_memory(c->m->st, "the schedule interpreter", "values",
                           c->m->k->count);
  }
  VYRE_TRY(run_grid(c));
  close_private(c);
  return VYRE_OK;
}

vyre_code vyre__schedule_run_phase(struct vyre__interp *m, uint32_t phase) {
  machine c = {.m = m};
  vyre_arena_init(&c.arena, m->allocator);
  vyre_code code = run_machine(&c, phase);
  vyre_arena_deinit(&c.arena);
  return code;
}
