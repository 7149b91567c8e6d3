/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Handles devices that end loops early. Mesa's llvmpipe allows the invocations
 * of a vector 65,535 iterations in all their loops together. It then leaves
 * every loop at the end of its iteration, as if by a BREAK. The generator
 * reacts in two ways.
 *
 * It unrolls loops, so that they need fewer iterations.
 *
 * It detects the event. A loop ends only by a BREAK, so code after a loop that
 * was reached without one was reached through the device. Plain code cannot
 * test this: for a compiler only a BREAK leads behind a loop, so a flag set by
 * every BREAK is always set. Instead, before each IF that leads to a BREAK,
 * every iteration computes a value: the number of this visit if the path is
 * taken, else 0. The BREAK stores it, and the code after the loop compares it.
 * Compilers cannot see that it must be equal. The numbers start with an opaque
 * one, and the path value selects opaque bits by the condition instead of using
 * the condition, which is known on that path. The loop itself gets no slower,
 * since only the last value is used. */
#include "base/checked_math.h"
#include "codegen/spirv/internal.h"

enum {
  MAX_COPIES = 16,
  FEW_COPIES = 2, /* for bodies that access memory: finished lanes are masked in
                   * all copies, and accesses cost most. One copy if the trip
                   * count is unknown: searches usually end early */
  MAX_UNROLLED = 384, /* maximum instructions of a loop after unrolling */
  MIN_TRIPS = 64      /* not worth unrolling */
};

/* Returns the END of the construct at @p at. */
static uint32_t end_of(const vyre__lir_kernel *k, uint32_t at) {
  uint32_t depth = 0;
  for (;; at++) {
    unsigned op = k->code[at].op;
    depth += op == VYRE__LIR_IF || op == VYRE__LIR_LOOP;
    depth -= op == VYRE__LIR_END;
    if (depth == 0) return at;
  }
}

/* Returns the maximum iterations of the loops in [begin, end), including the
 * one that ends each loop. Lanes of a vector that diverge execute both
 * paths. */
static uint64_t max_iterations(const vyre__lir_kernel *k, uint32_t begin,
                               uint32_t end) {
  uint64_t all = 0;
  for (uint32_t at = begin; at < end; at++) {
    if (k->code[at].op != VYRE__LIR_LOOP) continue;
    uint64_t trips = k->loops[k->code[at].aux].max_trips;
    uint32_t last = end_of(k, at);
    uint64_t inside = max_iterations(k, at + 1, last);
    all = vyre__add_saturated(
        all, vyre__mul_saturated(vyre__add_saturated(trips, 1),
                                 vyre__add_saturated(inside, 1)));
    at = last;
  }
  return all;
}

/* Returns the iterations that zero shared memory, by generated code or by the
 * device. */
static uint64_t zeroing_iterations(const spv_emitter *e) {
  uint64_t all = 0;
  for (uint32_t i = 0; i < e->k->buffer_count; i++) {
    const vyre__lir_buffer *b = &e->k->buffers[i];
    if (spv_is_bound(b) || !b->needs_zero) continue;
    all += 2 + spv_elements(b) / vyre__lir_group_size(e->k);
  }
  return all;
}

bool spv_may_be_cut(const spv_emitter *e, vyre__lir_phase range) {
  if (!e->target->max_iterations) return false;
  uint64_t iterations = max_iterations(e->k, range.begin, range.end);
  return iterations > 0 &&
         vyre__add_saturated(iterations, zeroing_iterations(e)) >
             e->target->max_iterations;
}

/* Returns true for accesses to memory; uniforms are usually loaded
 * elsewhere. */
static bool touches_memory(const vyre__lir_kernel *k,
                           const vyre__lir_inst *inst) {
  return inst->op >= VYRE__LIR_LOAD && inst->op <= VYRE__LIR_ATOMIC_CAS &&
         k->buffers[inst->aux].kind != VYRE_MEMORY_UNIFORM;
}

spv_extent spv_extent_of(const spv_emitter *e, uint32_t at) {
  const vyre__lir_kernel *k = e->k;
  spv_extent out = {.end = end_of(k, at), .copies = 1};
  bool is_plain = e->visits && k->loops[k->code[at].aux].max_trips > MIN_TRIPS;
  bool is_cheap = true, has_atomics = false;
  for (uint32_t i = at + 1; i < out.end; i++) {
    unsigned op = k->code[i].op;
    if (op == VYRE__LIR_STEP && !out.step) out.step = i;
    is_cheap &= !touches_memory(k, &k->code[i]);
    has_atomics |= op > VYRE__LIR_STORE && op <= VYRE__LIR_ATOMIC_CAS;
    is_plain &= op != VYRE__LIR_LOOP && op != VYRE__LIR_CONTINUE &&
                op != VYRE__LIR_BARRIER;
  }
  uint32_t copies = MAX_UNROLLED / (out.end - at + 1);
  bool is_search = !is_cheap && !k->loops[k->code[at].aux].is_counted;
  if (is_plain && copies > 1 && !has_atomics && !is_search) {
    uint32_t max_copies = is_cheap ? MAX_COPIES : FEW_COPIES;
    out.copies = copies < max_copies ? copies : max_copies;
  }
  return out;
}

static uint32_t variable(spv_emitter *e) {
  uint32_t type = spv_pointer(e, SPV_STORAGE_Function, spv_uint(e, 32));
  return SPV_DO(e, SPV_OpVariable, type, SPV_STORAGE_Function);
}

void spv_declare_left(spv_emitter *e, vyre__lir_phase range) {
  e->visits = variable(e);
  for (uint32_t at = range.begin; at < range.end; at++) {
    const vyre__lir_inst *inst = &e->k->code[at];
    if (inst->op == VYRE__LIR_LOOP) e->left[inst->aux] = variable(e);
  }
}

/* The variable may hold the value of an earlier visit, so each visit has its
 * own number. */
void spv_enter_checked(spv_emitter *e, uint32_t at, spv_open *loop) {
  if (!e->visits) return;
  uint32_t u32 = spv_uint(e, 32);
  uint32_t before = SPV_DO(e, SPV_OpLoad, u32, e->visits);
  loop->visit = SPV_DO(e, SPV_OpIAdd, u32, before, e->one);
  SPV_PUT(e, SPV_CODE, SPV_OpStore, e->visits, loop->visit);
  loop->left = e->left[e->k->code[at].aux];
  loop->path = loop->visit;
}

uint32_t spv_path(spv_emitter *e, uint32_t condition, bool holds,
                  uint32_t path) {
  uint32_t u32 = spv_uint(e, 32), none = spv_u32(e, 0);
  uint32_t bits = SPV_DO(e, SPV_OpSelect, u32, condition, holds ? e->all : none,
                         holds ? none : e->all);
  return SPV_DO(e, SPV_OpBitwiseAnd, u32, path, bits);
}

/* Returns true if code after a loop that was ended early may continue. The
 * loop's condition still holds there, so an access that was proven in bounds
 * may be out of bounds. Nothing may follow, unless the device checks all
 * accesses. Leaving costs more than the check, because it adds a branch. */
static bool may_go_on(const spv_emitter *e) {
  if (!e->target->drops_outside) return false;
  for (uint32_t i = 0; i < e->k->buffer_count; i++) {
    if (!spv_is_bound(&e->k->buffers[i]) && e->infos[i].is_used) return false;
  }
  return true;
}

void spv_check_left(spv_emitter *e, const spv_open *loop) {
  uint32_t cut = spv_id(e), merge = spv_id(e);
  uint32_t last = SPV_DO(e, SPV_OpLoad, spv_uint(e, 32), loop->left);
  uint32_t is_cut = SPV_DO(e, SPV_OpINotEqual, spv_bool(e), last, loop->visit);
  SPV_PUT(e, SPV_CODE, SPV_OpSelectionMerge, merge, 0);
  SPV_PUT(e, SPV_CODE, SPV_OpBranchConditional, is_cut, cut, merge);
  spv_begin_block(e, cut);
  spv_set_status(e, VYRE__SPIRV_CUT);
  if (may_go_on(e)) {
    spv_branch(e, merge);
  } else {
    spv_put_alone(e, SPV_CODE, SPV_OpReturn);
  }
  spv_begin_block(e, merge);
}

/* Only the device leaves this loop. A compiler needs an exit too: it is taken
 * if an opaque number is 0, which is always 1. */
void spv_end_endless(spv_emitter *e, const spv_open *loop) {
  uint32_t is_left =
      SPV_DO(e, SPV_OpIEqual, spv_bool(e), e->one, spv_u32(e, 0));
  SPV_PUT(e, SPV_CODE, SPV_OpBranchConditional, is_left, loop->merge,
          loop->header);
  spv_begin_block(e, loop->merge);
  spv_set_status(e, VYRE__SPIRV_CUT);
  spv_put_alone(e, SPV_CODE, SPV_OpReturn);
  e->is_dead = true;
}
