/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What an analysis knows about each local, and what the arms of an `if` make of
 * it. Changes are logged, so that taking them back and joining two arms costs
 * what was changed, not what there is.
 *
 * A file that includes this has defined before: `fact`, what is known of a
 * local, and `fact join(fact, fact)`, what is known when either may hold. */
#ifndef VYRE_ANALYZE_ENV_H
#define VYRE_ANALYZE_ENV_H

#include "base/memory.h"

/* A local got another fact: what it was before, and for the arm of an `if` that
 * was left, what it was at its end. */
typedef struct change {
  uint32_t local;
  bool is_last; /* of its local in the arm: `at_end` counts */
  fact before, at_end;
} change;

typedef struct env {
  vyre_allocator allocator;
  fact *locals;
  uint32_t *seen; /* per local: stamp of the merge that saw it; zeroed */
  uint32_t stamp;
  uint32_t nesting; /* of ifs and loops: outside nothing is taken back */
  change *changes;
  size_t change_count, change_capacity;
  bool no_memory;
} env;

static void env_finish(env *e) {
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

/* An if or a loop begins, and ends. */
static void env_open(env *e) {
  e->nesting++;
}

static void env_close(env *e) {
  if (--e->nesting == 0) e->change_count = 0;
}

/* All locals as they were before changes [begin, end). */
static void env_take_back(env *e, size_t begin, size_t end) {
  for (size_t i = end; i > begin; i--) {
    e->locals[e->changes[i - 1].local] = e->changes[i - 1].before;
  }
}

/* As above, and forgets the changes. */
static void env_rewind(env *e, size_t begin) {
  env_take_back(e, begin, e->change_count);
  e->change_count = begin;
}

/* The first arm of an `if` ends: remembers its locals, takes its changes back. */
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

/* Control comes from both arms: the first one's changes are [begin, middle), the
 * second one's all that follow. */
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

/* Control comes from the first arm alone. */
static void env_take_first_arm(env *e, size_t begin, size_t middle) {
  env_take_back(e, middle, e->change_count);
  for (size_t i = begin; i < middle; i++) {
    if (e->changes[i].is_last) {
      e->locals[e->changes[i].local] = e->changes[i].at_end;
    }
  }
}

#endif
