/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/barrier.h"

#include "plan/wave_print.h"

bool vyre_barrier_plan_print(const vyre_barrier_plan *plan,
                             vyre_writer writer) {
  if (!plan) return false;
  vyre__printer out = vyre__printer_make(writer);
  vyre__print(&out, "barriers\n");
  vyre__print_figure(&out, "groups", plan->group_count, "");
  vyre__print_figure(&out, "global_barriers", plan->global_barriers, "");
  if (plan->group_count > 0) {
    vyre__print(&out, "\n  %10s  %10s  waves\n", "group", "width");
  }
  for (size_t group = 0; group < plan->group_count; group++) {
    size_t skipped = vyre__skip_groups(plan->group_count, group);
    if (skipped > 0) {
      vyre__print(&out, "  %10s  (%zu more groups)\n", "...", skipped);
      group += skipped - 1;
      continue;
    }
    uint32_t from = plan->group_offsets[group];
    uint32_t to = plan->group_offsets[group + 1];
    vyre__print(&out, "  %10zu  %10u  ", group, to - from);
    vyre__print_waves(&out, plan->waves + from, to - from, 12);
    vyre__print(&out, "\n");
  }
  return out.ok;
}
