/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs the schedule passes in order. */
#include "spmd/schedule.h"

#include "base/status.h"
#include "spmd/passes/single_read.h"
#include "spmd/schedule_internal.h"
#include "spmd/shape/lane_offsets.h"

static vyre_code (*const passes[])(vyre__schedule *s) = {
    [VYRE__SCHEDULE_BUILD] = vyre__schedule_build,
    [VYRE__SCHEDULE_RANGE_SPLIT] = vyre__schedule_range_split,
    [VYRE__SCHEDULE_LOOP_RANGE] = vyre__schedule_loop_range,
    [VYRE__SCHEDULE_UNROLL_JAM] = vyre__schedule_unroll_jam,
    [VYRE__SCHEDULE_ACCUMULATOR_SPLIT] = vyre__schedule_accumulator_split,
    [VYRE__SCHEDULE_PRIVATIZE_ATOMICS] = vyre__schedule_privatize_atomics,
    [VYRE__SCHEDULE_LOOP_PEEL] = vyre__schedule_loop_peel,
    [VYRE__SCHEDULE_ROW_LOADS] = vyre__schedule_row_loads,
    [VYRE__SCHEDULE_ROW_LIMIT] = vyre__schedule_row_limit,
    [VYRE__SCHEDULE_SPECULATE] = vyre__schedule_speculate,
    [VYRE__SCHEDULE_ROW_WALK] = vyre__schedule_row_walk,
    [VYRE__SCHEDULE_INTERLEAVE] = vyre__schedule_interleave,
    [VYRE__SCHEDULE_PREFETCH] = vyre__schedule_prefetch,
    [VYRE__SCHEDULE_FULL_WORKGROUPS] = vyre__schedule_full_workgroups,
};

vyre_code vyre__schedule_no_memory(const vyre__schedule *s, size_t count) {
  return vyre__no_memory(s->st, "spmd/schedule", "instructions", count);
}

/* Returns true if later passes need the tables of a pass, even empty ones. Such a
 * pass tests itself whether it is off. */
static bool makes_tables(unsigned pass) {
  return pass == VYRE__SCHEDULE_RANGE_SPLIT ||
         pass == VYRE__SCHEDULE_PRIVATIZE_ATOMICS;
}

vyre_code vyre__schedule_make(const vyre__lir_kernel *kernel, uint32_t phase,
                              const vyre__schedule_options *options,
                              vyre__schedule_pass last, vyre_arena *arena,
                              vyre__schedule *out, vyre_status *st) {
  *out = (vyre__schedule){.kernel = kernel,
                          .phase = phase,
                          .width = options->width,
                          .lanes = options->lanes ? options->lanes : 8,
                          .is_compact = options->is_compact,
                          .off = options->off,
                          .arena = arena,
                          .st = st};
  VYRE_TRY(vyre__regions_build(kernel, kernel->phases[phase], false, arena,
                               &out->r, st));
  VYRE_TRY(vyre__find_deciding_loads(kernel, true, arena, &out->decides, st));
  for (unsigned i = 0; i <= (unsigned)last && i < VYRE__SCHEDULE_COUNT; i++) {
    if (vyre__pass_is_off(out->off, (vyre__optional_pass)i) &&
        !makes_tables(i)) {
      continue;
    }
    VYRE_TRY(passes[i](out));
  }
  return VYRE_OK;
}

/* Returns true if shuffles replace a gather or scatter. */
static bool is_shuffled(const vyre__schedule *s, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(s, at);
  bool is_store = inst->op == VYRE__LIR_STORE;
  const vyre__lir_buffer *buffer = &s->kernel->buffers[inst->aux];
  vyre__lane_offsets offsets;
  vyre__lane_span span;
  if (buffer->width < 4 || (is_store ? inst->c : inst->b)) return false;
  if (buffer->kind != VYRE_MEMORY_SHARED && is_store) return false;
  return vyre__lane_offsets_find(s->kernel, &s->shapes, inst->a, &offsets) &&
         vyre__lane_span_find(&offsets, s->width, 2 * s->width, &span) &&
         (!is_store || span.is_single);
}

vyre__access_kind vyre__access_kind_of(const vyre__schedule *s, uint32_t at) {
  if (!is_access(s, at)) return VYRE__ACCESS_NONE;
  if (flags_at(s, at) & VYRE__LIRF_ATOMICS) return VYRE__ACCESS_ATOMIC;
  vyre__lane_shape shape = shape_at(s, inst_at(s, at)->a);
  if (s->width == 1 || vyre__lane_shape_is_uniform(shape)) {
    return VYRE__ACCESS_UNIFORM;
  }
  if (shape.kind == VYRE__LANE_SHAPE_VARYING) {
    return is_shuffled(s, at) ? VYRE__ACCESS_SHUFFLED : VYRE__ACCESS_GATHER;
  }
  if (shape.stride == 1) return VYRE__ACCESS_CONTIGUOUS;
  return note_at(s, at)->together ? VYRE__ACCESS_INTERLEAVED
                                  : VYRE__ACCESS_STRIDED;
}

vyre_code vyre__prepare_kernel(const vyre__lir_kernel *kernel, uint32_t off,
                               vyre_arena *arena, const vyre__lir_kernel **out,
                               const vyre__shared_layout **layouts,
                               vyre_status *st) {
  *layouts = NULL;
  if (!vyre__pass_is_off(off, VYRE__OPTIONAL_PERIODIC)) {
    VYRE_TRY(vyre__unwrap_neighbours(kernel, arena, &kernel, st));
  }
  if (!vyre__pass_is_off(off, VYRE__OPTIONAL_STRIDE_LOOPS)) {
    VYRE_TRY(vyre__interchange_stride_loops(kernel, arena, &kernel, st));
  }
  if (!vyre__pass_is_off(off, VYRE__OPTIONAL_SHARED_LAYOUT)) {
    VYRE_TRY(vyre__lay_out_shared(kernel, arena, &kernel, layouts, st));
  }
  if (!vyre__pass_is_off(off, VYRE__OPTIONAL_INTERCHANGE)) {
    VYRE_TRY(vyre__interchange_loops(kernel, arena, &kernel, st));
  }
  *out = kernel;
  return VYRE_OK;
}

vyre_code vyre__make_versions(const vyre__lir_kernel *kernel,
                              const vyre__schedule_options *options,
                              vyre_arena *arena, const vyre__lir_kernel **out,
                              vyre_status *st) {
  if (!vyre__pass_is_off(options->off, VYRE__OPTIONAL_UNIFORM_VERSIONS)) {
    VYRE_TRY(
        vyre__version_uniforms(kernel, options->width, arena, &kernel, st));
  }
  if (!vyre__pass_is_off(options->off, VYRE__OPTIONAL_LOOP_CHECKS)) {
    VYRE_TRY(vyre__simplify_checks(kernel, options->width, arena, &kernel, st));
  }
  *out = kernel;
  return VYRE_OK;
}
