/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/frontier.h"

#include "base/bps.h"
#include "base/enum_name.h"
#include "plan/wave_print.h"

enum { BAR = 32 }; /* columns for the full budget */

static void print_figures(vyre__printer *out, const vyre_frontier_plan *plan,
                          const vyre_frontier_desc *desc) {
  const vyre_barrier_plan *barriers = &plan->barriers;
  vyre__print(out, "frontier plan: %zu waves, %zu dependencies\n",
              desc->wave_count, desc->dependency_count);
  vyre__print_figure(out, "groups", barriers->group_count, "");
  vyre__print_figure(out, "minimum_groups", plan->minimum_groups,
                     plan->minimum_groups == barriers->group_count
                         ? "(no grouping has fewer)"
                         : "");
  vyre__print_figure(out, "global_barriers", barriers->global_barriers, "");
  vyre__print_figure(out, "max_group_width", plan->max_group_width, "waves");
  vyre__print_figure(out, "peak_frontier_bytes", plan->peak_frontier_bytes,
                     "bytes");
  vyre__print_figure(out, "peak_scratch_bytes", plan->peak_scratch_bytes,
                     "bytes");
  vyre__print_figure(out, "peak_output_bytes", plan->peak_output_bytes,
                     "bytes");
  vyre__print_figure(out, "peak_group_bytes", plan->peak_group_bytes, "bytes");
  vyre__print_figure(out, "amortized_readback_bytes",
                     plan->amortized_readback_bytes, "bytes");
  vyre__print_figure(out, "resident_graph_bytes", desc->resident_graph_bytes,
                     "bytes");
  vyre__print_figure(out, "budget_bytes", desc->budget_bytes, "bytes");
}

static uint64_t group_bytes(const vyre_frontier_desc *desc,
                            const uint32_t *waves, uint32_t count) {
  uint64_t bytes = 0; /* no overflow: the plan has a 64-bit budget */
  for (uint32_t i = 0; i < count; i++) {
    const vyre_frontier_wave *wave = &desc->waves[waves[i]];
    bytes += wave->frontier_bytes + wave->output_bytes +
             wave->scratch_bytes * VYRE_FUSED_SCRATCH_FACTOR;
  }
  return bytes;
}

/* Returns the columns of the bar for @p bytes of @p budget; at least one
 * unless @p bytes is 0. */
static unsigned columns_for(uint64_t bytes, uint64_t budget) {
  unsigned columns =
      (unsigned)(vyre__ratio_bps_u64(bytes, budget, 0) * BAR / VYRE__BPS_ONE);
  return columns == 0 && bytes > 0 ? 1 : columns;
}

/* Prints |===#######          | for graph, group and the unused budget. */
static void print_bar(vyre__printer *out, uint64_t graph, uint64_t group,
                      uint64_t budget) {
  unsigned held = columns_for(graph, budget);
  unsigned used = columns_for(group, budget);
  if (held > BAR) held = BAR;
  if (used > BAR - held) used = BAR - held;
  vyre__print(out, "|");
  vyre__print_repeat(out, "=", held);
  vyre__print_repeat(out, "#", used);
  vyre__print_repeat(out, " ", BAR - held - used);
  vyre__print(out, "|");
}

static void print_groups(vyre__printer *out, const vyre_barrier_plan *plan,
                         const vyre_frontier_desc *desc) {
  char figure[VYRE__FIGURE_TEXT];
  vyre__print(out, "\n  %9s %18s  %-*s  waves\n", "group", "fused bytes",
              BAR + 2, "of the budget (= graph, # group)");
  for (size_t group = 0; group < plan->group_count; group++) {
    size_t skipped = vyre__skip_groups(plan->group_count, group);
    if (skipped > 0) {
      vyre__print(out, "  %9s (%zu more groups)\n", "...", skipped);
      group += skipped - 1;
      continue;
    }
    uint32_t from = plan->group_offsets[group];
    uint32_t count = plan->group_offsets[group + 1] - from;
    uint64_t bytes = group_bytes(desc, plan->waves + from, count);
    vyre__print(out, "  %9zu %18s  ", group, vyre__figure(bytes, figure));
    print_bar(out, desc->resident_graph_bytes, bytes, desc->budget_bytes);
    vyre__print(out, "  ");
    vyre__print_waves(out, plan->waves + from, count, 8);
    vyre__print(out, "\n");
  }
}

bool vyre_frontier_plan_print(const vyre_frontier_plan *plan,
                              const vyre_frontier_desc *desc,
                              vyre_writer writer) {
  if (!plan || !desc) return false;
  vyre__printer out = vyre__printer_make(writer);
  print_figures(&out, plan, desc);
  if (plan->barriers.group_count > 0) print_groups(&out, &plan->barriers, desc);
  return out.ok;
}

VYRE__ENUM_NAME(vyre_wave_part_name, vyre_wave_part, VYRE_WAVE_PART_MAP)
