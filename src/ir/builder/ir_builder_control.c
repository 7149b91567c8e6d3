/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* IR builder: do loops, geometric for loops and switches.
 *
 * They become while loops and ifs while they are built, so that analyses and
 * backends need not know them. */
#include "ir/builder/ir_builder.h"
#include "ir/builder/ir_builder_internal.h"

static vyre__id local(vyre__ir_builder *m, uint32_t index) {
  return vyre__ir_build_local(m, index);
}

static vyre__id true_or_false(vyre__ir_builder *m, bool value) {
  return vyre__ir_build_literal(m, VYRE_TYPE_BOOL, value);
}

/* Declares a local with a name for messages. */
static vyre__id declare(vyre__ir_builder *m, const char *name, bool is_mutable,
                        vyre__id value, uint32_t *index) {
  size_t length = 0;
  while (name[length]) length++;
  return vyre__ir_build_let(m, name, length, VYRE_TYPE_VOID, is_mutable, value,
                            index);
}

/* --- do --------------------------------------------------------------------*/

/* Returns true if a statement contains a `continue` of the loop around it. */
static bool has_continue(const vyre__ir_builder *m, vyre__id id) {
  if (!id) return false;
  const vyre__node *node = &m->nodes[id];
  if (node->op == VYRE__OP_CONTINUE) return true;
  if (node->op == VYRE__OP_IF) {
    return has_continue(m, node->b) || has_continue(m, node->c);
  }
  for (uint32_t i = 0; node->op == VYRE__OP_BLOCK && i < node->b; i++) {
    if (has_continue(m, m->lists[node->a + i])) return true;
  }
  return false;
}

void vyre__do_begin(vyre__ir_builder *m, vyre__do *loop) {
  loop->mark = vyre__block_begin(m);
  loop->declaration =
      declare(m, "first", true, true_or_false(m, true), &loop->first);
  m->loop_depth++;
}

/* while (true) { body; if (!condition) break; } */
static vyre__id test_at_end(vyre__ir_builder *m, vyre__id body,
                            vyre__id condition) {
  vyre__id forever = true_or_false(m, true);
  vyre__while_begin(m);
  vyre__mark mark = vyre__block_begin(m);
  vyre__statement(m, body);
  vyre__id leave = vyre__ir_build_unary(m, VYRE__OP_NOT, condition);
  vyre__statement(
      m,
      vyre__ir_build_if(m, leave, vyre__ir_build_simple(m, VYRE__OP_BREAK), 0));
  return vyre__while_end(m, forever, vyre__block_end(m, mark));
}

/* while (first || condition) { first = false; body }, where a `continue` gets
 * to the condition. */
static vyre__id test_at_start(vyre__ir_builder *m, const vyre__do *loop,
                              vyre__id body, vyre__id condition) {
  condition =
      vyre__ir_build_binary(m, VYRE__OP_LOR, local(m, loop->first), condition);
  vyre__while_begin(m);
  vyre__mark mark = vyre__block_begin(m);
  vyre__statement(
      m, vyre__ir_build_assign(m, loop->first, true_or_false(m, false)));
  vyre__statement(m, body);
  return vyre__while_end(m, condition, vyre__block_end(m, mark));
}

vyre__id vyre__do_end(vyre__ir_builder *m, const vyre__do *loop, vyre__id body,
                      vyre__id condition) {
  vyre__id made = 0;
  m->loop_depth--;
  condition =
      vyre__expect(m, condition, VYRE_TYPE_BOOL, "V067", "the condition of do");
  if (condition && body) {
    bool continues = has_continue(m, body);
    made = continues ? test_at_start(m, loop, body, condition)
                     : test_at_end(m, body, condition);
    if (continues) vyre__statement(m, loop->declaration);
  }
  vyre__statement(m, made);
  vyre__id block = vyre__block_end(m, loop->mark);
  return made ? block : 0;
}

/* --- geometric for ---------------------------------------------------------*/

static bool is_signed_type(vyre_type type) {
  return type == VYRE_TYPE_I32 || type == VYRE_TYPE_I64;
}

static uint64_t largest(vyre_type type) {
  unsigned bits = vyre__type_bits(type) - is_signed_type(type);
  return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

/* Returns true if the bits of a value of @p type are a number above 0. */
static bool is_above_zero(vyre_type type, uint64_t bits) {
  return bits != 0 && bits <= largest(type);
}

static vyre__id number(vyre__ir_builder *m, const vyre__geometric *g,
                       uint64_t value) {
  return vyre__ir_build_literal(m, g->type, value);
}

static vyre__id bound_of(vyre__ir_builder *m, const vyre__geometric *g) {
  return g->is_bound_known ? number(m, g, g->bound) : local(m, g->bound_local);
}

static vyre__id compare(vyre__ir_builder *m, vyre__op op, vyre__id a,
                        vyre__id b) {
  return vyre__ir_build_binary(m, op, a, b);
}

/* Applies the step of the loop, or its inverse, to a value. */
static vyre__id stepped(vyre__ir_builder *m, const vyre__geometric *g,
                        vyre__op op, vyre__id value) {
  bool shifts = op == VYRE__OP_SHL || op == VYRE__OP_SHR;
  vyre__id by = shifts ? vyre__ir_build_literal(m, VYRE_TYPE_U32, g->step)
                       : number(m, g, g->step);
  return vyre__ir_build_binary(m, op, value, by);
}

/* Reads and checks the step. Returns false after a report. */
static bool read_step(vyre__ir_builder *m, vyre__geometric *g, vyre__id step) {
  bool shifts = g->op == VYRE__OP_SHL || g->op == VYRE__OP_SHR;
  vyre_type type = shifts ? VYRE_TYPE_U32 : g->type;
  step = vyre__expect(m, step, type, "V081", "the step of the loop");
  if (!step || !vyre__const_eval(m, step, &g->step)) return false;
  if (!shifts && (g->step < 2 || !is_above_zero(g->type, g->step))) {
    vyre__diagnose_at(m, step, "V082", "use a factor of 2 or more",
                      "a for loop that multiplies or divides needs a factor "
                      "of at least 2");
    return false;
  }
  unsigned bits = vyre__type_bits(g->type);
  if (shifts && (g->step < 1 || g->step >= bits)) {
    vyre__diagnose_at(m, step, "V082", "use a number from 1 to the width - 1",
                      "a for loop cannot shift %s by %llu",
                      vyre__type_name(g->type), (unsigned long long)g->step);
    return false;
  }
  return true;
}

/* Checks the first value. A known one is at least 1 if the loop multiplies: 0
 * would never change. */
static bool check_first(vyre__ir_builder *m, vyre__geometric *g,
                        vyre__id first) {
  if (m->nodes[first].op != VYRE__OP_LITERAL) return true;
  bool positive = is_above_zero(g->type, vyre__literal(&m->nodes[first]));
  if (g->is_growing && !positive) {
    vyre__diagnose_at(m, first, "V082", "begin with 1 or more",
                      "a for loop that multiplies cannot begin with a number "
                      "below 1");
    return false;
  }
  if (g->is_growing) g->is_positive = true;
  return true;
}

/* Replaces <= and >= by < and > if the bound is known. */
static void make_strict(vyre__geometric *g) {
  if (!g->is_bound_known) return;
  if (g->kind == VYRE__LOOP_LE && g->bound != largest(g->type)) {
    g->kind = VYRE__LOOP_LT;
    g->bound++;
    if (vyre__type_bits(g->type) == 32) g->bound &= UINT32_MAX;
  } else if (g->kind == VYRE__LOOP_GE && is_above_zero(g->type, g->bound)) {
    g->kind = VYRE__LOOP_GT;
    g->bound--;
  }
}

/* Returns true if a comparison with the bound alone ends the loop. Otherwise a
 * local says when no next value exists. */
static bool ends_by_bound(vyre__geometric *g) {
  if (g->is_growing) return g->kind == VYRE__LOOP_LT;
  bool is_natural = !is_signed_type(g->type) ||
                    (g->is_bound_known && g->bound <= largest(g->type));
  if (g->kind == VYRE__LOOP_GT && is_natural) g->is_positive = true;
  return g->kind == VYRE__LOOP_GT && is_natural;
}

/* Returns the condition "the next value of @p v, times the factor, fits and is
 * at most the last value": v >= 1 && v <= limit. */
static vyre__id may_multiply(vyre__ir_builder *m, const vyre__geometric *g,
                             uint32_t v, uint32_t limit) {
  vyre__id fits = compare(m, VYRE__OP_LE, local(m, v), local(m, limit));
  if (g->is_positive) return fits;
  vyre__id positive = compare(m, VYRE__OP_GE, local(m, v), number(m, g, 1));
  return vyre__ir_build_binary(m, VYRE__OP_AND, positive, fits);
}

/* Declares the largest value that may be multiplied: the last value, divided by
 * the factor. */
static uint32_t declare_limit(vyre__ir_builder *m, const vyre__geometric *g) {
  uint32_t limit;
  vyre__id last = bound_of(m, g);
  if (g->kind == VYRE__LOOP_LT) {
    last = vyre__ir_build_binary(m, VYRE__OP_SUB, last, number(m, g, 1));
  }
  vyre__op inverse = g->op == VYRE__OP_MUL ? VYRE__OP_DIV : VYRE__OP_SHR;
  vyre__statement(
      m, declare(m, "limit", false, stepped(m, g, inverse, last), &limit));
  return limit;
}

/* Returns true if a product of the step never wraps: the largest value below
 * the bound, times the factor, fits the type. */
static bool always_fits(const vyre__geometric *g) {
  if (!g->is_bound_known || g->kind != VYRE__LOOP_LT) return false;
  if (!g->is_positive || !is_above_zero(g->type, g->bound)) return false;
  uint64_t most = largest(g->type);
  most = g->op == VYRE__OP_MUL ? most / g->step : most >> g->step;
  return g->bound - 1 <= most;
}

/* Emits the step: the next value, and whether there is one. */
static void emit_step(vyre__ir_builder *m, const vyre__geometric *g) {
  vyre__id next = stepped(m, g, g->op, local(m, g->variable));
  if (g->more != VYRE_NO_INDEX) {
    vyre__id goes_on =
        g->is_growing
            ? may_multiply(m, g, g->local, g->limit)
            : compare(m, VYRE__OP_GE, local(m, g->local), number(m, g, 1));
    vyre__statement(m, vyre__ir_build_assign(m, g->more, goes_on));
  } else if (g->limit != VYRE_NO_INDEX) {
    next = vyre__ir_build_ternary(m, VYRE__OP_SELECT,
                                  may_multiply(m, g, g->local, g->limit), next,
                                  bound_of(m, g));
  }
  vyre__statement(m, vyre__ir_build_assign(m, g->variable, next));
}

/* Declares the locals around the loop and returns its condition. */
static vyre__id begin_loop(vyre__ir_builder *m, vyre__geometric *g,
                           vyre__id first, vyre__id bound) {
  static const vyre__op comparisons[] = {VYRE__OP_LT, VYRE__OP_LE, VYRE__OP_GT,
                                         VYRE__OP_GE};
  vyre__statement(m, declare(m, "next", true, first, &g->variable));
  g->is_bound_known = m->nodes[bound].op == VYRE__OP_LITERAL;
  if (g->is_bound_known) {
    g->bound = vyre__literal(&m->nodes[bound]);
    make_strict(g);
  } else {
    vyre__statement(m, declare(m, "bound", false, bound, &g->bound_local));
  }
  bool needs_more = !ends_by_bound(g);
  if (g->is_growing && !always_fits(g)) g->limit = declare_limit(m, g);
  vyre__id condition =
      compare(m, comparisons[g->kind], local(m, g->variable), bound_of(m, g));
  if (!needs_more) return condition;
  vyre__statement(m,
                  declare(m, "more", true, true_or_false(m, true), &g->more));
  return vyre__ir_build_binary(m, VYRE__OP_LAND, local(m, g->more), condition);
}

static bool check_geometric(vyre__ir_builder *m, vyre__geometric *g,
                            vyre__id first, vyre__id step) {
  bool counts_up = g->kind == VYRE__LOOP_LT || g->kind == VYRE__LOOP_LE;
  g->is_growing = g->op == VYRE__OP_MUL || g->op == VYRE__OP_SHL;
  if (counts_up != g->is_growing) {
    vyre__diagnose(
        m, "V082",
        counts_up ? "multiply, or compare with >" : "divide, or compare with <",
        "the step of the loop leads away from its bound");
    return false;
  }
  return read_step(m, g, step) && check_first(m, g, first);
}

void vyre__geometric_begin(vyre__ir_builder *m, vyre__geometric *loop,
                           const char *name, size_t length, vyre_type type,
                           vyre__loop kind, vyre__op op, vyre__id first,
                           vyre__id bound, vyre__id step) {
  *loop = (vyre__geometric){.outer = vyre__block_begin(m),
                            .kind = kind,
                            .op = op,
                            .limit = VYRE_NO_INDEX,
                            .more = VYRE_NO_INDEX};
  loop->type = vyre__loop_type(m, type, &first, &bound);
  if (loop->type != VYRE_TYPE_VOID && check_geometric(m, loop, first, step)) {
    loop->condition = begin_loop(m, loop, first, bound);
  }
  vyre__while_begin(m);
  loop->inner = vyre__block_begin(m);
  vyre__id value = loop->condition ? local(m, loop->variable) : 0;
  vyre__id made = vyre__ir_build_let(m, name, length, VYRE_TYPE_VOID, false,
                                     value, &loop->local);
  if (loop->local == VYRE_NO_INDEX || !made) {
    loop->condition = 0;
    return;
  }
  m->locals[m->local_count - 1].is_loop = true;
  vyre__statement(m, made);
}

/* Returns true if control may reach the end of a statement. */
static bool reaches_end(const vyre__ir_builder *m, vyre__id id) {
  const vyre__node *node = &m->nodes[id];
  if (node->op == VYRE__OP_IF) {
    return !node->c || reaches_end(m, node->b) || reaches_end(m, node->c);
  }
  for (uint32_t i = 0; node->op == VYRE__OP_BLOCK && i < node->b; i++) {
    if (!reaches_end(m, m->lists[node->a + i])) return false;
  }
  return node->op != VYRE__OP_BREAK && node->op != VYRE__OP_RETURN;
}

/* The step is at the end, as in a while loop, which the analysis of trip counts
 * and the schedule know best. A `continue` would skip it there, and it must be
 * reachable. */
vyre__id vyre__geometric_end(vyre__ir_builder *m, const vyre__geometric *loop,
                             vyre__id body) {
  bool steps = loop->condition != 0;
  bool is_first = has_continue(m, body) || !reaches_end(m, body);
  if (steps && is_first) emit_step(m, loop);
  vyre__statement(m, body);
  if (steps && !is_first) emit_step(m, loop);
  body = vyre__block_end(m, loop->inner);
  vyre__id made = vyre__while_end(m, loop->condition, body);
  vyre__statement(m, made);
  vyre__id block = vyre__block_end(m, loop->outer);
  return made ? block : 0;
}

/* --- switch ----------------------------------------------------------------*/

enum {
  MAX_LABELS = 1024, /* they are compared with each other */
  CHAIN = 8,         /* arms that are tested one after the other */
};

/* An arm is three entries of the stack: the list of its labels, their number,
 * and its body. */
enum { ARM_LABELS, ARM_COUNT, ARM_BODY, ARM_ENTRIES };

static uint32_t arm(const vyre__ir_builder *m, const vyre__switch *s,
                    uint32_t index, unsigned entry) {
  return m->stack[s->mark.stack + (size_t)index * ARM_ENTRIES + entry];
}

void vyre__switch_begin(vyre__ir_builder *m, vyre__switch *s, vyre__id value) {
  uint32_t left = 0;
  *s = (vyre__switch){.mark = vyre__block_begin(m),
                      .outer = m->switch_,
                      .span = {m->place, m->length},
                      .type = VYRE_TYPE_VOID};
  value = vyre__resolve_type(m, value, VYRE_TYPE_VOID);
  unsigned type = vyre__type_of(m, value);
  if (value && !vyre__type_is_integer(type)) {
    value = vyre__diagnose_at(
        m, value, "V092",
        type == VYRE_TYPE_BOOL ? "use if and else" : "cast it: i32(x)",
        "the value of a switch must be an integer, not "
        "%s",
        vyre__type_name(type));
  }
  s->value = declare(m, "value", false, value, &s->local);
  if (s->value) s->type = (vyre_type)type;
  s->left = declare(m, "left", true, true_or_false(m, false), &left);
  m->switch_ = (vyre__break_target){
      .is_open = true, .left = left, .loop_depth = m->loop_depth};
  s->first_label = vyre__stack_mark(m);
}

static bool is_label(const vyre__ir_builder *m, vyre__id label, uint64_t bits) {
  return vyre__literal(&m->nodes[label]) == bits;
}

/* Returns an earlier label with these bits, or 0. */
static vyre__id find_label(const vyre__ir_builder *m, const vyre__switch *s,
                           uint64_t bits) {
  for (uint32_t i = 0; i < s->arm_count; i++) {
    const uint32_t *labels = m->lists + arm(m, s, i, ARM_LABELS);
    for (uint32_t k = 0; k < arm(m, s, i, ARM_COUNT); k++) {
      if (is_label(m, labels[k], bits)) return labels[k];
    }
  }
  for (size_t i = s->first_label; i < m->stack_count; i++) {
    if (is_label(m, m->stack[i], bits)) return m->stack[i];
  }
  return 0;
}

void vyre__switch_label(vyre__ir_builder *m, vyre__switch *s, vyre__id label) {
  uint64_t bits;
  if (!label || s->type == VYRE_TYPE_VOID) return;
  label = vyre__expect(m, label, s->type, "V092", "a label of the switch");
  if (!label || !vyre__const_eval(m, label, &bits)) return;
  vyre__source_span span = m->spans[label];
  bool is_full = s->label_count >= MAX_LABELS;
  vyre__id other = is_full ? 0 : find_label(m, s, bits);
  if (other) {
    vyre__diagnose_span(
        m, span, "V093", m->spans[other], "the first one", "remove one of them",
        "this switch has two labels %lld",
        s->type == VYRE_TYPE_I32 ? (long long)(int32_t)bits : (long long)bits);
    return;
  }
  if (is_full) {
    vyre__diagnose_span(m, span, "V093", span, NULL,
                        "use a table in a buffer, or several switches",
                        "a switch has at most %u labels", (unsigned)MAX_LABELS);
    return;
  }
  vyre__id made = vyre__ir_build_literal(m, s->type, bits);
  if (!made) return;
  m->spans[made] = span;
  vyre__push(m, made);
  s->label_count++;
}

void vyre__switch_default(vyre__ir_builder *m, vyre__switch *s) {
  if (s->has_default) {
    vyre__diagnose(m, "V093", "remove one of them",
                   "this switch has two default labels");
  }
  s->has_default = s->is_default = true;
}

void vyre__switch_arm_begin(vyre__ir_builder *m, vyre__switch *s) {
  s->arm = vyre__block_begin(m);
}

static bool sets_left(const vyre__ir_builder *m, vyre__id id) {
  const vyre__node *node = &m->nodes[id];
  return node->op == VYRE__OP_ASSIGN && node->a == m->switch_.left;
}

/* Returns true if an `if` without else only tests that `left` is not set. */
static bool is_skip(const vyre__ir_builder *m, const vyre__node *node) {
  const vyre__node *test = &m->nodes[node->a];
  return !node->c && test->op == VYRE__OP_NOT &&
         m->nodes[test->a].op == VYRE__OP_LOCAL &&
         m->nodes[test->a].a == m->switch_.left;
}

/* Returns true if control never reaches the end of a statement. The statements
 * after a `break` are inside an if: it is skipped only after a `break`. */
static bool leaves(const vyre__ir_builder *m, vyre__id id) {
  if (!id) return false;
  const vyre__node *node = &m->nodes[id];
  if (node->op == VYRE__OP_IF) {
    return leaves(m, node->b) && (is_skip(m, node) || leaves(m, node->c));
  }
  if (node->op == VYRE__OP_BLOCK) {
    return node->b > 0 && leaves(m, m->lists[node->a + node->b - 1]);
  }
  return node->op == VYRE__OP_CONTINUE || node->op == VYRE__OP_RETURN ||
         sets_left(m, id);
}

bool vyre__switch_arm_leaves(const vyre__ir_builder *m, const vyre__switch *s) {
  return m->stack_count > s->arm.stack &&
         leaves(m, m->stack[m->stack_count - 1]);
}

void vyre__switch_arm_end(vyre__ir_builder *m, vyre__switch *s) {
  /* A `break` at the end of an arm has nothing to skip. */
  if (m->switch_.break_count > 0 && m->stack_count > s->arm.stack &&
      sets_left(m, m->stack[m->stack_count - 1])) {
    m->stack_count--;
    m->switch_.break_count--;
  }
  vyre__id body = vyre__block_end(m, s->arm);
  uint32_t count = vyre__stack_mark(m) - s->first_label;
  uint32_t list =
      vyre__append_list(m, vyre__stack_from(m, s->first_label), count);
  vyre__stack_drop(m, s->first_label);
  if (s->is_default) s->default_body = body;
  vyre__push(m, list);
  vyre__push(m, list == VYRE_NO_INDEX ? 0 : count);
  vyre__push(m, s->is_default ? 0 : body);
  if (m->out_of_memory) return;
  s->arm_count++;
  s->first_label = vyre__stack_mark(m);
  s->is_default = false;
}

/* Returns the condition that the value is one of some labels: a balanced tree,
 * because the depth of expressions is limited. */
static vyre__id is_one_of(vyre__ir_builder *m, const vyre__switch *s,
                          uint32_t list, uint32_t count) {
  if (count == 1) {
    uint64_t bits = vyre__literal(&m->nodes[m->lists[list]]);
    return compare(m, VYRE__OP_EQ, local(m, s->local),
                   vyre__ir_build_literal(m, s->type, bits));
  }
  vyre__id left = is_one_of(m, s, list, count / 2);
  vyre__id right = is_one_of(m, s, list + count / 2, count - count / 2);
  return vyre__ir_build_binary(m, VYRE__OP_OR, left, right);
}

static vyre__id is_in_arms(vyre__ir_builder *m, const vyre__switch *s,
                           uint32_t first, uint32_t end) {
  if (end - first == 1) {
    uint32_t count = arm(m, s, first, ARM_COUNT);
    /* Without a body it shares the default. */
    if (count == 0 || !arm(m, s, first, ARM_BODY)) {
      return true_or_false(m, false);
    }
    return is_one_of(m, s, arm(m, s, first, ARM_LABELS), count);
  }
  uint32_t middle = first + (end - first) / 2;
  vyre__id left = is_in_arms(m, s, first, middle);
  vyre__id right = is_in_arms(m, s, middle, end);
  return vyre__ir_build_binary(m, VYRE__OP_OR, left, right);
}

/* Builds if and else for a range of arms. @p otherwise runs if no label equals
 * the value; @p is_covered: one label does. */
static vyre__id select_arm(vyre__ir_builder *m, const vyre__switch *s,
                           uint32_t first, uint32_t end, bool is_covered,
                           vyre__id otherwise) {
  if (end - first > CHAIN) {
    uint32_t middle = first + (end - first) / 2;
    vyre__id condition = is_in_arms(m, s, first, middle);
    vyre__id low = select_arm(m, s, first, middle, true, 0);
    vyre__id high = select_arm(m, s, middle, end, is_covered, otherwise);
    return low ? vyre__ir_build_if(m, condition, low, high) : high;
  }
  for (uint32_t i = end; i > first; i--) {
    vyre__id body = arm(m, s, i - 1, ARM_BODY);
    if (!body) continue;
    otherwise =
        is_covered && !otherwise
            ? body
            : vyre__ir_build_if(m, is_in_arms(m, s, i - 1, i), body, otherwise);
  }
  return otherwise;
}

vyre__id vyre__switch_end(vyre__ir_builder *m, vyre__switch *s) {
  bool has_breaks = m->switch_.break_count > 0;
  m->switch_ = s->outer;
  m->place = s->span.place;
  m->length = s->span.length;
  vyre__id chosen = 0;
  if (s->type != VYRE_TYPE_VOID && !m->out_of_memory) {
    chosen = select_arm(m, s, 0, s->arm_count, false, s->default_body);
  }
  vyre__stack_drop(m, s->mark.stack);
  vyre__statement(m, s->value);
  if (has_breaks) vyre__statement(m, s->left);
  vyre__statement(m, chosen);
  return vyre__block_end(m, s->mark);
}

/* --- break out of a switch -------------------------------------------------*/

vyre__id vyre__break_switch(vyre__ir_builder *m) {
  vyre__id made =
      vyre__ir_build_assign(m, m->switch_.left, true_or_false(m, true));
  if (made) m->switch_.break_count++;
  return made;
}

/* Returns true if a statement may set `left`. A loop cannot: a `break` in it
 * belongs to the loop. */
static bool may_leave(const vyre__ir_builder *m, vyre__id id) {
  if (!id) return false;
  const vyre__node *node = &m->nodes[id];
  if (node->op == VYRE__OP_IF) {
    return may_leave(m, node->b) || may_leave(m, node->c);
  }
  for (uint32_t i = 0; node->op == VYRE__OP_BLOCK && i < node->b; i++) {
    if (may_leave(m, m->lists[node->a + i])) return true;
  }
  return sets_left(m, id);
}

void vyre__skip_after_breaks(vyre__ir_builder *m, uint32_t first) {
  for (size_t i = m->stack_count; i > (size_t)first + 1; i--) {
    if (!may_leave(m, m->stack[i - 2])) continue;
    vyre__id body = vyre__block_of_stack(m, (uint32_t)(i - 1));
    vyre__id stays = vyre__ir_build_unary(
        m, VYRE__OP_NOT, vyre__ir_build_local(m, m->switch_.left));
    vyre__statement(m, vyre__ir_build_if(m, stays, body, 0));
  }
}
