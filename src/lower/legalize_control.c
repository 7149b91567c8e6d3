/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lower/legalize_control.h"

#include <string.h>

#include "base/memory.h"
#include "lower/legalize_floats.h"

/* --- fuel ---------------------------------------------------------------------- */

bool vyre__legalize_control_is_needed(const vyre__lir_writer *low) {
  for (size_t i = 1; i < low->count; i++) {
    if (low->code[i].op == VYRE__LIR_TICK) return true;
  }
  return false;
}

static vyre__val op2(vyre__lir_writer *low, vyre__lir_op op, vyre_type type,
                     vyre__val a, vyre__val b) {
  return vyre__lir_simplify(
      low, &(vyre__lir_inst){
               .op = (uint8_t)op, .type = (uint8_t)type, .v = {a, b, 0, 0}});
}

/* Rounds are counted as one and some more, since all of a loop may be 2^32. */
static vyre__val fuel_emit(vyre__lir_writer *low, const vyre__lir_inst *inst) {
  uint32_t var = low->fuel_var;
  /* Kept once across a grid barrier, as the variable, and not as a value too. */
  if (inst->op == VYRE__LIR_GRID_BARRIER) vyre__lir_forget(low, var);
  if (inst->op != VYRE__LIR_TICK) return vyre__lir_push(low, inst);
  vyre__val left = vyre__lir_get(low, var), more = inst->a, any = inst->b;
  vyre__val zero = vyre__lir_bits(low, VYRE_TYPE_U32, 0);
  vyre__val empty = more ? op2(low, VYRE__LIR_LE_U, VYRE_TYPE_BOOL, left, more)
                         : op2(low, VYRE__LIR_EQ, VYRE_TYPE_BOOL, left, zero);
  if (any) empty = op2(low, VYRE__LIR_AND, VYRE_TYPE_BOOL, any, empty);
  size_t begin = vyre__lir_if(low, empty, 0);
  vyre__lir_plain(low, VYRE__LIR_OUT_OF_FUEL);
  vyre__lir_plain(low, VYRE__LIR_EXIT);
  vyre__lir_end(low, begin);
  vyre__val one = vyre__lir_bits(low, VYRE_TYPE_U32, 1);
  vyre__val gone =
      more ? op2(low, VYRE__LIR_ADD, VYRE_TYPE_U32, more, one) : one;
  vyre__val rest = op2(low, VYRE__LIR_SUB, VYRE_TYPE_U32, left, gone);
  if (any) {
    rest = vyre__lir_simplify(low, &(vyre__lir_inst){.op = VYRE__LIR_SELECT,
                                                     .type = VYRE_TYPE_U32,
                                                     .v = {any, rest, left}});
  }
  vyre__lir_set(low, var, rest);
  return 0;
}

void vyre__legalize_control(vyre__lir_writer *low, const vyre__lir_writer *from,
                            vyre_arena *scratch) {
  low->emit = fuel_emit;
  low->adds_fuel = true;
  vyre__lir_rewrite(low, from, scratch);
}

/* --- zeros ---------------------------------------------------------------------- */

/* Whether an index runs over all invocations of the workgroup, each its own:
 * local_id.x, or local_id.y * size.x + local_id.x, or with z. */
static bool is_local_index(const vyre__lir_writer *low, vyre__val v,
                           unsigned axis) {
  const vyre__lir_inst *inst = &low->code[v];
  unsigned last = 0;
  for (unsigned k = 0; k < 3; k++) {
    if (low->workgroup[k] > 1) last = k;
  }
  if (axis == 0 && last == 0) {
    return inst->op == VYRE__LIR_LOCAL_ID && inst->aux == 0;
  }
  if (inst->op != VYRE__LIR_ADD || last != 1 || axis != 0) return false;
  for (unsigned swap = 0; swap < 2; swap++) {
    const vyre__lir_inst *row = &low->code[inst->v[swap]];
    const vyre__lir_inst *x = &low->code[inst->v[!swap]];
    if (x->op != VYRE__LIR_LOCAL_ID || x->aux != 0) continue;
    uint64_t size;
    if (row->op == VYRE__LIR_MUL && vyre__lir_is_constant(low, row->b, &size) &&
        size == low->workgroup[0] &&
        low->code[row->a].op == VYRE__LIR_LOCAL_ID &&
        low->code[row->a].aux == 1) {
      return true;
    }
    if (row->op == VYRE__LIR_SHL && vyre__lir_is_constant(low, row->b, &size) &&
        UINT64_C(1) << size == low->workgroup[0] &&
        low->code[row->a].op == VYRE__LIR_LOCAL_ID &&
        low->code[row->a].aux == 1) {
      return true;
    }
  }
  return false;
}

typedef struct open_block {
  uint32_t begin, end;
  bool is_uniform; /* a loop with a barrier in it: all go round together */
} open_block;

static bool is_access(const vyre__lir_inst *inst, uint32_t buffer) {
  return inst->op >= VYRE__LIR_LOAD && inst->op <= VYRE__LIR_ATOMIC_CAS &&
         inst->aux == buffer;
}

/* The first access writes every element, by all invocations, and all others come
 * later in the same block. */
static bool is_written_first(const vyre__lir_writer *low, uint32_t buffer,
                             open_block *blocks) {
  uint64_t size =
      (uint64_t)low->workgroup[0] * low->workgroup[1] * low->workgroup[2];
  size_t depth = 0;
  uint32_t i = 1, end = (uint32_t)low->count;
  for (; i < low->count && !is_access(&low->code[i], buffer); i++) {
    unsigned op = low->code[i].op;
    if (op == VYRE__LIR_IF || op == VYRE__LIR_LOOP) {
      blocks[depth++] = (open_block){.begin = i};
    } else if (op == VYRE__LIR_END) {
      depth--;
    } else if (op == VYRE__LIR_EXIT) {
      return false; /* some may be gone */
    }
  }
  if (i == low->count) return true; /* nobody looks */
  const vyre__lir_inst *first = &low->code[i];
  if (first->op != VYRE__LIR_STORE || first->c != 0 ||
      low->buffers[buffer].count != size || !is_local_index(low, first->a, 0)) {
    return false;
  }
  /* Where the block of that store ends, and whether all come there. */
  size_t nested = 0;
  bool has_barrier = depth == 0;
  for (uint32_t k = i; k < low->count && depth > 0; k++) {
    unsigned op = low->code[k].op;
    if (op == VYRE__LIR_IF || op == VYRE__LIR_LOOP) nested++;
    if (op == VYRE__LIR_BARRIER && nested == 0) has_barrier = true;
    if ((op == VYRE__LIR_END || op == VYRE__LIR_ELSE) && nested == 0) {
      end = k;
      break;
    }
    if (op == VYRE__LIR_END) nested--;
  }
  if (depth > 0 && low->code[blocks[depth - 1].begin].op != VYRE__LIR_LOOP) {
    return false;
  }
  for (uint32_t k = end; k < low->count; k++) {
    if (is_access(&low->code[k], buffer)) return false;
  }
  return has_barrier;
}

void vyre__find_zeros(vyre__lir_writer *low, size_t phase_count,
                      vyre_arena *scratch) {
  bool has_shared = false;
  for (uint32_t b = 0; b < low->buffer_count; b++) {
    has_shared |= low->buffers[b].kind == VYRE_MEMORY_SHARED;
  }
  if (!has_shared) return;
  open_block *blocks = vyre__arena_array(scratch, low->count, sizeof *blocks);
  if (!blocks) {
    low->no_memory = true;
    return;
  }
  for (uint32_t b = 0; b < low->buffer_count; b++) {
    vyre__lir_buffer *buffer = &low->buffers[b];
    if (buffer->kind != VYRE_MEMORY_SHARED || buffer->source == VYRE_NO_INDEX) {
      continue;
    }
    buffer->needs_zero = phase_count > 1 || !is_written_first(low, b, blocks);
  }
}
