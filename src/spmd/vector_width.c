/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Chooses the vector width: the number of invocations per vector.
 *
 * A vector of several registers hides latency and shares scalar work, until values no
 * longer fit into registers. Values of straight-line code are short-lived: four
 * registers each, or two if the code loads from more than three addresses, because each
 * is a memory stream. Variables that live through loops must fit all the time:
 *
 *     variables                                                  registers each
 *     at most 2, one row at a time                               4
 *     at most 7, not counting accumulators that are split
 *     (accumulator_split.c)                                      2
 *     more                                                       1
 *
 * The ends of rows are masked if the kernel reads what it writes, and masked stores of
 * many registers are slow: workgroups of several rows then use one register. Other rows
 * have full vectors at their ends (run_overlapping in rows.c).
 *
 * Workgroups of several rows with loops jam rows that share loads (unroll_jam.c): two
 * registers of two or four rows instead of four registers of one.
 *
 * If ids are divided by a power of two (i / 16, i % 16), as for the rows of a tile, a
 * vector is not longer than that, but at least one register: its loads are then
 * contiguous.
 *
 * Loops with atomics use one register, because lanes execute atomics one by one. If
 * their addresses are loaded, or if they retry until they succeed, lanes soon diverge
 * and scalar code is best; unless all lanes increment one counter, because more lanes
 * per increment mean less contention between threads, which dominates. Measured on
 * processors with 16 registers of 8 lanes. */
#include "base/status.h"
#include "spmd/cost.h"
#include "spmd/schedule.h"

enum {
  MAX_WIDTH = 32,
  FEW = 2,
  MANY = 7,
  STREAMS = 3,
  MAX_VARS = 256, /* variables that are analysed */
  MAX_DEPTH = 12,
  MAX_BEHIND = 8, /* operations through which an index is traced */
};

typedef struct survey {
  const vyre__lir_kernel *kernel;
  bool has_loop, has_barrier;
  bool has_loop_atomic;
  bool is_scattered; /* at addresses that a loop loads, with a used result */
  bool asks_one;     /* a shared counter assigns the positions */
  bool runs_along;   /* contiguous over iterations, not over lanes */
  bool tries_again;  /* compare-exchange loops without a trip count */
  bool differs
      [MAX_VARS]; /* set in a loop, except accumulators of a simple one */
  bool is_sum[MAX_VARS];
  uint32_t variables; /* without loop counters */
  uint32_t sums;      /* of them */
} survey;

/* --- sums ---------------------------------------------------------------------------*/

/* An innermost loop. */
typedef struct inner_loop {
  uint32_t begin, end;
  bool is_plain; /* counted, straight-line, without stores */
} inner_loop;

static bool is_set_in(const vyre__lir_kernel *k, inner_loop l, uint32_t var) {
  for (uint32_t at = l.begin; at < l.end; at++) {
    if (k->code[at].op == VYRE__LIR_SET && k->code[at].aux == var) return true;
  }
  return false;
}

/* Returns true if @p v depends on no variable of the loop except @p var and
 * the counter. */
static bool is_alone(const vyre__lir_kernel *k, inner_loop l, vyre__val v,
                     uint32_t var, unsigned depth) {
  const vyre__lir_inst *inst = &k->code[v];
  if (v < l.begin || inst->op == VYRE__LIR_CONST) return true;
  if (depth > MAX_DEPTH) return false;
  if (inst->op == VYRE__LIR_GET) {
    return inst->aux == var ||
           inst->aux == k->loops[k->code[l.begin].aux].var ||
           !is_set_in(k, l, inst->aux);
  }
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst, operands);
  for (uint32_t i = 0; i < count; i++) {
    if (!is_alone(k, l, operands[i], var, depth + 1)) return false;
  }
  return true;
}

static void find_sums(survey *s, inner_loop l) {
  const vyre__lir_kernel *k = s->kernel;
  for (uint32_t at = l.begin; at < l.end; at++) {
    const vyre__lir_inst *inst = &k->code[at];
    if (inst->op != VYRE__LIR_SET || inst->aux >= MAX_VARS) continue;
    if (l.is_plain && is_alone(k, l, inst->a, inst->aux, 0)) {
      s->is_sum[inst->aux] = true;
    } else {
      s->differs[inst->aux] = true;
    }
  }
}

/* --- atomics ------------------------------------------------------------------------*/

/* Returns the innermost loop around @p at; 0: none. */
static uint32_t nearest_loop(const vyre__lir_kernel *kernel, uint32_t begin,
                             uint32_t at) {
  uint32_t depth = 0;
  while (at-- > begin) {
    uint8_t op = kernel->code[at].op;
    if (op == VYRE__LIR_END) depth++;
    if (op != VYRE__LIR_LOOP && op != VYRE__LIR_IF) continue;
    if (depth == 0 && op == VYRE__LIR_LOOP) return at;
    if (depth) depth--;
  }
  return 0;
}

/* Returns true if @p v depends on a load after @p begin. */
static bool is_loaded(const vyre__lir_kernel *kernel, vyre__val v,
                      uint32_t begin, unsigned depth) {
  const vyre__lir_inst *inst = &kernel->code[v];
  if (v <= begin || depth == MAX_BEHIND) return false;
  if (inst->op == VYRE__LIR_LOAD) return true;
  if (!(vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE)) return false;
  for (unsigned i = 0; i < vyre__lir_ops[inst->op].operands; i++) {
    if (is_loaded(kernel, inst->v[i], begin, depth + 1)) return true;
  }
  return false;
}

static bool is_asked_for(const vyre__lir_kernel *kernel, uint32_t at,
                         uint32_t end) {
  for (uint32_t i = at + 1; i < end; i++) {
    const vyre__lir_inst *inst = &kernel->code[i];
    for (unsigned k = 0; k < vyre__lir_ops[inst->op].operands; k++) {
      if (inst->v[k] == at) return true;
    }
  }
  return false;
}

static void look_at_atomic(const vyre__lir_kernel *kernel,
                           vyre__lir_phase phase, uint32_t at, survey *s) {
  const vyre__lir_inst *inst = &kernel->code[at];
  uint32_t loop = nearest_loop(kernel, phase.begin, at);
  if (!loop) return;
  s->has_loop_atomic = true;
  s->runs_along |= vyre__loop_is_contiguous(kernel, loop);
  s->tries_again |= inst->op == VYRE__LIR_ATOMIC_CAS &&
                    !kernel->loops[kernel->code[loop].aux].is_counted;
  s->asks_one |= inst->op == VYRE__LIR_ATOMIC_ADD &&
                 kernel->buffers[inst->aux].kind != VYRE_MEMORY_SHARED &&
                 kernel->code[inst->a].op == VYRE__LIR_CONST &&
                 is_asked_for(kernel, at, phase.end);
  s->is_scattered |= kernel->buffers[inst->aux].kind != VYRE_MEMORY_SHARED &&
                     is_loaded(kernel, inst->a, loop, 0) &&
                     is_asked_for(kernel, at, phase.end);
}

/* --- all ----------------------------------------------------------------------------*/

static void look_at(vyre__lir_phase phase, survey *s) {
  const vyre__lir_kernel *k = s->kernel;
  uint32_t depth = 0, ifs = 0, inner_depth = 0;
  inner_loop inner = {0};
  for (uint32_t at = phase.begin; at < phase.end; at++) {
    const vyre__lir_inst *inst = &k->code[at];
    uint16_t flags = vyre__lir_ops[inst->op].flags;
    if (inst->op == VYRE__LIR_LOOP) {
      s->has_loop = true;
      inner = (inner_loop){at, 0, k->loops[inst->aux].is_counted};
      inner_depth = depth + 1;
      ifs = 0;
    }
    bool opens = inst->op == VYRE__LIR_LOOP || inst->op == VYRE__LIR_IF;
    if (inst->op == VYRE__LIR_IF && ifs++) inner.is_plain = false;
    if (flags & (VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS | VYRE__LIRF_BARRIER)) {
      inner.is_plain = false;
    }
    if (opens) depth++;
    if (inst->op == VYRE__LIR_END) {
      if (depth == inner_depth) {
        inner.end = at;
        find_sums(s, inner);
        inner_depth = 0;
      }
      depth--;
    }
    if (inst->op == VYRE__LIR_BARRIER) s->has_barrier = true;
    if (flags & VYRE__LIRF_ATOMICS) look_at_atomic(k, phase, at, s);
  }
}

/* Counts the addresses that are loaded from, uniforms excluded. */
static uint32_t count_loads(const vyre__lir_kernel *k) {
  uint32_t count = 0;
  for (uint32_t at = 1; at < k->count; at++) {
    const vyre__lir_inst *inst = &k->code[at];
    count += inst->op == VYRE__LIR_LOAD &&
             k->buffers[inst->aux].kind != VYRE_MEMORY_UNIFORM;
  }
  return count;
}

/* Returns true if the kernel reads a buffer that it writes. */
static bool reads_own(const vyre__lir_kernel *k) {
  for (uint32_t at = 1; at < k->count; at++) {
    const vyre__lir_inst *inst = &k->code[at];
    if (vyre__lir_ops[inst->op].flags & VYRE__LIRF_ATOMICS) return true;
    if (inst->op == VYRE__LIR_LOAD && k->buffers[inst->aux].is_written) {
      return true;
    }
  }
  return false;
}

/* --- ids that are taken apart ---------------------------------------------------------*/

/* Returns the divisor of a division or remainder; 0 if it is another
 * operation or the divisor is not a power of two. */
static uint64_t divisor_of(const vyre__lir_kernel *k,
                           const vyre__lir_inst *inst) {
  const bool shifts = inst->op == VYRE__LIR_SHR_U,
             masks = inst->op == VYRE__LIR_AND;
  const bool divides =
      inst->op == VYRE__LIR_DIV_U || inst->op == VYRE__LIR_REM_U;
  if (!shifts && !masks && !divides) return 0;
  const vyre__lir_inst *by = &k->code[inst->b];
  if (by->op != VYRE__LIR_CONST) return 0;
  uint64_t bits = vyre__lir_const(by);
  if (shifts) return bits < 32 ? UINT64_C(1) << bits : 0;
  if (masks) bits++;
  return bits & (bits - 1) ? 0 : bits;
}

/* Returns true if @p v is linear in x of the invocation. */
static bool has_x(const vyre__lir_kernel *k, vyre__val v, unsigned depth) {
  const vyre__lir_inst *inst = &k->code[v];
  if (inst->op == VYRE__LIR_LOCAL_ID) return inst->aux == 0;
  if (depth == MAX_BEHIND || inst->op == VYRE__LIR_CONST) return false;
  if (!(vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE)) return false;
  for (unsigned i = 0; i < vyre__lir_ops[inst->op].operands; i++) {
    if (has_x(k, inst->v[i], depth + 1)) return true;
  }
  return false;
}

/* Returns the shortest row of at least @p lanes that ids are divided into. */
static uint32_t shortest_row(const vyre__lir_kernel *k, uint32_t lanes) {
  uint32_t row = MAX_WIDTH;
  for (uint32_t at = 1; at < k->count; at++) {
    uint64_t by = divisor_of(k, &k->code[at]);
    if (by < lanes || by >= row || !has_x(k, k->code[at].a, 0)) continue;
    row = (uint32_t)by;
  }
  return row;
}

/* --- the choice -----------------------------------------------------------------------*/

static void count_variables(survey *s) {
  const vyre__lir_kernel *kernel = s->kernel;
  for (uint32_t i = 0; i < kernel->var_count; i++) {
    bool counts = kernel->vars[i].type == VYRE_TYPE_BOOL;
    for (uint32_t k = 0; k < kernel->loop_count && !counts; k++) {
      counts = kernel->loops[k].is_counted && kernel->loops[k].var == i;
    }
    s->variables += !counts;
    s->sums += !counts && i < MAX_VARS && s->is_sum[i] && !s->differs[i];
  }
}

/* Chooses by rules. Sets *is_final if atomics or the shape of the workgroup
 * decide, which the cost model does not know. */
static uint32_t width_by_rules(const vyre__lir_kernel *kernel, uint32_t lanes,
                               bool *is_final) {
  const uint32_t *size = kernel->workgroup;
  survey s = {.kernel = kernel};
  for (uint32_t i = 0; i < kernel->phase_count; i++) {
    look_at(kernel->phases[i], &s);
  }
  count_variables(&s);
  if (lanes != 4 && lanes != 16) lanes = 8;
  bool has_rows = s.has_loop && size[1] % 2 == 0;
  uint32_t width = 4 * lanes;
  if (!s.has_loop && count_loads(kernel) > STREAMS) width = 2 * lanes;
  bool has_ends = !s.has_loop && (size[1] > 1 || size[2] > 1);
  if (s.has_loop && (s.variables > FEW || has_rows)) width = 2 * lanes;
  if (has_ends && reads_own(kernel)) width = lanes;
  if (s.has_loop && s.variables - s.sums > MANY) width = lanes;
  if (s.has_loop_atomic) width = s.asks_one ? 2 * lanes : lanes;
  uint32_t row = shortest_row(kernel, lanes);
  if (width > row) width = row;
  bool parts = s.is_scattered && !s.asks_one;
  *is_final = s.has_loop_atomic || size[0] == 1;
  if (s.tries_again || s.runs_along || parts || size[0] == 1) return 1;
  /* Rows of workgroups with barriers do not continue in the next workgroup. */
  bool is_flat = size[1] == 1 && size[2] == 1;
  while (s.has_barrier && width > 4 &&
         (is_flat ? width > size[0] : size[0] % width != 0)) {
    width /= 2;
  }
  return width;
}

/* Another width replaces the one that the rules choose if its estimate is
 * better by this factor. */
#define MARGIN 0.88

vyre_code vyre__choose_width(const vyre__lir_kernel *kernel, uint32_t lanes,
                             vyre_arena *arena, uint32_t *out,
                             vyre_status *st) {
  static const uint32_t widths[] = {1, 4, 8, 16, 32};
  vyre__cost cost, best;
  bool is_final = false;
  *out = width_by_rules(kernel, lanes, &is_final);
  if (is_final) return VYRE_OK;
  VYRE_TRY(vyre__cost_estimate(kernel, *out, arena, &best, st));
  best.cycles *= MARGIN;
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    VYRE_TRY(vyre__cost_estimate(kernel, widths[i], arena, &cost, st));
    if (cost.cycles >= best.cycles) continue;
    best = cost;
    *out = widths[i];
  }
  return VYRE_OK;
}
