/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fuzz target for JSON plans; the first byte selects the reader. The plan of
 * accepted input is checked; errors have a position and a fix. */
#include "vyre/capture.h"

#include "cli/text.h"
#include "io/fuzz_check.h"

enum { MAX_WAVES = 2000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checks that every wave is in one group, after all waves it depends on. */
static void check_groups(const vyre_frontier_desc *desc,
                         const vyre_barrier_plan *plan) {
  static uint32_t group_of[MAX_WAVES];
  memset(group_of, 0xFF, sizeof group_of);
  MUST(plan->wave_count == desc->wave_count);
  for (uint32_t g = 0; g < plan->group_count; g++) {
    MUST(plan->group_offsets[g] < plan->group_offsets[g + 1]);
    for (uint32_t i = plan->group_offsets[g]; i < plan->group_offsets[g + 1];
         i++) {
      MUST(plan->waves[i] < desc->wave_count);
      MUST(group_of[plan->waves[i]] == UINT32_MAX);
      group_of[plan->waves[i]] = g;
    }
  }
  for (size_t i = 0; i < desc->wave_count; i++) {
    MUST(group_of[i] != UINT32_MAX);
  }
  for (size_t i = 0; i < desc->dependency_count; i++) {
    const vyre_wave_dependency *edge = &desc->dependencies[i];
    MUST(group_of[edge->before] < group_of[edge->after]);
  }
}

static void raise_to(uint64_t *peak, uint64_t value) {
  if (value > *peak) *peak = value;
}

/* Checks that every group fits the budget and that the peaks are the largest
 * sums. */
static void check_bytes(const vyre_frontier_desc *desc,
                        const vyre_frontier_plan *plan) {
  const vyre_barrier_plan *groups = &plan->barriers;
  vyre_frontier_plan peak = {.max_group_width = 0};
  for (size_t g = 0; g < groups->group_count; g++) {
    uint64_t frontier = 0, scratch = 0, output = 0, fused = 0;
    size_t width = groups->group_offsets[g + 1] - groups->group_offsets[g];
    for (size_t i = 0; i < width; i++) {
      const vyre_frontier_wave *wave =
          &desc->waves[groups->waves[groups->group_offsets[g] + i]];
      uint64_t bytes;
      MUST(vyre_frontier_wave_bytes(wave, &bytes, NULL) == VYRE_OK);
      frontier += wave->frontier_bytes;
      scratch += wave->scratch_bytes;
      output += wave->output_bytes;
      fused += bytes;
    }
    MUST(fused <= desc->budget_bytes - desc->resident_graph_bytes);
    raise_to(&peak.peak_frontier_bytes, frontier);
    raise_to(&peak.peak_scratch_bytes, scratch);
    raise_to(&peak.peak_output_bytes, output);
    raise_to(&peak.peak_group_bytes, fused);
    if (width > peak.max_group_width) peak.max_group_width = width;
  }
  MUST(plan->peak_frontier_bytes == peak.peak_frontier_bytes);
  MUST(plan->peak_scratch_bytes == peak.peak_scratch_bytes);
  MUST(plan->peak_output_bytes == peak.peak_output_bytes);
  MUST(plan->peak_group_bytes == peak.peak_group_bytes);
  MUST(plan->max_group_width == peak.max_group_width);
  MUST(plan->minimum_groups <= groups->group_count);
}

static void check_waves_placed(const vyre_frontier_desc *desc,
                               const vyre_frontier_plan *plan,
                               uint64_t alignment, vyre_arena *arena) {
  const vyre_interval *intervals;
  vyre_placement_options options = {.heuristic_steps = 20000,
                                    .no_search = true};
  vyre_placement_scratch scratch = {0};
  vyre_placement_plan placement;
  vyre_status st = {0};
  if (desc->wave_count * 3 > MAX_PLACED) return;
  if (vyre_frontier_intervals(plan, desc, alignment, arena, &intervals, &st) !=
          VYRE_OK ||
      vyre_placement_plan_build(intervals, desc->wave_count * 3, &options,
                                &scratch, arena, &placement, &st) != VYRE_OK) {
    status_must_be_told(&st, arena);
  } else {
    must_be_placed(intervals, desc->wave_count * 3, &placement);
    sink drawing = {0};
    svg_frontier(desc, plan, &placement, intervals, &drawing);
    sink_deinit(&drawing);
  }
  vyre_placement_scratch_deinit(&scratch);
}

static void fuzz_frontier(const input *in, uint64_t alignment,
                          vyre_arena *arena) {
  vyre_frontier_desc desc;
  vyre_frontier_plan plan;
  vyre_barrier_scratch scratch = {0};
  vyre_status st = {0};
  problem wrong = {0};
  if (!read_frontier_json(in, arena, &desc, &wrong)) {
    must_be_told(&wrong, in, arena);
    return;
  }
  if (desc.wave_count > MAX_WAVES) return;
  if (vyre_frontier_plan_build(&desc, &scratch, arena, &plan, &st) == VYRE_OK) {
    check_groups(&desc, &plan.barriers);
    check_bytes(&desc, &plan);
    check_waves_placed(&desc, &plan, alignment, arena);
    sink text = {0};
    MUST(vyre_frontier_plan_print(&plan, &desc, sink_writer(&text)));
    sink_deinit(&text);
  } else {
    status_must_be_told(&st, arena);
  }
  vyre_barrier_scratch_deinit(&scratch);
}

static void fuzz_place(const input *in, vyre_arena *arena) {
  place_input place;
  problem wrong = {0};
  if (!read_place_json(in, arena, &place, &wrong)) {
    must_be_told(&wrong, in, arena);
    return;
  }
  check_place(&place, arena);
}

/* Checks that inputs and outputs are numbered without gaps in binding order. */
static void check_bindings(const vyre_binding_plan *plan, size_t buffers) {
  uint32_t inputs = 0, outputs = 0;
  MUST(plan->binding_count == buffers);
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    MUST(i == 0 || plan->bindings[i - 1].binding <= b->binding);
    MUST(b->input_index == VYRE_NO_INDEX || b->input_index == inputs++);
    MUST(b->output_index == VYRE_NO_INDEX || b->output_index == outputs++);
    MUST(b->preferred_alignment >= 1 && b->buffer_index < buffers);
  }
  MUST(plan->input_count == inputs && plan->output_count == outputs);
}

static vyre_code plan_bindings(const bindings_input *in, vyre_arena *arena,
                               vyre_status *st) {
  vyre_program *program;
  vyre_binding_plan plan;
  vyre_binding_fingerprint slots;
  vyre_layout_fingerprint layout;
  vyre_capture_plan capture;
  vyre_code code =
      vyre_program_create(&in->program, vyre_allocator_heap(), &program, st);
  if (code != VYRE_OK) return code;
  code = in->has_lengths
             ? vyre_binding_plan_build_for(program, in->lengths,
                                           in->length_count, arena, &plan, st)
             : vyre_binding_plan_build(program, arena, &plan, st);
  if (code == VYRE_OK) {
    sink text = {0};
    check_bindings(&plan, in->program.buffer_count);
    MUST(vyre_binding_fingerprint_build(&plan, arena, &slots, st) == VYRE_OK);
    MUST(vyre_layout_fingerprint_from_plan(&plan, arena, &layout, st) ==
         VYRE_OK);
    MUST(vyre_capture_plan_build(&plan, &capture, st) == VYRE_OK);
    MUST(vyre_binding_plan_print(&plan, sink_writer(&text)));
    MUST(find_unprintable(text.data, strcspn(text.data, "\n")) ==
         strcspn(text.data, "\n"));
    sink_deinit(&text);
  }
  vyre_program_release(program);
  return code;
}

static void fuzz_bindings(const input *in, vyre_arena *arena) {
  bindings_input bindings;
  problem wrong = {0};
  vyre_status st = {0};
  if (!read_bindings_json(in, arena, &bindings, &wrong)) {
    must_be_told(&wrong, in, arena);
  } else if (plan_bindings(&bindings, arena, &st) != VYRE_OK) {
    status_must_be_told(&st, arena);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const uint64_t alignments[] = {1, 256, 0, 3};
  if (size == 0) return 0;
  vyre_arena arena = {0};
  input in = {.label = "fuzz.json",
              .text = size > 1 ? (const char *)data + 1 : "",
              .length = size - 1};
  switch (data[0] % 3) {
    case 0: /* 'f' */
      fuzz_frontier(&in, alignments[data[0] / 3 % 4], &arena);
      break;
    case 1: /* 'p' */
      fuzz_place(&in, &arena);
      break;
    default: /* 'b' */
      fuzz_bindings(&in, &arena);
  }
  vyre_arena_deinit(&arena);
  return 0;
}
