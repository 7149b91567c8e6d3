/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/ranges.h"

#include <string.h>

#include "analyze/racy_guards.h"
#include "analyze/symbolic.h"
#include "analyze/walk.h"
#include "base/memory.h"
#include "base/status.h"

/* Fact about a value: its interval, and the buffers whose length it is below
 * (< len) or at most (<= len), one bit for each of the first 64 buffers. */
typedef struct fact {
  vyre__interval range;
  uint64_t below, within;
  bool is_power; /* at most one bit is set: 0 or a power of two */
} fact;

static fact join(fact a, fact b) {
  return (fact){vyre__interval_join(a.range, b.range), a.below & b.below,
                a.within & b.within, a.is_power && b.is_power};
}

#include "analyze/env.h"

/* Analysis state. Besides locals, facts exist for other unchanging operands
 * of guards: ids, lengths, scalar uniforms. These "subjects" follow the
 * locals: 9 for the axes of three ids, then two per buffer. */
typedef struct walker {
  const vyre_program *program;
  const uint32_t *workgroup;
  env env;
  vyre__id *definition; /* per local: value of an immutable one */
  vyre__range *nodes;
  uint8_t *flags;
  const uint8_t *unsteady; /* see vyre__ranges */
  unsigned budget; /* conditions that the current guard may still follow */
  unsigned loops;  /* enclosing loops whose bodies are walked several times */
  bool thorough;   /* includes analyses that take more time */
  bool has_doubts; /* an access was not proven */
  bool quiet;      /* re-evaluation: records nothing */
  bool reachable;  /* control reaches the end of the last statement */
} walker;

enum { NO_SUBJECT = UINT32_MAX };

static uint32_t local_count(const walker *w) {
  return w->program->functions[0].local_count;
}

static uint32_t axis_subject(const walker *w, vyre__op op, uint8_t axis) {
  uint32_t id = op == VYRE__OP_GLOBAL_ID ? 0 : op == VYRE__OP_LOCAL_ID ? 1 : 2;
  return local_count(w) + id * 3 + axis;
}

static uint32_t buffer_subject(const walker *w, uint32_t buffer, bool is_len) {
  return local_count(w) + 9 + buffer * 2 + is_len;
}

static uint32_t subject_of(const walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  switch ((vyre__op)node->op) {
    case VYRE__OP_LOCAL:
      return node->a;
    case VYRE__OP_GLOBAL_ID:
    case VYRE__OP_LOCAL_ID:
    case VYRE__OP_WORKGROUP_ID:
      return axis_subject(w, node->op, node->aux);
    case VYRE__OP_LEN:
      return buffer_subject(w, node->a, true);
    case VYRE__OP_LOAD: {
      const vyre__node *index = &w->program->nodes[node->b];
      if (index->op == VYRE__OP_LITERAL && vyre__literal(index) == 0 &&
          w->program->buffers[node->a].kind == VYRE_MEMORY_UNIFORM) {
        return buffer_subject(w, node->a, false);
      }
      return NO_SUBJECT;
    }
    default:
      return NO_SUBJECT;
  }
}

/* --- values ----------------------------------------------------------------*/

static fact anything(vyre_type type) {
  return (fact){.range = vyre__interval_full(type)};
}

static uint64_t buffer_bit(uint32_t buffer) {
  return buffer < 64 ? (uint64_t)1 << buffer : 0;
}

static fact element_fact(vyre_element element) {
  fact f = anything(vyre__element_type(element));
  switch (element) {
    case VYRE_ELEMENT_U8:
    case VYRE_ELEMENT_BYTES:
      f.range = (vyre__interval){0, UINT8_MAX};
      break;
    case VYRE_ELEMENT_I8:
      f.range = (vyre__interval){INT8_MIN, INT8_MAX};
      break;
    case VYRE_ELEMENT_U16:
      f.range = (vyre__interval){0, UINT16_MAX};
      break;
    case VYRE_ELEMENT_I16:
      f.range = (vyre__interval){INT16_MIN, INT16_MAX};
      break;
    default:
      break;
  }
  return f;
}

/* Dispatches whose ids do not fit u32 are rejected. */
static fact axis_fact(const walker *w, vyre__op op, uint8_t axis) {
  vyre__wide size = w->workgroup[axis];
  vyre__wide all = (vyre__wide)UINT32_MAX + 1;
  fact f = anything(VYRE_TYPE_U32);
  if (op == VYRE__OP_LOCAL_ID) f.range.hi = size - 1;
  if (op == VYRE__OP_WORKGROUP_ID) f.range.hi = all / size - 1;
  if (op == VYRE__OP_WORKGROUP_SIZE) f.range = (vyre__interval){size, size};
  if (op == VYRE__OP_GRID_SIZE) f.range.lo = 1;
  return f;
}

static fact lane_fact(const walker *w, vyre__op op) {
  const uint32_t *size = w->workgroup;
  const vyre__wide count = (vyre__wide)size[0] * size[1] * size[2];
  fact f = anything(VYRE_TYPE_U32);
  f.range.hi =
      op == VYRE__OP_LANE ? VYRE__SUBGROUP - 1 : (count - 1) / VYRE__SUBGROUP;
  return f;
}

static fact length_fact(const walker *w, uint32_t buffer) {
  uint32_t count = w->program->buffers[buffer].count;
  fact f = {.within = buffer_bit(buffer)};
  f.range = count ? (vyre__interval){count, count}
                  : vyre__interval_full(VYRE_TYPE_U32);
  return f;
}

/* Finds the lengths that bound the result of a binary operation, if operands
 * are not negative and the result did not wrap. */
static void keep_lengths(vyre__op op, fact a, fact b, fact *out) {
  if (a.range.lo < 0 || b.range.lo < 0) return;
  bool grew = out->range.hi > a.range.hi;
  switch (op) {
    case VYRE__OP_MIN:
    case VYRE__OP_AND:
      out->below = a.below | b.below;
      out->within = a.within | b.within;
      break;
    case VYRE__OP_MAX:
      out->below = a.below & b.below;
      out->within = a.within & b.within;
      break;
    case VYRE__OP_SUB:
      if (a.range.lo < b.range.hi) break; /* may wrap */
      out->within = a.within;
      out->below = a.below | (b.range.lo > 0 ? a.within : 0);
      break;
    case VYRE__OP_ADD:
      if (b.range.hi > 1 || out->range.hi != a.range.hi + b.range.hi) break;
      out->below = b.range.hi == 0 ? a.below : 0;
      out->within = a.below | (b.range.hi == 0 ? a.within : 0);
      break;
    case VYRE__OP_DIV:
      if (b.range.lo < 1) break;
      /* fall through */
    case VYRE__OP_REM:
    case VYRE__OP_SHR:
      if (grew) break;
      out->below = a.below;
      out->within = a.within;
      break;
    default:
      break;
  }
}

/* Returns true if the result has at most one bit, as its operands have.
 * Products and shifts drop bits beyond the type. */
static bool keeps_power(vyre__op op, fact a, fact b) {
  switch (op) {
    case VYRE__OP_MUL:
    case VYRE__OP_MIN:
    case VYRE__OP_MAX:
      return a.is_power && b.is_power;
    case VYRE__OP_DIV: /* by 0 gives all ones */
      return a.is_power && b.is_power && a.range.lo >= 0 && b.range.lo >= 1;
    case VYRE__OP_SHL:
      return a.is_power;
    case VYRE__OP_SHR: /* copies the sign */
      return a.is_power && a.range.lo >= 0;
    case VYRE__OP_AND:
      return a.is_power || b.is_power;
    default:
      return false;
  }
}

static fact binary_fact(const vyre__node *node, vyre_type from, fact a,
                        fact b) {
  fact f = {.range = vyre__interval_binary(node->op, from, node->type, a.range,
                                           b.range)};
  if (vyre__has_interval(node->type) && node->type != VYRE_TYPE_BOOL) {
    keep_lengths(node->op, a, b, &f);
    f.is_power = keeps_power(node->op, a, b);
  }
  f.within |= f.below;
  return f;
}

static fact unary_fact(const vyre__node *node, vyre_type from, fact a) {
  fact f = {.range = vyre__interval_unary(node->op, from, node->type, a.range)};
  bool converts = node->op == VYRE__OP_CAST || node->op == VYRE__OP_BITCAST;
  bool keeps =
      node->op == VYRE__OP_UNIFORM ||
      (converts && vyre__has_interval(from) && node->type != VYRE_TYPE_BOOL &&
       vyre__interval_inside(a.range, vyre__interval_full(node->type)));
  if (keeps && vyre__has_interval(node->type)) {
    f.below = a.below;
    f.within = a.within;
    f.is_power = a.is_power;
  }
  return f;
}

static fact walk_value(walker *w, vyre__id id);
static void suppose(walker *w, vyre__id condition, bool holds);

/* Records whether an index may be, or must be, in bounds. */
static void check_access(walker *w, vyre__id id, uint32_t buffer, fact index) {
  uint32_t count = w->program->buffers[buffer].count;
  if (w->quiet) return;
  w->flags[id] = 0;
  const vyre__id at = w->program->nodes[id].b;
  if (w->program->nodes[at].op == VYRE__OP_AT) {
    w->flags[id] = w->flags[at] & VYRE__RANGE_INSIDE;
    if (!w->flags[id]) w->has_doubts = true;
    return;
  }
  fact length = w->env.locals[buffer_subject(w, buffer, true)];
  bool below =
      index.range.hi < length.range.lo || (index.below & buffer_bit(buffer));
  if (index.range.lo >= 0 && below) {
    w->flags[id] |= VYRE__RANGE_INSIDE;
  } else {
    w->has_doubts = true;
  }
  if (index.below & ~buffer_bit(buffer)) w->flags[id] |= VYRE__RANGE_ANOTHER;
  if (index.range.hi < 0 || (count && index.range.lo >= count)) {
    w->flags[id] |= VYRE__RANGE_OUTSIDE;
  }
}

/* Returns the fact of one arm of a select. Both arms are evaluated, but only
 * the chosen value counts; if it is a plain subject, the condition refines
 * it. */
static fact chosen_arm(walker *w, vyre__id condition, vyre__id arm, bool holds,
                       fact plain) {
  uint32_t subject = subject_of(w, arm);
  if (subject == NO_SUBJECT) return plain;
  size_t begin = w->env.change_count;
  env_open(&w->env);
  suppose(w, condition, holds);
  fact f = w->env.locals[subject];
  env_rewind(&w->env, begin);
  env_close(&w->env);
  return f;
}

static fact walk_select(walker *w, const vyre__node *node) {
  fact c = walk_value(w, node->a);
  fact yes = walk_value(w, node->b), no = walk_value(w, node->c);
  if (!vyre__has_interval(node->type)) return yes;
  if (c.range.lo == 1) return yes;
  if (c.range.hi == 0) return no;
  return join(chosen_arm(w, node->a, node->b, true, yes),
              chosen_arm(w, node->a, node->c, false, no));
}

/* Assumes the condition of guard @p id, unless it is racy. */
static void suppose_guard(walker *w, vyre__id id, bool holds) {
  if (vyre__is_racy(w->unsteady, id, VYRE__RACY_GUARD)) return;
  suppose(w, w->program->nodes[id].a, holds);
}

/* Evaluates && and ||: the right side is evaluated under the result of the
 * left side. */
static fact walk_both(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  fact left = walk_value(w, node->a);
  size_t begin = w->env.change_count;
  env_open(&w->env);
  suppose_guard(w, id, node->op == VYRE__OP_LAND);
  fact right = walk_value(w, node->b);
  env_rewind(&w->env, begin);
  env_close(&w->env);
  return binary_fact(node, VYRE_TYPE_BOOL, left, right);
}

/* Evaluates a side of c ? x : y under its condition. */
static fact walk_side(walker *w, vyre__id id, vyre__id side, bool holds) {
  size_t begin = w->env.change_count;
  env_open(&w->env);
  suppose_guard(w, id, holds);
  fact f = walk_value(w, side);
  env_rewind(&w->env, begin);
  env_close(&w->env);
  return f;
}

static fact walk_conditional(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  fact c = walk_value(w, node->a);
  fact yes = walk_side(w, id, node->b, true);
  fact no = walk_side(w, id, node->c, false);
  if (!vyre__has_interval(node->type)) return yes;
  if (c.range.lo == 1) return yes;
  if (c.range.hi == 0) return no;
  return join(yes, no);
}

static fact walk_atomic(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  vyre__id storage[3];
  const vyre__id *ids;
  uint32_t count = vyre__children(w->program, node, storage, &ids);
  fact index = walk_value(w, node->b);
  for (uint32_t i = 1; i < count; i++) walk_value(w, ids[i]);
  check_access(w, id, node->a, index);
  return anything(node->type);
}

/* Walks the index of an access with dimensions, and records whether each index
 * is below its extent. */
static fact walk_at(walker *w, const vyre__node *node, vyre__id id) {
  const uint32_t *list = w->program->lists + node->a;
  bool inside = true;
  for (uint32_t i = 0; i + 1 < node->b; i += VYRE__AT_STEP) {
    const fact index = walk_value(w, list[i]);
    const fact extent = walk_value(w, list[i + 1]);
    const vyre__node *length = &w->program->nodes[list[i + 1]];
    (void)walk_value(w, list[i + 2]);
    bool below = index.range.hi < extent.range.lo;
    if (length->op == VYRE__OP_LEN) {
      below |= (index.below & buffer_bit(length->a)) != 0;
    }
    inside = inside && below && index.range.lo >= 0;
  }
  (void)walk_value(w, list[node->b - 1]);
  if (!w->quiet) w->flags[id] = inside ? VYRE__RANGE_INSIDE : 0;
  return anything(node->type);
}

static fact walk_other(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  vyre__id storage[3];
  const vyre__id *ids;
  uint32_t count = vyre__children(w->program, node, storage, &ids);
  fact f[3] = {{.range = {0, 0}}};
  for (uint32_t i = 0; i < count; i++) {
    fact operand = walk_value(w, ids[i]);
    if (i < 3) f[i] = operand;
  }
  uint8_t form = vyre__ops[node->op].form;
  if (form == VYRE__FORM_UNARY && node->op != VYRE__OP_PUSH &&
      node->op != VYRE__OP_IN_WINDOW) {
    return unary_fact(node, w->program->nodes[node->a].type, f[0]);
  }
  if (form == VYRE__FORM_BINARY) {
    return binary_fact(node, w->program->nodes[node->a].type, f[0], f[1]);
  }
  if (node->op == VYRE__OP_EXTRACT) {
    return (fact){.range = vyre__interval_extract((vyre_type)node->type,
                                                  f[0].range, f[2].range)};
  }
  return anything(node->type);
}

static fact value_of(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  switch ((vyre__op)node->op) {
    case VYRE__OP_LITERAL: {
      vyre__wide v = vyre__interval_value(node->type, vyre__literal(node));
      return (fact){.range = {v, v}, .is_power = v >= 0 && (v & (v - 1)) == 0};
    }
    case VYRE__OP_LOAD: {
      fact index = walk_value(w, node->b);
      check_access(w, id, node->a, index);
      uint32_t subject = subject_of(w, id);
      if (subject != NO_SUBJECT) return w->env.locals[subject];
      return element_fact(vyre__accessed_element(w->program, node));
    }
    case VYRE__OP_LOCAL:
    case VYRE__OP_LEN:
    case VYRE__OP_GLOBAL_ID:
    case VYRE__OP_LOCAL_ID:
    case VYRE__OP_WORKGROUP_ID:
      return w->env.locals[subject_of(w, id)];
    case VYRE__OP_LANE:
    case VYRE__OP_SUBGROUP_ID:
      return lane_fact(w, node->op);
    case VYRE__OP_WORKGROUP_SIZE:
    case VYRE__OP_GRID_SIZE:
      return axis_fact(w, node->op, node->aux);
    case VYRE__OP_AT:
      return walk_at(w, node, id);
    case VYRE__OP_SELECT:
      return walk_select(w, node);
    case VYRE__OP_COND:
      return walk_conditional(w, id);
    case VYRE__OP_LAND:
    case VYRE__OP_LOR:
      return walk_both(w, id);
    default:
      break;
  }
  if (vyre__ops[node->op].flags & VYRE__OPF_ATOMICS) return walk_atomic(w, id);
  return walk_other(w, id);
}

static fact walk_value(walker *w, vyre__id id) {
  fact f = value_of(w, id);
  if (!w->quiet) {
    w->nodes[id] = (vyre__range){(uint64_t)f.range.lo, (uint64_t)f.range.hi};
    w->flags[id] &= (uint8_t)~VYRE__RANGE_POWER;
    if (f.is_power) w->flags[id] |= VYRE__RANGE_POWER;
  }
  return f;
}

/* --- guards ----------------------------------------------------------------*/

/* Evaluates a value again without recording anything. */
static fact again(walker *w, vyre__id id) {
  bool quiet = w->quiet;
  w->quiet = true;
  fact f = walk_value(w, id);
  w->quiet = quiet;
  return f;
}

/* Returns the subject behind conversions that keep the value. */
static uint32_t guarded_subject(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  while (node->op == VYRE__OP_CAST || node->op == VYRE__OP_BITCAST) {
    if (!vyre__has_interval(w->program->nodes[node->a].type) ||
        !vyre__has_interval(node->type) || node->type == VYRE_TYPE_BOOL ||
        !vyre__interval_inside(again(w, node->a).range,
                               vyre__interval_full(node->type))) {
      return NO_SUBJECT;
    }
    id = node->a;
    node = &w->program->nodes[id];
  }
  return vyre__has_interval(node->type) ? subject_of(w, id) : NO_SUBJECT;
}

/* Bounds @p id by @p limit. A guard that cannot hold precedes unreachable
 * code, so it is ignored. */
static void bound_above(walker *w, vyre__id id, fact limit, bool strictly) {
  uint32_t subject = guarded_subject(w, id);
  if (subject == NO_SUBJECT) return;
  fact f = w->env.locals[subject];
  vyre__wide hi = limit.range.hi - strictly;
  if (hi < f.range.hi) f.range.hi = hi;
  if (f.range.hi < f.range.lo) return;
  f.below |= limit.below | (strictly ? limit.within : 0);
  f.within |= limit.within | f.below;
  env_set(&w->env, subject, f);
}

static void bound_below(walker *w, vyre__id id, fact limit, bool strictly) {
  uint32_t subject = guarded_subject(w, id);
  if (subject == NO_SUBJECT) return;
  fact f = w->env.locals[subject];
  vyre__wide lo = limit.range.lo + strictly;
  if (lo > f.range.lo) f.range.lo = lo;
  if (f.range.hi < f.range.lo) return;
  env_set(&w->env, subject, f);
}

/* Assumes a < b, or a <= b. */
static void assume_less(walker *w, vyre__id a, vyre__id b, bool strictly) {
  fact left = again(w, a), right = again(w, b);
  bound_above(w, a, right, strictly);
  bound_below(w, b, left, strictly);
}

static void assume_not(walker *w, vyre__id a, fact other) {
  uint32_t subject = guarded_subject(w, a);
  if (subject == NO_SUBJECT || other.range.lo != other.range.hi) return;
  fact f = w->env.locals[subject];
  if (f.range.lo == f.range.hi) return;
  if (f.range.lo == other.range.lo) f.range.lo++;
  if (f.range.hi == other.range.lo) f.range.hi--;
  env_set(&w->env, subject, f);
}

static void assume_equal(walker *w, vyre__id a, vyre__id b, bool holds) {
  fact left = again(w, a), right = again(w, b);
  if (holds) {
    bound_above(w, a, right, false);
    bound_below(w, a, right, false);
    bound_above(w, b, left, false);
    bound_below(w, b, left, false);
  } else {
    assume_not(w, a, right);
    assume_not(w, b, left);
  }
}

/* Assumes a comparison. Checks the operation first: the fields of other
 * conditions (a load, a literal) need not be nodes. */
static void assume_compare(walker *w, const vyre__node *node, bool holds) {
  vyre__op op = (vyre__op)node->op;
  bool strict = op == VYRE__OP_LT || op == VYRE__OP_GT;
  bool down = op == VYRE__OP_GT || op == VYRE__OP_GE;
  bool equal = op == VYRE__OP_EQ || op == VYRE__OP_NE;
  if (!strict && !down && !equal && op != VYRE__OP_LE) return;
  vyre__id a = node->a, b = node->b;
  if (!vyre__has_interval(w->program->nodes[a].type)) return;
  if (equal) {
    assume_equal(w, a, b, holds == (op == VYRE__OP_EQ));
  } else if (down == holds) {
    assume_less(w, b, a, strict == holds);
  } else {
    assume_less(w, a, b, strict == holds);
  }
}

/* Returns true if an expression has the same value everywhere: then `let ok =
 * i < n;` still tells something about i where ok is tested. */
static bool is_lasting(const walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  if (node->op == VYRE__OP_LOCAL) {
    return !w->program->functions[0].locals[node->a].is_mutable;
  }
  if (vyre__ops[node->op].flags != 0) {
    return node->op == VYRE__OP_LOAD && subject_of(w, id) != NO_SUBJECT;
  }
  uint32_t count = vyre__child_count(w->program, id);
  for (uint32_t i = 0; i < count; i++) {
    if (!is_lasting(w, vyre__child(w->program, id, i))) return false;
  }
  return true;
}

/* Assumes a condition. Definitions of locals are followed, so one condition
 * can stand for very many. The budget limits the work; fewer facts are always
 * sound. */
static void assume(walker *w, vyre__id condition, bool holds) {
  if (w->budget == 0) return;
  w->budget--;
  const vyre__node *node = &w->program->nodes[condition];
  switch ((vyre__op)node->op) {
    case VYRE__OP_NOT:
      assume(w, node->a, !holds);
      break;
    case VYRE__OP_LAND:
    case VYRE__OP_AND:
      if (!holds) break;
      assume(w, node->a, true);
      assume(w, node->b, true);
      break;
    case VYRE__OP_LOR:
    case VYRE__OP_OR:
      if (holds) break;
      assume(w, node->a, false);
      assume(w, node->b, false);
      break;
    case VYRE__OP_LOCAL: {
      vyre__id value = w->definition[node->a];
      if (value && is_lasting(w, value)) assume(w, value, holds);
      break;
    }
    default:
      assume_compare(w, node, holds);
      break;
  }
}

/* Assumes a guard from here on. Does nothing during re-evaluation of another
 * guard's operand, which would recurse without end. */
static void suppose(walker *w, vyre__id condition, bool holds) {
  enum { CONDITIONS = 64 };
  if (w->quiet) return;
  w->budget = CONDITIONS;
  assume(w, condition, holds);
}

/* --- statements ------------------------------------------------------------*/

static void walk_statement(walker *w, vyre__id id);

static void walk_if(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  walk_value(w, node->a);
  size_t begin = w->env.change_count;
  env_open(&w->env);
  suppose_guard(w, id, true);
  walk_statement(w, node->b);
  bool first_ends = w->reachable;
  size_t middle = w->env.change_count;
  env_leave_arm(&w->env, begin, middle);
  w->reachable = true;
  suppose_guard(w, id, false);
  if (node->c) walk_statement(w, node->c);
  if (first_ends && w->reachable) {
    env_join_arms(&w->env, begin, middle);
  } else if (first_ends) {
    env_take_first_arm(&w->env, begin, middle);
  }
  w->reachable |= first_ends;
  env_close(&w->env);
}

/* Jumps in a loop besides its condition. */
enum { BY_BREAK = 1, BY_RETURN = 2, BY_CONTINUE = 4 };

static bool is_anything(fact f, vyre_type type) {
  return vyre__interval_inside(vyre__interval_full(type), f.range) &&
         (f.below | f.within) == 0 && !f.is_power;
}

/* Drops the facts of all locals that a loop assigns. Each is logged at most
 * once, because locals without facts are skipped. Returns the jumps of the
 * loop: own breaks, returns, continues. */
static unsigned invalidate_assigned(walker *w, vyre__id id, bool is_own) {
  const vyre__node *node = &w->program->nodes[id];
  unsigned left = 0;
  if (node->op == VYRE__OP_BREAK && is_own) left = BY_BREAK;
  if (node->op == VYRE__OP_CONTINUE && is_own) left = BY_CONTINUE;
  if (node->op == VYRE__OP_RETURN) left = BY_RETURN;
  if (node->op == VYRE__OP_ASSIGN) {
    vyre_type type = w->program->functions[0].locals[node->a].type;
    if (!is_anything(w->env.locals[node->a], type)) {
      env_set(&w->env, node->a, anything(type));
    }
  }
  if (!vyre__is_statement(node)) return 0;
  bool is_loop = node->op == VYRE__OP_FOR || node->op == VYRE__OP_WHILE;
  vyre__id storage[3];
  const vyre__id *ids;
  uint32_t count = vyre__children(w->program, node, storage, &ids);
  for (uint32_t i = 0; i < count; i++) {
    left |= invalidate_assigned(w, ids[i], is_own && !is_loop);
  }
  return left;
}

/* Returns the trip count. Steps of 0 are rejected by the builder; they would
 * be handled too. */
static vyre__wide trips(vyre__wide first, vyre__wide last, vyre__wide step) {
  if (last < first) return 0;
  return step > 0 ? (last - first) / step + 1 : (vyre__wide)UINT64_MAX + 1;
}

/* Computes the fact of the variable of a `for` in its body, and the trip
 * count. A loop with an early exit may leave in the first iteration. */
static fact loop_variable(walker *w, vyre__id id, fact first, fact bound,
                          unsigned left) {
  const vyre__node *node = &w->program->nodes[id];
  vyre__for_parts parts = vyre__for_of(w->program, id);
  const vyre__node *literal = &w->program->nodes[parts.step];
  vyre__wide step = vyre__interval_value(literal->type, vyre__literal(literal));
  bool strict = node->aux == VYRE__LOOP_LT || node->aux == VYRE__LOOP_GT;
  vyre__interval f = first.range, b = bound.range, min, max;
  fact variable = first;
  variable.is_power = false;
  bool leaves_early = (left & (BY_BREAK | BY_RETURN)) != 0;
  if (!w->quiet) w->flags[id] = 0; /* clears the result of an earlier walk */
  if (node->aux == VYRE__LOOP_LT || node->aux == VYRE__LOOP_LE) {
    max = (vyre__interval){f.lo, b.hi - strict};
    min = (vyre__interval){f.hi, b.lo - strict};
    variable.below = bound.below | (strict ? bound.within : 0);
    variable.within = bound.within | variable.below;
  } else {
    max = (vyre__interval){b.lo + strict, f.hi};
    min = (vyre__interval){b.hi + strict, f.lo};
  }
  vyre__wide many = trips(max.lo, max.hi, step);
  if (many > 0) variable.range = max;
  if (vyre__is_racy(w->unsteady, id, VYRE__RACY_START)) {
    variable = anything((vyre_type)w->program->nodes[parts.first].type);
  }
  if (!w->quiet && many <= (vyre__wide)UINT64_MAX) {
    vyre__wide few = trips(min.lo, min.hi, step);
    if (leaves_early && few > 1) few = 1;
    w->nodes[id] = (vyre__range){(uint64_t)few, (uint64_t)many};
    w->flags[id] |= VYRE__RANGE_BOUNDED;
  }
  return variable;
}

static void walk_for(walker *w, vyre__id id) {
  vyre__for_parts parts = vyre__for_of(w->program, id);
  fact first = walk_value(w, parts.first);
  fact bound = walk_value(w, parts.bound);
  walk_value(w, parts.step);
  env_open(&w->env);
  unsigned left = invalidate_assigned(w, parts.body, true);
  size_t begin = w->env.change_count;
  env_set(&w->env, w->program->nodes[id].a,
          loop_variable(w, id, first, bound, left));
  walk_statement(w, parts.body);
  env_rewind(&w->env, begin);
  env_close(&w->env);
  w->reachable = true;
}

/* --- while -----------------------------------------------------------------*/

/* Locals that a loop assigns, as changes [begin, end) of the log. `at_end` of
 * these changes holds the facts at the start of an iteration; it is unused
 * otherwise until the arm of the enclosing `if` ends. */
typedef struct loop {
  size_t begin, end;
} loop;

static void begin_round(walker *w, loop l, vyre__id id) {
  for (size_t i = l.begin; i < l.end; i++) {
    change c = w->env.changes[i];
    env_set(&w->env, c.local, c.at_end);
  }
  walk_value(w, w->program->nodes[id].a);
  suppose_guard(w, id, true);
}

/* Returns true if the facts at the end of an iteration equal those assumed at
 * its start. Otherwise widens them: a bound that moves may move to the end of
 * the type. */
static bool end_iteration(walker *w, loop l) {
  bool is_stable = true;
  for (size_t i = l.begin; w->reachable && i < l.end; i++) {
    change *c = &w->env.changes[i];
    fact held = c->at_end, now = w->env.locals[c->local];
    vyre__interval full =
        vyre__interval_full(w->program->functions[0].locals[c->local].type);
    if (vyre__interval_inside(now.range, held.range) &&
        !(held.below & ~now.below) && !(held.within & ~now.within) &&
        (now.is_power || !held.is_power)) {
      continue;
    }
    is_stable = false;
    c->at_end = join(held, now);
    if (now.range.lo < held.range.lo) c->at_end.range.lo = full.lo;
    if (now.range.hi > held.range.hi) c->at_end.range.hi = full.hi;
  }
  /* Then an iteration starts with the facts from before the loop, or from the
   * previous iteration. */
  for (size_t i = l.begin; is_stable && i < l.end; i++) {
    change *c = &w->env.changes[i];
    c->at_end = c->before;
    if (w->reachable) c->at_end = join(c->before, w->env.locals[c->local]);
  }
  return is_stable;
}

/* Walks the body until the facts at its start hold at its end: at most three
 * times, the last time without facts. The last walk records the results.
 * Returns false if nothing was learnt. */
static bool resolve_loop(walker *w, vyre__id id, loop l) {
  enum { MAX_WALKS = 3 };
  for (size_t i = l.begin; i < l.end; i++) {
    w->env.changes[i].at_end = w->env.changes[i].before;
  }
  w->loops++;
  bool is_stable = false;
  for (int walk_number = 1; !is_stable && walk_number <= MAX_WALKS;
       walk_number++) {
    for (size_t i = l.begin; walk_number == MAX_WALKS && i < l.end; i++) {
      change *c = &w->env.changes[i];
      c->at_end = anything(w->program->functions[0].locals[c->local].type);
    }
    begin_round(w, l, id);
    w->reachable = true;
    walk_statement(w, w->program->nodes[id].b);
    is_stable = end_iteration(w, l);
    env_rewind(&w->env, l.end);
  }
  w->loops--;
  return is_stable;
}

static void walk_while(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  enum { NESTED = 2 }; /* limit: nested loops would multiply the walks */
  env_open(&w->env);
  loop l = {.begin = w->env.change_count};
  unsigned left = invalidate_assigned(w, node->b, true);
  l.end = w->env.change_count;
  bool settles = w->thorough && w->loops < NESTED && l.end > l.begin &&
                 !(left & BY_CONTINUE);
  if (!settles) {
    walk_value(w, node->a);
    suppose_guard(w, id, true);
    walk_statement(w, node->b);
    env_rewind(&w->env, l.end);
  } else if (resolve_loop(w, id, l) && !(left & BY_BREAK)) {
    for (size_t i = l.begin; i < l.end; i++) {
      env_set(&w->env, w->env.changes[i].local, w->env.changes[i].at_end);
    }
  }
  if (!(left & BY_BREAK)) suppose_guard(w, id, false);
  env_close(&w->env);
  w->reachable = true;
}

static void walk_set(walker *w, const vyre__node *node) {
  const vyre__local *local = &w->program->functions[0].locals[node->a];
  fact value = walk_value(w, node->b);
  if (node->op == VYRE__OP_LET && !local->is_mutable) {
    w->definition[node->a] = node->b;
  }
  env_set(&w->env, node->a, value);
}

#include "analyze/statement_walk.h"

/* --- program ---------------------------------------------------------------*/

static void init_subjects(walker *w) {
  static const vyre__op ids[] = {VYRE__OP_GLOBAL_ID, VYRE__OP_LOCAL_ID,
                                 VYRE__OP_WORKGROUP_ID};
  const vyre_program *p = w->program;
  for (uint32_t i = 0; i < local_count(w); i++) {
    w->env.locals[i] = anything(p->functions[0].locals[i].type);
  }
  for (uint8_t i = 0; i < 9; i++) {
    w->env.locals[axis_subject(w, ids[i / 3], i % 3)] =
        axis_fact(w, ids[i / 3], i % 3);
  }
  for (uint32_t i = 0; i < p->buffer_count; i++) {
    w->env.locals[buffer_subject(w, i, true)] = length_fact(w, i);
    w->env.locals[buffer_subject(w, i, false)] =
        element_fact(p->buffers[i].element);
  }
}

static void init_nodes(walker *w, size_t count) {
  vyre__range all[VYRE_TYPE_COUNT];
  for (int type = 0; type < VYRE_TYPE_COUNT; type++) {
    vyre__interval full = vyre__interval_full((vyre_type)type);
    all[type] = (vyre__range){(uint64_t)full.lo, (uint64_t)full.hi};
  }
  for (size_t i = 0; i < count; i++) {
    w->nodes[i] = all[w->program->nodes[i].type];
  }
  memset(w->flags, 0, count);
}

static bool reserve(walker *w, size_t nodes, vyre_arena *arena,
                    vyre__arena_mark *end) {
  const vyre_program *p = w->program;
  size_t subjects = (size_t)local_count(w) + 9 + 2 * p->buffer_count;
  w->nodes = vyre__arena_array(arena, nodes, sizeof *w->nodes);
  w->flags = vyre__arena_array(arena, nodes, 1);
  *end = vyre__arena_here(arena);
  w->env.locals = vyre__arena_array(arena, subjects, sizeof *w->env.locals);
  w->env.seen = vyre__arena_array(arena, subjects, sizeof *w->env.seen);
  w->definition =
      vyre__arena_array(arena, local_count(w), sizeof *w->definition);
  if (!w->nodes || !w->flags || !w->env.locals || !w->env.seen ||
      !w->definition) {
    return false;
  }
  memset(w->env.seen, 0, subjects * sizeof *w->env.seen);
  memset(w->definition, 0, local_count(w) * sizeof *w->definition);
  return true;
}

/* Returns the number of kernel statements up to the one that contains node @p
 * last; statements are in node order. */
static uint32_t statements_to(const vyre_program *program, vyre__id last) {
  const vyre__node *block = &program->nodes[program->functions[0].body];
  const vyre__id *ids = program->lists + block->a;
  for (uint32_t i = 0; i < block->b; i++) {
    if (ids[i] >= last) return i + 1;
  }
  return block->b;
}

static vyre_code build(walker *w, vyre__id last, vyre_arena *arena,
                       vyre__ranges *out, vyre_status *st) {
  const vyre_program *program = w->program;
  vyre__arena_mark start = vyre__arena_here(arena), end = start;
  const vyre__node *block = &program->nodes[program->functions[0].body];
  const vyre__id *ids = program->lists + block->a;
  uint32_t statements = statements_to(program, last);
  size_t nodes = program->node_count;
  if (statements > 0 && ids[statements - 1] >= last) {
    nodes = (size_t)ids[statements - 1] + 1;
  }
  *out = (vyre__ranges){0};
  w->env.no_memory = !reserve(w, nodes, arena, &end);
  if (!w->env.no_memory) {
    init_subjects(w);
    init_nodes(w, nodes);
    for (uint32_t i = 0; i < statements; i++) walk_statement(w, ids[i]);
  }
  env_deinit(&w->env);
  vyre__arena_rewind(arena, w->env.no_memory ? start : end);
  if (w->env.no_memory) {
    return vyre__no_memory(st, "vyre__ranges_build", "ranges",
                           program->node_count);
  }
  vyre__ranges ranges = {program, w->nodes, w->flags, w->unsteady};
  if (w->thorough && w->has_doubts) {
    vyre_code code =
        vyre__symbolic_prove(&ranges, arena->allocator, w->flags, st);
    if (code != VYRE_OK) {
      vyre__arena_rewind(arena, start);
      return code;
    }
  }
  *out = ranges;
  return VYRE_OK;
}

static walker walker_of(const vyre_program *program,
                        const uint32_t workgroup[3], vyre_arena *arena) {
  return (walker){.program = program,
                  .workgroup = workgroup ? workgroup : program->workgroup,
                  .env = {.allocator = arena->allocator},
                  .reachable = true};
}

vyre_code vyre__ranges_build(const vyre_program *program,
                             const uint32_t workgroup[3], vyre_arena *arena,
                             vyre__ranges *out, vyre_status *st) {
  walker w = walker_of(program, workgroup, arena);
  w.thorough = true;
  VYRE_TRY(vyre__racy_guards_build(program, arena, &w.unsteady, st));
  return build(&w, UINT32_MAX, arena, out, st);
}

vyre_code vyre__ranges_build_to(const vyre_program *program,
                                const uint32_t workgroup[3], vyre__id last,
                                vyre_arena *arena, vyre__ranges *out,
                                vyre_status *st) {
  walker w = walker_of(program, workgroup, arena);
  return build(&w, last, arena, out, st);
}
