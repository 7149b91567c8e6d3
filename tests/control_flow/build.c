/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parts that all programs are built from, and programs from small shapes: a shape
 * gets conditions, statements that show what was executed, a workgroup and data. */
#include <stdlib.h>
#include <string.h>

#include "program.h"

/* --- memory and random numbers ----------------------------------------------------*/

void *cf_take(cf_program *p, size_t size) {
  size = (size + 15) & ~(size_t)15;
  if (!p->memory || p->memory->used + size > sizeof p->memory->bytes) {
    cf_block *block = calloc(1, sizeof *block);
    if (!block || size > sizeof block->bytes) abort();
    block->next = p->memory;
    p->memory = block;
  }
  void *taken = p->memory->bytes + p->memory->used;
  p->memory->used += size;
  return taken;
}

void cf_deinit(cf_program *p) {
  while (p->memory) {
    cf_block *next = p->memory->next;
    free(p->memory);
    p->memory = next;
  }
}

uint64_t cf_hash(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

uint64_t cf_next(cf_random *r) {
  r->state += 0x9E3779B97F4A7C15u;
  return cf_hash(r->state);
}

uint32_t cf_below(cf_random *r, uint32_t bound) {
  return (uint32_t)((cf_next(r) >> 32) * bound >> 32);
}

bool cf_chance(cf_random *r, uint32_t percent) {
  return cf_below(r, 100) < percent;
}

/* --- nodes ------------------------------------------------------------------------*/

static cf_level higher(cf_level a, cf_level b) {
  return a > b ? a : b;
}

cf_expr *cf_leaf(cf_program *p, cf_op op, uint32_t value) {
  cf_expr *e = cf_take(p, sizeof *e);
  e->op = op;
  e->value = value;
  switch (op) {
    case CF_VAR:
    case CF_FLAG:
      e->level = p->vars[value].level;
      break;
    case CF_WORKGROUP_ID:
      e->level = CF_WORKGROUP;
      break;
    case CF_LANE:
    case CF_OWN:
    case CF_LOCAL_ID:
    case CF_GLOBAL_ID:
      e->level = CF_DIVERGENT;
      break;
    default:
      e->level = CF_GRID;
  }
  if (op == CF_UNIFORM && value >= p->uniform_count) {
    p->uniform_count = value + 1;
  }
  return e;
}

cf_expr *cf_node(cf_program *p, cf_op op, cf_expr *a, cf_expr *b) {
  cf_expr *e = cf_take(p, sizeof *e);
  e->op = op;
  e->a = a;
  e->b = b;
  e->level = b ? higher(a->level, b->level) : a->level;
  if (op == CF_DATA) e->level = higher(e->level, CF_WORKGROUP);
  return e;
}

cf_expr *cf_number(cf_program *p, uint32_t value) {
  return cf_leaf(p, CF_CONST, value);
}

cf_stmt *cf_statement(cf_program *p, cf_kind kind) {
  cf_stmt *s = cf_take(p, sizeof *s);
  s->kind = kind;
  return s;
}

uint32_t cf_variable(cf_program *p, cf_type type, cf_level level, char prefix) {
  if (p->var_count == CF_MAX_VARS) abort();
  p->vars[p->var_count] =
      (cf_var){.type = type, .level = level, .prefix = prefix};
  return p->var_count++;
}

void cf_append(cf_list *l, cf_stmt *s) {
  if (!l->end) l->end = &l->first;
  *l->end = s;
  l->end = &s->next;
}

void cf_assign(cf_program *p, cf_list *l, uint32_t var, cf_expr *value) {
  cf_stmt *s = cf_statement(p, CF_ASSIGN);
  s->var = var;
  s->a = value;
  cf_append(l, s);
}

void cf_declare(cf_program *p, cf_list *l, uint32_t var, cf_expr *value) {
  cf_assign(p, l, var, value);
  cf_stmt *s = l->first;
  while (s->next) s = s->next;
  s->kind = CF_DECLARE;
}

void cf_store(cf_program *p, cf_list *l, cf_expr *value) {
  cf_stmt *s = cf_statement(p, CF_STORE);
  s->slot = p->slot_count++;
  s->a = value;
  cf_append(l, s);
}

void cf_mix(cf_program *p, cf_list *l, cf_expr *value) {
  cf_expr *acc = cf_leaf(p, CF_VAR, p->acc);
  cf_assign(
      p, l, p->acc,
      cf_node(p, CF_ADD, cf_node(p, CF_MUL, acc, cf_number(p, 31)), value));
}

/* Declares the variables of every program. */
void cf_prologue(cf_program *p, cf_list *l) {
  p->acc = cf_variable(p, CF_U32, CF_DIVERGENT, 'a');
  p->join = cf_variable(p, CF_U32, CF_DIVERGENT, 'j');
  p->agreed = cf_variable(p, CF_U32, CF_WORKGROUP, 'w');
  cf_declare(p, l, p->acc, cf_number(p, 1));
  cf_declare(p, l, p->join, cf_number(p, 2));
  cf_declare(p, l, p->agreed, cf_leaf(p, CF_UNIFORM, 0));
}

/* --- workgroups and data ----------------------------------------------------------*/

void cf_geometry(cf_program *p, cf_random *r, uint32_t max_invocations) {
  static const uint32_t sizes[][3] = {
      {33, 1, 1}, {7, 1, 1},  {8, 1, 1},  {33, 1, 1}, {3, 1, 1},  {16, 1, 1},
      {1, 1, 1},  {33, 1, 1}, {64, 1, 1}, {5, 4, 1},  {3, 2, 4},  {7, 1, 1},
      {8, 8, 1},  {1, 7, 1},  {33, 1, 1}, {33, 2, 1}, {1, 1, 9},  {16, 3, 1},
      {32, 1, 1}, {37, 1, 1}, {4, 1, 5},  {40, 1, 1}, {17, 1, 1}, {8, 1, 1}};
  static const uint32_t grids[][3] = {{2, 1, 1}, {1, 1, 1}, {3, 1, 1},
                                      {2, 2, 1}, {1, 3, 1}, {2, 1, 2}};
  const uint32_t *size = sizes[cf_below(r, sizeof sizes / sizeof *sizes)];
  const uint32_t *grid = grids[cf_below(r, sizeof grids / sizeof *grids)];
  static const uint32_t large[2][3] = {{1000, 1, 1}, {10, 10, 10}};
  bool is_large = cf_chance(r, 1);
  if (is_large) {
    size = large[cf_below(r, 2)];
    grid = grids[1];
  }
  memcpy(p->workgroup, size, sizeof p->workgroup);
  memcpy(p->grid, grid, sizeof p->grid);
  p->missing = cf_chance(r, 30) ? cf_below(r, cf_total(p) < 6 ? 1 : 6) : 0;
  while (cf_lanes(p) > max_invocations) { /* the device has less */
    unsigned axis = p->workgroup[0] > 1 ? 0 : p->workgroup[1] > 1 ? 1 : 2;
    p->workgroup[axis] = (p->workgroup[axis] + 1) / 2;
  }
  p->has_array = cf_chance(r, 50);
  p->is_interleaved = cf_chance(r, 65);
}

enum { PATTERNS = 8 };

/* Bits of element @p index of `data`: conditions test single bits of it. */
uint32_t cf_data_at(const cf_program *p, const cf_run *run, uint32_t index) {
  uint64_t bits = cf_hash(run->seed ^ ((uint64_t)index << 32));
  uint32_t low = (uint32_t)bits, high = (uint32_t)(bits >> 32);
  bool is_chosen =
      index % cf_lanes(p) == (uint32_t)(run->seed >> 7) % cf_lanes(p);
  switch (run->pattern) {
    case 0:
      return low;
    case 1:
      return low & high & (uint32_t)cf_hash(bits);
    case 2:
      return is_chosen ? UINT32_MAX : 0;
    case 3:
      return low | high | (uint32_t)cf_hash(bits);
    case 4:
      return is_chosen ? 0 : UINT32_MAX;
    case 5:
      return UINT32_MAX;
    case 6:
      return 0;
    default:
      return index * 0x01010101u;
  }
}

/* --- a program from a shape -------------------------------------------------------*/

/* Adds statements that record which statements were executed. */
typedef enum style {
  HASH,      /* acc changes everywhere, and is stored at ends of loops */
  CONSTANTS, /* a constant is stored everywhere; acc is never used */
  BOTH       /* acc changes everywhere, and is stored each time */
} style;

typedef struct dress {
  cf_program *p;
  cf_random *r;
  style style;
  uint32_t site;     /* number of the next place that leaves a trace */
  uint32_t bit;      /* of `data` that the next condition tests */
  uint32_t data_var; /* data[own] */
  uint32_t uniforms; /* taken so far */
  uint32_t trips;    /* set of those that are numbers of rounds */
  uint32_t counter;  /* variable of the innermost loop; UINT32_MAX: none */
  bool counts;       /* atomics in bodies of loops */
  uint32_t carried;  /* variable that a round leaves to the next: only the
                        beginning of a body reads it; UINT32_MAX: none */
} dress;

static void mark(dress *d, cf_list *l, bool is_end) {
  cf_program *p = d->p;
  uint32_t site = ++d->site;
  if (d->style != CONSTANTS) cf_mix(p, l, cf_number(p, site));
  if (d->style == CONSTANTS) cf_store(p, l, cf_number(p, site + 1000));
  if (d->style == BOTH || (d->style == HASH && is_end)) {
    cf_store(p, l, cf_leaf(p, CF_VAR, p->acc));
  }
}

/* Counts the invocations that come here. */
static void mark_count(dress *d, cf_list *l) {
  cf_stmt *s = cf_statement(d->p, CF_COUNT);
  s->slot = ++d->site % CF_COUNTERS;
  s->a = cf_chance(d->r, 60) ? cf_number(d->p, d->site)
                             : cf_leaf(d->p, CF_LANE, 0);
  d->p->has_count = true;
  cf_append(l, s);
}

/* Reads what the round before left, and most often forgets it: then only the
 * beginning of the next round needs the value that a body below assigns. */
static void mark_carried(dress *d, cf_list *l) {
  cf_program *p = d->p;
  if (d->carried == UINT32_MAX) return;
  cf_expr *carried = cf_leaf(p, CF_VAR, d->carried);
  if (d->style == CONSTANTS) {
    cf_store(p, l, carried);
  } else {
    cf_mix(p, l, carried);
  }
  if (cf_chance(d->r, 70)) {
    cf_assign(p, l, d->carried, cf_number(p, ++d->site * 7));
  }
}

static void assign_carried(dress *d, cf_list *l) {
  cf_program *p = d->p;
  if (d->carried == UINT32_MAX || cf_chance(d->r, 25)) return;
  cf_expr *value = cf_chance(d->r, 50) ? cf_leaf(p, CF_LANE, 0)
                                       : cf_number(p, ++d->site * 13);
  cf_assign(p, l, d->carried, value);
}

/* Reads after an `if` the variables that it assigned. */
static void mark_join(dress *d, cf_list *l) {
  cf_program *p = d->p;
  cf_expr *join = cf_leaf(p, CF_VAR, p->join);
  if (d->style == CONSTANTS) {
    cf_store(p, l, cf_node(p, CF_ADD, join, cf_number(p, ++d->site)));
  } else {
    cf_mix(p, l, join);
    if (d->style == BOTH) cf_store(p, l, cf_leaf(p, CF_VAR, p->acc));
  }
}

static cf_expr *uniform_value(dress *d) {
  uint32_t which = d->uniforms++ % CF_UNIFORMS;
  return cf_leaf(d->p, CF_UNIFORM, which);
}

static cf_expr *number_of_rounds(dress *d) {
  d->trips |= 1u << d->uniforms % CF_UNIFORMS;
  return uniform_value(d);
}

static cf_expr *uniform_condition(dress *d) {
  cf_program *p = d->p;
  cf_expr *q = uniform_value(d);
  if (d->counter != UINT32_MAX && cf_chance(d->r, 40)) { /* in one round */
    cf_expr *k = cf_leaf(p, CF_VAR, d->counter);
    return cf_node(p, CF_EQ, q, cf_node(p, CF_ADD, k, cf_number(p, 1)));
  }
  if (cf_chance(d->r, 12)) { /* in every second workgroup */
    cf_expr *group = cf_leaf(p, CF_WORKGROUP_ID, 0);
    cf_expr *sum = cf_node(p, CF_ADD, group, q);
    return cf_node(p, CF_NE, cf_node(p, CF_AND, sum, cf_number(p, 1)),
                   cf_number(p, 0));
  }
  return cf_node(p, CF_NE, q, cf_number(p, 0));
}

/* Some bits of the invocation's element of `data`, other ones in each round. */
static cf_expr *own_bits(dress *d, uint32_t mask) {
  cf_program *p = d->p;
  cf_expr *value = cf_leaf(p, CF_VAR, d->data_var);
  cf_expr *count = cf_number(p, d->bit);
  d->bit = (d->bit + 5) % 27;
  if (d->counter != UINT32_MAX && cf_chance(d->r, 60)) {
    count = cf_node(p, CF_ADD, count, cf_leaf(p, CF_VAR, d->counter));
  }
  return cf_node(p, CF_AND, cf_node(p, CF_SHR, value, count),
                 cf_number(p, mask));
}

static cf_expr *divergent_condition(dress *d) {
  cf_program *p = d->p;
  cf_expr *lane = cf_leaf(p, CF_LANE, 0);
  cf_expr *bit = cf_node(p, CF_NE, own_bits(d, 1), cf_number(p, 0));
  switch (cf_below(d->r, 12)) {
    case 0:
      return cf_node(p, CF_EQ, lane, cf_number(p, cf_below(d->r, cf_lanes(p))));
    case 1:
      return cf_node(p, CF_EQ, cf_node(p, CF_REM, lane, cf_number(p, 3)),
                     cf_number(p, 1));
    case 2:
      return cf_node(p, CF_LT, lane, cf_number(p, cf_below(d->r, cf_lanes(p))));
    case 3:
      return cf_node(p, CF_LAND, bit,
                     cf_node(p, CF_NE, lane, cf_leaf(p, CF_UNIFORM, 0)));
    default:
      return bit;
  }
}

/* Returns true if the end of a sequence is never reached. */
static bool is_closed(const cf_shape *s) {
  while (s && s->next) s = s->next;
  if (!s) return false;
  if (s->kind >= CF_SHAPE_BREAK) return !s->is_guarded;
  return s->kind == CF_SHAPE_IF_ELSE && is_closed(s->body) &&
         is_closed(s->other);
}

static void dress_all(dress *d, cf_list *l, const cf_shape *s);

static cf_stmt *dress_for(dress *d, const cf_shape *s) {
  cf_program *p = d->p;
  static const cf_type types[] = {CF_U32, CF_U32, CF_U32,
                                  CF_U32, CF_I32, CF_U64};
  cf_stmt *made = cf_statement(p, CF_FOR);
  made->var = cf_variable(p, types[cf_below(d->r, 6)], s->level, 'k');
  p->vars[made->var].is_let = true;
  made->step = 1;
  made->a = cf_number(p, 0);
  if (s->level == CF_DIVERGENT && cf_chance(d->r, 15)) {
    uint32_t lanes = cf_lanes(p);
    made->a = cf_leaf(p, CF_LANE, 0);
    made->b = cf_number(p, 2 * lanes + cf_below(d->r, lanes));
    made->step = lanes;
    return made;
  }
  made->b = s->level == CF_DIVERGENT ? own_bits(d, 3)
            : cf_chance(d->r, 15)    ? cf_number(p, 3)
                                     : number_of_rounds(d);
  if (cf_chance(d->r, 20)) { /* downwards */
    cf_expr *first = made->a;
    made->a = made->b;
    made->b = first;
    made->compare = CF_ABOVE;
  }
  return made;
}

static cf_stmt *dress_while(dress *d, cf_list *l, const cf_shape *s,
                            cf_list *body) {
  cf_program *p = d->p;
  cf_stmt *made = cf_statement(p, CF_WHILE);
  made->var = cf_variable(p, CF_U32, s->level, 'c');
  cf_expr *counter = cf_leaf(p, CF_VAR, made->var);
  bool halves = cf_chance(d->r, 15);
  cf_expr *bound =
      s->level == CF_DIVERGENT ? own_bits(d, 3) : number_of_rounds(d);
  if (halves) {
    cf_declare(p, l, made->var, bound);
    made->a = cf_node(p, CF_NE, counter, cf_number(p, 0));
    cf_assign(p, body, made->var, cf_node(p, CF_SHR, counter, cf_number(p, 1)));
  } else {
    cf_declare(p, l, made->var, cf_number(p, 0));
    made->a = cf_node(p, CF_LT, counter, bound);
    if (s->level == CF_DIVERGENT && cf_chance(d->r, 30)) {
      made->a = cf_node(p, CF_LAND, cf_node(p, CF_LT, counter, cf_number(p, 4)),
                        divergent_condition(d));
    }
    cf_assign(p, body, made->var, cf_node(p, CF_ADD, counter, cf_number(p, 1)));
  }
  body->first->is_fixed = true;
  return made;
}

static void dress_loop(dress *d, cf_list *l, const cf_shape *s) {
  cf_list body = {0};
  cf_stmt *made =
      s->kind == CF_SHAPE_FOR ? dress_for(d, s) : dress_while(d, l, s, &body);
  uint32_t outer = d->counter;
  d->counter = made->var;
  if (outer != UINT32_MAX) assign_carried(d, &body); /* an inner loop */
  if (outer == UINT32_MAX) mark_carried(d, &body);
  mark(d, &body, false);
  dress_all(d, &body, s->body);
  if (d->counts && !is_closed(s->body)) mark_count(d, &body);
  d->counter = outer;
  made->body = body.first;
  cf_append(l, made);
}

static void dress_jump(dress *d, cf_list *l, const cf_shape *s) {
  cf_program *p = d->p;
  cf_stmt *jump = cf_statement(p, s->kind == CF_SHAPE_BREAK      ? CF_BREAK
                                  : s->kind == CF_SHAPE_CONTINUE ? CF_CONTINUE
                                                                 : CF_RETURN);
  if (!s->is_guarded) {
    cf_append(l, jump);
    return;
  }
  cf_stmt *made = cf_statement(p, CF_IF);
  cf_list body = {0};
  made->a =
      s->level == CF_DIVERGENT ? divergent_condition(d) : uniform_condition(d);
  if (cf_chance(d->r, 30)) mark(d, &body, true);
  if (cf_chance(d->r, 30)) assign_carried(d, &body);
  cf_append(&body, jump);
  made->body = body.first;
  cf_append(l, made);
}

static void dress_if(dress *d, cf_list *l, const cf_shape *s) {
  cf_program *p = d->p;
  cf_stmt *made = cf_statement(p, CF_IF);
  made->a =
      s->level == CF_DIVERGENT ? divergent_condition(d) : uniform_condition(d);
  made->has_else = s->kind == CF_SHAPE_IF_ELSE;
  cf_list then_arm = {0}, else_arm = {0};
  cf_assign(p, &then_arm, p->join, cf_number(p, ++d->site * 77));
  assign_carried(d, &then_arm);
  mark(d, &then_arm, false);
  dress_all(d, &then_arm, s->body);
  if (made->has_else) {
    cf_expr *join = cf_leaf(p, CF_VAR, p->join);
    cf_assign(p, &else_arm, p->join,
              cf_node(p, CF_ADD, cf_node(p, CF_MUL, join, cf_number(p, 3)),
                      cf_number(p, ++d->site)));
    assign_carried(d, &else_arm);
    mark(d, &else_arm, false);
    dress_all(d, &else_arm, s->other);
  }
  made->body = then_arm.first;
  made->other = else_arm.first;
  cf_append(l, made);
}

static void dress_all(dress *d, cf_list *l, const cf_shape *s) {
  for (const cf_shape *at = s; at; at = at->next) {
    switch (at->kind) {
      case CF_SHAPE_IF:
      case CF_SHAPE_IF_ELSE:
        dress_if(d, l, at);
        break;
      case CF_SHAPE_FOR:
      case CF_SHAPE_WHILE:
        dress_loop(d, l, at);
        break;
      default:
        dress_jump(d, l, at);
    }
    if (at->next || !is_closed(s)) {
      bool is_if = at->kind <= CF_SHAPE_IF_ELSE;
      if (is_if) {
        mark_join(d, l);
      } else {
        mark(d, l, !at->next || at->kind <= CF_SHAPE_WHILE);
      }
    }
  }
}

/* Every way that the uniform conditions can go with several rounds of each loop,
 * then other numbers of rounds. */
static void choose_runs(const dress *d) {
  cf_program *p = d->p;
  uint32_t count = d->uniforms < CF_UNIFORMS ? d->uniforms : CF_UNIFORMS;
  uint32_t conditions = count - (uint32_t)__builtin_popcount(d->trips);
  uint32_t ways = conditions > 4 ? 16 : 1u << conditions;
  uint32_t pattern = cf_below(d->r, 3), all = ways + 3 < 6 ? 6 : ways + 3;
  for (uint32_t i = 0; i < all; i++) {
    cf_run *run = &p->runs[p->run_count++];
    uint32_t which = 0;
    for (uint32_t q = 0; q < CF_UNIFORMS; q++) {
      bool is_trips = d->trips >> q & 1;
      uint32_t taken = 1 + cf_chance(d->r, 30);
      if (is_trips) {
        run->uniforms[q] = i < ways ? 2 + cf_below(d->r, 2) : cf_below(d->r, 6);
      } else {
        run->uniforms[q] = i >> which++ & 1 ? taken : 0;
      }
    }
    run->pattern = pattern++ % PATTERNS;
    run->seed = cf_next(d->r);
  }
}

void cf_build_shape(cf_program *p, uint64_t index, uint32_t max_invocations) {
  cf_random r = {cf_hash(index ^ 0x5A5A5A5Au)};
  (void)snprintf(p->name, sizeof p->name, "shape %llu",
                 (unsigned long long)index);
  cf_geometry(p, &r, max_invocations);
  static const style styles[] = {HASH, CONSTANTS, HASH,      HASH,
                                 BOTH, HASH,      CONSTANTS, HASH};
  dress d = {.p = p, .r = &r, .counter = UINT32_MAX, .carried = UINT32_MAX};
  d.style = styles[cf_below(&r, 8)];
  d.counts = cf_chance(&r, 35);
  cf_list body = {0};
  cf_prologue(p, &body);
  d.data_var = cf_variable(p, CF_U32, CF_DIVERGENT, 'd');
  p->vars[d.data_var].is_let = true;
  cf_declare(p, &body, d.data_var,
             cf_node(p, CF_DATA, cf_leaf(p, CF_OWN, 0), NULL));
  const cf_shape *shape = cf_shape_make(p, index);
  if (cf_chance(&r, 50)) {
    d.carried = cf_variable(p, CF_U32, CF_DIVERGENT, 'x');
    cf_declare(p, &body, d.carried, cf_number(p, 3));
  }
  mark(&d, &body, true);
  dress_all(&d, &body, shape);
  p->body = body.first;
  choose_runs(&d);
  if (cf_chance(&r, 35)) cf_add_barriers(p, &r, 40, cf_chance(&r, 10));
}
