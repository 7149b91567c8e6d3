/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Puts barriers into a program, and exchanges of values around them, where the
 * language allows them: where all invocations of a workgroup arrive or none.
 *
 * The level of a place says how many invocations agree on reaching it. It is that
 * of the conditions around it, and of jumps before it that may have been taken:
 * the rest of a sequence has at least the level of each jump in it. A `continue`
 * ends its effect with the body of its loop. A `break` or `return` has its effect
 * from the beginning of the body, as the next round is without those that left;
 * that of a `return` goes on after the loop. */
#include "program.h"

typedef struct effects {
  int stays;   /* level of a `break` or `continue` of the innermost loop */
  int breaks;  /* of a `break` alone */
  int returns; /* of a `return`; all -1: no return */
} effects;

typedef struct adding {
  cf_program *p;
  cf_random *r;
  uint32_t percent;
  bool with_grid;
  uint32_t left; /* how many more may be added */
  uint32_t grid_left;
} adding;

static int max(int a, int b) {
  return a > b ? a : b;
}

static void join(effects *e, effects other) {
  e->stays = max(e->stays, other.stays);
  e->breaks = max(e->breaks, other.breaks);
  e->returns = max(e->returns, other.returns);
}

static effects walk(adding *add, cf_stmt **list, int level, bool is_top);

/* Looks at a sequence without adding anything. */
static effects look(adding *add, cf_stmt **list, int level) {
  uint32_t left = add->left;
  add->left = 0;
  effects e = walk(add, list, level, false);
  add->left = left;
  return e;
}

static bool is_plain_bound(const cf_expr *e) {
  return e->op == CF_CONST || e->op == CF_UNIFORM || e->op == CF_LEN;
}

static effects walk_loop(adding *add, cf_stmt *s, int level, bool is_top) {
  int bound = s->a->level;
  if (s->b) bound = max(bound, (int)s->b->level);
  int inside = max(level, bound);
  effects e = look(add, &s->body, inside);
  inside = max(inside, max(e.breaks, e.returns));
  bool is_plain = s->kind == CF_FOR && !s->is_geometric &&
                  is_plain_bound(s->a) && is_plain_bound(s->b);
  e = walk(add, &s->body, inside, is_top && is_plain);
  return (effects){-1, -1, e.returns};
}

static cf_stmt *exchange(adding *add, int level, bool is_top) {
  cf_program *p = add->p;
  static const cf_kind kinds[] = {CF_EXCHANGE, CF_EXCHANGE,  CF_PASS,
                                  CF_BARRIER,  CF_BROADCAST, CF_ASSIGN};
  cf_kind kind = kinds[cf_below(add->r, 6)];
  if (add->with_grid && add->grid_left && is_top && level == CF_GRID &&
      cf_chance(add->r, 30)) {
    kind = CF_GRID_PASS;
    add->grid_left--;
  }
  cf_stmt *s = cf_statement(p, kind);
  cf_expr *site = cf_number(p, 5000 + cf_below(add->r, 1000));
  s->distance = 1 + cf_below(add->r, 9);
  s->var = p->join;
  s->a = cf_node(p, CF_ADD, cf_leaf(p, CF_VAR, p->acc), site);
  p->has_tile |= kind == CF_EXCHANGE;
  p->has_pass |= kind == CF_PASS;
  p->has_wide |= kind == CF_GRID_PASS;
  if (kind == CF_BROADCAST) s->var = p->agreed;
  if (kind == CF_ASSIGN) {
    s->var = p->agreed;
    s->a = cf_node(p, CF_ADD, cf_leaf(p, CF_UNIFORM, 1),
                   cf_leaf(p, CF_VAR, p->agreed));
  }
  return s;
}

static void add_here(adding *add, cf_stmt **at, int level, bool is_top) {
  if (level == CF_DIVERGENT || !add->left || !cf_chance(add->r, add->percent)) {
    return;
  }
  add->left--;
  cf_list made = {0};
  cf_append(&made, exchange(add, level, is_top));
  if (cf_chance(add->r, 60)) { /* what was read becomes visible */
    cf_mix(add->p, &made, cf_leaf(add->p, CF_VAR, add->p->join));
  }
  *made.end = *at;
  *at = made.first;
}

/* Returns true if the sequence starts with the counter of a `while`, which
 * stays first. */
static cf_stmt **after_fixed(cf_stmt **at) {
  while (*at && ((*at)->is_fixed || (*at)->kind == CF_DECLARE)) {
    at = &(*at)->next;
  }
  return at;
}

static bool is_jump(const cf_stmt *s) {
  return s->kind == CF_BREAK || s->kind == CF_CONTINUE || s->kind == CF_RETURN;
}

/* Returns true if the end of a sequence is never reached; the language
 * refuses code there. */
static bool is_closed(const cf_stmt *s) {
  while (s && s->next) s = s->next;
  if (!s) return false;
  return is_jump(s) || (s->kind == CF_IF && s->has_else && is_closed(s->body) &&
                        is_closed(s->other));
}

static effects walk(adding *add, cf_stmt **list, int level, bool is_top) {
  effects all = {-1, -1, -1};
  cf_stmt **at = after_fixed(list);
  bool is_first = true;
  while (*at) {
    cf_stmt *s = *at;
    int here = max(level, max(all.stays, all.returns));
    bool is_loop = s->kind == CF_FOR || s->kind == CF_WHILE;
    /* Next to control flow, not next to every assignment. */
    if (is_first || is_loop || s->kind == CF_IF || is_jump(s)) {
      add_here(add, at, here, is_top);
    }
    is_first = false;
    if (is_loop) {
      join(&all, walk_loop(add, s, here, is_top));
    } else if (s->kind == CF_IF) {
      int inside = max(here, (int)s->a->level);
      effects arm = walk(add, &s->body, inside, false);
      join(&all, arm);
      if (s->has_else) { /* which counts as behind jumps of the first arm */
        inside = max(inside, max(arm.stays, arm.returns));
        join(&all, walk(add, &s->other, inside, false));
      }
    } else if (s->kind == CF_RETURN) {
      all.returns = max(all.returns, here);
    } else if (is_jump(s)) {
      all.stays = max(all.stays, here);
      if (s->kind == CF_BREAK) all.breaks = max(all.breaks, here);
    }
    while (*at != s) at = &(*at)->next;
    at = &s->next;
  }
  if (!is_closed(*list)) {
    add_here(add, at, max(level, max(all.stays, all.returns)), is_top);
  }
  return all;
}

void cf_add_barriers(cf_program *p, cf_random *r, uint32_t percent,
                     bool with_grid) {
  adding add = {.p = p, .r = r, .percent = percent, .with_grid = with_grid};
  add.left = 8;
  add.grid_left = 2;
  (void)walk(&add, &p->body, CF_GRID, true);
  cf_list end = {0};
  cf_store(p, &end, cf_leaf(p, CF_VAR, p->agreed));
  cf_stmt **last = &p->body;
  while (*last) last = &(*last)->next;
  if (!is_closed(p->body)) *last = end.first;
}
