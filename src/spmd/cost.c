/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Estimates the cycles of vector code (cost.h). */
#include "spmd/cost.h"

#include "base/memory.h"
#include "base/status.h"
#include "spmd/lane_offsets.h"
#include "spmd/schedule.h"

/* Cycles of an operation, measured as reciprocal throughput on processors with
 * 256-bit units: of a scalar, and of a register of eight 32-bit lanes. */
typedef struct op_cost {
  float scalar, vector;
  bool is_lanewise; /* no vector instruction: each lane costs `scalar` */
} op_cost;

static const op_cost alu = {0.3f, 0.4f, false};

/* Divisions by a constant become products and shifts. */
static bool divides_by_const(const vyre__lir_kernel *k,
                             const vyre__lir_inst *inst) {
  return inst->op >= VYRE__LIR_DIV_U && inst->op <= VYRE__LIR_REM_S &&
         k->code[inst->b].op == VYRE__LIR_CONST;
}

static op_cost cost_of_op(uint8_t op) {
  switch (op) {
    case VYRE__LIR_MUL:
      return (op_cost){0.5f, 1.0f, false};
    case VYRE__LIR_DIV_U:
    case VYRE__LIR_DIV_S:
    case VYRE__LIR_REM_U:
    case VYRE__LIR_REM_S:
      return (op_cost){6, 0, true};
    case VYRE__LIR_CLZ:
    case VYRE__LIR_CTZ:
    case VYRE__LIR_POPCOUNT:
      return (op_cost){0.5f, 3, false};
    case VYRE__LIR_FDIV:
      return (op_cost){3, 5, false};
    case VYRE__LIR_FSQRT:
      return (op_cost){4, 7, false};
    case VYRE__LIR_FADD:
    case VYRE__LIR_FSUB:
    case VYRE__LIR_FMUL:
    case VYRE__LIR_FMA:
      return (op_cost){0.5f, 0.5f, false};
    case VYRE__LIR_U_TO_F:
    case VYRE__LIR_F_TO_U:
      return (op_cost){1, 2, false};
    default:
      return alu;
  }
}

enum {
  MAX_NESTING = 64,
  UNKNOWN_TRIPS = 16,
  MAX_STRIDE = 8,
  MAX_TRACE = 12, /* operations through which a condition is traced */
};

/* Cycles of memory accesses. */
#define LOAD_CYCLES           0.5
#define STORE_CYCLES          1.0
#define GATHER_CYCLES         1.6 /* per lane */
#define NARROW_GATHER_CYCLES  2.5 /* per lane, elements below 32 bits */
#define SCATTER_CYCLES        2.0 /* per lane */
#define MASKED_SCATTER_CYCLES 4.0 /* per lane */
#define ATOMIC_CYCLES         6.0
#define LANE_CYCLES           2.0 /* per lane of a loop over the active lanes */
#define VECTOR_CYCLES         1.5 /* per vector: counters, addresses */
#define LATENCY               4.0 /* of float arithmetic and integer products */

typedef struct frame {
  double times; /* executions per vector */
  uint32_t at;
  bool is_divergent; /* lanes inside may be inactive */
} frame;

typedef struct estimate {
  const vyre__lir_kernel *kernel;
  const vyre__regions *r;
  const vyre__lane_shapes *shapes;
  uint32_t width;
  frame frames[MAX_NESTING];
  uint32_t depth;
  double kinds[VYRE__COST_KINDS]; /* per vector */
} estimate;

static vyre__lane_shape shape_of(const estimate *e, vyre__val v) {
  if (e->width == 1) return (vyre__lane_shape){.kind = VYRE__LANE_SHAPE_VECTOR};
  return vyre__lane_shape_of(e->shapes, v);
}

static bool is_varying(const estimate *e, vyre__val v) {
  return shape_of(e, v).kind == VYRE__LANE_SHAPE_VARYING;
}

/* Registers of eight lanes: wider ones take as many cycles as two of these. */
static double registers(const estimate *e, unsigned bytes) {
  double count = (double)e->width * bytes / 32;
  return count < 1 ? 1 : count;
}

static unsigned bytes_of(uint8_t type) {
  return type == VYRE_TYPE_U64 || type == VYRE_TYPE_F64 ? 8 : 4;
}

static void spend(estimate *e, vyre__cost_kind kind, double cycles) {
  e->kinds[kind] += e->frames[e->depth].times * cycles;
}

/* Returns true if @p v depends on memory or a variable. */
static bool is_data(const estimate *e, vyre__val v, unsigned depth) {
  const vyre__lir_inst *inst = &e->kernel->code[v];
  if (inst->op == VYRE__LIR_LOAD) {
    return e->kernel->buffers[inst->aux].kind != VYRE_MEMORY_UNIFORM;
  }
  if (inst->op == VYRE__LIR_GET || depth == MAX_TRACE) return true;
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst, operands);
  for (uint32_t i = 0; i < count; i++) {
    if (is_data(e, operands[i], depth + 1)) return true;
  }
  return false;
}

/* --- memory ---------------------------------------------------------------- */

/* Returns true if shuffles replace a gather or scatter: the distances of lanes
 * are known and short (codegen/llvm/lane_pattern.c). */
static bool has_pattern(const estimate *e, uint32_t at, bool is_store) {
  const vyre__lir_inst *inst = &e->kernel->code[at];
  const vyre__lir_buffer *buffer = &e->kernel->buffers[inst->aux];
  bool is_shared = buffer->kind == VYRE_MEMORY_SHARED;
  vyre__lane_offsets offsets;
  vyre__lane_span span;
  if (buffer->width < 4 || (is_store ? inst->c : inst->b)) return false;
  return (is_shared || !is_store) &&
         vyre__lane_offsets_find(e->kernel, e->shapes, inst->a, &offsets) &&
         vyre__lane_span_find(&offsets, e->width, 2 * e->width, &span) &&
         (!is_store || span.is_single);
}

static void spend_vector_access(estimate *e, uint32_t at, bool is_store) {
  const vyre__lir_inst *inst = &e->kernel->code[at];
  const vyre__lir_buffer *buffer = &e->kernel->buffers[inst->aux];
  vyre__lane_shape index = shape_of(e, inst->a);
  double count = registers(e, buffer->width);
  int32_t stride = (int32_t)index.stride;
  bool is_masked = e->frames[e->depth].is_divergent;
  bool is_near = index.kind == VYRE__LANE_SHAPE_LINEAR && stride == 1;
  if (!is_near && has_pattern(e, at, is_store)) {
    spend(e, VYRE__COST_STRIDED, (is_store ? 6 : 3) * count);
    return;
  }
  if (index.kind != VYRE__LANE_SHAPE_LINEAR || stride > MAX_STRIDE ||
      stride < -MAX_STRIDE || (is_store && stride != 1)) {
    double lane = is_store ? is_masked ? MASKED_SCATTER_CYCLES : SCATTER_CYCLES
                  : buffer->width < 4 ? NARROW_GATHER_CYCLES
                                      : GATHER_CYCLES;
    spend(e, is_store ? VYRE__COST_SCATTER : VYRE__COST_GATHER,
          lane * e->width);
    return;
  }
  double one = is_store ? STORE_CYCLES : LOAD_CYCLES;
  if (stride == 1) {
    spend(e, VYRE__COST_CONTIGUOUS, one * count);
    if (is_masked) spend(e, VYRE__COST_MASKED, (is_store ? 2 : 0.5) * count);
  } else {
    double step = stride < 0 ? -stride : stride;
    spend(e, VYRE__COST_STRIDED, (step + 1) * count);
  }
}

static void spend_access(estimate *e, uint32_t at, bool is_store) {
  const vyre__lir_inst *inst = &e->kernel->code[at];
  bool is_uniform = vyre__lane_shape_is_uniform(shape_of(e, inst->a));
  if (is_uniform) {
    spend(e, VYRE__COST_CONTIGUOUS, is_store ? STORE_CYCLES : LOAD_CYCLES);
  } else {
    spend_vector_access(e, at, is_store);
  }
}

static void spend_atomic(estimate *e, uint32_t at) {
  const vyre__lir_inst *inst = &e->kernel->code[at];
  double lane = ATOMIC_CYCLES;
  if (e->kernel->buffers[inst->aux].kind == VYRE_MEMORY_SHARED) lane = 2;
  if (e->width > 1) lane += LANE_CYCLES;
  spend(e, VYRE__COST_ATOMIC, lane * e->width);
}

/* --- arithmetic ------------------------------------------------------------ */

static void spend_op(estimate *e, uint32_t at) {
  const vyre__lir_inst *inst = &e->kernel->code[at];
  op_cost cost = cost_of_op(inst->op);
  if (divides_by_const(e->kernel, inst)) cost = (op_cost){1, 2.5f, false};
  if (inst->op <= VYRE__LIR_FUEL) return; /* constants and ids */
  if (inst->op == VYRE__LIR_GET) return;
  uint8_t type =
      inst->op == VYRE__LIR_SET ? e->kernel->code[inst->a].type : inst->type;
  bool is_vector = is_varying(e, inst->op == VYRE__LIR_SET ? inst->a : at);
  if (e->width == 1 || !is_vector) {
    spend(e, VYRE__COST_ARITHMETIC,
          inst->op == VYRE__LIR_SET ? 0.1 : cost.scalar);
  } else if (cost.is_lanewise) {
    spend(e, VYRE__COST_ARITHMETIC, (cost.scalar + LANE_CYCLES) * e->width);
  } else if (inst->op != VYRE__LIR_SET || e->frames[e->depth].is_divergent) {
    spend(e, VYRE__COST_ARITHMETIC, cost.vector * registers(e, bytes_of(type)));
  }
}

/* --- control flow ---------------------------------------------------------- */

static bool only_leaves(const estimate *e, uint32_t at) {
  uint8_t next = e->kernel->code[at + 1].op;
  return (vyre__lir_ops[next].flags & VYRE__LIRF_JUMPS) ||
         next == VYRE__LIR_OUT_OF_FUEL;
}

/* Returns the probability that a lane takes an IF. */
static double probability(const estimate *e, uint32_t at) {
  const vyre__lir_inst *inst = &e->kernel->code[at];
  if (inst->hints & VYRE__HINT_RARE || only_leaves(e, at)) return 0.02;
  return is_data(e, inst->a, 0) ? 0.5 : 0.95;
}

/* The other arm of a version (uniform_versions.c) runs if the first does not. */
static void turn_to_other(estimate *e) {
  frame *own = &e->frames[e->depth];
  if (e->kernel->code[own->at].hints & VYRE__HINT_VERSION && e->depth > 0) {
    own->times = e->frames[e->depth - 1].times - own->times;
  }
}

static void open_if(estimate *e, uint32_t at) {
  frame *up = &e->frames[e->depth];
  double p = probability(e, at), none = 1;
  bool parts = e->width > 1 && is_varying(e, e->kernel->code[at].a);
  for (uint32_t i = 0; parts && i < e->width && none > 0.01; i++) none *= 1 - p;
  if (e->depth + 1 < MAX_NESTING) e->depth++;
  e->frames[e->depth] =
      (frame){.at = at,
              .times = up->times * (parts ? 1 - none : p),
              .is_divergent = up->is_divergent || (parts && p < 0.9)};
  if (parts && p > 0.02 && p < 0.9) {
    spend(e, VYRE__COST_MASKED, 1 + registers(e, 4));
  }
}

static bool is_bound_loaded(const estimate *e, const vyre__lir_loop *loop) {
  if (!loop->is_counted) return true;
  return is_data(e, loop->first, 0) || is_data(e, loop->bound, 0);
}

static void open_loop(estimate *e, uint32_t at) {
  frame *up = &e->frames[e->depth];
  const vyre__lir_loop *loop = &e->kernel->loops[e->kernel->code[at].aux];
  double trips = UNKNOWN_TRIPS;
  if (loop->max_trips < UNKNOWN_TRIPS) trips = (double)loop->max_trips;
  bool parts = e->width > 1 && e->shapes->parts_lanes[at - e->r->begin];
  double longest = 1;
  if (parts && is_bound_loaded(e, loop)) {
    for (uint32_t w = e->width; w > 1; w /= 2) longest += 0.2;
  }
  if (e->depth + 1 < MAX_NESTING) e->depth++;
  e->frames[e->depth] = (frame){.at = at,
                                .times = up->times * trips * longest,
                                .is_divergent = up->is_divergent || parts};
  spend(e, VYRE__COST_OVERHEAD, 1);
  if (parts) spend(e, VYRE__COST_DIVERGENCE, 2 + registers(e, 4));
}

static void spend_instruction(estimate *e, uint32_t at) {
  uint8_t op = e->kernel->code[at].op;
  uint16_t flags = vyre__lir_ops[op].flags;
  const vyre__inst_info *info = vyre__inst_info_of(e->r, at);
  if (op == VYRE__LIR_IF) {
    open_if(e, at);
  } else if (op == VYRE__LIR_ELSE) {
    turn_to_other(e);
  } else if (op == VYRE__LIR_LOOP) {
    open_loop(e, at);
  } else if (op == VYRE__LIR_END) {
    if (e->depth > 0) e->depth--;
  } else if (!info->is_needed || !info->is_reached) {
    return;
  } else if (op == VYRE__LIR_LOAD || op == VYRE__LIR_STORE) {
    spend_access(e, at, op == VYRE__LIR_STORE);
  } else if (flags & VYRE__LIRF_ATOMICS) {
    spend_atomic(e, at);
  } else if (!(flags & (VYRE__LIRF_CONTROL | VYRE__LIRF_JUMPS))) {
    spend_op(e, at);
  }
}

static vyre_code estimate_phase(estimate *e, vyre__lir_phase phase,
                                vyre_arena *arena, vyre_status *st) {
  vyre__regions r;
  vyre__lane_shapes shapes;
  vyre__lir_kernel wide = *e->kernel;
  VYRE_TRY(vyre__regions_build(e->kernel, phase, false, arena, &r, st));
  if (!e->kernel->has_barrier) { /* rows span workgroups */
    wide.workgroup[0] = 64 * e->width;
    r.kernel = &wide;
    r.invocations = vyre__lir_group_size(&wide);
  }
  VYRE_TRY(vyre__lane_shapes_find(&r, e->width, arena, &shapes, st));
  e->r = &r;
  e->shapes = &shapes;
  e->depth = 0;
  e->frames[0] = (frame){.times = 1};
  spend(e, VYRE__COST_OVERHEAD, VECTOR_CYCLES);
  for (uint32_t at = phase.begin; at < phase.end; at++) {
    spend_instruction(e, at);
  }
  return VYRE_OK;
}

vyre_code vyre__cost_estimate(const vyre__lir_kernel *kernel, uint32_t width,
                              vyre_arena *arena, vyre__cost *out,
                              vyre_status *st) {
  vyre__arena_mark mark = vyre__arena_here(arena);
  estimate *e = vyre__arena_array(arena, 1, sizeof *e);
  if (!e) return vyre__no_memory(st, "cost", "kernels", 1);
  VYRE_TRY(vyre__version_uniforms(kernel, width, arena, &kernel, st));
  *e = (estimate){.kernel = kernel, .width = width};
  vyre_code code = VYRE_OK;
  for (uint32_t i = 0; i < kernel->phase_count && code == VYRE_OK; i++) {
    code = estimate_phase(e, kernel->phases[i], arena, st);
  }
  *out = (vyre__cost){0};
  for (unsigned i = 0; i < VYRE__COST_KINDS; i++) {
    out->kinds[i] = e->kinds[i] / width;
    out->cycles += out->kinds[i];
  }
  vyre__arena_rewind(arena, mark);
  return code;
}
