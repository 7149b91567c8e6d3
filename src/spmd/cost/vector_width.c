/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Chooses the width with the lowest estimated cost (cost.h).
 *
 * An estimate takes as long as a few percent of a compile. Not every width is
 * estimated: 8, 16 and 32 usually decide. Narrower vectors can only be better
 * where the work of lanes does not become less in vectors: gathers, atomics,
 * and loops in which lanes wait for others. Workgroups of one invocation have no
 * lanes. */
#include "spmd/cost/vector_width.h"

#include "base/status.h"

/* A wider vector has to be better by this factor: it needs more registers and
 * more code, and loses more at the ends of rows. */
#define MARGIN 0.98

/* Share of the cost that lanes cause one by one, from which on narrow vectors
 * are estimated. */
#define LANE_SHARE 0.3

static const uint32_t widths[VYRE__WIDTHS] = {1, 4, 8, 16, 32};
enum { SMALLEST_USUAL = 2 }; /* index of width 8 */

static double lane_share(const vyre__cost *cost) {
  double sum =
      cost->kinds[VYRE__COST_GATHER] + cost->kinds[VYRE__COST_SCATTER] +
      cost->kinds[VYRE__COST_ATOMIC] + cost->kinds[VYRE__COST_DIVERGENCE] +
      cost->kinds[VYRE__COST_MASKED];
  return sum / cost->cycles;
}

/* Returns the index of the best width so far. */
static uint32_t find_best(const vyre__width_choice *choice) {
  uint32_t best = VYRE__WIDTHS;
  for (uint32_t i = 0; i < VYRE__WIDTHS; i++) {
    const vyre__cost *cost = &choice->costs[i];
    if (!cost->width) continue;
    if (best == VYRE__WIDTHS ||
        cost->cycles < choice->costs[best].cycles * MARGIN) {
      best = i;
    }
  }
  return best;
}

vyre_code vyre__choose_width(const vyre__lir_kernel *kernel,
                             const vyre__schedule_options *options,
                             const vyre__cost_machine *machine, bool all,
                             vyre_arena *arena, vyre__width_choice *out,
                             vyre_status *st) {
  vyre__schedule_options with = *options;
  *out = (vyre__width_choice){.is_single = vyre__lir_group_size(kernel) == 1};
  for (uint32_t i = VYRE__WIDTHS; i-- > 0;) {
    if (out->is_single && !all && widths[i] > 1) continue;
    if (!all && i < SMALLEST_USUAL) {
      uint32_t best = find_best(out);
      if (best != VYRE__WIDTHS && best > SMALLEST_USUAL &&
          lane_share(&out->costs[best]) < LANE_SHARE) {
        break;
      }
    }
    with.width = widths[i];
    VYRE_TRY(
        vyre__cost_estimate(kernel, &with, machine, arena, &out->costs[i], st));
  }
  out->width = out->is_single ? 1 : widths[find_best(out)];
  return VYRE_OK;
}
