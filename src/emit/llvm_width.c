/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How many invocations a vector has.
 *
 * A vector of several registers hides latencies and shares what is scalar, until
 * values no longer fit into registers. In straight code values are short-lived:
 * four registers each, or two where it loads from more than three places, which are
 * as many streams of memory. What lives through loops has to fit all the time:
 *
 *     variables                                              registers each
 *     at most 2, and rows are run one at a time                   4
 *     at most 7, but for sums, which are split (llvm_split.c)     2
 *     more                                                        1
 *
 * Ends of rows are masked where the kernel reads what it writes, and masked stores
 * of many registers are slow: workgroups of several rows take one register then.
 * Other rows have whole vectors at their ends (run_overlapping in llvm_row.c).
 *
 * Workgroups of several rows that have loops run rows side by side where they share
 * loads (llvm_jam.c): two registers of two or four rows, not four of one. Atomics
 * in loops are done lane by lane whatever the width: scalar code does that best.
 * Measured on machines with 16 registers of 8 lanes. */
#include "emit/llvm_internal.h"

enum {
  FEW = 2,
  MANY = 7,
  STREAMS = 3,
  MOST_VARS = 256, /* that are looked at closely */
  MOST_DEPTH = 12,
};

typedef struct survey {
  const vyre__low_kernel *kernel;
  bool has_loop, has_barrier;
  bool has_loop_atomic;
  bool differs[MOST_VARS]; /* set in a loop, and no sum of a plain one */
  bool is_sum[MOST_VARS];
  uint32_t variables; /* but for those that count loops */
  uint32_t sums;      /* of them */
} survey;

/* --- sums ---------------------------------------------------------------------------*/

/* A loop without others in it. */
typedef struct inner_loop {
  uint32_t begin, end;
  bool is_plain; /* counted, straight, without stores */
} inner_loop;

static bool is_set_in(const vyre__low_kernel *k, inner_loop l, uint32_t var) {
  for (uint32_t at = l.begin; at < l.end; at++) {
    if (k->code[at].op == VYRE__LOW_SET && k->code[at].aux == var) return true;
  }
  return false;
}

/* Whether @p v has no variable of the loop in it but @p var and the counter. */
static bool is_alone(const vyre__low_kernel *k, inner_loop l, vyre__val v,
                     uint32_t var, unsigned depth) {
  const vyre__low_inst *inst = &k->code[v];
  if (v < l.begin || inst->op == VYRE__LOW_CONST) return true;
  if (depth > MOST_DEPTH) return false;
  if (inst->op == VYRE__LOW_GET) {
    return inst->aux == var ||
           inst->aux == k->loops[k->code[l.begin].aux].var ||
           !is_set_in(k, l, inst->aux);
  }
  vyre__val operands[4];
  uint32_t count = vyre__low_operands(inst, operands);
  for (uint32_t i = 0; i < count; i++) {
    if (!is_alone(k, l, operands[i], var, depth + 1)) return false;
  }
  return true;
}

static void find_sums(survey *s, inner_loop l) {
  const vyre__low_kernel *k = s->kernel;
  for (uint32_t at = l.begin; at < l.end; at++) {
    const vyre__low_inst *inst = &k->code[at];
    if (inst->op != VYRE__LOW_SET || inst->aux >= MOST_VARS) continue;
    if (l.is_plain && is_alone(k, l, inst->a, inst->aux, 0)) {
      s->is_sum[inst->aux] = true;
    } else {
      s->differs[inst->aux] = true;
    }
  }
}

/* --- all ----------------------------------------------------------------------------*/

static void look_at(vyre__low_phase phase, survey *s) {
  const vyre__low_kernel *k = s->kernel;
  uint32_t depth = 0, loops = 0, ifs = 0, inner_depth = 0;
  inner_loop inner = {0};
  for (uint32_t at = phase.begin; at < phase.end; at++) {
    const vyre__low_inst *inst = &k->code[at];
    uint16_t flags = vyre__low_ops[inst->op].flags;
    if (inst->op == VYRE__LOW_LOOP) {
      s->has_loop = true;
      if (loops == 0) loops = depth + 1;
      inner = (inner_loop){at, 0, k->loops[inst->aux].is_counted};
      inner_depth = depth + 1;
      ifs = 0;
    }
    bool opens = inst->op == VYRE__LOW_LOOP || inst->op == VYRE__LOW_IF;
    if (inst->op == VYRE__LOW_IF && ifs++) inner.is_plain = false;
    if (flags & (VYRE__LOWF_WRITES | VYRE__LOWF_ATOMICS | VYRE__LOWF_BARRIER)) {
      inner.is_plain = false;
    }
    if (opens) depth++;
    if (inst->op == VYRE__LOW_END) {
      if (depth == inner_depth) {
        inner.end = at;
        find_sums(s, inner);
        inner_depth = 0;
      }
      if (depth-- == loops) loops = 0;
    }
    if (inst->op == VYRE__LOW_BARRIER) s->has_barrier = true;
    if (flags & VYRE__LOWF_ATOMICS && loops) s->has_loop_atomic = true;
  }
}

/* Places in memory that are loaded from, but for uniforms. */
static uint32_t count_loads(const vyre__low_kernel *k) {
  uint32_t count = 0;
  for (uint32_t at = 1; at < k->count; at++) {
    const vyre__low_inst *inst = &k->code[at];
    count += inst->op == VYRE__LOW_LOAD &&
             k->buffers[inst->aux].kind != VYRE_MEMORY_UNIFORM;
  }
  return count;
}

/* Whether something is read that the kernel writes. */
static bool reads_own(const vyre__low_kernel *k) {
  for (uint32_t at = 1; at < k->count; at++) {
    const vyre__low_inst *inst = &k->code[at];
    if (vyre__low_ops[inst->op].flags & VYRE__LOWF_ATOMICS) return true;
    if (inst->op == VYRE__LOW_LOAD && k->buffers[inst->aux].is_written) {
      return true;
    }
  }
  return false;
}

static void count_variables(survey *s) {
  const vyre__low_kernel *kernel = s->kernel;
  for (uint32_t i = 0; i < kernel->var_count; i++) {
    bool counts = kernel->vars[i].type == VYRE_TYPE_BOOL;
    for (uint32_t k = 0; k < kernel->loop_count && !counts; k++) {
      counts = kernel->loops[k].is_counted && kernel->loops[k].var == i;
    }
    s->variables += !counts;
    s->sums += !counts && i < MOST_VARS && s->is_sum[i] && !s->differs[i];
  }
}

uint32_t ll_choose_width(const vyre__low_kernel *kernel, uint32_t lanes) {
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
  if (width > VYRE__SPMD_MOST_WIDTH) width = VYRE__SPMD_MOST_WIDTH;
  if (s.has_loop_atomic || size[0] == 1) return 1;
  /* Rows of workgroups that meet at barriers do not go on in the next one. */
  bool is_flat = size[1] == 1 && size[2] == 1;
  while (s.has_barrier && width > 4 &&
         (is_flat ? width > size[0] : size[0] % width != 0)) {
    width /= 2;
  }
  return width;
}
