/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How many invocations a vector has. Measured on machines with 16 registers of 8
 * lanes: several registers a value hide latencies and share what is scalar, until
 * values no longer fit; atomics in loops are done lane by lane whatever the width,
 * and scalar code does that best. */
#include "emit/llvm_internal.h"

enum { FEW = 2, MANY = 7 }; /* variables that live through loops */

typedef struct survey {
  bool has_loop, has_barrier;
  bool has_loop_atomic;
  uint32_t variables; /* but for those that count loops */
} survey;

static void look_at(const vyre__low_kernel *kernel, vyre__low_phase phase,
                    survey *s) {
  uint32_t depth = 0, loops = 0;
  for (uint32_t at = phase.begin; at < phase.end; at++) {
    uint8_t op = kernel->code[at].op;
    if (op == VYRE__LOW_LOOP) {
      s->has_loop = true;
      if (loops == 0) loops = depth + 1;
    }
    if (op == VYRE__LOW_LOOP || op == VYRE__LOW_IF) depth++;
    if (op == VYRE__LOW_END && depth-- == loops) loops = 0;
    if (op == VYRE__LOW_BARRIER) s->has_barrier = true;
    if (vyre__low_ops[op].flags & VYRE__LOWF_ATOMICS && loops) {
      s->has_loop_atomic = true;
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
