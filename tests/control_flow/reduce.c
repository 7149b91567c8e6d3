/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Makes a program that differs smaller, as long as it still differs: greedily, one
 * statement or operand at a time, until nothing more can go. A program that the
 * library refuses, or the oracle cannot run, does not differ. */
#include "program.h"

typedef struct reducing {
  cf_program *p;
  const cf_target *target;
  cf_difference *d;
  int run;
  bool has_changed;
  unsigned left; /* trials */
} reducing;

static bool differs(reducing *r) {
  cf_counts counts = {0};
  cf_difference d = {.run = r->d->run};
  if (r->left == 0 || r->p->missing >= cf_total(r->p)) return false;
  r->left--;
  if (cf_compare_all(r->p, r->target, 1, r->run, &counts, &d) != CF_DIFFERS) {
    return false;
  }
  *r->d = d;
  r->has_changed = true;
  return true;
}

static void reduce_expr(reducing *r, cf_expr *e) {
  if (!e || r->left == 0) return;
  if (e->form) {
    reduce_expr(r, e->form == 1 ? e->a : e->b);
    return;
  }
  bool is_plain = e->op >= CF_ADD && e->op <= CF_SELECT;
  bool is_logic = e->op == CF_LAND || e->op == CF_LOR;
  if (is_plain || is_logic || e->op == CF_NOT || e->op == CF_CALL) {
    e->form = 1;
    if (differs(r)) return;
    if (e->b) {
      e->form = 2;
      if (differs(r)) return;
    }
    e->form = 0;
  }
  reduce_expr(r, e->a);
  reduce_expr(r, e->b);
  reduce_expr(r, e->c);
}

static void reduce_block(reducing *r, cf_stmt *s) {
  for (; s && r->left; s = s->next) {
    if (s->is_gone) continue;
    if (s->form) {
      reduce_block(r, s->form == 1 ? s->body : s->other);
      continue;
    }
    if (!s->is_fixed) {
      s->is_gone = true;
      if (differs(r)) continue;
      s->is_gone = false;
    }
    if (s->body) {
      s->form = 1;
      if (differs(r)) continue;
      s->form = 0;
    }
    if (s->has_else) {
      s->form = 2;
      if (differs(r)) continue;
      s->form = 0;
      s->has_else = false;
      if (!differs(r)) s->has_else = true;
    }
    reduce_block(r, s->body);
    if (s->has_else) reduce_block(r, s->other);
  }
}

static void reduce_values(reducing *r, cf_stmt *s) {
  for (; s && r->left; s = s->next) {
    if (s->is_gone) continue;
    if (!s->form && !s->is_fixed) {
      reduce_expr(r, s->a);
      reduce_expr(r, s->b);
    }
    reduce_values(r, s->body);
    if (s->has_else) reduce_values(r, s->other);
  }
}

/* One workgroup, then fewer invocations. */
static void reduce_geometry(reducing *r) {
  cf_program *p = r->p;
  for (int axis = 2; axis >= 0; axis--) {
    uint32_t before = p->grid[axis];
    p->grid[axis] = 1;
    if (before != 1 && !differs(r)) p->grid[axis] = before;
  }
  for (int axis = 2; axis >= 0; axis--) {
    for (uint32_t size = 1; size < p->workgroup[axis]; size *= 2) {
      uint32_t before = p->workgroup[axis];
      p->workgroup[axis] = size;
      if (!differs(r)) p->workgroup[axis] = before;
    }
  }
  uint32_t missing = p->missing;
  p->missing = 0;
  if (missing && !differs(r)) p->missing = missing;
}

void cf_reduce(cf_program *p, const cf_target *target, cf_difference *d) {
  reducing r = {.p = p, .target = target, .d = d, .run = (int)d->run};
  r.left = 1000;
  do {
    r.has_changed = false;
    reduce_block(&r, p->body);
    for (uint32_t i = 0; i < p->function_count; i++) {
      reduce_block(&r, p->functions[i].body);
    }
    reduce_geometry(&r);
    reduce_values(&r, p->body);
  } while (r.has_changed && r.left);
}
