/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lower/legalize_control.h"

#include <string.h>

#include "base/memory.h"
#include "lower/legalize_floats.h"

/* --- fuel ----------------------------------------------------------------- */

bool vyre__legalize_control_is_needed(const vyre__lir_writer *lir) {
  for (size_t i = 1; i < lir->count; i++) {
    if (lir->code[i].op == VYRE__LIR_TICK) return true;
  }
  return false;
}

static vyre__val op2(vyre__lir_writer *lir, vyre__lir_op op, vyre_type type,
                     vyre__val a, vyre__val b) {
  return vyre__lir_simplify(
      lir, &(vyre__lir_inst){
               .op = (uint8_t)op, .type = (uint8_t)type, .v = {a, b, 0, 0}});
}

/* Expands TICK. It charges one iteration plus `a` more, because the trip count
 * of a loop may be 2^32, which does not fit u32. */
static vyre__val fuel_emit(vyre__lir_writer *lir, const vyre__lir_inst *inst) {
  uint32_t var = lir->fuel_var;
  /* The variable is spilled across a grid barrier; its known value must not be
   * spilled too. */
  if (inst->op == VYRE__LIR_GRID_BARRIER) vyre__lir_invalidate(lir, var);
  if (inst->op != VYRE__LIR_TICK) return vyre__lir_push(lir, inst);
  vyre__val left = vyre__lir_get(lir, var), more = inst->a, any = inst->b;
  vyre__val zero = vyre__lir_bits(lir, VYRE_TYPE_U32, 0);
  vyre__val empty = more ? op2(lir, VYRE__LIR_LE_U, VYRE_TYPE_BOOL, left, more)
                         : op2(lir, VYRE__LIR_EQ, VYRE_TYPE_BOOL, left, zero);
  if (any) empty = op2(lir, VYRE__LIR_AND, VYRE_TYPE_BOOL, any, empty);
  size_t begin = vyre__lir_if(lir, empty, 0);
  vyre__lir_plain(lir, VYRE__LIR_OUT_OF_FUEL);
  vyre__lir_plain(lir, VYRE__LIR_EXIT);
  vyre__lir_end(lir, begin);
  vyre__val one = vyre__lir_bits(lir, VYRE_TYPE_U32, 1);
  vyre__val used =
      more ? op2(lir, VYRE__LIR_ADD, VYRE_TYPE_U32, more, one) : one;
  vyre__val rest = op2(lir, VYRE__LIR_SUB, VYRE_TYPE_U32, left, used);
  if (any) {
    rest = vyre__lir_simplify(lir, &(vyre__lir_inst){.op = VYRE__LIR_SELECT,
                                                     .type = VYRE_TYPE_U32,
                                                     .v = {any, rest, left}});
  }
  vyre__lir_set(lir, var, rest);
  return 0;
}

void vyre__legalize_control(vyre__lir_writer *lir, const vyre__lir_writer *from,
                            vyre_arena *scratch) {
  lir->emit = fuel_emit;
  lir->adds_fuel = true;
  vyre__lir_rewrite(lir, from, scratch);
}

/* --- zeros ---------------------------------------------------------------- */

/* Returns true if the index covers the workgroup, one element per invocation:
 * local_id.x, or local_id.y * size.x + local_id.x. */
static bool is_local_index(const vyre__lir_writer *lir, vyre__val v,
                           unsigned axis) {
  const vyre__lir_inst *inst = &lir->code[v];
  unsigned last = 0;
  for (unsigned k = 0; k < 3; k++) {
    if (lir->workgroup[k] > 1) last = k;
  }
  if (axis == 0 && last == 0) {
    return inst->op == VYRE__LIR_LOCAL_ID && inst->aux == 0;
  }
  if (inst->op != VYRE__LIR_ADD || last != 1 || axis != 0) return false;
  for (unsigned swap = 0; swap < 2; swap++) {
    const vyre__lir_inst *row = &lir->code[inst->v[swap]];
    const vyre__lir_inst *x = &lir->code[inst->v[!swap]];
    if (x->op != VYRE__LIR_LOCAL_ID || x->aux != 0) continue;
    uint64_t size;
    if (row->op == VYRE__LIR_MUL && vyre__lir_is_constant(lir, row->b, &size) &&
        size == lir->workgroup[0] &&
        lir->code[row->a].op == VYRE__LIR_LOCAL_ID &&
        lir->code[row->a].aux == 1) {
      return true;
    }
    if (row->op == VYRE__LIR_SHL && vyre__lir_is_constant(lir, row->b, &size) &&
        UINT64_C(1) << size == lir->workgroup[0] &&
        lir->code[row->a].op == VYRE__LIR_LOCAL_ID &&
        lir->code[row->a].aux == 1) {
      return true;
    }
  }
  return false;
}

/* Returns true if @p v is the same for all invocations of a workgroup, even if
 * memory changes. Looks at *left values at most. */
static bool is_uniform(const vyre__lir_writer *lir, vyre__val v,
                       unsigned *left) {
  const vyre__lir_inst *inst = &lir->code[v];
  const vyre__lir_info *info = &vyre__lir_ops[inst->op];
  if (*left == 0 || inst->op == VYRE__LIR_LOCAL_ID ||
      inst->op == VYRE__LIR_AGREE) {
    return false;
  }
  --*left;
  bool is_load = inst->op == VYRE__LIR_LOAD &&
                 lir->buffers[inst->aux].kind == VYRE_MEMORY_UNIFORM;
  if (!is_load && !(info->flags & VYRE__LIRF_PURE)) return false;
  for (unsigned i = 0; i < info->operands; i++) {
    if (inst->v[i] && !is_uniform(lir, inst->v[i], left)) return false;
  }
  return true;
}

typedef struct open_block {
  uint32_t begin, end;
  bool is_uniform; /* a loop with a barrier: all invocations iterate together */
} open_block;

static bool is_access(const vyre__lir_inst *inst, uint32_t buffer) {
  return inst->op >= VYRE__LIR_LOAD && inst->op <= VYRE__LIR_ATOMIC_CAS &&
         inst->aux == buffer;
}

/* Returns true if @p at is an IF that all invocations of a workgroup take, or
 * none. */
static bool is_uniform_if(const vyre__lir_writer *lir, uint32_t at) {
  const vyre__lir_inst *inst = &lir->code[at];
  unsigned left = 64;
  return inst->op == VYRE__LIR_IF && is_uniform(lir, inst->a, &left);
}

/* Returns true if the first access writes every element, by all invocations,
 * and all other accesses come later in the same block. */
static bool is_written_first(const vyre__lir_writer *lir, uint32_t buffer,
                             open_block *blocks) {
  uint64_t size =
      (uint64_t)lir->workgroup[0] * lir->workgroup[1] * lir->workgroup[2];
  size_t depth = 0;
  uint32_t i = 1, end = (uint32_t)lir->count;
  for (; i < lir->count && !is_access(&lir->code[i], buffer); i++) {
    unsigned op = lir->code[i].op;
    if (op == VYRE__LIR_IF || op == VYRE__LIR_LOOP) {
      blocks[depth++] = (open_block){.begin = i};
    } else if (op == VYRE__LIR_END) {
      depth--;
    } else if (op == VYRE__LIR_EXIT &&
               (depth != 1 || !is_uniform_if(lir, blocks[0].begin))) {
      return false; /* some invocations may have exited */
    }
  }
  if (i == lir->count) return true; /* never accessed */
  const vyre__lir_inst *first = &lir->code[i];
  if (first->op != VYRE__LIR_STORE || first->c != 0 ||
      lir->buffers[buffer].count != size || !is_local_index(lir, first->a, 0)) {
    return false;
  }
  /* Finds the end of the block of that store, and checks that all invocations
   * reach it. */
  size_t nested = 0;
  bool all_arrive = depth == 0;
  for (uint32_t k = i; k < lir->count && depth > 0; k++) {
    unsigned op = lir->code[k].op;
    if (op == VYRE__LIR_IF || op == VYRE__LIR_LOOP) nested++;
    if (op == VYRE__LIR_BARRIER && nested == 0) all_arrive = true;
    if ((op == VYRE__LIR_END || op == VYRE__LIR_ELSE) && nested == 0) {
      end = k;
      break;
    }
    if (op == VYRE__LIR_END) nested--;
  }
  if (depth == 1 && is_uniform_if(lir, blocks[0].begin)) {
    all_arrive = true; /* all invocations get there, or none */
  } else if (depth > 0 &&
             lir->code[blocks[depth - 1].begin].op != VYRE__LIR_LOOP) {
    return false;
  }
  for (uint32_t k = end; k < lir->count; k++) {
    if (is_access(&lir->code[k], buffer)) return false;
  }
  return all_arrive;
}

void vyre__find_zeros(vyre__lir_writer *lir, size_t phase_count,
                      vyre_arena *scratch) {
  bool has_shared = false;
  for (uint32_t b = 0; b < lir->buffer_count; b++) {
    has_shared |= lir->buffers[b].kind == VYRE_MEMORY_SHARED;
  }
  if (!has_shared) return;
  open_block *blocks = vyre__arena_array(scratch, lir->count, sizeof *blocks);
  if (!blocks) {
    lir->no_memory = true;
    return;
  }
  for (uint32_t b = 0; b < lir->buffer_count; b++) {
    vyre__lir_buffer *buffer = &lir->buffers[b];
    if (buffer->kind != VYRE_MEMORY_SHARED || buffer->source == VYRE_NO_INDEX) {
      continue;
    }
    buffer->needs_zero = phase_count > 1 || !is_written_first(lir, b, blocks);
  }
}
