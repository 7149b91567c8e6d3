/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Facts of an analysis about each local, and how the arms of an `if` change
 * them. Changes are logged, so that undoing them and joining two arms costs
 * time proportional to the changes, not to the number of locals.
 *
 * The including file first defines `fact`, the knowledge about a local, and
 * `fact join(fact, fact)`, the knowledge if either may hold. */
#ifndef VYRE_ANALYZE_ENV_H
#define VYRE_ANALYZE_ENV_H

#include "base/memory.h"

/* Logged change of a local: its fact before, and at the end of an `if` arm. */
typedef struct change {
  uint32_t local;
  bool is_last; /* last change of its local in the arm: `at_end` is valid */
  fact before, at_end;
} change;

typedef struct env {
  vyre_allocator allocator;
  fact *locals;
  uint32_t *seen; /* per local: number of the merge that saw it; starts at 0 */
  uint32_t stamp;
  uint32_t nesting; /* open ifs and loops; 0: changes need no log */
  change *changes;
  size_t change_count, change_capacity;
  bool no_memory;
} env;

static void env_deinit(env *e) {
  vyre__reserve_free(e->allocator, &e->changes, &e->change_capacity,
                     sizeof *e->changes);
}

static void env_set(env *e, uint32_t local, fact value) {
  if (e->nesting > 0) {
    if (!vyre__reserve(e->allocator, &e->changes, &e->change_capacity,
                       e->change_count + 1, sizeof *e->changes, false)) {
      e->no_memory = true;
      return;
    }
    e->changes[e->change_count++] =
        (change){.local = local, .before = e->locals[local]};
  }
  e->locals[local] = value;
}

/* Begins and ends an if or a loop. */
static void env_open(env *e) {
  e->nesting++;
}

static void env_close(env *e) {
  if (--e->nesting == 0) e->change_count = 0;
}

/* Restores all locals to their facts before changes [begin, end). */
static void env_take_back(env *e, size_t begin, size_t end) {
  for (size_t i = end; i > begin; i--) {
    e->locals[e->changes[i - 1].local] = e->changes[i - 1].before;
  }
}

/* Undoes the changes from @p begin on and drops them from the log. */
static void env_rewind(env *e, size_t begin) {
  env_take_back(e, begin, e->change_count);
  e->change_count = begin;
}

/* Ends the first arm of an `if`: stores its facts and undoes its changes. */
static void env_leave_arm(env *e, size_t begin, size_t end) {
  uint32_t stamp = ++e->stamp;
  for (size_t i = end; i > begin; i--) {
    change *c = &e->changes[i - 1];
    c->is_last = e->seen[c->local] != stamp;
    e->seen[c->local] = stamp;
    c->at_end = e->locals[c->local];
  }
  env_take_back(e, begin, end);
}

/* Joins two arms that both reach the end. The changes of the first are
 * [begin, middle), those of the second follow. */
static void env_join_arms(env *e, size_t begin, size_t middle) {
  uint32_t stamp = ++e->stamp;
  for (size_t i = begin; i < middle; i++) {
    change *c = &e->changes[i];
    if (!c->is_last) continue;
    e->locals[c->local] = join(e->locals[c->local], c->at_end);
    e->seen[c->local] = stamp;
  }
  for (size_t i = middle; i < e->change_count; i++) {
    change *c = &e->changes[i]; /* changed in the second arm only */
    if (e->seen[c->local] == stamp) continue;
    e->locals[c->local] = join(e->locals[c->local], c->before);
    e->seen[c->local] = stamp;
  }
}

/* Keeps the facts of the first arm, because control does not reach the end of
 * the second. */
static void env_take_first_arm(env *e, size_t begin, size_t middle) {
  env_take_back(e, middle, e->change_count);
  for (size_t i = begin; i < middle; i++) {
    if (e->changes[i].is_last) {
      e->locals[e->changes[i].local] = e->changes[i].at_end;
    }
  }
}

#endif
