/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Generates random programs larger than the small shapes: nested loops with
 * several jumps each, functions that return from loops, conditions built
 * from every uniform or divergent value, variables of several types that
 * live across loops, and barriers in between. */
#include "program.h"

enum { SEEN = 48, DEEPEST = 5, MAX_LOOPS = 3 };

typedef struct gen {
  cf_program *p;
  cf_random *r;
  bool is_function;
  uint32_t acc;        /* of the kernel, or of the function */
  uint32_t seen[SEEN]; /* variables that can be read */
  uint32_t seen_count;
  uint32_t changed[SEEN]; /* those that can be assigned */
  uint32_t changed_count;
  uint32_t counters[SEEN]; /* of loops around this place, innermost last */
  uint32_t counter_count;
  uint32_t loops, depth;
  uint32_t data_var;
  uint32_t site;
  cf_level here;      /* of the conditions around this place */
  cf_level loop_here; /* of those around the innermost loop, with its own */
  bool keeps_loop;    /* the innermost loop is not left by some only */
  bool keeps_kernel;  /* the kernel is not left by some only */
  bool has_stores;    /* stores everywhere, instead of at ends of loops */
} gen;

static bool chance(gen *g, uint32_t percent) {
  return cf_chance(g->r, percent);
}
static uint32_t below(gen *g, uint32_t bound) {
  return cf_below(g->r, bound);
}
static cf_expr *number(gen *g, uint32_t value) {
  return cf_number(g->p, value);
}
static cf_expr *node(gen *g, cf_op op, cf_expr *a, cf_expr *b) {
  return cf_node(g->p, op, a, b);
}
static cf_expr *leaf(gen *g, cf_op op, uint32_t value) {
  return cf_leaf(g->p, op, value);
}
static cf_expr *variable(gen *g, uint32_t var) {
  return cf_leaf(g->p, CF_VAR, var);
}

/* --- values -----------------------------------------------------------------------*/

/* Returns the counter of an enclosing loop that all invocations iterate in
 * step, or NULL. */
static cf_expr *uniform_counter(gen *g) {
  if (g->counter_count == 0) return NULL;
  uint32_t nearest = g->counters[g->counter_count - 1];
  if (chance(g, 30)) nearest = g->counters[below(g, g->counter_count)];
  return g->p->vars[nearest].level == CF_DIVERGENT ? NULL
                                                   : variable(g, nearest);
}

static cf_expr *uniform_value(gen *g) {
  if (g->is_function) {
    cf_expr *k = chance(g, 40) ? uniform_counter(g) : NULL;
    return k ? k : variable(g, g->seen[0]); /* the first parameter */
  }
  switch (below(g, 10)) {
    case 0:
      return leaf(g, CF_WORKGROUP_ID, below(g, 2));
    case 1:
      return variable(g, g->p->agreed);
    case 2:
      return node(g, CF_DATA, number(g, below(g, 3)), NULL);
    case 3:
      return node(g, CF_DATA, leaf(g, CF_UNIFORM, below(g, 4)), NULL);
    case 4: {
      cf_expr *k = uniform_counter(g);
      if (k) return k;
      break;
    }
    default:
      break;
  }
  return leaf(g, CF_UNIFORM, below(g, CF_UNIFORMS));
}

/* An axis on which a workgroup has several invocations, if there is one. */
static uint32_t axis_of(gen *g) {
  uint32_t axis = below(g, 3);
  for (int i = 0; i < 3 && g->p->workgroup[axis] == 1; i++) {
    axis = (axis + 1) % 3;
  }
  return axis;
}

static cf_expr *any_variable(gen *g) {
  return variable(g, g->seen[below(g, g->seen_count)]);
}

static cf_expr *divergent_value(gen *g) {
  if (g->is_function) {
    return chance(g, 60) ? variable(g, g->seen[1]) : any_variable(g);
  }
  switch (below(g, 10)) {
    case 0:
      return leaf(g, CF_LANE, 0);
    case 1:
      return leaf(g, CF_LOCAL_ID, axis_of(g));
    case 2:
      return leaf(g, CF_GLOBAL_ID, axis_of(g));
    case 3: {
      cf_expr *index = leaf(g, CF_OWN, 0);
      cf_expr *k = uniform_counter(g);
      return node(g, CF_DATA, k ? node(g, CF_ADD, index, k) : index, NULL);
    }
    case 4:
    case 5:
      return any_variable(g);
    default:
      return variable(g, g->data_var);
  }
}

static cf_expr *value(gen *g, unsigned depth) {
  static const cf_op ops[] = {CF_ADD, CF_SUB, CF_MUL, CF_XOR,
                              CF_AND, CF_OR,  CF_ADD, CF_XOR};
  if (depth == 0 || chance(g, 30)) {
    switch (below(g, 5)) {
      case 0:
        return number(g, below(g, 1000));
      case 1:
        return uniform_value(g);
      case 2:
        return any_variable(g);
      default:
        return divergent_value(g);
    }
  }
  cf_expr *a = value(g, depth - 1), *b = value(g, depth - 1);
  if (chance(g, 10)) {
    return node(g, CF_SHR, a, number(g, 1 + below(g, 30)));
  }
  if (chance(g, 10)) {
    cf_expr *made = node(g, CF_SELECT, a, b);
    made->c = node(g, CF_LT, value(g, depth - 1), value(g, depth - 1));
    made->value = below(g, 2);
    if (made->c->level > made->level) made->level = made->c->level;
    return made;
  }
  return node(g, ops[below(g, 8)], a, b);
}

/* Not in a function: they do not call each other here. */
static cf_expr *call(gen *g) {
  cf_program *p = g->p;
  cf_expr *first = chance(g, 60) ? uniform_value(g) : divergent_value(g);
  cf_expr *made = node(g, CF_CALL, first, value(g, 1));
  made->value = below(g, p->function_count);
  made->level = CF_DIVERGENT;
  return made;
}

static bool can_call(const gen *g) {
  return !g->is_function && g->p->function_count > 0;
}

/* --- conditions -------------------------------------------------------------------*/

static cf_expr *not_zero(gen *g, cf_expr *e) {
  return node(g, CF_NE, e, number(g, 0));
}

/* Ids are small numbers: only their low bits differ. */
static bool is_id(const cf_expr *e) {
  return e->op >= CF_LANE && e->op <= CF_WORKGROUP_ID;
}

static cf_expr *bit_of(gen *g, cf_expr *e, uint32_t bits) {
  if (is_id(e) && bits > 2) bits = 2;
  cf_expr *count = number(g, below(g, bits));
  cf_expr *k = bits > 8 ? uniform_counter(g) : NULL;
  if (k && chance(g, 50)) count = node(g, CF_ADD, count, k);
  return not_zero(g, node(g, CF_AND, node(g, CF_SHR, e, count), number(g, 1)));
}

static cf_expr *uniform_condition(gen *g, unsigned depth) {
  cf_expr *k = uniform_counter(g), *v = uniform_value(g);
  switch (below(g, depth ? 12 : 8)) {
    case 0:
      return node(g, CF_EQ, v, number(g, below(g, 3)));
    case 1:
      return bit_of(g, v, 2);
    case 2:
      return k ? node(g, CF_EQ, k, v) : not_zero(g, v);
    case 3:
      return k ? node(g, CF_LT, v, k) : not_zero(g, v);
    case 4:
      if (g->is_function) return not_zero(g, v);
      return node(g, CF_LT, number(g, cf_total(g->p) / 2 + below(g, 2)),
                  leaf(g, CF_LEN, 0));
    case 5:
      return k ? node(g, CF_EQ, k, number(g, below(g, 3))) : not_zero(g, v);
    case 6:
      return node(g, CF_LE, v, number(g, below(g, 3)));
    case 7:
      return not_zero(g, v);
    case 8:
      return node(g, CF_LAND, uniform_condition(g, depth - 1),
                  uniform_condition(g, depth - 1));
    case 9:
      return node(g, CF_LOR, uniform_condition(g, depth - 1),
                  uniform_condition(g, depth - 1));
    default:
      return node(g, CF_NOT, uniform_condition(g, depth - 1), NULL);
  }
}

/* A variable of type bool that can be read; UINT32_MAX: none. */
static uint32_t seen_flag(const gen *g) {
  for (uint32_t i = 0; i < g->seen_count; i++) {
    if (g->p->vars[g->seen[i]].type == CF_BOOL) return g->seen[i];
  }
  return UINT32_MAX;
}

static cf_expr *divergent_condition(gen *g, unsigned depth) {
  cf_expr *v = divergent_value(g);
  uint32_t flag = seen_flag(g);
  switch (below(g, depth ? 16 : 10)) {
    case 0:
      if (g->is_function) return bit_of(g, v, 6);
      return node(g, CF_EQ, leaf(g, CF_LANE, 0),
                  number(g, below(g, cf_lanes(g->p))));
    case 1:
      if (g->is_function) return bit_of(g, v, 6);
      return node(g, CF_LT, leaf(g, CF_LANE, 0),
                  number(g, below(g, cf_lanes(g->p) + 1)));
    case 2:
      return node(g, CF_EQ, node(g, CF_REM, v, number(g, 2 + below(g, 3))),
                  number(g, below(g, 2)));
    case 3:
      return node(g, CF_LT, v, value(g, 1));
    case 4:
      return flag != UINT32_MAX ? leaf(g, CF_FLAG, flag) : bit_of(g, v, 9);
    case 10:
      return node(g, CF_LAND, uniform_condition(g, depth - 1),
                  divergent_condition(g, depth - 1));
    case 11:
      return node(g, CF_LOR, uniform_condition(g, depth - 1),
                  divergent_condition(g, depth - 1));
    case 12:
      return node(g, CF_LAND, divergent_condition(g, depth - 1),
                  divergent_condition(g, depth - 1));
    case 13:
      return node(g, CF_NOT, divergent_condition(g, depth - 1), NULL);
    case 14:
      if (!can_call(g)) return bit_of(g, v, 12);
      return node(g, CF_LAND, divergent_condition(g, 0), bit_of(g, call(g), 4));
    case 15:
      if (!can_call(g)) return bit_of(g, v, 12);
      return bit_of(g, call(g), 4);
    default:
      return bit_of(g, v, 24);
  }
}

static cf_expr *condition(gen *g, bool is_divergent) {
  return is_divergent ? divergent_condition(g, 2) : uniform_condition(g, 2);
}

/* For `return`, and others that would leave little to run if they were often true.
 */
static cf_expr *rare_condition(gen *g, bool is_divergent) {
  cf_expr *c = condition(g, is_divergent);
  return node(g, CF_LAND, c, condition(g, is_divergent));
}

/* --- statements that leave a trace ------------------------------------------------*/

static void mix(gen *g, cf_list *l, cf_expr *v) {
  cf_expr *product = node(g, CF_MUL, variable(g, g->acc), number(g, 31));
  cf_assign(g->p, l, g->acc, node(g, CF_ADD, product, v));
}

static void store(gen *g, cf_list *l) {
  if (g->is_function || g->p->slot_count >= 48) return;
  cf_store(g->p, l, variable(g, g->acc));
}

static void add_assignment(gen *g, cf_list *l) {
  uint32_t var = g->changed[below(g, g->changed_count)];
  if (g->p->vars[var].type == CF_BOOL) {
    cf_assign(g->p, l, var, divergent_condition(g, 0));
  } else {
    cf_assign(g->p, l, var,
              can_call(g) && chance(g, 15) ? call(g) : value(g, 2));
  }
}

static void add_local(gen *g, cf_list *l) {
  cf_program *p = g->p;
  if (g->seen_count >= SEEN - 4 || p->var_count >= CF_MAX_VARS - 40) return;
  cf_expr *v = value(g, 1);
  uint32_t var = cf_variable(p, CF_U32, CF_DIVERGENT, 'v');
  p->vars[var].is_let = chance(g, 40);
  cf_declare(p, l, var, v);
  g->seen[g->seen_count++] = var;
  if (!p->vars[var].is_let) g->changed[g->changed_count++] = var;
}

static void add_count(gen *g, cf_list *l) {
  if (g->is_function) return;
  cf_stmt *s = cf_statement(g->p, CF_COUNT);
  s->slot = below(g, CF_COUNTERS);
  s->a = chance(g, 50) ? number(g, 1 + below(g, 5)) : divergent_value(g);
  g->p->has_count = true;
  cf_append(l, s);
}

static void add_trace(gen *g, cf_list *l) {
  switch (below(g, 10)) {
    case 0:
      add_count(g, l);
      break;
    case 1:
      add_local(g, l);
      break;
    case 2:
    case 3:
      add_assignment(g, l);
      break;
    case 4:
      mix(g, l, any_variable(g));
      break;
    case 5:
      mix(g, l, value(g, 1));
      break;
    default:
      mix(g, l, number(g, ++g->site));
  }
  if (g->has_stores && chance(g, 60)) store(g, l);
}

/* --- control flow -----------------------------------------------------------------*/

/* Returns whether the end of the sequence is never reached. */
static bool add_sequence(gen *g, cf_list *l, uint32_t size);

/* A body in braces: names end with it. */
static bool add_body(gen *g, uint32_t size, cf_list *l) {
  uint32_t seen = g->seen_count, changed = g->changed_count;
  g->depth++;
  add_trace(g, l);
  bool is_closed = add_sequence(g, l, size);
  g->depth--;
  g->seen_count = seen;
  g->changed_count = changed;
  return is_closed;
}

static void add_return(gen *g, cf_list *l) {
  cf_stmt *s = cf_statement(g->p, CF_RETURN);
  if (g->is_function) {
    s->a = node(g, CF_XOR, variable(g, g->acc), number(g, ++g->site));
  } else if (chance(g, 60)) {
    mix(g, l, number(g, ++g->site));
    store(g, l);
  }
  cf_append(l, s);
}

/* Returns true if only some invocations may take a jump. */
static bool may_diverge(const gen *g, cf_kind kind) {
  if (kind == CF_CONTINUE || g->is_function) return true;
  return kind == CF_BREAK ? !g->keeps_loop : !g->keeps_kernel;
}

static cf_kind jump_kind(gen *g) {
  if (g->loops == 0) return CF_RETURN;
  static const cf_kind kinds[] = {CF_BREAK, CF_CONTINUE, CF_CONTINUE, CF_BREAK,
                                  CF_RETURN};
  return kinds[below(g, 5)];
}

/* Returns true if the jump would be divergent because of its position. */
static bool is_divergent_place(const gen *g, cf_kind kind) {
  return kind == CF_RETURN
             ? g->here == CF_DIVERGENT
             : g->here == CF_DIVERGENT && g->loop_here != CF_DIVERGENT;
}

static void add_bare_jump(gen *g, cf_list *l, cf_kind kind) {
  if (kind == CF_RETURN) {
    add_return(g, l);
  } else {
    cf_append(l, cf_statement(g->p, kind));
  }
}

/* Returns whether all jump. */
static bool add_jump(gen *g, cf_list *l) {
  cf_kind kind = jump_kind(g);
  bool is_closed = false;
  uint32_t seen = g->seen_count, changed = g->changed_count;
  if (is_divergent_place(g, kind) && !may_diverge(g, kind)) {
    if (g->loops == 0) return false;
    kind = CF_CONTINUE;
  }
  bool is_divergent = chance(g, 50) && may_diverge(g, kind);
  bool is_rare = kind == CF_RETURN || chance(g, 25);
  cf_stmt *s = cf_statement(g->p, CF_IF);
  cf_list body = {0};
  s->a = is_rare ? rare_condition(g, is_divergent) : condition(g, is_divergent);
  if (chance(g, 25)) add_trace(g, &body);
  g->seen_count = seen;
  g->changed_count = changed;
  add_bare_jump(g, &body, kind);
  s->body = body.first;
  if (chance(g, 8)) { /* the other invocations jump too, elsewhere */
    cf_kind other = jump_kind(g);
    cf_list arm = {0};
    add_trace(g, &arm);
    g->seen_count = seen;
    g->changed_count = changed;
    is_closed = may_diverge(g, other) && kind != CF_RETURN &&
                other != CF_RETURN && chance(g, 30);
    if (is_closed) add_bare_jump(g, &arm, other);
    s->has_else = true;
    s->other = arm.first;
  }
  cf_append(l, s);
  return is_closed;
}

static bool add_if(gen *g, cf_list *l, uint32_t size) {
  cf_stmt *s = cf_statement(g->p, CF_IF);
  s->a = condition(g, chance(g, 55));
  s->has_else = chance(g, 50);
  s->is_switch = chance(g, 20);
  uint32_t first = s->has_else ? below(g, size + 1) : size;
  cf_level before = g->here;
  if (s->a->level > g->here) g->here = s->a->level;
  cf_list then_arm = {0}, else_arm = {0};
  if (!g->is_function && chance(g, 60)) {
    cf_assign(g->p, &then_arm, g->p->join, value(g, 1));
  }
  bool is_closed = add_body(g, first, &then_arm);
  is_closed &= s->has_else && add_body(g, size - first, &else_arm);
  s->body = then_arm.first;
  s->other = else_arm.first;
  g->here = before;
  cf_append(l, s);
  if (is_closed) return true;
  if (!g->is_function && chance(g, 60)) mix(g, l, variable(g, g->p->join));
  return false;
}

static cf_expr *rounds(gen *g, bool is_divergent) {
  uint32_t max = g->loops ? 3 : 7;
  if (is_divergent) {
    cf_expr *v = divergent_value(g);
    if (!is_id(v)) v = node(g, CF_SHR, v, number(g, below(g, 8)));
    return node(g, CF_AND, v, number(g, max));
  }
  if (g->is_function) {
    return node(g, CF_AND, uniform_value(g), number(g, 3));
  }
  if (chance(g, 25)) return number(g, below(g, max + 3));
  if (chance(g, 70)) return leaf(g, CF_UNIFORM, below(g, CF_UNIFORMS));
  return node(g, CF_AND, uniform_value(g), number(g, max));
}

/* Makes a loop multiply or divide. Its numbers are at least 1, but for a bound
 * that a division may never reach. */
static void make_geometric(gen *g, cf_stmt *s, bool is_divergent) {
  cf_expr *one = number(g, 1 + below(g, 3));
  cf_expr *high = node(g, CF_SHL, number(g, 1), rounds(g, is_divergent));
  bool is_growing = chance(g, 50);
  s->is_geometric = true;
  s->slot = below(g, 2); /* 1: written as a shift, if it can be */
  s->step = 2 + below(g, 3);
  s->compare = is_growing ? CF_BELOW : CF_ABOVE;
  if (chance(g, 40)) s->compare++; /* inclusive */
  s->a = is_growing ? one : high;
  s->b = is_growing ? high : number(g, below(g, 3));
}

static cf_stmt *make_for(gen *g, bool is_divergent) {
  static const cf_type types[] = {CF_U32, CF_U32, CF_U32, CF_I32, CF_U64};
  cf_program *p = g->p;
  cf_stmt *s = cf_statement(p, CF_FOR);
  s->a = number(g, below(g, 2));
  s->b = rounds(g, is_divergent);
  s->step = 1 + (chance(g, 20) ? 1 : 0);
  s->compare = chance(g, 25) ? CF_UP_TO : CF_BELOW;
  cf_type type = types[below(g, 5)];
  if (is_divergent && !g->is_function && chance(g, 20)) {
    s->a = leaf(g, CF_LANE, 0);
    s->b = number(g, cf_lanes(p) * 2 + below(g, cf_lanes(p)));
    s->step = cf_lanes(p);
  } else if (chance(g, 25)) {
    cf_expr *first = s->a;
    s->a = s->b;
    s->b = first;
    s->compare = chance(g, 50) ? CF_ABOVE : CF_DOWN_TO;
  } else if (chance(g, 20)) {
    make_geometric(g, s, is_divergent);
  } else if (chance(g, 5)) { /* ends where the next value would not fit */
    type = CF_U32;
    s->a = node(g, CF_SUB, number(g, UINT32_MAX), rounds(g, is_divergent));
    s->b = number(g, UINT32_MAX);
    s->compare = CF_UP_TO;
  }
  cf_level level = s->a->level > s->b->level ? s->a->level : s->b->level;
  s->var = cf_variable(p, type, level, 'k');
  p->vars[s->var].is_let = true;
  return s;
}

static cf_stmt *make_while(gen *g, cf_list *l, bool is_divergent,
                           cf_list *body) {
  cf_program *p = g->p;
  cf_stmt *s = cf_statement(p, CF_WHILE);
  cf_expr *bound = rounds(g, is_divergent);
  s->is_do = chance(g, 25);
  s->var = cf_variable(p, CF_U32, bound->level, 'c');
  cf_expr *c = variable(g, s->var);
  if (chance(g, 20)) { /* halves */
    cf_declare(p, l, s->var, bound);
    s->a = not_zero(g, c);
    cf_assign(p, body, s->var, node(g, CF_SHR, c, number(g, 1)));
  } else {
    cf_declare(p, l, s->var, number(g, 0));
    s->a = node(g, CF_LT, c, bound);
    if (chance(g, 40)) {
      cf_expr *limit = node(g, CF_LT, c, number(g, g->loops ? 3 : 6));
      s->a = node(g, CF_LAND, limit, condition(g, is_divergent));
      if (s->a->level > p->vars[s->var].level) {
        p->vars[s->var].level = s->a->level;
        c->level = s->a->level;
      }
    }
    cf_assign(p, body, s->var, node(g, CF_ADD, c, number(g, 1)));
  }
  body->first->is_fixed = true;
  return s;
}

/* A variable that only the beginning of a round reads, and that statements in the
 * loop assign: what they leave must reach the next round. Most often it is reset
 * there, so that nothing else needs it. */
static void add_carried(gen *g, cf_list *before, cf_list *body) {
  static const cf_type types[] = {CF_U32, CF_U32, CF_U64, CF_I32};
  cf_program *p = g->p;
  if (!chance(g, 40) || g->changed_count >= SEEN - 4 ||
      p->var_count >= CF_MAX_VARS - 40) {
    return;
  }
  uint32_t var = cf_variable(p, types[below(g, 4)], CF_DIVERGENT, 'x');
  cf_declare(p, before, var, number(g, 1 + below(g, 9)));
  mix(g, body, variable(g, var));
  if (chance(g, 70)) cf_assign(p, body, var, number(g, below(g, 999)));
  for (int i = 0; i < 3; i++) g->changed[g->changed_count++] = var; /* often */
}

static void add_loop(gen *g, cf_list *l, uint32_t size) {
  cf_list body = {0};
  bool is_divergent = chance(g, 40);
  cf_stmt *s = chance(g, 55) ? make_for(g, is_divergent)
                             : make_while(g, l, is_divergent, &body);
  cf_level here = g->here, loop_here = g->loop_here;
  bool keeps = g->keeps_loop;
  cf_level own = s->a->level;
  if (s->b && s->b->level > own) own = s->b->level;
  if (own > g->here) g->here = own;
  g->loop_here = g->here;
  g->keeps_loop = g->keeps_kernel && g->here != CF_DIVERGENT && chance(g, 80);
  uint32_t changed = g->changed_count;
  add_carried(g, l, &body);
  g->loops++;
  g->counters[g->counter_count++] = s->var;
  g->seen[g->seen_count++] = s->var;
  /* Nothing after a do loop is reached if its body always returns. */
  if (add_body(g, size, &body)) s->is_do = false;
  s->body = body.first;
  g->seen_count--;
  g->counter_count--;
  g->changed_count = changed;
  g->loops--;
  g->here = here;
  g->loop_here = loop_here;
  g->keeps_loop = keeps;
  cf_append(l, s);
  if (chance(g, 70)) store(g, l);
}

static bool add_sequence(gen *g, cf_list *l, uint32_t size) {
  while (size > 0) {
    uint32_t inside = below(g, size);
    uint32_t kind = below(g, 100);
    bool is_deep = g->depth >= DEEPEST || g->seen_count >= SEEN - 8;
    size--;
    if (kind < (g->loops ? 45u : 15u) || is_deep) {
      if (add_jump(g, l)) return true;
    } else if (kind < 65 || g->loops >= MAX_LOOPS) {
      if (add_if(g, l, inside)) return true;
      size -= inside;
    } else {
      if (g->loops == 0 && inside * 2 < size) inside = size * 2 / 3;
      add_loop(g, l, inside);
      size -= inside;
    }
    add_trace(g, l);
  }
  bool is_arm = g->depth > 0 && g->here != CF_GRID && g->loops > 0;
  if (is_arm && chance(g, 8) && !g->keeps_kernel) {
    add_bare_jump(g, l, chance(g, 50) ? CF_CONTINUE : CF_BREAK);
    return true;
  }
  return false;
}

/* --- programs ---------------------------------------------------------------------*/

static void add_function(cf_program *p, cf_random *r) {
  gen g = {.p = p, .r = r, .is_function = true};
  uint32_t index = p->function_count;
  cf_function *f = &p->functions[index];
  f->params[0] = cf_variable(p, CF_U32, CF_WORKGROUP, 'p');
  f->params[1] = cf_variable(p, CF_U32, CF_DIVERGENT, 'p');
  g.acc = cf_variable(p, CF_U32, CF_DIVERGENT, 's');
  g.seen[g.seen_count++] = f->params[0];
  g.seen[g.seen_count++] = f->params[1];
  g.seen[g.seen_count++] = g.acc;
  g.changed[g.changed_count++] = g.acc;
  cf_list body = {0};
  cf_declare(p, &body, g.acc, number(&g, 7 + index));
  add_loop(&g, &body, 1 + below(&g, 3));
  (void)add_sequence(&g, &body, below(&g, 3)); /* open: not in a loop */
  add_return(&g, &body);
  f->body = body.first;
  p->function_count++;
}

static void add_variables(gen *g, cf_list *l) {
  static const cf_type types[] = {CF_U32, CF_U64, CF_F32, CF_BOOL};
  cf_program *p = g->p;
  cf_prologue(p, l);
  g->acc = p->acc;
  g->seen[g->seen_count++] = p->acc;
  g->seen[g->seen_count++] = p->join;
  g->changed[g->changed_count++] = p->join;
  g->data_var = cf_variable(p, CF_U32, CF_DIVERGENT, 'd');
  p->vars[g->data_var].is_let = true;
  cf_declare(p, l, g->data_var, node(g, CF_DATA, leaf(g, CF_OWN, 0), NULL));
  for (uint32_t i = 0; i < 4; i++) {
    if (!chance(g, 45)) continue;
    cf_expr *first = types[i] == CF_BOOL
                         ? bit_of(g, variable(g, g->data_var), 8)
                         : number(g, 3 + i);
    uint32_t var = cf_variable(p, types[i], CF_DIVERGENT, 'v');
    cf_declare(p, l, var, first);
    g->seen[g->seen_count++] = var;
    g->changed[g->changed_count++] = var;
  }
}

static void choose_runs(cf_program *p, cf_random *r) {
  for (uint32_t i = 0; i < 6; i++) {
    cf_run *run = &p->runs[p->run_count++];
    for (uint32_t q = 0; q < CF_UNIFORMS; q++) {
      run->uniforms[q] =
          cf_chance(r, i == 0 ? 80 : 25) ? 0 : 1 + cf_below(r, i < 3 ? 2 : 4);
    }
    run->pattern = i < 2 ? i : cf_below(r, 8);
    run->seed = cf_next(r);
  }
}

void cf_build_random(cf_program *p, uint64_t seed, uint32_t max_invocations) {
  cf_random r = {cf_hash(seed ^ 0xC0FFEEu)};
  gen g = {.p = p, .r = &r};
  (void)snprintf(p->name, sizeof p->name, "random %llu",
                 (unsigned long long)seed);
  cf_geometry(p, &r, max_invocations);
  bool is_synced = cf_chance(&r, 35);
  g.keeps_kernel = is_synced;
  g.has_stores = cf_chance(&r, 30);
  while (p->function_count < 2 && cf_chance(&r, 25)) add_function(p, &r);
  cf_list body = {0};
  add_variables(&g, &body);
  if (!is_synced && cf_chance(&r, 12)) { /* the usual guard */
    cf_stmt *s = cf_statement(p, CF_IF);
    s->a = node(&g, CF_LE, leaf(&g, CF_LEN, 0), leaf(&g, CF_OWN, 0));
    s->body = cf_statement(p, CF_RETURN);
    cf_append(&body, s);
  }
  uint32_t size = 3 + below(&g, 5) + (chance(&g, 8) ? below(&g, 10) : 0);
  if (chance(&g, 60)) {
    add_loop(&g, &body, size - 1 - below(&g, 2));
    (void)add_sequence(&g, &body, below(&g, 2));
  } else {
    (void)add_sequence(&g, &body, size);
  }
  for (uint32_t i = 0; i < g.changed_count;
       i++) { /* some are not needed here */
    if (chance(&g, 50)) mix(&g, &body, variable(&g, g.changed[i]));
  }
  cf_store(p, &body, variable(&g, p->acc));
  p->body = body.first;
  choose_runs(p, &r);
  if (is_synced || cf_chance(&r, 15)) {
    cf_add_barriers(p, &r, 45, cf_chance(&r, 20));
  }
}
