/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints the plan of a wave graph. */
#include "base/print.h"
#include "flow/wave_internal.h"

/* Rows listed at the start and at the end of each table; those between are
 * counted in one line. */
enum { HEAD = 32, TAIL = 8, MAX_WAVES = 12 };

/* Returns the number of rows to skip at @p row; 0 to show it. */
static size_t skip_rows(size_t count, size_t row) {
  return row == HEAD && count > HEAD + TAIL + 1 ? count - HEAD - TAIL : 0;
}

static void print_groups(vyre__printer *out, const vyre_wave_graph *graph) {
  const vyre_barrier_plan *b = &graph->plan.frontier.barriers;
  for (size_t g = 0; g < b->group_count; g++) {
    size_t skipped = skip_rows(b->group_count, g);
    if (skipped > 0) {
      vyre__print(out, "  ... %zu more groups\n", skipped);
      g += skipped - 1;
      continue;
    }
    uint32_t first = b->group_offsets[g], end = b->group_offsets[g + 1];
    vyre__print(out, "  group %zu:", g);
    for (uint32_t i = first; i < end && i < first + MAX_WAVES; i++)
      vyre__print(out, " %u %s%s", b->waves[i], graph->waves[b->waves[i]].label,
                  i + 1 < end ? "," : "");
    if (end - first > MAX_WAVES)
      vyre__print(out, " ... (%u more)", end - first - MAX_WAVES);
    vyre__print(out, "\n");
  }
}

static const char *role_of(const vyre__wave_resource *r) {
  return r->is_external                ? "external"
         : r->is_input && r->is_output ? "input, output"
         : r->is_input                 ? "input"
         : r->is_output                ? "output"
         : r->is_kept                  ? "kept"
                                       : "transient";
}

static void print_resources(vyre__printer *out, const vyre_wave_graph *graph) {
  const vyre_wave_plan *plan = &graph->plan;
  vyre__print(out, "resources (offset, bytes, groups):\n");
  for (size_t i = 0; i < graph->resource_count; i++) {
    const vyre__wave_resource *r = &graph->resources[i];
    const vyre_interval *interval = &plan->intervals[i];
    size_t skipped = skip_rows(graph->resource_count, i);
    if (skipped > 0) {
      vyre__print(out, "  ... %zu more resources\n", skipped);
      i += skipped - 1;
      continue;
    }
    vyre__print(out, "  %s: ", r->name);
    if (r->is_external) {
      vyre__print(out, "%llu bytes, external\n", (unsigned long long)r->size);
    } else if (interval->size == 0) {
      vyre__print(out, "%llu bytes, not used\n", (unsigned long long)r->size);
    } else {
      vyre__print(out, "at %llu, %llu bytes, groups %llu to %llu, %s%s\n",
                  (unsigned long long)plan->offsets[i],
                  (unsigned long long)r->size,
                  (unsigned long long)interval->first_group,
                  (unsigned long long)interval->last_group, role_of(r),
                  r->begins_zero ? ", begins as zeros" : "");
    }
  }
}

static void print_part(vyre__printer *out, const vyre_wave_graph *graph,
                       const vyre_wave_share *part) {
  const vyre__wave *wave = &graph->waves[part->wave];
  if (part->group_count == wave->workgroups) {
    vyre__print(out, " %u", part->wave);
  } else {
    const unsigned long long first = part->first_group;
    vyre__print(out, " %u[%llu..%llu)", part->wave, first,
                first + part->group_count);
  }
}

static void print_map(vyre__printer *out, const vyre_wave_graph *graph) {
  const vyre_wave_plan *plan = &graph->plan;
  size_t groups = plan->frontier.barriers.group_count;
  if (!plan->parts) {
    vyre__print(out, "threads: the device maps waves to threads\n");
    return;
  }
  vyre__print(out, "threads: %u (waves, or wave[first workgroup..end))\n",
              plan->threads);
  for (size_t g = 0; g < groups; g++) {
    size_t skipped = skip_rows(groups, g);
    if (skipped > 0) {
      vyre__print(out, "  ... %zu more groups\n", skipped);
      g += skipped - 1;
      continue;
    }
    vyre__print(out, "  group %zu:", g);
    uint32_t shown = UINT32_MAX;
    for (uint32_t i = plan->part_offsets[g]; i < plan->part_offsets[g + 1];
         i++) {
      const vyre_wave_share *part = &plan->parts[i];
      if (part->thread != shown)
        vyre__print(out, "%s thread %u:", shown == UINT32_MAX ? "" : ";",
                    part->thread);
      shown = part->thread;
      print_part(out, graph, part);
    }
    vyre__print(out, "\n");
  }
}

static void print_bytes(vyre__printer *out, const vyre_wave_graph *graph) {
  const vyre_wave_plan *plan = &graph->plan;
  const vyre_placement_plan *placement = &plan->placement;
  vyre__print_figure(out, "placed_bytes", placement->placed_bytes, "B");
  vyre__print_figure(out, "lower_bound_bytes", placement->lower_bound_bytes,
                     "B");
  vyre__print_figure(out, "separate_bytes", plan->separate_bytes, "B");
  vyre__print_figure(out, "resident_bytes", plan->resident_bytes, "B");
  vyre__print_figure(out, "peak_group_bytes", plan->frontier.peak_group_bytes,
                     "B");
  vyre__print_figure(out, "upload_bytes", plan->upload_bytes, "B");
  vyre__print_figure(out, "readback_bytes", plan->readback_bytes, "B");
  vyre__print_figure(out, "amortized_readback_bytes",
                     plan->frontier.amortized_readback_bytes, "B");
}

bool vyre_wave_graph_print(const vyre_wave_graph *graph, vyre_writer writer) {
  vyre__printer out = vyre__printer_make(writer);
  if (!graph || !graph->has_plan) return false;
  const vyre_wave_plan *plan = &graph->plan;
  vyre__print(&out,
              "wave graph: %zu waves in %zu groups, %llu barriers, %llu "
              "submission\n",
              graph->wave_count, plan->frontier.barriers.group_count,
              (unsigned long long)plan->barriers,
              (unsigned long long)plan->submissions);
  if (graph->loop.is_set) {
    vyre__print(&out,
                "repeats while '%s' at byte %llu is not 0, at most %llu "
                "times\n",
                graph->resources[graph->loop.flag].name,
                (unsigned long long)graph->loop.offset,
                (unsigned long long)graph->loop.max_iterations);
  }
  print_groups(&out, graph);
  print_resources(&out, graph);
  print_map(&out, graph);
  print_bytes(&out, graph);
  return out.ok;
}
