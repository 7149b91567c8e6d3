/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds the elements that a kernel stores in every launch. A launch clears only
 * the other elements of an output first.
 *
 * A store counts if its index is a sum of ids, loop variables and an offset,
 * each times a stride of constants and uniforms: y * width + x. Its conditions
 * may only limit these variables, from above by lengths of buffers, uniforms and
 * constants, and from below by constants. Then the variables take all
 * combinations of values between their limits, like the digits of a number, and
 * cpu_find_coverage computes for each launch which elements these numbers are.
 *
 * Stores in both arms of an if count as one without the condition. Stores at
 * equal distances, such as i * 3, i * 3 + 1 and i * 3 + 2, add a digit. */
#include <string.h>

#include "backend/cpu/plan.h"
#include "ir/ir.h"

enum {
  DEPTH = 32,  /* nesting of blocks and of conditions */
  STEPS = 200, /* operands of an index or a condition that are followed */
  TERMS = 8,
  LOOPS = 3,   /* nested loops with variables in an index */
  STORES = 48, /* stores that are compared */
};

/* Variables of an index. A global id is a local id plus the size of that axis
 * times a workgroup id, usually of the same axis; a transposition uses
 * another. Global ids occur in conditions only. */
enum { NO_VARIABLE, LOCAL = 1, GROUP = 4, GLOBAL = 7, LOOP = 16 };

static uint32_t global_of(unsigned group, unsigned local) {
  return GLOBAL + group * 3 + local;
}

/* Part of an index: a constant times uniforms times a variable. */
typedef struct summand {
  uint32_t factor;
  uint32_t by;       /* bit i: times the uniform with buffer i */
  uint32_t variable; /* NO_VARIABLE, or one above plus its axis or depth */
} summand;

typedef struct sum {
  summand terms[TERMS];
  uint32_t count;
} sum;

/* Limits of a variable. */
typedef struct limit {
  uint32_t within;   /* bit i: below the length of buffer i, or below its value
                        if it is a uniform */
  uint32_t constant; /* below the smallest constant; UINT32_MAX: no limit */
  uint32_t less_within; /* bit i: like `within`, but below the number - less,
                           modulo 2^32 */
  uint32_t less;
  uint32_t low; /* the smallest value */
} limit;

static const limit no_limit = {.constant = UINT32_MAX};

typedef struct limits {
  limit of[LOOP]; /* by variable */
} limits;

/* A store that is reached by all invocations below its limits. */
typedef struct found {
  uint32_t buffer;
  uint32_t max_length; /* elements from there on are not stored */
  sum index;
  limits limits;
  cpu_digit loops[LOOPS];
  uint32_t loop_count;
  uint32_t spread; /* bit k: a loop distributes its values over local ids */
} found;

/* Remaining steps. Operands can be shared, so that a short kernel has very
 * many paths through them. */
typedef struct budget {
  uint32_t values, conditions;
} budget;

typedef struct search {
  const vyre__lir_kernel *k;
  budget *left;
  uint32_t end;
  limits exits;   /* limits after the exits so far, at the outermost level */
  bool is_over;   /* stores from here on cannot be judged */
  uint32_t depth; /* open blocks */
  uint32_t open[LOOPS]; /* LOOP instructions of open loops */
  uint32_t open_count;
  found stores[STORES];
  uint32_t count;
} search;

static const vyre__lir_inst *inst_of(const search *s, vyre__val v) {
  return &s->k->code[v];
}

static bool is_bound(const vyre__lir_buffer *b) {
  return b->source != VYRE_NO_INDEX && b->kind != VYRE_MEMORY_SHARED;
}

static void clear_limits(limits *l) {
  for (int i = 0; i < LOOP; i++) l->of[i] = no_limit;
}

static bool is_limited(const limits *l, uint32_t variable) {
  const limit *of = &l->of[variable];
  return (of->within | of->less_within | of->low) != 0 ||
         of->constant != UINT32_MAX;
}

/* Returns false if there are two different constants to subtract. */
static bool add_limit(limit *to, limit more) {
  if (to->less_within && more.less_within && to->less != more.less) {
    return false;
  }
  if (more.less_within) to->less = more.less;
  to->less_within |= more.less_within;
  to->within |= more.within;
  if (more.constant < to->constant) to->constant = more.constant;
  if (more.low > to->low) to->low = more.low;
  return true;
}

static bool add_limits(limits *to, const limits *more) {
  for (int i = 0; i < LOOP; i++) {
    if (!add_limit(&to->of[i], more->of[i])) return false;
  }
  return true;
}

/* --- sums ------------------------------------------------------------------*/

static bool add_term(sum *to, summand term) {
  for (uint32_t i = 0; i < to->count; i++) {
    summand *t = &to->terms[i];
    if (t->by != term.by || t->variable != term.variable) continue;
    t->factor += term.factor;
    if (t->factor == 0) *t = to->terms[--to->count];
    return true;
  }
  if (term.factor == 0) return true;
  if (to->count == TERMS) return false;
  to->terms[to->count++] = term;
  return true;
}

static bool add_product(sum *to, const sum *a, const sum *b) {
  for (uint32_t i = 0; i < a->count; i++) {
    for (uint32_t k = 0; k < b->count; k++) {
      summand x = a->terms[i], y = b->terms[k];
      if ((x.by & y.by) != 0 || (x.variable && y.variable)) return false;
      summand product = {x.factor * y.factor, x.by | y.by,
                         x.variable | y.variable};
      if (!add_term(to, product)) return false;
    }
  }
  return true;
}

static const sum one = {{{1, 0, NO_VARIABLE}}, 1};

static sum constant_sum(uint32_t factor) {
  return (sum){{{factor, 0, NO_VARIABLE}}, factor != 0};
}

/* Returns the buffer of a scalar uniform of 32 bits, or VYRE_NO_INDEX. */
static uint32_t uniform_of(const search *s, const vyre__lir_inst *load) {
  const vyre__lir_buffer *b = &s->k->buffers[load->aux];
  const vyre__lir_inst *index = inst_of(s, load->a);
  bool is_scalar = b->kind == VYRE_MEMORY_UNIFORM && is_bound(b) &&
                   b->width == 4 && load->aux < 32 && load->b == 0 &&
                   index->op == VYRE__LIR_CONST && vyre__lir_const(index) == 0;
  return is_scalar ? load->aux : VYRE_NO_INDEX;
}

/* Returns the variable of the innermost open loop that a GET reads. */
static uint32_t loop_variable(const search *s, vyre__val v) {
  for (uint32_t i = s->open_count; i > 0; i--) {
    const vyre__lir_inst *loop = inst_of(s, s->open[i - 1]);
    if (v > s->open[i - 1] &&
        s->k->loops[loop->aux].var == inst_of(s, v)->aux) {
      return LOOP + i - 1;
    }
  }
  return NO_VARIABLE;
}

/* Adds @p v times @p by to the sum, modulo 2^32. */
static bool add_value(const search *s, vyre__val v, const sum *by,
                      uint32_t depth, sum *to) {
  const vyre__lir_inst *i = inst_of(s, v);
  const vyre__lir_inst *b = inst_of(s, i->b);
  sum part = {.count = 0};
  summand leaf = {1, 0, NO_VARIABLE};
  if (depth > DEPTH || s->left->values == 0 || i->type != VYRE_TYPE_U32) {
    return false;
  }
  s->left->values--;
  switch (i->op) {
    case VYRE__LIR_CONST:
      leaf.factor = i->c;
      break;
    case VYRE__LIR_LOCAL_ID:
      leaf.variable = LOCAL + i->aux;
      break;
    case VYRE__LIR_GROUP_ID:
      leaf.variable = GROUP + i->aux;
      break;
    case VYRE__LIR_GET:
      leaf.variable = loop_variable(s, v);
      if (!leaf.variable) return false;
      break;
    case VYRE__LIR_LOAD:
      if (uniform_of(s, i) == VYRE_NO_INDEX) return false;
      leaf.by = 1u << i->aux;
      break;
    case VYRE__LIR_ADD:
      return add_value(s, i->a, by, depth + 1, to) &&
             add_value(s, i->b, by, depth + 1, to);
    case VYRE__LIR_SUB: {
      sum minus = {.count = 0}, negative = constant_sum(UINT32_MAX);
      return add_product(&minus, by, &negative) &&
             add_value(s, i->a, by, depth + 1, to) &&
             add_value(s, i->b, &minus, depth + 1, to);
    }
    case VYRE__LIR_MUL: {
      sum factor = {.count = 0};
      return add_value(s, i->a, &one, depth + 1, &part) &&
             add_product(&factor, &part, by) &&
             add_value(s, i->b, &factor, depth + 1, to);
    }
    case VYRE__LIR_SHL: {
      if (b->op != VYRE__LIR_CONST || b->c > 31) return false;
      sum power = constant_sum(1u << b->c);
      return add_product(&part, by, &power) &&
             add_value(s, i->a, &part, depth + 1, to);
    }
    default:
      return false;
  }
  part = (sum){{leaf}, leaf.factor != 0};
  return add_product(to, &part, by);
}

static bool sum_of(const search *s, vyre__val v, sum *out) {
  s->left->values = STEPS;
  *out = (sum){.count = 0};
  return add_value(s, v, &one, 0, out);
}

static const summand *term_of(const sum *in, uint32_t variable) {
  for (uint32_t i = 0; i < in->count; i++) {
    if (in->terms[i].variable == variable) return &in->terms[i];
  }
  return NULL;
}

/* Returns true if a local id and a workgroup id together are a global id,
 * times the factor of the local id. An axis of size 1 has no local id. */
static bool make_global(const search *s, unsigned axis, const summand *local,
                        const summand *group) {
  uint64_t size = s->k->workgroup[axis];
  if (!group || !local) return group && size == 1;
  return local->by == group->by && local->factor * size == group->factor;
}

static const summand *term_of_kind(const sum *in, uint32_t kind,
                                   unsigned *axis) {
  for (*axis = 0; *axis < 3; ++*axis) {
    const summand *term = term_of(in, kind + *axis);
    if (term) return term;
  }
  *axis = 0;
  return NULL;
}

/* Returns the variable that @p v is: a local, workgroup or global id. */
static uint32_t variable_of(const search *s, vyre__val v) {
  sum value;
  unsigned local_axis, group_axis;
  if (!sum_of(s, v, &value)) return NO_VARIABLE;
  const summand *local = term_of_kind(&value, LOCAL, &local_axis);
  const summand *group = term_of_kind(&value, GROUP, &group_axis);
  const summand *unit = local ? local : group;
  if (!unit || unit->factor != 1 || unit->by != 0 ||
      value.count != 1u + (local && group)) {
    return NO_VARIABLE;
  }
  if (!local) local_axis = group_axis;
  if (make_global(s, local_axis, local, group)) {
    return global_of(group_axis, local_axis);
  }
  return value.count == 1 ? unit->variable : NO_VARIABLE;
}

/* --- conditions ------------------------------------------------------------*/

/* Subtracts a constant, modulo 2^32, from the one number of a limit. */
static bool subtract(limit *bound, uint32_t less) {
  if (bound->within == 0 || (bound->within & (bound->within - 1)) != 0 ||
      bound->less_within != 0 || bound->constant != UINT32_MAX) {
    return false;
  }
  if (less == 0) return true;
  bound->less_within = bound->within;
  bound->less = less;
  bound->within = 0;
  return true;
}

/* Adds @p v, as an upper limit, if it is the same for all invocations. */
static bool add_bound(const search *s, vyre__val v, limit *to) {
  const vyre__lir_inst *i = inst_of(s, v);
  if (i->type != VYRE_TYPE_U32 || s->left->conditions == 0) return false;
  s->left->conditions--;
  limit bound = no_limit;
  switch (i->op) {
    case VYRE__LIR_CONST:
      bound.constant = i->c;
      break;
    case VYRE__LIR_ADD:
    case VYRE__LIR_SUB: {
      const vyre__lir_inst *by = inst_of(s, i->b);
      if (by->op != VYRE__LIR_CONST || !add_bound(s, i->a, &bound) ||
          !subtract(&bound, i->op == VYRE__LIR_SUB ? by->c : 0 - by->c)) {
        return false;
      }
      break;
    }
    case VYRE__LIR_MIN_U:
      return add_bound(s, i->a, to) && add_bound(s, i->b, to);
    case VYRE__LIR_LEN:
      if (i->aux >= 32 || !is_bound(&s->k->buffers[i->aux]) ||
          s->k->buffers[i->aux].kind == VYRE_MEMORY_UNIFORM) {
        return false;
      }
      bound.within = 1u << i->aux;
      break;
    case VYRE__LIR_LOAD:
      if (uniform_of(s, i) == VYRE_NO_INDEX) return false;
      bound.within = 1u << i->aux;
      break;
    default:
      return false;
  }
  return add_limit(to, bound);
}

/* Adds the limits of v < bound, if one of them is a variable and the other one
 * is the same for all invocations. */
static bool is_below(const search *s, vyre__val v, vyre__val bound,
                     limits *to) {
  const vyre__lir_inst *low = inst_of(s, v);
  if (low->op == VYRE__LIR_CONST && low->type == VYRE_TYPE_U32) {
    uint32_t variable = variable_of(s, bound);
    return variable != NO_VARIABLE && low->c != UINT32_MAX &&
           add_limit(&to->of[variable],
                     (limit){.constant = UINT32_MAX, .low = low->c + 1});
  }
  uint32_t variable = variable_of(s, v);
  return variable != NO_VARIABLE && add_bound(s, bound, &to->of[variable]);
}

/* Adds the limits of v <= bound, if v is a constant and the bound a variable, or
 * v a variable and the bound the same for all invocations: v < bound + 1. */
static bool is_at_most(const search *s, vyre__val v, vyre__val bound,
                       limits *to) {
  const vyre__lir_inst *low = inst_of(s, v), *high = inst_of(s, bound);
  limit l = no_limit;
  uint32_t variable = NO_VARIABLE;
  if (low->op == VYRE__LIR_CONST && low->type == VYRE_TYPE_U32) {
    variable = variable_of(s, bound);
    l.low = low->c;
  } else if (high->op == VYRE__LIR_CONST && high->type == VYRE_TYPE_U32 &&
             high->c != UINT32_MAX) {
    variable = variable_of(s, v);
    l.constant = high->c + 1;
  } else if (high->op != VYRE__LIR_CONST) {
    variable = variable_of(s, v);
    if (!add_bound(s, bound, &l) || !subtract(&l, UINT32_MAX)) return false;
  }
  return variable != NO_VARIABLE && add_limit(&to->of[variable], l);
}

static bool is_zero(const search *s, vyre__val v) {
  const vyre__lir_inst *i = inst_of(s, v);
  return i->op == VYRE__LIR_CONST && vyre__lir_const(i) == 0;
}

/* Adds limits below which @p condition is true (with @p not: false). Returns
 * false if it finds none. */
static bool add_condition(const search *s, vyre__val condition, bool not,
                          uint32_t depth, limits *to) {
  const vyre__lir_inst *i = inst_of(s, condition);
  if (depth == 0) s->left->conditions = STEPS;
  if (depth > DEPTH || s->left->conditions == 0) return false;
  s->left->conditions--;
  switch (i->op) {
    case VYRE__LIR_NOT:
      return add_condition(s, i->a, !not, depth + 1, to);
    case VYRE__LIR_AND:
    case VYRE__LIR_OR:
      return not == (i->op == VYRE__LIR_OR) &&
             add_condition(s, i->a, not, depth + 1, to) &&
             add_condition(s, i->b, not, depth + 1, to);
    case VYRE__LIR_LT_U: /* not (a < b): b <= a */
      return not ? is_at_most(s, i->b, i->a, to) : is_below(s, i->a, i->b, to);
    case VYRE__LIR_LE_U: /* not (a <= b): b < a */
      return not ? is_below(s, i->b, i->a, to) : is_at_most(s, i->a, i->b, to);
    case VYRE__LIR_EQ:
    case VYRE__LIR_NE: { /* only the first value, or all others */
      uint32_t variable = variable_of(s, i->a);
      bool is_first = not == (i->op == VYRE__LIR_NE);
      if (!is_zero(s, i->b) || variable == NO_VARIABLE) return false;
      return add_limit(&to->of[variable],
                       is_first ? (limit){.constant = 1}
                                : (limit){.constant = UINT32_MAX, .low = 1});
    }
    case VYRE__LIR_CONST:
      return not == (vyre__lir_const(i) == 0);
    default:
      return false;
  }
}

/* Returns true if @p condition is the bounds check of @p store. It holds for
 * all elements below *max_length. */
static bool is_bounds_check(const search *s, const vyre__lir_inst *store,
                            vyre__val condition, uint32_t *max_length) {
  const vyre__lir_inst *i = inst_of(s, condition);
  const vyre__lir_inst *b = inst_of(s, i->b);
  if (i->op == VYRE__LIR_AND) {
    return is_bounds_check(s, store, i->a, max_length) &&
           is_bounds_check(s, store, i->b, max_length);
  }
  if (i->op == VYRE__LIR_LT_U && i->a == store->a) {
    return b->op == VYRE__LIR_LEN && b->aux == store->aux;
  }
  const vyre__lir_inst *a = inst_of(s, i->a);
  if (i->op != VYRE__LIR_LT_S || i->b != store->a || a->op != VYRE__LIR_CONST ||
      a->c != UINT32_MAX) {
    return false;
  }
  *max_length = INT32_MAX; /* indices from there on are negative */
  return true;
}

/* --- statements ------------------------------------------------------------*/

static void add_store(search *s, const vyre__lir_inst *i) {
  const vyre__lir_buffer *b = &s->k->buffers[i->aux];
  if (s->is_over || s->count == STORES || !is_bound(b) || b->is_atomic ||
      b->unit != b->width) {
    return;
  }
  found *to = &s->stores[s->count];
  *to = (found){.buffer = i->aux, .max_length = UINT32_MAX};
  to->limits = s->exits;
  if (!sum_of(s, i->a, &to->index)) return;
  if (i->c != 0 && !is_bounds_check(s, i, i->c, &to->max_length) &&
      !add_condition(s, i->c, false, 0, &to->limits)) {
    return;
  }
  s->count++;
}

/* Handles an exit. An exit in an if at the outermost level adds limits to all
 * that follows; after any other one, stores cannot be judged. */
static void add_exit(search *s, uint32_t at) {
  /* The dispatch fails then, and the contents of its outputs are undefined. */
  if (s->k->code[at - 1].op == VYRE__LIR_OUT_OF_FUEL) return;
  const vyre__lir_inst *before = &s->k->code[at - 1];
  if (s->depth != 1 || before->op != VYRE__LIR_IF ||
      !add_condition(s, before->a, true, 0, &s->exits)) {
    s->is_over = true;
  }
}

static bool are_same_sums(const sum *a, const sum *b) {
  if (a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; i++) {
    bool is_in = false;
    for (uint32_t k = 0; k < b->count; k++) {
      is_in |= memcmp(&a->terms[i], &b->terms[k], sizeof a->terms[i]) == 0;
    }
    if (!is_in) return false;
  }
  return true;
}

/* Returns true if two stores differ in their limits only. */
static bool are_alike(const found *a, const found *b) {
  return a->buffer == b->buffer && a->loop_count == b->loop_count &&
         a->spread == b->spread &&
         memcmp(a->loops, b->loops, sizeof a->loops) == 0 &&
         are_same_sums(&a->index, &b->index);
}

static bool combine(found *to, const found *more) {
  if (more->max_length < to->max_length) to->max_length = more->max_length;
  return add_limits(&to->limits, &more->limits);
}

/* Ends an if. The stores of its arms are [begin, middle) and from there on. */
static void end_if(search *s, vyre__val condition, uint32_t begin,
                   uint32_t middle) {
  uint32_t kept = begin;
  for (uint32_t i = begin; i < s->count; i++) {
    found one_arm = s->stores[i];
    bool is_first = i < middle, is_in_both = false;
    for (uint32_t k = middle; is_first && k < s->count; k++) {
      found both = one_arm;
      if (!are_alike(&one_arm, &s->stores[k]) ||
          !combine(&both, &s->stores[k])) {
        continue;
      }
      one_arm = both;
      is_in_both = true;
      break;
    }
    if (is_in_both ||
        add_condition(s, condition, !is_first, 0, &one_arm.limits)) {
      s->stores[kept++] = one_arm;
    }
  }
  s->count = kept;
}

static void walk_block(search *s, uint32_t at, uint32_t end);

/* Returns the position of the ELSE of an if, or its end. */
static uint32_t else_of(const search *s, uint32_t at, uint32_t end) {
  uint32_t nested = 0;
  for (uint32_t i = at + 1; i < end; i++) {
    unsigned op = s->k->code[i].op;
    if (op == VYRE__LIR_ELSE && nested == 0) return i;
    if (op == VYRE__LIR_IF || op == VYRE__LIR_LOOP) nested++;
    if (op == VYRE__LIR_END) nested--;
  }
  return end;
}

static void walk_if(search *s, uint32_t at, uint32_t end) {
  uint32_t begin = s->count, second = else_of(s, at, end);
  s->depth++;
  walk_block(s, at + 1, second);
  uint32_t middle = s->count;
  if (second < end) walk_block(s, second + 1, end);
  s->depth--;
  end_if(s, s->k->code[at].a, begin, middle);
}

/* Returns true if nothing but its condition ends the loop at @p at early, and
 * no iteration is cut short. */
static bool runs_completely(const search *s, uint32_t at, uint32_t end) {
  for (uint32_t i = at + 1; i < end; i++) {
    const vyre__lir_inst *inst = &s->k->code[i], *before = inst - 1;
    bool is_test = inst->op == VYRE__LIR_BREAK && before->op == VYRE__LIR_IF &&
                   (before->hints & VYRE__HINT_TEST);
    bool is_failure = before->op == VYRE__LIR_OUT_OF_FUEL;
    if ((vyre__lir_ops[inst->op].flags & VYRE__LIRF_JUMPS) && !is_test &&
        !is_failure) {
      return false;
    }
  }
  return true;
}

/* Computes the values of a loop variable: first + step * k, for k below the
 * returned limit. Either both bounds are constants; or it counts from 0 by 1
 * to a limit; or invocations of an axis, *spread, share the values. */
static bool values_of(const search *s, const vyre__lir_loop *loop, sum *first,
                      uint32_t *step, limit *count, uint32_t *spread) {
  const vyre__lir_inst *bound = inst_of(s, loop->bound);
  bool is_inclusive = loop->kind == VYRE__LOOP_LE;
  *count = no_limit;
  s->left->conditions = STEPS;
  if (!loop->is_counted || loop->high_var || loop->step > INT32_MAX ||
      (loop->kind != VYRE__LOOP_LT && !is_inclusive) ||
      !sum_of(s, loop->first, first)) {
    return false;
  }
  *step = (uint32_t)loop->step;
  if (*step == 0) return false;
  bool is_constant =
      first->count == 0 || (first->count == 1 && first->terms[0].by == 0 &&
                            first->terms[0].variable == NO_VARIABLE);
  if (is_constant && bound->op == VYRE__LIR_CONST) {
    uint64_t from = first->count ? first->terms[0].factor : 0;
    uint64_t to = (uint64_t)bound->c + is_inclusive;
    count->constant = (uint32_t)((to - from + *step - 1) / *step);
    return from < to && to <= INT32_MAX;
  }
  if (loop->is_signed || is_inclusive) return false;
  uint32_t variable = is_constant ? NO_VARIABLE : variable_of(s, loop->first);
  if (variable >= LOCAL && variable < LOCAL + 3 &&
      s->k->workgroup[variable - LOCAL] == *step &&
      !(*spread >> (variable - LOCAL) & 1)) {
    *spread |= 1u << (variable - LOCAL);
    *first = (sum){.count = 0};
    *step = 1;
  }
  return first->count == 0 && *step == 1 && add_bound(s, loop->bound, count);
}

/* Turns the variable of the innermost loop in the index of a store into a
 * digit. */
static bool end_loop_of(const search *s, const vyre__lir_loop *loop, found *f) {
  uint32_t variable = LOOP + s->open_count - 1, step = 0;
  sum first, index = {.count = 0};
  limit count;
  const summand *term = term_of(&f->index, variable);
  if (!term || f->loop_count == LOOPS ||
      !values_of(s, loop, &first, &step, &count, &f->spread)) {
    return false;
  }
  f->loops[f->loop_count++] = (cpu_digit){.factor = term->factor * step,
                                          .by = term->by,
                                          .within = count.within,
                                          .limit = count.constant,
                                          .less_within = count.less_within,
                                          .less = count.less};
  sum by = {{{term->factor, term->by, NO_VARIABLE}}, 1};
  for (uint32_t i = 0; i < f->index.count; i++) {
    const summand *t = &f->index.terms[i];
    if (t->variable == variable && t != term) return false;
    if (t != term && !add_term(&index, *t)) return false;
  }
  if (!add_product(&index, &first, &by)) return false;
  f->index = index;
  return true;
}

static bool has_exit(const search *s, uint32_t at, uint32_t end) {
  for (uint32_t i = at + 1; i < end; i++) {
    if (s->k->code[i].op == VYRE__LIR_EXIT &&
        s->k->code[i - 1].op != VYRE__LIR_OUT_OF_FUEL) {
      return true;
    }
  }
  return false;
}

/* Returns the position of the END of the block that @p at opens. */
static uint32_t end_of(const search *s, uint32_t at) {
  uint32_t nested = 0;
  for (; at < s->end; at++) {
    unsigned op = s->k->code[at].op;
    if (op == VYRE__LIR_IF || op == VYRE__LIR_LOOP) nested++;
    if (op == VYRE__LIR_END && --nested == 0) break;
  }
  return at;
}

static void walk_loop(search *s, uint32_t at, uint32_t end) {
  const vyre__lir_loop *loop = &s->k->loops[s->k->code[at].aux];
  uint32_t begin = s->count, kept = begin;
  if (s->open_count == LOOPS || !runs_completely(s, at, end)) {
    s->is_over |= has_exit(s, at, end);
    return;
  }
  s->open[s->open_count++] = at;
  s->depth++;
  walk_block(s, at + 1, end);
  s->depth--;
  for (uint32_t i = begin; i < s->count; i++) {
    found f = s->stores[i];
    if (end_loop_of(s, loop, &f)) s->stores[kept++] = f;
  }
  s->count = kept;
  s->open_count--;
}

/* Returns true if the if in [at, end], which has no else, ends with an exit that
 * is not all of it. */
static bool exits_at_end(const search *s, uint32_t at, uint32_t end) {
  return s->depth == 0 && end > at + 2 && else_of(s, at, end) == end &&
         s->k->code[end - 1].op == VYRE__LIR_EXIT &&
         s->k->code[end - 2].op != VYRE__LIR_OUT_OF_FUEL;
}

/* Walks an if that ends with an exit. All that follows in the phase, up to
 * @p last, is its else. */
static void walk_early_exit(search *s, uint32_t at, uint32_t end,
                            uint32_t last) {
  uint32_t begin = s->count;
  s->depth++;
  walk_block(s, at + 1, end - 1);
  s->depth--;
  uint32_t middle = s->count;
  walk_block(s, end + 1, last);
  end_if(s, s->k->code[at].a, begin, middle);
  s->is_over = true; /* in other phases */
}

/* Walks the instructions [at, end) of a block. The second part of a loop
 * contains no stores of the program. */
static void walk_block(search *s, uint32_t at, uint32_t end) {
  for (; at < end; at++) {
    const vyre__lir_inst *i = &s->k->code[at];
    uint32_t last = at;
    switch (i->op) {
      case VYRE__LIR_IF:
      case VYRE__LIR_LOOP:
        last = end_of(s, at);
        if (s->depth == DEPTH) {
          s->is_over |= has_exit(s, at, last);
        } else if (i->op == VYRE__LIR_IF && exits_at_end(s, at, last)) {
          walk_early_exit(s, at, last, end);
          return;
        } else if (i->op == VYRE__LIR_IF) {
          walk_if(s, at, last);
        } else {
          walk_loop(s, at, last);
        }
        at = last;
        break;
      case VYRE__LIR_EXIT:
        add_exit(s, at);
        break;
      case VYRE__LIR_STORE:
        add_store(s, i);
        break;
      default:
        break;
    }
  }
}

/* --- digits ----------------------------------------------------------------*/

static bool add_digit(cpu_full_write *to, cpu_digit digit) {
  if (to->digit_count == CPU_DIGITS) return false;
  to->digits[to->digit_count++] = digit;
  return true;
}

/* Adds the digit of a variable with the factor of @p term. A variable that is
 * not in the index has the factor 0: it must have a value, no matter which. */
static bool add_variable(cpu_full_write *to, const found *f, uint32_t variable,
                         const summand *term, cpu_digit digit) {
  limit l = f->limits.of[variable];
  if (!term && !is_limited(&f->limits, variable)) return true;
  digit.factor = term ? term->factor : 0;
  digit.by = term ? term->by : 0;
  digit.within = l.within;
  digit.less_within = l.less_within;
  digit.less = l.less;
  digit.low = l.low;
  digit.limit = l.constant < digit.limit ? l.constant : digit.limit;
  return add_digit(to, digit);
}

/* Axes whose ids have got a digit, one bit each. */
typedef struct axes {
  uint32_t local, group;
} axes;

/* Adds the digit of a global id that is limited. The index must contain this
 * id, or neither of its parts. */
static bool add_global(const search *s, const found *f, unsigned group_axis,
                       unsigned local_axis, axes *done, cpu_full_write *to) {
  uint32_t variable = global_of(group_axis, local_axis);
  const summand *local = term_of(&f->index, LOCAL + local_axis);
  const summand *group = term_of(&f->index, GROUP + group_axis);
  if (!is_limited(&f->limits, variable)) return true;
  if (((done->local | f->spread) >> local_axis & 1) ||
      (done->group >> group_axis & 1) ||
      is_limited(&f->limits, LOCAL + local_axis) ||
      is_limited(&f->limits, GROUP + group_axis) ||
      ((local || group) && !make_global(s, local_axis, local, group))) {
    return false;
  }
  done->local |= 1u << local_axis;
  done->group |= 1u << group_axis;
  return add_variable(to, f, variable, local ? local : group,
                      (cpu_digit){.groups = 1 + group_axis,
                                  .size = s->k->workgroup[local_axis],
                                  .limit = UINT32_MAX});
}

/* Adds the digits of all ids. */
static bool add_ids(const search *s, const found *f, cpu_full_write *to) {
  axes done = {0, 0};
  for (unsigned i = 0; i < 9; i++) {
    if (!add_global(s, f, i / 3, i % 3, &done, to)) return false;
  }
  for (unsigned axis = 0; axis < 3; axis++) {
    const summand *local = term_of(&f->index, LOCAL + axis);
    const summand *group = term_of(&f->index, GROUP + axis);
    uint32_t size = s->k->workgroup[axis];
    bool is_spread = f->spread >> axis & 1;
    if (is_spread && (local || is_limited(&f->limits, LOCAL + axis))) {
      return false;
    }
    if (!(done.local >> axis & 1) &&
        !add_variable(to, f, LOCAL + axis, local, (cpu_digit){.limit = size})) {
      return false;
    }
    if (!(done.group >> axis & 1) &&
        !add_variable(
            to, f, GROUP + axis, group,
            (cpu_digit){.groups = 1 + axis, .size = 1, .limit = UINT32_MAX})) {
      return false;
    }
  }
  return true;
}

/* Returns true if @p f is @p first plus a constant, which may be times
 * uniforms. */
static bool is_apart(const found *f, const found *first, summand *by) {
  found rest = *f;
  const summand *constant = term_of(&f->index, NO_VARIABLE);
  if (!constant) return false;
  *by = *constant;
  rest.index.terms[constant - f->index.terms] =
      rest.index.terms[--rest.index.count];
  return are_alike(&rest, first);
}

/* Combines @p f with the stores at equal distances after it. */
static bool add_neighbours(const search *s, found *f, cpu_full_write *to) {
  summand step = {0}, by;
  const found first = *f;
  for (uint32_t i = 0; i < s->count; i++) {
    if (!is_apart(&s->stores[i], &first, &by)) continue;
    if (step.factor == 0) step = by;
    if (by.by == step.by && by.factor < step.factor) step = by;
  }
  uint32_t stores = 1;
  for (uint32_t i = 0; step.factor != 0 && i < s->count; i++) {
    if (!is_apart(&s->stores[i], &first, &by) || by.by != step.by ||
        by.factor != (uint64_t)step.factor * stores) {
      continue;
    }
    if (!combine(f, &s->stores[i])) return false;
    stores++;
    i = UINT32_MAX; /* starts again: the next one may come earlier */
  }
  if (stores == 1) return true;
  return add_digit(
      to, (cpu_digit){.factor = step.factor, .by = step.by, .limit = stores});
}

/* An offset is a digit that has the value 1 only. */
static bool is_offset(const cpu_digit *d) {
  return d->low == 1 && d->limit == 2;
}

/* Adds the part of the index that has no variables. */
static bool add_offsets(found *f, cpu_full_write *to) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < f->index.count; i++) {
    summand term = f->index.terms[i];
    if (term.variable != NO_VARIABLE) {
      f->index.terms[kept++] = term;
    } else if (!add_digit(to, (cpu_digit){.factor = term.factor,
                                          .by = term.by,
                                          .low = 1,
                                          .limit = 2})) {
      return false;
    }
  }
  f->index.count = kept;
  return true;
}

/* Returns true if a digit can have a stride of 1. */
static bool has_unit(const cpu_full_write *w) {
  for (uint32_t i = 0; i < w->digit_count; i++) {
    if (w->digits[i].factor == 1 && !is_offset(&w->digits[i])) return true;
  }
  return false;
}

/* Returns true if no digit keeps the launch from storing the first element. */
static bool begins_at_zero(const cpu_full_write *w) {
  for (uint32_t i = 0; i < w->digit_count; i++) {
    if (w->digits[i].low != 0 || w->digits[i].less_within != 0) return false;
  }
  return true;
}

static bool describe(const search *s, const found *store, cpu_full_write *to) {
  found f = *store;
  *to = (cpu_full_write){0};
  if (term_of(&f.index, NO_VARIABLE) ? !add_offsets(&f, to)
                                     : !add_neighbours(s, &f, to)) {
    return false;
  }
  uint32_t used = 0;
  for (unsigned axis = 0; axis < 3; axis++) {
    used += (term_of(&f.index, LOCAL + axis) != NULL);
    used += (term_of(&f.index, GROUP + axis) != NULL);
  }
  if (!add_ids(s, &f, to)) return false;
  for (uint32_t i = 0; i < f.loop_count; i++) {
    if (!add_digit(to, f.loops[i])) return false;
  }
  to->max_length = f.max_length;
  to->is_partial = 1;
  to->is_full = begins_at_zero(to);
  /* Each variable occurs once, and neighbours can be stored at all. */
  return used == f.index.count && (to->digit_count == 0 || has_unit(to));
}

/* Returns true if a condition lets only one value of a variable pass. */
static bool has_single_value(const cpu_full_write *w) {
  for (uint32_t i = 0; i < w->digit_count; i++) {
    if (w->digits[i].limit == 1) return true;
  }
  return false;
}

/* Returns true if @p a is more likely to store most of a buffer than @p b. */
static bool is_better(const cpu_full_write *a, const cpu_full_write *b) {
  if (!b->is_partial) return true;
  if (a->is_full != b->is_full) return a->is_full;
  if (!a->is_full && has_single_value(a) != has_single_value(b)) {
    return has_single_value(b);
  }
  return a->digit_count > b->digit_count;
}

void cpu_find_full_writes(const vyre__lir_kernel *kernel,
                          cpu_full_write *full_writes) {
  budget left = {0, 0};
  search s = {.k = kernel, .left = &left};
  if (kernel->phase_count != 1 || kernel->step_count != 1) return;
  s.end = kernel->phases[0].end;
  clear_limits(&s.exits);
  walk_block(&s, kernel->phases[0].begin, s.end);
  for (uint32_t i = 0; i < s.count; i++) {
    cpu_full_write write, *to = &full_writes[s.stores[i].buffer];
    if (!describe(&s, &s.stores[i], &write)) continue;
    if (is_better(&write, to)) *to = write;
  }
}

/* A buffer that is read must start as zero: an invocation may read an element
 * before another one stores it. */
void cpu_unmark_read_buffers(const vyre__lir_kernel *kernel,
                             cpu_full_write *full_writes) {
  for (uint32_t at = 1; at < kernel->count; at++) {
    const vyre__lir_inst *i = &kernel->code[at];
    if (vyre__lir_ops[i->op].flags & (VYRE__LIRF_READS | VYRE__LIRF_ATOMICS)) {
      full_writes[i->aux].is_full = 0;
      full_writes[i->aux].is_partial = 0;
    }
  }
}
