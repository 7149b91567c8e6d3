/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How many invocations a vector has. Measured on machines with 16 registers of 8
 * lanes: several registers a value hide latencies and share what is scalar, until
 * values no longer fit. In loops with atomics one register serves, as lanes are done
 * one by one; but where these are at places that memory says, or try again until
 * they succeed, lanes soon have little in common, and scalar code does best. */
#include "emit/llvm_internal.h"

enum {
  FEW = 2, /* variables that live through loops */
  MANY = 7,
  MOST_DEPTH = 8, /* operations that an index is looked for behind */
};

typedef struct survey {
  bool has_loop, has_barrier;
  bool has_loop_atomic;
  bool
      is_scattered; /* they are at places that a loop loads, and give something */
  bool runs_along;  /* what they need lies side by side for rounds, not lanes */
  bool tries_again; /* loops that nobody counts compare and exchange */
  uint32_t variables; /* but for those that count loops */
} survey;

/* The loop that stands nearest around @p at; 0: none. */
static uint32_t nearest_loop(const vyre__low_kernel *kernel, uint32_t begin,
                             uint32_t at) {
  uint32_t depth = 0;
  while (at-- > begin) {
    uint8_t op = kernel->code[at].op;
    if (op == VYRE__LOW_END) depth++;
    if (op != VYRE__LOW_LOOP && op != VYRE__LOW_IF) continue;
    if (depth == 0 && op == VYRE__LOW_LOOP) return at;
    if (depth) depth--;
  }
  return 0;
}

/* Whether @p v is made of something that was loaded after @p begin. */
static bool is_loaded(const vyre__low_kernel *kernel, vyre__val v,
                      uint32_t begin, unsigned depth) {
  const vyre__low_inst *inst = &kernel->code[v];
  if (v <= begin || depth == MOST_DEPTH) return false;
  if (inst->op == VYRE__LOW_LOAD) return true;
  if (!(vyre__low_ops[inst->op].flags & VYRE__LOWF_PURE)) return false;
  for (unsigned i = 0; i < vyre__low_ops[inst->op].operands; i++) {
    if (is_loaded(kernel, inst->v[i], begin, depth + 1)) return true;
  }
  return false;
}

static bool is_asked_for(const vyre__low_kernel *kernel, uint32_t at,
                         uint32_t end) {
  for (uint32_t i = at + 1; i < end; i++) {
    const vyre__low_inst *inst = &kernel->code[i];
    for (unsigned k = 0; k < vyre__low_ops[inst->op].operands; k++) {
      if (inst->v[k] == at) return true;
    }
  }
  return false;
}

static void look_at_atomic(const vyre__low_kernel *kernel,
                           vyre__low_phase phase, uint32_t at, survey *s) {
  const vyre__low_inst *inst = &kernel->code[at];
  uint32_t loop = nearest_loop(kernel, phase.begin, at);
  if (!loop) return;
  s->has_loop_atomic = true;
  s->runs_along |= ll_runs_along(kernel, loop);
  s->tries_again |= inst->op == VYRE__LOW_ATOMIC_CAS &&
                    !kernel->loops[kernel->code[loop].aux].is_counted;
  s->is_scattered |= kernel->buffers[inst->aux].kind != VYRE_MEMORY_SHARED &&
                     is_loaded(kernel, inst->a, loop, 0) &&
                     is_asked_for(kernel, at, phase.end);
}

static void look_at(const vyre__low_kernel *kernel, vyre__low_phase phase,
                    survey *s) {
  for (uint32_t at = phase.begin; at < phase.end; at++) {
    uint8_t op = kernel->code[at].op;
    if (op == VYRE__LOW_LOOP) s->has_loop = true;
    if (op == VYRE__LOW_BARRIER) s->has_barrier = true;
    if (vyre__low_ops[op].flags & VYRE__LOWF_ATOMICS) {
      look_at_atomic(kernel, phase, at, s);
    }
  }
}

static void count_variables(const vyre__low_kernel *kernel, survey *s) {
  for (uint32_t i = 0; i < kernel->var_count; i++) {
    bool counts = kernel->vars[i].type == VYRE_TYPE_BOOL;
    for (uint32_t k = 0; k < kernel->loop_count && !counts; k++) {
      counts = kernel->loops[k].is_counted && kernel->loops[k].var == i;
    }
    s->variables += !counts;
  }
}

uint32_t ll_choose_width(const vyre__low_kernel *kernel, uint32_t lanes) {
  const uint32_t *size = kernel->workgroup;
  survey s = {0};
  for (uint32_t i = 0; i < kernel->phase_count; i++) {
    look_at(kernel, kernel->phases[i], &s);
  }
  count_variables(kernel, &s);
  if (lanes != 4 && lanes != 16) lanes = 8;
  uint32_t width = 4 * lanes;
  if (s.has_loop && s.variables > FEW) width = 2 * lanes;
  if (s.has_loop && s.variables > MANY) width = lanes;
  if (s.has_loop_atomic) width = lanes;
  if (width > VYRE__SPMD_MOST_WIDTH) width = VYRE__SPMD_MOST_WIDTH;
  if (s.tries_again || s.runs_along || s.is_scattered || size[0] == 1) return 1;
  /* Rows of workgroups that meet at barriers do not go on in the next one. */
  bool is_flat = size[1] == 1 && size[2] == 1;
  while (s.has_barrier && width > 4 &&
         (is_flat ? width > size[0] : size[0] % width != 0)) {
    width /= 2;
  }
  return width;
}
