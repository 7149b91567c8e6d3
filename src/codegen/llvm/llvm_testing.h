/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For tests: kernels as LLVM IR, at several widths, compiled and loaded.
 *
 *   VYRE_TEST_KEEP=dir    write the text of the last kernel there */
#ifndef VYRE_CODEGEN_LLVM_LLVM_TESTING_H
#define VYRE_CODEGEN_LLVM_LLVM_TESTING_H

#include <stdio.h>
#include <stdlib.h>

#include "backend/cpu/jit/elf_loader.h"
#include "backend/cpu/jit/host_cpu.h"
#include "backend/cpu/jit/llvm_compile.h"
#include "codegen/llvm/llvm.h"
#include "lir/lir_testing.h"
#include "support/check.h"
#include "support/text.h"
#include "testing/random_programs.h"

enum { WIDTHS = 5 };
static const uint32_t widths[WIDTHS] = {1, 4, 8, 16, 32};

typedef growing_text text;

static inline vyre__target cpu_target(void) {
  return (vyre__target){.math = VYRE__MATH_F64};
}

static inline text emit_text(const vyre__lir_kernel *k, uint32_t width,
                             vyre__spmd_info *info) {
  text t = {0};
  vyre_status st = {0};
  vyre__emit_llvm_options options = {.width = width,
                                     .lanes = width < 16 ? 8 : 16};
  CHECK_OK(vyre__emit_llvm(k, &options, growing_writer(&t), info, &st), st);
  return t;
}

/* --- compiled ---------------------------------------------------------------*/

typedef struct compiled {
  vyre__elf_object objects[WIDTHS];
  vyre__spmd_info info[WIDTHS];
} compiled;

static inline compiled compile(const vyre__lir_kernel *k, vyre__jit_tier tier) {
  compiled c = {0};
  const vyre__host_cpu *machine = vyre__host_cpu_detect();
  vyre_status st = {0};
  CHECK_OK(vyre__jit_load(&st), st);
  for (unsigned i = 0; i < WIDTHS; i++) {
    text t = emit_text(k, widths[i], &c.info[i]), object = {0};
    const char *keep = test_setting("KEEP");
    if (keep) {
      char name[256];
      snprintf(name, sizeof name, "%s/w%u.ll", keep, (unsigned)widths[i]);
      FILE *file = fopen(name, "wb");
      CHECK(file && fwrite(t.bytes, 1, t.length, file) == t.length);
      CHECK(fclose(file) == 0);
    }
    CHECK_OK(vyre__jit(t.bytes, t.length, machine->cpu, machine->features, tier,
                       VYRE__JIT_OBJECT, growing_writer(&object), &st),
             st);
    CHECK_OK(vyre__elf_object_load(object.bytes, object.length, k->phase_count,
                                   &c.objects[i], &st),
             st);
    free(object.bytes);
    free(t.bytes);
  }
  return c;
}

static inline void compiled_free(compiled *c) {
  for (unsigned i = 0; i < WIDTHS; i++) vyre__elf_object_free(&c->objects[i]);
}

/* --- running ----------------------------------------------------------------*/

/* Does the work of the host: computes bounds of grid loops from constants,
 * len and uniforms. */
static inline uint64_t host_value(const vyre__lir_kernel *k,
                                  const vyre__lir_binding *buffers,
                                  const uint64_t *loop_values, vyre__val v) {
  const vyre__lir_inst *inst = &k->code[v];
  uint64_t args[3] = {0, 0, 0}, out = 0;
  switch (inst->op) {
    case VYRE__LIR_CONST:
      return vyre__lir_const(inst);
    case VYRE__LIR_LEN:
      return buffers[inst->aux].length;
    case VYRE__LIR_LOOP_VALUE:
      return vyre__lir_loop_value(inst, loop_values[inst->aux]);
    case VYRE__LIR_LOAD:
      if (inst->b && !host_value(k, buffers, loop_values, inst->b)) return 0;
      args[0] = host_value(k, buffers, loop_values, inst->a);
      CHECK(buffers[inst->aux].data != NULL);
      memcpy(&out,
             (const char *)buffers[inst->aux].data +
                 args[0] * k->buffers[inst->aux].width,
             k->buffers[inst->aux].width);
      return out;
    default:
      break;
  }
  for (unsigned i = 0; i < 3 && i < vyre__lir_ops[inst->op].operands; i++) {
    args[i] = host_value(k, buffers, loop_values, inst->v[i]);
  }
  vyre__val first = inst->op == VYRE__LIR_SELECT ? inst->b : inst->a;
  CHECK(vyre__lir_eval((vyre__lir_op)inst->op, (vyre_type)k->code[first].type,
                       (vyre_type)inst->type, args, &out));
  return out;
}

static atomic_uint stop_now; /* what kernels look at */

typedef struct runner {
  const vyre__lir_kernel *k;
  const compiled *c;
  unsigned which; /* width */
  const vyre__lir_binding *buffers;
  vyre__spmd_launch *launch;
  uint64_t *loop_values;
  void *scratch;
  uint64_t seed; /* how workgroups are cut into ranges */
} runner;

static inline uint32_t run_phase(runner *r, uint32_t phase) {
  const uint32_t *grid = r->launch->grid;
  uint64_t groups = (uint64_t)grid[0] * grid[1] * grid[2], at = groups;
  while (at > 0) { /* ranges from the last one on */
    uint64_t count = 1 + random_below(&r->seed, 7);
    if (count > at) count = at;
    at -= count;
    vyre__spmd_phase *run;
    memcpy(&run, &r->c->objects[r->which].phases[phase], sizeof run);
    uint32_t result = run(r->launch, at, count, r->scratch);
    if (result != VYRE__SPMD_DONE) return result;
  }
  return VYRE__SPMD_DONE;
}

static inline bool loop_goes_on(const vyre__lir_step *s, uint64_t now,
                                uint64_t bound) {
  bool is_signed = s->type == VYRE_TYPE_I32 || s->type == VYRE_TYPE_I64;
  int64_t a = (int64_t)now, b = (int64_t)bound;
  if (s->type == VYRE_TYPE_I32) a = (int32_t)now, b = (int32_t)bound;
  switch (s->loop_kind) {
    case VYRE__LOOP_LT:
      return is_signed ? a < b : now < bound;
    case VYRE__LOOP_LE:
      return is_signed ? a <= b : now <= bound;
    case VYRE__LOOP_GT:
      return is_signed ? a > b : now > bound;
    default:
      return is_signed ? a >= b : now >= bound;
  }
}

static inline uint32_t run_steps(runner *r, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; i++) {
    const vyre__lir_step *s = &r->k->steps[i];
    if (s->kind == VYRE__STEP_RUN) {
      uint32_t result = run_phase(r, s->phase);
      if (result) return result;
      continue;
    }
    uint32_t close = i + 1;
    while (r->k->steps[close].kind != VYRE__STEP_END_FOR ||
           r->k->steps[close].loop != s->loop) {
      close++;
    }
    bool narrow = s->type == VYRE_TYPE_U32 || s->type == VYRE_TYPE_I32;
    uint64_t ones = narrow ? UINT32_MAX : UINT64_MAX;
    uint64_t now = host_value(r->k, r->buffers, r->loop_values, s->first);
    uint64_t bound = host_value(r->k, r->buffers, r->loop_values, s->bound);
    bool up = s->loop_kind == VYRE__LOOP_LT || s->loop_kind == VYRE__LOOP_LE;
    bool with = s->loop_kind == VYRE__LOOP_LE || s->loop_kind == VYRE__LOOP_GE;
    while (loop_goes_on(s, now, bound)) {
      r->loop_values[s->loop] = now;
      uint32_t result = run_steps(r, i + 1, close);
      if (result) return result;
      uint64_t room = (up ? bound - now : now - bound) & ones;
      if (with ? room < s->step : room <= s->step) break;
      now = (up ? now + s->step : now - s->step) & ones;
    }
    i = close;
  }
  return VYRE__SPMD_DONE;
}

/* Runs all steps of the kernel, compiled at vector width number @p which. The
 * caller must also bind the spill buffer (its `source` is VYRE_NO_INDEX). */
static inline uint32_t run_compiled(const vyre__lir_kernel *k,
                                    const compiled *c, unsigned which,
                                    const vyre__lir_binding *buffers,
                                    const uint32_t grid[3], uint32_t fuel) {
  uint64_t loop_values[64] = {0};
  size_t size =
      sizeof(vyre__spmd_launch) + k->buffer_count * sizeof(vyre__spmd_view);
  vyre__spmd_launch *l = calloc(1, size);
  size_t room = (size_t)(c->info[which].scratch_bytes + 127) / 64 * 64;
  void *scratch = aligned_alloc(64, room);
  CHECK(l && scratch && k->grid_loop_count <= 64);
  memset(scratch, 0xA5, room);
  memcpy(l->grid, grid, sizeof l->grid);
  l->fuel = fuel;
  l->loop_values = loop_values;
  l->stop = &stop_now;
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    if (k->buffers[i].kind == VYRE_MEMORY_SHARED) continue;
    l->views[i] = (vyre__spmd_view){buffers[i].data, buffers[i].length, 0};
  }
  runner r = {k, c, which, buffers, l, loop_values, scratch, 7 + which};
  uint32_t result = run_steps(&r, 0, k->step_count);
  free(scratch);
  free(l);
  return result;
}

#endif
