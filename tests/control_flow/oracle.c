/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Interprets programs, one invocation after the other: each runs until it waits
 * at a barrier or ends, then the next. It uses neither masks nor vectors, and
 * no code of the library.
 *
 * Statements are flattened to instructions with jumps. An expression is evaluated
 * as the tree that it is. A variable has one place for each invocation: functions
 * do not recurse. */
#include <stdlib.h>
#include <string.h>

#include "program.h"

typedef enum op {
  DO_STATEMENT, /* DECLARE, ASSIGN, STORE or COUNT */
  DO_JUMP,
  DO_UNLESS,    /* jumps if the statement's condition is false */
  DO_FOR_BEGIN, /* jumps if the loop has zero iterations */
  DO_FOR_NEXT,  /* jumps back if there is another round */
  DO_RETURN,
  DO_WRITE, /* first half of an exchange */
  DO_READ,  /* second half */
  DO_OFFER, /* evaluates the value of a broadcast */
  DO_BARRIER,
  DO_BROADCAST, /* waits as a barrier, then takes invocation 0's value */
  DO_GRID_BARRIER
} op;

typedef struct instruction {
  op op;
  uint32_t target;
  const cf_stmt *s;
} instruction;

typedef struct code {
  instruction *list;
  uint32_t count, space;
} code;

typedef enum stop { ENDED, AT_BARRIER, AT_BROADCAST, AT_GRID_BARRIER } stop;

typedef struct invocation {
  uint32_t pc;
  stop stop;
  uint32_t offered;
  uint32_t local[3], group[3], lane, own;
  uint64_t *vars; /* values; bounds of `for` loops after them */
} invocation;

typedef struct machine {
  const cf_program *p;
  const cf_run *run;
  cf_memory *m;
  uint32_t *tile; /* of the workgroup that runs */
  uint32_t data_length;
  uint32_t *data;
  code body, functions[CF_MAX_FUNCTIONS];
  int64_t steps; /* left */
} machine;

/* --- to instructions --------------------------------------------------------------*/

static uint32_t add(code *c, op what, const cf_stmt *s) {
  if (c->count == c->space) {
    c->space = c->space ? c->space * 2 : 64;
    instruction *grown = realloc(c->list, c->space * sizeof *grown);
    if (!grown) abort();
    c->list = grown;
  }
  c->list[c->count] = (instruction){.op = what, .s = s};
  return c->count++;
}

/* Jumps of a loop whose target is not known yet, linked through `target`. */
typedef struct loop {
  uint32_t breaks, continues;
} loop;
enum { NO_JUMP = UINT32_MAX };

static void flatten(code *c, const cf_stmt *s, loop *around);

static void set_targets(code *c, uint32_t first, uint32_t target) {
  while (first != NO_JUMP) {
    uint32_t next = c->list[first].target;
    c->list[first].target = target;
    first = next;
  }
}

static void link_jump(code *c, uint32_t *list) {
  uint32_t at = add(c, DO_JUMP, NULL);
  c->list[at].target = *list;
  *list = at;
}

static void flatten_if(code *c, const cf_stmt *s, loop *around) {
  uint32_t unless = add(c, DO_UNLESS, s);
  flatten(c, s->body, around);
  if (s->has_else) {
    uint32_t end = add(c, DO_JUMP, NULL);
    c->list[unless].target = c->count;
    flatten(c, s->other, around);
    c->list[end].target = c->count;
  } else {
    c->list[unless].target = c->count;
  }
}

static void flatten_loop(code *c, const cf_stmt *s) {
  loop here = {NO_JUMP, NO_JUMP};
  if (s->is_do) { /* skips the first test */
    uint32_t enter = add(c, DO_JUMP, NULL);
    c->list[enter].target = c->count + 1;
  }
  uint32_t begin = add(c, s->kind == CF_FOR ? DO_FOR_BEGIN : DO_UNLESS, s);
  flatten(c, s->body, &here);
  uint32_t next = add(c, s->kind == CF_FOR ? DO_FOR_NEXT : DO_JUMP, s);
  c->list[next].target = s->kind == CF_FOR ? begin + 1 : begin;
  c->list[begin].target = c->count;
  set_targets(c, here.continues, next);
  set_targets(c, here.breaks, c->count);
}

static void flatten_exchange(code *c, const cf_stmt *s) {
  op wait = s->kind == CF_GRID_PASS ? DO_GRID_BARRIER : DO_BARRIER;
  (void)add(c, DO_WRITE, s);
  (void)add(c, wait, s);
  (void)add(c, DO_READ, s);
  (void)add(c, wait, s);
}

static void flatten(code *c, const cf_stmt *s, loop *around) {
  for (; s; s = s->next) {
    if (s->is_gone) continue;
    if (s->form) {
      flatten(c, s->form == 1 ? s->body : s->other, around);
      continue;
    }
    switch (s->kind) {
      case CF_IF:
        flatten_if(c, s, around);
        break;
      case CF_FOR:
      case CF_WHILE:
        flatten_loop(c, s);
        break;
      case CF_BREAK:
      case CF_CONTINUE: /* outside a loop only while a program is reduced; the library refuses it then */
        if (around) {
          link_jump(c,
                    s->kind == CF_BREAK ? &around->breaks : &around->continues);
        }
        break;
      case CF_RETURN:
        (void)add(c, DO_RETURN, s);
        break;
      case CF_EXCHANGE:
      case CF_PASS:
      case CF_GRID_PASS:
        flatten_exchange(c, s);
        break;
      case CF_BROADCAST:
        (void)add(c, DO_OFFER, s);
        (void)add(c, DO_BROADCAST, s);
        break;
      case CF_BARRIER:
        (void)add(c, DO_BARRIER, s);
        break;
      default:
        (void)add(c, DO_STATEMENT, s);
    }
  }
}

/* --- values -----------------------------------------------------------------------*/

static uint32_t evaluate(machine *m, invocation *v, const cf_expr *e);
static uint32_t call(machine *m, invocation *v, uint32_t function, uint32_t a,
                     uint32_t b);

static float as_float(uint64_t bits) {
  uint32_t low = (uint32_t)bits;
  float value;
  memcpy(&value, &low, sizeof value);
  return value;
}

static uint64_t from_float(float value) {
  uint32_t low;
  memcpy(&low, &value, sizeof low);
  return low;
}

static uint32_t read_var(const machine *m, const invocation *v, uint32_t var) {
  uint64_t value = v->vars[var];
  if (m->p->vars[var].type == CF_F32) return (uint32_t)as_float(value);
  return (uint32_t)value;
}

static uint32_t evaluate_leaf(machine *m, invocation *v, const cf_expr *e) {
  switch (e->op) {
    case CF_CONST:
      return e->value;
    case CF_VAR:
    case CF_FLAG:
      return read_var(m, v, e->value);
    case CF_UNIFORM:
      return m->run->uniforms[e->value];
    case CF_LEN:
      return m->data_length;
    case CF_DATA: {
      uint32_t index = evaluate(m, v, e->a);
      return index < m->data_length ? m->data[index] : 0;
    }
    case CF_LANE:
      return v->lane;
    case CF_OWN:
      return v->own;
    case CF_LOCAL_ID:
      return v->local[e->value];
    case CF_GLOBAL_ID:
      return v->group[e->value] * m->p->workgroup[e->value] +
             v->local[e->value];
    case CF_WORKGROUP_ID:
      return v->group[e->value];
    case CF_GRID_SIZE:
      return m->p->grid[e->value];
    default:
      abort();
  }
}

static uint32_t evaluate(machine *m, invocation *v, const cf_expr *e) {
  if (e->form) return evaluate(m, v, e->form == 1 ? e->a : e->b);
  if (e->op < CF_CALL) return evaluate_leaf(m, v, e);
  uint32_t a = evaluate(m, v, e->a);
  switch (e->op) { /* the right side only if it matters */
    case CF_LAND:
      return a ? evaluate(m, v, e->b) : 0;
    case CF_LOR:
      return a ? 1 : evaluate(m, v, e->b);
    case CF_NOT:
      return !a;
    default:
      break;
  }
  uint32_t b = evaluate(m, v, e->b);
  switch (e->op) {
    case CF_CALL:
      return call(m, v, e->value, a, b);
    case CF_ADD:
      return a + b;
    case CF_SUB:
      return a - b;
    case CF_MUL:
      return a * b;
    case CF_REM:
      return b ? a % b : 0;
    case CF_XOR:
      return a ^ b;
    case CF_AND:
      return a & b;
    case CF_OR:
      return a | b;
    case CF_SHL:
      return a << (b & 31);
    case CF_SHR:
      return a >> (b & 31);
    case CF_SELECT:
      return evaluate(m, v, e->c) ? a : b;
    case CF_EQ:
      return a == b;
    case CF_NE:
      return a != b;
    case CF_LT:
      return a < b;
    case CF_LE:
      return a <= b;
    default:
      abort();
  }
}

/* Bits of a u32 in the type of a variable. An i32 is never negative here. */
static uint64_t convert(cf_type type, uint32_t value) {
  return type == CF_F32 ? from_float((float)value) : value;
}

/* --- instructions -----------------------------------------------------------------*/

static uint32_t *slot_of(const machine *m, const invocation *v, uint32_t slot) {
  const cf_program *p = m->p;
  size_t at = p->is_interleaved ? v->own + (size_t)slot * cf_total(p)
                                : (size_t)v->own * p->slot_count + slot;
  return &m->m->out[at];
}

static void statement(machine *m, invocation *v, const cf_stmt *s) {
  uint32_t value = evaluate(m, v, s->a);
  cf_type type = m->p->vars[s->var].type;
  switch (s->kind) {
    case CF_STORE:
      *slot_of(m, v, s->slot) = value;
      break;
    case CF_COUNT:
      m->m->count[s->slot] += value;
      break;
    case CF_ASSIGN:
      if (type == CF_F32) {
        float half = as_float(v->vars[s->var]) * 0.5f;
        v->vars[s->var] = from_float(half + (float)(value & 255));
        break;
      }
      v->vars[s->var] = convert(type, value);
      break;
    default:
      v->vars[s->var] = convert(type, value);
  }
}

static bool goes_on(const cf_stmt *s, uint64_t value, uint64_t bound) {
  switch (s->compare) {
    case CF_BELOW:
      return value < bound;
    case CF_UP_TO:
      return value <= bound;
    case CF_ABOVE:
      return value > bound;
    default:
      return value >= bound;
  }
}

static bool for_begin(machine *m, invocation *v, const cf_stmt *s) {
  uint64_t first = evaluate(m, v, s->a), bound = evaluate(m, v, s->b);
  v->vars[s->var] = first;
  v->vars[m->p->var_count + s->var] = bound;
  return goes_on(s, first, bound);
}

/* Returns true if another iteration follows. A value that does not fit the
 * type ends the loop. */
static bool for_next(const machine *m, invocation *v, const cf_stmt *s) {
  static const uint64_t greatest[] = {
      [CF_U32] = UINT32_MAX, [CF_I32] = INT32_MAX, [CF_U64] = UINT64_MAX};
  uint64_t value = v->vars[s->var];
  cf_type type = m->p->vars[s->var].type;
  if (s->is_geometric) {
    if (value < 1) return false;
    if (s->compare <= CF_UP_TO) {
      if (value > greatest[type] / s->step) return false;
      value *= s->step;
    } else {
      value /= s->step;
    }
  } else if (s->compare <= CF_UP_TO) {
    if (value > greatest[type] - s->step) return false;
    value += s->step;
  } else if (value < s->step) {
    /* An i32 goes below 0, where no bound here is: the loop ends too. */
    return false;
  } else {
    value -= s->step;
  }
  if (!goes_on(s, value, v->vars[m->p->var_count + s->var])) return false;
  v->vars[s->var] = value;
  return true;
}

static void write_half(machine *m, invocation *v, const cf_stmt *s) {
  uint32_t value = evaluate(m, v, s->a);
  if (s->kind == CF_EXCHANGE) {
    m->tile[v->lane] = value;
  } else {
    (s->kind == CF_PASS ? m->m->pass : m->m->wide)[v->own] = value;
  }
}

static void read_half(machine *m, invocation *v, const cf_stmt *s) {
  uint32_t lanes = cf_lanes(m->p), next = (v->lane + s->distance) % lanes;
  uint32_t value = s->kind == CF_EXCHANGE ? m->tile[next]
                   : s->kind == CF_PASS
                       ? m->m->pass[v->own - v->lane + next]
                       : m->m->wide[(v->own + s->distance) % cf_total(m->p)];
  v->vars[s->var] = convert(m->p->vars[s->var].type, value);
}

/* Runs to the next barrier or the end; *value is what a function returns. */
static stop advance(machine *m, invocation *v, const code *c, uint32_t *pc,
                    uint32_t *value) {
  while (*pc < c->count && m->steps-- > 0) {
    const instruction *i = &c->list[(*pc)++];
    switch (i->op) {
      case DO_STATEMENT:
        statement(m, v, i->s);
        break;
      case DO_JUMP:
        *pc = i->target;
        break;
      case DO_UNLESS:
        if (!evaluate(m, v, i->s->a)) *pc = i->target;
        break;
      case DO_FOR_BEGIN:
        if (!for_begin(m, v, i->s)) *pc = i->target;
        break;
      case DO_FOR_NEXT:
        if (for_next(m, v, i->s)) *pc = i->target;
        break;
      case DO_RETURN:
        if (i->s->a) *value = evaluate(m, v, i->s->a);
        *pc = c->count;
        return ENDED;
      case DO_WRITE:
        write_half(m, v, i->s);
        break;
      case DO_READ:
        read_half(m, v, i->s);
        break;
      case DO_OFFER:
        v->offered = evaluate(m, v, i->s->a);
        break;
      case DO_BARRIER:
        return AT_BARRIER;
      case DO_BROADCAST:
        return AT_BROADCAST;
      case DO_GRID_BARRIER:
        return AT_GRID_BARRIER;
    }
  }
  return ENDED;
}

static uint32_t call(machine *m, invocation *v, uint32_t function, uint32_t a,
                     uint32_t b) {
  const cf_function *f = &m->p->functions[function];
  uint32_t pc = 0, value = 0;
  v->vars[f->params[0]] = a;
  v->vars[f->params[1]] = b;
  (void)advance(m, v, &m->functions[function], &pc, &value);
  return value;
}

/* --- workgroups -------------------------------------------------------------------*/

/* Lets all invocations of a workgroup that meet at barriers go on, until they wait
 * for the grid or have ended. */
static cf_outcome run_group(machine *m, invocation *all) {
  uint32_t lanes = cf_lanes(m->p);
  for (;;) {
    for (uint32_t i = 0; i < lanes; i++) {
      uint32_t unused;
      all[i].stop = advance(m, &all[i], &m->body, &all[i].pc, &unused);
      if (m->steps <= 0) return CF_TOO_LONG;
      if (all[i].stop != all[0].stop) return CF_BAD;
      if (all[i].stop != ENDED && all[i].pc != all[0].pc) return CF_BAD;
    }
    if (all[0].stop == AT_BROADCAST) {
      const cf_stmt *s = m->body.list[all[0].pc - 1].s;
      for (uint32_t i = 0; i < lanes; i++) {
        all[i].vars[s->var] = convert(m->p->vars[s->var].type, all[0].offered);
      }
    } else if (all[0].stop != AT_BARRIER) {
      return CF_RAN;
    }
  }
}

static cf_outcome run_groups(machine *m, invocation *all) {
  uint32_t lanes = cf_lanes(m->p), groups = cf_groups(m->p);
  do {
    for (uint32_t g = 0; g < groups; g++) {
      memset(m->tile, 0, lanes * sizeof *m->tile);
      cf_outcome outcome = run_group(m, all + (size_t)g * lanes);
      if (outcome != CF_RAN) return outcome;
      const invocation *here = &all[(size_t)g * lanes];
      if (here->stop != all->stop || here->pc != all->pc) {
        if (here->stop != ENDED || all->stop != ENDED) return CF_BAD;
      }
    }
  } while (all->stop == AT_GRID_BARRIER);
  return CF_RAN;
}

static void place(const cf_program *p, invocation *v, uint32_t own) {
  const uint32_t *w = p->workgroup, *g = p->grid;
  uint32_t lanes = cf_lanes(p), group = own / lanes;
  v->own = own;
  v->lane = own % lanes;
  v->local[0] = v->lane % w[0];
  v->local[1] = v->lane / w[0] % w[1];
  v->local[2] = v->lane / w[0] / w[1];
  v->group[0] = group % g[0];
  v->group[1] = group / g[0] % g[1];
  v->group[2] = group / g[0] / g[1];
}

void cf_memory_begin(const cf_program *p, cf_memory *m) {
  size_t total = cf_total(p);
  m->out = calloc(total * (p->slot_count ? p->slot_count : 1), 4);
  m->pass = calloc(total, 4);
  m->wide = calloc(total, 4);
  m->count = calloc(CF_COUNTERS, 4);
  if (!m->out || !m->pass || !m->wide || !m->count) abort();
}

void cf_memory_end(cf_memory *m) {
  free(m->out);
  free(m->pass);
  free(m->wide);
  free(m->count);
}

cf_outcome cf_interpret(const cf_program *p, const cf_run *run,
                        cf_memory *mem) {
  uint32_t total = cf_total(p), places = 2 * p->var_count;
  machine m = {.p = p, .run = run, .m = mem, .steps = 4000000};
  m.data_length = total - p->missing;
  m.data = malloc(((size_t)m.data_length + 1) * 4);
  m.tile = calloc(cf_lanes(p), 4);
  invocation *all = calloc(total, sizeof *all);
  uint64_t *vars = calloc((size_t)total * places, sizeof *vars);
  if (!m.data || !m.tile || !all || !vars) abort();
  for (uint32_t i = 0; i < m.data_length; i++) {
    m.data[i] = cf_data_at(p, run, i);
  }
  for (uint32_t i = 0; i < total; i++) {
    place(p, &all[i], i);
    all[i].vars = vars + (size_t)i * places;
  }
  flatten(&m.body, p->body, NULL);
  for (uint32_t i = 0; i < p->function_count; i++) {
    flatten(&m.functions[i], p->functions[i].body, NULL);
  }
  cf_outcome outcome = run_groups(&m, all);
  for (uint32_t i = 0; i < p->function_count; i++) free(m.functions[i].list);
  free(m.body.list);
  free(m.data);
  free(m.tile);
  free(all);
  free(vars);
  return outcome;
}
