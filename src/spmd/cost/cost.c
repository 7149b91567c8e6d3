/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Estimates the cycles of vector code (cost.h). */
#include "spmd/cost/cost.h"

#include "base/memory.h"
#include "base/status.h"
#include "spmd/cost/cost_internal.h"
#include "spmd/schedule_internal.h"

enum {
  UNKNOWN_TRIPS = 16,
  MAX_TRIPS = 1024, /* trip counts above this are all the same */
  LONG_ROW = 4096,  /* invocations of a row that spans workgroups */
  GRID_ROW = 256,   /* the same if a workgroup has several rows */
  MAX_STRIDE = 8,   /* elements between lanes that are loaded as well */
  FEW_STREAMS = 8,  /* ways of a small cache */
  SHORT_CODE = 256, /* instructions that a processor looks ahead */
  SPLAT = 4,        /* bytes of most values */
};

/* Shares that no analysis tells. */
#define FULL_SHARE       0.92 /* vectors of a row in the full range */
#define TREE_SHARE       0.25 /* invocations that work, over all iterations */
#define FULL_GROUP_SHARE 0.95 /* workgroups in which all guards hold */
#define RARE             0.02
#define DATA             0.5  /* a lane takes an IF that depends on data */
#define SMALL_VERSION    0.1  /* code for one small power of two */
#define WIDE_VERSION     0.9  /* code for multiples of the width, of the rest */
#define GUARD            0.95 /* the same of ids and sizes */

/* Growth of the longest of several trip counts, per doubling of lanes. */
#define LOADED_BOUND 0.45
#define DATA_EXIT    0.10
#define LINEAR_BOUND 0.04

static void spend(estimate *e, vyre__cost_kind kind, double cycles) {
  e->kinds[kind] += e->times * cycles;
}

static double sum_of(const double kinds[]) {
  double sum = 0;
  for (unsigned i = 0; i < VYRE__COST_KINDS; i++) sum += kinds[i];
  return sum;
}

static double log2_of(uint32_t width) {
  double count = 0;
  for (; width > 1; width /= 2) count++;
  return count;
}

/* Returns the length of a row. */
static double length_of_row(const vyre__schedule *s) {
  const uint32_t *size = s->kernel->workgroup;
  if (!s->is_fused) return size[0];
  return size[1] > 1 || size[2] > 1 ? GRID_ROW : LONG_ROW;
}

/* --- registers --------------------------------------------------------------*/

/* Returns the cost of one operation on as many registers as vectors of elements
 * of @p bytes take, as a multiple of that on a register of 256 bits. */
static double registers(const estimate *e, unsigned bytes) {
  double wide = e->s->lanes == 16 ? 64 : e->s->lanes == 4 ? 16 : 32;
  double size = (double)e->s->width * bytes;
  if (size <= 32 && size <= wide) return 1;
  return size / wide * (wide > 32 ? e->machine->wide : 1);
}

unsigned vyre__cost_bytes(uint8_t type) {
  return type == VYRE_TYPE_U64 || type == VYRE_TYPE_F64 ? 8 : 4;
}

bool vyre__cost_is_vector(const estimate *e, vyre__val v) {
  return e->s->width > 1 && shape_at(e->s, v).kind == VYRE__LANE_SHAPE_VARYING;
}

/* --- memory -----------------------------------------------------------------*/

/* Returns true if lanes are contiguous where the index is not clamped. The full
 * range has no other lanes; other ranges test at run time. */
static bool is_contiguous_here(const estimate *e, vyre__val index) {
  vyre__row_split *row = e->rows ? e->rows->split : NULL;
  if (!row) return false;
  return vyre__row_is_linear(e->s, row, index) ||
         vyre__row_is_clamped(e->s, row, index);
}

static void spend_contiguous(estimate *e, const vyre__lir_buffer *buffer,
                             bool is_store) {
  double count = registers(e, buffer->width);
  double one = is_store ? e->machine->store : e->machine->load;
  spend(e, VYRE__COST_CONTIGUOUS, one * count);
  if (!e->is_masked) return;
  bool has_masks = e->s->lanes == 16 && buffer->width >= 4;
  spend(e, VYRE__COST_MASKED, (has_masks ? 1 : 3) * count + (is_store ? 1 : 2));
  e->size += 12;
}

/* Lanes that are rows of a grid apart are that many streams of cache lines,
 * often at powers of two, which share few sets of a cache. Returns the factor by
 * which that slows down an access at @p index. */
static double crowding(const estimate *e, const vyre__lir_buffer *buffer,
                       vyre__val index) {
  bool is_grid =
      buffer->kind != VYRE_MEMORY_SHARED && !vyre__cost_is_loaded(e, index, 0);
  if (!is_grid || e->s->width <= FEW_STREAMS) return 1;
  return 1 + 0.5 * (log2_of(e->s->width) - log2_of(FEW_STREAMS));
}

static void spend_lanes(estimate *e, uint32_t at, bool is_store, bool is_near) {
  const vyre__lir_inst *inst = inst_at(e->s, at);
  const vyre__lir_buffer *buffer = &e->s->kernel->buffers[inst->aux];
  const vyre__cost_machine *m = e->machine;
  double lane = is_store ? e->is_masked ? m->masked_scatter : m->scatter
                : buffer->width < 4 ? m->narrow_gather
                                    : m->gather;
  if (is_near) lane = (is_store ? m->store : m->load) + m->lane;
  spend(e, is_store ? VYRE__COST_SCATTER : VYRE__COST_GATHER,
        lane * e->s->width * crowding(e, buffer, inst->a));
  e->size += is_near ? 3 * e->s->width : 12;
}

/* A vector of the rows of lanes comes from a transposed block. */
static void spend_walk(estimate *e, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(e->s, at);
  const vyre__lir_buffer *buffer = &e->s->kernel->buffers[inst->aux];
  const vyre__cost_machine *m = e->machine;
  double count = registers(e, buffer->width);
  double steps = log2_of(e->s->width < e->s->lanes ? e->s->width : e->s->lanes);
  double fill = m->load + m->store + steps * m->shuffle;
  spend(e, VYRE__COST_STRIDED,
        count * fill * crowding(e, buffer, inst->a) + 2 + count * m->load);
  e->size += 20;
}

/* Returns the number of accesses that are merged with access @p at. */
static uint32_t group_size(const estimate *e, uint32_t at) {
  uint32_t first = note_at(e->s, at)->together, count = 0;
  for (uint32_t i = first; i <= note_at(e->s, first)->together_last; i++) {
    count += note_at(e->s, i)->together == first;
  }
  return count;
}

/* The group shares the elements of all its fields. */
static void spend_interleaved(estimate *e, uint32_t at, bool is_store) {
  const vyre__lir_inst *inst = inst_at(e->s, at);
  const vyre__lir_buffer *buffer = &e->s->kernel->buffers[inst->aux];
  const vyre__cost_machine *m = e->machine;
  double stride = (double)shape_at(e->s, inst->a).stride;
  double all = stride * registers(e, buffer->width) / group_size(e, at);
  double moves = registers(e, buffer->width) * stride * m->shuffle;
  spend(e, VYRE__COST_STRIDED, all * (is_store ? m->store : m->load) + moves);
  e->size += 4 + (uint32_t)stride;
}

static void spend_vector_access(estimate *e, uint32_t at, bool is_store) {
  const vyre__lir_inst *inst = inst_at(e->s, at);
  const vyre__lir_buffer *buffer = &e->s->kernel->buffers[inst->aux];
  vyre__access_kind kind = vyre__access_kind_of(e->s, at);
  int32_t stride = (int32_t)shape_at(e->s, inst->a).stride;
  int32_t step = stride < 0 ? -stride : stride;
  if (kind == VYRE__ACCESS_CONTIGUOUS || is_contiguous_here(e, inst->a)) {
    spend_contiguous(e, buffer, is_store);
    return;
  }
  if (e->walks && note_at(e->s, at)->walk == e->walks->begin) {
    spend_walk(e, at);
    return;
  }
  if (kind == VYRE__ACCESS_SHUFFLED) {
    double count = registers(e, buffer->width) * (is_store ? 5 : 3);
    spend(e, VYRE__COST_STRIDED, count * e->machine->shuffle);
    e->size += 8;
    return;
  }
  if (kind == VYRE__ACCESS_INTERLEAVED && !e->is_masked) {
    spend_interleaved(e, at, is_store);
    return;
  }
  if (kind == VYRE__ACCESS_INTERLEAVED) kind = VYRE__ACCESS_STRIDED;
  if (kind == VYRE__ACCESS_STRIDED && step <= MAX_STRIDE && !is_store) {
    double count = registers(e, buffer->width);
    spend(e, VYRE__COST_STRIDED,
          count * step * (e->machine->load + e->machine->shuffle));
    e->size += 4 + (uint32_t)step;
    return;
  }
  spend_lanes(e, at, is_store, kind == VYRE__ACCESS_STRIDED);
}

static void spend_access(estimate *e, uint32_t at, bool is_store) {
  if (vyre__access_kind_of(e->s, at) == VYRE__ACCESS_UNIFORM) {
    spend(e, VYRE__COST_CONTIGUOUS,
          is_store ? e->machine->store : e->machine->load);
    e->size += 4;
    return;
  }
  e->size += 4;
  spend_vector_access(e, at, is_store);
}

/* Numbers for one sum are stored to a strip, and added from there. */
static void spend_sum(estimate *e, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(e->s, at);
  const vyre__cost_machine *m = e->machine;
  const uint32_t width = e->s->width;
  e->size += 16;
  if (width == 1 || vyre__lane_shape_is_uniform(shape_at(e->s, inst->a))) {
    const double count = registers(e, e->s->kernel->buffers[inst->aux].width);
    spend(e, VYRE__COST_ATOMIC, 2 * m->store + count * (m->store + m->load));
    return;
  }
  spend(e, VYRE__COST_ATOMIC, (2 * m->atomic + m->lane) * (float)width);
}

static void spend_atomic(estimate *e, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(e->s, at);
  if (inst->op == VYRE__LIR_SUM_ADD) {
    spend_sum(e, at);
    return;
  }
  const vyre__cost_machine *m = e->machine;
  uint32_t width = e->s->width;
  bool is_own = e->s->kernel->buffers[inst->aux].kind == VYRE_MEMORY_SHARED ||
                e->s->privatised[inst->aux].is_on;
  double one = is_own ? m->own_atomic : m->atomic;
  bool is_one_element =
      width > 1 && vyre__lane_shape_is_uniform(shape_at(e->s, inst->a));
  e->size += 16;
  if (is_one_element && vyre__atomic_commutes(inst->op) &&
      (!info_at(e->s, at)->uses || inst->op == VYRE__LIR_ATOMIC_ADD)) {
    /* Lanes are combined first; each gets its part of the sum. */
    double steps = info_at(e->s, at)->uses ? 4 : 2;
    spend(e, VYRE__COST_ATOMIC, one + steps * log2_of(width));
    return;
  }
  spend(e, VYRE__COST_ATOMIC, one * width);
  if (width == 1) return;
  double lane = m->lane + (e->is_masked ? 1.0F : 0.0F);
  spend(e, VYRE__COST_ATOMIC, lane * width);
  /* The results go back into a vector. */
  if (info_at(e->s, at)->uses)
    spend(e, VYRE__COST_ATOMIC, m->lane * (float)width);
}

/* --- arithmetic -------------------------------------------------------------*/

static bool divides(uint8_t op) {
  return op >= VYRE__LIR_DIV_U && op <= VYRE__LIR_REM_S;
}

static vyre__cost_class class_of_division(const estimate *e,
                                          const vyre__lir_inst *inst) {
  bool is_wide = inst->type == VYRE_TYPE_U64;
  bool is_unsigned = inst->op == VYRE__LIR_DIV_U || inst->op == VYRE__LIR_REM_U;
  if (is_op(e->s, inst->b, VYRE__LIR_CONST)) return VYRE__CLASS_DIVIDE_CONST;
  if (is_wide) return VYRE__CLASS_DIVIDE_WIDE;
  bool is_same = vyre__lane_shape_is_uniform(shape_at(e->s, inst->b));
  return e->s->width > 1 && is_unsigned && is_same ? VYRE__CLASS_DIVIDE_CONST
                                                   : VYRE__CLASS_DIVIDE;
}

vyre__cost_class vyre__cost_class_of(const estimate *e,
                                     const vyre__lir_inst *inst) {
  switch (inst->op) {
    case VYRE__LIR_MUL:
      return inst->type == VYRE_TYPE_U64 ? VYRE__CLASS_WIDE
                                         : VYRE__CLASS_PRODUCT;
    case VYRE__LIR_DIV_U:
    case VYRE__LIR_DIV_S:
    case VYRE__LIR_REM_U:
    case VYRE__LIR_REM_S:
      return class_of_division(e, inst);
    case VYRE__LIR_CLZ:
    case VYRE__LIR_CTZ:
    case VYRE__LIR_POPCOUNT:
      return VYRE__CLASS_COUNT;
    case VYRE__LIR_FDIV:
      return VYRE__CLASS_QUOTIENT;
    case VYRE__LIR_FSQRT:
      return VYRE__CLASS_ROOT;
    case VYRE__LIR_FADD:
    case VYRE__LIR_FSUB:
    case VYRE__LIR_FMUL:
    case VYRE__LIR_FMA:
    case VYRE__LIR_FFLOOR:
    case VYRE__LIR_FCEIL:
    case VYRE__LIR_FTRUNC:
    case VYRE__LIR_FRINT:
    case VYRE__LIR_FMIN:
    case VYRE__LIR_FMAX:
      return VYRE__CLASS_FLOAT;
    case VYRE__LIR_ZEXT:
    case VYRE__LIR_SEXT:
    case VYRE__LIR_TRUNC:
    case VYRE__LIR_U_TO_F:
    case VYRE__LIR_S_TO_F:
    case VYRE__LIR_F_TO_U:
    case VYRE__LIR_F_TO_S:
    case VYRE__LIR_F_EXTEND:
    case VYRE__LIR_F_ROUND:
      return VYRE__CLASS_CONVERT;
    default:
      return VYRE__CLASS_SIMPLE;
  }
}

/* Returns the bytes of an element of the operation's vectors. */
static unsigned lane_bytes(const estimate *e, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(e->s, at);
  uint8_t narrow = e->narrow[at - e->s->r.begin].op_bytes;
  if (narrow) return narrow;
  unsigned bytes = vyre__cost_bytes(inst->type);
  if (vyre__lir_ops[inst->op].operands == 0) return bytes;
  unsigned from = vyre__cost_bytes(inst_at(e->s, inst->a)->type);
  return from > bytes ? from : bytes;
}

/* A SET costs where lanes keep their old values. */
static void spend_set(estimate *e, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(e->s, at);
  bool blends = e->is_masked && !note_at(e->s, at)->no_blend &&
                e->s->vars[inst->aux].form == VYRE__AS_VECTOR;
  unsigned bytes = vyre__cost_bytes(inst_at(e->s, inst->a)->type);
  if (e->s->width > 1 && e->s->vars[inst->aux].is_array) {
    spend(e, VYRE__COST_OVERHEAD, registers(e, bytes));
  } else if (e->s->width > 1 && blends) {
    spend(e, VYRE__COST_MASKED, 0.3 * registers(e, bytes));
  }
}

/* Values that do not fit into registers are stored and loaded again. */
static void spend_spills(estimate *e, uint32_t at, unsigned bytes) {
  double room = e->s->lanes == 16 ? 30 : 14;
  double live = e->live ? e->live[at - e->s->r.begin] : 0;
  if (live <= room || e->group) return;
  spend(e, VYRE__COST_SPILLS, (live - room) / live * 0.5 * registers(e, bytes));
}

/* Returns true if @p inst joins both parts of a rotation by a constant, which
 * is one instruction. */
static bool is_rotation(const estimate *e, const vyre__lir_inst *inst) {
  if (inst->op != VYRE__LIR_OR) return false;
  const vyre__lir_inst *a = inst_at(e->s, inst->a);
  const vyre__lir_inst *b = inst_at(e->s, inst->b);
  bool turns_left = a->op == VYRE__LIR_SHL && b->op == VYRE__LIR_SHR_U;
  bool turns_right = a->op == VYRE__LIR_SHR_U && b->op == VYRE__LIR_SHL;
  return (turns_left || turns_right) && a->a == b->a &&
         is_op(e->s, a->b, VYRE__LIR_CONST) &&
         is_op(e->s, b->b, VYRE__LIR_CONST);
}

/* Returns the cost of an operation in relation to others of its class. */
static double part_of_op(const estimate *e, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(e->s, at);
  bool is_vector = vyre__cost_is_vector(e, at);
  bool has_ternary = is_vector && e->s->lanes == 16;
  /* A linear value is that of lane 0; most become parts of addresses. */
  double part = is_vector || e->s->width == 1 ? 1 : 0.5;
  if (is_rotation(e, inst) && (has_ternary || !is_vector)) return -part;
  /* Two of these are one instruction. */
  bool is_logic = inst->op >= VYRE__LIR_AND && inst->op <= VYRE__LIR_NOT;
  return is_logic && has_ternary ? 0.6 : part;
}

static void spend_op(estimate *e, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(e->s, at);
  if (inst->op <= VYRE__LIR_FUEL || inst->op == VYRE__LIR_GET) return;
  if (inst->op == VYRE__LIR_BITCAST || inst->op == VYRE__LIR_AGREE) return;
  if (inst->op == VYRE__LIR_SET) {
    spend_set(e, at);
    return;
  }
  vyre__cost_class class = vyre__cost_class_of(e, inst);
  vyre__cost_kind kind = divides(inst->op) || inst->op == VYRE__LIR_FDIV ||
                                 inst->op == VYRE__LIR_FSQRT
                             ? VYRE__COST_DIVISION
                             : VYRE__COST_ARITHMETIC;
  unsigned bytes = lane_bytes(e, at);
  e->size++;
  if (!vyre__cost_is_vector(e, at)) {
    spend(e, kind, part_of_op(e, at) * e->machine->scalar[class]);
    return;
  }
  if (class == VYRE__CLASS_DIVIDE_WIDE) {
    spend(e, kind,
          (e->machine->scalar[class] + 2 * e->machine->lane) *
              (float)e->s->width);
    e->size += 4 * e->s->width;
    return;
  }
  spend(e, kind,
        part_of_op(e, at) * e->machine->vector[class] * registers(e, bytes));
  spend_spills(e, at, bytes);
}

static bool is_counted_here(const estimate *e, uint32_t at) {
  const vyre__inst_info *info = info_at(e->s, at);
  if (!info->is_needed || !info->is_reached || info->is_leaf) return false;
  if (info->storage == VYRE__STORAGE_UNIFORM) return false;
  const vyre__sched_note *note = note_at(e->s, at);
  if (note->is_row_load) return false;
  return !e->group || !note->groups || note->groups & e->group;
}

static void spend_one(estimate *e, uint32_t at) {
  uint8_t op = inst_at(e->s, at)->op;
  double times = e->times;
  if (e->jam && !e->jam->is_common[at - e->s->r.begin]) {
    e->times *= e->jam->rows;
  }
  if (op == VYRE__LIR_LOAD || op == VYRE__LIR_STORE) {
    spend_access(e, at, op == VYRE__LIR_STORE);
  } else if (is_access(e->s, at)) {
    spend_atomic(e, at);
  } else {
    spend_op(e, at);
  }
  e->times = times;
}

static void spend_code(estimate *e, const vyre__sched_node *node) {
  for (uint32_t at = node->begin; at < node->end; at++) {
    if (is_counted_here(e, at)) spend_one(e, at);
  }
}

/* Values that the workgroup computes once, in scalars. */
static void spend_uniform(estimate *e, const vyre__sched_node *node) {
  for (uint32_t at = node->begin; at < node->end; at++) {
    const vyre__inst_info *info = info_at(e->s, at);
    if (!info->is_needed || info->storage != VYRE__STORAGE_UNIFORM) continue;
    if (inst_at(e->s, at)->op <= VYRE__LIR_SET) continue;
    bool loads = is_access(e->s, at);
    e->size += 2;
    spend(e, loads ? VYRE__COST_CONTIGUOUS : VYRE__COST_OVERHEAD,
          loads
              ? e->machine->load
              : e->machine->scalar[vyre__cost_class_of(e, inst_at(e->s, at))]);
  }
}

/* --- control flow -----------------------------------------------------------*/

static void visit(estimate *e, const vyre__sched_node *first);

static bool only_leaves(const estimate *e, uint32_t at) {
  return flags_at(e->s, at + 1) & VYRE__LIRF_JUMPS ||
         is_op(e->s, at + 1, VYRE__LIR_OUT_OF_FUEL);
}

static bool is_version(const estimate *e, const vyre__sched_node *node) {
  return (node->kind == VYRE__SCHED_IF || node->kind == VYRE__SCHED_GROUP_IF) &&
         inst_at(e->s, node->begin)->hints & VYRE__HINT_VERSION;
}

/* Returns true if a list contains an IF between versions. */
static bool has_version(const estimate *e, const vyre__sched_node *first) {
  for (const vyre__sched_node *node = first; node; node = node->next) {
    if (is_version(e, node) || has_version(e, node->body) ||
        has_version(e, node->other)) {
      return true;
    }
  }
  return false;
}

/* Returns the probability that the first version runs: for one small power of
 * two, or, before the last one, for multiples of the width. */
static double probability_of_version(const estimate *e,
                                     const vyre__sched_node *node) {
  return has_version(e, node->other) ? SMALL_VERSION : WIDE_VERSION;
}

/* Returns the probability that a lane takes IF @p at. */
static double probability(const estimate *e, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(e->s, at);
  if (inst->hints & VYRE__HINT_RARE || only_leaves(e, at)) return RARE;
  return vyre__cost_is_data(e, inst->a, 0) ? DATA : GUARD;
}

/* Visits a list that runs @p share of the times. */
static void visit_share(estimate *e, const vyre__sched_node *first,
                        double share) {
  double times = e->times;
  e->times *= share;
  visit(e, first);
  e->times = times;
}

/* Returns the probability that at least one of the lanes takes a branch. */
static double any_of(const estimate *e, double p) {
  double none = 1;
  for (uint32_t i = 0; i < e->s->width && none > 0.005; i++) none *= 1 - p;
  return 1 - none;
}

static void visit_if(estimate *e, const vyre__sched_node *node) {
  double p = is_version(e, node) ? probability_of_version(e, node)
                                 : probability(e, node->begin);
  bool masked = e->is_masked;
  e->size += 3;
  if (node->mode == VYRE__MODE_UNIFORM) {
    bool guesses = e->s->width == 1 && p > RARE && p < GUARD;
    spend(e, VYRE__COST_OVERHEAD, guesses ? 2 : 0.3);
    visit_share(e, node->body, p);
    visit_share(e, node->other, 1 - p);
    return;
  }
  e->is_masked = true;
  if (node->mode == VYRE__MODE_MASKED) {
    if (p > RARE) spend(e, VYRE__COST_MASKED, 1.5 + 0.5 * registers(e, SPLAT));
    e->size += 6;
    visit_share(e, node->body, any_of(e, p));
    visit_share(e, node->other, any_of(e, 1 - p));
  } else {
    visit(e, node->body);
    visit(e, node->other);
  }
  e->is_masked = masked;
}

static double trips_of(const estimate *e, uint32_t at) {
  const vyre__lir_loop *loop = &e->s->kernel->loops[inst_at(e->s, at)->aux];
  double most =
      loop->max_trips > MAX_TRIPS ? MAX_TRIPS : (double)loop->max_trips;
  bool is_known = loop->is_counted &&
                  is_op(e->s, loop->first, VYRE__LIR_CONST) &&
                  is_op(e->s, loop->bound, VYRE__LIR_CONST);
  return is_known || most < UNKNOWN_TRIPS ? most : UNKNOWN_TRIPS;
}

/* Returns how much longer the loop takes because lanes wait for others. */
static double waiting(const estimate *e, const vyre__sched_node *node) {
  const vyre__lir_loop *loop =
      &e->s->kernel->loops[inst_at(e->s, node->begin)->aux];
  double more = DATA_EXIT;
  if (loop->is_counted) {
    bool differs = vyre__cost_is_vector(e, loop->first) ||
                   vyre__cost_is_vector(e, loop->bound);
    bool loads = vyre__cost_is_data(e, loop->first, 0) ||
                 vyre__cost_is_data(e, loop->bound, 0);
    more = differs && loads ? LOADED_BOUND : differs ? LINEAR_BOUND : DATA_EXIT;
  }
  return 1 + more * log2_of(e->s->width);
}

/* Adds what @p trips iterations cost: at least the chain of operations that
 * each iteration continues. */
static void spend_iterations(estimate *e, const double before[], double times,
                             double trips, double chain) {
  double sum = sum_of(e->kinds);
  if (chain > sum) e->kinds[VYRE__COST_LATENCY] += chain - sum;
  for (unsigned i = 0; i < VYRE__COST_KINDS; i++) {
    e->kinds[i] = before[i] + times * trips * e->kinds[i];
  }
}

static void visit_loop(estimate *e, const vyre__sched_node *node) {
  double before[VYRE__COST_KINDS], times = e->times;
  double trips = trips_of(e, node->begin), chain = 0;
  uint8_t group = e->group;
  bool masked = e->is_masked;
  memcpy(before, e->kinds, sizeof before);
  memset(e->kinds, 0, sizeof e->kinds);
  e->times = 1;
  e->depth++;
  e->group = node->group ? node->group : group;
  e->size += 6;
  const vyre__sched_node *walks = e->walks;
  e->walks = node->walks ? node : NULL;
  spend(e, VYRE__COST_OVERHEAD, 0.5);
  if (node->mode == VYRE__MODE_MASKED) {
    bool is_peeled = node->peel != 0;
    double each = 2 + 0.5 * registers(e, SPLAT);
    spend(e, VYRE__COST_DIVERGENCE, is_peeled ? each / trips : each);
    e->is_masked = masked || !is_peeled;
    if (!is_peeled) trips *= waiting(e, node);
    e->size += is_peeled ? 20 : 8;
  }
  visit(e, node->body);
  visit(e, node->other);
  chain = vyre__cost_chain(e, node);
  if ((node->end - node->begin) * trips < SHORT_CODE) chain /= 2;
  double path = vyre__cost_path(e, node->begin + 1, node->end);
  spend_iterations(e, before, times, trips, path > chain ? path : chain);
  if (--e->depth == 0) e->in_loops += sum_of(e->kinds) - sum_of(before);
  e->times = times;
  e->is_masked = masked;
  e->group = group;
  e->walks = walks;
}

static void visit_group_loop(estimate *e, const vyre__sched_node *node) {
  double times = e->times;
  e->times *= trips_of(e, node->begin);
  e->group_loops++;
  spend(e, VYRE__COST_OVERHEAD, 2);
  visit(e, node->body);
  visit(e, node->other);
  e->group_loops--;
  e->times = times;
}

/* The workgroup chooses one of several versions in each round. */
static void visit_group_if(estimate *e, const vyre__sched_node *node) {
  double p = is_version(e, node) ? probability_of_version(e, node)
                                 : probability(e, node->begin);
  spend(e, VYRE__COST_OVERHEAD, 1);
  visit_share(e, node->body, p);
  visit_share(e, node->other, 1 - p);
}

/* --- rows -------------------------------------------------------------------*/

static void visit_range(estimate *e, const vyre__sched_node *range,
                        double vectors) {
  double times = e->times;
  bool masked = e->is_masked;
  e->range = range;
  e->ranges++;
  e->times *= vectors;
  e->is_masked = range->range == VYRE__RANGE_EDGE && e->s->width > 1;
  double before = sum_of(e->kinds);
  e->in_loops = 0;
  spend(e, VYRE__COST_OVERHEAD, e->s->width > 1 ? 1.5 : 0.7);
  visit(e, range->body);
  double path = e->times * vyre__cost_path(e, range->begin, range->end);
  double sum = sum_of(e->kinds) - before - e->in_loops;
  if (path > sum) e->kinds[VYRE__COST_LATENCY] += path - sum;
  e->is_masked = masked;
  e->times = times;
  e->range = NULL;
}

/* Returns true if a guard compares with a number that changes in each round of a
 * loop around the rows: a tree, in which fewer and fewer invocations work. */
static bool is_tree(const estimate *e, const vyre__row_split *row) {
  if (!e->group_loops || !row) return false;
  for (uint32_t i = 0; i < row->count; i++) {
    const vyre__row_condition *a = &row->conditions[i];
    const vyre__lir_inst *inst = inst_at(e->s, a->v);
    if (!a->clips || a->is_same || !vyre__lir_ops[inst->op].operands) continue;
    if (vyre__cost_is_data(e, inst->a, 0) || vyre__cost_is_data(e, inst->b, 0))
      return true;
  }
  return false;
}

/* Returns true if invocations at both ends of a row have work, but not in the
 * full range. */
static bool has_border(const vyre__sched_node *rows) {
  const vyre__row_split *row = rows ? rows->split : NULL;
  for (uint32_t i = 0; row && i < row->count; i++) {
    const vyre__row_condition *a = &row->conditions[i];
    if (!a->clips && !a->is_same) return true;
  }
  return false;
}

/* Counts the vectors of a row in each of its ranges. */
static void visit_ranges(estimate *e, const vyre__sched_node *first,
                         double length, double share) {
  uint32_t width = e->s->width;
  uint64_t vectors = (uint64_t)length / width;
  double full = (double)vectors, part = 0;
  if (e->rows && is_tree(e, e->rows->split)) {
    full *= TREE_SHARE;
    if (width > 1) part = 0.5;
    share = 1;
  }
  if (!e->s->is_fused && (uint64_t)length % width) part += 1;
  /* Grids have sizes of any kind, and guards hold except at the ends. */
  if (e->s->is_fused && width > 1) {
    part = has_border(e->rows) ? 2 : 0.5;
    share = 1;
  }
  if (first && !first->next && first->range == VYRE__RANGE_EDGE) share = 0;
  for (const vyre__sched_node *at = first; at; at = at->next) {
    if (at->range == VYRE__RANGE_FULL) visit_range(e, at, full * share);
    if (at->range == VYRE__RANGE_EDGE) {
      visit_range(e, at, full * (1 - share) + part);
    }
    if (at->range == VYRE__RANGE_OUTSIDE) visit_range(e, at, 0);
  }
}

static void visit_rows(estimate *e, const vyre__sched_node *node) {
  const uint32_t *size = e->s->kernel->workgroup;
  double times = e->times, length = length_of_row(e->s);
  const vyre__sched_node *first = node->body;
  uint32_t conditions = node->split ? node->split->count : 0;
  double share = conditions == 0 ? 1 : e->is_full_group ? 1 : FULL_SHARE;
  e->rows = node;
  e->times *= (double)size[1] * size[2];
  if (!e->s->is_fused || length < LONG_ROW) {
    spend(e, VYRE__COST_OVERHEAD, 3 + (e->is_full_group ? 0 : 2 * conditions));
  }
  e->size += 30 + 16 * conditions;
  if (first && first->kind == VYRE__SCHED_JAM) {
    double all = e->times;
    uint32_t rows = first->jam->rows;
    e->jam = first->jam;
    e->jammed_rows = rows > e->jammed_rows ? rows : e->jammed_rows;
    e->times /= rows;
    uint64_t vectors = (uint64_t)length / e->s->width;
    visit_range(e, first->body, share * (double)vectors);
    e->jam = NULL;
    /* Other rows run one by one. */
    e->times = all;
    visit_ranges(e, first->next, length, 0);
  } else {
    visit_ranges(e, first, length, share);
  }
  e->times = times;
  e->rows = NULL;
}

static void visit_vectors(estimate *e, const vyre__sched_node *node) {
  visit_ranges(e, node->body, e->s->r.invocations, 1);
}

static void visit(estimate *e, const vyre__sched_node *first) {
  for (const vyre__sched_node *node = first; node; node = node->next) {
    switch (node->kind) {
      case VYRE__SCHED_UNIFORM:
        spend_uniform(e, node);
        break;
      case VYRE__SCHED_GROUP_IF:
        visit_group_if(e, node);
        break;
      case VYRE__SCHED_GROUP_LOOP:
        visit_group_loop(e, node);
        break;
      case VYRE__SCHED_FULL_GROUPS:
        e->is_full_group = true;
        visit_share(e, node->body, FULL_GROUP_SHARE);
        e->is_full_group = false;
        visit_share(e, node->other, 1 - FULL_GROUP_SHARE);
        break;
      case VYRE__SCHED_ROWS:
        visit_rows(e, node);
        break;
      case VYRE__SCHED_VECTORS:
        visit_vectors(e, node);
        break;
      case VYRE__SCHED_CODE:
        spend_code(e, node);
        break;
      case VYRE__SCHED_IF:
        visit_if(e, node);
        break;
      case VYRE__SCHED_LOOP:
        visit_loop(e, node);
        break;
      default: /* PRIVATE, GROUPS, ACCUMULATORS; leaves without a cost */
        visit(e, node->body);
        visit(e, node->other);
    }
  }
}

/* --- the kernel -------------------------------------------------------------*/

static vyre_code estimate_phase(estimate *e, const vyre__lir_kernel *kernel,
                                uint32_t phase,
                                const vyre__schedule_options *options,
                                vyre_arena *arena, vyre_status *st) {
  vyre__schedule schedule;
  vyre__narrow *narrow;
  VYRE_TRY(vyre__schedule_make(kernel, phase, options, VYRE__SCHEDULE_COUNT,
                               arena, &schedule, st));
  VYRE_TRY(
      vyre__narrow_find(kernel, kernel->phases[phase], arena, &narrow, st));
  e->s = &schedule;
  e->narrow = narrow;
  e->times = 1;
  e->is_masked = false;
  VYRE_TRY(vyre__cost_find_live(e, arena));
  const uint32_t *size = kernel->workgroup;
  double invocations = length_of_row(&schedule) * size[1] * size[2];
  double before[VYRE__COST_KINDS];
  memcpy(before, e->kinds, sizeof before);
  memset(e->kinds, 0, sizeof e->kinds);
  spend(e, VYRE__COST_OVERHEAD, 8);
  visit(e, schedule.root);
  for (unsigned i = 0; i < VYRE__COST_KINDS; i++) {
    e->kinds[i] = before[i] + e->kinds[i] / invocations;
  }
  return VYRE_OK;
}

vyre_code vyre__cost_estimate(const vyre__lir_kernel *kernel,
                              const vyre__schedule_options *options,
                              const vyre__cost_machine *machine,
                              vyre_arena *arena, vyre__cost *out,
                              vyre_status *st) {
  vyre__arena_mark mark = vyre__arena_here(arena);
  estimate *e = vyre__arena_array(arena, 1, sizeof *e);
  if (!e) return vyre__no_memory(st, "cost", "kernels", 1);
  *e = (estimate){.machine = machine, .jammed_rows = 1};
  VYRE_TRY(vyre__make_versions(kernel, options, arena, &kernel, st));
  vyre_code code = VYRE_OK;
  for (uint32_t i = 0; i < kernel->phase_count && code == VYRE_OK; i++) {
    code = estimate_phase(e, kernel, i, options, arena, st);
  }
  *out = (vyre__cost){.width = options->width,
                      .jammed_rows = e->jammed_rows,
                      .ranges = e->ranges,
                      .size = e->size};
  for (unsigned i = 0; i < VYRE__COST_KINDS; i++) {
    out->kinds[i] = e->kinds[i];
    out->cycles += out->kinds[i];
  }
  vyre__arena_rewind(arena, mark);
  return code;
}
