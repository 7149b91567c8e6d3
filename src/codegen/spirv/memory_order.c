/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Orders memory accesses: selects the kinds of memory that each barrier names,
 * and delays some loads until their use. */
#include "codegen/spirv/internal.h"

static bool is_access(const vyre__lir_inst *inst) {
  return inst->op >= VYRE__LIR_LOAD && inst->op <= VYRE__LIR_ATOMIC_CAS;
}

/* --- barriers ----------------------------------------------------------------
 *
 * Devices wait for each kind of memory that a barrier names. A barrier needs to
 * name only kinds with a buffer that is written, and accessed both before and
 * after the barrier. */

/* Finds the first and last access of each written buffer. An access in a loop
 * counts for the full loop. */
static void find_spans(spv_emitter *e, vyre__lir_phase range) {
  uint32_t depth = 0, loop = 0, loop_depth = 0; /* outermost loop */
  for (uint32_t i = 0; i < e->k->buffer_count; i++) {
    e->spans[i] = (spv_span){UINT32_MAX, 0};
  }
  for (uint32_t at = range.begin; at < range.end; at++) {
    const vyre__lir_inst *inst = &e->k->code[at];
    if (inst->op == VYRE__LIR_IF || inst->op == VYRE__LIR_LOOP) {
      depth++;
      if (loop_depth || inst->op == VYRE__LIR_IF) continue;
      loop = at;
      loop_depth = depth;
    } else if (inst->op == VYRE__LIR_END && depth-- == loop_depth) {
      for (uint32_t i = 0; i < e->k->buffer_count; i++) {
        if (e->spans[i].last > loop) e->spans[i].last = at;
      }
      loop_depth = 0;
    } else if (is_access(inst) && e->k->buffers[inst->aux].is_written) {
      spv_span *span = &e->spans[inst->aux];
      uint32_t from = loop_depth ? loop : at;
      if (span->first > from) span->first = from;
      span->last = at;
    }
  }
}

void spv_put_barrier(spv_emitter *e, uint32_t memory) {
  uint32_t scope = spv_u32(e, SPV_SCOPE_WORKGROUP);
  uint32_t semantics = memory ? memory | SPV_ACQUIRE_RELEASE : 0;
  if (memory && e->target->vulkan_memory_model) {
    semantics |= SPV_MAKE_AVAILABLE | SPV_MAKE_VISIBLE;
  }
  SPV_PUT(e, SPV_CODE, SPV_OpControlBarrier, scope, scope,
          spv_u32(e, semantics));
}

void spv_barrier(spv_emitter *e, uint32_t at) {
  uint32_t memory = 0;
  for (uint32_t i = 0; i < e->k->buffer_count; i++) {
    if (e->spans[i].first > at || e->spans[i].last < at) continue;
    memory |= spv_is_bound(&e->k->buffers[i]) ? SPV_UNIFORM_MEMORY
                                              : SPV_WORKGROUP_MEMORY;
  }
  spv_put_barrier(e, memory);
}

/* --- delayed loads -----------------------------------------------------------
 *
 * `a[i] += a[j]` loads a[i], then a[j]. Here a[j] is loaded first, and a[i]
 * next to the store to it. GLSL compilers do the same, and a software device
 * that keeps the given order is a tenth faster. Only values are computed
 * between the two positions, so the result is the same. */

enum { MAX_DELAY = 64 }; /* maximum distance in instructions */

static bool is_plain_load(const vyre__lir_inst *inst) {
  return inst->op == VYRE__LIR_LOAD && !inst->b;
}

static uint32_t operand_count(const vyre__lir_inst *inst) {
  return inst->op == VYRE__LIR_CONST ? 0 : vyre__lir_ops[inst->op].operands;
}

/* Returns the user of @p at if only values are computed up to it; else 0.
 * *passes: a load is among them. */
static uint32_t user_of(const vyre__lir_kernel *k, uint32_t at, uint32_t end,
                        bool *passes) {
  for (uint32_t i = at + 1; i < end && i - at < MAX_DELAY; i++) {
    const vyre__lir_inst *inst = &k->code[i];
    bool is_load = is_plain_load(inst);
    if (!is_load && !(vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE)) break;
    for (uint32_t n = 0; n < operand_count(inst); n++) {
      if (inst->v[n] == at) return i;
    }
    *passes |= is_load;
  }
  return 0;
}

static void find_delayed(spv_emitter *e, vyre__lir_phase range) {
  const vyre__lir_kernel *k = e->k;
  for (uint32_t at = range.begin; at < range.end; at++) {
    const vyre__lir_inst *inst = &k->code[at];
    for (uint32_t n = 0; n < operand_count(inst); n++) e->uses[inst->v[n]]++;
  }
  for (uint32_t at = range.begin; at < range.end; at++) {
    const vyre__lir_inst *inst = &k->code[at];
    if (!is_plain_load(inst) || !k->buffers[inst->aux].is_written) continue;
    bool passes = false;
    uint32_t last = at, user = user_of(k, at, range.end, &passes);
    if (e->uses[at] != 1) continue;
    if (user && k->code[user].op == VYRE__LIR_BITCAST && e->uses[user] == 1) {
      last = user;
      user = user_of(k, last, range.end, &passes);
    }
    if (user && passes) e->is_delayed[at] = e->is_delayed[last] = true;
  }
}

void spv_emit_delayed(spv_emitter *e, uint32_t user) {
  const vyre__lir_inst *inst = &e->k->code[user];
  for (uint32_t n = 0; n < operand_count(inst); n++) {
    uint32_t at = inst->v[n];
    if (!e->is_delayed[at] || e->ids[at]) continue;
    spv_emit_delayed(e, at);
    e->ids[at] =
        is_plain_load(&e->k->code[at]) ? spv_access(e, at) : spv_pure(e, at);
  }
}

void spv_find_order(spv_emitter *e, vyre__lir_phase range) {
  find_spans(e, range);
  find_delayed(e, range);
}
