/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by the printers of barrier and frontier plans. */
#ifndef VYRE_PLAN_WAVE_PRINT_H
#define VYRE_PLAN_WAVE_PRINT_H

#include <stddef.h>
#include <stdint.h>

#include "base/print.h"

/* Number of groups listed at the start and at the end; those between are
 * counted in one line. */
enum { VYRE__GROUPS_HEAD = 32, VYRE__GROUPS_TAIL = 8 };

/* Returns the number of groups to skip at @p group; 0 to show it. */
static inline size_t vyre__skip_groups(size_t group_count, size_t group) {
  if (group != VYRE__GROUPS_HEAD) return 0;
  size_t shown = VYRE__GROUPS_HEAD + VYRE__GROUPS_TAIL;
  return group_count > shown + 1 ? group_count - shown : 0;
}

/* Prints "3 4 5", or "3 4 5 ... (97 more)" if there are more than @p max. */
static inline void vyre__print_waves(vyre__printer *out, const uint32_t *waves,
                                     uint32_t count, uint32_t max) {
  uint32_t shown = count > max ? max : count;
  for (uint32_t i = 0; i < shown; i++) {
    vyre__print(out, "%s%u", i > 0 ? " " : "", waves[i]);
  }
  if (shown < count) vyre__print(out, " ... (%u more)", count - shown);
}

#endif
