/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds the buffers that a kernel overwrites completely. A launch does not
 * clear such an output first.
 *
 * A buffer counts if every invocation below some limits stores the element with
 * its own number, global_id.x. Limits are lengths of buffers, uniforms and
 * constants; cpu_is_fully_written checks for each launch that they cover the
 * buffer. They come from ifs around the store, from its own condition, and from
 * exits before it at the outermost level. */
#include <string.h>

#include "backend/cpu/plan.h"
#include "ir/ir.h"

enum { DEPTH = 32 }; /* nesting of blocks and of conditions */

/* Upper limits of an invocation number. */
typedef struct limits {
  uint32_t within;   /* bit i: the length of buffer i, or its value if it is a
                        uniform */
  uint32_t constant; /* the smallest constant; UINT32_MAX: no limit */
} limits;

typedef struct search {
  const vyre__lir_kernel *k;
  limits at[DEPTH + 1];  /* limits in each open block; [0]: the body */
  uint32_t unknown_from; /* limits are unknown from this depth on; 0: known */
  uint32_t depth;
} search;

static const vyre__lir_inst *inst_of(const search *s, vyre__val v) {
  return &s->k->code[v];
}

static bool is_bound(const vyre__lir_buffer *b) {
  return b->source != VYRE_NO_INDEX && b->kind != VYRE_MEMORY_SHARED;
}

static bool is_axis(const search *s, vyre__val v, vyre__lir_op op) {
  return inst_of(s, v)->op == op && inst_of(s, v)->aux == 0;
}

/* Returns true if @p v is workgroup_id.x times the workgroup size. */
static bool is_base(const search *s, vyre__val v) {
  const vyre__lir_inst *i = inst_of(s, v);
  uint32_t size = s->k->workgroup[0];
  if (size == 1) return is_axis(s, v, VYRE__LIR_GROUP_ID);
  if (i->op != VYRE__LIR_MUL) return false;
  vyre__val id = is_axis(s, i->a, VYRE__LIR_GROUP_ID) ? i->a : i->b;
  const vyre__lir_inst *by = inst_of(s, id == i->a ? i->b : i->a);
  return is_axis(s, id, VYRE__LIR_GROUP_ID) && by->op == VYRE__LIR_CONST &&
         vyre__lir_const(by) == size;
}

/* Returns true if @p v is global_id.x. */
static bool is_global_id(const search *s, vyre__val v) {
  const vyre__lir_inst *i = inst_of(s, v);
  if (s->k->workgroup[0] == 1 && is_base(s, v)) return true;
  if (i->op != VYRE__LIR_ADD) return false;
  return (is_axis(s, i->a, VYRE__LIR_LOCAL_ID) && is_base(s, i->b)) ||
         (is_axis(s, i->b, VYRE__LIR_LOCAL_ID) && is_base(s, i->a));
}

/* Adds @p v to the limits, if it is the same for all invocations. */
static bool add_limit(const search *s, vyre__val v, limits *to) {
  const vyre__lir_inst *i = inst_of(s, v);
  if (i->type != VYRE_TYPE_U32) return false;
  if (i->op == VYRE__LIR_CONST) {
    if (i->c < to->constant) to->constant = i->c;
    return true;
  }
  if ((i->op != VYRE__LIR_LEN && i->op != VYRE__LIR_LOAD) || i->aux >= 32) {
    return false;
  }
  const vyre__lir_buffer *b = &s->k->buffers[i->aux];
  bool is_uniform = b->kind == VYRE_MEMORY_UNIFORM;
  if (!is_bound(b)) return false;
  if (i->op == VYRE__LIR_LEN) {
    if (is_uniform) return false;
  } else {
    const vyre__lir_inst *index = inst_of(s, i->a);
    if (!is_uniform || b->width != 4 || i->b != 0 ||
        index->op != VYRE__LIR_CONST || vyre__lir_const(index) != 0) {
      return false;
    }
  }
  to->within |= 1u << i->aux;
  return true;
}

/* Adds limits below which @p condition is true (with @p not: false). Returns
 * false if it finds none. */
static bool add_limits(const search *s, vyre__val condition, bool not,
                       uint32_t depth, limits *to) {
  const vyre__lir_inst *i = inst_of(s, condition);
  if (depth > DEPTH) return false;
  switch (i->op) {
    case VYRE__LIR_NOT:
      return add_limits(s, i->a, !not, depth + 1, to);
    case VYRE__LIR_AND:
    case VYRE__LIR_OR:
      return not == (i->op == VYRE__LIR_OR) &&
             add_limits(s, i->a, not, depth + 1, to) &&
             add_limits(s, i->b, not, depth + 1, to);
    case VYRE__LIR_LT_U:
      return !not && is_global_id(s, i->a) && add_limit(s, i->b, to);
    case VYRE__LIR_LE_U: /* not (a <= b): b < a */
      return not && is_global_id(s, i->b) && add_limit(s, i->a, to);
    case VYRE__LIR_CONST:
      return not == (vyre__lir_const(i) == 0);
    default:
      return false;
  }
}

/* Handles an exit. An exit in an if at the outermost level adds limits to all
 * that follows. Returns false for any other exit: stores after it cannot be
 * judged. */
static bool add_exit(search *s, uint32_t at) {
  uint32_t open = at;
  /* The dispatch fails then, and the contents of its outputs are undefined. */
  if (s->k->code[at - 1].op == VYRE__LIR_OUT_OF_FUEL) return true;
  while (open > 0 && s->k->code[open].op != VYRE__LIR_IF) open--;
  return s->depth == 1 && open + 1 == at &&
         add_limits(s, s->k->code[open].a, true, 0, &s->at[0]);
}

static void mark_unknown(search *s) {
  if (s->unknown_from == 0) s->unknown_from = s->depth;
}

static void store(search *s, const vyre__lir_inst *i, cpu_full_write *to) {
  limits all = s->at[s->depth];
  const vyre__lir_buffer *b = &s->k->buffers[i->aux];
  cpu_full_write *buffer = &to[i->aux];
  if (s->unknown_from != 0 || buffer->is_full || !is_bound(b) || b->is_atomic ||
      b->unit != b->width || !is_global_id(s, i->a)) {
    return;
  }
  if (i->c != 0 && !add_limits(s, i->c, false, 0, &all)) return;
  buffer->is_full = 1;
  buffer->within = all.within;
  buffer->limit = all.constant;
}

static void enter(search *s, const vyre__lir_inst *i) {
  s->at[s->depth + 1] = s->at[s->depth];
  s->depth++;
  if (i->op != VYRE__LIR_IF ||
      !add_limits(s, i->a, false, 0, &s->at[s->depth])) {
    mark_unknown(s);
  }
}

void cpu_find_full_writes(const vyre__lir_kernel *kernel,
                          cpu_full_write *full_writes) {
  search s = {.k = kernel, .at = {{0, UINT32_MAX}}};
  if (kernel->phase_count != 1 || kernel->step_count != 1) return;
  vyre__lir_phase phase = kernel->phases[0];
  for (uint32_t at = phase.begin; at < phase.end; at++) {
    const vyre__lir_inst *i = &kernel->code[at];
    switch (i->op) {
      case VYRE__LIR_IF:
      case VYRE__LIR_LOOP:
        if (s.depth == DEPTH) return;
        enter(&s, i);
        break;
      case VYRE__LIR_ELSE:
        mark_unknown(&s);
        break;
      case VYRE__LIR_END:
        s.depth--;
        if (s.unknown_from > s.depth) s.unknown_from = 0;
        break;
      case VYRE__LIR_EXIT:
        if (!add_exit(&s, at)) return;
        break;
      case VYRE__LIR_STORE:
        store(&s, i, full_writes);
        break;
      default:
        break;
    }
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
    }
  }
}

bool cpu_is_fully_written(const cpu_plan *plan, uint32_t buffer,
                          const vyre__spmd_launch *launch) {
  const cpu_full_write *b = &plan->full_writes[buffer];
  uint64_t length = launch->views[buffer].length;
  if (!b->is_full || length > b->limit ||
      (uint64_t)launch->grid[0] * plan->workgroup[0] < length) {
    return false;
  }
  for (uint32_t i = 0; i < 32 && b->within >> i != 0; i++) {
    if (!(b->within >> i & 1)) continue;
    const vyre__spmd_view *view = &launch->views[i];
    uint32_t limit = view->length;
    if (plan->buffers[i].kind == VYRE_MEMORY_UNIFORM) {
      memcpy(&limit, view->data, sizeof limit);
    }
    if (limit < length) return false;
  }
  return true;
}
