/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The way of shapes through variables and control flow.
 *
 * The phase is gone through from its begin to its end, with the shape that each
 * variable has at this place for the lanes that are active there. What a loop
 * begins a round with is remembered; this goes on until no loop finds something
 * new at its begin.
 *
 * A variable has a scalar for the whole vector in mind: the last SET, of whatever
 * lanes, wrote it. So where lanes part, the variables that some of them set are
 * VARYING for the others from there on, even if those never changed them. */
#include "spmd/lane_shape.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "spmd/lane_shape_internal.h"

/* Who does not stay together. */
typedef enum parting {
  PARTS_NOBODY,
  PARTS_VECTORS, /* of a workgroup; the lanes of each stay together */
  PARTS_LANES,
} parting;

/* Rounds after which what is known of alignment is given up: it may shrink by a
 * bit a round. */
enum { PATIENCE = 8 };

/* An IF or LOOP that is open. Ranges are those of `sets`. */
typedef struct frame {
  uint32_t at;
  uint32_t first, count; /* SETs inside of all of it */
  uint32_t middle;       /* SETs before its ELSE, counted from the first one */
  size_t saved;          /* in `room`: 2 * count shapes. IF: of the variables
                            at its begin, then at the end of its first arm; LOOP:
                            at its BREAKs, then at its CONTINUEs */
  size_t head;           /* LOOP: in `heads` */
  uint32_t lanes_from, vectors_from; /* LOOP: SETs that some lanes (vectors)
                                        missed, having gone to the STEP */
  uint8_t continued;                 /* parting, before the STEP */
  bool is_reached;                   /* IF: its begin */
  bool other_reached; /* IF: the end of its first arm; LOOP: its exit */
  bool step_reached;  /* LOOP: by CONTINUE */
} frame;

typedef struct finder {
  const vyre__regions *r;
  vyre__lane_shapes *out;
  shape_lanes lanes;
  uint8_t *parts;  /* parting of each IF and LOOP */
  uint8_t *exits;  /* of each LOOP, by EXIT */
  bool *is_live;   /* values: some lanes get there */
  shape_sum *sums; /* of values; NULL if not needed */
  vyre__lane_shape *now;
  bool *is_forced;        /* variables whose GETs are VARYING, come what may */
  uint32_t *sets;         /* variables that SETs set, in order */
  uint32_t *before;       /* SETs before each instruction */
  frame *frames;          /* [0] is the phase */
  uint32_t depth;         /* of the innermost one */
  vyre__lane_shape *room; /* a stack */
  size_t room_used;
  vyre__lane_shape
      *heads; /* what rounds begin with, of each LOOP; UNSEEN at first */
  size_t head_used;
  uint32_t sweeps;
  bool is_reached;
  bool is_changed;
} finder;

static const vyre__lir_inst *inst_at(const finder *f, uint32_t at) {
  return &f->r->kernel->code[at];
}

static uint32_t slot(const finder *f, uint32_t at) {
  return at - f->r->begin;
}

static vyre__lane_shape *value_of(const finder *f, vyre__val v) {
  return &f->out->values[slot(f, v)];
}

static parting parting_of(vyre__lane_shape s) {
  if (s.kind == SHAPE_UNSEEN) return PARTS_NOBODY;
  if (s.kind < VYRE__LANE_SHAPE_VECTOR) return PARTS_NOBODY;
  return s.kind == VYRE__LANE_SHAPE_VECTOR ? PARTS_VECTORS : PARTS_LANES;
}

static vyre__lane_shape *var_of(const finder *f, const frame *of, uint32_t i) {
  return &f->now[f->sets[of->first + i]];
}

static void raise_to(finder *f, uint8_t *to, parting level) {
  if (*to >= level) return;
  *to = (uint8_t)level;
  f->is_changed = true;
}

static void spoil(finder *f, const frame *of, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; i++) *var_of(f, of, i) = shape_varying();
}

static void set_apart(finder *f, const frame *of, uint32_t begin,
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
  uint32_t first = f->before[slot(f, at)];
  uint32_t count = f->before[slot(f, end)] - first;
  *top = (frame){.at = at,
                 .first = first,
                 .count = count,
                 .middle = count,
                 .saved = f->room_used,
                 .lanes_from = count,
                 .vectors_from = count,
                 .is_reached = f->is_reached};
  f->room_used += 2 * (size_t)count;
  return top;
}

/* --- IF ---------------------------------------------------------------------*/

static void begin_if(finder *f, uint32_t at) {
  vyre__lane_shape condition = *value_of(f, inst_at(f, at)->a);
  /* All or none, if the workgroup does it as one. */
  bool is_agreed = vyre__inst_info_of(f->r, at)->subregion == 0;
  *value_of(f, at) = condition;
  if (!is_agreed) raise_to(f, &f->parts[slot(f, at)], parting_of(condition));
  frame *top = open_frame(f, at);
  save(f, top, f->room + top->saved);
}

/* From the end of the first arm to the begin of the second. */
static void turn_if(finder *f, frame *top, uint32_t middle) {
  top->middle = middle;
  top->other_reached = f->is_reached;
  save(f, top, f->room + top->saved + top->count);
  restore(f, top, f->room + top->saved);
  if (f->parts[slot(f, top->at)] == PARTS_LANES) spoil(f, top, 0, middle);
  f->is_reached = top->is_reached;
}

static void end_if(finder *f, frame *top) {
  uint8_t level = f->parts[slot(f, top->at)];
  vyre__lane_shape *first = f->room + top->saved + top->count;
  if (vyre__inst_info_of(f->r, top->at)->mate ==
      vyre__end_of(f->r, top->at)) { /* no ELSE */
    turn_if(f, top, top->count);
  }
  if (!top->other_reached) return; /* those of the second arm go on */
  if (!f->is_reached) {
    restore(f, top, first);
    if (level == PARTS_LANES) spoil(f, top, top->middle, top->count);
    f->is_reached = true;
    return;
  }
  if (level == PARTS_LANES) {
    spoil(f, top, 0, top->count);
    return;
  }
  join_into(f, top, first);
  restore(f, top, first);
  if (level == PARTS_VECTORS) set_apart(f, top, 0, top->count);
}

/* --- LOOP -------------------------------------------------------------------*/

/* What rounds begin with may also be what the variables are now. */
static void join_head(finder *f, const frame *top) {
  for (uint32_t i = 0; i < top->count; i++) {
    vyre__lane_shape *head = &f->heads[top->head + i];
    vyre__lane_shape joined = vyre__lane_shape_join(*head, *var_of(f, top, i));
    if (shape_equal(joined, *head)) continue;
    if (f->sweeps > PATIENCE && joined.kind != VYRE__LANE_SHAPE_CONSTANT) {
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
    f->room[top->saved + i] = shape_unseen();
  }
  if (f->is_reached) join_head(f, top);
  restore(f, top, f->heads + top->head);
}

/* The innermost loop that is open, and who parts on the way to here from its
 * body or its STEP. */
static frame *loop_around(finder *f, parting *level) {
  uint8_t most = PARTS_NOBODY;
  for (uint32_t i = f->depth; i > 0; i--) {
    frame *open = &f->frames[i];
    if (inst_at(f, open->at)->op == VYRE__LIR_LOOP) {
      *level = (parting)most;
      return open;
    }
    uint8_t parts = f->parts[slot(f, open->at)];
    if (parts > most) most = parts;
  }
  return NULL;
}

static void leave_loop(finder *f, uint32_t at) {
  parting level = PARTS_NOBODY;
  frame *loop = loop_around(f, &level);
  if (!loop) return; /* verified: it has one */
  if (loop->continued > level) level = (parting)loop->continued;
  if (vyre__inst_info_of(f->r, at)->subregion == 0) level = PARTS_NOBODY;
  raise_to(f, &f->parts[slot(f, loop->at)], level);
  if (f->is_reached) {
    join_into(f, loop, f->room + loop->saved);
    loop->other_reached = true;
  }
  f->is_reached = false;
}

static void continue_loop(finder *f, uint32_t at) {
  parting level = PARTS_NOBODY;
  frame *loop = loop_around(f, &level);
  if (!loop) return;
  if (vyre__inst_info_of(f->r, at)->subregion == 0) level = PARTS_NOBODY;
  uint32_t here = f->before[slot(f, at)] - loop->first;
  if (level == PARTS_LANES && here < loop->lanes_from) loop->lanes_from = here;
  if (level != PARTS_NOBODY && here < loop->vectors_from) {
    loop->vectors_from = here;
  }
  if (level > loop->continued) loop->continued = (uint8_t)level;
  if (f->is_reached) {
    join_into(f, loop, f->room + loop->saved + loop->count);
    loop->step_reached = true;
  }
  f->is_reached = false;
}

static void begin_step(finder *f, frame *top, uint32_t at) {
  vyre__lane_shape *continued = f->room + top->saved + top->count;
  uint32_t here = f->before[slot(f, at)] - top->first;
  if (top->step_reached) {
    if (f->is_reached) join_into(f, top, continued);
    restore(f, top, continued);
    set_apart(f, top, top->vectors_from, here);
    spoil(f, top, top->lanes_from, here);
    f->is_reached = true;
  }
}

static void end_loop(finder *f, frame *top) {
  uint8_t level = f->parts[slot(f, top->at)];
  if (f->is_reached) join_head(f, top);
  restore(f, top, f->room + top->saved);
  if (level == PARTS_VECTORS) set_apart(f, top, 0, top->count);
  if (level == PARTS_LANES) spoil(f, top, 0, top->count);
  f->is_reached = top->other_reached;
}

/* Some leave all loops for good; those that stay never meet them again. */
static void leave_all(finder *f, uint32_t at) {
  uint8_t level = PARTS_NOBODY;
  bool is_agreed = vyre__inst_info_of(f->r, at)->subregion == 0;
  for (uint32_t i = f->depth; i > 0 && !is_agreed; i--) {
    frame *open = &f->frames[i];
    uint32_t where = slot(f, open->at);
    if (inst_at(f, open->at)->op == VYRE__LIR_LOOP) {
      if (open->continued > level) level = open->continued;
      raise_to(f, &f->exits[where], (parting)level);
    }
    if (f->parts[where] > level) level = f->parts[where];
  }
  f->is_reached = false;
}

/* --- values -----------------------------------------------------------------*/

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

/* The sum that the value at @p at is, and its shape if it has none otherwise. */
static vyre__lane_shape sum_shape(const finder *f, uint32_t at,
                                  vyre__lane_shape shape) {
  const vyre__lir_inst *inst = inst_at(f, at);
  vyre__lane_shape operands[2] = {{0}};
  shape_sum sums[2] = {{.is_known = false}, {.is_known = false}};
  if (shape.kind == SHAPE_UNSEEN) return shape;
  for (unsigned i = 0; i < 2 && i < vyre__lir_ops[inst->op].operands; i++) {
    if (!inst->v[i]) continue;
    operands[i] = *value_of(f, inst->v[i]);
    sums[i] = f->sums[slot(f, inst->v[i])];
  }
  shape_sum sum = vyre__lane_shape_sum_of(inst, shape, operands, sums);
  f->sums[slot(f, at)] = sum;
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

/* The same, with what the regions do and what there is room for in a vector. */
static void find_value(finder *f, uint32_t at) {
  vyre__lane_shape s = any_shape(f, at);
  if (f->sums) s = sum_shape(f, at, s);
  bool is_once = vyre__inst_info_of(f->r, at)->storage == VYRE__STORAGE_UNIFORM;
  bool is_one = f->lanes.count == 1;
  if (s.kind != SHAPE_UNSEEN) {
    if (is_one && s.kind > VYRE__LANE_SHAPE_VECTOR) {
      s = shape_make(VYRE__LANE_SHAPE_VECTOR, 0, 0);
    }
    if (is_once && s.kind > VYRE__LANE_SHAPE_GROUP) {
      s = shape_make(VYRE__LANE_SHAPE_GROUP,
                     s.kind == VYRE__LANE_SHAPE_VECTOR ? s.aligned : 0, 0);
    }
  }
  *value_of(f, at) = s;
  f->is_live[slot(f, at)] = f->is_reached;
}

/* --- all --------------------------------------------------------------------*/

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
      turn_if(f, top, f->before[slot(f, at)] - top->first);
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
      f->room_used = top->saved;
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
  f->depth = f->room_used = f->head_used = 0;
  f->is_reached = true;
  f->is_changed = false;
  f->sweeps++;
  for (uint32_t at = f->r->begin; at < f->r->end; at++) {
    if (vyre__inst_info_of(f->r, at)->is_reached) visit(f, at);
  }
}

/* Puts the GETs of each variable together. A scalar has one meaning: where some
 * GETs are uniform and some linear, or nobody was seen to set what is got, all
 * become VARYING. Whether there was such a variable. */
static bool find_vars(finder *f) {
  const vyre__regions *r = f->r;
  bool is_new = false;
  for (uint32_t i = 0; i < r->kernel->var_count; i++) {
    f->now[i] = shape_unseen();
    f->out->vars[i] = (vyre__lane_shape_var){.shape = shape_unseen()};
  }
  for (uint32_t at = r->begin; at < r->end; at++) {
    const vyre__lir_inst *inst = inst_at(f, at);
    const vyre__inst_info *role = vyre__inst_info_of(r, at);
    if (inst->op != VYRE__LIR_GET || !role->is_needed) continue;
    if (!f->is_live[slot(f, at)]) continue;
    vyre__lane_shape_var *var = &f->out->vars[inst->aux];
    vyre__lane_shape s = *value_of(f, at), *steady = &f->now[inst->aux];
    bool is_varying = s.kind == VYRE__LANE_SHAPE_VARYING;
    bool is_mixed = false;
    if (!is_varying) {
      *steady = vyre__lane_shape_join(*steady, s);
      is_mixed =
          steady->kind == VYRE__LANE_SHAPE_VARYING || s.kind == SHAPE_UNSEEN;
    }
    if (is_mixed && !f->is_forced[inst->aux]) {
      f->is_forced[inst->aux] = is_new = true;
    }
    var->shape = vyre__lane_shape_join(var->shape, s);
    var->is_lockstep = var->shape.kind == VYRE__LANE_SHAPE_VARYING &&
                       steady->kind != SHAPE_UNSEEN;
  }
  return is_new;
}

/* What nobody gets, or nobody gets to, is not to be mistaken for something. */
static void publish(finder *f) {
  const vyre__regions *r = f->r;
  for (uint32_t at = r->begin; at < r->end; at++) {
    vyre__lane_shape *s = value_of(f, at);
    if (s->kind == SHAPE_UNSEEN) *s = shape_varying();
    f->out->parts_lanes[slot(f, at)] = f->parts[slot(f, at)] == PARTS_LANES ||
                                       f->exits[slot(f, at)] == PARTS_LANES;
  }
  for (uint32_t i = 0; i < r->kernel->var_count; i++) {
    vyre__lane_shape *s = &f->out->vars[i].shape;
    if (s->kind == SHAPE_UNSEEN) *s = shape_varying();
  }
}

/* Counts SETs, and the room that nests of them take. */
static void measure(finder *f, size_t *depth, size_t *room, size_t *heads) {
  const vyre__regions *r = f->r;
  uint32_t count = 0;
  size_t open = 0, used = 0;
  for (uint32_t at = r->begin; at < r->end; at++) {
    f->before[slot(f, at)] = count;
    if (!vyre__inst_info_of(r, at)->is_reached) continue;
    if (inst_at(f, at)->op == VYRE__LIR_SET) {
      f->sets[count++] = inst_at(f, at)->aux;
    }
  }
  *depth = *room = *heads = 0;
  for (uint32_t at = r->begin; at < r->end; at++) {
    uint8_t op = inst_at(f, at)->op;
    if (!vyre__inst_info_of(r, at)->is_reached) continue;
    bool opens = op == VYRE__LIR_IF || op == VYRE__LIR_LOOP;
    if (!opens && op != VYRE__LIR_END) continue;
    uint32_t begin = opens ? at : vyre__inst_info_of(r, at)->mate;
    uint32_t end = opens ? vyre__end_of(r, at) : at;
    size_t inside = f->before[slot(f, end)] - f->before[slot(f, begin)];
    used = opens ? used + 2 * inside : used - 2 * inside;
    open = opens ? open + 1 : open - 1;
    if (open > *depth) *depth = open;
    if (used > *room) *room = used;
    if (op == VYRE__LIR_LOOP) *heads += inside;
  }
}

/* What is found; it stays in the arena. */
static vyre_code take_shapes(finder *f, vyre_arena *arena, vyre_status *st) {
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

static vyre_code take_arrays(finder *f, vyre_arena *arena, vyre_status *st) {
  const vyre__regions *r = f->r;
  size_t count = (size_t)(r->end - r->begin) + 1, vars = r->kernel->var_count;
  size_t depth, room, heads;
  f->parts = vyre__arena_array(arena, count, sizeof *f->parts);
  f->exits = vyre__arena_array(arena, count, sizeof *f->exits);
  f->is_live = vyre__arena_array(arena, count, sizeof *f->is_live);
  f->sets = vyre__arena_array(arena, count, sizeof *f->sets);
  f->before = vyre__arena_array(arena, count, sizeof *f->before);
  f->now = vyre__arena_array(arena, vars, sizeof *f->now);
  f->is_forced = vyre__arena_array(arena, vars, sizeof *f->is_forced);
  if (!f->parts || !f->exits || !f->is_live || !f->sets || !f->before ||
      !f->now || !f->is_forced) {
    return vyre__no_memory(st, "shapes", "instructions", count);
  }
  if (vyre__lane_shape_needs_sums(r->kernel->workgroup, f->lanes)) {
    f->sums = vyre__arena_array(arena, count, sizeof *f->sums);
    if (!f->sums) return vyre__no_memory(st, "shapes", "sums", count);
    memset(f->sums, 0, count * sizeof *f->sums);
  }
  memset(f->parts, 0, count * sizeof *f->parts);
  memset(f->exits, 0, count * sizeof *f->exits);
  memset(f->is_live, 0, count * sizeof *f->is_live);
  memset(f->is_forced, 0, vars * sizeof *f->is_forced);
  measure(f, &depth, &room, &heads);
  f->frames = vyre__arena_array(arena, depth + 1, sizeof *f->frames);
  f->room = vyre__arena_array(arena, room + 1, sizeof *f->room);
  f->heads = vyre__arena_array(arena, heads + 1, sizeof *f->heads);
  if (!f->frames || !f->room || !f->heads) {
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
  VYRE_TRY(take_shapes(&f, arena, st));
  vyre__arena_mark mark = vyre__arena_here(arena);
  vyre_code code = take_arrays(&f, arena, st);
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
