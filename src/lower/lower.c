/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs the lowering passes in order. */
#include <string.h>

#include "analyze/inline/inline.h"
#include "analyze/ranges.h"
#include "analyze/share_subgroups.h"
#include "base/memory.h"
#include "base/status.h"
#include "lir/cse_dce.h"
#include "lower/build.h"
#include "lower/legalize_control.h"
#include "lower/legalize_floats.h"
#include "lower/legalize_memory.h"

enum { VAR_NAME = 16 }; /* estimated bytes of a variable name */

static vyre__lir_kernel *finish(const vyre__lir_writer *lir,
                                const vyre__split *split,
                                const vyre_program *program,
                                vyre_arena *arena) {
  bool is_unsplit = split->phase_count == 0;
  /* Covers nearly all memory; the rest fits the first block of the arena. */
  size_t bytes = lir->count * (sizeof *lir->code + sizeof *lir->source_locs) +
                 lir->var_count * (sizeof *lir->vars + VAR_NAME) +
                 lir->loop_count * sizeof *lir->loops +
                 sizeof(vyre__lir_kernel);
  vyre__lir_kernel *k = NULL;
  if (vyre__arena_reserve(arena, bytes + 4096)) {
    k = vyre_arena_alloc(arena, sizeof *k, 0);
  }
  if (!k) return NULL;
  *k = (vyre__lir_kernel){
      .name = program->name,
      .program = program,
      .count = (uint32_t)lir->count,
      .var_count = (uint32_t)lir->var_count,
      .buffer_count = (uint32_t)lir->buffer_count,
      .loop_count = (uint32_t)lir->loop_count,
      .host = split->host,
      .phase_count = (uint32_t)split->phase_count + is_unsplit,
      .step_count = (uint32_t)split->step_count + is_unsplit,
      .grid_loop_count = split->loop_count,
      .spill_buffer = split->spill_buffer,
      .spill_words = split->spill_words,
      .alive_flag = split->alive_flag,
      .access_count = lir->access_count,
      .proven_count = lir->proven_count};
  memcpy(k->workgroup, lir->workgroup, sizeof k->workgroup);
  k->code = vyre__arena_copy(arena, lir->code, lir->count, sizeof *k->code);
  k->source_locs = vyre__arena_copy(arena, lir->source_locs, lir->count,
                                    sizeof *k->source_locs);
  k->vars = vyre__arena_copy(arena, lir->vars, lir->var_count, sizeof *k->vars);
  for (uint32_t i = 0; k->vars && i < k->var_count; i++) {
    k->vars[i].name = vyre__arena_text(arena, lir->vars[i].name);
    if (!k->vars[i].name) return NULL;
  }
  k->buffers = vyre__arena_copy(arena, lir->buffers, lir->buffer_count,
                                sizeof *k->buffers);
  k->loops =
      vyre__arena_copy(arena, lir->loops, lir->loop_count, sizeof *k->loops);
  const vyre__lir_phase all = {1, k->count};
  const vyre__lir_step run = {.kind = VYRE__STEP_RUN};
  k->phases = vyre__arena_copy(arena, is_unsplit ? &all : split->phases,
                               k->phase_count, sizeof *k->phases);
  k->steps = vyre__arena_copy(arena, is_unsplit ? &run : split->steps,
                              k->step_count, sizeof *k->steps);
  if (!k->code || !k->source_locs || !k->vars || !k->buffers || !k->loops ||
      !k->phases || !k->steps) {
    return NULL;
  }
  for (uint32_t i = 0; i < program->buffer_count; i++) {
    k->buffers[i].name = program->buffers[i].name;
  }
  for (uint32_t i = 1; i < k->count; i++) {
    k->has_barrier |= k->code[i].op == VYRE__LIR_BARRIER;
    k->has_fuel |= k->code[i].op == VYRE__LIR_OUT_OF_FUEL;
  }
  return k;
}

typedef struct lowering {
  const vyre_program *program; /* program of the caller */
  vyre_program *inlined;
  const vyre__target *target;
  vyre__pass last;
  vyre_arena *arena;
  vyre_arena scratch;
  vyre_allocator allocator;
  vyre_status *st;
} lowering;

static vyre_code problem(const lowering *l, const vyre__lir_writer *lir) {
  if (lir->code_failed != VYRE_OK) return lir->code_failed;
  if (!lir->no_memory) return VYRE_OK;
  return vyre__no_memory(l->st, "vyre__lower", "instructions", lir->count);
}

static vyre_code build(lowering *l, vyre__lir_writer *lir) {
  const uint32_t *workgroup =
      l->target->workgroup[0] ? l->target->workgroup : l->program->workgroup;
  vyre__ranges ranges;
  /* Proofs must hold for the workgroup size that runs. */
  VYRE_TRY(
      vyre__ranges_build(l->inlined, workgroup, &l->scratch, &ranges, l->st));
  vyre__lir_restart(lir);
  memcpy(lir->workgroup, workgroup, sizeof lir->workgroup);
  lir->tables = l->arena;
  lir->shares_constants = true;
  if (l->last >= VYRE__PASS_LEGALIZE_FLOATS) vyre__legalize_floats_begin(lir);
  /* Estimate: one instruction per node. Statements need fewer, which makes up
   * for checks and float modes. */
  vyre__lir_expect(lir, (size_t)l->inlined->node_count * 5 / 4 + 64);
  vyre__build_kernel(lir, &ranges, &l->scratch);
  vyre__lir_drop_float_ranges(lir);
  return problem(l, lir);
}

/* Returns true if the pass has anything to do. */
static bool is_needed(const lowering *l, vyre__pass pass,
                      const vyre__lir_writer *a) {
  if (pass == VYRE__PASS_LEGALIZE_MEMORY) {
    return vyre__legalize_memory_is_needed(l->target, a);
  }
  return pass != VYRE__PASS_LEGALIZE_CONTROL ||
         vyre__legalize_control_is_needed(a);
}

/* Runs one pass from *a to *b and swaps them. */
static vyre_code step(lowering *l, vyre__lir_writer *a, vyre__lir_writer *b,
                      vyre__pass pass) {
  if (!is_needed(l, pass, a)) return VYRE_OK;
  vyre_arena_reset(&l->scratch);
  if (pass == VYRE__PASS_CSE_DCE) {
    vyre__lir_cse_dce(a, &l->scratch);
    return problem(l, a);
  }
  vyre__lir_restart(b);
  if (pass == VYRE__PASS_LEGALIZE_MEMORY) {
    vyre__legalize_memory(b, a, &l->scratch);
  } else {
    vyre__legalize_control(b, a, &l->scratch);
  }
  vyre__lir_writer swap = *a;
  *a = *b;
  *b = swap;
  return problem(l, a);
}

static vyre_code split(lowering *l, vyre__lir_writer *a, vyre__lir_writer *b,
                       vyre__split *out) {
  vyre_arena_reset(&l->scratch);
  vyre__lir_restart(b);
  VYRE_TRY(problem(l, b));
  if (vyre__split_phases(b, a, &l->scratch, out)) {
    vyre__lir_writer swap = *a;
    *a = *b;
    *b = swap;
  }
  VYRE_TRY(problem(l, a));
  vyre__find_zeros(a, out->phase_count, &l->scratch);
  return problem(l, a);
}

static vyre_code passes(lowering *l, vyre__lir_writer *a, vyre__lir_writer *b,
                        const vyre__lir_kernel **out) {
  vyre__split phases = {.spill_buffer = VYRE_NO_INDEX};
  VYRE_TRY(build(l, a));
  for (int p = VYRE__PASS_LEGALIZE_MEMORY; p <= (int)l->last; p++) {
    VYRE_TRY(step(l, a, b, (vyre__pass)p));
  }
  vyre_code code = VYRE_OK;
  if (l->last == VYRE__PASS_LEGALIZE_CONTROL) code = split(l, a, b, &phases);
  /* Free the working memory before the copy, so that the copy can reuse it. */
  vyre__lir_writer_deinit(b);
  vyre_arena_deinit(&l->scratch);
  vyre__lir_kernel *kernel = NULL;
  if (code == VYRE_OK) {
    kernel = finish(a, &phases, l->program, l->arena);
    if (!kernel) {
      code = vyre__no_memory(l->st, "vyre__lower", "instructions", a->count);
    }
  }
  vyre__split_deinit(a, &phases);
  vyre__lir_writer_deinit(a);
  VYRE_TRY(code);
  vyre__lir_stage stage = VYRE__STAGE_BUILD;
  if (l->last >= VYRE__PASS_LEGALIZE_FLOATS) stage = VYRE__STAGE_FLOATS;
  if (l->last == VYRE__PASS_LEGALIZE_CONTROL) stage = VYRE__STAGE_CONTROL;
  /* PAIRs are dead after `legalize-memory` and removed by `cse-dce`. */
  if (l->last == VYRE__PASS_LEGALIZE_MEMORY) stage = VYRE__STAGE_BUILD;
  VYRE_TRY(vyre__lir_verify(kernel, stage, l->allocator, l->st));
  *out = kernel;
  return VYRE_OK;
}

/* Rejects another workgroup size for a program with scans or subgroups, whose
 * memory has one element for each declared invocation. */
static vyre_code check_scans(const lowering *l) {
  const uint32_t *size = l->target->workgroup, *own = l->program->workgroup;
  if (!size[0] || memcmp(size, own, 3 * sizeof *size) == 0) return VYRE_OK;
  for (vyre__id id = 1; id < l->program->node_count; id++) {
    const uint8_t op = l->program->nodes[id].op;
    if (op != VYRE__OP_SCAN_ADD && op != VYRE__OP_SCAN_ADD_BEFORE &&
        !vyre__op_is_subgroup(op) && !vyre__op_is_lane(op)) {
      continue;
    }
    return VYRE_FAIL(l->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                     "use the declared size, or change workgroup(...) in the "
                     "kernel",
                     "line %u: a kernel with %s runs with its declared "
                     "workgroup size, %ux%ux%u, and not with %ux%ux%u",
                     (unsigned)vyre__source_loc_of(l->program, id).line,
                     vyre__ops[op].text, own[0], own[1], own[2], size[0],
                     size[1], size[2]);
  }
  return VYRE_OK;
}

/* Inlines calls. A program without calls is used unchanged. */
static vyre_code inline_calls(lowering *l) {
  for (uint32_t i = 0; i < l->program->node_count; i++) {
    if (l->program->nodes[i].op != VYRE__OP_CALL && !l->program->is_rich &&
        !vyre__is_queue_part(l->program)) {
      continue;
    }
    VYRE_TRY(vyre__inline_for_code(l->program, !l->target->has_sum_strips,
                                   l->allocator, &l->inlined, l->st));
    if (l->target->has_subgroups || !vyre__has_exchange(l->inlined)) {
      return VYRE_OK;
    }
    vyre_program *before = l->inlined;
    vyre_code code =
        vyre__share_subgroups(before, l->allocator, &l->inlined, l->st);
    vyre_program_release(before);
    return code;
  }
  l->inlined = vyre_program_retain((vyre_program *)l->program);
  return VYRE_OK;
}

/* Rejects f64 on a target without it, before any pass, so that the message does
 * not depend on the pass. */
static vyre_code check_f64(const lowering *l) {
  const vyre_program *p = l->inlined;
  if (!l->target->no_f64) return VYRE_OK;
  for (vyre__id id = 1; id < p->node_count; id++) {
    const vyre__node *node = &p->nodes[id];
    unsigned line = vyre__source_loc_of(p, id).line;
    if (vyre__op_is_math(node->op) && l->target->math != VYRE__MATH_U32) {
      return VYRE_FAIL(
          l->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
          "use the integer-only math functions: --math u32, or VYRE_MATH_U32",
          "line %u: %s() would be computed in f64, which the target does not "
          "have",
          line, vyre__ops[node->op].text);
    }
    if (node->type == VYRE_TYPE_F64) return vyre__no_f64(line, l->st);
  }
  return VYRE_OK;
}

vyre_code vyre__lower(const vyre_program *program, const vyre__target *target,
                      vyre__pass last, vyre_arena *arena,
                      const vyre__lir_kernel **out, vyre_program **inlined,
                      vyre_status *st) {
  static const vyre__target everything = {.math = VYRE__MATH_F64};
  lowering l = {.program = program,
                .target = target ? target : &everything,
                .last = last,
                .arena = arena,
                .allocator = program->arena.allocator,
                .st = st};
  *out = NULL;
  if (inlined) *inlined = NULL;
  VYRE_TRY(check_scans(&l));
  VYRE_TRY(inline_calls(&l));
  vyre_code code_f64 = check_f64(&l);
  if (code_f64 != VYRE_OK) {
    vyre_program_release(l.inlined);
    return code_f64;
  }
  if (last == VYRE__PASS_INLINE) {
    if (inlined) {
      *inlined = l.inlined;
    } else {
      vyre_program_release(l.inlined);
    }
    return VYRE_OK;
  }
  vyre__lir_writer a, b;
  vyre_arena_init(&l.scratch, l.allocator);
  vyre__lir_writer_init(&a, l.inlined, l.target, l.allocator, st);
  vyre__lir_writer_init(&b, l.inlined, l.target, l.allocator, st);
  vyre_code code = passes(&l, &a, &b, out);
  vyre__lir_writer_deinit(&a);
  vyre__lir_writer_deinit(&b);
  vyre_arena_deinit(&l.scratch);
  vyre_program_release(l.inlined);
  return code;
}
