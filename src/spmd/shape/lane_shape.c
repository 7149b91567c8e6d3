/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Propagates lane shapes through variables and control flow.
 *
 * The phase is traversed from begin to end with the current shape of each
 * variable, for the active lanes. For each loop the shapes at the start of an
 * iteration are stored. The traversal repeats until no loop sees new shapes at
 * its start.
 *
 * A variable is modelled as one scalar for the full vector, written by the last
 * SET of any lanes. So where lanes diverge, variables that some of them set
 * become VARYING for the others, even if those never changed them. */
#include "spmd/shape/lane_shape.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "spmd/shape/lane_shape_internal.h"

/* Kind of divergence. */
typedef enum divergence {
  DIVERGES_NONE,
  DIVERGES_VECTORS, /* the vectors of a workgroup diverge, the lanes of each do
                     * not */
  DIVERGES_LANES,
} divergence;

/* Number of sweeps after which alignment is given up, since it may shrink by
 * only one bit per sweep. */
enum { MAX_EXACT_SWEEPS = 8 };

/* An open IF or LOOP. Ranges are in `sets`. */
typedef struct frame {
  uint32_t at;
  uint32_t first, count; /* SETs inside it */
  uint32_t middle;       /* SETs before its ELSE, relative to first */
  size_t saved;          /* Index in `stack` of 2 * count shapes. IF: variables
                          * at its begin, then at the end of its first arm.
                          * LOOP: at its BREAKs, then at its CONTINUEs */
  size_t head;           /* LOOP: index in `heads` */
  uint32_t lanes_from, vectors_from; /* LOOP: SETs that some lanes (vectors)
                                      * skipped by going to the STEP */
  uint8_t continued;                 /* divergence before the STEP */
  bool is_reached;                   /* IF: its begin */
  bool other_reached; /* IF: the end of its first arm; LOOP: its exit */
  bool step_reached;  /* LOOP: reached by CONTINUE */
} frame;

typedef struct finder {
  const vyre__regions *r;
  vyre__lane_shapes *out;
  shape_lanes lanes;
  uint8_t *diverges; /* divergence of each IF and LOOP */
  uint8_t *exits;    /* divergence of each LOOP by EXIT */
  bool *is_live;     /* values: some lanes reach them */
  shape_sum *sums;   /* per value; NULL if not needed */
  vyre__lane_shape *now;
  bool *is_forced;         /* variables whose GETs must be VARYING */
  uint32_t *sets;          /* variables of all SETs, in order */
  uint32_t *before;        /* number of SETs before each instruction */
  frame *frames;           /* [0] is the phase */
  uint32_t depth;          /* index of the innermost frame */
  vyre__lane_shape *stack; /* saved shapes */
  size_t stack_used;
  vyre__lane_shape
      *heads; /* shapes at the start of an iteration, per LOOP; UNSEEN at
               * first */
  size_t head_used;
  uint32_t sweeps;
  bool is_reached;
  bool is_changed;
} finder;

static const vyre__lir_inst *inst_at(const finder *f, uint32_t at) {
  return &f->r->kernel->code[at];
}

static uint32_t offset_of(const finder *f, uint32_t at) {
  return at - f->r->begin;
}

static vyre__lane_shape *value_of(const finder *f, vyre__val v) {
  return &f->out->values[offset_of(f, v)];
}

static divergence divergence_of(vyre__lane_shape s) {
  if (s.kind == SHAPE_UNSEEN) return DIVERGES_NONE;
  if (s.kind < VYRE__LANE_SHAPE_VECTOR) return DIVERGES_NONE;
  return s.kind == VYRE__LANE_SHAPE_VECTOR ? DIVERGES_VECTORS : DIVERGES_LANES;
}

static vyre__lane_shape *var_of(const finder *f, const frame *of, uint32_t i) {
  return &f->now[f->sets[of->first + i]];
}

static void raise_to(finder *f, uint8_t *to, divergence level) {
  if (*to >= level) return;
  *to = (uint8_t)level;
  f->is_changed = true;
}

static void make_varying(finder *f, const frame *of, uint32_t begin,
                         uint32_t end) {
  for (uint32_t i = begin; i < end; i++) *var_of(f, of, i) = shape_varying();
}

static void diverge_sets(finder *f, const frame *of, uint32_t begin,
                         uint32_t end) {
  for (uint32_t i = begin; i < end; i++) {
    *var_of(f, of, i) = vyre__lanes_diverge(*var_of(f, of, i));
  }
}

static void save(finder *f, const frame *of, vyre__lane_shape *to) {
  for (uint32_t i = 0; i < of->count; i++) to[i] = *var_of(f, of, i);
}

static void restore(finder *f, const frame *of, const vyre__lane_shape *from) {
  for (uint32_t i = 0; i < of->count; i++) *var_of(f, of, i) = from[i];
}

static void join_into(finder *f, const frame *of, vyre__lane_shape *to) {
  for (uint32_t i = 0; i < of->count; i++) {
    to[i] = vyre__lane_shape_join(to[i], *var_of(f, of, i));
  }
}

static frame *open_frame(finder *f, uint32_t at) {
  frame *top = &f->frames[++f->depth];
  uint32_t end = vyre__end_of(f->r, at);
  uint32_t first = f->before[offset_of(f, at)];
  uint32_t count = f->before[offset_of(f, end)] - first;
  *top = (frame){.at = at,
                 .first = first,
                 .count = count,
                 .middle = count,
                 .saved = f->stack_used,
                 .lanes_from = count,
                 .vectors_from = count,
                 .is_reached = f->is_reached};
  f->stack_used += 2 * (size_t)count;
  return top;
}

/* --- IF ------------------------------------------------------------------- */

static void begin_if(finder *f, uint32_t at) {
  vyre__lane_shape condition = *value_of(f, inst_at(f, at)->a);
  /* Uniform if the workgroup branches as one. */
  bool is_group = vyre__inst_info_of(f->r, at)->subregion == 0;
  *value_of(f, at) = condition;
  if (!is_group)
    raise_to(f, &f->diverges[offset_of(f, at)], divergence_of(condition));
  frame *top = open_frame(f, at);
  save(f, top, f->stack + top->saved);
}

/* Switches from the end of the first arm to the begin of the second. */
static void begin_else(finder *f, frame *top, uint32_t middle) {
  top->middle = middle;
  top->other_reached = f->is_reached;
  save(f, top, f->stack + top->saved + top->count);
  restore(f, top, f->stack + top->saved);
  if (f->diverges[offset_of(f, top->at)] == DIVERGES_LANES)
    make_varying(f, top, 0, middle);
  f->is_reached = top->is_reached;
}

static void end_if(finder *f, frame *top) {
  uint8_t level = f->diverges[offset_of(f, top->at)];
  vyre__lane_shape *first = f->stack + top->saved + top->count;
  if (vyre__inst_info_of(f->r, top->at)->mate ==
      vyre__end_of(f->r, top->at)) { /* no ELSE */
    begin_else(f, top, top->count);
  }
  if (!top->other_reached) return; /* only the second arm continues */
  if (!f->is_reached) {
    restore(f, top, first);
    if (level == DIVERGES_LANES) make_varying(f, top, top->middle, top->count);
    f->is_reached = true;
    return;
  }
  if (level == DIVERGES_LANES) {
    make_varying(f, top, 0, top->count);
    return;
  }
  join_into(f, top, first);
  restore(f, top, first);
  if (level == DIVERGES_VECTORS) diverge_sets(f, top, 0, top->count);
}

/* --- LOOP ----------------------------------------------------------------- */

/* Joins the current shapes into those at the start of an iteration. */
static void join_head(finder *f, const frame *top) {
  for (uint32_t i = 0; i < top->count; i++) {
    vyre__lane_shape *head = &f->heads[top->head + i];
    vyre__lane_shape joined = vyre__lane_shape_join(*head, *var_of(f, top, i));
    if (shape_equal(joined, *head)) continue;
    if (f->sweeps > MAX_EXACT_SWEEPS &&
        joined.kind != VYRE__LANE_SHAPE_CONSTANT) {
      joined.aligned = 0;
    }
    *head = joined;
    f->is_changed = true;
  }
}

static void begin_loop(finder *f, uint32_t at) {
  frame *top = open_frame(f, at);
  top->head = f->head_used;
  f->head_used += top->count;
  for (uint32_t i = 0; i < 2 * top->count; i++) {
    f->stack[top->saved + i] = shape_unseen();
  }
  if (f->is_reached) join_head(f, top);
  restore(f, top, f->heads + top->head);
}

/* Returns the innermost open loop, and the divergence between its body or STEP
 * and the current instruction. */
static frame *loop_around(finder *f, divergence *level) {
  uint8_t level_max = DIVERGES_NONE;
  for (uint32_t i = f->depth; i > 0; i--) {
    frame *open = &f->frames[i];
    if (inst_at(f, open->at)->op == VYRE__LIR_LOOP) {
      *level = (divergence)level_max;
      return open;
    }
    uint8_t diverges = f->diverges[offset_of(f, open->at)];
    if (diverges > level_max) level_max = diverges;
  }
  return NULL;
}

static void leave_loop(finder *f, uint32_t at) {
  divergence level = DIVERGES_NONE;
  frame *loop = loop_around(f, &level);
  if (!loop) return; /* guaranteed by the verifier */
  if (loop->continued > level) level = (divergence)loop->continued;
  if (vyre__inst_info_of(f->r, at)->subregion == 0) level = DIVERGES_NONE;
  raise_to(f, &f->diverges[offset_of(f, loop->at)], level);
  if (f->is_reached) {
    join_into(f, loop, f->stack + loop->saved);
    loop->other_reached = true;
  }
  f->is_reached = false;
}

static void continue_loop(finder *f, uint32_t at) {
  divergence level = DIVERGES_NONE;
  frame *loop = loop_around(f, &level);
  if (!loop) return;
  if (vyre__inst_info_of(f->r, at)->subregion == 0) level = DIVERGES_NONE;
  uint32_t here = f->before[offset_of(f, at)] - loop->first;
  if (level == DIVERGES_LANES && here < loop->lanes_from)
    loop->lanes_from = here;
  if (level != DIVERGES_NONE && here < loop->vectors_from) {
    loop->vectors_from = here;
  }
  if (level > loop->continued) loop->continued = (uint8_t)level;
  if (f->is_reached) {
    join_into(f, loop, f->stack + loop->saved + loop->count);
    loop->step_reached = true;
  }
  f->is_reached = false;
}

static void begin_step(finder *f, frame *top, uint32_t at) {
  vyre__lane_shape *continued = f->stack + top->saved + top->count;
  uint32_t here = f->before[offset_of(f, at)] - top->first;
  if (top->step_reached) {
    if (f->is_reached) join_into(f, top, continued);
    restore(f, top, continued);
    diverge_sets(f, top, top->vectors_from, here);
    make_varying(f, top, top->lanes_from, here);
    f->is_reached = true;
  }
}

static void end_loop(finder *f, frame *top) {
  uint8_t level = f->diverges[offset_of(f, top->at)];
  if (f->is_reached) join_head(f, top);
  restore(f, top, f->stack + top->saved);
  if (level == DIVERGES_VECTORS) diverge_sets(f, top, 0, top->count);
  if (level == DIVERGES_LANES) make_varying(f, top, 0, top->count);
  f->is_reached = top->other_reached;
}

/* EXIT: lanes leave all loops and never rejoin the others. */
static void leave_all(finder *f, uint32_t at) {
  uint8_t level = DIVERGES_NONE;
  bool is_group = vyre__inst_info_of(f->r, at)->subregion == 0;
  for (uint32_t i = f->depth; i > 0 && !is_group; i--) {
    frame *open = &f->frames[i];
    uint32_t where = offset_of(f, open->at);
    if (inst_at(f, open->at)->op == VYRE__LIR_LOOP) {
      if (open->continued > level) level = open->continued;
      raise_to(f, &f->exits[where], (divergence)level);
    }
    if (f->diverges[where] > level) level = f->diverges[where];
  }
  f->is_reached = false;
}

/* --- values --------------------------------------------------------------- */

static vyre__lane_shape load_shape(const finder *f,
                                   const vyre__lir_inst *inst) {
  vyre__lane_shape index = *value_of(f, inst->a);
  vyre__lane_shape condition =
      inst->b ? *value_of(f, inst->b)
              : shape_make(VYRE__LANE_SHAPE_CONSTANT, 0, 1);
  if (index.kind == SHAPE_UNSEEN || condition.kind == SHAPE_UNSEEN) {
    return shape_unseen();
  }
  vyre__lane_shape both = vyre__lane_shape_join(index, condition);
  if (!vyre__lane_shape_is_uniform(both)) return shape_varying();
  bool is_group = both.kind != VYRE__LANE_SHAPE_VECTOR &&
                  !f->r->kernel->buffers[inst->aux].is_written;
  return shape_make(is_group ? VYRE__LANE_SHAPE_GROUP : VYRE__LANE_SHAPE_VECTOR,
                    0, 0);
}

static vyre__lane_shape const_shape(const vyre__lir_inst *inst) {
  uint64_t bits = vyre__lir_const(inst);
  unsigned width = vyre__lane_shape_bits((vyre_type)inst->type);
  unsigned zeros = bits ? (unsigned)__builtin_ctzll(bits) : width;
  return shape_make(VYRE__LANE_SHAPE_CONSTANT, zeros < width ? zeros : width,
                    bits);
}

static vyre__lane_shape pure_shape(const finder *f,
                                   const vyre__lir_inst *inst) {
  vyre__lane_shape operands[4] = {{0}};
  for (unsigned i = 0; i < vyre__lir_ops[inst->op].operands; i++) {
    if (inst->v[i]) operands[i] = *value_of(f, inst->v[i]);
  }
  vyre_type from = (vyre_type)inst_at(f, inst->a)->type;
  return vyre__lane_shape_pure(inst, from, operands, f->lanes);
}

/* Computes the sum that the value at @p at represents, and its shape if it has
 * no other. */
static vyre__lane_shape sum_shape(const finder *f, uint32_t at,
                                  vyre__lane_shape shape) {
  const vyre__lir_inst *inst = inst_at(f, at);
  vyre__lane_shape operands[2] = {{0}};
  shape_sum sums[2] = {{.is_known = false}, {.is_known = false}};
  if (shape.kind == SHAPE_UNSEEN) return shape;
  for (unsigned i = 0; i < 2 && i < vyre__lir_ops[inst->op].operands; i++) {
    if (!inst->v[i]) continue;
    operands[i] = *value_of(f, inst->v[i]);
    sums[i] = f->sums[offset_of(f, inst->v[i])];
  }
  shape_sum sum = vyre__lane_shape_sum_of(inst, shape, operands, sums);
  f->sums[offset_of(f, at)] = sum;
  if (shape.kind != VYRE__LANE_SHAPE_VARYING) return shape;
  return vyre__lane_shape_of_sum(sum, f->r->kernel->workgroup, f->lanes);
}

static vyre__lane_shape any_shape(const finder *f, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(f, at);
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_CONST:
      return const_shape(inst);
    case VYRE__LIR_LOCAL_ID:
      return vyre__lane_shape_local_id(f->r->kernel->workgroup, inst->aux,
                                       f->lanes);
    case VYRE__LIR_GROUP_ID:
    case VYRE__LIR_GRID_SIZE:
    case VYRE__LIR_LEN:
    case VYRE__LIR_LOOP_VALUE:
    case VYRE__LIR_FUEL:
      return shape_make(VYRE__LANE_SHAPE_GROUP, 0, 0);
    case VYRE__LIR_GET:
      return f->is_forced[inst->aux] ? shape_varying() : f->now[inst->aux];
    case VYRE__LIR_LOAD:
      return load_shape(f, inst);
    default:
      return vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE
                 ? pure_shape(f, inst)
                 : shape_varying();
  }
}

/* Computes the shape of a value, with storage and number of lanes taken into
 * account. */
static void find_value(finder *f, uint32_t at) {
  vyre__lane_shape s = any_shape(f, at);
  if (f->sums) s = sum_shape(f, at, s);
  bool is_uniform =
      vyre__inst_info_of(f->r, at)->storage == VYRE__STORAGE_UNIFORM;
  bool is_one = f->lanes.count == 1;
  if (s.kind != SHAPE_UNSEEN) {
    if (is_one && s.kind > VYRE__LANE_SHAPE_VECTOR) {
      s = shape_make(VYRE__LANE_SHAPE_VECTOR, 0, 0);
    }
    if (is_uniform && s.kind > VYRE__LANE_SHAPE_GROUP) {
      s = shape_make(VYRE__LANE_SHAPE_GROUP,
                     s.kind == VYRE__LANE_SHAPE_VECTOR ? s.aligned : 0, 0);
    }
  }
  *value_of(f, at) = s;
  f->is_live[offset_of(f, at)] = f->is_reached;
}

/* --- all ------------------------------------------------------------------ */

static void visit(finder *f, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(f, at);
  frame *top = &f->frames[f->depth];
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_IF:
      begin_if(f, at);
      return;
    case VYRE__LIR_LOOP:
      begin_loop(f, at);
      return;
    case VYRE__LIR_ELSE:
      begin_else(f, top, f->before[offset_of(f, at)] - top->first);
      return;
    case VYRE__LIR_STEP:
      begin_step(f, top, at);
      return;
    case VYRE__LIR_END:
      if (inst_at(f, top->at)->op == VYRE__LIR_LOOP) {
        end_loop(f, top);
      } else {
        end_if(f, top);
      }
      f->stack_used = top->saved;
      f->depth--;
      return;
    case VYRE__LIR_BREAK:
      leave_loop(f, at);
      return;
    case VYRE__LIR_CONTINUE:
      continue_loop(f, at);
      return;
    case VYRE__LIR_EXIT:
      leave_all(f, at);
      return;
    case VYRE__LIR_OUT_OF_FUEL:
      f->is_reached = false;
      return;
    case VYRE__LIR_SET:
      f->now[inst->aux] = *value_of(f, inst->a);
      return;
    default:
      if (inst->type != VYRE_TYPE_VOID) find_value(f, at);
  }
}

static void sweep(finder *f) {
  const vyre__lir_kernel *k = f->r->kernel;
  for (uint32_t i = 0; i < k->var_count; i++) f->now[i] = shape_unseen();
  f->depth = f->stack_used = f->head_used = 0;
  f->is_reached = true;
  f->is_changed = false;
  f->sweeps++;
  for (uint32_t at = f->r->begin; at < f->r->end; at++) {
    if (vyre__inst_info_of(f->r, at)->is_reached) visit(f, at);
  }
}

/* Joins the shapes of all GETs of each variable. A scalar has one meaning: if
 * some GETs are uniform and some linear, or a GET has no reaching SET, all
 * become VARYING. Returns true if there was such a variable. */
static bool find_vars(finder *f) {
  const vyre__regions *r = f->r;
  bool is_new = false;
  for (uint32_t i = 0; i < r->kernel->var_count; i++) {
    f->now[i] = shape_unseen();
    f->out->vars[i] = (vyre__lane_shape_var){.shape = shape_unseen()};
  }
  for (uint32_t at = r->begin; at < r->end; at++) {
    const vyre__lir_inst *inst = inst_at(f, at);
    const vyre__inst_info *info = vyre__inst_info_of(r, at);
    if (inst->op != VYRE__LIR_GET || !info->is_needed) continue;
    if (!f->is_live[offset_of(f, at)]) continue;
    vyre__lane_shape_var *var = &f->out->vars[inst->aux];
    vyre__lane_shape s = *value_of(f, at), *entry_shape = &f->now[inst->aux];
    bool is_varying = s.kind == VYRE__LANE_SHAPE_VARYING;
    bool is_mixed = false;
    if (!is_varying) {
      *entry_shape = vyre__lane_shape_join(*entry_shape, s);
      is_mixed = entry_shape->kind == VYRE__LANE_SHAPE_VARYING ||
                 s.kind == SHAPE_UNSEEN;
    }
    if (is_mixed && !f->is_forced[inst->aux]) {
      f->is_forced[inst->aux] = is_new = true;
    }
    var->shape = vyre__lane_shape_join(var->shape, s);
    var->is_lockstep = var->shape.kind == VYRE__LANE_SHAPE_VARYING &&
                       entry_shape->kind != SHAPE_UNSEEN;
  }
  return is_new;
}

/* Publishes the result. Unreached values become VARYING. */
static void publish(finder *f) {
  const vyre__regions *r = f->r;
  for (uint32_t at = r->begin; at < r->end; at++) {
    vyre__lane_shape *s = value_of(f, at);
    if (s->kind == SHAPE_UNSEEN) *s = shape_varying();
    f->out->parts_lanes[offset_of(f, at)] =
        f->diverges[offset_of(f, at)] == DIVERGES_LANES ||
        f->exits[offset_of(f, at)] == DIVERGES_LANES;
  }
  for (uint32_t i = 0; i < r->kernel->var_count; i++) {
    vyre__lane_shape *s = &f->out->vars[i].shape;
    if (s->kind == SHAPE_UNSEEN) *s = shape_varying();
  }
  /* A GET in unreached code may have kept a shape that its variable lacks. */
  for (uint32_t at = r->begin; at < r->end; at++) {
    if (inst_at(f, at)->op != VYRE__LIR_GET || f->is_live[offset_of(f, at)]) {
      continue;
    }
    const vyre__lane_shape_var *var = &f->out->vars[inst_at(f, at)->aux];
    if (var->shape.kind == VYRE__LANE_SHAPE_VARYING && !var->is_lockstep) {
      *value_of(f, at) = shape_varying();
    }
  }
}

/* Counts SETs, and the memory for nested frames. */
static void measure(finder *f, size_t *depth, size_t *stack, size_t *heads) {
  const vyre__regions *r = f->r;
  uint32_t count = 0;
  size_t open = 0, used = 0;
  for (uint32_t at = r->begin; at < r->end; at++) {
    f->before[offset_of(f, at)] = count;
    if (!vyre__inst_info_of(r, at)->is_reached) continue;
    if (inst_at(f, at)->op == VYRE__LIR_SET) {
      f->sets[count++] = inst_at(f, at)->aux;
    }
  }
  *depth = *stack = *heads = 0;
  for (uint32_t at = r->begin; at < r->end; at++) {
    uint8_t op = inst_at(f, at)->op;
    if (!vyre__inst_info_of(r, at)->is_reached) continue;
    bool opens = op == VYRE__LIR_IF || op == VYRE__LIR_LOOP;
    if (!opens && op != VYRE__LIR_END) continue;
    uint32_t begin = opens ? at : vyre__inst_info_of(r, at)->mate;
    uint32_t end = opens ? vyre__end_of(r, at) : at;
    size_t inside =
        f->before[offset_of(f, end)] - f->before[offset_of(f, begin)];
    used = opens ? used + 2 * inside : used - 2 * inside;
    open = opens ? open + 1 : open - 1;
    if (open > *depth) *depth = open;
    if (used > *stack) *stack = used;
    if (op == VYRE__LIR_LOOP) *heads += inside;
  }
}

/* Allocates the result, which stays in the arena. */
static vyre_code allocate_result(finder *f, vyre_arena *arena,
                                 vyre_status *st) {
  vyre__lane_shapes *out = f->out;
  size_t count = (size_t)(f->r->end - f->r->begin) + 1;
  size_t vars = f->r->kernel->var_count;
  out->values = vyre__arena_array(arena, count, sizeof *out->values);
  out->vars = vyre__arena_array(arena, vars, sizeof *out->vars);
  out->parts_lanes = vyre__arena_array(arena, count, sizeof *out->parts_lanes);
  if (!out->values || !out->vars || !out->parts_lanes) {
    return vyre__no_memory(st, "shapes", "instructions", count);
  }
  for (size_t i = 0; i < count; i++) out->values[i] = shape_unseen();
  return VYRE_OK;
}

static vyre_code allocate(finder *f, vyre_arena *arena, vyre_status *st) {
  const vyre__regions *r = f->r;
  size_t count = (size_t)(r->end - r->begin) + 1, vars = r->kernel->var_count;
  size_t depth, stack, heads;
  f->diverges = vyre__arena_array(arena, count, sizeof *f->diverges);
  f->exits = vyre__arena_array(arena, count, sizeof *f->exits);
  f->is_live = vyre__arena_array(arena, count, sizeof *f->is_live);
  f->sets = vyre__arena_array(arena, count, sizeof *f->sets);
  f->before = vyre__arena_array(arena, count, sizeof *f->before);
  f->now = vyre__arena_array(arena, vars, sizeof *f->now);
  f->is_forced = vyre__arena_array(arena, vars, sizeof *f->is_forced);
  if (!f->diverges || !f->exits || !f->is_live || !f->sets || !f->before ||
      !f->now || !f->is_forced) {
    return vyre__no_memory(st, "shapes", "instructions", count);
  }
  if (vyre__lane_shape_needs_sums(r->kernel->workgroup, f->lanes)) {
    f->sums = vyre__arena_array(arena, count, sizeof *f->sums);
    if (!f->sums) return vyre__no_memory(st, "shapes", "sums", count);
    memset(f->sums, 0, count * sizeof *f->sums);
  }
  memset(f->diverges, 0, count * sizeof *f->diverges);
  memset(f->exits, 0, count * sizeof *f->exits);
  memset(f->is_live, 0, count * sizeof *f->is_live);
  memset(f->is_forced, 0, vars * sizeof *f->is_forced);
  measure(f, &depth, &stack, &heads);
  f->frames = vyre__arena_array(arena, depth + 1, sizeof *f->frames);
  f->stack = vyre__arena_array(arena, stack + 1, sizeof *f->stack);
  f->heads = vyre__arena_array(arena, heads + 1, sizeof *f->heads);
  if (!f->frames || !f->stack || !f->heads) {
    return vyre__no_memory(st, "shapes", "variables in loops", heads);
  }
  for (size_t i = 0; i < heads; i++) f->heads[i] = shape_unseen();
  return VYRE_OK;
}

static vyre_code find(const vyre__regions *regions, shape_lanes lanes,
                      vyre_arena *arena, vyre__lane_shapes *out,
                      vyre_status *st) {
  uint32_t size = regions->invocations, width = lanes.width;
  finder f = {.r = regions, .out = out, .lanes = lanes};
  if (size < width) f.lanes.count = size;
  *out = (vyre__lane_shapes){.width = width, .begin = regions->begin};
  VYRE_TRY(allocate_result(&f, arena, st));
  vyre__arena_mark mark = vyre__arena_here(arena);
  vyre_code code = allocate(&f, arena, st);
  if (code == VYRE_OK) {
    do {
      do {
        sweep(&f);
      } while (f.is_changed);
    } while (find_vars(&f));
    publish(&f);
  }
  vyre__arena_rewind(arena, mark);
  return code;
}

vyre_code vyre__lane_shapes_find(const vyre__regions *regions, uint32_t width,
                                 vyre_arena *arena, vyre__lane_shapes *out,
                                 vyre_status *st) {
  shape_lanes lanes = {.width = width, .count = width};
  return find(regions, lanes, arena, out, st);
}

vyre_code vyre__lane_shapes_find_anywhere(const vyre__regions *regions,
                                          uint32_t width, vyre_arena *arena,
                                          vyre__lane_shapes *out,
                                          vyre_status *st) {
  shape_lanes lanes = {.width = width, .count = width, .is_anywhere = true};
  return find(regions, lanes, arena, out, st);
}
